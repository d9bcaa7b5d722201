"""The client of a request that a server handles: what it supports, and how to ask it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._sdk import MODERN
from agents_tools.mcp.server.requests import RequestError
from agents_tools.text.output import release_text
from agents_tools.tool.question import UnansweredError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "MISSING_CAPABILITY",
    "MissingCapabilityError",
    "ServedClient",
    "check_capability",
    "current_client",
    "request_of_tool",
]

MISSING_CAPABILITY = -32021
"""The code of the error for a capability that the client has not declared (2026-07-28)."""


class MissingCapabilityError(UnansweredError):
    """A request needs a feature that the client has not declared.

    Args:
        message: The text for the model.
        capabilities: The `ClientCapabilities` that the request needs.
    """

    def __init__(self, message: str, capabilities: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, reason="unavailable")
        self.capabilities = dict(capabilities or {})


def check_capability(error: Exception, version: str) -> None:
    """Raise the protocol's error if a request failed because the client lacks a capability.

    Args:
        error: The error of the request.
        version: The protocol version; before 2026-07-28 there is no such error.

    Raises:
        RequestError: The client has not declared a capability.
    """
    if isinstance(error, MissingCapabilityError) and version >= MODERN:
        data = {"requiredCapabilities": error.capabilities}
        raise RequestError(release_text(str(error)), MISSING_CAPABILITY, data)


class ServedClient(ABC):
    """The client of the request that is being handled.

    Attributes:
        capabilities: The `ClientCapabilities` that it declared; `None` if they are unknown, over
            HTTP without sessions up to protocol version 2025-11-25.
    """

    def __init__(self, capabilities: dict[str, Any] | None) -> None:
        self.capabilities = capabilities

    async def request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        needs: Mapping[str, Mapping[str, Any]],
        key: str | None = None,
    ) -> dict[str, Any]:
        """Send a request to the client and return its result.

        Args:
            method: `elicitation/create`, `sampling/createMessage` or `roots/list`.
            params: The parameters of the method.
            needs: The capabilities that the client must have declared.
            key: The name of the request within its call.

        Raises:
            MissingCapabilityError: The client has not declared a capability.
            UnansweredError: The client has not answered, or answered with an error.
        """
        if self.capabilities is None:
            raise UnansweredError(
                "it cannot be asked without a session (protocol version 2025-11-25 or older over "
                "HTTP, with stateless=True)",
                reason="unavailable",
            )
        for name, parts in needs.items():
            declared = self.capabilities.get(name)
            missing = [part for part in parts if part not in an_object(declared)]
            if declared is None or missing:
                feature = ".".join([name, *missing])
                raise MissingCapabilityError(f"it does not support {feature}", needs)
        return await self._send(method, params, key)

    @abstractmethod
    async def _send(self, method: str, params: dict[str, Any], key: str | None) -> dict[str, Any]:
        """Send a request and return its result."""


current_client: ContextVar[ServedClient | None] = ContextVar("mcp_client", default=None)
"""The client of the request that is being handled; `None` outside of a request."""


async def request_of_tool(
    function: str,
    method: str,
    params: dict[str, Any],
    *,
    needs: Mapping[str, Mapping[str, Any]],
    failure: str,
    key: str | None = None,
) -> dict[str, Any]:
    """Send a request to the client of the running call, and return its result.

    Args:
        function: The name of the function that the tool called.
        method: The method, as for `ServedClient.request`.
        params: The parameters of the method.
        needs: The capabilities that the client must have declared.
        failure: The beginning of the error text.
        key: The name of the request within its call.

    Raises:
        UnansweredError: The client does not support the request, or has refused it.
        UserError: No call of an MCP client is running.
    """
    client = current_client.get()
    if client is None:
        raise UserError(
            f"{function}() cannot reach a client: expected a call of an MCP client, got a call of "
            "this program. Use it only in tools that mcp_server or serve offers."
        )
    try:
        return await client.request(method, params, needs=needs, key=key)
    except MissingCapabilityError as error:
        raise MissingCapabilityError(f"{failure}, because {error}.", error.capabilities) from None
    except UnansweredError as error:
        raise UnansweredError(f"{failure}, because {error}.", reason=error.reason) from None
