"""Requirements of events and servers that no other test covers."""

from __future__ import annotations

import ast
import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

import agents_tools
from agents_tools import EventSource, EventStream, MessageEvent, ObservationEvent
from agents_tools.classes.event_types import (
    AddTaskAction,
    AgentDelegateAction,
    AgentFinishAction,
    AgentState,
    AgentStateChangedObservation,
    BrowseInteractiveAction,
    CmdKillAction,
    CmdOutputObservation,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    IPythonRunCellAction,
    MCPAction,
    MCPObservation,
    MessageAction,
    ModifyTaskAction,
    RecallAction,
    SystemMessageAction,
    event_of,
)
from agents_tools.event_driven import ToolRuntime
from agents_tools.mcp import MCPToolManager
from agents_tools.mcp.client import server_lists
from agents_tools.mcp.config import load_config
from agents_tools.persistence import MemoryEventStore, PendingFuture
from tests.mcp.small import Small, tool

BOUND = 45.0


class Counting(MemoryEventStore):
    """A store that counts how often it is read, and how much at most at once."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.most = 0

    def read(self, *positional: Any, **options: Any) -> PendingFuture[Any]:
        found = super().read(*positional, **options)
        self.reads += 1
        self.most = max(self.most, len(found.result(BOUND)))
        return found


@pytest.mark.requirement("D12")
def test_recent_events_do_not_read_the_store_and_old_ones_are_paged() -> None:
    """Ten thousand events cost a few tens of reads, and no read returns all events."""
    store = Counting()
    with EventStream(store, window=500) as stream:
        for number in range(10_000):
            stream.publish(MessageEvent(str(number)))
        stream.flush().result(BOUND)
        store.reads = 0
        assert [event.id for event in stream.get_events(9_600)] == list(range(9_600, 10_000))
        assert store.reads == 0
        assert [event.id for event in stream.get_events()] == list(range(10_000))
        assert 1 < store.reads <= 100
        assert store.most <= 2_000


@pytest.mark.requirement("D27", "D28", "D29", "D30", "D31", "D32", "D33", "D35", "D37")
@pytest.mark.parametrize(
    ("action", "fields"),
    [
        (CmdRunAction("ls", blocking=True, hidden=True), {"command": "ls", "timeout": None}),
        (CmdKillAction(), {"action_id": None}),
        (FileReadAction("a.py", 1, 2), {"path": "a.py", "start": 1, "end": 2}),
        (FileEditAction("a.py", "create", "x"), {"path": "a.py", "command": "create"}),
        (IPythonRunCellAction("1"), {"code": "1"}),
        (BrowseInteractiveAction("click('a')"), {"browser_actions": "click('a')"}),
        (MessageAction("Hello"), {"content": "Hello"}),
        (SystemMessageAction("Be kind."), {"content": "Be kind."}),
        (AgentFinishAction(), {"outputs": {}}),
        (AgentDelegateAction("helper"), {"agent": "helper", "inputs": {}}),
        (RecallAction("owls"), {"query": "owls"}),
        (AddTaskAction("Sweep", "1"), {"goal": "Sweep", "parent": "1"}),
        (ModifyTaskAction("1", "completed"), {"task_id": "1", "state": "completed"}),
        (MCPAction("add", {"a": 1}), {"name": "add", "arguments": {"a": 1}}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_actions_have_their_documented_fields(action: Any, fields: dict[str, Any]) -> None:
    """By position or by name, with the documented defaults."""
    assert {name: getattr(action, name) for name in fields} == fields


@pytest.mark.requirement("D22")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (CmdRunAction("make"), "Running command: make"),
        (FileEditAction("a.py", "create", "x"), "Editing file: a.py (create)"),
        (AgentDelegateAction("helper"), "Delegating to helper"),
        (MessageAction("Hello"), "Hello"),
        (CmdOutputObservation("ok", "make", 0), "ok"),
        (
            AgentStateChangedObservation("", AgentState.RUNNING, "a message"),
            "The agent is running: a message",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_message_of_a_log_record_describes_the_event(value: Any, message: str) -> None:
    """A log that shows only messages must be readable."""
    assert value.message == message
    assert event_of(value).value.message == message


@pytest.mark.requirement("D37")
async def test_an_action_reaches_a_real_server_and_its_observation_has_the_cause() -> None:
    """The runtime calls the tool over the connection, and a failure is an observation too."""
    small = Small()
    async with asyncio.timeout(BOUND), MCPToolManager() as manager, EventStream() as stream:
        await manager.add_server("box", server=small.server)

        async def act(action: MCPAction) -> ObservationEvent[Any]:
            asked = stream.add_event(action, EventSource.AGENT)
            async with stream.follow(asked.id) as events:
                async for event in events:
                    if isinstance(event, ObservationEvent) and event.cause == asked.id:
                        return event
            raise AssertionError("the stream has ended")

        async with ToolRuntime(stream, manager.get_tools()):
            echoed = await act(MCPAction("echo", {"text": "hi"}, "box"))
            failed = await act(MCPAction("fail", {}, "box"))
    assert isinstance(echoed.value, MCPObservation)
    assert (echoed.value.text, echoed.value.is_error) == ("hi", False)
    assert echoed.source is EventSource.ENVIRONMENT
    assert failed.value.is_error
    assert [name for name, _ in small.calls] == ["echo", "fail"]


@pytest.mark.requirement("S33")
async def test_tools_over_the_limit_are_left_out_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An endless list must not fill the memory or the model's context."""
    monkeypatch.setattr(server_lists, "MAX_ITEMS", 7)
    small = Small(*(tool(f"t{number}") for number in range(20)))
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(BOUND), MCPToolManager() as manager:
            await manager.add_server("box", server=small.server)
            assert manager.get_tool_names() == [f"box_t{number}" for number in range(7)]
    assert "more than 7 tools; the rest is left out" in caplog.text


@pytest.mark.requirement("F26")
def test_the_default_connect_timeout_is_ten_seconds() -> None:
    """This is long enough to install a program, and short enough for a waiting user."""
    servers = {"box": {"command": "x"}, "slow": {"command": "x", "connect_timeout": 60}}
    assert [one.connect_timeout for one in load_config({"mcpServers": servers})] == [10.0, 60.0]


@pytest.mark.requirement("S5")
def test_request_handlers_cannot_add_a_server() -> None:
    """Tools, pages and streams must not reach the configuration that starts processes."""
    package = Path(agents_tools.__file__).parent
    reached: list[str] = []
    for folder in ("builtin", "playground", "policies", "toolset", "ui", "wire"):
        paths = sorted((package / folder).rglob("*.py"))
        assert paths
        for path in paths:
            source = path.read_text(encoding="utf-8")
            if "add_server" not in source and "mcp" not in source:
                continue
            for node in ast.walk(ast.parse(source)):
                named = getattr(node, "module", None) or ""
                names = [
                    alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")
                ]
                called = getattr(getattr(node, "func", None), "attr", "")
                if called == "add_server" or any(
                    name.startswith("agents_tools.mcp") for name in (named, *names)
                ):
                    reached.append(f"{path.relative_to(package)}:{getattr(node, 'lineno', 0)}")
    assert reached == []
