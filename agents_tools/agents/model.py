"""The interface to language models, and loading of models by name."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from agents_tools._package import ForeignAttributes, missing_extra
from agents_tools.content.items import input_items
from agents_tools.content.usage import Usage
from agents_tools.errors import (
    MissingExtraError,
    UserKeyError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events.kinds import RawResponseStreamEvent
from agents_tools.tool.options import ForeignOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence
    from typing import Self

    from agents_tools.agents.hosted.base import HostedTool
    from agents_tools.content.items import Item, ToolCallItem
    from agents_tools.events.base import Emit
    from agents_tools.tool.tool import FunctionTool

__all__ = [
    "DefaultModelProvider",
    "FinishReason",
    "Model",
    "ModelProvider",
    "ModelRequest",
    "ModelResponse",
    "ModelSettings",
    "OutputFormat",
    "call_delta",
    "call_started",
    "check_model",
    "hosted_call_started",
    "load_model",
    "message_started",
    "model_name",
    "override_model",
    "overriding_model",
    "reasoning_delta",
    "refusal_delta",
    "text_delta",
]

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]
"""Why a model stopped. With `length` and `content_filter`, the provider cut the response off."""

_TRUNCATIONS: dict[str | None, str] = {
    "length": "at the limit of output tokens",
    "content_filter": "by the content filter of the provider",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings(ForeignOptions):
    """Settings of a request to a model. For `None`, the default of the model applies.

    Attributes:
        temperature: The sampling temperature, from 0 (most deterministic).
        top_p: The probability mass of nucleus sampling, from 0 to 1.
        max_tokens: The maximum number of tokens of one response.
        tool_choice: `auto`, `required`, `none`, or the name of a tool.
        parallel_tool_calls: Whether one response can contain several calls.
        reasoning_effort: The effort of a reasoning model, as a value of the provider.
        stop: Texts that end the response.
        timeout: The time limit of one request, in seconds.
        prompt_cache: How long Anthropic keeps the beginning of the request in its cache: `5m` or
            `1h`. The tools, the system prompt and the conversation are then cached, so that the
            next request reads them for a tenth of the price; writing costs a quarter more, or
            twice as much for `1h`. `None` for no cache. Providers that cache by themselves, as
            OpenAI does, ignore it.
        extra_headers: Additional HTTP headers.
        extra_body: Additional fields of the request body, in the format of the provider.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    stop: Sequence[str] | None = None
    timeout: float | None = None
    prompt_cache: Literal["5m", "1h"] | None = None
    extra_headers: Mapping[str, str] | None = None
    extra_body: Mapping[str, Any] | None = None

    def merged(self, other: ModelSettings | None) -> ModelSettings:
        """Return these settings, overridden by the values that the other settings define."""
        if other is None or other is self:
            return self
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, current in values.items():
            value: Any = getattr(other, name)
            if isinstance(value, Mapping) and current:
                value = {**current, **cast("Mapping[str, Any]", value)}
            if value is not None:
                values[name] = value
        return ModelSettings(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFormat:
    """The format of the final answer that a request asks for.

    Attributes:
        name: A name for the format.
        schema: The JSON Schema of an object.
        strict: Whether the schema is valid in the strict modes of providers.
    """

    name: str
    schema: Mapping[str, Any]
    strict: bool = True


async def _send(model: Model, request: ModelRequest, emit: Emit) -> ModelResponse:
    """Send a request once, outside a run."""
    return await model.respond(request, emit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request to a model.

    Attributes:
        instructions: The system prompt; empty for none.
        input: The conversation so far. Do not modify or store the list, because the run appends to
            it.
        tools: The tools that the model can call. While the tools stay the same, it is the same
            tuple.
        settings: The settings.
        output: The format of the final answer, if it has to be JSON.
        agent: The name of the agent.
        on_call: A function to call with each tool call that is complete before the whole response
            is; `None` if no calls are started early.
        send: Sends a request to another model with the retries of the run, for models that
            delegate: `await request.send(model, request, emit)`.
    """

    instructions: str = ""
    input: Sequence[Item]
    tools: tuple[FunctionTool[..., Any] | HostedTool, ...] = ()
    settings: ModelSettings = field(default_factory=ModelSettings)
    output: OutputFormat | None = None
    agent: str = ""
    on_call: Callable[[ToolCallItem], None] | None = None
    send: Callable[[Model, ModelRequest, Emit], Awaitable[ModelResponse]] = field(
        default=_send, compare=False, repr=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse(ForeignAttributes):
    """The response of a model.

    Attributes:
        items: Messages, reasoning and tool calls, in order.
        usage: The tokens that the request used.
        finish_reason: Why the model stopped; `None` if the provider does not report it.
        response_id: The id of the response at the provider.
        model: The name of the model at the provider.
        raw: The response object of the provider, for the application.
    """

    items: Sequence[Item]
    usage: Usage = field(default_factory=Usage)
    finish_reason: FinishReason | None = None
    response_id: str | None = None
    model: str | None = None
    raw: Any = field(default=None, compare=False, repr=False)

    @property
    def truncation(self) -> str | None:
        """The output for the calls of a truncated response; `None` for a complete response.

        These calls must not run, even if their arguments are valid: a call that ends too early can
        still be valid JSON.
        """
        place = _TRUNCATIONS.get(self.finish_reason)
        return place and (
            f"Not run: the answer was cut off {place} before this call was complete. "
            "Send it again, with shorter arguments or fewer calls at once."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the response as JSON, without `raw`."""
        return {
            "items": [item.to_dict() for item in self.items],
            "usage": self.usage.to_dict(),
            "finish_reason": self.finish_reason,
            "response_id": self.response_id,
            "model": self.model,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a response from the result of `to_dict`.

        Raises:
            UserError: The data is not such a result.
        """
        known = isinstance(data, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not known or (type(data.get("items")), type(data.get("usage"))) != (list, dict):
            raise UserValueError(
                "The JSON of a model response is not valid: expected an object with 'items' and "
                "'usage'."
            )
        return cls(
            items=input_items(data["items"], "answer.items"),
            usage=Usage.from_dict(data["usage"]),
            finish_reason=data.get("finish_reason"),
            response_id=data.get("response_id"),
            model=data.get("model"),
        )


@runtime_checkable
class Model(Protocol):
    """A language model.

    A model that sends the tool schemas in the format of a provider has to have an attribute
    `provider` with the name of the format in `agents_tools.wire`, such as `openai_chat`. The
    arguments of its calls are then converted back from this format. A model can have the attributes
    `name`, `base_url` (the URL of its API, by which its price is found), and `models` (those that
    it delegates to).
    """

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Return the response to a request.

        Args:
            request: The request.
            emit: A function that receives the deltas of the response, such as those of
                `text_delta`.

        Returns:
            The complete response.

        Raises:
            ModelError: The request failed, or the provider rejected it.
            UserError: The request cannot be sent to this model.
        """
        ...


class ModelProvider(ABC):
    """The base class of objects that load models by name."""

    @abstractmethod
    def get_model(self, name: str | None) -> Model:
        """Return a model.

        Args:
            name: The name, exactly as the agent has it; `None` if the agent has none.

        Raises:
            UserError: There is no such model.
        """


class DefaultModelProvider(ModelProvider):
    """Loads models with `load_model`; the default name is that in `AGENTS_TOOLS_MODEL`."""

    def get_model(self, name: str | None) -> Model:
        """Return the model with this name."""
        chosen = name or os.environ.get("AGENTS_TOOLS_MODEL")
        if not chosen:
            raise UserValueError(
                "No model is configured. Set Agent(model=...), for example 'openai/gpt-5', "
                "RunConfig(model=...) or the environment variable AGENTS_TOOLS_MODEL. "
                f"Names start with {_PREFIXES_SHOWN}."
            )
        return load_model(chosen)


_MODULES = {
    "openai": "openai_responses",
    "openai-chat": "openai_chat",
    "anthropic": "anthropic",
    "pydantic-ai": "pydantic_ai",
    "local": "local",
}
"""The modules of `agents_tools.models` by the prefix of model names."""

_PREFIXES_SHOWN = ", ".join(f"{prefix}/" for prefix in _MODULES)
_KNOWN_NAMES = (
    (re.compile(r"(gpt-|o\d|chatgpt-|codex-|computer-use-)"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
)
"""Patterns of names that need no prefix."""


@lru_cache(maxsize=64)
def load_model(name: str, *, base_url: str | None = None, api_key: str | None = None) -> Model:
    """Load a model by name. Equal arguments return the same object.

    Args:
        name: `openai/…` (Responses API), `openai-chat/…` (chat completions, also of compatible
            servers), `anthropic/…`, `pydantic-ai/<provider>:<model>`, or `local/rules`. `gpt-…`
            and `claude-…` need no prefix.
        base_url: The base URL of the API; that of the provider by default.
        api_key: The API key; by default it is read from the environment.

    Raises:
        UserError: The prefix is unknown, or a required package or setting is missing.
    """
    prefix, slash, rest = name.partition("/")
    if not slash or prefix not in _MODULES:
        known = next((value for pattern, value in _KNOWN_NAMES if pattern.match(name)), None)
        if known is None:
            raise UserKeyError(
                f"The model {name!r} has no known provider: expected a name that starts with "
                f"{_PREFIXES_SHOWN}. For your own models, pass a ModelProvider: "
                "RunConfig(model_provider=...)."
            )
        prefix, rest = known, name
    if not rest:
        raise UserValueError(
            f"The model name {name!r} is incomplete. Add the model after {prefix + slash!r}."
        )
    try:
        module: Any = import_module(f"agents_tools.models.{_MODULES[prefix]}")
    except ImportError as error:
        if isinstance(error, MissingExtraError):
            raise
        extra = "openai" if prefix == "openai-chat" else prefix
        raise missing_extra(f"The model {name!r}", extra, error) from error
    options = {"base_url": base_url, "api_key": api_key}
    set_options = {name: value for name, value in options.items() if value is not None}
    try:
        return cast("Model", module.load(rest, **set_options))
    except TypeError:
        if not set_options:
            raise
        raise UserTypeError(
            f"Models of {prefix + slash!r} do not accept {' and '.join(set_options)}. Remove it."
        ) from None


@contextmanager
def override_model(model: Model) -> Generator[Model]:
    """Use one model for every agent inside a `with` block, instead of the configured models.

    ```python
    with override_model(ScriptedModel(["Hello."])):
        result = await my_application.answer("Hi")
    ```

    Args:
        model: The model.
    """
    token = _override.set(check_model(model))
    try:
        yield model
    finally:
        _override.reset(token)


_override: ContextVar[Model | None] = ContextVar("agents_tools_model", default=None)


def overriding_model() -> Model | None:
    """Return the model of the current `override_model` block, or `None`."""
    return _override.get()


def check_model(model: object) -> Model:
    """Return the argument if it is a model.

    Raises:
        UserError: It has no method `respond`.
    """
    if not callable(getattr(model, "respond", None)):
        raise UserTypeError(
            f"A {type(model).__name__} is not a model: expected an async method "
            "respond(request, emit). Pass a Model, or a name such as 'openai/gpt-5'."
        )
    return cast("Model", model)


def model_name(model: Any) -> str:
    """Return the name of a model, or of its class if it has none."""
    return str(getattr(model, "name", None) or type(model).__name__)


# The events of a model while it responds. They always have the format of the Responses API, so that
# a user interface has to support one format only.


def message_started(item_id: str | None = None) -> RawResponseStreamEvent:
    """Return the event for the start of a message."""
    return _raw("response.output_item.added", item={"type": "message", "id": item_id})


def text_delta(text: str, item_id: str | None = None) -> RawResponseStreamEvent:
    """Return the event for the next part of a message."""
    return _raw("response.output_text.delta", item_id, delta=text)


def refusal_delta(text: str, item_id: str | None = None) -> RawResponseStreamEvent:
    """Return the event for the next part of a refusal."""
    return _raw("response.refusal.delta", item_id, delta=text)


def reasoning_delta(text: str, item_id: str | None = None) -> RawResponseStreamEvent:
    """Return the event for the next part of the reasoning."""
    return _raw("response.reasoning_summary_text.delta", item_id, delta=text)


def call_started(call_id: str, name: str) -> RawResponseStreamEvent:
    """Return the event for the start of a tool call."""
    item = {"type": "function_call", "call_id": call_id, "name": name}
    return _raw("response.output_item.added", item=item)


def hosted_call_started(call_id: str, name: str) -> RawResponseStreamEvent:
    """Return the event for the start of a call that the provider runs."""
    item = {"type": "tool_call", "kind": "hosted", "call_id": call_id, "name": name}
    return _raw("response.output_item.added", item=item)


def call_delta(call_id: str, text: str) -> RawResponseStreamEvent:
    """Return the event for the next part of the arguments of a tool call."""
    return _raw("response.function_call_arguments.delta", delta=text, call_id=call_id)


def _raw(kind: str, item_id: str | None = None, **data: Any) -> RawResponseStreamEvent:
    if item_id is not None:
        data["item_id"] = item_id
    return RawResponseStreamEvent({"type": kind, **data})
