"""What the HTTP client and a login have in common, without the packages that a login needs."""

from __future__ import annotations

from typing import Any

from agents_tools.text.output import release_text

__all__ = ["LOGIN_KEY", "LoginError", "other_server"]

LOGIN_KEY = "agents_tools.login"
"""The key, in the extensions of an HTTP request, of a function that returns a context manager, in
which the request waits for a login. A request without it does not start a login."""


class LoginError(Exception):
    """A login has failed, or is not possible. The text continues "MCP server X: ..."."""


def other_server(error: Any, url: Any) -> str | None:
    """Return the authorization server, if a request to it has failed instead of one to a URL.

    Args:
        error: A `RequestError` of the HTTP library.
        url: The URL of the request that needed the login.
    """
    try:
        failed = error.request.url
    except RuntimeError:  # the error does not know its request
        return None
    if failed == url:
        return None
    place = release_text(f"{failed.scheme}://{failed.netloc.decode()}", limit=200)
    return f"its authorization server {place}"
