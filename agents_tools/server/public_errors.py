"""Hide the messages of internal errors from clients."""

from __future__ import annotations

import logging
import os
import traceback
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.content.items import ToolCallOutputItem
from agents_tools.errors import AgentsToolsError, UserValueError
from agents_tools.events.kinds import ErrorEvent, RunFinishedEvent, RunItemStreamEvent
from agents_tools.text.forms import MASK
from agents_tools.text.output import release_text
from agents_tools.tool.failure import describe_error, is_public

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.events.base import Event

__all__ = ["ErrorMasker"]

logger = logging.getLogger("agents_tools.ui")


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
        text = describe_error(error)
        if is_public(error) or self._shows:
            return release_text(text)
        number = _number()
        trace = "".join(traceback.format_exception(error))
        logger.error("%s failed (error %s).\n%s", where, number, self._masked(trace))
        return f"{text.partition(':')[0]} (error {number})"

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
        if event.name != "tool_output" or event.item.get("status") == "ok":
            return event
        item = event.attached
        if isinstance(item, ToolCallOutputItem):
            public = item.public_message
        elif event.item.get("status") == "tool_error":  # from elsewhere: nothing is known about it
            public = f"The tool failed (error {_number()})."
        else:
            return event
        output = event.item.get("output")
        if public is None or public == output:
            return event
        logger.error("%s\n%s", public, self._masked(str(output)))
        return event.replace(item={**event.item, "output": public}, attached=None)

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
