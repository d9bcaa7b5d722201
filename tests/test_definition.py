"""Class-based tools: actions, observations, executors, and the function tools they become."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel, Field, ValidationError

from agents_tools import (
    Action,
    Agent,
    ExecutableTool,
    FunctionTool,
    ImageContent,
    ModelBehaviorError,
    Observation,
    RunConfig,
    Runner,
    TextContent,
    ToolAnnotations,
    ToolCallOutputItem,
    ToolDefinition,
    ToolExecutor,
    ToolOutputImage,
    ToolOutputText,
    ToolRegistry,
    UserError,
    policies,
    to_mcp,
)
from agents_tools.classes.action import close_executors
from agents_tools.classes.definition import ToolBase
from agents_tools.testing import ScriptedModel, tool_call

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)


class WeighAction(Action):
    """What is weighed."""

    thing: str = Field(description="What to weigh", min_length=1, pattern="^[a-z]+$")
    unit: Literal["kg", "lb"] = "kg"
    places: int | None = Field(default=2, ge=0, le=6)


class WeighObservation(Observation):
    """What the scales say."""

    weight: float = 0.0


class Scales(ToolExecutor[WeighAction, WeighObservation]):
    """Scales that know some weights, and count how often they were closed."""

    def __init__(self) -> None:
        self.closed = 0
        self.threads: list[str] = []

    def __call__(self, action: WeighAction, conversation: Any = None) -> WeighObservation:
        self.threads.append(threading.current_thread().name)
        if action.thing == "ghost":
            return WeighObservation.from_text("Nothing is on the scales.", is_error=True)
        return WeighObservation.from_text(f"{len(action.thing)} {action.unit}", weight=5.0)

    def close(self) -> None:
        self.closed += 1


class WeighTool(ToolDefinition[WeighAction, WeighObservation]):
    """A tool with a factory."""

    @classmethod
    def create(cls, conv_state: Any = None, *, scales: Scales | None = None) -> Sequence[Self]:
        del conv_state
        return [
            cls(
                description="Weigh a thing.",
                action_type=WeighAction,
                observation_type=WeighObservation,
                executor=scales or Scales(),
                annotations=ToolAnnotations(title="Scales", readOnlyHint=True),
                meta={"example.com/rank": 1},
            )
        ]


def run_python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - the script is written here
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )


def the_tool() -> WeighTool:
    return WeighTool.create()[0]


# --- actions and observations


@pytest.mark.requirement("B1")
def test_actions_and_observations_are_strict_records() -> None:
    """A bad field is refused, an unknown one as well, and nothing changes afterwards."""
    with pytest.raises(ValidationError):
        WeighAction(thing="apple", places="many")  # type: ignore[arg-type]
    with pytest.raises(ValidationError):
        WeighAction(thing="apple", colour="red")  # type: ignore[call-arg]
    action = WeighAction(thing="apple")
    with pytest.raises(ValidationError):
        action.thing = "pear"  # type: ignore[misc]


@pytest.mark.requirement("B9", "B59", "B74")
def test_an_observation_is_text_with_an_error_flag() -> None:
    """The text for the model begins with a header if it is an error."""
    seen = WeighObservation.from_text("5 kg", weight=5)
    assert (seen.text, seen.is_error, seen.weight) == ("5 kg", False, 5)
    assert seen.to_llm_content == [TextContent(text="5 kg")]
    failed = WeighObservation.from_text("No scales.", is_error=True)
    assert [item.text for item in failed.to_llm_content if isinstance(item, TextContent)] == [
        Observation.ERROR_MESSAGE_HEADER,
        "No scales.",
    ]
    assert WeighObservation.model_validate_json(seen.model_dump_json()) == seen  # B57


@pytest.mark.requirement("B8", "B75")
def test_visualize_works_with_and_without_rich() -> None:
    """Without the package it is plain text."""
    shown = WeighAction(thing="apple").visualize
    assert str(shown) == "WeighAction\n  thing: apple\n  unit: kg\n  places: 2"
    assert type(shown).__module__ == "rich.text"
    script = (
        "import sys; sys.modules['rich'] = sys.modules['rich.text'] = None\n"
        "from agents_tools import Action, Observation\n"
        "print(type(Action().visualize), Observation.from_text('a\\x1b[31mb').visualize)"
    )
    run = run_python(script)
    assert run.stdout == "<class 'str'> ab\n"


@pytest.mark.requirement("B15")
def test_importing_tool_classes_loads_neither_events_nor_models() -> None:
    """For actions, observations and executors."""
    script = (
        "import sys, agents_tools.classes.action\n"
        "known = [name for name in sys.modules if name.startswith('agents_tools.')]\n"
        "print([name for name in known if name.split('.')[1] in "
        "{'events', 'items', 'model', 'models', 'loop', 'runner', 'context', 'tool'}])"
    )
    run = run_python(script)
    assert run.stdout == "[]\n"


# --- definitions


@pytest.mark.requirement("B62", "B63")
def test_names_are_derived_from_classes_unless_set() -> None:
    """Snake case without `_tool`, readable on the class."""

    class HTTPFetchTool(ToolDefinition[WeighAction, WeighObservation]):
        pass

    class Other(ToolDefinition[WeighAction, WeighObservation]):
        name: ClassVar[str] = "my_own"

    assert (WeighTool.name, HTTPFetchTool.name, Other.name) == ("weigh", "http_fetch", "my_own")
    assert the_tool().name == "weigh"
    assert the_tool().title == "Scales"
    assert Other(description="", action_type=WeighAction).title == "my_own"  # B77


@pytest.mark.requirement("B6", "B16")
def test_a_definition_can_be_made_directly() -> None:
    """A stateless tool needs no subclass."""
    tool = ToolDefinition(
        name="weigh_now", description="Weigh.", action_type=WeighAction, executor=Scales()
    )
    assert tool(WeighAction(thing="fig")).text == "3 kg"
    with pytest.raises(UserError, match="has no name"):
        ToolDefinition(description="", action_type=WeighAction)
    with pytest.raises(UserError, match=r"my tool"):
        ToolDefinition(name="my tool", description="", action_type=WeighAction)
    with pytest.raises(UserError, match="subclass of Action or a JSON Schema"):
        ToolDefinition(name="x", description="", action_type=int)


@pytest.mark.requirement("B77")
def test_a_definition_exposes_all_of_its_parts() -> None:
    """Registries, exports and policies read them; the title defaults to the name."""
    tool = the_tool()
    assert (tool.name, tool.title, tool.description) == ("weigh", "Scales", "Weigh a thing.")
    assert (tool.action_type, tool.observation_type) == (WeighAction, WeighObservation)
    assert isinstance(tool.executor, Scales)
    assert tool.annotations == ToolAnnotations(title="Scales", readOnlyHint=True)
    assert tool.meta == {"example.com/rank": 1}
    bare = ToolDefinition(name="bare", description="", action_type=WeighAction)
    assert (bare.title, bare.observation_type, bare.executor) == ("bare", None, None)
    assert (bare.annotations, bare.meta) == (None, None)


@pytest.mark.requirement("B5", "B10")
def test_abstract_classes_cannot_be_instantiated() -> None:
    """A tool needs `create`, an executor needs `__call__`."""
    with pytest.raises(TypeError):
        ToolBase()  # type: ignore[abstract]
    with pytest.raises(TypeError):
        ToolExecutor()  # type: ignore[abstract]
    with pytest.raises(NotImplementedError, match=r"no create\(\)"):
        ToolDefinition.create()


@pytest.mark.requirement("B60", "B68", "B69")
def test_calling_a_tool_without_an_executor_is_an_error() -> None:
    """Executors are set on a copy; the original is unchanged."""
    bare = ToolDefinition(name="bare", description="", action_type=WeighAction)
    with pytest.raises(NotImplementedError, match="'bare' has no executor"):
        bare.as_executable()
    able = bare.set_executor(Scales())
    assert bare.executor is None
    assert isinstance(able.as_executable(), ExecutableTool)
    assert able.name == "bare"
    assert able.as_function_tool() is able.as_function_tool()


@pytest.mark.requirement("B3", "B10")
async def test_one_call_validates_executes_and_wraps() -> None:
    """JSON in, observation out; a sync executor runs in a thread."""
    scales = Scales()
    tool = WeighTool.create(scales=scales)[0].as_function_tool()
    assert isinstance(tool, FunctionTool)
    outcome = await tool.call(None, '{"thing": "apple", "unit": "lb"}')
    assert (outcome.status, outcome.output) == ("ok", "5 lb")
    assert isinstance(outcome.value, WeighObservation)
    assert scales.threads[0] != threading.current_thread().name
    assert (await tool.invoke(thing="fig")).weight == 5.0


@pytest.mark.requirement("B74")
async def test_an_error_observation_is_an_error_of_the_call() -> None:
    """The status shows it, the model reads the header, programs get the observation."""
    outcome = await the_tool().as_function_tool().call(None, '{"thing": "ghost"}')
    assert outcome.status == "tool_error"
    assert outcome.output == "[An error occurred during execution.]\nNothing is on the scales."
    assert outcome.value.is_error


def test_an_executor_that_accepts_only_the_action_is_refused() -> None:
    """Each call would fail, and the model would read why."""

    class Short(ToolExecutor[WeighAction, WeighObservation]):
        def __call__(self, action: WeighAction) -> Any:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
            return action

    with pytest.raises(UserError, match=r"expected the parameters \(action, conversation\)"):
        the_tool().set_executor(Short())


@pytest.mark.requirement("B13", "B14")
async def test_invalid_arguments_never_reach_the_executor() -> None:
    """The model reads each error with its place, without its own arguments repeated."""
    scales = Scales()
    tool = WeighTool.create(scales=scales)[0].as_function_tool()
    outcome = await tool.call(None, '{"thing": "Apple1", "places": 9, "colour": "red"}')
    assert outcome.status == "invalid_args"
    assert outcome.output == snapshot("""\
Invalid arguments for tool 'weigh':
- thing: expected a string that matches '^[a-z]+$', got "Apple1"
- places: expected a number less than or equal to 6, got 9
- colour: unknown, the known keys are thing, unit, places\
""")
    assert (await tool.call(None, "not json")).status == "invalid_args"
    for places in ('"3"', "3.0", "null"):  # the rules for parameters of functions
        assert (await tool.call(None, f'{{"thing": "a", "places": {places}}}')).status == "ok"
    for places in ('"x"', "true", "3.5", "[3]"):
        outcome = await tool.call(None, f'{{"thing": "a", "places": {places}}}')
        assert outcome.status == "invalid_args", places
    assert len(scales.threads) == 3


async def test_an_async_executor_runs_on_the_loop() -> None:
    class Later(ToolExecutor[WeighAction, WeighObservation]):
        async def __call__(self, action: WeighAction, conversation: Any = None) -> Observation:
            await asyncio.sleep(0)
            return WeighObservation.from_text(f"{action.thing} of {conversation}")

    tool = the_tool().set_executor(Later())
    outcome = await tool.as_function_tool().call(None, '{"thing": "fig"}')
    assert outcome.output == "fig of None"
    assert (await tool(WeighAction(thing="fig"), "me")).text == "fig of me"


@pytest.mark.requirement("B51")
async def test_an_executor_gets_the_context_of_the_run() -> None:
    """As its `conversation`."""

    class Asking(ToolExecutor[WeighAction, WeighObservation]):
        def __call__(self, action: WeighAction, conversation: Any = None) -> Observation:
            return WeighObservation.from_text(conversation["place"])

    agent = Agent("a", tools=[the_tool().set_executor(Asking())])
    model = ScriptedModel([tool_call("weigh", thing="fig"), "done"])
    result = await Runner.run(
        agent, "go", context={"place": "here"}, run_config=RunConfig(model=model)
    )
    outputs = [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert outputs == ["here"]


async def test_a_cancelled_call_interrupts_its_executor() -> None:
    """The caller no longer waits for the thread, so the executor is asked to stop."""
    started, interrupted = threading.Event(), threading.Event()

    class Slow(ToolExecutor[WeighAction, WeighObservation]):
        def __call__(self, action: WeighAction, conversation: Any = None) -> Observation:
            started.set()
            assert interrupted.wait(10)
            return WeighObservation.from_text("late")

        def interrupt(self) -> None:
            interrupted.set()

    tool = policies.timeout(0.2)(the_tool().set_executor(Slow()).as_function_tool())
    outcome = await tool.call(None, '{"thing": "fig"}')
    assert outcome.status == "timeout"
    assert started.is_set()
    assert await asyncio.to_thread(interrupted.wait, 5)


@pytest.mark.requirement("B85")
async def test_a_result_that_is_not_an_observation_is_coerced_or_refused() -> None:
    """Results are coerced only if an observation type is declared."""

    class Raw(ToolExecutor[WeighAction, Any]):
        def __init__(self, result: Any) -> None:
            self.result = result

        def __call__(self, action: WeighAction, conversation: Any = None) -> Any:
            return self.result

    declared = the_tool().set_executor(Raw({"weight": 2}))
    assert declared(WeighAction(thing="fig")) == WeighObservation(weight=2)
    refused = await the_tool().set_executor(Raw(3)).as_function_tool().call(None, '{"thing": "f"}')
    assert refused.status == "tool_error"
    assert "expected a WeighObservation, got a value of type int" in str(refused.error)
    free = ToolDefinition(
        name="free", description="", action_type=WeighAction, executor=Raw({"a": [1]})
    )
    assert (await free.as_function_tool().call(None, '{"thing": "f"}')).output == '{"a":[1]}'


@pytest.mark.requirement("B79")
async def test_a_tool_can_override_how_arguments_are_read() -> None:
    """The executor gets the result of `action_from_arguments`."""

    class Loud(WeighTool):
        def action_from_arguments(self, arguments: Mapping[str, Any]) -> WeighAction:
            return super().action_from_arguments({**arguments, "thing": "elephant"})

    tool = Loud.create()[0]
    assert (await tool.as_function_tool().call(None, '{"thing": "ant"}')).output == "8 kg"
    with pytest.raises(ModelBehaviorError, match="unit"):
        tool.action_from_arguments({"unit": "stone"})


@pytest.mark.requirement("B94")
async def test_images_reach_the_model_as_images() -> None:
    """Data URLs become data, others stay URLs."""

    class Camera(ToolExecutor[WeighAction, Observation]):
        def __call__(self, action: WeighAction, conversation: Any = None) -> Observation:
            pictures = ImageContent(image_urls=[PIXEL, "https://example.com/a.png"])
            return Observation(content=[TextContent(text="Look:"), pictures])

    tool = ToolDefinition(name="camera", description="", action_type=WeighAction, executor=Camera())
    output = (await tool.as_function_tool().call(None, '{"thing": "fig"}')).output
    assert isinstance(output, list)
    text, image, address = output
    assert text == ToolOutputText("Look:")
    assert isinstance(image, ToolOutputImage)
    assert image.mime_type == "image/png"
    assert image.data is not None
    assert address == ToolOutputImage(url="https://example.com/a.png")


# --- exported schemas


@pytest.mark.requirement("B2", "B56", "B82", "B83")
def test_exported_schemas_are_complete() -> None:
    """Bounds, patterns, defaults, enums and null are all there."""
    assert the_tool().to_openai_tool() == snapshot(
        {
            "type": "function",
            "function": {
                "name": "weigh",
                "description": "Weigh a thing.",
                "parameters": {
                    "additionalProperties": False,
                    "description": "What is weighed.",
                    "properties": {
                        "thing": {
                            "description": "What to weigh",
                            "minLength": 1,
                            "pattern": "^[a-z]+$",
                            "type": "string",
                        },
                        "unit": {"default": "kg", "enum": ["kg", "lb"]},
                        "places": {
                            "maximum": 6,
                            "minimum": 0,
                            "type": ["integer", "null"],
                            "default": 2,
                        },
                    },
                    "required": ["thing"],
                    "type": "object",
                },
            },
        }
    )
    flat = the_tool().to_responses_tool()
    assert (flat["type"], flat["name"], flat["strict"]) == ("function", "weigh", False)
    assert flat["parameters"] == the_tool().to_openai_tool()["function"]["parameters"]


@pytest.mark.requirement("C4")
def test_any_field_name_is_exported() -> None:
    """Parameters named like JSON Schema keywords are ordinary parameters."""

    class Odd(Action):
        title: str
        default: int = 3
        properties: list[str]
        required: bool
        type: str = "x"
        additionalProperties: bool = True  # noqa: N815

    tool = ToolDefinition(name="odd", description="", action_type=Odd)
    parameters = tool.to_openai_tool()["function"]["parameters"]
    assert set(parameters["properties"]) == set(Odd.model_fields)
    assert parameters["required"] == ["title", "properties", "required"]


def test_recursive_and_nested_types_are_exported_completely() -> None:
    """A tree stays a tree, unions keep all their arms, dicts their values."""

    class Node(BaseModel):
        label: str
        children: list[Node] = Field(default_factory=list)

    class Tree(Action):
        root: Node
        either: int | str | None = 5
        table: dict[str, float] = Field(default_factory=dict)
        pair: tuple[int, str] = (1, "a")

    Node.model_rebuild()
    tool = ToolDefinition(name="tree", description="", action_type=Tree)
    assert tool.to_openai_tool()["function"]["parameters"] == snapshot(
        {
            "additionalProperties": False,
            "properties": {
                "root": {"$ref": "#/$defs/Node"},
                "either": {"default": 5, "type": ["integer", "string", "null"]},
                "table": {
                    "additionalProperties": {"type": "number"},
                    "type": "object",
                },
                "pair": {
                    "default": [1, "a"],
                    "maxItems": 2,
                    "minItems": 2,
                    "prefixItems": [{"type": "integer"}, {"type": "string"}],
                    "type": "array",
                },
            },
            "required": ["root"],
            "type": "object",
            "$defs": {
                "Node": {
                    "properties": {
                        "label": {"type": "string"},
                        "children": {
                            "items": {"$ref": "#/$defs/Node"},
                            "type": "array",
                        },
                    },
                    "required": ["label"],
                    "type": "object",
                    "additionalProperties": False,
                }
            },
        }
    )


@pytest.mark.requirement("B20")
def test_security_risk_is_added_only_to_tools_that_change_something() -> None:
    """First in the properties, absent from read-only tools, refused on a clash."""
    changing = ToolDefinition(name="change", description="", action_type=WeighAction)
    parameters = changing.to_openai_tool(add_security_risk_prediction=True)["function"][
        "parameters"
    ]
    assert next(iter(parameters["properties"])) == "security_risk"
    assert parameters["properties"]["security_risk"]["enum"] == ["LOW", "MEDIUM", "HIGH", "UNKNOWN"]
    reading = the_tool().to_responses_tool(add_security_risk_prediction=True)["parameters"]
    assert "security_risk" not in reading["properties"]

    class Clash(Action):
        security_risk: int

    with pytest.raises(UserError, match="Rename the parameter"):
        ToolDefinition(name="clash", description="", action_type=Clash).to_openai_tool(
            add_security_risk_prediction=True
        )


@pytest.mark.requirement("B81")
def test_the_mcp_form_has_all_parts() -> None:
    """Name, title, both schemas, annotations, `_meta`; schemas can be passed."""
    wire = the_tool().to_mcp_tool()
    assert wire["name"] == "weigh"
    assert wire["title"] == "Scales"
    assert wire["_meta"] == {"example.com/rank": 1}
    assert wire["annotations"]["readOnlyHint"] is True
    assert wire["inputSchema"]["required"] == ["thing"]
    assert "weight" in wire["outputSchema"]["properties"]
    given_schemas = the_tool().to_mcp_tool({"type": "object"}, {"type": "object", "title": "T"})
    assert given_schemas["inputSchema"] == {"type": "object"}
    assert given_schemas["outputSchema"]["title"] == "T"
    assert to_mcp(the_tool().as_function_tool())["name"] == "weigh"


def test_another_action_type_can_be_exported() -> None:
    class Small(Action):
        only: int

    parameters = the_tool().to_openai_tool(action_type=Small)["function"]["parameters"]
    assert list(parameters["properties"]) == ["only"]


@pytest.mark.requirement("B37", "B46", "B84")
async def test_a_raw_schema_can_define_an_action() -> None:
    """It is published and enforced unchanged."""
    schema = {
        "type": "object",
        "properties": {
            "level": {"enum": ["low", "high"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 3},
            "who": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
            "data": {"type": ["string", "null"]},
        },
        "required": ["level"],
        "additionalProperties": False,
    }

    class Echo(ToolExecutor[Any, Any]):
        def __call__(self, action: Any, conversation: Any = None) -> Any:
            return Observation.from_text(json.dumps(action.model_dump()))

    tool = ToolDefinition(name="raw", description="", action_type=schema, executor=Echo())
    assert tool.as_function_tool().params_json_schema == schema
    good = '{"level": "low", "count": 2, "who": {"name": "me"}, "data": null}'
    outcome = await tool.as_function_tool().call(None, good)
    assert json.loads(str(outcome.output)) == json.loads(good)
    for bad in ('{"level": "mid"}', '{"level": "low", "count": 9}', "{}", '{"level":"low","x":1}'):
        assert (await tool.as_function_tool().call(None, bad)).status == "invalid_args", bad
    nested = await tool.as_function_tool().call(None, '{"level": "low", "who": {}}')
    assert "name" in str(nested.output)


# --- serialization


@pytest.mark.requirement("B78", "B80", "B87")
def test_definitions_can_be_serialized() -> None:
    """The kind names the class; executors are not serialized."""
    tool = the_tool()
    data = json.loads(tool.model_dump_json())
    assert data["kind"] == "WeighTool"
    assert "executor" not in data
    again = ToolDefinition.model_validate(data)
    assert type(again) is WeighTool
    assert (again.name, again.action_type, again.annotations) == (
        "weigh",
        WeighAction,
        tool.annotations,
    )
    direct = ToolDefinition(name="direct", description="", action_type=WeighAction)
    assert ToolDefinition.model_validate(direct.model_dump()).name == "direct"
    with pytest.raises(ValueError, match=r"no subclass 'Nothing'.*WeighTool"):
        ToolDefinition.resolve_kind("Nothing")


@pytest.mark.requirement("B57")
@given(
    st.text(min_size=1, max_size=20),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_observations_round_trip(text: str, is_error: bool, weight: float) -> None:
    text = text.encode("utf-8", "replace").decode()
    seen = WeighObservation.from_text(text, is_error=is_error, weight=weight)
    assert WeighObservation.model_validate_json(seen.model_dump_json()) == seen


# --- closing


@pytest.mark.requirement("B11", "B61")
def test_a_shared_executor_is_closed_once() -> None:
    """However many tools have it, and however often they are closed."""
    scales = Scales()
    first, second = WeighTool.create(scales=scales)[0], WeighTool.create(scales=scales)[0]
    first.close()
    second.close()
    close_executors([scales, scales])
    assert scales.closed == 1


@pytest.mark.requirement("B11")
def test_executors_are_closed_at_exit() -> None:
    """Even if the program forgets it, or another executor fails to close."""
    script = """
from agents_tools import Action, Observation, ToolExecutor
class Bad(ToolExecutor):
    def __call__(self, action, conversation=None): ...
    def close(self): raise RuntimeError("no")
class Good(Bad):
    def __init__(self): pass
    def close(self): print("closed")
kept = [Good(), Bad(), Good()]
"""
    run = run_python(script)
    assert run.stdout == "closed\nclosed\n"
    assert "Bad could not be closed" in run.stderr
    assert "Traceback" in run.stderr  # in the log, not as the end of the program


# --- policies on risk


async def test_approve_destructive_requires_approval_for_destructive_tools() -> None:
    """Read-only tools run, others are denied without an approver."""
    changing = ToolDefinition(
        name="change", description="", action_type=WeighAction, executor=Scales()
    )
    tools = [policies.approve_destructive()(one) for one in (the_tool(), changing)]  # type: ignore[type-var]
    outcomes = [await tool.call(None, '{"thing": "fig"}') for tool in tools]  # type: ignore[attr-defined]
    assert [one.status for one in outcomes] == ["ok", "denied"]


@pytest.mark.requirement("B20", "B50")
async def test_the_security_risk_is_removed_and_available_to_policies() -> None:
    """The tool itself does not get it as an argument."""
    seen: list[str] = []

    def risky(context: Any, arguments: dict[str, Any]) -> bool:
        seen.append(context.security_risk)
        assert "security_risk" not in arguments
        return context.security_risk == "HIGH"

    changing = ToolDefinition(
        name="change", description="", action_type=WeighAction, executor=Scales()
    ).as_function_tool()
    tool = policies.needs_approval(risky)(policies.security_risk()(changing))
    assert next(iter(tool.params_json_schema["properties"])) == "security_risk"
    statuses = [
        (await tool.call(None, text)).status
        for text in (
            '{"security_risk": "LOW", "thing": "fig"}',
            '{"security_risk": "HIGH", "thing": "fig"}',
            '{"thing": "fig"}',
            '{"security_risk": "huge", "thing": "fig"}',
        )
    ]
    assert statuses == ["ok", "denied", "ok", "invalid_args"]
    assert seen[:3] == ["LOW", "HIGH", "UNKNOWN"]
    assert policies.security_risk()(the_tool().as_function_tool()).params_json_schema == (
        the_tool().as_function_tool().params_json_schema
    )


@pytest.mark.requirement("B54")
async def test_agents_accept_class_based_tools_and_lists_of_them() -> None:
    """The result of `create` can be passed in `tools=[...]` as it is."""
    other = ToolDefinition(name="other", description="", action_type=WeighAction)
    agent = Agent("a", tools=[WeighTool.create(), [other]])
    assert list(agent.tools_map) == ["weigh", "other"]
    with pytest.raises(UserError, match=r"WeighTool\.create\(\)"):
        Agent("a", tools=[WeighTool])  # pyright: ignore[reportArgumentType]


@pytest.mark.requirement("B18")
def test_annotations_have_the_defaults_of_the_protocol() -> None:
    """Hints are immutable."""
    hints = ToolAnnotations()
    assert (hints.readOnlyHint, hints.destructiveHint) == (False, True)
    assert (hints.idempotentHint, hints.openWorldHint, hints.title) == (False, True, None)
    with pytest.raises(AttributeError):
        hints.readOnlyHint = True  # type: ignore[misc]


@pytest.mark.requirement("B27", "B28")
def test_an_agent_has_its_tools_by_name() -> None:
    """Including several tools of one factory."""
    registry = ToolRegistry()
    registry.register("pair", lambda: [the_tool()])
    agent = Agent("a", tools=registry.resolve("pair"))
    assert set(agent.tools_map) == {"weigh"}
    assert isinstance(agent.tools_map["weigh"], FunctionTool)
