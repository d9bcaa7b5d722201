"""Laws of the search tools: both engines, and ripgrep itself, find the same in any tree."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from agents_tools.builtin import GlobAction, GlobExecutor, GrepAction, GrepExecutor
from agents_tools.builtin.search.patterns import PatternError, path_filter
from agents_tools.errors import ToolError

needs_ripgrep = pytest.mark.external("rg")

Tree = dict[tuple[str, ...], bytes]

NAMES = [
    "a", "b.py", "B.PY", "c d.txt", "-e", "--pre=x", "--help", "é.py", "日本", "[x]", "{a,b}", "!n", "#c",
    "a*b", "q?", "x\\y", ".h", ".env", ".git", "build", "lib", "x.log", "y.tmp.log", " s ",
]  # fmt: skip
DIRECTORIES = [
    "build",
    "lib",
    "src",
    "é d",
    "-d",
    ".hid",
    "[d]",
    "{d}",
    "a b",
    "node",
    "doc",
    ".git",
]
RULES = [
    "*.log", "!x.log", "build/", "/build", "build", "lib/*", "!lib/b.py", "**/doc", "doc/**", "/**/a", "a/**/b.py",
    "src/", "!.env", "!.h", "!.hid", ".*", "*.p?", "[a-c]*", "[!a-c]*", "\\!n", "\\#c", "# comment", "", "  ",
    "*.{py,log}", "\\{a,b\\}", "\\[x\\]", "é*", "??", "?.py", "c\\ d.txt", "-e", "*", "!*/", "!*.py", "/src/lib/",
    "lib/**/x.log", "[", "a[", "x.log   ", "node\\", "*.PY", "**", "!src", "a*b", "/*", "!/src", "doc/*.py", "日*",
    "**/", "/", "!", "**/lib/**", "**foo", "a**b", "{build,lib}/", "[[]x]", "b.py/",
]  # fmt: skip
CONTENTS = [
    b"", b"foo\n", b"foo", b"\n", b"foo\r\nbar\r\n\r\n", b"a foo b\nbar\n\nFOO foo\n", b"\xef\xbb\xbffoo\n",
    b"foo\0\n", b"foo\n" * 5 + b"\0", b"\xff\xfe" + "foo é\nbar\n".encode("utf-16-le"),
    b"\xfe\xff" + "bar\nfoo".encode("utf-16-be"), b"fo\xffo\nfoo\xff\n\xfffoo\n", "é foo\nÉ\n日本 foo\n".encode(), b"foo\xc3\na\xffo\n",
    b"x = 1\n  y = 22\nreturn foo_bar(x)\n", b"-e\n--pre=x\n[x]\n", b"tab\tfoo\n \nfoo ", b"foo\rbar\n",
]  # fmt: skip
PATTERNS = [
    "foo", "^foo", "foo$", "^foo$", "^$", ".", "^.$", "fo+", "foo|bar", "\\d+", "(foo)", "\\bfoo\\b", "\\w+_\\w+",
    "é", "(?i)É", "[^f]oo", "\\s", "^\\s*$", "-e", "--pre=x", "[[:alpha:]]+ =", "o.b", "f.o", "\\pL{3}", "x*", "$",
    "(?-u:\\w)oo", "bar$|^-", "a{2,}", "2{2}", "\\[x\\]",
    "\\S$", "^\\S", "[^x]$", "^[^x]", "\\b$", "o\\b", "(?s).$", "(^|x)o", "[$^]|o$",
]  # fmt: skip
GLOBS = [
    "*.py", "**/*.py", "*", "**", "lib/*", "src/**", "**/lib/**", "*.{py,log}", "{src,lib}/**/*", "[a-c]*", "[!a-c]*",
    "./*", "./*.py", "/*", "é*", "\\[x\\]", "-*", "--*", "!*.py", "!lib/", "build/", "??", ".*", "**/.*", "q[?]",
    "*\\?", "{a,b}", "\\{a,b\\}", "a*b", "x\\\\y", "日*", "src/*/b.py", "**/b.py",
]  # fmt: skip


def trees() -> st.SearchStrategy[Tree]:
    directory = st.lists(st.sampled_from(DIRECTORIES), max_size=3).map(tuple)
    plain = st.tuples(directory, st.sampled_from(NAMES)).map(lambda pair: (*pair[0], pair[1]))
    files = st.dictionaries(plain, st.sampled_from(CONTENTS), max_size=14)
    rules = st.lists(st.sampled_from(RULES), max_size=5).map(
        lambda lines: "\n".join(lines).encode()
    )
    name = st.sampled_from([".gitignore", ".gitignore", ".ignore", ".rgignore"])
    ignored = st.tuples(directory, name).map(lambda pair: (*pair[0], pair[1]))
    exclude = st.dictionaries(st.just((".git", "info", "exclude")), rules, max_size=1)
    return st.tuples(files, st.dictionaries(ignored, rules, max_size=3), exclude).map(
        lambda parts: {**parts[0], **parts[1], **parts[2]}
    )


@contextmanager
def planted(tree: Tree) -> Generator[Path]:
    """Make a tree of files; what clashes with an earlier name is left out."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "work")
        root.mkdir()
        for parts, content in tree.items():
            path = root.joinpath(*parts)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError:
                continue
        yield root


def asked(root: Path, *options: str) -> list[str]:
    """Let ripgrep answer, told as little as possible."""
    command = ["rg", "--no-config", "--no-require-git", "--no-messages", "--null", *options]
    run = subprocess.run(command, cwd=root, capture_output=True, check=False)  # noqa: S603 - of this file
    return [part.decode() for part in run.stdout.split(b"\0") if part]


def listed(root: Path, **action: Any) -> list[str]:
    executor = GlobExecutor(root)
    try:
        return sorted(executor(GlobAction(limit=1_000, **action)).files)
    finally:
        executor.close()


def with_lines(root: Path, engine: str, **action: Any) -> list[str]:
    executor = GrepExecutor(root, engine=engine)  # type: ignore[arg-type]
    try:
        return executor(GrepAction(pattern="^", output="files", limit=1_000, **action)).files
    finally:
        executor.close()


def found(root: Path, engine: str, **action: Any) -> list[tuple[str, int, str]]:
    executor = GrepExecutor(root, engine=engine)  # type: ignore[arg-type]
    try:
        seen = executor(GrepAction(limit=1_000, **action))
        assert seen.count == len(seen.matches)
        return [(one.path, one.line_number, one.line) for one in seen.matches]
    finally:
        executor.close()


@pytest.mark.requirement("B88")
@needs_ripgrep
@given(tree=trees(), hidden=st.booleans(), no_ignore=st.booleans())
def test_both_engines_list_what_ripgrep_lists(tree: Tree, hidden: bool, no_ignore: bool) -> None:
    """Ignore rules, hidden names and odd names mean the same everywhere."""
    with planted(tree) as root:
        options = ["--glob=!.git", *["--hidden"] * hidden, *["--no-ignore"] * no_ignore]
        expected = sorted(asked(root, "--files", *options))
        given = {"hidden": hidden, "no_ignore": no_ignore}
        assert listed(root, pattern="**", **given) == expected
        assert with_lines(root, "python", **given) == with_lines(root, "ripgrep", **given)


@pytest.mark.requirement("B88")
@needs_ripgrep
@given(
    tree=trees(),
    glob=st.sampled_from(GLOBS).filter(lambda glob: glob[0] != "/"),
    base=st.sampled_from([".", "src", "lib", "-d"]),
)
def test_both_engines_find_the_same_files(tree: Tree, glob: str, base: str) -> None:
    """A glob means the same in both engines, and below a directory as well."""
    with planted(tree) as root:
        if not (root / base).is_dir():
            base = "."
        answers = [
            with_lines(root, engine, include=glob, path=base, hidden=True)
            for engine in ("python", "ripgrep")
        ]
        assert answers[0] == answers[1]
        whole = set(listed(root, pattern=glob, path=base, hidden=True))
        assert set(answers[0]) <= whole <= set(listed(root, pattern="**", hidden=True))


@needs_ripgrep
@given(tree=trees(), glob=st.sampled_from(GLOBS).filter(lambda glob: glob[0] != "/"))
def test_globs_mean_what_they_mean_to_ripgrep(tree: Tree, glob: str) -> None:
    """A glob picks the files that `rg --glob` picks, where no ignore rules are in play."""
    with planted(tree) as root:
        ours = listed(root, pattern=glob, hidden=True, no_ignore=True)
        given_to_rg = glob.removeprefix(".") if glob.startswith("./") else glob
        options = ["--hidden", "--no-ignore", f"--glob={given_to_rg}", "--glob=!.git"]
        theirs = sorted(asked(root, "--files", *options))
        if glob.endswith("/") and not glob.startswith("!"):
            theirs = [path for path in ours if f"/{glob}" in f"/{path}"]
        if glob.isascii() and "?" in glob:  # for ripgrep a byte, here a character
            ours, theirs = ([p for p in side if p.isascii()] for side in (ours, theirs))
        assert ours == theirs


@pytest.mark.requirement("B89")
@needs_ripgrep
@given(
    tree=trees(),
    pattern=st.sampled_from(PATTERNS),
    include=st.none() | st.sampled_from(GLOBS),
    ignore_case=st.booleans(),
    base=st.sampled_from([".", "src", "lib", ".hid"]),
)
def test_both_engines_find_the_same_lines(
    tree: Tree, pattern: str, include: str | None, ignore_case: bool, base: str
) -> None:
    """The dialect of the pattern does not depend on whether ripgrep is installed."""
    with planted(tree) as root:
        if not (root / base).is_dir():
            base = "."
        answers = [
            found(
                root, engine, pattern=pattern, include=include, ignore_case=ignore_case, path=base
            )
            for engine in ("python", "ripgrep")
        ]
        assert answers[0] == answers[1]


@pytest.mark.requirement("B89")
@needs_ripgrep
@given(tree=trees(), pattern=st.sampled_from(PATTERNS), literal=st.booleans())
def test_both_engines_count_what_ripgrep_counts(tree: Tree, pattern: str, literal: bool) -> None:
    """Binary files, CRLF, byte order marks and broken UTF-8 are read as ripgrep does."""
    with planted(tree) as root:
        options = ["--count", "--no-mmap", "--crlf", "--glob=!.git", *["--fixed-strings"] * literal]
        raw = asked(root, *options, "-e", pattern, "--", "./")
        expected = _counts(raw)
        for engine in ("python", "ripgrep"):
            executor = GrepExecutor(root, engine=engine)  # type: ignore[arg-type]
            seen = executor(
                GrepAction(pattern=pattern, literal=literal, output="count", limit=1_000)
            )
            executor.close()
            assert seen.counts == expected


def _counts(parts: list[str]) -> dict[str, int]:
    """Read `path NUL count LF path NUL …`, split at the NULs."""
    counts: dict[str, int] = {}
    path = parts[0] if parts else ""
    for part in parts[1:]:
        number, _, following = part.partition("\n")
        counts[path.removeprefix("./")] = int(number)
        path = following
    return counts


@pytest.mark.requirement("S7", "S28")
@given(text=st.text(max_size=12), engine=st.sampled_from(["python", "auto"]))
@example(text="--pre=./x", engine="auto")
@example(text="-e", engine="auto")
@example(text="a\0b", engine="auto")
def test_any_text_is_a_pattern_or_is_refused(text: str, engine: str) -> None:
    """No text becomes an option, a crash or another kind of error."""
    tree: Tree = {("a.txt",): b"foo\n-e\n--pre=./x\n"}
    with planted(tree) as root:
        for search in (_grepped, _globbed):
            with suppress(ToolError, ValueError):
                search(root, engine, text)


def _grepped(root: Path, engine: str, text: str) -> None:
    lines = found(root, engine, pattern=text, literal=True)
    content = (root / "a.txt").read_text().splitlines()
    assert [line for _, _, line in lines] == [line for line in content if text in line]


def _globbed(root: Path, _: str, text: str) -> None:
    assert set(listed(root, pattern=text)) <= {"a.txt"}


LETTERS = st.text(alphabet="ab.-_ é", min_size=1, max_size=4)


@given(parts=st.lists(LETTERS.filter(lambda part: part not in {".", ".."}), min_size=1, max_size=4))
def test_an_escaped_path_matches_itself(parts: list[str]) -> None:
    """What is escaped has no meaning of its own."""
    path = "/".join(parts)
    escaped = "".join(char if char == "/" else f"\\{char}" for char in path)
    matches = path_filter(f"/{escaped}")
    assert matches(path)
    assert not matches(f"{path}x")


@pytest.mark.requirement("S28")
@given(
    glob=st.text(alphabet="ab*?[]{},!^-\\/.", max_size=10),
    path=st.text(alphabet="ab/.", max_size=8),
)
def test_any_glob_is_compiled_or_refused(glob: str, path: str) -> None:
    """What comes out of a translation is always a valid pattern of linear time."""
    with suppress(PatternError):
        assert path_filter(glob)(path) in {True, False}
