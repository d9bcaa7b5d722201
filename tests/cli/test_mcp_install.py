"""`mcp install` and `mcp uninstall`, in a temporary home folder."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import FIXTURE
from tests.cli.test_cli_questions import CallTerminal
from tests.cli.test_cli_run import needs_terminal
from tests.cli.test_mcp_discover import home as _home, write

if TYPE_CHECKING:
    from tests.cli.conftest import Run

home = _home

PLACES = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers"),
    "claude-code": (".claude.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", "servers"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "client",
    [pytest.param(one, marks=() if one == "claude-code" else pytest.mark.slow) for one in PLACES],
)
def test_the_entry_starts_the_server(run: Run, home: Path, client: str) -> None:
    """The command of the entry serves the tools, from every folder."""
    place, section = PLACES[client]
    result = run("mcp", "install", FIXTURE, "--client", client, "--name", "desk", "--yes")
    assert result.code == 0
    path = home / place
    assert f"+++ {path}" in result.out
    assert '+    "desk": {' in result.out
    entry = json.loads(path.read_text())[section]["desk"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"] == ["-m", "agents_tools.cli", "serve", str(Path(FIXTURE).resolve())]
    assert (client == "vscode") == ("type" in entry)
    assert path.stat().st_mode & 0o777 == 0o600
    listed = run("list", f"{path}:desk")
    assert (listed.code, "desk_add" in listed.out) == (0, True)


def test_the_rest_of_the_file_is_kept(run: Run, home: Path) -> None:
    """With comments, other keys and permissions; the previous content is in the .bak file."""
    old = '{\n\t// mine\n\t"theme": "dark",\n\t"mcpServers": {"a": {"command": "x"}},\n}\n'
    path = write(home / ".cursor/mcp.json", old)
    path.chmod(0o640)
    words = ["mcp", "install", FIXTURE, "--client", "cursor", "--name", "b", "--yes"]
    assert run(*words).code == 0
    new = path.read_text()
    assert new.startswith(
        '{\n\t// mine\n\t"theme": "dark",\n\t"mcpServers": {"a": {"command": "x"},'
    )
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.with_name("mcp.json.bak").read_text() == old
    again = run(*words)
    assert (again.code, again.out) == (0, "")
    assert "Nothing to change" in again.err
    assert path.read_text() == new
    assert run("mcp", "uninstall", "b", "--client", "cursor", "--yes").code == 0
    assert '"b"' not in path.read_text()
    assert '"a"' in path.read_text()
    gone = run("mcp", "uninstall", "b", "--client", "cursor", "--yes")
    assert (gone.code, "has no server 'b'" in gone.err) == (0, True)


def test_nothing_is_written_without_consent(run: Run, home: Path) -> None:
    """A dry run shows the change; without a terminal, it needs `--yes`."""
    words = ["mcp", "install", FIXTURE, "--client", "cursor"]
    dry = run(*words, "--dry-run")
    assert (dry.code, '+    "tools_fixture": {' in dry.out) == (0, True)
    refused = run(*words)
    assert refused.code == 2
    assert "--yes writes the change" in refused.err
    assert not (home / ".cursor").exists()


@pytest.mark.slow
@needs_terminal
@pytest.mark.parametrize("answer", ["y", "n"])
def test_the_person_is_asked(home: Path, answer: str) -> None:
    """The change is written after a yes."""
    variables = {"HOME": str(home)}
    terminal = CallTerminal("mcp", "install", FIXTURE, "--client", "cursor", **variables)
    terminal.until("Write this change? [y/N]: ")
    terminal.type(answer)
    assert terminal.end() == 0
    assert (home / ".cursor/mcp.json").exists() == (answer == "y")


def test_variables_are_references_or_values(run: Run, home: Path) -> None:
    """The value of a variable of this process is not copied into a file."""
    words = ["mcp", "install", FIXTURE, "--name", "a", "--yes", "--env", "API_KEY"]
    assert run(*words, "--client", "cursor", "--env", "MODE=fast").code == 0
    entry = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["a"]
    assert entry["env"] == {"API_KEY": "${env:API_KEY}", "MODE": "fast"}
    refused = run(*words, "--client", "claude-desktop")
    assert (refused.code, "does not replace variables" in refused.err) == (2, True)


def test_secrets_of_other_entries_are_not_shown(run: Run, home: Path) -> None:
    """The diff has changed lines only, and values that look like secrets are masked."""
    secret = "sk-live-1234567890abcdef"  # noqa: S105 - an invented one
    servers = {"a": {"command": "x", "env": {"KEY": secret}}, "b": {"command": "y"}}
    write(home / ".cursor/mcp.json", json.dumps({"mcpServers": servers}, indent=2))
    result = run("mcp", "install", FIXTURE, "--client", "cursor", "--name", "b", "--yes")
    assert (result.code, secret in result.out + result.err) == (0, False)
    removed = run("mcp", "uninstall", "a", "--client", "cursor", "--yes")
    assert (removed.code, secret in removed.out + removed.err) == (0, False)


def test_the_file_of_a_project_is_used_on_request(run: Run, home: Path) -> None:
    """Claude Desktop has no files for projects."""
    words = ["mcp", "install", FIXTURE, "--name", "a", "--yes", "--project"]
    assert run(*words, "--client", "vscode").code == 0
    assert Path(".vscode/mcp.json").is_file()
    assert not (home / ".config").exists()
    refused = run(*words, "--client", "claude-desktop")
    assert (refused.code, "Leave out --project" in refused.err) == (2, True)


@pytest.mark.slow
def test_a_module_and_a_configuration_can_be_installed(run: Run, home: Path) -> None:
    """A module is found from every folder; a configuration is a gateway."""
    Path("sample_desk.py").write_text(
        "from agents_tools import function_tool\n\n\n@function_tool\n"
        'def add(a: int) -> int:\n    """Add."""\n    return a\n'
    )
    write(Path("mcp.json").resolve(), {"mcpServers": {"files": {"command": "x"}}})
    for target, name in (("sample_desk", "sample_desk"), ("mcp.json:files", "files")):
        assert run("mcp", "install", target, "--client", "cursor", "--yes").code == 0
        servers = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]
        assert name in servers
    assert servers["files"]["args"][-1] == f"{Path.cwd() / 'mcp.json'}:files"
    entry = servers["sample_desk"]
    words = [entry["command"], *entry["args"]]
    assert entry["env"] == {"PYTHONPATH": str(Path.cwd())}
    os.chdir(home)
    server = shlex.join(["env", f"PYTHONPATH={entry['env']['PYTHONPATH']}", *words])
    assert run("mcp", "call", server, "add", "a=1").out == "1\n"


@pytest.mark.parametrize(
    ("content", "words", "expected"),
    [
        ("{", [FIXTURE], "cannot be changed"),
        ('{"mcpServers": []}', [FIXTURE], "expected an object"),
        (None, ["nothing.py"], "not found"),
        (None, [FIXTURE, "--name", "a b"], "expects up to 64 letters"),
        (None, [FIXTURE, "--env", "1=2"], "--env expects NAME or NAME=VALUE"),
    ],
)
def test_wrong_files_and_options_are_reported(
    run: Run, home: Path, content: str | None, words: list[str], expected: str
) -> None:
    """Nothing is written."""
    path = home / ".cursor/mcp.json"
    if content is not None:
        write(path, content)
    result = run("mcp", "install", *words, "--client", "cursor", "--yes")
    assert (result.code, result.out) == (2, "")
    assert expected in result.err
    assert (path.read_text() if path.exists() else None) == content


def test_a_link_to_the_file_stays_a_link(run: Run, home: Path) -> None:
    """Some people keep their settings in another folder."""
    real = write(home / "settings/mcp.json", "{}")
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").symlink_to(real)
    assert run("mcp", "install", FIXTURE, "--client", "cursor", "--yes").code == 0
    assert (home / ".cursor/mcp.json").is_symlink()
    assert "tools_fixture" in real.read_text()
    assert sys.executable in real.read_text()
