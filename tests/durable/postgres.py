"""A PostgreSQL server for the tests, of the binaries that Debian installs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import until

__all__ = ["postgres", "why_not"]


def why_not() -> str:
    """Return why no server can be started; an empty text if one can."""
    if _binaries() is None:
        return "PostgreSQL is not installed (apt-get install postgresql)"
    if os.name != "posix":
        return "the server is started as POSIX systems do"
    if os.getuid() == 0 and not _has_user():
        return "PostgreSQL does not run as root, and there is no user postgres"
    return ""


@contextmanager
def postgres() -> Generator[str]:
    """Start a server; give the address of its database."""
    # Not in TMPDIR: the user of the server has to enter each folder above it.
    place = "/var/tmp" if os.getuid() == 0 else None  # noqa: S108 - mkdtemp creates a private folder
    with tempfile.TemporaryDirectory(prefix="agents-tools-", dir=place) as folder:
        yield from _served(Path(folder))


def _served(data: Path) -> Generator[str]:
    binaries = _binaries()
    assert binaries is not None
    user = "postgres" if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(data, user)
    subprocess.run(  # noqa: S603 - what Debian installs
        [
            binaries / "initdb",
            "-D",
            data,
            "-A",
            "trust",
            "-U",
            "tester",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ],
        check=True,
        user=user,
        cwd=data,
        stdout=subprocess.DEVNULL,
    )
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    command = [binaries / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port)]
    command += ["-k", data, "-F", "-c", "max_connections=200"]
    with subprocess.Popen(  # noqa: S603 - as above
        command, user=user, cwd=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            until(lambda: _answers(binaries, port), within=30)
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait(20)


def _binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def _has_user() -> bool:
    import pwd

    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return False
    return True


def _answers(binaries: Path, port: int) -> bool:
    asked = subprocess.run(  # noqa: S603 - as above
        [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)], check=False
    )
    return asked.returncode == 0
