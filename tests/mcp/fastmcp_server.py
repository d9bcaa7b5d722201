"""A FastMCP server, in the environment of FastMCP: `fastmcp_server.py`.

With `fastmcp_tasks` it has a tool that is called only as a task.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from typing import Any

fastmcp: Any = importlib.import_module("fastmcp")
apps: Any = importlib.import_module("fastmcp.apps")
types: Any = importlib.import_module("mcp_types")
images: Any = importlib.import_module("fastmcp.utilities.types")

PNG = b"\x89PNG\r\n\x1a\n"
FORM = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
server = fastmcp.FastMCP("tea", instructions="Ask for tea.")


@server.tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def shelf(name: str) -> dict[str, Any]:
    """Look at a shelf."""
    return {"name": name, "boxes": len(name)}


async def steps(lines: int, ctx: Any) -> str:
    """Report progress without a pause."""
    for number in range(1, lines + 1):
        await ctx.report_progress(number, lines, f"line-{number}")
    return f"{lines} lines"


@server.tool
def picture() -> Any:
    """Return a picture."""
    return images.Image(data=PNG, format="png")


@server.tool
def fail() -> str:
    """Fail."""
    raise importlib.import_module("fastmcp.exceptions").ToolError("The kettle is empty.")


async def wait(ctx: Any) -> str:
    """Wait without an end."""
    await ctx.report_progress(1, 2, "began")
    await asyncio.Event().wait()
    return "never"


def measure(ctx: Any) -> Any:
    """Ask a person for a size."""
    if not ctx.input_responses:
        question = types.ElicitRequestFormParams(message="How big?", requested_schema=FORM)
        return asks("size", types.ElicitRequest(params=question))
    return f"{ctx.input_responses['size'].content['size']} cm"


def infer(ctx: Any) -> Any:
    """Ask a model for a line."""
    if not ctx.input_responses:
        text = types.TextContent(type="text", text="a line, please")
        messages = [types.SamplingMessage(role="user", content=text)]
        params = types.CreateMessageRequestParams(messages=messages, max_tokens=9)
        return asks("line", types.CreateMessageRequest(params=params))
    return ctx.input_responses["line"].content.text


def asks(key: str, request: Any) -> Any:
    """Return a result that asks the client."""
    return types.InputRequiredResult(input_requests={key: request}, request_state="asked")


for function in (steps, wait, measure, infer):
    function.__annotations__["ctx"] = fastmcp.Context
    server.tool(function)


@server.resource("guide://{topic}")
def guide(topic: str) -> str:
    """A guide."""
    return f"# {topic}"


@server.resource("logo://tea", mime_type="image/png")
def logo() -> bytes:
    """The logo."""
    return PNG


@server.prompt
def review(code: str) -> str:
    """Review code."""
    return f"Review this code: {code}"


@server.resource("ui://tea/clock.html")
def clock() -> str:
    """A page."""
    return "<html><body>a clock</body></html>"


@server.tool(app=apps.AppConfig(resource_uri="ui://tea/clock.html"))
def now() -> str:
    """Tell the time, with a clock for people."""
    return "It is noon."


@server.tool(app=apps.AppConfig(visibility=["app"]))
def tick() -> str:
    """Only for the clock."""
    return "tick"


if importlib.util.find_spec("fastmcp_tasks"):
    tasks: Any = importlib.import_module("fastmcp_tasks")
    settings: Any = importlib.import_module("fastmcp.utilities.tasks")
    server.add_extension(tasks.TasksExtension())

    @server.tool(task=settings.TaskConfig(mode="required"))
    async def grow(leaves: int) -> str:
        """Grow leaves, only as a task."""
        return f"{leaves} leaves"


if __name__ == "__main__":
    server.run(show_banner=False)
