"""A support desk for a web shop."""

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any, Literal

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    ModelSettings,
    RunContextWrapper,
    RunHooks,
    Runner,
    SQLiteSession,
    function_tool,
    handoff,
    input_guardrail,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel, Field


class Line(BaseModel):
    """A line of an order."""

    sku: str = Field(pattern=r"^[A-Z]{2}\d{3}$")
    quantity: int = Field(ge=1, le=10)


class Order(BaseModel):
    """An order of the customer."""

    id: str
    lines: list[Line]
    status: Literal["open", "sent", "refunded"] = "open"


class Reason(BaseModel):
    """Why the desk hands the customer over."""

    order_id: str
    reason: str


@dataclass
class Shop:
    """The state of the application."""

    customer: str
    orders: dict[str, Order] = field(default_factory=dict[str, Order])
    log: list[str] = field(default_factory=list[str])


Context = RunContextWrapper[Shop]


@function_tool
def list_orders(ctx: Context) -> str:
    """List the customer's orders."""
    return ", ".join(f"{order.id}: {order.status}" for order in ctx.context.orders.values())


@function_tool
async def place_order(ctx: Context, lines: list[Line], note: str | None = None) -> str:
    """Place an order.

    Args:
        ctx: The context.
        lines: What to order.
        note: A note for the packer.
    """
    order = Order(id=f"o{len(ctx.context.orders) + 1}", lines=lines)
    ctx.context.orders[order.id] = order
    return f"order {order.id} with {sum(line.quantity for line in lines)} items"


def explain(ctx: RunContextWrapper[Any], error: Exception) -> str:
    """Explain a failure to the model."""
    return f"The parcel service failed: {error}. Apologise to the customer."


@function_tool(failure_error_function=explain)
def track_parcel(ctx: Context, order_id: str) -> str:
    """Track a parcel."""
    if ctx.context.orders[order_id].status == "open":
        raise RuntimeError("not sent yet")
    return "in the van"


@function_tool(name_override="search_faq", description_override="Search the FAQ.")
async def faq(query: str, top: int = 3) -> str:
    await asyncio.sleep(0)
    return ", ".join(f"{query} #{number}" for number in range(top))


@function_tool(is_enabled=lambda ctx, agent: ctx.context.customer == "vip")
def gift_voucher(ctx: Context, euros: int) -> str:
    """Give a voucher."""
    return f"voucher over {euros} euros"


@function_tool
def refund(ctx: Context, order_id: str, euros: float) -> str:
    """Refund an order."""
    ctx.context.orders[order_id].status = "refunded"
    return f"refunded {euros:g} euros"


@input_guardrail(run_in_parallel=False)
async def no_swearing(
    ctx: Context, agent: Agent[Shop], input: str | list[Any]
) -> GuardrailFunctionOutput:
    """Refuse input with a swear word."""
    return GuardrailFunctionOutput(output_info="language", tripwire_triggered="damn" in str(input))


def on_refund(ctx: Context, data: Reason) -> None:
    """Note the reason of a handoff."""
    ctx.context.log.append(f"{data.order_id}: {data.reason}")


class Log(RunHooks[Shop]):
    """Logs the steps of a run."""

    async def on_tool_start(self, context: Context, agent: Any, tool: Any) -> None:
        """Log the start of a call."""
        context.context.log.append(f"{agent.name} calls {tool.name}")

    async def on_handoff(self, context: Context, from_agent: Any, to_agent: Any) -> None:
        """Log a change of the agent."""
        context.context.log.append(f"{from_agent.name} -> {to_agent.name}")


lines = [{"sku": "AB123", "quantity": 2}]
model = ScriptedModel(
    [
        [
            function_call("place_order", {"lines": lines, "note": None}, call_id="c1"),
            function_call("search_faq", {"query": "returns", "top": 2}, call_id="c2"),
        ],
        [function_call("track_parcel", {"order_id": "o1"}, call_id="c3")],
        [assistant_message("Your order is placed.")],
        [function_call("transfer_to_refunds", {"order_id": "o1", "reason": "late"}, call_id="c4")],
        [function_call("refund", {"order_id": "o1", "euros": 20.0}, call_id="c5")],
        [function_call("list_orders", {}, call_id="c6")],
        [assistant_message("You get 20 euros back.")],
    ]
)
refunds = Agent[Shop](
    name="Refunds",
    instructions="You refund orders.",
    handoff_description="Refunds money.",
    tools=[refund, list_orders],
    model=model,
)
desk = Agent[Shop](
    name="Desk",
    instructions=lambda ctx, agent: f"You are the desk for {ctx.context.customer}.",
    tools=[list_orders, place_order, track_parcel, faq, gift_voucher],
    handoffs=[handoff(refunds, on_handoff=on_refund, input_type=Reason)],
    input_guardrails=[no_swearing],
    model_settings=ModelSettings(temperature=0.2),
    model=model,
)


async def answer(text: str, shop: Shop, session: SQLiteSession) -> None:
    """Answer one message of the customer."""
    run: Any = Runner.run_streamed(
        desk, text, context=shop, session=session, hooks=Log(), max_turns=6
    )
    async for event in run.stream_events():
        if event.type == "raw_response_event":
            if isinstance(event.data, ResponseTextDeltaEvent):
                print(event.data.delta, end="")
        elif event.type == "agent_updated_stream_event":
            shop.log.append(f"{event.new_agent.name} speaks")
        elif event.type == "run_item_stream_event":
            item = event.item
            if item.type == "tool_call_output_item":
                print("output:", item.output)
    print()
    print("final:", run.final_output, "by", run.last_agent.name)
    print("requests:", run.context_wrapper.usage.requests)


async def main(path: str) -> None:
    """Answer three messages in one session."""
    shop = Shop("ada")
    session = SQLiteSession("ada", path)
    for text in ("Order two AB123 and track it", "Refund me", "damn you"):
        try:
            await answer(text, shop, session)
        except InputGuardrailTripwireTriggered as error:
            print("refused:", error.guardrail_result.guardrail.get_name())
            await session.pop_item()
    print([item.get("role") for item in await session.get_items(limit=1)])
    print(len(await session.get_items()), "items", *shop.log, sep="\n")


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main(sys.argv[1]))
