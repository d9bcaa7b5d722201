"""Say what campaigns saw: on the terminal, as JSON, and in the documentation."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.soak._process import Ran
    from tests.soak.campaign import Figures

__all__ = ["PAGE", "as_json", "row", "written"]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "reliability.md"
_BEGIN = "<!-- campaign: begin -->"
_END = "<!-- campaign: end -->"


def row(name: str, cases: object, seconds: object, findings: object) -> str:
    """Lay out one row of the table on the terminal."""
    shown = f"{seconds:.1f}" if isinstance(seconds, float) else str(seconds)
    return f"{name:<20} {cases!s:>10} {shown:>9} {findings!s:>9}"


def as_json(ran: Sequence[Ran], seed: int) -> dict[str, Any]:
    """Give all that was seen as plain data."""
    return {
        "made": _made(),
        "seed": seed,
        "campaigns": {
            one.campaign.name: {
                "about": one.campaign.about,
                "seconds": round(one.seconds, 1),
                **asdict(one.outcome),
            }
            for one in ran
        },
    }


def written(page: str, told: dict[str, Any]) -> str:
    """Put what was seen into a page, between its two marks.

    Raises:
        ValueError: The page lacks the marks.
    """
    before, begun, rest = page.partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    if not begun or not ended:
        raise ValueError(f"The page lacks the marks {_BEGIN} and {_END}.")
    return f"{before}{_BEGIN}\n\n{_as_text(told)}\n\n{_END}{after}"


def _as_text(told: dict[str, Any]) -> str:
    campaigns: dict[str, dict[str, Any]] = told["campaigns"]
    rows = [
        f"| `{name}` | {one['cases']:,} | {one['seconds']:.0f} s | {len(one['findings'])} |"
        for name, one in campaigns.items()
    ]
    head = ["| campaign | cases | time | findings |", "|---|--:|--:|--:|"]
    parts = [f"*{told['made']}; seed {told['seed']}.*", "\n".join([*head, *rows])]
    parts += [
        f"**`{name}`**: {one['about']}\n\n{_figures(one['figures'])}"
        for name, one in campaigns.items()
    ]
    return "\n\n".join(parts)


def _figures(figures: Figures) -> str:
    if not figures:
        return ""
    rows = [f"| {name} | {_number(value)} |" for name, value in figures.items()]
    return "\n".join(["| figure | value |", "|---|--:|", *rows])


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _made() -> str:
    day = datetime.now(UTC).date().isoformat()
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{day}, CPython {platform.python_version()}, {machine}"
