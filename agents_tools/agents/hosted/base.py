"""The base class of hosted tools, and the checks of their options.

A hosted tool has one method for each form of definition: `to_responses` (OpenAI), `to_anthropic`,
and `to_pydantic_ai` (the providers of Pydantic AI, such as Gemini). Where the provider only
decides and this machine acts (a shell, a computer, an approval), the hosted tool has a `local`
tool. That is an ordinary function tool, with events, failure handling and policies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.schema.json_schema import copy_json
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.manual import ManualSource
from agents_tools.tool.records import ToolOrigin
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool.context import ToolContext

__all__ = [
    "HostedTool",
    "check_callback",
    "copy_config",
    "copy_mappings",
    "create_local_tool",
    "json_options",
    "refuse_options",
    "with_metadata",
]


class HostedTool(ABC):
    """A tool that the model provider runs, or requests this machine to run."""

    def __repr__(self) -> str:
        """Return the class and the name only, because a configuration can contain keys."""
        return f"{type(self).__name__}({self.name!r})"

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the tool in calls of the model."""

    def to_responses(self) -> dict[str, Any] | None:
        """Return the definition for the Responses API; `None` if OpenAI does not run the tool.

        Raises:
            UserError: OpenAI does not have one of the options of the tool.
        """
        return None

    def to_anthropic(self) -> dict[str, Any] | None:
        """Return the definition for the Messages API; `None` if Anthropic does not run the tool.

        Raises:
            UserError: Anthropic does not have one of the options of the tool.
        """
        return None

    def to_pydantic_ai(self) -> dict[str, Any] | None:
        """Return the JSON of a native tool of Pydantic AI; `None` if Pydantic AI has none.

        Pydantic AI refuses the native tool before the request if the provider of the model does
        not have it, or does not have one of its restrictions.

        Raises:
            UserError: Pydantic AI does not have one of the options of the tool.
        """
        return None

    @property
    def local(self) -> FunctionTool[..., Any] | None:
        """The function tool that handles the calls on this machine, or `None`."""
        return None

    @property
    def include(self) -> tuple[str, ...]:
        """The values of the `include` parameter that the Responses API needs for this tool."""
        return ()


def create_local_tool(
    name: str, description: str, body: Callable[[ToolContext[Any], str], Any]
) -> FunctionTool[..., Any]:
    """Create the function tool that handles the calls of a hosted tool on this machine.

    Args:
        name: The name of the tool.
        description: The description of the tool; no model receives it.
        body: The function that receives the context and the arguments as JSON text.
    """
    source = ManualSource(
        name,
        description,
        {"type": "object", "properties": {}},
        body,
        origin=ToolOrigin(kind="hosted"),
    )
    return FunctionTool.of_source(source, strict_json_schema=False)


def json_options(**values: Any) -> dict[str, Any]:
    """Return a JSON copy of the options that are not `None`.

    The result is a copy, because callers can modify it.
    """
    return {
        name: copy_json(list(cast("Any", value)) if isinstance(value, tuple) else value)
        for name, value in values.items()
        if value is not None
    }


def refuse_options(tool: HostedTool, provider: str, *names: str) -> None:
    """Refuse the options that a provider does not have.

    Args:
        tool: The hosted tool.
        provider: The provider, for the error message.
        names: The names of the options.

    Raises:
        UserError: One of the options differs from its default.
    """
    defaults = {one.name: one.default for one in fields(cast("Any", tool))}
    for name in names:
        if getattr(tool, name) != defaults[name]:
            raise UserValueError(
                f"{type(tool).__name__}({name}=...) is not an option of {provider}. Remove the "
                "option, or choose a model of another provider."
            )


def with_metadata(tool: Any, provider: str, definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition with the options for one provider from the `metadata` of a tool.

    Args:
        tool: The hosted tool.
        provider: The key in `metadata`.
        definition: The definition.
    """
    return {**definition, **json_options(**tool.metadata.get(provider, {}))}


def copy_mappings(tool: HostedTool, *names: str) -> None:
    """Check the options that have to be mappings, and replace them with private copies.

    Raises:
        UserError: An option is not a mapping.
    """
    for name in names:
        value = getattr(tool, name)
        if value is not None:
            object.__setattr__(tool, name, _copy_mapping(tool, name, value))


def copy_config(tool: Any, kind: str, *, required: str | None = None) -> None:
    """Check the `tool_config` of a hosted tool, and replace it with a private copy.

    Args:
        tool: The hosted tool.
        kind: The expected value of `type` in the configuration.
        required: A key that the configuration needs.

    Raises:
        UserError: The configuration is not a mapping, is of another type or lacks the key.
    """
    config = _copy_mapping(tool, "tool_config", tool.tool_config)
    subject = f"{type(tool).__name__}(tool_config=...)"
    if config.get("type", kind) != kind:
        raise UserValueError(
            f"{subject} has the wrong type: expected {kind!r}, got {config['type']!r:.60}."
        )
    if required is not None and not config.get(required):
        raise UserValueError(f"{subject} needs {required!r}: add the key {required!r}.")
    object.__setattr__(tool, "tool_config", config)


def check_callback(tool: HostedTool, name: str, argument: str, *, required: bool = False) -> None:
    """Check an option that has to be a function.

    Args:
        tool: The hosted tool.
        name: The name of the option.
        argument: The argument of the function, for the error message.
        required: Whether `None` is refused as well.

    Raises:
        UserError: The option is not callable.
    """
    value = getattr(tool, name)
    if not callable(value) and (required or value is not None):
        raise UserTypeError(
            f"{type(tool).__name__}({name}=...) is not callable: expected a function of "
            f"{argument}, got {type_with_article(value)}."
        )


def _copy_mapping(tool: HostedTool, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UserTypeError(
            f"{type(tool).__name__}({name}=...) is not a mapping: expected the JSON object that "
            f"the provider documents, got {type_with_article(value)}."
        )
    return cast("dict[str, Any]", copy_json(value))
