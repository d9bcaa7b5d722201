"""Reading of session output between two calls, so that programs do not block on a full pipe."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from agents_tools.builtin.terminal.session import ShellSession

__all__ = ["leave", "watch"]


class _PipeReader:
    """A reader thread for all sessions, which ends when no session is left."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sessions: set[ShellSession] = set()
        self.wake: tuple[int, int] | None = None

    def watch(self, session: ShellSession) -> None:
        with self.lock:
            self.sessions.add(session)
            if self.wake is None:
                self.wake = os.pipe()
                threading.Thread(target=self.run, name="agents-tools-terminal", daemon=True).start()
            os.write(self.wake[1], b"\0")

    def leave(self, session: ShellSession) -> None:
        with self.lock:
            if session in self.sessions:
                self.sessions.discard(session)
                if self.wake is not None:
                    os.write(self.wake[1], b"\0")

    def run(self) -> None:
        while True:
            with self.lock:
                wake = self.wake
                if not self.sessions or wake is None:
                    self.end()
                    return
                sessions = list(self.sessions)
            self.read_available(sessions, wake[0])

    def read_available(self, sessions: list[ShellSession], wake: int) -> None:
        """Wait for output of one of the sessions, and read it."""
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        owners: dict[int, ShellSession] = {}
        for session in sessions:
            with self.try_lock(session) as is_locked:
                for fd in session.outputs() if is_locked else ():
                    owners[fd] = session
                    poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll():
            if fd == wake:
                os.read(wake, 4096)
                continue
            with self.try_lock(owners[fd]) as is_locked:
                if is_locked:
                    owners[fd].absorb(fd)

    @contextlib.contextmanager
    def try_lock(self, session: ShellSession) -> Generator[bool]:
        """Lock a session unless a call uses it; never block, since other sessions need reading."""
        acquired = session.lock.acquire(blocking=False)
        try:
            yield acquired and session in self.sessions
        finally:
            if acquired:
                session.lock.release()

    def end(self) -> None:
        if self.wake is not None:
            for fd in self.wake:
                with contextlib.suppress(OSError):
                    os.close(fd)
            self.wake = None


_reader = _PipeReader()


def watch(session: ShellSession) -> None:
    """Read the output of a session until its next call."""
    _reader.watch(session)


def leave(session: ShellSession) -> None:
    """Stop reading the output of a session, because a call reads it."""
    _reader.leave(session)


def _start_again() -> None:
    """Create a new reader in a forked process; the sessions belong to the parent."""
    global _reader  # noqa: PLW0603 - there is one for the process
    _reader = _PipeReader()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)
