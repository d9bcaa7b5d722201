"""`dev`: serve a local web page to try the tools and agents of a target."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import secrets
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from agents_tools.agents.config import RunConfig
from agents_tools.cli.agents import agents_in
from agents_tools.cli.errors import OK, CommandError
from agents_tools.cli.execution import attend, cancelled_by_sigterm
from agents_tools.cli.listening import check_host, token_in
from agents_tools.cli.mcp_target import is_mcp, is_there
from agents_tools.cli.output import is_terminal, say, say_traceback
from agents_tools.cli.target import BUILTIN, is_agent, load_target, parted, tools_in
from agents_tools.errors import EventStoreError, UserError
from agents_tools.persistence.user_folders import state_folder
from agents_tools.server.browser import can_open_browser
from agents_tools.server.listener import bound_socket

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Generator, Mapping

    from agents_tools.persistence import RunStore
    from agents_tools.playground import LoadedTarget, PlaygroundApp, ReloadingTarget, TargetError

__all__ = ["command", "load_for_page"]

_PORT = 8321
_PATIENCE = 10.0
"""The longest wait for the file of the history, in seconds."""
_SIGNALS = (
    "Changed files are imported in a thread, so set signal handlers below "
    '`if __name__ == "__main__":`.'
)
_EXAMPLE = "export TOKEN=...; agents-tools dev TARGET --auth-token-env TOKEN"
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not listened on


@click.command("dev")
@click.argument("target", required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    help="The port; 0 for a free one. If the default port is in use, a free one is used.",
)
@click.option("--model", metavar="NAME", help="The model of all agents, instead of their own.")
@click.option("--open/--no-open", "wants_page", default=None, help="Open the page in a browser.")
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="The file that stores the runs; by default a file for each target in your state folder.",
)
@click.option(
    "--store",
    metavar="PLACE",
    help="Show and store the runs of a run store: the path of an SQLite file, or an address that "
    "begins with postgresql:// or redis://. Nothing in it is deleted.",
)
@click.option("--no-history", is_flag=True, help="Do not store runs on disk.")
@click.option(
    "--auth-token-env",
    metavar="NAME",
    help="The variable with the token of the page; by default a random token for each start.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="An accepted Host header, besides loopback; can be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as one line of JSON.")
@click.option("--debug", is_flag=True, help="Print the traceback of each error of a tool.")
@click.pass_context
def command(
    ctx: click.Context,
    target: str | None,
    *,
    host: str,
    port: int,
    model: str | None,
    wants_page: bool | None,
    history: Path | None,
    store: str | None,
    no_history: bool,
    auth_token_env: str | None,
    hosts: tuple[str, ...],
    as_json: bool,
    debug: bool,
) -> None:
    """Try the tools and agents of TARGET on a local web page, until Ctrl-C.

    The page shows the definitions that each provider gets, has a form for each tool, shows runs
    live and keeps their history. TARGET, see `list`, is reloaded when its files change. Without a
    target, the page shows the runs of `--store`.
    """
    _require_server()
    if target is None and store is None:
        raise click.UsageError("Missing argument 'TARGET', or the option --store.", ctx)
    if (history is not None) + no_history + (store is not None) > 1:
        raise click.UsageError("--history, --store and --no-history exclude each other.", ctx)
    token = _token(auth_token_env)
    own = None if auth_token_env is None else token
    check_host(host, own, risk="every machine that can connect could request the page")
    opens = wants_page
    if opens is None:
        opens = is_terminal(sys.stdout) and not as_json and can_open_browser()
    or_any = ctx.get_parameter_source("port") is not ParameterSource.COMMANDLINE
    with _redirect_output() as out, contextlib.ExitStack() as stack:
        runs = _shared_store(store, must_exist=target is None) if store is not None else None
        bench = _no_target(runs) if target is None else _workbench(target)
        stack.callback(bench.close)
        if target is not None and store is None and not no_history:
            runs = _store(history, target)
        if runs is not None:
            stack.callback(runs.close)
        listener = stack.enter_context(_listener(host, port, or_any=or_any))
        names = hosts if host in _WILDCARDS else (*hosts, _host_name(host))
        shown = "127.0.0.1" if host in _WILDCARDS else _host_name(host)
        address = f"http://{shown}:{listener.getsockname()[1]}/"

        def work() -> Coroutine[Any, Any, None]:
            from agents_tools.playground import PlaygroundApp

            config = None if model is None else RunConfig(model=model)
            app = PlaygroundApp(
                bench,
                token=token,
                store=runs,
                keep_runs=500 if store is None else None,
                host=host,
                allowed_hosts=names,
                run_config=config,
                on_error=say_traceback if debug else None,
            )
            link = f"{address.rstrip('/')}{app.link()}" if opens else None
            facts = {"url": f"{address}#token={token}", "address": address, "token": token}
            ready = _announcement(
                target or bench.target, facts, link=link, out=out if as_json else None
            )
            return _served(app, listener, ready)

        attend(work, slow=_nothing, stopping=_nothing)
    ctx.exit(OK)


@contextlib.contextmanager
def _redirect_output() -> Generator[int]:
    """Redirect output of modules, tools and child processes to standard error.

    Yields:
        A descriptor of the original standard output.
    """
    for number in range(3):  # another file could reuse the number of a closed descriptor
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    _flush()
    original = os.dup(1)
    try:
        os.dup2(2, 1)
        yield original
    finally:
        _flush()
        os.dup2(original, 1)
        os.close(original)


def _flush() -> None:
    if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - it may be closed
        sys.stdout.flush()


async def _served(app: PlaygroundApp, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM. The caller handles Ctrl-C."""
    from agents_tools.playground import serve

    with cancelled_by_sigterm():
        await serve(app, listener, on_ready=ready)


def _announcement(
    target: str, facts: Mapping[str, str], *, link: str | None, out: int | None
) -> Callable[[], None]:
    """Return a function that announces the address of the page.

    Args:
        target: The target of the page.
        facts: The facts for a program that reads `out`.
        link: The link to open in a browser; `None` to open none.
        out: The descriptor to write the facts to as JSON; `None` for none.
    """

    def ready() -> None:
        say(f"Playground of {target}: {facts['url']} ; Ctrl-C to stop.")
        if out is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(out, f"{json.dumps(facts)}\n".encode())
        if link is not None:
            import webbrowser

            # A browser in the terminal would block this thread until the user quits it.
            threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()

    return ready


def _nothing() -> None:
    """Print nothing: the announcement explains how to stop."""


# --- the target


def _workbench(target: str) -> ReloadingTarget:
    """Load the target for the first time.

    Raises:
        CommandError: The target does not exist, so that reloading it later cannot help.
    """
    from agents_tools.playground import ReloadingTarget

    loader = _TargetLoader(target)
    bench = ReloadingTarget(loader.load, target=target)
    bench.load()
    if loader.missing is not None:
        raise loader.missing
    for problem in bench.problems:
        say(f"warning: {problem}", fg="yellow")
    return bench


def _no_target(store: RunStore | None) -> ReloadingTarget:
    """Return a target without tools and agents, with the name of a store."""
    from agents_tools.playground import LoadedTarget, ReloadingTarget

    place = "" if store is None else store.place
    name = place if "://" in place else Path(place).name
    bench = ReloadingTarget(lambda: LoadedTarget(target=name), target=name)
    bench.load()
    return bench


def load_for_page(target: str) -> LoadedTarget:
    """Load a target for the page.

    Raises:
        TargetError: The target cannot be used.
    """
    return _TargetLoader(target).load()


class _TargetLoader:
    """Loads a target, again and again.

    Args:
        target: The target on the command line.

    Attributes:
        missing: The error if the target does not exist.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self.missing: CommandError | None = None

    def load(self) -> LoadedTarget:
        """Return the tools and agents of the target.

        Raises:
            TargetError: The target cannot be used.
        """
        self.missing = None
        try:
            value = load_target(self._target)
        except (CommandError, UserError) as error:
            if isinstance(error, CommandError) and self._is_missing(error):
                self.missing = error
            raise self._problem(error) from error
        try:
            return self._loaded(value)
        except (CommandError, UserError) as error:
            raise self._problem(error) from error

    def _is_missing(self, error: CommandError) -> bool:
        if is_mcp(self._target):
            return not is_there(self._target)
        cause, place = error.__cause__, parted(self._target)[0]
        if isinstance(cause, ModuleNotFoundError) and not place.endswith(".py"):
            return cause.name is not None and f"{place}.".startswith(f"{cause.name}.")
        return cause is None

    def _loaded(self, value: Any) -> LoadedTarget:
        from agents_tools.playground import LoadedTarget

        target = self._target
        agents = agents_in(value)
        try:
            tools = tools_in(value, target)
        except CommandError:
            if not agents:
                raise
            tools = []
        if is_mcp(target):
            return LoadedTarget(
                target=target,
                tools=tuple(tools),
                kind="mcp",
                place=_config_of(target),
                value=value,
                files=tuple(filter(None, [self._file()])),
                close=value.close,
            )
        if target == BUILTIN:
            return LoadedTarget(target=target, tools=tuple(tools), kind="builtin", value=value)
        place, attribute = parted(target)
        if is_agent(value) and not attribute:
            attribute = next(iter(agents))
        return LoadedTarget(
            target=target,
            tools=tuple(tools),
            agents=agents,
            place=place,
            attribute=attribute,
            value=value,
        )

    def _problem(self, error: Exception) -> TargetError:
        from agents_tools.playground import TargetError, TargetProblem
        from agents_tools.playground.target_state import place_of

        file, place = place_of(error.__cause__) if error.__cause__ is not None else ("", "")
        hint = getattr(error, "hint", None)
        if "signal only works in main thread" in str(error):
            hint = _SIGNALS
        message = str(error) if hint is None or hint.startswith("--debug") else f"{error}\n{hint}"
        own = self._file()
        problem = TargetProblem.at(place or own or self._target, message)
        return TargetError(problem, files=tuple(filter(None, (own, file))))

    def _file(self) -> str:
        """Return the file of the target; empty if it has none."""
        place = _config_of(self._target) if is_mcp(self._target) else parted(self._target)[0]
        if Path(place).suffix and "://" not in place:
            return str(Path(place))
        found = importlib.util.find_spec(place) if _can_be_found(place) else None
        return (found.origin or "") if found is not None else ""


def _can_be_found(module: str) -> bool:
    """Return whether a search for the module runs no code of its package."""
    return re.fullmatch(r"[^\W\d]\w*", module) is not None


def _config_of(target: str) -> str:
    """Return the URL or the file of MCP servers, without the name of a server."""
    place, colon, name = target.rpartition(":")
    if colon and Path(place).suffix.lower() in {".json", ".jsonc", ".toml"} and "/" not in name:
        return place
    return target


# --- options


def _require_server() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise CommandError(
            'the playground needs the extra "ui".',
            hint='Install it: pip install "agents-tools[ui]"',
        )


def _token(variable: str | None) -> str:
    token = token_in(variable, example=_EXAMPLE)
    if token is None:
        return secrets.token_urlsafe(24)
    if not re.fullmatch(r"[A-Za-z0-9._~-]{16,}", token):
        raise CommandError(
            f"the token in {variable} does not fit into a URL: expected 16 or more letters, digits "
            "and ._~-",
            hint='Create one: python -c "import secrets; print(secrets.token_urlsafe())"',
        )
    return token


def _host_name(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listener(host: str, port: int, *, or_any: bool) -> socket.socket:

    try:
        return bound_socket(host, port)
    except UserError:
        if not or_any:
            raise
    return bound_socket(host, 0)


# --- the history


def _store(path: Path | None, target: str) -> RunStore | None:
    """Open the file of the history; return `None` if the default file cannot be opened."""
    from agents_tools.persistence import SQLiteRunStore

    try:
        default = state_folder() / "playground" / f"{_file_name(target)}.sqlite"
        chosen = path if path is not None else default
        if path is None:
            chosen.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        store = SQLiteRunStore(chosen, keep_display=True)
        store.runs(limit=1).result(_PATIENCE)
    except (OSError, RuntimeError, EventStoreError) as error:  # the user can have no home folder
        if path is not None:
            raise CommandError(f"the history {path} cannot be opened: {error}") from error
        say(f"warning: runs are not stored: {error}", fg="yellow")
        return None
    return store


def _shared_store(place: str, *, must_exist: bool) -> RunStore:
    """Open the run store of another program.

    Args:
        place: The path or address.
        must_exist: Whether a missing file is an error.

    Raises:
        CommandError: The store cannot be opened.
    """
    from agents_tools.persistence import open_run_store

    if must_exist and "://" not in place and not Path(place).exists():
        raise CommandError(
            f"the run store {place} does not exist.",
            hint="Check the path, or pass a TARGET to create the file.",
        )
    try:
        store = open_run_store(place)
        store.runs(limit=1).result(_PATIENCE)
    except UserError:
        raise
    except (OSError, RuntimeError, EventStoreError) as error:
        raise CommandError(f"the run store cannot be opened: {error}") from error
    return store


def _file_name(target: str) -> str:
    """Return a name for a target that does not depend on how the target was written."""
    place, attribute = parted(target)
    whole = target
    if Path(place).exists():
        whole = f"{Path(place).resolve()}:{attribute}"
    elif "://" not in target:
        whole = f"{Path.cwd()}:{target}"
    word = re.sub(r"\W+", "-", Path(place).stem, flags=re.ASCII).strip("-")[:40] or "target"
    return f"{word}-{hashlib.sha256(os.fsencode(whole)).hexdigest()[:12]}"
