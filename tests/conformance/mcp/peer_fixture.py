"""A server with the features that the conformance suite asks for, made with another library.

`python -m tests.conformance.mcp.peer_fixture fastmcp|mcp stateless|sessions` runs in the environment
of that library: FastMCP, or `MCPServer` of the Python SDK. It takes a free port and writes its
address. The two have nearly the same decorators; every feature is written as their documentation
shows it.
"""

from __future__ import annotations

import base64
import importlib
import inspect
import socket
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal

import uvicorn
from pydantic import BaseModel, Field

types: Any = importlib.import_module("mcp_types")

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
        "0000000d49444154789c63f8cfc0f01f0005000201ff8b0c0f590000000049454e44ae426082"
    )
).decode()
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Answer(BaseModel):
    """The answer to a question."""

    response: str


class Everything(BaseModel):
    """A form with a default in each field."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text."


def test_image_content() -> Any:
    """Return an image."""
    return types.ImageContent(type="image", data=PIXEL, mime_type="image/png")


def test_audio_content() -> Any:
    """Return a sound."""
    return types.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")


def _file(text: str, kind: str = "text/plain", uri: str = "test://embedded-resource") -> Any:
    resource = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.EmbeddedResource(type="resource", resource=resource)


def test_embedded_resource() -> Any:
    """Return a file."""
    return _file("A file.")


def test_multiple_content_types() -> list[Any]:
    """Return some of each."""
    text = types.TextContent(type="text", text="Some of each:")
    return [text, test_image_content(), _file('{"a": 1}', "application/json")]


async def test_tool_with_progress(ctx: Any) -> str:
    """Report progress."""
    for percent in (0, 50, 100):
        await ctx.report_progress(percent, 100)
    return "done"


async def test_tool_with_logging(ctx: Any) -> str:
    """Log what it does."""
    for line in ("started", "going on", "ending"):
        await ctx.info(line)
    return "done"


async def test_logging_tool(ctx: Any) -> str:
    """Log to a client that has requested no log."""
    await ctx.info("working")
    return "done"


def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool always fails.")


async def test_elicitation(ctx: Any, message: str) -> str:
    """Ask the person at the client."""
    result = await ctx.elicit(message, Answer)
    return f"{result.action}: {getattr(result, 'data', None)}"


async def test_elicitation_sep1034_defaults(ctx: Any) -> str:
    """Ask for everything that has a default."""
    result = await ctx.elicit("Who are you?", Everything)
    return f"Elicitation completed: {result.action} {getattr(result, 'data', None)}"


def _titled(*values: str) -> list[dict[str, str]]:
    return [{"const": value, "title": value.title()} for value in values]


CHOICES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": _titled("value1", "value2", "value3")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2"],
            "enumNames": ["Option 1", "Option 2"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {"type": "array", "items": {"anyOf": _titled("value1", "value2")}},
    },
}


async def test_elicitation_sep1330_enums(ctx: Any) -> str:
    """Ask for choices of every kind."""
    result = await ctx.session.elicit("What do you want?", CHOICES, ctx.request_id)
    return f"Elicitation completed: {result.action} {result.content}"


async def test_sampling(ctx: Any, prompt: str) -> str:
    """Ask the model of the client."""
    text = types.TextContent(type="text", text=prompt)
    messages = [types.SamplingMessage(role="user", content=text)]
    result = await ctx.session.create_message(
        messages, max_tokens=100, related_request_id=ctx.request_id
    )
    return f"LLM response: {result.content.text}"


def _asks(state: str, **requests: Any) -> Any:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def _question(message: str, schema: dict[str, Any] = NAME) -> Any:
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def _inference(prompt: str) -> Any:
    text = types.TextContent(type="text", text=prompt)
    messages = [types.SamplingMessage(role="user", content=text)]
    params = types.CreateMessageRequestParams(messages=messages, max_tokens=100)
    return types.CreateMessageRequest(params=params)


def test_input_required_result_elicitation(ctx: Any) -> Any:
    """Ask for a name."""
    if not ctx.input_responses:
        return _asks("asked", user_name=_question("What is your name?"))
    return f"Hello, {ctx.input_responses['user_name'].content['name']}!"


def test_input_required_result_sampling(ctx: Any) -> Any:
    """Ask the model of the client."""
    if not ctx.input_responses:
        return _asks("asked", capital_question=_inference("What is the capital of France?"))
    return ctx.input_responses["capital_question"].content.text


def test_input_required_result_list_roots(ctx: Any) -> Any:
    """Ask for the folders of the client."""
    if not ctx.input_responses:
        return _asks("asked", client_roots=types.ListRootsRequest())
    return str(ctx.input_responses["client_roots"].roots)


def test_input_required_result_multiple_inputs(ctx: Any) -> Any:
    """Ask the person, the model and the client in one round."""
    if not ctx.input_responses:
        return _asks(
            "asked",
            user_name=_question("What is your name?"),
            greeting=_inference("Generate a greeting"),
            client_roots=types.ListRootsRequest(),
        )
    return str(ctx.input_responses)


OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
COLOR = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}


def test_input_required_result_request_state(ctx: Any) -> Any:
    """Ask once; the state belongs to the call."""
    if not ctx.input_responses:
        return _asks("asked", confirm=_question("Please confirm", OK))
    return "state-ok"


def test_input_required_result_tampered_state(ctx: Any) -> Any:
    """Ask once; another state is refused by the library, if it protects the state."""
    return test_input_required_result_request_state(ctx)


def test_input_required_result_multi_round(ctx: Any) -> Any:
    """Ask twice."""
    if ctx.request_state is None:
        return _asks("first", step1=_question("Step 1: What is your name?"))
    if ctx.request_state == "first":
        return _asks("second", step2=_question("Step 2: What is your favorite color?", COLOR))
    return f"done: {ctx.input_responses}"


def test_input_required_result_capabilities(ctx: Any) -> Any:
    """Ask what the client can answer."""
    if ctx.input_responses:
        return "done"
    capabilities = _capabilities(ctx)
    if capabilities is not None and capabilities.elicitation is not None:
        return _asks("asked", user_name=_question("What is your name?"))
    return _asks("asked", name=_inference("Invent a name"))


def _capabilities(ctx: Any) -> Any:
    found = getattr(ctx, "client_capabilities", None)
    return found if found is not None else ctx.session.client_capabilities


def test_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], query: str
) -> str:
    """Look something up in a region, which clients also name in a header."""
    return f"{query} in {region}"


TOOLS: tuple[Callable[..., Any], ...] = (
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
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_sampling,
    test_header,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_multiple_inputs,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
)


def template(id: str) -> str:
    """Return the data of an id."""
    return f'{{"id": "{id}", "data": "Data of {id}"}}'


def static_text() -> str:
    """Return a text."""
    return "A text."


def static_binary() -> bytes:
    """Return bytes."""
    return base64.b64decode(PIXEL)


def watched() -> str:
    """Return a text that is watched."""
    return "A text that is watched."


def test_simple_prompt() -> str:
    """Return a simple prompt."""
    return "This is a simple prompt."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Repeat the arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def build(library: str) -> Any:
    """Return the server, made with a library."""
    fastmcp = library == "fastmcp"
    module: Any = importlib.import_module("fastmcp" if fastmcp else "mcp.server.mcpserver")
    messages: Any = importlib.import_module(
        "fastmcp.prompts" if fastmcp else "mcp.server.mcpserver.prompts.base"
    )
    server: Any = (module.FastMCP if fastmcp else module.MCPServer)("conformance")

    def message(content: Any) -> Any:
        return messages.Message(content) if fastmcp else messages.UserMessage(content)

    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803
        """Embed a resource."""
        return [message(_file("An embedded text.", uri=resourceUri)), message("Please use it.")]

    def test_prompt_with_image() -> list[Any]:
        """Show an image."""
        return [message(test_image_content()), message("Please look at the image.")]

    def test_input_required_result_prompt(ctx: Any) -> Any:
        """Ask for the context."""
        if not ctx.input_responses:
            return _asks("asked", context=_question("What context should the prompt use?"))
        return "The context is known."

    prompts = (
        test_simple_prompt,
        test_prompt_with_arguments,
        test_prompt_with_embedded_resource,
        test_prompt_with_image,
        test_input_required_result_prompt,
    )
    for function in (*TOOLS, *prompts):
        if "ctx" in inspect.signature(function).parameters:
            function.__annotations__["ctx"] = module.Context
    for function in TOOLS:
        server.tool()(function)
    for function in prompts:
        server.prompt()(function)
    kinds = {
        "test://template/{id}/data": (template, "application/json"),
        "test://static-text": (static_text, "text/plain"),
        "test://static-binary": (static_binary, "image/png"),
        "test://watched-resource": (watched, "text/plain"),
    }
    for uri, (function, kind) in kinds.items():
        server.resource(uri, mime_type=kind)(function)

    @server.completion()
    async def complete(_ref: Any, argument: Any, _context: Any) -> Any:
        return types.Completion(values=[f"{argument.value}{ending}" for ending in ("1", "2")])

    return server


def main(library: str, mode: str = "stateless") -> None:
    """Serve until a signal ends it."""
    server, stateless = build(library), mode == "stateless"
    app = (
        server.http_app(stateless_http=stateless, host_origin_protection=True)
        if library == "fastmcp"
        else server.streamable_http_app(stateless_http=stateless)
    )
    with socket.create_server(("127.0.0.1", 0)) as sock:
        print(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", flush=True)  # noqa: T201
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[sock])


if __name__ == "__main__":
    main(*sys.argv[1:])
