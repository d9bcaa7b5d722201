"""What can go wrong, as one tree.

::

    AgentsToolsError
    ├── UserError                the caller wrote something that cannot work
    ├── ModelBehaviorError       the model asked for something impossible
    ├── ToolError                raised by a tool's author; its message is meant for the model
    ├── ToolTimeoutError         the deadline of a call passed
    ├── ToolCancelledError       the call was cancelled before it had a result
    ├── ToolDeniedError          a policy or a person refused the call
    ├── ToolOverloadedError      no room to start the call now
    ├── ToolLostError            the call may have taken effect; its outcome is unknown
    ├── ToolStreamError          a streaming tool broke the rules of its stream
    ├── ModelError               a model's provider could not be reached, or refused
    │   ├── ContextWindowExceeded    the conversation is too long for the model
    │   └── ToolRefusedError         the provider does not take one of the tools
    ├── MCPError                 an MCP server could not be used; it names the server
    │   ├── MCPConnectionError       it could not be reached, or its process ended
    │   ├── MCPProtocolError         it answered with an error, or with what is no answer
    │   └── MCPTimeoutError          it was silent for too long (a `ToolTimeoutError` as well)
    ├── EventStoreError          events could not be kept or read; it names the store
    │   ├── EventConflictError       the log is not where the writer thought, or has another writer
    │   ├── EventStoreCorruptError   what is stored cannot be read
    │   └── EventStoreFullError      there is no room for more, or no right to write
    └── RunError                 a run ended before it had a result; it carries what there is
        ├── MaxTurnsExceeded     the model asked for more turns than it may have
        ├── BudgetExceeded       the run used up its tool calls or tokens
        └── RunTimeoutError      the deadline of the run passed

Every class can be imported from `agents_tools`. `UserError` comes in kinds that also carry the
built-in base a Python programmer expects (`UserTypeError`, `UserValueError`, `UserKeyError`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools._problem import ArgumentProblem

__all__ = [
    "AgentsToolsError",
    "BudgetExceeded",
    "ContextWindowExceeded",
    "EventConflictError",
    "EventStoreCorruptError",
    "EventStoreError",
    "EventStoreFullError",
    "Interruption",
    "MCPConnectionError",
    "MCPError",
    "MCPProtocolError",
    "MCPTimeoutError",
    "MaxTurnsExceeded",
    "ModelBehaviorError",
    "ModelError",
    "RunError",
    "RunTimeoutError",
    "ToolCancelledError",
    "ToolDeniedError",
    "ToolError",
    "ToolLostError",
    "ToolOverloadedError",
    "ToolRefusedError",
    "ToolStreamError",
    "ToolTimeoutError",
    "UserError",
    "UserKeyError",
    "UserTypeError",
    "UserValueError",
]


class AgentsToolsError(Exception):
    """Base of every error that this library raises on purpose."""


class UserError(AgentsToolsError):
    """The caller wrote something that cannot work: a declaration or a configuration."""


class UserTypeError(UserError, TypeError):
    """A `UserError` about the type of something."""


class UserValueError(UserError, ValueError):
    """A `UserError` about a value."""


class UserKeyError(UserError, KeyError):
    """A `UserError` about a name that is not there."""

    def __str__(self) -> str:
        """Give the message as it is: `KeyError` would show it quoted."""
        return str(self.args[0]) if self.args else ""


class ModelBehaviorError(AgentsToolsError):
    """The model asked for something impossible: bad JSON, bad arguments, an unknown tool.

    Args:
        message: The text that lets the model correct itself.
        problems: The faults one by one, for programs.
    """

    def __init__(self, message: str, *, problems: Sequence[ArgumentProblem] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[ArgumentProblem, ...] = tuple(problems)


class ToolError(AgentsToolsError):
    """A failure that a tool explains to the model: the message is shown to it as it stands."""


class ToolTimeoutError(AgentsToolsError, TimeoutError):
    """The deadline of a call passed before it had a result."""


class ToolCancelledError(AgentsToolsError):
    """The call was cancelled before it had a result."""


class ToolDeniedError(AgentsToolsError):
    """A policy or a person refused the call; the body was not run."""


class ToolOverloadedError(AgentsToolsError):
    """There was no room to start the call; nothing was run, and it may be tried again later."""


class ToolLostError(AgentsToolsError):
    """The call may have taken effect, but its outcome is unknown."""


class ToolStreamError(AgentsToolsError):
    """A streaming tool broke the rules of its stream, for example by ending without a result."""


class ModelError(AgentsToolsError):
    """A model's provider could not be reached, refused the request, or broke off.

    Args:
        message: What went wrong, and what helps.
        model: The model that was asked.
        status: The HTTP status, where there was one.
        retryable: Whether the same request may succeed a moment later.
        retry_after: How many seconds the provider asks to wait first.
    """

    def __init__(
        self,
        message: str,
        *,
        model: str | None = None,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.model = model
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class ContextWindowExceeded(ModelError):  # noqa: N818 - named as `MaxTurnsExceeded` is
    """The conversation is longer than what the model can read."""


class ToolRefusedError(ModelError):
    """The provider does not take one of the tools.

    Args:
        message: Which tool, and why.
        tool_name: The tool.
        reason: Why, in the provider's words.
        **facts: As for `ModelError`.
    """

    def __init__(self, message: str, *, tool_name: str, reason: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.tool_name = tool_name
        self.reason = reason


class MCPError(AgentsToolsError):
    """An MCP server could not be used.

    Args:
        message: What went wrong, and what helps.
        server: The name of the server.
        code: The JSON-RPC error code, or the HTTP status, where there was one.
    """

    def __init__(self, message: str, *, server: str, code: int | None = None) -> None:
        super().__init__(message)
        self.server = server
        self.code = code


class MCPConnectionError(MCPError):
    """The server could not be reached, or its process ended; nothing of the call was run."""


class MCPProtocolError(MCPError):
    """The server answered with an error, or with what is no answer."""


class MCPTimeoutError(MCPError, ToolTimeoutError):
    """The server was silent for too long, or took too long in all; the call was cancelled."""


class EventStoreError(AgentsToolsError):
    """Events could not be kept or read.

    Args:
        message: What went wrong, and what helps.
        store: What names the store: its path or address.
    """

    def __init__(self, message: str, *, store: str) -> None:
        super().__init__(message)
        self.store = store


class EventConflictError(EventStoreError):
    """The log is not where the writer thought it is, or another writer has it."""


class EventStoreCorruptError(EventStoreError):
    """What is stored is no event, or the file is damaged; nothing of it was changed."""


class EventStoreFullError(EventStoreError):
    """There is no room for more events, or no right to write them; none was written in part."""


class RunError(AgentsToolsError):
    """A run ended before it had a result.

    Attributes:
        run_result: What there is: the items so far, the usage. Every exception that leaves a run
            has this attribute.
    """

    run_result: Any = None


class MaxTurnsExceeded(RunError):  # noqa: N818 - the name is part of the contract
    """The model asked for more turns than the run may have."""


class BudgetExceeded(RunError):  # noqa: N818 - named as `MaxTurnsExceeded` is
    """The run has used up its tool calls or its tokens."""


class RunTimeoutError(RunError, TimeoutError):
    """The deadline of the run passed before it had a result."""


class Interruption(BaseException):
    """Carries a call that waits for a person out of everything that catches errors.

    Args:
        state: The state of the run inside the call that waits; `None` if it is the call itself.
    """

    def __init__(self, state: Any = None) -> None:
        super().__init__("waiting for approval")
        self.state = state
