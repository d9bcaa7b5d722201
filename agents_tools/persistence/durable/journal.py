"""What one run has in a durable store: the answers of its model, the outcomes of its calls."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast, get_type_hints
from urllib.parse import quote

from agents_tools.content.items import (
    MessageInputItem,
    ToolCallItem,
    ToolCallOutputItem,
    item_from_dict,
)
from agents_tools.content.json_value import to_json
from agents_tools.content.usage import Usage
from agents_tools.errors import (
    AgentsToolsError,
    ModelBehaviorError,
    ToolCancelledError,
    ToolDeniedError,
    ToolError,
    ToolLostError,
    ToolOverloadedError,
    ToolStreamError,
    ToolTimeoutError,
    UserError,
    UserValueError,
)
from agents_tools.persistence.durable.store import DurableStep, StoredRun
from agents_tools.text.output import release_json
from agents_tools.text.secrets import has_secrets, mask_encoded
from agents_tools.tool.records import CallOutcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence

    from agents_tools.content.items import Item
    from agents_tools.persistence.durable.store import DurableStore, RunStatus
    from agents_tools.tool.tool import FunctionTool

__all__ = ["Journal", "JournalStep", "RecordedItems", "readable"]

_MOST_BITS = 8_192
"""Of a number that JSON texts may hold: Python reads some more, other programs fewer."""
_MOST_ATTEMPTS = 2
"""How often a harmless call is begun: one that ends its process each time must not go on so."""


class Journal:
    """What a run asks before it does something, and tells when it has done it.

    Args:
        store: Where it is kept.
        run_id: The run that was begun from outside, whatever runs inside it.
    """

    def __init__(self, store: DurableStore, run_id: str) -> None:
        self._store = store
        self._outermost = run_id
        self._prefix = ""
        self._kept = StoredRun()
        self._claimed = False
        self._inner: dict[tuple[str, ...], _InsideJournal] = {}
        self.usage: Usage | None = None

    @property
    def run_id(self) -> str:
        """The id of the run; one that runs inside another has the same each time."""
        if not self._prefix:
            return self._outermost
        return f"run_{_digest(self._outermost, self._prefix)[:32]}"

    def below(self, path: tuple[str, ...]) -> Journal | None:
        """Return the journal of a run in a call; `None` where the call is one step as a whole."""
        inside = self._inner.get(path)
        if inside is None:
            return None
        inside.runs += 1
        journal = Journal(self._store, self._outermost)
        journal._prefix = f"{inside.prefix}{inside.runs}/"
        journal._kept = self._kept
        journal.usage = inside.usage
        return journal

    # --- the run

    @property
    def is_inner(self) -> bool:
        """Return whether the run is made in another one, which begins again with it."""
        return bool(self._prefix)

    async def open(self) -> Mapping[str, Any] | None:
        """Become the one who carries the run on; give where it begins if it is not new."""
        self._kept = await self._store.claim(self._outermost)
        self._claimed = True
        return self._kept.start

    async def begin(self, start: Mapping[str, Any]) -> None:
        """Keep where the run begins."""
        await self._store.begin(self._outermost, start)

    async def leave(self, status: RunStatus | None) -> None:
        """Let others carry the run on."""
        if self._claimed:
            self._claimed = False
            await self._store.leave(self._outermost, status)

    # --- the model

    def has_answer(self, turn: int) -> bool:
        """Return whether the model has answered in a turn."""
        return self._step(f"model/{turn}").done

    def recorded_answer(self, turn: int) -> Mapping[str, Any]:
        """Return the recorded answer of the model in a turn, as JSON."""
        return cast("Mapping[str, Any]", self._step(f"model/{turn}").value)

    async def answer(
        self, turn: int, ask: Callable[[], Awaitable[dict[str, Any]]]
    ) -> Mapping[str, Any]:
        """Return the answer of the model in a turn, as JSON; ask for it if it never came."""
        if self.has_answer(turn):
            return self.recorded_answer(turn)
        key = f"{self._prefix}model/{turn}"
        return await self._store.step(self._outermost, key, ask, again=True)

    # --- calls

    def outcome(
        self, call: ToolCallItem, tool: FunctionTool[..., Any] | None
    ) -> JournalStep | None:
        """Return how a call ended before; `None` if it did not."""
        known = self._step(_key(call))
        return self._read(known.value, tool, call) if known.done else None

    def is_lost(self, call: ToolCallItem, tool: FunctionTool[..., Any], *, harmless: bool) -> bool:
        """Return whether a call may have taken effect, and must not be made again.

        Args:
            call: The call.
            tool: Its tool; an agent of ours is taken up where it was left.
            harmless: Whether trusted code says that once more does no harm.
        """
        attempts = self._step(_key(call)).attempts
        return attempts >= (_MOST_ATTEMPTS if harmless else 1) and not _resumes(tool)

    async def call(
        self,
        call: ToolCallItem,
        tool: FunctionTool[..., Any],
        path: tuple[str, ...],
        perform: Callable[[], Awaitable[CallOutcome]],
    ) -> CallOutcome:
        """Perform a call, and keep how it ended.

        Args:
            call: The call.
            tool: Its tool.
            path: The ids of the calls around it, and its own.
            perform: Performs it.
        """
        made: list[CallOutcome] = []
        inside = _InsideJournal(f"{self._prefix}{_key(call)}/")
        if _resumes(tool):
            self._inner[path] = inside

        async def performed() -> dict[str, Any]:
            made.append(await perform())
            return _record(call, tool, made[0], inside.usage)

        try:
            key = self._prefix + _key(call)
            record = await self._store.step(self._outermost, key, performed, again=True)
        finally:
            self._inner.pop(path, None)
        return made[0] if made else self._read(record, tool, call).outcome

    async def settle(self, call: ToolCallItem, answer: ToolCallOutputItem) -> None:
        """Keep what the model is told of a call that is not made, now or ever."""
        if self._step(_key(call)).done:
            return

        async def told() -> dict[str, Any]:
            return {"answer": answer.to_dict()}

        await self._store.step(self._outermost, self._prefix + _key(call), told, again=True)

    def _read(
        self, record: Any, tool: FunctionTool[..., Any] | None, call: ToolCallItem
    ) -> JournalStep:
        with readable(self._outermost):
            return JournalStep(record, tool, call)

    def _step(self, key: str) -> DurableStep:
        return self._kept.steps.get(self._prefix + key, _NEVER)


@contextmanager
def readable(run_id: str) -> Generator[None]:
    """Raise what goes wrong in the block, which reads what is kept, as an error that says so.

    Raises:
        UserError: What is kept is of another form.
    """
    try:
        yield
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserValueError(
            f"What the durable store has of run {run_id!r} cannot be read ({error!r:.200}): it is "
            "damaged, or was written by another release. Begin a new run."
        ) from error


class JournalStep:
    """The outcome of a call that came to its end before.

    Attributes:
        answer: What the model was told.
        outcome: The outcome itself, as far as it can be had again.
        usage: What the runs inside the call have used.
    """

    __slots__ = ("answer", "outcome", "usage")

    def __init__(
        self, record: Mapping[str, Any], tool: FunctionTool[..., Any] | None, call: ToolCallItem
    ) -> None:
        answer = item_from_dict(record["answer"])
        if not isinstance(answer, ToolCallOutputItem):
            raise UserValueError(f"What is kept of call {call.call_id!r} is no output of a call.")
        self.answer = answer
        self.outcome = CallOutcome(
            status=answer.status,
            value=_revived(record, tool),
            output=answer.output,
            error=_error(record["raises"]) if "raises" in record else None,
            public_message=record.get("public"),
            metadata=record.get("metadata"),
        )
        self.usage = Usage.from_dict(record.get("usage", {}))


class RecordedItems:
    """Which items of a run its session holds, so that none of them is told to it twice.

    Args:
        items: The items that it holds of this run.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._left = Counter(map(_mark_of, items))

    def take(self, item: Item) -> bool:
        """Return whether an item is among them; each counts once."""
        mark = _mark_of(item)
        self._left[mark] -= 1
        return self._left[mark] >= 0


def _resumes(tool: FunctionTool[..., Any]) -> bool:
    """Return whether a call of a tool can be taken up where it was left.

    It is one of our agents.
    """
    own: Any = tool.metadata.get("agents_tools")
    return bool(own and own.get("resumes"))


class _InsideJournal:
    """What a call needs for the runs inside it."""

    __slots__ = ("prefix", "runs", "usage")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.runs = 0
        self.usage = Usage()


_NEVER = DurableStep(done=False, attempts=0)


def _key(call: ToolCallItem) -> str:
    """Return the key of a call: with an id that comes again, another call has another."""
    call_id = quote(call.call_id, safe="", errors="surrogatepass")
    return f"call/{call_id}.{_digest(call.name, call.arguments)[:16]}"


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _mark_of(item: Item) -> str:
    if isinstance(item, ToolCallItem | ToolCallOutputItem):
        return f"{item.type} {item.call_id}"
    if isinstance(item, MessageInputItem) and item.role == "developer":
        item = replace(item, role="system")  # as the session has it, without secrets, too
    return json.dumps(release_json(item.to_dict(), to="program", patterns=True), sort_keys=True)


# --- outcomes as JSON


def _record(
    call: ToolCallItem, tool: FunctionTool[..., Any], outcome: CallOutcome, usage: Usage
) -> dict[str, Any]:
    answer = ToolCallOutputItem(
        call_id=call.call_id,
        name=call.name,
        output=outcome.output,
        status=outcome.status,
        kind=call.kind,
        server=tool.origin.server,
    )
    record: dict[str, Any] = {"answer": answer.to_dict()}
    if usage.requests:
        record["usage"] = usage.to_dict()
    if outcome.error is not None and tool.failure_error_function is None:
        error = outcome.error
        record["raises"] = {"type": type(error).__name__, "message": str(error)}
    if outcome.public_message is not None:
        record["public"] = outcome.public_message
    if outcome.metadata and _is_plain(outcome.metadata):
        record["metadata"] = outcome.metadata
    if outcome.value is not None and outcome.value is not outcome.output:
        value = _value(outcome.value)
        record.update(_without_encoded(value) if has_secrets() else value)
    return record


def _without_encoded(value: Any) -> Any:
    """Mask the secrets that the store would not know again: it puts marks for the others."""
    if isinstance(value, str):
        return mask_encoded(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {mask_encoded(key): _without_encoded(member) for key, member in members}
    if isinstance(value, list):
        return [_without_encoded(item) for item in cast("list[Any]", value)]
    return value


def _value(value: Any) -> dict[str, Any]:
    if _is_plain(value):
        return {"value": value}
    try:
        return {"typed": json.loads(to_json(value))}
    except (UserError, ValueError):
        return {}


def _is_plain(value: Any) -> bool:
    """Return whether a value comes back from JSON as it is."""
    if type(value) is dict:
        members = cast("dict[Any, Any]", value).items()
        return all(type(key) is str and _is_plain(member) for key, member in members)
    if type(value) is list:
        return all(map(_is_plain, cast("list[Any]", value)))
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is int:
        return value.bit_length() <= _MOST_BITS
    return type(value) in {str, bool, type(None)}


def _revived(record: Mapping[str, Any], tool: FunctionTool[..., Any] | None) -> Any:
    """Make what a tool returned of its JSON; `None` where that cannot be."""
    if "typed" not in record:
        return record.get("value")
    function = getattr(tool, "__wrapped__", None)
    if function is None:
        return None
    from pydantic import TypeAdapter, ValidationError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(get_type_hints(function)["return"])
        return adapter.validate_json(json.dumps(record["typed"]))
    except (KeyError, NameError, TypeError, ValidationError, UserError):
        return None
    except Exception as error:  # what pydantic cannot describe has errors of many kinds
        if type(error).__module__.partition(".")[0] != "pydantic":
            raise
        return None


def _error(raised: Mapping[str, Any]) -> Exception:
    """Make the error that a call ended its run with; one of a foreign class as a `ToolError`."""
    kind = _ERRORS.get(raised["type"])
    if kind is None:
        return ToolError(f"{raised['type']}: {raised['message']}")
    return kind(raised["message"])


_KINDS: tuple[type[AgentsToolsError], ...] = (
    ToolError,
    ToolTimeoutError,
    ToolCancelledError,
    ToolDeniedError,
    ToolOverloadedError,
    ToolLostError,
    ToolStreamError,
    ModelBehaviorError,
)
_ERRORS = {kind.__name__: kind for kind in _KINDS}
