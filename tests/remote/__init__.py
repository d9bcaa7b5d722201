"""`serve` and the MCP client: servers that are killed, hung, restarted, behind a load balancer."""
