"""A tool that views and edits text files of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.builtin.file_editor.definition import (
    EditorTool,
    FileEditorAction,
    FileEditorObservation,
    FileEditorTool,
)

if TYPE_CHECKING:
    from agents_tools.builtin.file_editor.impl import FileEditorExecutor

__all__ = [
    "EditorTool",
    "FileEditorAction",
    "FileEditorExecutor",
    "FileEditorObservation",
    "FileEditorTool",
]


def __getattr__(name: str) -> Any:
    if name == "FileEditorExecutor":  # what does the work is loaded when it is needed
        from agents_tools.builtin.file_editor.impl import FileEditorExecutor

        return FileEditorExecutor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
