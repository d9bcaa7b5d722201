"""Tools as the Converse API of Amazon Bedrock takes them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents_tools._strict import ANTHROPIC_STRICT, JsonSchema
from agents_tools.wire._compact import Form
from agents_tools.wire._project import Provider, project

if TYPE_CHECKING:
    from agents_tools.tool import FunctionTool

__all__ = ["to_bedrock"]


def to_bedrock(
    tool: FunctionTool[..., Any], *, strict: bool | None = None, inline_refs: bool = True
) -> dict[str, Any]:
    """Describe a tool for Amazon Bedrock, as one entry of `toolConfig.tools`.

    Options of the tool come from `metadata["bedrock"]` and go into its specification.

    Args:
        tool: The tool.
        strict: Hold the model to the schema. Off if neither said here nor in the options, since
            most models behind Bedrock have no such mode.
        inline_refs: Write out what the schema refers to. Some models behind Bedrock take nothing
            in the root but `type`, `properties` and `required`: no place for definitions.
    """
    return project(tool, PROVIDER, strict, inline_refs=inline_refs).wire


def _build(
    tool: FunctionTool[..., Any], parameters: JsonSchema, strict: bool, options: dict[str, Any]
) -> dict[str, Any]:
    out: dict[str, Any] = {"name": tool.name}
    if tool.description:  # an empty one is refused
        out["description"] = tool.description
    if strict:
        out["strict"] = True
    else:
        kept = ("type", "properties", "required", "$defs")
        parameters = {key: parameters[key] for key in kept if key in parameters}
    out["inputSchema"] = {"json": parameters}
    return {"toolSpec": {**out, **options}}


PROVIDER = Provider(
    name="bedrock",
    build=_build,
    options="bedrock",
    reserved=frozenset({"name", "inputSchema", "toolSpec"}),
    form=Form(type_arrays=False, bare_literals=False, null_literals=False, inline_refs=True),
    strict=replace(ANTHROPIC_STRICT, name="Bedrock"),
    property_names=re.compile(r"[A-Za-z0-9_.-]{1,64}"),
)
