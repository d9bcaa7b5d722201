"""The playground: a local web page to try tools and agents on.

`app` makes it as an ASGI app, `serve` listens with it on an address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.playground.api import PlaygroundApp
from agents_tools.playground.reload import ReloadingTarget
from agents_tools.playground.server import serve
from agents_tools.playground.target_state import LoadedTarget, TargetError, TargetProblem

if TYPE_CHECKING:
    from agents_tools.persistence import EventStore
    from agents_tools.playground.target_state import Load
    from agents_tools.server.http_security import TokenVerifier

__all__ = [
    "LoadedTarget",
    "PlaygroundApp",
    "ReloadingTarget",
    "TargetError",
    "TargetProblem",
    "app",
    "serve",
]


def app(
    load: Load,
    *,
    token: str | TokenVerifier,
    store: EventStore | None = None,
    target: str = "",
    **options: Any,
) -> PlaygroundApp:
    """Make the playground of a target, which is loaded at once.

    Args:
        load: Imports the target and gives what it has.
        token: The bearer token that the page sends; or what verifies tokens.
        store: Keeps the runs; in memory where there is none.
        target: What the target is called.
        **options: What `PlaygroundApp` takes.
    """
    bench = ReloadingTarget(load, target=target)
    bench.load()
    return PlaygroundApp(bench, token=token, store=store, **options)
