"""Tools that run on other machines, called over MCP."""
