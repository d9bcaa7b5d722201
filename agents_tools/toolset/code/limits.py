"""The limits of a program."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from agents_tools.errors import UserValueError

__all__ = ["CodeLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLimits:
    """The limits of one program.

    Attributes:
        seconds: How long it may compute, in seconds. Waiting for tools does not count; sleeping
            may take as long again.
        memory: The memory of its values, in bytes.
        depth: The depth of its calls of its own functions.
        calls: The number of calls of tools.
        output: The characters of what it prints and returns to the model.

    Raises:
        UserError: A limit is not a positive number.
    """

    seconds: float = 10.0
    memory: int = 64 << 20
    depth: int = 200
    calls: int = 1_000
    output: int = 20_000

    def __post_init__(self) -> None:
        for one in fields(self):
            value: Any = getattr(self, one.name)
            kinds = (int, float) if one.name == "seconds" else (int,)
            if not isinstance(value, kinds) or isinstance(value, bool) or not value > 0:
                raise UserValueError(
                    f"CodeLimits({one.name}=...) is not valid: expected a positive number, got "
                    f"{value!r:.60}."
                )
