"""The playground: a local web page to try tools and agents on.

`app` creates the ASGI app, and `serve` serves it on a socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.persistence import RunStore
    from agents_tools.playground.api import PlaygroundApp as PlaygroundApp
    from agents_tools.playground.reload import ReloadingTarget as ReloadingTarget
    from agents_tools.playground.server import serve as serve
    from agents_tools.playground.target_state import (
        Load,
        LoadedTarget as LoadedTarget,
        TargetError as TargetError,
        TargetProblem as TargetProblem,
    )
    from agents_tools.server.http_security import TokenVerifier

__getattr__, __dir__, _ = lazy_exports(
    __name__,
    {
        "api": ("PlaygroundApp",),
        "reload": ("ReloadingTarget",),
        "server": ("serve",),
        "target_state": ("LoadedTarget", "TargetError", "TargetProblem"),
    },
    requires={"api": "pip install -U 'agents-tools[ui]'"},
)

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
    store: RunStore | None = None,
    target: str = "",
    **options: Any,
) -> PlaygroundApp:
    """Create the playground of a target and load the target.

    Args:
        load: Imports the target and returns its tools and agents.
        token: The bearer token that the page sends, or a token verifier.
        store: Stores the runs; in memory by default.
        target: The name of the target.
        **options: Other options of `PlaygroundApp`.
    """
    from agents_tools.playground import PlaygroundApp
    from agents_tools.playground.reload import ReloadingTarget

    bench = ReloadingTarget(load, target=target)
    bench.load()
    return PlaygroundApp(bench, token=token, store=store, **options)
