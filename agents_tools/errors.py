"""The exceptions of the library, as one tree.

::

    AgentsToolsError
    ├── UserError                a declaration or configuration of the caller is invalid
    ├── ModelBehaviorError       the model sent an invalid call
    ├── ToolError                raised by a tool's author; its message is meant for the model
    ├── ToolTimeoutError         the deadline of a call passed
    ├── ToolCancelledError       the call was cancelled before it had a result
    ├── ToolDeniedError          a policy or a person refused the call
    ├── ToolOverloadedError      no capacity to start the call now
    ├── ToolLostError            the call can have taken effect; its outcome is unknown
    ├── ToolStreamError          a streaming tool broke the rules of its stream
    ├── ArgumentStreamError      raised inside a tool: the rest of a streamed argument will not come
    ├── ModelError               a model provider could not be reached, or rejected the request
    │   ├── ContextWindowExceeded    the conversation is too long for the model
    │   └── ToolRefusedError         the provider rejects one of the tools
    ├── MCPError                 an MCP server could not be used; has the name of the server
    │   ├── MCPConnectionError       it could not be reached, or its process ended
    │   ├── MCPProtocolError         it returned an error or an invalid response
    │   └── MCPTimeoutError          it did not respond in time (also a `ToolTimeoutError`)
    ├── EventStoreError          events could not be stored or read; has the name of the store
    │   ├── EventConflictError       the log is not at the expected position, or has another writer
    │   ├── EventStoreCorruptError   the stored data cannot be read
    │   └── EventStoreFullError      the storage is full or read-only
    └── RunError                 a run ended without a result; has the partial result
        ├── MaxTurnsExceeded     the run reached its maximum number of turns
        ├── BudgetExceeded       the run used up its tool calls or tokens
        ├── RunTimeoutError      the deadline of the run passed
        ├── InputGuardrailTripwireTriggered    a guardrail refused the input of the run
        └── OutputGuardrailTripwireTriggered   a guardrail refused the final output

Import the classes from `agents_tools.errors`; the most common ones are also in `agents_tools`.
`UserError` has subclasses that also derive from a built-in exception (`UserTypeError`,
`UserValueError`, `UserKeyError`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AgentsToolsError",
    "ArgumentProblem",
    "ArgumentStreamError",
    "BudgetExceeded",
    "ContextWindowExceeded",
    "EventConflictError",
    "EventStoreCorruptError",
    "EventStoreError",
    "EventStoreFullError",
    "InputGuardrailTripwireTriggered",
    "Interruption",
    "LeaseLostError",
    "MCPConnectionError",
    "MCPError",
    "MCPProtocolError",
    "MCPTimeoutError",
    "MaxTurnsExceeded",
    "MissingExtraError",
    "ModelBehaviorError",
    "ModelError",
    "OutputGuardrailTripwireTriggered",
    "RunError",
    "RunInUseError",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentProblem:
    """One invalid value in the arguments of a call.

    Attributes:
        path: The location of the value, outermost key first; empty for the arguments as a whole.
        expected: What the schema expects there.
        got: The value that was passed, shortened for display.
        kind: A stable code: the JSON Schema keyword that the value violates (`type`, `enum`,
            `minimum` …), `missing`, `unknown_key`, `value` for other conditions; or, for the
            arguments as a whole, `json_syntax`, `no_object`, `duplicate_key`, `too_large`,
            `too_deep`, `too_many_values` or `number_too_long`.
    """

    path: tuple[str | int, ...]
    expected: str
    got: str
    kind: str


class AgentsToolsError(Exception):
    """Base class of the exceptions that this library raises.

    Attributes:
        is_public: Whether callers outside the application can read the message. It is not public
            if it contains the message of another exception, such as a `SystemExit` of a tool.
    """

    is_public: bool = True


class UserError(AgentsToolsError):
    """A declaration or a configuration of the caller is invalid."""


class UserTypeError(UserError, TypeError):
    """A `UserError` about the type of a value."""


class UserValueError(UserError, ValueError):
    """A `UserError` about a value."""


class UserKeyError(UserError, KeyError):
    """A `UserError` about an unknown name."""

    def __str__(self) -> str:
        """Return the message without the quotes that `KeyError` adds."""
        return str(self.args[0]) if self.args else ""


class MissingExtraError(UserError, ImportError):
    """An optional dependency is not installed; also an `ImportError`."""


class ModelBehaviorError(AgentsToolsError):
    """The model sent an invalid call: malformed JSON, invalid arguments, or an unknown tool.

    Args:
        message: The text for the model, from which it can correct the call.
        problems: The invalid values as records, for programs.
    """

    def __init__(self, message: str, *, problems: Sequence[ArgumentProblem] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[ArgumentProblem, ...] = tuple(problems)


class ToolError(AgentsToolsError):
    """A failure that a tool explains to the model; the message is sent to the model unchanged."""


class ToolTimeoutError(AgentsToolsError, TimeoutError):
    """The deadline of a call passed before it had a result."""


class ToolCancelledError(AgentsToolsError):
    """The call was cancelled before it had a result."""


class ToolDeniedError(AgentsToolsError):
    """A policy or a person refused the call; the body was not run."""


class ToolOverloadedError(AgentsToolsError):
    """There was no capacity to start the call. Nothing was run; it can be retried later."""


class ToolLostError(AgentsToolsError):
    """The call can have taken effect, but its outcome is unknown."""


class ToolStreamError(AgentsToolsError):
    """A streaming tool broke the rules of its stream, for example by ending without a result."""


class ArgumentStreamError(AgentsToolsError):
    """The rest of an `ArgumentStream` will not come: undo what the call has done so far.

    It is raised inside the tool, where it reads the stream: the arguments turned out invalid, or
    the response of the model ended early. The caller of the tool gets the error behind it, which
    is the `__cause__`.
    """


class ModelError(AgentsToolsError):
    """A model provider could not be reached, rejected the request, or ended the response early.

    Args:
        message: The problem and its remedy.
        model: The name of the model.
        status: The HTTP status; `None` if there was no response.
        retryable: Whether the same request can succeed later.
        retry_after: The delay before a retry that the provider asks for, in seconds.
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
    """The conversation is too long for the context window of the model."""


class ToolRefusedError(ModelError):
    """The provider rejects one of the tools.

    Args:
        message: The name of the tool and the reason.
        tool_name: The name of the tool.
        reason: The reason as the provider states it.
        **facts: The other arguments of `ModelError`.
    """

    def __init__(self, message: str, *, tool_name: str, reason: str, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.tool_name = tool_name
        self.reason = reason


class MCPError(AgentsToolsError):
    """An MCP server could not be used.

    Args:
        message: The problem and its remedy.
        server: The name of the server.
        code: The JSON-RPC error code or the HTTP status; `None` if there was neither.
    """

    def __init__(self, message: str, *, server: str, code: int | None = None) -> None:
        super().__init__(message)
        self.server = server
        self.code = code


class MCPConnectionError(MCPError):
    """The server could not be reached, or its process ended; the call was not run."""


class MCPProtocolError(MCPError):
    """The server returned an error or an invalid response."""


class MCPTimeoutError(MCPError, ToolTimeoutError):
    """The server did not respond in time, or the call took too long; the call was cancelled."""


class EventStoreError(AgentsToolsError):
    """Events could not be stored or read.

    Args:
        message: The problem and its remedy.
        store: The path or address of the store.
    """

    def __init__(self, message: str, *, store: str) -> None:
        super().__init__(message)
        self.store = store


class EventConflictError(EventStoreError):
    """The log is not at the position that the writer expected, or it has another writer."""


class RunInUseError(EventConflictError):
    """Another process, or another store of this one, holds the run or a run of the session."""


class LeaseLostError(EventConflictError):
    """Another process has continued the run, so this one cannot store anything any more."""


class EventStoreCorruptError(EventStoreError):
    """The stored data is not an event, or the file is damaged; nothing was changed."""


class EventStoreFullError(EventStoreError):
    """The storage is full or read-only; no event was written in part."""


class RunError(AgentsToolsError):
    """A run ended without a result.

    Attributes:
        run_result: The partial result: the items so far and the usage. Every exception that a run
            raises has this attribute.
    """

    run_result: Any = None


class MaxTurnsExceeded(RunError):  # noqa: N818 - the name is part of the contract
    """The run reached its maximum number of turns."""


class BudgetExceeded(RunError):  # noqa: N818 - named as `MaxTurnsExceeded` is
    """The run has used up its tool calls, its tokens or its dollars."""


class RunTimeoutError(RunError, TimeoutError):
    """The deadline of the run passed before it had a result."""


class InputGuardrailTripwireTriggered(RunError):  # noqa: N818 - named as in openai-agents
    """A guardrail refused the input of the run, and no tool was called.

    Attributes:
        guardrail_result: The `InputGuardrailResult` with the output of the guardrail.
    """

    def __init__(self, message: str = "", *, guardrail_result: Any = None) -> None:
        super().__init__(message)
        self.guardrail_result = guardrail_result


class OutputGuardrailTripwireTriggered(RunError):  # noqa: N818 - named as in openai-agents
    """A guardrail refused the final output of the run.

    Attributes:
        guardrail_result: The `OutputGuardrailResult` with the output of the guardrail.
    """

    def __init__(self, message: str = "", *, guardrail_result: Any = None) -> None:
        super().__init__(message)
        self.guardrail_result = guardrail_result


class Interruption(BaseException):
    """Interrupts a run because a call waits for approval.

    It is not an `Exception`, so that code which catches errors does not catch it.

    Args:
        state: The state of the run inside the waiting call; `None` if the call itself waits.
    """

    def __init__(self, state: Any = None) -> None:
        super().__init__("waiting for approval")
        self.state = state
