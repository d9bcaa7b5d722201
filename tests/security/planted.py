"""Canaries: planted secrets, the tools that leak them, and the search for them."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from pydantic import BaseModel, SecretStr

from agents_tools import (
    FunctionTool,
    NotifyStreamEvent,
    ToolContext,
    ToolError,
    function_tool,
    notify,
    policies,
    progress,
    streaming_tool,
)

__all__ = ["REGISTERED", "SHAPES", "Box", "found", "registered_tools", "shape_tools"]

Leak = Callable[[str], Any]


def canary(name: str) -> str:
    """Create a secret that contains its place, so that a leak names its source."""
    return f"cnry-{name.replace(' ', '-')}-{binascii.crc32(name.encode()):08x}?/+é"


class Reply(BaseModel):
    """A value of a tool's own type."""

    text: str
    secret: SecretStr


@dataclass
class Box:
    """The context object of a program."""

    key: SecretStr
    lines: list[str] = field(default_factory=list[str])


class RudeError(Exception):
    """An error whose text is built each time it is read."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self.secret = secret

    def __str__(self) -> str:
        return f"refused for {self.secret}"


def in_cause(secret: str) -> str:
    try:
        raise KeyError(secret)  # noqa: TRY301 - what is raised is the point
    except KeyError as error:
        raise RuntimeError("no such entry") from error


def in_context(secret: str) -> str:
    try:
        raise KeyError(secret)  # noqa: TRY301 - what is raised is the point
    except KeyError:
        raise RuntimeError("no such entry")  # noqa: B904 - what came before hangs on by itself


def in_note(secret: str) -> str:
    error = RuntimeError("refused")
    error.add_note(f"with {secret}")
    raise error


def in_group(secret: str) -> str:
    raise ExceptionGroup(f"all of {secret}", [ValueError(secret), RudeError(secret)])


def in_local(secret: str) -> str:
    known = {"password": secret}
    raise RuntimeError(f"{len(known)} refused")


def raised(make: Callable[[str], BaseException]) -> Leak:
    """Return a function that raises an error with the secret in it."""

    def leak(secret: str) -> Any:
        raise make(secret)

    return leak


def data(secret: str) -> bytes:
    return secret.encode()


RESULTS: dict[str, Leak] = {
    "plain result": lambda secret: f"The key is {secret}.",
    "value of a dict": lambda secret: {"deep": [{"x": secret}]},
    "key of a dict": lambda secret: {secret: 1},
    "model of pydantic": lambda secret: Reply(text=secret, secret=SecretStr(secret)),
    "SecretStr": lambda secret: {"key": SecretStr(secret)},
    "base64": lambda secret: base64.b64encode(data(secret)).decode(),
    "base64 inside": lambda secret: base64.b64encode(b"a" + data(secret) + b"zz").decode(),
    "base64 for addresses": lambda secret: base64.urlsafe_b64encode(b"ab" + data(secret)).decode(),
    "hex": lambda secret: data(secret).hex(),
    "HEX": lambda secret: data(secret).hex().upper(),
    "percent": lambda secret: "".join(f"%{byte:02X}" for byte in data(secret)),
    "quoted": lambda secret: quote(secret, safe=""),
    "query": lambda secret: f"https://api.example.com/v1?key={quote(secret)}&page=1",
    "userinfo": lambda secret: f"postgresql://me:{quote(secret, safe='')}@db.internal/x",
    "header": lambda secret: {"Authorization": f"Bearer {secret}", "Cookie": f"s={secret}"},
    "JSON in JSON": lambda secret: json.dumps(json.dumps({"x": secret})),
    "repr of a list": lambda secret: repr([secret, data(secret)]),
    "lines": lambda secret: f"1\n{secret}\n2",
}
ERRORS: dict[str, Leak] = {
    "message": raised(lambda secret: ValueError(f"bad key {secret}")),
    "cause": in_cause,
    "context": in_context,
    "note": in_note,
    "group": in_group,
    "own text": raised(RudeError),
    "local": in_local,
    "many arguments": raised(lambda secret: OSError(13, secret, f"/tmp/{secret}")),  # noqa: S108
    "for the model": raised(lambda secret: ToolError(f"say {secret} to nobody")),
    "address in an error": raised(
        lambda secret: ConnectionError(f"GET https://me:{quote(secret, safe='')}@x.example failed")
    ),
    "bytes in an error": raised(lambda secret: ValueError(data(secret))),
}
TOLD = (
    "progress",
    "notice",
    "nested notice",
    "chunks",
    "delta chunks",
    "environment",
    "hidden argument",
    "context object",
    "attempts",
    "failure function",
)
REGISTERED: dict[str, str] = {name: canary(name) for name in (*RESULTS, *ERRORS, *TOLD)}
"""Secrets that the program registers, by where they are planted."""

_LONG = "Zq3xV9kLm2Pw8Rt5Yb7Nc4Hd6Jf1Gs0A"
SHAPES: dict[str, tuple[str, str]] = {
    "key of OpenAI": (f"sk-proj-{_LONG}{_LONG[:16]}", "{}"),
    "key of Anthropic": (f"sk-ant-api03-{_LONG}{_LONG}", "{}"),
    "token of GitHub": (f"ghp_{_LONG}abcd", "{}"),
    "key of AWS": (f"wJalrXUtnFEMI/K7MDENG/{_LONG[:18]}", "aws_secret_access_key={}"),
    "bearer": (f"{_LONG}.{_LONG}", "Authorization: Bearer {}"),
    "web token": (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.dGhpcyBpcyBub3QgYSBzaWduYXR1cmU",
        "token {}",
    ),
    "password": ("hunter2-hunter2-Zq3", "password={}"),
    "password in an address": ("s3cr3t-Zq3xV9kLm2", "postgresql://me:{}@db.internal/x"),
    "private key": (
        f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{_LONG}",
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
    ),
}
"""Secrets that nobody registers, and how they stand in the errors of tools."""


def _tool(name: str, leak: Leak, secret: str) -> FunctionTool[..., Any]:
    @function_tool(name_override=_named(name))
    def act() -> Any:
        """Do it."""
        return leak(secret)

    return act


def _named(name: str) -> str:
    return "do_" + re.sub("[^A-Za-z]+", "_", name) + f"_{binascii.crc32(name.encode()):x}"[:4]


def registered_tools() -> list[FunctionTool[..., Any]]:
    """Return the tools that leak the registered canaries, each in a different way."""
    known = REGISTERED
    made = [_tool(name, leak, known[name]) for name, leak in {**RESULTS, **ERRORS}.items()]

    @function_tool
    def say_progress() -> str:
        progress(1, 2, f"at {known['progress']}")
        return "fine"

    @function_tool
    def say_notice() -> str:
        notify(f"with {known['notice']}")
        return "fine"

    @streaming_tool
    async def say_nested():
        """Say something with JSON in it."""
        yield NotifyStreamEvent(data=json.dumps({"a": [{known["nested notice"]: 1}]}))
        yield "fine"

    @streaming_tool
    async def say_chunks():
        """Say something letter by letter."""
        for letter in f"It is {known['chunks']}. ":
            yield NotifyStreamEvent(data=letter, is_delta=True)
        yield "fine"

    @streaming_tool
    async def say_more_chunks():
        """Say something in pieces that cut each secret."""
        text = f"<{known['delta chunks']}><{data(known['delta chunks']).hex()}>"
        for at in range(0, len(text), 7):
            yield NotifyStreamEvent(data=text[at : at + 7], is_delta=True)
        yield "fine"

    @function_tool
    def read_environment() -> str:
        return os.environ["CANARY_IN_ENVIRONMENT"]

    @policies.hide(key=known["hidden argument"])
    @function_tool
    def use_key(key: str) -> str:
        notify(f"using {key}")
        raise PermissionError(f"{key} is refused")

    @function_tool
    def use_context(ctx: ToolContext[Box]) -> str:
        notify(repr(ctx.context))
        return f"{ctx.context.key.get_secret_value()} of {ctx!r} {ctx.context!r}"

    @policies.retry(attempts=2, backoff=0)
    @function_tool
    def try_again() -> str:
        raise ConnectionError(f"no answer for {known['attempts']}")

    def error_text(_: Any, error: Exception) -> str:
        return f"It went wrong: {error} ({known['failure function']})"

    @function_tool(failure_error_function=error_text)
    def fail_by_hand() -> str:
        raise ValueError(known["failure function"])

    return [
        *made,
        *(say_progress, say_notice, say_nested, say_chunks, say_more_chunks),
        *(read_environment, use_key, use_context, try_again, fail_by_hand),
    ]


def shape_tools() -> list[FunctionTool[..., Any]]:
    """Return the tools that fail with a secret of a well-known format."""

    def failing(text: str) -> Leak:
        return raised(lambda _: RuntimeError(f"The server has refused {text} again"))

    return [
        _tool(name, failing(how.format(secret)), secret) for name, (secret, how) in SHAPES.items()
    ]


# --- search


def found(canaries: Mapping[str, str], sinks: Mapping[str, str | bytes]) -> list[str]:
    """Return where a canary appears, as planted or in a form that can be decoded."""
    hits: list[str] = []
    for sink, held in sinks.items():
        readings = list(_readings(held if isinstance(held, str) else held.decode("latin-1")))
        for name, secret in canaries.items():
            if any(form in text for form in _forms(secret) for text in readings):
                hits.append(f"{name} in {sink}")
    return hits


def _forms(secret: str) -> list[str]:
    """Return the forms to search for: the text, its bytes read as Latin-1, and encodings."""
    plain = secret.encode()
    cores = [base64.b64encode(bytes(shift) + plain).decode()[4:-4] for shift in range(3)]
    ascii_part = secret.removesuffix("?/+é")  # the part that is the same in every JSON encoding
    return [ascii_part, plain.decode("latin-1"), plain.hex(), *cores]


def _readings(text: str) -> Iterable[str]:
    """Return a text as it is, and in common decodings."""
    yield text
    yield text.lower()
    yield unquote(text)
    yield text.replace("-", "+").replace("_", "/")
    bare = text.replace("\\", "")
    if bare != text:
        yield bare
    yield re.sub(r'["\s,:{}\[\]]|data|delta', "", text)  # letters that arrived one by one
