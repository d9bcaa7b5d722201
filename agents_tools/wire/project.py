"""Conversion of tools to provider definitions, and of the arguments back to the tool's schema."""

from __future__ import annotations

import importlib
import marshal
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary, WeakSet

from agents_tools.errors import UserError, UserKeyError, UserTypeError, UserValueError
from agents_tools.schema.references import JsonSchema, References, schema_errors
from agents_tools.schema.strict import (
    StrictDialect,
    StrictFallbackWarning,
    append_notes,
    merge_descriptions,
    to_strict,
)
from agents_tools.wire.compact import FULL_JSON_SCHEMA, CompactForm, compact
from agents_tools.wire.decode import decoder

if TYPE_CHECKING:
    from agents_tools.tool.tool import FunctionTool

__all__ = ["PROVIDERS", "Projection", "Provider", "project"]

PROVIDERS = ("openai_responses", "openai_chat", "anthropic", "gemini", "bedrock", "mcp")
"""The provider names that `project` accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The tool format of one provider.

    Attributes:
        name: A name in `PROVIDERS`, or a variant of one.
        build: Creates the definition from the tool, its converted parameters, whether they are
            strict, and the tool's options for the provider.
        options: The metadata namespace of those options.
        reserved: Options that the definition itself sets.
        form: The part of JSON Schema that the provider supports.
        strict: The dialect of the strict mode; `None` if there is none.
        strict_by_default: Whether tools are strict unless they are configured otherwise.
        property_names: The pattern of valid parameter names.
        allow_combined_root: Whether the root of the parameters can combine schemas (`allOf`).
        accepts_any_schema: Whether the provider accepts every JSON Schema. If so, an external
            schema, such as one of an MCP server, is exported unchanged: the tool validates it.
    """

    name: str
    build: Callable[[FunctionTool[..., Any], JsonSchema, bool, dict[str, Any]], dict[str, Any]]
    options: str
    reserved: frozenset[str]
    form: CompactForm = FULL_JSON_SCHEMA
    strict: StrictDialect | None = None
    strict_by_default: bool = False
    property_names: re.Pattern[str] | None = None
    allow_combined_root: bool = False
    accepts_any_schema: bool = False


_EXTERNAL_SCHEMA_KINDS = frozenset({"manual", "mcp", "schema"})
"""The origins of tools whose schema does not come from Python annotations."""


class Projection:
    """A tool in the format of one provider.

    Attributes:
        decode: Converts the JSON text of a call's arguments back to the tool's own schema.
        strict: Whether strict mode is used.
    """

    __slots__ = ("__weakref__", "_definition", "decode", "strict")

    def __init__(
        self, definition: dict[str, Any], *, decode: Callable[[str], str], strict: bool
    ) -> None:
        self._definition = marshal.dumps(definition)
        self.decode = decode
        self.strict = strict

    @property
    def wire(self) -> dict[str, Any]:
        """The definition in the provider's format; each access returns a new dictionary."""
        definition: dict[str, Any] = marshal.loads(self._definition)  # noqa: S302 -- written above
        return definition

    def __repr__(self) -> str:
        return f"Projection(strict={self.strict}, wire={self.wire})"


_projections: WeakKeyDictionary[object, dict[tuple[str, bool | None, bool | None], Projection]] = (
    WeakKeyDictionary()
)
_warned: WeakSet[object] = WeakSet()


def project(
    tool: FunctionTool[..., Any],
    provider: str | Provider,
    strict: bool | None = None,
    *,
    inline_refs: bool | None = None,
) -> Projection:
    """Convert a tool to the format of a provider; the result is cached for the tool.

    Args:
        tool: The tool.
        provider: A name in `PROVIDERS`, or a provider.
        strict: Whether to use strict mode. `None` uses the tool's options for the provider, or
            else the setting of the tool. Ignored by providers without a strict mode.
        inline_refs: Whether to replace references in the schema by their targets, for models that
            do not support references. `None` uses the provider's default.

    Raises:
        UserError: The tool cannot be exported to the provider.
    """
    key = (provider if isinstance(provider, str) else provider.name, strict, inline_refs)
    try:
        return _projections[tool][key]
    except KeyError:
        pass
    except TypeError:
        if not hasattr(tool, "as_function_tool"):
            _require_function_tool(tool)
            raise
    as_function_tool: Any = getattr(tool, "as_function_tool", None)  # of a class-based tool
    if as_function_tool is not None:
        return project(as_function_tool(), provider, strict, inline_refs=inline_refs)
    resolved = _provider(provider) if isinstance(provider, str) else provider
    projection = _create_projection(tool, resolved, strict=strict, inline_refs=inline_refs)
    _projections.setdefault(tool, {})[key] = projection
    return projection


def _provider(name: str) -> Provider:
    if name not in PROVIDERS:
        raise UserKeyError(
            f"the provider {name!r} is unknown: expected one of {', '.join(PROVIDERS)}"
        )
    provider: Provider = importlib.import_module(f"agents_tools.wire.{name}").PROVIDER
    return provider


def _create_projection(
    tool: FunctionTool[..., Any],
    provider: Provider,
    *,
    strict: bool | None,
    inline_refs: bool | None,
) -> Projection:
    _require_function_tool(tool)
    options = _options(tool, provider)
    strict_option = options.pop("strict", None) if provider.strict else None
    if strict is None and strict_option is not None:
        strict = bool(strict_option)
    if strict is None:
        strict = provider.strict_by_default and tool.strict_json_schema
    schema = tool.json_schema
    try:
        with schema_errors():
            root = _object_root(schema, allow_combined_root=provider.allow_combined_root)
            if root.get("description") == tool.description:
                root = {key: value for key, value in root.items() if key != "description"}
            root, names = _rename_parameters(root, provider.property_names)
            form = provider.form
            if inline_refs is not None:
                form = replace(form, inline_refs=inline_refs)
            parameters, nulls = None, False
            if strict and provider.strict is not None:
                parameters, nulls = _strict(tool, root, provider.strict, form)
            strict = parameters is not None
            if (
                provider.accepts_any_schema
                and not inline_refs
                and tool.origin.kind in _EXTERNAL_SCHEMA_KINDS
            ):
                parameters = {"type": "object", **tool.params_json_schema}
            if parameters is None:
                parameters = compact(root, form)
            definition = provider.build(tool, parameters, strict, options)
            return Projection(
                definition, decode=decoder(schema, nulls=nulls, names=names), strict=strict
            )
    except UserError as error:
        text = f"tool {tool.name!r} cannot be exported to {provider.name}: {error}"
        raise UserValueError(text) from error


def _strict(
    tool: FunctionTool[..., Any], root: JsonSchema, dialect: StrictDialect, form: CompactForm
) -> tuple[JsonSchema | None, bool]:
    """Convert parameters to a strict dialect; warn once per tool if this is not possible."""
    short = compact(root, _strict_form(form, dialect))
    try:
        return to_strict(short, dialect)
    except UserError as error:
        if tool not in _warned:
            _warned.add(tool)
            msg = f"tool {tool.name!r} is exported without strict mode: {error}"
            warnings.warn(msg, StrictFallbackWarning, stacklevel=5)
        return None, False


def _strict_form(form: CompactForm, dialect: StrictDialect) -> CompactForm:
    return CompactForm(
        close=form.close,
        omit_null=form.omit_null and not dialect.optional_as_null,
        type_arrays=form.type_arrays,
        bare_literals=False,
        inline_refs=form.inline_refs,
    )


def _require_function_tool(tool: object) -> None:
    if hasattr(type(tool), "json_schema"):
        return
    name = getattr(tool, "name", None)
    label = f"{type(tool).__name__} {name!r}" if name else type(tool).__name__
    raise UserTypeError(
        f"{label} cannot be exported: expected a function tool, which has a schema of parameters"
    )


# -- options ---------------------------------------------------------------------------------


def _options(tool: FunctionTool[..., Any], provider: Provider) -> dict[str, Any]:
    value: object = tool.metadata.get(provider.options)
    if value is None:
        return {}
    subject = f"metadata[{provider.options!r}] of tool {tool.name!r}"
    if not isinstance(value, Mapping):
        raise UserTypeError(
            f"{subject} is invalid: expected a mapping of options, got {type(value).__name__}"
        )
    options: dict[str, Any] = _json_value(cast("Mapping[str, object]", value), subject)
    conflicts = provider.reserved & options.keys()
    if conflicts:
        names = ", ".join(map(repr, sorted(conflicts)))
        raise UserValueError(f"{subject} must not set {names}: the tool itself defines it")
    return options


def _json_value(value: object, subject: str) -> Any:
    match value:
        case str():  # of a member of an enumeration, the plain text
            return str.__str__(value)
        case None | bool() | int() | float():
            return value
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {str(key): _json_value(item, subject) for key, item in items}
        case Sequence() if not isinstance(value, (bytes, bytearray)):
            return [_json_value(item, subject) for item in cast("Sequence[object]", value)]
        case _:
            raise UserTypeError(
                f"{subject} is invalid: expected JSON values, got {type(value).__name__}"
            )


# -- the root and its names --------------------------------------------------------------------

_COMBINING = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const")


def _object_root(schema: Mapping[str, Any], *, allow_combined_root: bool) -> JsonSchema:
    """Convert the root of the parameters to the plain object schema that providers require."""
    root = {key: value for key, value in schema.items() if key not in {"$schema", "$id"}}
    root = References(schema).follow(root)
    kind = root.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise UserValueError(f"its parameters must be one object, got the type {kind!r}")
    root["type"] = "object"
    if not allow_combined_root and any(key in root for key in _COMBINING):
        root = _merge_combinations(root, References(schema))
    if "properties" not in root:
        restrictions = root.keys() & {"additionalProperties", "patternProperties", *_COMBINING}
        root["properties"] = {}
        if not restrictions:
            root["additionalProperties"] = False
        elif "additionalProperties" not in root:
            root["additionalProperties"] = True
    return root


def _merge_combinations(root: JsonSchema, references: References) -> JsonSchema:
    """Move all parameters to the root, and add their combinations to its description."""
    properties: JsonSchema = dict(root.get("properties", {}))
    required: list[str] = list(root.get("required", ()))
    notes: list[str] = []
    for key in ("allOf", "anyOf", "oneOf"):
        branches = [_resolve_branch(branch, references) for branch in root.get(key, ())]
        for branch in branches:
            for name, child in branch.get("properties", {}).items():
                previous = properties.setdefault(name, child)
                if previous != child and child not in previous.get("anyOf", ()):
                    properties[name] = {"anyOf": [*previous.get("anyOf", (previous,)), child]}
        if key == "allOf":
            required.extend(name for branch in branches for name in branch.get("required", ()))
        elif branches:
            shared = set[str].intersection(
                *(set(branch.get("required", ())) for branch in branches)
            )
            required.extend(sorted(shared))
            choices = [
                " + ".join(branch.get("required") or branch.get("properties", ()))
                for branch in branches
            ]
            if all(choices) and len(set(choices)) > 1:
                notes.append(f"pass {' or '.join(choices)}")
    out = {key: value for key, value in root.items() if key not in _COMBINING}
    out["properties"] = properties
    if required:
        out["required"] = list(dict.fromkeys(required))
    description = append_notes(out.get("description"), notes)
    if description is not None:
        out["description"] = description
    return out


def _resolve_branch(branch: object, references: References) -> JsonSchema:
    return references.follow(cast("JsonSchema", branch)) if isinstance(branch, dict) else {}


def _rename_parameters(
    root: JsonSchema, allowed: re.Pattern[str] | None
) -> tuple[JsonSchema, dict[str, str]]:
    """Rename parameters with unsupported names, and add the original names to the descriptions.

    Returns:
        The new root, and the original names by new name.
    """
    properties: JsonSchema = root.get("properties", {})
    if allowed is None or all(allowed.fullmatch(name) for name in properties):
        return root, {}
    originals: dict[str, str] = {}
    renamed: JsonSchema = {}
    for original, child in properties.items():
        if allowed.fullmatch(original):
            renamed[original] = child
            continue
        name = _safe_name(original, {*properties, *originals})
        originals[name] = original
        node = cast("JsonSchema", child) if isinstance(child, dict) else {}
        renamed[name] = {
            **node,
            "description": merge_descriptions(node.get("description"), f"({original})"),
        }
        if "title" in node and node["title"] == original.title().replace("_", " ").strip():
            del renamed[name]["title"]
    wire_names = {original: name for name, original in originals.items()}
    out = {**root, "properties": renamed}
    if "required" in root:
        out["required"] = [wire_names.get(name, name) for name in root["required"]]
    return out, originals


def _safe_name(original: str, used: set[str]) -> str:
    """Return an unused name of ASCII letters, digits and underscores."""
    ascii_name = unicodedata.normalize("NFKD", original).encode("ascii", "ignore").decode()
    base = re.sub(r"[^A-Za-z0-9_]+", "_", ascii_name).strip("_")[:56] or "parameter"
    if not base[0].isalpha():
        base = f"p_{base}"
    name, number = base, 2
    while name in used:
        name, number = f"{base}_{number}", number + 1
    return name
