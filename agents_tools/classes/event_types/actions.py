"""What an agent, a user or the environment wants to be done."""

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
"""How long a setup script may take, in seconds."""


class AgentState(StrEnum):
    """What an agent that is driven by events is doing."""

    LOADING = "loading"
    RUNNING = "running"
    AWAITING_USER_INPUT = "awaiting_user_input"
    PAUSED = "paused"
    STOPPED = "stopped"
    FINISHED = "finished"
    REJECTED = "rejected"
    ERROR = "error"


class EventAction(Action):
    """Base of the actions of this module; its fields may be given in their order.

    Attributes:
        runnable: Whether a runtime carries it out.
        says: What it is, in a line for people: `{0.field}` stands for a field.
    """

    runnable: ClassVar[bool] = False
    says: ClassVar[str] = ""

    if not TYPE_CHECKING:

        def __init__(self, *given: object, **fields: object) -> None:
            super().__init__(**by_name(type(self), list(type(self).model_fields), given, fields))

    def __init_subclass__(cls, *, kw_only: bool = True, **kwargs: Any) -> None:
        """Take `kw_only`, which type checkers look at."""
        del kw_only
        super().__init_subclass__(**kwargs)

    @property
    def message(self) -> str:
        """What it is, in a line for people."""
        return self.says.format(self) if self.says else type(self).__name__


class CmdRunAction(EventAction, kw_only=False):
    """Run a command.

    Attributes:
        command: The command.
        blocking: Whether to wait for its end, however long it says nothing.
        hidden: Whether people are not shown it.
        timeout: Seconds after which it is stopped.
        is_input: Whether `command` is typed into the program that runs.
        thought: Why.
    """

    runnable = True
    says = "Running command: {0.command}"

    command: str
    blocking: bool = False
    hidden: bool = False
    timeout: float | None = Field(default=None, gt=0)
    is_input: bool = False
    thought: str = ""


class CmdKillAction(EventAction, kw_only=False):
    """Stop what runs.

    Attributes:
        action_id: The `id` of the event of an action; `None` for all that run.
        thought: Why.
    """

    runnable = True

    action_id: int | None = None
    thought: str = ""

    @property
    def message(self) -> str:
        """What it is, in a line for people."""
        return "Stopping " + ("all" if self.action_id is None else f"action {self.action_id}")


class FileReadAction(EventAction, kw_only=False):
    """Read a file.

    Attributes:
        path: The file.
        start: The first line, from 1.
        end: The last line; -1 is the last of the file.
        thought: Why.
        timeout: Seconds after which it is stopped.
    """

    runnable = True
    says = "Reading file: {0.path}"

    path: str
    start: int = Field(default=1, ge=1)
    end: int = -1
    thought: str = ""
    timeout: float | None = Field(default=None, gt=0)


class FileEditAction(EventAction, kw_only=False):
    """Make or change a file.

    Attributes:
        path: The file.
        command: What to do with it.
        file_text: `create`: the whole content.
        old_str: `str_replace`: the text to replace.
        new_str: `str_replace`, `insert`: what is to be there.
        insert_line: `insert`: after which line.
        replace_all: `str_replace`: whether every place is meant.
        thought: Why.
        timeout: Seconds after which it is stopped.
    """

    runnable = True
    says = "Editing file: {0.path} ({0.command})"

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
    """Run Python code in a session that stays.

    Attributes:
        code: The code.
        hidden: Whether people are not shown it.
        timeout: Seconds after which it is stopped.
        thought: Why.
    """

    runnable = True
    says = "Running Python: {0.code}"

    code: str
    hidden: bool = False
    timeout: float | None = Field(default=None, gt=0)
    thought: str = ""


class BrowseInteractiveAction(EventAction, kw_only=False):
    """Do something in a browser.

    Attributes:
        browser_actions: What to do, in the words of the tool that does it.
        thought: Why.
        timeout: Seconds after which it is stopped.
    """

    runnable = True
    says = "Browsing: {0.browser_actions}"

    browser_actions: str
    thought: str = ""
    timeout: float | None = Field(default=None, gt=0)


class MCPAction(EventAction, kw_only=False):
    """Call a tool of an MCP server.

    Attributes:
        name: The tool, as the server calls it or as it is known here.
        arguments: Its arguments.
        server: The server; where only one has such a tool, it need not be said.
        thought: Why.
        timeout: Seconds after which the call is stopped.
    """

    runnable = True

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    server: str | None = None
    thought: str = ""
    timeout: float | None = Field(default=None, gt=0)

    @property
    def message(self) -> str:
        """What it is, in a line for people."""
        return f"Calling MCP tool: {self.name}" + (f" of {self.server}" if self.server else "")


class ToolAction(EventAction, kw_only=False):
    """Call a tool that has no class for its actions.

    It travels under the name of the tool, and every action of a class that is not known where it
    arrives is read as one.

    Attributes:
        tool: The name of the tool.
        arguments: Its arguments.
    """

    runnable = True
    says = "Calling {0.tool}"

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])


class MessageAction(EventAction, kw_only=False):
    """Say something: the user to the agent, or the agent to the user.

    Attributes:
        content: The text.
        image_urls: Images that belong to it.
        wait_for_response: Whether the agent waits for what the user says to it.
    """

    says = "{0.content}"

    content: str
    image_urls: list[str] = Field(default_factory=list[str])
    wait_for_response: bool = False


class SystemMessageAction(EventAction, kw_only=False):
    """Tell the agent how to work.

    Attributes:
        content: The system prompt.
        tools: The tools it has, as descriptions for a model.
        agent: Its name.
    """

    says = "{0.content}"

    content: str
    tools: list[dict[str, Any]] | None = None
    agent: str | None = None


class NullAction(EventAction, kw_only=False):
    """Do nothing."""

    says = "No action"


class AgentThinkAction(EventAction, kw_only=False):
    """Write a thought down; nothing is carried out.

    Attributes:
        thought: The thought.
    """

    says = "Thinking: {0.thought}"

    thought: str = ""


class AgentFinishAction(EventAction, kw_only=False):
    """Say that the task is over.

    Attributes:
        final_thought: What the user is told.
        outputs: Results for programs.
        success: Whether the task was completed.
    """

    final_thought: str = ""
    outputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    success: bool = True

    @property
    def message(self) -> str:
        """What the user is told."""
        return self.final_thought or "All done."


class AgentRejectAction(EventAction, kw_only=False):
    """Say that the task is not taken on.

    Attributes:
        outputs: Why, with `reason`, and what else programs may need.
        thought: What the agent thinks of it.
    """

    outputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    thought: str = ""

    @property
    def message(self) -> str:
        """What the user is told."""
        return f"The task is rejected: {self.outputs.get('reason') or self.thought or 'no reason'}"


class AgentDelegateAction(EventAction, kw_only=False):
    """Give a task to another agent.

    Attributes:
        agent: Its name.
        inputs: What it gets: the `task`, and what else it may need.
        thought: Why.
    """

    says = "Delegating to {0.agent}"

    agent: str
    inputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    thought: str = ""


class RecallAction(EventAction, kw_only=False):
    """Ask the memory.

    Attributes:
        query: For what.
        recall_type: `workspace_context` for what is to be known at the beginning, `knowledge` for
            what belongs to the query.
        thought: Why.
    """

    says = "Recalling: {0.query}"

    query: str
    recall_type: Literal["workspace_context", "knowledge"] = "knowledge"
    thought: str = ""


AgentRecallAction = RecallAction


class ChangeAgentStateAction(EventAction, kw_only=False):
    """Bring an agent into another state.

    Attributes:
        agent_state: The state.
        reason: Why.
    """

    says = "The agent is to be {0.agent_state}"

    agent_state: AgentState
    reason: str = ""


class AddTaskAction(EventAction, kw_only=False):
    """Put a task on the plan.

    Attributes:
        goal: What is to be reached.
        parent: The id of the task that it is a part of; empty for none.
        subtasks: Its own parts.
        thought: Why.
    """

    says = "Added task: {0.goal}"

    goal: str
    parent: str = ""
    subtasks: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    thought: str = ""


class ModifyTaskAction(EventAction, kw_only=False):
    """Change the state of a task of the plan.

    Attributes:
        task_id: The id of the task.
        state: Its new state.
        thought: Why.
    """

    says = "Task {0.task_id} is {0.state}"

    task_id: str
    state: Literal["open", "in_progress", "completed", "abandoned", "verified"]
    thought: str = ""


class CondensationAction(EventAction, kw_only=False):
    """Leave events out of what the model reads, with a summary in their place.

    Attributes:
        forgotten_event_ids: The ids of the events.
        summary: What the model reads instead; empty for nothing.
    """

    forgotten_event_ids: list[int]
    summary: str = ""

    @property
    def message(self) -> str:
        """What it is, in a line for people."""
        return self.summary or f"{len(self.forgotten_event_ids)} events are left out"


class CondensationRequestAction(EventAction, kw_only=False):
    """Ask for the history to be made shorter."""

    says = "The history is to be made shorter"


def setup_script_action(path: str, timeout: float = SETUP_TIMEOUT) -> CmdRunAction:
    """Return the action that runs a setup script in the session of the terminal, unseen.

    Args:
        path: The script.
        timeout: Seconds after which it is stopped.
    """
    script = shlex.quote(path)
    return CmdRunAction(
        f"chmod +x {script} && source {script}", blocking=True, hidden=True, timeout=timeout
    )
