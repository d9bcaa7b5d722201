"""What a campaign is: a promise, a way to try it many times, and what was found on the way."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests import soak

__all__ = ["Budget", "Campaign", "Figures", "Finding", "Outcome", "find", "names"]

Figures = dict[str, int | float | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a campaign may take, and where its choices come from.

    Attributes:
        seconds: How long it may run; a campaign that takes three times as long hangs.
        seed: The seed of all its choices.
    """

    seconds: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken promise.

    Attributes:
        what: What was seen, against what is promised.
        where: The part of the library, or the case of the campaign.
        reproduce: How to see it again: a command or a program.
    """

    what: str
    where: str
    reproduce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a campaign saw.

    Attributes:
        cases: How many cases it tried.
        findings: The broken promises.
        figures: What was measured, by name.
    """

    cases: int
    findings: list[Finding] = field(default_factory=list[Finding])
    figures: Figures = field(default_factory=Figures)


def _nothing() -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """One way to try what is promised, as a module `tests/soak/<name>.py` shows it in `CAMPAIGN`.

    Attributes:
        name: The name of the module.
        about: What is tried, in one sentence for the report.
        weight: Its share of the time of all campaigns.
        run: Tries it within a budget.
        needs: Gives the reason why it cannot run here, if there is one.
    """

    name: str
    about: str
    weight: float
    run: Callable[[Budget], Outcome]
    needs: Callable[[], str | None] = _nothing


def names() -> list[str]:
    """Name the modules that may hold a campaign, in order."""
    found = (module.name for module in pkgutil.iter_modules(soak.__path__))
    return sorted(
        name for name in found if not name.startswith(("_", "test_")) and name != "campaign"
    )


def find(only: Sequence[str] = ()) -> list[Campaign]:
    """Give the campaigns with these names, or all there are.

    Raises:
        ValueError: One of the names belongs to no campaign.
    """
    modules = [importlib.import_module(f"tests.soak.{name}") for name in only or names()]
    held = {module.__name__.rpartition(".")[2]: vars(module).get("CAMPAIGN") for module in modules}
    campaigns = [campaign for campaign in held.values() if isinstance(campaign, Campaign)]
    for name in only:
        if not isinstance(held[name], Campaign):
            raise ValueError(f"tests/soak/{name}.py shows no CAMPAIGN.")  # noqa: TRY004 - a wrong name
    return campaigns
