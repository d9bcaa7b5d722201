"""Runs exported as code: the generated code runs in a separate process."""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st
from pydantic import JsonValue

from agents_tools import function_tool
from agents_tools.cli.dev import load_for_page
from agents_tools.errors import UserError
from agents_tools.persistence.stream import LEFT_OUT
from agents_tools.playground.catalog import TargetCatalog
from agents_tools.playground.codegen import ToolCallRequest, export
from agents_tools.playground.target_state import LoadedTarget
from tests.scale import slow_case

if TYPE_CHECKING:
    from agents_tools.playground.codegen import Form

pytestmark = pytest.mark.timeout(90)

ROOT = Path(__file__).parents[2]
SAMPLE = '''
from agents_tools import Agent, BaseTool, ToolError, ToolOutputImage, function_tool
from agents_tools.policies import needs_approval


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@function_tool
def search(words: list[str], deep: dict[str, list[int]]) -> dict[str, object]:
    """Search."""
    return {"found": words, "deep": deep, "none": None}


@function_tool(name_override="odd-name")
def odd(text: str) -> str:
    """Give the text back."""
    return text


@function_tool
def fail() -> str:
    """Fail."""
    raise ToolError("It cannot be.")


@function_tool
def picture() -> list[object]:
    """Draw."""
    return ["a dot:", ToolOutputImage(data=b"\\x89PNG", mime_type="image/png")]


@needs_approval
@function_tool
def burn(book: str) -> str:
    """Burn."""
    return f"{book} is gone"


def plain(x: int) -> int:
    """Double."""
    return 2 * x


@function_tool
def _listed(n: int) -> int:
    """Count."""
    return n


class Shop:
    @function_tool
    def sell(self, thing: str) -> str:
        """Sell."""
        return f"sold {thing}"


@function_tool
def call(x: int) -> int:
    """Take the name of a variable."""
    return x


@function_tool(name_override="other-json")
def json(x: int) -> int:
    """Take the name of a module."""
    return x


ALL = [_listed.with_(name="listed")]
tool = [_listed.with_(name="hidden")]
BY_NAME = {"x": _listed.with_(name="mapped")}
shop = Shop()
helper = Agent(name="Helper", instructions="Help.", tools=[add, _listed.with_(name="inner")], model="local/rules")
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a target; it is the working directory."""
    (tmp_path / "sample_shop.py").write_text(SAMPLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exported(target: str, name: str, form: Form, /, **facts: Any) -> tuple[str, str]:
    kind: Any = "agent" if "input" in facts else "tool"
    call = ToolCallRequest(kind=kind, name=name, arguments=facts.pop("arguments", {}), **facts)
    return export(call, form, TargetCatalog.of(load_for_page(target)))


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder that is not on Python's import path."""
    return subprocess.run(  # noqa: S603 - what was generated
        [sys.executable, *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONSAFEPATH": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


CALLS: list[Any] = [
    ("sample_shop.py", "add", {"a": 2}, "3"),
    slow_case("sample_shop", "add", {"a": 2, "b": 5}, "7"),
    ("sample_shop.py:add", "add", {"a": 1}, "2"),
    slow_case("sample_shop.py", "odd-name", {"text": "it's \"all\"\n$(right) `é` \\ 'x'"}, ""),
    slow_case("sample_shop.py:ALL", "listed", {"n": 4}, "4"),
    slow_case("sample_shop.py:BY_NAME", "mapped", {"n": 5}, "5"),
    slow_case("sample_shop.py:plain", "plain", {"x": 4}, "8"),
    slow_case("sample_shop.py:shop", "sell", {"thing": "tea"}, "sold tea"),
    slow_case("sample_shop.py:helper", "inner", {"n": 6}, "6"),
    ("sample_shop.py:helper", "add", {"a": 6}, "7"),
    slow_case("sample_shop.py", "burn", {"book": "it"}, "it is gone"),
    slow_case("sample_shop.py", "call", {"x": 7}, "7"),
    slow_case("sample_shop.py:tool", "hidden", {"n": 8}, "8"),
]


@pytest.mark.parametrize(("target", "name", "arguments", "expected"), CALLS)
def test_exported_python_prints_the_result(
    folder: Path, target: str, name: str, arguments: dict[str, Any], expected: str
) -> None:
    """The program can import the tool for every form of target."""
    file, source = exported(target, name, "python", arguments=arguments)
    (folder / file).write_text(source)
    done = run(folder, file)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{expected or arguments['text']}\n"


@pytest.mark.slow
def test_a_file_whose_name_is_not_an_identifier_is_imported(folder: Path, tmp_path: Path) -> None:
    """Scripts have names such as `my-tools.py`, and are in folders."""
    (tmp_path / "deep er").mkdir()
    (tmp_path / "deep er" / "my-tools.py").write_text(SAMPLE)
    file, source = exported("deep er/my-tools.py", "add", "python", arguments={"a": 1})
    (folder / file).write_text(source)
    assert run(folder, file).stdout == "2\n"


TESTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("add", {"a": 2}, {"blocks": text("3")}),
    (
        "search",
        {"words": ["a" * 90, "b" * 90], "deep": {"x": list(range(40))}},
        {
            "blocks": text(
                json.dumps(
                    {
                        "none": None,
                        "found": ["a" * 90, "b" * 90],
                        "deep": {"x": list(range(40))},
                    }
                )
            )
        },
    ),
    ("odd-name", {"text": "two\nlines"}, {"blocks": text("two\nlines")}),
    ("fail", {}, {"status": "tool_error", "blocks": text("It cannot be.")}),
    (
        "picture",
        {},
        {
            "texts": False,
            "blocks": [
                *text("a dot:"),
                {"type": "image", "data": "iVBO", "mime_type": "image/png"},
            ],
        },
    ),
    ("burn", {"book": "it"}, {"blocks": text("it is gone")}),
    ("burn", {"book": "it"}, {"status": "denied", "blocks": text('It\'s "mine".')}),
    ("add", {"a": 2}, {"blocks": text("the secret is ***")}),
    ("call", {"x": 3}, {"blocks": text("3")}),
    ("other-json", {"x": 3}, {"blocks": text("3")}),
]


@pytest.mark.slow
def test_exported_tests_pass(folder: Path) -> None:
    """JSON is compared as JSON, a failure is expected to fail, masked values are left out."""
    for number, (name, arguments, facts) in enumerate(TESTS):
        file, source = exported("sample_shop.py", name, "pytest", arguments=arguments, **facts)
        (folder / file.replace("test_", f"test_{number}_")).write_text(source)
    done = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header")
    assert f"{len(TESTS)} passed" in done.stdout, done.stdout


@pytest.mark.parametrize("form", ["python", "pytest"])
def test_masked_arguments_become_placeholders(folder: Path, form: Form) -> None:
    """The original value is not stored."""
    del folder
    facts: dict[str, Any] = {"arguments": {"text": "***"}, "blocks": text("gone")}
    _, source = exported("sample_shop.py", "odd-name", form, **facts)
    assert "# *** replaces a secret: fill it in." in source


@pytest.mark.parametrize("status", ["timeout", "lost", "cancelled", "overloaded"])
def test_a_call_without_a_reproducible_result_is_not_exported_as_a_test(
    folder: Path, status: str
) -> None:
    """Another call can end differently."""
    del folder
    with pytest.raises(UserError, match=f"'{status}', which does not predict"):
        exported("sample_shop.py", "add", "pytest", arguments={"a": 1}, status=status)


def test_a_truncated_result_is_not_asserted(folder: Path) -> None:
    """A new call returns the complete result."""
    del folder
    blocks = text(f"(7 bytes {LEFT_OUT})")
    _, source = exported("sample_shop.py", "add", "pytest", arguments={"a": 1}, blocks=blocks)
    assert "assert call.output ==" not in source


def test_a_tool_without_a_name_in_its_module_is_reported(folder: Path) -> None:
    """Code cannot import it."""
    del folder
    catalog = TargetCatalog.of(
        LoadedTarget(target="sample_shop.py", tools=(echo.with_(name="no-name"),))
    )
    with pytest.raises(UserError, match="No name in"):
        export(ToolCallRequest(kind="tool", name="no-name", arguments={}), "python", catalog)


@pytest.mark.slow
def test_an_exported_test_fails_when_the_result_changes(folder: Path) -> None:
    """The exported test must be able to fail."""
    file, source = exported("sample_shop.py", "add", "pytest", arguments={"a": 2}, blocks=text("4"))
    (folder / file).write_text(source)
    assert "1 failed" in run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider").stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_an_exported_command_runs_in_a_shell(folder: Path) -> None:
    """The arguments are quoted for the shell."""
    text_argument = 'it\'s "all" $(touch owned) `touch owned` ; touch owned\n| é'
    _, source = exported("sample_shop.py", "odd-name", "cli", arguments={"text": text_argument})
    command = f"{sys.executable} -m {source}".replace("agents-tools", "agents_tools", 1)
    done = subprocess.run(  # noqa: S603 - what was generated
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.rstrip("\n") == text_argument
    assert not (folder / "owned").exists()


@pytest.mark.slow
def test_an_agent_is_exported_too(folder: Path) -> None:
    """It is exported as a program, a command, a test and JSON."""
    file, source = exported("sample_shop.py", "Helper", "python", input="add 2 and 3")
    (folder / file).write_text(source)
    answer = run(folder, file).stdout.rstrip("\n")
    assert "5" in answer
    file, source = exported(
        "sample_shop.py", "Helper", "pytest", input="add 2 and 3", blocks=text(answer)
    )
    (folder / file).write_text(source)
    assert "1 passed" in run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider").stdout
    _, source = exported("sample_shop.py", "Helper", "cli", input="-v 'x'")
    assert source == "agents-tools run sample_shop.py -- '-v '\"'\"'x'\"'\"''\n"
    _, source = exported("sample_shop.py", "Helper", "json", input="hi")
    assert json.loads(source) == {"agent": "Helper", "input": "hi"}


@function_tool
def echo(value: JsonValue = None) -> Any:
    """Give a value back."""
    return value


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(arguments=st.dictionaries(st.text(max_size=8), JSON, max_size=4), output=st.text())
def test_any_arguments_and_results_survive_the_export(
    arguments: dict[str, Any], output: str
) -> None:
    """Quotes, line ends, control characters and depth are read back unchanged."""
    loaded = LoadedTarget(
        target="my tools.py", tools=(echo,), place="my tools.py", attribute="echo", value=echo
    )
    catalog = TargetCatalog.of(loaded)
    called = ToolCallRequest(kind="tool", name="echo", arguments=arguments, blocks=text(output))
    _, source = export(called, "pytest", catalog)
    function = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    literals = [ast.literal_eval(node) for node in ast.walk(function) if _is_literal(node)]
    assert arguments in literals
    value = _parsed(output)
    assert (value if isinstance(value, (dict, list)) else output) in literals or "***" in output
    _, command = export(called, "cli", catalog)
    words = shlex.split(command)
    assert words[:5] == ["agents-tools", "call", "my tools.py", "echo", "--input-json"]
    assert json.loads(words[5]) == arguments


def _is_literal(node: ast.AST) -> bool:
    try:
        ast.literal_eval(node)  # pyright: ignore[reportArgumentType]
    except ValueError:
        return False
    return True


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def test_exported_json_is_the_call(folder: Path) -> None:
    """Other programs can read it."""
    del folder
    name, source = exported("sample_shop.py", "add", "json", arguments={"a": 1})
    assert (name, json.loads(source)) == ("add.json", {"tool": "add", "arguments": {"a": 1}})


@pytest.mark.slow
def test_built_in_tools_are_exported(folder: Path) -> None:
    """They have no file to import from."""
    (folder / "note.txt").write_text("a note")
    names = [tool.name for tool in load_for_page("builtin").tools]
    assert "glob" in names
    file, source = exported("builtin", "glob", "python", arguments={"pattern": "*.txt"})
    (folder / file).write_text(source)
    done = run(folder, file)
    assert "note.txt" in done.stdout, done.stderr
