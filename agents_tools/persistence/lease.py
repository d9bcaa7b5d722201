"""The holder of a lease: the process that can append to a log."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from agents_tools.text.output import release_text

__all__ = ["LeaseHolder"]

_CLOCK_TOLERANCE = 2.0
"""The seconds by which two readings of the start time of one process can differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHolder:
    """A store object of a process, as other processes recognize it.

    Attributes:
        machine: The running system: its boot and its process namespace.
        pid: The process.
        started: When the process started, in seconds since 1970.
        token: The store object, unique among all processes.
        program: The name of the program.
        since: When the store was opened, in seconds since 1970.
    """

    machine: str
    pid: int
    started: float
    token: str
    program: str
    since: float

    @classmethod
    def create(cls) -> LeaseHolder:
        """Return a new holder in this process."""
        pid = os.getpid()
        return cls(
            machine=_machine(),
            pid=pid,
            started=_start_time(pid) or 0.0,
            token=uuid.uuid4().hex,
            program=Path(sys.argv[0]).name[:200] if sys.argv else "",
            since=time.time(),
        )

    @classmethod
    def from_json(cls, text: str) -> LeaseHolder | None:
        """Return the holder in a stored text; `None` if the text is damaged."""
        try:
            data: Any = json.loads(text)
            return cls(
                machine=str(data["machine"]),
                pid=int(data["pid"]),
                started=float(data["started"]),
                token=str(data["token"]),
                program=str(data["program"]),
                since=float(data["since"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    def to_json(self) -> str:
        """Return the form that a store saves."""
        return json.dumps(cast("Any", asdict(self)))

    def has_ended(self) -> bool:
        """Return whether the process is known to have ended.

        It is `False` for a process of another machine, because this one cannot know.
        """
        if self.machine != _machine():
            return False
        started = _start_time(self.pid)
        return started is None or abs(started - self.started) > _CLOCK_TOLERANCE

    def __str__(self) -> str:
        """Return the process and the time, for an error message."""
        try:
            since = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        except (OverflowError, OSError, ValueError):
            since = "an unknown time"
        return f"process {self.pid} ({release_text(self.program) or 'python'}), since {since}"


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return a text that two processes share if they see each other's process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return platform.node()


def _start_time(pid: int) -> float | None:
    """Return the start time of a process; `None` if there is no such process."""
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.create_time()
    except psutil.NoSuchProcess:
        return None
    except psutil.Error:
        return 0.0  # it exists, but cannot be read
