"""Sanitize the tool definitions of servers before a model or a person reads them."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json

from agents_tools.schema.references import SCHEMA_MAP
from agents_tools.text.characters import escape_for_model, safe_text
from agents_tools.text.escape import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "CleanTool",
    "UnusableTool",
    "clean_schema",
    "clean_text",
    "clean_tool",
    "has_hidden",
    "public_names",
]

LONGEST_NAME = 256
"""The maximum length of a tool's name on the server."""
LONGEST_PUBLIC_NAME = 64
"""The maximum length of a tool's name that all model providers accept."""


class UnusableTool(ValueError):  # noqa: N818 - a property of the tool, not an error of the program
    """A tool cannot be sent to a model; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTool:
    """A sanitized tool definition.

    Attributes:
        wire: The tool, as in a result of `tools/list`.
        findings: The changes, one sentence each; for logs and events, never for a model.
    """

    wire: dict[str, Any]
    findings: tuple[str, ...] = ()


def clean_tool(
    wire: object,
    *,
    description_limit: int = 4096,
    parameter_limit: int = 1024,
    max_bytes: int = 256 * 1024,
    max_depth: int = 32,
    max_nodes: int = 20_000,
) -> CleanTool:
    """Return a sanitized copy of a listed tool.

    The name and the input schema must be valid, because calls depend on them. Texts are cleaned;
    other invalid or unknown fields are dropped.

    Args:
        wire: The tool, as in a result of `tools/list`.
        description_limit: The maximum length of the description.
        parameter_limit: The maximum length of each text inside the schemas.
        max_bytes: The maximum size of a schema or of the metadata, as JSON.
        max_depth: The maximum nesting depth of a schema or of the metadata.
        max_nodes: The maximum number of values in a schema or in the metadata.

    Raises:
        UnusableTool: The name or the input schema is not usable.
    """
    if not isinstance(wire, dict):
        raise UnusableTool("the list item is not an object")
    tool = cast("dict[Any, Any]", wire)
    if _is_plain(tool, min(parameter_limit, description_limit, max_bytes, max_nodes), max_depth):
        return CleanTool(wire=dict(tool), findings=())
    limits = _SchemaLimits(parameter_limit, max_bytes, max_depth, max_nodes)
    findings: list[str] = []
    clean: dict[str, Any] = {"name": _tool_name(tool.get("name"))}
    for key, limit in (("title", LONGEST_NAME), ("description", description_limit)):
        _add_optional(clean, findings, key, tool.get(key), functools.partial(_text, limit=limit))
    clean["inputSchema"] = _input_schema(tool.get("inputSchema"), findings, limits)
    readers: dict[str, _Reader] = {
        "outputSchema": functools.partial(_schema, limits=limits),
        "annotations": _annotations,
        "icons": functools.partial(_icons, limits=limits),
        "execution": functools.partial(_metadata, limits=limits),
        "_meta": functools.partial(_metadata, limits=limits),
    }
    for key, read in readers.items():
        _add_optional(clean, findings, key, tool.get(key), read)
    findings += [
        f"{_quote(key)}: dropped, it is not part of the protocol"
        for key in tool
        if key not in _TOOL_KEYS and key not in readers
    ]
    return CleanTool(wire=clean, findings=tuple(_limit_findings(findings)))


def _is_plain(tool: dict[Any, Any], limit: int, depth: int) -> bool:
    """Return whether a tool needs no cleaning.

    This fast path covers most tools, because lists can be long. If the complete JSON is short, no
    text in it is too long; if it is ASCII and its only escapes are line breaks and quotes, no text
    contains a hidden character.
    """
    schema = tool.get("inputSchema")
    if not tool.keys() <= _PLAIN_KEYS or not isinstance(schema, dict):
        return False
    described = cast("dict[Any, Any]", schema)
    if described.get("type") != "object" or not described.keys() <= _PLAIN_SCHEMA_KEYS:
        return False
    name, description = tool.get("name"), tool.get("description", "")
    if not isinstance(name, str) or not isinstance(description, str) or not name.strip():
        return False
    try:
        text = to_json(tool)
    except (TypeError, ValueError, RecursionError):
        return False
    return (
        len(text) <= limit
        and len(name) <= LONGEST_NAME
        and text.isascii()
        and text.count(b"{") + text.count(b"[") <= depth
        and b"$" not in text
        and b"\x7f" not in text
        and b"\\" not in text.replace(b"\\n", b" ").replace(b'\\"', b" ")
    )


_PLAIN_KEYS = frozenset({"name", "description", "inputSchema"})
_PLAIN_SCHEMA_KEYS = frozenset({"type", "properties", "required", "additionalProperties"})


def clean_schema(
    schema: object,
    *,
    description_limit: int = 1024,
    max_bytes: int = 256 * 1024,
    max_depth: int = 32,
    max_nodes: int = 20_000,
) -> tuple[dict[str, Any], list[str]]:
    """Return a sanitized copy of an input schema.

    Everything that affects validation is kept: property names, patterns, and the values of `enum`,
    `const` and `default`. A schema with hidden characters in these is rejected.

    Args:
        schema: The schema.
        description_limit: The maximum length of each text.
        max_bytes: The maximum size of the schema, as JSON.
        max_depth: The maximum nesting depth of objects and arrays.
        max_nodes: The maximum number of values.

    Returns:
        A new schema, and the changes, one sentence each.

    Raises:
        UnusableTool: The schema is too large or too deep, does not describe an object, refers to
            another document, or contains hidden characters in a part that cannot be changed.
    """
    findings: list[str] = []
    limits = _SchemaLimits(description_limit, max_bytes, max_depth, max_nodes)
    return _object_schema(schema, findings, "", limits=limits), _limit_findings(findings)


def clean_text(text: str, limit: int) -> tuple[str, list[str]]:
    """Remove hidden characters from a text, and shorten it.

    Hidden characters are invisible characters, control characters except tab and newline, terminal
    sequences, and controls of the writing direction. A variation selector after an emoji is kept.

    Args:
        text: The text.
        limit: The number of characters to keep; a note about the cut is added after them.

    Returns:
        The text, and the changes, one sentence each.
    """
    findings: list[str] = []
    if has_hidden(text):
        text = _LINE_ENDS.sub("\n", text)
        hidden = _hidden_characters(text)
        findings = [f"removed {kind}: {_codes(chars)}" for kind, chars in hidden.items()]
        text = _hidden_pattern().sub("", safe_text(text))
    if len(text) > limit:
        cut = len(text) - limit
        findings.append(f"cut {cut:,} of {len(text):,} characters")
        text = f"{text[:limit]} … [cut: {cut} characters]"
    return text, findings


def has_hidden(text: str) -> bool:
    """Return whether a text contains characters that `clean_text` removes."""
    return _hidden_pattern().search(text) is not None


def public_names(server: str, wire_names: Iterable[str], *, prefix: str | None) -> dict[str, str]:
    """Return names for the tools of a server that every model provider accepts.

    A name is `{prefix}_{tool}`, in which `_` replaces each character other than a letter, a digit,
    `_` or `-`. A name that is too long, or equal to that of another tool, gets a suffix of eight
    hexadecimal digits. The names do not depend on the order of the list.

    Args:
        server: The name of the server.
        wire_names: The names of the tools on the server.
        prefix: The prefix of the names; `None` for no prefix.

    Returns:
        The names, by the names on the server.
    """
    listed = sorted(set(wire_names))
    preferred = {name: _plain(f"{prefix}_{name}" if prefix else name) for name in listed}
    shared = Counter(preferred.values())
    names: dict[str, str] = {}
    used: set[str] = set()
    for keeps_name in (True, False):
        for name in listed:
            plain = preferred[name]
            # If several tools would get the same name, the tool with exactly this name keeps it.
            is_exact = plain == (f"{prefix}_{name}" if prefix else name)
            fits = len(plain) <= LONGEST_PUBLIC_NAME
            if (fits and (is_exact or shared[plain] == 1)) is keeps_name:
                names[name] = plain if keeps_name else _with_hash(server, name, prefix, used)
                used.add(names[name])
    return {name: names[name] for name in listed}


# --- names


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


_HASH_LENGTH = 9
_MIN_PREFIX = 15


def _with_hash(server: str, name: str, prefix: str | None, used: set[str]) -> str:
    length = LONGEST_PUBLIC_NAME - _HASH_LENGTH
    start = _plain(name)
    if prefix:
        # A long prefix is cut first: the name of the tool is more useful to a model.
        short_prefix = _plain(prefix)[: max(_MIN_PREFIX, length - len(start) - 1)]
        start = f"{short_prefix}_{start}"
    seed, number = f"{server}\0{prefix or ''}\0{name}", 0
    while True:
        digest = hashlib.sha256(f"{seed}\0{number}".encode(errors="surrogatepass")).hexdigest()
        candidate = f"{start[:length]}_{digest[:8]}"
        if candidate not in used:
            return candidate
        number += 1


def _tool_name(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise UnusableTool("it has no name")
    if len(name) > LONGEST_NAME:
        raise UnusableTool(f"its name has {len(name):,} characters; the maximum is {LONGEST_NAME}")
    if has_hidden(name):
        raise UnusableTool(f"its name {_describe_hidden(name)}")
    return name


# --- texts

_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")

# The characters of `safe_text`, and: line separators, soft hyphen, grapheme joiner, Hangul
# fillers, Khmer inherent vowels, Mongolian and other variation selectors, code points that Unicode
# reserves for such characters, and controls of shorthand and musical notation.
_HIDDEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\u2028\u2029\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f"
    r"\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_EMOJI = (
    r"\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935"
    r"\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TERMINAL = "\x1b\x90\x98\x9b\x9d-\x9f"


@functools.cache
def _hidden_pattern() -> re.Pattern[str]:
    styled = rf"(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    return re.compile(rf"(?!{styled})[{_HIDDEN}]")


@functools.cache
def _character_kinds() -> list[tuple[str, re.Pattern[str]]]:
    return [
        ("terminal sequences", re.compile(f"[{_TERMINAL}]")),
        ("controls of the writing direction", re.compile(f"[{_BIDI}]")),
        ("lone surrogates", re.compile("[\ud800-\udfff]")),
        ("control characters", re.compile("[\x00-\x1f\x7f-\x9f]")),
        ("invisible characters", re.compile("[^\x00-\x1f]")),
    ]


_MAX_CODES = 4


def _hidden_characters(text: str) -> dict[str, Counter[str]]:
    """Return the hidden characters of a text and their counts, by kind."""
    result: dict[str, Counter[str]] = {}
    for char, count in Counter(cast("list[str]", _hidden_pattern().findall(text))).items():
        kind = next(kind for kind, pattern in _character_kinds() if pattern.match(char))
        result.setdefault(kind, Counter())[char] = count
    return dict(sorted(result.items()))


def _codes(chars: Counter[str]) -> str:
    codes = [f"{count:,} U+{ord(char):04X}" for char, count in chars.most_common(_MAX_CODES)]
    return ", ".join([*codes, "…"] if len(chars) > _MAX_CODES else codes)


def _describe_hidden(text: str) -> str:
    return f"{_quote(text)} contains {' and '.join(_hidden_characters(text))}"


def _quote(value: object) -> str:
    """Quote a value of a server for a message."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(shorten(escape_for_model(_hidden_pattern().sub(_code, text)), 60))


def _code(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0]):04X}>"


_MAX_FINDINGS = 20


def _limit_findings(findings: list[str]) -> list[str]:
    if len(findings) <= _MAX_FINDINGS:
        return findings
    more = len(findings) - _MAX_FINDINGS
    return [*findings[:_MAX_FINDINGS], f"and {more:,} more findings"]


# --- the parts of a tool

if TYPE_CHECKING:
    _Reader = Callable[[Any, list[str], str], Any]

_TOOL_KEYS = frozenset({"name", "title", "description", "inputSchema"})
_HINTS = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})


def _add_optional(
    clean: dict[str, Any],
    findings: list[str],
    key: str,
    value: Any,
    read: _Reader,
    *,
    path: str | None = None,
) -> None:
    """Add an optional field to the clean tool, or a finding if the field is invalid."""
    if value is None:
        return
    inside: list[str] = []
    path = path or key
    try:
        clean[key] = read(value, inside, path)
    except UnusableTool as error:
        findings.append(f"{path}: dropped, {error}")
    else:
        findings.extend(inside)


def _text(value: Any, findings: list[str], path: str, *, limit: int) -> str:
    if not isinstance(value, str):
        raise UnusableTool("it is not a string")
    text, changes = clean_text(value, limit)
    findings.extend(f"{path}: {change}" for change in changes)
    return text


def _input_schema(value: Any, findings: list[str], limits: _SchemaLimits) -> dict[str, Any]:
    try:
        return _object_schema(value, findings, "inputSchema", limits=limits)
    except UnusableTool as error:
        raise UnusableTool(f"its inputSchema is invalid: {error}") from None


def _annotations(value: Any, findings: list[str], path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnusableTool("it is not an object")
    clean: dict[str, Any] = {}
    for key, one in cast("dict[Any, Any]", value).items():
        if key == "title":
            _add_optional(clean, findings, key, one, _title, path=f"{path}.title")
        elif key in _HINTS and isinstance(one, bool):
            clean[key] = one
        elif one is not None:
            reason = "it is neither true nor false" if key in _HINTS else "it is not known"
            findings.append(f"{path}.{_quote(key)}: dropped, {reason}")
    return clean


def _title(value: Any, findings: list[str], path: str) -> str:
    return _text(value, findings, path, limit=LONGEST_NAME)


def _icons(value: Any, findings: list[str], path: str, *, limits: _SchemaLimits) -> list[Any]:
    if not isinstance(value, list):
        raise UnusableTool("it is not a list")
    icons = cast("list[Any]", value)
    limits.check(icons)
    valid = [icon for icon in icons if _is_icon(icon)]
    if len(valid) < len(icons):
        findings.append(f"{path}: dropped {len(icons) - len(valid):,} invalid icons")
    return valid


def _is_icon(icon: Any) -> bool:
    if not isinstance(icon, dict):
        return False
    source: Any = cast("dict[str, Any]", icon).get("src")
    return (
        isinstance(source, str)
        and source.lower().startswith(("https:", "http:", "data:image/"))
        and _find_hidden(cast("Any", icon)) is None
    )


def _metadata(
    value: Any,
    findings: list[str],  # noqa: ARG001 - the signature of the readers
    path: str,  # noqa: ARG001
    *,
    limits: _SchemaLimits,
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnusableTool("it is not an object")
    limits.check(cast("Any", value))
    _reject_hidden(cast("Any", value), "it")
    return cast("dict[str, Any]", value)


# --- schemas


def _object_schema(
    value: Any, findings: list[str], path: str, *, limits: _SchemaLimits
) -> dict[str, Any]:
    clean = _schema(value, findings, path, limits=limits)
    if "type" not in clean:  # arguments are always an object
        clean = {"type": "object", **clean}
        findings.append(f"{_member_path(path, 'type')}: added, it was missing")
    if clean["type"] != "object":
        raise UnusableTool(f"it describes {_quote(clean['type'])}; arguments are an object")
    return clean


def _schema(value: Any, findings: list[str], path: str, *, limits: _SchemaLimits) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnusableTool("it is not a JSON Schema object")
    limits.check(cast("Any", value))
    _check_references(cast("dict[str, Any]", value), limits.nodes)
    return _SchemaCleaner(limits.text, findings).schema(cast("dict[str, Any]", value), path)


def _check_references(schema: dict[str, Any], limit: int) -> None:
    """Reject a schema whose references expand to too many values.

    If each definition refers to the next one twice, a short schema expands exponentially and
    blocks the validator.
    """
    counts: dict[str, int] = {}

    def count(pointer: str) -> int:
        if pointer not in counts:
            counts[pointer] = 0  # a recursive schema is bounded by the size of the arguments
            target = _resolve_pointer(schema, pointer)
            counts[pointer] = min(limit + 1, 1 + sum(map(count, _references(target))))
        return counts[pointer]

    try:
        if count("#") > limit:
            raise UnusableTool(f"its references expand to more than {limit:,} values")
    except RecursionError:
        raise UnusableTool("its references are nested too deeply") from None


def _references(value: Any) -> list[str]:
    """Return the references in a part of a schema, including repeated ones."""
    references: list[str] = []
    remaining = [value]
    while remaining:
        one = remaining.pop()
        if isinstance(one, dict):
            entries = cast("dict[str, Any]", one)
            reference = entries.get("$ref")
            if isinstance(reference, str) and reference.startswith("#"):
                references.append(reference)
            remaining += (part for key, part in entries.items() if key not in _DEFINITIONS)
        elif isinstance(one, list):
            remaining += cast("list[Any]", one)
    return references


_DEFINITIONS = frozenset({"$defs", "definitions"})


def _resolve_pointer(schema: dict[str, Any], pointer: str) -> Any:
    """Return the target of a reference within a schema; `None` if it does not exist."""
    target: Any = schema
    for step in pointer.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        target = cast("dict[str, Any]", target).get(name) if isinstance(target, dict) else None
    return target


@dataclass(frozen=True, slots=True)
class _SchemaLimits:
    text: int
    size: int
    depth: int
    nodes: int

    def check(self, value: object) -> None:
        """Raise an error if a value exceeds the limits."""
        self._check_shape(value)
        try:
            text = json.dumps(value, ensure_ascii=False)
        except ValueError as error:  # an integer with too many digits
            raise UnusableTool(f"it is not JSON: {error}") from None
        size = len(text.encode(errors="surrogatepass"))
        if size > self.size:
            raise UnusableTool(f"it has {size:,} bytes; the maximum is {self.size:,}")

    def _check_shape(self, value: object) -> None:
        # The check is iterative, so that deep nesting cannot exceed the recursion limit.
        level, nodes = [value], 0
        for _ in range(self.depth + 1):
            nodes += len(level)
            if nodes > self.nodes:
                raise UnusableTool(f"it contains more than {self.nodes:,} values")
            below = itertools.chain.from_iterable(map(_children, level))
            level = list(itertools.islice(below, self.nodes + 1))
            if not level:
                return
        raise UnusableTool(f"it is nested more than {self.depth} levels deep")


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        entries = cast("dict[object, object]", value)
        if not all(isinstance(key, str) for key in entries):
            raise UnusableTool("it is not JSON: a name in it is not a string")
        return entries.values()
    if isinstance(value, list):
        return cast("list[object]", value)
    if value is None or isinstance(value, str | int):
        return ()
    if isinstance(value, float) and math.isfinite(value):
        return ()
    raise UnusableTool(f"it is not JSON: it contains {_quote(value)}")


_TEXT_KEYWORDS = frozenset({"title", "description", "$comment"})
_REFERENCE_KEYWORDS = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_SCHEMA_MAPS = SCHEMA_MAP | {"$defs", "definitions", "dependencies"}
_DATA_KEYWORDS = frozenset(
    {
        *("enum", "const", "default", "required", "dependentRequired", "type", "format", "pattern"),
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"),
        *("contentEncoding", "contentMediaType", "multipleOf", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems"),
        *("maxItems", "uniqueItems", "minContains", "maxContains", "minProperties"),
        *("maxProperties", "deprecated", "readOnly", "writeOnly"),
    }
)


class _SchemaCleaner:
    """Copies a schema with sanitized texts.

    Args:
        limit: The maximum length of each text.
        findings: The list to which changes are added.
    """

    def __init__(self, limit: int, findings: list[str]) -> None:
        self._limit = limit
        self._findings = findings

    def schema(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return a sanitized copy; unknown keywords are treated as if they contained schemas."""
        clean: dict[str, Any] = {}
        for key, value in schema.items():
            member_path = _member_path(path, key)
            if key in _TEXT_KEYWORDS and type(value) not in {str, dict}:
                self._findings.append(f"{member_path}: dropped, it is not a string")
            elif key == "examples" and (reason := _find_hidden(value)):
                self._findings.append(f"{member_path}: dropped, {reason}")
            elif key in _DATA_KEYWORDS or key == "examples":
                _reject_hidden(value, member_path)
                clean[key] = value
            elif key in _REFERENCE_KEYWORDS:
                clean[key] = _reference(value, member_path)
            elif key in _SCHEMA_MAPS and isinstance(value, dict):
                clean[key] = self._members(cast("dict[str, Any]", value), member_path)
            else:
                clean[key] = self._value(value, member_path)
        return clean

    def _members(self, members: Mapping[str, Any], path: str) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for name, value in members.items():
            member_path = _member_path(path, name)
            if isinstance(value, dict):
                clean[name] = self.schema(cast("dict[str, Any]", value), member_path)
            else:  # a list of dependent property names, or a boolean schema
                _reject_hidden(value, member_path)
                clean[name] = value
        return clean

    def _value(self, value: Any, path: str) -> Any:
        if isinstance(value, str):
            return _text(value, self._findings, path, limit=self._limit)
        if isinstance(value, dict):
            return self.schema(cast("dict[str, Any]", value), path)
        if isinstance(value, list):
            values = cast("list[Any]", value)
            return [self._value(one, f"{path}[{n}]") for n, one in enumerate(values)]
        return value


def _reference(value: Any, path: str) -> Any:
    _reject_hidden(value, path)
    if isinstance(value, str) and not value.startswith("#"):
        raise UnusableTool(f"{path} refers to another document: {_quote(value)}")
    return value


def _member_path(path: str, name: str) -> str:
    """Return the path of a member; raise an error if its name contains hidden characters."""
    if has_hidden(name):
        where = f"in {path} " if path else ""
        raise UnusableTool(f"{where}the name {_describe_hidden(name)}")
    return f"{path}.{shorten(name, 40)}" if path else shorten(name, 40)


def _reject_hidden(value: object, path: str) -> None:
    if reason := _find_hidden(value):
        raise UnusableTool(f"{path} cannot be changed, and {reason}")


def _find_hidden(value: object) -> str | None:
    """Describe the first text or name with hidden characters; return `None` if there is none."""
    if isinstance(value, str):
        return f"the text {_describe_hidden(value)}" if has_hidden(value) else None
    if isinstance(value, list):
        inside = cast("list[object]", value)
    elif isinstance(value, dict):
        entries = cast("dict[object, object]", value)
        inside = [*entries, *entries.values()]
    else:
        return None
    return next((reason for one in inside if (reason := _find_hidden(one))), None)
