"""Running the function of a tool in worker processes that can be killed."""

from __future__ import annotations

import threading
import weakref
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agents_tools.execution import BackendCapabilities, BackendHealth
from agents_tools.policies._policy import with_parentheses
from agents_tools.tool.policy import Policy
from agents_tools.tool.records import is_idempotent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from agents_tools.execution import CallEnvelope, CallEvent, ProcessBackend
    from agents_tools.tool.tool import FunctionTool

__all__ = ["Isolation", "isolate"]


@with_parentheses
def isolate(
    *,
    workers: int = 1,
    memory: int | None = None,
    max_calls: int = 1_000,
    environment: Mapping[str, str] | None = None,
    idempotent: bool | None = None,
) -> Isolation:
    """Run the function of a tool in a worker process that can be killed.

    Code that blocks a thread forever (a loop in C that holds the interpreter) or ends the program
    (a crash, `os._exit`, unlimited memory use) ends only the worker. A call that is cancelled or
    reaches its deadline has two seconds for its cleanup before its process is killed. The caller
    does not wait for the cleanup.

    ```python
    @timeout(10)
    @isolate(memory=1 << 30)
    @function_tool
    def parse(path: str) -> dict[str, int]: ...
    ```

    All other policies run in this process, in any order. The function has to be at the top level
    of a module that the worker can import, so a program has to do its work below
    `if __name__ == "__main__":`. Arguments and results are sent as JSON. `ctx.context` is not sent;
    using it in the worker raises an error. Workers are new interpreters without the open files of
    this process and with few of its environment variables. They start with the first call and end
    with this program.

    Args:
        workers: The maximum number of parallel calls; further calls wait.
        memory: The address space of a worker, in bytes; unlimited by default.
        max_calls: The number of calls after which a worker is replaced.
        environment: Environment variables of the workers, in addition to `HOME`, `LANG`, `PATH` and
            similar ones.
        idempotent: Whether a call is repeated when its worker dies; otherwise its status is `lost`.
            By default the annotations of the tool decide.

    Raises:
        UserError: The function of the tool cannot be imported by a worker. Raised when the policy
            is applied.
    """
    return Isolation(
        workers=workers,
        memory=memory,
        max_calls=max_calls,
        environment=environment,
        idempotent=idempotent,
    )


class Isolation(Policy):
    """The policy that `isolate` returns; `aclose` ends its workers until the next call."""

    def __init__(self, *, idempotent: bool | None, **options: object) -> None:
        self.name = "isolate"
        self._options = options
        self._idempotent = idempotent
        self._backends: weakref.WeakSet[_Workers] = weakref.WeakSet()

    def apply(self, tool: Any) -> Any:
        """Return the tool with its function in a worker process."""
        from agents_tools.execution.proxy import RemoteSource

        backend = _Workers(tool, self._options)
        self._backends.add(backend)
        idempotent = is_idempotent(tool) if self._idempotent is None else self._idempotent
        source = RemoteSource(tool, backend, tool.name, idempotent, pin=False)
        return tool.with_(source=source, policy=self)

    async def aclose(self) -> None:
        """End the workers; the next call starts new ones."""
        for backend in list(self._backends):
            await backend.aclose()


class _Workers:
    """The backend of one isolated tool; its processes start with the first call."""

    name = "isolate"

    def __init__(self, tool: FunctionTool[..., Any], options: Mapping[str, Any]) -> None:
        from agents_tools.execution.tool_reference import address_of

        self._tool = tool
        self._address = address_of(tool, "isolate()")
        self._options = options
        self._lock = threading.Lock()
        self._backend: ProcessBackend | None = None
        self._create_backend()  # raises now if an option is not valid

    @property
    def capabilities(self) -> BackendCapabilities:
        """The capabilities of a process backend."""
        return BackendCapabilities(restarts=True)

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Run a call and yield its events."""
        async with aclosing(self._running_backend().submit(envelope)) as events:
            async for event in events:
                yield event

    async def has_call(self, envelope: CallEnvelope, /) -> bool:
        """Return whether a call is running here, or has ended recently."""
        return self._backend is not None and await self._backend.has_call(envelope)

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call, and return whether it was running."""
        return self._backend is not None and await self._backend.cancel(call_id, reason)

    async def health(self) -> BackendHealth:
        """Return the health of the workers."""
        return BackendHealth(ok=True) if self._backend is None else await self._backend.health()

    async def aclose(self) -> None:
        """End the workers, if they were started."""
        with self._lock:
            backend, self._backend = self._backend, None
        if backend is not None:
            await backend.aclose()

    def _running_backend(self) -> ProcessBackend:
        from agents_tools.execution.tool_reference import check_importable

        with self._lock:
            if self._backend is None:
                check_importable(self._tool, self._address)
                self._backend = self._create_backend()
            return self._backend

    def _create_backend(self) -> ProcessBackend:
        from agents_tools.execution import ProcessBackend

        return ProcessBackend(self._tool, name=self.name, **self._options)
