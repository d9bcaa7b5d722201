"""One small program for each extra: it goes through the main door of what the extra is for.

Where the extra is installed the program ends with 0. Where it is not, the program ends with an
error of the library that says which extra to install.
"""

from __future__ import annotations

__all__ = ["CORE", "DOORS", "NAMELESS"]

_ADD = """
from agents_tools import function_tool

@function_tool
def add(a: int, b: int = 1) -> int:
    \"\"\"Add two numbers.

    Args:
        a: The first.
        b: The second.
    \"\"\"
    return a + b
"""

CORE = f"""
import sys
import agents_tools
heavy = {{"pydantic", "asyncio", "anyio", "griffe", "click", "rich", "httpx", "mcp", "uvicorn"}}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
{_ADD}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
import asyncio
import importlib.metadata
from pathlib import Path
from agents_tools import Agent, Runner
from agents_tools.errors import MissingExtraError
from agents_tools.persistence import SQLiteRunStore
from agents_tools.testing import ScriptedModel, call_tool, tool_call

assert agents_tools.__version__ == importlib.metadata.version("agents-tools")
folder = Path(agents_tools.__file__).parent
assert (folder / "py.typed").exists()
assert sorted(one.suffix for one in (folder / "playground/static").iterdir()) == [
    ".css", ".html", ".js", ".json"]
assert not [one for one in folder.parent.iterdir() if one.name in {{"tests", "docs", "examples"}}]

async def main():
    done = await call_tool(add, a=1, b=2)
    assert (done.status, done.value) == ("ok", 3), done
    assert add.params_json_schema["properties"]["a"]["description"] == "The first."
    assert (await call_tool(add, a="x")).status != "ok"
    model = ScriptedModel([tool_call("add", a=1, b=2), "It is 3."])
    told = await Runner.run(Agent("Clerk", tools=[add], model=model), "What is 1 + 2?")
    assert told.final_output == "It is 3.", told.final_output
    local = await Runner.run(Agent("Clerk", tools=[add], model="local/rules"), "add 1 and 2")
    assert local.final_output

asyncio.run(main())
SQLiteRunStore("runs.db").close()
import agents_tools.policies, agents_tools.persistence, agents_tools.builtin, agents_tools.execution
import agents_tools.ui.sse, agents_tools.ui.ag_ui, agents_tools.ui.vercel
import agents_tools.telemetry, agents_tools.testing, agents_tools.export
try:
    agents_tools.ui.sse.app([add])
except MissingExtraError as error:
    assert "agents-tools[ui]" in str(error), error
else:
    raise AssertionError("the app works without Starlette")
"""
"""What works with no extra at all."""


def _framework(name: str, then: str = "") -> str:
    """Make a program that hands a tool over to a framework."""
    return f"{_ADD}\nfrom agents_tools.export import to_{name}\nmade = to_{name}(add)\n{then}"


def _model(name: str) -> str:
    """Make a program that asks for a model; no provider is asked anything."""
    return f"""
import os
from agents_tools.agents import load_model
os.environ["OPENAI_API_KEY"] = os.environ["ANTHROPIC_API_KEY"] = "not-a-key-of-anybody"
assert load_model({name!r}) is not None
"""


_CLI = f"""
import pathlib, subprocess, sys, sysconfig
pathlib.Path("sums.py").write_text('''{_ADD}''')
program = [sysconfig.get_path("scripts") + "/agents-tools"]
def run(*words):
    done = subprocess.run([*program, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout
import importlib.metadata
assert importlib.metadata.version("agents-tools") in run("--version")
assert "add" in run("list", "sums.py")
assert run("call", "sums.py:add", "a=1", "b=2").strip() == "3"
"""

_SCHEMA = """
import asyncio
from agents_tools import FunctionTool
from agents_tools.testing import call_tool

async def invoke(context, args_json):
    return args_json

shape = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
tool = FunctionTool.from_schema(name="raw", schema=shape, on_invoke_tool=invoke)
assert asyncio.run(call_tool(tool, a=1)).status == "ok"
assert asyncio.run(call_tool(tool, a="x")).status == "invalid_args"
"""

_MCP = f"""
{_ADD}
import asyncio, sys, pathlib
from agents_tools.mcp import MCPToolManager, serve
from agents_tools.testing import call_tool
if sys.argv[1:] == ["serve"]:
    serve([add])
    sys.exit()

async def main():
    ready = asyncio.get_running_loop().create_future()
    from agents_tools.mcp import serve_async
    serving = asyncio.create_task(
        serve_async([add], "http", port=0, auth="token-of-the-smoke", on_ready=ready.set_result)
    )
    await asyncio.wait({{ready, serving}}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    address = ready.result() if ready.done() else serving.result()
    headers = {{"Authorization": "Bearer token-of-the-smoke"}}
    async with MCPToolManager() as manager:
        await manager.add_server("wire", command=sys.executable, args=[__file__, "serve"])
        await manager.add_server("web", url=address, headers=headers)
        tools = manager.get_tools()
        assert len(tools) == 2, tools
        for tool in tools:
            done = await call_tool(tool, a=1, b=2)
            assert done.status == "ok", done
    serving.cancel()
    await asyncio.wait({{serving}}, timeout=30)

asyncio.run(main())
"""

_SKILLS = """
import pathlib
from agents_tools.builtin.skill import SkillRegistry
folder = pathlib.Path("skills/tea")
folder.mkdir(parents=True)
(folder / "SKILL.md").write_text("---\\nname: tea\\ndescription: Make tea.\\n---\\nBoil water.\\n")
registry = SkillRegistry("skills")
assert "tea" in registry, registry.problems
"""

_UI = f"""
{_ADD}
import asyncio, urllib.request
from agents_tools import playground
from agents_tools.server.listener import bound_socket
from agents_tools.testing import check_ag_ui

run = {{"threadId": "t", "runId": "r"}}
check_ag_ui([{{"type": "RUN_STARTED", **run}}, {{"type": "RUN_FINISHED", **run}}])

async def main():
    app = playground.app(lambda: playground.LoadedTarget(target="sums", tools=(add,)), token="token-of-the-smoke")
    listener = bound_socket("127.0.0.1", 0)
    port = listener.getsockname()[1]
    ready = asyncio.Event()
    serving = asyncio.create_task(playground.serve(app, listener, on_ready=ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({{serving, waiting}}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        waiting.cancel()
        listener.close()
        serving.result()

    def page():
        with urllib.request.urlopen(f"http://127.0.0.1:{{port}}/", timeout=30) as answer:
            return answer.read()

    assert b"<html" in await asyncio.to_thread(page)
    serving.cancel()
    await asyncio.wait({{serving}}, timeout=30)

asyncio.run(main())
"""

_REDIS = """
from agents_tools.errors import EventStoreError
from agents_tools.persistence import RedisRunStore
try:
    RedisRunStore("redis://127.0.0.1:1/0").close()
except EventStoreError:  # nobody listens there
    pass
"""

_POSTGRES = """
from agents_tools.errors import EventStoreError
from agents_tools.persistence import PostgresRunStore
try:
    PostgresRunStore("postgresql://127.0.0.1:1/runs").close()
except EventStoreError:  # no server listens there
    pass
"""

_DBOS = """
import asyncio, sqlite3, sys
from agents_tools.execution import CallEnvelope
from agents_tools.persistence.queue import DBOSBackend, QueueError

async def main():
    async with DBOSBackend("sqlite:///queue.db") as queue:
        try:
            assert not await queue.has_call(CallEnvelope(call_id="c1", tool="add", arguments="{}"))
        except QueueError as error:  # DBOS cannot use an older SQLite, and the error says so
            assert sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42), error
            assert "SQLite 3.42" in str(error), error

asyncio.run(main())
"""

_REPAIR = f"""
{_ADD}
import asyncio
from agents_tools.policies import repair_json
done = asyncio.run(repair_json()(add).call(None, "{{'a': 1,}}"))
assert done.value == 2, done
"""

_OTEL = f"""
{_ADD}
import asyncio
from agents_tools.telemetry import instrument
from agents_tools.testing import call_tool
with instrument():
    assert asyncio.run(call_tool(add, a=1, b=2)).value == 3
"""

_PRICES = """
from agents_tools import Agent, ModelResponse, RunConfig, Runner, Usage
from agents_tools.content import MessageOutputItem

class Model:
    name, base_url = "gpt-5", "https://api.openai.com/v1"
    async def respond(self, request, emit):
        usage = Usage(requests=1, input_tokens=1_000_000)
        return ModelResponse(items=[MessageOutputItem(text="Fine.")], usage=usage)

result = Runner.run_sync(Agent("A", model=Model()), "Hi", run_config=RunConfig(max_cost=100))
assert result.usage.cost > 0, result.usage
"""

_LANGGRAPH = """
from agents_tools.export.langgraph import as_tool
from langgraph.graph import END, START, MessagesState, StateGraph

def answer(state):
    return {"messages": [("ai", "Fine.")]}

graph = StateGraph(MessagesState)
graph.add_node("answer", answer)
graph.add_edge(START, "answer")
graph.add_edge("answer", END)
tool = as_tool(graph.compile(), tool_name="ask", tool_description="Ask.")
import asyncio
from agents_tools.testing import call_tool
assert asyncio.run(call_tool(tool, input="How?")).output == "Fine."
"""

_CODE = f"""
{_ADD}
import asyncio
from agents_tools import code_mode
from agents_tools.testing import call_tool

done = asyncio.run(call_tool(code_mode(add), code="await add(1) + await add(2, 3)"))
assert (done.status, done.output) == ("ok", "7"), done
"""

_SCREEN = """
import asyncio

async def main():
    from agents_tools.ui.console.screen import ScreenRun

    view = ScreenRun("Clerk")
    assert "Clerk" in str(view.rows(40)[()])

asyncio.run(main())
"""

DOORS: dict[str, str] = {
    "cli": _CLI,
    "screen": _SCREEN,
    "schema": _SCHEMA,
    "code": _CODE,
    "mcp": _MCP,
    "skills": _SKILLS,
    "openai": _model("openai/gpt-5")
    + _model("openai-chat/gpt-5")
    + _framework(
        "openai_sdk",
        'import asyncio\nassert "3" in str(asyncio.run(made.execute({"a": 1, "b": 2})))',
    ),
    "anthropic": _model("anthropic/claude-sonnet-4-5")
    + _framework(
        "anthropic_sdk",
        'import asyncio\nassert "3" in str(asyncio.run(made.call({"a": 1, "b": 2})))',
    ),
    "pydantic-ai": _model("pydantic-ai/test") + _framework("pydantic_ai"),
    "ui": _UI,
    "redis": _REDIS,
    "dbos": _DBOS,
    "postgres": _POSTGRES,
    "prices": _PRICES,
    "repair": _REPAIR,
    "otel": _OTEL,
    "openai-agents": _framework("openai_agents", 'assert made.name == "add"'),
    "langchain": _framework(
        "langchain",
        'import asyncio\nassert "3" in str(asyncio.run(made.ainvoke({"a": 1, "b": 2})))',
    ),
    "langgraph": _LANGGRAPH,
    "strands": _framework("strands", 'assert made.tool_name == "add"'),
    "google-adk": _framework("google_adk", 'assert made.name == "add"'),
    "agno": _framework("agno", 'assert made.name == "add"'),
    "agent-framework": _framework("agent_framework", 'assert made.name == "add"'),
    "claude-agent-sdk": _framework("claude_agent_sdk", 'assert made.name == "add"'),
    "llama-index": _framework("llama_index", 'assert made.metadata.name == "add"'),
    "smolagents": _framework("smolagents", 'assert made.name == "add"'),
}
"""A program for each extra."""

NAMELESS = frozenset({"all"})
"""Extras that are others together."""
