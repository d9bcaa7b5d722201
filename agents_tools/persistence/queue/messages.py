"""The messages about a queued call: a stream of the call's workflow in the database of DBOS."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from dbos import DBOS, WorkflowSerializationFormat, error as dbos_errors

from agents_tools.execution.protocol import CallEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

__all__ = ["follow", "read", "write"]

_STREAM: Final = "events"


async def write(messages: Iterable[CallEvent]) -> None:
    """Write messages from inside a workflow, all in one row.

    Raises:
        DBOSWorkflowConflictIDError: The workflow was cancelled or given to another worker. DBOS
            checks this in the transaction that writes.
    """
    text = json.dumps([message.to_dict() for message in messages])
    await DBOS.write_stream_async(
        _STREAM, text, serialization_type=WorkflowSerializationFormat.PORTABLE
    )


async def read(workflow_id: str) -> list[CallEvent]:
    """Return the messages that were written so far."""
    messages: list[CallEvent] = []
    stream = DBOS.read_stream_async(workflow_id, _STREAM, timeout_seconds=0)
    try:
        async with aclosing(stream):
            async for text in stream:
                messages += _messages_in(text)
    except dbos_errors.DBOSStreamTimeoutError:
        pass
    return messages


async def follow(
    workflow_id: str, *, first: int, polling: float
) -> AsyncGenerator[list[CallEvent]]:
    """Yield the messages of each row, and wait for more until the workflow has ended.

    Args:
        workflow_id: The workflow.
        first: The number of rows to skip.
        polling: The seconds between two queries where the database sends no notifications.
    """
    stream = DBOS.read_stream_async(
        workflow_id, _STREAM, offset=first, polling_interval_sec=polling
    )
    async with aclosing(stream):
        async for text in stream:
            yield _messages_in(text)


def _messages_in(text: str) -> list[CallEvent]:
    return list(map(CallEvent.from_dict, json.loads(text)))
