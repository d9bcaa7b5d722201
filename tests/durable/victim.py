"""A program that carries runs on and kills itself at a chosen moment; the tests talk to it.

Each line of standard input is a JSON list: a command, and what it takes. The answer is the pid of a
new process that does it, then what that says, then `dead` once it has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Mapping
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
from agents_tools.agents import ModelRequest, ModelResponse
from agents_tools.content import MessageOutputItem, ToolCallItem, ToolCallOutputItem, Usage
from agents_tools.events import Emit
from agents_tools.persistence.durable import (
    DurableRun,
    DurableStore,
    LocalDurableStore,
    RunInUseError,
    RunStatus,
    StoredRun,
)
from agents_tools.testing import tool_call
from agents_tools.tool import FunctionTool

_LONGEST_LIFE = 45
"""Seconds after which a process that hangs says where, and ends."""


class Moments:
    """Counts the moments of a process and ends it at one of them."""

    def __init__(self, folder: Path, fatal: int) -> None:
        self._folder = folder
        self._left = fatal
        self.names: list[str] = []

    def pass_by(self, name: str) -> None:
        """Come to a moment: at most this far."""
        self.names.append(name)
        if len(self.names) == self._left:
            with (self._folder / "killed").open("a") as file:
                file.write(f"{json.dumps(self.names)}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    def note(self, **what: Any) -> None:
        """Take effect in the world, in one write."""
        line = json.dumps(what).encode() + b"\n"
        file = os.open(self._folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line)
        os.close(file)


class Fatal:
    """A store around which the process may end at each boundary of each step."""

    def __init__(self, store: DurableStore, moments: Moments) -> None:
        self._store = store
        self._moments = moments

    async def claim(self, run_id: str) -> StoredRun:
        """Claim."""
        kept = await self._store.claim(run_id)
        self._moments.pass_by("claimed")
        return kept

    async def begin(self, run_id: str, start: Mapping[str, Any]) -> None:
        """Begin."""
        await self._store.begin(run_id, start)
        self._moments.pass_by("begun")

    async def step(
        self, run_id: str, key: str, fn: Callable[[], Awaitable[Any]], *, again: bool = False
    ) -> Any:
        """Perform a step."""

        async def watched() -> Any:
            self._moments.pass_by(f"{key} marked")
            value = await fn()
            self._moments.pass_by(f"{key} made")
            return value

        self._moments.pass_by(f"{key} next")
        value = await self._store.step(run_id, key, watched, again=again)
        self._moments.pass_by(f"{key} kept")
        return value

    async def leave(self, run_id: str, status: RunStatus | None) -> None:
        """Leave."""
        self._moments.pass_by("leaving")
        await self._store.leave(run_id, status)
        self._moments.pass_by("left")

    async def runs(self) -> list[DurableRun]:
        """List."""
        return await self._store.runs()

    async def delete(self, run_id: str) -> None:
        """Forget."""
        await self._store.delete(run_id)

    async def aclose(self) -> None:
        """Close."""
        await self._store.aclose()


class Model:
    """Answers from what was said so far, so that any process gives the same answers."""

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


def boss(moments: Moments) -> Agent[Any, Any]:
    """Give the agent whose runs are killed."""

    def effect(context: ToolContext[Any], **what: Any) -> None:
        moments.pass_by(f"{context.tool_call_id} before")
        moments.note(tool=context.tool_name, key=context.idempotency_key, **what)
        moments.pass_by(f"{context.tool_call_id} after")

    @function_tool
    async def pay(context: ToolContext[Any], to: str) -> str:
        """Pay somebody."""
        effect(context, to=to)
        return f"Paid {to}."

    @function_tool
    async def post(context: ToolContext[Any]) -> str:
        """Post it."""
        effect(context)
        return "Done."

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def look(context: ToolContext[Any]) -> dict[str, int]:
        """Look."""
        effect(context)
        return {"seen": 1}

    @function_tool(annotations=ToolAnnotations(idempotentHint=True))
    async def stamp(context: ToolContext[Any]) -> str:
        """Stamp it."""
        effect(context)
        return "Stamped."

    model = Model(moments)
    helper = Agent("Helper", tools=[post], model=model)
    tools: list[FunctionTool[..., Any]] = [pay, look, stamp, helper.as_tool(tool_name="helper")]
    return Agent("Boss", tools=tools, model=model)


def store_of(spec: str) -> DurableStore:
    """Open a store."""
    kind, _, place = spec.partition(":")
    if kind == "local":
        return LocalDurableStore(place)
    from agents_tools.persistence.durable import DBOSDurableStore

    return DBOSDurableStore(place)


async def carry_on(spec: str, folder: str, fatal: int, at_once: int | None) -> None:
    """Begin the run, or go on with it, and say how it ended."""
    moments = Moments(Path(folder), fatal)
    store = Fatal(store_of(spec), moments)
    try:
        config = RunConfig(durable=store, max_parallel_tools=at_once)
        try:
            result = await Runner.run(
                boss(moments), "Do it.", run_id=run_of(folder), run_config=config
            )
        except RunInUseError as error:
            say({"refused": str(error)})
            return
        say(
            {
                "output": result.final_output,
                "usage": result.usage.to_dict(),
                "calls": [
                    item.call_id for item in result.new_items if isinstance(item, ToolCallItem)
                ],
                "statuses": {
                    item.call_id: item.status
                    for item in result.new_items
                    if isinstance(item, ToolCallOutputItem)
                },
                "moments": moments.names,
            }
        )
    finally:
        await store.aclose()


async def hold(spec: str, folder: str) -> None:
    """Carry the run on, and never come to an end."""
    store = store_of(spec)
    await store.claim(run_of(folder))
    say({"held": True})
    os.read(os.open(Path(folder) / "never", os.O_RDONLY), 1)  # a pipe that nobody writes to


def run_of(folder: str) -> str:
    """Give the run that belongs to a folder: several may share a database."""
    return f"run of {Path(folder).name}"


def say(what: Any) -> None:
    """Tell the tests something, in one write."""
    os.write(1, json.dumps(what).encode() + b"\n")


def warm_up() -> None:
    """Import what a run imports when it needs it, once for all processes."""
    with tempfile.TemporaryDirectory() as folder:
        store = LocalDurableStore(f"{folder}/runs.db")
        run = Runner.run(
            boss(Moments(Path(folder), 0)), "Do it.", run_config=RunConfig(durable=store)
        )
        asyncio.run(run)
        asyncio.run(store.aclose())
    with contextlib.suppress(ImportError):
        importlib.import_module("agents_tools.persistence.durable.dbos")
    gc.freeze()


def main() -> None:
    """Do what the tests ask for."""
    commands: dict[str, Any] = {"carry_on": carry_on, "hold": hold}
    warm_up()
    for line in sys.stdin:
        name, *given = json.loads(line)
        pid = os.fork()
        if pid == 0:
            say({"pid": os.getpid()})  # here: it may have more to say before its parent goes on
            faulthandler.dump_traceback_later(_LONGEST_LIFE, exit=True)
            try:
                asyncio.run(commands[name](*given))
            except BaseException:  # noqa: BLE001 - told to whoever runs the tests
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(1)
        os.waitpid(pid, 0)
        say("dead")


if __name__ == "__main__":
    main()
