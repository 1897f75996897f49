"""Agents: what one is, who answers for it, and what is taken from the answer."""
