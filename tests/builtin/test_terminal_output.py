"""The output of programs: plain text, shortened in the middle, complete in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor
from agents_tools.builtin.terminal.ansi import LONGEST, AnsiCleaner, clean, unfinished
from agents_tools.builtin.terminal.keys import key_named, typed
from agents_tools.builtin.terminal.output import OutputFiles, TerminalOutput

FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

pieces = st.one_of(
    st.binary(max_size=12),
    st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace")),
    st.sampled_from(
        [
            b"\r",
            b"\r\n",
            b"\n",
            b"\b",
            b"\t",
            b"\x1b[K",
            b"\x1b[1K",
            b"\x1b[2K",
            b"\x1b[3D",
            b"\x1b[2C",
            b"\x1b[5G",
            b"\x1b[1;31m",
            b"\x1b[?2004h",
            b"\x1b]0;title\x07",
            b"\x1b]8;;http://x\x1b\\",
            b"\x1bPq\x1b\\",
            b"\x1b(B",
            b"\x1b",
            b"\x1b[",
            b"\x1b]",
            b"\xe4\xbd",
            b"x" * 5000,
        ]
    ),
)
outputs = st.lists(pieces, max_size=30).map(b"".join)


def slowly(data: bytes) -> str:
    """The rules of the cleaner, one character after the other."""
    text = data.decode("utf-8", "replace")
    done = ""
    line: list[str] = []
    column = at = 0
    while at < len(text):
        char = text[at]
        sequence = re.compile(r"\x1b\[([0-?]{0,64})[ -/]{0,8}([@-~])").match(text, at)
        string = re.compile(
            r"\x1b[\]PX^_][^\x07\x18\x1a\x1b\n]{0,4096}(?:[\x07\x18\x1a]|\x1b\\)"
        ).match(text, at)
        other = re.compile(r"\x1b(?:[ -/]{1,8}[0-~]|[0-OQ-WYZ`-~\\]|[\[\]PX^_]?)").match(text, at)
        skipped = sequence or string or other
        at = skipped.end() if skipped else at + 1
        if sequence:
            numbers, final = sequence.groups()
            count = int(numbers) if numbers.isdecimal() and len(numbers) <= 6 else 0
            if final == "C":
                column = min(LONGEST - 1, column + max(1, count))
            elif final == "D":
                column = max(0, column - max(1, count))
            elif final == "G":
                column = min(LONGEST - 1, max(1, count) - 1)
            elif final in "KJ" and count == 0:
                del line[column:]
            elif final == "K" and count == 1:
                for place in range(min(len(line), column + 1)):
                    line[place] = " "
            elif final == "K":
                line.clear()
        elif skipped:
            continue
        elif char == "\n":
            done += "".join(line) + "\n"
            line, column = [], 0
        elif char == "\r":
            column = 0
        elif char == "\b":
            column = max(0, column - 1)
        elif not FORBIDDEN.match(char):
            line += " " * (column - len(line))
            line[column : column + 1] = [char]
            column += 1
            if column == LONGEST:
                done += "".join(line)
                line, column = [], 0
    return done + "".join(line)


@pytest.mark.requirement("S19")
@given(outputs)
def test_any_bytes_are_rendered_as_on_a_terminal(data: bytes) -> None:
    """No control character is left."""
    text = clean(data)
    assert text == slowly(data)
    assert not FORBIDDEN.search(text)


@pytest.mark.requirement("F17")
@given(st.lists(outputs, max_size=5), st.integers(1, 7))
def test_how_the_bytes_are_split_does_not_matter(parts: list[bytes], size: int) -> None:
    """Characters and sequences are joined across reads."""
    data = b"".join(parts)
    cleaner = AnsiCleaner()
    chunks = [data[at : at + size] for at in range(0, min(len(data), 300), size)]
    rest = data[min(len(data), len(chunks) * size) :]
    text = "".join(cleaner.feed(chunk) for chunk in chunks) + cleaner.feed(rest)
    assert text + cleaner.feed(b"", last=True) == clean(data)


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\t")))
def test_plain_text_is_unchanged(text: str) -> None:
    """Tabs, long lines and every script are preserved."""
    assert clean(text.encode()) == text
    assert clean(clean(text.encode()).encode()) == text


@pytest.mark.requirement("F17")
@given(st.text(min_size=1, max_size=20), st.integers(0, 3))
def test_an_incomplete_character_is_held_back(text: str, cut: int) -> None:
    """A call that returns in the middle of a character loses no byte of it."""
    data = text.encode("utf-8", "replace")
    first = data[: max(0, len(data) - cut)]
    kept = first[: len(first) - unfinished(first)]
    kept.decode()


@pytest.fixture
def files() -> Iterator[OutputFiles]:
    files = OutputFiles(1 << 20)
    yield files
    files.close()


def test_a_short_output_needs_no_file(files: OutputFiles) -> None:
    """Nothing is written to disk for it."""
    output = TerminalOutput(files)
    output.add(b"hello\n")
    shown = output.take(100)
    assert (shown.text, shown.truncated, shown.file) == ("hello\n", False, None)
    assert list(files.path.iterdir()) == []
    assert output.take(100).text == ""


@pytest.mark.requirement("S29")
@given(st.integers(0, 400), st.integers(1, 120))
def test_the_notice_states_how_much_is_cut_and_where_the_file_is(lines: int, limit: int) -> None:
    """Head and tail are shown, and the file has all of the output."""
    files = OutputFiles(1 << 20)
    try:
        output = TerminalOutput(files)
        data = b"".join(b"line %d\n" % number for number in range(lines))
        output.add(data)
        shown = output.take(limit)
        assert shown.truncated == (len(data) > limit)
        if shown.file is None:
            assert shown.text == data.decode()
            return
        assert Path(shown.file).read_bytes() == data
        assert shown.text.startswith(data.decode()[: limit // 2])
        assert shown.text.endswith(data.decode()[-(limit - limit // 2) :])
        assert f"[of {len(data):,} characters, " in shown.text
    finally:
        files.close()


@pytest.mark.requirement("S29")
def test_files_are_bounded_and_private(files: OutputFiles) -> None:
    """The oldest files are removed; a single file is cut at the limit, and the notice states it."""
    output = TerminalOutput(files)
    first = None
    for _ in range(3):
        output.add(b"x" * 600_000)
        shown = output.take(100)
        first = first or shown.file
    assert first is not None
    assert not Path(first).exists()
    assert sum(path.stat().st_size for path in files.path.iterdir()) <= 1 << 20
    for _ in range(5):
        output.add(b"y" * 600_000)
    assert output.full
    shown = output.take(100)
    assert "the first 1,048,576 bytes are in" in shown.text
    assert shown.file is not None
    assert Path(shown.file).stat().st_size == 1 << 20
    assert Path(shown.file).stat().st_mode & 0o077 == 0
    assert files.path.stat().st_mode & 0o077 == 0


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TerminalExecutor]:
    shell = TerminalExecutor(tmp_path_factory.mktemp("session"))
    yield shell
    shell.close()


@pytest.mark.requirement("F17", "S19")
@given(data=outputs)
def test_any_bytes_of_a_program_arrive_as_clean_text(shell: TerminalExecutor, data: bytes) -> None:
    """Through the session as through the rules."""
    (shell.working_dir / "bytes").write_bytes(data)
    seen = shell(TerminalAction(command="cat bytes"))
    expected = slowly(data)
    if len(expected) <= shell.max_output:
        assert seen.text == expected
    assert not FORBIDDEN.search(seen.text)
    assert (seen.exit_code, seen.running) == (0, False)


def test_keys_have_names() -> None:
    """The names match the keys that a person would press."""
    assert key_named("C-c") == b"\x03"
    assert key_named("c-D") == b"\x04"
    assert key_named("^Z") == b"\x1a"
    assert key_named("C-\\") == b"\x1c"
    assert key_named("Up") == b"\x1b[A"
    assert key_named("C-cc") is None
    assert key_named("yes") is None
    assert typed("yes", by_line=True) == b"yes\n"
    assert typed("Enter", by_line=True) == b"\n"
    assert typed("z" * 9000, by_line=False) == b"z" * 9000 + b"\n"
    pieces_of_it = typed("z" * 9000, by_line=True).split(b"\x04")
    assert [len(piece) for piece in pieces_of_it] == [4000, 4000, 1001]
