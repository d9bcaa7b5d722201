"""The budgets of runs and all runs inside them, and the prices of models."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from agents_tools.agents.model import model_name
from agents_tools.content.usage import Usage
from agents_tools.errors import BudgetExceeded, UserError, UserTypeError, UserValueError
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agents_tools.agents.model import Model, ModelResponse

__all__ = ["ModelPrice", "calls_left", "check_budgets", "check_prices", "count_calls", "with_cost"]

_log = logging.getLogger("agents_tools")
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """The price of a model, in US dollars per million tokens.

    Attributes:
        input: The price of input tokens.
        output: The price of output tokens.
        cached_input: The price of input tokens that are read from a cache; that of input by
            default.
        cache_write: The price of input tokens that are written to a cache; that of input by
            default.

    Raises:
        UserError: A price is not a number, or is negative.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value: Any = getattr(self, one.name)
            if value is None and one.default is None:
                continue
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not fits or not 0 <= cast("float", value) < math.inf:
                raise UserValueError(
                    f"ModelPrice({one.name}=...) is not valid: expected US dollars per million "
                    f"tokens, got {value!r:.60}."
                )

    def cost(self, usage: Usage) -> float:
        """Return the cost of a usage in US dollars."""
        read, written = usage.cached_input_tokens, usage.cache_write_tokens
        read_price = self.input if self.cached_input is None else self.cached_input
        write_price = self.input if self.cache_write is None else self.cache_write
        plain = max(0, usage.input_tokens - read - written)
        dollars = (
            plain * self.input
            + read * read_price
            + written * write_price
            + usage.output_tokens * self.output
        )
        return dollars / _MILLION


def check_prices(prices: object) -> None:
    """Check the `prices` of a configuration.

    Raises:
        UserError: They are not a mapping from names of models to `ModelPrice`.
    """
    if prices is None:
        return
    if not isinstance(prices, Mapping):
        raise UserTypeError(
            "RunConfig(prices=...) is not valid: expected a mapping such as "
            f"{{'my-model': ModelPrice(input=3, output=15)}}, got {type_with_article(prices)}."
        )
    for name, price in cast("Mapping[Any, Any]", prices).items():
        if not isinstance(name, str) or not isinstance(price, ModelPrice):
            raise UserTypeError(
                "RunConfig(prices=...) is not valid: expected names of models with a ModelPrice, "
                f"got {name!r:.60}: {price!r:.60}."
            )


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _Settings(Protocol):
    """The parts of the configuration of a run that its budgets use."""

    @property
    def max_tool_calls(self) -> int | None: ...
    @property
    def max_total_tokens(self) -> int | None: ...
    @property
    def max_cost(self) -> float | None: ...
    @property
    def prices(self) -> Mapping[str, ModelPrice] | None: ...


class BudgetedRun(Protocol):
    """The parts of a run that its budgets use."""

    usage: Usage
    usages: list[Usage]

    @property
    def agent(self) -> _Named:
        """The agent."""
        ...

    @property
    def config(self) -> _Settings:
        """The configuration."""
        ...

    @property
    def outer(self) -> BudgetedRun | None:
        """The run around this one."""
        ...


def check_budgets(run: BudgetedRun, models: Callable[[], Iterable[Model]]) -> None:
    """Raise if the run, or a run around it, has reached a budget.

    It is called before each request, so an agent of a tree can exceed a budget by its current
    request at most.

    Args:
        run: The run.
        models: Returns the models of the run, and those of agents that are its tools.

    Raises:
        BudgetExceeded: A budget is used up.
        UserError: There is a budget in dollars, but the price of a model is not known.
    """
    limited: BudgetedRun | None = run
    while limited is not None:
        config, used = limited.config, limited.usage
        if config.max_cost is not None:
            _check_cost(limited, config.max_cost, run, models())
        limit = config.max_total_tokens
        if limit is not None and used.total_tokens >= limit:
            raise BudgetExceeded(
                f"Agent {limited.agent.name!r} has used {used.total_tokens} tokens of its limit of "
                f"{limit}. To allow more, raise RunConfig(max_total_tokens=...)."
            )
        limit = config.max_tool_calls
        if limit is not None and used.tool_calls > limit:
            raise _too_many_calls(limited, limit)
        limited = limited.outer


def count_calls(run: BudgetedRun, number: int) -> None:
    """Count tool calls before they run.

    Args:
        run: The run that makes the calls.
        number: The number of calls.

    Raises:
        BudgetExceeded: The run, or a run around it, has fewer calls left.
    """
    counted = Usage(tool_calls=number)
    for usage in run.usages:
        usage.add(counted)
    limited: BudgetedRun | None = run
    while limited is not None:
        limit = limited.config.max_tool_calls
        if limit is not None and limited.usage.tool_calls > limit:
            raise _too_many_calls(limited, limit)
        limited = limited.outer


def calls_left(run: BudgetedRun) -> float:
    """Return how many calls the budgets of a run, and of the runs around it, have left."""
    left = math.inf
    limited: BudgetedRun | None = run
    while limited is not None:
        if limited.config.max_tool_calls is not None:
            left = min(left, limited.config.max_tool_calls - limited.usage.tool_calls)
        limited = limited.outer
    return left


def _too_many_calls(run: BudgetedRun, limit: int) -> BudgetExceeded:
    return BudgetExceeded(
        f"Agent {run.agent.name!r} exceeded its limit of {limit} tool calls. "
        "To allow more, raise RunConfig(max_tool_calls=...)."
    )


def _check_cost(
    limited: BudgetedRun, limit: float, run: BudgetedRun, models: Iterable[Model]
) -> None:
    used = limited.usage
    unknown = [
        model_name(one)
        for model in models
        for one in _answering(model)
        if _cost(_ONE_TOKEN, run, one, None) is None
    ]
    if used.requests and used.cost is None:
        unknown += used.unpriced_models
    if unknown:
        names = ", ".join(dict.fromkeys(map(repr, unknown)))
        raise UserError(
            f"RunConfig(max_cost=...) of agent {limited.agent.name!r} cannot be checked: the price "
            f"of {names} is not known. Install the price list with pip install -U "
            "'agents-tools[prices]', or add the price in US dollars per million tokens, for "
            f"example RunConfig(prices={{{unknown[0]!r}: ModelPrice(input=3, output=15)}})."
        )
    if used.requests and used.cost is None:
        raise UserError(
            f"RunConfig(max_cost=...) of agent {limited.agent.name!r} cannot be checked: an agent "
            "of another framework has not reported its cost. Use RunConfig(max_total_tokens=...) "
            "instead."
        )
    if used.cost is not None and used.cost >= limit:
        raise BudgetExceeded(
            f"Agent {limited.agent.name!r} has spent ${used.cost:.4f} of its limit of ${limit:g}. "
            "To allow more, raise RunConfig(max_cost=...)."
        )


# --- costs


def with_cost(response: ModelResponse, run: BudgetedRun, model: Model) -> Usage:
    """Return the usage of a response with its cost, attributed to the agent and the model.

    A usage that is attributed already, because the model has delegated the request, stays as it is.

    Args:
        response: The response.
        run: The run.
        model: The model that answered.
    """
    usage = response.usage
    if usage.breakdown or not (usage.requests or usage.input_tokens):
        return usage
    cost = usage.cost
    if cost is None:
        cost = _cost(usage, run, model, response.model)
    priced = replace(usage, cost=cost, breakdown={})
    name = response.model or model_name(model)
    return replace(priced, breakdown={(run.agent.name, name): priced})


def _answering(model: Any) -> Iterator[Model]:
    """Yield the models that can answer a request to a model."""
    inner = getattr(model, "models", None)
    if inner is None:
        yield model
    else:
        for one in inner:
            yield from _answering(one)


_ONE_TOKEN = Usage(requests=1, input_tokens=1)


def _cost(usage: Usage, run: BudgetedRun, model: Any, reported: str | None) -> float | None:
    """Return the cost of a usage; `None` if the price is not known.

    Args:
        usage: The usage.
        run: The run; prices that are given for it or for a run around it come first.
        model: The model.
        reported: The name that the provider has reported for the model, which comes first.
    """
    pricing: BudgetedRun | None = run
    while pricing is not None:
        if pricing.config.prices:
            for name in _names(model, reported):
                price = _given_price(name, pricing.config.prices)
                if price is not None:
                    return price.cost(usage)
        pricing = pricing.outer
    # The same name can be another model on a server of your own, so the provider must be known.
    url, provider = getattr(model, "base_url", None), getattr(model, "provider_id", None)
    if url is not None or provider is not None:
        for name in _names(model, reported):
            cost = _listed_cost(usage, name, provider_id=provider, provider_api_url=url)
            if cost is not None:
                return cost
    return None


def _names(model: Model, reported: str | None) -> list[str]:
    """Return the names under which a model can have a price, the most exact one first."""
    name = model_name(model)
    provider = getattr(model, "provider_id", None)
    names = [reported, name, name.removeprefix(f"{provider}:")]
    return list(dict.fromkeys(filter(None, names)))


def _given_price(name: str, prices: Mapping[str, ModelPrice]) -> ModelPrice | None:
    """Return the given price of a model, whose key can begin with the prefix of the provider."""
    if name in prices:
        return prices[name]
    return next((price for key, price in prices.items() if key.partition("/")[2] == name), None)


def _listed_cost(usage: Usage, name: str, **provider: str | None) -> float | None:
    """Return the cost from the price list of genai-prices; `None` if it does not have the model."""
    try:
        import genai_prices
    except ImportError:
        _log.debug("The cost of %r is not known: genai-prices is not installed.", name)
        return None
    counts = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
    )
    try:
        price = genai_prices.calc_price(counts, name, **cast("dict[str, Any]", provider))
    except (LookupError, ValueError) as error:  # an unknown model, or counts that do not add up
        _log.debug("The cost of %r is not known: %s", name, error)
        return None
    return float(price.total_price)
