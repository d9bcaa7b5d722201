"""Property tests for all schemas: generated models, their values, export and decoding."""

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
    """One value in its different forms.

    Attributes:
        natural: In the form of the tool's own schema.
        short: Without each null that equals leaving out the key.
        strict: As a model writes it in strict mode.
        back: The result of decoding the strict form.
    """

    natural: Any
    short: Any
    strict: Any
    back: Any


def same(value: Any) -> Sample:
    """Return a sample that is the same in every form."""
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
    """Also allow `None`."""
    annotation, samples = case
    return Optional[annotation], samples | st.just(same(None))


def listed(case: Case) -> Case:
    """Return a case for lists of the case."""
    annotation, samples = case

    def merge(items: list[Sample]) -> Sample:
        return Sample(
            [i.natural for i in items],
            [i.short for i in items],
            [i.strict for i in items],
            [i.back for i in items],
        )

    return list[annotation], st.lists(samples, max_size=2).map(merge)


@dataclass(frozen=True)
class FieldCase:
    """A field of a generated model; `default` is missing where it is required."""

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


def null_as_default() -> Sample:
    """Return a sample for a `None` that is also the default: the short form omits it."""
    return Sample(None, ..., None, None)


def field_samples(field: FieldCase) -> st.SearchStrategy[Sample]:
    """Return samples for one field; `...` stands for an omitted key."""
    samples = field.case[1]
    if not field.default:
        return samples
    if not field.nullable:
        return samples | st.just(MISSING)
    # Null and an omitted key are equal here, because the default is `None`.
    return samples.map(lambda s: null_as_default() if s.natural is None else s) | st.just(
        LEFT_OUT_FOR_NONE
    )


@st.composite
def fields(draw: st.DrawFn, inner: st.SearchStrategy[Case]) -> FieldCase:
    """Generate a field."""
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
    """Generate a model, optionally with a tag for a union."""
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

    def merge(values: dict[str, Sample]) -> Sample:
        forms = [
            {name: getattr(s, form) for name, s in values.items() if getattr(s, form) is not ...}
            | ({"kind": tag} if tag is not None else {})
            for form in ("natural", "short", "strict", "back")
        ]
        return Sample(*forms)

    samples = st.fixed_dictionaries({name: field_samples(f) for name, f in named.items()})
    return model, samples.map(merge)


@st.composite
def unions(draw: st.DrawFn, inner: st.SearchStrategy[Case]) -> Case:
    """Generate a union of two tagged models."""
    one, other = draw(models(inner, "one")), draw(models(inner, "other"))
    return Union[one[0], other[0]], one[1] | other[1]


cases: st.SearchStrategy[Case] = st.recursive(
    leaves,
    lambda inner: inner.map(optional) | inner.map(listed) | models(inner) | unions(inner),
    max_leaves=6,
)


@st.composite
def models_with_a_sample(draw: st.DrawFn) -> tuple[type[BaseModel], Sample]:
    """Generate the parameters of a tool and one set of arguments for it."""
    model, samples = draw(models(cases))
    return model, draw(samples)


def fits(schema: dict[str, Any], value: Any) -> bool:
    """Return whether an independent validator accepts the value."""
    return jsonschema_rs.validator_for(schema).is_valid(value)


@given(models_with_a_sample())
def test_arguments_survive_strict_mode_and_decoding(
    made: tuple[type[BaseModel], Sample],
) -> None:
    """The model can express the same arguments in strict mode, and the tool sees no difference."""
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
def test_strict_conversion_is_idempotent(made: tuple[type[BaseModel], Sample]) -> None:
    """Converting a strict schema changes nothing and adds no null."""
    once = ensure_strict_json_schema(made[0].model_json_schema())
    assert to_strict(once, OPENAI_STRICT) == (once, False)


@given(models_with_a_sample())
def test_the_anthropic_dialect_accepts_unchanged_arguments(
    made: tuple[type[BaseModel], Sample],
) -> None:
    """Nothing is added there, so decoding has nothing to remove."""
    model, sample = made
    strict, nulls = to_strict(model.model_json_schema(), ANTHROPIC_STRICT)
    assert not nulls
    assert fits(strict, sample.natural)


@pytest.mark.parametrize("form", FORMS)
@given(made=models_with_a_sample())
def test_a_compact_schema_accepts_the_same_arguments(
    form: CompactForm, made: tuple[type[BaseModel], Sample]
) -> None:
    """Fewer tokens must not exclude any valid arguments."""
    model, sample = made
    natural = model.model_json_schema()
    short = compact(natural, form)
    assert fits(short, sample.short)
    assert compact(short, form) == short


JUNK: list[Any] = [None, True, 0, 1.5, "a", "z", [], [None], {}, {"kind": "one"}]


def change_one_value(data: st.DataObject, value: Any) -> Any:
    """Change a random part of a value."""
    if not value or not isinstance(value, (dict, list)) or data.draw(st.integers(0, 3)) == 0:
        return data.draw(st.sampled_from(JUNK))
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [change_one_value(data, items[0]), *items[1:]]
    merge = cast("dict[str, Any]", value)
    name = data.draw(st.sampled_from(sorted(merge)))
    rest = {key: item for key, item in merge.items() if key != name}
    return rest if data.draw(st.booleans()) else {**rest, name: change_one_value(data, merge[name])}


@pytest.mark.parametrize("form", [FORMS[0], FORMS[1], FORMS[3]])
@given(made=models_with_a_sample(), data=st.data())
def test_a_compact_schema_accepts_no_other_arguments(
    form: CompactForm, made: tuple[type[BaseModel], Sample], data: st.DataObject
) -> None:
    """Arguments that match the published schema must pass validation."""
    natural = made[0].model_json_schema()
    value = change_one_value(data, made[1].short)
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
def test_random_schemas_are_exported_or_refused_without_a_crash(schema: dict[str, Any]) -> None:
    """Schemas come from foreign servers; an invalid one must only affect its own tool."""
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
def test_every_provider_can_represent_every_tool(
    provider: str, made: tuple[type[BaseModel], Sample]
) -> None:
    """A tool that pydantic can describe must not fail at export."""
    projection = project(tool("made_up", made[0].model_json_schema()), provider)
    assert json.loads(json.dumps(projection.wire)) == projection.wire


@given(
    st.lists(models(leaves), min_size=2, max_size=2).flatmap(
        lambda pair: st.tuples(st.just(pair), pair[0][1] | pair[1][1])
    )
)
def test_untagged_unions_decode_to_valid_arguments(
    made: tuple[list[Case], Sample],
) -> None:
    """If two models match, either choice must produce arguments that the tool accepts."""
    (one, other), sample = made
    annotation: Any = Union[one[0], other[0]]
    natural = create_model("Args", x=(annotation, ...)).model_json_schema()
    strict, nulls = to_strict(natural, OPENAI_STRICT)
    sent = {"x": sample.strict}
    assert fits(strict, sent)
    assert fits(natural, json.loads(decoder(natural, nulls=nulls)(json.dumps(sent))))
