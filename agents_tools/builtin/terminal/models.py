"""What the terminal tool takes and what it gives."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base

from pydantic import Field

from agents_tools.classes.definition import Action, ImageContent, Observation, TextContent

__all__ = ["TerminalAction", "TerminalObservation"]


class TerminalAction(Action):
    """A command to run, or input for the one that runs."""

    command: str = Field(
        description="The command. With is_input: a line to type, or a key such as C-c, C-d, C-z. "
        "Empty: wait for more output of the command that runs."
    )
    timeout: float | None = Field(
        default=None,
        gt=0,
        description="Seconds after which the command is stopped. By default it is not.",
    )
    is_input: bool = Field(default=False, description="Whether to type into the program that runs.")
    reset: bool = Field(
        default=False,
        description="Whether to end the session and all that it runs, and start a new one first.",
    )


class TerminalObservation(Observation):
    """What a command has written, and how it ended.

    Attributes:
        command: What was asked for.
        exit_code: Its exit code; 124 if it was stopped at its timeout, 130 if it was interrupted;
            `None` while it runs.
        timed_out: Whether it was stopped at its timeout.
        running: Whether it still runs; the session is busy with it.
        waits_for_input: Whether it runs and waits for a line or a key.
        working_dir: Where the session is now.
        duration: Seconds that the call took.
        truncated: Whether `text` has not all of the output.
        output_file: The file with all of it, as it was written, where it is truncated.
        background: The background jobs that run or are stopped, a line each.
        notes: What models are told beside the output.
        sandbox: The level of confinement in force: `process`, `landlock` or `bwrap`.
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
        """The output, and below it in brackets what is to be known beside it."""
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
