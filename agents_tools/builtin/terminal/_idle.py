"""Reads what goes on in sessions between two calls, so that no program waits for a reader."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from agents_tools.builtin.terminal._session import Session

__all__ = ["leave", "watch"]


class _Reader:
    """One thread for all sessions, while there is one in which something runs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sessions: set[Session] = set()
        self.wake: tuple[int, int] | None = None

    def watch(self, session: Session) -> None:
        with self.lock:
            self.sessions.add(session)
            if self.wake is None:
                self.wake = os.pipe()
                threading.Thread(target=self.run, name="agents-tools-terminal", daemon=True).start()
            os.write(self.wake[1], b"\0")

    def leave(self, session: Session) -> None:
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
                found = list(self.sessions)
            self.look(found, wake[0])

    def look(self, found: list[Session], wake: int) -> None:
        """Wait until something is written in one of the sessions, and read it."""
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        owners: dict[int, Session] = {}
        for session in found:
            with self.held(session) as ours:
                for fd in session.outputs() if ours else ():
                    owners[fd] = session
                    poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll():
            if fd == wake:
                os.read(wake, 4096)
                continue
            with self.held(owners[fd]) as ours:
                if ours:
                    owners[fd].absorb(fd)

    @contextlib.contextmanager
    def held(self, session: Session) -> Generator[bool]:
        """Hold a session, unless a call has it: never wait for one, there are others to read."""
        got = session.lock.acquire(blocking=False)
        try:
            yield got and session in self.sessions
        finally:
            if got:
                session.lock.release()

    def end(self) -> None:
        if self.wake is not None:
            for fd in self.wake:
                with contextlib.suppress(OSError):
                    os.close(fd)
            self.wake = None


_reader = _Reader()


def watch(session: Session) -> None:
    """Read what is written in a session until its next call."""
    _reader.watch(session)


def leave(session: Session) -> None:
    """Let a call read again."""
    _reader.leave(session)


def _start_anew() -> None:
    """Leave the sessions of the parent to it in a forked process."""
    global _reader  # noqa: PLW0603 - there is one for the process
    _reader = _Reader()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
