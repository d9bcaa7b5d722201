"""What type checkers make of tools for other frameworks: one in, one out; several in, a list out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from agents_tools import FunctionTool, function_tool
from agents_tools.export import (
    AgentToolOptions,
    from_langchain,
    from_openai_agents,
    from_pydantic_ai,
    to_anthropic_sdk,
    to_langchain,
    to_openai_agents,
    to_openai_sdk,
    to_pydantic_ai,
)
from agents_tools.export.openai_agents import as_tool

if TYPE_CHECKING:
    from agents import Agent as ForeignAgent, FunctionTool as AgentsTool, RunResultStreaming
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool
    from langchain_core.tools import BaseTool as LangChainTool
    from openai.lib.responses_tool_runner import AsyncRegisteredFunction, RegisteredFunction
    from pydantic_ai import Tool as PydanticTool


@function_tool
def search(query: str) -> str:
    return query


def check_out() -> None:
    assert_type(to_langchain(search), "LangChainTool")
    assert_type(to_langchain([search]), "list[LangChainTool]")
    assert_type(to_openai_agents(search), "AgentsTool")
    assert_type(to_openai_agents([search]), "list[AgentsTool]")
    assert_type(to_pydantic_ai(search), "PydanticTool[Any]")
    assert_type(to_pydantic_ai([search]), "list[PydanticTool[Any]]")


def check_async_or_not() -> None:
    assert_type(to_anthropic_sdk(search), BetaAsyncBuiltinFunctionTool)
    assert_type(to_anthropic_sdk([search], sync=True), list[BetaBuiltinFunctionTool])
    assert_type(to_openai_sdk([search]), list[AsyncRegisteredFunction])
    assert_type(to_openai_sdk(search, sync=True), RegisteredFunction)


def check_in(langchain: LangChainTool, agents: AgentsTool, pydantic: PydanticTool[Any]) -> None:
    assert_type(from_langchain(langchain), FunctionTool[..., Any])
    assert_type(from_langchain([langchain]), list[FunctionTool[..., Any]])
    assert_type(from_openai_agents(agents), FunctionTool[..., Any])
    assert_type(from_openai_agents([agents]), list[FunctionTool[..., Any]])
    assert_type(from_pydantic_ai(pydantic), FunctionTool[..., Any])
    assert_type(from_pydantic_ai([pydantic]), list[FunctionTool[..., Any]])


def _last(result: RunResultStreaming) -> str:
    return str(result.final_output)


def _size(text: str) -> int:
    return len(text)


def check_agents(agent: ForeignAgent[Any]) -> None:
    options: AgentToolOptions[Any] = {"streaming": True, "custom_output_extractor": _last}
    assert_type(as_tool(agent, max_turns=3, **options), FunctionTool[..., Any])
    as_tool(agent, custom_output_extractor=_size)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    as_tool(agent, tool_nmae="x")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    as_tool(agent, streaming="yes")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
