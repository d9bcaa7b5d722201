"""Failure cases of class-based tools, registries and conversations."""

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
from agents_tools.conversation import (
    LLM,
    Agent,
    AgentErrorEvent,
    Conversation,
    LLMConvertibleEvent,
    ObservationEvent,
)
from agents_tools.registry import ToolSpec, resolve_tool
from agents_tools.testing import ScriptedModel, tool_call

BOUND = 45.0


class Count(Action):
    number: int = 1


class CountObservation(Observation):
    number: int = 0


class FixedExecutor(ToolExecutor[Count, Any]):
    """An executor that returns a fixed value, or calls it."""

    def __init__(self, result: Any = "given") -> None:
        self.result = result
        self.seen: list[Any] = []
        self.closed = 0

    def __call__(self, action: Any, conversation: Any = None) -> Any:
        self.seen.append(action)
        return self.result(action) if callable(self.result) else self.result

    def close(self) -> None:
        self.closed += 1


def tool_of(action: Any = Count, executor: Any = None, **fields: Any) -> ToolDefinition:
    fields.setdefault("name", "count")
    return ToolDefinition(
        description="Counts.", action_type=action, executor=executor or FixedExecutor(), **fields
    )


async def called(tool: Any, arguments: str = "{}") -> Any:
    return await tool.as_function_tool().call(None, arguments)


# --- observations


@pytest.mark.requirement("B9", "B57")
@pytest.mark.parametrize("is_error", [False, True])
async def test_an_observation_without_content_is_a_result(is_error: bool) -> None:
    """An observation can consist of fields alone, which programs read."""
    outcome = await called(
        tool_of(executor=FixedExecutor(CountObservation(number=3, is_error=is_error)))
    )
    assert outcome.status == ("tool_error" if is_error else "ok")
    assert outcome.error is None
    assert outcome.value.number == 3


@pytest.mark.requirement("B85")
async def test_a_mapping_becomes_the_declared_observation() -> None:
    """Outputs are coerced if a model is declared."""
    tool = tool_of(executor=FixedExecutor({"number": 3}), observation_type=CountObservation)
    outcome = await called(tool)
    assert (outcome.status, outcome.value) == ("ok", CountObservation(number=3))


async def test_observation_text_for_models_can_always_be_encoded() -> None:
    """Escapes and lone surrogates are written out, as in any other text."""
    plain = await called(tool_of(executor=FixedExecutor("a\x1b[31m\ud800")))
    observed = await called(
        tool_of(executor=FixedExecutor(Observation.from_text("a\x1b[31m\ud800")))
    )
    assert observed.output == plain.output
    observed.output.encode()


async def test_a_secret_next_to_an_image_is_masked() -> None:
    """A registered secret is masked in each text for a model, with or without images."""
    register_secret("correct-horse-battery")
    content = [
        TextContent(text="key correct-horse-battery"),
        ImageContent(image_urls=["https://example.test/a.png"]),
    ]
    outcome = await called(tool_of(executor=FixedExecutor(Observation(content=content))))
    assert "correct-horse-battery" not in repr(outcome.output)


@pytest.mark.parametrize("content", ["text", None, [5], 5])
async def test_an_invalid_to_llm_content_is_an_error_of_the_tool(content: Any) -> None:
    """A wrong property of a subclass must not reach the model."""

    class Odd(Observation):
        @property
        def to_llm_content(self) -> Any:
            return content

    outcome = await called(tool_of(executor=FixedExecutor(Odd())))
    assert outcome.status == "tool_error"


@pytest.mark.requirement("B8")
def test_a_field_named_like_the_visualize_property_does_not_recurse() -> None:
    """Such a class is refused, or shown."""
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
async def test_action_from_arguments_gets_the_original_arguments() -> None:
    """Nothing is masked, removed or added."""
    executor = FixedExecutor()
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
async def test_execute_gets_the_original_arguments(wrapped: bool) -> None:
    """Even if the model wrote its object into a string, no value is lost."""
    text = '{"key": "abc", "extra": 4}'
    outcome = await called(Keyed(), json.dumps(text) if wrapped else text)
    assert outcome.output == "abc 4"


DEEP = "[" * 100_000


@pytest.mark.requirement("B20")
async def test_the_security_risk_is_extracted_with_the_usual_argument_rules() -> None:
    """Limits, duplicate keys and wrapped objects are handled as without it."""
    tool = policies.security_risk()(tool_of().as_function_tool())
    deep = await tool.call(None, DEEP)
    assert deep.status == "invalid_args"
    twice = await tool.call(None, '{"security_risk": "LOW", "number": 1, "number": 2}')
    assert twice.status == "invalid_args"
    wrapped = await tool.call(None, json.dumps('{"security_risk": "LOW", "number": 1}'))
    assert wrapped.status == "ok", wrapped.output


@pytest.mark.requirement("B50")
async def test_approval_by_risk_uses_the_risk_from_the_model() -> None:
    """Inside `security_risk()`, the approval rule sees the risk."""
    asked = policies.needs_approval(lambda ctx, _: ctx.security_risk != "LOW")
    tool = policies.security_risk()(asked(tool_of().as_function_tool()))
    assert (await tool.call(None, '{"security_risk": "low"}')).status == "ok"
    assert (await tool.call(None, '{"security_risk": "HIGH"}')).status == "denied"
    assert (await tool.call(None, "{}")).status == "denied"


# --- definitions


@pytest.mark.requirement("B60")
def test_a_changed_copy_is_another_tool() -> None:
    """A copy must not use what was built for the original."""
    tool = tool_of()
    tool.as_function_tool()
    changed = tool.model_copy(update={"description": "Counts on."})
    assert changed.as_function_tool().description == "Counts on."
    bare = tool.model_copy(update={"executor": None})
    with pytest.raises(NotImplementedError):
        bare.as_function_tool().invoke_sync({})


@pytest.mark.requirement("C2")
def test_a_copied_base_tool_runs_its_own_code() -> None:
    """What was built for the original does not belong to the copy."""

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
    """Using a tool does not change its value."""
    executor = FixedExecutor()
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
def test_a_dump_is_loaded_as_the_requested_class() -> None:
    """The dump of one class is not an instance of another."""
    data = First(description="x", action_type=Count).model_dump()
    assert type(ToolDefinition.model_validate(data)) is First
    with pytest.raises(ValueError, match="First"):
        Second.model_validate(data)


@pytest.mark.requirement("B80")
@pytest.mark.parametrize("kind", [["First"], {}, 3, None, "Unheard"])
def test_an_unknown_kind_is_a_value_error(kind: Any) -> None:
    data = First(description="x", action_type=Count).model_dump()
    with pytest.raises(ValueError, match=r"kind|class"):
        ToolDefinition.model_validate({**data, "kind": kind})


# --- executors


async def test_an_interrupt_that_raises_does_not_swallow_the_cancellation() -> None:
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


async def test_interrupt_never_blocks_the_loop() -> None:
    """A slow `interrupt()` runs in a thread."""
    started, release, interrupted = threading.Event(), threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    class Stuck(ToolExecutor[Count, Any]):
        def __call__(self, action: Count, conversation: Any = None) -> str:
            started.set()
            release.wait(BOUND)
            return "late"

        def interrupt(self) -> None:
            threads.append(threading.current_thread())
            release.set()
            interrupted.set()

    tool = tool_of(executor=Stuck()).as_function_tool()
    task = asyncio.create_task(tool.call(None, "{}"))
    await asyncio.to_thread(started.wait, BOUND)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(interrupted.wait, BOUND)
    assert threads[0] is not threading.current_thread()


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), ValueError("x")])
def test_executors_are_closed_even_if_another_one_raises(error: BaseException) -> None:
    class Failing(FixedExecutor):
        def close(self) -> None:
            raise error

    last = FixedExecutor()
    try:
        close_executors([Failing(), last])
    except type(error):
        pass
    assert last.closed == 1


@pytest.mark.parametrize("name", ["close", "interrupt"])
def test_an_async_method_that_would_never_run_is_refused(name: str) -> None:
    """An executor with an async `__call__` suggests it, and its connections would stay open."""

    async def method(self: object) -> None: ...

    with pytest.raises(UserError, match=rf"Open\.{name} .*Write `def {name}\(self\)`"):
        type("Open", (FixedExecutor,), {name: method})


@pytest.mark.requirement("B10", "B11")
def test_any_executor_with_a_close_is_closed() -> None:
    """Any accepted executor is closed."""

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
    """The exit of a child must not close executors that the parent still uses."""
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
    """Return a number."""
    return number


@pytest.mark.requirement("B22")
def test_tools_created_before_a_failure_are_closed() -> None:
    """A failed resolution leaves nothing open."""
    executor = FixedExecutor()

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
def test_patterns_match_the_built_in_tools_too() -> None:
    """In the shared registry, patterns work like names."""
    names = {tool.name for tool in resolve_tool("th*")}
    assert names == {"think"}


@pytest.mark.requirement("B23")
def test_a_specification_cannot_set_the_conversation_state() -> None:
    """Data must not replace the conversation."""
    registry = ToolRegistry()
    registry.register("make", lambda conv_state=None: [tool_of()])
    with pytest.raises(ValueError, match="conv_state"):
        registry.make(ToolSpec(name="make", params={"conv_state": "forged"}))


def test_an_object_that_is_not_a_tool_is_refused_with_a_remedy() -> None:
    """Each refusal is a UserError."""
    registry = ToolRegistry()

    for wrong in (First, Keyed, 5, None, lambda: 1):
        with pytest.raises(UserError):
            registry.register(wrong)
    for spec in (5, None):
        with pytest.raises(UserError):
            registry.resolve(spec)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert len(registry) == 0


def test_a_listener_can_change_the_registry() -> None:
    """Registering, unregistering and unsubscribing inside a listener work."""
    registry = ToolRegistry()
    recorded: list[tuple[str, ...]] = []

    def listen(change: Any) -> None:
        recorded.append(change.added or change.removed)
        if change.added == ("plain",):
            registry.register(tool_of())
            registry.unregister("count")
            end()

    end = registry.subscribe(listen)
    registry.register(plain)
    registry.unregister("plain")
    assert recorded == [("plain",), ("count",), ("count",)]
    assert registry.get_tool_names() == []


# --- conversations


def start_conversation(steps: list[Any], *tools: Any, **options: Any) -> Conversation:
    agent = Agent(llm=LLM(model=ScriptedModel(steps)), tools=list(tools))
    return Conversation(agent, **options)


def message_contents(talk: Conversation) -> list[Any]:
    """Return the message contents in order."""
    events = [event for event in talk.state.events if isinstance(event, LLMConvertibleEvent)]
    return [event.message["content"] for event in events]


@pytest.mark.requirement("B12", "B64")
def test_each_message_is_emitted_once(tmp_path: Path) -> None:
    """Later runs repeat nothing, neither to callbacks nor to the model."""
    talk = start_conversation(
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
    said = [text for text in message_contents(talk) if text in {"one", "two", "three"}]
    assert said == ["one", "two", "three"]


@pytest.mark.requirement("B65")
def test_the_message_of_a_result_with_an_image_is_text(tmp_path: Path) -> None:
    """A tool message of the Chat Completions API contains only text; the observation has both."""
    shown = Observation(
        content=[
            TextContent(text="A dot:"),
            ImageContent(image_urls=["data:image/png;base64,AA=="]),
        ]
    )
    talk = start_conversation(
        [tool_call("count", number=1), "seen"],
        tool_of(executor=FixedExecutor(shown)),
        workspace=tmp_path,
    )
    talk.send_message("a")
    talk.run()
    assert message_contents(talk)[2] == "A dot:\n[image]"
    (event,) = (one for one in talk.state.events if isinstance(one, ObservationEvent))
    assert event.observation == shown


@pytest.mark.requirement("B13", "B14")
@pytest.mark.parametrize(
    "arguments", [DEEP, '{"number": ' + DEEP, "{bad", "[1]", '"x"', '{"number": "\\ud800"}']
)
def test_invalid_arguments_do_not_end_a_conversation(arguments: str, tmp_path: Path) -> None:
    """Any arguments of a model are answered, and the run continues."""
    talk = start_conversation(
        [tool_call("count", arguments), "sorry"], tool_of(), workspace=tmp_path
    )
    talk.send_message("go")
    talk.run()
    kinds = [type(event) for event in talk.state.events]
    assert AgentErrorEvent in kinds
    assert message_contents(talk)[-1] == "sorry"


@pytest.mark.requirement("B79")
def test_an_error_in_action_from_arguments_does_not_end_a_conversation(tmp_path: Path) -> None:
    """It is reported to the model."""

    class Strange(ToolDefinition[Count, Any]):
        def action_from_arguments(self, arguments: Any) -> Count:
            raise KeyError("missing")

    tool = Strange(description="x", action_type=Count, executor=FixedExecutor())
    talk = start_conversation([tool_call("strange", number=1), "sorry"], tool, workspace=tmp_path)
    talk.send_message("go")
    talk.run()
    assert message_contents(talk)[-1] == "sorry"


@pytest.mark.requirement("B61")
def test_a_conversation_that_cannot_start_leaves_nothing_open(tmp_path: Path) -> None:
    """Everything created for it is closed."""
    executor = FixedExecutor()
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


def test_a_call_that_needs_an_approval_is_denied(tmp_path: Path) -> None:
    """There is no person to ask, and the conversation continues."""
    pay = function_tool(lambda euros: f"paid {euros}", name_override="pay")
    steps = [tool_call("pay", euros=5), "Not paid.", "Still here."]
    talk = start_conversation(steps, policies.needs_approval(pay), workspace=tmp_path)
    for text in ("Pay.", "Hello?"):
        talk.send_message(text)
        talk.run()
    denied = "The call of 'pay' needs an approval, and this conversation has no person who could give it."
    assert message_contents(talk) == ["Pay.", None, denied, "Not paid.", "Hello?", "Still here."]


@pytest.mark.requirement("B64")
def test_a_callback_that_raises_is_logged_and_the_others_are_called(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorded: list[Any] = []

    def fail(event: Any) -> None:
        raise RuntimeError("deaf")

    talk = start_conversation(["hello"], workspace=tmp_path, callbacks=[fail, recorded.append])
    talk.send_message("hi")
    with caplog.at_level(logging.ERROR):
        talk.run()
    assert len(recorded) == 2
    assert "A callback failed" in caplog.text


def test_a_message_that_is_not_a_string_is_refused_at_once(tmp_path: Path) -> None:
    """The conversation stays usable."""
    talk = start_conversation(["hello"], workspace=tmp_path)
    with pytest.raises(TypeError):
        talk.send_message(5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    talk.send_message("hi")
    talk.run()
    assert message_contents(talk) == ["hi", "hello"]


def test_two_conversations_can_share_an_agent(tmp_path: Path) -> None:
    """Their messages stay separate."""
    agent = Agent(llm=LLM(model=ScriptedModel(["one", "two"])))
    first, second = Conversation(agent, workspace=tmp_path), Conversation(agent, workspace=tmp_path)
    for talk in (first, second):
        talk.send_message("hi")
        talk.run()
    assert message_contents(first) == ["hi", "one"]
    assert message_contents(second) == ["hi", "two"]


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

    executor = FixedExecutor()
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
