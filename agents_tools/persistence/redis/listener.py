"""Wait for events of several logs of a Redis server in one request."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any, Final

from agents_tools.persistence.redis.reader import id_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

__all__ = ["PATIENCE", "RedisListener"]

logger = logging.getLogger("agents_tools")

PATIENCE: Final = 5_000
"""How long one request waits for new events, in milliseconds, before it is repeated."""


class RedisListener:
    """Waits for new events of several logs. An extra stream of the server ends the wait early.

    Args:
        client: A client whose requests do not wait.
        listener: A client whose requests can wait for `PATIENCE`.
        prefix: The prefix of all keys.
        address: The address, for log messages.
        closing: Set when the store is closed.
    """

    def __init__(
        self, client: Any, listener: Any, prefix: str, address: str, closing: threading.Event
    ) -> None:
        self._client = client
        self._listener = listener
        self._address = address
        self._closing = closing
        self._last_signal = "0-0"
        self._signal_key = f"{prefix}:bell:{uuid.uuid4().hex}"

    def poll(self, after_ids: Mapping[Any, int]) -> dict[Any, int]:
        """Wait for events of logs with larger ids than these; return the newest ids that came."""
        streams = {log.keys[0]: f"{after + 1}-0" for log, after in after_ids.items()}
        try:
            reply = self._listener.xread(
                {self._signal_key: self._last_signal, **streams}, count=1, block=PATIENCE
            )
            newest = {key.decode(): entries[-1][0].decode() for key, entries in reply or ()}
            self._last_signal = newest.get(self._signal_key, self._last_signal)
            changed = [log for log in after_ids if log.keys[0] in newest]
            pages = [self._listener.xrevrange(log.keys[0], count=1) for log in changed]
            return {log: id_of(page[0]) for log, page in zip(changed, pages, strict=True) if page}
        except Exception as error:  # noqa: BLE001 - the waiter polls again after any error
            if not self._closing.wait(0.1):
                logger.debug(
                    "Waiting for events at %s failed and is retried: %s", self._address, error
                )
            return {}

    def wake(self) -> None:
        """End the current or the next call of `poll`."""
        pipe = self._client.pipeline(transaction=False)
        pipe.xadd(self._signal_key, {"": ""}, maxlen=1)
        pipe.expire(self._signal_key, 60)
        pipe.execute()

    def stop(self) -> None:
        """End the current call of `poll` by closing its connection."""
        self._listener.connection_pool.disconnect()
