"""What the file editor takes and what it gives."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agents_tools.classes.definition import Action, Observation

__all__ = ["Command", "FileEditorAction", "FileEditorObservation"]


Command = Literal["view", "create", "str_replace", "insert", "undo_edit"]
"""What the editor can be told to do."""


class FileEditorAction(Action):
    """View, create or edit a file."""

    command: Command = Field(description="What to do.")
    path: str = Field(description="The file or directory, absolute or from the working directory.")
    file_text: str | None = Field(default=None, description="create: the whole new content.")
    old_str: str | None = Field(default=None, description="str_replace: the text to replace.")
    new_str: str | None = Field(
        default=None,
        description="str_replace: what takes its place (nothing: delete it). "
        "insert: the lines to insert.",
    )
    insert_line: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="insert: after which line; 0 is the start of the file."
    )
    view_range: Annotated[list[int], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description="view: the first and the last line to show, from 1; -1 is the last line.",
    )
    replace_all: bool = Field(
        default=False, description="str_replace: replace every place where old_str is."
    )


class FileEditorObservation(Observation):
    """What the editor did, or what it shows.

    Attributes:
        command: What was asked for.
        path: The file or directory.
        prev_exists: Whether the file was there before.
        diff: What was changed, as a unified diff of the changed region; cut where it is long.
        lines: The first and the last line that is shown, or that is new.
        total_lines: How many lines the file has (now).
        replaced: How many places were replaced.
        encoding: How the text is stored.
    """

    command: Command
    path: str
    prev_exists: bool = True
    diff: str | None = None
    lines: tuple[int, int] | None = None
    total_lines: int | None = None
    replaced: int | None = None
    encoding: str | None = None
