"""MCP clients: connections to servers, and their tools as function tools."""
