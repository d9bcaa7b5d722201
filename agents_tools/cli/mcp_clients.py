"""The configuration files of editors and other programs that use MCP servers."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["ClientFile", "Scope", "client_files", "titles"]

Scope: TypeAlias = Literal["user", "project"]

titles = {
    "claude-desktop": "Claude Desktop",
    "claude-code": "Claude Code",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "windsurf": "Windsurf",
    "gemini-cli": "Gemini CLI",
    "codex": "Codex",
    "zed": "Zed",
    "goose": "Goose",
}
"""The names of the programs by their ids, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """A configuration file of a program.

    Attributes:
        client: The id of the program, a key of `titles`.
        scope: Whether the file is for all projects of the user, or for one project.
        path: The path; the file does not have to exist.
    """

    client: str
    scope: Scope
    path: Path


def client_files(project: Path, *, platform: str = sys.platform) -> list[ClientFile]:
    """Return the places where programs look for MCP servers, as their documentation lists them.

    Args:
        project: The folder of the project.
        platform: The value of `sys.platform`.
    """
    home = Path.home()
    settings = _settings_folder(home, platform)
    xdg = settings if platform.startswith("linux") else home / ".config"
    codex = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    zed = settings / "Zed" if platform == "win32" else xdg / "zed"
    goose = settings / "Block" / "goose" / "config" if platform == "win32" else xdg / "goose"
    files: list[tuple[str, Scope, Path]] = [
        ("claude-desktop", "user", settings / "Claude" / "claude_desktop_config.json"),
        ("claude-code", "user", home / ".claude.json"),
        ("claude-code", "project", project / ".mcp.json"),
        ("cursor", "user", home / ".cursor" / "mcp.json"),
        ("cursor", "project", project / ".cursor" / "mcp.json"),
        ("vscode", "user", settings / "Code" / "User" / "mcp.json"),
        ("vscode", "project", project / ".vscode" / "mcp.json"),
        ("windsurf", "user", home / ".codeium" / "windsurf" / "mcp_config.json"),
        ("gemini-cli", "user", home / ".gemini" / "settings.json"),
        ("gemini-cli", "project", project / ".gemini" / "settings.json"),
        ("codex", "user", codex / "config.toml"),
        ("codex", "project", project / ".codex" / "config.toml"),
        ("zed", "user", zed / "settings.json"),
        ("zed", "project", project / ".zed" / "settings.json"),
        ("goose", "user", goose / "config.yaml"),
    ]
    found: dict[Path, ClientFile] = {}
    for client, scope, path in files:  # in the home folder, a path has two scopes
        found.setdefault(path, ClientFile(client=client, scope=scope, path=path))
    return list(found.values())


def _settings_folder(home: Path, platform: str) -> Path:
    """Return the folder in which graphical programs keep their settings."""
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
