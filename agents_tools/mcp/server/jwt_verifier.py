"""Verify bearer tokens that are JSON Web Tokens (JWT) of an authorization server."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools._package import missing_extra
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.mcp.server.jwks import KeySet
from agents_tools.server.host_rules import check_list
from agents_tools.text.escape import type_name

try:
    import jwt
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
except ImportError as error:
    raise missing_extra("JWTVerifier", "mcp", error) from error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["JWTVerifier", "VerifiedToken"]

logger = logging.getLogger("agents_tools.mcp")

_SECRET_SIZES = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The algorithms with a shared secret, and the minimum length of the secret in bytes."""
_FAMILIES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP", "HS": "oct"}
"""The type of key (`kty`) of each family of algorithms, by the first letters of its names."""
_ASYMMETRIC = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
_PublicKey: TypeAlias = (
    "rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | ed448.Ed448PublicKey"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedToken:
    """The verified content of a token.

    Attributes:
        client_id: The client that the token was issued to: its claim `client_id` or `azp`.
        subject: The user: the claim `sub`.
        scopes: The permissions: the claim `scope` or `scp`.
        expires_at: The end of the token's validity with `leeway=`, in seconds since 1970.
        claims: All claims; tools find them in `ctx.context.principal.claims`.
    """

    client_id: str | None
    subject: str | None
    scopes: tuple[str, ...]
    expires_at: float
    claims: Mapping[str, Any] = field(repr=False)


class JWTVerifier:
    """Verifies bearer tokens as JSON Web Tokens: `mcp_server(tools, auth=JWTVerifier(...))`.

    A token must have a valid signature, an expiry time, the issuer and the audience. The key is
    selected by the configuration, never by the token alone: a token that names `none` or an
    algorithm of another kind of key is refused.

    Args:
        jwks_url: The URL of the issuer's key set (JWKS); https, or http on loopback. Without any
            key source, it is read from the metadata of `issuer` (RFC 8414, or OpenID Connect
            Discovery 1.0). The keys are cached for 10 minutes, and fetched again for a token of an
            unknown key, at most 5 times a minute. While the URL cannot be reached, keys from the
            cache continue to be used.
        public_key: The issuer's public key in PEM format, instead of `jwks_url`.
        secret: A secret that the issuer and this server share, instead of `jwks_url`.
        issuer: The accepted values of the claim `iss`.
        audience: The accepted values of the claim `aud`, usually the URL of this server.
        algorithms: The accepted algorithms. By default, those for public keys (RSA, elliptic
            curves, EdDSA) or, with `secret`, HS256.
        required_scopes: Scopes that a token must have, as with `required_scopes=` of the server.
        leeway: The tolerated difference between the clocks, in seconds.

    Raises:
        UserError: An option is invalid, or more than one key source is given.
    """

    def __init__(
        self,
        *,
        jwks_url: str | None = None,
        public_key: str | bytes | None = None,
        secret: str | bytes | None = None,
        issuer: str | Sequence[str],
        audience: str | Sequence[str],
        algorithms: Sequence[str] | None = None,
        required_scopes: Sequence[str] = (),
        leeway: float = 30.0,
    ) -> None:
        sources = {"jwks_url": jwks_url, "public_key": public_key, "secret": secret}
        chosen = [name for name, value in sources.items() if value is not None]
        if len(chosen) > 1:
            raise UserValueError(
                "JWTVerifier(...) expects one of jwks_url=, public_key= and secret=, got "
                f"{' and '.join(f'{name}=' for name in chosen)}."
            )
        self._issuers = _texts("issuer", issuer)
        if not chosen and len(self._issuers) > 1:
            raise UserValueError(
                "JWTVerifier(issuer=...) expects one issuer without jwks_url=, public_key= and "
                f"secret=, got {len(self._issuers)}. Pass the URL of their keys as jwks_url=."
            )
        self._audiences = _texts("audience", audience)
        self._algorithms = _algorithms(algorithms, has_secret=secret is not None)
        self.required_scopes = tuple(check_list("required_scopes", required_scopes))
        if not isinstance(leeway, (int, float)) or isinstance(leeway, bool) or not leeway >= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(
                f"JWTVerifier(leeway=...) expects seconds, 0 or more, got {leeway!r:.60}."
            )
        self._leeway = float(leeway)
        has_key = public_key is not None or secret is not None
        self._keys = None if has_key else KeySet(jwks_url, self._issuers[0])
        self._key: _PublicKey | bytes | None = None
        if public_key is not None:
            self._key = _public_key(public_key)
        elif secret is not None:
            self._key = _secret(secret, self._algorithms)

    async def verify_token(self, token: str) -> VerifiedToken | None:
        """Return the content of a token; `None` if the token is not valid.

        Raises:
            RequestRefused: The keys of the issuer cannot be fetched; the client gets a 503.
        """
        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in self._algorithms:
                raise jwt.InvalidAlgorithmError("its algorithm is not accepted")
            claims = self._decode(token, algorithm, await self._candidates(header, algorithm))
        except jwt.PyJWTError as error:
            logger.debug("A bearer token was refused: %s (%s)", error, type(error).__name__)
            return None
        return VerifiedToken(
            client_id=_text(claims, "client_id") or _text(claims, "azp"),
            subject=_text(claims, "sub"),
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]) + self._leeway,
            claims=claims,
        )

    async def _candidates(self, header: dict[str, Any], algorithm: str) -> list[Any]:
        """Return the keys that can have signed a token, in the form that the library accepts."""
        if self._keys is None:
            return [self._key]
        kid = header.get("kid")
        kind = _FAMILIES[algorithm[:2]]
        found = await self._keys.find(kid if isinstance(kid, str) else None, kind)
        keys: list[Any] = []
        for one in found:
            if one.get("alg", algorithm) == algorithm:
                try:
                    keys.append(jwt.PyJWK(one, algorithm))
                except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
                    logger.debug("A key of the key set cannot be used: %s", type(error).__name__)
        return keys

    def _decode(self, token: str, algorithm: str, keys: list[Any]) -> dict[str, Any]:
        """Return the claims of a token that one of the keys has signed.

        Raises:
            PyJWTError: The token is invalid, or no key fits.
        """
        for key in keys:
            try:
                return jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    audience=self._audiences,
                    issuer=self._issuers,
                    leeway=self._leeway,
                    options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
                )
            except jwt.InvalidSignatureError:
                continue  # without `kid`, any key of the set can have signed the token
            except TypeError as error:  # the key is of another kind than the algorithm
                raise jwt.InvalidKeyError(str(error)) from None
        raise jwt.InvalidSignatureError("no accepted key has signed it")


def _texts(option: str, value: str | Sequence[str]) -> list[str]:
    """Return the values of an option that is one string or several.

    Raises:
        UserTypeError: A value is not a string, or there is none.
    """
    values = [value] if isinstance(value, str) else list(cast("Sequence[object]", value or ()))
    if values and all(isinstance(one, str) and one for one in values):
        return cast("list[str]", values)
    raise UserTypeError(
        f"JWTVerifier({option}=...) expects a string or a list of strings, got {value!r:.60}."
    )


def _algorithms(given: Sequence[str] | None, *, has_secret: bool) -> tuple[str, ...]:
    """Return the accepted algorithms, which fit the kind of key.

    Raises:
        UserValueError: An algorithm is unknown, or belongs to another kind of key.
    """
    known = tuple(_SECRET_SIZES) if has_secret else _ASYMMETRIC
    if given is None:
        return ("HS256",) if has_secret else _ASYMMETRIC
    chosen = _texts("algorithms", given)
    for one in chosen:
        if one not in known:
            source = "secret=" if has_secret else "a public key"
            raise UserValueError(
                f"JWTVerifier(algorithms=...) has {one!r:.60}, which cannot be used with {source}: "
                f"expected {', '.join(known)}."
            )
    return tuple(chosen)


def _public_key(given: str | bytes) -> _PublicKey:
    data = given.encode() if isinstance(given, str) else given
    try:
        key = load_pem_public_key(data)
    except (ValueError, TypeError):
        key = None
    if isinstance(
        key,
        (
            rsa.RSAPublicKey,
            ec.EllipticCurvePublicKey,
            ed25519.Ed25519PublicKey,
            ed448.Ed448PublicKey,
        ),
    ):
        return key
    raise UserValueError(
        "JWTVerifier(public_key=...) expects a public key in PEM format, which begins with "
        "'-----BEGIN PUBLIC KEY-----'. Export the public part of the issuer's key."
    )


def _secret(given: str | bytes, algorithms: Sequence[str]) -> bytes:
    if not isinstance(cast("object", given), (str, bytes)):
        raise UserTypeError(
            f"JWTVerifier(secret=...) expects text or bytes, got {type_name(type(given))}."
        )
    secret = given.encode() if isinstance(given, str) else given
    needed = max(_SECRET_SIZES[one] for one in algorithms)
    if len(secret) < needed:
        raise UserValueError(
            f"JWTVerifier(secret=...) is too short: expected at least {needed} bytes, got "
            f"{len(secret)}. Create one with secrets.token_urlsafe({needed})."
        )
    if secret.lstrip().startswith((b"-----BEGIN", b"ssh-")):
        raise UserValueError(
            "JWTVerifier(secret=...) is a key file: everyone can read a public key, and could sign "
            "tokens with it. Pass it as public_key=."
        )
    return secret


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    return value if isinstance(value, str) and value else None


def _scopes(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scopes, which are in one string by the standard, or in a list."""
    value: object = claims.get("scope", claims.get("scp"))
    if isinstance(value, str):
        return tuple(value.split())
    if isinstance(value, list):
        return tuple(one for one in cast("list[object]", value) if isinstance(one, str))
    return ()
