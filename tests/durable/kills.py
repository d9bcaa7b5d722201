"""Kills a run at each of its moments, and holds what is promised against what happened."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Victims", "check", "chosen", "victims"]

HARMLESS = {"look", "stamp"}
CALLS = {"c_pay": "pay", "c_look": "look", "c_pay2": "pay", "c_stamp": "stamp", "h_post": "post"}


class Victims:
    """Starts processes that carry the run on."""

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        self._program = program

    def begin(self, *command: Any) -> int:
        """Start one; give its pid."""
        assert self._program.stdin is not None
        self._program.stdin.write(json.dumps(command).encode() + b"\n")
        self._program.stdin.flush()
        return int(self.line()["pid"])

    def line(self) -> Any:
        """Give the next thing that it says."""
        assert self._program.stdout is not None
        return json.loads(self._program.stdout.readline())

    def carry_on(
        self, spec: str, folder: Path, fatal: int = 0, at_once: int | None = None
    ) -> dict[str, Any] | None:
        """Carry the run on; give how it ended, or nothing if it was killed at that moment."""
        self.begin("carry_on", spec, str(folder), fatal, at_once)
        said = self.line()
        if said == "dead":
            return None
        assert self.line() == "dead"
        return said


@contextmanager
def victims() -> Generator[Victims]:
    """Start the program that starts them, and end it."""
    with subprocess.Popen(  # noqa: S603 - this very program
        [sys.executable, str(Path(__file__).with_name("victim.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        try:
            yield Victims(program)
        finally:
            assert program.stdin is not None
            program.stdin.close()
            program.wait(10)


def check(folder: Path, ended: dict[str, Any]) -> None:
    """Hold how a run ended against what it did in the world."""
    lines = [json.loads(line) for line in (folder / "effects").read_text().splitlines()]
    lives = [json.loads(line) for line in (folder / "killed").read_text().splitlines()]
    assert ended["output"] == "All done."
    assert (ended["usage"]["requests"], ended["usage"]["input_tokens"]) == (5, 35)
    keys = [line["key"] for line in lines if "key" in line]
    effects = Counter(key.replace("/", ":").rpartition(":")[2] for key in keys)
    assert len(set(keys)) <= len(CALLS)
    for call_id, tool in CALLS.items():
        cut = [life for life in lives if _is_open(life, call_id)]
        if tool in HARMLESS:
            assert ended["statuses"][call_id] == "ok" or len(cut) > 1  # made again once
            assert len(cut) > 1 or effects[call_id] >= 1
            assert effects[call_id] <= 2
            continue
        assert effects[call_id] <= 1
        is_sure = any(_is_of(life[-1], call_id) and life[-1].endswith(_SURE) for life in cut)
        if call_id in ended["statuses"]:
            lost = ended["statuses"][call_id] == "lost"
            assert lost if is_sure else lost <= bool(cut)
            assert lost or effects[call_id] == 1
        else:
            assert effects[call_id] == 1 or cut
    asked = Counter((line["model"], line["after"]) for line in lines if "model" in line)
    assert set(asked) == {("Boss", 0), ("Boss", 3), ("Boss", 5), ("Helper", 0), ("Helper", 1)}
    assert sum(asked.values()) <= 5 + sum(_is_open(life, "model/") for life in lives)


def chosen(moments: list[str], *, finely: bool) -> list[int]:
    """Give the number of one moment of each kind.

    Args:
        moments: What a process passes by.
        finely: Whether each tool, and what is done inside an agent, is a kind of its own.
    """
    kinds: dict[str, int] = {}
    for number, moment in enumerate(moments, 1):
        step, _, phase = moment.rpartition(" ")
        call = re.findall(r"[ch]_[a-z]+", step)[-1:]
        what = "".join(call) if call and "model/" not in step else "model" if step else ""
        if not finely:
            what = "call" if call and "model/" not in step else what
        elif call and "model/" in step:
            what = "inner model"
        kinds.setdefault(f"{what} {phase}", number)
    return sorted(kinds.values())


_SURE = (" marked", " before", " after", " made")


def _is_open(life: list[str], what: str) -> bool:
    """Whether a process ended between the beginning of a step and its end."""
    names = [name for name in life if _is_of(name, what)]
    return sum(name.endswith(" next") for name in names) > sum(
        name.endswith(" kept") for name in names
    )


def _is_of(moment: str, what: str) -> bool:
    if what == "model/":
        return what in moment
    return moment.startswith(f"{what} ") or f"/{what}." in moment
