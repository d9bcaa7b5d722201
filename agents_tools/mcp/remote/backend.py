"""A backend whose workers are MCP servers: the bodies of tools run on other machines.

A worker is what `mcp_server` makes of function tools, on one address or on many, behind a load
balancer or not. Calls are made at most once: one whose worker was lost is told as `lost`, and made
again only where trusted code says that a second run does no harm.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import (
    MCPConnectionError,
    MCPError,
    MCPProtocolError,
    ModelBehaviorError,
    ToolLostError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.execution import BackendCapabilities, BackendHealth
from agents_tools.mcp.client.connection import Connection
from agents_tools.mcp.client.sdk import MODERN, ClientHooks
from agents_tools.mcp.config import MCPServerConfig, server_config
from agents_tools.mcp.remote.call import RemoteCall, WorkerCall, event_of
from agents_tools.mcp.remote.protocol import meta_of
from agents_tools.text.escape import shorten
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.context import ToolContext, current_context

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import Self

    from agents_tools.execution import CallEnvelope, CallEvent
    from agents_tools.mcp.config import HeaderProvider

__all__ = ["MCPBackend"]

_DOWN, _LONGEST_DOWN = 2.0, 60.0
"""Seconds for which a worker that could not be reached comes last: twice as many each time."""
_HEALTH = 5.0
_UNKNOWN_METHOD = -32601
_LONGEST_BEAT = 3_600
_SILENT = 3
"""After how many missed signs of life a worker counts as lost."""


class MCPBackend:
    """Runs the bodies of tools on MCP servers.

    ```python
    backend = MCPBackend("https://tools.example.com/mcp", token=token)
    agent = Agent("helper", tools=[run_on(backend)(render)])
    ```

    The servers are those of `mcp_server` or `serve`; they stream every event back. Other MCP
    servers do as well, with what the protocol has: their progress, and no more.

    Args:
        workers: The address of a server, or several: calls go to the one that has least to do.
            A load balancer is one address.
        name: What the backend is called.
        token: The bearer token: a text for a single address, or a mapping from address to token.
            A worker sees its own alone.
        headers: More headers of every request to every worker; nothing secret belongs in them
            where there are several.
        header_provider: Returns headers for one request, from the context of its call.
        auth: An auth object of the SDK's HTTP client.
        connect_timeout: Seconds until a worker has to have answered when it is connected.
        heartbeat: Seconds of silence after which a worker says that it lives; three times that
            without a word, and the call is `lost`. Stretch it where tools block the event loop of
            their worker, and for servers of others, which give no signs of life.
        max_time: Seconds that a call may take in all, whatever its deadline.
        attempts: How often an idempotent call is made, the first time included, where its worker
            was lost.
        max_message: The most bytes of one message from a worker.

    Raises:
        UserError: What is given cannot work.
    """

    capabilities = BackendCapabilities(
        streaming=True, cancel=True, delivery="at_most_once", heartbeat=True, restarts=True
    )

    def __init__(
        self,
        workers: str | Iterable[str],
        *,
        name: str = "mcp",
        token: str | Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        header_provider: HeaderProvider | None = None,
        auth: object = None,
        connect_timeout: float = 10.0,
        heartbeat: float = 10.0,
        max_time: float = 3_600.0,
        attempts: int = 3,
        max_message: int = 64 << 20,
    ) -> None:
        if not isinstance(workers, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"MCPBackend takes the address of a worker, or several, not "
                f"{type_with_article(workers)}."
            )
        urls = [workers] if isinstance(workers, str) else list(workers)
        if not urls:
            raise UserValueError("MCPBackend takes the address of at least one worker.")
        if type(attempts) is not int or attempts < 1:
            raise UserValueError(f"attempts= is a whole number from 1 on, not {attempts!r:.60}.")
        if type(heartbeat) not in {int, float} or not 0 < heartbeat <= _LONGEST_BEAT:
            raise UserValueError(
                f"heartbeat= is a number of seconds above 0 and up to {_LONGEST_BEAT:,}, not "
                f"{heartbeat!r:.60}."
            )
        self.name = name
        self._heartbeat = float(heartbeat)
        self._attempts = attempts
        self._max_time = max_time
        self._owner = _WorkerOwner()
        self._turn = itertools.count()
        self._calls: dict[str, set[WorkerCall]] = {}
        self._closed = False
        self._workers = [
            _RemoteWorker(
                Connection(
                    server_config(
                        name if len(urls) == 1 else f"{name}-{number}",
                        "http",
                        url=url,
                        headers=_headers(headers, token, url, urls),
                        header_provider=header_provider,
                        auth=auth,
                        connect_timeout=connect_timeout,
                        timeout=heartbeat * _SILENT,
                        max_time=max_time,
                        max_message=max_message,
                    ),
                    self._owner,
                )
            )
            for number, url in enumerate(urls, start=1)
        ]

    async def __aenter__(self) -> Self:
        """Return itself; a worker is connected when it is first needed."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close the connections."""
        await self.aclose()

    def __repr__(self) -> str:
        """Show where the workers are."""
        places = ", ".join(worker.config.place for worker in self._workers)
        return f"<MCPBackend {self.name!r}: {shorten(places, 200)}>"

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Run a call on a worker, and give what is said about it. Closing it cancels the call.

        Args:
            envelope: The call.

        Raises:
            UserError: The backend is closed, or cannot be used as it is set up.
        """
        if self._closed:
            raise UserError(f"The backend {self.name!r} is closed. Make a new one.")
        call = WorkerCall()
        self._calls.setdefault(envelope.call_id, set()).add(call)
        restart = 0
        try:
            while True:
                flight = call.flight = RemoteCall(
                    envelope,
                    call,
                    restart=restart,
                    max_time=self._max_time,
                    send=partial(self._send, envelope, restart),
                )
                try:
                    async for event in flight:
                        yield event
                finally:
                    await flight.land()
                again = flight.lost and envelope.idempotent and restart + 1 < self._attempts
                again = again and not call.cancelled and await self._pause(envelope, restart)
                if not again or call.cancelled:  # which may have happened in the pause
                    yield flight.result()
                    return
                envelope = envelope.again(envelope.attempt + 1)
                yield event_of(envelope, 0, "restarted", {"reason": flight.reason})
                restart += 1
        finally:
            self._forget(envelope.call_id, call)

    async def has_call(self, envelope: CallEnvelope, /) -> bool:
        """Return whether a call is known; workers cannot be asked."""
        del envelope
        return False

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call; its worker is told by the end of its connection.

        Args:
            call_id: The call.
            reason: Why, for the model.

        Returns:
            Whether there was such a call.
        """
        calls = list(self._calls.get(call_id, ()))
        for call in calls:
            call.cancel(reason)
        return bool(calls)

    async def health(self) -> BackendHealth:
        """Ask each worker whether it answers; behind a load balancer, any of those there does."""
        for worker in self._workers:
            self._look_again(worker)
        told = await asyncio.gather(*(_ask(worker) for worker in self._workers))
        there = sum(not fault for fault in told)
        return BackendHealth(
            ok=there > 0 and not self._closed,
            workers=there,
            busy=sum(len(worker.calls) for worker in self._workers),
            detail="; ".join(fault for fault in told if fault),
        )

    async def aclose(self) -> None:
        """Cancel what runs, and close the connections. May be called again."""
        self._closed = True
        for call in [call for calls in list(self._calls.values()) for call in list(calls)]:
            call.cancel("the backend was closed")
        async with asyncio.TaskGroup() as group:
            for worker in self._workers:
                group.create_task(worker.connection.close())

    # --- for one call

    async def _send(
        self, envelope: CallEnvelope, restart: int, flight: RemoteCall
    ) -> dict[str, Any]:
        """Make the request of a call to the workers, one after the other, until one takes it."""
        params: dict[str, Any] = {"name": envelope.tool, "arguments": _arguments(envelope)}
        here = current_context()  # for what gives headers; all else of it stays with the caller
        context: ToolContext[Any] = ToolContext(
            None if here is None else here.context,
            tool_name=envelope.tool,
            tool_call_id=envelope.call_id,
        )
        refused: MCPConnectionError | None = None
        for worker in self._by_turns():
            params["_meta"] = meta_of(
                envelope, restart=restart, heartbeat=self._heartbeat, most=self._max_time
            )
            worker.calls.add(flight)
            worker.tried()
            try:
                raw = await worker.connection.request(
                    "tools/call", params, context=context, on_progress=flight.heard
                )
            except MCPConnectionError as error:  # nothing has happened there
                worker.refused(error)
                refused = error
            else:
                worker.answered()
                return raw
            finally:
                worker.calls.discard(flight)
        raise refused or MCPConnectionError("There is no worker.", server=self.name)

    def _by_turns(self) -> list[_RemoteWorker]:
        if len(self._workers) == 1:
            found = self._workers
        else:
            turn = next(self._turn) % len(self._workers)
            now = time.monotonic()
            found = sorted(
                [*self._workers[turn:], *self._workers[:turn]],
                key=lambda worker: (worker.down_until > now, len(worker.calls)),
            )
        for worker in found:
            self._look_again(worker)
        return found

    def _look_again(self, worker: _RemoteWorker) -> None:
        if worker.connection.error is not None and not self._closed:
            worker.connection.reopen()  # that it was away a minute ago says nothing of now

    async def _pause(self, envelope: CallEnvelope, number: int) -> bool:
        """Wait before the next attempt; give whether there is time for one."""
        pause = random.uniform(0.05, 0.2) * (1 + 4 * number)  # noqa: S311 - no secret
        if envelope.deadline is not None and time.time() + pause >= envelope.deadline:
            return False
        await asyncio.sleep(pause)
        return not self._closed

    def _forget(self, call_id: str, call: WorkerCall) -> None:
        calls = self._calls.get(call_id)
        if calls is not None:
            calls.discard(call)
            if not calls:
                del self._calls[call_id]


class _RemoteWorker:
    """One address.

    Attributes:
        connection: The way there.
        calls: What it has to do, as far as it is known here.
        down_until: Until when it comes after the others.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.calls: set[RemoteCall] = set()
        self.down_until = 0.0
        self._faults = 0

    def tried(self) -> None:
        """Note that a call looks whether it is there again; the others need not wait for that."""
        if self._faults:
            self.down_until = time.monotonic() + self.config.connect_timeout

    def refused(self, error: MCPConnectionError) -> None:
        """Note that it took a call not, or could not be reached."""
        pause = min(_DOWN * 2**self._faults, _LONGEST_DOWN) if error.code is None else _DOWN
        self._faults = min(self._faults + 1, 10)
        self.down_until = time.monotonic() + pause

    def answered(self) -> None:
        """Note that it is there."""
        self._faults, self.down_until = 0, 0.0

    @property
    def config(self) -> MCPServerConfig:
        return self.connection.config


class _WorkerOwner:
    """What connections tell: workers ask for nothing, and their lists are not needed."""

    def hooks(self, connection: Connection) -> ClientHooks:
        del connection
        return ClientHooks()

    def listed(
        self, connection: Connection, tools: list[dict[str, Any]], refused: dict[str, str]
    ) -> None:
        del connection, tools, refused


def _arguments(envelope: CallEnvelope) -> dict[str, Any]:
    from pydantic_core import from_json

    from agents_tools.text.json_limits import check_bounds

    try:
        check_bounds(envelope.arguments)
        found: Any = from_json(envelope.arguments)
    except (TypeError, ValueError) as error:  # the former for half of a surrogate pair
        raise ModelBehaviorError(
            f"The arguments of tool {envelope.tool!r} are no JSON: {error}."
        ) from None
    if not isinstance(found, dict):
        raise ModelBehaviorError(f"The arguments of tool {envelope.tool!r} are no JSON object.")
    return cast("dict[str, Any]", found)


async def _ask(worker: _RemoteWorker) -> str:
    """Ask a worker whether it answers; give what is wrong."""
    connection = worker.connection
    try:
        async with asyncio.timeout(_HEALTH):
            await connection.connect()
            session = connection.session
            modern = session is not None and session.version >= MODERN
            method = "server/discover" if modern else "ping"
            await connection.request(method, {}, repeatable=True)
    except TimeoutError:
        return f"{worker.config.place} has not answered within {_HEALTH:g} s"
    except MCPProtocolError as error:  # one that does not know the question is there as well
        return "" if error.code == _UNKNOWN_METHOD else str(error)
    except (MCPError, ToolLostError) as error:
        return str(error)
    return ""


def _headers(
    headers: Mapping[str, str] | None, token: object, url: str, urls: list[str]
) -> dict[str, str]:
    """Return the headers of one address, with its token in place of any other."""
    own = _token_of(token, url, urls)
    if own is None:
        return dict(headers or {})
    if not own or not own.isascii() or not own.isprintable():
        raise UserValueError("A token of token= is empty, or has characters that no token has.")
    more = {key: one for key, one in (headers or {}).items() if key.lower() != "authorization"}
    return {**more, "Authorization": f"Bearer {own}"}


def _token_of(token: object, url: str, urls: list[str]) -> str | None:
    if token is None:
        return None
    if isinstance(token, str):
        if len(urls) > 1:
            raise UserValueError(
                "One token= for several workers would be told to all of them. Give each its own: "
                "token={url: token}."
            )
        return token
    if not isinstance(token, Mapping):
        raise UserTypeError(
            f"token= is a text, or a mapping from address to token, not {type_with_article(token)}."
        )
    given = cast("Mapping[str, str]", token)
    unknown = sorted(set(given) - set(urls))
    if unknown:
        raise UserValueError(f"token= has {unknown[0]!r:.100}, which is no address of a worker.")
    return given.get(url)
