"""The playground: a local web page to try tools and agents on.

`app` creates the ASGI app, and `serve` serves it on a socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.playground.api import (
        PlaygroundApp as PlaygroundApp,
        app as app,
    )
    from agents_tools.playground.reload import (
        ReloadingTarget as ReloadingTarget,
    )
    from agents_tools.playground.server import (
        serve as serve,
    )
    from agents_tools.playground.target_state import (
        LoadedTarget as LoadedTarget,
        TargetError as TargetError,
        TargetProblem as TargetProblem,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "api": (
            "PlaygroundApp",
            "app",
        ),
        "reload": ("ReloadingTarget",),
        "server": ("serve",),
        "target_state": (
            "LoadedTarget",
            "TargetError",
            "TargetProblem",
        ),
    },
    requires={"api": "pip install -U 'agents-tools[ui]'"},
)
