"""Shared code of the OpenAI adapters: clients, streamed requests, and their errors."""

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

from agents_tools._package import missing_extra

try:
    import openai
except ImportError as error:
    raise missing_extra("An OpenAI model", "openai", error) from error

from agents_tools.errors import (
    ContextWindowExceeded,
    ModelError,
    ToolRefusedError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.models._clients import loop_client
from agents_tools.models._http import (
    StreamedResponse,
    ToolDefinitions,
    base64_text,
    check_url,
    host_of,
    read_stream,
    retry_after,
    text,
)
from agents_tools.text.escape import shorten
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.agents.model import ModelSettings
    from agents_tools.content.outputs import (
        ToolOutputAudio,
        ToolOutputFileContent,
        ToolOutputImage,
    )

__all__ = [
    "Endpoint",
    "OpenAIRequest",
    "attribute",
    "data_url",
    "file_name",
    "is_own_host",
    "new_call_id",
    "object_of",
    "safe_name",
    "short_id",
    "stream_error",
    "stream_response",
]

_log = logging.getLogger("agents_tools")

_OPENAI = "https://api.openai.com/v1"
_OWN_HOSTS = ("api.openai.com", ".openai.azure.com", ".services.ai.azure.com", ".api.openai.com")
_NO_KEY = "none"
"""The key for servers without keys: the client requires a key."""


class Endpoint:
    """The URL and the key of a model.

    Args:
        model: The name of the model.
        client: The client to use; by default, one is created per event loop.
        base_url: The URL of the API; by default `OPENAI_BASE_URL`, or OpenAI's own URL.
        api_key: The key; `OPENAI_API_KEY` by default.
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
                f"client= expects an openai.AsyncOpenAI, got {type(client).__name__}."
            )
        if isinstance(cast("object", client), openai.OpenAI):
            raise UserTypeError(
                "client= expects an openai.AsyncOpenAI, got a synchronous client, which would "
                "block the event loop."
            )
        if client is not None and (base_url or api_key):
            raise UserValueError(
                "client= cannot be combined with base_url= or api_key=. Configure the client "
                "instead."
            )
        self.model = model
        self._client = client
        self._base_url = check_url(base_url, "base_url=")
        self._api_key = api_key

    @property
    def url(self) -> str:
        """The URL of the API."""
        return self._url() or _OPENAI if self._client is None else str(self._client.base_url)

    def _url(self) -> str | None:
        return self._base_url or check_url(os.environ.get("OPENAI_BASE_URL"), "OPENAI_BASE_URL")

    async def client(self) -> openai.AsyncOpenAI:
        """Return the client for the running loop.

        Raises:
            UserError: No API key is set.
        """
        if self._client is not None:
            return self._client
        url = self._url()
        key = self._api_key or os.environ.get("OPENAI_API_KEY")
        if not key:
            if url is None or is_own_host(url):
                raise UserError(
                    f"Model {self.model!r} has no API key. Set OPENAI_API_KEY, or pass "
                    "api_key=... to the model."
                )
            key = _NO_KEY

        def create() -> openai.AsyncOpenAI:
            # The run retries failed requests; retries of the client would multiply with these.
            return openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0)

        return await loop_client(("openai", key, url), create)


def is_own_host(url: object) -> bool:
    """Return whether a URL belongs to OpenAI, or to a cloud that hosts its models."""
    host = host_of(url)
    return any(host.endswith(known) if known[0] == "." else host == known for known in _OWN_HOSTS)


# --- one request


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIRequest:
    """The target of a request, for its error messages.

    Attributes:
        model: The name of the model.
        url: The URL of the API.
        key: The API key, which is masked in messages.
        definitions: The tools of the request.
        not_found_remedy: The remedy if the URL does not support the API.
    """

    model: str
    url: str
    key: str
    definitions: ToolDefinitions
    not_found_remedy: str = ""


async def stream_response(
    create: Callable[..., Awaitable[Any]],
    body: Mapping[str, Any],
    answer: StreamedResponse,
    target: OpenAIRequest,
    *,
    settings: ModelSettings,
    optional: Mapping[str, str],
    dropped: set[str],
) -> None:
    """Send a request, and process the events of the response as they arrive.

    Args:
        create: Opens the stream.
        body: The request body. It bypasses the client's own conversion, which would process every
            tool and the whole conversation in each turn.
        answer: Processes the events.
        target: The target of the request.
        settings: The headers and the timeout of the request.
        optional: Fields that a server can reject, each with a pattern for the error message.
        dropped: The optional fields that this server has rejected; new ones are added.

    Raises:
        ModelError: The provider could not be reached, rejected the request, or ended the response
            early.
        UserError: The request is invalid.
    """
    deadline = asyncio.timeout(settings.timeout)
    try:
        async with deadline:
            while True:
                sent = {name: value for name, value in body.items() if name not in dropped}
                try:
                    stream = await _open_stream(create, sent, settings, target)
                    break
                except openai.APIStatusError as error:
                    rejected = _rejected_field(error, sent, optional)
                    if rejected is None:
                        raise _rejection(error, target) from error
                    dropped.add(rejected)
            try:
                await read_stream(
                    stream,
                    answer,
                    exception_error=partial(_stream_exception, target=target),
                    early_end_error=partial(_interrupted, target),
                )
            finally:
                await stream.close()
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise ModelError(
            f"{target.model} did not finish its response within {settings.timeout:g} s "
            "(ModelSettings(timeout=...)).",
            model=target.model,
            retryable=True,
        ) from error


async def _open_stream(
    create: Callable[..., Awaitable[Any]],
    body: dict[str, Any],
    settings: ModelSettings,
    target: OpenAIRequest,
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
            raise _unreachable(error, target) from error
        # The client's own error can show the key, so it is not chained.
        raise _unsent(error.__cause__ or error, target) from None
    except Exception as error:  # noqa: BLE001 - any other error occurs before the request is sent
        raise _unsent(error, target) from None


_UNSENT = {"LocalProtocolError", "UnsupportedProtocol"}
"""The errors of the client for a request that is not valid HTTP."""


def _unsent(error: BaseException, target: OpenAIRequest) -> UserError:
    reason = _safe_text(f"{type(error).__name__}: {error}", target)
    return UserError(
        f"The request to {target.model} cannot be sent: {reason}. Check the model settings "
        "(extra_body, extra_headers), the URL and the key."
    )


# --- errors


def stream_error(code: object, message: object, target: OpenAIRequest) -> ModelError:
    """Return the error for an error event in a stream."""
    reason = _safe_text(text(message) or text(code) or "unknown error", target)
    code = text(code)
    # Servers that pass on the errors of others have their HTTP statuses as codes.
    status = int(code) if re.fullmatch(r"[45]\d\d", code) else None
    is_rate_limit = "rate_limit" in code or status == _TOO_MANY
    if code in _TOO_LONG_CODES or (_TOO_LONG.search(reason) and not is_rate_limit):
        return _too_long(reason, target, status)
    is_final = code.startswith(_FINAL_CODES) if status is None else not _is_temporary(status)
    return ModelError(
        f"{target.model} ended its response with an error: {reason}",
        model=target.model,
        status=status,
        retryable=not is_final,
    )


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
"""The prefixes of the error codes for which a retry cannot succeed."""


def _stream_exception(error: Exception, target: OpenAIRequest) -> ModelError:
    if isinstance(error, openai.APIConnectionError):
        return _interrupted(target, str(error.__cause__ or "") or str(error))
    if not isinstance(error, openai.APIError):
        return _interrupted(target, f"{type(error).__name__}: {error}")
    message = error.body if isinstance(error.body, str) else error.message
    return stream_error(error.code or error.type, message, target)


def _interrupted(target: OpenAIRequest, why: str) -> ModelError:
    reason = _safe_text(why, target) or "connection lost"
    return ModelError(
        f"The response of {target.model} was interrupted: {reason}.",
        model=target.model,
        retryable=True,
    )


def _unreachable(error: openai.APIConnectionError, target: OpenAIRequest) -> ModelError:
    why = str(error.__cause__ or "") or str(error)
    if isinstance(error, openai.APITimeoutError):
        why = "the request timed out"
    remedy = (
        ""
        if is_own_host(target.url)
        else " Check that the server runs and that the URL is correct."
    )
    return ModelError(
        f"{target.model} could not be reached at {_safe_text(target.url, target)}: "
        f"{_safe_text(why, target)}.{remedy}",
        model=target.model,
        retryable=True,
    )


def _rejection(error: openai.APIStatusError, target: OpenAIRequest) -> ModelError:
    """Return the error for a response with an HTTP error status."""
    status, model = error.status_code, target.model
    reason = _safe_text(_provider_message(error), target)
    message = f"{model}: the provider returned status {status}: {reason}"
    is_rate_limit = status == _TOO_MANY  # the tokens per minute, not the length of the conversation
    too_long = _TOO_LONG.search(reason) and status < _SERVER and not is_rate_limit
    if _TOO_LONG_CODES & {error.code, error.type} or too_long:
        return _too_long(reason, target, status)
    if status in {401, 403}:
        remedy = "Check OPENAI_API_KEY (or api_key=), and whether it has access to this model."
        return ModelError(f"{message.rstrip('.')}. {remedy}", model=model, status=status)
    if status == _NOT_FOUND:
        remedy = (
            f"Check that the model {model!r} exists and is available for this key."
            if is_own_host(target.url)
            else f"Check that {_safe_text(target.url, target)} has a model {model!r}. "
            f"{target.not_found_remedy}"
        )
        return ModelError(f"{message.rstrip('.')}. {remedy}".rstrip(), model=model, status=status)
    if _is_temporary(status):
        # An exceeded quota has the status 429 too, but a retry does not help.
        is_quota_exceeded = "insufficient_quota" in {error.code, error.type}
        return ModelError(
            message,
            model=model,
            status=status,
            retryable=not is_quota_exceeded,
            retry_after=retry_after(error.response.headers),
        )
    tool = _rejected_tool(error, reason, target.definitions)
    if tool is not None:
        return ToolRefusedError(
            f"{model} rejected the tool {tool!r}: {reason}",
            tool_name=tool,
            reason=reason,
            model=model,
            status=status,
        )
    return ModelError(message, model=model, status=status)


def _is_temporary(status: int) -> bool:
    return status in {408, 409, 429} or status >= _SERVER


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


def _too_long(reason: str, target: OpenAIRequest, status: int | None) -> ContextWindowExceeded:
    return ContextWindowExceeded(
        f"The conversation is too long for {target.model}: {reason}",
        model=target.model,
        status=status,
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


def _safe_text(raw: str, target: OpenAIRequest) -> str:
    """Shorten a text of a provider, and remove secrets and control characters."""
    if target.key and target.key != _NO_KEY:
        raw = raw.replace(target.key, "***")
    return shorten(release_text(raw, patterns=True).strip(), 500)


def _rejected_field(
    error: openai.APIStatusError, sent: Mapping[str, Any], optional: Mapping[str, str]
) -> str | None:
    if error.status_code not in _INVALID:
        return None
    reason = f"{error.param} {_provider_message(error)}"
    for name, pattern in optional.items():
        if name in sent and re.search(pattern, reason, re.IGNORECASE):
            return name
    return None


def _rejected_tool(
    error: openai.APIStatusError, reason: str, definitions: ToolDefinitions
) -> str | None:
    """Return the name of the tool that the provider rejected; `None` if it is another error."""
    if error.status_code not in _INVALID:
        return None
    param = text(error.param)
    if param and not param.startswith(("tools", "functions")):
        return None
    match = _TOOL_INDEX.search(param) or _TOOL_INDEX.search(reason)
    if match is not None and int(match[1]) < len(definitions.names):
        return definitions.names[int(match[1])]
    if not re.search(r"schema|function|tool", reason, re.IGNORECASE):
        return None
    quoted_names = set(re.findall(r"['\"`]([A-Za-z0-9_-]{1,64})['\"`]", reason))
    for name, definition in zip(definitions.names, definitions.wire, strict=True):
        # Messages name a hosted tool by the type in its definition.
        if name in quoted_names or (
            definition.get("type") != "function" and definition.get("type") in quoted_names
        ):
            return name
    return None


_TOOL_INDEX = re.compile(r"(?:tools|functions)['\"]?[\[.,]\s*(\d+)")


# --- reading responses: servers do not always send the documented types


def attribute(value: object, *names: str) -> Any:
    """Return a nested attribute; `None` if it does not exist."""
    for name in names:
        value = getattr(value, name, None)
    return value


def object_of(value: Any) -> dict[str, Any]:
    """Return a mapping, or an object of the client, as a dictionary."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, openai.BaseModel):
        return value.to_dict(mode="json", warnings=False)
    return {}


# --- writing requests


def data_url(block: ToolOutputImage | ToolOutputFileContent | ToolOutputAudio) -> str:
    """Return the data of a block as a URL."""
    kind = block.mime_type or "application/octet-stream"
    return f"data:{kind};base64,{base64_text(block.data or b'')}"


def file_name(block: ToolOutputFileContent) -> str | None:
    """Return the name for sending a file; `None` for a type that models cannot read as a file."""
    mime = block.mime_type or "application/octet-stream"
    if mime.startswith("text/") or mime in _UNREADABLE:
        return None
    return block.filename or f"file{mimetypes.guess_extension(mime) or ''}"


_UNREADABLE = frozenset({"application/octet-stream", "application/zip", "application/json"})
"""Types that are rejected as files, or that are better sent as text."""


def new_call_id() -> str:
    """Return an id for a call from a server that does not send ids."""
    return f"call_{uuid.uuid4().hex[:24]}"


def short_id(call_id: str, max_length: int) -> str:
    """Return an id that the API accepts, always the same for the same call."""
    if 0 < len(call_id) <= max_length:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:32]}"


def safe_name(name: str) -> str:
    """Return a name that the API accepts: a history can contain names that a model invented."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "_"
