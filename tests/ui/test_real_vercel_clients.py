"""The real SDK of Vercel against our app, as far as its versions are installed.

All versions and scenarios: `python -m tests.conformance.ui.run`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from agents_tools.testing import VercelStreamError, check_vercel
from tests.conformance.ui import vercel
from tests.ui.test_vercel_checker import BAD, BAD_IN_7, GOOD

SHORT = ("tool", "nested", "tool_error", "model_fails", "cancel", "nested_approve", "tool_reload")

TAKEN = {
    "an unknown field",
    "no start",
    "nothing",
    "no finish",
    "two starts",
    "more after finish",
    "text after abort",
    "a text twice",
    "an open text",
    "a text beyond its step",
    "a step in a step",
    "the end of no step",
    "an open step",
    "an output while writing",
    "an output twice",
    "a late preliminary",
    "an error after the output",
    "an id twice",
    "an id begun twice",
    "another tool",
    "a call without output",
    "only for now",
    "a call half written",
    "dynamic on one",
    "dynamic on the other",
    "an input over two steps",
    "denied but not asked",
    "asked after the output",
    "asked twice",
    "an output taken back",
}
"""What the newest SDK takes without a word, and shows wrong or leaves half done."""


pytestmark = pytest.mark.external


def _needs(client: str) -> pytest.MarkDecorator:
    reason = vercel.missing(client)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


def _text(chunks: Iterable[dict[str, Any]]) -> str:
    frames = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
    return "".join(f"data: {frame}\n\n" for frame in frames)


CLIENTS = vercel.clients()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "client", [pytest.param(client, marks=_needs(client)) for client in CLIENTS]
)
async def test_a_real_client_shows_all_runs_correctly(client: str) -> None:
    """There are no errors, warnings or additional requests."""
    problems = await vercel.check(client, SHORT)
    assert set(problems) == set(SHORT)
    assert {job: problem for job, problem in problems.items() if problem} == {}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "client", [pytest.param(client, marks=_needs(client)) for client in CLIENTS]
)
async def test_a_real_client_accepts_what_the_check_accepts(client: str) -> None:
    told = await vercel.read_streams(client, {name: _text(one) for name, one in GOOD.items()})
    errors = {name: problems for name, problems in told.items() if problems}
    assert list(errors) == ["an error after the end"], errors


@_needs(CLIENTS[-1])
@pytest.mark.timeout(120)
async def test_the_check_is_stricter_than_the_newest_client() -> None:
    """Streams that the client rejects are rejected; those that it only shows wrong are listed."""
    bad = {name: chunks for name, (chunks, _) in {**BAD, **BAD_IN_7}.items()}
    told = await vercel.read_streams(CLIENTS[-1], {name: _text(one) for name, one in bad.items()})
    assert {name for name, problems in told.items() if not problems} == TAKEN
    for chunks in bad.values():
        with pytest.raises(VercelStreamError):
            check_vercel([_text(chunks)], 7)
