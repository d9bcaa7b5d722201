"""`FunctionTool`, its decorators and the context of a call."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.tool.argument_stream import ArgumentStream as ArgumentStream
    from agents_tools.tool.context import (
        ToolContext as ToolContext,
        current_context as current_context,
    )
    from agents_tools.tool.decorators import (
        function_tool as function_tool,
        streaming_tool as streaming_tool,
    )
    from agents_tools.tool.failure import (
        default_tool_error_function as default_tool_error_function,
        set_default_tool_error_function as set_default_tool_error_function,
    )
    from agents_tools.tool.flatten import function_tools as function_tools
    from agents_tools.tool.options import (
        StreamingToolOptions as StreamingToolOptions,
        ToolOptions as ToolOptions,
    )
    from agents_tools.tool.question import Question as Question
    from agents_tools.tool.records import (
        CallOutcome as CallOutcome,
        Decision as Decision,
        ToolAnnotations as ToolAnnotations,
        ToolOrigin as ToolOrigin,
    )
    from agents_tools.tool.reporting import (
        artifact as artifact,
        notify as notify,
        progress as progress,
        track as track,
    )
    from agents_tools.tool.run_context import RunContextWrapper as RunContextWrapper
    from agents_tools.tool.state import ToolState as ToolState
    from agents_tools.tool.stream import ToolStream as ToolStream
    from agents_tools.tool.tool import FunctionTool as FunctionTool

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "tool": ("FunctionTool",),
        "state": ("ToolState",),
        "stream": ("ToolStream",),
        "failure": ("default_tool_error_function", "set_default_tool_error_function"),
        "flatten": ("function_tools",),
        "argument_stream": ("ArgumentStream",),
        "context": ("ToolContext", "current_context"),
        "run_context": ("RunContextWrapper",),
        "question": ("Question",),
        "reporting": ("artifact", "notify", "progress", "track"),
        "decorators": ("function_tool", "streaming_tool"),
        "options": ("StreamingToolOptions", "ToolOptions"),
        "records": ("CallOutcome", "Decision", "ToolAnnotations", "ToolOrigin"),
    },
)


class _ToolPackage(ModuleType):
    """This package, which explains `@tool`, the decorator of other libraries."""

    def __call__(self, *_: object, **_options: object) -> NoReturn:
        from agents_tools.errors import UserTypeError

        raise UserTypeError(
            "agents_tools.tool is a package, not a decorator. Write "
            "`from agents_tools import function_tool` and @function_tool."
        )


sys.modules[__name__].__class__ = _ToolPackage
