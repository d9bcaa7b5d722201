"""Traces and metrics, as collected by the SDK of OpenTelemetry."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agents_tools import (
    Agent,
    NotifyStreamEvent,
    RunConfig,
    Runner,
    ToolError,
    UserError,
    function_tool,
    listen,
    register_secret,
    streaming_tool,
)
from agents_tools.agents import ModelPrice
from agents_tools.agents.config import hooks_of_all_runs
from agents_tools.content import Usage
from agents_tools.errors import ModelError
from agents_tools.events.listener import current_listeners
from agents_tools.events.trace_hooks import continue_trace, trace_carrier
from agents_tools.models.fallback import FallbackModel
from agents_tools.policies import retry, timeout
from agents_tools.telemetry import instrument
from agents_tools.testing import ScriptedModel, tool_call

if TYPE_CHECKING:
    from collections.abc import Generator

    from opentelemetry.sdk.trace import ReadableSpan


class Collected:
    """What was exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meter_provider = MeterProvider([self.reader])

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def tree(self) -> list[str]:
        """Return the names of the spans with their parents, sorted."""
        by_id = {span.context.span_id: span for span in self.spans if span.context}

        def way(span: ReadableSpan) -> str:
            above = by_id.get(span.parent.span_id) if span.parent else None
            return span.name if above is None else f"{way(above)} > {span.name}"

        return sorted(way(span) for span in self.spans)

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@contextmanager
def collecting(**options: Any) -> Generator[Collected]:
    collected = Collected()
    with instrument(
        tracer_provider=collected.tracer_provider,
        meter_provider=collected.meter_provider,
        **options,
    ):
        yield collected
    assert current_listeners() == ()
    assert hooks_of_all_runs() == ()


@function_tool
async def add(a: int, b: int) -> int:
    """Add."""
    await asyncio.sleep(0)
    return a + b


@function_tool
def fail() -> str:
    raise ValueError("api_key=sk-live-0123456789abcdef")


async def test_spans_of_runs_models_and_calls_are_nested() -> None:
    """This includes agents as tools and concurrent calls."""
    inner = Agent("inner", tools=[add], model=ScriptedModel([tool_call("add", a=1, b=2), "3"]))
    outer = Agent(
        "outer",
        tools=[inner.as_tool("ask"), add, fail],
        model=ScriptedModel(
            [[tool_call("ask", input="?"), tool_call("add", a=1, b=1), tool_call("fail")], "done"]
        ),
    )
    with collecting() as collected:
        await Runner.run(outer, "go")
    run = "invoke_agent outer"
    assert collected.tree() == [
        run,
        f"{run} > chat scripted",
        f"{run} > chat scripted",
        f"{run} > execute_tool add",
        f"{run} > execute_tool ask",
        f"{run} > execute_tool ask > invoke_agent inner",
        f"{run} > execute_tool ask > invoke_agent inner > chat scripted",
        f"{run} > execute_tool ask > invoke_agent inner > chat scripted",
        f"{run} > execute_tool ask > invoke_agent inner > execute_tool add",
        f"{run} > execute_tool fail",
    ]


async def test_a_call_has_the_attributes_of_the_conventions() -> None:
    agent = Agent("a", tools=[add], model=ScriptedModel([tool_call("add", a=1, b=2), "3"]))
    with collecting(capture_content=True) as collected:
        result = await Runner.run(agent, "go")
    span = collected.named("execute_tool add")
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.type": "function",
        "agents_tools.run.id": result.run_id,
        "gen_ai.tool.call.arguments": '{"a":1,"b":2}',
        "agents_tools.call.status": "ok",
        "gen_ai.tool.call.result": "3",
    }


@pytest.mark.requirement("S20")
async def test_content_is_only_captured_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, results and error messages can be confidential."""
    with collecting() as collected:
        await add.invoke(a=1, b=2)
        await fail.on_invoke_tool(None, "{}")
    names = {key for span in collected.spans for key in span.attributes or {}}
    assert not {name for name in names if "arguments" in name or "result" in name}
    assert collected.named("execute_tool fail").status.description is None
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "TRUE")
    with collecting() as collected:
        await add.invoke(a=1, b=2)
    assert "gen_ai.tool.call.arguments" in (collected.named("execute_tool add").attributes or {})


@pytest.mark.requirement("S20")
async def test_secrets_are_masked_in_what_is_captured() -> None:
    """A canary in arguments, result and message reaches no span."""
    register_secret("canary-1234567890")

    @function_tool
    def echo(text: str) -> str:
        if text.endswith("!"):
            raise ToolError(f"no {text}")
        return text

    with collecting(capture_content=True) as collected:
        await echo.on_invoke_tool(None, '{"text": "canary-1234567890"}')
        await echo.on_invoke_tool(None, '{"text": "canary-1234567890!"}')
        await fail.on_invoke_tool(None, "{}")
    captured = repr([(span.attributes, span.status.description) for span in collected.spans])
    assert "canary-1234567890" not in captured
    assert "sk-live-0123456789abcdef" not in captured
    assert "***" in captured


async def test_failed_spans_have_the_error_type() -> None:
    @timeout(0.01)
    @function_tool
    async def slow() -> str:
        await asyncio.Event().wait()
        return ""

    with collecting() as collected:
        await fail.on_invoke_tool(None, "{}")
        await add.on_invoke_tool(None, '{"a": "x"}')
        await slow.on_invoke_tool(None, "{}")
    captured = {
        span.name: (span.status.status_code.name, (span.attributes or {}).get("error.type"))
        for span in collected.spans
    }
    assert captured == {
        "execute_tool fail": ("ERROR", "ValueError"),
        "execute_tool add": ("ERROR", "invalid_args"),
        "execute_tool slow": ("ERROR", "timeout"),
    }


async def test_a_run_that_fails_leaves_no_span_open() -> None:
    """The request that failed shows it too: dashboards count the errors of a model by its spans."""
    agent = Agent("a", model=ScriptedModel([ModelError("no model", retryable=False)]))
    with collecting() as collected:
        with pytest.raises(ModelError):
            await Runner.run(agent, "go")
        assert not trace.get_current_span().get_span_context().is_valid
        points = collected.points("gen_ai.client.operation.duration")
    for span in collected.spans:
        assert span.status.status_code.name == "ERROR"
        assert (span.attributes or {})["error.type"] == "ModelError"
    failed = {
        one.attributes["gen_ai.operation.name"]: one.attributes["error.type"] for one in points
    }
    assert failed == {"chat": "ModelError", "invoke_agent": "ModelError"}
    assert collected.tree() == ["invoke_agent a", "invoke_agent a > chat scripted"]


async def test_attempts_are_events_of_the_span() -> None:
    attempts = iter([ValueError("once"), None])

    @retry(2, backoff=0.0)
    @function_tool
    def flaky() -> str:
        if error := next(attempts):
            raise error
        return "ok"

    with collecting() as collected:
        await flaky.invoke()
    (event,) = collected.named("execute_tool flaky").events
    assert event.name == "agents_tools.attempt_failed"
    assert dict(event.attributes or {}) == {"agents_tools.attempt": 1, "error.type": "ValueError"}


async def test_spans_of_a_tool_are_children_of_its_call() -> None:
    """In async, sync and streaming tools, the call's span is the current one."""
    with collecting() as collected:
        tracer = trace.get_tracer("mine", tracer_provider=collected.tracer_provider)

        @function_tool
        def in_thread() -> None:
            tracer.start_span("inside").end()

        @function_tool
        async def on_loop() -> None:
            tracer.start_span("inside").end()

        @streaming_tool
        async def streams():
            yield NotifyStreamEvent("x")
            tracer.start_span("inside").end()
            yield "done"

        for tool in (in_thread, on_loop, streams):
            await tool.invoke()
    assert collected.tree() == [
        name
        for tool in ("in_thread", "on_loop", "streams")
        for name in (f"execute_tool {tool}", f"execute_tool {tool} > inside")
    ]


async def test_concurrent_calls_have_separate_spans() -> None:
    """Equal call ids in concurrent runs must not be confused."""

    def agent(number: int) -> Agent:
        script = [[tool_call("add", a=1, b=2), tool_call("fail")], "done"]
        return Agent(f"a{number}", tools=[add, fail], model=ScriptedModel(script))

    with collecting() as collected:
        await asyncio.gather(*(Runner.run(agent(number), "go") for number in range(20)))
    expected = [
        f"invoke_agent a{number}{inside}"
        for number in range(20)
        for inside in (
            "",
            " > chat scripted",
            " > chat scripted",
            " > execute_tool add",
            " > execute_tool fail",
        )
    ]
    assert collected.tree() == sorted(expected)


async def test_a_cancelled_run_ends_its_spans() -> None:
    began = asyncio.Event()

    @function_tool
    async def wait() -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent("a", tools=[wait], model=ScriptedModel([tool_call("wait")]))
    with collecting() as collected:
        task = asyncio.create_task(Runner.run(agent, "go"))
        await asyncio.wait_for(began.wait(), 10)
        task.cancel()
        await asyncio.wait([task])
    call = collected.named("execute_tool wait")
    assert (call.attributes or {})["agents_tools.call.status"] == "cancelled"
    assert call.status.status_code.name == "UNSET"
    assert (collected.named("invoke_agent a").attributes or {})["agents_tools.run.status"] == (
        "cancelled"
    )


async def test_calls_that_start_during_streaming_belong_to_the_run() -> None:
    from agents_tools import ToolAnnotations

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def look() -> str:
        return "seen"

    agent = Agent("a", tools=[look], model=ScriptedModel([tool_call("look"), "done"]))
    with collecting() as collected:
        await Runner.run(agent, "go", run_config=RunConfig(start_calls_early=True))
    assert "invoke_agent a > execute_tool look" in collected.tree()


async def test_durations_tokens_and_costs_are_recorded() -> None:
    usage = Usage(
        requests=1,
        input_tokens=7,
        output_tokens=5,
        cached_input_tokens=2,
        cache_write_tokens=3,
    )
    agent = Agent("a", tools=[add], model=ScriptedModel(["hello"], usage=usage))
    config = RunConfig(prices={"scripted": ModelPrice(input=100_000, output=200_000)})
    with collecting() as collected:
        await Runner.run(agent, "go", run_config=config)
        await add.invoke(a=1, b=1)
        await fail.on_invoke_tool(None, "{}")
        tokens = {
            point.attributes["gen_ai.token.type"]: point.sum
            for point in collected.points("gen_ai.client.token.usage")
        }
        (cost,) = collected.points("agents_tools.usage.cost")
    assert tokens == {"input": 7, "output": 5}
    assert cost.value == pytest.approx(1.7)
    chat = collected.named("chat scripted").attributes or {}
    assert chat["gen_ai.usage.input_tokens"] == 7
    assert chat["gen_ai.usage.cache_read.input_tokens"] == 2
    assert chat["gen_ai.usage.cache_creation.input_tokens"] == 3
    assert chat["agents_tools.usage.cost"] == cost.value
    assert chat["gen_ai.response.finish_reasons"] == ("stop",)
    assert "gen_ai.response.time_to_first_chunk" in chat
    whole = collected.named("invoke_agent a").attributes or {}
    assert whole["agents_tools.usage.cost"] == cost.value


async def test_the_span_of_a_request_names_the_model_that_answered() -> None:
    """Dashboards of costs and errors group by the model and the provider."""

    class Other(ScriptedModel):
        provider = "openai_chat"

    first = ScriptedModel([ModelError("busy", status=529)], name="first")
    second = Other(["hello"], name="second", usage=Usage(requests=1, input_tokens=7))
    agent = Agent("a", model=FallbackModel(first, second))
    with collecting() as collected:
        await Runner.run(agent, "go")
        (tokens,) = collected.points("gen_ai.client.token.usage")
    chat = collected.named("chat second")
    expected = {
        "gen_ai.request.model": "second",
        "gen_ai.response.model": "second",
        "gen_ai.provider.name": "openai",
    }
    assert {name: (chat.attributes or {})[name] for name in expected} == expected
    assert {name: tokens.attributes[name] for name in expected} == expected
    assert [event.name for event in chat.events] == ["agents_tools.retry"]


async def test_operations_have_a_duration_each() -> None:
    with collecting() as collected:
        await add.invoke(a=1, b=1)
        await fail.on_invoke_tool(None, "{}")
        points = collected.points("gen_ai.client.operation.duration")
    captured = {
        (point.attributes["gen_ai.tool.name"], point.attributes.get("error.type")): point.count
        for point in points
    }
    assert captured == {("add", None): 1, ("fail", "ValueError"): 1}


async def test_a_trace_continues_from_its_carrier() -> None:
    """The carrier for another process has the W3C format."""
    with collecting() as collected:
        tracer = trace.get_tracer("mine", tracer_provider=collected.tracer_provider)
        with tracer.start_as_current_span("here"):
            carrier = trace_carrier()
        assert set(carrier) == {"traceparent"}
        with continue_trace(carrier):
            await add.invoke(a=1, b=1)
        assert not trace.get_current_span().get_span_context().is_valid
    assert collected.tree() == ["here", "here > execute_tool add"]
    assert trace_carrier() == {}


async def test_only_one_instrumentation_is_active_at_a_time() -> None:
    with collecting(), pytest.raises(UserError, match="instrumented already"):
        instrument()
    with collecting() as collected:
        collected.exporter.clear()
    await add.invoke(a=1, b=1)
    assert collected.spans == []


async def test_subscribers_receive_the_same_events_while_tracing() -> None:
    """Tracing does not consume events."""
    with collecting():
        async with listen() as events:
            await add.invoke(a=1, b=1)
    assert [event.type for event in events.events] == [
        "tool_stream_start_event",
        "tool_stream_end_event",
    ]
