"""How a TARGET is resolved to tools, and the messages when that fails."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from agents_tools.cli.errors import CommandError
from agents_tools.cli.target import load_tools
from tests.cli.conftest import FIXTURE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run


def names(target: str) -> list[str]:
    """Return the names of the tools of a target."""
    return [tool.name for tool in load_tools(target.replace("TOOLS", FIXTURE))]


def write(folder: Path, name: str, code: str) -> str:
    """Write a module and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(code))
    return str(path)


TOOL = """
    from agents_tools import function_tool

    @function_tool
    def hello() -> str:
        '''Greet.'''
        return "hello"
"""


def test_a_file_lists_its_tools_in_their_order() -> None:
    """The order in the file is the author's choice."""
    assert names("TOOLS")[:4] == ["add", "echo", "explode", "pipeline"]


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("add", ["add"]),
        ("named", ["add", "echo"]),
        ("plain", ["plain"]),
        ("shelf", ["items_of"]),
        ("shelf.items_of", ["items_of"]),
    ],
)
def test_an_attribute_is_a_tool_a_collection_a_function_or_an_object(
    attribute: str, expected: list[str]
) -> None:
    """Any object that contains tools can be named."""
    assert names(f"TOOLS:{attribute}") == expected


def test_a_module_is_found_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import path of a console script does not include the folder."""
    write(tmp_path, "sample_pkg/__init__.py", "")
    write(tmp_path, "sample_pkg/tools.py", TOOL)
    monkeypatch.chdir(tmp_path)
    assert names("sample_pkg.tools") == ["hello"]
    assert names("sample_pkg.tools:hello") == ["hello"]


def test_a_tool_of_a_file_with_a_dot_is_explained(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python writes `module.name`; a target has a colon."""
    (tmp_path / "sample_oven.py").write_text("")
    monkeypatch.chdir(tmp_path)
    result = run("show", "sample_oven.bake")
    assert "Did you mean sample_oven:bake?" in result.err


def test_a_file_can_import_its_neighbours_and_have_the_name_of_a_known_module(
    tmp_path: Path,
) -> None:
    """`json.py` is loaded as a file, not as the module of the standard library."""
    write(tmp_path, "sample_neighbour.py", "WORD = 'hi'")
    path = write(tmp_path, "json.py", "from sample_neighbour import WORD\n" + textwrap.dedent(TOOL))
    assert names(path) == ["hello"]


def test_tools_in_a_list_of_a_module_are_found(tmp_path: Path) -> None:
    """A module can have its tools in a list only."""
    code = textwrap.dedent(TOOL) + "\nTOOLS = [hello, hello.with_(name='other')]\n"
    assert names(write(tmp_path, "sample.py", code)) == ["hello", "other"]


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("import nothing_like_it", ["No module named", "sample.py:1: import nothing_like_it"]),
        ("x = 1\nx.y.z", ["AttributeError", "sample.py:2: x.y.z"]),
        ("def broken(:\n    pass", ["invalid syntax", "sample.py:1: def broken(:"]),
        ("import sys\nsys.exit(3)", ["it ended the program (exit code 3)", "sample.py:2"]),
        ("from json import loads\nloads('{')", ["JSONDecodeError", "sample.py:2", "decoder.py:"]),
        ("from . import x", ["no known parent package"]),
    ],
)
def test_a_module_that_cannot_be_imported_is_reported_with_the_line(
    code: str, parts: list[str], tmp_path: Path
) -> None:
    """The message has the user's own line and no traceback of the library."""
    with pytest.raises(CommandError) as caught:
        names(write(tmp_path, "sample.py", code))
    for part in parts:
        assert part in str(caught.value)
    assert "agents_tools/cli" not in str(caught.value)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("missing.py", "file missing.py not found."),
        ("sample_missing.part", "module 'sample_missing.part' not found."),
        ("not a name", "'not a name' is neither a Python file nor a module name."),
        ("TOOLS:nope", "has no attribute 'nope'."),
        ("TOOLS:Shelf", "is not a tool but the class Shelf."),
        ("TOOLS:FIXED", "has no attribute"),
        ("math", "math has no tools."),
    ],
)
def test_a_wrong_target_is_explained(target: str, message: str) -> None:
    """The target is the argument that is mistyped most."""
    with pytest.raises(CommandError) as caught:
        names(target)
    assert message in str(caught.value)


def test_functions_that_are_not_tools_are_suggested(tmp_path: Path) -> None:
    """A first file often has no decorators."""
    with pytest.raises(CommandError) as caught:
        names(write(tmp_path, "sample.py", "def greet(name: str): ..."))
    assert caught.value.hint is not None
    assert "sample.py:greet" in caught.value.hint


def test_debug_shows_the_traceback_of_an_import(tmp_path: Path, run: Run) -> None:
    """The short message is not always enough."""
    path = write(tmp_path, "sample.py", "1 / 0")
    assert "Traceback" not in run("list", path).err
    assert "Traceback" in run("list", path, "--debug").err
