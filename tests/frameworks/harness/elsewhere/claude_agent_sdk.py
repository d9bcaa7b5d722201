"""What only the Claude Agent SDK has, with our tools in it and its tools here."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import claude_agent_sdk
import pytest
from claude_agent_sdk import ToolAnnotations as TheirAnnotations, create_sdk_mcp_server, tool
from mcp.client import Client

from agents_tools import (
    FunctionTool,
    ToolAnnotations,
    ToolContext,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
    listen,
)
from agents_tools.export.claude_agent_sdk import (
    from_claude_agent_sdk,
    sdk_mcp_server,
    to_claude_agent_sdk,
)
from agents_tools.policies import needs_approval
from tests.frameworks import functions
from tests.frameworks.harness.claude_agent_sdk import HARNESS
from tests.frameworks.harness.elsewhere._hostile import (
    check_raised,
    check_refused,
    outcome_of,
)
from tests.frameworks.suite import Call
from tests.frameworks.tools import TOOLS

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def connected(*tools: Any) -> Client:
    """Connect a client of MCP, in memory, to the server that the SDK makes."""
    return Client(create_sdk_mcp_server("ours", tools=list(tools))["instance"])


async def test_a_client_of_mcp_sees_the_tool_as_it_is() -> None:
    """Schema and hints stand in the list of tools, as the tool has them."""

    @function_tool(annotations=ToolAnnotations(title="Look", readOnlyHint=True))
    def look(topic: str) -> str:
        """Look it up."""
        return topic

    async with connected(*to_claude_agent_sdk([look, TOOLS["book"]])) as client:
        listed = (await client.list_tools()).tools
    told = [one.model_dump(by_alias=True, mode="json") for one in listed]
    assert [one["name"] for one in told] == ["look", "book"]
    assert told[0]["description"] == "Look it up."
    assert told[1]["inputSchema"] == TOOLS["book"].params_json_schema
    assert told[0]["annotations"] == {
        "title": "Look",
        "readOnlyHint": True,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }
    assert told[1]["annotations"] is None


async def test_results_and_failures_of_mcp() -> None:
    """Text, images and `isError`, with our words."""
    theirs = to_claude_agent_sdk([TOOLS["chart"], TOOLS["fail"], TOOLS["totals"]])
    async with connected(*theirs) as client:
        chart = await client.call_tool("chart", {"title": "a"})
        failed = await client.call_tool("fail", {"reason": "rain"})
        sums = await client.call_tool("totals", {"amounts": [1], "prices": {}})
    text, image = chart.content
    assert (text.text, base64.b64decode(image.data)) == ("chart a", functions.PIXEL)
    assert failed.is_error
    assert failed.content[0].text == "Tool 'fail' failed: ValueError: it failed because of rain"
    assert not sums.is_error
    assert sums.content[0].text == '{"amount":1,"price":0,"names":[]}'


async def test_what_the_sdk_would_drop_is_described() -> None:
    """It passes on text and images; a model is told of the rest, and reads files of text."""

    @function_tool
    def everything() -> list[Any]:
        return [
            ToolOutputImage(url="https://example.com/a.png"),
            ToolOutputAudio(data=b"RIFF0000WAVEdata"),
            ToolOutputFileContent(data=b"one,two", filename="a.csv"),
            ToolOutputFileContent(data=b"\xff\xfe\x00"),
        ]

    async with connected(to_claude_agent_sdk(everything)) as client:
        found = await client.call_tool("everything", {})
    assert [block.text for block in found.content] == [
        "[image: at https://example.com/a.png]",
        "[audio: audio/wav, 16 bytes]",
        "[file: a.csv, text/plain, 7 bytes]\none,two",
        "[file: application/octet-stream, 3 bytes]",
    ]


async def test_who_listens_hears_the_call() -> None:
    """The SDK passes no progress on; here it can be heard."""
    async with connected(to_claude_agent_sdk(TOOLS["crawl"])) as client:
        with listen(all=True) as heard:
            assert not (await client.call_tool("crawl", {"pages": 2})).is_error
    assert [event.type for event in heard].count("tool_progress_event") == 2


async def test_our_server_answers_calls_itself() -> None:
    """The tool validates, and says all that is wrong; the call has the id that the model gave it."""
    server = sdk_mcp_server(
        [TOOLS["greet"], TOOLS["whoami"], TOOLS["fail"].with_(failure_error_function=None)]
    )
    calls = [
        Call("toolu_1", "greet", '{"name": 3, "times": "many"}'),
        Call("toolu_2", "whoami", '{"prefix": "I am"}'),
        Call("toolu_3", "missing", "{}"),
        Call("toolu_4", "fail", '{"reason": "rain"}'),
    ]
    answers = (await HARNESS.run([{**server, "name": "ours"}], calls)).answers
    assert "- name: " in answers["toolu_1"].text
    assert "- times: " in answers["toolu_1"].text
    assert answers["toolu_2"].text == "I am whoami toolu_2"
    assert answers["toolu_3"].text == "There is no tool named 'missing'."
    assert answers["toolu_4"].text == "it failed because of rain"
    assert [answer.failed for answer in answers.values()] == [True, False, True, True]


async def test_progress_is_reported_to_who_wants_it() -> None:
    """A client of MCP that asks for progress gets it; the SDK itself passes none on."""
    told: list[Any] = []

    async def hear(*progress: Any) -> None:
        told.append(progress)

    async with Client(sdk_mcp_server(TOOLS["crawl"])["instance"]) as client:
        result = await client.call_tool("crawl", {"pages": 2}, progress_callback=hear)
        assert result.content[0].text == "2 pages read"
        assert (await client.call_tool("crawl", {"pages": 1})).content[0].text == "1 pages read"
    assert told == [(1, 2, "page 1"), (2, 2, "page 2")]


async def test_the_applications_object() -> None:
    """The SDK has none of its own."""

    @function_tool
    def whose(ctx: ToolContext[str]) -> str:
        return ctx.context

    report = await HARNESS.run([to_claude_agent_sdk(whose, context="mine")], [Call("c1", "whose")])
    assert report.answers["c1"].text == "mine"


async def test_a_call_that_needs_a_person_is_not_run() -> None:
    """Whom the program asks is its own matter; a tool that asks more is told that nobody is there."""
    functions.bodies.clear()
    theirs = to_claude_agent_sdk(needs_approval(TOOLS["greet"]))
    report = await HARNESS.run([theirs], [Call("c1", "greet", '{"name": "Ada"}')])
    assert "needs the approval of a person" in report.answers["c1"].text
    assert report.answers["c1"].failed
    assert functions.bodies == []


async def test_the_exception_itself_where_it_is_asked_for() -> None:
    """Where a tool has no failure function its error is the SDK's business."""
    theirs = to_claude_agent_sdk(TOOLS["fail"].with_(failure_error_function=None))
    report = await HARNESS.run([theirs], [Call("c1", "fail", '{"reason": "rain"}')])
    assert report.answers["c1"].text == "it failed because of rain"
    assert report.answers["c1"].failed


def odd_tool(body: Callable[[], Any]) -> FunctionTool[..., Any]:
    """Make a tool of ours of one of theirs that does this."""

    @tool("odd", "Odd.", {})
    async def odd(args: dict[str, Any]) -> Any:
        return body()

    return from_claude_agent_sdk(odd)


async def test_foreign_tools_that_raise() -> None:
    """Whatever they raise is a failure of ours."""
    await check_raised(odd_tool)


async def test_foreign_tools_with_odd_results() -> None:
    """What is no result of MCP is a failure that says so."""
    for given, words in (
        (None, "got NoneType"),
        ("text", "expected a mapping with `content`"),
        ({"content": "text"}, "`content`: expected a list, got str"),
        ({"content": [{"type": "video"}]}, "'video'"),
        ({"content": [3]}, "'int'"),
        ({"content": [{"type": "image", "data": "!!"}]}, "not valid base64"),
        ({"content": [{"type": "text"}]}, "expected a block of MCP"),
    ):
        found = await outcome_of(odd_tool(lambda given=given: given))
        assert found.status == "tool_error"
        assert words in found.output, found.output


async def test_foreign_content() -> None:
    """All kinds of content become ours."""
    data = base64.b64encode(functions.PIXEL).decode()
    content = [
        {"type": "text", "text": "a"},
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "audio", "data": data, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "b"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": data}},
        {"type": "resource_link", "name": "d", "uri": "file:///d"},
    ]
    found = await outcome_of(odd_tool(lambda: {"content": content}))
    assert [block.type for block in found.output] == [
        "text",
        "image",
        "audio",
        "text",
        "file",
        "text",
    ]
    assert found.output[1].data == functions.PIXEL
    assert found.output[5] == ToolOutputText("d\nfile:///d")
    told = {"content": content[:1], "is_error": True}
    failed = await outcome_of(odd_tool(lambda: told))
    assert (failed.status, failed.output) == ("tool_error", "a")
    assert (await outcome_of(odd_tool(dict))).output == "(no output)"


class Search(TypedDict):
    topic: Annotated[str, "What."]
    limit: NotRequired[int]


async def test_schemas_in_all_their_forms() -> None:
    """JSON Schema, a typed dict, types by name: each is enforced before the handler is called."""

    async def handler(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": repr(args)}]}

    wire = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}
    for schema in (wire, Search, {"topic": Annotated[str, "What."]}):
        hints = TheirAnnotations(readOnlyHint=True)
        ours = from_claude_agent_sdk(tool("search", "Search.", schema, hints)(handler))
        properties = ours.params_json_schema["properties"]
        assert properties["topic"]["type"] == "string"
        if schema is not wire:
            assert properties["topic"]["description"] == "What."
        assert ours.params_json_schema["required"] == ["topic"]
        assert ours.annotations is not None
        assert ours.annotations.read_only
        assert (await outcome_of(ours, topic="a")).output == "{'topic': 'a'}"
        for wrong in ({}, {"topic": 3}):
            assert (await outcome_of(ours, **wrong)).status == "invalid_args"
    nothing = from_claude_agent_sdk(tool("nothing", "Nothing.", {})(handler))
    assert (await outcome_of(nothing)).output == "{}"


def test_what_cannot_work_is_refused() -> None:
    """In our words, when it is declared."""
    check_refused(lambda: from_claude_agent_sdk(max), "from_claude_agent_sdk()")  # type: ignore[call-overload]
    check_refused(lambda: to_claude_agent_sdk(max), "@function_tool")  # type: ignore[call-overload]
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/nowhere"}}}
    wrong = tool("wrong", "Wrong.", schema)(lambda args: asyncio.sleep(0, {}))
    check_refused(lambda: from_claude_agent_sdk(wrong), "wrong")


async def test_there_and_back_again() -> None:
    """A tool that was theirs for a while does what it did."""
    back = from_claude_agent_sdk(to_claude_agent_sdk(TOOLS["book"]))
    assert back.params_json_schema == TOOLS["book"].params_json_schema
    stay = {"guest": {"name": "Ada", "born": "1990-01-02"}}
    found = await outcome_of(back, stay=stay, arrival="2026-01-01T10:00:00Z")
    assert found.output.startswith("Ada (1990) single 1")
    assert (await outcome_of(back, stay=stay)).status == "invalid_args"
    failed = await outcome_of(from_claude_agent_sdk(to_claude_agent_sdk(TOOLS["fail"])), reason="x")
    assert failed.status == "tool_error"
    assert failed.output == "Tool 'fail' failed: ValueError: it failed because of x"


async def test_cancelling_the_call_cancels_a_foreign_tool() -> None:
    """Our cancellation reaches a handler of theirs."""
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool("wait", "Wait.", {})
    async def wait(args: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    call = asyncio.create_task(outcome_of(from_claude_agent_sdk(wait)))
    await begun.wait()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    assert ended.is_set()


_ALONE = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "-"]


def test_the_program_itself(tmp_path: Path) -> None:
    """The program that users run calls our tools, with its model made up, and no other network."""
    if any(shutil.which(name) is None for name in ("unshare", "ip")):
        pytest.skip("needs unshare and ip")
    if not (Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude").exists():
        pytest.skip("the SDK has come without the program")
    tried = subprocess.run([*_ALONE, "true"], capture_output=True, check=False)  # noqa: S603 - fixed
    if tried.returncode:
        pytest.skip("needs permission to create network namespaces")
    program = "tests.frameworks.harness.elsewhere._real_claude"
    ran = subprocess.run(  # noqa: S603 - our own program
        [*_ALONE, sys.executable, "-m", program, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["output"] == "done"
    given = found["given"]
    assert given["toolu_whoami"]["content"][0]["text"] == "I am whoami toolu_whoami"
    assert given["toolu_greet"]["is_error"]
    assert "- times: expected an integer" in str(given["toolu_greet"]["content"])
    kinds = [block["type"] for block in given["toolu_chart"]["content"]]
    assert kinds[:2] == ["text", "image"]
    assert given["toolu_book"]["content"][0]["text"].startswith("Ada (1990) single 1")
    began = [(name, path) for kind, name, path in found["heard"] if kind.endswith("start_event")]
    assert ["whoami", ["toolu_whoami"]] in [list(one) for one in began]
