"""The tools that come with the library: terminal, editor, search, plan, skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents_tools.builtin.file_editor import (
        FileEditorAction as FileEditorAction,
        FileEditorExecutor as FileEditorExecutor,
        FileEditorObservation as FileEditorObservation,
        FileEditorTool as FileEditorTool,
    )
    from agents_tools.builtin.finish import (
        FinishAction as FinishAction,
        FinishObservation as FinishObservation,
        FinishTool as FinishTool,
    )
    from agents_tools.builtin.glob import (
        GlobAction as GlobAction,
        GlobExecutor as GlobExecutor,
        GlobObservation as GlobObservation,
        GlobTool as GlobTool,
    )
    from agents_tools.builtin.grep import (
        GrepAction as GrepAction,
        GrepExecutor as GrepExecutor,
        GrepObservation as GrepObservation,
        GrepTool as GrepTool,
    )
    from agents_tools.builtin.presets import (
        ToolSet as ToolSet,
        create_default_registry as create_default_registry,
        get_default_tools as get_default_tools,
    )
    from agents_tools.builtin.sandbox import (
        Limits as Limits,
        Sandbox as Sandbox,
        SandboxReport as SandboxReport,
        sandbox_report as sandbox_report,
    )
    from agents_tools.builtin.skill import (
        SkillAction as SkillAction,
        SkillObservation as SkillObservation,
        SkillRegistry as SkillRegistry,
        SkillTool as SkillTool,
    )
    from agents_tools.builtin.task_tracker import (
        TaskTrackerAction as TaskTrackerAction,
        TaskTrackerObservation as TaskTrackerObservation,
        TaskTrackerTool as TaskTrackerTool,
    )
    from agents_tools.builtin.terminal import (
        TerminalAction as TerminalAction,
        TerminalExecutor as TerminalExecutor,
        TerminalObservation as TerminalObservation,
        TerminalTool as TerminalTool,
    )
    from agents_tools.builtin.think import (
        ThinkAction as ThinkAction,
        ThinkObservation as ThinkObservation,
        ThinkTool as ThinkTool,
    )

    BashExecutor = TerminalExecutor
    BashTool = TerminalTool
    EditorTool = FileEditorTool

_PLACES = {
    "file_editor": (
        "FileEditorAction", "FileEditorExecutor", "FileEditorObservation", "FileEditorTool",
    ),
    "finish": ("FinishAction", "FinishObservation", "FinishTool"),
    "glob": ("GlobAction", "GlobExecutor", "GlobObservation", "GlobTool"),
    "grep": ("GrepAction", "GrepExecutor", "GrepObservation", "GrepTool"),
    "presets": ("ToolSet", "create_default_registry", "get_default_tools"),
    "sandbox": ("Limits", "Sandbox", "SandboxReport", "sandbox_report"),
    "skill": ("SkillAction", "SkillObservation", "SkillRegistry", "SkillTool"),
    "task_tracker": ("TaskTrackerAction", "TaskTrackerObservation", "TaskTrackerTool"),
    "terminal": ("TerminalAction", "TerminalExecutor", "TerminalObservation", "TerminalTool"),
    "think": ("ThinkAction", "ThinkObservation", "ThinkTool"),
}  # fmt: skip
"""Where each name lives; a module is loaded when a name of its is first asked for."""

_ALIASES = {
    "BashExecutor": "TerminalExecutor",
    "BashTool": "TerminalTool",
    "EditorTool": "FileEditorTool",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = sorted([*_MODULES, *_ALIASES])  # noqa: PLE0605 # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    own = _ALIASES.get(name, name)
    if own not in _MODULES:
        raise AttributeError(f"module 'agents_tools.builtin' has no attribute {name!r}")
    value = getattr(import_module(f"agents_tools.builtin.{_MODULES[own]}"), own)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
