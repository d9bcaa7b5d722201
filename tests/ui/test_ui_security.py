"""Access control of the apps, and secrets in their output."""

from __future__ import annotations

import base64
import logging
import os
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import SecretStr

from agents_tools import (
    Agent,
    NotifyStreamEvent,
    ToolError,
    function_tool,
    progress,
    streaming_tool,
)
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import sse
from tests.ui.web import Exchange, ask, served

TOKEN = "canary-7f3a9c-canary-7f3a9c"  # noqa: S105 - opens nothing
PAGE = "https://app.example.com"


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


CALL = {"tool": "add", "arguments": {"a": 1, "b": 2}}

HOSTS = {
    "own": ("127.0.0.1:8000", True),
    "localhost": ("localhost", True),
    "v6": ("[::1]:8000", True),
    "evil": ("evil.example", False),
    "suffix": ("127.0.0.1.evil.example", False),
    "all addresses": ("0.0.0.0", False),  # noqa: S104 - is refused
    "empty": ("", False),
}
ORIGINS = {
    "none": (None, True),
    "own": ("http://127.0.0.1:8000", True),
    "allowed": (PAGE, True),
    "evil": ("https://evil.example", False),
    "null": ("null", False),
}


@pytest.mark.requirement("S1", "S2")
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("host", HOSTS)
async def test_the_host_and_origin_headers_are_checked(host: str, origin: str) -> None:
    """This holds for reading and writing; the error names the value and the setting."""
    app = sse.app([add], allowed_origins=[PAGE])
    (name, known), (page, allowed) = HOSTS[host], ORIGINS[origin]
    headers = {"host": name} | ({} if page is None else {"origin": page})
    for method, path, body in (("GET", "/", None), ("POST", "/runs", CALL)):
        reply = await ask(app, method, path, body, headers=headers)
        if known and allowed:
            assert reply.status == 200
        elif not known:
            assert reply.status == 421
            assert name in reply.message
            assert "allowed_hosts=" in reply.message
        else:
            assert reply.status == 403
            assert "allowed_origins=" in reply.message
    assert len(await app.runs.list()) == (known and allowed)
    await app.aclose()


@pytest.mark.requirement("S3")
async def test_every_route_requires_the_token() -> None:
    """The list of routes requires it too, and a token in the address is not accepted."""
    app = sse.app([add], auth=TOKEN)
    for method, path in (
        ("GET", "/"),
        ("GET", "/tools"),
        ("GET", "/runs"),
        ("GET", "/nothing"),
        ("POST", "/runs"),
        ("GET", f"/runs?token={TOKEN}"),
    ):
        reply = await ask(app, method, path, CALL if method == "POST" else None)
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert (await ask(app, "POST", "/runs", CALL, headers=headers)).status == 200
    wrong = {"authorization": f"Bearer {TOKEN[:-1]}x"}
    assert (await ask(app, "POST", "/runs", CALL, headers=wrong)).status == 401
    await app.aclose()


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(
    "name",
    ["command", "args", "cmd", "env", "cwd", "module", "path", "model", "max_turns", "tools"],
)
async def test_no_route_accepts_code_to_run(name: str) -> None:
    """A request can only name a tool that is served."""
    app = sse.app([add])
    reply = await ask(app, "POST", "/runs", {**CALL, name: "x"})
    assert reply.status == 422
    assert name in reply.message
    agent = sse.app(Agent(name="a", model=ScriptedModel(["Hi."])))
    reply = await ask(agent, "POST", "/runs", {"input": "Hi", name: "x"})
    assert reply.status == 422
    assert await app.runs.list() == await agent.runs.list() == []


FORMS = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/json",
    "application/json, text/plain",
    "text/plain; application/json",
    "application/jsonp",
    "",
)


@pytest.mark.requirement("S4")
@pytest.mark.parametrize("kind", FORMS)
async def test_requests_that_a_foreign_form_could_send_are_rejected(kind: str) -> None:
    """A browser sends a preflight before JSON, so only JSON is accepted."""
    app = sse.app([add])
    for path in ("/runs", "/runs/x/cancel", "/runs/x/approvals"):
        reply = await ask(app, "POST", path, CALL, kind=kind)
        assert reply.status == 415
        assert "application/json" in reply.message
    assert await app.runs.list() == []


@pytest.mark.requirement("S4")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0"), max_size=60))
async def test_no_content_type_but_json_starts_a_run(kind: str) -> None:
    app = sse.app([add])
    reply = await ask(app, "POST", "/runs", CALL, kind=kind or None)
    is_json = kind.partition(";")[0].strip().lower() == "application/json"
    assert reply.status == (200 if is_json else 415)
    await app.aclose()


@pytest.mark.requirement("S4")
@given(st.binary(max_size=200))
async def test_no_body_breaks_the_app(body: bytes) -> None:
    """Every response is JSON that explains the error."""
    app = sse.app([add])
    reply = await ask(app, "POST", "/runs", body)
    assert reply.status in {400, 422}
    assert reply.json["error"]["status"] == reply.status


@pytest.mark.requirement("S2")
async def test_too_large_requests_are_rejected() -> None:
    """The error names the setting."""
    app = sse.app([add], max_body=1_000)
    reply = await ask(app, "POST", "/runs", {"tool": "x" * 2_000})
    assert reply.status == 413
    assert "max_body=" in reply.message


@pytest.mark.requirement("S1")
async def test_a_preflight_is_for_pages_that_are_allowed() -> None:
    """The preflight allows the header of a resumed stream."""
    app = sse.app([add], allowed_origins=[PAGE])
    reply = await ask(app, "OPTIONS", "/runs", headers={"origin": PAGE}, kind=None)
    assert reply.status == 204
    assert "last-event-id" in reply.headers["access-control-allow-headers"]
    reply = await ask(app, "GET", "/tools", headers={"origin": PAGE})
    assert reply.headers["access-control-allow-origin"] == PAGE
    local = "http://localhost:5173"  # the dev server of Vite
    reply = await ask(app, "OPTIONS", "/runs", headers={"origin": local}, kind=None)
    assert (reply.status, reply.headers["access-control-allow-origin"]) == (204, local)
    reply = await ask(app, "OPTIONS", "/runs", headers={"origin": "https://evil.example"})
    assert reply.status == 403


@pytest.mark.requirement("S1", "S2", "S3", "S4")
@pytest.mark.parametrize("mounted", [False, True])
async def test_the_rules_apply_to_real_connections(*, mounted: bool) -> None:
    """They also apply to an app mounted in Starlette."""
    own = sse.app([add], auth=TOKEN)
    app: Any = own
    if mounted:
        from starlette.applications import Starlette
        from starlette.routing import Mount

        app = Starlette(routes=[Mount("/agent", app=own)], lifespan=own.lifespan)
    bearer = {"authorization": f"Bearer {TOKEN}"}
    async with served(app) as port, httpx.AsyncClient(trust_env=False) as client:
        url = f"http://127.0.0.1:{port}{'/agent' if mounted else ''}"
        reply = await client.post(f"{url}/runs", json=CALL, headers=bearer)
        events = list(sse.decode(reply.text))
        assert events[-1].to_dict()["output"] == 3
        reply = await client.get(f"{url}/tools", headers=bearer)
        assert reply.json()["tools"][0]["name"] == "add"
        assert (await client.post(f"{url}/runs", json=CALL)).status_code == 401
        reply = await client.post(f"{url}/runs", data={"a": "1"}, headers=bearer)
        assert reply.status_code == 415
        reply = await client.get(url + "/", headers=bearer | {"host": "evil.example"})
        assert reply.status_code == 421
        headers = {"prefer": "respond-async"}
        reply = await client.post(f"{url}/runs", json=CALL, headers=bearer | headers)
        where = reply.headers["location"]
        reply = await client.get(f"http://127.0.0.1:{port}{where}/events", headers=bearer)
        assert list(sse.decode(reply.text))[-1].to_dict()["status"] == "ok"
    assert await own.runs.list() == []


# --- secrets


def canaries() -> dict[str, str]:
    """Create secrets of several kinds, and the forms in which they could leak."""
    return {
        "registered": "canary-reg-5f1c9e7a2b",
        "env": "canary-env-8d2e4f6a1c",
        "secretstr": "canary-str-3b7d9f1e5a",
    }


@pytest.mark.requirement("S20")
async def test_no_secret_leaves_through_a_stream(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They are planted in results, progress, notes, exceptions, causes and arguments."""
    known = canaries()
    monkeypatch.setenv("CANARY_API_KEY", known["env"])
    caplog.set_level(logging.DEBUG)

    @streaming_tool
    async def leak():
        """Say everything that is known."""
        progress(1, 2, f"with {known['registered']}")
        yield NotifyStreamEvent(data=f"key and {known['registered']}")
        yield NotifyStreamEvent(data=base64.b64encode(known["registered"].encode()).decode())
        yield NotifyStreamEvent(data=quote(known["registered"]), is_delta=True)
        yield str({"registered": known["registered"], "key": 1})

    @function_tool
    def burst(why: str) -> str:
        """Fail with a secret in the message and in its cause."""
        try:
            return str(int(f"{os.environ['CANARY_API_KEY']} {known['secretstr']}"))
        except ValueError as error:
            raise RuntimeError(f"no entry with {known['registered']} for {why}") from error

    @function_tool
    def explain(why: SecretStr) -> str:
        """Explain a failure."""
        raise ToolError(f"no entry with {known['registered']}: {why}")

    for name, call in (
        ("leak", {}),
        ("burst", {"why": known["registered"]}),
        ("explain", {"why": known["secretstr"]}),
    ):
        agent = Agent(
            name="a",
            tools=[leak, burst, explain],
            model=ScriptedModel([tool_call(name, **call), f"I saw {known['registered']}."]),
        )
        app = sse.app(agent, secrets={"REG": known["registered"], "STR": known["secretstr"]})
        whole = await ask(app, "POST", "/runs", {"input": "Hi", "run_id": "r1"})
        shown = await ask(app, "GET", "/runs/r1")
        again = await ask(app, "GET", "/runs/r1/events")
        for text in (whole.text, shown.text, again.text):
            for kind, secret in known.items():
                assert secret not in text, (name, kind)
            assert base64.b64encode(known["registered"].encode()).decode() not in text
        assert '"status":"ok"' in whole.text
        await app.aclose()
    own = [record.getMessage() for record in caplog.records if record.name == "agents_tools.ui"]
    assert "RuntimeError" in "".join(own)
    assert not any(secret in text for text in own for secret in known.values())


@pytest.mark.requirement("S20")
async def test_an_approval_request_has_no_secret() -> None:
    """The arguments of a waiting call are masked in the stream, and run unmasked."""
    ran: list[str] = []

    @needs_approval
    @function_tool
    def login(password: str) -> str:
        """Log in."""
        ran.append(password)
        return f"in with {password}"

    secret = canaries()["registered"]
    app = sse.app([login], secrets={"REG": secret})
    body = {"tool": "login", "arguments": {"password": secret}, "run_id": "r1"}
    whole = await ask(app, "POST", "/runs", body)
    shown = await ask(app, "GET", "/runs/r1")
    decision = {"call_id": "call_1", "approve": True}
    told = await ask(app, "POST", "/runs/r1/approvals", {"decisions": [decision]})
    rest = await ask(app, "GET", "/runs/r1/events")
    after = await ask(app, "GET", "/runs/r1")
    assert ran == [secret]
    assert after.json["status"] == "ok"
    for reply in (whole, shown, told, rest, after):
        assert secret not in reply.text
    await app.aclose()


@pytest.mark.requirement("S20")
async def test_a_server_error_reveals_no_internals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A failing context hook is a 500 with a number; the log has the details, masked."""

    def context(_: Any) -> Any:
        raise RuntimeError("the database is at db.internal")

    app = sse.app([add], context=context)
    reply = await ask(app, "POST", "/runs", CALL)
    assert reply.status == 500
    assert "db.internal" not in reply.text
    assert reply.json["error"]["id"] in caplog.text
    assert await app.runs.list() == []


@pytest.mark.requirement("S4")
async def test_the_stream_has_safe_response_headers() -> None:
    """The output of a tool must not be read as HTML or cached."""
    app = sse.app([add])
    reply = await Exchange(app, "POST", "/runs", CALL).whole()
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"].startswith("no-cache")
    reply = await ask(app, "GET", "/tools")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["content-type"] == "application/json"
    await app.aclose()
