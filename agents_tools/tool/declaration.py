"""The records around a tool: what it is declared by, what is put around it, how a call ended."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any, Protocol

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.context import ToolContext, Veil
    from agents_tools.tool.run_context import RunContextWrapper

__all__ = [
    "CallOutcome",
    "Decision",
    "Declaration",
    "Policy",
    "RawDeclaration",
    "ToolAnnotations",
    "ToolOrigin",
]

if typing.TYPE_CHECKING:
    Call = Callable[[ToolContext[Any], str], Awaitable[Any]]
    """The inside of a tool: from a context and JSON text to the value, or an exception."""

    FailureErrorFunction = Callable[[RunContextWrapper[Any], Exception], str | Awaitable[str]]
    """What a model is told when a call fails."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOrigin:
    """Where a tool comes from.

    Attributes:
        kind: `function`, `stream`, `manual`, or the name of another source.
        server: The server that has it, where it is remote.
        wire_name: Its name there.
        agent: The agent behind it, where it is one.
        place: The file and line, or the module and name, of its declaration.
    """

    kind: str = "manual"
    server: str | None = None
    wire_name: str | None = None
    agent: str | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """How one call ended.

    Attributes:
        status: One of the eight states.
        value: What the function itself returned; `None` unless the status is `ok`.
        output: What the model gets: text or content blocks.
        error: What went wrong; `None` if the status is `ok`.
        public_message: A text about the error for callers outside the application, such as web
            clients: the message of an unexpected exception is replaced by an error id. `None` if
            there is no error.
        metadata: What a `ToolResult` carries for the application alone.
    """

    status: CallStatus
    value: Any
    output: ToolOutput
    error: Exception | None = None
    public_message: str | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person decided about one call.

    Attributes:
        approved: Whether it may run.
        message: Why it may not; the model is told.
        arguments: Other arguments, as JSON text, that it is to run with.
    """

    approved: bool
    message: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One thing around the body of a tool.

    Attributes:
        name: What it is called, in a tool's repr and in errors.
        wrap: From the call inside to the call outside.
        reshape: Changes the JSON Schema that the tool publishes, on a copy it may alter.
        prepare: Returns the arguments that a call is to have, before anybody decides about them.
        admit: Asked then, before anything else, whether a call may run. It raises
            `ToolDeniedError`, or `Interruption` where the run has to wait for a person.
        mend: Returns the arguments as text that can be read, before anybody looks at them.
        reply: Changes what the model is told in the end, of a failure as well; the value stays.
        veil: Returns what changes the events of a call, and of calls in it, before they are heard.
    """

    name: str
    wrap: Callable[[Call], Call]
    reshape: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    prepare: Callable[[ToolContext[Any], str], Awaitable[str]] | None = None
    admit: Callable[[ToolContext[Any], str], Awaitable[None]] | None = None
    mend: Callable[[ToolContext[Any], str], str] | None = None
    reply: Callable[[ToolContext[Any], ToolOutput], ToolOutput] | None = None
    veil: Callable[[ToolContext[Any]], Veil] | None = None


class Declaration(Protocol):
    """What a tool is made from; everything that costs is built when first asked for."""

    @property
    def name(self) -> str:
        """The name it was declared with."""
        ...

    @property
    def origin(self) -> ToolOrigin:
        """Where it comes from."""
        ...

    @property
    def description(self) -> str:
        """What the tool does."""
        ...

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments; not to be changed."""
        ...

    @property
    def output_json_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the result; not to be changed."""
        ...

    @property
    def body(self) -> Call:
        """Validates arguments and runs the function."""
        ...

    @property
    def direct(self) -> tuple[Callable[[str], dict[str, Any]], Callable[..., Any]] | None:
        """What reads the arguments and the async function that takes them all by keyword.

        `None` for a body that has more to do than that.
        """
        ...

    def check(self, args_json: str) -> None:
        """Validate arguments without running anything, as far as the tool does so.

        Raises:
            ModelBehaviorError: They are not what the tool accepts.
        """
        ...

    def serializer(self) -> Any:
        """The serializer of results, or `None`."""
        ...

    def method_of(self) -> None:
        """Leave the first parameter out: the function is a method."""
        ...

    def bind(self, instance: object) -> Declaration:
        """The declaration for a method of one instance."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RawDeclaration:
    """The declaration of a tool that was put together by hand."""

    name: str
    description: str
    json_schema: dict[str, Any]
    output_json_schema: dict[str, Any] | None
    body: Call
    origin: ToolOrigin
    direct: None = None
    reader: Callable[[str], object] | None = None

    def check(self, args_json: str) -> None:
        """Validate arguments where the tool has something that reads them."""
        if self.reader is not None:
            self.reader(args_json)

    def serializer(self) -> Any:
        """Return none: the function answers for its results."""
        return None

    def method_of(self) -> None:
        """Change nothing: the function takes no instance."""

    def bind(self, instance: object) -> RawDeclaration:
        """Return itself: the function takes no instance."""
        del instance
        return self
