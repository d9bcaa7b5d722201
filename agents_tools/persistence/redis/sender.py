"""Sends batches of events to a Redis server, each time in one attempt."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from agents_tools.persistence.redis.batches import is_confirmed, mark_unconfirmed, text_of
from agents_tools.persistence.redis.scripts import APPEND

if TYPE_CHECKING:
    from agents_tools.persistence.redis.batches import RedisAppend, RedisLog

__all__ = ["RedisSender"]

logger = logging.getLogger("agents_tools")

LEASE: Final = 30_000
"""How long a lease lasts after the last batch of its writer, in milliseconds."""
_WAITAOF_VERSION: Final = (7, 2)
"""The first version of Redis with WAITAOF, which waits until events are on disk."""


class RedisSender:
    """Sends batches to the logs of a server.

    Args:
        client: A client of the package `redis` that returns bytes.
        names: The key of the names of all logs.
        trim: `maxlen`, and `ttl` in milliseconds; 0 for no limit.
        replicas: The number of replicas that must confirm a `sync` batch.
        timeout: The time limit of one attempt, in seconds.
        address: The address, for errors.
        response_error: The class of the errors for commands that the server refuses.
    """

    def __init__(
        self,
        client: Any,
        names: str,
        trim: list[int],
        replicas: int,
        timeout: float,
        address: str,
        response_error: type[Exception],
    ) -> None:
        self._client = client
        self._names = names
        self._trim = trim
        self._replicas = replicas
        self._timeout = timeout
        self._address = address
        self._response_error = response_error
        self._script = ""
        self._confirm: list[tuple[Any, ...]] | None = None

    def forget_script(self) -> None:
        """Load the script again at the next attempt, because the server has lost it."""
        self._script = ""

    def send(self, jobs: list[RedisAppend]) -> list[Any]:
        """Send batches in one pipeline, and return an answer or an error for each."""
        script = self._script or self._load_script()
        for log in {job.log: None for job in jobs if job.log.abandoned}:
            self._recover_acked(log)
        confirm = self._confirm_commands() if any(job.sync for job in jobs) else []
        numbers: dict[RedisLog, int] = {}
        pipe = self._client.pipeline(transaction=False)
        for job in jobs:
            log = job.log
            number = numbers[log] = numbers.get(log, log.acked) + 1
            expected = "" if job.expect_seq is None else job.expect_seq
            facts = [log.token, log.dead_holder, LEASE, number, log.acked, expected, *self._trim]
            facts += [log.sid, log.used_id, *job.arguments]
            pipe.evalsha(script, 4, *log.keys, self._names, *facts)
        for command in confirm:
            pipe.execute_command(*command)
        replies = pipe.execute(raise_on_error=False)
        answers = replies[: len(jobs)]
        for command, reply in zip(confirm, replies[len(jobs) :], strict=True):
            if not is_confirmed(command, reply):
                answers = [
                    mark_unconfirmed(job, answer, reply)
                    for job, answer in zip(jobs, answers, strict=True)
                ]
        return answers

    def _load_script(self) -> str:
        self._script = self._client.script_load(APPEND)
        return self._script

    def _recover_acked(self, log: RedisLog) -> None:
        """Count the abandoned batches that the server has stored."""
        writer, batch, last = self._client.hmget(log.keys[1], "writer", "batch", "last")
        if writer == log.token.encode():
            # The server can also have later batches. They are sent again with their own numbers.
            log.acked = max(log.acked, min(int(batch), log.acked + log.abandoned))
            log.last = max(log.last, int(last))
        log.abandoned = 0

    def _confirm_commands(self) -> list[tuple[Any, ...]]:
        """Return the commands that confirm a `sync` batch after it was sent."""
        if self._confirm is None:
            wait_ms = round(1_000 * self._timeout / 2)
            commands: list[tuple[Any, ...]] = []
            if not self._needs_no_confirm():
                commands.append(("WAITAOF", 1, 0, wait_ms))
            if self._replicas:
                commands.append(("WAIT", self._replicas, wait_ms))
            self._confirm = commands
        return self._confirm

    def _needs_no_confirm(self) -> bool:
        """Return whether WAITAOF is not necessary, or not possible."""
        try:
            config = self._client.config_get("append*")
            settings = {text_of(key): text_of(value) for key, value in config.items()}
            version = text_of(self._client.info("server")["redis_version"])
        except self._response_error as error:  # this user cannot read the settings
            logger.warning(
                "Cannot check whether %s stores events on disk: %s", self._address, error
            )
            return True
        on = settings.get("appendonly") == "yes"
        if on and settings.get("appendfsync") == "always":
            return True
        if on and tuple(map(int, version.split(".")[:2])) >= _WAITAOF_VERSION:
            return False
        logger.warning(
            "Events with durability='sync' can be lost in a power failure of %s: it has "
            "appendonly=%s, appendfsync=%s and version %s. Set appendfsync always.",
            *(self._address, settings.get("appendonly"), settings.get("appendfsync"), version),
        )
        return True
