"""Read the folders in which the client of a served tool works (roots)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from agents_tools.mcp._coerce import objects
from agents_tools.mcp.server.served_client import request_of_tool

__all__ = ["roots"]


async def roots() -> list[Path]:
    """Return the folders that the client of the running call lets servers work in.

    It sends `roots/list`. The folders are on the machine of the client; roots that are not files
    are left out. Protocol version 2026-07-28 deprecates roots; clients can still support them.

    Raises:
        ToolDeniedError: The client does not support roots, or has refused the request.
        UserError: No call of an MCP client is running.
    """
    result = await request_of_tool(
        "roots",
        "roots/list",
        {},
        needs={"roots": {}},
        failure="The client did not list its folders",
    )
    paths = (_path_of(root.get("uri")) for root in objects(result.get("roots")))
    return [path for path in paths if path is not None]


def _path_of(uri: Any) -> Path | None:
    """Return the path of a `file:` URI; `None` for another URI."""
    try:
        parts = urlsplit(uri) if isinstance(uri, str) else None
    except ValueError:
        return None
    if parts is None or parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    return Path(url2pathname(parts.path))
