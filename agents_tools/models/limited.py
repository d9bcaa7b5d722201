"""A model whose requests are limited, together with those of other agents and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.agents.model import check_model, load_model
from agents_tools.concurrency.limiter import Limiter, RateLimit
from agents_tools.errors import UserTypeError, UserValueError

if TYPE_CHECKING:
    from agents_tools.agents.model import Model, ModelRequest, ModelResponse
    from agents_tools.events.base import Emit

__all__ = ["LimitedModel", "RequestLimit"]


class RequestLimit:
    """A limit on the requests to models, shared by all models that it is passed to.

    Requests start in the order in which they were made, also those of several threads and event
    loops. A request that is cancelled while it waits leaves the queue; one that is retried waits
    again, and holds no place during the delay.

    Args:
        concurrent: The maximum number of parallel requests.
        per_minute: The maximum number of requests per minute, evenly spaced.
        burst: How many of these can start at once after a pause.

    Raises:
        UserError: No limit is set, or a limit is not positive.
    """

    def __init__(
        self,
        *,
        concurrent: int | None = None,
        per_minute: float | None = None,
        burst: int = 1,
    ) -> None:
        if concurrent is None and per_minute is None:
            raise UserValueError("RequestLimit() has no limit. Pass concurrent= or per_minute=.")
        for name, value, kinds in (
            ("concurrent", concurrent, int),
            ("per_minute", per_minute, (int, float)),
            ("burst", burst, int),
        ):
            fits = isinstance(value, kinds) and not isinstance(value, bool)
            if value is not None and not (fits and value > 0):
                raise UserValueError(
                    f"RequestLimit({name}=...) is not valid: expected a positive number, "
                    f"got {value!r:.60}."
                )
        rate = None if per_minute is None else RateLimit(per_minute / 60, burst)
        self._limiter = Limiter(concurrent, rate, None)

    async def __aenter__(self) -> None:
        """Wait until a request can start."""
        await self._limiter.acquire()

    async def __aexit__(self, *exc_info: object) -> None:
        """Let the next request start."""
        self._limiter.release()


class LimitedModel:
    """A model whose requests wait for a limit.

    ```python
    limit = RequestLimit(concurrent=4, per_minute=300)
    writer = Agent("Writer", model=LimitedModel("openai/gpt-5", limit))
    ```

    Other attributes are those of the model.

    Args:
        model: The model, or its name.
        limit: The limit, which other models can share.

    Raises:
        UserError: The model cannot be loaded, or the limit is not a `RequestLimit`.
    """

    def __init__(self, model: str | Model, limit: RequestLimit) -> None:
        if not hasattr(limit, "__aenter__"):
            raise UserTypeError(
                "LimitedModel(limit=...) is not a limit: expected a RequestLimit, got "
                f"{limit!r:.60}. Pass for example RequestLimit(concurrent=4)."
            )
        self._model = load_model(model) if isinstance(model, str) else check_model(model)
        self._limit = limit

    def __repr__(self) -> str:
        return f"LimitedModel({self._model!r})"

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the model, such as its `provider`."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Send the request as soon as the limit allows it; see `Model.respond`."""
        async with self._limit:
            return await self._model.respond(request, emit)
