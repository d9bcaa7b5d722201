"""What both adapters to OpenAI share: clients, tools, one streamed request, and its errors."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import mimetypes
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import openai

from agents_tools._secrets import mask
from agents_tools._text import safe_text, shorten
from agents_tools.errors import (
    ContextWindowExceeded,
    ModelError,
    ToolRefusedError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.models._clients import client_here
from agents_tools.models._common import (
    Answer,
    Offer,
    base64_text,
    checked_url,
    followed,
    host_of,
    retry_after,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.model import ModelSettings
    from agents_tools.outputs import (
        ToolOutputAudio,
        ToolOutputFileContent,
        ToolOutputImage,
    )

__all__ = [
    "Asked",
    "Endpoint",
    "ask",
    "attribute",
    "broken_off",
    "data_url",
    "file_name",
    "is_own_host",
    "new_call_id",
    "object_of",
    "safe_name",
    "short_id",
]

_log = logging.getLogger("agents_tools")

_OPENAI = "https://api.openai.com/v1"
_OWN_HOSTS = ("api.openai.com", ".openai.azure.com", ".services.ai.azure.com", ".api.openai.com")
_NO_KEY = "none"
"""What servers without keys are given: the client insists on one."""


class Endpoint:
    """A model, and where and with which key it is reached.

    Args:
        model: The name of the model.
        client: The client to use in place of one of our own.
        base_url: The address of the API; `OPENAI_BASE_URL`, or OpenAI's own, if not given.
        api_key: The key; `OPENAI_API_KEY` if not given.
    """

    __slots__ = ("_api_key", "_base_url", "_client", "model")

    def __init__(
        self,
        model: str,
        client: openai.AsyncOpenAI | None,
        base_url: str | None,
        api_key: str | None,
    ) -> None:
        if client is not None and not hasattr(client, "responses"):
            raise UserTypeError(
                f"client= takes an openai.AsyncOpenAI, not a {type(client).__name__}."
            )
        if isinstance(cast("object", client), openai.OpenAI):
            raise UserTypeError(
                "client= takes an openai.AsyncOpenAI; this one is synchronous and would hold up "
                "the event loop."
            )
        if client is not None and (base_url or api_key):
            raise UserValueError(
                "client= says already where the model is; leave out base_url= and api_key=."
            )
        self.model = model
        self._client = client
        self._base_url = checked_url(base_url, "base_url=")
        self._api_key = api_key

    async def client(self) -> openai.AsyncOpenAI:
        """Give the client for the running loop.

        Raises:
            UserError: There is no key.
        """
        if self._client is not None:
            return self._client
        url = self._base_url or checked_url(os.environ.get("OPENAI_BASE_URL"), "OPENAI_BASE_URL")
        key = self._api_key or os.environ.get("OPENAI_API_KEY")
        if not key:
            if url is None or is_own_host(url):
                raise UserError(
                    f"There is no key for the model {self.model!r}. Set OPENAI_API_KEY, or give "
                    "api_key=... to the model."
                )
            key = _NO_KEY

        def make() -> openai.AsyncOpenAI:
            # The loop of a run retries; two layers of it would multiply.
            return openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0)

        return await client_here(("openai", key, url), make)


def is_own_host(url: object) -> bool:
    """Say whether an address is one of OpenAI's own, or of a cloud that hosts its models."""
    host = host_of(url)
    return any(host.endswith(known) if known[0] == "." else host == known for known in _OWN_HOSTS)


# --- tools


# --- one request


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an error is told against.

    Attributes:
        model: The model.
        url: Where it was asked.
        key: The key, which no message may show.
        elsewhere: What to try where an address does not know the API.
        offer: The tools that were told.
    """

    model: str
    url: str
    key: str
    offer: Offer
    elsewhere: str = ""


async def ask(
    create: Callable[..., Awaitable[Any]],
    body: Mapping[str, Any],
    answer: Answer,
    asked: Asked,
    *,
    settings: ModelSettings,
    optional: Mapping[str, str],
    dropped: set[str],
) -> None:
    """Put a request, and hand the events of the answer over as they come.

    Args:
        create: Opens the stream.
        body: The request. It goes past the client's own conversion, which would walk through
            every tool and the whole conversation each turn.
        answer: Takes the events.
        asked: What errors are told against.
        settings: The headers and the time of the request.
        optional: Fields that a server may not know, each with a pattern that finds the refusal.
        dropped: The optional fields that this server is known to refuse; grows.

    Raises:
        ModelError: The provider could not be reached, refused, or broke off.
        UserError: The request cannot be written.
    """
    deadline = asyncio.timeout(settings.timeout)
    try:
        async with deadline:
            while True:
                sent = {name: value for name, value in body.items() if name not in dropped}
                try:
                    stream = await _opened(create, sent, settings, asked)
                    break
                except openai.APIStatusError as error:
                    refused = _refused_field(error, sent, optional)
                    if refused is None:
                        raise _refusal(error, asked) from error
                    dropped.add(refused)
            try:
                await followed(
                    stream, answer, broken=partial(_broken, asked=asked), cut=partial(_cut, asked)
                )
            finally:
                await stream.close()
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise ModelError(
            f"{asked.model} did not finish its answer within {settings.timeout:g} s "
            "(ModelSettings(timeout=...)).",
            model=asked.model,
            retryable=True,
        ) from error


async def _opened(
    create: Callable[..., Awaitable[Any]],
    body: dict[str, Any],
    settings: ModelSettings,
    asked: Asked,
) -> Any:
    options: dict[str, Any] = {"extra_body": body}
    if settings.extra_headers is not None:
        options["extra_headers"] = dict(settings.extra_headers)
    if settings.timeout is not None:
        options["timeout"] = settings.timeout
    try:
        return await create(**options)
    except openai.APIStatusError:
        raise
    except openai.APIConnectionError as error:
        if type(error.__cause__).__name__ not in _UNSENT:
            raise _unreachable(error, asked) from error
        # The client's own error may show the key, so it is not chained.
        raise _unsent(error.__cause__ or error, asked) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, the request never left
        raise _unsent(error, asked) from None


_UNSENT = {"LocalProtocolError", "UnsupportedProtocol"}
"""What the client raises for a request that breaks the rules of HTTP itself."""


def _unsent(error: BaseException, asked: Asked) -> UserError:
    said = _said(f"{type(error).__name__}: {error}", asked)
    return UserError(
        f"The request to {asked.model} cannot be sent: {said}. Look at the model settings "
        "(extra_body, extra_headers), at the address and at the key."
    )


# --- what can go wrong


def broken_off(code: object, message: object, asked: Asked) -> ModelError:
    """Give the error for one that the provider tells in the middle of a stream."""
    said = _said(text(message) or text(code) or "no reason given", asked)
    hasty = isinstance(code, str) and "rate_limit" in code
    if code in _TOO_LONG_CODES or (_TOO_LONG.search(said) and not hasty):
        return _too_long(said, asked, None)
    final = isinstance(code, str) and code.startswith(_FINAL_CODES)
    return ModelError(f"{asked.model} broke off: {said}", model=asked.model, retryable=not final)


_FINAL_CODES = (
    "invalid_",
    "image_",
    "empty_image",
    "failed_to_download",
    "unsupported_",
    "insufficient_quota",
    "bio_policy",
    "data_residency",
    "misalignment",
)
"""How those codes begin that the same request would meet again."""


def _broken(error: Exception, asked: Asked) -> ModelError:
    if isinstance(error, openai.APIConnectionError):
        return _cut(asked, str(error.__cause__ or "") or str(error))
    if not isinstance(error, openai.APIError):
        return _cut(asked, f"{type(error).__name__}: {error}")
    return broken_off(error.code or error.type, error.message, asked)


def _cut(asked: Asked, why: str) -> ModelError:
    return ModelError(
        f"The answer of {asked.model} broke off: {_said(why, asked) or 'connection lost'}.",
        model=asked.model,
        retryable=True,
    )


def _unreachable(error: openai.APIConnectionError, asked: Asked) -> ModelError:
    why = str(error.__cause__ or "") or str(error)
    if isinstance(error, openai.APITimeoutError):
        why = "no answer in time"
    local = "" if is_own_host(asked.url) else " Is the server running, and is the address right?"
    return ModelError(
        f"{asked.model} could not be reached at {_said(asked.url, asked)}: "
        f"{_said(why, asked)}.{local}",
        model=asked.model,
        retryable=True,
    )


def _refusal(error: openai.APIStatusError, asked: Asked) -> ModelError:
    """Give the error for a request that was answered with an HTTP status of failure."""
    status, model = error.status_code, asked.model
    said = _said(_provider_message(error), asked)
    told = f"{model}: the provider answered {status}: {said}"
    hasty = status == _TOO_MANY  # "too many tokens" a minute, not in the conversation
    too_long = _TOO_LONG.search(said) and status < _SERVER and not hasty
    if _TOO_LONG_CODES & {error.code, error.type} or too_long:
        return _too_long(said, asked, status)
    if status in {401, 403}:
        remedy = "Is OPENAI_API_KEY (or api_key=) the right key, and may it use this model?"
        return ModelError(f"{told} {remedy}", model=model, status=status)
    if status == _NOT_FOUND:
        remedy = (
            f"There may be no model {model!r} for this key."
            if is_own_host(asked.url)
            else f"Does {_said(asked.url, asked)} have a model {model!r}? {asked.elsewhere}"
        )
        return ModelError(f"{told} {remedy}".rstrip(), model=model, status=status)
    if status in {408, 409, 429} or status >= _SERVER:
        # An empty account is told with status 429 as well, and waiting does not fill it.
        spent = "insufficient_quota" in {error.code, error.type}
        return ModelError(
            told,
            model=model,
            status=status,
            retryable=not spent,
            retry_after=retry_after(error.response.headers),
        )
    tool = _refused_tool(error, said, asked.offer)
    if tool is not None:
        return ToolRefusedError(
            f"{model} does not take the tool {tool!r}: {said}",
            tool_name=tool,
            reason=said,
            model=model,
            status=status,
        )
    return ModelError(told, model=model, status=status)


_NOT_FOUND = 404
_TOO_MANY = 429
_SERVER = 500
_INVALID = frozenset({400, 422})
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum (?:context|prompt|input) length"
    r"|(?:prompt|input|conversation) is too long|too many (?:input |prompt )?tokens",
    re.IGNORECASE,
)


def _too_long(said: str, asked: Asked, status: int | None) -> ContextWindowExceeded:
    return ContextWindowExceeded(
        f"The conversation is too long for {asked.model}: {said}", model=asked.model, status=status
    )


def _provider_message(error: openai.APIStatusError) -> str:
    body = error.body
    if isinstance(body, Mapping):
        facts = cast("Mapping[str, Any]", body)
        for key in ("message", "detail", "error"):
            if facts.get(key):
                return str(facts[key])
    if isinstance(body, str) and body:
        return body
    return error.message


def _said(words: str, asked: Asked) -> str:
    """Shorten what a provider says, without secrets and control characters."""
    if asked.key and asked.key != _NO_KEY:
        words = words.replace(asked.key, "***")
    return shorten(mask(safe_text(words)).strip(), 500)


def _refused_field(
    error: openai.APIStatusError, sent: Mapping[str, Any], optional: Mapping[str, str]
) -> str | None:
    if error.status_code not in _INVALID:
        return None
    said = f"{error.param} {_provider_message(error)}"
    for name, pattern in optional.items():
        if name in sent and re.search(pattern, said, re.IGNORECASE):
            return name
    return None


def _refused_tool(error: openai.APIStatusError, said: str, offer: Offer) -> str | None:
    """Find the tool that a refusal is about."""
    if error.status_code not in _INVALID:
        return None
    param = text(error.param)
    if param and not param.startswith(("tools", "functions")):
        return None
    place = _PLACE.search(param) or _PLACE.search(said)
    if place is not None and int(place[1]) < len(offer.names):
        return offer.names[int(place[1])]
    if not re.search(r"schema|function|tool", said, re.IGNORECASE):
        return None
    quoted = set(re.findall(r"['\"`]([A-Za-z0-9_-]{1,64})['\"`]", said))
    for name, told in zip(offer.names, offer.wire, strict=True):
        # The first word of a definition says its kind: that is how hosted tools are called.
        if name in quoted or (told.get("type") != "function" and told.get("type") in quoted):
            return name
    return None


_PLACE = re.compile(r"(?:tools|functions)['\"]?[\[.,]\s*(\d+)")


# --- reading what servers send: nothing is taken for granted


def attribute(value: object, *names: str) -> Any:
    """Follow attributes; `None` where one is missing."""
    for name in names:
        value = getattr(value, name, None)
    return value


def object_of(value: Any) -> dict[str, Any]:
    """Give a JSON object as a dictionary, be it one of the client's own records or not."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, openai.BaseModel):
        return value.to_dict(mode="json", warnings=False)
    return {}


# --- writing


def data_url(block: ToolOutputImage | ToolOutputFileContent | ToolOutputAudio) -> str:
    """Give the data of a block as a URL."""
    kind = block.mime_type or "application/octet-stream"
    return f"data:{kind};base64,{base64_text(block.data or b'')}"


def file_name(block: ToolOutputFileContent) -> str | None:
    """Give the name under which a file is sent; `None` for one that models cannot read so."""
    mime = block.mime_type or "application/octet-stream"
    if mime.startswith("text/") or mime in _UNREADABLE:
        return None
    return block.filename or f"file{mimetypes.guess_extension(mime) or ''}"


_UNREADABLE = frozenset({"application/octet-stream", "application/zip", "application/json"})
"""Types that are refused as files, or that are better read as text."""


def new_call_id() -> str:
    """Make up the id of a call for a server that gives none."""
    return f"call_{uuid.uuid4().hex[:24]}"


def short_id(call_id: str, longest: int) -> str:
    """Give the id of a call in a form that the API takes; the same for the same id."""
    if 0 < len(call_id) <= longest:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:32]}"


def safe_name(name: str) -> str:
    """Give a name that the API takes: models make up others, and those stay in the history."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "_"
