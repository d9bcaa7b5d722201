"""The tool calls of one run: each is run at most once, and each gets exactly one answer."""

from __future__ import annotations

import asyncio
import difflib
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools._records import Decision
from agents_tools._supervisor import finish
from agents_tools.context import ToolContext
from agents_tools.errors import (
    BudgetExceeded,
    Interruption,
    ModelBehaviorError,
    UserError,
    UserTypeError,
)
from agents_tools.items import ToolApprovalItem, ToolCallItem, ToolCallOutputItem
from agents_tools.outputs import ToolOutputText
from agents_tools.state import PendingCall, RunState, call_pin, pin_of
from agents_tools.wire._project import project

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from agents_tools._records import CallOutcome
    from agents_tools._runnable import RunnableAgent, Toolbox
    from agents_tools.context import RunScope
    from agents_tools.durable._journal import Journal
    from agents_tools.events import CallStatus
    from agents_tools.items import Item
    from agents_tools.outputs import ToolOutput
    from agents_tools.run import RunConfig, RunHooks
    from agents_tools.tool import FunctionTool

__all__ = ["Call", "Calls"]

_CUT_OFF = (
    "Not run: the answer was cut off at the limit of output tokens before this call was complete. "
    "Send it again, with shorter arguments or fewer calls at once."
)
_CANCELLED = "The call was cancelled before it had a result."
_USED_UP = "Not run: the run has used up its tool calls."
_LOST = (
    "Outcome unknown: the program was interrupted while this call ran, so it may or may not have "
    "taken effect. Check before you call it again."
)
_NAMES_TOLD = 20
_UNIQUE = 16
"""From this length on, an id that comes again means the same call: some servers count from 0."""


class Call:
    """One call on its way to an answer.

    Attributes:
        item: What the model asks for.
        tool: The tool; `None` where there is none of that name.
        asked: What the tool is asked for: the item, unless that calls the tool through another one.
        answer: What the model is told; `None` until then.
        value: What the tool returned; the text for the model where it failed.
        known: Whether it is part of the conversation: one that was started early is not, until
            the whole answer that it is in has come.
    """

    __slots__ = ("answer", "asked", "edited", "item", "known", "task", "tool", "value")

    def __init__(
        self, item: ToolCallItem, tool: FunctionTool[..., Any] | None, arguments: str | None = None
    ) -> None:
        self.item = item
        self.tool = tool
        self.asked = item
        if tool is not None and arguments is not None:
            self.asked = replace(item, name=tool.name, arguments=arguments)
        self.answer: ToolCallOutputItem | None = None
        self.value: Any = None
        self.known = True
        self.edited: str | None = None  # the arguments that a person put in place of the model's
        self.task: asyncio.Future[None] | None = None  # of a call that was started early


class Calls:
    """Runs the calls of one run.

    Args:
        agent: The agent whose calls they are.
        config: How the run is done.
        scope: The place of the run.
        hooks: Who is told.
        say: Says that there is a new item.
        keep: Puts what was said on record.
        journal: What outlives the process, if anything does.
    """

    def __init__(
        self,
        agent: RunnableAgent,
        config: RunConfig,
        scope: RunScope[Any],
        hooks: Sequence[RunHooks[Any]],
        say: Callable[..., None],
        keep: Callable[[], Awaitable[None]],
        journal: Journal | None,
    ) -> None:
        self._agent = agent
        self._config = config
        self._scope = scope
        self._hooks = hooks
        self._say = say
        self._keep = keep
        self._journal = journal
        self.wire: str | None = None
        self.used = False
        self.count = 0
        self.started: dict[str, None] = {}
        self.pending: dict[str, PendingCall] = {}
        self.nested: dict[str, RunState] = {}
        self.standing: dict[str, str] = {}
        self._lost = set[str]()
        self._counted = set[str]()
        self._spent = set[str]()  # the ids of early calls whose answer never came
        self._made: dict[str, ToolCallItem] = {}
        self._answers: dict[str, ToolCallOutputItem] = {}
        self._repeats: dict[str, str] = {}
        self._taken: dict[str, ToolCallItem] = {}
        self._early: dict[str, Call] = {}
        self._places: asyncio.Semaphore | None = None

    def go_on_from(self, state: RunState) -> None:
        """Know what was known when a state was taken."""
        self.count = state.tool_calls
        self.pending.update(state.pending)
        self.nested.update(state.nested)
        self.standing.update(state.standing)
        self._lost.update(state.started)
        self._made.clear()
        self._answers.clear()
        self.remember(state.history)

    def remember(self, history: Sequence[Item]) -> None:
        """Know the calls and answers of a conversation that was before."""
        for item in history:
            if isinstance(item, ToolCallItem):
                self._made[item.call_id] = item
                self._answers.pop(item.call_id, None)  # an id that is used again waits again
            elif isinstance(item, ToolCallOutputItem):
                self._answers[item.call_id] = item

    def open(self, box: Toolbox) -> list[Call]:
        """Give the calls of before that have no answer."""
        calls = [
            Call(item, *_called(item, box))
            for call_id, item in self._made.items()
            if call_id not in self._answers and item.needs_answer
        ]
        self._counted = {call.item.call_id for call in calls}
        return calls

    def lose(self, calls: Iterable[ToolCallItem]) -> None:
        """Take it that calls may have run, though nothing is known of their end."""
        self._lost.update(call.call_id for call in calls)

    @property
    def lost(self) -> list[str]:
        """The ids of the calls that may have run."""
        return sorted(self._lost)

    @property
    def spent(self) -> list[str]:
        """The ids that were used for calls whose answer never came."""
        return sorted(self._spent)

    def spend(self, ids: Iterable[str]) -> None:
        """Use some ids no more."""
        self._spent.update(ids)

    @property
    def waiting(self) -> bool:
        """Whether a call waits for a person."""
        return bool(self.pending or self.nested)

    # --- what the model asks for

    def next_answer(self) -> None:
        """Expect the calls of another answer of the model."""
        self._taken = {}

    def take(self, item: ToolCallItem, box: Toolbox, *, again: bool = False) -> Call | None:
        """Take a call from an answer of the model; `None` for one that the answer holds twice.

        Args:
            item: The call.
            box: The tools there are.
            again: Whether the answer is one of before.
        """
        twin = self._taken.get(item.call_id)
        if twin is not None and (twin.name, twin.arguments) == (item.name, item.arguments):
            return None
        if item.call_id:
            self._taken.setdefault(item.call_id, item)
        call = self._early.pop(item.call_id, None)
        if call is None:
            call = Call(self._new(item), *_called(item, box))
        call.known = True
        self._made[call.item.call_id] = self._made.pop(call.item.call_id)  # in their order
        self._say("tool_called", call.item, again)
        if call.answer is not None:
            self._say("tool_output", call.answer)
        return call

    def starter(self, box: Toolbox) -> Callable[[ToolCallItem], None]:
        """Give what starts calls of harmless tools while the model still writes."""
        barred = False

        def start(item: ToolCallItem) -> None:
            nonlocal barred
            tool, arguments = _called(item, box)
            barred = barred or _runs_alone(tool)  # what follows has to wait for that one
            if barred or item.call_id in self._made or not _may_start_early(item, tool):
                return
            self._early[item.call_id] = call = Call(self._new(item), tool, arguments)
            call.known = False
            call.task = asyncio.ensure_future(self._perform(call))

        return start

    async def drop_early(self) -> None:
        """Stop calls of an answer that will not come."""
        if self._early:
            calls, self._early = list(self._early.values()), {}
            ids = [call.item.call_id for call in calls]
            self._spent.update(ids)
            try:
                await _stopped([call.task for call in calls if call.task], self._agent.name)
            finally:
                for call_id in ids:
                    for book in (self._made, self._answers, self.nested):
                        book.pop(call_id, None)

    def _new(self, item: ToolCallItem) -> ToolCallItem:
        """Give a call an id of its own: sloppy models give none, or one that was there before."""
        wanted = item.call_id or f"call_{uuid.uuid4().hex[:16]}"
        call_id, number = wanted, 2
        while call_id in self._made or call_id in self._spent:
            call_id, number = f"{wanted}-{number}", number + 1
        first = self._made.get(wanted) if len(wanted) >= _UNIQUE else None
        if first is not None and (first.name, first.arguments) == (item.name, item.arguments):
            self._repeats[call_id] = wanted  # the same call once more: the same answer
        call = replace(item, call_id=call_id, agent=self._agent.name)
        self._made[call_id] = call
        return call

    # --- answers

    async def answer(
        self,
        calls: Sequence[Call],
        box: Toolbox,
        *,
        before: Callable[[], Awaitable[None]],
        cut_off: bool = False,
    ) -> None:
        """Run calls and give each an answer, whatever happens.

        A call that has to wait for a person is the one exception: it stays open.

        Args:
            calls: The calls, in order.
            box: The tools there are.
            before: What has to be done before any of them runs.
            cut_off: Whether the answer that the calls are in is not whole.

        Raises:
            BudgetExceeded: The run has used up its calls.
            Exception: What a tool raised that has no failure function.
        """
        self.used = True
        try:
            await before()
            self._count(calls)
            to_run = list(self._to_run(calls, box, cut_off=cut_off))
            if self._journal is not None:
                await self._settle_others(self._journal, calls)
            for group in _groups(to_run):
                await self._together(group)
            for call in calls:
                self._repeat(call)
        finally:
            try:
                await _stopped([call.task for call in calls if call.task], self._agent.name)
            finally:
                for call in calls:
                    if call.answer is None and not self._is_waiting(call):
                        # No last word where the run can go on: then it is lost, or made again.
                        call.known = call.known and self._journal is None
                        self._close(call, "cancelled", _CANCELLED)

    def answers_of(self, calls: Iterable[ToolCallItem]) -> list[ToolCallOutputItem]:
        """Give the answers that some of the calls have."""
        return [self._answers[call.call_id] for call in calls if call.call_id in self._answers]

    def of_turn(self, calls: Sequence[Call], answers: Iterable[Item], box: Toolbox) -> list[Call]:
        """Give the calls of a turn, with those that had their answer before the run stopped."""
        known = {call.item.call_id: call for call in calls}
        for answer in answers:
            if not isinstance(answer, ToolCallOutputItem) or answer.call_id in known:
                continue
            item = self._made.get(answer.call_id)
            if item is not None:
                call = known[answer.call_id] = Call(item, *_called(item, box))
                call.answer = answer
                call.value = answer.output if answer.value is None else answer.value
        return [known[call_id] for call_id in self._made if call_id in known]

    def in_order(self, answers: list[ToolCallOutputItem]) -> list[ToolCallOutputItem]:
        """Sort answers as their calls were made."""
        order = {call_id: place for place, call_id in enumerate(self._made)}
        return sorted(answers, key=lambda answer: order[answer.call_id])

    def _count(self, calls: Sequence[Call]) -> None:
        limit = self._config.max_tool_calls
        self.count += sum(call.item.call_id not in self._counted for call in calls)
        if limit is None or self.count <= limit:
            return
        for call in calls:
            if call.task is None:
                self._close(call, "denied", _USED_UP)
        raise BudgetExceeded(
            f"Agent {self._agent.name!r} wants to make more than the {limit} tool calls that "
            "RunConfig(max_tool_calls=...) allows."
        )

    def _to_run(self, calls: Sequence[Call], box: Toolbox, *, cut_off: bool) -> Iterator[Call]:
        """Answer what can be answered without running anything; give the rest."""
        for call in calls:
            item, tool = call.item, call.tool
            if self._journal is not None and self._recall(self._journal, call):
                continue
            if item.call_id in self._lost and not _is_harmless(tool):
                self._close(call, "lost", _LOST)
            elif cut_off and call.task is None:
                self._close(call, "invalid_args", _CUT_OFF)
            elif tool is None:
                self._close(call, "invalid_args", self._unknown(item.name, list(box.by_name)))
            elif item.call_id not in self._repeats:
                yield call

    def _recall(self, journal: Journal, call: Call) -> bool:
        """Answer a call that came to its end before as it was answered then.

        Raises:
            Exception: What the call ended the run with.
        """
        kept = journal.outcome(call.item, call.tool)
        if kept is None:
            return False
        for usage in self._scope.run.usages:
            usage.add(kept.usage)
        self._settle(call, kept.outcome, kept.answer.server, again=True)
        if kept.outcome.error is not None:
            raise kept.outcome.error
        return True

    def _unknown(self, name: str, names: list[str]) -> str:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        known = ", ".join(names[:_NAMES_TOLD]) or "none"
        more = f" and {len(names) - _NAMES_TOLD} more" if len(names) > _NAMES_TOLD else ""
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        text = f"There is no tool {name!r:.100}.{hint} Tools: {known}{more}."
        if self._config.unknown_tool == "raise":
            raise ModelBehaviorError(f"Agent {self._agent.name!r}: {text}")
        return text

    async def _together(self, group: list[Call]) -> None:
        """Run calls at once; when one ends the run, or the run is cancelled, the others stop."""
        tasks = [call.task or asyncio.ensure_future(self._perform(call)) for call in group]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError:
            self._scope.cancel()
            raise
        finally:
            await _stopped(tasks, self._agent.name)
        for task in tasks:  # in their order, or it would be chance which of two errors is told
            if task in done and not task.cancelled():  # a tool may have cancelled its own task
                task.result()

    async def _perform(self, call: Call) -> None:
        """Run one call when there is a place for it; raises what is to end the run."""
        limit = self._config.max_parallel_tools
        if limit is None:
            await self._run(call)
            return
        if self._places is None:
            self._places = asyncio.Semaphore(limit)
        async with self._places:
            await self._run(call)

    async def _run(self, call: Call) -> None:
        item, tool, scope = call.item, cast("FunctionTool[..., Any]", call.tool), self._scope
        if self._journal is not None and await self._is_lost(self._journal, call, tool):
            return
        context: ToolContext[Any] = ToolContext(
            scope.context,
            tool_name=tool.name,
            tool_call_id=item.call_id,
            agent=self._agent,
            run_id=scope.run_id,
            usage=scope.usage,
            parent=scope,
        )
        arguments = call.asked.arguments
        if call.asked is call.item:  # or they are in no words of the provider
            arguments = self._decoded(call.item, tool)
        if tool.needs_admission:
            admitted = await self._admitted(call, tool, context, arguments)
            if admitted is None:
                return
            arguments = admitted
            if context.decision is not None and context.refusal is None:
                # On record before it runs: from now on, nobody knows whether it took effect.
                self._say("tool_approval_granted", self._approval(call.asked, arguments))
                await self._keep()
        context.arguments_json = arguments
        for hook in self._hooks:
            await hook.on_tool_start(context, self._agent, tool)
        # From here on it may take effect: what lets it run must not let it run once more.
        self.started[item.call_id] = None
        decided = self.pending.pop(item.call_id, None)
        context.resumed = self.nested.pop(item.call_id, None)
        try:
            outcome = await self._outcome(call, tool, context, arguments)
        except Interruption as waiting:
            self.nested[item.call_id] = waiting.state
            if decided is not None:
                self.pending[item.call_id] = decided
            return
        finally:
            self.started.pop(item.call_id, None)
        answer = self._settle(call, outcome, tool.origin.server)
        for hook in self._hooks:
            await hook.on_tool_end(context, self._agent, tool, answer)
        if outcome.error is not None and tool.failure_error_function is None:
            raise outcome.error

    def _decoded(self, item: ToolCallItem, tool: FunctionTool[..., Any]) -> str:
        """Give the arguments of a call in the tool's own words."""
        if self.wire is None or item.kind != "function":
            return item.arguments
        try:
            return project(tool, self.wire).decode(item.arguments)
        except UserError:  # the provider was never told of it, so these are nobody's words
            return item.arguments

    async def _outcome(
        self, call: Call, tool: FunctionTool[..., Any], context: ToolContext[Any], arguments: str
    ) -> CallOutcome:
        """Let a tool run; once and for all, where what the run does is kept."""
        if self._journal is None:
            return self._told(call, tool, await tool.call(context, arguments))

        async def perform() -> CallOutcome:
            return self._told(call, tool, await tool.call(context, arguments))

        return await self._journal.call(call.item, tool, context.path, perform)

    def _told(self, call: Call, tool: FunctionTool[..., Any], outcome: CallOutcome) -> CallOutcome:
        """Give an outcome with what the model is told of it."""
        output = outcome.output
        if outcome.error is not None and tool.failure_error_function is None:
            output = f"The call failed: {type(outcome.error).__name__}."
        if call.edited is not None:
            output = _noted(output, call.edited)
        return outcome if output is outcome.output else replace(outcome, output=output)

    def _settle(
        self, call: Call, outcome: CallOutcome, server: str | None, *, again: bool = False
    ) -> ToolCallOutputItem:
        """Give a call the answer that its outcome is."""
        is_known = outcome.status == "ok" and not (again and outcome.value is None)
        call.value = outcome.value if is_known else outcome.output
        return self._close(
            call,
            outcome.status,
            outcome.output,
            again=again,
            server=server,
            value=outcome.value,
            metadata=outcome.metadata,
        )

    async def _is_lost(self, journal: Journal, call: Call, tool: FunctionTool[..., Any]) -> bool:
        """Answer a call that the process ended with before, unless it may be made again."""
        if not journal.is_lost(call.item, tool, harmless=_is_harmless(tool)):
            return False
        await journal.settle(call.item, self._close(call, "lost", _LOST))
        return True

    async def _settle_others(self, journal: Journal, calls: Sequence[Call]) -> None:
        """Keep the answers of calls that are not made, which other tools could change."""
        for call in calls:
            if call.answer is not None and call.task is None:
                await journal.settle(call.item, call.answer)

    def _close(
        self,
        call: Call,
        status: CallStatus,
        output: ToolOutput,
        *,
        again: bool = False,
        **more: Any,
    ) -> ToolCallOutputItem:
        """Give a call its answer, and say so; the first one stays."""
        if call.answer is not None:
            return call.answer
        item = call.item
        self.pending.pop(item.call_id, None)
        self.nested.pop(item.call_id, None)
        answer = ToolCallOutputItem(
            call_id=item.call_id,
            name=item.name,
            output=output,
            status=status,
            kind=item.kind,
            agent=self._agent.name,
            **more,
        )
        if not more:
            call.value = output
        call.answer = self._answers[item.call_id] = answer
        if call.known:
            self._say("tool_output", answer, again)
        return answer

    def _repeat(self, call: Call) -> None:
        """Answer a call that was made before as it was answered then."""
        first = self._answers.get(self._repeats.get(call.item.call_id, ""))
        if call.answer is None and first is not None:
            call.answer = replace(first, call_id=call.item.call_id)
            call.value = first.output if first.value is None else first.value
            self._answers[call.item.call_id] = call.answer
            self._say("tool_output", call.answer)

    def _is_waiting(self, call: Call) -> bool:
        return call.item.call_id in self.pending or call.item.call_id in self.nested

    # --- approval

    async def _admitted(
        self,
        call: Call,
        tool: FunctionTool[..., Any],
        context: ToolContext[Any],
        arguments: str,
    ) -> str | None:
        """Give the arguments that a call may run with; `None` where it has to wait."""
        definition = pin_of(tool)
        pin = call_pin(call.item, definition)
        arguments = await tool.prepare(context, arguments)
        decision = self._decided(call.item, tool, definition, pin, arguments)
        asked = False
        while True:
            context.decision = decision
            if decision is not None and decision.arguments is not None:
                call.edited = decision.arguments
                arguments = await tool.prepare(context, decision.arguments)
            try:
                await tool.admit(context, arguments)
            except Interruption:
                item = self._approval(call.asked, arguments)
                if not asked and self._config.approve is not None:
                    asked = True
                    decision = await self._ask_person(item)
                    continue
                if call.item.call_id not in self.pending:
                    self._say("tool_approval_requested", item)
                self.pending[call.item.call_id] = PendingCall(item=item, pin=pin)
                return None
            return arguments

    def _decided(
        self,
        item: ToolCallItem,
        tool: FunctionTool[..., Any],
        definition: str,
        pin: str,
        arguments: str,
    ) -> Decision | None:
        """Give what was decided about just this call of just this tool."""
        pending = self.pending.get(item.call_id)
        if (
            pending is not None
            and pending.decision is not None
            and (pending.pin, pending.item.arguments) == (pin, arguments)
        ):
            if pending.standing and pending.decision.approved:
                self.standing[tool.name] = definition
            return pending.decision
        return Decision(approved=True) if self.standing.get(tool.name) == definition else None

    def _approval(self, call: ToolCallItem, arguments: str) -> ToolApprovalItem:
        return ToolApprovalItem(
            call_id=call.call_id, name=call.name, arguments=arguments, agent=self._agent.name
        )

    async def _ask_person(self, item: ToolApprovalItem) -> Decision:
        item = replace(item, path=self._scope.path)
        given: Any = cast("Callable[[ToolApprovalItem], Any]", self._config.approve)(item)
        if hasattr(given, "__await__"):
            given = await given
        if isinstance(given, bool):
            return Decision(approved=given)
        if isinstance(given, Decision):
            return given
        raise UserTypeError(
            f"RunConfig(approve=...) gives a boolean or a Decision, not a {type(given).__name__}."
        )


def _called(item: ToolCallItem, box: Toolbox) -> tuple[FunctionTool[..., Any] | None, str | None]:
    """Give the tool that a call means, and its arguments where they are not the call's own."""
    return box.called(item) if box.doors else (box.by_name.get(item.name), None)


def _groups(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Part calls into those that may run at once; a tool that runs alone has a group of its own."""
    group: list[Call] = []
    for call in calls:
        if not _runs_alone(call.tool):
            group.append(call)
            continue
        if group:
            yield group
        group = []
        yield [call]
    if group:
        yield group


def _runs_alone(tool: FunctionTool[..., Any] | None) -> bool:
    own: Any = None if tool is None else tool.metadata.get("agents_tools")
    return bool(own and own.get("exclusive"))


def _is_harmless(tool: FunctionTool[..., Any] | None) -> bool:
    """Whether a second call does no harm, as trusted code says."""
    hints = None if tool is None or tool.origin.server is not None else tool.annotations
    return hints is not None and (hints.read_only or hints.idempotent)


def _may_start_early(item: ToolCallItem, tool: FunctionTool[..., Any] | None) -> bool:
    return (
        tool is not None
        and item.kind == "function"
        and bool(item.call_id)
        and tool.origin.server is None
        and tool.annotations is not None
        and tool.annotations.read_only
        and not tool.needs_admission
        and not _runs_alone(tool)
    )


async def _stopped(tasks: Sequence[asyncio.Future[Any]], name: str) -> None:
    """Cancel what still runs and wait for its cleanup, for as long as its grace."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        await finish(asyncio.ensure_future(asyncio.wait(running)), name=name)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()


def _noted(output: ToolOutput, arguments: str) -> ToolOutput:
    """Tell the model that the call ran with other arguments than its own."""
    note = f"[A person changed the arguments before this ran, to: {arguments}]"
    return f"{note}\n{output}" if isinstance(output, str) else [ToolOutputText(note), *output]
