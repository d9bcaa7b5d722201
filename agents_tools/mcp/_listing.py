"""What one server lists, sifted, and the names that models know its tools by."""

from __future__ import annotations

import hashlib
import weakref
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

from agents_tools.errors import UserError
from agents_tools.mcp._shapes import an_object, text_or_none
from agents_tools.mcp._untrusted import UnusableTool, clean_text, clean_tool, public_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.mcp.adapter import AnyTool
    from agents_tools.mcp.config import MCPServerConfig
    from agents_tools.mcp.connection import Connection
    from agents_tools.mcp.pins import PinChange

__all__ = ["Listing", "Taken", "sifted"]


class Listing:
    """What is known of one server: what it lists, what became of it, and what has changed."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.listed: dict[str, dict[str, Any]] = {}
        self.tools: dict[str, AnyTool] = {}
        self.skipped: dict[str, str] = {}
        self.findings: dict[str, list[str]] = {}
        self.changes: list[PinChange] = []
        self.asked: set[PinChange] = set()
        self.raw: tuple[list[dict[str, Any]], dict[str, str]] = [], {}

    @property
    def config(self) -> MCPServerConfig:
        return self.connection.config

    def keep(self, found: Mapping[str, dict[str, Any]]) -> None:
        """Take what can be used, as far as it is wanted."""
        self.listed = {n: wire for n, wire in found.items() if _is_wanted(self.config, n)}

    def name_tools(
        self, taken: Taken, make: Callable[[Listing, str, dict[str, Any]], AnyTool]
    ) -> None:
        """Make the tools, each under a name that nobody else has; what is as it was stays.

        Args:
            taken: Who has which name; what is named here is added.
            make: Makes a tool of what was listed, under a name.
        """
        wanted = public_names(self.config.name, [*self.listed], prefix=self.config.prefix)
        tools: dict[str, AnyTool] = {}
        for wire_name, wire in self.listed.items():
            tool = self.tools.get(wire_name)
            name = self._free(wire_name, wanted[wire_name] if tool is None else tool.name, taken)
            if tool is None or _WIRES.get(tool) != wire:
                try:
                    tool = make(self, name, wire)
                except UserError as error:
                    self.skipped[wire_name] = str(error)
                    continue
                _WIRES[tool] = wire
            taken[name] = self, wire_name
            tools[wire_name] = tool
        self.tools = tools

    def _free(self, wire_name: str, name: str, taken: Taken) -> str:
        """Give a name that nobody has: with the server's before it, or with a mark behind it."""
        config = self.config
        owner = (self, wire_name)
        if taken.get(name, owner) != owner and config.prefix is None:
            name = public_names(config.name, [wire_name], prefix=config.name)[wire_name]
        if taken.get(name, owner) != owner:
            mark = hashlib.sha256(f"{config.name}\0{wire_name}".encode()).hexdigest()[:8]
            name = f"{name[:55]}_{mark}"
        return name


Taken: TypeAlias = "dict[str, tuple[Listing, str]]"
"""Names that models know, with the server and the name there."""

_WIRES: weakref.WeakKeyDictionary[AnyTool, dict[str, Any]] = weakref.WeakKeyDictionary()
"""What each tool was made of."""


def sifted(
    tools: list[dict[str, Any]],
) -> tuple[dict[str, dict[str, Any]], dict[str, str], dict[str, list[str]]]:
    """Give the tools that can be used by their names, why others cannot, and what was cleaned."""
    found: dict[str, dict[str, Any]] = {}
    skipped: dict[str, str] = {}
    findings: dict[str, list[str]] = {}
    for number, tool in enumerate(tools):
        label = clean_text(text_or_none(tool.get("name")) or "", 128)[0] or f"(number {number})"
        try:
            clean = clean_tool(tool)
        except UnusableTool as error:
            skipped[label] = str(error)
            continue
        name: str = clean.wire["name"]
        if name in found:
            skipped[name] = "the server lists two tools of this name; the first one is used"
            continue
        if _needs_tasks(clean.wire):
            skipped[name] = "it can only be called through the tasks extension of the protocol"
            continue
        if clean.findings:
            findings[name] = list(clean.findings)
        found[name] = clean.wire
    return found, skipped, findings


def _is_wanted(config: MCPServerConfig, name: str) -> bool:
    if any(fnmatchcase(name, pattern) for pattern in config.deny):
        return False
    return config.allow is None or any(fnmatchcase(name, pattern) for pattern in config.allow)


def _needs_tasks(wire: Mapping[str, Any]) -> bool:
    return an_object(wire.get("execution")).get("taskSupport") == "required"
