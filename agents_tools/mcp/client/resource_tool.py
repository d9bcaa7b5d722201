"""The tool with which a model reads the resources of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agents_tools.mcp._coerce import an_object, text_or_none
from agents_tools.mcp._sanitize import clean_text
from agents_tools.mcp.client.adapter import is_app_page

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = ["resource_list", "resource_tool", "resource_tool_name"]

_NAME: Final = "read_resource"
_OTHER_NAME: Final = "read_server_resource"
_MAX_LISTED: Final = 50
"""The maximum number of resources in the description of the tool."""
_MAX_CHARACTERS: Final = 4_000
"""The maximum number of characters of the list in the description of the tool."""
_MAX_TEXT: Final = 200
"""The maximum number of characters of the description of one resource."""


def resource_tool_name(names: Collection[str]) -> str:
    """Return the name of the tool, in addition to the names of a server's own tools."""
    return _NAME if _NAME not in names else _OTHER_NAME


def resource_tool(
    server: str,
    name: str,
    resources: Sequence[Mapping[str, Any]],
    templates: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the definition of the tool, in the format of `tools/list`.

    The description lists the resources. If they are too many, the model can request the whole list
    by leaving out the URI.

    Args:
        server: The name of the server.
        name: The name of the tool, among those of the server.
        resources: The resources as the server lists them.
        templates: The resource templates as the server lists them.
    """
    lines: list[str] = []
    size = 0
    entries = _entries(resources, templates)
    for line in entries[:_MAX_LISTED]:
        size += len(line) + 1
        if size > _MAX_CHARACTERS:
            break
        lines.append(line)
    left_out = len(entries) - len(lines)
    if left_out:
        lines.append(f"… and {left_out} more: leave out the URI to list all of them.")
    shown = "\n".join(lines) or "(The server lists none.)"
    uri = "The URI of the resource. In a template, replace each part in braces."
    if left_out:
        uri += " Leave it out to list all resources."
    return {
        "name": name,
        "description": f"Read a resource of the MCP server {server!r}. Resources:\n{shown}",
        "inputSchema": {
            "type": "object",
            "properties": {"uri": {"type": "string", "description": uri}},
            "required": [] if left_out else ["uri"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True},
    }


def resource_list(
    resources: Iterable[Mapping[str, Any]], templates: Iterable[Mapping[str, Any]]
) -> str:
    """Return all resources as text, one on each line."""
    return "\n".join(_entries(resources, templates)) or "The server lists no resources."


def _entries(
    resources: Iterable[Mapping[str, Any]], templates: Iterable[Mapping[str, Any]]
) -> list[str]:
    listed = [(one.get("uri"), one) for one in resources]
    listed += [(one.get("uriTemplate"), one) for one in templates]
    return [
        _entry(uri, one) for uri, one in listed if isinstance(uri, str) and _is_for_models(uri, one)
    ]


def _is_for_models(uri: str, listed: Mapping[str, Any]) -> bool:
    """Return whether a resource is neither a page of an app nor for users only."""
    audience: object = an_object(listed.get("annotations")).get("audience")
    return not is_app_page(uri, listed.get("mimeType")) and audience != ["user"]


def _entry(uri: str, listed: Mapping[str, Any]) -> str:
    kind = text_or_none(listed.get("mimeType"))
    about = text_or_none(listed.get("description") or listed.get("title") or listed.get("name"))
    line = f"- {uri}{f' ({kind})' if kind else ''}{f': {about}' if about else ''}"
    return clean_text(" ".join(line.split()), len(uri) + _MAX_TEXT)[0]
