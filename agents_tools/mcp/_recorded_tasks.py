"""The tasks of servers in the log of a run, so that a run that is resumed finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.mcp._coerce import an_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.tool.call import Call

__all__ = ["has_recorded_task", "record_task", "take_recorded_task"]

_SERVER, _TASK = "mcp_server", "task"
_FIELDS = ("taskId", "resultType", "pollIntervalMs", "pollInterval")
"""What is needed to continue a task."""


async def record_task(call: Call, server: str, task: Mapping[str, Any]) -> bool:
    """Record the task of a call; return whether the run of the call has a log.

    Args:
        call: The call.
        server: The name of the server.
        task: The task, as the server sent it.
    """
    known = {name: task[name] for name in _FIELDS if name in task}
    return await call.record_remote({_SERVER: server, _TASK: known})


def has_recorded_task(call: Call, server: str) -> bool:
    """Return whether an earlier process has recorded a task of a call on a server."""
    remote = call.remote
    return remote is not None and remote.get(_SERVER) == server


def take_recorded_task(call: Call, server: str) -> dict[str, Any] | None:
    """Return the task of a call that an earlier process has recorded, the first time."""
    if not has_recorded_task(call, server):
        return None
    task = an_object((call.remote or {}).get(_TASK))
    call.forget_remote()
    return task
