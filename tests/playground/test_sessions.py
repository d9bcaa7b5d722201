"""Conversations with agents, and the requests to their models, by the routes of the playground."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import Agent, ToolOutputImage, ToolOutputText, function_tool
from agents_tools.content import MessageInputItem
from agents_tools.persistence import SQLiteRunStore
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.text.secrets import register_secret
from tests.playground.client import playing
from tests.playground.shop import Scripted, bake, order, price

if TYPE_CHECKING:
    from pathlib import Path

    from agents_tools.content import Item

OPTIONS: dict[str, Any] = {"watch": False}


def clerk() -> Agent[Any, Any]:
    tools = [price, bake, order]
    return Agent(name="Clerk", instructions="You run a shop.", tools=tools, model=Scripted())


def message(text: str, session: str | None = "s1") -> dict[str, Any]:
    return {"kind": "agent", "name": "Clerk", "input": text, "session": session}


async def test_the_runs_of_a_session_are_one_conversation() -> None:
    async with playing(agents={"clerk": clerk()}, **OPTIONS) as client:
        first = await client.run(message("hello"))
        second = await client.run(message("again"))
        other = await client.run(message("hello", session="s2"))
        alone = await client.run(message("hello", session=None))

        assert first["result"]["value"] == "Message 1 was **hello**."
        assert second["result"]["value"] == "Message 2 was **again**."
        assert other["result"]["value"] == alone["result"]["value"] == first["result"]["value"]
        found = await client.get("/api/sessions/s1")
        assert [run["id"] for run in found["runs"]] == [first["id"], second["id"]]
        assert found["more"] is False
        newest = await client.get("/api/sessions/s1?limit=1")
        assert ([run["id"] for run in newest["runs"]], newest["more"]) == ([second["id"]], True)
        assert alone["session"] is None


async def test_a_conversation_continues_on_the_next_server(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    for number in (1, 2):
        store = SQLiteRunStore(path, keep_display=True)
        async with playing(agents={"clerk": clerk()}, store=store, **OPTIONS) as client:
            run = await client.run(message("hello"))
            assert run["result"]["value"] == f"Message {number} was **hello**."


async def test_a_message_waits_for_the_end_of_the_run_before_it() -> None:
    async with playing(agents={"clerk": clerk()}, **OPTIONS) as client:
        waiting = await client.run(message("order"))
        assert waiting["status"] == "interrupted"
        refused = await client.post("/api/runs", message("again"), 409)
        assert refused["error"]["code"] == "busy"
        (call,) = waiting["approvals"]
        decision = {"call_id": call["call_id"], "path": [], "approve": True}
        await client.post(f"/api/runs/{waiting['id']}/approvals", {"decisions": [decision]})
        assert (await client.ended(waiting["id"]))["status"] == "ok"
        assert (await client.run(message("again")))["result"]["value"].startswith("Message 2")


async def test_each_request_has_its_tokens_and_its_prompt() -> None:
    async with playing(agents={"clerk": clerk()}, **OPTIONS) as client:
        run = await client.run(message("price retry"))
        requests = (await client.get(f"/api/runs/{run['id']}/requests"))["requests"]

        assert [one["turn"] for one in requests] == [1, 2]
        assert [one["usage"]["output_tokens"] for one in requests] == [42, 42]
        assert [one["usage"]["cost"] for one in requests] == [0.0012, 0.0012]
        assert {one["model"] for one in requests} == {"test/scripted"}
        prompt = await client.get(f"/api/runs/{run['id']}/requests/{requests[1]['prompt']}")
        assert prompt["instructions"] == "You run a shop."
        assert [tool["name"] for tool in prompt["tools"]] == ["price", "bake", "order"]
        kinds = [item.get("type", item.get("role")) for item in prompt["input"]]
        assert kinds == ["user", "function_call", "function_call_output"]
        missing = await client.ask("GET", f"/api/runs/{run['id']}/requests/2")
        assert missing.status == 404


async def test_prompts_stay_out_of_the_events_and_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    register_secret("open-sesame-42")
    agent = Agent(
        name="Clerk", instructions="Keep open-sesame-42 and plum-43.", model=ScriptedModel(["ok"])
    )
    store = SQLiteRunStore(path, keep_display=True)
    async with playing(agents={"clerk": agent}, store=store, **OPTIONS) as client:
        run = await client.run(message("hello"))
        prompt = await client.get(f"/api/runs/{run['id']}/requests/0")
        assert prompt["instructions"] == "Keep *** and plum-43."
        async with client.stream(f"/api/runs/{run['id']}/events?after=-1") as frames:
            events = json.dumps([frame async for frame in frames])
        assert "plum-43" not in events
    assert b"plum-43" not in path.read_bytes()

    store = SQLiteRunStore(path, keep_display=True)
    async with playing(agents={"clerk": agent}, store=store, **OPTIONS) as client:
        (request,) = (await client.get(f"/api/runs/{run['id']}/requests"))["requests"]
        assert (request["prompt"], request["sent"]) == (None, None)
        assert request["usage"]["requests"] == 1


async def test_requests_of_agents_inside_a_tool_have_its_path() -> None:
    inner = Agent(name="inner", model=ScriptedModel(["two"]))
    outer = Agent(
        name="Clerk",
        tools=[inner.as_tool(tool_name="ask", tool_description="Ask.")],
        model=ScriptedModel([tool_call("ask", input="go"), "done"]),
    )

    @function_tool
    def plain(text: str) -> str:
        """Return the text."""
        return text

    async with playing(plain, agents={"clerk": outer}, **OPTIONS) as client:
        run = await client.run(message("go"))
        requests = (await client.get(f"/api/runs/{run['id']}/requests"))["requests"]
        assert [(one["agent"], len(one["path"])) for one in requests] == [
            ("Clerk", 0),
            ("inner", 1),
            ("Clerk", 0),
        ]
        call = await client.run({"kind": "tool", "name": "plain", "arguments": {"text": "x"}})
        assert (await client.get(f"/api/runs/{call['id']}/requests"))["requests"] == []


async def test_a_message_can_change_the_instructions_and_the_model() -> None:
    async with playing(agents={"clerk": clerk()}, **OPTIONS) as client:
        details = await client.get("/api/agents/Clerk")
        assert details == {"instructions": "You run a shop.", "model": "test/scripted"}
        changes = {"instructions": "You run a bakery.", "model": "local/rules"}
        run = await client.run(message("price of roll") | changes)
        assert run["changes"] == changes
        again = await client.post(f"/api/runs/{run['id']}/rerun", {}, 202)
        for run_id in (run["id"], again["run_id"]):
            await client.ended(run_id)
            requests = (await client.get(f"/api/runs/{run_id}/requests"))["requests"]
            assert {one["model"] for one in requests} == {"local/rules"}
            prompt = await client.get(f"/api/runs/{run_id}/requests/0")
            assert prompt["instructions"] == "You run a bakery."
        plain = await client.run(message("hello"))
        prompt = await client.get(f"/api/runs/{plain['id']}/requests/0")
        assert prompt["instructions"] == "You run a shop."


PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
FACTS = [
    {"name": "chart.png", "mime_type": "image/png", "size": 108},
    {"name": "prices.csv", "mime_type": "text/csv", "size": 9},
]


def attached(**files: bytes) -> dict[str, Any]:
    """Return the part of a request that attaches files."""
    named = {name.replace("_", "."): data for name, data in files.items()}
    return {
        "files": [
            {"name": name, "data": base64.b64encode(data).decode()} for name, data in named.items()
        ]
    }


def blocks_sent(item: Item) -> list[Any]:
    """Return the content blocks of a message to the model."""
    assert isinstance(item, MessageInputItem)
    assert isinstance(item.content, list)
    return list(item.content)


async def test_a_message_has_files_that_are_stored_with_the_session(tmp_path: Path) -> None:
    """Their data is sent to the model, and not to the page until it asks for a file."""
    path = tmp_path / "runs.db"
    model = ScriptedModel(["Seen.", "Seen again."])
    agent = Agent(name="Clerk", model=model)
    store = SQLiteRunStore(path, keep_display=True)
    async with playing(agents={"clerk": agent}, store=store, **OPTIONS) as client:
        given = message("What is that?") | attached(chart_png=PNG, prices_csv=b"roll, 0.8")
        run = await client.run(given)
        assert run["files"] == FACTS
        text, image, table = blocks_sent(model.requests[0].input[0])
        assert text == ToolOutputText("What is that?")
        assert image == ToolOutputImage(PNG, filename="chart.png", mime_type="image/png")
        assert (table.data, table.filename) == (b"roll, 0.8", "prices.csv")
        prompt = await client.get(f"/api/runs/{run['id']}/requests/0")
        async with client.stream(f"/api/runs/{run['id']}/events?after=-1") as frames:
            events = [frame["data"] async for frame in frames]
        sent = next(event["content"] for event in events if event["type"] == "message_event")
        assert sent == prompt["input"][0]["content"]
        assert [(part.get("size"), "data" in part) for part in sent] == [
            (None, False),
            (108, False),
            (9, False),
        ]

    model = ScriptedModel(["And again."])
    agent = Agent(name="Clerk", model=model)
    store = SQLiteRunStore(path, keep_display=True)
    async with playing(agents={"clerk": agent}, store=store, **OPTIONS) as client:
        (listed,) = (await client.get("/api/sessions/s1"))["runs"]
        assert listed["files"] == FACTS
        file = await client.ask("GET", f"/api/runs/{run['id']}/files/0")
        assert (file.body, file.headers["content-type"]) == (PNG, "application/octet-stream")
        assert (await client.ask("GET", f"/api/runs/{run['id']}/files/2")).status == 404
        again = await client.post(f"/api/runs/{run['id']}/rerun", {}, 202)
        assert (await client.ended(again["run_id"]))["files"] == FACTS
        assert blocks_sent(model.requests[0].input[-1])[1] == image


async def test_a_file_alone_is_a_message() -> None:
    model = ScriptedModel(["Seen."])
    async with playing(agents={"clerk": Agent(name="Clerk", model=model)}, **OPTIONS) as client:
        run = await client.run(message("") | attached(a_png=PNG))
        assert (run["status"], run["input"]) == ("ok", "")
        assert [block.type for block in blocks_sent(model.requests[0].input[0])] == ["image"]


@pytest.mark.parametrize(
    ("files", "status", "said"),
    [
        (attached(a_bin=bytes((10 << 20) + 1)), 413, "expected at most 10 MiB together"),
        ({"files": [{"name": "a", "data": "?"}]}, 422, "files[0].data is not base64"),
        ({"files": [{"data": ""}]}, 422, "files[0]: expected a name, and data in base64."),
        ({"files": [{"name": "a", "data": ""}] * 21}, 422, "files: expected at most 20, got 21."),
        ({"files": "a"}, 422, "files: expected a list."),
    ],
)
async def test_files_that_cannot_be_sent_are_refused(
    files: dict[str, Any], status: int, said: str
) -> None:
    async with playing(agents={"clerk": clerk()}, **OPTIONS) as client:
        answer = await client.post("/api/runs", message("look") | files, status)
        assert said in answer["error"]["message"]
        assert (await client.get("/api/runs"))["runs"] == []


async def test_a_request_during_the_shutdown_gets_an_answer(tmp_path: Path) -> None:
    """A page that is still open asks for the list of runs, for example."""
    store = SQLiteRunStore(tmp_path / "runs.db")
    async with playing(agents={"clerk": clerk()}, store=store, **OPTIONS) as client:
        run = await client.run(message("hello"))
        await client.app.aclose()
        for path in ("/api/sessions/s1", f"/api/runs/{run['id']}", "/api/runs"):
            answer = await client.ask("GET", path)
            assert (answer.status, answer.json["error"]["message"]) == (
                503,
                "The server is stopping.",
            )
