"""The token usage of models, and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Usage"]

_adding = Lock()  # agents of one run can work in several threads, and share a record


@dataclass(slots=True, kw_only=True)
class Usage:
    """The requests, tokens and cost of a run, including the runs of its sub-agents.

    Attributes:
        requests: The number of requests that a model answered.
        input_tokens: The number of input tokens, cached tokens and cache writes included.
        output_tokens: The number of output tokens, reasoning tokens included.
        cached_input_tokens: The number of input tokens that were read from a cache.
        cache_write_tokens: The number of input tokens that were written to a cache.
        cache_write_1h_tokens: The number of these that the cache keeps for an hour, which costs
            more at some providers.
        reasoning_tokens: The number of output tokens that were used for reasoning.
        tool_calls: The number of tool calls that models requested, denied ones included.
        cost: The cost in US dollars; `None` without requests, or if the price of a model is not
            known (see `unpriced_models`).
        breakdown: The usage of each agent and model, by their names, such as
            `("Researcher", "gpt-5")`. It has no tool calls.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    reasoning_tokens: int = 0
    tool_calls: int = 0
    cost: float | None = None
    breakdown: dict[tuple[str, str], Usage] = field(
        default_factory=dict[tuple[str, str], "Usage"], repr=False, compare=False
    )

    @property
    def total_tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    @property
    def unpriced_models(self) -> list[str]:
        """The names of the models whose price is not known, sorted."""
        return sorted({model for (_, model), used in self.breakdown.items() if used.cost is None})

    def by_agent(self) -> dict[str, Usage]:
        """Return the usage of each agent, by its name."""
        return self._group(0)

    def by_model(self) -> dict[str, Usage]:
        """Return the usage of each model, by the name that its provider reports."""
        return self._group(1)

    def _group(self, part: int) -> dict[str, Usage]:
        groups: dict[str, Usage] = {}
        for names, used in list(self.breakdown.items()):
            groups.setdefault(names[part], Usage()).add(used)
        return groups

    def add(self, other: Usage) -> None:
        """Add the usage of another run."""
        with _adding:
            added: list[tuple[Usage, Usage]] = [(self, other)]
            for names, used in other.breakdown.items():
                added.append((self.breakdown.setdefault(names, Usage()), used))
            for total, one in added:
                if one.requests or one.input_tokens or one.cost is not None:
                    if total.cost is None and not (total.requests or total.input_tokens):
                        total.cost = one.cost  # the first usage
                    elif total.cost is not None:
                        total.cost = None if one.cost is None else total.cost + one.cost
                for name in _COUNTS:
                    setattr(total, name, getattr(total, name) + getattr(one, name))

    def copy(self) -> Usage:
        """Return an independent copy."""
        copy = Usage()
        copy.add(self)
        return copy

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as JSON."""
        data: dict[str, Any] = {name: getattr(self, name) for name in _COUNTS}
        data["cost"] = self.cost
        if self.breakdown:
            data["breakdown"] = [
                {"agent": agent, "model": model, **used.to_dict()}
                for (agent, model), used in list(self.breakdown.items())
            ]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the usage from the JSON of `to_dict`.

        Raises:
            UserError: A key is unknown, or a value has a wrong type.
        """
        return cls._read(data, "usage", (*_COUNTS, "cost", "breakdown"))

    @classmethod
    def _read(cls, data: object, place: str, known: tuple[str, ...]) -> Self:
        if not isinstance(data, Mapping):
            raise UserValueError(f"{place}: expected an object of counts, got {data!r:.80}.")
        values: dict[str, Any] = {**cast("Mapping[str, Any]", data)}
        for name, value in values.items():
            if name not in known:
                raise UserValueError(
                    f"{place}.{name} is unknown: expected one of {', '.join(sorted(known))}."
                )
            if name in _COUNTS and (type(value) is not int or value < 0):
                raise UserValueError(f"{place}.{name}: expected a whole number, got {value!r:.80}.")
        cost = values.get("cost")
        if cost is not None and (type(cost) not in {int, float} or not cost >= 0):
            raise UserValueError(f"{place}.cost: expected a number or null, got {cost!r:.80}.")
        parts = values.pop("breakdown", [])
        if not isinstance(parts, list):
            raise UserValueError(f"{place}.breakdown: expected a list, got {parts!r:.80}.")
        usage = cls(**values)
        for index, part in enumerate(cast("list[Any]", parts)):
            names, rest = _split_names(part, f"{place}.breakdown[{index}]")
            usage.breakdown[names] = Usage._read(
                rest, f"{place}.breakdown[{index}]", (*_COUNTS, "cost")
            )
        return usage


_COUNTS = (
    "requests",
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "cache_write_1h_tokens",
    "reasoning_tokens",
    "tool_calls",
)


def _split_names(part: Any, place: str) -> tuple[tuple[str, str], dict[str, Any]]:
    """Return the names of the agent and the model of a part, and its other values."""
    rest = dict(cast("Mapping[str, Any]", part)) if isinstance(part, Mapping) else {}
    agent, model = rest.pop("agent", None), rest.pop("model", None)
    if not isinstance(agent, str) or not isinstance(model, str):
        raise UserValueError(f"{place}: expected an object with agent and model, got {part!r:.80}.")
    return (agent, model), rest
