"""The context of a run: the application's own object and the usage so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from agents_tools.content.usage import Usage

    ContextT = TypeVar("ContextT", default=Any)
else:  # defaults of type variables are for type checkers; they come with a heavier import
    from typing import TypeVar

    ContextT = TypeVar("ContextT")

__all__ = ["ContextT", "RunContextWrapper"]


class RunContextWrapper(Generic[ContextT]):
    """The application's own object for a run, as tools see it.

    Attributes:
        context: Any object of the application; never shown to a model.
        usage: The usage of the run so far; `None` outside a run.
    """

    def __init__(self, context: ContextT = None, usage: Usage | None = None) -> None:  # type: ignore[assignment]
        self.context = context
        self.usage = usage

    is_run_context = True
    """Marks the classes that a parameter is annotated with to receive the context."""
