"""A travel desk with two tools, a conversation and a limit of calls."""

from dataclasses import dataclass, field

from agents_tools import (
    Agent,
    NotifyStreamEvent,
    Runner,
    SQLiteSession,
    ToolContext,
    function_tool,
    listen,
    notify,
    policies,
)
from agents_tools.testing import ScriptedModel, tool_call


@dataclass
class Desk:
    """The state of the application."""

    customer: str
    booked: list[str] = field(default_factory=list[str])


@function_tool
def find_train(city: str) -> str:
    """Find a train.

    Args:
        city: Where to go.
    """
    notify(f"asking the railway about {city}")
    return f"the night train to {city}"


@policies.limit(calls=1)
@function_tool
def book(train: str, runtime: ToolContext[Desk]) -> str:
    """Book a seat."""
    runtime.context.booked.append(train)
    return f"seat 7 for {runtime.context.customer}"


model = ScriptedModel(
    [
        tool_call("find_train", city="Rome"),
        "There is a night train.",
        tool_call("book", train="night train"),
        "You have seat 7.",
    ]
)
agent = Agent[Desk](
    "desk",
    instructions="You book trains.",
    tools=[find_train, book],
    model=model,
)


def main() -> None:
    """Answer two messages of one conversation."""
    desk = Desk("ada")
    session = SQLiteSession("ada")
    for text in ("How do I get to Rome?", "Book it."):
        with listen() as events:
            result = Runner.run_sync(agent, text, context=desk, session=session)
        for event in events:
            if isinstance(event, NotifyStreamEvent):
                print("progress:", event.data)
        print(result.final_output, len(result.to_input_list()))
    print(desk.booked)


if __name__ == "__main__":
    main()
