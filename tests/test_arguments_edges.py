"""Edge cases of arguments: required nulls, long keys and texts, recursive schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired

import pytest
from inline_snapshot import snapshot
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict, Unpack

from agents_tools import FunctionTool, ModelBehaviorError, UserError, function_tool


class Filters(TypedDict):
    since: NotRequired[int]
    until: int


def refused(tool: Any, **arguments: Any) -> str:
    """Call a tool with arguments that it must refuse, and return the message."""
    with pytest.raises(ModelBehaviorError) as caught:
        tool.invoke_sync(json.dumps(arguments))
    return str(caught.value)


def test_null_for_a_required_argument_is_refused() -> None:
    """There is no default to use, and no internal marker may reach the function."""

    @function_tool
    def add(a: int, b: int = 2) -> int:
        return a + b

    assert refused(add, a=None) == snapshot("""\
Invalid arguments for tool 'add':
- a: expected an integer, got null\
""")
    assert add.invoke_sync('{"a": 1, "b": null}') == 3


def test_an_omitted_typed_dict_key_is_not_filled_in() -> None:
    """Positional parameters are filled with defaults; an optional key of a TypedDict is not."""

    @function_tool
    def find(text: str = "all", /, **filters: Unpack[Filters]) -> dict[str, Any]:
        return {"text": text, **filters}

    assert find.invoke_sync('{"until": 5}') == {"text": "all", "until": 5}
    assert find.invoke_sync('{"text": "x", "until": 5, "since": 1}') == {
        "text": "x",
        "until": 5,
        "since": 1,
    }


def test_variadic_arguments_follow_the_same_rules() -> None:
    """A numeric string or a whole float is an integer there as well."""

    @function_tool
    def total(**numbers: int) -> int:
        return sum(numbers.values())

    assert total.invoke_sync('{"a": "5", "b": 2.0}') == 7
    assert refused(total, a=True) == snapshot("""\
Invalid arguments for tool 'total':
- a: expected an integer, got true\
""")


def test_the_error_for_an_optional_value_names_only_the_wanted_type() -> None:
    """Naming null as well does not help a model that sent a text for a number."""

    @function_tool
    def wait(seconds: int | list[int] | None = None) -> None: ...

    assert refused(wait, seconds="soon") == snapshot("""\
Invalid arguments for tool 'wait':
- seconds: expected an integer or an array, got "soon"\
""")


def test_the_length_of_a_message_is_bounded() -> None:
    """Ten faults with long paths and reasons would fill the context of a model."""

    def never(value: int) -> int:
        raise ValueError("because " * 100)

    @function_tool
    def count(numbers: dict[str, Annotated[int, AfterValidator(never)]]) -> None: ...

    error = refused(count, numbers={f"{'k' * 60}{i}": i for i in range(12)})
    assert len(error) <= 2_048
    one = refused(count, numbers={"k": 1})
    assert one.count("because") == 20


def test_a_long_unknown_key_is_compared_by_its_beginning() -> None:
    """The comparison is quadratic in the length, which the model chooses."""
    known = "distance_between_the_two_places_in_metres"

    @function_tool
    def go(distance_between_the_two_places_in_metres: int = 1) -> None: ...

    assert f"did you mean '{known}'?" in refused(go, **{known + "z" * 100: 1})


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1e999}',
        '{"n": NaN}',
        '{"n": [-Infinity]}',
        '{"n": [[-1E999]]}',
        '{"n": {"m": [1, 1e999]}}',
        f'{{"n": {"9" * 400}.0}}',
    ],
)
def test_a_number_too_large_for_a_double_is_refused_by_a_raw_schema(text: str) -> None:
    """It would become infinity, which is not JSON."""

    async def run(ctx: Any, arguments: str) -> str:
        return arguments

    tool = FunctionTool.from_schema(name="raw", schema={"type": "object"}, on_invoke_tool=run)
    with pytest.raises(ModelBehaviorError, match="a finite number"):
        tool.invoke_sync(text)
    assert tool.invoke_sync('{"n": [1e3, {"m": [2E5]}]}') == '{"n": [1e3, {"m": [2E5]}]}'


def test_a_raw_schema_with_external_references_is_refused() -> None:
    """A `$ref` to a file or URL is an error when the tool is created."""

    async def run(ctx: Any, arguments: str) -> str:
        return arguments

    schema = {"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}}
    with pytest.raises(UserError, match="points out of the schema"):
        FunctionTool.from_schema(name="raw", schema=schema, on_invoke_tool=run)


def test_a_duplicate_key_in_json_text_for_a_list_is_refused() -> None:
    """Decoding would otherwise silently use the last value."""

    @function_tool
    def take(items: list[dict[str, int]]) -> list[dict[str, int]]:
        return items

    assert take.invoke_sync(json.dumps({"items": '[{"a": 1}]'})) == [{"a": 1}]
    assert refused(take, items='[{"a": 1, "a": 2}]') == snapshot("""\
Invalid arguments for tool 'take':
- items: expected an array, got "[{\\"a\\": 1, \\"a\\": 2}]"\
""")


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    barks: bool


class Tree(TypedDict):
    label: str
    below: NotRequired[list[Tree]]


def test_a_missing_key_of_a_tagged_union_arm_is_described() -> None:
    """The arms stand under `oneOf`; each has its own keys."""

    @function_tool
    def adopt(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> None: ...

    assert refused(adopt, pet={"kind": "cat"}) == snapshot("""\
Invalid arguments for tool 'adopt':
- pet.lives: missing, expected an integer (required)\
""")


class Read(BaseModel):
    action: Literal["read"]
    path: str
    limit: int = 10


@dataclass
class Write:
    path: str
    text: str
    action: Literal["write"] = "write"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"action": "write", "path": "a"}, "step.text: missing, expected a string (required)"),
        ({"action": "read", "path": 1}, "step.path: expected a string, got 1"),
        (
            {"action": "write", "path": "a", "text": "b", "limit": 1},
            "step.limit: unknown, the known keys are action, path, text",
        ),
        (
            {"action": "delete", "path": "a"},
            'step.action: expected "read" or "write", got "delete"',
        ),
        ({"action": "read"}, "step.path: missing, expected a string (required)"),
        ([1], "step: expected an object or a string, got [1]"),
    ],
)
@pytest.mark.parametrize("is_raw", [False, True])
def test_only_the_faults_of_the_alternative_that_is_meant_are_reported(
    step: Any, message: str, is_raw: bool
) -> None:
    """Those of other alternatives contradict what the model sent."""

    @function_tool
    def do(step: Read | Write | str) -> None: ...

    tool = do
    if is_raw:
        schema = do.params_json_schema
        schema["$defs"]["Write"]["additionalProperties"] = False

        async def run(_context: Any, args_json: str) -> str:
            return args_json

        tool = FunctionTool.from_schema(name="do", schema=schema, on_invoke_tool=run)
    assert refused(tool, step=step) == f"Invalid arguments for tool 'do':\n- {message}"


def test_the_tag_of_a_discriminated_union_is_published_as_required() -> None:
    """A default of the tag does not help: without the tag, the alternative is not known."""

    @function_tool
    def do(step: Annotated[Read | Write, Field(discriminator="action")]) -> None: ...

    definitions = do.params_json_schema["$defs"]
    assert definitions["Write"]["required"] == ["action", "path", "text"]
    assert definitions["Read"]["required"] == ["action", "path"]
    assert "an object with 'action' one of" in refused(do, step={"path": "a", "text": "b"})


def test_alternatives_without_a_tag_are_compared_by_their_faults() -> None:
    @function_tool
    def do(step: list[int] | list[str], other: Write | dict[str, int] | None = None) -> None: ...

    assert refused(do, step=["a", 1], other={"path": "a", "text": True}) == snapshot("""\
Invalid arguments for tool 'do':
- step[0]: expected an integer, got "a"
- other.text: expected a string, got true\
""")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (Literal["low", "high"], "levels.hihg: unknown, did you mean 'high'?"),
        (int, 'levels.hihg: expected an integer as the key, got "hihg"'),
        (
            Annotated[str, Field(pattern="^l")],
            "levels.hihg: expected a string that matches '^l' as the key, got \"hihg\"",
        ),
    ],
)
def test_the_fault_of_a_key_is_not_reported_for_its_value(keys: Any, message: str) -> None:
    """The value is right, and a model would change it."""

    def do(levels: Any) -> None: ...

    do.__annotations__["levels"] = dict[keys, int]
    for value in (1, "one"):
        assert refused(function_tool(do), levels={"hihg": value}) == (
            f"Invalid arguments for tool 'do':\n- {message}"
        )


def test_errors_in_a_recursive_type_are_reported_at_any_depth() -> None:
    """Its schema refers to itself, so that lookups have to terminate."""

    @function_tool
    def plant(tree: Tree) -> None: ...

    wrong = {"label": "a", "below": [{"label": "b", "below": [{"label": 3}]}]}
    assert refused(plant, tree=wrong) == snapshot("""\
Invalid arguments for tool 'plant':
- tree.below[0].below[0].label: expected a string, got 3\
""")


def test_a_self_reference_in_a_raw_schema_terminates() -> None:
    """The schema has only the reference; it must not cause a recursion error."""

    async def run(ctx: Any, arguments: str) -> str:
        return arguments

    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/b"}},
        "$defs": {
            "a": {"$ref": "#/$defs/a"},
            "b": {"anyOf": [{"type": "integer"}, {"items": {"$ref": "#/$defs/b"}}]},
        },
    }
    tool = FunctionTool.from_schema(name="raw", schema=schema, on_invoke_tool=run)
    assert tool.invoke_sync('{"b": [[1]]}') == '{"b": [[1]]}'


def test_the_depth_limit_applies_to_recursive_types() -> None:
    """The nesting is checked before any object is built."""

    @function_tool
    def plant(tree: Tree) -> str:
        return tree["label"]

    def deep(levels: int) -> str:
        return (
            '{"tree": '
            + '{"label": "a", "below": [' * levels
            + '{"label": "b"}'
            + "]}" * levels
            + "}"
        )

    assert plant.invoke_sync(deep(20)) == "a"
    for levels in (200, 5_000):
        with pytest.raises(ModelBehaviorError, match="nested"):
            plant.invoke_sync(deep(levels))


class Renamed(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    number: int = Field(alias="n")
    words: list[str] = []


@dataclass
class Plain:
    n: int
    words: list[str] = field(default_factory=list)


@pytest.mark.parametrize("schema", [Renamed, Plain])
def test_a_tool_made_from_a_type_gets_normalized_arguments(schema: Any) -> None:
    """Quoted numbers and alias names are converted before the function reads them."""

    async def run(ctx: Any, arguments: str) -> str:
        return arguments

    tool = FunctionTool.from_schema(name="t", schema=schema, on_invoke_tool=run)
    assert list(tool.params_json_schema["properties"]) == ["n", "words"]
    texts = ['{"n": 5}', '{"n": "5"}', ' {"n": 5.0} ', '{"n": "5", "words": "[]"}']
    texts += ['{"number": 5}', '{"number": "5"}'] if schema is Renamed else []
    for text in texts:
        found = json.loads(tool.invoke_sync(text))
        assert type(found["n"]) is int
        assert {"words": [], **found} == {"n": 5, "words": []}
    assert tool.invoke_sync(' {"n":5}') == ' {"n":5}'  # a valid text is passed unchanged


@pytest.mark.parametrize("key", ["MAX_COUNT", "MAX-COUNT", "MAXCOUNT", "maxCount", "max_cuont"])
def test_a_misspelled_key_gets_a_suggestion(key: str) -> None:
    """Models mix naming styles; the error suggests the right name."""

    @function_tool
    def take(max_count: int = 1) -> None: ...

    assert f"{key}" in refused(take, **{key: 2})
    assert "did you mean 'max_count'?" in refused(take, **{key: 2})


def raw(tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
    """Return a tool with the same schema, as another program would send it."""

    async def run(_context: Any, text: str) -> str:
        return text

    schema = tool.params_json_schema
    return FunctionTool.from_schema(name=tool.name, schema=schema, on_invoke_tool=run)


def test_a_misspelled_key_among_similar_ones_is_the_one_without_a_value() -> None:
    """`team2` is as near as `team1`, but the call has it already."""

    @function_tool
    def match(team1: str, team2: str, season: str = "now") -> None: ...

    for tool in (match, raw(match)):
        for wrong, other, right in (("tea1m", "team2", "team1"), ("tea2m", "team1", "team2")):
            message = refused(tool, **{wrong: "x", other: "y"})
            assert f"- {wrong}: unknown, did you mean '{right}'?" in message
        message = refused(tool, team1="x", team2="y", team="z")
        assert message.endswith("- team: unknown, did you mean 'team1'?")


def test_similar_values_come_first_where_a_list_of_values_is_cut_short() -> None:
    """The model cannot choose a value that the message leaves out."""

    @function_tool
    def convert(
        currency: Literal[
            "Australian dollar",
            "Brazilian real",
            "British pound",
            "Canadian dollar",
            "Chinese yuan",
            "Euro",
            "Indian rupee",
            "Japanese yen",
            "Mexican peso",
            "Norwegian krone",
            "Polish zloty",
            "Swedish krona",
            "Swiss franc",
        ],
    ) -> None: ...

    for tool in (convert, raw(convert)):
        assert refused(tool, currency="Swiss frank") == snapshot("""\
Invalid arguments for tool 'convert':
- currency: expected one of "Swiss franc", "Australian dollar", "Brazilian real", "British pound", "Canadian dollar", "Chinese yuan", "Euro", "Indian rupee", "Japanese yen", "Mexic…, got "Swiss frank"\
""")
        assert '"Australian dollar", "Brazilian real"' in refused(tool, currency="none of them")


def test_an_unknown_key_of_a_tool_without_parameters_is_reported() -> None:
    """There is no other name to suggest."""

    @function_tool
    def ping() -> None: ...

    assert refused(ping, x=1) == snapshot("""\
Invalid arguments for tool 'ping':
- x: unknown, leave it out\
""")


def test_the_error_object_has_all_faults_beyond_the_listed_ones() -> None:
    """Programs get all of them; a model reads the first ten."""

    @function_tool
    def take(number: Annotated[int, Field(alias="n")], wanted: int, **more: list[int]) -> None: ...

    wrong: dict[str, Any] = {f"key{index}": [index, "x"] for index in range(11)}
    with pytest.raises(ModelBehaviorError) as caught:
        take.invoke_sync(json.dumps({**wrong, "number": 1}))
    kinds = sorted({problem.kind for problem in caught.value.problems or ()})
    assert kinds == ["missing", "type", "unknown_key"]
    assert len(caught.value.problems or ()) == 14
    assert "and 4 more" in str(caught.value)


def _entangled(secret: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose parts refer to each other in dozens of ways."""
    again = {"$ref": "#/$defs/Knot"}
    knot = {
        "anyOf": [
            *({"type": "array", "items": again} for _ in range(30)),
            *(
                {"type": "object", "allOf": [again], "additionalProperties": again}
                for _ in range(30)
            ),
            secret,
        ]
    }
    return {"type": "object", "properties": {"knot": again}, "$defs": {"Knot": knot}}


@pytest.mark.requirement("S20")
@pytest.mark.parametrize("secret", [{"type": "string"}, {"type": "string", "writeOnly": True}])
async def test_a_cyclic_schema_is_traversed_once(secret: Mapping[str, Any]) -> None:
    """A malicious server could make it take forever; secrets in it stay masked."""

    async def echo(_context: Any, arguments: str) -> str:
        return arguments

    tool = FunctionTool.from_schema(name="give", schema=_entangled(secret), on_invoke_tool=echo)
    refused = await tool.call(None, '{"knot": 12345}')
    assert refused.status == "invalid_args"
    assert ("12345" in str(refused.output)) is ("writeOnly" not in secret)


@pytest.mark.requirement("S20")
@pytest.mark.parametrize("place", ["$defs", "definitions", "properties/a~1b/items"])
async def test_a_secret_is_found_at_any_place_in_the_schema(place: str) -> None:
    """Schemas of other programs use more kinds of references."""

    async def echo(_context: Any, arguments: str) -> str:
        return arguments

    *outer, last = [step.replace("~1", "/") for step in (*place.split("/"), "Pin")]
    schema: dict[str, Any] = {last: {"type": "string", "writeOnly": True}}
    for step in reversed(outer):
        schema = {step: schema}
    pin = {"pin": {"$ref": f"#/{place}/Pin"}}
    schema = {**schema, "type": "object", "properties": {**schema.get("properties", {}), **pin}}
    tool = FunctionTool.from_schema(name="give", schema=schema, on_invoke_tool=echo)
    refused = await tool.call(None, '{"pin": 12345}')
    assert refused.status == "invalid_args"
    assert "12345" not in str(refused.output)
