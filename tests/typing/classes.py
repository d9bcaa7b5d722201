"""What type checkers must know of class-based tools; only checked, never run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

from pydantic import Field

from agents_tools import (
    Action,
    FunctionTool,
    ImageContent,
    Observation,
    TextContent,
    ToolAnnotations,
    ToolDefinition,
    ToolExecutor,
    register_tool,
    resolve_tool,
)
from agents_tools.classes import ExecutableTool
from agents_tools.conversation import LLM, Agent, Conversation
from agents_tools.registry import Tool


class GrepAction(Action):
    pattern: str = Field(description="Regex to search for")


class GrepObservation(Observation):
    matches: list[str] = Field(default_factory=list)
    count: int = 0

    @property
    def to_llm_content(self) -> Sequence[TextContent | ImageContent]:
        return [TextContent(text=str(self.count))]


class GrepExecutor(ToolExecutor[GrepAction, GrepObservation]):
    def __init__(self, root: str) -> None:
        self.root = root

    def __call__(self, action: GrepAction, conversation: Any = None) -> GrepObservation:
        assert_type(action.pattern, str)
        return GrepObservation(count=1)


class LaterExecutor(ToolExecutor[GrepAction, GrepObservation]):
    async def __call__(self, action: GrepAction, conversation: Any = None) -> GrepObservation:
        return GrepObservation(count=2)


class GrepTool(ToolDefinition[GrepAction, GrepObservation]):
    @classmethod
    def create(cls, conv_state: Any = None, root: str = ".") -> Sequence[ToolDefinition]:
        return [
            cls(
                description="Search.",
                action_type=GrepAction,
                observation_type=GrepObservation,
                executor=GrepExecutor(root),
                annotations=ToolAnnotations(readOnlyHint=True),
            )
        ]


def make(conv_state: Any) -> list[ToolDefinition]:
    return [*GrepTool.create(conv_state)]


register_tool("Set", make)
register_tool("GrepTool", GrepTool)
tool = GrepTool(description="Search.", action_type=GrepAction)
assert_type(GrepTool.name, str)
assert_type(tool.name, str)
assert_type(tool.title, str)
assert_type(tool.action_from_arguments({"pattern": "x"}), GrepAction)
assert_type(tool.set_executor(LaterExecutor()), GrepTool)
assert_type(tool.as_executable(), ExecutableTool)
assert_type(GrepObservation.from_text("x", count=3), GrepObservation)
function: FunctionTool[..., Any] = tool.as_function_tool()
direct: ToolDefinition = ToolDefinition(
    name="grep", description="Search.", action_type=GrepAction, executor=GrepExecutor(".")
)
specs = [Tool(name=GrepTool.name), Tool(name="Set", params={"root": "."})]
agent = Agent(llm=LLM(model="openai/any"), tools=[*specs, direct])
conversation = Conversation(agent, workspace=".", callbacks=[print])
made: Sequence[FunctionTool[..., Any]] = resolve_tool(specs[0])
