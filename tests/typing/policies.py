"""What type checkers must know of policies; only checked, never run."""

from __future__ import annotations

from typing import Any, assert_type

from agents_tools import FunctionTool, ToolContext, function_tool
from agents_tools.policies import (
    ArgTransform,
    Offload,
    cache,
    circuit_breaker,
    offload,
    redact,
    repair_json,
    transform,
)

aside = offload(1_000)
assert_type(aside, Offload)
assert_type(aside.reader, FunctionTool[..., Any])


def user(context: ToolContext[Any]) -> str:
    return str(context.context)


@aside
@redact("x", str.upper)
@cache(key=lambda context, arguments: (context.run_id, arguments["a"]))
@circuit_breaker(on=lambda error: isinstance(error, OSError))
@circuit_breaker(on=(OSError, ValueError))
@repair_json()
@transform(a=ArgTransform(fill=user))
@function_tool
def wrapped(a: str) -> int:
    return len(a)


assert_type(wrapped("x"), int)
wrapped(1)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
