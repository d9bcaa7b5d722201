"""The terminal tool: how it is made, and what models are told about it."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base
from typing import TYPE_CHECKING, Any, ClassVar, Self

from agents_tools.builtin.terminal.models import TerminalAction, TerminalObservation
from agents_tools.classes.definition import (
    ToolDefinition,
    working_dir_of,
)
from agents_tools.tool.declaration import ToolAnnotations

if TYPE_CHECKING:
    import os

    from agents_tools.builtin.sandbox import Sandbox
    from agents_tools.builtin.terminal.executor import TerminalExecutor

__all__ = ["BashTool", "TerminalAction", "TerminalObservation", "TerminalTool"]

_DESCRIPTION = """\
Run a command in a bash session that stays: working directory, variables, functions and background \
jobs last from one call to the next.

- Several lines and here-documents are fine. For a server or anything that does not end, add `&` \
and send its output to a file.
- With `timeout`, the command is stopped after so many seconds (exit code 124). Without, the call \
returns when the command has written nothing for {soft:g} s, or waits for input; it goes on \
running. Then: an empty `command` waits for more, `is_input` types a line or a key (`C-c` stops \
it, `C-d` ends the input), `reset` starts a new session.
- Output above {limit:,} characters is cut in the middle; all of it is in a file, to be searched \
with grep or sed.
- {sandbox}"""

_LEVELS = {
    "process": "Commands are not confined: they can do what this program can.",
    "landlock": "Commands can write only in the working directory and $TMPDIR{network}.",
    "bwrap": "Commands can write only in the working directory and /tmp{network}.",
}


class TerminalTool(ToolDefinition[TerminalAction, TerminalObservation]):
    """Runs commands in a bash session that stays."""

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
        """Create the tool.

        Args:
            conv_state: Its `workspace.working_dir` is the directory, unless one is given.
            working_dir: Where the session begins, and what confined commands may write.
            executor: What runs the commands, shared with other tools; then `working_dir`,
                `sandbox`, `timeout` and `max_output` are its own.
            sandbox: How far commands are confined; not at all by default.
            timeout: Seconds after which a command is stopped whose call does not say.
            max_output: The most characters of an output that are shown.
            description: What models are told about it.
            **params: Further arguments of `TerminalExecutor`.
        """
        from agents_tools.builtin.terminal.executor import TerminalExecutor

        if executor is None:
            place = working_dir_of(conv_state, working_dir)
            executor = TerminalExecutor(
                place, sandbox=sandbox, timeout=timeout, max_output=max_output, **params
            )
        return [
            cls(
                description=description or _describe(executor),
                action_type=TerminalAction,
                observation_type=TerminalObservation,
                executor=executor,
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
    """Write the description for the limits and the level in force."""
    network = "" if executor.sandbox.network else ", and have no network"
    sandbox = _LEVELS[executor.level].format(network=network)
    return _DESCRIPTION.format(
        soft=executor.soft_timeout, limit=executor.max_output, sandbox=sandbox
    )
