"""What can go wrong between the Messages API and a run, and what helps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anthropic

from agents_tools._secrets import mask
from agents_tools._text import safe_text, shorten
from agents_tools.errors import (
    ContextWindowExceeded,
    ModelError,
    ToolRefusedError,
    UserError,
)
from agents_tools.models._anthropic_values import NO_KEY, an_object, is_own_host
from agents_tools.models._common import (
    Offer,
    retry_after,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Asked",
    "broken_stream",
    "cut_off",
    "is_about_the_form",
    "refusal_of",
    "unreachable_error",
    "unsent_error",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an error is told against; no message may show the keys."""

    model: str
    url: str
    keys: tuple[str, ...]
    offer: Offer


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
"""The status that goes with an error that is told in the middle of a stream."""


_OK, _BAD, _NOT_FOUND, _TOO_LARGE, _TOO_MANY, _SERVER = 200, 400, 404, 413, 429, 500


_TOO_LONG = re.compile(
    r"(?:prompt|input|conversation|messages?) (?:is|are) too long"
    r"|context[ _](?:limit|window|length)|too many (?:total )?(?:text bytes|tokens)",
    re.IGNORECASE,
)


_FORM = re.compile(r"output_config\.format|output_format|structured[ _]output", re.IGNORECASE)


def _told(error: anthropic.APIStatusError) -> tuple[str, str]:
    """Give the kind and the words of a provider's error."""
    body = an_object(error.body)
    inner = an_object(body.get("error"))
    words = inner.get("message") or body.get("message") or body.get("detail") or body.get("error")
    if not words and isinstance(error.body, str):
        words = error.body
    return text(inner.get("type")), str(words or error.message)


def is_about_the_form(error: anthropic.APIStatusError, body: Mapping[str, Any]) -> bool:
    sent = "format" in an_object(body.get("output_config"))
    return sent and error.status_code == _BAD and _FORM.search(_told(error)[1]) is not None


def refusal_of(error: anthropic.APIStatusError, asked: Asked) -> ModelError:
    """Give the error for what the provider refuses, at once or in the middle of its answer."""
    kind, words = _told(error)
    model, said = asked.model, _said_safely(words, asked)
    status = error.status_code
    told = f"{model}: the provider answered {status}: {said}"
    if status < _BAD:
        status = _STATUSES.get(kind, _SERVER)
        told = f"{model} broke off: {said} ({kind or 'unknown error'})"
    hasty = status == _TOO_MANY  # "too many tokens" a minute, not in the conversation
    if status == _TOO_LARGE or (status < _SERVER and not hasty and _TOO_LONG.search(said)):
        return ContextWindowExceeded(
            f"The conversation is too long for {model}: {said}", model=model, status=status
        )
    if status in {401, 403}:
        remedy = "Is ANTHROPIC_API_KEY (or api_key=) the right key, and may it use this model?"
        return ModelError(f"{told} {remedy}", model=model, status=status)
    if status == _NOT_FOUND:
        remedy = f"There may be no model {model!r} for this key."
        if not is_own_host(asked.url):
            remedy = f"Does {_said_safely(asked.url, asked)} have a model {model!r}?"
        return ModelError(f"{told} {remedy}", model=model, status=status)
    if status in {408, 409, 429} or status >= _SERVER:
        headers = error.response.headers
        return ModelError(
            told,
            model=model,
            status=status,
            retryable=headers.get("x-should-retry") != "false",
            retry_after=retry_after(headers),
        )
    tool = _refused_tool(said, asked.offer) if status in {400, 422} else None
    if tool is not None:
        return ToolRefusedError(
            f"{model} does not take the tool {tool!r}: {said}",
            tool_name=tool,
            reason=said,
            model=model,
            status=status,
        )
    if status == _BAD and _SAMPLING.match(said):
        told += (
            " Newer models and versions of the API know no such setting: leave it out of "
            "ModelSettings."
        )
    return ModelError(told, model=model, status=status)


_SAMPLING = re.compile(r"[`'\"]?(?:temperature|top_p)\b")


def _refused_tool(said: str, offer: Offer) -> str | None:
    place = re.search(r"\btools[.\[](\d+)", said)
    if place is not None and int(place[1]) < len(offer.names):
        return offer.names[int(place[1])]
    if not re.search(r"schema|tool", said, re.IGNORECASE) or said.startswith("messages."):
        return None
    quoted = set(re.findall(r"['\"`]([A-Za-z0-9_-]{1,64})['\"`]", said))
    return next((name for name in offer.names if name in quoted), None)


def broken_stream(error: Exception, asked: Asked) -> ModelError:
    if isinstance(error, anthropic.APIStatusError):
        return refusal_of(error, asked)
    if isinstance(error, anthropic.APIConnectionError):
        return cut_off(asked, str(error.__cause__ or "") or str(error))
    return cut_off(asked, f"{type(error).__name__}: {error}")


def cut_off(asked: Asked, why: str) -> ModelError:
    return ModelError(
        f"The answer of {asked.model} broke off: {_said_safely(why, asked) or 'connection lost'}.",
        model=asked.model,
        retryable=True,
    )


def unreachable_error(error: anthropic.APIConnectionError, asked: Asked) -> ModelError:
    why = str(error.__cause__ or "") or str(error)
    if isinstance(error, anthropic.APITimeoutError):
        why = "no answer in time"
    local = "" if is_own_host(asked.url) else " Is the server running, and is the address right?"
    return ModelError(
        f"{asked.model} could not be reached at {_said_safely(asked.url, asked)}: "
        f"{_said_safely(why, asked)}.{local}",
        model=asked.model,
        retryable=True,
    )


def unsent_error(error: BaseException, asked: Asked) -> UserError:
    said = _said_safely(f"{type(error).__name__}: {error}", asked)
    return UserError(
        f"The request to {asked.model} cannot be sent: {said}. Look at the model settings "
        "(extra_body, extra_headers), at the address and at the key."
    )


def _said_safely(words: str, asked: Asked) -> str:
    """Shorten what a provider says, without secrets and control characters."""
    for key in asked.keys:
        if key != NO_KEY:
            words = words.replace(key, "***")
    return shorten(mask(safe_text(words)).strip(), 500)
