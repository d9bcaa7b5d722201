"""The mark on tools whose definitions are sent to a model only after it has searched for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from agents_tools.tool.tool import FunctionTool

__all__ = ["PROVIDERS", "deferred", "is_deferred", "loaded"]

PROVIDERS = frozenset({"anthropic", "openai_responses"})
"""The wire formats of providers that have their own tool search."""

_OWN = "agents_tools"
_MARKS: dict[str, tuple[str, bool]] = {
    _OWN: ("deferred", True),
    "anthropic": ("defer_loading", True),
    "openai": ("defer_loading", True),
}
"""The mark in each metadata namespace; those of providers are merged into the request."""


def deferred(tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
    """Return a tool with the mark."""
    if is_deferred(tool):
        return tool
    metadata: dict[str, Any] = dict(tool.metadata)
    for namespace, (name, value) in _MARKS.items():
        metadata[namespace] = {**_mapping(metadata.get(namespace)), name: value}
    metadata["anthropic"].pop("cache_control", None)  # the provider rejects requests with both
    return tool.with_(metadata=metadata)


def is_deferred(tool: Any) -> bool:
    """Return whether a tool has the mark."""
    return bool(_mapping(getattr(tool, "metadata", {}).get(_OWN)).get("deferred"))


def loaded(tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
    """Return a tool without the mark; the same object for the same tool."""
    if not is_deferred(tool):
        return tool
    result = _loaded.get(tool)
    if result is None:
        metadata = dict(tool.metadata)
        for namespace, (name, _) in _MARKS.items():
            values = _mapping(metadata.pop(namespace, None))
            rest = {key: value for key, value in values.items() if key != name}
            if rest:
                metadata[namespace] = rest
        result = _loaded.setdefault(tool, tool.with_(metadata=metadata))
    return result


_loaded: WeakKeyDictionary[FunctionTool[..., Any], FunctionTool[..., Any]] = WeakKeyDictionary()


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
