"""Requirements of class-based tools that no other test covers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field, ValidationError

from agents_tools import (
    Action,
    BaseTool,
    BaseToolParams,
    ImageContent,
    ModelBehaviorError,
    Observation,
    TextContent,
    ToolAnnotations,
    ToolContext,
    ToolDefinition,
    ToolExecutor,
    ToolSpec,
)
from agents_tools.builtin import GlobTool
from agents_tools.builtin.terminal import TerminalTool
from agents_tools.content import Usage
from agents_tools.conversation import LLM, Agent, Conversation, LLMConvertibleEvent
from agents_tools.policies import needs_approval
from agents_tools.registry import default_registry
from agents_tools.testing import ScriptedModel, tool_call


class Look(Action):
    """Look at a place."""

    place: str = Field(description="Where to look")

    @property
    def visualize(self) -> str:
        return f"looks at {self.place}"


class Seen(Observation):
    """What was recorded."""

    height: int = 0

    @property
    def to_llm_content(self) -> Sequence[Any]:
        return [TextContent(text=f"It is {self.height} m high.")]


class Eyes(ToolExecutor[Look, Seen]):
    """Sees."""

    def __call__(self, action: Look, conversation: Any = None) -> Seen:
        return Seen.from_text("a tower", height=len(action.place))


def looking() -> ToolDefinition[Look, Seen]:
    return ToolDefinition(
        name="look",
        description="Look.",
        action_type=Look,
        observation_type=Seen,
        executor=Eyes(),
    )


@pytest.mark.requirement("B8", "B9")
async def test_overrides_define_the_text_for_people_and_models() -> None:
    """The text of an override is shown, and not the other fields."""
    assert Look(place="Pisa").visualize == "looks at Pisa"
    outcome = await looking().as_function_tool().call(None, '{"place": "Pisa"}')
    assert outcome.output == "It is 4 m high."
    assert isinstance(outcome.value, Seen)
    assert outcome.value.text == "a tower"


@pytest.mark.requirement("B20")
def test_built_in_tools_that_change_something_ask_for_the_risk(
    tmp_path: Path,
) -> None:
    """The shell does; a search does not."""
    for tool, asks in ((TerminalTool, True), (GlobTool, False)):
        (made,) = tool.create(working_dir=tmp_path)
        for form in (
            made.to_openai_tool(add_security_risk_prediction=True)["function"],
            made.to_responses_tool(add_security_risk_prediction=True),
        ):
            assert ("security_risk" in form["parameters"]["properties"]) is asks
        made.close()


@pytest.mark.requirement("B29")
@pytest.mark.parametrize(
    ("definition", "implementation"),
    [
        ("terminal", "terminal.impl"),
        ("file_editor", "file_editor.impl"),
        ("skill", "_skill_impl"),
    ],
)
def test_a_definition_is_loaded_without_its_implementation(
    definition: str, implementation: str
) -> None:
    """Its module, processes and locks are not needed."""
    program = (
        f"import sys, agents_tools.builtin.{definition}\n"
        f"assert 'agents_tools.builtin.{implementation}' not in sys.modules\n"
        "assert not {'subprocess', 'fcntl', 'pty'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)  # noqa: S603


@pytest.mark.requirement("B46")
def test_an_action_of_a_schema_keeps_defaults_and_unions() -> None:
    """A value that matches no alternative is rejected."""
    schema = {
        "type": "object",
        "properties": {
            "level": {"enum": ["low", "high"], "default": "low"},
            "size": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}]},
            "who": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                "required": ["name"],
            },
        },
        "required": ["size"],
    }
    made: Any = Action.from_mcp_schema("Raw", schema)
    assert made.model_json_schema() == schema
    for size in (3, "all"):
        action = made.model_validate({"size": size})
        assert (action.size, action.level, action.who) == (size, "low", None)
    for bad in ({}, {"size": 0}, {"size": "some"}, {"size": 1, "level": "mid"}):
        with pytest.raises((ValidationError, ModelBehaviorError)):
            made.model_validate(bad)
    with pytest.raises((ValidationError, ModelBehaviorError), match="name"):
        made.model_validate({"size": 1, "who": {"age": 3}})


@pytest.mark.requirement("B50")
async def test_an_approval_callback_gets_arguments_and_annotations() -> None:
    """One rule for all tools can approve read-only calls."""
    seen: list[tuple[str, dict[str, Any]]] = []

    def rule(context: ToolContext[Any], arguments: dict[str, Any]) -> bool:
        seen.append((context.tool_name, arguments))
        notes = context.call_record.tool.annotations
        return notes is None or not notes.read_only

    reading = looking().model_copy(update={"annotations": ToolAnnotations(readOnlyHint=True)})
    both = (
        needs_approval(rule)(looking().as_function_tool()),
        needs_approval(rule)(reading.as_function_tool()),
    )
    statuses = [(await tool.call(None, '{"place": "Pisa"}')).status for tool in both]
    assert statuses == ["denied", "ok"]
    assert seen == [("look", {"place": "Pisa"})] * 2


@pytest.mark.requirement("B66")
def test_a_language_model_sums_the_cost_of_its_runs(tmp_path: Path) -> None:
    """Tokens times prices, over all runs of a conversation."""
    model = ScriptedModel(
        ["One.", "Two."], usage=Usage(requests=1, input_tokens=9, output_tokens=2)
    )
    llm = LLM(model=model, input_cost_per_token=0.5, output_cost_per_token=2.0)
    assert llm.metrics.accumulated_cost == 0
    with Conversation(Agent(llm=llm), workspace=tmp_path) as talk:
        for runs in (1, 2):
            talk.send_message("Go.")
            talk.run()
            assert llm.metrics.accumulated_cost == runs * (9 * 0.5 + 2 * 2.0)
    assert (llm.metrics.input_tokens, llm.metrics.output_tokens) == (18, 4)


@pytest.mark.requirement("B59")
def test_the_text_of_an_observation_joins_all_its_text_parts() -> None:
    """Images between them have none."""
    picture = ImageContent(image_urls=["https://example.com/a.png"])
    seen = Observation(content=[TextContent(text="a tower"), picture, TextContent(text=", tall")])
    assert seen.text == "a tower, tall"
    assert Observation(content=[picture]).text == ""


@pytest.mark.requirement("B78")
def test_an_executor_is_in_no_schema_of_its_tool() -> None:
    """It is an object of this process, and cannot be sent by a model."""
    for tool in (ToolDefinition, TerminalTool):
        assert "executor" not in tool.model_json_schema()["properties"]


class Level(ToolDefinition[Look, Seen]):
    """A tool with a field of its own."""

    height: int = 3


class Box(BaseModel):
    """A record of an application that contains tools of all kinds."""

    tools: list[ToolDefinition]  # type: ignore[type-arg]
    others: list[ToolDefinition[Any, Any]]


@pytest.mark.requirement("B87")
def test_tools_in_a_record_keep_their_class_after_serialization(tmp_path: Path) -> None:
    """The fields of each class are restored, however the list is annotated."""
    level = Level(description="", action_type=Look, height=5)
    (found,) = GlobTool.create(working_dir=tmp_path)
    box = Box(tools=[level, found, looking()], others=[level, found])
    back = Box.model_validate_json(box.model_dump_json())
    assert [type(one) for one in back.tools] == [Level, GlobTool, ToolDefinition]
    assert [type(one) for one in back.others] == [Level, GlobTool]
    for again in (back.tools[0], back.others[0]):
        assert isinstance(again, Level)
        assert again.height == 5
    assert "height" not in level.model_dump(exclude={"height"})
    (low,) = Box(tools=[], others=[Level(description="", action_type=Look)]).model_dump(
        exclude_defaults=True
    )["others"]
    assert "height" not in low
    found.close()


@pytest.mark.requirement("B21", "B22", "B23")
async def test_a_specification_with_parameters_creates_the_tool(tmp_path: Path) -> None:
    """The name can be that of the class, and the parameters reach the factory."""
    spec = ToolSpec(name="BashTool", params={"working_dir": str(tmp_path)})
    (made,) = default_registry.make(ToolSpec.model_validate_json(spec.model_dump_json()))
    try:
        outcome = await made.as_function_tool().call(None, '{"command": "pwd"}')
    finally:
        made.close()
    assert (made.name, outcome.output) == ("execute_bash", f"{tmp_path}\n")


@pytest.mark.requirement("B12", "B65")
def test_the_messages_of_a_conversation_equal_those_of_the_model(tmp_path: Path) -> None:
    """The log contains exactly what the model read and wrote."""
    model = ScriptedModel([tool_call("look", place="Pisa"), "It is 4 m high."])
    told: list[dict[str, Any]] = []

    def keep(event: Any) -> None:
        if isinstance(event, LLMConvertibleEvent):
            told.append(event.to_llm_message())

    agent = Agent(llm=LLM(model=model), tools=[[looking()]], include_default_tools=[])
    with Conversation(agent, workspace=tmp_path, callbacks=[keep]) as talk:
        talk.send_message("How high is it?")
        talk.run()
    user, call, answer, last = told
    sent: Any = model.requests[-1].input
    sent_user, sent_call, sent_answer = sent
    assert (user["role"], user["content"]) == ("user", sent_user.content)
    (asked,) = call["tool_calls"]
    assert asked["id"] == answer["tool_call_id"] == sent_call.call_id == sent_answer.call_id
    assert asked["function"] == {"name": sent_call.name, "arguments": sent_call.arguments}
    assert (answer["role"], answer["content"]) == ("tool", sent_answer.output)
    assert (last["role"], last["content"]) == ("assistant", "It is 4 m high.")


class CountParams(BaseToolParams):
    """Count up to a number."""

    name: ClassVar[str] = "count"

    limit: int = Field(ge=1, description="Where to end")


class CountTool(BaseTool):
    """Counts."""

    name: ClassVar[str] = "count"
    params_class: ClassVar[type[BaseToolParams]] = CountParams

    def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
        params: Any = self.parse_params(args_json)
        return ", ".join(str(number + 1) for number in range(params.limit)), {}


@pytest.mark.requirement("C1", "C3", "C5")
def test_parameters_are_parsed_or_the_invalid_one_is_named() -> None:
    """An author works with the record, a model with the message."""
    tool = CountTool()
    params = tool.parse_params('{"limit": 3}')
    assert isinstance(params, CountParams)
    assert params.limit == 3
    for text, told in (('{"limit": 0}', "limit"), ("{}", "limit"), ("[", "JSON")):
        with pytest.raises(ModelBehaviorError, match=told):
            tool.parse_params(text)
    spec = tool.get_tool_spec()["function"]
    assert (spec["name"], spec["description"]) == ("count", "Count up to a number.")

    class Abstract(BaseTool):
        name: ClassVar[str] = "abstract"
        params_class: ClassVar[type[BaseToolParams]] = CountParams

    with pytest.raises(TypeError, match="execute"):
        Abstract()  # type: ignore[abstract] # pyright: ignore[reportAbstractUsage]


@pytest.mark.requirement("C19")
async def test_a_command_runs_with_and_without_a_timeout(tmp_path: Path) -> None:
    """Only the command is required."""
    (tmp_path / "script.py").write_text("print(6 * 7)\n")
    (definition,) = TerminalTool.create(working_dir=tmp_path)
    tool = definition.as_function_tool()
    try:
        assert tool.params_json_schema["required"] == ["command"]
        assert tool.params_json_schema["properties"]["timeout"]["default"] is None
        listed = await tool.call(None, '{"command": "ls -la"}')
        assert "script.py" in str(listed.output)
        ran = await tool.call(None, '{"command": "python3 script.py", "timeout": 60}')
        assert ran.output == "42\n"
        late = await tool.call(None, '{"command": "cat <(sleep 60)", "timeout": 1}')
        assert late.value.timed_out
    finally:
        definition.close()
