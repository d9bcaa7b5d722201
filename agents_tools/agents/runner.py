"""The runner: starts and resumes runs, with or without streaming."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from agents_tools._package import ForeignAttributes
from agents_tools.agents.agent import Agent
from agents_tools.agents.config import UNCHANGED, RunConfig, RunHooks
from agents_tools.agents.foreign_session import ItemSession, SessionHooks
from agents_tools.agents.run import Run
from agents_tools.agents.state import RunState
from agents_tools.agents.type_variables import ContextT, OutputT
from agents_tools.concurrency.bridge import run_sync
from agents_tools.concurrency.future import call_on_loop
from agents_tools.concurrency.supervisor import finish
from agents_tools.content.items import input_items
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.events.channel import Channel
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.call import current_call
from agents_tools.tool.options import refuse_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Never, Self

    from agents_tools.agents.config import RunResult
    from agents_tools.agents.guardrail import InputGuardrailResult, OutputGuardrailResult
    from agents_tools.agents.model import ModelResponse
    from agents_tools.content.items import Item, RunItem, ToolApprovalItem
    from agents_tools.content.usage import Usage
    from agents_tools.events.base import Event
    from agents_tools.persistence.run_store import RunStore, Session
    from agents_tools.tool.run_context import RunContextWrapper

__all__ = ["RunResultStreaming", "Runner"]


class Runner:
    """Starts runs of agents."""

    @staticmethod
    async def run(
        agent: Agent[ContextT, OutputT],
        input: str | Sequence[Any] | RunState,
        *,
        context: ContextT | None = None,
        max_turns: int | None = 10,
        run_config: RunConfig | None = None,
        hooks: RunHooks[ContextT] | None = None,
        session: Session | ItemSession | str | None = None,
        run_id: str | None = None,
        **unknown: Never,
    ) -> RunResult[OutputT]:
        """Run an agent until it has a result.

        Args:
            agent: The agent.
            input: Text, a list of items (for example from `to_input_list()`), or the state of a run
                that waited for approvals.
            context: Any object of the application, for tools and hooks; it is never sent to a
                model.
            max_turns: The maximum number of model responses; `None` for no limit.
            run_config: The configuration of the run.
            hooks: Callbacks for this run and the runs of agents that are its tools.
            session: The conversation that the run continues: a `Session`, or its id in the store of
                the configuration. A session of another library with the methods `get_items` and
                `add_items` gets the items of the run when it has its final output.
            run_id: The id of the run; a new one by default. If the store of the configuration has a
                run with this id and the same input, that run continues.
            **unknown: No other option exists. For one of openai-agents, the error names the
                counterpart.

        Raises:
            UserError: An argument is not valid.
            RunInUseError: Another process executes the run.
            MaxTurnsExceeded: The model did not finish within `max_turns`.
            BudgetExceeded: The run has reached its limit of calls, tokens or dollars.
            RunTimeoutError: The run has reached its time limit.
            ModelError: The request to the model failed.
            ModelBehaviorError: The model repeatedly sent invalid output.
        """
        if unknown:
            refuse_options("Runner.run", Runner.run, unknown)
        _check_options(agent, max_turns, run_config, hooks, run_id)
        history, state = _read_input(agent, input, run_id)
        session_id, run_config, session_hooks = _read_session(session, run_config)
        run = Run(
            agent,
            history,
            config=run_config,
            context=context,
            max_turns=max_turns,
            hooks=hooks,
            state=state,
            session=session_id,
            run_id=run_id,
        )
        if session_hooks is not None:
            run.add_hooks(session_hooks)
        return await run.execute()

    @staticmethod
    def run_sync(
        agent: Agent[ContextT, OutputT],
        input: str | Sequence[Any] | RunState,
        *,
        context: ContextT | None = None,
        max_turns: int | None = 10,
        run_config: RunConfig | None = None,
        hooks: RunHooks[ContextT] | None = None,
        session: Session | ItemSession | str | None = None,
        run_id: str | None = None,
        **unknown: Never,
    ) -> RunResult[OutputT]:
        """Call `run` from synchronous code, with or without a running event loop."""
        if unknown:
            refuse_options("Runner.run_sync", Runner.run_sync, unknown)
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
        agent: Agent[ContextT, OutputT],
        input: str | Sequence[Any] | RunState,
        *,
        context: ContextT | None = None,
        max_turns: int | None = 10,
        run_config: RunConfig | None = None,
        hooks: RunHooks[ContextT] | None = None,
        session: Session | ItemSession | str | None = None,
        run_id: str | None = None,
        **unknown: Never,
    ) -> RunResultStreaming[OutputT]:
        """Start a run and stream its events.

        The run starts at once. Read `stream_events()` to the end; it also raises the exception of
        the run. Leaving an `async with` block around the result early, or dropping the result,
        cancels the run. The arguments are those of `run`.

        Raises:
            UserError: An argument is not valid, or no event loop is running.
        """
        if unknown:
            refuse_options("Runner.run_streamed", Runner.run_streamed, unknown)
        _check_loop("run_streamed")
        _check_options(agent, max_turns, run_config, hooks, run_id)
        history, state = _read_input(agent, input, run_id)
        session_id, run_config, session_hooks = _read_session(session, run_config)
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
            session=session_id,
            run_id=run_id,
        )
        if session_hooks is not None:
            run.add_hooks(session_hooks)
        return RunResultStreaming(run, channel)

    @staticmethod
    async def resume(
        agent: Agent[ContextT, OutputT],
        run_id: str,
        *,
        store: RunStore | None = None,
        context: ContextT | None = None,
        max_turns: int | None = UNCHANGED,
        run_config: RunConfig | None = None,
        hooks: RunHooks[ContextT] | None = None,
    ) -> RunResult[OutputT]:
        """Continue a stored run whose process has ended, or return its result if it has finished.

        A run that waited for a person continues with the decisions in its store. Recorded model
        responses and call outputs are not requested again. A call that was running when the process
        ended gets the output "outcome unknown", unless its tool is annotated as read-only or
        idempotent: then it is called again with the same idempotency key.

        Args:
            agent: The same agent as in the original run.
            run_id: The id of the run.
            store: The store with the run; that of the configuration by default.
            context: Any object of the application, for tools and hooks; it is never sent to a
                model.
            max_turns: The maximum number of model responses, counted from the start of the run; by
                default the value that the run was started with.
            run_config: The configuration; it is not stored with the run.
            hooks: Callbacks; they are not called for recorded steps.

        Raises:
            UserError: There is no such run, or it belongs to another agent.
            RunInUseError: Another process executes the run.
            Exception: The errors of `Runner.run`.
        """
        create_run = _resumed_run_factory(agent, run_id, store, max_turns, run_config, hooks)
        return await create_run(context=context).execute()

    @staticmethod
    def resume_sync(
        agent: Agent[ContextT, OutputT],
        run_id: str,
        *,
        store: RunStore | None = None,
        context: ContextT | None = None,
        max_turns: int | None = UNCHANGED,
        run_config: RunConfig | None = None,
        hooks: RunHooks[ContextT] | None = None,
    ) -> RunResult[OutputT]:
        """Call `resume` from synchronous code, with or without a running event loop."""
        return run_sync(
            Runner.resume,
            agent,
            run_id,
            store=store,
            context=context,
            max_turns=max_turns,
            run_config=run_config,
            hooks=hooks,
        )

    @staticmethod
    def resume_streamed(
        agent: Agent[ContextT, OutputT],
        run_id: str,
        *,
        store: RunStore | None = None,
        context: ContextT | None = None,
        max_turns: int | None = UNCHANGED,
        run_config: RunConfig | None = None,
        hooks: RunHooks[ContextT] | None = None,
    ) -> RunResultStreaming[OutputT]:
        """Resume a run and stream its new events, as `run_streamed` does.

        Events of recorded steps are not repeated. The arguments are those of `resume`.

        Raises:
            UserError: An argument is not valid, or no event loop is running.
        """
        _check_loop("resume_streamed")
        create_run = _resumed_run_factory(agent, run_id, store, max_turns, run_config, hooks)
        channel = Channel()
        return RunResultStreaming(
            create_run(context=context, sinks=(channel.push,), channel=channel), channel
        )


class RunResultStreaming(ForeignAttributes, Generic[OutputT]):
    """A streamed run, created by `Runner.run_streamed`.

    It has the attributes of a `RunResult`. Until the run ends, they contain the progress so far.
    """

    def __init__(self, run: Run, channel: Channel) -> None:
        self._run = run
        self._channel = channel
        self._task = asyncio.create_task(run.execute())
        self._task.add_done_callback(lambda _: channel.close())  # also if the task never started
        self._is_error_raised = False
        weakref.finalize(self, _cancel, self._task, asyncio.get_running_loop())

    async def __aenter__(self) -> Self:
        """Return the run."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Cancel the run if it has not ended, and wait for its cleanup.

        Raises:
            Exception: The exception of the run, if it was not raised before.
        """
        self._channel.close()
        self._task.cancel()
        await finish(self._task, name=self._run.agent.name)
        if self._task.done() and not self._task.cancelled():
            error = self._task.exception()
            if error is not None and not self._is_error_raised and exc_info[0] is None:
                raise error

    async def stream_events(self) -> AsyncIterator[Event]:
        """Yield the events of the run and of all runs and calls inside it, in order.

        Raises:
            Exception: The errors of `Runner.run`, after all events before them.
        """
        async for event in self._channel:
            yield event
        if self._is_error_raised:
            return
        self._is_error_raised = True
        if not self._task.cancelled():
            await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()

    async def wait(self) -> RunResult[OutputT]:
        """Wait for the result of the run, without its events.

        Raises:
            Exception: The errors of `Runner.run`.
            asyncio.CancelledError: The run was cancelled.
        """
        try:
            return await asyncio.shield(self._task)
        finally:
            self._is_error_raised = self._is_error_raised or self._task.done()

    def cancel(self, call_id: str | None = None) -> bool:
        """Cancel the run and its tools, or one call of it.

        Each cancelled call gets the status `cancelled`. If only one call is cancelled, the model
        reads that, and the run continues.

        Args:
            call_id: The id of a call of this run or of an agent inside it; by default the run is
                cancelled.

        Returns:
            Whether the run, or the call, was running.
        """
        if call_id is None:
            return self._task.cancel()
        return self._run.cancel_call(call_id)

    def send(self, message: str | Sequence[Any]) -> None:
        """Send a message to the model while the run works; any thread can call this.

        The model gets the message with its next request, after the outputs of the calls that run
        now. If it has just given its final answer, the run takes another turn, which counts for
        `max_turns`. A run that stops first, for example for an approval, keeps the message in its
        conversation. The message goes to this run, not to agents inside it.

        Args:
            message: Text, or a list of messages such as `{"role": "user", "content": "…"}`.

        Raises:
            UserError: The run has ended, or the value is not a message.
        """
        self._run.send(message)

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended."""
        return self._task.done()

    def _current_result(self) -> RunResult[OutputT]:
        if self._task.done() and not self._task.cancelled() and self._task.exception() is None:
            return self._task.result()
        return self._run.result()

    @property
    def final_output(self) -> OutputT:
        """The final output; `None` until the run ends."""
        return self._current_result().final_output

    @property
    def last_agent(self) -> Any:
        """The agent of the run; that of the last handoff."""
        return self._run.agent

    @property
    def current_agent(self) -> Any:
        """The agent of the run; that of the last handoff."""
        return self._run.agent

    @property
    def input_guardrail_results(self) -> list[InputGuardrailResult]:
        """The results of the checks of the input so far."""
        return self._current_result().input_guardrail_results

    @property
    def output_guardrail_results(self) -> list[OutputGuardrailResult]:
        """The results of the checks of the final output so far."""
        return self._current_result().output_guardrail_results

    @property
    def context_wrapper(self) -> RunContextWrapper[Any]:
        """The application's object and the usage so far."""
        return self._current_result().context_wrapper

    @property
    def new_items(self) -> list[RunItem]:
        """The items that the run has added to the conversation so far."""
        return self._current_result().new_items

    @property
    def input(self) -> list[Item]:
        """The input of the run."""
        return self._current_result().input

    @property
    def raw_responses(self) -> Sequence[ModelResponse]:
        """The responses of the model so far."""
        return self._run.responses

    @property
    def usage(self) -> Usage:
        """The tokens that were used so far."""
        return self._run.usage

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._current_result().run_id

    @property
    def context(self) -> Any:
        """The application's object."""
        return self._run.scope.app_context

    @property
    def interruptions(self) -> list[ToolApprovalItem]:
        """The calls that wait for approval."""
        return self._current_result().interruptions

    def to_input_list(self) -> list[dict[str, Any]]:
        """Return the conversation so far as JSON items."""
        return self._current_result().to_input_list()

    def final_output_as(self, kind: type[Any]) -> Any:
        """Return the final output if it is an instance of a class; see `RunResult`."""
        return self._current_result().final_output_as(kind)

    def to_state(self) -> RunState:
        """Return a state from which the run can continue."""
        return self._current_result().to_state()

    def __repr__(self) -> str:
        """Return a short description of the run."""
        state = "done" if self.is_complete else "running"
        return f"<RunResultStreaming of {self._run.agent.name!r}: {state}>"

    def _repr_html_(self) -> str:
        return self._current_result()._repr_html_()  # pyright: ignore[reportPrivateUsage]


def _cancel(task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop) -> None:
    """Cancel a run whose result was dropped; the finalizer can run in any thread."""
    if not task.done():
        call_on_loop(loop, task.cancel)


def _read_input(
    agent: Agent[Any, Any], value: object, run_id: object
) -> tuple[list[Item], RunState | None]:
    if not isinstance(value, RunState):
        return input_items(value), None
    if value.agent != agent.name:
        raise UserValueError(
            f"The state belongs to another agent: expected a state of {agent.name!r}, got one of "
            f"{value.agent!r}."
        )
    if run_id not in {None, value.run_id}:
        raise UserValueError(
            f"The run_id does not match the state: expected {value.run_id!r}, got {run_id!r:.60}. "
            "Omit run_id."
        )
    return [], value


def _read_session(
    session: object, config: RunConfig | None
) -> tuple[str | None, RunConfig | None, SessionHooks | None]:
    """Return the id of a session, the configuration with its store, and the hooks of a session."""
    if session is None:
        return None, config, None
    store = None if config is None else config.store
    if isinstance(session, str):
        if store is None and _inherited_store() is None:
            raise UserTypeError(
                f"session={session!r:.60} names a conversation in a run store, but no store is "
                "configured. Pass run_config=RunConfig(store=...)."
            )
        return _check_session_id(session), config, None
    from agents_tools.persistence.run_store import Session

    if not isinstance(session, Session):
        if isinstance(session, ItemSession):
            return None, config, SessionHooks(session)
        raise UserTypeError(
            "session is not valid: expected the id of a session, a Session, or an object with "
            f"get_items() and add_items(), got {type_with_article(session)}. "
            "SQLiteRunStore(path).session(id) returns one."
        )
    if store is None:
        config = replace(config or RunConfig(), store=session.store)
    elif store is not session.store:
        raise UserValueError(
            f"Session {session.id!r} belongs to another store than RunConfig(store=...). Pass only "
            "one of them."
        )
    return _check_session_id(session.id), config, None


def _inherited_store() -> RunStore | None:
    """Return the store of the run that the calling tool is part of."""
    call = current_call()
    return None if call is None or call.scope is None else call.scope.run.config.store


def _check_session_id(session: str) -> str:
    if not _is_valid_id(session):
        raise UserValueError(
            f"The id of the session is not valid: expected 1 to {_MAX_ID_LENGTH} printable "
            f"characters, got {session!r:.60}."
        )
    return session


def _resumed_run_factory(
    agent: Agent[Any, Any],
    run_id: str,
    store: RunStore | None,
    max_turns: Any,
    run_config: RunConfig | None,
    hooks: RunHooks[Any] | None,
) -> Callable[..., Run]:
    """Check the arguments, and return a function that creates the resumed run."""
    _check_options(agent, None if max_turns is UNCHANGED else max_turns, run_config, hooks, run_id)
    config = run_config or RunConfig()
    if store is not None:
        config = replace(config, store=store)
    if config.store is None:
        raise UserTypeError(
            "Runner.resume needs the store that contains the run. Pass store=, or "
            "run_config=RunConfig(store=...)."
        )
    return partial(
        Run,
        agent,
        [],
        config=config,
        max_turns=max_turns,
        hooks=hooks,
        run_id=run_id,
        resume=True,
    )


def _check_loop(name: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UserError(
            f"Runner.{name} needs a running event loop. Call it in an async function. "
            f"Runner.{name.partition('_')[0]}_sync runs an agent without one."
        ) from None


def _check_options(
    agent: object, max_turns: Any, run_config: object, hooks: object, run_id: Any
) -> None:
    problem: str | None = None
    if not isinstance(agent, Agent):
        problem = (
            f"Runner needs an agent: expected an Agent, got {type_with_article(agent)}. Pass the "
            "agent as the first argument"
        )
    elif max_turns is not None and (type(max_turns) is not int or max_turns < 0):
        problem = f"max_turns is not valid: expected an integer or None, got {max_turns!r:.60}"
    elif run_config is not None and not isinstance(run_config, RunConfig):
        problem = (
            f"run_config is not valid: expected a RunConfig, got {type_with_article(run_config)}"
        )
    elif hooks is not None and not isinstance(hooks, RunHooks):
        problem = f"hooks is not valid: expected RunHooks, got {type_with_article(hooks)}"
    elif run_id is not None and not _is_valid_id(run_id):
        problem = (
            f"run_id is not valid: expected 1 to {_MAX_ID_LENGTH} printable characters, got "
            f"{run_id!r:.60}"
        )
    if problem is not None:
        raise UserTypeError(f"{problem}.")


_MAX_ID_LENGTH = 500


def _is_valid_id(run_id: Any) -> bool:
    """Return whether all stores and logs accept an id."""
    return isinstance(run_id, str) and 0 < len(run_id) <= _MAX_ID_LENGTH and run_id.isprintable()
