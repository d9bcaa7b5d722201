"""Definitions of hosted tools for the providers that run them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NoReturn

from agents_tools.errors import UserError, UserTypeError

__all__ = ["hosted_definition", "raise_hosted_unsupported"]

_MODELS = {
    "to_responses": "openai/…",
    "to_anthropic": "anthropic/…",
    "to_pydantic_ai": "pydantic-ai/…",
}
"""The names of the models that use a definition, by the method that returns it."""


def hosted_definition(tool: Any, method: str, model: str) -> dict[str, Any]:
    """Return the definition of a hosted tool for a provider.

    Args:
        tool: The hosted tool.
        method: The method of the tool that returns the definition, such as `to_anthropic`.
        model: The name of the model, for the error message.

    Raises:
        UserError: The provider does not run this tool, or does not have one of its options.
    """
    definition = _definition(tool, method)
    if definition is None:
        raise_hosted_unsupported(tool, model)
    return dict(definition)


def raise_hosted_unsupported(tool: object, model: str | None = None) -> NoReturn:
    """Raise the error for a hosted tool that a model does not have.

    Raises:
        UserError: Always.
    """
    kind = type(tool).__name__
    name = getattr(tool, "name", None) or kind
    target = f"model {model!r}" if model else "this model"
    suitable = [f"'{names}'" for method, names in _MODELS.items() if _has(tool, method)]
    choice = f"Choose a model named {' or '.join(suitable)}, or remove" if suitable else "Remove"
    raise UserTypeError(
        f"Tool {name!r} ({kind}) runs at its provider, and {target} does not have it. {choice} "
        "the tool."
    )


def _definition(tool: Any, method: str) -> dict[str, Any] | None:
    create = getattr(tool, method, None)
    return None if create is None else create()


def _has(tool: Any, method: str) -> bool:
    with suppress(UserError):  # an option that this provider does not have
        return _definition(tool, method) is not None
    return False
