"""The action and observation of the terminal tool."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base

from pydantic import Field

from agents_tools.classes.definition import Action, ImageContent, Observation, TextContent

__all__ = ["TerminalAction", "TerminalObservation"]


class TerminalAction(Action):
    """A command to run, or input for the running one."""

    command: str = Field(
        description="The command. With is_input: a line to type, or a key such as C-c, C-d, C-z. "
        "Empty: wait for more output of the running command."
    )
    timeout: float | None = Field(
        default=None,
        gt=0,
        description="Seconds after which the command is stopped. No limit by default.",
    )
    is_input: bool = Field(default=False, description="Whether to type into the running program.")
    reset: bool = Field(
        default=False,
        description="Whether to terminate the session and its processes and start a new one first.",
    )


class TerminalObservation(Observation):
    """The output and the result of a command.

    Attributes:
        command: The command or input.
        exit_code: Its exit code; 124 after a timeout, 130 after an interrupt; `None` while it runs.
        timed_out: Whether it was stopped at its timeout.
        running: Whether it still runs, so that the session is busy.
        waits_for_input: Whether it runs and waits for a line or a key.
        working_dir: The working directory of the session.
        duration: The duration of the call in seconds.
        truncated: Whether `text` contains only a part of the output.
        output_file: The file with the whole raw output if it is truncated.
        background: The running or stopped background jobs, one line each.
        notes: Notes for the model in addition to the output.
        sandbox: The active sandbox level: `process`, `landlock` or `bwrap`.
    """

    command: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    running: bool = False
    waits_for_input: bool = False
    working_dir: str = ""
    duration: float = 0.0
    truncated: bool = False
    output_file: str | None = None
    background: list[str] = Field(default_factory=list[str])
    notes: list[str] = Field(default_factory=list[str])
    sandbox: str = ""

    @property
    def to_llm_content(self) -> Sequence[TextContent | ImageContent]:
        """The output, followed by the notes in brackets."""
        lines = [*self._ending(), *self.notes]
        lines += [f"background job: {job}" for job in self.background]
        content = list(super().to_llm_content)
        if lines:
            content.append(TextContent(text="\n".join(f"[{line}]" for line in lines)))
        return content

    def _ending(self) -> list[str]:
        if self.exit_code:
            return [f"exit code {self.exit_code}"]
        return [] if self.text or self.notes else ["no output"]
