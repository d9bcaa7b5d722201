"""The one loop: asks the model, runs the tools it calls, and asks again.

Streamed and plain runs are this same code; what happens is pushed into the scope of the run, and
whoever wants to iterate does so at the edge. The conversation is one list that only grows.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools._calls import Call, Calls
from agents_tools._channel import listeners
from agents_tools._instruments import hooks_of_all_runs
from agents_tools._supervisor import finish
from agents_tools.context import RunScope, ToolContext, current_context
from agents_tools.errors import (
    BudgetExceeded,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelError,
    RunTimeoutError,
    ToolRefusedError,
    UserError,
    UserKeyError,
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
    input_items,
    item_from_dict,
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
    last_text,
)
from agents_tools.state import RunState, open_calls, pin_of
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools._channel import Channel
    from agents_tools._runnable import RunnableAgent, Toolbox
    from agents_tools.durable import DurableStore, RunStatus
    from agents_tools.durable._journal import Journal, Said
    from agents_tools.events import Emit
    from agents_tools.model import Model
    from agents_tools.run import RunHooks, Session

    ModelItem = MessageOutputItem | ReasoningItem | ToolCallItem

__all__ = ["KEPT", "Run"]


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
        self._new_input = 0
        self._refused: set[str] = set()
        self._unsaved: list[Event] = []
        self._is_published = False
        self._saving: asyncio.Future[Any] | None = None
        self._model: Model | None = None
        self._corrections = 0
        self._empty = False
        self._later: list[Item] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._resumed = False
        self._replayed = False
        self._said: Said | None = None
        self.journal: Journal | None = None
        if config.durable is not None:
            self.journal = _journal(config.durable, run_id, state, parent)
            run_id = run_id if self.journal is None else self.journal.run_id
        if state is not None:
            run_id = state.run_id
        self._resume = resume
        self._input: str | None = None
        self._carried = False
        self._before = 0
        heard = sinks + tuple(sink for sink in listeners() if sink not in sinks)
        if parent is not None:
            if self.journal is not None and self.journal.usage is not None:
                self.usages.append(self.journal.usage)
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
        self._calls = Calls(
            agent, config, self.scope, self.hooks, self._say_item, self._save, self.journal
        )
        if state is None:
            self._calls.remember(history)
        else:
            self._go_on_from(state)

    @property
    def provider(self) -> str | None:
        """Which wire its model is told of tools in; `None` where that is not known."""
        return self._calls.wire

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
                await self._calls.drop_early()
            finally:
                self._say_end(status, output, told)
            try:
                await self._save_the_rest()
            finally:
                if self.journal is not None:
                    await self._leave(self.journal, status)

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
        answered = self._calls.answers_of(open_calls(self.history))  # while others still run
        return RunState(
            agent=self.agent.name,
            run_id=self.scope.run_id or "",
            history=[*self.history, *answered, *self._later],
            input_count=self.input_count,
            turns=self.turns,
            tool_calls=self._calls.count,
            usage=replace(self.usage),
            started=list(self._calls.started),
            pending={one.item.call_id: replace(one) for one in self._calls.pending.values()},
            nested={call_id: inner.copy() for call_id, inner in self._calls.nested.items()},
            standing=dict(self._calls.standing),
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
        start = None if self.journal is None else await self._open(self.journal)
        self._model = self._chosen_model()
        self._calls.wire = getattr(self._model, "provider", None)
        for hook in self.hooks:
            await hook.on_agent_start(scope, self.agent)
        await self._load()
        self._say_input()
        box = await self._toolbox()
        if self.journal is not None:
            await self._begin(self.journal, start, box)
        calls = self._calls.open(box)
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
        while not self._calls.waiting:
            response = await self._ask(box)
            if self._refused:
                box = box.without(self._refused)
            calls = self._take(response, box)
            if calls:
                await self._answer(calls, box, cut_off=response.finish_reason == "length")
                final = await self._after_tools(calls)
            else:
                await self._calls.drop_early()
                final = self._final_answer(response)
            if final is not None:
                return await self._finished(final)
            box = await self._toolbox()
        await self._save()
        if self.journal is not None:
            await self._wait(self.journal, box)
        return self.result(interruptions=self.state().interruptions)

    # --- what outlives the process

    async def _open(self, journal: Journal) -> Mapping[str, Any] | None:
        """Become the one who carries the run on; give where it begins if it is gone on with.

        Raises:
            UserError: It is no run of this agent, or was begun with another input.
        """
        if journal.is_inner:
            return None
        start = await journal.open()
        if self.session is not None:
            self._before = len(await _given(self.session.read()))
        self._input = None if self._resumed else _input_of(self.history)
        if start is None:
            self._carried = not self._resume
            if self._resume:
                raise UserKeyError(
                    f"There is no run {journal.run_id!r} in the durable store. "
                    "Runner.run(..., run_id=...) begins one."
                )
            return None
        is_other = self._resumed and start["state"] != self._start().to_dict()
        if not self._resumed:
            self._adopt(start)
        self._input, self._carried = start["input"], True
        if is_other:  # a person has decided since, for example
            return None
        if self.session is not None:
            events = await _given(self.session.read())
            self._said = journal.said(conversation(events[start["said"] :]))
            self._new_input = start["new_input"]
        return start

    def _adopt(self, start: Mapping[str, Any]) -> None:
        """Go on from where the run begins."""
        state = RunState.from_dict(start["state"])
        if state.agent != self.agent.name:
            raise UserValueError(
                f"Run {state.run_id!r} is of agent {state.agent!r}, not of {self.agent.name!r}."
            )
        if not self._resume and start["input"] != self._input:
            raise UserValueError(
                f"Run {state.run_id!r} was begun with another input. Give a new run another "
                "run_id, or go on with this one: Runner.resume(agent, run_id, durable=...)."
            )
        if self.max_turns is KEPT:
            self.max_turns = start["max_turns"]
        self._go_on_from(state)

    def _go_on_from(self, state: RunState) -> None:
        self.history[:] = state.history
        self.input_count = state.input_count
        self.turns = state.turns
        self.usage.add(state.usage)
        self._new_input = len(self.history)
        self._resumed = True
        self._calls.go_on_from(state)

    def _start(self) -> RunState:
        """Give the state that the run begins with, or goes on from."""
        return replace(self.state(), started=self._calls.lost)

    async def _begin(self, journal: Journal, start: Mapping[str, Any] | None, box: Toolbox) -> None:
        """Keep where the run begins, with its tools as they are."""
        if journal.is_inner:
            return
        tools = {name: pin_of(tool) for name, tool in box.by_name.items()}
        if start is not None:
            self._tell_of_changes(start["tools"], tools)
            return
        await journal.begin(
            {
                "agent": self.agent.name,
                "input": self._input,
                "state": self._start().to_dict(),
                "max_turns": self.max_turns,
                "tools": tools,
                "said": self._before,
                "new_input": self._new_input,
            }
        )

    async def _wait(self, journal: Journal, box: Toolbox) -> None:
        """Keep that the run goes on from here, once the calls that wait are decided."""
        if self.session is not None and not journal.is_inner:
            self._before = len(await _given(self.session.read()))
        self._new_input = len(self.history)
        await self._begin(journal, None, box)

    def _tell_of_changes(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        changed = [name for name, pin in now.items() if before.get(name, pin) != pin]
        gone = [name for name in before if name not in now]
        parts = [
            f"{what}: {', '.join(names)}"
            for what, names in (("changed", changed), ("gone", gone))
            if names
        ]
        if parts:
            text = (
                f"The tools of agent {self.agent.name!r} are not those that run "
                f"{self.scope.run_id!r} was begun with ({'; '.join(parts)}). What they did before "
                "stays; calls from now on are made of the tools as they are."
            )
            _log.warning(text)
            self.scope.emit(NotifyStreamEvent(text, level="warning"))

    async def _recorded(self, journal: Journal, box: Toolbox) -> ModelResponse:
        """Give the answer of the model in this turn, which is asked for it once."""
        self._replayed = journal.has_answer(self.turns)
        made: list[ModelResponse] = []

        async def ask() -> dict[str, Any]:
            made.append(_with_ids(await self._respond(box)))
            return {"answer": made[0].to_dict(), "spent": self._calls.spent}

        record = await journal.answer(self.turns, ask)
        if made:
            return made[0]
        self._calls.spend(record["spent"])
        return ModelResponse.from_dict(record["answer"])

    async def _leave(self, journal: Journal, status: str) -> None:
        """Let others carry the run on, whatever happens."""
        left = asyncio.ensure_future(journal.leave(_LEFT[status] if self._carried else None))
        await finish(left, name=f"{self.agent.name} durable store")
        if left.done() and (left.cancelled() or left.exception() is not None):
            _log.error("How run %r ended could not be kept.", self.scope.run_id)

    async def _load(self) -> None:
        """Put what the session holds before what the run was given."""
        if self.session is None or self._resumed:
            return
        events = await _given(self.session.read())
        before = conversation(events)
        waiting = _waiting(events)
        self._calls.remember(before)
        self._calls.lose(call for call in open_calls(before) if call.call_id not in waiting)
        self.history[:0] = before
        self.input_count += len(before)
        self._new_input = len(before)

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
        return self._calls.of_turn(calls, self.history[place:], box)

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
        if self.journal is None:
            response = await self._respond(box)
        else:
            response = await self._recorded(self.journal, box)
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
                on_call=self._calls.starter(box) if config.start_calls_early else None,
            )
            try:
                response = await cast("Model", self._model).respond(request, scope.emit)
                break
            except ToolRefusedError as error:
                await self._calls.drop_early()
                if error.tool_name in self._refused or error.tool_name not in box.by_name:
                    raise
                self._leave_out(error)
                box = box.without(self._refused)
            except ModelError as error:
                await self._calls.drop_early()
                attempt += 1
                if not error.retryable or attempt > config.model_retries:
                    raise
                await self._pause(error, attempt)
            except BaseException:
                await self._calls.drop_early()
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
        if settings.tool_choice and self._calls.used and self.agent.reset_tool_choice:
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
        for item in self.history[self._new_input :]:
            if self._said is not None and self._said.take(item):
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
        if again and (self._said is None or self._said.take(item)):
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
            await asyncio.shield(self._saving)
        if self.session is not None and self._unsaved:
            events, self._unsaved = self._unsaved, []
            if self._is_published:
                events = []
            self._saving = asyncio.ensure_future(_given(self.session.append(events)))
            await asyncio.shield(self._saving)

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
        self._calls.next_answer()
        for item in cast("Sequence[ModelItem]", response.items):
            if isinstance(item, ToolCallItem):
                call = self._calls.take(item, box, again=self._replayed)
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
            await self._calls.answer(calls, box, before=self._before_calls, cut_off=cut_off)
        finally:
            answers = [call.answer for call in calls if call.answer is not None]
            if self._resumed:  # those of before belong between these
                self._resumed = False
                while isinstance(last := self.history[-1], ToolCallOutputItem):
                    answers.append(last)
                    self.history.pop()
                answers = self._calls.in_order(answers)
            self.history.extend(answers)
        await self._save()

    async def _before_calls(self) -> None:
        """Stop what the whole answer does not hold after all, and make safe what it does."""
        await self._calls.drop_early()
        await self._save()

    # --- after the tools

    async def _after_tools(self, calls: list[Call]) -> tuple[Any] | None:
        """Give the final output if the run ends here."""
        behavior = self.agent.tool_use_behavior
        if behavior == "run_llm_again" or self._calls.waiting:
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


KEPT: Any = object()
"""As many turns as the durable store knows of."""

_LEFT: dict[str, RunStatus] = {
    "ok": "finished",
    "interrupted": "waiting",
    "error": "failed",
    "cancelled": "cancelled",
}
_PLAIN = ModelSettings()
_log = logging.getLogger("agents_tools")


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


def _journal(
    store: DurableStore,
    run_id: str | None,
    state: RunState | None,
    parent: ToolContext[Any] | None,
) -> Journal | None:
    """Give what keeps a run; `None` for one that is part of a step of another."""
    scope = None if parent is None else parent.scope
    if scope is not None and run_id is None and scope.run.config.durable is not None:
        outer = cast("Run", scope.run).journal
        return None if outer is None else outer.below(cast("ToolContext[Any]", parent).path)
    from agents_tools.durable._journal import Journal

    if run_id is None and state is not None:
        run_id = state.run_id
    return Journal(store, run_id or f"run_{uuid.uuid4().hex}")


def _input_of(history: Sequence[Item]) -> str:
    """Give the fingerprint of what a run was given."""
    text = json.dumps([item.to_dict() for item in history], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _with_ids(response: ModelResponse) -> ModelResponse:
    """Name the calls of a model that gives no ids, before the answer is kept."""
    items = [
        replace(item, call_id=f"call_{uuid.uuid4().hex[:16]}")
        if isinstance(item, ToolCallItem) and not item.call_id
        else item
        for item in response.items
    ]
    return replace(response, items=items)


def _attach(error: Exception, result: RunResult) -> None:
    try:
        cast("Any", error).run_result = result
    except AttributeError:
        _log.debug("%s cannot carry the result of the run.", type(error).__name__)


async def _given(value: Any) -> Any:
    """Give what a function gave that may be sync or async."""
    return await value if hasattr(value, "__await__") else value


def _waiting(events: Sequence[Event]) -> set[str]:
    """Give the ids of the calls that wait for a person, and so have not run."""
    waiting: set[str] = set()
    for event in events:
        if isinstance(event, RunItemStreamEvent) and not event.path:
            if event.name == "tool_approval_requested":
                waiting.add(str(event.item.get("call_id")))
            elif event.name == "tool_approval_granted":
                waiting.discard(str(event.item.get("call_id")))
    return waiting


def conversation(events: Sequence[Event]) -> list[Item]:
    """Read a conversation out of its events."""
    items: list[Item] = []
    for event in events:
        if event.path:
            continue
        if isinstance(event, MessageEvent):
            items.extend(input_items([{"role": event.role, "content": event.content}]))
        elif isinstance(event, RunItemStreamEvent):
            item = item_from_dict(event.item)
            if not isinstance(item, ToolApprovalItem):
                items.append(item)
    return items
