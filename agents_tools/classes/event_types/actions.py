"""The actions of agents, users and the environment."""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from agents_tools.classes.action import Action
from agents_tools.classes.event_types.fields import by_name

__all__ = [
    "SETUP_TIMEOUT",
    "AddTaskAction",
    "AgentDelegateAction",
    "AgentFinishAction",
    "AgentRecallAction",
    "AgentRejectAction",
    "AgentState",
    "AgentThinkAction",
    "BrowseInteractiveAction",
    "ChangeAgentStateAction",
    "CmdKillAction",
    "CmdRunAction",
    "CondensationAction",
    "CondensationRequestAction",
    "EventAction",
    "FileEditAction",
    "FileReadAction",
    "IPythonRunCellAction",
    "MCPAction",
    "MessageAction",
    "ModifyTaskAction",
    "NullAction",
    "RecallAction",
    "SystemMessageAction",
    "ToolAction",
    "setup_script_action",
]

SETUP_TIMEOUT = 600.0
"""The time limit of a setup script, in seconds."""


class AgentState(StrEnum):
    """The state of an event-driven agent."""

    LOADING = "loading"
    RUNNING = "running"
    AWAITING_USER_INPUT = "awaiting_user_input"
    PAUSED = "paused"
    STOPPED = "stopped"
    FINISHED = "finished"
    REJECTED = "rejected"
    ERROR = "error"
    AWAITING_USER_CONFIRMATION = "awaiting_user_confirmation"
    USER_CONFIRMED = "user_confirmed"
    USER_REJECTED = "user_rejected"


class EventAction(Action):
    """The base class of the actions of this module; fields can be passed by position.

    Attributes:
        runnable: Whether a runtime executes the action.
        message_format: The format of `message`; `{0.field}` stands for a field.
    """

    runnable: ClassVar[bool] = False
    message_format: ClassVar[str] = ""

    if not TYPE_CHECKING:

        def __init__(self, *values: object, **fields: object) -> None:
            super().__init__(**by_name(type(self), list(type(self).model_fields), values, fields))

    def __init_subclass__(cls, *, kw_only: bool = True, **kwargs: Any) -> None:
        """Accept `kw_only`, which only type checkers use."""
        del kw_only
        super().__init_subclass__(**kwargs)

    @property
    def message(self) -> str:
        """A description of the action for people, in one line."""
        return self.message_format.format(self) if self.message_format else type(self).__name__


class CmdRunAction(EventAction, kw_only=False):
    """Run a command.

    Attributes:
        command: The command.
        blocking: Whether to wait for its end, even if it has no output for long.
        hidden: Whether the event is hidden from people.
        timeout: The time limit in seconds.
        is_input: Whether `command` is input for the running program.
        thought: The reason.
    """

    runnable = True
    message_format = "Running command: {0.command}"

    command: str
    blocking: bool = False
    hidden: bool = False
    timeout: float | None = Field(default=None, gt=0)
    is_input: bool = False
    thought: str = ""


class CmdKillAction(EventAction, kw_only=False):
    """Stop running actions.

    Attributes:
        action_id: The `id` of the event of an action; `None` for all running actions.
        thought: The reason.
    """

    runnable = True

    action_id: int | None = None
    thought: str = ""

    @property
    def message(self) -> str:
        """A description of the action for people, in one line."""
        return "Stopping " + ("all" if self.action_id is None else f"action {self.action_id}")


class FileReadAction(EventAction, kw_only=False):
    """Read a file.

    Attributes:
        path: The file.
        start: The first line, from 1.
        end: The last line; -1 is the last of the file.
        thought: The reason.
        timeout: The time limit in seconds.
    """

    runnable = True
    message_format = "Reading file: {0.path}"

    path: str
    start: int = Field(default=1, ge=1)
    end: int = -1
    thought: str = ""
    timeout: float | None = Field(default=None, gt=0)


class FileEditAction(EventAction, kw_only=False):
    """Create or change a file.

    Attributes:
        path: The file.
        command: The edit command.
        file_text: `create`: the content.
        old_str: `str_replace`: the text to replace.
        new_str: `str_replace`, `insert`: the new text.
        insert_line: `insert`: the number of the line after which the text is inserted.
        replace_all: `str_replace`: whether to replace all occurrences.
        thought: The reason.
        timeout: The time limit in seconds.
    """

    runnable = True
    message_format = "Editing file: {0.path} ({0.command})"

    path: str
    command: Literal["create", "str_replace", "insert", "undo_edit"] = "str_replace"
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    replace_all: bool = False
    thought: str = ""
    timeout: float | None = Field(default=None, gt=0)


class IPythonRunCellAction(EventAction, kw_only=False):
    """Run Python code in a persistent session.

    Attributes:
        code: The code.
        hidden: Whether the event is hidden from people.
        timeout: The time limit in seconds.
        thought: The reason.
    """

    runnable = True
    message_format = "Running Python: {0.code}"

    code: str
    hidden: bool = False
    timeout: float | None = Field(default=None, gt=0)
    thought: str = ""


class BrowseInteractiveAction(EventAction, kw_only=False):
    """Interact with a browser.

    Attributes:
        browser_actions: The browser actions, in the syntax of the browser tool.
        thought: The reason.
        timeout: The time limit in seconds.
    """

    runnable = True
    message_format = "Browsing: {0.browser_actions}"

    browser_actions: str
    thought: str = ""
    timeout: float | None = Field(default=None, gt=0)


class MCPAction(EventAction, kw_only=False):
    """Call a tool of an MCP server.

    Attributes:
        name: The name of the tool, on the server or in this program.
        arguments: Its arguments.
        server: The server; can be left out if only one server has the tool.
        thought: The reason.
        timeout: The time limit in seconds.
    """

    runnable = True

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    server: str | None = None
    thought: str = ""
    timeout: float | None = Field(default=None, gt=0)

    @property
    def message(self) -> str:
        """A description of the action for people, in one line."""
        return f"Calling MCP tool: {self.name}" + (f" of {self.server}" if self.server else "")


class ToolAction(EventAction, kw_only=False):
    """Call a tool that has no class for its actions.

    Its event has the name of the tool as its kind. An action of an unknown class is decoded as a
    `ToolAction`.

    Attributes:
        tool: The name of the tool.
        arguments: Its arguments.
    """

    runnable = True
    message_format = "Calling {0.tool}"

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class MessageAction(EventAction, kw_only=False):
    """Send a message from the user to the agent, or from the agent to the user.

    Attributes:
        content: The text.
        image_urls: The URLs of images.
        wait_for_response: Whether the agent waits for a response of the user.
    """

    message_format = "{0.content}"

    content: str
    image_urls: list[str] = Field(default_factory=list[str])
    wait_for_response: bool = False


class SystemMessageAction(EventAction, kw_only=False):
    """Set the system prompt of the agent.

    Attributes:
        content: The system prompt.
        tools: The definitions of its tools.
        agent: Its name.
    """

    message_format = "{0.content}"

    content: str
    tools: list[dict[str, Any]] | None = None
    agent: str | None = None


class NullAction(EventAction, kw_only=False):
    """Do nothing."""

    message_format = "No action"


class AgentThinkAction(EventAction, kw_only=False):
    """Record a thought, without executing anything.

    Attributes:
        thought: The thought.
    """

    message_format = "Thinking: {0.thought}"

    thought: str = ""


class AgentFinishAction(EventAction, kw_only=False):
    """Finish the task.

    Attributes:
        final_thought: The message for the user.
        outputs: Results for programs.
        success: Whether the task was completed.
    """

    final_thought: str = ""
    outputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    success: bool = True

    @property
    def message(self) -> str:
        """The message for the user."""
        return self.final_thought or "All done."


class AgentRejectAction(EventAction, kw_only=False):
    """Reject the task.

    Attributes:
        outputs: The `reason`, and other results for programs.
        thought: The thought of the agent.
    """

    outputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    thought: str = ""

    @property
    def message(self) -> str:
        """The message for the user."""
        return f"The task is rejected: {self.outputs.get('reason') or self.thought or 'no reason'}"


class AgentDelegateAction(EventAction, kw_only=False):
    """Delegate a task to another agent.

    Attributes:
        agent: Its name.
        inputs: The `task`, and other inputs.
        thought: The reason.
    """

    message_format = "Delegating to {0.agent}"

    agent: str
    inputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    thought: str = ""


class RecallAction(EventAction, kw_only=False):
    """Query the memory.

    Attributes:
        query: The query.
        recall_type: `workspace_context` for facts about the workspace, `knowledge` for entries that
            match the query.
        thought: The reason.
    """

    message_format = "Recalling: {0.query}"

    query: str
    recall_type: Literal["workspace_context", "knowledge"] = "knowledge"
    thought: str = ""


AgentRecallAction = RecallAction


class ChangeAgentStateAction(EventAction, kw_only=False):
    """Change the state of an agent.

    Attributes:
        agent_state: The state.
        reason: The reason.
    """

    message_format = "Changing agent state to {0.agent_state}"

    agent_state: AgentState
    reason: str = ""


class AddTaskAction(EventAction, kw_only=False):
    """Add a task to the plan.

    Attributes:
        goal: The goal of the task.
        parent: The id of the parent task; empty for none.
        subtasks: The subtasks.
        thought: The reason.
    """

    message_format = "Added task: {0.goal}"

    goal: str
    parent: str = ""
    subtasks: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    thought: str = ""


class ModifyTaskAction(EventAction, kw_only=False):
    """Change the state of a task of the plan.

    Attributes:
        task_id: The id of the task.
        state: Its new state.
        thought: The reason.
    """

    message_format = "Task {0.task_id} is {0.state}"

    task_id: str
    state: Literal["open", "in_progress", "completed", "abandoned", "verified"]
    thought: str = ""


class CondensationAction(EventAction, kw_only=False):
    """Replace events by a summary in the input of the model.

    Attributes:
        forgotten_event_ids: The ids of the events.
        summary: The summary; empty for none.
    """

    forgotten_event_ids: list[int]
    summary: str = ""

    @property
    def message(self) -> str:
        """A description of the action for people, in one line."""
        return self.summary or f"{len(self.forgotten_event_ids)} events are left out"


class CondensationRequestAction(EventAction, kw_only=False):
    """Request a condensation of the history."""

    message_format = "Condensing the history"


def setup_script_action(path: str, timeout: float = SETUP_TIMEOUT) -> CmdRunAction:
    """Return the action that runs a setup script in the terminal session, hidden from people.

    Args:
        path: The script.
        timeout: The time limit in seconds.
    """
    script = shlex.quote(path)
    return CmdRunAction(
        f"chmod +x {script} && source {script}", blocking=True, hidden=True, timeout=timeout
    )
