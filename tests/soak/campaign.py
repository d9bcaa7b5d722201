"""The records of a campaign: how long it runs, and each guarantee that it found violated."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Budget", "Figures", "Finding", "Outcome"]

Figures = dict[str, int | float | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How long a campaign runs, and the seed of its random choices.

    Attributes:
        seconds: The time after which no new case starts.
        seed: The seed of all random choices.
    """

    seconds: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One violated guarantee.

    Attributes:
        what: The observed behavior.
        where: The part of the library, or the case of the campaign.
        reproduce: A command or a program that shows it again.
    """

    what: str
    where: str
    reproduce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a campaign.

    Attributes:
        cases: How many cases ran.
        findings: The violated guarantees.
        figures: Measurements by name.
    """

    cases: int
    findings: list[Finding] = field(default_factory=list[Finding])
    figures: Figures = field(default_factory=Figures)
