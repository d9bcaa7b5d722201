"""Traces that continue where a call runs: in this process, and in a worker process."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agents_tools import Agent, Runner
from agents_tools.execution import LocalBackend, ProcessBackend, run_on
from agents_tools.telemetry import instrument
from agents_tools.testing import ScriptedModel, tool_call
from tests.traced_tools import headers_here, headers_in_a_thread

if TYPE_CHECKING:
    from agents_tools.execution import ToolBackend

KINDS = [
    "local",
    pytest.param(
        "processes",
        marks=pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX worker processes"),
    ),
]


def backend_of(kind: str) -> ToolBackend:
    if kind == "local":
        return LocalBackend([headers_here, headers_in_a_thread])
    return ProcessBackend("tests.traced_worker", workers=1)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_continues_the_trace_of_its_caller(kind: str) -> None:
    """The worker sees the trace of the call's span, and none after the call."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with AsyncExitStack() as stack:
        backend = backend_of(kind)
        stack.push_async_callback(backend.aclose)
        tools = [run_on(backend)(tool) for tool in (headers_here, headers_in_a_thread)]
        trace_id = ""
        with instrument(tracer_provider=provider):
            for tool in tools:
                trace_id = traced_below(await _called(tool, provider), exporter, tool.name)
        assert trace_id not in str(await tools[0].invoke())


async def test_calls_of_a_run_are_children_of_its_span() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tool = run_on(LocalBackend([headers_here]))(headers_here)
    agent = Agent("a", tools=[tool], model=ScriptedModel([tool_call("headers_here"), "done"]))
    with instrument(tracer_provider=provider):
        result = await Runner.run(agent, "go")
    run = next(one for one in exporter.get_finished_spans() if one.name == "invoke_agent a")
    assert run.context is not None
    assert f"{run.context.trace_id:032x}" in str(result.new_items)


async def _called(tool: Any, provider: TracerProvider) -> dict[str, str]:
    with provider.get_tracer("test").start_as_current_span("around"):
        return await tool.invoke()


def traced_below(headers: dict[str, str], exporter: InMemorySpanExporter, name: str) -> str:
    """Look whether the trace is that of the caller, and give its id."""
    around = [one for one in exporter.get_finished_spans() if one.name == "around"][-1]
    assert around.context is not None
    _, trace_id, span_id, _ = headers["traceparent"].split("-")
    assert trace_id == f"{around.context.trace_id:032x}"
    assert span_id != f"{around.context.span_id:016x}"
    assert any(one.name == f"execute_tool {name}" for one in exporter.get_finished_spans())
    return trace_id
