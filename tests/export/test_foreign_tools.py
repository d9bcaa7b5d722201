"""Test the conversion of results and blocks between our tools and those of other frameworks."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from pydantic_ai import RunContext

from agents_tools import (
    FunctionTool,
    RunContextWrapper,
    ToolContext,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
    UserError,
    function_tool,
    policies,
)
from agents_tools.content import Usage
from agents_tools.export._export_tool import call_tool, stream_call
from agents_tools.tool.call import RunScope, enter_scope, leave_scope
from tests.frameworks.functions import PIXEL, to_url

URL = "https://example.com/a"
BLOCKS = [
    ToolOutputText("see"),
    ToolOutputImage(data=PIXEL),
    ToolOutputImage(url=URL),
    ToolOutputImage(file_id="f1"),
    ToolOutputFileContent(data=b"%PDF", mime_type="application/pdf", filename="a.pdf"),
    ToolOutputFileContent(url=URL),
    ToolOutputAudio(data=b"x", mime_type="audio/wav"),
    ToolOutputAudio(url=URL),
]
DATA = to_url(PIXEL).partition(",")[2]


@function_tool
def show() -> list[Any]:
    """Show everything."""
    return BLOCKS


async def _output(tool: FunctionTool[..., Any], arguments: str = "{}") -> Any:
    return (await tool.call(None, arguments)).output


# --- our tools in other frameworks


async def test_content_blocks_are_converted_for_langchain() -> None:
    """Images and files keep their form; audio is described, because LangChain would print it."""
    from agents_tools.export import to_langchain

    call = {"type": "tool_call", "id": "c1", "name": "show", "args": {}}
    pdf = {"base64": "JVBERg==", "mime_type": "application/pdf", "filename": "a.pdf"}
    assert (await to_langchain(show).ainvoke(call)).content == [
        {"type": "text", "text": "see"},
        {"type": "image", "base64": DATA, "mime_type": "image/png"},
        {"type": "image", "url": URL},
        {"type": "image", "file_id": "f1"},
        {"type": "file", **pdf},
        {"type": "file", "url": URL},
        {"type": "text", "text": "[audio: audio/wav, 1 bytes]"},
        {"type": "text", "text": f"[audio: at {URL}]"},
    ]


async def test_content_blocks_are_converted_for_anthropic() -> None:
    """Blocks that the API does not accept are described."""
    from agents_tools.export import to_anthropic_sdk

    png = {"type": "base64", "media_type": "image/png", "data": DATA}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
    assert await to_anthropic_sdk(show).call({}) == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": png},
        {"type": "image", "source": {"type": "url", "url": URL}},
        {"type": "text", "text": "[image: f1]"},
        {"type": "document", "source": pdf},
        {"type": "text", "text": f"[file: at {URL}]"},
        {"type": "text", "text": "[audio: audio/wav, 1 bytes]"},
        {"type": "text", "text": f"[audio: at {URL}]"},
    ]


async def test_content_blocks_are_converted_for_openai() -> None:
    """They have the form of the Responses API; its runner refuses unknown keys."""
    from agents_tools.export import to_openai_sdk

    file = {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"}
    assert await to_openai_sdk(show).execute({}) == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": to_url(PIXEL), "detail": "auto"},
        {"type": "input_image", "image_url": URL, "detail": "auto"},
        {"type": "input_image", "file_id": "f1", "detail": "auto"},
        {"type": "input_file", **file},
        {"type": "input_file", "file_url": URL},
        {"type": "input_text", "text": "[audio: audio/wav, 1 bytes]"},
        {"type": "input_text", "text": f"[audio: at {URL}]"},
    ]


async def test_content_blocks_are_converted_for_pydantic_ai() -> None:
    """It has media types of its own; a file id of one provider has no meaning for others."""
    from pydantic_ai import AudioUrl, BinaryContent, DocumentUrl, ImageUrl
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.usage import RunUsage

    from agents_tools.export import to_pydantic_ai

    context: Any = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    assert await to_pydantic_ai(show).function_schema.call({}, context) == [
        "see",
        BinaryContent(data=PIXEL, media_type="image/png"),
        ImageUrl(url=URL),
        "[image: f1]",
        BinaryContent(data=b"%PDF", media_type="application/pdf"),
        DocumentUrl(url=URL),
        BinaryContent(data=b"x", media_type="audio/wav"),
        AudioUrl(url=URL),
    ]


async def test_a_call_that_needs_approval_is_denied_inside_a_framework_run() -> None:
    """The outer run of this library could wait, but the framework between the two cannot."""
    guarded = policies.needs_approval()(show)
    scope: RunScope = RunScope(
        agent=None,
        run_id="r1",
        usage=Usage(),
        sinks=(),
        channel=None,
        parent=None,
        deadline=None,
        asker=None,
        run=None,
    )
    token = enter_scope(scope)
    try:
        outcome = await call_tool(guarded, {})
        last = [item async for item in stream_call(guarded, {})][-1]
    finally:
        leave_scope(token)
    assert outcome.status == "denied"
    assert "approvals are not available" in str(outcome.output)
    assert last == outcome or getattr(last, "status", None) == "denied"


# --- tools of other frameworks here


async def test_results_of_langchain_tools_are_converted() -> None:
    """Covers texts, images and files in each notation; an artifact stays metadata."""
    from langchain_core.tools import ToolException, tool as foreign_tool

    from agents_tools.export import from_langchain

    def answer(kind: str) -> Any:
        """Answer."""
        blocks = [
            {"type": "text", "text": "see"},
            {"type": "image", "base64": DATA, "mime_type": "image/png"},
            {"type": "image_url", "image_url": URL},
            {"type": "file", "url": URL},
            {"type": "json", "json": {"a": 1}},
        ]
        if kind == "error":
            raise ToolException("not today")
        return {"blocks": blocks, "json": {"a": 1}, "nothing": None}[kind]

    tool = from_langchain(foreign_tool(answer))
    assert await _output(tool, '{"kind": "blocks"}') == [
        ToolOutputText("see"),
        ToolOutputImage(data=PIXEL),
        ToolOutputImage(url=URL),
        ToolOutputFileContent(url=URL),
        ToolOutputText('{"type": "json", "json": {"a": 1}}'),
    ]
    assert await _output(tool, '{"kind": "json"}') == '{"a": 1}'
    assert await _output(tool, '{"kind": "nothing"}') == "null"
    assert await _output(tool, '{"kind": "error"}') == "not today"
    handled = foreign_tool(answer)
    handled.handle_tool_error = "It said no."
    outcome = await from_langchain(handled).call(None, '{"kind": "error"}')
    assert (outcome.status, outcome.output) == ("tool_error", "It said no.")


async def test_simple_tools_of_langchain_accept_one_text() -> None:
    """This oldest kind of tool has no schema and any name for its argument."""
    from langchain_core.tools import Tool

    from agents_tools.export import from_langchain

    tool = from_langchain(Tool("shout", lambda text: text.upper() + "!", "Shout."))
    assert tool.params_json_schema == {
        "type": "object",
        "properties": {"tool_input": {"type": "string"}},
        "required": ["tool_input"],
    }
    assert await _output(tool, '{"tool_input": "hey"}') == "HEY!"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Pydantic 1 ends with Python 3.13")
async def test_tools_of_langchain_can_have_a_pydantic_1_model() -> None:
    """LangChain still accepts them."""
    from langchain_core.tools import StructuredTool
    from pydantic.v1 import BaseModel

    from agents_tools.export import from_langchain

    class Arguments(BaseModel):
        a: int

    def double(a: int) -> int:
        """Double."""
        return 2 * a

    tool = from_langchain(StructuredTool.from_function(double, args_schema=Arguments))
    assert await _output(tool, '{"a": 2}') == "4"
    assert (await tool.call(None, '{"a": "x"}')).status == "invalid_args"


async def test_results_of_anthropic_tools_are_converted() -> None:
    """Documents become files; unknown kinds are shown unchanged."""
    from anthropic import beta_async_tool

    from agents_tools.export import from_anthropic_sdk

    blocks = [
        {"type": "image", "source": {"type": "url", "url": URL}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
        },
        {"type": "search_result"},
    ]

    @beta_async_tool
    async def answer() -> Any:
        """Answer."""
        return blocks

    assert await _output(from_anthropic_sdk(answer)) == [
        ToolOutputImage(url=URL),
        ToolOutputFileContent(data=b"%PDF", mime_type="application/pdf"),
        ToolOutputText('{"type":"search_result"}'),
    ]


@pytest.mark.parametrize(
    ("value", "output"),
    [
        (3, "3"),
        ({"a": 1}, '{"a":1}'),
        (["x", 1], '["x",1]'),
        ([{"a": 1}], '[{"a":1}]'),
        ([], "[]"),
        (None, "(no output)"),
    ],
)
async def test_values_that_are_not_blocks_are_written_as_json(value: Any, output: str) -> None:
    """Not every function returns the types that an SDK declares."""
    from anthropic import beta_async_tool
    from openai.lib.responses_tool_runner import RegisteredFunction

    from agents_tools.export import from_anthropic_sdk, from_openai_sdk

    @beta_async_tool
    async def answer() -> Any:
        """Answer."""
        return value

    assert await _output(from_anthropic_sdk(answer)) == output
    wire: Any = {"type": "function", "name": "answer", "parameters": None, "strict": False}
    registered = RegisteredFunction(wire, lambda arguments: value)
    assert await _output(from_openai_sdk(registered)) == output


def test_tools_known_only_to_anthropic_are_refused() -> None:
    """A tool without a schema cannot be sent to another provider."""
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool

    from agents_tools.export import from_anthropic_sdk

    class Bash(BetaAsyncBuiltinFunctionTool):
        def to_dict(self) -> Any:
            return {"type": "bash_20250124", "name": "bash"}

        async def call(self, input: object) -> Any:
            return ""

    with pytest.raises(UserError, match=r"'bash' cannot be converted: .*bash_20250124"):
        from_anthropic_sdk(Bash())


async def test_typed_functions_of_openai_receive_their_model() -> None:
    """`from_tool` promises the function an object of its class."""
    from openai.lib._tools import ResponsesPydanticFunctionTool
    from openai.lib.responses_tool_runner import RegisteredFunction
    from pydantic import BaseModel

    from agents_tools.export import from_openai_sdk

    class Search(BaseModel):
        query: str

    def search(given: Search) -> Any:
        return [{"type": "input_file", "file_url": URL, "filename": given.query}]

    schema = {**Search.model_json_schema(), "additionalProperties": False}
    wire: Any = {"type": "function", "name": "search", "parameters": schema, "strict": True}
    typed: Any = ResponsesPydanticFunctionTool(wire, Search)
    registered = RegisteredFunction.from_tool(typed, execute=search)
    tool = from_openai_sdk([registered])[0]
    assert tool.strict_json_schema
    output = await _output(tool, '{"query": "owls"}')
    assert output == [ToolOutputFileContent(url=URL, filename="owls")]


async def test_results_of_agents_sdk_tools_are_converted() -> None:
    """Its blocks become blocks here, alone or in a list; other values stay unchanged."""
    from agents import (
        ToolOutputFileContent as File,
        ToolOutputImage as Image,
        ToolOutputText as Text,
        function_tool as foreign_tool,
    )

    from agents_tools.export import from_openai_agents

    @foreign_tool
    def answer(kind: str) -> Any:
        return {
            "blocks": [
                Text(text="see"),
                Image(image_url=to_url(PIXEL)),
                File(file_data="JVBERg==", filename="a.pdf"),
                File(file_url=URL),
            ],
            "one": Text(text="see"),
            "json": {"a": 1},
        }[kind]

    tool = from_openai_agents(answer)
    assert await _output(tool, '{"kind": "blocks"}') == [
        ToolOutputText("see"),
        ToolOutputImage(data=PIXEL),
        ToolOutputFileContent(data=b"%PDF", filename="a.pdf"),
        ToolOutputFileContent(url=URL),
    ]
    assert await _output(tool, '{"kind": "one"}') == [ToolOutputText("see")]
    assert await _output(tool, '{"kind": "json"}') == '{"a":1}'
    outcome = await tool.call(None, '{"kind": "nothing"}')
    assert outcome.status == "tool_error"
    assert "An error occurred" in str(outcome.output)


async def test_conditions_of_agents_sdk_tools_are_evaluated() -> None:
    """The tool decides who can see it and when approval is needed."""
    from agents import function_tool as foreign_tool

    from agents_tools.export import from_openai_agents

    async def risky(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return context.context == "guest" and arguments["path"] != "a"

    @foreign_tool(
        needs_approval=risky, is_enabled=lambda context, agent: context.context != "nobody"
    )
    def delete(path: str) -> str:
        return f"deleted {path}"

    tool = from_openai_agents(delete)
    given = [("Ann", "b", "ok"), ("guest", "a", "ok"), ("guest", "b", "denied")]
    for user, path, status in given:
        outcome = await tool.call(ToolContext(user), f'{{"path": "{path}"}}')
        assert outcome.status == status
    assert await tool.is_enabled(RunContextWrapper("Ann"), None) is True  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues]
    assert await tool.is_enabled(RunContextWrapper("nobody"), None) is False  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues]


def test_tools_with_guardrails_of_the_agents_sdk_are_refused() -> None:
    """Without the guardrail of its author, the tool would be less safe."""
    from agents import ToolGuardrailFunctionOutput, function_tool as foreign_tool
    from agents.tool_guardrails import tool_input_guardrail

    from agents_tools.export import from_openai_agents

    @tool_input_guardrail
    def check(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.allow()

    @foreign_tool(tool_input_guardrails=[check])
    def delete(path: str) -> str:
        return path

    with pytest.raises(
        UserError,
        match=r"'delete' cannot be converted: it has guardrails.*policies\.input_guardrail",
    ):
        from_openai_agents(delete)


async def test_results_of_pydantic_ai_tools_are_converted() -> None:
    """Content for the model becomes output, data for the application becomes metadata."""
    from pydantic_ai import AudioUrl, BinaryContent, DocumentUrl, ImageUrl, Tool, ToolReturn

    from agents_tools.export import from_pydantic_ai

    def answer(kind: str) -> Any:
        picture = BinaryContent(data=PIXEL, media_type="image/png")
        return {
            "one": picture,
            "several": ["see", ImageUrl(url=URL), AudioUrl(url=URL), DocumentUrl(url=URL)],
            "more": ToolReturn(
                return_value="seen", content=["look", picture], metadata={"source": "here"}
            ),
            "metadata": ToolReturn(return_value={"a": 1}, metadata={"source": "here"}),
            "json": {"a": 1},
        }[kind]

    tool = from_pydantic_ai(Tool(answer))
    assert await _output(tool, '{"kind": "one"}') == [ToolOutputImage(data=PIXEL)]
    assert await _output(tool, '{"kind": "several"}') == [
        ToolOutputText("see"),
        ToolOutputImage(url=URL),
        ToolOutputAudio(url=URL),
        ToolOutputFileContent(url=URL),
    ]
    assert await _output(tool, '{"kind": "json"}') == '{"a":1}'
    outcome = await tool.call(None, '{"kind": "more"}')
    assert isinstance(outcome.value, ToolResult)
    assert outcome.metadata == {"source": "here"}
    assert outcome.output == [
        ToolOutputText("seen"),
        ToolOutputText("look"),
        ToolOutputImage(data=PIXEL),
    ]
    assert (await tool.call(None, '{"kind": "metadata"}')).output == '{"a":1}'


async def test_a_pydantic_ai_tool_removed_by_prepare_is_not_offered() -> None:
    """`prepare` decides by the dependencies, and its decision must hold here as well."""
    from pydantic_ai import Tool

    from agents_tools.export import from_pydantic_ai

    async def prepare(ctx: Any, definition: Any) -> Any:
        return definition if ctx.deps == "admin" else None

    def erase() -> str:
        """Erase."""
        return "erased"

    tool = from_pydantic_ai(Tool(erase, prepare=prepare))
    assert await tool.is_enabled(RunContextWrapper("admin"), None) is True  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues]
    assert await tool.is_enabled(RunContextWrapper("guest"), None) is False  # pyright: ignore[reportCallIssue, reportGeneralTypeIssues]


async def test_limits_of_pydantic_ai_tools_apply_here() -> None:
    """Time limits, approvals, validators and retry messages keep their meaning."""
    from pydantic_ai import ApprovalRequired, ModelRetry, Tool

    from agents_tools.export import from_pydantic_ai

    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    def checked(path: str) -> str:
        return path

    async def check(context: RunContext[Any], path: str) -> None:
        if path == "b":
            raise ModelRetry("Take another path.")

    def asks(context: RunContext[Any]) -> str:
        raise ApprovalRequired

    late = await from_pydantic_ai(Tool(slow, timeout=0.02)).call(None, "{}")
    assert late.status == "timeout"
    denied = await from_pydantic_ai(Tool(checked, requires_approval=True)).call(
        None, '{"path": "a"}'
    )
    assert denied.status == "denied"
    tool = from_pydantic_ai(Tool(checked, args_validator=check))
    assert await _output(tool, '{"path": "a"}') == "a"
    assert await _output(tool, '{"path": "b"}') == "Take another path."
    assert "raised ApprovalRequired during its call" in await _output(from_pydantic_ai(Tool(asks)))
