"""A shell on this machine: the provider decides on commands, the application runs them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.hosted.base import HostedTool, check_callback, create_local_tool
from agents_tools.agents.hosted.call_arguments import (
    check_type,
    read_object,
    read_optional,
    run_callback,
)
from agents_tools.errors import ModelBehaviorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["LocalShellTool", "ShellRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRequest:
    """A command that the model requests to run on this machine.

    Attributes:
        command: The program and its arguments.
        env: Environment variables to set for the command.
        working_directory: The directory to run the command in.
        timeout_ms: The time limit, in milliseconds.
        user: The user to run the command as.
        call_id: The id of the call.
        context: The context of the call, to report progress and to check for cancellation.
    """

    command: list[str]
    env: dict[str, str]
    working_directory: str | None
    timeout_ms: int | None
    user: str | None
    call_id: str
    context: ToolContext[Any]


@dataclass(frozen=True, eq=False)
class LocalShellTool(HostedTool):
    """Lets the model run commands on this machine, through a function of the application.

    Only this function runs commands. It has to decide which commands are allowed.

    Attributes:
        executor: Runs a `ShellRequest` and returns the output for the model; sync or async.

    Raises:
        UserError: The executor is not callable.
    """

    executor: Callable[[ShellRequest], Any]

    def __post_init__(self) -> None:
        check_callback(self, "executor", "a ShellRequest", required=True)

    @property
    def name(self) -> str:
        """`local_shell`."""
        return "local_shell"

    def to_responses(self) -> dict[str, Any]:
        """Return the definition of the tool for the Responses API."""
        return {"type": "local_shell"}

    @cached_property
    def _local(self) -> FunctionTool[..., Any]:
        return create_local_tool(self.name, "Runs commands.", self._run)

    @property
    def local(self) -> FunctionTool[..., Any]:
        """The function tool that runs the commands."""
        return self._local

    async def _run(self, context: ToolContext[Any], args_json: str) -> Any:
        action = read_object(args_json)
        command: Any = action.get("command")
        if isinstance(command, str):
            command = [command]
        if not isinstance(command, list) or not command:
            raise ModelBehaviorError(
                f"command: expected a list of strings with the program first, got {command!r:.60}"
            )
        variables = check_type(action.get("env") or {}, dict, "env", "an object")
        request = ShellRequest(
            command=[str(word) for word in cast("list[Any]", command)],
            env={name: str(value) for name, value in variables.items()},
            working_directory=read_optional(action, "working_directory", str, "a string"),
            timeout_ms=read_optional(action, "timeout_ms", int, "an integer"),
            user=read_optional(action, "user", str, "a string"),
            call_id=context.tool_call_id,
            context=context,
        )
        return await run_callback(self.executor, request)
