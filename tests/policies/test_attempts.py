"""Retries, idempotency keys, and rate limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agents_tools import (
    Agent,
    FunctionTool,
    Runner,
    ToolAnnotations,
    ToolContext,
    ToolTimeoutError,
    UserError,
    function_tool,
)
from agents_tools.concurrency.limiter import RateLimit
from agents_tools.errors import ToolLostError
from agents_tools.policies import approve_destructive, limit, retry, security_risk, timeout
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tool import ToolOrigin

# --- idempotency keys


def tool_recording_keys(keys: list[str], failures: int = 0) -> FunctionTool[..., Any]:
    """Return a tool that records the key of each attempt."""

    @function_tool
    async def pay(ctx: ToolContext[Any], amount: int) -> str:
        keys.append(ctx.idempotency_key)
        if len(keys) <= failures:
            raise ConnectionError
        return f"paid {amount}"

    return pay


async def test_a_call_can_be_retried_very_often() -> None:
    """The backoff stays bounded, and the last error is that of the tool."""
    tries = 0

    @retry(1_100, backoff=0.0)
    @function_tool
    async def never() -> str:
        nonlocal tries
        tries += 1
        raise ConnectionError("refused")

    outcome = await never.call(None, "{}")
    assert isinstance(outcome.error, ConnectionError)
    assert tries == 1_100


async def test_all_attempts_of_a_call_share_one_key() -> None:
    """A service that supports such keys executes the call once."""
    keys: list[str] = []
    await retry(3, backoff=0)(tool_recording_keys(keys, failures=2)).invoke(amount=1)
    assert len(keys) == 3
    assert len(set(keys)) == 1


async def test_different_calls_have_different_keys() -> None:
    """Not even equal calls, nor calls of other processes with equal call ids."""
    keys: list[str] = []
    tool = tool_recording_keys(keys)
    for _ in range(2):
        await tool.invoke(amount=1)
        await tool.call(ToolContext(tool_call_id="call_0"), '{"amount": 1}')
    assert len(set(keys)) == 4
    assert not any("call_" in key for key in keys)


@pytest.mark.requirement("F42")
async def test_in_a_run_the_key_depends_on_the_run_and_call_ids() -> None:
    """A resumed run has the same ids, so a repeated call has the same key."""
    keys: list[str] = []
    model = ScriptedModel(
        [[tool_call("pay", amount=1, call_id="call_a"), tool_call("pay", amount=1)], "done"]
    )
    result = await Runner.run(Agent("Helper", tools=[tool_recording_keys(keys)], model=model), "hi")
    assert f"{result.run_id}:call_a" in keys
    assert len(set(keys)) == 2


async def test_a_long_call_id_of_another_framework_is_the_key() -> None:
    """Such an id is unique, so a framework that resumes gets the same key."""
    keys: list[str] = []
    for _ in range(2):
        context = ToolContext[Any](tool_call_id="call_0123456789abcdef")
        await tool_recording_keys(keys).call(context, '{"amount": 1}')
    assert keys == ["call_0123456789abcdef"] * 2


async def test_a_key_can_be_passed_in() -> None:
    """By a caller that runs the call on another machine."""
    keys: list[str] = []
    await tool_recording_keys(keys).call(ToolContext(idempotency_key="order-7"), '{"amount": 1}')
    assert keys == ["order-7"]


async def test_nested_calls_have_their_own_keys() -> None:
    """They stay the same when the outer call is retried, in any order."""
    keys: list[str] = []
    tries = 0

    @retry(2, backoff=0)
    @function_tool
    async def shop() -> str:
        nonlocal tries
        tries += 1
        amounts = [1, 2, 1] if tries == 1 else [2, 1, 1]
        for amount in amounts:
            await pay.invoke(amount=amount)
        if tries == 1:
            raise ConnectionError
        return "done"

    pay = tool_recording_keys(keys)
    await shop.invoke()
    assert len(set(keys[:3])) == 3
    assert set(keys[:3]) == set(keys[3:])


async def test_keys_in_a_nested_run_depend_on_the_outer_call() -> None:
    """The id of the inner run changes each time, the call around it does not."""
    keys: list[str] = []
    inner = ScriptedModel([tool_call("pay", amount=1, call_id="inner"), "paid"])
    helper = Agent("Payer", tools=[tool_recording_keys(keys)], model=inner)
    outer = ScriptedModel([tool_call("payer", input="pay", call_id="outer"), "done"])
    agent = Agent("Helper", tools=[helper.as_tool("payer", "Pays.")], model=outer)
    result = await Runner.run(agent, "hi")
    assert keys == [f"{result.run_id}:outer/inner"]


# --- which calls may be retried


@pytest.mark.requirement("F42")
async def test_two_runs_inside_one_call_have_different_keys() -> None:
    """Models restart their call ids in each run; a second attempt gets the same keys again."""
    keys: list[str] = []

    @retry(2, on=ConnectionError, backoff=0)
    @function_tool
    async def pay_both(ctx: ToolContext[Any]) -> str:
        for _ in range(2):
            model = ScriptedModel([tool_call("pay", amount=1, call_id="call_1"), "done"])
            await Runner.run(Agent("Helper", tools=[tool_recording_keys(keys)], model=model), "pay")
        if ctx.attempt == 1:
            raise ConnectionError
        return "paid"

    outer = ScriptedModel([tool_call("pay_both"), "done"])
    await Runner.run(Agent("Outer", tools=[pay_both], model=outer), "hi")
    assert len(keys) == 4
    assert keys[:2] == keys[2:]
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    ("annotations", "idempotent", "tries"),
    [
        (None, None, 1),
        (ToolAnnotations(), None, 1),
        (ToolAnnotations(idempotentHint=True), None, 2),
        (ToolAnnotations(readOnlyHint=True), None, 2),
        (ToolAnnotations(readOnlyHint=True), False, 1),
        (None, True, 2),
    ],
)
@pytest.mark.parametrize("error", [ToolTimeoutError("late"), ToolLostError("gone")])
async def test_a_call_that_may_have_taken_effect_is_retried_only_if_idempotent(
    annotations: ToolAnnotations | None, idempotent: bool | None, tries: int, error: Exception
) -> None:
    """Annotations by trusted code count, unless the policy overrides them."""
    done = 0

    @retry(2, on=type(error), backoff=0, idempotent=idempotent)
    @function_tool(annotations=annotations)
    async def act() -> str:
        nonlocal done
        done += 1
        raise error

    assert (await act.call(None, "{}")).status in {"timeout", "lost"}
    assert done == tries


async def test_annotations_of_a_server_do_not_allow_retries() -> None:
    """Annotations of a remote server are hints."""
    done = 0

    async def act(context: Any, args_json: str) -> str:
        nonlocal done
        done += 1
        raise ToolLostError("gone")

    tool = FunctionTool(
        name="act",
        params_json_schema={"type": "object"},
        on_invoke_tool=act,
        annotations=ToolAnnotations(readOnlyHint=True),
    )
    tool._origin = ToolOrigin(kind="manual", server="theirs")
    await retry(2, on=ToolLostError, backoff=0)(tool).call(None, "{}")
    assert done == 1


async def test_a_server_cannot_declare_that_its_tool_needs_no_approval() -> None:
    """The threat model promises that hints of a server permit no call."""

    async def act(context: Any, args_json: str) -> str:
        return "done"

    tool = FunctionTool(
        name="act",
        params_json_schema={"type": "object", "properties": {}},
        on_invoke_tool=act,
        annotations=ToolAnnotations(readOnlyHint=True, destructiveHint=False),
    )
    assert (await approve_destructive()(tool).call(None, "{}")).status == "ok"
    assert security_risk()(tool) is tool
    tool._origin = ToolOrigin(kind="mcp", server="theirs")
    assert (await approve_destructive()(tool).call(None, "{}")).status == "denied"
    assert "security_risk" in security_risk()(tool).params_json_schema["properties"]
    tool._origin = ToolOrigin(kind="mcp", server="theirs", trusted=True)
    assert (await approve_destructive()(tool).call(None, "{}")).status == "ok"
    assert security_risk()(tool) is tool


async def test_a_hand_made_tool_is_retried() -> None:
    """It parses its own arguments, so any error but `ModelBehaviorError` comes from its work."""
    done = 0

    async def act(context: Any, args_json: str) -> str:
        nonlocal done
        done += 1
        if done < 3:
            raise ConnectionError
        return "done"

    tool = FunctionTool(name="act", params_json_schema={"type": "object"}, on_invoke_tool=act)
    assert await retry(3, backoff=0)(tool).on_invoke_tool(None, "{}") == "done"


async def test_retry_timeout_and_key_work_together() -> None:
    """Each attempt has its own deadline, all share one key, and the outcome has the count."""
    keys: list[str] = []

    @retry(3, backoff=0, idempotent=True)
    @timeout(0.05)
    @function_tool
    async def pay(ctx: ToolContext[Any]) -> str:
        keys.append(ctx.idempotency_key)
        if len(keys) < 3:
            await asyncio.Event().wait()
        return "paid"

    outcome = await pay.call(None, "{}")
    assert (outcome.status, outcome.output) == ("ok", "paid")
    assert outcome.metadata == {"agents_tools": {"attempts": 3}}
    assert len(set(keys)) == 1


async def test_a_budget_limits_the_retries_of_a_run() -> None:
    """It protects a failing service; another run has its own budget."""
    done = 0

    @retry(3, backoff=0, budget=0.1)
    @function_tool
    async def act() -> str:
        nonlocal done
        done += 1
        raise ConnectionError

    one, other = ToolContext[Any](object()), ToolContext[Any](object())
    for _ in range(20):
        await act.call(ToolContext(one.context), "{}")
    assert done == 20 + 10
    await act.call(ToolContext(other.context), "{}")
    assert done == 20 + 10 + 3


@pytest.mark.parametrize(
    "options",
    [
        {"budget": 0},
        {"attempts": 0},
        {"attempts": True},
        {"on": [ValueError]},
        {"on": (ValueError, KeyboardInterrupt)},
        {"backoff": -1},
        {"backoff": float("nan")},
        {"backoff": lambda: 1.0},
        {"backoff": asyncio.sleep},
        {"max_delay": "5"},
    ],
)
def test_invalid_retry_options_are_refused(options: dict[str, Any]) -> None:
    """At construction: at a failure, they would hide the error of the tool."""
    with pytest.raises(UserError, match=r"retry\("):
        retry(**options)


# --- the rate of calls


def test_calls_are_spaced_and_a_burst_starts_at_once() -> None:
    """After a pause a burst is allowed, but never more."""
    pace = RateLimit(per_second=10, burst=3)
    starts = [pace.take(100.0, may_wait=True) for _ in range(5)]
    assert starts == pytest.approx([100.0, 100.0, 100.0, 100.1, 100.2])
    assert pace.take(101.0, may_wait=True) == 101.0
    even = RateLimit(per_second=10, burst=1)
    assert [even.take(5.0, may_wait=True) for _ in range(3)] == pytest.approx([5.0, 5.1, 5.2])


def test_start_times_of_cancelled_calls_are_reused() -> None:
    """Cancelled calls neither delay later calls nor let them start together."""
    pace = RateLimit(per_second=1, burst=1)
    starts = [pace.take(10.0, may_wait=True) for _ in range(5)]
    for start in starts[1:]:
        assert start is not None
        pace.give_back(start)
    again = [pace.take(11.5, may_wait=True) for _ in range(4)]
    assert again == pytest.approx([12.0, 13.0, 14.0, 15.0])


@given(
    burst=st.integers(1, 4),
    steps=st.lists(
        st.tuples(st.sampled_from(["come", "come", "go"]), st.integers(0, 8)), max_size=60
    ),
)
def test_the_rate_is_never_exceeded(burst: int, steps: list[tuple[str, int]]) -> None:
    """With any sequence of arrivals and cancellations."""
    pace = RateLimit(4, burst)
    now = 100.0
    waiting: list[float] = []
    started: list[float] = []
    for step, number in steps:
        if step == "come":
            now += number / 16
            started += [one for one in waiting if one <= now]
            waiting = [one for one in waiting if one > now]
            start = pace.take(now, may_wait=True)
            assert start is not None
            assert start >= now
            (waiting if start > now else started).append(start)
        elif waiting:
            pace.give_back(waiting.pop(number % len(waiting)))
    started = sorted(started + waiting)
    for first, one in enumerate(started):
        for count, other in enumerate(started[first:], start=1):
            assert count <= burst + 4 * (other - one) + 1e-6


async def test_a_burst_passes_and_further_calls_are_overloaded() -> None:
    """Without a queue."""
    release = asyncio.Event()

    @limit(per_second=0.001, burst=3, queue=0)
    @function_tool
    async def act() -> str:
        await release.wait()
        return "done"

    calls = [asyncio.create_task(act.call(None, "{}")) for _ in range(5)]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    release.set()
    assert [(await call).status for call in calls] == ["ok"] * 3 + ["overloaded"] * 2


async def test_a_cancelled_call_releases_its_start_time() -> None:
    """The next call must not wait for a cancelled one."""

    @limit(per_second=0.001, queue=1)
    @function_tool
    async def act() -> str:
        return "done"

    await act.invoke()
    waits = asyncio.create_task(act.call(None, "{}"))
    await asyncio.sleep(0)
    assert (await act.call(None, "{}")).status == "overloaded"
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    after = asyncio.create_task(act.call(None, "{}"))
    await asyncio.sleep(0)
    assert not after.done()
    after.cancel()
    with pytest.raises(asyncio.CancelledError):
        await after


@pytest.mark.parametrize(
    "options",
    [
        {"burst": 2},
        {"per_second": 1, "burst": 0},
        {"per_second": 1, "burst": 1.5},
        {"concurrent": 1.5},
        {"calls": 0.5},
        {"concurrent": 1, "queue": -1},
    ],
)
def test_invalid_limit_options_are_refused(options: dict[str, Any]) -> None:
    """At construction: a burst needs a rate, and counts are whole numbers."""
    with pytest.raises(UserError, match=r"limit\("):
        limit(**options)
