"""Test our tools in the installed frameworks, and the features that only one framework has."""

from __future__ import annotations

import asyncio
import contextlib
import json
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from agents_tools import (
    RunContextWrapper,
    ToolContext,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
    UserError,
    function_tool,
    listen,
    policies,
)
from agents_tools.testing import check_events
from tests.frameworks.functions import PIXEL, to_url
from tests.frameworks.suite import Call, harness_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agents_tools import FunctionTool

ran: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    ran.clear()


@function_tool
def delete(path: str) -> str:
    """Delete a file.

    Args:
        path: Which.
    """
    ran.append(path)
    return f"deleted {path}"


guarded = policies.needs_approval()(delete)


# --- OpenAI Agents SDK


async def _openai_run(tool: FunctionTool[..., Any], context: Any = None) -> Any:
    from agents import Agent, RunConfig, Runner
    from agents.testing import ScriptedModel, assistant_message, function_call

    from agents_tools.export import to_openai_agents

    asked = [function_call("delete", {"path": "a"}, call_id="c1")]
    model = ScriptedModel([asked, [assistant_message("done")]])
    agent: Any = Agent(name="Agent", tools=[to_openai_agents(tool)], model=model)
    config = RunConfig(tracing_disabled=True)
    return agent, await Runner.run(agent, "go", run_config=config, context=context), config


@pytest.mark.parametrize("approved", [True, False])
async def test_approval_interrupts_a_run_of_the_agents_sdk(approved: bool) -> None:
    """The approval works as for tools of the SDK; the tool runs once, or not at all."""
    from agents import Runner

    agent, result, config = await _openai_run(guarded)
    assert [item.name for item in result.interruptions] == ["delete"]
    assert ran == []
    state = result.to_state()
    (state.approve if approved else state.reject)(result.interruptions[0])
    result = await Runner.run(agent, state, run_config=config)
    assert result.final_output == "done"
    assert ran == (["a"] if approved else [])


async def test_conditional_approval_asks_only_where_needed_in_the_agents_sdk() -> None:
    """Our predicate receives the arguments of the call."""
    tool = policies.needs_approval(lambda ctx, args: args["path"] != "a")(delete)
    _, result, _ = await _openai_run(tool)
    assert result.interruptions == []
    assert ran == ["a"]


async def test_is_enabled_receives_the_context_of_the_agents_sdk() -> None:
    """A tool that is disabled for the user is not offered."""
    from agents import Agent
    from agents.run_context import RunContextWrapper as ForeignContext

    from agents_tools.export import to_openai_agents

    async def is_enabled(context: RunContextWrapper[Any], agent: Any) -> bool:
        return context.context == "admin"

    tool = to_openai_agents(delete.with_(is_enabled=is_enabled))
    agent: Any = Agent(name="Agent", tools=[tool])
    assert await agent.get_all_tools(ForeignContext("admin")) == [tool]
    assert await agent.get_all_tools(ForeignContext("guest")) == []


async def test_a_strict_schema_restores_the_defaults_of_the_function() -> None:
    """The SDK requires every key; null stands for the default of the function."""
    from agents_tools.export import to_openai_agents

    @function_tool
    def greet(name: str, times: int = 2) -> str:
        """Greet somebody."""
        return "hi " * times + name

    tool = to_openai_agents(greet)
    assert tool.strict_json_schema
    assert tool.params_json_schema["required"] == ["name", "times"]
    context: Any = ToolContext(tool_call_id="c1")
    assert await tool.on_invoke_tool(context, '{"name": "Bo", "times": null}') == "hi hi Bo"
    loose = to_openai_agents(greet, strict=False)
    assert loose.params_json_schema["required"] == ["name"]


async def test_files_reach_models_of_the_agents_sdk() -> None:
    """Each kind of content block has a representation there."""
    from agents_tools.export import to_openai_agents

    @function_tool
    def report() -> list[Any]:
        """Report."""
        return [
            ToolOutputText("see"),
            ToolOutputImage(url="https://example.com/a.png", detail="low"),
            ToolOutputFileContent(data=b"x", mime_type="text/csv", filename="a.csv"),
        ]

    context: Any = ToolContext(tool_call_id="c1")
    blocks = await to_openai_agents(report).on_invoke_tool(context, "{}")
    assert [block.model_dump(exclude_none=True) for block in blocks] == [
        {"type": "text", "text": "see"},
        {"type": "image", "image_url": "https://example.com/a.png", "detail": "low"},
        {"type": "file", "file_data": "data:text/csv;base64,eA==", "filename": "a.csv"},
    ]


async def test_tools_of_the_agents_sdk_keep_their_timeout_and_approval() -> None:
    """The runner of the SDK would apply them; in our runner policies do."""
    from agents import function_tool as foreign_tool

    from agents_tools.export import from_openai_agents

    @foreign_tool(timeout=0.02)
    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    @foreign_tool(needs_approval=True)
    async def careful() -> str:
        return "never"

    late, denied = [await tool.call(None, "{}") for tool in from_openai_agents([slow, careful])]
    assert (late.status, denied.status) == ("timeout", "denied")


# --- Pydantic AI


def _scripted(*calls: Call) -> Any:
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    async def stream(messages: Any, info: Any) -> AsyncIterator[Any]:
        if len(messages) > 1:
            yield "done"
            return
        for index, call in enumerate(calls):
            yield {
                index: DeltaToolCall(name=call.name, json_args=call.arguments, tool_call_id=call.id)
            }

    return FunctionModel(stream_function=stream)


async def _events(agent: Any, *messages: Any, **more: Any) -> Any:
    async with agent.run_stream_events(*messages, **more) as events:
        return [event async for event in events]


@pytest.mark.parametrize("approved", [True, False])
async def test_approval_defers_a_call_of_pydantic_ai(approved: bool) -> None:
    """An agent with deferred calls gets one; the tool runs once, or not at all."""
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied

    from agents_tools.export import to_pydantic_ai

    model = _scripted(Call("c1", "delete", '{"path": "a"}'))
    tools = to_pydantic_ai([guarded], approvals=True)
    agent: Any = Agent(model, tools=tools, output_type=[str, DeferredToolRequests])
    result = (await _events(agent, "go"))[-1].result
    assert [call.tool_call_id for call in result.output.approvals] == ["c1"]
    assert ran == []
    decided = DeferredToolResults(approvals={"c1": True if approved else ToolDenied("no")})
    messages = result.all_messages()
    more = {"message_history": messages, "deferred_tool_results": decided}
    assert (await _events(agent, **more))[-1].result.output == "done"
    assert ran == (["a"] if approved else [])


async def test_approval_is_denied_where_pydantic_ai_cannot_wait() -> None:
    """An agent without deferred calls would fail, so the model gets the denial as the result."""
    report = await harness_of("pydantic_ai").run(
        harness_of("pydantic_ai").ours([guarded]), [Call("c1", "delete", '{"path": "a"}')]
    )
    assert report.error is None
    assert "needs the approval of a person" in report.answers["c1"].text
    assert ran == []


async def test_metadata_of_a_result_stays_with_the_application_of_pydantic_ai() -> None:
    """It is in the message but not in the text for the model."""
    from pydantic_ai import Agent

    from agents_tools.export import to_pydantic_ai

    @function_tool
    def look() -> ToolResult:
        """Look."""
        return ToolResult(content="seen", metadata={"source": "here"})

    agent: Any = Agent(_scripted(Call("c1", "look")), tools=to_pydantic_ai([look]))
    result = (await _events(agent, "go"))[-1].result
    part = result.all_messages()[-2].parts[0]
    assert (part.content, part.metadata) == ("seen", {"source": "here"})


async def test_leaving_an_agent_of_pydantic_ai_early_cancels_its_calls() -> None:
    """When the reader stops, the tool is cancelled and its cleanup has run."""
    from pydantic_ai import Agent

    from agents_tools.export import to_pydantic_ai
    from agents_tools.export.pydantic_ai import ToolEventPart
    from tests.frameworks import functions
    from tests.frameworks.tools import TOOLS

    functions.finished.clear()
    model = _scripted(Call("c1", "wait", '{"note": "rain"}'))
    agent: Any = Agent(model, tools=to_pydantic_ai([TOOLS["wait"]]))
    async with asyncio.timeout(10), agent.run_stream_events("go") as events:
        async for event in events:
            if isinstance(event, ToolEventPart):
                break
    assert functions.finished == ["wait"]


async def test_arguments_that_are_not_an_object_do_not_end_a_run_of_pydantic_ai() -> None:
    """A tool that Pydantic AI creates from a schema would be called with them and raise."""
    report = await harness_of("pydantic_ai").run(
        harness_of("pydantic_ai").ours([delete]), [Call("c1", "delete", "[1]")]
    )
    assert report.error is None
    assert ran == []


async def test_is_enabled_receives_the_dependencies_of_pydantic_ai() -> None:
    """A tool that is disabled for the user is not offered."""
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    from agents_tools.export import to_pydantic_ai

    async def is_enabled(context: RunContextWrapper[Any], agent: Any) -> bool:
        return context.context == "admin"

    tool = to_pydantic_ai(delete.with_(is_enabled=is_enabled))
    for user, offered in (("admin", ["delete"]), ("guest", [])):
        model = TestModel()
        await Agent(model, tools=[tool], deps_type=str).run("go", deps=user)
        parameters: Any = model.last_model_request_parameters
        assert [one.name for one in parameters.function_tools] == offered


# --- LangChain


def test_synchronous_langchain_code_calls_an_async_tool() -> None:
    """Many users write `agent.invoke(...)`."""
    from agents_tools.export import to_langchain

    @function_tool
    async def double(number: int) -> int:
        """Double a number."""
        await asyncio.sleep(0)
        return number * 2

    tool = to_langchain(double)
    assert tool.invoke({"number": 21}) == "42"
    call = {"type": "tool_call", "id": "c1", "name": "double", "args": {"number": "x"}}
    answer = tool.invoke(call)
    assert answer.status == "error"
    assert "number" in answer.text


def _graph(tool: FunctionTool[..., Any], **options: Any) -> Any:
    from langchain.agents import create_agent

    from agents_tools.export import to_langchain
    from tests.frameworks.harness.langchain import _Model

    model = _Model(calls=[Call("c1", "delete", '{"path": "a"}')])
    return create_agent(model, tools=[to_langchain(tool, approvals=True)], **options)


@pytest.mark.parametrize(("answer", "after"), [(True, ["a"]), ("no", [])])
async def test_approval_interrupts_a_graph(answer: Any, after: list[str]) -> None:
    """The approval works like any interrupt; the tool runs once, or not at all."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    graph = _graph(guarded, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    state = await graph.ainvoke({"messages": [{"role": "user", "content": "go"}]}, config)
    assert state["__interrupt__"][0].value == {
        "approve": "delete",
        "arguments": {"path": "a"},
        "tool_call_id": "c1",
    }
    assert ran == []
    state = await graph.ainvoke(Command(resume=answer), config)
    assert state["messages"][-1].text == "done"
    assert ran == after


async def test_parameters_can_have_names_reserved_by_langchain() -> None:
    """Tools also use the names `config`, `run_manager` and `runtime`."""
    from agents_tools.export import to_langchain

    @function_tool
    def deploy(config: str, run_manager: str, runtime: str, self: str) -> str:
        """Deploy."""
        return f"{config} {run_manager} {runtime} {self}"

    given = {"config": "a", "run_manager": "b", "runtime": "c", "self": "d"}
    assert await to_langchain(deploy).ainvoke(given) == "a b c d"


async def test_metadata_of_a_result_is_the_artifact_of_langchain() -> None:
    """It is in the message but not in the text for the model."""
    from agents_tools.export import to_langchain

    @function_tool
    def look() -> ToolResult:
        """Look."""
        return ToolResult(content="seen", metadata={"source": "here"})

    call = {"type": "tool_call", "id": "c1", "name": "look", "args": {}}
    answer = await to_langchain(look).ainvoke(call)
    assert isinstance(answer, ToolMessage)
    assert (answer.content, answer.artifact) == ("seen", {"source": "here"})


async def test_context_of_a_graph_reaches_the_tool() -> None:
    """The tool receives the context object that the application passed to the graph."""
    from langchain.agents import create_agent

    from agents_tools.export import to_langchain
    from tests.frameworks.harness.langchain import _Model

    @function_tool
    def who(ctx: ToolContext[Any]) -> str:
        """Say who."""
        return ctx.context["user"]

    model = _Model(calls=[Call("c1", "who")])
    made: Any = create_agent
    graph = made(model, tools=[to_langchain(who)], context_schema=dict)
    state = await graph.ainvoke({"messages": [("user", "go")]}, context={"user": "Ann"})
    assert state["messages"][-2].text == "Ann"


async def test_events_of_our_tool_inside_a_graph_tool_are_published_once() -> None:
    """A call has one start and one end, even if both the framework and the tool report it."""
    from langchain.agents import create_agent

    from agents_tools.export import to_langchain
    from agents_tools.export.langgraph import as_tool
    from tests.frameworks.harness.langchain import _Model
    from tests.frameworks.tools import TOOLS

    model = _Model(calls=[Call("c1", "crawl", '{"pages": 2}')])
    graph = create_agent(model, tools=[to_langchain(TOOLS["crawl"])], name="Scout")
    async with listen() as listener:
        outcome = await as_tool(graph, streaming=True).call(None, '{"input": "go"}')
    assert outcome.output == "done"
    events = list(listener)
    check_events(events)
    inside = [event.type for event in events if event.path[1:] == ("c1",)]
    assert inside == [
        "tool_stream_start_event",
        "tool_progress_event",
        "tool_progress_event",
        "tool_stream_end_event",
    ]


async def test_events_of_our_tool_inside_a_pydantic_ai_tool_are_published_once() -> None:
    """The framework can report the call before or after the tool does."""
    from pydantic_ai import Agent

    from agents_tools.export import to_pydantic_ai
    from agents_tools.export.pydantic_ai import as_tool
    from tests.frameworks.tools import TOOLS

    model = _scripted(Call("c1", "crawl", '{"pages": 2}'))
    agent = Agent(model, tools=to_pydantic_ai([TOOLS["crawl"]]), name="Scout")
    async with listen() as listener:
        await as_tool(agent, streaming=True).call(None, '{"input": "go"}')
    events = list(listener)
    check_events(events)
    assert [event.type for event in events].count("tool_progress_event") == 2
    assert [event.path for event in events if event.type == "tool_stream_start_event"] == [
        events[0].path,
        (*events[0].path, "c1"),
    ]


async def test_leaving_a_graph_early_cancels_its_calls() -> None:
    """When the reader stops, the tool is cancelled and its cleanup has run."""
    from langchain.agents import create_agent

    from agents_tools.export import to_langchain
    from tests.frameworks import functions
    from tests.frameworks.harness.langchain import _Model
    from tests.frameworks.tools import TOOLS

    functions.finished.clear()
    model = _Model(calls=[Call("c1", "wait", '{"note": "rain"}')])
    graph: Any = create_agent(model, tools=[to_langchain(TOOLS["wait"])])
    stream = graph.astream({"messages": [("user", "go")]}, stream_mode="custom")
    async with asyncio.timeout(10), contextlib.aclosing(stream):
        async for event in stream:
            assert event["type"] == "tool_stream_start_event"
            break
    assert functions.finished == ["wait"]


def test_a_synchronous_graph_streams_the_events_of_a_tool() -> None:
    """Another thread writes to the stream of `graph.stream(...)`."""
    from langchain.agents import create_agent

    from agents_tools.export import to_langchain
    from tests.frameworks.harness.langchain import _Model
    from tests.frameworks.tools import TOOLS

    model = _Model(calls=[Call("c1", "crawl", '{"pages": 2}')])
    graph: Any = create_agent(model, tools=[to_langchain(TOOLS["crawl"])])
    with listen() as listener:
        streamed = list(graph.stream({"messages": [("user", "go")]}, stream_mode="custom"))
    assert [event["type"] for event in streamed] == [event.type for event in listener]
    assert len(streamed) == 4


async def test_langchain_tools_can_return_images() -> None:
    """Content blocks of LangChain are converted to blocks of this library."""
    from langchain_core.tools import tool as foreign_tool

    from agents_tools.export import from_langchain

    @foreign_tool
    def draw() -> list[Any]:
        """Draw."""
        url = to_url(PIXEL)
        return [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": url}},
        ]

    outcome = await from_langchain(draw).call(None, "{}")
    assert outcome.output == [ToolOutputText("see"), ToolOutputImage(data=PIXEL)]


async def test_langchain_tools_with_a_runtime_parameter_receive_one() -> None:
    """Its stream writer publishes events, and its context is the object of the application."""
    from langchain_core.tools import tool as foreign_tool
    from langgraph.config import get_stream_writer
    from langgraph.prebuilt import ToolRuntime

    from agents_tools.export import from_langchain

    def watch(topic: str, runtime: Any) -> str:
        """Watch."""
        runtime.stream_writer({"from": "runtime"})
        runtime.emit_output_delta("delta")
        get_stream_writer()("writer")
        return f"{topic} {runtime.context} {runtime.tool_call_id}"

    watch.__annotations__["runtime"] = ToolRuntime[Any, Any]
    tool = from_langchain(foreign_tool(watch))
    assert list(tool.params_json_schema["properties"]) == ["topic"]
    received: list[Any] = []
    context = ToolContext("Ann", tool_call_id="c1", emit=received.append)
    assert (await tool.call(context, '{"topic": "owls"}')).output == "owls Ann c1"
    assert [event.data for event in received[1:-1]] == ['{"from":"runtime"}', "delta", "writer"]


def test_langchain_tools_that_need_a_graph_are_refused() -> None:
    """Nothing would fill the parameter, and every call would fail."""
    from langchain_core.tools import tool as foreign_tool
    from langgraph.prebuilt import InjectedState

    from agents_tools.export import from_langchain

    def look(state: Any) -> str:
        """Look."""
        return ""

    look.__annotations__["state"] = Annotated[dict[str, Any], InjectedState]
    with pytest.raises(
        UserError,
        match=r"LangChain tool 'look' cannot be converted: its parameter 'state'.*as_tool",
    ):
        from_langchain(foreign_tool(look))


async def test_a_hidden_argument_of_a_langchain_tool_keeps_its_default() -> None:
    """The application can pass it; the model cannot."""
    from langchain_core.tools import InjectedToolArg, tool as foreign_tool

    from agents_tools.export import from_langchain

    def look(at: int, user: Any = "Ann") -> str:
        """Look."""
        return f"{user} looks at {at}"

    look.__annotations__["user"] = Annotated[str, InjectedToolArg]
    tool = from_langchain(foreign_tool(look))
    assert (await tool.call(None, '{"at": 1}')).output == "Ann looks at 1"
    assert (await tool.call(None, '{"at": 1, "user": "Eve"}')).status == "invalid_args"


# --- the SDKs of Anthropic and OpenAI


def test_synchronous_clients_get_synchronous_tools() -> None:
    """A program without an event loop can use the same tools."""
    from agents_tools.export import to_anthropic_sdk, to_openai_sdk

    @function_tool
    async def double(number: int) -> int:
        """Double a number."""
        return number * 2

    assert to_anthropic_sdk(double, sync=True).call({"number": 21}) == "42"
    assert to_openai_sdk(double, sync=True).execute({"number": 21}) == "42"


async def test_a_failure_is_an_error_of_anthropics_runner() -> None:
    """The runner sends `is_error` with the full text."""
    from anthropic.lib.tools import ToolError

    from agents_tools.export import to_anthropic_sdk

    with pytest.raises(ToolError, match="path: missing") as caught:
        await to_anthropic_sdk(delete).call({})
    assert isinstance(caught.value.content, str)


async def test_options_of_a_provider_are_sent_by_its_runner() -> None:
    """`metadata` for a provider applies to its runner as well."""
    from agents_tools.export import to_anthropic_sdk, to_openai_agents, to_openai_sdk

    tool = delete.with_(
        metadata={
            "anthropic": {"cache_control": {"type": "ephemeral"}},
            "openai": {"defer_loading": True},
        }
    )
    runnable: Any = to_anthropic_sdk(tool)
    registered: Any = to_openai_sdk(tool)
    assert runnable.to_dict()["cache_control"] == {"type": "ephemeral"}
    assert registered.tool["defer_loading"] is True
    assert to_openai_agents(tool).defer_loading is True


async def test_tools_of_the_sdks_are_converted_to_ours() -> None:
    """Synchronous functions run in a thread; blocks and errors are converted."""
    from anthropic import beta_tool
    from anthropic.lib.tools import ToolError
    from openai.lib.responses_tool_runner import RegisteredFunction

    from agents_tools.export import from_anthropic_sdk, from_openai_sdk

    @beta_tool
    def draw(name: str) -> Any:
        """Draw.

        Args:
            name: What.
        """
        if name == "nothing":
            raise ToolError("no such picture")
        source = {"type": "base64", "media_type": "image/png", "data": "eA=="}
        return [{"type": "text", "text": name}, {"type": "image", "source": source}]

    picture = [ToolOutputText("owl"), ToolOutputImage(data=b"x", mime_type="image/png")]
    tool = from_anthropic_sdk(draw)
    assert tool.params_json_schema["properties"]["name"]["description"] == "What."
    assert (await tool.call(None, '{"name": "owl"}')).output == picture
    assert (await tool.call(None, '{"name": "nothing"}')).output == "no such picture"

    wire: Any = {"type": "function", "name": "draw", "parameters": None, "strict": False}
    url = "data:image/png;base64,eA=="
    parts: Any = [{"type": "input_text", "text": "owl"}, {"type": "input_image", "image_url": url}]
    registered = RegisteredFunction(wire, lambda arguments: parts)
    assert (await from_openai_sdk(registered).call(None, "{}")).output == picture


# --- schemas


@pytest.mark.parametrize("name", ["langchain", "pydantic_ai"])
def test_a_schema_is_passed_as_a_copy(name: str) -> None:
    """Some frameworks modify the schema they receive; this must not affect the tool."""
    from tests.frameworks.tools import TOOLS

    book = TOOLS["book"]
    before = json.dumps(book.params_json_schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = harness_of(name).ours([book])[0]
    exported = made.args_schema if name == "langchain" else made.function_schema.json_schema
    assert exported == book.params_json_schema
    exported["properties"].clear()
    assert json.dumps(book.params_json_schema) == before


async def test_langchain_messages_are_refused_as_tools() -> None:
    """The error names the accepted values."""
    from agents_tools.export import from_langchain, to_langchain

    with pytest.raises(
        UserError, match=r"from_langchain\(\) expects a .*BaseTool, got .*AIMessage"
    ):
        from_langchain(AIMessage("x"))  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(UserError, match=r"to_langchain\(\) expects a tool or several"):
        to_langchain(print)  # pyright: ignore[reportArgumentType, reportCallIssue]
