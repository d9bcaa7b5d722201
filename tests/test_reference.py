"""Test that the reference documents every public name with all its parameters."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, get_args, get_origin

import pytest

from agents_tools import (
    ToolError,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolResult,
    function_tool,
)
from agents_tools.events import (
    ActionEvent,
    AgentStateChangedEvent,
    AgentUpdatedStreamEvent,
    AnyEvent,
    ErrorEvent,
    Event,
    MessageEvent,
    NullEvent,
    ObservationEvent,
    SummaryEvent,
)
from agents_tools.events.kinds import RunRecordEvent
from agents_tools.mcp import mcp_server
from agents_tools.ui import ag_ui, vercel
from tests.docs_runner import ROOT
from tests.public_modules import described_package, public_modules
from tools import reference

pytestmark = pytest.mark.timeout(120)  # reading the package can take long on a busy machine

DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
_ELSEWHERE: dict[str, set[str]] = {}
"""Public names that no page of the reference describes."""


def resolve(path: str) -> Any:
    """Return the object of a dotted path, wherever it is defined."""
    inner = path.removeprefix("agents_tools").removeprefix(".")
    thing: Any = described_package()[inner] if inner else described_package()
    return thing.final_target if thing.is_alias else thing


def exported(module: Any) -> list[str]:
    """Return the public names of a module."""
    known = public_modules().get(module.path)
    return [str(name) for name in (known or module.exports or ())]


def directives() -> Iterator[tuple[str, str]]:
    """Yield each documented path of the reference with the name of its page."""
    for page in sorted(REFERENCE.glob("*.md")):
        for path in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            yield path, page.name


@cache
def documented_objects() -> dict[str, Any]:
    """Return all documented objects by the path of their definition."""
    things: dict[str, Any] = {}
    for path, _ in directives():
        thing = resolve(path)
        inner = (
            [resolve(f"{thing.path}.{name}") for name in exported(thing)]
            if thing.is_module
            else [thing]
        )
        things.update({one.path: one for one in inner})
    return things


def public() -> Iterator[tuple[str, str, Any]]:
    """Yield each public name: its module, the name and its definition."""
    for module, names in public_modules().items():
        for name in names:
            if name == "__version__" or (module == "agents_tools" and name == "policies"):
                continue
            if module == "agents_tools.tools":
                continue  # these are the names of agents_tools.builtin
            thing = resolve(f"{module}.{name}")
            if not thing.is_module:
                yield module, name, thing


def documented_members() -> Iterator[Any]:
    """Yield all documented objects and the public members of the documented classes."""
    for thing in documented_objects().values():
        yield thing
        if thing.is_class:
            for name, member in thing.members.items():
                if not name.startswith("_") and not member.is_alias and not member.is_attribute:
                    yield member


# --- names


def test_every_public_name_is_on_a_page() -> None:
    """Users cannot find names that are not documented."""
    missing: dict[str, set[str]] = {}
    for module, name, thing in public():
        if thing.path not in documented_objects():
            missing.setdefault(module, set()).add(name)
    assert missing == _ELSEWHERE


def test_pages_document_objects_under_an_importable_name() -> None:
    """Readers copy the heading into an import."""
    assert [path for path, _ in directives() if "._" in path] == []


def test_nothing_is_documented_twice() -> None:
    """Two copies of a text would diverge."""
    paths = [resolve(path).path for path, _ in directives()]
    assert sorted({path for path in paths if paths.count(path) > 1}) == []


# --- parameters


def _named(thing: Any, *kinds: str) -> set[str]:
    if thing is None or thing.docstring is None:
        return set()
    parts = thing.docstring.parse("google", warnings=False)
    return {
        one.name.lstrip("*") for part in parts if part.kind.value in kinds for one in part.value
    }


def _parameters(function: Any) -> list[str]:
    names = [one.name.lstrip("*") for one in function.parameters]
    return [name for name in names if name not in {"self", "cls"} and not name.startswith("_")]


def test_a_list_of_parameters_is_complete() -> None:
    """A docstring that documents some parameters must document all of them."""
    wrong: dict[str, list[str]] = {}
    for thing in documented_members():
        function = thing.members.get("__init__") if thing.is_class else thing
        if function is None or not function.is_function:
            continue
        named = _named(function, "parameters") | _named(thing, "parameters")
        missing = [name for name in _parameters(function) if named and name not in named]
        if missing:
            wrong[thing.path] = missing
    assert wrong == {}


def test_each_field_of_a_record_is_documented() -> None:
    """The fields of a record are its parameters: each is in the docstring or has its own."""
    wrong: dict[str, list[str]] = {}
    for thing in documented_objects().values():
        if not thing.is_class or not any("dataclass" in str(one.value) for one in thing.decorators):
            continue
        named = _named(thing, "attributes", "parameters")
        fields = [
            member
            for name, member in thing.members.items()
            if not name.startswith("_")
            and member.is_attribute
            and member.annotation is not None
            and not re.match(r"ClassVar|InitVar", str(member.annotation))
            and "property" not in member.labels
            and name != "type"  # the discriminator of a union, which no caller passes
        ]
        missing = [one.name for one in fields if one.name not in named and not one.docstring]
        if missing:
            wrong[thing.path] = missing
    assert wrong == {}


# --- written pages


def test_the_command_line_page_matches_the_help_of_the_commands() -> None:
    """After changing an option, run `python -m tools.reference`."""
    assert reference.PAGE.read_text(encoding="utf-8") == reference.command_line()
    assert reference.RULES_PAGE.read_text(encoding="utf-8") == reference.lint_rules()


_IMAGE = re.compile(
    r"!\[[^\]]*\]\(([^)#\s]+)|<(?:img|source)\b[^>]*?(?:src|srcset)=\"([^\"]+)\"", re.DOTALL
)
_CODE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)


def test_every_image_on_a_page_exists_and_every_image_file_is_used() -> None:
    """The build of the site checks only the pages below docs/ and finds no unused files."""
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    linked = {
        (DOCS / name).resolve() for name in re.findall(r"(?m)^  (?:logo|favicon): (\S+)$", config)
    }
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for names in _IMAGE.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
            name = "".join(names)
            if not name.startswith("https://"):
                linked.add((page.parent / name).resolve())
    assert linked == {file.resolve() for file in (DOCS / "images").iterdir()}


def test_the_table_of_layers_matches_the_contract_of_the_import_linter() -> None:
    """The page on architecture names every importable module, from high to low."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]
    ranks = {name: rank for rank, layer in enumerate(layers) for name in re.findall(r"\w+", layer)}
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| layer | what is there |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    rows = [[name.strip("/") for name in re.findall(r"`([^`]+)`", cell)] for cell in cells]
    assert [name for row in rows for name in row if name not in ranks] == []
    for above, below in pairwise(rows):
        assert max(ranks[name] for name in above) <= min(ranks[name] for name in below), below
    named = {name for row in rows for name in row}
    assert {name for name in ranks if not name.startswith("_")} - named == set()


# --- protocols


def _section(title: str) -> str:
    text = (REFERENCE / "protocols.md").read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _written_in(pattern: str, *modules: str) -> set[str]:
    """Return all matches of a pattern in the sources of the encoders."""
    folder = ROOT / "agents_tools" / "ui"
    source = "".join(
        file.read_text(encoding="utf-8") for name in modules for file in folder.glob(name)
    )
    return set(re.findall(pattern, source))


def test_the_table_of_ag_ui_names_each_frame_that_is_sent() -> None:
    """Authors of clients rely on the table."""
    sent = _written_in(
        r'"((?:RUN|TEXT|REASONING|TOOL|MESSAGES|ACTIVITY|SUBAGENT)_[A-Z_]+)"', "ag_ui/*.py"
    )
    beginnings = {"TEXT_MESSAGE", "REASONING_MESSAGE"}  # prefixes of composed names
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", _section("AG-UI"))) - {
        "AGENTS_TOOL",
        "AGENTS_ARTIFACT",
    }
    assert sent - beginnings == named


def test_the_table_of_the_ai_sdk_names_each_chunk_that_is_sent() -> None:
    sent = _written_in(r'"type": "([a-z-]+)"', "vercel/[!u]*.py")  # all but `ui_message`
    named = set(re.findall(r"`([a-z-]+)`", _section("Vercel AI SDK")))
    assert sent - named == set()


def _others(title: str) -> list[Event]:
    """Return events of the kinds that the last row of a table lists as not sent."""
    rows = re.findall(r"^\| (.*?) \|", _section(title), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+_event)`", row)}
    assert "all others" in rows
    kinds = {(get_origin(kind) or kind).type for kind in get_args(AnyEvent)}
    samples = {event.type: event for event in _SAMPLES}
    return [samples[kind] for kind in sorted(kinds - named)]


_SAMPLES: list[Event] = [
    AgentUpdatedStreamEvent("helper"),
    MessageEvent("hello"),
    SummaryEvent("They greeted.", 2, "0f"),
    ActionEvent("run", {"command": "ls"}),
    ObservationEvent("run", {"content": "a.txt"}),
    AgentStateChangedEvent("running"),
    ErrorEvent("it broke"),
    NullEvent(),
    RunRecordEvent("call_begun", {"call_id": "call_1"}),
]


@pytest.mark.parametrize("event", _others("AG-UI"), ids=lambda event: event.type)
def test_all_other_events_send_nothing_in_ag_ui(event: Event) -> None:
    """This checks the last row of the table."""
    assert ag_ui.AgUiEncoder().encode(event) == []


@pytest.mark.parametrize("event", _others("Vercel AI SDK"), ids=lambda event: event.type)
def test_all_other_events_send_nothing_in_the_ai_sdk(event: Event) -> None:
    """This checks the last row of the table."""
    assert vercel.VercelEncoder().encode(event) == []


@function_tool(output_schema=False)
def _text(text: str = "hi") -> str:
    return text


@function_tool
def _number() -> int:
    return 3


@function_tool(output_schema=False)
def _result(*, is_error: bool = False) -> ToolResult:
    return ToolResult(
        content="three", structured={"n": 3}, metadata={"_meta": {"m": 1}}, is_error=is_error
    )


@function_tool(output_schema=False)
def _image(*, link: bool = False) -> ToolOutputImage:
    if link:
        return ToolOutputImage(url="https://there.example/a.png")
    return ToolOutputImage(data=b"\x89PNG", mime_type="image/png")


@function_tool(output_schema=False)
def _file(mime_type: str) -> ToolOutputFileContent:
    return ToolOutputFileContent(data=b"leaves", mime_type=mime_type, filename="tea")


@function_tool
def _fail(*, knowingly: bool) -> str:
    raise ToolError("no tea") if knowingly else RuntimeError("the password is tea")


async def _answers(*calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Call tools over MCP, and return the responses as sent over the wire."""
    import httpx

    app = mcp_server([_text, _number, _result, _image, _file, _fail], json_response=True)
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    transport = httpx.ASGITransport(app)
    answers: list[Any] = []
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client:
        for name, arguments in calls:
            params = {"name": name, "arguments": arguments}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answers.append((await client.post("/mcp", json=body, headers=headers)).json())
    await app.aclose()
    return answers


async def test_the_table_of_mcp_matches_the_responses() -> None:
    """Checks each row against the wire format, which authors of clients rely on."""
    rows = re.findall(
        r"^\| (.*?) \|", _section("MCP").partition("| outcome of the call |")[2], re.MULTILINE
    )
    assert len(rows) == 11  # the separator line and ten rows; add a check below for a new row
    calls: list[tuple[str, dict[str, Any]]] = [
        ("_text", {}),
        ("_text", {"text": ""}),
        ("_number", {}),
        ("_result", {}),
        ("_result", {"is_error": True}),
        ("_image", {}),
        ("_image", {"link": True}),
        ("_file", {"mime_type": "text/plain"}),
        ("_file", {"mime_type": "application/pdf"}),
        ("_fail", {"knowingly": True}),
        ("_fail", {"knowingly": False}),
        ("_number", {"n": 3}),
        ("_nunber", {}),
    ]
    (
        text,
        empty,
        number,
        result,
        bad,
        image,
        link,
        leaves,
        pdf,
        known,
        unknown,
        refused,
        none,
    ) = await _answers(*calls)
    kinds = [
        [block["type"] for block in one["result"]["content"]]
        for one in (text, empty, number, image, link, leaves, pdf)
    ]
    of_pictures = [["image"], ["resource_link"], ["resource"], ["resource"]]
    assert kinds == [["text"], ["text"], ["text"], *of_pictures]
    assert empty["result"]["content"][0]["text"] == "(no output)"
    assert number["result"]["structuredContent"] == {"result": 3}
    assert result["result"]["structuredContent"] == {"n": 3}
    assert result["result"]["_meta"]["m"] == 1
    assert (bad["result"]["isError"], bad["result"]["content"][0]["text"]) == (True, "three")
    assert leaves["result"]["content"][0]["resource"]["text"] == "leaves"
    assert "blob" in pdf["result"]["content"][0]["resource"]
    texts = [one["result"]["content"][0]["text"] for one in (known, unknown, refused)]
    assert all(one["result"]["isError"] for one in (known, unknown, refused))
    assert "no tea" in texts[0]
    assert "RuntimeError (error " in texts[1]
    assert "password" not in texts[1]
    assert texts[2].startswith("Invalid arguments for tool '_number'")
    assert none["error"]["code"] == -32602
    assert "_number" in none["error"]["message"]


# --- the index for models


def _pages() -> set[str]:
    return {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}


def test_the_index_for_models_lists_every_page_once_with_a_description() -> None:
    """Models find pages through `llms.txt`; a missing page is not read."""
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    named = re.findall(r"\]\(([\w/-]+\.md)\)", text)
    assert set(named) == _pages()
    assert sorted({name for name in named if named.count(name) > 1}) == []
    lines = [line for line in text.splitlines() if line.startswith("- [")]
    assert [line for line in lines if not re.search(r"\.md\): \S.{9,}$", line)] == []


def test_the_index_for_models_matches_the_menu_of_the_site() -> None:
    """Both have the same pages in the same order within each part."""
    menu = re.findall(
        r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE
    )
    named = re.findall(r"\]\(([\w/-]+\.md)\)", (DOCS / "llms.txt").read_text(encoding="utf-8"))
    assert set(menu) <= set(named)
    for part in ("how-to/", "explanation/", "reference/"):
        theirs = [name for name in menu if name.startswith(part) and not name.endswith("index.md")]
        ours = [name for name in named if name in theirs]
        assert ours == theirs


@pytest.mark.parametrize("part", ["how-to", "explanation", "reference"])
def test_each_part_lists_its_pages(part: str) -> None:
    """The first page of a part links to all others of it."""
    text = (DOCS / part / "index.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\]\(([\w-]+\.md)\)", text))
    there = {page.name for page in (DOCS / part).glob("*.md")} - {"index.md"}
    assert named == there
