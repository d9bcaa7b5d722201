"""Looks up what is known to be wrong with the packages we need, and how they are licensed."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.release.venvs import ROOT, environment, uv

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Audit", "audited", "is_permissive", "license_faults"]

_PERMISSIVE = re.compile(
    r"\b(0BSD|MIT|MIT-0|BSD|BSD-[0-9]-Clause|Apache([- ]2(\.0)?|[ ]Software|[ ]License)?|ISC|PSF(-2\.0)?|"
    r"Python-2\.0|Python[ ]Software[ ]Foundation|Unlicense|Zlib|CNRI-Python|HPND|MPL-2\.0|"
    r"Mozilla[ ]Public[ ]License[ ]2\.0)\b",
    re.IGNORECASE,
)
"""MPL-2.0 asks something of those who change its files, and nothing of those who use them."""
_COPYLEFT = re.compile(
    r"\b(A?GPL|GNU (Affero )?General Public|SSPL|BUSL|Commons Clause)", re.IGNORECASE
)
_LESSER = re.compile(r"\b(LGPL|GNU Lesser|GNU Library)", re.IGNORECASE)
_AWAY = re.compile(
    r"ConnectionError|NameResolution|Max retries|timed out|ServiceError|Failed to (fetch|resolve)|"
    r"Could not connect|error sending request|503 |502 |403 |404 ",
)
_LICENSES = """
import importlib.metadata as metadata, json
told = {}
for one in metadata.distributions():
    about = one.metadata
    said = [about.get("License-Expression") or "", (about.get("License") or "")[:200]]
    said += [c for c in about.get_all("Classifier") or () if c.startswith("License ::")]
    told[about["Name"]] = [one.version, [text for text in said if text]]
print(json.dumps(told))
"""


class Audit:
    """What an audit came to.

    Attributes:
        faults: What is known to be wrong.
        unseen: Why some or all packages could not be looked up.
        packages: How many were looked at.
    """

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.unseen: list[str] = []
        self.packages = 0


def installed(python: Path, extra: str = "all") -> dict[str, tuple[str, list[str]]]:
    """Install the package with an extra, elsewhere; give what came along, with its licenses.

    Raises:
        RuntimeError: It cannot be installed.
    """
    with environment(python) as place:
        done = place.install("--quiet", f"{ROOT}[{extra}]")
        told = place.run(_LICENSES) if not done.code else done
        if told.code:
            raise RuntimeError(told.last)
        found = json.loads(told.out)
    return {name: (version, said) for name, (version, said) in found.items()}


def audited(packages: Mapping[str, str]) -> Audit:
    """Ask for the known vulnerabilities of packages, by name and version."""
    audit = Audit()
    audit.packages = len(packages)
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "requirements.txt"
        wanted.write_text("".join(f"{name}=={one}\n" for name, one in sorted(packages.items())))
        # Packages are asked for by name and version alone; nothing is installed.
        words = ("--requirement", wanted, "--no-deps", "--disable-pip", "--format", "json")
        told = uv("tool", "run", "--quiet", "pip-audit", "--progress-spinner", "off", *words)
    try:
        answer: Any = json.loads(told.out)
    except ValueError:
        away = _AWAY.search(told.err)
        reason = (
            away[0].strip() if away else told.last.splitlines()[-1] if told.last else "no answer"
        )
        audit.unseen.append(f"the service for vulnerabilities cannot be asked here ({reason})")
        return audit
    for one in answer["dependencies"]:
        if "skip_reason" in one:
            audit.unseen.append(f"{one['name']}: {one['skip_reason']}")
        for known in one.get("vulns") or ():
            fixed = ", ".join(known["fix_versions"]) or "no version yet"
            audit.faults.append(f"{one['name']} {one['version']}: {known['id']}; mended in {fixed}")
    return audit


def is_permissive(said: list[str]) -> bool:
    """Return whether one of the licenses of a package is permissive."""
    free = [text for text in said if _PERMISSIVE.search(text) and not _COPYLEFT.search(text)]
    return bool(free) and not (len(free) < len(said) and any(map(_COPYLEFT.search, said)))


def license_faults(packages: Mapping[str, tuple[str, list[str]]]) -> tuple[list[str], list[str]]:
    """Return the packages whose license is a problem, and those that a person must check."""
    faults: list[str] = []
    notes: list[str] = []
    for name, (version, said) in sorted(packages.items()):
        shown = " / ".join(" ".join(text.split())[:60] for text in said) or "no license named"
        if any(map(_LESSER.search, said)):
            notes.append(f"{name} {version}: {shown} (may be used, not copied into ours)")
        elif not is_permissive(said):
            faults.append(f"{name} {version}: {shown}")
    return faults, notes
