"""The least that could do the work: bare models, a bash over pipes, `open`, ripgrep, `os.walk`."""

from __future__ import annotations

import fnmatch
import os
import re
import select
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_PIECE = 1 << 16


class Text(BaseModel):
    """A piece of text."""

    type: str = "text"
    text: str


class Described(BaseModel):
    """What is known of a tool."""

    name: str
    description: str
    action_type: Any
    observation_type: Any
    executor: Any


def resolver(models: tuple[type[Any], type[Any]]) -> Callable[[], object]:
    """Find a name, and make one model."""
    known = {"say": models}

    def resolve() -> object:
        action, observation = known["say"]
        return Described(
            name="say",
            description="Says something, once or several times.",
            action_type=action,
            observation_type=observation,
            executor=object(),
        )

    return resolve


def caller(models: tuple[type[Any], type[Any]]) -> Callable[[str], str]:
    """Read the action from JSON, and make the observation."""
    action_type, observation_type = models

    def call(arguments: str) -> str:
        action = action_type.model_validate_json(arguments)
        said = action.text * action.times
        observation = observation_type(content=[Text(text=said)], said=said)
        return "".join(one.text for one in observation.content)

    return call


def openai(models: tuple[type[Any], type[Any]]) -> Callable[[], object]:
    """Let pydantic make the schema of the action."""
    return models[0].model_json_schema


def mcp(models: tuple[type[Any], type[Any]]) -> Callable[[], object]:
    """Let pydantic make both schemas."""
    return lambda: [one.model_json_schema() for one in models]


@contextmanager
def terminal(directory: Path) -> Generator[Callable[[str], tuple[str, int | None]]]:
    """Start a bash that reads commands from a pipe, and says on another how they end."""
    status, said = os.pipe()
    command = ["bash", "--norc", "--noprofile"]
    with subprocess.Popen(
        command,
        bufsize=0,
        cwd=directory,
        pass_fds=[said],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        os.close(said)
        assert process.stdin is not None
        assert process.stdout is not None
        typed, out = process.stdin, process.stdout.fileno()
        os.set_blocking(out, False)

        def run(command: str) -> tuple[str, int | None]:
            typed.write(f"{command}\nprintf '%s\\n' $? >&{said}\n".encode())
            written: list[bytes] = []
            while True:
                ready, _, _ = select.select([out, status], [], [])
                _drain(out, written)
                if status in ready:
                    code = int(os.read(status, _PIECE))
                    _drain(out, written)
                    return b"".join(written).decode(), code

        try:
            yield run
        finally:
            os.close(status)
            typed.close()


def _drain(fd: int, written: list[bytes]) -> None:
    try:
        while piece := os.read(fd, _PIECE):
            written.append(piece)
    except BlockingIOError:
        return


@contextmanager
def editor(directory: Path) -> Generator[Callable[..., str]]:
    """Do with `open` what the commands of an editor do."""
    del directory
    before: dict[Path, str] = {}

    def edit(command: str, path: Path, **fields: Any) -> str:
        if command == "undo_edit":
            path.write_text(before[path], encoding="utf-8")
            return ""
        text = path.read_text(encoding="utf-8")
        if command == "view":
            first, last = fields.get("view_range", (1, None))
            return "".join(text.splitlines(keepends=True)[first - 1 : last]) if last else text
        before[path] = text
        if command == "str_replace":
            if text.count(fields["old_str"]) != 1:
                raise ValueError(fields["old_str"])
            new = text.replace(fields["old_str"], fields["new_str"])
        else:
            lines = text.splitlines(keepends=True)
            lines.insert(fields["insert_line"], fields["new_str"] + "\n")
            new = "".join(lines)
        path.write_text(new, encoding="utf-8")
        return fields["new_str"]

    yield edit


@contextmanager
def grep(directory: Path, pattern: str, *, python: bool) -> Generator[Callable[[], int]]:
    """Count the files in which a pattern is found, in any case."""
    if python:
        seen = re.compile(pattern.encode(), re.IGNORECASE)
        yield lambda: sum(seen.search(path.read_bytes()) is not None for path in _walk(directory))
    else:
        yield lambda: _ripgrep(directory, "-l", "-i", "-e", pattern)


@contextmanager
def lines(directory: Path, pattern: str) -> Generator[Callable[[], int]]:
    """Count the lines in which a pattern is found."""
    yield lambda: _ripgrep(directory, "-n", "--no-heading", "-e", pattern)


@contextmanager
def glob(directory: Path, pattern: str, *, python: bool) -> Generator[Callable[[], int]]:
    """Count the files whose names match."""
    if python:
        yield lambda: sum(fnmatch.fnmatch(path.name, pattern) for path in _walk(directory))
    else:
        yield lambda: _ripgrep(directory, "--files", "-g", pattern)


def _walk(directory: Path) -> Generator[Path]:
    for base, _, names in os.walk(directory):
        for name in names:
            yield Path(base, name)


def _ripgrep(directory: Path, *options: str) -> int:
    done = subprocess.run(
        ["rg", *options, "."],  # noqa: S607 - the one that the tools find as well
        capture_output=True,
        check=True,
        cwd=directory,
    )
    return done.stdout.count(b"\n")
