"""Other names, descriptions, defaults and fixed values for single arguments of a tool."""

from __future__ import annotations

import re
import typing
from dataclasses import dataclass, replace
from typing import Any, Final

from agents_tools._arguments import arguments_error, unknown_key
from agents_tools._problem import ArgumentProblem
from agents_tools._records import Policy
from agents_tools.errors import (
    ModelBehaviorError,
    ToolError,
    UserTypeError,
    UserValueError,
)
from agents_tools.policies._change import Change
from agents_tools.policies._members import NotAnObject, members_of, object_of

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agents_tools._records import Call
    from agents_tools.context import ToolContext

__all__ = ["ArgTransform", "hide", "transform"]


class _NotSet:
    def __repr__(self) -> str:
        return "<not set>"


NOT_SET: Final[Any] = _NotSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgTransform:
    """What becomes of one argument.

    Attributes:
        name: What models call it.
        description: What models are told about it.
        default: Its value where the model gives none, or `null`; it has to have a JSON form.
        fill: A function of the context that gives its value for each call, sync or async. The
            argument is hidden.
        hide: Whether models are told of it at all. A hidden argument has its default, or that of
            the tool.
        required: Whether the model has to give it.
    """

    name: str | None = None
    description: str | None = None
    default: Any = NOT_SET
    fill: Callable[[ToolContext[Any]], Any] | None = None
    hide: bool = False
    required: bool | None = None

    @property
    def hidden(self) -> bool:
        """Whether models are not told of it."""
        return self.hide or self.fill is not None


def transform(**arguments: ArgTransform) -> Change:
    """Change single arguments of a tool: names, descriptions, defaults, and who gives them.

    Approvals and guardrails that stand inside see the tool's own names; those outside see what
    the model sent. Hidden values are added last, so that nobody else sees them.

    Args:
        **arguments: What becomes of an argument, by the name that it has inside.

    Raises:
        UserError: Options of an argument contradict each other, or a default has no JSON form.
            What does not fit the tool is told when its schema is first needed.
    """
    if not arguments:
        raise UserValueError("transform(...) changes nothing: give it ArgTransforms by argument.")
    for name, change in arguments.items():
        _check(name, change)

    return _changed("transform", arguments)


def hide(**values: Any) -> Change:
    """Set arguments once and for all and hide them from the model.

    Args:
        **values: The arguments and their values, which must have a JSON form.

    Raises:
        UserError: A value has no JSON form. An argument that the tool does not have is told when
            its schema is first needed.
    """
    if not values:
        raise UserValueError("hide(...) hides nothing: give it arguments by name.")
    for name, value in values.items():
        try:
            _json(name, value)
        except UserValueError as error:
            raise UserValueError(
                f"hide({name}=...) takes a value that has a JSON form. Give other objects to the "
                "function with `functools.partial` before it becomes a tool."
            ) from error
    return _changed(
        "hide", {name: ArgTransform(hide=True, default=value) for name, value in values.items()}
    )


def _changed(said: str, arguments: Mapping[str, ArgTransform]) -> Change:
    shown = f"{said}({', '.join(arguments)})"

    def apply(tool: Any) -> Any:
        # A policy of its own for each tool: it has to know the arguments inside.
        work = _Transform(said, arguments, tool)
        return tool.with_(
            policy=Policy(
                name=shown,
                wrap=work.around,
                reshape=work.reshape,
                prepare=work.prepare if work.turns else None,
            )
        )

    return Change(shown, apply)


_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def _check(name: str, change: Any) -> None:
    if not isinstance(change, ArgTransform):
        raise UserTypeError(f"transform({name}=...) takes an ArgTransform, not {change!r:.80}.")
    shown = (change.name, change.description, change.required)
    if change.hidden and any(option is not None for option in shown):
        raise UserValueError(
            f"transform({name}=...): a hidden argument is not shown to models, so name=, "
            "description= and required= say nothing. Leave them out."
        )
    if change.name is not None and not _NAME.fullmatch(change.name):
        raise UserValueError(
            f"transform({name}=...): models know arguments by 1 to 64 letters, digits, `_`, `.` "
            f"and `-`, not by {change.name!r:.80}."
        )
    if change.default is NOT_SET:
        return
    if change.required or change.fill is not None:
        other = "required=True" if change.required else "fill="
        raise UserValueError(f"transform({name}=...): a default is never used beside {other}.")
    _json(name, change.default)


def _json(name: str, value: Any) -> str:
    from pydantic_core import to_json

    try:
        return to_json(value).decode()
    except Exception as error:
        raise UserValueError(
            f"transform({name}=...) takes values that have a JSON form ({error})."
        ) from error


class _Transform:
    """The changes to one tool.

    Args:
        said: What the policy is called.
        changes: What becomes of arguments, by their names inside.
        tool: The tool inside.
    """

    def __init__(self, said: str, changes: Mapping[str, ArgTransform], tool: Any) -> None:
        self._said = said
        self._changes = changes
        self._tool = tool
        self._inside = {
            change.name or name: name for name, change in changes.items() if not change.hidden
        }
        self._gone = {
            name
            for name, change in changes.items()
            if (change.hidden or change.name not in {None, name}) and name not in self._inside
        }
        self._hidden = {name: change.fill for name, change in changes.items() if change.hidden}
        self.turns = len(self._hidden) < len(changes)
        self._defaults = {
            name: _json(name, change.default)
            for name, change in changes.items()
            if change.default is not NOT_SET
        }

    # --- what models are told

    def reshape(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Change the schema as its arguments change."""
        properties: dict[str, Any] = schema.get("properties", {})
        required: list[str] = list(schema.get("required", ()))
        for name in self._changes:
            if name not in properties:
                known = ", ".join(properties) or "none"
                raise UserValueError(
                    f"{self._said}({name}=...) names no parameter of the tool; it has: {known}."
                )
        shown: dict[str, Any] = {}
        needed: list[str] = []
        for name, described in properties.items():
            change = self._changes.get(name, _AS_IT_IS)
            must = self._must_be_given(name, change, is_required=name in required)
            if change.hidden:
                continue
            outside = change.name or name
            if outside in shown:
                raise UserValueError(
                    f"{self._said}({name}=...): the tool would have two arguments {outside!r}."
                )
            shown[outside] = _described(described, name, change)
            if must:
                needed.append(outside)
        schema["properties"] = shown
        schema.pop("required", None)
        if needed:
            schema["required"] = needed
        return _without_unused_definitions(schema)

    def _must_be_given(self, name: str, change: ArgTransform, *, is_required: bool) -> bool:
        has_value = name in self._defaults or change.fill is not None
        if is_required and not has_value and (change.hidden or change.required is False):
            what = "hidden" if change.hidden else "optional"
            raise UserValueError(
                f"{self._said}({name}=...): the tool cannot do without this argument. To make it "
                f"{what}, give it a default, such as ArgTransform(default=...)."
            )
        return not has_value and (change.required or is_required)

    # --- what models send

    async def prepare(self, context: ToolContext[Any], args_json: str) -> str:
        """Turn the arguments that a model sent into those of the tool, hidden ones left out."""
        decision = context.decision
        if decision is not None and decision.arguments is not None:
            return args_json  # of a person, who was shown the tool's own names
        try:
            given = members_of(args_json)
        except NotAnObject:
            return args_json  # the tool says what is wrong with it
        self._refuse_unknown(context, given)
        members = {self._inside.get(key, key): raw for key, raw in given.items()}
        for name, raw in self._defaults.items():
            if not self._changes[name].hidden and members.get(name, "null") == "null":
                members[name] = raw
        missing = [
            ArgumentProblem(path=(name,), expected="a value (required)", got="", kind="missing")
            for name, change in self._changes.items()
            if change.required and name not in members
        ]
        if missing:
            raise self._outside(arguments_error(context.tool_name, missing), context)
        return object_of(members)

    def _known(self) -> list[str]:
        return list(self.reshape(self._tool.params_json_schema).get("properties", ()))

    def _refuse_unknown(self, context: ToolContext[Any], names: Iterable[str]) -> None:
        problems = [unknown_key(name, self._known()) for name in names if name in self._gone]
        if problems:
            raise arguments_error(context.tool_name, problems)

    def around(self, inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            args_json = await self._filled(context, args_json)
            try:
                return await inner(context, args_json)
            except ModelBehaviorError as error:
                if context.validated or not any(problem.path for problem in error.problems):
                    raise
                fault = self._fault(error, args_json)
                if fault is not None:
                    raise self._not_set_up(fault) from fault
                raise self._outside(error, context) from error

        return call

    async def _filled(self, context: ToolContext[Any], args_json: str) -> str:
        """Add what models are not told of."""
        if not self._hidden:
            return args_json
        try:
            members = members_of(args_json)
        except NotAnObject:
            return args_json
        if not self._hidden.keys().isdisjoint(members):
            self._refuse_unknown(context, [name for name in members if name in self._hidden])
        for name, fill in self._hidden.items():
            if fill is not None:
                value = fill(context)
                value = await value if hasattr(value, "__await__") else value
                try:
                    members[name] = _json(name, value)
                except UserValueError as error:
                    raise self._not_set_up(error) from error
            elif name in self._defaults:
                members[name] = self._defaults[name]
            else:
                members.pop(name, None)  # the tool's own default
        return object_of(members)

    def _outside(self, error: ModelBehaviorError, context: ToolContext[Any]) -> Exception:
        """Tell of faults in the names that the model knows."""
        names = {inside: outside for outside, inside in self._inside.items()}
        problems: list[ArgumentProblem] = []
        for problem in error.problems:
            first = problem.path[0] if problem.path else None
            if isinstance(first, str) and problem.kind == "unknown_key" and len(problem.path) == 1:
                problems.append(unknown_key(first, self._known()))
            elif isinstance(first, str) and first in names:
                problems.append(replace(problem, path=(names[first], *problem.path[1:])))
            else:
                problems.append(problem)
        return arguments_error(context.tool_name, problems)

    def _fault(self, error: ModelBehaviorError, args_json: str) -> UserValueError | None:
        """Give the fault of whoever wrote the policy, where a value of it is not accepted."""
        try:
            members = members_of(args_json)
        except NotAnObject:
            return None  # the policy has added nothing
        for problem in error.problems:
            name = problem.path[0] if problem.path else None
            change = self._changes.get(name) if isinstance(name, str) else None
            if change is None:
                continue
            default = self._defaults.get(str(name))
            if change.hidden or (default is not None and members.get(str(name)) == default):
                return UserValueError(
                    f"{self._said}({name}=...) gives a value that tool {self._tool.name!r} does "
                    f"not accept: expected {problem.expected}."
                )
        return None

    def _not_set_up(self, fault: UserValueError) -> ToolError:
        """Tell the developer what is wrong, and the model that it can do nothing about it."""
        import logging

        logging.getLogger("agents_tools").error("%s", fault)
        return ToolError(
            f"Tool {self._tool.name!r} is not set up as it should be, and cannot be called. "
            "The arguments are not at fault."
        )


_AS_IT_IS = ArgTransform()


def _described(described: Any, name: str, change: ArgTransform) -> dict[str, Any]:
    """Give the schema of an argument as models see it."""
    shown = dict(typing.cast("dict[str, Any]", described)) if isinstance(described, dict) else {}
    if change.name not in {None, name} and "title" in shown:
        shown["title"] = str(change.name).replace("_", " ").title()
    if change.description is not None:
        shown["description"] = change.description
    if change.default is not NOT_SET:
        shown["default"] = _plain(name, change.default)
    elif change.required:
        shown.pop("default", None)
    return shown


def _plain(name: str, value: Any) -> Any:
    import json

    return json.loads(_json(name, value))


def _without_unused_definitions(schema: dict[str, Any]) -> dict[str, Any]:
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
