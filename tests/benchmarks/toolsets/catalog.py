"""Thousands of tools as big installations have them, and what models ask for."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

from agents_tools.tool import FunctionTool

__all__ = ["Query", "catalog", "queries"]

Query = tuple[str, str, str]
"""The kind of query, its text, and the name of the tool that it means."""

_VERBS = {
    "create": "Create a new {}",
    "get": "Retrieve one {} by its id",
    "list": "List each {} that matches a filter",
    "update": "Change the fields of a {}",
    "delete": "Remove a {} for good",
    "archive": "Move a {} out of sight",
    "export": "Write a {} to a file",
    "share": "Give other people access to a {}",
    "restore": "Bring back a {} from the backup",
    "audit": "Show who has changed a {}",
}
_NOUNS = [
    "issue",
    "pull_request",
    "repository",
    "branch",
    "commit",
    "release",
    "invoice",
    "payment",
    "refund",
    "customer",
    "ticket",
    "message",
    "channel",
    "thread",
    "file",
    "folder",
    "document",
    "spreadsheet",
    "deployment",
    "pod",
    "container",
    "cluster",
    "database",
    "table",
    "column",
    "metric",
    "alert",
    "dashboard",
    "contact",
    "calendar_event",
]
_SERVICES = [
    "github",
    "gitlab",
    "jira",
    "stripe",
    "zendesk",
    "slack",
    "teams",
    "drive",
    "sharepoint",
    "kubernetes",
    "docker",
    "postgres",
    "snowflake",
    "datadog",
    "grafana",
    "hubspot",
    "outlook",
    "notion",
    "linear",
    "asana",
    "trello",
    "zoom",
    "dropbox",
    "shopify",
    "salesforce",
    "mongo",
    "redis",
    "kafka",
    "jenkins",
    "vercel",
    "netlify",
    "sentry",
    "twilio",
]


async def _nothing(context: Any, args_json: str) -> str:
    del context
    return args_json


def catalog(number: int) -> list[FunctionTool[..., Any]]:
    """Make tools, the same ones each time.

    Args:
        number: How many; at most 10,230 of them are different.
    """
    made: list[FunctionTool[..., Any]] = []
    for service, noun, verb in product(_SERVICES, _NOUNS, _VERBS):
        words = noun.replace("_", " ")
        properties = {
            f"{noun}_id": {"type": "string", "description": f"The id of the {words}"},
            "fields": {"type": "object", "description": "What else is said"},
            "dry_run": {"type": "boolean", "default": False},
        }
        made.append(
            FunctionTool(
                name=f"{service}_{verb}_{noun}",
                description=f"{_VERBS[verb].format(words)} in {service.title()}.",
                params_json_schema={
                    "type": "object",
                    "properties": properties,
                    "required": [f"{noun}_id"],
                },
                on_invoke_tool=_nothing,
            )
        )
        if len(made) == number:
            break
    return made


def queries(tools: list[FunctionTool[..., Any]], number: int = 500) -> list[Query]:
    """Ask for tools in the ways that models do.

    Args:
        tools: The tools.
        number: How many queries of each kind.
    """
    chosen = random.Random(7)  # noqa: S311 - the same ones each time
    asked: list[Query] = []
    for tool in chosen.choices(tools, k=number):
        service, verb, noun = tool.name.split("_", 2)
        words = noun.replace("_", " ")
        asked += [
            ("name", tool.name, tool.name),
            ("camel case", f"{service}{verb.title()}{words.title().replace(' ', '')}", tool.name),
            ("words", f"{verb} a {words} in {service}", tool.name),
            ("sentence", f"I want to {verb} some {words}s with {service}, please", tool.name),
            ("misspelled words", f"{verb} {_slipped(words, chosen)} {service}", tool.name),
        ]
    return asked


def _slipped(word: str, chosen: random.Random) -> str:
    at = chosen.randrange(1, len(word) - 1)
    return word[:at] + word[at + 1 :]
