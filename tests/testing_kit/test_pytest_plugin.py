"""The pytest plugin, run in a separate pytest."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_TOOLS = '''
from agents_tools import Agent, Runner, function_tool, notify

done = []

@function_tool
def greet(name: str) -> str:
    """Greet."""
    done.append(name)
    notify("greeting")
    return f"Hello {name}"

@function_tool
def test_connection(host: str) -> str:
    return host
'''


def run(folder: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        command, cwd=folder, capture_output=True, text=True, timeout=50, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["agents_tools.pytest_plugin"]\n')
    (tmp_path / "tools.py").write_text(_TOOLS)
    return tmp_path


def test_fixtures_capture_events_and_script_models(folder: Path) -> None:
    (folder / "test_it.py").write_text(
        "from agents_tools.testing import tool_call\n"
        "from tools import *\n"
        "def test_run(tool_events, scripted_model):\n"
        "    model = scripted_model(tool_call('greet', name='Ann'), 'done')\n"
        "    result = Runner.run_sync(Agent('a', tools=[greet], model='openai/gpt'), 'go')\n"
        "    assert result.final_output == 'done'\n"
        "    assert len(model.requests) == 2\n"
        "    assert 'greeting' in [getattr(event, 'data', '') for event in tool_events.events]\n"
    )
    code, out = run(folder)
    assert (code, "1 passed" in out) == (0, True), out


@pytest.mark.slow
def test_snapshots_are_stored_next_to_the_test_and_rewritten_on_request(folder: Path) -> None:
    test = "from tools import *\ndef test_schema(tool_schema_snapshot):\n    tool_schema_snapshot(greet)\n"
    (folder / "test_it.py").write_text(test)
    assert run(folder)[0] == 0
    assert [one.name for one in (folder / "__tool_schemas__").iterdir()] == [
        "test_it-test_schema.json"
    ]
    (folder / "tools.py").write_text(_TOOLS.replace("name: str", "name: str, age: int"))
    code, out = run(folder)
    assert code == 1
    assert "greet.age" in out
    assert run(folder, "--update-tool-schemas")[0] == 0
    assert run(folder)[0] == 0


@pytest.mark.slow
def test_calls_are_recorded_when_a_test_passes_and_replayed(folder: Path) -> None:
    test = (
        "from tools import *\n"
        "def test_calls(recorded_tools):\n"
        "    (tool,) = recorded_tools(greet)\n"
        "    assert tool.invoke_sync(name='Ann') == 'Hello Ann'\n"
        "    print('REALLY', done)\n"
        "    assert FLAG\n"
    )
    (folder / "test_it.py").write_text(test.replace("FLAG", "False"))
    assert run(folder)[0] == 1
    assert not (folder / "__tool_calls__").exists()
    (folder / "test_it.py").write_text(test.replace("FLAG", "True"))
    assert "REALLY ['Ann']" in run(folder, "-s")[1]
    code, out = run(folder, "-s")
    assert code == 0
    assert "REALLY []" in out


@pytest.mark.slow
def test_methods_of_equal_names_have_files_of_their_own(folder: Path) -> None:
    """They would replay the results of another test."""
    (folder / "test_it.py").write_text(
        "from tools import *\n"
        "class TestAnn:\n"
        "    def test_calls(self, recorded_tools):\n"
        "        assert recorded_tools(greet)[0].invoke_sync(name='Ann') == 'Hello Ann'\n"
        "class TestBob:\n"
        "    def test_calls(self, recorded_tools):\n"
        "        assert recorded_tools(greet)[0].invoke_sync(name='Bob') == 'Hello Bob'\n"
    )
    code, out = run(folder)
    assert (code, "2 passed" in out) == (0, True), out
    assert sorted(one.name for one in (folder / "__tool_calls__").iterdir()) == [
        "test_it-TestAnn-test_calls.json",
        "test_it-TestBob-test_calls.json",
    ]


@pytest.mark.slow
def test_findings_of_the_linter_fail_a_test(folder: Path) -> None:
    """The message names the tool and the rule."""
    (folder / "test_it.py").write_text(
        "import tools\n"
        "def test_bad(tool_lint):\n"
        "    tool_lint(tools.greet)\n"
        "def test_good(tool_lint):\n"
        "    tool_lint(tools.greet, disable=['no-parameter-description', 'name-as-description'])\n"
    )
    code, out = run(folder)
    assert code == 1
    assert "1 failed, 1 passed" in out
    assert "- greet: parameter 'name' has no description" in out


def test_the_plugin_loads_only_what_a_test_uses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "test_it.py").write_text(
        "import sys\n"
        "def test_light():\n"
        "    heavy = {'pydantic', 'griffe', 'mcp', 'hypothesis.strategies', 'agents_tools.testing'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    monkeypatch.setenv(
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"
    )  # other plugins can load what they like
    code, out = run(folder)
    assert code == 0, out


@pytest.mark.slow
def test_pytest_does_not_rewrite_modules_of_the_package(folder: Path) -> None:
    """Modules with rewritten assertions load slowly, and differ from what users run."""
    (folder / "test_it.py").write_text(
        "import sys\n"
        "from tools import *\n"
        "def test_loaders(tool_events):\n"
        "    greet.invoke_sync(name='Ann')\n"
        "    own = [one for name, one in sys.modules.items() if name.startswith('agents_tools.')]\n"
        "    kinds = {one.__name__: type(one.__spec__.loader).__name__ for one in own}\n"
        "    rewritten = {name for name, kind in kinds.items() if 'Rewriting' in kind}\n"
        "    assert rewritten <= {'agents_tools.pytest_plugin'}\n"
    )
    code, out = run(folder)
    assert code == 0, out
