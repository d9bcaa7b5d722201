"""A private Redis server for the tests."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import redis

from tests.programs import find
from tests.waiting import until

__all__ = ["RedisServer"]


class RedisServer:
    """A private redis-server with its own directory and a Unix socket."""

    def __init__(self, *settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="redis-"))
        self.socket = self.folder / "socket"
        self.url = f"unix://{self.socket}"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        given = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder)]
        kept = ["--appendonly", "yes", "--save", "", *self._settings]
        self._process = subprocess.Popen(  # noqa: S603 - the server of the test
            [str(find("redis-server")), *given, *kept], stdout=subprocess.DEVNULL
        )
        until(self._answers)

    def _answers(self) -> bool:
        with (
            contextlib.suppress(redis.RedisError),
            redis.Redis(unix_socket_path=str(self.socket)) as client,
        ):
            return bool(client.ping())
        return False

    def stop(self, *, kill: bool = False) -> None:
        """Stop the server: cleanly, or with SIGKILL as in a crash."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            self._process.wait()
            self._process = None

    def client(self) -> Any:
        """Return a client for the test itself."""
        return redis.Redis(unix_socket_path=str(self.socket))

    def remove(self) -> None:
        """Stop the server and delete its directory."""
        self.stop()
        shutil.rmtree(self.folder)
