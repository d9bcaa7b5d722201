"""Use methods as tools of their instance, and a context that the model never sees.

Run it: python examples/methods_and_context.py. It prints the contents of two baskets, the only
parameter in the schema for the model, and a greeting with the name from the context.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from agents_tools import RunContextWrapper, ToolContext, function_tool


@dataclass
class User:
    """The application's own object."""

    name: str


@dataclass
class Basket:
    """Holds what one customer has chosen."""

    items: list[str] = field(default_factory=list[str])

    @function_tool
    def add_item(self, item: str, count: int = 1) -> str:
        """Put an item into the basket.

        Args:
            item: The item.
            count: How many.
        """
        self.items += [item] * count
        return f"{len(self.items)} in the basket"


@function_tool
async def who_am_i(ctx: ToolContext[User], greeting: str = "You are") -> str:
    """Say who is asking.

    Args:
        ctx: The context; no part of the schema.
        greeting: How to begin.
    """
    ctx.notify(f"call {ctx.tool_call_id} of {ctx.tool_name}")
    return f"{greeting} {ctx.context.name}"


async def main() -> None:
    """Call the tools of two instances, and one that reads the context."""
    first, second = Basket(), Basket()
    print(await first.add_item.invoke(item="tea", count=2))
    print(await second.add_item.invoke(item="cake"))
    print(first.items, second.items)

    print(list(who_am_i.params_json_schema["properties"]))
    context = RunContextWrapper(User("Ada"))
    print(await who_am_i.invoke(context=context))


asyncio.run(main())
