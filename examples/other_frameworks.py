"""Use one tool in three frameworks, with the same validation, errors and events.

Run it: python examples/other_frameworks.py. For each framework it prints the events of the tool and
the result for the model.

The calls are made in the same way as by the frameworks' agents. Frameworks that are not installed
are skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agents_tools import ToolProgressEvent, UserError, export, function_tool, listen, progress


@function_tool
async def count_owls(places: list[str]) -> str:
    """Count the owls.

    Args:
        places: Where to look.
    """
    for done, place in enumerate(places, start=1):
        progress(done, len(places), f"looked in the {place}")
    return f"{len(places) * 2} owls"


USES: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "LangChain": lambda asked: export.to_langchain(count_owls).ainvoke(asked),
    "Anthropic's tool runner": lambda asked: export.to_anthropic_sdk(count_owls).call(asked),
    "OpenAI's tool runner": lambda asked: export.to_openai_sdk(count_owls).execute(asked),
}


async def main() -> None:
    """Use the tool in each framework, and hear what it says meanwhile."""
    for name, use in USES.items():
        print(f"{name}:")
        with listen() as heard:
            try:
                answer = await use({"places": ["barn", "tower"]})
            except UserError as missing:  # the framework is not there; it names what to install
                print(f"  left out: {missing}")
                continue
        for event in heard:
            if isinstance(event, ToolProgressEvent):
                print(f"  {event.message}")
        print(f"  the model reads: {answer}")


if __name__ == "__main__":
    asyncio.run(main())
