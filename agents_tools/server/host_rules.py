"""Decide which Host and Origin headers a listener accepts."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "DEFAULT_PORTS",
    "check_list",
    "describe_refused_origin",
    "host_rule",
    "is_loopback",
    "is_other_machine",
    "origin_rule",
    "parse_authority",
    "parse_origin",
    "show_header",
]

DEFAULT_PORTS = {"http": "80", "https": "443"}
_MAX_SHOWN = 100
_MAX_PORT = 65_535


def show_header(value: str) -> str:
    """Return a header as it appears in a message: masked, shortened and escaped."""
    kept = release_text(value, to="program", limit=_MAX_SHOWN, patterns=True)
    return release_text(repr(kept))


def parse_authority(text: str) -> tuple[str, str] | None:
    """Return the name and the port of a Host header; `None` if it is malformed."""
    found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", text.lower())
    if found is None or int(found[2] or 0) > _MAX_PORT:
        return None
    return found[1].removesuffix("."), found[2] or ""


def parse_origin(text: str) -> tuple[str, str, str] | None:
    """Return the scheme, name and port of an Origin header; `None` if it is malformed."""
    scheme, mark, rest = text.lower().partition("://")
    authority = parse_authority(rest)
    if not mark or authority is None or re.fullmatch("[a-z][a-z0-9+.-]*", scheme) is None:
        return None
    name, port = authority
    return scheme, name, "" if port == DEFAULT_PORTS.get(scheme) else port


def describe_refused_origin(origins: list[str]) -> str:
    """Return the error message for Origin headers that are not allowed."""
    shown = " and ".join(map(show_header, origins[:3]))
    if len(origins) > 1:
        return f"The request has several Origin headers: expected at most one, got {shown}."
    if parse_origin(origins[0]) is None:
        return (
            f"Web pages with the Origin header {shown} cannot call this server, because it does "
            "not name a host. Serve the page over HTTP and add its origin to allowed_origins=."
        )
    return (
        f"Web pages with the Origin header {shown} are not allowed to call this server. To allow "
        "them, add the origin to allowed_origins=."
    )


def is_other_machine(address: str) -> bool:
    """Return whether an IP address belongs to another machine."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False  # not an IP address: a Unix socket, or a test client
    mapped = getattr(parsed, "ipv4_mapped", None)
    return not (mapped or parsed).is_loopback


def is_loopback(name: str) -> bool:
    """Return whether a host name or an IP address means this machine."""
    name = name.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_list(setting: str, values: Iterable[str]) -> Iterable[str]:
    """Return the values of a setting.

    Raises:
        UserTypeError: The value is one string, which would be read as a list of characters.
    """
    if isinstance(values, str):
        raise UserTypeError(
            f"{setting}= is a string: expected a list of strings. Write [{values!r:.80}]."
        )
    return values


def host_rule(allowed: str) -> Callable[[str, str], bool]:
    """Return a function that checks a name and a port against an entry of `allowed_hosts`.

    Raises:
        UserValueError: The entry is malformed.
    """
    text = allowed.removesuffix(":*")
    is_wildcard = text.startswith("*.")
    authority = parse_authority(text.removeprefix("*."))
    if authority is None or not authority[0]:
        raise UserValueError(
            "allowed_hosts= has an invalid entry: expected a name such as 'example.com', "
            "'example.com:8000', '*.example.com' or '[fd00::1]', got "
            f"{allowed!r:.80}."
        )
    name, port = authority

    def matches(host: str, host_port: str) -> bool:
        is_known = host.endswith("." + name) if is_wildcard else host == name
        return is_known and port in {"", host_port}

    return matches


def origin_rule(allowed: str) -> tuple[str, str, str]:
    """Return the scheme, name and port of an entry of `allowed_origins`.

    Raises:
        UserValueError: The entry is malformed.
    """
    origin = parse_origin(allowed.removesuffix("/"))
    if origin is None or not origin[1]:
        raise UserValueError(
            "allowed_origins= has an invalid entry: expected an origin such as "
            f"'https://example.com' or 'http://10.0.0.5:3000', got {allowed!r:.80}."
        )
    return origin
