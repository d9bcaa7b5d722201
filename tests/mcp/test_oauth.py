"""Logins to MCP servers with OAuth, against a real authorization server and a protected server."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
import socket
import stat
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agents_tools import ToolContext, function_tool
from agents_tools.cli import main
from agents_tools.errors import MCPConnectionError, UserError
from agents_tools.mcp import (
    JWTVerifier,
    MCPServerConfig,
    MCPToolManager,
    OAuth,
    load_config,
    mcp_server,
)
from agents_tools.mcp.client import login
from agents_tools.mcp.client.login_store import LoginStore
from agents_tools.mcp.logins import log_in, log_out
from agents_tools.server.listener import bound_socket, serve_app, url_of
from tests.mcp.authorization_server import AuthorizationServer, authorization_server
from tests.mcp.small import LINE
from tests.scale import slow_case
from tests.waiting import comes

BOUND = 60.0
BROWSER = """
import pathlib, sys, urllib.error, urllib.request

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
folder = pathlib.Path(sys.argv[0]).parent
with (folder / "opened").open("a") as file:
    file.write(sys.argv[1] + "\\n")
try:
    page = opener.open(sys.argv[1], timeout=30)
except urllib.error.HTTPError as error:
    page = error
(folder / "page").write_bytes(page.read())
"""


@function_tool
def who(ctx: ToolContext[Any]) -> str:
    """Return the caller."""
    return f"{ctx.context.principal.subject} ({' '.join(ctx.context.principal.scopes)})"


@function_tool
async def slow(folder: str) -> str:
    """Wait for a file."""
    (Path(folder) / "started").touch()
    await comes((Path(folder) / "go").exists)
    return "done"


@dataclass
class Site:
    """A protected MCP server and its authorization server.

    Attributes:
        url: The URL of the MCP server.
        issuer: The authorization server.
        folder: The home folder of the user.
    """

    url: str
    issuer: AuthorizationServer
    folder: Path

    @property
    def opened(self) -> list[str]:
        """The pages that the browser has opened."""
        path = self.folder / "opened"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def file(self) -> Path:
        """The stored login."""
        return LoginStore(self.url).path

    def stored(self) -> dict[str, Any]:
        return json.loads(self.file.read_text())

    def expire(self) -> None:
        """Let the stored token expire."""
        self.file.write_text(json.dumps({**self.stored(), "expires_at": 1_000.0}))

    async def call(self, **options: Any) -> str:
        """Connect with OAuth, call the tool, and return its result."""
        async with asyncio.timeout(BOUND), MCPToolManager() as manager:
            await manager.add_server("shop", url=self.url, **{"auth": "oauth", **options})
            return await call(manager)


async def call(manager: MCPToolManager, name: str = "shop_who", **arguments: Any) -> str:
    [tool] = [one for one in manager.get_tools() if one.name == name]
    return str((await tool.call(ToolContext(None), json.dumps(arguments))).output)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder and a browser that follows redirects without a person."""
    (tmp_path / "browser.py").write_text(BROWSER)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("BROWSER", f"{sys.executable} {tmp_path / 'browser.py'} %s")
    return tmp_path


@pytest.fixture
async def site(home: Path) -> AsyncGenerator[Site]:
    async with authorization_server() as issuer, protected(issuer) as url:
        yield Site(url, issuer, home)


class Verifier(JWTVerifier):
    """A verifier that knows which tokens the authorization server has withdrawn."""

    def __init__(self, issuer: AuthorizationServer, audience: str) -> None:
        self._issuer = issuer
        keys = f"{issuer.url}/jwks"
        super().__init__(jwks_url=keys, issuer=issuer.url, audience=audience, leeway=0)

    async def verify_token(self, token: str) -> Any:
        return None if token in self._issuer.withdrawn else await super().verify_token(token)


@contextlib.asynccontextmanager
async def protected(issuer: AuthorizationServer, **options: Any) -> AsyncGenerator[str]:
    """Serve tools for callers with a token of the authorization server."""
    sock = bound_socket("127.0.0.1", 0)
    url = f"{url_of('127.0.0.1', sock)}/mcp"
    verifier = Verifier(issuer, url)
    settings: Any = {"required_scopes": ["read"], **options}
    app = mcp_server(
        [who, slow],
        auth=verifier,
        authorization_servers=[issuer.url],
        resource_url=url,
        **settings,
    )
    ready = asyncio.Event()
    serving = asyncio.create_task(serve_app(app, sock, shutdown_timeout=1, on_ready=ready.set))
    try:
        async with asyncio.timeout(BOUND):
            await ready.wait()
        yield url
    finally:
        serving.cancel()
        await asyncio.wait({serving})
        await app.aclose()


# --- logging in


async def test_a_login_is_one_word(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """The client registers, opens the browser, and calls the tool as the user who logged in."""
    assert await site.call() == "ada (read)"
    [page] = site.opened
    assert page.startswith(f"{site.issuer.url}/authorize?")
    assert "code_challenge_method=S256" in page
    assert page in capsys.readouterr().err
    shown = (site.folder / "page").read_text()
    assert "You are logged in" in shown
    assert "code=" not in shown
    [client] = site.issuer.registered.values()
    assert client["client_name"] == "agents-tools"
    assert "client_secret" not in client


async def test_the_login_is_stored_for_the_user_alone(site: Site) -> None:
    await site.call()
    assert stat.S_IMODE(site.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(site.file.parent.stat().st_mode) == 0o700
    assert site.file.parent == site.folder / "state" / "agents-tools" / "mcp-logins"
    assert site.stored()["tokens"]["access_token"] in site.issuer.issued


async def test_another_connection_uses_the_stored_login(site: Site) -> None:
    await site.call()
    assert await site.call() == "ada (read)"
    assert len(site.opened) == 1
    assert site.issuer.counts["register"] == 1


@pytest.mark.slow
async def test_another_process_uses_the_stored_login(site: Site) -> None:
    """A program without a browser and a terminal uses the login of this one."""
    await site.call()
    program = (
        "import asyncio, sys\n"
        "from agents_tools.mcp import MCPToolManager\n"
        "async def main():\n"
        "    async with MCPToolManager() as manager:\n"
        "        await manager.add_server('shop', url=sys.argv[1], auth='oauth')\n"
        "        [tool] = [t for t in manager.get_tools() if t.name == 'shop_who']\n"
        "        print((await tool.invoke()).content)\n"
        "asyncio.run(main())\n"
    )
    headless = {name: value for name, value in os.environ.items() if name not in DISPLAYS}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, site.url),
        env=headless,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(BOUND):
        out, err = await process.communicate()
    assert out.decode() == "ada (read)\n", err.decode()
    assert len(site.opened) == 1


DISPLAYS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


async def test_an_expired_token_is_refreshed_without_the_user(site: Site) -> None:
    """Also in a new process, which knows the token endpoint from the stored login only."""
    await site.call()
    before = site.stored()["tokens"]
    site.expire()
    assert await site.call() == "ada (read)"
    assert site.issuer.counts["refresh"] == 1
    assert len(site.opened) == 1
    after = site.stored()["tokens"]
    assert after["access_token"] != before["access_token"]
    assert after["refresh_token"] != before["refresh_token"], "it is rotated"


async def test_a_token_that_the_server_refuses_is_refreshed(site: Site) -> None:
    """Clocks differ, and tokens end early: a 401 leads to a refresh before the user is asked."""
    await site.call()
    record = site.stored()
    record["tokens"]["access_token"] = site.issuer.token(aud=site.url, exp=1_000)
    site.file.write_text(json.dumps(record))
    assert await site.call() == "ada (read)"
    assert site.issuer.counts["refresh"] == 1
    assert len(site.opened) == 1


async def test_calls_in_progress_share_one_login(site: Site) -> None:
    """The token and its refresh token are revoked: five calls wait for one login, and succeed."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        await manager.add_server("shop", url=site.url, auth="oauth")
        await call(manager)
        site.issuer.revoke_all()
        results = await asyncio.gather(*(call(manager) for _ in range(5)))
    assert results == ["ada (read)"] * 5
    assert len(site.opened) == 2
    assert site.issuer.counts["refresh"] == 1


@pytest.mark.slow
async def test_a_login_does_not_count_as_silence_of_the_server(site: Site) -> None:
    """The timeout of a call stops while the user logs in, and applies again afterwards."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        await manager.add_server("shop", url=site.url, auth="oauth", timeout=1.2)
        site.issuer.revoke_all()
        site.issuer.mode = "slow"
        assert await call(manager) == "ada (read)"
        site.issuer.revoke_all()
        result = await call(manager, "shop_slow", folder=str(site.folder))
        assert "sent nothing for 1.2 s" in result
        assert len(site.opened) == 3


async def test_a_slow_call_does_not_hold_up_others(site: Site) -> None:
    """The SDK's provider holds its lock until the response begins; a login must not do so."""
    async with asyncio.timeout(BOUND), protected(site.issuer, json_response=True) as url:
        other = Site(url, site.issuer, site.folder)
        async with MCPToolManager() as manager:
            await manager.add_server("shop", url=other.url, auth="oauth")
            waiting = asyncio.create_task(call(manager, "shop_slow", folder=str(site.folder)))
            await comes((site.folder / "started").exists)
            assert await call(manager) == "ada (read)"
            (site.folder / "go").touch()
            assert await waiting == "done"


async def test_programs_that_log_in_at_the_same_time_ask_once(site: Site) -> None:
    """The second one waits for the first one's login, and uses it."""
    results = await asyncio.gather(*(site.call() for _ in range(3)))
    assert results == ["ada (read)"] * 3
    assert len(site.opened) == 1


async def test_more_permissions_are_requested_when_they_are_needed(site: Site) -> None:
    """`scopes=` replaces what the server asks for; a 403 asks the user for more, once."""
    async with protected(site.issuer, required_scopes=["read", "write"]) as url:
        other = Site(url, site.issuer, site.folder)
        assert await other.call(auth=OAuth(scopes=("read",))) == "ada (read write)"
        first, second = other.opened
        assert first.endswith("&scope=read")
        assert second.endswith("&scope=read+write")


# --- logins that fail


async def test_a_denied_login_is_reported(site: Site) -> None:
    """With the reason of the authorization server, harmless on the page, and only one question."""
    site.issuer.mode = "deny"
    with pytest.raises(MCPConnectionError) as caught:
        await site.call()
    assert "could not be connected" in str(caught.value)
    denied = "the authorization server refused the login: access_denied: Ada <b>declined</b>"
    assert denied in str(caught.value)
    assert caught.value.code == 401
    assert len(site.opened) == 1
    assert "Ada &lt;b&gt;declined&lt;/b&gt;." in (site.folder / "page").read_text()
    assert not site.file.exists() or "tokens" not in site.stored()


async def test_a_denied_login_in_mid_call_fails_the_waiting_calls(site: Site) -> None:
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        await manager.add_server("shop", url=site.url, auth="oauth")
        site.issuer.revoke_all()
        site.issuer.mode = "deny"
        results = await asyncio.gather(*(call(manager) for _ in range(3)))
        assert all("refused the login" in one for one in results), results
        assert len(site.opened) == 2, "one for all calls"
        assert "refused the login" in await call(manager)
        assert len(site.opened) == 2, "the user is not asked again at once"
        site.issuer.mode = "allow"
        await manager.reload_server("shop")
        assert await call(manager) == "ada (read)"


async def test_an_answer_with_a_wrong_state_does_not_count(site: Site) -> None:
    """A page that knows the port can neither log in for the user nor end the login."""
    site.issuer.mode = "wrong_state"
    with pytest.raises(MCPConnectionError, match=r"the login was not completed within 2 s"):
        await site.call(auth=OAuth(timeout=2))
    assert "not for the login that is in progress" in (site.folder / "page").read_text()
    assert site.issuer.counts["token"] == 0


async def test_a_login_that_nobody_ends_is_bounded(site: Site) -> None:
    """The time to log in does not count as time to connect, but it ends."""
    site.issuer.mode = "silent"
    with pytest.raises(MCPConnectionError, match=r"the login was not completed within 1\.5 s"):
        await site.call(auth=OAuth(timeout=1.5), connect_timeout=1.0)


async def test_a_login_can_take_longer_than_connecting(site: Site) -> None:
    site.issuer.mode = "slow"
    assert await site.call(connect_timeout=1.0) == "ada (read)"


async def test_a_cancelled_login_leaves_nothing_behind(site: Site) -> None:
    """Neither a listener nor a lock: the next login works."""
    site.issuer.mode = "silent"
    connecting = asyncio.create_task(site.call())
    async with asyncio.timeout(BOUND):
        await site.issuer.reached.wait()
    connecting.cancel()
    await asyncio.wait({connecting})
    site.issuer.mode = "allow"
    assert await site.call() == "ada (read)"


@pytest.mark.parametrize("interactive", [None, False])
async def test_a_program_without_a_user_names_the_remedy(
    site: Site, monkeypatch: pytest.MonkeyPatch, interactive: bool | None
) -> None:
    if interactive is None:
        for name in DISPLAYS:
            monkeypatch.delenv(name, raising=False)
    with pytest.raises(MCPConnectionError) as caught:
        await site.call(auth=OAuth(interactive=interactive))
    assert str(caught.value) == (
        "MCP server 'shop' could not be connected: it requires a login, and this process has no "
        f"browser or terminal for it. Run: agents-tools mcp login {site.url}"
    )
    assert not site.opened


async def test_an_authorization_server_that_is_down_is_reported(site: Site) -> None:
    site.issuer.is_down = True
    with pytest.raises(MCPConnectionError, match="could not be connected") as caught:
        await site.call()
    assert f"metadata of its authorization server {site.issuer.url}" in str(caught.value)
    assert not site.opened


async def test_an_authorization_server_that_is_gone_is_reported(site: Site) -> None:
    """It is not mistaken for the MCP server, and the refresh works when it is there again."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        await manager.add_server("shop", url=site.url, auth="oauth")
        gone = bound_socket("127.0.0.1", 0)
        place = url_of("127.0.0.1", gone)
        gone.close()
        record = site.stored()
        record["authorization_server"]["token_endpoint"] = f"{place}/token"
        before = site.file.read_text()
        site.file.write_text(json.dumps({**record, "expires_at": 1_000.0}))
        with pytest.raises(MCPConnectionError, match=f"authorization server {place} cannot be"):
            await manager.reload_server("shop")
        site.file.write_text(before)
        site.expire()
        await manager.reload_server("shop")
        assert await call(manager) == "ada (read)"


async def test_a_server_with_a_fixed_token_has_no_login(home: Path) -> None:
    """The message names the other way to authenticate."""
    from tests.mcp.small import listening

    async with listening(mcp_server([slow], auth="a-token-of-sixteen-characters")) as address:
        with pytest.raises(MCPConnectionError) as caught:
            await Site(f"{address}/mcp", AuthorizationServer(), home).call()
    assert "it requires credentials, but offers no login. Pass them in headers=" in str(
        caught.value
    )


async def test_an_authorization_server_without_registration_is_reported(site: Site) -> None:
    site.issuer.registers = False
    with pytest.raises(MCPConnectionError) as caught:
        await site.call()
    assert f"{site.issuer.url} does not register clients" in str(caught.value)
    assert "OAuth(client_id=...)" in str(caught.value)


@pytest.mark.parametrize("mode", ["endless", "hanging"])
async def test_a_hostile_authorization_server_is_bounded(
    site: Site, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "_STEP_TIMEOUT", 1.5)
    site.issuer.mode = mode
    with pytest.raises(MCPConnectionError) as caught:
        await site.call()
    problem = "is longer than 1,048,576 bytes" if mode == "endless" else "cannot be reached for a"
    assert problem in str(caught.value)
    assert site.issuer.counts["metadata"] == 1
    site.issuer.released.set()
    site.issuer.mode = "allow"
    assert await site.call() == "ada (read)"


async def test_an_unprotected_authorization_server_gets_nothing(site: Site) -> None:
    await site.call()
    record = site.stored()
    record["authorization_server"]["token_endpoint"] = "http://login.example/token"  # noqa: S105
    site.file.write_text(json.dumps({**record, "expires_at": 1_000.0}))
    with pytest.raises(MCPConnectionError) as caught:
        await site.call()
    assert str(caught.value) == (
        "MCP server 'shop' could not be connected: its authorization server http://login.example "
        "has no secure address: expected https"
    )


# --- the stored file


@pytest.mark.parametrize(
    "content",
    [
        "",
        slow_case("{"),
        slow_case("[]"),
        '{"version": 9}',
        slow_case('{"version": 1}'),
        slow_case("\xff"),
    ],
)
async def test_a_broken_file_is_replaced(
    site: Site, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    await site.call()
    site.file.write_bytes(content.encode("latin-1"))
    with caplog.at_level(logging.WARNING, "agents_tools"):
        assert await site.call() == "ada (read)"
    assert ("is ignored" in caplog.text) is bool(content)
    assert len(site.opened) == 2
    assert await site.call() == "ada (read)"
    assert len(site.opened) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": 3},
        slow_case({"tokens": {"access_token": 3}}),
        slow_case({"client": {"redirect_uris": "x"}}),
        slow_case({"expires_at": "soon"}),
        slow_case({"authorization_server": {"issuer": "x"}}),
        {"resource": {}},
    ],
)
async def test_a_changed_file_is_replaced(site: Site, change: dict[str, Any]) -> None:
    await site.call()
    site.file.write_text(json.dumps({**site.stored(), **change}))
    assert await site.call() == "ada (read)"
    assert len(site.opened) == 2


async def test_symbolic_links_are_not_followed(site: Site) -> None:
    """A link in the place of the file is replaced, and its target neither read nor written."""
    await site.call()
    other = site.folder / "other.json"
    other.write_text(site.file.read_text())
    site.file.unlink()
    site.file.symlink_to(other)
    before = other.read_text()
    assert await site.call() == "ada (read)"
    assert len(site.opened) == 2
    assert other.read_text() == before
    assert not site.file.is_symlink()


async def test_a_folder_that_others_can_read_is_refused(site: Site) -> None:
    shared = site.folder / "shared"
    shared.mkdir(mode=0o755)
    shared.chmod(0o755)
    with pytest.raises(MCPConnectionError, match=r"other users can read it; run: chmod 700"):
        await site.call(auth=OAuth(storage=shared))
    link = site.folder / "link"
    (site.folder / "private").mkdir(mode=0o700)
    link.symlink_to(site.folder / "private")
    with pytest.raises(MCPConnectionError, match="symbolic link"):
        await site.call(auth=OAuth(storage=link))
    assert await site.call(auth=OAuth(storage=site.folder / "private")) == "ada (read)"
    assert len(list((site.folder / "private").glob("*.json"))) == 1


async def test_a_file_that_others_can_read_becomes_private(site: Site) -> None:
    await site.call()
    site.file.chmod(0o644)
    await site.call()
    assert stat.S_IMODE(site.file.stat().st_mode) == 0o600


async def test_secrets_are_in_no_text(
    site: Site, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither in logs of any level, nor in what the user sees, nor in the text of objects."""
    caplog.set_level(logging.DEBUG)
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        options = OAuth(client_id="me", client_secret="very-secret-words")  # noqa: S106 - a canary
        assert "very-secret" not in repr(options)
        await manager.add_server("shop", url=site.url, auth="oauth")
        await call(manager)
        site.expire()
        await manager.reload_server("shop")
        await call(manager)
        seen = repr(manager.get_server_info("shop"))
    captured = capsys.readouterr()
    for text in (caplog.text, captured.out, captured.err, seen):
        for secret in site.issuer.issued:
            assert secret not in text


# --- the other ways to log in


async def test_a_registered_client_uses_its_own_id(site: Site) -> None:
    """With `client_id`, nothing is registered; its secret goes to the token endpoint only."""
    uri = "http://127.0.0.1:{}/callback"
    sock = bound_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    sock.close()
    secret = "a-secret-of-the-client"  # noqa: S105 - opens nothing
    site.issuer.registered["mine"] = {
        "client_id": "mine",
        "client_secret": secret,
        "redirect_uris": [uri.format(port)],
    }
    options = OAuth(client_id="mine", client_secret=secret, redirect_port=port)
    assert await site.call(auth=options) == "ada (read)"
    assert site.issuer.counts["register"] == 0
    site.expire()
    assert await site.call(auth=options) == "ada (read)"
    assert site.issuer.counts["refresh"] == 1
    assert secret not in site.file.read_text()
    assert await site.call() == "ada (read)", "another client does not get its tokens"
    assert len(site.opened) == 2


async def test_a_metadata_document_identifies_a_client(site: Site) -> None:
    """An authorization server that reads such documents needs no registration."""
    sock = bound_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    sock.close()
    document = "https://app.example/client.json"
    site.issuer.registered[document] = {
        "client_id": document,
        "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
    }
    site.issuer.reads_documents = True
    options = OAuth(client_metadata_url=document, redirect_port=port)
    assert await site.call(auth=options) == "ada (read)"
    assert await site.call(auth=options) == "ada (read)"
    assert site.issuer.counts["register"] == 0
    assert len(site.opened) == 1


async def test_a_port_that_is_taken_is_reported(site: Site) -> None:
    sock = bound_socket("127.0.0.1", 0)
    try:
        port = sock.getsockname()[1]
        with pytest.raises(MCPConnectionError, match=rf"the port {port} for the answer"):
            await site.call(auth=OAuth(redirect_port=port))
    finally:
        sock.close()
    assert not site.opened


async def test_a_registered_port_is_reused_or_registered_again(site: Site) -> None:
    """The redirect URI has to be one that the client registered."""
    await site.call()
    [first] = site.issuer.registered.values()
    await log_in(config_of(site))
    assert site.issuer.counts["register"] == 1, "the port was free again"
    port = int(first["redirect_uris"][0].split(":")[2].split("/")[0])
    taken = bound_socket("127.0.0.1", port)
    try:
        await log_in(config_of(site))
    finally:
        taken.close()
    assert site.issuer.counts["register"] == 2
    assert len(site.opened) == 3


def config_of(site: Site, **options: Any) -> MCPServerConfig:
    return MCPServerConfig(name="shop", transport="http", url=site.url, auth=OAuth(**options))


async def test_logging_in_and_out(site: Site) -> None:
    """A login replaces the stored one; a logout revokes the tokens and deletes them."""
    assert await log_in(config_of(site)) is True
    first = site.stored()["tokens"]["access_token"]
    assert await log_in(config_of(site)) is True
    record = site.stored()["tokens"]
    assert record["access_token"] != first
    assert len(site.opened) == 2
    assert await log_out(config_of(site)) is True
    assert not site.file.exists()
    assert sorted(site.issuer.revoked) == sorted([record["refresh_token"], record["access_token"]])
    assert await log_out(config_of(site)) is False
    site.issuer.mode = "deny"
    with pytest.raises(MCPConnectionError, match="refused the login"):
        await log_in(config_of(site))


async def test_a_login_to_a_server_that_cannot_be_reached_fails(home: Path) -> None:
    """It must not look like a server that requires no login."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # and nobody listens
        site = Site(f"{url_of('127.0.0.1', sock)}/mcp", AuthorizationServer(), home)
        with pytest.raises(MCPConnectionError, match=f"it cannot be reached at {site.url}: "):
            await log_in(config_of(site))


async def test_a_server_without_a_login_is_used_without_one(home: Path) -> None:
    from tests.mcp.small import listening

    async with listening(mcp_server([slow])) as address:
        site = Site(f"{address}/mcp", AuthorizationServer(), home)
        assert await log_in(config_of(site)) is False
        async with asyncio.timeout(BOUND), MCPToolManager() as manager:
            [tool] = await manager.add_server("shop", url=site.url, auth="oauth")
            assert tool.name == "shop_slow"
    assert not site.opened


async def test_a_configuration_file_has_a_login(site: Site) -> None:
    """As a word, or as an object with options; variables are replaced."""
    path = site.folder / "mcp.json"
    path.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "a": {"url": site.url, "auth": "oauth"},
                    "b": {
                        "url": site.url,
                        "auth": {"scopes": ["read"], "clientName": "${NAME:-B}"},
                    },
                    "c": {
                        "disabled": False,
                        "url": site.url,
                        "auth": {"CLIENT_ID": "x", "CLIENT_SECRET": "y"},
                    },
                }
            }
        )
    )
    first, second, third = load_config(path)
    assert first.auth == OAuth()
    assert second.auth == OAuth(scopes=("read",), client_name="B")
    assert third.auth == OAuth(client_id="x", client_secret="y")  # noqa: S106 - opens nothing
    assert "'y'" not in repr(third)
    path.write_text(path.read_text().replace('"disabled": false', '"disabled": true'))
    async with asyncio.timeout(BOUND), MCPToolManager.from_config(path) as manager:
        assert await call(manager, "a_who") == "ada (read)"
        assert await call(manager, "b_who") == "ada (read)"
    assert len(site.opened) == 1


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"url": "https://a.example/mcp", "auth": "a-token"}, 'expects "oauth" or an object'),
        ({"url": "https://a.example/mcp", "auth": 5}, "an auth object of the HTTP client, got int"),
        ({"url": "http://a.example/mcp", "auth": "oauth"}, "requires an https URL"),
        ({"command": "x", "auth": "oauth"}, "requires a server with a 'url'"),
        (
            {"url": "https://a.example", "auth": "oauth", "headers": {"authorization": "x"}},
            "has both auth 'oauth' and a header",
        ),
        ({"url": "https://a.example", "auth": {"scope": ["x"]}}, "Did you mean 'scopes'"),
        ({"url": "https://a.example", "auth": {"scopes": "x"}}, "expects a list of strings"),
        ({"url": "https://a.example", "auth": {"client_secret": "x"}}, "requires client_id="),
        ({"url": "https://a.example", "auth": {"redirect_port": 0}}, "expects a port"),
        ({"url": "https://a.example", "auth": {"timeout": 0}}, "expects a number of seconds"),
        ({"url": "https://a.example", "auth": {"client_id": ""}}, "expects a non-empty string"),
        ({"url": "https://a.example", "auth": {"client_metadata_url": "http://x"}}, "https URL"),
        ({"url": "https://a.example", "auth": {"scopes": ["a b"]}}, "one scope, without blanks"),
    ],
)
def test_wrong_options_are_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError) as caught:
        load_config({"mcpServers": {"shop": fields}})
    assert problem in str(caught.value)
    assert "a-token" not in str(caught.value)


# --- the older HTTP transport


@pytest.fixture
async def sse_site(home: Path) -> AsyncGenerator[Site]:
    """A protected server of the SDK, which is served over SSE."""
    async with authorization_server() as issuer, protected_sse(issuer) as url:
        yield Site(url, issuer, home)


@contextlib.asynccontextmanager
async def protected_sse(issuer: AuthorizationServer) -> AsyncGenerator[str]:
    """Serve a tool over SSE, for callers with a token of the authorization server."""
    import mcp.server.auth.settings as auth_settings
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.auth.provider import AccessToken

    sock = bound_socket("127.0.0.1", 0)
    url = f"{url_of('127.0.0.1', sock)}/sse"
    verifier = Verifier(issuer, url)

    class Tokens:
        async def verify_token(self, token: str) -> AccessToken | None:
            verified = await verifier.verify_token(token)
            if verified is None:
                return None
            return AccessToken(token=token, client_id=verified.client_id, scopes=verified.scopes)

    module, name = ("mcpserver", "MCPServer") if LINE > 1 else ("fastmcp", "FastMCP")
    create: Any = getattr(importlib.import_module(f"mcp.server.{module}"), name)
    settings: Any = auth_settings.AuthSettings
    server = create(
        "shop",
        token_verifier=Tokens(),
        auth=settings(
            issuer_url=issuer.url,
            resource_server_url=url,
            required_scopes=["read"],
            validate_token_resource=False,  # the verifier does it
        ),
    )

    @server.tool()
    def permissions() -> str:
        """Return what the caller can do."""
        token = get_access_token()
        return "nothing" if token is None else " ".join(token.scopes)

    ready = asyncio.Event()
    serving = asyncio.create_task(
        serve_app(server.sse_app(), sock, shutdown_timeout=1, on_ready=ready.set)
    )
    try:
        async with asyncio.timeout(BOUND):
            await ready.wait()
        yield url
    finally:
        serving.cancel()
        await asyncio.wait({serving})


async def test_a_login_over_sse(sse_site: Site) -> None:
    """The client logs in before it opens the stream, and other connections use the same login."""
    for _ in range(2):
        async with asyncio.timeout(BOUND), MCPToolManager() as manager:
            await manager.add_server("shop", url=sse_site.url, auth="oauth")
            assert manager.get_connection("shop").config.transport == "sse"
            assert await call(manager, "shop_permissions") == "read"
    assert len(sse_site.opened) == 1
    assert sse_site.issuer.counts["refresh"] == 0


async def test_a_token_that_expires_during_a_session_over_sse_is_refreshed(sse_site: Site) -> None:
    """The messages of the session are sent with the new token; its stream stays open."""
    issuer = sse_site.issuer
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        await manager.add_server("shop", url=sse_site.url, auth="oauth")
        issuer.withdrawn.update(issuer.issued)
        answers = [call(manager, "shop_permissions") for _ in range(3)]
        assert await asyncio.gather(*answers) == ["read"] * 3
        assert (issuer.counts["refresh"], len(sse_site.opened)) == (1, 1)
        assert manager.get_stats()["by_server"]["shop"]["connects"] == 1


async def test_a_stored_token_that_sse_refuses_is_replaced(sse_site: Site) -> None:
    """With a refresh token, and by asking the user if that is refused, too."""
    for refused, expected in ((False, (1, 1)), (True, (2, 2))):
        async with asyncio.timeout(BOUND), MCPToolManager() as manager:
            await manager.add_server("shop", url=sse_site.url, auth="oauth")
        if refused:
            sse_site.issuer.revoke_all()
        else:
            sse_site.issuer.withdrawn.update(sse_site.issuer.issued)
        async with asyncio.timeout(BOUND), MCPToolManager() as manager:
            await manager.add_server("shop", url=sse_site.url, auth="oauth")
            assert await call(manager, "shop_permissions") == "read"
        assert (sse_site.issuer.counts["refresh"], len(sse_site.opened)) == expected


async def test_a_denied_login_over_sse_is_reported(sse_site: Site) -> None:
    sse_site.issuer.mode = "deny"
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        with pytest.raises(MCPConnectionError, match="refused the login"):
            await manager.add_server("shop", url=sse_site.url, auth="oauth")


# --- the command line


Run = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a thread; return its exit code and its output."""

    async def run(*words: str) -> tuple[int, str, str]:
        async with asyncio.timeout(BOUND):
            code = await asyncio.to_thread(main, ["mcp", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


async def test_the_command_line_logs_in(site: Site, run: Run) -> None:
    code, _, err = await run("login", site.url)
    assert code == 0, err
    assert "Logged in to 127.0.0.1:" in err
    code, out, err = await run("call", "--auth", "oauth", site.url, "who")
    assert (code, out) == (0, "ada (read)\n"), err
    code, out, err = await run("list", "--auth", "oauth", site.url)
    assert code == 0, err
    assert "who" in out
    assert len(site.opened) == 1
    code, _, err = await run("logout", site.url)
    assert code == 0
    assert "Logged out of 127.0.0.1:" in err
    code, _, err = await run("logout", site.url)
    assert (code, "There is no stored login" in err) == (0, True)


async def test_the_command_line_logs_in_to_the_servers_of_a_file(site: Site, run: Run) -> None:
    path = site.folder / "mcp.json"
    servers: dict[str, Any] = {
        "shop": {"url": site.url, "auth": "oauth"},
        "other": {"command": "true"},
    }
    path.write_text(json.dumps({"mcpServers": servers}))
    code, out, err = await run("login", str(path), "--json")
    assert code == 0, err
    assert json.loads(out) == {"shop": {"login_required": True}}
    code, out, err = await run("call", f"{path}:shop", "shop_who")
    assert (code, out) == (0, "ada (read)\n"), err
    code, out, err = await run("logout", f"{path}:shop", "--json")
    assert (code, json.loads(out)) == (0, {"shop": {"deleted": True}})


async def test_the_command_line_reports_what_went_wrong(site: Site, home: Path, run: Run) -> None:
    code, _, err = await run("list", site.url)
    assert code == 2
    assert "--auth oauth" in err
    site.issuer.mode = "deny"
    code, _, err = await run("login", site.url)
    assert code == 2
    assert "refused the login: access_denied" in err
    assert "Traceback" not in err
    site.issuer.mode = "silent"
    code, _, err = await run("login", site.url, "--timeout", "1")
    assert code == 2
    assert "the login was not completed within 1 s" in err
    code, _, err = await run("login", f"{site.issuer.url}/elsewhere")
    assert code == 2
    assert "/elsewhere is not an MCP server" in err
    assert "got HTTP status 404" in err
    path = home / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}))
    code, _, err = await run("login", str(path))
    assert code == 2
    assert 'has no server with "auth": "oauth"' in err
    code, _, err = await run("list", "--auth", "oauth", "true")
    assert "require a URL" in err
