"""The resources and prompts that the conformance suite reads by name."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents_tools import ToolContext, ToolOutputImage
from agents_tools.mcp import Resource, prompt, resource

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c63f8cfc0f01f0005000201ff8b0c0f590000000049454e44ae426082"
)


@resource("test://template/{id}/data")
def template(id: str) -> dict[str, Any]:
    """Data of an id."""
    return {"id": id, "data": f"Data of {id}"}


@prompt
def test_simple_prompt() -> str:
    """Say something simple."""
    return "This is a simple prompt."


def _complete(typed: str) -> list[str]:
    return [f"{typed}{ending}" for ending in ("1", "2")]


@prompt(complete={"arg1": _complete})
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Repeat the arguments.

    Args:
        arg1: The first.
        arg2: The second.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803
    """Embed a resource.

    Args:
        resourceUri: The URI of the resource.
    """
    text = {"uri": resourceUri, "mimeType": "text/plain", "text": "An embedded text."}
    embedded = {"type": "resource", "resource": text}
    return [{"role": "user", "content": embedded}, "Please use the text above."]


@prompt
def test_prompt_with_image() -> list[Any]:
    """Show an image."""
    return [ToolOutputImage(data=PIXEL, mime_type="image/png"), "Please look at the image."]


class Background(BaseModel):
    """The context of a prompt."""

    context: str


@prompt
async def test_input_required_result_prompt(ctx: ToolContext[Any]) -> str:
    """Ask for the context."""
    answer = await ctx.ask("What context should the prompt use?", answer=Background)
    return f"The context is {answer.context}."


RESOURCES = [
    template,
    Resource.from_value("test://static-text", "A text.", description="A text."),
    Resource.from_value("test://static-binary", PIXEL, mime_type="image/png"),
    Resource.from_value("test://watched-resource", "A text that is watched."),
]
PROMPTS = [
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
    test_input_required_result_prompt,
]
