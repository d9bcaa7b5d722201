"""Changes to the arguments that a model sees."""

from __future__ import annotations

import typing
from typing import Any

from agents_tools.errors import ModelBehaviorError, UserValueError
from agents_tools.policies._change import Change, change_around

if typing.TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = ["hide", "without_unused_definitions"]


def hide(**values: Any) -> Change:
    """Set arguments once and for all and hide them from the model.

    Args:
        **values: The arguments and their values, which must have a JSON form.

    Raises:
        UserError: The tool has no such parameter, or a value has no JSON form.
    """
    from pydantic_core import to_json

    if not values:
        raise UserValueError("hide(...) hides nothing: give it arguments by name.")
    try:
        fixed = to_json(values).decode()
    except Exception as error:
        raise UserValueError(
            f"hide(...) takes values that have a JSON form ({error}). Give other objects to the "
            "function with `functools.partial` before it becomes a tool."
        ) from error

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            return await inner(context, _joined(args_json, fixed, values))

        return call

    def reshape(schema: dict[str, Any]) -> dict[str, Any]:
        properties = typing.cast("dict[str, Any]", schema.get("properties", {}))
        for name in values:
            if name not in properties:
                known = ", ".join(properties) or "none"
                raise UserValueError(
                    f"hide({name}=...) names no parameter of the tool; it has: {known}."
                )
            del properties[name]
        required = [name for name in schema.get("required", ()) if name not in values]
        schema.pop("required", None)
        if required:
            schema["required"] = required
        return without_unused_definitions(schema)

    return change_around(f"hide({', '.join(values)})", wrap, reshape=reshape)


def _joined(args_json: Any, fixed: str, names: Mapping[str, Any]) -> Any:
    """Add the fixed arguments to what the model sent, which may not contain them."""
    from pydantic_core import from_json

    if isinstance(args_json, (bytes, bytearray)):
        args_json = bytes(args_json).decode(errors="surrogateescape")
    text: str = (args_json or "").strip(" \t\r\n")
    if text in {"", "null"}:
        return fixed
    try:
        given: Any = from_json(text)
        if isinstance(given, str):  # an object in a string, which the tool's reader unwraps
            text = given.strip(" \t\r\n")
            given = from_json(text)
    except (TypeError, ValueError):
        given = None
    if not isinstance(given, dict):
        raise ModelBehaviorError(_NO_OBJECT)
    for name in names:
        if name in given:
            raise ModelBehaviorError(f"Invalid arguments:\n- {name}: unknown, leave it out")
    return fixed if not given else f"{text[:-1]},{fixed[1:]}"


_NO_OBJECT = "Invalid arguments: expected one JSON object with the tool's parameters."


def without_unused_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out the definitions of a schema that nothing refers to any more."""
    definitions = typing.cast("dict[str, Any]", schema.pop("$defs", {}))
    used: set[str] = set()
    waiting = [schema]
    while waiting:
        text = repr(waiting.pop())
        for name, definition in definitions.items():
            if name not in used and f"'#/$defs/{name}'" in text:
                used.add(name)
                waiting.append(definition)
    kept = {name: definition for name, definition in definitions.items() if name in used}
    return {**schema, "$defs": kept} if kept else schema
