"""Tool definitions for the Converse API of Amazon Bedrock."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents_tools.schema.strict import ANTHROPIC_STRICT
from agents_tools.wire.compact import CompactForm
from agents_tools.wire.project import Provider, project

if TYPE_CHECKING:
    from agents_tools.schema.references import JsonSchema
    from agents_tools.tool.tool import FunctionTool

__all__ = ["to_bedrock"]


def to_bedrock(
    tool: FunctionTool[..., Any], *, strict: bool | None = None, inline_refs: bool = True
) -> dict[str, Any]:
    """Describe a tool for Amazon Bedrock, as one entry of `toolConfig.tools`.

    Options of the tool come from `metadata["bedrock"]` and are added to its specification.

    Args:
        tool: The tool.
        strict: Whether to use strict mode. Off unless set here or in the options, since most
            models on Bedrock have no strict mode.
        inline_refs: Whether to replace references in the schema by their targets. Some models on
            Bedrock accept only `type`, `properties` and `required` in the root, and therefore no
            definitions.
    """
    return project(tool, PROVIDER, strict, inline_refs=inline_refs).wire


def _build(
    tool: FunctionTool[..., Any], parameters: JsonSchema, strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    out: dict[str, Any] = {"name": tool.name}
    if tool.description:  # Bedrock rejects an empty description
        out["description"] = tool.description
    if strict:
        out["strict"] = True
    else:
        supported = ("type", "properties", "required", "$defs")
        parameters = {key: parameters[key] for key in supported if key in parameters}
    out["inputSchema"] = {"json": parameters}
    return {"toolSpec": {**out, **options}}


PROVIDER = Provider(
    name="bedrock",
    build=_build,
    options="bedrock",
    reserved=frozenset({"name", "inputSchema", "toolSpec"}),
    form=CompactForm(type_arrays=False, bare_literals=False, null_literals=False, inline_refs=True),
    strict=replace(ANTHROPIC_STRICT, name="Bedrock"),
    property_names=re.compile(r"[A-Za-z0-9_.-]{1,64}"),
)
