"""Wait for new events in several logs of a Redis server at once."""

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
"""The maximum wait of one request for new events, in milliseconds; then it is repeated."""


class RedisListener:
    """Waits for new events of logs, in one request for all of them.

    Args:
        client: A client whose requests do not wait.
        listener: A client whose requests can wait for `PATIENCE`.
        prefix: The prefix of all keys.
        address: The address, for errors.
        ending: Set when the store is closed.
    """

    def __init__(
        self, client: Any, listener: Any, prefix: str, address: str, ending: threading.Event
    ) -> None:
        self._client = client
        self._listener = listener
        self._address = address
        self._ending = ending
        self._heard = "0-0"
        self._bell = f"{prefix}:bell:{uuid.uuid4().hex}"

    def ask(self, asked: Mapping[Any, int]) -> dict[Any, int]:
        """Wait for events after the id of each log, and return the logs with new events."""
        streams = {log.keys[0]: f"{after + 1}-0" for log, after in asked.items()}
        try:
            answer = self._listener.xread(
                {self._bell: self._heard, **streams}, count=1, block=PATIENCE
            )
            heard = {key.decode(): entries[-1][0].decode() for key, entries in answer or ()}
            self._heard = heard.get(self._bell, self._heard)
            news = [log for log in asked if log.keys[0] in heard]
            pages = [self._listener.xrevrange(log.keys[0], count=1) for log in news]
            return {log: id_of(page[0]) for log, page in zip(news, pages, strict=True) if page}
        except Exception as error:  # noqa: BLE001 - callers continue to wait after any error
            if not self._ending.wait(0.1):
                logger.debug("Waiting at %s is restarted: %s", self._address, error)
            return {}

    def ring(self) -> None:
        """Interrupt the current or next `ask`."""
        pipe = self._client.pipeline(transaction=False)
        pipe.xadd(self._bell, {"": ""}, maxlen=1)
        pipe.expire(self._bell, 60)
        pipe.execute()

    def leave(self) -> None:
        """Interrupt `ask` permanently."""
        self._listener.connection_pool.disconnect()
