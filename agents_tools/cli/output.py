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

    from rich.console import Console

__all__ = [
    "can_show",
    "console_errors",
    "forgiving_streams",
    "is_terminal",
    "paint",
    "print_answer",
    "print_json",
    "print_result",
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


def print_result(text: str) -> None:
    """Print a result; JSON on a terminal is indented and coloured, and otherwise unchanged."""
    indented = _indented(text) if is_terminal(sys.stdout) else None
    if indented is None:
        print_text(text)
        return
    from rich.highlighter import JSONHighlighter
    from rich.text import Text

    shown = Text(release_text(indented, to="person"))
    JSONHighlighter().highlight(shown)
    _console().print(shown, soft_wrap=True)


def print_answer(text: str) -> None:
    """Print the answer of an agent; on a terminal its Markdown is rendered."""
    if not is_terminal(sys.stdout) or _is_dumb() or len(text) > _MAX_RENDERED:
        print_text(text)
        return
    from rich.markdown import Markdown

    shown = release_text(text, to="person")
    # Addresses of links are printed, because a terminal can hide where a link leads.
    console = _console()
    with console.capture() as rendered:
        console.print(Markdown(shown, code_theme="ansi_dark", hyperlinks=False))
    for line in rendered.get().splitlines():
        click.echo(line.rstrip())  # rich fills lines with spaces


def _console() -> Console:
    from rich.console import Console

    return Console(width=width(), highlight=False, emoji=False, markup=False)


def _indented(text: str) -> str | None:
    """Return JSON on one line with line breaks; `None` for other text, or if it would change."""
    if text[:1] not in {"[", "{"} or "\n" in text or len(text) > _MAX_RENDERED:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    separators = ((",", ":"), (", ", ": "))
    written = [json.dumps(value, ensure_ascii=False, separators=pair) for pair in separators]
    is_same = text in written  # no number, escape or key would be written in another way
    return json.dumps(value, ensure_ascii=False, indent=2) if is_same else None


_MAX_RENDERED = 200_000
"""The largest number of characters that are rendered; longer texts are printed as they are."""


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
