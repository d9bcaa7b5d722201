"""`python -m tests.benchmarks.profiles`: where the time of each hot path goes, function by function.

A profiler makes every function dearer, small ones most; the shares say where to look, not what
would be saved. Names of the library stand with their module, those of others with their package.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
from collections.abc import Awaitable, Callable
from pathlib import Path

import agents_tools
from tests.benchmarks import library, workloads
from tests.benchmarks.tables import markdown

__all__ = ["profiled"]

PACKAGE = Path(agents_tools.__file__).parent
SHOWN = 8
CALLS, EVENTS, TURNS, TOOLS = 20_000, 50_000, 2_000, 300


async def _calls(kind: str) -> None:
    (tool,) = library.decorate([workloads.function(kind)])
    call, arguments = library.caller(tool), workloads.ARGUMENTS[kind]
    for _ in range(CALLS):
        await call(arguments)


async def _build() -> None:
    library.definitions(library.decorate(workloads.catalogue(TOOLS)))


async def _stream() -> None:
    await library.stream(EVENTS)


async def _turns() -> None:
    tools = library.decorate([workloads.function("simple")])
    await library.turns(tools, workloads.ARGUMENTS["simple"], TURNS)


PATHS: dict[str, tuple[str, Callable[[], Awaitable[None]]]] = {
    "call_simple": ("call, 2 parameters", lambda: _calls("simple")),
    "call_complex": ("call, models and unions", lambda: _calls("complex")),
    "result": ("answer with 100 models", lambda: _calls("items")),
    "build": ("decorate and export", _build),
    "stream": ("stream", _stream),
    "turn": ("turn of an agent with one call", _turns),
}


def profiled(work: Callable[[], Awaitable[None]]) -> list[tuple[str, float]]:
    """Return the share of each function of the time, without its calls of others; largest first."""

    async def run() -> None:
        await work()

    profile = cProfile.Profile()
    with asyncio.Runner() as runner:
        runner.run(run())  # imports, and what is built at the first use
        profile.enable()
        runner.run(run())
        profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined] # not in its stub
    total = sum(own for _, _, own, _, _ in stats.values())
    shares: dict[str, float] = {}
    for place, (_, _, own, _, _) in stats.items():
        name = _name(*place)
        shares[name] = shares.get(name, 0.0) + own / total
    return sorted(shares.items(), key=lambda one: -one[1])


def _name(file: str, _line: int, function: str) -> str:
    path = Path(file)
    if path.is_relative_to(PACKAGE):
        return f"`{path.relative_to(PACKAGE)}` {function}"
    if "site-packages" in path.parts:
        package = path.parts[path.parts.index("site-packages") + 1]
        return f"{package.removesuffix('.py')}, all of it"
    if file == "~":  # written in C: its name says what it is
        return f"`{function.strip('<>').split(' object at ')[0]}`"
    if path.is_relative_to(Path(__file__).parent) or file.startswith("<"):
        return "the tool and its caller"
    return f"{path.stem} of Python"


def main() -> None:
    """Print a table for each path."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PATHS, default=list(PATHS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {name: profiled(PATHS[name][1]) for name in options.only}
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, shares in found.items():
        rows = [(what, f"{share:.0%}") for what, share in shares[:SHOWN]]
        rest = sum(share for _, share in shares[SHOWN:])
        print(markdown((PATHS[name][0], "share"), [*rows, ("everything else", f"{rest:.0%}")]))
        print()


if __name__ == "__main__":
    main()
