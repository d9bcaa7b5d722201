"""Tool calls that wait in a queue for workers on any machine, on DBOS over PostgreSQL or SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.persistence.queue.backend import DBOSBackend as DBOSBackend
    from agents_tools.persistence.queue.errors import QueueError as QueueError
    from agents_tools.persistence.queue.worker import serve_worker as serve_worker

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {"backend": ("DBOSBackend",), "errors": ("QueueError",), "worker": ("serve_worker",)},
    requires={
        "backend": "pip install 'agents-tools[dbos]'",
        "worker": "pip install 'agents-tools[dbos]'",
    },
)
