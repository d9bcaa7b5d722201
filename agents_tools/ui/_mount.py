"""Serve several apps from one server."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.routing import Mount

from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from starlette.types import ASGIApp

__all__ = ["mount"]


class MountedApps(Starlette):
    """The app that `mount` returns: several apps, each below its path."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        for path in apps:
            if not path.startswith("/") or (path != "/" and path.endswith("/")):
                raise UserValueError(
                    f"mount(apps): a path is invalid: expected for example '/chat', got {path!r}."
                )
        self._apps = list(apps.values())
        longest_first = sorted(apps.items(), key=lambda item: len(item[0]), reverse=True)
        routes = [Mount(path, app) for path, app in longest_first]
        super().__init__(routes=routes, lifespan=self.lifespan)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncGenerator[None]:
        """Start and stop all apps with an outer app: `FastAPI(lifespan=apps.lifespan)`.

        Args:
            app: The outer app.
        """
        async with contextlib.AsyncExitStack() as stack:
            for inner in self._apps:
                if isinstance(inner, Starlette):
                    await stack.enter_async_context(inner.router.lifespan_context(app or self))
            yield


def mount(apps: Mapping[str, ASGIApp]) -> MountedApps:
    """Create an app that serves several apps, and starts and stops them together.

    ::

        app = mount({"/chat": vercel.app(helper), "/runs": sse.app([take_stock])})
        serve(app)

    Args:
        apps: Apps of this library, or other ASGI apps, by path; `/` for all other paths. Only the
            lifespan of Starlette applications, which FastAPI's and those of this library are, is
            run.

    Raises:
        UserError: A path other than `/` does not begin with a slash, or ends with one.
    """
    return MountedApps(apps)
