"""Toolsets: what goes in, what comes out, and that it is the same as long as nothing changes."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agents_tools import (
    Agent,
    FunctionTool,
    Runner,
    ToolContext,
    UserError,
    function_tool,
    to_anthropic,
    to_openai_chat,
    to_openai_responses,
)
from agents_tools.agents import WebSearchTool
from agents_tools.builtin import ThinkTool
from agents_tools.cli.target import load_tools
from agents_tools.mcp import MCPToolManager, mcp_server
from agents_tools.policies import needs_approval, rename, timeout, with_metadata
from agents_tools.registry import ToolRegistry
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tool import function_tools
from agents_tools.toolset import Toolset, token_report, tool_search
from tests.mcp.test_server import LEGACY, reached


def made(name: str, description: str = "", **more: Any) -> FunctionTool[..., Any]:
    """Make a tool that gives its own name."""

    async def body(context: Any, args_json: str) -> str:
        return f"{context.tool_name} of {name}"

    return FunctionTool(
        name=name,
        description=description,
        params_json_schema={"type": "object", "properties": {}},
        on_invoke_tool=body,
        **more,
    )


@function_tool
def read_file(path: str) -> str:
    """Read a file."""
    return f"content of {path}"


@function_tool
def write_file(path: str, text: str) -> str:
    """Write a file."""
    return f"{text} in {path}"


class Source:
    """Gives what its list has, as servers do."""

    def __init__(self, *tools: Any, error: Exception | None = None) -> None:
        self.tools: Any = list(tools)
        self.error = error
        self.asked = 0

    async def get_tools(self) -> Any:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return list(self.tools) if isinstance(self.tools, list) else self.tools


def names(tools: Any) -> list[str]:
    return [tool.name for tool in tools]


# --- what goes in


def test_a_toolset_is_its_sources_in_order() -> None:
    """Tools, lists, toolsets in lists and class-based tools are all the same to it."""
    inner = Toolset(write_file)
    tools = Toolset(read_file, [[inner]], ThinkTool.create())
    assert names(tools) == ["read_file", "write_file", "think"]
    assert len(tools) == 3
    assert all(isinstance(tool, FunctionTool) for tool in tools)
    assert repr(tools) == "<Toolset of 3: read_file, write_file, think>"
    assert not Toolset()
    assert Toolset(Source())


def test_the_same_tool_from_two_sources_is_there_once() -> None:
    """Two teams may share a tool; a model that is told of it twice is refused by its provider."""
    assert names(Toolset(read_file, [read_file], Toolset(read_file, write_file))) == [
        "read_file",
        "write_file",
    ]
    agent = Agent("a", tools=[read_file, Toolset(read_file)])
    assert names(agent.known_tools) == ["read_file"]


def test_two_tools_of_one_name_are_refused_with_both_their_places() -> None:
    """Nobody could say which one a model means; the message tells where to look."""
    other = function_tool(lambda path: path, name_override="read_file")
    with pytest.raises(UserError, match=r"two tools named 'read_file'.*test_toolset.*test_toolset"):
        Toolset(read_file, other)
    assert names(Toolset(read_file, Toolset(other).prefix("my_"))) == ["read_file", "my_read_file"]


@pytest.mark.parametrize(
    ("source", "remedy"),
    [
        (print, "@function_tool"),
        (3, "FunctionTool"),
        (ThinkTool, r"ThinkTool.create\(\)"),
        (Agent("a"), r"agent.as_tool\(\)"),
    ],
)
def test_what_is_no_source_is_refused_with_a_remedy(source: Any, remedy: str) -> None:
    """The mistakes that are made most have a way out each."""
    with pytest.raises(UserError, match=remedy):
        Toolset(read_file, source)


# --- what comes out


def test_filter_by_names_patterns_functions_and_metadata() -> None:
    """Whatever says best which tools are meant."""
    marked = with_metadata(team={"name": "files", "size": 3})(made("stat"))
    tools = Toolset(read_file, write_file, marked)
    assert names(tools.filter("read_file")) == ["read_file"]
    assert names(tools.filter("*_file")) == ["read_file", "write_file"]
    assert names(tools.filter(["stat", "w*"])) == ["write_file", "stat"]
    assert names(tools.filter(lambda tool: "Read" in tool.description)) == ["read_file"]
    assert names(tools.filter(metadata={"team": {"name": "files"}})) == ["stat"]
    assert names(tools.filter("read*", metadata={"team": {"name": "files"}})) == []
    assert names(tools) == ["read_file", "write_file", "stat"]


def test_a_name_of_no_tool_is_a_slip() -> None:
    """A tool that is silently missing is found out much later."""
    with pytest.raises(UserError, match="Did you mean 'read_file'"):
        Toolset(read_file).filter("read_flie")
    with pytest.raises(UserError, match="Did you mean 'read_file'"):
        Toolset(read_file).rename({"read_flie": "x"})
    with pytest.raises(UserError, match="Did you mean 'read_file'"):
        Toolset(read_file).defer("read_flie")
    with pytest.raises(UserError, match="Pass names"):
        Toolset(read_file).filter()


def test_prefix_and_rename_keep_the_tools_themselves() -> None:
    """A copy has another name; the original, its schema and its function stay."""
    tools = Toolset(read_file).prefix("work_")
    (tool,) = tools
    assert tool.name == "work_read_file"
    assert tool.params_json_schema["title"] == "work_read_file_args"
    assert tool.invoke_sync(path="a") == "content of a"
    assert read_file.name == "read_file"
    assert names(tools.rename({"work_read_file": "look"})) == ["look"]
    assert names(tools.rename(lambda name: name.upper())) == ["WORK_READ_FILE"]
    assert list(tools.rename(lambda name: None)) == list(tools)


def test_a_long_name_is_cut_and_marked_when_it_gets_a_prefix() -> None:
    """One long name of a server must not take all the others away; and no two become the same."""
    long = [made("n" * 63 + end) for end in "ab"]
    cut = names(Toolset(long).prefix("server_"))
    assert [len(name) for name in cut] == [64, 64]
    assert len(set(cut)) == 2
    assert cut == names(Toolset(long).prefix("server_"))
    assert names(Toolset(made("n" * 57)).prefix("server_")) == ["server_" + "n" * 57]


def test_changes_that_make_two_tools_one_name_are_refused() -> None:
    """Clashes come as late as they arise, and no later."""
    tools = Toolset(read_file, write_file)
    for change in (
        lambda: tools.rename(lambda name: "file"),
        lambda: tools.rename({"read_file": "write_file"}),
        lambda: tools.map(rename("file")),
    ):
        with pytest.raises(UserError, match="two tools named"):
            change()


def test_wrong_prefixes_and_names_are_refused() -> None:
    """What no provider takes is told where it is written."""
    for prefix in ("", "a b", "ü_", None):
        with pytest.raises(UserError):
            Toolset(read_file).prefix(prefix)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="not accepted"):
        Toolset(read_file).rename({"read_file": "read file"})
    with pytest.raises(UserError, match=r"rename\(...\) is not valid"):
        Toolset(read_file).rename(3)  # type: ignore[arg-type]


async def test_map_puts_a_policy_around_each_tool() -> None:
    """As if each had been decorated."""

    @function_tool
    async def stuck() -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    tools = Toolset(stuck, read_file).map(timeout(0.01))
    assert "timeout" in repr(next(iter(tools)))
    outcome = await next(iter(tools)).call(None, "{}")
    assert outcome.status == "timeout"
    with pytest.raises(UserError, match="expected a tool"):
        Toolset(stuck).map(lambda tool: None)
    with pytest.raises(UserError, match="expected a policy"):
        Toolset(stuck).map(3)  # type: ignore[arg-type]


def test_hosted_tools_pass_through() -> None:
    """What a provider runs has neither a name of ours nor a body."""
    search = WebSearchTool()
    tools = Toolset(search, read_file).prefix("x_").map(timeout(1)).defer()
    assert next(iter(tools)) is search
    assert names(Agent("a", tools=[tools]).known_tools)[1:] == ["x_read_file"]


# --- identity


def test_what_comes_out_is_the_same_as_long_as_what_goes_in_is() -> None:
    """Everything that is kept for a tool, by whoever, hangs on this."""
    inner = Toolset(read_file, write_file)
    changed = inner.prefix("x_").map(timeout(1)).filter("x_*").defer()
    assert list(changed) == list(changed)
    assert [a is b for a, b in zip(changed, list(changed), strict=True)] == [True, True]


async def test_an_agent_has_the_same_toolbox_while_nothing_changes() -> None:
    """Flat cost per turn: with ten thousand tools, one comparison."""
    source = Source(made("a"), made("b"))
    agent = Agent("x", tools=[Toolset(source).prefix("s_"), read_file], mcp_servers=[Source()])
    first = await agent.toolbox(None)
    assert await agent.toolbox(None) is first
    assert names(first.offered) == ["s_a", "s_b", "read_file"]
    source.tools.append(made("c"))
    second = await agent.toolbox(None)
    assert names(second.offered) == ["s_a", "s_b", "s_c", "read_file"]
    assert second.offered[0] is first.offered[0], "a tool that was there before is a new one"
    agent.tools.append(write_file)  # pyright: ignore[reportAttributeAccessIssue]
    assert names((await agent.toolbox(None)).offered)[-1] == "write_file"


async def test_threads_may_share_a_toolset() -> None:
    """One agent serves many threads; each of them gets whole lists of the same tools."""
    tools = [made(f"t{number}") for number in range(200)]
    toolset = Toolset(Source(*tools)).prefix("x_").map(timeout(1))
    agent = Agent("a", tools=[toolset])
    found: list[Any] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait(10)
        found.append(asyncio.run(agent.toolbox(None)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)
    assert len(found) == 8
    assert len({box.offered for box in found}) == 1


# --- sources that are asked


async def test_a_source_is_asked_each_time() -> None:
    """Servers come and go."""
    source = Source(made("a"))
    toolset = Toolset(read_file, source).prefix("p_")
    assert names(await toolset.get_tools()) == ["p_read_file", "p_a"]
    source.tools = (made("b"),)
    assert names(await toolset.get_tools()) == ["p_read_file", "p_b"]
    assert await toolset.get_tools() is await toolset.get_tools()
    assert names(toolset.known_tools) == ["p_read_file"]


def test_what_only_a_source_knows_cannot_be_listed() -> None:
    """A list without the tools of a server would be a wrong answer, not a short one."""
    toolset = Toolset(read_file, Source())
    for use in (list, len, token_report, lambda tools: list(function_tools([tools]))):
        with pytest.raises(
            UserError, match=r"before Source returns them.*await toolset.get_tools\(\)"
        ):
            use(toolset)
    assert repr(toolset) == "<Toolset of 1: read_file, asks Source>"


async def test_a_source_that_fails_is_named() -> None:
    """As an agent's mcp_servers do: the turn ends with an error that says who is to blame."""
    toolset = Toolset(read_file, Source(error=OSError("no route")))
    with pytest.raises(UserError, match=r"Source.get_tools\(\).*OSError: no route"):
        await toolset.get_tools()
    run = Runner.run(Agent("x", tools=[toolset], model=ScriptedModel(["done"])), "go")
    with pytest.raises(UserError, match="no route"):
        await run


async def test_a_dead_server_leaves_those_of_a_manager_alone() -> None:
    """The manager knows which of its servers work; a toolset has what it gives."""
    async with MCPToolManager.from_config(
        {"mcpServers": {"dead": {"command": "/nonexistent/program"}}}, connect_timeout=5
    ) as manager:
        assert "dead" in manager.failures
        toolset = Toolset(read_file, manager)
        assert names(await toolset.get_tools()) == ["read_file"]


@pytest.mark.parametrize("given", ["read_file", 3, None])
async def test_a_source_that_gives_something_else_is_refused(given: Any) -> None:
    """A text is a sequence of letters, and no list of tools."""
    source = Source()
    source.tools = given
    with pytest.raises(UserError, match="expected a list of tools"):
        await Toolset(source).get_tools()


async def test_two_sources_with_one_name_are_refused_when_they_are_asked() -> None:
    """A server may bring a clash at any time."""
    toolset = Toolset(Source(made("a")), Source(made("a")))
    with pytest.raises(UserError, match="two tools named 'a'"):
        await toolset.get_tools()
    prefixed = Toolset(Toolset(Source(made("a"))).prefix("one_"), Source(made("a")))
    assert names(await prefixed.get_tools()) == ["one_a", "a"]


async def test_a_registry_is_a_source() -> None:
    """What is registered later is there in the next turn, and nothing is copied until then."""
    registry = ToolRegistry()
    registry.register(read_file)
    assert registry.get_tools() is registry.get_tools()
    toolset = Toolset(registry)
    assert names(await toolset.get_tools()) == ["read_file"]
    registry.register(write_file)
    assert names(await toolset.get_tools()) == ["read_file", "write_file"]
    registry.unregister("read_file")
    assert names(await toolset.get_tools()) == ["write_file"]


# --- prepare


async def test_prepare_says_what_a_turn_has() -> None:
    """Each run gets what it is allowed to, from one toolset."""

    async def for_user(context: Any, tools: list[Any]) -> list[Any]:
        return [tool for tool in tools if context.context == "admin" or tool.name == "read_file"]

    model = ScriptedModel(["one", "two"])
    agent = Agent("x", tools=[Toolset(read_file, write_file).prepare(for_user)], model=model)
    await Runner.run(agent, "go", context="guest")
    await Runner.run(agent, "go", context="admin")
    assert [names(request.tools) for request in model.requests] == [
        ["read_file"],
        ["read_file", "write_file"],
    ]
    first = await agent.toolbox(ToolContext("guest"))
    await agent.toolbox(ToolContext("admin"))
    assert await agent.toolbox(ToolContext("guest")) is first


async def test_prepare_may_describe_tools_otherwise_and_sort_them() -> None:
    """Sync functions do as well."""

    def otherwise(context: Any, tools: list[Any]) -> list[Any]:
        return [tool.with_(description="For you.") for tool in reversed(tools)]

    tools = await Toolset(read_file, write_file).prepare(otherwise).get_tools()
    assert [(tool.name, tool.description) for tool in tools] == [
        ("write_file", "For you."),
        ("read_file", "For you."),
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([made("foreign")], "expected some of the passed tools, got 'foreign'"),
        ([read_file, rename("other")(read_file)], "got 'other'"),
        ([read_file, made("read_file")], "two tools named"),
        ([3], "got 3"),
        (None, "expected a list of tools"),
        (read_file, "expected a list of tools"),
        ("some text", "expected a list of tools"),
    ],
)
async def test_prepare_gives_none_but_the_tools_it_was_given(given: Any, told: str) -> None:
    """What comes in here unseen would be under no policy of the toolset's."""
    toolset = Toolset(read_file, write_file).prepare(lambda context, tools: given)
    with pytest.raises(UserError, match=told):
        await toolset.get_tools()


async def test_a_prepare_that_fails_is_named() -> None:
    """The error is the application's own, and says where."""

    def broken(context: Any, tools: Any) -> Any:
        raise KeyError("user")

    with pytest.raises(UserError, match=r"prepare\(.*broken\) failed: KeyError"):
        await Toolset(read_file).prepare(broken).get_tools()


# --- who takes toolsets


async def test_an_agent_takes_toolsets_wherever_it_takes_tools() -> None:
    """By itself, in a list, in a list in it, and among its servers."""
    toolset = Toolset(read_file)
    for agent in (
        Agent("a", tools=toolset),  # type: ignore[arg-type]
        Agent("b", tools=[toolset]),
        Agent("c", tools=[[write_file, [toolset]]]),
        Agent("d", mcp_servers=[toolset]),
        Agent("e", tools=[Source(read_file)]),
    ):
        box = await agent.toolbox(None)
        assert "read_file" in box.by_name
        assert agent.clone(name="z").name == "z"
    model = ScriptedModel([tool_call("read_file", path="x"), "done"])
    result = await Runner.run(Agent("f", tools=[toolset], model=model), "go")
    assert "content of x" in str(result.to_input_list())


async def test_conditions_hold_for_each_tool_of_a_toolset() -> None:
    """`is_enabled` is asked before each turn, as it is for tools in a list."""
    asked: list[str] = []

    async def if_admin(context: Any, agent: Any) -> bool:
        asked.append(agent.name)
        return context.context == "admin"

    tools = Toolset(
        made("open"), made("secret", is_enabled=if_admin), made("off", is_enabled=False)
    )
    agent = Agent("x", tools=[tools.prefix("p_")])
    assert names((await agent.toolbox(ToolContext("guest"))).offered) == ["p_open"]
    assert names((await agent.toolbox(ToolContext("admin"))).offered) == ["p_open", "p_secret"]
    assert asked == ["x", "x"]


async def test_an_mcp_server_serves_a_toolset() -> None:
    """Sources are asked as clients list; a search is an ordinary pair of tools to them."""
    registry = ToolRegistry()
    toolset = Toolset(read_file, registry).prefix("s_").combine(tool_search(write_file))
    async with reached("memory", LEGACY, toolset) as client:
        listed = [tool["name"] for tool in (await client.list())["tools"]]
        assert listed == ["call_tool", "s_read_file", "tool_search"]
        registry.register(made("late"))
        assert "s_late" in [tool["name"] for tool in (await client.list())["tools"]]
        given = {"name": "write_file", "arguments": {"path": "a", "text": "b"}}
        assert "b in a" in str(await client.call("call_tool", given))
    with pytest.raises(UserError, match="before Source returns them"):
        mcp_server([Toolset(Source())])


def test_the_command_line_lists_a_toolset(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, and as part of its module; sources are asked."""
    (tmp_path / "kit.py").write_text(
        "from agents_tools import function_tool\n"
        "from agents_tools.toolset import Toolset\n\n"
        "@function_tool\ndef hello() -> str:\n    'Greet.'\n    return 'hi'\n\n"
        "class Source:\n    def get_tools(self):\n        return [hello]\n\n"
        "tools = Toolset(Source()).prefix('x_')\n"
    )
    monkeypatch.chdir(tmp_path)
    assert names(load_tools("kit.py:tools")) == ["x_hello"]
    assert sorted(names(load_tools("kit.py"))) == ["hello", "x_hello"]


# --- deferred loading


def test_deferred_tools_say_so_to_providers_that_know_what_it_means() -> None:
    """Anthropic and the Responses API have a field for it; chat completions have none."""
    tools = Toolset(read_file, write_file).defer("read_file")
    tool, other = tools
    assert to_anthropic(tool)["defer_loading"] is True
    assert to_openai_responses(tool)["defer_loading"] is True
    assert "defer_loading" not in str(to_openai_chat(tool))
    assert other is write_file
    assert next(iter(tools.defer())) is tool
    kept = with_metadata(anthropic={"strict": True})(write_file)
    assert to_anthropic(next(iter(Toolset(kept).defer())))["strict"] is True


# --- what tools cost


def test_a_report_tells_what_tools_cost() -> None:
    """By provider, by tool, and what a deferred tool spares."""
    report = token_report(Toolset(read_file, write_file).defer("write_file"), "anthropic", "mcp")
    assert report.providers == ("anthropic", "mcp")
    assert [row.name for row in report.tools] == ["read_file", "write_file"]
    assert [row.deferred for row in report.tools] == [False, True]
    assert report.totals["anthropic"] == sum(row.tokens["anthropic"] for row in report.tools)
    assert report.loaded["anthropic"] == report.tools[0].tokens["anthropic"] > 10
    assert [row.name for row in report.largest(1)] == ["write_file"]
    assert "write_file (deferred)" in str(report)
    assert "without deferred" in str(report)


def test_a_report_counts_with_the_tokenizer_it_is_given() -> None:
    """Estimates are for a first look; who has the tokenizer of the model gives it."""
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return 7

    report = token_report([read_file], "openai_chat", count=count)
    assert report.totals == {"openai_chat": 7}
    assert seen[0].startswith('{"type":"function"')
    assert set(token_report([read_file]).totals) == {
        "openai_responses", "openai_chat", "anthropic", "gemini", "bedrock", "mcp",
    }  # fmt: skip


def test_a_report_refuses_what_it_cannot_count() -> None:
    """A slip in the name of a provider, and what only a provider can describe."""
    with pytest.raises(UserError, match=r"unknown provider.*got 'claude'"):
        token_report([read_file], "claude")
    with pytest.raises(UserError, match="expects function tools"):
        token_report([WebSearchTool()])
    assert str(token_report([])).startswith(" ")


def test_a_search_can_be_named_and_prefixed() -> None:
    """It is a toolset like any other."""
    tools = tool_search(read_file, name="find", call_name="use").prefix("x_").map(needs_approval)
    assert names(tools) == ["x_find", "x_use"]


def test_the_command_line_sees_lists_with_toolsets_in_them(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module is listed as a whole, whatever form its tools have."""
    (tmp_path / "mixed.py").write_text(
        "from agents_tools import function_tool\n"
        "from agents_tools.registry import ToolRegistry\n"
        "from agents_tools.toolset import Toolset\n\n"
        "@function_tool\ndef hello() -> str:\n    'Greet.'\n    return 'hi'\n\n"
        "registry = ToolRegistry()\nregistry.register(hello)\n"
        "kit = [Toolset(registry).prefix('x_')]\n"
    )
    monkeypatch.chdir(tmp_path)
    assert names(load_tools("mixed.py")) == ["hello", "x_hello"]
    assert names(load_tools("mixed.py:kit")) == ["x_hello"]


def test_changes_of_a_source_are_told_to_whoever_subscribes() -> None:
    """An MCP server tells its clients that its list has changed."""
    registry = ToolRegistry()
    told: list[int] = []
    toolset = tool_search(Toolset(read_file, registry).prefix("x_").prepare(lambda _, given: given))
    toolset.subscribe(lambda: told.append(1))
    registry.register(write_file)
    assert told == [1]


async def test_the_tools_of_a_toolset_are_built_when_the_agent_is_made() -> None:
    """An error of a declaration comes at once, behind a search as well."""

    def broken(thing: asyncio.Task[None]) -> None:
        """Take what has no JSON form."""

    tool = function_tool(broken)
    for toolset in (Toolset(tool), tool_search(tool)):
        with pytest.raises(UserError, match="broken"):
            Agent("x", tools=[toolset])
    agent = Agent("x", tools=[tool_search(Source(tool, read_file))])
    search = (await agent.toolbox(None)).by_name["tool_search"]
    assert "read_file" in str(await search.on_invoke_tool(None, '{"query": "read"}'))


async def test_frameworks_take_a_search() -> None:
    """In proxy mode the two tools are ordinary ones, and what they call is validated as ever."""
    from agents_tools.export import to_langchain

    search, call = to_langchain(tool_search(read_file, write_file))
    assert "read_file" in str(await search.ainvoke({"query": "read"}))
    given = {"name": "read_file", "arguments": {"path": "a.txt"}}
    assert "content of a.txt" in str(await call.ainvoke(given))


def test_a_function_that_is_async_is_no_filter() -> None:
    """What it gives would be taken for a yes, and let all tools through."""

    async def wanted(tool: Any) -> bool:
        return False

    for method in (Toolset(read_file).filter, Toolset(read_file).defer):
        with pytest.raises(UserError, match=r"Use prepare\(...\)"):
            method(wanted)
    with pytest.raises(UserError, match="expected a mapping"):
        Toolset(read_file).filter(metadata=3)  # type: ignore[arg-type]


def test_other_collections_are_refused_with_a_remedy() -> None:
    """A set has no order, and a generator is empty when it is asked for the second time."""
    for given in ({read_file}, (tool for tool in [read_file]), {"a": read_file}):
        with pytest.raises(UserError, match="as a list"):
            Toolset(given)


async def test_a_tuple_of_tools_costs_no_more_than_a_list() -> None:
    """What is kept for the tools of an agent is found again, whatever they are written in."""
    given: Any = (read_file, Toolset(write_file))
    agent = Agent("x", tools=given)
    assert await agent.toolbox(None) is await agent.toolbox(None)


async def test_a_source_may_give_a_toolset_that_asks_others() -> None:
    """One application hands on what another one gave it."""
    inner = Source(read_file)
    outer = Source(Toolset(inner).prefix("in_"), write_file)
    toolset = Toolset(outer).prefix("out_")
    assert names(await toolset.get_tools()) == ["out_in_read_file", "out_write_file"]
    assert await toolset.get_tools() is await toolset.get_tools()
    inner.tools.append(made("late"))
    assert "out_in_late" in names(await toolset.get_tools())
