"""The frame of the campaign: whatever goes wrong in a campaign's process is a finding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.soak import __main__ as program, _planted, _process, _report
from tests.soak._process import Ran, run
from tests.soak._report import as_json, written
from tests.soak.campaign import Budget, Outcome, find, names

_LONG = 30.0
_PAGE = "Before.\n\n<!-- campaign: begin -->\nstale figures\n<!-- campaign: end -->\n\nAfter.\n"
_HEARD: dict[str, str] = {
    "_fail": "the campaign itself is broken",
    "_lose_an_exception": "Task exception was never retrieved",
    "_forget_to_await": "was never awaited",
    "_forget_a_file": "ResourceWarning: unclosed file",
    "_fail_in_a_thread": "a thread ended with an exception",
    "_fail_in_a_finalizer": "unraisable exception",
    "_leave_a_process": "was left: ",
}


def _planted_way(name: str) -> int:
    return next(place for place, way in enumerate(_planted.WAYS) if way.__name__ == name)


def _ran(name: str, seconds: float = _LONG) -> Ran:
    return run(_planted.CAMPAIGN, Budget(seconds=seconds, seed=_planted_way(name)))


@pytest.mark.parametrize(("way", "said"), _HEARD.items(), ids=_HEARD)
def test_what_goes_wrong_beside_a_campaign_is_a_finding(
    way: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost exception or a leaked process is what nobody looks for: the frame has to."""
    monkeypatch.setattr(_process, "_LINGER", 0.2)
    found = _ran(way).outcome.findings

    assert [said in finding.what for finding in found] == [True]
    assert found[0].reproduce == (
        f"python -m tests.soak --only _planted --seconds 30 --seed {_planted_way(way)}"
    )


def test_a_campaign_that_finds_nothing_is_told_with_its_figures() -> None:
    """What is clean must say so: cases, figures, no findings."""
    assert _ran("_fine").outcome == Outcome(cases=1, figures={"ways": len(_planted.WAYS)})


def test_a_campaign_that_hangs_is_ended_and_shows_where_it_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hang is the worst of findings: the stacks must tell which wait it was."""
    monkeypatch.setattr(_process, "_GRACE", 4.0)
    ran = _ran("_hang", seconds=0.3)

    [finding] = ran.outcome.findings
    assert finding.what.startswith("it hangs")
    assert "waits_for_nobody" in finding.what, "the task is shown"
    assert "Current thread" in finding.what or "Thread 0x" in finding.what, "so are the threads"


def test_every_campaign_is_found_by_the_name_of_its_module() -> None:
    """A campaign in a module is plugged in by that alone; what begins with `_` is none."""
    campaigns = find()

    assert {"leaks", "races", "kills"} <= {campaign.name for campaign in campaigns}
    assert all(campaign.name in names() for campaign in campaigns)
    assert all(campaign.about.endswith(".") and campaign.weight > 0 for campaign in campaigns)
    with pytest.raises(ValueError, match=r"_report.py shows no CAMPAIGN"):
        find(["_report"])


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program know no campaign but the planted one."""
    monkeypatch.setattr(program, "find", lambda only: [_planted.CAMPAIGN])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]


@pytest.mark.usefixtures("planted")
def test_the_program_prints_a_table_and_ends_with_one_when_something_is_found(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A job of a machine sees the exit code, a person the table, a program the JSON."""
    to = tmp_path / "seen.json"
    finds = str(len(_planted.WAYS))

    assert program.main(["--seconds", "30", "--seed", "0"]) == 0
    assert program.main(["--seconds", "30", "--seed", finds, "--json", str(to)]) == 1

    assert "FOUND here: odd" in capsys.readouterr().out
    seen = json.loads(to.read_text())["campaigns"]["_planted"]
    assert (seen["cases"], len(seen["findings"])) == (1, 1)


@pytest.mark.usefixtures("planted")
def test_the_program_puts_the_figures_into_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The published figures are those of a run, and nobody copies them by hand."""
    page = tmp_path / "page.md"
    page.write_text(_PAGE)
    monkeypatch.setattr(program, "PAGE", page)

    assert program.main(["--seconds", "30", "--seed", "0", "--write"]) == 0
    assert program.main(["--only", "races", "--write"]) == 2, "a part of the figures is not all"

    text = page.read_text()
    assert text.startswith("Before.\n\n<!-- campaign: begin -->\n\n*20")
    assert "| `_planted` | 1 |" in text
    assert "| ways | 9 |" in text
    assert "stale" not in text
    assert text.endswith("<!-- campaign: end -->\n\nAfter.\n")
    assert "drop --only" in capsys.readouterr().err


def test_a_page_without_its_marks_is_told_of() -> None:
    """Figures that are written nowhere would be missed by nobody."""
    with pytest.raises(ValueError, match="lacks the marks"):
        written("# A page\n", as_json([], seed=1))


def test_the_page_has_its_marks() -> None:
    """`--write` fills the page that is published."""
    assert written(_report.PAGE.read_text(encoding="utf-8"), as_json([], seed=1))
