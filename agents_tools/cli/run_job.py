"""Run an agent for a command: its model, its view, its approvals, and how it ended."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.config import RunConfig, RunHooks
from agents_tools.agents.runner import Runner
from agents_tools.agents.state import RunState
from agents_tools.cli.approvals import TerminalApprover, can_ask, decide_all, decider
from agents_tools.cli.errors import CommandError
from agents_tools.cli.execution import attend, say_stopping
from agents_tools.cli.output import prints_on_stderr
from agents_tools.cli.run_outcome import RunOutcome
from agents_tools.content.items import item_of_event
from agents_tools.content.usage import Usage
from agents_tools.errors import RunTimeoutError
from agents_tools.events.kinds import RunItemStreamEvent, RunStartedEvent
from agents_tools.ui.console.text_views import NdjsonRun

if TYPE_CHECKING:
    from agents_tools.agents.config import RunResult
    from agents_tools.agents.model import ModelResponse
    from agents_tools.cli.agents import AnyAgent
    from agents_tools.events.base import Event
    from agents_tools.persistence import RunStore
    from agents_tools.ui.console.screen import ScreenRun
    from agents_tools.ui.console.text_views import RunView

__all__ = ["RunJob", "check_model"]


def check_model(agent: AnyAgent, name: str | None) -> None:
    """Report a missing model before the run starts."""
    if name is None and agent.model is None and not os.environ.get("AGENTS_TOOLS_MODEL"):
        raise CommandError(
            f"agent {agent.name!r} has no model.",
            hint="Pass --model local/rules (offline, a few rules), --model openai/gpt-5, …; or set "
            "Agent(model=...) or AGENTS_TOOLS_MODEL.",
        )
    from agents_tools.agents.model import load_model

    if name is not None:
        with prints_on_stderr():
            load_model(name)


@dataclass(slots=True, kw_only=True)
class RunJob:
    """One run of an agent from the command line.

    Attributes:
        agent: The agent.
        source: The input, or the state to resume.
        view: The view that shows the run.
        model: The model instead of the agents' own.
        max_turns: The largest number of model calls.
        timeout: The largest duration of the run in seconds.
        max_cost: The largest cost of the run in US dollars.
        approve: `ask`, `yes` or `no`.
        screen: The same view, if it uses the whole terminal.
        store: The run store that records the run.
        session: The id of the conversation in the store.
        run_id: The id of the run, once it has started.
        items: The items that the run has added to the conversation, as JSON.
        usage: The usage so far.
    """

    agent: AnyAgent
    source: str | RunState
    view: RunView
    model: str | None
    max_turns: int
    timeout: float | None
    max_cost: float | None
    approve: str
    screen: ScreenRun | None = None
    store: RunStore | None = None
    session: str | None = None
    run_id: str | None = None
    items: list[Any] = field(default_factory=list[Any])
    usage: Usage = field(default_factory=Usage)
    _task: asyncio.Task[Any] | None = None

    def run(self) -> RunOutcome:
        """Run the agent to its end, its timeout or a Ctrl-C."""
        quiet = isinstance(self.view, NdjsonRun)
        done = attend(
            self._run, slow=self.view.open, stopping=(lambda: None) if quiet else say_stopping
        )
        result = done.value
        if result is None:
            return RunOutcome(
                status="cancelled", duration=done.duration, left_behind=done.left_behind
            )
        if isinstance(result, Exception):
            return RunOutcome(
                status="timeout" if isinstance(result, RunTimeoutError) else "error",
                duration=done.duration,
                result=getattr(result, "run_result", None),
                error=result,
            )
        status = "interrupted" if result.interruptions else "ok"
        return RunOutcome(status=status, duration=done.duration, result=result)

    def publish(self, event: Event, /) -> None:
        """Show and record an event of the run."""
        if not event.path and isinstance(event, RunStartedEvent):
            self.run_id = event.run_id
        elif not event.path and isinstance(event, RunItemStreamEvent) and event.name != "input":
            item = item_of_event(cast("RunItemStreamEvent[Any]", event))
            self.items.append(dict(event.item) if item is None else item.to_dict())
        self.view.show(cast("Event", event))
        if isinstance(self.view, NdjsonRun) and self.view.gone and self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def _run(self) -> RunResult[Any] | Exception:
        """Return the result, or the exception that the run raised."""
        self._task = asyncio.current_task()
        try:
            work = self._result()
            return await (work if self.screen is None else self.screen.during(work))
        except Exception as error:  # noqa: BLE001 - the caller shows every failure
            return error

    async def _result(self) -> RunResult[Any]:
        person = TerminalApprover(self.view) if can_ask() else None
        decide = decider(self.approve, person)
        config = RunConfig(
            model=self.model,
            timeout=self.timeout,
            max_cost=self.max_cost,
            approve=decide,
            ask=None if person is None else person.answer,
            event_stream=self,
            store=self.store,
        )
        if isinstance(self.source, RunState) and decide is not None:
            await decide_all(self.source, decide)
        result = await self._step(self.source, config)
        while (
            result.interruptions and decide is not None
        ):  # from agents with a RunConfig of their own
            state = result.to_state()
            await decide_all(state, decide)
            result = await self._step(state, config)
        return result

    async def _step(self, source: str | RunState, config: RunConfig) -> RunResult[Any]:
        run = Runner.run_streamed(
            self.agent,
            source,
            max_turns=self.max_turns,
            session=self.session,
            run_config=config,
            hooks=_UsageMeter(self),
        )
        if self.screen is not None:
            self.screen.control = run
        async with run:
            async for _ in run.stream_events():
                pass  # `publish` shows them
        return await run.wait()

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Add the usage of one model response."""
        self.usage.add(usage)
        self.view.count(path, usage)


class _UsageMeter(RunHooks[Any]):
    """Counts the usage of the models of a run, for each agent.

    Args:
        job: The run whose usage is counted.
    """

    def __init__(self, job: RunJob) -> None:
        self._job = job

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        """Count a model response."""
        del agent
        self._job.count(context.path, response.usage)
