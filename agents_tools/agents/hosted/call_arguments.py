"""Reading the arguments of calls that the provider sends, and running the callbacks for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import ModelBehaviorError
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["check_type", "read_object", "read_objects", "read_optional", "run_callback"]


async def run_callback(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of the application, in a thread if it is synchronous."""
    from inspect import iscoroutinefunction

    from agents_tools.concurrency.threads import run_in_thread

    is_sync = not iscoroutinefunction(function)  # also looks inside `functools.partial`
    value = await run_in_thread(function, *args) if is_sync else function(*args)
    return await value if hasattr(value, "__await__") else value


def read_object(args_json: str) -> dict[str, Any]:
    """Parse the arguments of a call.

    Raises:
        ModelBehaviorError: The text is not a JSON object.
    """
    try:
        value: object = json.loads(args_json)
    except ValueError as error:
        raise ModelBehaviorError(f"The action is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ModelBehaviorError(
            f"The action is not a JSON object: expected an object, got {type_with_article(value)}."
        )
    return cast("dict[str, Any]", value)


def read_objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return a list of objects; `None` is read as an empty list.

    Args:
        value: The value.
        name: The name of the argument, for the error message.

    Raises:
        ModelBehaviorError: The value is not a list of objects.
    """
    objects = check_type(value or [], list, name, "a list of objects")
    return [check_type(item, dict, name, "a list of objects") for item in objects]


def read_optional(action: dict[str, Any], name: str, kind: type, expected: str) -> Any:
    """Return an argument that has to be of a type, or `None` if it is missing.

    Args:
        action: The arguments of the call.
        name: The name of the argument.
        kind: The expected type.
        expected: The expected type in words, for the error message.

    Raises:
        ModelBehaviorError: The value is of another type.
    """
    value = action.get(name)
    return None if value is None else check_type(value, kind, name, expected)


def check_type(value: Any, kind: type, name: str, expected: str) -> Any:
    """Return a value that has to be of a type; a boolean is not accepted as a number.

    Args:
        value: The value.
        kind: The expected type.
        name: The name of the argument, for the error message.
        expected: The expected type in words, for the error message.

    Raises:
        ModelBehaviorError: The value is of another type.
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ModelBehaviorError(f"{name}: expected {expected}, got {value!r:.60}")
    return value
