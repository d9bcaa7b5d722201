"""The tools that are timed: their sources, their arguments and a catalogue of a thousand.

The functions are made from text, so that each repetition can have fresh ones, models included:
what a framework keeps about a type is then never warm.
"""

from __future__ import annotations

import itertools
import json
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD = '''
import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, Union

from pydantic import BaseModel, Field
from typing_extensions import TypedDict


class Point(BaseModel):
    """A place on the map."""

    latitude: float = Field(ge=-90, le=90, description="Degrees north.")
    longitude: float = Field(ge=-180, le=180, description="Degrees east.")


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    city: str
    point: Optional[Point] = None


class Line(TypedDict):
    """One line of an order."""

    sku: str
    quantity: int


@dataclass
class Window:
    """When the goods may come."""

    start: str
    end: str
    weekend: bool = False


class Card(BaseModel):
    """Payment by card."""

    kind: Literal["card"]
    token: str


class Invoice(BaseModel):
    """Payment by invoice."""

    kind: Literal["invoice"]
    days: int = 30


class Item(BaseModel):
    """One row of a result."""

    id: int
    name: str
    price: float
    tags: list[str]


ITEMS = [Item(id=i, name=f"item {i}", price=i / 4, tags=["a", "b"]) for i in range(100)]
'''

SOURCES = {
    "simple": '''
async def simple_{0}(city: str, days: int) -> str:
    """Fetch the weather forecast number {0} for a city.

    Args:
        city: The city to fetch the forecast for.
        days: How many days ahead to look.
    """
    return city
''',
    "medium": '''
async def medium_{0}(
    query: str,
    kind: Literal["web", "news", "image"],
    language: Optional[str] = None,
    sites: Optional[list[str]] = None,
    count: Annotated[int, Field(ge=1, le=100)] = 10,
    page: Annotated[int, Field(ge=0)] = 0,
    minimum_score: Annotated[float, Field(ge=0, le=1)] = 0.5,
    safe: bool = True,
) -> str:
    """Search index number {0} and return the best matches.

    The matches are ranked by how well they fit the query.

    Args:
        query: What to search for, in plain words.
        kind: What kind of thing to search for.
        language: Two-letter code of the language to keep to.
        sites: Only look at these sites.
        count: How many matches to return.
        page: Which page of matches to return.
        minimum_score: Leave out matches below this score.
        safe: Whether to leave out explicit matches.

    Returns:
        The matches, one a line.
    """
    return query
''',
    "complex": '''
async def complex_{0}(
    customer: str,
    address: Address,
    lines: list[Line],
    window: Window,
    payment: Union[Card, Invoice],
    reference: Union[int, str],
    note: Optional[str] = None,
) -> str:
    """Place order number {0} for a customer.

    Args:
        customer: The name of the customer.
        address: Where the goods go.
        lines: What is ordered, one entry an article.
        window: When the goods may come.
        payment: How the order is paid.
        reference: The customer's own number for the order.
        note: Anything the driver should know.
    """
    return customer
''',
    "items": '''
async def items_{0}() -> list[Item]:
    """List a hundred items."""
    return ITEMS
''',
    "sleep": '''
async def sleep_{0}() -> str:
    """Wait for ten milliseconds."""
    await asyncio.sleep(0.01)  # the work that is timed; its limit sleeps as long
    return "done"
''',
    "threaded": '''
def threaded_{0}(city: str, days: int) -> str:
    """Fetch the weather forecast for a city, blocking.

    Args:
        city: The city to fetch the forecast for.
        days: How many days ahead to look.
    """
    return city
''',
}

ARGUMENTS = {
    "simple": json.dumps({"city": "Reykjavik", "days": 3}),
    "medium": json.dumps(
        {
            "query": "geothermal heat",
            "kind": "news",
            "language": "is",
            "sites": ["example.org", "example.com"],
            "count": 25,
            "page": 2,
            "minimum_score": 0.75,
            "safe": False,
        }
    ),
    "complex": json.dumps(
        {
            "customer": "Ada",
            "address": {
                "street": "1 Long Lane",
                "city": "Reykjavik",
                "point": {"latitude": 64.1, "longitude": -21.9},
            },
            "lines": [{"sku": "A-1", "quantity": 2}, {"sku": "B-2", "quantity": 1}],
            "window": {"start": "09:00", "end": "12:00", "weekend": True},
            "payment": {"kind": "invoice", "days": 14},
            "reference": "PO-77",
            "note": None,
        }
    ),
    "items": "{}",
    "sleep": "{}",
    "threaded": json.dumps({"city": "Reykjavik", "days": 3}),
}

_MIX = ("simple",) * 6 + ("medium",) * 3 + ("complex",)
_serial = itertools.count()


def functions(kinds: list[str]) -> list[Callable[..., Any]]:
    """Make fresh functions, one of each kind named, in a module of their own."""
    module = ModuleType(f"benchmark_tools_{next(_serial)}")
    sys.modules[module.__name__] = module  # where dataclasses and postponed annotations look
    source = _HEAD + "".join(SOURCES[kind].format(i) for i, kind in enumerate(kinds))
    code = compile(source, f"{module.__name__}.py", "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102 - the text above
    return [vars(module)[f"{kind}_{i}"] for i, kind in enumerate(kinds)]


def function(kind: str) -> Callable[..., Any]:
    """Make one fresh function."""
    return functions([kind])[0]


def catalogue(size: int) -> list[Callable[..., Any]]:
    """Make that many functions, six simple to three medium to one complex."""
    return functions([_MIX[i % len(_MIX)] for i in range(size)])
