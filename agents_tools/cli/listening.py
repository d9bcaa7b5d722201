"""The token and the address of commands that listen."""

from __future__ import annotations

import os
import re

from agents_tools.cli.errors import CommandError
from agents_tools.errors import UserError
from agents_tools.server.http_security import check_binding

__all__ = ["check_host", "token_in"]


def token_in(variable: str | None, *, example: str) -> str | None:
    """Return the token in an environment variable; `None` if no variable is named.

    Args:
        variable: The name of the variable.
        example: A command line that sets a variable and names it, for the error message.

    Raises:
        CommandError: The name is not that of a variable, or the variable is not set.
    """
    if variable is None:
        return None
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise CommandError(
            "--auth-token-env expects the name of a variable, not the token itself.", hint=example
        )
    token = os.environ.get(variable)
    if not token:
        raise CommandError(f"the variable {variable} is not set.")
    return token


def check_host(host: str, auth: object, *, risk: str) -> None:
    """Refuse to listen on an address that other machines can reach without a token.

    Args:
        host: The address.
        auth: The token that the user has set, or a verifier of tokens; `None` without one.
        risk: The consequence, for the error message.

    Raises:
        CommandError: The address is not loopback, and there is no token.
    """
    try:
        check_binding(host, auth=auth, setting="auth")
    except UserError as error:
        raise CommandError(
            f"with {host!r} and no token of yours, {risk}.",
            hint="Put a token of at least 16 characters into a variable, and name the variable: "
            "--auth-token-env NAME. Or listen on 127.0.0.1.",
        ) from error
