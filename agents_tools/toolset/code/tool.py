"""`code_mode`: one tool that runs Python programs, which call the other tools as functions."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final

from agents_tools._package import missing_extra
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.schema.json_schema import reader_of
from agents_tools.text.output import release_text
from agents_tools.tool.failure import default_tool_error_function
from agents_tools.tool.manual import SchemaSource
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.records import ToolAnnotations, ToolOrigin
from agents_tools.tool.source import ToolDescription
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.catalog import ToolCatalog
from agents_tools.toolset.code.calls import DirectCalls
from agents_tools.toolset.code.limits import CodeLimits
from agents_tools.toolset.code.stubs import function_names, signature, stubs
from agents_tools.toolset.code.values import ProgramError
from agents_tools.toolset.search_tools import ProxyTool
from agents_tools.toolset.sources import MergedSource, RecentCache, parts_of
from agents_tools.toolset.token_usage import estimated_tokens
from agents_tools.toolset.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agents_tools.tool.call import Call
    from agents_tools.toolset.catalog import AnyTool
    from agents_tools.toolset.code.calls import ProgramCalls
    from agents_tools.toolset.code.sandbox import ProgramResult
    from agents_tools.toolset.sources import Tools

__all__ = ["code_mode"]

_OWNER: Final = "code_mode(...)"
_SEARCH: Final = "search_tools"
_MAX_FOUND: Final = 6
_MAX_FOUND_TEXT: Final = 12_000
_NOTE_ROOM: Final = 500
"""The characters of notes after an output that has been cut."""
_GUIDE: Final = """\
Run a Python program that calls tools as functions. You get what it prints and the value of its \
last line: filter, join and count in the program, and return only what you need.
Await calls: `user = await get_user(1)`, `await asyncio.gather(f(1), f(2))`. Results are JSON \
values; a failed call raises an exception.
Modules: asyncio, collections, csv, datetime, decimal, functools, itertools, json, math, re. No \
files, network, other modules, generators, `del`, tasks, `return_exceptions`. Each program starts \
empty."""


def code_mode(
    *sources: object,
    name: str = "run_code",
    max_tokens: int = 3_000,
    limits: CodeLimits | None = None,
) -> FunctionTool[..., Any]:
    """Create a tool that runs Python programs, which call other tools as functions.

    The model gets one tool instead of many, and writes a program where it would otherwise make a
    request per call. Intermediate results stay in the program: the model reads only what it prints
    and the value of its last line. The program runs in a sandbox, pydantic-monty, without files,
    network and modules other than a few of the standard library.

    Each call of the program is an ordinary call of the run, with validated arguments, its own
    policies, approvals, budgets, timeouts and events, whose paths begin with the id of the program.
    An error is an exception in the program. If a call waits for the approval of a person, the run
    is interrupted, and the program continues with the decision. In a run with a store, it also
    continues if its process ends: finished calls do not run again.

    The description of the tool has the signatures of the functions. If they need more than
    `max_tokens`, it has shorter ones, or only names, and the program searches for functions with
    `await search_tools("...")`. Tools of a dynamic source are only found in this way. Tools behind
    a `tool_search` are functions like all others.

    Requires the extra `code`.

    Args:
        *sources: The tools, as for `Toolset`: tools, lists, toolsets, MCP managers.
        name: The name of the tool.
        max_tokens: The maximum number of tokens for the functions in the description, estimated.
        limits: The limits of each program.

    Raises:
        UserError: An argument is not valid, two tools have the same name, or a tool is a hosted
            tool or a handoff.
        MissingExtraError: pydantic-monty is not installed.
    """
    check_tool_name(name)
    if type(max_tokens) is not int or max_tokens < 1:
        raise UserValueError(
            f"code_mode(max_tokens=...) is not valid: expected a positive integer, got "
            f"{max_tokens!r:.60}."
        )
    if limits is not None and not isinstance(limits, CodeLimits):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserTypeError(
            f"code_mode(limits=...) is not valid: expected CodeLimits(...), got {limits!r:.60}."
        )
    if find_spec("pydantic_monty") is None:
        raise missing_extra("code_mode", "code", ModuleNotFoundError(name="pydantic_monty"))
    limits = limits or CodeLimits()
    tools = MergedSource(parts_of(sources, _OWNER), _OWNER)
    for one in _opened(tools.known()):  # which also checks the names
        if not isinstance(one, FunctionTool) or one.origin.kind == "handoff":
            raise UserTypeError(
                f"code_mode(...) cannot offer {one.name!r} to a program: expected tools that run "
                "here, got a hosted tool or a handoff. Add it to the tools of the agent."
            )
    tool = FunctionTool.of_source(
        _CodeSource(name, tools, limits, max_tokens),
        strict_json_schema=False,
        failure_error_function=_failure_text,
        metadata={"agents_tools": {"resumes": True}},  # a run with a store repeats it from the log
    )
    return tool.with_(max_output=limits.output + _NOTE_ROOM)


def _failure_text(ctx: object, error: Exception) -> str:
    """Return the text for a failed call, for a program with all that it printed before."""
    if isinstance(error, ProgramError):
        return release_text(str(error), to="model", patterns=True)
    return default_tool_error_function(ctx, error)


@lru_cache(maxsize=1)
def _schemas() -> tuple[type, type]:
    """Return the argument types; this function imports pydantic when it is needed."""
    from pydantic import Field
    from typing_extensions import TypedDict

    make: Any = TypedDict
    code = Annotated[str, Field(description="The program")]
    query = Annotated[str, Field(description="What the function should do, in a few words")]
    return make("program", {"code": code}), make(_SEARCH, {"query": query})


class _CodeSource(SchemaSource):
    """Runs programs that call tools.

    Args:
        name: The name of the tool.
        tools: The source of the tools.
        limits: The limits of a program.
        max_tokens: The maximum number of tokens for the functions in the description.
    """

    def __init__(self, name: str, tools: MergedSource, limits: CodeLimits, max_tokens: int) -> None:
        super().__init__(
            name,
            _GUIDE,
            reader_of(name, _schemas()[0]),
            self._execute,
            origin=ToolOrigin(kind="code"),
        )
        self._tools = tools
        self._limits = limits
        self._max_tokens = max_tokens
        self._recent = RecentCache()

    def describe(self) -> ToolDescription:
        """Return the guide with the functions, as many as fit."""
        functions = self._functions(self._tools.known())
        text = functions.describe(self._max_tokens, has_more=self._tools.asks is not None)
        return ToolDescription(f"{_GUIDE}\n{text}", super().describe().json_schema)

    def _functions(self, tools: Tools) -> _Functions:
        functions: _Functions = self._recent.get((tools,), lambda: _Functions(tools))
        return functions

    async def _execute(self, call: Call) -> Any:
        code = _without_fence(str(call.parsed.data["code"]))
        functions = self._functions(await self._tools.tools(call.context))
        sandbox: Any = import_module("agents_tools.toolset.code.sandbox")

        async def run(calls: ProgramCalls, started: datetime) -> Any:
            result = await sandbox.run_program(
                code,
                functions.by_name,
                calls,
                self._limits,
                started=started,
                on_print=partial(call.notify, is_delta=True),
            )
            return _output(result, self._limits)

        if call.scope is None or call.scope.run is None:  # as in the agent of another framework
            async with DirectCalls(call) as calls:
                return await run(calls, datetime.now(UTC))
        # Runs are above this package: the program's calls are those of a run inside the call.
        runs: Any = import_module("agents_tools.agents.program")
        return await runs.run_program(call, functions.tools, run)


class _Functions:
    """The tools as functions of a program.

    Args:
        tools: The tools; those behind a search count, disabled ones do not.

    Attributes:
        by_name: The tools by the names of their functions, with the search.
        tools: The same tools.
    """

    def __init__(self, tools: Tools) -> None:
        functions = {id(tool): tool for tool in _opened(tools) if _is_function(tool)}
        named = function_names(functions.values())
        self._named = named
        self._catalog = ToolCatalog(named.values())
        self._names = {id(tool): name for name, tool in named.items()}
        self._search = _SEARCH
        while self._search in named:
            self._search += "_"
        search = FunctionTool.of_source(
            SchemaSource(
                self._search,
                "Find functions for a task, and return their signatures as text.",
                reader_of(self._search, _schemas()[1]),
                self._find,
            ),
            annotations=ToolAnnotations(readOnlyHint=True, idempotentHint=True),
        )
        self.by_name: Mapping[str, AnyTool] = {**named, self._search: search}
        self.tools: tuple[AnyTool, ...] = tuple(self.by_name.values())

    def describe(self, max_tokens: int, *, has_more: bool) -> str:
        """Return the functions for the description, with as much detail as fits.

        Args:
            max_tokens: The maximum number of tokens.
            has_more: Whether a dynamic source has further tools.
        """
        search = f"{self._search}(query: str) -> str"
        for number, lines in enumerate(self._levels()):
            listed = "\n".join(lines)
            if estimated_tokens(listed) > max_tokens:
                continue
            if number == 0 and not has_more:
                return f"Functions:\n{listed}"
            more = "There are more functions. " if has_more else ""
            return (
                f"{more}Print `await {search}` to read how functions are called.\n"
                f"Functions:\n{listed}"
            ).rstrip()
        return (
            f"There are {len(self._named)} functions. Print `await {search}` to find one and to "
            "read how it is called."
        )

    def _levels(self) -> Iterator[list[str]]:
        """Yield the functions with less and less detail."""
        yield stubs(self._named)
        yield [signature(name, tool) for name, tool in self._named.items()]
        yield [", ".join(self._named)]

    async def _find(self, call: Call) -> str:
        query = str(call.parsed.data["query"])
        names = query.replace(",", " ").split()
        if len(names) > 1 and all(name in self._named for name in names):
            found = [self._named[name] for name in names]
        elif words_of(query):
            found = await self._catalog.find(query, _MAX_FOUND, call)
        else:
            found = []
        functions: dict[str, AnyTool] = {}
        text = f"None of the {len(self._named)} functions fits {query!r:.80}."
        for tool in found:
            functions[self._names[id(tool)]] = tool
            longer = "\n".join(stubs(functions)).strip()
            if len(functions) > 1 and len(longer) > _MAX_FOUND_TEXT:
                break
            text = longer
        return text


def _without_fence(code: str) -> str:
    """Return a program without the code fence of Markdown that models write around it."""
    found = _FENCE.fullmatch(code)
    return code if found is None else found[1]


_FENCE = re.compile(r"\s*```(?:python|py)?[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)


def _opened(tools: Iterable[Any]) -> Iterator[Any]:
    """Yield the tools, with those behind a search in place of the search."""
    for tool in tools:
        if isinstance(tool, ProxyTool):
            yield from tool.catalog.tools
        else:
            yield tool


def _is_function(tool: Any) -> bool:
    return isinstance(tool, FunctionTool) and tool.is_enabled is not False


def _output(result: ProgramResult, limits: CodeLimits) -> Any:
    """Return what the model gets: the value alone, or a text with what was printed before it."""
    notes: list[str] = []
    if result.is_cut:
        notes.append(
            f"[What was printed is cut after {limits.output:,} characters. Print less of it.]"
        )
    if result.unawaited:
        names = ", ".join(dict.fromkeys(result.unawaited))
        notes.append(f"[Not run, because the program did not await them: calls of {names}.]")
    value = result.value
    if not result.printed and not notes:
        return value
    parts = [result.printed.rstrip("\n")] if result.printed else []
    if value is not None:
        text = value if isinstance(value, str) else _as_json(value)
        parts.append(text)
    return "\n".join([*parts, *notes])


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
