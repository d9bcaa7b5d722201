"""`ToolRegistry`, which stores tools by name, and the default registry."""

from __future__ import annotations

import fnmatch
import logging
import threading
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from agents_tools.classes.action import InstanceKeys, close_executors
from agents_tools.classes.per_run import ToolFactory, shared_by_runs
from agents_tools.classes.registry_entry import (
    RegistryEntry,
    create_entry,
    create_tools,
    describe_entry,
    holders_of,
    lazy_loader,
    qualified_name,
    to_function_tool,
)
from agents_tools.errors import UserError, UserKeyError, UserTypeError, UserValueError
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "RegistryChange",
    "Tool",
    "ToolRegistry",
    "ToolSpec",
    "default_registry",
    "list_registered_tools",
    "register_tool",
    "resolve_tool",
]

logger = logging.getLogger("agents_tools")

AnyTool: TypeAlias = FunctionTool[..., Any]
ENTRY_POINTS = "agents_tools.tools"
"""The entry point group in which other packages declare tools."""


class ToolSpec(BaseModel):
    """The name of a registered tool, and the parameters to create it with.

    Attributes:
        name: The name under which the tool is registered.
        params: The parameters for the class or function that creates the tool.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    params: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("name")
    @classmethod
    def validate_name(cls, name: str) -> str:
        """Raise an error for an empty name."""
        if not name.strip():
            raise ValueError("the name of a tool cannot be empty")
        return name

    @field_validator("params", mode="before")
    @classmethod
    def validate_params(cls, params: object) -> Any:
        """Convert `None` to an empty mapping."""
        return {} if params is None else params

    def as_function_tools(self) -> list[AnyTool]:
        """Return the tools from the default registry, so that an agent accepts a specification.

        Raises:
            UserError: As for `ToolRegistry.resolve`.
        """
        return default_registry.resolve(self)


Tool = ToolSpec
"""The name of `ToolSpec` in programs written for OpenHands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryChange:
    """A change in a registry.

    Attributes:
        added: The names that were added.
        removed: The names that were removed.
        replaced: The names under which another tool is registered now.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


class ToolRegistry:
    """A registry of tools, and of classes and functions that create tools, by name.

    All methods are thread-safe. `register_many` registers either all of its tools or none.
    """

    def __init__(self) -> None:
        self._entries: dict[str, RegistryEntry] = {}
        self._lock = threading.RLock()
        self._listeners: dict[object, Callable[[RegistryChange], object]] = {}
        self._held = InstanceKeys()
        self._tools: tuple[AnyTool, ...] | None = None

    def __repr__(self) -> str:
        """Return the number of names and the first five."""
        names = self.get_tool_names()
        more = ", …" if len(names) > 5 else ""  # noqa: PLR2004 - what fits in a line
        return f"<ToolRegistry of {len(names)}: {', '.join(names[:5])}{more}>"

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        """Return whether a name is registered."""
        return name in self._entries

    def __enter__(self) -> Self:
        """Return the registry."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the tools that the registry has created."""
        self.close()

    # --- registration

    def register(self, tool: object, item: object = None, /, *, replace: bool = False) -> None:
        """Register a tool; or register a tool, a class or a function under a name.

        Args:
            tool: A tool of any kind; or the name for `item`.
            item: A tool, which is returned unchanged and accepts no parameters; a class whose
                `create(**params, conv_state=...)` returns tools; or a function
                `(**params, conv_state=...)` that returns tools.
            replace: Whether to replace an existing tool of the same name.

        Raises:
            UserError: The name is already registered, or the item cannot be registered.
        """
        self._put([create_entry(tool, item)], replace=replace)

    def register_many(self, tools: Iterable[Any], *, replace: bool = False) -> None:
        """Register several tools, or none of them if one is invalid.

        Args:
            tools: Tools, or pairs of a name and an item as in `register`.
            replace: Whether to replace existing tools of the same names.

        Raises:
            UserError: As for `register`; nothing is registered then.
        """
        pairs = [cast("tuple[Any, Any]", one if isinstance(one, tuple) else (one, None))
                 for one in tools]  # fmt: skip
        self._put([create_entry(*pair) for pair in pairs], replace=replace)

    def _put(self, entries: Sequence[RegistryEntry], *, replace: bool) -> None:
        with self._lock:
            fresh: dict[str, RegistryEntry] = {}
            for entry in entries:
                other = fresh.get(entry.name) or (
                    None if replace else self._entries.get(entry.name)
                )
                if other is not None:
                    raise UserValueError(
                        f"A tool named {entry.name!r} is registered already: {other.source}. "
                        f"{entry.source} cannot have the same name. Give one of them another "
                        "name, or pass replace=True."
                    )
                fresh[entry.name] = entry
            replaced = tuple(name for name in fresh if name in self._entries)
            for name in replaced:
                self._hold([self._entries[name].item])
            self._entries.update(fresh)
            self._tools = None
        added = tuple(name for name in fresh if name not in replaced)
        self._notify(RegistryChange(added=added, replaced=replaced))

    def unregister(self, name: str) -> bool:
        """Remove a name; an unknown name is ignored.

        Args:
            name: The name.

        Returns:
            Whether the name was registered.
        """
        with self._lock:
            entry = self._entries.pop(name, None)
            self._tools = None
        if entry is None:
            return False
        self._notify(RegistryChange(removed=(name,)))
        return True

    def subscribe(self, callback: Callable[[RegistryChange], object]) -> Callable[[], None]:
        """Call a function after each change.

        Args:
            callback: Called with the change, in the thread that made the change. Its exceptions
                are logged.

        Returns:
            A function that ends the subscription.
        """
        key = object()
        with self._lock:
            self._listeners[key] = callback

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def _notify(self, change: RegistryChange) -> None:
        with self._lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            try:
                listener(change)
            except Exception:  # a failing subscriber must not break the registry
                logger.exception("A subscriber of a tool registry failed to process a change.")

    # --- lookup

    def get_tool(self, name: str) -> AnyTool | None:
        """Return the tool of a name, or `None` if there is none or the entry creates tools.

        Args:
            name: The name.
        """
        entry = self._entries.get(name)
        return None if entry is None else entry.tool

    def get_all_tools(self) -> list[AnyTool]:
        """Return the tools, in the order of their registration."""
        with self._lock:
            return [entry.tool for entry in self._entries.values() if entry.tool is not None]

    def get_tools(self) -> tuple[AnyTool, ...]:
        """Return the tools for agents and toolsets; the same tuple until the registry changes."""
        with self._lock:
            if self._tools is None:
                self._tools = tuple(self.get_all_tools())
            return self._tools

    def get_tool_names(self) -> list[str]:
        """Return the names, in the order of their registration."""
        with self._lock:
            return list(self._entries)

    def find(self, pattern: str) -> list[str]:
        """Return the names that match a pattern.

        Args:
            pattern: A name with the wildcards `*` and `?`, such as `file_*`.
        """
        return fnmatch.filter(self.get_tool_names(), pattern)

    def get_tool_specs(self, provider: str = "openai_chat") -> list[dict[str, Any]]:
        """Return the tools in the format of a provider.

        Args:
            provider: `openai_chat`, `openai_responses`, `anthropic`, `gemini`, `bedrock` or `mcp`.

        Raises:
            UserError: The provider is unknown.
        """
        from agents_tools.wire.project import project

        return [project(tool, provider).wire for tool in self.get_all_tools()]

    def get_mcp_tools(self) -> list[AnyTool]:
        """Return the tools of MCP servers."""
        return [tool for tool in self.get_all_tools() if tool.origin.server is not None]

    def get_builtin_tools(self) -> list[AnyTool]:
        """Return the tools that are not from MCP servers."""
        return [tool for tool in self.get_all_tools() if tool.origin.server is None]

    def get_tools_by_server(self, server_name: str) -> list[AnyTool]:
        """Return the tools of one MCP server.

        Args:
            server_name: The name of the server.
        """
        return [tool for tool in self.get_all_tools() if tool.origin.server == server_name]

    def get_mcp_server_names(self) -> list[str]:
        """Return the sorted names of the MCP servers with registered tools."""
        return sorted({tool.origin.server for tool in self.get_mcp_tools() if tool.origin.server})

    def snapshot(self) -> dict[str, Any]:
        """Return a description of all entries as JSON values, for a client that displays them."""
        with self._lock:
            entries = list(self._entries.values())
        return {"tools": [describe_entry(entry) for entry in entries]}

    # --- creation of tools

    def resolve(
        self, spec: ToolSpec | str, conv_state: object = None, *, shared: bool = False
    ) -> list[AnyTool]:
        """Return the function tools for a specification.

        Registered tools are returned unchanged. Registered classes and functions create the tools
        now, for calls outside of runs, and again at the first call in each run, so that no state
        of a run is visible in another one. `close` closes all of them.

        Args:
            spec: The specification; or a name, or a pattern of names.
            conv_state: The state of the conversation that the tools are for.
            shared: Whether all runs share the tools that are created now.

        Raises:
            UserError: The name is unknown, the parameters are invalid, or the creation of a tool
                fails.
        """
        if shared:
            created = shared_by_runs(self.make(spec, conv_state))
            self._hold(created)
            return [to_function_tool(tool) for tool in created]
        wanted, entries = self._wanted(spec)
        factories: list[ToolFactory] = []
        tools: list[AnyTool] = []
        try:
            for entry in entries:
                create = partial(create_tools, entry, wanted.params, conv_state)
                if entry.tool is not None:
                    tools += map(to_function_tool, create())
                    continue
                factory = ToolFactory(create, source=entry.source, on_create=self._held.add)
                self._held.add(factory)
                factories.append(factory)
                tools += factory.function_tools()
        except BaseException:
            for factory in factories:
                factory.close()
            raise
        return tools

    def make(self, spec: ToolSpec | str, conv_state: object = None) -> list[Any]:
        """Return the tools for a specification, without converting them to function tools.

        Class-based tools are not converted, and the caller closes the tools.

        Args:
            spec: The specification; or a name, or a pattern of names.
            conv_state: The state of the conversation that the tools are for.

        Raises:
            UserError: As for `resolve`.
        """
        wanted, entries = self._wanted(spec)
        tools: list[Any] = []
        try:
            for entry in entries:
                tools += create_tools(entry, wanted.params, conv_state)
        except BaseException:
            close_executors(holders_of([tool for tool in tools if not self._has(tool)]))
            raise
        return tools

    def _wanted(self, spec: ToolSpec | str) -> tuple[ToolSpec, list[RegistryEntry]]:
        """Return a specification and the entries that it refers to."""
        wanted = ToolSpec(name=spec) if isinstance(spec, str) else spec
        if not isinstance(wanted, ToolSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                "The tool specification is invalid: expected a ToolSpec or a name, got "
                f"{spec!r:.80}."
            )
        entries = self._find_entries(wanted.name)
        if entries is None:
            raise UserKeyError(self._unknown_message(wanted.name))
        return wanted, entries

    def _has(self, item: Any) -> bool:
        return any(entry.item is item for entry in self._entries.values())

    def _hold(self, tools: Iterable[Any]) -> None:
        """Store weak references to the executors of tools, to close them later."""
        for holder in holders_of(tools):
            self._held.add(holder)

    def _find_entries(self, name: str) -> list[RegistryEntry] | None:
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None:
                return [entry]
            if not any(mark in name for mark in "*?["):
                return None
            return [self._entries[match] for match in self.find(name)] or None

    def _known_names(self) -> list[str]:
        return self.get_tool_names()

    def _unknown_message(self, name: str) -> str:
        import difflib

        names = self._known_names()
        near = difflib.get_close_matches(name, names, 3)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        known = ", ".join(names[:20]) or "none"
        return f"No tool is registered as {name!r}.{hint} Registered tools: {known}."

    def close(self) -> None:
        """Close the executors of the registered and of the created tools, each of them once."""
        with self._lock:
            items = [entry.item for entry in self._entries.values()]
        close_executors([*self._held.alive(), *holders_of(items)])

    # --- tools of other packages

    def discover(self, group: str = ENTRY_POINTS) -> list[str]:
        """Register the tools that installed packages declare; they are imported when resolved.

        Args:
            group: The group of the entry points.

        Returns:
            The names that were added; names that were registered before are not changed.
        """
        from importlib.metadata import entry_points

        entries: dict[str, RegistryEntry] = {}
        for point in entry_points(group=group):
            source = f"{point.value} of package {point.dist.name if point.dist else '?'}"
            try:
                name = check_tool_name(point.name)
            except UserError as error:
                logger.warning("The tool of entry point %s was skipped: %s", source, error)
                continue
            entries[name] = RegistryEntry(
                name=name, source=source, make=lazy_loader(point.load, point.value)
            )
        with self._lock:
            fresh = [entry for name, entry in entries.items() if name not in self._entries]
            self._entries.update({entry.name: entry for entry in fresh})
            self._tools = None
        names = [entry.name for entry in fresh]
        if names:
            self._notify(RegistryChange(added=tuple(names)))
        return names


# --- the default registry

_BUILTIN = {
    "execute_bash": "terminal:TerminalTool",
    "str_replace_editor": "file_editor:FileEditorTool",
    "glob": "glob:GlobTool",
    "grep": "grep:GrepTool",
    "think": "think:ThinkTool",
    "finish": "finish:FinishTool",
    "task_tracker": "task_tracker:TaskTrackerTool",
    "use_skill": "skill:SkillTool",
}
"""The modules and classes of the built-in tools, which are imported when resolved."""

_ALIASES = {
    "terminal": "execute_bash",
    "BashTool": "execute_bash",
    "file_editor": "str_replace_editor",
    "EditorTool": "str_replace_editor",
    **{place.partition(":")[2]: name for name, place in _BUILTIN.items()},
}
"""Other names of the built-in tools."""


class _DefaultRegistry(ToolRegistry):
    """The default registry, which also has the built-in tools."""

    def _find_entries(self, name: str) -> list[RegistryEntry] | None:
        entries = super()._find_entries(name)
        if entries is not None and name in self:
            return entries
        names = fnmatch.filter(_BUILTIN, _ALIASES.get(name, name))
        return [
            *(entries or []),
            *(_builtin(match) for match in names if match not in self),
        ] or None

    def _known_names(self) -> list[str]:
        return list(dict.fromkeys([*self.get_tool_names(), *_BUILTIN]))


def _builtin(name: str) -> RegistryEntry:
    module, _, kind = _BUILTIN[name].partition(":")
    tool_class = getattr(import_module(f"agents_tools.builtin.{module}"), kind)
    return RegistryEntry(name=name, source=qualified_name(tool_class), make=tool_class.create)


default_registry: ToolRegistry = _DefaultRegistry()
"""The registry that `register_tool` and `resolve_tool` use."""


def register_tool(name: str, item: object, *, replace: bool = False) -> None:
    """Register a tool, a class or a function in the default registry.

    Args:
        name: The name of the tool.
        item: A tool, or a class or function that creates tools; see `ToolRegistry.register`.
        replace: Whether to replace an existing tool of the same name.

    Raises:
        UserError: The name is already registered, or the item cannot be registered.
    """
    default_registry.register(name, item, replace=replace)


def resolve_tool(
    spec: ToolSpec | str, conv_state: object = None, *, shared: bool = False
) -> list[AnyTool]:
    """Return the function tools for a specification from the default registry.

    Their state belongs to a run; see `ToolRegistry.resolve`.

    The built-in tools are available under their names, unless another tool is registered there.

    Args:
        spec: The specification; or a name, or a pattern of names.
        conv_state: The state of the conversation that the tools are for.
        shared: Whether all runs share the tools.

    Raises:
        UserError: The name is unknown, or the parameters are invalid.
    """
    return default_registry.resolve(spec, conv_state, shared=shared)


def list_registered_tools() -> list[str]:
    """Return the names in the default registry, without those of the built-in tools."""
    return default_registry.get_tool_names()
