"""Turn a function into a tool: the schema for the model, and three ways to call it.

Run it: python examples/first_tool.py. It prints the schema sent to the model, and three results.
"""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field

from agents_tools import function_tool


@function_tool
def split_bill(total: Annotated[float, Field(gt=0)], people: int = 2) -> str:
    """Split a bill evenly.

    Args:
        total: The amount on the bill.
        people: How many people share it.
    """
    return f"{total / people:.2f} each"


print(split_bill.name, "-", split_bill.description)
print(json.dumps(split_bill.params_json_schema, indent=2))

# With arguments as JSON text, as a model sends them, or by name.
print(split_bill.invoke_sync('{"total": 90, "people": 4}'))
print(split_bill.invoke_sync(total=90))

# The function itself is still there, for the rest of the program.
print(split_bill(90, people=3))
