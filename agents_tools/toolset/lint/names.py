"""Rules about names and purposes: which tools a model confuses."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from agents_tools.toolset.words import RUN, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools.toolset.lint.finding import Level, Subject, Tool

__all__ = ["duplicate_names", "name_parts", "overlaps", "similar_names", "vague_names"]

_VERBS = frozenset(
    re.findall(
        r"\w+",
        "apply call change check compute create delete do edit execute fetch find generate get "
        "handle insert invoke list load make open perform process put query read remove run save "
        "search send set show start stop submit update upload use view write",
    )
)


def vague_names(subjects: Sequence[Subject]) -> Iterator[tuple[Subject, str]]:
    """Yield tools whose name is only a verb.

    Args:
        subjects: The tools.
    """
    connectors = _connectors(subjects)
    for subject in subjects:
        runs = name_parts(subject.name)
        if len(runs) != 1 or runs[0] not in _VERBS:
            continue
        if subject.name in _CONNECTOR and subject.tool.origin.server in connectors:
            continue
        message = f"is named {subject.name!r}, a verb without an object"
        yield subject, f"{message}: add what it works on, as in search_papers"


_CONNECTOR = {"search": "query", "fetch": "id"}
"""The tools that ChatGPT requires of a connector by these names, with their parameters."""


def _connectors(subjects: Sequence[Subject]) -> set[str | None]:
    """Return the servers that have both tools of a connector."""
    found: dict[str | None, set[str]] = defaultdict(set)
    for subject in subjects:
        if _CONNECTOR.get(subject.name) in subject.required:
            found[subject.tool.origin.server].add(subject.name)
    return {server for server, names in found.items() if names == _CONNECTOR.keys()}


def duplicate_names(tools: Sequence[Tool]) -> Iterator[tuple[Tool, Level, str]]:
    """Yield a tool of each name that several tools have, the level and the message.

    Args:
        tools: The tools.
    """
    by_name: dict[str, list[Tool]] = defaultdict(list)
    for tool in tools:
        by_name[tool.name].append(tool)
    for same in by_name.values():
        if len(same) == 1:
            continue
        servers = [tool.origin.server for tool in same]
        if None not in servers and len(set(servers)) == len(servers):
            # Clients that add the name of the server to each name keep them apart.
            names = sorted(map(str, servers))
            where = ", ".join(names[:_SHOWN_SERVERS]) + ", …" * (len(names) > _SHOWN_SERVERS)
            message = f"{len(same)} servers have a tool with this name ({where}): add a prefix"
            yield same[0], "warning", message
        else:
            yield (
                same[0],
                "error",
                f"{len(same)} tools have this name, which providers refuse: rename them",
            )


def similar_names(subjects: Sequence[Subject]) -> Iterator[tuple[Subject, str]]:
    """Yield pairs of tools of one source whose names have the same words.

    Args:
        subjects: The tools.
    """
    by_words: dict[tuple[str | None, tuple[str, ...]], list[Subject]] = defaultdict(list)
    for subject in subjects:
        words = _name_words(subject.name)
        if words:
            by_words[subject.tool.origin.server, words].append(subject)
    for group in by_words.values():
        first = group[0]
        for other in group[1:]:
            # "get_story" and "get_stories" are a convention that models know.
            if other.name != first.name and len(name_parts(first.name)) > _SIMPLE:
                message = (
                    f"{first.name!r} and {other.name!r} are easily confused: rename one, or say "
                )
                yield other, f"{message}in both descriptions when to use which"


_SIMPLE = 2
_SHOWN_SERVERS = 4


def _name_words(name: str) -> tuple[str, ...]:
    return tuple(sorted(word for part in name_parts(name) for word in words_of(part)))


def name_parts(name: str) -> list[str]:
    """Return the parts of a name in snake case, camel case or with hyphens, in lower case.

    Args:
        name: The name.
    """
    return [run.casefold() for run in RUN.findall(_CAMEL.sub("_", name))]


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


# --- overlapping purposes

_MIN_WORDS = 4
_SAME = 0.8
"""The share of the words of both descriptions that two tools with one purpose have in common."""
_MAX_COMPARED = 50
"""The number of tools that a tool is compared with, however common its rarest word is."""


def overlaps(subjects: Sequence[Subject]) -> Iterator[tuple[Subject, str]]:
    """Yield tools whose description has no word that is not in the one of another tool.

    Args:
        subjects: The tools.
    """
    words = [frozenset(words_of(_purpose(subject.description))) for subject in subjects]
    places: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(words):
        for word in found:
            places[word].append(place)
    reported: set[frozenset[int]] = set()
    for place, found in enumerate(words):
        if len(found) < _MIN_WORDS:
            continue
        # Each description with all of these words has the rarest one.
        rarest = min(found, key=lambda word: (len(places[word]), word))
        for other in places[rarest][:_MAX_COMPARED]:
            pair = frozenset((place, other))
            is_new = len(pair) > 1 and pair not in reported
            if is_new and found <= words[other] and _is_same(subjects[place], subjects[other]):
                reported.add(pair)
                message = f"has the same purpose as {subjects[other].name!r}, by their descriptions"
                yield subjects[place], f"{message}: say in both when to use which"
                break


def _is_same(one: Subject, other: Subject) -> bool:
    """Return whether two descriptions are the same but for words that the names do not have."""
    if one.name == other.name:
        return False  # another rule reports it
    first, second = (set(words_of(_purpose(each.description))) for each in (one, other))
    names = set(_name_words(one.name)) ^ set(_name_words(other.name))
    return names.isdisjoint(first ^ second) and len(first & second) >= _SAME * len(first | second)


def _purpose(description: str) -> str:
    """Return the first paragraph of a description, at most 300 characters."""
    return description.strip().partition("\n\n")[0][:300]
