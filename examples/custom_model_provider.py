"""Use your own models: a provider finds them by name, and a sub-agent has another model.

Run it: python examples/custom_model_provider.py. It prints the responses of a custom model to a
sub-agent and to a run, and the error for an unknown name.

`EchoModel` implements all that a model needs, offline. A real model sends a request to a server in
`respond`. For servers with OpenAI's protocol, use `agents_tools.models.openai_chat`.
"""

from __future__ import annotations

import asyncio

from agents_tools import (
    Agent,
    MessageOutputItem,
    Model,
    ModelProvider,
    ModelRequest,
    ModelResponse,
    RunConfig,
    Runner,
    Usage,
    UserError,
)
from agents_tools.agents import text_delta
from agents_tools.events import Emit
from agents_tools.testing import ScriptedModel, tool_call


class EchoModel:
    """Answers with what it was asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Answer, a word at a time."""
        asked = request.input[-1].to_dict()["content"]
        words = f"{self.name} heard: {asked}".split(" ")
        for word in words:
            emit(text_delta(word + " "))  # readers of the run's events see it at once
        return ModelResponse(
            items=[MessageOutputItem(text=" ".join(words))],
            usage=Usage(requests=1, output_tokens=len(words)),
            finish_reason="stop",
        )


class HouseProvider(ModelProvider):
    """Knows the models of the house by what stands behind `house/`."""

    def get_model(self, name: str | None) -> Model:
        """Return a model; the name is exactly that of the agent."""
        prefix, _, own = (name or "").partition("/")
        if prefix != "house":
            raise UserError(f"This provider has models named house/…, not {name!r}.")
        return EchoModel(own)


expert = Agent(name="Expert", instructions="You know the house.", model="house/large")
front_desk = Agent(
    name="Front desk",
    instructions="You ask the expert.",
    tools=[
        expert.as_tool(
            "ask_expert",
            "Ask who knows the house.",
            run_config=RunConfig(model_provider=HouseProvider()),  # for runs of this tool
        )
    ],
    model=ScriptedModel([tool_call("ask_expert", input="Where is the key?"), "See above."]),
)


async def main() -> None:
    """Run an agent whose tool uses the provider, then the expert itself."""
    result = await Runner.run(front_desk, "Where is the key?")
    for item in result.to_input_list():
        if item.get("type") == "function_call_output":
            print(item["output"])
    config = RunConfig(model_provider=HouseProvider())
    print((await Runner.run(expert, "Good morning", run_config=config)).final_output)
    try:
        await Runner.run(expert.clone(model="garage/small"), "Hello", run_config=config)
    except UserError as error:
        print("error:", error)


asyncio.run(main())
