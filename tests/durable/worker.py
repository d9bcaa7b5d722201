"""A worker that takes the calls of a queue of DBOS, in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from agents_tools.persistence.durable.dbos import serve_worker
from agents_tools.testing import BACKEND_TOOLS


def main() -> None:
    """Serve until it is ended; the arguments are the database, the queue and a name."""
    url, queue, *names = sys.argv[1:]
    asyncio.run(
        serve_worker(
            BACKEND_TOOLS,
            url,
            queue=queue,
            concurrency=64,
            name=names[0] if names else None,
            ready=lambda: sys.stdout.write("ready\n") and sys.stdout.flush(),
        )
    )


if __name__ == "__main__":
    main()
