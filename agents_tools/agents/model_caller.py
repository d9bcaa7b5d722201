"""Requests to the model of a run, with retries."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.model import (
    DefaultModelProvider,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    check_model,
    overriding_model,
)
from agents_tools.agents.pair_joiner import PairJoiner
from agents_tools.content.items import MessageInputItem, encodable_items
from agents_tools.errors import ModelError, ToolRefusedError, UserTypeError
from agents_tools.events.kinds import NotifyStreamEvent, RawResponseStreamEvent
from agents_tools.text.characters import replace_surrogates
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.agents.config import RunConfig, RunHooks
    from agents_tools.agents.model import Model
    from agents_tools.agents.tool_calls import TurnCalls
    from agents_tools.agents.toolbox import RunnableAgent, Toolbox
    from agents_tools.content.items import Item, ToolCallItem
    from agents_tools.tool.call import RunScope

__all__ = ["ModelCaller", "choose_model"]

_MAX_DELAY = 30.0
_NO_SETTINGS = ModelSettings()
_log = logging.getLogger("agents_tools")


def choose_model(agent: RunnableAgent, config: RunConfig) -> Model:
    """Return the model of a run: that of `override_model`, of the configuration or of the agent.

    Raises:
        UserError: No model is configured, or it cannot be loaded.
    """
    override = overriding_model()
    if override is not None:
        return override
    chosen = agent.model if config.model is None else config.model
    if chosen is not None and not isinstance(chosen, str):
        return check_model(chosen)
    provider = config.model_provider
    if provider is None:
        return DefaultModelProvider().get_model(chosen)
    return check_model(provider.get_model(chosen))


class ModelCaller:
    """Sends the requests of one run to its model.

    Args:
        agent: The agent.
        config: The configuration of the run.
        scope: The scope of the run.
        hooks: The hooks of the run and the agent.
        calls: The tool calls of the run.

    Attributes:
        refused: The names of tools that the provider refused. They are no longer offered.
    """

    def __init__(
        self,
        agent: RunnableAgent,
        config: RunConfig,
        scope: RunScope,
        hooks: Sequence[RunHooks[Any]],
        calls: TurnCalls,
    ) -> None:
        self._agent = agent
        self._config = config
        self._scope = scope
        self._hooks = hooks
        self._calls = calls
        self.refused: set[str] = set()
        self._is_checked = False

    async def request(self, model: Model, toolbox: Toolbox, history: list[Item]) -> ModelResponse:
        """Return the response to a conversation; repeat the request after a temporary error.

        Early calls of a response that failed are cancelled.

        Args:
            model: The model.
            toolbox: The tools to offer.
            history: The conversation; lone surrogates in it are replaced.

        Raises:
            ModelError: The request failed, and no retry is left or useful.
            UserError: The request cannot be sent to this model, or its response has a wrong type.
        """
        agent, config, scope = self._agent, self._config, self._scope
        instructions = await agent.system_prompt(scope.context)
        if not instructions.isascii():
            instructions = replace_surrogates(instructions)
        if not self._is_checked or isinstance(history[-1], MessageInputItem):
            # Responses and outputs of tools, which follow, contain no lone surrogates.
            self._is_checked = True
            history[:] = encodable_items(history)
        joiner = PairJoiner(scope.emit) if scope.sinks else None
        for hook in self._hooks:
            await hook.on_llm_start(scope.context, agent, instructions, history)
        attempt = 0
        run = scope.run
        # Early calls would act before the guardrails of the input have passed.
        starts_early = config.start_calls_early and not run.guardrails.is_pending
        while True:
            request = ModelRequest(
                instructions=instructions,
                input=history if run.filtered is None else run.filtered.applied(history),
                tools=toolbox.offered,
                settings=self._settings(),
                output=None if agent.output is None else agent.output.format,
                agent=agent.name,
                on_call=self._early_starter(toolbox) if starts_early else None,
            )
            try:
                response = await model.respond(request, joiner or scope.emit)
                break
            except ToolRefusedError as error:
                await self._calls.cancel_early()
                if error.tool_name in self.refused or error.tool_name not in toolbox.by_name:
                    raise
                self._exclude(error)
                toolbox = toolbox.without(self.refused)
            except ModelError as error:
                await self._calls.cancel_early()
                attempt += 1
                if not error.retryable or attempt > config.model_retries:
                    raise
                await self._wait_before_retry(error, attempt)
            except BaseException:
                await self._calls.cancel_early()
                raise
        if not isinstance(response, ModelResponse):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"{type(model).__name__}.respond returned a wrong value: expected a "
                f"ModelResponse, got {type_with_article(response)}."
            )
        if joiner is not None:
            joiner.finish()
        items = encodable_items(response.items)
        return response if items is response.items else replace(response, items=items)

    def _early_starter(self, toolbox: Toolbox) -> Callable[[ToolCallItem], None]:
        start = self._calls.early_starter(toolbox)
        return lambda item: start(cast("ToolCallItem", encodable_items([item])[0]))

    def _settings(self) -> ModelSettings:
        settings = self._agent.model_settings or _NO_SETTINGS
        if self._config.model_settings is not None:
            settings = settings.merged(self._config.model_settings)
        if settings.tool_choice and self._calls.has_run_tools and self._agent.reset_tool_choice:
            # A forced choice of tools would otherwise call tools in every turn.
            return replace(settings, tool_choice=None)
        return settings

    def _exclude(self, error: ToolRefusedError) -> None:
        """Stop offering a tool that the provider refused."""
        self.refused.add(error.tool_name)
        text = f"Tool {error.tool_name!r} is left out: the provider refuses it ({error.reason})."
        _log.warning(text)
        self._scope.emit(NotifyStreamEvent(text, level="warning"))

    async def _wait_before_retry(self, error: ModelError, attempt: int) -> None:
        """Wait with exponential backoff.

        Raises:
            ModelError: The run would time out before the next attempt.
        """
        full = min(_MAX_DELAY, self._config.retry_backoff * 2 ** (attempt - 1))
        delay = full * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing
        delay = max(delay, min(error.retry_after or 0.0, 10 * _MAX_DELAY))
        deadline = self._scope.deadline
        if deadline is not None and time.monotonic() + delay >= deadline:
            raise error
        _log.info("Retrying the model request in %.1f s: %s", delay, error)
        self._scope.emit(
            RawResponseStreamEvent(
                {"type": "agents_tools.retry", "attempt": attempt, "delay": delay}
            )
        )
        await asyncio.sleep(delay)
