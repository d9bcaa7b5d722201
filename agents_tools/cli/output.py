"""Write to a terminal, a pipe or a file, in any encoding."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents_tools.text.output import release_json, release_text
from agents_tools.ui._terminal import can_show, is_terminal

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from typing import TextIO

__all__ = [
    "can_show",
    "console_errors",
    "forgiving_streams",
    "is_terminal",
    "paint",
    "print_json",
    "print_table",
    "print_text",
    "prints_on_stderr",
    "say",
    "say_traceback",
    "sentence_of",
    "short_path",
    "width",
]


def print_text(text: str) -> None:
    """Print a result; on a terminal without control characters."""
    shown = release_text(text, to="person" if is_terminal(sys.stdout) else "program")
    click.echo(shown, nl=not shown.endswith("\n"))


def print_json(value: Any, *, compact: bool) -> None:
    """Print a value as one JSON document, on one line if compact."""
    plain = not can_show("é…", sys.stdout)
    form: dict[str, Any] = {"separators": (",", ":")} if compact else {"indent": 2}
    released = release_json(value, to="program")
    click.echo(json.dumps(released, ensure_ascii=plain, **form))


def say(text: str, **style: Any) -> None:
    """Print a line for the user to standard error."""
    click.echo(paint(release_text(text), err=True, **style), err=True)


def say_traceback(error: BaseException) -> None:
    """Print a traceback with masked secrets."""
    click.echo(
        release_text("".join(traceback.format_exception(error)), patterns=True), nl=False, err=True
    )


def print_table(rows: Iterable[tuple[str, str]], *, indent: int = 0) -> None:
    """Print names and descriptions in two columns, the descriptions wrapped."""
    formatter = click.HelpFormatter(width=width())
    for _ in range(indent // formatter.indent_increment):
        formatter.indent()
    pairs = [(release_text(name), release_text(text)) for name, text in rows]
    if pairs:
        formatter.write_dl(pairs)
        click.echo(formatter.getvalue(), nl=False)


def paint(text: str, *, err: bool = False, **style: Any) -> str:
    """Return a text with colours if it is shown on a terminal and colours are enabled."""
    stream = sys.stderr if err else sys.stdout
    if not is_terminal(stream) or os.environ.get("NO_COLOR") or _is_dumb():
        return text
    return click.style(text, **style)


def width() -> int:
    """Return the width of lines: that of the terminal, within readable bounds."""
    import shutil

    return max(40, min(shutil.get_terminal_size().columns, 100))


def sentence_of(text: str) -> str:
    """Return the first paragraph of a description, on one line."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def short_path(filename: str) -> str:
    """Return a path relative to the current folder, if the file is below it."""
    path = Path(filename)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return filename


def console_errors(prefix: str, message: str, hint: str | None = None) -> None:
    """Print an error, and a hint on the next line."""
    click.echo(paint(prefix, err=True, fg="red", bold=True) + " " + release_text(message), err=True)
    if hint:
        click.echo(paint(release_text(hint), err=True, dim=True), err=True)


@contextlib.contextmanager
def prints_on_stderr() -> Generator[None]:
    """Redirect the output of the user's code to standard error: standard output has the result."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def forgiving_streams(streams: Sequence[TextIO]) -> None:
    """Replace characters that a stream cannot encode by `?`, instead of an error."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _is_dumb() -> bool:
    return os.environ.get("TERM") == "dumb"
