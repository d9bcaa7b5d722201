"""A server made with the library that has the tools which the conformance suite calls by name.

`python -m tests.conformance.mcp.server_fixture [stateless|sessions]` takes a free port and writes
its address.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Annotated, Any, Literal

import uvicorn
from pydantic import BaseModel, Field, WithJsonSchema

from agents_tools import (
    FunctionTool,
    NotifyStreamEvent,
    ToolContext,
    ToolDeniedError,
    ToolError,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolProgressEvent,
    function_tool,
    streaming_tool,
)
from agents_tools.mcp import mcp_server, roots, sample
from tests.conformance.mcp.fixture_features import PIXEL, PROMPTS, RESOURCES
from tests.conformance.mcp.fixture_tasks import TASK_TOOLS

SILENCE = bytes.fromhex(
    "524946462400000057415645666d74201000000001000100401f0000401f0000010008006461746100000000"
)


@function_tool
def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text."


@function_tool
def test_image_content() -> ToolOutputImage:
    """Give an image."""
    return ToolOutputImage(data=PIXEL, mime_type="image/png")


@function_tool
def test_audio_content() -> ToolOutputAudio:
    """Give a sound."""
    return ToolOutputAudio(data=SILENCE, mime_type="audio/wav")


@function_tool
def test_embedded_resource() -> ToolOutputFileContent:
    """Give a file."""
    return ToolOutputFileContent(data=b"A file.", mime_type="text/plain", filename="file.txt")


@function_tool
def test_multiple_content_types() -> list[Any]:
    """Give some of each."""
    return [
        ToolOutputText("Some of each:"),
        ToolOutputImage(data=PIXEL, mime_type="image/png"),
        ToolOutputFileContent(data=b'{"a": 1}', mime_type="application/json", filename="a.json"),
    ]


@streaming_tool
async def test_tool_with_progress():
    """Say how far it is."""
    for percent in (0, 50, 100):
        yield ToolProgressEvent(percent, total=100)
    yield "done"


@streaming_tool
async def test_tool_with_logging():
    """Say what it does."""
    for line in ("started", "going on", "ending"):
        yield NotifyStreamEvent(line)
    yield "done"


@streaming_tool
async def test_logging_tool():
    """Say what it does, to a client that has asked for no log."""
    yield NotifyStreamEvent("working")
    yield "done"


@function_tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool always fails.")


@function_tool
async def test_elicitation(ctx: ToolContext[Any], message: str) -> str:
    """Ask the person at the client something."""
    return await ctx.ask(message)


@function_tool
async def test_streaming_elicitation(ctx: ToolContext[Any]) -> str:
    """Say something, then ask the person at the client."""
    ctx.notify("about to ask")
    return await ctx.ask("What is your name?")


class Everything(BaseModel):
    """A form with a default in each field."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@function_tool
async def test_elicitation_sep1034_defaults(ctx: ToolContext[Any]) -> str:
    """Ask for everything that has a default."""
    return f"Elicitation completed: {await ctx.ask('Who are you?', answer=Everything)}"


def _titled(*values: str) -> list[dict[str, str]]:
    return [{"const": value, "title": value.title()} for value in values]


class Choices(BaseModel):
    """A form with every kind of choice."""

    untitledSingle: Literal["option1", "option2", "option3"]  # noqa: N815 - the suite's names
    titledSingle: Annotated[  # noqa: N815
        str, WithJsonSchema({"type": "string", "oneOf": _titled("value1", "value2", "value3")})
    ]
    legacyEnum: Annotated[  # noqa: N815
        str,
        WithJsonSchema(
            {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option 1", "Option 2"]}
        ),
    ]
    untitledMulti: list[Literal["option1", "option2", "option3"]]  # noqa: N815
    titledMulti: Annotated[  # noqa: N815
        list[str],
        WithJsonSchema({"type": "array", "items": {"anyOf": _titled("value1", "value2")}}),
    ]


@function_tool
async def test_elicitation_sep1330_enums(ctx: ToolContext[Any]) -> str:
    """Ask for choices of every kind."""
    return f"Elicitation completed: {await ctx.ask('What do you want?', answer=Choices)}"


@function_tool
async def test_input_required_result_request_state(ctx: ToolContext[Any]) -> str:
    """Ask once; the state says that it is the same call."""
    await ctx.ask("Please confirm", answer=Confirmation)
    return "state-ok"


@function_tool
async def test_input_required_result_tampered_state(ctx: ToolContext[Any]) -> str:
    """Ask once; a state that is made up finds no call."""
    await ctx.ask("Please confirm", answer=Confirmation)
    return "state-ok"


@function_tool
async def test_input_required_result_multi_round(ctx: ToolContext[Any]) -> str:
    """Ask twice."""
    person = await ctx.ask("Step 1: What is your name?", answer=Person)
    taste = await ctx.ask("Step 2: What is your favorite color?", answer=Taste)
    return f"{person.name} likes {taste.color}"


@function_tool
async def test_input_required_result_elicitation(ctx: ToolContext[Any]) -> str:
    """Ask for a name, under the key that the suite expects."""
    person = await ctx.ask("What is your name?", answer=Person, key="user_name")
    return f"Hello, {person.name}!"


@function_tool
async def test_input_required_result_sampling() -> str:
    """Ask the model of the client."""
    answer = await sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return answer.text


@function_tool
async def test_input_required_result_list_roots() -> str:
    """List the folders of the client."""
    return f"{await roots()}"


@function_tool
async def test_input_required_result_multiple_inputs(ctx: ToolContext[Any]) -> str:
    """Ask the person, the model and the client in one round."""
    person, greeting, folders = await asyncio.gather(
        ctx.ask("What is your name?", answer=Person, key="user_name"),
        sample("Generate a greeting", max_tokens=50, key="greeting"),
        roots(),
    )
    return f"{greeting.text} {person.name}, you work in {folders}"


@function_tool
async def test_input_required_result_capabilities(ctx: ToolContext[Any]) -> str:
    """Ask what the client can answer."""
    try:
        return await ctx.ask("What is your name?")
    except ToolDeniedError:  # the client has not declared elicitation
        return (await sample("Invent a name", max_tokens=50)).text


@function_tool
async def test_sampling(prompt: str) -> str:
    """Ask the model of the client."""
    return f"LLM response: {(await sample(prompt, max_tokens=100)).text}"


@function_tool
async def test_missing_capability() -> str:
    """Need a model that the client has not declared."""
    return (await sample("Hello", max_tokens=10)).text


class Confirmation(BaseModel):
    """A yes or no."""

    ok: bool


class Person(BaseModel):
    """A name."""

    name: str


class Taste(BaseModel):
    """A color."""

    color: str


@function_tool
def test_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], query: str
) -> str:
    """Look something up in a region, which clients also name in a header."""
    return f"{query} in {region}"


async def _echo(_ctx: Any, arguments: str) -> str:
    return arguments


json_schema_2020_12_tool = FunctionTool[..., Any].from_schema(
    name="json_schema_2020_12_tool",
    description="Take arguments that are described with much of what JSON Schema can say.",
    on_invoke_tool=_echo,
    schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)


@function_tool
def passing_tool() -> str:
    """Be there, or not."""
    return "here"


TOOLS = [
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_tool_with_progress,
    test_tool_with_logging,
    test_logging_tool,
    test_error_handling,
    test_elicitation,
    test_streaming_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multi_round,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_multiple_inputs,
    test_input_required_result_capabilities,
    test_sampling,
    test_missing_capability,
    test_header,
    json_schema_2020_12_tool,
    *TASK_TOOLS,
]


class Shelf:
    """Tools that come and go."""

    def __init__(self, *tools: FunctionTool[..., Any]) -> None:
        self.tools = list(tools)

    def get_tools(self) -> list[FunctionTool[..., Any]]:
        """Return the present tools."""
        return list(self.tools)


async def main(sessions: str = "stateless") -> None:
    """Serve until a signal ends it."""
    shelf = Shelf(*TOOLS)

    @function_tool
    async def test_trigger_tool_change() -> str:
        """Change the list of tools."""
        if passing_tool in shelf.tools:
            shelf.tools.remove(passing_tool)
        else:
            shelf.tools.append(passing_tool)
        await app.tools_changed()
        return "changed"

    @function_tool
    async def test_trigger_prompt_change() -> str:
        """Report that the list of prompts has changed."""
        await app.prompts_changed()
        return "changed"

    shelf.tools += [test_trigger_tool_change, test_trigger_prompt_change]
    app = mcp_server(
        shelf,
        resources=RESOURCES,
        prompts=PROMPTS,
        name="conformance",
        stateless=sessions == "stateless",
        tasks=[],  # the tools declare it
    )
    with socket.create_server(("127.0.0.1", 0)) as sock:
        print(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", flush=True)  # noqa: T201
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        await uvicorn.Server(config).serve(sockets=[sock])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
