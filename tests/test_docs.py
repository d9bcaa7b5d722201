"""Documentation: every program and command on the pages prints the shown output."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from agents_tools import function_tool
from agents_tools.testing import call_tool_sync
from tests.docs_runner import ROOT, PageRun, snippets_of

FIRST_PAGE = "README.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _parameter(page: Path) -> Any:
    """Always run the first page of a reader, and the others in `make test-all`."""
    name = str(page.relative_to(ROOT))
    return pytest.param(page, id=name, marks=() if name == FIRST_PAGE else pytest.mark.slow)


@pytest.mark.timeout(150)  # a page is many programs, one after the other
@pytest.mark.parametrize("page", [_parameter(page) for page in PAGES if snippets_of(page)])
def test_the_programs_and_commands_of_a_page_print_the_shown_output(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers copy the snippets."""
    monkeypatch.chdir(tmp_path)
    programs = Path(sys.executable).parent  # as in a shell in which the environment is active
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    reader = PageRun(tmp_path)
    for snippet in snippets_of(page):
        reader.run(snippet)


@pytest.mark.slow
@pytest.mark.timeout(90)
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_server_of_the_first_page_sends_its_events(tmp_path: Path) -> None:
    """The servers of the page can run at the same time: each has a port of its own."""
    page = (ROOT / FIRST_PAGE).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (served,) = (block for block in blocks if "uvicorn" in block)
    (program,) = (one.text for one in snippets_of(ROOT / FIRST_PAGE) if one.title == "bakery.py")
    ports = re.findall(r"uvicorn .*--port (\d+)|web_page.py (\d+)", page)
    assert len(set(ports)) == len(ports) == 2
    assert "8000" not in page  # the default of uvicorn, which other programs use too
    (tmp_path / "bakery.py").write_text(program, encoding="utf-8")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    done = subprocess.run(  # noqa: S602 - the commands of the page
        served.replace(ports[0][0], str(port)),
        shell=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.count('"type":"tool_progress_event"') == 6
    assert "6 rolls, still warm" in done.stdout


class Colour(enum.Enum):
    """An enumeration, as the page has it."""

    RED = "red"


class Access(enum.IntFlag):
    """A flag, as the page has it."""

    READ = 1
    WRITE = 2


class Point(TypedDict):
    """A typed dictionary, as the page has it."""

    x: int


class Model(BaseModel):
    """A model, as the page has it."""

    x: int


NAMES: dict[str, Any] = {
    "Access": Access,
    "Any": Any,
    "Colour": Colour,
    "Decimal": decimal.Decimal,
    "Literal": Literal,
    "Model": Model,
    "Point": Point,
    "date": dt.date,
    "datetime": dt.datetime,
}
VALIDATION = ROOT / "docs" / "explanation" / "schema-and-validation.md"
# A bar in a cell is written so that every reader of Markdown shows it as one.
TABLES = re.sub(r"</?code>", "`", VALIDATION.read_text()).replace("&#124;", "|")
TYPE_ROWS = re.findall(r"^\| `([^`]+)` \| (`.*) \| (.*) \|$", TABLES, re.MULTILINE)
TEXT_ROWS = re.findall(
    r"^\| [^`|]+: ``? ?(.*?) ?``? \| (accepted|refused)[^|]*\|",
    TABLES,
    re.MULTILINE,
)


@pytest.mark.parametrize(("declared", "accepted", "refused"), TYPE_ROWS)
def test_tools_accept_the_values_in_the_documented_table(
    declared: str, accepted: str, refused: str
) -> None:
    """The table promises what models can send for each type."""

    def take(value: Any) -> None:
        del value

    take.__annotations__["value"] = eval(declared, NAMES)  # noqa: S307 - our page
    tool = function_tool(take)
    for cell, status in ((accepted, "ok"), (refused, "invalid_args")):
        for text in re.findall(r"`([^`]+)`", cell):
            call = call_tool_sync(tool, f'{{"value": {text}}}')
            assert (text, call.status) == (text, status)


@pytest.mark.parametrize(("text", "verdict"), TEXT_ROWS)
def test_tools_accept_the_texts_in_the_documented_table(text: str, verdict: str) -> None:
    """The table describes the JSON around the values."""

    @function_tool
    def take(value: int = 7) -> int:
        return value

    assert (
        call_tool_sync(take, text).status == {"accepted": "ok", "refused": "invalid_args"}[verdict]
    )


def test_the_tables_are_found() -> None:
    """A table in another format would no longer be checked."""
    assert len(TYPE_ROWS) >= 12
    assert len(TEXT_ROWS) >= 8


def test_pages_include_files_with_the_marker_of_the_site_generator() -> None:
    """A formatter of Python code changes a marker in a Python block to an expression."""
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            assert not re.match(r"\s*--8\s*<\s+", line), f"{page.name}: {line}"
