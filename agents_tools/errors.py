"""What can go wrong, as one tree.

::

    AgentsToolsError
    ├── UserError                the caller wrote something that cannot work
    ├── ModelBehaviorError       the model asked for something impossible
    ├── ToolError                raised by a tool's author; its message is meant for the model
    ├── ToolTimeoutError         the deadline of a call passed
    ├── ToolCancelledError       the call was cancelled before it had a result
    ├── ToolDeniedError          a policy or a person refused the call
    ├── ToolOverloadedError      no room to start the call now
    ├── ToolLostError            the call may have taken effect; its outcome is unknown
    └── ToolStreamError          a streaming tool broke the rules of its stream

Every class can be imported from `agents_tools`. `UserError` comes in kinds that also carry the
built-in base a Python programmer expects (`UserTypeError`, `UserValueError`, `UserKeyError`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools._problem import ArgumentProblem

__all__ = [
    "AgentsToolsError",
    "ModelBehaviorError",
    "ToolCancelledError",
    "ToolDeniedError",
    "ToolError",
    "ToolLostError",
    "ToolOverloadedError",
    "ToolStreamError",
    "ToolTimeoutError",
    "UserError",
    "UserKeyError",
    "UserTypeError",
    "UserValueError",
]


class AgentsToolsError(Exception):
    """Base of every error that this library raises on purpose."""


class UserError(AgentsToolsError):
    """The caller wrote something that cannot work: a declaration or a configuration."""


class UserTypeError(UserError, TypeError):
    """A `UserError` about the type of something."""


class UserValueError(UserError, ValueError):
    """A `UserError` about a value."""


class UserKeyError(UserError, KeyError):
    """A `UserError` about a name that is not there."""

    def __str__(self) -> str:
        """Give the message as it is: `KeyError` would show it quoted."""
        return str(self.args[0]) if self.args else ""


class ModelBehaviorError(AgentsToolsError):
    """The model asked for something impossible: bad JSON, bad arguments, an unknown tool.

    Args:
        message: The text that lets the model correct itself.
        problems: The faults one by one, for programs.
    """

    def __init__(self, message: str, *, problems: Sequence[ArgumentProblem] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[ArgumentProblem, ...] = tuple(problems)


class ToolError(AgentsToolsError):
    """A failure that a tool explains to the model: the message is shown to it as it stands."""


class ToolTimeoutError(AgentsToolsError, TimeoutError):
    """The deadline of a call passed before it had a result."""


class ToolCancelledError(AgentsToolsError):
    """The call was cancelled before it had a result."""


class ToolDeniedError(AgentsToolsError):
    """A policy or a person refused the call; the body was not run."""


class ToolOverloadedError(AgentsToolsError):
    """There was no room to start the call; nothing was run, and it may be tried again later."""


class ToolLostError(AgentsToolsError):
    """The call may have taken effect, but its outcome is unknown."""


class ToolStreamError(AgentsToolsError):
    """A streaming tool broke the rules of its stream, for example by ending without a result."""
