"""Send batches of events to a Redis server, each time in one attempt."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from agents_tools.persistence.redis.batches import is_confirmed, text_of, unsafe
from agents_tools.persistence.redis.scripts import APPEND

if TYPE_CHECKING:
    from agents_tools.persistence.redis.batches import RedisAppend, RedisLog

__all__ = ["RedisSender"]

logger = logging.getLogger("agents_tools")

LEASE: Final = 30_000
"""The duration of the lease after the last event of a writer, in milliseconds."""
_CONFIRMS: Final = (7, 2)
"""The version of Redis that confirms that data is on disk."""


class RedisSender:
    """Sends batches to the logs of a server.

    Args:
        client: A client of the package `redis` that returns bytes.
        names: The key of the set of log names.
        trim: The maximum length of a log, and its time to live in milliseconds; 0 for no limit.
        replicas: The number of replicas that must have a `sync` batch.
        timeout: The time limit of one attempt, in seconds.
        address: The address, for errors.
        refused: The exception class for a command that the server rejects.
    """

    def __init__(
        self,
        client: Any,
        names: str,
        trim: list[int],
        replicas: int,
        timeout: float,
        address: str,
        refused: type[Exception],
    ) -> None:
        self._client = client
        self._names = names
        self._trim = trim
        self._replicas = replicas
        self._timeout = timeout
        self._address = address
        self._refused = refused
        self._script = ""
        self._confirm: list[tuple[Any, ...]] | None = None

    def forget_script(self) -> None:
        """Load the script again, because the server has dropped it."""
        self._script = ""

    def send(self, jobs: list[RedisAppend]) -> list[Any]:
        """Send batches in one request, and return the replies."""
        script = self._script or self._loaded()
        for log in {job.log: None for job in jobs if job.log.given_up}:
            self._make_sure(log)
        confirm = self._how_to_confirm() if any(job.sync for job in jobs) else []
        numbers: dict[RedisLog, int] = {}
        pipe = self._client.pipeline(transaction=False)
        for job in jobs:
            log = job.log
            number = numbers[log] = numbers.get(log, log.acked) + 1
            expected = "" if job.expect_seq is None else job.expect_seq
            facts = [log.token, log.stolen, LEASE, number, log.acked, expected, *self._trim]
            facts += [log.sid, log.given, *job.written]
            pipe.evalsha(script, 4, *log.keys, self._names, *facts)
        for command in confirm:
            pipe.execute_command(*command)
        replies = pipe.execute(raise_on_error=False)
        answers = replies[: len(jobs)]
        for command, reply in zip(confirm, replies[len(jobs) :], strict=True):
            if not is_confirmed(command, reply):
                answers = [
                    unsafe(job, answer, reply) for job, answer in zip(jobs, answers, strict=True)
                ]
        return answers

    def _loaded(self) -> str:
        self._script = self._client.script_load(APPEND)
        return self._script

    def _make_sure(self, log: RedisLog) -> None:
        """Check whether the server has a batch whose reply was lost."""
        writer, batch, last = self._client.hmget(log.keys[1], "writer", "batch", "last")
        if writer == log.token.encode():
            # Batches after the abandoned ones are sent again under their own numbers.
            log.acked = max(log.acked, min(int(batch), log.acked + log.given_up))
            log.last = max(log.last, int(last))
        log.given_up = 0

    def _how_to_confirm(self) -> list[tuple[Any, ...]]:
        """Return the commands that ask the server to confirm durability."""
        if self._confirm is None:
            within = round(1_000 * self._timeout / 2)
            commands: list[tuple[Any, ...]] = []
            if not self._is_always_safe():
                commands.append(("WAITAOF", 1, 0, within))
            if self._replicas:
                commands.append(("WAIT", self._replicas, within))
            self._confirm = commands
        return self._confirm

    def _is_always_safe(self) -> bool:
        """Return whether a confirmation is unnecessary or impossible."""
        try:
            found = self._client.config_get("append*")
            settings = {text_of(key): text_of(value) for key, value in found.items()}
            version = text_of(self._client.info("server")["redis_version"])
        except self._refused as error:  # a server that hides its settings
            logger.warning("The durability settings of %s are unknown: %s", self._address, error)
            return True
        on = settings.get("appendonly") == "yes"
        if on and settings.get("appendfsync") == "always":
            return True
        if on and tuple(map(int, version.split(".")[:2])) >= _CONFIRMS:
            return False
        logger.warning(
            "'sync' events for %s can be lost in a power failure of the server: it "
            "has appendonly=%s, appendfsync=%s, and version %s. Set appendfsync always.",
            *(self._address, settings.get("appendonly"), settings.get("appendfsync"), version),
        )
        return True
