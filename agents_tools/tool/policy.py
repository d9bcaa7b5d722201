"""`Policy`: the base class of everything that is put around a tool, with a method per moment."""

from __future__ import annotations

from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
)

from agents_tools.errors import UserTypeError
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.errors import ModelBehaviorError
    from agents_tools.events.base import Event
    from agents_tools.tool.call import Call

    Run = Callable[[Call], Coroutine[Any, Any, Any]]
    """Runs the rest of a call, and returns the value of the function."""

__all__ = ["AtEnd", "Policy", "PolicyStack"]

AtEnd: TypeAlias = Literal["wait", "cancel"]
"""Whether a run waits for a call in the background at its end, or cancels it."""


class _Tool(Protocol):
    @property
    def policies(self) -> tuple[Policy, ...]: ...
    def with_(self, *, policy: Policy) -> object: ...


ToolT = TypeVar("ToolT", bound=_Tool)


class Policy:
    """Changes what a tool does around its function. Subclass it and override some moments.

    A policy is a decorator: it takes a tool and returns a copy of the tool with the policy around
    it. The moments of a call come in this order:

    1. `repair_text`: fix JSON text that cannot be parsed.
    2. `map_arguments`: convert the names and the shape that the model saw to those of the tool.
       Then the arguments are validated; `map_error` converts an error back.
    3. `before`: look at the canonical arguments, and refuse or change the call.
    4. `around`: run the call, or return a value instead.
    5. `filter_output`: change the output for the model, or the text of an error.

    `filter_event` acts on each event between start and end, and `schema` on the published JSON
    Schema. Of several policies, the outer one comes first on the way in and last on the way out.

    ```python
    class OnlyInOffice(Policy):
        async def before(self, call: Call) -> None:
            if not 8 <= datetime.now().hour < 18:
                raise ToolDeniedError(f"{call.tool_name} works from 8:00 to 18:00 only.")
    ```
    """

    name: str = ""
    """The name in the repr of a tool and in errors; by default the name of the class."""
    asks_person: ClassVar[bool] = False
    """Whether `before` asks a person. Such policies come after the `before` of all others, so that
    a person sees the arguments that the call runs with."""
    needs_arguments: ClassVar[bool] = True
    """Whether `around` needs the complete arguments. Only if none of its policies does, a tool with
    an `ArgumentStream` starts while the model writes the arguments."""
    at_end: AtEnd | None = None
    """What happens to a call in the background at the end of a run; `None` if the policy does not
    let calls run in the background."""
    is_policy: Final = True

    def __call__(self, tool: ToolT) -> ToolT:
        """Return the tool with the policy around it.

        Raises:
            UserError: The argument is not a tool.
        """
        convert = getattr(tool, "as_function_tool", None)  # class-based tools
        if convert is not None:
            tool = convert()
        if not hasattr(tool, "on_invoke_tool"):
            raise UserTypeError(
                f"The policy {self} cannot be applied: expected a tool, got "
                f"{type_with_article(tool)}. Put the policy above `@function_tool`, not below."
            )
        return self.apply(tool)

    def apply(self, tool: ToolT) -> ToolT:
        """Return the tool with the policy around it; override it to have state for each tool.

        Args:
            tool: The tool.
        """
        return cast("ToolT", tool.with_(policy=self))

    def schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the published JSON Schema of the arguments.

        Args:
            schema: The schema of the tool inside, which can be modified.
        """
        return schema

    def repair_text(self, call: Call, text: str) -> str:
        """Return the arguments as text that can be parsed as JSON.

        Args:
            call: The call.
            text: The arguments as the model sent them.
        """
        del call
        return text

    async def map_arguments(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the tool for those that the model sent.

        It is not called for text that is not a JSON object.

        Args:
            call: The call.
            arguments: The arguments as JSON values, which can be modified.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """
        del call
        return arguments

    def map_error(self, call: Call, error: ModelBehaviorError) -> Exception:
        """Return the error to report for one about the arguments that `map_arguments` returned.

        Args:
            call: The call.
            error: The error, with the names of the tool.
        """
        del call
        return error

    async def before(self, call: Call) -> Mapping[str, Any] | None:
        """Look at a call with valid arguments before anything of it runs.

        Args:
            call: The call; see `call.arguments`.

        Returns:
            Other arguments, which are validated again; `None` to keep those of the call.

        Raises:
            ToolDeniedError: The call may not run; the message is for the model.
        """
        del call
        return None

    async def around(self, call: Call, call_next: Run) -> Any:
        """Run the call, and return its value.

        Args:
            call: The call.
            call_next: Runs the rest of the call: `await call_next(call)`.
        """
        return await call_next(call)

    def filter_output(self, call: Call, output: ToolOutput) -> ToolOutput:
        """Return the output for the model: of a value, or the text of an error.

        Args:
            call: The call.
            output: Text or content blocks.
        """
        del call
        return output

    def filter_event(self, call: Call, event: Event) -> Iterable[Event]:
        """Return the events to deliver in place of one.

        Args:
            call: The call of the tool that has the policy.
            event: An event of this call or of a call inside it.
        """
        del call
        return (event,)

    def __repr__(self) -> str:
        """Return the policy as it was written."""
        return f"<policy {self.name or type(self).__name__}>"

    def __str__(self) -> str:
        """Return the name of the policy."""
        return self.name or type(self).__name__


class PolicyStack:
    """The policies of one tool, sorted by moment when the tool is first used.

    Args:
        policies: The policies, innermost first.
    """

    def __init__(self, policies: tuple[Policy, ...]) -> None:
        outer_first = policies[::-1]
        self.repairs = _overriding("repair_text", outer_first)
        self.maps = _overriding("map_arguments", outer_first)
        checks = _overriding("before", outer_first)
        self.guards = tuple(one for one in checks if not one.asks_person)
        self.approvals = tuple(one for one in checks if one.asks_person)
        self.has_checks = bool(checks)
        self.outputs = _overriding("filter_output", policies)
        self.event_filters = _overriding("filter_event", outer_first)
        self.arounds = _overriding("around", policies)
        self.prepares = bool(self.repairs or self.maps)
        self.needs_arguments = (
            self.prepares or self.has_checks or any(one.needs_arguments for one in self.arounds)
        )
        self.at_end = next((one.at_end for one in outer_first if one.at_end is not None), None)

    def wrap(self, run: Run) -> Run:
        """Return the function that runs a call with the `around` of all policies."""
        for policy in self.arounds:
            run = partial(policy.around, call_next=run)
        return run


def _overriding(moment: str, policies: tuple[Policy, ...]) -> tuple[Policy, ...]:
    """Return the policies that override a method."""
    default = getattr(Policy, moment)
    return tuple(one for one in policies if getattr(type(one), moment) is not default)
