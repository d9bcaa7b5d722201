"""Run a ripgrep from outside the workspace, with the fixed options of this module."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from agents_tools.concurrency.processes import end_now
from agents_tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agents_tools.builtin.paths import Root
    from agents_tools.builtin.search.search_context import SearchContext

__all__ = ["SEARCH", "RipgrepRefused", "find_ripgrep", "run_ripgrep"]

SEARCH = ("--count", "--with-filename", "--no-mmap", "--crlf")

_ALWAYS = (
    "--no-config",
    "--color=never",
    "--no-messages",
    "--no-require-git",
    "--no-ignore-parent",  # the rules of parent directories are applied to its output
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--null",
    "--glob=!.git",
)
_MOST_OUTPUT = 64 << 20
_MEMORY = 4 << 30
_BLOCK = 1 << 16


class RipgrepRefused(Exception):  # noqa: N818 - names the event
    """Ripgrep rejected the options, for example because it is too old."""


def find_ripgrep(roots: Iterable[Root]) -> str | None:
    """Return the path of a ripgrep that no tool can have written, if there is one.

    Args:
        roots: The directories that tools can write.
    """
    inside = {_identity(root.path) for root in roots}
    name = "rg.exe" if os.name == "nt" else "rg"
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        found = Path(directory, name)
        if not (found.is_absolute() and found.is_file() and os.access(found, os.X_OK)):
            continue
        real = Path(os.path.realpath(found))
        if not any(_identity(above) in inside for above in (*real.parents, *found.parents)):
            return str(real)
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def run_ripgrep(
    program: str, options: Sequence[str], *, directory: int, running: SearchContext
) -> bytes:
    """Run ripgrep on a directory and return its output.

    Args:
        program: Its path.
        options: Its options.
        directory: A descriptor of the directory.
        running: The search of the call.

    Raises:
        RipgrepRefused: It rejected the options or the pattern, or cannot be started there.
        ToolError: It took too long, or wrote too much.
        ToolCancelledError: The call was interrupted.
    """
    running.check()
    try:
        process = subprocess.Popen(  # noqa: S603 - a list; a model supplies only values
            [program, *_ALWAYS, *options, "--", "./"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=_way_to(directory),
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
    except OSError as error:
        raise RipgrepRefused(str(error)) from None
    with process:
        try:
            written, said = _read(process, running)
        finally:
            running.killed_by(None)
            end_now(process)
    running.check()
    if said or process.returncode < 0:
        raise RipgrepRefused(said)
    return written


def _way_to(directory: int) -> str:
    """Return a path to an open directory that stays valid after a rename."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        path = f"{folder}/{directory}"
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"{path}/."), os.fstat(directory)):  # noqa: PTH116 - as text
                return path
    raise OSError("no path leads to an open directory on this system")


def _read(process: subprocess.Popen[bytes], running: SearchContext) -> tuple[bytes, str]:
    """Read its output until it ends, is interrupted, or times out."""
    _limit(process.pid, running.left)
    running.killed_by(lambda: end_now(process))
    timer = threading.Timer(max(0.0, running.left), end_now, (process,))
    timer.daemon = True
    timer.start()
    try:
        written = _output(process, running)
        said = process.stderr.read(_BLOCK) if process.stderr is not None else b""
        process.wait()
    finally:
        timer.cancel()
        timer.join()
    return written, said.decode("utf-8", "replace")


def _output(process: subprocess.Popen[bytes], running: SearchContext) -> bytes:
    blocks: list[bytes] = []
    size = found = 0
    out = process.stdout
    while out is not None and (block := os.read(out.fileno(), _BLOCK)):
        blocks.append(block)
        size += len(block)
        found += block.count(b"\0")
        running.tell(found, None, "files found")
        if size > _MOST_OUTPUT:
            raise ToolError("There are too many files to list. Search a smaller directory.")
    return b"".join(blocks)


def _limit(pid: int, seconds: float) -> None:
    """Limit the resources of the program, also in case this process dies."""
    if sys.platform != "linux":
        return
    import resource

    cpu = int(max(1.0, seconds) + 1) * (os.cpu_count() or 1)
    for which, most in ((resource.RLIMIT_CPU, cpu), (resource.RLIMIT_AS, _MEMORY)):
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, which, (most, most))
