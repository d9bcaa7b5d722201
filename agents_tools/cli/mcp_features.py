"""Resources and prompts of MCP servers: `mcp read`, `mcp prompt`, and their lists."""

from __future__ import annotations

import binascii
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agents_tools.cli.arguments import parse_arguments
from agents_tools.cli.errors import EXIT_CODES, OK, CommandError
from agents_tools.cli.mcp_target import connect_words, connection_options, take_options
from agents_tools.cli.options import json_option
from agents_tools.cli.output import (
    console_errors,
    is_terminal,
    paint,
    print_json,
    print_table,
    print_text,
    say_traceback,
    sentence_of,
)
from agents_tools.errors import (
    MCPConnectionError,
    MCPError,
    MCPProtocolError,
    MCPTimeoutError,
    UserValueError,
)
from agents_tools.text.output import release_text
from agents_tools.ui._format import size

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from agents_tools.events.kinds import CallStatus
    from agents_tools.mcp import MCPTools

__all__ = [
    "print_prompts",
    "print_resources",
    "prompt_command",
    "prompts_of",
    "read_command",
    "resources_of",
]

T = TypeVar("T")

_TIMEOUTS = ("--timeout", "--connect-timeout")
_METHOD_NOT_FOUND = -32601
_EXIT_CODES_HELP = (
    "\b\nExit codes: 0 ok, 1 the server refused, 2 usage, 4 timeout, 5 connection lost."
)
_SERVER_HELP = (
    "\b\n"
    "SERVER is a URL, an mcpServers file (file.json or file.json:name), or a command,\n"
    "in quotes or as `-- COMMAND... --`."
)


# --- commands


@click.command(
    "read",
    params=connection_options(*_TIMEOUTS),
    epilog=f"{_SERVER_HELP}\n"
    "  agents-tools mcp read mcp.json:files file:///notes.txt\n"
    "  agents-tools mcp read 'python server.py' logo://large -o logo.png\n\n"
    f"{_EXIT_CODES_HELP}",
)
@click.argument("words", nargs=-1, required=True, metavar="SERVER URI")
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the content to this file, which is overwritten.",
)
@json_option
@click.pass_context
def read_command(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    *,
    file: Path | None,
    as_json: bool,
    debug: bool,
    **values: Any,
) -> None:
    """Read a resource of SERVER. Text goes to standard output, other content to a file or pipe."""
    server, rest = _split(words)
    if len(rest) != 1:
        raise click.UsageError(
            f"expected one URI after SERVER, got {len(rest)} words. Options come first.", ctx
        )
    uri = rest[0]
    tools = connect_words(server, take_options(values))
    manager = tools.manager

    async def read() -> list[dict[str, Any]]:
        names = manager.get_server_names()
        name = names[0] if len(names) == 1 else await _server_of(tools, uri)
        return await manager.read_resource(name, uri)

    try:
        contents = _wait(read)
    except MCPError as error:
        ctx.exit(_failed(error, as_json=as_json, debug=debug))
    if as_json:
        print_json({"contents": contents}, compact=True)
    elif file is not None:
        _write(file, _joined(contents, uri))
    else:
        _print_contents(contents, uri)
    ctx.exit(OK)


@click.command(
    "prompt",
    params=connection_options(*_TIMEOUTS),
    context_settings={"ignore_unknown_options": True},
    epilog=f"{_SERVER_HELP}\n"
    "  agents-tools mcp prompt mcp.json:desk review language=python\n\n"
    f"{_EXIT_CODES_HELP}",
)
@click.argument(
    "words",
    nargs=-1,
    required=True,
    type=click.UNPROCESSED,
    metavar="SERVER NAME [ARGUMENT=VALUE]...",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save images and files in this folder.",
)
@json_option
@click.pass_context
def prompt_command(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    *,
    output: Path | None,
    as_json: bool,
    debug: bool,
    **values: Any,
) -> None:
    """Print the messages of a prompt of SERVER."""
    server, rest = _split(words)
    if not rest:
        raise click.UsageError("the name of the prompt is missing.", ctx)
    tools = connect_words(server, take_options(values))
    try:
        found = _wait(lambda: _prompt(tools, rest[0], rest[1:]))
    except MCPError as error:
        ctx.exit(_failed(error, as_json=as_json, debug=debug))
    if as_json:
        print_json(found, compact=True)
    else:
        _print_messages(found, output)
    ctx.exit(OK)


def _split(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of the server and those after it: `SERVER …`, or `-- COMMAND… -- …`."""
    if "--" in words:
        middle = words.index("--")
        return tuple(words[:middle]), tuple(words[middle + 1 :])
    return tuple(words[:1]), tuple(words[1:])


def _wait(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    from agents_tools.concurrency.bridge import call_async_from_sync

    return call_async_from_sync(work)


def _failed(error: MCPError, *, as_json: bool, debug: bool) -> int:
    """Report an error of a server and return the exit code."""
    status: CallStatus = "tool_error"
    if isinstance(error, MCPTimeoutError):
        status = "timeout"
    elif isinstance(error, MCPConnectionError):
        status = "lost"
    if debug:
        say_traceback(error)
    message = release_text(str(error), patterns=True)
    if as_json:
        record = {"type": type(error).__name__, "message": message}
        print_json({"status": status, "error": record}, compact=True)
    else:
        console_errors("error:", message)
    return EXIT_CODES[status]


# --- lists


def resources_of(tools: MCPTools, name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the resources and the resource templates of a server.

    Raises:
        MCPError: The server refuses the list, or the connection is lost.
    """
    manager = tools.manager

    async def listed() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return await _listed(tools, name, "resources", manager.list_resources), await _listed(
            tools, name, "resources", manager.list_resource_templates
        )

    return _wait(listed)


def prompts_of(tools: MCPTools, name: str) -> list[dict[str, Any]]:
    """Return the prompts of a server.

    Raises:
        MCPError: The server refuses the list, or the connection is lost.
    """
    return _wait(lambda: _listed(tools, name, "prompts", tools.manager.list_prompts))


def print_resources(resources: list[dict[str, Any]], templates: list[dict[str, Any]]) -> None:
    """Print the resources and the resource templates of a server as tables."""
    _print_titled("Resources:", [(str(one.get("uri")), _summary(one)) for one in resources])
    if templates:
        rows = [(str(one.get("uriTemplate")), _summary(one)) for one in templates]
        _print_titled("Resource templates:", rows)


def print_prompts(prompts: list[dict[str, Any]]) -> None:
    """Print the prompts of a server as a table, with their arguments."""
    _print_titled("Prompts:", [(_usage(one), _summary(one)) for one in prompts])


async def _listed(
    tools: MCPTools,
    name: str,
    capability: str,
    fetch: Callable[[str], Coroutine[Any, Any, list[dict[str, Any]]]],
) -> list[dict[str, Any]]:
    """Return a list of a server; an empty one if the server does not have the feature."""
    info = tools.manager.get_server_info(name)
    if info["connected"] and capability not in info["capabilities"]:
        return []
    try:
        return await fetch(name)
    except MCPProtocolError as error:
        if error.code == _METHOD_NOT_FOUND:
            return []
        raise


def _print_titled(title: str, rows: list[tuple[str, str]]) -> None:
    click.echo("  " + paint(title, bold=True))
    print_table(rows or [("(none)", "")], indent=4)


def _summary(listed: Mapping[str, Any]) -> str:
    text = sentence_of(str(listed.get("description") or listed.get("title") or ""))
    kind = listed.get("mimeType")
    return f"{text} [{kind}]".strip() if kind else text


def _usage(prompt: Mapping[str, Any]) -> str:
    """Return the name of a prompt and its arguments, the optional ones in brackets."""
    words = [str(prompt.get("name"))]
    for one in _arguments(prompt):
        name = f"{one['name']}=…"
        words.append(name if one.get("required") is True else f"[{name}]")
    return " ".join(words)


# --- resources


async def _server_of(tools: MCPTools, uri: str) -> str:
    """Return the only server that lists a resource."""
    manager = tools.manager
    found: list[str] = []
    for name in manager.get_server_names():
        if name in tools.failures:
            continue
        listed = await _listed(tools, name, "resources", manager.list_resources)
        if any(one.get("uri") == uri for one in listed):
            found.append(name)
    if len(found) != 1:
        problem = "several servers list" if found else "none of the servers lists"
        names = ", ".join(found or manager.get_server_names())
        raise CommandError(
            f"{problem} {uri}.", hint=f"Name the server: file.json:name. Servers: {names}."
        )
    return found[0]


def _print_contents(contents: list[dict[str, Any]], uri: str) -> None:
    """Print text; write other content to a pipe, and refuse it on a terminal."""
    if all(isinstance(one.get("text"), str) for one in contents):
        for one in contents:
            print_text(one["text"])
        return
    data = _joined(contents, uri)
    if is_terminal(sys.stdout):
        kinds = ", ".join(str(one.get("mimeType") or "binary data") for one in contents)
        raise CommandError(
            f"{uri} is not text ({kinds}, {size(data)}).", hint="Write it to a file: -o FILE"
        )
    click.echo(data, nl=False)


def _joined(contents: list[dict[str, Any]], uri: str) -> bytes:
    """Return the content of a resource as it is written to a file."""
    parts = [_bytes(one) for one in contents]
    if len(parts) > 1 and any("blob" in one for one in contents):
        raise CommandError(
            f"{uri} has {len(parts)} parts, which do not fit in one file.",
            hint="Print them as JSON: --json",
        )
    return b"\n".join(parts)


def _bytes(content: Mapping[str, Any]) -> bytes:
    text = content.get("text")
    if isinstance(text, str):
        return release_text(text, to="program").encode()
    try:
        return binascii.a2b_base64(str(content.get("blob") or ""))
    except binascii.Error as error:
        raise UserValueError(
            f"The content of {content.get('uri')} cannot be read: expected base64, but {error}."
        ) from None


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error


# --- prompts


async def _prompt(tools: MCPTools, name: str, words: Sequence[str]) -> dict[str, Any]:
    """Fetch a prompt of the only server that has it."""
    manager = tools.manager
    found: list[tuple[str, dict[str, Any]]] = []
    known: list[str] = []
    for server in manager.get_server_names():
        if server in tools.failures:
            continue
        for listed in await _listed(tools, server, "prompts", manager.list_prompts):
            known.append(str(listed.get("name")))
            if listed.get("name") == name:
                found.append((server, listed))
    if len(found) != 1:
        problem = "several servers have" if found else "no server has"
        hint = f"Prompts: {', '.join(known) or 'none'}."
        if found:
            hint = "Name the server: file.json:name."
        raise CommandError(f"{problem} the prompt {name!r}.", hint=hint)
    server, listed = found[0]
    return await manager.get_prompt(server, name, _prompt_arguments(listed, words))


def _prompt_arguments(prompt: Mapping[str, Any], words: Sequence[str]) -> dict[str, str]:
    """Return the arguments of a prompt, which are strings.

    Raises:
        CommandError: An argument is unknown, or a required one is missing.
    """
    listed = _arguments(prompt)
    known = {str(one["name"]): {"type": "string"} for one in listed}
    schema = {"type": "object", "properties": known, "additionalProperties": False}
    values = parse_arguments(schema, words)
    takes = f"Arguments: {', '.join(known) or 'none'}."
    if unknown := sorted(values.keys() - known):
        raise CommandError(f"{prompt['name']} has no argument {unknown[0]!r}.", hint=takes)
    for one in listed:
        if one.get("required") is True and one["name"] not in values:
            raise CommandError(
                f"{prompt['name']} needs the argument {one['name']!r}.",
                hint=f"Write {one['name']}=VALUE. {takes}",
            )
    return {key: value if isinstance(value, str) else str(value) for key, value in values.items()}


def _arguments(prompt: Mapping[str, Any]) -> list[dict[str, Any]]:
    from agents_tools.mcp._coerce import objects

    return [one for one in objects(prompt.get("arguments")) if "name" in one]


def _print_messages(prompt: Mapping[str, Any], output: Path | None) -> None:
    from agents_tools.cli.results import ArtifactFolder, print_content
    from agents_tools.mcp._coerce import objects
    from agents_tools.mcp.client.adapter import result_of

    folder = None if output is None else ArtifactFolder(output)
    for number, message in enumerate(objects(prompt.get("messages"))):
        if number:
            click.echo()
        click.echo(paint(release_text(f"{message.get('role')}:"), bold=True))
        print_content(result_of({"content": message.get("content")}).content or "", folder)
