"""Masking of secrets in texts: registered values in usual encodings, and keys of known formats."""

from __future__ import annotations

import binascii
import functools
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from agents_tools.errors import UserTypeError, UserValueError

if TYPE_CHECKING:
    from array import array
    from logging import LogRecord

    class HiddenValue(Protocol):
        """An object that hides a secret, such as pydantic's `SecretStr`."""

        def get_secret_value(self) -> str | bytes:
            """Return the secret."""
            ...


__all__ = [
    "LONGEST",
    "MASK",
    "SHORTEST",
    "Form",
    "Span",
    "View",
    "find_form",
    "forget_secret",
    "forms_of",
    "guard_logs",
    "has_secrets",
    "mask",
    "mask_encoded",
    "mask_json",
    "mask_registered",
    "mask_registered_json",
    "register_secret",
    "registered_forms",
    "secret_bytes",
    "views",
]

MASK = "***"
"""The replacement for a secret."""

SHORTEST = 6
"""The minimum size of a registered value in bytes; a shorter one would match by chance."""

LONGEST = 1 << 15
"""The maximum size of a registered value in bytes."""


def register_secret(value: str | bytes | HiddenValue) -> None:
    """Register a secret, which is then masked in all text that the library shows, logs or reports.

    The secret is also found in base64 (standard and URL-safe, at any position of the encoded
    text), in hexadecimal digits, with any characters percent-encoded, and escaped as in JSON or
    Python literals, JSON within JSON included. Whitespace around it is ignored. Registering a
    value again has no effect. The registry is designed for tens or hundreds of secrets per
    process: every text is searched once for each encoding of each secret.

    Args:
        value: The secret: text, bytes, or an object with `get_secret_value()`.

    Raises:
        UserTypeError: The value has another type.
        UserValueError: The value has fewer than 6 or more than 32,768 bytes.
    """
    secret = secret_bytes(value)
    if not SHORTEST <= len(secret) <= LONGEST:
        raise UserValueError(
            f"A secret has an invalid size: expected {SHORTEST} to {LONGEST:,} bytes, got "
            f"{len(secret):,}. Register the whole secret, and only if one is set: a short value "
            "would be masked in ordinary text."
        )
    forms = tuple(forms_of(secret))
    guard_logs()
    with _lock:
        _registered[secret] = forms
        _refresh()


def forget_secret(value: str | bytes | HiddenValue) -> None:
    """Stop masking a registered value; a value that is not registered is ignored."""
    secret = secret_bytes(value)
    with _lock:
        _registered.pop(secret, None)
        _refresh()


def mask(text: str) -> str:
    """Replace every secret in a text with `***`.

    Secrets are the registered values (see `register_secret`) and texts that look like secrets:
    keys of well-known services, JSON Web Tokens, bearer tokens, private keys, cookies, passwords
    in URLs, and values assigned to a name such as `password` or `api_key`, also percent-encoded or
    in base64. The time is linear in the length of the text, regardless of its content.
    """
    spans = list(_spans(text))
    if "%" in text:
        view = _decode(text, _PERCENT, _decode_percent)
        spans += _spans_in_view(view, _spans)
    if "\\" in text and _current_forms:
        view = _decode(text, _BACKSLASH, _decode_escape)
        spans += _spans_in_view(view, _registered_spans)
        twice = _decode(view[0], _BACKSLASH, _decode_escape)
        inner = _spans_in_view(twice, _registered_spans)
        spans += [(view[1][start], view[1][end]) for start, end in inner]
    return _mask_spans(text, spans) if spans else text


def has_secrets() -> bool:
    """Return whether any secret is registered."""
    return bool(_current_forms)


def mask_registered(text: str) -> str:
    """Replace the registered secrets in a text with `***`, but not texts that look like secrets."""
    if not _current_forms:
        return text
    spans = list(_registered_spans(text))
    for view in views(text):
        spans += _spans_in_view(view, _registered_spans)
    return _mask_spans(text, spans) if spans else text


def mask_encoded(text: str) -> str:
    """Replace only those registered secrets in a text that are percent-encoded or escaped."""
    if not _current_forms:
        return text
    plain = set(_registered_spans(text))
    spans = [span for view in views(text) for span in _spans_in_view(view, _registered_spans)]
    spans = [span for span in spans if span not in plain]
    return _mask_spans(text, spans) if spans else text


def mask_registered_json(value: Any) -> Any:
    """Return a copy of a JSON value with registered secrets masked, in keys and numbers too."""
    if not _current_forms:
        return value
    if isinstance(value, str):
        return mask_registered(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {mask_registered(key): mask_registered_json(item) for key, item in members}
    if isinstance(value, list):
        return [mask_registered_json(item) for item in cast("list[Any]", value)]
    return MASK if _is_secret_number(value) else value


def mask_json(value: Any) -> Any:
    """Return a copy of a JSON value with every secret masked, in keys of objects too.

    A text or number under a key such as `password` is always masked. Values that are not JSON are
    kept, except that `bytes` are masked too. Values nested more than 200 levels deep are masked
    as a whole.
    """
    return _mask_value(value, _MAX_DEPTH, named=False)


# --- log records

_LOGGERS = tuple(
    f"agents_tools{name}" for name in ("", ".mcp", ".playground", ".sandbox", ".skills", ".ui")
)


def guard_logs() -> None:
    """Mask secrets in the log records of the library, tracebacks included. Can be called again."""
    import logging

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_mask_record)


def _mask_record(record: LogRecord) -> bool:
    """Mask the secrets in a record; a record without secrets is not changed."""
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001 - the handler reports arguments that do not fit the message
        return True
    masked = mask(message)
    if masked != message:
        record.msg, record.args = masked, None
    if record.exc_info and record.exc_info[0] is not None:
        from traceback import format_exception

        trace = "".join(format_exception(*record.exc_info)).rstrip("\n")
        masked = mask(trace)
        if masked != trace:  # handlers write the text instead of the exception with the secret
            record.exc_info, record.exc_text = None, masked
    return True


# --- the registry


Form: TypeAlias = tuple[str, int, int]
"""A text that reveals a secret, and the numbers of characters to mask before and after it.

In base64 the characters next to the text can encode a part of the secret.
"""

_lock = threading.Lock()
_registered: dict[bytes, tuple[Form, ...]] = {}
_current_forms: tuple[Form, ...] = ()  # replaced as a whole, so that reading needs no lock


def _refresh() -> None:
    global _current_forms  # noqa: PLW0603 - the registry is the state of this module
    _current_forms = tuple({form: None for forms in _registered.values() for form in forms})


def registered_forms() -> tuple[Form, ...]:
    """Return the forms of all registered secrets; a new tuple after every change."""
    return _current_forms


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
    """Yield the texts that reveal a secret."""
    for text in _spellings(secret):
        yield text, 0, 0
    for offset in range(3):
        yield from _base64_forms(secret, offset)


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
    yield repr(text)[1:-1]
    yield text.replace(" ", "+")  # as in the query of a URL
    for only_ascii in (True, False):
        yield json.dumps(text, ensure_ascii=only_ascii)[1:-1]


def _base64_forms(secret: bytes, offset: int) -> Iterator[Form]:
    """Yield the base64 characters that depend only on the secret, if `offset` bytes precede it."""
    text = binascii.b2a_base64(bytes(offset) + secret, newline=False).decode()
    bits = 8 * (offset + len(secret))
    core = text[-(-8 * offset // 6) : bits // 6]
    before, after = int(offset > 0), int(bits % 6 > 0)
    yield core, before, after
    yield core.replace("+", "-").replace("/", "_"), before, after


# --- search

Span: TypeAlias = tuple[int, int]


def _spans(text: str) -> Iterator[Span]:
    yield from _registered_spans(text)
    yield from _shapes(text)
    if len(text) >= _SHORTEST_RUN and any(core in text for core in _base64_marks()):
        yield from _encoded_shapes(text)


def _registered_spans(text: str) -> Iterator[Span]:
    for form in _current_forms:
        if form[0] in text:
            yield from find_form(text, form)


def find_form(text: str, form: Form) -> Iterator[Span]:
    """Yield the span of each occurrence of a form, with the characters to mask around it."""
    secret, before, after = form
    size = len(secret)
    start = text.find(secret)
    while start >= 0:
        yield max(0, start - before), min(len(text), start + size + after)
        start = text.find(secret, start + size)


def _mask_spans(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start >= done:
            pieces += text[done:start], MASK
        done = max(done, end)
    pieces.append(text[done:])
    return "".join(pieces)


# --- search in decoded text

View: TypeAlias = "tuple[str, array[int]]"
"""A decoded text, and the position of each of its characters in the encoded text."""

_PERCENT = "(?:%[0-9A-Fa-f]{2})+"
_BACKSLASH = r"(?s)\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)"


def views(text: str) -> Iterator[View]:
    """Yield the text with percent-encoding decoded, and the text with backslash escapes decoded."""
    if "%" in text:
        yield _decode(text, _PERCENT, _decode_percent)
    if "\\" in text:
        yield _decode(text, _BACKSLASH, _decode_escape)


def _spans_in_view(view: View, find: Callable[[str], Iterator[Span]]) -> list[Span]:
    text, positions = view
    return [(positions[start], positions[end]) for start, end in find(text)] if positions else []


def _decode(text: str, pattern: str, decode: Callable[[str], Iterator[tuple[str, int]]]) -> View:
    """Return the text with the matches of a pattern decoded; empty if nothing matches."""
    from array import array

    pieces: list[str] = []
    positions = array("l")
    done = 0
    for match in _compiled(pattern).finditer(text):
        start, end = match.span()
        positions.extend(range(done, start))
        pieces.append(text[done:start])
        for char, size in decode(match[0]):
            pieces.append(char)
            positions.append(start)
            start += size
        done = end
    if not pieces:
        return "", positions
    positions.extend(range(done, len(text) + 1))
    pieces.append(text[done:])
    return "".join(pieces), positions


def _decode_percent(run: str) -> Iterator[tuple[str, int]]:
    for char in bytes.fromhex(run.replace("%", "")).decode("utf-8", "surrogateescape"):
        yield char, 3 * len(char.encode("utf-8", "surrogateescape"))


def _decode_escape(escape: str) -> Iterator[tuple[str, int]]:
    kind = escape[1]
    if len(escape) > 2:  # noqa: PLR2004 - more than a backslash and a letter: a code
        yield chr(int.from_bytes(bytes.fromhex(escape[2:]))), len(escape)
    else:
        yield _ESCAPES.get(kind, kind), 2


_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


# Patterns of texts that look like a secret
#
# Each pattern has marks in lowercase. A text without a mark cannot match, and the search for marks
# is fast. If a pattern has a group, the group is the secret. Patterns take linear time: each is
# anchored to its mark, and a repetition is possessive, bounded or at the end. A failing match never
# consumes the start of another match.


def _token(start: str, rest: str) -> str:
    return rf"(?<![A-Za-z0-9])(?:{start}){rest}"


_NAMES = (
    r"(?:pass(?:word|wd|phrase|code)"
    r"|(?:api|access|secret|private|signing|encryption|account|master|auth)[_\- ]?key"
    r"|secret|credentials?|authorization"
    r"""|(?<![A-Za-z])pwd(?!["']?[ \t]{0,8}[:=][ \t]{0,8}["']?[/~.])"""  # the working directory
    r"|(?<!page)(?<!page[_-])(?<!next)(?<!next[_-])(?<!continuation)(?<!continuation[_-])"
    r"(?<!unexpected )(?<!invalid )(?<!illegal )token)"
)
_EQUALS = r"""\\{0,2}["']?[ \t]{0,8}[:=]{1,2}>?[ \t]{0,8}+"""
_SCHEME = r"(?:(?:bearer|basic|digest|negotiate|token|apikey)[ \t]{1,4})?"
# Words that follow the name of an argument in messages and signatures.
_NO_VALUES = (
    r"(?!(?:a|an|the|is|are|was|not|must|should|may|can|expected|required|missing|unknown|invalid"
    r"|unexpected|input|field|value|got|optional|any|str|string|int|integer|bool|none|null|true"
    r"|false|secretstr)\.?(?:[\s,;:)\]|}]|\Z))"
)
_UNQUOTED = r"""[^\s"'<>,;&(){}\[\]\\][^\s"',;&]*+"""
_VALUE = (
    rf"""(?:\\"([^"\\\r\n]++)|"((?:[^"\\\r\n]|\\.)++)|'((?:[^'\\\r\n]|\\.)++)"""
    rf"|{_NO_VALUES}({_UNQUOTED}))"
)
_NO_WORD = "(?=[a-z.~-]{0,64}[0-9_+/=]|[a-z.~-]{20})"
_IN_ADDRESS = r"""[^\s/?#"'<>\\]"""

_SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sk-",), _token("sk-", "[A-Za-z0-9_-]{10,}")),
    (("_live_", "_test_", "whsec_"), _token("[srp]k_(?:live|test)_|whsec_", "[A-Za-z0-9+/=]{10,}")),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _token("gh[pousr]_", "[A-Za-z0-9]{16,}")),
    (("github_pat_",), _token("github_pat_", "[A-Za-z0-9_]{16,}")),
    (("glpat-",), _token("glpat-", "[A-Za-z0-9_-]{16,}")),
    (("akia", "asia"), _token("AKIA|ASIA", "[A-Z0-9]{12,}")),
    (("xox", "xapp-"), _token("xox[a-z]-|xapp-", "[A-Za-z0-9-]{8,}")),
    (("aiza",), _token("AIza", "[A-Za-z0-9_-]{20,}")),
    (("gocspx-",), _token("GOCSPX-", "[A-Za-z0-9_-]{16,}")),
    (("ya29.",), _token(r"ya29\.", "[A-Za-z0-9_-]{10,}")),
    (("hf_",), _token("hf_", "[A-Za-z0-9]{16,}")),
    (("npm_", "pypi-"), _token("npm_|pypi-", "[A-Za-z0-9_-]{20,}")),
    (("eyj",), r"(?<![\w-])eyJ[\w-]{5,}+\.[\w-]{5,}+(?:\.[\w-]*+)*+"),
    (
        ("bearer",),
        rf"(?i)(?<![a-z])bearer[ \t+]{{1,4}}{_NO_WORD}([\w.~+/=-]{{6,}})",
    ),
    (("cookie",), rf"""(?i)(?<![a-z])cookie{_EQUALS}\\?["']?{_NO_VALUES}([^\r\n"'{{}}]+)"""),
    (("://",), rf"://[^\s/?#@:\"'<>\\]*+:({_IN_ADDRESS}+)@"),
    (("://",), r"://([^\s/?#@:\"'<>\\]{16,}+)@"),
    (("sig", "x-amz-"), r"""(?i)[?&](?:sig|signature|x-amz-[a-z-]{1,20})=([^&\s"'<>#]+)"""),
    (
        ("pass", "key", "secret", "credential", "pwd", "authorization", "token"),
        rf"(?i){_NAMES}{_EQUALS}{_SCHEME}{_VALUE}",
    ),
    (
        ("--pass", "--token", "--secret", "--api"),
        rf"(?i)(?<=--)(?:password|passphrase|token|secret|api-?key)[ \t]{{1,4}}(?!-){_VALUE}",
    ),
)
_MARKS = tuple((mark, pattern) for marks, pattern in _SHAPES for mark in marks)
_compiled = functools.cache(re.compile)


def _shapes(text: str) -> Iterator[Span]:
    lowered = text.lower()
    for pattern in {pattern for mark, pattern in _MARKS if mark in lowered}:
        for match in _compiled(pattern).finditer(text):
            yield match.span(match.lastindex or 0)
    if "private key" in lowered:
        yield from _private_keys(text)


def _private_keys(text: str) -> Iterator[Span]:
    """Yield the spans of PEM blocks. A block without its end extends to the end of the text."""
    start = _compiled("-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY[A-Z ]{0,8}-----")
    body = _compiled(r"(?:\s|\\[nr])*+(?:[A-Za-z0-9+/=]{16}|[A-Z][A-Za-z-]{2,15}:)")
    match = start.search(text)
    while match:
        begin, end = match.span()
        last = text.find("-----END ", end)
        if last >= 0:
            tail = text.find("-----", last + 9, last + 80)
            end = tail + 5 if tail >= 0 else last + 9
            yield begin, end
        elif body.match(text, end):
            yield begin, len(text)
            return
        else:  # only the words, without a block
            return
        match = start.search(text, end)


_SHORTEST_RUN = 20
_BASE64_RUN = rf"[A-Za-z0-9+/_-]{{{_SHORTEST_RUN},}}+={{0,2}}"
_ENCODED_MARKS = (
    *("sk-", "sk_live_", "ghp_", "gho_", "github_pat_", "glpat-", "AKIA", "ASIA", "xox", "AIza"),
    *("hf_", "eyJ", "Bearer ", "PRIVATE KEY", "://", "password", "secret", "api_key", "token"),
)


@functools.cache
def _base64_marks() -> tuple[str, ...]:
    forms = (form for mark in _ENCODED_MARKS for form in _all_base64(mark.encode()))
    return tuple({text: None for text, _, _ in forms})


def _all_base64(data: bytes) -> Iterator[Form]:
    for offset in range(3):
        yield from _base64_forms(data, offset)


def _encoded_shapes(text: str) -> Iterator[Span]:
    """Yield the runs of base64 that look like a secret when decoded."""
    for match in _compiled(_BASE64_RUN).finditer(text):
        run = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        if any(core in run for core in _base64_marks()) and any(map(_is_shape, _decode_run(run))):
            yield match.span()


def _decode_run(run: str) -> Iterator[str]:
    """Yield decodings of base64 with up to three other characters before it."""
    for skip in range(4):
        size = len(run) - skip
        size -= size % 4 == 1
        padded = run[skip : skip + size] + "=" * (-size % 4)
        yield binascii.a2b_base64(padded).decode("latin-1")


def _is_shape(text: str) -> bool:
    return next(_shapes(text), None) is not None


# JSON values

_MAX_DEPTH = 200
_LONGEST_NUMBER = 1 << 12


def _mask_value(value: Any, depth: int, *, named: bool) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return MASK if named and value else mask(value)
    if isinstance(value, bytes):
        return MASK.encode() if named and value else _mask_bytes(value)
    if isinstance(value, int | float):
        return MASK if named or _is_secret_number(value) else value
    if not isinstance(value, Mapping | list | tuple):
        return value
    if not depth:
        return MASK
    container = cast("Any", value)
    if isinstance(value, Mapping):
        return _mask_object(container, depth - 1)
    items = [_mask_value(item, depth - 1, named=named) for item in container]
    return items if isinstance(value, list) else tuple(items)


def _mask_object(value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
    masked: dict[Any, Any] = {}
    count = 1
    for key, member in value.items():
        name = _mask_value(key, depth, named=False)
        while name in masked:  # two keys that hold secrets must not become one
            count += 1
            name = f"{MASK} ({count})"
        masked[name] = _mask_value(member, depth, named=_names_secret(key))
    return masked


def _names_secret(key: Any) -> bool:
    return isinstance(key, str) and bool(_compiled(rf"(?i)(?:{_NAMES}|cookie)\Z").search(key))


def _mask_bytes(value: bytes) -> bytes:
    return mask(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _is_secret_number(value: float) -> bool:
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        return False
    text = str(value)
    return mask(text) != text
