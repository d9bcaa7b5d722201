"""Hostile clients, models and tools cannot harm the apps for user interfaces."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agents_tools import (
    Agent,
    NotifyStreamEvent,
    function_tool,
    progress,
    streaming_tool,
)
from agents_tools.events import RunFinishedEvent, ToolArtifactEvent
from agents_tools.policies import needs_approval
from agents_tools.server.safe_json import written
from agents_tools.testing import ScriptedModel, check_ag_ui, tool_call
from agents_tools.ui import ag_ui, ndjson, sse, vercel
from tests.ui.web import Exchange, ask

Json = dict[str, Any]
HALF = "\ud800"
PATIENCE = 45.0
HELLO: Json = {"id": "u1", "role": "user", "content": "Go."}
HI: Json = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Go."}]}
THREAD: Json = {"threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": [HELLO]}
PLACES: dict[str, tuple[Callable[..., Any], str, Json]] = {
    "native": (sse.app, "/runs", {"input": "Go.", "run_id": "r", "thread_id": "t"}),
    "ag_ui": (ag_ui.app, "/", THREAD),
    "vercel": (vercel.app, "/", {"id": "t", "messages": [HI]}),
}


class Payments:
    """Payments that need the approval of a person."""

    def __init__(self) -> None:
        self.paid: list[int] = []

        @needs_approval
        @function_tool
        async def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return "paid"

        self.pay = pay

    def agent(self) -> Agent[Any, Any]:
        """Create an agent that pays."""
        return agent_of([tool_call("pay", amount=1)], "Done.", tools=[self.pay])


def agent_of(*steps: Any, tools: Any = ()) -> Agent[Any, Any]:
    return Agent("helper", model=ScriptedModel(steps), tools=list(tools))


@asynccontextmanager
async def serving(
    make: Callable[..., Any], agent: Agent[Any, Any], **how: Any
) -> AsyncGenerator[Any]:
    app = make(agent, **how)
    try:
        yield app
    finally:
        await app.aclose()


def data_of(exchange: Exchange) -> list[Json]:
    """Parse all frames; every one must be strict JSON."""
    assert exchange.status == 200, exchange.text
    lines = [line[6:] for line in exchange.text.split("\n") if line.startswith("data: {")]
    return [json.loads(line, parse_constant=pytest.fail) for line in lines]


# --- output of models and tools


def test_every_frame_is_strict_json() -> None:
    """No value of a model or a tool may break a stream."""
    deep: Any = "x"
    for _ in range(2_000):
        deep = [deep]
    value = {"n": float("nan"), "i": float("inf"), HALF: HALF, "d": deep, "o": object(), "f": 1.5}
    told = json.loads(written(value), parse_constant=pytest.fail)
    assert (told["n"], told["i"], told["f"], told["\ufffd"]) == (None, None, 1.5, "\ufffd")
    assert "…" in json.dumps(told["d"], ensure_ascii=False)
    assert "without a JSON form" in told["o"]
    assert json.loads(written({"n": float("nan")})) == {"n": None}


NESTED = "[" * 400 + "]" * 400
ODD = {
    "half a pair": '{"text": "\\ud800"}',
    "a raw half": f'{{"text": "{HALF}"}}',
    "deep": f'{{"text": {NESTED}}}',
    "not a number": '{"text": NaN}',
    "line ends": json.dumps({"text": "\r\n\ndata: {}\r\r\x85\u2028\u2029id: 1\x00"}, ensure_ascii=False),
    "no JSON": "{\r\ndata: x",
}  # fmt: skip


@pytest.mark.requirement("S25")
@pytest.mark.parametrize("arguments", ODD.values(), ids=ODD)
@pytest.mark.parametrize("place", PLACES)
async def test_no_arguments_of_a_model_break_a_stream(place: str, arguments: str) -> None:
    """Each frame is one line of JSON, and the stream is complete."""

    @function_tool
    def echo(text: str) -> str:
        """Say it again."""
        return text

    make, path, body = PLACES[place]
    steps = [tool_call("echo", arguments)], f"Done{HALF}\r\n\r\ndata: [DONE]\n\n."
    async with serving(make, agent_of(*steps, tools=[echo])) as app:
        exchange = await ask(app, "POST", path, body)
        frames = data_of(exchange)
        assert "\r" not in exchange.text
        assert exchange.text.count("\ndata: [DONE]") == (place == "vercel")
    if place == "native":
        assert [event.type for event in sse.decode(exchange.text)][-1] == RunFinishedEvent.type
        listed = await ask(app, "GET", "/runs")
        assert listed.status == 200
    elif place == "ag_ui":
        check_ag_ui(frames, "1.0")
        assert frames[-1]["type"] in {"RUN_FINISHED", "RUN_ERROR"}
    else:
        assert frames[-1]["type"] in {"finish", "error"}


@pytest.mark.requirement("S29")
@pytest.mark.parametrize("place", PLACES)
async def test_large_tool_output_is_bounded(place: str) -> None:
    """The tool emits 32 MiB as result, lines, progress and artifacts."""
    flood = 32 << 20

    @function_tool
    def bomb() -> str:
        """Answer."""
        return "x" * flood

    @streaming_tool
    async def noise():
        """Say and hand over."""
        yield NotifyStreamEvent("n" * flood)
        progress(1, message="m" * flood)
        yield ToolArtifactEvent("photo", data=b"0" * flood, mime_type="image/png")
        yield ToolArtifactEvent("page", data="t" * flood)

    calls = [tool_call("bomb", call_id="1"), tool_call("noise", call_id="2")]
    make, path, body = PLACES[place]
    async with serving(make, agent_of(calls, "Done.", tools=[bomb, noise])) as app:
        exchange = await ask(app, "POST", path, body)
    assert "photo" in exchange.text
    assert len(exchange.text) < flood


# --- requests of clients


@pytest.mark.parametrize("calls", [5, {"id": 1}, [{"id": []}], [1], "x"], ids=repr)
@pytest.mark.parametrize("role", ["user", "activity", "tool"])
async def test_calls_of_other_roles_in_the_history_are_ignored(role: str, calls: Any) -> None:
    """An invalid history starts no unattended run."""
    odd = {"id": "x", "role": role, "content": "c", "toolCallId": "t", "toolCalls": calls}
    async with serving(ag_ui.app, agent_of("Done.")) as app:
        frames = data_of(await ask(app, "POST", "/", {**THREAD, "messages": [HELLO, odd]}))
        assert frames[-1]["type"] == "RUN_FINISHED"
        late = await ask(app, "POST", "/connect", {**THREAD, "messages": [HELLO, odd]})
        assert data_of(late)[-1]["type"] == "RUN_FINISHED"


@pytest.mark.requirement("S35")
async def test_a_client_tool_cannot_replace_a_waiting_server_call() -> None:
    """Tools in the answer change nothing: the call must be approved by name."""
    payments = Payments()
    agent = agent_of(
        [tool_call("pay", call_id="c1", amount=1)], [tool_call("pay", call_id="c2", amount=2)], "Done.",
        tools=[payments.pay],
    )  # fmt: skip
    mine = [{"name": "pay", "description": "Mine.", "parameters": {"type": "object"}}]
    async with serving(ag_ui.app, agent) as app:
        await ask(app, "POST", "/", THREAD)
        resume = [{"interruptId": "c1", "status": "resolved", "payload": {"approved": True}}]
        request = {**THREAD, "runId": "r2", "tools": mine, "resume": resume}
        frames = data_of(await ask(app, "POST", "/", request))
        assert [one["id"] for one in frames[-1]["outcome"]["interrupts"]] == ["c2"]
        other = [{**resume[0], "interruptId": "c9"}]
        refused = await ask(app, "POST", "/", {**request, "runId": "r3", "resume": other})
        assert refused.status == 422
    assert payments.paid == [1]


@pytest.mark.requirement("F41")
@pytest.mark.parametrize("place", ["ag_ui", "vercel"])
async def test_only_one_of_many_concurrent_decisions_counts(place: str) -> None:
    """The call is made once, and every client gets a complete response."""
    payments = Payments()
    make, path, body = PLACES[place]
    async with serving(make, payments.agent()) as app:
        asked = await ask(app, "POST", path, body)
        if place == "ag_ui":
            answer = {"interruptId": "call_1", "status": "resolved", "payload": {"approved": True}}
            bodies = [{**THREAD, "runId": f"r{i}", "resume": [answer]} for i in range(5)]
        else:
            (question,) = re.findall(r'"approvalId":"([^"]+)"', asked.text)
            part = {"type": "dynamic-tool", "toolName": "pay", "toolCallId": "call_1",
                    "state": "approval-responded", "input": {"amount": 999},
                    "approval": {"id": question, "approved": True}}  # fmt: skip
            message = {"id": "m", "role": "assistant", "parts": [part]}
            bodies = [{"id": "t", "messages": [HI, message]}] * 5
        answers = await asyncio.gather(*(ask(app, "POST", path, one) for one in bodies))
    told = sorted(answer.status for answer in answers)
    assert told == ([200, 409, 409, 409, 409] if place == "ag_ui" else [200] * 5)
    assert payments.paid == [1]


# --- access control


class People:
    """A verifier that knows two users."""

    def verify_token(self, token: str) -> Any:
        """Return the user of a token."""
        name = {"a" * 20: "anna", "b" * 20: "bert"}.get(token)
        return None if name is None else type("Known", (), {"client_id": "web", "subject": name})


ANNA = {"authorization": f"Bearer {'a' * 20}"}
BERT = {"authorization": f"Bearer {'b' * 20}"}


@pytest.mark.requirement("S24")
async def test_a_thread_is_accessible_to_its_owner_only() -> None:
    """Other users cannot watch, cancel, answer or reuse its id through AG-UI."""
    payments = Payments()
    resume = [{"interruptId": "call_1", "status": "resolved", "payload": {"approved": True}}]
    async with serving(ag_ui.app, payments.agent(), auth=People()) as app:
        await ask(app, "POST", "/", THREAD, headers=ANNA)
        for path, body, status in (
            ("/connect", THREAD, 404),
            ("/cancel", {"runId": "r"}, 404),
            ("/cancel", {"threadId": "t"}, 404),
            ("/", {**THREAD, "runId": "r2", "resume": resume}, 409),
            ("/", THREAD, 200),  # a run of his own, as for an id that no one has used
        ):
            assert (await ask(app, "POST", path, body, headers=BERT)).status == status
        assert payments.paid == []
        body = {**THREAD, "runId": "r2", "resume": resume}
        assert (await ask(app, "POST", "/", body, headers=ANNA)).status == 200
    assert payments.paid == [1]


@pytest.mark.requirement("S24")
async def test_a_chat_is_accessible_to_its_owner_only() -> None:
    """Other users cannot replay, stop or answer it through the AI SDK."""
    payments = Payments()
    async with serving(vercel.app, payments.agent(), auth=People()) as app:
        asked = await ask(app, "POST", "/", {"id": "t", "messages": [HI]}, headers=ANNA)
        (question,) = re.findall(r'"approvalId":"([^"]+)"', asked.text)
        message: Json = {"id": "m", "role": "assistant", "parts": []}
        answer = {"id": "t", "messages": [HI, message],
                  "approvals": [{"id": question, "approved": True}]}  # fmt: skip
        assert (await ask(app, "GET", "/t/stream", headers=BERT)).status == 204
        stopped = await ask(app, "POST", "/t/stop", {}, headers=BERT)
        assert stopped.json == {"stopped": False}
        assert (await ask(app, "POST", "/", answer, headers=BERT)).status == 409
        assert payments.paid == []
        assert (await ask(app, "POST", "/", answer, headers=ANNA)).status == 200
    assert payments.paid == [1]


# --- disconnects


@streaming_tool
async def crawl():
    """Take a while."""
    for number in range(20):
        yield NotifyStreamEvent(f"{number}\n")
        await asyncio.sleep(0.001)


class DisconnectingClient(Exchange):
    """A client that disconnects after some parts of the answer."""

    after = 0

    def _take(self, part: bytes) -> None:
        super()._take(part)
        if len(self.parts) >= self.after:
            self.disconnect()


@pytest.mark.parametrize("spec", ["2.3", "2.4"])
@pytest.mark.parametrize("place", PLACES)
async def test_a_client_can_disconnect_at_every_moment(place: str, spec: str) -> None:
    """Nothing of the request remains, and the run is cancelled, however the server reports it."""
    make, path, body = PLACES[place]
    for moment in range(8):
        agent = agent_of([tool_call("crawl")], "Done.", tools=[crawl])
        async with serving(make, agent, heartbeat=0.005) as app:
            client = DisconnectingClient(app, "POST", path, body, spec=spec)
            client.after = moment
            async with asyncio.timeout(PATIENCE):
                await client.task
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert [task.get_name() for task in others] == []


@pytest.mark.parametrize("place", PLACES)
async def test_a_request_can_be_cancelled_at_every_await(place: str) -> None:
    """This includes the time before the run starts, and the writing of a frame."""
    make, path, body = PLACES[place]
    for moment in range(30):
        agent = agent_of([tool_call("crawl")], "Done.", tools=[crawl])
        async with serving(make, agent) as app:
            client = Exchange(app, "POST", path, body)
            for _ in range(moment):
                await asyncio.sleep(0)
            client.task.cancel()
            await asyncio.wait({client.task}, timeout=PATIENCE)
            assert client.task.done()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert [task.get_name() for task in others] == []


async def test_unicode_line_separators_do_not_split_events() -> None:
    """A reader that treats other characters as line ends gets whole events."""
    agent = agent_of("a\u2028b\x85c")
    async with serving(sse.app, agent) as app:
        headers = {"accept": "application/x-ndjson"}
        exchange = await ask(app, "POST", "/runs", {"input": "Go."}, headers=headers)
    lines = exchange.text.splitlines()
    assert len(list(ndjson.decode(lines))) == len(lines)
