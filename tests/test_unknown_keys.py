"""Test that unknown and duplicate keys are detected for every type, in the fast reader too.

The fast reader compares the number of keys in a text with the number in the value. If a default, an
alias or `__post_init__` changed that count, an unknown key would be accepted.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from agents_tools import ModelBehaviorError, function_tool


class Model(BaseModel):
    """A base model that forbids unknown keys; pydantic ignores them by default."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Defaults:
    a: int
    b: int = 2
    c: int = 3


@dataclass
class Filled:
    a: int
    b: int = 0

    def __post_init__(self) -> None:
        self.b = 7


@dataclass
class Made:
    a: int
    b: list[int] = dataclasses.field(default_factory=list)
    d: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        self.d = 9


@dataclass
class HoldsDefaults:
    one: Defaults
    other: Defaults = Defaults(1, 20, 30)


@dataclass
class HoldsMany:
    a: Defaults
    many: list[Defaults] = dataclasses.field(default_factory=list)


class Typed(TypedDict):
    a: int
    b: NotRequired[Defaults]


class TypedDefault(TypedDict):
    a: int
    b: Annotated[int, Field(default=3)]


class Plain(Model):
    a: int
    b: int = 2


class Other(Model):
    a: int
    d: Defaults | None = None


class Holds(Model):
    a: int
    inner: Plain = Plain(a=1, b=2)
    typed: Typed = {"a": 1}
    more: list[Plain] = [Plain(a=1, b=2)]


class Shared(Model):
    first: int = Field(validation_alias="a")
    second: int = Field(validation_alias="a")


class Choices(Model):
    a: int = Field(validation_alias=AliasChoices("a", "A"))
    b: int = Field(2, validation_alias=AliasChoices("a", "b"))


class ByName(Model):
    model_config = ConfigDict(populate_by_name=True, extra="forbid")
    a: int = 1
    first: int = Field(0, alias="a")


@dataclass
class SharedFields:
    first: Annotated[int, Field(validation_alias="a")]
    second: Annotated[int, Field(validation_alias="a")]


class After(Model):
    a: int
    b: int = 2

    def model_post_init(self, context: Any, /) -> None:
        self.b = 7


class Init(Model):
    a: int
    b: int = 0

    def __init__(self, **values: Any) -> None:
        super().__init__(**values, **({} if "b" in values else {"b": 1}))


class Tagged(Model):
    a: int
    kind: Literal["t"] = "t"


class Pair(NamedTuple):
    a: int
    b: int = 2


SHAPES: dict[str, tuple[Any, Any]] = {
    "dataclass with defaults": (Defaults, {"a": 1}),
    "dataclass that fills itself": (Filled, {"a": 1}),
    "dataclass with a factory": (Made, {"a": 1}),
    "dataclass in a dataclass": (HoldsDefaults, {"one": {"a": 1}}),
    "dataclasses in a dataclass": (
        HoldsMany,
        {"a": {"a": 1}, "many": [{"a": 1}, {"a": 2, "c": 1}]},
    ),
    "typed dictionary": (Typed, {"a": 1}),
    "typed dictionary that holds more": (Typed, {"a": 1, "b": {"a": 1}}),
    "typed dictionary with a default": (TypedDefault, {"a": 1}),
    "model": (Plain, {"a": 1}),
    "model with models as defaults": (Holds, {"a": 1}),
    "model with models": (
        Holds,
        {"a": 1, "inner": {"a": 1}, "typed": {"a": 1}, "more": [{"a": 1}]},
    ),
    "one key for two fields of a model": (Shared, {"a": 1}),
    "one key for two fields of a dataclass": (SharedFields, {"a": 1}),
    "several keys for a field": (Choices, {"a": 1}),
    "a field by two names": (ByName, {"a": 1}),
    "model that changes itself": (After, {"a": 1}),
    "model with a constructor": (Init, {"a": 1}),
    "named tuple": (Pair, {"a": 1}),
    "list": (list[Defaults], [{"a": 1}, {"a": 2, "b": 1}]),
    "set of lists": (list[list[Typed]], [[{"a": 1}], [{"a": 2, "b": {"a": 1}}]]),
    "tuple": (tuple[Plain, Defaults], [{"a": 1}, {"a": 1}]),
    "map": (dict[str, Defaults], {"x": {"a": 1}, "y": {"a": 2, "b": 2}}),
    "map of numbers": (dict[str, int], {"x": 1}),
    "optional": (Optional[Defaults], {"a": 1}),
    "union of models": (Plain | Other, {"a": 1, "d": {"a": 1}}),
    "union of a model and a dictionary": (Tagged | Typed, {"a": 1, "b": {"a": 1}}),
    "union of dataclasses": (Defaults | HoldsDefaults, {"one": {"a": 1}}),
    "tagged union": (Annotated[Tagged | Plain, Field(union_mode="smart")], {"a": 1, "kind": "t"}),
}


def objects(value: Any) -> list[dict[str, Any]]:
    """Return all objects in a value, including the value itself."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [inner for one in below for inner in objects(one)]
    return [value, *found] if isinstance(value, dict) else found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("other", ["required", "optional", "further"])
def test_an_extra_or_duplicate_key_is_refused_in_every_object(shape: str, other: str) -> None:
    """Each object of each shape is tested with one more key and with a repeated key."""
    annotation, good = SHAPES[shape]

    def take(it: Any = None, number: int = 0) -> bool:
        return True

    def take_more(it: Any, **more: int) -> bool:
        return True

    take.__annotations__["it"] = Optional[annotation] if other == "optional" else annotation
    take_more.__annotations__["it"] = annotation
    tool = function_tool(take_more if other == "further" else take)
    assert tool.invoke_sync(json.dumps({"it": good})) is True
    free = shape.startswith("map")
    for index in range(len(objects(good))):
        text = json.dumps({"it": good})
        changed = json.loads(text)
        holder = objects(changed["it"])[index]
        holder["zzz"] = {"a": 5} if free and index == 0 and holder is changed["it"] else 5
        if free and holder is changed["it"]:
            if shape == "map of numbers":
                holder["zzz"] = 5
            assert tool.invoke_sync(json.dumps(changed)) is True
        else:
            with pytest.raises(ModelBehaviorError):
                tool.invoke_sync(json.dumps(changed))
        holder.pop("zzz")
        key = next(iter(holder))
        twice = json.dumps(changed).replace(f'"{key}":', f'"{key}": 1, "{key}":', 1)
        with pytest.raises(ModelBehaviorError, match="twice"):
            tool.invoke_sync(twice)


@pytest.mark.parametrize("shape", SHAPES)
def test_colons_in_another_text_do_not_hide_an_extra_key(shape: str) -> None:
    """Counting keys is only a hint; text that looks like a key must not change the result."""
    annotation, good = SHAPES[shape]

    def take(it: Any, text: str = "") -> str:
        return text

    take.__annotations__["it"] = annotation
    tool = function_tool(take)
    assert tool.invoke_sync(json.dumps({"it": good, "text": "a:b::c"})) == "a:b::c"
    with pytest.raises(ModelBehaviorError, match="unknown"):
        tool.invoke_sync(json.dumps({"it": good, "zzz": 1}))
