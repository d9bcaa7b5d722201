"""Separate sessions with agents of Google's ADK."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from google.adk.runners import InMemoryRunner
from google.genai import types

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from google.adk.agents.run_config import RunConfig
    from google.adk.events import Event as ForeignEvent

__all__ = ["AdkSession", "open_session"]


class AdkSession:
    """A separate session with an agent."""

    def __init__(self, runner: InMemoryRunner, session: Any) -> None:
        self._runner = runner
        self._session = session

    def run(self, message: Any, config: RunConfig) -> AsyncGenerator[ForeignEvent]:
        """Send a message and yield the events of the run."""
        if isinstance(message, str):
            message = types.Content(role="user", parts=[types.Part(text=message)])
        return self._runner.run_async(
            user_id=self._session.user_id,
            session_id=self._session.id,
            new_message=message,
            run_config=config,
        )


@contextlib.asynccontextmanager
async def open_session(agent: Any, state: Mapping[str, Any] | None) -> AsyncGenerator[AdkSession]:
    """Open a session with an agent, and close its runner afterwards."""
    runner = InMemoryRunner(agent=agent, app_name="agents_tools")
    try:
        session = await runner.session_service.create_session(
            app_name=runner.app_name, user_id="agents_tools", state=dict(state or {})
        )
        yield AdkSession(runner, session)
    finally:
        await runner.close()
