"""The texts that reveal a secret: the secret itself, its lines, and both in usual encodings."""

from __future__ import annotations

import binascii
import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from agents_tools.errors import UserTypeError
from agents_tools.text.characters import replace_surrogates, safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    class HiddenValue(Protocol):
        """An object that hides a secret, such as pydantic's `SecretStr`."""

        def get_secret_value(self) -> str | bytes:
            """Return the secret."""
            ...


__all__ = ["LONGEST", "MASK", "SHORTEST", "Form", "base64_forms", "forms_of", "secret_bytes"]

MASK = "***"
"""The replacement for a secret."""

SHORTEST = 6
"""The minimum size of a registered value in bytes; a shorter one would match by chance."""

LONGEST = 1 << 15
"""The maximum size of a registered value in bytes."""

Form: TypeAlias = tuple[str, int, int]
"""A text that reveals a secret, and the numbers of characters to mask before and after it.

In base64 the characters next to the text can encode a part of the secret.
"""


def secret_bytes(value: object) -> bytes:
    """Return a secret as bytes, without the whitespace around it.

    Raises:
        UserTypeError: The value is not text, bytes or an object with `get_secret_value()`.
    """
    if not isinstance(value, str | bytes) and hasattr(value, "get_secret_value"):
        value = cast("HiddenValue", value).get_secret_value()
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    if not isinstance(value, bytes):
        raise UserTypeError(
            "A secret has an invalid type: expected str, bytes or an object with "
            f"get_secret_value(), got {type(value).__name__}."
        )
    return value.strip()


def forms_of(secret: bytes) -> Iterator[Form]:
    """Yield the texts that reveal a secret, or one of the random lines of it."""
    for part in (secret, *_random_lines(secret)):
        for text in _spellings(part):
            yield text, 0, 0
        yield from base64_forms(part)


def base64_forms(data: bytes) -> Iterator[Form]:
    """Yield the texts that stand for some bytes in base64, wherever these are in the input."""
    for offset in range(3):
        # The characters that depend only on the data, if `offset` bytes precede it.
        text = binascii.b2a_base64(bytes(offset) + data, newline=False).decode()
        bits = 8 * (offset + len(data))
        core = text[-(-8 * offset // 6) : bits // 6]
        before, after = int(offset > 0), int(bits % 6 > 0)
        yield core, before, after
        yield core.replace("+", "-").replace("/", "_"), before, after


def _spellings(secret: bytes) -> Iterator[str]:
    import json

    yield secret.hex()
    yield secret.hex().upper()
    yield repr(secret)[2:-1]
    try:
        text = secret.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return
    yield text
    # Texts are cleaned before they are masked.
    yield replace_surrogates(text)
    if len(cleaned := safe_text(text)) >= SHORTEST:
        yield cleaned
    yield repr(text)[1:-1]
    yield text.replace(" ", "+")  # as in the query of a URL
    for only_ascii in (True, False):
        yield json.dumps(text, ensure_ascii=only_ascii)[1:-1]


# --- the lines of a secret

_SHORTEST_LINE = 12
_MIN_ENTROPY = 2.8  # bits per character
_LINE_ENDS = re.compile(r"\r\n|[\r\n]|\\r\\n|\\n")  # the text in a JSON key file has escapes
_MEMBER = re.compile(r"""["']?[\w.-]{1,64}["']?[ \t]*[:=][ \t]*["']?(.*?)["']?,?""")
_WORD = re.compile("[a-z]{4,}")
_NAME = re.compile(
    r"(?:[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9]+)(?:[-_./](?:[a-z]+|[A-Z]+|[A-Z][a-z]+|[0-9]+))+"
)


def _random_lines(secret: bytes) -> set[bytes]:
    """Return the lines of a secret, or the values in them, that cannot occur by chance.

    Headers of PEM blocks, brackets, addresses, and members of JSON files that many files share are
    left out, because they would be masked in ordinary text.
    """
    try:
        text = secret.decode()
    except UnicodeDecodeError:
        return set()
    lines = [line.strip() for line in _LINE_ENDS.split(text)]
    if len(lines) == 1:
        return set()
    values = (_value_of(line) for line in lines if not line.startswith("-----"))
    return {value.encode() for value in values if _is_random(value)}


def _value_of(line: str) -> str:
    """Return the value of a member of an object, or of an assignment; else the line."""
    match = _MEMBER.fullmatch(line)
    # The end of base64 looks like an assignment of nothing.
    return match[1] if match is not None and match[1].strip("=") else line.strip("\"',")


def _is_random(text: str) -> bool:
    """Return whether a text looks random: no address, no words, and letters of several kinds."""
    size = len(text)
    if size < _SHORTEST_LINE or "://" in text or "@" in text or " " in text:
        return False
    if _NAME.fullmatch(text):  # words and numbers, such as the name of a project
        return False
    kinds = sum(any(map(test, text)) for test in (str.islower, str.isupper, str.isdigit))
    words = sum(map(len, _WORD.findall(text)))
    entropy = -sum(n / size * math.log2(n / size) for n in Counter(text).values())
    return kinds > 1 and words * 2 <= size and entropy >= _MIN_ENTROPY
