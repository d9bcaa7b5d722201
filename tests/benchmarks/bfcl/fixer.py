"""Corrects a call as the text of an error says, as a model would: it sees nothing else."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

__all__ = ["fixed"]

STEP = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|([^.\[\]]+)')
SUGGESTED = re.compile(r"did you mean ['\"]?(.+?)['\"]?\?")
UNKNOWN = re.compile(r"\b(unknown|unexpected|additional|extra)\b", re.IGNORECASE)
EXPECTED = re.compile(r"\b(?:expected|should be|one of)\b(.*?)(?:, got |\[type=|$)", re.IGNORECASE)
VALUE = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*'|-?\d[\d.]*|\btrue\b|\bfalse\b)""")


def fixed(arguments: dict[str, Any], error: str) -> dict[str, Any]:
    """Return corrected arguments: unknown keys renamed or removed, values replaced by listed ones.

    Args:
        arguments: The arguments of the call that failed.
        error: The text of its error: a line for each problem, with the place before a colon, or
            with the place alone in the line above.
    """
    result = deepcopy(arguments)
    for line in re.sub(r"\n +", ": ", error).splitlines():
        where, _, problem = line.removeprefix("- ").partition(": ")
        holder, key = _find(result, where)
        if holder is None:
            continue
        if suggested := SUGGESTED.search(problem):
            value = holder.pop(key)
            holder.setdefault(suggested[1], value)
        elif expected := EXPECTED.search(problem):
            values = [json.loads(re.sub(r"^'|'$", '"', one)) for one in VALUE.findall(expected[1])]
            if values:
                named = {str(one): one for one in values}
                holder[key] = named[get_close_matches(str(holder[key]), named, 1, cutoff=0)[0]]
        elif UNKNOWN.search(problem):
            del holder[key]
    return result


def _find(value: Any, where: str) -> tuple[Any, Any]:
    """Return the object or array with the value at a place, and its key there."""
    holder, key = None, None
    for quoted, plain in STEP.findall(where):
        holder, key = value, json.loads(f'"{quoted}"') if quoted else plain
        if isinstance(holder, list) and plain.isdigit() and int(plain) < len(holder):
            key = int(plain)
        elif not isinstance(holder, dict) or key not in holder:
            return None, None
        value = holder[key]
    return holder, key
