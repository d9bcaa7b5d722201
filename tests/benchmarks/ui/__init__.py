"""How fast runs are streamed to the web: over real sockets of this machine, and by the thousand.

`python -m tests.benchmarks.ui` times it and prints a table; the figures go to `.bench/ui.json`.
The limit, where there is one, is a bare ASGI app on the same server that sends as much by hand.
Medians, since sockets and loops have their own fastest moments.
"""

from __future__ import annotations

UI_TITLES = {
    "first_byte": "from emitting an event to reading its frame (limit: bytes sent by hand)",
    "disconnect": "from losing a client to cancelling its silent tool",
    "flood": "each of 10,000 events of a run, read as frames (limit: prepared frames)",
    "flood_deltas": "each of 10,000 text deltas, read as frames",
    "resume": "from reconnecting with the last id to the first frame",
    "watchers": "one event for one of 1,000 clients of a run, in memory",
    "watcher_memory": "memory per client, with 1,000 waiting clients, KB",
}
"""What is timed; in seconds, if nothing else is said."""
