"""The SDK's server, in both of its lines: requests in, answers of an `Offer` out."""

from __future__ import annotations

import importlib
import inspect
import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents_tools._listener import current_principal
from agents_tools.errors import UserError
from agents_tools.mcp._asking import Interviews, form_of, read_form
from agents_tools.mcp._exchange import current_request
from agents_tools.mcp._offer import INVALID_PARAMS, MCPRequest, RequestError
from agents_tools.mcp._remote import CALL_KEY, EVENTS_KEY, order_in
from agents_tools.mcp._report import EVENT_KEY
from agents_tools.mcp._sdk import MODERN, Json, sdk_line
from agents_tools.mcp._shapes import an_object

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from agents_tools.context import Question
    from agents_tools.mcp._asking import Ask
    from agents_tools.mcp._offer import Offer, Report
    from agents_tools.mcp._worker import Send

__all__ = ["SdkServer"]

logger = logging.getLogger("agents_tools.mcp")

_SECRET = re.compile(r"auth|cookie|token|secret|passw|credential|api-?key|signature")
"""Names of headers whose values may be credentials."""


class SdkServer:
    """The SDK's server around an offer.

    Args:
        offer: What it answers.
        name: Its name.
        version: Its version.
        instructions: What it says of itself to models.
        changes: Whether it says that lists change.
        plain: Whether its answers over HTTP are plain JSON, with nothing before the result.
    """

    def __init__(
        self,
        offer: Offer,
        *,
        name: str,
        version: str,
        instructions: str | None,
        changes: bool,
        plain: bool = False,
    ) -> None:
        self.interviews = Interviews()
        self.plain = plain
        line = sdk_line()  # or it is told what to install
        self._offer = offer
        self._changes = changes
        self._types: Any = importlib.import_module("mcp.types")
        self._lowlevel: Any = importlib.import_module("mcp.server.lowlevel")
        self._sessions: dict[str, Any] = {}
        self._bus: Any = None
        self._lists: dict[int, Any] = {}
        self._error: Any = getattr(
            importlib.import_module("mcp"), "McpError" if line == 1 else "MCPError"
        )
        self._line = line
        make = self._one if line == 1 else self._two
        self.server: Any = make(name, version, instructions)

    def options(self) -> Any:
        """Give what a session over streams is begun with."""
        notified = self._lowlevel.NotificationOptions(tools_changed=self._changes)
        return self.server.create_initialization_options(notified)

    def http(self, **options: Any) -> Any:
        """Make what handles HTTP requests.

        Args:
            **options: What a manager of sessions takes; what this line's does not is left out.
        """
        module: Any = importlib.import_module("mcp.server.streamable_http_manager")
        taken = inspect.signature(module.StreamableHTTPSessionManager).parameters
        known = {key: value for key, value in options.items() if key in taken}
        return module.StreamableHTTPSessionManager(app=self.server, **known)

    def owned(self, scope: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Say in a request whose it is, so that nobody goes on with the session of another."""
        principal = current_principal()
        if principal is None:
            return scope
        auth: Any = importlib.import_module("mcp.server.auth.middleware.bearer_auth")
        provider: Any = importlib.import_module("mcp.server.auth.provider")
        facts = {
            "token": "-",  # the token itself is for nobody behind the door
            "client_id": principal.client_id,
            "scopes": list(principal.scopes),
            "subject": principal.subject,
        }
        known = {key: facts[key] for key in facts if key in provider.AccessToken.model_fields}
        return {**scope, "user": auth.AuthenticatedUser(provider.AccessToken(**known))}

    async def tools_changed(self) -> None:
        """Tell clients that the list of tools has changed."""
        if self._bus is not None:
            events: Any = importlib.import_module("mcp.shared.subscriptions")
            await self._bus.publish(events.ToolsListChanged())
        for name, session in list(self._sessions.items()):
            try:
                await session.send_tool_list_changed()
            except Exception:  # noqa: BLE001 - a client that has gone
                self._sessions.pop(name, None)

    # --- the lines

    def _two(self, name: str, version: str, instructions: str | None) -> Any:
        options: dict[str, Any] = {}
        if self._changes:
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

    def _one(self, name: str, version: str, instructions: str | None) -> Any:
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
        tool = self._offer.known(name)
        return None if tool is None else tool.json_schema

    # --- requests

    async def _list(self, ctx: Any, cursor: str | None) -> Any:
        self._remember(ctx)
        version = getattr(ctx, "protocol_version", None) or "2025-11-25"
        try:
            listed = await self._offer.list_tools(version, cursor)
        except RequestError as error:
            raise self._refusal(error) from None
        known = self._lists.get(id(listed))
        if known is None or known[0] is not listed:
            if len(self._lists) > _KEPT:
                self._lists.clear()
            result = self._types.ListToolsResult.model_validate(listed)
            known = self._lists[id(listed)] = (listed, result)
        return known[1]

    async def _call(
        self, ctx: Any, name: str, arguments: Any, meta: dict[str, Any], version: str
    ) -> Any:
        self._remember(ctx)
        token = meta.get("progress_token", meta.get("progressToken"))
        request = MCPRequest(
            protocol_version=version,
            headers=_headers(getattr(ctx, "request", None)),
            principal=_principal_of(ctx),
            meta={key: value for key, value in meta.items() if "progress" not in key.lower()},
            request_id=ctx.request_id,
        )
        try:
            order = order_in(meta, name, arguments or {}) if CALL_KEY in meta else None
            if order is not None:
                send = None if token is None or self.plain else _sender(ctx, token)
                result = await self._offer.perform(order, request, send)
                one = self._line == 1  # the second line takes plain JSON as well
                return self._types.CallToolResult.model_validate(result) if one else result
        except (RequestError, UserError) as error:
            raise self._refusal(error) from None
        report = None if token is None else _reporter(ctx, token)
        if token is None and self._line > 1 and getattr(ctx, "request", None) is None:
            report = _plain_reporter(ctx)  # in memory progress is wanted without a token

        async def perform(ask: Ask | None, report: Report | None) -> dict[str, Any]:
            return await self._offer.call_tool(name, arguments, request, report, ask)

        try:
            if not self._can_ask(ctx):
                result = await perform(None, report)
            elif version < MODERN:
                result = await perform(self._asker(ctx), report)
            else:
                params = an_object(ctx.params)
                result = await self.interviews.run(
                    perform, report, params.get("requestState"), params.get("inputResponses")
                )
        except RequestError as error:
            raise self._refusal(error) from None
        if result.get("resultType") == "input_required":
            return self._types.InputRequiredResult.model_validate(result)
        return self._types.CallToolResult.model_validate(result)

    def _can_ask(self, ctx: Any) -> bool:
        """Whether the client has said that a person can be asked there."""
        types = self._types
        asked = types.ClientCapabilities(elicitation=types.ElicitationCapability())
        return bool(ctx.session.check_client_capability(asked))

    def _asker(self, ctx: Any) -> Ask:
        """Give what sends questions to the client while the call runs: up to 2025-11-25."""

        async def ask(question: Question) -> Any:
            form = form_of(question.schema)
            if form is None:
                return None
            try:
                answer = await ctx.session.elicit(question.message, form, ctx.request_id)
            except self._error as error:  # there is no way back to this client
                logger.debug("The client cannot be asked: %s", error)
                return None
            return read_form(question.schema, answer.model_dump(mode="json"))

        return ask

    def _refusal(self, error: RequestError | UserError) -> Exception:
        code = error.code if isinstance(error, RequestError) else INVALID_PARAMS
        if self._line == 1:
            return self._error(self._types.ErrorData(code=code, message=str(error)))
        return self._error(code, str(error))

    def _remember(self, ctx: Any) -> None:
        """Keep the session of a client, which is told of changes on it up to 2025-11-25."""
        if not self._changes or getattr(ctx, "protocol_version", "") >= MODERN:
            return
        request = getattr(ctx, "request", None)
        name = "" if request is None else request.headers.get("mcp-session-id")
        if name is None:
            return  # over HTTP without sessions nobody can be told anything
        if len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[name] = ctx.session


_KEPT = 64
_MOST_SESSIONS = 10_000


def _reporter(ctx: Any, token: Any) -> Report:
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
            Json("notifications/progress", params), related_request_id=ctx.request_id
        )

    return report


def _sender(ctx: Any, token: Any) -> Send:
    async def send(number: int, records: list[Any]) -> None:
        params: dict[str, Any] = {
            "progressToken": token,
            "progress": number,
            "_meta": {EVENTS_KEY: records},
        }
        await ctx.session.send_notification(
            Json("notifications/progress", params), related_request_id=ctx.request_id
        )

    return send


def _plain_reporter(ctx: Any) -> Report:
    async def report(
        progress: float, total: float | None, message: str | None, event: dict[str, Any] | None
    ) -> None:
        request = current_request.get()
        if request is None or event is None:  # a client that is not ours
            await ctx.session.report_progress(progress, total, message)
            return
        told = {"progress": progress, "total": total, "message": message}
        request.heard({**told, "_meta": {EVENT_KEY: event}})

    return report


def _principal_of(ctx: Any) -> Any:
    """Give who makes a request: in a session the variables are those of its first request."""
    scope: Any = getattr(getattr(ctx, "request", None), "scope", None)
    principal: Any = current_principal()
    if scope is not None:
        principal = an_object(scope.get("state")).get("agents_tools.principal")
    if principal is None:
        return None
    # The token is for nobody behind the door, and the verifier's own object may hold it.
    return replace(principal, token="", claims=getattr(principal.claims, "claims", None))


def _headers(request: Any) -> dict[str, str]:
    """Give the headers of an HTTP request; credentials are not for tools."""
    headers = getattr(request, "headers", None)
    if headers is None:
        return {}
    return {name: value for name, value in headers.items() if not _SECRET.search(name.lower())}
