"""Compact Python signatures of tools, for the model that writes a program."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.errors import UserError
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents_tools.toolset.catalog import AnyTool

__all__ = ["function_names", "parameter_names", "signature", "stubs"]

_SIMPLE: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
_MAX_DEPTH: Final = 4
"""How many levels of nested types a signature shows."""
_MAX_CHOICES: Final = 12
_MAX_DOC: Final = 600
_MAX_PARAMETER_DOC: Final = 160
_SENTENCE: Final = re.compile(r"(?<=[.!?:])\s+")
_MIN_SHARED: Final = 20
"""The length of a first sentence from which on it is worth a heading."""
_MODULES: Final = (
    "asyncio collections csv datetime decimal functools itertools json math os pathlib random re "
    "sys time typing"
)
"""The modules that a program can import; their names would replace functions."""
_RESERVED: Final = frozenset(
    {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *_MODULES.split()}
)


def function_names(tools: Iterable[AnyTool]) -> dict[str, AnyTool]:
    """Return the tools by the names that a program calls them by.

    A name that is not a Python name, or that Python has a meaning for, is changed.

    Args:
        tools: The tools.
    """
    named: dict[str, AnyTool] = {}
    changed: list[AnyTool] = []
    for tool in tools:
        if tool.name.isidentifier() and tool.name not in _RESERVED:
            named[tool.name] = tool
        else:
            changed.append(tool)
    for tool in changed:
        name = re.sub(r"\W", "_", tool.name)
        if not name.isidentifier() or name in _RESERVED:
            name = f"{name}_" if name.isidentifier() else f"_{name}"
        while name in named:
            name += "_"
        named[name] = tool
    return named


def parameter_names(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters in the order of a signature: required ones first.

    Args:
        schema: The JSON Schema of the arguments of a tool.
    """
    properties = _mapping(schema.get("properties"))
    required = [name for name in properties if name in _list(schema.get("required"))]
    return [*required, *(name for name in properties if name not in required)]


def signature(name: str, tool: AnyTool) -> str:
    """Return the signature of a tool, such as `get_user(id: int) -> {'name': str}`.

    Args:
        name: The name of the function.
        tool: The tool.
    """
    try:
        schema: Mapping[str, Any] = tool.json_schema
        result = tool.output_json_schema
    except UserError:  # a call reports the error
        return f"{name}(...)"
    types = _Types(schema)
    required = set(_list(schema.get("required")))
    properties = _mapping(schema.get("properties"))
    parameters: list[str] = []
    for parameter in parameter_names(schema):
        if not parameter.isidentifier() or keyword.iskeyword(parameter):
            continue  # such an argument is passed as **{...}
        member = _mapping(properties[parameter])
        text = f"{parameter}: {types.of(member)}"
        if parameter not in required:
            text += f" = {_literal(member.get('default'))}"
        parameters.append(text)
    if schema.get("additionalProperties"):
        parameters.append("**others")
    returned = "" if result is None else f" -> {_Types(result).of(result)}"
    return f"{name}({', '.join(parameters)}){returned}"


def stubs(functions: Mapping[str, AnyTool]) -> list[str]:
    """Return the signatures of tools with their documentation.

    Servers often begin each description with the same sentences. These are written once, as a
    heading of the functions that have them in common.

    Args:
        functions: The tools by the names of their functions.
    """
    sentences = {name: _SENTENCE.split(tool.description) for name, tool in functions.items()}
    groups: dict[str, list[str]] = {}
    for name, (first, *_) in sentences.items():
        groups.setdefault(first if len(first) >= _MIN_SHARED else "", []).append(name)
    alone = {
        name for first, names in groups.items() if len(names) == 1 or not first for name in names
    }
    lines = [
        _stub(name, tool, tool.description) for name, tool in functions.items() if name in alone
    ]
    for names in groups.values():
        if names[0] in alone:
            continue
        same = takewhile(
            lambda column: len(set(column)) == 1,
            zip(*(sentences[name] for name in names), strict=False),
        )
        shared = [column[0] for column in same]
        lines.append(f"\n# {_one_line(' '.join(shared), _MAX_DOC)}")
        lines += [
            _stub(name, functions[name], " ".join(sentences[name][len(shared) :])) for name in names
        ]
    return lines


def _stub(name: str, tool: AnyTool, description: str) -> str:
    lines = [signature(name, tool)]
    text = _one_line(description, _MAX_DOC)
    if text:
        lines.append(f"  {text}")
    try:
        properties = _mapping(tool.json_schema.get("properties"))
    except UserError:
        return "\n".join(lines)
    for parameter, schema in properties.items():
        described = _one_line(str(_mapping(schema).get("description") or ""), _MAX_PARAMETER_DOC)
        if described:
            lines.append(f"  {parameter}: {described}")
    return "\n".join(lines)


def _one_line(text: str, limit: int) -> str:
    return release_text(" ".join(text.split()), to="model", limit=limit)


class _Types:
    """Writes the types of a JSON Schema in the notation of Python.

    Args:
        root: The schema that has the definitions.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._definitions = {
            **_mapping(root.get("definitions")),
            **_mapping(root.get("$defs")),
        }

    def of(self, schema: Mapping[str, Any], depth: int = _MAX_DEPTH) -> str:
        """Return the type of a schema.

        Args:
            schema: The schema.
            depth: How many levels of nested types are written.
        """
        reference = schema.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            target = self._definitions.get(name)
            if depth <= 0 or not isinstance(target, dict):
                return "Any" if target is None else "dict"
            return self.of(cast("dict[str, Any]", target), depth - 1)
        choices = _list(schema.get("enum")) or [schema["const"]] if _is_choice(schema) else []
        if choices:
            return self._choices(choices)
        for keyword_name in ("anyOf", "oneOf"):
            options = _list(schema.get(keyword_name))
            if options:
                types = dict.fromkeys(self.of(_mapping(one), depth) for one in options)
                return " | ".join(types)
        parts = _list(schema.get("allOf"))
        if len(parts) == 1:
            return self.of(_mapping(parts[0]), depth)
        kind = schema.get("type")
        if isinstance(kind, list):
            names = [self.of({**schema, "type": one}, depth) for one in cast("list[Any]", kind)]
            return " | ".join(dict.fromkeys(names))
        return self._plain(schema, kind, depth)

    def _plain(self, schema: Mapping[str, Any], kind: object, depth: int) -> str:
        if kind == "array":
            items = _mapping(schema.get("items"))
            return f"list[{self.of(items, depth)}]" if items and depth > 0 else "list"
        if kind == "object":
            return self._object(schema, depth)
        return _SIMPLE.get(str(kind), "Any")

    def _object(self, schema: Mapping[str, Any], depth: int) -> str:
        properties = _mapping(schema.get("properties"))
        if properties and depth > 0:
            required = _list(schema.get("required"))
            members = ", ".join(
                f"{name}{'' if name in required else '?'}: {self.of(_mapping(one), depth - 1)}"
                for name, one in properties.items()
            )
            return f"{{{members}}}"
        values = schema.get("additionalProperties")
        if isinstance(values, dict) and values and depth > 0:
            return f"dict[str, {self.of(cast('dict[str, Any]', values), depth - 1)}]"
        return "dict"

    def _choices(self, choices: list[Any]) -> str:
        shown = [_literal(one) for one in choices[:_MAX_CHOICES]]
        if len(choices) > _MAX_CHOICES:
            shown.append("...")
        return f"Literal[{', '.join(shown)}]"


def _is_choice(schema: Mapping[str, Any]) -> bool:
    return isinstance(schema.get("enum"), list) or "const" in schema


def _literal(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_LITERAL else "..."


_MAX_LITERAL = 60


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
