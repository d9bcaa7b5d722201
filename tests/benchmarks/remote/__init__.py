"""How fast calls of tools on another machine are, beside the SDK that carries them.

Both sides serve the same three tools over HTTP in a process of their own: `ours` with
`mcp_server` and `MCPBackend`, `engine` with the SDK's server and client and nothing around them.
`python -m tests.benchmarks.remote` prints the figures.
"""
