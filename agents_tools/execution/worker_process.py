"""A worker process, and its owner's side of the socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
import uuid
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agents_tools.concurrency import processes
from agents_tools.concurrency.processes import MARKER, ProcessTree, is_alive, new_marker
from agents_tools.concurrency.supervisor import GRACE
from agents_tools.execution.framing import FrameReader, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StartError", "WorkerProcess", "WorkerRecipe"]

_CHUNK: Final = 1 << 18
_INHERITED: Final = (
    ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
)
"""The environment variables that a worker inherits, about the user and about the locale."""
_ACK_SECONDS: Final = 0.5
"""The time in which a worker must acknowledge that it stops its call."""
_START_SECONDS: Final = 60.0
_TERMINATE_SECONDS: Final = 0.2
"""The time between SIGTERM and SIGKILL."""


class StartError(Exception):
    """A worker could not be started; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecipe:
    """The settings with which a worker is started.

    Attributes:
        addresses: The addresses of its tools.
        main: The result of `main_program`.
        memory: The maximum address space, in bytes.
        environment: Environment variables besides those that every worker gets.
    """

    addresses: list[dict[str, Any]]
    main: dict[str, str] | None = None
    memory: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def start_message(self) -> dict[str, Any]:
        """Return the first message to the worker."""
        return {
            "path": [str(Path(path).resolve() if path in {"", "."} else path) for path in sys.path],
            "argv": sys.argv[0] if sys.argv else "",
            "addresses": self.addresses,
            "main": self.main,
            "memory": self.memory,
        }


class WorkerProcess:
    """A worker process and the socket to it, for one call at a time.

    It is not bound to an event loop: each call waits on its own loop.

    Args:
        recipe: The settings with which the process is started.

    Raises:
        OSError: The process cannot be started.
    """

    def __init__(self, recipe: WorkerRecipe) -> None:
        marker = new_marker(uuid.uuid4().hex)
        self._frames = FrameReader()
        self._ready = False
        self._waiter: asyncio.Future[None] | None = None
        self.calls = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop of the current call."""
        self.unread = False
        """Whether the process died before it read the last message, as reported by the kernel."""
        owner_end, worker_end = socket.socketpair()
        try:
            self._process = _start(recipe, worker_end.fileno(), marker)
        except BaseException:
            owner_end.close()
            raise
        finally:
            worker_end.close()
        self._tree = ProcessTree(self._process, marker)
        processes.watch(self._process.pid)
        self._socket = owner_end
        with contextlib.suppress(OSError):  # the process has died; `receive` reports that
            owner_end.sendall(encode(recipe.start_message()))
        owner_end.setblocking(False)
        _children.add(self)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return is_alive(self._process)

    async def ready(self) -> None:
        """Wait until the worker accepts calls.

        Raises:
            StartError: The worker could not import its tools.
        """
        if self._ready:
            return
        try:
            message = await self.receive(until=asyncio.get_running_loop().time() + _START_SECONDS)
        except TimeoutError:
            raise StartError(f"it did not import its tools within {_START_SECONDS:g} s") from None
        if message is None:
            raise StartError(f"it died while it imported its tools ({await self.exit_reason()})")
        if "ready" not in message:
            raise StartError(str(message.get("failed")))
        self._ready = True

    def send_first_part(self, message: dict[str, Any]) -> bytes:
        """Send as much of a message as possible without waiting, and return the rest.

        If the process is dead, `receive` reports that.

        Raises:
            FrameTooLargeError: The message is too long.
        """
        data = encode(message)
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            return data
        except OSError:
            self.unread = True
            return b""
        return data[sent:]

    async def send_rest(self, rest: bytes) -> None:
        """Send the rest of a message."""
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, rest)
        except OSError:
            self.unread = True

    def send_now(self, message: dict[str, Any]) -> None:
        """Send a short message without waiting. Can be called from any thread."""
        with contextlib.suppress(OSError):
            self._socket.send(encode(message))

    async def receive(self, *, until: float | None = None) -> dict[str, Any] | None:
        """Return the next message; `None` if the connection has ended.

        If the caller is cancelled, no message is lost: the next call returns it.

        Args:
            until: The time at which to stop waiting, on the clock of the event loop.

        Raises:
            TimeoutError: No message arrived in time, or `interrupt` was called.
        """
        while True:
            try:
                message = self._frames.next()
                if message is not None:
                    return message
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                await self._wait_readable(until)
                continue
            except ConnectionResetError:
                self.unread = True
                return None
            except (OSError, ValueError):  # ValueError: the message is invalid
                return None
            if not data:
                return None
            self._frames.feed(data)

    def interrupt(self) -> None:
        """End the wait for a message. Call it on the event loop that waits."""
        if self._waiter is not None:
            _expire(self._waiter)

    async def _wait_readable(self, until: float | None) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = None if until is None else loop.call_at(until, _expire, waiter)
        number = self._socket.fileno()
        loop.add_reader(number, _wake, waiter)
        try:
            await waiter
        finally:
            loop.remove_reader(number)
            self._waiter = None
            if timer is not None:
                timer.cancel()

    async def exit_reason(self) -> str:
        """Return why the process ended, after waiting at most 0.1 seconds for its end."""
        for _ in range(100):
            if not self.alive:
                break
            await asyncio.sleep(0.001)
        self._process.poll()
        code = self._process.returncode
        if code is None:
            return "it closed its connection"
        if code >= 0:
            return f"exit code {code}"
        try:
            return f"signal {-code}, {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"

    # --- blocking methods, for threads

    def stop_call(self) -> bool:
        """Stop the running call and wait for its cleanup; `False` if the worker must be killed.

        A worker that does not acknowledge the message, because a tool blocks its interpreter, has
        no time for cleanup.
        """
        self.send_now({"stop": True})
        latest = time.monotonic() + _ACK_SECONDS
        acknowledged = False
        while (message := self._read_until(latest)) is not None:
            if "idle" in message:
                return bool(message["idle"])
            if not acknowledged:
                acknowledged = True
                latest = time.monotonic() + 2 * GRACE
        return False

    def end(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        self.send_now({"end": True})
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=GRACE)
        self.kill()

    def kill(self) -> None:
        """Kill the process and its descendants, and wait until they have ended."""
        self._tree.end(_TERMINATE_SECONDS)
        self._socket.close()
        if self._process.returncode is not None:
            processes.forget(self._process.pid)
        _children.discard(self)

    def send_kill(self) -> None:
        """Send SIGKILL to the process and its group without waiting for their end."""
        if self._process.returncode is None:  # otherwise another process can have the id
            processes.signal_session(self._process.pid, signal.SIGKILL)

    def release_after_fork(self) -> None:
        """Forget the process in a forked process, which is not its parent."""
        self._socket.close()
        self._process.returncode = 0

    def _read_until(self, latest: float) -> dict[str, Any] | None:
        while True:
            try:
                message = self._frames.next()
                if message is not None:
                    return message
                left = latest - time.monotonic()
                poll = select.poll()
                poll.register(self._socket, select.POLLIN)
                if left <= 0 or not poll.poll(left * 1000):
                    return None
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                continue
            except (OSError, ValueError):
                return None
            if not data:
                return None
            self._frames.feed(data)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


def _start(recipe: WorkerRecipe, number: int, marker: str) -> subprocess.Popen[bytes]:
    environment = {
        name: os.environ[name] for names in _INHERITED for name in names if name in os.environ
    }
    path = os.pathsep.join(recipe.start_message()["path"])
    environment |= {**recipe.environment, MARKER: marker, "PYTHONPATH": path}
    return subprocess.Popen(  # noqa: S603 - this interpreter and a module of this package
        [sys.executable, "-P", "-m", "agents_tools.execution.worker", str(number)],
        stdin=subprocess.DEVNULL,
        stdout=_standard_error(),
        env=environment,
        pass_fds=(number,),
        start_new_session=True,
    )


def _standard_error() -> int:
    """Return the descriptor for a worker's output: the standard error of its owner, if open."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2


_children: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """Forget all workers in a forked process; they belong to its parent."""
    for child in list(_children):
        child.release_after_fork()
    _children.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
