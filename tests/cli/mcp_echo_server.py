"""A small MCP server over stdin and stdout; nothing but stdlib.

Run as `python mcp_echo_server.py [MODE] [FOLDER]`. It writes its process id into the folder. The
mode is `good`, `empty` (no tools), `dead` (it says why and ends), `deaf` (it answers nothing) or
`features` (it has resources and prompts too).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

HIDDEN = "\u200b\U000e0041\u202e"
TOOLS: list[dict[str, Any]] = [
    {
        "name": "echo",
        "description": "Say it again.\n\nAs it was said.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to say."},
                "times": {"type": "integer", "default": 1, "minimum": 1},
            },
            "required": ["text"],
        },
        "annotations": {"title": "Echo", "readOnlyHint": True, "idempotentHint": True},
    },
    {
        "name": "wipe",
        "description": f"Wipe{HIDDEN} it.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"destructiveHint": True},
    },
    {"name": "fail", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "die", "inputSchema": {"type": "object", "properties": {}}},
    {"name": "hang", "inputSchema": {"type": "object", "properties": {}}},
    {
        "name": "variable",
        "description": "Give a variable of the environment.",
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
    {
        "name": "later",
        "inputSchema": {"type": "object", "properties": {}},
        "execution": {"taskSupport": "required"},
    },
]

PIXEL = "iVBORw0KGgo="
RESOURCES: list[dict[str, Any]] = [
    {"uri": "note:///one", "name": "one", "description": "A note.", "mimeType": "text/plain"},
    {"uri": "logo:///small", "name": "logo", "mimeType": "image/png"},
]
TEMPLATES = [{"uriTemplate": "note:///{name}", "name": "note", "description": "A note by name."}]
PROMPTS: list[dict[str, Any]] = [
    {
        "name": "greet",
        "description": "Greet a person.",
        "arguments": [{"name": "who", "required": True}, {"name": "count"}],
    }
]


def feature(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request about resources or prompts."""
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": TEMPLATES}
    if method == "prompts/list":
        return {"prompts": PROMPTS}
    if method == "resources/read" and params["uri"] == "logo:///small":
        return {"contents": [{"uri": params["uri"], "mimeType": "image/png", "blob": PIXEL}]}
    if method == "resources/read" and params["uri"].startswith("note:///"):
        name = params["uri"].removeprefix("note:///")
        return {"contents": [{"uri": params["uri"], "text": f"the note {name}\x1b[31m"}]}
    if method == "prompts/get":
        content = {"type": "text", "text": f"Greet {params['arguments']}."}
        image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
        messages = [{"role": "user", "content": content}, {"role": "user", "content": image}]
        return {"messages": messages}
    return None


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def called(name: str, arguments: dict[str, Any], folder: Path | None) -> dict[str, Any] | None:
    """Return the result of a tool, or `None` for no response."""
    if name == "echo":
        return text(" ".join([arguments["text"]] * arguments.get("times", 1)))
    if name == "variable":
        return text(os.environ.get(arguments["name"], "(not set)"))
    if name == "die":
        sys.stderr.write("I have had enough\n")
        sys.stderr.flush()
        os._exit(9)
    if name == "hang":
        if folder is not None:
            (folder / "hanging").write_text("yes")
        return None
    return text("it does not work", isError=True)


def answer(message: dict[str, Any], mode: str, folder: Path | None) -> None:
    method, number = message.get("method"), message.get("id")
    params = message.get("params") or {}
    if method == "notifications/cancelled" and folder is not None:
        (folder / "cancelled").write_text("yes")
    if number is None or method is None:
        return
    if mode == "features" and (result := feature(method, params)) is not None:
        send(id=number, result=result)
    elif method == "initialize":
        more = {"resources": {}, "prompts": {}} if mode == "features" else {}
        send(
            id=number,
            result={
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, **more},
                "serverInfo": {"name": "echoes\x1b[31m", "version": "1.2.3"},
                "instructions": "Ask for echoes.",
            },
        )
    elif method == "tools/list":
        send(id=number, result={"tools": [] if mode == "empty" else TOOLS})
    elif method == "ping":
        send(id=number, result={})
    elif method == "tools/call":
        result = called(params["name"], params.get("arguments") or {}, folder)
        if result is not None:
            send(id=number, result=result)
    else:
        send(id=number, error={"code": -32601, "message": f"there is no {method}"})


def main(mode: str = "good", place: str = "") -> None:
    folder = Path(place) if place else None
    if folder is not None:
        (folder / "pid").write_text(str(os.getpid()))
    if mode == "dead":
        sys.stderr.write("the key of the cellar is missing\n")
        raise SystemExit(7)
    for line in sys.stdin:
        if mode != "deaf":
            answer(json.loads(line), mode, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
