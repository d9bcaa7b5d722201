"""The program of a stdio server: its path, its environment, and whether it is allowed."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["check_program", "child_environment", "program_of"]

_INHERITED = (
    ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
     "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)  # fmt: skip
"""The environment variables that every server inherits; all others are removed."""


def child_environment(config: MCPServerConfig) -> dict[str, str]:
    """Return the environment that a server starts with."""
    names = [name for name in (*_INHERITED, *config.inherit_env) if name in os.environ]
    inherited = {name: os.environ[name] for name in names}
    functions = [name for name, value in inherited.items() if value.startswith("()")]
    for name in functions:  # an exported shell function, which a shell would define
        del inherited[name]
    return {**inherited, **config.env}


def program_of(config: MCPServerConfig) -> str:
    """Return the path of a server's program, searched in the PATH of its environment."""
    command = config.command or ""
    if Path(command).name == command:
        return shutil.which(command, path=child_environment(config).get("PATH")) or command
    relative = Path(config.cwd or ".", command)
    return str(relative.absolute()) if relative.exists() else command


def check_program(config: MCPServerConfig, allowed: tuple[str, ...]) -> None:
    """Raise an error unless the program of a server is allowed; symbolic links are resolved.

    Raises:
        UserError: The program is not allowed, or its arguments or variables run other code.
    """
    path = os.path.realpath(program_of(config))
    allowed_paths = {os.path.realpath(shutil.which(one) or one) for one in allowed}
    reason = None
    if path not in allowed_paths:
        reason = f"its program {config.command!r} is not one of the allowed programs"
    elif code := next((arg for arg in config.args if _INLINE_CODE.match(arg)), None):
        reason = f"its argument {code!r} runs code"
    if variable := next((name for name in config.env if name.upper() in _CODE_LOADING), None):
        reason = f"its variable {variable} makes a program load other code"
    if reason is not None:
        raise UserValueError(
            f"MCP server {config.name!r} is not allowed by allow_commands: {reason}."
        )


_INLINE_CODE = re.compile(
    r"-[cer]|-[A-Za-z]{1,3}[ce]$|--(eval|print|call|command|require|import|loader)(=|$)|-p$"
)
"""Options of interpreters and launchers that run code from the command line."""


_CODE_LOADING = frozenset({
    "BASH_ENV", "ENV", "LD_LIBRARY_PATH", "LD_PRELOAD", "NODE_OPTIONS", "NODE_PATH", "PATH",
    "PERL5OPT", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "RUBYOPT",
})  # fmt: skip
"""Variables that make an allowed program run other code."""
