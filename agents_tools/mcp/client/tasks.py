"""Call tools of servers as tasks: poll a task until it ends, answer its questions, cancel it.

Two forms exist: the extension `io.modelcontextprotocol/tasks` of protocol version 2026-07-28, and
the experimental tasks of version 2025-11-25 (`basic/utilities/tasks`).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from agents_tools.errors import MCPConnectionError, MCPProtocolError, MCPTimeoutError, ToolLostError
from agents_tools.mcp._coerce import an_object, text_or_none
from agents_tools.mcp._recorded_tasks import record_task
from agents_tools.text.output import release_text
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agents_tools.mcp.client.connection import Connection
    from agents_tools.tool.context import ToolContext

__all__ = ["TaskCall", "created_task"]

_MIN_POLL, _DEFAULT_POLL, _MAX_POLL = 0.05, 1.0, 30.0
"""Seconds between two polls; the server suggests a value within these bounds."""
_CANCEL_TIMEOUT = 1.5
"""Seconds for the cancellation of a task, within the time that a cancelled call has to end."""
_MAX_LOST: Final = 5
"""The number of polls without an answer after which the task is lost."""
_ENDED = frozenset({"completed", "failed", "cancelled"})


def created_task(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the task that a call has created; `None` if it returned another result."""
    task = result if result.get("resultType") == "task" else result.get("task")
    if task is None:
        return None
    return an_object(task) if text_or_none(an_object(task).get("taskId")) is not None else None


class TaskCall:
    """A call that runs as a task on a server.

    Args:
        connection: The connection to the server.
        task: The task, as the server sent it when it was created.
        context: The context of the call, which receives the status messages as progress.
        answer: Answers the requests for input of a task (from 2026-07-28 on), by their names.
        is_resumed: Whether an earlier process has created the task.
    """

    def __init__(
        self,
        connection: Connection,
        task: dict[str, Any],
        context: ToolContext[Any],
        answer: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]],
        *,
        is_resumed: bool = False,
    ) -> None:
        self._connection = connection
        self._task = task
        self._params = {"taskId": task["taskId"]}
        self._context = context
        self._answer = answer
        self._is_recorded = self._is_resumed = is_resumed
        self._is_extension = task.get("resultType") == "task"
        self._answered: set[str] = set()
        self._message: str | None = None
        self._reports = 0

    async def result(self) -> dict[str, Any]:
        """Poll the task until it ends, and return the result of the call.

        If the call is cancelled or fails, the task is cancelled, too, unless another process
        continues the run of the call.

        Raises:
            MCPProtocolError: The task has failed, was cancelled, or does not exist any more.
            MCPTimeoutError: The task did not end within the `max_time` of the server.
            ToolLostError: The server did not answer any more.
        """
        max_time = self._connection.config.max_time
        has_ended = False
        try:
            async with asyncio.timeout(max_time):
                if not self._is_recorded:
                    call, server = call_of(self._context), self._connection.name
                    self._is_recorded = await record_task(call, server, self._task)
                await self._wait_for_end()
                has_ended = self._task.get("status") in _ENDED
                result = await self._final_result()
                has_ended = True
                return result
        except TimeoutError:
            raise MCPTimeoutError(
                f"MCP server {self._connection.name!r} did not finish a task within "
                f"{max_time:g} s (max_time); the task was cancelled.",
                server=self._connection.name,
            ) from None
        finally:
            if not has_ended and not await self._is_handed_over():
                await self._cancel()

    async def _wait_for_end(self) -> None:
        """Poll until the task ends; up to 2025-11-25, also until it asks for input.

        A server of that version sends its questions while the client waits for the result.
        """
        while (status := self._task.get("status")) not in _ENDED:
            self._report()
            if status == "input_required":
                if not self._is_extension:
                    return
                await self._send_answers()
            await asyncio.sleep(_poll_interval(self._task))
            self._task = await self._poll()
        self._report()

    async def _is_handed_over(self) -> bool:
        scope = call_of(self._context).scope
        return self._is_recorded and scope is not None and await scope.is_handed_over()

    async def _poll(self) -> dict[str, Any]:
        for attempt in range(_MAX_LOST):
            try:
                answer = await self._request("tasks/get", self._params)
            except (MCPConnectionError, ToolLostError) as error:
                if attempt == _MAX_LOST - 1:
                    raise ToolLostError(
                        f"MCP server {self._connection.name!r} does not answer any more; it is "
                        f"unknown whether the task of the call took effect. Reason: {error}"
                    ) from error
                await asyncio.sleep(_poll_interval(self._task) * 2**attempt)
            except MCPProtocolError as error:
                if not self._is_resumed:
                    raise
                raise ToolLostError(
                    f"MCP server {self._connection.name!r} does not know the task of the call any "
                    f"more; it is unknown whether the call took effect. Reason: {error}"
                ) from error
            else:
                self._is_resumed = False
                if not isinstance(answer.get("status"), str):
                    raise self._error("sent a task without a status")
                return answer
        raise AssertionError  # the loop returns or raises

    async def _send_answers(self) -> None:
        """Answer the requests of the task that were not answered yet."""
        requests = {
            name: request
            for name, request in an_object(self._task.get("inputRequests")).items()
            if name not in self._answered
        }
        if requests:
            responses = await self._answer(requests)
            await self._request("tasks/update", {**self._params, "inputResponses": responses})
            self._answered |= requests.keys()

    async def _final_result(self) -> dict[str, Any]:
        status = self._task.get("status")
        if status == "cancelled":
            raise self._error("cancelled the task of the call")
        if not self._is_extension:
            return await self._request("tasks/result", self._params)
        if status == "failed":
            error = an_object(self._task.get("error"))
            reason = release_text(str(error.get("message") or "unknown"), limit=1_000)
            raise self._error(f"could not finish the task of the call: {reason}", error.get("code"))
        return an_object(self._task.get("result"))

    def _report(self) -> None:
        """Emit a new status message as progress of the call."""
        message = text_or_none(self._task.get("statusMessage"))
        if message is not None and message != self._message:
            self._message = message
            self._reports += 1
            self._context.progress(self._reports, None, release_text(message, limit=1_000))

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        return await self._connection.request(
            method, params, context=self._context, repeatable=True
        )

    async def _cancel(self) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CANCEL_TIMEOUT):
                await self._connection.request("tasks/cancel", self._params)

    def _error(self, problem: str, code: Any = None) -> MCPProtocolError:
        return MCPProtocolError(
            f"MCP server {self._connection.name!r} {problem}.",
            server=self._connection.name,
            code=code if type(code) is int else None,
        )


def _poll_interval(task: Mapping[str, Any]) -> float:
    milliseconds = task.get("pollIntervalMs", task.get("pollInterval"))
    if not isinstance(milliseconds, (int, float)):
        return _DEFAULT_POLL
    return min(max(milliseconds / 1_000, _MIN_POLL), _MAX_POLL)
