"""Dialects: from a document's text to a workflow, and nothing else."""
