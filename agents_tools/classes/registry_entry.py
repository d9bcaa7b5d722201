"""The entries of a tool registry, and the creation of tools from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias, cast

from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.naming import check_tool_name
from agents_tools.tool.tool import FunctionTool

__all__ = [
    "RegistryEntry",
    "create_entry",
    "create_tools",
    "describe_entry",
    "holders_of",
    "lazy_loader",
    "qualified_name",
    "to_function_tool",
]

AnyTool: TypeAlias = FunctionTool[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEntry:
    """A registered tool, or a registered function or class that creates tools."""

    name: str
    source: str
    tool: AnyTool | None = None
    item: Any = None
    make: Callable[..., Any] | None = None


def holders_of(tools: Iterable[Any]) -> list[Any]:
    """Return the objects to close for tools: their executors, or the tools themselves."""
    instances = (tool for tool in tools if not (tool is None or isinstance(tool, type)))
    return [getattr(tool, "executor", tool) for tool in instances]


def create_entry(tool: Any, item: Any) -> RegistryEntry:
    """Return the entry for a tool, or for an item under a name; see `ToolRegistry.register`."""
    if isinstance(tool, type):
        raise UserTypeError(
            f"A class has to be registered under a name: register({tool.__name__!r}, "
            f"{tool.__name__})."
        )
    if not isinstance(tool, str):
        converted = to_function_tool(tool)
        return RegistryEntry(
            name=converted.name, source=_source(tool, converted), tool=converted, item=tool
        )
    check_tool_name(tool)
    if item is None:
        raise UserTypeError(
            f"register({tool!r}) has no second argument: expected a tool, a class or a function."
        )
    if inspect.isclass(item):
        return RegistryEntry(
            name=tool, source=qualified_name(item), make=_creator_of(tool, item), item=item
        )
    if _is_tool(item):
        converted = to_function_tool(item)
        return RegistryEntry(name=tool, source=_source(item, converted), tool=converted, item=item)
    if callable(item):
        return RegistryEntry(name=tool, source=qualified_name(item), make=item, item=item)
    raise UserTypeError(
        f"{item!r:.80} cannot be registered as {tool!r}: expected a tool, a class with create() or "
        "a function that returns tools."
    )


def _is_tool(item: Any) -> bool:
    return isinstance(item, FunctionTool) or hasattr(item, "as_function_tool")


def _creator_of(name: str, kind: type[Any]) -> Callable[..., Any]:
    from agents_tools.classes.base_tool import BaseTool
    from agents_tools.classes.definition import ToolBase, ToolDefinition

    if issubclass(kind, BaseTool):
        return partial(_instance, kind)
    create = getattr(kind, "create", None)
    if create is None or (
        issubclass(kind, ToolBase)
        and create.__func__ in {ToolBase.create.__func__, ToolDefinition.create.__func__}  # type: ignore[attr-defined]
    ):
        raise UserTypeError(
            f"Class {kind.__name__} cannot be registered as {name!r}: it does not define create(). "
            "Write one that returns a list of tools, or register a tool."
        )
    return create


def _instance(kind: type[Any], /, **params: Any) -> list[Any]:
    params.pop("conv_state", None)
    return [kind(**params)]


def to_function_tool(item: Any) -> AnyTool:
    """Return a tool of any kind as a function tool.

    Raises:
        UserError: The item is not a tool.
    """
    if isinstance(item, FunctionTool):
        return cast("AnyTool", item)
    convert = getattr(item, "as_function_tool", None)
    if convert is None:
        raise _not_a_tool(item, repr(item)[:80])
    return convert()


def _not_a_tool(item: Any, source: str) -> UserTypeError:
    return UserTypeError(
        f"{source} is not a tool: got a value of type {type(item).__name__}. Create a tool with "
        "@function_tool, a ToolDefinition, a BaseTool, or Agent.as_tool()."
    )


def create_tools(entry: RegistryEntry, params: Mapping[str, Any], conv_state: Any) -> list[Any]:
    """Return the tools of an entry: the registered tool, or new ones.

    Raises:
        UserError: The parameters are invalid, or the creation fails.
    """
    if entry.tool is None:
        tools = _call(entry, params, conv_state)
        for tool in tools:
            if not _is_tool(tool):
                raise _not_a_tool(tool, f"An item from {entry.source}")
        return tools
    if params:
        raise UserValueError(
            f"Tool {entry.name!r} is registered as a tool ({entry.source}) and accepts no "
            f"parameters, got {', '.join(params)}. Register its class or a function "
            "instead."
        )
    return [entry.item]


def _call(entry: RegistryEntry, params: Mapping[str, Any], conv_state: Any) -> list[Any]:
    make = cast("Callable[..., Any]", entry.make)
    arguments = dict(params)
    if "conv_state" in arguments:
        raise UserValueError(
            f"Tool {entry.name!r} has conv_state as a parameter. Pass it to resolve() instead."
        )
    try:
        signature = _signature(make)
    except TypeError:  # a callable without a hash
        signature = _signature.__wrapped__(make)
    if signature is None:
        raise UserTypeError(
            f"The parameters of {entry.source} cannot be read. Register a Python function."
        )
    accepted = signature.parameters
    if "conv_state" in accepted or any(parameter.kind is _ANY for parameter in accepted.values()):
        arguments.setdefault("conv_state", conv_state)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise UserTypeError(
            f"Tool {entry.name!r} cannot be created with these parameters: {error}. "
            f"{entry.source} accepts {', '.join(accepted) or 'none'}."
        ) from None
    try:
        tools = make(**arguments)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"Tool {entry.name!r} cannot be created: {entry.source} failed with "
            f"{type(error).__name__}: {error}"
        ) from error
    if isinstance(tools, Sequence) and not isinstance(tools, (str, bytes)):
        return list(cast("Sequence[Any]", tools))
    raise UserTypeError(
        f"Tool {entry.name!r} cannot be created: expected a list of tools from {entry.source}, got "
        f"{type_with_article(tools)}."
    )


@lru_cache(maxsize=256)
def _signature(make: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(make)
    except (TypeError, ValueError):
        return None


_ANY = inspect.Parameter.VAR_KEYWORD


def lazy_loader(load: Callable[[], Any], value: str) -> Callable[..., Any]:
    """Return a function that loads an entry point and creates its tools."""

    def make(*, conv_state: Any = None, **params: Any) -> Any:
        try:
            item = load()
        except Exception as error:
            raise UserError(f"{value} cannot be loaded: {type(error).__name__}: {error}") from error
        named = value.rpartition(":")[2].rpartition(".")[2]
        return create_tools(create_entry(named, item), params, conv_state)

    return make


def _source(item: Any, tool: AnyTool) -> str:
    origin = tool.origin
    if origin.server is not None:
        return f"{origin.wire_name!r} of MCP server {origin.server!r}"
    return origin.place or qualified_name(type(item))


def qualified_name(item: Any) -> str:
    """Return the module and the name of a class or function."""
    module = getattr(item, "__module__", "?")
    return f"{module}.{getattr(item, '__qualname__', type(item).__name__)}"


def describe_entry(entry: RegistryEntry) -> dict[str, Any]:
    """Return the description of an entry as JSON values."""
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
