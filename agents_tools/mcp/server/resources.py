"""Resources of a server: data that clients read by its URI."""

from __future__ import annotations

import base64
import inspect
import json
import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from agents_tools.content.outputs import ToolOutputText, to_output
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.mcp._sdk import MODERN
from agents_tools.mcp.server.completion import Completer
from agents_tools.mcp.server.paging import page_of
from agents_tools.mcp.server.requests import INTERNAL_ERROR, INVALID_PARAMS, RequestError
from agents_tools.mcp.server.uri_template import UriTemplate
from agents_tools.schema.callables import name_of
from agents_tools.text.output import release_text
from agents_tools.tool.decorators import function_tool, streaming_tool
from agents_tools.tool.naming import valid_tool_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from agents_tools.mcp.server.completion import Complete
    from agents_tools.mcp.server.progress import Report
    from agents_tools.mcp.server.requests import MCPRequest
    from agents_tools.mcp.server.served_calls import ServedCalls
    from agents_tools.tool.question import Question
    from agents_tools.tool.tool import FunctionTool

__all__ = [
    "Resource",
    "ResourceHandlers",
    "ResourceSource",
    "Resources",
    "function_name",
    "resource",
    "tool_of",
]

_NOT_FOUND: Final = -32002
"""The code for a missing resource up to protocol version 2025-11-25."""
_APP_SCHEME: Final = "ui://"
_APP_TYPE: Final = "text/html;profile=mcp-app"
"""The media type of a page of the extension MCP Apps (2026-01-26)."""


Resources: TypeAlias = "Resource | Sequence[Resource] | ResourceSource"
"""A resource, several resources, or an object whose `get_resources()` returns the current ones."""


class ResourceSource(Protocol):
    """An object with the current resources of a server."""

    def get_resources(self) -> Sequence[Resource] | Awaitable[Sequence[Resource]]:
        """Return the current resources."""
        ...


class Resource:
    """Data that clients read by its URI. Create it with `resource` or `Resource.from_value`.

    Attributes:
        uri: The URI, or a template with names in braces.
        name: The name for programs.
        title: The name for people.
        description: What it contains.
        mime_type: The media type; `None` if it depends on the content.
        tool: The function that returns the content, with its schema and validation.
        metadata: Further fields of the protocol, such as `annotations`, `icons`, `size`, `_meta`.
    """

    def __init__(
        self,
        uri: str,
        tool: FunctionTool[..., Any],
        *,
        name: str,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        complete: Mapping[str, Complete] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._template = UriTemplate(uri)
        self._complete = dict(complete or {})
        self.uri = uri
        self.name = name
        self.title = title
        self.description = description
        self.mime_type = mime_type or (_APP_TYPE if uri.startswith(_APP_SCHEME) else None)
        self.tool = tool
        self.metadata = dict(metadata or {})

    @classmethod
    def from_value(
        cls,
        uri: str,
        value: object,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Resource:
        """Return a resource with a fixed content.

        Args:
            uri: The URI.
            value: Text, bytes, a value with a JSON form, or the `Path` of a file, which is read
                again at each request.
            name: The name for programs; by default the last part of the URI.
            title: The name for people.
            description: What it contains.
            mime_type: The media type; by default that of the file name or the content.
            metadata: Further fields of the protocol.

        Raises:
            UserError: The URI is not valid.
        """
        if isinstance(value, Path) and mime_type is None:
            mime_type = mimetypes.guess_type(value.name)[0]

        def read() -> Any:
            return value.read_bytes() if isinstance(value, Path) else value

        own_name = name or uri.rstrip("/").rpartition("/")[2] or uri
        return cls(
            uri,
            function_tool(read),
            name=own_name,
            title=title,
            description=description,
            mime_type=mime_type,
            metadata=metadata,
        )

    def __repr__(self) -> str:
        """Return the URI."""
        return f"<Resource {self.uri!r}>"

    @property
    def is_template(self) -> bool:
        """Whether the URI contains names in braces."""
        return bool(self._template.names)

    def build(self) -> Completer:
        """Build the schema, and compare its parameters with the names in the URI.

        Raises:
            UserError: The names differ, or the function cannot be described.
        """
        schema = self.tool.build().params_json_schema
        properties: dict[str, Any] = schema.get("properties") or {}
        names = set(self._template.names)
        required = set(schema.get("required", ()))
        if not names <= properties.keys() or required - names:
            raise UserValueError(
                f"Resource {self.uri!r} does not fit its function {self.tool.name!r}: expected a "
                f"parameter for each name in the URI, got {', '.join(properties) or 'none'}. Write "
                "each parameter without a default in braces in the URI."
            )
        return Completer(self.tool, self._complete, f"resource {self.uri!r}")

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values of the names in a URI; `None` if the URI is of another resource."""
        return self._template.match(uri)

    def describe(self) -> dict[str, Any]:
        """Return the entry in the list of resources or templates as protocol JSON."""
        fields = {
            "uriTemplate" if self.is_template else "uri": self.uri,
            "name": self.name,
            "title": self.title,
            "description": self.description or self.tool.description or None,
            "mimeType": self.mime_type,
        }
        return {key: value for key, value in fields.items() if value is not None} | self.metadata

    def contents(self, uri: str, value: object) -> list[dict[str, Any]]:
        """Return what the function returned, as the contents of a read result.

        Raises:
            UnserializableOutput: The value has no JSON form.
        """
        if isinstance(value, (bytes, bytearray, memoryview)):
            return [self._content(uri, bytes(cast("Any", value)), None)]
        output = to_output(value)
        if isinstance(output, str):
            is_text = isinstance(value, str) or value is None
            return [self._content(uri, output, "text/plain" if is_text else "application/json")]
        contents: list[dict[str, Any]] = []
        for block in output:
            if isinstance(block, ToolOutputText):
                contents.append(self._content(uri, block.text, "text/plain"))
            elif block.data is not None:
                contents.append(self._content(uri, block.data, block.mime_type))
            else:
                contents.append(self._content(uri, block.url or f"file-id:{block.file_id}", None))
        return contents

    def _content(self, uri: str, data: str | bytes, kind: str | None) -> dict[str, Any]:
        content: dict[str, Any] = {"uri": uri}
        mime_type = self.mime_type or kind
        if isinstance(data, bytes):
            text = _decoded(data) if (mime_type or "").startswith("text/") else None
            content["mimeType"] = mime_type or "application/octet-stream"
            data = text if text is not None else base64.b64encode(data)
        elif mime_type is not None:
            content["mimeType"] = mime_type
        if isinstance(data, bytes):
            content["blob"] = data.decode()
        else:
            content["text"] = release_text(data, to="program")
        if "_meta" in self.metadata:
            content["_meta"] = self.metadata["_meta"]
        return content


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def resource(
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    complete: Mapping[str, Complete] | None = None,
    run_in_thread: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Resource]:
    """Create a resource from a function that returns its content.

    ```python
    @resource("guide://{topic}")
    def guide(topic: str) -> str:
        \"\"\"A guide to a topic.\"\"\"
        return f"All about {topic}."
    ```

    The function is read and called like that of a `function_tool`: its parameters are validated and
    converted, it can take a `ToolContext`, ask, report progress and, as a generator, yield events.
    It returns text, bytes, a value with a JSON form, a content block, or a list of blocks.

    Args:
        uri: The URI. Names in braces are parameters: `{id}` stands for one part of the path,
            `{path*}` for any text. The values are percent-decoded.
        name: The name for programs; by default that of the function.
        title: The name for people.
        description: What it contains; by default the description of the docstring.
        mime_type: The media type; by default that of the content. A `ui://` resource is a page of
            MCP Apps (`text/html;profile=mcp-app`).
        complete: Functions that complete parameters, by name; see `prompt`.
        run_in_thread: Whether a sync function runs in a worker thread.
        metadata: Further fields of the protocol, such as `annotations`, `icons`, `size`, `_meta`.

    Raises:
        UserError: The URI or the function is not valid.
    """
    UriTemplate(uri)

    def create(func: Callable[..., Any]) -> Resource:
        own_name = name or function_name(func)
        return Resource(
            uri,
            tool_of(func, own_name, description=description, run_in_thread=run_in_thread),
            name=own_name,
            title=title,
            description=description,
            mime_type=mime_type,
            complete=complete,
            metadata=metadata,
        )

    return create


def function_name(func: Callable[..., Any]) -> str:
    """Return the name of a function, for a resource or a prompt.

    Raises:
        UserTypeError: It is not a function, or has no name.
    """
    name = name_of(func) if callable(func) else repr(func)
    if not callable(func) or name == "<lambda>":
        got = "a lambda" if callable(func) else f"{name:.60}"
        raise UserTypeError(f"Expected a function with a name, got {got}. Define it with def.")
    return name


def tool_of(
    func: Callable[..., Any], name: str, *, description: str | None, run_in_thread: bool
) -> FunctionTool[..., Any]:
    """Return the tool of a function; a generator function becomes a streaming tool."""
    name = valid_tool_name(name)
    if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
        return streaming_tool(func, name_override=name, description_override=description)
    return function_tool(
        func,
        name_override=name,
        description_override=description,
        run_in_thread=run_in_thread,
        output_schema=False,
    )


class ResourceHandlers:
    """Handlers for listing and reading the resources of a server.

    Args:
        resources: The resources, or an object whose `get_resources()` returns them.
        calls: Performs the calls.
        page_size: The number of resources on one page.

    Raises:
        UserError: Two resources have the same URI, or one is not valid.
    """

    def __init__(self, resources: Resources, calls: ServedCalls, *, page_size: int) -> None:
        self.source: Any = resources
        self._calls = calls
        self._page_size = page_size
        self._by_uri: dict[str, Resource] = {}
        self._completers: dict[str, Completer] = {}
        self.is_dynamic = hasattr(resources, "get_resources")
        if not self.is_dynamic:
            self._set(resources)

    async def resources(self) -> dict[str, Resource]:
        """Return the current resources by URI, in order."""
        if self.is_dynamic:
            found = self.source.get_resources()
            self._set(await found if inspect.isawaitable(found) else found)
        return self._by_uri

    def _set(self, resources: Any) -> None:
        by_uri: dict[str, Resource] = {}
        items = [resources] if isinstance(resources, Resource) else list(resources)
        for one in items:
            if not isinstance(one, Resource):
                raise UserTypeError(
                    f"resources= expects resources, got {one!r:.80}. Use @resource(uri) or "
                    "Resource.from_value(uri, value)."
                )
            if by_uri.setdefault(one.uri, one) is not one:
                raise UserValueError(f"Two of the resources to serve have the URI {one.uri!r}.")
        self._completers = {
            uri: self._completers[uri] if self._by_uri.get(uri) is one else one.build()
            for uri, one in by_uri.items()
        }
        self._by_uri = dict(sorted(by_uri.items()))

    @property
    def has_completion(self) -> bool:
        """Whether a parameter of a resource can be completed."""
        return self.is_dynamic or any(one.has_values for one in self._completers.values())

    async def list(self, cursor: str | None, *, templates: bool) -> dict[str, Any]:
        """Return one page of `resources/list` or `resources/templates/list`.

        Raises:
            RequestError: This server did not issue the cursor.
        """
        known = await self.resources()
        uris = [uri for uri, one in known.items() if one.is_template is templates]
        page, next_cursor = page_of(uris, cursor, self._page_size)
        key = "resourceTemplates" if templates else "resources"
        result: dict[str, Any] = {key: [known[uri].describe() for uri in page]}
        if next_cursor is not None:
            result["nextCursor"] = next_cursor
        return result

    async def read(
        self,
        uri: str,
        request: MCPRequest,
        report: Report | None,
        ask: Callable[[Question], Any] | None,
    ) -> dict[str, Any]:
        """Read a resource and return the result of `resources/read`.

        Args:
            uri: The URI.
            request: The request.
            report: Sends progress; `None` if the client has not requested any.
            ask: Sends questions to the client.

        Raises:
            RequestError: There is no such resource, or it cannot be read.
        """
        found, values = await self._find(uri)
        if found is None:
            code = INVALID_PARAMS if request.protocol_version >= MODERN else _NOT_FOUND
            text = f"Resource not found: {release_text(uri, limit=200)}"
            raise RequestError(text, code, {"uri": uri})
        outcome = await self._calls.perform(found.tool, json.dumps(values), request, report, ask)
        if outcome.error is not None:
            code = INVALID_PARAMS if outcome.status == "invalid_args" else INTERNAL_ERROR
            raise RequestError(
                self._calls.error_text(found.tool, outcome, outcome.error), code, {"uri": uri}
            ) from outcome.error
        return {"contents": found.contents(uri, outcome.value)}

    async def _find(self, uri: str) -> tuple[Resource | None, dict[str, str]]:
        known = await self.resources()
        fixed = known.get(uri)
        if fixed is not None and not fixed.is_template:
            return fixed, {}
        for one in known.values():
            values = one.match(uri) if one.is_template else None
            if values is not None:
                return one, values
        return None, {}

    async def completer(self, uri: str) -> Completer | None:
        """Return the completer of a template; `None` if there is no such template."""
        await self.resources()
        return self._completers.get(uri)
