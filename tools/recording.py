"""Record the run of `examples/web_tree.py` for the page of the docs that shows it without a server.

`python -m tools.recording` writes `docs/javascripts/recorded-run.json`: the events until the
approval, and those after each decision.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

__all__ = ["RECORDING", "record"]

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "docs" / "javascripts" / "recorded-run.json"
_LONGEST = 60.0


def record() -> dict[str, Any]:
    """Return the parts of the run, `first` and then `approved` or `denied`: states and events."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "examples.web_tree", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as server:
        try:
            address = f"http://127.0.0.1:{port}/agent"
            with httpx.Client(base_url=address, timeout=_LONGEST) as client:
                return _recorded(client)
        finally:
            server.terminate()


def _recorded(client: httpx.Client) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for name, approve in (("approved", True), ("denied", False)):
        request = {"input": "Plan the weekend.", "run_id": name}
        _post(client, "/runs", request, {"prefer": "respond-async"})
        first = _part(client, name, after=-1)
        [waiting] = first["run"]["approvals"]
        decision = {"call_id": waiting["call_id"], "path": waiting["path"], "approve": approve}
        _post(client, f"/runs/{name}/approvals", {"decisions": [decision]})
        parts |= {"first": first, name: _part(client, name, after=first["events"][-1]["id"])}
    return parts


def _post(
    client: httpx.Client, path: str, body: object, headers: dict[str, str] | None = None
) -> None:
    for _ in range(100):
        try:
            client.post(path, json=body, headers=headers).raise_for_status()
        except httpx.ConnectError:
            time.sleep(0.1)  # the server is starting
        else:
            return
    raise TimeoutError(f"{client.base_url} cannot be reached.")


def _part(client: httpx.Client, run_id: str, after: int) -> dict[str, Any]:
    """Read the events of a run until it waits or has ended, and return them with its state."""
    events: list[Any] = []
    while client.get(f"/runs/{run_id}").json()["status"] == "running":
        with client.stream("GET", f"/runs/{run_id}/events?after={after}") as frames:
            events += [
                json.loads(line.removeprefix("data: "))
                for line in frames.iter_lines()
                if line.startswith("data: ")
            ]
        after = max([after, *(event["id"] for event in events)])
    return {"run": client.get(f"/runs/{run_id}").json(), "events": events}


if __name__ == "__main__":
    RECORDING.write_text(json.dumps(record(), ensure_ascii=False) + "\n", encoding="utf-8")
