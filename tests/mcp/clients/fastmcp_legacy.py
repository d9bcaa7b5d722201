"""FastMCP's `Client` in the era with `initialize`."""

from __future__ import annotations

import asyncio

from tests.mcp.clients.fastmcp_client import main

if __name__ == "__main__":
    asyncio.run(main("legacy"))
