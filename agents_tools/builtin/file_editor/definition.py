"""What the file editor takes and gives, and how its tool is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from agents_tools._records import ToolAnnotations
from agents_tools.definition import (
    Action,
    Observation,
    ToolDefinition,
    ToolExecutor,
    working_dir_of,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from agents_tools._paths import Workspace

__all__ = [
    "Command",
    "EditorTool",
    "FileEditorAction",
    "FileEditorObservation",
    "FileEditorTool",
]

Command = Literal["view", "create", "str_replace", "insert", "undo_edit"]

DESCRIPTION = """Views, creates and edits text files; also lists directories and shows images.

* `view` shows a file with line numbers (a part of it with `view_range`), a directory two levels \
deep, or an image.
* `create` writes `file_text` to a new file and makes its directories. An existing file is only \
replaced after it was viewed.
* `str_replace` replaces `old_str`, which has to be in the file exactly once (with `replace_all`, \
at least once), by `new_str`. Give `old_str` exactly as it is in the file, with its indentation \
and without line numbers, and enough lines around to name one place.
* `insert` puts `new_str` on new lines after line `insert_line` (0: at the start).
* `undo_edit` takes back the last change that this tool made to the file.
Encoding, line ends and permissions of a file are kept."""


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


class FileEditorTool(ToolDefinition[FileEditorAction, FileEditorObservation]):
    """Views, creates and edits the text files of a workspace."""

    name: ClassVar[str] = "str_replace_editor"

    @classmethod
    def create(
        cls,
        conv_state: Any = None,
        *,
        working_dir: str | os.PathLike[str] | None = None,
        executor: ToolExecutor[Any, Any] | None = None,
        workspace: Workspace | None = None,
        description: str | None = None,
    ) -> Sequence[Self]:
        """Make the tool.

        Args:
            conv_state: The state of a conversation, whose working directory is taken.
            working_dir: The directory that nothing outside of is touched; by default that of the
                conversation, or else the current one.
            executor: What does the work; may be shared with other tools.
            workspace: The directories to work in, instead of `working_dir`.
            description: What models are told instead.
        """
        if executor is None:
            from agents_tools.builtin.file_editor.impl import FileEditorExecutor

            place = working_dir_of(conv_state, working_dir)
            executor = FileEditorExecutor(place, workspace=workspace)
        return [
            cls(
                description=DESCRIPTION if description is None else description,
                action_type=FileEditorAction,
                observation_type=FileEditorObservation,
                executor=executor,
                annotations=ToolAnnotations(
                    title="Edit files",
                    readOnlyHint=False,
                    destructiveHint=True,
                    idempotentHint=False,
                    openWorldHint=False,
                ),
            )
        ]


EditorTool = FileEditorTool
