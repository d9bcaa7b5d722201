"""The checks of the suite: definitions and outputs for the model, events, and cleanup."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents_tools import BaseTool, BaseToolParams, ToolDeniedError, listen, policies
from tests.frameworks import functions
from tests.frameworks.suite import Answer, Call, Harness, Incoming, Report
from tests.frameworks.tools import TOOLS
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools import Event, FunctionTool

__all__ = ["CHECKS", "COMPARED", "Case", "Kit"]

BOUND = 10
"""Seconds that anything here may take."""


@dataclass(frozen=True, slots=True)
class Case:
    """What one case of a check came to.

    Attributes:
        name: The case.
        passed: Whether it is as it should be; `None` where the framework has no place for it.
        detail: What was found instead.
    """

    name: str
    passed: bool | None
    detail: str = ""


class Kit:
    """One framework and tools in it: ours, or those that it makes of the plain functions.

    Args:
        harness: The framework.
        ours: Whether the tools are ours.
    """

    def __init__(self, harness: Harness, *, ours: bool) -> None:
        self.harness = harness
        self.ours = ours
        self._own: dict[str, Any] = {} if ours else harness.own(dict(functions.FUNCTIONS))

    @property
    def empty(self) -> bool:
        """Whether the framework makes no tools of functions."""
        return not self.ours and not self._own

    def has(self, feature: str, *, default: bool) -> bool:
        """Return a flag of the harness about the framework, or the default."""
        return bool(getattr(self.harness, feature, default))

    def refused(self, name: str) -> str | None:
        """Return the error with which the framework refuses a function; `None` if it accepts it."""
        made = None if self.ours else self._own[name]
        return f"{type(made).__name__}: {made}" if isinstance(made, Exception) else None

    async def ask(self, name: str, arguments: Any, *tools: FunctionTool[..., Any]) -> Report:
        """Let a model ask for one call, of a function by its name or of a tool that is given."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return await self.run([Call("call_a", name, text)], *tools)

    async def run(self, calls: Sequence[Call], *tools: FunctionTool[..., Any]) -> Report:
        """Let a model ask for some calls in one turn."""
        functions.bodies.clear()
        functions.finished.clear()
        if not self.ours:
            offered: list[Any] = [self._own[call.name] for call in calls]
        else:
            own = list(tools) or [TOOLS[name] for name in dict.fromkeys(c.name for c in calls)]
            offered = self.harness.ours(own)
        async with asyncio.timeout(BOUND):
            return await self.harness.run(offered, calls)


def _answer(report: Report, call_id: str = "call_a") -> Answer:
    return report.answers.get(call_id) or Answer(f"(no answer; the run raised {report.error!r})")


def _case(name: str, passed: bool, report: Report, call_id: str = "call_a") -> Case:
    whole = passed and report.error is None
    found = "" if whole else f"{_answer(report, call_id)} {report.error or ''}"
    return Case(name, whole, found[:400])


# --- what a tool gets and gives

BOOKING: dict[str, Any] = {
    "stay": {"guest": {"name": "Ann", "born": "1990-02-03"}, "room": "double", "nights": 2},
    "arrival": "2026-05-01T10:00:00",
}

_VALUES: list[tuple[str, dict[str, Any], str]] = [
    (
        "book",
        BOOKING,
        "Ann (1990) double 2 2026-05-01T10:00:00 none 0.0 as Stay/Guest/date/datetime/Room",
    ),
    (
        "book",
        {
            "stay": {"guest": {"name": "Bo", "born": "2001-12-31"}},
            "arrival": "2026-05-01T10:00:00Z",
            "board": "breakfast",
            "discount": 0.5,
        },
        (
            "Bo (2001) single 1 2026-05-01T10:00:00+00:00 breakfast 0.5 "
            "as Stay/Guest/date/datetime/Room"
        ),
    ),
    ("greet", {"name": "Bo"}, "Hello Bo!"),
    ("greet", {"name": "Bo", "title": "Dr", "times": 2}, "Hello Dr Bo! Hello Dr Bo!"),
    ("greet", {"name": "Bo", "title": None}, "Hello Bo!"),
    ("tally", {"first": 1, "rest": [2, 3], "unit": "cups"}, "6 cups"),
    ("crunch", {"steps": 3}, "3 steps done"),
]


async def values(kit: Kit) -> list[Case]:
    """Arguments arrive as the types that the function says, and text comes back."""
    cases: list[Case] = []
    for name, arguments, expected in _VALUES:
        if (refused := kit.refused(name)) is not None:
            cases.append(Case(name, passed=False, detail=refused[:300]))
            continue
        report = await kit.ask(name, arguments)
        cases.append(_case(name, _answer(report).text == expected, report))
    return cases


async def structured(kit: Kit) -> list[Case]:
    """A value that is no text reaches the model as JSON."""
    if (refused := kit.refused("totals")) is not None:
        return [Case("totals", passed=False, detail=refused[:300])]
    report = await kit.ask("totals", {"amounts": [1, 2], "prices": {"b": 1.5, "a": 2}})
    try:
        found = json.loads(_answer(report).text)
    except ValueError:
        found = None
    expected = {"amount": 3, "price": 3.5, "names": ["a", "b"]}
    return [_case("totals", found == expected, report)]


_BAD: list[tuple[str, str, dict[str, Any], str]] = [
    ("wrong type", "greet", {"name": 3}, "name"),
    ("text for a number", "greet", {"name": "Bo", "times": "often"}, "times"),
    ("missing", "greet", {"times": 2}, "name"),
    ("unknown key", "greet", {"name": "Bo", "tone": "loud"}, "tone"),
    ("not in the enum", "book", {**BOOKING, "stay": {**BOOKING["stay"], "room": "suite"}}, "room"),
    ("not in the literal", "book", {**BOOKING, "board": "lunch"}, "board"),
    ("over the limit", "book", {**BOOKING, "discount": 0.9}, "discount"),
    (
        "over a limit inside",
        "book",
        {**BOOKING, "stay": {**BOOKING["stay"], "nights": 31}},
        "nights",
    ),
]


async def bad_input(kit: Kit) -> list[Case]:
    """Arguments that do not fit are answered with what is wrong; the function does not run."""
    cases: list[Case] = []
    for label, name, arguments, place in _BAD:
        if (refused := kit.refused(name)) is not None:
            cases.append(Case(label, passed=False, detail=refused[:300]))
            continue
        report = await kit.ask(name, arguments)
        answer = _answer(report)
        passed = not functions.bodies and place in answer.text and answer.failed is not False
        if kit.ours and not kit.has("validates", default=False):
            passed = passed and answer.text == await _told(name, json.dumps(arguments))
        cases.append(_case(label, passed, report))
    return cases


async def _told(name: str, args_json: str) -> str:
    return str((await TOOLS[name].call(None, args_json)).output)


_BROKEN = {
    "cut off": '{"name": "Bo',
    "empty": "",
    "no object": "[1]",
    "trailing text": '{"name": "Bo"} thanks',
}


async def broken_json(kit: Kit) -> list[Case]:
    """Arguments that are no JSON are answered, where the framework lets a tool see them."""
    if not kit.has("raw", default=False):
        return [Case("broken", None, "the framework reads the arguments itself")]
    cases: list[Case] = []
    for label, text in _BROKEN.items():
        report = await kit.ask("greet", text)
        passed = _answer(report).text == await _told("greet", text) and not functions.bodies
        cases.append(_case(label, passed, report))
    return cases


async def failures(kit: Kit) -> list[Case]:
    """A function that fails does not end the run, and the model is told why."""
    if (refused := kit.refused("fail")) is not None:
        return [Case("fail", passed=False, detail=refused[:300])]
    report = await kit.ask("fail", {"reason": "rain"})
    answer = _answer(report)
    passed = "it failed because of rain" in answer.text and answer.failed is not False
    if kit.ours:
        passed = passed and answer.text == await _told("fail", '{"reason": "rain"}')
    return [_case("fail", passed, report), Case("goes on", report.final == "done", report.final)]


async def passing_errors(kit: Kit) -> list[Case]:
    """What a tool raises that answers for nothing reaches the framework."""
    if kit.has("hides_errors", default=False):
        return [Case("raises", None, "the framework tells nobody what a tool raised")]
    tool = TOOLS["fail"].with_(failure_error_function=None)
    report = await kit.ask("fail", {"reason": "rain"}, tool)
    told = _answer(report).text + "".join(map(repr, _chain(report.error)))
    return [Case("raises", "it failed because of rain" in told, told[:300])]


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        if isinstance(error, BaseExceptionGroup):
            found.extend(error.exceptions)
        error = error.__cause__ or error.__context__
    return found


# --- what a tool says


async def generators(kit: Kit) -> list[Case]:
    """The model receives the result of a generator, and none of its earlier events."""
    cases: list[Case] = []
    for name, arguments, expected in (
        ("crawl", {"pages": 2}, "2 pages read"),
        ("pack", {"boxes": 2}, "2 boxes packed"),
    ):
        if (refused := kit.refused(name)) is not None:
            cases.append(Case(name, passed=False, detail=refused[:300]))
            continue
        report = await kit.ask(name, arguments)
        cases.append(_case(name, _answer(report).text == expected, report))
    return cases


_SAYS = [
    ("crawl", {"pages": 2}, ["tool_progress_event"] * 2),
    ("pack", {"boxes": 2}, ["notify_stream_event"] * 2),
    ("crunch", {"steps": 2}, ["tool_progress_event"] * 2),
]


async def progress(kit: Kit) -> list[Case]:
    """What a tool says is heard by `listen()`, and appears in the framework's own stream."""
    cases: list[Case] = []
    for name, arguments, kinds in _SAYS:
        expected = ["tool_stream_start_event", *kinds, "tool_stream_end_event"]
        async with listen() as heard:
            report = await kit.ask(name, arguments)
        events = list(heard)
        cases.append(
            Case(f"{name} heard", [e.type for e in events] == expected, repr(events)[:300])
        )
        cases.append(_ids(kit, name, events))
        cases.append(_streamed(kit, name, report, expected))
    return cases


def _ids(kit: Kit, name: str, events: list[Event]) -> Case:
    if not kit.has("tells_ids", default=True):
        return Case(f"{name} ids", None, "the framework does not tell a tool the id of its call")
    ids = {event.tool_call_id for event in events}
    return Case(f"{name} ids", ids == {"call_a"}, repr(ids))


def _streamed(kit: Kit, name: str, report: Report, expected: list[str]) -> Case:
    if kit.harness.stream is None:
        return Case(f"{name} streamed", None, "the framework has no stream for it")
    kinds = [event["type"] for event in report.streamed]
    ids = {event["tool_call_id"] for event in report.streamed}
    json.dumps(report.streamed)
    right_ids = ids == {"call_a"} or not kit.has("tells_ids", default=True)
    return Case(f"{name} streamed", kinds == expected and right_ids, f"{kinds} {ids}")


async def context(kit: Kit) -> list[Case]:
    """A tool that asks for its context knows which call it is."""
    report = await kit.ask("whoami", {"prefix": "I am"})
    own = kit.has("tells_ids", default=True)
    expected = "I am whoami call_a" if own else "I am whoami call_"
    return [_case("whoami", _answer(report).text.startswith(expected), report)]


async def multimodal(kit: Kit) -> list[Case]:
    """A picture reaches the model as a picture, or is described to it."""
    report = await kit.ask("chart", {"title": "sales"})
    answer = _answer(report)
    seen = "image" in answer.blocks or "[image: image/png, 70 bytes]" in answer.text
    return [_case("chart", "chart sales" in answer.text and seen, report)]


# --- what ends a call early


async def cancel(kit: Kit) -> list[Case]:
    """A run that is cancelled cancels its calls, and they clean up before it is over."""
    if (refused := kit.refused("wait")) is not None:
        return [Case("wait", passed=False, detail=refused[:300])]
    functions.bodies.clear()
    task = asyncio.create_task(kit.ask("wait", {"note": "rain"}))
    try:
        await comes(lambda: bool(functions.bodies) or task.done())
        task.cancel()
        await asyncio.wait({task}, timeout=BOUND)
        await comes(lambda: functions.finished == ["wait"])
    except TimeoutError:
        return [Case("wait", passed=False, detail="the function goes on")]
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=1)
    return [Case("wait", task.cancelled(), f"{task!r}"[:300])]


# --- policies


async def policy_timeout(kit: Kit) -> list[Case]:
    """A call that takes too long is answered, and cleaned up."""
    tool = policies.timeout(0.05)(TOOLS["wait"])
    report = await kit.ask("wait", {"note": "rain"}, tool)
    answer = _answer(report)
    passed = "0.05" in answer.text and answer.failed is not False
    try:
        await comes(lambda: functions.finished == ["wait"])  # the answer does not wait for it
        cleaned = True
    except TimeoutError:
        cleaned = False
    return [_case("timeout", passed, report), Case("cleaned up", cleaned)]


async def policy_limit(kit: Kit) -> list[Case]:
    """Of more calls than a tool may have, the last is refused."""
    tool = policies.limit(calls=1)(TOOLS["greet"])
    calls = [Call("call_a", "greet", '{"name": "A"}'), Call("call_b", "greet", '{"name": "B"}')]
    report = await kit.run(calls, tool)
    texts = sorted(_answer(report, call.id).text.partition("!")[0] for call in calls)
    passed = len(functions.bodies) == 1 and any(text.startswith("Hello") for text in texts)
    return [_case("limit", passed and texts[0] != texts[1], report, "call_b")]


async def policy_approval(kit: Kit) -> list[Case]:
    """A call that a person has to allow is refused where nobody can be asked."""
    tool = policies.needs_approval()(TOOLS["greet"])
    report = await kit.ask("greet", {"name": "Bo"}, tool)
    answer = _answer(report)
    passed = "approv" in answer.text and answer.failed is not False
    if kit.has("asks_people", default=False):
        passed = report.final != "done" or passed  # the run waits for a person
    return [_case("needs_approval", passed and not functions.bodies, report)]


async def policy_guardrail(kit: Kit) -> list[Case]:
    """A result that must not get out does not."""

    def check(context: Any, value: Any) -> None:
        if "secret" in str(value):
            raise ToolDeniedError("That is not for models.")

    tool = policies.output_guardrail(check)(TOOLS["greet"])
    refused = await kit.ask("greet", {"name": "secret"}, tool)
    fine = await kit.ask("greet", {"name": "Bo"}, tool)
    answer = _answer(refused)
    passed = "not for models" in answer.text and "secret" not in answer.text
    return [
        _case("refused", passed, refused),
        _case("fine", _answer(fine).text == "Hello Bo!", fine),
    ]


async def policy_cache(kit: Kit) -> list[Case]:
    """The same question is answered from memory."""
    cache: Any = getattr(policies, "cache", None)
    if cache is None:
        return [Case("cache", None, "there is no such policy")]
    tool = cache(shared=True)(TOOLS["greet"])
    texts: set[str] = set()
    bodies: list[str] = []
    for _ in range(2):
        report = await kit.ask("greet", {"name": "Bo"}, tool)
        texts.add(_answer(report).text)
        bodies += functions.bodies
    return [Case("cache", texts == {"Hello Bo!"} and bodies == ["greet"], f"{texts} {bodies}")]


async def policy_shape(kit: Kit) -> list[Case]:
    """A tool can have another name, and arguments that the model does not see."""
    tool = policies.rename("welcome")(policies.hide(times=2)(TOOLS["greet"]))
    report = await kit.ask("welcome", {"name": "Bo"}, tool)
    return [_case("rename and hide", _answer(report).text == "Hello Bo! Hello Bo!", report)]


class _Params(BaseToolParams):
    """Double a number."""

    name = "double"

    number: int


class Double(BaseTool):
    """A tool that is a class."""

    name = "double"
    params_class = _Params

    def execute(self, session: Any, args_json: str) -> tuple[str, dict[str, Any]]:
        return str(self.parse_params(args_json).number * 2), {}


async def class_based(kit: Kit) -> list[Case]:
    """A class-based tool works like any other."""
    report = await kit.ask("double", {"number": 21}, Double())  # pyright: ignore[reportArgumentType]
    return [_case("double", _answer(report).text == "42", report)]


async def together(kit: Kit) -> list[Case]:
    """Several calls of one turn get their own answers."""
    calls = [Call(f"call_{i}", "greet", json.dumps({"name": f"N{i}"})) for i in range(5)]
    report = await kit.run(calls)
    found = {call_id: answer.text for call_id, answer in report.answers.items()}
    expected = {f"call_{i}": f"Hello N{i}!" for i in range(5)}
    return [Case("five", found == expected and report.error is None, f"{found} {report.error}")]


# --- their tools as ours


async def incoming(kit: Kit) -> list[Case]:
    """A tool of the framework's is checked, called and heard as ours."""
    offered: Any = getattr(kit.harness, "incoming", None)
    if offered is None:
        return [Case("incoming", None, "the framework has no stable type of tools")]
    cases: list[Case] = []
    for one in offered():
        cases += await _incoming(one)
    return cases


async def _incoming(one: Incoming) -> list[Case]:
    tool, label = one.tool, one.label or "tool"
    async with listen() as heard:
        fine = await tool.call(None, '{"topic": "rain", "limit": 2}')
    said = [event.type for event in heard if "bracket" not in event.type]
    default = await tool.call(None, '{"topic": "rain"}')
    failed = await tool.call(None, '{"topic": "nothing"}')
    cases = [
        Case(f"{label} value", fine.output == "rain: 2", repr(fine)[:300]),
        Case(f"{label} default", default.output == "rain: 3", repr(default)[:300]),
        Case(
            f"{label} fails",
            "no such topic" in str(failed.output),
            repr(failed)[:300],
        ),
    ]
    for arguments in ('{"topic": 3}', "{}", '{"topic": "rain", "limit": "few"}', '{"topic'):
        refused = await tool.call(None, arguments)
        found = f"{refused.status}: {refused.output}"
        cases.append(Case(f"{label} {arguments}", refused.status == "invalid_args", found))
    if one.streams:
        between = said[1:-1]
        cases.append(Case(f"{label} says", bool(between), repr(said)))
    return cases


Check = Callable[[Kit], Awaitable[list[Case]]]

CHECKS: tuple[Check, ...] = (
    values,
    structured,
    bad_input,
    broken_json,
    failures,
    passing_errors,
    generators,
    progress,
    context,
    multimodal,
    cancel,
    policy_timeout,
    policy_limit,
    policy_approval,
    policy_guardrail,
    policy_cache,
    policy_shape,
    class_based,
    together,
    incoming,
)
"""What our tools have to pass in every framework."""

COMPARED: tuple[Check, ...] = (values, structured, bad_input, failures, generators, cancel)
"""What the tools that a framework makes of the plain functions are measured by as well."""
