"""Arguments with other names, descriptions, defaults and values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agents_tools import (
    Agent,
    RunContextWrapper,
    Runner,
    ToolContext,
    ToolError,
    UserError,
    function_tool,
)
from agents_tools.policies import (
    ArgTransform,
    hide,
    input_guardrail,
    needs_approval,
    repair_json,
    transform,
)
from agents_tools.testing import ScriptedModel, tool_call


class Point(BaseModel):
    x: int
    y: int = 0


@function_tool
async def book(
    city: str,
    where: Point,
    nights: int = 1,
    price: Decimal = Decimal(0),
    kind: Literal["room", "flat"] = "room",
    note: str | None = None,
) -> str:
    """Book a place.

    Args:
        city: The city.
        where: The place in it.
        nights: How long.
        price: At most.
        kind: What.
        note: Anything else.
    """
    return f"{city} {where.x},{where.y} {nights} {price} {kind} {note}"


POINT = '{"x": 1, "y": 2}'


async def test_an_argument_can_be_renamed_and_described() -> None:
    """The model knows only the new name; the tool gets its own."""
    tool = transform(
        city=ArgTransform(name="town", description="Which town."),
        where=ArgTransform(name="place", description="Where there."),
    )(book)
    properties = tool.params_json_schema["properties"]
    assert list(properties) == ["town", "place", "nights", "price", "kind", "note"]
    assert properties["town"] == {"title": "Town", "type": "string", "description": "Which town."}
    assert properties["place"] == {"$ref": "#/$defs/Point", "description": "Where there."}
    assert tool.params_json_schema["required"] == ["town", "place"]
    assert "$defs" in tool.params_json_schema
    args = f'{{"town": "Rome", "place": {POINT}}}'
    assert await tool.on_invoke_tool(None, args) == "Rome 1,2 1 0 room None"
    assert await tool.invoke(town="Rome", place={"x": 1}) == "Rome 1,0 1 0 room None"


async def test_errors_use_the_argument_names_of_the_model() -> None:
    """Including nested paths and suggestions of similar names."""
    tool = transform(
        city=ArgTransform(name="town"),
        where=ArgTransform(name="place"),
        note=ArgTransform(hide=True),
    )(book)
    bad = '{"town": 1, "place": {"x": "one"}, "nigths": 1}'
    assert await tool.on_invoke_tool(None, bad) == (
        "Invalid arguments for tool 'book':\n"
        "- town: expected a string, got 1\n"
        "- place.x: expected an integer, "
        'got "one"\n'
        "- nigths: unknown, did you mean 'nights'?"
    )
    old = '{"city": "Rome", "note": "x", "place": {"x": 1}}'
    assert await tool.on_invoke_tool(None, old) == (
        "Invalid arguments for tool 'book':\n"
        "- city: unknown, the known keys are town, place, nights, price, kind\n"
        "- note: unknown, the known keys are town, place, nights, price, kind"
    )
    outcome = await tool.call(None, '{"place": {"x": 1}}')
    assert outcome.status == "invalid_args"
    assert "- town: missing" in str(outcome.output)
    for text in ("[1]", '{"town": "a", "town": "b"}', '{"town": "a"', "nothing"):
        assert (await tool.call(None, text)).status == "invalid_args"


async def test_an_argument_can_get_a_default() -> None:
    """It is in the schema, and `null` selects it as elsewhere."""
    tool = transform(city=ArgTransform(default="Rome"), where=ArgTransform(default=Point(x=3)))(
        book
    )
    schema = tool.params_json_schema
    assert "required" not in schema
    assert schema["properties"]["city"]["default"] == "Rome"
    assert schema["properties"]["where"]["default"] == {"x": 3, "y": 0}
    for text in ("{}", "", "null", '{"city": null}', '"{}"'):
        assert await tool.on_invoke_tool(None, text) == "Rome 3,0 1 0 room None"
    assert await tool.on_invoke_tool(None, '{"city": "Bonn"}') == "Bonn 3,0 1 0 room None"


async def test_an_argument_can_be_made_required_or_optional() -> None:
    """Arguments are validated against the published schema."""
    tool = transform(nights=ArgTransform(name="days", required=True))(book)
    assert tool.params_json_schema["required"] == ["city", "where", "days"]
    assert "default" not in tool.params_json_schema["properties"]["days"]
    args = f'{{"city": "Rome", "where": {POINT}}}'
    assert await tool.on_invoke_tool(None, args) == (
        "Invalid arguments for tool 'book':\n- days: missing, expected a value (required)"
    )
    with pytest.raises(UserError, match=r"transform\(city=...\): the tool requires this"):
        _ = transform(city=ArgTransform(required=False))(book).params_json_schema


async def test_hidden_arguments_are_supplied_by_the_application() -> None:
    """A constant, a value per call, or the default of the tool."""
    seen: list[str] = []

    async def from_person(context: ToolContext[Any]) -> str:
        seen.append(context.idempotency_key)
        return context.context["city"]

    tool = transform(
        city=ArgTransform(fill=from_person),
        where=ArgTransform(hide=True, default={"x": 7}),
        kind=ArgTransform(hide=True),
    )(book)
    schema = tool.params_json_schema
    assert list(schema["properties"]) == ["nights", "price", "note"]
    assert "required" not in schema
    assert "$defs" not in schema
    context = RunContextWrapper({"city": "Rome"})
    assert await tool.on_invoke_tool(context, '{"nights": 2}') == "Rome 7,0 2 0 room None"
    assert (await tool.call(context, '{"kind": "flat"}')).status == "invalid_args"
    assert len(seen) == 1
    with pytest.raises(UserError, match="the tool requires this"):
        _ = transform(city=ArgTransform(hide=True))(book).params_json_schema


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (hide(nights="many"), "hide(nights=...) has a value that tool 'book' does not accept"),
        (
            transform(nights=ArgTransform(hide=True, default="many")),
            "transform(nights=...) has a value that tool 'book' does not accept",
        ),
        (
            transform(nights=ArgTransform(name="days", default="many")),
            "transform(nights=...) has a value that tool 'book' does not accept",
        ),
        (
            transform(nights=ArgTransform(fill=lambda _: object())),
            "transform(nights=...) has a value that is not serializable as JSON",
        ),
    ],
)
async def test_an_invalid_value_of_the_application_is_not_reported_to_the_model(
    policy: Any, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the error; the model cannot fix it and sees no hidden name."""
    outcome = await policy(book).call(None, f'{{"city": "Rome", "where": {POINT}}}')
    assert outcome.status == "tool_error"
    assert isinstance(outcome.error, ToolError)
    assert message in caplog.text
    assert any(
        isinstance(error, UserError) and message in str(error) for error in error_chain(outcome)
    )
    assert "nights" not in outcome.output
    assert "many" not in outcome.output


def error_chain(outcome: Any) -> list[BaseException]:
    """Return the error of a call and its causes."""
    found: list[BaseException] = []
    error = outcome.error
    while error is not None:
        found.append(error)
        error = error.__cause__
    return found


async def test_an_error_of_the_model_next_to_a_default_is_reported() -> None:
    """With the names that the model knows."""
    tool = hide(where={"x": 1})(transform(nights=ArgTransform(name="days", default=2))(book))
    outcome = await tool.call(None, '{"city": "Rome", "days": "many"}')
    assert outcome.status == "invalid_args"
    assert "- days: expected" in str(outcome.output)
    assert "nights" not in str(outcome.output)


@pytest.mark.parametrize("text", ["[]", "{", '"x"', '{"nights": 1, "nights": 2}'])
async def test_arguments_that_are_not_an_object_give_the_usual_error(text: str) -> None:
    for policy in (hide(where={"x": 1}), transform(city=ArgTransform(name="town"))):
        message, plain = await policy(book).call(None, text), await book.call(None, text)
        assert message.status == plain.status == "invalid_args"
        assert message.output == plain.output


async def test_positional_and_variadic_parameters_can_be_transformed() -> None:
    """For models, all arguments have names."""

    @function_tool
    def add(first: int, /, *rest: int, **more: int) -> str:
        return f"{first} {rest} {more}"

    tool = transform(first=ArgTransform(name="start"), rest=ArgTransform(name="others"))(add)
    assert await tool.invoke(start=1, others=[2, 3], x=4) == "1 (2, 3) {'x': 4}"
    assert (await tool.call(None, '{"start": 1, "first": 2}')).status == "invalid_args"
    fixed = hide(first=7, rest=[8])(add)
    assert await fixed.invoke(x=1) == "7 (8,) {'x': 1}"
    assert (await fixed.call(None, '{"rest": []}')).status == "invalid_args"


async def test_values_are_passed_on_unchanged() -> None:
    """A long number keeps its digits, and repeated keys stay an error."""
    tool = transform(city=ArgTransform(name="town"))(book)
    args = f'{{"town": "Rome", "where": {POINT}, "nights": {10**30 + 1}}}'
    assert str(10**30 + 1) in str(await tool.on_invoke_tool(None, args))
    twice = '{"town": "Rome", "where": {"x": 1, "x": 2}}'
    assert (await tool.call(None, twice)).status == "invalid_args"


async def test_two_arguments_can_swap_their_names() -> None:
    """A name that is already in use is refused."""

    @function_tool
    async def move(source: str, target: str) -> str:
        return f"{source} to {target}"

    tool = transform(source=ArgTransform(name="target"), target=ArgTransform(name="source"))(move)
    assert await tool.invoke(source="a", target="b") == "b to a"
    clash = transform(source=ArgTransform(name="target"))(move)
    with pytest.raises(UserError, match="two arguments named 'target'"):
        _ = clash.params_json_schema
    with pytest.raises(
        UserError, match="is not a parameter of the tool: expected one of source, target"
    ):
        _ = transform(goal=ArgTransform(name="target"))(move).params_json_schema


async def test_transforms_can_be_stacked() -> None:
    """The outer one refers to the names of the inner one."""
    inner = transform(city=ArgTransform(name="town"), where=ArgTransform(default={"x": 1}))(book)
    tool = hide(nights=3)(transform(town=ArgTransform(name="village", default="Oia"))(inner))
    assert list(tool.params_json_schema["properties"]) == [
        "village",
        "where",
        "price",
        "kind",
        "note",
    ]
    assert await tool.invoke() == "Oia 1,0 3 0 room None"
    assert await tool.invoke(village="Ano") == "Ano 1,0 3 0 room None"
    for name in ("town", "city"):
        outcome = await tool.call(None, f'{{"{name}": "x"}}')
        assert outcome.status == "invalid_args"


async def test_policies_see_the_names_of_the_tool_at_any_position() -> None:
    """A rule for the tool cannot be bypassed with another name."""
    seen: list[dict[str, Any]] = []

    def look(_: Any, arguments: dict[str, Any]) -> None:
        seen.append(dict(arguments))

    def rule(_: Any, arguments: dict[str, Any]) -> bool:
        return arguments.get("city") == "Rome"

    rename_it = transform(
        city=ArgTransform(name="town"), where=ArgTransform(hide=True, default={"x": 1})
    )
    tool = input_guardrail(look)(rename_it(input_guardrail(look)(needs_approval(rule)(book))))
    assert (await tool.call(None, '{"town": "Bonn"}')).status == "ok"
    rest = {"nights": 1, "price": "0", "kind": "room", "note": None}
    assert seen == [{"city": "Bonn", **rest}] * 2
    assert (await tool.call(None, '{"town": "Rome"}')).status == "denied"
    outside = needs_approval(rule)(rename_it(book))
    assert (await outside.call(None, '{"town": "Rome"}')).status == "denied"


async def test_arguments_edited_by_a_person_use_the_names_of_the_tool() -> None:
    """Hidden values stay hidden."""
    tool = needs_approval(
        transform(city=ArgTransform(name="town"), where=ArgTransform(hide=True, default={"x": 9}))(
            book
        )
    )
    model = ScriptedModel([tool_call("book", town="Rome"), lambda request: str(request.input[-1])])
    agent = Agent("Helper", tools=[tool], model=model)
    waiting = await Runner.run(agent, "hi")
    asked = waiting.interruptions[0]
    assert asked.arguments == '{"city":"Rome"}' or "Rome" in asked.arguments
    assert "9" not in asked.arguments
    state = waiting.to_state()
    state.approve(asked, arguments='{"city": "Bonn"}')
    result = await Runner.run(agent, state)
    assert "Bonn 9,0 1 0 room None" in result.final_output


async def test_repaired_arguments_are_transformed() -> None:
    """The repair comes first, in any order of the policies."""
    tool = transform(city=ArgTransform(name="town"), where=ArgTransform(default={"x": 1}))(
        repair_json()(book)
    )
    assert await tool.on_invoke_tool(None, "{'town': 'Rome'}") == "Rome 1,0 1 0 room None"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"city": "town"},
        {"city": ArgTransform(hide=True, name="town")},
        {"city": ArgTransform(fill=str, default="x")},
        {"city": ArgTransform(fill=lambda: "x")},  # pyright: ignore[reportArgumentType]
        {"city": ArgTransform(fill="x")},  # pyright: ignore[reportArgumentType]
        {"city": ArgTransform(name="")},
        {"city": ArgTransform(name="the town")},
        {"city": ArgTransform(required=True, default="x")},
        {"city": ArgTransform(default=object())},
    ],
)
def test_invalid_transform_options_are_refused(options: dict[str, Any]) -> None:
    """At construction."""
    with pytest.raises(UserError, match="transform"):
        transform(**options)
