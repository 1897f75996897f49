"""This engine as an MCP server: a front end for agents, offering what the command line offers to people."""
