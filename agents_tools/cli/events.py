"""`events`: list, show, follow, replay and export the events of a run store."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import click

from agents_tools.cli.errors import CommandError
from agents_tools.cli.events_runs import run_called, when
from agents_tools.cli.events_store import chosen, opened
from agents_tools.cli.events_text import UNREADABLE, markdown, timeline, tree
from agents_tools.cli.options import json_option
from agents_tools.cli.output import can_show, paint, print_json, say
from agents_tools.telemetry.timeline import chrome_trace
from agents_tools.text.output import release_json, release_text
from agents_tools.ui._format import seconds

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from typing import TextIO

    from agents_tools.cli.events_runs import RecordedRun
    from agents_tools.cli.events_store import StoredEvents, StoredSession
    from agents_tools.events.base import Event

__all__ = ["command"]

_EPILOG = (
    "\b\n"
    "PLACE is the file of a SQLiteRunStore, or a postgresql:// or redis:// address.\n"
    "SESSION is a session or a run without one. It can be omitted if there is only one.\n"
    "  agents-tools events list runs.db\n"
    "  agents-tools events show runs.db chat --timeline\n"
    "  agents-tools events follow runs.db chat\n"
    "  agents-tools events replay runs.db chat --speed 4\n"
    "  agents-tools events export runs.db chat --as markdown"
)
_MANY = 20
"""The number of runs of a session that `list` shows without `--all`."""
_STEP = 1000
"""The factor between units of size."""


@click.group("events", epilog=_EPILOG)
def command() -> None:
    """List, show, follow, replay and export the events of a run store."""


@command.command("list", epilog=_EPILOG)
@click.argument("place")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help=f"Show all runs, not only the last {_MANY} of each session.",
)
@json_option
def list_command(place: str, *, everything: bool, as_json: bool, debug: bool) -> None:
    """List the sessions of PLACE and their runs."""
    del debug
    with opened(place) as source:
        records = [_described(source, one) for one in source.sessions()]
    if as_json:
        print_json(records, compact=True)
        return
    for record in records:
        _print_session(record, most=None if everything else _MANY)
    if not records:
        say(f"There are no events in {place}.")


@command.command("show", epilog=_EPILOG)
@click.argument("place")
@click.argument("session", required=False)
@click.option("--run", "run", metavar="ID", help="Only this run; the start of its id is enough.")
@click.option("--timeline", "as_timeline", is_flag=True, help="A line for each event, not a tree.")
@json_option
def show_command(
    place: str,
    session: str | None,
    *,
    run: str | None,
    as_timeline: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Show the events of a session, or of one of its runs, as a tree."""
    del debug
    with opened(place) as source:
        known = chosen(source, place, session)
        events = source.events_of(known, _run_named(source, known, run))
    if as_json:
        wires = [event.to_dict() for event in events]
        print_json({"session": known.name, "events": wires}, compact=True)
        return
    plain = not can_show("├─└│", sys.stdout)
    for line in timeline(events) if as_timeline else tree(events, plain=plain):
        click.echo(release_text(line))


@command.command("follow", epilog=_EPILOG)
@click.argument("place")
@click.argument("session", required=False)
@click.option("--run", "run", metavar="ID", help="This run instead of the last one.")
@click.option(
    "--events",
    "view",
    type=click.Choice(["auto", "live", "plain", "ndjson", "none"]),
    default="auto",
    metavar="VIEW",
    help="How to show events: auto (live on a terminal, else plain), live, plain, ndjson, none.",
)
@json_option
def follow_command(
    place: str, session: str | None, *, run: str | None, view: str, as_json: bool, debug: bool
) -> None:
    """Show the events of the last run of a session while they are stored, until the run ends.

    Output goes to standard error, or with --json and the view `ndjson` to standard output.
    """
    del debug
    with opened(place) as source:
        known = chosen(source, place, session)
        selected = _run_named(source, known, run)
        log = known.logs[-1] if selected is None else selected.log
        events = ((event, 0.0) for event in source.follow(log))
        _present(events, "ndjson" if as_json else view, status="ok")


@command.command("replay", epilog=_EPILOG)
@click.argument("place")
@click.argument("session", required=False)
@click.option("--run", "run", metavar="ID", help="Only this run; the start of its id is enough.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="X",
    help="The speed compared to the recording; 0 for no pauses.",
)
@click.option(
    "--longest",
    type=click.FloatRange(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest pause between two events.",
)
@click.option(
    "--events",
    "view",
    type=click.Choice(["auto", "live", "plain", "ndjson", "none"]),
    default="auto",
    metavar="VIEW",
    help="How to show events: auto (live on a terminal, else plain), live, plain, ndjson, none.",
)
@json_option
def replay_command(
    place: str,
    session: str | None,
    *,
    run: str | None,
    speed: float,
    longest: float,
    view: str,
    as_json: bool,
    debug: bool,
) -> None:
    """Replay the events of a session with their timing.

    Output goes to standard error, or with --json and the view `ndjson` to standard output.
    """
    del debug
    with opened(place) as source:
        known = chosen(source, place, session)
        selected = _run_named(source, known, run)
        events = source.events_of(known, selected)
        runs = source.runs(known) if selected is None else [selected]
    status = "unfinished" if runs and runs[-1].ended is None else "ok"
    _present(_paced(events, speed, longest), "ndjson" if as_json else view, status=status)


@command.command("export", epilog=_EPILOG)
@click.argument("place")
@click.argument("session", required=False)
@click.option("--run", "run", metavar="ID", help="Only this run; the start of its id is enough.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["ndjson", "json", "markdown", "chrome"]),
    default="ndjson",
    show_default=True,
    help="ndjson: one line for each event, for event_from_dict; json: one document; markdown: the "
    "conversation; chrome: a timeline for a browser's trace viewer.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Export all sessions, and the session of each event."
)
@click.option("-o", "--output", metavar="FILE", help="The output file; standard output by default.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def export_command(
    place: str,
    session: str | None,
    *,
    run: str | None,
    form: str,
    everything: bool,
    output: str | None,
    debug: bool,
) -> None:
    """Export the events of one session, or of all."""
    del debug
    if everything and (session is not None or run is not None):
        raise CommandError("--all cannot be combined with SESSION or --run.")
    with opened(place) as source:
        selected = source.sessions() if everything else [chosen(source, place, session)]
        only = _run_named(source, selected[0], run) if selected else None
        parts = [(one.name, source.events_of(one, only)) for one in selected]
    with _writing(output) as file:
        for line in _exported(parts, form, everything=everything):
            file.write(f"{line}\n")


def _run_named(
    source: StoredEvents, session: StoredSession, name: str | None
) -> RecordedRun | None:
    return None if name is None else run_called(source.runs(session), name)


# --- list


def _described(source: StoredEvents, session: StoredSession) -> dict[str, Any]:
    return {
        "session": session.name,
        "events": sum(log.events for log in session.logs),
        "first": when(session.first),
        "last": when(session.last),
        "size": sum(log.size for log in session.logs),
        "runs": [run.to_json() for run in source.runs(session)],
    }


def _print_session(record: dict[str, Any], most: int | None) -> None:
    facts = [_counted(record["events"], "event"), _sized(record["size"])]
    if record["last"]:
        facts.append(f"last {_minute(record['last'])}")
    click.echo(f"{paint(release_text(record['session']), bold=True)} ({', '.join(facts)})")
    runs = record["runs"]
    hidden = 0 if most is None else max(0, len(runs) - most)
    if hidden:
        click.echo(f"  ({hidden:,} earlier runs)")
    for run in runs[hidden:]:
        facts = [release_text(run["status"]).replace("_", " ")]
        if run["started"]:
            facts.append(_minute(run["started"]))
        if run["duration"] is not None:
            facts.append(seconds(run["duration"]))
        facts.append(_counted(run["events"], "event"))
        click.echo(f"  {release_text(run['id'])}  {release_text(run['agent'])}: {', '.join(facts)}")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _sized(count: int) -> str:
    amount = float(count)
    for unit in ("bytes", "kB", "MB"):
        if amount < _STEP:
            return f"{count} bytes" if unit == "bytes" else f"{amount:.3g} {unit}"
        amount /= _STEP
    return f"{amount:.3g} GB"


def _minute(moment: str) -> str:
    return moment.replace("T", " ").partition(".")[0]


# --- follow and replay


def _present(events: Iterable[tuple[Event, float]], view: str, *, status: str) -> None:
    """Show events, each after a pause."""
    from agents_tools.ui.console import Console

    file = sys.stdout if view == "ndjson" else None
    console = Console(view=cast("Any", view), file=file)
    try:
        for event, pause in events:
            if pause:
                time.sleep(pause)
            try:
                console.publish(event)
            except UNREADABLE as error:
                say(f"event {event.id} cannot be shown: {error}")
    except KeyboardInterrupt:
        console.close("cancelled")
        raise
    console.close(status)


def _paced(events: Sequence[Event], speed: float, longest: float) -> Iterator[tuple[Event, float]]:
    """Yield events with the pause before each; no pause if the clock was set back."""
    before = 0.0
    for event in events:
        pause = event.timestamp - before if before and event.timestamp else 0.0
        before = event.timestamp or before
        yield event, min(max(0.0, pause / speed), longest) if speed else 0.0


# --- export


def _exported(
    parts: Sequence[tuple[str, list[Event]]], form: str, *, everything: bool
) -> Iterator[str]:
    if form == "markdown":
        for sid, events in parts:
            yield from (part.rstrip("\n") for part in markdown(events, sid))
    elif form == "json":
        whole = [{"session": sid, "events": [_wire(e) for e in found]} for sid, found in parts]
        yield json.dumps(whole if everything else whole[0], indent=2)
    elif form == "chrome":
        yield json.dumps(chrome_trace([event for _, events in parts for event in events]))
    else:
        for sid, events in parts:
            for event in events:
                wire = _wire(event)
                line = {"session": sid, "event": wire} if everything else wire
                yield json.dumps(line, separators=(",", ":"))


def _wire(event: Event) -> dict[str, Any]:
    return cast("dict[str, Any]", release_json(event.to_dict(), to="program"))


@contextmanager
def _writing(output: str | None) -> Generator[TextIO]:
    if output is None or output == "-":
        yield sys.stdout
        return
    try:
        with open(output, "w", encoding="utf-8") as file:  # noqa: PTH123 - the path on the command line
            yield file
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}.") from error
