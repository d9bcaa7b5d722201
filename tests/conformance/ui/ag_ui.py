"""Every scenario, read by three versions of the AG-UI client.

Our own ASGI app is served by uvicorn on a free port; Node runs the client that CopilotKit and
others build on. A client has to read each run without a warning, and to end with the conversation
that was meant.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from agents_tools import (
    Agent,
    MessageOutputItem,
    ModelRequest,
    ModelResponse,
    ReasoningItem,
    RunConfig,
)
from agents_tools.agents import message_started, reasoning_delta, text_delta
from agents_tools.events import Emit
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.text.characters import safe_text
from agents_tools.ui import ag_ui
from tests.ui.scenarios import LONG, SCENARIOS, Scenario, add
from tests.ui.web import served

__all__ = ["check", "clients", "missing", "read_streams"]

HERE: Final = Path(__file__).parent
PEERS: Final = HERE.parents[2] / ".ui-peers" / "ag_ui"
FOLDERS: Final = {"ag-ui 1.0.0": "1.0", "ag-ui 0.0.59": "0.0.59", "ag-ui 0.0.45": "0.0.45"}
AT_MOST: Final = 240.0

Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a client does, and what has to come of it.

    Attributes:
        name: What it is called.
        scenario: The run.
        does: The part that the client plays.
        look: Checks the report of the client, in addition to the common checks.
    """

    name: str
    scenario: Scenario
    does: str
    look: Callable[[Told, Scenario, bool], None]


def clients() -> Sequence[str]:
    """Return the versions of the client."""
    return list(FOLDERS)


def missing(client: str) -> str | None:
    """Return why a client cannot run here."""
    if shutil.which("node") is None:
        return "there is no node"
    if not (PEERS / FOLDERS[client] / "node_modules" / "@ag-ui" / "client").is_dir():
        return "it is not installed: python -m tests.conformance.ui.install"
    return None


async def check(client: str, only: Sequence[str]) -> Mapping[str, str]:
    """Let a client do its jobs, and say what is wrong with each."""
    jobs = [job for job in _jobs() if not only or job.name in only]
    if client == "ag-ui 0.0.45":
        jobs = [job for job in jobs if job.does != "cut"]  # it has no `fetch` of its own
    stage = _Stage(jobs)
    problems: dict[str, str] = {}
    async with served(stage) as port:
        told = await _play(PEERS / FOLDERS[client], jobs, port)
    for job in jobs:
        try:
            _look(job, told[job.name], old=client != "ag-ui 1.0.0")
            stage.look(job)
            problems[job.name] = ""
        except AssertionError as error:
            problems[job.name] = str(error) or "an assertion failed"
    return problems


async def read_streams(client: str, streams: Mapping[str, str]) -> dict[str, Told]:
    """Let a client read raw streams; return its report about each."""
    texts = dict(enumerate(streams.values()))
    names = list(streams)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        text = texts[int(scope["path"].split("/")[1])]
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    async with served(app) as port:
        jobs = [
            {
                "name": name,
                "url": f"http://127.0.0.1:{port}/{number}/",
                "input": "Go.",
                "does": "send",
            }
            for number, name in enumerate(names)
        ]
        return await _node(PEERS / FOLDERS[client], jobs)


def _jobs() -> Iterator[Job]:
    for scenario in SCENARIOS.values():
        if scenario.approve is not None:
            yield Job(name=scenario.name, scenario=scenario, does="decide", look=_look_at_decision)
        elif scenario.cancel_at is not None:
            yield Job(name=scenario.name, scenario=scenario, does="cancel", look=_look_at_cancel)
        else:
            yield Job(name=scenario.name, scenario=scenario, does="send", look=_look_at_end)
    for name in ("tool", "parallel", "nested", "deltas", "reasoning", "tool_error"):
        scenario = SCENARIOS[name]
        yield Job(name=f"{name}_cut", scenario=scenario, does="cut", look=_look_at_end)
    cancelled = SCENARIOS["cancel"]
    yield Job(name="abort", scenario=cancelled, does="abort", look=_look_at_abort)
    yield Job(name="watch", scenario=cancelled, does="watch", look=_look_at_watcher)
    yield Job(
        name="watch_nested", scenario=_INTERRUPTED_SPEECH, does="watch_end", look=_look_at_both
    )
    yield Job(name="again", scenario=_TWO_TURNS, does="again", look=_look_at_turns)
    yield Job(name="client_tool", scenario=_CLIENT_TOOL, does="tools", look=_look_at_tools)


_TWO_TURNS = Scenario(
    name="again",
    make=lambda: Agent(
        "helper",
        model=ScriptedModel(
            [[tool_call("add", a=1, b=2, call_id="call_1")], "It is 3.", "Still 3."]
        ),
        tools=[add],
    ),
    text=("It is 3.", "Still 3."),
    calls=("call_1",),
)
_CLIENT_TOOL = Scenario(
    name="client_tool",
    make=lambda: Agent(
        "helper",
        model=ScriptedModel(
            [
                [
                    tool_call("add", a=1, b=2, call_id="call_1"),
                    tool_call("ask_color", why="to paint", call_id="call_2"),
                ],
                "Painted.",
            ]
        ),
        tools=[add],
    ),
    text=("Painted.",),
    calls=("call_1", "call_2"),
)


class _Hesitant(ScriptedModel):
    """Stops in the middle of a thought and of a sentence, until the client continues reading."""

    gates: ClassVar[list[asyncio.Event]] = []

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gates.append(self.gate)

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Send the answer, with a break in it."""
        del request
        emit(reasoning_delta("Let me "))
        emit(reasoning_delta("think."))
        emit(message_started())
        emit(text_delta("I am waiting "))
        await self.gate.wait()
        emit(text_delta("no more."))
        items = [
            ReasoningItem(text="Let me think."),
            MessageOutputItem(text="I am waiting no more."),
        ]
        return ModelResponse(items=items, finish_reason="stop")


def _make_hesitant() -> Agent[Any, Any]:
    leaf = Agent("leaf", model=_Hesitant())
    tool = leaf.as_tool(tool_name="ask_leaf", tool_description="Ask leaf.", streaming=True)
    return Agent(
        "helper",
        model=ScriptedModel(
            [["I ask. ", tool_call("ask_leaf", input="hi", call_id="call_1")], "Told."]
        ),
        tools=[tool],
    )


_INTERRUPTED_SPEECH = Scenario(
    name="watch_nested",
    make=_make_hesitant,
    text=("I ask. ", "Told."),
    calls=("call_1",),
)


class _Stage:
    """An ASGI app with one AG-UI app for each job, each below a path of its own."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.models = {job.name: job.scenario.make() for job in jobs}
        self.apps = {
            job.name: ag_ui.app(
                self.models[job.name],
                heartbeat=0.005,
                on_disconnect="detach" if job.does == "cut" else None,
                max_turns=job.scenario.max_turns,
                run_config=RunConfig(model_retries=2, retry_backoff=0.0),
            )
            for job in jobs
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on to the app of its job."""
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            for app in self.apps.values():
                await app.aclose()
            await send({"type": "lifespan.shutdown.complete"})
            return
        name = scope["path"].split("/")[1]

        async def told(message: Any) -> None:
            await send(message)
            if name == "watch_nested" and scope["path"].endswith("connect") and message.get("body"):
                _Hesitant.gates[-1].set()

        await self.apps[name]({**scope, "root_path": f"/{name}"}, receive, told)
        if name == "abort":
            for run in await self.apps[name].runs.list():  # its status is forgotten with the server
                await run.wait()
                self.aborted = run.status

    aborted: str | None = None

    def look(self, job: Job) -> None:
        """Look at what is left on this side."""
        if job.does == "abort":
            assert self.aborted == "cancelled", f"the run on the server is {self.aborted}"
        if job.does == "again":
            model: Any = self.models[job.name].model
            kinds = [type(item).__name__ for item in model.requests[-1].input]
            wanted = ["MessageInput", "ToolCall", "ToolCallOutput", "MessageOutput", "MessageInput"]
            assert kinds == [f"{kind}Item" for kind in wanted], f"the second turn read {kinds}"
        if job.does == "tools":
            model = self.models[job.name].model
            outputs = [getattr(item, "output", None) for item in model.requests[-1].input]
            assert outputs[-2:] == ["3", "green"], f"the model read {outputs}"


async def _play(folder: Path, jobs: Sequence[Job], port: int) -> dict[str, Told]:
    told = [
        {
            "name": job.name,
            "url": f"http://127.0.0.1:{port}/{job.name}/",
            "input": job.scenario.input,
            "does": job.does,
            "approve": job.scenario.approve,
        }
        for job in jobs
    ]
    return await _node(folder, told)


async def _node(folder: Path, jobs: Sequence[Told]) -> dict[str, Told]:
    lines = [json.dumps(job) for job in jobs]
    process = await asyncio.create_subprocess_exec(
        shutil.which("node") or "node",
        str(HERE / "ag_ui_client.mjs"),
        str(folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(AT_MOST):
            out, err = await process.communicate("\n".join(lines).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode or err:
        raise AssertionError(f"Node ended with {process.returncode}: {err.decode()[-2000:]}")
    found = [json.loads(line) for line in out.splitlines()]
    return {one["name"]: one for one in found}


# --- what a client has to have seen


def _look(job: Job, told: Told, *, old: bool) -> None:
    complaints = told["complaints"]
    assert not complaints, f"the client complains: {complaints}"
    job.look(told, job.scenario, old)


def _look_at_end(told: Told, scenario: Scenario, old: bool) -> None:
    [run] = told["runs"]
    last = run["last"]
    if scenario.ends == "error":
        assert last["type"] == "RUN_ERROR", f"the run ended with {last}"
        assert last["code"] in {"model_error", "max_turns_exceeded"}, f"the code is {last['code']}"
    else:
        assert run["failed"] is None, f"the run failed: {run['failed']}"
        assert last["type"] == "RUN_FINISHED", f"the run ended with {last['type']}"
        assert old or last["outcome"] == {"type": "success"}, f"the outcome is {last['outcome']}"
    _look_at_messages(told["messages"], scenario, scenario.text)
    if scenario.text == (LONG,):
        assert run["result"] == LONG, "the result is another one"
    if scenario.name == "multimodal":
        content = _results(told["messages"])["call_1"]
        assert isinstance(content, str) == old, f"the result is {content}"


def _look_at_decision(told: Told, scenario: Scenario, old: bool) -> None:
    first, second = told["runs"]
    interrupts = first["last"]["outcome"]["interrupts"]
    assert len(interrupts) == 1, f"there are {len(interrupts)} interrupts"
    assert interrupts[0]["responseSchema"]["required"] == ["approved"], "no schema of the answer"
    assert first["failed"] is None, f"the first run failed: {first['failed']}"
    assert second["failed"] is None, f"the second run failed: {second['failed']}"
    assert second["last"]["type"] == "RUN_FINISHED", f"it ended with {second['last']}"
    _look_at_messages(told["messages"], scenario, scenario.text + scenario.text_after)
    path = interrupts[0]["toolCallId"]
    if "/" not in path or not old:
        result = _results(told["messages"])[path]
        wanted = "t is gone" if scenario.approve else "not today"
        assert wanted in result, f"the result of the call is {result!r}"


def _look_at_cancel(told: Told, scenario: Scenario, old: bool) -> None:
    [run] = told["runs"]
    assert told["cancel"]["cancelled"] is True, f"the endpoint said {told['cancel']}"
    assert run["failed"] is None, f"the run failed: {run['failed']}"
    assert run["last"]["type"] == "RUN_FINISHED", f"the run ended with {run['last']}"
    assert old or run["last"]["outcome"] == {"type": "cancelled"}, f"{run['last']['outcome']}"
    _look_at_messages(told["messages"], scenario, scenario.text)


def _look_at_abort(told: Told, scenario: Scenario, old: bool) -> None:
    del old
    roles = [message["role"] for message in told["messages"]]
    assert "assistant" in roles, f"the client has {roles}"
    assert scenario.calls[0] in _calls(told["messages"]), "the call is not there"


def _look_at_watcher(told: Told, scenario: Scenario, old: bool) -> None:
    _look_at_cancel(told, scenario, old)
    watched = told["watched"]
    [run] = watched["runs"]
    assert run["failed"] is None, f"the watcher failed: {run['failed']}"
    assert run["types"].get("MESSAGES_SNAPSHOT") == 1, f"the watcher saw {run['types']}"
    assert _plain(watched["messages"]) == _plain(told["messages"]), (
        f"the watcher ends with {_plain(watched['messages'])}, "
        f"the first client with {_plain(told['messages'])}"
    )


def _look_at_both(told: Told, scenario: Scenario, old: bool) -> None:
    watched = told["watched"]
    for run in (*told["runs"], *watched["runs"]):
        assert run["failed"] is None, f"a run failed: {run['failed']}"
    types = watched["runs"][0]["types"]
    assert "MESSAGES_SNAPSHOT" in types, f"the watcher saw {types}"
    assert old or types["SUBAGENT_STARTED"] == types["SUBAGENT_FINISHED"] == 1, f"saw {types}"
    _look_at_messages(told["messages"], scenario, scenario.text)
    inner = [one["content"] for one in watched["messages"] if one.get("subagentRunId")]
    assert old or inner == ["Let me think.", "I am waiting no more."], f"leaf said {inner}"
    assert _plain(watched["messages"]) == _plain(told["messages"]), (
        f"the watcher ends with {_plain(watched['messages'])}, "
        f"the first client with {_plain(told['messages'])}"
    )


def _look_at_turns(told: Told, scenario: Scenario, old: bool) -> None:
    for run in told["runs"]:
        assert run["failed"] is None, f"a run failed: {run['failed']}"
    _look_at_messages(told["messages"], scenario, scenario.text)


def _look_at_tools(told: Told, scenario: Scenario, old: bool) -> None:
    for run in told["runs"]:
        assert run["failed"] is None, f"a run failed: {run['failed']}"
    assert told["pending"] == (None if old else ["call_2"]), f"pending: {told['pending']}"
    _look_at_messages(told["messages"], scenario, scenario.text)


def _look_at_messages(messages: Sequence[Told], scenario: Scenario, texts: tuple[str, ...]) -> None:
    own = [one for one in messages if not one.get("subagentRunId")]
    said = [one["content"] for one in own if one["role"] == "assistant" and one.get("content")]
    wanted = [safe_text(text) for text in texts]
    assert said == wanted, f"the agent said {said!s:.300}, not {wanted!s:.300}"
    calls = [
        call
        for one in own
        for call in one.get("toolCalls") or ()
        if one["role"] == "assistant" and "/" not in call["id"]
    ]
    ids = [call["id"] for call in calls]
    assert ids == list(scenario.calls), f"the calls are {ids}, not {scenario.calls}"
    for call in calls:
        json.loads(call["function"]["arguments"])
    ids = [one["id"] for one in messages]
    assert len(ids) == len(set(ids)), f"an id is there twice: {ids}"
    assert messages[0]["role"] == "user", "what the user said is gone"


def _calls(messages: Sequence[Told]) -> list[str]:
    return [call["id"] for one in messages for call in one.get("toolCalls") or ()]


def _results(messages: Sequence[Told]) -> dict[str, Any]:
    return {one["toolCallId"]: one["content"] for one in messages if one["role"] == "tool"}


def _plain(messages: Sequence[Told]) -> list[Any]:
    """Return the parts of a conversation, without the order of its activities."""
    said = [one for one in messages if one["role"] != "activity"]
    shown = [one for one in messages if one["role"] == "activity"]
    kept = ("id", "role", "content", "toolCalls", "toolCallId", "activityType")
    ordered = said + sorted(shown, key=lambda one: one["id"])
    return [{name: one[name] for name in kept if one.get(name)} for one in ordered]
