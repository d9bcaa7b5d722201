"""The campaign of made-up declarations finds nothing, and finds what was broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents_tools.schema import docstring as _docstring
from agents_tools.wire import project as _project
from tests.soak import fuzz_schemas
from tests.soak._made_cases import Cases
from tests.soak.campaign import Budget

SHORT = Budget(seconds=2, seed=7)
LONG = Budget(seconds=12, seed=7)


@pytest.mark.requirement("S25")
def test_made_up_declarations_work_or_say_why_not() -> None:
    """Signatures, docstrings and schemas of others never end in anything but words."""
    outcome = fuzz_schemas.run(SHORT)

    assert outcome.findings == []
    assert outcome.cases > 10


def _without_description(read: Callable[..., Any]) -> Callable[..., Any]:
    def reading(doc: str | None, **how: Any) -> Any:
        return read(doc and doc.partition("\n\n")[2], **how)

    return reading


def _leaves_nulls(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_args, **_how: lambda text: text


def _leaves_open(convert: Callable[..., Any]) -> Callable[..., Any]:
    def converting(*args: Any) -> Any:
        told, nulls = convert(*args)
        return {key: one for key, one in told.items() if key != "additionalProperties"}, nulls

    return converting


def _breaks_on_definitions(root: Callable[..., Any]) -> Callable[..., Any]:
    def rooting(schema: Any, **how: Any) -> Any:
        if "definitions" in schema:
            raise RuntimeError("planted")
        return root(schema, **how)

    return rooting


@pytest.mark.parametrize(
    ("place", "name", "planted", "said"),
    [
        (_docstring, "parse_docstring", _without_description, "is not in the description"),
        (_project, "decoder", _leaves_nulls, "which the tool forbids"),
        (_project, "to_strict", _leaves_open, "an open object"),
        (_project, "_object_root", _breaks_on_definitions, "it raised RuntimeError"),
    ],
    ids=["descriptions", "nulls", "open objects", "definitions"],
)
def test_a_planted_defect_is_found(
    monkeypatch: pytest.MonkeyPatch,
    place: Any,
    name: str,
    planted: Callable[[Any], Any],
    said: str,
) -> None:
    """A campaign that cannot find is worth nothing."""
    monkeypatch.setattr(place, name, planted(getattr(place, name)))
    monkeypatch.setattr(Cases, "most", 1)

    [finding] = fuzz_schemas.run(LONG).findings

    assert said in finding.what
