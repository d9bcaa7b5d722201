"""A model that uses another model when one fails."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from agents_tools.agents.model import check_model, load_model, model_name
from agents_tools.errors import ModelError, UserTypeError, UserValueError
from agents_tools.events.kinds import RawResponseStreamEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.agents.model import Model, ModelRequest, ModelResponse
    from agents_tools.events.base import Emit

__all__ = ["FallbackModel"]

_log = logging.getLogger("agents_tools")
_USED_UP = frozenset({402, 429})
"""The statuses of a provider whose credit or quota is used up."""
_SERVER = 500


class FallbackModel:
    """Models of which each one is used if those before it have failed.

    ```python
    model = FallbackModel("anthropic/claude-sonnet-5", "openai/gpt-5")
    ```

    Each request starts with the first model. If it still fails after the retries of the run
    (`RunConfig(model_retries=...)`), the next model gets the same request. Text that the first one
    has streamed is withdrawn, as before a retry: the event `agents_tools.retry` names the next
    model. The response, the usage and the telemetry name the model that has answered.

    Args:
        *models: Models, or their names; at least two.
        fallback_on: Returns whether the next model is used after an error; sync or async. By
            default, it is used after errors that another provider can cure: a lost connection, an
            interrupted response, an overloaded provider, a rate limit, a used-up quota, and
            statuses from 500 on. It is not used after a refused request, which has a fault of its
            own.

    Attributes:
        models: The models.

    Raises:
        UserError: There are fewer than two models, or one cannot be loaded.
    """

    def __init__(
        self,
        *models: str | Model,
        fallback_on: Callable[[ModelError], bool | Awaitable[bool]] | None = None,
    ) -> None:
        if len(models) < 2:  # noqa: PLR2004 - the smallest number that makes sense
            raise UserValueError(
                f"FallbackModel expects at least two models, got {len(models)}. Pass for example "
                "FallbackModel('anthropic/claude-sonnet-5', 'openai/gpt-5')."
            )
        if fallback_on is not None and not callable(fallback_on):
            raise UserTypeError(
                "FallbackModel(fallback_on=...) is not callable: expected a function of the "
                f"ModelError, got {fallback_on!r:.60}."
            )
        self.models: tuple[Model, ...] = tuple(
            load_model(one) if isinstance(one, str) else check_model(one) for one in models
        )
        self._fallback_on = fallback_on or _can_be_cured

    @property
    def name(self) -> str:
        """The name of the first model."""
        return model_name(self.models[0])

    @property
    def provider(self) -> str | None:
        """The schema format of the first model."""
        return getattr(self.models[0], "provider", None)

    def __repr__(self) -> str:
        return f"FallbackModel({', '.join(map(repr, self.models))})"

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Return the response of the first model that answers; see `Model.respond`.

        Raises:
            ModelError: All models have failed, or one with an error that no other model can cure.
        """
        *first, last = self.models
        for number, model in enumerate(first, start=1):
            try:
                return await request.send(model, request, emit)
            except ModelError as error:
                is_used: Any = self._fallback_on(error)
                if not (await is_used if hasattr(is_used, "__await__") else is_used):
                    raise
                _announce(error, model, self.models[number], number, emit)
        return await request.send(last, request, emit)


def _can_be_cured(error: ModelError) -> bool:
    """Return whether another provider can answer the same request."""
    status = error.status or 0
    return error.retryable or status in _USED_UP or status >= _SERVER


def _announce(error: ModelError, failed: Model, following: Model, number: int, emit: Emit) -> None:
    """Emit the event for the use of the next model; it withdraws the text that was streamed."""
    failed_name, following_name = model_name(failed), model_name(following)
    data = {
        "type": "agents_tools.retry",
        "attempt": number,
        "delay": 0.0,
        "model": following_name,
        "provider": getattr(following, "provider", None),
    }
    emit(RawResponseStreamEvent(data))
    _log.warning("Model %r failed; %r is used instead: %s", failed_name, following_name, error)
