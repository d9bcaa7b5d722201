"""Rules about descriptions: what a model does not find in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from agents_tools.toolset.lint.docstrings import unknown_in_docstring
from agents_tools.toolset.lint.obvious import explains_itself
from agents_tools.toolset.words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.toolset.lint.finding import Subject

__all__ = ["check_descriptions", "check_pedantic"]

_PLACEHOLDER = re.compile(
    r"(?:todo|tbd|fixme|xxx|n/?a|none|null|undefined|\.{3}|-+|lorem ipsum.*|\[object object\]"
    r"|(?:add |your |the )?(?:tool |parameter )?description(?: here)?)[.:]?",
    re.IGNORECASE | re.DOTALL,
)


def check_descriptions(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report descriptions that are missing or say nothing.

    Args:
        subject: The tool.
    """
    text = subject.description
    if not text:
        remedy = subject.remedy("write a docstring", "write one")
        yield "no-description", f"has no description, by which models select tools: {remedy}"
    elif _PLACEHOLDER.fullmatch(text):
        yield "placeholder", f"has the placeholder {text[:40]!r} as its description: write one"
    elif _repeats_name(subject.name, text):
        message = f"has the description {text[:80]!r}, which only repeats the name"
        yield "name-as-description", f"{message}: add when to use it and its result"
    yield from _undescribed(subject)
    yield from _unknown(subject)


def _repeats_name(name: str, text: str) -> bool:
    """Return whether each word of a description is in the name."""
    words = set(words_of(text))
    return words <= set(words_of(name)) and bool(words)


def _undescribed(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report parameters that neither the schema nor the description of the tool explains."""
    explained = {run.casefold() for run in _IDENTIFIER.findall(subject.description)}
    words = {*words_of(subject.description), *_PREPOSITIONS}
    missing: list[str] = []
    for name in subject.parameters:
        text = subject.text_of(name)
        if _PLACEHOLDER.fullmatch(text):
            yield (
                "placeholder",
                f"parameter {name!r} has the placeholder {text[:40]!r}: describe it",
            )
        elif (
            not text
            and name[:1] != "_"
            and name.casefold() not in explained
            and not words >= set(words_of(name))
            and not explains_itself(subject, name, words)
        ):
            missing.append(name)
    if missing:
        names = ", ".join(map(repr, missing[:_MAX_NAMES]))
        more = len(missing) - _MAX_NAMES
        names += f" and {more} more" if more > 0 else ""
        one = len(missing) == 1
        verb, object_ = ("parameter {} has", "it") if one else ("parameters {} have", "them")
        remedy = subject.remedy(
            f"add {object_} to the docstring's Args", f"describe {object_} in the schema"
        )
        yield "no-parameter-description", f"{verb.format(names)} no description: {remedy}"


_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_PREPOSITIONS = frozenset({"per", "within"})
_MAX_NAMES = 5


def _unknown(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report parameters that the description documents, but the schema does not define."""
    for name in unknown_in_docstring(subject.tool)[0]:
        yield "unknown-parameter", _UNKNOWN.format(name)
    if not subject.parameters:
        return
    known = {_plain(name) for name in subject.parameters}
    known |= {_plain(name) for schema in subject.parameters.values() for name in _inner(schema)}
    for name in subject.documented:
        if _plain(name) not in known:
            yield "unknown-parameter", _UNKNOWN.format(name)


_UNKNOWN = "documents the parameter {!r}, which does not exist: correct the name or remove it"


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def _inner(schema: object) -> Iterator[str]:
    """Yield the names of the properties inside of a schema."""
    if isinstance(schema, list):
        for one in cast("list[object]", schema):
            yield from _inner(one)
    elif isinstance(schema, dict):
        found = cast("dict[str, object]", schema)
        properties = found.get("properties")
        if isinstance(properties, dict):
            yield from cast("dict[str, object]", properties)
        for value in found.values():
            yield from _inner(value)


# --- what good descriptions have; off by default

_RESULT = re.compile(
    r"\b(?:return|output|result|respon[sd]|yield|produc|give|provid|get|fetch|retriev|list|show"
    r"|creat|generat|convert|calculat|find|search|read)\w*",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\b(?:error|fail|rais|exception|invalid|not found|missing|unless|must)\w*", re.IGNORECASE
)
_EXAMPLE = re.compile(r"\be\.g\.|\bfor example\b|\bexamples?\b|\bsuch as\b|[\"'`]\w", re.IGNORECASE)
_COMPLEX = 4
"""The number of parameters from which a tool should have an example."""


def check_pedantic(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report what good descriptions have and many useful ones do not.

    Args:
        subject: The tool.
    """
    text = subject.description
    if not _RESULT.search(text) and subject.tool.output_json_schema is None:
        yield "no-result", "does not say what it returns"
    if not _FAILURE.search(text):
        yield "no-errors", "does not say when it fails"
    texts = " ".join([text, *map(subject.text_of, subject.parameters)])
    has_examples = any("examples" in schema for schema in subject.parameters.values())
    if len(subject.parameters) >= _COMPLEX and not has_examples and not _EXAMPLE.search(texts):
        yield "no-example", f"has {len(subject.parameters)} parameters and no example"
