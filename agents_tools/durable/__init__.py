"""Runs that survive the end of their process: what they have done is kept, and never done again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.durable._store import (
    DurableRun,
    DurableStep,
    DurableStore,
    DurableStoreError,
    KeptRun,
    RunInUseError,
    RunStatus,
    StepLostError,
)

if TYPE_CHECKING:
    from agents_tools.durable.dbos import DBOSBackend, DBOSDurableStore
    from agents_tools.durable.local import LocalDurableStore

__all__ = [
    "DBOSBackend",
    "DBOSDurableStore",
    "DurableRun",
    "DurableStep",
    "DurableStore",
    "DurableStoreError",
    "KeptRun",
    "LocalDurableStore",
    "RunInUseError",
    "RunStatus",
    "StepLostError",
]

_LATE = {"DBOSBackend": "dbos", "DBOSDurableStore": "dbos", "LocalDurableStore": "local"}


def __getattr__(name: str) -> Any:
    """Import a store when it is first asked for.

    Raises:
        UserError: The extra that it needs is not installed.
    """
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {
            "dbos",
            "psycopg",
            "sqlalchemy",
        }:
            raise
        from agents_tools.errors import UserError

        raise UserError(
            f"{name} needs DBOS: pip install 'agents-tools[dbos]'. LocalDurableStore needs nothing."
        ) from error
