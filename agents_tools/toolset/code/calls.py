"""The calls that a program makes: started in the order of the program, finished in any order."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents_tools.concurrency.supervisor import cancel_tasks
from agents_tools.tool.call import Call
from agents_tools.tool.enabled import is_enabled
from agents_tools.tool.failure import default_tool_error_function
from agents_tools.tool.invocation import invoke
from agents_tools.toolset.code.values import result_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Self

    from agents_tools.events.kinds import CallStatus
    from agents_tools.toolset.catalog import AnyTool

__all__ = ["DirectCalls", "EndedCall", "ProgramCalls", "call_id_of"]


@dataclass(frozen=True, slots=True)
class EndedCall:
    """The end of a call of a program.

    Attributes:
        number: The number of the call, from 1 in the order in which the program made them.
        status: The status of the call.
        text: The result, as `result_text` returns it, or the error message.
    """

    number: int
    status: CallStatus
    text: str


def call_id_of(program: str, number: int) -> str:
    """Return the id of a call that a program makes; it is the same each time it is repeated.

    Args:
        program: The id of the call that runs the program.
        number: The number of the call.
    """
    return f"{program}.{number}"


class ProgramCalls(ABC):
    """Makes the calls of one program."""

    @property
    @abstractmethod
    def is_replaying(self) -> bool:
        """Whether the next result was recorded by an earlier process."""

    @abstractmethod
    def start(self, number: int, tool: AnyTool, arguments: str) -> None:
        """Start a call.

        Args:
            number: The number of the call.
            tool: The tool.
            arguments: The arguments as JSON text.
        """

    @abstractmethod
    async def next_finished(self, numbers: Collection[int]) -> EndedCall:
        """Wait for one of these calls, and return its end.

        A program that is repeated gets the recorded results in the same order as the first time.

        Args:
            numbers: The numbers of started calls.

        Raises:
            Exception: The calls cannot continue.
        """


class DirectCalls(ProgramCalls):
    """Makes the calls of a program outside of a run.

    Args:
        call: The call that runs the program.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._tasks: dict[int, asyncio.Task[EndedCall]] = {}

    async def __aenter__(self) -> Self:
        """Return the calls."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cancel the calls that still run, and wait for their cleanup up to the grace period."""
        await cancel_tasks([*self._tasks.values()], name=self._call.tool_name)

    @property
    def is_replaying(self) -> bool:
        """Return that it is not: outside of a run, nothing is recorded."""
        return False

    def start(self, number: int, tool: AnyTool, arguments: str) -> None:
        """Start a call."""
        self._tasks[number] = asyncio.ensure_future(self._run(number, tool, arguments))

    async def _run(self, number: int, tool: AnyTool, arguments: str) -> EndedCall:
        if not await is_enabled(tool, self._call.context, self._call.agent):
            return EndedCall(number, "denied", f"Tool {tool.name!r} is not enabled.")
        record = Call.fresh(
            parent=self._call, tool_call_id=call_id_of(self._call.tool_call_id, number)
        )
        outcome = await invoke(tool, record, arguments)
        text = result_text(record, outcome)
        if not text and outcome.error is not None:  # of a tool that reports errors by raising them
            text = default_tool_error_function(record.context, outcome.error)
        return EndedCall(number, outcome.status, text)

    async def next_finished(self, numbers: Collection[int]) -> EndedCall:
        """Wait for one of these calls, and return its end."""
        tasks: Mapping[asyncio.Task[EndedCall], int] = {
            self._tasks[number]: number for number in sorted(numbers)
        }
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
