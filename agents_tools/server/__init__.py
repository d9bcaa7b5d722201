"""HTTP servers: request handling, security and the runs that a server manages."""
