"""A web worker: serves an agent whose runs are in the database and whose tools run in the queue.

Any web worker can show a run, stream its events and record a decision about its calls.
"""

from __future__ import annotations

import os

from studio import publish, render

from agents_tools import Agent, RunConfig
from agents_tools.execution import run_on
from agents_tools.persistence import PostgresRunStore
from agents_tools.persistence.queue import DBOSBackend
from agents_tools.policies import needs_approval
from agents_tools.ui import sse

INSTRUCTIONS = "Render the scenes that the user asks for, and publish them."


def create_app() -> object:
    """Create the ASGI app: `uvicorn web:create_app --factory`."""
    database = os.environ["DATABASE_URL"]
    in_queue = run_on(DBOSBackend(database))
    agent = Agent(
        "Director",
        instructions=INSTRUCTIONS,
        tools=[in_queue(render), needs_approval()(in_queue(publish))],
        model=os.environ["AGENT_MODEL"],
    )
    return sse.app(
        agent,
        auth=os.environ["WEB_TOKEN"],
        allowed_hosts=os.environ["ALLOWED_HOSTS"].split(","),
        run_config=RunConfig(store=PostgresRunStore(database), resume_orphans=True),
    )
