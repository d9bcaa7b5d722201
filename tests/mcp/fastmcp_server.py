"""A FastMCP server, in the environment of FastMCP: `fastmcp_server.py [PORT]`.

It is served on stdin and stdout, or over HTTP with sessions.
With `fastmcp_tasks` it has a tool that is called only as a task.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore", "The sampling capability is deprecated")

fastmcp: Any = importlib.import_module("fastmcp")
apps: Any = importlib.import_module("fastmcp.apps")
types: Any = importlib.import_module("mcp_types")
images: Any = importlib.import_module("fastmcp.utilities.types")

PNG = b"\x89PNG\r\n\x1a\n"
FORM = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}


@dataclass
class Size:
    """What a person answers."""

    size: int


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


async def wait(folder: str) -> str:
    """Wait without an end."""
    (Path(folder) / "began").touch()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        (Path(folder) / "cancelled").touch()
        raise
    return "never"


async def measure(ctx: Any) -> Any:
    """Ask a person for a size."""
    if not is_modern(ctx):
        return f"{(await ctx.elicit('How big?', Size)).data.size} cm"
    if not ctx.input_responses:
        question = types.ElicitRequestFormParams(message="How big?", requested_schema=FORM)
        return asks("size", types.ElicitRequest(params=question))
    return f"{ctx.input_responses['size'].content['size']} cm"


async def infer(ctx: Any) -> Any:
    """Ask a model for a line."""
    messages = [message("user", {"type": "text", "text": "a line, please"})]
    if not is_modern(ctx):
        return (await ctx.session.create_message(messages, max_tokens=9)).content.text
    if not ctx.input_responses:
        return asks_model(messages)
    return ctx.input_responses["line"].content.text


async def consult(ctx: Any) -> Any:
    """Ask a model that can add."""
    messages = [message("user", {"type": "text", "text": "Add, please."})]
    offered: dict[str, Any] = {
        "tools": [types.Tool(name="add", input_schema={"type": "object"})],
        "tool_choice": types.ToolChoice(mode="auto"),
    }
    if not is_modern(ctx):
        answer = await ctx.session.create_message(messages, max_tokens=9, **offered)
        while calls := calls_of(answer):
            messages += calls
            answer = await ctx.session.create_message(messages, max_tokens=9, **offered)
        return answer.content_as_list[0].text
    if not ctx.input_responses:
        return asks_model(messages, **offered)
    answer = types.CreateMessageResultWithTools.model_validate(
        ctx.input_responses["line"].model_dump(by_alias=True)
    )
    if calls := calls_of(answer):
        return asks_model([*messages, *calls], **offered)
    return answer.content_as_list[0].text


def calls_of(answer: Any) -> list[Any]:
    """Return the message with the calls of a model and the message with their results, if any."""
    blocks = answer.content_as_list
    results = [
        {
            "type": "tool_result",
            "toolUseId": block.id,
            "content": [{"type": "text", "text": str(sum(block.input.values()))}],
        }
        for block in blocks
        if block.type == "tool_use"
    ]
    return [message("assistant", blocks), message("user", results)] if results else []


def is_modern(ctx: Any) -> bool:
    """Return whether the client speaks a protocol version without sessions."""
    return ctx.request_context.protocol_version >= "2026"


def message(role: str, content: Any) -> Any:
    """Return a message to a model."""
    return types.SamplingMessage.model_validate({"role": role, "content": content})


def asks_model(messages: list[Any], **options: Any) -> Any:
    """Return a result that asks the model of the client."""
    params = types.CreateMessageRequestParams(messages=messages, max_tokens=9, **options)
    return asks("line", types.CreateMessageRequest(params=params))


def asks(key: str, request: Any) -> Any:
    """Return a result that asks the client."""
    return types.InputRequiredResult(input_requests={key: request}, request_state="asked")


server.tool(wait)
for function in (steps, measure, infer, consult):
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
    if sys.argv[1:]:
        server.run("http", show_banner=False, port=int(sys.argv[1]))
    else:
        server.run(show_banner=False)
