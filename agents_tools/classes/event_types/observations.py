"""What was seen when something was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field, field_validator

from agents_tools.classes.action import ImageContent, Observation, TextContent
from agents_tools.classes.event_types.actions import AgentState  # noqa: TC001 - pydantic reads it
from agents_tools.classes.event_types.fields import by_name

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AgentDelegateObservation",
    "AgentErrorObservation",
    "AgentRecallObservation",
    "AgentStateChangedObservation",
    "AgentThinkObservation",
    "BrowserOutputObservation",
    "CmdOutputObservation",
    "CmdRunObservation",
    "ErrorObservation",
    "EventObservation",
    "FileEditObservation",
    "FileReadObservation",
    "IPythonRunCellObservation",
    "MCPObservation",
    "NullObservation",
    "RecallObservation",
    "ToolObservation",
]

Said: TypeAlias = str | list[TextContent | ImageContent]
"""What an observation may be given as its content."""


class EventObservation(Observation):
    """Base of the observations of this module: `content` may be text, and comes first."""

    if TYPE_CHECKING:

        def __init__(self, content: Said = "", *, is_error: bool = False) -> None: ...
    else:

        def __init__(self, *given: object, **fields: object) -> None:
            order = [name for name in type(self).model_fields if name != "is_error"]
            super().__init__(**by_name(type(self), order, given, fields))

    @field_validator("content", mode="before")
    @classmethod
    def _take_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            return [TextContent(text=value)] if value else []
        return value

    @property
    def message(self) -> str:
        """What was seen, as text for people."""
        return self.text


class ToolObservation(EventObservation):
    """What a tool answered that has no observation of its own.

    Attributes:
        tool: Its name.
        status: How the call ended.
    """

    tool: str = ""
    status: str = "ok"

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Said = "",
            tool: str = "",
            status: str = "ok",
            *,
            is_error: bool = False,
        ) -> None: ...


class CmdOutputObservation(EventObservation):
    """What a command has written.

    Attributes:
        command: The command.
        exit_code: Its exit code; `None` while it runs.
        hidden: Whether people are not shown it.
    """

    command: str = ""
    exit_code: int | None = None
    hidden: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Said = "",
            command: str = "",
            exit_code: int | None = None,
            hidden: bool = False,
            *,
            is_error: bool = False,
        ) -> None: ...


CmdRunObservation = CmdOutputObservation


class FileReadObservation(EventObservation):
    """What is in a file.

    Attributes:
        path: The file.
    """

    path: str = ""

    if TYPE_CHECKING:

        def __init__(
            self, content: Said = "", path: str = "", *, is_error: bool = False
        ) -> None: ...


class FileEditObservation(EventObservation):
    """How a file was changed.

    Attributes:
        path: The file.
        prev_exists: Whether it was there before.
        diff: What was changed, as a unified diff.
    """

    path: str = ""
    prev_exists: bool = True
    diff: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Said = "",
            path: str = "",
            prev_exists: bool = True,
            diff: str | None = None,
            *,
            is_error: bool = False,
        ) -> None: ...


class IPythonRunCellObservation(EventObservation):
    """What Python code has written.

    Attributes:
        code: The code.
    """

    code: str = ""

    if TYPE_CHECKING:

        def __init__(
            self, content: Said = "", code: str = "", *, is_error: bool = False
        ) -> None: ...


class BrowserOutputObservation(EventObservation):
    """What a browser shows.

    Attributes:
        url: The address of the page.
        screenshot: A picture of it, as a `data:` URL.
    """

    url: str = ""
    screenshot: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Said = "",
            url: str = "",
            screenshot: str | None = None,
            *,
            is_error: bool = False,
        ) -> None: ...


class MCPObservation(EventObservation):
    """What a tool of an MCP server answered.

    Attributes:
        name: The tool.
        arguments: What it was called with.
        server: The server.
    """

    name: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    server: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Said = "",
            name: str = "",
            arguments: Mapping[str, Any] = ...,
            server: str | None = None,
            *,
            is_error: bool = False,
        ) -> None: ...


class RecallObservation(EventObservation):
    """What the memory has on a query.

    Attributes:
        query: The query.
        recall_type: As of the `RecallAction`.
    """

    query: str = ""
    recall_type: Literal["workspace_context", "knowledge"] = "knowledge"

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Said = "",
            query: str = "",
            recall_type: Literal["workspace_context", "knowledge"] = "knowledge",
            *,
            is_error: bool = False,
        ) -> None: ...


AgentRecallObservation = RecallObservation


class _FailureObservation(EventObservation):
    is_error: bool = True
    error_id: str = ""


class AgentErrorObservation(_FailureObservation):
    """The agent has made a mistake, which it can correct.

    Attributes:
        error_id: What kind of mistake, for programs.
    """

    if TYPE_CHECKING:

        def __init__(
            self, content: Said = "", error_id: str = "", *, is_error: bool = True
        ) -> None: ...


class ErrorObservation(_FailureObservation):
    """Something went wrong that is no mistake of the agent's.

    Attributes:
        error_id: What kind of failure, for programs.
    """

    if TYPE_CHECKING:

        def __init__(
            self, content: Said = "", error_id: str = "", *, is_error: bool = True
        ) -> None: ...


class NullObservation(EventObservation):
    """Nothing was seen; who waits for something passes over it."""

    if TYPE_CHECKING:

        def __init__(self, content: Said = "", *, is_error: bool = False) -> None: ...


class AgentThinkObservation(EventObservation):
    """That a thought has been written down."""

    if TYPE_CHECKING:

        def __init__(self, content: Said = "", *, is_error: bool = False) -> None: ...


class AgentStateChangedObservation(EventObservation):
    """The agent is in another state.

    Attributes:
        agent_state: The state.
        reason: Why.
    """

    agent_state: AgentState
    reason: str = ""

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Said,
            agent_state: AgentState,
            reason: str = "",
            *,
            is_error: bool = False,
        ) -> None: ...

    @property
    def message(self) -> str:
        """What was seen, as text for people."""
        return f"The agent is {self.agent_state}" + (f": {self.reason}" if self.reason else "")


class AgentDelegateObservation(EventObservation):
    """What another agent has made of a task.

    Attributes:
        outputs: Its results for programs.
        agent: Its name.
    """

    outputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    agent: str = ""

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Said = "",
            outputs: Mapping[str, Any] = ...,
            agent: str = "",
            *,
            is_error: bool = False,
        ) -> None: ...
