"""The campaign of made-up arguments finds nothing, and finds what was broken on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from agents_tools.schema import arguments as _arguments
from agents_tools.schema.lookup import SchemaLookup
from agents_tools.text.escape import describe_value
from tests.soak import _made_types, fuzz_arguments
from tests.soak._made_cases import Cases
from tests.soak._made_shapes import Login
from tests.soak._made_texts import smaller
from tests.soak.campaign import Budget

SHORT = Budget(seconds=1.5, seed=7)
LONG = Budget(seconds=10, seed=7)


@pytest.mark.requirement("F1", "S26", "S27")
def test_made_up_arguments_end_as_published() -> None:
    """Whatever a model writes, a call is accepted or refused, and says why."""
    outcome = fuzz_arguments.run(SHORT)

    assert outcome.findings == []
    assert outcome.cases > 50
    assert {"accepted", "refused", "tools"} <= outcome.figures.keys()


def _finds_nothing(_text: str, _known: int = 0) -> None:
    """Find no key repeated."""


def _breaks(*_: Any) -> Any:
    raise LookupError("planted")


@pytest.mark.parametrize(
    ("name", "planted", "said"),
    [
        ("check_keys", _finds_nothing, "its text is no JSON"),
        ("arguments_error", _breaks, "LookupError('planted')"),
    ],
    ids=["repeated keys", "breaks"],
)
def test_a_planted_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str, planted: Any, said: str
) -> None:
    """A campaign that cannot find is worth nothing."""
    monkeypatch.setattr(_arguments, name, planted)
    monkeypatch.setattr(Cases, "most", 1)

    [finding] = fuzz_arguments.run(LONG).findings

    assert said in finding.what
    assert "async def made(" in finding.reproduce


def test_a_shown_secret_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are in few tools only, so that this one is made to have one."""
    types = [_made_types.MadeType("Login", lambda _: {"user": "a", "password": "b"})]
    monkeypatch.setattr(_made_types, "PLAIN", tuple(types))
    monkeypatch.setattr(
        SchemaLookup, "describe", lambda _lookup, value, _path: describe_value(value)
    )

    monkeypatch.setattr(Cases, "most", 1)

    [finding] = fuzz_arguments.run(LONG).findings

    assert fuzz_arguments.SECRET in finding.what
    assert Login.model_fields["password"]


def test_the_same_seed_makes_the_same_tools() -> None:
    """A finding is seen again by its seed."""
    budget = Budget(seconds=9, seed=7)
    (_, one), (_, other) = (next(iter(Cases("fuzz_arguments", budget))) for _ in range(2))
    first, second = _made_types.a_tool(one), _made_types.a_tool(other)
    assert first.program == second.program
    assert first.arguments(one) == second.arguments(other)


def test_a_text_is_made_as_small_as_what_matters() -> None:
    """Who reads a finding wants to see the two characters that it takes."""
    assert smaller("abcdefgxhijyklm" * 20, lambda text: "x" in text and "y" in text) == "xy"
