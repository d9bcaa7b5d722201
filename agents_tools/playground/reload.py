"""Load a target, and reload it when its files change."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import linecache
import logging
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from agents_tools.playground.catalog import TargetCatalog, shape_of
from agents_tools.playground.provider_views import SavedDefinition
from agents_tools.playground.target_state import (
    LoadedTarget,
    TargetError,
    TargetProblem,
    is_own,
    place_of,
)

if TYPE_CHECKING:
    import types
    from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator

    from agents_tools.playground.target_state import Load

__all__ = ["ReloadingTarget"]

logger = logging.getLogger("agents_tools.playground")

_INTERVAL = 0.4
"""The seconds between two checks of the files."""

Signature: TypeAlias = "tuple[int, int, int] | None"


class ReloadingTarget:
    """The target in its current version, or in its last usable one.

    Before a reload, the user's own modules that the target has imported are removed from
    `sys.modules`, so that changes in any of them apply. Running calls continue with the old
    modules. Bytecode is not written, because it would hide a second change in the same second.

    Args:
        load: Imports the target.
        target: The name of the target.
        interval: The seconds between two checks of the files.

    Attributes:
        target: The name of the target.
        catalog: The tools and agents.
        generation: Incremented by each load, also by a failed one.
        problems: The current problems of the target.
        baselines: The first version of each tool.
    """

    def __init__(self, load: Load, *, target: str = "", interval: float = _INTERVAL) -> None:
        self.target = target
        self.catalog = TargetCatalog(loaded=LoadedTarget(target=""))
        self.generation = 0
        self.problems: tuple[TargetProblem, ...] = ()
        self.baselines: dict[str, SavedDefinition] = {}
        self._load_target = load
        self._interval = interval
        self._foreign = frozenset(sys.modules)
        self._registered: frozenset[str] = _registered()
        self._extra: tuple[str, ...] = ()
        self._seen: dict[str, Signature] = {}
        self._retired: list[Callable[[], Any]] = []
        self._news = asyncio.Event()
        self._over = False

    def load(self) -> None:
        """Load the target, and set `problems`."""
        forgotten = self._forget()
        try:
            with _no_bytecode():
                catalog = TargetCatalog.of(self._load_target())
        except TargetError as error:
            self.problems = error.problems
            self._extra = (*error.files, *self._restore(forgotten))
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # from the user's code
            if isinstance(error, KeyboardInterrupt) and _is_main_thread():
                raise
            file, place = place_of(error)
            self.problems = (TargetProblem.at(place, f"{type(error).__name__}: {error}"),)
            self._extra = (file, *self._restore(forgotten))
        else:
            self._take(catalog)
        self.generation += 1
        self._seen = self._signatures()

    async def watch(self, on_reload: Callable[[], Awaitable[None]] | None = None) -> None:
        """Reload the target whenever one of its files has changed.

        Args:
            on_reload: Called after each reload.
        """
        while True:
            await asyncio.sleep(self._interval)
            now = self._signatures()
            if now == self._seen:
                continue
            while (later := await self._signatures_soon()) != now:
                now = later  # it is still being written
            await self.reload()
            if on_reload is not None:
                await on_reload()

    async def reload(self) -> None:
        """Reload the target in a thread, and wake the waiting streams."""
        before = self._signatures()
        await asyncio.to_thread(self.load)
        self._seen = {name: before.get(name, sign) for name, sign in self._seen.items()}
        for problem in self.problems:
            logger.warning("%s", problem)
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def changed_since(self, generation: int) -> bool:
        """Wait for another generation; return `False` if the playground closes."""
        while self.generation == generation and not self._over:
            await self._news.wait()
        return not self._over

    def end_streams(self) -> None:
        """End all waits for changes."""
        self._over = True
        self._news.set()

    def close_retired(self) -> None:
        """Close the resources of earlier generations, which must not be in use."""
        while self._retired:
            _close(self._retired.pop())

    def close(self) -> None:
        """Close the resources of all generations."""
        self.close_retired()
        close, self.catalog = (
            self.catalog.loaded.close,
            TargetCatalog(loaded=LoadedTarget(target="")),
        )
        if close is not None:
            _close(close)

    def _take(self, catalog: TargetCatalog) -> None:
        old = self.catalog.loaded.close
        if old is not None and old != catalog.loaded.close:
            self._retired.append(old)
        self.catalog, self.problems = catalog, catalog.problems
        self._extra = catalog.loaded.files
        now = time.time()
        for name, tool in catalog.tools.items():
            if name not in self.baselines:
                self.baselines[name] = SavedDefinition(since=now, shape=shape_of(tool))

    # --- modules

    def _own_modules(self) -> dict[str, types.ModuleType]:
        """Return the user's own modules that the target has imported."""
        return {
            name: module
            for name, module in list(sys.modules.items())
            if name not in self._foreign and _source_of(module)
        }

    def _forget(self) -> dict[str, types.ModuleType]:
        own = self._own_modules()
        for name in own:
            del sys.modules[name]
        _unregister(_registered() - self._registered)
        importlib.invalidate_caches()
        linecache.checkcache()
        return own

    def _restore(self, modules: dict[str, types.ModuleType]) -> list[str]:
        """Restore the last usable modules, and return the files of the failed ones."""
        failed = self._own_modules()
        for name in failed:
            del sys.modules[name]
        sys.modules.update(modules)
        return [_source_of(module) for module in failed.values()]

    # --- files

    def _files(self) -> Iterator[str]:
        yield from map(_source_of, self._own_modules().values())
        yield from self._extra

    def _signatures(self) -> dict[str, Signature]:
        files = dict.fromkeys(file for file in self._files() if file)
        found = {file: _signature(file) for file in files}
        if self.problems:  # a missing module can appear
            for folder in dict.fromkeys(Path(file).parent for file in files):
                found |= {str(file): _signature(str(file)) for file in _sources_in(folder)}
        return found

    async def _signatures_soon(self) -> dict[str, Signature]:
        await asyncio.sleep(self._interval / 2)
        return self._signatures()


def _close(close: Callable[[], Any]) -> None:
    """Close the resources of a target, and log an error, because the playground continues."""
    try:
        close()
    except Exception:
        logger.exception("The resources of the target cannot be closed.")


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _source_of(module: types.ModuleType) -> str:
    """Return the source file of a module of the user; empty for other modules."""
    file: object = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return ""
    path = str(Path(file).absolute())
    return path if is_own(path) else ""


def _signature(file: str) -> Signature:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _sources_in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.py"))
    except OSError:
        return []


@contextlib.contextmanager
def _no_bytecode() -> Generator[None]:
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


# --- the registry, which refuses a second tool with the same name


def _registered() -> frozenset[str]:
    module = sys.modules.get("agents_tools.classes.registry")
    if module is None:
        return frozenset()
    return frozenset(module.default_registry.get_tool_names())


def _unregister(names: Iterable[str]) -> None:
    module = sys.modules.get("agents_tools.classes.registry")
    if module is not None:
        for name in names:
            module.default_registry.unregister(name)
