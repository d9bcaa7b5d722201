"""`check --fix`: show the mechanical repairs of the files of a target, and write them."""

from __future__ import annotations

import difflib
import inspect
import io
import os
import sys
import tokenize
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agents_tools.cli.errors import CommandError
from agents_tools.cli.output import is_terminal, paint, say, short_path
from agents_tools.text.output import release_text
from agents_tools.toolset.lint.fixes import fix_docstrings, fix_document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    changes = [change for change in _changes(target, tools) if change.before != change.after]
    if not changes:
        say("Nothing can be repaired mechanically.")
        return
    for change in changes:
        _print_diff(change)
    if not yes:
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            raise CommandError(
                "Nothing was changed: the change cannot be confirmed without a terminal.",
                hint="--yes writes the change.",
            )
        if not click.confirm("Write this change?", err=True):
            say("Nothing was written.")
            return
    for change in changes:
        _write(change)
        say(f"Repaired {short_path(os.fspath(change.path))}.")


@dataclass(frozen=True, slots=True)
class _Change:
    """A file with its text before and after the repairs, and its encoding."""

    path: Path
    before: str
    after: str
    encoding: str


def _changes(target: str, tools: Sequence[Tool]) -> list[_Change]:
    """Return the files that tools are defined in, with their repairs."""
    if Path(target).suffix.lower() == ".json":
        return [_change(Path(target), fix_document)]
    files: dict[Path, list[Tool]] = {}
    for tool in tools:
        file = _source_file(tool)
        # Installed packages belong to their authors.
        if file is not None and "site-packages" not in file.parts:
            files.setdefault(file, []).append(tool)
    return [_change(path, partial(fix_docstrings, tools=mine)) for path, mine in files.items()]


def _source_file(tool: Tool) -> Path | None:
    """Return the file that defines the function of a tool; `None` if there is none."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(tool.__dict__["__wrapped__"]))
    except (KeyError, TypeError):  # a tool without a function; a function written in C
        return None
    return None if file is None else Path(file)


def _change(path: Path, repair: Callable[[str], str]) -> _Change:
    """Return the repairs of a file, which keeps its line ends, encoding and byte order mark."""
    try:
        data = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it has bytes of another encoding"
        raise CommandError(f"{path} cannot be read: {why}.") from error
    return _Change(path, text, repair(text), encoding)


def _write(change: _Change) -> None:
    """Replace a file at once, so that an interruption leaves the old or the new text."""
    path = change.path.resolve()  # a link stays a link
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(change.after.encode(change.encoding))
        part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        part.unlink(missing_ok=True)


def _print_diff(change: _Change) -> None:
    name = short_path(os.fspath(change.path))
    before, after = change.before.splitlines(), change.after.splitlines()
    lines = difflib.unified_diff(before, after, name, name, lineterm="")
    for line in lines:
        colour = {"+": "green", "-": "red"}.get(line[:1])
        click.echo(paint(release_text(line, patterns=True), err=True, fg=colour), err=True)
