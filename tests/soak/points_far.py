"""Calls of tools that run elsewhere (servers, workers, terminals), for faults at each await."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from agents_tools import ToolContext, function_tool, policies, streaming_tool
from agents_tools.builtin.terminal import TerminalExecutor, TerminalTool
from agents_tools.conversation import LLM, Agent, Conversation
from agents_tools.events import NotifyStreamEvent
from agents_tools.execution import ProcessBackend, run_on
from agents_tools.mcp import MCPToolManager, mcp_server
from agents_tools.mcp.server import MCPApp
from agents_tools.testing import ScriptedModel, tool_call
from tests import isolated_tools
from tests.mcp.small import program
from tests.soak.points_calls import both_ways, slow_tool
from tests.soak.points_runs import nested_agent
from tests.soak.points_stage import Scenario, Stage, together

__all__ = ["FAR"]


def _server(stage: Stage) -> MCPApp:
    """Make a server of three tools."""

    @streaming_tool
    async def lines(text: str) -> AsyncGenerator[Any]:
        """Say three lines."""
        with stage.inside("lines"):
            for number in range(3):
                await stage.at("body", body=True)
                yield NotifyStreamEvent(f"line {number}")
            yield text

    @function_tool
    async def asks(context: ToolContext[Any]) -> str:
        """Ask the person behind the client."""
        with stage.inside("asks"):
            return str(await context.ask("How big?", answer=int))

    return mcp_server([slow_tool(stage), lines, asks])


async def _near(manager: MCPToolManager, app: MCPApp) -> dict[str, Any]:
    """Connect to a server in this process, and give its tools."""
    server = app._server.server  # pyright: ignore[reportPrivateUsage] - in memory
    await manager.add_server("near", server=server)
    return {str(tool.origin.wire_name): tool for tool in manager.get_tools()}


async def _mcp(stage: Stage) -> None:
    """Connect, call two tools at once, and go."""
    app = _server(stage)

    async def ask(_: Any) -> int:
        await stage.at("person")
        return 3

    try:
        async with MCPToolManager(ask=ask) as manager:
            tools = await _near(manager, app)
            await together(
                tools["slow"].call(None, '{"text": "x"}'),
                tools["lines"].call(None, '{"text": "y"}'),
            )
            await tools["asks"].call(None, "{}")
    finally:
        await app.aclose()


async def _mcp_again(stage: Stage) -> None:
    async with MCPToolManager() as manager:
        tools = await _near(manager, _server(stage))
        assert (await tools["slow"].call(None, '{"text": "x"}')).status == "ok"


async def _mcp_program(stage: Stage) -> None:
    """Start a program that serves tools, call two of them at once, and end it."""
    async with MCPToolManager() as manager:
        await manager.add_server("far", **program(), connect_timeout=5.0)
        tools = {str(tool.origin.wire_name): tool for tool in manager.get_tools()}
        await stage.at("caller")
        await together(
            tools["echo"].call(None, '{"text": "x"}'), tools["steps"].call(None, '{"n": 2}')
        )


_BACKEND: list[ProcessBackend] = []


def _workers() -> ProcessBackend:
    """Return workers that all cases share: they start slowly, and must work after each case."""
    if not _BACKEND:
        _BACKEND.append(ProcessBackend(isolated_tools.ALL, workers=1))
    return _BACKEND[0]


async def _process(stage: Stage) -> None:
    tool = run_on(_workers())(isolated_tools.add)
    await stage.at("caller")
    await together(*(tool.call(None, '{"a": 1, "b": 2}') for _ in range(2)))


async def _process_again(_: Stage) -> None:
    outcome = await run_on(_workers())(isolated_tools.add).call(None, '{"a": 1, "b": 2}')
    assert outcome.value == 3, outcome


_isolated: Any = policies.isolate()(isolated_tools.add)


async def _isolation(_: Stage) -> None:
    await _isolated.call(None, '{"a": 1, "b": 2}')


async def _isolation_again(_: Stage) -> None:
    assert (await _isolated.call(None, '{"a": 1, "b": 2}')).value == 3


async def _terminal(stage: Stage) -> None:
    executor = TerminalExecutor(stage.folder, soft_timeout=15)
    tool: Any = TerminalTool.create(executor=executor)[0].as_function_tool()
    try:
        await stage.at("caller")
        await tool.call(None, '{"command": "echo one; echo two"}')
        await tool.call(None, '{"command": "exit 0"}')
    finally:
        executor.close()


async def _talk(stage: Stage) -> None:
    model = ScriptedModel([tool_call("slow", text="x", call_id="c1"), "done"])
    told = list[Any]()
    conversation = Conversation(
        Agent(llm=LLM(model=model), tools=[slow_tool(stage)]),
        callbacks=[told.append, lambda _: stage.hit("callback")],
        workspace=str(stage.folder),
    )
    with conversation:
        conversation.send_message("Go.")
        await conversation.arun()


async def _served_agent(stage: Stage) -> None:
    """Call an agent, with the agents inside it, over MCP."""
    app = mcp_server([nested_agent(stage).as_tool("outer", streaming=True)])
    async with MCPToolManager() as manager:
        tools = await _near(manager, app)
        await tools["outer"].call(None, '{"input": "Go."}')


FAR: list[Scenario] = [
    *both_ways("mcp in memory", _mcp, again=_mcp_again),
    Scenario(name="agent over mcp", play=_served_agent, heard=True),
    Scenario(name="mcp over stdio", play=_mcp_program, grace=True, every=40),
    Scenario(name="call of a worker", play=_process, again=_process_again, grace=True),
    Scenario(name="isolated call", play=_isolation, again=_isolation_again, grace=True),
    Scenario(name="call of a terminal", play=_terminal, grace=True),
    Scenario(name="conversation", play=_talk, heard=True),
]
