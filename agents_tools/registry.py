"""Tools by name: `ToolRegistry`, and the registry that everybody shares."""

from __future__ import annotations

import fnmatch
import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from agents_tools.action import Identities, close_executors
from agents_tools.errors import UserError, UserKeyError, UserTypeError, UserValueError
from agents_tools.tool import FunctionTool, check_tool_name

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
"""The group of entry points by which other packages offer tools."""


class ToolSpec(BaseModel):
    """Which tool to make, and with what.

    Attributes:
        name: The name it is registered under.
        params: What it is configured with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    params: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("name")
    @classmethod
    def validate_name(cls, name: str) -> str:
        """Refuse an empty name."""
        if not name.strip():
            raise ValueError("the name of a tool cannot be empty")
        return name

    @field_validator("params", mode="before")
    @classmethod
    def validate_params(cls, params: Any) -> Any:
        """Take `None` as no parameters."""
        return {} if params is None else params


Tool = ToolSpec
"""The name of `ToolSpec` in programs written for OpenHands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryChange:
    """What has changed in a registry.

    Attributes:
        added: The names that are new.
        removed: The names that are gone.
        replaced: The names that mean something else now.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """What is registered under a name: a tool, or what makes tools."""

    name: str
    source: str
    tool: AnyTool | None = None
    given: Any = None
    make: Callable[..., Any] | None = None


class ToolRegistry:
    """Tools by name, and what makes tools by name.

    All methods may be called from any thread; `register_many` is all or nothing.
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.RLock()
        self._listeners: dict[object, Callable[[RegistryChange], object]] = {}
        self._held = Identities()
        self._tools: tuple[AnyTool, ...] | None = None

    def __repr__(self) -> str:
        """Show the first names."""
        names = self.get_tool_names()
        more = ", …" if len(names) > 5 else ""  # noqa: PLR2004 - what fits in a line
        return f"<ToolRegistry of {len(names)}: {', '.join(names[:5])}{more}>"

    def __len__(self) -> int:
        """Count the names."""
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        """Tell whether a name is registered."""
        return name in self._entries

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what it has made."""
        self.close()

    # --- putting in and taking out

    def register(self, tool: Any, item: Any = None, /, *, replace: bool = False) -> None:
        """Register a tool, or under a name a tool, a class of tools or a function that makes some.

        Args:
            tool: A tool of any kind; or the name for what follows.
            item: A tool, which is given as it is and takes no parameters; a class whose
                `create(**params, conv_state=...)` makes tools; or a function
                `(**params, conv_state=...)` that does.
            replace: Whether it takes the place of what has the name.

        Raises:
            UserError: The name is taken, or what is given is no tool and makes none.
        """
        self._put([_entry(tool, item)], replace=replace)

    def register_many(self, tools: Iterable[Any], *, replace: bool = False) -> None:
        """Register several tools, or none of them where one is refused.

        Args:
            tools: Tools, or pairs of a name and what `register` takes under one.
            replace: Whether they take the places of what has their names.

        Raises:
            UserError: As `register`; nothing is registered then.
        """
        pairs = [cast("tuple[Any, Any]", one if isinstance(one, tuple) else (one, None))
                 for one in tools]  # fmt: skip
        self._put([_entry(*pair) for pair in pairs], replace=replace)

    def _put(self, entries: Sequence[_Entry], *, replace: bool) -> None:
        with self._lock:
            fresh: dict[str, _Entry] = {}
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
                self._hold([self._entries[name].given])
            self._entries.update(fresh)
            self._tools = None
        added = tuple(name for name in fresh if name not in replaced)
        self._tell(RegistryChange(added=added, replaced=replaced))

    def unregister(self, name: str) -> bool:
        """Take a name out; one that is not there is no error.

        Args:
            name: The name.

        Returns:
            Whether it was there.
        """
        with self._lock:
            found = self._entries.pop(name, None)
            self._tools = None
        if found is None:
            return False
        self._tell(RegistryChange(removed=(name,)))
        return True

    def subscribe(self, callback: Callable[[RegistryChange], object]) -> Callable[[], None]:
        """Call a function after each change.

        Args:
            callback: Called with the change, in the thread that made it. What it raises is logged.

        Returns:
            What ends the subscription.
        """
        key = object()
        with self._lock:
            self._listeners[key] = callback

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def _tell(self, change: RegistryChange) -> None:
        with self._lock:
            listeners = list(self._listeners.values())
        for listener in listeners:
            try:
                listener(change)
            except Exception:  # whoever listens never breaks a registry
                logger.exception("A listener failed on a change of the tools.")

    # --- looking in

    def get_tool(self, name: str) -> AnyTool | None:
        """Give the tool of a name; `None` where there is none, or only what makes tools.

        Args:
            name: The name.
        """
        entry = self._entries.get(name)
        return None if entry is None else entry.tool

    def get_all_tools(self) -> list[AnyTool]:
        """Give the tools, in the order of their registration."""
        with self._lock:
            return [entry.tool for entry in self._entries.values() if entry.tool is not None]

    def get_tools(self) -> tuple[AnyTool, ...]:
        """Give the tools, for agents and toolsets; the same tuple again while nothing changes."""
        with self._lock:
            if self._tools is None:
                self._tools = tuple(self.get_all_tools())
            return self._tools

    def get_tool_names(self) -> list[str]:
        """Give the names, in the order of their registration."""
        with self._lock:
            return list(self._entries)

    def find(self, pattern: str) -> list[str]:
        """Give the names that match a pattern.

        Args:
            pattern: A name, with `*` and `?` for what is open: `file_*`.
        """
        return fnmatch.filter(self.get_tool_names(), pattern)

    def get_tool_specs(self, provider: str = "openai_chat") -> list[dict[str, Any]]:
        """Describe the tools for a provider.

        Args:
            provider: `openai_chat`, `openai_responses`, `anthropic`, `gemini`, `bedrock` or `mcp`.

        Raises:
            UserError: There is no such provider.
        """
        from agents_tools.wire._project import project

        return [project(tool, provider).wire for tool in self.get_all_tools()]

    def get_mcp_tools(self) -> list[AnyTool]:
        """Give the tools of MCP servers."""
        return [tool for tool in self.get_all_tools() if tool.origin.server is not None]

    def get_builtin_tools(self) -> list[AnyTool]:
        """Give the tools that are not those of MCP servers."""
        return [tool for tool in self.get_all_tools() if tool.origin.server is None]

    def get_tools_by_server(self, server_name: str) -> list[AnyTool]:
        """Give the tools of one MCP server.

        Args:
            server_name: The name of the server.
        """
        return [tool for tool in self.get_all_tools() if tool.origin.server == server_name]

    def get_mcp_server_names(self) -> list[str]:
        """Give the names of the MCP servers that have tools here, sorted."""
        return sorted({tool.origin.server for tool in self.get_mcp_tools() if tool.origin.server})

    def snapshot(self) -> dict[str, Any]:
        """Describe everything that is registered, as JSON values, for a client that shows it."""
        with self._lock:
            entries = list(self._entries.values())
        return {"tools": [_described(entry) for entry in entries]}

    # --- making tools

    def resolve(self, spec: ToolSpec | str, conv_state: Any = None) -> list[AnyTool]:
        """Give the tools that a specification asks for.

        What was registered as a tool is given as it is. Of classes and functions new tools are
        made, whose executors `close` closes.

        Args:
            spec: The specification; or a name, or a pattern of names.
            conv_state: The state of the conversation that they are for.

        Raises:
            UserError: There is no such name, the parameters do not fit, or what is registered
                fails to make tools.
        """
        made = self.make(spec, conv_state)
        self._hold(made)
        return [_function_tool(one) for one in made]

    def make(self, spec: ToolSpec | str, conv_state: Any = None) -> list[Any]:
        """Give the tools that a specification asks for, of the kind they were registered as.

        As `resolve`, but class-based tools stay what they are, and the caller closes them.

        Args:
            spec: The specification; or a name, or a pattern of names.
            conv_state: The state of the conversation that they are for.

        Raises:
            UserError: As `resolve`.
        """
        wanted = ToolSpec(name=spec) if isinstance(spec, str) else spec
        if not isinstance(wanted, ToolSpec):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(f"A tool is resolved by a ToolSpec or a name, not by {spec!r:.80}.")
        entries = self._found(wanted.name)
        if entries is None:
            raise UserKeyError(self._unknown(wanted.name))
        made: list[Any] = []
        try:
            for entry in entries:
                made += _made(entry, wanted, conv_state)
        except BaseException:
            close_executors(_holders([one for one in made if not self._has(one)]))
            raise
        return made

    def _has(self, item: Any) -> bool:
        return any(entry.given is item for entry in self._entries.values())

    def _hold(self, tools: Iterable[Any]) -> None:
        """Remember what the tools hold, for as long as somebody has it."""
        for holder in _holders(tools):
            self._held.add(holder)

    def _found(self, name: str) -> list[_Entry] | None:
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None:
                return [entry]
            if not any(mark in name for mark in "*?["):
                return None
            return [self._entries[one] for one in self.find(name)] or None

    def _known_names(self) -> list[str]:
        return self.get_tool_names()

    def _unknown(self, name: str) -> str:
        import difflib

        names = self._known_names()
        near = difflib.get_close_matches(name, names, 3)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        known = ", ".join(names[:20]) or "none"
        return f"No tool is registered as {name!r}.{hint} Registered are: {known}."

    def close(self) -> None:
        """Close what its tools hold, registered ones and those it has made, once each."""
        with self._lock:
            given = [entry.given for entry in self._entries.values()]
        close_executors([*self._held.alive(), *_holders(given)])

    # --- what other packages offer

    def discover(self, group: str = ENTRY_POINTS) -> list[str]:
        """Register what installed packages offer; none of it is imported before it is resolved.

        Args:
            group: The group of entry points to look in.

        Returns:
            The names that are new; those that were registered before are left as they are.
        """
        from importlib.metadata import entry_points

        found: dict[str, _Entry] = {}
        for point in entry_points(group=group):
            source = f"{point.value} of package {point.dist.name if point.dist else '?'}"
            try:
                name = check_tool_name(point.name)
            except UserError as error:
                logger.warning("%s offers a tool that is left out: %s", source, error)
                continue
            found[name] = _Entry(name=name, source=source, make=_loading(point.load, point.value))
        with self._lock:
            fresh = [entry for name, entry in found.items() if name not in self._entries]
            self._entries.update({entry.name: entry for entry in fresh})
            self._tools = None
        names = [entry.name for entry in fresh]
        if names:
            self._tell(RegistryChange(added=tuple(names)))
        return names


# --- what is registered


def _holders(tools: Iterable[Any]) -> list[Any]:
    """Give what is to be closed for tools: their executors, or themselves."""
    instances = (tool for tool in tools if not (tool is None or isinstance(tool, type)))
    return [getattr(tool, "executor", tool) for tool in instances]


def _entry(tool: Any, item: Any) -> _Entry:
    if isinstance(tool, type):
        raise UserTypeError(
            f"A class is registered under a name: register({tool.__name__!r}, {tool.__name__})."
        )
    if not isinstance(tool, str):
        made = _function_tool(tool)
        return _Entry(name=made.name, source=_source(tool, made), tool=made, given=tool)
    check_tool_name(tool)
    if item is None:
        raise UserTypeError(
            f"register({tool!r}) lacks what is to be registered: a tool, a class or a function."
        )
    if inspect.isclass(item):
        return _Entry(name=tool, source=_place(item), make=_creating(tool, item), given=item)
    if _is_tool(item):
        made = _function_tool(item)
        return _Entry(name=tool, source=_source(item, made), tool=made, given=item)
    if callable(item):
        return _Entry(name=tool, source=_place(item), make=item, given=item)
    raise UserTypeError(
        f"{item!r:.80} cannot be registered as {tool!r}: give a tool, a class with create() or a "
        "function that makes tools."
    )


def _is_tool(item: Any) -> bool:
    return isinstance(item, FunctionTool) or hasattr(item, "as_function_tool")


def _creating(name: str, kind: type[Any]) -> Callable[..., Any]:
    from agents_tools.base_tool import BaseTool
    from agents_tools.definition import ToolBase, ToolDefinition

    if issubclass(kind, BaseTool):
        return partial(_instance, kind)
    create = getattr(kind, "create", None)
    if create is None or (
        issubclass(kind, ToolBase)
        and create.__func__ in {ToolBase.create.__func__, ToolDefinition.create.__func__}  # type: ignore[attr-defined]
    ):
        raise UserTypeError(
            f"Class {kind.__name__} cannot be registered as {name!r}: it has no create() of its "
            "own. Write one that returns a list with its tools, or register a tool."
        )
    return create


def _instance(kind: type[Any], /, **params: Any) -> list[Any]:
    params.pop("conv_state", None)
    return [kind(**params)]


def _function_tool(item: Any) -> AnyTool:
    if isinstance(item, FunctionTool):
        return cast("AnyTool", item)
    become = getattr(item, "as_function_tool", None)
    if become is None:
        raise _no_tool(item, repr(item)[:80])
    return become()


def _no_tool(item: Any, source: str) -> UserTypeError:
    return UserTypeError(
        f"{source} gives no tool, but a value of type {type(item).__name__}. Make one with "
        "@function_tool, a ToolDefinition, a BaseTool, or Agent.as_tool()."
    )


def _made(entry: _Entry, spec: ToolSpec, conv_state: Any) -> list[Any]:
    if entry.tool is None:
        made = _call(entry, spec.params, conv_state)
        for one in made:
            if not _is_tool(one):
                raise _no_tool(one, entry.source)
        return made
    if spec.params:
        raise UserValueError(
            f"Tool {entry.name!r} is registered as a tool ({entry.source}) and takes no "
            f"parameters; it got {', '.join(spec.params)}. Register its class or a function "
            "instead."
        )
    return [entry.given]


def _call(entry: _Entry, params: Mapping[str, Any], conv_state: Any) -> list[Any]:
    make = cast("Callable[..., Any]", entry.make)
    given = dict(params)
    if "conv_state" in given:
        raise UserValueError(
            f"Tool {entry.name!r} gets its conv_state from who resolves it, not as a parameter."
        )
    try:
        signature = _signature(make)
    except TypeError:  # a callable without a hash
        signature = _signature.__wrapped__(make)
    if signature is None:
        raise UserTypeError(f"{entry.source} does not say what parameters it takes.")
    accepted = signature.parameters
    if "conv_state" in accepted or any(one.kind is _ANY for one in accepted.values()):
        given.setdefault("conv_state", conv_state)
    try:
        signature.bind(**given)
    except TypeError as error:
        raise UserTypeError(
            f"Tool {entry.name!r} cannot be made with these parameters: {error}. "
            f"{entry.source} takes {', '.join(accepted) or 'none'}."
        ) from None
    try:
        made = make(**given)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"Tool {entry.name!r} cannot be made: {entry.source} failed with "
            f"{type(error).__name__}: {error}"
        ) from error
    if isinstance(made, Sequence) and not isinstance(made, (str, bytes)):
        return list(cast("Sequence[Any]", made))
    raise UserTypeError(
        f"Tool {entry.name!r} cannot be made: {entry.source} has to return a list of tools, and "
        f"gave a {type(made).__name__}."
    )


@lru_cache(maxsize=256)
def _signature(make: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(make)
    except (TypeError, ValueError):
        return None


_ANY = inspect.Parameter.VAR_KEYWORD


def _loading(load: Callable[[], Any], value: str) -> Callable[..., Any]:
    """Make what loads an entry point first, and then does what `register` would have it do."""

    def make(*, conv_state: Any = None, **params: Any) -> Any:
        try:
            item = load()
        except Exception as error:
            raise UserError(f"{value} cannot be loaded: {type(error).__name__}: {error}") from error
        named = value.rpartition(":")[2].rpartition(".")[2]
        return _made(_entry(named, item), ToolSpec(name=named, params=params), conv_state)

    return make


def _source(given: Any, tool: AnyTool) -> str:
    origin = tool.origin
    if origin.server is not None:
        return f"{origin.wire_name!r} of MCP server {origin.server!r}"
    return origin.place or _place(type(given))


def _place(item: Any) -> str:
    module = getattr(item, "__module__", "?")
    return f"{module}.{getattr(item, '__qualname__', type(item).__name__)}"


def _described(entry: _Entry) -> dict[str, Any]:
    tool = entry.tool
    if tool is None:
        return {"name": entry.name, "kind": "factory", "source": entry.source}
    hints = tool.annotations
    return {
        "name": entry.name,
        "kind": tool.origin.kind,
        "source": entry.source,
        "server": tool.origin.server,
        "description": tool.description,
        "params_json_schema": tool.params_json_schema,
        "output_json_schema": tool.output_json_schema,
        "annotations": None
        if hints is None
        else {
            "title": hints.title,
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent,
            "openWorldHint": hints.open_world,
        },
    }


# --- the registry that everybody shares

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
"""The built-in tools, found by name: importing this module imports none of them."""

_ALIASES = {
    "terminal": "execute_bash",
    "BashTool": "execute_bash",
    "file_editor": "str_replace_editor",
    "EditorTool": "str_replace_editor",
    **{place.partition(":")[2]: name for name, place in _BUILTIN.items()},
}
"""Other names that programs know them by."""


class _DefaultRegistry(ToolRegistry):
    """The shared registry; behind what is registered in it stand the built-in tools."""

    def _found(self, name: str) -> list[_Entry] | None:
        found = super()._found(name)
        if found is not None and name in self:
            return found
        own = _ALIASES.get(name, name)
        wanted = fnmatch.filter(_BUILTIN, own)
        return [*(found or []), *(_builtin(one) for one in wanted if one not in self)] or None

    def _known_names(self) -> list[str]:
        return list(dict.fromkeys([*self.get_tool_names(), *_BUILTIN]))


def _builtin(name: str) -> _Entry:
    module, _, kind = _BUILTIN[name].partition(":")
    found = getattr(import_module(f"agents_tools.builtin.{module}"), kind)
    return _Entry(name=name, source=_place(found), make=found.create)


default_registry: ToolRegistry = _DefaultRegistry()
"""The registry that `register_tool` and `resolve_tool` use."""


def register_tool(name: str, item: Any, *, replace: bool = False) -> None:
    """Register a tool, a class of tools or a function that makes some, in the shared registry.

    Args:
        name: The name; see `ToolRegistry.register` for the rest.
        item: What is registered.
        replace: Whether it takes the place of what has the name.

    Raises:
        UserError: The name is taken, or what is given is no tool and makes none.
    """
    default_registry.register(name, item, replace=replace)


def resolve_tool(spec: ToolSpec | str, conv_state: Any = None) -> list[AnyTool]:
    """Give the tools that a specification asks for, from the shared registry.

    The built-in tools are found there under their names, unless something else is registered.

    Args:
        spec: The specification; or a name, or a pattern of names.
        conv_state: The state of the conversation that they are for.

    Raises:
        UserError: There is no such name, or the parameters do not fit.
    """
    return default_registry.resolve(spec, conv_state)


def list_registered_tools() -> list[str]:
    """Give the names in the shared registry; the built-in ones are not among them."""
    return default_registry.get_tool_names()
