"""What the tools of servers were when they were first seen, so that no change goes unnoticed."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import re
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from agents_tools._text import describe_value
from agents_tools.errors import UserError, UserKeyError, UserValueError
from agents_tools.mcp._untrusted import clean_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

__all__ = ["OnChange", "PinChange", "ToolPins", "fingerprint"]

OnChange: TypeAlias = Literal["warn", "ask", "block"]
"""What becomes of a tool that is not as it was pinned: it is used, a person decides, or neither."""

VERSION = 1
"""The version of the lock file."""


def fingerprint(wire_tool: Mapping[str, Any]) -> str:
    """Give the SHA-256 of what a server says about a tool; the order of keys does not matter.

    Args:
        wire_tool: The tool, as in a result of `tools/list`.
    """
    return _digest({key: wire_tool[key] for key in _FIELDS if wire_tool.get(key) is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class PinChange:
    """How a tool differs from what was pinned.

    Attributes:
        server: The name of its server.
        tool: Its name there.
        kind: Whether it has changed, is gone, or is new.
        fields: What has changed, such as `description` or `inputSchema.properties.path`.
        before: Its fingerprint when it was pinned; `None` if it is new.
        after: Its fingerprint now; `None` if it is gone.
    """

    server: str
    tool: str
    kind: Literal["changed", "removed", "added"]
    fields: tuple[str, ...] = ()
    before: str | None = None
    after: str | None = None

    async def allowed(
        self,
        on_change: OnChange,
        ask: Callable[[PinChange], bool | Awaitable[bool]] | None = None,
    ) -> bool:
        """Decide whether the tool may be used all the same.

        Args:
            on_change: `warn`: it may; `block`: it may not; `ask`: as somebody says.
            ask: Who is asked; without anybody to ask it may not.
        """
        if on_change != "ask":
            return on_change == "warn"
        if ask is None:
            return False
        answer = ask(self)
        if inspect.isawaitable(answer):
            answer = await answer
        return answer is True


class ToolPins:
    """Remembers the tools of servers, in a lock file or only as long as it lives.

    The tools of a server are trusted when it is seen first. From then on each difference is
    told, until it is approved. A tool that is gone stays pinned: it has to come back as it was.

    Any number of these may use one file in one process; of two processes that write it at the
    same moment, one wins.

    Args:
        path: The lock file; `None` for none. It holds no secrets and may be kept with the code.
        on_change: What becomes of tools that are not as they were pinned: `warn`, `ask`, `block`.
            With `warn`, tools that are new are pinned at once.

    Raises:
        UserError: The file is damaged.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, on_change: OnChange = "warn"
    ) -> None:
        if on_change not in get_args(OnChange):
            raise UserValueError(
                "on_change of ToolPins is 'warn', 'ask' or 'block', "
                f"not {describe_value(on_change)}."
            )
        self.on_change: OnChange = on_change
        self.path = None if path is None else Path(path).expanduser()
        self._memory: _Servers = {}
        self._seen: _Servers = {}
        with _LOCK:
            self._load()

    def check(self, server: str, tools: Sequence[Mapping[str, Any]]) -> list[PinChange]:
        """Compare all tools of a server with what was pinned; pin them if it was never seen.

        Args:
            server: The name of the server.
            tools: Its tools, as in a result of `tools/list`.

        Returns:
            What differs, by the names of tools.

        Raises:
            UserError: The file is damaged, or cannot be read or written.
        """
        now = _pins_of(tools)
        with _LOCK:
            self._seen[server] = now
            servers = self._load()
            pinned = servers.get(server)
            if not pinned:
                if now:
                    self._save({**servers, server: now})
                return []
            changes = _differences(server, pinned, now)
            added = {c.tool: now[c.tool] for c in changes if c.kind == "added"}
            if added and self.on_change == "warn":
                self._save({**servers, server: {**pinned, **added}})
            return changes

    def approve(
        self,
        server: str,
        tool: str | None = None,
        current: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Pin tools as they are now.

        Args:
            server: The name of the server.
            tool: The name of the tool there; `None` for all of its tools. What is gone is
                forgotten.
            current: All tools of the server; by default those that were checked last.

        Raises:
            UserError: Nobody knows what the tools are now.
        """
        with _LOCK:
            now = self._seen.get(server) if current is None else _pins_of(current)
            if now is None:
                raise UserKeyError(
                    f"The tools of MCP server {server!r} have not been checked here, so that there "
                    "is nothing to approve. Connect to it first, give `current=`, or use "
                    "forget() to trust what it lists next."
                )
            servers = self._load()
            pinned = servers.get(server, {})
            if tool is None:
                self._save({**servers, server: now})
                return
            if tool not in now and tool not in pinned:
                raise UserKeyError(
                    f"MCP server {server!r} has no tool {tool!r} to approve. "
                    f"It has: {', '.join(sorted(now)) or 'none'}."
                )
            others = {name: pin for name, pin in pinned.items() if name != tool}
            self._save({**servers, server: others | ({tool: now[tool]} if tool in now else {})})

    def forget(self, server: str) -> bool:
        """Forget a server: what it lists next is trusted.

        Returns:
            Whether anything was pinned.
        """
        with _LOCK:
            servers = dict(self._load())
            self._seen.pop(server, None)
            known = servers.pop(server, None)
            if known is not None:
                self._save(servers)
            return bool(known)

    def pinned(self, server: str) -> dict[str, str]:
        """Give the fingerprints of a server's tools as they are pinned, by name."""
        with _LOCK:
            return {name: pin["hash"] for name, pin in self._load().get(server, {}).items()}

    def _load(self) -> _Servers:
        if self.path is None:
            return self._memory
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except UnicodeDecodeError as error:
            raise _damaged(self.path, str(error)) from None
        except OSError as error:
            raise UserError(
                f"The pins of MCP tools in {self.path} cannot be read: {error.strerror}. "
                "Make the file readable, or give ToolPins another path."
            ) from error
        return _parsed(self.path, text)

    def _save(self, servers: _Servers) -> None:
        kept = {server: pins for server, pins in servers.items() if pins}
        if self.path is None:
            self._memory = kept
            return
        try:
            _replace(self.path, _written({"version": VERSION, "servers": kept}))
        except OSError as error:
            raise UserError(
                f"The pins of MCP tools cannot be written to {self.path}: {error.strerror}. "
                "Make its folder writable, or give ToolPins another path."
            ) from error


_Pin: TypeAlias = dict[str, Any]
_Pins: TypeAlias = dict[str, _Pin]
_Servers: TypeAlias = dict[str, _Pins]

_LOCK = threading.Lock()
"""Held from reading a file to writing it; one for all, as files are small and writes are rare."""


# --- fingerprints

_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_SHOWN = 200
_SHORT = 16
_LONGEST_PART = 64


def _pins_of(tools: Iterable[Mapping[str, Any]]) -> _Pins:
    pins: _Pins = {}
    for tool in tools:
        name: Any = tool.get("name")
        if isinstance(name, str) and name not in pins:  # of two of a name, the first is used
            pins[name] = _pin(tool)
    return pins


def _pin(tool: Mapping[str, Any]) -> _Pin:
    description: Any = tool.get("description")
    shown = description if isinstance(description, str) else ""
    return {
        "hash": fingerprint(tool),
        "description": clean_text(shown, len(shown))[0][:_SHOWN],
        "parts": {place: _digest(part)[:_SHORT] for place, part in _parts(tool).items()},
    }


def _parts(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Take a tool apart, to be able to say what has changed."""
    parts = {key: tool[key] for key in _FIELDS[1:] if tool.get(key) is not None}
    schema: Any = parts.get("inputSchema")
    properties: Any = cast("Any", schema).get("properties") if isinstance(schema, dict) else None
    if isinstance(properties, dict):
        given = cast("dict[str, Any]", properties)
        rest = {name: value for name, value in given.items() if len(name) > _LONGEST_PART}
        parts["inputSchema"] = {**schema, "properties": rest}
        for name in given.keys() - rest.keys():
            parts[f"inputSchema.properties.{name}"] = given[name]
    return parts


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _differences(server: str, before: _Pins, after: _Pins) -> list[PinChange]:
    changes: list[PinChange] = []
    for tool in sorted(before.keys() | after.keys()):
        old, new = before.get(tool), after.get(tool)
        if old and new and old["hash"] == new["hash"]:
            continue
        changes.append(
            PinChange(
                server=server,
                tool=tool,
                kind="changed" if old and new else "removed" if old else "added",
                fields=_changed_fields(old["parts"], new["parts"]) if old and new else (),
                before=old["hash"] if old else None,
                after=new["hash"] if new else None,
            )
        )
    return changes


def _changed_fields(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    return tuple(sorted(changed)) or ("definition",)


# --- the lock file


def _parsed(path: Path, text: str) -> _Servers:
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from None
    version: Any = cast("Any", content).get("version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise UserError(
            f"The pins of MCP tools in {path} were written by a newer agents-tools (version "
            f"{version} of the file; this one reads {VERSION}). Update it, or give another path."
        )
    if version != VERSION:
        raise _damaged(path, "it has no version")
    servers = cast("dict[str, Any]", content).get("servers")
    for pins in _values(path, servers):
        for pin in _values(path, pins):
            _check_pin(path, pin)
    return cast("_Servers", servers)


def _values(path: Path, value: Any) -> Iterable[Any]:
    if not isinstance(value, dict):
        raise _damaged(path, f"where an object belongs there is {describe_value(value)}")
    return cast("dict[str, Any]", value).values()


_HASH = re.compile(r"[0-9a-f]{64}")


def _check_pin(path: Path, pin: Any) -> None:
    _values(path, pin)
    if not isinstance(pin.get("hash"), str) or not _HASH.fullmatch(pin["hash"]):
        raise _damaged(path, f"{describe_value(pin.get('hash'))} is no fingerprint")
    if not all(isinstance(part, str) for part in _values(path, pin.setdefault("parts", {}))):
        raise _damaged(path, "a part of a fingerprint is no text")


def _damaged(path: Path, reason: str) -> UserError:
    return UserError(
        f"The pins of MCP tools in {path} cannot be used: {reason}. Restore the file, or delete "
        "it: the tools are then trusted as they are when next seen."
    )


def _written(content: dict[str, Any]) -> str:
    text = json.dumps(content, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    # Whoever reads the file sees all of it: what is not printed is escaped, as JSON has it.
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all; only its owner may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
