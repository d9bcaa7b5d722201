"""Report the log messages of servers: as events of the running call, or with `logging`."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final, get_args

from agents_tools.mcp._coerce import text_or_none
from agents_tools.mcp.config import LogLevel
from agents_tools.text.output import release_text
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.events.kinds import Level
    from agents_tools.mcp.client.pending_requests import PendingRequest

__all__ = ["report_log"]

logger = logging.getLogger("agents_tools.mcp")

_LEVELS: Final = get_args(LogLevel)
_MAX_TEXT: Final = 1_000
"""The maximum number of characters of a message."""


def report_log(
    server: str,
    params: Mapping[str, Any],
    wanted: LogLevel | None,
    request: PendingRequest | None,
) -> None:
    """Report a log message.

    Without a requested level, servers can send messages too. They are logged at the level `DEBUG`.

    Args:
        server: The name of the server.
        params: The params of the notification.
        wanted: The lowest level that was requested; `None` for none.
        request: The request that the message belongs to; `None` if it is not known.
    """
    name = text_or_none(params.get("level"))
    level = name if name is not None and name in _LEVELS else "info"
    context = None if wanted is None or request is None else request.context
    in_call = context is not None and call_of(context).listening
    severity = _SEVERITIES[level]
    number = logging.DEBUG if wanted is None else getattr(logging, severity.upper())
    if wanted is not None and _LEVELS.index(level) < _LEVELS.index(wanted):
        return
    if not in_call and not logger.isEnabledFor(number):
        return
    text = release_text(_text_of(params.get("data")), limit=_MAX_TEXT)
    source = release_text(text_or_none(params.get("logger")) or "", limit=100)
    if in_call and context is not None:
        context.notify(text, level=severity, tag=source or server)
    else:
        logger.log(number, "%s (%s): %s", f"{server}/{source}" if source else server, level, text)


def _text_of(data: Any) -> str:
    if isinstance(data, str):
        return data
    try:
        return json.dumps(data, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        return "(data that cannot be shown)"


_SEVERITIES: Final[Mapping[str, Level]] = {
    "debug": "debug",
    "info": "info",
    "notice": "info",
    "warning": "warning",
    "error": "error",
    "critical": "error",
    "alert": "error",
    "emergency": "error",
}
