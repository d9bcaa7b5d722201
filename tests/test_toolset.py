"""Test toolsets: their sources, their tools, and that tools are stable while nothing changes."""

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


def make_tool(name: str, description: str = "", **more: Any) -> FunctionTool[..., Any]:
    """Return a tool that returns its own name."""

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
    """A tool source that returns a list of tools, as servers do."""

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


# --- sources


def test_a_toolset_has_the_tools_of_its_sources_in_order() -> None:
    """Sources are tools, lists, toolsets in lists and class-based tools."""
    inner = Toolset(write_file)
    tools = Toolset(read_file, [[inner]], ThinkTool.create())
    assert names(tools) == ["read_file", "write_file", "think"]
    assert len(tools) == 3
    assert all(isinstance(tool, FunctionTool) for tool in tools)
    assert repr(tools) == "<Toolset of 3: read_file, write_file, think>"
    assert not Toolset()
    assert Toolset(Source())


def test_a_tool_in_two_sources_is_included_once() -> None:
    """Two teams can share a tool; a provider refuses a request with the same tool twice."""
    assert names(Toolset(read_file, [read_file], Toolset(read_file, write_file))) == [
        "read_file",
        "write_file",
    ]
    agent = Agent("a", tools=[read_file, Toolset(read_file)])
    assert names(agent.known_tools) == ["read_file"]


def test_two_tools_with_the_same_name_are_refused_with_both_locations() -> None:
    """The call of a model would be ambiguous; the error names both definitions."""
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
def test_an_invalid_source_is_refused_with_a_remedy(source: Any, remedy: str) -> None:
    """Each common mistake has a remedy of its own."""
    with pytest.raises(UserError, match=remedy):
        Toolset(read_file, source)


# --- filters and changes


def test_filter_accepts_names_patterns_functions_and_metadata() -> None:
    marked = with_metadata(team={"name": "files", "size": 3})(make_tool("stat"))
    tools = Toolset(read_file, write_file, marked)
    assert names(tools.filter("read_file")) == ["read_file"]
    assert names(tools.filter("*_file")) == ["read_file", "write_file"]
    assert names(tools.filter(["stat", "w*"])) == ["write_file", "stat"]
    assert names(tools.filter(lambda tool: "Read" in tool.description)) == ["read_file"]
    assert names(tools.filter(metadata={"team": {"name": "files"}})) == ["stat"]
    assert names(tools.filter("read*", metadata={"team": {"name": "files"}})) == []
    assert names(tools) == ["read_file", "write_file", "stat"]


def test_filtering_by_an_unknown_name_is_an_error() -> None:
    """A silently missing tool is noticed much later."""
    with pytest.raises(UserError, match="Did you mean 'read_file'"):
        Toolset(read_file).filter("read_flie")
    with pytest.raises(UserError, match="Did you mean 'read_file'"):
        Toolset(read_file).rename({"read_flie": "x"})
    with pytest.raises(UserError, match="Did you mean 'read_file'"):
        Toolset(read_file).defer("read_flie")
    with pytest.raises(UserError, match="Pass names"):
        Toolset(read_file).filter()


def test_prefix_and_rename_return_copies() -> None:
    """A copy has another name; the original, its schema and its function are unchanged."""
    tools = Toolset(read_file).prefix("work_")
    (tool,) = tools
    assert tool.name == "work_read_file"
    assert tool.params_json_schema["title"] == "work_read_file_args"
    assert tool.invoke_sync(path="a") == "content of a"
    assert read_file.name == "read_file"
    assert names(tools.rename({"work_read_file": "look"})) == ["look"]
    assert names(tools.rename(lambda name: name.upper())) == ["WORK_READ_FILE"]
    assert list(tools.rename(lambda name: None)) == list(tools)


def test_a_name_that_gets_too_long_by_a_prefix_is_shortened() -> None:
    """One long name must not make the toolset unusable, and shortened names stay distinct."""
    long = [make_tool("n" * 63 + end) for end in "ab"]
    cut = names(Toolset(long).prefix("server_"))
    assert [len(name) for name in cut] == [64, 64]
    assert len(set(cut)) == 2
    assert cut == names(Toolset(long).prefix("server_"))
    assert names(Toolset(make_tool("n" * 57)).prefix("server_")) == ["server_" + "n" * 57]


def test_a_change_that_creates_duplicate_names_is_refused() -> None:
    """The error is raised by the change that causes the conflict."""
    tools = Toolset(read_file, write_file)
    for change in (
        lambda: tools.rename(lambda name: "file"),
        lambda: tools.rename({"read_file": "write_file"}),
        lambda: tools.map(rename("file")),
    ):
        with pytest.raises(UserError, match="two tools named"):
            change()


def test_invalid_prefixes_and_names_are_refused() -> None:
    """A name that no provider accepts is reported at the line that sets it."""
    for prefix in ("", "a b", "ü_", None):
        with pytest.raises(UserError):
            Toolset(read_file).prefix(prefix)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="not accepted"):
        Toolset(read_file).rename({"read_file": "read file"})
    with pytest.raises(UserError, match=r"rename\(...\) is not valid"):
        Toolset(read_file).rename(3)  # type: ignore[arg-type]


async def test_map_applies_a_policy_to_each_tool() -> None:
    """The effect is the same as decorating each tool."""

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
    """Tools that a provider runs have neither a name of this library nor a body."""
    search = WebSearchTool()
    tools = Toolset(search, read_file).prefix("x_").map(timeout(1)).defer()
    assert next(iter(tools)) is search
    assert names(Agent("a", tools=[tools]).known_tools)[1:] == ["x_read_file"]


# --- identity


def test_the_tools_are_identical_while_the_sources_do_not_change() -> None:
    """All caches of tools depend on this."""
    inner = Toolset(read_file, write_file)
    changed = inner.prefix("x_").map(timeout(1)).filter("x_*").defer()
    assert list(changed) == list(changed)
    assert [a is b for a, b in zip(changed, list(changed), strict=True)] == [True, True]


async def test_an_agent_reuses_its_toolbox_while_nothing_changes() -> None:
    """With ten thousand tools, the cost of a turn is one comparison."""
    source = Source(make_tool("a"), make_tool("b"))
    agent = Agent("x", tools=[Toolset(source).prefix("s_"), read_file], mcp_servers=[Source()])
    first = await agent.toolbox(None)
    assert await agent.toolbox(None) is first
    assert names(first.offered) == ["s_a", "s_b", "read_file"]
    source.tools.append(make_tool("c"))
    second = await agent.toolbox(None)
    assert names(second.offered) == ["s_a", "s_b", "s_c", "read_file"]
    assert second.offered[0] is first.offered[0], "a tool that was there before is a new one"
    agent.tools.append(write_file)  # pyright: ignore[reportAttributeAccessIssue]
    assert names((await agent.toolbox(None)).offered)[-1] == "write_file"


async def test_threads_can_share_a_toolset() -> None:
    """One agent serves many threads, and each gets complete lists of the same tools."""
    tools = [make_tool(f"t{number}") for number in range(200)]
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


# --- dynamic sources


async def test_a_source_is_queried_each_time() -> None:
    """Servers can come and go."""
    source = Source(make_tool("a"))
    toolset = Toolset(read_file, source).prefix("p_")
    assert names(await toolset.get_tools()) == ["p_read_file", "p_a"]
    source.tools = (make_tool("b"),)
    assert names(await toolset.get_tools()) == ["p_read_file", "p_b"]
    assert await toolset.get_tools() is await toolset.get_tools()
    assert names(toolset.known_tools) == ["p_read_file"]


def test_a_dynamic_source_cannot_be_listed_without_a_query() -> None:
    """A list without the tools of a server would be wrong."""
    toolset = Toolset(read_file, Source())
    for use in (list, len, token_report, lambda tools: list(function_tools([tools]))):
        with pytest.raises(
            UserError, match=r"before Source returns them.*await toolset.get_tools\(\)"
        ):
            use(toolset)
    assert repr(toolset) == "<Toolset of 1: read_file, asks Source>"


async def test_a_failing_source_is_named_in_the_error() -> None:
    """As with `mcp_servers` of an agent, the turn ends with an error that names the source."""
    toolset = Toolset(read_file, Source(error=OSError("no route")))
    with pytest.raises(UserError, match=r"Source.get_tools\(\).*OSError: no route"):
        await toolset.get_tools()
    run = Runner.run(Agent("x", tools=[toolset], model=ScriptedModel(["done"])), "go")
    with pytest.raises(UserError, match="no route"):
        await run


async def test_a_failed_server_does_not_affect_others_of_its_manager() -> None:
    """The manager knows which of its servers work, and the toolset uses the tools it returns."""
    async with MCPToolManager.from_config(
        {"mcpServers": {"dead": {"command": "/nonexistent/program"}}}, connect_timeout=5
    ) as manager:
        assert "dead" in manager.failures
        toolset = Toolset(read_file, manager)
        assert names(await toolset.get_tools()) == ["read_file"]


@pytest.mark.parametrize("given", ["read_file", 3, None])
async def test_a_source_that_returns_something_else_is_refused(given: Any) -> None:
    """A string is a sequence of letters and not a list of tools."""
    source = Source()
    source.tools = given
    with pytest.raises(UserError, match="expected a list of tools"):
        await Toolset(source).get_tools()


async def test_duplicate_names_of_two_sources_are_refused_when_queried() -> None:
    """A server can introduce a conflict at any time."""
    toolset = Toolset(Source(make_tool("a")), Source(make_tool("a")))
    with pytest.raises(UserError, match="two tools named 'a'"):
        await toolset.get_tools()
    prefixed = Toolset(Toolset(Source(make_tool("a"))).prefix("one_"), Source(make_tool("a")))
    assert names(await prefixed.get_tools()) == ["one_a", "a"]


async def test_a_registry_is_a_source() -> None:
    """Tools registered later are available in the next turn, and nothing is copied before."""
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


async def test_prepare_selects_the_tools_of_a_turn() -> None:
    """Each run gets its permitted tools from one toolset."""

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


async def test_prepare_can_redescribe_and_sort_tools() -> None:
    """Synchronous functions work, too."""

    def redescribe(context: Any, tools: list[Any]) -> list[Any]:
        return [tool.with_(description="For you.") for tool in reversed(tools)]

    tools = await Toolset(read_file, write_file).prepare(redescribe).get_tools()
    assert [(tool.name, tool.description) for tool in tools] == [
        ("write_file", "For you."),
        ("read_file", "For you."),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([make_tool("foreign")], "expected some of the passed tools, got 'foreign'"),
        ([read_file, rename("other")(read_file)], "got 'other'"),
        ([read_file, make_tool("read_file")], "two tools named"),
        ([3], "got 3"),
        (None, "expected a list of tools"),
        (read_file, "expected a list of tools"),
        ("some text", "expected a list of tools"),
    ],
)
async def test_prepare_must_return_tools_that_it_received(given: Any, message: str) -> None:
    """Other tools would bypass the policies of the toolset."""
    toolset = Toolset(read_file, write_file).prepare(lambda context, tools: given)
    with pytest.raises(UserError, match=message):
        await toolset.get_tools()


async def test_a_failing_prepare_function_is_named_in_the_error() -> None:
    """The exception comes from the application, and the error names its function."""

    def broken(context: Any, tools: Any) -> Any:
        raise KeyError("user")

    with pytest.raises(UserError, match=r"prepare\(.*broken\) failed: KeyError"):
        await Toolset(read_file).prepare(broken).get_tools()


# --- users of toolsets


async def test_an_agent_accepts_toolsets_wherever_it_accepts_tools() -> None:
    """Covers a toolset alone, in a list, in a nested list, and in `mcp_servers`."""
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


async def test_is_enabled_applies_to_each_tool_of_a_toolset() -> None:
    """It is evaluated before each turn, as for tools in a list."""
    asked: list[str] = []

    async def if_admin(context: Any, agent: Any) -> bool:
        asked.append(agent.name)
        return context.context == "admin"

    tools = Toolset(
        make_tool("open"),
        make_tool("secret", is_enabled=if_admin),
        make_tool("off", is_enabled=False),
    )
    agent = Agent("x", tools=[tools.prefix("p_")])
    assert names((await agent.toolbox(ToolContext("guest"))).offered) == ["p_open"]
    assert names((await agent.toolbox(ToolContext("admin"))).offered) == ["p_open", "p_secret"]
    assert asked == ["x", "x"]


async def test_an_mcp_server_serves_a_toolset() -> None:
    """Sources are queried when clients list tools; a search appears as two ordinary tools."""
    registry = ToolRegistry()
    toolset = Toolset(read_file, registry).prefix("s_").combine(tool_search(write_file))
    async with reached("memory", LEGACY, toolset) as client:
        listed = [tool["name"] for tool in (await client.list())["tools"]]
        assert listed == ["call_tool", "s_read_file", "tool_search"]
        registry.register(make_tool("late"))
        assert "s_late" in [tool["name"] for tool in (await client.list())["tools"]]
        given = {"name": "write_file", "arguments": {"path": "a", "text": "b"}}
        assert "b in a" in str(await client.call("call_tool", given))
    with pytest.raises(UserError, match="before Source returns them"):
        mcp_server([Toolset(Source())])


def test_the_command_line_lists_a_toolset(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is listed by its name and as part of its module, and its sources are queried."""
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


def test_deferred_tools_are_marked_for_providers_that_support_it() -> None:
    """Anthropic and the Responses API have a field for it; chat completions has none."""
    tools = Toolset(read_file, write_file).defer("read_file")
    tool, other = tools
    assert to_anthropic(tool)["defer_loading"] is True
    assert to_openai_responses(tool)["defer_loading"] is True
    assert "defer_loading" not in str(to_openai_chat(tool))
    assert other is write_file
    assert next(iter(tools.defer())) is tool
    kept = with_metadata(anthropic={"strict": True})(write_file)
    assert to_anthropic(next(iter(Toolset(kept).defer())))["strict"] is True


# --- token costs


def test_a_report_shows_the_token_cost_of_tools() -> None:
    """It lists costs by provider and by tool, and the savings of deferred tools."""
    report = token_report(Toolset(read_file, write_file).defer("write_file"), "anthropic", "mcp")
    assert report.providers == ("anthropic", "mcp")
    assert [row.name for row in report.tools] == ["read_file", "write_file"]
    assert [row.deferred for row in report.tools] == [False, True]
    assert report.totals["anthropic"] == sum(row.tokens["anthropic"] for row in report.tools)
    assert report.loaded["anthropic"] == report.tools[0].tokens["anthropic"] > 10
    assert [row.name for row in report.largest(1)] == ["write_file"]
    assert "write_file (deferred)" in str(report)
    assert "without deferred" in str(report)


def test_an_indentation_is_estimated_as_one_token() -> None:
    """Tokenizers have one token for many spaces, so deep docstrings cost no more than flat ones."""
    tools = [
        make_tool("read", ("\n" + " " * depth).join(["Read a line."] * 20)) for depth in (2, 32)
    ]
    flat, deep = token_report(tools, "mcp").tools
    assert deep.tokens == flat.tokens


def test_a_report_uses_the_given_tokenizer() -> None:
    """Estimates suit a first look; an exact count needs the tokenizer of the model."""
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


def test_a_report_refuses_unknown_providers_and_hosted_tools() -> None:
    """Covers a typo in a provider name and a tool that only its provider can describe."""
    with pytest.raises(UserError, match=r"unknown provider.*got 'claude'"):
        token_report([read_file], "claude")
    with pytest.raises(UserError, match="expects function tools"):
        token_report([WebSearchTool()])
    assert str(token_report([])).startswith(" ")


def test_a_search_can_be_filtered_and_prefixed() -> None:
    """It is a toolset like any other."""
    tools = tool_search(read_file, name="find", call_name="use").prefix("x_").map(needs_approval)
    assert names(tools) == ["x_find", "x_use"]


def test_the_command_line_finds_toolsets_in_lists(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module is listed completely, in whatever form it defines its tools."""
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


def test_subscribers_are_notified_when_a_source_changes() -> None:
    """An MCP server then notifies its clients that its list has changed."""
    registry = ToolRegistry()
    notified: list[int] = []
    toolset = tool_search(Toolset(read_file, registry).prefix("x_").prepare(lambda _, given: given))
    toolset.subscribe(lambda: notified.append(1))
    registry.register(write_file)
    assert notified == [1]


async def test_tools_of_a_toolset_are_built_when_the_agent_is_created() -> None:
    """An invalid declaration raises at once, even behind a search."""

    def broken(thing: asyncio.Task[None]) -> None:
        """Take what has no JSON form."""

    tool = function_tool(broken)
    for toolset in (Toolset(tool), tool_search(tool)):
        with pytest.raises(UserError, match="broken"):
            Agent("x", tools=[toolset])
    agent = Agent("x", tools=[tool_search(Source(tool, read_file))])
    search = (await agent.toolbox(None)).by_name["tool_search"]
    assert "read_file" in str(await search.on_invoke_tool(None, '{"query": "read"}'))


async def test_frameworks_accept_a_search() -> None:
    """In proxy mode the two tools are ordinary; the tools they call validate their arguments."""
    from agents_tools.export import to_langchain

    search, call = to_langchain(tool_search(read_file, write_file))
    assert "read_file" in str(await search.ainvoke({"query": "read"}))
    given = {"name": "read_file", "arguments": {"path": "a.txt"}}
    assert "content of a.txt" in str(await call.ainvoke(given))


def test_an_async_function_is_refused_as_a_filter() -> None:
    """Its coroutine would count as true and let all tools through."""

    async def wanted(tool: Any) -> bool:
        return False

    for method in (Toolset(read_file).filter, Toolset(read_file).defer):
        with pytest.raises(UserError, match=r"Use prepare\(...\)"):
            method(wanted)
    with pytest.raises(UserError, match="expected a mapping"):
        Toolset(read_file).filter(metadata=3)  # type: ignore[arg-type]


def test_unordered_collections_are_refused_with_a_remedy() -> None:
    """A set has no order, and a generator is empty on the second read."""
    for given in ({read_file}, (tool for tool in [read_file]), {"a": read_file}):
        with pytest.raises(UserError, match="as a list"):
            Toolset(given)


async def test_a_tuple_of_tools_is_cached_like_a_list() -> None:
    """The cache for the tools of an agent does not depend on the type of the collection."""
    given: Any = (read_file, Toolset(write_file))
    agent = Agent("x", tools=given)
    assert await agent.toolbox(None) is await agent.toolbox(None)


async def test_a_source_can_return_a_toolset_with_other_sources() -> None:
    """An application can pass on the toolset of another one."""
    inner = Source(read_file)
    outer = Source(Toolset(inner).prefix("in_"), write_file)
    toolset = Toolset(outer).prefix("out_")
    assert names(await toolset.get_tools()) == ["out_in_read_file", "out_write_file"]
    assert await toolset.get_tools() is await toolset.get_tools()
    inner.tools.append(make_tool("late"))
    assert "out_in_late" in names(await toolset.get_tools())
