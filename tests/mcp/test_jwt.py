"""Bearer tokens that are JSON Web Tokens, verified by a served MCP server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import importlib
import json
import logging
import time
from collections.abc import AsyncGenerator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from agents_tools import ToolContext, function_tool
from agents_tools.errors import UserError
from agents_tools.mcp import JWTVerifier, MCPToolManager, mcp_server
from agents_tools.mcp.server import jwks
from agents_tools.server.http_security import RequestRefused
from tests.cli.conftest import FIXTURE
from tests.cli.test_cli_process import COMMAND
from tests.mcp.authorization_server import AuthorizationServer, SigningKey, authorization_server
from tests.mcp.small import LINE, listening

http: Any = importlib.import_module("httpx" if LINE == 1 else "httpx2")

AUDIENCE = "https://tools.example/mcp"
BOUND = 45.0
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2025-11-25",
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@function_tool
def who(ctx: ToolContext[Any]) -> dict[str, Any]:
    """Return the caller."""
    principal = ctx.context.principal
    return {
        "client": principal.client_id,
        "user": principal.subject,
        "scopes": principal.scopes,
        "role": principal.claims.get("role"),
    }


@contextlib.asynccontextmanager
async def serving(verifier: Any, **options: Any) -> AsyncGenerator[str]:
    async with (
        asyncio.timeout(BOUND),
        listening(mcp_server([who], auth=verifier, **options)) as address,
    ):
        yield f"{address}/mcp"


async def status(url: str, token: str) -> int:
    return (await answer(url, token)).status_code


async def answer(url: str, token: str | None) -> Any:
    headers = HEADERS if token is None else {**HEADERS, "Authorization": f"Bearer {token}"}
    async with http.AsyncClient(timeout=BOUND) as client:
        return await client.post(url, json=LIST, headers=headers)


def verifier_of(issuer: AuthorizationServer, **options: Any) -> JWTVerifier:
    settings: dict[str, Any] = {
        "jwks_url": f"{issuer.url}/jwks",
        "issuer": issuer.url,
        "audience": AUDIENCE,
    }
    return JWTVerifier(**{**settings, **options})


def pem(key: Any) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def unsigned(claims: dict[str, Any], **header: Any) -> str:
    parts = [json.dumps(part).encode() for part in ({"typ": "JWT", **header}, claims)]
    return ".".join([base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts] + [""])


async def test_a_tool_sees_the_caller_of_a_verified_token() -> None:
    """The client, the user, the scopes and all claims are those of the token."""
    async with authorization_server() as issuer, serving(verifier_of(issuer)) as url:
        headers = {"Authorization": f"Bearer {issuer.token(role='admin', scope='read write')}"}
        async with MCPToolManager() as manager:
            [tool] = await manager.add_server("shop", url=url, headers=headers)
            outcome = await tool.call(ToolContext(None), "{}")
        assert json.loads(str(outcome.output)) == {
            "client": "a-client",
            "user": "ada",
            "scopes": ["read", "write"],
            "role": "admin",
        }
        assert issuer.counts["jwks"] == 1, "the keys are cached"


async def test_only_valid_tokens_are_accepted() -> None:
    """Each wrong or missing claim, and each wrong signature, is answered with 401."""
    other = SigningKey("first", ec.generate_private_key(ec.SECP256R1()), "ES256")
    async with authorization_server() as issuer, serving(verifier_of(issuer)) as url:
        now = int(time.time())
        good = issuer.token()
        head, body, signature = good.split(".")
        refused = {
            "expired": issuer.token(exp=now - 60),
            "not valid yet": issuer.token(nbf=now + 300),
            "issued in the future": issuer.token(iat=now + 300),
            "without an expiry": issuer.token(exp=None),
            "without an audience": issuer.token(aud=None),
            "for another audience": issuer.token(aud="https://other.example/mcp"),
            "of another issuer": issuer.token(iss="https://evil.example"),
            "without an issuer": issuer.token(iss=None),
            "unsigned": unsigned(issuer.claims(), alg="none", kid="first"),
            "unsigned in capitals": unsigned(issuer.claims(), alg="NONE", kid="first"),
            "without a signature": f"{head}.{body}.",
            "with other claims": f"{head}.{issuer.token(sub='eve').split('.')[1]}.{signature}",
            "signed by another key": other.sign(issuer.claims()),
            "not a token": "a-token-of-sixteen-characters",
            "with a wrong subject": issuer.token(sub=["ada"]),
        }
        for name, token in refused.items():
            response = await answer(url, token)
            assert response.status_code == 401, name
            assert 'error="invalid_token"' in response.headers["www-authenticate"], name
            assert token not in response.text
        assert await status(url, good) == 200
        assert await status(url, issuer.token(exp=now - 10)) == 200, "within the leeway"
        assert await status(url, issuer.token(aud=["https://x.example", AUDIENCE])) == 200


async def test_a_public_key_is_not_accepted_as_a_shared_secret() -> None:
    """A token that is signed with the public key as an HMAC secret is refused."""
    key = SigningKey("first")
    public = pem(key.private)
    async with authorization_server() as issuer:
        # By hand, because the library refuses to sign with such a secret.
        signed, _, _ = unsigned(issuer.claims(), alg="HS256", kid="first").rpartition(".")
        mac = hmac.new(public, signed.encode(), hashlib.sha256).digest()
        confused = f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
        oct_key = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(b"s" * 32).decode()}
        issuer.keys = [key.jwk, oct_key]
        shared = jwt.encode(issuer.claims(), b"s" * 32, "HS256", headers={"kid": "shared"})
        common: dict[str, Any] = {"issuer": issuer.url, "audience": AUDIENCE}
        for verifier in (verifier_of(issuer), JWTVerifier(public_key=public, **common)):
            async with serving(verifier) as url:
                assert await status(url, confused) == 401
                assert await status(url, shared) == 401
                assert await status(url, key.sign(issuer.claims())) == 200
        async with serving(JWTVerifier(secret=b"s" * 32, **common)) as url:
            assert await status(url, shared) == 200
            assert await status(url, key.sign(issuer.claims())) == 401


@pytest.mark.parametrize(
    ("private", "algorithm"),
    [
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
        (SigningKey("rsa").private, "PS256"),
    ],
)
async def test_keys_of_each_kind_are_accepted(private: Any, algorithm: str) -> None:
    """From a key set, and as a PEM file; an algorithm that is not listed is refused."""
    key = SigningKey("one", private, algorithm)
    async with authorization_server() as issuer:
        issuer.keys = [key.jwk]
        token = key.sign(issuer.claims())
        common: dict[str, Any] = {"issuer": issuer.url, "audience": AUDIENCE}
        for verifier in (
            verifier_of(issuer),
            JWTVerifier(public_key=pem(private).decode(), **common),
        ):
            claims = await verifier.verify_token(token)
            assert claims is not None
            assert claims.subject == "ada"
        assert await verifier_of(issuer, algorithms=["RS256"]).verify_token(token) is None


async def test_a_token_without_a_key_id_is_checked_with_all_keys() -> None:
    other = SigningKey("second", ec.generate_private_key(ec.SECP256R1()), "ES256")
    third = SigningKey("third", ec.generate_private_key(ec.SECP256R1()), "ES256")
    async with authorization_server() as issuer:
        issuer.keys = [issuer.key.jwk, other.jwk, {**third.jwk, "use": "enc"}]
        verifier = verifier_of(issuer)
        assert await verifier.verify_token(other.sign(issuer.claims(), kid=None)) is not None
        assert await verifier.verify_token(third.sign(issuer.claims(), kid=None)) is None


async def test_keys_are_found_through_the_issuer(caplog: pytest.LogCaptureFixture) -> None:
    """RFC 8414 or OpenID Connect Discovery; metadata of another issuer are not accepted."""
    async with authorization_server() as issuer:
        token = issuer.token()
        verifier = verifier_of(issuer, jwks_url=None)
        assert await verifier.verify_token(token) is not None
        assert (issuer.counts["metadata"], issuer.counts["jwks"]) == (1, 1)
        for path in ("/realms/tea", "/other"):
            wrong = JWTVerifier(issuer=f"{issuer.url}{path}", audience=AUDIENCE)
            with pytest.raises(RequestRefused):
                await wrong.verify_token(token)
        assert "its issuer is another one" in caplog.text
        assert f"{issuer.url}/realms/tea/.well-known/openid-configuration" in caplog.text


async def test_new_keys_are_fetched_with_a_bound() -> None:
    """A rotated key is found at once; a flood of unknown keys causes few fetches."""
    new = SigningKey("second", ec.generate_private_key(ec.SECP256R1()), "ES256")
    async with authorization_server() as issuer, serving(verifier_of(issuer)) as url:
        assert await status(url, issuer.token()) == 200
        issuer.keys = [new.jwk]
        assert await status(url, new.sign(issuer.claims())) == 200
        assert issuer.counts["jwks"] == 2
        for number in range(20):
            assert await status(url, new.sign(issuer.claims(), kid=f"k{number}")) == 401
        assert issuer.counts["jwks"] == 5
        assert await status(url, new.sign(issuer.claims())) == 200
        assert await status(url, issuer.token()) == 401, "the old key is gone"


async def test_concurrent_requests_share_one_fetch() -> None:
    async with authorization_server() as issuer:
        verifier, token = verifier_of(issuer), issuer.token()
        found = await asyncio.gather(*(verifier.verify_token(token) for _ in range(20)))
        assert all(found)
        assert issuer.counts["jwks"] == 1


async def test_an_unreachable_key_set_is_a_503_and_does_not_end_known_keys(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can tell whether a token is valid without keys; keys from before remain valid."""
    monkeypatch.setattr(jwks, "_CACHE_TIME", 0.0)
    async with authorization_server() as issuer, serving(verifier_of(issuer)) as url:
        issuer.is_down = True
        with caplog.at_level(logging.WARNING, "agents_tools"):
            response = await answer(url, issuer.token())
        assert response.status_code == 503
        assert response.headers["retry-after"] == "10"
        assert "keys of the authorization server" in response.text
        assert "cannot be fetched: it answered with HTTP status 500" in caplog.text
        issuer.is_down = False
        assert await status(url, issuer.token()) == 200
        issuer.is_down = True
        before = issuer.counts["jwks"]
        assert await status(url, issuer.token()) == 200, "known keys are used on"
        assert issuer.counts["jwks"] == before + 1, "the cache has expired"
        assert await status(url, issuer.token()) == 200
        assert issuer.counts["jwks"] == before + 1, "the next attempt has to wait"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("no json", "Expecting value"),
        ('{"keys": 3}', 'has no list "keys"'),
        ("[1]", 'has no list "keys"'),
        ('{"keys": [' + "0," * (1 << 20) + "0]}", "longer than 1,048,576 bytes"),
    ],
)
async def test_a_wrong_key_set_is_reported(
    content: str, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def page(_: Any) -> Response:
        return Response(content, media_type="application/json")

    async with (
        authorization_server() as issuer,
        listening(Starlette(routes=[Route("/keys", page)])) as other,
    ):
        with caplog.at_level(logging.WARNING, "agents_tools"):
            async with serving(verifier_of(issuer, jwks_url=f"{other}/keys")) as url:
                assert await status(url, issuer.token()) == 503
        assert problem in caplog.text


async def test_unusable_keys_of_a_set_are_skipped() -> None:
    async with authorization_server() as issuer:
        broken = [
            1,
            {"kid": "first", "kty": "RSA"},
            {"kid": "first", "kty": "RSA", "n": "!", "e": 3},
        ]
        issuer.keys = [*broken, issuer.key.jwk]  # type: ignore[list-item]
        assert await verifier_of(issuer).verify_token(issuer.token()) is not None


async def test_missing_scopes_and_the_way_to_a_token_are_reported() -> None:
    """401 and 403 name the scopes and the metadata that a client needs to log in (RFC 9728)."""
    async with authorization_server() as issuer:
        verifier = verifier_of(issuer, required_scopes=["read", "write"])
        options: Any = {"authorization_servers": [issuer.url], "resource_url": AUDIENCE}
        async with serving(verifier, **options) as url:
            metadata = "https://tools.example/.well-known/oauth-protected-resource/mcp"
            missing = await answer(url, None)
            assert missing.status_code == 401
            assert missing.headers["www-authenticate"] == (
                f'Bearer scope="read write", resource_metadata="{metadata}"'
            )
            narrow = await answer(url, issuer.token(scope="read"))
            assert narrow.status_code == 403
            assert narrow.headers["www-authenticate"] == (
                'Bearer error="insufficient_scope", scope="read write", '
                f'resource_metadata="{metadata}"'
            )
            for claims in ({"scope": "write read"}, {"scope": None, "scp": ["read", "write"]}):
                assert await status(url, issuer.token(**claims)) == 200
            async with http.AsyncClient() as client:
                found = await client.get(
                    url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
                )
            assert found.json()["scopes_supported"] == ["read", "write"]
            assert found.json()["authorization_servers"] == [issuer.url]


@pytest.mark.slow
async def test_the_command_line_accepts_the_tokens_of_an_issuer() -> None:
    """`agents-tools serve` sends clients to the issuer, and checks audience and scope."""
    async with asyncio.timeout(BOUND), authorization_server() as issuer:
        words = ["serve", FIXTURE, "--transport", "http", "--port", "0", "--json"]
        words += ["--jwt-issuer", issuer.url, "--jwt-audience", AUDIENCE, "--jwt-scope", "tools"]
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *words, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            started = json.loads(await process.stdout.readline())
            assert started["token"] is True
            url = started["url"]
            assert await status(url, issuer.token(scope="tools")) == 200
            assert await status(url, issuer.token(scope="read")) == 403
            assert await status(url, issuer.token(scope="tools", aud="https://other")) == 401
            refused = await answer(url, None)
            assert refused.status_code == 401
            assert "resource_metadata=" in refused.headers["www-authenticate"]
        finally:
            process.terminate()
            await process.wait()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"issuer": "http://a.example"}, "JWTVerifier(issuer=...) expects an https URL"),
        ({"issuer": ["https://a", "https://b"]}, "expects one issuer without jwks_url="),
        ({"jwks_url": "https://a.example/k", "secret": "s" * 32}, "got jwks_url= and secret="),
        ({"jwks_url": "http://a.example/keys"}, "expects an https URL"),
        ({"jwks_url": "ftp://a.example/keys"}, "expects an https URL"),
        ({"secret": "short"}, "too short: expected at least 32 bytes, got 5"),
        ({"secret": 7}, "expects text or bytes, got int"),
        ({"secret": "s" * 32, "algorithms": ["HS512"]}, "expected at least 64 bytes"),
        (
            {"secret": "s" * 32, "algorithms": ["RS256"]},
            "'RS256', which cannot be used with secret=",
        ),
        ({"public_key": "no key"}, "expects a public key in PEM format"),
        ({"secret": pem(SigningKey("x").private)}, "is a key file"),
        ({"jwks_url": "https://a.example/k", "algorithms": ["none"]}, "'none'"),
        ({"jwks_url": "https://a.example/k", "algorithms": ["HS256"]}, "'HS256'"),
        ({"jwks_url": "https://a.example/k", "algorithms": []}, "algorithms=...) expects a string"),
        ({"jwks_url": "https://a.example/k", "issuer": ""}, "issuer=...) expects a string"),
        ({"jwks_url": "https://a.example/k", "audience": []}, "audience=...) expects a string"),
        ({"jwks_url": "https://a.example/k", "leeway": -1}, "expects seconds, 0 or more"),
        ({"jwks_url": "https://a.example/k", "required_scopes": "read"}, "required_scopes= is a"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], problem: str) -> None:
    settings: dict[str, Any] = {"issuer": "https://a.example", "audience": AUDIENCE, **options}
    with pytest.raises(UserError) as caught:
        JWTVerifier(**settings)
    assert problem in str(caught.value)
    assert "s" * 32 not in str(caught.value)
