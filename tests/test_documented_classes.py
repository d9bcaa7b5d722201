"""Programs written for class-based tools elsewhere run with only their imports changed."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field, SecretStr

from agents_tools import (
    Action,
    BaseTool,
    BaseToolParams,
    ImageContent,
    Observation,
    TextContent,
    ToolAnnotations,
    ToolDefinition,
    ToolExecutor,
    create_default_registry,
    get_default_tools,
    register_tool,
)
from agents_tools.builtin.file_editor import FileEditorTool
from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor, TerminalTool
from agents_tools.conversation import (
    LLM,
    ActionEvent,
    Agent,
    AgentErrorEvent,
    Conversation,
    Event,
    LLMConvertibleEvent,
    ObservationEvent,
    get_logger,
)
from agents_tools.mcp import MCPToolManager
from agents_tools.registry import Tool, default_registry
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tools import BashTool, EditorTool

logger = get_logger(__name__)

# --- the program of the custom grep tool


class GrepAction(Action):
    pattern: str = Field(description="Regex to search for")
    path: str = Field(default=".", description="Directory to search (absolute or relative)")
    include: str | None = Field(
        default=None, description="Optional glob to filter files (e.g. '*.py')"
    )


class GrepObservation(Observation):
    matches: list[str] = Field(default_factory=list)
    files: list[str] = Field(default_factory=list)
    count: int = 0

    @property
    def to_llm_content(self) -> Sequence[TextContent | ImageContent]:
        if not self.count:
            return [TextContent(text="No matches found.")]
        files_list = "\n".join(f"- {f}" for f in self.files[:20])
        sample = "\n".join(self.matches[:10])
        more = "\n..." if self.count > 10 else ""
        return [
            TextContent(
                text=f"Found {self.count} matching lines.\nFiles:\n{files_list}\n"
                f"Sample:\n{sample}{more}"
            )
        ]


class GrepExecutor(ToolExecutor[GrepAction, GrepObservation]):
    def __init__(self, terminal: TerminalExecutor) -> None:
        self.terminal: TerminalExecutor = terminal

    def __call__(self, action: GrepAction, conversation: Any = None) -> GrepObservation:
        root_q = shlex.quote(os.path.abspath(action.path))  # noqa: PTH100 - as such programs do
        pat = shlex.quote(action.pattern)
        include = f"--include {shlex.quote(action.include)} " if action.include else ""
        cmd = f"grep -rHnE {include}{pat} {root_q} 2>/dev/null | head -100"
        result = self.terminal(TerminalAction(command=cmd))
        matches: list[str] = []
        files: set[str] = set()
        for line in result.text.strip().splitlines():
            matches.append(line)
            file_path = line.split(":", 1)[0]
            if file_path:
                files.add(os.path.abspath(file_path))  # noqa: PTH100 - as above
        return GrepObservation(matches=matches, files=sorted(files), count=len(matches))


class GrepTool(ToolDefinition[GrepAction, GrepObservation]):
    """A custom grep tool that searches file contents using regular expressions."""

    @classmethod
    def create(
        cls, conv_state: Any, terminal_executor: TerminalExecutor | None = None
    ) -> Sequence[ToolDefinition]:
        if terminal_executor is None:
            terminal_executor = TerminalExecutor(working_dir=conv_state.workspace.working_dir)
        return [
            cls(
                description="Search the contents of files.",
                action_type=GrepAction,
                observation_type=GrepObservation,
                executor=GrepExecutor(terminal_executor),
            )
        ]


def _make_bash_and_grep_tools(conv_state: Any) -> list[ToolDefinition]:
    """Create terminal and custom grep tools sharing one executor."""
    terminal_executor = TerminalExecutor(working_dir=conv_state.workspace.working_dir)
    terminal_tool = TerminalTool.create(conv_state, executor=terminal_executor)[0]
    grep_tool = GrepTool.create(conv_state, terminal_executor=terminal_executor)[0]
    return [terminal_tool, grep_tool]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "a.py").write_text("class A:\n    pass\n")
    (tmp_path / "b.txt").write_text("class of no interest\n")
    register_tool("BashAndGrepToolSet", _make_bash_and_grep_tools)
    yield tmp_path
    default_registry.unregister("BashAndGrepToolSet")


@pytest.mark.requirement("B12", "B55", "B58", "B64", "B65", "B66", "B67", "B28", "B7")
def test_the_custom_grep_program_runs(project: Path) -> None:
    """Registration, factory, shared terminal, formatting."""
    script = [
        tool_call("grep", pattern="class", path=str(project), include="*.py"),
        tool_call(
            "str_replace_editor", command="create", path=str(project / "s.txt"), file_text="a.py\n"
        ),
        "I have written the summary.",
        tool_call("execute_bash", command="rm s.txt && ls"),
        tool_call("finish", message="Deleted."),
    ]
    llm = LLM(
        usage_id="agent",
        model=ScriptedModel(script),
        base_url=None,
        api_key=SecretStr("the-key-nobody-sees"),
    )
    assert "the-key-nobody-sees" not in repr(llm) + llm.model_dump_json(exclude={"model"})
    tools = [Tool(name=FileEditorTool.name), Tool(name="BashAndGrepToolSet")]
    agent = Agent(llm=llm, tools=tools)
    llm_messages: list[dict[str, Any]] = []
    events: list[Event] = []

    def conversation_callback(event: Event) -> None:
        events.append(event)
        if isinstance(event, LLMConvertibleEvent):
            llm_messages.append(event.to_llm_message())

    conversation = Conversation(
        agent=agent, callbacks=[conversation_callback], workspace=str(project)
    )
    conversation.send_message("Use the grep tool to find files, then write a summary.")
    conversation.run()
    assert (project / "s.txt").read_text() == "a.py\n"
    conversation.send_message("Great! Now delete that file.")
    conversation.run()
    conversation.close()

    assert not (project / "s.txt").exists()
    assert list(agent.tools_map) == [
        "str_replace_editor",
        "execute_bash",
        "grep",
        "finish",
        "think",
    ]
    called = [event for event in events if isinstance(event, ActionEvent)]
    answered = [event for event in events if isinstance(event, ObservationEvent)]
    assert [one.tool_call_id for one in called] == [one.tool_call_id for one in answered]
    assert called[0].action == GrepAction(pattern="class", path=str(project), include="*.py")
    grepped = answered[0].observation
    assert isinstance(grepped, GrepObservation)
    assert (grepped.count, grepped.files) == (1, [str(project / "a.py")])
    assert answered[0].to_llm_message()["content"].startswith("Found 1 matching lines.\nFiles:\n- ")
    assert [message["role"] for message in llm_messages[:3]] == ["user", "assistant", "tool"]
    assert llm.metrics.accumulated_cost >= 0


@pytest.mark.requirement("B13", "B14")
def test_invalid_calls_are_error_events(project: Path) -> None:
    """The run continues, and the model sees the error."""
    script = [
        tool_call("grep", '{"pattern": '),
        tool_call("grep", pattern=3),
        tool_call("finish", result="done"),
    ]
    events: list[Event] = []
    agent = Agent(llm=LLM(model=ScriptedModel(script)), tools=[Tool(name="BashAndGrepToolSet")])
    with Conversation(agent=agent, callbacks=[events.append], workspace=project) as conversation:
        conversation.send_message("go")
        conversation.run()
    errors = [event.error for event in events if isinstance(event, AgentErrorEvent)]
    assert len(errors) == 2
    assert "pattern" in errors[1]


@pytest.mark.requirement("B52", "B53", "B54", "B62")
def test_the_tools_of_the_guide_exist(tmp_path: Path) -> None:
    """`create()` without a conversation, the preset, names on the class."""
    agent = Agent(
        llm=LLM(model=ScriptedModel([])),
        tools=[BashTool.create(), EditorTool.create(working_dir=tmp_path)],
    )
    assert agent.tools_map == {}
    Conversation(agent, workspace=tmp_path).close()
    assert set(agent.tools_map) >= {BashTool.name, EditorTool.name}
    with get_default_tools(tmp_path) as tools:
        names = {tool.name for tool in tools}
    assert names >= {"execute_bash", "str_replace_editor", "task_tracker", "glob", "grep"}


@pytest.mark.requirement("B16", "B17", "B19", "B72")
def test_built_in_tools_have_correct_annotations(tmp_path: Path) -> None:
    with create_default_registry(working_dir=tmp_path) as registry:
        found = {tool.name: tool.annotations for tool in registry.get_all_tools()}
    facts = {
        name: (one.read_only, one.destructive, one.idempotent, one.open_world)
        for name, one in found.items()
        if one is not None
    }
    assert facts["execute_bash"] == (False, True, False, True)
    assert facts["str_replace_editor"][:3] == (False, True, False)
    assert facts["glob"] == facts["grep"] == facts["think"] == (True, False, True, False)
    assert facts["task_tracker"][0] is False
    assert facts["task_tracker"][1] is False
    assert facts["task_tracker"][3] is False
    assert all(isinstance(one, ToolAnnotations) for one in found.values())


# --- the program of the custom tool with parameters, and of MCP tools in the registry


class MyToolParams(BaseToolParams):
    """My custom tool description.

    Does something useful.
    """

    name: ClassVar[str] = "my_tool"
    input_data: str = Field(description="Input data to process")
    option: bool = Field(default=False, description="Optional flag")


class MyTool(BaseTool):
    name: ClassVar[str] = "my_tool"
    params_class: ClassVar[type[BaseToolParams]] = MyToolParams

    def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
        params = self.parse_params(args_json)
        result = f"Processed: {params.input_data}"
        return result, {"status": "success"}


@pytest.mark.requirement("C17", "C38")
def test_the_custom_tool_program_runs() -> None:
    """The default registry accepts the tool next to the built-in ones."""
    registry = create_default_registry()
    registry.register(MyTool())
    names = registry.get_tool_names()
    assert names[:4] == ["execute_bash", "str_replace_editor", "think", "finish"]
    assert names[-1] == "my_tool"
    assert MyTool().execute(None, '{"input_data":"x"}') == ("Processed: x", {"status": "success"})
    spec = MyTool().get_tool_spec()
    assert spec["function"]["name"] == "my_tool"
    assert spec["function"]["description"].startswith("My custom tool description.")
    assert spec["function"]["parameters"]["required"] == ["input_data"]


@pytest.mark.requirement("C19", "C20", "C22", "C23")
def test_the_specs_of_the_built_in_tools() -> None:
    """The parameters that such programs send."""
    registry = create_default_registry()
    specs = {spec["function"]["name"]: spec["function"] for spec in registry.get_tool_specs()}
    assert {"command", "timeout"} <= set(specs["execute_bash"]["parameters"]["properties"])
    editor = specs["str_replace_editor"]["parameters"]["properties"]
    assert editor["command"]["enum"] == ["view", "create", "str_replace", "insert", "undo_edit"]
    assert specs["think"]["parameters"]["required"] == ["thought"]
    assert set(specs["finish"]["parameters"]["properties"]) >= {"result", "success"}


@pytest.mark.requirement("C40")
@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("classes", {"BaseTool", "BaseToolParams"}),
        ("builtin", {"BashTool", "EditorTool", "ThinkTool", "FinishTool"}),
        ("builtin.skill", {"SkillTool"}),
        ("mcp", {"MCPToolManager"}),
        ("registry", {"ToolRegistry"}),
    ],
)
def test_documented_modules_export_the_documented_names(module: str, names: set[str]) -> None:
    """Migrating programs only change module names."""
    found = import_module(f"agents_tools.{module}")
    assert names <= set(found.__all__)
    assert all(isinstance(getattr(found, name), type) for name in names)


SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("github")
@server.tool()
def create_issue(title: str) -> str:
    return f"issue {title}"
server.run()
"""


@pytest.mark.requirement("C31", "C39", "C41")
async def test_the_mcp_program_runs(tmp_path: Path) -> None:
    """Tools of a server are in the registry, and leave it with the server."""
    pytest.importorskip("mcp.server.mcpserver")
    script = tmp_path / "github_server.py"
    script.write_text(SERVER)
    manager = MCPToolManager()
    try:
        await manager.add_server(
            name="github", transport="stdio", command=sys.executable, args=[str(script)]
        )
        registry = create_default_registry()
        manager.register_tools(registry)
        assert "github_create_issue" in registry.get_tool_names()
        assert registry.get_mcp_server_names() == ["github"]
        tool = registry.get_tool("github_create_issue")
        assert tool is not None
        outcome = await tool.call(None, json.dumps({"title": "x"}))
        assert outcome.output == "issue x"
        await manager.add_server(  # C41: a server that comes later
            name="more", transport="stdio", command=sys.executable, args=[str(script)]
        )
        assert "more_create_issue" in registry.get_tool_names()
        await manager.remove_server("github")
        assert registry.get_mcp_server_names() == ["more"]
    finally:
        await manager.cleanup()
