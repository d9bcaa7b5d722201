"""The server of the MCP SDK, in its major versions 1 and 2, around the tool handlers."""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import re
import secrets
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agents_tools._package import __version__
from agents_tools.errors import UserError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._progress_meta import EVENTS_KEY
from agents_tools.mcp._sdk import MODERN, sdk_line
from agents_tools.mcp._task_names import TASKS
from agents_tools.mcp.server.elicitation import ask_client
from agents_tools.mcp.server.features import features_of
from agents_tools.mcp.server.input_required import STATE_TTL, WaitingCalls
from agents_tools.mcp.server.notifications import ServerNotifier, session_name
from agents_tools.mcp.server.progress import MemoryProgress, StreamProgress
from agents_tools.mcp.server.requests import MCPRequest, RequestError
from agents_tools.mcp.server.served_client import ServedClient, current_client
from agents_tools.mcp.server.session_client import SessionClient, capabilities_of
from agents_tools.mcp.server.task_requests import TaskClient, TaskRequests
from agents_tools.server.http_security import current_principal

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from agents_tools.mcp._sdk import ListKind
    from agents_tools.mcp.server.features import Feature
    from agents_tools.mcp.server.handlers import ToolHandlers
    from agents_tools.mcp.server.input_required import Perform
    from agents_tools.mcp.server.progress import Report
    from agents_tools.mcp.server.prompts import PromptHandlers
    from agents_tools.mcp.server.resources import ResourceHandlers
    from agents_tools.mcp.server.tasks import Tasks

__all__ = ["SdkServer"]

_SECRET = re.compile(r"auth|cookie|token|secret|passw|credential|api-?key|signature")
"""Matches the names of headers whose values can be credentials."""


class SdkServer:
    """The SDK's server, which passes requests to the tool handlers.

    Args:
        handlers: Answer the requests for tools.
        resources: Answer the requests for resources; `None` if the server has none.
        prompts: Answer the requests for prompts; `None` if the server has none.
        name: The name of the server.
        version: The version of the server; that of the library by default.
        instructions: Instructions for models that use the server.
        state_secrets: The keys of the states of calls that ask, which several processes share. The
            first one signs, all verify; by default a random key of this process.

    Attributes:
        has_read: Returns whether the client has read everything that was sent; `None` if this is
            not known.

    Raises:
        UserError: The SDK is not installed, or is too old for shared keys.
    """

    def __init__(
        self,
        handlers: ToolHandlers,
        resources: ResourceHandlers | None,
        prompts: PromptHandlers | None,
        name: str,
        version: str | None,
        instructions: str | None,
        state_secrets: tuple[str | bytes, ...] = (),
    ) -> None:
        self.waiting_calls = WaitingCalls(is_shared=bool(state_secrets))
        self.has_read: Callable[[], bool | None] = lambda: None
        major = sdk_line()  # raises an error with the install command
        self._handlers = handlers
        self._tasks: Tasks | None = None
        self._resources = resources
        self._prompts = prompts
        self._log_levels: dict[str, str] = {}
        self._notifier: ServerNotifier | None = None
        if handlers.is_dynamic or resources is not None or prompts is not None:
            source = None if resources is None else resources.source
            self._notifier = ServerNotifier(major, source)
        self._types: Any = importlib.import_module("mcp.types")
        self._lowlevel: Any = importlib.import_module("mcp.server.lowlevel")
        self._list_results: dict[int, Any] = {}
        self._error: Any = getattr(
            importlib.import_module("mcp"), "McpError" if major == 1 else "MCPError"
        )
        self._major = major
        self._state_secrets = state_secrets
        create = self._create_v1 if major == 1 else self._create_v2
        self.server: Any = create(name, version or __version__, instructions)
        changes = self._lowlevel.NotificationOptions(
            tools_changed=handlers.is_dynamic,
            resources_changed=resources is not None and resources.is_dynamic,
            prompts_changed=prompts is not None and prompts.is_dynamic,
        )
        create_options = self.server.create_initialization_options
        self.server.create_initialization_options = partial(create_options, changes)

    def options(self) -> Any:
        """Return the initialization options of a session over streams."""
        return self.server.create_initialization_options()

    def http(self, **options: Any) -> Any:
        """Create the SDK's session manager, which handles HTTP requests.

        Args:
            **options: Its options; options that the installed SDK does not support are ignored.
        """
        module: Any = importlib.import_module("mcp.server.streamable_http_manager")
        parameters = inspect.signature(module.StreamableHTTPSessionManager).parameters
        known = {key: value for key, value in options.items() if key in parameters}
        if self._major == 1:
            logging.getLogger("mcp.server.streamable_http").addFilter(_is_failure)
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

    def support_tasks(self, tasks: Tasks, *, lists: bool) -> None:
        """Let clients call tools as tasks.

        Args:
            tasks: The tasks.
            lists: Whether callers are known, so that each one can list its tasks.

        Raises:
            UserError: The SDK is too old.
        """
        if self._major == 1:
            raise UserError(
                'tasks= needs a newer MCP SDK: expected mcp 2 or newer. Run: pip install "mcp>=2".'
            )
        self._tasks = tasks
        requests = TaskRequests(tasks, self._task_client, self._request_error, lists=lists)
        self.server.middleware.append(requests)
        self.server.extensions[TASKS] = {}

    def _task_client(self, ctx: Any) -> TaskClient:
        capabilities = capabilities_of(ctx.session)
        request = self._request_of(ctx, dict(ctx.meta or {}), ctx.protocol_version)
        session = SessionClient(ctx, capabilities, self._error)
        return TaskClient(request, _identity_of(ctx), capabilities or {}, session)

    async def close(self) -> None:
        """End the calls that wait for an answer of a client, and the state of tools."""
        await self.waiting_calls.close()
        if self._tasks is not None:
            await self._tasks.close()
        await self._handlers.calls.states.aclose()

    async def list_changed(self, kind: ListKind) -> None:
        """Notify clients that a list has changed."""
        if self._notifier is not None:
            await self._notifier.list_changed(kind)

    async def resource_updated(self, uri: str) -> None:
        """Notify the clients that subscribe to a resource that it has changed."""
        if self._notifier is not None:
            await self._notifier.resource_updated(uri)

    # --- the major versions of the SDK

    def _create_v2(self, name: str, version: str, instructions: str | None) -> Any:
        options: dict[str, Any] = {
            feature.option: partial(self._answer_v2, feature) for feature in self._features()
        }
        if self._notifier is not None:
            options["on_subscriptions_listen"] = self._notifier.listen

        async def list_tools(ctx: Any, params: Any) -> Any:
            return await self._list(ctx, None if params is None else params.cursor)

        async def call_tool(ctx: Any, params: Any) -> Any:
            meta = dict(ctx.meta or {})
            return await self._call(ctx, params.name, params.arguments, meta, ctx.protocol_version)

        server: Any = self._lowlevel.Server(
            name,
            version=version,
            instructions=instructions,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            get_tool_input_schema=self._input_schema,
            **options,
        )
        server.add_request_handler(
            "logging/setLevel", self._types.SetLevelRequestParams, self._set_log_level
        )
        self._protect_state(server, name)
        return server

    def _protect_state(self, server: Any, name: str) -> None:
        """Encrypt the states of calls that ask, and bind them to call, arguments and caller."""
        try:
            module: Any = importlib.import_module("mcp.server.request_state")
        except ImportError:
            if self._state_secrets:
                raise UserError(
                    "state_secret= needs a newer MCP SDK: expected mcp 2.3 or newer. Run: "
                    'pip install --upgrade "mcp>=2.3"'
                ) from None
            return  # the names of waiting calls cannot be guessed
        security = module.RequestStateSecurity(
            keys=self._state_secrets or [secrets.token_bytes(32)],
            ttl=STATE_TTL,
            bind_principal=_identity_of,
        )
        server.middleware.append(module.RequestStateBoundary(security, default_audience=name))

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

        async def set_log_level(request: Any) -> Any:
            result = await self._set_log_level(server.request_context, request.params)
            return types.ServerResult(result)

        server.request_handlers[types.CallToolRequest] = call_tool
        server.request_handlers[types.SetLevelRequest] = set_log_level
        for feature in self._features():
            request_type = getattr(types, feature.request)
            server.request_handlers[request_type] = partial(self._answer_v1, server, feature)
        return server

    # --- resources, prompts and completion

    def _features(self) -> list[Feature]:
        """Return the requests that the server answers besides those for tools."""
        return features_of(self._resources, self._prompts)

    async def _answer_v2(self, feature: Feature, ctx: Any, params: Any) -> Any:
        return await self._answer(feature, ctx, params, dict(ctx.meta or {}), ctx.protocol_version)

    async def _answer_v1(self, server: Any, feature: Feature, request: Any) -> Any:
        ctx = server.request_context
        meta: dict[str, Any] = {}
        if ctx.meta is not None:
            meta = ctx.meta.model_dump(by_alias=True, exclude_none=True)
        version = str(getattr(ctx.session, "protocol_version", None) or "2025-11-25")
        result = await self._answer(feature, ctx, request.params, meta, version)
        return self._types.ServerResult(result)

    async def _answer(
        self, feature: Feature, ctx: Any, params: Any, meta: dict[str, Any], version: str
    ) -> Any:
        """Return the result of a request for resources, prompts or completion."""
        fields: dict[str, Any] = {}
        if params is not None:
            fields = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        if feature.subscribes is not None:
            await self._subscribe(ctx, str(fields["uri"]), begins=feature.subscribes)
            return self._types.EmptyResult()
        if self._notifier is not None:
            self._notifier.store_session(ctx)
        request = self._request_of(ctx, meta, version)
        report = self._report_of(ctx, request, meta)

        async def perform(client: ServedClient, report: Report | None) -> dict[str, Any]:
            return await feature.answer(fields, request, report, partial(ask_client, client))

        result = await self._perform(ctx, version, perform, report)
        if report is not None:
            await report.settle()
        is_question = result.get("resultType") == "input_required"
        kind = "InputRequiredResult" if is_question else feature.result
        return getattr(self._types, kind).model_validate(result)

    async def _subscribe(self, ctx: Any, uri: str, *, begins: bool) -> None:
        if self._notifier is None:
            return
        try:
            await (self._notifier.subscribe if begins else self._notifier.unsubscribe)(ctx, uri)
        except RequestError as error:
            raise self._request_error(error) from None

    def _input_schema(self, name: str) -> Any:
        tool = self._handlers.find(name)
        return None if tool is None else tool.json_schema

    # --- requests

    async def _list(self, ctx: Any, cursor: str | None) -> Any:
        if self._notifier is not None:
            self._notifier.store_session(ctx)
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
        if self._notifier is not None:
            self._notifier.store_session(ctx)
        request = self._request_of(ctx, meta, version)
        report = self._report_of(ctx, request, meta)

        async def perform(client: ServedClient, report: Report | None) -> dict[str, Any]:
            ask = partial(ask_client, client)
            return await self._handlers.call_tool(name, arguments, request, report, ask)

        result = await self._perform(ctx, version, perform, report)
        if report is not None:
            await report.settle()
        if result.get("resultType") == "input_required":
            return self._types.InputRequiredResult.model_validate(result)
        return self._types.CallToolResult.model_validate(result)

    def _request_of(self, ctx: Any, meta: dict[str, Any], version: str) -> MCPRequest:
        is_in_memory = self._major > 1 and getattr(ctx, "request", None) is None
        name = session_name(ctx)
        level = meta.get(_LOG_LEVEL) if name is None else self._log_levels.get(name)
        return MCPRequest(
            protocol_version=version,
            headers=_headers(getattr(ctx, "request", None)),
            principal=_principal_of(ctx),
            meta={key: value for key, value in meta.items() if "progress" not in key.lower()},
            request_id=ctx.request_id,
            # A client in this process can get progress without a token.
            has_progress=_token_of(meta) is not None or is_in_memory,
            log_level=level if isinstance(level, str) else None,
        )

    def _report_of(
        self, ctx: Any, request: MCPRequest, meta: dict[str, Any]
    ) -> StreamProgress | MemoryProgress | None:
        """Return a sender of progress and log messages; `None` if the client requests none."""
        if not request.has_progress and request.log_level is None:
            return None
        is_stream = getattr(ctx, "request", None) is None
        token = _token_of(meta)
        if token is None and is_stream and self._major > 1:
            return MemoryProgress(ctx)
        holds = is_stream and request.meta.get(EVENTS_KEY) is not True
        return StreamProgress(ctx, token, holds=holds, has_read=self.has_read)

    async def _set_log_level(self, ctx: Any, params: Any) -> Any:
        """Store the level of log messages that a session requests (`logging/setLevel`)."""
        name = session_name(ctx)
        if name is not None:
            if len(self._log_levels) >= _MAX_SESSIONS:
                del self._log_levels[next(iter(self._log_levels))]
            self._log_levels[name] = str(params.level)
        return self._types.EmptyResult()

    async def _perform(
        self, ctx: Any, version: str, perform: Perform, report: Report | None = None
    ) -> dict[str, Any]:
        """Handle a request that can make requests to the client; return its result.

        From protocol version 2026-07-28 on, the result can be `input_required`.
        """
        capabilities = capabilities_of(ctx.session)
        params = an_object(getattr(ctx, "params", None))
        state, responses = params.get("requestState"), params.get("inputResponses")

        async def handle(client: ServedClient, report: Report | None) -> dict[str, Any]:
            token = current_client.set(client)
            try:
                return await perform(client, report)
            finally:
                current_client.reset(token)

        try:
            can_ask = capabilities is not None and not _FEATURES.isdisjoint(capabilities)
            has_rounds = version >= MODERN and ctx.method in _METHODS_WITH_ROUNDS
            if not has_rounds or not (can_ask or state or responses):
                return await handle(SessionClient(ctx, capabilities, self._error), report)
            return await self.waiting_calls.run(
                handle,
                report,
                capabilities=capabilities or {},
                principal=_identity_of(ctx),
                state=state,
                responses=responses,
            )
        except RequestError as error:
            raise self._request_error(error) from None

    def _request_error(self, error: RequestError) -> Exception:
        code, data = error.code, error.data
        if self._major == 1:
            return self._error(self._types.ErrorData(code=code, message=str(error), data=data))
        return self._error(code, str(error), data)


_MAX_LIST_RESULTS = 64
_MAX_SESSIONS = 10_000
_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
"""The key in the `_meta` of a request for the level of log messages (2026-07-28)."""


def _token_of(meta: dict[str, Any]) -> Any:
    return meta.get("progress_token", meta.get("progressToken"))


_FEATURES = frozenset({"elicitation", "sampling", "roots"})
"""The capabilities of clients that answer requests of servers."""
_METHODS_WITH_ROUNDS = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The methods whose result can be `input_required`."""


def _is_failure(record: logging.LogRecord) -> bool:
    """Return `False` for a stream that ends with its session: version 1 logs it as an error."""
    import anyio

    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, anyio.ClosedResourceError)


def _identity_of(ctx: Any) -> str | None:
    """Return the identity of the caller, equal for all requests of the same caller."""
    principal = _principal_of(ctx)
    return None if principal is None else json.dumps([principal.client_id, principal.subject])


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
