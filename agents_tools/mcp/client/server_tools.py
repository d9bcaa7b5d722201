"""The usable tools of one server, and the names that models see."""

from __future__ import annotations

import hashlib
import weakref
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

from agents_tools.errors import MissingExtraError, UserError
from agents_tools.mcp._coerce import an_object, text_or_none
from agents_tools.mcp._sanitize import UnusableTool, clean_text, clean_tool, public_names
from agents_tools.mcp.client.resource_tool import resource_tool, resource_tool_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.mcp.client.adapter import AnyTool
    from agents_tools.mcp.client.connection import Connection
    from agents_tools.mcp.config import MCPServerConfig
    from agents_tools.mcp.pins import PinChange

__all__ = ["ServerTools", "UsedNames", "clean_tools"]


class ServerTools:
    """The tools of one server.

    Attributes:
        connection: The connection to the server.
        definitions: The definitions of the usable tools, by their names on the server, and of the
            tool that reads resources.
        reader: The name in `definitions` of the tool that reads resources; `None` without it.
        resources: The resources and the resource templates, as the server lists them.
        tools: The function tools, by their names on the server.
        skipped: The reasons why tools are left out, by their names.
        unvalidated: The reasons why the arguments of tools are not validated, by their names.
        findings: The changes of sanitized definitions, by the names of the tools.
        changes: The differences from the pinned tools.
        asked_changes: The differences that a person was asked about.
        last_list: The tools as the server last listed them, and why some cannot be called.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.definitions: dict[str, dict[str, Any]] = {}
        self.reader: str | None = None
        self.resources: tuple[list[dict[str, Any]], list[dict[str, Any]]] | None = None
        self.tools: dict[str, AnyTool] = {}
        self.skipped: dict[str, str] = {}
        self.unvalidated: dict[str, str] = {}
        self.findings: dict[str, list[str]] = {}
        self.changes: list[PinChange] = []
        self.asked_changes: set[PinChange] = set()
        self.last_list: tuple[list[dict[str, Any]], dict[str, str]] = [], {}

    @property
    def config(self) -> MCPServerConfig:
        """Return the configuration of the server."""
        return self.connection.config

    def set_definitions(self, tools: Mapping[str, dict[str, Any]]) -> None:
        """Set the definitions of the tools, without those that the configuration excludes."""
        self.definitions = {n: wire for n, wire in tools.items() if _is_included(self.config, n)}
        self.reader = None
        self.add_reader()

    def add_reader(self) -> None:
        """Add the tool that reads the resources, or replace it, if the resources are listed."""
        if self.reader is not None:
            del self.definitions[self.reader]
        if self.resources is not None:
            self.reader = resource_tool_name(self.definitions)
            self.definitions[self.reader] = resource_tool(
                self.config.name, self.reader, *self.resources
            )

    @property
    def reader_name(self) -> str | None:
        """The name that models see of the tool that reads resources."""
        tool = None if self.reader is None else self.tools.get(self.reader)
        return None if tool is None else tool.name

    def name_tools(
        self, used_names: UsedNames, create: Callable[[ServerTools, str, dict[str, Any]], AnyTool]
    ) -> None:
        """Create the tools with unique names; unchanged tools are reused.

        Args:
            used_names: The names in use; the method adds the names of these tools.
            create: Creates a tool from a definition, with a name. It validates the arguments
                unless the tool is in `unvalidated`.
        """
        self.unvalidated = {
            name: reason for name, reason in self.unvalidated.items() if name in self.definitions
        }
        preferred = public_names(self.config.name, [*self.definitions], prefix=self.config.prefix)
        tools: dict[str, AnyTool] = {}
        for wire_name, wire in self.definitions.items():
            tool = self.tools.get(wire_name)
            preferred_name = preferred[wire_name] if tool is None else tool.name
            name = self._unique_name(wire_name, preferred_name, used_names)
            if tool is None or _DEFINITIONS.get(tool) != wire:
                self.unvalidated.pop(wire_name, None)
                try:
                    tool = self._created(name, wire_name, wire, create)
                except UserError as error:
                    self.skipped[wire_name] = str(error)
                    continue
                _DEFINITIONS[tool] = wire
            used_names[name] = self, wire_name
            tools[wire_name] = tool
        self.tools = tools

    def _created(
        self,
        name: str,
        wire_name: str,
        wire: dict[str, Any],
        create: Callable[[ServerTools, str, dict[str, Any]], AnyTool],
    ) -> AnyTool:
        """Create a tool; without validation if its schema is not valid."""
        try:
            return create(self, name, wire)
        except MissingExtraError:
            raise
        except UserError as error:
            self.unvalidated[wire_name] = f"its arguments are not validated: {error}"
            return create(self, name, wire)

    def _unique_name(self, wire_name: str, name: str, used_names: UsedNames) -> str:
        """Return an unused name: add the server's name as prefix or a hash as suffix if needed."""
        config = self.config
        owner = (self, wire_name)
        if used_names.get(name, owner) != owner and config.prefix is None:
            name = public_names(config.name, [wire_name], prefix=config.name)[wire_name]
        if used_names.get(name, owner) != owner:
            suffix = hashlib.sha256(f"{config.name}\0{wire_name}".encode()).hexdigest()[:8]
            name = f"{name[:55]}_{suffix}"
        return name


UsedNames: TypeAlias = "dict[str, tuple[ServerTools, str]]"
"""The names that models see, with the server of each tool and its name on the server."""

_DEFINITIONS: weakref.WeakKeyDictionary[AnyTool, dict[str, Any]] = weakref.WeakKeyDictionary()
"""The definition that each tool was created from."""


def clean_tools(
    tools: list[dict[str, Any]],
) -> tuple[dict[str, dict[str, Any]], dict[str, str], dict[str, list[str]]]:
    """Sanitize listed tools; return the usable ones, why others are skipped, and the findings."""
    usable: dict[str, dict[str, Any]] = {}
    skipped: dict[str, str] = {}
    findings: dict[str, list[str]] = {}
    for number, tool in enumerate(tools):
        try:
            clean = clean_tool(tool)
        except UnusableTool as error:
            label = clean_text(text_or_none(tool.get("name")) or "", 128)[0]
            skipped[label or f"(number {number})"] = str(error)
            continue
        name: str = clean.wire["name"]
        if name in usable:
            skipped[name] = "the server lists two tools of this name; the first one is used"
            continue
        if _is_for_apps(clean.wire):
            skipped[name] = "it is for the user interface of the server only (_meta.ui.visibility)"
            continue
        if clean.findings:
            findings[name] = list(clean.findings)
        usable[name] = clean.wire
    return usable, skipped, findings


def _is_included(config: MCPServerConfig, name: str) -> bool:
    if any(fnmatchcase(name, pattern) for pattern in config.deny):
        return False
    return config.allow is None or any(fnmatchcase(name, pattern) for pattern in config.allow)


def _is_for_apps(wire: Mapping[str, Any]) -> bool:
    """Return whether only an app of the server can call a tool (MCP Apps, 2026-01-26)."""
    if "_meta" not in wire:
        return False
    visibility: object = an_object(an_object(wire["_meta"]).get("ui")).get("visibility")
    return isinstance(visibility, list) and "app" in visibility and "model" not in visibility
