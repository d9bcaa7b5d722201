"""Chats and threads whose runs a store keeps: they outlive the process, and other processes too."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents_tools import Agent, ToolContext, UserError, function_tool
from agents_tools.persistence import MemoryEventStore, SQLiteEventStore
from agents_tools.policies import needs_approval
from agents_tools.server.run_manager import RunManager
from agents_tools.server.run_records import ProcessIdentity, record_of
from agents_tools.testing import ScriptedModel, check_ag_ui, check_vercel, tool_call
from agents_tools.ui import ag_ui, vercel
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
        """Make an agent that may ask for it."""
        return Agent("helper", model=ScriptedModel(answers), tools=[self.drop])


def answering(_: Any) -> str:
    """Give the application's object for a request."""
    return "of the answer"


def thread(run_id: str, **more: Any) -> Json:
    """Give what a client of AG-UI sends."""
    start = {"threadId": "t", "runId": run_id, "protocolVersion": "1.0", "messages": [HELLO]}
    return {**start, **more}


def approved(wire: str) -> list[Json]:
    """Answer a question of AG-UI."""
    return [{"interruptId": wire, "status": "resolved", "payload": {"approved": True}}]


def frames_in(exchange: Exchange, **how: Any) -> list[Json]:
    """Read the frames of a lawful AG-UI stream."""
    assert exchange.status == 200, exchange.text
    frames = [json.loads(one[6:]) for one in exchange.text.split("\n\n") if one[:6] == "data: "]
    check_ag_ui(frames, "1.0", **how)
    return frames


def chunks_in(exchange: Exchange) -> list[Json]:
    """Read the chunks of a message of the AI SDK."""
    assert exchange.status == 200, exchange.text
    frames = exchange.text.split("\n\n")
    return [json.loads(one[6:]) for one in frames if one.startswith("data: {")]


async def test_a_thread_goes_on_in_another_process(tmp_path: Path) -> None:
    """Who asked is gone; whoever comes late sees the question, and can answer it."""
    tables, path = Tables(), tmp_path / "runs.db"
    with closing(SQLiteEventStore(path)) as store:
        app = ag_ui.app(tables.agent(tool_call("drop", table="a")), store=store)
        (asked,) = frames_in(await ask(app, "POST", "/", thread("r1")))[-1]["outcome"]["interrupts"]
        await app.aclose()
    with closing(SQLiteEventStore(path)) as store:
        app = ag_ui.app(tables.agent("Done."), store=store, context=answering)
        late = frames_in(await ask(app, "POST", "/connect", thread("r9")))
        assert late[-1]["outcome"]["interrupts"][0]["id"] == asked["id"]
        given = thread("r2", resume=approved(asked["id"]))
        after = frames_in(await ask(app, "POST", "/", given), earlier_calls=[asked["toolCallId"]])
        assert after[-1]["result"] == "Done."
        assert (tables.dropped, tables.contexts) == (["a"], ["of the answer"])
        await app.aclose()


async def test_a_chat_goes_on_in_another_process(tmp_path: Path) -> None:
    """The message is had again, under its id, and the approval lets the run go on."""
    tables, path = Tables(), tmp_path / "runs.db"
    with closing(SQLiteEventStore(path)) as store:
        app = vercel.app(tables.agent(tool_call("drop", table="a")), store=store)
        before = await ask(app, "POST", "/", {"id": "c", "messages": [HI]})
        await app.aclose()
    first = chunks_in(before)
    (question,) = [one["approvalId"] for one in first if "approvalId" in one]
    with closing(SQLiteEventStore(path)) as store:
        app = vercel.app(tables.agent("Done."), store=store, context=answering)
        again = chunks_in(await ask(app, "GET", "/c/stream"))
        assert again == first
        part = {
            "type": "dynamic-tool",
            "toolName": "drop",
            "toolCallId": "call_1",
            "state": "approval-responded",
            "input": {"table": "a"},
            "approval": {"id": question, "approved": True},
        }
        message = {"id": first[0]["messageId"], "role": "assistant", "parts": [part]}
        after = await ask(app, "POST", "/", {"id": "c", "messages": [HI, message]})
        assert chunks_in(after)[0]["messageId"] == first[0]["messageId"]
        assert "Done." in after.text
        assert (tables.dropped, tables.contexts) == (["a"], ["of the answer"])
        await app.aclose()


async def test_a_run_with_tools_of_the_page_does_not_go_on_without_them() -> None:
    """They were the page's own; what is missing is said."""
    tool = {"name": "ask_page", "description": "Ask.", "parameters": {"type": "object"}}
    store = MemoryEventStore()
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


async def test_what_is_no_character_is_kept_as_well(tmp_path: Path) -> None:
    """Texts of clients and models; the log can be read again."""
    user = {"id": HALF, "role": "user", "parts": [{"type": "text", "text": HALF}]}
    message: Json = {"id": "m1", "role": "assistant", "parts": []}
    with closing(SQLiteEventStore(tmp_path / "runs.db")) as store:
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
async def test_a_lost_run_is_told_as_an_error(make: Callable[..., Any]) -> None:
    """The process that ran it is gone: a client must not take that for an end as planned."""
    store = MemoryEventStore()
    record = record_of(
        thread_id="t", kind="agent", agent="helper", owner=None, meta={"vercel": {}, "ag_ui": {}},
        process=ProcessIdentity(),
    )  # fmt: skip
    await store.session("r1").append([record])
    app = make(Agent("helper", model=ScriptedModel([])), store=store)
    if make is vercel.app:
        chunks = chunks_in(await ask(app, "GET", "/t/stream"))
        check_vercel(chunks, 7)
        assert chunks[-2]["messageMetadata"]["status"] == "lost"
        assert chunks[-1]["type"] == "error"
        assert "was lost" in chunks[-1]["errorText"]
    else:
        last = frames_in(await ask(app, "POST", "/connect", thread("r9")))[-1]
        assert (last["type"], last["code"]) == ("RUN_ERROR", "lost")
        assert "was lost" in last["message"]
    await app.aclose()


async def test_what_an_application_keeps_with_a_run_is_json() -> None:
    """Otherwise nothing of the run could be kept; so it is said before it begins."""
    runs = RunManager(store=MemoryEventStore())
    with pytest.raises(UserError, match="meta"):
        runs.start(Tables().agent("x"), "Hi", meta={"x": object()})
    assert runs.list() == []
    await runs.aclose()


async def test_an_app_is_given_runs_or_options_of_them() -> None:
    """What would have no effect is refused."""
    runs = RunManager()
    with pytest.raises(UserError, match="store="):
        vercel.app(Tables().agent("x"), runs=runs, store=MemoryEventStore())
    with pytest.raises(UserError, match=r"vercel.app\(...\) has no option 'colour'"):
        vercel.app(Tables().agent("x"), colour="red")  # pyright: ignore[reportCallIssue]
    await runs.aclose()
