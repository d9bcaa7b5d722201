"""Test the conversion of return values for the model: text, JSON or content blocks."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import io
import itertools
import json
import math
import pathlib
import re
import subprocess
import sys
import threading
import types
import typing
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    SecretStr,
    TypeAdapter,
    field_serializer,
    model_serializer,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass

from agents_tools import register_secret
from agents_tools.content import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
    UnserializableOutput,
    to_output,
)
from agents_tools.content.json_value import to_json
from agents_tools.content.outputs import block_from_dict, truncate_output
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.text import forget_secret

VIEW: Any = types.MappingProxyType({"b": 1})
PNG = b"\x89PNG\r\n\x1a\n\x00"


class User(BaseModel):
    """A model with features that serializers treat differently: an alias, a date, a float."""

    name: str
    born: dt.date | None = None
    score: float = Field(default=1.0, alias="theScore")


class Loose(BaseModel):
    """A model that accepts any value."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    anything: Any = None


class Constants(BaseModel):
    """A model whose own configuration writes NaN, which is not JSON."""

    model_config = ConfigDict(ser_json_inf_nan="constants")

    value: float = math.nan
    text: str = "NaN"


class Failing(BaseModel):
    """A model that cannot be serialized."""

    value: int = 1

    @field_serializer("value")
    def fail(self, value: int) -> int:
        """Fail."""
        raise KeyError(value)


class Growing(BaseModel):
    """A model whose serialized form is again a model, endlessly."""

    value: Any = None

    @model_serializer
    def grow(self) -> Any:
        """Return another one."""
        return types.MappingProxyType({"more": Growing()})


@dataclasses.dataclass
class Point:
    """A plain dataclass."""

    x: Any
    y: int = 2


@pydantic_dataclass
class Checked:
    """A dataclass with a pydantic serializer."""

    x: Any


class Colour(enum.Enum):
    """An enumeration of strings that is not a string itself."""

    RED = "red"


class Level(enum.StrEnum):
    """An enumeration of strings."""

    LOW = "low"


class Pair(typing.NamedTuple):
    """A named tuple."""

    a: int
    b: int


class NoRepr:
    """A class whose repr fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Described:
    """A stand-in for a class of `attrs`."""

    __attrs_attrs__ = (types.SimpleNamespace(name="a"),)

    def __init__(self) -> None:
        self.a = b"\xff"


class Struct:
    """A stand-in for a class of `msgspec`."""

    __struct_fields__ = ("a",)

    def __init__(self) -> None:
        self.a = 1


def nested(depth: int) -> list[Any]:
    """Return nested lists."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def cyclic() -> dict[str, Any]:
    """Return a dict that contains itself."""
    value: dict[str, Any] = {"a": [1]}
    value["a"].append(value)
    return value


async def coroutine() -> str:
    """Return a coroutine when called without `await`."""
    return "never"


async def stream() -> AsyncIterator[str]:
    """Return an asynchronous generator."""
    yield "never"


WRITTEN: dict[str, tuple[Callable[[], Any], str]] = {
    "text": (lambda: "a\x1b\ud800", "a\x1b\ud800"),
    "subclass of str": (lambda: Level.LOW, "low"),
    "nothing": (lambda: None, ""),
    "true": (lambda: True, "true"),
    "integer": (lambda: 12, "12"),
    "huge integer": (lambda: 10**5000, "1" + "0" * 5000),
    "float": (lambda: 1.5, "1.5"),
    "NaN": (lambda: math.nan, "null"),
    "infinity inside": (lambda: {"a": [math.inf, -math.inf]}, '{"a":[null,null]}'),
    "model": (lambda: User(name="é", theScore=2), '{"name":"é","born":null,"theScore":2.0}'),
    "NaN in a model": (
        lambda: User(name="a", theScore=math.nan),
        '{"name":"a","born":null,"theScore":null}',
    ),
    "NaN allowed by a model": (lambda: [Constants(), "NaN"], '[{"value":null,"text":"NaN"},"NaN"]'),
    "models": (lambda: [Loose(anything=1), Loose()], '[{"anything":1},{"anything":null}]'),
    "root model": (lambda: RootModel[list[int]]([1]), "[1]"),
    "dataclass": (lambda: Point(1), '{"x":1,"y":2}'),
    "named tuple": (lambda: Pair(1, 2), "[1,2]"),
    "dict": (lambda: {"b": 1, "a": {"c": None}}, '{"b":1,"a":{"c":null}}'),
    "odd keys": (lambda: {1: 1, None: 2, (1, 2): 4}, '{"1":1,"None":2,"1,2":4}'),
    "list": (lambda: [1, "a", [2]], '[1,"a",[2]]'),
    "empty list": (list, "[]"),
    "set": (lambda: {1}, "[1]"),
    "date": (lambda: dt.date(2026, 1, 2), '"2026-01-02"'),
    "date and time": (lambda: dt.datetime(2026, 1, 2, tzinfo=dt.UTC), '"2026-01-02T00:00:00Z"'),
    "decimal": (lambda: decimal.Decimal("1.10"), '"1.10"'),
    "UUID": (lambda: uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    "path": (lambda: pathlib.PurePosixPath("/a"), '"/a"'),
    "path that is no UTF-8": (lambda: {"a": pathlib.PurePosixPath("/\udcff")}, '{"a":"/�"}'),
    "enumeration": (lambda: [Colour.RED, Level.LOW], '["red","low"]'),
    "secret": (lambda: {"key": SecretStr("tulip")}, '{"key":"**********"}'),
    "lone surrogate inside": (lambda: ["a\ud800", 1], '["a�",1]'),
    "lone surrogate as a key": (lambda: {"\udfff": 1}, '{"�":1}'),
    "bytes inside": (lambda: {"a": b"text", "b": b"\xff\x00"}, '{"a":"text","b":"/wA="}'),
    "views": (lambda: [memoryview(b"ab"), bytearray(b"\xff")], '["ab","/w=="]'),
    "bytes as a key": (lambda: {b"\xff": 1}, '{"/w==":1}'),
    "generator": (lambda: (n for n in range(3)), "[0,1,2]"),
    "generator inside": (lambda: {"rows": (n for n in "ab")}, '{"rows":["a","b"]}'),
    "generators, deeper": (
        lambda: {"a": [{"b": iter("xy")}], "c": zip("a", "b", strict=True)},
        '{"a":[{"b":["x","y"]}],"c":[["a","b"]]}',
    ),
    "generator next to bytes": (lambda: [iter([1]), b"\xff"], '[[1],"/w=="]'),
    "range": (lambda: range(2), "[0,1]"),
    "dict views": (
        lambda: [{"a": 1}.keys(), {"a": 1}.values(), {"a": 1}.items()],
        '[["a"],[1],[["a",1]]]',
    ),
    "read-only dict": (lambda: types.MappingProxyType({"a": 1}), '{"a":1}'),
    "user dict": (lambda: collections.UserDict(a=1), '{"a":1}'),
    "deque and array": (lambda: [collections.deque([1]), array.array("i", [2])], "[[1],[2]]"),
    "namespace": (lambda: types.SimpleNamespace(a=1), '{"a":1}'),
    "attrs": (Described, '{"a":"/w=="}'),
    "msgspec": (Struct, '{"a":1}'),
    "odd values in a model": (
        lambda: Loose(anything=types.MappingProxyType({"a": b"\xff", "n": math.nan})),
        '{"anything":{"a":"/w==","n":null}}',
    ),
    "odd values in dataclasses": (
        lambda: [Point(b"\xff"), Checked(range(2))],
        '[{"x":"/w==","y":2},{"x":[0,1]}]',
    ),
    "complex": (lambda: 1j, '"1j"'),
    "pattern": (lambda: re.compile("a+"), '"a+"'),
    "two looks at one value": (lambda: [[b"\xff"]] * 2, '[["/w=="],["/w=="]]'),
    "structured result": (lambda: ToolResult(structured={"a": 1}), '{"a":1}'),
    "content of a result": (lambda: ToolResult(content="seen", structured={"a": 1}), "seen"),
    "empty content": (lambda: ToolResult(content="", structured={"a": 1}), ""),
    "empty result": (ToolResult, ""),
}


@pytest.mark.requirement("F20")
@pytest.mark.parametrize("name", WRITTEN)
def test_a_value_becomes_compact_json(name: str) -> None:
    """A model can read JSON but not a Python repr, and a failure costs a turn."""
    make, expected = WRITTEN[name]

    assert to_output(make()) == expected


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "cycle": (cyclic, "The result contains itself at a[1]. Return it without the cycle."),
    "depth": (
        lambda: nested(5_000),
        "The result is nested more than 100 levels deep. Return a flatter value.",
    ),
    "endless depth": (
        Growing,
        "The result is nested more than 100 levels deep. Return a flatter value.",
    ),
    "coroutine": (
        coroutine,
        "The result is a coroutine, which has no JSON form. Await it before returning.",
    ),
    "coroutine inside": (
        lambda: {"rows": [1, {"user name": coroutine()}]},
        'The result contains a coroutine at rows[1]["user name"], which has no JSON form. Await it before returning.',
    ),
    "asynchronous generator": (
        stream,
        "The result is an async_generator, which has no JSON form. Collect its items in a list, or write the tool with @streaming_tool.",
    ),
    "lock": (
        threading.Lock,
        "The result is a _thread.lock, which has no JSON form. Return text, a number, a list, a dict, a dataclass or a pydantic model.",
    ),
    "lock in a model": (
        lambda: [Loose(anything={"a": threading.Lock()})],
        "The result contains a _thread.lock at [0].anything.a, which has no JSON form. Return text, a number, a list, a dict, a dataclass or a pydantic model.",
    ),
    "broken repr": (
        NoRepr,
        "The result is a test_outputs.NoRepr, which has no JSON form. Return text, a number, a list, a dict, a dataclass or a pydantic model.",
    ),
    "class": (
        lambda: User,
        "The result is a class, which has no JSON form. Return an instance of it, or its name.",
    ),
    "function": (
        lambda: len,
        "The result is a builtin_function_or_method, which has no JSON form. Call it before returning.",
    ),
    "exception": (
        lambda: ValueError("a"),
        "The result is a ValueError, which has no JSON form. Raise it instead of returning it.",
    ),
    "file": (
        io.StringIO,
        "The result is a _io.StringIO, which has no JSON form. Return its content.",
    ),
    "file inside": (
        lambda: {"f": io.BytesIO()},
        "The result contains a _io.BytesIO at f, which has no JSON form. Return its content.",
    ),
    "object as a key": (
        lambda: {"a": {object(): 1}},
        "The result contains an object as a key at a[<object>], which has no JSON form. Return text, a number, a list, a dict, a dataclass or a pydantic model.",
    ),
    "failing serializer": (
        lambda: {"m": Failing()},
        "The result cannot be serialized at m: Error calling function `fail`: KeyError: 1. Fix its serializer.",
    ),
    "endless": (
        itertools.count,
        "The result has more than 100,000 items. Return a shorter list, or write the tool with @streaming_tool and yield events.",
    ),
    "endless inside": (
        lambda: {"rows": itertools.repeat("a")},
        "The result at rows has more than 100,000 items. Return a shorter list, or write the tool with @streaming_tool and yield events.",
    ),
    "endless range": (
        lambda: range(10**12),
        "The result has more than 100,000 items. Return a shorter list, or write the tool with @streaming_tool and yield events.",
    ),
    "used up": (
        lambda: [[[[[iter([1])]]]], b"\xff"],
        "The result cannot be serialized at [0][0][0][0][0]: a list_iterator can be read only once. Return a list instead.",
    ),
}


@pytest.mark.requirement("F20")
@pytest.mark.parametrize("name", REFUSED)
def test_a_value_without_a_json_form_is_refused_with_its_location_and_a_remedy(name: str) -> None:
    """The author of the tool and the calling model read the error."""
    make, message = REFUSED[name]

    with pytest.raises(UnserializableOutput) as caught:
        to_output(make())

    assert str(caught.value).replace(f"{__name__}.", "test_outputs.") == message
    assert isinstance(caught.value, UserTypeError)
    assert isinstance(caught.value, TypeError)


def test_a_refusal_has_the_location_as_an_attribute() -> None:
    """An application can use it to log or repair the value."""
    with pytest.raises(UnserializableOutput) as caught:
        to_output({"rows": [{"a": threading.Lock()}]})

    assert caught.value.path == "rows[0].a"


@pytest.mark.requirement("S20")
def test_a_refusal_shows_no_secret() -> None:
    """The path in the error goes to the model, and keys of a dict can be secrets."""
    register_secret("violet-tulip")
    try:
        with pytest.raises(UnserializableOutput, match=r"at \[\"\*\*\*\"\]\.a,") as caught:
            to_output({"violet-tulip": {"a": object()}})
    finally:
        forget_secret("violet-tulip")

    assert "tulip" not in str(caught.value)


def test_an_exception_inside_a_returned_generator_keeps_its_type() -> None:
    """The body of a generator is code of the tool."""

    def rows() -> Iterator[int]:
        yield 1
        raise LookupError("row 2")

    with pytest.raises(LookupError, match="row 2"):
        to_output(rows())


@pytest.mark.requirement("F18")
def test_an_endless_generator_is_closed() -> None:
    """Its resources are released at once and not by garbage collection."""
    closed: list[bool] = []

    def rows() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed.append(True)

    generator = rows()
    with pytest.raises(UnserializableOutput, match="100,000 items"):
        to_output(generator)
    assert closed == [True]


def test_plain_text_loads_no_serializer_and_is_unchanged() -> None:
    """Most tools return text, and their programs need no serializer."""
    code = (
        "import sys; from agents_tools.content import to_output; text = 'a\\x1b';"
        "assert to_output(text) is text; assert to_output(None) == '';"
        "print([n for n in ('pydantic', 'pydantic_core', 'asyncio', 'json') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout == "[]\n"


def test_importing_outputs_connects_text_and_secrets() -> None:
    """One module quotes values in messages, another masks secrets."""
    code = (
        "import agents_tools.content.outputs; from agents_tools.text.escape import describe_value;"
        "from agents_tools.text.secrets import register_secret; register_secret('violet-tulip');"
        "print(describe_value(['violet-tulip']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603

    assert done.stdout == '["***"]\n'


class Writer:
    """Counts the calls of a prebuilt serializer."""

    def __init__(self, kind: Any) -> None:
        self.calls = 0
        self._serializer = TypeAdapter(kind).serializer

    def to_json(self, *args: Any, **kwargs: Any) -> bytes:
        """Serialize a value."""
        self.calls += 1
        return self._serializer.to_json(*args, **kwargs)


class Admin(User):
    """A user with more fields than the annotation."""

    token: str = "tulip"  # noqa: S105 - made up


def test_a_return_annotation_determines_the_output() -> None:
    """The output matches the published output schema, including aliases."""
    writer: Any = Writer(list[User])

    assert to_output([Admin(name="a", theScore=2)], writer) == (
        '[{"name":"a","born":null,"theScore":2.0}]'
    )
    assert to_output((User(name="b") for _ in range(1)), writer) == (
        '[{"name":"b","born":null,"theScore":1.0}]'
    )
    assert writer.calls == 2


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, "text", "text"),
        (int, {"a": 1}, '{"a":1}'),
        (list[int], [b"\xff"], '["/w=="]'),
        (User, {"name": "a"}, '{"name":"a"}'),
        (dict[str, float], {"a": math.nan}, '{"a":null}'),
        (Constants, Constants(), '{"value":null,"text":"NaN"}'),
        (str, None, ""),
        (dict[str, Any], {"a": VIEW}, '{"a":{"b":1}}'),
        (dict[str, Any], {"rows": iter([1])}, '{"rows":[1]}'),
        (ToolOutputText, ToolOutputText("a"), [ToolOutputText("a")]),
        (bytes, b"\xff", [ToolOutputFileContent(data=b"\xff")]),
        (dict[str, int], ToolResult(structured={"a": 1}), '{"a":1}'),
    ],
)
def test_a_value_that_does_not_match_its_annotation_is_still_written(
    kind: Any, value: Any, expected: Any
) -> None:
    """A result that violates the annotation is better sent than lost."""
    assert to_output(value, TypeAdapter(kind).serializer) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def loose(value: object) -> Loose:
    """Return a model that contains any value."""
    return Loose(anything=value)


odd_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.binary(max_size=8),
        st.text(st.characters(categories=["Cs", "L"]), max_size=4),
        st.floats(),
        st.dates(),
        st.builds(Point, st.binary(max_size=3)),
        st.builds(object),
        st.builds(iter, st.lists(st.integers(), max_size=3)),
        st.just(int),
        st.builds(NoRepr),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        inner.map(loose),
        st.builds(types.MappingProxyType, st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    ),
    max_leaves=8,
)


def without_nan(value: Any) -> Any:
    """Replace numbers that JSON cannot represent."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [without_nan(item) for item in typing.cast("list[Any]", value)]
    if isinstance(value, dict):
        return {
            key: without_nan(item) for key, item in typing.cast("dict[str, Any]", value).items()
        }
    return value


@given(json_values)
def test_a_json_value_round_trips(value: Any) -> None:
    """No JSON value may be changed by the conversion."""
    assert json.loads(to_json(value)) == without_nan(value)


def no_constant(name: str) -> None:
    """Fail on numbers that only the reader of Python accepts."""
    raise AssertionError(name)


@pytest.mark.requirement("F20")
@given(odd_values)
def test_any_return_value_becomes_valid_json_or_a_clear_refusal(value: Any) -> None:
    """No return value may end a run or make the request to the model invalid."""
    try:
        text = to_json(value)
    except UnserializableOutput as error:
        text = json.dumps({"message": str(error)})
    text.encode()
    json.loads(text, parse_constant=no_constant)


@pytest.mark.parametrize(
    ("data", "block"),
    [
        (PNG, ToolOutputImage(data=PNG, mime_type="image/png")),
        (b"\xff\xd8\xff\xe0", ToolOutputImage(data=b"\xff\xd8\xff\xe0", mime_type="image/jpeg")),
        (b"GIF89a", ToolOutputImage(data=b"GIF89a", mime_type="image/gif")),
        (b"RIFF0000WEBP", ToolOutputImage(data=b"RIFF0000WEBP", mime_type="image/webp")),
        (b"RIFF0000WAVE", ToolOutputAudio(data=b"RIFF0000WAVE", mime_type="audio/wav")),
    ],
)
def test_bytes_of_an_image_or_a_sound_become_a_block_of_that_kind(
    data: bytes, block: ContentBlock
) -> None:
    """A model sees an image only if it is sent as an image."""
    assert to_output(data) == [block]
    assert to_output(["before", bytearray(data), ToolOutputText("")])[1] == block


def test_the_data_of_a_block_can_be_positional() -> None:
    """It is what every caller passes, except for addresses."""
    assert ToolOutputImage(PNG) == ToolOutputImage(data=PNG)
    assert ToolOutputFileContent(b"a", filename="a.txt").filename == "a.txt"
    with pytest.raises(UserError, match=r"expects bytes, got str.*pass an address as url="):
        ToolOutputImage(typing.cast("Any", "https://example.com/a.png"))


def test_bytes_become_a_file() -> None:
    """Bytes are not text, and base64 in a text wastes tokens."""
    for value in (b"%PDF-1.7", bytearray(b"%PDF-1.7"), memoryview(b"%PDF-1.7")):
        assert to_output(value) == [
            ToolOutputFileContent(data=b"%PDF-1.7", mime_type="application/pdf")
        ]


def test_blocks_and_lists_with_blocks_stay_blocks() -> None:
    """Images keep their place between the texts of the list."""
    image = ToolOutputImage(data=PNG)

    assert to_output(image) == [image]
    assert to_output(["before", image, Level.LOW, None, b"a", {"n": 1}, [2]]) == [
        ToolOutputText("before"),
        image,
        ToolOutputText("low"),
        ToolOutputFileContent(data=b"a", mime_type="text/plain"),
        ToolOutputText('{"n":1}'),
        ToolOutputText("[2]"),
    ]
    assert to_output((image, ToolOutputText(text="a"))) == [image, ToolOutputText("a")]
    assert to_output(iter([image])) == [image]
    assert to_output(ToolResult(content=["a", image])) == [ToolOutputText("a"), image]


def test_dicts_that_look_like_blocks_are_data() -> None:
    """A tool can return blocks of a foreign document as data."""
    block = {"type": "text", "text": "a"}

    assert to_output([block]) == '[{"type":"text","text":"a"}]'
    assert to_output({"picture": ToolOutputImage(data=PNG)}) == (
        '{"picture":{"type":"image","data":"iVBORw0KGgoA","mime_type":"image/png"}}'
    )


def test_blocks_have_a_media_type() -> None:
    """Wire formats need the type of the data."""
    data = {
        PNG: "image/png",
        b"\xff\xd8\xff\xe0": "image/jpeg",
        b"GIF89a": "image/gif",
        b"RIFF\0\0\0\0WEBPVP8 ": "image/webp",
        b"RIFF\0\0\0\0WAVEfmt ": "audio/wav",
        b"ID3\x04": "audio/mpeg",
        "text é".encode(): "text/plain",
        b"a\0b": "application/octet-stream",
        b"\xff\x00": "application/octet-stream",
    }
    for start, mime_type in data.items():
        assert ToolOutputFileContent(data=start).mime_type == mime_type
    assert ToolOutputFileContent(data=PNG, mime_type="a/b").mime_type == "a/b"
    assert ToolOutputImage(url="https://host/a.png").mime_type is None


def test_the_repr_of_a_block_omits_its_data() -> None:
    """Logs and assertion errors must not print megabytes."""
    assert repr(ToolOutputText("a")) == snapshot("ToolOutputText(text='a')")
    assert repr(ToolOutputImage(data=PNG * 1_000, detail="low")) == snapshot(
        "ToolOutputImage(data=<9,000 bytes>, mime_type='image/png', detail='low')"
    )


def test_blocks_are_immutable() -> None:
    """A history, a cache and an event can share a block."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        ToolOutputText("a").text = "b"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    assert len({ToolOutputImage(data=PNG), ToolOutputImage(data=bytearray(PNG))}) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            ToolOutputImage,
            "ToolOutputImage expects exactly one of data, url and file_id, got none.",
        ),
        (
            lambda: ToolOutputAudio(data=b"a", url="b"),
            "ToolOutputAudio expects exactly one of data, url and file_id, got data and url.",
        ),
        (
            lambda: ToolOutputImage(data=typing.cast("Any", "aGk=")),
            "ToolOutputImage(data=) expects bytes, got str. Decode base64 text with base64.b64decode() first; pass an address as url=.",
        ),
        (
            lambda: ToolOutputFileContent(url=typing.cast("Any", decimal.Decimal(1))),
            "ToolOutputFileContent(url=) expects a str, got decimal.Decimal.",
        ),
        (
            lambda: ToolOutputText(typing.cast("Any", 1)),
            "ToolOutputText(text=) expects a str, got int.",
        ),
    ],
)
def test_an_invalid_block_is_refused_when_it_is_created(
    make: Callable[[], ContentBlock], message: str
) -> None:
    """The author of the tool sees the line; an error of the provider would come later."""
    with pytest.raises(UserError, match=re.escape(message)):
        make()


def test_blocks_have_a_stable_json_form() -> None:
    """Later versions must read stored histories."""
    blocks: list[ContentBlock] = [
        ToolOutputText("a"),
        ToolOutputImage(data=PNG, detail="high"),
        ToolOutputImage(url="https://host/a.png"),
        ToolOutputAudio(file_id="f1", mime_type="audio/wav"),
        ToolOutputFileContent(data=b"hi", filename="a.txt"),
    ]
    assert [block.to_dict() for block in blocks] == snapshot(
        [
            {"type": "text", "text": "a"},
            {
                "type": "image",
                "data": "iVBORw0KGgoA",
                "mime_type": "image/png",
                "detail": "high",
            },
            {"type": "image", "url": "https://host/a.png"},
            {"type": "audio", "file_id": "f1", "mime_type": "audio/wav"},
            {
                "type": "file",
                "data": "aGk=",
                "filename": "a.txt",
                "mime_type": "text/plain",
            },
        ]
    )


sources: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"data": st.binary(max_size=20)}),
    st.fixed_dictionaries({"url": st.text()}),
    st.fixed_dictionaries({"file_id": st.text()}),
)
names: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {}, optional={"mime_type": st.text()}
)
blocks: st.SearchStrategy[ContentBlock] = st.one_of(
    st.builds(ToolOutputText, st.text()),
    st.tuples(sources, names, st.sampled_from(["auto", "low", "high", None])).map(
        lambda drawn: ToolOutputImage(**drawn[0], **drawn[1], detail=drawn[2])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ),
    st.tuples(sources, names).map(lambda drawn: ToolOutputAudio(**drawn[0], **drawn[1])),
    st.tuples(sources, names, st.text() | st.none()).map(
        lambda drawn: ToolOutputFileContent(**drawn[0], **drawn[1], filename=drawn[2])
    ),
)


@given(blocks)
def test_a_block_round_trips_through_json(block: ContentBlock) -> None:
    """A run that resumes in another process shows the model the same history."""
    assert block_from_dict(json.loads(json.dumps(block.to_dict()))) == block


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"type": "video", "url": "a"},
            'Content block type is unknown: expected one of text, image, audio, file, got "video".',
        ),
        (
            {"text": "a"},
            "Content block type is unknown: expected one of text, image, audio, file, got null",
        ),
        (
            {"type": "text", "text": "a", "size": 1},
            'A content block of type text has no field "size".',
        ),
        ({"type": "text"}, "A content block of type text is invalid"),
        ({"type": "text", "text": 1}, "A content block of type text is invalid"),
        ({"type": "image"}, "A content block of type image is invalid"),
        ({"type": "file", "data": "a*b"}, "A content block of type file is invalid"),
    ],
)
def test_json_that_is_not_a_block_is_refused(data: dict[str, Any], message: str) -> None:
    """Stored data can come from another version or another program."""
    with pytest.raises(UserValueError, match=re.escape(message)):
        block_from_dict(data)


@pytest.mark.requirement("S29")
@given(st.text(), st.integers(min_value=0, max_value=400), st.integers(min_value=1, max_value=80))
def test_a_shortened_text_fits_and_the_rest_completes_it(text: str, limit: int, times: int) -> None:
    """The limit protects the budget of the model; the user gets the rest."""
    whole = text * times
    output, rest = truncate_output(whole, limit)
    assert isinstance(output, str)

    assert len(output) <= limit
    assert (rest is None) == (len(whole) <= limit)
    if rest is None:
        assert output == whole
    else:
        head, note, tail = output.partition(
            f"\n[… {len(rest):,} of {len(whole):,} characters omitted …]\n"
        )
        assert head + rest + tail == whole
        assert note or limit < 80


def test_a_shortened_text_has_its_start_and_end() -> None:
    """The start of an output shows its kind, the end its outcome."""
    output, rest = truncate_output("start" + "x" * 1_000_000 + "end", 120)

    assert output == snapshot("""\
startxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
[… 999,937 of 1,000,008 characters omitted …]
xxxxxxxxxxxxxxxxxxxxend\
""")
    assert rest is not None
    assert len(rest) > 999_000


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=60,
)


@given(st.lists(VALUES, min_size=1, max_size=60), st.integers(min_value=300, max_value=3_000))
def test_shortened_json_fits_and_stays_json(value: list[Any], limit: int) -> None:
    """A model and a program can read it; the user gets the whole text."""
    whole = json.dumps(value, ensure_ascii=False)
    output, rest = truncate_output(whole, limit)
    assert isinstance(output, str)

    assert len(output) <= limit
    if rest is None:
        assert output == whole
    elif rest == whole:  # else it has too many levels to fit
        assert isinstance(json.loads(output), list)


def test_shortened_json_counts_what_is_left_out() -> None:
    value = [{"id": number, "tags": list("abcdefgh")} for number in range(99)]
    output, rest = truncate_output(json.dumps(value), 300)
    assert rest == json.dumps(value)
    assert output == snapshot(
        '[{"id":0,"tags":["a","b","c","… 4 of 8 items omitted …","h"]},{"id":1,"tags":["a","b","c","… 4 of 8 items omitted …","h"]},{"id":2,"tags":["a","b","c","… 4 of 8 items omitted …","h"]},"… 95 of 99 items omitted …",{"id":98,"tags":["a","b","c","… 4 of 8 items omitted …","h"]}]'
    )


def test_a_number_that_no_float_can_hold_is_kept() -> None:
    """Python would write it as `Infinity`, which is not JSON."""
    text = json.dumps(["x" * 2_000]).replace("[", "[1e999, ")
    output, _ = truncate_output(text, 300)
    assert isinstance(output, str)
    assert output.startswith('[1e999, "xxx')
    assert "Infinity" not in output


def test_a_text_within_the_limit_is_not_copied() -> None:
    """Every result passes this code."""
    text = "a" * 100
    blocks: list[ContentBlock] = [ToolOutputText(text)]

    assert truncate_output(text, 100) == (text, None)
    assert truncate_output(blocks, 100)[0] is blocks


def test_texts_in_blocks_are_shortened_and_counted() -> None:
    """One long block must not remove the image after it."""
    image = ToolOutputImage(data=PNG)
    blocks: list[ContentBlock] = [
        ToolOutputText("first"),
        ToolOutputText("x" * 500),
        image,
        ToolOutputText("gone"),
        ToolOutputText("too"),
    ]
    output, rest = truncate_output(blocks, 200)
    assert isinstance(output, list)

    texts = [block.text for block in output if isinstance(block, ToolOutputText)]
    assert sum(map(len, texts)) <= 200
    assert image in output
    assert texts[0] == "first"
    assert texts[-1] == "[… 2 more texts omitted …]"
    assert rest is not None
    assert rest.endswith("x\n\ngone\n\ntoo")


@given(st.lists(st.text(max_size=200), max_size=6), st.integers(min_value=0, max_value=300))
def test_shortened_blocks_fit_the_limit(texts: list[str], limit: int) -> None:
    """The limit applies to any number of blocks."""
    blocks: list[ContentBlock] = [ToolOutputText(text) for text in texts]
    output, rest = truncate_output(blocks, limit)

    size = sum(len(block.text) for block in output if isinstance(block, ToolOutputText))
    assert size <= limit
    assert (rest is None) == (sum(map(len, texts)) <= limit)


def test_a_hundred_models_are_serialized_in_one_call() -> None:
    """One call for the list keeps the speed of the serializer (see the performance notes)."""
    writer: Any = Writer(list[User])
    users = [User(name=f"n{index}") for index in range(100)]

    output = to_output(users, writer)

    assert isinstance(output, str)
    assert writer.calls == 1
    assert output.encode() == TypeAdapter(list[User]).serializer.to_json(users, by_alias=True)
