"""The options that limit the listener and the runs of the apps in this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from agents_tools.server.http_security import ListenerLimits
from agents_tools.tool.options import check_option_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["AppLimits", "split_limits"]


class AppLimits(TypedDict, total=False):
    """The limits of `sse.app`, `ag_ui.app` and `vercel.app`.

    Attributes:
        host: The address that the server listens on. Addresses other than loopback need `auth`.
        max_body: The largest body of a request in bytes; by default 4 MiB, and 16 MiB for
            `vercel.app`, whose requests contain the chat with its images.
        max_concurrency: The largest number of requests at the same time; 2,000 by default.
        body_timeout: The seconds in which the body of a request must arrive; 30 by default.
        required_scopes: The scopes that a bearer token must have.
        keep_runs: See `RunManager`.
        keep_for: See `RunManager`.
        max_running: See `RunManager`.
        secrets: See `RunManager`.
    """

    host: str
    max_body: int
    max_concurrency: int
    body_timeout: float
    required_scopes: Sequence[str]
    keep_runs: int
    keep_for: float
    max_running: int
    secrets: Mapping[str, str] | None


_LISTENER = ("host", "required_scopes")
_REQUESTS = ("max_body", "max_concurrency", "body_timeout")


def split_limits(
    name: str, app: Callable[..., Any], limits: AppLimits, *, max_body: int = 4 << 20
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of the listener and those of the `RunManager`.

    Args:
        name: The public name of `app`.
        app: The function that creates the app, for errors about unknown options.
        limits: The limits that `app` received.
        max_body: The default of `max_body`.

    Raises:
        UserError: A limit is unknown.
    """
    known = (*AppLimits.__annotations__, *(app.__kwdefaults__ or ()))
    check_option_names(f"{name}(...)", limits, known)
    given = dict(limits)
    listener = {key: given.pop(key) for key in _LISTENER if key in given}
    requests: dict[str, Any] = {"max_body": max_body, "max_concurrency": 2_000}
    requests |= {key: given.pop(key) for key in _REQUESTS if key in given}
    return {**listener, "limits": ListenerLimits(**requests)}, given
