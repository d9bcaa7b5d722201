"""Return errors that help a model to correct its call.

Run it: python examples/errors_for_models.py. It prints the errors for bad arguments, a refusal,
broken JSON, and a crash with a secret in it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from agents_tools import RunContextWrapper, ToolError, function_tool, register_secret


@function_tool
def book_table(day: Literal["fri", "sat"], guests: int, name: str = "Smith") -> str:
    """Book a table.

    Args:
        day: The day.
        guests: How many come.
        name: For whom.
    """
    if guests > 8:  # noqa: PLR2004
        raise ToolError("The largest table has 8 seats. Book two tables, or ask for fewer guests.")
    return f"a table for {guests}, {day}, {name}"


@function_tool
def connect() -> str:
    """Connect to the server."""
    raise ConnectionError("login as robot:pa55-w0rd-x refused")


def short_answer(context: RunContextWrapper[Any], error: Exception) -> str:
    """Return only that it failed."""
    del context
    return f"It did not work: {type(error).__name__}."


async def main() -> None:
    """Call the tool as a model might; `call` returns the status and the text."""
    for arguments in (
        '{"day": "sunday", "guests": "many", "nmae": "Jones"}',
        '{"day": "fri", "guests": 12}',
        '{"day": "fri", "guests": "4"}',
        '{"day": "fri", "guests": 4',
    ):
        outcome = await book_table.call(None, arguments)
        print(f"[{outcome.status}] {outcome.output}\n")

    # The message of an unexpected exception goes to the model, with secrets masked.
    register_secret("pa55-w0rd-x")
    print(await connect.on_invoke_tool(None, "{}"))

    # A failure function of your own; with None the exception is raised instead.
    print(await connect.with_(failure_error_function=short_answer).on_invoke_tool(None, "{}"))
    try:
        await connect.with_(failure_error_function=None).on_invoke_tool(None, "{}")
    except ConnectionError as error:
        print("raised:", type(error).__name__)


asyncio.run(main())
