"""How MCP servers are reached: one record a server, read from `mcpServers` files."""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from agents_tools._json import check_bounds
from agents_tools._secrets import guard_logs, mask
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.mcp._commands import ConfigFinding, findings_of_command

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from agents_tools.context import ToolContext

__all__ = ["MCPServerConfig", "Transport", "load_config", "server_config", "without_secrets"]

logger = logging.getLogger("agents_tools.mcp")
guard_logs()

Transport: TypeAlias = Literal["stdio", "http", "sse", "memory"]
"""How a server is reached."""

HeaderProvider: TypeAlias = (
    "Callable[[ToolContext[Any] | None], Mapping[str, str] | Awaitable[Mapping[str, str]]]"
)
"""Gives headers for one request; asked with the context of the call, or with `None` outside one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPServerConfig:
    """How one server is reached, and what is taken from it.

    Attributes:
        name: Its name here; its tools are prefixed with it.
        transport: `stdio`, `http` (streamable HTTP), `sse` (the older HTTP), or `memory`.
        command: stdio: the program.
        args: stdio: its arguments.
        env: stdio: variables on top of HOME, LOGNAME, PATH, SHELL, TERM and USER.
        inherit_env: stdio: names of variables of this process that it also gets.
        cwd: stdio: the folder it starts in.
        url: http, sse: its address.
        headers: http, sse: headers of every request.
        header_provider: http, sse: headers of one request, from the context of the call.
        auth: http, sse: an auth object of the SDK's HTTP client, such as its OAuth provider.
        server: memory: a server object of the SDK, in this process.
        connect_timeout: Seconds until it has to have answered and listed its tools.
        timeout: Seconds that a call may be silent; its progress starts them again.
        max_time: Seconds that a call may take in all.
        prefix: What the names of its tools begin with; its name by default, `None` for nothing.
        allow: Patterns (`fnmatch`) of the names of tools that are taken; all by default.
        deny: Patterns of the names of tools that are not.
        trusted: Whether what its annotations promise is believed, so that a tool that says it is
            read-only or idempotent may be called again when an outcome was lost.
        validate_arguments: Whether arguments are checked against its schemas before they are sent.
        max_message: The most bytes of one message from it.
    """

    name: str
    transport: Transport = "stdio"
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    inherit_env: tuple[str, ...] = ()
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    header_provider: HeaderProvider | None = None
    auth: Any = field(default=None, repr=False)
    server: Any = None
    connect_timeout: float = 10.0
    timeout: float = 60.0
    max_time: float = 600.0
    prefix: str | None = ""
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    trusted: bool = False
    validate_arguments: bool = True
    max_message: int = 64 << 20

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(f"An MCP server needs a name, as text; it got {self.name!r:.60}.")
        if self.prefix is not None and not isinstance(self.prefix, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"The prefix of MCP server {self.name!r} is text, or null for none, "
                f"not {_kind(self.prefix)}."
            )
        if self.prefix == "":
            object.__setattr__(self, "prefix", self.name)
        needed = {"stdio": "command", "http": "url", "sse": "url", "memory": "server"}
        if not isinstance(self.transport, str) or self.transport not in needed:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(
                f"MCP server {self.name!r} has the transport {self.transport!r:.60}; "
                "there are 'stdio', 'http', 'sse' and 'memory'."
            )
        if getattr(self, needed[self.transport]) is None:
            raise UserValueError(
                f"MCP server {self.name!r} is reached by {self.transport} and needs "
                f"{needed[self.transport]!r}."
            )
        if self.url is not None and not re.match(r"https?://[^/]", self.url):
            raise UserValueError(
                f"The url of MCP server {self.name!r} is no address. Give the whole of it, such as "
                "http://127.0.0.1:8000/mcp."
            )
        for name in ("connect_timeout", "timeout", "max_time", "max_message"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
                raise UserValueError(
                    f"The {name} of MCP server {self.name!r} is a number above 0, "
                    f"not {value!r:.60}."
                )

    @property
    def place(self) -> str:
        """Where it is, for messages: its address without secrets, or its command."""
        if self.url is not None:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        return self.command or "this process"

    @property
    def findings(self) -> tuple[ConfigFinding, ...]:
        """What had better be another way: a version left open, code in the arguments."""
        if self.transport != "stdio":
            return ()
        found = findings_of_command(self.command or "", self.args)
        return tuple(
            ConfigFinding(code=one.code, message=without_secrets(self, one.message))
            for one in found
        )


def without_secrets(config: MCPServerConfig, text: str) -> str:
    """Take out of a text what a server was given in confidence: variables, headers, known secrets.

    Args:
        config: The server.
        text: What it, or something between, has said.
    """
    values = [*config.env.values(), *config.headers.values()]
    values += [value.partition(" ")[2] for value in config.headers.values()]
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SECRET:
            text = text.replace(value, "***")
    return mask(text)


_SECRET = 8
"""Characters from which on a value may be a secret: shorter ones are words such as `true`."""

_ALIASES = {
    "type": "transport",
    "serverUrl": "url",
    "httpUrl": "url",
    "includeTools": "allow",
    "enabled_tools": "allow",
    "excludeTools": "deny",
    "disabled_tools": "deny",
    "disabledTools": "deny",
    "http_headers": "headers",
    "startup_timeout_sec": "connect_timeout",
    "tool_timeout_sec": "timeout",
    "env_vars": "inherit_env",
}
"""What editors and other programs call the keys."""

_TRANSPORTS = {
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "local": "stdio",
    "remote": "http",
}
_SECTIONS = ("mcpServers", "servers", "context_servers", "mcp_servers")
_MILLISECONDS = 1_000
"""A `timeout` from here up is in milliseconds, which some programs write."""


def load_config(
    source: str | os.PathLike[str] | Mapping[str, Any], **defaults: Any
) -> list[MCPServerConfig]:
    """Read the servers of an `mcpServers` file, or of its content.

    Takes the files of editors as well: `mcpServers`, `servers`, `context_servers` or
    `mcp_servers` at the top, JSON (comments allowed) or TOML. `${NAME}`, `${NAME:-default}` and
    `${env:NAME}` stand for variables of the environment. Entries that are switched off
    (`"disabled": true`) are left out.

    What had better be another way, such as a version left open, is no error: it stands in
    `MCPServerConfig.findings` and is logged at the level `INFO`.

    Args:
        source: The path of the file, or what is in it.
        **defaults: Fields of `MCPServerConfig` for entries that do not have them.

    Raises:
        UserError: The file cannot be read, or an entry cannot work; the message says which.
    """
    where, content = _content(source)
    section = next((key for key in _SECTIONS if key in content), None)
    if section is None:
        if any(isinstance(entry, Mapping) for entry in content.values()):
            raise UserValueError(
                f'{where} has no key "mcpServers". Put the servers below it: '
                '{"mcpServers": {"name": {"command": "..."}}}.'
            )
        raise UserValueError(f'{where} names no MCP servers: it has no key "mcpServers".')
    entries = content[section]
    if not isinstance(entries, Mapping):
        raise UserTypeError(f'"{section}" in {where} is an object, not {_kind(entries)}.')
    servers: list[MCPServerConfig] = []
    for name, entry in cast("Mapping[str, Any]", entries).items():
        if not isinstance(entry, Mapping):
            raise UserTypeError(
                f'"{section}.{name}" in {where} is an object like {{"command": "..."}}, '
                f"not {_kind(entry)}."
            )
        given = cast("Mapping[str, Any]", entry)
        if given.get("disabled") is True or given.get("enabled") is False:
            continue
        try:
            servers.append(_from_entry(name, given, defaults))
        except UserError as error:
            raise type(error)(f"{where}: {error}") from None
        except RecursionError:
            raise UserValueError(f'{where}: "{section}.{name}" is nested too deeply.') from None
        for finding in servers[-1].findings:
            logger.info("MCP server %r in %s: %s.", name, where, finding.message)
    return servers


def server_config(name: str, transport: str | None = None, **connection: Any) -> MCPServerConfig:
    """Make the record of a server from what was said in code.

    Args:
        name: Its name.
        transport: How it is reached; seen from the rest where it is not given.
        **connection: The other fields of `MCPServerConfig`.

    Raises:
        UserError: There is no such field, or the server cannot be reached by what is given.
    """
    known = {one.name for one in fields(MCPServerConfig)}
    for key in connection:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UserTypeError(f"MCP server {name!r} takes no {key!r}.{hint}")
    values = dict(connection)
    values["transport"] = _transport(name, transport, values)
    for key in ("args", "inherit_env", "allow", "deny"):
        if values.get(key) is not None:
            values[key] = _texts(name, key, values[key])
        else:
            values.pop(key, None)
    for key in ("env", "headers"):
        if values.get(key) is not None:
            values[key] = _mapping(name, key, values[key])
        else:
            values.pop(key, None)
    headers: dict[str, str] = values.get("headers") or {}
    for key, text in headers.items():
        if not text.isprintable():
            raise UserValueError(
                f"The header {key!r:.60} of MCP server {name!r} has a line end, or another "
                "character that no header can have. Strip it."
            )
    for key in ("command", "cwd", "url"):
        value = values.get(key)
        if isinstance(value, os.PathLike):
            values[key] = os.fspath(cast("os.PathLike[str]", value))
        elif value is not None and not isinstance(value, str):
            raise UserTypeError(f"The {key} of MCP server {name!r} is text, not {_kind(value)}.")
    return MCPServerConfig(name=name, **values)


def _from_entry(
    name: str, entry: Mapping[str, Any], defaults: Mapping[str, Any]
) -> MCPServerConfig:
    known = {one.name for one in fields(MCPServerConfig)} - _IN_CODE
    values: dict[str, Any] = dict(defaults)
    for key, value in entry.items():
        field_name = _ALIASES.get(key, key)
        if field_name in known:
            values[field_name] = _expanded(name, key, value)
        elif key not in _IGNORED and (
            near := difflib.get_close_matches(key, [*known, *_ALIASES], n=1, cutoff=0.8)
        ):
            raise UserValueError(
                f"MCP server {name!r} has the unknown key {key!r}. Did you mean {near[0]!r}?"
            )
    command = values.get("command")
    if isinstance(command, Mapping):  # {"command": {"path": ..., "args": ..., "env": ...}}
        whole = cast("Mapping[str, Any]", command)
        values |= {key: whole[key] for key in ("args", "env") if whole.get(key)}
        values["command"] = whole.get("path")
    elif isinstance(command, list):  # the program and its arguments in one list
        program, *rest = cast("list[Any]", command) or [None]
        more = _texts(name, "args", values.get("args") or ())
        values["command"], values["args"] = program, [*rest, *more]
    token = entry.get("bearer_token_env_var")
    if isinstance(token, str):
        value = _variable(name, "bearer_token_env_var", token, None)
        headers = _mapping(name, "headers", values.get("headers") or {})
        values["headers"] = {**headers, "Authorization": f"Bearer {value}"}
    value = entry.get("timeout")
    if isinstance(value, (int, float)) and value >= _MILLISECONDS:
        values["timeout"] = value / _MILLISECONDS
    return server_config(name, values.pop("transport", None), **values)


_IN_CODE = frozenset({"name", "header_provider", "auth", "server", "trusted"})
"""What a file cannot say."""

_IGNORED = frozenset({
    "alwaysAllow", "args_hint", "autoApprove", "auto_approve", "description", "dev", "disabled",
    "enabled", "envFile", "gallery", "icon", "keep_alive", "note", "oauth", "source", "tools",
    "trust", "version",
})  # fmt: skip
"""Keys of other programs that say nothing to this one."""


def _transport(name: str, given: Any, values: Mapping[str, Any]) -> Any:
    if given is None:
        for field_name, transport in (("command", "stdio"), ("server", "memory")):
            if values.get(field_name) is not None:
                return transport
        url = values.get("url")
        if isinstance(url, str):
            return "sse" if re.search(r"/sse/?(\?|$)", url) else "http"
        raise UserValueError(
            f'MCP server {name!r} has neither "command" (a program to start) nor "url" '
            "(an address)."
        )
    return _TRANSPORTS.get(str(given), given)


def _texts(name: str, key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, set, frozenset)):
        raise UserTypeError(
            f"The {key} of MCP server {name!r} is a list of texts, not {_kind(value)}."
        )
    items = [*cast("Sequence[Any]", value)]
    for item in items:
        if not isinstance(item, (str, os.PathLike)):
            raise UserTypeError(
                f"The {key} of MCP server {name!r} are texts; one is {_kind(item)}: {item!r:.60}."
            )
    return tuple(str(item) for item in items)


def _mapping(name: str, key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise UserTypeError(f"The {key} of MCP server {name!r} is an object, not {_kind(value)}.")
    given = cast("Mapping[Any, Any]", value)
    for one, text in given.items():
        if not isinstance(one, str) or not isinstance(text, str):
            raise UserTypeError(
                f"The {key} of MCP server {name!r} are texts; {one!r:.60} is {_kind(text)}."
            )
    return dict(cast("Mapping[str, str]", given))


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return _KINDS.get(type(value), type(value).__name__)


_KINDS: dict[type[Any], str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


# --- files


def _content(
    source: str | os.PathLike[str] | Mapping[str, Any],
) -> tuple[str, Mapping[str, Any]]:
    if isinstance(source, Mapping):
        return "The MCP configuration", source
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserValueError(f"The MCP configuration {path} cannot be read: {reason}.") from error
    try:
        check_bounds(text)
        found: Any = tomllib.loads(text) if path.suffix == ".toml" else _read_json(text)
    except (ValueError, RecursionError) as error:
        raise UserValueError(f"The MCP configuration {path} cannot be read: {error}.") from error
    if not isinstance(found, Mapping):
        raise UserTypeError(f"The MCP configuration {path} is an object, not {_kind(found)}.")
    return str(path), cast("Mapping[str, Any]", found)


_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMAS = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def _read_json(text: str) -> Any:
    """Read JSON as editors write it: with comments, and with a comma after the last item."""
    try:
        return json.loads(text)
    except ValueError as error:
        plain = _LAST_COMMAS.sub(lambda m: m[1] or "", _COMMENTS.sub(lambda m: m[1] or "", text))
        try:
            return json.loads(plain)
        except ValueError:
            raise error from None


# --- variables

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_INPUT = re.compile(r"\$\{input:[^}]*\}")


def _expanded(name: str, key: str, value: Any) -> Any:
    if isinstance(value, str):
        if asked := _INPUT.search(value):
            raise UserValueError(
                f"MCP server {name!r} asks the editor for {asked[0]} in its {key!r}. Put the value "
                "into a variable of the environment and write ${NAME} instead."
            )
        return _VARIABLE.sub(lambda found: _variable(name, key, found[1], found[2]), value)
    if isinstance(value, list):
        return [_expanded(name, key, item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {one: _expanded(name, f"{key}.{one}", item) for one, item in entries.items()}
    return value


def _variable(name: str, key: str, variable: str, default: str | None) -> str:
    if variable in {"workspaceFolder", "workspaceRoot"}:
        return str(Path.cwd())
    if variable in {"userHome", "HOME"}:
        return str(Path.home())
    found = os.environ.get(variable)
    if found is not None and (found or default is None):
        return found
    if default is not None:
        return default
    raise UserValueError(
        f"MCP server {name!r} needs the variable {variable} for its {key!r}, and it is not set. "
        f"Set it, or write ${{{variable}:-default}}."
    )
