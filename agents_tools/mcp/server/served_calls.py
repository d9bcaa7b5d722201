"""Call the functions of a server for its clients: tools, resources and prompts."""

from __future__ import annotations

import inspect
import logging
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.errors import UserValueError
from agents_tools.mcp.server.client_states import ClientStates
from agents_tools.mcp.server.progress import call_with_progress
from agents_tools.mcp.server.served_client import check_capability
from agents_tools.tool.call import Call, enter_scope, leave_scope
from agents_tools.tool.failure import default_tool_error_function, is_public

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.mcp.server.progress import Report
    from agents_tools.mcp.server.requests import MCPRequest
    from agents_tools.tool.question import Question
    from agents_tools.tool.records import CallOutcome
    from agents_tools.tool.tool import FunctionTool

    AnyTool = FunctionTool[..., Any]

__all__ = ["ServedCalls", "current_calls", "failure_text"]

logger = logging.getLogger("agents_tools.mcp")


class ServedCalls:
    """Performs the calls of a server.

    Args:
        errors: For unexpected exceptions, `hide` sends clients the type and an id that is in the
            log, `show` the message.
        context: Returns the `ctx.context` of the calls of a request, sync or async; by default it
            is the request.

    Attributes:
        states: The state of tools for each client.
    """

    def __init__(
        self,
        errors: Literal["hide", "show"] = "hide",
        context: Callable[[MCPRequest], Any] | None = None,
    ) -> None:
        if errors not in {"hide", "show"}:
            raise UserValueError(f"errors= expects 'hide' or 'show', got {errors!r:.60}.")
        self._hides = errors == "hide"
        self._context = context
        self.states = ClientStates()

    async def perform(
        self,
        tool: AnyTool,
        arguments: str,
        request: MCPRequest,
        report: Report | None,
        ask: Callable[[Question], Any] | None,
    ) -> CallOutcome:
        """Call a tool, or the function of a resource or prompt, and return the outcome.

        Args:
            tool: The tool.
            arguments: The arguments as JSON text.
            request: The request.
            report: Sends progress and log messages; `None` if the client requests none.
            ask: Sends questions to the client; `None` if it cannot answer any.

        Raises:
            RequestError: The client lacks a capability that the call needs.
        """
        call = Call.fresh(await self._context_of(request))
        call.asker = ask
        token = enter_scope(None)  # the caller can be a client inside another call of this process
        calls_token = current_calls.set(self)
        try:
            async with self.states.of(request.principal) as call.tool_state:
                if report is None:
                    outcome = await tool.call(call, arguments)
                else:
                    outcome = await call_with_progress(tool, call, arguments, report, request)
        finally:
            current_calls.reset(calls_token)
            leave_scope(token)
        if outcome.error is not None:
            check_capability(outcome.error, request.protocol_version)
        return outcome

    async def _context_of(self, request: MCPRequest) -> Any:
        if self._context is None:
            return request
        context = self._context(request)
        return await context if inspect.isawaitable(context) else context

    def error_text(self, tool: AnyTool, outcome: CallOutcome, error: Exception) -> str:
        """Return the text of the error of a call for the client."""
        if self._hides and outcome.public_message is not None:
            if not is_public(error):
                logger.error("%s", outcome.public_message, exc_info=error)
            return outcome.public_message
        if isinstance(outcome.output, str) and outcome.output:
            return outcome.output
        return failure_text(tool.name, error)


current_calls: ContextVar[ServedCalls | None] = ContextVar("mcp_served_calls", default=None)
"""What performs the running call of a client; `None` outside of such a call."""


def failure_text(name: str, error: Exception) -> str:
    """Return the text that explains the error of a call to a model."""
    return default_tool_error_function(_NamedTool(name), error)


@dataclass(frozen=True, slots=True)
class _NamedTool:
    tool_name: str
