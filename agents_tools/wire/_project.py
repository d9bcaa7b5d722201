"""What a provider is told about a tool, and the way back for the arguments it sends."""

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

from agents_tools._strict import (
    JsonSchema,
    References,
    StrictDialect,
    StrictFallbackWarning,
    joined,
    noted,
    to_strict,
    well_formed,
)
from agents_tools.errors import UserError, UserKeyError, UserTypeError, UserValueError
from agents_tools.wire._compact import NATURAL, Form, compact
from agents_tools.wire._decode import decoder

if TYPE_CHECKING:
    from agents_tools.tool import FunctionTool

__all__ = ["PROVIDERS", "Projection", "Provider", "project"]

PROVIDERS = ("openai_responses", "openai_chat", "anthropic", "gemini", "bedrock", "mcp")
"""The names that `project` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How one provider is told about tools.

    Attributes:
        name: As in `PROVIDERS`, or a variant of one.
        build: Puts the definition together from the tool, its projected parameters, whether they
            are strict, and the extra options of the tool for this provider.
        options: The metadata namespace that holds those options.
        reserved: Options that would contradict the projection.
        form: What it understands of JSON Schema.
        strict: Its strict mode, if it has one.
        strict_by_default: A tool is exported strict without being asked for it.
        property_names: What the names of parameters must match.
        any_root: The root of the parameters may combine schemas.
        takes_any: It takes every JSON Schema, so that one which somebody else wrote goes out as
            it is: what is left out of it, or closed in it, would not be what is enforced.
    """

    name: str
    build: Callable[[FunctionTool[..., Any], JsonSchema, bool, dict[str, Any]], dict[str, Any]]
    options: str
    reserved: frozenset[str]
    form: Form = NATURAL
    strict: StrictDialect | None = None
    strict_by_default: bool = False
    property_names: re.Pattern[str] | None = None
    any_root: bool = False
    takes_any: bool = False


_FOREIGN = frozenset({"manual", "mcp", "schema"})
"""The origins of tools whose schema somebody else wrote."""


class Projection:
    """One tool as one provider is told about it.

    Attributes:
        decode: Takes back, in the JSON text of a call's arguments, what the projection introduced.
        strict: Whether the provider is asked to hold the model to the schema.
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
        """The definition as the provider takes it, a new dictionary at each access."""
        definition: dict[str, Any] = marshal.loads(self._definition)  # noqa: S302 -- its own text
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
    """Project a tool for a provider; done once per tool and kept.

    Args:
        tool: The tool.
        provider: One of `PROVIDERS`.
        strict: Ask the provider to hold the model to the schema. `None` leaves it to the tool, or
            its options for the provider. Means nothing to a provider without a strict mode.
        inline_refs: Write out what the schema refers to, for models that cannot follow references.
            `None` leaves it to the provider.

    Raises:
        UserError: The tool cannot be told to the provider; the message says why.
    """
    key = (provider if isinstance(provider, str) else provider.name, strict, inline_refs)
    try:
        return _projections[tool][key]
    except KeyError:
        pass
    except TypeError:
        if not hasattr(tool, "as_function_tool"):
            _refuse_other_tools(tool)
            raise
    become: Any = getattr(tool, "as_function_tool", None)  # a class-based tool
    if become is not None:
        return project(become(), provider, strict, inline_refs=inline_refs)
    chosen = _provider(provider) if isinstance(provider, str) else provider
    made = _made(tool, chosen, strict=strict, inline_refs=inline_refs)
    _projections.setdefault(tool, {})[key] = made
    return made


def _provider(name: str) -> Provider:
    if name not in PROVIDERS:
        raise UserKeyError(f"no provider is called {name!r}; there are {', '.join(PROVIDERS)}")
    provider: Provider = importlib.import_module(f"agents_tools.wire.{name}").PROVIDER
    return provider


def _made(
    tool: FunctionTool[..., Any],
    provider: Provider,
    *,
    strict: bool | None,
    inline_refs: bool | None,
) -> Projection:
    _refuse_other_tools(tool)
    options = _options(tool, provider)
    asked = options.pop("strict", None) if provider.strict else None
    if strict is None and asked is not None:
        strict = bool(asked)
    if strict is None:
        strict = provider.strict_by_default and tool.strict_json_schema
    own = tool.json_schema
    try:
        with well_formed():
            root = _object_root(own, any_root=provider.any_root)
            if root.get("description") == tool.description:
                root = {key: value for key, value in root.items() if key != "description"}
            root, names = _renamed(root, provider.property_names)
            form = provider.form
            if inline_refs is not None:
                form = replace(form, inline_refs=inline_refs)
            parameters, nulls = None, False
            if strict and provider.strict is not None:
                parameters, nulls = _strict(tool, root, provider.strict, form)
            strict = parameters is not None
            if provider.takes_any and not inline_refs and tool.origin.kind in _FOREIGN:
                parameters = {"type": "object", **tool.params_json_schema}
            if parameters is None:
                parameters = compact(root, form)
            definition = provider.build(tool, parameters, strict, options)
            return Projection(
                definition, decode=decoder(own, nulls=nulls, names=names), strict=strict
            )
    except UserError as error:
        text = f"tool {tool.name!r} cannot be exported to {provider.name}: {error}"
        raise UserValueError(text) from error


def _strict(
    tool: FunctionTool[..., Any], root: JsonSchema, dialect: StrictDialect, form: Form
) -> tuple[JsonSchema | None, bool]:
    """Convert to a strict dialect, or warn once for the tool that it cannot be done."""
    short = compact(root, _strict_form(form, dialect))
    try:
        return to_strict(short, dialect)
    except UserError as error:
        if tool not in _warned:
            _warned.add(tool)
            msg = f"tool {tool.name!r} is exported without strict mode: {error}"
            warnings.warn(msg, StrictFallbackWarning, stacklevel=5)
        return None, False


def _strict_form(form: Form, dialect: StrictDialect) -> Form:
    return Form(
        close=form.close,
        omit_null=form.omit_null and not dialect.optional_as_null,
        type_arrays=form.type_arrays,
        bare_literals=False,
        inline_refs=form.inline_refs,
    )


def _refuse_other_tools(tool: object) -> None:
    if hasattr(type(tool), "json_schema"):
        return
    name = getattr(tool, "name", None)
    what = f"{type(tool).__name__} {name!r}" if name else type(tool).__name__
    raise UserTypeError(
        f"{what} is no function tool: it has no parameters that a provider could be told"
    )


# -- options ---------------------------------------------------------------------------------


def _options(tool: FunctionTool[..., Any], provider: Provider) -> dict[str, Any]:
    given: object = tool.metadata.get(provider.options)
    if given is None:
        return {}
    where = f"metadata[{provider.options!r}] of tool {tool.name!r}"
    if not isinstance(given, Mapping):
        raise UserTypeError(
            f"{where} must map option names to values, not be {type(given).__name__}"
        )
    options: dict[str, Any] = _plain(cast("Mapping[str, object]", given), where)
    taken = provider.reserved & options.keys()
    if taken:
        raise UserValueError(
            f"{where} must not set {', '.join(map(repr, sorted(taken)))}: the tool itself says that"
        )
    return options


def _plain(value: object, where: str) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {str(key): _plain(item, where) for key, item in items}
        case Sequence() if not isinstance(value, (bytes, bytearray)):
            return [_plain(item, where) for item in cast("Sequence[object]", value)]
        case _:
            raise UserTypeError(f"{where} must hold JSON values only, not {type(value).__name__}")


# -- the root and its names --------------------------------------------------------------------

_COMBINING = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const")


def _object_root(schema: Mapping[str, Any], *, any_root: bool) -> JsonSchema:
    """Make the root of the parameters the plain object that providers ask for."""
    root = {key: value for key, value in schema.items() if key not in {"$schema", "$id"}}
    root = References(schema).followed(root)
    kind = root.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise UserValueError(f"its parameters are of type {kind!r}, but must be one object")
    root["type"] = "object"
    if not any_root and any(key in root for key in _COMBINING):
        root = _uncombined(root, References(schema))
    if "properties" not in root:
        described = root.keys() & {"additionalProperties", "patternProperties", *_COMBINING}
        root["properties"] = {}
        if not described:
            root["additionalProperties"] = False
        elif "additionalProperties" not in root:
            root["additionalProperties"] = True
    return root


def _uncombined(root: JsonSchema, references: References) -> JsonSchema:
    """List all parameters in the root itself; how they go together is left to its description."""
    properties: JsonSchema = dict(root.get("properties", {}))
    required: list[str] = list(root.get("required", ()))
    notes: list[str] = []
    for key in ("allOf", "anyOf", "oneOf"):
        arms = [_resolved(arm, references) for arm in root.get(key, ())]
        for arm in arms:
            for name, child in arm.get("properties", {}).items():
                known = properties.setdefault(name, child)
                if known != child and child not in known.get("anyOf", ()):
                    properties[name] = {"anyOf": [*known.get("anyOf", (known,)), child]}
        if key == "allOf":
            required.extend(name for arm in arms for name in arm.get("required", ()))
        elif arms:
            shared = set[str].intersection(*(set(arm.get("required", ())) for arm in arms))
            required.extend(sorted(shared))
            choices = [" + ".join(arm.get("required") or arm.get("properties", ())) for arm in arms]
            if all(choices) and len(set(choices)) > 1:
                notes.append(f"give {' or '.join(choices)}")
    out = {key: value for key, value in root.items() if key not in _COMBINING}
    out["properties"] = properties
    if required:
        out["required"] = list(dict.fromkeys(required))
    description = noted(out.get("description"), notes)
    if description is not None:
        out["description"] = description
    return out


def _resolved(arm: object, references: References) -> JsonSchema:
    return references.followed(cast("JsonSchema", arm)) if isinstance(arm, dict) else {}


def _renamed(
    root: JsonSchema, allowed: re.Pattern[str] | None
) -> tuple[JsonSchema, dict[str, str]]:
    """Give parameters a name that the provider takes, and tell the model their own one."""
    properties: JsonSchema = root.get("properties", {})
    if allowed is None or all(allowed.fullmatch(name) for name in properties):
        return root, {}
    own_names: dict[str, str] = {}
    renamed: JsonSchema = {}
    for own, child in properties.items():
        if allowed.fullmatch(own):
            renamed[own] = child
            continue
        name = _safe_name(own, {*properties, *own_names})
        own_names[name] = own
        node = cast("JsonSchema", child) if isinstance(child, dict) else {}
        renamed[name] = {**node, "description": joined(node.get("description"), f"({own})")}
        if "title" in node and node["title"] == own.title().replace("_", " ").strip():
            del renamed[name]["title"]
    wire_names = {own: name for name, own in own_names.items()}
    out = {**root, "properties": renamed}
    if "required" in root:
        out["required"] = [wire_names.get(name, name) for name in root["required"]]
    return out, own_names


def _safe_name(own: str, taken: set[str]) -> str:
    plain = unicodedata.normalize("NFKD", own).encode("ascii", "ignore").decode()
    wanted = re.sub(r"[^A-Za-z0-9_]+", "_", plain).strip("_")[:56] or "parameter"
    if not wanted[0].isalpha():
        wanted = f"p_{wanted}"
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name
