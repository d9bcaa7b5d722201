"""Models of Anthropic's Messages API."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from agents_tools._package import missing_extra

try:
    import anthropic
except ImportError as error:
    raise missing_extra("An Anthropic model", "anthropic", error) from error

from agents_tools.errors import (
    ModelError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.models._anthropic_errors import (
    AnthropicRequest,
    interrupted_error,
    is_format_error,
    rejection_error,
    stream_exception_error,
    unreachable_error,
    unreadable_thinking,
    unsent_error,
)
from agents_tools.models._anthropic_request import (
    request_body,
    schema_of,
    signatures,
    without_thoughts,
)
from agents_tools.models._anthropic_response import StreamedMessage
from agents_tools.models._anthropic_values import NO_KEY, is_own_host
from agents_tools.models._clients import loop_client
from agents_tools.models._http import (
    RefusedReasoning,
    ToolDefinitionCache,
    check_url,
    merge_extra,
    read_stream,
)
from agents_tools.text.output import release_text
from agents_tools.wire.hosted import hosted_definition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from anthropic import AsyncAnthropic

    from agents_tools.agents.model import (
        ModelRequest,
        ModelResponse,
        ModelSettings,
    )
    from agents_tools.events.base import Emit

__all__ = ["AnthropicModel"]

_log = logging.getLogger("agents_tools")


def load(name: str, **options: Any) -> AnthropicModel:
    """Return the model with a name, such as `claude-sonnet-5`."""
    return AnthropicModel(name, **options)


class AnthropicModel:
    """A model of Anthropic's Messages API.

    Responses have at most `DEFAULT_MAX_TOKENS` tokens unless `ModelSettings(max_tokens=...)` is
    set. Enable prompt caching with `ModelSettings(prompt_cache="5m")`, and thinking with
    `ModelSettings(extra_body={"thinking": {"type": "adaptive"}})`. All system and developer
    messages become part of the system prompt. `temperature` and `top_p` are sent if they are set;
    newer models, and the API from version 2026-10-21 on, reject them.

    Args:
        name: The name of the model at Anthropic.
        client: The client to use, which belongs to one event loop; by default, one is created per
            event loop.
        base_url: The URL of the API; by default `ANTHROPIC_BASE_URL`, or Anthropic's own URL.
        api_key: The key; by default `ANTHROPIC_API_KEY`, or other credentials that the official
            client finds.
    """

    provider: ClassVar[str] = "anthropic"

    def __init__(
        self,
        name: str,
        *,
        client: AsyncAnthropic | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        self.name = name
        self._client_override = client
        self._base_url = check_url(base_url, "base_url=")
        self._api_key = api_key
        hosted = partial(hosted_definition, method="to_anthropic", model=name)
        self._definition_cache = ToolDefinitionCache(self.provider, hosted, _SEARCH)
        self._unsupported_formats: set[str] = set()
        self._refused = RefusedReasoning()
        if client is None:
            return
        if not hasattr(client, "messages") or not hasattr(client, "__aenter__"):
            raise UserTypeError(
                f"client= expects an anthropic.AsyncAnthropic, got {type(client).__name__}."
            )
        if base_url or api_key:
            raise UserValueError(
                "client= cannot be combined with base_url= or api_key=. Configure the client "
                "instead."
            )

    def __repr__(self) -> str:
        return f"AnthropicModel({self.name!r})"

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Send the request and return the response; see `Model.respond`."""
        definitions = self._definition_cache.get(request.tools)
        output_format = request.output
        schema = None
        if output_format is not None and output_format.name not in self._unsupported_formats:
            schema = schema_of(output_format)
        body = request_body(request, definitions, schema)
        client = await self._client()
        target = AnthropicRequest(
            model=self.name,
            url=str(client.base_url),
            keys=tuple(filter(None, (getattr(client, name, None) for name in _KEYS))),
            definitions=definitions,
        )
        answer = StreamedMessage(request, emit, target)
        conversation = body["messages"] = without_thoughts(body["messages"], self._refused)
        for _ in range(_MAX_PAUSES):
            try:
                await _stream_response(client, body, answer, target, request.settings)
            except _FormatRejected as rejection:
                if output_format is None or schema is None:  # the format is from extra_body
                    raise rejection.error from rejection.__cause__
                self._unsupported_formats.add(output_format.name)
                schema = None
                body = {**request_body(request, definitions, None), "messages": body["messages"]}
                continue
            except _ThinkingRejected as rejection:
                self._refused.update(signatures(conversation[: rejection.last + 1]))
                readable = without_thoughts(conversation, self._refused)
                if readable == conversation:
                    raise rejection.error from rejection.__cause__
                conversation = body["messages"] = readable
                continue
            if not answer.is_paused:
                return answer.response()
            # The provider pauses a long response with its own tools. It continues the response
            # when the next request contains the partial response.
            partial = {"role": "assistant", "content": answer.partial_blocks()}
            body["messages"] = [*conversation, partial]
            if answer.container is not None:
                merge_extra(body, {"container": {"id": answer.container["id"]}})
        raise ModelError(
            f"{self.name} paused its response {_MAX_PAUSES} times without finishing it.",
            model=self.name,
        )

    @property
    def base_url(self) -> str:
        """The URL of the API."""
        if self._client_override is not None:
            return str(self._client_override.base_url)
        return self._url() or _ANTHROPIC

    def _url(self) -> str | None:
        return self._base_url or check_url(
            os.environ.get("ANTHROPIC_BASE_URL"), "ANTHROPIC_BASE_URL"
        )

    async def _client(self) -> AsyncAnthropic:
        if self._client_override is not None:
            return self._client_override
        url = self._url()
        key = self._api_key or os.environ.get("ANTHROPIC_API_KEY") or None
        token = None if key else os.environ.get("ANTHROPIC_AUTH_TOKEN") or None

        def create() -> AsyncAnthropic:
            # The run retries failed requests; retries of the client would multiply with these.
            if token:
                return anthropic.AsyncAnthropic(auth_token=token, base_url=url, max_retries=0)
            if not key and url is not None and not is_own_host(url):
                return anthropic.AsyncAnthropic(api_key=NO_KEY, base_url=url, max_retries=0)
            try:
                client = anthropic.AsyncAnthropic(api_key=key, base_url=url, max_retries=0)
            except anthropic.AnthropicError as error:
                reason = release_text(str(error), patterns=True)
                raise UserError(
                    f"Model {self.name!r} has no usable credentials: {reason} Set "
                    "ANTHROPIC_API_KEY, or pass api_key=... to the model."
                ) from error
            credentials = (client.api_key, client.auth_token, getattr(client, "credentials", None))
            if not any(credentials):
                raise UserError(
                    f"Model {self.name!r} has no API key. Set ANTHROPIC_API_KEY, or pass "
                    "api_key=... to the model."
                )
            return client

        return await loop_client(("anthropic", key, token, url), create)


_ANTHROPIC = "https://api.anthropic.com"
_KEYS = ("api_key", "auth_token")

_SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


_MAX_PAUSES = 32


class _FormatRejected(Exception):  # noqa: N818 - control flow, not an error
    """The model does not support structured output with this schema."""

    def __init__(self, error: ModelError) -> None:
        super().__init__()
        self.error = error


class _ThinkingRejected(Exception):  # noqa: N818 - control flow, not an error
    """The provider cannot verify the thinking in a message, which is of another provider."""

    def __init__(self, error: ModelError, last: int) -> None:
        super().__init__()
        self.error = error
        self.last = last


class _AnthropicStream(Protocol):
    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def close(self) -> None: ...


async def _stream_response(
    client: AsyncAnthropic,
    body: Mapping[str, Any],
    answer: StreamedMessage,
    target: AnthropicRequest,
    settings: ModelSettings,
) -> None:
    """Send a request, and process the events of the response as they arrive."""
    deadline = asyncio.timeout(settings.timeout)
    answer.start_stream()
    try:
        async with deadline:
            stream = await _open_stream(client, body, target, settings)
            try:
                await read_stream(
                    stream,
                    answer,
                    exception_error=partial(stream_exception_error, target=target),
                    early_end_error=partial(interrupted_error, target),
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
    client: AsyncAnthropic,
    body: Mapping[str, Any],
    target: AnthropicRequest,
    settings: ModelSettings,
) -> _AnthropicStream:
    # The body bypasses the client's own conversion, which would process every tool and the whole
    # conversation in each turn.
    options: dict[str, Any] = {"extra_body": dict(body)}
    if settings.extra_headers is not None:
        options["extra_headers"] = dict(settings.extra_headers)
    if settings.timeout is not None:
        options["timeout"] = settings.timeout
    try:
        return await client.messages.create(
            model=target.model, max_tokens=1, messages=[], stream=True, **options
        )
    except anthropic.APIStatusError as error:
        if is_format_error(error, body):
            raise _FormatRejected(rejection_error(error, target)) from error
        unreadable = unreadable_thinking(error, body)
        if unreadable is not None:
            raise _ThinkingRejected(rejection_error(error, target), unreadable) from error
        raise rejection_error(error, target) from error
    except anthropic.APIConnectionError as error:
        if type(error.__cause__).__name__ not in _UNSENT:
            raise unreachable_error(error, target) from error
        # The client's own error can show the key, so it is not chained.
        raise unsent_error(error.__cause__ or error, target) from None
    except Exception as error:  # noqa: BLE001 - any other error occurs before the request is sent
        raise unsent_error(error, target) from None


_UNSENT = {"LocalProtocolError", "UnsupportedProtocol"}
"""The errors of the client for a request that is not valid HTTP."""
