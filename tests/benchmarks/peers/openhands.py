"""OpenHands, through the executors of its tools, which need no conversation."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from openhands.sdk.tool import Tool, register_tool, resolve_tool
from openhands.tools.file_editor import FileEditorAction, FileEditorExecutor
from openhands.tools.glob import GlobAction, GlobExecutor
from openhands.tools.grep import GrepAction, GrepExecutor
from openhands.tools.terminal import TerminalAction, TerminalExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path


def resolver(kind: type[Any]) -> Callable[[], Any]:
    """Make the tool of a class by its specification."""
    register_tool("say", kind)
    spec = Tool(name="say")
    return lambda: resolve_tool(spec, None)[0]


def caller(tool: Any) -> Callable[[str], str]:
    """Call with JSON arguments."""

    def call(arguments: str) -> str:
        action = tool.action_from_arguments(json.loads(arguments))
        return _text(tool(action))

    return call


def openai(tool: Any) -> Callable[[], object]:
    """Describe the tool for OpenAI."""
    return tool.to_openai_tool


def mcp(tool: Any) -> Callable[[], object]:
    """Describe the tool for MCP."""
    return tool.to_mcp_tool


def terminal(directory: Path) -> Any:
    """Start a terminal of the faster kind; where there is tmux, that is not its default."""
    return _terminal(directory, "subprocess")


def tmux(directory: Path) -> Any:
    """Start a terminal in tmux, where there is tmux."""
    return _terminal(directory, "tmux") if shutil.which("tmux") else None


@contextmanager
def _terminal(directory: Path, kind: Any) -> Generator[Callable[[str], tuple[str, int | None]]]:
    with closing(TerminalExecutor(str(directory), terminal_type=kind)) as executor:

        def run(command: str) -> tuple[str, int | None]:
            observation = executor(TerminalAction(command=command))
            return _text(observation), observation.metadata.exit_code

        yield run


@contextmanager
def editor(directory: Path) -> Generator[Callable[..., str]]:
    """Make an editor."""
    executor = FileEditorExecutor(workspace_root=str(directory))

    def edit(command: Any, path: Path, **fields: Any) -> str:
        return _text(executor(FileEditorAction(command=command, path=str(path), **fields)))

    yield edit


@contextmanager
def grep(directory: Path, pattern: str, *, python: bool) -> Generator[Callable[[], int]]:
    """Find files by their content, in any case, which is the one way it searches."""
    with _programs(python=python):
        executor = GrepExecutor(str(directory))
    action = GrepAction(pattern=pattern)

    def search() -> int:
        observation = executor(action)
        _text(observation)
        return len(observation.matches)

    yield search


@contextmanager
def glob(directory: Path, pattern: str, *, python: bool) -> Generator[Callable[[], int]]:
    """Find files by their names."""
    with _programs(python=python):
        executor = GlobExecutor(str(directory))
    action = GlobAction(pattern=pattern)

    def search() -> int:
        observation = executor(action)
        _text(observation)
        return len(observation.files)

    yield search


def _programs(*, python: bool) -> Any:
    """Hide ripgrep and grep while an executor looks for them, where none is to be used."""
    return mock.patch.dict(os.environ, {"PATH": ""} if python else {})


def _text(observation: Any) -> str:
    text = "".join(getattr(one, "text", "") for one in observation.to_llm_content)
    if observation.is_error:
        raise RuntimeError(text)
    return text
