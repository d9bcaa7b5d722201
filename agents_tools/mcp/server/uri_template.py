"""URI templates of resources, in the form of RFC 6570 level 1 and `{path*}`."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final
from urllib.parse import unquote

from agents_tools.errors import UserValueError

__all__ = ["UriTemplate"]

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r"([A-Za-z_]\w*)(\*?)")


class UriTemplate:
    """A URI in which names in braces stand for parts of it.

    `{id}` stands for one or more characters without `/`, `?` and `#`; `{path*}` for any. The values
    are percent-decoded, so they can contain any character: check a path before you open it.

    Args:
        text: The URI, such as `guide://{topic}/{page}` or `file:///{path*}`.

    Raises:
        UserError: The URI has no scheme, or its braces do not contain names.
    """

    def __init__(self, text: str) -> None:
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
            raise UserValueError(
                f"The URI of a resource is not valid: expected a scheme, such as docs://{{page}}, "
                f"got {text!r:.100}."
            )
        found = [_NAME.fullmatch(name) for name in _VARIABLE.findall(text)]
        names = [match[1] for match in found if match is not None]
        rest = _VARIABLE.sub("", text)
        if None in found or len(set(names)) < len(names) or "{" in rest or "}" in rest:
            raise UserValueError(
                f"The URI of a resource is not valid: expected different names in braces, such as "
                f"{{id}} or {{path*}}, got {text!r:.100}."
            )
        self.text = text
        self.names = tuple(names)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = [
            f"(?P<{match[1]}>{'.+' if match[2] else '[^/?#]+'})"
            for match in map(_NAME.fullmatch, _VARIABLE.findall(self.text))
            if match is not None
        ]
        literals = [re.escape(part) for part in _VARIABLE.split(self.text)[::2]]
        joined = "".join(a + b for a, b in zip(literals, [*parts, ""], strict=True))
        return re.compile(joined, re.DOTALL)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded values of the names in a URI; `None` if it has another form."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else {k: unquote(v) for k, v in found.groupdict().items()}
