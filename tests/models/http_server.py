"""A real HTTP server on the loopback interface that replays scripted answers and faults."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

PATIENCE = 45.0
"""Seconds that the server waits for anything before it gives up."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as the server received it.

    Attributes:
        method: `POST`, mostly.
        path: The path, with the query.
        headers: The headers; names in lower case.
        content: The body.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A scripted answer to one request.

    Attributes:
        status: The HTTP status.
        headers: Headers on top of the content type.
        pieces: The body, sent piece by piece. Before an event in it the server waits until the
            test sets that event; a client that leaves meanwhile sets `ScriptedServer.hung_up`.
        content_type: The type of the body.
        cut: Reset the connection after the last piece instead of ending the body.
        silent: Reset the connection without any answer.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Sequence[bytes | threading.Event] = ()
    content_type: str = "application/json"
    cut: bool = False
    silent: bool = False


Scripted: TypeAlias = Answer | Callable[[Recorded], Answer]
"""An answer, or what makes one from the request."""


def json_answer(
    body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Answer:
    """Answer with JSON."""
    return Answer(status=status, headers=headers or {}, pieces=(json.dumps(body).encode(),))


def sse_answer(
    *events: Mapping[str, Any] | str | bytes | threading.Event,
    named: bool = True,
    done: bool = False,
    cut: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Answer with server-sent events.

    Args:
        *events: JSON objects; text is one `data:` line as it stands; bytes go out raw; an event of
            `threading` is waited for.
        named: Name each event after the `type` in its object.
        done: End with `data: [DONE]`.
        cut: Reset the connection at the end.
        headers: Headers to send along.
    """
    pieces = [
        event if isinstance(event, (bytes, threading.Event)) else _frame(event, named=named)
        for event in events
    ]
    if done:
        pieces.append(b"data: [DONE]\n\n")
    return Answer(pieces=pieces, content_type="text/event-stream", cut=cut, headers=headers or {})


def _frame(event: Mapping[str, Any] | str, *, named: bool) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if named and "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


class ScriptedServer:
    """Answers requests with the scripted answers, in order.

    Attributes:
        requests: The requests that were received.
        hung_up: Set as soon as a client leaves in the middle of an answer.
        connections: How many connections clients have opened.
    """

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self.hung_up = threading.Event()
        self.connections = 0
        self._answers: deque[Scripted] = deque()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._start(self._accept)

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def last(self) -> Recorded:
        """The request that came last."""
        return self.requests[-1]

    def answer(self, *answers: Scripted) -> None:
        """Script the next answers; a request without one is answered with status 418."""
        self._answers.extend(answers)

    def idle_connections(self) -> int:
        """Count the connections that are open now."""
        with self._lock:
            return len(self._open)

    def close(self) -> None:
        """Close every connection and end every thread."""
        self._closing.set()
        with contextlib.suppress(OSError):  # wakes the thread that accepts
            socket.create_connection(self._listener.getsockname(), PATIENCE).close()
        with self._lock:
            for conn in self._open:
                with contextlib.suppress(OSError):
                    conn.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)
        self._listener.close()

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True, name="scripted-server")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            conn, _ = self._listener.accept()
            if self._closing.is_set():
                conn.close()
                return
            conn.settimeout(PATIENCE)
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open.add(conn)
                self.connections += 1
            self._start(self._serve, conn)

    def _serve(self, conn: socket.socket) -> None:
        try:
            with conn.makefile("rb") as reader:
                while not self._closing.is_set() and (request := _read(reader)) is not None:
                    if not self._reply(conn, request):
                        return
        except (OSError, ValueError):
            return
        finally:
            with self._lock:
                self._open.discard(conn)
            conn.close()

    def _reply(self, conn: socket.socket, request: Recorded) -> bool:
        """Send the answer, and return whether the connection can be reused."""
        self.requests.append(request)
        try:
            scripted = self._answers.popleft()
        except IndexError:
            error = {"error": {"message": "the test scripted no answer for this request"}}
            scripted = json_answer(error, status=418)
        answer = scripted if isinstance(scripted, Answer) else scripted(request)
        if answer.silent:
            return _reset(conn)
        fields = {"content-type": answer.content_type, "transfer-encoding": "chunked"}
        fields.update(answer.headers)
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        try:
            conn.sendall(f"HTTP/1.1 {answer.status} Scripted\r\n{head}\r\n".encode())
            for piece in answer.pieces:
                if isinstance(piece, threading.Event):
                    if not self._wait(conn, piece):
                        self.hung_up.set()
                        return False
                elif piece:
                    conn.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            if answer.cut:
                return _reset(conn)
            conn.sendall(b"0\r\n\r\n")
        except OSError:
            self.hung_up.set()
            raise
        return True

    def _wait(self, conn: socket.socket, gate: threading.Event) -> bool:
        """Wait for the gate, and return whether the client is still connected."""
        until = time.monotonic() + PATIENCE
        while not gate.wait(0.01):
            readable, _, _ = select.select([conn], [], [], 0)
            if readable and not conn.recv(1, socket.MSG_PEEK):
                return False
            if self._closing.is_set() or time.monotonic() > until:
                return False
        return True


def _read(reader: Any) -> Recorded | None:
    line = reader.readline().decode("latin-1").strip()
    if not line:
        return None
    method, path, _ = line.split(" ", 2)
    headers: dict[str, str] = {}
    while header := reader.readline().decode("latin-1").strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    content = reader.read(int(headers.get("content-length", 0)))
    return Recorded(method, path, headers, content)


def _reset(conn: socket.socket) -> bool:
    # Lingering for zero seconds makes the close a reset, as a crashed server's would be.
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


@contextlib.contextmanager
def scripted_server() -> Generator[ScriptedServer]:
    """Serve while the block runs."""
    server = ScriptedServer()
    try:
        yield server
    finally:
        server.close()
