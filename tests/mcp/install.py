"""Install the MCP peers that are written in Python: `python -m tests.mcp.install [NAME …]`.

Each group gets an environment of its own under `.mcp-peers/`, which git does not see: what one of
them needs is not what another can bear, and none of it is for the project's own environment. What
is there already is left alone. Without a network nothing is installed, and their tests are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

HOME = Path(__file__).parents[2] / ".mcp-peers"
ENVIRONMENTS = {
    "py": (
        "mcp-server-fetch==2026.10.24",
        "mcp-server-git==2026.10.19",
        "mcp-server-time==2026.10.19",
    ),
    "fastmcp": ("fastmcp[apps]==4.2.3",),
    # the newest one whose extension for tasks is published
    "fastmcp-tasks": ("fastmcp[tasks]==4.1.4", "pydantic-ai-slim[mcp]==2.68.0"),
    "langchain": ("langchain-mcp-adapters==0.3.2",),
    "sqlite": ("mcp-server-sqlite==2025.4.25", "mcp<2"),  # it does not know the second line
    "v1": ("mcp<2",),
}
"""What is installed together, by the name of its environment."""

LONGEST = 600
"""Seconds that one environment may take."""
PIP = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries=1")


def main(*names: str) -> int:
    """Install the environments of these names, all by default; give 2 for a name that is none."""
    unknown = sorted(set(names) - set(ENVIRONMENTS))
    if unknown:
        known = ", ".join(ENVIRONMENTS)
        print(f"There is no environment {unknown[0]!r}; there are: {known}.", file=sys.stderr)  # noqa: T201
        return 2
    for name in names or ENVIRONMENTS:
        problem = install(HOME / name, ENVIRONMENTS[name])
        if problem:
            print(  # noqa: T201
                f".mcp-peers/{name} could not be installed, so tests with it are skipped: {problem}",
                file=sys.stderr,
            )
    return 0


def install(folder: Path, requirements: tuple[str, ...]) -> str | None:
    """Make one environment, unless it is there; say what went wrong, if something did."""
    stamp, wanted = folder / ".stamp", "\n".join(requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    print(f"Installing {' '.join(requirements)} (once) …", file=sys.stderr)  # noqa: T201
    try:
        venv.create(folder, with_pip=True, clear=True)
        command = [str(folder / "bin" / "python"), *PIP, *requirements]
        subprocess.run(command, check=True, timeout=LONGEST, capture_output=True, text=True)  # noqa: S603
        stamp.write_text(wanted)
    except (OSError, subprocess.SubprocessError) as error:
        return _reason(error)
    finally:
        if not stamp.exists():  # half an environment would pass for a whole one
            shutil.rmtree(folder, ignore_errors=True)
    return None


def _reason(error: Exception) -> str:
    """Return the last line of the output of a program, or else the text of the error."""
    written: object = getattr(error, "stderr", None)
    lines = written.strip().splitlines() if isinstance(written, str) else []
    return lines[-1] if lines else str(error)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
