"""Reading and changing the conversation of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from agents_tools import (
    Agent,
    RunConfig,
    Runner,
    SQLiteSession,
    UserError,
    function_tool,
    policies,
)
from agents_tools.content import ToolCallOutputItem
from agents_tools.errors import RunInUseError
from agents_tools.persistence import MemoryRunStore, RunStore, Session, SQLiteRunStore
from agents_tools.testing import ScriptedModel, tool_call

WITHIN = 30.0


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.fixture(params=["memory", "sqlite"])
async def session(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Session]:
    """Return a session of each kind of store."""
    in_memory = request.param == "memory"
    store: RunStore = MemoryRunStore() if in_memory else SQLiteRunStore(tmp_path / "runs.db")
    yield store.session("chat")
    await store.aclose()


def said(items: list[dict[str, Any]]) -> list[Any]:
    """Return the text, the name or the output of each item."""
    found: list[Any] = []
    for item in items:
        content = item.get("content", item.get("output", item.get("name")))
        found.append(content[0]["text"] if isinstance(content, list) else content)
    return found


async def test_the_items_of_a_session_are_those_of_its_runs(session: Session) -> None:
    """They can be the input of another run."""
    model = ScriptedModel([tool_call("add", a=1, b=2), "3.", "4."])
    agent = Agent(name="A", model=model, tools=[add])
    assert await session.get_items() == []
    result = await Runner.run(agent, "1 + 2?", session=session)
    items = await session.get_items()
    assert items == result.to_input_list()
    assert said(items) == ["1 + 2?", "add", "3", "3."]
    assert [said(await session.get_items(limit)) for limit in (2, 0, 9)] == [
        ["3", "3."],
        [],
        said(items),
    ]
    again = await Runner.run(agent, [*items, {"role": "user", "content": "2 + 2?"}])
    assert again.final_output == "4."


async def test_added_items_are_the_history_of_the_next_run(session: Session) -> None:
    """A conversation can be moved here from elsewhere, with its calls."""
    items: list[Any] = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "1 + 2?"},
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a":1,"b":2}'},
        ToolCallOutputItem(call_id="c", name="add", output="3"),
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "3."}],
        },
    ]
    await session.add_items(items)
    await session.add_items([])
    model = ScriptedModel(["5."])
    await Runner.run(Agent(name="A", model=model), "And 2 + 3?", session=session)
    seen = [item.to_dict() for item in model.requests[0].input]
    assert said(seen) == ["Be short.", "1 + 2?", "add", "3", "3.", "And 2 + 3?"]
    assert said(await session.get_items()) == [*said(seen), "5."]
    with pytest.raises(UserError, match=r"items\[0\]"):
        await session.add_items([5])


async def test_a_popped_item_is_gone_for_later_runs_and_stays_in_the_log(session: Session) -> None:
    """The log is append-only; only the view changes."""
    model = ScriptedModel(["One.", "Two."])
    agent = Agent(name="A", model=model)
    await Runner.run(agent, "first", session=session)
    popped = [await session.pop_item(), await session.pop_item(), await session.pop_item()]
    assert said([item for item in popped if item is not None]) == ["One.", "first"]
    assert popped[2] is None
    await Runner.run(agent, "second", session=session)
    assert said([item.to_dict() for item in model.requests[1].input]) == ["second"]
    assert said(await session.get_items()) == ["second", "Two."]
    kinds = [(run.agent, run.kind, run.status) for run in await session.runs()]
    assert kinds == [
        ("A", None, "ok"),
        ("session", "edit", "ok"),
        ("session", "edit", "ok"),
        ("A", None, "ok"),
    ]


async def test_a_call_whose_output_was_popped_gets_a_new_output(session: Session) -> None:
    """No request has a call without its output; popping the call as well removes both."""
    model = ScriptedModel([tool_call("add", a=1, b=2), "3.", "Hm.", "Hm."])
    agent = Agent(name="A", model=model, tools=[add])
    await Runner.run(agent, "1 + 2?", session=session)
    assert said([item for item in [await session.pop_item()] if item]) == ["3."]
    assert said([item for item in [await session.pop_item()] if item]) == ["3"]
    await Runner.run(agent, "Again", session=session)
    [_, _, output, last] = model.requests[2].input
    assert isinstance(output, ToolCallOutputItem)
    assert (output.status, last.to_dict()["content"]) == ("lost", "Again")
    while await session.pop_item():
        pass
    await Runner.run(agent, "New", session=session)
    assert said([item.to_dict() for item in model.requests[3].input]) == ["New"]


async def test_clearing_deletes_the_logs_of_the_session_only(session: Session) -> None:
    """What a user wants to be forgotten is not in the file any more."""
    agent = Agent(name="A", model=ScriptedModel(["One.", "Two."]))
    await Runner.run(agent, "mine", session=session)
    other = session.store.session("other")
    await Runner.run(agent, "theirs", session=other)
    await session.clear_session()
    assert (await session.get_items(), await session.runs()) == ([], [])
    assert said(await other.get_items()) == ["theirs", "Two."]


async def test_a_session_cannot_be_changed_during_a_run(session: Session) -> None:
    """The run has read the conversation, and appends to it."""
    asked, release = asyncio.Event(), asyncio.Event()

    async def wait(request: Any) -> str:
        asked.set()
        await asyncio.wait_for(release.wait(), WITHIN)
        return "Done."

    agent = Agent(name="A", model=ScriptedModel([wait]))
    task = asyncio.ensure_future(Runner.run(agent, "x", session=session))
    await asyncio.wait_for(asked.wait(), WITHIN)
    for change in (session.pop_item(), session.add_items([{"role": "user", "content": "y"}])):
        with pytest.raises(RunInUseError):
            await change
    release.set()
    await task
    assert said(await session.get_items()) == ["x", "Done."]


async def test_a_sqlite_session_is_a_view_of_a_run_store(tmp_path: Path) -> None:
    """Another process reads the same file with the classes of the store, and the other way."""
    path = tmp_path / "chat.db"
    agent = Agent(name="A", model=ScriptedModel(["One.", "Two."]))
    mine = SQLiteSession("chat", path)
    assert (mine.session_id, mine.id) == ("chat", "chat")
    first = await Runner.run(agent, "a", session=mine)
    mine.close()
    async with SQLiteRunStore(path) as store:
        config = RunConfig(store=store)
        assert [run.run_id for run in await store.runs(session="chat")] == [first.run_id]
        await Runner.run(agent, "b", session="chat", run_config=config)
    reopened = SQLiteSession("chat", str(path))
    assert said(await reopened.get_items()) == ["a", "One.", "b", "Two."]
    reopened.close()


async def test_a_sqlite_session_without_a_path_ends_with_the_object() -> None:
    """As in openai-agents, no file is written; two such sessions share nothing."""
    one, two = SQLiteSession("chat"), SQLiteSession("chat", ":memory:")
    await Runner.run(Agent(name="A", model=ScriptedModel(["Hi."])), "x", session=one)
    assert (said(await one.get_items()), await two.get_items()) == (["x", "Hi."], [])
    one.close()
    two.close()


# --- sessions of other libraries


class ItemList:
    """A session of another library: it has only the two methods that a run needs."""

    def __init__(self, *items: dict[str, Any]) -> None:
        self.items = list(items)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return all items."""
        return list(self.items)

    async def add_items(self, items: list[Any]) -> None:
        """Append items."""
        self.items += items


async def test_a_session_of_another_library_keeps_the_conversation() -> None:
    """It gets each item once, the input included, also with a handoff and agents inside."""
    session = ItemList({"role": "user", "content": "I am Bo."})
    model = ScriptedModel(
        {
            "A": [tool_call("helper", input="?"), tool_call("transfer_to_b")],
            "Helper": ["Help."],
            "B": ["Hello, Bo.", "You are Bo."],
        }
    )
    b = Agent(name="B", model=model)
    helper = Agent(name="Helper", model=model)
    a = Agent(name="A", model=model, tools=[helper.as_tool()], handoffs=[b])
    run = Runner.run_streamed(a, "Greet me.", session=session)
    result = await run.wait()
    assert session.items == result.to_input_list()
    assert said(session.items)[:2] == ["I am Bo.", "Greet me."]
    assert said(session.items)[-1] == "Hello, Bo."
    again = await Runner.run(b, "Who am I?", session=session)
    assert session.items == again.to_input_list()
    assert len(model.requests[-1].input) == len(again.to_input_list()) - 1


async def test_a_session_of_another_library_gets_the_items_of_a_run_that_waited() -> None:
    """The conversation is complete when the resumed run has its final output."""
    session = ItemList({"role": "user", "content": "Hello."})
    model = ScriptedModel([tool_call("add", a=1, b=2), "3."])
    agent = Agent(name="A", model=model, tools=[policies.needs_approval(add)])
    first = await Runner.run(agent, "1 + 2?", session=session)
    assert said(session.items) == ["Hello."]
    state = first.to_state()
    state.approve(state.interruptions[0])
    await Runner.run(agent, state, session=session)
    assert said(session.items) == ["Hello.", "1 + 2?", "add", "3", "3."]


async def test_a_session_of_openai_agents_works_here(tmp_path: Path) -> None:
    """A conversation that was begun there continues here, in its own table."""
    theirs = pytest.importorskip("agents")
    testing = pytest.importorskip("agents.testing")
    session: Any = theirs.SQLiteSession("chat", tmp_path / "theirs.db")
    their_model = testing.ScriptedModel([[testing.assistant_message("Hello, Bo.")]])
    their_config = theirs.RunConfig(tracing_disabled=True)
    await theirs.Runner.run(
        theirs.Agent(name="A", model=their_model),
        "I am Bo.",
        session=session,
        run_config=their_config,
    )
    model = ScriptedModel(["You are Bo."])
    result = await Runner.run(Agent(name="A", model=model), "Who am I?", session=session)
    assert said([item.to_dict() for item in model.requests[0].input]) == [
        "I am Bo.",
        "Hello, Bo.",
        "Who am I?",
    ]
    assert result.final_output == "You are Bo."
    assert said(await session.get_items()) == ["I am Bo.", "Hello, Bo.", "Who am I?", "You are Bo."]
    session.close()


async def test_an_object_without_the_methods_of_a_session_is_refused() -> None:
    """The error says what a session needs."""
    with pytest.raises(UserError, match=r"an object with get_items\(\) and add_items\(\)"):
        await Runner.run(Agent(name="A"), "x", session=cast("Any", 5))
