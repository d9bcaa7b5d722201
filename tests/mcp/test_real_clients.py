"""Third-party clients of our server, over stdio and over HTTP, in both eras.

The server is `served.py`; the programs of the clients are in the folder `clients`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.peers import (
    BOUND,
    FASTMCP,
    FASTMCP_TASKS,
    INSPECTOR,
    LANGCHAIN,
    LINE_1,
    LINE_2,
    NODE,
    OPENAI_AGENTS,
    PYDANTIC_AI,
    ROOT,
    TYPESCRIPT,
    TYPESCRIPT_2,
    Peer,
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
TOOLS = [
    "add", "burst", "consult", "fail", "grow", "measure", "mixed",
    "order", "picture", "publish", "recite", "shelf", "wait",
]  # fmt: skip


FEATURES = (
    "tools",
    "progress",
    "cancellation",
    "structured content",
    "images",
    "artifacts",
    "errors",
    "elicitation",
    "sampling",
    "resources",
    "prompts",
    "tasks",
)
"""What the tests show of each client: the columns of the table in the documentation."""


@dataclass(frozen=True, slots=True)
class Client:
    """A third-party client.

    Attributes:
        title: Its name in the table of the documentation.
        peer: The package that has it.
        command: How it is started.
        era: Whether it connects with `initialize` (`sessions`) or without (`modern`).
        lacks: The features that it does not have, each with the reason.
    """

    title: str
    peer: Peer
    command: tuple[str, ...]
    era: str
    lacks: Mapping[str, str] = field(default_factory=dict[str, str])

    def transports(self, *transports: str) -> list[str]:
        """Return the transports of a test for this client; a few need a session in the first era."""
        return [
            {"sessions": "http"}.get(one, one) if self.era == "modern" else one
            for one in transports
        ]


def _program(peer: Peer, name: str) -> tuple[str, ...]:
    return (*peer.command, "-m", f"tests.mcp.clients.{name}")


def _script(peer: Peer) -> tuple[str, ...]:
    return (str(NODE), str(CLIENTS / "typescript.mjs"), *peer.command[1:])


NO_TASKS = "it has no function for tasks"
TASKS_ELSEWHERE = "its extension `fastmcp-tasks` is not published for this version; see FastMCP 4.1"
BY_NAME = {
    "typescript": Client("TypeScript SDK 1", TYPESCRIPT, _script(TYPESCRIPT), "sessions"),
    "typescript-2": Client(
        "TypeScript SDK 2",
        TYPESCRIPT_2,
        _script(TYPESCRIPT_2),
        "modern",
        {"tasks": NO_TASKS},
    ),
    "sdk-1": Client(
        "Python SDK 1",
        LINE_1,
        _program(LINE_1, "session"),
        "sessions",
        {"cancellation": "it sends no cancellation for a cancelled task"},
    ),
    "sdk-2-sessions": Client(
        "Python SDK 2, `ClientSession`",
        LINE_2,
        _program(LINE_2, "session"),
        "sessions",
        {"tasks": NO_TASKS},
    ),
    "sdk-2": Client(
        "Python SDK 2, `Client`", LINE_2, _program(LINE_2, "modern"), "modern", {"tasks": NO_TASKS}
    ),
    "fastmcp": Client(
        "FastMCP",
        FASTMCP,
        _program(FASTMCP, "fastmcp_client"),
        "modern",
        {"tasks": TASKS_ELSEWHERE},
    ),
    "fastmcp-sessions": Client(
        'FastMCP, `mode="legacy"`',
        FASTMCP,
        _program(FASTMCP, "fastmcp_legacy"),
        "sessions",
        {"tasks": "its extension for tasks needs the later era"},
    ),
    "fastmcp-tasks": Client(
        "FastMCP 4.1 with `fastmcp-tasks`",
        FASTMCP_TASKS,
        _program(FASTMCP_TASKS, "fastmcp_client"),
        "modern",
    ),
    "openai-agents": Client(
        "OpenAI Agents SDK",
        OPENAI_AGENTS,
        _program(OPENAI_AGENTS, "openai_agents_client"),
        "modern",
        {
            "progress": "its `call_tool` has no parameter for progress",
            "elicitation": "it has no handler for questions",
            "sampling": "it has no handler for requests for a model",
            "tasks": NO_TASKS,
        },
    ),
    "pydantic-ai": Client(
        "Pydantic AI",
        PYDANTIC_AI,
        _program(PYDANTIC_AI, "pydantic_ai_client"),
        "modern",
        {
            "content next to text": "it returns the text of a file as the text of the result",
            "sampling": "its models get no tools (it does not declare `sampling.tools`)",
        },
    ),
    "langchain": Client(
        "langchain-mcp-adapters",
        LANGCHAIN,
        _program(LANGCHAIN, "langchain_client"),
        "sessions",
        {
            "cancellation": "it sends no cancellation for a cancelled task (Python SDK 1)",
            "output schemas": "its tools have none",
            "unknown tools": "it has an object for each tool, so no other one can be called",
            "sampling": "it has no handler for requests for a model",
            "tasks": NO_TASKS,
        },
    ),
}
INSPECTOR_TITLE = "Inspector, command line"
INSPECTOR_LACKS = {
    "progress": "the command line does not print it",
    "cancellation": "a call can only be interrupted together with the program",
    "elicitation": "the command line cannot answer a question",
    "sampling": "the command line has no model",
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


def each(*transports: str, feature: str | None = None, needs: str | None = None) -> list[Any]:
    """Return each client that has a feature, with each transport.

    Args:
        *transports: The transports.
        feature: The column of the table that the test shows.
        needs: A further feature that the test needs.
    """
    return [
        pytest.param(
            (name, transport),
            marks=[client.peer.needed, *shows(client.title, feature, transport)],
            id=f"{name}-{transport}",
        )
        for name, client in BY_NAME.items()
        if not {feature, needs} & client.lacks.keys()
        for transport in dict.fromkeys(client.transports(*transports))
    ]


def shows(row: str, column: str | None, transport: str) -> list[pytest.MarkDecorator]:
    """Return the mark of a test that shows a cell of the table."""
    return [] if column is None else [pytest.mark.cell(row, column, transport)]


def reports(
    feature: str,
    transports: tuple[str, ...] = ("stdio", "sessions", "http"),
    *,
    needs: str | None = None,
) -> pytest.MarkDecorator:
    """Run a test with the report of each client that has a feature."""
    params = each(*transports, feature=feature, needs=needs)
    return pytest.mark.parametrize("report", params, indirect=True)


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
        **{f"burst {number}": {"name": "burst", "arguments": {"lines": 25}} for number in range(6)},
        "long burst": {"name": "burst", "arguments": {"lines": 2_000}},
        "image": {"name": "picture"},
        "told": {"name": "fail", "arguments": {"how": "told"}},
        "crash": {"name": "fail", "arguments": {"how": "crash"}},
        "invalid": {"name": "add", "arguments": {"a": "two", "c": 1}},
        "unknown": {"name": "ad"},
        "after": {"name": "add", "arguments": {"a": 20, "b": 22}},
        "mixed": {"name": "mixed"},
        "artifact": {"name": "publish"},
        "text of a resource": {"do": "read", "uri": "guide://tea"},
        "bytes of a resource": {"do": "read", "uri": "picture://logo"},
        "question": {"name": "measure"},
        "model": {"name": "consult"},
        "task": {"do": "task", "name": "grow", "arguments": {"leaves": 3}},
        "prompt": {
            "do": "prompt",
            "name": "review",
            "arguments": {"code": "x", "language": "rust"},
        },
    }


@dataclass(frozen=True, slots=True)
class Report:
    """What one client has received from our server.

    Attributes:
        client: The client.
        version: The version of the protocol, if it reports it.
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


@pytest.fixture(scope="module")
def known_reports() -> dict[tuple[str, str], Report]:
    """Return the reports of the clients that have run."""
    return {}


@pytest.fixture
def report(
    request: pytest.FixtureRequest,
    served: Served,
    known_reports: dict[tuple[str, str], Report],
    tmp_path: Path,
) -> Report:
    """Return the report of a client, which runs once over each transport."""
    key: tuple[str, str] = request.param
    if key not in known_reports:
        client, steps = BY_NAME[key[0]], the_steps(tmp_path)
        if "progress" in client.lacks:
            del steps["progress"]  # the tool would wait for the client
        told = run(client, served.target(key[1]), list(steps.values()))
        answers = dict(zip(steps, told["calls"], strict=True))
        tools = {one["name"]: one for one in told["tools"]}
        known_reports[key] = Report(client, told["version"], tools, answers)
    return known_reports[key]


@reports("tools")
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
    # not all of them report the version
    eras = {"sessions": "2025-11-25", "modern": "2026-07-28"}
    assert report.version in {eras[report.client.era], ""}


@reports("structured content", needs="output schemas")
def test_output_schemas_are_objects_only_in_the_earlier_era(report: Report) -> None:
    """In the earlier era, clients reject a list with any other schema completely."""
    promised = report.tools["add"]["outputSchema"]
    if report.client.era == "modern":
        assert promised == {"type": "integer"}
    else:
        assert promised["type"] == "object"
        assert promised["properties"]["result"] == {"type": "integer"}
    assert report.tools["shelf"]["outputSchema"]["required"] == ["name", "boxes"]


@reports("structured content")
def test_each_client_gets_results_as_text_and_as_structured_content(report: Report) -> None:
    assert report.text("number") == "5"
    assert report.structured("number") == 5
    assert report.structured("default") == 3
    assert report.structured("record") == {"name": "tea", "boxes": 3}
    assert json.loads(report.text("record")) == {"name": "tea", "boxes": 3}


@reports("tools")
def test_nested_arguments_arrive_and_prints_of_a_tool_corrupt_nothing(
    report: Report,
) -> None:
    assert report.text("nested") == "42 g for obere (schnell)"
    assert report.structured("after") == 42


@reports("progress")
def test_each_client_gets_progress_while_the_tool_is_running(report: Report) -> None:
    """Each report waits for the receipt of the previous one, so none is delayed until the result."""
    answer = report.answers["progress"]
    assert report.text("progress") == "3 lines"
    told = [[total, message] for _, total, message in answer["progress"]]
    assert told == [[None, "a poem"], [3, "line-1"], [3, "line-2"], [3, "line-3"]]


@reports("progress")
def test_each_client_gets_all_reports_of_a_burst_before_the_result(report: Report) -> None:
    """Some clients ignore reports that arrive together with the result."""
    expected = [[number, 25, f"line-{number}"] for number in range(1, 26)]
    for number in range(6):
        assert report.answers[f"burst {number}"]["progress"] == expected


@reports("progress")
def test_long_bursts_are_joined_and_no_text_is_lost(report: Report) -> None:
    told = report.answers["long burst"]["progress"]
    lines = [line for _, _, message in told for line in message.split("\n")]
    assert lines == [f"line-{number}" for number in range(1, 2_001)]
    assert [number for number, _, _ in told][-1] == 2_000
    assert len(told) < 500


@reports("progress")
def test_progress_increases_with_each_report(report: Report) -> None:
    """The protocol requires it."""
    numbers = [number for number, _, _ in report.answers["progress"]["progress"]]
    assert numbers == sorted(set(numbers))


@reports("images")
def test_each_client_gets_an_image(report: Report) -> None:
    (image,) = report.answers["image"]["result"]["content"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]) == PNG


@reports("artifacts")
def test_each_client_gets_a_file(report: Report) -> None:
    """Strict clients reject a result that lacks its structured content."""
    text, file = report.answers["mixed"]["result"]["content"]
    assert text == {"type": "text", "text": "a file:"}
    assert file["resource"]["mimeType"] == "application/x-tea"
    assert base64.b64decode(file["resource"]["blob"]) == b"leaves"


@reports("images")
def test_tools_that_return_content_have_no_output_schema(report: Report) -> None:
    """Else the bytes of an image are sent twice, and described to a model that never sees them."""
    assert "outputSchema" not in report.tools["mixed"]
    assert "outputSchema" not in report.tools["picture"]
    assert "structuredContent" not in report.answers["image"]["result"]


@reports("errors")
def test_each_client_gets_errors_without_secrets(report: Report) -> None:
    assert report.failed("told") == "The kettle is empty."
    assert "RuntimeError" in report.failed("crash")
    assert "hunter2" not in json.dumps(report.answers)


@reports("errors")
def test_each_client_gets_an_error_that_explains_the_arguments(report: Report) -> None:
    text = report.failed("invalid")
    assert text.startswith("Invalid arguments for tool 'add':")
    assert "- a: expected an integer" in text
    assert "- c: unknown" in text


@reports("errors", needs="unknown tools")
def test_an_unknown_tool_is_a_protocol_error(report: Report) -> None:
    """Pydantic AI asks its model to try again, as after the error of a tool."""
    answer = report.answers["unknown"]
    text = answer["error"] if "error" in answer else report.failed("unknown")
    assert "Unknown tool: 'ad'. Did you mean 'add'?" in text


@reports("artifacts")
def test_each_client_gets_a_file_that_a_running_tool_publishes(report: Report) -> None:
    """Its name is a report of progress; the file itself is part of the result."""
    answer = report.answers["artifact"]
    (block,) = answer["result"]["content"]
    text = block["text"] if block["type"] == "text" else block["resource"]["text"]
    assert text == "roses"
    if "progress" not in report.client.lacks:
        assert answer["progress"] == [[1, None, "poem.txt (text/plain)"]]


@reports("resources")
def test_each_client_reads_resources(report: Report) -> None:
    (text,) = report.answers["text of a resource"]["result"]["contents"]
    assert (text["uri"], text["text"]) == ("guide://tea", "# tea")
    (picture,) = report.answers["bytes of a resource"]["result"]["contents"]
    assert base64.b64decode(picture["blob"]) == PNG


@reports("prompts")
def test_each_client_gets_a_prompt(report: Report) -> None:
    (message,) = report.answers["prompt"]["result"]["messages"]
    assert message["role"] == "user"
    assert message["content"]["text"] == "Review this rust code: x"


@reports("elicitation", ("stdio", "sessions"))
def test_each_client_answers_a_question(report: Report) -> None:
    """In the first era, a question over HTTP needs a session."""
    assert report.text("question") == "7 cm"


@reports("sampling", ("stdio", "sessions"))
def test_the_model_of_each_client_calls_a_tool_of_the_running_tool(report: Report) -> None:
    """The call runs on the server, and the model answers with its result."""
    assert report.text("model") == "It is 5."


@reports("tasks")
def test_each_client_drives_a_task(report: Report) -> None:
    """The tool can be called only as a task."""
    assert report.text("task") == "3 leaves"


# --- cancelled calls


@pytest.mark.parametrize("client", each("stdio", "sessions", feature="cancellation"))
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


@pytest.fixture
def inspected(request: pytest.FixtureRequest, served: Served) -> tuple[str, ...]:
    """Return the arguments of the inspector for our server."""
    return (
        tuple(own_server_command("stdio"))
        if request.param == "stdio"
        else (served.target(request.param),)
    )


def with_the_inspector(feature: str) -> pytest.MarkDecorator:
    """Run a test with the inspector over each transport."""
    params = [
        pytest.param(
            transport,
            marks=[INSPECTOR.needed, *shows(INSPECTOR_TITLE, feature, transport)],
        )
        for transport in ("stdio", "http", "sessions")
    ]
    return pytest.mark.parametrize("inspected", params, indirect=True)


def _shown(inspected: tuple[str, ...], *options: str) -> Any:
    """Return the JSON that the inspector prints."""
    shown = _inspect(inspected, *options)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


@with_the_inspector("tools")
def test_the_inspector_lists_the_tools(inspected: tuple[str, ...]) -> None:
    tools = {tool["name"]: tool for tool in _shown(inspected, "--method", "tools/list")["tools"]}
    assert list(tools) == TOOLS
    assert tools["shelf"]["inputSchema"]["properties"]["name"]["enum"] == ["tea", "cake"]


@with_the_inspector("structured content")
def test_the_inspector_calls_the_tools(inspected: tuple[str, ...]) -> None:
    call = ("--method", "tools/call", "--tool-name", "add")
    result = _shown(inspected, *call, "--tool-arg", "a=2", "--tool-arg", "b=3")
    assert result["content"] == [{"type": "text", "text": "5"}]
    assert result["structuredContent"] == {"result": 5}


@with_the_inspector("errors")
def test_the_inspector_shows_errors(inspected: tuple[str, ...]) -> None:
    call = ("--method", "tools/call", "--tool-name", "fail")
    result = json.loads(_inspect(inspected, *call, "--tool-arg", "how=told").stdout)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "The kettle is empty."}]


@with_the_inspector("images")
def test_the_inspector_shows_images(inspected: tuple[str, ...]) -> None:
    (image,) = _shown(inspected, "--method", "tools/call", "--tool-name", "picture")["content"]
    assert image["mimeType"] == "image/png"
    assert base64.b64decode(image["data"]) == PNG


@with_the_inspector("artifacts")
def test_the_inspector_shows_files(inspected: tuple[str, ...]) -> None:
    (file,) = _shown(inspected, "--method", "tools/call", "--tool-name", "publish")["content"]
    assert file["resource"]["text"] == "roses"


@with_the_inspector("resources")
def test_the_inspector_reads_resources(inspected: tuple[str, ...]) -> None:
    (read,) = _shown(inspected, "--method", "resources/read", "--uri", "guide://tea")["contents"]
    assert read["text"] == "# tea"


@with_the_inspector("prompts")
def test_the_inspector_gets_a_prompt(inspected: tuple[str, ...]) -> None:
    given = ("--prompt-name", "review", "--prompt-args", "code=x")
    (message,) = _shown(inspected, "--method", "prompts/get", *given)["messages"]
    assert message["content"]["text"] == "Review this python code: x"


@with_the_inspector("tasks")
def test_the_inspector_drives_a_task(inspected: tuple[str, ...]) -> None:
    call = ("--method", "tools/call", "--tool-name", "grow", "--tool-arg", "leaves=3")
    assert _shown(inspected, *call)["content"][0]["text"] == "3 leaves"


# --- the OpenAI Agents SDK


@pytest.fixture(params=["stdio", "http", "sessions"])
def foreign(request: pytest.FixtureRequest, served: Served) -> Any:
    """Yield our server as an MCP server object of that SDK."""
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

    if request.param == "stdio":
        command, *args = own_server_command("stdio")
        return MCPServerStdio(
            {"command": command, "args": args}, client_session_timeout_seconds=BOUND
        )
    url = served.target(request.param)
    return MCPServerStreamableHttp({"url": url}, client_session_timeout_seconds=BOUND)


async def test_an_agent_of_openai_agents_works_with_the_tools(foreign: Any) -> None:
    from agents import Agent as ForeignAgent, RunConfig as ForeignRunConfig, Runner as ForeignRunner
    from agents.testing import (
        ModelStep,
        ScriptedModel as ForeignScriptedModel,
        assistant_message,
        function_call,
    )

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
