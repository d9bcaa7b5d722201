"""Where runs begin: `Runner.run`, `run_sync` and `run_streamed`."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agents_tools._bridge import run_sync
from agents_tools._channel import Channel
from agents_tools._supervisor import finish
from agents_tools.agent import Agent
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.items import input_items
from agents_tools.loop import Run
from agents_tools.run import KEPT, RunConfig, RunHooks
from agents_tools.state import RunState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Self

    from agents_tools.durable import DurableStore
    from agents_tools.events import Event
    from agents_tools.items import Item, RunItem, ToolApprovalItem
    from agents_tools.model import ModelResponse
    from agents_tools.run import RunResult, Session
    from agents_tools.usage import Usage

__all__ = ["RunResultStreaming", "Runner"]


class Runner:
    """Runs agents."""

    @staticmethod
    async def run(
        agent: Agent[Any],
        input: str | Sequence[Any] | RunState,
        *,
        context: Any = None,
        max_turns: int | None = 10,
        run_config: RunConfig | None = None,
        hooks: RunHooks[Any] | None = None,
        session: Session | None = None,
        run_id: str | None = None,
    ) -> RunResult:
        """Run an agent to its end.

        Args:
            agent: The agent.
            input: Text, a list of items (for example of an earlier `to_input_list()`), or the
                state of a run that waited for approvals.
            context: Any object of the application's, for tools and hooks; no model sees it.
            max_turns: How often the model is asked at most; `None` for no limit.
            run_config: How the run is done.
            hooks: Who is told of it, and of the runs of agents that are its tools.
            session: Where the conversation is kept: what was said before is the start of this one.
            run_id: The id of the run; a new one by default. A run that the durable store of the
                configuration has under this id goes on, if its input was the same.

        Raises:
            UserError: Something given cannot work.
            RunInUseError: The run is being carried on elsewhere.
            MaxTurnsExceeded: The model wants to go on after `max_turns`.
            BudgetExceeded: The run has used up its calls or tokens.
            RunTimeoutError: Its time is over.
            ModelError: The model could not be asked.
            ModelBehaviorError: It asked for something impossible, again and again.
        """
        history, state = _begin(agent, input, run_id)
        _check_options(max_turns, run_config, hooks, session, run_id)
        run = Run(
            agent,
            history,
            config=run_config,
            context=context,
            max_turns=max_turns,
            hooks=hooks,
            state=state,
            session=session,
            run_id=run_id,
        )
        return await run.go()

    @staticmethod
    def run_sync(
        agent: Agent[Any],
        input: str | Sequence[Any] | RunState,
        *,
        context: Any = None,
        max_turns: int | None = 10,
        run_config: RunConfig | None = None,
        hooks: RunHooks[Any] | None = None,
        session: Session | None = None,
        run_id: str | None = None,
    ) -> RunResult:
        """Do what `run` does, from synchronous code, whether an event loop runs or not."""
        return run_sync(
            Runner.run,
            agent,
            input,
            context=context,
            max_turns=max_turns,
            run_config=run_config,
            hooks=hooks,
            session=session,
            run_id=run_id,
        )

    @staticmethod
    def run_streamed(
        agent: Agent[Any],
        input: str | Sequence[Any] | RunState,
        *,
        context: Any = None,
        max_turns: int | None = 10,
        run_config: RunConfig | None = None,
        hooks: RunHooks[Any] | None = None,
        session: Session | None = None,
        run_id: str | None = None,
    ) -> RunResultStreaming:
        """Begin a run and watch it.

        The run begins at once. Read `stream_events()` to its end; what the run raises is raised
        there. Leaving an `async with` block around it early, or dropping it, cancels the run.

        Raises:
            UserError: Something given cannot work, or no event loop runs here.
        """
        _check_loop("run_streamed")
        history, state = _begin(agent, input, run_id)
        _check_options(max_turns, run_config, hooks, session, run_id)
        channel = Channel()
        run = Run(
            agent,
            history,
            config=run_config,
            context=context,
            max_turns=max_turns,
            hooks=hooks,
            sinks=(channel.push,),
            channel=channel,
            state=state,
            session=session,
            run_id=run_id,
        )
        return RunResultStreaming(run, channel)

    @staticmethod
    async def resume(
        agent: Agent[Any],
        run_id: str,
        *,
        durable: DurableStore | None = None,
        context: Any = None,
        max_turns: int | None = KEPT,
        run_config: RunConfig | None = None,
        hooks: RunHooks[Any] | None = None,
        session: Session | None = None,
    ) -> RunResult:
        """Go on with a run whose process has ended, or give the result of one that is over.

        What the model answered and what calls gave is not asked for again. A call that was running
        when the process ended is answered with "outcome unknown", unless its tool is annotated as
        read-only or idempotent: then it is made once more, with the same idempotency key.

        Args:
            agent: The agent, as it was.
            run_id: The run.
            durable: The store that has it; that of the configuration by default.
            context: Any object of the application's, for tools and hooks; no model sees it.
            max_turns: How often the model is asked at most, from the beginning on; as the run was
                begun with by default.
            run_config: How the run is done; it is not kept with the run.
            hooks: Who is told of it; not of what is over.
            session: Where the conversation is kept, as it was given at the beginning.

        Raises:
            UserError: There is no such run, or it is of another agent.
            RunInUseError: The run is being carried on elsewhere.
            Exception: What `Runner.run` raises.
        """
        run = _resumed(agent, run_id, durable, max_turns, run_config, hooks, session)
        return await run(context=context).go()

    @staticmethod
    def resume_sync(
        agent: Agent[Any],
        run_id: str,
        *,
        durable: DurableStore | None = None,
        context: Any = None,
        max_turns: int | None = KEPT,
        run_config: RunConfig | None = None,
        hooks: RunHooks[Any] | None = None,
        session: Session | None = None,
    ) -> RunResult:
        """Do what `resume` does, from synchronous code, whether an event loop runs or not."""
        return run_sync(
            Runner.resume,
            agent,
            run_id,
            durable=durable,
            context=context,
            max_turns=max_turns,
            run_config=run_config,
            hooks=hooks,
            session=session,
        )

    @staticmethod
    def resume_streamed(
        agent: Agent[Any],
        run_id: str,
        *,
        durable: DurableStore | None = None,
        context: Any = None,
        max_turns: int | None = KEPT,
        run_config: RunConfig | None = None,
        hooks: RunHooks[Any] | None = None,
        session: Session | None = None,
    ) -> RunResultStreaming:
        """Do what `resume` does, and watch it as with `run_streamed`.

        The events are those of what is done from now on.

        Raises:
            UserError: Something given cannot work, or no event loop runs here.
        """
        _check_loop("resume_streamed")
        run = _resumed(agent, run_id, durable, max_turns, run_config, hooks, session)
        channel = Channel()
        return RunResultStreaming(
            run(context=context, sinks=(channel.push,), channel=channel), channel
        )


class RunResultStreaming:
    """A run that is being watched; made by `Runner.run_streamed`.

    Once it is over it has everything that a `RunResult` has; until then, what there is so far.
    """

    def __init__(self, run: Run, channel: Channel) -> None:
        self._run = run
        self._channel = channel
        self._task = asyncio.create_task(run.go())
        self._task.add_done_callback(lambda _: channel.close())  # even if it was never begun
        self._told = False
        weakref.finalize(self, _cancel, self._task, asyncio.get_running_loop())

    async def __aenter__(self) -> Self:
        """Give itself."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Cancel the run if it still goes on, and wait for its cleanup.

        Raises:
            Exception: What the run raised, if nobody was told of it.
        """
        self._channel.close()
        self._task.cancel()
        await finish(self._task, name=self._run.agent.name)
        if self._task.done() and not self._task.cancelled():
            error = self._task.exception()
            if error is not None and not self._told and exc_info[0] is None:
                raise error

    async def stream_events(self) -> AsyncIterator[Event]:
        """Give what happens, as it happens, at any depth, in one order.

        Raises:
            Exception: What `Runner.run` raises; when the events before it were given.
        """
        async for event in self._channel:
            yield event
        if self._told:
            return
        self._told = True
        if not self._task.cancelled():
            await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()

    async def wait(self) -> RunResult:
        """Wait for the end of the run, without its events.

        Raises:
            Exception: What `Runner.run` raises.
            asyncio.CancelledError: The run was cancelled.
        """
        try:
            return await asyncio.shield(self._task)
        finally:
            self._told = self._told or self._task.done()

    def cancel(self) -> None:
        """Stop the run: tools are cancelled, and each open call gets an answer that says so."""
        self._task.cancel()

    @property
    def is_complete(self) -> bool:
        """Whether the run is over."""
        return self._task.done()

    def _look(self) -> RunResult:
        if self._task.done() and not self._task.cancelled() and self._task.exception() is None:
            return self._task.result()
        return self._run.result()

    @property
    def final_output(self) -> Any:
        """The answer; `None` until the run is over."""
        return self._look().final_output

    @property
    def last_agent(self) -> Any:
        """The agent that runs."""
        return self._run.agent

    @property
    def new_items(self) -> list[RunItem]:
        """What the run has added to the conversation so far."""
        return self._look().new_items

    @property
    def input(self) -> list[Item]:
        """What the run was given."""
        return self._look().input

    @property
    def raw_responses(self) -> Sequence[ModelResponse]:
        """The answers of the model so far."""
        return self._run.responses

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return self._run.usage

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._look().run_id

    @property
    def context(self) -> Any:
        """The application's object."""
        return self._run.scope.context

    @property
    def interruptions(self) -> list[ToolApprovalItem]:
        """The calls that wait for approval."""
        return self._look().interruptions

    def to_input_list(self) -> list[dict[str, Any]]:
        """Give the conversation so far as JSON items."""
        return self._look().to_input_list()

    def final_output_as(self, kind: type[Any]) -> Any:
        """Give the final output, which has to be of a type."""
        return self._look().final_output_as(kind)

    def to_state(self) -> RunState:
        """Give the state that the run could go on from."""
        return self._look().to_state()

    def __repr__(self) -> str:
        """Show the state shortly."""
        state = "done" if self.is_complete else "running"
        return f"<RunResultStreaming of {self._run.agent.name!r}: {state}>"


def _cancel(task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop) -> None:
    """Stop a run that nobody holds any more; called from wherever the last reference went."""
    if not task.done() and not loop.is_closed():
        loop.call_soon_threadsafe(task.cancel)


def _begin(agent: object, given: object, run_id: object) -> tuple[list[Item], RunState | None]:
    if not isinstance(agent, Agent):
        raise UserTypeError(f"Runner runs an Agent, not a {type(agent).__name__}.")
    if not isinstance(given, RunState):
        return input_items(given), None
    if given.agent != agent.name:
        raise UserValueError(
            f"This state is of a run of agent {given.agent!r}, not of {agent.name!r}."
        )
    if run_id not in {None, given.run_id}:
        raise UserValueError(
            f"This state is of run {given.run_id!r}, which goes on under that id and not as "
            f"{run_id!r:.60}."
        )
    return [], given


def _resumed(
    agent: object,
    run_id: str,
    durable: DurableStore | None,
    max_turns: Any,
    run_config: RunConfig | None,
    hooks: RunHooks[Any] | None,
    session: Session | None,
) -> Callable[..., Run]:
    """Give what makes a run that goes on, once everything given was looked at."""
    if not isinstance(agent, Agent):
        raise UserTypeError(f"Runner resumes the run of an Agent, not of a {type(agent).__name__}.")
    _check_options(None if max_turns is KEPT else max_turns, run_config, hooks, session, run_id)
    config = run_config or RunConfig()
    if durable is not None:
        config = replace(config, durable=durable)
    if config.durable is None:
        raise UserTypeError("Runner.resume needs the store that has the run: durable=store.")
    return partial(
        Run,
        cast("Agent[Any]", agent),
        [],
        config=config,
        max_turns=max_turns,
        hooks=hooks,
        session=session,
        run_id=run_id,
        resume=True,
    )


def _check_loop(name: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UserError(
            f"Runner.{name} needs a running event loop: call it in an async function. "
            f"Runner.{name.partition('_')[0]}_sync runs an agent without one."
        ) from None


def _check_options(max_turns: Any, run_config: Any, hooks: Any, session: Any, run_id: Any) -> None:
    wrong: str | None = None
    if max_turns is not None and (type(max_turns) is not int or max_turns < 0):
        wrong = f"max_turns takes a whole number or None, not {max_turns!r:.60}"
    elif run_config is not None and not isinstance(run_config, RunConfig):
        wrong = f"run_config takes a RunConfig, not a {type(run_config).__name__}"
    elif hooks is not None and not isinstance(hooks, RunHooks):
        wrong = f"hooks takes a RunHooks, not a {type(hooks).__name__}"
    elif session is not None and not (hasattr(session, "read") and hasattr(session, "append")):
        wrong = f"session takes an object with read() and append(), not a {type(session).__name__}"
    elif run_id is not None and not _is_name(run_id):
        wrong = (
            f"run_id takes a text of 1 to {_LONGEST_NAME} printable characters, not {run_id!r:.60}"
        )
    if wrong is not None:
        raise UserTypeError(f"{wrong}.")


_LONGEST_NAME = 500


def _is_name(run_id: Any) -> bool:
    """Whether an id is one that every store and log can have."""
    return isinstance(run_id, str) and 0 < len(run_id) <= _LONGEST_NAME and run_id.isprintable()
