"""Result cache: keys, scope, expiry and concurrent calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agents_tools import (
    Agent,
    RunContextWrapper,
    Runner,
    ToolContext,
    ToolError,
    ToolResult,
    UserError,
    function_tool,
)
from agents_tools.policies import cache, hide, needs_approval, retry, timeout
from agents_tools.policies._cache import _InFlight
from agents_tools.testing import ScriptedModel, tool_call


@pytest.fixture(autouse=True)
def _no_call_stays_in_flight() -> Iterator[None]:
    yield
    assert not _InFlight._leaders
    assert not _InFlight._waits


def recording_tool(**options: Any) -> tuple[Any, list[str]]:
    """Return a cached tool and the list of its real executions."""
    runs: list[str] = []

    @cache(**options)
    @function_tool
    async def look_up(word: str, limit: int = 1) -> str:
        runs.append(f"{word} {limit}")
        return f"{word}!"

    return look_up, runs


async def test_an_equal_call_gets_the_result_of_the_first() -> None:
    """The formatting of the JSON does not matter."""
    tool, runs = recording_tool()
    assert await tool.invoke(word="a", limit=2) == "a!"
    outcome = await tool.call(None, ' { "limit" : 2, "word": "\\u0061" } ')
    assert (outcome.status, outcome.output, outcome.value) == ("ok", "a!", "a!")
    assert outcome.metadata == {"agents_tools": {"cache": "hit"}}
    assert runs == ["a 2"]


async def test_an_executed_call_is_not_marked_as_a_hit() -> None:
    """Only a call with a cached result has the metadata."""
    tool, _ = recording_tool()
    assert (await tool.call(None, '{"word": "a"}')).metadata is None


@pytest.mark.parametrize(
    "arguments",
    ['{"word": 1}', '{"word": "a", "word": "a"}', '{"word": "a"', "[]", '{"word": "a", "more": 1}'],
)
async def test_invalid_arguments_are_never_answered_from_the_cache(arguments: str) -> None:
    """Even if a lenient parser would read them as valid ones."""
    tool, runs = recording_tool()
    await tool.invoke(word="a")
    for _ in range(2):
        assert (await tool.call(None, arguments)).status == "invalid_args"
    assert runs == ["a 1"]


async def test_errors_are_never_cached() -> None:
    """Neither exceptions, nor results that report a failure."""
    tries = 0

    @cache()
    @function_tool
    async def unsteady(how: str) -> Any:
        nonlocal tries
        tries += 1
        if tries % 2 == 0:
            return "fine"
        if how == "raise":
            raise ToolError("broken")
        return ToolResult(content="broken", is_error=True)

    for how in ("raise", "report"):
        first = await unsteady.call(None, f'{{"how": "{how}"}}')
        second = await unsteady.call(None, f'{{"how": "{how}"}}')
        assert (first.status, second.status) == ("tool_error", "ok")
        assert second.metadata is None


async def test_results_are_cached_per_run() -> None:
    """Another run can belong to another user."""
    tool, runs = recording_tool()
    for _ in range(2):
        model = ScriptedModel([tool_call("look_up", word="a"), tool_call("look_up", word="a"), "."])
        await Runner.run(Agent("Helper", tools=[tool], model=model), "hi")
    assert runs == ["a 1", "a 1"]


async def test_outside_a_run_results_are_cached_per_application_context() -> None:
    """Requests of a server with different contexts do not share results."""

    class Person:
        pass

    tool, runs = recording_tool()
    anna, bob = Person(), Person()
    for person in (anna, bob, anna, bob, None, None):
        await tool.call(RunContextWrapper(person), '{"word": "a"}')
    assert len(runs) == 3


async def test_a_new_context_with_a_reused_id_finds_no_results() -> None:
    """Python reuses the `id` of a deleted object."""

    class Person:
        pass

    tool, runs = recording_tool()
    for _ in range(50):
        await tool.call(RunContextWrapper(Person()), '{"word": "a"}')
    assert len(runs) == 50


async def test_shared_results_are_visible_to_all_callers() -> None:
    """For results that do not depend on the caller."""
    tool, runs = recording_tool(shared=True)
    for context in (object(), {"a": 1}, None):
        await tool.call(RunContextWrapper(context), '{"word": "a"}')
    assert len(runs) == 1


async def test_each_tool_and_each_instance_has_its_own_results() -> None:
    """Equal arguments have another meaning there."""
    once = cache(shared=True)

    class Shelf:
        def __init__(self, name: str) -> None:
            self.name = name

        @cache(shared=True)
        @function_tool
        async def read(self, page: int) -> str:
            return f"{self.name} {page}"

    @function_tool
    async def add(one: int, other: int) -> int:
        return one + other

    plus_one, plus_two = once(hide(other=1)(add)), once(hide(other=2)(add))
    assert (await plus_one.invoke(one=1), await plus_two.invoke(one=1)) == (2, 3)
    red, blue = Shelf("red"), Shelf("blue")
    for _ in range(2):
        assert await red.read.invoke(page=1) == "red 1"
        assert await blue.read.invoke(page=1) == "blue 1"


async def test_a_result_expires_after_its_ttl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the tool runs again."""
    now = 100.0
    monkeypatch.setattr("agents_tools.policies._cache.time.monotonic", lambda: now)
    tool, runs = recording_tool(ttl=10)
    await tool.invoke(word="a")
    now = 109.9
    await tool.invoke(word="a")
    assert len(runs) == 1
    now = 110.0
    await tool.invoke(word="a")
    assert len(runs) == 2


async def test_the_least_recently_used_result_is_evicted() -> None:
    """Memory is bounded, whatever a model asks for."""
    tool, runs = recording_tool(max_entries=2)
    for word in ("a", "b", "a", "c", "a", "b"):
        await tool.invoke(word=word)
    assert runs == ["a 1", "b 1", "c 1", "b 1"]


async def test_a_key_function_defines_which_calls_are_equal() -> None:
    """`None` disables the cache for a call."""

    async def key(context: ToolContext[Any], arguments: Any) -> Any:
        word = arguments["word"].lower()
        return None if word == "now" else (context.context, word)

    tool, runs = recording_tool(shared=True, key=key)
    for word in ("A", "a", "now", "now"):
        await tool.call(RunContextWrapper("anna"), f'{{"word": "{word}"}}')
    await tool.call(RunContextWrapper("bob"), '{"word": "a"}')
    assert runs == ["A 1", "now 1", "now 1", "a 1"]


async def test_an_unhashable_key_is_reported() -> None:
    """Otherwise its author would look for the error in the tool."""
    tool, _ = recording_tool(key=lambda _, arguments: [arguments["word"]])
    with pytest.raises(
        UserError, match=r"key function of cache\(\) on tool 'look_up' returned a value"
    ):
        await tool.invoke(word="a")


@pytest.mark.parametrize("options", [{"ttl": 0}, {"max_entries": 0}, {"max_entries": 1.5}])
def test_invalid_cache_options_are_refused(options: dict[str, Any]) -> None:
    """At construction, not at the first use."""
    with pytest.raises(UserError, match="expected a positive"):
        cache(**options)


@pytest.mark.parametrize("key", ["word", lambda arguments: arguments["word"]])
def test_a_key_function_with_other_parameters_is_refused(key: Any) -> None:
    """At construction: each call would fail."""
    with pytest.raises(UserError, match=r"cache\(key=...\) expects a function of \(context, argum"):
        cache(key=key)


async def test_an_iterator_is_not_cached() -> None:
    """The second caller would get an exhausted one."""

    @cache()
    @function_tool
    def numbers() -> Any:
        return iter([1, 2])

    assert await numbers.on_invoke_tool(None, "{}") == "[1,2]"
    assert await numbers.on_invoke_tool(None, "") == "[1,2]"


async def test_approval_is_requested_before_the_cache_is_read() -> None:
    """In any order of the policies."""
    asked: list[str] = []

    def rule(_: Any, arguments: dict[str, Any]) -> bool:
        asked.append(arguments["word"])
        return arguments["word"] == "secret"

    tool, runs = recording_tool()
    for guarded in (needs_approval(rule)(tool), cache()(needs_approval(rule)(tool))):
        asked.clear()
        for _ in range(2):
            assert (await guarded.call(None, '{"word": "a"}')).status == "ok"
            assert (await guarded.call(None, '{"word": "secret"}')).status == "denied"
        assert asked == ["a", "secret"] * 2
    assert runs == ["a 1"]


async def test_the_cache_is_bounded_across_runs() -> None:
    """A server starts runs without end."""
    import gc
    import weakref

    class Page:
        pass

    pages: list[weakref.ref[Page]] = []

    @cache(max_entries=2)
    @function_tool
    async def load() -> Any:
        page = Page()
        pages.append(weakref.ref(page))
        return ToolResult(content="page", structured=None, metadata={"page": page})

    for number in range(5):
        await load.call(ToolContext(run_id=f"run {number}"), "{}")
    gc.collect()
    assert [page() is not None for page in pages] == [False] * 3 + [True] * 2


async def test_an_error_shared_by_calls_is_released() -> None:
    """It references the frames of the tool; its traceback must not grow either."""
    import gc
    import weakref

    class LineError(Exception):
        pass

    def lose_the_line() -> str:
        raise LineError

    errors: list[weakref.ref[LineError]] = []

    @cache()
    @function_tool
    async def broken() -> str:
        await asyncio.sleep(0)
        try:
            return lose_the_line()
        except LineError as error:
            errors.append(weakref.ref(error))
            raise

    gc.collect()
    gc.disable()
    try:
        outcomes = await asyncio.gather(*(broken.call(None, "{}") for _ in range(100)))
        assert len({id(outcome.error) for outcome in outcomes}) == 1
        depth, place = 0, outcomes[0].error.__traceback__ if outcomes[0].error else None
        while place is not None:
            depth, place = depth + 1, place.tb_next
        assert depth < 10
        del outcomes, place
        await asyncio.sleep(0)
        assert [error() for error in errors] == [None]
    finally:
        gc.enable()


# --- concurrent calls


class BlockingTool:
    """A cached tool that blocks until it is released."""

    def __init__(self, **options: Any) -> None:
        self.runs = 0
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.fails = False

        @cache(**options)
        @function_tool
        async def slow(word: str) -> str:
            self.runs += 1
            self.started.set()
            await self.release.wait()
            if self.fails:
                raise ConnectionError("no answer")
            return word

        self.tool = slow

    def call(self, word: str = "a") -> asyncio.Task[Any]:
        return asyncio.create_task(self.tool.call(None, f'{{"word": "{word}"}}'))


async def pause() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_equal_concurrent_calls_share_one_execution() -> None:
    """A thousand of them make one request."""
    slow = BlockingTool()
    calls = [slow.call() for _ in range(1_000)]
    await asyncio.wait_for(slow.started.wait(), 5)
    await pause()
    slow.release.set()
    outcomes = await asyncio.gather(*calls)
    assert slow.runs == 1
    assert {outcome.output for outcome in outcomes} == {"a"}
    shared = [one for one in outcomes if one.metadata == {"agents_tools": {"cache": "shared"}}]
    assert len(shared) == 999


async def test_when_the_executing_call_is_cancelled_a_waiting_one_takes_over() -> None:
    """The waiting calls were not cancelled."""
    slow = BlockingTool()
    leader = slow.call()
    await asyncio.wait_for(slow.started.wait(), 5)
    others = [slow.call() for _ in range(3)]
    await pause()
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    await pause()
    assert slow.runs == 2
    slow.release.set()
    assert [(await other).output for other in others] == ["a"] * 3
    assert slow.runs == 2


async def test_a_waiting_call_can_be_cancelled() -> None:
    """The others and the executing call are not affected."""
    slow = BlockingTool()
    leader = slow.call()
    await asyncio.wait_for(slow.started.wait(), 5)
    waits, stays = slow.call(), slow.call()
    await pause()
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    slow.release.set()
    assert [(await one).output for one in (leader, stays)] == ["a", "a"]
    assert slow.runs == 1


async def test_all_waiting_calls_get_the_same_failure() -> None:
    """The next call runs again, and each can be retried outside."""
    slow = BlockingTool()
    slow.fails = True
    calls = [slow.call() for _ in range(3)]
    await asyncio.wait_for(slow.started.wait(), 5)
    await pause()
    slow.release.set()
    assert [(await one).status for one in calls] == ["tool_error"] * 3
    assert slow.runs == 1
    slow.fails = False
    slow.tool = retry(2, backoff=0)(slow.tool)
    assert (await slow.call()).output == "a"


async def test_the_deadline_of_the_executing_call_does_not_apply_to_waiting_ones() -> None:
    """It stops at its own deadline, and another call takes over."""
    slow = BlockingTool()
    hasty = timeout(0.05)(slow.tool)
    leader = asyncio.create_task(hasty.call(None, '{"word": "a"}'))
    await asyncio.wait_for(slow.started.wait(), 5)
    other = slow.call()
    assert (await leader).status == "timeout"
    await pause()
    slow.release.set()
    assert (await other).output == "a"
    assert slow.runs == 2


@pytest.mark.requirement("F44")
async def test_a_recursive_call_does_not_wait_for_itself() -> None:
    """It is executed inside the outer one."""
    depth = 0

    @cache(shared=True)
    @function_tool
    async def again() -> str:
        nonlocal depth
        depth += 1
        return "end" if depth == 2 else await again.invoke()

    async with asyncio.timeout(30):
        assert await again.invoke() == "end"


@pytest.mark.requirement("F44")
async def test_two_tools_that_call_each_other_do_not_deadlock() -> None:
    """Each has started and calls the other, which is still running."""
    both = asyncio.Barrier(2)
    entered = {"ping": 0, "pong": 0}

    async def enter(name: str, following: Any) -> str:
        entered[name] += 1
        if entered[name] > 1:
            return f"{name} again"
        await both.wait()
        return f"{name}, {await following.invoke()}"

    @cache(shared=True)
    @function_tool
    async def ping() -> str:
        return await enter("ping", pong)

    @cache(shared=True)
    @function_tool
    async def pong() -> str:
        return await enter("pong", ping)

    async with asyncio.timeout(30):
        results = await asyncio.gather(ping.invoke(), pong.invoke())
    assert all(result.endswith("again") for result in results)


@pytest.mark.requirement("F44")
def test_calls_in_several_event_loops_share_one_execution() -> None:
    """Each loop runs in its own thread."""
    runs = 0
    started, release = threading.Event(), threading.Event()

    @cache(shared=True)
    @function_tool
    def slow() -> str:
        nonlocal runs
        runs += 1
        started.set()
        release.wait(10)
        return "a"

    outputs: list[Any] = []

    def work() -> None:
        outputs.append(asyncio.run(slow.on_invoke_tool(None, "{}")))

    threads = [threading.Thread(target=work) for _ in range(4)]
    threads[0].start()
    assert started.wait(5)
    for thread in threads[1:]:
        thread.start()
    release.set()
    for thread in threads:
        thread.join(10)
    assert outputs == ["a"] * 4
    assert runs == 1


@pytest.mark.requirement("F44")
def test_another_loop_takes_over_when_the_executing_loop_closes() -> None:
    """A closed loop cancels its calls."""
    runs = 0
    started, waiting = threading.Event(), threading.Event()

    @cache(shared=True)
    @function_tool
    async def slow() -> str:
        nonlocal runs
        runs += 1
        started.set()
        if runs == 1:
            await asyncio.Event().wait()
        return "a"

    async def lead() -> None:
        call = asyncio.create_task(slow.invoke())
        await asyncio.to_thread(waiting.wait, 5)
        del call  # the end of the loop cancels it

    async def follow() -> str:
        call = asyncio.create_task(slow.invoke())
        await pause()
        waiting.set()
        return await asyncio.wait_for(call, 30)

    leader = threading.Thread(target=lambda: asyncio.run(lead()))
    leader.start()
    assert started.wait(5)
    assert asyncio.run(follow()) == "a"
    leader.join(10)
    assert runs == 2


@pytest.mark.requirement("F46")
@pytest.mark.parametrize("seed", range(5))
async def test_each_concurrent_call_gets_its_own_answer(seed: int) -> None:
    """Calls arrive, fail, are cancelled and time out; nothing stays in flight."""
    import random

    chance = random.Random(seed)  # noqa: S311 - the same each time
    running: dict[str, int] = {}
    most = 0

    @cache(max_entries=3)
    @function_tool
    async def work(word: str) -> str:
        nonlocal most
        running[word] = running.get(word, 0) + 1
        most = max(most, running[word])
        try:
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            if chance.random() < 0.3:
                raise ConnectionError(word)
            return f"{word}!"
        finally:
            running[word] -= 1

    hasty = timeout(0.002)(work)
    async with asyncio.timeout(20):
        for _ in range(30):
            calls = []
            for _ in range(20):
                word = chance.choice("abcdef")
                tool = chance.choice([work, work, hasty])
                calls.append((word, asyncio.create_task(tool.call(None, f'{{"word": "{word}"}}'))))
            for _ in range(chance.randrange(8)):
                await asyncio.sleep(0)
                chance.choice(calls)[1].cancel()
            await asyncio.wait([call for _, call in calls])
            for word, call in calls:
                if not call.cancelled():
                    outcome = call.result()
                    assert outcome.status in {"ok", "tool_error", "timeout"}
                    assert outcome.status != "ok" or outcome.value == f"{word}!"
    assert most == 1
