"""Secrets must not appear in models, events, logs, traces, files, frames or answers."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import subprocess
import sys
import traceback
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import SecretStr

from agents_tools import Agent, Event, RunConfig, Runner, function_tool, listen, register_secret
from agents_tools.builtin.terminal import TerminalTool
from agents_tools.mcp import MCPToolManager, mcp_server
from agents_tools.persistence import (
    MemoryEventStore,
    RedisEventStore,
    SQLiteEventStore,
    SQLiteRunStore,
)
from agents_tools.persistence.stream import EventStream
from agents_tools.policies import needs_approval
from agents_tools.telemetry import JsonFormatter, instrument, log_calls, write_chrome_trace
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.text import forget_secret
from agents_tools.ui import ag_ui, console, ndjson, sse, vercel
from tests.playground.client import playing
from tests.redis_server import RedisServer
from tests.security.planted import (
    REGISTERED,
    SHAPES,
    Box,
    found,
    registered_tools,
    shape_tools,
)
from tests.ui.web import ask, served

pytestmark = pytest.mark.requirement("S20")

Sinks = dict[str, str | bytes]
TOKEN = "cnry-token-of-the-listener-5f1c9e7a"  # noqa: S105 - opens nothing
SEEN = ("model", "ndjson", "events.db", "console", "vercel")
SHAPED = {name: secret for name, (secret, _) in SHAPES.items()}


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Generator[Mapping[str, str]]:
    """Register all canaries, and put one of them into the environment."""
    monkeypatch.setenv("CANARY_IN_ENVIRONMENT", REGISTERED["environment"])
    for secret in REGISTERED.values():
        register_secret(secret)
    yield REGISTERED
    for secret in REGISTERED.values():
        forget_secret(secret)


@contextlib.contextmanager
def captured_logs() -> Generator[io.StringIO]:
    """Capture all records of all loggers, with their tracebacks, in two formats."""
    text = io.StringIO()
    handlers = [logging.StreamHandler(text), logging.StreamHandler(text)]
    handlers[1].setFormatter(JsonFormatter())
    root, ours = logging.getLogger(), logging.getLogger("agents_tools")
    before = root.level, ours.level
    root.setLevel(logging.DEBUG)
    ours.setLevel(logging.DEBUG)
    for handler in handlers:
        root.addHandler(handler)
    try:
        yield text
    finally:
        for handler in handlers:
            root.removeHandler(handler)
        root.setLevel(before[0])
        ours.setLevel(before[1])


@contextlib.contextmanager
def traced(sinks: Sinks) -> Generator[None]:
    """Record spans and metrics, including captured content."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider([reader])
    with instrument(tracer_provider=tracers, meter_provider=meters, capture_content=True):
        yield
    spans = exporter.get_finished_spans()
    assert spans
    sinks["spans"] = "\n".join(span.to_json() for span in spans)
    measured = reader.get_metrics_data()
    sinks["metrics"] = "" if measured is None else measured.to_json()


async def run_all(tools: list[Any], sinks: Sinks, folder: Path) -> None:
    """Let an agent call each tool once, and collect all output in the sinks."""
    calls = [tool_call(tool.name, call_id=f"c{at}") for at, tool in enumerate(tools)]
    model = ScriptedModel([calls, "Done."])
    agent = Agent("Clerk", tools=tools, model=model)
    store = SQLiteRunStore(folder / "runs.db")
    memory = MemoryEventStore()
    with captured_logs() as logged, traced(sinks):
        ends = log_calls(level=logging.DEBUG, arguments=True)
        try:
            async with EventStream(memory, keep="all") as stream, listen() as heard:
                result = await Runner.run(
                    agent,
                    "Go.",
                    context=Box(SecretStr(REGISTERED["context object"])),
                    run_config=RunConfig(event_stream=stream, store=store),
                    run_id="r1",
                )
        finally:
            ends()
    await store.aclose()
    assert heard
    assert result.final_output == "Done."
    sinks["log"] = logged.getvalue()
    sinks["model"] = repr([request.input for request in model.requests])
    sinks["items"] = json.dumps([item.to_dict() for item in result.new_items], default=repr)
    sinks["state"] = result.to_state().to_json()
    sinks["result"] = repr(result)
    events = await memory.read()
    sinks["heard"] = "\n".join(map(repr, heard))
    _export_events(events, sinks, folder)
    _read_files(folder, sinks)


def _export_events(events: list[Event], sinks: Sinks, folder: Path) -> None:
    """Write events with each exporter."""
    sinks["repr of events"] = "\n".join(map(repr, events))
    sinks["ndjson"] = "".join(ndjson.encode(events))
    sinks["sse"] = "".join(sse.encode(events))
    sinks["ag-ui"] = "".join(ag_ui.encode(events))
    sinks["vercel"] = "".join(vercel.encode(events))
    shown = io.StringIO()
    with console.Console(view="plain", file=shown) as screen:
        for event in events:
            screen.publish(event)
    sinks["console"] = shown.getvalue()
    write_chrome_trace(folder / "trace.json", events)
    store = SQLiteEventStore(folder / "events.db", "s")
    with EventStream(store, keep="all") as stream:
        for event in events:
            stream.publish(event.replace(id=-1))
    store.close()


def _read_files(folder: Path, sinks: Sinks) -> None:
    for path in sorted(folder.iterdir()):
        if path.is_file():
            sinks[path.name] = path.read_bytes()


# --- what tools let out


async def test_a_registered_secret_is_in_no_sink(
    registered: Mapping[str, str], tmp_path: Path
) -> None:
    """40 ways to leak a secret; none reaches a sink."""
    sinks: Sinks = {}
    tools = registered_tools()
    assert len(tools) == len(registered) >= 39
    await run_all(tools, sinks, tmp_path)
    assert found(registered, sinks) == []
    assert {"trace.json", "events.db", "runs.db", "spans", "metrics", "log"} <= set(sinks)


async def test_a_key_of_a_known_format_in_an_error_is_in_no_sink(
    tmp_path: Path,
) -> None:
    """These keys are not registered: they are recognized by their format."""
    sinks: Sinks = {}
    await run_all(shape_tools(), sinks, tmp_path)
    assert found(SHAPED, sinks) == []


async def test_unregistered_secrets_are_found_in_the_sinks(tmp_path: Path) -> None:
    """This proves that the search can find leaks: without registration, all canaries are found."""
    sinks: Sinks = {}
    tools = [tool for tool in registered_tools() if tool.name != "read_environment"]
    await run_all(tools, sinks, tmp_path)
    hits = found(REGISTERED, {name: sinks[name] for name in SEEN})
    found_canaries = {hit.rpartition(" in ")[0] for hit in hits}
    # Pydantic hides its own; an error text contains neither causes nor frames; and the text before
    # the name of a machine is recognized as a password.
    silent = {"SecretStr", "cause", "context", "local", "environment"}
    silent |= {"address in an error"}
    assert found_canaries == set(REGISTERED) - silent


@pytest.mark.external("redis-server")
async def test_a_registered_secret_is_not_in_redis(
    registered: Mapping[str, str],
) -> None:
    """The server's file contains what was sent to it."""
    server = RedisServer()
    try:
        store = RedisEventStore(server.url, "s")
        model = ScriptedModel([[tool_call(tool.name) for tool in registered_tools()[:8]], "Done."])
        agent = Agent("Clerk", tools=registered_tools(), model=model)
        async with EventStream(store, keep="all") as stream:
            await Runner.run(agent, "Go.", run_config=RunConfig(event_stream=stream))
        store.close()
        files = [path for path in server.folder.rglob("*") if path.is_file()]
        sinks: Sinks = {path.name: path.read_bytes() for path in files}
        assert any(b"Clerk" in held for held in sinks.values() if isinstance(held, bytes))
        assert found(registered, sinks) == []
    finally:
        server.stop()


async def test_model_output_is_streamed_without_secrets(
    registered: Mapping[str, str], tmp_path: Path
) -> None:
    """A model can repeat secrets that it knows; subscribers must not see them."""
    known = REGISTERED["plain result"]
    ran: list[str] = []

    @needs_approval
    @function_tool
    def login(password: str) -> str:
        """Log in."""
        ran.append(password)
        return f"in with {password}"

    for path, app in {
        "native": sse.app([login]),
        "ag-ui": ag_ui.app(_repeating_agent(login, known)),
        "vercel": _vercel_app(_repeating_agent(login, known)),
    }.items():
        with captured_logs() as logged:
            if path == "native":
                body: Any = {"tool": "login", "arguments": {"password": known}, "run_id": "r1"}
                replies = [
                    await ask(app, "POST", "/runs", body),
                    await ask(app, "GET", "/runs/r1"),
                    await ask(app, "GET", "/runs/r1/events"),
                    await ask(app, "POST", "/runs/r1/cancel", {}),
                ]
            else:
                replies = [await ask(app, "POST", "/", ASKED[path])]
        assert replies[0].status == 200, replies[0].text
        assert "login" in replies[0].text
        sinks: Sinks = {f"{path} {at}": reply.text for at, reply in enumerate(replies)}
        assert found(registered, {**sinks, f"log of {path}": logged.getvalue()}) == []
        await app.aclose()
    assert ran == []


ASKED: dict[str, Any] = {
    "ag-ui": {
        "threadId": "t1",
        "runId": "r1",
        "state": {},
        "messages": [{"id": "m1", "role": "user", "content": "Log in."}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    },
    "vercel": {
        "id": "c1",
        "trigger": "submit-message",
        "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Log in."}]}],
    },
}


def _repeating_agent(tool: Any, known: str) -> Agent[Any, Any]:
    said = [f"It is {known}, ", tool_call(tool.name, password=known)]
    return Agent("Talker", tools=[tool], model=ScriptedModel([said, f"{known}!"]))


def _vercel_app(agent: Agent[Any, Any]) -> Any:
    return vercel.app(agent)


async def test_the_playground_shows_and_stores_no_secret(
    registered: Mapping[str, str], tmp_path: Path
) -> None:
    """This covers its pages, its answers, its exports and its history file."""
    store = SQLiteRunStore(tmp_path / "history.db", keep_display=True)
    tools = [tool for tool in registered_tools() if tool.name != "use_context"]
    sinks: Sinks = {}
    with captured_logs() as logged:
        async with playing(*tools, store=store) as client:
            for tool in tools:
                shown = await client.run({"kind": "tool", "name": tool.name, "arguments": {}})
                sinks[f"page of {tool.name}"] = json.dumps(shown)
                where = f"/api/runs/{shown['id']}"
                sinks[f"file of {tool.name}"] = (await client.ask("GET", f"{where}/export")).body
            runs = await client.get("/api/runs")
            sinks["list"] = json.dumps(runs)
            for path in ("/", "/api/info", "/api/tools"):
                sinks[path] = (await client.ask("GET", path)).body
    store.close()
    _read_files(tmp_path, sinks)
    sinks["log"] = logged.getvalue()
    assert b"say_chunks" in (tmp_path / "history.db").read_bytes()
    assert found(registered, sinks) == []


async def test_a_console_masks_a_secret_that_arrives_in_chunks(
    registered: Mapping[str, str],
) -> None:
    """The console receives the text letter by letter."""
    tools = [tool for tool in registered_tools() if "chunks" in tool.name]
    model = ScriptedModel([[tool_call(tool.name) for tool in tools], "Done."])
    shown = io.StringIO()
    with console.Console(view="plain", file=shown) as screen:
        agent = Agent("Clerk", tools=tools, model=model)
        await Runner.run(agent, "Go.", run_config=RunConfig(event_stream=screen))
    assert "It is ***" in shown.getvalue()
    assert found(registered, {"console": shown.getvalue()}) == []


# --- programs and servers


async def test_a_shell_prints_no_secret(registered: Mapping[str, str], tmp_path: Path) -> None:
    """Output and errors of commands, the title and the start directory."""
    (tool,) = TerminalTool.create(working_dir=tmp_path)
    secret = REGISTERED["lines"].removesuffix("?/+é")
    register_secret(secret)
    parts = secret[:9], secret[9:]
    commands = [
        f"a={parts[0]}; b={parts[1]}; echo $a$b; echo $a$b >&2",
        "echo $a$b | base64; echo -n $a$b | od -An -tx1 | tr -d ' \\n'",
        "cat /nowhere/$a$b; false",
        "for i in 1 2 3; do printf $a; sleep 0.05; printf $b; done",
    ]
    sinks: Sinks = {}
    model = ScriptedModel([*([tool_call("execute_bash", command=one)] for one in commands), "Ok."])
    agent = Agent("Shell", tools=[tool], model=model)
    memory = MemoryEventStore()
    with captured_logs() as logged:
        async with EventStream(memory, keep="all") as stream:
            config = RunConfig(event_stream=stream)
            result = await Runner.run(agent, "Go.", run_config=config)
    sinks["log"] = logged.getvalue()
    sinks["answers"] = json.dumps([item.to_dict() for item in result.new_items])
    _export_events(await memory.read(), sinks, tmp_path)
    _read_files(tmp_path, sinks)
    assert "exit code 1" in str(sinks["answers"])
    try:
        assert found({"lines": secret}, sinks) == []
    finally:
        forget_secret(secret)


MCP_SERVER = """
import os, sys
from agents_tools import ToolError, function_tool
from agents_tools.mcp import serve

@function_tool
def whoami() -> str:
    print("key is", os.environ["SERVER_KEY"], file=sys.stderr, flush=True)
    return os.environ["SERVER_KEY"]

@function_tool
def refuse() -> str:
    raise ToolError("no entry with " + os.environ["SERVER_KEY"])

@function_tool
def die() -> str:
    print("dying with", os.environ["SERVER_KEY"], file=sys.stderr, flush=True)
    os._exit(3)

print("started with", os.environ["SERVER_KEY"], file=sys.stderr, flush=True)
serve([whoami, refuse, die])
"""


async def test_secrets_for_an_mcp_server_do_not_leak(
    registered: Mapping[str, str], tmp_path: Path
) -> None:
    """Its answers, its errors, its standard error, and the report of its exit."""
    script = tmp_path / "server.py"
    script.write_text(MCP_SERVER)
    secret = REGISTERED["header"].removesuffix("?/+é")
    register_secret(secret)
    sinks: Sinks = {}
    try:
        with captured_logs() as logged:
            async with MCPToolManager() as manager:
                tools = await manager.add_server(
                    "keeper", command=sys.executable, args=[str(script)], env={"SERVER_KEY": secret}
                )
                async with listen() as heard:
                    tools.sort(key=lambda tool: tool.name, reverse=True)
                    outcomes = [await tool.call(None, "{}") for tool in tools]
                sinks["outputs"] = repr([one.output for one in outcomes])
                sinks["events"] = repr(list(heard))
                connection = manager.get_connection("keeper")
                sinks["objects"] = repr([manager, connection, connection.config, tools])
                with contextlib.suppress(Exception):
                    await manager.add_server(
                        "broken",
                        command=sys.executable,
                        args=["-c", f"raise SystemExit({secret!r})"],
                    )
                sinks["failures"] = repr(manager.failures) + "".join(
                    "".join(traceback.format_exception(one)) for one in manager.failures.values()
                )
        sinks["log"] = logged.getvalue()
        assert [one.status for one in outcomes][:2] == ["ok", "tool_error"]
        assert "***" in str(sinks["outputs"])
        assert found({"header": secret}, sinks) == []
    finally:
        forget_secret(secret)


async def test_clients_of_our_mcp_server_receive_no_secret(registered: Mapping[str, str]) -> None:
    """Answers, errors and progress over HTTP, and the tokens of requests."""
    tools = [tool for tool in registered_tools() if tool.name != "use_context"]
    app = mcp_server(tools, auth=TOKEN, errors="show", json_response=True)
    accept = {"accept": "application/json, text/event-stream"}
    sinks: Sinks = {}
    with captured_logs() as logged:
        async with served(app) as port, httpx.AsyncClient(trust_env=False, headers=accept) as web:
            url = f"http://127.0.0.1:{port}/mcp"
            for token in (TOKEN, f"{TOKEN}-wrong"):
                for at, tool in enumerate(tools if token == TOKEN else tools[:1]):
                    reply = await web.post(
                        url,
                        headers={"authorization": f"Bearer {token}"},
                        json={
                            "jsonrpc": "2.0",
                            "id": at,
                            "method": "tools/call",
                            "params": {"name": tool.name, "arguments": {}},
                        },
                    )
                    sinks[f"{tool.name} {token[-5:]}"] = reply.text
        assert "***" in str(sinks[f"say_notice {TOKEN[-5:]}"]) or len(sinks) > len(tools)
    sinks["log"] = logged.getvalue()
    assert found({**registered, "token": TOKEN}, sinks) == []


# --- output for people after a failure


CRASHING = """
from agents_tools import function_tool, register_secret
secret = "-".join(["cnry", "crash", "5f1c9e7a"])
register_secret(secret)

@function_tool
def burst() -> str:
    raise RuntimeError(f"no entry with {secret}")

@function_tool
def show() -> dict[str, str]:
    return {"key": secret}
"""


@pytest.mark.parametrize("words", [["burst"], ["show"], ["burst", "--debug"], ["show", "--json"]])
def test_the_command_line_shows_no_secret(words: list[str], tmp_path: Path) -> None:
    """Results, errors, and tracebacks on request."""
    (tmp_path / "tools.py").write_text(CRASHING)
    name, *rest = words
    command = [sys.executable, "-m", "agents_tools", "call", f"tools.py:{name}", *rest]
    done = subprocess.run(  # noqa: S603 - our own
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert found({"crash": "cnry-crash-5f1c9e7a"}, {"out": done.stdout, "err": done.stderr}) == []
    assert "***" in done.stdout + done.stderr
    assert (done.returncode == 0) is (name == "show")


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    """`repr` and `str` end up in logs and crash reports."""
    from agents_tools.agents import load_model
    from agents_tools.mcp.config import server_config
    from agents_tools.server.http_security import Principal

    key = "cnry-of-an-object-5f1c9e7a"
    objects = [
        Principal(client_id="me", token=key, claims={"token": key}),
        server_config(
            "web", url="https://x.example/mcp", headers={"Authorization": f"Bearer {key}"}
        ),
        server_config("wire", command="server", env={"KEY": key}),
        load_model("openai/gpt-5", api_key=key),
        load_model("openai-chat/gpt-5", api_key=key),
        load_model("anthropic/claude-sonnet-4-5", api_key=key),
        sse.app([], auth=key),
        mcp_server([], auth=key),
    ]
    sinks: Sinks = {
        f"{type(one).__name__} {at}": f"{one!r} {one}" for at, one in enumerate(objects)
    }
    assert found({"key": key}, sinks) == []


async def test_a_log_record_without_secrets_keeps_its_exception(
    registered: Mapping[str, str],
) -> None:
    """Other tools read the exception of a record; it is removed only if it contains a secret."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger("agents_tools.mcp")
    logger.addHandler(handler)
    try:
        for text in ("harmless", REGISTERED["message"]):
            try:
                raise ValueError(text)  # noqa: TRY301 - what is raised is the point
            except ValueError:
                logger.exception("It failed with %s", text)
    finally:
        logger.removeHandler(handler)
    plain, hidden = records
    assert plain.exc_info is not None
    assert plain.args == ("harmless",)
    assert hidden.exc_info is None
    assert "ValueError: ***" in str(hidden.exc_text)
    assert hidden.getMessage() == "It failed with ***"


def test_every_logger_of_the_package_masks_secrets() -> None:
    """A new logger would write what the others mask."""
    import re

    import agents_tools
    from agents_tools.text.secrets import _LOGGERS, _mask_record, guard_logs

    used: set[str] = set()
    for path in Path(agents_tools.__file__).parent.rglob("*.py"):
        used |= set(re.findall(r'getLogger\("(agents_tools[^"]*)"\)', path.read_text("utf-8")))
    assert used == set(_LOGGERS)
    guard_logs()
    guard_logs()
    for name in used:
        assert logging.getLogger(name).filters.count(_mask_record) == 1


_PLAIN = """
import asyncio
import sys
from agents_tools import function_tool

def words(context, error):
    raise RuntimeError("Authorization: Bearer cnry-of-a-plain-call-1b7d")

@function_tool(failure_error_function=words)
def fail() -> None:
    raise ValueError

asyncio.run(fail.call(None, "{}"))
assert "agents_tools.agents.run" not in sys.modules
"""


def test_logs_of_a_single_call_are_masked() -> None:
    """Masking needs no other import and no registered secret."""
    done = subprocess.run(  # noqa: S603 - a program from here
        [sys.executable, "-c", _PLAIN], capture_output=True, text=True, check=True
    )
    assert "The failure function of tool 'fail' raised an exception." in done.stderr
    assert "Bearer ***" in done.stderr
    assert "cnry-of-a-plain-call" not in done.stderr
