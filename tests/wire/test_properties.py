"""What holds for every schema: made-up models, their values, and the way there and back."""

from __future__ import annotations

import itertools
import json
import warnings
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union, cast

import jsonschema_rs
import pytest
from hypothesis import example, given, strategies as st
from pydantic import BaseModel, TypeAdapter, create_model

from agents_tools import ensure_strict_json_schema
from agents_tools.errors import UserError
from agents_tools.schema import StrictFallbackWarning
from agents_tools.schema.strict import ANTHROPIC_STRICT, OPENAI_STRICT, to_strict
from agents_tools.wire.compact import FULL_JSON_SCHEMA, CompactForm, compact
from agents_tools.wire.decode import decoder
from agents_tools.wire.project import PROVIDERS, project
from tests.wire.tools import tool

FORMS = [
    FULL_JSON_SCHEMA,
    CompactForm(inline_refs=True),
    CompactForm(bare_literals=False, null_literals=False, inline_refs=True, keywords=frozenset()),
    CompactForm(type_arrays=False, bare_literals=False, null_literals=False),
]


@dataclass(frozen=True)
class Sample:
    """One value in the forms it takes.

    Attributes:
        natural: As the tool's own schema has it.
        short: With null left out where leaving out means null.
        strict: As a model has to write it in strict mode.
        back: What decoding has to make of that.
    """

    natural: Any
    short: Any
    strict: Any
    back: Any


def same(value: Any) -> Sample:
    """Make a sample that looks the same in every form."""
    return Sample(value, value, value, value)


Case = tuple[Any, st.SearchStrategy[Sample]]
"""An annotation, and the values it takes."""

_numbers = itertools.count()
_texts = st.sampled_from(["", "a", "null", "é", "1", '"'])

leaves: st.SearchStrategy[Case] = st.sampled_from(
    [
        (str, _texts.map(same)),
        (int, st.integers(-3, 10**20).map(same)),
        (float, st.sampled_from([0.0, 0.5, -1e30]).map(same)),
        (bool, st.booleans().map(same)),
        (Literal["a", "b"], st.sampled_from(["a", "b"]).map(same)),
        (Literal[1], st.just(1).map(same)),
        (Union[int, str], (st.integers() | _texts).map(same)),
    ]
)


def optional(case: Case) -> Case:
    """Let `None` in."""
    annotation, samples = case
    return Optional[annotation], samples | st.just(same(None))


def listed(case: Case) -> Case:
    """Make a list of it."""
    annotation, samples = case

    def together(items: list[Sample]) -> Sample:
        return Sample(
            [i.natural for i in items],
            [i.short for i in items],
            [i.strict for i in items],
            [i.back for i in items],
        )

    return list[annotation], st.lists(samples, max_size=2).map(together)


@dataclass(frozen=True)
class FieldCase:
    """A field of a made-up model; `default` is missing where it is required."""

    case: Case
    default: tuple[Any, ...] = ()

    @property
    def nullable(self) -> bool:
        """Whether `None` is a value of its own."""
        return type(None) in getattr(self.case[0], "__args__", ())


MISSING = Sample(..., ..., None, ...)
"""An optional field that is left out: strict mode says null, and decoding leaves it out again."""

LEFT_OUT_FOR_NONE = Sample(..., ..., None, None)
"""The same where `None` is the default and a value of its own: decoding need not tell them apart."""


def given_as_null() -> Sample:
    """`None` given where it is the default too: the short form leaves it out."""
    return Sample(None, ..., None, None)


def field_samples(field: FieldCase) -> st.SearchStrategy[Sample]:
    """Give what a model may hold in one field, `...` standing for a key left out."""
    samples = field.case[1]
    if not field.default:
        return samples
    if not field.nullable:
        return samples | st.just(MISSING)
    # Null means null here; left out and null are one, as the default is `None`.
    return samples.map(lambda s: given_as_null() if s.natural is None else s) | st.just(
        LEFT_OUT_FOR_NONE
    )


@st.composite
def fields(draw: st.DrawFn, inner: st.SearchStrategy[Case]) -> FieldCase:
    """Make up a field."""
    case = draw(inner)
    kind = draw(st.sampled_from(["required", "optional", "none"]))
    if kind == "required":
        return FieldCase(case)
    if kind == "none":
        return FieldCase(case if FieldCase(case).nullable else optional(case), (None,))
    if FieldCase(case).nullable:
        return FieldCase(case, (None,))
    return FieldCase(case, (draw(case[1]).natural,) if draw(st.booleans()) else (..., "factory"))


@st.composite
def models(draw: st.DrawFn, inner: st.SearchStrategy[Case], tag: str | None = None) -> Case:
    """Make up a model, perhaps with a tag by which a union knows it."""
    made = draw(st.lists(fields(inner), min_size=1, max_size=4))
    named = {f"field_{number}": field for number, field in enumerate(made)}
    declared: dict[str, Any] = {}
    for name, field in named.items():
        annotation = field.case[0]
        if not field.default:
            declared[name] = (annotation, ...)
        elif field.default[0] is ...:
            from pydantic import Field

            declared[name] = (annotation, Field(default_factory=lambda: "hidden"))
        else:
            declared[name] = (annotation, field.default[0])
    if tag is not None:
        declared["kind"] = (Literal[tag], ...)
    model = create_model(f"Model{next(_numbers)}", **declared)

    def whole(values: dict[str, Sample]) -> Sample:
        forms = [
            {name: getattr(s, form) for name, s in values.items() if getattr(s, form) is not ...}
            | ({"kind": tag} if tag is not None else {})
            for form in ("natural", "short", "strict", "back")
        ]
        return Sample(*forms)

    samples = st.fixed_dictionaries({name: field_samples(f) for name, f in named.items()})
    return model, samples.map(whole)


@st.composite
def unions(draw: st.DrawFn, inner: st.SearchStrategy[Case]) -> Case:
    """Make up a union of two tagged models."""
    one, other = draw(models(inner, "one")), draw(models(inner, "other"))
    return Union[one[0], other[0]], one[1] | other[1]


cases: st.SearchStrategy[Case] = st.recursive(
    leaves,
    lambda inner: inner.map(optional) | inner.map(listed) | models(inner) | unions(inner),
    max_leaves=6,
)


@st.composite
def models_with_a_sample(draw: st.DrawFn) -> tuple[type[BaseModel], Sample]:
    """Make up what a tool takes, and one set of arguments for it."""
    model, samples = draw(models(cases))
    return model, draw(samples)


def fits(schema: dict[str, Any], value: Any) -> bool:
    """Ask an independent validator."""
    return jsonschema_rs.validator_for(schema).is_valid(value)


@given(models_with_a_sample())
def test_arguments_survive_the_way_into_strict_mode_and_back(
    made: tuple[type[BaseModel], Sample],
) -> None:
    """What the model could say naturally it can say strictly, and the tool sees no difference."""
    model, sample = made
    natural = model.model_json_schema()
    strict, nulls = to_strict(natural, OPENAI_STRICT)
    assert fits(natural, sample.natural)
    assert fits(strict, sample.strict)
    back = json.loads(decoder(natural, nulls=nulls)(json.dumps(sample.strict)))
    assert back == sample.back
    assert fits(natural, back)
    read = TypeAdapter(model)
    assert read.validate_python(back) == read.validate_python(sample.natural)


@given(models_with_a_sample())
def test_strict_conversion_has_an_end(made: tuple[type[BaseModel], Sample]) -> None:
    """Converting what is strict already changes nothing, and introduces no null."""
    once = ensure_strict_json_schema(made[0].model_json_schema())
    assert to_strict(once, OPENAI_STRICT) == (once, False)


@given(models_with_a_sample())
def test_the_dialect_of_anthropic_takes_the_arguments_as_they_are(
    made: tuple[type[BaseModel], Sample],
) -> None:
    """Nothing is introduced there, so nothing has to be taken back."""
    model, sample = made
    strict, nulls = to_strict(model.model_json_schema(), ANTHROPIC_STRICT)
    assert not nulls
    assert fits(strict, sample.natural)


@pytest.mark.parametrize("form", FORMS)
@given(made=models_with_a_sample())
def test_a_shorter_schema_takes_the_same_arguments(
    form: CompactForm, made: tuple[type[BaseModel], Sample]
) -> None:
    """Fewer tokens must not cost a single set of arguments."""
    model, sample = made
    natural = model.model_json_schema()
    short = compact(natural, form)
    assert fits(short, sample.short)
    assert compact(short, form) == short


JUNK: list[Any] = [None, True, 0, 1.5, "a", "z", [], [None], {}, {"kind": "one"}]


def spoiled(data: st.DataObject, value: Any) -> Any:
    """Change something somewhere in a value."""
    if not value or not isinstance(value, (dict, list)) or data.draw(st.integers(0, 3)) == 0:
        return data.draw(st.sampled_from(JUNK))
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [spoiled(data, items[0]), *items[1:]]
    whole = cast("dict[str, Any]", value)
    name = data.draw(st.sampled_from(sorted(whole)))
    rest = {key: item for key, item in whole.items() if key != name}
    return rest if data.draw(st.booleans()) else {**rest, name: spoiled(data, whole[name])}


@pytest.mark.parametrize("form", [FORMS[0], FORMS[1], FORMS[3]])
@given(made=models_with_a_sample(), data=st.data())
def test_a_shorter_schema_takes_no_arguments_but_the_same(
    form: CompactForm, made: tuple[type[BaseModel], Sample], data: st.DataObject
) -> None:
    """What the model was told is accepted must be accepted."""
    natural = made[0].model_json_schema()
    value = spoiled(data, made[1].short)
    if fits(compact(natural, form), value):
        assert fits(natural, value)


KEYWORDS = [
    *["type", "properties", "required", "items", "prefixItems", "additionalProperties", "$ref"],
    *["anyOf", "oneOf", "allOf", "enum", "const", "default", "title", "description", "$defs"],
    *["minItems", "pattern", "format", "not", "if", "patternProperties", "discriminator"],
]
WORDS = ["object", "array", "string", "null", "a", "#", "#/$defs/a", "#/properties/a", "(?=", "b"]

nonsense: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, False, 0, 2, -1.5, *WORDS]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    ),
    max_leaves=12,
)


@given(
    schema=st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={keyword: nonsense for keyword in KEYWORDS if keyword != "type"},
    )
)
@example(schema={"type": "object", "properties": [[]], "anyOf": None})
@example(schema={"type": "object", "properties": None})
def test_nonsense_is_exported_or_refused_but_never_breaks(schema: dict[str, Any]) -> None:
    """Schemas come from servers written by others; a bad one must cost its own tool only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StrictFallbackWarning)
        for provider in PROVIDERS:
            try:
                projection = project(tool("odd", schema), provider, True, inline_refs=True)
                project(tool("odd", schema), provider, True)
            except UserError:
                continue
            projection.decode('{"a": null}')


@pytest.mark.parametrize("provider", PROVIDERS)
@given(made=models_with_a_sample())
def test_every_provider_can_be_told_of_every_tool(
    provider: str, made: tuple[type[BaseModel], Sample]
) -> None:
    """No tool that pydantic can describe may fail at export."""
    projection = project(tool("made_up", made[0].model_json_schema()), provider)
    assert json.loads(json.dumps(projection.wire)) == projection.wire


@given(
    st.lists(models(leaves), min_size=2, max_size=2).flatmap(
        lambda pair: st.tuples(st.just(pair), pair[0][1] | pair[1][1])
    )
)
def test_unions_without_a_tag_decode_to_something_the_tool_takes(
    made: tuple[list[Case], Sample],
) -> None:
    """Two models may both fit; whichever is believed, the arguments must be good for the tool."""
    (one, other), sample = made
    annotation: Any = Union[one[0], other[0]]
    natural = create_model("Args", x=(annotation, ...)).model_json_schema()
    strict, nulls = to_strict(natural, OPENAI_STRICT)
    sent = {"x": sample.strict}
    assert fits(strict, sent)
    assert fits(natural, json.loads(decoder(natural, nulls=nulls)(json.dumps(sent))))
