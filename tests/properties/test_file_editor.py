"""After any sequence of editor commands, a file equals that of a simple reference model."""

from __future__ import annotations

import codecs
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agents_tools.builtin.file_editor import (
    FileEditorAction,
    FileEditorExecutor,
    FileEditorObservation,
)
from agents_tools.builtin.file_editor.diff import unified_diff
from agents_tools.builtin.file_editor.text_file import BytesSource, binary_kind, body_of, scan
from agents_tools.builtin.file_editor.undo import changed_region

PIECES = ["a", "b", "ab", " ", "\t", "é", "\n", "\n", "", "x\ny", "日"]
TEXT = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
FILES = ("f", "d/g")
COMMANDS = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(FILES), TEXT),
    st.tuples(st.just("insert"), st.sampled_from(FILES), st.integers(0, 6), TEXT),
    st.tuples(st.just("str_replace"), st.sampled_from(FILES), TEXT, TEXT, st.booleans()),
    st.tuples(st.just("undo_edit"), st.sampled_from(FILES)),
    st.tuples(st.just("view"), st.sampled_from(FILES)),
)


@dataclass
class Model:
    """A file as a text with LF line ends."""

    text: str | None = None
    viewed: str | None = None
    past: list[str | None] = field(default_factory=list[str | None])

    def change(self, text: str) -> bool:
        self.past = [*self.past, self.text][-10:]
        self.text = text
        self.viewed = None
        return True

    def create(self, text: str) -> bool:
        if self.text and self.viewed is None:
            return False
        return self.change(text)

    def insert(self, line: int, text: str) -> bool:
        if self.text is None or not text:
            return False
        lines = self.text.split("\n")
        ended = lines[-1] == ""
        if ended:
            lines.pop()
        if line > len(lines):
            return False
        at_open_end = line == len(lines) and not ended
        new = text.removesuffix("\n").split("\n")
        ended = ended or (at_open_end and text.endswith("\n"))
        return self.change("\n".join(lines[:line] + new + lines[line:]) + "\n" * ended)

    def str_replace(self, old: str, new: str, everywhere: bool) -> bool:
        if not self.text or not old or old == new:
            return False
        count = sum(self.text.startswith(old, at) for at in range(len(self.text)))
        if count == 0 or (count > 1 and not everywhere):
            return False
        return self.change(self.text.replace(old, new))

    def undo_edit(self) -> bool:
        if not self.past:
            return False
        self.text = self.past.pop()
        self.viewed = None
        return True

    def view(self) -> bool:
        self.viewed = self.text
        return self.text is not None


def run(executor: FileEditorExecutor, command: tuple[Any, ...]) -> FileEditorObservation:
    name, path, *rest = command
    names: dict[str, tuple[str, ...]] = {
        "create": ("file_text",),
        "insert": ("insert_line", "new_str"),
        "str_replace": ("old_str", "new_str", "replace_all"),
    }
    arguments: Any = dict(zip(names.get(name, ()), rest, strict=True))
    return executor(FileEditorAction(command=name, path=path, **arguments))


@pytest.mark.requirement("C21")
@given(st.lists(COMMANDS, max_size=14))
def test_a_file_equals_the_reference_model(commands: list[tuple[Any, ...]]) -> None:
    """Refused commands change nothing, and undo restores each state."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        executor = FileEditorExecutor(root)
        models = {path: Model() for path in FILES}
        for command in commands:
            seen = run(executor, command)
            model = models[command[1]]
            done = getattr(model, command[0])(*command[2:])
            assert seen.is_error is not done, (command, seen.text)
            for path, one in models.items():
                file = root / path
                there = file.read_bytes().decode() if file.exists() else None
                assert there == one.text, command
        executor.close()


LINES = st.lists(
    st.tuples(st.sampled_from(["", "a", "b", "ab", "é", "a b"]), st.sampled_from(["\n", "\r\n"])),
    max_size=8,
)
STORED = st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16-le", "utf-16-be"])
MARKS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


@given(LINES, st.sampled_from(["", "z", "\n"]), STORED, TEXT, TEXT, st.booleans())
def test_line_ends_and_encodings_are_preserved(
    lines: list[tuple[str, str]], rest: str, codec: str, old: str, new: str, everywhere: bool
) -> None:
    """Mixed line ends in any encoding: as text it is a plain replacement, and undo is exact."""
    text = "".join(line + end for line, end in lines) + rest
    data = MARKS.get(codec, b"") + text.encode(codec)
    codec = "utf-8" if data.isascii() else codec  # what is all ASCII is taken for UTF-8
    flat = text.replace("\r\n", "\n")
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "f"
        file.write_bytes(data)
        executor = FileEditorExecutor(name)
        seen = run(executor, ("str_replace", "f", old, new, everywhere))
        if seen.is_error:
            assert file.read_bytes() == data
            return
        after = file.read_bytes().removeprefix(MARKS.get(codec, b"")).decode(codec)
        assert after.replace("\r\n", "\n") == flat.replace(old, new)
        if "\r\n" not in text:
            assert "\r" not in after
        if "\n" not in text.replace("\r\n", ""):
            assert "\n" not in after.replace("\r\n", "")
        assert not run(executor, ("undo_edit", "f")).is_error
        assert file.read_bytes() == data
        executor.close()


@given(st.binary(max_size=200), st.sampled_from([b"", codecs.BOM_UTF8, *MARKS.values()]))
def test_any_text_file_is_preserved_byte_for_byte(data: bytes, mark: bytes) -> None:
    """With any detected encoding, encoding the text restores the file."""
    raw = mark + data
    if binary_kind(BytesSource(raw)) is None:
        form = scan(BytesSource(raw)).form
        body = form.body(raw)
        assert form.raw(body) == raw
        form.decode(body)
        assert body_of(BytesSource(raw), form).read(0, 10_000) == body


@given(st.binary(max_size=60), st.binary(max_size=20), st.binary(max_size=20), st.integers(0, 60))
def test_only_the_changed_region_changes(old: bytes, gone: bytes, added: bytes, at: int) -> None:
    """The undo data is sufficient, and the diff of equal texts is empty."""
    before = old[:at] + gone + old[at:]
    after = old[:at] + added + old[at:]
    start, end, new_end = changed_region(before, after)
    assert before[:start] + after[start:new_end] + before[end:] == after
    assert end - start <= len(gone) or end - start <= len(before)
    unified_diff(before, after, scan(BytesSource(before)).form, "f")


@given(LINES, LINES, LINES, LINES)
def test_a_diff_applied_to_the_old_text_yields_the_new(
    head: list[tuple[str, str]],
    gone: list[tuple[str, str]],
    made: list[tuple[str, str]],
    tail: list[tuple[str, str]],
) -> None:
    """Lines with `-` are in the old text, lines with `+` in the new, at the stated line."""
    old, new = (
        "".join(f"{line}\n" for line, _ in lines)
        for lines in ([*head, *gone, *tail], [*head, *made, *tail])
    )
    before, after = old.encode(), new.encode()
    diff = unified_diff(before, after, scan(BytesSource(b"")).form, "f").splitlines()[2:]
    place, *body = diff
    first, count = (int(part) for part in place.split(" ")[1][1:].split(","))
    lines = old.splitlines()
    was = [line[1:] for line in body if line[0] in " -"]
    became = [line[1:] for line in body if line[0] in " +"]
    begin = first - 1 if count else first
    assert lines[begin : begin + count] == was
    assert lines[:begin] + became + lines[begin + count :] == new.splitlines()
