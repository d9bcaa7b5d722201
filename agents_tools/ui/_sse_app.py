"""The ASGI app of `sse.app`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.server.application import Application
from agents_tools.server.http_security import inner_path
from agents_tools.server.run_manager import RunManager, runs_for
from agents_tools.server.static_files import handlers_of
from agents_tools.ui._run_routes import RunRoutes, client_files, is_stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.server.run_manager import Target

__all__ = ["SseApp"]


class SseApp(Application):
    """The app that `sse.app` returns: an agent or tools over HTTP.

    Attributes:
        runs: The runs.
    """

    def __init__(
        self,
        target: Target,
        *,
        heartbeat: float | None,
        auth: Any,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str],
        runs: RunManager | None,
        max_turns: int | None,
        listener: Mapping[str, Any],
        **options: Any,
    ) -> None:
        self.runs = runs_for(runs, **options)
        routes = RunRoutes(
            target,
            self.runs,
            heartbeat=heartbeat,
            max_turns=max_turns,
            has_auth=auth is not None,
        )
        self.runs.offer(target, max_turns=max_turns)
        files = client_files()
        super().__init__(
            {**routes.handlers(), **handlers_of(files)},
            on_start=self.runs.restore if runs is None else None,
            on_stop=self.runs.aclose if runs is None else None,
            auth=auth,
            allowed_hosts=allowed_hosts,
            allowed_origins=allowed_origins,
            is_stream=lambda scope: is_stream(scope, inner_path(scope)),
            protect=lambda path: path not in files,  # a page cannot import with a token
            **listener,
        )
