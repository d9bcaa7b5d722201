"""The playground: a local web page to try tools and agents on.

`app` makes it as an ASGI app, `serve` listens with it on an address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.playground.api import PlaygroundApp
from agents_tools.playground.loaded import Loaded, Problem, TargetError
from agents_tools.playground.reload import Workbench
from agents_tools.playground.server import serve

if TYPE_CHECKING:
    from agents_tools._listener import TokenVerifier
    from agents_tools.playground.loaded import Load
    from agents_tools.store import EventStore

__all__ = [
    "Loaded",
    "PlaygroundApp",
    "Problem",
    "TargetError",
    "Workbench",
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
    bench = Workbench(load, target=target)
    bench.load()
    return PlaygroundApp(bench, token=token, store=store, **options)
