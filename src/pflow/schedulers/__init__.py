"""Schedulers decide what runs next; they do nothing else."""
