"""What type checkers must know of decorated functions; only checked, never run."""

from __future__ import annotations

from typing import Any, assert_type

from agents_tools import FunctionTool, NotifyStreamEvent, function_tool, streaming_tool
from agents_tools.policies import retry, timeout


@function_tool
def add(a: int, b: int = 2) -> int:
    return a + b


@function_tool(name_override="other")
def other(a: int) -> str:
    return str(a)


assert_type(add(1), int)
assert_type(other(1), str)
add("x")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


@retry(3)
@timeout(5)
@function_tool
def wrapped(a: int) -> int:
    return a


assert_type(wrapped(1), int)


@streaming_tool
async def stream(a: int):  # type: ignore[no-untyped-def]
    yield NotifyStreamEvent("x")
    yield a


@streaming_tool(name_override="bare", enable_bracketing=False)
async def bare(a: int):  # type: ignore[no-untyped-def]
    yield a


assert_type(bare.name, str)
function_tool(run_in_thread="no")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]
streaming_tool(output_schema=False)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]


@function_tool
async def later(a: int) -> list[str]:
    return [str(a)]


async def use() -> None:
    assert_type(await later.invoke(a=1), list[str])
    assert_type(later.invoke_sync(a=1), list[str])
    assert_type(await later(1), list[str])
    assert_type(await add.invoke(a=1), int)
    assert_type(add.invoke_sync(a=1), int)
    async with add.stream(a=1) as watching:
        assert_type(watching.result, int)


class Box:
    @function_tool
    def method(self, a: int) -> int:
        return a


assert_type(Box().method.invoke_sync(a=1), int)


def takes(tool: FunctionTool[..., Any]) -> None: ...


takes(add)
takes(stream)
