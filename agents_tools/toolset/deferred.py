"""The mark on tools whose definitions a model is not to read before it has looked for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from agents_tools.tool.tool import FunctionTool

__all__ = ["PROVIDERS", "deferred", "is_deferred", "loaded"]

PROVIDERS = frozenset({"anthropic", "openai_responses"})
"""The wires whose providers search tools themselves."""

_OWN = "agents_tools"
_MARKS: dict[str, tuple[str, bool]] = {
    _OWN: ("deferred", True),
    "anthropic": ("defer_loading", True),
    "openai": ("defer_loading", True),
}
"""By metadata namespace: those of providers are merged into what the provider is told."""


def deferred(tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
    """Return a tool with the mark."""
    if is_deferred(tool):
        return tool
    metadata: dict[str, Any] = dict(tool.metadata)
    for namespace, (name, value) in _MARKS.items():
        metadata[namespace] = {**_mapping(metadata.get(namespace)), name: value}
    metadata["anthropic"].pop("cache_control", None)  # a request with both is refused
    return tool.with_(metadata=metadata)


def is_deferred(tool: Any) -> bool:
    """Return whether a tool has the mark."""
    return bool(_mapping(getattr(tool, "metadata", {}).get(_OWN)).get("deferred"))


def loaded(tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
    """Return a tool without the mark; always the same one for the same tool."""
    if not is_deferred(tool):
        return tool
    made = _loaded.get(tool)
    if made is None:
        metadata = dict(tool.metadata)
        for namespace, (name, _) in _MARKS.items():
            said = _mapping(metadata.pop(namespace, None))
            rest = {key: value for key, value in said.items() if key != name}
            if rest:
                metadata[namespace] = rest
        made = _loaded.setdefault(tool, tool.with_(metadata=metadata))
    return made


_loaded: WeakKeyDictionary[FunctionTool[..., Any], FunctionTool[..., Any]] = WeakKeyDictionary()


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
