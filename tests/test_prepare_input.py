"""The hook `prepare_input`, and the ready-made ones that shorten a conversation."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from agents_tools import (
    Agent,
    MaxTurnsExceeded,
    RunConfig,
    Runner,
    ToolOutputImage,
    ToolOutputText,
    UserError,
    function_tool,
    policies,
)
from agents_tools.agents import InputContext, ModelSettings, RunState, compaction
from agents_tools.agents.compaction import (
    estimate_tokens,
    keep_recent,
    summarize,
    token_budget,
)
from agents_tools.content import (
    Item,
    MessageInputItem,
    MessageOutputItem,
    ReasoningItem,
    ToolCallItem,
    ToolCallOutputItem,
    Usage,
)
from agents_tools.errors import ModelError
from agents_tools.events import SummaryEvent
from agents_tools.persistence import MemoryRunStore, SQLiteRunStore
from agents_tools.testing import ScriptedModel, tool_call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agents_tools.persistence import RunStore

PAGE = "abc " * 750  # 3,000 characters: 1,000 tokens by the estimate


@function_tool
def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: {PAGE}"


def reader(*steps: Any, **options: Any) -> tuple[Agent[Any, Any], ScriptedModel]:
    """Return an agent that reads pages, and its model."""
    model = ScriptedModel(list(steps), usage=Usage(requests=1, input_tokens=100))
    return Agent("Reader", tools=[read], model=model, **options), model


def pages(first: int, last: int) -> list[Any]:
    """Return the steps of a model that reads these pages, one in a turn."""
    return [tool_call("read", page=page) for page in range(first, last + 1)]


def scribe(count: int = 99) -> ScriptedModel:
    """Return a model that writes summaries."""
    texts = [f"summary {number}" for number in range(1, count + 1)]
    return ScriptedModel(texts, usage=Usage(requests=1, input_tokens=10))


def texts_of(items: Sequence[Item]) -> list[str]:
    """Return short texts of items."""
    return [
        str(
            getattr(item, "content", None)
            or getattr(item, "output", None)
            or getattr(item, "arguments", None)
            or getattr(item, "text", "")
        )[:60]
        for item in items
    ]


def size_of(request: Any) -> int:
    """Return the estimated tokens of the texts of a request."""
    return sum(estimate_tokens(json.dumps(item.to_dict())) for item in request.input)


async def summaries_in(store: RunStore, run_id: str) -> list[SummaryEvent]:
    """Return the summaries in the log of a run."""
    events = await store.log(run_id).read_all()
    return [event for event in events if isinstance(event, SummaryEvent)]


# --- the hook


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_hook_decides_what_the_model_reads_and_nothing_else(is_async: bool) -> None:
    """The result, the log and the session keep what the model does not read."""

    def last_only(items: list[Item], context: InputContext[Any]) -> list[Item]:
        kept = items[-1:]
        items.clear()  # a copy, so this has no effect
        return kept

    async def later(items: list[Item], context: InputContext[Any]) -> list[Item]:
        await asyncio.sleep(0)
        return last_only(items, context)

    agent, model = reader("Hello.", "Yes.")
    store = MemoryRunStore()
    config = RunConfig(prepare_input=later if is_async else last_only, store=store)
    await Runner.run(agent, "I am Bo.", session="chat", run_config=config)
    result = await Runner.run(agent, "Who am I?", session="chat", run_config=config)
    assert [texts_of(one.input) for one in model.requests] == [["I am Bo."], ["Who am I?"]]
    assert len(result.to_input_list()) == 4
    assert len(await store.session("chat").events()) == 4


async def test_a_hook_knows_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can depend on the agent, the model, the application's object and the cost so far."""
    seen: list[tuple[Any, ...]] = []

    def note(items: list[Item], context: InputContext[dict[str, int]]) -> list[Item]:
        seen.append((context.turn, len(items), context.usage.requests))
        assert context.agent is agent
        assert context.model is model
        assert context.instructions == "Read."
        assert [tool.name for tool in context.tools] == ["read"]
        assert context.run_context.context == {"user": 7}
        return items

    agent, model = reader(*pages(1, 1), "Done.", instructions="Read.")
    config = RunConfig(prepare_input=note)
    await Runner.run(agent, "Go.", context={"user": 7}, run_config=config)
    assert seen == [(1, 1, 0), (2, 3, 1)]


async def test_items_can_be_json() -> None:
    """A hook returns what the input of a run can be."""
    agent, model = reader("Hi.")
    config = RunConfig(prepare_input=lambda *_: cast("Any", [{"role": "user", "content": "Hey"}]))
    await Runner.run(agent, "Hello", run_config=config)
    assert texts_of(model.requests[0].input) == ["Hey"]


async def test_agents_that_run_as_tools_have_the_hook_too() -> None:
    """They inherit the configuration; the hook sees which agent it is."""
    names: list[str] = []

    def note(items: list[Item], context: InputContext[Any]) -> list[Item]:
        names.append(context.agent.name)
        return items

    inner, _ = reader("Inner.")
    outer = Agent(
        "Outer",
        tools=[inner.as_tool()],
        model=ScriptedModel([tool_call("reader", input="x"), "Outer."]),
    )
    await Runner.run(outer, "Go.", run_config=RunConfig(prepare_input=note))
    assert names == ["Outer", "Reader", "Outer"]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, r"prepare_input hook of agent 'Reader' returned a wrong value: expected a list"),
        ("text", r"expected a list of items, got a str"),
        ([3], r"prepare_input of agent 'Reader'\[0\]: expected an item"),
    ],
)
async def test_a_wrong_result_of_a_hook_names_the_hook(returned: Any, message: str) -> None:
    agent, _ = reader("Hi.")
    config = RunConfig(prepare_input=lambda *_: returned)
    with pytest.raises(UserError, match=message):
        await Runner.run(agent, "Hello", run_config=config)


async def test_an_exception_of_a_hook_keeps_its_type_and_gets_a_note() -> None:
    """The application can catch its own error, and the log says where it came from."""

    def fail(items: list[Item], context: InputContext[Any]) -> list[Item]:
        raise LookupError("no profile")

    agent, _ = reader("Hi.")
    store = MemoryRunStore()
    config = RunConfig(prepare_input=fail, store=store)
    with pytest.raises(LookupError) as caught:
        await Runner.run(agent, "Hello", run_config=config, run_id="r")
    note = "Raised by RunConfig(prepare_input=...) of agent 'Reader', before request 1."
    assert caught.value.__notes__ == [note]
    last = (await store.log("r").read_all())[-1]
    assert note in last.to_dict()["error"]


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (slice(0, -1), r"the call '.*' has no output in the returned items"),
        (slice(-1, None), r"the output '.*' has no call in the returned items"),
    ],
)
async def test_a_hook_that_separates_a_call_from_its_output_is_named(
    kept: slice, message: str
) -> None:
    """The error of the provider would name neither the hook nor the remedy."""
    agent, _ = reader(*pages(1, 1), "Done.")
    config = RunConfig(prepare_input=lambda items, _: items if len(items) < 3 else items[kept])
    with pytest.raises(UserError, match=message):
        await Runner.run(agent, "Go.", run_config=config)


def test_a_hook_has_to_be_a_function() -> None:
    with pytest.raises(UserError, match=r"RunConfig\(prepare_input=...\) is not callable"):
        RunConfig(prepare_input=cast("Any", 3))


async def test_a_hook_can_ask_a_model_and_its_tokens_count() -> None:
    """The request is repeated after a temporary error, like each request of a run."""
    helper = ScriptedModel(
        [ModelError("busy", retryable=True), "en"], usage=Usage(requests=1, input_tokens=5)
    )

    async def detect(items: list[Item], context: InputContext[Any]) -> list[Item]:
        response = await context.ask("Which language?", instructions="Short.", model=helper)
        return [*items, MessageInputItem(content=f"language: {texts_of(response.items)[0]}")]

    agent, model = reader("Hi.", model_settings=ModelSettings(tool_choice="read", timeout=9))
    config = RunConfig(prepare_input=detect, retry_backoff=0)
    result = await Runner.run(agent, "Hello", run_config=config)
    assert texts_of(model.requests[0].input) == ["Hello", "language: en"]
    assert helper.requests[1].instructions == "Short."
    assert helper.requests[1].settings == ModelSettings(timeout=9)
    assert (result.usage.requests, result.usage.input_tokens) == (2, 105)


# --- recent turns


async def test_recent_turns_are_kept_in_batches() -> None:
    """The beginning of the request changes rarely, so the provider reads it from its cache."""
    agent, model = reader(*pages(1, 8), "Done.")
    config = RunConfig(prepare_input=keep_recent(3))
    result = await Runner.run(agent, "Read all.", run_config=config, max_turns=None)
    turns = [
        sum(isinstance(item, ToolCallItem) for item in request.input) for request in model.requests
    ]
    assert turns == [0, 1, 2, 3, 4, 5, 3, 4, 5]
    assert texts_of(model.requests[6].input)[:3] == [
        "[The first 7 items of this conversation are left out to save",
        "Read all.",
        '{"page": 4}',
    ]
    assert len(result.new_items) == 17


async def test_system_messages_and_the_current_task_are_always_read() -> None:
    """A model that forgets them goes on with something else."""
    history: list[Any] = [
        {"role": "user", "content": "Hello."},
        {"role": "system", "content": "Speak French."},
        MessageOutputItem(text="Bonjour."),
        {"role": "user", "content": "Read all."},
    ]
    agent, model = reader(*pages(1, 4), "Done.")
    run = Runner.run_streamed(
        agent, history, run_config=RunConfig(prepare_input=keep_recent(1)), max_turns=None
    )
    async for event in run.stream_events():
        if event.type == "tool_stream_start_event" and len(model.requests) == 1:
            run.send("Be quick.")
    assert texts_of(model.requests[-1].input)[:4] == [
        "Speak French.",
        "[The first 11 items of this conversation are left out to sav",
        "Read all.",
        "Be quick.",
    ]


async def test_results_of_calls_in_the_background_are_not_the_task() -> None:
    """Otherwise each of them would be read until the end of the run."""
    result = '<background_result call_id="b">\nFound.\n</background_result>'
    history: list[Any] = [
        {"role": "user", "content": "Read all."},
        {"role": "user", "content": result, "call_id": "b"},
    ]
    agent, model = reader(*pages(1, 4), "Done.")
    config = RunConfig(prepare_input=keep_recent(1))
    await Runner.run(agent, history, run_config=config, max_turns=None)
    texts = texts_of(model.requests[-1].input)
    assert "Read all." in texts
    assert result not in texts


# --- a token budget


async def test_a_request_stays_within_the_budget() -> None:
    agent, model = reader(*pages(1, 20), "Done.")
    config = RunConfig(prepare_input=token_budget(4_000))
    result = await Runner.run(agent, "Read all.", run_config=config, max_turns=None)
    sizes = [size_of(request) for request in model.requests]
    assert max(sizes) <= 4_000
    assert len(result.new_items) == 41
    kept = [texts_of(request.input)[-1][:8] for request in model.requests[1:]]
    assert kept == [f"page {number}: "[:8] for number in range(1, 21)]  # the last result is read


async def test_a_result_larger_than_the_budget_is_shortened_with_a_note() -> None:
    """The next requests have the same text, which the cache of the provider has."""

    @function_tool
    def load() -> str:
        """Load a file."""
        return "begin " + "x" * 200_000 + " end"

    model = ScriptedModel([tool_call("load"), tool_call("read", page=1), "Done."])
    agent = Agent("Reader", tools=[load, read], model=model)
    result = await Runner.run(
        agent, "Load.", run_config=RunConfig(prepare_input=token_budget(8_000))
    )
    first, second = (
        next(item.output for item in request.input if isinstance(item, ToolCallOutputItem))
        for request in model.requests[1:]
    )
    assert isinstance(first, str)
    assert first.startswith("begin xxx")
    assert first.endswith("xxx end")
    assert "of 200,010 characters omitted" in first
    assert estimate_tokens(first) <= 4_000
    assert second == first
    output = next(item for item in result.new_items if isinstance(item, ToolCallOutputItem))
    assert len(output.output) == 200_010


async def test_the_results_of_parallel_calls_share_the_space() -> None:
    """None of them can be left out, because the model waits for all of them."""
    agent, model = reader([tool_call("read", page=page) for page in range(1, 9)], "Done.")
    await Runner.run(agent, "Go.", run_config=RunConfig(prepare_input=token_budget(4_000)))
    outputs = [item for item in model.requests[1].input if isinstance(item, ToolCallOutputItem)]
    assert [str(item.output)[:6] for item in outputs] == [f"page {page}" for page in range(1, 9)]
    assert size_of(model.requests[1]) <= 4_000


async def test_images_stay_when_the_texts_around_them_are_shortened() -> None:
    image = ToolOutputImage(data=b"\x89PNG", mime_type="image/png")
    history: list[Any] = [
        MessageInputItem(content=[ToolOutputText(PAGE * 40), image, ToolOutputText("What is it?")])
    ]
    agent, model = reader("A tree.")
    await Runner.run(agent, history, run_config=RunConfig(prepare_input=token_budget(9_000)))
    content = cast("Any", model.requests[0].input[0]).content
    assert image in content
    assert sum(len(block.text) for block in content if isinstance(block, ToolOutputText)) < 9_000


def large_base64(start: bytes) -> str:
    """Return the base64 text of a file that begins with these bytes."""
    return base64.b64encode(start.ljust(30_000, b"\0")).decode()


@pytest.mark.parametrize(
    "data",
    [
        {"type": "image_generation_call", "result": large_base64(b"\x89PNG\r\n\x1a\n")},
        {"type": "image_generation_call", "result": large_base64(b"\xff\xd8\xff\xe0")},
        {"outputs": [{"type": "image", "url": "data:image/png;base64," + large_base64(b"")}]},
        {"blocks": [{"source": {"type": "base64", "data": large_base64(b"%PDF-1.7")}}]},
    ],
    ids=["png", "jpeg", "url", "pdf"],
)
async def test_an_image_of_a_hosted_tool_counts_as_an_image(data: dict[str, Any]) -> None:
    """Its base64 text would fill the budget, and the turns before it would be left out."""
    history: list[Item] = [
        MessageInputItem(content="My name is Ada. Draw a tree."),
        ToolCallItem(call_id="1", name="draw", kind="hosted", provider_data={"openai": data}),
        MessageOutputItem(text="Here it is."),
        MessageInputItem(content="What is my name?"),
    ]
    agent, model = reader("Ada.")
    await Runner.run(agent, history, run_config=RunConfig(prepare_input=token_budget(6_000)))
    assert model.requests[0].input == history


async def test_tokens_can_be_counted_by_the_application() -> None:
    """A tokenizer is called once for a text that stays in the conversation."""
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text.split())

    agent, model = reader(*pages(1, 6), "Done.")
    hook = token_budget(10_000, count_tokens=count)
    await Runner.run(agent, "Go.", run_config=RunConfig(prepare_input=hook), max_turns=None)
    assert len([text for text in counted if text.startswith("page 1:")]) == 1
    assert len(model.requests[-1].input) == 13  # 750 words a page


async def test_a_count_that_is_not_a_number_is_refused() -> None:
    agent, _ = reader("Hi.")
    hook = token_budget(100, count_tokens=lambda _: cast("Any", "many"))
    with pytest.raises(UserError, match=r"count_tokens=...\) returned a wrong value: expected an"):
        await Runner.run(agent, "Go.", run_config=RunConfig(prepare_input=hook))


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: keep_recent(0), r"keep_recent\(turns=...\) is not valid: expected a positive"),
        (lambda: token_budget(cast("Any", 1.5)), r"token_budget\(tokens=...\) .* got 1.5"),
        (lambda: summarize(max_words=-1), r"summarize\(max_words=...\)"),
        (
            lambda: keep_recent(3, summary=cast("Any", "short")),
            r"keep_recent\(summary=...\) is not",
        ),
        (
            lambda: token_budget(9, count_tokens=cast("Any", 3)),
            r"count_tokens=...\) is not callable",
        ),
    ],
)
def test_wrong_arguments_are_refused(create: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        create()


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abc", 1), ("abcd", 2), ("щука", 3), ("漢字", 2), ("\ud800", 1)]
)
def test_the_estimate_is_a_third_of_the_bytes(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


# --- summaries


async def test_a_summary_is_extended_and_not_written_again() -> None:
    """Each turn is summarized once; the summary is in the log and counts in the usage."""
    writer, store = scribe(), MemoryRunStore()
    agent, model = reader(*pages(1, 9), "Done.")
    hook = token_budget(5_000, summary=summarize(writer, instructions="Keep page numbers."))
    config = RunConfig(prepare_input=hook, store=store)
    result = await Runner.run(agent, "Read all.", run_config=config, max_turns=None)

    events = await summaries_in(store, result.run_id)
    assert [event.summary for event in events] == [
        f"summary {number}" for number in range(1, len(writer.requests) + 1)
    ]
    assert [event.items for event in events] == sorted({event.items for event in events})
    asked = [texts[0] for texts in (cast("Any", one.input[0]).content for one in writer.requests)]
    assert asked
    for page in range(1, 10):
        times = sum(f"page {page}:" in cast("Any", one.input[0]).content for one in writer.requests)
        assert times == (page <= events[-1].items // 2)
    second = cast("Any", writer.requests[1].input[0]).content
    assert second.startswith("<summary>\nsummary 1\n</summary>")
    assert writer.requests[0].instructions.endswith("Keep page numbers.")
    assert writer.requests[0].tools == ()

    notice = cast("Any", model.requests[-1].input[0])
    assert notice.role == "user"  # results of tools must not get the authority of a system message
    assert f"\nsummary {len(events)}\n" in notice.content
    assert max(map(size_of, model.requests)) <= 5_000
    assert result.usage.requests == 10 + len(events)
    assert result.usage.input_tokens == 1_000 + 10 * len(events)
    assert events[0].usage is not None
    assert events[0].usage["input_tokens"] == 10


@pytest.mark.parametrize("is_file", [False, True])
async def test_a_resumed_run_reads_its_summary_in_the_log(is_file: bool, tmp_path: Path) -> None:
    """The usage is that of a run that was not interrupted."""
    store = SQLiteRunStore(tmp_path / "runs.db") if is_file else MemoryRunStore()
    async with store:
        await _resume(store)


async def _resume(store: RunStore) -> None:
    hook = keep_recent(2, summary=summarize(scribe()))
    agent, _ = reader(*pages(1, 5), ModelError("gone"))
    config = RunConfig(prepare_input=hook, store=store)
    with pytest.raises(ModelError):
        await Runner.run(agent, "Read.", run_config=config, run_id="r", max_turns=None)
    before = await summaries_in(store, "r")
    assert [event.items for event in before] == [5]

    agent, model = reader(*pages(6, 6), "Done.")
    never = scribe(1)
    config = RunConfig(prepare_input=keep_recent(2, summary=summarize(never)))
    result = await Runner.resume(agent, "r", store=store, run_config=config)
    assert "summary 1" in cast("Any", model.requests[0].input[0]).content
    events = await summaries_in(store, "r")
    assert [event.items for event in events] == [5, 9]
    assert "page 2:" not in cast("Any", never.requests[0].input[0]).content
    assert result.usage.requests == 7 + 2
    assert result.usage.input_tokens == 700 + 20

    # The complete run is only read, and its usage is the same.
    again = await Runner.resume(agent, "r", store=store, run_config=config)
    assert again.usage == result.usage
    assert len(never.requests) == 1


async def test_later_runs_of_a_session_use_the_summary() -> None:
    store, writer = MemoryRunStore(), scribe()
    config = RunConfig(prepare_input=keep_recent(2, summary=summarize(writer)), store=store)
    agent, model = reader(*(f"answer {number}" for number in range(1, 8)))
    for number in range(1, 8):
        await Runner.run(agent, f"question {number}", session="chat", run_config=config)
    assert len(writer.requests) == 2
    assert texts_of(model.requests[-1].input)[1:] == [
        "question 5",
        "answer 5",
        "question 6",
        "answer 6",
        "question 7",
    ]
    assert "summary 2" in cast("Any", model.requests[-1].input[0]).content
    assert [event.type for event in await store.session("chat").events()].count(
        "summary_event"
    ) == 2


async def test_the_summary_of_another_conversation_is_not_used() -> None:
    """A session can be edited: a summary must not bring back what was deleted."""
    store, writer = MemoryRunStore(), scribe()
    config = RunConfig(prepare_input=keep_recent(1, summary=summarize(writer)), store=store)
    agent, model = reader("answer 1", "answer 2", "answer 3", "ok")
    for number in range(1, 4):
        await Runner.run(
            agent, f"secret {number}", session="chat", run_config=config, run_id=f"r{number}"
        )
    assert len(writer.requests) > 0
    await store.delete("r1")
    await Runner.run(agent, "Hello", session="chat", run_config=config)
    first = texts_of(model.requests[-1].input)[0]
    shown = cast("Any", writer.requests[-1].input[0]).content
    assert "secret 1" not in shown
    assert "<summary>" not in shown
    assert "Hello" not in first


async def test_a_state_without_a_store_has_the_summary() -> None:
    """A run that waits for a person would otherwise be summarized again from its beginning."""

    @policies.needs_approval
    @function_tool
    def send() -> str:
        """Send."""
        return "sent"

    model = ScriptedModel([*pages(1, 5), tool_call("send"), "Done."])
    writer = scribe()
    agent = Agent("Reader", tools=[read, send], model=model)
    config = RunConfig(prepare_input=keep_recent(2, summary=summarize(writer)))
    result = await Runner.run(agent, "Go.", run_config=config, max_turns=None)
    assert len(writer.requests) == 1
    state = RunState.from_json(result.to_state().copy().to_json())
    state.approve(state.interruptions[0])
    result = await Runner.run(agent, state, run_config=config, max_turns=None)
    assert result.final_output == "Done."
    assert [len(writer.requests), result.usage.requests] == [2, 7 + 2]
    assert "<summary>\nsummary 1" in cast("Any", writer.requests[1].input[0]).content


async def test_the_summary_of_an_agent_that_runs_as_a_tool_is_its_own() -> None:
    store, writer = MemoryRunStore(), scribe()
    inner, model = reader(*pages(1, 5), "Inner.")
    outer = Agent(
        "Outer",
        tools=[inner.as_tool()],
        model=ScriptedModel([tool_call("reader", call_id="c1", input="Read."), "Outer."]),
    )
    config = RunConfig(prepare_input=keep_recent(2, summary=summarize(writer)), store=store)
    result = await Runner.run(outer, "Go.", run_config=config)
    assert "summary 1" in cast("Any", model.requests[-1].input[0]).content
    assert result.usage.requests == 2 + 1 + 6
    assert await summaries_in(store, result.run_id) == []  # the run inside the call is not shown


async def test_an_agent_that_runs_as_a_tool_continues_with_its_summary() -> None:
    """Its events are hidden in the log of the outermost run, where resuming finds them."""
    store, writer, is_stuck = MemoryRunStore(), scribe(), asyncio.Event()

    async def hang(_: object) -> str:
        is_stuck.set()
        await asyncio.Event().wait()
        return "never"

    def team(*inner_steps: Any, outer: Sequence[Any]) -> tuple[Agent[Any, Any], ScriptedModel]:
        inner, model = reader(*inner_steps)
        return Agent("Outer", tools=[inner.as_tool()], model=ScriptedModel(outer)), model

    config = RunConfig(prepare_input=keep_recent(2, summary=summarize(writer)), store=store)
    call = tool_call("reader", call_id="c1", input="Read.")
    agent, _ = team(*pages(1, 5), hang, outer=[call])
    run = asyncio.create_task(Runner.run(agent, "Go.", run_config=config, run_id="r"))
    async with asyncio.timeout(30):
        await is_stuck.wait()
    run.cancel()
    await asyncio.wait([run])
    assert len(writer.requests) == 1

    agent, model = team("Inner.", outer=["Outer."])
    result = await Runner.resume(agent, "r", store=store, run_config=config)
    assert result.final_output == "Outer."
    assert len(writer.requests) == 1
    assert "summary 1" in cast("Any", model.requests[0].input[0]).content
    assert result.usage.requests == 2 + 1 + 6


@pytest.mark.parametrize(
    "fault",
    [ModelError("down"), "", MessageOutputItem(refusal="No.")],
    ids=["error", "empty", "no"],
)
async def test_a_failed_summary_does_not_end_the_run(
    fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The turns are left out without a summary, and the next request tries again."""
    writer = ScriptedModel([fault, "summary at last"])
    agent, model = reader(*pages(1, 5), "Done.")
    config = RunConfig(prepare_input=keep_recent(2, summary=summarize(writer)))
    with caplog.at_level(logging.WARNING):
        result = await Runner.run(agent, "Read.", run_config=config, max_turns=None)
    assert result.final_output == "Done."
    assert "Agent 'Reader' continues without a summary of 5 items" in caplog.text
    assert "[The first 5 items" in cast("Any", model.requests[4].input[0]).content
    assert "summary at last" in cast("Any", model.requests[5].input[0]).content


async def test_a_summary_can_be_a_function_of_the_application() -> None:
    async def first_words(
        items: Sequence[Item], previous: str | None, context: InputContext[Any]
    ) -> str:
        return f"{previous or ''}{len(items)};"

    agent, model = reader(*pages(1, 7), "Done.")
    config = RunConfig(prepare_input=keep_recent(2, summary=first_words))
    await Runner.run(agent, "Read.", run_config=config, max_turns=None)
    assert "\n5;4;\n" in cast("Any", model.requests[-1].input[0]).content


async def test_a_summary_that_is_not_text_is_refused() -> None:
    async def wrong(*_: Any) -> Any:
        return 3

    agent, _ = reader(*pages(1, 5), "Done.")
    config = RunConfig(prepare_input=keep_recent(2, summary=wrong))
    with pytest.raises(UserError, match="The summary function returned a wrong value"):
        await Runner.run(agent, "Read.", run_config=config)


async def test_a_run_that_stops_for_its_limit_keeps_its_summary() -> None:
    """A state that continues the run reads the summary."""
    writer = scribe()
    agent, _ = reader(*pages(1, 9), "Done.")
    config = RunConfig(prepare_input=keep_recent(2, summary=summarize(writer)))
    with pytest.raises(MaxTurnsExceeded) as caught:
        await Runner.run(agent, "Read.", run_config=config, max_turns=6)
    state = cast("Any", caught.value).run_result.to_state()
    assert [one.summary for one in state.summaries] == [f"summary {len(writer.requests)}"]


def test_a_summary_function_is_not_a_hook() -> None:
    """The mistake must not send the summary in place of the conversation."""
    agent, _ = reader("Hi.")
    config = RunConfig(prepare_input=cast("Any", summarize(scribe())))
    with pytest.raises(TypeError) as caught:
        Runner.run_sync(agent, "Hello", run_config=config)
    assert "prepare_input" in caught.value.__notes__[0]


# --- calls, outputs and reasoning stay together

names = st.sampled_from(["a", "b"])
words = st.text(alphabet="xy ", max_size=400)
responses = st.builds(
    lambda thinks, calls, text: (thinks, calls, text),
    st.booleans(),
    st.lists(st.sampled_from(["function", "hosted", "mcp_approval"]), max_size=3),
    words,
)


@st.composite
def conversations(draw: Any) -> list[Item]:
    """Return a conversation in which every call has its output, with ids that repeat."""
    items: list[Item] = [MessageInputItem(content=draw(words) or "start")]
    for turn, (thinks, kinds, text) in enumerate(draw(st.lists(responses, max_size=12))):
        calls = [
            ToolCallItem(
                call_id=f"{kind}{number}" if draw(st.booleans()) else f"{kind}{turn}_{number}",
                name="read",
                kind=kind,
                provider_data={"p": {"turn": turn}},
            )
            for number, kind in enumerate(kinds)
        ]
        items += [ReasoningItem(text=f"{turn}", provider_data={"p": {"turn": turn}})] * thinks
        items += calls
        if text or not calls:
            items.append(MessageOutputItem(text=text or "ok", provider_data={"p": {"turn": turn}}))
        outputs = [
            ToolCallOutputItem(call_id=one.call_id, kind=one.kind, output=draw(words))
            for one in calls
            if one.needs_answer
        ]
        items += draw(st.permutations(outputs))
        if not outputs or draw(st.booleans()):
            items.append(MessageInputItem(content=draw(words) or "next"))
    if isinstance(items[-1], (MessageOutputItem, ReasoningItem, ToolCallItem)):
        items.append(MessageInputItem(content="next"))
    return items


def responses_in(items: Sequence[Item]) -> list[tuple[int, list[str]]]:
    """Return the turn and the kinds of the items of each response."""
    found: dict[int, list[str]] = {}
    for item in items:
        if isinstance(item, (ReasoningItem, ToolCallItem, MessageOutputItem)):
            turn = cast("Any", item.provider_data)["p"]["turn"]
            found.setdefault(turn, []).append(item.type)
    return list(found.items())


@settings(max_examples=150, deadline=None)
@given(
    history=conversations(),
    hook=st.sampled_from(
        [
            keep_recent(1),
            keep_recent(3),
            token_budget(100),
            token_budget(600),
            keep_recent(2, summary=summarize(ScriptedModel([lambda _: "sum"] * 10_000))),
            token_budget(400, summary=summarize(ScriptedModel([lambda _: "sum"] * 10_000))),
        ]
    ),
)
def test_what_belongs_together_stays_together(
    history: list[Item], hook: compaction.PrepareInput
) -> None:
    """A provider refuses a call without output, and a part of a response without the rest."""
    model = ScriptedModel(["Done."])
    Runner.run_sync(
        Agent("A", model=model), cast("Any", history), run_config=RunConfig(prepare_input=hook)
    )
    shown = model.requests[0].input
    open_calls: dict[str, int] = {}
    for item in shown:
        if isinstance(item, ToolCallItem) and item.needs_answer:
            open_calls[item.call_id] = open_calls.get(item.call_id, 0) + 1
        elif isinstance(item, ToolCallOutputItem):
            open_calls[item.call_id] -= 1
            assert open_calls[item.call_id] >= 0
        elif isinstance(item, (MessageInputItem, MessageOutputItem, ReasoningItem)):
            pass
    assert not any(open_calls.values())
    assert isinstance(shown[0], MessageInputItem)
    whole = dict(responses_in(history))
    assert all(whole[turn] == kinds for turn, kinds in responses_in(shown))
    assert shown[-1].type == history[-1].type
