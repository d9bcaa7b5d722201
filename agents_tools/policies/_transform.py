"""Policies that change the arguments of a tool: names, descriptions, defaults, hidden values."""

from __future__ import annotations

import re
import typing
from dataclasses import dataclass, replace
from typing import Any, Final

from agents_tools.errors import (
    ArgumentProblem,
    ModelBehaviorError,
    ToolError,
    UserTypeError,
    UserValueError,
)
from agents_tools.policies._policy import check_function, with_parentheses
from agents_tools.schema.problems import arguments_error, unknown_key
from agents_tools.text.json_limits import parse_object
from agents_tools.text.nouns import type_with_article
from agents_tools.text.secrets import library_logger
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agents_tools.tool.call import Call
    from agents_tools.tool.context import ToolContext

__all__ = ["ArgTransform", "hide", "transform"]


class _NotSet:
    def __repr__(self) -> str:
        return "<not set>"


NOT_SET: Final[Any] = _NotSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgTransform:
    """The changes to one argument.

    Attributes:
        name: The new name for the model.
        description: The new description for the model.
        default: The value if the model sends none or `null`; it has to be serializable as JSON.
        fill: A function of the context that returns the value for each call; sync or async. The
            argument is hidden.
        hide: Whether the argument is hidden from the model. A hidden argument has this default, or
            the default of the tool.
        required: Whether the model has to send the argument.
    """

    name: str | None = None
    description: str | None = None
    default: Any = NOT_SET
    fill: Callable[[ToolContext[Any]], Any] | None = None
    hide: bool = False
    required: bool | None = None

    @property
    def hidden(self) -> bool:
        """Whether the argument is hidden from the model."""
        return self.hide or self.fill is not None


@with_parentheses
def transform(**arguments: ArgTransform) -> Policy:
    """Change the arguments of a tool: names, descriptions, defaults and hidden values.

    Approvals and guardrails see the argument names of the tool, at any position in the stack, and
    never hidden values.

    Args:
        **arguments: The changes, by the name of the argument in the tool.

    Raises:
        UserError: Options contradict each other, or a default is not serializable as JSON. Changes
            that do not fit the tool raise when its schema is first needed.
    """
    if not arguments:
        raise UserValueError(
            "transform(...) has no changes. Pass an ArgTransform for each argument to change."
        )
    for name, change in arguments.items():
        _check(name, change)

    return _Transform("transform", arguments)


@with_parentheses
def hide(**values: object) -> Policy:
    """Set arguments to fixed values and hide them from the model.

    Args:
        **values: The values by argument name. They have to be serializable as JSON.

    Raises:
        UserError: A value is not serializable as JSON. An unknown argument raises when the schema
            of the tool is first needed.
    """
    if not values:
        raise UserValueError("hide(...) has no arguments. Pass a value for each argument to hide.")
    for name, value in values.items():
        try:
            _to_json(name, value)
        except UserValueError as error:
            raise UserValueError(
                f"hide({name}=...) is not serializable as JSON, got {type_with_article(value)}. "
                "Pass such objects with `functools.partial` before the function becomes a tool."
            ) from error
    changes = {name: ArgTransform(hide=True, default=value) for name, value in values.items()}
    return _Transform("hide", changes)


_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def _check(name: str, change: Any) -> None:
    if not isinstance(change, ArgTransform):
        raise UserTypeError(
            f"transform({name}=...) is not valid: expected an ArgTransform, got {change!r:.80}."
        )
    options = (change.name, change.description, change.required)
    if change.hidden and any(option is not None for option in options):
        raise UserValueError(
            f"transform({name}=...): name=, description= and required= have no effect for a hidden "
            "argument. Remove them."
        )
    if change.name is not None and not _NAME.fullmatch(change.name):
        raise UserValueError(
            f"transform({name}=...): the name is not valid: expected 1 to 64 letters, digits, `_`, "
            f"`.` and `-`, got {change.name!r:.80}."
        )
    if change.fill is not None:
        check_function(f"transform({name}=ArgTransform(fill=...))", change.fill, "context")
    if change.default is NOT_SET:
        return
    if change.required or change.fill is not None:
        other = "required=True" if change.required else "fill="
        raise UserValueError(
            f"transform({name}=...): a default is never used with {other}. Remove it."
        )
    _to_json(name, change.default)


def _to_json(name: str, value: Any) -> str:
    from pydantic_core import to_json

    try:
        return to_json(value).decode()
    except Exception as error:
        raise UserValueError(
            f"transform({name}=...) has a value that is not serializable as JSON: {error}."
        ) from error


class _Transform(Policy):
    """The changes to the arguments of a tool.

    Args:
        policy_name: The name of the policy, for errors.
        changes: The changes, by the name of the argument in the tool.
    """

    def __init__(self, policy_name: str, changes: Mapping[str, ArgTransform]) -> None:
        self.name = f"{policy_name}({', '.join(changes)})"
        self._policy_name = policy_name
        self._changes = changes
        self._inner_tool: Any = None
        self._inner_names = {
            change.name or name: name for name, change in changes.items() if not change.hidden
        }
        self._removed_names = {
            name
            for name, change in changes.items()
            if (change.hidden or change.name not in {None, name}) and name not in self._inner_names
        }
        self._hidden = {name: change.fill for name, change in changes.items() if change.hidden}
        self._defaults = {
            name: _json_value(name, change.default)
            for name, change in changes.items()
            if change.default is not NOT_SET
        }

    def apply(self, tool: Any) -> Any:
        own = _Transform(self._policy_name, self._changes)  # it knows the arguments of one tool
        changed = tool.with_(policy=own)
        own._inner_tool = tool
        return changed

    # --- the schema for the model

    def schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        properties: dict[str, Any] = schema.get("properties", {})
        required: list[str] = list(schema.get("required", ()))
        for name in self._changes:
            if name not in properties:
                known = ", ".join(properties) or "none"
                raise UserValueError(
                    f"{self._policy_name}({name}=...) is not a parameter of the tool: expected one "
                    f"of {known}."
                )
        shown: dict[str, Any] = {}
        needed: list[str] = []
        for name, described in properties.items():
            change = self._changes.get(name, _UNCHANGED)
            is_needed = self._is_needed(name, change, is_required=name in required)
            if change.hidden:
                continue
            outside = change.name or name
            if outside in shown:
                raise UserValueError(
                    f"{self._policy_name}({name}=...): the tool would have two arguments named "
                    f"{outside!r}. Choose another name."
                )
            shown[outside] = _outer_schema(described, name, change)
            if is_needed:
                needed.append(outside)
        schema["properties"] = shown
        schema.pop("required", None)
        if needed:
            schema["required"] = needed
        return _without_unused_definitions(schema)

    def _is_needed(self, name: str, change: ArgTransform, *, is_required: bool) -> bool:
        has_value = name in self._defaults or change.fill is not None
        if is_required and not has_value and (change.hidden or change.required is False):
            goal = "hide it" if change.hidden else "make it optional"
            raise UserValueError(
                f"{self._policy_name}({name}=...): the tool requires this argument. To {goal}, "
                "set a default, for example ArgTransform(default=...)."
            )
        return not has_value and (change.required or is_required)

    # --- the arguments from the model

    async def map_arguments(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        self._refuse_unknown(call, arguments)
        mapped = self._with_inner_names(arguments)
        hidden = self._with_inner_names(call.hidden)  # policies outside this one use its names
        for name, default in self._defaults.items():
            if not self._changes[name].hidden and mapped.get(name) is None:
                mapped[name] = default
        missing = [
            ArgumentProblem(
                path=(change.name or name,), expected="a value (required)", got="", kind="missing"
            )
            for name, change in self._changes.items()
            if change.required and name not in mapped and name not in hidden
        ]
        if missing:
            raise arguments_error(call.tool_name, missing)
        call.hidden = {**hidden, **await self._hidden_values(call)}
        return mapped

    def _with_inner_names(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {self._inner_names.get(name, name): value for name, value in values.items()}

    def _outer_names(self) -> list[str]:
        return list(self.schema(self._inner_tool.params_json_schema).get("properties", ()))

    def _refuse_unknown(self, call: Call, names: Iterable[str]) -> None:
        unknown = [name for name in names if name in self._removed_names]
        if unknown:
            known = self._outer_names()
            raise arguments_error(call.tool_name, [unknown_key(name, known) for name in unknown])

    async def _hidden_values(self, call: Call) -> dict[str, Any]:
        """Return the values of hidden arguments; without a value, the default of the tool applies.

        Raises:
            ToolError: A function for a value returned one that has no JSON form.
        """
        values: dict[str, Any] = {}
        for name, fill in self._hidden.items():
            if fill is not None:
                value = fill(call.context)
                value = await value if hasattr(value, "__await__") else value
                try:
                    values[name] = _json_value(name, value)
                except UserValueError as error:
                    raise self._log_for_developer(call, error) from error
            elif name in self._defaults:
                values[name] = self._defaults[name]
        return values

    def map_error(self, call: Call, error: ModelBehaviorError) -> Exception:
        if not any(problem.path for problem in error.problems):
            return error
        fault = self._configuration_error(call, error)
        if fault is not None:
            unusable = self._log_for_developer(call, fault)
            unusable.__cause__ = fault
            return unusable
        return self._with_outer_names(error, call)

    def _with_outer_names(self, error: ModelBehaviorError, call: Call) -> Exception:
        """Return an error that uses the argument names of the model."""
        names = {inside: outside for outside, inside in self._inner_names.items()}
        problems: list[ArgumentProblem] = []
        for problem in error.problems:
            first = problem.path[0] if problem.path else None
            if isinstance(first, str) and problem.kind == "unknown_key" and len(problem.path) == 1:
                problems.append(unknown_key(first, self._outer_names()))
            elif isinstance(first, str) and first in names:
                problems.append(replace(problem, path=(names[first], *problem.path[1:])))
            else:
                problems.append(problem)
        return arguments_error(call.tool_name, problems)

    def _configuration_error(self, call: Call, error: ModelBehaviorError) -> UserValueError | None:
        """Return an error for the developer if the tool does not accept a value of the policy."""
        sent = parse_object(call.sent) or {}
        for problem in error.problems:
            name = problem.path[0] if problem.path else None
            change = self._changes.get(name) if isinstance(name, str) else None
            if change is None:
                continue
            is_default = name in self._defaults and sent.get(change.name or str(name)) is None
            if change.hidden or is_default:
                return UserValueError(
                    f"{self._policy_name}({name}=...) has a value that tool {call.tool_name!r} "
                    f"does not accept: expected {problem.expected}."
                )
        return None

    def _log_for_developer(self, call: Call, error: UserValueError) -> ToolError:
        """Log an error, and return one for the model, which cannot correct it."""
        library_logger().error("%s", error)
        return ToolError(
            f"Tool {call.tool_name!r} is not configured correctly and cannot be called. "
            "The arguments are not the cause."
        )


_UNCHANGED = ArgTransform()


def _outer_schema(described: Any, name: str, change: ArgTransform) -> dict[str, Any]:
    """Return the schema of an argument for the model."""
    shown = dict(typing.cast("dict[str, Any]", described)) if isinstance(described, dict) else {}
    if change.name not in {None, name} and "title" in shown:
        shown["title"] = str(change.name).replace("_", " ").title()
    if change.description is not None:
        shown["description"] = change.description
    if change.default is not NOT_SET:
        shown["default"] = _json_value(name, change.default)
    elif change.required:
        shown.pop("default", None)
    return shown


def _json_value(name: str, value: Any) -> Any:
    import json

    return json.loads(_to_json(name, value))


def _without_unused_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without definitions that are no longer referenced."""
    definitions = typing.cast("dict[str, Any]", schema.pop("$defs", {}))
    used: set[str] = set()
    waiting = [schema]
    while waiting:
        text = repr(waiting.pop())
        for name, definition in definitions.items():
            if name not in used and f"'#/$defs/{name}'" in text:
                used.add(name)
                waiting.append(definition)
    rest = {name: definition for name, definition in definitions.items() if name in used}
    return {**schema, "$defs": rest} if rest else schema
