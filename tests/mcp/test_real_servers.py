"""Eleven third-party servers in both eras, reached through the manager.

They are installed by `python -m tests.conformance.mcp.install` and `python -m tests.mcp.install`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest

from agents_tools import (
    Agent,
    FunctionTool,
    NotifyStreamEvent,
    RunConfig,
    Runner,
    ToolCallOutputItem,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolProgressEvent,
)
from agents_tools.errors import MCPConnectionError
from agents_tools.mcp import MCPToolManager, ToolListChange, create_mcp_tools
from agents_tools.testing import ScriptedModel, ToolCall, call_tool, tool_call
from agents_tools.tool import Question
from tests.mcp.peers import (
    BOUND,
    EVERYTHING,
    FASTMCP,
    FASTMCP_TASKS,
    FETCH,
    FILESYSTEM,
    GIT,
    MEMORY,
    PLAYWRIGHT,
    SERVERS,
    SQLITE,
    THINKING,
    TIME,
    Peer,
    all_needed,
    free_port,
    has_ended,
    listening,
    node_environment,
)
from tests.programs import CHROMIUM
from tests.waiting import comes

pytestmark = [pytest.mark.external, pytest.mark.timeout(120)]

Tool = FunctionTool[..., Any]
Tools = dict[str, Tool]
Connection = dict[str, Any]

PNG = b"\x89PNG\r\n\x1a\n"
FASTMCP_SERVER = str(Path(__file__).with_name("fastmcp_server.py"))

FEATURES = (
    "tools",
    "structured content",
    "progress",
    "cancellation",
    "images",
    "errors",
    "elicitation",
    "sampling",
    "resources",
    "prompts",
    "tasks",
    "apps",
)
"""What the tests show of the servers: the columns of the table in the documentation."""


def shows(peer: Peer, *features: str) -> Callable[[Any], Any]:
    """Mark a test with the cells of the table that it shows."""

    def mark(test: Any) -> Any:
        for feature in features:
            test = pytest.mark.cell(peer.title, feature)(test)
        return test

    return mark


@contextlib.asynccontextmanager
async def connected(
    connection: Connection, options: Mapping[str, Any] | None = None, **more: Any
) -> AsyncGenerator[tuple[MCPToolManager, Tools]]:
    """Yield a manager with one server, `peer`, and its tools by their names on the server."""
    async with asyncio.timeout(BOUND), MCPToolManager(**{**more, **(options or {})}) as manager:
        await manager.add_server("peer", **connection, connect_timeout=BOUND)
        yield manager, tools_of(manager)


def tools_of(manager: MCPToolManager, server: str = "peer") -> Tools:
    return {str(tool.origin.wire_name): tool for tool in manager.get_tools_by_server(server)}


async def call(tool: Tool, **arguments: Any) -> ToolCall:
    """Call a tool as an agent does and check the event invariants."""
    return await call_tool(tool, arguments)


async def ok(tool: Tool, **arguments: Any) -> Any:
    """Return the result of a call that has to succeed."""
    called = await call(tool, **arguments)
    assert called.status == "ok", called.outcome
    return called.value


@dataclass(frozen=True, slots=True)
class RecordedServer:
    """A server on stdin and stdout whose messages, both ways, are copied into files.

    Attributes:
        connection: How it is reached.
        folder: Where the files are.
    """

    connection: Connection
    folder: Path

    def client_messages(self, method: str) -> list[dict[str, Any]]:
        """Return what the client has sent with this method."""
        return [one for one in self._read("in") if one.get("method") == method]

    def server_messages(self, method: str) -> list[dict[str, Any]]:
        """Return what the server has sent with this method."""
        return [one for one in self._read("out") if one.get("method") == method]

    def has_answered(self, request: Mapping[str, Any]) -> bool:
        """Return whether the server has answered a request."""
        id_ = request["id"]
        return any(one.get("id") == id_ and "method" not in one for one in self._read("out"))

    def _read(self, file: str) -> list[dict[str, Any]]:
        path = self.folder / file
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]


def recorded_server(peer: Peer, folder: Path, *args: str) -> RecordedServer:
    """Yield a server whose messages are recorded in both directions."""
    into, out = shlex.quote(str(folder / "in")), shlex.quote(str(folder / "out"))
    script = f'tee {into} | "$@" | tee {out}'
    return RecordedServer(
        {"command": "sh", "args": ["-c", script, "sh", *peer.command, *args]}, folder
    )


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs tee")


# --- everything: over each transport


@contextlib.contextmanager
def over(transport: str) -> Generator[tuple[Connection, list[str]]]:
    """Yield the connection to `everything` and, where the test has started it, its output lines."""
    if transport == "stdio":
        yield EVERYTHING.server(), []
        return
    mode = {"http": "streamableHttp", "sse": "sse"}[transport]
    port = free_port()
    environment = node_environment(PORT=str(port))
    with listening([*EVERYTHING.command, mode], environment) as program:
        program.wait_for(f"on port {port}")
        path = {"http": "mcp", "sse": "sse"}[transport]
        url = f"http://127.0.0.1:{port}/{path}"
        yield {"transport": transport, "url": url}, program.lines


@pytest.fixture(params=["stdio", "http", "sse"])
def everything(request: pytest.FixtureRequest) -> Generator[Connection]:
    """Yield the connection to a server that has every feature, over each transport."""
    with over(request.param) as (connection, _):
        yield connection


@shows(EVERYTHING, "tools")
@pytest.mark.requirement("B42", "B48", "C30")
@EVERYTHING.needed
async def test_a_real_server_is_listed_and_called_over_each_transport(
    everything: Connection,
) -> None:
    """Third-party servers work like the servers of these tests."""
    async with connected(everything) as (manager, tools):
        assert {"echo", "get-sum", "get-tiny-image", "get-structured-content"} <= set(tools)
        assert tools["echo"].name == "peer_echo"
        assert tools["echo"].origin.kind == "mcp"
        assert tools["echo"].json_schema["required"] == ["message"]
        assert (await call(tools["echo"], message="grüß dich 👋")).output == "Echo: grüß dich 👋"
        assert (await ok(tools["get-sum"], a=2, b=3)).content == "The sum of 2 and 3 is 5."
        assert await manager.ping("peer") > 0
        info = manager.get_server_info("peer")
        assert info["server_info"]["name"] == "mcp-servers/everything"
        assert info["protocol_version"] == "2025-11-25"


@shows(EVERYTHING, "structured content")
@EVERYTHING.needed
async def test_structured_results_are_kept_in_addition_to_the_model_output(
    everything: Connection,
) -> None:
    async with connected(everything) as (_, tools):
        result = await ok(tools["get-structured-content"], location="Chicago")
        assert set(result.structured) == {"temperature", "conditions", "humidity"}
        assert json.loads(result.content) == result.structured
        assert not (result.metadata or {}).get("output_schema_faults")


@shows(EVERYTHING, "progress")
@EVERYTHING.needed
async def test_progress_of_a_real_server_reaches_subscribers(everything: Connection) -> None:
    async with connected(everything) as (_, tools):
        operation = tools["trigger-long-running-operation"]
        async with operation.stream(duration=0.8, steps=4) as stream:
            seen = [e async for e in stream if isinstance(e, ToolProgressEvent)]
        assert [(one.current, one.total) for one in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]
        assert stream.outcome.status == "ok"
        assert "Steps: 4" in str(stream.outcome.output)


@EVERYTHING.needed
async def test_many_calls_of_one_server_run_at_once(everything: Connection) -> None:
    async with connected(everything) as (_, tools):
        calls = [ok(tools["echo"], message=str(number)) for number in range(30)]
        results = await asyncio.gather(*calls)
        assert [result.content for result in results] == [f"Echo: {n}" for n in range(30)]


@shows(EVERYTHING, "elicitation")
@EVERYTHING.needed
async def test_a_question_of_a_server_is_answered_over_each_transport(
    everything: Connection,
) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> Any:
        asked.append(question)
        return {"name": "Ada", "check": True}

    async with connected(everything, ask=ask) as (_, tools):
        result = await ok(tools["trigger-elicitation-request"])
        assert "- Name: Ada" in result.content
        assert '"action": "accept"' in result.content
    (question,) = asked
    assert question.message.startswith("MCP server 'peer' asks: ")
    assert set(question.schema["properties"]) >= {"name", "check", "integer"}
    assert question.tool_name == "peer_trigger-elicitation-request"


@shows(EVERYTHING, "sampling")
@EVERYTHING.needed
async def test_a_server_gets_the_answer_of_a_model_over_each_transport(
    everything: Connection,
) -> None:
    asked: list[Any] = []

    def sample(params: Mapping[str, Any], _context: Any) -> str:
        asked.append(params)
        return "Forty-two."

    async with connected(everything, sample=sample) as (_, tools):
        result = await ok(tools["trigger-sampling-request"], prompt="Why?", maxTokens=7)
        assert "Forty-two." in result.content
    (params,) = asked
    assert params["maxTokens"] == 7
    assert "Why?" in params["messages"][0]["content"]["text"]


# --- everything: errors


@posix_only
@EVERYTHING.needed
async def test_bad_arguments_never_reach_the_server(tmp_path: Path) -> None:
    server = recorded_server(EVERYTHING, tmp_path)
    async with connected(server.connection) as (manager, tools):
        for bad in ({"a": 1, "b": "two"}, {"a": 1}, {}):
            called = await call(tools["get-sum"], **bad)
            assert called.status == "invalid_args"
            assert str(called.output).startswith("Invalid arguments for tool 'peer_get-sum'")
        await ok(tools["get-sum"], a=1, b=2)
        (sent,) = server.client_messages("tools/call")
        assert sent["params"]["arguments"] == {"a": 1, "b": 2}
        assert manager.get_stats()["calls"] == 1


@EVERYTHING.needed
async def test_bad_arguments_are_rejected_by_the_server_without_client_validation() -> None:
    async with connected(EVERYTHING.server(validate_arguments=False)) as (_, tools):
        called = await call(tools["get-sum"], a=1, b="two")
        assert called.status == "tool_error"
        assert "Input validation error" in str(called.output)


@shows(EVERYTHING, "errors")
@EVERYTHING.needed
async def test_a_tool_error_has_the_text_of_the_server() -> None:
    async with connected(EVERYTHING.server()) as (_, tools):
        called = await call(tools["get-resource-reference"], resourceId=0.5)
        assert called.status == "tool_error"
        expected = "Invalid resourceId: 0.5. Must be a finite positive integer."
        assert called.output == str(called.outcome.error) == expected
        assert (await ok(tools["echo"], message="still here")).content == "Echo: still here"


@pytest.mark.requirement("B39")
@EVERYTHING.needed
async def test_a_silent_call_times_out_and_the_server_stays_usable() -> None:
    """One call that hangs must not cost the connection."""
    async with connected(EVERYTHING.server(timeout=0.5)) as (manager, tools):
        called = await call(tools["trigger-long-running-operation"], duration=50, steps=1)
        assert called.status == "timeout"
        assert "sent nothing for 0.5 s" in str(called.outcome.error)
        assert (await ok(tools["echo"], message="next")).content == "Echo: next"
        assert manager.get_stats()["by_server"]["peer"]["connects"] == 1


@EVERYTHING.needed
async def test_progress_keeps_a_call_alive_beyond_its_timeout() -> None:
    async with connected(EVERYTHING.server(timeout=2.0)) as (_, tools):
        result = await ok(tools["trigger-long-running-operation"], duration=4, steps=20)
        assert "Duration: 4 seconds" in result.content


# --- everything: kinds of content


@shows(EVERYTHING, "images")
@EVERYTHING.needed
async def test_images_keep_their_position_between_texts() -> None:
    async with connected(EVERYTHING.server()) as (_, tools):
        before, image, after = (await ok(tools["get-tiny-image"])).content
        assert isinstance(before, ToolOutputText)
        assert isinstance(image, ToolOutputImage)
        assert image.mime_type == "image/png"
        assert image.data is not None
        assert image.data.startswith(PNG)
        assert after == ToolOutputText("The image above is the MCP logo.")


@EVERYTHING.needed
async def test_annotations_of_content_are_kept_for_the_application() -> None:
    async with connected(EVERYTHING.server()) as (_, tools):
        message = tools["get-annotated-message"]
        result = await ok(message, messageType="error", includeImage=True)
        assert [type(block) for block in result.content] == [ToolOutputText, ToolOutputImage]
        assert [result.metadata["blocks"][n]["annotations"]["audience"] for n in (0, 1)] == [
            ["user", "assistant"],
            ["user"],
        ]


@EVERYTHING.needed
async def test_resource_links_are_text_for_the_model_and_objects_for_the_application() -> None:
    async with connected(EVERYTHING.server()) as (manager, tools):
        result = await ok(tools["get-resource-links"], count=2)
        assert "[Blob Resource 1](demo://resource/dynamic/blob/1) (text/plain)" in result.content
        assert "[Text Resource 2](demo://resource/dynamic/text/2)" in result.content
        links = [note["resource_link"] for note in result.metadata["blocks"].values()]
        assert [link["uri"] for link in links] == [
            "demo://resource/dynamic/blob/1",
            "demo://resource/dynamic/text/2",
        ]
        (content,) = await manager.read_resource("peer", links[1]["uri"])
        assert content["text"].startswith("Resource 2: This is a plaintext resource")


@EVERYTHING.needed
async def test_embedded_text_is_text_and_embedded_bytes_are_a_file() -> None:
    async with connected(EVERYTHING.server()) as (_, tools):
        reference = tools["get-resource-reference"]
        text = await ok(reference, resourceType="Text", resourceId=1)
        assert "Resource 1: This is a plaintext resource" in text.content
        assert text.metadata["blocks"][1]["uri"] == "demo://resource/dynamic/text/1"
        blob = await ok(reference, resourceType="Blob", resourceId=2)
        _, file, _ = blob.content
        assert isinstance(file, ToolOutputFileContent)
        assert file.mime_type == "text/plain"
        assert file.data is not None
        assert file.data.startswith(b"Resource 2: This is a base64 blob")
        assert blob.metadata["blocks"][1]["uri"] == "demo://resource/dynamic/blob/2"


# --- everything: the list of tools


@pytest.mark.requirement("F31")
@posix_only
@EVERYTHING.needed
async def test_a_burst_of_list_changes_is_read_as_one_list(tmp_path: Path) -> None:
    """After the start the server announces each of its tools separately, as ordinary servers do."""
    server = recorded_server(EVERYTHING, tmp_path)
    options: dict[str, Any] = {
        "ask": lambda _: None,
        "sample": lambda *_: None,
        "roots": [tmp_path],
    }
    async with connected(server.connection, options) as (manager, _):
        await comes(lambda: len(server.client_messages("tools/list")) > 1)
        await comes(lambda: server.has_answered(server.client_messages("tools/list")[-1]))
        await manager.ping("peer")
        assert len(server.server_messages("notifications/tools/list_changed")) > 2
        assert len(server.client_messages("tools/list")) == 2
        late = {"trigger-sampling-request", "trigger-elicitation-request", "get-roots-list"}
        await comes(lambda: late <= set(tools_of(manager)))
        roots = await ok(tools_of(manager)["get-roots-list"])
        assert tmp_path.as_uri() in roots.content


@posix_only
@EVERYTHING.needed
async def test_an_unchanged_list_is_not_reported(tmp_path: Path) -> None:
    changes: list[ToolListChange] = []
    server = recorded_server(EVERYTHING, tmp_path)
    async with connected(server.connection, on_change=changes.append) as (manager, tools):
        await comes(lambda: len(server.client_messages("tools/list")) > 1)
        await comes(lambda: server.has_answered(server.client_messages("tools/list")[-1]))
        await manager.ping("peer")  # its answer follows the list, so the list has been read
        assert not any(change.changed or change.removed for change in changes)
        assert tools_of(manager)["echo"] is tools["echo"]


@shows(EVERYTHING, "tasks")
@EVERYTHING.needed
async def test_a_tool_that_requires_tasks_is_called_as_a_task() -> None:
    """The call polls the task, reports its status as progress, and returns its result."""
    async with connected(EVERYTHING.server()) as (_, tools):
        result = await call(tools["simulate-research-query"], topic="tides")
        assert result.status == "ok", result.outcome
        assert "tides" in str(result.outcome)


@shows(EVERYTHING, "tasks")
@EVERYTHING.needed
async def test_cancelling_a_call_cancels_its_task(tmp_path: Path) -> None:
    """The server must not continue work whose result has no reader."""
    server = recorded_server(EVERYTHING, tmp_path)
    async with connected(server.connection) as (_, tools):
        running = asyncio.create_task(call(tools["simulate-research-query"], topic="tides"))
        await comes(lambda: bool(server.client_messages("tasks/get")))
        running.cancel()
        await asyncio.wait({running})
        await comes(lambda: len(server.client_messages("tasks/cancel")) == 1)


@EVERYTHING.needed
async def test_the_client_announces_only_capabilities_with_a_handler() -> None:
    """Servers that check capabilities list no sampling tool when the client has no sampling."""
    async with connected(EVERYTHING.server()) as (_, tools):
        assert "trigger-sampling-request" not in tools
        assert "trigger-elicitation-request" not in tools
        assert "get-roots-list" not in tools


@shows(EVERYTHING, "resources", "prompts")
@EVERYTHING.needed
async def test_resources_and_prompts_of_a_real_server() -> None:
    async with connected(EVERYTHING.server()) as (manager, _):
        resources = await manager.list_resources("peer")
        assert len(resources) > 3
        (content,) = await manager.read_resource("peer", resources[0]["uri"])
        assert content["mimeType"] == "text/markdown"
        assert content["text"].startswith("# ")
        names = {prompt["name"] for prompt in await manager.list_prompts("peer")}
        assert {"simple-prompt", "args-prompt"} <= names
        prompt = await manager.get_prompt("peer", "args-prompt", {"city": "Bonn"})
        assert prompt["messages"][0]["content"]["text"] == "What's weather in Bonn?"
        templates = await manager.list_resource_templates("peer")
        assert "demo://resource/dynamic/text/{resourceId}" in {
            template["uriTemplate"] for template in templates
        }


@EVERYTHING.needed
async def test_a_model_reads_the_resources_that_tools_of_a_real_server_link_to(
    everything: Connection,
) -> None:
    """Texts and binary files, by the links in the result of another tool."""
    async with connected(everything, resources=True) as (manager, tools):
        reader = next(one for one in manager.get_tools() if one.name == "peer_read_resource")
        assert "demo://resource/dynamic/text/{resourceId}" in reader.description
        links = str((await ok(tools["get-resource-links"], count=2)).content)
        assert links.count("[read it with peer_read_resource]") == 2
        outputs = [
            (await call(reader, uri=uri)).outcome.output
            for uri in re.findall(r"\((demo://[^)]*)\)", links)
        ]
        assert len(outputs) == 2
        assert any("plaintext" in str(one) for one in outputs)


@EVERYTHING.needed
async def test_updates_and_log_messages_of_a_real_server_arrive(
    everything: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """From the requested level on, outside of calls, too; updates of subscribed resources only."""
    updates: asyncio.Queue[str] = asyncio.Queue()
    uri = "demo://resource/dynamic/text/1"
    caplog.set_level(logging.INFO, "agents_tools.mcp")
    async with connected(everything, log_level="debug") as (manager, tools):
        await manager.subscribe_resource("peer", uri, updates.put_nowait)
        await ok(tools["toggle-subscriber-updates"])
        assert await updates.get() == uri
        run = await call(tools["toggle-simulated-logging"])
        # The first one has a random level, and is sent before the result.
        logged = [one.getMessage() for one in caplog.records if "peer" in one.getMessage()]
        noted = [one.data for one in run.events if isinstance(one, NotifyStreamEvent)]
        assert any("message" in text for text in [*logged, *noted])


@EVERYTHING.needed
async def test_a_real_server_sees_only_the_configured_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENTS_TOOLS_SECRET", "hunter2")
    monkeypatch.setenv("AGENTS_TOOLS_SHARED", "inherited")
    given = EVERYTHING.server(env={"OWN": "1"}, inherit_env=["AGENTS_TOOLS_SHARED"])
    async with connected(given) as (_, tools):
        seen = json.loads((await ok(tools["get-env"])).content)
        allowed = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
        assert set(seen) <= allowed | {"OWN", "AGENTS_TOOLS_SHARED"}
        assert seen["OWN"] == "1"
        assert seen["AGENTS_TOOLS_SHARED"] == "inherited"


# --- everything: elicitation


@EVERYTHING.needed
async def test_a_question_can_be_declined() -> None:
    """A server of this protocol version does not ask a client without a handler."""
    async with connected(EVERYTHING.server()) as (_, tools):
        assert "trigger-elicitation-request" not in tools
    async with connected(EVERYTHING.server(), ask=lambda _: None) as (_, tools):
        result = await ok(tools["trigger-elicitation-request"])
        assert '"action": "decline"' in result.content


@EVERYTHING.needed
async def test_a_question_outside_of_a_run_is_an_error_without_a_handler() -> None:
    """The questions are left to the runs, and the call belongs to none."""
    async with connected(EVERYTHING.server(), ask=True) as (_, tools):
        called = await call(tools["trigger-elicitation-request"])
        assert called.status == "tool_error"
        assert "no handler answers questions" in str(called.output)


@EVERYTHING.needed
async def test_an_answer_that_does_not_match_the_schema_is_not_sent() -> None:
    async with connected(EVERYTHING.server(), ask=lambda _: {"integer": "many"}) as (_, tools):
        result = await ok(tools["trigger-elicitation-request"])
        assert '"action": "cancel"' in result.content


@pytest.mark.requirement("S6")
@EVERYTHING.needed
async def test_a_page_to_open_is_shown_with_its_address_if_it_is_safe() -> None:
    """The user sees where a link leads; unsafe addresses are never shown."""
    asked: list[str] = []

    def ask(question: Question) -> bool:
        asked.append(question.message)
        return True

    async with connected(EVERYTHING.server(), ask=ask) as (_, tools):
        page = tools["trigger-url-elicitation"]
        opened = await ok(page, url="https://example.test/sign-in")
        assert '"action": "accept"' in opened.content
        assert "https://example.test/sign-in" in asked[0]
        refused = await ok(page, url="file:///etc/passwd")
        assert '"action": "decline"' in refused.content
        assert len(asked) == 1


@EVERYTHING.needed
async def test_the_questions_of_a_server_go_to_the_run_that_calls_it() -> None:
    asked: list[Question] = []

    def ask(question: Question) -> Any:
        asked.append(question)
        return {"name": "Grace"}

    async with connected(EVERYTHING.server(), ask=True) as (manager, _):
        script = [tool_call("peer_trigger-elicitation-request"), "Done."]
        agent = Agent("asker", mcp_servers=[manager], model=ScriptedModel(script))
        result = await Runner.run(agent, "Ask me.", run_config=RunConfig(ask=ask))
    assert result.final_output == "Done."
    (output,) = (item for item in result.new_items if isinstance(item, ToolCallOutputItem))
    assert "- Name: Grace" in str(output.output)
    assert asked[0].tool_name == "peer_trigger-elicitation-request"


@shows(EVERYTHING, "cancellation")
@posix_only
@EVERYTHING.needed
async def test_a_call_that_is_cancelled_is_cancelled_on_the_server(tmp_path: Path) -> None:
    server = recorded_server(EVERYTHING, tmp_path)
    async with connected(server.connection) as (_, tools):
        operation = tools["trigger-long-running-operation"]
        task = asyncio.create_task(call(operation, duration=50, steps=50))
        await comes(lambda: server.client_messages("tools/call"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await comes(lambda: server.client_messages("notifications/cancelled"))
        (notification,) = server.client_messages("notifications/cancelled")
        assert notification["params"]["requestId"] == server.client_messages("tools/call")[0]["id"]
        await ok(tools["echo"], message="next")


# --- filesystem, memory, sequential-thinking


@shows(FILESYSTEM, "tools", "structured content")
@FILESYSTEM.needed
async def test_filesystem_writes_and_reads_files(tmp_path: Path) -> None:
    async with connected(FILESYSTEM.server(str(tmp_path))) as (_, tools):
        file = tmp_path / "tea.txt"
        await ok(tools["write_file"], path=str(file), content="green\nblack\n")
        assert file.read_text() == "green\nblack\n"
        result = await ok(tools["read_text_file"], path=str(file), head=1)
        assert result.content == "green"
        assert result.structured == {"content": "green"}
        many = await ok(tools["read_multiple_files"], paths=[str(file), str(tmp_path / "no")])
        assert "green" in many.content
        edits = [{"oldText": "black", "newText": "white"}]
        await ok(tools["edit_file"], path=str(file), edits=edits)
        assert file.read_text() == "green\nwhite\n"
        found = await ok(tools["search_files"], path=str(tmp_path), pattern="*.txt")
        assert str(file) in found.content


@shows(FILESYSTEM, "images")
@FILESYSTEM.needed
async def test_filesystem_returns_an_image_as_an_image(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PNG)
    async with connected(FILESYSTEM.server(str(tmp_path))) as (_, tools):
        result = await ok(tools["read_media_file"], path=str(tmp_path / "dot.png"))
        assert result.content == [ToolOutputImage(data=PNG, mime_type="image/png")]
        assert not (result.metadata or {}).get("output_schema_faults")


@shows(FILESYSTEM, "errors")
@FILESYSTEM.needed
async def test_filesystem_reports_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    async with connected(FILESYSTEM.server(str(tmp_path))) as (_, tools):
        missing = await call(tools["read_text_file"], path=str(tmp_path / "none"))
        assert missing.status == "tool_error"
        assert "ENOENT" in str(missing.output)
        outside = await call(tools["read_text_file"], path="/etc/hostname")
        assert outside.status == "tool_error"
        assert "Access denied" in str(outside.output)


@pytest.mark.requirement("B47")
@FILESYSTEM.needed
async def test_server_hints_become_tool_annotations(tmp_path: Path) -> None:
    """Policies use them."""
    async with connected(FILESYSTEM.server(str(tmp_path))) as (_, tools):
        read, write = tools["read_text_file"].annotations, tools["write_file"].annotations
        assert read is not None
        assert read.readOnlyHint is True
        assert write is not None
        assert (write.readOnlyHint, write.destructiveHint) == (False, True)
        assert all(tool.output_json_schema is not None for tool in tools.values())


@FILESYSTEM.needed
async def test_only_allowed_tools_of_a_real_server_are_listed(tmp_path: Path) -> None:
    given = FILESYSTEM.server(
        str(tmp_path), allow=["read_*", "list_*"], deny=["*_sizes"], prefix=None
    )
    async with connected(given) as (manager, _):
        assert sorted(manager.get_tool_names()) == [
            "list_allowed_directories",
            "list_directory",
            "read_file",
            "read_media_file",
            "read_multiple_files",
            "read_text_file",
        ]


@shows(MEMORY, "tools", "structured content")
@MEMORY.needed
async def test_memory_persists_entities_across_restarts(tmp_path: Path) -> None:
    server = MEMORY.server(env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")})
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote a program"]}
    async with connected(server) as (manager, tools):
        created = await ok(tools["create_entities"], entities=[ada])
        assert created.structured == {"entities": [ada]}
        first = manager.get_server_info("peer")["pid"]
        await manager.reload_server("peer")
        assert manager.get_server_info("peer")["pid"] != first
        graph = await ok(tools_of(manager)["read_graph"])
        assert graph.structured == {"entities": [ada], "relations": []}
        # the tool from before the reload still works
        again = await ok(tools["search_nodes"], query="program")
        assert again.structured["entities"] == [ada]


@shows(MEMORY, "errors")
@MEMORY.needed
async def test_memory_reports_an_unknown_entity(tmp_path: Path) -> None:
    server = MEMORY.server(env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")})
    async with connected(server) as (_, tools):
        observations = [{"entityName": "Bob", "contents": ["tall"]}]
        called = await call(tools["add_observations"], observations=observations)
        assert (called.status, called.output) == ("tool_error", "Entity with name Bob not found")
        nested = await call(tools["create_entities"], entities=[{"name": "Bob"}])
        assert nested.status == "invalid_args"
        assert "entities[0]" in str(nested.output)
        assert not (tmp_path / "memory.json").exists()


@shows(THINKING, "tools", "structured content")
@THINKING.needed
async def test_sequential_thinking_counts_thoughts() -> None:
    async with connected(THINKING.server()) as (_, tools):
        (think,) = tools.values()
        for number in (1, 2):
            result = await ok(
                think,
                thought=f"thought {number}",
                thoughtNumber=number,
                totalThoughts=2,
                nextThoughtNeeded=number < 2,
            )
        assert result.structured["thoughtHistoryLength"] == 2
        assert result.structured["nextThoughtNeeded"] is False


# --- fetch, git, time: the modern era


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<html><body><h1>Tea</h1><p>Green and <b>black</b>.</p></body></html>"
        found = self.path == "/tea"
        self.send_response(200 if found else 404)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body) if found else 0))
        self.end_headers()
        if found:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Ignore the message."""


@pytest.fixture
def site() -> Generator[str]:
    """Yield the address of a web site on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever, name="site")
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@shows(FETCH, "errors")
@FETCH.needed
async def test_fetch_refuses_addresses_of_this_machine(site: str) -> None:
    async with connected(FETCH.server()) as (manager, tools):
        called = await call(tools["fetch"], url=f"{site}/tea")
        assert called.status == "tool_error"
        assert "not a public address" in str(called.output)
        assert manager.get_server_info("peer")["protocol_version"] == "2026-07-28"


@shows(FETCH, "tools")
@FETCH.needed
async def test_fetch_returns_pages_where_it_is_allowed(site: str) -> None:
    async with connected(FETCH.server("--allow-private-ips")) as (_, tools):
        result = await ok(tools["fetch"], url=f"{site}/tea")
        assert "Green and **black**." in result.content
        short = await call(tools["fetch"], url=f"{site}/tea", max_length=0)
        assert short.status == "invalid_args"
        assert "max_length" in str(short.output)
        gone = await call(tools["fetch"], url=f"{site}/coffee")
        assert gone.status == "tool_error"
        assert "404" in str(gone.output)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return an empty repository with one new file."""
    folder = tmp_path / "repository"
    git = ["git", "-C", str(folder)]
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)  # noqa: S603, S607
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.test")):
        subprocess.run([*git, "config", key, value], check=True)  # noqa: S603
    (folder / "tea.txt").write_text("green\n")
    return folder


@shows(GIT, "tools", "errors")
@GIT.needed
async def test_git_commits_what_is_staged(repository: Path) -> None:
    where = str(repository)
    async with connected(GIT.server("--repository", where)) as (_, tools):
        assert "tea.txt" in (await ok(tools["git_status"], repo_path=where)).content
        await ok(tools["git_add"], repo_path=where, files=["tea.txt"])
        assert "+green" in (await ok(tools["git_diff_staged"], repo_path=where)).content
        await ok(tools["git_commit"], repo_path=where, message="Brew tea")
        log = await ok(tools["git_log"], repo_path=where, max_count=1)
        assert "Brew tea" in log.content
        none = await call(tools["git_log"], repo_path=where, max_count="all")
        assert none.status == "invalid_args"
        other = await call(tools["git_status"], repo_path=str(repository.parent))
        assert other.status == "tool_error"
        bad = await call(tools["git_show"], repo_path=where, revision="nowhere")
        assert bad.status == "tool_error"
        assert "nowhere" in str(bad.output)


@shows(TIME, "tools", "structured content", "errors")
@TIME.needed
async def test_time_is_converted() -> None:
    async with connected(TIME.server()) as (manager, tools):
        result = await ok(
            tools["convert_time"],
            source_timezone="Asia/Tokyo",
            time="12:00",
            target_timezone="UTC",
        )
        assert result.structured["time_difference"] == "-9.0h"
        assert json.loads(result.content) == result.structured
        wrong = await call(tools["get_current_time"], timezone="Mars/Olympus")
        assert wrong.status == "tool_error"
        assert "Mars/Olympus" in str(wrong.output)
        assert manager.get_server_info("peer")["protocol_version"] == "2026-07-28"
        assert await manager.ping("peer") > 0


# --- sqlite: a server that uses SDK version 1


@shows(SQLITE, "tools", "resources")
@SQLITE.needed
async def test_sqlite_reads_the_rows_it_wrote(tmp_path: Path) -> None:
    database = tmp_path / "tea.db"
    async with connected(SQLITE.server("--db-path", str(database))) as (manager, tools):
        assert manager.get_server_info("peer")["protocol_version"] == "2025-11-25"
        await ok(tools["create_table"], query="create table tea (name text)")
        await ok(tools["write_query"], query="insert into tea values ('green')")
        read = await ok(tools["read_query"], query="select * from tea")
        assert read.content == "[{'name': 'green'}]"
        bad = await call(tools["write_query"], query=["select"])
        assert bad.status == "invalid_args"
        resources = await manager.list_resources("peer")
        assert [resource["uri"] for resource in resources] == ["memo://insights"]
    with contextlib.closing(sqlite3.connect(database)) as opened:
        assert opened.execute("select name from tea").fetchall() == [("green",)]


# --- playwright


@shows(PLAYWRIGHT, "tools", "images", "errors")
@pytest.mark.external("chromium")
@PLAYWRIGHT.needed
async def test_playwright_opens_a_page_and_shows_it(site: str, tmp_path: Path) -> None:
    browser = ("--headless", "--isolated", "--no-sandbox", "--executable-path", str(CHROMIUM))
    given = PLAYWRIGHT.server(*browser, "--output-dir", str(tmp_path))
    async with connected(given) as (_, tools):
        await ok(tools["browser_navigate"], url=f"{site}/tea")
        page = await ok(tools["browser_snapshot"])
        assert 'heading "Tea"' in page.content
        shot = await ok(tools["browser_take_screenshot"], scale="css", type="png")
        (image,) = (block for block in shot.content if isinstance(block, ToolOutputImage))
        assert image.data is not None
        assert image.data.startswith(PNG)
        missing = await call(tools["browser_click"], target="nowhere")
        assert missing.status == "tool_error"
        assert "does not match any elements" in str(missing.output)


# --- FastMCP: a server with questions, requests for a model, tasks and apps


@dataclass(frozen=True, slots=True)
class FastMCPServer:
    """The server `fastmcp_server.py` in a version of FastMCP, and a protocol era.

    Attributes:
        peer: The version of FastMCP.
        era: `modern` over stdio, or `legacy` over HTTP with sessions.
    """

    peer: Peer
    era: Literal["modern", "legacy"]

    @property
    def title(self) -> str:
        """The row of the table in the documentation."""
        return self.peer.title + (", sessions" if self.era == "legacy" else "")

    @contextlib.asynccontextmanager
    async def connected(
        self, options: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[tuple[MCPToolManager, Tools]]:
        """Yield a manager that is connected to it, and its tools."""
        with contextlib.ExitStack() as stack:
            connection: dict[str, Any] = self.peer.server(FASTMCP_SERVER)
            if self.era == "legacy":
                port = free_port()
                command = [*self.peer.command, FASTMCP_SERVER, str(port)]
                program = stack.enter_context(listening(command))
                await asyncio.to_thread(program.wait_for, "Uvicorn running")
                connection = {"url": f"http://127.0.0.1:{port}/mcp", "protocol": "legacy"}
            async with connected(connection, options) as opened:
                yield opened


FASTMCP_SERVERS = (
    FastMCPServer(FASTMCP, "modern"),
    FastMCPServer(FASTMCP, "legacy"),
    FastMCPServer(FASTMCP_TASKS, "modern"),
)


def with_fastmcp(
    *features: str, servers: tuple[FastMCPServer, ...] = FASTMCP_SERVERS
) -> pytest.MarkDecorator:
    """Run a test with the server in each version of FastMCP and each era."""
    params = [
        pytest.param(
            server,
            marks=[server.peer.needed, *(pytest.mark.cell(server.title, one) for one in features)],
            id=f"{server.peer.version}-{server.era}",
        )
        for server in servers
    ]
    return pytest.mark.parametrize("server", params)


@with_fastmcp("tools", "structured content", "images", "errors")
async def test_a_fastmcp_server_returns_results_of_each_kind(server: FastMCPServer) -> None:
    version = "2026-07-28" if server.era == "modern" else "2025-11-25"
    async with server.connected() as (manager, tools):
        assert manager.get_server_info("peer")["protocol_version"] == version
        assert (await ok(tools["add"], a=2, b=3)).structured == {"result": 5}
        assert (await ok(tools["shelf"], name="tea")).structured == {"name": "tea", "boxes": 3}
        picture = await ok(tools["picture"])
        assert picture.content == [ToolOutputImage(data=PNG, mime_type="image/png")]
        failed = await call(tools["fail"])
        assert (failed.status, failed.output) == ("tool_error", "The kettle is empty.")


@with_fastmcp("progress")
async def test_fast_progress_of_a_fastmcp_server_is_complete(server: FastMCPServer) -> None:
    async with server.connected() as (_, tools):
        for _ in range(6):
            called = await call(tools["steps"], lines=25)
            seen = [one.message for one in called.events if isinstance(one, ToolProgressEvent)]
            assert seen == [f"line-{number}" for number in range(1, 26)]


@with_fastmcp("cancellation")
async def test_a_cancelled_call_is_cancelled_on_a_fastmcp_server(
    server: FastMCPServer, tmp_path: Path
) -> None:
    async with server.connected() as (_, tools):
        task = asyncio.create_task(call(tools["wait"], folder=str(tmp_path)))
        await comes((tmp_path / "began").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await comes((tmp_path / "cancelled").exists)
        await ok(tools["add"], a=1)


@with_fastmcp("elicitation", "sampling")
async def test_a_fastmcp_server_asks_a_person_and_a_model(server: FastMCPServer) -> None:
    options: dict[str, Any] = {"ask": lambda _: {"size": 7}, "sample": lambda *_: "a line"}
    async with server.connected(options) as (_, tools):
        assert (await ok(tools["measure"])).content == "7 cm"
        assert (await ok(tools["infer"])).content == "a line"


@with_fastmcp("sampling")
async def test_a_model_calls_tools_of_a_fastmcp_server(server: FastMCPServer) -> None:
    """The server offers a tool with its request, and runs the call of the model."""
    script = [
        tool_call("add", a=2, b=3, call_id="c1"),
        lambda request: f"{request.input[-1].output}!",
    ]
    model = ScriptedModel(script)
    async with server.connected({"sample": model}) as (_, tools):
        assert (await ok(tools["consult"])).content == "5!"
    assert [tool.name for tool in model.requests[0].tools] == ["add"]


@with_fastmcp("elicitation")
async def test_the_questions_of_a_fastmcp_server_go_to_the_run_that_calls_it(
    server: FastMCPServer,
) -> None:
    """Without sessions, the call declares that it can be asked."""
    options = {} if server.era == "modern" else {"ask": True}
    async with server.connected(options) as (manager, _):
        model = ScriptedModel([tool_call("peer_measure"), "Done."])
        agent = Agent("asker", mcp_servers=[manager], model=model)
        config = RunConfig(ask=lambda _: {"size": 9})
        result = await Runner.run(agent, "Measure.", run_config=config)
    (output,) = (item for item in result.new_items if isinstance(item, ToolCallOutputItem))
    assert output.output == "9 cm"


@with_fastmcp("resources", "prompts")
async def test_resources_and_prompts_of_a_fastmcp_server(server: FastMCPServer) -> None:
    async with server.connected() as (manager, _):
        (text,) = await manager.read_resource("peer", "guide://tea")
        assert text["text"] == "# tea"
        (picture,) = await manager.read_resource("peer", "logo://tea")
        assert base64.b64decode(picture["blob"]) == PNG
        prompt = await manager.get_prompt("peer", "review", {"code": "x"})
        assert prompt["messages"][0]["content"]["text"] == "Review this code: x"


@with_fastmcp("tasks", servers=(FastMCPServer(FASTMCP_TASKS, "modern"),))
async def test_a_tool_of_a_fastmcp_server_is_called_as_a_task(server: FastMCPServer) -> None:
    """The server refuses the call of a client that has not declared the extension."""
    async with server.connected() as (_, tools):
        assert (await ok(tools["grow"], leaves=3)).content == "3 leaves"


@with_fastmcp("apps")
async def test_tools_for_an_app_are_hidden_and_its_page_is_not_for_the_model(
    server: FastMCPServer,
) -> None:
    async with server.connected() as (manager, tools):
        assert "tick" not in tools
        assert "user interface" in manager.skipped["peer"]["tick"]
        assert (await ok(tools["now"])).content == "It is noon."
        (page,) = await manager.read_resource("peer", "ui://tea/clock.html")
        assert page["mimeType"] == "text/html;profile=mcp-app"


# --- all at once


def all_servers(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the `mcpServers` of all eight, and of one that does not exist."""
    return {
        "everything": EVERYTHING.server(),
        "files": FILESYSTEM.server(str(folder)),
        "memory": MEMORY.server(env={"MEMORY_FILE_PATH": str(folder / "memory.json")}),
        "thinking": THINKING.server(),
        "dead": {"command": sys.executable, "args": ["-c", "raise SystemExit('out of tea')"]},
        "fetch": FETCH.server(),
        "git": GIT.server(),
        "time": TIME.server(),
        "sqlite": SQLITE.server("--db-path", str(folder / "all.db")),
    }


CALLS: dict[str, dict[str, Any]] = {
    "everything_echo": {"message": "hello"},
    "files_list_allowed_directories": {},
    "memory_read_graph": {},
    "thinking_sequentialthinking": {
        "thought": "a thought",
        "thoughtNumber": 1,
        "totalThoughts": 1,
        "nextThoughtNeeded": False,
    },
    "fetch_fetch": {"url": "http://127.0.0.1:9/"},
    "git_git_status": {"repo_path": "/nowhere"},
    "time_get_current_time": {"timezone": "UTC"},
    "sqlite_list_tables": {},
}
EXPECTED = dict.fromkeys(CALLS, "ok") | {
    "fetch_fetch": "tool_error",
    "git_git_status": "tool_error",
}


@pytest.mark.requirement("F27")
@all_needed(*SERVERS)
async def test_eight_servers_work_at_once_while_another_fails_to_start(tmp_path: Path) -> None:
    """A server that exits at startup is reported with its exit code and its last output."""
    config = {"mcpServers": all_servers(tmp_path)}
    async with asyncio.timeout(2 * BOUND):
        async with MCPToolManager.from_config(config, connect_timeout=BOUND) as manager:
            assert set(manager.failures) == {"dead"}
            failure = manager.failures["dead"]
            assert isinstance(failure, MCPConnectionError)
            assert failure.server == "dead"
            assert "'dead'" in str(failure)
            assert "exit code 1" in str(failure)
            assert "out of tea" in str(failure)
            stats = manager.get_stats()
            assert (stats["servers"], stats["connected"]) == (9, 8)
            assert len(manager.get_tool_names()) == len(set(manager.get_tool_names())) > 50
            tools = {tool.name: tool for tool in manager.get_tools()}
            called = await asyncio.gather(
                *(call_tool(tools[name], given) for name, given in CALLS.items())
            )
            assert dict(zip(CALLS, (one.status for one in called), strict=True)) == EXPECTED
            names = [name for name in manager.get_server_names() if name != "dead"]
            pids = [manager.get_server_info(name)["pid"] for name in names]
            assert not any(map(has_ended, pids))
        await comes(lambda: all(map(has_ended, pids)))
    assert {manager.get_server_info(name)["connected"] for name in names} == {False}


@all_needed(*SERVERS)
async def test_every_tool_of_every_server_can_be_sent_to_a_model(tmp_path: Path) -> None:
    """All providers accept the names, and a call with empty arguments gets a clear error."""
    async with asyncio.timeout(2 * BOUND):
        config = {"mcpServers": all_servers(tmp_path)}
        async with MCPToolManager.from_config(config, connect_timeout=BOUND) as manager:
            for tool in manager.get_tools():
                assert 0 < len(tool.name) <= 64
                assert tool.name.isascii()
                assert tool.name.replace("_", "").replace("-", "").isalnum()
                assert tool.description
                if tool.json_schema.get("required"):
                    called = await call_tool(tool, {})
                    assert called.status == "invalid_args", tool.name
            assert manager.get_stats()["calls"] == 0


@all_needed(TIME, MEMORY)
def test_a_program_without_a_loop_calls_real_servers(tmp_path: Path) -> None:
    servers = {
        "time": TIME.server(),
        "memory": MEMORY.server(env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}),
        "dead": {"command": str(tmp_path / "none")},
    }
    with create_mcp_tools({"mcpServers": servers}, timeout=BOUND) as tools:
        assert set(tools.failures) == {"dead"}
        by_name = {tool.name: tool for tool in tools}
        result = by_name["time_get_current_time"].invoke_sync(timezone="UTC")
        assert result.structured["timezone"] == "UTC"
        graph = by_name["memory_read_graph"].invoke_sync()
        assert graph.structured == {"entities": [], "relations": []}


@pytest.mark.requirement("F25")
@MEMORY.needed
async def test_a_killed_real_server_is_started_again_by_the_next_call(tmp_path: Path) -> None:
    """The server itself needs no support for this."""
    server = MEMORY.server(env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")})
    async with connected(server) as (manager, tools):
        ada = {"name": "Ada", "entityType": "person", "observations": []}
        await ok(tools["create_entities"], entities=[ada])
        pid = manager.get_server_info("peer")["pid"]
        os.kill(pid, 9)
        await comes(lambda: not manager.get_server_info("peer")["connected"])
        graph = await ok(tools["read_graph"])
        assert graph.structured["entities"] == [ada]
        assert manager.get_server_info("peer")["pid"] != pid
