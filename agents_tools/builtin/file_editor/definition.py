"""The file editor: how it is made, and what models are told about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from agents_tools.builtin.file_editor.models import (
    Command,
    FileEditorAction,
    FileEditorObservation,
)
from agents_tools.classes.definition import (
    ToolDefinition,
    ToolExecutor,
    working_dir_of,
)
from agents_tools.tool.declaration import ToolAnnotations

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


class FileEditorTool(ToolDefinition[FileEditorAction, FileEditorObservation]):
    """Views, creates and edits the text files of a workspace."""

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
        """Create the tool.

        Args:
            conv_state: The state of a conversation, whose working directory is taken.
            working_dir: The directory that nothing outside of is touched; by default that of the
                conversation, or else the current one.
            executor: What does the work; may be shared with other tools.
            workspace: The directories to work in, instead of `working_dir`.
            description: What models are told instead.
        """
        if executor is None:
            from agents_tools.builtin.file_editor.executor import FileEditorExecutor

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
