"""Eight tasks with much data: their tools, the calls that solve them, and a program that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from agents_tools import FunctionTool, function_tool

__all__ = ["TASKS", "Task"]

Calls: TypeAlias = list[list[tuple[str, dict[str, Any]]]]
"""The calls of each request, with their tools and arguments."""

_REGIONS = ("north", "south", "east", "west")
_LEVELS = ("info", "info", "warning", "error")


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        name: What is to be done.
        tools: The tools.
        calls: The calls with the most parallel ones in each request.
        program: A program that solves the task.
        result: What the program returns.
    """

    name: str
    tools: list[FunctionTool[..., Any]]
    calls: Calls
    program: str
    result: Any


def _order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": number * 7 % 200,
        "region": _REGIONS[number * 3 % 4],
        "total": number * 37 % 1_000 / 10,
        "status": "open" if number % 3 else "paid",
    }


@function_tool
def list_orders() -> list[dict[str, Any]]:
    """List all orders with id, customer, region, total and status."""
    return [_order(number) for number in range(1_000)]


@function_tool
def list_customers() -> list[dict[str, Any]]:
    """List all customers with id, name and city."""
    return [
        {"id": number, "name": f"Customer {number}", "city": f"City {number % 17}"}
        for number in range(200)
    ]


@function_tool
def get_item(item_id: int) -> dict[str, Any]:
    """Return an item of the store with id, name, stock and price."""
    return {
        "id": item_id,
        "name": f"Item {item_id}",
        "stock": item_id * 13 % 40,
        "price": item_id * 11 % 90 + 0.5,
        "description": f"Item {item_id} is one of the items of the store, and is sold by the piece.",
    }


@function_tool
def fetch_page(cursor: int = 0) -> dict[str, Any]:
    """Return a page of 50 members with name and points, and the next cursor or null."""
    members = [
        {"name": f"member {cursor + one}", "points": (cursor + one) * 29 % 500} for one in range(50)
    ]
    following = cursor + 50
    return {"members": members, "next": following if following < 1_000 else None}


@function_tool
def read_log(service: str) -> str:
    """Return the log of a service, one line per entry: time, level, message."""
    number = int(service.removeprefix("service-"))
    return "\n".join(
        f"12:{line:02} {_LEVELS[(line * number) % 4]} request {line} took {line * number % 97} ms"
        for line in range(60)
    )


@function_tool
def get_ticket(ticket_id: int) -> dict[str, Any]:
    """Return a ticket with id, age in days, votes and its text."""
    return {
        "id": ticket_id,
        "age": ticket_id * 5 % 61,
        "votes": ticket_id * 3 % 19,
        "text": f"The button number {ticket_id} does not do what its label says when it is pressed.",
    }


@function_tool
def set_priority(ticket_id: int, priority: str) -> str:
    """Set the priority of a ticket."""
    return f"ticket {ticket_id} is {priority}"


@function_tool
def list_files() -> list[dict[str, Any]]:
    """List the files with path and size."""
    return [{"path": f"docs/page-{one}.md", "size": one * 17 % 90} for one in range(120)]


@function_tool
def read_file(path: str) -> str:
    """Return the content of a file."""
    number = int(path.removeprefix("docs/page-").removesuffix(".md"))
    link = (number * 7) % 130
    return (
        f"# Page {number}\n\n"
        + "Some text about the topic of the page. " * 20
        + (f"\n\nSee [the other page](page-{link}.md).")
    )


_ORDERS = [_order(number) for number in range(1_000)]
_urgent = [
    one
    for one in range(40)
    if one * 5 % 61 > 30 and one * 3 % 19 > 5  # as in `get_ticket`
]


def _one_each(name: str, arguments: list[dict[str, Any]]) -> Calls:
    return [[(name, one) for one in arguments]]


def _errors(service: int) -> int:
    return sum(_LEVELS[(line * service) % 4] == "error" for line in range(60))


def _by_region() -> dict[str, float]:
    totals: dict[str, float] = {}
    for order in _ORDERS:
        totals[order["region"]] = totals.get(order["region"], 0.0) + order["total"]
    return {region: round(total, 1) for region, total in sorted(totals.items())}


def _best_cities() -> dict[str, float]:
    totals: dict[str, float] = {}
    for order in _ORDERS:
        city = f"City {order['customer'] % 17}"
        totals[city] = totals.get(city, 0.0) + order["total"]
    best = sorted(totals.items(), key=lambda one: -one[1])[:3]
    return {city: round(total, 1) for city, total in best}


TASKS: list[Task] = [
    Task(
        name="filter 1,000 rows",
        tools=[list_orders],
        calls=[[("list_orders", {})]],
        program="""\
orders = await list_orders()
[order["id"] for order in orders if order["status"] == "open" and order["total"] > 99]""",
        result=[
            order["id"] for order in _ORDERS if order["status"] == "open" and order["total"] > 99
        ],
    ),
    Task(
        name="join two lists",
        tools=[list_orders, list_customers],
        calls=[[("list_orders", {}), ("list_customers", {})]],
        program="""\
import asyncio
orders, customers = await asyncio.gather(list_orders(), list_customers())
cities = {customer["id"]: customer["city"] for customer in customers}
totals = {}
for order in orders:
    city = cities[order["customer"]]
    totals[city] = totals.get(city, 0) + order["total"]
best = sorted(totals, key=lambda city: -totals[city])[:3]
{city: round(totals[city], 1) for city in best}""",
        result=_best_cities(),
    ),
    Task(
        name="group 1,000 rows",
        tools=[list_orders],
        calls=[[("list_orders", {})]],
        program="""\
totals = {}
for order in await list_orders():
    totals[order["region"]] = totals.get(order["region"], 0) + order["total"]
{region: round(totals[region], 1) for region in sorted(totals)}""",
        result=_by_region(),
    ),
    Task(
        name="loop over 50 items",
        tools=[get_item],
        calls=_one_each("get_item", [{"item_id": one} for one in range(50)]),
        program="""\
import asyncio
items = await asyncio.gather(*[get_item(number) for number in range(50)])
[item["name"] for item in items if item["stock"] < 3]""",
        result=[f"Item {one}" for one in range(50) if one * 13 % 40 < 3],
    ),
    Task(
        name="read 20 pages",
        tools=[fetch_page],
        calls=[[("fetch_page", {"cursor": one * 50})] for one in range(20)],
        program="""\
best, cursor = [], 0
while cursor is not None:
    page = await fetch_page(cursor)
    best += [member["name"] for member in page["members"] if member["points"] > 495]
    cursor = page["next"]
best""",
        result=[f"member {one}" for one in range(1_000) if one * 29 % 500 > 495],
    ),
    Task(
        name="count errors in 12 logs",
        tools=[read_log],
        calls=_one_each("read_log", [{"service": f"service-{one}"} for one in range(1, 13)]),
        program="""\
import asyncio
names = [f"service-{number}" for number in range(1, 13)]
logs = await asyncio.gather(*[read_log(name) for name in names])
{name: log.count(" error ") for name, log in zip(names, logs) if " error " in log}""",
        result={f"service-{one}": _errors(one) for one in range(1, 13) if _errors(one)},
    ),
    Task(
        name="update some of 40 tickets",
        tools=[get_ticket, set_priority],
        calls=[
            *_one_each("get_ticket", [{"ticket_id": one} for one in range(40)]),
            *_one_each("set_priority", [{"ticket_id": one, "priority": "high"} for one in _urgent]),
        ],
        program="""\
import asyncio
tickets = await asyncio.gather(*[get_ticket(number) for number in range(40)])
urgent = [t["id"] for t in tickets if t["age"] > 30 and t["votes"] > 5]
await asyncio.gather(*[set_priority(number, "high") for number in urgent])
urgent""",
        result=_urgent,
    ),
    Task(
        name="check links of 40 files",
        tools=[list_files, read_file],
        calls=[
            [("list_files", {})],
            *_one_each("read_file", [{"path": f"docs/page-{one}.md"} for one in range(40)]),
        ],
        program="""\
import asyncio, re
paths = [file["path"] for file in await list_files()]
texts = await asyncio.gather(*[read_file(path) for path in paths[:40]])
links = {path: re.findall(r"\\((page-\\d+\\.md)\\)", text) for path, text in zip(paths, texts)}
[path for path, found in links.items() if any(f"docs/{link}" not in paths for link in found)]""",
        result=[f"docs/page-{one}.md" for one in range(40) if one * 7 % 130 >= 120],
    ),
]
"""Eight tasks."""
