"""A pytest plugin that collects once, then runs the tests that reach each mutant in a fork."""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import coverage
import pytest

from tests.mutation.mutants import Mutant, find_mutants
from tests.mutation.swap import put_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ROOT = Path(__file__).resolve().parents[2]
_MEMORY = 6 * 2**30
_LAST_WORD = 900.0
"""How long the first run of all tests may take, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is wanted of a run."""

    modules: tuple[str, ...]
    sample: int | None = None
    """How many mutants of each module are tried; `None`: all."""

    seed: int = 1
    seconds: float = 10.0
    """How long the tests of one mutant may take in all: the quickest of them are run."""

    within: str = ""
    """Only functions whose qualified name contains this."""

    only: frozenset[tuple[str, int]] = frozenset()
    """Only changes in these lines, each with its file's name in the repository; none: all."""

    equivalent: frozenset[tuple[str, str, str]] = frozenset()
    """Changes that mean the same: a file's name in the repository, a function and the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one mutant."""

    mutant: Mutant
    outcome: str
    """`killed`, `timeout`, `survived`, `equivalent`, `unreached` or `error` (it does not compile)."""

    detail: str = ""


@dataclass(slots=True, eq=False)
class Judge:
    """The plugin: takes the place of pytest's own loop over the tests."""

    order: Order
    said: Callable[[Verdict], None]
    lost: list[str] = field(default_factory=list)
    """Tests that fail without any mutant: they are left out."""

    _reached: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    _reached_files: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _took: dict[str, float] = field(default_factory=dict)
    _killers: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Let hypothesis neither shrink nor remember: a failure is all that is asked."""
        import hypothesis  # not before pytest, which rewrites what it finds not yet imported

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        now = hypothesis.settings()
        hypothesis.settings.register_profile("mutation", now, phases=phases, database=None)
        hypothesis.settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests once to see what they reach, then those that reach each mutant."""
        items = {item.nodeid: item for item in session.items}
        files = [_file_of(module) for module in self.order.modules]
        # Read now, while it is what was imported: the first run of the tests takes its time.
        trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
        self._learn(session, items, files)
        for file, tree in trees.items():
            for mutant in self._chosen(find_mutants(file, tree)):
                self.said(self._judged(session, items, mutant, tree))
        return True

    def _chosen(self, mutants: list[Mutant]) -> list[Mutant]:
        wanted = [mutant for mutant in mutants if self._is_wanted(mutant)]
        if self.order.sample is None or self.order.sample >= len(wanted):
            return wanted
        reached = [mutant for mutant in wanted if self._tests_of(mutant)]
        chosen = random.Random(self.order.seed).sample(  # noqa: S311 - the same ones each time
            reached, min(self.order.sample, len(reached))
        )
        return sorted(chosen, key=lambda mutant: mutant.line)

    def _is_wanted(self, mutant: Mutant) -> bool:
        only = self.order.only
        return self.order.within in mutant.qualname and (
            not only or (named(mutant.file), mutant.line) in only
        )

    def _learn(
        self, session: pytest.Session, items: dict[str, pytest.Item], files: list[Path]
    ) -> None:
        names = [str(file) for file in files]
        answer = _in_fork(lambda tell: _run_watched(session, items, names, tell), _LAST_WORD)
        if not isinstance(answer, dict):
            raise pytest.UsageError(f"The tests did not run to their end: {answer}")
        self.lost += answer["failed"]
        lost = set(self.lost)
        self._took = answer["took"]
        for file, number, tests in answer["reached"]:
            self._reached[file, number] = set(tests) - lost
            self._reached_files[file] |= self._reached[file, number]

    def _tests_of(self, mutant: Mutant) -> set[str]:
        file = str(mutant.file)
        return set().union(*(self._reached.get((file, line), set()) for line in mutant.lines))

    def _in_turn(self, mutant: Mutant, reached: set[str]) -> list[str]:
        """Put tests in order: what killed here, what goes where few go, what is quick.

        At the end stand those that reach the module only: what is built once and kept is built in
        one test, and used in many.
        """
        killers, rarity = self._killers[mutant.qualname], Counter[str]()
        for line in _around(mutant):
            tests = self._reached.get((str(mutant.file), line), set())
            for test in tests:
                rarity[test] = max(rarity[test], 1_000_000 // len(tests))
        there = self._reached_files[str(mutant.file)]
        return sorted(
            there,
            key=lambda test: (
                test not in reached,
                -killers[test],
                -rarity[test],
                self._took[test],
            ),
        )

    def _judged(
        self,
        session: pytest.Session,
        items: dict[str, pytest.Item],
        mutant: Mutant,
        tree: ast.Module,
    ) -> Verdict:
        if (named(mutant.file), mutant.qualname, mutant.change) in self.order.equivalent:
            return Verdict(mutant=mutant, outcome="equivalent")
        reached = self._tests_of(mutant)
        tests: list[pytest.Item] = []
        spent = 0.0
        for test in self._in_turn(mutant, reached) if reached else ():
            took = self._took[test]
            if spent + took <= self.order.seconds:
                spent += took
                tests.append(items[test])
            elif not tests:
                tests.append(items[test])  # the one that is most about it, however long it takes
        if not tests:
            return Verdict(mutant=mutant, outcome="unreached")
        answer = _in_fork(
            lambda tell: _run_changed(session, tests, mutant, tree, tell),
            4 * sum(self._took[item.nodeid] for item in tests) + 8,
        )
        match answer:
            case None:
                return Verdict(mutant=mutant, outcome="timeout")
            case {"killed": test}:
                self._killers[mutant.qualname][test] += 1
                return Verdict(mutant=mutant, outcome="killed", detail=test)
            case {"error": why}:
                return Verdict(mutant=mutant, outcome="error", detail=why)
            case {"survived": _}:
                return Verdict(mutant=mutant, outcome="survived", detail=f"{len(tests)} tests")
            case _:
                return Verdict(mutant=mutant, outcome="killed", detail="the process ended")


def _around(mutant: Mutant) -> Iterable[int]:
    """Give the lines of the function that a change is in."""
    if not mutant.functions:
        return mutant.lines
    function = mutant.functions[0]
    return range(function.lineno, (function.end_lineno or function.lineno) + 1)


def named(file: Path) -> str:
    """Say where a file stands in the repository, or its whole path."""
    return str(file.relative_to(_ROOT) if file.is_relative_to(_ROOT) else file)


def _file_of(module: str) -> Path:
    """Import a module, which its users may do at a call only, and say where it stands."""
    return Path(str(importlib.import_module(module).__file__))


class _Reports:
    """Hears how each test went."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.took: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test's failure, and what it took."""
        self.took[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)


def _run_watched(
    session: pytest.Session,
    items: dict[str, pytest.Item],
    files: list[str],
    tell: Callable[[Any], NoReturn],
) -> None:
    reports = _quietly(session)
    watch = coverage.Coverage(data_file=None, config_file=False, include=files)
    quiet = ["module-not-imported", "no-data-collected", "module-not-measured"]
    watch.set_option("run:disable_warnings", quiet)
    watch.start()
    tests = list(items.values())
    for item, following in zip(tests, [*tests[1:], None], strict=True):
        watch.switch_context(item.nodeid)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    watch.stop()
    data = watch.get_data()
    reached = [
        (file, number, [context for context in contexts if context])
        for file in data.measured_files()
        for number, contexts in data.contexts_by_lineno(file).items()
    ]
    tell({"failed": reports.failed, "took": reports.took, "reached": reached})


def _run_changed(
    session: pytest.Session,
    tests: list[pytest.Item],
    mutant: Mutant,
    tree: ast.Module,
    tell: Callable[[Any], NoReturn],
) -> None:
    try:
        put_in(mutant, tree)
    except (LookupError, SyntaxError, TypeError, ValueError) as error:
        tell({"error": repr(error)})
    reports = _quietly(session)
    for item, following in zip(tests, [*tests[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if reports.failed:
            tell({"killed": item.nodeid})
    tell({"survived": True})


def _quietly(session: pytest.Session) -> _Reports:
    reports = _Reports()
    manager = session.config.pluginmanager
    manager.register(reports)
    terminal: Any = manager.get_plugin("terminalreporter")
    terminal._tw._file = io.StringIO()
    return reports


def _in_fork(work: Callable[[Callable[[Any], NoReturn]], None], seconds: float) -> Any:
    """Run `work` in a fork with a process group of its own, ended with all it started.

    Returns:
        What it told; `None` when it told nothing in time, the text `ended` when it died.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _be_a_child(work, writing)
    os.close(writing)
    try:
        return _read(reading, time.monotonic() + seconds)
    finally:
        os.close(reading)
        _end(child)


def _be_a_child(work: Callable[[Callable[[Any], NoReturn]], None], writing: int) -> NoReturn:
    def tell(answer: Any) -> NoReturn:
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(answer) + "\n")
        os._exit(0)

    import resource  # where there are forks, there is this

    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        work(tell)
    except BaseException as error:  # noqa: BLE001 - a fork must end here
        sys.stderr.write(f"{error!r}\n")
    os._exit(1)


def _read(reading: int, until: float) -> Any:
    told = b""
    while not told.endswith(b"\n"):
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return None
        piece = os.read(reading, 1 << 20)
        if not piece:
            return "ended"
        told += piece
    return json.loads(told)


def _end(child: int) -> None:
    for target in (os.killpg, os.kill):
        try:
            target(child, signal.SIGKILL)
        except OSError:
            continue
    os.waitpid(child, 0)
