"""What one more call of a tool costs in the agents of other frameworks: ours and their own."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call costs in one framework, in microseconds.

    Attributes:
        framework: The framework.
        bare: A call of our tool without any framework.
        ours: One more call of our tool in a turn of its agent.
        own: The same for the tool that its own decorator makes; `None` where it has none.
        object: A call of the object that we hand over, without an agent; `None` where it takes
            one.
    """

    framework: str
    bare: float
    ours: float
    own: float | None
    object: float | None
