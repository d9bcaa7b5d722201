"""From a tool of a server to a `FunctionTool`, and from its results to what a model gets."""

from __future__ import annotations

import binascii
import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools._arguments import SchemaReader
from agents_tools._records import ToolAnnotations, ToolOrigin
from agents_tools._text import safe_text, shorten
from agents_tools.errors import AgentsToolsError, ToolError
from agents_tools.mcp._shapes import an_object
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
)
from agents_tools.tool import FunctionTool, default_tool_error_function

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agents_tools._records import Call, Declaration
    from agents_tools.context import ToolContext

__all__ = ["MCPToolError", "declared_of", "function_tool_of", "result_of"]

logger = logging.getLogger("agents_tools.mcp")

AnyTool = FunctionTool[..., Any]
_MOST_ERRORS = 5
_PROTOCOL = "io.modelcontextprotocol/"
"""What the protocol itself says beside each result."""


class MCPToolError(ToolError):
    """A tool of a server reported a failure: the message is what it said.

    Args:
        message: The text of its result.
        result: The whole result.
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
    validate_arguments: bool = True,
) -> AnyTool:
    """Make a tool of what a server lists; see `declared_of`."""
    declaration, options = declared_of(
        wire, name=name, server=server, perform=perform, validate_arguments=validate_arguments
    )
    return FunctionTool.declared(declaration, **options)


def declared_of(
    wire: Mapping[str, Any],
    *,
    name: str,
    server: str,
    perform: Callable[[ToolContext[Any], dict[str, Any]], Awaitable[dict[str, Any]]],
    validate_arguments: bool = True,
) -> tuple[Declaration, dict[str, Any]]:
    """Give the declaration of what a server lists, and the options of the tool.

    Args:
        wire: The tool as the server lists it.
        name: Its name for models.
        server: The name of the server.
        perform: Calls the tool on the server, and gives its result.
        validate_arguments: Whether arguments have to be what its schema allows.

    Raises:
        UserError: Its schema is not valid.
    """
    hints: Any = wire.get("annotations")
    title = wire.get("title") or an_object(hints).get("title")
    # Options of the projection for MCP are what its own metadata is, so that it can be served on.
    extra = {key: wire[key] for key in ("title", "icons", "_meta", "execution") if key in wire}
    declaration = _Remote(
        wire,
        name=name,
        origin=ToolOrigin(kind="mcp", server=server, wire_name=wire["name"]),
        perform=perform,
        validate=validate_arguments,
    )
    return declaration, {
        "strict_json_schema": False,
        "annotations": _annotations(hints, title),
        "metadata": {"mcp": extra} if extra else None,
        "failure_error_function": _failure_text,
    }


def _annotations(hints: Any, title: Any) -> ToolAnnotations | None:
    if not isinstance(hints, Mapping):
        return ToolAnnotations(title=title) if isinstance(title, str) else None
    given = cast("Mapping[str, Any]", hints)
    flags: dict[str, bool] = {
        key: given[key]
        for key in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        if isinstance(given.get(key), bool)
    }
    return ToolAnnotations(title=title if isinstance(title, str) else None, **flags)


def _failure_text(ctx: Any, error: Exception) -> str:
    """Tell the model what the server said of a failure, whole; of others, what is usual."""
    return (
        str(error) if isinstance(error, MCPToolError) else default_tool_error_function(ctx, error)
    )


class _Remote:
    """The declaration of a tool that runs on a server."""

    direct: None = None

    def __init__(
        self,
        wire: Mapping[str, Any],
        *,
        name: str,
        origin: ToolOrigin,
        perform: Callable[[ToolContext[Any], dict[str, Any]], Awaitable[dict[str, Any]]],
        validate: bool,
    ) -> None:
        self.name = name
        self.origin = origin
        self.description: str = wire.get("description") or ""
        self.json_schema: dict[str, Any] = wire["inputSchema"]
        self.output_json_schema: dict[str, Any] | None = wire.get("outputSchema")
        self._perform = perform
        self._enforced = self.json_schema if validate else {"type": "object"}
        self._made: SchemaReader | None = None
        if validate and not _is_schema(self.json_schema):
            self._made = SchemaReader(name, self.json_schema)  # which says what is wrong with it
        self._output: Any = None

    def read(self, args_json: str) -> dict[str, Any]:
        """Give the arguments as the server gets them.

        Raises:
            ModelBehaviorError: They are not what its schema allows.
        """
        reader = self._made
        if reader is None:
            reader = self._made = SchemaReader(self.name, self._enforced)
        return reader.read(args_json)

    @property
    def body(self) -> Call:
        """Check the arguments, call the server, read the result."""
        return self._run

    async def _run(self, context: ToolContext[Any], args_json: str) -> ToolResult:
        arguments = self.read(args_json)
        context.validated = True
        raw = await self._perform(context, arguments)
        result = result_of(raw, faults=self._faults)
        if result.is_error:
            raise MCPToolError(_text_of(result), result=result)
        return result

    def _faults(self, structured: Any) -> list[str]:
        """Say where a structured result is not what the server had promised."""
        if self.output_json_schema is None:
            return []
        if self._output is None:
            from jsonschema_rs import validator_for

            try:
                self._output = validator_for(self.output_json_schema, offline=True)
            except Exception as error:  # noqa: BLE001 - a promise that means nothing is none
                logger.warning("The outputSchema of tool %r is not valid: %s", self.name, error)
                self._output = False
        if self._output is False:
            return []
        faults: list[str] = []
        for fault in self._output.iter_errors(structured):
            place = "".join(f"[{step!r}]" for step in fault.instance_path)
            faults.append(shorten(safe_text(f"{place} {fault.message}".strip()), 200))
            if len(faults) == _MOST_ERRORS:
                break
        if faults:
            logger.warning(
                "The structured result of tool %r is not what its server promises: %s",
                self.name,
                "; ".join(faults),
            )
        return faults

    def check(self, args_json: str) -> None:
        """Check arguments without calling the server."""
        self.read(args_json)

    def serializer(self) -> Any:
        """Give none: results are JSON already."""
        return None

    def method_of(self) -> None:
        """Change nothing: there is no function that could be a method."""

    def bind(self, instance: object) -> _Remote:
        """Give itself: there is no function that could be a method."""
        del instance
        return self


def _is_schema(schema: dict[str, Any]) -> bool:
    """Whether a JSON Schema is valid, without making anything of it: lists of tools are long."""
    try:
        from jsonschema_rs import meta

        return meta.is_valid(schema)
    except (ImportError, ValueError):
        return False


# --- results


def result_of(
    raw: Mapping[str, Any], *, faults: Callable[[Any], Sequence[str]] | None = None
) -> ToolResult:
    """Read the result of a call.

    Text, images, sounds and embedded files become content blocks, links become text. The model
    gets the content; where there is none, the structured result. The structured result is kept
    beside it for programs, whatever the schema says of it.

    Args:
        raw: The result as the server sent it.
        faults: Says where a structured result is not what the server had promised.
    """
    metadata: dict[str, Any] = {}
    blocks: list[ContentBlock] = []
    content: Any = raw.get("content")
    if not isinstance(content, list):
        content = [] if content is None else [content]
    for item in cast("list[Any]", content):
        block, note = _block(item)
        blocks.append(block)
        if note:
            metadata.setdefault("blocks", {})[len(blocks) - 1] = note
    structured: Any = raw.get("structuredContent")
    is_error = raw.get("isError") is True
    if structured is not None and not is_error and faults is not None:
        found = faults(structured)
        if found:
            metadata["output_schema_faults"] = list(found)
    meta = {k: v for k, v in an_object(raw.get("_meta")).items() if not k.startswith(_PROTOCOL)}
    if meta:
        metadata["_meta"] = meta
    known = ("content", "structuredContent", "isError", "_meta", "resultType")
    if (
        not content
        and structured is None
        and (rest := {k: v for k, v in raw.items() if k not in known})
    ):
        structured = rest  # some other shape: shown as it is rather than thrown away
    seen: Any = _joined(blocks)
    return ToolResult(
        content=None if not blocks and structured is not None else seen,
        structured=structured,
        metadata=metadata or None,
        is_error=is_error,
    )


def _joined(blocks: list[ContentBlock]) -> str | list[ContentBlock]:
    """Give texts as one; anything else as blocks."""
    texts = [block.text for block in blocks if isinstance(block, ToolOutputText)]
    return "\n".join(texts) if len(texts) == len(blocks) else blocks


def _text_of(result: ToolResult) -> str:
    content = result.content
    if isinstance(content, str) and content:
        return content
    if isinstance(content, list):
        blocks = cast("list[ContentBlock]", content)
        parts = [b.text if isinstance(b, ToolOutputText) else f"[{b.type}]" for b in blocks]
        return "\n".join(parts)
    if result.structured is not None:
        return json.dumps(result.structured, ensure_ascii=False)
    return "The tool failed and did not say why."


def _block(item: Any) -> tuple[ContentBlock, dict[str, Any]]:
    """Give the block for one piece of content, and what of it only the application sees."""
    if not isinstance(item, Mapping):
        return ToolOutputText(item if isinstance(item, str) else json.dumps(item)), {}
    given = cast("Mapping[str, Any]", item)
    note = {key: given[key] for key in ("annotations", "_meta") if key in given}
    try:
        return _READERS.get(given.get("type") or "", _unknown)(given, note), note
    except (ValueError, TypeError, KeyError, AgentsToolsError) as error:
        note["unreadable"] = dict(given)
        kind = shorten(safe_text(str(given.get("type"))), 40)
        return ToolOutputText(f"[{kind} content that cannot be read: {error}]"), note


def _text(item: Mapping[str, Any], _note: dict[str, Any]) -> ContentBlock:
    text = item["text"]
    return ToolOutputText(text if isinstance(text, str) else json.dumps(text))


def _image(item: Mapping[str, Any], _note: dict[str, Any]) -> ContentBlock:
    return ToolOutputImage(data=_bytes(item["data"]), mime_type=item.get("mimeType"))


def _audio(item: Mapping[str, Any], _note: dict[str, Any]) -> ContentBlock:
    return ToolOutputAudio(data=_bytes(item["data"]), mime_type=item.get("mimeType"))


def _link(item: Mapping[str, Any], note: dict[str, Any]) -> ContentBlock:
    note["resource_link"] = dict(item)
    label = item.get("title") or item.get("name") or item["uri"]
    more = f": {item['description']}" if item.get("description") else ""
    kind = f" ({item['mimeType']})" if item.get("mimeType") else ""
    return ToolOutputText(f"[{label}]({item['uri']}){kind}{more}")


def _resource(item: Mapping[str, Any], note: dict[str, Any]) -> ContentBlock:
    resource = an_object(item["resource"])
    note["uri"] = resource.get("uri")
    kind = resource.get("mimeType")
    if isinstance(resource.get("text"), str):
        return ToolOutputText(resource["text"])
    data = _bytes(resource["blob"])
    if isinstance(kind, str) and kind.startswith("image/"):
        return ToolOutputImage(data=data, mime_type=kind)
    if isinstance(kind, str) and kind.startswith("audio/"):
        return ToolOutputAudio(data=data, mime_type=kind)
    name = str(resource.get("uri") or "").rpartition("/")[2] or None
    return ToolOutputFileContent(data=data, mime_type=kind, filename=name)


def _unknown(item: Mapping[str, Any], _note: dict[str, Any]) -> ContentBlock:
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
        message = f"its data is no base64 but {type(text).__name__}"
        raise ValueError(message)  # noqa: TRY004 - a fault of the content, as any other
    try:
        found = binascii.a2b_base64("".join(text.split()), strict_mode=True)
    except (binascii.Error, ValueError) as error:
        message = f"its data is no base64 ({error})"
        raise ValueError(message) from None
    if not found:
        message = "it has no data"
        raise ValueError(message)
    return found
