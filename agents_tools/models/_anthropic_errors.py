"""The errors of the Messages API, with their remedies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anthropic

from agents_tools.errors import (
    ContextWindowExceeded,
    ModelError,
    ToolRefusedError,
    UserError,
)
from agents_tools.models._anthropic_values import NO_KEY, an_object, is_own_host
from agents_tools.models._http import (
    ToolDefinitions,
    retry_after,
    text,
)
from agents_tools.text.escape import shorten
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AnthropicRequest",
    "interrupted_error",
    "is_format_error",
    "rejection_error",
    "stream_exception_error",
    "unreachable_error",
    "unreadable_thinking",
    "unsent_error",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicRequest:
    """The target of a request, for its error messages; the keys are masked in them."""

    model: str
    url: str
    keys: tuple[str, ...]
    definitions: ToolDefinitions


_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP statuses of error events in a stream."""


_OK, _BAD, _NOT_FOUND, _TOO_LARGE, _TOO_MANY, _SERVER = 200, 400, 404, 413, 429, 500


_TOO_LONG = re.compile(
    r"(?:prompt|input|conversation|messages?) (?:is|are) too long"
    r"|context[ _](?:limit|window|length)|too many (?:total )?(?:text bytes|tokens)",
    re.IGNORECASE,
)


_FORMAT_ERROR = re.compile(
    r"output_config\.format|output_format|structured[ _]output", re.IGNORECASE
)


_SIGNATURE_ERROR = re.compile(
    r"(?:messages\.(\d+)\.\S* )?invalid .?signature.? in .?thinking", re.IGNORECASE
)


def _error_details(error: anthropic.APIStatusError) -> tuple[str, str]:
    """Return the type and the message of a provider's error."""
    body = an_object(error.body)
    inner = an_object(body.get("error"))
    raw = inner.get("message") or body.get("message") or body.get("detail") or body.get("error")
    if not raw and isinstance(error.body, str):
        raw = error.body
    return text(inner.get("type")), str(raw or error.message)


def is_format_error(error: anthropic.APIStatusError, body: Mapping[str, Any]) -> bool:
    """Return whether the provider rejected the output format of a request."""
    has_format = "format" in an_object(body.get("output_config"))
    message = _error_details(error)[1]
    return has_format and error.status_code == _BAD and _FORMAT_ERROR.search(message) is not None


def unreadable_thinking(error: anthropic.APIStatusError, body: Mapping[str, Any]) -> int | None:
    """Return the index of the message whose thinking the provider cannot verify.

    Only the provider whose model wrote it can. `None` if the error is another one.
    """
    match = _SIGNATURE_ERROR.search(_error_details(error)[1])
    if match is None or error.status_code != _BAD:
        return None
    last = len(body["messages"]) - 1
    return min(int(match[1]), last) if match[1] else last


def rejection_error(error: anthropic.APIStatusError, target: AnthropicRequest) -> ModelError:
    """Return the error for a rejected request, from the status or from an event in the stream."""
    kind, raw = _error_details(error)
    model, reason = target.model, _safe_text(raw, target)
    status = error.status_code
    message = f"{model}: the provider returned status {status}: {reason}"
    if status < _BAD:
        status = _STATUSES.get(kind, _SERVER)
        message = f"{model} ended its response with an error: {reason} ({kind or 'unknown error'})"
    is_rate_limit = status == _TOO_MANY  # the tokens per minute, not the length of the conversation
    if status == _TOO_LARGE or (
        status < _SERVER and not is_rate_limit and _TOO_LONG.search(reason)
    ):
        return ContextWindowExceeded(
            f"The conversation is too long for {model}: {reason}", model=model, status=status
        )
    if status in {401, 403}:
        remedy = "Check ANTHROPIC_API_KEY (or api_key=), and whether it has access to this model."
        return ModelError(f"{message.rstrip('.')}. {remedy}", model=model, status=status)
    if status == _NOT_FOUND:
        remedy = f"Check that the model {model!r} exists and is available for this key."
        if not is_own_host(target.url):
            remedy = f"Check that {_safe_text(target.url, target)} has a model {model!r}."
        return ModelError(f"{message.rstrip('.')}. {remedy}", model=model, status=status)
    if status in {408, 409, 429} or status >= _SERVER:
        headers = error.response.headers
        return ModelError(
            message,
            model=model,
            status=status,
            retryable=headers.get("x-should-retry") != "false",
            retry_after=retry_after(headers),
        )
    tool = _rejected_tool(reason, target.definitions) if status in {400, 422} else None
    if tool is not None:
        return ToolRefusedError(
            f"{model} rejected the tool {tool!r}: {reason}",
            tool_name=tool,
            reason=reason,
            model=model,
            status=status,
        )
    if status == _BAD and _SAMPLING.match(reason):
        message += (
            " Newer models and versions of the API do not support this setting. Remove it from "
            "ModelSettings."
        )
    return ModelError(message, model=model, status=status)


_SAMPLING = re.compile(r"[`'\"]?(?:temperature|top_p)\b")


def _rejected_tool(reason: str, definitions: ToolDefinitions) -> str | None:
    match = re.search(r"\btools[.\[](\d+)", reason)
    if match is not None and int(match[1]) < len(definitions.names):
        return definitions.names[int(match[1])]
    if not re.search(r"schema|tool", reason, re.IGNORECASE) or reason.startswith("messages."):
        return None
    quoted_names = set(re.findall(r"['\"`]([A-Za-z0-9_-]{1,64})['\"`]", reason))
    return next((name for name in definitions.names if name in quoted_names), None)


def stream_exception_error(error: Exception, target: AnthropicRequest) -> ModelError:
    """Return the error for an exception of the client in a stream."""
    if isinstance(error, anthropic.APIStatusError):
        return rejection_error(error, target)
    if isinstance(error, anthropic.APIConnectionError):
        return interrupted_error(target, str(error.__cause__ or "") or str(error))
    return interrupted_error(target, f"{type(error).__name__}: {error}")


def interrupted_error(target: AnthropicRequest, why: str) -> ModelError:
    """Return the error for a response that ended too early."""
    reason = _safe_text(why, target) or "connection lost"
    return ModelError(
        f"The response of {target.model} was interrupted: {reason}.",
        model=target.model,
        retryable=True,
    )


def unreachable_error(error: anthropic.APIConnectionError, target: AnthropicRequest) -> ModelError:
    """Return the error for a failed connection."""
    why = str(error.__cause__ or "") or str(error)
    if isinstance(error, anthropic.APITimeoutError):
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


def unsent_error(error: BaseException, target: AnthropicRequest) -> UserError:
    """Return the error for a request that the client could not send."""
    reason = _safe_text(f"{type(error).__name__}: {error}", target)
    return UserError(
        f"The request to {target.model} cannot be sent: {reason}. Check the model settings "
        "(extra_body, extra_headers), the URL and the key."
    )


def _safe_text(raw: str, target: AnthropicRequest) -> str:
    """Shorten a text of a provider, and remove secrets and control characters."""
    for key in target.keys:
        if key != NO_KEY:
            raw = raw.replace(key, "***")
    return shorten(release_text(raw, patterns=True).strip(), 500)
