"""Five numbers about the size and the cost of the package: `python -m tools.code_size`."""

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

__all__ = ["figures", "function_lengths", "import_cycle", "loaded_modules"]

PACKAGE = Path(agents_tools.__file__).parent


def function_lengths() -> list[tuple[int, str]]:
    """Return the number of lines of each function's body and its place, shortest first."""
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


def import_cycle() -> list[str]:
    """Return the modules of an import cycle, imports inside functions included."""
    graph = grimp.build_graph("agents_tools", exclude_type_checking_imports=True)
    imports = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def loaded_modules() -> int:
    """Count the modules that importing the package loads in addition to those of Python."""
    code = (
        "import sys; before = set(sys.modules); import agents_tools; "
        "print(len(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    return int(done.stdout)


def figures() -> dict[str, int]:
    """Return the five numbers by their description."""
    lengths = [length for length, _ in function_lengths()]
    return {
        "lines of the longest function": lengths[-1],
        "lines of a function, 90th percentile": round(statistics.quantiles(lengths, n=10)[-1]),
        "modules in an import cycle": len(import_cycle()),
        "files that a run of two turns with one tool executes": len(
            asyncio.run(entered_by_a_small_run())
        ),
        "modules that `import agents_tools` loads": loaded_modules(),
    }


def main() -> None:
    """Print the numbers and the longest functions."""
    print("\n".join(f"| {what} | {number} |" for what, number in figures().items()))
    print(
        "\nLongest functions:",
        *(f"{n:4} {name}" for n, name in function_lengths()[:-6:-1]),
        sep="\n",
    )
    print("\nImport cycle:", *(import_cycle() or ["none"]))


if __name__ == "__main__":
    main()
