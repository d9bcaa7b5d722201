"""Served tools that ask the client: several questions at once, and calls that change processes."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from inline_snapshot import snapshot
from mcp.server.auth.provider import AccessToken
from pydantic import BaseModel

from agents_tools import ToolContext, ToolProgressEvent, UserError, function_tool
from agents_tools.errors import MCPProtocolError
from agents_tools.mcp import MCPToolManager, mcp_server, prompt, resource
from agents_tools.mcp.server import input_required
from agents_tools.testing import call_tool
from agents_tools.tool import Question
from tests.mcp.small import LINE, listening, types

BOUND = 45.0
ROOT = Path(__file__).parents[2]
SECRET = "a secret of the test, 32 bytes or more"  # noqa: S105 - only here
pytestmark = pytest.mark.skipif(LINE < 2, reason="SDK 1.x does not know 2026-07-28")


class Size(BaseModel):
    """A size."""

    size: int


@function_tool
async def order(ctx: ToolContext[Any], thing: str) -> str:
    """Order something."""
    count, color = await asyncio.gather(
        ctx.ask(f"How many {thing}?", answer=int),
        ctx.ask("Which color?", answer=Literal["red", "blue"], key="color"),
    )
    size = await ctx.ask("How big?", answer=Size)
    return f"{count} {color} {thing} of size {size.size} from {os.getpid()}"


@function_tool
async def count_up(ctx: ToolContext[Any]) -> str:
    """Ask the same three times."""
    return str([await ctx.ask("Next?", answer=int) for _ in range(3)])


_ticks = itertools.count(os.getpid())


@function_tool
async def drift(ctx: ToolContext[Any]) -> str:
    """Ask another question in each process."""
    await ctx.ask(f"Is it {next(_ticks)}?")
    return await ctx.ask("Sure?")


TOOLS = [order, count_up, drift]


class Wire:
    """A client that speaks plain JSON, so that a test sees each round of a call."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url
        self.response: httpx.Response

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        capabilities: dict[str, Any] | None = None,
        **params: Any,
    ) -> dict[str, Any]:
        """Send a call; return the result or the error."""
        declared = (
            {"elicitation": {"form": {}, "url": {}}} if capabilities is None else capabilities
        )
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": declared,
        }
        params = {"name": name, "arguments": arguments or {}, "_meta": meta, **params}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": name,
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        self.response = await self.http.post(self.url, json=body, headers=headers)
        text = self.response.text
        if text.startswith(("event:", "data:", ":")):
            text = next(line[5:] for line in text.splitlines() if line.startswith("data:"))
        answer = json.loads(text)
        return answer.get("result") or answer["error"]


@contextlib.asynccontextmanager
async def wire(*tools: Any, **options: Any) -> AsyncGenerator[Wire]:
    app = mcp_server(tools or TOOLS, **options)
    async with (
        asyncio.timeout(BOUND),
        listening(app) as address,
        httpx.AsyncClient(timeout=BOUND) as http,
    ):
        yield Wire(http, f"{address}/mcp")
    await app.aclose()


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def text_of(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


# --- several questions


async def test_concurrent_questions_are_one_round() -> None:
    async with wire() as one:
        first = await one.call("order", {"thing": "cups"})
        asked = first["inputRequests"]
        assert first["resultType"] == "input_required"
        assert {key: request["params"]["message"] for key, request in asked.items()} == snapshot(
            {"elicitation-55653875bc76fd98": "How many cups?", "color": "Which color?"}
        )
        number, color = asked
        answers = {number: accept(answer=3), color: accept(answer="red")}
        second = await one.call(
            "order", {"thing": "cups"}, inputResponses=answers, requestState=first["requestState"]
        )
        (size,) = second["inputRequests"]
        last = await one.call(
            "order",
            {"thing": "cups"},
            inputResponses={size: accept(size=7)},
            requestState=second["requestState"],
        )
        assert text_of(last) == f"3 red cups of size 7 from {os.getpid()}"


async def test_missing_responses_are_requested_again() -> None:
    async with wire() as one:
        first = await one.call("order", {"thing": "cups"})
        responses = {"other": accept(answer=1), "colour": accept(answer="red")}
        responses[next(iter(first["inputRequests"]))] = accept(answer=3)
        second = await one.call(
            "order",
            {"thing": "cups"},
            inputResponses=responses,
            requestState=first["requestState"],
        )
        assert list(second["inputRequests"]) == ["color"]


async def test_equal_questions_have_names_of_their_own() -> None:
    async with wire() as one:
        result = await one.call("count_up")
        names: list[str] = []
        for number in range(3):
            (name,) = result["inputRequests"]
            names.append(name)
            result = await one.call(
                "count_up",
                inputResponses={name: accept(answer=number)},
                requestState=result["requestState"],
            )
        assert len(set(names)) == 3
        assert text_of(result) == "[0, 1, 2]"


@pytest.mark.parametrize(
    "content", [{}, {"answer": None}, {"other": 1}, {"answer": "many"}], ids=str
)
async def test_an_invalid_answer_is_not_reported_as_declined(content: dict[str, Any]) -> None:
    async with wire() as one:
        first = await one.call("count_up")
        responses = {next(iter(first["inputRequests"])): {"action": "accept", "content": content}}
        result = await one.call(
            "count_up", inputResponses=responses, requestState=first["requestState"]
        )
        text = text_of(result) if "content" in result else result["message"]
        assert "declined" not in text
        assert "nvalid" in text


async def test_a_call_can_bring_its_answers() -> None:
    """A client that knows the names of the questions needs no round for them."""
    async with wire() as one:
        responses = {"color": accept(answer="blue"), "unknown": accept(answer=1)}
        result = await one.call("order", {"thing": "cups"}, inputResponses=responses)
        (request,) = result["inputRequests"].values()
        assert request["params"]["message"] == "How many cups?"


@function_tool
async def knock(ctx: ToolContext[Any]) -> str:
    """Report progress around a question."""
    ctx.progress(1, 3, "before")
    waiting = asyncio.create_task(ctx.ask("Who is there?"))
    for _ in range(100):
        await asyncio.sleep(0)
    ctx.progress(2, 3, "while it waits")
    name = await waiting
    ctx.progress(3, 3, "after")
    return name


async def test_progress_arrives_in_each_round() -> None:
    """Progress while the call waits for an answer is sent with the next request."""

    async def reply(_question: Question) -> str:
        await asyncio.sleep(0)
        return "Ada"

    async with (
        asyncio.timeout(BOUND),
        listening(mcp_server([knock])) as address,
        MCPToolManager(ask=reply) as manager,
    ):
        [tool] = await manager.add_server("o", url=f"{address}/mcp")
        result = await call_tool(tool)
    assert result.output == "Ada"
    progress = [one for one in result.events if isinstance(one, ToolProgressEvent)]
    assert [one.message for one in progress] == ["before", "while it waits", "after"]


@function_tool
async def sign_in(ctx: ToolContext[Any]) -> str:
    """Ask the person to open a page."""
    return f"signed in: {await ctx.ask('Please sign in.', url='https://login.example/x?state=1')}"


async def test_a_question_can_be_a_page_to_open() -> None:
    async with wire(sign_in) as one:
        first = await one.call("sign_in")
        ((name, request),) = first["inputRequests"].items()
        assert request == {
            "method": "elicitation/create",
            "params": {
                "mode": "url",
                "message": "Please sign in.",
                "url": "https://login.example/x?state=1",
            },
        }
        responses = {name: {"action": "accept"}}
        last = await one.call(
            "sign_in", inputResponses=responses, requestState=first["requestState"]
        )
        assert text_of(last) == "signed in: True"


@pytest.mark.parametrize(
    ("reply", "text"),
    [(True, "signed in: True"), (False, "declined to answer"), (None, "declined to answer")],
)
async def test_a_page_reaches_the_handler_of_the_client(reply: Any, text: str) -> None:
    """Its URL is a field of the question, and in the message for handlers that only show that."""
    questions: list[Question] = []

    def handle(question: Question) -> Any:
        questions.append(question)
        return reply

    async with (
        asyncio.timeout(BOUND),
        listening(mcp_server([sign_in], stateless=False)) as address,
        MCPToolManager(ask=handle) as manager,
    ):
        [tool] = await manager.add_server("o", url=f"{address}/mcp")
        assert text in str((await call_tool(tool)).output)
    (question,) = questions
    assert (question.url, question.message) == snapshot(
        (
            "https://login.example/x?state=1",
            """\
MCP server 'o' asks: Please sign in.
https://login.example/x?state=1\
""",
        )
    )


async def test_a_page_has_an_address_of_the_web() -> None:
    @function_tool
    async def run_file(ctx: ToolContext[Any]) -> str:
        """Ask to open a file."""
        return await ctx.ask("Open it.", url="file:///etc/passwd")

    async with wire(run_file, errors="show") as one:
        assert "expects a URL that starts with https://" in text_of(await one.call("run_file"))


@pytest.mark.parametrize(
    ("name", "declared", "needed"),
    [
        ("order", {}, {"elicitation": {}}),
        ("sign_in", {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
    ],
)
async def test_a_missing_capability_is_an_error_of_the_protocol(
    name: str, declared: dict[str, Any], needed: dict[str, Any]
) -> None:
    """The client learns what it must declare (SEP-2575), and HTTP clients get status 400."""
    async with wire(order, sign_in) as one:
        error = await one.call(name, {"thing": "x"} if name == "order" else {}, declared)
        assert (one.response.status_code, error["code"]) == (400, -32021)
        assert error["data"] == {"requiredCapabilities": needed}
        assert "the client cannot answer, because it does not support elicitation" in str(error)


@prompt
async def greet(ctx: ToolContext[Any], who: str) -> str:
    """Greet somebody in their language."""
    return f"Greet {who} in {await ctx.ask('Which language?')}."


@resource("shelf://{thing}")
async def shelf(ctx: ToolContext[Any], thing: str) -> str:
    """Read from a shelf."""
    return f"{thing} from shelf {await ctx.ask('Which shelf?', answer=int)}"


@pytest.mark.parametrize("stateless", [True, False])
async def test_prompts_and_resources_can_ask(stateless: bool) -> None:
    app = mcp_server(resources=[shelf], prompts=[greet], stateless=stateless)

    def reply(question: Question) -> Any:
        return "Latin" if "language" in question.message else 7

    async with (
        asyncio.timeout(BOUND),
        listening(app) as address,
        MCPToolManager(ask=reply) as manager,
        MCPToolManager() as silent,
    ):
        await manager.add_server("o", url=f"{address}/mcp")
        await silent.add_server("o", url=f"{address}/mcp")
        messages = (await manager.get_prompt("o", "greet", {"who": "Ada"}))["messages"]
        assert messages[0]["content"]["text"] == "Greet Ada in Latin."
        (content,) = await manager.read_resource("o", "shelf://tea")
        assert content["text"] == "tea from shelf 7"
        with pytest.raises(MCPProtocolError, match="because it does not support elicitation"):
            await silent.get_prompt("o", "greet", {"who": "Ada"})
        with pytest.raises(MCPProtocolError, match="because it does not support elicitation"):
            await silent.read_resource("o", "shelf://tea")


# --- the state


@pytest.mark.parametrize("shared", [True, False])
async def test_a_state_is_valid_for_its_call_only(shared: bool) -> None:
    """It is bound to the tool and the arguments, cannot be read or changed, and is used once."""
    async with wire(state_secret=SECRET if shared else None) as one:
        first = await one.call("order", {"thing": "cups"})
        state = first["requestState"]
        assert "cups" not in state
        assert "color" not in state
        color = {"color": accept(answer="red")}
        for name, thing, sent in (
            ("order", "pots", state),
            ("count_up", "cups", state),
            ("order", "cups", state[:-4] + "AAAA"),
            ("order", "cups", "made up"),
        ):
            error = await one.call(name, {"thing": thing}, inputResponses=color, requestState=sent)
            assert error["code"] == -32602, error
        options = {"inputResponses": color, "requestState": state}
        assert "inputRequests" in await one.call("order", {"thing": "cups"}, **options)
        again = await one.call("order", {"thing": "cups"}, **options)
        assert again["code"] == -32602
        assert "was continued already" in again["message"]


async def test_a_process_with_another_secret_refuses_the_state() -> None:
    async with wire(state_secret=SECRET) as one, wire(state_secret=SECRET[::-1]) as other:
        first = await one.call("order", {"thing": "cups"})
        error = await other.call("order", {"thing": "cups"}, requestState=first["requestState"])
        assert error["code"] == -32602


@pytest.mark.parametrize("secret", ["short", b"shorter", 5, ["long " * 9, "short"]], ids=str)
def test_a_weak_secret_is_refused(secret: Any) -> None:
    with pytest.raises(UserError, match="state_secret= expects a secret of at least 32 bytes"):
        mcp_server(order, state_secret=secret)


# --- limits


class Doorbell:
    """A tool that waits for an answer, and events that report how its call ended."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

        @function_tool
        async def ring(ctx: ToolContext[Any]) -> str:
            """Ask and wait."""
            try:
                return await ctx.ask("Who is there?")
            finally:
                self.ended.set()

        self.tool = ring


async def test_a_call_ends_when_no_answer_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_required, "STATE_TTL", 0.01)
    bell = Doorbell()
    async with wire(bell.tool) as one:
        first = await one.call("ring")
        await bell.ended.wait()
        (name,) = first["inputRequests"]
        error = await one.call(
            "ring",
            inputResponses={name: accept(answer="Ada")},
            requestState=first["requestState"],
        )
        assert error["code"] == -32602


async def test_a_call_ends_with_its_server() -> None:
    bell = Doorbell()
    async with wire(bell.tool) as one:
        assert "inputRequests" in await one.call("ring")
        assert not bell.ended.is_set()
    assert bell.ended.is_set()


@pytest.mark.parametrize("shared", [True, False])
async def test_waiting_calls_are_limited(monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    """With a shared secret, a call that cannot wait runs again when the answer comes."""
    monkeypatch.setattr(input_required, "_MAX_WAITING", 1)
    bell = Doorbell()
    async with wire(bell.tool, state_secret=SECRET if shared else None) as one:
        await one.call("ring")
        result = await one.call("ring")
        await bell.ended.wait()
        if not shared:
            assert (result["code"], "Too many calls wait" in result["message"]) == (-32603, True)
            return
        (name,) = result["inputRequests"]
        last = await one.call(
            "ring",
            inputResponses={name: accept(answer="Ada")},
            requestState=result["requestState"],
        )
        assert text_of(last) == "Ada"


async def test_a_state_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_required, "_MAX_STATE", 300)
    async with wire(state_secret=SECRET) as one:
        first = await one.call("order", {"thing": "cups"})
        number = next(iter(first["inputRequests"]))
        responses = {number: accept(answer=3, more="x" * 300)}
        options = {"inputResponses": responses, "requestState": first["requestState"]}
        error = await one.call("order", {"thing": "cups"}, **options)
        assert (error["code"], "too large" in error["message"]) == (-32603, True)


class Tokens:
    """A verifier that accepts each token as a client of its own."""

    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id=token, scopes=[])


@pytest.mark.parametrize("shared", [True, False])
async def test_another_caller_cannot_continue_a_call(shared: bool) -> None:
    async with wire(auth=Tokens(), state_secret=SECRET if shared else None) as one:
        one.http.headers["authorization"] = "Bearer ada"
        first = await one.call("order", {"thing": "cups"})
        options = {
            "inputResponses": {"color": accept(answer="red")},
            "requestState": first["requestState"],
        }
        one.http.headers["authorization"] = "Bearer eve"
        assert (await one.call("order", {"thing": "cups"}, **options))["code"] == -32602
        one.http.headers["authorization"] = "Bearer ada"
        assert "inputRequests" in await one.call("order", {"thing": "cups"}, **options)


# --- other clients


async def test_the_client_of_the_sdk_answers_all_questions() -> None:
    async def handle(_ctx: Any, params: Any) -> Any:
        fields = params.requested_schema["properties"]
        (name,) = fields
        value = "red" if "enum" in fields[name] else 7
        return types.ElicitResult(action="accept", content={name: value})

    client: Any = importlib.import_module("mcp").Client
    app = mcp_server(TOOLS)
    async with (
        asyncio.timeout(BOUND),
        listening(app) as address,
        client(f"{address}/mcp", elicitation_callback=handle) as session,
    ):
        assert session.protocol_version == "2026-07-28"
        result = await session.call_tool("order", {"thing": "cups"})
    assert result.content[0].text == f"7 red cups of size 7 from {os.getpid()}"


# --- two processes


@contextlib.asynccontextmanager
async def served_process() -> AsyncGenerator[str]:
    """Start this module as a server in a process of its own, and yield its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.mcp.test_server_questions",
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def balanced(*urls: str) -> AsyncGenerator[str]:
    """Send each request to the next server, and yield the URL of the balancer."""
    turns = itertools.cycle(urls)
    skipped = {"host", "content-length", "transfer-encoding"}

    async with httpx.AsyncClient(timeout=BOUND) as http:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                return
            body = b""
            while (message := await receive()).get("more_body"):
                body += message.get("body", b"")
            body += message.get("body", b"")
            headers = [(k, v) for k, v in scope["headers"] if k.decode().lower() not in skipped]
            response = await http.request(
                scope["method"], next(turns), content=body, headers=headers
            )
            kept = [(k, v) for k, v in response.headers.raw if k.decode().lower() not in skipped]
            status = {"type": "http.response.start", "status": response.status_code}
            await send({**status, "headers": kept})
            await send({"type": "http.response.body", "body": response.content})

        async with listening(app) as address:
            yield f"{address}/mcp"


def answer(question: Question) -> Any:
    for part, value in {"How many": 3, "color": "red", "How big": {"size": 7}}.items():
        if part in question.message:
            return value
    return 5


@pytest.mark.slow
async def test_a_call_continues_in_another_process() -> None:
    """Each request of the call reaches another process; none of them keeps a session."""
    async with (
        asyncio.timeout(BOUND),
        served_process() as one,
        served_process() as two,
        balanced(one, two) as url,
        MCPToolManager(ask=answer) as manager,
    ):
        tools = {tool.origin.wire_name: tool for tool in await manager.add_server("o", url=url)}
        outputs = [
            str((await call_tool(tools["order"], {"thing": "cups"})).output) for _ in range(4)
        ]
        assert {output.rpartition(" ")[0] for output in outputs} == {"3 red cups of size 7 from"}
        assert str((await call_tool(tools["count_up"])).output) == "[5, 5, 5]"


async def test_a_tool_that_asks_otherwise_when_it_runs_again_fails() -> None:
    async with wire(state_secret=SECRET) as one, wire(state_secret=SECRET) as two:
        first = await one.call("drift")
        (name,) = first["inputRequests"]
        error = await two.call(
            "drift",
            inputResponses={name: accept(answer="yes")},
            requestState=first["requestState"],
        )
        assert error["message"] == snapshot(
            "The call cannot be continued in this process: it made other requests when it ran again. Its questions must not depend on time or chance, or need a key=."
        )


if __name__ == "__main__":
    from agents_tools.mcp import serve_async

    options: dict[str, Any] = {"port": 0, "auth": False, "state_secret": SECRET}
    asyncio.run(
        serve_async(TOOLS, "http", on_ready=lambda url: print(url, flush=True), **options)  # noqa: T201
    )
