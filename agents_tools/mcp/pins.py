"""Pin the tools of servers by their fingerprints, to detect changed definitions."""

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

from agents_tools.errors import UserError, UserKeyError, UserValueError
from agents_tools.mcp._sanitize import clean_text
from agents_tools.text.escape import describe_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

__all__ = ["OnChange", "PinChange", "ToolPins", "fingerprint"]

OnChange: TypeAlias = Literal["warn", "ask", "block"]
"""The handling of a changed tool: use it with a warning, ask a person, or block it."""

VERSION = 1
"""The version of the lock file."""


def fingerprint(wire_tool: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the definition of a tool, independent of the order of keys.

    Args:
        wire_tool: The tool, as in a result of `tools/list`.
    """
    return _digest({key: wire_tool[key] for key in _FIELDS if wire_tool.get(key) is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class PinChange:
    """A difference between a tool and its pin.

    Attributes:
        server: The name of the server.
        tool: The name of the tool on the server.
        kind: Whether the tool was changed, removed or added.
        fields: The changed fields, such as `description` or `inputSchema.properties.path`.
        before: The pinned fingerprint; `None` for an added tool.
        after: The current fingerprint; `None` for a removed tool.
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
        """Return whether the tool can be used although it differs.

        Args:
            on_change: `warn` allows it, `block` does not, `ask` calls `ask`.
            ask: Returns whether the tool can be used; without it, `"ask"` blocks the tool.
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
    """The pinned tools of servers, stored in a lock file or in memory.

    The tools of a server are trusted when they are first listed. From then on, each difference is
    reported until it is approved. A removed tool stays pinned and must return unchanged.

    Several instances can use the same file in one process. If two processes write it at the same
    time, one of the writes is lost.

    Args:
        path: The lock file, which contains no secrets and can be checked in; `None` keeps the pins
            in memory.
        on_change: The handling of changed tools: `warn`, `ask` or `block`. With `warn`, new tools
            are pinned at once.

    Raises:
        UserError: The file is invalid, or cannot be read.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, on_change: OnChange = "warn"
    ) -> None:
        if on_change not in get_args(OnChange):
            raise UserValueError(
                "ToolPins(on_change=...) expects 'warn', 'ask' or 'block', "
                f"got {describe_value(on_change)}."
            )
        self.on_change: OnChange = on_change
        self.path = None if path is None else Path(path).expanduser()
        self._memory: _Servers = {}
        self._last_checked: _Servers = {}
        with _LOCK:
            self._load()

    def check(self, server: str, tools: Sequence[Mapping[str, Any]]) -> list[PinChange]:
        """Compare all tools of a server with their pins; pin the tools of an unknown server.

        Args:
            server: The name of the server.
            tools: All tools of the server, as in a result of `tools/list`.

        Returns:
            The differences, sorted by the names of the tools.

        Raises:
            UserError: The file is invalid, or cannot be read or written.
        """
        current = _pins_of(tools)
        with _LOCK:
            self._last_checked[server] = current
            servers = self._load()
            pinned = servers.get(server)
            if not pinned:
                if current:
                    self._save({**servers, server: current})
                return []
            changes = _differences(server, pinned, current)
            added = {c.tool: current[c.tool] for c in changes if c.kind == "added"}
            if added and self.on_change == "warn":
                self._save({**servers, server: {**pinned, **added}})
            return changes

    def approve(
        self,
        server: str,
        tool: str | None = None,
        current: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Pin the current definitions of tools.

        Args:
            server: The name of the server.
            tool: The name of the tool on the server; `None` for all tools. The pin of a removed
                tool is deleted.
            current: All tools of the server; by default those of the last check.

        Raises:
            UserError: The tools of the server were not checked, or the tool is unknown.
        """
        with _LOCK:
            now = self._last_checked.get(server) if current is None else _pins_of(current)
            if now is None:
                raise UserKeyError(
                    f"The tools of MCP server {server!r} have not been checked in this process, so "
                    "they cannot be approved. Connect to the server first, pass `current=`, or "
                    "call forget() to trust the next list."
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
        """Delete the pins of a server, so that the next list of its tools is trusted.

        Returns:
            Whether the server had pins.
        """
        with _LOCK:
            servers = dict(self._load())
            self._last_checked.pop(server, None)
            pins = servers.pop(server, None)
            if pins is not None:
                self._save(servers)
            return bool(pins)

    def pinned(self, server: str) -> dict[str, str]:
        """Return the pinned fingerprints of a server's tools, by name."""
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
            raise _invalid_file(self.path, str(error)) from None
        except OSError as error:
            raise UserError(
                f"The pins of MCP tools in {self.path} cannot be read: {error.strerror}. "
                "Make the file readable, or use another path."
            ) from error
        return _parse(self.path, text)

    def _save(self, servers: _Servers) -> None:
        stored = {server: pins for server, pins in servers.items() if pins}
        if self.path is None:
            self._memory = stored
            return
        try:
            write_atomically(self.path, _format({"version": VERSION, "servers": stored}))
        except OSError as error:
            raise UserError(
                f"The pins of MCP tools cannot be written to {self.path}: {error.strerror}. "
                "Make its folder writable, or use another path."
            ) from error


_Pin: TypeAlias = dict[str, Any]
_Pins: TypeAlias = dict[str, _Pin]
_Servers: TypeAlias = dict[str, _Pins]

_LOCK = threading.Lock()
"""Protects reading and then writing a file. All instances share it: writes are short and rare."""


# --- fingerprints

_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_DESCRIPTION_LENGTH = 200
_SHORT_HASH = 16
_MAX_PROPERTY_NAME = 64


def _pins_of(tools: Iterable[Mapping[str, Any]]) -> _Pins:
    pins: _Pins = {}
    for tool in tools:
        name: Any = tool.get("name")
        if isinstance(name, str) and name not in pins:  # the first of two equal names is used
            pins[name] = _pin(tool)
    return pins


def _pin(tool: Mapping[str, Any]) -> _Pin:
    description: Any = tool.get("description")
    text = description if isinstance(description, str) else ""
    return {
        "hash": fingerprint(tool),
        "description": clean_text(text, len(text))[0][:_DESCRIPTION_LENGTH],
        "parts": {path: _digest(part)[:_SHORT_HASH] for path, part in _parts(tool).items()},
    }


def _parts(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Split a definition into parts that are hashed on their own, to report what has changed."""
    parts = {key: tool[key] for key in _FIELDS[1:] if tool.get(key) is not None}
    schema: Any = parts.get("inputSchema")
    properties: Any = cast("Any", schema).get("properties") if isinstance(schema, dict) else None
    if isinstance(properties, dict):
        named = cast("dict[str, Any]", properties)
        rest = {name: value for name, value in named.items() if len(name) > _MAX_PROPERTY_NAME}
        parts["inputSchema"] = {**schema, "properties": rest}
        for name in named.keys() - rest.keys():
            parts[f"inputSchema.properties.{name}"] = named[name]
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


def _parse(path: Path, text: str) -> _Servers:
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid_file(path, str(error)) from None
    version: Any = cast("Any", content).get("version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise UserError(
            f"The pins of MCP tools in {path} were written by a newer version of agents-tools: "
            f"expected file version {VERSION}, got {version}. Update agents-tools, or use another "
            "path."
        )
    if version != VERSION:
        raise _invalid_file(path, "it has no version")
    servers = cast("dict[str, Any]", content).get("servers")
    for pins in _values(path, servers):
        for pin in _values(path, pins):
            _check_pin(path, pin)
    return cast("_Servers", servers)


def _values(path: Path, value: Any) -> Iterable[Any]:
    if not isinstance(value, dict):
        raise _invalid_file(path, f"expected an object, got {describe_value(value)}")
    return cast("dict[str, Any]", value).values()


_HASH = re.compile(r"[0-9a-f]{64}")


def _check_pin(path: Path, pin: Any) -> None:
    _values(path, pin)
    if not isinstance(pin.get("hash"), str) or not _HASH.fullmatch(pin["hash"]):
        raise _invalid_file(path, f"{describe_value(pin.get('hash'))} is not a fingerprint")
    if not all(isinstance(part, str) for part in _values(path, pin.setdefault("parts", {}))):
        raise _invalid_file(path, "a part of a fingerprint is not a string")


def _invalid_file(path: Path, reason: str) -> UserError:
    return UserError(
        f"The pins of MCP tools in {path} are invalid: {reason}. Restore the file, or delete it to "
        "trust the tools that the servers list next."
    )


def _format(content: dict[str, Any]) -> str:
    text = json.dumps(content, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    # Escape invisible characters, so that a person who reads the file sees them.
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def write_atomically(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Write a file completely or not at all.

    Args:
        path: The path of the file, whose folder is created.
        text: The content.
        mode: The permissions; by default, only the owner can read it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
