"""One worker process, as its owner sees it."""

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

from agents_tools.concurrency import process_reaper as _guardian
from agents_tools.concurrency.supervisor import GRACE
from agents_tools.execution.framing import FrameReader, encode
from agents_tools.execution.process_tree import MARKER, alive, below, kill_tree, started

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StartError", "WorkerProcess", "WorkerRecipe"]

_CHUNK: Final = 1 << 18
_INHERITED: Final = (
    ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
)
"""The variables that a worker gets from its owner: those of a user, and those of a place."""
_ANSWER: Final = 0.5
"""Seconds in which a worker that can still be talked to says that it has heard of a cancel."""
_START: Final = 60.0


class StartError(Exception):
    """A worker did not come up; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecipe:
    """What a worker is started with.

    Attributes:
        addresses: Where its tools are.
        main: What the owner's program is, where tools are in it.
        memory: Bytes of address space that it may use.
        environment: Variables besides those that every worker gets.
    """

    addresses: list[dict[str, Any]]
    main: dict[str, str] | None = None
    memory: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def order(self) -> dict[str, Any]:
        """Return the first message to the worker."""
        return {
            "path": [str(Path(one).resolve() if one in {"", "."} else one) for one in sys.path],
            "argv": sys.argv[0] if sys.argv else "",
            "addresses": self.addresses,
            "main": self.main,
            "memory": self.memory,
        }


class WorkerProcess:
    """A worker process and the socket to it; one call at a time uses it.

    Nothing of it belongs to an event loop: it waits on whichever loop its call runs.

    Args:
        recipe: What it is started with.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, recipe: WorkerRecipe) -> None:
        self._marker = below(uuid.uuid4().hex)
        self._frames = FrameReader()
        self._ready = False
        self._waiter: asyncio.Future[None] | None = None
        self.calls = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        """Where the call runs that uses it."""
        self.unread = False
        """Whether it died without having read what it was sent last: the kernel tells so."""
        ours, theirs = socket.socketpair()
        try:
            self._process = _start(recipe, theirs.fileno(), self._marker)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._since = started(self._process.pid)
        _guardian.watch(self._process.pid)
        self._socket = ours
        with contextlib.suppress(OSError):  # it may be gone already: whoever reads finds out
            ours.sendall(encode(recipe.order()))
        ours.setblocking(False)
        _children.add(self)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the process runs, as far as is known."""
        return alive(self._process)

    async def ready(self) -> None:
        """Wait until it takes calls.

        Raises:
            StartError: It never will.
        """
        if self._ready:
            return
        try:
            message = await self.receive(until=asyncio.get_running_loop().time() + _START)
        except TimeoutError:
            raise StartError(f"it did not import its tools within {_START:g} s") from None
        if message is None:
            raise StartError(f"it died while it imported its tools ({await self.obituary()})")
        if "ready" not in message:
            raise StartError(str(message.get("failed")))
        self._ready = True

    def begin(self, message: dict[str, Any]) -> bytes:
        """Send what can be sent of a message at once, and give the rest.

        Whoever waits for the answer finds out if the process is dead.

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

    async def go_on(self, rest: bytes) -> None:
        """Send the rest of a message."""
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, rest)
        except OSError:
            self.unread = True

    def send_now(self, message: dict[str, Any]) -> None:
        """Send a short message without waiting; any thread may call."""
        with contextlib.suppress(OSError):
            self._socket.send(encode(message))

    async def receive(self, *, until: float | None = None) -> dict[str, Any] | None:
        """Return the next message; `None` if there will be none any more.

        Nothing is lost when the one who waits is cancelled: what has come is taken afterwards.

        Args:
            until: How long to wait, on the clock of the event loop.

        Raises:
            TimeoutError: It did not come by then, or `interrupt` was called.
        """
        while True:
            try:
                message = self._frames.next()
                if message is not None:
                    return message
                data = self._socket.recv(_CHUNK)
            except BlockingIOError:
                await self._readable(until)
                continue
            except ConnectionResetError:
                self.unread = True
                return None
            except (OSError, ValueError):  # the latter for what is no message
                return None
            if not data:
                return None
            self._frames.feed(data)

    def interrupt(self) -> None:
        """End the wait for a message, on the event loop where somebody waits."""
        if self._waiter is not None:
            _expire(self._waiter)

    async def _readable(self, until: float | None) -> None:
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

    async def obituary(self) -> str:
        """Return what the process died of; waits a moment for it to have done so."""
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

    # --- what blocks, for threads

    def comes_to_rest(self) -> bool:
        """Stop the call that runs and wait for its cleanup; `False` if it has to be killed.

        One that does not even say that it has heard, since something holds its interpreter, gets
        no grace.
        """
        self.send_now({"rest": True})
        latest = time.monotonic() + _ANSWER
        heard = False
        while (message := self._read_until(latest)) is not None:
            if "idle" in message:
                return bool(message["idle"])
            if not heard:
                heard = True
                latest = time.monotonic() + 2 * GRACE
        return False

    def end(self) -> None:
        """End it politely, or else by force."""
        self.send_now({"end": True})
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=GRACE)
        self.kill()

    def kill(self) -> None:
        """End it with all that came from it."""
        kill_tree(self._process, self._marker, self._since)
        self._socket.close()
        if self._process.returncode is not None:
            _guardian.forget(self._process.pid)
        _children.discard(self)

    def strike(self) -> None:
        """Send SIGKILL to it and its group, and wait for nothing."""
        if self._process.returncode is None:  # otherwise the number may be somebody else's
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def leave_to_parent(self) -> None:
        """Let go of it in a forked process, of which it is no child."""
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
    path = os.pathsep.join(recipe.order()["path"])
    environment |= {**recipe.environment, MARKER: marker, "PYTHONPATH": path}
    return subprocess.Popen(  # noqa: S603 - this very interpreter, and a module of this package
        [sys.executable, "-P", "-m", "agents_tools.execution.worker", str(number)],
        stdin=subprocess.DEVNULL,
        stdout=_standard_error(),
        env=environment,
        pass_fds=(number,),
        start_new_session=True,
    )


def _standard_error() -> int:
    """Return where a worker's output goes: to the standard error of its owner, if there is one."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2


_children: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """Leave all workers to the parent in a forked process."""
    for child in list(_children):
        child.leave_to_parent()
    _children.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
