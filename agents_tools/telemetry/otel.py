"""OpenTelemetry spans and metrics of runs, model requests and calls (GenAI conventions)."""

from __future__ import annotations

import os
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, cast

from opentelemetry import context as contexts, metrics, propagate, trace
from opentelemetry.trace import SpanKind, StatusCode

from agents_tools._package import __version__
from agents_tools.agents.config import RunHooks, observe_runs
from agents_tools.content.json_value import to_json
from agents_tools.errors import UserError
from agents_tools.events.kinds import (
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunStartedEvent,
    ToolAttemptEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.events.listener import add_global_listener
from agents_tools.events.trace_hooks import TraceHooks, set_tracing
from agents_tools.telemetry._spans import OpenSpan, SpanTree
from agents_tools.text.escape import shorten, type_name
from agents_tools.text.output import release_text
from agents_tools.tool.call import current_call
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Self

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from agents_tools.agents.model import ModelResponse
    from agents_tools.content.items import Item
    from agents_tools.content.usage import Usage
    from agents_tools.events.base import Event
    from agents_tools.telemetry._spans import Kind
    from agents_tools.tool.call import RunScope
    from agents_tools.tool.run_context import RunContextWrapper

__all__ = ["Instrumentation", "instrument"]

_SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable of the conventions that enables arguments and results in spans."""
_MAX_CHARS = 8_192
"""The maximum number of characters of arguments, results and messages on a span."""
_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
_TOKENS = [4**power for power in range(14)]
"""The bucket boundaries of the conventions for durations and tokens."""
_NO_FAILURES = frozenset({"ok", "cancelled", "denied", "interrupted"})
_running: list[Instrumentation] = []


def instrument(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    capture_content: bool | None = None,
) -> Instrumentation:
    """Record spans and metrics of all runs and calls in this process from now on.

    Each run is a span `invoke_agent <agent>`, each model request a span `chat <model>`, and each
    tool call a span `execute_tool <tool>`, whether an agent, a server or another framework calls
    the tool. Spans are nested like the operations. A span is the current one while its code runs,
    so the spans of an HTTP client or a database are its children. Secrets are masked.

    Source: the OpenTelemetry semantic conventions for generative AI.

    Args:
        tracer_provider: The tracer provider; by default the global one.
        meter_provider: The meter provider; by default the global one.
        capture_content: Whether spans contain arguments, results and error messages. By
            default, whether `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `true`.

    Returns:
        The instrumentation. Stop it with `stop()`, or use it in a `with` block.

    Raises:
        UserError: The process is instrumented already.
    """
    if _running:
        raise UserError(
            "The process is instrumented already. Call `stop()` of that instrumentation first."
        )
    if capture_content is None:
        capture_content = os.environ.get(_CONTENT, "").strip().lower() == "true"
    return Instrumentation(
        trace.get_tracer("agents_tools", __version__, tracer_provider, _SCHEMA),
        metrics.get_meter("agents_tools", __version__, meter_provider, _SCHEMA),
        capture_content=capture_content,
    )


class Instrumentation(TraceHooks):
    """The instrumentation that `instrument` starts; `stop` ends it."""

    def __init__(self, tracer: Any, meter: Any, *, capture_content: bool) -> None:
        self._tracer = tracer
        self._content = capture_content
        self._spans = SpanTree()
        self._durations = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._costs = meter.create_counter(
            _COST, unit="{USD}", description="Cost of model requests with a known price."
        )
        self._first_chunks = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            unit="s",
            description="Time to the first chunk of a response.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._stops = [add_global_listener(self._record_event), observe_runs(_TelemetryHooks(self))]
        set_tracing(self)
        _running.append(self)

    def stop(self) -> None:
        """Stop recording. Open spans are never ended and never exported."""
        if self in _running:
            _running.remove(self)
            set_tracing(None)
            for stop in self._stops:
                stop()

    def __enter__(self) -> Self:
        """Return the instrumentation, which has started already."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop recording."""
        self.stop()

    # --- traces across processes

    def carrier(self) -> dict[str, str]:
        """Return the headers that identify the current span for other processes."""
        headers: dict[str, str] = {}
        propagate.inject(headers)
        return headers

    def entered(self, carrier: Mapping[str, str]) -> AbstractContextManager[Any]:
        """Return a context manager that continues the trace of a carrier."""
        return _EnteredSpan(carrier)

    # --- events

    def _record_event(self, event: Event) -> None:
        match event:
            case RawResponseStreamEvent():
                self._raw(event)
            case ToolStreamStartEvent():
                self._start_call_span(event)
            case ToolStreamEndEvent():
                self._end_call_span(event)
            case RunStartedEvent():
                self._start_run_span(event)
            case RunFinishedEvent():
                self._end_run_span(event)
            case ToolAttemptEvent():
                call = self._spans.find("call", event.path)
                if call is not None:
                    attributes = {
                        "agents_tools.attempt": event.attempt,
                        "error.type": event.error or "",
                    }
                    call.span.add_event("agents_tools.attempt_failed", attributes)
            case _:
                pass

    def _start_call_span(self, event: ToolStreamStartEvent) -> None:
        name = event.tool_name or ""
        record = current_call()
        own = record is not None and record.path == event.path
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        more: dict[str, Any] = {
            "gen_ai.tool.call.id": event.tool_call_id or "",
            "gen_ai.tool.type": "function",
        }
        if record is not None and own and record.run_id is not None:
            more["agents_tools.run.id"] = record.run_id
        if self._content:
            more["gen_ai.tool.call.arguments"] = _shown(event.input_args)
        self._start_span("call", event.path, f"execute_tool {name}", attributes, more, here=own)

    def _end_call_span(self, event: ToolStreamEndEvent) -> None:
        node = self._spans.find("call", event.path)
        if node is None:
            return
        record = current_call()
        outcome = None if record is None or record.path != event.path else record.outcome
        node.span.set_attribute("agents_tools.call.status", event.status)
        error: Exception | None = None if outcome is None else outcome.error
        kind = type_name(type(error)) if event.status == "tool_error" and error else event.status
        if self._content and outcome is not None and outcome.error is None:
            node.span.set_attribute("gen_ai.tool.call.result", _shown(outcome.output))
        message = (
            release_text(str(error), patterns=True) if self._content and error is not None else ""
        )
        self._end_span(node, None if event.status in _NO_FAILURES else kind, message)

    def _start_run_span(self, event: RunStartedEvent) -> None:
        name = event.agent or ""
        record = current_call()
        here = event.path == (() if record is None else record.path)
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        more = {"agents_tools.run.id": event.run_id or ""}
        self._start_span("run", event.path, f"invoke_agent {name}", attributes, more, here=here)

    def _end_run_span(self, event: RunFinishedEvent) -> None:
        node = self._spans.find("run", event.path)
        if node is None:
            return
        node.span.set_attribute("agents_tools.run.status", event.status)
        usage: Mapping[str, Any] = event.usage or {}
        for attribute, key in _USED.items():
            if usage.get(key):
                node.span.set_attribute(attribute, usage[key])
        kind, _, message = (event.error or event.status).partition(": ")
        fault = None if event.status in _NO_FAILURES else kind
        self._end_span(node, fault, release_text(message, patterns=True) if self._content else "")

    def _raw(self, event: RawResponseStreamEvent) -> None:
        node = self._spans.top
        if node is None or node.kind != "model" or node.path != event.path:
            return
        if event.data.get("type") == "agents_tools.retry":
            node.span.add_event("agents_tools.retry", {"attempt": event.data.get("attempt", 0)})
            node.first = None
            if "model" in event.data:  # another model answers from here on
                name, provider = str(event.data["model"]), event.data.get("provider")
                now = {"gen_ai.request.model": name, "gen_ai.provider.name": _system(provider)}
                node.attributes.update(now)
                node.span.set_attributes(now)
                node.span.update_name(f"chat {name}")
        elif node.first is None:
            node.first = perf_counter()
            node.span.set_attribute(_FIRST_CHUNK, node.first - node.started)

    def start_model_span(self, scope: RunScope, agent: Any) -> None:
        """Start the span of a model request."""
        model, provider = _model_of(scope, agent)
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider}
        if model:
            attributes["gen_ai.request.model"] = model
        more: dict[str, Any] = {"gen_ai.agent.name": agent.name}
        config: Any = scope.run.config
        settings = agent.model_settings
        if config.model_settings is not None:
            settings = (
                config.model_settings
                if settings is None
                else settings.merged(config.model_settings)
            )
        for attribute, key in _SETTINGS.items():
            value = getattr(settings, key, None)
            if value is not None:
                more[attribute] = value
        name = f"chat {model}" if model else "chat"
        self._start_span(
            "model", scope.path, name, attributes, more, here=True, span_kind=SpanKind.CLIENT
        )

    def end_model_span(self, scope: RunScope, response: ModelResponse) -> None:
        """End the span of a model request."""
        node = self._spans.find("model", scope.path)
        if node is None:
            return
        span, usage = node.span, response.usage
        if response.model:
            span.set_attribute("gen_ai.response.model", response.model)
            node.attributes["gen_ai.response.model"] = response.model
        if response.response_id:
            span.set_attribute("gen_ai.response.id", response.response_id)
        if response.finish_reason:
            span.set_attribute("gen_ai.response.finish_reasons", [response.finish_reason])
        for attribute, key in _USED.items():
            value = getattr(usage, key)
            if value:
                span.set_attribute(attribute, value)
        if node.first is not None:
            self._first_chunks.record(node.first - node.started, node.attributes)
        self._count(usage, node.attributes)
        self._end_span(node, None)

    def _count(self, usage: Usage, attributes: Mapping[str, Any]) -> None:
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens:
                self._tokens.record(tokens, {**attributes, "gen_ai.token.type": kind})
        if usage.cost:
            self._costs.add(usage.cost, attributes)

    # --- spans

    def _start_span(
        self,
        kind: Kind,
        path: tuple[str, ...],
        name: str,
        attributes: dict[str, Any],
        more: Mapping[str, Any],
        *,
        here: bool,
        span_kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        parent = self._spans.place(kind, path)
        around = None
        if parent is not None and (not here or parent is not self._spans.top):
            around = trace.set_span_in_context(parent.span)
        span = self._tracer.start_span(name, around, span_kind, attributes={**attributes, **more})
        token = contexts.attach(trace.set_span_in_context(span)) if here else None
        self._spans.add(OpenSpan(kind, path, span, token, parent, attributes=attributes), here=here)

    def _end_span(self, node: OpenSpan, fault: str | None, message: str = "") -> None:
        for inner in node.descendants():  # their end will not be reported any more
            inner.span.set_attribute("error.type", "lost")
            self._close(inner)
        if fault is not None:
            node.span.set_attribute("error.type", fault)
            node.span.set_status(StatusCode.ERROR, shorten(message, _MAX_CHARS) or None)
            node.attributes["error.type"] = fault
        self._durations.record(perf_counter() - node.started, node.attributes)
        self._close(node)

    def _close(self, node: OpenSpan) -> None:
        self._spans.remove(node)
        if node.token is not None and trace.get_current_span() is node.span:
            contexts.detach(node.token)
        node.span.end()


class _TelemetryHooks(RunHooks[Any]):
    def __init__(self, instrumentation: Instrumentation) -> None:
        self._instrumentation = instrumentation

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Any,
        system_prompt: str,
        input_items: Sequence[Item],
    ) -> None:
        """Start a span."""
        del system_prompt, input_items
        self._instrumentation.start_model_span(
            cast("RunScope", call_of(cast("Any", context))), agent
        )

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Any, response: ModelResponse
    ) -> None:
        """End the span."""
        del agent
        self._instrumentation.end_model_span(
            cast("RunScope", call_of(cast("Any", context))), response
        )


class _EnteredSpan:
    """A context manager that continues the trace of a carrier."""

    def __init__(self, carrier: Mapping[str, str]) -> None:
        self._carrier = dict(carrier)
        self._token: Any = None

    def __enter__(self) -> None:
        self._token = contexts.attach(propagate.extract(self._carrier))

    def __exit__(self, *exc_info: object) -> Literal[False]:
        contexts.detach(self._token)
        return False


_COST = "agents_tools.usage.cost"
"""In US dollars; the conventions have no attribute for it."""
_USED = {
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.usage.cache_read.input_tokens": "cached_input_tokens",
    "gen_ai.usage.cache_creation.input_tokens": "cache_write_tokens",
    "gen_ai.usage.reasoning.output_tokens": "reasoning_tokens",
    _COST: "cost",
}
_SETTINGS = {
    "gen_ai.request.temperature": "temperature",
    "gen_ai.request.max_tokens": "max_tokens",
    "gen_ai.request.top_p": "top_p",
}
_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"


def _model_of(scope: RunScope, agent: Any) -> tuple[str, str]:
    """Return the names of the model of a run and of its provider."""
    chosen: Any = scope.run.config.model or agent.model
    if isinstance(chosen, str):
        before, _, name = chosen.rpartition("/")
        return name or chosen, before.partition("/")[0] or "unknown"
    name = getattr(chosen, "model", None) or getattr(chosen, "name", None) or ""
    return str(name), _system(getattr(chosen, "provider", None) or type(chosen).__name__)


def _system(provider: object) -> str:
    """Return the name of the provider of a schema format, such as `openai_chat`."""
    return str(provider or "unknown").partition("_")[0]


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else _as_json(value)
    return release_text(text, limit=_MAX_CHARS, patterns=True)


def _as_json(value: object) -> str:
    try:
        return to_json(value)
    except UserError:
        return f"({type(value).__name__}, without a JSON form)"
