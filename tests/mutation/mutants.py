"""Finds the mutants of a module: one small change each, as an edit of its syntax tree."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_Function = ast.FunctionDef | ast.AsyncFunctionDef

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_LARGE = 10
"""Numbers from here on are limits and lengths: these are doubled, smaller ones grow by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change: `node.name` (or the item `index` of it) becomes `new`."""

    file: Path
    line: int
    lines: frozenset[int]
    """Where a test must have been to see the change."""

    functions: tuple[_Function, ...]
    """The functions around the change, the outermost first; none for a module's constant."""

    qualname: str
    change: str
    node: ast.AST = field(repr=False)
    name: str
    index: int | None = None
    new: object = field(repr=False)
    keep: ast.AST | None = field(default=None, repr=False)
    """What the change takes away: kept unreached, so that a function keeps its variables."""

    def apply(self) -> None:
        """Edit the tree, for good: the caller is a process of the mutant's own."""
        if self.index is None:
            setattr(self.node, self.name, self.new)
        else:
            getattr(self.node, self.name)[self.index] = self.new
        if self.functions and self.keep is not None:
            kept = copy.deepcopy(self.keep)
            body = [kept if isinstance(kept, ast.stmt) else ast.Expr(kept)]  # pyright: ignore[reportArgumentType]
            # A loop, for a `break` or `continue` needs one.
            self.functions[-1].body.append(ast.While(ast.Constant(value=False), body, []))


def find_mutants(file: Path, tree: ast.Module) -> list[Mutant]:
    """Give all mutants of a module, in the order of its lines."""
    found = list(_Finder(file, tree).walk(tree, (), ""))
    return sorted(found, key=lambda mutant: mutant.line)


class _Finder:
    def __init__(self, file: Path, tree: ast.Module) -> None:
        self._file = file
        self._tree = tree

    def walk(self, node: ast.AST, functions: tuple[_Function, ...], name: str) -> Iterator[Mutant]:
        """Give the mutants below `node`."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from self.walk(child, functions, _joined(name, child.name))
            elif isinstance(child, _Function):
                yield from self._function(child, functions, name)
            elif functions:
                yield from self._inside(child, functions, name)
            elif isinstance(child, (ast.Assign, ast.AnnAssign)) and node is self._tree:
                yield from self._module_constant(child)

    def _function(
        self, node: _Function, outer: tuple[_Function, ...], name: str
    ) -> Iterator[Mutant]:
        if any(ast.unparse(mark).endswith("overload") for mark in node.decorator_list):
            return
        functions, name = (*outer, node), _joined(name, node.name)
        if not outer:
            yield from self._defaults(node, name)
        for statement in _without_docstring(node.body):
            yield from self._inside(statement, functions, name)
        yield from self._removed(node, "body", functions, name)

    def _defaults(self, node: _Function, name: str) -> Iterator[Mutant]:
        for owner, attribute in ((node.args, "defaults"), (node.args, "kw_defaults")):
            for index, value in enumerate(getattr(owner, attribute)):
                new = _other_constant(value)
                if new is None:
                    continue
                yield Mutant(
                    file=self._file,
                    line=value.lineno,
                    lines=_span(node),
                    functions=(node,),
                    qualname=name,
                    change=f"default {ast.unparse(value)} -> {ast.unparse(new)} ({attribute} {index})",
                    node=owner,
                    name=attribute,
                    index=index,
                    new=new,
                )

    def _module_constant(self, node: ast.Assign | ast.AnnAssign) -> Iterator[Mutant]:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        new = _other_constant(node.value)
        if new is None or not isinstance(target, ast.Name):
            return
        users = [n for n in ast.walk(self._tree) if isinstance(n, ast.Name) and n.id == target.id]
        yield Mutant(
            file=self._file,
            line=node.lineno,
            lines=frozenset(user.lineno for user in users),
            functions=(),
            qualname=target.id,
            change=f"{ast.unparse(node)} -> {ast.unparse(new)}",
            node=node,
            name="value",
            new=new,
        )

    def _inside(
        self, node: ast.AST, functions: tuple[_Function, ...], name: str
    ) -> Iterator[Mutant]:
        """Give the mutants of a node in a function, and of what is below it."""
        if isinstance(node, _Function):
            yield from self._function(node, functions, name + ".<locals>")
            return
        if isinstance(node, (ast.Assert, ast.JoinedStr, ast.Raise)):
            return  # texts are for people; that an error is raised is asked by removing it
        for owner, attribute, index, new, keep in _edits(node):
            yield self._mutant(owner, attribute, index, new, keep, functions, name)
        for attribute in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, attribute, None), list):
                yield from self._removed(node, attribute, functions, name)
        for attribute, value in ast.iter_fields(node):
            if attribute in {"annotation", "returns"}:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._inside(child, functions, name)

    def _removed(
        self, node: ast.AST, attribute: str, functions: tuple[_Function, ...], name: str
    ) -> Iterator[Mutant]:
        for index, statement in enumerate(getattr(node, attribute)):
            if _removable(statement):
                yield self._mutant(node, attribute, index, ast.Pass(), statement, functions, name)

    def _mutant(
        self,
        owner: ast.AST,
        attribute: str,
        index: int | None,
        new: object,
        keep: ast.AST | None,
        functions: tuple[_Function, ...],
        name: str,
    ) -> Mutant:
        old = getattr(owner, attribute)
        old = old if index is None else old[index]
        line = next(filter(None, map(_line, (old, keep, owner))))
        # An expression over several lines may be counted with any of them.
        above = min(line, _line(owner) or line)
        lines = {line, above} if isinstance(old, ast.expr) else {line}
        if isinstance(old, list):
            lines |= {at for item in old if (at := _line(item)) is not None}
        return Mutant(
            file=self._file,
            line=line,
            lines=frozenset(lines),
            functions=functions,
            qualname=name,
            change=_described(owner, old, new),
            node=owner,
            name=attribute,
            index=index,
            new=new,
            keep=keep,
        )


_Edit = tuple[ast.AST, str, int | None, object, ast.AST | None]


def _edits(node: ast.AST) -> Iterator[_Edit]:
    """Give the edits of one node: what holds it, and what it becomes."""
    match node:
        case ast.Compare():
            for index, op in enumerate(node.ops):
                yield node, "ops", index, _COMPARISONS[type(op)](), None
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _ARITHMETIC:
            yield node, "op", None, _ARITHMETIC[type(node.op)](), None
        case ast.BoolOp():
            neutral = ast.Constant(value=isinstance(node.op, ast.And))
            for index, value in enumerate(node.values):
                yield node, "values", index, neutral, value
        case ast.Return() if node.value is not None and not _is_none(node.value):
            yield node, "value", None, ast.Constant(value=None), node.value
        case ast.Call():
            yield from _call_edits(node)
        case ast.Slice():
            for name in ("lower", "upper"):
                if getattr(node, name) is not None:
                    yield node, name, None, None, getattr(node, name)
        case ast.comprehension():
            for index, test in enumerate(node.ifs):
                yield node, "ifs", index, ast.Constant(value=True), test
        case ast.match_case() if node.guard is not None:
            yield node, "guard", None, None, node.guard
        case ast.ExceptHandler():
            yield node, "body", None, [ast.Raise()], ast.If(ast.Constant(value=True), node.body, [])
        case ast.Try() if node.finalbody:
            yield node, "finalbody", None, [ast.Pass()], _block(node.finalbody)
        case ast.With() | ast.AsyncWith() if all(i.optional_vars is None for i in node.items):
            yield from _without_with(node)
        case _:
            pass
    yield from _child_edits(node)


def _child_edits(node: ast.AST) -> Iterator[_Edit]:
    """Give the edits that put something in the place of a node's child."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "type"} or isinstance(node, ast.match_case):
            continue
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if isinstance(child, ast.UnaryOp) and isinstance(child.op, ast.Not):
                yield node, name, index, child.operand, None
            elif isinstance(child, ast.expr) and (new := _other_constant(child)) is not None:
                yield node, name, index, new, None
            elif _asks(node, name) and not isinstance(child, ast.Compare | ast.BoolOp):
                yield node, name, index, ast.UnaryOp(ast.Not(), child), None


def _asks(node: ast.AST, name: str) -> bool:
    return name == "test" and isinstance(node, ast.If | ast.While | ast.IfExp)


def _call_edits(node: ast.Call) -> Iterator[_Edit]:
    for index, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            rest = node.keywords[:index] + node.keywords[index + 1 :]
            yield node, "keywords", None, rest, keyword.value
    typed = ast.unparse(node.func).rpartition(".")[2] in {"isinstance", "cast"}
    spread = any(isinstance(arg, ast.Starred) for arg in node.args)
    if len(node.args) == 2 and not (typed or spread):
        yield node, "args", None, node.args[::-1], None


def _without_with(node: ast.With | ast.AsyncWith) -> Iterator[_Edit]:
    calm = ast.Call(
        ast.Attribute(
            ast.Call(ast.Name("__import__", ast.Load()), [ast.Constant(value="contextlib")], []),
            "nullcontext",
            ast.Load(),
        ),
        [],
        [],
    )
    for index, item in enumerate(node.items):
        yield node, "items", index, ast.withitem(calm, None), item.context_expr


def _line(node: object) -> int | None:
    return getattr(node, "lineno", None)


def _block(body: list[ast.stmt]) -> ast.If:
    return ast.If(ast.Constant(value=True), body, [])


def _removable(node: ast.stmt) -> bool:
    """Tell whether a statement is removed: only where that makes sense without it."""
    match node:
        case ast.Expr():
            return not isinstance(node.value, ast.Constant)
        case ast.Assign():
            return all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets)
        case _:
            wanted = (ast.AugAssign, ast.Delete, ast.Raise, ast.Continue, ast.Break)
            return isinstance(node, wanted)


def _other_constant(node: object) -> ast.Constant | None:
    if not isinstance(node, ast.Constant):
        return None
    match node.value:
        case bool():
            return ast.Constant(value=not node.value)
        case int() | float():
            step = node.value if abs(node.value) >= _LARGE else 1
            return ast.Constant(value=node.value + step)
        case _:
            return None


def _described(owner: ast.AST, old: object, new: object) -> str:
    if isinstance(new, ast.Pass):
        return f"removed: {_short(old)}"
    match owner:
        case ast.ExceptHandler():
            return f"except {_short(owner.type)}: -> raise"
        case ast.Try():
            return "removed: finally"
        case ast.With() | ast.AsyncWith():
            return f"removed: with {_short(old)}"
        case ast.match_case() | ast.comprehension() if old is not None:
            return f"condition dropped: {_short(old)}"
        case ast.BoolOp() if isinstance(new, ast.Constant):
            return f"dropped {_short(old)} of {_short(owner)}"
        case ast.Call() if isinstance(new, list) and old is owner.keywords:
            gone = next(k for k in owner.keywords if k not in new)
            return f"dropped {_short(gone)} of {_short(owner)}"
        case ast.Call() if isinstance(new, list):
            return f"arguments swapped: {_short(owner)}"
        case ast.Compare() | ast.BinOp() | ast.AugAssign() if not isinstance(new, ast.expr):
            return f"{_short(owner)}: {type(old).__name__} -> {type(new).__name__}"
        case _:
            return f"{_short(old)} -> {_short(new)} in {_short(owner)}"


def _short(node: object, limit: int = 90) -> str:
    if not isinstance(node, ast.AST):
        return str(node)
    if isinstance(node, (ast.If, ast.While)):
        node = node.test
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _span(node: _Function) -> frozenset[int]:
    body = _without_docstring(node.body) or node.body
    return frozenset(range(body[0].lineno, (node.end_lineno or node.lineno) + 1))


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return body[1:]
    return body


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _joined(outer: str, name: str) -> str:
    return f"{outer}.{name}" if outer else name
