"""Access control of the playground, and limits on what requests can do."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import function_tool
from agents_tools.errors import UserError
from agents_tools.playground import app
from agents_tools.playground.catalog import TargetCatalog
from agents_tools.playground.codegen import ToolCallRequest, export
from agents_tools.playground.page_files import pages
from agents_tools.playground.target_state import LoadedTarget
from tests.playground.client import TOKEN, playing, serving

if TYPE_CHECKING:
    from pathlib import Path

    from agents_tools.playground.codegen import Form

ROUTES = [
    ("GET", "/api/info"),
    ("GET", "/api/tools"),
    ("GET", "/api/tools/add/views"),
    ("POST", "/api/tools/add/check"),
    ("GET", "/api/runs"),
    ("POST", "/api/runs"),
    ("DELETE", "/api/runs"),
    ("GET", "/api/runs/x"),
    ("DELETE", "/api/runs/x"),
    ("GET", "/api/runs/x/events"),
    ("POST", "/api/runs/x/cancel"),
    ("POST", "/api/runs/x/approvals"),
    ("POST", "/api/runs/x/rerun"),
    ("GET", "/api/runs/x/export"),
    ("GET", "/api/changes"),
    ("GET", "/api"),
    ("GET", "/else"),
    ("GET", "//api/info"),
    ("GET", "/static/../api/info"),
    ("GET", "/API/info"),
]


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(("method", "target"), ROUTES)
async def test_only_the_page_is_served_without_the_token(method: str, target: str) -> None:
    """Another program on the machine can reach the port, but does not know the token."""
    body = {} if method == "POST" else None
    async with playing(add) as client:
        for token in (None, "another-token-of-somebody"):
            client.token = token
            answer = await client.ask(method, target, body)
            assert answer.status == 401
            assert b"add" not in answer.body


async def test_the_token_is_accepted_in_a_header_only() -> None:
    """An address with a token would be stored in histories and logs."""
    async with playing(add) as client:
        token, client.token = client.token, None
        answer = await client.ask("GET", f"/api/info?token={token}&access_token={token}")
        assert answer.status == 401
        answer = await client.ask("GET", "/api/info", headers=[("cookie", f"token={token}")])
        assert answer.status == 401


@pytest.mark.requirement("S1", "S2")
@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:8321", None, 200),
        ("localhost:8321", "http://localhost:8321", 200),
        ("[::1]:8321", "http://[::1]:8321", 200),
        ("evil.example", None, 421),
        ("127.0.0.1.evil.example", None, 421),
        ("", None, 421),
        ("127.0.0.1:8321", "https://evil.example", 403),
        ("127.0.0.1:8321", "null", 403),
        ("127.0.0.1:8321", "http://127.0.0.1.evil.example", 403),
    ],
)
async def test_a_foreign_page_cannot_reach_the_server(
    host: str, origin: str | None, status: int
) -> None:
    """DNS rebinding can point a foreign host name to this address.

    Static files are protected too.
    """
    headers = [("host", host), *([("origin", origin)] if origin is not None else [])]
    async with playing(add) as client:
        for target in ("/api/info", "/"):
            answer = await client.ask("GET", target, headers=headers)
            assert answer.status == status
            if status != 200:
                assert answer.json["error"]["message"]


@pytest.mark.requirement("S4")
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "",
    ],
)
async def test_a_form_of_a_web_page_cannot_start_a_run(kind: str) -> None:
    """Requests that browsers send without a preflight never have the JSON content type."""
    body = {"kind": "tool", "name": "add", "arguments": {"a": 1}}
    async with playing(add) as client:
        for route in ("/api/runs", "/api/runs/x/cancel", "/api/tools/add/check"):
            answer = await client.ask("POST", route, body, headers=[("content-type", kind)])
            assert answer.status == 415
        assert (await client.get("/api/runs"))["runs"] == []


@pytest.mark.requirement("S3")
@pytest.mark.parametrize(
    "body",
    [
        {"kind": "tool", "name": "add", "command": "touch owned", "arguments": {"a": 1}},
        {"kind": "tool", "name": "os:system", "arguments": {"command": "touch owned"}},
        {"kind": "tool", "name": "../add", "arguments": {"a": 1}},
        {"kind": "module", "name": "os", "target": "os:system"},
        {"kind": "tool", "name": "add", "target": "os.py", "arguments": {"a": 1}},
    ],
)
async def test_a_request_cannot_name_a_command_a_file_or_a_module(
    body: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target is fixed at the start; other fields of requests are ignored."""
    monkeypatch.chdir(tmp_path)
    async with playing(add) as client:
        answer = await client.ask("POST", "/api/runs", body)
        assert answer.status in {202, 404, 422}
        if answer.status == 202:
            run = await client.ended(answer.json["run_id"])
            assert run["summary"] == "2"
        assert (await client.get("/api/info"))["target"] == "tools.py"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path",
    [
        "/static/../api.py",
        "/static/..%2fapi.py",
        "/static/%2e%2e/api.py",
        "/static//etc/passwd",
        "/static/..\\api.py",
        "/static/",
        "/static/index.html/",
        "/../../etc/passwd",
        "/static/index.html\0.js",
        "/static/sub/../index.html",
    ],
)
async def test_no_path_leads_to_another_file(path: str) -> None:
    """Files are served from a table; paths are never joined."""
    async with playing(add) as client:
        answer = await client.ask("GET", path)
    if answer.status == 200:  # with an extra slash at the end
        assert answer.body == pages()["/"].data
    else:
        assert answer.status == 404
        assert b"def " not in answer.body
        assert b"root:" not in answer.body


async def test_every_response_has_security_headers() -> None:
    """They forbid inline and external content, frames and content type sniffing."""
    async with playing(add) as client:
        for target in ("/", "/api/info", "/api/none", "/static/none.js"):
            answer = await client.ask("GET", target)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["referrer-policy"] == "no-referrer"
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
            assert "unsafe" not in policy
            assert "access-control-allow-origin" not in answer.headers


async def test_files_are_revalidated_and_sent_once() -> None:
    """The next version of the library has other files under the same names."""
    async with playing(add) as client:
        client.token = None
        first = await client.ask("GET", "/")
        assert first.status == 200
        assert first.headers["content-type"] == "text/html; charset=utf-8"
        assert first.headers["cache-control"] == "no-cache"
        known = [("if-none-match", first.headers["etag"])]
        again = await client.ask("GET", "/", headers=known)
        assert (again.status, again.body) == (304, b"")
        for path, page in pages().items():
            answer = await client.ask("GET", path)
            assert (answer.status, answer.body) == (200, page.data)
            assert answer.headers["content-type"] == page.kind


async def test_the_page_has_no_inline_or_external_content() -> None:
    """It would not work with the policy, or on a machine without a network."""
    for path, page in pages().items():
        if page.kind.startswith("text/html"):
            text = page.data.decode()
            assert "<style" not in text, path
            assert " style=" not in text, path
            assert " onclick" not in text.lower(), path
            assert "//cdn" not in text, path
            assert 'src="http' not in text, path


@pytest.mark.requirement("S1")
async def test_a_public_address_requires_a_token() -> None:
    """Otherwise other machines could call the tools."""
    async with playing(add, host="0.0.0.0", allowed_hosts=["box.example"]) as client:  # noqa: S104
        headers = [("host", "box.example:80")]
        assert (await client.ask("GET", "/api/info", headers=headers)).status == 200
        client.token = None
        assert (await client.ask("GET", "/api/info", headers=headers)).status == 401
    with pytest.raises(UserError, match="token"):
        async with playing(add, host="0.0.0.0", token="short"):  # noqa: S104, S106
            pass


@pytest.mark.requirement("S29")
async def test_the_body_size_is_bounded() -> None:
    """One request must not fill the memory."""
    body = json.dumps({"kind": "tool", "name": "x" * (17 << 20)}).encode()
    async with playing(add) as client:
        assert (await client.ask("POST", "/api/runs", body)).status == 413


@pytest.mark.requirement("S19")
async def test_descriptions_of_tools_are_not_rendered_as_markup() -> None:
    """Descriptions of third-party servers are untrusted text."""
    evil = add.with_(
        description="\x1b]0;owned\x07Add \u202etwo</script><img src=x onerror=alert(1)>"
    )
    async with playing(evil) as client:
        answer = await client.ask("GET", "/api/tools")
        text = answer.json["tools"][0]["description"]
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert answer.headers["content-type"] == "application/json"


async def test_the_link_on_the_browser_command_line_works_once() -> None:
    """Other users can read the command line of a browser while it is open."""
    async with playing(add) as client:
        link = client.app.link()
        client.token = None
        assert (await client.ask("GET", "/open/")).status == 401
        assert (await client.ask("GET", "/open/guess")).status == 410
        assert (await client.ask("HEAD", link)).status == 405
        answer = await client.ask("GET", link)
        assert (answer.status, answer.body) == (303, b"")
        assert answer.headers["location"] == f"/#token={TOKEN}"
        assert answer.headers["cache-control"] == "no-store"
        again = await client.ask("GET", link)
        assert again.status == 410
        assert TOKEN not in again.body.decode()


async def test_a_file_name_that_is_not_utf8_is_handled(tmp_path: Path) -> None:
    """Its name in responses can be encoded."""
    loaded = LoadedTarget(target="\udcff.py", tools=(add,), place=str(tmp_path / "\udcff.py"))
    made = app(lambda: loaded, token=TOKEN, target="\udcff.py")
    async with serving(made) as client:
        assert (await client.get("/api/info"))["target"] == "\ufffd.py"
        run = await client.run({"kind": "tool", "name": "add", "arguments": {"a": 1}})
        for form in ("python", "cli", "json", "pytest"):
            answer = await client.ask("GET", f"/api/runs/{run['id']}/export?as={form}")
            assert answer.status == 200


@pytest.mark.requirement("S19")
def test_an_exported_command_has_no_invisible_characters() -> None:
    """Bidirectional and terminal control characters are escaped."""
    given = {"text": "a\u202eb\x9bc\x1bd\U000e0041e"}
    loaded = LoadedTarget(target="tools.py", tools=(add,), place="tools.py")
    call = ToolCallRequest(kind="tool", name="add", arguments=given)
    forms: list[Form] = ["cli", "json", "python"]
    for form in forms:
        _, text = export(call, form, TargetCatalog.of(loaded))
        assert text.replace("\n", "").isprintable()
        if form == "cli":
            assert json.loads(shlex.split(text)[-1]) == given
