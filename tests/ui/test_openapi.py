"""The OpenAPI document of `sse.app`, compared with the requests and responses of the app."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
import pytest

from agents_tools import Agent, function_tool
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import sse
from tests.ui.web import ask

TOKEN = "a-token-for-these-tests"  # noqa: S105 - opens nothing


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@function_tool
def hello() -> str:
    """Greet."""
    return "Hello."


@needs_approval
@function_tool
def drop(table: str) -> str:
    """Drop a table."""
    return f"dropped {table}"


class Document:
    """The document of an app."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def operations(self) -> set[tuple[str, str]]:
        """Return the methods and paths."""
        paths = self.document["paths"].items()
        return {
            (method.upper(), path)
            for path, item in paths
            for method in item
            if method != "parameters"
        }

    def response(self, method: str, path: str, status: int = 200) -> dict[str, Any]:
        """Return the schema of a response."""
        responses = self.document["paths"][path][method]["responses"]
        content = responses[str(status)]["content"]
        return content["application/json"]["schema"]

    def body(self, path: str) -> dict[str, Any]:
        """Return the schema of the body of a POST."""
        return self.document["paths"][path]["post"]["requestBody"]["content"]["application/json"][
            "schema"
        ]

    def faults(self, schema: dict[str, Any], value: Any) -> list[str]:
        """Return what is wrong with a value."""
        root = {**schema, "components": self.document["components"]}
        return [one.message for one in jsonschema_rs.validator_for(root).iter_errors(value)]


async def document_of(app: Any, **headers: str) -> Document:
    """Request the document."""
    answer = await ask(app, "GET", "/openapi.json", headers=headers)
    assert answer.status == 200
    assert answer.json["openapi"] == "3.1.0"
    return Document(answer.json)


def agent_app() -> Any:
    script = [[tool_call("drop", table="t", call_id="c1")], "Done.", "Again."]
    return sse.app(Agent("helper", tools=[drop], model=ScriptedModel(script)))


async def test_each_route_is_described() -> None:
    app = sse.app([add])
    described = (await document_of(app)).operations()
    for method, path in described:
        answer = await ask(
            app, method, re.sub("{.*?}", "x", path), {} if method == "POST" else None
        )
        assert "Routes:" not in answer.text, (method, path)
    named = (await ask(app, "GET", "/nothing")).json["error"]["message"]
    routes = re.findall(r"\b(?:GET|POST|DELETE) (/[\w/{}]*)(?=[,.] |\.$)", named)  # and files
    assert len(described) == len(routes), named
    await app.aclose()


async def test_the_responses_match_their_schemas() -> None:
    """They are those of an agent with a call that waits."""
    app = agent_app()
    known = await document_of(app)
    started = await ask(app, "POST", "/runs", {"input": "Go."})
    events = list(sse.decode(started.text))
    event = {"$ref": "#/components/schemas/Event"}
    assert [known.faults(event, one.to_dict()) for one in events] == [[]] * len(events)
    assert known.faults(event, {"type": "no_event"}) != []

    (run,) = (await ask(app, "GET", "/runs")).json["runs"]
    place = f"/runs/{run['run_id']}"
    one = (await ask(app, "GET", place)).json
    assert one["approvals"][0]["call_id"] == "c1"
    checks = [
        ("get", "/", (await ask(app, "GET", "/")).json),
        ("get", "/tools", (await ask(app, "GET", "/tools")).json),
        ("get", "/runs", (await ask(app, "GET", "/runs")).json),
        ("get", "/runs/{id}", one),
    ]
    decision = {"decisions": [{"call_id": "c1", "approve": True, "arguments": {"table": "u"}}]}
    assert known.faults(known.body("/runs/{id}/approvals"), decision) == []
    decided = await ask(app, "POST", f"{place}/approvals", decision)
    checks.append(("post", "/runs/{id}/approvals", decided.json))
    cancelled = await ask(app, "POST", f"{place}/cancel", {})
    checks.append(("post", "/runs/{id}/cancel", cancelled.json))
    for method, path, value in checks:
        assert known.faults(known.response(method, path), value) == [], path
    later = await ask(app, "POST", "/runs", {"input": "x"}, headers={"prefer": "respond-async"})
    assert known.faults(known.response("post", "/runs", 202), later.json) == []
    missing = await ask(app, "GET", "/runs/none")
    assert known.faults({"$ref": "#/components/schemas/Error"}, missing.json) == []
    await app.aclose()


@pytest.mark.parametrize(
    ("body", "is_valid"),
    [
        ({"tool": "add", "arguments": {"a": 1}}, True),
        ({"tool": "add", "arguments": {"a": 1}, "run_id": "mine"}, True),
        ({"tool": "hello"}, True),
        ({"tool": "add"}, False),
        ({"tool": "add", "arguments": {"b": 1}}, False),
        ({"tool": "sub", "arguments": {"a": 1}}, False),
        ({"input": "Hi"}, False),
        ({"tool": "hello", "command": "sh"}, False),
    ],
)
async def test_the_body_of_a_call_has_the_schema_of_its_tool(
    body: dict[str, Any], is_valid: bool
) -> None:
    """What the schema refuses fails in the app, too, or as the call."""
    app = sse.app([add, hello])
    known = await document_of(app)
    assert (known.faults(known.body("/runs"), body) == []) is is_valid
    answer = await ask(app, "POST", "/runs", body)
    is_accepted = answer.status == 200 and '"status":"ok"' in answer.text
    assert is_accepted is is_valid
    await app.aclose()


async def test_the_token_is_described_and_required() -> None:
    app = sse.app([add], auth=TOKEN)
    assert (await ask(app, "GET", "/openapi.json")).status == 401
    known = await document_of(app, authorization=f"Bearer {TOKEN}")
    assert known.document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert known.document["security"] == [{"token": []}]
    await app.aclose()
