"""A travel desk with two tools, a conversation and a limit of calls."""

from dataclasses import dataclass, field
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ToolCallLimitMiddleware
from langchain.tools import ToolRuntime, tool
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer


@dataclass
class Desk:
    """The state of the application."""

    customer: str
    booked: list[str] = field(default_factory=list[str])


@tool(parse_docstring=True)
def find_train(city: str) -> str:
    """Find a train.

    Args:
        city: Where to go.
    """
    get_stream_writer()(f"asking the railway about {city}")
    return f"the night train to {city}"


@tool
def book(train: str, runtime: ToolRuntime[Desk]) -> str:
    """Book a seat."""
    runtime.context.booked.append(train)
    return f"seat 7 for {runtime.context.customer}"


class Model(FakeMessagesListChatModel):
    """A scripted model."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """Accept all tools."""
        return self


def call(name: str, number: int, **args: str) -> AIMessage:
    """Return an answer with a call."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"c{number}"}])


model = Model(
    responses=[
        call("find_train", 1, city="Rome"),
        AIMessage("There is a night train."),
        call("book", 2, train="night train"),
        AIMessage("You have seat 7."),
    ]
)
agent: Any = create_agent(
    model,
    [find_train, book],
    system_prompt="You book trains.",
    context_schema=Desk,
    checkpointer=InMemorySaver(),
    middleware=[ToolCallLimitMiddleware(tool_name="book", run_limit=1)],
)


def main() -> None:
    """Answer two messages of one conversation."""
    desk = Desk("ada")
    config = {"configurable": {"thread_id": "ada"}}
    for text in ("How do I get to Rome?", "Book it."):
        result: Any = None
        messages = {"messages": [{"role": "user", "content": text}]}
        for mode, data in agent.stream(
            messages, config, context=desk, stream_mode=["custom", "values"]
        ):
            if mode == "custom":
                print("progress:", data)
            else:
                result = data
        print(result["messages"][-1].text, len(result["messages"]))
    print(desk.booked)


if __name__ == "__main__":
    main()
