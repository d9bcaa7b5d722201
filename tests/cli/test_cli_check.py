"""Findings of `check`."""

from __future__ import annotations

import ast
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agents_tools import function_tool
from agents_tools.cli.options import PROVIDERS
from agents_tools.toolset.lint import Finding, lint_tools
from agents_tools.toolset.lint.early_results import find_early_results
from agents_tools.wire.project import PROVIDERS as ALL_PROVIDERS

if TYPE_CHECKING:
    from tests.cli.conftest import Run


def codes(*tools: Any) -> dict[str, Finding]:
    """Check tools and return the findings by code."""
    return {finding.code: finding for finding in lint_tools(tools, PROVIDERS)}


def test_a_good_tool_has_no_findings() -> None:
    """A check with false positives would be switched off."""

    @function_tool
    def good(word: str, times: int | None = None) -> str:
        """Say a word.

        Args:
            word: The word.
            times: How often.
        """
        return word * (times or 1)

    assert codes(good) == {}


def test_missing_descriptions_and_types_are_found() -> None:
    """Models choose and fill tools by their descriptions."""

    @function_tool
    def bare(word): ...  # type: ignore[no-untyped-def]

    assert codes(bare).keys() >= {"no-description", "no-parameter-description", "no-type"}


def test_defaults_without_a_json_form_are_found() -> None:
    """The model does not get such a default."""

    @function_tool
    def odd(word: str = "", marker: Any = object()) -> None:  # noqa: B008 - that is the point
        """Do.

        Args:
            word: A word.
            marker: A marker.
        """

    assert "'marker' (object)" in codes(odd)["default-not-json"].message


def test_schemas_that_cannot_be_strict_or_exported_are_found() -> None:
    """It is reported before a provider rejects the request, on each check."""

    @function_tool
    def open_map(values: dict[str, int]) -> None:
        """Do.

        Args:
            values: Numbers by name.
        """

    for _ in range(2):
        assert "strict mode is not possible" in codes(open_map)["not-strict"].message
    portable = codes(open_map.with_(name="2nd"))["not-portable"]
    assert portable.level == "error"
    assert portable.message.startswith("cannot be exported to gemini: ")


def test_equal_names_and_broken_declarations_are_errors() -> None:
    """Neither can work."""

    @function_tool
    def broken(value: NotThere) -> None:  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
        """Do."""

    found = codes(broken, broken.with_())
    assert found["duplicate-name"].level == found["declaration"].level == "error"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("yield 'a'", []),
        ("yield event\nyield 'a'", []),
        ("yield 'a'\nyield event", [2]),
        ("yield 'a'\nclean_up()", []),
        ("yield 'a'\nreturn\nyield", []),
        ("if x:\n    yield 'a'\nelse:\n    yield f'b{x}'", []),
        ("if x:\n    yield 'a'\nyield 'b'", [3]),
        ("if x:\n    yield 'a'\n    return\nyield 'b'", []),
        ("for x in y:\n    yield str(x)\nyield 'done'", [3]),
        ("for x in y:\n    yield 'a' % x", [3]),
        ("for x in y:\n    if x:\n        yield 'a'\n        return\n    yield event", []),
        ("for x in y:\n    if x:\n        yield 'a'\n        break\n    yield event", []),
        ("while True:\n    yield 'a'\n    continue", [3]),
        ("try:\n    yield 'a'\nfinally:\n    clean_up()", []),
        ("try:\n    yield 'a'\nexcept E:\n    yield 'b'", []),
        ("try:\n    yield 'a'\nfinally:\n    yield event", [3]),
        ("with x:\n    yield ', '.join(y)\nyield event", [3]),
        (
            "match x:\n    case 1:\n        yield 'a'\n    case _:\n        yield event\nyield 1",
            [4],
        ),
        ("def inner():\n    yield 'a'\n    yield 'b'\nyield 'c'", []),
        ("yield text\nyield 'a'", []),
    ],
)
def test_a_text_that_is_yielded_before_the_last_is_found(body: str, lines: list[int]) -> None:
    """It ends the tool as its result, which surprises an author who meant a message."""
    source = "def tool():\n" + textwrap.indent(body, "    ")
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    assert [node.lineno for node in find_early_results(definition)] == lines


def test_the_provider_options_match_the_library() -> None:
    """The list is duplicated so that the help text does not need the import."""
    assert PROVIDERS == ALL_PROVIDERS


SOURCE = """
from agents_tools import streaming_tool

@streaming_tool
def talk(word: str):
    '''Say a word aloud.

    Args:
        word: A word.
    '''
    yield "starting"
    yield word
"""


def test_the_command_reports_locations_and_exits_by_level(run: Run, tmp_path: Path) -> None:
    """Editors jump to file:line; a pipeline reads the exit code."""
    path = tmp_path / "sample.py"
    path.write_text(SOURCE)
    found = run("check", str(path))
    assert found.code == 0
    assert f"{path}:11: warning: talk: yields a string that is not last" in found.out
    assert found.out.endswith("1 tool checked: 1 warning\n")
    assert run("check", str(path), "--strict").code == 1

    path.write_text(SOURCE + "\nother = talk.with_()\n")
    errors = run("check", str(path), "--json")
    assert errors.code == 1
    assert errors.json["ok"] is False
    assert errors.json["findings"][0]["code"] == "duplicate-name"


# --- definitions, formats and repairs

DEFINITIONS = [
    {
        "name": "search",
        "description": "\n        Search the orders.\n\n        Only open ones are found.\n        ",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "searchArguments",
            "type": "object",
            "properties": {
                "order_title": {"title": "Order Title", "type": "string"},
                "title": {"type": "string", "description": "The title of the customer."},
            },
            "required": ["order_title"],
        },
    }
]


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(DEFINITIONS, indent=2) + "\n")
    return path


def test_a_file_of_definitions_is_checked(run: Run, definitions: Path) -> None:
    """A list of tools can be checked without its server."""
    found = run("check", str(definitions), "--disable", "wasted-tokens")
    assert found.code == 0
    assert found.out == (
        f"{definitions}: warning: search: parameter 'order_title' has no description: describe it "
        "in the schema [no-parameter-description]\n"
        f"{definitions}: warning: search: is named 'search', a verb without an object: add what "
        "it works on, as in search_papers [vague-name]\n"
        "1 tool checked: 2 warnings\n"
    )
    assert run("check", str(definitions), "--disable", "no-such").code == 2
    definitions.write_text("[]")
    assert "no definitions of tools" in run("check", str(definitions)).err


def test_findings_can_be_written_as_sarif(run: Run, tmp_path: Path) -> None:
    """Each result names its rule, its level and its place."""
    path = tmp_path / "sample.py"
    path.write_text(SOURCE)
    log = run("check", str(path), "--format", "sarif").json
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    (result,) = log["runs"][0]["results"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "early-result"
    assert rules[result["ruleIndex"]]["help"]["text"].startswith("Yield NotifyStreamEvent")
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": path.as_uri()},
        "region": {"startLine": 11},
    }
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "talk"


def test_a_repair_of_definitions_is_shown_and_confirmed(run: Run, definitions: Path) -> None:
    """Titles of parameters that are named `title` stay, and so does the form of the file."""
    before = definitions.read_text()
    shown = run("check", str(definitions), "--fix")
    assert shown.code == 2
    assert "cannot be confirmed without a terminal" in shown.err
    assert '-          "title": "Order Title",' in shown.err
    assert definitions.read_text() == before

    done = run("check", str(definitions), "--fix", "--yes")
    assert f"Repaired {definitions}." in done.err
    assert "wasted-tokens" not in done.out
    (tool,) = json.loads(definitions.read_text())
    assert tool["description"] == "Search the orders.\n\nOnly open ones are found."
    assert tool["inputSchema"] == {
        "type": "object",
        "properties": {
            "order_title": {"type": "string"},
            "title": {"type": "string", "description": "The title of the customer."},
        },
        "required": ["order_title"],
    }
    assert definitions.read_text().startswith('[\n  {\n    "name"')
    assert "Nothing can be repaired" in run("check", str(definitions), "--fix", "--yes").err


MISSPELT = """
from agents_tools import function_tool

@function_tool
def order(number: int, city: str, customer: str) -> str:
    '''Order a cake (nubmer: 1 to 5).

    Args:
        nubmer: How many.
        town: Where to.
        customer: Who pays.
    '''
    return f"{number} {city} {customer}"
"""


def test_a_misspelled_parameter_in_a_docstring_is_repaired(run: Run, tmp_path: Path) -> None:
    """Only an entry of the Args that resembles one parameter is changed."""
    path = tmp_path / "sample.py"
    path.write_text(MISSPELT)
    found = run("check", str(path))
    assert "documents the parameter 'nubmer', which does not exist" in found.out
    run("check", str(path), "--fix", "--yes")
    assert path.read_text() == MISSPELT.replace("nubmer: How", "number: How")


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        pytest.param("", "utf-8-sig", id="byte order mark"),
        pytest.param("# coding: latin-1\n# café\n", "latin-1", id="declared encoding"),
        pytest.param("ENDS = '''\x0c\x1c\x85\u2028'''\n", "utf-8", id="other line ends"),
    ],
)
def test_a_repaired_file_keeps_its_form(run: Run, tmp_path: Path, head: str, encoding: str) -> None:
    """Its lines are those of Python, its encoding is the declared one, and a link stays a link."""
    first = MISSPELT.replace("def order", "def first").replace("nubmer", "number")
    text = (head + first + MISSPELT).replace("\n", "\r\n")
    target = tmp_path / "target.py"
    target.write_bytes(text.encode(encoding))
    path = tmp_path / "sample.py"
    path.symlink_to(target)
    assert "Repaired" in run("check", str(path), "--fix", "--yes").err
    assert target.read_bytes() == text.replace("nubmer: How", "number: How").encode(encoding)
    assert path.is_symlink()


def test_a_function_written_in_c_has_nothing_to_repair(run: Run, tmp_path: Path) -> None:
    """A wrapper can have such a function as its original, which has no source file."""
    path = tmp_path / "sample.py"
    path.write_text(
        "import functools\n"
        "from agents_tools import function_tool\n"
        "@function_tool\n"
        "@functools.wraps(print)\n"
        "def show() -> None: ...\n"
    )
    assert "Nothing can be repaired" in run("check", str(path), "--fix", "--yes").err


def test_the_tokens_of_tools_are_listed_with_their_largest_parts(
    run: Run, definitions: Path
) -> None:
    """The longest definition comes first, and what is longest in it."""
    longer = {**DEFINITIONS[0], "name": "find", "description": "Find orders. " * 60}
    definitions.write_text(json.dumps([*DEFINITIONS, longer]))
    lines = run("check", str(definitions), "--tokens").out.splitlines()
    assert [line.split()[1] for line in lines] == ["find:", "search:", "all"]
    assert lines[0].split(": ", 1)[1].startswith("description (")
    record = run("check", str(definitions), "--tokens", "--json").json
    assert record["tools"][0]["tool"] == "find"
    assert record["totals"]["mcp"] == sum(one["tokens"]["mcp"] for one in record["tools"])


def test_counting_tokens_warns_of_nothing(run: Run, tmp_path: Path) -> None:
    """A tool without strict mode is a finding of the check, not a warning of Python."""
    path = tmp_path / "open_map.py"
    path.write_text(
        "from agents_tools import function_tool\n\n"
        "@function_tool\ndef count_words(limits: dict[str, int]) -> int:\n"
        '    """Count the words of a text."""\n    return len(limits)\n'
    )
    assert run("check", str(path), "--tokens").err == ""


def test_the_pre_commit_hook_runs_the_command() -> None:
    """Its entry is a command that exists, and needs no file names."""
    (hook,) = yaml.safe_load(Path(".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "agents-tools check"
    assert hook["pass_filenames"] is False
    assert hook["language"] == "system"
