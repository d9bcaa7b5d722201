"""The requests of clients about tasks, in both forms of the protocol.

The extension `io.modelcontextprotocol/tasks` belongs to protocol version 2026-07-28 (SEP-2663), the
experimental tasks to version 2025-11-25 (`basic/utilities/tasks`). A middleware of the SDK handles
both, because the SDK validates results of calls without tasks.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agents_tools.mcp._coerce import an_object, text_or_none
from agents_tools.mcp._task_names import MODERN, TASKS
from agents_tools.mcp.server.requests import RequestError
from agents_tools.mcp.server.served_client import MISSING_CAPABILITY
from agents_tools.mcp.server.task_records import ENDED
from agents_tools.text.output import release_text
from agents_tools.tool.question import UnansweredError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.mcp.server.requests import MCPRequest
    from agents_tools.mcp.server.served_client import ServedClient
    from agents_tools.mcp.server.task_records import TaskRecord
    from agents_tools.mcp.server.tasks import RunningTask, Tasks

__all__ = ["TaskClient", "TaskRequests"]

_LEGACY = "2025-11-25"
"""The only version with experimental tasks."""
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_RELATED = "io.modelcontextprotocol/related-task"
_METHOD_NOT_FOUND = -32601
_HEADER_MISMATCH = -32020
_POLL: Final = 0.5
"""Seconds that clients wait between two requests for the state of a task."""
_GRACE: Final = 0.1
"""Seconds in which the result of a call is returned without a task, if tasks are optional."""


class TaskClient:
    """The sender of a request about tasks.

    Args:
        request: The request.
        owner: The identity of the caller; `None` without authentication.
        capabilities: The capabilities of the client in its session.
        ask: Sends requests to the client in its session (up to 2025-11-25).
    """

    def __init__(
        self,
        request: MCPRequest,
        owner: str | None,
        capabilities: dict[str, Any],
        ask: ServedClient,
    ) -> None:
        self.request = request
        self.owner = owner
        self.capabilities = capabilities
        self.ask = ask


class TaskRequests:
    """A middleware of the SDK's server that handles tasks.

    Args:
        tasks: The tasks.
        client_of: Returns the sender of a request.
        create_error: Converts an error to one of the SDK.
        lists: Whether callers are known, so that each one can list its tasks.
    """

    def __init__(
        self,
        tasks: Tasks,
        client_of: Callable[[Any], TaskClient],
        create_error: Callable[[RequestError], Exception],
        *,
        lists: bool,
    ) -> None:
        self._tasks = tasks
        self._client_of = client_of
        self._create_error = create_error
        self._lists = lists
        self._modern = {
            "tasks/get": self._get,
            "tasks/update": self._update,
            "tasks/cancel": self._cancel,
        }
        self._legacy = {
            "tasks/get": self._get_legacy,
            "tasks/result": self._result_legacy,
            "tasks/cancel": self._cancel_legacy,
        }
        if lists:
            self._legacy["tasks/list"] = self._list_legacy

    async def __call__(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Handle a request about tasks; pass other requests on."""
        try:
            return await self._handle(ctx, call_next)
        except RequestError as error:
            raise self._create_error(error) from None

    async def _handle(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        method, params = str(ctx.method), an_object(ctx.params)
        if method == "initialize":
            return self._with_capability(await call_next(ctx))
        version = str(ctx.protocol_version or "")
        if version >= MODERN:
            if method == "tools/call":
                return await self._call(ctx, params, call_next)
            if method in self._modern:
                self._check_declared(params)
                _check_header(ctx, params)
                return await self._modern[method](params, self._client(ctx, params))
        elif version == _LEGACY:
            if method == "tools/list":
                return await self._with_support(await call_next(ctx))
            if method == "tools/call":
                return await self._call_legacy(ctx, params, call_next)
            if method in self._legacy:
                return await self._legacy[method](params, self._client_of(ctx))
        return await call_next(ctx)

    def _client(self, ctx: Any, params: dict[str, Any]) -> TaskClient:
        """Return the sender of a request that has its own capabilities (from 2026-07-28 on)."""
        client = self._client_of(ctx)
        client.capabilities = _declared(params)
        return client

    async def _find(self, params: dict[str, Any], client: TaskClient) -> TaskRecord:
        task_id = text_or_none(params.get("taskId"))
        if task_id is None:
            raise RequestError("taskId expects the id of a task.")
        return await self._tasks.find(task_id, client.request, client.owner, client.capabilities)

    # --- the extension of 2026-07-28

    def _check_declared(self, params: dict[str, Any]) -> None:
        if TASKS not in an_object(_declared(params).get("extensions")):
            needs: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            raise RequestError(
                f"The client has not declared the extension {TASKS}.", MISSING_CAPABILITY, needs
            )

    async def _call(
        self, ctx: Any, params: dict[str, Any], call_next: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        mode = await self._tasks.mode_by_name(params.get("name"))
        if mode == "required":
            self._check_declared(params)
        is_declared = TASKS in an_object(_declared(params).get("extensions"))
        is_continued = params.get("requestState") is not None
        if mode == "forbidden" or not is_declared or is_continued:
            return await call_next(ctx)
        task = await self._create(params, self._client(ctx, params))
        if mode == "optional":
            await asyncio.wait({task.driver}, timeout=_GRACE)
            if task.driver.done() and (task.result or task.failure) is not None:
                await self._tasks.discard(task)
                if task.failure is not None:
                    raise task.failure
                return {"resultType": "complete", **(task.result or {})}
        record = await self._tasks.records.find(task.id)
        if record is None:
            raise RequestError("The task was deleted.")
        return {"resultType": "task", **_fields(record)}

    async def _create(
        self, params: dict[str, Any], client: TaskClient, ttl: float | None = None
    ) -> RunningTask:
        return await self._tasks.create(
            str(params.get("name")),
            an_object(params.get("arguments")),
            client.request,
            client.owner,
            client.capabilities,
            ttl,
        )

    async def _get(self, params: dict[str, Any], client: TaskClient) -> dict[str, Any]:
        record = await self._find(params, client)
        fields = {"resultType": "complete", **_fields(record)}
        if record.status == "input_required":
            fields["inputRequests"] = dict(record.requests)
        if record.status == "completed":
            fields["result"] = {"resultType": "complete", **(record.result or {})}
        if record.status == "failed":
            fields["error"] = record.error
        return fields

    async def _update(self, params: dict[str, Any], client: TaskClient) -> dict[str, Any]:
        record = await self._find(params, client)
        if record.status not in ENDED:
            await self._tasks.update(record.id, an_object(params.get("inputResponses")))
        return {"resultType": "complete"}

    async def _cancel(self, params: dict[str, Any], client: TaskClient) -> dict[str, Any]:
        await self._tasks.cancel(await self._find(params, client))
        return {"resultType": "complete"}

    # --- the experimental tasks of 2025-11-25

    def _with_capability(self, result: Any) -> Any:
        """Add tasks to the capabilities of the server."""
        fields = an_object(result)
        if fields.get("protocolVersion") != _LEGACY:
            return result
        tasks: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        if self._lists:
            tasks["list"] = {}
        return {**fields, "capabilities": {**an_object(fields.get("capabilities")), "tasks": tasks}}

    async def _with_support(self, result: Any) -> Any:
        """Add to listed tools whether they can be called as tasks."""
        tools = [an_object(tool) for tool in an_object(result).get("tools") or ()]
        for tool in tools:
            tool["execution"] = {"taskSupport": await self._tasks.mode_by_name(tool.get("name"))}
        return {**an_object(result), "tools": tools}

    async def _call_legacy(
        self, ctx: Any, params: dict[str, Any], call_next: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        mode = await self._tasks.mode_by_name(params.get("name"))
        wish = params.get("task")
        if wish is None and mode != "required":
            return await call_next(ctx)
        name = release_text(str(params.get("name")), limit=100)
        if wish is None:
            raise RequestError(f"Tool {name!r} can be called as a task only.", _METHOD_NOT_FOUND)
        if mode == "forbidden":
            raise RequestError(f"Tool {name!r} cannot be called as a task.", _METHOD_NOT_FOUND)
        ttl = an_object(wish).get("ttl")
        seconds = ttl / 1_000 if isinstance(ttl, (int, float)) else None
        task = await self._create(params, self._client_of(ctx), seconds)
        record = await self._tasks.records.find(task.id)
        if record is None:
            raise RequestError("The task was deleted.")
        return {"task": _legacy_fields(record)}

    async def _get_legacy(self, params: dict[str, Any], client: TaskClient) -> dict[str, Any]:
        return _legacy_fields(await self._find(params, client))

    async def _list_legacy(self, params: dict[str, Any], client: TaskClient) -> dict[str, Any]:
        del params  # a caller has few tasks: one page
        return {"tasks": [_legacy_fields(task) for task in await self._tasks.list(client.owner)]}

    async def _cancel_legacy(self, params: dict[str, Any], client: TaskClient) -> dict[str, Any]:
        record = await self._find(params, client)
        if record.status in ENDED:
            raise RequestError(f"The task has ended already: it is {record.status}.")
        await self._tasks.cancel(record)
        return _legacy_fields(await self._find(params, client))

    async def _result_legacy(self, params: dict[str, Any], client: TaskClient) -> dict[str, Any]:
        """Wait for the end of a task, and send its questions to the client meanwhile."""
        record = await self._find(params, client)
        while record.status not in ENDED:
            running = self._tasks.running(record.id)
            if running is None:  # another process runs it
                await asyncio.sleep(_POLL)
            elif requests := running.open_requests():
                await _ask_in_session(running, requests, client.ask)
            else:
                await running.wait_for_change()
            record = await self._find(params, client)
        if record.status == "cancelled":
            raise RequestError("The task was cancelled.")
        if record.error is not None:
            error = record.error
            raise RequestError(str(error.get("message")), error["code"], error.get("data"))
        result = dict(record.result or {})
        meta = an_object(result.get("_meta"))
        return {**result, "_meta": {**meta, _RELATED: {"taskId": record.id}}}


async def _ask_in_session(
    task: RunningTask, requests: dict[str, dict[str, Any]], client: ServedClient
) -> None:
    """Send the questions of a task to the client, and its responses to the task."""
    for name, request in requests.items():
        params = an_object(request.get("params"))
        meta = {**an_object(params.get("_meta")), _RELATED: {"taskId": task.id}}
        try:
            response = await client.request(
                str(request["method"]), {**params, "_meta": meta}, needs={}
            )
        except UnansweredError:
            response = {"action": "cancel"}
            if request["method"] != "elicitation/create":
                await task.cancel()
        await task.answer({name: response})


def _declared(params: dict[str, Any]) -> dict[str, Any]:
    """Return the capabilities that a client declares with a request (from 2026-07-28 on)."""
    return an_object(an_object(params.get("_meta")).get(_CAPABILITIES))


def _check_header(ctx: Any, params: dict[str, Any]) -> None:
    """Compare the header `Mcp-Name` with the id of the task (SEP-2663, over HTTP).

    The header is required, but the clients of FastMCP and of the Python SDK do not send it for the
    requests of an extension. It only repeats the body, so nothing is lost without it.

    Raises:
        RequestError: They differ.
    """
    task_id = params.get("taskId")
    headers: Any = getattr(getattr(ctx, "request", None), "headers", None)
    if headers is not None and headers.get("mcp-name", task_id) != task_id:
        raise RequestError("The header Mcp-Name is not the id of the task.", _HEADER_MISMATCH)


def _fields(record: TaskRecord) -> dict[str, Any]:
    """Return a task of the extension."""
    fields: dict[str, Any] = {
        "taskId": record.id,
        "status": record.status,
        "createdAt": _time_text(record.created),
        "lastUpdatedAt": _time_text(record.updated),
        "ttlMs": max(int(record.ttl * 1_000), 1),
        "pollIntervalMs": int(_POLL * 1_000),
    }
    if record.message is not None:
        fields["statusMessage"] = record.message
    return fields


def _legacy_fields(record: TaskRecord) -> dict[str, Any]:
    """Return a task of version 2025-11-25, in which an error of the tool is a failed task."""
    fields = _fields(record)
    fields["ttl"], fields["pollInterval"] = fields.pop("ttlMs"), fields.pop("pollIntervalMs")
    if record.status == "completed" and an_object(record.result).get("isError") is True:
        fields["status"] = "failed"
    return fields


def _time_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
