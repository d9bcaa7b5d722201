"""`ToolState`: the objects that tools hold between the calls of one run."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agents_tools.concurrency.future import PendingFuture
from agents_tools.concurrency.supervisor import GRACE
from agents_tools.errors import ToolError
from agents_tools.text.secrets import library_logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

__all__ = ["ToolState"]

T = TypeVar("T")


class ToolState:
    """The shell, the undo history and other objects that tools hold between calls.

    Each run has its own, which ends with the run. To keep the objects for several runs, for example
    for all messages of one chat, create a `ToolState`, pass it to each of these runs as
    `RunConfig(tool_state=...)`, and close it at the end. It is a context manager, sync and async.

    All methods are thread-safe. Closing it twice has no effect.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[object, _Slot] = {}
        self._is_closed = False

    def __enter__(self) -> Self:
        """Return the state."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the objects."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return the state."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the objects."""
        await self.aclose()

    def find(self, key: object) -> Any | None:
        """Return the object for a key; `None` if it was not created yet, or is closed."""
        slot = self._slots.get(key)
        return None if slot is None else slot.value

    def get(self, key: object, create: Callable[[], T], close: Callable[[T], object]) -> T:
        """Return the object for a key; create it at the first use.

        Args:
            key: The key, which is compared by identity unless its class says otherwise.
            create: Creates the object. Calls from other threads wait until it has returned; after
                an exception, the next call tries it again.
            close: Closes the object when the state is closed.

        Raises:
            ToolError: The state is closed.
        """
        with self._lock:
            slot = self._slots.get(key)
            if slot is None and not self._is_closed:
                slot = self._slots[key] = _Slot(cast("Callable[[Any], object]", close))
        if slot is not None:
            # A lock of its own: an object that is being created can need another one.
            with slot.lock:
                if slot.value is None and not self._is_closed:
                    slot.value = create()
                if slot.value is not None:
                    return cast("T", slot.value)
        raise ToolError(
            "The tool cannot be called any more: the run that it belongs to has ended, or the tool "
            "was closed."
        )

    def close(self) -> None:
        """Close the objects, the last created one first. Blocks until they are closed.

        An exception of one object is logged, and the others are closed all the same.
        """
        with self._lock:
            self._is_closed = True
            slots = [*self._slots.values()]
            self._slots.clear()
        for slot in reversed(slots):
            with slot.lock:  # waits for an object that is being created
                item, slot.value = slot.value, None
            try:
                if item is not None:
                    slot.close(item)
            except Exception:  # noqa: BLE001 - the others must be closed all the same
                library_logger().exception(
                    "The state of a tool (%s) cannot be closed.", type(item).__name__
                )

    async def aclose(self) -> None:
        """Close the objects in a thread, and wait for it for `GRACE` seconds at most.

        If the caller is cancelled, or an object takes longer, the thread finishes alone. It is not
        a thread of the pool, which refuses functions when too many are abandoned.
        """
        with self._lock:
            self._is_closed = True
            if not self._slots:
                return
        closed: PendingFuture[None] = PendingFuture()

        def run() -> None:
            try:
                self.close()
            finally:
                closed.resolve(None)

        threading.Thread(target=run, name="agents-tools-close", daemon=True).start()
        import asyncio

        try:
            async with asyncio.timeout(GRACE):
                await closed
        except TimeoutError:
            library_logger().warning(
                "The state of the tools of a run is not closed after %g s.", GRACE
            )


class _Slot:
    """The place of one object, before and after its creation."""

    __slots__ = ("close", "lock", "value")

    def __init__(self, close: Callable[[Any], object]) -> None:
        self.close = close
        self.lock = threading.RLock()
        self.value: Any = None
