"""Log records for calls and runs, with structured fields."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agents_tools.events.kinds import (
    RunFinishedEvent,
    RunStartedEvent,
    ToolAttemptEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.events.listener import add_global_listener
from agents_tools.text.output import release_json, release_text
from agents_tools.tool.call import current_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.events.base import Event

__all__ = ["JsonFormatter", "log_calls"]

_MAX_CHARS = 2_000
"""The maximum number of characters of arguments and messages in a record."""
_FAILURES = frozenset({"tool_error", "timeout", "lost", "overloaded", "error"})


def log_calls(
    logger: logging.Logger | str = "agents_tools.calls",
    *,
    level: int = logging.INFO,
    arguments: bool = False,
) -> Callable[[], None]:
    """Log each call and each run of this process when it ends, and each failed attempt.

    The message is for people. The record has the same data as fields (`extra`), whose names start
    with `tool_` or `run_`: `tool_name`, `tool_call_id`, `tool_path`, `tool_status`,
    `tool_duration` (seconds), `tool_error`, `tool_arguments`, `tool_attempt`, `run_id`,
    `run_agent`, `run_status`, `run_usage`, `run_error`. Secrets are masked.

    Args:
        logger: The logger, or its name.
        level: The level for successful calls and runs. Failures are warnings at least.
        arguments: Whether records contain the arguments of calls.

    Returns:
        A function that stops the logging.
    """
    target = logging.getLogger(logger) if isinstance(logger, str) else logger
    return add_global_listener(_EventLogger(target, level, arguments=arguments).log_event)


class _EventLogger:
    def __init__(self, logger: logging.Logger, level: int, *, arguments: bool) -> None:
        self._logger = logger
        self._level = level
        self._arguments = arguments
        self._runs: ContextVar[tuple[RunStartedEvent, ...]] = ContextVar("runs", default=())

    def log_event(self, event: Event) -> None:
        """Log an event if it ends a call or a run, or reports a failed attempt."""
        match event:
            case ToolStreamStartEvent() if self._logger.isEnabledFor(logging.DEBUG):
                self._log(logging.DEBUG, f"Tool {event.tool_name!r} began", self._call(event))
            case ToolStreamEndEvent():
                self._ended(event)
            case ToolAttemptEvent():
                fields = {**self._call(event), "tool_attempt": event.attempt}
                fields["tool_error"] = event.error
                text = f"Tool {event.tool_name!r} failed at attempt {event.attempt}: {event.error}"
                self._log(logging.WARNING, text, fields)
            case RunStartedEvent():
                self._runs.set((*self._runs.get(), event))
                if self._logger.isEnabledFor(logging.DEBUG):
                    fields = {"run_id": event.run_id, "run_agent": event.agent}
                    fields["tool_path"] = _path(event)
                    self._log(logging.DEBUG, f"Agent {event.agent!r} began", fields)
            case RunFinishedEvent():
                self._finished(event)
            case _:
                pass

    def _ended(self, event: ToolStreamEndEvent) -> None:
        fields = self._call(event)
        fields |= {"tool_status": event.status, "tool_duration": event.duration}
        record = current_call()
        text = f"Tool {event.tool_name!r} {event.status} after {event.duration:.3f} s"
        if record is not None and record.path == event.path:
            fields["run_id"] = record.run_id
            outcome = record.outcome
            if outcome is not None and outcome.error is not None:
                fields["tool_error"] = type(outcome.error).__name__
                text += f": {fields['tool_error']}"
            if self._arguments:
                fields["tool_arguments"] = release_text(
                    record.sent, limit=_MAX_CHARS, patterns=True
                )
        self._log(self._level_of(event.status), text, fields)

    def _finished(self, event: RunFinishedEvent) -> None:
        fields: dict[str, Any] = {
            "run_status": event.status,
            "run_usage": dict(event.usage or {}),
            "run_error": None if event.error is None else release_text(event.error, patterns=True),
            "tool_path": _path(event),
        }
        open_runs = [run for run in self._runs.get() if run.path == event.path]
        if open_runs:
            fields |= {"run_id": open_runs[-1].run_id, "run_agent": open_runs[-1].agent}
            self._runs.set(tuple(run for run in self._runs.get() if run is not open_runs[-1]))
        text = f"Agent {fields.get('run_agent')!r} {event.status}"
        text += f": {fields['run_error']}" if event.error else ""
        self._log(self._level_of(event.status), text, fields)

    def _call(self, event: Event) -> dict[str, Any]:
        return {
            "tool_name": event.tool_name,
            "tool_call_id": event.tool_call_id,
            "tool_path": _path(event),
        }

    def _level_of(self, status: str) -> int:
        return max(self._level, logging.WARNING) if status in _FAILURES else self._level

    def _log(self, level: int, text: str, fields: dict[str, Any]) -> None:
        self._logger.log(level, "%s", release_text(text, limit=_MAX_CHARS), extra=fields)


def _path(event: Event) -> str:
    return "/".join(event.path)


class JsonFormatter(logging.Formatter):
    """Formats each log record as one line of JSON, with all of its fields.

    ```python
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    ```

    Keys: `time` (ISO 8601, UTC), `level`, `logger`, `message`, the fields of the record, and
    `exception` if there is one. Values that are not serializable are written as their `repr`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line of JSON."""
        from datetime import UTC, datetime

        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": when,
            "level": record.levelname,
            "logger": record.name,
            "message": release_text(record.getMessage(), patterns=True),
        }
        own = vars(record)
        fields = {key: own[key] for key in own if key not in _STANDARD and own[key] is not None}
        line |= release_json(fields, patterns=True)
        if record.exc_info:
            line["exception"] = release_text(self.formatException(record.exc_info), patterns=True)
        return json.dumps(line, default=_described, ensure_ascii=False)


def _described(value: object) -> str:
    return release_text(repr(value), patterns=True)


_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The fields that every record has."""
