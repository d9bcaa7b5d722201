"""The server of the MCP SDK, in its major versions 1 and 2, around the tool handlers."""

from __future__ import annotations

import importlib
import inspect
import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents_tools._package import __version__
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._progress_meta import EVENT_KEY
from agents_tools.mcp.client.pending_requests import current_request
from agents_tools.mcp.client.sdk import MODERN, RawJson, sdk_line
from agents_tools.mcp.server.elicitation import Elicitations, form_of, read_form
from agents_tools.mcp.server.handlers import MCPRequest, RequestError
from agents_tools.server.http_security import current_principal

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from agents_tools.mcp.server.elicitation import Ask
    from agents_tools.mcp.server.handlers import Report, ToolHandlers
    from agents_tools.tool.question import Question

__all__ = ["SdkServer"]

logger = logging.getLogger("agents_tools.mcp")

_SECRET = re.compile(r"auth|cookie|token|secret|passw|credential|api-?key|signature")
"""Matches the names of headers whose values can be credentials."""


class SdkServer:
    """The SDK's server, which passes requests to the tool handlers.

    Args:
        handlers: Answer the requests.
        name: The name of the server.
        version: The version of the server; that of the library by default.
        instructions: Instructions for models that use the server.
    """

    def __init__(
        self,
        handlers: ToolHandlers,
        name: str,
        version: str | None,
        instructions: str | None,
    ) -> None:
        self.elicitations = Elicitations()
        major = sdk_line()  # raises an error with the install command
        self._handlers = handlers
        self._notifies_changes = handlers.is_dynamic
        self._types: Any = importlib.import_module("mcp.types")
        self._lowlevel: Any = importlib.import_module("mcp.server.lowlevel")
        self._sessions: dict[str, Any] = {}
        self._bus: Any = None
        self._list_results: dict[int, Any] = {}
        self._error: Any = getattr(
            importlib.import_module("mcp"), "McpError" if major == 1 else "MCPError"
        )
        self._major = major
        create = self._create_v1 if major == 1 else self._create_v2
        self.server: Any = create(name, version or __version__, instructions)

    def options(self) -> Any:
        """Return the initialization options of a session over streams."""
        notified = self._lowlevel.NotificationOptions(tools_changed=self._notifies_changes)
        return self.server.create_initialization_options(notified)

    def http(self, **options: Any) -> Any:
        """Create the SDK's session manager, which handles HTTP requests.

        Args:
            **options: Its options; options that the installed SDK does not support are ignored.
        """
        module: Any = importlib.import_module("mcp.server.streamable_http_manager")
        parameters = inspect.signature(module.StreamableHTTPSessionManager).parameters
        known = {key: value for key, value in options.items() if key in parameters}
        return module.StreamableHTTPSessionManager(app=self.server, **known)

    def with_principal(self, scope: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Add the caller to an ASGI scope; the SDK accepts a session only from its caller."""
        principal = current_principal()
        if principal is None:
            return scope
        auth: Any = importlib.import_module("mcp.server.auth.middleware.bearer_auth")
        provider: Any = importlib.import_module("mcp.server.auth.provider")
        fields = {
            "token": "-",  # the token itself is not passed on to the SDK or to tools
            "client_id": principal.client_id,
            "scopes": list(principal.scopes),
            "subject": principal.subject,
        }
        known = {
            key: value for key, value in fields.items() if key in provider.AccessToken.model_fields
        }
        return {**scope, "user": auth.AuthenticatedUser(provider.AccessToken(**known))}

    async def close(self) -> None:
        """End the calls that wait for an answer of a client, and the state of tools."""
        await self.elicitations.close()
        await self._handlers.states.aclose()

    async def tools_changed(self) -> None:
        """Notify clients that the list of tools has changed."""
        if self._bus is not None:
            events: Any = importlib.import_module("mcp.shared.subscriptions")
            await self._bus.publish(events.ToolsListChanged())
        for name, session in list(self._sessions.items()):
            try:
                await session.send_tool_list_changed()
            except Exception:  # noqa: BLE001 - the client has disconnected
                self._sessions.pop(name, None)

    # --- the major versions of the SDK

    def _create_v2(self, name: str, version: str, instructions: str | None) -> Any:
        options: dict[str, Any] = {}
        if self._notifies_changes:
            module: Any = importlib.import_module("mcp.server.subscriptions")
            self._bus = module.InMemorySubscriptionBus()
            options["on_subscriptions_listen"] = module.ListenHandler(self._bus)

        async def list_tools(ctx: Any, params: Any) -> Any:
            return await self._list(ctx, None if params is None else params.cursor)

        async def call_tool(ctx: Any, params: Any) -> Any:
            meta = dict(ctx.meta or {})
            return await self._call(ctx, params.name, params.arguments, meta, ctx.protocol_version)

        return self._lowlevel.Server(
            name,
            version=version,
            instructions=instructions,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            get_tool_input_schema=self._input_schema,
            **options,
        )

    def _create_v1(self, name: str, version: str, instructions: str | None) -> Any:
        types = self._types
        server: Any = self._lowlevel.Server(name, version=version, instructions=instructions)

        async def list_tools(request: Any) -> Any:
            cursor = None if request.params is None else request.params.cursor
            return types.ServerResult(await self._list(server.request_context, cursor))

        async def call_tool(request: Any) -> Any:
            ctx, params = server.request_context, request.params
            meta: dict[str, Any] = {}
            if ctx.meta is not None:
                meta = ctx.meta.model_dump(by_alias=True, exclude_none=True)
            version = str(getattr(ctx.session, "protocol_version", None) or "2025-11-25")
            result = await self._call(ctx, params.name, params.arguments, meta, version)
            return types.ServerResult(result)

        server.request_handlers[types.ListToolsRequest] = list_tools
        server.request_handlers[types.CallToolRequest] = call_tool
        return server

    def _input_schema(self, name: str) -> Any:
        tool = self._handlers.find(name)
        return None if tool is None else tool.json_schema

    # --- requests

    async def _list(self, ctx: Any, cursor: str | None) -> Any:
        self._store_session(ctx)
        version = getattr(ctx, "protocol_version", None) or "2025-11-25"
        try:
            tools = await self._handlers.list_tools(version, cursor)
        except RequestError as error:
            raise self._request_error(error) from None
        # The handlers return the same object for an unchanged page: validate it only once.
        cached = self._list_results.get(id(tools))
        if cached is None or cached[0] is not tools:
            if len(self._list_results) > _MAX_LIST_RESULTS:
                self._list_results.clear()
            result = self._types.ListToolsResult.model_validate(tools)
            cached = self._list_results[id(tools)] = (tools, result)
        return cached[1]

    async def _call(
        self, ctx: Any, name: str, arguments: Any, meta: dict[str, Any], version: str
    ) -> Any:
        self._store_session(ctx)
        token = meta.get("progress_token", meta.get("progressToken"))
        request = MCPRequest(
            protocol_version=version,
            headers=_headers(getattr(ctx, "request", None)),
            principal=_principal_of(ctx),
            meta={key: value for key, value in meta.items() if "progress" not in key.lower()},
            request_id=ctx.request_id,
        )
        report = None if token is None else _create_reporter(ctx, token)
        if token is None and self._major > 1 and getattr(ctx, "request", None) is None:
            report = _create_memory_reporter(
                ctx
            )  # a client in memory receives progress without a token

        async def perform(ask: Ask | None, report: Report | None) -> dict[str, Any]:
            return await self._handlers.call_tool(name, arguments, request, report, ask)

        try:
            if not self._can_ask(ctx):
                result = await perform(None, report)
            elif version < MODERN:
                result = await perform(self._create_asker(ctx), report)
            else:
                params = an_object(ctx.params)
                result = await self.elicitations.run(
                    perform, report, params.get("requestState"), params.get("inputResponses")
                )
        except RequestError as error:
            raise self._request_error(error) from None
        if result.get("resultType") == "input_required":
            return self._types.InputRequiredResult.model_validate(result)
        return self._types.CallToolResult.model_validate(result)

    def _can_ask(self, ctx: Any) -> bool:
        """Return whether the client supports elicitation."""
        types = self._types
        capability = types.ClientCapabilities(elicitation=types.ElicitationCapability())
        return bool(ctx.session.check_client_capability(capability))

    def _create_asker(self, ctx: Any) -> Ask:
        """Return a function that sends questions to the client during a call, up to 2025-11-25."""

        async def ask(question: Question) -> Any:
            form = form_of(question.schema)
            if form is None:
                return None
            try:
                answer = await ctx.session.elicit(question.message, form, ctx.request_id)
            except self._error as error:  # the transport has no channel for requests to the client
                logger.debug("The question cannot be sent to the client: %s", error)
                return None
            return read_form(question.schema, answer.model_dump(mode="json"))

        return ask

    def _request_error(self, error: RequestError) -> Exception:
        code = error.code
        if self._major == 1:
            return self._error(self._types.ErrorData(code=code, message=str(error)))
        return self._error(code, str(error))

    def _store_session(self, ctx: Any) -> None:
        """Store the session of a client up to 2025-11-25, to notify it of changed tools."""
        if not self._notifies_changes or getattr(ctx, "protocol_version", "") >= MODERN:
            return
        request = getattr(ctx, "request", None)
        name = "" if request is None else request.headers.get("mcp-session-id")
        if name is None:
            return  # over HTTP without sessions, the server cannot notify a client
        if len(self._sessions) >= _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[name] = ctx.session


_MAX_LIST_RESULTS = 64
_MAX_SESSIONS = 10_000


def _create_reporter(ctx: Any, token: Any) -> Report:
    async def report(
        progress: float, total: float | None, message: str | None, event: dict[str, Any] | None
    ) -> None:
        params: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        if event is not None:
            params["_meta"] = {EVENT_KEY: event}
        await ctx.session.send_notification(
            RawJson("notifications/progress", params), related_request_id=ctx.request_id
        )

    return report


def _create_memory_reporter(ctx: Any) -> Report:
    async def report(
        progress: float, total: float | None, message: str | None, event: dict[str, Any] | None
    ) -> None:
        request = current_request.get()
        if request is None or event is None:  # a client of another library
            await ctx.session.report_progress(progress, total, message)
            return
        params = {"progress": progress, "total": total, "message": message}
        request.record_progress({**params, "_meta": {EVENT_KEY: event}})

    return report


def _principal_of(ctx: Any) -> Any:
    """Return the caller of a request.

    It is read from the request: the context variables of a session are those of its first request.
    """
    scope: Any = getattr(getattr(ctx, "request", None), "scope", None)
    principal: Any = current_principal()
    if scope is not None:
        principal = an_object(scope.get("state")).get("agents_tools.principal")
    if principal is None:
        return None
    # The token is not passed on to tools, and the verifier's own object can contain it.
    return replace(principal, token="", claims=getattr(principal.claims, "claims", None))


def _headers(request: Any) -> dict[str, str]:
    """Return the headers of an HTTP request, without credentials."""
    headers = getattr(request, "headers", None)
    if headers is None:
        return {}
    return {name: value for name, value in headers.items() if not _SECRET.search(name.lower())}
