"""Every example and the demonstration runs by itself and shows its point."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents_tools.testing import check_ag_ui, check_vercel
from tests.programs import CHROMIUM

ROOT = Path(__file__).parents[1]

MARKERS = {
    "agents_as_tools.py": "4 requests, those of the translators included",
    "approvals.py": "the model reads: We do not know this person.",
    "celery_backend.py": "ok: harbour.mp4",
    "class_based_tool.py": "The oldest owl is Bo, who is seven.\nthe database is closed",
    "code_mode.py": 'approved: book_flight {"city":"Lisbon"}',
    "coding_agent.py": "finished: The mean works: a name was misspelled.",
    "custom_model_provider.py": "large heard: Where is the key?",
    "custom_output_extractor.py": 'the caretaker reads: {"temperature":12.5,"humidity":81.0}',
    "durable_run.py": "  book: ok\n  pay: lost\n  LH 1 is booked. Please check",
    "errors_for_models.py": "- nmae: unknown, did you mean 'name'?",
    "event_driven.py": "environment: 3 owls (because of 9)",
    "first_tool.py": "22.50 each",
    "hosted_tools.py": "the model reads: rm is not allowed here",
    "mcp_agent.py": "numbers: 9\nnumbers: IX\n",
    "mcp_client.py": "was lost during the call",
    "mcp_server.py": "progress: 2 of 2, counting cake\nresult: 12 pieces",
    "methods_and_context.py": "You are Ada",
    "nested_tools.py": "      looking up tea",
    "other_frameworks.py": "LangChain:\n  looked in the barn\n  looked in the tower\n",
    "policies.py": "Tool 'wait' can be called once",
    "progress_from_plain_functions.py": "fingerprint: 2 of 3",
    "provider_exports.py": "is exported without strict mode",
    "remote_tools.py": "the server is killed\nlost: ",
    "resume_in_another_process.py": "  (process two sends)\nAda has her letter.",
    "run_my_agent.py": "6 requests in all, of which the helper made 2",
    "streaming.py": "  has done 2 of 2",
    "streaming_orchestrator.py": "    count_stock is called with {'shelf': 'top'}",
    "structured_output.py": "Tea, 05 March 2027, 4 guests",
    "testing_your_tools.py": "4 tests passed",
    "terminal_tree.py": "Host > ask_waiter: done in",
    "tool_search.py": "  -> no sign of the herons any more: they flew away",
    "typewriter.py": "the model gets: Three things are known about owls.",
    "web_sse.py": "Cut off. Back again:\n  shelf 3",
}
SERVERS = ("fastapi_ag_ui.py", "fastapi_vercel.py", "web_page.py", "web_tree.py")
"""Those that serve until they are ended."""


def run(
    *words: str, folder: Path = ROOT, check: bool = True, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program of the repository without an API key."""
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(  # noqa: S603 - our own programs
        [sys.executable, *words],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=50,
        check=check,
    )


def test_every_example_has_a_marker() -> None:
    """An example without a marker would not be checked."""
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == {*MARKERS, *SERVERS}


def test_the_index_has_each_example_once() -> None:
    """Examples must be discoverable, and links must work."""
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w/]+(?:\.py)?)\)", text)
    assert sorted(links) == sorted([*MARKERS, *SERVERS, "demo", "deploy", "playground/bakery.py"])
    assert all((ROOT / "examples" / link).exists() for link in links)


@pytest.mark.parametrize("name", [*MARKERS, *SERVERS])
def test_an_example_describes_its_command_and_output(name: str) -> None:
    source = (ROOT / "examples" / name).read_text(encoding="utf-8")
    opening = source.split('"""')[1]
    assert f"python examples/{name}" in opening


FIRST = {"first_tool.py", "streaming.py", "agents_as_tools.py", "approvals.py"}
"""The examples that `make test` runs; the others are for `make test-all`."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in FIRST else pytest.mark.slow) for name in MARKERS],
)
def test_an_example_runs_and_prints_its_marker(name: str, tmp_path: Path) -> None:
    """In any folder, offline, and with nothing on standard error."""
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


@contextlib.contextmanager
def serving(name: str, folder: Path) -> Generator[tuple[str, str]]:
    """Run an example server on a free port; return its output and the address in it."""
    shutil.copy(ROOT / "examples" / name, folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-W", "error", name, port]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        (folder / "shown.txt").open("w", encoding="utf-8") as shown,
        subprocess.Popen(  # noqa: S603 - our own programs
            command, cwd=folder, env=environment, stdout=shown, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            with httpx.Client(transport=httpx.HTTPTransport(retries=6), trust_env=False) as client:
                assert client.get(f"http://127.0.0.1:{port}/", timeout=20).status_code == 200
            printed = (folder / "shown.txt").read_text(encoding="utf-8")
            yield printed, re.findall(rf"http://127\.0\.0\.1:{port}/[\w/]*", printed)[0]
        finally:
            process.terminate()
            process.wait(20)
    assert (folder / "shown.txt").read_text(encoding="utf-8") == printed, "nothing went wrong"


def typed(printed: str) -> httpx.Response:
    """Send the request of the curl command that an example prints."""
    text = printed[printed.index("curl ") : printed.rindex("'") + 1]
    words = shlex.split(text[: text.index("\n\n")] if "\n\n" in text else text)
    assert words[:2] == ["curl", "-N"]
    name, _, value = words[words.index("-H") + 1].partition(": ")
    body = words[words.index("-d") + 1].encode()
    headers = {name: value, "host": httpx.URL(words[2]).netloc.decode()}
    return httpx.post(words[2], content=body, headers=headers, trust_env=False, timeout=20)


needs_fastapi = pytest.mark.skipif(
    importlib.util.find_spec("fastapi") is None, reason="FastAPI is not installed"
)


@needs_fastapi
def test_fastapi_serves_an_agent_to_ag_ui(tmp_path: Path) -> None:
    """The frames follow the protocol, and the events of the tool arrive while it runs."""
    with serving("fastapi_ag_ui.py", tmp_path) as (printed, url):
        answer = typed(printed)
        assert f'new HttpAgent({{ url: "{url}" }})' in printed
    check_ag_ui([answer.text])
    frames = [json.loads(line[6:]) for line in answer.text.splitlines() if line]
    assert [each["content"] for each in frames if each["type"] == "TOOL_CALL_RESULT"] == [
        "3 rolls, still warm"
    ]
    shown = [each["content"] for each in frames if each["type"] == "ACTIVITY_SNAPSHOT"]
    assert {"current": 2, "total": 3, "message": "rolls"} in [each["progress"] for each in shown]


@pytest.mark.slow
@needs_fastapi
def test_fastapi_serves_an_agent_to_the_ai_sdk(tmp_path: Path) -> None:
    """The chunks follow the protocol, and the events of the tool arrive while it runs."""
    with serving("fastapi_vercel.py", tmp_path) as (printed, url):
        answer = typed(printed)
        assert f'new DefaultChatTransport({{ api: "{url}" }})' in printed
    check_vercel([answer.text], version=7)
    chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line[:7] == "data: {"]
    assert [each["output"] for each in chunks if "output" in each] == ["3 rolls, still warm"]
    tool_data = [each["data"] for each in chunks if each["type"] == "data-agents-tool"]
    assert {"current": 2, "total": 3, "message": "rolls"} in [
        each.get("progress") for each in tool_data
    ]


def test_the_page_of_a_streaming_tool_is_served_with_the_tool(tmp_path: Path) -> None:
    """One program serves the page and the API."""
    with serving("web_page.py", tmp_path) as (_, url), httpx.Client(trust_env=False) as client:
        assert "Bake six rolls" in client.get(url).text
        assert client.get(f"{url}tools").json()["tools"][0]["name"] == "bake"


@pytest.mark.external("chromium")
def test_a_browser_shows_the_progress_of_a_streaming_tool(tmp_path: Path) -> None:
    """After a click the bar fills and the result appears."""
    sync_api: Any = pytest.importorskip("playwright.sync_api")
    with serving("web_page.py", tmp_path) as (_, url), sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page()
            faults: list[str] = []
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.goto(url)
            page.get_by_role("button").click()
            sync_api.expect(page.locator("li")).to_have_text(
                ["heating up", "6 rolls, still warm"], timeout=20_000
            )
            assert page.locator("progress").evaluate("bar => [bar.value, bar.max]") == [6, 6]
            assert faults == []
        finally:
            browser.close()


@pytest.mark.external("chromium")
def test_a_browser_shows_a_run_as_a_tree(tmp_path: Path) -> None:
    """The page imports the client that the route serves."""
    sync_api: Any = pytest.importorskip("playwright.sync_api")
    with serving("web_tree.py", tmp_path) as (_, url), sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page()
            faults: list[str] = []
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.goto(url)
            page.get_by_role("button").click()
            page.get_by_role("button", name="Approve").click(timeout=20_000)
            status = page.get_by_role("status")
            sync_api.expect(status).to_have_text("done", timeout=20_000)
            calls = page.locator(".agents-call > header b").all_inner_texts()
            assert calls == ["analyse", "read_orders", "order"]
            assert faults == []
        finally:
            browser.close()


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small copy of the repository without its git history, like an archive."""
    folder = tmp_path_factory.mktemp("export")
    leave_out = shutil.ignore_patterns("__pycache__")
    for name in ("agents_tools", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=leave_out)
    return folder


@pytest.mark.slow
def test_the_demonstration_shows_each_promised_step(export: Path) -> None:
    """It must also work without .git."""
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


@pytest.mark.slow
def test_the_demonstration_uses_no_colours_without_a_terminal(export: Path) -> None:
    """Escape sequences in a log are noise."""
    done = run("-m", "examples.demo", folder=export)
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_the_demonstration_uses_colours_on_a_terminal(export: Path) -> None:
    program = (
        "import os, pty, sys; "
        "sys.exit(os.waitstatus_to_exitcode(pty.spawn([sys.executable, '-m', 'examples.demo'])))"
    )
    done = run("-c", program, folder=export, TERM="xterm-256color", NO_COLOR="")
    assert "\x1b[1mA tool is a function with a decorator.\x1b[0m" in done.stdout
    assert "\x1b[31m\x1b[1merror:" in done.stdout
    assert "└─ " in done.stdout, "the agents are drawn as a tree"
