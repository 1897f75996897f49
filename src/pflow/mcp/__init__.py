"""MCP servers as node types: which there are, what tools they were found to have, and calling them in a run."""
