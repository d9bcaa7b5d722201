"""The programs that documentation of the field shows, with only their imports changed.

None of them names a model of its own unless the documented one does: they run with whatever
`AGENTS_TOOLS_MODEL` names, or with an override of the test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents_tools import (
    Agent,
    Event,
    FileSearchTool,
    Model,
    ModelProvider,
    NotifyStreamEvent,
    RunConfig,
    Runner,
    RunResult,
    ToolCallOutputItem,
    WebSearchTool,
    function_tool,
    streaming_tool,
)


async def hosted_tools() -> Any:
    """An agent whose tools run at the provider."""
    agent = Agent(
        name="Assistant",
        tools=[
            WebSearchTool(),
            FileSearchTool(
                max_num_results=3,
                vector_store_ids=["VECTOR_STORE_ID"],
            ),
        ],
    )
    result = await Runner.run(
        agent,
        "Which coffee shop should I go to, taking into account my preferences and the weather "
        "today in SF?",
    )
    return result.final_output


async def translation_orchestrator() -> Any:
    """An agent that uses other agents as tools."""
    spanish_agent = Agent(
        name="Spanish agent",
        instructions="You translate the user's message to Spanish",
    )
    french_agent = Agent(
        name="French agent",
        instructions="You translate the user's message to French",
    )
    orchestrator_agent = Agent(
        name="orchestrator_agent",
        instructions=(
            "You are a translation agent. You use the tools given to you to translate."
            "If asked for multiple translations, you call the relevant tools."
        ),
        tools=[
            spanish_agent.as_tool(
                tool_name="translate_to_spanish",
                tool_description="Translate the user's message to Spanish",
            ),
            french_agent.as_tool(
                tool_name="translate_to_french",
                tool_description="Translate the user's message to French",
            ),
        ],
    )
    result = await Runner.run(orchestrator_agent, input="Say 'Hello, how are you?' in Spanish.")
    return result.final_output


@streaming_tool
async def report_status(step: str) -> AsyncIterator[NotifyStreamEvent | str]:
    """Report how far the task is.

    Args:
        step: What is being done.
    """
    yield NotifyStreamEvent(data=f"[1/2] {step}")
    yield NotifyStreamEvent(data="[2/2] checking", tag="success")
    yield f"{step}: done"


async def streaming_orchestrator() -> list[Event]:
    """An agent whose sub-agent streams everything it does."""
    sub_agent = Agent(
        name="SubAgent",
        instructions="You are a subtask executor. You report your status.",
        tools=[report_status],
    )
    orchestrator_agent = Agent(
        name="OrchestratorAgent",
        instructions="You must call your 'run_sub_agent' tool to complete tasks.",
        tools=[
            sub_agent.as_tool(
                tool_name="run_sub_agent",
                tool_description="Run sub-agent to execute specific tasks",
                streaming=True,
                enable_bracketing=True,
            )
        ],
    )
    events: list[Event] = []
    async for event in Runner.run_streamed(
        orchestrator_agent, "Please run the sub-agent"
    ).stream_events():
        events.append(event)  # noqa: PERF401 - as the documentation has it
    return events


@function_tool
async def run_my_agent() -> str:
    """A tool that runs the agent with custom configs."""
    agent = Agent(name="My agent", instructions="Answer in one word.")

    result = await Runner.run(
        agent,
        input="What is the capital of France?",
        max_turns=5,
        run_config=RunConfig(),
    )

    return str(result.final_output)


async def agent_in_a_function() -> Any:
    """An agent with a tool that runs another agent by hand."""
    agent = Agent(name="Caller", instructions="Use your tool.", tools=[run_my_agent])
    result = await Runner.run(agent, "Ask my agent.")
    return result.final_output


class MyCustomModelProvider(ModelProvider):
    """Knows the models of an enterprise."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.asked: list[str | None] = []

    def get_model(self, name: str | None) -> Model:
        """Return the same model for every name."""
        self.asked.append(name)
        return self.model


async def custom_provider(model: Model) -> tuple[Any, list[str | None]]:
    """A sub-agent whose model comes from another provider than the caller's."""
    provider = MyCustomModelProvider(model)
    run_config = RunConfig(model_provider=provider)
    enterprise_agent = Agent(
        name="EnterpriseAgent",
        instructions="You are an enterprise AI assistant",
        model="doubao/enterprise-model",
    )
    enterprise_tool = enterprise_agent.as_tool(
        tool_name="enterprise_assistant",
        tool_description="Access enterprise AI capabilities",
        run_config=run_config,
    )
    main_agent = Agent(
        name="MainAgent",
        instructions="You coordinate different AI capabilities",
        tools=[enterprise_tool],
    )
    result = await Runner.run(main_agent, "Ask the enterprise.")
    return result.final_output, provider.asked


@function_tool
async def load_orders(customer: str) -> dict[str, Any]:
    """Load the orders of a customer."""
    return {"customer": customer, "orders": [1, 2, 3]}


async def extract_json_payload(run_result: RunResult) -> str:
    """Find the last answer of a tool that is a JSON object."""
    for item in reversed(run_result.new_items):
        if isinstance(item, ToolCallOutputItem) and item.output.strip().startswith("{"):  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - as documented
            return item.output.strip()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    return "{}"


async def custom_extractor() -> tuple[Any, str]:
    """A sub-agent of which only the JSON that its tool gave is handed on."""
    data_agent = Agent(name="Data agent", instructions="Load data.", tools=[load_orders])
    json_tool = data_agent.as_tool(
        tool_name="get_data_json",
        tool_description="Run the data agent and return only its JSON payload",
        custom_output_extractor=extract_json_payload,
    )
    agent = Agent(name="Reader", instructions="Read data.", tools=[json_tool])
    result = await Runner.run(agent, "Read the data of ACME.")
    outputs = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    return result.final_output, str(outputs[0].output)
