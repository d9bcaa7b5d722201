"""`check --fix`: show the mechanical repairs of the files of a target, and write them."""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agents_tools.cli.errors import CommandError
from agents_tools.cli.output import is_terminal, paint, say, short_path
from agents_tools.text.output import release_text
from agents_tools.toolset.lint.fixes import fix_docstrings, fix_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.cli.target import Tool

__all__ = ["fix_target"]


def fix_target(target: str, tools: Sequence[Tool], *, yes: bool) -> None:
    """Show the repairs of the files that define tools, ask, and write them.

    Args:
        target: The target of the command.
        tools: Its tools.
        yes: Whether to write without asking.

    Raises:
        CommandError: A change cannot be confirmed or written.
    """
    changes = [change for change in _changes(target, tools) if change[1] != change[2]]
    if not changes:
        say("Nothing can be repaired mechanically.")
        return
    for path, before, after in changes:
        _print_diff(path, before, after)
    if not yes:
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            raise CommandError(
                "Nothing was changed: the change cannot be confirmed without a terminal.",
                hint="--yes writes the change.",
            )
        if not click.confirm("Write this change?", err=True):
            say("Nothing was written.")
            return
    for path, _, after in changes:
        _write(path, after)
        say(f"Repaired {short_path(os.fspath(path))}.")


def _changes(target: str, tools: Sequence[Tool]) -> list[tuple[Path, str, str]]:
    """Return the files that tools are defined in, each with its text before and after."""
    if Path(target).suffix.lower() == ".json":
        text = _text_of(Path(target))
        return [(Path(target), text, fix_document(text))]
    files: dict[Path, list[Tool]] = {}
    for tool in tools:
        function = tool.__dict__.get("__wrapped__")
        file = None if function is None else inspect.getsourcefile(inspect.unwrap(function))
        # Installed packages belong to their authors.
        if file is not None and "site-packages" not in Path(file).parts:
            files.setdefault(Path(file), []).append(tool)
    found = [(path, _text_of(path), mine) for path, mine in files.items()]
    return [(path, text, fix_docstrings(text, mine)) for path, text, mine in found]


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandError(f"{path} cannot be read: {why}.") from error


def _write(path: Path, text: str) -> None:
    """Replace a file at once, so that an interruption leaves the old or the new text."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(text.encode())
        part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        part.unlink(missing_ok=True)


def _print_diff(path: Path, before: str, after: str) -> None:
    name = short_path(os.fspath(path))
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="")
    for line in lines:
        colour = {"+": "green", "-": "red"}.get(line[:1])
        click.echo(paint(release_text(line, patterns=True), err=True, fg=colour), err=True)
