"""The files of the client for web pages: current, small, and served without a token."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agents_tools
from agents_tools import function_tool
from agents_tools.ui import sse
from tests.ui.web import ask

ROOT = Path(__file__).parents[2]
CLIENT = Path(agents_tools.__file__).parent / "ui" / "client"
SOURCES = ROOT / "js" / "client" / "src"
FACTS: dict[str, Any] = json.loads((CLIENT / "package.json").read_text())
SCRIPTS = sorted(CLIENT.glob("*.js"))
MOST = {
    "client.js": 6_400,
    "react.js": 2_700,
    "standalone.js": 8_200,
    "ai-sdk.js": 2_100,
    "ag-ui.js": 2_700,
    "copilotkit.js": 1_000,
}
"""How many bytes each script may have, as gzip sends it. Raise the limits deliberately."""
TOKEN = "a-token-for-these-tests"  # noqa: S105 - opens nothing

needs_sources = pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources are not here")


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@needs_sources
def test_types_are_those_of_the_schema() -> None:
    """After changing an event, run `python -m tools.client_types`, and build js/client again."""
    program = "from tools.client_types import type_definitions; print(type_definitions(), end='')"
    done = subprocess.run(  # noqa: S603 - in a process without the events of other tests
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (SOURCES / "protocol.ts").read_text() == done.stdout


@needs_sources
def test_files_were_built_from_these_sources() -> None:
    """After changing a source, run `npm run build` in js/client."""
    built_from = FACTS["built"]["sources"]
    assert {path.name: _sha256(path) for path in SOURCES.iterdir()} == built_from


def test_files_match_their_recorded_hashes() -> None:
    """Minified code is not reviewed, so changes must be noticed."""
    found = {path.name: _sha256(path) for path in CLIENT.iterdir() if path.name != "package.json"}
    assert found == FACTS["built"]["files"]


def test_package_is_complete() -> None:
    """`npm install` of the folder gets all that the entries name, with the version of the server."""
    assert FACTS["version"] == agents_tools.__version__
    named = set(re.findall(r'"\./([\w-]+\.[\w.]+)"', json.dumps(FACTS["exports"])))
    assert len(named) == 2 * len(SCRIPTS) + 1
    assert [name for name in named if not (CLIENT / name).is_file()] == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_stay_small(path: Path) -> None:
    assert len(gzip.compress(path.read_bytes(), 9)) < MOST[path.name]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_name_their_licences_and_set_text_as_text(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("/*! @agents-tools/client (MIT).")
    assert ("Preact" in text.partition("\n")[0]) is (path.name == "standalone.js")
    imports = {
        "client.js": set(),
        "react.js": {"react", "./client.js"},
        "ai-sdk.js": {"react", "./client.js", "./react.js"},
        "copilotkit.js": {"react", "./client.js", "./react.js"},
        "ag-ui.js": {"@ag-ui/client"},
    }
    found = set(re.findall(r'(?:from|import)\s*"([^"]+)"', text))
    assert found == imports.get(path.name, {"./client.js"})
    if path.name != "standalone.js":  # Preact has the name of the property, for those who set it
        assert re.search(r"innerHTML|outerHTML|\beval\(|\bFunction\(", text) is None


async def test_a_page_imports_the_modules_without_a_token() -> None:
    """An import statement cannot send a header. Everything else needs the token."""
    app = sse.app([add], auth=TOKEN)
    for name in (*MOST, "style.css"):
        answer = await ask(app, "GET", f"/{name}", kind=None)
        assert (answer.status, answer.text) == (200, (CLIENT / name).read_text())
        kind = "text/css" if name.endswith("css") else "text/javascript"
        assert answer.headers["content-type"].startswith(kind)
    for path in ("/", "/tools", "/runs", "/package.json", "/client.js/x", "/openapi.json"):
        assert (await ask(app, "GET", path, kind=None)).status == 401, path
    assert (await ask(app, "POST", "/client.js", {})).status == 405
    foreign = {"origin": "https://evil.example"}
    assert (await ask(app, "GET", "/client.js", kind=None, headers=foreign)).status == 403
    await app.aclose()


@pytest.mark.external("node")
def test_a_double_click_starts_one_run() -> None:
    """The second click comes before the server has answered the first one."""
    program = """
      const { LiveRun } = await import(process.argv[1]);
      let requests = 0;
      const run = new LiveRun({ url: "http://localhost", fetch: () => {
        requests += 1;
        return Promise.resolve(Response.json({ error: { message: "full" } }, { status: 503 }));
      } });
      await Promise.all([run.start({ input: "a" }), run.start({ input: "a" })]);
      await run.start({ input: "a" });
      console.log(requests, run.error);
    """
    script = (CLIENT / "client.js").as_uri()
    done = subprocess.run(  # noqa: S603 - our own
        [shutil.which("node") or "node", "--input-type=module", "-e", program, script],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2 full\n"
