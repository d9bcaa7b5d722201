"""Put policies around a tool: a timeout, retries, and a limit of calls.

Run it: python examples/policies.py. It prints a tool with its policies, a call that succeeded at
the third attempt, one that timed out, and one above the limit.
"""

from __future__ import annotations

import asyncio

from agents_tools import function_tool
from agents_tools.policies import hide, limit, retry, timeout

attempts = 0


@retry(3, on=ConnectionError, backoff=0.01)
@timeout(5)
@function_tool
async def fetch(url: str) -> str:
    """Fetch a page.

    Args:
        url: Its address.
    """
    global attempts  # noqa: PLW0603 - this server answers the third time
    attempts += 1
    if attempts < 3:  # noqa: PLR2004
        raise ConnectionError("connection reset")
    return f"the text of {url}"


@function_tool
async def wait(seconds: float) -> str:
    """Wait.

    Args:
        seconds: How long.
    """
    await asyncio.sleep(seconds)
    return "waited"


@function_tool
def find(query: str, database: str) -> str:
    """Find something in a database.

    Args:
        query: What to look for.
        database: Where.
    """
    return f"{query} in {database}"


async def main() -> None:
    """Call each tool as an agent does: what comes back is what the model gets."""
    print(fetch)
    print(await fetch.on_invoke_tool(None, '{"url": "https://example.com"}'))
    print("attempts:", attempts)

    # A policy is a function from tool to tool; the tool it is applied to stays as it is.
    impatient = timeout(0.05)(wait)
    print(await impatient.on_invoke_tool(None, '{"seconds": 10}'))

    rare = limit(calls=1)(wait)
    print(await rare.on_invoke_tool(None, '{"seconds": 0}'))
    print(await rare.on_invoke_tool(None, '{"seconds": 0}'))

    # What the model shall not choose is set here and is no part of the schema.
    archive = hide(database="archive")(find)
    print(list(archive.params_json_schema["properties"]))
    print(await archive.on_invoke_tool(None, '{"query": "owls"}'))


asyncio.run(main())
