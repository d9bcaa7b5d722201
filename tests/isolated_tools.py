"""Tools that worker processes import."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from agents_tools import (
    Action,
    ArgumentStream,
    Observation,
    ToolContext,
    ToolDefinition,
    ToolError,
    ToolExecutor,
    function_tool,
    notify,
    streaming_tool,
)
from agents_tools.errors import ModelError
from agents_tools.events import NotifyStreamEvent


@function_tool
def add(a: int, b: int) -> int:
    return a + b


@function_tool
async def read_pieces(text: ArgumentStream[str]) -> list[str]:
    return [piece async for piece in text]


@function_tool
def whoami() -> dict[str, int]:
    return {"pid": os.getpid(), "parent": os.getppid()}


class Frame:
    """A table with the methods of data libraries."""

    columns = ("n",)
    dtypes = ("Int64",)
    shape = (21, 1)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise NotImplementedError

    def iter_rows(self) -> Iterator[tuple[int]]:
        return ((number,) for number in range(21))


@function_tool
def odd_result(kind: str) -> Any:
    if kind == "table":
        return Frame()
    return None if kind == "nothing" else threading.Lock()


@function_tool
async def fail_in_tasks(message: str | None = None) -> str:
    async def part(number: int) -> None:
        raise ToolError(message) if message else ValueError(f"part {number}")

    async with asyncio.TaskGroup() as group:
        group.create_task(part(1))
        group.create_task(part(2))
    return "unreachable"


class StockError(ToolError):
    """An error that only the worker knows."""


class LedgerError(LookupError):
    """An error that is not one of the library."""


@function_tool
def fail_with(kind: str) -> str:
    kinds: dict[str, type[BaseException]] = {
        "library": StockError,
        "other": LedgerError,
        "model": ModelError,
        "exit": SystemExit,
        "key": KeyError,
    }
    raise kinds[kind]("No tea.")


@function_tool
def fail_silently() -> str:
    raise MemoryError


@function_tool
def hold_the_interpreter(folder: str) -> str:
    (Path(folder) / "pid").write_text(str(os.getpid()))
    return str(re.match(r"(a+)+$", "a" * 64 + "b"))  # one long call into C


@function_tool
def leave(how: str) -> str:
    if how == "exit":
        os._exit(3)
    if how == "segfault":
        ctypes.string_at(0)
    raise SystemExit(how)


@function_tool
def allocate(size: int) -> int:
    return len(bytearray(size))


@function_tool
def fail(message: str, log: str) -> str:
    with Path(log).open("a") as file:
        file.write("ran\n")
    if len(Path(log).read_text().splitlines()) < 3:
        raise ConnectionError(message)
    return "third time lucky"


@function_tool
def look_around() -> dict[str, Any]:
    links: list[str] = []
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        try:
            links.append(str(descriptor.readlink()))
        except OSError:  # the one of the listing itself
            continue
    cwd = str(Path.cwd())
    return {"links": links, "environment": dict(os.environ), "path": sys.path, "cwd": cwd}


@function_tool
def shout(text: str) -> str:
    print(text)  # noqa: T201 - what tools do
    print(text, file=sys.stderr)  # noqa: T201
    os.write(1, f"{text}\n".encode())
    return "shouted"


@function_tool
async def wait(folder: str) -> str:
    (Path(folder) / "pid").write_text(str(os.getpid()))
    try:
        await asyncio.Event().wait()
    finally:
        (Path(folder) / "cleaned").touch()
    return "never"


@function_tool
def wait_in_a_thread(folder: str) -> str:
    (Path(folder) / "pid").write_text(str(os.getpid()))
    while True:
        time.sleep(60)


@function_tool
async def daemonize(folder: str) -> str:
    child = subprocess.Popen(  # noqa: ASYNC220
        ["sleep", "600"],  # noqa: S607
        start_new_session=True,
    )
    (Path(folder) / "child").write_text(str(child.pid))
    (Path(folder) / "pid").write_text(str(os.getpid()))
    child.returncode = 0  # nobody waits for it
    while True:
        time.sleep(60)  # noqa: ASYNC251 - not to be cancelled


@function_tool
async def read_context(context: ToolContext[Any], what: str) -> Any:
    given: Any = context.context
    uses: dict[str, Callable[[], object]] = {
        ".database": lambda: given.database,
        "['database']": lambda: given["database"],
        " or": lambda: given or "anonymous",
        " in": lambda: "database" in given,
        " in a loop": lambda: list(given),
        ".database =": lambda: setattr(given, "database", 1),
        "[] =": lambda: given.__setitem__("database", 1),
        "(...)": given,
    }
    if what in uses:
        return uses[what]()
    return {
        "key": context.idempotency_key,
        "attempt": context.attempt,
        "has_deadline": context.deadline is not None,
    }


@streaming_tool
async def count(to: int) -> AsyncIterator[NotifyStreamEvent | str]:
    for number in range(to):
        yield NotifyStreamEvent(str(number))
    yield f"counted to {to}"


@function_tool
async def nested(a: int) -> int:
    notify("outer")
    return await add.invoke(a=a, b=1)


@function_tool
def huge(size: int) -> str:
    return "x" * size


class Doubling(Action):
    number: int


class Doubled(Observation):
    total: int


class Doubler(ToolExecutor[Doubling, Doubled]):
    def __call__(self, action: Doubling, conversation: Any = None) -> Doubled:
        return Doubled(total=2 * action.number)


CLASS_BASED = ToolDefinition(
    name="double",
    description="Double a number.",
    action_type=Doubling,
    observation_type=Doubled,
    executor=Doubler(),
)

ALL = [add, whoami, leave, wait]
