"""The options of a login to an MCP server with OAuth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text.escape import type_name
from agents_tools.tool.options import check_option_names

if TYPE_CHECKING:
    import os

__all__ = ["OAuth", "oauth_of"]

_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """A login with OAuth in the user's browser; `auth="oauth"` is `auth=OAuth()`.

    The login and the registration of the client are stored in a file of the user, and used by all
    programs until `agents-tools mcp logout`. Expired tokens are refreshed without the user.

    Attributes:
        client_name: The name of the program, which the user sees when logging in.
        scopes: The permissions to request; by default those that the server names.
        client_id: The id of a client that is registered at the authorization server. By default,
            the client registers itself.
        client_secret: The secret of that client, if it has one.
        client_metadata_url: The https URL of the client's metadata document. It is the id of the
            client at authorization servers that support such documents.
        redirect_port: The loopback port to which the browser returns; by default a free one.
        storage: The folder for logins; by default one in the user's folder for program state.
        timeout: Seconds that the user has to log in.
        interactive: Whether the user can be asked to log in. If false, only stored logins are
            used, which fits servers. By default, the user is asked if there is a terminal or a
            browser.
    """

    client_name: str = "agents-tools"
    scopes: tuple[str, ...] = ()
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_metadata_url: str | None = None
    redirect_port: int | None = None
    storage: str | os.PathLike[str] | None = None
    timeout: float = 300.0
    interactive: bool | None = None

    def __post_init__(self) -> None:
        for name in ("client_name", "client_id", "client_secret", "client_metadata_url"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise UserTypeError(f"OAuth({name}=...) expects a non-empty string.")
        scopes: Any = self.scopes
        if isinstance(scopes, str) or not isinstance(scopes, (list, tuple, set, frozenset)):
            raise UserTypeError(
                f"OAuth(scopes=...) expects a list of strings, got {type(scopes).__name__}."
            )
        object.__setattr__(self, "scopes", tuple(cast("list[str]", scopes)))
        if not all(isinstance(one, str) and one and " " not in one for one in self.scopes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError("OAuth(scopes=...) expects one scope, without blanks, per string.")
        if self.client_secret is not None and self.client_id is None:
            raise UserValueError("OAuth(client_secret=...) requires client_id=.")
        url = self.client_metadata_url
        if url is not None and not url.startswith("https://"):
            raise UserValueError(
                f"OAuth(client_metadata_url=...) expects an https URL, got {url!r:.200}."
            )
        port: object = self.redirect_port
        if port is not None and (type(port) is not int or not 0 < port <= _MAX_PORT):
            raise UserValueError(
                f"OAuth(redirect_port=...) expects a port from 1 to {_MAX_PORT}, got {port!r:.60}."
            )
        seconds: Any = self.timeout
        if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not seconds > 0:
            raise UserValueError(
                f"OAuth(timeout=...) expects a number of seconds above 0, got {seconds!r:.60}."
            )


def oauth_of(server: str, value: object) -> object:
    """Return the authentication of a server: `OAuth` for its short forms, else the value.

    Args:
        server: The name of the server, for messages.
        value: `"oauth"`, a mapping with options of `OAuth`, or an object for the HTTP client. Files
            of other programs have the options in other spellings, such as `CLIENT_ID`.

    Raises:
        UserError: The value is another string, or an option is invalid.
    """
    if value == "oauth":
        return OAuth()
    if isinstance(value, str):
        # The text is not repeated: some programs put a token here.
        raise UserValueError(
            f"MCP server {server!r}: 'auth' expects \"oauth\" or an object with options. Write a "
            'token into "headers": {"Authorization": "Bearer ${NAME}"}.'
        )
    if not isinstance(value, Mapping):
        kinds = (OAuth, tuple, type(None))  # a pair is a user and a password
        if isinstance(value, kinds) or hasattr(value, "async_auth_flow") or callable(value):
            return cast("object", value)
        raise UserTypeError(
            f"MCP server {server!r}: 'auth' expects \"oauth\", OAuth(...) or an auth object of the "
            f"HTTP client, got {type_name(type(value))}."
        )
    options = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): option
        for name, option in cast("Mapping[str, Any]", value).items()
    }
    check_option_names(
        f"MCP server {server!r}: 'auth'", options, [one.name for one in fields(OAuth)]
    )
    return OAuth(**options)
