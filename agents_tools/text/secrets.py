"""Masking of secrets in texts: registered values in usual encodings, and keys of known formats."""

from __future__ import annotations

import binascii
import functools
import re
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserValueError
from agents_tools.text.characters import safe_text
from agents_tools.text.forms import (
    LONGEST,
    MASK,
    SHORTEST,
    Form,
    base64_forms,
    forms_of,
    secret_bytes,
)
from agents_tools.text.secret_matcher import SecretMatcher, Span, mask_spans, spans_in_view
from agents_tools.text.views import visible_views

if TYPE_CHECKING:
    from logging import Logger, LogRecord

    from agents_tools.text.forms import HiddenValue

__all__ = [
    "distinct_key",
    "forget_secret",
    "guard_logs",
    "has_secrets",
    "is_secret_number",
    "library_logger",
    "mask",
    "mask_encoded",
    "mask_json",
    "mask_registered",
    "register_secret",
    "registered_forms",
    "registered_matcher",
]


def register_secret(value: str | bytes | HiddenValue) -> None:
    """Register a secret, which is then masked in all text that the library shows, logs or reports.

    The secret is also found in base64 (standard and URL-safe, at any position of the encoded
    text), in hexadecimal digits, with any characters percent-encoded, and escaped as in JSON or
    Python literals, JSON within JSON included, also where control characters or terminal sequences
    separate its characters, and where base64 is wrapped into lines. Of a secret of several lines,
    such as a private key, each random line of at least 12 characters is a secret of its own.
    Whitespace around the value is ignored. Registering a value again has no effect. The registry
    is designed for tens or hundreds of secrets per process: every text is searched once for each
    encoding of each secret.

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
    spans = [*_matcher.spans(text), *_shapes_and_base64(text)]
    for view in visible_views(text):
        spans += spans_in_view(view, _shapes_and_base64(view[0]))
    return mask_spans(text, spans)


def has_secrets() -> bool:
    """Return whether any secret is registered."""
    return bool(_matcher.forms)


def mask_registered(text: str) -> str:
    """Replace the registered secrets in a text with `***`, but not texts that look like secrets."""
    return _matcher.mask(text)


def mask_encoded(text: str) -> str:
    """Replace only those registered secrets in a text that are encoded in another way than usual.

    A store that puts marks in the place of registered secrets would not find these.
    """
    plain = set(_matcher.direct_spans(text))
    return mask_spans(text, [span for span in _matcher.spans(text) if span not in plain])


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
    """Clean and mask the log records of the library, tracebacks included. Can be called again."""
    import logging

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_mask_record)


def library_logger() -> Logger:
    """Return the logger of the library, whose records are cleaned and masked."""
    import logging

    guard_logs()
    return logging.getLogger(_LOGGERS[0])


def _mask_record(record: LogRecord) -> bool:
    """Clean a record, and mask the secrets in it; a plain record without secrets is not changed."""
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001 - the handler reports arguments that do not fit the message
        return True
    masked = mask(safe_text(message))
    if masked != message:
        record.msg, record.args = masked, None
    if record.exc_info and record.exc_info[0] is not None:
        from traceback import format_exception

        trace = "".join(format_exception(*record.exc_info)).rstrip("\n")
        masked = mask(safe_text(trace))
        if masked != trace:  # handlers write the text instead of the exception with the secret
            record.exc_info, record.exc_text = None, masked
    return True


# --- the registry


_lock = threading.Lock()
_registered: dict[bytes, tuple[Form, ...]] = {}
_matcher = SecretMatcher(())  # replaced as a whole, so that reading needs no lock


def _refresh() -> None:
    global _matcher  # noqa: PLW0603 - the registry is the state of this module
    forms = {form: None for forms in _registered.values() for form in forms}
    _matcher = SecretMatcher(tuple(forms))


def registered_forms() -> tuple[Form, ...]:
    """Return the forms of all registered secrets; a new tuple after every change."""
    return tuple(_matcher.forms)


def registered_matcher() -> SecretMatcher:
    """Return the matcher of all registered secrets; a new one after every change."""
    return _matcher


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


def _shapes_and_base64(text: str) -> Iterator[Span]:
    yield from _shapes(text)
    if len(text) >= _SHORTEST_RUN and any(core in text for core in _base64_marks()):
        yield from _encoded_shapes(text)


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
    forms = (form for mark in _ENCODED_MARKS for form in base64_forms(mark.encode()))
    return tuple({text: None for text, _, _ in forms})


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
        return MASK if named or is_secret_number(value) else value
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
    for key, member in value.items():
        name = distinct_key(_mask_value(key, depth, named=False), masked)
        masked[name] = _mask_value(member, depth, named=_names_secret(key))
    return masked


def distinct_key(key: Any, members: Mapping[Any, Any]) -> Any:
    """Return a key that is not in an object yet: two keys with secrets must not become one."""
    name, count = key, len(members)
    while name in members:
        count += 1
        name = f"{key} ({count})"
    return name


def _names_secret(key: Any) -> bool:
    return isinstance(key, str) and bool(_compiled(rf"(?i)(?:{_NAMES}|cookie)\Z").search(key))


def _mask_bytes(value: bytes) -> bytes:
    return mask(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def is_secret_number(value: float) -> bool:
    """Return whether a number of a JSON value is a registered secret."""
    if not _matcher.forms or (isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER):
        return False
    text = str(value)
    return _matcher.mask(text) != text
