"""Read the front matter of a file: the YAML between two lines `---` at its start.

PyYAML (extra `skills`) reads it, restricted to JSON values: untrusted files need no tags, no
anchors, which can expand to gigabytes, and no `no` as a boolean.
"""

from __future__ import annotations

import functools
import re
from importlib import import_module
from typing import Any, ClassVar, cast

from agents_tools.errors import UserError
from agents_tools.text.escape import describe_value

__all__ = ["FrontMatterError", "read_front_matter"]

_MOST = 64 * 1024
_DEEPEST = 16


class FrontMatterError(ValueError):
    """Front matter that cannot be read; the message names the line."""


def read_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Read the fields at the start of a file.

    Args:
        text: The whole file.

    Returns:
        The fields, as JSON values, and the text after them.

    Raises:
        FrontMatterError: There is no front matter, or it cannot be read.
        UserError: PyYAML is not installed.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise FrontMatterError("line 1: the file must start with a line `---`")
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
    if end is None:
        raise FrontMatterError("the line `---` that ends the front matter is missing")
    if sum(map(len, lines[:end])) > _MOST:
        raise FrontMatterError(f"the front matter is longer than {_MOST:,} characters")
    return _fields("\n".join([*lines[1:end], ""])), "\n".join(lines[end + 1 :]).strip("\n")


def _fields(text: str) -> dict[str, Any]:
    try:
        yaml: Any = import_module("yaml")
    except ImportError:
        raise UserError(
            'Skills require PyYAML for their front matter: pip install "agents-tools[skills]".'
        ) from None
    try:
        fields = _loader(yaml)(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f"line {mark.line + 2}: "
        raise FrontMatterError(f"{line}{_reason(error.problem)}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise FrontMatterError(f"line 2: {str(error).partition(chr(10))[0]}") from None
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        raise FrontMatterError(f"line 2: expected fields, got {describe_value(fields)}")
    return cast("dict[str, Any]", fields)


def _reason(problem: str | None) -> str:
    if problem == "mapping values are not allowed here":
        return "a text that contains a colon and a space must be quoted"
    return problem or "it is not YAML"


@functools.cache
def _loader(yaml: Any) -> Any:
    """Return a safe loader that accepts only JSON values."""

    def refused(at: Any, why: str) -> Exception:
        return yaml.MarkedYAMLError(None, None, why, at.start_mark)

    base: Any = yaml.SafeLoader

    class JsonLoader(base):  # type: ignore[misc]
        """The safe loader with the plain values of JSON, without aliases and repeated fields."""

        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}
        _depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()
            if event.anchor is not None:
                raise refused(event, "anchors and aliases are not supported")
            self._depth += 1
            if self._depth > _DEEPEST:
                raise refused(event, "it is nested too deeply")
            try:
                return base.compose_node(self, parent, index)
            finally:
                self._depth -= 1

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            del deep  # always deep: values are constructed immediately
            fields: dict[str, Any] = {}
            for key, value in node.value:
                if not isinstance(key.value, str) or key.value == "<<":
                    raise refused(key, "the name of a field must be a text")
                if key.value in fields:
                    raise refused(key, f"the field {describe_value(key.value)} is repeated")
                fields[key.value] = self.construct_object(value, deep=True)
            return fields

    for kind, pattern, first in _PLAIN:
        expression = re.compile(f"^(?:{pattern})$")
        JsonLoader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", expression, first)
    return JsonLoader


_PLAIN = (
    ("bool", r"true|false|True|False", list("tfTF")),
    ("null", r"~|null|", ["~", "n", ""]),
    ("int", r"-?(0|[1-9][0-9]{0,300})", list("-0123456789")),
    ("float", r"-?(0|[1-9][0-9]{0,300})(\.[0-9]+)?([eE][-+]?[0-9]+)?", list("-0123456789")),
)
"""The plain texts that are not strings, with their first characters."""
