"""The action and observation of the file editor."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agents_tools.classes.definition import Action, Observation

__all__ = ["Command", "FileEditorAction", "FileEditorObservation"]


Command = Literal["view", "create", "str_replace", "insert", "undo_edit"]
"""The commands of the editor."""


class FileEditorAction(Action):
    """View, create or edit a file."""

    command: Command = Field(description="What to do.")
    path: str = Field(description="The path, absolute or relative to the working directory.")
    file_text: str | None = Field(default=None, description="create: the whole new content.")
    old_str: str | None = Field(default=None, description="str_replace: the text to replace.")
    new_str: str | None = Field(
        default=None,
        description="str_replace: the replacement (omit to delete). insert: the lines to insert.",
    )
    insert_line: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="insert: insert after this line; 0 is the start of the file."
    )
    view_range: Annotated[list[int], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description="view: the first and the last line to show, from 1; -1 is the last line.",
    )
    replace_all: bool = Field(
        default=False, description="str_replace: replace all occurrences of old_str."
    )


class FileEditorObservation(Observation):
    """The result of an editor command.

    Attributes:
        command: The command.
        path: The file or directory.
        prev_exists: Whether the file existed before.
        diff: A unified diff of the changed region; truncated if it is long.
        lines: The first and the last shown or new line.
        total_lines: The number of lines of the file after the command.
        replaced: The number of replaced occurrences.
        encoding: The storage format of the text.
    """

    command: Command
    path: str
    prev_exists: bool = True
    diff: str | None = None
    lines: tuple[int, int] | None = None
    total_lines: int | None = None
    replaced: int | None = None
    encoding: str | None = None
