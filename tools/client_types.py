"""`python -m tools.client_types`: write the TypeScript types of events and of the protocol's JSON.

They are generated from the schemas of the OpenAPI document, which has the JSON Schema of events.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, TypeAlias

from agents_tools.ui._openapi import openapi_document

__all__ = ["FILE", "type_definitions"]

Json: TypeAlias = dict[str, Any]

FILE: Final = Path(__file__).parents[1] / "js" / "client" / "src" / "protocol.ts"
_HEAD = """\
// The JSON of the protocol. Written by `python -m tools.client_types` from the JSON Schema of the
// library; do not edit.
"""
_LEFT_OUT = frozenset({"StartRun"})
_NAMES = {"Approval": "WaitingCall", "Error": "ErrorBody", "Event": "RunEvent"}
"""The names of types where those of the schemas have another meaning in a web page."""
_SIMPLE = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "{ [key: string]: unknown }",
}


def type_definitions() -> str:
    """Return the source of the types."""
    schemas: Json = openapi_document([], serves_agent=True, has_auth=False)["components"]["schemas"]
    kept = {name: schema for name, schema in schemas.items() if name not in _LEFT_OUT}
    return "\n".join([_HEAD, *(_definition(*item) for item in kept.items())])


def _definition(name: str, schema: Json) -> str:
    comment = f"/** {schema['description']} */\n" if "description" in schema else ""
    name = _NAMES.get(name, name)
    if "oneOf" in schema:
        members = "".join(f"\n  | {_type(one)}" for one in schema["oneOf"])
        return f"{comment}export type {name} ={members};\n"
    return f"{comment}export interface {name} {_fields(schema)}\n"


def _fields(schema: Json) -> str:
    """Return the fields of an object.

    The server sends fields with a default, too. Other optional fields can be missing.
    """
    required = schema.get("required", ())
    lines: list[str] = []
    for name, field in schema["properties"].items():
        if "description" in field:
            lines.append(f"/** {field['description']} */")
        is_sent = name in required or "default" in field
        lines.append(f"{name}{'' if is_sent else '?'}: {_type(field)};")
    return "{\n" + "".join(f"  {line}\n" for line in "\n".join(lines).splitlines()) + "}"


def _type(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _NAMES.get(name, name)
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if "properties" in schema:
        return _fields(schema)
    kinds: str | list[str] = schema.get("type", [])
    if kinds == "array":
        return f"Array<{_type(schema['items'])}>"
    names = [kinds] if isinstance(kinds, str) else kinds
    return " | ".join(_SIMPLE[name] for name in names) or "unknown"


if __name__ == "__main__":
    FILE.write_text(type_definitions())
