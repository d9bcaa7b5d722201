"""Read the resources and prompts of servers, and complete their arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserValueError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.client.input_required import request_with_answers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.mcp.client.callbacks import RequestHandlers
    from agents_tools.mcp.client.connection import Connection

__all__ = ["ServerFeatures"]

_MAX_PAGES = 100


class ServerFeatures(ABC):
    """The requests of a manager for other features of its servers than tools."""

    _handlers: RequestHandlers

    @abstractmethod
    def get_connection(self, name: str) -> Connection:
        """Return the connection to a server.

        Raises:
            UserError: There is no server with this name.
        """

    async def list_resources(self, name: str) -> list[dict[str, Any]]:
        """Return the resources of a server, as it lists them.

        Raises:
            MCPError: The request fails.
        """
        return await self._pages(name, "resources/list", "resources")

    async def list_resource_templates(self, name: str) -> list[dict[str, Any]]:
        """Return the resource templates of a server, as it lists them.

        Raises:
            MCPError: The request fails.
        """
        return await self._pages(name, "resources/templates/list", "resourceTemplates")

    async def read_resource(self, name: str, uri: str) -> list[dict[str, Any]]:
        """Read a resource of a server; return its contents, with `text`, or `blob` in base64.

        Raises:
            MCPError: The resource cannot be read.
        """
        result = await self._request(name, "resources/read", {"uri": uri})
        return cast("list[dict[str, Any]]", result.get("contents") or [])

    async def subscribe_resource(self, name: str, uri: str, callback: Callable[[str], Any]) -> None:
        """Call a function whenever a server reports that a resource has changed.

        The subscription survives a reconnection. The resource then counts as changed, because
        changes in between are not reported. Several changes in a row can be one call.

        Args:
            name: The name of the server.
            uri: The URI of the resource.
            callback: Called with the URI, sync or async, on the loop of the connection.

        Raises:
            MCPError: The server cannot be reached, or does not accept the subscription.
        """
        await self.get_connection(name).subscribe(uri, callback)

    async def unsubscribe_resource(self, name: str, uri: str) -> None:
        """Stop calling the functions for a resource.

        Raises:
            MCPError: The server does not accept it. The functions are not called any more.
        """
        await self.get_connection(name).unsubscribe(uri)

    async def complete(
        self,
        name: str,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        template: str | None = None,
        arguments: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Return the values with which a server completes an argument.

        Args:
            name: The name of the server.
            argument: The name of the argument of a prompt, or of a part of a URI template.
            value: The beginning of the value.
            prompt: The name of the prompt.
            template: The URI template of the resource; if not `prompt`.
            arguments: The values of the other arguments.

        Raises:
            UserError: Neither a prompt nor a template is given, or both are.
            MCPError: The request fails.
        """
        if (prompt is None) == (template is None):
            raise UserValueError(
                "MCPToolManager.complete(...) expects either prompt= or template=, got "
                f"{'neither' if prompt is None else 'both'}."
            )
        ref = (
            {"type": "ref/resource", "uri": template}
            if prompt is None
            else {"type": "ref/prompt", "name": prompt}
        )
        params = {
            "ref": ref,
            "argument": {"name": argument, "value": value},
            "context": {"arguments": dict(arguments or {})},
        }
        result = await self._request(name, "completion/complete", params)
        values: object = an_object(result.get("completion")).get("values")
        found = cast("list[object]", values) if isinstance(values, list) else []
        return [str(one) for one in found]

    async def list_prompts(self, name: str) -> list[dict[str, Any]]:
        """Return the prompts of a server, as it lists them.

        Raises:
            MCPError: The request fails.
        """
        return await self._pages(name, "prompts/list", "prompts")

    async def get_prompt(
        self, name: str, prompt: str, arguments: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return a prompt of a server, with its `description` and `messages`.

        Raises:
            MCPError: The prompt cannot be fetched.
        """
        params = {"name": prompt, "arguments": dict(arguments or {})}
        return await self._request(name, "prompts/get", params)

    async def _request(self, name: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return await request_with_answers(
            self.get_connection(name),
            method,
            params,
            repeatable=True,
            handlers=self._handlers,
        )

    async def _pages(self, name: str, method: str, key: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        seen: set[str] = set()
        while True:
            page = await self._request(name, method, params)
            items += page.get(key) or []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen or len(seen) == _MAX_PAGES:
                return items
            seen.add(cursor)
            params = {"cursor": cursor}
