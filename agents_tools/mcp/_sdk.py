"""What the client and the server use of the MCP SDK, `mcp`, in its major versions 1 and 2.

Requests and results are plain JSON objects, as on the wire.
"""

from __future__ import annotations

import functools
import importlib
import logging
from importlib import metadata
from typing import Any, Literal, TypeAlias

from agents_tools.errors import UserError

__all__ = [
    "MODERN",
    "ListKind",
    "RawJson",
    "RawResult",
    "inner_server",
    "message_of",
    "sdk_http",
    "sdk_line",
    "silence_sdk_loggers",
]

MODERN = "2026-07-28"
"""The first protocol version without sessions."""

ListKind: TypeAlias = Literal["tools", "resources", "prompts"]
"""The lists of a server that can change."""

_SDK_LOGGERS = ("auth", "sse", "stdio", "streamable_http")


@functools.cache
def sdk_line() -> int:
    """Return the major version of the installed SDK: 1 or 2.

    Raises:
        UserError: The SDK is not installed.
    """
    try:
        return int(metadata.version("mcp").partition(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        raise UserError(
            'MCP requires the extra `mcp`. Run: pip install "agents-tools[mcp]".'
        ) from None


def sdk_http() -> Any:
    """Return the HTTP library of the installed SDK: `httpx`, or `httpx2` for version 2."""
    return importlib.import_module("httpx" if sdk_line() == 1 else "httpx2")


def message_of(data: Any) -> Any:
    """Create a message of the SDK from plain JSON.

    Raises:
        ValueError: The JSON is not a message.
    """
    types: Any = importlib.import_module("mcp.types")
    if sdk_line() == 1:
        return types.JSONRPCMessage.model_validate(data)
    return types.jsonrpc_message_adapter.validate_python(data, by_name=False)


def silence_sdk_loggers() -> None:
    """Disable the SDK's log messages, unless configured: callers get the same facts as errors."""
    for name in ("client", *(f"mcp.client.{one}" for one in _SDK_LOGGERS)):
        log = logging.getLogger(name)
        if log.level == logging.NOTSET:
            log.setLevel(logging.CRITICAL)


class RawJson:
    """A request or notification as plain JSON, with the interface that the SDK's session uses."""

    name_param: str | None = None

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self.method = method
        self.params = params

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the request as the SDK serializes it."""
        return {"method": self.method, "params": self.params}


class RawResult:
    """A result type that accepts every object."""

    @staticmethod
    def model_validate(value: Any, **_: Any) -> Any:
        """Return the result as it is."""
        return value


def inner_server(server: Any) -> Any:
    """Return the server of the SDK's lowest level that is inside a high-level one."""
    for inner in ("_mcp_server", "_lowlevel_server"):
        server = getattr(server, inner, server)
    return server
