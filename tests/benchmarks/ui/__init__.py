"""How fast runs are streamed to the web: over real sockets of this machine, and by the thousand.

`python -m tests.benchmarks.ui` times it and prints a table; the figures go to `.bench/ui.json`.
The limit, where there is one, is a bare ASGI app on the same server that sends as much by hand.
Medians, since sockets and loops have their own fastest moments.
"""

from __future__ import annotations

UI_TITLES = {
    "first_byte": "an event until its frame is read (limit: bytes that are sent by hand)",
    "disconnect": "a client is cut off until its silent tool is cancelled",
    "flood": "each of 10,000 events of a run, read as frames (limit: frames made before)",
    "flood_deltas": "each of 10,000 pieces of a text, likewise",
    "resume": "reconnect with the last id, until the first frame is read",
    "watchers": "each event for each of 1,000 clients of a run, in memory",
    "watcher_memory": "memory of each of 1,000 clients that wait, KB",
}
"""What is timed; in seconds, if nothing else is said."""
