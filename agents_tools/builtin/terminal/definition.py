"""The definition and description of the terminal tool."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from agents_tools.builtin.terminal.models import TerminalAction, TerminalObservation
from agents_tools.classes.definition import ToolDefinition, ToolExecutor, working_dir_of
from agents_tools.classes.per_run import PerRunExecutor
from agents_tools.tool.records import ToolAnnotations

if TYPE_CHECKING:
    import os

    from agents_tools.builtin.sandbox import Sandbox
    from agents_tools.builtin.terminal.executor import TerminalExecutor

__all__ = ["BashTool", "TerminalAction", "TerminalObservation", "TerminalTool"]

_DESCRIPTION = """\
Run a command in a persistent bash session: working directory, variables, functions and background \
jobs stay between calls.

- Multiple lines and here-documents are allowed. For a server or another endless command, add `&` \
and redirect its output to a file.
- With `timeout`, the command is stopped after that many seconds (exit code 124). Without it, the \
call returns when the command writes nothing for {soft:g} s or waits for input, and the command \
continues. Then an empty `command` waits for more output, `is_input` types a line or a key (`C-c` \
stops the command, `C-d` ends its input), and `reset` starts a new session.
- Output above {limit:,} characters is truncated in the middle; search the file with the whole \
output using grep or sed.
- {sandbox}"""

_LEVELS = {
    "process": "Commands are not confined: they have the permissions of this program.",
    "landlock": "Commands can write only in the working directory and $TMPDIR{network}.",
    "bwrap": "Commands can write only in the working directory and /tmp{network}.",
}


class TerminalTool(ToolDefinition[TerminalAction, TerminalObservation]):
    """Tool that runs commands in a persistent bash session."""

    name: ClassVar[str] = "execute_bash"

    @classmethod
    def create(
        cls,
        conv_state: object = None,
        *,
        working_dir: str | os.PathLike[str] | None = None,
        executor: TerminalExecutor | None = None,
        sandbox: Sandbox | None = None,
        timeout: float | None = None,
        max_output: int = 30_000,
        description: str | None = None,
        **params: Any,
    ) -> Sequence[Self]:
        """Create the tool, with a shell for each run.

        Args:
            conv_state: Provides `workspace.working_dir` as the default directory.
            working_dir: The initial directory, which confined commands can write.
            executor: An executor that all runs share, which has its own `working_dir`, `sandbox`,
                `timeout` and `max_output`.
            sandbox: The sandbox; commands are not confined by default.
            timeout: The default timeout of a command in seconds.
            max_output: The maximum number of characters of a shown output.
            description: The description for models, instead of the default.
            **params: Further arguments of `TerminalExecutor`.
        """
        from agents_tools.builtin.terminal.executor import TerminalExecutor

        own: ToolExecutor[TerminalAction, TerminalObservation] | None = executor
        if executor is None:
            place = working_dir_of(conv_state, working_dir)
            create = partial(
                TerminalExecutor,
                place,
                sandbox=sandbox,
                timeout=timeout,
                max_output=max_output,
                **params,
            )
            executor, own = create(), PerRunExecutor(create)
        return [
            cls(
                description=description or _describe(executor),
                action_type=TerminalAction,
                observation_type=TerminalObservation,
                executor=own,
                annotations=ToolAnnotations(
                    readOnlyHint=False,
                    destructiveHint=True,
                    idempotentHint=False,
                    openWorldHint=True,
                ),
            )
        ]


BashTool = TerminalTool


def _describe(executor: TerminalExecutor) -> str:
    """Return the description for the limits and the active sandbox level."""
    network = "" if executor.sandbox.network else ", and have no network access"
    sandbox = _LEVELS[executor.level].format(network=network)
    return _DESCRIPTION.format(
        soft=executor.soft_timeout, limit=executor.max_output, sandbox=sandbox
    )
