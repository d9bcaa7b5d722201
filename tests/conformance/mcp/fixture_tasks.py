"""The tools that the scenarios of the conformance suite about tasks call by name."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel

from agents_tools import ToolContext, ToolError, function_tool
from agents_tools.mcp import roots

REQUIRED = {"mcp": {"execution": {"taskSupport": "required"}}}
OPTIONAL = {"mcp": {"execution": {"taskSupport": "optional"}}}


class Approval(BaseModel):
    """A yes or no."""

    confirm: bool


class Person(BaseModel):
    """A name."""

    name: str


@function_tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@function_tool(metadata=OPTIONAL)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Return a text after some seconds."""
    await asyncio.sleep(seconds)
    return f"{label} took {seconds:g} s"


@function_tool(metadata=REQUIRED)
async def failing_job() -> str:
    """Fail."""
    raise ToolError("The job failed.")


@function_tool(metadata=REQUIRED)
async def protocol_error_job() -> str:
    """Need folders of the client, which it has not declared."""
    return f"{await roots()}"


@function_tool(metadata=OPTIONAL)
async def confirm_delete(ctx: ToolContext[Any], filename: str) -> str:
    """Ask before a file is deleted."""
    approval = await ctx.ask(f"Delete {filename}?", answer=Approval)
    return f"deleted: {approval.confirm}"


@function_tool(metadata=OPTIONAL)
async def multi_input(ctx: ToolContext[Any]) -> str:
    """Ask two questions at the same time."""
    answers = await asyncio.gather(
        ctx.ask("What is your name?", answer=Person),
        ctx.ask("Do you agree?", answer=Approval),
    )
    return f"{answers}"


TASK_TOOLS = [greet, slow_compute, failing_job, protocol_error_job, confirm_delete, multi_input]
