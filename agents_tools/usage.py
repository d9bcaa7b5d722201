"""What models have used: requests and tokens."""

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
    """Requests to models and the tokens they took; of a run, with all the runs inside it.

    Attributes:
        requests: Requests that a model answered.
        input_tokens: Tokens that were read, those from a cache included.
        output_tokens: Tokens that were written, those of reasoning included.
        cached_input_tokens: Of the tokens read, those that came from a cache.
        reasoning_tokens: Of the tokens written, those that nobody sees.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def add(self, other: Usage) -> None:
        """Count what another one has used as well."""
        self.requests += other.requests
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_input_tokens += other.cached_input_tokens
        self.reasoning_tokens += other.reasoning_tokens

    def to_dict(self) -> dict[str, int]:
        """Give the figures as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave.

        Raises:
            UserError: A figure is unknown or no whole number.
        """
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(f"usage: expected an object of figures, got {data!r:.80}.")
        known = {field.name for field in fields(cls)}
        for name, value in data.items():
            if name not in known or type(value) is not int or value < 0:
                raise UserValueError(
                    f"usage.{name}: expected a known whole number, got {value!r:.80}."
                )
        return cls(**data)
