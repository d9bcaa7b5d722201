"""The sandbox levels that are available on this machine, and their effects."""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from agents_tools.builtin import bubblewrap, landlock, seccomp
from agents_tools.builtin.spawn import run_in_restricted_thread
from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["ASKED", "LEVELS", "Level", "SandboxReport", "choose", "restrict"]

Level: TypeAlias = Literal["process", "landlock", "bwrap"]

LEVELS: tuple[Level, ...] = ("bwrap", "landlock", "process")
"""The strongest first."""
ASKED = ("process", "auto", *(f"required:{level}" for level in LEVELS))
_NOT_ASKED = "not asked for. Use level='auto' or 'required:{level}'."
_OVERRIDE = 1
"""The number of CAP_DAC_OVERRIDE: root works with the files of others, where it may write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxReport:
    """The active sandbox level and its effects.

    Attributes:
        level: `bwrap`, `landlock` or `process`.
        why_not: For each stronger level, the reason why it is not used and how to enable it.
        says: A description of what is confined and what is not.
    """

    level: Level
    why_not: Mapping[str, str]
    says: str


def choose(asked: str, *, network: bool, outside: Sequence[Path] = ()) -> SandboxReport:
    """Return the strongest available level that was requested.

    Args:
        asked: `process`, `auto`, or `required:` and a level.
        network: Whether commands may use the network.
        outside: The directories that commands may write, whose programs are not trusted.

    Raises:
        UserError: The required level is not available, or the level is unknown.
    """
    if asked not in ASKED:
        raise UserValueError(
            f"The sandbox level {asked!r} is unknown: expected one of "
            f"{', '.join(map(repr, ASKED))}."
        )
    required = asked.removeprefix("required:") if asked != "auto" else None
    why_not: dict[str, str] = {}
    for level in LEVELS:
        if required is not None and level != required:
            why_not[level] = _NOT_ASKED.format(level=level)
            continue
        reason = _why_not(level, network=network, outside=outside)
        if not reason:
            return SandboxReport(level=level, why_not=why_not, says=_says(level, network))
        why_not[level] = reason
        if required is not None:
            break
    raise UserValueError(
        f"The sandbox level {required!r} is not available: {why_not[required or '']}"
    )


def restrict(ruleset: int, *, network: bool) -> None:
    """Restrict the calling thread with Landlock and a seccomp filter for limits and sockets.

    Args:
        ruleset: The descriptor of the Landlock ruleset.
        network: Whether network sockets are allowed.

    Raises:
        OSError: The system does not allow the restriction.
    """
    seccomp.no_new_privileges()
    landlock.restrict_thread(ruleset)
    seccomp.drop_capabilities([_OVERRIDE])
    if seccomp.supported():
        families = None if network else seccomp.LOCAL
        seccomp.install(seccomp.filter_calls(families=families, own_limits=True))


def _why_not(level: Level, *, network: bool, outside: Sequence[Path]) -> str:
    if level == "process":
        return ""
    if sys.platform != "linux":
        return "it is for Linux only."
    if level == "landlock":
        return _landlock_fails(network)
    program, reason = bubblewrap.find(os.environ.get("PATH", os.defpath), outside)
    return reason if program is None else bubblewrap.why_it_fails(program)


@functools.cache
def _landlock_fails(network: bool) -> str:
    version = landlock.abi()
    if version < landlock.ENOUGH:
        has = f"version {version}" if version else "none, or it is turned off (see lsm= at boot)"
        return f"Landlock version {landlock.ENOUGH} (Linux 6.2) is needed; this system has {has}."
    if not network and not seccomp.supported():
        return "there is no filter of system calls for this kind of processor. Use network=True."
    try:
        ruleset = landlock.make_ruleset([], network=network)
        try:
            run_in_restricted_thread(lambda: restrict(ruleset, network=network), lambda: None)
        finally:
            os.close(ruleset)
    except OSError as error:
        return (
            f"the system does not let it ({error.strerror}). In a container, allow Landlock and "
            "seccomp in its seccomp profile."
        )
    return ""


def _says(level: Level, network: bool) -> str:
    if level == "bwrap":
        abstract = " and abstract ones" if network else ""
        return (
            "Commands write only in the workspace, `writable` and a private /tmp, read everything "
            f"else but /run, {_of_the_network(network, 'have a loopback of their own only')}, see "
            "no other processes, end with this program, and cannot change protected names at the "
            f"top of the workspace; not confined are Unix sockets outside of /run{abstract}."
        )
    if level == "landlock":
        scoped = landlock.abi() >= landlock.SIGNALS
        return (
            "Commands write only in the workspace, `writable` and a private temporary directory, "
            "read everything but terminals, "
            f"{_of_the_network(network, 'have no network')}, and "
            f"{_of_others(scoped)}; not confined are the attributes of files outside (permissions, "
            f"times), Unix sockets{' that have a path' if scoped else ''}, priorities and System V "
            "memory of other processes, protected names in the workspace, and daemons that cut "
            "every tie."
        )
    return (
        "Nothing is confined: commands can do what this user can, protected names and the network "
        "included; they only get a short environment, no open files, limits and a private "
        "temporary directory, and are ended with their children, except daemons that cut every tie."
    )


def _of_others(scoped: bool) -> str:
    """Describe the access to other processes under Landlock."""
    filtered = seccomp.supported()
    if not scoped:
        return f"can signal{'' if filtered else ' and limit'} other processes"
    if not filtered:
        return "cannot signal other processes, but limit them"
    return "cannot signal or limit other processes"


def _of_the_network(network: bool, without: str) -> str:
    return "use the network" if network else without
