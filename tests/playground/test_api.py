"""The HTTP API of the playground."""

from __future__ import annotations

import asyncio
import base64
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import psutil
import pytest
from pydantic import BaseModel, Field

from agents_tools import (
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
    get_default_tools,
    policies,
    register_secret,
    streaming_tool,
)
from agents_tools.errors import EventStoreFullError
from agents_tools.persistence import MemoryRunStore, RunStore, SQLiteRunStore
from agents_tools.persistence.filter import EventFilter
from agents_tools.persistence.storage import AppendRows, DeleteLog
from agents_tools.persistence.stores.memory import MemoryStorage
from agents_tools.persistence.stream import LEFT_OUT
from agents_tools.playground import LoadedTarget, ReloadingTarget
from agents_tools.playground.run_manager import PlaygroundRuns
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.text import forget_secret
from agents_tools.tool import function_tools
from tests.playground.client import playing
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


class Place(BaseModel):
    """A place."""

    lat: Annotated[float, Field(ge=-90, le=90)]
    names: list[str] = []


@function_tool
def price(thing: str) -> int:
    """Return a price."""
    try:
        return {"tea": 3}[thing]
    except KeyError as error:
        raise RuntimeError(f"no price for {thing}") from error


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


class KeptMemory(MemoryStorage):
    """A storage in memory that several servers open, one after the other."""

    def close(self) -> None:
        """Keep the logs for the next server."""


@pytest.fixture(params=["memory", "sqlite"])
def store_factory(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], RunStore]:
    """Return a function that opens the same store on each call."""
    if request.param == "sqlite":
        return lambda: SQLiteRunStore(tmp_path / "history.sqlite", keep_display=True)
    memory = KeptMemory()
    return lambda: RunStore(memory, keep_display=True)


def tool_run(tool: Any, **arguments: Any) -> dict[str, Any]:
    return {"kind": "tool", "name": tool.name, "arguments": arguments}


def gate() -> tuple[Any, asyncio.Event, list[str]]:
    """Return a waiting tool, the event that releases it, and the list of its notes."""
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


async def test_the_target_endpoint_lists_tools_and_agents() -> None:
    """It lists tools, agents with their details, and the kind of server."""
    helper = Agent(name="Helper", instructions="Help. " * 100, tools=[add], model="local/rules")
    async with playing(add, burn, send, agents={"helper": helper}) as client:
        info = await client.get("/api/info")
        assert info["target"] == "tools.py"
        assert (info["name"], info["generation"], info["problems"]) == ("agents-tools", 1, [])
        assert (info["history"], info["read_only"]) == (False, False)
        response = await client.get("/api/tools")
    first, second, third = response["tools"]
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
    (agent,) = response["agents"]
    assert (agent["name"], agent["tools"], agent["model"]) == ("Helper", ["add"], "local/rules")
    assert len(agent["instructions"]) <= 200


async def test_tools_of_all_kinds_are_distinguished() -> None:
    """The page shows the kind of a tool."""

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
    """The page can fill the form with the example."""

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


async def test_two_tools_of_one_name_are_reported_and_the_server_works() -> None:
    """Neither a model nor a request could distinguish them."""
    other = send.with_(name="add")
    async with playing(add, other) as client:
        assert [tool["name"] for tool in (await client.get("/api/tools"))["tools"]] == ["add"]
        (problem,) = (await client.get("/api/info"))["problems"]
    assert "Another tool is called 'add'" in problem["message"]


async def test_the_page_gets_the_schema_for_each_provider() -> None:
    """It includes the token count, and the reason if strict mode is not possible."""

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


async def test_argument_errors_are_reported_per_field() -> None:
    """The texts are those that the model would get, at the paths of the fields."""
    async with playing(look_up) as client:
        response = await client.post(
            "/api/tools/look_up/check",
            {"arguments": {"place": {"lat": 91}, "near": [{"lat": 1}, {"lat": "x"}], "depht": 1}},
        )
        good = await client.post("/api/tools/look_up/check", {"arguments": {"place": {"lat": 9}}})
    assert good == {"ok": True}
    assert response["ok"] is False
    faults = {tuple(fault["path"]): fault for fault in response["faults"]}
    assert set(faults) == {("place", "lat"), ("near", 1, "lat"), ("depht",)}
    for fault in response["faults"]:
        assert fault["message"] in response["message"]
    assert faults["place", "lat"]["got"] == "91"
    assert faults["near", 1, "lat"]["expected"]


async def test_arguments_are_validated_against_the_schema_changed_by_policies() -> None:
    """Hidden parameters are rejected, and arguments are validated against the published schema."""
    hidden = policies.hide(b=5)(add)
    async with playing(hidden) as client:
        response = await client.post("/api/tools/add/check", {"arguments": {"a": "x"}})
        assert [fault["path"] for fault in response["faults"]] == [["a"]]
        run = await client.run(tool_run(add, a=1))
    assert run["result"]["model"] == [{"type": "text", "text": "6"}]


# --- runs


async def test_the_result_of_a_run_is_shown_as_the_model_gets_it() -> None:
    """The result is shown as content blocks, as a value, and as one line."""
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
async def test_a_failed_tool_shows_the_error_for_the_model(
    tool: Any, arguments: dict[str, Any], message: str
) -> None:
    """The author needs the message, unlike the clients of a production server."""
    async with playing(tool) as client:
        run = await client.run(tool_run(tool, **arguments))
    assert run["status"] == "error"
    assert message in run["result"]["model"][0]["text"]
    assert message in run["summary"]


async def test_calls_share_the_state_of_tools(tmp_path: Path) -> None:
    """A developer tries a tool as in one terminal; the shell ends with the playground."""
    with get_default_tools(tmp_path) as tools:
        bash = tools[0].as_function_tool()
        async with playing(bash) as client:
            for command in ("NAME=ada; echo $$ >pid", "echo $NAME"):
                body = {**tool_run(bash, command=command), "confirmed": True}
                run = await client.run(body)
            assert run["summary"].strip() == "ada"
            shell = psutil.Process(int((tmp_path / "pid").read_text()))
        await comes(lambda: not shell.is_running())


async def test_rejected_arguments_start_no_run() -> None:
    """The response has the same errors as the check."""
    async with playing(add) as client:
        response = await client.post("/api/runs", tool_run(add, a="x"), 422)
        assert response["error"]["code"] == "arguments"
        assert [fault["path"] for fault in response["error"]["faults"]] == [["a"]]
        assert (await client.get("/api/runs"))["runs"] == []


async def test_a_destructive_tool_needs_confirmation() -> None:
    """The second request carries the confirmation of a person; so does a repeated run."""
    async with playing(burn) as client:
        response = await client.post("/api/runs", tool_run(burn, book="it"), 409)
        assert response["error"]["code"] == "confirm"
        run = await client.run({**tool_run(burn, book="it"), "confirmed": True})
        assert run["status"] == "ok"
        response = await client.post(f"/api/runs/{run['id']}/rerun", {}, 409)
        assert response["error"]["code"] == "confirm"
        await client.post(f"/api/runs/{run['id']}/rerun", {"confirmed": True}, 202)


async def test_events_come_while_the_tool_works_and_resume_by_id() -> None:
    """Progress arrives before the end, and no event is sent twice."""
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


async def test_a_run_without_a_subscriber_continues_and_can_be_cancelled() -> None:
    """A page that is closed by mistake does not stop the run; Cancel reaches the tool."""
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
    """The run ends as waiting, and resumes in the same stream."""
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
        assert "does not wait for approvals" in again["error"]["message"]


async def test_the_export_has_the_arguments_edited_in_the_approval() -> None:
    """The exported test covers the call that was made, not the requested one."""
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
    """The page shows the calls as a tree."""
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


async def test_runs_are_listed_newest_first_in_pages() -> None:
    """The next page starts after the run that the current page names."""
    async with playing(add) as client:
        for number in range(5):
            await client.run(tool_run(add, a=number))
        first = await client.get("/api/runs?limit=2")
        assert [run["arguments"]["a"] for run in first["runs"]] == [4, 3]
        assert first["more"] is True
        rest = await client.get(f"/api/runs?limit=10&before={first['runs'][-1]['id']}")
    assert [run["arguments"]["a"] for run in rest["runs"]] == [2, 1, 0]
    assert rest["more"] is False


async def test_the_history_is_available_after_a_restart(
    store_factory: Callable[[], RunStore],
) -> None:
    """The next server lists, replays, reruns and exports the runs."""
    async with playing(add, store=store_factory()) as client:
        run = await client.run(tool_run(add, a=1))
        async with client.stream(f"/api/runs/{run['id']}/events") as frames:
            before = [frame async for frame in frames]
    async with playing(add, store=store_factory()) as client:
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


async def test_deleting_runs_deletes_all_their_data(
    store_factory: Callable[[], RunStore],
) -> None:
    """One run or all can be deleted, except running ones and the data of other programs."""
    store = store_factory()
    other = store.log("somebody-else")
    await other.append([NullEvent()])
    await other.release()
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
        names = [info.run_id for info in await store.logs()]
    assert sorted(names) == sorted(["somebody-else", going])


async def test_the_history_is_bounded(store_factory: Callable[[], RunStore]) -> None:
    """The oldest runs are deleted with their events."""
    store = store_factory()
    async with playing(add, store=store, keep_runs=3) as client:
        for number in range(5):
            await client.run(tool_run(add, a=number))
        runs = (await client.get("/api/runs"))["runs"]
        logs = await store.logs()
    assert [run["arguments"]["a"] for run in runs] == [4, 3, 2]
    assert len(logs) == 3


async def test_a_run_that_exceeds_the_history_is_removed_from_memory() -> None:
    """Its input with secrets and its tracebacks are deleted with its events."""

    @function_tool
    def check(word: str) -> str:
        """Check."""
        raise ValueError(word)

    bench = ReloadingTarget(lambda: LoadedTarget(target="tools.py", tools=(check,)))
    bench.load()
    runs = PlaygroundRuns(MemoryRunStore(), bench, keep=1, keep_bytes=1 << 20, watch=False)

    async def run(word: str) -> str:
        run_id = await runs.start_tool(check, {"word": word})
        frames = await runs.frames(run_id, -1)
        assert frames is not None
        async for _ in frames:
            pass
        await runs.settle()
        return run_id

    register_secret("open-sesame-31337")
    try:
        await runs.start()
        first = await run("open-sesame-31337")
        record = await runs.history.get(first)
        assert record is not None
        assert runs.given(record) == {"word": "open-sesame-31337"}
        assert runs.tracebacks.of_run(first)
        await run("other")
        assert await runs.history.get(first) is None
        assert runs.given(record) is None
        assert not runs.tracebacks.of_run(first)
    finally:
        forget_secret("open-sesame-31337")
        await runs.aclose()


async def test_a_traceback_is_kept_although_on_error_raises() -> None:
    """The function of the application is called after that."""

    @function_tool
    def check() -> str:
        """Check."""
        raise ValueError("wrong")

    def report(error: BaseException) -> None:
        raise RuntimeError("The log is full.") from error

    async with playing(check, on_error=report) as client:
        run = await client.run(tool_run(check))
        found = await client.get(f"/api/runs/{run['id']}/tracebacks")
    assert [one["errors"][-1]["type"] for one in found["tracebacks"]] == ["ValueError"]


async def test_the_history_is_bounded_by_its_size_as_well(
    store_factory: Callable[[], RunStore],
) -> None:
    """A few runs with large results can take more space than many others."""

    @function_tool
    def much(size: int) -> str:
        """Give much."""
        return "x" * size

    async with playing(much, store=store_factory(), keep_bytes=300_000) as client:
        for size in (10, 100_000, 100_001, 100_002):
            run = await client.run(tool_run(much, size=size))
        runs = (await client.get("/api/runs"))["runs"]
    assert runs[0]["id"] == run["id"]
    assert 0 < len(runs) < 4


@pytest.mark.requirement("S29")
async def test_a_value_that_is_too_long_for_the_page_is_shortened() -> None:
    """The page shows its beginning and its end, as for the model."""

    @function_tool
    def much() -> str:
        """Give much."""
        return "x" * 3_000_000

    async with playing(much) as client:
        result = (await client.run(tool_run(much)))["result"]
    assert result["value"] is None
    assert len(result["model"][0]["text"]) < 300_000


class FullStorage(MemoryStorage):
    """A storage whose disk is full."""

    def write(self, requests: Any, /) -> Any:
        return [
            EventStoreFullError("The disk is full.", store="here")
            if isinstance(request, AppendRows)
            else super(FullStorage, self).write([request])[0]
            for request in requests
        ]


async def test_a_history_write_error_ends_the_run_with_the_problem() -> None:
    """A run that cannot be stored stops, and its stream ends with the error."""
    async with playing(add, store=RunStore(FullStorage())) as client:
        run_id = (await client.post("/api/runs", tool_run(add, a=1), 202))["run_id"]
        run = await client.ended(run_id)
        assert run["status"] == "error"
        async with client.stream(f"/api/runs/{run_id}/events") as frames:
            last = [frame["data"] async for frame in frames][-1]
        assert (last["type"], last["status"]) == ("run_finished_event", "error")
        assert "The disk is full" in last["error"]
        assert [one["status"] for one in (await client.get("/api/runs"))["runs"]] == ["error"]


@pytest.mark.requirement("S20")
async def test_stored_runs_are_masked(store_factory: Callable[[], RunStore]) -> None:
    """Secrets reach the tool, but neither the file nor the next server."""
    register_secret("open-sesame-31337")
    store = store_factory()
    try:
        async with playing(add, fail, store=store) as client:
            given = {"text": "the word is open-sesame-31337"}
            run = await client.run(tool_run(fail, **given))
            assert run["arguments"] == {"text": "the word is ***"}
            logs = [store.log(info.run_id) for info in await store.logs()]
            stored = [event.to_dict() for log in logs for event in await log.read()]
            again = await client.post(f"/api/runs/{run['id']}/rerun", {}, 202)
            await client.ended(again["run_id"])
            for log in logs:
                log.close()
        async with playing(fail, store=store_factory()) as client:
            response = await client.post(f"/api/runs/{run['id']}/rerun", {}, 422)
    finally:
        forget_secret("open-sesame-31337")
    assert "open-sesame" not in str(stored)
    assert response["error"]["code"] == "masked"


async def test_an_unfinished_run_of_an_earlier_server_is_orphaned(tmp_path: Path) -> None:
    """Its process has ended. The page can cancel or delete it."""
    path, copy = tmp_path / "history.sqlite", tmp_path / "copy.sqlite"
    wait, _, _ = gate()
    async with playing(wait, store=SQLiteRunStore(path)) as client:
        run_id = (await client.post("/api/runs", tool_run(wait), 202))["run_id"]
        other = (await client.post("/api/runs", tool_run(wait), 202))["run_id"]
        with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(copy)) as copied:
            live.backup(copied)
            with copied:
                copied.execute("UPDATE log SET expires = 0")
    async with playing(wait, store=SQLiteRunStore(copy)) as client:
        listed = {run["id"]: run["status"] for run in (await client.get("/api/runs"))["runs"]}
        assert listed == {run_id: "orphaned", other: "orphaned"}
        assert await client.post(f"/api/runs/{run_id}/resume", {}) == {"ok": True}
        assert (await client.ended(run_id))["status"] == "error"  # the call may have had an effect
        assert await client.post(f"/api/runs/{other}/cancel", {}) == {"cancelled": True}
        assert (await client.get(f"/api/runs/{other}"))["status"] == "cancelled"
        assert (await client.ask("DELETE", f"/api/runs/{other}")).status == 204
        assert [run["id"] for run in (await client.get("/api/runs"))["runs"]] == [run_id]


async def test_a_waiting_run_is_decided_on_the_next_server(
    store_factory: Callable[[], RunStore],
) -> None:
    """The server can be restarted before a person decides."""
    async with playing(send, store=store_factory()) as client:
        run = await client.run(tool_run(send, letter="hi"))
        assert run["status"] == "interrupted"
    decision = {"call_id": run["approvals"][0]["call_id"], "approve": True}
    async with playing(send, store=store_factory()) as client:
        (listed,) = (await client.get("/api/runs"))["runs"]
        assert listed["status"] == "interrupted"
        await client.post(f"/api/runs/{run['id']}/approvals", {"decisions": [decision]})
        run = await client.ended(run["id"])
        assert (run["status"], run["summary"]) == ("ok", "sent: hi")
    async with playing(send, store=store_factory()) as client:
        (listed,) = (await client.get("/api/runs"))["runs"]
        assert (listed["status"], listed["summary"]) == ("ok", "sent: hi")


async def test_a_decided_run_is_resumed_when_its_tool_is_available_again(
    store_factory: Callable[[], RunStore],
) -> None:
    """The decision is stored although this server cannot continue the run."""
    async with playing(send, store=store_factory()) as client:
        run = await client.run(tool_run(send, letter="hi"))
    target = f"/api/runs/{run['id']}"
    async with playing(add, store=store_factory()) as client:
        decision = {"call_id": run["approvals"][0]["call_id"], "approve": True}
        await client.post(f"{target}/approvals", {"decisions": [decision]})
        assert (await client.get(target))["approvals"] == []
        refused = await client.post(f"{target}/resume", {}, 409)
        assert "this server does not offer 'send'" in refused["error"]["message"]
    async with playing(send, store=store_factory()) as client:
        assert await client.post(f"{target}/resume", {}) == {"ok": True}
        assert (await client.ended(run["id"]))["summary"] == "sent: hi"
        refused = await client.post(f"{target}/resume", {}, 409)
        assert "it is 'ok'" in refused["error"]["message"]


async def test_a_run_that_waits_for_long_can_be_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is read from the store when it is no longer in memory."""
    monkeypatch.setattr("agents_tools.playground.run_manager._IN_MEMORY", 1)
    async with playing(send, add) as client:
        run = await client.run(tool_run(send, letter="hi"))
        for number in range(4):
            await client.run(tool_run(add, a=number))
        (item,) = (await client.get(f"/api/runs/{run['id']}"))["approvals"]
        decision = {"call_id": item["call_id"], "approve": True}
        await client.post(f"/api/runs/{run['id']}/approvals", {"decisions": [decision]})
        assert (await client.ended(run["id"]))["summary"] == "sent: hi"


async def test_a_waiting_run_is_cancelled_on_the_next_server(
    store_factory: Callable[[], RunStore],
) -> None:
    """The user may no longer need it."""
    async with playing(send, store=store_factory()) as client:
        run = await client.run(tool_run(send, letter="hi"))
    async with playing(send, store=store_factory()) as client:
        response = await client.post(f"/api/runs/{run['id']}/cancel", {})
        assert response == {"cancelled": True}
        assert (await client.get(f"/api/runs/{run['id']}"))["status"] == "cancelled"


async def test_a_waiting_run_does_not_resume_with_a_masked_secret(
    store_factory: Callable[[], RunStore],
) -> None:
    """The tool would get the mask instead of the secret, which the next server does not have."""
    register_secret("open-sesame-31337")
    try:
        async with playing(send, store=store_factory()) as client:
            run = await client.run(tool_run(send, letter="open-sesame-31337"))
    finally:
        forget_secret("open-sesame-31337")
    async with playing(send, store=store_factory()) as client:
        decision = {"call_id": run["approvals"][0]["call_id"], "approve": True}
        target = f"/api/runs/{run['id']}/approvals"
        response = await client.post(target, {"decisions": [decision]}, 409)
    assert response["error"]["code"] == "masked"


async def test_two_servers_on_one_file_share_their_runs(tmp_path: Path) -> None:
    """Each shows the runs of the other one, cancels them and decides about them."""
    path = tmp_path / "history.sqlite"
    wait, opened, notes = gate()
    async with (
        playing(wait, send, store=SQLiteRunStore(path)) as one,
        playing(wait, send, store=SQLiteRunStore(path)) as other,
    ):
        going = (await one.post("/api/runs", tool_run(wait), 202))["run_id"]
        ending = (await one.post("/api/runs", tool_run(wait), 202))["run_id"]
        asked = await one.run(tool_run(send, letter="hi"))
        listed = {run["id"]: run["status"] for run in (await other.get("/api/runs"))["runs"]}
        assert listed == {going: "running", ending: "running", asked["id"]: "interrupted"}
        assert (await other.ask("DELETE", f"/api/runs/{going}")).status == 409
        assert (await other.post(f"/api/runs/{ending}/cancel", {}))["cancelled"] is True
        assert (await other.ended(ending))["status"] == "cancelled"
        assert notes == ["cancelled"]
        opened.set()
        run = await other.ended(going)
        assert (run["status"], run["summary"]) == ("ok", "over")
        decision = {"call_id": asked["approvals"][0]["call_id"], "approve": True}
        await other.post(f"/api/runs/{asked['id']}/approvals", {"decisions": [decision]})
        assert (await one.ended(asked["id"]))["summary"] == "sent: hi"


async def test_the_log_of_another_program_does_not_affect_the_others() -> None:
    """It is neither shown nor deleted."""
    store = MemoryRunStore()
    log = store.log("somebody-else")
    await log.append([NullEvent()])
    await log.release()
    async with playing(add, store=store) as client:
        assert (await client.get("/api/runs"))["runs"] == []
        await client.run(tool_run(add, a=1))
        assert (await client.ask("DELETE", "/api/runs")).status == 204
        names = [info.run_id for info in await store.logs()]
    assert names == ["somebody-else"]


@pytest.mark.requirement("S29")
async def test_a_result_that_is_too_large_is_truncated_in_the_history(
    store_factory: Callable[[], RunStore],
) -> None:
    """A huge result fills neither the disk nor the memory, and the cut is marked."""

    @streaming_tool
    async def much(size: int) -> AsyncIterator[Any]:
        """Give much."""
        yield ToolArtifactEvent("all.png", b"x" * size, mime_type="image/png")
        yield "x" * size

    store = store_factory()
    async with playing(much, store=store) as client:
        run = await client.run(tool_run(much, size=20_000_000))
        async with client.stream(f"/api/runs/{run['id']}/events") as frames:
            found = [frame["data"] async for frame in frames]
        sizes = [info.size for info in await store.logs()]
        log = store.log(run["id"])
        (end,) = await log.read(where=EventFilter(types=("run_finished_event",)))
        log.close()
    assert run["status"] == "ok"
    picture, text = [data for data in found if data["type"] == "tool_artifact_event"]
    assert LEFT_OUT in picture["data"]
    assert picture["mime_type"] == "text/plain"
    assert LEFT_OUT in text["data"]
    assert LEFT_OUT in end.to_dict()["output"]
    assert found[-1]["output"] is None  # the page asks for the result, once
    assert sum(sizes) < 30_000_000


class FailingDeletion(MemoryStorage):
    """A storage that cannot delete."""

    def write(self, requests: Any, /) -> Any:
        return [
            EventStoreFullError("The disk is full.", store="here")
            if isinstance(request, DeleteLog)
            else super(FailingDeletion, self).write([request])[0]
            for request in requests
        ]


async def test_a_failed_deletion_of_old_runs_does_not_stop_new_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """New runs still get their end."""
    async with playing(add, store=RunStore(FailingDeletion()), keep_runs=1) as client:
        for number in range(2):
            assert (await client.run(tool_run(add, a=number)))["status"] == "ok"
    assert "Old runs cannot be deleted: The disk is full." in caplog.text
    assert "has failed" not in caplog.text


# --- export


async def test_a_run_without_a_reproducible_result_is_not_exported_as_a_test() -> None:
    """Another run would end differently."""
    wait, _, _ = gate()
    async with playing(wait, send) as client:
        run_id = (await client.post("/api/runs", tool_run(wait), 202))["run_id"]
        target = f"/api/runs/{run_id}/export"
        response = (await client.ask("GET", f"{target}?as=pytest")).json
        assert "has not ended yet" in response["error"]["message"]
        await client.post(f"/api/runs/{run_id}/cancel", {})
        await client.ended(run_id)
        answer = await client.ask("GET", f"{target}?as=pytest")
        assert answer.status == 422
        assert "'cancelled'" in answer.json["error"]["message"]
        assert "invoke_sync({})" in (await client.get(f"{target}?as=python"))["text"]
        run = await client.run(tool_run(send, letter="hi"))
        response = (await client.ask("GET", f"/api/runs/{run['id']}/export?as=pytest")).json
        assert "waits for approval" in response["error"]["message"]
        decision = {"call_id": run["approvals"][0]["call_id"], "approve": False, "message": "No!"}
        await client.post(f"/api/runs/{run['id']}/approvals", {"decisions": [decision]})
        await client.ended(run["id"])
        source = (await client.get(f"/api/runs/{run['id']}/export?as=pytest"))["text"]
    assert "Decision(approved=False, message='No!')" in source
    assert "assert call.status == 'denied'" in source


# --- invalid requests


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
async def test_an_invalid_request_is_rejected_with_the_reason(
    method: str, target: str, body: Any, status: int
) -> None:
    """The error has the common form."""
    async with playing(add, fail) as client:
        answer = await client.ask(method, target, body)
    assert answer.status == status, answer.body
    assert answer.json["error"]["status"] == status
    assert answer.json["error"]["message"]


async def test_a_failed_call_has_a_traceback_from_the_frames_of_the_user_on() -> None:
    """Also one inside an agent; a run that succeeds, or was deleted, has none."""
    told: list[BaseException] = []
    script = [tool_call("price", thing="gold", call_id="c1"), "Sorry."]
    agent = Agent("buyer", model=ScriptedModel(script), tools=[price])
    async with playing(price, agents={"buyer": agent}, on_error=told.append) as client:
        bought = await client.run({"kind": "agent", "name": "buyer", "input": "Buy gold."})
        assert bought["status"] == "ok"
        (failed,) = await tracebacks_of(client, bought)
        assert failed["path"] == ["c1"]
        assert [one["type"] for one in failed["errors"]] == ["RuntimeError", "KeyError"]
        assert failed["errors"][0]["message"] == "no price for gold"
        (frame,) = failed["errors"][0]["frames"]
        assert (frame["function"], frame["own"]) == ("price", True)
        assert frame["path"] == __file__
        assert "raise RuntimeError" in frame["source"][frame["line"] - frame["first"]]
        assert [repr(error) for error in told] == ["RuntimeError('no price for gold')"]

        alone = await client.run({"kind": "tool", "name": "price", "arguments": {"thing": "x"}})
        assert len(await tracebacks_of(client, alone)) == 1
        fine = await client.run({"kind": "tool", "name": "price", "arguments": {"thing": "tea"}})
        assert await tracebacks_of(client, fine) == []
        deleted = await client.ask("DELETE", f"/api/runs/{alone['id']}")
        assert deleted.status == 204
        missing = await client.ask("GET", f"/api/runs/{alone['id']}/tracebacks")
        assert missing.status == 404


async def test_an_agent_that_fails_has_a_traceback() -> None:
    """The error of a model, or of other code of the user, ends the run."""

    async def fail(_: Any) -> str:
        raise ZeroDivisionError("no model")

    agent = Agent("failing", model=ScriptedModel([fail]))
    async with playing(add, agents={"failing": agent}) as client:
        run = await client.run({"kind": "agent", "name": "failing", "input": "x"})
        assert run["status"] == "error"
        (failed,) = await tracebacks_of(client, run)
        assert failed["path"] == []
        assert failed["errors"][-1]["type"] == "ZeroDivisionError"
        assert failed["errors"][-1]["frames"][0]["function"] == "fail"


async def tracebacks_of(client: Any, run: dict[str, Any]) -> list[Any]:
    """Return the errors of a run."""
    return (await client.get(f"/api/runs/{run['id']}/tracebacks"))["tracebacks"]
