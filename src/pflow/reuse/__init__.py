"""Reuse policies: may an earlier outcome stand in for a visit, and why or why not."""
