"""Tools whose state belongs to a run: a factory creates it at the first call in each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypeVar

from agents_tools.classes.action import Action, InstanceKeys, ToolExecutor, close_executors
from agents_tools.classes.registry_entry import holders_of, to_function_tool
from agents_tools.concurrency.threads import run_in_thread
from agents_tools.errors import ToolError, UserValueError
from agents_tools.tool.call import current_call
from agents_tools.tool.source import OutputDescription, ToolDescription, ToolSource
from agents_tools.tool.state import ToolState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agents_tools.schema.arguments import Arguments
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import ToolOrigin
    from agents_tools.tool.tool import FunctionTool

__all__ = ["PerRunExecutor", "PerRunSource", "ToolFactory", "shared_by_runs"]

ActionT = TypeVar("ActionT", bound=Action, default=Any)
ObservationT = TypeVar("ObservationT", default=Any)


class PerRunExecutor(ToolExecutor[ActionT, ObservationT]):
    """Executor that runs each call with the executor of its run.

    The executor of a run is created at the first call in the run and closed with it, so that runs
    and sub-agent runs share nothing. `RunConfig(tool_state=...)` makes it last for several runs.
    Calls outside of a run share one executor, `default`.

    Args:
        create: Creates an executor: a class without parameters, or a function. It is called in a
            worker thread.
        on_close: Called after the executors were closed, to close what they share.
    """

    def __init__(
        self,
        create: Callable[[], ToolExecutor[ActionT, ObservationT]],
        *,
        on_close: Callable[[], object] | None = None,
    ) -> None:
        self._create = create
        self._on_close = on_close
        self._outside = ToolState()
        self._created = InstanceKeys()
        self._is_shared = False
        self._is_closed = False

    @property
    def default(self) -> ToolExecutor[ActionT, ObservationT]:
        """The executor of calls outside of a run; created when it is first needed."""
        return self._executor(self._outside)

    def share(self) -> None:
        """Use `default` for the calls of all runs, too."""
        self._is_shared = True

    def __call__(self, action: ActionT, conversation: Any = None) -> Any:
        """Run an action with the executor of the run that the current call belongs to.

        Args:
            action: The validated action.
            conversation: The `context` of the run; `None` outside a run.

        Raises:
            ToolError: The run has ended, or this executor is closed.
        """
        return self._executor(self._state())(action, conversation)

    def interrupt(self) -> None:
        """Stop the cancelled call."""
        executor = self._state().find(self)
        if executor is not None:
            executor.interrupt()

    def close(self) -> None:
        """Close the executors of all runs, and refuse further calls."""
        self._is_closed = True
        self._outside.close()
        close_executors(self._created.alive())
        if self._on_close is not None:
            self._on_close()

    def _state(self) -> ToolState:
        call = None if self._is_shared else current_call()
        return (None if call is None else call.find_tool_state()) or self._outside

    def _executor(self, state: ToolState) -> ToolExecutor[ActionT, ObservationT]:
        return state.get(self, self._create_executor, lambda executor: close_executors([executor]))

    def _create_executor(self) -> ToolExecutor[ActionT, ObservationT]:
        executor = self._create()
        self._created.add(executor)
        if self._is_closed:  # maybe in another thread while it was created
            close_executors([executor])
            raise ToolError("The tool is closed.")
        return executor


def shared_by_runs(tools: Iterable[Any]) -> list[Any]:
    """Let the executors of new tools be shared by all runs, and return the tools."""
    created = list(tools)
    for tool in created:
        if isinstance(executor := getattr(tool, "executor", None), PerRunExecutor):
            cast("PerRunExecutor[Any, Any]", executor).share()
    return created


class ToolFactory:
    """A function that creates tools, called again for each run.

    Args:
        create: Creates the tools: the same ones, in the same order, at each call. An executor that
            it returns more than once is shared by the runs, and not closed with one of them.
        source: The name of the function or class, for errors.
        on_create: Called with each executor, or tool without one, that was created.
    """

    def __init__(
        self,
        create: Callable[[], Sequence[Any]],
        *,
        source: str,
        on_create: Callable[[Any], object],
    ) -> None:
        self._create_tools = create
        self._source = source
        self._on_create = on_create
        self._known = InstanceKeys()
        self._is_closed = False

    def function_tools(self) -> list[FunctionTool[..., Any]]:
        """Return the tools; their calls outside of a run share one state."""
        created = self._create().tools
        return [self._per_run(to_function_tool(tool), at) for at, tool in enumerate(created)]

    def close(self) -> None:
        """Close the tools of all runs, and refuse further calls in runs."""
        self._is_closed = True
        close_executors(self._known.alive())

    def _per_run(self, tool: FunctionTool[..., Any], at: int) -> FunctionTool[..., Any]:
        if tool.source.can_route:  # it only leads to other tools
            return tool
        return tool.with_(source=PerRunSource(tool.source, self, at))

    async def source_of(self, state: ToolState, name: str, at: int) -> ToolSource:
        """Return the source of a tool of a run.

        Args:
            state: The state of the tools of the run.
            name: The name of the tool.
            at: The index of the tool.

        Raises:
            UserError: The function has returned other tools than before.
        """
        created: _ToolsOfRun | None = state.find(self)
        if created is None:
            created = await run_in_thread(state.get, self, self._create, _ToolsOfRun.close)
        tool = to_function_tool(created.tools[at]) if at < len(created.tools) else None
        if tool is None or tool.source.name != name:
            raise UserValueError(
                f"{self._source} has returned other tools for this run: expected {name!r} at "
                f"index {at}. Return the same tools each time."
            )
        return tool.source

    def _create(self) -> _ToolsOfRun:
        tools = self._create_tools()
        owned = [holder for holder in holders_of(tools) if self._known.add(holder)]
        for holder in owned:
            self._on_create(holder)
        if self._is_closed:  # maybe in another thread while they were created
            close_executors(owned)
            raise ToolError("The tool is closed.")
        return _ToolsOfRun(tools, owned)


@dataclass(frozen=True, slots=True)
class _ToolsOfRun:
    """The tools that were created for one run, and what is closed with it."""

    tools: Sequence[Any]
    owned: Sequence[Any]

    def close(self) -> None:
        close_executors(self.owned)


class PerRunSource(ToolSource):
    """The source of a tool that is created again for each run.

    Args:
        inner: The source of the tool for calls outside of a run, which also reads the arguments.
        factory: Creates the tools of a run.
        at: The index of the tool.
    """

    def __init__(self, inner: ToolSource, factory: ToolFactory, at: int) -> None:
        self._inner = inner
        self._factory = factory
        self._at = at
        self.name = inner.name

    @property
    def can_be_stopped(self) -> bool:
        """Whether a cancelled call stops."""
        return self._inner.can_be_stopped

    @property
    def origin(self) -> ToolOrigin:
        """The origin of the tool."""
        return self._inner.origin

    def describe(self) -> ToolDescription:
        """Return the description and the JSON Schema of the arguments."""
        return self._inner.describe()

    def describe_output(self) -> OutputDescription:
        """Return the JSON Schema and the serializer of the results."""
        return self._inner.describe_output()

    def build(self) -> None:
        """Build now what is otherwise built when it is first needed."""
        self._inner.build()

    def parse(self, args_json: str) -> Arguments:
        """Validate arguments.

        Raises:
            ModelBehaviorError: The arguments are invalid.
        """
        return self._inner.parse(args_json)

    async def run(self, call: Call) -> Any:
        """Run a call with the tool of its run."""
        state = call.find_tool_state()
        source = self._inner
        if state is not None:
            source = await self._factory.source_of(state, self.name, self._at)
        return await source.run(call)
