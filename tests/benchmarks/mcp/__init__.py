"""The speed of calls over MCP, compared with the client of the SDK.

All clients talk to the same server, `server`, on the SDK's lowest level. `limit`, `library` and
`peers.fastmcp_client` do the same with the same names:

- `memory`, `stdio` and `http` connect; what they give has `names`, the server's tools, `call`, which
  takes JSON and gives the text of the answer, and `progress`, which counts the reports of a call.
- `connect_all` connects many servers and gives how many tools they have.
"""

from __future__ import annotations

MCP_TIMED = (
    "mcp_call_memory",
    "mcp_call_stdio",
    "mcp_call_http",
    "mcp_connect_8",
    "mcp_list_1000",
    "mcp_result_5mb",
    "mcp_result_20mb",
    "mcp_result_5mb_http",
    "mcp_progress_2000",
    "mcp_progress_2000_cpu",
)
