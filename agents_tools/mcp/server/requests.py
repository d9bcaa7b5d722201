"""The requests of clients, and the errors that answer them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["INTERNAL_ERROR", "INVALID_PARAMS", "MCPRequest", "RequestError"]

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class RequestError(Exception):
    """An invalid request, answered with a JSON-RPC error.

    Args:
        message: The reason.
        code: The JSON-RPC code.
        data: The data of the error.
    """

    def __init__(
        self, message: str, code: int = INVALID_PARAMS, data: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPRequest:
    """The request of a client: the default `ctx.context` of what a server calls.

    Attributes:
        protocol_version: The protocol version of the client.
        headers: The headers of the HTTP request, in lower case, without credentials.
        principal: The authenticated caller, if the server requires authentication.
        meta: The metadata that the client sent with the request (`_meta`).
        request_id: The JSON-RPC id of the request.
        has_progress: Whether the client requests progress.
        log_level: The lowest level of log messages that the client requests; `None` for none.
    """

    protocol_version: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    principal: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    request_id: int | str | None = None
    has_progress: bool = False
    log_level: str | None = None
