"""The grep tool: the same results with and without ripgrep, bounded, and only inside the workspace."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inline_snapshot import snapshot

import agents_tools
from agents_tools.builtin import GrepAction, GrepExecutor, GrepObservation, GrepTool
from agents_tools.builtin.grep import GrepMatch
from agents_tools.builtin.paths import ConfinedWorkspace
from agents_tools.builtin.search import search_context as running
from agents_tools.builtin.search.walk import walk
from agents_tools.errors import ToolCancelledError, ToolError, UserError
from agents_tools.events import ToolProgressEvent
from agents_tools.tool.context import call_of
from tests.waiting import BOUND, until

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs links and signals")
ENGINES = [
    "python",
    pytest.param("ripgrep", marks=pytest.mark.external("rg")),
]
Search = Callable[..., GrepObservation]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def grep(work: Path, engine: Any) -> Iterator[Search]:
    executor = GrepExecutor(work, engine=engine)
    yield lambda pattern, **more: executor(GrepAction(pattern=pattern, **more))
    executor.close()


def plant(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def lines_of(seen: GrepObservation) -> list[tuple[str, int, str]]:
    return [(one.path, one.line_number, one.line) for one in seen.matches]


# --- what is found


@pytest.mark.requirement("B89")
def test_matching_lines_have_path_and_number(work: Path, grep: Search) -> None:
    """The search is case-sensitive, and results are sorted by path."""
    plant(work, {"src/b.py": "import os\nFoo = 1\nfoo = 2\n", "a.txt": "no\nfoo foo\n"})
    seen = grep("foo")
    assert lines_of(seen) == [("a.txt", 2, "foo foo"), ("src/b.py", 3, "foo = 2")]
    assert (seen.count, seen.files, seen.truncated) == (2, ["a.txt", "src/b.py"], False)
    assert seen.text == snapshot("""\
Showing 1-2 of 2 matching lines.

a.txt
2:foo foo

src/b.py
3:foo = 2\
""")
    assert grep("foo", ignore_case=True).count == 3


def test_files_and_counts(work: Path, grep: Search) -> None:
    """These output modes return paths, or the number of matching lines of each file."""
    plant(work, {"b.py": "x\nx\n", "a.py": "x\n", "c.py": "y\n"})
    files = grep("x", output="files")
    assert files.text == "Showing 1-2 of 2 files with matching lines.\na.py\nb.py"
    assert (files.files, files.count) == (["a.py", "b.py"], 2)
    counts = grep("x", output="count")
    assert counts.counts == {"a.py": 1, "b.py": 2}
    assert counts.text == "Showing 1-2 of 2 files with matching lines.\n1\ta.py\n2\tb.py"


@pytest.mark.requirement("B89")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("foo|bar", [1, 2, 4]),
        (r"\d+", [3]),
        ("foo+", [1, 4]),
        ("(foo)", [1, 4]),
        (r"^\s+x", [5]),
        (r"\bfoo\b", [1]),
        (r"(?<name>bar)", [2]),
        ("-e", [6]),
        (r"^$", [7]),
    ],
)
def test_the_dialect_does_not_depend_on_what_is_installed(
    work: Path, grep: Search, pattern: str, expected: list[int]
) -> None:
    """The syntax is always extended; what an old ripgrep does not support is searched without it."""
    plant(work, {"a": "a foo\nbar\n12\nfooo\n  x\n-e\n\n"})
    assert [one.line_number for one in grep(pattern).matches] == expected


def test_the_path_can_be_a_file(work: Path, grep: Search) -> None:
    """It can be absolute, or a file that is otherwise ignored."""
    plant(work, {".gitignore": "a.log\n", "a.log": "foo\n", "b.log": "foo\n"})
    assert lines_of(grep("foo", path="a.log")) == [("a.log", 1, "foo")]
    assert lines_of(grep("foo", path=str(work / "a.log"))) == [("a.log", 1, "foo")]
    assert grep("bar", path="a.log").text == "No line of a.log matches: bar"


def test_the_path_can_be_a_directory(work: Path, grep: Search) -> None:
    """Ignore rules of parent directories apply; `include` is relative to the path."""
    plant(work, {".gitignore": "*.log\n!.env\n", "s/a.py": "x", "s/t/a.py": "x", "s/b.log": "x"})
    plant(work, {"s/.env": "x", "s/.other": "x", "a.py": "x"})
    assert grep("x", path="s").files == ["s/.env", "s/a.py", "s/t/a.py"]
    assert grep("x", path="s", include="./*.py").files == ["s/a.py"]
    assert grep("x", path="s", include="t/*").files == ["s/t/a.py"]
    assert grep("x", path="s", include="!*.py", no_ignore=True, hidden=True).files == [
        "s/.env",
        "s/.other",
        "s/b.log",
    ]


def test_a_literal_is_not_a_pattern(work: Path, grep: Search) -> None:
    """`literal` escapes every character."""
    plant(work, {"a": "f(x) + [1]*\nfx\n"})
    assert grep("f(x) + [1]*", literal=True).count == 1
    assert grep("F(X", literal=True, ignore_case=True).count == 1
    assert grep(r"\n", literal=True).count == 0


def test_lines_around_a_match(work: Path, grep: Search) -> None:
    """Overlapping contexts are merged; a gap between them is marked."""
    plant(work, {"a": "".join(f"{n}\n" for n in range(1, 21)).replace("4\n", "x\n")})
    seen = grep("x", context=1)
    assert seen.matches[0] == GrepMatch(
        path="a", line_number=4, line="x", before=["3"], after=["5"]
    )
    assert seen.text == snapshot("""\
Showing 1-2 of 2 matching lines.

a
3-3
4:x
5-5
--
13-13
14:1x
15-15\
""")
    seen = grep("^[67]$", before=2, after=0)
    assert seen.matches[0].before == ["x", "5"]
    assert seen.matches[1].before == ["5", "6"]
    assert seen.matches[1].after == []


def test_the_lines_around_may_be_far_from_other_matches(work: Path, grep: Search) -> None:
    """Line numbers and context are right when most of a large file is skipped."""
    lines = [f"line {n}" for n in range(1, 200_001)]
    lines[150_000 - 1] = "needle"
    plant(work, {"a": "\n".join(lines)})
    for context in (0, 2):
        (match,) = grep("needle", context=context).matches
        assert match.line_number == 150_000
        assert match.before == ["line 149998", "line 149999"][2 - context :]
        assert match.after == ["line 150001", "line 150002"][:context]


# --- pages and bounds


def test_pages_follow_each_other(work: Path, grep: Search) -> None:
    """Pages share one order and skip nothing; the note states how to continue."""
    plant(work, {f"f{n:02}": "x 1\nx 2\nx 3\n" for n in range(20)})
    whole = lines_of(grep("x", limit=1_000))
    assert len(whole) == 60
    pages = [grep("x", limit=7, offset=at) for at in range(0, 60, 7)]
    assert [line for page in pages for line in lines_of(page)] == whole
    assert pages[0].text.startswith("Showing 1-7 of 60 matching lines; offset=7 for more.")
    assert [page.truncated for page in pages] == [True] * 8 + [False]
    assert grep("x", limit=60).truncated is False
    assert "offset=60 is after the last result: there are 60" in grep("x", offset=60).text
    files = [grep("x", output="files", limit=6, offset=at).files for at in range(0, 20, 6)]
    assert [name for page in files for name in page] == [f"f{n:02}" for n in range(20)]


@pytest.mark.requirement("S29")
def test_an_answer_is_bounded(work: Path, grep: Search) -> None:
    """100,000 long matching lines return an answer of a readable size."""
    plant(work, {"a": ("x" * 90 + "\n") * 100_000})
    seen = grep("x", limit=1_000, context=2)
    assert seen.count == 100_000
    assert 100 < len(seen.matches) < 1_000
    assert seen.truncated
    assert len(seen.text) < 80_000
    assert f"offset={len(seen.matches)} for more" in seen.text
    further = grep("x", offset=len(seen.matches), limit=1)
    assert further.matches[0].line_number == len(seen.matches) + 1


@pytest.mark.requirement("S29")
def test_a_long_line_is_cut_around_what_matches(work: Path, grep: Search) -> None:
    """The part that matches is shown."""
    plant(work, {"a": "start " + "x" * 100_000 + " needle " + "y" * 100_000 + "\nz\n"})
    (match,) = grep("needle").matches
    assert "needle" in match.line
    assert match.line.startswith("…")
    assert match.line.endswith("… [200,014 characters]")
    assert len(match.line) < 500
    (match,) = grep("^start").matches
    assert match.line.startswith("start xxx")
    assert len(grep("z", before=1).matches[0].before[0]) < 500


@pytest.mark.requirement("S29")
def test_a_line_that_never_ends_is_searched_in_parts(work: Path) -> None:
    """A line of many MiB is one line, but is not loaded as a whole."""
    plant(work, {"a": b"a\n" + b"x" * (40 << 20) + b"needle\nlast\n"})
    executor = GrepExecutor(work, engine="python")
    assert [m.line_number for m in executor(GrepAction(pattern="needle")).matches] == [2]
    assert [m.line_number for m in executor(GrepAction(pattern="x|last")).matches] == [2, 3]
    executor.close()


@pytest.mark.requirement("S29")
def test_a_pause_of_the_machine_does_not_make_a_pattern_slow(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short test of the pattern that took long is repeated before a long line is refused."""
    plant(work, {"a": b"x" * (20 << 20) + b"needle\n"})
    executor = GrepExecutor(work, engine="python")
    pauses = iter([0.0, 0.003])
    passed = 0.0

    def thread_time() -> float:
        nonlocal passed
        passed += next(pauses, 0.0)
        return passed

    monkeypatch.setattr("time.thread_time", thread_time)
    assert [m.line_number for m in executor(GrepAction(pattern="nee.le")).matches] == [1]
    executor.close()


# --- what is read


@pytest.mark.parametrize(
    ("content", "pattern", "expected"),
    [
        (b"foo\r\nbar\r\n\r\n", "foo$", ["foo"]),
        (b"foo\r\nbar\r\n\r\n", "^$", [""]),
        (b"foo\r\n", "foo.", []),
        (b"\xef\xbb\xbffoo\n", "^foo", ["foo"]),
        ("\ufefffoo é\n".encode("utf-16-le"), "^foo é$", ["foo é"]),
        ("\ufeffbar\nfoo".encode("utf-16-be"), "^foo", ["foo"]),
        (b"f\xffo\n", "f.o", []),
        (b"\xfffoo\n", "foo", ["\ufffdfoo"]),
        (b"\xfffoo\n", "^foo", []),
        (b"a\xc3\n", r"\S$", []),
        (b"a\xc3\n", r"[^x]$|(?s:.)$|\s$", []),
        (b"\xc3a\xc3\n", r"^[^x]|^\b", []),
        (b"$\xc3\n", r"[$]|\$$", ["$\ufffd"]),
        (b"foo\xc3\n", r"^f.o\b", ["foo\ufffd"]),
        (b"foo", "foo$", ["foo"]),
        (b"", "^$", []),
        (b"\n", "^$", [""]),
        (b"foo\n" * 3 + b"\0", "foo", []),
    ],
)
def test_line_ends_encodings_and_nuls(
    work: Path, grep: Search, content: bytes, pattern: str, expected: list[str]
) -> None:
    """Line ends, byte order marks, invalid characters and NULs are handled the same by both engines."""
    plant(work, {"a": content})
    assert [one.line for one in grep(pattern).matches] == expected


def test_a_binary_file_as_the_path_is_reported(work: Path, grep: Search) -> None:
    """An empty result would suggest that nothing matches."""
    plant(work, {"a.bin": b"foo\n\0"})
    assert grep("foo").count == 0
    with pytest.raises(ToolError, match=r"a\.bin is a binary file"):
        grep("foo", path="a.bin")


@posix_only
def test_special_files_are_skipped(work: Path, grep: Search) -> None:
    """A pipe without a writer does not block the search; as the path it is refused."""
    plant(work, {"a": "x\n"})
    os.mkfifo(work / "pipe")
    assert grep("x").files == ["a"]
    with pytest.raises(ToolError, match="neither a file nor a directory"):
        grep("x", path="pipe")


@posix_only
def test_names_that_are_not_text_are_shown(work: Path, grep: Search) -> None:
    """Results stay valid JSON with single lines, whatever the file names."""
    (Path(os.fsdecode(os.fsencode(work) + b"/a\xff.txt"))).write_text("x\n")
    plant(work, {"b\n9:forged": "x\n", "-e": "x\n", "--help": "x\n"})
    seen = grep("x")
    assert seen.files == ["--help", "-e", "a\ufffd.txt", "b\n9:forged"]
    assert "\n9:forged" not in seen.text
    assert GrepObservation.model_validate_json(seen.model_dump_json()) == seen


@pytest.mark.requirement("S19")
@posix_only
@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\x1bb", "a\u2028b", "a\x85b"])
def test_a_name_cannot_make_two_lines_of_one(work: Path, grep: Search, name: str) -> None:
    """This holds in results and in errors about a file that cannot be searched."""
    plant(work, {name: "foo\n", f"{name}.bin": b"\0"})
    assert len(grep("foo", output="files").text.splitlines()) == 2
    assert len(grep("bar", path=name).text.splitlines()) == 1
    with pytest.raises(ToolError) as refused:
        grep("foo", path=f"{name}.bin")
    assert len(str(refused.value).splitlines()) == 1


# --- too many ignore rules


@pytest.mark.requirement("S28", "S29")
def test_a_file_of_too_many_rules_is_read_in_part(work: Path, grep: Search) -> None:
    """Rules after the limit are ignored, and no rule is cut in half; both engines agree."""
    plant(work, {"a.log": "foo\n", "b.txt": "foo\n", "s/.gitignore": "x\n" * 50_000 + "*\n"})
    plant(work, {".gitignore": "*.log\n" + "# a comment\n" * 50_000, "s/c": "foo\n"})
    rules = b"*.log\n" + b"#" * ((1 << 18) - 8) + b"\n*.none\n"
    (work / ".gitignore").write_bytes(rules)
    assert grep("foo", output="files").files == ["b.txt", "s/c"]


@pytest.mark.requirement("S29")
def test_rules_of_many_directories_are_bounded_together(work: Path, grep: Search) -> None:
    """Each directory can add rules, but the number that applies to a file is limited."""
    folder = ""
    for number in range(20):
        rules = "".join(f"{number}n{at}*x[a-z]\n" for at in range(1_500))
        plant(work, {f"{folder}.gitignore": rules, f"{folder}file": "foo\n"})
        folder += "d/"
    assert grep("foo", limit=1_000).count == 20


@pytest.mark.requirement("S28")
def test_the_timeout_is_checked_between_rules(work: Path) -> None:
    """Rules are neither read nor applied after the search has ended."""
    plant(work, {".gitignore": "".join(f"n{n}*x\n" for n in range(2_000)), "a": "foo\n"})
    looked: list[int] = []

    def check() -> None:
        looked.append(1)
        if len(looked) > 100:
            raise ToolError("over")

    with ConfinedWorkspace(work) as workspace, pytest.raises(ToolError, match="over"):
        list(walk(workspace.roots[0], ".", hidden=False, no_ignore=False, check=check))


# --- patterns


BAD = ["(", "[a", r"\d{", "a{3,1}", "(?=a)", r"\1", "*a", r"a\qb", "(?P<x>a)(?P<x>b)", "\\"]
UNFIT = [
    "a\nb",
    r"a\nb",
    r"\x0a",
    r"\u{a}",
    r"a\r",
    r"\Aa",
    r"a\z",
    "(?-m)^a",
    "(?i-m:a)",
    "a\0b",
    "((a{10}){100}){10}",
    "(?:ab|c{5,}){2000}",
]


@pytest.mark.parametrize("pattern", BAD + UNFIT)
def test_an_invalid_pattern_is_reported_with_its_position(work: Path, pattern: str) -> None:
    """Both engines report the same error and position, and search nothing."""
    plant(work, {"a": "a\nb\n"})
    said: list[str] = []
    for engine in ("python", "auto"):
        executor = GrepExecutor(work, engine=engine)  # type: ignore[arg-type]
        with pytest.raises(ToolError) as refused:
            executor(GrepAction(pattern=pattern))
        said.append(str(refused.value))
        executor.close()
    assert said[0] == said[1]
    assert ("^" in said[0]) if pattern in BAD else ("at character" in said[0])


def test_the_error_for_an_invalid_pattern(work: Path, grep: Search) -> None:
    """The model reads the position and the reason."""
    with pytest.raises(ToolError) as refused:
        grep("foo(bar")
    assert str(refused.value) == snapshot("""\
The pattern is not valid: regex parse error:
    foo(bar
       ^
error: unclosed group\
""")
    with pytest.raises(ToolError) as refused:
        grep(r"foo\nbar")
    assert str(refused.value) == snapshot(
        "The pattern 'foo\\nbar' is not supported at character 4: it never matches, since lines are searched one by one, without their ends."
    )
    with pytest.raises(ToolError, match=r"glob '\{a'.* is not valid: a '\{' is not closed"):
        grep("x", include="{a")


NESTED = ["(a+)+$", "(a|a)*$", "(a*)*b", "(a|aa)+$", "(.*a){20}", "([a-zA-Z]+)*$", "(.*)*x", "(x+x+)+y"]  # fmt: skip
EVIL = [
    *NESTED, *[f"(?i){one}" for one in NESTED], *[f"^{one}" for one in NESTED],
    "(a?){50}a{50}", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"\w{1000}", r"(?:\w{50}){50}", "(?:[a-z]{30}){30}q",
    r"(\pL{100}){10}", "(a{1000}){1000}", "((((a{10}){10}){10}){10}){10}", "[^b]{5000}z", "(?:a?){1000}b",
    "(?:.{0,100}a){40}c", r"\pL{2000}", r"(?:\w\W?){300}#", "(?:(?:a|b)?){2000}c", "(?s).{3000}z",
    r"(?:\b\w+\b ?){100}%", "a{999999999}", "a{99999999999999999999}", "(" * 300, "(" * 3000 + ")" * 3000,
    "[" * 500, "x" * 10_000, "a|" * 4_000, "(?:a|b|ab)*c", "((a*)*)*$", r"(\d+)*\D",
]  # fmt: skip


@pytest.mark.requirement("S28")
@pytest.mark.parametrize("at", range(0, len(EVIL), 5))
def test_a_pathological_pattern_does_not_hang(work: Path, engine: Any, at: int) -> None:
    """Patterns with catastrophic backtracking return an answer or time out."""
    plant(work, {"a": "a" * 30_000 + "!\n" + "abc def " * 5_000 + "\n" + "x" * 28 + "\n"})
    plant(work, {"b": ("a" * 80 + "\n") * 3_000})
    executor = GrepExecutor(work, engine=engine, timeout=1)
    for pattern in EVIL[at : at + 5]:
        for action in (
            GrepAction(pattern=pattern),
            GrepAction(pattern="!", include=pattern[:4_096]),
        ):
            try:
                assert executor(action).count >= 0
            except ToolError as given_up:
                assert str(given_up)  # noqa: PT017 - an answer is as good
    executor.close()


# --- ripgrep as a program


@pytest.mark.requirement("S7")
@pytest.mark.parametrize(
    "pattern", ["--pre=./evil.sh", "--help", "--version", "-V", "-f/etc/passwd", "-", "--"]
)
def test_a_pattern_is_never_an_option(work: Path, grep: Search, pattern: str) -> None:
    """Patterns, globs and directory names are never parsed as options."""
    plant(
        work, {"a": f"x {pattern} y\n", "evil.sh": "#!/bin/sh\ntouch hit\n", f"{pattern}d/b": "x"}
    )
    (work / "evil.sh").chmod(0o755)
    assert grep(pattern, literal=True, include="a").count == 1
    assert grep("x", include=pattern).count == 0
    assert grep("x", path=f"{pattern}d").count == 1
    assert not (work / "hit").exists()


@pytest.mark.requirement("S7")
@posix_only
def test_ripgrep_configuration_is_ignored(work: Path, grep: Search, monkeypatch: Any) -> None:
    """Options of the user or the repository do not affect the search."""
    plant(work, {"a": "foo\n", "rc": "--invert-match\n--files\n", ".ripgreprc": "--invert-match\n"})
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(work / "rc"))
    assert grep("foo").files == ["a"]


@pytest.mark.requirement("S7")
@posix_only
@pytest.mark.parametrize("linked", [False, True])
def test_ripgrep_is_never_run_from_the_workspace(
    work: Path, tmp_path: Path, monkeypatch: Any, linked: bool
) -> None:
    """A file that a tool wrote is not executed, even if PATH leads there through a link."""
    plant(work, {"bin/rg": "#!/bin/sh\ntouch hit\n", "a": "foo\n"})
    (work / "bin/rg").chmod(0o755)
    (tmp_path / "link").symlink_to(work / "bin")
    monkeypatch.setenv("PATH", f"bin:.::{tmp_path / 'link' if linked else work / 'bin'}")
    monkeypatch.chdir(work)
    executor = GrepExecutor(work)
    assert executor.program is None
    assert executor(GrepAction(pattern="foo")).files == ["a"]
    assert not (work / "hit").exists()
    executor.close()
    with pytest.raises(UserError, match="ripgrep is not installed"):
        GrepExecutor(work, engine="ripgrep")


def test_an_unknown_engine_is_refused(work: Path) -> None:
    """Mistakes of the programmer are reported when the tool is created."""
    with pytest.raises(UserError, match="The engine 'ack' is unknown"):
        GrepExecutor(work, engine="ack")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="more than 0"):
        GrepExecutor(work, timeout=0)


# --- the end of a search


@pytest.fixture
def sleeper(tmp_path: Path, monkeypatch: Any) -> Path:
    """Replace ripgrep by a program that starts another one and does not end."""
    folder = tmp_path / "bin"
    plant(
        folder,
        {
            "rg": f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/made\nmv {tmp_path}/made {tmp_path}/pid\nwait\n"
        },
    )
    (folder / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path / "pid"


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"


def started_by(sleeper: Path) -> int:
    """Wait until the next program has started, and return the processes that it started."""
    until(sleeper.exists)
    pid = int(sleeper.read_text())
    sleeper.unlink()
    return pid


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - it is looked at
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


@posix_only
def test_an_interrupt_ends_ripgrep_and_its_processes(work: Path, sleeper: Path) -> None:
    """The process group is killed, and the call ends at once."""
    executor = GrepExecutor(work, engine="ripgrep")
    thread, raised = in_thread(lambda: executor(GrepAction(pattern="x")))
    until(sleeper.exists)
    executor.interrupt()
    thread.join(BOUND)
    assert isinstance(raised[0], ToolCancelledError)
    until(lambda: gone(int(sleeper.read_text())))
    executor.close()


@pytest.mark.requirement("S28")
@posix_only
def test_a_search_that_exceeds_its_timeout_is_ended(work: Path, sleeper: Path) -> None:
    """No process is left behind."""
    executor = GrepExecutor(work, engine="ripgrep", timeout=0.5)
    with pytest.raises(ToolError, match=r"takes too long \(more than 0\.5 seconds\)"):
        executor(GrepAction(pattern="x"))
    until(lambda: not sleeper.exists() or gone(int(sleeper.read_text())))
    executor.close()


def test_an_interrupt_ends_a_search_without_ripgrep(work: Path) -> None:
    """The current file is not read to its end."""
    with (work / "a").open("wb") as file:
        for _ in range(200):
            file.write(b"line of text\n" * 80_000)
    executor = GrepExecutor(work, engine="python")
    begun = threading.Event()
    original = running.SearchContext.check

    def check(self: running.SearchContext) -> None:
        begun.set()
        original(self)

    running.SearchContext.check = check  # type: ignore[method-assign] # to know that it has begun
    try:
        thread, raised = in_thread(lambda: executor(GrepAction(pattern=r"(\w+ ){20}x")))
        assert begun.wait(BOUND)
        executor.interrupt()
        thread.join(BOUND)
    finally:
        running.SearchContext.check = original  # type: ignore[method-assign]
    assert isinstance(raised[0], ToolCancelledError)
    executor.close()


@posix_only
async def test_only_the_cancelled_call_ends(work: Path, sleeper: Path) -> None:
    """Concurrent calls of one tool are independent."""
    import asyncio

    tool = GrepTool.create(working_dir=work, engine="ripgrep")[0]
    call = asyncio.create_task(tool.as_function_tool().call(None, '{"pattern": "x"}'))
    first = await asyncio.to_thread(started_by, sleeper)
    other = asyncio.create_task(tool.as_function_tool().call(None, '{"pattern": "y"}'))
    second = await asyncio.to_thread(started_by, sleeper)
    call.cancel()
    await asyncio.wait([call], timeout=BOUND)
    await asyncio.to_thread(until, lambda: gone(first))
    assert not gone(second)
    assert not other.done()
    other.cancel()
    await asyncio.wait([other], timeout=BOUND)
    await asyncio.to_thread(until, lambda: gone(second))
    tool.close()


async def test_a_call_that_was_cancelled_before_its_start_does_not_search(
    work: Path, engine: Any
) -> None:
    """Its interrupt ends no other call, and the call itself ends when it starts."""
    import asyncio

    from agents_tools.tool import current_context

    plant(work, {"a": "foo\n"})
    executor = GrepExecutor(work, engine=engine)

    @agents_tools.function_tool
    def late() -> str:
        context = current_context()
        assert context is not None
        call_of(context).cancel()
        executor.interrupt()
        return executor(GrepAction(pattern="foo")).text

    outcome = await asyncio.wait_for(late.call(None, "{}"), BOUND)
    assert isinstance(outcome.error, ToolCancelledError)
    assert executor(GrepAction(pattern="foo")).count == 1
    executor.close()


async def test_progress_is_reported_while_a_search_runs(
    work: Path, engine: Any, monkeypatch: Any
) -> None:
    """Subscribers see how far a long search is."""
    monkeypatch.setattr(running, "EVERY", 0.0)
    plant(work, {f"f{n}": "x\n" for n in range(5)})
    tool = GrepTool.create(working_dir=work, engine=engine)[0]
    async with agents_tools.listen() as heard:
        await tool.as_function_tool().call(None, '{"pattern": "x"}')
    assert any(isinstance(event, ToolProgressEvent) for event in heard.events)
    tool.close()


# --- nothing outside


OUTSIDE = ["..", "../secret", "a/../../secret", "/etc/passwd", "/", "link", "link/x", "chain", "up", "\0", "", "x" * 5_000]  # fmt: skip


@pytest.mark.requirement("S8", "S9")
@posix_only
@pytest.mark.parametrize("path", OUTSIDE)
def test_paths_outside_the_workspace_are_refused(
    work: Path, tmp_path: Path, grep: Search, path: str
) -> None:
    """This holds for relative paths and for links."""
    plant(tmp_path, {"secret/x": "secret\n"})
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "chain").symlink_to("link")
    (work / "up").symlink_to("..")
    with pytest.raises(ToolError):
        grep("secret", path=path)


@pytest.mark.requirement("S9")
@posix_only
def test_links_are_not_followed(work: Path, tmp_path: Path, grep: Search) -> None:
    """Links to outside and circular links are ignored, as are ignore files behind a link."""
    plant(tmp_path, {"secret/x": "foo\n", "rules": "*\n"})
    plant(work, {"d/a": "foo\n"})
    for name, target in [
        ("out", tmp_path / "secret"), ("file", tmp_path / "secret/x"), ("d/loop", work), ("in", work / "d/a"),
        ("gone", work / "nothing"),
    ]:  # fmt: skip
        (work / name).symlink_to(target)
    (work / "d/.ignore").symlink_to(tmp_path / "rules")
    assert GrepExecutor(work, engine="python")(GrepAction(pattern="foo")).files == ["d/a"]
    (work / "d/.ignore").unlink()
    assert grep("foo").files == ["d/a"]
    assert lines_of(grep("foo", path="in")) == [("d/a", 1, "foo")]


def _swap(work: str, outside: str, ready: Any) -> None:
    """Swap a directory and a link to outside, again and again."""
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
def test_no_race_condition_leads_outside(work: Path, tmp_path: Path, grep: Search) -> None:
    """While a directory is swapped with a link to outside, no file of there is shown."""
    plant(work, {f"d/f{n}": "mine needle\n" for n in range(30)})
    plant(tmp_path, {f"outside/f{n}": "secret needle\n" for n in range(30)})
    plant(tmp_path, {"outside/only": "secret needle\n"})
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    swapper = spawn.Process(target=_swap, args=(str(work), str(tmp_path / "outside"), ready))
    swapper.start()
    try:
        assert ready.wait(BOUND)
        for output in ("content", "files", "count") * 30:
            seen = grep("needle", output=output)
            assert "secret" not in seen.model_dump_json()
            assert "only" not in seen.text
    finally:
        swapper.kill()
        swapper.join()


# --- the tool


@pytest.mark.requirement("B7", "B19")
async def test_the_tool_definition(work: Path) -> None:
    """It is read-only, idempotent, closed-world; created with or without a conversation."""
    plant(work, {"a.py": "foo\n"})
    state = SimpleNamespace(workspace=SimpleNamespace(working_dir=str(work)))
    (tool,) = GrepTool.create(state)
    notes = tool.annotations
    assert notes is not None
    assert (notes.read_only, notes.idempotent, notes.open_world) == (True, True, False)
    before = os.getcwd()  # noqa: PTH109 - as text
    outcome = await tool.as_function_tool().call(None, '{"pattern": "fo+", "include": "*.py"}')
    assert outcome.status == "ok"
    assert outcome.output == "Showing 1-1 of 1 matching lines.\n\na.py\n1:foo"
    assert os.getcwd() == before  # noqa: PTH109 - as text
    seen = outcome.value
    assert GrepObservation.model_validate_json(seen.model_dump_json()) == seen
    outcome = await tool.as_function_tool().call(None, '{"pattern": "("}')
    assert "unclosed group" in str(outcome.output)
    tool.close()


def test_a_shared_workspace_stays_open(work: Path, tmp_path: Path, engine: Any) -> None:
    """Further directories use absolute paths, in arguments and in results."""
    plant(tmp_path, {"more/a": "foo\n"})
    with ConfinedWorkspace(work, also=[tmp_path / "more"]) as workspace:
        (tool,) = GrepTool.create(workspace=workspace, engine=engine)
        seen = tool(GrepAction(pattern="foo", path=str(tmp_path / "more")))
        assert seen.files == [str((tmp_path / "more").resolve() / "a")]
        again = tool(GrepAction(pattern="foo", path=seen.files[0]))
        assert again.files == seen.files
        tool.close()
        assert workspace.roots[0].fd >= 0
    executor = GrepExecutor(work)
    assert GrepTool.create(executor=executor)[0].executor is executor
    executor.close()
