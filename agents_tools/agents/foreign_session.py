"""Sessions of other libraries: objects that keep a conversation as a list of JSON items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from agents_tools.agents.config import RunHooks
from agents_tools.agents.toolbox import run_of
from agents_tools.content.items import input_items

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

__all__ = ["ItemSession", "SessionHooks"]


@runtime_checkable
class ItemSession(Protocol):
    """A session of another library, with the methods of a session of openai-agents."""

    def get_items(self, limit: int | None = None) -> Awaitable[Sequence[Any]]:
        """Return the conversation as JSON items.

        Args:
            limit: The largest number of items; the last ones are returned.
        """
        ...

    def add_items(self, items: list[Any]) -> Awaitable[None]:
        """Append JSON items to the conversation.

        Args:
            items: The items.
        """
        ...


class SessionHooks(RunHooks[Any]):
    """Reads the conversation of a session when a run starts, and appends to it when the run ends.

    Args:
        session: The session.
    """

    def __init__(self, session: ItemSession) -> None:
        self._session = session
        self._run: Any = None
        self._known = 0  # the number of items that the session has

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Insert the earlier conversation before the input of the run."""
        del agent
        run = run_of(context)
        if self._run is not None or run is None:
            return  # another agent continues the run, or runs inside it
        self._run = run
        items = input_items(await self._session.get_items(), "session.get_items()")
        self._known = len(items)
        if not run.resumed:  # a state has the conversation already
            run.insert_earlier(items)

    async def on_agent_end(self, context: Any, agent: Any, output: object) -> None:
        """Append the input and the new items of the run."""
        del agent, output
        if run_of(context) is self._run:
            items = cast("list[Any]", self._run.history[self._known :])
            await self._session.add_items([item.to_dict() for item in items])
