"""Built-in tools: terminal, file editor, search, task list and skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.builtin.file_editor import (
        EditorTool as EditorTool,
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
        DefaultTools as DefaultTools,
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
        BashExecutor as BashExecutor,
        BashTool as BashTool,
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

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "file_editor": (
            "EditorTool",
            "FileEditorAction",
            "FileEditorExecutor",
            "FileEditorObservation",
            "FileEditorTool",
        ),
        "finish": (
            "FinishAction",
            "FinishObservation",
            "FinishTool",
        ),
        "glob": (
            "GlobAction",
            "GlobExecutor",
            "GlobObservation",
            "GlobTool",
        ),
        "grep": (
            "GrepAction",
            "GrepExecutor",
            "GrepObservation",
            "GrepTool",
        ),
        "presets": (
            "DefaultTools",
            "create_default_registry",
            "get_default_tools",
        ),
        "sandbox": (
            "Limits",
            "Sandbox",
            "SandboxReport",
            "sandbox_report",
        ),
        "skill": (
            "SkillAction",
            "SkillObservation",
            "SkillRegistry",
            "SkillTool",
        ),
        "task_tracker": (
            "TaskTrackerAction",
            "TaskTrackerObservation",
            "TaskTrackerTool",
        ),
        "terminal": (
            "BashExecutor",
            "BashTool",
            "TerminalAction",
            "TerminalExecutor",
            "TerminalObservation",
            "TerminalTool",
        ),
        "think": (
            "ThinkAction",
            "ThinkObservation",
            "ThinkTool",
        ),
    },
)
