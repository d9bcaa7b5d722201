"""A program that runs agents and kills itself at a chosen moment; the tests control it.

Each line of standard input is a JSON list: a command and its arguments. For each one, the program
forks a process that executes it. The output has its pid, then its report, and `dead` at its end.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import json
import os
import random
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from agents_tools import (
    Agent,
    RunConfig,
    Runner,
    ToolAnnotations,
    ToolContext,
    function_tool,
)
from agents_tools.agents import ModelRequest, ModelResponse, RunResult
from agents_tools.content import MessageOutputItem, ToolCallItem, ToolCallOutputItem, Usage
from agents_tools.errors import LeaseLostError, RunInUseError
from agents_tools.events import Emit
from agents_tools.persistence import lease
from agents_tools.persistence.run_store import RunStore
from agents_tools.persistence.storage import AppendRows, LogStorage
from agents_tools.persistence.stores.postgres import PostgresStorage
from agents_tools.persistence.stores.sqlite import SQLiteStorage
from agents_tools.testing import tool_call
from agents_tools.tool import FunctionTool
from tests.durable.background import background_agent, results_of
from tests.watched_storage import WatchedStorage

_LONGEST_LIFE = 60
"""Seconds after which a process that hangs prints its stack and ends."""


class Moments:
    """Counts the moments of a process, and ends it at one of them.

    Args:
        folder: Where the effects of tools and the acknowledged events are written.
        fatal: The number of the moment; 0 for none.
    """

    def __init__(self, folder: Path, fatal: int) -> None:
        self._folder = folder
        self._left = fatal
        self._lock = threading.Lock()  # no other thread gets further once the moment is fatal
        self.names: list[str] = []

    def reach(self, name: str) -> None:
        """Reach a moment, which can be the last one."""
        with self._lock:
            self.names.append(name)
            if len(self.names) == self._left:
                self._write("killed", self.names)
                os.kill(os.getpid(), signal.SIGKILL)

    def note(self, **what: Any) -> None:
        """Record an effect outside of the run."""
        self._write("effects", what)

    def effect(self, context: ToolContext[Any], **what: Any) -> None:
        """Have the effect of a call, which can end the process before or after it."""
        self.reach(f"{context.tool_call_id} next")
        self.note(tool=context.tool_name, key=context.idempotency_key, **what)
        self.reach(f"{context.tool_call_id} done")

    def before(self, appends: Sequence[AppendRows]) -> None:
        """Reach the moment before a write."""
        self.reach(f"{_label(appends)} before")

    def after(self, appends: Sequence[AppendRows]) -> None:
        """Reach the moment after a write, whose events must never be lost."""
        for append in appends:
            ids = [row.id for row in append.rows if not row.is_display]
            self._write("acknowledged", [append.name, ids])
        self.reach(f"{_label(appends)} after")

    def _write(self, name: str, what: Any) -> None:
        """Append a line to a file, in one write."""
        file = os.open(self._folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, json.dumps(what).encode() + b"\n")
        os.close(file)


def _label(appends: Sequence[AppendRows]) -> str:
    """Return the names and the calls of the events of a write."""
    labels: list[str] = []
    for append in appends:
        for row in append.rows:
            event = json.loads(row.body(0))
            data = event.get("data") or event.get("item") or {}
            if event.get("name") == "hidden_event":
                event = data["event"]
                data = event.get("data") or event.get("item") or {}
            call = data.get("call_id") if isinstance(data, dict) else None
            labels.append(f"{event.get('name') or event['type']}:{call or ''}")
    return " ".join(labels)


class Model:
    """Answers from the conversation, so that it gives the same answers in any process."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer."""
        done = sum(isinstance(item, ToolCallOutputItem) for item in request.input)
        self._moments.note(model=request.agent, after=done)
        items: list[Any] = _SCRIPT[request.agent][done]
        return ModelResponse(items=items, usage=Usage(requests=1, input_tokens=7, output_tokens=3))


_SCRIPT: dict[str, dict[int, list[Any]]] = {
    "Boss": {
        0: [
            tool_call("pay", to="Ada", call_id="c_pay"),
            tool_call("look", call_id="c_look"),
            tool_call("helper", input="post it", call_id="c_help"),
        ],
        3: [tool_call("pay", to="Bo", call_id="c_pay2"), tool_call("stamp", call_id="c_stamp")],
        5: [MessageOutputItem(text="All done.")],
    },
    "Helper": {
        0: [tool_call("post", call_id="h_post")],
        1: [MessageOutputItem(text="Posted.")],
    },
}


def boss(moments: Moments, *, pauses: bool = False) -> Agent[Any, Any]:
    """Return the agent whose runs are killed."""

    async def pause() -> None:
        if pauses:
            await asyncio.sleep(random.random() * 0.02)  # noqa: S311 - the time of a call

    @function_tool
    async def pay(context: ToolContext[Any], to: str) -> str:
        """Pay."""
        await pause()
        moments.effect(context, to=to)
        return f"Paid {to}."

    @function_tool
    async def post(context: ToolContext[Any]) -> str:
        """Post it."""
        await pause()
        moments.effect(context)
        return "Done."

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def look(context: ToolContext[Any]) -> dict[str, int]:
        """Look."""
        moments.effect(context)
        return {"seen": 1}

    @function_tool(annotations=ToolAnnotations(idempotentHint=True))
    async def stamp(context: ToolContext[Any]) -> str:
        """Stamp it."""
        moments.effect(context)
        return "Stamped."

    model = Model(moments)
    helper = Agent("Helper", tools=[post], model=model)
    tools: list[FunctionTool[..., Any]] = [pay, look, stamp, helper.as_tool(tool_name="helper")]
    return Agent("Boss", tools=tools, model=model)


def store_of(spec: str, moments: Moments | None = None) -> RunStore:
    """Open a store.

    Args:
        spec: `sqlite:PATH` or `postgresql://...`, with `#SECONDS` for the time of a lease.
        moments: The moments of the process.
    """
    place, _, ttl = spec.partition("#")
    seconds = float(ttl or 15)
    storage: LogStorage
    if place.startswith("sqlite:"):
        path = place.removeprefix("sqlite:")
        storage = SQLiteStorage(path, True, 30.0, seconds, read_only=False)
    else:
        storage = PostgresStorage(place, 30.0, seconds)
    if moments is None:
        return RunStore(storage)
    watched: Any = WatchedStorage(storage, before=moments.before, after=moments.after)
    return RunStore(watched)


async def run_once(spec: str, folder: str, fatal: int, at_once: int | None) -> None:
    """Begin the run or continue it, and report its end."""
    moments = Moments(Path(folder), fatal)
    async with store_of(spec, moments) as store:
        config = RunConfig(store=store, max_parallel_tools=at_once)
        try:
            run_id = run_of(folder)
            result = await Runner.run(boss(moments), "Do it.", run_id=run_id, run_config=config)
        except RunInUseError as error:
            report({"refused": str(error)})
            return
    report({**report_of(result), "moments": moments.names})


def report_of(result: RunResult[Any]) -> dict[str, Any]:
    """Return the end of a run as JSON."""
    items = result.new_items
    return {
        "output": result.final_output,
        "usage": result.usage.to_dict(),
        "calls": [item.call_id for item in items if isinstance(item, ToolCallItem)],
        "statuses": {
            item.call_id: item.status for item in items if isinstance(item, ToolCallOutputItem)
        },
    }


async def run_background(spec: str, folder: str, fatal: int) -> None:
    """Begin the run with calls in the background or continue it, and report its end."""
    moments = Moments(Path(folder), fatal)
    async with store_of(spec, moments) as store:
        agent = background_agent(moments.effect, moments.note)
        result = await Runner.run(
            agent,
            "Do it.",
            run_id=run_of(folder),
            max_turns=None,
            run_config=RunConfig(store=store),
        )
    messages = results_of(result.new_items)
    report({**report_of(result), "results": messages, "moments": moments.names})


async def run_program(spec: str, folder: str, fatal: int) -> None:
    """Begin the run with a program or continue it, and report its end."""
    from tests.durable.programs import program_agent  # its extra can be missing

    moments = Moments(Path(folder), fatal)
    async with store_of(spec, moments) as store:
        agent = program_agent(moments.effect, moments.note)
        config = RunConfig(store=store)
        result = await Runner.run(agent, "Do it.", run_id=run_of(folder), run_config=config)
    report({**report_of(result), "moments": moments.names})


async def run_many(spec: str, folder: str, names: list[str], machine: str | None) -> None:
    """Begin runs or continue them, all at once, and report those that have ended.

    Args:
        spec: The store.
        folder: The folder of the effects.
        names: The ids of the runs.
        machine: The name of the machine that this process pretends to be on. Processes on other
            machines cannot know whether it has ended.
    """
    if machine is not None:
        lease._machine = lambda: machine  # type: ignore[assignment]
    moments = Moments(Path(folder), 0)
    async with store_of(spec, moments) as store:

        async def run(name: str) -> None:
            info = await store.run(name)
            while info is None or info.status in {"running", "error"}:
                config = RunConfig(store=store)
                agent = boss(moments, pauses=True)
                try:
                    await Runner.run(agent, f"Do {name}.", run_id=name, run_config=config)
                except RunInUseError:
                    await asyncio.sleep(0.05)  # until the lease of a killed process expires
                except LeaseLostError:
                    pass  # this process was suspended, and another one has taken over
                except asyncio.CancelledError:
                    if (await store.run(name)).status != "cancelled":  # type: ignore[union-attr]
                        raise
                info = await store.run(name)

        report("begun")
        await asyncio.gather(*(asyncio.create_task(run(name)) for name in names))
        report({run.run_id: run.status for run in await store.runs()})


async def hold(spec: str, folder: str) -> None:
    """Take the lease of the run, and never end."""
    log = store_of(spec).log(run_of(folder))
    await log.take()
    report({"held": True})
    os.read(os.open(Path(folder) / "never", os.O_RDONLY), 1)  # a pipe without a writer


def run_of(folder: str) -> str:
    """Return the id of the run of a folder: several folders can share a database."""
    return f"run of {Path(folder).name}"


def report(what: Any) -> None:
    """Send something to the tests, in one write."""
    os.write(1, json.dumps(what).encode() + b"\n")


def warm_up() -> None:
    """Import everything that a run imports later, once for all processes."""
    with tempfile.TemporaryDirectory() as folder:
        store = store_of(f"sqlite:{folder}/runs.db")
        config = RunConfig(store=store)
        asyncio.run(Runner.run(boss(Moments(Path(folder), 0)), "Do it.", run_config=config))
        store.close()
    gc.freeze()


def main() -> None:
    """Execute the commands of the tests."""
    commands: dict[str, Any] = {
        "run_once": run_once,
        "run_background": run_background,
        "run_program": run_program,
        "run_many": run_many,
        "hold": hold,
    }
    warm_up()
    for line in sys.stdin:
        name, *given = json.loads(line)
        pid = os.fork()
        if pid == 0:
            report({"pid": os.getpid()})  # here: it can send more before its parent continues
            faulthandler.dump_traceback_later(_LONGEST_LIFE, exit=True)
            try:
                asyncio.run(commands[name](*given))
            except BaseException:  # noqa: BLE001 - shown to the developer
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(1)
        os.waitpid(pid, 0)
        report("dead")


if __name__ == "__main__":
    main()
