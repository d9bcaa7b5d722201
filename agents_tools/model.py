"""The seam to a language model: one method, and the names that models are found by."""

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

from agents_tools.errors import UserError, UserKeyError, UserTypeError, UserValueError
from agents_tools.events import RawResponseStreamEvent
from agents_tools.items import input_items
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Self

    from agents_tools.events import Emit
    from agents_tools.hosted import HostedTool
    from agents_tools.items import Item, ToolCallItem
    from agents_tools.tool import FunctionTool

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
    "load_model",
    "message_started",
    "override_model",
    "overriding_model",
    "reasoning_delta",
    "refusal_delta",
    "text_delta",
]

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]
"""Why a model stopped. `length`: its answer was cut off, so the last call in it is not whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How a model is asked to answer. What is `None` is left to the model.

    Attributes:
        temperature: From 0 (steady) up.
        top_p: Nucleus sampling.
        max_tokens: The most tokens of one answer.
        tool_choice: `auto`, `required`, `none`, or the name of a tool.
        parallel_tool_calls: Whether one answer may hold several calls.
        reasoning_effort: How much a reasoning model thinks, in the provider's words.
        stop: Texts at which the answer ends.
        timeout: Seconds that one request may take.
        extra_headers: HTTP headers to send along.
        extra_body: Fields of the request that this record does not name; the provider's words.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    stop: Sequence[str] | None = None
    timeout: float | None = None
    extra_headers: Mapping[str, str] | None = None
    extra_body: Mapping[str, Any] | None = None

    def merged(self, other: ModelSettings | None) -> ModelSettings:
        """Give these settings with what the other ones say laid over them."""
        if other is None or other is self:
            return self
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, own in values.items():
            value: Any = getattr(other, name)
            if isinstance(value, Mapping) and own:
                value = {**own, **cast("Mapping[str, Any]", value)}
            if value is not None:
                values[name] = value
        return ModelSettings(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFormat:
    """The form that the final answer is asked to have.

    Attributes:
        name: A name for it.
        schema: Its JSON Schema: of an object.
        strict: Whether the schema is within what providers' strict modes take.
    """

    name: str
    schema: Mapping[str, Any]
    strict: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model.

    Attributes:
        instructions: The system prompt; empty for none.
        input: The conversation so far. Not to be changed, and not to be kept: it grows.
        tools: What the model may call. The same tuple again while the tools are the same.
        settings: How to answer.
        output: The form of the final answer, where it is to be JSON.
        agent: The name of the agent that asks.
        on_call: To be called with each tool call that is complete while the rest of the answer
            still comes; `None` when nobody starts calls early.
    """

    instructions: str = ""
    input: Sequence[Item]
    tools: tuple[FunctionTool[..., Any] | HostedTool, ...] = ()
    settings: ModelSettings = field(default_factory=ModelSettings)
    output: OutputFormat | None = None
    agent: str = ""
    on_call: Callable[[ToolCallItem], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """The answer of a model.

    Attributes:
        items: Messages, reasoning and tool calls, in order.
        usage: What it took.
        finish_reason: Why the model stopped; `None` where the provider does not say.
        response_id: The provider's id of the answer.
        model: The model that answered, as the provider calls it.
        raw: The provider's own object, for the application.
    """

    items: Sequence[Item]
    usage: Usage = field(default_factory=Usage)
    finish_reason: FinishReason | None = None
    response_id: str | None = None
    model: str | None = None
    raw: Any = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Give the answer as JSON, without `raw`."""
        return {
            "items": [item.to_dict() for item in self.items],
            "usage": self.usage.to_dict(),
            "finish_reason": self.finish_reason,
            "response_id": self.response_id,
            "model": self.model,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave.

        Raises:
            UserError: It is something else.
        """
        known = isinstance(data, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not known or (type(data.get("items")), type(data.get("usage"))) != (list, dict):
            raise UserValueError("An answer of a model has items and a usage in its JSON form.")
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

    A model whose tools are told in the words of one provider says so in an attribute `provider`
    (one of `agents_tools.wire`'s names, such as `openai_chat`); the arguments of its calls are
    then read back from that provider's dialect.
    """

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer.

        Args:
            request: What is asked.
            emit: Takes pieces of the answer as they come; see `text_delta` and its siblings.

        Returns:
            The whole answer.

        Raises:
            ModelError: The provider could not be reached, or refused.
            UserError: The request cannot be put to this model.
        """
        ...


class ModelProvider(ABC):
    """Finds models by name; the base for providers of one's own."""

    @abstractmethod
    def get_model(self, name: str | None) -> Model:
        """Give a model.

        Args:
            name: The name exactly as the agent has it; `None` where it has none.

        Raises:
            UserError: There is no such model.
        """


class DefaultModelProvider(ModelProvider):
    """Finds models with `load_model`; without a name, the one in `AGENTS_TOOLS_MODEL`."""

    def get_model(self, name: str | None) -> Model:
        """Give the model of that name."""
        chosen = name or os.environ.get("AGENTS_TOOLS_MODEL")
        if not chosen:
            raise UserValueError(
                "No model was chosen. Give the agent one, as in Agent(model='openai/gpt-5'), or "
                "the run, as in RunConfig(model=...), or set AGENTS_TOOLS_MODEL. "
                f"Names start with {_PREFIXES_SHOWN}."
            )
        return load_model(chosen)


_PLACES = {
    "openai": "openai_responses",
    "openai-chat": "openai_chat",
    "anthropic": "anthropic",
    "pydantic-ai": "pydantic_ai",
    "local": "local",
}
"""The prefix of a name and the module of `agents_tools.models` that has such models."""

_PREFIXES_SHOWN = ", ".join(f"{prefix}/" for prefix in _PLACES)
_KNOWN = (
    (re.compile(r"(gpt-|o\d|chatgpt-|codex-|computer-use-)"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
)
"""Names that say by themselves whose they are."""


@lru_cache(maxsize=64)
def load_model(name: str, *, base_url: str | None = None, api_key: str | None = None) -> Model:
    """Give the model of a name; the same one again for the same name.

    Args:
        name: `openai/…` (Responses API), `openai-chat/…` (chat completions, also of any server
            that speaks them), `anthropic/…`, `pydantic-ai/<provider>:<model>`, or `local/rules`.
            `gpt-…` and `claude-…` need no prefix.
        base_url: The address of the API, where it is not the provider's own.
        api_key: The key, where it is not the one of the environment.

    Raises:
        UserError: No provider has such names, or what it takes is not installed or configured.
    """
    prefix, slash, rest = name.partition("/")
    if not slash or prefix not in _PLACES:
        found = next((place for known, place in _KNOWN if known.match(name)), None)
        if found is None:
            raise UserKeyError(
                f"No provider is known for the model {name!r}. Names start with "
                f"{_PREFIXES_SHOWN}; for models of your own give a ModelProvider: "
                "RunConfig(model_provider=...)."
            )
        prefix, rest = found, name
    if not rest:
        raise UserValueError(f"The model name {name!r} names no model behind {prefix + slash!r}.")
    try:
        module: Any = import_module(f"agents_tools.models.{_PLACES[prefix]}")
    except ImportError as error:
        extra = "openai" if prefix == "openai-chat" else prefix
        raise UserError(
            f"The model {name!r} needs a package that is not installed ({error.name}). "
            f"Install it: pip install 'agents-tools[{extra}]'"
        ) from error
    options = {"base_url": base_url, "api_key": api_key}
    given = {option: value for option, value in options.items() if value is not None}
    try:
        return cast("Model", module.load(rest, **given))
    except TypeError:
        if not given:
            raise
        raise UserTypeError(
            f"Models of {prefix + slash!r} take no {' and no '.join(given)}."
        ) from None


@contextmanager
def override_model(model: Model) -> Generator[Model]:
    """Let every agent use one model inside a block, whatever it or its run was given.

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
    """Give the model of the `override_model` block around, if there is one."""
    return _override.get()


def check_model(model: object) -> Model:
    """Give a model back if it is one.

    Raises:
        UserError: It is none.
    """
    if not callable(getattr(model, "respond", None)):
        raise UserTypeError(
            f"A model has an async method respond(request, emit); this {type(model).__name__} "
            "has none. Give a Model, or a name such as 'openai/gpt-5'."
        )
    return cast("Model", model)


# What a model says while it answers: always in the words of the Responses API's stream, so that
# a user interface needs to know one vocabulary.


def message_started(item_id: str | None = None) -> RawResponseStreamEvent:
    """Say that a message begins."""
    return _raw("response.output_item.added", item={"type": "message", "id": item_id})


def text_delta(text: str, item_id: str | None = None) -> RawResponseStreamEvent:
    """Say the next piece of a message."""
    return _raw("response.output_text.delta", delta=text, item_id=item_id)


def refusal_delta(text: str, item_id: str | None = None) -> RawResponseStreamEvent:
    """Say the next piece of a refusal."""
    return _raw("response.refusal.delta", delta=text, item_id=item_id)


def reasoning_delta(text: str, item_id: str | None = None) -> RawResponseStreamEvent:
    """Say the next piece of reasoning."""
    return _raw("response.reasoning_summary_text.delta", delta=text, item_id=item_id)


def call_started(call_id: str, name: str) -> RawResponseStreamEvent:
    """Say that a tool call begins."""
    item = {"type": "function_call", "call_id": call_id, "name": name}
    return _raw("response.output_item.added", item=item)


def call_delta(call_id: str, text: str) -> RawResponseStreamEvent:
    """Say the next piece of the arguments of a tool call."""
    return _raw("response.function_call_arguments.delta", delta=text, call_id=call_id)


def _raw(kind: str, **data: Any) -> RawResponseStreamEvent:
    given = {name: value for name, value in data.items() if value is not None}
    return RawResponseStreamEvent({"type": kind, **given})
