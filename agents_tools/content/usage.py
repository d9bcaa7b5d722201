"""The token usage of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Usage"]


@dataclass(slots=True, kw_only=True)
class Usage:
    """The number of requests and tokens of a run, including the runs of its sub-agents.

    Attributes:
        requests: The number of requests that a model answered.
        input_tokens: The number of input tokens, cached tokens included.
        output_tokens: The number of output tokens, reasoning tokens included.
        cached_input_tokens: The number of input tokens that came from a cache.
        reasoning_tokens: The number of output tokens that were used for reasoning.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def add(self, other: Usage) -> None:
        """Add the usage of another run."""
        self.requests += other.requests
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_input_tokens += other.cached_input_tokens
        self.reasoning_tokens += other.reasoning_tokens

    def to_dict(self) -> dict[str, int]:
        """Return the counts as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the usage from the JSON of `to_dict`.

        Raises:
            UserError: A key is unknown, or a value is not a whole number.
        """
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(f"usage: expected an object of counts, got {data!r:.80}.")
        known = {field.name for field in fields(cls)}
        for name, value in data.items():
            if name not in known:
                raise UserValueError(
                    f"usage.{name} is unknown: expected one of {', '.join(sorted(known))}."
                )
            if type(value) is not int or value < 0:
                raise UserValueError(f"usage.{name}: expected a whole number, got {value!r:.80}.")
        return cls(**data)
