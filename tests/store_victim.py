"""A program that starts writers to event stores and lets them be killed; the tests talk to it.

Each line of standard input is a command: `write PATH SEED` or `hold PATH`. The answer is the pid of a
new process that does it, then what that says, then `dead` once it has ended.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from agents_tools.events import MessageEvent
from agents_tools.persistence import SQLiteEventStore


def say(text: str) -> None:
    """Tell the tests something, in one write."""
    os.write(1, f"{text}\n".encode())


def write(path: str, seed: str) -> None:
    """Append to two sessions for ever, and tell of each append that was acknowledged."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    store = SQLiteEventStore(path)
    logs = {sid: store.session(sid) for sid in ("one", "two")}
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


def main() -> None:
    """Do what the tests ask for."""
    for line in sys.stdin:
        name, *words = line.split()
        pid = os.fork()
        if pid == 0:
            say(f"pid {os.getpid()}")  # here: it may have more to say before its parent goes on
            try:
                {"write": write, "hold": hold}[name](*words)
            finally:
                os._exit(1)
        os.waitpid(pid, 0)
        say("dead")


if __name__ == "__main__":
    main()
