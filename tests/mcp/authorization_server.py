"""A small authorization server: OAuth 2.1 with PKCE, dynamic registration and JWT access tokens.

It checks what a client has to do right (PKCE, registered redirect URIs, rotated refresh tokens),
counts what happens, and misbehaves on request. Nobody is asked at `/authorize`: it redirects at
once.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from tests.mcp.small import listening

_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class SigningKey:
    """A private key with an id, for signing tokens.

    Attributes:
        kid: The id.
        private: The key.
        jwk: The public part, as in a key set.
    """

    def __init__(self, kid: str, private: Any = _RSA, algorithm: str = "RS256") -> None:
        self.kid = kid
        self.private = private
        self.algorithm = algorithm
        public = jwt.get_algorithm_by_name(algorithm).to_jwk(private.public_key())
        self.jwk: dict[str, Any] = {**json.loads(public), "kid": kid, "alg": algorithm}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        headers = {"kid": self.kid, **header}
        headers = {name: value for name, value in headers.items() if value is not None}
        return jwt.encode(claims, self.private, self.algorithm, headers=headers)


class AuthorizationServer:
    """The server, and what it has seen.

    Attributes:
        url: Its address, once it runs: also the issuer.
        counts: How often each endpoint was used, by its name; `refresh` for refreshed tokens.
        mode: What happens at `/authorize`: `allow`, `slow` (allowed after 1.5 seconds), `deny`,
            `wrong_state` (a forged redirect), or `silent` (nothing). With `endless` and `hanging`,
            the metadata has no end or does not come.
        lifetime: The lifetime of access tokens in seconds.
        is_down: Whether the metadata and the keys are not available.
        reads_documents: Whether the id of a client can be the URL of a document about it.
        registers: Whether clients can register themselves.
        registered: The clients by their ids.
        reached: Set when a browser asks for a login.
        released: Ends requests that hang.
        issued: All tokens that were issued.
        revoked: The tokens that clients have revoked.
        withdrawn: The tokens that a protected server has to refuse.
    """

    def __init__(self) -> None:
        self.url = ""
        self.key = SigningKey("first")
        self.keys = [self.key.jwk]
        self.counts: Counter[str] = Counter()
        self.mode = "allow"
        self.lifetime = 3_600
        self.is_down = False
        self.reads_documents = False
        self.registers = True
        self.registered: dict[str, dict[str, Any]] = {}
        self.reached = asyncio.Event()
        self.released = asyncio.Event()
        self.issued: list[str] = []
        self.revoked: list[str] = []
        self.withdrawn: set[str] = set()
        self._codes: dict[str, dict[str, str]] = {}
        self._refresh: dict[str, dict[str, str]] = {}
        routes = [
            Route("/.well-known/oauth-authorization-server", self._metadata),
            Route("/.well-known/oauth-authorization-server/other", self._metadata),
            Route("/register", self._register, methods=["POST"]),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
            Route("/revoke", self._revoke, methods=["POST"]),
            Route("/jwks", self._jwks),
        ]
        self.app = Starlette(routes=routes)

    def claims(self, **more: Any) -> dict[str, Any]:
        """Return the claims of a token that is valid for `audience`."""
        claims = {
            "iss": self.url,
            "aud": "https://tools.example/mcp",
            "sub": "ada",
            "client_id": "a-client",
            "scope": "read",
            "exp": int(time.time()) + 60,
        }
        return {name: value for name, value in {**claims, **more}.items() if value is not None}

    def token(self, **more: Any) -> str:
        return self.key.sign(self.claims(**more))

    def revoke_all(self) -> None:
        """Refuse all refresh tokens from now on, and withdraw all access tokens."""
        self._refresh.clear()
        self.withdrawn.update(self.issued)

    # --- endpoints

    def _seen(self, name: str) -> None:
        self.counts[name] += 1

    async def _metadata(self, _: Request) -> Response:
        self._seen("metadata")
        if self.is_down:
            return PlainTextResponse("down", 500)
        if self.mode == "endless":
            return StreamingResponse(_endless(), media_type="application/json")
        if self.mode == "hanging":
            await self.released.wait()
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                **({"registration_endpoint": f"{self.url}/register"} if self.registers else {}),
                "revocation_endpoint": f"{self.url}/revoke",
                "jwks_uri": f"{self.url}/jwks",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
                "client_id_metadata_document_supported": self.reads_documents,
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def _register(self, request: Request) -> Response:
        self._seen("register")
        asked = await request.json()
        client_id = f"client-{secrets.token_hex(4)}"
        about = {**asked, "client_id": client_id, "client_id_issued_at": int(time.time())}
        if asked.get("token_endpoint_auth_method") not in {None, "none"}:
            about["client_secret"] = f"secret-{secrets.token_urlsafe(16)}"
        self.registered[client_id] = about
        return JSONResponse(about, 201)

    async def _authorize(self, request: Request) -> Response:
        self._seen("authorize")
        self.reached.set()
        asked = dict(request.query_params)
        client = self.registered.get(asked.get("client_id", ""))
        redirect = asked.get("redirect_uri", "")
        if client is None or redirect not in client["redirect_uris"]:
            return PlainTextResponse("unknown client or redirect URI", 400)
        if asked.get("code_challenge_method") != "S256":
            return PlainTextResponse("PKCE is missing", 400)
        answer = {"state": asked.get("state", ""), "iss": self.url}
        if self.mode == "silent":
            return PlainTextResponse("think about it")
        if self.mode == "deny":
            answer |= {"error": "access_denied", "error_description": "Ada <b>declined</b>."}
        else:
            code = secrets.token_urlsafe(16)
            self._codes[code] = {**asked, "redirect_uri": redirect}
            answer["code"] = code
        if self.mode == "slow":
            await asyncio.sleep(1.5)
        if self.mode == "wrong_state":
            answer["state"] = "forged"
        return RedirectResponse(f"{redirect}?{urlencode(answer)}", 302)

    async def _token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            name, _, secret = base64.b64decode(encoded).decode().partition(":")
            form |= {"client_id": name, "client_secret": secret}
        client = self.registered.get(form.get("client_id", ""))
        if client is None or client.get("client_secret") != form.get("client_secret"):
            return JSONResponse({"error": "invalid_client"}, 401)
        if form.get("grant_type") == "refresh_token":
            self._seen("refresh")
            grant = self._refresh.pop(form.get("refresh_token", ""), None)
        else:
            self._seen("token")
            grant = self._codes.pop(form.get("code", ""), None)
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if grant is not None and (
                grant["code_challenge"] != challenge
                or grant["redirect_uri"] != form.get("redirect_uri")
            ):
                grant = None
        if grant is None or grant["client_id"] != form["client_id"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        refresh = f"refresh-{secrets.token_urlsafe(16)}"
        self._refresh[refresh] = grant
        access = self.token(
            aud=grant.get("resource"),
            client_id=form["client_id"],
            scope=grant.get("scope", "read"),
            exp=int(time.time()) + self.lifetime,
            jti=secrets.token_hex(8),
        )
        self.issued += [access, refresh]
        return JSONResponse(
            {
                "access_token": access,
                "token_type": "Bearer",
                "expires_in": self.lifetime,
                "refresh_token": refresh,
                "scope": grant.get("scope", "read"),
            }
        )

    async def _revoke(self, request: Request) -> Response:
        self._seen("revoke")
        form = await request.form()
        self.revoked.append(str(form.get("token")))
        self._refresh.pop(str(form.get("token")), None)
        return Response(status_code=200)

    async def _jwks(self, _: Request) -> Response:
        self._seen("jwks")
        if self.is_down:
            return PlainTextResponse("down", 500)
        return JSONResponse({"keys": self.keys})


async def _endless() -> AsyncGenerator[bytes]:
    while True:
        yield b" " * 65_536
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def authorization_server() -> AsyncGenerator[AuthorizationServer]:
    """Run an authorization server on loopback."""
    server = AuthorizationServer()
    async with listening(server.app) as url:
        server.url = url
        yield server
