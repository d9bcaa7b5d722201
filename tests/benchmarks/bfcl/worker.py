"""Send calls to the tools of one subject, in its environment; reads and prints JSON.

Run as `python -m tests.benchmarks.bfcl.worker NAME`. The input is a list of tools, each an object
with its `name`, `schema` and `calls`; the output is a list with the answers to the calls of each.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import sys
import warnings
from importlib.metadata import version
from typing import Any, TypedDict

from tests.benchmarks.bfcl.fixer import fixed
from tests.benchmarks.subjects import SUBJECTS

__all__ = ["Answer", "answers"]


class Answer(TypedDict):
    """What became of a call.

    Attributes:
        ran: Whether the function of the tool ran.
        text: The result, or the text of the error.
        repaired: What the fixer made of the call after an error; `None` if that did not run either.
    """

    ran: bool
    text: str
    repaired: dict[str, Any] | None


async def answers(
    adapter: Any, name: str, schema: dict[str, Any], calls: list[dict[str, Any]]
) -> list[Answer]:
    """Send calls to a tool.

    Args:
        adapter: The module of the subject, as for other benchmarks.
        name: The name of the tool.
        schema: Its JSON Schema.
        calls: The arguments of each call.
    """
    runs = 0

    async def body(arguments: dict[str, Any]) -> str:
        nonlocal runs
        del arguments
        runs += 1
        return "done"

    try:
        call = adapter.caller(adapter.from_schema(name, schema, body))
    except Exception as error:  # noqa: BLE001 - a library that cannot use the schema runs nothing
        return [Answer(ran=False, text=str(error), repaired=None) for _ in calls]

    async def send(arguments: dict[str, Any]) -> tuple[bool, str]:
        before = runs
        try:
            text = str(await call(json.dumps(arguments)))
        except Exception as error:  # noqa: BLE001 - its text is what a model would read
            text = str(error)
        return runs > before, text

    found: list[Answer] = []
    for arguments in calls:
        ran, text = await send(arguments)
        repaired = None if ran else fixed(arguments, text)
        if repaired is not None and (repaired == arguments or not (await send(repaired))[0]):
            repaired = None
        found.append(Answer(ran=ran, text=text, repaired=repaired))
    return found


async def main() -> None:
    """Answer the calls on standard input."""
    subject = SUBJECTS[sys.argv[1]]
    adapter = importlib.import_module(subject.adapter or "")
    tools: list[dict[str, Any]] = json.load(sys.stdin)
    found = [await answers(adapter, **tool) for tool in tools]
    print(json.dumps({"version": version(subject.distribution), "answers": found}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    asyncio.run(main())
