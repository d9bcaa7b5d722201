"""The steps that every client written in Python runs, and its report of them.

A client is a program: `python -m tests.mcp.clients.NAME TARGET STEPS`, run by the interpreter of the
environment where its library is. The target is an address, or the command of a server as JSON. Each
step is a call of a tool, or with `do` another request: `read`, `prompt` or `task`. Files named after
the messages of its progress are created in the folder `heard`. A step with `cancel` is cancelled when
a file in that folder shows that it has begun; with `leave`, the client ends then. The program writes
a report in JSON to stdout, in the words of the protocol.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

BOUND = 30.0

Progress = Callable[..., Any]


class Client(Protocol):
    """A connected client."""

    async def tools(self) -> list[Any]:
        """Return the tools."""
        ...

    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> Any:
        """Call a tool."""
        ...


def target() -> str | list[str]:
    """Return the address, or the command, of the server."""
    given = sys.argv[1]
    return given if given.startswith("http") else json.loads(given)


async def report(version: Any, client: Client) -> None:
    """Run the steps and write the report."""
    listed = [wire(tool) for tool in await client.tools()]
    calls = [await _answer(client, step) for step in json.loads(sys.argv[2])]
    print(json.dumps({"version": str(version), "tools": listed, "calls": calls}), flush=True)  # noqa: T201


def wire(record: Any) -> Any:
    """Return an SDK object as protocol JSON."""
    if isinstance(record, dict):
        return record
    return record.model_dump(by_alias=True, mode="json", exclude_none=True)


def text_result(text: str, **more: Any) -> dict[str, Any]:
    """Return a result with one text."""
    return {"content": [{"type": "text", "text": text}], **more}


def answer_to(question: Any) -> dict[str, Any]:
    """Return the answer to a question with one field: 7."""
    (name,) = wire(question)["requestedSchema"]["properties"]
    return {name: 7}


def sampled(params: Any) -> dict[str, Any]:
    """Return the answer of a model: first a call of the tool `add`, then the result of the call."""
    request = wire(params)
    answer = {"role": "assistant", "model": "small"}
    content: Any = request["messages"][-1]["content"]
    if isinstance(content, list):
        (result,) = content
        text = f"It is {result['content'][0]['text']}."
        return {**answer, "content": {"type": "text", "text": text}, "stopReason": "endTurn"}
    (tool,) = request["tools"]
    call = {"type": "tool_use", "id": "c1", "name": tool["name"], "input": {"a": 2, "b": 3}}
    return {**answer, "content": [call], "stopReason": "toolUse"}


async def _answer(client: Any, step: dict[str, Any]) -> dict[str, Any]:
    seen: list[Any] = []

    async def progress(done: float, total: float | None = None, message: str | None = None) -> None:
        seen.append([done, total, message])
        if "heard" in step:
            (Path(step["heard"]) / str(message)).touch()

    for end in ("cancel", "leave"):
        if end in step:
            call = client.call(step["name"], step["arguments"], progress)
            return await _cancelled_call(call, Path(step[end]), end)
    try:
        result = await _request(client, step, progress)
    except Exception as error:  # noqa: BLE001 - whatever its library raises is its answer
        return {"error": f"{type(error).__name__}: {error}", "progress": seen}
    return {"result": wire(result), "progress": seen}


def _request(client: Any, step: Mapping[str, Any], progress: Progress) -> Awaitable[Any]:
    match step.get("do", "call"):
        case "read":
            return client.read(step["uri"])
        case "prompt":
            return client.prompt(step["name"], step["arguments"])
        case "task":
            return client.task(step["name"], step.get("arguments", {}))
        case _:
            return client.call(step["name"], step.get("arguments", {}), progress)


async def _cancelled_call(call: Awaitable[Any], folder: Path, end: str) -> dict[str, Any]:
    """Cancel a running call; return whether the server noticed while it was connected."""
    task = asyncio.ensure_future(call)
    await _comes(folder / "began")
    task.cancel()
    await asyncio.wait({task})
    return {"cancelled": end == "cancel" and await _comes(folder / "cancelled")}


async def _comes(file: Path) -> bool:
    for _ in range(int(BOUND / 0.02)):
        if file.exists():  # noqa: ASYNC240 - it takes no time
            return True
        await asyncio.sleep(0.02)
    return False
