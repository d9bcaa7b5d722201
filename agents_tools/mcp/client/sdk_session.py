"""Sessions of the MCP SDK: the code that its major versions 1 and 2 share.

Other modules do not need to know which version is installed.
"""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._sdk import MODERN, RawJson, RawResult, inner_server, message_of, sdk_http
from agents_tools.mcp.client.pending_requests import ReadStream, WriteStream, current_request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from agents_tools.mcp.client.pending_requests import PendingRequest, PendingRequests
    from agents_tools.mcp.config import MCPServerConfig, ProtocolEra

__all__ = [
    "ClientHooks",
    "ClientSession",
    "HeaderMirror",
    "Sdk",
    "ServerRefusal",
    "json_of",
]

_CLOSED = -32000

HeaderMirror: TypeAlias = "Callable[[dict[str, Any]], dict[str, str]]"
"""Returns HTTP headers for the params of a call."""


class ServerRefusal(Exception):  # noqa: N818 - a response of the server, not an error of the client
    """The server answered with an error.

    Args:
        code: The JSON-RPC code.
        message: The text of the error.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHooks:
    """What the owner of a connection provides.

    Attributes:
        elicit: Returns the result of a question; `None` if it is not supported. So do the others.
        sample: Returns the result of a request for a model.
        sample_tools: Whether the request can have tools.
        roots: Returns the folders that the server can work in.
        client_name: The name of the program for servers.
        client_version: Its version; that of this library by default.
    """

    elicit: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    sample: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None
    sample_tools: bool = False
    roots: Callable[[], Awaitable[dict[str, Any]]] | None = None
    client_name: str = "agents-tools"
    client_version: str | None = None


class Sdk:
    """One major version of the SDK."""

    def __init__(self) -> None:
        self.mcp: Any = importlib.import_module("mcp")
        self.types: Any = importlib.import_module("mcp.types")
        self.httpx: Any = sdk_http()
        self._item: Any = importlib.import_module("mcp.shared.message").SessionMessage

    def message(self, data: dict[str, Any]) -> Any:
        """Return a message for a stream of the SDK."""
        return self._item(message_of(data))

    def error(self, number: Any, text: str) -> Any:
        """Return a message with an error as the response to a request."""
        error = {"code": _CLOSED, "message": text}
        return self.message({"jsonrpc": "2.0", "id": number, "error": error})

    def http_streams(self, config: MCPServerConfig, client: Any) -> Any:
        """Return the streams to a server over HTTP."""
        raise NotImplementedError

    def connect(
        self, transport: Any, config: MCPServerConfig, hooks: ClientHooks, protocol: ProtocolEra
    ) -> AbstractAsyncContextManager[ClientSession]:
        """Connect over the streams of a transport."""
        raise NotImplementedError

    @contextlib.asynccontextmanager
    async def in_memory(
        self,
        config: MCPServerConfig,
        hooks: ClientHooks,
        pending: PendingRequests,
        protocol: ProtocolEra,
    ) -> AsyncGenerator[ClientSession]:
        """Connect to a server in this process."""
        async with (
            _memory_streams(config.server, pending) as streams,
            self.connect(contextlib.nullcontext(streams), config, hooks, protocol) as session,
        ):
            yield session

    def _session_options(self, hooks: ClientHooks) -> dict[str, Any]:
        """Return the options of the sessions of both versions."""
        from agents_tools._package import __version__

        types = self.types
        tools = types.SamplingToolsCapability() if hooks.sample_tools else None
        return {
            "client_info": types.Implementation(
                name=hooks.client_name, version=hooks.client_version or __version__
            ),
            "elicitation_callback": _callback(hooks.elicit, types, "ElicitResult"),
            "sampling_callback": _callback(hooks.sample, types, "CreateMessageResult"),
            "sampling_capabilities": types.SamplingCapability(tools=tools),
            "list_roots_callback": _callback(hooks.roots, types, "ListRootsResult"),
        }


def _callback(hook: Any, types: Any, result: str) -> Any:
    if hook is None:
        return None

    async def answer(_context: Any, params: Any = None) -> Any:
        fields = await hook() if params is None else await hook(json_of(params))
        if "error" in fields:
            return types.ErrorData(code=-1, message=fields["error"])
        kind = result
        content = fields.get("content")
        if result == "CreateMessageResult" and (
            isinstance(content, list) or an_object(content).get("type") == "tool_use"
        ):
            kind = "CreateMessageResultWithTools"
        return getattr(types, kind).model_validate(fields)

    return answer


class ClientSession:
    """A session with one server.

    Args:
        session: The session of the SDK.
        error_type: The class of its errors.
        facts: What the server has reported about itself.
        direct: Tracks the requests, if there are no streams that do this.
    """

    def __init__(
        self,
        session: Any,
        error_type: type[Exception],
        facts: dict[str, Any],
        direct: PendingRequests | None = None,
    ) -> None:
        import anyio
        from pydantic import ValidationError

        self._session = session
        self._error_type = error_type
        self._invalid = ValidationError
        self._closed = (anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError)
        self._direct = direct
        self.version: str = facts.get("protocolVersion") or MODERN
        self.server_info: dict[str, Any] = facts.get("serverInfo") or {}
        self.capabilities: dict[str, Any] = facts.get("capabilities") or {}
        self.instructions: str | None = facts.get("instructions")

    async def send(self, request: PendingRequest, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result.

        Raises:
            ServerRefusal: The server answered with an error.
            ConnectionError: The connection has ended.
        """
        # The streams, and a server in this process, read the request from this context variable.
        token = current_request.set(request)
        on_progress: Any = _ignore_progress
        if self._direct is not None:
            on_progress = partial(_record_progress, request)
            self._direct.add(request)
            request.sent = True
        is_task = request.method.startswith("tasks/")
        message = (_RawTaskRequest if is_task else RawJson)(request.method, params)
        try:
            result = await self._send(message, on_progress)
        except self._error_type as error:
            details: Any = getattr(error, "error", error)
            raise ServerRefusal(details.code, str(details.message)) from None
        except self._invalid as error:
            raise ServerRefusal(_CLOSED, f"its answer is not valid: {error}") from None
        except self._closed as error:
            raise ConnectionError(str(error)) from error
        finally:
            current_request.reset(token)
        return result if request.raw is None else request.raw

    async def _send(self, message: RawJson, on_progress: Any) -> Any:
        return await self._session.send_request(message, RawResult, progress_callback=on_progress)

    async def listen(self, on_change: Callable[[str], None]) -> None:
        """Report changed lists, in the protocol versions that have a stream for them."""
        del on_change  # older protocol versions send changes as notifications of the session

    async def listen_to_resources(
        self, uris: list[str], on_open: Callable[[], None], on_update: Callable[[str], None]
    ) -> None:
        """Report changed resources, in the protocol versions that have a stream for them.

        Args:
            uris: The resources.
            on_open: Called when the server has accepted the subscription.
            on_update: Called with the URI of each changed resource.

        Raises:
            ServerRefusal: The server does not report the changes of one of the resources.
        """
        del uris, on_update  # as above
        on_open()

    def check_headers(
        self, tools: list[dict[str, Any]]
    ) -> tuple[dict[str, str], HeaderMirror | None]:
        """Return why tools have invalid headers, by name, and a function that creates the headers.

        From protocol version 2026-07-28 on, a schema can name HTTP headers that repeat arguments
        (`x-mcp-header`).
        """
        del tools  # older protocol versions do not have such headers
        return {}, None


class _RawTaskRequest(RawJson):
    """A request about a task, whose id the SDK repeats in the HTTP header `Mcp-Name`."""

    name_param = "taskId"


async def _record_progress(
    request: PendingRequest, progress: float, total: float | None, message: str | None
) -> None:
    """Record progress that was reported without a stream."""
    request.record_progress({"progress": progress, "total": total, "message": message})


async def _ignore_progress(progress: float, total: float | None, message: str | None) -> None:
    """Do nothing: with a callback the SDK requests progress, which `PendingRequests` handles."""


@contextlib.asynccontextmanager
async def _memory_streams(
    server: Any, pending: PendingRequests
) -> AsyncGenerator[tuple[ReadStream, WriteStream]]:
    """Run a server in this process, and provide the streams to it."""
    import anyio

    memory: Any = importlib.import_module("mcp.shared.memory")
    server = inner_server(server)
    async with (
        memory.create_client_server_memory_streams() as (client_side, server_side),
        anyio.create_task_group() as group,
    ):
        group.start_soon(server.run, *server_side, server.create_initialization_options())
        try:
            yield (
                ReadStream(client_side[0], pending),
                WriteStream(client_side[1], pending, direct=True),
            )
        finally:
            group.cancel_scope.cancel()


def json_of(model: Any) -> dict[str, Any]:
    """Return a model of the SDK as it is on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)
