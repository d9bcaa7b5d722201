"""Contract tests for durable stores, which the author of any store can run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserTypeError
from agents_tools.persistence.durable import (
    DurableStep,
    DurableStoreError,
    RunInUseError,
    StepLostError,
)
from agents_tools.text import secrets as _secrets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agents_tools.persistence.durable import DurableStore

__all__ = ["DurableStoreContract", "DurableStoreLawError"]

_SECRET = "hunter2-is-no-good-secret"  # noqa: S105 - a test value


class DurableStoreLawError(AssertionError):
    """A store violates the contract; the message names the rule and the actual result."""


class DurableStoreContract:
    """Tests that every durable store passes; pytest runs those of a subclass.

    ::

        class TestMyStore(DurableStoreContract):
            def make_stores(self, count):
                return [MyStore(...) for _ in range(count)]  # of the same empty storage

    The tests are async, so pytest needs a plugin such as pytest-asyncio.
    """

    def make_stores(self, count: int) -> Sequence[DurableStore]:
        """Return stores of the same empty storage, as in several processes."""
        raise NotImplementedError

    async def written(self) -> bytes:
        """Return the raw content of the storage; empty if it is unknown."""
        return b""

    async def test_a_new_run_has_nothing(self) -> None:
        """An unused name is not an error: the run begins."""
        async with _OpenStores(self.make_stores(1)) as (store,):
            kept = await store.claim("new")
            _is("where a new run begins", kept.start, None)
            _is("the steps of a new run", dict(kept.steps), {})
            await store.leave("new", "finished")
            _is("the runs, when none was begun", await store.runs(), [])

    async def test_a_finished_step_is_never_performed_again(self) -> None:
        """F41: every caller gets the stored result of a step."""
        async with _OpenStores(self.make_stores(2)) as (store, other):
            given = await _begun(store, "run")
            value: Any = {"text": "ä \U0001f600 \ud800 \0 \n", "list": [1, 2.5, None, {"a": 1}]}
            _is("what a step gives", await store.step("run", "one", given(value)), value)
            _is("what it gives again", await store.step("run", "one", given("other")), value)
            await store.leave("run", "failed")
            kept = await other.claim("run")
            _is("the step", kept.steps["one"], DurableStep(done=True, value=value, attempts=1))
            _is("elsewhere", await other.step("run", "one", given("third")), value)
            _is("how often it was performed", given.count, 1)
            await other.leave("run", "finished")

    async def test_a_step_without_an_end_is_not_performed_again_by_itself(self) -> None:
        """F42: it can have had an effect, so it is repeated only on explicit request."""
        async with _OpenStores(self.make_stores(2)) as (store, other):
            given = await _begun(store, "run")
            await _raises(OSError, store.step("run", "one", given(OSError("cut off"))))
            await _raises(StepLostError, store.step("run", "one", given("late")))
            await store.leave("run", "failed")
            kept = await other.claim("run")
            _is("the step", kept.steps["one"], DurableStep(done=False, attempts=1))
            await _raises(StepLostError, other.step("run", "one", given("late")))
            _is("again", await other.step("run", "one", given("now"), again=True), "now")
            await other.leave("run", "finished")
            kept = await store.claim("run")
            _is("the step", kept.steps["one"], DurableStep(done=True, value="now", attempts=2))
            await store.leave("run", "finished")

    async def test_a_step_that_is_cancelled_has_no_end(self) -> None:
        """A cancelled step can have had an effect as well."""
        async with _OpenStores(self.make_stores(1)) as (store,):
            await _begun(store, "run")
            reached, never = asyncio.Event(), asyncio.Event()

            async def body() -> None:
                reached.set()
                await never.wait()

            task = asyncio.ensure_future(store.step("run", "one", body))
            await asyncio.wait_for(reached.wait(), 20)
            task.cancel()
            await asyncio.wait({task})
            _is("whether it was cancelled", task.cancelled(), True)
            await store.leave("run", "cancelled")
            kept = await store.claim("run")
            _is("the step", kept.steps["one"], DurableStep(done=False, attempts=1))
            await store.leave("run", "cancelled")

    async def test_many_steps_at_once_do_not_mix(self) -> None:
        """Calls of one turn run concurrently; keys can be any text."""
        async with _OpenStores(self.make_stores(1)) as (store,):
            given = await _begun(store, "run")
            keys = [f"call/{n} ü%/'\"\\ {'x' * n * 40}" for n in range(20)]
            work = [store.step("run", key, given(key)) for key in keys]
            _is("what they give", await asyncio.gather(*work), keys)
            await store.leave("run", "finished")
            kept = await store.claim("run")
            _is("the keys", sorted(kept.steps), sorted(keys))
            await store.leave("run", "finished")

    async def test_one_at_a_time_carries_a_run_on(self) -> None:
        """Two processes with the same run would repeat its steps; other runs are not affected."""
        async with _OpenStores(self.make_stores(2)) as (store, other):
            await _begun(store, "run")
            await _raises(RunInUseError, other.claim("run"))
            await _raises(RunInUseError, store.claim("run"))
            await _raises(RunInUseError, other.delete("run"))
            await _begun(other, "other")
            await store.leave("run", "waiting")
            await other.claim("run")
            await other.leave("run", "waiting")
            await other.leave("other", "finished")

    async def test_what_was_not_claimed_is_not_kept(self) -> None:
        """A process that has not claimed a run must not write to it."""
        async with _OpenStores(self.make_stores(2)) as (store, other):
            given = await _begun(store, "run")
            await _raises(DurableStoreError, other.step("run", "one", given(1)))
            await _raises(DurableStoreError, other.begin("run", {"agent": "B"}))
            await store.leave("run", None)
            await _raises(DurableStoreError, store.step("run", "one", given(1)))
            _is("the status", [run.status for run in await store.runs()], ["running"])
            _is("how often a step was performed", given.count, 0)

    async def test_a_run_begins_where_it_was_last_begun(self) -> None:
        """A run that waited for approval continues from there, with its steps."""
        async with _OpenStores(self.make_stores(1)) as (store,):
            given = await _begun(store, "run")
            await store.step("run", "one", given(1))
            await store.begin("run", {"agent": "B", "state": {"turns": 2}})
            await store.leave("run", "waiting")
            kept = await store.claim("run")
            _is("where it begins", kept.start, {"agent": "B", "state": {"turns": 2}})
            _is("its steps", list(kept.steps), ["one"])
            await store.leave("run", "waiting")

    async def test_runs_are_listed_and_forgotten(self) -> None:
        """A process finds the runs to continue by their status."""
        async with _OpenStores(self.make_stores(2)) as (store, other):
            for name in ("a/1", "b 2", "c%3"):
                given = await _begun(store, name)
                await store.step(name, "one", given(name))
            await store.leave("a/1", "finished")
            await store.leave("b 2", "waiting")
            listed = [(run.run_id, run.status, run.agent) for run in await other.runs()]
            expected = [("a/1", "finished"), ("b 2", "waiting"), ("c%3", "running")]
            _is("the runs", listed, [(*one, "A") for one in expected])
            _is("their order in time", all(r.changed >= r.begun for r in await store.runs()), True)
            await store.delete("a/1")
            await other.delete("never there")
            _is("the others", [run.run_id for run in await other.runs()], ["b 2", "c%3"])
            _is("what is left of it", dict((await store.claim("a/1")).steps), {})
            await store.leave("a/1", "finished")

    async def test_what_has_no_json_form_is_refused(self) -> None:
        """It could not be restored, so the step has no end."""
        async with _OpenStores(self.make_stores(1)) as (store,):
            given = await _begun(store, "run")
            await _raises(UserTypeError, store.step("run", "one", given({"a": object()})))
            await _raises(StepLostError, store.step("run", "one", given(1)))

    async def test_registered_secrets_are_not_written(self) -> None:
        """S: more people can read a store than a process; arguments must still work."""
        try:
            _secrets.register_secret(_SECRET)
            async with _OpenStores(self.make_stores(1)) as (store,):
                given = await _begun(store, "run")
                value = {"arguments": f'{{"key": "{_SECRET}"}}', _SECRET: [f"Bearer {_SECRET}"]}
                _is("what a step gives", await store.step("run", "one", given(value)), value)
                await store.leave("run", "failed")
                found = _SECRET.encode() in await self.written()
                _is("the secret in what is written", found, False)
                _is("the value", (await store.claim("run")).steps["one"].value, value)
                await store.leave("run", "failed")
                _secrets.forget_secret(_SECRET)
                read = str((await store.claim("run")).steps["one"].value)
                _is("the secret, where nobody registered it", _SECRET in read, False)
                _is("what is there instead", "***" in read, True)
        finally:
            _secrets.forget_secret(_SECRET)


class _OpenStores:
    """Closes stores at the end of a block."""

    def __init__(self, stores: Sequence[DurableStore]) -> None:
        self._stores = stores

    async def __aenter__(self) -> Sequence[DurableStore]:
        return self._stores

    async def __aexit__(self, *_: object) -> None:
        for store in self._stores:
            await store.aclose()
            await store.aclose()


class _StepCounter:
    """Creates bodies of steps and counts how often they are performed."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, value: Any) -> Callable[[], Awaitable[Any]]:
        async def body() -> Any:
            self.count += 1
            if isinstance(value, BaseException):
                raise value
            return value

        return body


async def _begun(store: DurableStore, run_id: str) -> _StepCounter:
    await store.claim(run_id)
    await store.begin(run_id, {"agent": "A"})
    return _StepCounter()


async def _raises(kind: type[BaseException], work: Awaitable[Any]) -> None:
    try:
        given = await work
    except kind:
        return
    raise DurableStoreLawError(f"expected {kind.__name__}, got {given!r:.200}.")


def _is(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise DurableStoreLawError(f"{what}: expected {expected!r:.400}, got {found!r:.400}.")
