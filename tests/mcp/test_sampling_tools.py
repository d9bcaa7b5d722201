"""Sampling with tools (SEP-1577): the model of the client calls tools of a running tool."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import pytest

from agents_tools import (
    Agent,
    FunctionTool,
    RunConfig,
    Runner,
    ToolError,
    ToolOutputImage,
    ToolOutputText,
    UserError,
    function_tool,
    to_mcp,
)
from agents_tools.agents import ModelRequest, ModelResponse
from agents_tools.content import MessageInputItem, MessageOutputItem, ToolCallItem, Usage
from agents_tools.content.items import ToolCallOutputItem
from agents_tools.errors import BudgetExceeded
from agents_tools.mcp import MCPToolManager, mcp_server, sample
from agents_tools.testing import ScriptedModel, call_tool, tool_call
from tests.mcp.small import LINE, Small, listening, over_http, said

BOUND = 45.0
Tool = FunctionTool[..., Any]
NEEDS_TWO = pytest.mark.skipif(LINE < 2, reason="the client of version 2 of the SDK")
PNG = b"\x89PNG\r\n\x1a\n"


@function_tool
def price(thing: str) -> str:
    """Return the price of a thing."""
    if thing == "gold":
        raise ToolError("Gold is not for sale.")
    return f"3 coins for {thing}"


@function_tool
async def consult(question: str, choice: Any = None, rounds: int = 10) -> str:
    """Ask the model of the client, which can ask for prices."""
    answer = await sample(question, tools=[price], tool_choice=choice, max_rounds=rounds)
    assert answer.messages[-1]["role"] == "assistant"
    return f"{answer.text} ({answer.stop_reason}, {len(answer.messages)} messages)"


@function_tool
async def delegate() -> str:
    """Return the calls of the model instead of running them."""
    answer = await sample("Buy tea.", tools=[price, to_mcp(order)])
    return f"{answer.stop_reason}: {answer.content}"


@function_tool
def order(thing: str, grams: int = 1) -> str:
    """Order a thing."""
    raise NotImplementedError


@function_tool
async def converse(messages: list[dict[str, Any]], system: str | None = None) -> str:
    """Ask the model of the client."""
    return (await sample(messages, system=system, temperature=0.5, stop=["."])).text


@function_tool
def weigh(größe: int) -> str:
    """Return a weight."""
    return f"{größe} g"


@function_tool
async def measure() -> str:
    """Ask the model of the client, which can weigh."""
    return (await sample("How heavy?", tools=[weigh])).text


TOOLS: list[Tool] = [consult, converse, delegate, measure]


@contextlib.asynccontextmanager
async def served(era: str) -> AsyncGenerator[dict[str, Any]]:
    """Serve the tools, and yield the settings of a connection in one of the protocol eras."""
    app = mcp_server(TOOLS, stateless=False)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(app.aclose)
        if era == "legacy":
            address = await stack.enter_async_context(listening(app))
            yield {"url": f"{address}/mcp", "protocol": "legacy"}
        else:
            yield {"server": app._server.server}


@contextlib.asynccontextmanager
async def joined(era: str, **options: Any) -> AsyncGenerator[dict[str, Tool]]:
    """Yield the tools of a manager that is connected to the server."""
    async with (
        asyncio.timeout(BOUND),
        served(era) as connection,
        MCPToolManager(**options) as manager,
    ):
        await manager.add_server("shop", **connection)
        yield {str(tool.origin.wire_name): tool for tool in manager.get_tools()}


ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


@ERAS
async def test_the_model_of_the_client_calls_tools_of_a_running_tool(era: str) -> None:
    """The calls run on the server, and their results and errors reach the model."""
    model = ScriptedModel(
        [
            [
                "Let me see.",
                *(tool_call("price", thing=one, call_id=one) for one in ("tea", "gold")),
            ],
            tool_call("price", {"thing": 5}, call_id="wrong"),
            tool_call("steal", call_id="unknown"),
            "Three coins.",
        ],
        name="small",
    )
    async with joined(era, sample=model) as tools:
        outcome = (await call_tool(tools["consult"], {"question": "How much?"})).outcome
    assert outcome.output == "Three coins. (endTurn, 8 messages)"
    first, second, *_, last = model.requests
    (offered,) = first.tools
    assert isinstance(offered, FunctionTool)
    assert (offered.name, offered.description) == ("price", "Return the price of a thing.")
    assert list(offered.params_json_schema["properties"]) == ["thing"]
    assert first.input == [MessageInputItem(content="How much?")]
    assert (first.settings.max_tokens, first.settings.tool_choice) == (1_024, None)
    assert second.input[1:] == [
        MessageOutputItem(text="Let me see."),
        ToolCallItem(call_id="tea", name="price", arguments='{"thing": "tea"}'),
        ToolCallItem(call_id="gold", name="price", arguments='{"thing": "gold"}'),
        ToolCallOutputItem(call_id="tea", name="price", output="3 coins for tea"),
        ToolCallOutputItem(
            call_id="gold", name="price", output="Gold is not for sale.", status="tool_error"
        ),
    ]
    wrong, unknown = (item for item in last.input[6:] if isinstance(item, ToolCallOutputItem))
    assert "thing: expected a string, got 5" in str(wrong.output)
    assert unknown.output == "Unknown tool: 'steal'. Expected one of: price."
    assert (wrong.status, unknown.status) == ("tool_error", "tool_error")


@ERAS
async def test_the_rounds_of_calls_are_bounded(era: str) -> None:
    """A call is forced in the first request only, and none is allowed in the last one."""
    model = ScriptedModel([tool_call("price", thing="tea")] * 3)
    async with joined(era, sample=model) as tools:
        arguments = {"question": "How much?", "choice": "required", "rounds": 2}
        outcome = (await call_tool(tools["consult"], arguments)).outcome
    assert outcome.status == "tool_error"
    assert "still calls tools after 2 rounds of calls" in str(outcome.output)
    choices = [request.settings.tool_choice for request in model.requests]
    assert choices == ["required", None, "none"]


@ERAS
async def test_calls_of_definitions_are_returned(era: str) -> None:
    """No call of the answer runs, not even that of a function tool."""
    calls = [tool_call(name, thing="tea", call_id=name[0]) for name in ("price", "order")]
    async with joined(era, sample=ScriptedModel([calls])) as tools:
        text = str((await call_tool(tools["delegate"])).output)
    assert text.startswith("toolUse: ")
    for name, call_id in (("price", "p"), ("order", "o")):
        assert f"'name': '{name}'" in text
        assert f"'id': '{call_id}'" in text


@ERAS
async def test_a_client_without_sampling_tools_is_reported_by_the_name_of_the_capability(
    era: str,
) -> None:
    async with joined(era, sample=lambda *_: "text") as tools:
        text = str((await call_tool(tools["consult"], {"question": "How much?"})).output)
        assert (
            "The client did not ask its model, because it does not support sampling.tools." in text
        )
        assert (await call_tool(tools["converse"], {"messages": []})).output == "text"


@ERAS
async def test_a_function_answers_requests_with_tools_if_it_says_so(era: str) -> None:
    """It receives the tools, and returns calls in the form of the protocol, even a single one."""
    seen: list[Mapping[str, Any]] = []

    def answer(params: Mapping[str, Any], _context: Any) -> Any:
        seen.append(params)
        if len(seen) == 2:
            return "Three coins."
        call = {"type": "tool_use", "id": "c", "name": "price", "input": {"thing": "tea"}}
        return {"role": "assistant", "content": call, "model": "m", "stopReason": "toolUse"}

    async with joined(era, sample=answer, sample_tools=True) as tools:
        given = {"question": "How much?", "choice": "auto"}
        output = (await call_tool(tools["consult"], given)).output
    assert output == "Three coins. (endTurn, 4 messages)"
    first, second = seen
    assert [tool["name"] for tool in first["tools"]] == ["price"]
    assert "outputSchema" not in first["tools"][0]
    assert first["toolChoice"] == {"mode": "auto"}
    (result,) = second["messages"][-1]["content"]
    assert (result["type"], result["toolUseId"]) == ("tool_result", "c")
    assert result["content"] == [{"type": "text", "text": "3 coins for tea"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": [price], "tool_choice": "all"}, "expects 'auto', 'required' or 'none'"),
        ({"tool_choice": "auto"}, "tool_choice=...) expects tools=, got none"),
        ({"tools": [price], "max_rounds": 0}, "expects a positive integer, got 0"),
        ({"tools": [{"name": "x"}]}, "definitions with name and inputSchema"),
        ({"tools": [5]}, "expects function tools"),
        ({"tools": [price, to_mcp(price)]}, "two tools with the name 'price'"),
    ],
)
async def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        await sample("Hello", **options)
    assert message in str(caught.value)


# --- a model as the handler of the client


@ERAS
async def test_a_model_receives_each_kind_of_content(era: str) -> None:
    model = ScriptedModel(["Yes."])
    image = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "What\u200b?"}, image]},
        {"role": "assistant", "content": "A cup."},
        {"role": "user", "content": "Sure?"},
    ]
    async with joined(era, sample=model) as tools:
        given = {"messages": messages, "system": "Be brief."}
        assert (await call_tool(tools["converse"], given)).output == "Yes."
    (request,) = model.requests
    assert request.instructions == "Be brief."
    assert (request.settings.temperature, request.settings.stop) == (0.5, ["."])
    assert request.tools == ()
    assert request.input == [
        MessageInputItem(
            content=[
                ToolOutputText("What\\u200b?"),
                ToolOutputImage(data=PNG, mime_type="image/png"),
            ]
        ),
        MessageOutputItem(text="A cup."),
        MessageInputItem(content="Sure?"),
    ]


CUT = ModelResponse(
    items=[MessageOutputItem(text="Well"), tool_call("price", '{"thing": "t', call_id="c")],
    finish_reason="length",
)


@ERAS
@pytest.mark.parametrize(
    ("step", "text"),
    [
        (CUT, "Well (maxTokens, 2 messages)"),
        (MessageOutputItem(refusal="No."), "No. (endTurn, 2 messages)"),
        (tool_call("price", "[1]"), "the model has sent a call with invalid arguments"),
        (UserError("the key k-123 is wrong"), "the model did not answer (UserError)"),
    ],
    ids=["cut", "refusal", "arguments", "error"],
)
async def test_answers_that_are_not_usable_are_explained(era: str, step: Any, text: str) -> None:
    async with joined(era, sample=ScriptedModel([step])) as tools:
        output = (await call_tool(tools["consult"], {"question": "How much?"})).output
    assert text in str(output)
    assert "k-123" not in str(output)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            {
                "role": "assistant",
                "content": {"type": "audio", "data": "", "mimeType": "audio/wav"},
            },
            "a message of the assistant has 'audio' content",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "toolUseId": "x", "content": []}]},
            "tool results that belong to no call before it",
        ),
    ],
)
async def test_invalid_messages_are_refused(message: dict[str, Any], reason: str) -> None:
    async with joined("modern", sample=ScriptedModel()) as tools:
        outcome = (await call_tool(tools["converse"], {"messages": [message]})).outcome
    assert reason in str(outcome.output)


class RenamingModel(ScriptedModel):
    """A model whose provider allows only ASCII letters in the names of parameters."""

    provider = "anthropic"


async def test_arguments_are_converted_back_from_the_schema_of_the_provider() -> None:
    model = RenamingModel([tool_call("weigh", groe=5, call_id="c"), last])
    async with joined("modern", sample=model) as tools:
        assert (await call_tool(tools["measure"])).output == "5 g"


def agent_with(manager: MCPToolManager) -> Agent[Any, Any]:
    """Return an agent that consults the server."""
    script = [tool_call("shop_consult", question="How much?"), "Done."]
    return Agent("buyer", mcp_servers=[manager], model=ScriptedModel(script))


@ERAS
async def test_the_answers_of_the_model_count_in_the_run(era: str) -> None:
    """`RunConfig.sample` takes a model, too; its tokens are part of the budget of the run."""
    used = Usage(requests=1, input_tokens=50)
    model = ScriptedModel([tool_call("price", thing="tea"), "Three."] * 2, usage=used)
    async with (
        asyncio.timeout(BOUND),
        served(era) as connection,
        MCPToolManager(sample=True, sample_tools=True) as manager,
    ):
        await manager.add_server("shop", **connection)
        config = RunConfig(sample=model)
        result = await Runner.run(agent_with(manager), "Go.", run_config=config)
        assert (result.usage.requests, result.usage.total_tokens) == (4, 100)
        limited = RunConfig(sample=model, max_total_tokens=40)
        with pytest.raises(BudgetExceeded):
            await Runner.run(agent_with(manager), "Go.", run_config=limited)
    assert len(model.requests) == 3, "the second run could not ask the model a second time"


def test_a_model_is_given_by_its_name() -> None:
    """A wrong name fails at once, and so does a value that answers nothing."""
    assert MCPToolManager(sample="local/rules")._handlers.sample_tools is True
    for wrong in ("nowhere/1", 5):
        with pytest.raises(UserError, match=r"nowhere|expects a model, its name, a function"):
            MCPToolManager(sample=wrong)  # type: ignore[arg-type]
    assert RunConfig(sample="local/rules").sample == "local/rules"


async def test_a_run_loads_its_model_by_name() -> None:
    async with (
        asyncio.timeout(BOUND),
        served("modern") as connection,
        MCPToolManager(sample=True, sample_tools=True) as manager,
    ):
        await manager.add_server("shop", **connection)
        config = RunConfig(sample="local/rules")
        script = [
            tool_call("shop_consult", question="price of 'tea'"),
            last,
        ]
        agent = Agent("buyer", mcp_servers=[manager], model=ScriptedModel(script))
        result = await Runner.run(agent, "Go.", run_config=config)
    assert "3 coins for tea" in str(result.final_output)


def last(request: ModelRequest) -> str:
    item = request.input[-1]
    assert isinstance(item, ToolCallOutputItem)
    return str(item.output)


# --- clients and servers of the SDK


@NEEDS_TWO
@ERAS
async def test_a_client_of_the_sdk_answers_with_calls(era: str) -> None:
    """`sampling.tools` is declared by `sampling_capabilities`."""
    mcp: Any = importlib.import_module("mcp")
    types: Any = importlib.import_module("mcp.types")
    seen: list[Any] = []

    async def answer(_context: Any, params: Any) -> Any:
        seen.append(params)
        if params.messages[-1].role == "user" and len(seen) == 1:
            call = types.ToolUseContent(id="c", name="price", input={"thing": "tea"})
            return types.CreateMessageResultWithTools(
                role="assistant", content=[call], model="m", stop_reason="toolUse"
            )
        (result,) = params.messages[-1].content_as_list
        return types.CreateMessageResult(role="assistant", content=result.content[0], model="m")

    app = mcp_server(TOOLS, stateless=False)
    capabilities = types.SamplingCapability(tools=types.SamplingToolsCapability())
    async with asyncio.timeout(BOUND), listening(app) as address:
        for declared in (capabilities, None):
            client = mcp.Client(
                f"{address}/mcp",
                mode="legacy" if era == "legacy" else "auto",
                sampling_callback=answer,
                sampling_capabilities=declared,
            )
            async with client:
                assert (client.protocol_version >= "2026") == (era == "modern")
                call = client.call_tool("consult", {"question": "How much?"})
                if declared is not None:
                    assert (await call).content[0].text == "3 coins for tea (None, 4 messages)"
                elif era == "legacy":
                    assert "does not support sampling.tools" in (await call).content[0].text
                else:
                    with pytest.raises(mcp.MCPError, match=r"sampling\.tools") as caught:
                        await call
                    assert caught.value.error.data == {
                        "requiredCapabilities": {"sampling": {"tools": {}}}
                    }
    await app.aclose()
    assert [tool.name for tool in seen[0].tools] == ["price"]


class InferringServer(Small):
    """A server of the SDK whose tool `infer` offers a tool to the model of the client."""

    async def _infer(self, ctx: Any, answers: dict[str, Any], *, modern: bool) -> dict[str, Any]:
        types: Any = importlib.import_module("mcp.types")
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
        params: dict[str, Any] = {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Go."}}],
            "tools": [{"name": "add.one", "inputSchema": schema}],
            "toolChoice": {"mode": "required"},
            "maxTokens": 9,
        }
        if not modern:
            with warnings.catch_warnings():  # it is deprecated
                warnings.simplefilter("ignore")
                asked = ctx.session.create_message(
                    [types.SamplingMessage.model_validate(one) for one in params["messages"]],
                    max_tokens=9,
                    tools=[types.Tool.model_validate(one) for one in params["tools"]],
                    tool_choice=types.ToolChoice(mode="required"),
                )
            answer = (await asked).model_dump(by_alias=True, exclude_none=True)
        elif not answers:
            request = {"q": {"method": "sampling/createMessage", "params": params}}
            return {"resultType": "input_required", "inputRequests": request}
        else:
            answer = answers["q"]
        return said(f"{answer['stopReason']} {answer['content']}")


@ERAS
async def test_a_server_of_the_sdk_receives_the_calls_of_the_model(era: str) -> None:
    """Models get names that each provider accepts; the server gets its own."""
    if era == "modern" and LINE == 1:
        pytest.skip("version 1 of the SDK has one era")
    small = InferringServer(legacy=era == "legacy")
    model = ScriptedModel([tool_call("add_one", a=2, call_id="c")])
    async with (
        asyncio.timeout(BOUND),
        over_http(small) as url,
        MCPToolManager(sample=model) as manager,
    ):
        tools = await manager.add_server("box", url=url, protocol=era)
        (infer,) = (tool for tool in tools if tool.origin.wire_name == "infer")
        output = str((await call_tool(infer)).output)
    assert output.startswith("toolUse [{")
    assert "'id': 'c'" in output
    assert "'name': 'add.one'" in output
    assert "'input': {'a': 2}" in output
    assert model.requests[0].settings.tool_choice == "required"


@ERAS
async def test_a_client_refuses_tools_that_it_has_not_declared(era: str) -> None:
    """The specification requires an error; the SDK's server checks the capability itself."""
    if era == "modern" and LINE == 1:
        pytest.skip("version 1 of the SDK has one era")
    asked: list[Any] = []
    small = InferringServer(legacy=era == "legacy")
    handler: Callable[..., Any] = asked.append
    async with (
        asyncio.timeout(BOUND),
        over_http(small) as url,
        MCPToolManager(sample=lambda params, _: handler(params)) as manager,
    ):
        tools = await manager.add_server("box", url=url, protocol=era)
        (infer,) = (tool for tool in tools if tool.origin.wire_name == "infer")
        outcome = (await call_tool(infer)).outcome
    assert outcome.status == "tool_error"
    assert asked == []
