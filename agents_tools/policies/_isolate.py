"""Runs the function of a tool in a process of its own, which can be killed."""

from __future__ import annotations

import threading
import weakref
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agents_tools._records import Policy
from agents_tools.backend import BackendCapabilities, BackendHealth
from agents_tools.policies._change import Change

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from agents_tools.backend import CallEnvelope, CallEvent, ProcessBackend
    from agents_tools.tool import FunctionTool

__all__ = ["Isolation", "isolate"]


def isolate(
    *,
    workers: int = 1,
    memory: int | None = None,
    max_calls: int = 1_000,
    environment: Mapping[str, str] | None = None,
    idempotent: bool | None = None,
) -> Isolation:
    """Run the function of a tool in a process that can be killed.

    What no thread can be stopped in (a loop in C that holds the interpreter), and what would take
    the whole program with it (a crash, `os._exit`, memory without end), ends one process there. A
    call that is cancelled, or over its deadline, gets two seconds for its cleanup before its
    process is killed; the caller does not wait for that.

    ```python
    @timeout(10)
    @isolate(memory=1 << 30)
    @function_tool
    def parse(path: str) -> dict[str, int]: ...
    ```

    All other policies stay in this process, wherever they are written. The function has to be at
    the top level of a module, which the worker imports; a program does its work below
    `if __name__ == "__main__":`. Arguments and results travel as JSON and `ctx.context` does not:
    its use is an error that says so. The workers are new interpreters, without this one's open
    files and with few of its variables; they start with the first call and end with this program.

    Args:
        workers: How many calls of the tool run at once; others wait.
        memory: Bytes of address space that a worker may use.
        max_calls: After how many calls a worker is replaced.
        environment: Variables that workers get besides `HOME`, `LANG`, `PATH` and the like.
        idempotent: Whether a call may run again when its worker dies; otherwise it is `lost`. By
            default what the tool's annotations say.

    Raises:
        UserError: When applied: the function of the tool is one that no worker can import.
    """
    return Isolation(
        workers=workers,
        memory=memory,
        max_calls=max_calls,
        environment=environment,
        idempotent=idempotent,
    )


class Isolation(Change):
    """The policy that `isolate` gives; `aclose` ends its workers until the next call."""

    def __init__(self, *, idempotent: bool | None, **options: Any) -> None:
        self._options = options
        self._idempotent = idempotent
        self._backends: weakref.WeakSet[_Workers] = weakref.WeakSet()
        super().__init__("isolate", self._apply)

    def _apply(self, tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
        from agents_tools.backend._remote import Moved, is_idempotent

        backend = _Workers(tool, self._options)
        self._backends.add(backend)
        idempotent = is_idempotent(tool) if self._idempotent is None else self._idempotent
        moved = Moved(tool, backend, tool.name, idempotent, pin=False)
        label = Policy(name="isolate", wrap=lambda inner: inner)
        return tool.with_(declaration=moved, policy=label)

    async def aclose(self) -> None:
        """End the workers; the next call starts others."""
        for backend in list(self._backends):
            await backend.aclose()


class _Workers:
    """The backend of one isolated tool: its processes start with the first call."""

    name = "isolate"

    def __init__(self, tool: FunctionTool[..., Any], options: Mapping[str, Any]) -> None:
        from agents_tools.backend._target import address_of

        self._tool = tool
        self._address = address_of(tool, "isolate()")
        self._options = options
        self._lock = threading.Lock()
        self._backend: ProcessBackend | None = None
        self._new()  # what is wrong with the options is said now

    @property
    def capabilities(self) -> BackendCapabilities:
        """What processes can do."""
        return BackendCapabilities(restarts=True)

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Run a call."""
        async with aclosing(self._running().submit(envelope)) as events:
            async for said in events:
                yield said

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call."""
        return self._backend is not None and await self._backend.cancel(call_id, reason)

    async def health(self) -> BackendHealth:
        """Say how it is."""
        return BackendHealth(ok=True) if self._backend is None else await self._backend.health()

    async def aclose(self) -> None:
        """End the workers, if there are any."""
        with self._lock:
            backend, self._backend = self._backend, None
        if backend is not None:
            await backend.aclose()

    def _running(self) -> ProcessBackend:
        from agents_tools.backend._target import check_importable

        with self._lock:
            if self._backend is None:
                check_importable(self._tool, self._address)
                self._backend = self._new()
            return self._backend

    def _new(self) -> ProcessBackend:
        from agents_tools.backend import ProcessBackend

        return ProcessBackend(self._tool, name=self.name, **self._options)
