"""Resources and prompts of the servers behind a gateway, as those of the gateway."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import MCPError, MCPProtocolError
from agents_tools.mcp._coerce import an_object, objects
from agents_tools.mcp._sanitize import clean_text, public_names
from agents_tools.mcp.server.completion import Completer
from agents_tools.mcp.server.prompts import Prompt
from agents_tools.mcp.server.resources import Resource
from agents_tools.text.output import release_json
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from agents_tools.mcp.client.manager import MCPToolManager

__all__ = ["RemoteFeatures"]

logger = logging.getLogger("agents_tools.mcp")

_LIFETIME = 5.0
"""Seconds for which the lists of servers are used again."""
_MAX_TEXT = 2_000
"""The maximum number of characters of a description."""
_METHOD_NOT_FOUND = -32601


class RemoteFeatures:
    """The resources and prompts of the servers of a manager.

    Lists are fetched again after some seconds, or after a change. A server whose list cannot be
    fetched is left out.

    Args:
        manager: The connections to the servers.
    """

    def __init__(self, manager: MCPToolManager) -> None:
        self._manager = manager
        self._resources: tuple[float, list[Resource]] | None = None
        self._prompts: tuple[float, list[Prompt]] | None = None
        manager.subscribe_list("resources", self._forget_resources)
        manager.subscribe_list("prompts", self._forget_prompts)

    async def resources(self) -> list[Resource]:
        """Return the resources and templates; of several with one URI, the first one."""
        now = asyncio.get_running_loop().time()
        if self._resources is None or now - self._resources[0] > _LIFETIME:
            found: dict[str, Resource] = {}
            for name in self._servers("resources"):
                for listed in await self._listed(name, "resources", self._manager.list_resources):
                    if isinstance(uri := listed.get("uri"), str):
                        found.setdefault(uri, self._resource(name, uri, listed, template=False))
                templates = self._manager.list_resource_templates
                for listed in await self._listed(name, "resource templates", templates):
                    if isinstance(uri := listed.get("uriTemplate"), str):
                        found.setdefault(uri, self._resource(name, uri, listed, template=True))
            self._resources = now, list(found.values())
        return self._resources[1]

    async def server_of(self, uri: str) -> str:
        """Return the name of the server that has a resource.

        Raises:
            MCPProtocolError: No server lists the resource, or a template for it.
        """
        resources = cast("list[_RemoteResource]", await self.resources())
        for is_template in (False, True):
            for one in resources:
                if one.is_template is is_template and one.match(uri) is not None:
                    return one.server
        raise MCPProtocolError(
            f"The resource {uri!r:.200} is not known: no server of the gateway lists it.",
            server="gateway",
        )

    async def prompts(self) -> list[Prompt]:
        """Return the prompts; their names have the prefixes of their servers."""
        now = asyncio.get_running_loop().time()
        if self._prompts is None or now - self._prompts[0] > _LIFETIME:
            found: dict[str, Prompt] = {}
            for server in self._servers("prompts"):
                listed = await self._listed(server, "prompts", self._manager.list_prompts)
                by_name = {str(one["name"]): one for one in listed if "name" in one}
                prefix = self._manager.get_connection(server).config.prefix
                for wire_name, name in public_names(server, by_name, prefix=prefix).items():
                    one = self._prompt(server, wire_name, name, by_name[wire_name])
                    found.setdefault(name, one)
            self._prompts = now, list(found.values())
        return self._prompts[1]

    def _forget_resources(self) -> None:
        self._resources = None

    def _forget_prompts(self) -> None:
        self._prompts = None

    def _servers(self, capability: str) -> list[str]:
        """Return the names of the connected servers that have a capability."""
        names = self._manager.get_server_names()
        infos = {name: self._manager.get_server_info(name) for name in names}
        return [name for name in names if capability in (infos[name].get("capabilities") or {})]

    async def _listed(
        self,
        server: str,
        what: str,
        fetch: Callable[[str], Awaitable[Sequence[Mapping[str, Any]]]],
    ) -> list[dict[str, Any]]:
        try:
            return [an_object(one) for one in await fetch(server)]
        except MCPError as error:
            if not (isinstance(error, MCPProtocolError) and error.code == _METHOD_NOT_FOUND):
                logger.warning("The %s of MCP server %r are left out: %s", what, server, error)
            return []

    def _resource(
        self, server: str, uri: str, listed: dict[str, Any], *, template: bool
    ) -> _RemoteResource:
        async def read(_: Any, args_json: str) -> list[dict[str, Any]]:
            wanted = json.loads(args_json).get("uri", uri) if template else uri
            return objects(list(await self._manager.read_resource(server, wanted)))

        schema = {"type": "object", "properties": {"uri": {"type": "string"}} if template else {}}
        tool = _tool("read_resource", schema, read)
        return _RemoteResource(server, uri, _cleaned(listed, uri), tool)

    def _prompt(
        self, server: str, wire_name: str, name: str, listed: dict[str, Any]
    ) -> _RemotePrompt:
        async def get(_: Any, args_json: str) -> dict[str, Any]:
            return an_object(
                await self._manager.get_prompt(server, wire_name, json.loads(args_json))
            )

        arguments = [one for one in objects(listed.get("arguments")) if "name" in one]
        schema = {
            "type": "object",
            "properties": {str(one["name"]): {"type": "string"} for one in arguments},
            "required": [str(one["name"]) for one in arguments if one.get("required") is True],
        }
        described = {**_cleaned(listed, name), "name": name}
        described["arguments"] = [_cleaned(one, str(one["name"])) for one in arguments]
        for shown, one in zip(described["arguments"], arguments, strict=True):
            shown["required"] = one.get("required") is True
        complete = {
            argument: partial(self._complete, server, wire_name, argument)
            for argument in schema["properties"]
            if "completions" in self._manager.get_server_info(server).get("capabilities", {})
        }
        return _RemotePrompt(name, described, _tool("get_prompt", schema, get), complete)

    async def _complete(
        self, server: str, prompt: str, argument: str, typed: str, others: Mapping[str, str]
    ) -> list[str]:
        """Return the values with which a server completes an argument; none if it fails."""
        try:
            return await self._manager.complete(
                server, argument, typed, prompt=prompt, arguments=others
            )
        except MCPError:
            return []


def _tool(
    name: str, schema: dict[str, Any], invoke: Callable[[Any, str], Awaitable[Any]]
) -> FunctionTool[..., Any]:
    return FunctionTool(name=name, params_json_schema=schema, on_invoke_tool=invoke)


def _cleaned(listed: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the fields of an entry of a list that are valid, without hidden characters."""
    cleaned: dict[str, Any] = {"name": clean_text(str(listed.get("name") or name), 200)[0]}
    for key in ("uri", "uriTemplate", "title", "description", "mimeType"):
        if isinstance(text := listed.get(key), str):
            cleaned[key] = clean_text(text, _MAX_TEXT)[0]
    if isinstance(size := listed.get("size"), int) and size >= 0:
        cleaned["size"] = size
    if meta := an_object(listed.get("_meta")):
        cleaned["_meta"] = meta
    return cleaned


class _RemoteResource(Resource):
    """A resource of a server behind the gateway."""

    def __init__(
        self, server: str, uri: str, listed: dict[str, Any], tool: FunctionTool[..., Any]
    ) -> None:
        super().__init__("gateway:", tool, name=listed["name"])
        self.server = server
        self.uri = uri
        self._listed = listed
        pieces = re.split(r"\{[^{}]*\}", uri) if "uriTemplate" in listed else [uri]
        self._pattern = re.compile(".+".join(map(re.escape, pieces)), re.DOTALL)

    @property
    def is_template(self) -> bool:
        return "uriTemplate" in self._listed

    def build(self) -> Completer:
        return Completer(self.tool, {}, f"resource {self.uri!r}")

    def match(self, uri: str) -> dict[str, str] | None:
        return {"uri": uri} if self._pattern.fullmatch(uri) else None

    def describe(self) -> dict[str, Any]:
        return self._listed

    def contents(self, uri: str, value: Any) -> list[dict[str, Any]]:
        return [{"uri": uri, **one} for one in objects(release_json(value, to="program"))]


class _RemotePrompt(Prompt):
    """A prompt of a server behind the gateway."""

    def __init__(
        self,
        name: str,
        listed: dict[str, Any],
        tool: FunctionTool[..., Any],
        complete: Mapping[str, Any],
    ) -> None:
        super().__init__(tool, name=name, complete=complete)
        self.description = listed.get("description")
        self._listed = listed

    def describe(self) -> dict[str, Any]:
        return self._listed

    def messages(self, value: Any) -> list[dict[str, Any]]:
        return objects(release_json(an_object(value).get("messages"), to="program"))
