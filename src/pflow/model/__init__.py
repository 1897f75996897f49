"""Frozen data shared by every layer: values and the schemas they fit, workflows, runs, events."""
