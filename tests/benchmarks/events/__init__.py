"""The speed of publishing, delivering, storing and reading events, compared with a lower limit.

`limit`, `library` and the peers do the same with the same names: each function does something to so
many events, and gives the seconds that took. What a subject does not have is not measured.
"""

from __future__ import annotations

EVENT_TITLES = {
    "emit": "create an event of each kind and send it to a channel, per event (limit: dicts in a deque)",
    "publish": "publish without subscribers, per event (limit: a list and a lock)",
    "heard": "publish to one callback in a thread, per event (limit: a queue and a thread)",
    "follow": "publish to one subscriber on the loop, per event (limit: asyncio.Queue)",
    "fan_out": "publish to 10 subscribers on the loop, per delivery (limit: asyncio.Queues)",
    "masked": "publish a delta with 3 registered secrets (limit: str.replace)",
    "stored": "store on disk, per event (limit: a line of JSON)",
    "replay": "read back from disk, per event (limit: lines of JSON)",
}
EVENT_TIMED = {f"event_{name}": name for name in EVENT_TITLES}
EVENT_ROWS = {f"event_{name}": f"events: {title}" for name, title in EVENT_TITLES.items()}
