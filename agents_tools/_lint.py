"""What is likely to trouble models, providers or users of a tool."""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agents_tools._schema_diff import Reader, Schema, parameters_of
from agents_tools.errors import UserError
from agents_tools.wire._project import project

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools.tool import FunctionTool

    Tool = FunctionTool[..., Any]

__all__ = ["Finding", "findings_of", "yields_before_the_last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at.

    Attributes:
        level: `error` for what cannot work, `warning` for what works badly.
        code: A stable name of the rule.
        tool: The tool it is about.
        message: What is the matter and what to do.
        place: File and line, as far as they are known.
    """

    level: Literal["error", "warning"]
    code: str
    tool: str
    message: str
    place: str | None = None


def findings_of(tools: Sequence[Tool], providers: Sequence[str]) -> list[Finding]:
    """Look at tools.

    Args:
        tools: The tools.
        providers: Where they are to go.
    """
    found: list[Finding] = []
    for name, count in Counter(tool.name for tool in tools).items():
        if count > 1:
            message = f"{count} tools have this name; a model could not tell them apart"
            found.append(_finding("error", "duplicate-name", name, message))
    for tool in tools:
        found.extend(_findings(tool, providers))
    return found


def _findings(tool: Tool, providers: Sequence[str]) -> Iterator[Finding]:
    place = tool.origin.place
    for found in _rules(tool, providers):
        yield (
            found
            if found.place
            else Finding(
                level=found.level,
                code=found.code,
                tool=tool.name,
                message=found.message,
                place=place,
            )
        )


def _rules(tool: Tool, providers: Sequence[str]) -> Iterator[Finding]:
    try:
        tool.build()
    except UserError as error:
        yield _finding("error", "declaration", tool.name, str(error))
        return
    yield from _described(tool)
    yield from _defaults(tool)
    yield from _portable(tool, providers)
    yield from _stream(tool)


def _finding(
    level: Literal["error", "warning"],
    code: str,
    tool: str,
    message: str,
    place: str | None = None,
) -> Finding:
    return Finding(level=level, code=code, tool=tool, message=message, place=place)


# --- descriptions and types


def _described(tool: Tool) -> Iterator[Finding]:
    remote = tool.origin.server is not None
    if not tool.description.strip():
        todo = "its server gives none" if remote else "write a docstring"
        message = f"has no description: {todo}, models choose tools by it"
        yield _finding("warning", "no-description", tool.name, message)
    reader = Reader(tool.json_schema)
    for name, schema in parameters_of(tool.json_schema).items():
        whole = reader.read(schema)
        if not str(whole.get("description") or "").strip():
            todo = "its server gives none" if remote else "add it to the docstring's Args"
            message = f"parameter {name!r} has no description: {todo}"
            yield _finding("warning", "no-parameter-description", tool.name, message)
        if not _says_anything(whole):
            todo = "" if remote else ", annotate it"
            message = f"parameter {name!r} has no type: models may send anything{todo}"
            yield _finding("warning", "no-type", tool.name, message)


_SAYING = frozenset({"type", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "items"})


def _says_anything(schema: Schema) -> bool:
    return not _SAYING.isdisjoint(schema)


def _defaults(tool: Tool) -> Iterator[Finding]:
    """Find defaults that have no JSON form, so that a model is not told them."""
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
            f"the default of {name!r} ({type(default).__name__}) has no JSON form, so models do "
            "not learn it: describe it, or use None and put the value in the body"
        )
        yield _finding("warning", "default-not-json", tool.name, message)


def _is_field(default: Any) -> bool:
    return type(default).__name__ == "FieldInfo"


# --- providers


def _portable(tool: Tool, providers: Sequence[str]) -> Iterator[Finding]:
    fresh = tool.with_()  # what was exported before has given its warning then
    refused: dict[str, list[str]] = {}
    for provider in providers:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                project(fresh, provider)
            except UserError as error:
                refused.setdefault(_reason(error), []).append(provider)
        for warning in caught:
            yield _finding("warning", "not-strict", tool.name, _reason(warning.message))
    for reason, names in refused.items():
        message = f"cannot go to {', '.join(names)}: {reason}"
        yield _finding("error", "not-portable", tool.name, message)
    for name in parameters_of(tool.json_schema):
        if not name.isascii() or not name.replace("-", "_").replace(".", "_").isidentifier():
            message = f"parameter {name!r} has to be renamed for some providers: use ASCII words"
            yield _finding("warning", "parameter-name", tool.name, message)


def _reason(error: object) -> str:
    """Give a message without its beginning, which names the tool again."""
    text = str(error)
    head, colon, rest = text.partition(": ")
    if not colon or not head.startswith("tool "):
        return text
    return f"strict mode is not possible: {rest}" if "without strict" in head else rest


# --- streaming tools


def _stream(tool: Tool) -> Iterator[Finding]:
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
    for node in yields_before_the_last(definition):
        message = (
            "yields a text that is not last: it ends the tool as its result. To say something "
            "and go on, yield NotifyStreamEvent(...)"
        )
        place = f"{filename}:{first + node.lineno - 1}"
        yield _finding("warning", "early-result", tool.name, message, place)


def yields_before_the_last(
    definition: ast.FunctionDef | ast.AsyncFunctionDef,
) -> list[ast.Yield]:
    """Find the yields of a text after which another yield may come.

    The first value that is no event ends a streaming tool, so nothing after them ever runs.
    """
    flow = _Flow()
    flow.block(definition.body, _After(ends=False, breaks=False, continues=False))
    return sorted(flow.found, key=lambda node: node.lineno)


@dataclass(frozen=True, slots=True, kw_only=True)
class _After:
    """Whether a yield may come after a block: at its end, by `break`, by `continue`."""

    ends: bool
    breaks: bool
    continues: bool


class _Flow:
    """Goes through the statements of a function from the last to the first."""

    def __init__(self) -> None:
        self.found: list[ast.Yield] = []

    def block(self, body: Sequence[ast.stmt], after: _After) -> bool:
        """Give whether a yield may come once the block is entered."""
        comes = after.ends
        for statement in reversed(body):
            here = _After(ends=comes, breaks=after.breaks, continues=after.continues)
            comes = self._statement(statement, here)
        return comes

    def _statement(self, statement: ast.stmt, after: _After) -> bool:
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
                arms = [self.block(case.body, after) for case in statement.cases]
                return any(arms) or after.ends
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return after.ends
            case _:
                return self._simple(statement, after)

    def _loop(self, loop: ast.For | ast.AsyncFor | ast.While, after: _After) -> bool:
        at_end = self.block(loop.orelse, after)
        again = any(_yields_in(statement) for statement in loop.body)
        inside = _After(ends=again or at_end, breaks=after.ends, continues=again or at_end)
        return self.block(loop.body, inside) or at_end

    def _try(self, statement: ast.Try | ast.TryStar, after: _After) -> bool:
        finally_comes = self.block(statement.finalbody, after)
        end = _After(ends=finally_comes, breaks=after.breaks, continues=after.continues)
        handled = [self.block(handler.body, end) for handler in statement.handlers]
        else_comes = self.block(statement.orelse, end)
        inside = _After(ends=else_comes, breaks=after.breaks, continues=after.continues)
        return self.block(statement.body, inside) or any(handled)

    def _simple(self, statement: ast.stmt, after: _After) -> bool:
        yields = _yields_in(statement)
        for place, node in enumerate(yields):
            if _is_text(node.value) and (after.ends or place < len(yields) - 1):
                self.found.append(node)
        return bool(yields) or after.ends


def _yields_in(statement: ast.stmt) -> list[ast.Yield]:
    """Give the yields of a statement, without those of functions inside it."""
    found: list[ast.Yield] = []
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Yield):
            found.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return found


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
