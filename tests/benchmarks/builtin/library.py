"""The library's class-based and built-in tools."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.builtin import GlobAction, GlobExecutor, GrepAction, GrepExecutor
from agents_tools.builtin.file_editor import FileEditorAction, FileEditorExecutor
from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor
from agents_tools.registry import ToolRegistry, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from pathlib import Path

    from agents_tools.classes import Observation, ToolDefinition

Tool = Any
"""A `ToolDefinition` of a class that the benchmark has made."""


def resolver(kind: type[ToolDefinition[Any, Any]]) -> Callable[[], Tool]:
    """Make the tool of a class by its specification."""
    registry = ToolRegistry()
    registry.register("say", kind)
    spec = ToolSpec(name="say")
    return lambda: registry.make(spec)[0]


def caller(tool: Tool) -> Callable[[str], str]:
    """Call with JSON arguments."""

    def call(arguments: str) -> str:
        action = tool.action_from_arguments(json.loads(arguments))
        return _text(tool(action))

    return call


def invoker(tool: Tool) -> Callable[[str], Awaitable[Any]]:
    """Call as agents do: in a worker thread, since the executor is not async."""
    function_tool = tool.as_function_tool()
    return lambda arguments: function_tool.on_invoke_tool(None, arguments)


def openai(tool: Tool) -> Callable[[], object]:
    """Describe the tool for OpenAI."""
    return tool.to_openai_tool


def mcp(tool: Tool) -> Callable[[], object]:
    """Describe the tool for MCP."""
    return tool.to_mcp_tool


@contextmanager
def terminal(directory: Path) -> Generator[Callable[[str], tuple[str, int | None]]]:
    """Start a terminal."""
    with closing(TerminalExecutor(directory)) as executor:

        def run(command: str) -> tuple[str, int | None]:
            observation = executor(TerminalAction(command=command))
            return _text(observation), observation.exit_code

        yield run


@contextmanager
def editor(directory: Path) -> Generator[Callable[..., str]]:
    """Make an editor."""
    with closing(FileEditorExecutor(directory)) as executor:

        def edit(command: Any, path: Path, **fields: Any) -> str:
            action = FileEditorAction(command=command, path=str(path), **fields)
            return _text(executor(action))

        yield edit


@contextmanager
def grep(directory: Path, pattern: str, *, python: bool) -> Generator[Callable[[], int]]:
    """Find files by their content, in any case."""
    with closing(GrepExecutor(directory, engine=_engine(python=python))) as executor:
        action = GrepAction(pattern=pattern, output="files", ignore_case=True)

        def search() -> int:
            observation = executor(action)
            _text(observation)
            return len(observation.files)

        yield search


@contextmanager
def lines(directory: Path, pattern: str) -> Generator[Callable[[], int]]:
    """Find lines."""
    with closing(GrepExecutor(directory)) as executor:
        action = GrepAction(pattern=pattern)

        def search() -> int:
            observation = executor(action)
            _text(observation)
            return len(observation.matches)

        yield search


@contextmanager
def glob(directory: Path, pattern: str, *, python: bool) -> Generator[Callable[[], int]]:
    """Find files by their names."""
    del python
    with closing(GlobExecutor(directory)) as executor:
        action = GlobAction(pattern=pattern)

        def search() -> int:
            observation = executor(action)
            _text(observation)
            return len(observation.files)

        yield search


def _engine(*, python: bool) -> Literal["auto", "python"]:
    return "python" if python else "auto"


def _text(observation: Observation) -> str:
    text = "".join(getattr(one, "text", "") for one in observation.to_llm_content)
    if observation.is_error:
        raise RuntimeError(text)
    return text
