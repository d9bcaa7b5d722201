"""Stored chats and threads: they are available after a restart and in other processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents_tools import (
    Agent,
    Event,
    RunConfig,
    ToolArtifactEvent,
    ToolContext,
    ToolProgressEvent,
    UserError,
    function_tool,
    streaming_tool,
)
from agents_tools.agents.run_recorder import RunRecorder
from agents_tools.persistence import MemoryRunStore, SQLiteRunStore
from agents_tools.policies import needs_approval
from agents_tools.server.run_manager import RunManager
from agents_tools.testing import ScriptedModel, check_ag_ui, check_vercel, tool_call
from agents_tools.ui import ag_ui, vercel
from agents_tools.ui.ag_ui.messages import MessageHistory
from tests.ui.web import Exchange, ask

Json = dict[str, Any]
HALF = "\ud800"
HELLO: Json = {"id": "u1", "role": "user", "content": "Go."}
HI: Json = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Go."}]}


class Tables:
    """Tables that can be dropped, if a person agrees."""

    def __init__(self) -> None:
        self.dropped: list[str] = []
        self.contexts: list[Any] = []

        @needs_approval
        @function_tool
        def drop(context: ToolContext[Any], table: str) -> str:
            """Drop a table."""
            self.dropped.append(table)
            self.contexts.append(context.context)
            return f"dropped {table}"

        self.drop = drop

    def agent(self, *answers: Any) -> Agent[Any, Any]:
        """Create an agent that can drop the table."""
        return Agent("helper", model=ScriptedModel(answers), tools=[self.drop])


def answering(_: Any) -> str:
    """Return a `context` hook."""
    return "of the answer"


def thread(run_id: str, **more: Any) -> Json:
    """Return the request body of an AG-UI client."""
    start = {"threadId": "t", "runId": run_id, "protocolVersion": "1.0", "messages": [HELLO]}
    return {**start, **more}


def approved(wire: str) -> list[Json]:
    """Answer a question of AG-UI."""
    return [{"interruptId": wire, "status": "resolved", "payload": {"approved": True}}]


def frames_in(exchange: Exchange, **how: Any) -> list[Json]:
    """Parse a valid AG-UI stream."""
    assert exchange.status == 200, exchange.text
    frames = [json.loads(one[6:]) for one in exchange.text.split("\n\n") if one[:6] == "data: "]
    check_ag_ui(frames, "1.0", **how)
    return frames


def chunks_in(exchange: Exchange) -> list[Json]:
    """Read the chunks of a message of the AI SDK."""
    assert exchange.status == 200, exchange.text
    frames = exchange.text.split("\n\n")
    return [json.loads(one[6:]) for one in frames if one.startswith("data: {")]


async def test_a_thread_resumes_in_another_process(tmp_path: Path) -> None:
    """The first process has ended; a late client gets the question and can answer it."""
    tables, path = Tables(), tmp_path / "runs.db"
    with closing(SQLiteRunStore(path)) as store:
        app = ag_ui.app(tables.agent(tool_call("drop", table="a")), store=store)
        (asked,) = frames_in(await ask(app, "POST", "/", thread("r1")))[-1]["outcome"]["interrupts"]
        await app.aclose()
    with closing(SQLiteRunStore(path)) as store:
        app = ag_ui.app(tables.agent("Done."), store=store, context=answering)
        late = frames_in(await ask(app, "POST", "/connect", thread("r9")))
        assert late[-1]["outcome"]["interrupts"][0]["id"] == asked["id"]
        given = thread("r2", resume=approved(asked["id"]))
        after = frames_in(await ask(app, "POST", "/", given), earlier_calls=[asked["toolCallId"]])
        assert after[-1]["result"] == "Done."
        assert (tables.dropped, tables.contexts) == (["a"], ["of the answer"])
        await app.aclose()


def researcher(tables: Tables, *answers: Any) -> Agent[Any, Any]:
    """Create an agent with a sub-agent, whose tool reports progress and makes files."""

    @streaming_tool
    async def scan(pages: int) -> AsyncIterator[Event | str]:
        """Read pages."""
        for page in range(1, pages + 1):
            yield ToolProgressEvent(page, total=pages)
        yield ToolArtifactEvent("notes.txt", "Flour.")
        yield f"{pages} pages"

    inner = [
        *(tool_call("scan", call_id="one", pages=3), "Cheap."),
        *(tool_call("scan", call_id="two", pages=4), "Dear."),
    ]
    helper = Agent("scout", tools=[scan], model=ScriptedModel(inner))
    research = helper.as_tool("research", "Research something.", streaming=True)
    return Agent("helper", tools=[research, scan, tables.drop], model=ScriptedModel(answers))


@pytest.mark.parametrize("version", ["1.0", "0.x"])
@pytest.mark.parametrize("is_other", [False, True])
async def test_a_thread_is_loaded_again_with_the_activities_of_its_runs(
    version: Any, is_other: bool
) -> None:
    """The page shows the same as before: the runs that have ended, and both parts of the last."""
    tables, store = Tables(), MemoryRunStore(keep_display=True)
    script = [
        *(tool_call("research", call_id="a", input="flour"), "It is cheap."),
        *(tool_call("research", call_id="b", input="milk"), tool_call("drop", table="t")),
        *(tool_call("scan", call_id="c", pages=2), "Gone."),
        "Hello again.",
    ]
    agent = researcher(tables, *script)
    app = ag_ui.app(agent, store=store, version=version)
    book = MessageHistory()

    async def send(run_id: str, text: str | None, path: str = "/", **more: Any) -> list[Json]:
        new = [] if text is None else [{"id": f"{run_id}-user", "role": "user", "content": text}]
        nonlocal book
        book = MessageHistory([*book.list(), *new])
        sent = [one for one in book.list() if one["role"] != "activity"]
        request = thread(run_id, **{"messages": sent, **more})
        answer = await ask(app, "POST", path, request)
        frames = [json.loads(one[6:]) for one in answer.text.split("\n\n") if one[:6] == "data: "]
        for frame in frames:
            book.apply(frame)
        return frames

    await send("r1", "Research flour.")
    ended = await send("r2", "And milk.")
    (asked,) = ended[-1]["outcome"]["interrupts"]
    await send("r3", None, resume=approved(asked["id"]))
    before = book.list()
    if is_other:
        app = ag_ui.app(agent, store=store, version=version)
    loaded = await send("r4", None, "/connect", messages=[])
    assert [one["type"] for one in loaded] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    messages = loaded[1]["messages"]
    ids = [one["id"] for one in messages]
    assert len(set(ids)) == len(ids)
    assert [activity(one) for one in messages] == [activity(one) for one in before]
    shown = {one["id"]: one["content"] for one in messages if one["role"] == "activity"}
    assert [shown[f"act-{call}"]["progress"]["current"] for call in SCANS] == [3, 4, 2]
    book = MessageHistory(messages)
    await send("r5", "Hello.")
    items = agent.model.requests[-1].input  # type: ignore[union-attr]
    assert "activity" not in str(items)
    assert "AGENTS_TOOL" not in str(items)


SCANS = ["a/one", "b/two", "c"]
"""The calls that report progress, on the wire."""


def activity(message: Json) -> Any:
    """Return what a page shows of a message: an activity, the output of a call, or a text."""
    shown = message.get("content") or [call["id"] for call in message.get("toolCalls", ())]
    return message["role"], shown


def answered(chunks: list[Json]) -> Json:
    """Return the part of a message in which a person approves the call."""
    (question,) = [one["approvalId"] for one in chunks if "approvalId" in one]
    return {
        "type": "dynamic-tool",
        "toolName": "drop",
        "toolCallId": "call_1",
        "state": "approval-responded",
        "input": {"table": "a"},
        "approval": {"id": question, "approved": True},
    }


async def test_a_chat_resumes_in_another_process(tmp_path: Path) -> None:
    """The message is replayed under its id, and the approval resumes the run."""
    tables, path = Tables(), tmp_path / "runs.db"
    with closing(SQLiteRunStore(path)) as store:
        app = vercel.app(tables.agent(tool_call("drop", table="a")), store=store)
        before = await ask(app, "POST", "/", {"id": "c", "messages": [HI]})
        await app.aclose()
    first = chunks_in(before)
    with closing(SQLiteRunStore(path)) as store:
        app = vercel.app(tables.agent("Done."), store=store, context=answering)
        again = chunks_in(await ask(app, "GET", "/c/stream"))
        assert again == first
        message = {"id": first[0]["messageId"], "role": "assistant", "parts": [answered(first)]}
        after = await ask(app, "POST", "/", {"id": "c", "messages": [HI, message]})
        assert chunks_in(after)[0]["messageId"] == first[0]["messageId"]
        assert "Done." in after.text
        assert (tables.dropped, tables.contexts) == (["a"], ["of the answer"])
        await app.aclose()


async def test_a_page_is_sent_only_what_follows_its_question() -> None:
    """Else a page that checks whether the run continues would draw the form for the answer again."""
    tables = Tables()
    app = vercel.app(tables.agent(tool_call("drop", table="a"), "Done."), on_disconnect="detach")
    first = chunks_in(await ask(app, "POST", "/", {"id": "c", "messages": [HI]}))
    (question,) = [one["approvalId"] for one in first if "approvalId" in one]
    header = {"agents-tools-question": question}
    assert (await ask(app, "GET", "/c/stream", headers=header)).status == 204
    other = {"agents-tools-question": question.replace("call_1", "call_0")}
    assert chunks_in(await ask(app, "GET", "/c/stream", headers=other)) == first
    message = {"id": first[0]["messageId"], "role": "assistant", "parts": [answered(first)]}
    await ask(app, "POST", "/", {"id": "c", "messages": [HI, message]})
    assert "Done." in (await ask(app, "GET", "/c/stream", headers=header)).text
    await app.aclose()


async def messages_of(app: Any, chat: str = "c") -> list[Json]:
    """Return the messages that a page loads."""
    answer = await ask(app, "GET", f"/{chat}/messages")
    assert answer.status == 200, answer.text
    return json.loads(answer.text)


async def test_a_page_that_is_loaded_again_gets_the_whole_chat(tmp_path: Path) -> None:
    """Also in another process, while a call waits, and after the decision about it."""
    tables, path = Tables(), tmp_path / "runs.db"
    with closing(SQLiteRunStore(path)) as store:
        app = vercel.app(tables.agent(tool_call("drop", table="a")), store=store)
        assert await messages_of(app) == []
        first = chunks_in(await ask(app, "POST", "/", {"id": "c", "messages": [HI]}))
        await app.aclose()
    with closing(SQLiteRunStore(path)) as store:
        app = vercel.app(tables.agent("Done.", "Bye."), store=store)
        user, waiting = await messages_of(app)
        assert (user, waiting["id"]) == (HI, first[0]["messageId"])
        (part,) = [one for one in waiting["parts"] if one["type"] == "dynamic-tool"]
        assert (part["state"], part["input"]) == ("approval-requested", {"table": "a"})
        waiting["parts"] = [answered(first) if one is part else one for one in waiting["parts"]]
        await ask(app, "POST", "/", {"id": "c", "messages": [HI, waiting]})
        chat = await messages_of(app)
        assert [one["id"] for one in chat] == ["u1", first[0]["messageId"]]
        assert chat[1]["parts"][1]["state"] == "output-available"
        assert chat[1]["parts"][-1] == {"type": "text", "text": "Done.", "state": "done"}
        more = {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "And?"}]}
        await ask(app, "POST", "/", {"id": "c", "messages": [*chat, more]})
        loaded = await messages_of(app)
        assert loaded[:3] == [*chat, more]
        assert loaded[3]["parts"][-1]["text"] == "Bye."
        assert await messages_of(app, "other") == []
        await app.aclose()


async def test_a_message_that_is_being_written_is_loaded_by_its_stream() -> None:
    """The SDK would add the stream to it. A continued message keeps its first parts."""
    began, gate = asyncio.Event(), asyncio.Event()

    async def answer(_: Any) -> str:
        began.set()
        await gate.wait()
        return "more."

    app = vercel.app(Agent("helper", model=ScriptedModel([answer])))
    half: Json = {"id": "m1", "role": "assistant", "parts": [{"type": "text", "text": "Half, "}]}
    post = asyncio.ensure_future(ask(app, "POST", "/", {"id": "c", "messages": [HI, half]}))
    async with asyncio.timeout(10):
        await began.wait()
        assert await messages_of(app) == [HI, half]
        gate.set()
        await post
    _, whole = await messages_of(app)
    assert [one["text"] for one in whole["parts"] if "text" in one] == ["Half, ", "more."]
    assert whole["id"] == "m1"
    await app.aclose()


async def test_a_reader_waits_for_a_run_that_begins_to_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest event is still the stop for the decision."""
    tables, gate = Tables(), asyncio.Event()
    receive = RunRecorder.receive

    async def receive_late(recorder: RunRecorder) -> None:
        await gate.wait()
        await receive(recorder)

    with closing(SQLiteRunStore(tmp_path / "runs.db")) as store:
        app = vercel.app(tables.agent(tool_call("drop", table="a"), "Done."), store=store)
        first = chunks_in(await ask(app, "POST", "/", {"id": "c", "messages": [HI]}))
        message = {"id": first[0]["messageId"], "role": "assistant", "parts": [answered(first)]}
        monkeypatch.setattr(RunRecorder, "receive", receive_late)
        post = asyncio.ensure_future(ask(app, "POST", "/", {"id": "c", "messages": [HI, message]}))
        await asyncio.wait({post}, timeout=0.3)  # it ends too early, or waits for the run
        gate.set()
        assert "Done." in (await post).text
        await app.aclose()


async def test_a_run_with_client_tools_does_not_resume_without_them() -> None:
    """The tools belong to the page; the error names the missing ones."""
    tool = {"name": "ask_page", "description": "Ask.", "parameters": {"type": "object"}}
    store = MemoryRunStore()
    agent = Agent("helper", model=ScriptedModel([tool_call("ask_page")]))
    app = ag_ui.app(agent, store=store)
    await ask(app, "POST", "/", thread("r1", tools=[tool]))
    await app.aclose()
    app = ag_ui.app(agent, store=store)
    answer = {"id": "m2", "role": "tool", "toolCallId": "call_1", "content": "Yes."}
    given = thread("r2", tools=[tool], messages=[HELLO, answer], resume=approved("call_1"))
    refused = await ask(app, "POST", "/", given)
    assert refused.status == 409
    assert "Send the messages again" in refused.message
    await app.aclose()


async def test_lone_surrogates_are_stored_too(tmp_path: Path) -> None:
    """They can be in texts of clients and models; the log stays readable."""
    user = {"id": HALF, "role": "user", "parts": [{"type": "text", "text": HALF}]}
    message: Json = {"id": "m1", "role": "assistant", "parts": []}
    with closing(SQLiteRunStore(tmp_path / "runs.db")) as store:
        agent = Agent("helper", model=ScriptedModel([f"a{HALF}b"]))
        app = vercel.app(agent, store=store)
        exchange = await ask(app, "POST", "/", {"id": "c", "messages": [user, message]})
        assert chunks_in(exchange)[-1]["finishReason"] == "stop"
        await app.aclose()
        app = vercel.app(agent, store=store)
        again = chunks_in(await ask(app, "GET", "/c/stream"))
        assert [one["type"] for one in again] == [one["type"] for one in chunks_in(exchange)]
        await app.aclose()


@pytest.mark.parametrize("make", [ag_ui.app, vercel.app], ids=["ag_ui", "vercel"])
async def test_an_orphaned_run_continues_for_its_clients(
    make: Callable[..., Any], tmp_path: Path
) -> None:
    """Its process was killed. A client that waits gets the rest when a server resumes the run."""
    path = tmp_path / "runs.db"
    process = subprocess.Popen(  # noqa: ASYNC220, S603 - our own program
        [sys.executable, "-c", _KILLED, str(path), make.__module__.split(".")[2]],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.kill()
    with closing(SQLiteRunStore(path)) as store:
        agent = Agent("helper", model=ScriptedModel(["Done."]), tools=[pause])
        runs = RunManager(store=store, run_config=RunConfig(resume_orphans=True))
        app = make(agent, runs=runs)
        if make is vercel.app:
            waiting = Exchange(app, "GET", "/t/stream")
            await waiting.until('"toolCallId"')
        else:
            waiting = Exchange(app, "POST", "/connect", thread("r9"))
            await waiting.wait_for(lambda: waiting.status)
        await runs.restore()
        await waiting.whole()
        assert "Done." in waiting.text
        if make is vercel.app:
            check_vercel(chunks_in(waiting), 7)
        else:
            assert frames_in(waiting)[-1]["outcome"] == {"type": "success"}
        await runs.aclose()


@function_tool
async def pause() -> str:
    """Pause, which is lost with the process."""
    return "never"


_KILLED = """
import asyncio, sys
from agents_tools import Agent, function_tool
from agents_tools.persistence import SQLiteRunStore
from agents_tools.server.run_manager import RunManager
from agents_tools.testing import ScriptedModel, tool_call

@function_tool
async def pause() -> str:
    "Pause for ever."
    print("begun", flush=True)
    await asyncio.Event().wait()
    return ""

async def main():
    runs = RunManager(store=SQLiteRunStore(sys.argv[1]))
    agent = Agent("helper", model=ScriptedModel([tool_call("pause")]), tools=[pause])
    await runs.start(agent, "Hi", run_id="r1", thread_id="t", meta={sys.argv[2]: {}}).wait()

asyncio.run(main())
"""


async def test_metadata_of_a_run_must_be_json() -> None:
    """Otherwise the run could not be stored, so it is rejected before the start."""
    runs = RunManager(store=MemoryRunStore())
    with pytest.raises(UserError, match="meta"):
        runs.start(Tables().agent("x"), "Hi", meta={"x": object()})
    assert await runs.list() == []
    await runs.aclose()


async def test_an_app_accepts_either_a_run_manager_or_its_options() -> None:
    """Options without effect are rejected."""
    runs = RunManager()
    with pytest.raises(UserError, match="store="):
        vercel.app(Tables().agent("x"), runs=runs, store=MemoryRunStore())
    with pytest.raises(UserError, match=r"vercel.app\(...\) has no option 'colour'"):
        vercel.app(Tables().agent("x"), colour="red")  # pyright: ignore[reportCallIssue]
    await runs.aclose()
