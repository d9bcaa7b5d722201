"""Hide the messages of internal errors from clients."""

from __future__ import annotations

import logging
import os
import traceback
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.errors import AgentsToolsError, UserValueError
from agents_tools.events.kinds import ErrorEvent, RunFinishedEvent, RunItemStreamEvent
from agents_tools.text.output import release_text
from agents_tools.tool.failure import describe_error, is_public

if TYPE_CHECKING:
    from agents_tools.events.base import Event

__all__ = ["ErrorMasker"]

logger = logging.getLogger("agents_tools.ui")


class ErrorMasker:
    """Hides the messages of exceptions in texts and events for clients.

    Args:
        errors: `hide` replaces the message of exceptions that are not the library's own by an id
            to search for in the log; `show` keeps it.

    Raises:
        UserError: `errors` is neither of both.
    """

    def __init__(self, errors: Literal["hide", "show"]) -> None:
        if errors not in {"hide", "show"}:
            raise UserValueError(
                f"errors= is invalid: expected 'hide' or 'show', got {errors!r:.60}."
            )
        self._shows = errors == "show"

    def text_of(self, error: BaseException, where: str) -> str:
        """Return the text of an exception for clients, and log a hidden one.

        Args:
            error: The exception.
            where: The name of the failed part, for the log.
        """
        text = describe_error(error)
        if is_public(error) or self._shows:
            return release_text(text)
        number = os.urandom(4).hex()
        self._log_trace(error, where, number)
        return f"{text.partition(':')[0]} (error {number})"

    def log_error(self, error: BaseException, run_id: str, event_id: int) -> None:
        """Log the exception that ended a run, with the number that clients see.

        Args:
            error: The exception.
            run_id: The run.
            event_id: The id of the event that reports the end.
        """
        if not (is_public(error) or self._shows):
            self._log_trace(error, f"Run {run_id}", _number(run_id, event_id))

    def _log_trace(self, error: BaseException, where: str, number: str) -> None:
        trace = "".join(traceback.format_exception(error))
        logger.error("%s failed (error %s).\n%s", where, number, _masked(trace))

    def event(self, event: Event, run_id: str) -> Event:
        """Return an event for clients; the same event has the same number each time.

        Args:
            event: The event.
            run_id: Its run.
        """
        if event.__class__ is RunItemStreamEvent:
            return self._item(cast("RunItemStreamEvent[Any]", event))
        if self._shows:
            return event
        number = _number(run_id, event.id)
        if isinstance(event, RunFinishedEvent) and event.error:
            name, _, message = event.error.partition(": ")
            is_shown = name in _own_names() or not message
            return event if is_shown else event.replace(error=f"{name} (error {number})")
        if isinstance(event, ErrorEvent) and event.kind not in _own_names():
            return event.replace(message=f"{event.kind or 'Error'} (error {number})")
        return event

    def log_item(self, event: Event) -> None:
        """Log the output of a failed call that clients do not see."""
        if event.__class__ is not RunItemStreamEvent or self._shows:
            return
        item = cast("RunItemStreamEvent[Any]", event).item
        if "public_message" in item:
            logger.error("%s\n%s", item["public_message"], _masked(str(item.get("output"))))

    def _item(self, event: RunItemStreamEvent[Any]) -> Event:
        """Return the event of an item, with the output for people outside of the application."""
        public: Any = event.item.get("public_message")
        if event.name not in {"tool_output", "background_result"} or public is None:
            return event
        item = {name: value for name, value in event.item.items() if name != "public_message"}
        if not self._shows:
            item["output"] = public
        return event.replace(item=item, attached=None)


def _masked(text: str) -> str:
    return release_text(text, to="model", patterns=True)


def _number(run_id: str, event_id: int) -> str:
    """Return the number of a hidden error, which names its event and nothing of its message."""
    return sha256(f"{run_id}\0{event_id}".encode()).hexdigest()[:8]


def _own_names() -> set[str]:
    """Return the names of all errors of the library and of their subclasses."""
    names: set[str] = set()
    waiting: list[type] = [AgentsToolsError]
    while waiting:
        one = waiting.pop()
        names.add(one.__name__)
        waiting += one.__subclasses__()
    return names
