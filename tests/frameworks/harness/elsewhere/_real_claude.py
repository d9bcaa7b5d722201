"""Runs the program behind the Claude Agent SDK itself, with a model that is made up here.

It is given the address of this process for that of its provider, and is to run where there is no
other network: `unshare --net`. Prints what the model was given, and what was heard, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

from agents_tools.export.claude_agent_sdk import as_tool, sdk_mcp_server
from agents_tools.testing import call_tool
from tests.frameworks.tools import TOOLS

CALLS: dict[str, dict[str, Any]] = {
    "whoami": {"prefix": "I am"},
    "greet": {"name": 3, "times": "many"},
    "chart": {"title": "sales"},
    "book": {
        "stay": {"guest": {"name": "Ada", "born": "1990-01-02"}},
        "arrival": "2026-01-01T10:00:00Z",
    },
}
given: list[Any] = []


class Provider(BaseHTTPRequestHandler):
    """Asks for all calls at once, and says `done` when it has their results."""

    def log_message(self, *args: Any) -> None:
        """Be quiet."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.startswith("/v1/messages?") or "tools" not in body:
            self.send_error(404)
            return
        results = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        given[:] = results
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in _answer(body["model"], done=bool(results)):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


def _answer(model: str, *, done: bool) -> list[dict[str, Any]]:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (
            {"type": "tool_use", "id": f"toolu_{name}", "name": f"mcp__ours__{name}", "input": {}},
            {"type": "input_json_delta", "partial_json": json.dumps(arguments)},
        )
        for name, arguments in CALLS.items()
    ]
    if done:
        blocks = [({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"})]
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (block, delta) in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    why = {"stop_reason": "end_turn" if done else "tool_use", "stop_sequence": None}
    last = {"type": "message_delta", "delta": why, "usage": {"output_tokens": 2}}
    return [*events, last, {"type": "message_stop"}]


async def main(home: str) -> None:
    """Run the program once."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        options = ClaudeAgentOptions(
            mcp_servers={"ours": sdk_mcp_server([TOOLS[name] for name in CALLS])},
            allowed_tools=[f"mcp__ours__{name}" for name in CALLS],
            tools=[],
            setting_sources=[],
            model="claude-sonnet-4-5",
            cwd=home,
            env={
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
                "ANTHROPIC_API_KEY": "none",
                "CLAUDE_CONFIG_DIR": home,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "HOME": home,
            },
        )
        found = await call_tool(as_tool(options, name="Scout", streaming=True), input="Go.")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    heard = [(event.type, event.tool_name, event.path[1:]) for event in found.events]
    told = {block["tool_use_id"]: block for block in given}
    print(json.dumps({"output": str(found.output), "given": told, "heard": heard}))  # noqa: T201


asyncio.run(main(sys.argv[1]))
