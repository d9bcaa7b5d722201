"""The one loop: asks the model, runs the tools it calls, and asks again.

Streamed and plain runs are this same code; what happens is pushed into the scope of the run, and
whoever wants to iterate does so at the edge. The conversation is one list that only grows.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools._calls import Call, Calls
from agents_tools._channel import listeners
from agents_tools._secrets import guard_logs
from agents_tools._supervisor import finish
from agents_tools.context import RunScope, ToolContext, current_context
from agents_tools.errors import (
    BudgetExceeded,
    EventStoreError,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelError,
    RunTimeoutError,
    ToolRefusedError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events import (
    Event,
    EventSource,
    MessageEvent,
    NotifyStreamEvent,
    Origin,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
)
from agents_tools.items import (
    Item,
    MessageInputItem,
    MessageOutputItem,
    ReasoningItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.model import (
    DefaultModelProvider,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    check_model,
    overriding_model,
)
from agents_tools.outputs import to_json
from agents_tools.run import (
    DEFAULT_CONFIG,
    FunctionToolResult,
    RunConfig,
    RunResult,
    ToolsToFinalOutputResult,
    hooks_of_all_runs,
    last_text,
)
from agents_tools.state import RunState, conversation, open_calls, waiting_calls
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools._channel import Channel
    from agents_tools._kept_run import Keeping
    from agents_tools._runnable import RunnableAgent, Toolbox
    from agents_tools.durable import DurableStore
    from agents_tools.events import Emit
    from agents_tools.model import Model
    from agents_tools.run import RunHooks, Session

    ModelItem = MessageOutputItem | ReasoningItem | ToolCallItem

__all__ = ["Run"]


_LONGEST_DELAY = 30.0


class Run:
    """One run of an agent, from its input to its result.

    Args:
        agent: The agent.
        history: The conversation so far; the run adds to it.
        config: How it is done.
        context: The application's object.
        max_turns: How often the model is asked at most; `None` for no limit.
        hooks: Who is told of it and of the runs inside it, besides the agent's own hooks.
        sinks: Who hears its events, besides those of the call that it is made in.
        channel: Where tools that yield their events wait for their reader.
        quiet: Whether the call that the run is made in passes none of its events on.
        state: The state it goes on from.
        session: Where the conversation is kept.
        parent: The call that it is made in; the one that runs here by default.
        run_id: Its id; a new one by default.
        resume: Whether it has to be one that its durable store has.
    """

    def __init__(
        self,
        agent: RunnableAgent,
        history: list[Item],
        *,
        config: RunConfig | None = None,
        context: Any = None,
        max_turns: int | None = 10,
        hooks: RunHooks[Any] | None = None,
        sinks: tuple[Emit, ...] = (),
        channel: Channel | None = None,
        quiet: bool = False,
        state: RunState | None = None,
        session: Session | None = None,
        parent: ToolContext[Any] | None = None,
        run_id: str | None = None,
        resume: bool = False,
    ) -> None:
        parent = parent or current_context()
        outer = None if parent is None else parent.scope
        inherited: RunConfig = DEFAULT_CONFIG if outer is None else outer.run.config
        config = config or inherited
        if config.approve is None and inherited.approve is not None:
            config = replace(config, approve=inherited.approve)
        if config.durable is None and inherited.durable is not None:
            config = replace(config, durable=inherited.durable)
        self.agent = agent
        self.config = config
        self.outer: Run | None = None if outer is None else outer.run
        self.history = history
        self.input_count = len(history)
        self.responses: list[ModelResponse] = []
        self.turns = 0
        self.max_turns = max_turns
        self.usage = Usage()
        self.run_hooks: tuple[RunHooks[Any], ...] = (
            hooks_of_all_runs() if outer is None else outer.run.run_hooks
        )
        if hooks is not None:
            self.run_hooks += (hooks,)
        self.hooks = self.run_hooks + (() if agent.hooks is None else (agent.hooks,))
        self.session = session
        self.usages = [self.usage]
        self.new_input = 0
        self._refused: set[str] = set()
        self._unsaved: list[Event] = []
        self._is_published = False
        self._saving: asyncio.Future[Any] | None = None
        self._model: Model | None = None
        self._corrections = 0
        self._empty = False
        self._later: list[Item] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.resumed = False
        self.kept: Keeping | None = None
        if config.durable is not None:
            self.kept = self._keeping(config.durable, run_id, state, parent, resume=resume)
        if self.kept is not None:
            run_id = self.kept.run_id
            self.usages += self.kept.usages
        if state is not None:
            run_id = state.run_id
        heard = sinks + listeners()
        if parent is not None:
            if outer is not None:
                self.usages += cast("Run", outer.run).usages
            if not quiet:
                heard = parent.sinks + tuple(sink for sink in heard if sink not in parent.sinks)
                channel = channel or parent.channel
            if context is None:
                context = parent.context
        if config.event_stream is not None and (outer is None or config is not inherited):
            heard += tuple(sink for sink in (config.event_stream.publish,) if sink not in heard)
        if session is not None:
            # A stream that hears the run has what it is to keep, and has only to make it safe.
            self._is_published = parent is None and session is cast("object", config.event_stream)
            heard += (self._keep,)
        self.scope = RunScope(
            context,
            agent=agent,
            run_id=run_id or f"run_{uuid.uuid4().hex}",
            usage=self.usage,
            sinks=heard,
            channel=channel,
            parent=parent,
            deadline=None if config.timeout is None else time.monotonic() + config.timeout,
            asker=config.ask or (None if outer is None else outer.asker),
            sampler=config.sample or (None if outer is None else outer.sampler),
            run=self,
        )
        self.calls = Calls(
            agent,
            config,
            self.scope,
            self.hooks,
            self._say_item,
            self._save,
            None if self.kept is None else self.kept.journal,
        )
        if state is None:
            self.calls.remember(history)
        else:
            self.go_on_from(state)

    def _keeping(
        self,
        store: DurableStore,
        run_id: str | None,
        state: RunState | None,
        parent: ToolContext[Any] | None,
        *,
        resume: bool,
    ) -> Keeping | None:
        from agents_tools._kept_run import Keeping, journal_of

        outer = None if self.outer is None else self.outer.kept
        journal = journal_of(store, run_id, state, parent, outer)
        return None if journal is None else Keeping(self, journal, resume=resume)

    @property
    def provider(self) -> str | None:
        """Which wire its model is told of tools in; `None` where that is not known."""
        return self.calls.wire

    @property
    def _replayed(self) -> bool:
        """Whether the answer of the model at hand is one of before."""
        return self.kept is not None and self.kept.replayed

    # --- the run from outside

    async def go(self) -> RunResult:
        """Run to the end.

        Raises:
            MaxTurnsExceeded: The model wants to go on after `max_turns`.
            BudgetExceeded: The run has used up its calls or tokens.
            RunTimeoutError: Its time is over.
            ModelError: The model could not be asked.
            ModelBehaviorError: It asked for something impossible, again and again.
        """
        status, told = "cancelled", None
        output: Any = None
        try:
            result = await self._in_time()
            status = "interrupted" if result.interruptions else "ok"
            output = result.final_output
            return result
        except Exception as error:
            status, told = "error", f"{type(error).__name__}: {error}"
            _attach(error, self.result())
            raise
        finally:
            try:
                await self.calls.drop_early()
            finally:
                self._say_end(status, output, told)
            try:
                await self._save_the_rest()
            finally:
                if self.kept is not None:
                    await self.kept.leave(status)

    def _say_end(self, status: str, output: Any, error: str | None) -> None:
        if self.scope.sinks:
            usage = self.usage.to_dict()
            last = RunFinishedEvent(
                status=status, output=_as_json(output), usage=usage, error=error
            )
            self.scope.close(last)

    async def _in_time(self) -> RunResult:
        deadline = self.scope.deadline
        loop = self._loop = asyncio.get_running_loop()
        if deadline is None or self.config.timeout is None or self._ends_with_parent(deadline):
            return await self._run()
        timer = asyncio.timeout_at(loop.time() + deadline - time.monotonic())
        try:
            async with timer:
                return await self._run()
        except TimeoutError as error:
            if not timer.expired():
                raise
            raise RunTimeoutError(
                f"The run of agent {self.agent.name!r} took longer than "
                f"{self.config.timeout:g} s and was stopped."
            ) from error

    def _ends_with_parent(self, deadline: float) -> bool:
        """Whether the run around ends at the same deadline: two ends at once disturb each other."""
        parent, outer = self.scope.parent, self.scope.scope
        return (
            parent is not None
            and outer is not None
            and parent.deadline == deadline
            and cast("Run", outer.run)._loop is self._loop  # noqa: SLF001 - its own class
        )

    def result(
        self, final_output: Any = None, interruptions: Sequence[ToolApprovalItem] = ()
    ) -> RunResult:
        """Give what there is so far."""
        return RunResult(
            final_output=final_output,
            last_agent=self.agent,
            history=self.history,
            input_count=self.input_count,
            raw_responses=self.responses,
            usage=self.usage,
            run_id=self.scope.run_id or "",
            context=self.scope.context,
            state=self.state,
            interruptions=interruptions,
        )

    def state(self) -> RunState:
        """Give the state that the run could go on from."""
        answered = self.calls.answers_of(open_calls(self.history))  # while others still run
        return RunState(
            agent=self.agent.name,
            run_id=self.scope.run_id or "",
            history=[*self.history, *answered, *self._later],
            input_count=self.input_count,
            turns=self.turns,
            tool_calls=self.calls.count,
            usage=replace(self.usage),
            started=list(self.calls.started),
            pending={one.item.call_id: replace(one) for one in self.calls.pending.values()},
            nested={call_id: inner.copy() for call_id, inner in self.calls.nested.items()},
            standing=dict(self.calls.standing),
        )

    # --- turns

    async def _run(self) -> RunResult:
        scope = self.scope
        if scope.sinks:
            scope.emit(RunStartedEvent(run_id=scope.run_id, agent=self.agent.name))
        if scope.depth > self.config.max_depth:
            raise UserValueError(
                f"Agent {self.agent.name!r} would run inside {scope.depth} others; "
                f"RunConfig(max_depth={self.config.max_depth}) is the limit. Does an agent call "
                "itself?"
            )
        if self.kept is not None:
            await self.kept.open()
        self._model = self._chosen_model()
        self.calls.wire = getattr(self._model, "provider", None)
        for hook in self.hooks:
            await hook.on_agent_start(scope, self.agent)
        await self._load()
        self._say_input()
        box = await self._toolbox()
        if self.kept is not None:
            await self.kept.begin(box)
        calls = self.calls.open(box)
        if calls:
            later = self._later = self._taken_back()
            try:
                await self._answer(calls, box)
            finally:
                self._later = []
                self.history.extend(later)
            final = None if later else await self._after_tools(self._turn(calls, box))
            if final is not None:
                return await self._finished(final)
        while not self.calls.waiting:
            response = await self._ask(box)
            if self._refused:
                box = box.without(self._refused)
            calls = self._take(response, box)
            if calls:
                await self._answer(calls, box, cut_off=response.finish_reason == "length")
                final = await self._after_tools(calls)
            else:
                await self.calls.drop_early()
                final = self._final_answer(response)
            if final is not None:
                return await self._finished(final)
            box = await self._toolbox()
        await self._save()
        if self.kept is not None:
            await self.kept.wait(box)
        return self.result(interruptions=self.state().interruptions)

    # --- what was before

    def go_on_from(self, state: RunState) -> None:
        """Take the place of a run that stopped."""
        self.history[:] = state.history
        self.input_count = state.input_count
        self.turns = state.turns
        self.usage.add(state.usage)
        self.new_input = len(self.history)
        self.resumed = True
        self.calls.go_on_from(state)

    async def heard(self) -> Sequence[Event] | None:
        """Read what the session holds; `None` where there is none."""
        return None if self.session is None else await _given(self.session.read())

    async def _load(self) -> None:
        """Put what the session holds before what the run was given."""
        events = None if self.resumed else await self.heard()
        if events is None:
            return
        before = conversation(events)
        waiting = waiting_calls(events)
        self.calls.remember(before)
        self.calls.lose(call for call in open_calls(before) if call.call_id not in waiting)
        self.history[:0] = before
        self.input_count += len(before)
        self.new_input = len(before)

    def _taken_back(self) -> list[Item]:
        """Take what was said after the open calls, whose answers have to come first."""
        place = len(self.history)
        while isinstance(self.history[place - 1], MessageInputItem):
            place -= 1
        later = self.history[place:]
        del self.history[place:]
        self.input_count = min(self.input_count, place)
        return later

    def _turn(self, calls: list[Call], box: Toolbox) -> list[Call]:
        """Give all calls of the turn that these are left of."""
        place = len(self.history)
        while isinstance(self.history[place - 1], ToolCallOutputItem):
            place -= 1
        return self.calls.of_turn(calls, self.history[place:], box)

    async def _finished(self, final: tuple[Any]) -> RunResult:
        for hook in self.hooks:
            await hook.on_agent_end(self.scope, self.agent, final[0])
        await self._save()
        return self.result(final[0])

    def _chosen_model(self) -> Model:
        config = self.config
        forced = overriding_model()
        if forced is not None:
            return forced
        chosen = self.agent.model if config.model is None else config.model
        if chosen is not None and not isinstance(chosen, str):
            return check_model(chosen)
        provider = config.model_provider
        if provider is None:
            return DefaultModelProvider().get_model(chosen)
        return check_model(provider.get_model(chosen))

    async def _toolbox(self) -> Toolbox:
        box = await self.agent.toolbox(self.scope)
        return box.without(self._refused) if self._refused else box

    async def _ask(self, box: Toolbox) -> ModelResponse:
        """Give the next answer of the model."""
        self._check_budget()
        self.turns += 1
        if self.kept is None:
            response = await self._respond(box)
        else:
            response = await self.kept.answer(lambda: self._respond(box))
        self.responses.append(response)
        for usage in self.usages:
            usage.add(response.usage)
        if not self._replayed:
            for hook in self.hooks:
                await hook.on_llm_end(self.scope, self.agent, response)
        return response

    async def _respond(self, box: Toolbox) -> ModelResponse:
        """Ask the model once, and again after what may pass."""
        agent, config, scope = self.agent, self.config, self.scope
        instructions = await agent.system_prompt(scope)
        for hook in self.hooks:
            await hook.on_llm_start(scope, agent, instructions, self.history)
        attempt = 0
        while True:
            request = ModelRequest(
                instructions=instructions,
                input=self.history,
                tools=box.offered,
                settings=self._settings(),
                output=None if agent.output is None else agent.output.format,
                agent=agent.name,
                on_call=self.calls.starter(box) if config.start_calls_early else None,
            )
            try:
                response = await cast("Model", self._model).respond(request, scope.emit)
                break
            except ToolRefusedError as error:
                await self.calls.drop_early()
                if error.tool_name in self._refused or error.tool_name not in box.by_name:
                    raise
                self._leave_out(error)
                box = box.without(self._refused)
            except ModelError as error:
                await self.calls.drop_early()
                attempt += 1
                if not error.retryable or attempt > config.model_retries:
                    raise
                await self._pause(error, attempt)
            except BaseException:
                await self.calls.drop_early()
                raise
        if not isinstance(response, ModelResponse):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"{type(self._model).__name__}.respond must return a ModelResponse, "
                f"not a {type(response).__name__}."
            )
        return response

    def _check_budget(self) -> None:
        if self.max_turns is not None and self.turns >= self.max_turns:
            raise MaxTurnsExceeded(
                f"Agent {self.agent.name!r} did not come to an end within {self.max_turns} turns "
                "(max_turns)."
            )
        run: Run | None = self
        while run is not None:  # what an inner run uses counts for those around it
            limit, used = run.config.max_total_tokens, run.usage.total_tokens
            if limit is not None and used >= limit:
                raise BudgetExceeded(
                    f"Agent {run.agent.name!r} has used {used} tokens of the {limit} that "
                    "RunConfig(max_total_tokens=...) allows."
                )
            run = run.outer

    def _settings(self) -> ModelSettings:
        settings = (self.agent.model_settings or _PLAIN).merged(self.config.model_settings)
        if settings.tool_choice and self.calls.used and self.agent.reset_tool_choice:
            return replace(settings, tool_choice=None)  # or it would call tools for ever
        return settings

    def _leave_out(self, error: ToolRefusedError) -> None:
        self._refused.add(error.tool_name)
        text = f"Tool {error.tool_name!r} is left out: the provider refuses it ({error.reason})."
        _log.warning(text)
        self.scope.emit(NotifyStreamEvent(text, level="warning"))

    async def _pause(self, error: ModelError, attempt: int) -> None:
        full = min(_LONGEST_DELAY, self.config.retry_backoff * 2 ** (attempt - 1))
        delay = full * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing
        delay = max(delay, min(error.retry_after or 0.0, 10 * _LONGEST_DELAY))
        deadline = self.scope.deadline
        if deadline is not None and time.monotonic() + delay >= deadline:
            raise error
        _log.info("Asking the model again in %.1f s: %s", delay, error)
        self.scope.emit(
            RawResponseStreamEvent(
                {"type": "agents_tools.retry", "attempt": attempt, "delay": delay}
            )
        )
        await asyncio.sleep(delay)

    # --- what the model says

    def _say_input(self) -> None:
        """Say what the run was given, which is part of the conversation."""
        if not self.scope.sinks:
            return
        for item in self.history[self.new_input :]:
            if self.kept is not None and self.kept.was_said(item):
                continue
            if not isinstance(item, MessageInputItem):
                self._say_item("input", item)
                continue
            by_user = item.role == "user"
            said = MessageEvent(item.to_dict()["content"], role="user" if by_user else "system")
            if by_user and not self.scope.path:
                origin = Origin(source=EventSource.USER)
                self.scope.emit(said.replace(origin=origin, timestamp=time.time()))
            else:
                self.scope.emit(said)

    def _say_item(self, name: str, item: Any, again: bool = False) -> None:
        """Say that there is a new item; one of before, to a session that does not have it."""
        if again and self.kept is not None and self.kept.was_said(item, again=True):
            return
        if self.scope.sinks:
            self.scope.emit(RunItemStreamEvent(name, item.to_dict()).attach(item))

    def _keep(self, event: Event) -> None:
        """Take what belongs to the conversation itself, for the session."""
        if event.durable and event.path == self.scope.path:
            if event.path:  # the conversation is this run's own, wherever the run is made
                event = event.replace(origin=Origin(source=event.source or EventSource.AGENT))
            self._unsaved.append(event)

    async def _save(self) -> None:
        """Make safe what was said, before anything follows from it.

        What is kept has no gaps: a cancellation lets what is being kept come to its end, and after
        a failure nothing more is.
        """
        if self._saving is not None:
            await self._saved(self._saving)
        if self.session is not None and self._unsaved:
            events, self._unsaved = self._unsaved, []
            if self._is_published:
                events = []
            given = self.session.append(events)
            self._saving = asyncio.ensure_future(
                given if hasattr(given, "__await__") else _given(given)
            )
            await self._saved(self._saving)

    async def _saved(self, saving: asyncio.Future[Any]) -> None:
        """Wait until it is saved; a session that stops by itself is no cancellation of the run."""
        try:
            await asyncio.shield(saving)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not saving.cancelled() or task is None or task.cancelling():
                raise
            raise EventStoreError(
                f"The session of agent {self.agent.name!r} cancelled what it was to keep.",
                store=type(self.session).__name__,
            ) from None

    async def _save_the_rest(self) -> None:
        if not self._unsaved and (self._saving is None or self._saving.done()):
            return
        saved = asyncio.ensure_future(self._save())
        whole = await finish(saved, name=f"{self.agent.name} session")
        if not whole and self._saving is not None:
            self._saving.cancel()
        if not whole or saved.cancelled() or saved.exception() is not None:
            _log.error("The session of agent %r did not keep all of its run.", self.agent.name)

    def _take(self, response: ModelResponse, box: Toolbox) -> list[Call]:
        """Record an answer, and give the calls in it that wait for one."""
        for item in response.items:
            if not isinstance(item, (MessageOutputItem, ReasoningItem, ToolCallItem)):
                raise UserTypeError(
                    f"{type(self._model).__name__} answered with a {type(item).__name__}; a model "
                    "answers with messages, reasoning and tool calls."
                )
        calls: list[Call] = []
        self.calls.next_answer()
        for item in cast("Sequence[ModelItem]", response.items):
            if isinstance(item, ToolCallItem):
                call = self.calls.take(item, box, again=self._replayed)
                if call is None:
                    continue
                self.history.append(call.item)
                if item.needs_answer:
                    calls.append(call)
            else:
                own = replace(item, agent=self.agent.name)
                self.history.append(own)
                kind = "message_output" if isinstance(own, MessageOutputItem) else "reasoning_item"
                self._say_item(f"{kind}_created", own, self._replayed)
        return calls

    def _final_answer(self, response: ModelResponse) -> tuple[Any] | None:
        """Read the final output from an answer without calls, or let the model try again."""
        answered = any(
            isinstance(item, (MessageOutputItem, ToolCallItem)) for item in response.items
        )
        if not answered and not self._empty:
            self._empty = True  # a hiccup of the provider's, mostly
            return None
        text, output = last_text(response.items), self.agent.output
        if output is None:
            return (text,)
        refused = any(getattr(item, "refusal", None) for item in response.items)
        if refused or response.finish_reason in {"refusal", "content_filter"}:
            raise ModelBehaviorError(
                f"The model of agent {self.agent.name!r} refused to answer: {text or 'no reason'}"
            )
        try:
            return (output.read(text),)
        except ModelBehaviorError as error:
            self._corrections += 1
            if self._corrections > self.config.output_retries:
                raise ModelBehaviorError(
                    f"Agent {self.agent.name!r} gave {self._corrections} answers that are not of "
                    f"its output_type. What the model was told of the last one: {error}"
                ) from error
            told = MessageInputItem(content=str(error))
            self.history.append(told)
            self._say_item("output_refused", told, self._replayed)
            return None

    # --- tools

    async def _answer(self, calls: list[Call], box: Toolbox, *, cut_off: bool = False) -> None:
        """Record one answer for each call, in the order of the calls."""
        try:
            await self.calls.answer(calls, box, before=self._before_calls, cut_off=cut_off)
        finally:
            answers = [call.answer for call in calls if call.answer is not None]
            if self.resumed:  # those of before belong between these
                self.resumed = False
                while isinstance(last := self.history[-1], ToolCallOutputItem):
                    answers.append(last)
                    self.history.pop()
                answers = self.calls.in_order(answers)
            self.history.extend(answers)
        await self._save()

    async def _before_calls(self) -> None:
        """Stop what the whole answer does not hold after all, and make safe what it does."""
        await self.calls.drop_early()
        await self._save()

    # --- after the tools

    async def _after_tools(self, calls: list[Call]) -> tuple[Any] | None:
        """Give the final output if the run ends here."""
        behavior = self.agent.tool_use_behavior
        if behavior == "run_llm_again" or self.calls.waiting:
            return None
        if behavior == "stop_on_first_tool":
            return _first_good(calls[:1])
        if isinstance(behavior, Mapping):
            names = cast("Mapping[str, Any]", behavior)["stop_at_tool_names"]
            return _first_good([call for call in calls if call.asked.name in names])
        results = [
            FunctionToolResult(
                tool=call.tool,
                output=call.value,
                run_item=cast("ToolCallOutputItem", call.answer),
            )
            for call in calls
        ]
        decided: Any = behavior(self.scope, results)
        if hasattr(decided, "__await__"):
            decided = await decided
        if not isinstance(decided, ToolsToFinalOutputResult):
            raise UserTypeError(
                f"The tool_use_behavior of agent {self.agent.name!r} gives a "
                f"ToolsToFinalOutputResult, not a {type(decided).__name__}."
            )
        return (decided.final_output,) if decided.is_final_output else None


_PLAIN = ModelSettings()
_log = logging.getLogger("agents_tools")
guard_logs()


def _first_good(calls: Sequence[Call]) -> tuple[Any] | None:
    """Give what the first call returned, unless it failed: then the model corrects itself."""
    for call in calls:
        if call.answer is not None and call.answer.status == "ok":
            return (call.value,)
    return None


def _as_json(value: Any) -> Any:
    """Give a final output as JSON, for the event."""
    if value is None or isinstance(value, str):
        return value
    from pydantic_core import from_json

    try:
        return from_json(to_json(value))
    except UserError:
        return f"({type(value).__name__}, without a JSON form)"


def _attach(error: Exception, result: RunResult) -> None:
    try:
        cast("Any", error).run_result = result
    except AttributeError:
        _log.debug("%s cannot carry the result of the run.", type(error).__name__)


async def _given(value: Any) -> Any:
    """Give what a function gave that may be sync or async."""
    return await value if hasattr(value, "__await__") else value
