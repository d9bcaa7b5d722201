"""Hide the messages of internal errors from clients."""

from __future__ import annotations

import logging
import os
import re
import traceback
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.errors import AgentsToolsError, UserValueError
from agents_tools.events.kinds import ErrorEvent, RunFinishedEvent, RunItemStreamEvent
from agents_tools.text.forms import MASK
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.events.base import Event

__all__ = ["ErrorMasker"]

logger = logging.getLogger("agents_tools.ui")

_FAILED = re.compile(r"(Tool .{1,300}? failed: [^\s:]+): (.+)", re.DOTALL)
"""The text of `default_tool_error_function` for an exception that is not the library's own."""


class ErrorMasker:
    """Hides the messages of exceptions in texts and events for clients.

    Args:
        errors: `hide` replaces the message of exceptions that are not the library's own by an id
            to search for in the log; `show` keeps it.
        secrets: Values that are masked in the log, by name, besides the registered secrets.

    Raises:
        UserError: `errors` is neither of both.
    """

    def __init__(
        self, errors: Literal["hide", "show"], secrets: Mapping[str, str] | None = None
    ) -> None:
        if errors not in {"hide", "show"}:
            raise UserValueError(
                f"errors= is invalid: expected 'hide' or 'show', got {errors!r:.60}."
            )
        self._shows = errors == "show"
        self._secrets = sorted(filter(None, (secrets or {}).values()), key=len, reverse=True)

    def error(self, error: BaseException, *, where: str) -> str:
        """Return the text of an exception for clients.

        Args:
            error: The exception.
            where: The name of the failed part, for the log.
        """
        name = type(error).__name__  # the form that runs use
        if isinstance(error, AgentsToolsError) or self._shows:
            return f"{name}: {error}"
        number = _number()
        trace = "".join(traceback.format_exception(error))
        logger.error("%s failed (error %s).\n%s", where, number, self._masked(trace))
        return f"{name} (error {number})"

    def event(self, event: Event) -> Event:
        """Return an event for clients."""
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
        is_public = event.name != "tool_output" or event.item.get("status") == "ok"
        if is_public or not isinstance(output, str):
            return event
        match = _FAILED.fullmatch(output)
        if match is None:
            return event
        hidden = self._hidden(match[1], match[2])
        return event.replace(item={**event.item, "output": hidden}, attached=None)

    def _text(self, text: str) -> str:
        """Return a text of the form `Type: message` for clients."""
        name, _, message = text.partition(": ")
        return text if name in _own_names() or not message else self._hidden(name, message)

    def _hidden(self, kind: str, message: str) -> str:
        number = _number()
        logger.error("%s (error %s): %s", kind, number, self._masked(message))
        return f"{kind} (error {number})"

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return release_text(text, to="model", patterns=True)


def _number() -> str:
    return os.urandom(4).hex()


def _own_names() -> set[str]:
    """Return the names of all errors of the library and of their subclasses."""
    names: set[str] = set()
    waiting: list[type] = [AgentsToolsError]
    while waiting:
        one = waiting.pop()
        names.add(one.__name__)
        waiting += one.__subclasses__()
    return names
