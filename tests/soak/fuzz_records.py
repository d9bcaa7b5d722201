"""Fuzzes records: events, states, envelopes and files that were damaged are refused in words."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_tools import Agent, Runner, Usage, function_tool, streaming_tool
from agents_tools.agents import ModelResponse, RunState
from agents_tools.content import input_items
from agents_tools.errors import AgentsToolsError
from agents_tools.events import ToolProgressEvent, event_from_dict
from agents_tools.execution import CallEnvelope, CallEvent
from agents_tools.mcp import ToolPins
from agents_tools.mcp.config import load_config
from agents_tools.persistence import SQLiteEventStore
from agents_tools.policies import needs_approval
from agents_tools.testing import RecordedCall, ScriptedModel, ToolRecorder, tool_call
from tests.soak._made_cases import Cases
from tests.soak._made_texts import a_bomb, spoiled_text, spoiled_value, written
from tests.soak.campaign import Budget, Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from random import Random

__all__ = ["run"]


@dataclass(frozen=True)
class _Kind:
    """A kind of record.

    Attributes:
        name: What it is called.
        read: Reads one.
        good: What it reads: JSON values, or the bytes of files.
        again: Writes what was read as JSON.
    """

    name: str
    read: Callable[[Any], Any]
    good: Sequence[Any]
    again: Callable[[Any], Any] | None = None


def run(budget: Budget) -> Outcome:
    """Read damaged records of all kinds in turn."""
    cases = Cases("fuzz_records", budget)
    logging.getLogger("agents_tools").setLevel(logging.CRITICAL)
    try:
        with tempfile.TemporaryDirectory() as folder:
            kinds = _kinds(Path(folder))
            for number, rng in cases:
                _check(cases, rng, kinds[number % len(kinds)])
    finally:
        logging.getLogger("agents_tools").setLevel(logging.NOTSET)
    return cases.outcome()


def _check(cases: Cases, rng: Random, kind: _Kind) -> None:
    good = rng.choice(kind.good)
    given = _damaged_file(rng, good) if isinstance(good, bytes) else _damaged(rng, good)
    cases.count += 1
    wrong = _wrong(cases, kind, given)
    if wrong is not None:
        cases.found(f"{kind.name}: {wrong[0]}", wrong[1], kind.name, f"reading {given!r:.6000}")


def _wrong(cases: Cases, kind: _Kind, given: Any) -> tuple[str, str] | None:
    """Return the fault in reading a record."""
    began = time.thread_time()
    try:
        record = kind.read(given)
    except AgentsToolsError as error:
        cases.add(f"{kind.name}: refused")
        said = str(error)
        if not 15 < len(said) < 4_000:
            return "message", f"the error says {said[:500]!r} ({len(said)} characters)"
        record = None
    except Exception as error:  # noqa: BLE001 - what is looked for
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.name} of {last.filename.rpartition('/')[2]}"
        return f"{type(error).__name__} in {place}", f"it raised {error!r:.500} in {place}"
    if (took := time.thread_time() - began) > 1 + len(repr(given)) * 1e-5:
        return "slow", f"reading took {took:.2f} s"
    if record is None or kind.again is None:
        return None
    cases.add(f"{kind.name}: read")
    try:
        json.dumps(kind.again(record)).encode()
    except Exception as error:  # noqa: BLE001 - what is looked for
        return "no way back", f"what was read cannot be written again: {error!r:.500}"
    return None


def _damaged(rng: Random, good: Any) -> Any:
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        good = spoiled_value(rng, good)
    return good


def _damaged_file(rng: Random, good: bytes) -> bytes:
    """Damage a file: JSON as JSON, and any bytewise."""
    if good.startswith(b"{") and rng.random() < 0.6:
        text = written(_damaged(rng, json.loads(good)))
        if rng.random() < 0.3:
            text = spoiled_text(rng, text)
        if rng.random() < 0.02:
            text = a_bomb(rng, ("mcpServers", "calls", "servers"))
        return text.encode("utf-8", "surrogatepass")
    data = bytearray(good)
    for _ in range(rng.choice((1, 1, 5, 50))):
        at = rng.randrange(len(data) or 1)
        size = rng.choice((1, 1, 4, 100))
        match rng.randrange(4):
            case 0:
                del data[at : at + size]
            case 1:
                data[at:at] = rng.randbytes(size)
            case 2:
                data[at : at + size] = bytes(size)
            case _:
                data[at : at + size] = rng.randbytes(size)
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.1 else data)


# --- good ones


@function_tool
async def look(where: str) -> str:
    """Look at something."""
    return f"nothing at {where}"


@needs_approval
@function_tool
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@streaming_tool
async def work(steps: int) -> AsyncGenerator[ToolProgressEvent]:
    """Work."""
    for step in range(steps):
        yield ToolProgressEvent(step, total=steps, message="so far")


async def _told() -> tuple[list[dict[str, Any]], RunState]:
    """Return the events of a run, and the state in which it waits."""
    steps = [
        [tool_call("look", where="shelf"), tool_call("work", steps=2)],
        [tool_call("pay", amount=1), tool_call("look", where="table")],
    ]
    agent = Agent("helper", model=ScriptedModel(steps), tools=[look, pay, work])
    streamed = Runner.run_streamed(agent, "Go.")
    events = [event.to_dict() async for event in streamed.stream_events()]
    return events, streamed.to_state()


_SERVERS: dict[str, Any] = {
    "mcpServers": {
        "files": {
            "command": "npx",
            "args": ["-y", "server@1.2.3", "${HOME:-/tmp}"],
            "env": {"KEY": "${env:PATH}"},
            "timeout": 30,
        },
        "far": {
            "type": "http",
            "url": "https://example.com/mcp",
            "headers": {"Authorization": "Bearer ${NONE:-x}"},
            "disabled": False,
        },
    }
}
_TOOL = {"name": "look", "description": "Look.", "inputSchema": {"type": "object"}}


def _kinds(folder: Path) -> list[_Kind]:
    events, state = asyncio.run(_told())
    state_json = state.to_json()
    envelope = CallEnvelope(call_id="c1", tool="look", trace={"traceparent": "00-1-2-01"})
    said = CallEvent(call_id="c1", attempt=1, seq=0, kind="event", time=1.5, payload=events[0])
    answer = ModelResponse(items=state.history, usage=Usage(requests=1), response_id="r")
    by_key: Callable[[Any], Any] = lambda record: record.to_dict()  # noqa: E731
    return [
        _Kind("Event", event_from_dict, events, by_key),
        _Kind("RunState", RunState.from_dict, [json.loads(state_json)], by_key),
        _Kind("RunState as text", RunState.from_json, [state_json.encode()], by_key),
        _Kind("CallEnvelope", CallEnvelope.from_dict, [envelope.to_dict()], by_key),
        _Kind("CallEvent", CallEvent.from_dict, [said.to_dict()], by_key),
        _Kind("ModelResponse", ModelResponse.from_dict, [answer.to_dict()], by_key),
        _Kind("Usage", Usage.from_dict, [Usage(requests=1).to_dict()], by_key),
        _Kind("items", lambda given: input_items(given, "items"), [_history(state)]),
        _Kind("MCP config", _configured, [_SERVERS]),
        *_files(folder, events),
    ]


def _history(state: RunState) -> Any:
    return [item.to_dict() for item in state.history]


def _files(folder: Path, events: list[dict[str, Any]]) -> list[_Kind]:
    """Make one file of each kind, and what reads it."""

    def into(name: str, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
        def reading(data: bytes) -> Any:
            path = folder / name
            path.write_bytes(data)
            return read(path)

        return reading

    pins = folder / "pins.json"
    ToolPins(pins).check("files", [_TOOL])
    recorder = folder / "calls.json"
    call = RecordedCall(tool="look", arguments="{}", output="a", error=("ToolError", "no"))
    ToolRecorder([call, replace(call, error=None)]).save(recorder)
    toml = b'[mcp_servers.files]\ncommand = "npx"\nargs = ["a"]\nstartup_timeout_sec = 3\n'
    return [
        _Kind("config file", into("mcp.json", load_config), [json.dumps(_SERVERS).encode()]),
        _Kind("TOML file", into("config.toml", load_config), [toml]),
        _Kind("pins file", into("pins.json", _pinned), [pins.read_bytes()]),
        _Kind("recording", into("calls.json", ToolRecorder.load), [recorder.read_bytes()]),
        _Kind("event store", into("events.db", _stored), [_a_store(folder, events)]),
    ]


def _configured(given: Any) -> Any:
    return load_config(given if isinstance(given, dict) else {"mcpServers": given})


def _pinned(path: Path) -> Any:
    return ToolPins(path).check("files", [_TOOL])


def _a_store(folder: Path, events: list[dict[str, Any]]) -> bytes:
    path = folder / "good.db"
    store = SQLiteEventStore(path)
    store.append([event_from_dict({**event, "id": -1}) for event in events]).result(10)
    store.close()
    return path.read_bytes()


def _stored(path: Path) -> Any:
    """Read all events, and add one: each works or says why not."""
    for name in (path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
        name.unlink(missing_ok=True)
    store = SQLiteEventStore(path)
    try:
        store.read().result(10)
        store.sessions().result(10)
        store.append([ToolProgressEvent(1, message="one more")]).result(10)
    finally:
        store.close()
    return None
