"""The examples and the demonstration: each runs by itself, and says what it is meant to show."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MARKERS = {
    "agents_as_tools.py": "4 requests, those of the translators included",
    "approvals.py": "the model reads: We do not know this person.",
    "class_based_tool.py": "The oldest owl is Bo, who is seven.\nthe database is closed",
    "coding_agent.py": "finished: The mean works: a name was misspelt.",
    "custom_model_provider.py": "large heard: Where is the key?",
    "custom_output_extractor.py": 'the caretaker reads: {"temperature":12.5,"humidity":81.0}',
    "durable_run.py": "  book: ok\n  pay: lost\n  LH 1 is booked. Please check",
    "errors_for_models.py": "- nmae: unknown, did you mean 'name'?",
    "event_driven.py": "environment: 3 owls (because of 8)",
    "first_tool.py": "22.50 each",
    "hosted_tools.py": "the model reads: rm is not allowed here",
    "mcp_agent.py": "numbers: 9\nnumbers: IX\n",
    "mcp_client.py": "was lost during the call",
    "mcp_server.py": "progress: 2 of 2, counting cake\nresult: 12 pieces",
    "methods_and_context.py": "You are Ada",
    "nested_tools.py": "      looking up tea",
    "other_frameworks.py": "LangChain:\n  looked in the barn\n  looked in the tower\n",
    "policies.py": "Tool 'wait' may be called once",
    "progress_from_plain_functions.py": "fingerprint: 2 of 3",
    "provider_exports.py": "is exported without strict mode",
    "remote_tools.py": "the worker is killed\nlost: ",
    "resume_in_another_process.py": "  (process two sends)\nAda has her letter.",
    "run_my_agent.py": "6 requests in all, of which the helper made 2",
    "streaming.py": "  has done 2 of 2",
    "streaming_orchestrator.py": "    count_stock is called with {'shelf': 'top'}",
    "structured_output.py": "Tea, 05 March 2027, 4 guests",
    "testing_your_tools.py": "4 tests passed",
    "tool_search.py": "  -> no sign of the herons any more: they flew away",
    "typewriter.py": "the model gets: Three things are known about owls.",
    "web_sse.py": "Cut off. Back again:\n  shelf 3",
}


def run(
    *words: str, folder: Path = ROOT, check: bool = True, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program of the repository, as a newcomer does: without a key."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=50,
        check=check,
    )


def test_every_example_has_a_marker() -> None:
    """An example without one would run unseen."""
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(MARKERS)


@pytest.mark.parametrize("name", MARKERS)
def test_an_example_runs_and_shows_its_point(name: str, tmp_path: Path) -> None:
    """Each file stands alone: in any folder, offline, with nothing on standard error."""
    shutil.copy(ROOT / "examples" / name, tmp_path)
    done = subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, "-W", "error", name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert MARKERS[name] in done.stdout


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a small copy of the repository without its history, as an archive of it is."""
    folder = tmp_path_factory.mktemp("export")
    leave_out = shutil.ignore_patterns("__pycache__")
    for name in ("agents_tools", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=leave_out)
    return folder


def test_the_demonstration_shows_what_it_promises(export: Path) -> None:
    """It is the first minute of whoever comes here; an export without .git must do."""
    done = run("-m", "examples.demo", folder=export, GIT_CEILING_DIRECTORIES=str(export.parent))
    shown = done.stdout
    assert '"enum":["Mercury"' in shown
    assert "80 kg weigh 296 newtons on Mars." in shown
    assert "(exit code 3)" in shown
    assert "No history." in shown
    assert "Imported by most files: __future__" in shown
    assert '{"city":["Oslo","Rome"],"days":["3"]}' in shown
    assert "- unit: unknown, the known keys are planet, mass_kg" in done.stderr
    assert "survey: [1/2] reading" in done.stderr
    assert "Guide > ask_astronomer > drop: 8/8 (100%)" in done.stderr
    assert "Guide > ask_librarian > survey: [2/2] reading the history" in done.stderr
    assert "A stone falls 100 m in 2.94 s on Jupiter and in 7.35 s on Mercury." in shown
    assert "Traceback" not in done.stderr


def test_the_demonstration_uses_no_colours_where_nobody_sees_them(export: Path) -> None:
    """Escape sequences in a log are noise."""
    done = run("-m", "examples.demo", folder=export)
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_the_demonstration_uses_colours_on_a_terminal(export: Path) -> None:
    """On a terminal it is read by a person."""
    program = (
        "import os, pty, sys; "
        "sys.exit(os.waitstatus_to_exitcode(pty.spawn([sys.executable, '-m', 'examples.demo'])))"
    )
    done = run("-c", program, folder=export, TERM="xterm-256color", NO_COLOR="")
    assert "\x1b[1mA tool is a function with a decorator.\x1b[0m" in done.stdout
    assert "\x1b[31m\x1b[1merror:" in done.stdout
    assert "└─ " in done.stdout, "the agents are drawn as a tree"
