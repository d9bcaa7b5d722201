"""The command line of bubblewrap, which runs a program in its own namespaces."""

from __future__ import annotations

import functools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Mount", "command", "find", "takes_descriptors", "why_it_fails"]

_PROGRAM = "bwrap"
_PATIENCE = 10.0
_KEPT_IN_RUN = ("/run/current-system", "/run/opengl-driver")
"""Directories below `/run` with programs of some systems; the rest of `/run` is sockets."""
_RESOLVER = "/run/systemd/resolve"
_ROOTS_OWN = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
"""The capability that root keeps: access to files of other users in writable directories."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount of the sandbox.

    Attributes:
        target: The path in the sandbox.
        source: The source: a path, or the descriptor of a directory or file.
        writable: Whether it can be written.
    """

    target: str
    source: str | int
    writable: bool = False

    def arguments(self) -> list[str]:
        """Return the options of bubblewrap for the mount."""
        option = "--bind" if self.writable else "--ro-bind"
        if isinstance(self.source, int):
            return [f"{option}-fd", str(self.source), self.target]
        return [option, self.source, self.target]


def find(path: str, outside: Sequence[Path]) -> tuple[str | None, str]:
    """Find the program in a directory that the command cannot write.

    Args:
        path: The directories to look in, as in the variable `PATH`.
        outside: Directories that the command can write.

    Returns:
        Its real path or `None`, and the reason for `None`.
    """
    reason = (
        "the program bwrap is not on PATH. Install bubblewrap "
        "(apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap)."
    )
    for directory in path.split(os.pathsep):
        candidate = os.path.join(directory, _PROGRAM)  # noqa: PTH118 - as text until it is found
        if not directory.startswith("/") or not os.access(candidate, os.X_OK):
            continue
        real = Path(candidate).resolve()
        if not any(real.is_relative_to(one) for one in outside):
            return str(real), ""
        reason = (
            f"{real} is inside the workspace, where the command could replace it. "
            "Install bubblewrap for the whole system."
        )
    return None, reason


@functools.cache
def why_it_fails(program: str) -> str:
    """Run bubblewrap once, and return the reason why it does not work; empty if it works.

    Args:
        program: What `find` gave.
    """
    tried = command(program, ["/bin/true"], [Mount("/", "/")], cwd="/", network=False)
    try:
        result = subprocess.run(  # noqa: S603 - a program found outside of the workspace
            tried, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{program} could not be tried: {error}."
    if result.returncode == 0:
        return ""
    words = result.stderr.decode("utf-8", "replace").strip().removeprefix("bwrap: ")
    said = words.splitlines()[0][:200] if words else f"exit code {result.returncode}"
    return f"{program} does not work here ({said}). {_remedy(said)}"


def _remedy(said: str) -> str:
    if "proc" in said:
        return (
            "A container that hides parts of /proc causes this: start it with unmasked /proc "
            "(docker run --security-opt systempaths=unconfined)."
        )
    if "uid map" in said or "loopback" in said:
        return (
            "The system keeps user namespaces from this program: give bwrap an AppArmor profile "
            "that allows userns, or set kernel.apparmor_restrict_unprivileged_userns=0."
        )
    return (
        "User namespaces are needed: set kernel.unprivileged_userns_clone=1 or "
        "user.max_user_namespaces above 0; in a container, allow them in its seccomp profile."
    )


@functools.cache
def takes_descriptors(program: str) -> bool:
    """Return whether bubblewrap can mount descriptors, which prevents races.

    Args:
        program: What `find` gave.
    """
    try:
        result = subprocess.run(  # noqa: S603 - as above
            [program, "--help"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return b"--ro-bind-fd" in result.stdout + result.stderr


def command(
    program: str,
    argv: Sequence[str],
    mounts: Sequence[Mount],
    *,
    cwd: str,
    network: bool,
    seccomp: int | None = None,
) -> list[str]:
    """Return the command line that starts a program with namespaces of its own.

    Args:
        program: What `find` gave.
        argv: The program and its arguments.
        mounts: Its mounts; later ones hide earlier ones.
        cwd: Its working directory.
        network: Whether it has the network of this machine; otherwise only its own loopback.
        seccomp: A descriptor with a filter of system calls.
    """
    options = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
    if not network:
        options.append("--unshare-net")
    options += ["--cap-drop", "ALL"]
    if os.geteuid() == 0:
        options += [word for name in _ROOTS_OWN for word in ("--cap-add", name)]
    if seccomp is not None:
        options += ["--seccomp", str(seccomp)]
    system, others = mounts[:1], mounts[1:]
    for mount in system:
        options += mount.arguments()
    options += ["--dev", "/dev", "--proc", "/proc"]
    if os.geteuid() == 0:
        options += ["--remount-ro", "/proc"]  # otherwise root can change kernel settings
    hidden = Path("/run").is_dir() and not any(mount.target == "/run" for mount in others)
    if hidden:
        options += _run(network=network)
    for mount in others:
        options += mount.arguments()
    if hidden:
        options += ["--remount-ro", "/run"]
    return [program, *options, "--chdir", cwd, "--", *argv]


def _run(*, network: bool) -> list[str]:
    """Hide `/run`, whose sockets would let services act for the command."""
    kept = [*_KEPT_IN_RUN, *([_RESOLVER] if network else [])]
    shown = [word for path in kept for word in ("--ro-bind-try", path, path)]
    return ["--tmpfs", "/run", *shown]
