"""Real MCP peers: their locations, their commands, and the reason when one is missing."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".mcp-peers"
"""Where peers are installed."""

NODE_REMEDY = "python -m tests.conformance.mcp.install"
PYTHON_REMEDY = "python -m tests.mcp.install"

BOUND = 60.0
"""Seconds for what takes one or two: a test that waits longer has found a wait without an end."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A third-party program that speaks MCP.

    Attributes:
        name: What it is called.
        command: How it is started.
        missing: Why it is not there, if it is not.
        version: The version of its package; empty if it is not there.
    """

    name: str
    command: tuple[str, ...]
    missing: str | None
    version: str = ""

    @property
    def title(self) -> str:
        """Return the name with the version."""
        return f"{self.name} {self.version}".strip()

    @property
    def needed(self) -> pytest.MarkDecorator:
        """Skip a test where the peer is not installed."""
        return pytest.mark.skipif(self.missing is not None, reason=self.missing or "")

    def server(self, *args: str, **more: Any) -> dict[str, Any]:
        """Return the settings with which a manager starts it as a server on stdin and stdout."""
        return {"command": self.command[0], "args": [*self.command[1:], *args], **more}


def find(*parts: str) -> Path | None:
    """Find a program at a location."""
    place = HOME.joinpath(*parts)
    return place if place.exists() else None


def _peer(name: str, remedy: str, version: str, *command: Path | None) -> Peer:
    there = tuple(str(part) for part in command if part is not None)
    missing = None if len(there) == len(command) else f"{name} is not installed: {remedy}"
    return Peer(name, there, missing, version)


NODE = find("node_modules", ".bin", "node")


def node_peer(package: str, script: str) -> Peer:
    """Return a program of a Node package."""
    folder = find("node_modules", *package.split("/"))
    version = "" if folder is None else json.loads((folder / "package.json").read_text())["version"]
    found = find("node_modules", *package.split("/"), *script.split("/"))
    return _peer(package, NODE_REMEDY, version, NODE, found)


def python_peer(environment: str, package: str, program: str | None = None) -> Peer:
    """Return a program of an environment that `tests.mcp.install` creates.

    Args:
        environment: The name of the environment.
        package: The package.
        program: The program, which has the name of the package by default.
    """
    found = find(environment, "bin", program or package)
    return _peer(package, PYTHON_REMEDY, _version(environment, package), found)


def _version(environment: str, package: str) -> str:
    """Return the version of a Python package from the name of its metadata."""
    pattern = f"lib/python3.*/site-packages/{package.replace('-', '_')}-*.dist-info"
    found = next((HOME / environment).glob(pattern), None)
    return "" if found is None else found.name.removesuffix(".dist-info").rpartition("-")[2]


def own_peer(package: str) -> Peer:
    """Return the interpreter of these tests, whose environment has a package."""
    try:
        return Peer(package, (sys.executable,), None, metadata.version(package))
    except metadata.PackageNotFoundError:
        return Peer(package, (), f"{package} is not installed")


EVERYTHING = node_peer("@modelcontextprotocol/server-everything", "dist/index.js")
FILESYSTEM = node_peer("@modelcontextprotocol/server-filesystem", "dist/index.js")
MEMORY = node_peer("@modelcontextprotocol/server-memory", "dist/index.js")
THINKING = node_peer("@modelcontextprotocol/server-sequential-thinking", "dist/index.js")
PLAYWRIGHT = node_peer("@playwright/mcp", "cli.js")
FETCH = python_peer("py", "mcp-server-fetch")
GIT = python_peer("py", "mcp-server-git")
TIME = python_peer("py", "mcp-server-time")
SQLITE = python_peer("sqlite", "mcp-server-sqlite")
SERVERS = (EVERYTHING, FILESYSTEM, MEMORY, THINKING, FETCH, GIT, TIME, SQLITE)

INSPECTOR = node_peer("@modelcontextprotocol/inspector", "clients/launcher/build/index.js")
TYPESCRIPT = node_peer("@modelcontextprotocol/sdk", "dist/esm/client/index.js")
TYPESCRIPT_2 = node_peer("@modelcontextprotocol/client", "dist/index.mjs")
"""The second line of that SDK, which the inspector brings."""
LINE_1 = python_peer("v1", "mcp", "python")
LINE_2 = own_peer("mcp")
FASTMCP = python_peer("fastmcp", "fastmcp", "python")
FASTMCP_TASKS = python_peer("fastmcp-tasks", "fastmcp", "python")
PYDANTIC_AI = python_peer("fastmcp-tasks", "pydantic-ai-slim", "python")
LANGCHAIN = python_peer("langchain", "langchain-mcp-adapters", "python")
OPENAI_AGENTS = own_peer("openai-agents")


def all_needed(*peers: Peer) -> pytest.MarkDecorator:
    """Skip a test where one of several peers is not installed."""
    missing = [peer.missing for peer in peers if peer.missing is not None]
    return pytest.mark.skipif(bool(missing), reason="; ".join(missing))


def node_environment(**more: str) -> dict[str, str]:
    """Return the variables for Node programs that look for `node` on the path."""
    assert NODE is not None
    return {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}", **more}


@dataclass(slots=True)
class Listening:
    """A program that listens on an address.

    Attributes:
        process: It.
        lines: What it has written, to stdout and stderr.
    """

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list[str])
    _news: queue.Queue[str | None] = field(default_factory=queue.Queue[str | None])

    def wait_for(self, text: str) -> str:
        """Return the next line with this text.

        Raises:
            AssertionError: It has ended, or has not written it for long.
        """
        while True:
            try:
                line = self._news.get(timeout=BOUND)
            except queue.Empty:
                line = None
            assert line is not None, f"{text!r} is not in: {self.lines}"
            if text in line:
                return line

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            self._news.put(line)
        self._news.put(None)


@contextlib.contextmanager
def listening(command: list[str], env: dict[str, str] | None = None) -> Generator[Listening]:
    """Start a program, and end it at the end.

    Args:
        command: The program and its arguments.
        env: Its variables; those of this process by default.
    """
    process = subprocess.Popen(  # noqa: S603 - our own words
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        env=env,
    )
    program = Listening(process)
    reader = threading.Thread(target=program._read, name="what a peer writes")
    reader.start()
    try:
        yield program
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join()
        assert process.stdout is not None
        process.stdout.close()


def own_server_command(transport: str, *args: str) -> list[str]:
    """Return the command of our own server with the tools of `served.py`."""
    return [sys.executable, str(Path(__file__).with_name("served.py")), transport, *args]


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def has_ended(pid: int) -> bool:
    """Return whether the process has exited, possibly with its exit code not yet read."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return True
    except FileNotFoundError:  # there is no /proc, or no such process any more
        return Path("/proc/self").exists()
    return status.rpartition(")")[2].split()[0] == "Z"
