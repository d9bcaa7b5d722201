"""The records around a tool: hints about it, its origin, decisions about calls, their outcomes."""

from __future__ import annotations

import typing
from dataclasses import KW_ONLY, dataclass
from typing import Any

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.run_context import RunContextWrapper

__all__ = [
    "CallOutcome",
    "Decision",
    "ToolAnnotations",
    "ToolOrigin",
    "is_idempotent",
    "is_read_only",
    "trusted_hints",
]

if typing.TYPE_CHECKING:
    FailureErrorFunction = Callable[[RunContextWrapper[Any], Exception], str | Awaitable[str]]
    """Returns the text for the model when a call fails."""

    IsEnabled = bool | Callable[[RunContextWrapper[Any], Any], bool | Awaitable[bool]]
    """Whether agents offer a tool: a boolean, or a function of (context, agent)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnnotations:
    """Hints about what a tool does, with the names and defaults of MCP.

    Attributes:
        title: A name for people.
        readOnlyHint: Whether it changes nothing.
        destructiveHint: Whether what it changes may be lost; matters if it is not read-only.
        idempotentHint: Whether a second call with the same arguments changes nothing more.
        openWorldHint: Whether it reaches beyond a closed set of things, such as the web.
    """

    title: str | None = None
    readOnlyHint: bool = False  # noqa: N815 - the name of the protocol
    destructiveHint: bool = True  # noqa: N815
    idempotentHint: bool = False  # noqa: N815
    openWorldHint: bool = True  # noqa: N815

    @property
    def read_only(self) -> bool:
        """`readOnlyHint`."""
        return self.readOnlyHint

    @property
    def destructive(self) -> bool:
        """`destructiveHint`."""
        return self.destructiveHint

    @property
    def idempotent(self) -> bool:
        """`idempotentHint`."""
        return self.idempotentHint

    @property
    def open_world(self) -> bool:
        """`openWorldHint`."""
        return self.openWorldHint


def is_read_only(tool: Any) -> bool:
    """Return whether a tool is annotated as read-only; see `trusted_hints`."""
    hints = trusted_hints(tool)
    return hints is not None and hints.read_only


def is_idempotent(tool: Any) -> bool:
    """Return whether a second call has no further effect, by the annotations of a tool.

    See `trusted_hints`.
    """
    hints = trusted_hints(tool)
    return hints is not None and (hints.read_only or hints.idempotent)


def trusted_hints(tool: Any) -> ToolAnnotations | None:
    """Return the annotations of a tool; `None` for the tool of a server, which can lie.

    The annotations of a server count if the program has declared that it trusts the server.
    """
    origin = tool.origin
    return tool.annotations if origin.server is None or origin.trusted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOrigin:
    """Where a tool comes from.

    Attributes:
        kind: `function`, `stream`, `manual`, or the name of another source.
        server: The server that has it, where it is remote.
        wire_name: Its name there.
        trusted: Whether the program trusts the annotations of the server.
        agent: The agent behind it, where it is one.
        place: The file and line, or the module and name, of its declaration.
    """

    kind: str = "manual"
    server: str | None = None
    wire_name: str | None = None
    trusted: bool = False
    agent: str | None = None
    place: str | None = None


@dataclass(slots=True)  # not frozen, which would double the time to create one
class CallOutcome:
    """How one call ended.

    Attributes:
        status: One of the eight states.
        value: The value that the function returned; `None` unless the status is `ok`.
        output: The output for the model: text or content blocks.
        error: The error; `None` if the status is `ok`.
        public_message: A text about the error for callers outside the application, such as web
            clients: the message of an unexpected exception is replaced by an error id. `None` if
            there is no error.
        metadata: Data for the application alone, from a `ToolResult` and from policies.
    """

    status: CallStatus
    value: Any
    output: ToolOutput
    _: KW_ONLY
    error: Exception | None = None
    metadata: Mapping[str, Any] | None = None
    public_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision of a person about one call.

    Attributes:
        approved: Whether the call may run.
        message: The reason for a rejection, for the model.
        arguments: Other arguments for the call, as JSON text.
        always: Whether an approval also applies to later calls of the tool in the run, as long as
            its definition does not change.
    """

    approved: bool
    message: str | None = None
    arguments: str | None = None
    always: bool = False
