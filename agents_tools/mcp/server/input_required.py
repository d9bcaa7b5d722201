"""Calls that ask the client with their result, from protocol version 2026-07-28 on.

The server cannot send requests to the client. It returns them as the result of the call
(`input_required`), and the client sends the call again with its responses and the `requestState` of
that result. The task of the call waits in between. If the next request reaches another process that
has the same secret, the call runs again there, and its requests are answered from the state.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeAlias

from agents_tools.concurrency.supervisor import finish
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.server.requests import INTERNAL_ERROR, RequestError
from agents_tools.mcp.server.served_client import ServedClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from agents_tools.mcp.server.progress import Notification, Report

    Perform: TypeAlias = Callable[[ServedClient, Report | None], Awaitable[dict[str, Any]]]
    """Handles a request: its client and the function that sends progress; returns the result."""

__all__ = ["STATE_TTL", "WaitingCall", "WaitingCalls"]

STATE_TTL = 600.0
"""Seconds that a call waits for the responses of the client, and that its state is valid."""
_MAX_WAITING = 1_000
"""The maximum number of calls that wait for responses."""
_MAX_FINISHED = 10_000
_MAX_STATE = 1 << 20
"""The maximum size of the state that is sent to the client, in characters."""
_SETTLE_STEPS = 20
"""Steps of the event loop in which concurrent requests of a call are collected."""
_MISMATCH_TIMEOUT = 2.0
"""Seconds that a call which runs again has to repeat the requests that were answered."""


class WaitingCalls:
    """The calls of a server that wait for responses of their clients.

    Args:
        is_shared: Whether other processes can continue the calls of this one, and it those of
            others, because they have the same secret. The states then contain the responses.
    """

    def __init__(self, *, is_shared: bool = False) -> None:
        self._is_shared = is_shared
        self._waiting: dict[str, WaitingCall] = {}
        self._finished: OrderedDict[str, None] = OrderedDict()

    async def run(
        self,
        perform: Perform,
        report: Report | None,
        *,
        capabilities: dict[str, Any],
        principal: str | None,
        state: str | None,
        responses: Any,
    ) -> dict[str, Any]:
        """Start or continue a call; return its result, or the requests that it makes.

        Args:
            perform: Handles the call.
            report: Sends progress on the current request.
            capabilities: The capabilities that the client declared in this request.
            principal: The identity of the caller.
            state: The state that was sent with the previous requests, which was verified; `None`
                starts a call.
            responses: The responses of the client to the requests.

        Raises:
            RequestError: No call waits for the responses.
        """
        call = self._find(state, principal)
        if call is None:
            call = WaitingCall(principal, *self._recorded(state), an_object(responses))
            call.start(perform, has_progress=report is not None)
        else:
            call.answer(an_object(responses))
        call.capabilities = capabilities
        with call.reporting(report):
            requests = await call.next_requests()
        if requests is None:
            return call.task.result()
        return {
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": self._store(call),
        }

    async def close(self) -> None:
        """Cancel all waiting calls."""
        waiting, self._waiting = list(self._waiting.values()), {}
        for call in waiting:
            await call.cancel()

    def _find(self, state: str | None, principal: str | None) -> WaitingCall | None:
        """Return the waiting call of a state; `None` if it must be started."""
        if state is None:
            return None
        name = _read_state(state)["id"]
        call = self._waiting.pop(name, None)
        if call is not None and call.principal == principal:
            call.stop_expiry()
            self._finished[name] = None
            if len(self._finished) > _MAX_FINISHED:
                self._finished.popitem(last=False)
            return call
        if call is not None:
            self._waiting[name] = call
        if not self._is_shared or call is not None or name in self._finished:
            raise RequestError(
                "No call waits for these responses: the call has expired or was continued already, "
                "or another process started it."
            )
        return None

    def _recorded(self, state: str | None) -> tuple[dict[str, Any], frozenset[str]]:
        """Return the responses in a state, and the names of the requests that were made."""
        if state is None:
            return {}, frozenset()
        fields = _read_state(state)
        return an_object(fields.get("answered")), frozenset(fields.get("asked") or ())

    def _store(self, call: WaitingCall) -> str:
        name = secrets.token_urlsafe(16)
        fields: dict[str, Any] = {"id": name}
        if self._is_shared:
            fields |= {"asked": sorted(call.asked), "answered": call.answered}
        state = json.dumps(fields, separators=(",", ":"))
        if len(state) > _MAX_STATE:
            call.task.cancel()
            raise RequestError(
                "The responses of the client are too large to continue.", INTERNAL_ERROR
            )
        if len(self._waiting) >= _MAX_WAITING:
            call.task.cancel()
            if self._is_shared:
                return state  # the call can run again
            raise RequestError(
                "Too many calls wait for an answer. Try again later.", INTERNAL_ERROR
            )
        self._waiting[name] = call
        call.expiry = asyncio.get_running_loop().call_later(STATE_TTL, self._expire, name)
        return state

    def _expire(self, name: str) -> None:
        call = self._waiting.pop(name, None)
        if call is not None:
            call.task.cancel()


class WaitingCall(ServedClient):
    """One call that can make requests. Its task can outlive the request that started it.

    Attributes:
        changed: Set when it makes a request, and when it ends.
        asked: The names of the requests that were sent to the client.
        answered: The responses so far, by the names of the requests.

    Args:
        principal: The identity of the caller.
        recorded: The responses with which a call of another process runs again.
        asked: The names of the requests that the other process made.
        responses: The responses of the client to the last of them.
    """

    def __init__(
        self,
        principal: str | None,
        recorded: dict[str, Any],
        asked: frozenset[str],
        responses: dict[str, Any],
    ) -> None:
        super().__init__({})
        self.principal = principal
        self._report: Report | None = None
        self._has_request = asyncio.Event()
        self.task: asyncio.Task[dict[str, Any]]
        self.expiry: asyncio.TimerHandle | None = None
        self.asked = set(asked)
        self.answered: dict[str, Any] = {}
        self._recorded = {**responses, **recorded}
        self._unrepeated = {*recorded, *(responses.keys() & asked)}
        self._requests: dict[str, tuple[dict[str, Any], asyncio.Future[dict[str, Any]]]] = {}
        self._counts: dict[str, int] = {}
        self._loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()

    def start(self, perform: Perform, *, has_progress: bool) -> None:
        """Start the task of the call."""
        report = self._forward if has_progress else None

        async def run() -> dict[str, Any]:
            return await perform(self, report)

        self.task = asyncio.ensure_future(run())
        self.task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        """Wake the waiting request, and read the exception so that asyncio does not log it."""
        self.changed.set()
        if not task.cancelled():
            task.exception()

    @contextlib.contextmanager
    def reporting(self, report: Report | None) -> Generator[None]:
        """Send progress on a request of the client, until its response."""
        self._report = report
        self._has_request.set()
        try:
            yield
        finally:
            self._has_request.clear()

    async def _forward(self, notification: Notification) -> None:
        """Send progress to the client on the current request; wait for the next one if needed."""
        await self._has_request.wait()
        if self._report is not None:
            await self._report(notification)

    # --- called by the tool

    async def _send(self, method: str, params: dict[str, Any], key: str | None) -> dict[str, Any]:
        if asyncio.get_running_loop() is not self._loop:  # the tool runs on a loop of its own
            sent = asyncio.run_coroutine_threadsafe(self._send(method, params, key), self._loop)
            return await asyncio.wrap_future(sent)
        name = self._name(method, params, key)
        response = an_object(self._recorded.pop(name, None))
        self._unrepeated.discard(name)
        if _is_response(method, response):
            self.answered[name] = response
            self.changed.set()
            return response
        future: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._requests[name] = {"method": method, "params": params}, future
        self.changed.set()
        try:
            return await future
        finally:
            self._requests.pop(name, None)

    def _name(self, method: str, params: dict[str, Any], key: str | None) -> str:
        """Return the name of a request: the same if the call runs again."""
        if key is None:
            content = {name: value for name, value in params.items() if name != "elicitationId"}
            text = json.dumps([method, content], sort_keys=True)
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            key = f"{method.partition('/')[0]}-{digest}"
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return key if count == 1 else f"{key}-{count}"

    # --- called by the requests of the client

    def answer(self, responses: dict[str, Any]) -> None:
        """Pass the responses of the client to the requests; other responses are ignored."""
        for name, (request, future) in list(self._requests.items()):
            response = an_object(responses.get(name))
            if _is_response(request["method"], response) and not future.done():
                self.answered[name] = response
                future.set_result(response)

    async def next_requests(self) -> dict[str, dict[str, Any]] | None:
        """Wait for requests of the call and return them by name; `None` if the call has ended.

        Requests that the client has not answered are among them.

        Raises:
            RequestError: A call that runs again makes other requests than before.
        """
        try:
            while not self.task.done():
                await self._settle()
                if requests := self.open_requests():
                    if self._unrepeated and not requests.keys() <= self.asked:
                        await self._wait_for_repetition()
                        continue
                    self.asked |= requests.keys()
                    return requests
                if not self.task.done():
                    self.changed.clear()
                    await self.changed.wait()
        except asyncio.CancelledError:
            await self.cancel()
            raise
        return None

    async def _settle(self) -> None:
        """Let concurrent parts of the call make their requests, too."""
        for _ in range(_SETTLE_STEPS):
            await asyncio.sleep(0)

    def open_requests(self) -> dict[str, dict[str, Any]]:
        """Return the requests that wait for a response, by their names."""
        return {
            name: request
            for name, (request, future) in self._requests.items()
            if not future.done() and not self.task.done()
        }

    async def _wait_for_repetition(self) -> None:
        """Wait until a call that runs again has repeated its requests.

        Raises:
            RequestError: It makes other requests.
        """
        try:
            async with asyncio.timeout(_MISMATCH_TIMEOUT):
                while self._unrepeated and not self.task.done():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            await self.cancel()
            raise RequestError(
                "The call cannot be continued in this process: it made other requests when it ran "
                "again. Its questions must not depend on time or chance, or need a key=.",
                INTERNAL_ERROR,
            ) from None

    def stop_expiry(self) -> None:
        """Cancel the timer of the time for responses."""
        if self.expiry is not None:
            self.expiry.cancel()

    async def cancel(self) -> None:
        """Cancel the call, and wait for its cleanup."""
        self.stop_expiry()
        self.task.cancel()
        await finish(self.task, name="a server, while it waits for an answer")


def _is_response(method: str, response: dict[str, Any]) -> bool:
    """Return whether a response is complete; the request is made again if it is not."""
    if method == "elicitation/create":
        return response.get("action") in {"accept", "decline", "cancel"}
    if method == "sampling/createMessage":
        return "content" in response
    return isinstance(response.get("roots"), list)


def _read_state(state: str) -> dict[str, Any]:
    """Return the fields of a state.

    Raises:
        RequestError: This server did not issue the state.
    """
    try:
        fields = an_object(json.loads(state))
    except ValueError:
        fields = {}
    if not isinstance(fields.get("id"), str):
        raise RequestError("The requestState was not issued by this server.")
    return fields
