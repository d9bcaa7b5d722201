"""Requests to the model of a run, with retries."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.as_tool import agents_below
from agents_tools.agents.budgets import check_budgets, with_cost
from agents_tools.agents.model import (
    DefaultModelProvider,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    check_model,
    overriding_model,
)
from agents_tools.agents.pair_joiner import PairJoiner
from agents_tools.agents.tool_calls import with_wire
from agents_tools.content.items import MessageInputItem, encodable_items
from agents_tools.errors import ModelError, ToolRefusedError, UserError, UserTypeError
from agents_tools.events.kinds import NotifyStreamEvent, RawResponseStreamEvent
from agents_tools.text.characters import replace_surrogates
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agents_tools.agents.config import RunConfig, RunHooks
    from agents_tools.agents.model import Model
    from agents_tools.agents.model_input import PrepareInput, Summaries
    from agents_tools.agents.tool_calls import TurnCalls
    from agents_tools.agents.toolbox import RunnableAgent, Toolbox
    from agents_tools.content.items import Item, ToolCallItem
    from agents_tools.events.base import Emit, Event
    from agents_tools.events.kinds import SummaryEvent
    from agents_tools.tool.call import RunScope

__all__ = ["ModelCaller", "choose_model"]

_MAX_DELAY = 30.0
_NO_SETTINGS = ModelSettings()
_log = logging.getLogger("agents_tools")


def choose_model(
    agent: RunnableAgent, config: RunConfig, model: str | Model | None = None
) -> Model:
    """Return the model of a run: that of `override_model`, of the configuration or of the agent.

    Args:
        agent: The agent.
        config: The configuration of the run.
        model: Another model of the run, or its name, in place of that of the agent.

    Raises:
        UserError: No model is configured, or it cannot be loaded.
    """
    override = overriding_model()
    if override is not None:
        return override
    chosen = model
    if chosen is None:
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
        emit: Emits an event of the conversation.

    Attributes:
        refused: The names of tools that the provider refused. They are no longer offered.
        summaries: The summaries of the conversation, oldest first.
    """

    def __init__(
        self,
        agent: RunnableAgent,
        config: RunConfig,
        scope: RunScope,
        hooks: Sequence[RunHooks[Any]],
        calls: TurnCalls,
        emit: Emit,
    ) -> None:
        self._agent = agent
        self._config = config
        self._scope = scope
        self._hooks = hooks
        self._calls = calls
        self._emit = emit
        self._model: Model | None = None
        self._known_summaries: Summaries | None = None
        self.refused: set[str] = set()
        self.summaries: list[SummaryEvent] = []
        self._is_checked = False
        self._toolbox: Toolbox | None = None  # `None` while the hook `prepare_input` asks a model
        self._sent = 0  # requests to models, those that a model delegates included

    async def request(self, model: Model, toolbox: Toolbox, history: list[Item]) -> ModelResponse:
        """Return the response to a conversation; repeat the request after a temporary error.

        The budgets are checked first. Early calls of a response that failed are cancelled.

        Args:
            model: The model.
            toolbox: The tools to offer.
            history: The conversation; lone surrogates in it are replaced.

        Raises:
            BudgetExceeded: A budget of the run, or of a run around it, is used up.
            ModelError: The request failed, and no retry is left or useful.
            UserError: The request cannot be sent to this model, or its response has a wrong type.
        """
        agent, config, scope = self._agent, self._config, self._scope
        check_budgets(scope.run, partial(self._models, model, toolbox))
        instructions = await agent.system_prompt(scope.context)
        if not instructions.isascii():
            instructions = replace_surrogates(instructions)
        if not self._is_checked or isinstance(history[-1], MessageInputItem):
            # Responses and outputs of tools, which follow, contain no lone surrogates.
            self._is_checked = True
            history[:] = encodable_items(history)
        filtered = scope.run.filtered
        shown = history if filtered is None else filtered.applied(history)
        if config.prepare_input is not None:
            shown = await self._prepared(config.prepare_input, model, instructions, toolbox, shown)
        for hook in self._hooks:
            await hook.on_llm_start(scope.context, agent, instructions, shown)
        self._toolbox = toolbox
        request = ModelRequest(
            instructions=instructions,
            input=shown,
            tools=toolbox.offered,
            settings=self._settings(),
            output=None if agent.output is None else agent.output.format,
            agent=agent.name,
            send=self._send,
        )
        return await self._send(model, request, scope.emit)

    def _models(self, model: Model, toolbox: Toolbox) -> Iterator[Model]:
        """Yield the model, and with the first request those of the agents that are tools."""
        yield model
        if self._is_checked:
            return
        for agent, config in agents_below(toolbox.by_name.values(), self._config):
            with suppress(UserError):  # an agent without a model fails when it is called
                yield choose_model(agent, config)

    async def _send(self, model: Model, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Send a request to a model, with retries.

        A model that delegates calls this again for each model that it tries. The requests to
        these are retried there, so the error of the delegating model is final.
        """
        # Early calls would act before the guardrails of the input have passed.
        starts_early = self._config.start_calls_early and not self._scope.run.guardrails.is_pending
        attempt = 0
        while True:
            toolbox = self._toolbox
            if toolbox is not None and request.tools is not toolbox.offered:
                request = replace(request, tools=toolbox.offered)
            if toolbox is not None and starts_early:
                request = replace(request, on_call=self._early_starter(toolbox, model))
            self._sent += 1
            number = self._sent
            receiver = self._receiver(model, toolbox, emit)
            try:
                response = await model.respond(request, receiver)
                break
            except ToolRefusedError as error:
                await self._calls.cancel_early()
                if toolbox is None or error.tool_name in self.refused:
                    raise
                if error.tool_name not in toolbox.by_name:
                    raise
                self._exclude(error)
                self._toolbox = toolbox.without(self.refused)
            except ModelError as error:
                await self._calls.cancel_early()
                attempt += 1
                is_final = not error.retryable or number != self._sent
                if is_final or attempt > self._config.model_retries:
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
        if isinstance(receiver, PairJoiner):
            receiver.finish()
        items = encodable_items(response.items)
        wire = getattr(model, "provider", None)
        if wire != self._calls.provider:
            items = with_wire(items, wire)
        elif wire is not None and toolbox is not None:
            items = self._calls.mark_converted(items, toolbox)
        usage = with_cost(response, self._scope.run, model)
        return replace(response, items=items, usage=usage)

    def _receiver(self, model: Model, toolbox: Toolbox | None, emit: Emit) -> Emit:
        """Return what receives the deltas of one response."""
        is_delegating = hasattr(model, "models")  # those have receivers of their own
        starts_early = not is_delegating and not self._scope.run.guardrails.is_pending
        if toolbox is not None and starts_early and toolbox.has_streams():
            emit = self._calls.start_watching(toolbox, emit, getattr(model, "provider", None))
        elif not self._scope.sinks:
            return emit
        return PairJoiner(emit)

    # --- the hook `prepare_input`

    async def _prepared(
        self,
        hook: PrepareInput,
        model: Model,
        instructions: str,
        toolbox: Toolbox,
        history: list[Item],
    ) -> Sequence[Item]:
        """Return what the model reads of the conversation."""
        from agents_tools.agents.model_input import InputContext, Summaries, prepared_input

        if self._known_summaries is None:
            recorder = self._scope.run.recorder
            self.summaries += () if recorder is None else recorder.summaries
            self._known_summaries = Summaries(self.summaries)
        self._model, self._toolbox = model, None
        context = InputContext[Any](
            self._scope,
            model,
            instructions,
            toolbox.offered,
            requests=self,
            summaries=self._known_summaries,
        )
        return await prepared_input(hook, history, context)

    async def ask(
        self, input: Sequence[Item], instructions: str, model: str | Model | None
    ) -> ModelResponse:
        """Return the response to a request of the hook, which counts in the usage of the run.

        Args:
            input: The items.
            instructions: The system prompt.
            model: The model, or its name; that of the run by default.
        """
        own = cast("Model", self._model)
        chosen = own if model is None else choose_model(self._agent, self._config, model)
        # Settings of other models can be invalid for this one, and a forced call or a limit of the
        # answer would make a summary useless.
        settings = ModelSettings(timeout=self._settings().timeout)
        if chosen is own:
            settings = replace(
                self._settings(),
                tool_choice=None,
                parallel_tool_calls=None,
                stop=None,
                max_tokens=None,
            )
        request = ModelRequest(
            instructions=instructions,
            input=input,
            settings=settings,
            agent=self._agent.name,
            send=self._send,
        )
        check_budgets(self._scope.run, lambda: [chosen])
        response = await self._send(chosen, request, _ignore)
        for usage in self._scope.run.usages:
            usage.add(response.usage)
        return response

    async def add_summary(self, event: SummaryEvent) -> None:
        """Record a summary; it is stored before the model reads it."""
        self.summaries.append(event)
        if self._scope.sinks:
            self._emit(event)
        if self._scope.run.recorder is not None:
            await self._scope.run.recorder.log.flush()

    def _early_starter(self, toolbox: Toolbox, model: Model) -> Callable[[ToolCallItem], None]:
        start, wire = self._calls.early_starter(toolbox), getattr(model, "provider", None)

        def start_early(item: ToolCallItem) -> None:
            items = encodable_items([item])
            marked = items if wire == self._calls.provider else with_wire(items, wire)
            start(cast("ToolCallItem", marked[0]))

        return start_early

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


def _ignore(_: Event) -> None:
    """Ignore a delta of a response that is not part of the conversation."""
