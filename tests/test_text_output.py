"""The one exit for text: cleaning, masking and bounding, in this order, for texts and for deltas."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st

from agents_tools import register_secret
from agents_tools.text import forget_secret
from agents_tools.text.characters import replace_escaped_surrogates, safe_text
from agents_tools.text.forms import MASK
from agents_tools.text.output import (
    TextStream,
    release_ends,
    release_json,
    release_json_text,
    release_text,
)

SECRET = "Sh0rtSecret77"  # noqa: S105 - made up
TOKEN = "ghx_" + "x9K2mQ7" * 12

HIDDEN = {
    "color": "\x1b[01;31m\x1b[K",
    "link": "\x1b]8;;https://a.example\x1b\\",
    "title": "\x1b]0;x\x07",
    "8-bit CSI": "\x9b0m",
    "NUL": "\x00",
    "backspace": "\x08",
    "carriage return": "\r",
    "zero width": "\u200b",
    "override": "\u202e",
    "byte order mark": "\ufeff",
    "tag": "\U000e0041",
}


@pytest.fixture(autouse=True)
def _secrets() -> Iterator[None]:
    register_secret(SECRET)
    register_secret(TOKEN)
    yield
    forget_secret(SECRET)
    forget_secret(TOKEN)


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("to", ["person", "model", "program"])
def test_a_secret_with_hidden_characters_in_it_is_masked(
    name: str, to: Literal["person", "model", "program"]
) -> None:
    """Cleaning joins its parts, on the screen or in the next program that cleans."""
    text = release_text(f"a {SECRET[:5]}{HIDDEN[name]}{SECRET[5:]} b", to=to)
    assert MASK in text
    assert SECRET not in safe_text(text)
    assert text.startswith("a ")
    assert text.endswith(" b")


def test_a_secret_whose_parts_are_escaped_is_masked() -> None:
    """A model, or JSON, has the hidden characters as escapes."""
    apart = f"{SECRET[:5]}\x1b[31m{SECRET[5:]}"
    assert release_text(json.dumps({"key": apart})) == '{"key": "***"}'
    assert release_text(json.dumps(json.dumps({"key": apart}))).count(MASK) == 1


@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n    ", "\n  12\t"])
def test_wrapped_base64_is_masked(width: int, end: str) -> None:
    """`base64` and PEM wrap their output, and views put numbers before the lines."""
    text = base64.b64encode(f"user:{TOKEN}; and more text after it".encode()).decode()
    lines = [text[start : start + width] for start in range(0, len(text), width)]
    assert len(lines) > 1
    masked = release_text(end.join(lines), to="program")
    assert MASK in masked
    assert lines[0] not in masked
    assert lines[1] not in masked


def test_a_secret_is_masked_before_the_cut() -> None:
    """Half of it would be left at the end."""
    assert release_text("key " + SECRET, limit=12) == "key ***"
    assert release_text("x" * 8 + SECRET, limit=12) == "x" * 8 + MASK
    assert release_text("x" * 10 + SECRET, limit=12) == "x" * 10 + "*…"


@pytest.mark.parametrize("count", [0, 1, 5, 40_000])
def test_the_start_of_a_large_text_is_bounded_like_the_whole(count: int) -> None:
    """Only the start is read, unless masks and cleaning shorten it below the limit."""
    text = (SECRET + "\x1b[31m") * count + "y" * 400_000 + SECRET
    whole = release_text(text)
    expected = whole if len(whole) <= 1_000 else whole[:999] + "…"
    assert release_text(text, limit=1_000) == expected


@pytest.mark.parametrize("count", [0, 1, 40_000])
def test_both_ends_of_a_large_text_are_released(count: int) -> None:
    """The middle is dropped by the caller, so it is not searched."""
    text = SECRET * count + "y" * 900_000 + SECRET
    released = release_ends(text, 1_000)
    assert SECRET not in released[:1_000] + released[-1_000:]
    assert released[-3:] == MASK


def test_surrogates_are_joined_or_replaced() -> None:
    """Half of a pair cannot be encoded; a model can send the halves in two deltas."""
    assert release_text("a\ud83d\ude00b\ud800") == "a😀b\ufffd"
    assert release_text("\udce9", to="program") == "\ufffd"


def test_escaped_surrogates_in_json_are_replaced() -> None:
    """Some parsers refuse the whole document because of one."""
    data = rb'["\ud83d\ude00", "\ud800", "\udc00x", "\\ud800", "\uD800\ud83d\ude00"]'
    expected = ["😀", "\ufffd", "\ufffdx", r"\ud800", "\ufffd😀"]
    assert json.loads(replace_escaped_surrogates(data)) == expected


def test_released_keys_stay_distinct() -> None:
    """Masking and cleaning can hide a key but must not lose its value."""
    value = {SECRET: 1, f"{SECRET}\u200b": 2, "a": 3, "a\u200b": 4}
    assert release_json(value) == {MASK: 1, f"{MASK} (2)": 2, "a": 3, "a (4)": 4}


def test_json_is_released_in_keys_values_and_numbers() -> None:
    """Structured results and frames are JSON."""
    register_secret("4155551234")
    try:
        value: Any = {SECRET: ["\x1b[31mred", 4155551234, 1.5, None, True], "n": {"a": "\ud800"}}
        released = {MASK: ["red", MASK, 1.5, None, True], "n": {"a": "\ufffd"}}
        assert release_json(value) == released
        assert release_json_text(json.dumps(value))[MASK][1:] == [MASK, 1.5, None, True]
        assert release_json_text('{"a": [1, "b"]}') == {"a": [1, "b"]}
    finally:
        forget_secret("4155551234")


PIECES = [
    *HIDDEN.values(), SECRET, SECRET[:5], SECRET[5:], TOKEN, TOKEN[:30], "%53", r"\x1b[0m",
    "\x1b", "[", "31", "m", "a", "é", "\n", " ", "\ud83d", "\ude00", "😀",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.data())
def test_deltas_release_the_same_text_as_the_whole(text: str, data: st.DataObject) -> None:
    """A secret, a sequence or a pair that is split over deltas is held back until it is whole."""
    stream, shown, start = TextStream(), "", 0
    while start < len(text):
        size = data.draw(st.integers(1, 9))
        shown += stream.push(text[start : start + size])
        start += size
    shown += stream.finish()
    assert SECRET not in shown
    assert TOKEN not in shown
    assert safe_text(shown) == shown
    whole = release_text(text)
    assert shown == whole or MASK in shown  # the half of a secret at the end is masked


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_releasing_is_idempotent(text: str) -> None:
    """Some texts pass more than one exit."""
    for to in ("person", "model", "program"):
        released = release_text(text, to=to)
        released.encode()
        assert release_text(released, to=to) == released


def test_text_that_is_not_held_back_is_shown_at_once() -> None:
    """Live text must not lag behind."""
    stream = TextStream()
    assert stream.push("Hello ") == "Hello "
    assert stream.push("wor") == "wor"
    assert stream.push("ld Sh0rt") == "ld"
    assert stream.push("s") == " Sh0rts"
    assert stream.finish() == ""


ENCODED = {
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps({"a": json.dumps(text)}),
    "percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "percent, in part": lambda text: text.replace("h", "%68"),
    "hexadecimal escapes": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "Unicode escapes": lambda text: "".join(f"\\u{ord(char):04X}" for char in text),
    "backslashes": lambda text: "".join(f"\\{char}" for char in "Sh0") + text[3:],
    "escaped color": lambda text: json.dumps(text[:5] + "\x1b[31m" + text[5:]),
    "encoded mark": lambda text: text[:5] + "%E2%80%8B" + text[5:],
}  # fmt: skip


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("filler", ["plain ", r'{"line": "\n \"é\" \u00e9"} ', "/a%20b%2F "])
def test_an_encoded_secret_in_a_large_text_is_masked(name: str, filler: str) -> None:
    """Large texts are decoded only if a fast search finds that it can matter."""
    encoded = ENCODED[name](SECRET)
    text = filler * 2_000 + encoded + filler * 2_000
    masked = release_text(text)
    assert MASK in masked
    assert len(masked) < len(text)
    assert masked.startswith(filler)
    assert masked.endswith(filler)
    assert release_text(filler * 4_000) == filler * 4_000
