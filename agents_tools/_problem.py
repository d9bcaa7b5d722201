"""One fault in the arguments of a call, for programs that look at faults one by one."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ArgumentProblem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentProblem:
    """One fault in the arguments of a call.

    Attributes:
        path: Where it is, from the outermost key inwards; empty for the arguments as a whole.
        expected: What the schema asks for there, in words.
        got: What came, shortened for display.
        kind: A stable code: pydantic's error type, or one of this library's own
            (`unknown_key`, `duplicate_key`, `json_syntax`, `too_large` …).
    """

    path: tuple[str | int, ...]
    expected: str
    got: str
    kind: str
