"""The structure of the package, and its public names on an installation without any extra."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import agents_tools
from agents_tools.export._openai_agents_names import ATTRIBUTES, COUNTERPARTS, OPTIONS
from tests.public_modules import public_modules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(agents_tools.__file__).parent
LAZY = sorted(path for path in ROOT.rglob("__init__.py") if "lazy_exports(" in path.read_text())

_SHARED_NAMES = {"ActionEvent", "Agent", "Event", "MessageEvent", "ObservationEvent"}
"""Public classes of `agents_tools.conversation` that have the names of its own interface."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT.parent).as_posix()


def test_the_top_level_has_at_most_30_entries() -> None:
    entries = {path.name for path in ROOT.iterdir() if not path.name.startswith("__")} - {
        "py.typed"
    }
    assert len(entries) <= 30, sorted(entries)


def test_each_package_has_a_docstring_with_one_sentence() -> None:
    missing = [
        _name(path)
        for path in ROOT.rglob("__init__.py")
        if not (ast.get_docstring(ast.parse(path.read_text())) or "")
        .partition("\n")[0]
        .endswith(".")
    ]
    assert missing == []


def test_class_names_are_unique() -> None:
    """A search for a class name must find one class."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if defined := re.match(r" *class (\w+)[:(\[]", line):
                places[defined[1]].append(f"{_name(path)}:{number}")
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if name not in _SHARED_NAMES} == {}


@pytest.mark.parametrize("path", LAZY, ids=_name)
def test_type_checkers_know_the_lazily_loaded_names(path: Path) -> None:
    """Each `__init__` lists its names twice: for type checkers and for the loader."""
    tree = ast.parse(path.read_text())
    declared: set[str] = set()
    for block in tree.body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in ast.walk(block):
                if isinstance(node, ast.ImportFrom):
                    declared |= {alias.asname for alias in node.names if alias.asname}
    call = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_exports"
    )
    loaded: set[str] = set()
    for names in ast.literal_eval(call.args[1]).values():
        assert isinstance(names, tuple), "a comma is missing"
        loaded |= set(names)
    for keyword in call.keywords:
        if keyword.arg == "submodules":
            loaded |= set(ast.literal_eval(keyword.value))
    assert declared | {"__version__"} == loaded | {"__version__"}


def _required() -> Iterator[str]:
    """Yield the distributions that are installed without any extra."""
    pending, seen = ["agents_tools"], set[str]()
    while pending:
        name = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        yield name
        pending += [
            re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines if "extra ==" not in line
        ]


_WITHOUT_EXTRAS = """
import importlib, pydoc, sys

allowed, modules = {allowed!r}, {modules!r}


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Blocked())
for name in modules:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        assert "Install it: pip install" in str(error), (name, error)
        continue
    exec(f"from {{name}} import *", {{}})
    assert set(module.__all__) <= set(dir(module)), name
    for public in module.__all__:
        assert hasattr(module, public), (name, public)
        repr(getattr(module, public))
    assert not hasattr(module, "no_such_name"), name
    pydoc.render_doc(module)
print("done", len(modules))
"""


@pytest.mark.slow
def test_names_can_be_inspected_without_any_extra() -> None:
    """`import *`, `dir`, `hasattr` and `help` work before an optional dependency is installed."""
    required = set(_required())
    installed = {
        module
        for module, owners in metadata.packages_distributions().items()
        if {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners} & required
    }
    allowed = installed | set(sys.stdlib_module_names) | {"agents_tools", "__main__"}
    modules = [name for name in public_modules() if name != "agents_tools.pytest_plugin"]
    program = _WITHOUT_EXTRAS.format(allowed=allowed, modules=modules)
    done = subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == f"done {len(modules)}\n", done.stderr[-2000:]


def test_importing_a_name_of_openai_agents_names_its_counterpart() -> None:
    """Every name in the table exists there and not here, and the error names the replacement."""
    openai_agents = pytest.importorskip("agents")
    elsewhere = {*openai_agents.__all__, *importlib.import_module("agents.mcp").__all__}
    for name, remedy in COUNTERPARTS.items():
        assert name in elsewhere
        with pytest.raises(ImportError) as caught:
            exec(f"from agents_tools import {name}", {})  # noqa: S102 - the statement itself
        assert str(caught.value) == f"agents_tools has no {name}. {remedy}"
        for path in re.findall(r"agents_tools(?:\.[A-Za-z_]+)+", remedy):
            resolved = pkgutil.resolve_name(path)
            if remedy.startswith("Import it from"):
                assert hasattr(resolved, name)
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        from agents_tools import no_such_name  # type: ignore[attr-defined] # noqa: F401


@pytest.mark.parametrize("owner", OPTIONS)
async def test_an_option_of_openai_agents_names_its_counterpart(owner: str) -> None:
    """Each option of the table exists there and not here, and the error names the replacement."""
    pytest.importorskip("agents")
    theirs = inspect.signature(pkgutil.resolve_name(f"agents:{owner}")).parameters
    place = "agents_tools.agents" if owner.startswith("RunState") else "agents_tools"
    ours = pkgutil.resolve_name(f"{place}:{owner}")
    agent = agents_tools.Agent("a")
    needed: dict[str, tuple[Any, ...]] = {  # the other arguments
        "Agent": ("a",),
        "Agent.as_tool": (agent,),
        "RunState.approve": (None, None),
        "RunState.reject": (None, None),
        "Runner.run": (agent, "hi"),
        "Runner.run_streamed": (agent, "hi"),
        "Runner.run_sync": (agent, "hi"),
        "handoff": (agent,),
    }
    for option, remedy in OPTIONS[owner].items():
        assert option in theirs or "kwargs" in theirs
        with pytest.raises(agents_tools.UserError) as caught:
            await ours(*needed.get(owner, ()), **{option: 1})
        assert str(caught.value) == f"{owner}(...) has no option {option!r}. {remedy}"


def test_importing_an_mcp_server_of_openai_agents_names_its_counterpart() -> None:
    """Programs import these names from the module `mcp`."""
    with pytest.raises(ImportError, match=r"agents_tools.mcp has no MCPServerStdio. Use agents_t"):
        from agents_tools.mcp import MCPServerStdio  # type: ignore[attr-defined] # noqa: F401


def test_the_decorator_of_other_libraries_names_its_counterpart() -> None:
    """`tool` is a package here, and `@tool` a decorator in LangChain, Strands and smolagents."""
    tool: Any = importlib.import_module("agents_tools.tool")
    with pytest.raises(TypeError, match="is a package, not a decorator"):
        tool(print)
    with pytest.raises(TypeError, match="and @function_tool"):
        tool(name="print")


def test_an_attribute_of_openai_agents_names_its_counterpart() -> None:
    """Each class in the table lacks the attribute, and its error has the remedy."""
    modules = [importlib.import_module(f"agents_tools.{name}") for name in ("agents", "mcp")]
    for kind, remedies in ATTRIBUTES.items():
        owner = next(getattr(one, kind) for one in (agents_tools, *modules) if kind in one.__all__)
        thing = object.__new__(owner)
        for name, remedy in remedies.items():
            assert not hasattr(owner, name)
            with pytest.raises(AttributeError) as caught:
                getattr(thing, name)
            expected = f"{kind!r} object has no attribute {name!r}. {remedy}"
            assert str(caught.value) == expected
        with pytest.raises(AttributeError, match=r"has no attribute 'no_such_name'$"):
            thing.no_such_name  # noqa: B018 - the statement itself
