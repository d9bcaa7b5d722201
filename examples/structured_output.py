"""Get the answer as an object with `output_type`; a model that returns a wrong one is corrected.

Run it: python examples/structured_output.py. It prints the error for the model's first answer, then
the object.

A script replaces the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio
from datetime import date

from pydantic import BaseModel, Field

from agents_tools import Agent, Runner
from agents_tools.testing import ScriptedModel

MODEL = ScriptedModel(
    [
        '{"title": "Tea", "day": "next Friday", "guests": 0}',
        '{"title": "Tea", "day": "2027-03-05", "guests": 4}',
    ]
)


class Invitation(BaseModel):
    """An invitation to something."""

    title: str
    day: date
    guests: int = Field(gt=0)


host = Agent(
    name="Host",
    instructions="You read invitations out of letters.",
    output_type=Invitation,
    model=MODEL,
)


async def main() -> None:
    """Read a letter."""
    result = await Runner.run(host, "Would the four of you come for tea on Friday, 5 March 2027?")
    print(MODEL.requests[1].input[-1].to_dict()["content"])  # what the model was told
    print()
    invitation = result.final_output_as(Invitation)
    print(f"{invitation.title}, {invitation.day:%d %B %Y}, {invitation.guests} guests")


asyncio.run(main())
