"""The serializable state of an interrupted run, and decisions about its calls."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools._package import ForeignAttributes
from agents_tools.content.items import (
    Item,
    ToolApprovalItem,
    ToolCallItem,
    input_items,
    item_from_dict,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import UserError, UserKeyError, UserTypeError, UserValueError
from agents_tools.events.kinds import SummaryEvent
from agents_tools.persistence.conversation import open_calls
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.options import refuse_options
from agents_tools.tool.records import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Never, Self

    from agents_tools.tool.tool import FunctionTool

__all__ = [
    "FilteredInput",
    "PendingCall",
    "RunState",
    "call_pin",
    "edited_arguments",
    "pin_of",
]

STATE_VERSION = 2
_STATE_KIND = "agents_tools.run_state"


@dataclass(slots=True, kw_only=True)
class PendingCall:
    """A call that waits for approval.

    Attributes:
        item: The approval request.
        pin: A fingerprint of the call, its arguments and the definition of its tool.
        decision: The decision; `None` until there is one.
    """

    item: ToolApprovalItem
    pin: str
    decision: Decision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredInput:
    """What the input filter of a handoff made of the conversation before it.

    Attributes:
        items: The items that the model receives instead.
        input_count: The number of these items that are the input of the run.
        replaced: The number of items of the conversation that they replace.
    """

    items: list[Item]
    input_count: int
    replaced: int

    def applied(self, history: Sequence[Item]) -> list[Item]:
        """Return the items that the model receives for a conversation."""
        return [*self.items, *history[self.replaced :]]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return {
            "items": [item.to_dict() for item in self.items],
            "input_count": self.input_count,
            "replaced": self.replaced,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a record from the result of `to_dict`."""
        return cls(
            items=input_items(_of(list, data, "items"), "state.filtered"),
            input_count=_of(int, data, "input_count"),
            replaced=_of(int, data, "replaced"),
        )


@dataclass(slots=True, kw_only=True)
class RunState(ForeignAttributes):
    """The state of an interrupted run. It can be stored as JSON.

    Decide about its `interruptions` with `approve` and `reject`, then pass it to `Runner.run`
    instead of an input, in this process or another one. Calls with an output never run again. A
    call that was running when the state was taken gets the output "outcome unknown", unless its
    tool is annotated as read-only or idempotent.

    Attributes:
        agent: The name of the agent that the run was started with.
        run_id: The id of the run; the resumed run has the same id.
        history: All items, including the input.
        input_count: The number of items of the input.
        turns: The number of turns so far.
        usage: The tokens and tool calls that were used so far.
        started: The ids of calls that were running.
        pending: The calls that wait for approval, by call id.
        nested: The states of runs inside calls, by call id.
        standing: The fingerprints of tools that need no further approval, by name.
        summaries: The last summary of the history, if a `prepare_input` hook made one.
        current_agent: The name of the agent that continues the run after a handoff; `None` without
            one.
        filtered: What this agent receives of the conversation before the handoff; `None` for all of
            it.
        clock: The time that the clock of a program shows, in ISO 8601; `None` for an agent.
    """

    agent: str
    run_id: str
    history: list[Item]
    input_count: int = 0
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    started: list[str] = field(default_factory=list[str])
    pending: dict[str, PendingCall] = field(default_factory=dict[str, PendingCall])
    nested: dict[str, RunState] = field(default_factory=dict[str, "RunState"])
    standing: dict[str, str] = field(default_factory=dict[str, str])
    summaries: list[SummaryEvent] = field(default_factory=list["SummaryEvent"])
    current_agent: str | None = None
    filtered: FilteredInput | None = None
    clock: str | None = None

    @property
    def interruptions(self) -> list[ToolApprovalItem]:
        """The calls that wait for a decision, including those of agents that run as tools."""
        items = [one.item for one in self.pending.values() if one.decision is None]
        inner = [
            replace(item, path=(call_id, *item.path))
            for call_id, state in self.nested.items()
            for item in state.interruptions
        ]
        return items + inner

    def approve(
        self,
        item: ToolApprovalItem,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        always: bool = False,
        **unknown: Never,
    ) -> None:
        """Approve a call with the arguments of the item, or with other arguments.

        Args:
            item: One of the `interruptions`.
            arguments: Other arguments, as a mapping or JSON text. The output of the call informs
                the model about them.
            always: Whether later calls of the tool in this run need no approval, as long as its
                definition does not change.
            **unknown: No other option exists. For one of openai-agents, the error names the
                counterpart.

        Raises:
            UserError: The call does not wait for approval, or the item does not match it.
        """
        if unknown:
            refuse_options("RunState.approve", RunState.approve, unknown)
        text = None if arguments is None else edited_arguments(arguments)
        self.decide(item, Decision(approved=True, arguments=text, always=always))

    def reject(self, item: ToolApprovalItem, message: str | None = None, **unknown: Never) -> None:
        """Reject a call.

        Args:
            item: One of the `interruptions`.
            message: The reason, for the model.
            **unknown: No other option exists. For one of openai-agents, the error names the
                counterpart.

        Raises:
            UserError: The call does not wait for approval, or the item does not match it.
        """
        if unknown:
            refuse_options("RunState.reject", RunState.reject, unknown)
        self.decide(item, Decision(approved=False, message=message))

    def decide(self, item: ToolApprovalItem, decision: Decision) -> None:
        """Record the decision about a call, which `approve` and `reject` create.

        Args:
            item: One of the `interruptions`.
            decision: The decision.

        Raises:
            UserError: The call does not wait for approval, or the item does not match it.
        """
        self._find(item).decision = decision

    def _find(self, item: ToolApprovalItem) -> PendingCall:
        if not isinstance(cast("object", item), ToolApprovalItem):
            raise UserTypeError(
                f"The decision is not valid: expected a ToolApprovalItem, got "
                f"{type_with_article(item)}. Pass an item of `state.interruptions`."
            )
        if item.path:
            inner = self.nested.get(item.path[0])
            if inner is not None:
                return inner._find(replace(item, path=item.path[1:]))  # noqa: SLF001 - its own class
        pending = None if item.path else self.pending.get(item.call_id)
        if pending is None:
            raise UserKeyError(
                f"No call {item.call_id!r} of tool {item.name!r} waits for approval. "
                "Pass an item of `state.interruptions`."
            )
        if (pending.item.name, pending.item.arguments) != (item.name, item.arguments):
            raise UserValueError(
                f"The item of call {item.call_id!r} does not match the waiting call: expected "
                f"{pending.item.name}({pending.item.arguments:.200}), got "
                f"{item.name}({item.arguments:.200}). Pass an item of `state.interruptions`."
            )
        return pending

    def set_decision(self, path: tuple[str, ...], call_id: str, decision: Decision) -> None:
        """Set the decision about a call, if it waits.

        Args:
            path: The ids of the calls around the run that made the call.
            call_id: The call.
            decision: The decision.
        """
        if path:
            inner = self.nested.get(path[0])
            if inner is not None:
                inner.set_decision(path[1:], call_id, decision)
        elif call_id in self.pending:
            self.pending[call_id].decision = decision

    def copy(self) -> Self:
        """Return a copy with independent decisions."""
        return replace(
            self,
            history=list(self.history),
            usage=self.usage.copy(),
            started=list(self.started),
            pending={call_id: replace(one) for call_id, one in self.pending.items()},
            nested={call_id: inner.copy() for call_id, inner in self.nested.items()},
            standing=dict(self.standing),
            summaries=list(self.summaries),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON; the format has a version number."""
        return {
            "v": STATE_VERSION,
            "type": _STATE_KIND,
            "agent": self.agent,
            "run_id": self.run_id,
            "history": [item.to_dict() for item in self.history],
            "input_count": self.input_count,
            "turns": self.turns,
            "usage": self.usage.to_dict(),
            "started": list(self.started),
            "pending": [_pending_to_dict(one) for one in self.pending.values()],
            "nested": {call_id: state.to_dict() for call_id, state in self.nested.items()},
            "standing": dict(self.standing),
            "summaries": [_summary_to_dict(one) for one in self.summaries],
            "current_agent": self.current_agent,
            "filtered": None if self.filtered is None else self.filtered.to_dict(),
            **({} if self.clock is None else {"clock": self.clock}),
        }

    def to_json(self) -> str:
        """Return the state as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Create a state from the result of `to_json`.

        Raises:
            UserError: The text is not such a result, or is of another version.
        """
        try:
            data: object = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise UserValueError(f"The state of the run is not valid JSON: {error}.") from error
        return cls.from_dict(cast("Mapping[str, Any]", data))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a state from the result of `to_dict`.

        Raises:
            UserError: The data is not such a result, or is of another version.
        """
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                "The state of the run is not valid: expected a JSON object, got "
                f"{type_with_article(data)}."
            )
        if data.get("type") != _STATE_KIND or data.get("v") != STATE_VERSION:
            raise UserValueError(
                f"The state of the run cannot be read: expected version {STATE_VERSION} of "
                f"{_STATE_KIND!r}, got version {data.get('v')!r:.20} of {data.get('type')!r:.40}."
            )
        try:
            return cls(
                agent=_of(str, data, "agent"),
                run_id=_of(str, data, "run_id"),
                history=input_items(_of(list, data, "history"), "state.history"),
                input_count=_of(int, data, "input_count"),
                turns=_of(int, data, "turns"),
                usage=Usage.from_dict(_of(dict, data, "usage")),
                started=[str(one) for one in _of(list, data, "started")],
                pending={
                    one.item.call_id: one
                    for one in map(_pending_from_dict, _of(list, data, "pending"))
                },
                nested={
                    str(call_id): RunState.from_dict(_of(dict, data["nested"], call_id))
                    for call_id in _of(dict, data, "nested")
                },
                standing={str(name): str(pin) for name, pin in _of(dict, data, "standing").items()},
                summaries=[SummaryEvent(**one) for one in data.get("summaries", ())],
                current_agent=_text_or_none(data, "current_agent"),
                filtered=None
                if data.get("filtered") is None
                else FilteredInput.from_dict(_of(dict, data, "filtered")),
                clock=_text_or_none(data, "clock"),
            )
        except UserError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise UserValueError(f"The state of the run cannot be read: {error!r}.") from error

    @property
    def open_calls(self) -> list[ToolCallItem]:
        """The calls without an output."""
        return open_calls(self.history)


def pin_of(tool: FunctionTool[..., Any]) -> str:
    """Return the fingerprint of the definition of a tool."""
    return _digest(tool.name, tool.description, dumps(tool.json_schema))


def call_pin(call: ToolCallItem, definition: str) -> str:
    """Return the fingerprint of a call, with its arguments and the definition of its tool."""
    return _digest(call.call_id, call.name, call.arguments, definition)


def dumps(value: Mapping[str, Any]) -> str:
    """Serialize an object to canonical JSON.

    Raises:
        UserError: A value is not serializable as JSON.
    """
    try:
        return json.dumps(
            value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
        )
    except (TypeError, ValueError) as error:
        raise UserTypeError(f"The arguments are not serializable as JSON: {error}.") from error


def edited_arguments(arguments: Mapping[str, Any] | str) -> str:
    """Return the arguments of a person as JSON text.

    Raises:
        UserError: They are not a JSON object.
    """
    if not isinstance(arguments, str):
        return dumps(arguments)
    try:
        value: object = json.loads(arguments)
    except ValueError as error:
        raise UserValueError(f"approve(arguments=...) is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UserTypeError(
            "approve(arguments=...) is not valid: expected a JSON object, got "
            f"{type_with_article(value)}."
        )
    return arguments


def _digest(*parts: str) -> str:
    text = json.dumps(parts)
    return hashlib.sha256(text.encode()).hexdigest()


def _summary_to_dict(one: SummaryEvent) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("summary", "items", "digest", "usage")}


def _pending_to_dict(one: PendingCall) -> dict[str, Any]:
    decision = one.decision
    return {
        "item": one.item.to_dict(),
        "pin": one.pin,
        "decision": decision
        and {
            "approved": decision.approved,
            "message": decision.message,
            "arguments": decision.arguments,
            "always": decision.always,
        },
    }


def _pending_from_dict(data: Mapping[str, Any]) -> PendingCall:
    item = item_from_dict(_of(dict, data, "item"))
    if not isinstance(item, ToolApprovalItem):
        raise UserValueError("state.pending: expected calls that wait for approval.")
    decided = data.get("decision")
    decision = None
    if decided is not None:
        decision = Decision(
            approved=_of(bool, decided, "approved"),
            message=_text_or_none(decided, "message"),
            arguments=_text_or_none(decided, "arguments"),
            always=_of(bool, decided, "always"),
        )
    return PendingCall(
        item=item,
        pin=_of(str, data, "pin"),
        decision=decision,
    )


def _text_or_none(data: Mapping[str, Any], key: str) -> str | None:
    return None if data.get(key) is None else _of(str, data, key)


def _of(kind: type[Any], data: Mapping[str, Any], key: str) -> Any:
    value = data.get(key)
    if not isinstance(value, kind):
        raise UserValueError(
            f"state.{key}: expected a {kind.__name__}, got {type_with_article(value)}."
        )
    return value
