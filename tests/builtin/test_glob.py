"""The glob tool: newest first, only inside the workspace."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot

from agents_tools.builtin import GlobAction, GlobExecutor, GlobObservation, GlobTool
from agents_tools.builtin.paths import ConfinedWorkspace
from agents_tools.errors import ToolError, UserError
from tests.waiting import BOUND

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs links")
Search = Callable[..., GlobObservation]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def glob(work: Path) -> Iterator[Search]:
    executor = GlobExecutor(work)
    yield lambda pattern, **more: executor(GlobAction(pattern=pattern, **more))
    executor.close()


def plant(root: Path, *names: str) -> None:
    """Make files, the first one the newest."""
    for age, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (0, 2_000_000_000 - age))


@pytest.mark.requirement("B88")
def test_the_newest_files_come_first(work: Path, glob: Search) -> None:
    """Files of the same time are sorted by path."""
    plant(work, "b.py", "src/a.py", "src/deep/c.py", "other.txt")
    for name in ("z.py", "m/y.py"):
        plant(work, name)
    seen = glob("**/*.py")
    assert seen.files == ["b.py", "m/y.py", "z.py", "src/a.py", "src/deep/c.py"]
    assert (seen.count, seen.truncated) == (5, False)
    assert seen.text == snapshot("""\
Showing 1-5 of 5 files.
b.py
m/y.py
z.py
src/a.py
src/deep/c.py\
""")
    assert glob("*.rs").text == "No file in . matches '*.rs'."


@pytest.mark.requirement("B88")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.{ts,tsx}", ["a.ts", "b.tsx", "s/c.ts", "t/[x].ts"]),
        ("{s,t}/*.ts", ["s/c.ts", "t/[x].ts"]),
        ("./*.ts", ["a.ts"]),
        ("s/**", ["s/c.ts", "s/u/d.js"]),
        ("s/", ["s/c.ts", "s/u/d.js"]),
        ("u/", ["s/u/d.js"]),
        ("**/u/*", ["s/u/d.js"]),
        ("[!a].ts", ["s/c.ts"]),
        ("?.ts", ["a.ts", "s/c.ts"]),
        (r"\[x\].ts", ["t/[x].ts"]),
        ("[[]x].ts", ["t/[x].ts"]),
        ("A.TS", []),
        ("c.ts", ["s/c.ts"]),
        ("s", []),
    ],
)
def test_the_dialect_does_not_depend_on_what_is_installed(
    work: Path, glob: Search, pattern: str, expected: list[str]
) -> None:
    """Alternatives, classes, escapes and `**` mean the same with ripgrep and without."""
    plant(work, "a.ts", "b.tsx", "s/c.ts", "s/u/d.js", "t/[x].ts")
    assert sorted(glob(pattern).files) == expected


@pytest.mark.requirement("B88")
def test_hidden_and_ignored_files_are_listed_on_request(work: Path, glob: Search) -> None:
    """Also in hidden directories and with `.gitignore`."""
    plant(work, "a.log", ".h/b.py", ".env", "build/c.py", "d.py", ".git/config", ".git/hooks/x.py")
    (work / ".gitignore").write_text("*.log\nbuild/\n!.env\n")
    assert sorted(glob("**").files) == [".env", "d.py"]
    assert sorted(glob("**", hidden=True).files) == [".env", ".gitignore", ".h/b.py", "d.py"]
    assert sorted(glob("**", no_ignore=True).files) == ["a.log", "build/c.py", "d.py"]
    assert sorted(glob("*.py", hidden=True, no_ignore=True).files) == [
        ".h/b.py",
        "build/c.py",
        "d.py",
    ]
    assert glob("*", path="build").files == ["build/c.py"]
    assert glob("*", path=".h").files == [".h/b.py"]


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ("*.py\n!b.py", ["b.py", "s/c.txt", "t/s/e.txt"]),
        ("/s", ["a.py", "b.py", "t/s/e.txt"]),
        ("s/", ["a.py", "b.py"]),
        ("s/*\n!s/c.txt", ["a.py", "b.py", "s/c.txt", "t/s/e.txt"]),
        ("t/**/e.txt", ["a.py", "b.py", "s/c.txt", "s/d.py"]),
        ("# a.py\n\\#x\n\n a.py", ["a.py", "b.py", "s/c.txt", "s/d.py", "t/s/e.txt"]),
        ("*\n!*/\n!*.txt", ["s/c.txt", "t/s/e.txt"]),
        ("[ab].py   \r\n*.txt\r", ["s/d.py"]),
        ("[\n{a\na.py", ["b.py", "s/c.txt", "s/d.py", "t/s/e.txt"]),
    ],
)
@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"])
def test_rules_of_ignore_files(
    work: Path, glob: Search, rules: str, left: list[str], name: str
) -> None:
    """Negation, anchors, rules for directories only, and lines that mean nothing."""
    plant(work, "a.py", "b.py", "s/c.txt", "s/d.py", "t/s/e.txt", name)
    (work / name).write_text(rules)
    assert sorted(glob("**").files) == left


def test_ignore_files_in_subdirectories_have_priority(work: Path, glob: Search) -> None:
    """The nearest file decides, up to the repository root; .ignore beats .gitignore."""
    plant(work, "a.log", "s/a.log", "r/a.log", "r/b.tmp", "u/a.log", "r/.git/HEAD")
    (work / ".gitignore").write_text("*.log\n*.tmp\n")
    (work / "s/.gitignore").write_text("!a.log\n")
    (work / "u/.gitignore").write_text("!a.log\n")
    (work / "u/.ignore").write_text("*.log\n")
    assert sorted(glob("**").files) == ["r/a.log", "r/b.tmp", "s/a.log"]


@pytest.mark.parametrize("name", [".rgignore", ".ignore"])
def test_ignore_files_above_the_path_apply(work: Path, glob: Search, name: str) -> None:
    """A search of a subdirectory uses the same rules as a search of the whole workspace."""
    plant(work, "inner/kept", "inner/other", "inner/d/kept", "inner/.gitignore")
    (work / name).write_text("!kept\n")
    (work / "inner/.gitignore").write_text("*\n!d/\n")
    expected = ["inner/d/kept", "inner/kept"]
    assert sorted(glob("*", path="inner").files) == sorted(glob("**").files) == expected


@pytest.mark.requirement("S9", "S10")
@posix_only
def test_the_opened_workspace_is_searched(work: Path, tmp_path: Path, glob: Search) -> None:
    """A link in the place of a renamed workspace is not followed."""
    plant(work, "s/mine")
    plant(tmp_path, "outside/s/secret")
    work.rename(tmp_path / "renamed")
    work.symlink_to(tmp_path / "outside")
    assert glob("*").files == ["s/mine"]
    assert glob("*", path="s").files == ["s/mine"]


@pytest.mark.requirement("B88")
def test_the_note_states_whether_there_are_more_files(work: Path, glob: Search) -> None:
    """100 of 100 files are all of them; the next page starts after the last one."""
    plant(work, *(f"f{n:03}" for n in range(100)))
    seen = glob("*")
    assert (len(seen.files), seen.count, seen.truncated) == (100, 100, False)
    plant(work, "one-more")
    seen = glob("*")
    assert (len(seen.files), seen.count, seen.truncated) == (100, 101, True)
    assert seen.text.startswith("Showing 1-100 of 101 files; offset=100 for more.\n")
    rest = glob("*", offset=100)
    assert (len(rest.files), rest.truncated) == (1, False)
    assert set(seen.files) | set(rest.files) == {f"f{n:03}" for n in range(100)} | {"one-more"}
    assert "offset=200 is after the last result: there are 101 files" in glob("*", offset=200).text


@pytest.mark.requirement("S29")
def test_an_answer_is_bounded(work: Path, glob: Search) -> None:
    """Long names make an answer of fewer files, not a longer one."""
    folder = "/".join(["d" * 200] * 4)
    plant(work, *(f"{folder}/{n:03}{'x' * 150}" for n in range(100)))
    seen = glob("*")
    assert seen.truncated
    assert len(seen.text) < 70_000
    assert f"offset={len(seen.files)} for more" in seen.text


def test_a_pattern_can_be_absolute(work: Path, tmp_path: Path, glob: Search) -> None:
    """Absolute patterns work inside of the workspace, and are refused outside."""
    plant(work, "a.py", "s/b.py", "s/t/c.py")
    assert glob(f"{work}/*.py").files == ["a.py"]
    assert glob(f"{work}/s/**/*.py").files == ["s/b.py", "s/t/c.py"]
    assert glob(f"{work}/s/b.py").files == ["s/b.py"]
    for pattern in ("/*", "/etc/*", f"{tmp_path}/*", "//etc/*", f"{work}x/*"):
        with pytest.raises(ToolError, match="outside the workspace"):
            glob(pattern)


@pytest.mark.requirement("S8")
@pytest.mark.parametrize("pattern", ["../*", "a/../../*", "..", "**/../x", "/../etc/*"])
def test_a_pattern_cannot_contain_parent_references(work: Path, glob: Search, pattern: str) -> None:
    """Parent directories are never listed."""
    with pytest.raises(ToolError, match=r"contains '..'"):
        glob(pattern)


@pytest.mark.requirement("S8", "S9")
@posix_only
@pytest.mark.parametrize(
    "path", ["..", "a/../..", "/etc", "/", "link", "chain", "up", "\0", "", "x" * 5_000, "none"]
)
def test_no_path_leads_outside(work: Path, tmp_path: Path, glob: Search, path: str) -> None:
    """A path that leads out is refused, whether by its text or by a link."""
    plant(tmp_path, "secret/x")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "chain").symlink_to("link")
    (work / "up").symlink_to("..")
    with pytest.raises(ToolError):
        glob("*", path=path)


@pytest.mark.requirement("S9")
@posix_only
def test_links_are_neither_listed_nor_followed(work: Path, tmp_path: Path, glob: Search) -> None:
    """Nor are pipes; a link to a directory inside may be the path."""
    plant(tmp_path, "secret/x")
    plant(work, "d/a")
    for name, target in [("out", tmp_path / "secret"), ("d/loop", work), ("file", work / "d/a")]:
        (work / name).symlink_to(target)
    (work / "inside").symlink_to("d")
    os.mkfifo(work / "pipe")
    assert glob("**").files == ["d/a"]
    assert glob("*", path="inside").files == ["d/a"]


def test_the_path_must_be_a_directory(work: Path, glob: Search) -> None:
    """The message states what to pass instead."""
    plant(work, "a")
    with pytest.raises(ToolError, match="a is a file"):
        glob("*", path="a")


@pytest.mark.requirement("S7")
@pytest.mark.parametrize("pattern", ["--pre=x", "--help", "-V", "--", "-", "--files"])
def test_a_pattern_is_never_an_option(work: Path, glob: Search, pattern: str) -> None:
    """A dash in front is a character like others, in patterns and in names."""
    plant(work, "a", pattern, f"-d/{pattern}")
    assert sorted(glob(pattern).files) == sorted([pattern, f"-d/{pattern}"])
    assert glob("*", path="-d").files == [f"-d/{pattern}"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{a", "a '{' is not closed"),
        ("a}", "a '}' has no '{'"),
        ("{a,{b,c}}", "a '{' is inside another"),
        ("[a", "a '[' is not closed"),
        ("[z-a]", "the range z-a is empty"),
        ("a\\", "it ends with a backslash"),
        ("!", "is empty"),
        ("./", "is empty"),
    ],
)
def test_an_invalid_pattern_is_reported(
    work: Path, glob: Search, pattern: str, message: str
) -> None:
    """The error names the glob."""
    with pytest.raises(ToolError, match=message.replace("[", r"\[").replace("{", r"\{")) as refused:
        glob(pattern)
    assert pattern in str(refused.value)


EVIL = [
    "*" * 4_000, "**/" * 1_000 + "x", "*a" * 1_000, "?" * 4_000, "{" + "a," * 2_000 + "b}", "{*,**}" * 500,
    "[a-z]*" * 600, "(a+)+$", "(?:" * 500, "*?" * 1_500 + "b", "**" * 2_000, "{a*,*a}" * 400, ".*" * 1_000 + "/",
]  # fmt: skip


@pytest.mark.requirement("S28")
@pytest.mark.parametrize("pattern", EVIL, ids=range(len(EVIL)))
def test_a_pathological_pattern_does_not_hang(work: Path, glob: Search, pattern: str) -> None:
    """Globs with exponential backtracking elsewhere return an answer or time out."""
    plant(work, "a" * 200, "/".join(["a" * 20] * 30), "ab" * 100)
    try:
        assert glob(pattern[:4_096]).count >= 0
    except ToolError as given_up:
        assert str(given_up)  # noqa: PT017 - an answer is as good


@pytest.mark.requirement("S28")
@pytest.mark.parametrize("pattern", EVIL, ids=range(len(EVIL)))
def test_a_pathological_ignore_rule_does_not_hang(work: Path, glob: Search, pattern: str) -> None:
    """A repository can have any rule; `*a*a*a*b` takes hours where a matcher backtracks."""
    plant(work, "a" * 200, "/".join(["a" * 20] * 30), "x.log")
    (work / ".gitignore").write_text(f"{pattern[:4_096]}\n*.log\n!a*\n")
    assert "x.log" not in glob("**").files


@posix_only
def test_names_that_are_not_text_are_shown(work: Path, glob: Search) -> None:
    """Results stay valid JSON with single lines, whatever the file names."""
    Path(os.fsdecode(os.fsencode(work) + b"/a\xff.txt")).touch()
    plant(work, "b\nforged.txt")
    seen = glob("*.txt")
    assert sorted(seen.files) == ["a\ufffd.txt", "b\nforged.txt"]
    assert "\nforged" not in seen.text
    assert GlobObservation.model_validate_json(seen.model_dump_json()) == seen


def _swap(work: str, outside: str, ready: Any) -> None:
    """Put a link to outside in the place of a directory, and back, again and again."""
    inside, kept, link = Path(work, "d"), Path(work, "kept"), Path(work, "new")
    while True:
        inside.rename(kept)
        link.symlink_to(outside)
        link.rename(inside)
        inside.unlink()
        kept.rename(inside)
        ready.set()


@pytest.mark.requirement("S10")
@posix_only
def test_no_race_condition_leads_outside(work: Path, tmp_path: Path, glob: Search) -> None:
    """While a directory is swapped with a link to outside, no file of there is listed."""
    plant(work, *(f"d/f{n}" for n in range(30)))
    plant(tmp_path, *(f"outside/secret{n}" for n in range(30)))
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    swapper = spawn.Process(target=_swap, args=(str(work), str(tmp_path / "outside"), ready))
    swapper.start()
    try:
        assert ready.wait(BOUND)
        for _ in range(100):
            assert "secret" not in glob("**").text
    finally:
        swapper.kill()
        swapper.join()


@pytest.mark.requirement("B7", "B19")
async def test_the_tool_definition(work: Path) -> None:
    """It is read-only, idempotent, closed-world; created with or without a conversation."""
    plant(work, "a.py")
    state = SimpleNamespace(workspace=SimpleNamespace(working_dir=str(work)))
    (tool,) = GlobTool.create(state)
    notes = tool.annotations
    assert notes is not None
    assert (notes.read_only, notes.idempotent, notes.open_world) == (True, True, False)
    before = os.getcwd()  # noqa: PTH109 - as text
    outcome = await tool.as_function_tool().call(None, '{"pattern": "*.py"}')
    assert (outcome.status, outcome.output) == ("ok", "Showing 1-1 of 1 files.\na.py")
    assert os.getcwd() == before  # noqa: PTH109 - as text
    seen = outcome.value
    assert GlobObservation.model_validate_json(seen.model_dump_json()) == seen
    tool.close()


def test_a_shared_workspace_stays_open(work: Path, tmp_path: Path) -> None:
    """Further directories use absolute paths, in arguments and in results."""
    plant(tmp_path, "more/a")
    with ConfinedWorkspace(work, also=[tmp_path / "more"]) as workspace:
        (tool,) = GlobTool.create(workspace=workspace)
        seen = tool(GlobAction(pattern=f"{tmp_path}/more/*"))
        assert seen.files == [str((tmp_path / "more").resolve() / "a")]
        tool.close()
        assert workspace.roots[0].fd >= 0
    with pytest.raises(UserError, match="expected more than 0 seconds"):
        GlobExecutor(work, timeout=0)
