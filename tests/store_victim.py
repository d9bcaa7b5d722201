"""A program that starts writers to event stores and lets them be killed; the tests talk to it.

Each line of standard input is a command: `write PLACE SEED`, `hold PATH` or `insist PLACE`. The
answer is the pid of a new process that does it, then its lines, then `dead` once it has ended.
"""

from __future__ import annotations

import os
import random
import sys

from agents_tools.errors import EventConflictError
from agents_tools.events import MessageEvent
from agents_tools.persistence import (
    PostgresRunStore,
    RedisRunStore,
    RunStore,
    SQLiteEventStore,
    SQLiteRunStore,
)


def say(text: str) -> None:
    """Send a line to the tests, in one write."""
    os.write(1, f"{text}\n".encode())


def opened(place: str, lease_ttl: float = 15.0) -> RunStore:
    """Open a store of events that are all stored."""
    kinds = {"postgresql": PostgresRunStore, "unix": RedisRunStore}
    kind = kinds.get(place.partition("://")[0], SQLiteRunStore)
    return kind(place, keep_display=True, lease_ttl=lease_ttl)


def write(place: str, seed: str) -> None:
    """Append to two sessions for ever, and tell of each append that was acknowledged."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    store = opened(place)
    logs = {sid: store.log(sid) for sid in ("one", "two")}
    counts = {sid: len(log.read().result()) for sid, log in logs.items()}
    shown = {sid: log.next_id for sid, log in logs.items()}
    while True:
        begun = []
        for sid, log in logs.items():
            events = [
                MessageEvent(f"{sid} {counts[sid] + n} " + "x" * chance.randrange(2_000))
                for n in range(chance.randrange(1, 20))
            ]
            counts[sid] += len(events)
            shown[sid] = max(shown[sid], log.next_id) + chance.randrange(3)
            log.reserve(shown[sid])
            durability = chance.choice(("normal", "sync"))
            begun.append((sid, log.append(events, durability=durability)))
        for sid, pending in begun:
            pending.result()
            say(f"ack {sid} {counts[sid]} {shown[sid]}")


def hold(path: str) -> None:
    """Write to a session, and stay its writer."""
    store = SQLiteEventStore(path, "held")
    store.append([MessageEvent("mine")]).result()
    say("held")
    os.read(os.open(f"{path}.never", os.O_RDONLY), 1)  # a pipe that nobody writes to


def insist(place: str) -> None:
    """Append until another process has taken the lease, and report each append."""
    log = opened(place, lease_ttl=0.6).log("run")
    number = 0
    while True:
        try:
            log.append([MessageEvent(f"old {number}")]).result()
        except EventConflictError as error:
            say(f"refused {type(error).__name__}")
            return
        say(f"ack {number}")
        number += 1


def main() -> None:
    """Do what the tests ask for."""
    for line in sys.stdin:
        name, *words = line.split()
        pid = os.fork()
        if pid == 0:
            say(f"pid {os.getpid()}")  # here: it may have more to say before its parent goes on
            try:
                {"write": write, "hold": hold, "insist": insist}[name](*words)
            finally:
                os._exit(1)
        os.waitpid(pid, 0)
        say("dead")


if __name__ == "__main__":
    main()
