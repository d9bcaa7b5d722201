"""The contract of every tool, and snapshots of the definitions that models receive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, Field

from agents_tools import (
    FunctionTool,
    NotifyStreamEvent,
    UserError,
    function_tool,
    streaming_tool,
)
from agents_tools.policies import hide, needs_approval
from agents_tools.testing import (
    SchemaSnapshotError,
    ToolContractError,
    assert_schema_snapshot,
    assert_tool_contract,
    bad_tool_arguments,
    call_tool_sync,
    tool_arguments,
)

if TYPE_CHECKING:
    from pathlib import Path


class Leaf(BaseModel):
    name: str = Field(min_length=1, max_length=5)
    children: list[Leaf] = []


@dataclass
class Point:
    x: float
    y: float = 0.0


@function_tool(strict_mode=False)  # weights are an open map
def rich(
    count: int = Field(ge=1, le=10, description="How many."),
    mode: Literal["fast", "slow"] = "fast",
    tree: Leaf | None = None,
    points: list[Point] | None = None,
    pair: tuple[int, str] = (1, ""),
    weights: dict[str, float] | None = None,
    even: int = Field(2, multiple_of=2),
    code: str = Field("ab", pattern="^[a-z]{2,4}$"),
) -> str:
    """Take much.

    Args:
        mode: How.
        tree: A tree.
        points: Points.
        pair: Two things.
        weights: By name.
        even: An even number.
        code: Letters.
    """
    return f"{count}{mode}"


@streaming_tool
async def streams(text: str):
    """Say a text.

    Args:
        text: The text.
    """
    yield NotifyStreamEvent(text)
    yield text


async def test_a_correct_tool_passes() -> None:
    await assert_tool_contract(rich, {"count": 3}, {"count": 1, "tree": {"name": "a"}})
    await assert_tool_contract(streams, {"text": "x"})


async def test_every_fault_of_a_faulty_tool_is_reported() -> None:
    @function_tool
    def bad(thing, count: int = 0):
        return {1, 2}

    with pytest.raises(ToolContractError) as caught:
        await assert_tool_contract(bad, {"thing": 1}, {"count": "x"})
    faults = "\n".join(caught.value.faults)
    assert "thing" in faults
    assert "it ends with invalid_args" in faults
    assert str(caught.value).startswith("Tool 'bad' has ")


async def test_warnings_can_be_ignored() -> None:
    @function_tool
    def undescribed(x: int) -> int:
        return x

    with pytest.raises(ToolContractError):
        await assert_tool_contract(undescribed, {"x": 1})
    await assert_tool_contract(undescribed, {"x": 1}, warnings=False)


async def test_a_result_of_another_type_than_declared_is_a_fault() -> None:
    @function_tool
    def wrong() -> int:
        """Give a number."""
        return "no number"  # type: ignore[return-value] # pyright: ignore[reportReturnType]

    with pytest.raises(ToolContractError, match="output schema"):
        await assert_tool_contract(wrong, {})


async def test_an_invalid_declaration_is_a_fault() -> None:
    @function_tool
    def broken(lock: type) -> None: ...

    with pytest.raises(ToolContractError, match="declaration"):
        await assert_tool_contract(broken)


async def test_policies_are_checked_too() -> None:
    await assert_tool_contract(hide(mode="slow")(rich), {"count": 2})
    with pytest.raises(ToolContractError, match="it ends with denied"):
        await assert_tool_contract(needs_approval(rich), {"count": 2})


async def test_a_manually_created_tool_validates_its_own_arguments() -> None:
    async def invoke(ctx: Any, args: str) -> str:
        return "done"

    tool = FunctionTool(
        name="x",
        description="Do it.",
        params_json_schema={"type": "object", "properties": {}},
        on_invoke_tool=invoke,
    )
    await assert_tool_contract(tool, {})


# --- strategies


@given(tool_arguments(rich))
def test_generated_arguments_are_accepted(arguments: dict[str, Any]) -> None:
    assert call_tool_sync(rich, arguments).status == "ok"


@given(bad_tool_arguments(rich))
def test_invalid_generated_arguments_are_refused(arguments: dict[str, Any]) -> None:
    assert call_tool_sync(rich, arguments).status == "invalid_args"


def test_all_members_of_a_schema_are_generated() -> None:
    seen: dict[str, set[type]] = {}

    @settings(max_examples=300)
    @given(tool_arguments(rich))
    def collect(arguments: dict[str, Any]) -> None:
        for name, value in arguments.items():
            seen.setdefault(name, set()).add(type(value))

    collect()
    assert seen == {
        "count": {int},
        "mode": {str},
        "tree": {dict, type(None)},
        "points": {list, type(None)},
        "pair": {list},
        "weights": {dict, type(None)},
        "even": {int},
        "code": {str},
    }


SCHEMAS: dict[str, dict[str, Any]] = {
    "formats": {"ip": {"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}},
    "required": {
        "person": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "id": {"type": "integer"}},
            "oneOf": [{"required": ["name"]}, {"required": ["id"]}],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize("properties", SCHEMAS.values(), ids=SCHEMAS)
@given(st.data())
def test_keywords_next_to_a_union_hold_for_each_of_its_schemas(
    properties: dict[str, Any], data: st.DataObject
) -> None:
    async def invoke(_context: Any, args_json: str) -> str:
        return args_json

    schema = {"type": "object", "properties": properties, "required": [*properties]}
    tool = FunctionTool(name="x", description="", params_json_schema=schema, on_invoke_tool=invoke)
    (value,) = data.draw(tool_arguments(tool)).values()
    assert value


@given(st.data())
def test_hidden_parameters_are_not_generated(data: st.DataObject) -> None:
    arguments = data.draw(tool_arguments(hide(mode="slow")(rich)))
    assert "mode" not in arguments


# --- snapshots


def before() -> FunctionTool[..., Any]:
    @function_tool
    def search(query: str, limit: int = 10) -> str:
        """Search."""
        return query

    return search


def after(kind: str) -> FunctionTool[..., Any]:
    if kind == "optional":

        @function_tool
        def search(query: str, limit: int = 10, page: int = 1) -> str:
            """Search."""
            return query

        return search

    @function_tool(name_override="search")
    def needs_more(query: str, limit: int, where: str) -> str:
        """Search."""
        return query

    return needs_more


def test_a_snapshot_is_written_once_and_then_compared(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "tools.json"
    assert_schema_snapshot(before(), file)
    assert_schema_snapshot([before()], file, exact=True)
    assert_schema_snapshot(after("optional"), file)
    with pytest.raises(SchemaSnapshotError, match=r"search\.page"):
        assert_schema_snapshot(after("optional"), file, exact=True)
    with pytest.raises(SchemaSnapshotError) as caught:
        assert_schema_snapshot(after("breaking"), file)
    assert len(caught.value.changes) == 2
    assert "--update-tool-schemas" in str(caught.value)
    assert_schema_snapshot(after("breaking"), file, update=True)
    assert_schema_snapshot(after("breaking"), file, exact=True)


def test_a_removed_tool_is_a_breaking_change(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    assert_schema_snapshot([before(), rich], file)
    with pytest.raises(SchemaSnapshotError, match="rich"):
        assert_schema_snapshot([before()], file)


def test_a_file_that_is_not_a_snapshot_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text("{")
    with pytest.raises(UserError, match="is not a valid snapshot"):
        assert_schema_snapshot(before(), file)
