"""Ways around what a found tool asks for, and what else can go wrong behind a search."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest

from agents_tools import (
    Agent,
    RunConfig,
    Runner,
    RunState,
    ToolAnnotations,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    UserError,
    function_tool,
    listen,
)
from agents_tools.policies import exclusive, limit, needs_approval, timeout, truncate
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.toolset import Toolset, tool_search
from agents_tools.wire.anthropic import to_anthropic
from tests.test_tool_search import TOOLS, create_issue, done, found, outputs, search, weather
from tests.test_toolset import Source, made, names


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def through(name: str, arguments: Any = None) -> Any:
    given = {} if arguments is None else {"arguments": arguments}
    return tool_call("call_tool", name=name, **given)


async def ran(tools: Any, *script: Any, **more: Any) -> Any:
    """Run an agent that has the tools through a script."""
    model = ScriptedModel([*script, "done"])
    return await Runner.run(Agent("x", tools=[tools], model=model), "go", **more)


# --- ways around


@pytest.mark.parametrize("mode", ["proxy", "reveal"])
async def test_a_policy_on_a_search_holds_for_tools_that_are_called_by_their_names(
    mode: Any,
) -> None:
    """A model that knows the name of a tool must not get around an approval with it."""
    tools = tool_search(create_issue, mode=mode).map(needs_approval)
    result = await ran(tools, tool_call("create_issue", title="A"))
    assert [item.name for item in result.interruptions] == ["create_issue"]
    assert done == []


async def test_a_policy_on_a_search_holds_for_what_it_reveals() -> None:
    """The tool that joins the list is the one that the policy is around."""
    tools = tool_search(create_issue, mode="reveal").map(limit(calls=2))
    script = [tool_call("tool_search", query="ticket")]
    script += [tool_call("create_issue", title=title) for title in "AB"]
    result = await ran(tools, *script)
    assert [answer.status for answer in outputs(result)] == ["ok", "ok", "denied"]
    assert done == ["A"]


async def test_what_a_policy_says_of_a_tool_goes_with_it() -> None:
    """`exclusive()` is a mark as well, which the loop reads before anything runs."""
    inside: list[str] = []

    @function_tool
    async def other() -> str:
        """Run beside."""
        inside.append("other")
        await asyncio.sleep(0)
        inside.remove("other")
        return "ok"

    @function_tool
    async def alone() -> str:
        """Run alone."""
        assert inside == []
        return "ok"

    tools = tool_search(alone).map(exclusive())
    result = await ran([tools, other], [tool_call("other"), through("alone"), tool_call("other")])
    assert [answer.output for answer in outputs(result)] == ["ok", "ok", "ok"]


async def test_tools_cannot_be_called_past_a_calling_tool_that_is_not_offered() -> None:
    """Who takes the tool that calls away wants nothing to be called."""
    for tools in (
        tool_search(TOOLS).filter("tool_search"),
        tool_search(TOOLS).map(lambda tool: tool.with_(is_enabled=tool.name != "call_tool")),
    ):
        result = await ran(tools, tool_call("weather", city="Bonn"))
        assert outputs(result)[0].status == "invalid_args"
        assert "There is no tool 'weather'" in str(outputs(result)[0].output)


async def test_a_calling_tool_is_seen_through_without_its_search() -> None:
    """A standing approval is for the tool that was approved, whatever else is offered."""
    tools = tool_search(TOOLS, needs_approval(create_issue.with_(name="open"))).filter("call_tool")
    script = [through("open", {"title": "A"})]
    result = await ran(tools, *script)
    assert [item.name for item in result.interruptions] == ["open"]
    state = result.to_state()
    state.approve(state.interruptions[0], always=True)
    model = ScriptedModel([through("delete_repository", {"name": "b"})])
    result = await Runner.run(Agent("x", tools=[tools], model=model), state)
    assert done == ["A"]
    assert [item.name for item in result.interruptions] == ["delete_repository"]


async def test_a_search_is_not_hidden_behind_another_one() -> None:
    """A tool that calls others is no tool to trust by its own name."""
    outer = tool_search(tool_search(TOOLS), made("own"), name="find", call_name="use")
    assert names(outer) == ["tool_search", "call_tool", "find", "use"]
    assert names(Toolset(tool_search(TOOLS)).defer()) == ["tool_search", "call_tool"]
    agent = Agent("x", tools=[tool_search(TOOLS, name="a", call_name="b"), weather])
    assert names((await agent.toolbox(None)).offered) == ["a", "b", "weather"]
    with pytest.raises(UserError, match="two tools named 'tool_search'"):
        tool_search(tool_search(TOOLS), made("own"))


async def test_the_calling_tool_calls_neither_itself_nor_the_search() -> None:
    """There is nothing to gain, and a knot to be tied."""
    result = await ran(
        tool_search(TOOLS),
        [through("call_tool", {"name": "weather"}), through("tool_search", {"query": "a"})],
    )
    assert [answer.status for answer in outputs(result)] == ["tool_error", "tool_error"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"name": "weather", "city": "Bonn"}', "city"),
        ('{"name": "weather", "arguments": {"city": "Bonn"}, "force": true}', "force"),
        ('{"name": "weather", "arguments": {"city": "A", "city": "B"}}', "twice"),
        ('{"name": "plain", "name": "weather", "arguments": {"city": "B"}}', "twice"),
        ('{"name": "weather", "arguments": null}', "arguments"),
        ('{"name": "weather", "arguments": "no json"}', "weather"),
        ('{"name": "weather", "arguments": "[]"}', "weather"),
        ('{"name": "weather", "arguments": "\\"{}\\""}', "weather"),
        ('{"name": "weather", "arguments": {"city": "B", "town": "C"}}', "town"),
        ('{"name": "weather", "arguments": "{\\"city\\": \\"A\\", \\"city\\": \\"B\\"}"}', "twice"),
    ],
)
async def test_arguments_are_read_as_strictly_as_those_of_any_tool(
    arguments: str, said: str
) -> None:
    """Whatever is not understood is told, in a run and outside of one."""
    call = list(tool_search(TOOLS, made("plain")))[1]
    outcome = await call.call(None, arguments)
    assert (outcome.status, said in str(outcome.output)) == ("invalid_args", True), outcome
    result = await ran(tool_search(TOOLS, made("plain")), tool_call("call_tool", arguments))
    answer = outputs(result)[0]
    assert (answer.status, said in str(answer.output)) == ("invalid_args", True), answer


@pytest.mark.parametrize("as_text", [False, True])
async def test_arguments_reach_the_tool_as_they_were_written(as_text: bool) -> None:
    """Read and written again, a number of many digits is another number."""

    @function_tool
    def pay(amount: Decimal, note: str = "") -> str:
        """Pay."""
        return f"{amount} {note}"

    given = '{"amount": 0.1234567890123456789012345, "note": "ä \\u00e4 🙂"}'
    text = json.dumps(given) if as_text else given
    wanted = f' {{ "arguments" : {text} , "name":"pay" }} '
    call = list(tool_search(pay))[1]
    assert await call.on_invoke_tool(None, wanted) == "0.1234567890123456789012345 ä ä 🙂"
    result = await ran(tool_search(pay), tool_call("call_tool", wanted))
    assert outputs(result)[0].output == "0.1234567890123456789012345 ä ä 🙂"


async def test_arguments_of_found_tools_are_in_nobodys_dialect() -> None:
    """A provider's strict form is for definitions that the provider was told of."""

    @function_tool
    def keep(pairs: dict[str, int], label: str | None = "none given") -> str:
        """Keep pairs."""
        return f"{pairs} {label}"

    class Strict(ScriptedModel):
        provider = "openai_responses"

    script = [
        through("keep", {"pairs": {"a": 1}, "label": None}),
        tool_call("keep", {"pairs": {"a": 1}, "label": None}),
    ]
    agent = Agent("x", tools=[tool_search(keep)], model=Strict([script, "done"]))
    result = await Runner.run(agent, "go")
    assert [answer.output for answer in outputs(result)] == ["{'a': 1} None"] * 2


async def test_a_switched_off_tool_is_not_even_hinted_at() -> None:
    """Who may not use a tool is not told that it is there."""

    def never(context: Any, agent: Any) -> bool:
        return False

    for off in (made("secret", is_enabled=False), made("secret", is_enabled=never)):
        result = await ran(tool_search(TOOLS, off), [through("Secret"), through("secret")])
        for answer in outputs(result):
            assert "Did you mean" not in str(answer.output)
            assert "There is no tool" in str(answer.output)


async def test_a_tool_that_is_gone_when_it_is_called_is_told_of() -> None:
    """Servers leave between two turns; the others stay callable."""
    source = Source(made("alpha", "First."), made("beta", "Second."))

    def leave(context: Any, tools: list[Any]) -> list[Any]:
        run = context.run
        return [t for t in tools if t.name != "alpha" or run is None or len(run.history) < 2]

    tools = tool_search(Toolset(source).prepare(leave))
    result = await ran(
        tools,
        tool_call("tool_search", query="first"),
        [through("alpha"), through("beta")],
    )
    first, gone, there = outputs(result)
    assert found(first.output) == ["alpha"]
    assert (gone.status, there.output) == ("tool_error", "beta of beta")
    assert "There is no tool 'alpha' to call" in str(gone.output)


async def test_a_tool_that_changed_since_it_was_found_is_called_as_it_is_now() -> None:
    """Its new schema holds, so that arguments for the old one are refused with a reason."""

    @function_tool(name_override="act")
    def before(x: int) -> str:
        """Act."""
        return "before"

    @function_tool(name_override="act")
    def after(y: int) -> str:
        """Act."""
        return "after"

    source = Source(before)

    def now(context: Any, tools: list[Any]) -> list[Any]:
        return [after] if context.run is not None and len(context.run.history) > 1 else tools

    script = [tool_call("tool_search", query="act"), through("act", {"x": 1})]
    result = await ran(tool_search(Toolset(source).prepare(now)), *script)
    answer = outputs(result)[1]
    assert answer.status == "invalid_args"
    assert "'y'" in str(answer.output)


async def test_names_in_the_style_of_others_are_answered_with_the_right_one() -> None:
    """Models write dots, dashes and the prefixes of hosts."""
    result = await ran(tool_search(TOOLS), [through("create.issue"), through("createIssue")])
    for answer in outputs(result):
        assert "Did you mean 'create_issue'?" in str(answer.output)


async def test_limits_of_a_run_count_calls_of_found_tools() -> None:
    """Each is one call, like any other."""
    script = [[through("create_issue", {"title": title}) for title in "ABC"]]
    config = RunConfig(max_tool_calls=2)
    with pytest.raises(Exception, match="more than the 2 tool calls"):
        await ran(tool_search(TOOLS), *script, run_config=config)
    assert done == []


async def test_many_calls_at_once_are_each_their_own() -> None:
    """Each call of a turn has its own tool, arguments, events and answer, in order."""

    @function_tool
    async def echo(text: str) -> str:
        """Echo."""
        await asyncio.sleep(0)
        return text

    calls = [through("echo", {"text": str(n)}) for n in range(20)]
    with listen() as heard:
        result = await ran(tool_search(echo), calls)
    events = [event async for event in heard]
    assert [answer.output for answer in outputs(result)] == [str(n) for n in range(20)]
    for kind in (ToolStreamStartEvent, ToolStreamEndEvent):
        mine = [event for event in events if isinstance(event, kind)]
        assert [event.tool_name for event in mine] == ["echo"] * 20
        assert len({event.tool_call_id for event in mine}) == 20


async def test_an_early_call_of_a_found_tool_runs_once() -> None:
    """What the loop starts while the model still writes is what it answers with."""
    count = 0

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def look() -> str:
        """Look."""
        nonlocal count
        count += 1
        return "seen"

    config = RunConfig(start_calls_early=True)
    script = [[through("look"), through("create_issue", {"title": "A"})]]
    with listen() as heard:
        result = await ran(tool_search(TOOLS, look), *script, run_config=config)
    starts = [event async for event in heard if isinstance(event, ToolStreamStartEvent)]
    assert [answer.output for answer in outputs(result)] == ["seen", "issue 'A' with None"]
    assert (count, done) == (1, ["A"])
    assert sorted(event.tool_name for event in starts) == ["create_issue", "look"]


async def test_a_deadline_around_the_calling_tool_is_asked_of_the_same_tool_each_time() -> None:
    """What is kept for a tool, such as what it answered before, is kept from call to call."""
    tools = tool_search(create_issue).map(timeout(5))
    box = await Agent("x", tools=[tools]).toolbox(None)
    call: Any = box.by_name["call_tool"]
    text = '{"name": "create_issue", "arguments": {"title": "A"}}'
    assert call.routed(text)[0] is call.routed(text)[0]


# --- what a search says


def test_a_search_says_that_it_only_reads() -> None:
    """Hosts ask a person before each call of a tool of which nothing is known."""
    finder, call = tool_search(TOOLS)
    assert finder.annotations is not None
    assert finder.annotations.read_only
    assert call.annotations is None


async def test_a_long_description_does_not_crowd_out_the_others() -> None:
    """One server's text of a megabyte, and the tools beside it are still found and readable."""
    long = made("long_ticket", "A ticket. " + "x" * 1_000_000)
    finder = next(iter(tool_search(long, create_issue)))
    told = str((await finder.call(None, '{"query": "ticket"}')).output)
    assert set(found(told)) == {"long_ticket", "create_issue"}
    assert len(told) < 20_000


async def test_a_search_that_reveals_needs_a_run() -> None:
    """Outside of one, a framework or a server would offer a search whose finds nobody can call."""
    finder = (await tool_search(TOOLS, mode="reveal").get_tools())[0]
    outcome = await finder.call(None, '{"query": "ticket"}')
    assert outcome.status == "tool_error"
    assert "mode='proxy'" in str(outcome.output)


# --- the bound on what is revealed


async def test_what_is_revealed_is_bounded_and_never_moves() -> None:
    """The list only grows, to its bound; what is found after that is called through `call_tool`."""
    many = [made(f"get_{word}", f"Get the {word}.") for word in WORDS]
    tools = tool_search(*many, mode="reveal", max_revealed=3, max_results=2)
    script = [tool_call("tool_search", query=word) for word in WORDS]
    script += [tool_call("call_tool", name="get_plum"), tool_call("get_pear"), tool_call("get_fig")]
    model = ScriptedModel([*script, "done"])
    result = await Runner.run(Agent("x", tools=[tools, made("own")], model=model), "go")
    offered = [names(request.tools) for request in model.requests]
    for before, after in zip(offered, offered[1:], strict=False):
        assert after[: len(before)] == before
    first = ["tool_search", "own", "get_apple", "get_pear", "get_plum"]
    assert offered[3] == first
    assert offered[-1] == [*first, "call_tool"]
    answers = outputs(result)
    assert "parameters" not in str(answers[2].output)
    assert "parameters" in str(answers[3].output)
    assert "call_tool" in str(answers[3].output)
    assert [answer.output for answer in answers[len(WORDS) :]] == [
        "get_plum of get_plum",
        "get_pear of get_pear",
        "get_fig of get_fig",
    ]
    state = RunState.from_json(result.to_state().to_json())
    model = ScriptedModel(["done"])
    again = Agent("x", tools=[tools, made("own")], model=model)
    await Runner.run(again, [*state.history, {"role": "user", "content": "more"}])
    assert names(model.requests[0].tools) == offered[-1]


WORDS = ["apple", "pear", "plum", "fig", "quince"]


async def test_the_bound_counts_what_one_search_finds() -> None:
    """What is over the bound is told in full at once."""
    many = [made(f"get_{n}", "Get a thing.") for n in range(9)]
    tools = tool_search(*many, mode="reveal", max_revealed=2, max_results=5)
    model = ScriptedModel([tool_call("tool_search", query="thing"), through("get_4"), "done"])
    result = await Runner.run(Agent("x", tools=[tools], model=model), "go")
    assert names(model.requests[1].tools) == ["tool_search", "get_0", "get_1", "call_tool"]
    told = json.loads(str(outputs(result)[0].output))["tools"]
    assert ["parameters" in tool for tool in told] == [False, False, True, True, True]
    assert outputs(result)[1].output == "get_4 of get_4"


@pytest.mark.parametrize("wrong", [0, -1, True, "3", 1.5])
def test_a_wrong_bound_is_refused(wrong: Any) -> None:
    """With what it takes."""
    with pytest.raises(UserError, match="max_revealed"):
        tool_search(TOOLS, mode="reveal", max_revealed=wrong)


async def test_a_shortened_result_reveals_what_is_left_of_it() -> None:
    """A policy may cut the text; what the model has read is what it gets."""
    tools = tool_search(TOOLS, mode="reveal").map(truncate(max_chars=90))
    model = ScriptedModel([tool_call("tool_search", query="ticket"), "done"])
    await Runner.run(Agent("x", tools=[tools], model=model), "go")
    assert names(model.requests[1].tools) == ["tool_search", "create_issue"]


# --- deferred tools


def test_a_deferred_tool_asks_for_no_place_in_the_prompt_cache() -> None:
    """Anthropic's API refuses a request in which a tool has both."""
    cached = create_issue.with_(
        metadata={"anthropic": {"cache_control": {"type": "ephemeral"}, "strict": True}}
    )
    told = to_anthropic(next(iter(Toolset(cached).defer())))
    assert told["defer_loading"] is True
    assert "cache_control" not in told
    assert told["strict"] is True
    assert "cache_control" in to_anthropic(cached)


async def test_an_empty_deferral_and_an_empty_search_are_harmless() -> None:
    """A server that has nothing yet."""
    source = Source()
    agent = Agent("x", tools=[Toolset(source).defer()])
    assert (await agent.toolbox(None)).offered == ()
    assert await search(tool_search(Source()), "anything") == []
