"""Saving the conversation of a run in its session."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from agents_tools.concurrency.supervisor import finish
from agents_tools.errors import EventStoreError
from agents_tools.events.envelope import EventSource, Origin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.agents.config import Session
    from agents_tools.events.base import Event

__all__ = ["SessionWriter"]

_log = logging.getLogger("agents_tools")


class SessionWriter:
    """Collects the durable events of a run and appends them to its session.

    The stored conversation has no gaps. A cancelled run waits until the append in progress ends,
    and after a failed append nothing more is written.

    Args:
        session: The session; `None` if the run has none.
        agent_name: The name of the agent, for errors.
        path: The path of the run: the ids of the calls around it.
        is_published: Whether the session receives all events anyway. Then `append` gets no events;
            it only has to wait until the published ones are stored.
    """

    def __init__(
        self,
        session: Session | None,
        agent_name: str,
        *,
        path: tuple[str, ...],
        is_published: bool,
    ) -> None:
        self._session = session
        self._agent_name = agent_name
        self._path = path
        self._is_published = is_published
        self._unsaved: list[Event] = []
        self._append: asyncio.Future[Any] | None = None

    async def read(self) -> Sequence[Event] | None:
        """Return the events of the session; `None` if the run has no session."""
        return None if self._session is None else await _awaited(self._session.read())

    def collect(self, event: Event) -> None:
        """Add an event to the next save if it belongs to the conversation of this run."""
        if event.durable and event.path == self._path:
            if event.path:
                # The session stores the conversation as one of its own, so the path of the calls
                # around the run is removed.
                event = event.replace(origin=Origin(source=event.source or EventSource.AGENT))
            self._unsaved.append(event)

    async def save(self) -> None:
        """Append the collected events and wait until they are stored.

        Raises:
            EventStoreError: The session cancelled the append.
            Exception: The error of the session, also if an earlier append failed.
        """
        if self._append is not None:
            await self._wait(self._append)
        if self._session is not None and self._unsaved:
            events, self._unsaved = self._unsaved, []
            result = self._session.append([] if self._is_published else events)
            self._append = asyncio.ensure_future(_awaited(result))
            await self._wait(self._append)

    async def finish(self) -> None:
        """Save the rest at the end of a run, within the grace period; log a failure."""
        if not self._unsaved and (self._append is None or self._append.done()):
            return
        task = asyncio.ensure_future(self.save())
        has_ended = await finish(task, name=f"{self._agent_name} session")
        if not has_ended and self._append is not None:
            self._append.cancel()
        if not has_ended or task.cancelled() or task.exception() is not None:
            _log.error("The session of agent %r did not save the whole run.", self._agent_name)

    async def _wait(self, append: asyncio.Future[Any]) -> None:
        """Wait for an append.

        A cancellation that comes from the session must not look like a cancellation of the run.
        """
        try:
            await asyncio.shield(append)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not append.cancelled() or task is None or task.cancelling():
                raise
            raise EventStoreError(
                f"The session of agent {self._agent_name!r} cancelled its own append(), so the "
                "conversation was not saved. Check the session.",
                store=type(self._session).__name__,
            ) from None


async def _awaited(value: Any) -> Any:
    """Return the result of a method that is sync or async."""
    return await value if hasattr(value, "__await__") else value
