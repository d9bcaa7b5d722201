"""The file editor tool: view and edit text files of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.builtin.file_editor.definition import (
        EditorTool as EditorTool,
        FileEditorAction as FileEditorAction,
        FileEditorObservation as FileEditorObservation,
        FileEditorTool as FileEditorTool,
    )
    from agents_tools.builtin.file_editor.executor import (
        FileEditorExecutor as FileEditorExecutor,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "definition": (
            "EditorTool",
            "FileEditorAction",
            "FileEditorObservation",
            "FileEditorTool",
        ),
        "executor": ("FileEditorExecutor",),
    },
)
