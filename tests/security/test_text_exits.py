"""One hostile text goes into every input of the library; what leaves at every exit is compared.

The list of exits is read from the code: a new store, user interface, model, exporter or command
fails `test_every_exit_of_the_package_is_covered` until it is listed here.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import logging
import pkgutil
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import agents_tools
from agents_tools import (
    Agent,
    EventStream,
    FunctionTool,
    RunConfig,
    Runner,
    ToolContext,
    ToolError,
    function_tool,
    listen,
    register_secret,
)
from agents_tools.agents import Model, ModelRequest, ModelResponse
from agents_tools.agents.model import reasoning_delta, text_delta
from agents_tools.cli import main
from agents_tools.cli.app import _COMMANDS
from agents_tools.content import (
    MessageOutputItem,
    ToolCallItem,
    ToolOutputFileContent,
    ToolOutputText,
)
from agents_tools.events import Event
from agents_tools.mcp import MCPToolManager, mcp_server
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.openai_chat import OpenAIChatModel
from agents_tools.models.openai_responses import OpenAIResponsesModel
from agents_tools.persistence import MemoryEventStore, SQLiteEventStore
from agents_tools.telemetry import JsonFormatter, chrome_trace, instrument, log_calls
from agents_tools.text import forget_secret
from agents_tools.text.characters import safe_text
from agents_tools.text.secrets import guard_logs
from agents_tools.ui import ag_ui, console, ndjson, sse, vercel
from tests.mcp.hostile_http import HostileHTTP, text_answer, typed
from tests.models.http_server import ScriptedServer, json_answer, scripted_server
from tests.playground.client import playing
from tests.scale import LARGE
from tests.ui.web import ask, served

ROOT = Path(agents_tools.__file__).parent
SECRET = "Sh0rtSecret77Qx"  # noqa: S105 - made up
KEY = "sk-test"
APART = "Sh0rt\x1b[31mSec\x00ret\u202e77Qx"
"""The secret, interrupted by characters that cleaning removes."""

HOSTILE = f"caf\udce9 {APART} \ud83d\ude00 \u200b\x07 end"
MODEL_CALLS = ("speaks", "data", "blocks", "fails", "refuses", "explains", "quits")


def emit_all(context: ToolContext[Any]) -> None:
    """Emit the hostile text in every kind of event, whole and in deltas."""
    context.notify(HOSTILE)
    for start in range(0, len(HOSTILE), 3):
        context.notify(HOSTILE[start : start + 3], is_delta=True)
    context.progress(1, 2, HOSTILE)
    context.artifact(HOSTILE, HOSTILE, mime_type="text/plain")


@function_tool
async def speaks(ctx: ToolContext[Any]) -> str:
    """Return a text after events."""
    emit_all(ctx)
    return HOSTILE


@function_tool
async def data() -> dict[str, list[str]]:
    """Return an object."""
    return {HOSTILE: [HOSTILE]}


@function_tool
async def blocks() -> list[Any]:
    """Return blocks."""
    link = ToolOutputFileContent(url=f"https://a.example/{HOSTILE}", filename=HOSTILE)
    return [ToolOutputText(HOSTILE), link]


@function_tool
async def fails() -> str:
    """Raise an unexpected error."""
    raise ValueError(HOSTILE)


@function_tool
async def refuses() -> str:
    """Raise an error for the model."""
    raise ToolError(HOSTILE)


@function_tool(failure_error_function=lambda _ctx, error: f"Sorry: {error}")
async def explains() -> str:
    """Raise an error that a failure function explains."""
    raise ValueError(HOSTILE)


@function_tool
def quits() -> str:
    """Raise an exception that is no `Exception`."""
    sys.exit(HOSTILE)


TOOLS = [speaks, data, blocks, fails, refuses, explains, quits]


RETURNING = {speaks, data, blocks}


class HostileModel(Model):
    """A model that calls each tool once, and sends the hostile text in deltas."""

    async def respond(self, request: ModelRequest, emit: Callable[[Event], None]) -> ModelResponse:
        """Return calls first, then a message."""
        for start in range(0, len(HOSTILE), 4):
            emit(reasoning_delta(HOSTILE[start : start + 4]))
        for char in HOSTILE:
            emit(text_delta(char))
        if any(getattr(item, "type", "") == "tool_call_item" for item in request.input):
            return ModelResponse(items=[MessageOutputItem(text=HOSTILE)], finish_reason="stop")
        calls = [ToolCallItem(call_id=f"call_{name}", name=name) for name in MODEL_CALLS]
        return ModelResponse(items=calls, finish_reason="tool_calls")


def agent() -> Agent[Any, Any]:
    return Agent("Hostile", model=HostileModel(), tools=TOOLS)


@pytest.fixture(autouse=True)
def _secret() -> Iterator[None]:
    register_secret(SECRET)
    yield
    forget_secret(SECRET)


async def events_of_run(**options: Any) -> list[Event]:
    """Return the events of a run, which has to reach its end."""
    async with Runner.run_streamed(agent(), HOSTILE, **options) as run:
        events = [event async for event in run.stream_events()]
    assert events[-1].to_dict()["status"] == "ok"
    return events


# --- what may leave


def unescaped(text: str) -> str:
    """Return a text with the escapes of JSON and of Python decoded."""
    code = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
    return code.sub(lambda match: chr(int(match[1] or match[2], 16)), text)


def assert_released(text: str, *, person: bool = False) -> None:
    """Fail if a text cannot be encoded, or contains the secret, or what harms a person."""
    text.encode()
    for view in (text, unescaped(text), unescaped(unescaped(text))):
        assert SECRET not in safe_text(view)
    if person:
        assert not re.search("[\x00\x07\x1b\u200b\u202e]", text)


def deltas(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value that a client joins."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name in {"delta", "inputTextDelta", "data", "text"} and isinstance(member, str):
                yield member
            else:
                yield from deltas(member)
    elif isinstance(value, list):
        for item in value:
            yield from deltas(item)


def assert_frames(text: str, *, person: bool) -> None:
    """Check frames of a stream, also the texts that a client joins from several of them."""
    assert_released(text)
    lines = [line.removeprefix("data: ") for line in text.splitlines()]
    frames = [json.loads(line) for line in lines if line.startswith("{")]
    assert frames
    assert_released("".join(part for frame in frames for part in deltas(frame)), person=person)
    for frame in frames:
        assert_json(frame, person=person)


def assert_json(value: Any, *, person: bool) -> None:
    """Check all texts in a JSON value."""
    if isinstance(value, str):
        assert_released(value, person=person)
    elif isinstance(value, dict):
        for name, member in value.items():
            assert_released(name, person=person)
            assert_json(member, person=person)
    elif isinstance(value, list):
        for item in value:
            assert_json(item, person=person)


# --- the exits


async def leave_by_call() -> None:
    for tool in TOOLS:
        outcome = await tool.call(None, "{}")
        assert outcome.status == ("ok" if tool in RETURNING else "tool_error")
        output = outcome.output if isinstance(outcome.output, str) else str(outcome.output)
        assert_released(output, person=True)
        assert_released(outcome.public_message or "")
        if tool in {fails, quits}:
            message = re.sub(r"error [0-9a-f]+", "error", outcome.public_message or "")
            assert "caf" not in message  # the id of an error can have these letters


async def leave_by_on_invoke_tool() -> None:
    for tool in TOOLS:
        assert_released(str(await tool.on_invoke_tool(None, "{}")))


async def leave_by_tool_stream() -> None:
    for tool in TOOLS:
        async with tool.stream() as stream:
            events = [event async for event in stream]
        assert_frames("".join(ndjson.encode(events)), person=False)
        assert_released(str(stream.outcome.output))


async def leave_by_listen() -> None:
    async with listen() as heard:
        await speaks.call(None, "{}")
    assert_released("".join(json.dumps(event.to_dict(), ensure_ascii=False) for event in heard))


async def leave_by_run() -> None:
    result = await Runner.run(agent(), "Go.")
    history = json.dumps(result.to_input_list(), ensure_ascii=False)
    history.encode()  # the text of the model is its own; the outputs of tools are masked
    outputs = [item for item in result.to_input_list() if item.get("type", "").endswith("output")]
    assert_released(json.dumps(outputs, ensure_ascii=False))


async def leave_by_sse() -> None:
    assert_frames("".join(sse.encode(await events_of_run())), person=False)
    answer = await ask(sse.app(agent()), "POST", "/runs", {"input": HOSTILE_INPUT})
    assert_frames(answer.text, person=False)


async def leave_by_ndjson() -> None:
    assert_frames("".join(ndjson.encode(await events_of_run())), person=False)


HOSTILE_INPUT = HOSTILE.encode("utf-8", "replace").decode()
AG_UI = {
    "threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "Go."}],
    "tools": [], "context": [], "state": {}, "forwardedProps": {},
}  # fmt: skip
VERCEL = {
    "id": "c", "trigger": "submit-message",
    "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "Go."}]}],
}  # fmt: skip


async def leave_by_ag_ui() -> None:
    assert_frames("".join(ag_ui.encode(await events_of_run())), person=True)
    answer = await ask(ag_ui.app(agent()), "POST", "/", AG_UI)
    assert_frames(answer.text, person=True)


async def leave_by_vercel() -> None:
    assert_frames("".join(vercel.encode(await events_of_run())), person=True)
    answer = await ask(vercel.app(agent()), "POST", "/", VERCEL)
    assert_frames(answer.text, person=True)


async def leave_by_console() -> None:
    for name in get_args(console.View):
        if name in {"auto", "notebook"}:  # `notebook` shows the same text as `live`
            continue
        shown = io.StringIO()
        with console.Console(view=name, file=shown) as view:
            for event in await events_of_run():
                view.publish(event)
        assert_released(shown.getvalue(), person=name != "ndjson")


async def leave_by_event_stream() -> None:
    stream = EventStream(keep="all")
    await events_of_run(run_config=RunConfig(event_stream=stream))
    assert_frames("".join(ndjson.encode(stream.get_events())), person=False)
    await stream.aclose()


async def leave_by_memory_store() -> None:
    store = MemoryEventStore()
    stream = EventStream(store, keep="all")
    await events_of_run(run_config=RunConfig(event_stream=stream))
    await stream.flush()
    assert_frames("".join(ndjson.encode(await store.read())), person=False)
    await stream.aclose()


async def leave_by_sqlite_store(folder: Path) -> None:
    await _stored(folder / "events.db")
    written = b"".join(file.read_bytes() for file in folder.iterdir())  # noqa: ASYNC240 - small
    assert b"speaks" in written
    assert b"Sh0rt" not in written


async def _stored(path: Path) -> None:
    stream = EventStream(SQLiteEventStore(path, "s"), keep="all")
    await events_of_run(run_config=RunConfig(event_stream=stream))
    await stream.aclose()


async def leave_by_logs() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("agents_tools")
    logger.addHandler(handler)
    try:
        stop = log_calls("agents_tools")
        try:
            await events_of_run()
        finally:
            stop()
        logger.warning("%s", HOSTILE, extra={"field": HOSTILE})
    finally:
        logger.removeHandler(handler)
    assert_frames(written.getvalue(), person=True)


async def leave_by_otel() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with instrument(tracer_provider=provider, capture_content=True):
        await events_of_run()
    spans = exporter.get_finished_spans()
    assert spans
    for span in spans:
        assert_json(json.loads(span.to_json()), person=True)


async def leave_by_timeline() -> None:
    trace = chrome_trace(await events_of_run())
    assert_released(json.dumps(trace, ensure_ascii=False))


async def leave_by_mcp_server() -> None:
    async with served(mcp_server(TOOLS)) as port, MCPToolManager() as manager:
        await manager.add_server("own", url=f"http://127.0.0.1:{port}/mcp")
        for tool in manager.get_tools():
            own = next(one for one in TOOLS if tool.name.endswith(one.name))
            async with tool.stream() as stream:
                events = [event async for event in stream]
            assert stream.outcome.status == ("ok" if own in RETURNING else "tool_error")
            assert_released(str(stream.outcome.output))
            wire = "\n".join(json.dumps(event.to_dict(), ensure_ascii=False) for event in events)
            assert_frames(wire, person=False)
            if own in {fails, quits}:
                assert "caf" not in str(stream.outcome.output)


async def leave_by_mcp_client() -> None:
    async with HostileHTTP() as server, MCPToolManager() as manager:
        await manager.add_server("foreign", url=server.url)
        echo = next(tool for tool in manager.get_tools() if tool.name.endswith("echo"))
        for kind in ("application/json", "text/event-stream"):

            async def answer(request: Any, writer: Any, kind: str = kind) -> None:
                body = json.dumps(text_answer(request, HOSTILE))
                body = f"data: {body}\n\n" if kind.startswith("text") else body
                await typed(kind, body.encode())(request, writer)

            server.next("tools/call", answer)
            outcome = await echo.call(None, '{"text": "a"}')
            assert outcome.status == "ok"
            assert_released(str(outcome.output))


def _model_exit(create: Callable[[ScriptedServer], Model]) -> Callable[[], Awaitable[None]]:
    async def leave() -> None:
        history: list[Any] = [
            {"role": "user", "content": HOSTILE},
            ToolCallItem(call_id="c\ud800", name="speaks", arguments=json.dumps({"a": HOSTILE})),
            {"type": "function_call_output", "call_id": "c\ud800", "output": HOSTILE},
            MessageOutputItem(text=HOSTILE),
            {"role": "user", "content": "Go on."},
        ]
        with scripted_server() as server:
            server.answer(*[json_answer({"error": {"message": HOSTILE}}, status=400)] * 3)
            config = RunConfig(model_retries=0)
            asked = Agent("A", instructions=HOSTILE, model=create(server))
            with pytest.raises(agents_tools.AgentsToolsError) as caught:
                await Runner.run(asked, history, run_config=config)
            sent = server.last.content.decode()
        assert "Go on." in sent
        assert not re.search("[\ud800-\udfff]", json.dumps(json.loads(sent), ensure_ascii=False))
        assert_released(str(caught.value), person=True)

    return leave


async def leave_by_playground() -> None:
    async with playing(*TOOLS, agents={"Hostile": agent()}) as client:
        for tool in TOOLS:
            ended = await client.run({"kind": "tool", "name": tool.name, "arguments": {}})
            assert_released(json.dumps(ended, ensure_ascii=False))


async def leave_by_cli(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await _stored(folder / "events.db")
    database = str(folder / "events.db")
    for words in (
        *(["events", "show", database, *more] for more in ([], ["--timeline"], ["--json"])),
        ["events", "replay", database, "--speed", "1000"],
        *(["events", "export", database, "--as", form] for form in EXPORTED),
        ["events", "list", database],
        *(["call", __file__, tool.name, *more] for tool in TOOLS for more in ([], ["--json"])),
        ["list", __file__],
        *(["show", __file__, tool.name] for tool in TOOLS),
        ["schema", __file__],
    ):
        await asyncio.to_thread(main, words)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert_released(printed.out)
        assert_released(printed.err, person=True)


EXPORTED = ("markdown", "json", "jsonl", "chrome")

# --- the list of exits

EXITS: dict[str, Any] = {
    "call": leave_by_call,
    "on_invoke_tool": leave_by_on_invoke_tool,
    "stream": leave_by_tool_stream,
    "listen": leave_by_listen,
    "run": leave_by_run,
    "ui.sse": leave_by_sse,
    "ui.ndjson": leave_by_ndjson,
    "ui.ag_ui": leave_by_ag_ui,
    "ui.vercel": leave_by_vercel,
    "ui.console": leave_by_console,
    "EventStream": leave_by_event_stream,
    "MemoryEventStore": leave_by_memory_store,
    "SQLiteEventStore": leave_by_sqlite_store,
    "logs": leave_by_logs,
    "otel": leave_by_otel,
    "timeline": leave_by_timeline,
    "mcp.server": leave_by_mcp_server,
    "mcp.client": leave_by_mcp_client,
    "models.openai_chat": _model_exit(lambda s: OpenAIChatModel("m", base_url=f"{s.url}/v1", api_key=KEY)),
    "models.openai_responses": _model_exit(lambda s: OpenAIResponsesModel("m", base_url=f"{s.url}/v1", api_key=KEY)),
    "models.anthropic": _model_exit(lambda s: AnthropicModel("m", base_url=s.url, api_key=KEY)),
    "playground": leave_by_playground,
    "cli": leave_by_cli,
}  # fmt: skip

COVERED_BY = {
    "invoke": "call",  # returns the value of the function itself
    "invoke_sync": "call",
    "StoredLog": "EventStream",  # stores the events that a stream has masked
    "models.fallback": "run",  # another model sends the request
    "models.limited": "run",  # another model sends the request
    "models.local": "call",  # runs in this process
    "models.pydantic_ai": "run",  # the request is built from the same cleaned items
    "export": "call",  # every adapter returns `CallOutcome.output`
    "cli.run": "ui.console",
    "cli.chat": "ui.console",
    "cli.mcp": "mcp.client",
    "cli.serve": "mcp.server",
    "cli.dev": "playground",
    "cli.check": "cli",
    "cli.doctor": "cli",
    "cli.version": "cli",
}
"""Exits that send what another exit has released."""


@pytest.mark.parametrize("name", EXITS)
async def test_a_hostile_text_leaves_without_harm(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is valid Unicode, the secret in it is masked, and no call or run fails because of it."""
    given = {"folder": tmp_path, "capsys": capsys}
    leave = EXITS[name]
    await leave(**{one: given[one] for one in inspect.signature(leave).parameters})


@pytest.mark.scaled
async def test_a_large_hostile_text_is_bounded() -> None:
    """A result is cut to the limit of its tool, and an error to two thousand characters."""
    large = HOSTILE + "x" * (8 * LARGE) + HOSTILE

    @function_tool
    async def result() -> str:
        return large

    @function_tool
    async def error() -> str:
        raise ToolError(large)

    for tool, limit in ((result.with_(max_output=10_000), 10_000), (error, 2_000)):
        for context in (None, ToolContext(None, emit=lambda _event: None)):
            outcome = await tool.call(context, "{}")
            assert isinstance(outcome.output, str)
            assert 1_000 < len(outcome.output) <= limit
            assert_released(outcome.output)


def trees(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that contain one of the words: the path in the package, and the tree."""
    for file in sorted(ROOT.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if any(word in source for word in words):
            parts = file.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts).removesuffix(".__init__"), ast.parse(source)


def public_modules(package: str) -> set[str]:
    found = pkgutil.iter_modules([str(ROOT / package.replace(".", "/"))])
    return {f"{package}.{one.name}" for one in found if not one.name.startswith("_")}


def exits_in_the_code() -> set[str]:
    """Return the exits that the code has."""
    exits = public_modules("ui") | public_modules("models")
    exits |= {name.partition(".")[2] for name in public_modules("telemetry")}
    exits |= {"export"} if public_modules("export") else set()
    exits |= {f"cli.{module}".removesuffix("_") for module, _ in _COMMANDS.values()}
    exits |= HANDLES & set(dir(FunctionTool))
    for module, tree in trees("def append", "def app(", "def mcp_server("):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and module.startswith("persistence."):
                methods = {one.name for one in node.body if isinstance(one, FUNCTIONS)}
                bases = {ast.unparse(base) for base in node.bases}
                if {"append", "read"} <= methods and "Protocol" not in bases:
                    exits.add(node.name)
            if isinstance(node, FUNCTIONS) and node.name in {"app", "mcp_server"}:
                exits.add(_exit_of_app(module))
    return exits


HANDLES = {"call", "invoke", "invoke_sync", "stream", "on_invoke_tool"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _exit_of_app(module: str) -> str:
    parts = module.split(".")
    return parts[0] if parts[0] == "playground" else ".".join(parts[:2])


def test_every_exit_of_the_package_is_covered() -> None:
    """A new way out for text has to be cleaned, masked and bounded like the others."""
    known = {
        *EXITS,
        *COVERED_BY,
        *(f"cli.{one}" for one in ("list", "show", "call", "schema", "events")),
    }
    assert exits_in_the_code() <= known
    assert set(COVERED_BY.values()) <= set(EXITS)


OWN_CLEANING = {
    "builtin": "one line per line of a file; the result of the tool is released afterwards",
    "mcp._sanitize": "rewrites definitions of tools, before they are compared with their pins",
    "agents.pair_joiner": "what a model says is not masked here, but when an event is emitted",
    "content.items": "what a model says and reads is not masked",
    "events": "the wire form of events; a store keeps the text as it is",
    "content.json_value": "results, which are released afterwards",
    "mcp.client.http": "the JSON of a server, before it is parsed",
    "agents.model_caller": "the instructions of a model",
    "models": "the arguments of a call as an object of a request",
    "tool.result": "a fast check of plain results",
}
OWN_MASKING = {
    "persistence.stream": "deltas, and secrets of one stream",
    "persistence.marks": "puts marks in the place of secrets, to restore them",
}


def test_only_listed_modules_clean_or_mask_text_on_their_own() -> None:
    """The order of cleaning, masking and bounding is decided in `agents_tools.text` alone."""
    cleaners = importers("text.characters")
    maskers = importers(
        "text.secrets", {"mask", "mask_registered", "mask_json", "mask_encoded", "registered_forms"}
    )
    maskers |= importers("text.secret_matcher")
    assert {one for one in cleaners if not one.startswith(tuple(OWN_CLEANING))} == set()
    assert {one for one in maskers if not one.startswith(tuple(OWN_MASKING))} == set()


def importers(module: str, names: set[str] | None = None) -> set[str]:
    """Return the modules outside `text` that import names from a module."""
    return {
        importer
        for importer, tree in trees(f"from agents_tools.{module} import")
        if not importer.startswith("text")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == f"agents_tools.{module}"
        if names is None or names & {alias.name for alias in node.names}
    }


def test_every_logger_of_the_package_is_guarded() -> None:
    """Its handlers belong to the application, so the records are cleaned before."""
    names = {
        call.args[0].value
        for _, tree in trees("getLogger")
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("getLogger")
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    guard_logs()
    for name in sorted(
        one for one in names if isinstance(one, str) and one.startswith("agents_tools")
    ):
        written = io.StringIO()
        handler = logging.StreamHandler(written)
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        try:
            logger.error("%s", HOSTILE)
        finally:
            logger.removeHandler(handler)
        assert "caf" in written.getvalue()
        assert_released(written.getvalue(), person=True)
