"""`ToolSource`: where a tool comes from, and how its arguments are read and its calls are run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import Self

    from agents_tools.schema.arguments import Arguments
    from agents_tools.schema.function import StreamedParameters
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import ToolOrigin

__all__ = [
    "DescribedSource",
    "OutputDescription",
    "ToolDescription",
    "ToolSource",
]


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """What a tool does, and its parameters.

    Attributes:
        description: The description for the model.
        json_schema: The JSON Schema of the arguments; do not modify it.
    """

    description: str
    json_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutputDescription:
    """The results of a tool.

    Attributes:
        json_schema: The JSON Schema of the results, or `None`; do not modify it.
        serializer: Writes results as JSON by their declared type, or `None`.
    """

    json_schema: dict[str, Any] | None = None
    serializer: Any = None


class ToolSource(ABC):
    """Where a tool comes from: a function, a schema, a class, a server, an agent.

    Everything that is expensive is built when it is first needed.

    Attributes:
        name: The name that the tool was declared with.
        can_route: Whether `route` can return another tool.
    """

    name: str
    can_route: ClassVar[bool] = False

    @property
    def can_be_stopped(self) -> bool:
        """Whether a cancelled call stops: a function in a thread continues to its end."""
        return True

    @property
    @abstractmethod
    def origin(self) -> ToolOrigin:
        """The origin of the tool."""

    @abstractmethod
    def describe(self) -> ToolDescription:
        """Return the description and the JSON Schema of the arguments.

        Raises:
            UserError: The declaration is invalid.
        """

    async def has_call(self, call: Call) -> bool:
        """Return whether a backend has a call that an earlier process began.

        If it does, running the call again returns its result and does not run the body again.
        """
        del call
        return False

    def describe_output(self) -> OutputDescription:
        """Return the JSON Schema and the serializer of the results."""
        return _NO_OUTPUT

    def build(self) -> None:
        """Build now what is otherwise built when it is first needed."""
        return

    @abstractmethod
    def parse(self, args_json: str) -> Arguments:
        """Validate arguments.

        Args:
            args_json: The arguments as JSON text.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """

    @property
    def streamed_parameters(self) -> StreamedParameters | None:
        """The parameters that the tool can read while the model writes them; `None` for none."""
        return None

    def parse_known(self, args_json: str) -> Arguments:
        """Validate arguments without those of the `streamed_parameters`.

        Args:
            args_json: The other arguments as JSON text.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """
        return self.parse(args_json)

    @abstractmethod
    def run(self, call: Call) -> Coroutine[Any, Any, Any]:
        """Run a call with its validated arguments (`call.parsed`), and return the value.

        Args:
            call: The call.
        """

    def route(self, tool: Any, args_json: str, call: Call | None = None) -> tuple[Any, str]:
        """Return the tool that a call is for, and its arguments.

        Only a source that gives access to other tools returns another tool.

        Args:
            tool: The tool that was called.
            args_json: The arguments as JSON text.
            call: The call, if it has begun; then arguments that are not JSON can be repaired.
        """
        del call
        return tool, args_json

    def as_method(self) -> None:
        """Leave the first parameter out of the schema, because the function is a method."""
        return

    def bind(self, instance: object) -> Self:
        """Return the source for a method of one instance.

        Args:
            instance: The instance, or the class of a class method.
        """
        del instance
        return self


_NO_OUTPUT = OutputDescription()


class DescribedSource(ToolSource):
    """A source that is described when it is created.

    Args:
        name: The name of the tool.
        description: The description and the parameters.
        output_json_schema: The JSON Schema of the results.
        origin: The origin of the tool.
    """

    def __init__(
        self,
        name: str,
        description: ToolDescription,
        output_json_schema: Mapping[str, Any] | None,
        origin: ToolOrigin,
    ) -> None:
        self.name = name
        self._description = description
        self._output = OutputDescription(
            None if output_json_schema is None else dict(output_json_schema)
        )
        self._origin = origin

    @property
    def origin(self) -> ToolOrigin:
        """The origin of the tool."""
        return self._origin

    def describe(self) -> ToolDescription:
        """Return the description and the JSON Schema of the arguments."""
        return self._description

    def describe_output(self) -> OutputDescription:
        """Return the JSON Schema of the results."""
        return self._output
