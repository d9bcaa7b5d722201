"""What every durable store can do, and what it says of the runs it keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from agents_tools.errors import AgentsToolsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

__all__ = [
    "DurableRun",
    "DurableStep",
    "DurableStore",
    "DurableStoreError",
    "RunInUseError",
    "RunStatus",
    "StepLostError",
    "StoredRun",
]

RunStatus: TypeAlias = Literal["running", "waiting", "finished", "failed", "cancelled"]
"""How a run stands. `running` is also what a run is that its process died with."""


class DurableStoreError(AgentsToolsError):
    """A run could not be kept or read.

    Args:
        message: What went wrong, and what helps.
        store: What names the store: its path or address.
    """

    def __init__(self, message: str, *, store: str) -> None:
        super().__init__(message)
        self.store = store


class RunInUseError(DurableStoreError):
    """Another process, or another task of this one, carries the run on at this moment."""


class StepLostError(DurableStoreError):
    """A step was begun before and nothing is known of its end; it must not run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableStep:
    """What is known of one step.

    Attributes:
        done: Whether it came to its end.
        value: What it gave then: a JSON value.
        attempts: How often it was begun.
    """

    done: bool
    value: Any = None
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """What a store has of one run.

    Attributes:
        start: Where the run begins, as `begin` was given it; `None` for a run that is new.
        steps: What is known of its steps, by key.
    """

    start: Mapping[str, Any] | None = None
    steps: Mapping[str, DurableStep] = field(default_factory=dict[str, DurableStep])


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableRun:
    """One line of the list of runs.

    Attributes:
        run_id: The run.
        status: How it stands, as far as the store was told.
        agent: The name of its agent.
        begun: When it was begun, in seconds since 1970.
        changed: When it was last begun, gone on with or left, also.
    """

    run_id: str
    status: RunStatus
    agent: str
    begun: float
    changed: float


class DurableStore(Protocol):
    """Keeps what runs have done, step by step.

    A run is carried on by one process at a time: `claim` comes first, `leave` last, and the end of
    the process leaves as well. What goes wrong is a `DurableStoreError`.
    """

    async def claim(self, run_id: str, /) -> StoredRun:
        """Become the one who carries a run on, whether it is new or not.

        Raises:
            RunInUseError: Somebody else does.
        """
        ...

    async def begin(self, run_id: str, start: Mapping[str, Any], /) -> None:
        """Keep where a claimed run begins, in place of what was kept of that before.

        Args:
            run_id: The run.
            start: A JSON object; `start["agent"]` names the agent.
        """
        ...

    async def step(
        self,
        run_id: str,
        key: str,
        fn: Callable[[], Awaitable[Any]],
        /,
        *,
        again: bool = False,
    ) -> Any:
        """Return what a step of a claimed run gave; perform it if it was never begun.

        That a step begins is safe before it does, and what it gave is safe when this returns. What
        it raises is raised and not kept: the step has then been begun, and has no end.

        Args:
            run_id: The run.
            key: The step.
            fn: Performs it, in the task of the caller; gives a JSON value.
            again: Whether to perform a step that was begun before and has no end.

        Raises:
            StepLostError: It was begun before, has no end, and `again` is not set.
        """
        ...

    async def leave(self, run_id: str, status: RunStatus | None, /) -> None:
        """Let others carry a claimed run on.

        Args:
            run_id: The run.
            status: How it stands now; `None` where nothing was done about it.
        """
        ...

    async def runs(self) -> list[DurableRun]:
        """List the runs, those first that were begun first."""
        ...

    async def delete(self, run_id: str, /) -> None:
        """Forget a run; one that is not there is no error.

        Raises:
            RunInUseError: Somebody carries it on.
        """
        ...

    async def aclose(self) -> None:
        """Let go of the store; safe to call again."""
        ...
