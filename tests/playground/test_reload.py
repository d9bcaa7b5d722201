"""A target is reloaded when its files change, and stays usable when they are broken."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agents_tools.cli.dev import load_for_page
from agents_tools.playground import (
    LoadedTarget,
    PlaygroundApp,
    ReloadingTarget,
    TargetError,
)
from tests.playground.client import BOUND, TOKEN, serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.playground.client import Client

INTERVAL = 0.01
MAIN = """
from agents_tools import function_tool
from sample_parts import PRICE

@function_tool
def price(thing: str) -> int:
    \"\"\"Tell the price.\"\"\"
    return PRICE
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a target of two modules."""
    (tmp_path / "sample_main.py").write_text(MAIN)
    (tmp_path / "sample_parts.py").write_text("PRICE = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextlib.asynccontextmanager
async def watched(target: str) -> AsyncGenerator[tuple[ReloadingTarget, Client]]:
    bench = ReloadingTarget(lambda: load_for_page(target), target=target, interval=INTERVAL)
    bench.load()
    async with serving(PlaygroundApp(bench, token=TOKEN)) as client:
        yield bench, client


async def next_reload(bench: ReloadingTarget, known: int) -> None:
    """Wait until the target was reloaded or the reload failed."""
    async with asyncio.timeout(BOUND):
        await bench.changed_since(known)


def bytecode(folder: Path) -> list[Path]:
    return list(folder.rglob("*.pyc"))


async def price(client: Client) -> str:
    run = await client.run({"kind": "tool", "name": "price", "arguments": {"thing": "tea"}})
    return str(run["result"]["model"][0]["text"])


@pytest.mark.parametrize("target", ["sample_main.py", "sample_main", "sample_main.py:price"])
async def test_a_change_in_an_imported_module_is_detected(folder: Path, target: str) -> None:
    """The change has the same length and happens within the same second."""
    async with watched(target) as (bench, client):
        assert await price(client) == "1"
        for number in (2, 3, 4):
            known = bench.generation
            (folder / "sample_parts.py").write_text(f"PRICE = {number}\n")
            await next_reload(bench, known)
            assert await price(client) == str(number)
    assert not bytecode(folder)


async def test_the_page_is_notified_of_a_change(folder: Path) -> None:
    """A late request works too: it names the generation that it knows."""
    async with watched("sample_main.py") as (bench, client):
        async with client.stream("/api/changes?generation=1") as frames:
            (folder / "sample_parts.py").write_text("PRICE = 20\n")
            frame = await anext(frames)
        assert frame["event"] == "reload"
        assert frame["data"] == {"generation": bench.generation, "problems": []}
        async with client.stream("/api/changes?generation=1") as frames:
            assert (await anext(frames))["data"]["generation"] == bench.generation


async def test_a_target_that_cannot_be_closed_is_reloaded_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is logged, and the files are still watched."""
    config = tmp_path / "config.json"
    config.write_text("1")

    def load() -> LoadedTarget:
        def close() -> None:
            raise OSError("It does not answer.")

        return LoadedTarget(target="config.json", files=(str(config),), close=close)

    bench = ReloadingTarget(load, interval=INTERVAL)
    bench.load()
    async with serving(PlaygroundApp(bench, token=TOKEN)):
        for text in ("22", "333", "4444"):
            known = bench.generation
            config.write_text(text)
            await next_reload(bench, known)
    assert "It does not answer." in caplog.text


async def test_a_broken_file_is_reported_and_the_last_version_is_kept(
    folder: Path,
) -> None:
    """Saving it again fixes the target."""
    async with watched("sample_main.py") as (bench, client):
        for broken, place, message in (
            ("PRICE = \n", "sample_parts.py:1", "invalid syntax"),
            ("PRICE = 1\n\nPRICE = PRICE / 0\n", "sample_parts.py:3", "ZeroDivisionError"),
            ("import nothing_of_this_name\n", "sample_parts.py:1", "nothing_of_this_name"),
            ("raise SystemExit(3)\n", "sample_parts.py:1", "exit code 3"),
            ("raise KeyboardInterrupt\n", "sample_parts.py:1", "KeyboardInterrupt"),
            (
                "import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\n",
                "sample_parts.py:2",
                "imported in a thread",
            ),
        ):
            known = bench.generation
            (folder / "sample_parts.py").write_text(broken)
            await next_reload(bench, known)
            (problem,) = (await client.get("/api/info"))["problems"]
            assert problem["place"] == place
            assert message in problem["message"]
            assert place not in problem["message"]
            assert await price(client) == "1"
        known = bench.generation
        (folder / "sample_parts.py").write_text("PRICE = 5\n")
        await next_reload(bench, known)
        assert (await client.get("/api/info"))["problems"] == []
        assert await price(client) == "5"


async def test_a_target_that_is_broken_at_the_start_is_fixed_by_saving_it(folder: Path) -> None:
    """The server runs all the time, as developers expect from web servers."""
    (folder / "sample_main.py").write_text("import sample_later\n" + MAIN)
    async with watched("sample_main.py") as (bench, client):
        (problem,) = (await client.get("/api/info"))["problems"]
        assert problem["place"] == "sample_main.py:1"
        assert (await client.get("/api/tools"))["tools"] == []
        known = bench.generation
        (folder / "sample_later.py").write_text("# here\n")
        await next_reload(bench, known)
        assert await price(client) == "1"


async def test_a_tool_added_to_an_empty_file_is_detected(folder: Path) -> None:
    """The first saved version can be an empty file."""
    (folder / "sample_main.py").write_text("def price(): ...\n")
    async with watched("sample_main.py") as (bench, client):
        (problem,) = (await client.get("/api/info"))["problems"]
        assert "has no tools" in problem["message"]
        assert "@function_tool" in problem["message"]
        known = bench.generation
        (folder / "sample_main.py").write_text(MAIN)
        await next_reload(bench, known)
        assert await price(client) == "1"


async def test_a_file_that_is_replaced_or_briefly_missing_is_reloaded(folder: Path) -> None:
    """Editors write a new file and move it over the old one."""
    async with watched("sample_main.py") as (bench, client):
        known = bench.generation
        (folder / "sample_parts.py").unlink()
        (folder / "new").write_text("PRICE = 9\n")
        (folder / "new").replace(folder / "sample_parts.py")
        await next_reload(bench, known)
        while bench.problems:
            await next_reload(bench, bench.generation)
        assert await price(client) == "9"


async def test_third_party_modules_are_not_reloaded(folder: Path) -> None:
    """Only the user's own modules that the target imported are reloaded."""
    (folder / "sample_main.py").write_text("import wave, colorsys\n" + MAIN)
    async with watched("sample_main.py") as (bench, _):
        wave, parts = sys.modules["wave"], sys.modules["sample_parts"]
        known = bench.generation
        (folder / "sample_parts.py").write_text("PRICE = 33\n")
        await next_reload(bench, known)
        assert sys.modules["wave"] is wave
        assert sys.modules["sample_parts"] is not parts


async def test_a_reloaded_module_can_register_its_tools_again(folder: Path) -> None:
    """The registry rejects duplicate names, and a reload is not a duplicate."""
    source = (
        MAIN + "\nfrom agents_tools import register_tool\nregister_tool('sample_price', price)\n"
    )
    (folder / "sample_main.py").write_text(source)
    async with watched("sample_main.py") as (bench, client):
        known = bench.generation
        (folder / "sample_parts.py").write_text("PRICE = 44\n")
        await next_reload(bench, known)
        assert bench.problems == ()
        assert await price(client) == "44"
        known = bench.generation
        (folder / "sample_main.py").write_text(MAIN)
        await next_reload(bench, known)
    from agents_tools import list_registered_tools

    assert "sample_price" not in list_registered_tools()


async def test_the_page_shows_changes_since_the_start(folder: Path) -> None:
    """Breaking changes are listed first."""
    async with watched("sample_main.py") as (bench, client):
        assert (await client.get("/api/tools/price/views"))["diff"] is None
        known = bench.generation
        changed = MAIN.replace("thing: str", "item: str, number: int = 1")
        (folder / "sample_main.py").write_text(changed)
        await next_reload(bench, known)
        diff = (await client.get("/api/tools/price/views"))["diff"]
    assert diff["since"].endswith("+00:00")
    assert diff["changes"] == [
        {"path": "thing", "kind": "removed", "breaking": True, "text": "parameter removed"},
        {
            "path": "item",
            "kind": "added",
            "breaking": True,
            "text": "required parameter added",
        },
        {
            "path": "number",
            "kind": "added",
            "breaking": False,
            "text": "optional parameter added",
        },
    ]


async def test_a_run_continues_with_the_version_it_started_with(folder: Path) -> None:
    """A reload does not affect a running call."""
    source = (
        "import asyncio\n"
        "from pathlib import Path\n"
        "from agents_tools import function_tool\n"
        "WORD = 'old'\n"
        "@function_tool\n"
        "async def wait() -> str:\n"
        '    """Wait."""\n'
        "    while not Path('go').exists():\n"
        "        await asyncio.sleep(0.01)\n"
        "    return WORD\n"
    )
    (folder / "sample_main.py").write_text(source)
    async with watched("sample_main.py") as (bench, client):
        body = {"kind": "tool", "name": "wait"}
        run_id = (await client.post("/api/runs", body, 202))["run_id"]
        known = bench.generation
        (folder / "sample_main.py").write_text(source.replace("'old'", "'new'"))
        await next_reload(bench, known)
        (folder / "go").touch()
        assert (await client.ended(run_id))["summary"] == "old"
        run = await client.run(body)
        assert (run["summary"], run["generation"]) == ("new", bench.generation)


async def test_shutdown_ends_requests_that_wait_for_changes() -> None:
    """An open page must not block the shutdown."""
    bench = ReloadingTarget(lambda: load_for_page("builtin"), interval=INTERVAL)
    waiting = asyncio.create_task(bench.changed_since(bench.generation))
    await asyncio.sleep(0)
    bench.end_streams()
    async with asyncio.timeout(BOUND):
        assert await waiting is False


async def test_an_invalid_tool_does_not_affect_the_others(folder: Path) -> None:
    """The error names the place once."""
    source = MAIN + "\n@function_tool\ndef odd(x: 'Nothing') -> int:\n    return 1\n"
    (folder / "sample_main.py").write_text(source)
    async with watched("sample_main.py") as (_, client):
        (problem,) = (await client.get("/api/info"))["problems"]
        assert problem["place"] == "sample_main.py:10"
        assert problem["message"].startswith("Tool 'odd': the annotation 'Nothing'")
        assert await price(client) == "1"


@pytest.mark.parametrize(
    ("target", "place", "message"),
    [
        ("sample_main.py:nothing", "sample_main.py", "has no attribute 'nothing'."),
        ("sample_none.py", "sample_none.py", "has no tools."),
    ],
)
def test_a_problem_names_its_location_once(
    folder: Path, target: str, place: str, message: str
) -> None:
    """The page shows the location next to the message."""
    (folder / "sample_none.py").write_text("")
    with pytest.raises(TargetError) as caught:
        load_for_page(target)
    (problem,) = caught.value.problems
    assert problem.place == place
    assert problem.message.splitlines()[0] == message
