"""Every scenario, shown by the pages of three versions of the Vercel AI SDK.

Our own ASGI app is served by uvicorn on a free port; Node plays the page with the SDK's own chat
class and transport, which is what `useChat` is made of. A page has to show the message as it was
meant, without an error or a warning, without a call that it would make itself and without sending
anything again that it was not asked to.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agents_tools import Agent
from agents_tools.server.run_manager import RunManager
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.text.characters import safe_text
from agents_tools.ui import vercel
from tests.ui.scenarios import SCENARIOS, Scenario, add
from tests.ui.web import served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "PEERS",
    "VERSIONS",
    "Job",
    "Peer",
    "check",
    "clients",
    "jobs",
    "missing",
    "peer_of",
    "play",
    "problem",
    "read_streams",
]

HERE: Final = Path(__file__).parent
PEERS: Final = HERE.parents[2] / ".ui-peers" / "vercel"
VERSIONS: Final = (5, 6, 7)
WITH_APPROVALS: Final = 6
NEWEST: Final = 7
AT_MOST: Final = 45.0

FINAL: Final = {"output-available", "output-error", "output-denied"}
NESTED: Final = {
    "call_1": None,
    "call_1/call_1": "call_1",
    "call_1/call_1/call_1": "call_1/call_1",
    "call_1/call_2": "call_1",
}
CUT: Final = ("cut", "reload")
TALK: Final = Scenario(
    name="talk",
    make=lambda: Agent(
        "helper",
        model=ScriptedModel(
            [["I add. ", tool_call("add", {"a": 1, "b": 2}, call_id="call_1")], "3.", "Bye."]
        ),
        tools=[add],
    ),
    text=("Bye.",),
)
LOST: Final = ["TypeError: network error"]


@dataclass(frozen=True, slots=True)
class Peer:
    """An installed SDK.

    Attributes:
        version: Its major version.
        folder: Where it is installed.
        node: The Node that runs it.
    """

    version: int
    folder: Path
    node: str


@dataclass(frozen=True, slots=True)
class Job:
    """What a page does, and what it is to show in the end.

    Attributes:
        name: What it is called.
        scenario: The run that it shows.
        does: What the person does: only `send`, `approve`, `stop`, have the line `cut` …
        on_disconnect: What the server does when the page goes.
        preliminary: Whether the text of tools is shown as their output for now.
        bytes: After how many bytes the line is cut.
    """

    name: str
    scenario: Scenario
    does: str = "send"
    on_disconnect: Literal["cancel", "detach"] = "cancel"
    preliminary: bool = False
    bytes: int = 3_000


def jobs(version: int = NEWEST) -> Iterator[Job]:
    """Yield the jobs that the pages have to do."""
    for scenario in SCENARIOS.values():
        if scenario.approve is not None:
            does = "approve" if scenario.approve else "reject"
            yield Job(scenario.name, scenario, does)
        elif scenario.cancel_at is not None:
            yield Job(scenario.name, scenario, "stop")
            yield Job(f"{scenario.name}_here", scenario, "stop_here")
        else:
            yield Job(scenario.name, scenario)
    for name, size in (("tool", 1_200), ("nested", 3_000), ("deltas", 5_000)):
        yield Job(f"{name}_reload", SCENARIOS[name], "reload", "detach", bytes=size)
        # Where 5 has seen that the line was cut, it puts what comes again behind what it shows.
        if version > VERSIONS[0]:
            yield Job(f"{name}_cut", SCENARIOS[name], "cut", "detach", bytes=size)
    yield Job("tool_again", SCENARIOS["tool"], "again")
    yield Job("nested_preliminary", SCENARIOS["nested"], preliminary=True)
    yield Job("talk", TALK, "talk")


def clients() -> list[str]:
    """Return the names of the clients, with their versions if they are installed."""
    return [f"ai-{_installed(version) or version}" for version in VERSIONS]


def missing(client: str) -> str | None:
    """Return why a client cannot run here; an empty text if it can."""
    version = _major(client)
    if _installed(version) is None:
        return f"ai {version} is not installed in .ui-peers/vercel/{version}"
    return None if _node(version) is not None else f"there is no Node for ai {version}"


async def check(client: str, only: Sequence[str] = ()) -> dict[str, str]:
    """Let the pages of a client do their jobs, and say what is wrong with each."""
    peer = peer_of(_major(client))
    chosen = [job for job in jobs(peer.version) if not only or job.name in only]
    told = {one["name"]: one for one in await play(peer, chosen)}
    return {job.name: problem(job, peer.version, told.get(job.name)) for job in chosen}


async def read_streams(client: str, streams: Mapping[str, str]) -> dict[str, list[str]]:
    """Let a page read streams that were written by hand, and give its errors by their names."""
    version = _major(client)
    told = [
        {"name": name, "api": "http://127.0.0.1", "does": "read", "version": version, "text": text}
        for name, text in streams.items()
    ]
    answers = await _run_node(peer_of(version), told)
    return {one["name"]: [*one.get("errors", ["failed"]), *one["complaints"]] for one in answers}


def peer_of(version: int) -> Peer:
    """Return an installed SDK."""
    node = _node(version)
    assert node is not None
    return Peer(version, PEERS / str(version), node)


def _major(client: str) -> int:
    return int(client.removeprefix("ai-").partition(".")[0])


def _installed(version: int) -> str | None:
    manifest = PEERS / str(version) / "node_modules" / "ai" / "package.json"
    return json.loads(manifest.read_text())["version"] if manifest.exists() else None


def _node(version: int) -> str | None:
    """Find a Node for a version; 7 needs one that is newer than what systems bring."""
    own = PEERS / "node22" / "node_modules" / "node" / "bin" / "node"
    if own.exists():
        return str(own)
    return shutil.which("node") if version < NEWEST else None


# --- what a page is to show


def problem(job: Job, version: int, told: Mapping[str, Any] | None) -> str:
    """Return the fault in the report of a page; an empty text if there is none."""
    if told is None:
        return "it told nothing"
    if told.get("failed"):
        return str(told["failed"])
    problems = [
        f"{what}: expected {expected!r:.500}, got {got!r:.500}"
        for what, expected, got in _compared(job, version, told)
        if expected != got
    ]
    return "; ".join(problems)


def _compared(job: Job, version: int, told: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the pairs that must be equal."""
    yield "complaints", [], told["complaints"]
    yield "messages that are not valid", None, told["valid"]
    yield "tools that the page was to run", [], told["calledHere"]
    roles = ["user", "assistant"] * (2 if job.does == "talk" else 1)
    yield "messages", roles, [one["role"] for one in told["messages"]]
    ends = "ok" if job.scenario.ends == "interrupted" else job.scenario.ends
    yield "end of the run", ends, told["run"]
    fails = job.scenario.ends == "error"
    yield "status", "error" if fails else "ready", told["status"]
    if job.does in CUT:
        yield "errors", LOST, told["errors"]
    else:
        yield "number of errors", int(fails), len(told["errors"])
    yield "requests", _requests(job.does), [one.partition(" ")[0] for one in told["requests"]]
    parts = told["messages"][-1]["parts"]
    yield from _ended(job, version, told["finishes"])
    yield from _loaded_again(job, version, told)
    if job.does == "stop":  # the page reads no further, and leaves what it shows as it is
        return
    yield from _shown(job, version, parts)
    if job.does in CUT:
        # A run that has ended by then has no progress any more, so the page may even show less.
        yield "whether more came after the cut", True, told["before"] != parts


def _loaded_again(
    job: Job, version: int, told: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the messages of a page that loads the chat, and those of the page that wrote it."""
    if job.does == "stop":  # the page shows what it had by then
        return
    loaded = _essence(told["loaded"])
    yield "roles after loading", ["user", "assistant"], [one["role"] for one in loaded][-2:]
    if version != WITH_APPROVALS:  # which has no chunk for a decision, to resume with
        yield "messages after loading", _essence(told["stored"]), loaded
    if job.name != "retry" or version == NEWEST:  # others keep the text that is taken back
        yield "messages of the server", _essence(told["messages"]), _essence(told["stored"])


def _essence(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages without progress, which is not stored, and without the marks of steps."""
    shown = {"data-agents-tool", "file", "source-url", "step-start"}
    return [
        {**one, "parts": [part for part in one["parts"] if part["type"] not in shown]}
        for one in messages
    ]


def _requests(does: str) -> list[str]:
    match does:
        case "approve" | "reject" | "talk":
            return ["POST", "POST"]
        case "cut" | "reload" | "again":
            return ["POST", "GET"]
        case _:
            return ["POST"]


def _ended(
    job: Job, version: int, finishes: list[Mapping[str, Any]]
) -> Iterator[tuple[str, Any, Any]]:
    last = finishes[-1] if finishes else {}
    yield "aborted by the page", job.does == "stop", last.get("isAbort")
    if version == VERSIONS[0] or job.does == "stop":
        yield "times that it finished", True, bool(finishes)
        return
    reason = {"error": "error", "cancelled": "other"}.get(job.scenario.ends, "stop")
    yield "reason of the end", reason, last.get("finishReason")


def _shown(
    job: Job, version: int, parts: list[Mapping[str, Any]]
) -> Iterator[tuple[str, Any, Any]]:
    texts = [one["text"] for one in parts if one["type"] == "text"]
    # What is no character arrives as the one that stands for it, before it is written out.
    told = [safe_text(one.replace("\\ud800", "\ufffd")) for one in _texts(job)]
    if job.name == "retry" and version < NEWEST:  # there is no way to take a text back
        texts = texts[-1:]
    yield "texts", told, texts
    open_parts = [one for one in parts if one.get("state") == "streaming"]
    yield "parts that go on", [], open_parts
    calls = [one for one in parts if one["type"] == "dynamic-tool"]
    own = tuple(one["toolCallId"] for one in calls if "/" not in one["toolCallId"])
    lost = ("call_lost",) if job.name == "retry" and version < NEWEST else ()
    yield "calls", (*lost, *job.scenario.calls), own
    yield "calls without end", [], [one for one in calls if one["state"] not in FINAL]
    yield "calls with an output for now", [], [one for one in calls if one.get("preliminary")]
    yield "calls that the page would make", [], [o for o in calls if not o.get("providerExecuted")]
    if job.does == "reject":
        denied = "output-denied" if version >= WITH_APPROVALS else "output-error"
        yield "the denied call", denied, calls[-1]["state"]
    work = [one for one in parts if one["type"] == "data-agents-tool"]
    ids = [one["id"] for one in work]
    yield "parts of work, each once", len(set(ids)), len(ids)
    stuck = [one for one in work if one["data"]["status"] in {"running", "waiting"}]
    yield "work without end", [], stuck
    if job.scenario.name == "nested":
        inner = {one["id"]: one["data"].get("parentCallId") for one in work}
        yield "calls within calls", NESTED, inner


def _texts(job: Job) -> tuple[str, ...]:
    return (*job.scenario.text, *job.scenario.text_after)


# --- pages and server


class _Stage:
    """An ASGI app with one chat app for each job, each below a path of its own."""

    def __init__(self, version: int, jobs: Iterable[Job]) -> None:
        self.runs = {job.name: RunManager(on_disconnect=job.on_disconnect) for job in jobs}
        self.apps: Mapping[str, Any] = {
            job.name: vercel.app(
                job.scenario.make(),
                version=version,  # pyright: ignore[reportArgumentType]
                preliminary=job.preliminary,
                heartbeat=0.005,
                max_turns=job.scenario.max_turns,
                runs=self.runs[job.name],
            )
            for job in jobs
        }

    async def status(self, name: str) -> str:
        """Return the status of the last run of a job."""
        live = (await self.runs[name].list())[-1]
        async with asyncio.timeout(10):
            await live.wait()
        return live.status

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on to the app of its job."""
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self.aclose()
            await send({"type": "lifespan.shutdown.complete"})
            return
        name = scope["path"].split("/")[1]
        below = {**scope, "root_path": f"/{name}"}
        await self.apps[name](below, receive, send)

    async def aclose(self) -> None:
        """End all that still runs."""
        for runs in self.runs.values():
            await runs.aclose()


async def play(peer: Peer, jobs: list[Job]) -> list[dict[str, Any]]:
    """Let the pages do their jobs, and give what they told."""
    stage = _Stage(peer.version, jobs)
    async with _quietly(), served(stage) as port:
        told = [
            {
                "name": job.name,
                "api": f"http://127.0.0.1:{port}/{job.name}",
                "does": job.does,
                "version": peer.version,
                "bytes": job.bytes,
            }
            for job in jobs
        ]
        answers = await _run_node(peer, told)
        return [{**one, "run": await stage.status(one["name"])} for one in answers]


@asynccontextmanager
async def _quietly() -> AsyncGenerator[None]:
    """Let the server have nothing to complain about."""
    complaints: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: complaints.append(handler.format(record))
    logger = logging.getLogger("agents_tools")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    assert not complaints, "\n".join(complaints)


async def _run_node(peer: Peer, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        peer.node,
        str(HERE / "vercel_client.mjs"),
        str(peer.folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(AT_MOST):
            out, err = await process.communicate(json.dumps(jobs).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode or err:
        raise AssertionError(f"Node ended with {process.returncode}: {err.decode()[-2000:]}")
    return [json.loads(line) for line in out.splitlines()]
