"""Which program a server is: where it is found, what it sees of the environment, who may be it."""

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

_NAMES = (
    ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT",
     "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)  # fmt: skip
"""The variables that every server gets; nothing else of this process is for it."""


def child_environment(config: MCPServerConfig) -> dict[str, str]:
    """Give the environment that a server starts with."""
    own = os.environ
    inherited = {name: own[name] for name in (*_NAMES, *config.inherit_env) if name in own}
    functions = [name for name, value in inherited.items() if value.startswith("()")]
    for name in functions:  # a shell function: code in the disguise of a value
        del inherited[name]
    return {**inherited, **config.env}


def program_of(config: MCPServerConfig) -> str:
    """Give the program of a server; found by the PATH that the server gets."""
    command = config.command or ""
    if Path(command).name == command:
        return shutil.which(command, path=child_environment(config).get("PATH")) or command
    beside = Path(config.cwd or ".", command)
    return str(beside.absolute()) if beside.exists() else command


def check_program(config: MCPServerConfig, allowed: tuple[str, ...]) -> None:
    """Refuse programs that are not among the allowed ones, by where they really are."""
    path = os.path.realpath(program_of(config))
    places = {os.path.realpath(shutil.which(one) or one) for one in allowed}
    reason = None
    if path not in places:
        reason = f"its program {config.command!r} is none of those that are allowed"
    elif bad := next((arg for arg in config.args if _INLINE.match(arg)), None):
        reason = f"its argument {bad!r} is code to run"
    if bad := next((name for name in config.env if name.upper() in _LOADING), None):
        reason = f"its variable {bad} makes a program load other code"
    if reason is not None:
        raise UserValueError(
            f"MCP server {config.name!r} may not be started: {reason} (allow_commands)."
        )


_INLINE = re.compile(
    r"-[cer]|-[A-Za-z]{1,3}[ce]$|--(eval|print|call|command|require|import|loader)(=|$)|-p$"
)
"""Arguments with which interpreters and launchers run code that stands in the arguments."""


_LOADING = frozenset({
    "BASH_ENV", "ENV", "LD_LIBRARY_PATH", "LD_PRELOAD", "NODE_OPTIONS", "NODE_PATH", "PATH",
    "PERL5OPT", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "RUBYOPT",
})  # fmt: skip
"""Variables by which a program that is allowed runs what is not."""
