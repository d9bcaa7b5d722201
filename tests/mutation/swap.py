"""Exchanges the code of live functions for that of a mutant, in the process that calls it."""

from __future__ import annotations

import ast
import gc
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mutation.mutants import Mutant

_Key = tuple[str, int]
"""A function's qualified name, and the line at which it begins."""


def put_in(mutant: Mutant, tree: ast.Module) -> None:
    """Make a mutant real in this process: whoever holds one of its functions holds the changed one.

    Raises:
        LookupError: No live function has that code, so nothing would change.
    """
    if not mutant.functions:
        _put_constant(mutant)
        return
    keys = {_key(function) for function in mutant.functions}
    mutant.apply()
    ast.fix_missing_locations(tree)
    changed = {
        (code.co_qualname, code.co_firstlineno): code
        for code in _codes(compile(tree, str(mutant.file), "exec", dont_inherit=True))
    }
    found = False
    for function in _live_functions(str(mutant.file)):
        key = (function.__code__.co_qualname, function.__code__.co_firstlineno)
        if (function.__code__.co_name, key[1]) in keys:
            function.__code__ = changed[key]
            found = True
            if mutant.name in {"defaults", "kw_defaults"}:
                _put_default(function, mutant)
    if not found:
        raise LookupError(mutant.qualname)


def _put_default(function: FunctionType, mutant: Mutant) -> None:
    value = ast.literal_eval(mutant.new)  # pyright: ignore[reportArgumentType]
    index = mutant.index or 0
    if mutant.name == "defaults":
        old = list(function.__defaults__ or ())
        old[index] = value
        function.__defaults__ = tuple(old)
    else:
        name = mutant.functions[-1].args.kwonlyargs[index].arg
        function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), name: value}


def _put_constant(mutant: Mutant) -> None:
    """Change a module's constant where its own module reads it."""
    value = ast.literal_eval(mutant.new)  # pyright: ignore[reportArgumentType]
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(mutant.file):
            setattr(module, mutant.qualname, value)


def _key(node: ast.FunctionDef | ast.AsyncFunctionDef) -> _Key:
    first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
    return node.name, first


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _live_functions(file: str) -> list[FunctionType]:
    return [
        thing
        for thing in gc.get_objects()
        if type(thing) is FunctionType and thing.__code__.co_filename == file
    ]
