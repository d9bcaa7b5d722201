"""Test the tool registry: registering, resolving, subscribing and describing tools."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agents_tools import (
    Action,
    BaseTool,
    BaseToolParams,
    FunctionTool,
    Observation,
    ToolAnnotations,
    ToolDefinition,
    ToolExecutor,
    ToolRegistry,
    ToolSpec,
    UserError,
    function_tool,
    list_registered_tools,
    register_tool,
    resolve_tool,
)
from agents_tools.registry import RegistryChange, Tool, default_registry
from agents_tools.tool import ToolOrigin


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class GreetAction(Action):
    who: str


class Greeter(ToolExecutor[GreetAction, Observation]):
    """Greets, and counts how often it was closed."""

    def __init__(self, word: str, place: str | None = None) -> None:
        self.word, self.place, self.closed = word, place, 0

    def __call__(self, action: GreetAction, conversation: Any = None) -> Observation:
        return Observation.from_text(f"{self.word}, {action.who} of {self.place}")

    def close(self) -> None:
        self.closed += 1


class GreetTool(ToolDefinition[GreetAction, Observation]):
    """A tool that is created with a word, in the directory of the conversation."""

    made: ClassVar[list[Greeter]] = []

    @classmethod
    def create(cls, conv_state: Any = None, *, word: str = "Hello") -> Sequence[ToolDefinition]:
        place = conv_state.workspace.working_dir if conv_state else None
        executor = Greeter(word, place)
        cls.made.append(executor)
        return [cls(description="Greet.", action_type=GreetAction, executor=executor)]


class PolishParams(BaseToolParams):
    """Polish a thing until it shines."""

    name: ClassVar[str] = "polish"
    thing: str
    title: str = "none"
    default: int = 0


class PolishTool(BaseTool):
    """A tool with a class of parameters."""

    params_class: ClassVar[type[BaseToolParams]] = PolishParams

    def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
        params = self.parse_params(args_json)
        return f"{params.thing} shines ({session})", {"status": "success"}


def make_tool(name: str, *, server: str | None = None) -> FunctionTool[..., Any]:
    async def body(context: Any, args_json: str) -> str:
        return name

    tool = FunctionTool(name=name, params_json_schema={"type": "object"}, on_invoke_tool=body)
    if server is not None:
        tool._origin = ToolOrigin(kind="mcp", server=server, wire_name=name)  # pyright: ignore[reportPrivateUsage]
    return tool


STATE = SimpleNamespace(workspace=SimpleNamespace(working_dir="/place"))


# --- registering and lookup


@pytest.mark.requirement("C6", "C9", "C10", "C11")
def test_all_kinds_of_tools_can_be_registered() -> None:
    """Covers functions, class-based tools and `BaseTool`s, in the order of registration."""
    registry = ToolRegistry()
    registry.register(PolishTool())
    registry.register(add)
    registry.register(GreetTool.create()[0])
    assert registry.get_tool_names() == ["polish", "add", "greet"]
    assert [type(tool) for tool in registry.get_all_tools()] == [FunctionTool] * 3
    assert registry.get_tool("add") is add
    assert registry.get_tool("nothing") is None  # C9
    assert len(registry) == 3
    assert "add" in registry
    registry.get_all_tools().clear()
    assert len(registry) == 3


def test_a_duplicate_name_is_refused_unless_it_replaces() -> None:
    """The error names both sources, `replace=True` replaces, and other objects are refused."""
    registry = ToolRegistry()
    registry.register(add)
    with pytest.raises(
        UserError, match=r"'add' is registered already: .*test_registry.*replace=Tr"
    ):
        registry.register("add", GreetTool)
    registry.register("add", GreetTool, replace=True)
    assert registry.get_tool("add") is None
    with pytest.raises(UserError, match="is not a tool: got a value of type int"):
        registry.register(3)
    with pytest.raises(UserError, match="has no second argument"):
        registry.register("name")
    with pytest.raises(UserError, match="tool name ' ' is not accepted"):
        registry.register(" ", add)


@pytest.mark.requirement("C7")
def test_register_many_registers_all_tools_or_none() -> None:
    """One refused tool means that no other is registered."""
    registry = ToolRegistry()
    registry.register(make_tool("b"))
    with pytest.raises(UserError, match="'b' is registered already"):
        registry.register_many([make_tool("a"), make_tool("b"), make_tool("c")])
    with pytest.raises(UserError, match="'d' is registered already"):
        registry.register_many([make_tool("d"), make_tool("d")])
    assert registry.get_tool_names() == ["b"]
    registry.register_many([make_tool("a"), ("greeter", GreetTool)])
    assert registry.get_tool_names() == ["b", "a", "greeter"]


@pytest.mark.requirement("C8")
def test_names_can_be_unregistered() -> None:
    """Unregistering an unknown name is not an error."""
    registry = ToolRegistry()
    registry.register(add)
    assert registry.unregister("add")
    assert not registry.unregister("add")
    assert registry.get_tool_names() == []


@pytest.mark.requirement("C13", "C14", "C15", "C16")
def test_tools_can_be_listed_by_server() -> None:
    registry = ToolRegistry()
    registry.register_many([add, make_tool("z_a", server="z"), make_tool("g_b", server="g")])
    assert [tool.name for tool in registry.get_mcp_tools()] == ["z_a", "g_b"]
    assert [tool.name for tool in registry.get_builtin_tools()] == ["add"]
    assert [tool.name for tool in registry.get_tools_by_server("z")] == ["z_a"]
    assert registry.get_mcp_server_names() == ["g", "z"]


@pytest.mark.requirement("C4", "C12")
def test_specs_match_the_format_of_providers() -> None:
    """There is one for each tool, with all parameters under any name."""
    registry = ToolRegistry()
    registry.register_many([add, PolishTool()])
    specs = registry.get_tool_specs()
    assert [spec["function"]["name"] for spec in specs] == ["add", "polish"]
    assert set(specs[1]["function"]["parameters"]["properties"]) == {"thing", "title", "default"}
    assert specs[1]["function"]["description"] == "Polish a thing until it shines."
    assert [spec["name"] for spec in registry.get_tool_specs("anthropic")] == ["add", "polish"]
    with pytest.raises(UserError, match="is unknown"):
        registry.get_tool_specs("nobody")


def test_subscribers_are_notified_of_changes() -> None:
    """Each change is reported once; a subscriber that raises does not affect the others."""
    registry, changes = ToolRegistry(), list[RegistryChange]()
    registry.subscribe(lambda _: 1 / 0)
    end = registry.subscribe(changes.append)
    registry.register(add)
    registry.register(add, replace=True)
    registry.register_many([make_tool("a"), make_tool("b")])
    registry.unregister("a")
    registry.unregister("a")
    end()
    registry.unregister("b")
    assert changes == [
        RegistryChange(added=("add",)),
        RegistryChange(replaced=("add",)),
        RegistryChange(added=("a", "b")),
        RegistryChange(removed=("a",)),
    ]


def test_a_snapshot_is_json() -> None:
    """It has everything that a user interface needs to list the tools, including factories."""
    registry = ToolRegistry()
    registry.register(add.with_(annotations=ToolAnnotations(readOnlyHint=True)))
    registry.register("greeter", GreetTool)
    shown = json.loads(json.dumps(registry.snapshot()))
    first, second = shown["tools"]
    assert (first["name"], first["kind"], first["description"]) == (
        "add",
        "function",
        "Add two numbers.",
    )
    assert first["annotations"]["readOnlyHint"] is True
    assert first["params_json_schema"]["required"] == ["a", "b"]
    assert second == {
        "name": "greeter",
        "kind": "factory",
        "source": "tests.test_registry.GreetTool",
    }


# --- resolving tools


@pytest.mark.requirement("B21", "B76")
def test_a_specification_needs_a_name() -> None:
    """An empty name is refused, and missing parameters mean an empty object."""
    assert Tool is ToolSpec
    assert ToolSpec(name="x", params=None).params == {}  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cannot be empty"):
        ToolSpec(name="")
    assert ToolSpec.model_validate_json('{"name": "x", "params": {"a": 1}}').params == {"a": 1}


@pytest.mark.requirement("B22", "B23", "B25", "B26", "B28")
async def test_classes_and_functions_create_tools() -> None:
    """They receive parameters and the state of the conversation."""
    registry = ToolRegistry()
    registry.register("greeter", GreetTool)

    def pair(conv_state: Any, word: str = "Hi") -> list[Any]:
        return [GreetTool.create(conv_state, word=word)[0], add]

    registry.register("pair", pair)
    made = registry.resolve(ToolSpec(name="greeter", params={"word": "Hey"}), STATE)
    assert await made[0].invoke(who="Ann") == Observation.from_text("Hey, Ann of /place")
    assert [tool.name for tool in registry.resolve("pair", STATE)] == ["greet", "add"]
    assert await registry.resolve("greeter")[0].invoke(who="Bo") == Observation.from_text(
        "Hello, Bo of None"
    )


@pytest.mark.requirement("B24")
def test_a_fixed_tool_accepts_no_parameters() -> None:
    """It is returned unchanged."""
    registry = ToolRegistry()
    registry.register("plus", add)
    assert registry.resolve("plus") == [add]
    with pytest.raises(ValueError, match="accepts no parameters, got word"):
        registry.resolve(ToolSpec(name="plus", params={"word": 1}))


@pytest.mark.requirement("B4")
def test_names_can_be_patterns() -> None:
    """A pattern resolves to every matching tool, in the order of registration."""
    registry = ToolRegistry()
    registry.register_many([make_tool("file_read"), make_tool("web_get"), make_tool("file_write")])
    assert [tool.name for tool in registry.resolve("file_*")] == ["file_read", "file_write"]
    assert registry.find("*_get") == ["web_get"]
    with pytest.raises(
        KeyError, match=r"'web_gt'. Did you mean 'web_get'\? Registered tools: file_"
    ):
        registry.resolve("web_gt")
    with pytest.raises(KeyError, match="No tool is registered as 'nope"):
        registry.resolve("nope_*")


@pytest.mark.requirement("B86", "B5")
def test_a_failing_factory_is_named_in_the_error() -> None:
    """The error has the name, the source and the cause."""
    registry = ToolRegistry()

    def broken(**_: Any) -> list[Any]:
        raise RuntimeError("no disk")

    def single() -> Any:
        return add

    class NoCreate(ToolDefinition[GreetAction, Observation]):
        pass

    registry.register("broken", broken)
    registry.register("single", single)
    registry.register("strange", lambda: [3])
    registry.register("greeter", GreetTool)
    with pytest.raises(UserError, match=r"'broken' cannot be created: .*broken failed .*: no disk"):
        registry.resolve("broken")
    with pytest.raises(UserError, match=r"expected a list of tools from .*, got a FunctionTool"):
        registry.resolve("single")
    with pytest.raises(UserError, match="is not a tool: got a value of type int"):
        registry.resolve("strange")
    with pytest.raises(UserError, match=r"cannot be created with these parameters: .*'colour'"):
        registry.resolve(ToolSpec(name="greeter", params={"colour": "red"}))
    with pytest.raises(UserError, match=r"does not define create\(\)"):  # B5
        registry.register("none", NoCreate)
    with pytest.raises(UserError, match=r"does not define create\(\)"):
        registry.register("int", int)


def test_closing_a_registry_closes_the_executors_it_created() -> None:
    """Shared executors are closed once, however they were registered or resolved."""
    GreetTool.made.clear()
    with ToolRegistry() as registry:
        registry.register("greeter", GreetTool)
        registry.register(GreetTool.create()[0])
        registry.resolve("greeter")
        shared = Greeter("x")
        registry.register(
            "two",
            lambda: [
                ToolDefinition(name=n, description="", action_type=GreetAction, executor=shared)
                for n in ("p", "q")
            ],
        )
        registry.resolve("two")
    assert [one.closed for one in [*GreetTool.made, shared]] == [1, 1, 1]


@pytest.mark.requirement("B92")
def test_module_functions_use_the_shared_registry(tmp_path: Path) -> None:
    """It has the built-in tools under all their names, unless another tool was registered."""
    register_tool("my_greeter", GreetTool)
    try:
        assert "my_greeter" in list_registered_tools()
        assert resolve_tool("my_greeter")[0].name == "greet"
        for name in ("think", "finish"):
            assert resolve_tool(name)[0].name == name
        for name in ("terminal", "execute_bash", "TerminalTool", "BashTool"):
            assert resolve_tool(name)[0].name == "execute_bash"
        register_tool("think", add)
        assert resolve_tool("think") == [add]
    finally:
        default_registry.unregister("my_greeter")
        default_registry.unregister("think")


def test_other_packages_can_provide_tools_through_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is imported before it is resolved, and an error names the package."""
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "goods.py").write_text(
        "from agents_tools import function_tool\n"
        "@function_tool\ndef price(thing: str) -> int:\n    '''Tell a price.'''\n    return 3\n"
        "def make(conv_state=None, *, much=1):\n    return [price] * much\n"
    )
    info = tmp_path / "shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agents_tools.tools]\nprice = shop.goods:price\nprices = shop.goods:make\n"
        "gone = shop.nowhere:tool\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    registry = ToolRegistry()
    assert sorted(registry.discover()) == ["gone", "price", "prices"]
    assert "shop.goods" not in sys.modules
    assert registry.discover() == []
    assert registry.resolve("price")[0].name == "price"
    assert len(registry.resolve(ToolSpec(name="prices", params={"much": 2}))) == 2
    with pytest.raises(UserError, match=r"shop\.nowhere:tool cannot be loaded: ModuleNotFound"):
        registry.resolve("gone")
    with pytest.raises(UserError, match=r"shop\.goods:make of package shop"):
        registry.register("prices", add)


# --- BaseTool


@pytest.mark.requirement("C1", "C2", "C3", "C5")
async def test_a_base_tool_executes_with_a_session() -> None:
    """It receives JSON text and returns text and metadata; errors name the parameter."""
    tool = PolishTool()
    assert tool.execute(None, '{"thing": "lamp"}') == ("lamp shines (None)", {"status": "success"})
    outcome = await tool.as_function_tool().call(None, '{"thing": "lamp"}')
    assert (outcome.status, outcome.output) == ("ok", "lamp shines (None)")
    assert outcome.metadata == {"status": "success"}
    bad = await tool.as_function_tool().call(None, '{"thing": 3, "shine": true}')
    assert bad.status == "invalid_args"
    assert "thing" in str(bad.output)
    assert "shine" in str(bad.output)
    with pytest.raises(UserError.__base__, match="thing"):  # type: ignore[arg-type]
        tool.parse_params("{}")


@pytest.mark.requirement("C1")
def test_a_base_tool_needs_parameters_and_a_name() -> None:
    """A subclass without them is refused when it is defined."""
    with pytest.raises(TypeError, match="has no params_class"):

        class _NoParams(BaseTool):
            def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
                return "", {}

    class _Nameless(BaseToolParams):
        pass

    with pytest.raises(TypeError, match="has no name"):

        class _NoName(BaseTool):
            params_class = _Nameless

            def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
                return "", {}


async def test_an_execute_method_with_an_invalid_result_is_reported() -> None:
    class Odd(BaseTool):
        name = "odd"
        params_class = PolishParams

        def execute(self, session: Any, args_json: str) -> Any:
            return "just text"

    outcome = await Odd().as_function_tool().call(None, '{"thing": "x"}')
    assert outcome.status == "tool_error"
    assert "expected (text, info)" in str(outcome.error)


async def test_an_async_execute_is_awaited() -> None:
    class Later(BaseTool):
        name = "later"
        params_class = PolishParams

        async def execute(self, session: Any, args_json: str) -> Any:  # type: ignore[override]
            return args_json, {}

    tool = Later().as_function_tool()
    assert (await tool.call(None, '{"thing": "x"}')).output == '{"thing": "x"}'


# --- threads and properties


@pytest.mark.requirement("F43")
def test_registries_are_thread_safe() -> None:
    """16 threads register, resolve and unregister; no registration is lost or partly visible."""
    registry, errors = ToolRegistry(), list[BaseException]()
    begin = threading.Barrier(16)

    def work(number: int) -> None:
        try:
            begin.wait(10)
            for turn in range(30):
                name = f"t{number}_{turn}"
                pair = [make_tool(name), make_tool(f"{name}_b")]
                registry.register_many(pair)
                assert [tool.name for tool in registry.resolve(f"{name}*")] == [name, f"{name}_b"]
                registry.unregister(f"{name}_b")
                registry.get_all_tools()
                registry.snapshot()["tools"][-1:]
        except BaseException as error:  # noqa: BLE001 - reported by the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not errors
    assert sorted(registry.get_tool_names()) == sorted(
        f"t{number}_{turn}" for number in range(16) for turn in range(30)
    )


@pytest.mark.requirement("F43")
def test_only_one_thread_can_register_a_name() -> None:
    registry, won = ToolRegistry(), list[int]()
    begin = threading.Barrier(16)

    def work(number: int) -> None:
        tool = make_tool("same")
        begin.wait(10)
        try:
            registry.register(tool)
        except UserError:
            return
        won.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(won) == 1


class _Machine(RuleBasedStateMachine):
    """A registry behaves like a dictionary that refuses to overwrite keys."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = ToolRegistry()
        self.model: dict[str, FunctionTool[..., Any]] = {}

    @rule(names=st.lists(st.sampled_from("abcd"), max_size=3), replace=st.booleans())
    def register(self, names: list[str], replace: bool) -> None:
        tools = [make_tool(name) for name in names]
        clash = len(set(names)) < len(names) or (not replace and set(names) & set(self.model))
        if clash:
            with pytest.raises(UserError):
                self.registry.register_many(tools, replace=replace)
        else:
            self.registry.register_many(tools, replace=replace)
            self.model.update({tool.name: tool for tool in tools})

    @rule(name=st.sampled_from("abcd"))
    def unregister(self, name: str) -> None:
        assert self.registry.unregister(name) == (self.model.pop(name, None) is not None)

    @invariant()
    def is_the_same(self) -> None:
        assert self.registry.get_tool_names() == list(self.model)
        assert self.registry.get_all_tools() == list(self.model.values())


TestRegistryMachine = _Machine.TestCase
TestRegistryMachine.settings = settings(max_examples=50, stateful_step_count=20)
