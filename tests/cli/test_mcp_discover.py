"""`mcp discover`: servers in the configurations of editors, in a temporary home folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools.cli.mcp_clients import client_files
from tests.cli.test_mcp import ECHO

if TYPE_CHECKING:
    from tests.cli.conftest import Run

SECRET = "sk-live-1234567890abcdef"  # noqa: S105 - an invented one


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder of a user, with the folder of a project as the current one."""
    folder = tmp_path / "home"
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.chdir(project)
    return folder


def write(path: Path, content: Any) -> Path:
    """Write a configuration file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_servers_of_all_programs_are_found(run: Run, home: Path) -> None:
    """Each program has its own file, format and key."""
    entry = {"command": sys.executable, "args": [ECHO]}
    project = Path.cwd()
    write(home / ".config/Claude/claude_desktop_config.json", {"mcpServers": {"a": entry}})
    local = {str(project): {"mcpServers": {"c": entry}}}
    write(home / ".claude.json", {"mcpServers": {"b": entry}, "projects": local})
    write(project / ".mcp.json", {"mcpServers": {"d": {"type": "http", "url": "https://x.test/m"}}})
    write(home / ".cursor/mcp.json", {"mcpServers": {"e": entry}})
    write(project / ".vscode/mcp.json", '{"servers": {"f": {"url": "http://127.0.0.1:1/sse"}},}')
    write(
        home / ".codeium/windsurf/mcp_config.json",
        {"mcpServers": {"g": {"serverUrl": "https://x.test/mcp"}}},
    )
    write(home / ".gemini/settings.json", {"theme": "dark", "mcpServers": {"h": entry}})
    write(home / ".codex/config.toml", f'[mcp_servers.i]\ncommand = "{sys.executable}"\n')
    write(home / ".config/zed/settings.json", {"context_servers": {"j": entry}})
    goose = (
        f"extensions:\n  k:\n    type: stdio\n    cmd: {sys.executable}\n  l:\n    type: builtin\n"
    )
    write(home / ".config/goose/config.yaml", goose)
    found = run("mcp", "discover", "--json").json
    assert [
        (one["client"], one["scope"], [server["name"] for server in one["servers"]])
        for one in found
    ] == [
        ("claude-desktop", "user", ["a"]),
        ("claude-code", "user", ["b"]),
        ("claude-code", "project", ["c"]),
        ("claude-code", "project", ["d"]),
        ("cursor", "user", ["e"]),
        ("vscode", "project", ["f"]),
        ("windsurf", "user", ["g"]),
        ("gemini-cli", "user", ["h"]),
        ("codex", "user", ["i"]),
        ("zed", "user", ["j"]),
        ("goose", "user", ["k"]),
    ]
    servers = {server["name"]: server for one in found for server in one["servers"]}
    assert servers["d"]["transport"] == "http"
    assert servers["f"]["transport"] == "sse"
    assert not [server for server in servers.values() if "error" in server]
    assert run("list", servers["e"]["target"]).code == 0
    assert "Claude Code, this folder: .mcp.json" in run("mcp", "discover").out


def test_secrets_are_not_shown(run: Run, home: Path) -> None:
    """Neither values of variables and headers nor secrets in addresses and arguments."""
    write(
        home / ".cursor/mcp.json",
        {
            "mcpServers": {
                "a": {"command": "npx", "args": ["-y", f"pkg@{SECRET}"], "env": {"KEY": SECRET}},
                "b": {
                    "url": f"https://user:{SECRET}@x.test/mcp?key={SECRET}",
                    "headers": {"Authorization": f"Bearer {SECRET}"},
                },
                "c": {"command": "x", "env": {"KEY": [SECRET]}},
            }
        },
    )
    for words in (["mcp", "discover"], ["mcp", "discover", "--json"]):
        result = run(*words)
        assert result.code == 0
        assert SECRET not in result.out + result.err


def test_problems_are_reported_with_their_server(run: Run, home: Path) -> None:
    """A wrong entry does not hide the others, and nothing is started."""
    marker = home / "started"
    write(
        home / ".cursor/mcp.json",
        {
            "mcpServers": {
                "wrong": {"command": 5},
                "off": {"command": "x", "disabled": True},
                "missing": {"command": "no-such-program-at-all"},
                "unpinned": {"command": "npx", "args": ["-y", "some-server"]},
                "starts": {"command": "touch", "args": [str(marker)]},
            }
        },
    )
    write(home / ".gemini/settings.json", "{")
    cursor, gemini = run("mcp", "discover", "--json").json
    servers = {server["name"]: server for server in cursor["servers"]}
    assert "'command' expects a string" in servers["wrong"]["error"]
    assert servers["off"]["enabled"] is False
    assert servers["missing"]["error"] == "the program no-such-program-at-all was not found"
    assert servers["unpinned"]["findings"]
    assert "cannot be read" in gemini["error"]
    text = run("mcp", "discover").out
    assert "(disabled)" in text
    assert "finding: " in text
    assert not marker.exists()


def test_nothing_is_found_in_an_empty_home(run: Run, home: Path) -> None:
    """Settings without servers are not listed."""
    write(home / ".gemini/settings.json", {"theme": "dark"})
    result = run("mcp", "discover")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("No configurations with MCP servers.")
    assert run("mcp", "discover", "--json").json == []


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux", ".config/Code/User/mcp.json"),
        ("darwin", "Library/Application Support/Code/User/mcp.json"),
        ("win32", "AppData/Roaming/Code/User/mcp.json"),
    ],
)
def test_the_places_depend_on_the_platform(
    platform: str, expected: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphical programs keep their settings in the folder of the platform."""
    monkeypatch.delenv("APPDATA", raising=False)
    paths = [file.path for file in client_files(Path.cwd(), platform=platform)]
    assert home / expected in paths
