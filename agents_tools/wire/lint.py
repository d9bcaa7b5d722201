"""Check tools for problems with models, providers or users."""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.errors import UserError
from agents_tools.wire.diff import DefinitionReader, Schema, parameters_of
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools.tool.tool import FunctionTool

    Tool = FunctionTool[..., Any]

__all__ = ["Finding", "find_early_results", "lint_tools"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem of a tool.

    Attributes:
        level: `error` if the tool cannot work, `warning` if it works badly.
        code: The stable name of the rule.
        tool: The name of the tool.
        message: The problem and its remedy.
        place: The file and line; `None` if they are unknown.
    """

    level: Literal["error", "warning"]
    code: str
    tool: str
    message: str
    place: str | None = None


def lint_tools(tools: Sequence[Tool], providers: Sequence[str]) -> list[Finding]:
    """Return the problems of tools.

    Args:
        tools: The tools.
        providers: The names of the providers that the tools are for.
    """
    findings: list[Finding] = []
    for name, count in Counter(tool.name for tool in tools).items():
        if count > 1:
            message = f"{count} tools have this name; a model cannot distinguish them"
            findings.append(_finding("error", "duplicate-name", name, message))
    for tool in tools:
        findings.extend(_findings(tool, providers))
    return findings


def _findings(tool: Tool, providers: Sequence[str]) -> Iterator[Finding]:
    for finding in _rules(tool, providers):
        yield finding if finding.place else replace(finding, place=tool.origin.place)


def _rules(tool: Tool, providers: Sequence[str]) -> Iterator[Finding]:
    try:
        tool.build()
    except UserError as error:
        yield _finding("error", "declaration", tool.name, str(error))
        return
    yield from _check_descriptions(tool)
    yield from _check_defaults(tool)
    yield from _check_providers(tool, providers)
    yield from _check_stream(tool)


def _finding(
    level: Literal["error", "warning"],
    code: str,
    tool: str,
    message: str,
    place: str | None = None,
) -> Finding:
    return Finding(level=level, code=code, tool=tool, message=message, place=place)


# --- descriptions and types


def _check_descriptions(tool: Tool) -> Iterator[Finding]:
    remote = tool.origin.server is not None
    if not tool.description.strip():
        remedy = "its server sends none" if remote else "write a docstring"
        message = f"has no description: {remedy}, models select tools by it"
        yield _finding("warning", "no-description", tool.name, message)
    reader = DefinitionReader(tool.json_schema)
    for name, schema in parameters_of(tool.json_schema).items():
        resolved = reader.read(schema)
        if not str(resolved.get("description") or "").strip():
            remedy = "its server sends none" if remote else "add it to the docstring's Args"
            message = f"parameter {name!r} has no description: {remedy}"
            yield _finding("warning", "no-parameter-description", tool.name, message)
        if not _has_type(resolved):
            remedy = "" if remote else ", annotate it"
            message = f"parameter {name!r} has no type: models can send any value{remedy}"
            yield _finding("warning", "no-type", tool.name, message)


_TYPE_KEYWORDS = frozenset(
    {"type", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "items"}
)


def _has_type(schema: Schema) -> bool:
    return not _TYPE_KEYWORDS.isdisjoint(schema)


def _check_defaults(tool: Tool) -> Iterator[Finding]:
    """Report defaults that are not JSON-serializable and therefore missing in the schema."""
    function = tool.__dict__.get("__wrapped__")
    if function is None:
        return
    properties = parameters_of(tool.json_schema)
    for name, parameter in inspect.signature(function).parameters.items():
        default: Any = parameter.default
        if default is parameter.empty or name not in properties:
            continue
        if "default" in properties[name] or _is_field(default):
            continue
        message = (
            f"the default of {name!r} ({type(default).__name__}) is not JSON-serializable, so it "
            "is missing in the schema: describe it, or use None and set the value in the body"
        )
        yield _finding("warning", "default-not-json", tool.name, message)


def _is_field(default: Any) -> bool:
    return type(default).__name__ == "FieldInfo"


# --- providers


def _check_providers(tool: Tool, providers: Sequence[str]) -> Iterator[Finding]:
    copy = tool.with_()  # warnings are issued only once per tool
    failures: dict[str, list[str]] = {}
    for provider in providers:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                project(copy, provider)
            except UserError as error:
                failures.setdefault(_reason(error), []).append(provider)
        for warning in caught:
            yield _finding("warning", "not-strict", tool.name, _reason(warning.message))
    for reason, names in failures.items():
        message = f"cannot be exported to {', '.join(names)}: {reason}"
        yield _finding("error", "not-portable", tool.name, message)
    for name in parameters_of(tool.json_schema):
        if not name.isascii() or not name.replace("-", "_").replace(".", "_").isidentifier():
            message = f"parameter {name!r} is renamed for some providers: use ASCII letters"
            yield _finding("warning", "parameter-name", tool.name, message)


def _reason(error: object) -> str:
    """Return a message without its prefix, which repeats the name of the tool."""
    text = str(error)
    head, colon, rest = text.partition(": ")
    if not colon or not head.startswith("tool "):
        return text
    return f"strict mode is not possible: {rest}" if "without strict" in head else rest


# --- streaming tools


def _check_stream(tool: Tool) -> Iterator[Finding]:
    function = tool.__dict__.get("__wrapped__")
    if tool.origin.kind != "stream" or function is None:
        return
    function = inspect.unwrap(function)
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        filename = inspect.getsourcefile(function) or "?"
    except (OSError, TypeError, SyntaxError):
        return  # no source, as in a notebook
    definition = tree.body[0] if tree.body else None
    if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    for node in find_early_results(definition):
        message = (
            "yields a string that is not last: it ends the tool as its result. To emit text and "
            "continue, yield NotifyStreamEvent(...)"
        )
        place = f"{filename}:{first + node.lineno - 1}"
        yield _finding("warning", "early-result", tool.name, message, place)


def find_early_results(
    definition: ast.FunctionDef | ast.AsyncFunctionDef,
) -> list[ast.Yield]:
    """Return the yields of a string that another yield can follow.

    The first value that is not an event is the result of a streaming tool and ends it, so the code
    after such a yield never runs.
    """
    flow = _FlowAnalysis()
    flow.block(definition.body, _LaterYields(ends=False, breaks=False, continues=False))
    return sorted(flow.early_results, key=lambda node: node.lineno)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LaterYields:
    """Whether another yield can follow a block: at its end, after `break`, after `continue`."""

    ends: bool
    breaks: bool
    continues: bool


class _FlowAnalysis:
    """A backward analysis of the statements of a function."""

    def __init__(self) -> None:
        self.early_results: list[ast.Yield] = []

    def block(self, body: Sequence[ast.stmt], after: _LaterYields) -> bool:
        """Return whether a yield can be reached from the start of the block."""
        is_reachable = after.ends
        for statement in reversed(body):
            position = _LaterYields(
                ends=is_reachable, breaks=after.breaks, continues=after.continues
            )
            is_reachable = self._statement(statement, position)
        return is_reachable

    def _statement(self, statement: ast.stmt, after: _LaterYields) -> bool:
        match statement:
            case ast.Return() | ast.Raise():
                return False
            case ast.Break():
                return after.breaks
            case ast.Continue():
                return after.continues
            case ast.If():
                return any([self.block(statement.body, after), self.block(statement.orelse, after)])
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(statement, after)
            case ast.With() | ast.AsyncWith():
                return self.block(statement.body, after)
            case ast.Try() | ast.TryStar():
                return self._try(statement, after)
            case ast.Match():
                branches = [self.block(case.body, after) for case in statement.cases]
                return any(branches) or after.ends
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return after.ends
            case _:
                return self._simple(statement, after)

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While, after: _LaterYields) -> bool:
        at_end = self.block(loop.orelse, after)
        repeats = any(_yields_in(statement) for statement in loop.body)
        next_yield = repeats or at_end
        inside = _LaterYields(ends=next_yield, breaks=after.ends, continues=next_yield)
        return self.block(loop.body, inside) or at_end

    def _try(self, statement: ast.Try | ast.TryStar, after: _LaterYields) -> bool:
        finally_yields = self.block(statement.finalbody, after)
        end = _LaterYields(ends=finally_yields, breaks=after.breaks, continues=after.continues)
        handled = [self.block(handler.body, end) for handler in statement.handlers]
        else_yields = self.block(statement.orelse, end)
        inside = _LaterYields(ends=else_yields, breaks=after.breaks, continues=after.continues)
        return self.block(statement.body, inside) or any(handled)

    def _simple(self, statement: ast.stmt, after: _LaterYields) -> bool:
        yields = _yields_in(statement)
        for index, node in enumerate(yields):
            if _is_text(node.value) and (after.ends or index < len(yields) - 1):
                self.early_results.append(node)
        return bool(yields) or after.ends


def _yields_in(statement: ast.stmt) -> list[ast.Yield]:
    """Return the yields of a statement, except those in nested functions."""
    yields: list[ast.Yield] = []
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Yield):
            yields.append(node)
        pending.extend(ast.iter_child_nodes(node))
    return yields


def _is_text(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant():
            return isinstance(value.value, str)
        case ast.JoinedStr():
            return True
        case ast.BinOp():
            return _is_text(value.left) or _is_text(value.right)
        case ast.Call(func=ast.Name(id="str")):
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr="join" | "format")):
            return _is_text(inner)
        case _:
            return False
