"""Complete the arguments of prompts and of resource templates while a person types them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from agents_tools.errors import UserValueError
from agents_tools.mcp._coerce import an_object
from agents_tools.schema.references import References
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from typing import TypeAlias

    from agents_tools.tool.tool import FunctionTool

    Complete: TypeAlias = Callable[..., Iterable[str] | Awaitable[Iterable[str]]]

__all__ = ["Completer"]

_MAX_VALUES: Final = 100
"""The number of values in a response (`completion/complete`, all protocol versions)."""


class Completer:
    """Completes the arguments of a function: with its choices, or with functions of the author.

    The values of `Literal`, enumerations and booleans are known from the schema.

    Args:
        tool: The tool of the function.
        functions: Functions that return values, by the names of arguments. A function gets the
            typed text, and the other arguments that are filled in if it has a second parameter.
        place: What is completed, for errors.

    Raises:
        UserError: A function is for an argument that does not exist.
    """

    def __init__(
        self, tool: FunctionTool[..., Any], functions: Mapping[str, Complete], place: str
    ) -> None:
        self._tool = tool
        self._functions = functions
        properties: dict[str, Any] = tool.params_json_schema.get("properties") or {}
        if unknown := sorted(functions.keys() - properties.keys()):
            raise UserValueError(
                f"complete= of {place} has unknown arguments: expected names among "
                f"{', '.join(properties) or 'no arguments'}, got {', '.join(unknown)}."
            )
        self._choices = {name: self._choices_of(one) for name, one in properties.items()}

    @property
    def has_values(self) -> bool:
        """Return whether any argument can be completed."""
        return bool(self._functions) or any(self._choices.values())

    async def complete(
        self, argument: str, typed: str, others: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the completion of an argument as protocol JSON.

        Args:
            argument: The name of the argument.
            typed: The text that is typed so far.
            others: The other arguments that are filled in.
        """
        function = self._functions.get(argument)
        if function is None:
            start = typed.casefold()
            choices = self._choices.get(argument, [])
            values = [one for one in choices if one.casefold().startswith(start)]
        else:
            takes_others = len(inspect.signature(function).parameters) > 1
            found = function(typed, others) if takes_others else function(typed)
            values = [str(one) for one in (await found if inspect.isawaitable(found) else found)]
        shown = [release_text(one, to="program") for one in values[:_MAX_VALUES]]
        return {"values": shown, "total": len(values), "hasMore": len(values) > _MAX_VALUES}

    def _choices_of(self, schema: Any) -> list[str]:
        references = References(self._tool.params_json_schema)
        found: list[str] = []
        pending = [an_object(schema)]
        for one in pending:
            target = an_object(references.follow(one))
            pending += [an_object(option) for option in target.get("anyOf", ())]
            if target.get("type") == "boolean":
                found += ["true", "false"]
            values = [target["const"]] if "const" in target else target.get("enum", ())
            found += [value if isinstance(value, str) else str(value) for value in values]
        return found
