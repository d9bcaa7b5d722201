"""A tool for worker processes that are traced, as a program instruments itself when it starts."""

from __future__ import annotations

from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agents_tools import function_tool
from agents_tools.telemetry import instrument


def spans_here() -> dict[str, str]:
    """Return the trace context, as it would be sent to a service."""
    headers: dict[str, str] = {}
    propagate.inject(headers)
    return headers


@function_tool
async def headers_here() -> dict[str, str]:
    return spans_here()


@function_tool
def headers_in_a_thread() -> dict[str, str]:
    return spans_here()


def start() -> None:
    """Trace what this process does."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    trace.set_tracer_provider(provider)
    instrument(tracer_provider=provider)
