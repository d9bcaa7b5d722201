"""Fuzzes the apps for user interfaces: each request is answered, and no secret is sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agents_tools import Agent, function_tool
from agents_tools.playground import app as playground_app
from agents_tools.playground.target_state import LoadedTarget
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import ag_ui, sse, vercel
from tests.soak._made_cases import Cases
from tests.soak._made_requests import BODIES, MadeRequest, a_request
from tests.soak.campaign import Budget, Outcome
from tests.ui.web import Exchange

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from random import Random

__all__ = ["run"]

CANARY = "the-word-that-only-anna-may-read"
ANNA = {"authorization": f"Bearer {'a' * 20}"}
BERT = {"authorization": f"Bearer {'b' * 20}"}
NOBODY = ({}, {"authorization": "Bearer"}, {"authorization": "Basic eDp5"}, {"authorization": "é"})
TOKEN = "c" * 20
PATIENCE = 10.0
"""Seconds for what takes none."""
A_MOMENT = 0.3
"""Seconds after which a client of a stream that goes on leaves."""
ROUND = 150
"""Requests to one app, before another one is made."""


class People:
    """A verifier that knows two people."""

    def verify_token(self, token: str) -> Any:
        """Return the owner of a token."""
        name = {"a" * 20: "anna", "b" * 20: "bert"}.get(token)
        return None if name is None else type("Known", (), {"client_id": "web", "subject": name})


class Talkative(ScriptedModel):
    """Tells a secret in the first run, and always has something to say."""

    def __init__(self) -> None:
        super().__init__([tool_call("vault"), CANARY])
        self._turns = 0

    async def respond(self, request: Any, emit: Any) -> Any:
        """Return an answer; sometimes a call that waits for a person."""
        self._turns += 1
        if self._turns > 2:
            self.add(tool_call("pay", amount=1) if self._turns % 7 == 0 else "Done.")
        return await super().respond(request, emit)


@function_tool
async def vault() -> str:
    """Look into the vault."""
    return CANARY


@function_tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


@needs_approval
@function_tool
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def _agent() -> Agent[Any, Any]:
    return Agent("helper", model=Talkative(), tools=[vault, echo, pay])


@asynccontextmanager
async def _native() -> AsyncGenerator[Any]:
    app = sse.app(_agent(), auth=People(), heartbeat=None)
    try:
        yield app
    finally:
        await app.aclose()


@asynccontextmanager
async def _ag_ui() -> AsyncGenerator[Any]:
    app = ag_ui.app(_agent(), auth=People())
    try:
        yield app
    finally:
        await app.aclose()


@asynccontextmanager
async def _vercel() -> AsyncGenerator[Any]:
    app = vercel.app(_agent(), auth=People())
    try:
        yield app
    finally:
        await app.aclose()


@asynccontextmanager
async def _playground() -> AsyncGenerator[Any]:
    loaded = LoadedTarget(
        target="tools.py", tools=(echo, pay), agents={"helper": _agent()}, place="tools.py"
    )
    app = playground_app(lambda: loaded, token=TOKEN, target="tools.py")
    await app.start()
    try:
        yield app
    finally:
        await app.aclose()


APPS = {"native": _native, "ag_ui": _ag_ui, "vercel": _vercel, "playground": _playground}
GOOD = {
    "native": ("POST", "/runs", {"input": "Go.", "run_id": "secret", "thread_id": "t1"}),
    "ag_ui": ("POST", "/", {**BODIES["ag_ui"][0], "runId": "secret"}),
    "vercel": ("POST", "/", BODIES["vercel"][0]),
    "playground": ("GET", "/api/tools", None),
}
IDS = {
    "native": ("secret", "r1", "t1"),
    "ag_ui": ("secret", "t1", "r1"),
    "vercel": ("t1", "secret", "r1"),
    "playground": ("echo", "pay", "r1", "call_1"),
}


def run(budget: Budget) -> Outcome:
    """Send made-up requests to each of the apps in turn."""
    cases = Cases("fuzz_ui", budget)
    places = list(APPS)
    logging.getLogger("agents_tools").setLevel(logging.CRITICAL)
    try:
        for number, rng in cases:
            asyncio.run(_round(cases, rng, places[number % len(places)]))
    finally:
        logging.getLogger("agents_tools").setLevel(logging.NOTSET)
    return cases.outcome()


async def _round(cases: Cases, rng: Random, place: str) -> None:
    async with APPS[place]() as app:
        if not await _still_good(cases, app, place, 0, "at the beginning"):
            return
        for number in range(ROUND):
            if cases.left < 0:
                break
            request = a_request(rng, place, IDS[place])
            await _check(cases, app, place, request, _who(rng, place))
            if number % 30 == 29 and not await _still_good(
                cases, app, place, number, repr(request)
            ):
                return


def _who(rng: Random, place: str) -> dict[str, str]:
    if rng.random() < 0.05:
        return rng.choice(NOBODY)
    if place == "playground":
        return {"authorization": f"Bearer {TOKEN}"}
    return rng.choice((ANNA, BERT, BERT))


async def _still_good(cases: Cases, app: Any, place: str, number: int, after: str) -> bool:
    """Whether a good client is still served."""
    method, path, body = GOOD[place]
    headers = {"authorization": f"Bearer {TOKEN}"} if place == "playground" else ANNA
    if number and body is not None:
        fresh = {"run_id": f"good{number}", "runId": f"good{number}", "id": f"good{number}"}
        body = {key: fresh.get(key, one) for key, one in body.items()}
        body |= {key: f"good{number}" for key in ("threadId", "thread_id") if key in body}
    exchange = Exchange(app, method, path, body, headers=headers)
    try:
        async with asyncio.timeout(PATIENCE):
            await exchange.task
        wrong = "" if exchange.status == 200 else f"{exchange.status}: {exchange.text[:500]}"
    except Exception as error:  # noqa: BLE001 - what is looked for
        wrong = repr(error)
    if wrong:
        cases.found(f"{place}: good", f"a good request got {wrong}", place, f"after {after}")
    return not wrong


async def _check(
    cases: Cases, app: Any, place: str, request: MadeRequest, who: dict[str, str]
) -> None:
    cases.count += 1
    exchange = Exchange(
        app,
        request.method,
        request.path,
        request.body,
        headers={**request.headers, **who},
        kind=request.kind,
    )
    wrong = await _wrong(exchange, request, secret=who is not ANNA and place != "playground")
    cases.add(f"{place}: {exchange.status // 100}xx")
    if wrong is not None:
        name = {id(ANNA): "anna", id(BERT): "bert"}.get(id(who), repr(who))
        program = f"{name} sends {request!r}"
        cases.found(f"{place}: {wrong[0]}", wrong[1][:1_500], place, program[:4_000])


async def _wrong(
    exchange: Exchange, request: MadeRequest, *, secret: bool
) -> tuple[str, str] | None:
    """Return the fault in an answer."""
    await asyncio.wait({exchange.task}, timeout=A_MOMENT)
    left = not exchange.task.done()
    if left:
        exchange.disconnect()
        await asyncio.wait({exchange.task}, timeout=PATIENCE)
    if not exchange.task.done():
        exchange.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await exchange.task
        return "hang", "the app goes on though its client is gone"
    if (error := exchange.task.exception()) is not None:
        return f"raised {type(error).__name__}", f"the app raised {error!r}"
    status, text = exchange.status, b"".join(exchange.parts).decode(errors="replace")
    if not status and not left:
        return "silent", "the app answered nothing"
    if status >= 500:
        return f"status {status}", f"the status is {status}: {text}"
    if secret and CANARY in text:
        return "told", f"somebody else's run is told: {text}"
    if status >= 400 and request.method != "HEAD":
        return _of_error(status, text)
    return None


def _of_error(status: int, text: str) -> tuple[str, str] | None:
    try:
        message = json.loads(text)["error"]["message"]
    except (ValueError, TypeError, KeyError):
        return "no JSON error", f"the error of status {status} is {text[:300]!r}"
    if len(message) < 15 or len(message) > 4_000:
        return "says nothing", f"the error of status {status} is {message[:300]!r}"
    if "Traceback" in message or 'File "' in message:
        return "trace", f"the error of status {status} shows the inside: {message}"
    return None
