"""Find the yields of a string that end a streaming tool too early."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools.toolset.lint.finding import Subject

__all__ = ["check_early_results", "find_early_results"]


def check_early_results(subject: Subject) -> Iterator[tuple[str, str, str | None]]:
    """Report yields of a string that another yield can follow.

    Args:
        subject: The tool.
    """
    tool = subject.tool
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
        yield "early-result", message, f"{filename}:{first + node.lineno - 1}"


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
