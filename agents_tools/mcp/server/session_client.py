"""Send requests to the client of a session, which answers them (up to 2025-11-25)."""

from __future__ import annotations

import importlib
from typing import Any

from agents_tools.mcp._sdk import RawJson, RawResult
from agents_tools.mcp.server.served_client import ServedClient
from agents_tools.tool.question import UnansweredError

__all__ = ["SessionClient", "capabilities_of"]


class SessionClient(ServedClient):
    """The client of a session.

    Args:
        ctx: The SDK's context of the request that is being handled.
        capabilities: The capabilities that the client declared.
        error_type: The SDK's class of errors.
    """

    def __init__(
        self, ctx: Any, capabilities: dict[str, Any] | None, error_type: type[Exception]
    ) -> None:
        super().__init__(capabilities)
        self._ctx = ctx
        self._error_type = error_type

    async def _send(self, method: str, params: dict[str, Any], key: str | None) -> dict[str, Any]:
        from pydantic import ValidationError

        del key  # the result belongs to the request of the session
        message: Any = importlib.import_module("mcp.shared.message")
        metadata = message.ServerMessageMetadata(related_request_id=self._ctx.request_id)
        try:
            return await self._ctx.session.send_request(
                RawJson(method, params), RawResult, metadata=metadata
            )
        except self._error_type as error:  # also if there is no channel for requests to the client
            raise UnansweredError(f"it was not asked ({error})", reason="unavailable") from None
        except ValidationError:
            raise UnansweredError("its response is not valid", reason="unavailable") from None


def capabilities_of(session: Any) -> dict[str, Any] | None:
    """Return the capabilities of the client; `None` if there is no session that knows them."""
    known = getattr(session, "client_capabilities", None)
    if known is None and session.client_params is not None:
        known = session.client_params.capabilities
    return None if known is None else known.model_dump(by_alias=True, exclude_none=True)
