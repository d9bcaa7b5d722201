"""The configuration of MCP servers, from code or from `mcpServers` files."""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
import ssl
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args
from urllib.parse import urlsplit

from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.mcp.command_findings import ConfigFinding, findings_of_command
from agents_tools.mcp.oauth import OAuth, oauth_of
from agents_tools.server.host_rules import is_loopback
from agents_tools.text.json_limits import check_bounds
from agents_tools.text.output import release_text
from agents_tools.text.secrets import guard_logs
from agents_tools.tool.options import check_option_names

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from agents_tools.tool.context import ToolContext

__all__ = [
    "HeaderProvider",
    "LogLevel",
    "MCPServerConfig",
    "MetaProvider",
    "ProtocolEra",
    "Transport",
    "load_config",
]

logger = logging.getLogger("agents_tools.mcp")
guard_logs()

ProtocolEra: TypeAlias = Literal["auto", "legacy", "modern"]
"""The protocol versions to use: `legacy` is those up to 2025-11-25, `modern` those from 2026-07-28
on, and `auto` the latest that the server supports."""

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""The level of a log message of a server, in increasing order."""

Transport: TypeAlias = Literal["stdio", "http", "sse", "memory"]
"""The transport to a server."""

HeaderProvider: TypeAlias = (
    "Callable[[ToolContext[Any] | None], Mapping[str, str] | Awaitable[Mapping[str, str]]]"
)
"""Returns the headers of one request, from the context of its call (`None` outside of a call)."""

MetaProvider: TypeAlias = (
    "Callable[[ToolContext[Any] | None], Mapping[str, object] | Awaitable[Mapping[str, object]]]"
)
"""Returns the `_meta` of one request, from the context of its call (`None` outside of a call)."""


RequireApproval: TypeAlias = (
    "bool | Sequence[str] | Callable[[ToolContext[Any], dict[str, Any]], Any]"
)
"""Which calls need approval: all or none, patterns of names of tools, or a function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPServerConfig:
    """The configuration of one server.

    Attributes:
        name: The name of the server, by default the prefix of its tools.
        transport: `stdio`, `http` (streamable HTTP), `sse` (the older HTTP), or `memory`.
        command: The program, for `stdio`.
        args: The arguments of the program, for `stdio`.
        env: Environment variables in addition to HOME, LOGNAME, PATH, SHELL, TERM and USER, for
            `stdio`.
        inherit_env: The names of further variables that the server inherits, for `stdio`.
        cwd: The working directory, for `stdio`.
        url: The URL, for `http` and `sse`.
        headers: The headers of every request, for `http` and `sse`.
        header_provider: Returns the headers of one request from the context of its call, for
            `http` and `sse`.
        auth: `"oauth"` to log in with the user's browser, `OAuth` to do so with options, or an auth
            object of the SDK's HTTP client; for `http` and `sse`.
        verify: Whether the certificate of the server is verified, for `http` and `sse`; or the path
            of a file or folder with the authorities to trust, or an `ssl.SSLContext`.
        cert: The path of a file with a client certificate and its key, or the paths of both, for
            `http` and `sse`.
        http_client_factory: Returns the HTTP client that sends the requests, for `http` and `sse`:
            an `AsyncClient` of the library that the SDK uses (`httpx2`, or `httpx` for version 1).
            Its headers, authentication, transport, proxies and event hooks apply. It replaces
            `verify` and `cert`, and is closed with the connection.
        meta: The `_meta` of calls and of requests for resources and prompts: a mapping, or a
            function that returns it from the context of the call.
        server: A server object of the SDK in this process, for `memory`.
        protocol: The protocol versions to use. With `auto` the client changes to `legacy` when a
            tool sends a request to the client in a way that later versions do not have.
        connect_timeout: Seconds that the server has to connect and list its tools.
        timeout: Seconds that a call can take without progress.
        max_time: Seconds that a call can take in total.
        prefix: The prefix of the names of the tools; the name of the server by default, `None` for
            no prefix.
        allow: Patterns (`fnmatch`) of the names of the tools to include; all by default.
        deny: Patterns of the names of the tools to exclude.
        require_approval: Whether a person must approve calls: all of them, those of the tools whose
            names match patterns, or those for which a function of the context and the arguments
            returns true; see `policies.needs_approval`. It applies to the tools that the server
            lists, not to an `MCPTool`.
        trusted: Whether to trust the annotations of the tools: a tool that is declared read-only
            or idempotent is called again if its outcome is unknown, and `approve_destructive` asks
            only about the other tools.
        validate_arguments: Whether arguments are validated against the input schemas before they
            are sent.
        instructions: Whether the models of agents receive the instructions of the server.
        resources: Whether there is a tool with which models read the resources of the server.
        log_level: The lowest level of the log messages that the server sends. Those of a call are
            its events, the others are logged by `logging`. By default, messages are not requested.
        max_message: The maximum size of a message from the server, in bytes.
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
    auth: object = field(default=None, repr=False)
    verify: bool | str | ssl.SSLContext = True
    cert: str | tuple[str, str] | None = None
    http_client_factory: Callable[[], object] | None = None
    meta: Mapping[str, object] | MetaProvider | None = None
    server: object = None
    protocol: ProtocolEra = "auto"
    connect_timeout: float = 10.0
    timeout: float = 60.0
    max_time: float = 600.0
    prefix: str | None = ""
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    require_approval: RequireApproval = False
    trusted: bool = False
    validate_arguments: bool = True
    instructions: bool = False
    resources: bool = False
    log_level: LogLevel | None = None
    max_message: int = 64 << 20

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"The name of an MCP server expects a non-empty string, got {self.name!r:.60}."
            )
        if self.prefix is not None and not isinstance(self.prefix, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"MCP server {self.name!r}: 'prefix' expects a string, or null for no prefix, "
                f"got {_type_name(self.prefix)}."
            )
        if self.prefix == "":
            object.__setattr__(self, "prefix", self.name)
        required = {"stdio": "command", "http": "url", "sse": "url", "memory": "server"}
        if not isinstance(self.transport, str) or self.transport not in required:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserValueError(
                f"MCP server {self.name!r}: 'transport' expects 'stdio', 'http', 'sse' or "
                f"'memory', got {self.transport!r:.60}."
            )
        if getattr(self, required[self.transport]) is None:
            raise UserValueError(
                f"MCP server {self.name!r}: the transport {self.transport!r} requires "
                f"{required[self.transport]!r}."
            )
        if self.url is not None and not re.match(r"https?://[^/]", self.url):
            raise UserValueError(
                f"MCP server {self.name!r}: 'url' expects a complete URL, such as "
                "http://127.0.0.1:8000/mcp."
            )
        if self.protocol not in {"auto", "legacy", "modern"}:
            raise UserValueError(
                f"MCP server {self.name!r}: 'protocol' expects 'auto', 'legacy' or 'modern', got "
                f"{self.protocol!r:.60}."
            )
        self._check_http()
        if self.log_level is not None and self.log_level not in get_args(LogLevel):
            levels = ", ".join(map(repr, get_args(LogLevel)))
            raise UserValueError(
                f"MCP server {self.name!r}: 'log_level' expects one of {levels}, got "
                f"{self.log_level!r:.60}."
            )
        for name in ("instructions", "resources"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise UserTypeError(
                    f"MCP server {self.name!r}: {name!r} expects true or false, got "
                    f"{_type_name(value)}."
                )
        object.__setattr__(self, "auth", oauth_of(self.name, self.auth))
        if isinstance(self.auth, OAuth):
            self._check_login()
        for name in ("connect_timeout", "timeout", "max_time", "max_message"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
                raise UserValueError(
                    f"MCP server {self.name!r}: {name!r} expects a number above 0, "
                    f"got {value!r:.60}."
                )

    def _check_login(self) -> None:
        parts = urlsplit(self.url or "")
        if self.url is None:
            raise UserValueError(
                f"MCP server {self.name!r}: auth 'oauth' requires a server with a 'url', got the "
                f"transport {self.transport!r}."
            )
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise UserValueError(
                f"MCP server {self.name!r}: auth 'oauth' requires an https URL, or http on this "
                f"machine, got {self.place!r:.200}. Otherwise the token could be read on the way."
            )
        if any(name.lower() == "authorization" for name in self.headers):
            raise UserValueError(
                f"MCP server {self.name!r} has both auth 'oauth' and a header 'Authorization'. "
                "Remove one of them."
            )

    def _check_http(self) -> None:
        if not isinstance(self.verify, (bool, str, ssl.SSLContext)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserTypeError(
                f"MCP server {self.name!r}: 'verify' expects true or false, the path of a file or "
                f"folder with certificates, or an ssl.SSLContext, got {_type_name(self.verify)}."
            )
        if self.cert is not None and not isinstance(self.cert, str):
            object.__setattr__(self, "cert", _two_paths(self.name, self.cert))
        if self.meta is not None and not callable(self.meta):
            check_meta(self.name, self.meta)

    @property
    def place(self) -> str:
        """The URL without secrets, or the command; for messages."""
        if self.url is not None:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        return self.command or "this process"

    @property
    def findings(self) -> tuple[ConfigFinding, ...]:
        """Warnings about the command, such as an unpinned version or code in the arguments."""
        if self.transport != "stdio":
            return ()
        return tuple(
            ConfigFinding(code=finding.code, message=without_secrets(self, finding.message))
            for finding in findings_of_command(self.command or "", self.args)
        )


def _two_paths(server: str, value: object) -> tuple[str, ...]:
    """Return the paths of a certificate and of its key.

    Raises:
        UserTypeError: The value is something else.
    """
    is_list = isinstance(value, (list, tuple))
    items = tuple(cast("Sequence[object]", value)) if is_list else ()
    paths = tuple(item for item in items if isinstance(item, str))
    if len(paths) != 2 or len(items) != 2:  # noqa: PLR2004 - the certificate and its key
        raise UserTypeError(
            f"MCP server {server!r}: 'cert' expects the path of a file, or a list of two paths: of "
            f"a certificate and of its key; got {_type_name(value)}."
        )
    return paths


def check_meta(server: str, meta: object) -> dict[str, object]:
    """Return the `_meta` for a server as a dict.

    Raises:
        UserTypeError: It is not an object with strings as keys, or has keys of the protocol.
    """
    if not isinstance(meta, Mapping):
        raise UserTypeError(
            f"MCP server {server!r}: 'meta' expects an object, or a function that returns one, got "
            f"{_type_name(meta)}."
        )
    items = cast("Mapping[object, object]", meta)
    for key in items:
        if not isinstance(key, str) or key == "progressToken" or key.startswith(_PROTOCOL_PREFIX):
            raise UserTypeError(
                f"MCP server {server!r}: 'meta' expects keys other than those of the protocol, got "
                f"{key!r:.80}. Use a prefix of your own, such as 'example.org/'."
            )
    return dict(cast("Mapping[str, object]", items))


_PROTOCOL_PREFIX = "io.modelcontextprotocol/"


def without_secrets(config: MCPServerConfig, text: str) -> str:
    """Mask the values of a server's variables and headers, and known secrets, in a text.

    Args:
        config: The configuration of the server.
        text: A text from the server, or from a program between it and the client.
    """
    values = [*config.env.values(), *config.headers.values()]
    values += [value.partition(" ")[2] for value in config.headers.values()]
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _MIN_SECRET_LENGTH:
            text = text.replace(value, "***")
    return release_text(text, patterns=True)


_MIN_SECRET_LENGTH = 8
"""The length from which a value is masked: shorter values are words such as `true`."""

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
"""The names of keys in the files of editors and other programs."""

_TRANSPORTS = {
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "local": "stdio",
    "remote": "http",
}
_SECTIONS = ("mcpServers", "servers", "context_servers", "mcp_servers")
_MILLISECONDS = 1_000
"""A `timeout` from this value on is in milliseconds: some programs use this unit."""


def load_config(
    source: str | os.PathLike[str] | Mapping[str, Any], **defaults: object
) -> list[MCPServerConfig]:
    """Read the servers of an `mcpServers` file, or of its content.

    The files of editors are supported too: JSON (with comments) or TOML with the top-level key
    `mcpServers`, `servers`, `context_servers` or `mcp_servers`. `${NAME}`, `${NAME:-default}` and
    `${env:NAME}` are replaced by environment variables. Disabled entries (`"disabled": true`) are
    left out.

    Questionable commands, such as one with an unpinned version, are not errors: they are in
    `MCPServerConfig.findings`, and are logged at the level `INFO`.

    Args:
        source: The path of the file, or its content.
        **defaults: Fields of `MCPServerConfig` for entries that do not have them.

    Raises:
        UserError: The file cannot be read, or an entry is invalid; the message names the entry.
    """
    label, content = load_content(source)
    section = next((key for key in _SECTIONS if key in content), None)
    if section is None:
        if any(isinstance(entry, Mapping) for entry in content.values()):
            raise UserValueError(
                f'{label} has no key "mcpServers". Put the servers below it: '
                '{"mcpServers": {"name": {"command": "..."}}}.'
            )
        raise UserValueError(f'{label} has no MCP servers: the key "mcpServers" is missing.')
    entries = content[section]
    if not isinstance(entries, Mapping):
        raise UserTypeError(f'"{section}" in {label} expects an object, got {_type_name(entries)}.')
    servers: list[MCPServerConfig] = []
    for name, entry in cast("Mapping[str, Any]", entries).items():
        if not isinstance(entry, Mapping):
            raise UserTypeError(
                f'"{section}.{name}" in {label} expects an object like {{"command": "..."}}, '
                f"got {_type_name(entry)}."
            )
        values = cast("Mapping[str, Any]", entry)
        if values.get("disabled") is True or values.get("enabled") is False:
            continue
        try:
            servers.append(_from_entry(name, values, defaults))
        except UserError as error:
            raise type(error)(f"{label}: {error}") from None
        except RecursionError:
            raise UserValueError(f'{label}: "{section}.{name}" is nested too deeply.') from None
        for finding in servers[-1].findings:
            logger.info("MCP server %r in %s: %s.", name, label, finding.message)
    return servers


def server_config(name: str, transport: str | None = None, **connection: Any) -> MCPServerConfig:
    """Create the configuration of a server from arguments.

    Args:
        name: The name of the server.
        transport: The transport; derived from the other fields by default.
        **connection: The other fields of `MCPServerConfig`.

    Raises:
        UserError: A field is unknown, invalid or missing.
    """
    known = [one.name for one in fields(MCPServerConfig)]
    check_option_names(f"MCP server {name!r}", connection, known)
    values = dict(connection)
    values["transport"] = _transport(name, transport, values)
    for key in ("args", "inherit_env", "allow", "deny"):
        if values.get(key) is not None:
            values[key] = _strings(name, key, values[key])
        else:
            values.pop(key, None)
    approval = values.get("require_approval", False)
    if isinstance(approval, (str, Mapping)) or approval is None:
        raise UserTypeError(
            f"MCP server {name!r}: 'require_approval' expects true, false or a list of patterns, "
            f"got {approval!r:.60}. Write true to require approval of all calls."
        )
    if not isinstance(approval, bool) and not callable(approval):
        values["require_approval"] = _strings(name, "require_approval", approval)
    for key in ("env", "headers"):
        if values.get(key) is not None:
            values[key] = _mapping(name, key, values[key])
        else:
            values.pop(key, None)
    headers: dict[str, str] = values.get("headers") or {}
    for key, text in headers.items():
        check_header(f"MCP server {name!r}", key, text)
    for key in ("command", "cwd", "url"):
        value = values.get(key)
        if isinstance(value, os.PathLike):
            values[key] = os.fspath(cast("os.PathLike[str]", value))
        elif value is not None and not isinstance(value, str):
            raise UserTypeError(
                f"MCP server {name!r}: {key!r} expects a string, got {_type_name(value)}."
            )
    return MCPServerConfig(name=name, **values)


def check_header(subject: str, name: str, value: str) -> None:
    """Raise an error unless HTTP allows a header, without its value: that can be a secret."""
    if not _HEADER_NAME.fullmatch(name):
        raise UserValueError(
            f"{subject}: the name of the header {name!r:.60} is not valid: expected ASCII letters, "
            "digits and hyphens."
        )
    if not (value.isascii() and value.isprintable()):
        raise UserValueError(
            f"{subject}: the value of the header {name!r:.60} contains a line break or another "
            "character that is not allowed in a header. Remove it, or encode the value."
        )


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def check_seconds(option: str, value: object) -> None:
    """Raise an error unless the value of an option is a positive number of seconds."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise UserTypeError(f"{option} expects seconds as a positive number, got {value!r:.60}.")


def _from_entry(
    name: str, entry: Mapping[str, Any], defaults: Mapping[str, Any]
) -> MCPServerConfig:
    known = {one.name for one in fields(MCPServerConfig)} - _CODE_ONLY
    values: dict[str, Any] = dict(defaults)
    for key, value in entry.items():
        field_name = _ALIASES.get(key, key)
        if field_name in known:
            values[field_name] = _expand(name, key, value)
        elif key in _WITHOUT_EFFECT:
            logger.warning(
                "MCP server %r: the key %r of its configuration has no effect. %s",
                name,
                key,
                _WITHOUT_EFFECT[key],
            )
        elif key not in _IGNORED and (
            matches := difflib.get_close_matches(key, [*known, *_ALIASES], n=1, cutoff=0.8)
        ):
            raise UserValueError(
                f"MCP server {name!r} has the unknown key {key!r}. Did you mean {matches[0]!r}?"
            )
    command = values.get("command")
    if isinstance(command, Mapping):  # {"command": {"path": ..., "args": ..., "env": ...}}
        parts = cast("Mapping[str, Any]", command)
        values |= {key: parts[key] for key in ("args", "env") if parts.get(key)}
        values["command"] = parts.get("path")
    elif isinstance(command, list):  # the program and its arguments in one list
        program, *rest = cast("list[Any]", command) or [None]
        more = _strings(name, "args", values.get("args") or ())
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


_CODE_ONLY = frozenset({
    "name", "header_provider", "http_client_factory", "server", "trusted",
})  # fmt: skip
"""Fields that can only be set in code."""

_IGNORED = frozenset({
    "args_hint", "description", "dev", "disabled", "enabled", "gallery", "icon", "keep_alive",
    "note", "source", "tools", "version",
})  # fmt: skip
"""Keys of other programs that are ignored."""

_APPROVALS = (
    'Tools run without approval by default. Set "require_approval" to true, or to a list of '
    "patterns of the names of tools."
)
_CREDENTIALS = 'Write "auth": "oauth" to log in, or a header with a token in "headers".'
_WITHOUT_EFFECT = {
    "alwaysAllow": _APPROVALS,
    "autoApprove": _APPROVALS,
    "auto_approve": _APPROVALS,
    "envFile": 'Write the variables in "env"; ${NAME} stands for a variable of this process.',
    "oauth": _CREDENTIALS,
    "trust": _APPROVALS,
}
"""Keys of other programs that a user could rely on, and what to do instead."""


def _transport(name: str, transport: Any, values: Mapping[str, Any]) -> Any:
    if transport is None:
        for field_name, default in (("command", "stdio"), ("server", "memory")):
            if values.get(field_name) is not None:
                return default
        url = values.get("url")
        if isinstance(url, str):
            return "sse" if re.search(r"/sse/?(\?|$)", url) else "http"
        raise UserValueError(
            f'MCP server {name!r} requires "command" (a program to start) or "url" (an address).'
        )
    return _TRANSPORTS.get(str(transport), transport)


def _strings(name: str, key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, set, frozenset)):
        raise UserTypeError(
            f"MCP server {name!r}: {key!r} expects a list of strings, got {_type_name(value)}."
        )
    items = [*cast("Sequence[Any]", value)]
    for item in items:
        if not isinstance(item, (str, os.PathLike)):
            raise UserTypeError(
                f"MCP server {name!r}: {key!r} expects a list of strings, got "
                f"{_type_name(item)} in the list: {item!r:.60}."
            )
    return tuple(str(item) for item in items)


def _mapping(name: str, key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise UserTypeError(
            f"MCP server {name!r}: {key!r} expects an object, got {_type_name(value)}."
        )
    items = cast("Mapping[Any, Any]", value)
    for item_name, text in items.items():
        if not isinstance(item_name, str) or not isinstance(text, str):
            raise UserTypeError(
                f"MCP server {name!r}: {key!r} expects strings as values, got "
                f"{_type_name(text)} for {item_name!r:.60}."
            )
    return dict(cast("Mapping[str, str]", items))


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    return _TYPE_NAMES.get(type(value), type(value).__name__)


_TYPE_NAMES: dict[type[Any], str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


# --- files


def server_entries(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of servers in the content of a file, unchecked; empty without any.

    Args:
        content: The content of a configuration file.
    """
    section = next((key for key in _SECTIONS if key in content), None)
    entries = None if section is None else content[section]
    return dict(cast("Mapping[str, Any]", entries)) if isinstance(entries, Mapping) else {}


def load_content(
    source: str | os.PathLike[str] | Mapping[str, Any],
) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a configuration for messages, and its content.

    Args:
        source: The path of a file of JSON (with comments) or TOML, or its content.

    Raises:
        UserError: The file cannot be read.
    """
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
        content: Any = tomllib.loads(text) if path.suffix == ".toml" else parse_json(text)
    except (ValueError, RecursionError) as error:
        raise UserValueError(f"The MCP configuration {path} cannot be read: {error}.") from error
    if not isinstance(content, Mapping):
        raise UserTypeError(
            f"The MCP configuration {path} is invalid: expected an object, got "
            f"{_type_name(content)}."
        )
    return str(path), cast("Mapping[str, Any]", content)


_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMAS = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def parse_json(text: str) -> Any:
    """Return the value of JSON with comments and trailing commas, as editors write it.

    Raises:
        ValueError: The text is not JSON.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        plain = _TRAILING_COMMAS.sub(
            lambda m: m[1] or "", _COMMENTS.sub(lambda m: m[1] or "", text)
        )
        try:
            return json.loads(plain)
        except ValueError:
            raise error from None


# --- variables

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_INPUT = re.compile(r"\$\{input:[^}]*\}")


def _expand(name: str, key: str, value: Any) -> Any:
    if isinstance(value, str):
        if match := _INPUT.search(value):
            raise UserValueError(
                f"MCP server {name!r}: {key!r} contains {match[0]}, which only an editor can "
                "fill in. Put the value into an environment variable and use ${NAME} instead."
            )
        return _VARIABLE.sub(lambda match: _variable(name, key, match[1], match[2]), value)
    if isinstance(value, list):
        return [_expand(name, key, item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {
            field_name: _expand(name, f"{key}.{field_name}", item)
            for field_name, item in entries.items()
        }
    return value


def _variable(name: str, key: str, variable: str, default: str | None) -> str:
    if variable in {"workspaceFolder", "workspaceRoot"}:
        return str(Path.cwd())
    if variable in {"userHome", "HOME"}:
        return str(Path.home())
    value = os.environ.get(variable)
    if value is not None and (value or default is None):
        return value
    if default is not None:
        return default
    raise UserValueError(
        f"MCP server {name!r}: {key!r} requires the environment variable {variable}, which is not "
        f"set. Set it, or use ${{{variable}:-default}}."
    )
