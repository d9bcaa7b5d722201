"""What people outside are told of errors that were not meant for them."""

from __future__ import annotations

import logging
import os
import re
import traceback
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools._secrets import MASK, mask
from agents_tools._text import escape_for_model
from agents_tools.errors import AgentsToolsError, UserValueError
from agents_tools.events import ErrorEvent, RunFinishedEvent, RunItemStreamEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.events import Event

__all__ = ["Teller"]

logger = logging.getLogger("agents_tools.ui")

_FAILED = re.compile(r"(Tool .{1,300}? failed: [^\s:]+): (.+)", re.DOTALL)
"""What `default_tool_error_function` makes of an exception that is not the library's own."""


class Teller:
    """Decides what is told of exceptions.

    Args:
        errors: `hide`: of those that are not the library's own, the type and an id that stands in
            the log; `show`: the message, too.
        secrets: What is masked in the log, by name, besides the registered secrets.

    Raises:
        UserError: `errors` is neither.
    """

    def __init__(
        self, errors: Literal["hide", "show"], secrets: Mapping[str, str] | None = None
    ) -> None:
        if errors not in {"hide", "show"}:
            raise UserValueError(f"errors= is 'hide' or 'show', not {errors!r:.60}.")
        self._shows = errors == "show"
        self._secrets = sorted(filter(None, (secrets or {}).values()), key=len, reverse=True)

    def error(self, error: BaseException, *, where: str) -> str:
        """Give what is told of an exception.

        Args:
            error: The exception.
            where: What failed, for the log.
        """
        name = type(error).__name__  # as runs themselves write it
        if isinstance(error, AgentsToolsError) or self._shows:
            return f"{name}: {error}"
        number = _number()
        trace = "".join(traceback.format_exception(error))
        logger.error("%s has failed (error %s).\n%s", where, number, self._masked(trace))
        return f"{name} (error {number})"

    def event(self, event: Event) -> Event:
        """Give an event as it is told."""
        if self._shows:
            return event
        if event.__class__ is RunItemStreamEvent:
            return self._item(cast("RunItemStreamEvent[Any]", event))
        if isinstance(event, RunFinishedEvent) and event.error:
            return event.replace(error=self._text(event.error))
        if isinstance(event, ErrorEvent) and event.kind not in _own_names():
            return event.replace(message=self._hidden(event.kind or "Error", event.message))
        return event

    def _item(self, event: RunItemStreamEvent[Any]) -> Event:
        output = event.item.get("output")
        told = event.name != "tool_output" or event.item.get("status") == "ok"
        if told or not isinstance(output, str):
            return event
        found = _FAILED.fullmatch(output)
        if found is None:
            return event
        hidden = self._hidden(found[1], found[2])
        return event.replace(item={**event.item, "output": hidden}, attached=None)

    def _text(self, text: str) -> str:
        """Give what is told of `Type: message`."""
        name, _, message = text.partition(": ")
        return text if name in _own_names() or not message else self._hidden(name, message)

    def _hidden(self, told: str, message: str) -> str:
        number = _number()
        logger.error("%s (error %s): %s", told, number, self._masked(message))
        return f"{told} (error {number})"

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return escape_for_model(mask(text))


def _number() -> str:
    return os.urandom(4).hex()


def _own_names() -> set[str]:
    """Name all errors of the library, and those made of them."""
    found: set[str] = set()
    waiting: list[type] = [AgentsToolsError]
    while waiting:
        one = waiting.pop()
        found.add(one.__name__)
        waiting += one.__subclasses__()
    return found
