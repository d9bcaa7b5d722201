"""Convert tools of MCP servers to function tools, and their results to tool results."""

from __future__ import annotations

import binascii
import functools
import importlib
import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
)
from agents_tools.errors import AgentsToolsError, MissingExtraError, ToolError, UserError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._recorded_tasks import has_recorded_task
from agents_tools.schema.arguments import ArgumentReader
from agents_tools.schema.dialect import upgrade_dialect
from agents_tools.schema.results import result_faults
from agents_tools.text.output import release_text
from agents_tools.tool.failure import default_tool_error_function
from agents_tools.tool.records import ToolAnnotations, ToolOrigin
from agents_tools.tool.source import DescribedSource, ToolDescription, ToolSource
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agents_tools.schema.arguments import Arguments
    from agents_tools.tool.call import Call
    from agents_tools.tool.context import ToolContext

__all__ = ["MCPToolError", "create_source", "function_tool_of", "is_app_page", "result_of"]

logger = logging.getLogger("agents_tools.mcp")

AnyTool = FunctionTool[..., Any]
_PROTOCOL_PREFIX = "io.modelcontextprotocol/"
"""The prefix of the protocol's own metadata, which is left out of results."""


class MCPToolError(ToolError):
    """A tool of a server reported a failure; the message is the text of its result.

    Args:
        message: The text of the result.
        result: The complete result.
    """

    def __init__(self, message: str, *, result: ToolResult) -> None:
        super().__init__(message)
        self.result = result


def function_tool_of(
    wire: Mapping[str, Any],
    *,
    name: str,
    server: str,
    perform: Callable[[ToolContext[Any], dict[str, Any]], Awaitable[dict[str, Any]]],
    trusted: bool = False,
    validate_arguments: bool = True,
    reader_name: Callable[[], str | None] | None = None,
) -> AnyTool:
    """Create a function tool from a listed tool; see `create_source` for the arguments."""
    source, options = create_source(
        wire,
        name=name,
        server=server,
        perform=perform,
        trusted=trusted,
        validate_arguments=validate_arguments,
        reader_name=reader_name,
    )
    return FunctionTool.of_source(source, **options)


def create_source(
    wire: Mapping[str, Any],
    *,
    name: str,
    server: str,
    perform: Callable[[ToolContext[Any], dict[str, Any]], Awaitable[dict[str, Any]]],
    trusted: bool = False,
    validate_arguments: bool = True,
    reader_name: Callable[[], str | None] | None = None,
) -> tuple[ToolSource, dict[str, Any]]:
    """Return the source of a listed tool, and the options for `FunctionTool`.

    Args:
        wire: The tool as the server lists it.
        name: The name that models see.
        server: The name of the server.
        perform: Calls the tool on the server and returns the raw result.
        trusted: Whether the program trusts the annotations of the server.
        validate_arguments: Whether arguments are validated against the input schema.
        reader_name: Returns the name of the tool that reads resources of the server, for links.

    Raises:
        UserError: The input schema is not valid.
    """
    hints: Any = wire.get("annotations")
    title = wire.get("title") or (None if hints is None else an_object(hints).get("title"))
    # These fields are stored as options of the MCP export, so that the tool can be served again.
    extra = {key: wire[key] for key in ("title", "icons", "_meta", "execution") if key in wire}
    source = _ServerToolSource(
        wire,
        name=name,
        origin=ToolOrigin(kind="mcp", server=server, wire_name=wire["name"], trusted=trusted),
        perform=perform,
        validate=validate_arguments,
        reader_name=reader_name,
    )
    return source, {
        "strict_json_schema": False,
        "annotations": _annotations(hints, title),
        "metadata": {"mcp": extra} if extra else None,
        "failure_error_function": _failure_text,
    }


def _annotations(hints: Any, title: Any) -> ToolAnnotations | None:
    if hints is None and title is None:
        return None
    fields = an_object(hints)
    flags: dict[str, bool] = {
        key: fields[key]
        for key in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        if isinstance(fields.get(key), bool)
    }
    return ToolAnnotations(title=title if isinstance(title, str) else None, **flags)


def _failure_text(ctx: Any, error: Exception) -> str:
    """Return the error text for the model: the complete text if the server sent it."""
    return (
        str(error) if isinstance(error, MCPToolError) else default_tool_error_function(ctx, error)
    )


class _ServerToolSource(DescribedSource):
    """A tool that runs on a server."""

    def __init__(
        self,
        wire: Mapping[str, Any],
        *,
        name: str,
        origin: ToolOrigin,
        perform: Callable[[ToolContext[Any], dict[str, Any]], Awaitable[dict[str, Any]]],
        validate: bool,
        reader_name: Callable[[], str | None] | None,
    ) -> None:
        schema: dict[str, Any] = wire["inputSchema"]
        # What is valid without a dialect has no keywords of draft 4, which `modern` rewrites.
        is_valid = validate and "$schema" not in schema and _is_schema(schema)
        if not is_valid:
            schema = upgrade_dialect(schema)
        description = ToolDescription(wire.get("description") or "", schema)
        super().__init__(name, description, wire.get("outputSchema"), origin)
        self._perform = perform
        self._reader_name = reader_name
        self._validated_schema = schema if validate else {"type": "object"}
        self._reader: ArgumentReader | None = None
        if validate and not is_valid and not _is_schema(schema):
            # Raises an error with the invalid part.
            self._reader = ArgumentReader.of_schema(name, schema)

    @property
    def can_be_stopped(self) -> bool:
        """Return `False`: a server can ignore that a call was cancelled."""
        return False

    def parse(self, args_json: str) -> Arguments:
        """Validate arguments against the input schema.

        Raises:
            ModelBehaviorError: The arguments do not match it.
        """
        reader = self._reader
        if reader is None:
            reader = self._reader = self._compiled()
        return reader.parse(args_json)

    def _compiled(self) -> ArgumentReader:
        try:
            return ArgumentReader.of_schema(self.name, self._validated_schema)
        except MissingExtraError:
            raise
        except UserError as error:  # a part of it that its own schema does not check
            logger.warning("The arguments of tool %r are not validated. %s", self.name, error)
            return ArgumentReader.of_schema(self.name, {"type": "object"})

    async def has_call(self, call: Call) -> bool:
        """Return whether an earlier process has created a task for a call on this server."""
        return has_recorded_task(call, self._origin.server or "")

    async def run(self, call: Call) -> ToolResult:
        """Call the tool on the server, and read its result.

        Raises:
            MCPToolError: The server reported a failure.
        """
        arguments: Any = call.parsed
        raw = await self._perform(call.context, arguments.values())
        result = result_of(raw, validate=self._validate_output, reader_name=self._reader_name)
        if result.is_error:
            raise MCPToolError(_text_of(result), result=result)
        return result

    def _validate_output(self, structured: Any) -> list[str]:
        """Return the errors of a structured result against the output schema."""
        if self._output.json_schema is None:
            return []
        errors = result_faults(self.name, self._output.json_schema, structured)
        if errors:
            logger.warning(
                "The structured result of tool %r does not match its outputSchema: %s",
                self.name,
                "; ".join(errors),
            )
        return errors


def _is_schema(schema: dict[str, Any]) -> bool:
    """Return whether a JSON Schema is valid, without compiling it: tool lists can be long."""
    try:
        library, registry = _offline()
    except ImportError:
        return False
    try:
        return library.meta.is_valid(schema, registry=registry)
    except (ValueError, library.ReferencingError):  # its `$schema` is not known
        return False


@functools.cache
def _offline() -> tuple[Any, Any]:
    """Return the library that validates schemas, which is not loaded before the first tool.

    Returns:
        The library, and a registry with which it does not fetch the `$schema` that a server names.
    """
    library: Any = importlib.import_module("jsonschema_rs")
    return library, library.Registry([])


# --- results


def result_of(
    raw: Mapping[str, Any],
    *,
    validate: Callable[[Any], Sequence[str]] | None = None,
    reader_name: Callable[[], str | None] | None = None,
) -> ToolResult:
    """Convert the result of a call.

    Text, images, audio and embedded files become content blocks; links become text. The model
    receives the content, or the structured result if there is no content. Programs receive the
    structured result too, even if it does not match the output schema.

    Args:
        raw: The result as the server sent it.
        validate: Returns the errors of a structured result against the output schema.
        reader_name: Returns the name of the tool with which the model reads linked resources.
    """
    metadata: dict[str, Any] = {}
    content: Any = raw.get("content")
    if not isinstance(content, list):
        content = [] if content is None else [content]
    content = cast("list[Any]", content)
    converted: str | list[ContentBlock] | None = _plain_text(content)
    if converted is None:
        converted = _convert_blocks(content, metadata, reader_name)
    structured: Any = raw.get("structuredContent")
    is_error = raw.get("isError") is True
    if structured is not None and not is_error and validate is not None:
        errors = validate(structured)
        if errors:
            metadata["output_schema_faults"] = list(errors)
    meta = {
        k: v for k, v in an_object(raw.get("_meta")).items() if not k.startswith(_PROTOCOL_PREFIX)
    }
    if meta:
        metadata["_meta"] = meta
    known = ("content", "structuredContent", "isError", "_meta", "resultType")
    if (
        not content
        and structured is None
        and (rest := {k: v for k, v in raw.items() if k not in known})
    ):
        structured = rest  # unknown fields become the result if there is no other
    return ToolResult(
        content=None if not content and structured is not None else converted,
        structured=structured,
        metadata=metadata or None,
        is_error=is_error,
    )


def _plain_text(content: list[Any]) -> str | None:
    """Return the text of content that is only text, as most is; `None` for any other content."""
    texts: list[str] = []
    for item in content:
        if item.__class__ is not dict or len(item) != 2 or item.get("type") != "text":  # noqa: PLR2004
            return None
        text = item.get("text")
        if text.__class__ is not str:
            return None
        texts.append(text)
    return "\n".join(texts)


def _convert_blocks(
    content: list[Any], metadata: dict[str, Any], reader_name: Callable[[], str | None] | None
) -> str | list[ContentBlock]:
    """Return the blocks of content, or one text if all of them are text; add their metadata."""
    blocks: list[ContentBlock] = []
    reader = None if reader_name is None else reader_name()
    for item in content:
        block, details = _block(item)
        uri = an_object(details.get("resource_link")).get("uri")
        if reader is not None and isinstance(block, ToolOutputText) and _is_readable(uri):
            block = ToolOutputText(f"{block.text} [read it with {reader}]")
        blocks.append(block)
        if details:
            metadata.setdefault("blocks", {})[len(blocks) - 1] = details
    texts = [block.text for block in blocks if isinstance(block, ToolOutputText)]
    return "\n".join(texts) if len(texts) == len(blocks) else blocks


def _text_of(result: ToolResult) -> str:
    content = result.content
    if isinstance(content, str) and content:
        return content
    if isinstance(content, list):
        blocks = cast("list[ContentBlock]", content)
        texts = [b.text if isinstance(b, ToolOutputText) else f"[{b.type}]" for b in blocks]
        return "\n".join(texts)
    if result.structured is not None:
        return json.dumps(result.structured, ensure_ascii=False)
    return "The tool failed without an error message."


def _block(item: Any) -> tuple[ContentBlock, dict[str, Any]]:
    """Return the block for one content item, and the metadata that only the program receives."""
    if not isinstance(item, Mapping):
        return ToolOutputText(item if isinstance(item, str) else json.dumps(item)), {}
    fields = cast("Mapping[str, Any]", item)
    metadata = {key: fields[key] for key in ("annotations", "_meta") if key in fields}
    try:
        return _READERS.get(fields.get("type") or "", _unknown)(fields, metadata), metadata
    except (ValueError, TypeError, KeyError, AgentsToolsError) as error:
        metadata["unreadable"] = dict(fields)
        kind = release_text(str(fields.get("type")), limit=40)
        return ToolOutputText(f"[{kind} content that cannot be read: {error}]"), metadata


def _text(item: Mapping[str, Any], _metadata: dict[str, Any]) -> ContentBlock:
    text = item["text"]
    return ToolOutputText(text if isinstance(text, str) else json.dumps(text))


def _image(item: Mapping[str, Any], _metadata: dict[str, Any]) -> ContentBlock:
    return ToolOutputImage(data=_bytes(item["data"]), mime_type=item.get("mimeType"))


def _audio(item: Mapping[str, Any], _metadata: dict[str, Any]) -> ContentBlock:
    return ToolOutputAudio(data=_bytes(item["data"]), mime_type=item.get("mimeType"))


def _link(item: Mapping[str, Any], metadata: dict[str, Any]) -> ContentBlock:
    metadata["resource_link"] = dict(item)
    label = item.get("title") or item.get("name") or item["uri"]
    more = f": {item['description']}" if item.get("description") else ""
    kind = f" ({item['mimeType']})" if item.get("mimeType") else ""
    return ToolOutputText(f"[{label}]({item['uri']}){kind}{more}")


def is_app_page(uri: object, mime_type: object) -> bool:
    """Return whether a resource is the page of an app (MCP Apps, 2026-01-26), not for models."""
    return str(uri).startswith("ui://") or "profile=mcp-app" in str(mime_type)


def _is_readable(uri: object) -> bool:
    """Return whether a link leads to a resource of the server, and not to the web or an app."""
    return isinstance(uri, str) and not uri.startswith(("http://", "https://", "ui://"))


def _resource(item: Mapping[str, Any], metadata: dict[str, Any]) -> ContentBlock:
    resource = an_object(item["resource"])
    metadata["uri"] = uri = resource.get("uri")
    kind = resource.get("mimeType")
    if is_app_page(uri, kind):
        metadata["app"] = dict(resource)
        return ToolOutputText(f"[The page {uri} is for the user interface.]")
    if isinstance(resource.get("text"), str):
        return ToolOutputText(resource["text"])
    data = _bytes(resource["blob"])
    if isinstance(kind, str) and kind.startswith("image/"):
        return ToolOutputImage(data=data, mime_type=kind)
    if isinstance(kind, str) and kind.startswith("audio/"):
        return ToolOutputAudio(data=data, mime_type=kind)
    name = str(resource.get("uri") or "").rpartition("/")[2] or None
    return ToolOutputFileContent(data=data, mime_type=kind, filename=name)


def _unknown(item: Mapping[str, Any], _metadata: dict[str, Any]) -> ContentBlock:
    return ToolOutputText(json.dumps(dict(item), ensure_ascii=False))


_READERS: Mapping[str, Callable[[Mapping[str, Any], dict[str, Any]], ContentBlock]] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource_link": _link,
    "resource": _resource,
}


def _bytes(text: Any) -> bytes:
    if not isinstance(text, str):
        message = f"its data is not base64 text but {type(text).__name__}"
        raise ValueError(message)  # noqa: TRY004 - handled like any other invalid content
    try:
        data = binascii.a2b_base64("".join(text.split()), strict_mode=True)
    except (binascii.Error, ValueError) as error:
        message = f"its data is not base64 ({error})"
        raise ValueError(message) from None
    if not data:
        message = "it has no data"
        raise ValueError(message)
    return data
