"""Write what the tests with real clients and servers show: `python -m tests.mcp.table [--write]`.

The tests mark the cells of the tables that they show (`pytest.mark.cell`). This program runs them,
and puts their results into a page of the documentation, with the version of each client and server.
Every cell without a test has its reason. Install the peers with `make setup` first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.tables import markdown
from tests.mcp import cells, test_catalogue, test_real_clients, test_real_servers
from tests.mcp.peers import INSPECTOR, PLAYWRIGHT, ROOT, SERVERS

PAGE = ROOT / "docs" / "reference" / "mcp-peers-table.md"
TRANSPORTS = {"stdio": "stdio", "http": "HTTP", "sessions": "sessions"}

Results = dict[tuple[str, str], list[tuple[str, str]]]
"""The outcome of each test, with its detail, by row and column."""


def run_tests() -> Results:
    """Run the tests with the peers; those that fail run once more, as in `make test-all`."""
    outcomes = run_pytest()
    if any(outcome == "failed" for each in outcomes.values() for *_, outcome in each):
        outcomes |= run_pytest("--last-failed")
    results: Results = {}
    for row, column, detail, outcome in itertools.chain.from_iterable(outcomes.values()):
        results.setdefault((row, column), []).append((outcome, detail))
    return results


def run_pytest(*options: str) -> dict[str, list[list[str]]]:
    """Return the cells of each test that has run: row, column, detail, outcome."""
    modules = (test_catalogue, test_real_clients, test_real_servers)
    files = [str(module.__file__) for module in modules]
    command = ["-m", "pytest", "-q", "-m", "external", "-p", "tests.mcp.cells", "-n", "2"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cells.json")
        subprocess.run(  # noqa: S603 - our own words
            [sys.executable, *command, "--dist", "worksteal", *options, *files],
            cwd=ROOT,
            env={**os.environ, cells.FILE: str(path)},
            check=False,
        )
        return json.loads(path.read_text(encoding="utf-8"))


def client_table(results: Results) -> tuple[str, list[str]]:
    """Return the table of clients with its notes, and the cells without a passed test."""
    clients = [(one.title, one.peer, one.lacks) for one in test_real_clients.BY_NAME.values()]
    inspector = test_real_clients.INSPECTOR_TITLE, INSPECTOR, test_real_clients.INSPECTOR_LACKS
    rows: list[list[str]] = []
    notes: list[str] = []
    faults: list[str] = []
    for title, peer, lacks in (*clients, inspector):
        row = [f"{title} {peer.version}"]
        for feature in test_real_clients.FEATURES:
            outcomes = results.get((title, feature), [])
            if feature in lacks:
                row.append("—")
                notes.append(f"- {title}, {feature}: {lacks[feature]}.")
                continue
            text, is_shown = cell(outcomes)
            row.append(text)
            if not is_shown:
                faults.append(f"{title}, {feature}: {text}")
        rows.append(row)
    table = markdown(["client", *test_real_clients.FEATURES], rows)
    return "\n".join([table, "", *notes]), faults


def server_table(results: Results) -> tuple[str, list[str]]:
    """Return the table of servers, and the cells without a passed test."""
    peers = (*SERVERS, PLAYWRIGHT, *test_real_servers.FASTMCP_SERVERS)
    rows: list[list[str]] = []
    faults: list[str] = []
    for peer in peers:
        row = [peer.title]
        for feature in test_real_servers.FEATURES:
            outcomes = results.get((peer.title, feature), [])
            text, is_shown = cell(outcomes) if outcomes else ("—", feature != "tools")
            row.append(text)
            if not is_shown:
                faults.append(f"{peer.title}, {feature}: {text}")
        rows.append(row)
    return markdown(["server", *test_real_servers.FEATURES], rows), faults


def cell(outcomes: list[tuple[str, str]]) -> tuple[str, bool]:
    """Return the text of a cell, and whether its tests have passed."""
    if not outcomes:
        return "**no test**", False
    for outcome in ("failed", "skipped"):
        where = [detail for one, detail in outcomes if one == outcome]
        if where:
            return f"**{outcome}** {_details(where)}".rstrip(), False
    return _details([detail for _, detail in outcomes]) or "yes", True


def _details(details: list[str]) -> str:
    named = sorted({one for one in details if one}, key=[*TRANSPORTS].index)
    return ", ".join(TRANSPORTS[one] for one in named)


def page(results: Results) -> tuple[str, list[str]]:
    """Return the page, and what is wrong with it."""
    clients, of_clients = client_table(results)
    servers, of_servers = server_table(results)
    rows: list[list[str]] = []
    of_catalogue: list[str] = []
    for claim in test_catalogue.CLAIMS:
        text, is_shown = cell(results.get((test_catalogue.TITLE, claim), []))
        rows.append([claim, text])
        if not is_shown:
            of_catalogue.append(f"{test_catalogue.TITLE}, {claim}: {text}")
    catalogue = markdown(["527 tools of 70 servers", "result"], rows)
    text = _PAGE.format(clients=clients, servers=servers, catalogue=catalogue)
    return text, [*of_clients, *of_servers, *of_catalogue]


_PAGE = """# MCP clients and servers, measured

<!-- Written by `python -m tests.mcp.table --write`; change it there. -->

This page shows which third-party MCP clients and servers work with this library. Every cell is the
result of tests that start the real program and check what arrives. It names the transports of these
tests.

## Clients of a server of this library

The server runs in its own process, over stdio, over HTTP without sessions (`HTTP`) and over HTTP with
sessions (`sessions`; clients of protocol version 2025-11-25). A dash is a feature that the client does not have; the reason is below
the table.

- **progress**: 25 reports without a pause arrive completely and before the result, in six of six calls;
  each of 2,000 texts arrives; a report arrives while the tool is running.
- **cancellation**: the tool on the server is cancelled when the client cancels its call.
- **structured content**: numbers and records arrive as values, in the form of the client's protocol
  version.
- **artifacts**: a file that a running tool publishes, and a file next to text in a result.
- **errors**: errors of tools, errors that explain invalid arguments, unknown tools; no secrets.
- **elicitation**: a question of a tool (`ctx.ask`) is answered by the client's handler.
- **sampling**: the client's handler for requests for a model calls a tool (`sample(tools=...)`), which the
  server runs, and receives its result.
- **tasks**: a tool that can be called only as a task returns its result.

{clients}

## Servers with the client of this library

`MCPToolManager` starts each server, or connects to it, and calls its tools. A dash means that the
server has no such feature.

- **everything**: over stdio, HTTP and SSE. The servers `fetch`, `git`, `time` and FastMCP use protocol
  version 2026-07-28, the others 2025-11-25, as does FastMCP over HTTP with sessions (`sessions`).
- **progress**: all reports arrive before the result; 25 reports without a pause in six of six calls
  (FastMCP).
- **cancellation**: a cancelled call is cancelled on the server, which stays connected.
- **elicitation**, **sampling**: a handler of the manager or of the run answers. The model of the client
  calls tools of the server that asks (FastMCP).
- **tasks**: a tool that can be called only as a task is polled until it has a result.
- **apps**: tools that are only for a page are hidden from the model; the page is a resource.

{servers}

## Published tools

The [LiveMCPBench](https://github.com/icip-cas/LiveMCPBench) catalogue has the definitions of the tools
of 70 published servers. A local server lists them; arguments are generated from the schemas.

{catalogue}
"""


def main() -> int:
    """Run the tests, and print or write the page; return 1 if a cell has no passing test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the page of the documentation")
    options = parser.parse_args()
    text, faults = page(run_tests())
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
