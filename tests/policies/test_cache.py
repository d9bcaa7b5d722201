"""Equal calls share a result: what is kept, for whom, and what happens at the same time."""

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
def _leave_no_flight() -> Iterator[None]:
    yield
    assert not _InFlight._leaders
    assert not _InFlight._waits


def counted(**options: Any) -> tuple[Any, list[str]]:
    """Give a cached tool and the list of what it was really called with."""
    runs: list[str] = []

    @cache(**options)
    @function_tool
    async def look_up(word: str, limit: int = 1) -> str:
        runs.append(f"{word} {limit}")
        return f"{word}!"

    return look_up, runs


async def test_an_equal_call_gets_the_result_of_the_first() -> None:
    """However its arguments are written."""
    tool, runs = counted()
    assert await tool.invoke(word="a", limit=2) == "a!"
    outcome = await tool.call(None, ' { "limit" : 2, "word": "\\u0061" } ')
    assert (outcome.status, outcome.output, outcome.value) == ("ok", "a!", "a!")
    assert outcome.metadata == {"agents_tools": {"cache": "hit"}}
    assert runs == ["a 2"]


async def test_what_was_run_is_not_marked() -> None:
    """Only a call that got another's result says so."""
    tool, _ = counted()
    assert (await tool.call(None, '{"word": "a"}')).metadata is None


@pytest.mark.parametrize(
    "arguments",
    ['{"word": 1}', '{"word": "a", "word": "a"}', '{"word": "a"', "[]", '{"word": "a", "more": 1}'],
)
async def test_bad_arguments_are_never_answered_from_the_cache(arguments: str) -> None:
    """Not even where they would be equal to good ones when read carelessly."""
    tool, runs = counted()
    await tool.invoke(word="a")
    for _ in range(2):
        assert (await tool.call(None, arguments)).status == "invalid_args"
    assert runs == ["a 1"]


async def test_errors_are_never_kept() -> None:
    """Neither what the tool raises, nor a result that reports a failure."""
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


async def test_results_are_kept_for_one_run() -> None:
    """Another run may be that of another person."""
    tool, runs = counted()
    for _ in range(2):
        model = ScriptedModel([tool_call("look_up", word="a"), tool_call("look_up", word="a"), "."])
        await Runner.run(Agent("Helper", tools=[tool], model=model), "hi")
    assert runs == ["a 1", "a 1"]


async def test_outside_a_run_results_are_kept_for_one_application_context() -> None:
    """Two requests of a server with contexts of their own do not see each other's results."""

    class Person:
        pass

    tool, runs = counted()
    anna, bob = Person(), Person()
    for person in (anna, bob, anna, bob, None, None):
        await tool.call(RunContextWrapper(person), '{"word": "a"}')
    assert len(runs) == 3


async def test_a_new_object_in_the_place_of_an_old_one_finds_nothing() -> None:
    """Python gives the number of an object that is gone to the next one."""

    class Person:
        pass

    tool, runs = counted()
    for _ in range(50):
        await tool.call(RunContextWrapper(Person()), '{"word": "a"}')
    assert len(runs) == 50


async def test_shared_results_are_for_all() -> None:
    """Where the result does not depend on who asks."""
    tool, runs = counted(shared=True)
    for context in (object(), {"a": 1}, None):
        await tool.call(RunContextWrapper(context), '{"word": "a"}')
    assert len(runs) == 1


async def test_each_tool_and_each_instance_has_results_of_its_own() -> None:
    """Equal arguments mean something else there."""
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


async def test_a_result_is_good_for_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """After that the tool is run once more."""
    now = 100.0
    monkeypatch.setattr("agents_tools.policies._cache.time.monotonic", lambda: now)
    tool, runs = counted(ttl=10)
    await tool.invoke(word="a")
    now = 109.9
    await tool.invoke(word="a")
    assert len(runs) == 1
    now = 110.0
    await tool.invoke(word="a")
    assert len(runs) == 2


async def test_the_least_recently_used_result_gives_way() -> None:
    """Memory is bounded, whatever a model asks for."""
    tool, runs = counted(max_entries=2)
    for word in ("a", "b", "a", "c", "a", "b"):
        await tool.invoke(word=word)
    assert runs == ["a 1", "b 1", "c 1", "b 1"]


async def test_a_key_says_which_calls_are_equal() -> None:
    """`None` keeps a call out of it."""

    async def key(context: ToolContext[Any], arguments: Any) -> Any:
        word = arguments["word"].lower()
        return None if word == "now" else (context.context, word)

    tool, runs = counted(shared=True, key=key)
    for word in ("A", "a", "now", "now"):
        await tool.call(RunContextWrapper("anna"), f'{{"word": "{word}"}}')
    await tool.call(RunContextWrapper("bob"), '{"word": "a"}')
    assert runs == ["A 1", "now 1", "now 1", "a 1"]


async def test_a_key_that_is_not_hashable_is_an_error_that_says_so() -> None:
    """Otherwise its author would look for a mistake in the tool."""
    tool, _ = counted(key=lambda _, arguments: [arguments["word"]])
    with pytest.raises(
        UserError, match=r"key function of cache\(\) on tool 'look_up' returned a value"
    ):
        await tool.invoke(word="a")


@pytest.mark.parametrize("options", [{"ttl": 0}, {"max_entries": 0}, {"max_entries": 1.5}])
def test_a_bound_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    """When the policy is written, not when it is first used."""
    with pytest.raises(UserError, match="expected a positive"):
        cache(**options)


async def test_what_can_be_read_once_is_not_kept() -> None:
    """The second caller would get nothing."""

    @cache()
    @function_tool
    def numbers() -> Any:
        return iter([1, 2])

    assert await numbers.on_invoke_tool(None, "{}") == "[1,2]"
    assert await numbers.on_invoke_tool(None, "") == "[1,2]"


async def test_a_person_is_asked_about_a_call_that_the_cache_would_answer() -> None:
    """Approval is asked before everything else, wherever it stands."""
    asked: list[str] = []

    def rule(_: Any, arguments: dict[str, Any]) -> bool:
        asked.append(arguments["word"])
        return arguments["word"] == "secret"

    tool, runs = counted()
    for guarded in (needs_approval(rule)(tool), cache()(needs_approval(rule)(tool))):
        asked.clear()
        for _ in range(2):
            assert (await guarded.call(None, '{"word": "a"}')).status == "ok"
            assert (await guarded.call(None, '{"word": "secret"}')).status == "denied"
        assert asked == ["a", "secret"] * 2
    assert runs == ["a 1"]


async def test_results_of_many_runs_are_bounded_together() -> None:
    """A server makes runs without end."""
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


async def test_an_error_that_calls_share_is_kept_by_nobody() -> None:
    """It holds the frames of the tool, and what is in them; and it does not grow."""
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


# --- at the same time


class Slow:
    """A cached tool that waits until it is let go."""

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


async def test_equal_calls_at_the_same_time_share_one_execution() -> None:
    """A thousand of them ask the service once."""
    slow = Slow()
    calls = [slow.call() for _ in range(1_000)]
    await asyncio.wait_for(slow.started.wait(), 5)
    await pause()
    slow.release.set()
    outcomes = await asyncio.gather(*calls)
    assert slow.runs == 1
    assert {outcome.output for outcome in outcomes} == {"a"}
    shared = [one for one in outcomes if one.metadata == {"agents_tools": {"cache": "shared"}}]
    assert len(shared) == 999


async def test_when_the_one_that_runs_is_cancelled_another_takes_over() -> None:
    """Those that wait did nothing wrong."""
    slow = Slow()
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


async def test_one_that_waits_may_be_cancelled() -> None:
    """The others and the one that runs do not notice."""
    slow = Slow()
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


async def test_a_failure_is_that_of_all_that_waited_for_it() -> None:
    """But the next call tries again; and each may be retried outside."""
    slow = Slow()
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


async def test_the_deadline_of_the_one_that_runs_is_not_that_of_the_others() -> None:
    """It is stopped at its own deadline, and another goes on."""
    slow = Slow()
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
async def test_a_tool_that_calls_itself_does_not_wait_for_itself() -> None:
    """It runs once more, inside itself."""
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
async def test_two_tools_that_need_each_other_do_not_wait_for_ever() -> None:
    """Each has started and asks for the other's result, which is the one that asks."""
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
    """Each loop has a thread of its own."""
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
def test_another_loop_takes_over_when_that_of_the_one_that_runs_ends() -> None:
    """A loop that is closed takes its calls with it."""
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
async def test_whatever_happens_at_the_same_time_each_call_gets_its_own_answer(seed: int) -> None:
    """Calls come, fail, are cancelled and run out of time; nothing is left behind."""
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
