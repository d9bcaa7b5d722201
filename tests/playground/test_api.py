"""What the page asks the playground for, and what it gets."""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pytest
from pydantic import BaseModel, Field

from agents_tools import (
    ActionEvent,
    Agent,
    BaseTool,
    BaseToolParams,
    NullEvent,
    ToolAnnotations,
    ToolArtifactEvent,
    ToolError,
    ToolOutputImage,
    ToolProgressEvent,
    function_tool,
    policies,
    register_secret,
    streaming_tool,
)
from agents_tools.errors import EventStoreFullError
from agents_tools.persistence import MemoryEventStore, PendingFuture, SQLiteEventStore
from agents_tools.persistence.stream import LEFT_OUT
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.text import forget_secret
from agents_tools.tool import function_tools
from tests.playground.client import BOUND, playing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from agents_tools.persistence import EventStore


class Place(BaseModel):
    """A place."""

    lat: Annotated[float, Field(ge=-90, le=90)]
    names: list[str] = []


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@function_tool
def look_up(place: Place, near: list[Place] | None = None) -> dict[str, Any]:
    """Look a place up."""
    return {"lat": place.lat, "near": len(near or ())}


@function_tool
def fail(text: str) -> str:
    """Fail with a text."""
    raise ToolError(text)


@function_tool
def crash() -> str:
    """Crash."""
    raise RuntimeError("the wheel came off")


@function_tool
def picture() -> list[object]:
    """Draw."""
    return ["a dot:", ToolOutputImage(data=b"\x89PNG", mime_type="image/png")]


@function_tool(annotations=ToolAnnotations(title="Burn", destructiveHint=True))
def burn(book: str) -> str:
    """Burn a book."""
    return f"{book} is gone"


@needs_approval
@function_tool
def send(letter: str) -> str:
    """Send a letter."""
    return f"sent: {letter}"


@pytest.fixture(params=["memory", "sqlite"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], EventStore]:
    """Give what opens one place again and again."""
    if request.param == "sqlite":
        return lambda: SQLiteEventStore(tmp_path / "history.sqlite")
    memory, numbers = MemoryEventStore(), itertools.count()
    return lambda: memory.session(f"opened {next(numbers)}")


def tool_run(tool: Any, **arguments: Any) -> dict[str, Any]:
    return {"kind": "tool", "name": tool.name, "arguments": arguments}


def gate() -> tuple[Any, asyncio.Event, list[str]]:
    """Give a tool that goes on until it is let, with what lets it and what it noted."""
    opened, notes = asyncio.Event(), list[str]()

    @streaming_tool
    async def wait(pages: int = 2) -> AsyncIterator[Any]:
        """Wait."""
        try:
            yield ToolProgressEvent(1, total=pages)
            await opened.wait()
            yield "over"
        except asyncio.CancelledError:
            notes.append("cancelled")
            raise

    return wait, opened, notes


# --- the target


async def test_the_page_learns_what_there_is() -> None:
    """Tools with their facts, agents with theirs, and what kind of server it talks to."""
    helper = Agent(name="Helper", instructions="Help. " * 100, tools=[add], model="local/rules")
    async with playing(add, burn, send, agents={"helper": helper}) as client:
        info = await client.get("/api/info")
        assert info["target"] == "tools.py"
        assert (info["name"], info["generation"], info["problems"]) == ("agents-tools", 1, [])
        assert (info["history"], info["read_only"]) == (False, False)
        told = await client.get("/api/tools")
    first, second, third = told["tools"]
    assert (first["name"], first["kind"], first["description"]) == (
        "add",
        "function",
        "Add two numbers.",
    )
    assert first["schema"]["required"] == ["a"]
    assert first["source"]["file"].endswith("test_api.py")
    assert first["source"]["line"] > 1
    assert (first["destructive"], first["needs_approval"], first["annotations"]) == (
        False,
        False,
        None,
    )
    assert (second["destructive"], second["annotations"]["title"]) == (True, "Burn")
    assert third["needs_approval"] is True
    (agent,) = told["agents"]
    assert (agent["name"], agent["tools"], agent["model"]) == ("Helper", ["add"], "local/rules")
    assert len(agent["instructions"]) <= 200


async def test_tools_of_all_kinds_are_told_apart() -> None:
    """The page shows what kind a tool is."""

    @streaming_tool
    async def count() -> AsyncIterator[str]:
        """Count."""
        yield "1"

    class ClockParams(BaseToolParams):
        """Tell the time."""

        name: ClassVar[str] = "clock"
        zone: str

    class Clock(BaseTool):
        name: ClassVar[str] = "clock"
        params_class: ClassVar[type[BaseToolParams]] = ClockParams

        def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
            return f"noon, {session} {args_json}", {}

    helper = Agent(name="Helper", instructions="Help.", model="local/rules")
    tools = [add, count, helper.as_tool(), *function_tools([Clock()])]
    async with playing(*tools) as client:
        kinds = [tool["kind"] for tool in (await client.get("/api/tools"))["tools"]]
    assert kinds == ["function", "streaming", "agent", "class"]


async def test_a_schema_with_examples_gives_an_example_of_a_call() -> None:
    """The page can fill the form with it."""

    @function_tool
    def greet(
        name: Annotated[str, Field(examples=["Ada"])],
        loud: bool = False,
    ) -> str:
        """Greet."""
        return name.upper() if loud else name

    async with playing(greet, add) as client:
        first, second = (await client.get("/api/tools"))["tools"]
    assert first["example"] == {"name": "Ada"}
    assert second["example"] is None


async def test_two_tools_of_one_name_are_a_problem_and_not_the_end() -> None:
    """A model could not tell them apart, and a request neither."""
    other = send.with_(name="add")
    async with playing(add, other) as client:
        assert [tool["name"] for tool in (await client.get("/api/tools"))["tools"]] == ["add"]
        (problem,) = (await client.get("/api/info"))["problems"]
    assert "Another tool is called 'add'" in problem["message"]


async def test_the_page_sees_what_each_model_is_told() -> None:
    """With the tokens that it takes, and why a strict mode is not possible."""

    @function_tool
    def free(data: dict[str, Any]) -> str:
        """Take anything."""
        return str(data)

    async with playing(add, free) as client:
        views = (await client.get("/api/tools/add/views"))["views"]
        loose = (await client.get("/api/tools/free/views"))["views"]
    assert [view["id"] for view in views] == [
        "openai_responses",
        "openai_chat",
        "anthropic",
        "gemini",
        "bedrock",
        "mcp",
    ]
    assert views[0]["json"]["parameters"]["additionalProperties"] is False
    assert views[0]["strict"] is True
    assert views[2]["json"]["input_schema"]["required"] == ["a"]
    assert all(view["tokens"] > 10 for view in views)
    assert "≈" in views[0]["note"]
    assert loose[0]["strict"] is False
    assert "strict" in loose[0]["note"]


async def test_arguments_are_checked_with_a_fault_for_each_place() -> None:
    """The texts are those that the model would get, at the paths of the fields."""
    async with playing(look_up) as client:
        told = await client.post(
            "/api/tools/look_up/check",
            {"arguments": {"place": {"lat": 91}, "near": [{"lat": 1}, {"lat": "x"}], "depht": 1}},
        )
        good = await client.post("/api/tools/look_up/check", {"arguments": {"place": {"lat": 9}}})
    assert good == {"ok": True}
    assert told["ok"] is False
    faults = {tuple(fault["path"]): fault for fault in told["faults"]}
    assert set(faults) == {("place", "lat"), ("near", 1, "lat"), ("depht",)}
    for fault in told["faults"]:
        assert fault["message"] in told["message"]
    assert faults["place", "lat"]["got"] == "91"
    assert faults["near", 1, "lat"]["expected"]


async def test_arguments_are_checked_by_the_schema_that_policies_have_changed() -> None:
    """What is hidden cannot be given, and what is published is enforced."""
    hidden = policies.hide(b=5)(add)
    async with playing(hidden) as client:
        told = await client.post("/api/tools/add/check", {"arguments": {"a": "x"}})
        assert [fault["path"] for fault in told["faults"]] == [["a"]]
        run = await client.run(tool_run(add, a=1))
    assert run["result"]["model"] == [{"type": "text", "text": "6"}]


# --- runs


async def test_a_tool_runs_and_its_result_is_shown_as_the_model_gets_it() -> None:
    """As content blocks, as a value, and as one line."""
    async with playing(add, look_up, picture) as client:
        run = await client.run(tool_run(add, a=1, b=2))
        assert (run["status"], run["kind"], run["name"]) == ("ok", "tool", "add")
        assert run["arguments"] == {"a": 1, "b": 2}
        assert run["result"]["model"] == [{"type": "text", "text": "3"}]
        assert run["summary"] == "3"
        assert run["duration"] >= 0
        run = await client.run(tool_run(look_up, place={"lat": 1}))
        assert run["result"]["value"] == {"lat": 1.0, "near": 0}
        run = await client.run(tool_run(picture))
    text, image = run["result"]["model"]
    assert text == {"type": "text", "text": "a dot:"}
    assert (image["type"], image["mime_type"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]) == b"\x89PNG"


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [(fail, {"text": "no tea"}, "no tea"), (crash, {}, "the wheel came off")],
)
async def test_a_tool_that_fails_shows_what_the_model_reads(
    tool: Any, arguments: dict[str, Any], message: str
) -> None:
    """Its author wants to see the message, unlike the visitors of a server."""
    async with playing(tool) as client:
        run = await client.run(tool_run(tool, **arguments))
    assert run["status"] == "error"
    assert message in run["result"]["model"][0]["text"]
    assert message in run["summary"]


async def test_arguments_that_are_not_taken_start_nothing() -> None:
    """The answer has the faults, as the check has."""
    async with playing(add) as client:
        told = await client.post("/api/runs", tool_run(add, a="x"), 422)
        assert told["error"]["code"] == "arguments"
        assert [fault["path"] for fault in told["error"]["faults"]] == [["a"]]
        assert (await client.get("/api/runs"))["runs"] == []


async def test_a_destructive_tool_asks_first() -> None:
    """The second request says that a person has confirmed it; so does running it again."""
    async with playing(burn) as client:
        told = await client.post("/api/runs", tool_run(burn, book="it"), 409)
        assert told["error"]["code"] == "confirm"
        run = await client.run({**tool_run(burn, book="it"), "confirmed": True})
        assert run["status"] == "ok"
        told = await client.post(f"/api/runs/{run['id']}/rerun", {}, 409)
        assert told["error"]["code"] == "confirm"
        await client.post(f"/api/runs/{run['id']}/rerun", {"confirmed": True}, 202)


async def test_events_come_while_the_tool_works_and_resume_by_id() -> None:
    """Progress is seen before the end, and nothing comes twice."""
    wait, opened, _ = gate()
    async with playing(wait) as client:
        run_id = (await client.post("/api/runs", tool_run(wait), 202))["run_id"]
        async with client.stream(f"/api/runs/{run_id}/events?after=-1") as frames:
            seen = await anext(
                frame async for frame in frames if frame["event"] == "tool_progress_event"
            )
        last = int(seen["id"].rpartition(":")[2])
        assert (await client.get(f"/api/runs/{run_id}"))["status"] == "running"
        opened.set()
        async with client.stream(f"/api/runs/{run_id}/events?after={last}") as frames:
            rest = [frame async for frame in frames]
        assert rest[-1]["event"] == "run_finished_event"
        assert all(int(frame["id"].rpartition(":")[2]) > last for frame in rest)
        end = int(rest[-1]["id"].rpartition(":")[2])
        assert (await client.ask("GET", f"/api/runs/{run_id}/events?after={end}")).status == 204


async def test_a_run_goes_on_when_nobody_watches_and_can_be_cancelled() -> None:
    """A page that is closed by mistake costs nothing; Cancel reaches the tool."""
    wait, _, notes = gate()
    async with playing(wait) as client:
        run_id = (await client.post("/api/runs", tool_run(wait), 202))["run_id"]
        async with client.stream(f"/api/runs/{run_id}/events") as frames:
            await anext(frames)
        assert (await client.get(f"/api/runs/{run_id}"))["status"] == "running"
        assert (await client.post(f"/api/runs/{run_id}/cancel", {}))["cancelled"] is True
        run = await client.ended(run_id)
        assert run["status"] == "cancelled"
        assert notes == ["cancelled"]
        assert (await client.post(f"/api/runs/{run_id}/cancel", {}))["cancelled"] is False


@pytest.mark.parametrize("approve", [True, False])
async def test_a_call_that_needs_approval_waits_for_a_decision(*, approve: bool) -> None:
    """The run ends as waiting, and goes on in the same stream."""
    async with playing(send) as client:
        run = await client.run(tool_run(send, letter="hi"))
        assert run["status"] == "interrupted"
        (item,) = run["approvals"]
        assert (item["name"], item["arguments"]) == ("send", '{"letter":"hi"}')
        decision = {"call_id": item["call_id"], "path": item["path"], "approve": approve}
        if not approve:
            decision["message"] = "Not today."
        target = f"/api/runs/{run['id']}/approvals"
        assert await client.post(target, {"decisions": [decision]}) == {"ok": True}
        run = await client.ended(run["id"])
        assert run["approvals"] == []
        text = run["result"]["model"][0]["text"]
        assert text == ("sent: hi" if approve else "Not today.")
        assert run["status"] == ("ok" if approve else "error")
        again = await client.post(target, {"decisions": [decision]}, 409)
        assert "waits for no approvals" in again["error"]["message"]


async def test_what_a_person_changes_is_what_is_exported() -> None:
    """The test is of the call that was made, not of the one that was asked for."""
    async with playing(send) as client:
        run = await client.run(tool_run(send, letter="hi"))
        (item,) = run["approvals"]
        assert item["path"] == []
        changed = '{\n  "letter": "a ]\\n b"\n}'
        decision = {"call_id": item["call_id"], "approve": True, "arguments": changed}
        await client.post(f"/api/runs/{run['id']}/approvals", {"decisions": [decision]})
        run = await client.ended(run["id"])
        assert "A person changed the arguments" in run["result"]["model"][0]["text"]
        source = (await client.get(f"/api/runs/{run['id']}/export?as=pytest"))["text"]
    assert "{'letter': 'a ]\\n b'}, context=context)" in source
    assert "assert call.output == 'sent: a ]\\n b'" in source


async def test_an_agent_runs_with_its_calls_in_the_same_stream() -> None:
    """The page shows the tree of them."""
    model = ScriptedModel([tool_call("add", a=1, b=2), "It is 3."])
    helper = Agent(name="Helper", instructions="Help.", tools=[add], model=model)
    async with playing(agents={"helper": helper}) as client:
        run = await client.run({"kind": "agent", "name": "Helper", "input": "1 + 2?"})
        assert (run["status"], run["input"], run["summary"]) == ("ok", "1 + 2?", "It is 3.")
        assert run["result"]["model"] == [{"type": "text", "text": "It is 3."}]
        assert run["result"]["usage"]["requests"] == 2
        async with client.stream(f"/api/runs/{run['id']}/events") as frames:
            kinds = [frame["event"] async for frame in frames]
    assert kinds[0] == "run_started_event"
    assert "tool_stream_start_event" in kinds


# --- the history


async def test_runs_are_listed_newest_first_and_by_pages() -> None:
    """A page of the list names the run that the next one begins after."""
    async with playing(add) as client:
        for number in range(5):
            await client.run(tool_run(add, a=number))
        first = await client.get("/api/runs?limit=2")
        assert [run["arguments"]["a"] for run in first["runs"]] == [4, 3]
        assert first["more"] is True
        rest = await client.get(f"/api/runs?limit=10&before={first['runs'][-1]['id']}")
    assert [run["arguments"]["a"] for run in rest["runs"]] == [2, 1, 0]
    assert rest["more"] is False


async def test_the_history_outlives_the_server(stores: Callable[[], EventStore]) -> None:
    """Runs are listed, replayed, run again and exported by the next one."""
    async with playing(add, store=stores()) as client:
        run = await client.run(tool_run(add, a=1))
        async with client.stream(f"/api/runs/{run['id']}/events") as frames:
            before = [frame async for frame in frames]
    async with playing(add, store=stores()) as client:
        assert (await client.get("/api/info"))["history"] is True
        (listed,) = (await client.get("/api/runs"))["runs"]
        assert (listed["id"], listed["status"], listed["summary"]) == (run["id"], "ok", "2")
        assert (await client.get(f"/api/runs/{run['id']}"))["result"] == run["result"]
        async with client.stream(f"/api/runs/{run['id']}/events") as frames:
            assert [frame async for frame in frames] == before
        new = await client.post(f"/api/runs/{run['id']}/rerun", {}, 202)
        assert (await client.ended(new["run_id"]))["arguments"] == {"a": 1}
        changed = await client.post(f"/api/runs/{run['id']}/rerun", {"arguments": {"a": 7}}, 202)
        assert (await client.ended(changed["run_id"]))["summary"] == "8"
        export = await client.get(f"/api/runs/{run['id']}/export?as=json")
    assert export["text"] == '{\n  "tool": "add",\n  "arguments": {\n    "a": 1\n  }\n}\n'


async def test_runs_are_deleted_with_all_that_was_stored_of_them(
    stores: Callable[[], EventStore],
) -> None:
    """One of them, or all; a run that goes on is not, and what others keep there is not."""
    store = stores()
    await store.session("somebody-else").append([NullEvent()])
    wait, opened, _ = gate()
    async with playing(add, wait, store=store) as client:
        one = await client.run(tool_run(add, a=1))
        await client.run(tool_run(add, a=2))
        going = (await client.post("/api/runs", tool_run(wait), 202))["run_id"]
        assert (await client.ask("DELETE", f"/api/runs/{going}")).status == 409
        assert (await client.ask("DELETE", f"/api/runs/{one['id']}")).status == 204
        assert (await client.ask("GET", f"/api/runs/{one['id']}")).status == 404
        assert (await client.ask("DELETE", "/api/runs")).status == 204
        left = [run["id"] for run in (await client.get("/api/runs"))["runs"]]
        assert left == [going]
        opened.set()
        await client.ended(going)
        names = [info.sid for info in await store.sessions()]
    assert sorted(names) == sorted(["somebody-else", going, f"about.{going}"])


async def test_the_history_is_bounded(stores: Callable[[], EventStore]) -> None:
    """The oldest runs go, with their events."""
    store = stores()
    async with playing(add, store=store, keep_runs=3) as client:
        for number in range(5):
            await client.run(tool_run(add, a=number))
        runs = (await client.get("/api/runs"))["runs"]
        sessions = await store.sessions()
    assert [run["arguments"]["a"] for run in runs] == [4, 3, 2]
    assert len(sessions) == 6


async def test_the_history_is_bounded_by_its_size_as_well(
    stores: Callable[[], EventStore],
) -> None:
    """A few runs with large results may take more than many others."""

    @function_tool
    def much(size: int) -> str:
        """Give much."""
        return "x" * size

    async with playing(much, store=stores(), keep_bytes=300_000) as client:
        for size in (10, 100_000, 100_001, 100_002):
            run = await client.run(tool_run(much, size=size))
        runs = (await client.get("/api/runs"))["runs"]
    assert runs[0]["id"] == run["id"]
    assert 0 < len(runs) < 4


@pytest.mark.requirement("S29")
async def test_a_value_that_is_too_long_for_a_page_is_left_out() -> None:
    """The model gets the beginning and the end of it; so does the page."""

    @function_tool
    def much() -> str:
        """Give much."""
        return "x" * 3_000_000

    async with playing(much) as client:
        result = (await client.run(tool_run(much)))["result"]
    assert result["value"] is None
    assert len(result["model"][0]["text"]) < 300_000


class FullStore(MemoryEventStore):
    """A disk that is full."""

    def append(self, events: Any, /, **options: Any) -> PendingFuture[int]:
        return PendingFuture.failed(EventStoreFullError("The disk is full.", store="here"))

    def session(self, sid: str, /) -> FullStore:
        return FullStore(sid)


async def test_a_history_that_cannot_be_written_does_not_stop_the_tools() -> None:
    """What runs has its end, and the page learns of it."""
    async with playing(add, store=FullStore()) as client:
        run_id = (await client.post("/api/runs", tool_run(add, a=1), 202))["run_id"]
        run = await client.ended(run_id)
        assert run["status"] == "ok"
        assert [one["status"] for one in (await client.get("/api/runs"))["runs"]] == ["ok"]


@pytest.mark.requirement("S20")
async def test_what_is_stored_is_masked(stores: Callable[[], EventStore]) -> None:
    """Secrets reach the tool, and neither the file nor the next server."""
    register_secret("open-sesame-31337")
    store = stores()
    try:
        async with playing(add, fail, store=store) as client:
            given = {"text": "the word is open-sesame-31337"}
            run = await client.run(tool_run(fail, **given))
            assert run["arguments"] == {"text": "the word is ***"}
            logs = [store.session(info.sid) for info in await store.sessions()]
            stored = [event.to_dict() for log in logs for event in await log.read()]
            again = await client.post(f"/api/runs/{run['id']}/rerun", {}, 202)
            await client.ended(again["run_id"])
        async with playing(fail, store=stores()) as client:
            told = await client.post(f"/api/runs/{run['id']}/rerun", {}, 422)
    finally:
        forget_secret("open-sesame-31337")
    assert "open-sesame" not in str(stored)
    assert told["error"]["code"] == "masked"


async def test_a_run_that_an_earlier_server_left_behind_is_lost() -> None:
    """Nobody can say what came of it."""
    store = MemoryEventStore()
    started = asyncio.Event()

    @function_tool
    async def hang() -> str:
        """Hang."""
        started.set()
        await asyncio.Event().wait()
        return ""

    async with playing(hang, store=store.session("a")) as client:
        run_id = (await client.post("/api/runs", tool_run(hang), 202))["run_id"]
        async with asyncio.timeout(BOUND):
            await started.wait()
        copy = MemoryEventStore()
        for info in await store.sessions():
            events = await store.session(info.sid).read()
            await copy.session(info.sid).append(events)
    async with playing(hang, store=copy) as client:
        (listed,) = (await client.get("/api/runs"))["runs"]
    assert (listed["id"], listed["status"]) == (run_id, "lost")


async def test_a_run_that_waits_is_decided_about_by_the_next_server(
    stores: Callable[[], EventStore],
) -> None:
    """A person may be at lunch when the server is started anew."""
    async with playing(send, store=stores()) as client:
        run = await client.run(tool_run(send, letter="hi"))
        assert run["status"] == "interrupted"
    async with playing(add, store=stores()) as client:  # the tool is gone for a while
        again = await client.get(f"/api/runs/{run['id']}")
        decision = {"call_id": again["approvals"][0]["call_id"], "approve": True}
        target, body = f"/api/runs/{run['id']}/approvals", {"decisions": [decision]}
        assert "not here" in (await client.post(target, body, 409))["error"]["message"]
    async with playing(send, store=stores()) as client:
        (listed,) = (await client.get("/api/runs"))["runs"]
        assert listed["status"] == "interrupted"
        await client.post(target, body)
        run = await client.ended(run["id"])
        assert (run["status"], run["summary"]) == ("ok", "sent: hi")
    async with playing(send, store=stores()) as client:
        (listed,) = (await client.get("/api/runs"))["runs"]
        assert (listed["status"], listed["summary"]) == ("ok", "sent: hi")


async def test_a_run_that_waits_long_is_decided_about_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is in the store when it is not in memory any more."""
    monkeypatch.setattr("agents_tools.playground.run_manager._IN_MEMORY", 1)
    async with playing(send, add) as client:
        run = await client.run(tool_run(send, letter="hi"))
        for number in range(4):
            await client.run(tool_run(add, a=number))
        (item,) = (await client.get(f"/api/runs/{run['id']}"))["approvals"]
        decision = {"call_id": item["call_id"], "approve": True}
        await client.post(f"/api/runs/{run['id']}/approvals", {"decisions": [decision]})
        assert (await client.ended(run["id"]))["summary"] == "sent: hi"


async def test_a_run_that_waits_is_cancelled_by_the_next_server() -> None:
    """Nobody may want it any more."""
    memory = MemoryEventStore()
    async with playing(send, store=memory.session("a")) as client:
        run = await client.run(tool_run(send, letter="hi"))
    async with playing(send, store=memory.session("b")) as client:
        told = await client.post(f"/api/runs/{run['id']}/cancel", {})
        assert told == {"cancelled": True}
        assert (await client.get(f"/api/runs/{run['id']}"))["status"] == "cancelled"


async def test_what_was_not_stored_of_a_waiting_run_is_not_made_up() -> None:
    """The tool would get the mask in the place of the secret."""
    memory = MemoryEventStore()
    register_secret("open-sesame-31337")
    try:
        async with playing(send, store=memory.session("a")) as client:
            run = await client.run(tool_run(send, letter="open-sesame-31337"))
        async with playing(send, store=memory.session("b")) as client:
            decision = {"call_id": run["approvals"][0]["call_id"], "approve": True}
            target = f"/api/runs/{run['id']}/approvals"
            told = await client.post(target, {"decisions": [decision]}, 409)
    finally:
        forget_secret("open-sesame-31337")
    assert told["error"]["code"] == "masked"


async def test_the_runs_of_another_server_are_shown_as_they_are() -> None:
    """Two servers on one history: each sees the runs of the other, and leaves them alone."""
    memory = MemoryEventStore()
    wait, opened, _ = gate()
    async with playing(wait, send, store=memory.session("a")) as one:
        run_id = (await one.post("/api/runs", tool_run(wait), 202))["run_id"]
        asked = await one.run(tool_run(send, letter="hi"))
        async with playing(wait, send, store=memory.session("b")) as other:
            listed = {run["id"]: run["status"] for run in (await other.get("/api/runs"))["runs"]}
            assert listed == {run_id: "running", asked["id"]: "interrupted"}
            assert (await other.post(f"/api/runs/{run_id}/cancel", {}))["cancelled"] is False
            assert (await other.ask("DELETE", f"/api/runs/{run_id}")).status == 409
            decision = {"call_id": asked["approvals"][0]["call_id"], "approve": True}
            body = {"decisions": [decision]}
            told = await other.post(f"/api/runs/{asked['id']}/approvals", body, 409)
            assert "Another server" in told["error"]["message"]
            opened.set()
            await one.ended(run_id)
            await other.ended(run_id)
            run = await other.get(f"/api/runs/{run_id}")
            assert (run["status"], run["summary"]) == ("ok", "over")
            await one.post(f"/api/runs/{asked['id']}/approvals", body)
            await one.ended(asked["id"])
            assert (await other.get(f"/api/runs/{asked['id']}"))["summary"] == "sent: hi"


async def test_a_log_that_makes_no_sense_costs_itself_only() -> None:
    """What another program, or another version, has left does not stop the server."""
    store = MemoryEventStore()
    odd = "play_" + "0" * 32
    action = {"kind": "tool", "name": "add", "given": {}, "generation": "many"}
    event: Any = ActionEvent(kind="playground.begun", action=action)
    for sid in (f"about.{odd}", "about.somebody-else", "somebody-else"):
        await store.session(sid).append([event])
    async with playing(add, store=store) as client:
        assert (await client.get("/api/runs"))["runs"] == []
        await client.run(tool_run(add, a=1))
        assert (await client.ask("DELETE", "/api/runs")).status == 204
        names = [info.sid for info in await store.sessions()]
    assert names == [f"about.{odd}", "about.somebody-else", "somebody-else"]


async def test_a_log_that_another_server_has_just_begun_is_left_alone() -> None:
    """Only what nobody can have noted any more is deleted."""
    store = MemoryEventStore()
    old, new = f"play_{'1' * 32}", f"play_{'2' * 32}"
    await store.session(old).append([NullEvent().replace(timestamp=1.0)])
    await store.session(new).append([NullEvent().replace(timestamp=time.time())])
    async with playing(add, store=store):
        names = [info.sid for info in await store.sessions()]
    assert names == [new]


@pytest.mark.requirement("S29")
async def test_a_result_that_is_too_large_is_cut_in_the_history(
    stores: Callable[[], EventStore],
) -> None:
    """What nobody can look at fills neither the disk nor the memory, and says so."""

    @streaming_tool
    async def much(size: int) -> AsyncIterator[Any]:
        """Give much."""
        yield ToolArtifactEvent("all.png", b"x" * size, mime_type="image/png")
        yield "x" * size

    store = stores()
    async with playing(much, store=store) as client:
        run = await client.run(tool_run(much, size=20_000_000))
        async with client.stream(f"/api/runs/{run['id']}/events") as frames:
            found = [frame["data"] async for frame in frames]
        sizes = [info.size for info in await store.sessions()]
    assert run["status"] == "ok"
    picture, text = [data for data in found if data["type"] == "tool_artifact_event"]
    assert LEFT_OUT in picture["data"]
    assert picture["mime_type"] == "text/plain"
    assert LEFT_OUT in text["data"]
    assert LEFT_OUT in found[-1]["output"]
    assert sum(sizes) < 30_000_000


class StuckStore(MemoryEventStore):
    """A disk that tells nothing of what it has, when it is asked for the second time."""

    asked = 0

    def sessions(self) -> Any:
        self.asked += 1
        if self.asked > 1:
            return PendingFuture.failed(EventStoreFullError("The disk is full.", store="here"))
        return super().sessions()


async def test_old_runs_that_cannot_be_deleted_do_not_stop_the_new_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What runs has its end all the same."""
    async with playing(add, store=StuckStore()) as client:
        assert (await client.run(tool_run(add, a=1)))["status"] == "ok"
    assert "Old runs cannot be deleted: The disk is full." in caplog.text
    assert "has failed" not in caplog.text


# --- what is exported


async def test_a_run_that_tells_nothing_becomes_no_test() -> None:
    """The next one would end in another way."""
    wait, _, _ = gate()
    async with playing(wait, send) as client:
        run_id = (await client.post("/api/runs", tool_run(wait), 202))["run_id"]
        target = f"/api/runs/{run_id}/export"
        told = (await client.ask("GET", f"{target}?as=pytest")).json
        assert "has not ended yet" in told["error"]["message"]
        await client.post(f"/api/runs/{run_id}/cancel", {})
        await client.ended(run_id)
        answer = await client.ask("GET", f"{target}?as=pytest")
        assert answer.status == 422
        assert "'cancelled'" in answer.json["error"]["message"]
        assert "invoke_sync({})" in (await client.get(f"{target}?as=python"))["text"]
        run = await client.run(tool_run(send, letter="hi"))
        told = (await client.ask("GET", f"/api/runs/{run['id']}/export?as=pytest")).json
        assert "waits for approval" in told["error"]["message"]
        decision = {"call_id": run["approvals"][0]["call_id"], "approve": False, "message": "No!"}
        await client.post(f"/api/runs/{run['id']}/approvals", {"decisions": [decision]})
        await client.ended(run["id"])
        source = (await client.get(f"/api/runs/{run['id']}/export?as=pytest"))["text"]
    assert "Decision(approved=False, message='No!')" in source
    assert "assert call.status == 'denied'" in source


# --- requests that are wrong


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("GET", "/api/tools/none/views", None, 404),
        ("GET", "/api/runs/none", None, 404),
        ("GET", "/api/runs/none/events", None, 404),
        ("GET", "/api/nothing", None, 404),
        ("PUT", "/api/runs", None, 405),
        ("POST", "/api/runs", {"kind": "tool", "name": "none"}, 404),
        ("POST", "/api/runs", {"kind": "agent", "name": "none", "input": ""}, 404),
        ("POST", "/api/runs", {"kind": "command", "name": "add"}, 422),
        ("POST", "/api/runs", {"kind": "tool", "name": ["add"]}, 422),
        ("POST", "/api/runs", {"kind": "tool", "name": "add", "arguments": []}, 422),
        ("POST", "/api/runs", b"[1]", 422),
        ("POST", "/api/runs", b'{"kind": "tool", "kind": "agent"}', 400),
        ("POST", "/api/tools/add/check", b"{", 400),
        ("GET", "/api/runs?limit=many", None, 422),
        ("POST", "/api/runs", b'{"kind":"tool","name":"fail","arguments":{"text":"\\ud800"}}', 422),
        ("POST", "/api/runs", b'{"kind":"tool","name":"add","arguments":{"a":1e400}}', 422),
        ("POST", "/api/runs", b'{"kind":"tool","name":"add","arguments":{"a":NaN}}', 400),
    ],
)
async def test_a_request_that_is_wrong_is_told_why(
    method: str, target: str, body: Any, status: int
) -> None:
    """In the form that all errors have."""
    async with playing(add, fail) as client:
        answer = await client.ask(method, target, body)
    assert answer.status == status, answer.body
    assert answer.json["error"]["status"] == status
    assert answer.json["error"]["message"]
