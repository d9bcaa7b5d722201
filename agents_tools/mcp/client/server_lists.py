"""Load the lists of tools and resources of a server, and load them again when they change."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from agents_tools.errors import MCPConnectionError, MCPError, MCPProtocolError
from agents_tools.mcp._coerce import objects
from agents_tools.mcp._task_names import refused_tasks
from agents_tools.mcp.client.pending_requests import NotRunError, PendingRequest

if TYPE_CHECKING:
    from agents_tools.mcp._sdk import ListKind
    from agents_tools.mcp.client.pending_requests import PendingRequests
    from agents_tools.mcp.client.sdk_session import ClientSession
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["ListReceiver", "ListedSession", "ServerLists"]


logger = logging.getLogger("agents_tools.mcp")

MAX_PAGES = 100
MAX_ITEMS = 5_000
_DEBOUNCE = 0.3
"""Seconds from a change of a list to its reload; change notifications come in bursts."""
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_RESOURCES_CHANGED: Final = "notifications/resources/list_changed"
_CHANGES: Final[dict[str, ListKind]] = {
    _TOOLS_CHANGED: "tools",
    _RESOURCES_CHANGED: "resources",
    "notifications/prompts/list_changed": "prompts",
}


class ListReceiver(Protocol):
    """Receives the lists of a server, after connecting and after each change."""

    def listed(self, tools: list[dict[str, Any]], refused: dict[str, str]) -> None:
        """Receive the tools of the server, and why some of them cannot be called."""
        ...

    def resources_listed(
        self, resources: list[dict[str, Any]], templates: list[dict[str, Any]]
    ) -> None:
        """Receive the resources and the resource templates of the server."""
        ...

    def list_changed(self, kind: ListKind) -> None:
        """Receive the notification that a list has changed, also by a new connection."""
        ...


class ListedSession(Protocol):
    """The session whose lists are loaded."""

    config: MCPServerConfig
    client: ClientSession | None
    pending: PendingRequests

    async def send(self, request: PendingRequest, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result."""
        ...


class ServerLists:
    """The lists of one session.

    Resources are listed if the configuration has `resources`.

    Args:
        session: The session.
        receiver: Receives the lists.
    """

    def __init__(self, session: ListedSession, receiver: ListReceiver) -> None:
        self._session = session
        self._receiver = receiver
        self._changed: set[str] = set()
        self._wake = asyncio.Event()

    def record_change(self, method: str) -> None:
        """Record the method of a notification of a change; `keep_current` loads the list again."""
        self._changed.add(method)
        self._wake.set()

    def record_changes(self) -> None:
        """Record that each list can have changed."""
        for method in _CHANGES:
            self.record_change(method)

    async def load(self) -> None:
        """Load the lists for the first time.

        Raises:
            MCPError: The tools cannot be loaded. Resources that cannot be loaded are left out.
        """
        # First the resources: the tools are usable as soon as they are listed.
        await self._load_resources()
        await self._load_tools()
        client = self._session.client
        for kind in _CHANGES.values():
            if kind != "tools" and client is not None and kind in client.capabilities:
                self._receiver.list_changed(kind)

    async def keep_current(self) -> None:
        """Load lists again after their changes, until the task is cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(_DEBOUNCE)
            self._wake.clear()
            changed, self._changed = self._changed, set()
            try:
                if _RESOURCES_CHANGED in changed:
                    await self._load_resources()
                if _TOOLS_CHANGED in changed:
                    await self._load_tools()
                for method in changed & _CHANGES.keys():
                    self._receiver.list_changed(_CHANGES[method])
            except Exception as error:  # noqa: BLE001 - can be of a callback; the next change retries
                logger.warning(
                    "The lists of MCP server %r were not updated: %s",
                    self._session.config.name,
                    error,
                )

    async def _load_tools(self) -> None:
        """Request the tools and pass them on, with those that cannot be called."""
        session, client = self._session, self._session.client
        tools = await self._list("tools/list", "tools", "tool")
        refused: dict[str, str] = {}
        if client is not None and session.config.transport == "http":
            refused, session.pending.header_mirror = client.check_headers(tools)
        if client is not None:
            refused |= refused_tasks(tools, client.version, client.capabilities)
        self._receiver.listed(tools, refused)

    async def _load_resources(self) -> None:
        client = self._session.client
        if not self._session.config.resources or client is None:
            return
        if "resources" not in client.capabilities:
            return
        resources = await self._list_or_nothing("resources/list", "resources", "resource")
        templates = await self._list_or_nothing(
            "resources/templates/list", "resourceTemplates", "resource template"
        )
        self._receiver.resources_listed(resources, templates)

    async def _list_or_nothing(self, method: str, key: str, what: str) -> list[dict[str, Any]]:
        """Request a list that the connection does not depend on, within a part of its time."""
        config = self._session.config
        try:
            async with asyncio.timeout(config.connect_timeout / 4):
                return await self._list(method, key, what)
        except TimeoutError:
            logger.warning("MCP server %r does not list its %ss in time.", config.name, what)
        except MCPError as error:
            if error.code != _METHOD_NOT_FOUND:
                logger.warning("%s", error)
        return []

    async def _list(self, method: str, key: str, what: str) -> list[dict[str, Any]]:
        """Request all pages of a list.

        Args:
            method: The method that returns a page.
            key: The key of the items in a page.
            what: The noun for an item, in errors.

        Raises:
            MCPConnectionError: The server does not answer.
            MCPProtocolError: The pages are not lists, repeat, or do not end.
        """
        client = self._session.client
        feature = method.partition("/")[0]
        if client is None or (client.capabilities and feature not in client.capabilities):
            return []
        items: list[dict[str, Any]] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._list_page(method, cursor, what)
            if not isinstance(page.get(key), list):
                raise self._invalid(f"its {what} list is not a list")
            items += objects(page[key])
            next_cursor = page.get("nextCursor")
            cursor = next_cursor if isinstance(next_cursor, str) and next_cursor else None
            if cursor in seen:
                raise self._invalid(f"its {what} list repeats the cursor {cursor!r:.60}")
            if len(items) > MAX_ITEMS - (cursor is not None):
                logger.warning(
                    "MCP server %r has more than %d %ss; the rest is left out.",
                    self._session.config.name,
                    MAX_ITEMS,
                    what,
                )
                return items[:MAX_ITEMS]
            if cursor is None:
                return items
            seen.add(cursor)
        raise self._invalid(
            f"its {what} list has more than {MAX_PAGES} pages; the last cursor was {cursor!r:.60}"
        )

    async def _list_page(self, method: str, cursor: str | None, what: str) -> dict[str, Any]:
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        try:
            return await self._session.send(PendingRequest(method), params)
        except NotRunError as error:
            name = self._session.config.name
            raise MCPConnectionError(
                f"MCP server {name!r} does not list its {what}s: {error}.",
                server=name,
                code=error.code,
            ) from None

    def _invalid(self, problem: str) -> MCPProtocolError:
        name = self._session.config.name
        return MCPProtocolError(f"MCP server {name!r} cannot be used: {problem}.", server=name)


_METHOD_NOT_FOUND: Final = -32601
