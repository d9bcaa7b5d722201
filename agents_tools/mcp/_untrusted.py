"""What a server says about a tool, made harmless before a model or a person sees it."""

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

from agents_tools._strict import SCHEMA_MAP
from agents_tools._text import escape_for_model, safe_text, shorten

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
"""The most characters of a tool's name at its server."""
LONGEST_PUBLIC_NAME = 64
"""The most characters of a tool's name that all model providers take."""


class UnusableTool(ValueError):  # noqa: N818 - what the tool is, not what went wrong here
    """A tool cannot be offered to a model; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanTool:
    """A tool as its server lists it, with nothing hidden in it.

    Attributes:
        wire: The tool, as in a result of `tools/list`.
        findings: What was changed, one sentence each; for logs and events, never for a model.
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
    """Take what can be used of a tool that a server lists. The listed tool is not changed.

    Names and schemas have to be whole, since calls depend on them; texts are cleaned; whatever
    else is odd or unknown is dropped.

    Args:
        wire: The tool, as in a result of `tools/list`.
        description_limit: Characters of its description.
        parameter_limit: Characters of each text inside its schemas.
        max_bytes: Size of a schema, or of the metadata.
        max_depth: How deep these may be nested.
        max_nodes: How many values they may hold.

    Raises:
        UnusableTool: It has no usable name or no usable input schema.
    """
    if not isinstance(wire, dict):
        raise UnusableTool("the server lists something that is no tool")
    tool = cast("dict[Any, Any]", wire)
    if _is_plain(tool, min(parameter_limit, description_limit, max_bytes, max_nodes), max_depth):
        return CleanTool(wire=dict(tool), findings=())
    limits = _Limits(parameter_limit, max_bytes, max_depth, max_nodes)
    findings: list[str] = []
    clean: dict[str, Any] = {"name": _tool_name(tool.get("name"))}
    for key, limit in (("title", LONGEST_NAME), ("description", description_limit)):
        _take(clean, findings, key, tool.get(key), functools.partial(_text, limit=limit))
    clean["inputSchema"] = _input_schema(tool.get("inputSchema"), findings, limits)
    readers: dict[str, _Reader] = {
        "outputSchema": functools.partial(_schema, limits=limits),
        "annotations": _annotations,
        "icons": functools.partial(_icons, limits=limits),
        "execution": functools.partial(_metadata, limits=limits),
        "_meta": functools.partial(_metadata, limits=limits),
    }
    for key, read in readers.items():
        _take(clean, findings, key, tool.get(key), read)
    findings += [
        f"{_shown(key)}: dropped, the protocol does not know it"
        for key in tool
        if key not in _TOOL_KEYS and key not in readers
    ]
    return CleanTool(wire=clean, findings=tuple(_some(findings)))


def _is_plain(tool: dict[Any, Any], limit: int, depth: int) -> bool:
    """Whether nothing in a tool can need a closer look; most tools are so, and lists are long.

    A text that is short as a whole has no part that is too long, and one in plain ASCII whose only
    escapes are line ends and quotes hides nothing.
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
        text = json.dumps(tool)
    except (TypeError, ValueError, RecursionError):
        return False
    return (
        len(text) <= limit
        and len(name) <= LONGEST_NAME
        and text.count("{") + text.count("[") <= depth
        and "$" not in text
        and "\x7f" not in text
        and "\\" not in text.replace("\\n", " ").replace('\\"', " ")
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
    """Clean the texts for people and models inside the schema of a tool's arguments.

    What decides whether arguments are valid is never changed: property names, the values of
    `enum`, `const` and `default`, patterns. A schema that hides something there is refused.

    Args:
        schema: The schema. It is not changed.
        description_limit: Characters of each text.
        max_bytes: Its size as JSON.
        max_depth: How deep objects and arrays may be nested.
        max_nodes: How many values it may hold.

    Returns:
        A new schema, and what was changed.

    Raises:
        UnusableTool: It is too large or too deep, describes no object, refers to something
            outside of itself, or hides characters in what cannot be changed.
    """
    findings: list[str] = []
    limits = _Limits(description_limit, max_bytes, max_depth, max_nodes)
    return _object_schema(schema, findings, "", limits=limits), _some(findings)


def clean_text(text: str, limit: int) -> tuple[str, list[str]]:
    """Remove what cannot be seen from a text, and cut it.

    Gone are invisible characters, controls except tab and newline, terminal sequences and
    controls of the direction of writing. A variation selector stays where it follows an emoji.

    Args:
        text: The text.
        limit: How many characters to keep; a note of what was cut comes after them.

    Returns:
        The text, and what was found in it, one sentence each.
    """
    findings: list[str] = []
    if has_hidden(text):
        text = _LINE_ENDS.sub("\n", text)
        findings = [f"removed {kind}: {_codes(chars)}" for kind, chars in _found(text).items()]
        text = _hidden().sub("", safe_text(text))
    if len(text) > limit:
        cut = len(text) - limit
        findings.append(f"cut {cut:,} of {len(text):,} characters")
        text = f"{text[:limit]} … [cut: {cut} characters]"
    return text, findings


def has_hidden(text: str) -> bool:
    """Whether a text holds what `clean_text` removes."""
    return _hidden().search(text) is not None


def public_names(server: str, wire_names: Iterable[str], *, prefix: str | None) -> dict[str, str]:
    """Name the tools of a server as every model provider takes it.

    A name is `{prefix}_{tool}`, with `_` for what is no letter, digit, `_` or `-`. Eight
    hexadecimal digits are added where it is cut, or would be that of another tool. The same tools
    get the same names in whatever order they are listed.

    Args:
        server: The name of the server.
        wire_names: The names of its tools there.
        prefix: What the names begin with; `None` for nothing.

    Returns:
        The new names, by the old ones.
    """
    listed = sorted(set(wire_names))
    wanted = {name: _plain(f"{prefix}_{name}" if prefix else name) for name in listed}
    shared = Counter(wanted.values())
    names: dict[str, str] = {}
    taken: set[str] = set()
    for kept in (True, False):
        for name in listed:
            plain = wanted[name]
            # Of tools that would share a name, the one that bears it unchanged has it.
            whole = plain == (f"{prefix}_{name}" if prefix else name)
            if (len(plain) <= LONGEST_PUBLIC_NAME and (whole or shared[plain] == 1)) is kept:
                names[name] = plain if kept else _marked(server, name, prefix, taken)
                taken.add(names[name])
    return {name: names[name] for name in listed}


# --- names


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


_MARK = 9
_LEAST_PREFIX = 15


def _marked(server: str, name: str, prefix: str | None, taken: set[str]) -> str:
    room = LONGEST_PUBLIC_NAME - _MARK
    start = _plain(name)
    if prefix:
        # A long prefix gives way: the tool's own name tells a model more.
        kept = _plain(prefix)[: max(_LEAST_PREFIX, room - len(start) - 1)]
        start = f"{kept}_{start}"
    seed, number = f"{server}\0{prefix or ''}\0{name}", 0
    while True:
        digest = hashlib.sha256(f"{seed}\0{number}".encode(errors="surrogatepass")).hexdigest()
        made = f"{start[:room]}_{digest[:8]}"
        if made not in taken:
            return made
        number += 1


def _tool_name(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise UnusableTool("it has no name")
    if len(name) > LONGEST_NAME:
        raise UnusableTool(f"its name has {len(name):,} characters; at most {LONGEST_NAME} do")
    if has_hidden(name):
        raise UnusableTool(f"its name {_holds(name)}")
    return name


# --- texts

_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")

# As in `safe_text`, and: separators of lines; soft hyphen, grapheme joiner, fillers of Hangul,
# inherent vowels of Khmer, selectors of Mongolian, variation selectors, what Unicode keeps free
# for more of the kind, controls of shorthand and of musical notation.
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
def _hidden() -> re.Pattern[str]:
    styled = rf"(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    return re.compile(rf"(?!{styled})[{_HIDDEN}]")


@functools.cache
def _kinds() -> list[tuple[str, re.Pattern[str]]]:
    return [
        ("terminal sequences", re.compile(f"[{_TERMINAL}]")),
        ("controls of the writing direction", re.compile(f"[{_BIDI}]")),
        ("lone surrogates", re.compile("[\ud800-\udfff]")),
        ("control characters", re.compile("[\x00-\x1f\x7f-\x9f]")),
        ("invisible characters", re.compile("[^\x00-\x1f]")),
    ]


_MOST_CODES = 4


def _found(text: str) -> dict[str, Counter[str]]:
    """Count what is hidden in a text, by kind."""
    found: dict[str, Counter[str]] = {}
    for char, count in Counter(cast("list[str]", _hidden().findall(text))).items():
        kind = next(kind for kind, pattern in _kinds() if pattern.match(char))
        found.setdefault(kind, Counter())[char] = count
    return dict(sorted(found.items()))


def _codes(chars: Counter[str]) -> str:
    codes = [f"{count:,} U+{ord(char):04X}" for char, count in chars.most_common(_MOST_CODES)]
    return ", ".join([*codes, "…"] if len(chars) > _MOST_CODES else codes)


def _holds(text: str) -> str:
    return f"{_shown(text)} holds {' and '.join(_found(text))}"


def _shown(value: object) -> str:
    """Quote what a server said, in a message for people."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(shorten(escape_for_model(_hidden().sub(_code, text)), 60))


def _code(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0]):04X}>"


_MOST_FINDINGS = 20


def _some(findings: list[str]) -> list[str]:
    if len(findings) <= _MOST_FINDINGS:
        return findings
    more = len(findings) - _MOST_FINDINGS
    return [*findings[:_MOST_FINDINGS], f"and {more:,} more findings"]


# --- the parts of a tool

if TYPE_CHECKING:
    _Reader = Callable[[Any, list[str], str], Any]

_TOOL_KEYS = frozenset({"name", "title", "description", "inputSchema"})
_HINTS = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})


def _take(
    clean: dict[str, Any],
    findings: list[str],
    key: str,
    value: Any,
    read: _Reader,
    *,
    place: str | None = None,
) -> None:
    """Take a part that a tool can be without, unless it is odd."""
    if value is None:
        return
    inside: list[str] = []
    place = place or key
    try:
        clean[key] = read(value, inside, place)
    except UnusableTool as error:
        findings.append(f"{place}: dropped, {error}")
    else:
        findings.extend(inside)


def _text(value: Any, findings: list[str], place: str, *, limit: int) -> str:
    if not isinstance(value, str):
        raise UnusableTool("it is no text")
    text, found = clean_text(value, limit)
    findings.extend(f"{place}: {one}" for one in found)
    return text


def _input_schema(value: Any, findings: list[str], limits: _Limits) -> dict[str, Any]:
    try:
        return _object_schema(value, findings, "inputSchema", limits=limits)
    except UnusableTool as error:
        raise UnusableTool(f"its inputSchema cannot be used: {error}") from None


def _annotations(value: Any, findings: list[str], place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnusableTool("it is no object")
    clean: dict[str, Any] = {}
    for key, one in cast("dict[Any, Any]", value).items():
        if key == "title":
            _take(clean, findings, key, one, _title, place=f"{place}.title")
        elif key in _HINTS and isinstance(one, bool):
            clean[key] = one
        elif one is not None:
            reason = "it is neither true nor false" if key in _HINTS else "it is not known"
            findings.append(f"{place}.{_shown(key)}: dropped, {reason}")
    return clean


def _title(value: Any, findings: list[str], place: str) -> str:
    return _text(value, findings, place, limit=LONGEST_NAME)


def _icons(value: Any, findings: list[str], place: str, *, limits: _Limits) -> list[Any]:
    if not isinstance(value, list):
        raise UnusableTool("it is no list")
    icons = cast("list[Any]", value)
    limits.check(icons)
    kept = [icon for icon in icons if _is_icon(icon)]
    if len(kept) < len(icons):
        findings.append(f"{place}: dropped {len(icons) - len(kept):,} that cannot be shown")
    return kept


def _is_icon(icon: Any) -> bool:
    if not isinstance(icon, dict):
        return False
    source: Any = cast("dict[str, Any]", icon).get("src")
    return (
        isinstance(source, str)
        and source.lower().startswith(("https:", "http:", "data:image/"))
        and _hiding(cast("Any", icon)) is None
    )


def _metadata(
    value: Any,
    findings: list[str],  # noqa: ARG001 - as the other readers
    place: str,  # noqa: ARG001
    *,
    limits: _Limits,
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnusableTool("it is no object")
    limits.check(cast("Any", value))
    _refuse_hidden(cast("Any", value), "it")
    return cast("dict[str, Any]", value)


# --- schemas


def _object_schema(
    value: Any, findings: list[str], place: str, *, limits: _Limits
) -> dict[str, Any]:
    clean = _schema(value, findings, place, limits=limits)
    if "type" not in clean:  # arguments are an object whatever it says
        clean = {"type": "object", **clean}
        findings.append(f"{_at(place, 'type')}: added, it was missing")
    if clean["type"] != "object":
        raise UnusableTool(f"it describes {_shown(clean['type'])}; arguments are an object")
    return clean


def _schema(value: Any, findings: list[str], place: str, *, limits: _Limits) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnusableTool("it is no JSON Schema of an object")
    limits.check(cast("Any", value))
    _check_references(cast("dict[str, Any]", value), limits.nodes)
    return _SchemaCleaner(limits.text, findings).schema(cast("dict[str, Any]", value), place)


def _check_references(schema: dict[str, Any], most: int) -> None:
    """Refuse a schema that a validator would walk through more often than it may have values.

    A definition that refers to another one twice, that to a third one twice, and so on, is short to
    write and takes for ever to follow.
    """
    counts: dict[str, int] = {}

    def count(pointer: str) -> int:
        if pointer not in counts:
            counts[pointer] = 0  # a circle costs what the arguments are long
            found = _at_pointer(schema, pointer)
            counts[pointer] = min(most + 1, 1 + sum(map(count, _references(found))))
        return counts[pointer]

    try:
        if count("#") > most:
            raise UnusableTool(f"its references lead to more than {most:,} values")
    except RecursionError:
        raise UnusableTool("its references are nested too deeply") from None


def _references(value: Any) -> list[str]:
    """Give the references in a part of a schema, each as often as it stands there."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            entries = cast("dict[str, Any]", one)
            reference = entries.get("$ref")
            if isinstance(reference, str) and reference.startswith("#"):
                found.append(reference)
            waiting += (part for key, part in entries.items() if key not in _DEFINITIONS)
        elif isinstance(one, list):
            waiting += cast("list[Any]", one)
    return found


_DEFINITIONS = frozenset({"$defs", "definitions"})


def _at_pointer(schema: dict[str, Any], pointer: str) -> Any:
    """Give what a reference within a schema points at; `None` if there is nothing."""
    found: Any = schema
    for step in pointer.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return found


@dataclass(frozen=True, slots=True)
class _Limits:
    text: int
    size: int
    depth: int
    nodes: int

    def check(self, value: object) -> None:
        """Refuse what is too much to be looked at."""
        self._check_shape(value)
        try:
            text = json.dumps(value, ensure_ascii=False)
        except ValueError as error:  # a number too long to be written
            raise UnusableTool(f"it is no JSON: {error}") from None
        size = len(text.encode(errors="surrogatepass"))
        if size > self.size:
            raise UnusableTool(f"it has {size:,} bytes; at most {self.size:,} are taken")

    def _check_shape(self, value: object) -> None:
        # Level by level, so that no nesting is too deep for the check itself.
        level, nodes = [value], 0
        for _ in range(self.depth + 1):
            nodes += len(level)
            if nodes > self.nodes:
                raise UnusableTool(f"it holds more than {self.nodes:,} values")
            below = itertools.chain.from_iterable(map(_inside, level))
            level = list(itertools.islice(below, self.nodes + 1))
            if not level:
                return
        raise UnusableTool(f"it is nested more than {self.depth} levels deep")


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        given = cast("dict[object, object]", value)
        if not all(isinstance(key, str) for key in given):
            raise UnusableTool("it is no JSON: a name in it is no text")
        return given.values()
    if isinstance(value, list):
        return cast("list[object]", value)
    if value is None or isinstance(value, str | int):
        return ()
    if isinstance(value, float) and math.isfinite(value):
        return ()
    raise UnusableTool(f"it is no JSON: it holds {_shown(value)}")


_TEXTS = frozenset({"title", "description", "$comment"})
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_MAPS = SCHEMA_MAP | {"$defs", "definitions", "dependencies"}
_DATA = frozenset(
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
    """Copies a schema with its texts cleaned.

    Args:
        limit: Characters of each text.
        findings: Takes what was changed.
    """

    def __init__(self, limit: int, findings: list[str]) -> None:
        self._limit = limit
        self._findings = findings

    def schema(self, schema: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Give a clean copy; a keyword nobody knows may hold schemas as well."""
        clean: dict[str, Any] = {}
        for key, value in schema.items():
            here = _at(place, key)
            if key in _TEXTS and type(value) not in {str, dict}:
                self._findings.append(f"{here}: dropped, it is no text")
            elif key == "examples" and (reason := _hiding(value)):
                self._findings.append(f"{here}: dropped, {reason}")
            elif key in _DATA or key == "examples":
                _refuse_hidden(value, here)
                clean[key] = value
            elif key in _REFERENCES:
                clean[key] = _reference(value, here)
            elif key in _MAPS and isinstance(value, dict):
                clean[key] = self._members(cast("dict[str, Any]", value), here)
            else:
                clean[key] = self._value(value, here)
        return clean

    def _members(self, members: Mapping[str, Any], place: str) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for name, value in members.items():
            here = _at(place, name)
            if isinstance(value, dict):
                clean[name] = self.schema(cast("dict[str, Any]", value), here)
            else:  # names that depend on this one, or a schema that is true or false
                _refuse_hidden(value, here)
                clean[name] = value
        return clean

    def _value(self, value: Any, place: str) -> Any:
        if isinstance(value, str):
            return _text(value, self._findings, place, limit=self._limit)
        if isinstance(value, dict):
            return self.schema(cast("dict[str, Any]", value), place)
        if isinstance(value, list):
            values = cast("list[Any]", value)
            return [self._value(one, f"{place}[{n}]") for n, one in enumerate(values)]
        return value


def _reference(value: Any, place: str) -> Any:
    _refuse_hidden(value, place)
    if isinstance(value, str) and not value.startswith("#"):
        raise UnusableTool(f"{place} leads out of the schema, to {_shown(value)}")
    return value


def _at(place: str, name: str) -> str:
    """Give the place of a member, and refuse a name that cannot be read."""
    if has_hidden(name):
        where = f"in {place} " if place else ""
        raise UnusableTool(f"{where}the name {_holds(name)}")
    return f"{place}.{shorten(name, 40)}" if place else shorten(name, 40)


def _refuse_hidden(value: object, place: str) -> None:
    if reason := _hiding(value):
        raise UnusableTool(f"{place} cannot be changed, and {reason}")


def _hiding(value: object) -> str | None:
    """Say which text in a value, a name included, holds something hidden."""
    if isinstance(value, str):
        return f"the text {_holds(value)}" if has_hidden(value) else None
    if isinstance(value, list):
        inside = cast("list[object]", value)
    elif isinstance(value, dict):
        given = cast("dict[object, object]", value)
        inside = [*given, *given.values()]
    else:
        return None
    return next((reason for one in inside if (reason := _hiding(one))), None)
