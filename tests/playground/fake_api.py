"""A fake of the playground's server: the real page, and runs that follow a script."""

from __future__ import annotations

import base64
import json
import struct
import threading
import zlib
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs, unquote, urlsplit

from agents_tools.playground.page_files import SECURITY_HEADERS, pages

if TYPE_CHECKING:
    import socket
    from collections.abc import Generator

TOKEN = "secret-token"  # noqa: S105 - the test's own
STATIC = files("agents_tools.playground").joinpath("static")
Json = dict[str, Any]

RICH: Json = {
    "type": "object",
    "required": ["query", "limit", "pet", "place"],
    "properties": {
        "query": {"type": "string", "description": "What to look for."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "How many."},
        "exact": {"type": "boolean", "default": False},
        "order": {"enum": ["new", "old", "best"], "default": "best"},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$", "maxLength": 3},
        "version": {"const": 2},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "pet": {
            "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
            "discriminator": {"propertyName": "kind"},
            "description": "Which animal it is about.",
        },
        "place": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]},
        "weights": {"type": "object", "additionalProperties": {"type": "number"}},
        "since": {"type": "string", "format": "date"},
        "when": {"type": "string", "format": "date-time"},
        "data": {"type": "string", "contentEncoding": "base64"},
        "tree": {"$ref": "#/$defs/Tree"},
        "size": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "extra": {},
    },
    "$defs": {
        "Cat": {
            "type": "object",
            "title": "Cat",
            "required": ["kind"],
            "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer", "default": 9}},
        },
        "Dog": {
            "type": "object",
            "title": "Dog",
            "required": ["kind", "good"],
            "properties": {"kind": {"const": "dog"}, "good": {"type": "boolean"}},
        },
        "Tree": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            },
        },
    },
}
URL: Json = {
    "type": "object",
    "required": ["url"],
    "properties": {"url": {"type": "string", "format": "uri", "description": "Where to begin."}},
}
NONE: Json = {"type": "object", "properties": {}, "additionalProperties": False}


def tool(name: str, description: str, schema: Json, **more: Any) -> Json:
    """Return the entry of a tool in the list."""
    return {
        "name": name,
        "description": description,
        "kind": "function",
        "annotations": None,
        "destructive": False,
        "needs_approval": False,
        "schema": schema,
        "output_schema": None,
        "strict": True,
        "source": {"file": "examples/tools.py", "line": 12},
        "example": None,
        **more,
    }


TOOLS = [
    tool(
        "search",
        "Search the archive.\n\nGives the best matches first.",
        RICH,
        annotations={"readOnlyHint": True, "openWorldHint": True},
        example={"query": "cats", "limit": 3, "pet": {"kind": "cat"}, "place": [1.5, "x"]},
        output_schema={"type": "array", "items": {"type": "string"}},
    ),
    tool("crawl", "Read the pages of a site, with progress.", URL, kind="streaming"),
    tool("delete_file", "Delete a file for good.", URL, destructive=True),
    tool("deploy", "Put a version online.", URL, needs_approval=True),
    tool("flood", "Says a great deal.", NONE, kind="streaming"),
    tool("picture", "Draws something.", NONE),
]
AGENTS: list[Json] = [
    {"name": "crowd", "instructions": "You call a great deal.", "tools": [], "model": None},
    {"name": "stumbler", "instructions": "You begin twice.", "tools": [], "model": None},
    {
        "name": "researcher",
        "instructions": "You find things out and say where you found them.",
        "tools": ["search", "crawl"],
        "model": "scripted",
    },
]


class Run:
    """A run and its events so far."""

    def __init__(self, run_id: str, kind: str, name: str, given: Json) -> None:
        self.told: Json = {
            "id": run_id,
            "kind": kind,
            "name": name,
            "status": "running",
            "started": datetime.now(UTC).isoformat(),
            "duration": None,
            "summary": "",
            "generation": 1,
            "session": None,
            **given,
        }
        self.events: list[Json] = []
        self.result: Json = {"model": [], "value": None, "error": None, "usage": None}
        self.approvals: list[Json] = []
        self.requests: list[Json] = []
        self.prompts: list[Json] = []

    def say(self, kind: str, *path: str, name: str | None = None, **payload: Any) -> None:
        """Add an event."""
        self.events.append(
            {
                "type": kind,
                "id": len(self.events),
                "timestamp": datetime.now(UTC).isoformat(),
                "path": list(path),
                "tool_name": name,
                **payload,
            }
        )

    def item(self, name: str, item: Json, *path: str) -> None:
        """Add a finished item of a conversation."""
        self.say("run_item_stream_event", *path, name=None, item=item)
        self.events[-1]["name"] = name

    def call(self, name: str, arguments: Json, *path: str) -> None:
        """Begin a call."""
        text = json.dumps(arguments)
        item = {"call_id": path[-1], "name": name, "arguments": text}
        self.item("tool_called", item, *path[:-1])
        self.say("tool_stream_start_event", *path, name=name, input_args=arguments)

    def answer(self, output: str, *path: str, name: str, status: str = "ok") -> None:
        """End a call."""
        self.say("tool_stream_end_event", *path, name=name, status=status, duration=0.42)
        item = {"call_id": path[-1], "name": name, "output": output, "status": status}
        self.item("tool_output", item, *path[:-1])

    def wait(self, call: Json) -> None:
        """Stop for the approval of a call."""
        self.item("tool_approval_requested", {**call, "path": []})
        self.say("run_finished_event", status="interrupted", output=None, usage=None, error=None)
        self.told["status"] = "interrupted"
        self.approvals = [{**call, "path": []}]

    def end(self, status: str = "ok", text: str = "") -> None:
        """End the run."""
        self.say("run_finished_event", status=status, output=text, usage=None, error=None)
        self.told |= {"status": status, "duration": 1.25, "summary": text[:120]}
        self.result |= {"model": [{"type": "text", "text": text}], "value": text}
        if status == "cancelled":
            self.result |= {"model": [], "value": None, "error": "The run was cancelled."}


class FakeApi:
    """The fake server, with methods that trigger events in it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.reset()
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.api = self
        self.thread = threading.Thread(
            target=self.server.serve_forever,
            args=(0.02,),
            name="agents-tools fake api",
            daemon=True,
        )
        self.thread.start()

    @property
    def url(self) -> str:
        """Return the address of the page with its token."""
        return f"http://127.0.0.1:{self.server.server_port}/#token={TOKEN}"

    def reset(self) -> None:
        """Reset the state, as a new server would have it."""
        with self.changed:
            self.runs: list[Run] = []
            self.posted: list[tuple[str, Any]] = []
            self.tools, self.agents = list(TOOLS), list(AGENTS)
            self.changes: list[Json] = []
            self.problems: list[Json] = []
            self.lost = False
            self.era = getattr(self, "era", 0) + 1
            self.changed.notify_all()

    def close(self) -> None:
        """Stop the server and close all connections."""
        self.reset()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @contextmanager
    def going(self) -> Generator[Run]:
        """Let the newest run continue with the next part of its script."""
        with self.changed:
            self.changed.wait_for(lambda: self.runs, 8)  # the page may still be sending its request
            yield self.runs[-1]
            self.changed.notify_all()

    def lose(self, lost: bool = True) -> None:
        """Break all connections and refuse new ones, or accept them again."""
        with self.changed:
            self.lost = lost
            self.era += 1
            self.changed.notify_all()

    def change(self, tools: list[Json], problems: list[Json]) -> None:
        """Pretend that the target's file has changed."""
        with self.changed:
            self.tools, self.problems = tools, problems
            self.changes.append({"generation": len(self.changes) + 2, "problems": problems})
            self.changed.notify_all()

    def start(self, kind: str, name: str, given: Json) -> Run:
        """Start a run and send the first part of its script."""
        run = Run(f"run{len(self.runs) + 1}", kind, name, given)
        with self.changed:
            self.runs.append(run)
            self.changed.notify_all()
        run.say("run_started_event", run_id=run.told["id"], agent=name)
        if kind == "agent":
            _AGENTS[name](run, given["input"])
        else:
            _SCRIPTS.get(name, _plain)(run, given["arguments"])
        return run


def _plain(run: Run, given: Json) -> None:
    name = run.told["name"]
    run.call(name, given, "c1")
    run.answer(f"{name} is done", "c1", name=name)
    run.end(text=f"{name} is done")


def _crawl(run: Run, given: Json) -> None:
    run.call("crawl", given, "c1")
    say = "notify_stream_event"
    run.say(say, "c1", name="crawl", data="opening the site", level="info", tag="net")
    run.say(say, "c1", name="crawl", data="one page is slow", level="warning", tag=None)
    run.say(say, "c1", name="crawl", data="<b>first page</b> ", is_delta=True)
    progress = {"current": 3, "total": 10, "message": "reading page 3"}
    run.say("tool_progress_event", "c1", name="crawl", **progress)


def _flood(run: Run, given: Json) -> None:
    run.call("flood", given, "c1")
    for index in range(10_000):
        run.say("notify_stream_event", "c1", name="flood", data=f"word{index} ", is_delta=True)
    for index in range(3_000):
        run.say("notify_stream_event", "c1", name="flood", data=f"line {index}", level="info")
    run.answer("much", "c1", name="flood")
    run.end(text="much")


def _deploy(run: Run, given: Json) -> None:
    call: Json = {"call_id": "c1", "name": "deploy", "arguments": json.dumps(given)}
    run.item("tool_called", call)
    run.wait(call)


def _picture(run: Run, given: Json) -> None:
    run.call("picture", given, "c1")
    data = {"encoding": "base64", "data": base64.b64encode(png()).decode()}
    drawn = {"data": data, "uri": None, "mime_type": "image/png"}
    run.say("tool_artifact_event", "c1", name="picture", **drawn)
    run.events[-1]["name"] = "plot.png"
    run.answer("drawn", "c1", name="picture")
    run.end(text="drawn")


def _as_agent(run: Run, text: str) -> None:
    run.say("message_event", content=text, role="user")
    raw = "raw_response_event"
    run.say(raw, data={"type": "response.output_item.added", "item": {"type": "message"}})
    for word in ("Let me ", "look that ", "up."):
        run.say(raw, data={"type": "response.output_text.delta", "delta": word})
    said = {"content": [{"type": "output_text", "text": "Let me look that up."}]}
    run.item("message_output_created", said)
    run.call("ask_expert", {"input": "cats"}, "c1")
    run.say("run_started_event", "c1", name="ask_expert", run_id="inner", agent="expert")
    run.call("search", {"query": "cats"}, "c1", "c1")
    done = {"current": 2, "total": 2, "message": None}
    run.say("tool_progress_event", "c1", "c1", name="search", **done)
    run.answer("three cats", "c1", "c1", name="search")
    run.call("crawl", {"url": "https://cats.example"}, "c1", "c2")
    run.answer("no such site", "c1", "c2", name="crawl", status="tool_error")
    ended = {"status": "ok", "output": "cats", "usage": None, "error": None}
    run.say("run_finished_event", "c1", name="ask_expert", **ended)
    run.answer("Three cats.", "c1", name="ask_expert")
    final = {"content": [{"type": "output_text", "text": "There are three cats."}]}
    run.item("message_output_created", final)
    run.end(text="There are three cats.")
    parts = [
        {"agent": "researcher", "model": "large", "requests": 1, "cost": 1.25},
        {"agent": "expert", "model": "small", "requests": 1, "cost": None},
    ]
    run.result["usage"] = {"requests": 2, "input_tokens": 1234, "cost": None, "breakdown": parts}


def _stumble(run: Run, text: str) -> None:
    raw = "raw_response_event"
    begun = {"type": "function_call", "call_id": "a", "name": "f"}
    for data in (
        {"type": "response.output_text.delta", "delta": "wrong"},
        {"type": "response.output_item.added", "item": begun},
        {"type": "response.function_call_arguments.delta", "delta": "{", "call_id": "a"},
        {"type": "agents_tools.retry", "attempt": 1},
        {"type": "response.output_text.delta", "delta": "rig"},
        {"type": "response.output_text.delta", "delta": "ht"},
    ):
        run.say(raw, data=data)
    run.item("message_output_created", {"content": [{"type": "output_text", "text": "right."}]})
    run.call("g", {}, "b")
    run.answer("x", "b", name="g")
    run.item("message_output_created", {"content": [{"type": "output_text", "text": "whole"}]})
    run.end(text="whole")


def _crowd(run: Run, text: str) -> None:
    for index in range(1_000):
        run.call("search", {"query": f"cat {index}"}, f"c{index}")
        run.answer("a cat", f"c{index}", name="search")
    run.call("draw", {}, "drawn")
    for index in range(300):
        drawn = {"data": f"drawing {index}", "uri": None, "mime_type": "text/plain"}
        run.say("tool_artifact_event", "drawn", name="draw", **drawn)
        run.events[-1]["name"] = f"{index}.txt"
    run.answer("drawn", "drawn", name="draw")
    run.end(text="many cats")


_AGENTS = {"researcher": _as_agent, "stumbler": _stumble, "crowd": _crowd}
_SCRIPTS = {"crawl": _crawl, "flood": _flood, "deploy": _deploy, "picture": _picture}


def png(side: int = 96) -> bytes:
    """Draw a small picture."""
    rows = b"".join(
        b"\0" + bytes(v for x in range(side) for v in (x * 2, y * 2, 180)) for y in range(side)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def faults_of(given: Json, schema: Json) -> list[Json]:
    """Find what is missing, and a limit that is no number from 1 to 50."""
    missing = [key for key in schema.get("required", ()) if key not in given]
    faults: list[Json] = [{"path": [key], "message": "is missing"} for key in missing]
    limit = given.get("limit", 1)
    if not isinstance(limit, int) or not 1 <= limit <= 50:
        faults.append({"path": ["limit"], "message": f"must be 1 to 50, got {limit!r}"})
    return faults


class _Server(ThreadingHTTPServer):
    api: FakeApi
    daemon_threads = True

    def process_request(self, request: Any, client_address: Any) -> None:
        threading.Thread(
            target=self.process_request_thread,
            args=(request, client_address),
            name="agents-tools fake api request",
            daemon=True,
        ).start()

    def handle_error(self, request: socket.socket | Any, client_address: Any) -> None:
        """Ignore the error when a page disconnects."""


class _Handler(BaseHTTPRequestHandler):
    @property
    def api(self) -> FakeApi:
        """The server's script."""
        return cast("_Server", self.server).api

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the tests' output clean."""

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_DELETE(self) -> None:
        self._handle("DELETE")

    def _handle(self, method: str) -> None:
        parts = urlsplit(self.path)
        page = _PAGES.get(parts.path)
        if page is not None:
            return self._send(200, page.data, page.kind)
        if self.api.lost:
            return self.connection.close()
        if self.headers["authorization"] != f"Bearer {TOKEN}":
            return self._json(401, {"error": {"status": 401, "message": "The token is wrong."}})
        steps = [unquote(step) for step in parts.path.split("/")[2:]]
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        text = self.rfile.read(int(self.headers["content-length"] or 0))
        return self._api(method, steps, query, json.loads(text or "null"))

    def _api(self, method: str, steps: list[str], query: dict[str, str], body: Any) -> None:
        api = self.api
        if method != "GET":
            api.posted.append((f"{method} {'/'.join(steps)}", body))
        match method, *steps:
            case "GET", "info":
                self._json(200, _info(api))
            case "GET", "tools":
                self._json(200, {"generation": 1, "tools": api.tools, "agents": api.agents})
            case "GET", "tools", name, "views":
                self._json(200, _views(name))
            case "POST", "tools", name, "check":
                self._json(200, _verdict(body["arguments"], _schema(api, name)))
            case "POST", "runs":
                self._start(body)
            case "GET", "runs":
                told = [run.told for run in reversed(api.runs)]
                self._json(200, {"runs": told, "more": False})
            case "DELETE", "runs", *ids:
                api.runs = [run for run in api.runs if ids and run.told["id"] not in ids]
                self._send(204, b"", "text/plain")
            case "GET", "agents", name:
                agent = next(one for one in api.agents if one["name"] == name)
                self._json(200, {key: agent[key] for key in ("instructions", "model")})
            case "GET", "sessions", session:
                told = [run.told for run in api.runs if run.told["session"] == session]
                self._json(200, {"runs": told, "more": False})
            case "GET", "changes":
                self._stream(None, int(query["generation"]))
            case method, "runs", run_id, *rest:
                self._run(_run(api, run_id), rest, query, body)
            case _:
                self._json(404, {"error": {"status": 404, "message": "There is no such thing."}})

    def _start(self, body: Json) -> None:
        api = self.api
        if body["kind"] == "agent":
            given = {"input": body["input"], "session": body.get("session")}
            run = api.start("agent", body["name"], given)
            return self._json(202, {"run_id": run.told["id"]})
        faults = faults_of(body["arguments"], _schema(api, body["name"]))
        if faults:
            error = {"code": "arguments", "message": "The arguments are wrong.", "faults": faults}
            return self._json(422, {"error": error})
        if body["name"] == "delete_file" and not body["confirmed"]:
            return self._json(409, {"error": {"code": "confirm", "message": "Are you sure?"}})
        run = api.start("tool", body["name"], {"arguments": body["arguments"]})
        return self._json(202, {"run_id": run.told["id"]})

    def _run(self, run: Run, rest: list[str], query: dict[str, str], body: Any) -> None:
        api = self.api
        match rest:
            case []:
                self._json(200, {**run.told, "result": run.result, "approvals": run.approvals})
            case ["requests"]:
                self._json(200, {"requests": run.requests})
            case ["requests", number]:
                self._json(200, run.prompts[int(number)])
            case ["events"]:
                self._stream(run, int(query["after"]))
            case ["cancel"]:
                with api.changed:
                    run.answer("cancelled", "c1", name=run.told["name"], status="cancelled")
                    run.end("cancelled")
                    api.changed.notify_all()
                self._json(200, {"cancelled": True})
            case ["approvals"]:
                self._decided(run, body["decisions"][0])
                self._json(200, {"ok": True})
            case ["rerun"]:
                again = api.start("tool", run.told["name"], {"arguments": run.told["arguments"]})
                self._json(202, {"run_id": again.told["id"]})
            case _:
                name = f"test_{run.told['name']}.py"
                self._json(200, {"name": name, "text": f"as {query['as']}: {run.told['name']}"})

    def _decided(self, run: Run, decision: Json) -> None:
        run.approvals = []
        run.say("run_started_event", run_id=run.told["id"], agent="deploy")
        if decision["approve"]:
            run.call("deploy", {"url": "approved"}, "c1")
            run.answer("deployed", "c1", name="deploy")
            run.end(text="deployed")
        else:
            run.answer(decision.get("message", "no"), "c1", name="deploy", status="denied")
            run.end(text="denied")

    def _stream(self, run: Run | None, after: int) -> None:
        """Send the available and the following events, until the run or the connection has ended."""
        api = self.api
        era = api.era
        if run is not None and run.told["status"] != "running" and after >= len(run.events) - 1:
            return self._send(204, b"", "text/plain")
        self._head(200, "text/event-stream")
        while api.era == era:
            with api.changed:
                frames = _frames(api, run, after)
                if not frames:
                    if run is not None and run.told["status"] != "running":
                        return None
                    api.changed.wait(0.5)
                    continue
            after += len(frames)
            self.wfile.write("".join(frames).encode())
            self.wfile.flush()
        return None

    def _json(self, status: int, value: Any) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self._head(status, kind)
        self.wfile.write(data)

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        for name, value in SECURITY_HEADERS:
            self.send_header(name.decode(), value.decode())
        self.end_headers()


_PAGES = pages()


def _frames(api: FakeApi, run: Run | None, after: int) -> list[str]:
    if run is None:
        news = [change for change in api.changes if change["generation"] > after]
        return [f"event: reload\ndata: {json.dumps(change)}\n\n" for change in news]
    return [
        f"id: {run.told['id']}:{event['id']}\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n"
        for event in run.events[after + 1 :]
    ]


def _info(api: FakeApi) -> Json:
    return {
        "name": "agents-tools",
        "version": "0.2.0",
        "target": "examples/tools.py",
        "history": True,
        "read_only": False,
        "generation": len(api.changes) + 1,
        "problems": api.problems,
    }


def _run(api: FakeApi, run_id: str) -> Run:
    return next(run for run in api.runs if run.told["id"] == run_id)


def _schema(api: FakeApi, name: str) -> Json:
    return next(one["schema"] for one in api.tools if one["name"] == name)


def _verdict(given: Json, schema: Json) -> Json:
    faults = faults_of(given, schema)
    if not faults:
        return {"ok": True}
    return {"ok": False, "faults": faults, "message": "The arguments are wrong."}


def _views(name: str) -> Json:
    def view(provider: str, label: str, tokens: int, strict: bool) -> Json:
        shape = {"type": "function", "name": name, "parameters": RICH}
        return {
            "id": provider,
            "label": label,
            "json": shape,
            "tokens": tokens,
            "strict": strict,
            "note": None,
        }

    change = {"path": "limit", "kind": "changed", "breaking": True, "text": "now at most 50"}
    return {
        "views": [view("openai", "OpenAI Responses", 412, True), view("mcp", "MCP", 388, False)],
        "diff": {"since": "2026-11-20T09:00:00Z", "changes": [change]},
    }
