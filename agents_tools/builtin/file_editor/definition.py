"""The definition and description of the file editor tool."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from agents_tools.builtin.file_editor.models import (
    Command,
    FileEditorAction,
    FileEditorObservation,
)
from agents_tools.classes.definition import ToolDefinition, ToolExecutor, working_dir_of
from agents_tools.classes.per_run import PerRunExecutor
from agents_tools.tool.records import ToolAnnotations

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from agents_tools.builtin._paths import ConfinedWorkspace

__all__ = [
    "Command",
    "EditorTool",
    "FileEditorAction",
    "FileEditorObservation",
    "FileEditorTool",
]


DESCRIPTION = """View, create and edit text files; also list directories and show images.

* `view` shows a file with line numbers (a part of it with `view_range`), a directory two levels \
deep, or an image.
* `create` writes `file_text` to a new file and creates its directories. View an existing file \
before you replace it.
* `str_replace` replaces `old_str`, which must occur exactly once in the file (with `replace_all`, \
at least once), with `new_str`. Copy `old_str` exactly from the file, with its indentation and \
without line numbers, and include enough lines to match one place only.
* `insert` inserts `new_str` as new lines after line `insert_line` (0: at the start).
* `undo_edit` undoes the last change that this tool made to the file.
Encoding, line ends and permissions of a file are preserved."""


class FileEditorTool(ToolDefinition[FileEditorAction, FileEditorObservation]):
    """Tool that views, creates and edits the text files of a workspace."""

    name: ClassVar[str] = "str_replace_editor"

    @classmethod
    def create(
        cls,
        conv_state: object = None,
        *,
        working_dir: str | os.PathLike[str] | None = None,
        executor: ToolExecutor[Any, Any] | None = None,
        workspace: ConfinedWorkspace | None = None,
        description: str | None = None,
    ) -> Sequence[Self]:
        """Create the tool, with an undo history for each run.

        Args:
            conv_state: The state of a conversation, which provides the default working directory.
            working_dir: The directory that confines the tool; by default that of the conversation,
                or else the current one.
            executor: An executor that all runs and other tools share.
            workspace: The directories to work in, instead of `working_dir`; the caller closes it.
            description: The description for models, instead of the default.
        """
        if executor is None:
            from agents_tools.builtin._paths import ConfinedWorkspace
            from agents_tools.builtin.file_editor.executor import FileEditorExecutor

            place = working_dir_of(conv_state, working_dir)
            opened = workspace or ConfinedWorkspace(place)
            executor = PerRunExecutor(
                partial(FileEditorExecutor, workspace=opened),
                on_close=opened.close if workspace is None else None,
            )
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
