"""Canonical arguments: what approvals, guardrails and caches see, and what the body gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr

from agents_tools import (
    Agent,
    FunctionTool,
    ModelBehaviorError,
    RunConfig,
    Runner,
    RunResult,
    ToolApprovalItem,
    ToolCallOutputItem,
    ToolContext,
    function_tool,
    listen,
    streaming_tool,
)
from agents_tools.policies import (
    ArgTransform,
    cache,
    hide,
    input_guardrail,
    needs_approval,
    retry,
    transform,
)
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tool import Decision

SPELLINGS = {
    "complete": '{"version": 7, "env": "prod"}',
    "left out": '{"version": 7}',
    "null": '{"version": "7", "env": null}',
    "as text": json.dumps('{"version": 7}'),
}


@function_tool
async def deploy(version: int, env: str = "prod") -> str:
    return f"{version} is on {env}"


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("place", ["outside", "inside"])
async def test_a_rule_sees_one_form_of_a_call(spelling: str, place: str) -> None:
    """A rule about an argument cannot be bypassed by another spelling of the call."""
    seen: list[dict[str, Any]] = []

    def is_production(_: Any, arguments: dict[str, Any]) -> bool:
        seen.append(arguments)
        return arguments["env"] == "prod"

    names = transform(env=ArgTransform(name="stage"))
    policy = needs_approval(is_production)
    tool = policy(names(deploy)) if place == "outside" else names(policy(deploy))
    outcome = await tool.call(None, SPELLINGS[spelling].replace("env", "stage"))
    assert outcome.status == "denied"
    assert seen == [{"version": 7, "env": "prod"}]
    assert (await tool.call(None, '{"version": 7, "stage": "test"}')).status == "ok"


async def test_four_spellings_of_a_call_are_one_cache_entry() -> None:
    runs: list[int] = []

    @cache()
    @function_tool
    async def count(version: int, env: str = "prod") -> int:
        runs.append(version)
        return len(runs)

    assert [await count.on_invoke_tool(None, text) for text in SPELLINGS.values()] == ["1"] * 4


async def test_secrets_that_look_alike_are_different_calls() -> None:
    """Arguments are compared as JSON, not as the Python values that hide their text."""

    @cache()
    @function_tool
    async def sign_in(password: SecretStr) -> str:
        return password.get_secret_value()

    texts = [f'{{"password": "{word}"}}' for word in ("a", "b", "a")]
    assert [await sign_in.on_invoke_tool(None, text) for text in texts] == ["a", "b", "a"]


async def test_a_tool_that_reads_its_arguments_itself_gets_them_byte_for_byte() -> None:
    seen: list[Any] = []

    async def receive(_: Any, args_json: str) -> str:
        seen.append(args_json)
        return "ok"

    tool = FunctionTool(
        name="raw",
        description="",
        params_json_schema={"type": "object", "properties": {"n": {"default": 1}}},
        on_invoke_tool=receive,
    )
    watched = input_guardrail(lambda _, arguments: seen.append(arguments))(retry(2)(tool))
    for text in ('{ "n":  "2" }', "not JSON", ""):
        await watched.call(None, text)
    assert seen == [{"n": "2"}, '{ "n":  "2" }', {}, "not JSON", {}, ""]


# --- what the body gets


async def test_each_attempt_gets_values_of_its_own() -> None:
    """An attempt that modifies its arguments does not affect the next one."""
    seen: list[Any] = []

    @retry(3, backoff=0)
    @function_tool
    async def collect(
        words: list[str],
        more: list[str] = [],  # noqa: B006 - a mutable default is the point of the test
        options: dict[str, list[int]] | None = None,
    ) -> str:
        seen.append((list(words), list(more), options and dict(options)))
        words.append("x")
        more.append("x")
        if options is not None:
            options.clear()
        if len(seen) < 3:
            raise ConnectionError
        return "done"

    text = '{"words": ["a"], "options": {"b": [1]}}'
    assert await collect.on_invoke_tool(None, text) == "done"
    assert seen == [(["a"], [], {"b": [1]})] * 3


async def test_a_default_factory_is_called_once_per_call() -> None:
    """Guardrails, the cache key and all attempts see the same value."""
    made: list[int] = []
    seen: list[Any] = []

    def make() -> int:
        made.append(len(made) + 1)
        return made[-1]

    @input_guardrail(lambda _, arguments: seen.append(arguments["number"]))
    @retry(3, backoff=0)
    @function_tool
    async def draw(
        ctx: ToolContext[Any], number: Annotated[int, Field(default_factory=make)]
    ) -> str:
        seen.append(number)
        if ctx.attempt < 3:
            raise ConnectionError
        return "done"

    assert await draw.on_invoke_tool(None, "{}") == "done"
    assert await draw.on_invoke_tool(None, '{"number": 9}') == "done"
    assert await draw.on_invoke_tool(None, "{}") == "done"
    assert seen == [1] * 4 + [9] * 4 + [2] * 4
    assert made == [1, 2]


PROGRAM = """
import itertools, os, sys
from pathlib import Path
from typing import Annotated
from pydantic import Field
from agents_tools import Agent, Runner, function_tool
from agents_tools.agents import RunState
from agents_tools.policies import needs_approval, retry
from agents_tools.testing import ScriptedModel, tool_call

numbers = itertools.count(int(sys.argv[2]))


@needs_approval
@retry(2, backoff=0)
@function_tool
async def book(city: str, ticket: Annotated[int, Field(default_factory=lambda: next(numbers))]) -> str:
    print("attempt", ticket)
    raise ConnectionError


file = Path(sys.argv[1])
call = tool_call("book", city="Bonn")
agent = Agent("Clerk", tools=[book], model=ScriptedModel([call, "Done."] if not file.exists() else ["Done."]))
if not file.exists():
    result = Runner.run_sync(agent, "Book.")
    print(result.interruptions[0].arguments)
    file.write_text(result.to_state().to_json())
else:
    state = RunState.from_json(file.read_text())
    state.approve(state.interruptions[0])
    print(Runner.run_sync(agent, state).final_output)
"""


@pytest.mark.slow
def test_the_created_default_that_was_approved_is_used_in_another_process(tmp_path: Path) -> None:
    """A person approves what is booked, not a value that is created later."""
    program = tmp_path / "clerk.py"
    program.write_text(PROGRAM)

    def run(first: int) -> str:
        command = [sys.executable, str(program), str(tmp_path / "state.json"), str(first)]
        return subprocess.run(  # noqa: S603 - a program of this test
            command, capture_output=True, text=True, check=True
        ).stdout

    assert run(100) == '{"city":"Bonn","ticket":100}\n'
    assert run(500) == "attempt 100\nattempt 100\nDone.\n"


# --- hidden values


async def test_hidden_values_are_absent_from_approvals_events_and_history() -> None:
    """Only the body, a hidden value's function and the cache key have them."""
    key = "key-1234567890"
    seen: list[Any] = []

    def watch(ctx: ToolContext[Any], arguments: dict[str, Any]) -> None:
        seen.append((dict(ctx.arguments), arguments))

    @streaming_tool
    async def fetch(ctx: ToolContext[Any], url: str, token: str, times: int = 1):
        seen.append((dict(ctx.arguments), token))
        ctx.notify("fetching")
        yield f"the text of {url}"

    tool = needs_approval(
        hide(token=key)(input_guardrail(watch)(transform(url=ArgTransform(name="page"))(fetch)))
    )
    shown: list[ToolApprovalItem] = []
    config = RunConfig(approve=lambda item: shown.append(item) or True)
    model = ScriptedModel([tool_call("fetch", page="a"), "Done."])
    agent = Agent("Reader", tools=[tool], model=model)
    async with listen() as events:
        result = await Runner.run(agent, "Read.", run_config=config)
    assert [event.type for event in events].count("notify_stream_event") == 1
    arguments = {"url": "a", "times": 1}
    assert seen == [(arguments, arguments), (arguments, key)]
    assert [json.loads(item.arguments) for item in shown] == [arguments]
    assert result.final_output == "Done."
    for text in (repr(list(events)), repr(result.new_items), repr(result.to_input_list())):
        assert key not in text
    waiting = await Runner.run(
        Agent("Reader", tools=[tool], model=ScriptedModel([tool_call("fetch", page="a")])), "Read."
    )
    assert key not in waiting.to_state().to_json()


async def test_a_person_cannot_change_a_hidden_value() -> None:
    """Neither can a model or a guardrail."""

    @function_tool
    async def fetch(url: str, key: str) -> str:
        return f"{url} {key}"

    guard = input_guardrail(lambda _, arguments: {**arguments, "key": "guard"})
    tool = needs_approval(guard(hide(key="a key")(fetch)))
    edit = Decision(approved=True, arguments='{"url": "b", "key": "person"}')
    outcome = await tool.call(ToolContext(decision=Decision(approved=True)), '{"url": "a"}')
    assert outcome.output == "a a key"
    model = ScriptedModel([tool_call("fetch", url="a"), "Done."])
    config = RunConfig(approve=lambda _: edit)
    result = await Runner.run(Agent("R", tools=[tool], model=model), "Go.", run_config=config)
    [output] = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert str(output.output).endswith("\nb a key")
    assert (await tool.call(None, '{"url": "a", "key": "model"}')).status == "invalid_args"


async def test_hidden_values_use_the_names_outside_of_a_renaming_policy() -> None:
    """`hide` names the arguments of the tool that it gets."""
    renamed = transform(version=ArgTransform(name="release", required=True))(deploy)
    tool = hide(release=3)(renamed)
    assert set(tool.params_json_schema["properties"]) == {"env"}
    assert await tool.on_invoke_tool(None, "{}") == "3 is on prod"
    assert await tool.on_invoke_tool(None, '{"env": "test"}') == "3 is on test"


# --- approvals inside tools


def _outer(tool: Any) -> Any:
    @function_tool
    async def release(ctx: ToolContext[Any]) -> str:
        outcome = await tool.call(ctx, '{"version": "7"}')
        return f"{outcome.status}: {outcome.output}"

    return release


async def _release(tool: Any, **options: Any) -> tuple[str, RunResult]:
    agent = Agent("R", tools=[_outer(tool)], model=ScriptedModel([tool_call("release"), "Done."]))
    result = await Runner.run(agent, "Go.", run_config=RunConfig(**options))
    [output] = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    return str(output.output), result


async def test_a_call_inside_a_tool_uses_the_approver_of_the_run() -> None:
    """The person sees the canonical arguments, and edited ones apply."""
    shown: list[ToolApprovalItem] = []
    answers: list[Any] = [True, False, Decision(approved=True, arguments='{"version": 8}')]

    async def decide(item: ToolApprovalItem) -> Any:
        shown.append(item)
        return answers.pop(0)

    tool = needs_approval(deploy)
    texts = [(await _release(tool, approve=decide))[0] for _ in range(3)]
    assert texts == [
        "ok: 7 is on prod",
        "denied: A person refused this call of 'deploy'.",
        "ok: 8 is on prod",
    ]
    for item in shown:
        assert (item.name, item.arguments) == ("deploy", '{"version":7,"env":"prod"}')
        assert (item.agent, item.path) == ("R", ("call_1",))


async def test_a_call_inside_a_tool_is_denied_without_an_approver() -> None:
    """The body of a Python function cannot be suspended."""
    text, result = await _release(needs_approval(deploy))
    assert text.startswith("denied: Tool 'deploy' needs the approval of a person")
    assert result.interruptions == []
    assert result.final_output == "Done."


@pytest.mark.parametrize("where", ["run", "tool"])
async def test_guardrails_check_the_arguments_that_a_person_edited(where: str) -> None:
    """A person cannot bypass them by mistake."""

    def check(_: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["version"] > 7:
            raise PermissionError("too new")
        return arguments

    tool = needs_approval(input_guardrail(check)(deploy))
    edit = Decision(approved=True, arguments='{"version": 8}')
    if where == "tool":
        text, _ = await _release(tool, approve=lambda _: edit)
    else:
        model = ScriptedModel([tool_call("deploy", version=7), "Done."])
        agent = Agent("R", tools=[tool], model=model)
        config = RunConfig(approve=lambda _: edit)
        result = await Runner.run(agent, "Go.", run_config=config)
        [output] = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
        text = str(output.output)
    assert "too new" in text


async def test_a_decision_can_be_passed_with_the_context() -> None:
    """A framework that has asked a person itself passes the decision."""
    tool = needs_approval(deploy)
    for decision, expected in (
        (Decision(approved=True), "ok"),
        (Decision(approved=False, message="No."), "denied"),
        (None, "denied"),
    ):
        context: ToolContext[Any] = ToolContext(decision=decision)
        assert (await tool.call(context, '{"version": 7}')).status == expected


def test_a_tool_parses_arguments_without_a_call() -> None:
    """`tool.parse` returns what a call would get."""
    assert deploy.parse('{"version": "7"}') == {"version": 7, "env": "prod"}
    with pytest.raises(ModelBehaviorError, match="expected an integer"):
        deploy.parse('{"version": "x"}')


# --- pydantic models with rules of their own


class Options(BaseModel):
    """Accepts other spellings than its schema says, as pydantic models do by default."""

    dry_run: bool = True
    count: int = 1
    env: str = "prod"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, {"dry_run": True, "count": 1, "env": "prod"}),
        ({"dry_run": "off", "count": "2"}, {"dry_run": False, "count": 2, "env": "prod"}),
        ({"dry_run": 0, "count": 2.0}, {"dry_run": False, "count": 2, "env": "prod"}),
    ],
)
@pytest.mark.parametrize("place", ["required", "optional", "listed", "nested"])
async def test_a_rule_sees_what_a_model_makes_of_a_value(
    sent: dict[str, Any], expected: dict[str, Any], place: str
) -> None:
    """A rule about a switch cannot be bypassed with the text that stands for it."""
    seen: list[Any] = []
    got: list[Options] = []

    @input_guardrail(lambda _, arguments: seen.append(arguments[place]))
    @function_tool
    async def run(
        required: Options | None = None,
        optional: Options | None = None,
        listed: list[Options] | None = None,
        nested: dict[str, list[Options | None]] | None = None,
    ) -> str:
        found = {
            "required": required,
            "optional": optional,
            "listed": listed and listed[0],
            "nested": nested and nested["x"][1],
        }[place]
        assert isinstance(found, Options)
        got.append(found)
        return "done"

    wrap = {"listed": lambda one: [one], "nested": lambda one: {"x": [None, one]}}.get(
        place, lambda one: one
    )
    assert await run.on_invoke_tool(None, json.dumps({place: wrap(sent)})) == "done"
    assert seen == [wrap(expected)]
    assert [one.model_dump() for one in got] == [expected]


class Renamed(BaseModel):
    """Accepts the name of a field next to its published alias."""

    model_config = ConfigDict(populate_by_name=True)

    env: str = Field("test", alias="Env")


class Choice(BaseModel):
    env: str = Field("test", validation_alias=AliasChoices("Env", "stage"))
    inner: list[Renamed] = []


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"Env": "prod"}, "prod"),
        ({"stage": "prod"}, "prod"),
        ({"Env": "prod", "stage": "test"}, "prod"),
        ({"env": "prod"}, "test"),
        ({"inner": [{"env": "prod"}]}, "prod"),
        ({"inner": [{"Env": "prod", "env": "test"}]}, "prod"),
    ],
)
async def test_a_rule_sees_the_published_keys_of_a_model(
    sent: dict[str, Any], expected: str
) -> None:
    """A rule about a field cannot be bypassed with another name that the model accepts."""
    seen: list[str] = []

    def look(_: Any, arguments: dict[str, Any]) -> None:
        choice = arguments["choice"]
        seen.append((choice.get("inner") or [choice])[0]["Env"])

    @input_guardrail(look)
    @function_tool
    async def run(choice: Choice) -> str:
        return choice.inner[0].env if choice.inner else choice.env

    assert await run.on_invoke_tool(None, json.dumps({"choice": sent})) == expected
    assert seen == [expected]
