"""`python -m tools.house`: the five numbers that are looked at before each release.

They say how much of the package a reader has to hold in mind at once, and what using it costs:
lengths of functions without docstrings and signatures, modules that import each other in a circle,
files of the package that a small run enters, modules that its import loads.
"""

from __future__ import annotations

import ast
import asyncio
import graphlib
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

import agents_tools
from tests.test_loop_weight import entered_by_a_small_run

__all__ = ["figures", "lengths", "loaded", "tied"]

PACKAGE = Path(agents_tools.__file__).parent


def lengths() -> list[tuple[int, str]]:
    """Give the lines of each function's body with where it stands, shortest first."""
    return sorted(
        (length, f"{path.relative_to(PACKAGE.parent)} {name}")
        for path in PACKAGE.rglob("*.py")
        for length, name in _bodies(ast.parse(path.read_text()))
    )


def _bodies(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                yield (body[-1].end_lineno or 0) - body[0].lineno + 1, node.name


def tied() -> list[str]:
    """Give the modules of a circle of imports, those at first use included."""
    graph = grimp.build_graph("agents_tools", exclude_type_checking_imports=True)
    imports = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def loaded() -> int:
    """Count the modules that importing the package adds to those of a bare Python."""
    code = (
        "import sys; bare = set(sys.modules); import agents_tools; "
        "print(len(set(sys.modules) - bare))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    return int(done.stdout)


def figures() -> dict[str, int]:
    """Give the five, each with what it counts."""
    found = [length for length, _ in lengths()]
    return {
        "lines of the longest function": found[-1],
        "lines that nine of ten functions have at most": round(
            statistics.quantiles(found, n=10)[-1]
        ),
        "modules tied in a circle of imports": len(tied()),
        "files that a run of two turns with one tool enters": len(
            asyncio.run(entered_by_a_small_run())
        ),
        "modules that `import agents_tools` loads": loaded(),
    }


def main() -> None:
    """Print the five, and where to look first."""
    print("\n".join(f"| {what} | {number} |" for what, number in figures().items()))
    print("\nLongest functions:", *(f"{n:4} {where}" for n, where in lengths()[:-6:-1]), sep="\n")
    print("\nTied:", *(tied() or ["none"]))


if __name__ == "__main__":
    main()
