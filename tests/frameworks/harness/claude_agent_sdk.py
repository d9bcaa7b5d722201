"""The Claude Agent SDK, with a transport that speaks as the program behind it does.

There is no model without that program. What it does is scripted at the place where the SDK talks
to it: it asks the SDK's own in-process MCP server for the tools, calls them, and says what a model
would have been given.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import typing
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    TextBlock,
    ToolResultBlock,
    Transport,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool as foreign_tool,
)

from agents_tools import FunctionTool
from agents_tools.export.claude_agent_sdk import (
    as_tool,
    from_claude_agent_sdk,
    sdk_mcp_server,
)
from tests.frameworks.suite import Answer, Call, Incoming, Report

__all__ = ["HARNESS", "ScriptedTransport"]

_SERVER = "ours"


class ScriptedTransport(Transport):
    """Plays the program: gives one answer after the other, and makes the calls of one at once."""

    def __init__(
        self, *answers: Sequence[Call] | str, connects: bool = True, max_turns: int | None = None
    ) -> None:
        self._given = list(answers)
        self._connects = connects
        self._max_turns = max_turns
        self._said: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._turn: asyncio.Task[None] | None = None
        self._numbers = itertools.count()

    async def connect(self) -> None:
        """Need no connection."""

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        """Hear nothing more."""

    async def close(self) -> None:
        self._said.put_nowait(None)
        if self._turn is not None:
            self._turn.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._turn

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self._said.get()) is not None:
            yield message

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_request":
            response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            self._said.put_nowait({"type": "control_response", "response": response})
        elif message["type"] == "control_response":
            response = message["response"]
            self._answers.pop(response["request_id"]).set_result(response)
        elif message["type"] == "user":
            self._turn = asyncio.create_task(self._play())

    async def _ask(self, method: str, params: dict[str, Any], name: str) -> Any:
        """Send a message to the server in the SDK's process, and give the result."""
        self._answers[name] = asyncio.get_running_loop().create_future()
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("notifications/"):
            message["id"] = name
        request = {"subtype": "mcp_message", "server_name": _SERVER, "message": message}
        answer = self._answers[name]
        self._said.put_nowait({"type": "control_request", "request_id": name, "request": request})
        told = (await answer)["response"]["mcp_response"]
        return told.get("result", told.get("error"))

    async def _call(self, call: Call) -> dict[str, Any]:
        params = {
            "name": call.name,
            "arguments": json.loads(call.arguments),
            "_meta": {"claudecode/toolUseId": call.id, "progressToken": call.id},
        }
        result = await self._ask("tools/call", params, f"call-{next(self._numbers)}")
        return {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": result["content"],
            "is_error": result.get("isError", False),
        }

    async def _play(self) -> None:
        if self._connects:
            client = {"name": "scripted", "version": "1"}
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
            await self._ask("initialize", hello, "hello")
            await self._ask("notifications/initialized", {}, "ready")
            await self._ask("tools/list", {}, "tools")
        turns, last = 0, ""
        while not last and turns != self._max_turns:
            if not self._given:
                self._end(turns, "error_during_execution", result="there is no answer")
                return
            turns += 1
            answer = self._given.pop(0)
            if isinstance(answer, str):
                last = answer
                self._speak(answer)
            else:
                await self._make(answer)
        self._end(turns, "success" if last else "error_max_turns", result=last)

    def _speak(self, text: str) -> None:
        for number, word in enumerate(text.split(" ")):
            delta = {"type": "text_delta", "text": f" {word}" if number else word}
            event = {"type": "content_block_delta", "index": 0, "delta": delta}
            said = {"type": "stream_event", "uuid": "u", "session_id": "scripted", "event": event}
            self._said.put_nowait(said)
        content = [{"type": "text", "text": text}]
        self._say("assistant", role="assistant", model="scripted", content=content)

    async def _make(self, calls: Sequence[Call]) -> None:
        uses = [
            {
                "type": "tool_use",
                "id": call.id,
                "name": f"mcp__{_SERVER}__{call.name}",
                "input": json.loads(call.arguments),
            }
            for call in calls
        ]
        told = {"id": f"m{next(self._numbers)}", "usage": {"input_tokens": 5, "output_tokens": 2}}
        for use in uses:  # the program sends each block on its own
            self._say("assistant", role="assistant", model="scripted", content=[use], **told)
        results = await asyncio.gather(*map(self._call, calls))
        self._say("user", role="user", content=results)

    def _end(self, turns: int, subtype: str, **more: Any) -> None:
        self._said.put_nowait(
            {
                "type": "result",
                "subtype": subtype,
                "duration_ms": 1,
                "duration_api_ms": 1,
                "is_error": subtype != "success",
                "num_turns": turns,
                "session_id": "scripted",
                "usage": {"input_tokens": 5 * turns, "output_tokens": 2 * turns},
                **more,
            }
        )
        self._said.put_nowait(None)

    def _say(self, kind: str, **message: Any) -> None:
        said = {"type": kind, "message": message, "parent_tool_use_id": None}
        self._said.put_nowait({**said, "session_id": "scripted"})


class ClaudeAgentSdkHarness:
    name = "claude_agent_sdk"
    extra = "claude-agent-sdk"
    stream = None
    agent = True
    waits = False
    raw = False

    def ours(self, tools: Sequence[FunctionTool[..., Any]]) -> list[Any]:
        return [sdk_mcp_server(tools, name=_SERVER)]

    def own(self, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, function in functions.items():
            try:
                made[name] = _by_hand(function)
            except Exception as error:  # noqa: BLE001 - that it refuses is the answer
                made[name] = error
        return made

    async def run(self, tools: Sequence[Any], calls: Sequence[Call]) -> Report:
        report = Report()
        options = _options(tools)
        messages: Any = query(
            prompt="Go.", options=options, transport=ScriptedTransport(calls, "done")
        )
        try:
            async for message in messages:
                match message:
                    case UserMessage(content=list(blocks)):
                        for block in blocks:
                            assert isinstance(block, ToolResultBlock)
                            report.answers[block.tool_use_id] = _answer(block)
                    case AssistantMessage(content=[TextBlock()]):
                        pass
                    case ResultMessage(result=result):
                        report.final = result or ""
                    case _:
                        pass
        except Exception as error:  # noqa: BLE001 - part of the report
            report.error = error
        finally:
            await messages.aclose()
        return report

    def incoming(self) -> list[Incoming]:
        async def look_up(args: dict[str, Any]) -> dict[str, Any]:
            if args["topic"] == "nothing":
                raise LookupError("no such topic")
            return {
                "content": [{"type": "text", "text": f"{args['topic']}: {args.get('limit', 3)}"}]
            }

        schema = {
            "type": "object",
            "properties": {
                "topic": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "default": 3},
            },
            "required": ["topic"],
        }
        made = foreign_tool("look_up", "Look up a topic.", schema)(look_up)
        return [Incoming(from_claude_agent_sdk(made), label="@tool")]

    def as_tool(self, tools: Sequence[Any], answers: Sequence[Any], **options: Any) -> Any:
        """Return an agent called Scout, with these tools and answers of its model, as a tool."""
        left = list(answers)

        def transport() -> ScriptedTransport:
            texts = [number for number, answer in enumerate(left, 1) if isinstance(answer, str)]
            mine = left[: texts[0] if texts else len(left)]
            del left[: len(mine)]
            turns = options.get("max_turns")
            return ScriptedTransport(*mine, connects=bool(tools), max_turns=turns)

        return as_tool(_options(tools), name="Scout", transport=transport, **options)


def _options(tools: Sequence[Any]) -> ClaudeAgentOptions:
    if not tools:
        return ClaudeAgentOptions()
    made = isinstance(tools[0], dict)  # a server, where others give tools
    server = tools[0] if made else create_sdk_mcp_server(_SERVER, tools=list(tools))
    return ClaudeAgentOptions(mcp_servers={_SERVER: server})


def _by_hand(function: Callable[..., Any]) -> Any:
    """Make the tool that its user writes: types by name, and a handler that takes a dict."""
    hints = typing.get_type_hints(function)
    hints.pop("return", None)

    @foreign_tool(function.__name__, inspect.getdoc(function) or "", hints)
    async def handler(args: dict[str, Any]) -> dict[str, Any]:
        found = function(**args)
        if inspect.isawaitable(found):
            found = await found
        return {"content": [{"type": "text", "text": str(found)}]}

    return handler


def _answer(block: ToolResultBlock) -> Answer:
    content = block.content if isinstance(block.content, list) else []
    text = "\n".join(part["text"] for part in content if part["type"] == "text")
    return Answer(text, bool(block.is_error), tuple(part["type"] for part in content))


HARNESS = ClaudeAgentSdkHarness()
