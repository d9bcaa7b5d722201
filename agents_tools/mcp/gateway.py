"""Offer the tools of several MCP servers through one server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, cast
from weakref import WeakKeyDictionary

from agents_tools.concurrency.supervisor import finish
from agents_tools.errors import MCPError, ToolDeniedError, UserValueError
from agents_tools.mcp.client.manager import MCPToolManager
from agents_tools.mcp.gateway_features import RemoteFeatures
from agents_tools.mcp.server.sampling import capabilities_for
from agents_tools.mcp.server.served_client import ServedClient, current_client
from agents_tools.policies import needs_approval
from agents_tools.text.output import release_text
from agents_tools.tool.context import call_of
from agents_tools.tool.policy import Policy
from agents_tools.tool.question import UnansweredError, ask_person
from agents_tools.tool.records import Decision
from agents_tools.toolset import Toolset, token_report
from agents_tools.toolset.tool_finder import behind_search

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from agents_tools.mcp.config import MCPServerConfig
    from agents_tools.mcp.server.prompts import Prompt
    from agents_tools.mcp.server.resources import Resource
    from agents_tools.tool.call import Call
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

    Servers = str | os.PathLike[str] | Mapping[str, Any] | Sequence[MCPServerConfig]

__all__ = ["MCPGateway"]

logger = logging.getLogger("agents_tools.mcp")

_START_TIMEOUT = 5.0
"""Seconds that the start waits for slow servers after the first one is ready."""
_RETRY_DELAYS = (5.0, 10.0, 20.0, 40.0, 60.0)
"""Seconds between the attempts to connect servers that have failed."""
_MAX_SHOWN_ARGUMENTS = 2_000


class MCPGateway:
    """The tools of MCP servers, to be served as one server.

    ```python
    async with MCPGateway("mcp.json", deny=["*_delete*"]) as gateway:
        await serve_async(
            gateway, resources=gateway, prompts=gateway, instructions=gateway.instructions
        )
    ```

    Progress, questions of servers, requests for the model of the client, structured results and
    changes of lists are passed on. So are resources with their updates, and prompts with the
    completion of their arguments. A server that cannot be connected does not affect the others; it
    is connected again later. A call that needs approval (`require_approval`) asks the user of the
    client.

    Args:
        servers: The path of an `mcpServers` file, its content, or configurations of servers.
        tools: More tools to offer, of any kind that a `Toolset` accepts.
        allow: Patterns (`fnmatch`) of the names of the tools to offer; all by default. The names
            are those that the gateway offers, before `rename`.
        deny: Patterns of the names of the tools to leave out.
        rename: New names of tools by their names.
        require_approval: Patterns of the names of the tools whose calls need approval, in addition
            to those of the configuration.
        tool_search: Whether clients get a tool that searches and one that calls, instead of the
            definitions of all tools.
        max_tokens: The maximum number of tokens of all definitions, estimated; if they have more,
            the tools are behind a search. No limit by default.
        **options: The options of `MCPToolManager`.

    Attributes:
        manager: The connections to the servers.

    Raises:
        UserError: The configuration or an option is invalid.
    """

    def __init__(
        self,
        servers: Servers,
        *,
        tools: Iterable[object] = (),
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        rename: Mapping[str, str] | None = None,
        require_approval: Sequence[str] = (),
        tool_search: bool = False,
        max_tokens: int | None = None,
        **options: Any,
    ) -> None:
        if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
            raise UserValueError(
                f"MCPGateway(max_tokens=...) expects a positive integer, got {max_tokens!r:.60}."
            )
        if "sample" not in options:
            options |= {"sample": _sample, "sample_tools": True}
        options = {"ask": True, "start_timeout": _START_TIMEOUT, **options}
        self.manager = (
            MCPToolManager.from_servers(cast("Sequence[MCPServerConfig]", servers), **options)
            if isinstance(servers, (list, tuple))
            else MCPToolManager.from_config(cast("Any", servers), **options)
        )
        self._always_search = tool_search
        self._max_tokens = max_tokens
        self._all = Toolset(self.manager, *tools)
        self._toolset = (
            self._all.filter(_name_test(allow, deny))
            .map(_approval(tuple(require_approval)))
            .rename(dict(rename or {}).get)
        )
        self._patterns = {
            "allow": tuple(allow),
            "deny": tuple(deny),
            "rename": tuple(rename or ()),
            "require_approval": tuple(require_approval),
        }
        self._features = RemoteFeatures(self.manager)
        self._offered: tuple[tuple[Any, ...], tuple[Any, ...]] | None = None
        self._retries: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Connect the servers.

        Raises:
            MCPConnectionError: None of the servers can be connected.
            UserError: The patterns leave no tool.
        """
        manager = self.manager
        try:
            await manager.connect()
            self._check_connected()
            await self._check_tools()
        except BaseException:
            await manager.cleanup()
            raise
        self._retries = asyncio.create_task(self._reconnect(), name="mcp gateway")
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close the connections."""
        retries, self._retries = self._retries, None
        if retries is not None:
            retries.cancel()
            await finish(retries, name="a gateway, while it connects servers again")
        await self.manager.cleanup()

    @property
    def instructions(self) -> str | None:
        """The instructions of the servers for models, cleaned; `None` if there are none."""
        return self.manager.get_instructions(self.manager.get_server_names()) or None

    async def get_tools(self) -> tuple[Any, ...]:
        """Return the tools that clients get. While they do not change, it is the same tuple.

        Raises:
            UserError: Two tools have the same name, or a name is not valid.
        """
        tools = await self._toolset.get_tools()
        offered = self._offered
        if offered is None or offered[0] is not tools:
            offered = self._offered = (tools, self._searched(tools))
        return offered[1]

    async def get_resources(self) -> list[Resource]:
        """Return the resources and resource templates of all servers, under their own URIs."""
        return await self._features.resources()

    async def get_prompts(self) -> list[Prompt]:
        """Return the prompts of all servers; their names have the prefixes of the tools."""
        return await self._features.prompts()

    async def subscribe_resource(self, uri: str, callback: Callable[[str], object]) -> None:
        """Call a function whenever the server of a resource reports that it has changed.

        Args:
            uri: The URI of the resource.
            callback: Called with the URI, sync or async.

        Raises:
            MCPError: No server has the resource, or its server does not report its updates.
        """
        server = await self._features.server_of(uri)
        await self.manager.subscribe_resource(server, uri, callback)

    async def unsubscribe_resource(self, uri: str) -> None:
        """Stop calling the functions for a resource.

        Raises:
            MCPError: The server does not accept it.
        """
        server = await self._features.server_of(uri)
        await self.manager.unsubscribe_resource(server, uri)

    def subscribe_list(
        self, kind: Literal["resources", "prompts"], callback: Callable[[], object]
    ) -> None:
        """Call a function whenever the list of resources or of prompts of a server changes.

        Args:
            kind: The list: `resources` (with the resource templates) or `prompts`.
            callback: A function without parameters. It runs in the thread of the change.
        """
        self.manager.subscribe_list(kind, callback)

    def subscribe(self, callback: Callable[[], object]) -> None:
        """Call a function whenever the tools of a server change.

        Args:
            callback: A function without parameters. It runs in the thread of the change.
        """
        self._toolset.subscribe(callback)

    def _check_connected(self) -> None:
        failures = list(self.manager.failures.values())
        if failures and len(failures) == len(self.manager.get_server_names()):
            raise failures[0]

    async def _check_tools(self) -> None:
        names = [tool.name for tool in await self._all.get_tools()]
        known = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")  # noqa: PLR2004
        if names and not await self.get_tools():
            raise UserValueError(
                "No tool matches the patterns of names to allow and to deny: expected patterns of "
                f"{known}."
            )
        for option, patterns in self._patterns.items():
            for pattern in patterns:
                if not any(fnmatchcase(name, pattern) for name in names):
                    # The command line hides the log of the connections, "agents_tools.mcp".
                    logging.getLogger("agents_tools").warning(
                        "MCPGateway(%s=...): %r matches none of the tools %s. Correct it, unless a "
                        "server adds such a tool later.",
                        option,
                        pattern,
                        known,
                    )

    def _searched(self, tools: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the tools, behind a search if it is wanted or their definitions are too large."""
        if not self._always_search and not self._is_too_large(tools):
            return tools
        return tuple(behind_search(tools, "tool_search", "call_tool", all_of_them=True))

    def _is_too_large(self, tools: tuple[Any, ...]) -> bool:
        if self._max_tokens is None:
            return False
        total = token_report(tools, "mcp").totals["mcp"]
        if total > self._max_tokens:
            logger.info(
                "The definitions of %d tools have about %d tokens, more than max_tokens=%d; they "
                "are behind a search.",
                len(tools),
                total,
                self._max_tokens,
            )
        return total > self._max_tokens

    async def _reconnect(self) -> None:
        """Connect failed servers again, with longer and longer delays."""
        attempt = 0
        while True:
            await asyncio.sleep(_RETRY_DELAYS[min(attempt, len(_RETRY_DELAYS) - 1)])
            failed = list(self.manager.failures)
            for name in failed:
                if name not in self.manager.failures:  # it was removed or connected meanwhile
                    continue
                with contextlib.suppress(MCPError):
                    await self.manager.reload_server(name)
            attempt = attempt + 1 if failed else 0


def _name_test(allow: Sequence[str], deny: Sequence[str]) -> Callable[[Any], bool]:
    def is_offered(tool: Any) -> bool:
        name: str = tool.name
        allowed = not allow or any(fnmatchcase(name, pattern) for pattern in allow)
        return allowed and not any(fnmatchcase(name, pattern) for pattern in deny)

    return is_offered


def _approval(patterns: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return a function that lets the user of the client approve the calls of a tool."""

    def guarded(tool: FunctionTool[..., Any]) -> Any:
        if any(fnmatchcase(tool.name, pattern) for pattern in patterns):
            tool = needs_approval()(tool)
        return _client_handlers(tool)

    return guarded


class _ClientHandlers(Policy):
    """Lets policies and servers further inside reach the client of a call."""

    name = "client of the gateway"

    async def before(self, call: Call) -> None:
        """Set the handler that asks for approvals, and store the client."""
        call.approver = _ask_client
        if (client := current_client.get()) is not None:
            _clients[call] = client


_client_handlers = _ClientHandlers()
_clients: WeakKeyDictionary[Call, ServedClient] = WeakKeyDictionary()
"""The clients of the running calls: a request of a server arrives in another task."""


async def _sample(params: Mapping[str, Any], context: ToolContext[Any] | None) -> Mapping[str, Any]:
    """Pass a request of a server for a model on to the client of the call."""
    calls = () if context is None else call_of(context).ancestors
    client = next((_clients[call] for call in calls if call in _clients), None)
    if client is None:
        return {"error": "it is not certain which call the request belongs to"}
    try:
        return await client.request(
            "sampling/createMessage", dict(params), needs=capabilities_for(params)
        )
    except UnansweredError as error:
        return {"error": f"the client did not ask its model, because {error}"}


async def _ask_client(call: Call) -> Decision:
    """Ask the user of the client whether a call can run.

    Raises:
        ToolDeniedError: The client cannot ask its user, or the user does not answer.
    """
    asker = call.find_asker()
    if asker is None:
        raise ToolDeniedError(
            f"Tool {call.tool_name!r} needs the approval of a person, but the client cannot ask "
            "its user (it does not support elicitation). The call was not run."
        )
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False, indent=2)
    shown = release_text(arguments, to="model", limit=_MAX_SHOWN_ARGUMENTS)
    approved = await ask_person(
        asker,
        f"Allow the call of {call.tool_name} with these arguments?\n{shown}",
        bool,
        tool_name=call.tool_name,
        tool_call_id=call.tool_call_id,
        path=call.path,
    )
    return Decision(approved=approved)
