"""What users, models and time do to class-based tools, registries and conversations."""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import enum
import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
import uuid
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field, SecretStr, computed_field

from agents_tools import (
    Action,
    BaseTool,
    BaseToolParams,
    ImageContent,
    Observation,
    TextContent,
    ToolDefinition,
    ToolExecutor,
    ToolRegistry,
    UserError,
    function_tool,
    policies,
    register_secret,
)
from agents_tools.classes.action import close_executors
from agents_tools.conversation import LLM, Agent, AgentErrorEvent, Conversation, LLMConvertibleEvent
from agents_tools.registry import ToolSpec, resolve_tool
from agents_tools.testing import ScriptedModel, tool_call

BOUND = 45.0


class Count(Action):
    number: int = 1


class Told(Observation):
    number: int = 0


class Giving(ToolExecutor[Count, Any]):
    """Gives what it was made with, or calls it."""

    def __init__(self, given: Any = "given") -> None:
        self.given = given
        self.seen: list[Any] = []
        self.closed = 0

    def __call__(self, action: Any, conversation: Any = None) -> Any:
        self.seen.append(action)
        return self.given(action) if callable(self.given) else self.given

    def close(self) -> None:
        self.closed += 1


def tool_of(action: Any = Count, executor: Any = None, **fields: Any) -> ToolDefinition:
    fields.setdefault("name", "count")
    return ToolDefinition(
        description="Counts.", action_type=action, executor=executor or Giving(), **fields
    )


async def called(tool: Any, arguments: str = "{}") -> Any:
    return await tool.as_function_tool().call(None, arguments)


# --- observations


@pytest.mark.requirement("B9", "B57")
@pytest.mark.parametrize("is_error", [False, True])
async def test_an_observation_without_content_is_a_result(is_error: bool) -> None:
    """An observation may have nothing but fields, which programs see."""
    outcome = await called(tool_of(executor=Giving(Told(number=3, is_error=is_error))))
    assert outcome.status == ("tool_error" if is_error else "ok")
    assert outcome.error is None
    assert outcome.value.number == 3


@pytest.mark.requirement("B85")
async def test_a_mapping_becomes_the_observation_that_was_declared() -> None:
    """Outputs are coerced where a model is declared."""
    tool = tool_of(executor=Giving({"number": 3}), observation_type=Told)
    outcome = await called(tool)
    assert (outcome.status, outcome.value) == ("ok", Told(number=3))


async def test_what_models_read_of_observations_can_always_be_sent() -> None:
    """Escapes and halves of surrogate pairs are written out, as in any other text."""
    plain = await called(tool_of(executor=Giving("a\x1b[31m\ud800")))
    observed = await called(tool_of(executor=Giving(Observation.from_text("a\x1b[31m\ud800"))))
    assert observed.output == plain.output
    observed.output.encode()


async def test_a_secret_beside_an_image_is_masked() -> None:
    """A registered secret is masked in each text that a model reads, alone or among images."""
    register_secret("correct-horse-battery")
    content = [
        TextContent(text="key correct-horse-battery"),
        ImageContent(image_urls=["https://example.test/a.png"]),
    ]
    outcome = await called(tool_of(executor=Giving(Observation(content=content))))
    assert "correct-horse-battery" not in repr(outcome.output)


@pytest.mark.parametrize("given", ["text", None, [5], 5])
async def test_an_odd_to_llm_content_is_an_error_of_the_tool(given: Any) -> None:
    """What a property of a subclass gives wrongly never leaves the call."""

    class Odd(Observation):
        @property
        def to_llm_content(self) -> Any:
            return given

    outcome = await called(tool_of(executor=Giving(Odd())))
    assert outcome.status == "tool_error"


@pytest.mark.requirement("B8")
def test_a_field_may_be_named_like_the_property_for_people() -> None:
    """A class with such a field is refused, or shown; it never recurses for ever."""
    schema = {"type": "object", "properties": {"visualize": {"type": "string"}}}
    shown = Action.from_mcp_schema("Raw", schema).model_validate({"visualize": "plot"})
    assert "plot" in str(shown.visualize)


# --- reading arguments


class Hidden(Action):
    key: SecretStr
    extra: int = Field(default=0, exclude=True)

    @computed_field
    @property
    def twice(self) -> int:
        return 2 * self.extra


class Reading(ToolDefinition[Hidden, Any]):
    def action_from_arguments(self, arguments: Any) -> Hidden:
        return super().action_from_arguments(arguments)


@pytest.mark.requirement("B79")
async def test_an_own_reader_gets_the_arguments_as_they_came() -> None:
    """Nothing is masked, left out or added on the way to `action_from_arguments`."""
    executor = Giving()
    tool = Reading(description="Reads.", action_type=Hidden, executor=executor)
    outcome = await called(tool, '{"key": "abc", "extra": 4}')
    assert outcome.status == "ok", outcome.output
    assert executor.seen[0].key.get_secret_value() == "abc"
    assert executor.seen[0].extra == 4


class KeyParams(BaseToolParams):
    """Takes a key."""

    name: ClassVar[str] = "keyed"
    key: SecretStr
    extra: int = Field(default=0, exclude=True)


class Keyed(BaseTool):
    params_class: ClassVar[type[BaseToolParams]] = KeyParams

    def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
        params = self.parse_params(args_json)
        return f"{params.key.get_secret_value()} {params.extra}", {}


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("wrapped", [False, True])
async def test_execute_gets_the_arguments_that_came(wrapped: bool) -> None:
    """Also where the model wrote its object into a string, no value is lost."""
    text = '{"key": "abc", "extra": 4}'
    outcome = await called(Keyed(), json.dumps(text) if wrapped else text)
    assert outcome.output == "abc 4"


DEEP = "[" * 100_000


@pytest.mark.requirement("B20")
async def test_the_risk_is_taken_off_by_the_rules_for_all_arguments() -> None:
    """Bounds, duplicate keys and wrapped objects are as without it."""
    tool = policies.security_risk()(tool_of().as_function_tool())
    deep = await tool.call(None, DEEP)
    assert deep.status == "invalid_args"
    twice = await tool.call(None, '{"security_risk": "LOW", "number": 1, "number": 2}')
    assert twice.status == "invalid_args"
    wrapped = await tool.call(None, json.dumps('{"security_risk": "LOW", "number": 1}'))
    assert wrapped.status == "ok", wrapped.output


@pytest.mark.requirement("B50")
async def test_a_decision_by_risk_is_made_on_what_the_model_said() -> None:
    """Below `security_risk()`, approval sees the risk."""
    asked = policies.needs_approval(lambda ctx, _: ctx.security_risk != "LOW")
    tool = policies.security_risk()(asked(tool_of().as_function_tool()))
    assert (await tool.call(None, '{"security_risk": "low"}')).status == "ok"
    assert (await tool.call(None, '{"security_risk": "HIGH"}')).status == "denied"
    assert (await tool.call(None, "{}")).status == "denied"


# --- definitions


@pytest.mark.requirement("B60")
def test_a_changed_copy_is_another_tool() -> None:
    """A copy never answers with what was built for the tool it was made of."""
    tool = tool_of()
    tool.as_function_tool()
    changed = tool.model_copy(update={"description": "Counts on."})
    assert changed.as_function_tool().description == "Counts on."
    bare = tool.model_copy(update={"executor": None})
    with pytest.raises(NotImplementedError):
        bare.as_function_tool().invoke_sync({})


@pytest.mark.requirement("C2")
def test_a_copied_base_tool_runs_itself() -> None:
    """What was built for the first is not the copy's."""

    class Kept(BaseTool):
        name: ClassVar[str] = "kept"
        params_class: ClassVar[type[BaseToolParams]] = KeyParams

        def __init__(self, text: str) -> None:
            self.text = text

        def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
            return self.text, {}

    first = Kept("one")
    first.as_function_tool()
    second = copy.copy(first)
    second.text = "two"
    assert second.as_function_tool().invoke_sync({"key": "x"}).content == "two"


@pytest.mark.requirement("B77")
def test_equal_definitions_stay_equal_when_one_is_used() -> None:
    """Using a tool does not change what it is."""
    executor = Giving()
    one, other = tool_of(executor=executor), tool_of(executor=executor)
    assert one == other
    one.as_function_tool().build()
    assert one == other


@pytest.mark.requirement("B87")
@pytest.mark.parametrize("by_alias", [False, True])
def test_a_title_survives_a_dump(by_alias: bool) -> None:
    """Under either name of the field."""
    data = tool_of(title="Counter").model_dump(by_alias=by_alias)
    assert ToolDefinition.model_validate(data).title == "Counter"


class First(ToolDefinition[Count, Any]):
    pass


class Second(ToolDefinition[Count, Any]):
    pass


@pytest.mark.requirement("B87")
def test_a_dump_is_loaded_as_the_class_it_is_asked_for() -> None:
    """The dump of one class is no instance of another."""
    data = First(description="x", action_type=Count).model_dump()
    assert type(ToolDefinition.model_validate(data)) is First
    with pytest.raises(ValueError, match="First"):
        Second.model_validate(data)


@pytest.mark.requirement("B80")
@pytest.mark.parametrize("kind", [["First"], {}, 3, None, "Unheard"])
def test_a_kind_that_is_none_is_a_value_error(kind: Any) -> None:
    """Whatever stands in the data."""
    data = First(description="x", action_type=Count).model_dump()
    with pytest.raises(ValueError, match=r"kind|class"):
        ToolDefinition.model_validate({**data, "kind": kind})


# --- executors


async def test_a_cancelled_call_is_cancelled_whatever_interrupt_does() -> None:
    """An `interrupt()` that raises does not swallow the cancellation."""
    started, release = threading.Event(), threading.Event()

    class Stuck(ToolExecutor[Count, Any]):
        def __call__(self, action: Count, conversation: Any = None) -> str:
            started.set()
            release.wait(BOUND)
            return "late"

        def interrupt(self) -> None:
            release.set()
            raise RuntimeError("no way")

    tool = tool_of(executor=Stuck()).as_function_tool()
    task = asyncio.create_task(tool.call(None, "{}"))
    await asyncio.to_thread(started.wait, BOUND)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_interrupt_never_holds_up_the_loop() -> None:
    """An `interrupt()` that takes its time runs beside the event loop, not on it."""
    started, release, told = threading.Event(), threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    class Stuck(ToolExecutor[Count, Any]):
        def __call__(self, action: Count, conversation: Any = None) -> str:
            started.set()
            release.wait(BOUND)
            return "late"

        def interrupt(self) -> None:
            threads.append(threading.current_thread())
            release.set()
            told.set()

    tool = tool_of(executor=Stuck()).as_function_tool()
    task = asyncio.create_task(tool.call(None, "{}"))
    await asyncio.to_thread(started.wait, BOUND)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(told.wait, BOUND)
    assert threads[0] is not threading.current_thread()


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), ValueError("x")])
def test_whatever_one_executor_raises_the_others_are_closed(error: BaseException) -> None:
    """Closing goes on."""

    class Failing(Giving):
        def close(self) -> None:
            raise error

    last = Giving()
    try:
        close_executors([Failing(), last])
    except type(error):
        pass
    assert last.closed == 1


@pytest.mark.requirement("B10", "B11")
def test_any_executor_with_a_close_is_closed() -> None:
    """What is accepted as an executor is closed as one."""

    class Plain:
        closed = 0

        def __call__(self, action: Any, conversation: Any = None) -> str:
            return "plain"

        def close(self) -> None:
            self.closed += 1

    executor = Plain()
    tool_of(executor=executor).close()
    assert executor.closed == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_closes_nothing_of_its_parent(tmp_path: Path) -> None:
    """The exit of a child leaves alone what the parent still works with."""
    program = """
    import os, sys
    from agents_tools import Action, ToolExecutor
    class Holding(ToolExecutor):
        def __call__(self, action, conversation=None): return ""
        def close(self): print("parent" if os.getpid() == owner else "child", flush=True)
    owner = os.getpid()
    held = Holding()
    child = os.fork()
    if child == 0: sys.exit(0)
    os.waitpid(child, 0)
    """
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )
    assert done.stdout == "parent\n"


# --- registries


@function_tool
def plain(number: int) -> int:
    """Give a number."""
    return number


@pytest.mark.requirement("B22")
def test_what_was_made_before_a_failure_is_closed() -> None:
    """A resolution that fails leaves nothing open."""
    executor = Giving()

    def fail(conv_state: Any = None) -> list[Any]:
        raise ValueError("no disk")

    registry = ToolRegistry()
    registry.register("set_a", lambda conv_state=None: [tool_of(executor=executor)])
    registry.register("set_b", fail)
    with pytest.raises(UserError, match="no disk"):
        registry.resolve("set_*")
    registry.close()
    assert executor.closed == 1


@pytest.mark.requirement("B11")
def test_a_registry_closes_base_tools() -> None:
    """`BaseTool.close` is called, once."""

    class Holding(Keyed):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    tool = Holding()
    registry = ToolRegistry()
    registry.register(tool)
    registry.close()
    assert tool.closed == 1


@pytest.mark.requirement("B4")
def test_patterns_find_the_built_in_tools_too() -> None:
    """The shared registry has them under patterns as under names."""
    names = {tool.name for tool in resolve_tool("th*")}
    assert names == {"think"}


@pytest.mark.requirement("B23")
def test_the_state_is_not_a_parameter_of_a_specification() -> None:
    """What comes as data cannot stand in for the conversation."""
    registry = ToolRegistry()
    registry.register("make", lambda conv_state=None: [tool_of()])
    with pytest.raises(ValueError, match="conv_state"):
        registry.make(ToolSpec(name="make", params={"conv_state": "forged"}))


def test_what_is_no_tool_is_refused_with_a_remedy() -> None:
    """Each refusal is one of ours, whatever is given."""
    registry = ToolRegistry()

    for wrong in (First, Keyed, 5, None, lambda: 1):
        with pytest.raises(UserError):
            registry.register(wrong)
    for spec in (5, None):
        with pytest.raises(UserError):
            registry.resolve(spec)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert len(registry) == 0


def test_a_listener_may_change_the_registry() -> None:
    """Registering, unregistering and unsubscribing inside a listener work."""
    registry = ToolRegistry()
    heard: list[tuple[str, ...]] = []

    def listen(change: Any) -> None:
        heard.append(change.added or change.removed)
        if change.added == ("plain",):
            registry.register(tool_of())
            registry.unregister("count")
            end()

    end = registry.subscribe(listen)
    registry.register(plain)
    registry.unregister("plain")
    assert heard == [("plain",), ("count",), ("count",)]
    assert registry.get_tool_names() == []


# --- conversations


def conversing(steps: list[Any], *tools: Any, **given: Any) -> Conversation:
    agent = Agent(llm=LLM(model=ScriptedModel(steps)), tools=list(tools))
    return Conversation(agent, **given)


def said_in(talk: Conversation) -> list[Any]:
    """Give what stands in the messages, in order."""
    events = [event for event in talk.state.events if isinstance(event, LLMConvertibleEvent)]
    return [event.message["content"] for event in events]


@pytest.mark.requirement("B12", "B64")
def test_each_message_is_told_once(tmp_path: Path) -> None:
    """Later runs repeat nothing, neither to callbacks nor to the model."""
    talk = conversing(
        [tool_call("count", number=1), "one", "two", "three"], tool_of(), workspace=tmp_path
    )
    for text in ("a", "b", "c"):
        talk.send_message(text)
        talk.run()
    kinds = [type(event).__name__ for event in talk.state.events]
    assert kinds == [
        "MessageEvent", "ActionEvent", "ObservationEvent", "MessageEvent",
        "MessageEvent", "MessageEvent", "MessageEvent", "MessageEvent",
    ]  # fmt: skip
    said = [text for text in said_in(talk) if text in {"one", "two", "three"}]
    assert said == ["one", "two", "three"]


@pytest.mark.requirement("B13", "B14")
@pytest.mark.parametrize(
    "arguments", [DEEP, '{"number": ' + DEEP, "{bad", "[1]", '"x"', '{"number": "\\ud800"}']
)
def test_no_arguments_end_a_conversation(arguments: str, tmp_path: Path) -> None:
    """Whatever a model writes is answered, and the run goes on."""
    talk = conversing([tool_call("count", arguments), "sorry"], tool_of(), workspace=tmp_path)
    talk.send_message("go")
    talk.run()
    kinds = [type(event) for event in talk.state.events]
    assert AgentErrorEvent in kinds
    assert said_in(talk)[-1] == "sorry"


@pytest.mark.requirement("B79")
def test_an_own_reader_that_fails_ends_no_conversation(tmp_path: Path) -> None:
    """Its error is told to the model."""

    class Strange(ToolDefinition[Count, Any]):
        def action_from_arguments(self, arguments: Any) -> Count:
            raise KeyError("missing")

    tool = Strange(description="x", action_type=Count, executor=Giving())
    talk = conversing([tool_call("strange", number=1), "sorry"], tool, workspace=tmp_path)
    talk.send_message("go")
    talk.run()
    assert said_in(talk)[-1] == "sorry"


@pytest.mark.requirement("B61")
def test_a_conversation_that_cannot_start_leaves_nothing_open(tmp_path: Path) -> None:
    """What was made for it is closed."""
    executor = Giving()
    registry = ToolRegistry()
    registry.register("make", lambda conv_state=None: [tool_of(executor=executor)])
    agent = Agent(
        llm=LLM(model=ScriptedModel([])),
        tools=[ToolSpec(name="make"), ToolSpec(name="unheard")],
        include_default_tools=[],
    )
    with pytest.raises(KeyError):
        Conversation(agent, workspace=tmp_path, registry=registry)
    assert executor.closed == 1


@pytest.mark.requirement("B64")
def test_callbacks_break_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What one raises is logged, and the others are called."""
    heard: list[Any] = []

    def fail(event: Any) -> None:
        raise RuntimeError("deaf")

    talk = conversing(["hello"], workspace=tmp_path, callbacks=[fail, heard.append])
    talk.send_message("hi")
    with caplog.at_level(logging.ERROR):
        talk.run()
    assert len(heard) == 2
    assert "A callback failed" in caplog.text


def test_a_message_that_is_no_text_is_refused_at_once(tmp_path: Path) -> None:
    """A mistake of the caller does not spoil the conversation."""
    talk = conversing(["hello"], workspace=tmp_path)
    with pytest.raises(TypeError):
        talk.send_message(5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    talk.send_message("hi")
    talk.run()
    assert said_in(talk) == ["hi", "hello"]


def test_two_conversations_share_an_agent(tmp_path: Path) -> None:
    """One agent serves several conversations, whose messages stay apart."""
    agent = Agent(llm=LLM(model=ScriptedModel(["one", "two"])))
    first, second = Conversation(agent, workspace=tmp_path), Conversation(agent, workspace=tmp_path)
    for talk in (first, second):
        talk.send_message("hi")
        talk.run()
    assert said_in(first) == ["hi", "one"]
    assert said_in(second) == ["hi", "two"]


class Plain(BaseModel):
    number: int


@pytest.mark.requirement("B1")
async def test_fields_of_all_kinds_are_read_from_json() -> None:
    """Dates, ids, enums, paths, bytes and nested models come from their JSON forms."""

    class Colour(enum.Enum):
        RED = "red"

    class Everything(Action):
        at: dt.datetime
        key: uuid.UUID
        colour: Colour
        path: Path
        raw: bytes
        inner: Plain
        renamed: int = Field(alias="theName")

    executor = Giving()
    tool = tool_of(Everything, executor)
    arguments = {
        "at": "2020-01-01T00:00:00Z",
        "key": "12345678-1234-5678-1234-567812345678",
        "colour": "red",
        "path": "a/b",
        "raw": "abc",
        "inner": {"number": 1},
        "theName": 3,
    }
    outcome = await called(tool, json.dumps(arguments))
    assert outcome.status == "ok", outcome.output
    action = executor.seen[0]
    assert (action.colour, action.path, action.raw) == (Colour.RED, Path("a/b"), b"abc")
    assert (action.inner, action.renamed) == (Plain(number=1), 3)
    wrong = await called(tool, json.dumps({**arguments, "colour": "blue", "renamed": 3}))
    assert wrong.status == "invalid_args"
    assert "colour" in wrong.output
