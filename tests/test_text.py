"""Test safe display of foreign text for people and models, and values quoted in messages."""

from __future__ import annotations

import enum
import json
import random
import threading
import unicodedata
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from hypothesis import given, strategies as st

from agents_tools import register_secret
from agents_tools.text import escape as _text, forget_secret
from agents_tools.text.characters import escape_for_model, safe_text
from agents_tools.text.escape import describe_value, shorten
from agents_tools.text.forms import MASK
from agents_tools.text.nouns import type_with_article, with_article
from agents_tools.text.secrets import mask
from tests.pace import at_most
from tests.scale import LARGE

HIDDEN = {
    0x061C,
    0x180E,
    0xFEFF,
    *range(0x200B, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),
}
"""Characters that a person cannot see or that turn the order of what is seen."""

ATTACKS = {
    "colours": ("\x1b[1;31mroot#\x1b[0m", "root#"),
    "screen": ("a\x1b[2J\x1b[H\x1b[?1049hb", "ab"),
    "8-bit CSI": ("a\x9b31mb", "ab"),
    "link": ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
    "link ended by bell": ("\x1b]8;;https://evil.example\x07click\x1b]8;;\x07", "click"),
    "clipboard": ("a\x1b]52;c;cm0gLXJmIC8=\x07b", "ab"),
    "title": ("\x9d0;owned\x9cb", "b"),
    "device string": ("a\x1bP+q544e\x1b\\b", "ab"),
    "application string": ("a\x1b_payload\x1b\\b", "ab"),
    "privacy message": ("a\x1b^payload\x1b\\b", "ab"),
    "start of string": ("a\x1bXpayload\x1b\\b", "ab"),
    "reset": ("a\x1bcb", "ab"),
    "character set": ("a\x1b(0b", "ab"),
    "overstrike": ("safe\b\b\b\bevil\r", "safeevil"),
    "NUL and DEL": ("a\x00b\x7fc", "abc"),
    "override": ("user\u202e\u2066nimda\u2069\u202c", "usernimda"),
    "zero width": ("pa\u200byp\u2060al\ufeff", "paypal"),
    "hidden ASCII": ("hi\U000e0069\U000e0067", "hi"),
    "cut colour": ("a\x1b[31", "a"),
    "lone escape": ("a\x1b", "a"),
    "lone surrogate": ("a\ud800b", "a\ufffdb"),
    "string that never ends": ("a\x1b]52;c;the rest\nstays", "a52;c;the rest\nstays"),
    "nested strings": ("\x1b]\x1b]0;x\x07y", "y"),
}

PIECES = [
    *(attack for attack, _ in ATTACKS.values()),
    *("\x1b", "[", "]", "\\", "\x07", "\x9c", "\x90", "P", "\n", "\t", "\r\n", "é", "m"),
    "👨\u200d👩",
]

foreign = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=12).map("".join)
visible = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]) | st.sampled_from("\n\t"))


def assert_safe(text: str) -> None:
    """Fail if a text contains anything that `safe_text` promises to remove."""
    bad = [
        char
        for char in text
        if (unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t")
        or ord(char) in HIDDEN
    ]
    assert not bad


@pytest.fixture(autouse=True)
def _masking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connect texts and secrets, as importing `agents_tools.content.outputs` does."""
    monkeypatch.setattr(_text, "mask", mask)


@pytest.fixture
def secret() -> Iterator[str]:
    """Register a secret for one test."""
    value = "correct-horse-battery"
    register_secret(value)
    yield value
    forget_secret(value)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_known_terminal_attack_is_removed_completely(name: str) -> None:
    """Remains of an escape sequence or of its payload would confuse or mislead the reader."""
    attack, expected = ATTACKS[name]

    assert safe_text(attack) == expected


@pytest.mark.requirement("S19")
@given(foreign)
def test_safe_text_removes_everything_unsafe_and_is_idempotent(text: str) -> None:
    """Every place that shows text to a person uses it, and some texts pass it twice."""
    safe = safe_text(text)

    assert_safe(safe)
    assert safe_text(safe) == safe


@pytest.mark.requirement("S19")
def test_random_strings_of_unsafe_characters_become_safe(corpus_size: int) -> None:
    """Random input finds combinations that no one thought of."""
    source = random.Random(19)  # noqa: S311 - made-up text
    unsafe = [*map(chr, range(0xA0)), *map(chr, sorted(HIDDEN)), "\ud800", "\udfff", "a", "é", "0;"]
    for _ in range(corpus_size):
        text = "".join(source.choices(unsafe, k=source.randrange(24)))
        safe = safe_text(text)
        assert_safe(safe)
        assert safe_text(safe) == safe


@given(visible)
def test_harmless_text_is_unchanged(text: str) -> None:
    """The filter must not damage languages, emoji, line ends or tabs."""
    assert safe_text(text) == text
    assert escape_for_model(text) == text


@given(foreign)
def test_text_for_the_model_is_valid_and_hides_nothing(text: str) -> None:
    """A lone surrogate breaks the request, and an invisible character can contain instructions."""
    escaped = escape_for_model(text)

    escaped.encode()
    assert_safe(escaped.replace("\r\n", "").replace("\u200d", ""))
    assert escape_for_model(escaped) == escaped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\ud800b", "a\ufffdb"),
        ("a\u202eb\u200b", r"a\u202eb\u200b"),
        ("\U000e0041", r"\U000e0041"),
        ("100%\rdone", r"100%\rdone"),
        ("one\r\ntwo\n\tthree", "one\r\ntwo\n\tthree"),
        (
            "👨\u200d👩\u200d👧 \u0646\u06cc\u200c\u062e\u062f",
            "👨\u200d👩\u200d👧 \u0646\u06cc\u200c\u062e\u062f",
        ),
        ("a\u200db \u200d", r"a\u200db \u200d"),
        ("é\u200d\u200dé", r"é\u200d\u200dé"),
    ],
)
def test_invisible_characters_are_written_out_for_the_model(text: str, expected: str) -> None:
    """The model must see them; joiners inside words and emoji are ordinary spelling."""
    assert escape_for_model(text) == expected


@pytest.mark.scaled
@pytest.mark.parametrize(
    "piece", ["\x1b]", "\x9d", "\x1bP", "\x1b[", "\x9b1;", "\u200d", "é\u200d"]
)
def test_filtering_unfinished_sequences_takes_linear_time(piece: str) -> None:
    """The output of a tool must not block the process that shows it."""
    text = piece * (LARGE // len(piece))
    with at_most(LARGE // 1_000):
        assert_safe(safe_text(text)[:100])
        escape_for_model(text)


@given(st.text(), st.integers(min_value=0, max_value=30))
def test_shortened_text_fits_the_limit_and_marks_the_cut(text: str, limit: int) -> None:
    """The limit is exact, and the start of a text must not look like the whole."""
    short = shorten(text, limit)

    assert len(short) <= limit
    assert short == (text if len(text) <= limit else (text[: limit - 1] + "…") * (limit > 0))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        ("a", '"a"'),
        ('say "hi"\n', r'"say \"hi\"\n"'),
        ("\x1b[31m\u202e", r'"\x1b[31m\u202e"'),
        ([1, "a", None], '[1, "a", null]'),
        ((1,), "[1]"),
        ({"a": {"b": []}}, '{"a": {"b": []}}'),
        (b"abc", "<3 bytes>"),
        (object(), "<object>"),
        (threading.Lock(), "<_thread.lock>"),
        (int, "<type>"),
        pytest.param(10**5000, "<integer of about 5,001 digits>", id="huge"),
        ("x" * 100, '"' + "x" * 57 + '…"'),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, …"),
    ],
)
def test_a_value_is_described_in_json_syntax(value: object, expected: str) -> None:
    """Models read JSON; a Python repr would show the wrong syntax and leak addresses."""
    described = describe_value(value)

    assert described == expected
    assert len(described) <= 60


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(json_values)
def test_a_description_is_short_and_safe_and_valid_json_if_complete(value: Any) -> None:
    """It is part of messages for people and models."""
    described = describe_value(value)

    assert len(described) <= 60
    assert_safe(described)
    if not any(mark in described for mark in (MASK, "…", "\\x", "\\u", "\\U")):
        assert json.loads(described) == value


def fail(*_: object) -> NoReturn:
    """Stand in for a method that must not be called."""
    raise SystemExit("a method of the value was called")


class Nasty(type):
    __name__ = property(fail)  # type: ignore[assignment]
    __instancecheck__ = fail
    __subclasscheck__ = fail  # type: ignore[assignment]
    __hash__ = fail  # type: ignore[assignment]


HOOKS = (
    *("__repr__", "__str__", "__len__", "__iter__", "__format__", "__eq__", "__getitem__"),
    *("__class__", "__bool__", "__int__", "__float__", "__index__", "items", "keys", "replace"),
)
TRAPS: dict[str, Any] = dict.fromkeys(HOOKS, property(fail))


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.requirement("F20")
@pytest.mark.parametrize(
    ("base", "argument", "expected"),
    [
        (str, "ab", '"ab"'),
        (int, 7, "7"),
        (float, 1.5, "1.5"),
        (list, [1], "[1]"),
        (tuple, [1], "[1]"),
        (dict, {"a": 1}, '{"a": 1}'),
        (bytes, b"a", "<1 bytes>"),
    ],
)
def test_describing_a_value_calls_none_of_its_methods(
    base: type, argument: Any, expected: str
) -> None:
    """A broken value must not break the message about it."""
    trapped = Nasty("Trapped", (base,), TRAPS)

    assert describe_value(trapped(argument)) == expected
    assert describe_value([Nasty("Trapped", (), {**TRAPS, "__module__": None})()]) == "[<Trapped>]"


@pytest.mark.requirement("F20")
def test_describing_works_for_deep_cyclic_and_endless_values() -> None:
    """Values from a model or a tool can have any size and shape."""
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = {"a": deep}

    assert describe_value(cycle) == "[[[[[…]]]]]"
    assert describe_value(deep) == '{"a": {"a": {"a": {"a": {…}}}}}'
    assert describe_value(Colour.RED) == "1"
    assert describe_value(iter(int, 1)) == "<callable_iterator>"
    while deep != "bottom":  # otherwise Python would recurse too deeply when freeing it
        deep = deep["a"]


def test_a_container_changed_by_another_thread_is_described_by_its_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A message about a value must not fail because the value is in use."""
    value = {"a": 1, "b": 2}

    def change(text: str) -> str:
        value["c"] = 3
        return text

    monkeypatch.setattr(_text, "mask", change)

    assert describe_value(value) == "<dict>"


@pytest.mark.requirement("S20")
@pytest.mark.parametrize("before", [0, 30, 55, 1_000, 70_000])
def test_a_registered_secret_is_masked_before_a_description_is_cut(
    secret: str, before: int
) -> None:
    """Half a secret at the end of a message would be a leak."""
    for value in ("x" * before + secret, [secret + "y" * before], {secret: "z" * before}):
        described = describe_value(value)
        assert secret[:8] not in described
        assert len(described) <= 60
    assert describe_value([secret]) == f'["{MASK}"]'


def test_a_description_masks_values_of_password_keys() -> None:
    """The key marks the value as a secret, even if the value itself looks ordinary."""
    assert describe_value({"password": "tulip"}) == '{"password": "***"}'


@pytest.mark.parametrize(
    ("value", "named"), [(1, "an int"), ("", "a str"), (object(), "an object"), ([], "a list")]
)
def test_the_type_of_a_value_is_named_with_its_article(value: object, named: str) -> None:
    """Errors for the model and for programmers are English sentences."""
    assert type_with_article(value) == named
    assert with_article(type(value).__name__) == named
