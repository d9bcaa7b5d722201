"""Own policies: a subclass of `Policy` can act at each moment of a call."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from agents_tools import (
    Action,
    Agent,
    CallOutcome,
    Event,
    FunctionTool,
    ModelBehaviorError,
    NotifyStreamEvent,
    Observation,
    RunConfig,
    Runner,
    ToolContext,
    ToolDefinition,
    ToolDeniedError,
    ToolExecutor,
    ToolStreamStartEvent,
    UserError,
    function_tool,
    listen,
)
from agents_tools.policies import (
    ArgTransform,
    Call,
    Policy,
    cache,
    needs_approval,
    retry,
    transform,
)
from agents_tools.testing import ScriptedModel, tool_call

ran: list[tuple[str, int]] = []


@pytest.fixture(autouse=True)
def _clear_ran() -> None:
    ran.clear()


@function_tool
async def search(ctx: ToolContext[Any], query: str, limit: int = 10) -> str:
    """Search.

    Args:
        query: The words to search for.
        limit: The maximum number of results.
    """
    ran.append((query, limit))
    ctx.notify(f"searching {query}")
    return f"{limit} results for {query}"


async def outcome_of(tool: FunctionTool[..., Any], **arguments: Any) -> CallOutcome:
    return await tool.call(None, json.dumps(arguments))


# --- one policy for each moment


class Shouting(Policy):
    """Publishes an argument `loud`, and maps it to the query."""

    def schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        schema["properties"]["loud"] = {"type": "boolean", "default": False}
        return schema

    async def map_arguments(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments.pop("loud", False):
            arguments["query"] = str(arguments["query"]).upper()
        return arguments


async def test_schema_and_map_arguments_publish_and_convert_an_argument() -> None:
    tool = Shouting()(search)
    assert list(tool.params_json_schema["properties"]) == ["query", "limit", "loud"]
    assert "loud" not in search.params_json_schema["properties"]
    assert (await outcome_of(tool, query="tea", loud=True)).output == "10 results for TEA"
    assert (await outcome_of(tool, query="tea")).output == "10 results for tea"
    assert (await outcome_of(tool, query="tea", load=True)).status == "invalid_args"


async def test_the_history_has_the_arguments_of_the_model() -> None:
    async with listen() as events:
        await outcome_of(Shouting()(search), query="tea", loud=True)
    start = next(iter(events))
    assert isinstance(start, ToolStreamStartEvent)
    assert start.input_args == {"query": "tea", "loud": True}


class WithoutFence(Policy):
    """Removes the fence of a Markdown code block around the arguments."""

    def repair_text(self, call: Call, text: str) -> str:
        if not text.startswith("```"):
            return text
        call.note("fence", True)
        return text.strip("`").removeprefix("json").strip()


async def test_repair_text_fixes_text_that_is_not_json() -> None:
    tool = WithoutFence()(search)
    outcome = await tool.call(None, '```json\n{"query": "tea"}\n```')
    assert (outcome.output, outcome.metadata) == (
        "10 results for tea",
        {"agents_tools": {"fence": True}},
    )
    assert (await tool.call(None, "{")).status == "invalid_args"


class Polite(Policy):
    """Adds a remedy to errors about arguments."""

    def map_error(self, call: Call, error: ModelBehaviorError) -> Exception:
        return ModelBehaviorError(f"{error}\nSee the manual of {call.tool_name}.")

    async def map_arguments(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments


async def test_map_error_changes_an_error_about_the_arguments() -> None:
    outcome = await outcome_of(Polite()(search), query="tea", limit="many")
    assert outcome.status == "invalid_args"
    assert str(outcome.output).endswith("\nSee the manual of search.")


class NotAtNight(Policy):
    """Refuses calls, and limits the number of results."""

    def __init__(self, *, is_night: bool) -> None:
        self.is_night = is_night

    async def before(self, call: Call) -> Mapping[str, Any] | None:
        if self.is_night:
            raise ToolDeniedError(f"{call.tool_name} is closed at night.")
        if call.arguments["limit"] > 5:
            return {**call.arguments, "limit": 5}
        return None


async def test_before_refuses_a_call_or_replaces_its_arguments() -> None:
    outcome = await outcome_of(NotAtNight(is_night=True)(search), query="tea")
    assert (outcome.status, outcome.output) == ("denied", "search is closed at night.")
    assert ran == []
    tool = NotAtNight(is_night=False)(search)
    assert (await outcome_of(tool, query="tea")).output == "5 results for tea"
    assert (await outcome_of(tool, query="tea", limit="2")).output == "2 results for tea"


class Replace(Policy):
    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments

    async def before(self, call: Call) -> Mapping[str, Any]:
        return self.arguments


async def test_arguments_that_before_returns_are_validated() -> None:
    assert (await outcome_of(Replace(query="x", limit="3")(search), query="tea")).output == (
        "3 results for x"
    )
    assert (await outcome_of(Replace(limit=3)(search), query="tea")).status == "invalid_args"
    assert ran == [("x", 3)]


class Recorded(Policy):
    """Records what happens around a call, with a value instead of the first one."""

    def __init__(self, log: list[str], name: str) -> None:
        self.log = log
        self.name = name

    async def around(self, call: Call, call_next: Any) -> Any:
        self.log.append(f"{self.name} {call.attempt}")
        try:
            return f"<{await call_next(call)}>"
        finally:
            self.log.append(f"{self.name} ends")


async def test_around_runs_the_call_in_the_order_of_the_stack() -> None:
    log: list[str] = []
    tool = Recorded(log, "outer")(Recorded(log, "inner")(search))
    assert (await outcome_of(tool, query="tea")).value == "<<10 results for tea>>"
    assert log == ["outer 1", "inner 1", "inner ends", "outer ends"]


async def test_around_works_with_the_other_policies() -> None:
    log: list[str] = []

    @function_tool
    async def unstable() -> str:
        if len(log) < 3:
            raise ConnectionError
        return "done"

    tool = cache()(retry(3, backoff=0)(Recorded(log, "a")(unstable)))
    assert [await tool.on_invoke_tool(None, "{}") for _ in range(2)] == ["<done>"] * 2
    assert log == ["a 1", "a ends", "a 2", "a ends"]


class Stub(Policy):
    async def around(self, call: Call, call_next: Any) -> Any:
        return "nothing found"


async def test_around_can_return_a_value_instead_of_running_the_call() -> None:
    assert (await outcome_of(Stub()(search), query="tea")).value == "nothing found"
    assert ran == []


class Framed(Policy):
    """Marks the output as text from outside."""

    def filter_output(self, call: Call, output: Any) -> Any:
        return f"[from {call.tool_name}] {output}" if isinstance(output, str) else output


async def test_filter_output_changes_results_and_errors_for_the_model_only() -> None:
    outcome = await outcome_of(Framed()(search), query="tea")
    assert (outcome.value, outcome.output) == (
        "10 results for tea",
        "[from search] 10 results for tea",
    )
    assert str((await outcome_of(Framed()(search))).output).startswith("[from search] Invalid")


class Quiet(Policy):
    """Delivers two events in place of each note."""

    def filter_event(self, call: Call, event: Event) -> Iterable[Event]:
        if isinstance(event, NotifyStreamEvent):
            return (event.replace(data="…"), event.replace(data=call.arguments["query"]))
        return (event,)


async def test_filter_event_replaces_events() -> None:
    async with listen() as events:
        await outcome_of(Quiet()(search), query="tea")
    assert [getattr(event, "data", event.type) for event in events] == [
        "tool_stream_start_event",
        "…",
        "tea",
        "tool_stream_end_event",
    ]


class AsksBoss(Policy):
    """Asks after the policies that decide themselves."""

    asks_person = True

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    async def before(self, call: Call) -> None:
        self.seen.append(dict(call.arguments))


async def test_a_policy_that_asks_a_person_comes_last_at_any_position() -> None:
    seen: list[Any] = []
    guard = NotAtNight(is_night=False)
    for tool in (AsksBoss(seen)(guard(search)), guard(AsksBoss(seen)(search))):
        await outcome_of(tool, query="tea")
    assert seen == [{"query": "tea", "limit": 5}] * 2


# --- what all policies share


class PerTool(Policy):
    """Counts the calls of each tool."""

    def __init__(self, name: str = "per tool") -> None:
        self.name = name
        self.count = 0

    def apply(self, tool: Any) -> Any:
        return super().apply(tool) if self.count else tool.with_(policy=PerTool(tool.name))

    async def around(self, call: Call, call_next: Any) -> Any:
        self.count += 1
        return f"{self.name} {self.count}: {await call_next(call)}"


async def test_apply_creates_state_for_each_tool() -> None:
    policy = PerTool()
    first, second = policy(search), policy(search.with_(name="find"))
    values = [(await outcome_of(tool, query="x", limit=1)).value for tool in (first, second, first)]
    assert values == [
        "search 1: 1 results for x",
        "find 1: 1 results for x",
        "search 2: 1 results for x",
    ]


def test_a_policy_is_shown_by_its_name() -> None:
    tool = Stub()(Recorded([], "log(…)")(search))
    assert repr(tool) == "<FunctionTool 'search' + log(…) + Stub>"
    assert [repr(policy) for policy in tool.policies] == ["<policy log(…)>", "<policy Stub>"]


def test_a_policy_refuses_what_is_not_a_tool() -> None:
    def plain() -> None: ...

    with pytest.raises(UserError, match="The policy Stub cannot be applied: expected a tool"):
        Stub()(plain)  # type: ignore[type-var]


class Glance(Action):
    place: str


class Glimpse(Observation):
    pass


class Eyes(ToolExecutor[Glance, Glimpse]):
    def __call__(self, action: Glance, conversation: Any = None) -> Glimpse:
        return Glimpse.from_text(f"saw {action.place}")


async def test_a_policy_acts_on_every_kind_of_tool() -> None:
    definition: Any = ToolDefinition(
        name="look",
        description="Look.",
        action_type=Glance,
        observation_type=Glimpse,
        executor=Eyes(),
    )

    async def receive(_: Any, args_json: str) -> str:
        return f"saw {json.loads(args_json)['place']}"

    by_hand = FunctionTool(
        name="look",
        description="Look.",
        params_json_schema={"type": "object", "properties": {"place": {"type": "string"}}},
        on_invoke_tool=receive,
    )
    for tool in (definition, by_hand):
        outcome = await Framed()(tool).call(None, '{"place": "Pisa"}')
        assert outcome.output == "[from look] saw Pisa"


async def test_a_policy_acts_in_a_run_and_on_every_way_to_call_a_tool() -> None:
    """`await tool(...)` is the plain function."""
    tool = NotAtNight(is_night=False)(search)
    assert await tool.invoke(query="tea") == "5 results for tea"
    assert await tool.on_invoke_tool(None, '{"query": "tea"}') == "5 results for tea"
    async with tool.stream(query="tea") as stream:
        assert [event.type async for event in stream] == [
            "tool_stream_start_event",
            "notify_stream_event",
            "tool_stream_end_event",
        ]
        assert stream.result == "5 results for tea"
    model = ScriptedModel([tool_call("search", query="tea"), "Done."])
    await Runner.run(Agent("a", tools=[tool], model=model), "Go.")
    assert ran == [("tea", 5)] * 4


async def test_an_error_of_a_policy_is_an_error_of_the_call() -> None:
    """A policy with a bug must not let a call through."""

    class Broken(Policy):
        def __init__(self, moment: str) -> None:
            self.broken = moment

        async def before(self, call: Call) -> None:
            if self.broken == "before":
                raise LookupError("broken")

        async def map_arguments(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
            if self.broken == "map_arguments":
                raise LookupError("broken")
            return arguments

        def repair_text(self, call: Call, text: str) -> str:
            if self.broken == "repair_text":
                raise LookupError("broken")
            return text

    for moment in ("before", "map_arguments", "repair_text"):
        outcome = await outcome_of(Broken(moment)(search), query="tea")
        assert (outcome.status, type(outcome.error)) == ("tool_error", LookupError)
    assert ran == []


async def test_own_policies_and_built_in_ones_see_the_same_call() -> None:
    """The names are those of the tool, and approval is asked about the changed arguments."""
    shown: list[str] = []
    names = transform(query=ArgTransform(name="words"))
    tool = needs_approval(NotAtNight(is_night=False)(names(search)))
    model = ScriptedModel([tool_call("search", words="tea"), "Done."])
    config = RunConfig(approve=lambda item: shown.append(item.arguments) or True)
    await Runner.run(Agent("a", tools=[tool], model=model), "Go.", run_config=config)
    assert shown == ['{"query":"tea","limit":5}']
    assert ran == [("tea", 5)]
