"""Five tools of everyday size, and tools made for one test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, Union

from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

from agents_tools import FunctionTool, ToolAnnotations
from agents_tools.tool import function_tool


class Address(BaseModel):
    """A postal address."""

    street: str = Field(description="Street and number.")
    city: str
    postcode: Optional[str] = None
    country: str = Field(default="DE", min_length=2, max_length=2)


class Customer(BaseModel):
    """Who places the order."""

    name: str = Field(description="Full name.")
    email: Optional[str] = None
    address: Address


class OrderLine(TypedDict):
    """One line of an order."""

    sku: str
    quantity: int


@dataclass
class Window:
    """When it may be delivered."""

    start: str
    end: str


class CardPayment(BaseModel):
    """Payment by card."""

    method: Literal["card"]
    token: str = Field(description="Token from the payment form.")


class InvoicePayment(BaseModel):
    """Payment by invoice."""

    method: Literal["invoice"]
    days: int = Field(default=14, ge=7, le=60, description="Days until it is due.")


async def answer(_context: Any, _arguments: str) -> str:
    """Answer any call."""
    return "done"


def tool(
    name: str,
    schema: Mapping[str, Any],
    description: str = "Does something.",
    *,
    strict: bool = True,
    metadata: Mapping[str, Any] | None = None,
    annotations: ToolAnnotations | None = None,
    output: Mapping[str, Any] | None = None,
) -> FunctionTool[..., Any]:
    """Return a tool with the given schema."""
    return FunctionTool(
        name=name,
        description=description,
        params_json_schema=schema,
        on_invoke_tool=answer,
        strict_json_schema=strict,
        metadata=metadata,
        annotations=annotations,
        output_json_schema=output,
    )


def of_fields(
    name: str, description: str = "Does something.", **fields: Any
) -> FunctionTool[..., Any]:
    """Return a tool with the fields of a pydantic model, with the schema that pydantic creates."""
    made: dict[str, Any] = fields
    return tool(name, create_model(f"{name}_args", **made).model_json_schema(), description)


def set_volume(speaker: str, percent: int) -> str:
    """Set the volume of a speaker.

    Args:
        speaker: Name of the speaker.
        percent: Loudness, from 0 to 100.
    """
    return f"{speaker}: {percent}"


def book_room(
    title: str,
    organizer: str,
    start: str,
    minutes: Annotated[int, Field(ge=15, le=480)] = 30,
    seats: Annotated[int, Field(ge=1, le=200)] = 4,
    layout: Literal["table", "theatre", "classroom"] = "table",
    floor: Optional[int] = None,
    equipment: Optional[list[str]] = None,
) -> str:
    """Book a meeting room.

    Finds the smallest free room that fits and holds it for the organizer. Nothing is booked when
    no room fits.

    Args:
        title: What the meeting is called.
        organizer: E-mail address of the organizer.
        start: Start, in ISO 8601 with a timezone.
        minutes: How long the room is needed.
        seats: How many people take part.
        layout: How the seats stand.
        floor: Only rooms on this floor.
        equipment: What the room must have, such as `projector`.
    """
    return title


def place_order(
    customer: Customer,
    lines: list[OrderLine],
    payment: Union[CardPayment, InvoicePayment],
    reference: Union[int, str],
    window: Optional[Window] = None,
    billing: Optional[Address] = None,
) -> str:
    """Place an order for a customer.

    Prices and stock are checked first; the order is refused as a whole if one line cannot be
    delivered.

    Args:
        customer: Who orders.
        lines: What is ordered.
        payment: How it is paid.
        reference: The customer's own number or text.
        window: Any time if not given.
        billing: Where the invoice goes, if elsewhere.
    """
    return customer.name


def read_file(
    path: str,
    offset: Annotated[int, Field(ge=0)] = 0,
    limit: Annotated[int, Field(ge=1)] = 2000,
    encoding: Optional[str] = None,
) -> str:
    """Read a text file from the workspace.

    Long files are cut; read on with `offset`.

    Args:
        path: Path, relative to the workspace.
        offset: First line, counted from 0.
        limit: How many lines at most.
        encoding: Guessed if not given.
    """
    return path


def search(
    query: Annotated[str, Field(min_length=1)],
    top_k: Annotated[int, Field(ge=1, le=50)] = 5,
    sources: Optional[list[Literal["wiki", "tickets", "mail"]]] = None,
    since: Optional[str] = None,
    exact: bool = False,
) -> str:
    """Search the knowledge base.

    Matches by meaning. Gives the best passages first.

    Args:
        query: What to look for.
        top_k: How many passages.
        sources: Where to look; everywhere if not given.
        since: Nothing older than this date.
        exact: Match words instead of meaning.
    """
    return query


def five_tools() -> list[FunctionTool[..., Any]]:
    """Return the five tools whose definitions are measured."""
    return [function_tool(f) for f in (set_volume, book_room, place_order, read_file, search)]
