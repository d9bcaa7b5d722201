"""Read event logs from a Redis server, each time in one attempt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agents_tools.errors import EventStoreCorruptError
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.protocol import SessionInfo
from agents_tools.persistence.redis.batches import RedisLog
from agents_tools.persistence.unknown_event import event_of

if TYPE_CHECKING:
    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter

__all__ = ["RedisReader", "id_of"]

PAGE: Final = 1_000
"""The number of events of one read."""
_LAST: Final = 2**53


class RedisReader:
    """Reads the logs of a server.

    Args:
        client: A client of the package `redis` that returns bytes.
        prefix: The prefix of all keys.
        address: The address, for errors.
    """

    def __init__(self, client: Any, prefix: str, address: str) -> None:
        self._client = client
        self._prefix = prefix
        self._address = address

    @property
    def names(self) -> str:
        """The key of the set of log names."""
        return f"{self._prefix}:logs"

    def look(self, log: RedisLog) -> None:
        """Read the newest id of a log."""
        last, reserved = self._client.hmget(log.keys[1], "last", "reserved")
        log.last = int(last or INVALID_ID)
        log.given = max(log.given, log.last, int(reserved or INVALID_ID))

    def read(
        self,
        log: RedisLog,
        after: int,
        before: int | None,
        limit: int | None,
        reverse: bool,
        where: EventFilter | None,
    ) -> list[Event]:
        """Read events, a page at a time."""
        found: list[Event] = []
        low, high = max(after, INVALID_ID) + 2, _LAST if before is None else before
        while low <= high and (limit is None or len(found) < limit):
            count = PAGE if limit is None or where is not None else min(PAGE, limit - len(found))
            if reverse:
                page = self._client.xrevrange(log.keys[0], f"{high}-0", f"{low}-0", count)
            else:
                page = self._client.xrange(log.keys[0], f"{low}-0", f"{high}-0", count)
            events = [self._event(log, *entry) for entry in page]
            found += events if where is None else filter(where.accepts, events)
            if len(page) < count:
                break
            low, high = (low, events[-1].id) if reverse else (events[-1].id + 2, high)
        return found if limit is None else found[: max(limit, 0)]

    def sessions(self) -> list[SessionInfo]:
        """List the logs that hold events."""
        sids = sorted(name.decode() for name in self._client.smembers(self.names))
        pipe = self._client.pipeline(transaction=False)
        for sid in sids:
            key = RedisLog(sid, self._prefix).keys[0]
            pipe.xlen(key)
            pipe.xrange(key, count=1)
            pipe.xrevrange(key, count=1)
            pipe.memory_usage(key)
        replies = pipe.execute()
        found: list[SessionInfo] = []
        for place, sid in enumerate(sids):
            events, first, last, size = replies[4 * place : 4 * place + 4]
            if events and first and last:
                log = RedisLog(sid, self._prefix)
                ends = [self._event(log, *entries[0]) for entries in (first, last)]
                found.append(
                    SessionInfo(
                        sid=sid,
                        events=events,
                        first=ends[0].timestamp,
                        last=ends[1].timestamp,
                        last_id=ends[1].id,
                        size=size or 0,
                    )
                )
        return found

    def _event(self, log: RedisLog, place: bytes, fields: dict[bytes, bytes]) -> Event:
        try:
            wire = json.loads(fields[b"event"])
            return event_of({**wire, "id": id_of((place,))})
        except (KeyError, TypeError, ValueError) as error:
            raise EventStoreCorruptError(
                f"The entry {place.decode()} of {log.keys[0]!r} at {self._address} is not an event "
                f"({error}). Another program writes to this key: use another prefix.",
                store=self._address,
            ) from None


def id_of(entry: Any) -> int:
    """Return the id of the event in an entry of a stream."""
    return int(entry[0].partition(b"-")[0]) - 1
