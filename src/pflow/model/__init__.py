"""Frozen data shared by every layer: values, workflows, runs, events."""
