"""Third-party clients of our server, over stdio and over HTTP, in both eras.

The server is `served.py`; the programs of the clients are in the folder `clients`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from agents import Agent as ForeignAgent, RunConfig as ForeignRunConfig, Runner as ForeignRunner
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from agents.testing import (
    ModelStep,
    ScriptedModel as ForeignScriptedModel,
    assistant_message,
    function_call,
)

from tests.mcp.peers import (
    BOUND,
    FASTMCP,
    INSPECTOR,
    LINE_1,
    NODE,
    ROOT,
    TYPESCRIPT,
    TYPESCRIPT_2,
    has_ended,
    listening,
    node_environment,
    own_server_command,
)
from tests.mcp.served import PNG
from tests.waiting import until

pytestmark = [pytest.mark.external, pytest.mark.timeout(180)]

Answer = dict[str, Any]
CLIENTS = Path(__file__).with_name("clients")
TOOLS = ["add", "fail", "mixed", "order", "picture", "recite", "shelf", "wait"]


@dataclass(frozen=True, slots=True)
class Client:
    """A client of somebody else.

    Attributes:
        command: How it is started.
        era: Whether it speaks with `initialize` (`sessions`) or without (`modern`).
        marks: What a test with it needs.
        cancels: Whether it tells the server of a call that it has given up.
    """

    command: tuple[str, ...]
    era: str
    marks: tuple[pytest.MarkDecorator, ...] = ()
    cancels: bool = True


def _program(name: str) -> tuple[str, ...]:
    return ("-m", f"tests.mcp.clients.{name}")


BY_NAME = {
    "typescript": Client(
        (str(NODE), str(CLIENTS / "typescript.mjs"), *TYPESCRIPT.command[1:]),
        "sessions",
        (TYPESCRIPT.needed,),
    ),
    "typescript-2": Client(
        (str(NODE), str(CLIENTS / "typescript.mjs"), *TYPESCRIPT_2.command[1:]),
        "modern",
        (TYPESCRIPT_2.needed,),
    ),
    "sdk-1": Client(
        (*LINE_1.command, *_program("session")),
        "sessions",
        (LINE_1.needed,),
        cancels=False,  # SDK version 1 sends no cancellation for a cancelled task
    ),
    "sdk-2-sessions": Client((sys.executable, *_program("session")), "sessions"),
    "sdk-2": Client((sys.executable, *_program("modern")), "modern"),
    "fastmcp": Client((*FASTMCP.command, *_program("fastmcp_client")), "modern", (FASTMCP.needed,)),
}


@dataclass(frozen=True, slots=True)
class Served:
    """Our server in a process of its own, over each transport.

    Attributes:
        http: Its address without sessions.
        sessions: Its address with sessions.
    """

    http: str
    sessions: str

    def target(self, transport: str) -> str:
        """Return the target for a client: an address, or the command as JSON."""
        return (
            json.dumps(own_server_command("stdio"))
            if transport == "stdio"
            else getattr(self, transport)
        )


@pytest.fixture(scope="module")
def served() -> Generator[Served]:
    """Start our servers on separate addresses."""
    with (
        listening(own_server_command("http")) as http,
        listening(own_server_command("sessions")) as sessions,
    ):
        yield Served(http.wait_for("http://").strip(), sessions.wait_for("http://").strip())


def run(client: Client, target: str, steps: list[dict[str, Any]]) -> Any:
    """Run a client and return its report."""
    ended = subprocess.run(  # noqa: S603 - our own words
        [*client.command, target, json.dumps(steps)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=2 * BOUND,
        check=False,
    )
    assert ended.stdout.startswith("{"), ended.stderr[-2_000:]
    return json.loads(ended.stdout.splitlines()[0])


def each(*transports: str) -> list[Any]:
    """Return each client with each transport."""
    return [
        pytest.param((name, transport), marks=client.marks, id=f"{name}-{transport}")
        for name, client in BY_NAME.items()
        for transport in transports
    ]


def each_that_cancels() -> list[Any]:
    """Return each client that reports cancelled calls, with the transports for it.

    Without sessions a message cannot refer to an earlier call; the later era closes the stream of
    the call instead.
    """
    return [
        pytest.param((name, transport), marks=client.marks, id=f"{name}-{transport}")
        for name, client in BY_NAME.items()
        if client.cancels
        for transport in ("stdio", "sessions", *(["http"] if client.era == "modern" else []))
    ]


# --- the results of each client


def the_steps(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the calls that each client makes, by topic."""
    orders = [
        {"tea": "grün 👋", "grams": 30, "shelf": {"name": "obere", "boxes": 1}},
        {"tea": "black", "grams": 12},
    ]
    return {
        "number": {"name": "add", "arguments": {"a": 2, "b": 3}},
        "default": {"name": "add", "arguments": {"a": 2}},
        "record": {"name": "shelf", "arguments": {"name": "tea"}},
        "nested": {"name": "order", "arguments": {"orders": orders, "note": "schnell"}},
        "progress": {
            "name": "recite",
            "arguments": {"lines": 3, "folder": str(folder)},
            "heard": str(folder),
        },
        "image": {"name": "picture"},
        "told": {"name": "fail", "arguments": {"how": "told"}},
        "crash": {"name": "fail", "arguments": {"how": "crash"}},
        "invalid": {"name": "add", "arguments": {"a": "two", "c": 1}},
        "unknown": {"name": "ad"},
        "after": {"name": "add", "arguments": {"a": 20, "b": 22}},
        "mixed": {"name": "mixed"},
    }


@dataclass(frozen=True, slots=True)
class Report:
    """What one client tells of our server.

    Attributes:
        client: The client.
        version: What it says of the version.
        tools: The list of tools.
        answers: The answers, by what the calls are about.
    """

    client: Client
    version: str
    tools: dict[str, Any]
    answers: dict[str, Answer]

    def text(self, about: str) -> str:
        """Return the text of a result."""
        (block,) = self.answers[about]["result"]["content"]
        assert block["type"] == "text"
        return block["text"]

    def structured(self, about: str) -> Any:
        """Return the structured value of a result, without the wrapper of the earlier era."""
        structured_content = self.answers[about]["result"]["structuredContent"]
        if self.client.era == "modern":
            return structured_content
        assert isinstance(structured_content, dict)
        return (
            structured_content["result"]
            if set(structured_content) == {"result"}
            else structured_content
        )

    def failed(self, about: str) -> str:
        """Return the text of a result that is an error."""
        assert self.answers[about]["result"]["isError"] is True
        return self.text(about)


@pytest.fixture(scope="module", params=each("stdio", "http"))
def report(
    request: pytest.FixtureRequest, served: Served, tmp_path_factory: pytest.TempPathFactory
) -> Report:
    """Run all calls of each client, once over each transport."""
    name, transport = request.param
    client, steps = BY_NAME[name], the_steps(tmp_path_factory.mktemp("heard"))
    told = run(client, served.target(transport), list(steps.values()))
    answers = dict(zip(steps, told["calls"], strict=True))
    return Report(client, told["version"], {one["name"]: one for one in told["tools"]}, answers)


def test_each_client_lists_the_tools(report: Report) -> None:
    assert list(report.tools) == TOOLS
    add = report.tools["add"]
    assert add["description"] == "Add two numbers."
    assert add["inputSchema"] == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first."},
            "b": {"type": "integer", "description": "The second.", "minimum": 0, "default": 1},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    eras = {"sessions": "2025-11-25", "modern": "2026-07-28"}
    assert report.version in {eras[report.client.era], ""}  # not all of them report it


def test_output_schemas_are_objects_only_in_the_earlier_era(report: Report) -> None:
    """In the earlier era, clients reject a list with any other schema completely."""
    promised = report.tools["add"]["outputSchema"]
    if report.client.era == "modern":
        assert promised == {"type": "integer"}
    else:
        assert promised["type"] == "object"
        assert promised["properties"]["result"] == {"type": "integer"}
    assert report.tools["shelf"]["outputSchema"]["required"] == ["name", "boxes"]


def test_each_client_gets_results_as_text_and_as_structured_content(report: Report) -> None:
    assert report.text("number") == "5"
    assert report.structured("number") == 5
    assert report.structured("default") == 3
    assert report.structured("record") == {"name": "tea", "boxes": 3}
    assert json.loads(report.text("record")) == {"name": "tea", "boxes": 3}


def test_nested_arguments_arrive_and_prints_of_a_tool_corrupt_nothing(
    report: Report,
) -> None:
    assert report.text("nested") == "42 g for obere (schnell)"
    assert report.structured("after") == 42


def test_each_client_gets_progress_while_the_tool_is_running(report: Report) -> None:
    """Each report waits for the receipt of the previous one, so none is delayed until the result."""
    answer = report.answers["progress"]
    assert report.text("progress") == "3 lines"
    told = [[total, message] for _, total, message in answer["progress"]]
    assert told == [[None, "a poem"], [3, "line-1"], [3, "line-2"], [3, "line-3"]]


def test_progress_increases_with_each_report(report: Report) -> None:
    """The protocol requires it."""
    numbers = [number for number, _, _ in report.answers["progress"]["progress"]]
    assert numbers == sorted(set(numbers))


def test_each_client_gets_an_image(report: Report) -> None:
    (image,) = report.answers["image"]["result"]["content"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]) == PNG


def test_each_client_gets_a_file(report: Report) -> None:
    """Strict clients reject a result that lacks its structured content."""
    text, file = report.answers["mixed"]["result"]["content"]
    assert text == {"type": "text", "text": "a file:"}
    assert file["resource"]["mimeType"] == "application/x-tea"
    assert base64.b64decode(file["resource"]["blob"]) == b"leaves"


def test_tools_that_return_content_have_no_output_schema(report: Report) -> None:
    """Else the bytes of an image are sent twice, and described to a model that never sees them."""
    assert "outputSchema" not in report.tools["mixed"]
    assert "outputSchema" not in report.tools["picture"]
    assert "structuredContent" not in report.answers["image"]["result"]


def test_each_client_gets_errors_without_secrets(report: Report) -> None:
    assert report.failed("told") == "The kettle is empty."
    assert "RuntimeError" in report.failed("crash")
    assert "hunter2" not in json.dumps(report.answers)


def test_each_client_gets_an_error_that_explains_the_arguments(report: Report) -> None:
    text = report.failed("invalid")
    assert text.startswith("Invalid arguments for tool 'add':")
    assert "- a: expected an integer" in text
    assert "- c: unknown" in text


def test_an_unknown_tool_is_a_protocol_error(report: Report) -> None:
    assert "Unknown tool: 'ad'. Did you mean 'add'?" in report.answers["unknown"]["error"]


# --- cancelled calls


@pytest.mark.parametrize("client", each_that_cancels())
def test_a_call_cancelled_by_a_client_is_cancelled_on_the_server(
    client: tuple[str, str], served: Served, tmp_path: Path
) -> None:
    (name, transport), folder = client, str(tmp_path)
    steps = [
        {"name": "wait", "arguments": {"folder": folder}, "cancel": folder},
        {"name": "add", "arguments": {"a": 1}},
    ]
    cancelled, after = run(BY_NAME[name], served.target(transport), steps)["calls"]
    assert cancelled == {"cancelled": True}
    assert after["result"]["content"][0]["text"] == "2"


@pytest.mark.parametrize("client", each("stdio", "http"))
def test_a_call_ends_with_the_client_that_made_it(
    client: tuple[str, str], served: Served, tmp_path: Path
) -> None:
    """The result has no receiver any more; with a session a client can come back for it."""
    (name, transport), folder = client, str(tmp_path)
    steps = [{"name": "wait", "arguments": {"folder": folder}, "leave": folder}]
    run(BY_NAME[name], served.target(transport), steps)
    until((tmp_path / "cancelled").exists)
    if transport == "stdio":
        until(partial(has_ended, int((tmp_path / "pid").read_text())))


# --- the inspector's command line


@cache
def _inspect(target: tuple[str, ...], *options: str) -> subprocess.CompletedProcess[str]:
    command = [*INSPECTOR.command, "--cli", *target, *options]
    return subprocess.run(  # noqa: S603 - our own words
        command,
        env=node_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=BOUND,
        check=False,
    )


@pytest.fixture(params=["stdio", "http", "sessions"])
def inspected(request: pytest.FixtureRequest, served: Served) -> tuple[str, ...]:
    """Return the arguments of the inspector for our server."""
    return (
        tuple(own_server_command("stdio"))
        if request.param == "stdio"
        else (served.target(request.param),)
    )


@INSPECTOR.needed
def test_the_inspector_lists_the_tools(inspected: tuple[str, ...]) -> None:
    shown = _inspect(inspected, "--method", "tools/list")
    assert shown.returncode == 0, shown.stderr
    tools = {tool["name"]: tool for tool in json.loads(shown.stdout)["tools"]}
    assert list(tools) == TOOLS
    assert tools["shelf"]["inputSchema"]["properties"]["name"]["enum"] == ["tea", "cake"]


@INSPECTOR.needed
def test_the_inspector_calls_the_tools(inspected: tuple[str, ...]) -> None:
    call = ("--method", "tools/call", "--tool-name", "add")
    shown = _inspect(inspected, *call, "--tool-arg", "a=2", "--tool-arg", "b=3")
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)
    assert result["content"] == [{"type": "text", "text": "5"}]
    assert result["structuredContent"] == {"result": 5}


@INSPECTOR.needed
def test_the_inspector_shows_errors(inspected: tuple[str, ...]) -> None:
    call = ("--method", "tools/call", "--tool-name", "fail")
    result = json.loads(_inspect(inspected, *call, "--tool-arg", "how=told").stdout)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "The kettle is empty."}]


# --- the OpenAI Agents SDK


@pytest.fixture(params=["stdio", "http", "sessions"])
def foreign(request: pytest.FixtureRequest, served: Served) -> Any:
    """Yield our server as an MCP server object of that SDK."""
    if request.param == "stdio":
        command, *args = own_server_command("stdio")
        return MCPServerStdio(
            {"command": command, "args": args}, client_session_timeout_seconds=BOUND
        )
    url = served.target(request.param)
    return MCPServerStreamableHttp({"url": url}, client_session_timeout_seconds=BOUND)


async def test_openai_agents_lists_and_calls_the_tools(foreign: Any) -> None:
    async with asyncio.timeout(BOUND), foreign:
        assert [tool.name for tool in await foreign.list_tools()] == TOOLS
        five = await foreign.call_tool("add", {"a": 2, "b": 3})
        assert five.content[0].text == "5"
        failed = await foreign.call_tool("fail", {"how": "told"})
        assert failed.model_dump(by_alias=True)["isError"] is True
        image = await foreign.call_tool("picture", {})
        assert base64.b64decode(image.content[0].data) == PNG


async def test_an_agent_of_openai_agents_works_with_the_tools(foreign: Any) -> None:
    orders = [{"tea": "green", "grams": 42, "shelf": None}]
    model = ForeignScriptedModel(
        [
            ModelStep(
                output=[
                    function_call("order", {"orders": orders, "note": None}, call_id="c1"),
                    function_call("add", {"a": "two"}, call_id="c2"),
                ]
            ),
            ModelStep(output=[assistant_message("Ordered.")]),
        ]
    )
    async with asyncio.timeout(BOUND), foreign:
        agent = ForeignAgent(name="Buyer", mcp_servers=[foreign], model=model)
        config = ForeignRunConfig(tracing_disabled=True)
        result = await ForeignRunner.run(agent, "Buy tea.", run_config=config)
    assert result.final_output == "Ordered."
    items: list[Any] = [one for one in result.new_items if one.type == "tool_call_output_item"]
    ordered, refused = (item.output["text"] for item in items)
    assert ordered == "42 g for nobody (None)"
    assert refused.startswith("Invalid arguments for tool 'add':")
