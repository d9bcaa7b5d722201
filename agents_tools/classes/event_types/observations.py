"""The observations: the results of actions."""

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

ContentInput: TypeAlias = str | list[TextContent | ImageContent]
"""The accepted types of `content`."""


class EventObservation(Observation):
    """The base class of the observations of this module; `content` comes first, and can be text."""

    if TYPE_CHECKING:

        def __init__(self, content: ContentInput = "", *, is_error: bool = False) -> None: ...
    else:

        def __init__(self, *values: object, **fields: object) -> None:
            order = [name for name in type(self).model_fields if name != "is_error"]
            super().__init__(**by_name(type(self), order, values, fields))

    @field_validator("content", mode="before")
    @classmethod
    def _wrap_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            return [TextContent(text=value)] if value else []
        return value

    @property
    def message(self) -> str:
        """The text of the observation for people."""
        return self.text


class ToolObservation(EventObservation):
    """The result of a tool without its own observation class.

    Attributes:
        tool: The name of the tool.
        status: The status of the call.
    """

    tool: str = ""
    status: str = "ok"

    if TYPE_CHECKING:

        def __init__(
            self,
            content: ContentInput = "",
            tool: str = "",
            status: str = "ok",
            *,
            is_error: bool = False,
        ) -> None: ...


class CmdOutputObservation(EventObservation):
    """The output of a command.

    Attributes:
        command: The command.
        exit_code: The exit code; `None` while the command runs.
        hidden: Whether the event is hidden from people.
    """

    command: str = ""
    exit_code: int | None = None
    hidden: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            content: ContentInput = "",
            command: str = "",
            exit_code: int | None = None,
            hidden: bool = False,
            *,
            is_error: bool = False,
        ) -> None: ...


CmdRunObservation = CmdOutputObservation


class FileReadObservation(EventObservation):
    """The content of a file.

    Attributes:
        path: The file.
    """

    path: str = ""

    if TYPE_CHECKING:

        def __init__(
            self, content: ContentInput = "", path: str = "", *, is_error: bool = False
        ) -> None: ...


class FileEditObservation(EventObservation):
    """The change of a file.

    Attributes:
        path: The file.
        prev_exists: Whether the file existed before.
        diff: The change as a unified diff.
    """

    path: str = ""
    prev_exists: bool = True
    diff: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            content: ContentInput = "",
            path: str = "",
            prev_exists: bool = True,
            diff: str | None = None,
            *,
            is_error: bool = False,
        ) -> None: ...


class IPythonRunCellObservation(EventObservation):
    """The output of Python code.

    Attributes:
        code: The code.
    """

    code: str = ""

    if TYPE_CHECKING:

        def __init__(
            self, content: ContentInput = "", code: str = "", *, is_error: bool = False
        ) -> None: ...


class BrowserOutputObservation(EventObservation):
    """The page that a browser shows.

    Attributes:
        url: The address of the page.
        screenshot: An image of the page, as a `data:` URL.
    """

    url: str = ""
    screenshot: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            content: ContentInput = "",
            url: str = "",
            screenshot: str | None = None,
            *,
            is_error: bool = False,
        ) -> None: ...


class MCPObservation(EventObservation):
    """The result of a tool of an MCP server.

    Attributes:
        name: The tool.
        arguments: The arguments of the call.
        server: The server.
    """

    name: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    server: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            content: ContentInput = "",
            name: str = "",
            arguments: Mapping[str, Any] = ...,
            server: str | None = None,
            *,
            is_error: bool = False,
        ) -> None: ...


class RecallObservation(EventObservation):
    """The entries of the memory for a query.

    Attributes:
        query: The query.
        recall_type: The type of the `RecallAction`.
    """

    query: str = ""
    recall_type: Literal["workspace_context", "knowledge"] = "knowledge"

    if TYPE_CHECKING:

        def __init__(
            self,
            content: ContentInput = "",
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
    """An error that the agent has made and can correct.

    Attributes:
        error_id: The kind of error, for programs.
    """

    if TYPE_CHECKING:

        def __init__(
            self, content: ContentInput = "", error_id: str = "", *, is_error: bool = True
        ) -> None: ...


class ErrorObservation(_FailureObservation):
    """A failure that the agent has not caused.

    Attributes:
        error_id: The kind of failure, for programs.
    """

    if TYPE_CHECKING:

        def __init__(
            self, content: ContentInput = "", error_id: str = "", *, is_error: bool = True
        ) -> None: ...


class NullObservation(EventObservation):
    """An empty observation, which waiting code ignores."""

    if TYPE_CHECKING:

        def __init__(self, content: ContentInput = "", *, is_error: bool = False) -> None: ...


class AgentThinkObservation(EventObservation):
    """The confirmation that a thought was recorded."""

    if TYPE_CHECKING:

        def __init__(self, content: ContentInput = "", *, is_error: bool = False) -> None: ...


class AgentStateChangedObservation(EventObservation):
    """The state of the agent has changed.

    Attributes:
        agent_state: The state.
        reason: The reason.
    """

    agent_state: AgentState
    reason: str = ""

    if TYPE_CHECKING:

        def __init__(
            self,
            content: ContentInput,
            agent_state: AgentState,
            reason: str = "",
            *,
            is_error: bool = False,
        ) -> None: ...

    @property
    def message(self) -> str:
        """The text of the observation for people."""
        return f"The agent is {self.agent_state}" + (f": {self.reason}" if self.reason else "")


class AgentDelegateObservation(EventObservation):
    """The result of a delegated task.

    Attributes:
        outputs: The results for programs.
        agent: The name of the agent.
    """

    outputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    agent: str = ""

    if TYPE_CHECKING:

        def __init__(
            self,
            content: ContentInput = "",
            outputs: Mapping[str, Any] = ...,
            agent: str = "",
            *,
            is_error: bool = False,
        ) -> None: ...
