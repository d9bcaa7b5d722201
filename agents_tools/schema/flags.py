"""Flags: enumerations whose members can be combined, described by the numbers that they accept."""

from __future__ import annotations

import enum
from typing import Any

__all__ = ["flag_json", "flag_mask", "listed_flags"]

Schema = dict[str, Any]


def flag_mask(schema: Schema) -> int:
    """Return the sum of all members of a flag; 0 for other enumerations."""
    if not issubclass(schema["cls"], enum.Flag):
        return 0
    mask = 0
    for member in schema["members"]:
        mask |= member.value
    return max(mask, 0)


def listed_flags(mask: int) -> list[int]:
    """Return the combinations of flags if bounds do not describe them and they are few."""
    bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
    if mask.bit_length() == len(bits) or len(bits) > _MAX_LISTED:
        return []
    values = [0]
    for bit in bits:
        values += [value | bit for value in values]
    return values


def flag_json(schema: Schema) -> Schema:
    """Return the JSON Schema of a flag: any combination of its members."""
    mask = flag_mask(schema)
    members = ", ".join(f"{member.value} = {member.name}" for member in schema["members"])
    listed = listed_flags(mask)
    return {
        "type": "integer",
        **({"enum": listed} if listed else {"minimum": 0, "maximum": mask}),
        "title": schema["cls"].__name__,
        "description": f"A sum of flags: {members}.",  # pydantic prefers a docstring
    }


_MAX_LISTED = 6
