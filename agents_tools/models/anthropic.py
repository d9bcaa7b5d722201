"""Models of Anthropic over its Messages API."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import anthropic

from agents_tools._secrets import mask
from agents_tools.errors import (
    ModelError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.models._anthropic_answer import StreamedAnswer
from agents_tools.models._anthropic_errors import (
    Asked,
    broken_stream,
    cut_off,
    is_about_the_form,
    refusal_of,
    unreachable_error,
    unsent_error,
)
from agents_tools.models._anthropic_request import DEFAULT_MAX_TOKENS, request_body, schema_of
from agents_tools.models._anthropic_values import NO_KEY, is_own_host
from agents_tools.models._clients import client_here
from agents_tools.models._common import (
    Offers,
    checked_url,
    followed,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from anthropic import AsyncAnthropic

    from agents_tools.events import Emit
    from agents_tools.hosted import HostedTool
    from agents_tools.model import (
        ModelRequest,
        ModelResponse,
        ModelSettings,
    )

__all__ = ["DEFAULT_MAX_TOKENS", "AnthropicModel", "load"]

_log = logging.getLogger("agents_tools")


def load(name: str, **options: Any) -> AnthropicModel:
    """Give the model of a name, such as `claude-sonnet-5`."""
    return AnthropicModel(name, **options)


class AnthropicModel:
    """A model behind the Messages API.

    Answers are at most `DEFAULT_MAX_TOKENS` long unless the settings say otherwise. Thinking and
    prompt caching are asked for in the words of the API, by `ModelSettings(extra_body=...)`:
    `{"thinking": {"type": "adaptive"}}`, `{"cache_control": {"type": "ephemeral"}}`. Messages of
    the roles system and developer all become part of the system prompt. `temperature` and `top_p`
    are sent where they are set; newer models, and the API from version 2026-10-21 on, refuse them.

    Args:
        name: The model, as Anthropic calls it.
        client: A client to use in place of one of our own; it belongs to one event loop.
        base_url: The address of the API; `ANTHROPIC_BASE_URL`, or Anthropic's own, if not given.
        api_key: The key; `ANTHROPIC_API_KEY`, or what else the official client finds, if not given.
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
        self._given = client
        self._base_url = checked_url(base_url, "base_url=")
        self._api_key = api_key
        self._offers = Offers(self.provider, self._refuse_hosted, _SEARCH)
        self._plain_forms: set[str] = set()
        if client is None:
            return
        if not hasattr(client, "messages") or not hasattr(client, "__aenter__"):
            raise UserTypeError(
                f"client= takes an anthropic.AsyncAnthropic, not a {type(client).__name__}."
            )
        if base_url or api_key:
            raise UserValueError(
                "client= says already where the model is; leave out base_url= and api_key=."
            )

    def __repr__(self) -> str:
        return f"AnthropicModel({self.name!r})"

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer; see `Model.respond`."""
        offer = self._offers.of(request.tools)
        form = request.output
        schema = None if form is None or form.name in self._plain_forms else schema_of(form)
        body = request_body(request, offer, schema)
        client = await self._client()
        asked = Asked(
            model=self.name,
            url=str(client.base_url),
            keys=tuple(filter(None, (getattr(client, name, None) for name in _KEYS))),
            offer=offer,
        )
        answer = StreamedAnswer(request, emit, asked)
        conversation = body["messages"]
        for _ in range(_MOST_PAUSES):
            try:
                await _ask(client, body, answer, asked, request.settings)
            except _FormRefused as refused:
                if form is None or schema is None:  # a form of the caller's own making
                    raise refused.error from refused.__cause__
                self._plain_forms.add(form.name)
                schema = None
                body = {**request_body(request, offer, None), "messages": body["messages"]}
                continue
            if not answer.paused:
                return answer.response()
            # The provider stops long work of its own tools for a breath; what it has done so far
            # is sent back for it to go on.
            said = {"role": "assistant", "content": answer.said_so_far()}
            body["messages"] = [*conversation, said]
        raise ModelError(
            f"{self.name} paused its answer {_MOST_PAUSES} times without an end.", model=self.name
        )

    async def _client(self) -> AsyncAnthropic:
        if self._given is not None:
            return self._given
        url = self._base_url or checked_url(
            os.environ.get("ANTHROPIC_BASE_URL"), "ANTHROPIC_BASE_URL"
        )
        key = self._api_key or os.environ.get("ANTHROPIC_API_KEY") or None
        token = None if key else os.environ.get("ANTHROPIC_AUTH_TOKEN") or None

        def make() -> AsyncAnthropic:
            # The loop of a run retries; two layers of it would multiply.
            if token:
                return anthropic.AsyncAnthropic(auth_token=token, base_url=url, max_retries=0)
            if not key and url is not None and not is_own_host(url):
                return anthropic.AsyncAnthropic(api_key=NO_KEY, base_url=url, max_retries=0)
            try:
                client = anthropic.AsyncAnthropic(api_key=key, base_url=url, max_retries=0)
            except anthropic.AnthropicError as error:
                raise UserError(
                    f"The official client finds no usable credentials for the model "
                    f"{self.name!r}: {mask(str(error))} Set ANTHROPIC_API_KEY, or give "
                    "api_key=... to the model."
                ) from error
            found = (client.api_key, client.auth_token, getattr(client, "credentials", None))
            if not any(found):
                raise UserError(
                    f"There is no key for the model {self.name!r}. Set ANTHROPIC_API_KEY, or give "
                    "api_key=... to the model."
                )
            return client

        return await client_here(("anthropic", key, token, url), make)

    def _refuse_hosted(self, tool: HostedTool) -> dict[str, Any]:
        raise UserTypeError(
            f"tool {tool.name!r} ({type(tool).__name__}) runs at the provider and needs the "
            f"Responses API, but model {self.name!r} is reached over Anthropic's Messages API; "
            'choose a model named "openai/…" or leave the tool out'
        )


_KEYS = ("api_key", "auth_token")

_SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


_MOST_PAUSES = 32


class _FormRefused(Exception):  # noqa: N818 - a turn of the way, not an error
    """The model does not hold its answers to a schema, or not to this one."""

    def __init__(self, error: ModelError) -> None:
        super().__init__()
        self.error = error


class _Stream(Protocol):
    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def close(self) -> None: ...


async def _ask(
    client: AsyncAnthropic,
    body: Mapping[str, Any],
    answer: StreamedAnswer,
    asked: Asked,
    settings: ModelSettings,
) -> None:
    """Put a request, and hand the events of the answer over as they come."""
    deadline = asyncio.timeout(settings.timeout)
    answer.begin()
    try:
        async with deadline:
            stream = await _opened(client, body, asked, settings)
            try:
                await followed(
                    stream,
                    answer,
                    broken=partial(broken_stream, asked=asked),
                    cut=partial(cut_off, asked),
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
    client: AsyncAnthropic, body: Mapping[str, Any], asked: Asked, settings: ModelSettings
) -> _Stream:
    # The body goes past the client's own conversion, which would walk through every tool and the
    # whole conversation each turn.
    options: dict[str, Any] = {"extra_body": dict(body)}
    if settings.extra_headers is not None:
        options["extra_headers"] = dict(settings.extra_headers)
    if settings.timeout is not None:
        options["timeout"] = settings.timeout
    try:
        return await client.messages.create(
            model=asked.model, max_tokens=1, messages=[], stream=True, **options
        )
    except anthropic.APIStatusError as error:
        if is_about_the_form(error, body):
            raise _FormRefused(refusal_of(error, asked)) from error
        raise refusal_of(error, asked) from error
    except anthropic.APIConnectionError as error:
        if type(error.__cause__).__name__ not in _UNSENT:
            raise unreachable_error(error, asked) from error
        # The client's own error may show the key, so it is not chained.
        raise unsent_error(error.__cause__ or error, asked) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, the request never left
        raise unsent_error(error, asked) from None


_UNSENT = {"LocalProtocolError", "UnsupportedProtocol"}
"""What the client raises for a request that breaks the rules of HTTP itself."""
