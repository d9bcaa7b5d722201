"""`agents-tools events`: list, show, replay and export recorded events."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import Agent, RunConfig, Runner, ToolError, function_tool, listen, streaming_tool
from agents_tools.cli.events import command
from agents_tools.events import (
    Event,
    MessageEvent,
    NullEvent,
    RunFinishedEvent,
    RunStartedEvent,
    event_from_dict,
)
from agents_tools.events.kinds import RunRecordEvent
from agents_tools.persistence import SQLiteEventStore, SQLiteRunStore
from agents_tools.testing import ScriptedModel, tool_call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.cli.conftest import Run

PATIENCE = 45.0


@streaming_tool
async def crawl(url: str) -> AsyncIterator[str]:
    """Crawl."""
    del url
    yield "page\x1b[2J one"


@function_tool
async def boom(x: int) -> str:
    """Fail."""
    raise ToolError(f"no {x}")


async def recorded() -> list[Event]:
    """Return the events of two runs, one with a nested agent and a failing call."""
    inner = Agent(
        name="inner", tools=[crawl], model=ScriptedModel([tool_call("crawl", url="a"), "found"])
    )
    ask = inner.as_tool(tool_name="ask", tool_description="Ask.", streaming=True)
    first = [tool_call("ask", input="hi"), tool_call("boom", x=1)]
    outer = Agent(
        name="outer", tools=[ask, boom], model=ScriptedModel([first, "All\x1b[31m done.", "Bye."])
    )
    events: list[Event] = []
    for text in ("go", "and again"):
        async with Runner.run_streamed(outer, text) as run:
            events += [event async for event in run.stream_events()]
    return events


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a store with two sessions."""
    file = str(tmp_path / "runs.db")
    with closing(SQLiteEventStore(file, "chat")) as store:
        store.append(asyncio.run(recorded())).result(PATIENCE)
        other = MessageEvent("hello").replace(timestamp=1.7e9)
        store.session("odd\x1b[0m").append([other]).result(PATIENCE)
    return file


@pytest.mark.requirement("D53")
def test_list_shows_sessions_and_their_runs(run: Run, path: str) -> None:
    done = run("events", "list", path)
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert lines[0].startswith("chat (")
    assert [line.split()[0][:4] for line in lines[1:3]] == ["run_", "run_"]
    assert all("outer: ok, " in line for line in lines[1:3])
    assert lines[3].startswith("odd (1 event, ")
    assert "2023-11-14 22:13:20" in lines[3]
    assert "\x1b" not in done.out


@pytest.mark.requirement("D53")
def test_list_prints_the_same_as_json(run: Run, path: str) -> None:
    """The output is one line of JSON."""
    listed = run("events", "list", path, "--json").json
    assert [one["session"] for one in listed] == ["chat", "odd\x1b[0m"]
    runs = listed[0]["runs"]
    assert [(one["agent"], one["status"], one["error"]) for one in runs] == [
        ("outer", "ok", None)
    ] * 2
    assert sum(one["events"] for one in runs) == listed[0]["events"]
    assert all(one["duration"] >= 0 and one["started"] for one in runs)


def test_show_draws_each_run_as_a_tree(run: Run, path: str) -> None:
    """Calls are below their callers, with their results, escaped for the terminal."""
    done = run("events", "show", path, "chat")
    lines = done.out.splitlines()
    assert lines[:2] == ["outer (ok)", "├─ user: go"]
    assert lines[2].startswith('├─ ask input="hi" -> inner, done in ')
    assert lines[3].startswith('│  ├─ crawl url="a", done in ')
    assert lines[3].endswith(r": page\x1b[2J one")
    assert lines[4] == "│  └─ found"
    assert lines[5].startswith("├─ boom x=1, failed after ")
    assert lines[6:] == ["└─ All done.", "outer (ok)", "├─ user: and again", "└─ Bye."]


def test_show_prints_one_run_as_a_timeline(run: Run, path: str) -> None:
    """Each event is a line with its id, time, path and content."""
    second = run("events", "list", path, "--json").json[0]["runs"][1]["id"]
    lines = run("events", "show", path, "chat", "--run", second, "--timeline").out.splitlines()
    words = lines[0].split()
    assert words[1:3] == ["+0.000", "outer:"]
    assert lines[0].endswith(f"run {second} starts")
    assert lines[-1].endswith("outer: run ended: ok")
    assert any(line.endswith("outer: message output created: Bye.") for line in lines)


@pytest.mark.requirement("D25")
def test_show_prints_the_events_as_json(run: Run, path: str) -> None:
    """`event_from_dict` can read them."""
    shown = run("events", "show", path, "chat", "--json").json
    events = [event_from_dict(wire) for wire in shown["events"]]
    assert shown["session"] == "chat"
    assert [event.id for event in events] == list(range(len(events)))


@pytest.mark.requirement("D53")
def test_replay_shows_the_output_of_the_run(run: Run, path: str) -> None:
    """It uses the views of `run`, at the requested speed."""
    done = run("events", "replay", path, "chat", "--speed", "0", "--events", "plain")
    assert done.code == 0
    assert 'outer > ask: called with input="hi"' in done.err.splitlines()
    assert "done in" in done.err
    wires = run("events", "replay", path, "chat", "--speed", "0", "--json").out.splitlines()
    exported = run("events", "export", path, "chat").out.splitlines()
    assert [json.loads(line) for line in wires] == [json.loads(line) for line in exported]


@pytest.mark.requirement("F39")
def test_replay_pauses_as_the_run_did(run: Run, tmp_path: Path) -> None:
    """The pauses are scaled and capped; a clock that was set back causes none."""
    file = str(tmp_path / "runs.db")
    times = [1.7e9, 1.7e9 + 0.02, 1.7e9 - 9_000, 1.7e9 + 9_000]
    with closing(SQLiteEventStore(file)) as store:
        events = [MessageEvent("x").replace(timestamp=time) for time in times]
        store.append(events).result(PATIENCE)
    done = run("events", "replay", file, "--speed", "2", "--longest", "0.05", "--json")
    assert len(done.out.splitlines()) == 4


@pytest.mark.requirement("D25")
def test_exported_events_can_be_imported(run: Run, path: str, tmp_path: Path) -> None:
    out = tmp_path / "chat.ndjson"
    assert run("events", "export", path, "chat", "-o", str(out)).out == ""
    with closing(SQLiteEventStore(path, "chat", read_only=True)) as store:
        events = store.read().result(PATIENCE)
    lines = out.read_text(encoding="utf-8").splitlines()
    assert [event_from_dict(json.loads(line)) for line in lines] == events
    document = run("events", "export", path, "chat", "--as", "json").json
    assert document == {"session": "chat", "events": [event.to_dict() for event in events]}


def test_export_of_all_sessions_names_the_session_of_each_event(run: Run, path: str) -> None:
    """One file contains several sessions."""
    lines = [json.loads(line) for line in run("events", "export", path, "--all").out.splitlines()]
    assert {line["session"] for line in lines} == {"chat", "odd\x1b[0m"}
    whole = run("events", "export", path, "--all", "--as", "json").json
    assert [len(one["events"]) for one in whole] == [len(lines) - 1, 1]


def test_export_writes_a_timeline(run: Run, path: str) -> None:
    """It has bars for runs and calls, in the Chrome trace format."""
    trace = json.loads(run("events", "export", path, "chat", "--as", "chrome").out)
    names = {mark["name"] for mark in trace["traceEvents"] if mark["ph"] == "X"}
    assert {"outer", "boom"} <= names


def test_export_writes_an_html_page(run: Run, path: str) -> None:
    """It shows messages as text and calls with their results, all of it escaped."""
    page = run("events", "export", path, "chat", "--as", "markdown").out
    for part in (
        "# chat\n",
        "\n## outer\n",
        "\n**user**\n\n> go\n",
        '\n**calls `boom`**\n\n```json\n{"x": 1}\n```\n',
        "\n**`boom` returned (tool\\_error)**\n\n```\n",
        "\n**assistant**\n\n> All done.\n",
    ):
        assert part in page, page
    assert "\x1b" not in page


def test_export_writes_calls_that_were_made_without_a_run(run: Run, tmp_path: Path) -> None:
    """Their start and end are the only events; calls of a run are written once."""

    async def direct() -> list[Event]:
        async with crawl.stream(url="a") as stream:
            events = [event async for event in stream]
        async with listen() as heard:
            await boom.call(None, '{"x": 1}')
        return events + list(heard.events)

    file = str(tmp_path / "calls.db")
    with closing(SQLiteEventStore(file, "calls")) as store:
        store.append(asyncio.run(direct())).result(PATIENCE)
    page = run("events", "export", file, "--as", "markdown").out
    assert page.count("**calls `crawl`**") == page.count("**calls `boom`**") == 1
    assert '**calls `crawl`**\n\n```json\n{"url": "a"}\n```\n' in page
    assert "\n*`crawl` ended: ok*\n" in page
    assert "\n*`boom` ended: tool\\_error*\n" in page


@pytest.mark.requirement("F35")
def test_a_damaged_file_is_reported_with_the_command_that_recovers_it(
    run: Run, tmp_path: Path
) -> None:
    """The file is not changed, and nothing is exported in part."""
    file = tmp_path / "runs.db"
    with closing(SQLiteEventStore(file)) as store:
        texts = [MessageEvent(f"{n} " + "x" * 500) for n in range(100)]
        store.append(texts).result(PATIENCE)
    content = bytearray(file.read_bytes())
    place = content.index(b'"content":"50 ') // 4096 * 4096
    content[place : place + 4096] = bytes(4096)
    file.write_bytes(content)
    refused = run("events", "export", str(file))
    assert (refused.code, refused.out) == (2, "")
    assert f"sqlite3 {file} .recover" in refused.err
    assert file.read_bytes() == content


@pytest.fixture
def runs(tmp_path: Path) -> str:
    """Return a store with the logs of two runs of a session and of another run."""
    file = str(tmp_path / "runs.db")
    with SQLiteRunStore(file) as store:
        for run_id, session in (("run_a1", "chat"), ("run_b", None), ("run_a2", "chat")):
            log = store.log(run_id)
            created = {"agent": "Clerk", "session": session}
            log.append(
                [
                    RunRecordEvent("run_created", created).replace(timestamp=1.7e9),
                    RunStartedEvent(run_id, "Clerk").replace(timestamp=1.7e9),
                    MessageEvent(f"hello of {run_id}", role="user").replace(timestamp=1.7e9 + 1),
                    RunFinishedEvent(status="ok").replace(timestamp=1.7e9 + 2),
                ]
            ).result(PATIENCE)
            log.close()
    return file


def test_list_groups_the_runs_of_a_store_by_session(run: Run, runs: str) -> None:
    """A run without a session is listed under its own id."""
    listed = run("events", "list", runs, "--json").json
    assert [(one["session"], [r["id"] for r in one["runs"]]) for one in listed] == [
        ("chat", ["run_a1", "run_a2"]),
        ("run_b", ["run_b"]),
    ]
    first = listed[0]["runs"][0]
    assert (first["agent"], first["status"], first["duration"]) == ("Clerk", "ok", 2.0)


def test_internal_records_of_a_run_are_not_shown(run: Run, runs: str) -> None:
    """Only the library reads them."""
    shown = run("events", "show", runs, "chat", "--json").json["events"]
    texts = [one["content"] for one in shown if one["type"] == "message_event"]
    assert texts == ["hello of run_a1", "hello of run_a2"]
    assert RunRecordEvent.type not in {one["type"] for one in shown}
    for words in (["show", "--timeline"], ["replay", "--speed", "0"], ["export"]):
        done = run("events", words[0], runs, "chat", *words[1:])
        assert "Clerk" in done.out + done.err or "run_a1" in done.out
        assert "run_created" not in done.out + done.err
    only = run("events", "export", runs, "chat", "--run", "run_a2").out
    assert "run_a2" in only
    assert "run_a1" not in only


def test_follow_shows_the_events_of_a_run_until_it_ends(run: Run, tmp_path: Path) -> None:
    """The process of the run and the command are independent of each other."""
    file = str(tmp_path / "runs.db")
    with SQLiteRunStore(file) as store:
        log = store.log("run_1")
        log.append(
            [RunRecordEvent("run_created", {"agent": "Clerk"}), MessageEvent("first")]
        ).result(PATIENCE)

        def finish() -> None:
            for event in (MessageEvent("second"), RunFinishedEvent(status="ok")):
                log.append([event]).result(PATIENCE)

        later = threading.Timer(0.3, finish)
        later.start()
        done = run("events", "follow", file, "--json")
        later.join()
    wires = [json.loads(line) for line in done.out.splitlines()]
    assert [wire.get("content", wire["type"]) for wire in wires] == [
        *("first", "second", "run_finished_event"),
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["list", "nothing.db"], "The store nothing.db does not exist"),
        (["list", "redis://host:port/0"], "expected an address such as redis://"),
        (["list", "postgresql://127.0.0.1:1/runs"], "cannot be reached"),
        (["list", "redis://127.0.0.1:1/0"], "127.0.0.1:1/0 could not be reached ("),
        (["show", "PATH"], "has 2 sessions; name one"),
        (["show", "PATH", "chaos"], "no session 'chaos'"),
        (["show", "PATH", "chat", "--run", "x"], "there is no run 'x'"),
        (["show", "PATH", "chat", "--run", "run_"], "2 runs have an id that begins with 'run_'"),
        (["export", "PATH", "chat", "--all"], "--all cannot be combined"),
        (["export", "PATH", "chat", "-o", "no/such/folder"], "cannot be written"),
        (["replay", "PATH", "chat", "--speed", "-1"], "--speed"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_errors_are_reported_in_one_line(run: Run, path: str, words: list[str], told: str) -> None:
    """As in all commands, the exit code is 2 and standard output is empty."""
    done = run("events", *[path if word == "PATH" else word for word in words])
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert told in done.err


def test_errors_with_json_output_are_json(run: Run) -> None:
    """A script reads the same form from every command."""
    done = run("events", "list", "nothing.db", "--json")
    assert done.code == 2
    assert done.json["status"] == "usage_error"


@pytest.mark.requirement("D25")
def test_a_log_without_runs_and_with_strange_events_is_shown(run: Run, tmp_path: Path) -> None:
    """Any log can be displayed."""
    file = str(tmp_path / "log.db")
    strange: Any = {"type": "run_item_stream_event", "name": "tool_called", "item": {"type": "?"}}
    wires = [{**NullEvent().to_dict(), "type": "acme.event", "data": "\x1b[2Jx"}]
    wires.append({**NullEvent().to_dict(), **strange})
    from agents_tools.persistence.unknown_event import event_of

    with closing(SQLiteEventStore(file)) as store:
        store.append([event_of(wire) for wire in wires]).result(PATIENCE)
    for words in (["show"], ["show", "--timeline"], ["replay"], ["export", "--as", "markdown"]):
        done = run("events", words[0], file, *words[1:])
        assert done.code == 0, done.err
        assert "\x1b" not in done.out + done.err
    assert "acme.event" in run("events", "show", file, "--timeline").out


def test_every_command_has_help(run: Run) -> None:
    for name in ("", *command.commands):  # type: ignore[attr-defined]
        assert run("events", *([name] if name else []), "--help").code == 0


@pytest.mark.requirement("D44")
def test_recorded_runs_are_listed_with_their_session(tmp_path: Path, run: Run) -> None:
    """The runner stores the runs, and the command reads them in another process."""
    file = str(tmp_path / "runs.db")

    async def talk() -> None:
        with SQLiteRunStore(file) as store:
            agent = Agent(name="Clerk", model=ScriptedModel(["One.", "Two."]))
            config = RunConfig(store=store)
            for text in ("go", "and again"):
                await Runner.run(agent, text, session="chat", run_config=config)

    asyncio.run(talk())
    listed = run("events", "list", file).out
    assert listed.startswith("chat (")
    assert listed.count("Clerk: ok") == 2
    shown = run("events", "show", file, "chat").out.splitlines()
    assert shown == [
        *("Clerk (ok)", "├─ user: go", "└─ One."),
        *("Clerk (ok)", "├─ user: and again", "└─ Two."),
    ]
