"""A queue worker: runs the calls that the web workers put into the queue."""

from __future__ import annotations

import asyncio
import os

from studio import TOOLS

from agents_tools.persistence.queue import serve_worker

if __name__ == "__main__":
    asyncio.run(
        serve_worker(
            TOOLS,
            os.environ["DATABASE_URL"],
            concurrency=int(os.environ.get("CONCURRENCY", "8")),
            drain=25.0,  # below the grace period of Compose and Kubernetes
        )
    )
