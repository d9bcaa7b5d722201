"""The exit for text: everything that leaves a call is cleaned, then masked, then bounded here.

Results, error texts, events, model output, frames, logs, exports and terminals use `release_text`,
or `release_json` for values and `TextStream` for deltas. The order matters: cleaning can join the
characters of a secret that were apart, and a cut can leave half of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from agents_tools.text.characters import (
    escape_for_model,
    is_plain,
    replace_surrogates,
    safe_text,
    unfinished_start,
)
from agents_tools.text.escape import shorten
from agents_tools.text.forms import MASK
from agents_tools.text.secrets import (
    distinct_key,
    has_secrets,
    is_secret_number,
    mask,
    mask_json,
    mask_registered,
    registered_matcher,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.text.secret_matcher import SecretMatcher

__all__ = [
    "Reader",
    "TextStream",
    "release_ends",
    "release_json",
    "release_json_text",
    "release_text",
]

Reader: TypeAlias = Literal["model", "person", "program"]
"""Who reads a text, which decides how it is cleaned.

For a `person`, control characters, terminal sequences and invisible characters are removed. For a
`model`, they become visible escapes. For a `program`, such as a store, they are kept. Lone
surrogates become U+FFFD for all of them, so that the text can always be encoded.
"""

_CLEAN: Final[dict[Reader, Callable[[str], str]]] = {
    "model": escape_for_model,
    "person": safe_text,
    "program": replace_surrogates,
}
_MAX_DEPTH: Final = 100


def release_text(
    text: str, *, to: Reader = "person", limit: int | None = None, patterns: bool = False
) -> str:
    """Return a text as it can leave the library: cleaned, then masked, then bounded.

    Args:
        text: The text.
        to: Who reads the text.
        limit: The maximum number of characters; a longer text ends with an ellipsis.
        patterns: Whether texts that look like secrets are masked too, not only registered secrets.
            It is for texts that no tool has meant as data, such as errors and logs.
    """
    if limit is not None and len(text) > 2 * limit + _MARGIN:
        return _start_of(text, to, limit, patterns=patterns)
    if not is_plain(text):
        if to == "model":  # a terminal sequence whose ends are escaped is not recognizable any more
            text = _masked(text, patterns=patterns)
        text = _CLEAN[to](text)
    text = _masked(text, patterns=patterns)
    return text if limit is None else shorten(text, limit)


def release_json(value: Any, *, to: Reader = "person", patterns: bool = False) -> Any:
    """Return a copy of a JSON value with all its texts released, in keys of objects too.

    Numbers that are registered secrets are masked. Containers that are nested more than 100 levels
    deep become an ellipsis. Values that are not JSON are kept.

    Args:
        value: The value.
        to: Who reads the value.
        patterns: Whether texts that look like secrets are masked too, and members of objects whose
            name is `password` or the like.
    """
    released = _released(value, to, _MAX_DEPTH)
    return mask_json(released) if patterns else released


def release_json_text(text: str) -> Any:
    """Return the value of a JSON text with all its texts released for a program.

    A large value without secrets takes one search of the text instead of one search per value.

    Raises:
        ValueError: The text is not valid JSON.
    """
    import json

    value = json.loads(text)
    has_surrogates = "\\ud" in text or "\\uD" in text
    if has_surrogates or mask_registered(text) is not text:
        return release_json(value, to="program")
    return value


class TextStream:
    """Releases a text that arrives in deltas, as `release_text` does for a whole text.

    The end of a delta is held back while it can be the start of a secret, of a terminal sequence or
    of a surrogate pair. It is returned with the next delta, or by `finish`.

    Args:
        to: Who reads the text.
    """

    __slots__ = ("_clean", "_matcher", "_raw", "_shown", "_tail")

    def __init__(self, to: Reader = "person") -> None:
        self._clean = _CLEAN[to]
        self._matcher: SecretMatcher = registered_matcher()
        self._raw = ""  # not cleaned yet: the start of a sequence or a pair
        self._tail = ""  # cleaned, and possibly the start of a secret
        self._shown = 0  # the number of characters of the tail that were returned

    def push(self, delta: str) -> str:
        """Add a delta, and return the text that can be shown now."""
        raw = self._raw + delta
        if not raw.isprintable():
            start = unfinished_start(raw)
            raw, self._raw = raw[:start], raw[start:]
            raw = self._clean(raw)
        else:
            self._raw = ""
        return self._mask(raw)

    def finish(self) -> str:
        """Return the text that was held back, because the text ends or pauses."""
        raw, self._raw = self._raw, ""
        shown = self._mask(self._clean(raw)) if raw else ""
        if self._shown < len(self._tail):
            shown += self._matcher.mask_end(self._tail, self._shown)
        self._tail, self._shown = "", 0
        return shown

    def _mask(self, text: str) -> str:
        self._matcher = registered_matcher()
        if not self._matcher.forms and not self._tail:
            return text
        whole = self._tail + text
        shown, hold, end = self._matcher.mask_beginning(whole, self._shown)
        self._tail, self._shown = whole[hold:], end - hold
        return shown


def release_ends(text: str, size: int, *, to: Reader = "model") -> str:
    """Return a text of which at least `size` characters are released at its start and its end.

    It is for a text that is then cut in the middle, so that not all of a large text is searched.

    Args:
        text: The text.
        size: The number of characters at each end.
        to: Who reads the text.
    """
    margin = max(_MARGIN, registered_matcher().longest)
    end = size + 2 * margin
    if len(text) <= 2 * end:
        return release_text(text, to=to)
    first, last = release_text(text[:end], to=to), release_text(text[-end:], to=to)
    if min(len(first), len(last)) < size + margin:  # part of a secret at a cut could be visible
        return release_text(text, to=to)
    return first + text[end:-end] + last


_MARGIN: Final = 1 << 16
"""The size, in characters, up to which a secret that looks like one is masked as a whole."""


def _start_of(text: str, to: Reader, limit: int, *, patterns: bool) -> str:
    """Return the bounded start of a text, if possible without reading all of it."""
    margin = max(_MARGIN, registered_matcher().longest)
    start = release_text(text[: 2 * limit + 2 * margin], to=to, patterns=patterns)
    if len(start) < limit + margin:  # the cut could be visible: cleaning and masks shorten texts
        start = release_text(text, to=to, patterns=patterns)
    return shorten(start, limit)


def _masked(text: str, *, patterns: bool) -> str:
    if patterns:
        return mask(text)
    return mask_registered(text) if has_secrets() else text


def _released(value: Any, to: Reader, depth: int) -> Any:
    if isinstance(value, str):
        return release_text(value, to=to)
    if isinstance(value, (int, float)):
        is_secret = not isinstance(value, bool) and is_secret_number(value)
        return MASK if is_secret else value
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if not depth:
        return "…"
    if isinstance(value, Mapping):
        released: dict[str, Any] = {}
        for key, member in cast("Mapping[Any, Any]", value).items():
            name = distinct_key(release_text(str(key), to=to), released)
            released[name] = _released(member, to, depth - 1)
        return released
    return [_released(item, to, depth - 1) for item in cast("list[Any]", value)]
