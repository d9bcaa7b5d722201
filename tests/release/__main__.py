"""`python -m tests.release build | check | install | lowest | audit | all`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.release.auditing import audited, installed, license_faults
from tests.release.building import build, faults_of, faults_of_tools, rebuilt_faults
from tests.release.installing import lowest, matrix
from tests.release.venvs import ROOT, pythons

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.release.installing import Result

_DIST = ROOT / "dist"


def say(text: str) -> None:
    """Write a line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def told(faults: Iterable[str]) -> int:
    """Print the faults; return their number."""
    found = list(faults)
    for fault in found:
        say(f"  FAULT {fault}")
    return len(found)


def do_build(_: argparse.Namespace) -> int:
    """Build both distributions into `dist/`."""
    for path in build(_DIST):
        say(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")
    return 0


def _built() -> tuple[Path, Path]:
    wheels, sources = list(_DIST.glob("*.whl")), list(_DIST.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        return build(_DIST)
    return wheels[0], sources[0]


def do_check(_: argparse.Namespace) -> int:
    """Look at what was built, and build it again in other ways."""
    wheel, source = _built()
    faults, absent = faults_of_tools(wheel, source)
    for one in absent:
        say(f"  not asked: {one}")
    count = told(faults_of(wheel, source)) + told(faults) + told(rebuilt_faults(wheel, source))
    say(f"{wheel.name}, {source.name}: {count} faults")
    return count


def do_install(given: argparse.Namespace) -> int:
    """Install the wheel on every Python with every extra, and go through its doors."""
    wheel, _ = _built()
    found = pythons()
    wanted = {one: found[one] for one in given.python if one in found} if given.python else found
    say(f"Pythons: {', '.join(wanted) or 'none'}")
    return _shown(matrix(wheel, wanted, given.extra)) + (not wanted)


def do_lowest(given: argparse.Namespace) -> int:
    """Install the lowest versions that are said to do, on the oldest Python, and do the same."""
    wheel, _ = _built()
    oldest = next(iter(pythons().values()))
    return _shown(lowest(wheel, oldest, given.extra))


def _shown(results: Iterable[Result]) -> int:
    count = 0
    begun = time.monotonic()
    for one in results:
        now = time.monotonic()
        say(
            f"  {one.python:7} {one.extra:18} {'ok' if not one.faults else 'FAULT'}  {now - begun:.0f} s"
        )
        count += told(one.faults)
        begun = now
    return count


def do_audit(_: argparse.Namespace) -> int:
    """Look up known vulnerabilities and licenses of all that the extra `all` brings."""
    packages = installed(Path(sys.executable))
    packages = {name: one for name, one in packages.items() if name != "agents-tools"}
    faults, notes = license_faults(packages)
    for note in notes:
        say(f"  note {note}")
    count = told(faults)
    say(f"{len(packages)} packages: {count} with a license in the way")
    audit = audited({name: version for name, (version, _) in packages.items()})
    count += told(audit.faults)
    for one in audit.unseen[:3]:
        say(f"  NOT AUDITED {one}")
    unseen = f"; {len(audit.unseen)} could not be asked about" if audit.unseen else ""
    say(f"{audit.packages} packages: {len(audit.faults)} known vulnerabilities{unseen}")
    if audit.unseen:
        say("Run `make audit` again where the service for vulnerabilities can be reached.")
    return count


def do_all(given: argparse.Namespace) -> int:
    """Do all of it."""
    steps = (do_build, do_check, do_install, do_lowest, do_audit)
    count = 0
    for step in steps:
        say(f"== {step.__name__.removeprefix('do_')}")
        count += step(given)
    say(f"{count} faults")
    return count


_STEPS: dict[str, Callable[[argparse.Namespace], int]] = {
    "build": do_build,
    "check": do_check,
    "install": do_install,
    "lowest": do_lowest,
    "audit": do_audit,
    "all": do_all,
}


def main() -> int:
    """Do one step, or all; give 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=__doc__)
    parser.add_argument("step", choices=_STEPS)
    parser.add_argument("--python", action="append", default=[], help="only this version (3.12)")
    parser.add_argument("--extra", action="append", default=[], help="only this extra")
    given = parser.parse_args()
    return 1 if _STEPS[given.step](given) else 0


if __name__ == "__main__":
    sys.exit(main())
