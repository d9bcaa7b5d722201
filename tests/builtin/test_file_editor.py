"""The file editor: what it returns to models, and what it leaves on the disk."""

from __future__ import annotations

import asyncio
import base64
import codecs
import contextlib
import errno
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agents_tools import register_secret
from agents_tools.builtin.file_editor import (
    EditorTool,
    FileEditorAction,
    FileEditorExecutor,
    FileEditorObservation,
    FileEditorTool,
    atomic_write as _write,
    edit as _edit,
)
from agents_tools.builtin.file_editor.undo import UndoHistory
from agents_tools.builtin.paths import ConfinedWorkspace
from agents_tools.classes import ImageContent
from agents_tools.errors import UserError
from agents_tools.text import forget_secret
from tests.waiting import BOUND


class Editor:
    """An executor with its workspace and shortcuts for calling it."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.root = root
        self.executor = FileEditorExecutor(root, **options)

    def __call__(self, command: str, path: str, **arguments: Any) -> FileEditorObservation:
        action: Any = {"command": command, "path": path, **arguments}
        return self.executor(FileEditorAction.model_validate(action))

    def ok(self, command: str, path: str, **arguments: Any) -> str:
        seen = self(command, path, **arguments)
        assert not seen.is_error, seen.text
        return seen.text

    def fails(self, command: str, path: str, **arguments: Any) -> str:
        seen = self(command, path, **arguments)
        assert seen.is_error, seen.text
        assert len(seen.text) < 3_000
        return seen.text

    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.root.iterdir())

    def put(self, path: str, data: bytes) -> None:
        (self.root / path).write_bytes(data)

    def get(self, path: str) -> bytes:
        return (self.root / path).read_bytes()


@pytest.fixture
def editor(tmp_path: Path):
    made = Editor(tmp_path)
    yield made
    made.executor.close()


def big_file(lines: int = 192_000) -> bytes:
    return b"".join(b"%06d %s\n" % (number, b"x" * 45) for number in range(1, lines + 1))


# --- masks

SECRET = "Xk93jdPq81LmZz02"  # noqa: S105 - made up


@pytest.fixture
def masked(editor: Editor):
    """An editor whose file `conf` holds a registered secret."""
    register_secret(SECRET)
    editor.put("conf", f"host = a\nkey = {SECRET}  # old\n".encode())
    yield editor
    forget_secret(SECRET)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("str_replace", {"old_str": "key = ***", "new_str": "key = b"}),
        ("str_replace", {"old_str": "host = a\n", "new_str": "host = b\nkey = ***  # new\n"}),
        ("insert", {"insert_line": 0, "new_str": "key = ***  # old\n"}),
        ("create", {"file_text": "host = b\nkey = ***  # old\n"}),
    ],
)
def test_an_edit_with_the_mask_of_a_secret_is_refused(
    masked: Editor, command: str, arguments: dict[str, Any]
) -> None:
    """The model copies it from a view, and the secret in the file would be lost."""
    before = masked.get("conf")
    masked.ok("view", "conf")
    assert "in place of a secret" in masked.fails(command, "conf", **arguments)
    assert masked.get("conf") == before


def test_three_stars_that_are_no_mask_are_edited(masked: Editor) -> None:
    """They are a rule in Markdown, and part of bold italics."""
    masked.put("page.md", b"a\n***\nb\n")
    masked.ok("str_replace", "page.md", old_str="***\nb", new_str="***\n***c***")
    masked.ok("create", "new.md", file_text="***\n")
    masked.ok("str_replace", "conf", old_str="host = a", new_str="host = b")

    both = f"key = {SECRET}\n***\nrest\n".encode()
    masked.put("both.md", both)
    masked.ok("str_replace", "both.md", old_str="***\nrest", new_str="***\n***bold*** text")
    masked.fails("insert", "both.md", insert_line=0, new_str="key = ***")


# --- view


@pytest.mark.requirement("C21", "B91")
def test_a_view_has_line_numbers(editor: Editor) -> None:
    """The format is that of `cat -n`."""
    editor.put("f", b"one\n\ttwo\n")
    seen = editor("view", "f")
    assert seen.text == "f, 2 lines:\n     1\tone\n     2\t\ttwo\n"
    assert (seen.total_lines, seen.lines, seen.encoding) == (2, (1, 2), "UTF-8")


@pytest.mark.requirement("C21")
@pytest.mark.parametrize(
    ("given", "shown"),
    [([1, 1], "1-1"), ([2, 3], "2-3"), ([4, -1], "4-5"), ([3, 99], "3-5"), ([5, 5], "5-5")],
)
def test_a_range_of_lines_is_shown(editor: Editor, given: list[int], shown: str) -> None:
    """-1 means the last line, and an end after the last line is clipped."""
    editor.put("f", b"1\n2\n3\n4\n5\n")
    text = editor.ok("view", "f", view_range=given)
    first, last = (int(number) for number in shown.split("-"))
    lines = [f"{number:6}\t{number}\n" for number in range(first, last + 1)]
    assert text == f"f, lines {shown} of 5:\n{''.join(lines)}"


@pytest.mark.parametrize("given", [[0, 1], [6, 7], [-1, 2], [3, 2], [2, 0], [2, -2]])
def test_an_invalid_line_range_is_rejected(editor: Editor, given: list[int]) -> None:
    """The message states how many lines there are, or that the range is reversed."""
    editor.put("f", b"1\n2\n3\n4\n5\n")
    assert re.search("has 5 lines|Swap the two", editor.fails("view", "f", view_range=given))


@pytest.mark.requirement("F17", "S29")
def test_a_long_file_is_shown_with_its_true_line_numbers(editor: Editor) -> None:
    """Head, exact notice, tail; the line numbers of the tail are those of the file."""
    editor.put("f", big_file(20_000))
    text = editor.ok("view", "f")
    assert len(text) < 31_000
    rows = re.findall(r"^ *(\d+)\t(\d+) x+$", text, re.MULTILINE)
    assert all(int(number) == int(content) for number, content in rows)
    notice = re.search(r"\[([\d,]+) lines not shown: (\d+) to (\d+)\.", text)
    assert notice is not None
    count, first, last = (int(part.replace(",", "")) for part in notice.groups())
    assert count == last - first + 1 == 20_000 - len(rows)
    assert [int(number) for number, _ in rows] == [*range(1, first), *range(last + 1, 20_001)]


@pytest.mark.requirement("S29")
def test_a_long_line_is_cut_with_a_marker(editor: Editor) -> None:
    """One line of 3 MB costs 2,000 characters; the lines around it are shown."""
    editor.put("f", b"a\n" + b"x" * 3_000_000 + b"\nb\n" + "ä".encode() * 5_000)
    text = editor.ok("view", "f")
    assert len(text) < 6_000
    assert "x… [cut here: the line has 3,000,001 bytes]\n     3\tb\n" in text
    assert "ä… [cut here: the line has 10,000 bytes]" in text


def test_a_changed_file_is_read_again(editor: Editor) -> None:
    """Cached data of a file belongs to one state of it."""
    for number in range(5):
        editor.put("f", b"x\n" * number + b"end")
        assert f"{number + 1:6}\tend" in editor.ok("view", "f")
        os.utime(editor.root / "f", (1, 1))
        assert f"{number + 1:6}\tend" in editor.ok("view", "f")


@pytest.mark.requirement("S19")
def test_control_characters_and_surrogates_are_escaped(editor: Editor) -> None:
    """Escape codes of a file do not reach a terminal, and lone surrogates do not break a message."""
    editor.put("f", "a\x1b[31m\u202eb\n".encode() + b"\xff" + "äöü".encode() + b"\n")
    seen = editor("view", "f")
    assert "\\x1b[31m\\u202eb" in seen.text
    assert "\ufffdäöü" in seen.text
    seen.model_dump_json().encode()


def test_directories_are_listed_two_levels_deep(editor: Editor) -> None:
    """Sorted, hidden entries counted, links marked and not followed."""
    for path in ("b/c/d", ".git", "a"):
        (editor.root / path).mkdir(parents=True)
    for path in ("b/x", "b/.y", "z", "b/c/deep"):
        editor.put(path, b"")
    (editor.root / "link").symlink_to("b")
    text = editor.ok("view", ".")
    assert text == (
        ". is a directory, two levels deep (2 hidden omitted):\na/\nb/\n  c/\n  x\nlink@\nz"
    )
    assert "omit view_range" in editor.fails("view", ".", view_range=[1, 2])


@pytest.mark.requirement("S29")
def test_a_large_directory_is_cut_with_an_exact_count(editor: Editor) -> None:
    """The output is bounded at both levels."""
    (editor.root / "d").mkdir()
    for number in range(1_100):
        editor.put(f"f{number:04}", b"")
        editor.put(f"d/f{number:04}", b"")
    text = editor.ok("view", ".")
    assert "  [and 900 more]" in text
    assert text.endswith("[and 302 more]")


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "image/gif": b"GIF89a\x01\0\x01\0\0\0\0",
    "image/webp": b"RIFF\x24\0\0\0WEBPVP8 \0\0",
}


@pytest.mark.requirement("B94")
@pytest.mark.parametrize("kind", IMAGES)
def test_images_are_recognized_by_their_content(editor: Editor, kind: str) -> None:
    """The content decides, not the file name."""
    editor.put("picture.txt", IMAGES[kind])
    seen = editor("view", "picture.txt")
    image = seen.content[1]
    assert isinstance(image, ImageContent)
    head, _, data = image.image_urls[0].partition(",")
    assert head == f"data:{kind};base64"
    assert base64.b64decode(data) == IMAGES[kind]


@pytest.mark.requirement("S29")
def test_an_image_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """The message states the size and the limit."""
    editor = Editor(tmp_path, max_image=10)
    editor.put("p.png", PNG)
    assert "more than the 10 bytes" in editor.fails("view", "p.png")


BINARY = {
    b"%PDF-1.7\n": "PDF",
    b"PK\x03\x04\0\0": "ZIP",
    b"\x7fELF\x02\0": "ELF",
    b"SQLite format 3\0": "SQLite",
    b"ab\0cd": "binary data",
    bytes(range(256)) * 4: "binary data",
    b"\xff\xfea": "with the mark of UTF-16",
    PNG: "a PNG image",
}


@pytest.mark.parametrize(
    "data", [pytest.param(d, id=f"{n} {k}") for n, (d, k) in enumerate(BINARY.items())]
)
def test_binary_files_are_refused_with_kind_and_size(editor: Editor, data: bytes) -> None:
    """They are neither shown nor edited."""
    editor.put("f", data)
    commands = [("str_replace", {"old_str": "a"}), ("insert", {"insert_line": 0, "new_str": "x"})]
    if data != PNG:
        commands.append(("view", {}))
    for command, arguments in commands:
        text = editor.fails(command, "f", **arguments)
        assert BINARY[data] in text
        assert f"({len(data):,} bytes)" in text
    assert editor.get("f") == data


@pytest.mark.requirement("S29")
def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """The limit applies to viewing, editing, creating and growing."""
    editor = Editor(tmp_path, max_file=100)
    editor.put("f", b"x" * 101)
    editor.put("g", b"x" * 100)
    assert "101 bytes" in editor.fails("view", "f")
    assert "101 bytes" in editor.fails("str_replace", "f", old_str="x")
    assert "101 bytes" in editor.fails("create", "new", file_text="x" * 101)
    assert "102 bytes" in editor.fails("insert", "g", insert_line=0, new_str="y")
    assert editor.get("g") == b"x" * 100


# --- create


@pytest.mark.requirement("B91")
def test_a_file_is_created_with_its_directories(editor: Editor) -> None:
    """Parents are created; the diff shows the whole file."""
    seen = editor("create", "a/b/c.txt", file_text="one\ntwo\n")
    assert seen.text == "a/b/c.txt was created with 2 lines."
    assert seen.diff == "--- /dev/null\n+++ a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    assert not seen.prev_exists
    assert editor.get("a/b/c.txt") == b"one\ntwo\n"


def test_undoing_a_create_removes_the_file_and_its_directories(editor: Editor) -> None:
    """Directories that existed before, or are not empty, stay."""
    (editor.root / "a").mkdir()
    editor.ok("create", "a/b/c/f", file_text="x")
    editor.put("a/b/other", b"")
    assert "was removed" in editor.ok("undo_edit", "a/b/c/f")
    assert sorted(str(p.relative_to(editor.root)) for p in editor.root.rglob("*")) == [
        "a", "a/b", "a/b/other",
    ]  # fmt: skip
    editor.ok("create", "x/y/f", file_text="x")
    editor.ok("undo_edit", "x/y/f")
    assert editor.names() == ["a"]


def test_an_existing_file_is_only_replaced_after_it_was_viewed(editor: Editor) -> None:
    """Content that the model has not seen, or saw in an older state, is not lost."""
    editor.put("f", b"old\n")
    assert "view it before" in editor.fails("create", "f", file_text="new")
    assert editor.get("f") == b"old\n"
    editor.ok("view", "f")
    editor.put("f", b"older\n")
    assert "view it before" in editor.fails("create", "f", file_text="new")
    editor.ok("view", "f")
    assert editor("create", "f", file_text="new").prev_exists
    assert editor.get("f") == b"new"
    editor.ok("undo_edit", "f")
    assert editor.get("f") == b"older\n"


def test_an_empty_file_is_replaced_at_once(editor: Editor) -> None:
    """There is nothing to lose."""
    editor.put("f", b"")
    editor.ok("create", "f", file_text="new")
    editor.ok("create", "empty", file_text="")
    assert (editor.get("f"), editor.get("empty")) == (b"new", b"")
    assert editor.ok("view", "empty") == "empty is empty."


def test_a_text_that_cannot_be_stored_is_refused(editor: Editor) -> None:
    """Lone surrogates cannot be encoded; no file is left behind."""
    seen = editor.executor(
        FileEditorAction.model_construct(command="create", path="d/f", file_text="a\ud800")
    )
    assert seen.is_error
    assert "U+D800" in seen.text
    assert editor.names() == []


def test_the_mode_of_a_new_file_follows_the_umask(editor: Editor) -> None:
    """As with any other program."""
    before = os.umask(0o027)
    try:
        editor.ok("create", "f", file_text="x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((editor.root / "f").stat().st_mode) == 0o640


# --- str_replace


@pytest.mark.requirement("C21", "B91")
def test_a_text_that_occurs_once_is_replaced(editor: Editor) -> None:
    """The answer shows the lines around it, the diff only the change."""
    editor.put("f", b"".join(b"%d\n" % n for n in range(1, 21)))
    seen = editor("str_replace", "f", old_str="10\n11\n", new_str="ten\n")
    assert seen.diff == "--- f\n+++ f\n@@ -7,8 +7,7 @@\n 7\n 8\n 9\n-10\n-11\n+ten\n 12\n 13\n 14\n"
    assert "    10\tten\n" in seen.text
    assert seen.total_lines == 19


def test_without_new_str_the_text_is_deleted(editor: Editor) -> None:
    """This matches the tool that models are trained on."""
    editor.put("f", b"a\nb\nc\n")
    editor.ok("str_replace", "f", old_str="b\n")
    assert editor.get("f") == b"a\nc\n"
    editor.ok("str_replace", "f", old_str="a\nc\n")
    assert editor.get("f") == b""


@pytest.mark.requirement("C21")
def test_all_places_of_an_ambiguous_text_are_reported(editor: Editor) -> None:
    """Overlapping places are included."""
    editor.put("f", b"x = 1\ny\nx = 1\n")
    assert "2 times in f, beginning in lines 1, 3;" in editor.fails(
        "str_replace", "f", old_str="x = 1", new_str="z"
    )
    editor.put("g", b"aaa")
    assert "2 times" in editor.fails("str_replace", "g", old_str="aa", new_str="b")
    editor.put("h", b"x\n" * 100)
    assert "100 times" in editor.fails("str_replace", "h", old_str="x", new_str="b")


@pytest.mark.requirement("C21")
def test_a_line_with_several_matches_is_listed_once(editor: Editor) -> None:
    """The model gets the line numbers, and whether there are more."""
    editor.put("f", b"aaa\na\n")
    assert "4 times in f, beginning in lines 1, 2;" in editor.fails(
        "str_replace", "f", old_str="a", new_str="b"
    )
    editor.put("f", b"aa\n" * 30)
    text = editor.fails("str_replace", "f", old_str="a", new_str="b")
    assert "60 times" in text
    assert "19, 20 and more;" in text


@pytest.mark.requirement("C21")
def test_lines_around_several_places_are_shown_once(editor: Editor) -> None:
    """Places near each other are merged."""
    editor.put("f", b"".join(b"%d x x\n" % number for number in range(1, 40)))
    text = editor.ok("str_replace", "f", old_str="x", new_str="y", replace_all=True)
    numbers = re.findall(r"^ *(\d+)\t", text, re.MULTILINE)
    assert numbers == ["1", "2", "3", "4", "5", "6"]
    assert "73 more places" in text


@pytest.mark.requirement("C21")
@pytest.mark.parametrize("old", ["aa", "a", "a\n", "a\nb", "ab", "\n"])
@pytest.mark.parametrize("new", ["", "x", "x\ny\n", "aa\n"])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"mixed"])
def test_replacing_many_places_is_exact(editor: Editor, old: str, new: str, ends: bytes) -> None:
    """The result equals that of `str.replace`, and the reported lines are right, for any number of places."""
    text = "aaa\nb\naaaab\n\n" * 30
    raw = text.encode()
    raw = raw.replace(b"b\n", b"b\r\n") if ends == b"mixed" else raw.replace(b"\n", ends)
    editor.put("f", raw)
    seen = editor("str_replace", "f", old_str=old, new_str=new, replace_all=True)
    expected = text.replace(old, new)
    assert editor.get("f").replace(b"\r\n", b"\n").decode() == expected
    assert seen.replaced == text.count(old)
    assert seen.total_lines == len(expected.splitlines())
    assert seen.lines is not None
    assert 1 <= seen.lines[0] <= seen.lines[1] <= len(expected.split("\n"))
    if ends != b"mixed":
        assert editor.get("f").count(b"\r\n") == (ends == b"\r\n") * expected.count("\n")


@pytest.mark.requirement("F17")
def test_a_replacement_that_is_too_large_is_refused_before_it_is_made(tmp_path: Path) -> None:
    """A result of a thousand times the file size is never in memory."""
    editor = Editor(tmp_path, max_file=1_000_000)
    editor.put("f", b"a" * 900_000)
    text = editor.fails("str_replace", "f", old_str="a", new_str="b" * 100_000, replace_all=True)
    assert "90,000,000,000 bytes" in text
    assert editor.get("f") == b"a" * 900_000
    editor.executor.close()


def test_all_places_are_replaced_on_request(editor: Editor) -> None:
    """Replacement goes from left to right; inserted text is not searched again."""
    editor.put("f", b"a b a\na\n" + b"-\n" * 20 + b"a\n")
    seen = editor("str_replace", "f", old_str="a", new_str="aa", replace_all=True)
    assert seen.replaced == 4
    assert editor.get("f") == b"aa b aa\naa\n" + b"-\n" * 20 + b"aa\n"
    editor.ok("undo_edit", "f")
    assert editor.get("f") == b"a b a\na\n" + b"-\n" * 20 + b"a\n"


NEAR = {
    "line numbers": (b"def f():\n    pass\n", "     1\tdef f():\n     2\t    pass", "line numbers"),
    "tabs": (b"if x:\n\ty()\n", "if x:\n    y()", "the file has 1 tab, old_str 4 spaces"),
    "indentation": (b"  a()\n  b()\n", "a()\nb()", "the file has 2 spaces, old_str none"),
    "end of line": (b"a  \nb\n", "a\nb", "whitespace at the end of the line"),
    "inside": (b"x  = 1\n", "x = 1", "whitespace inside"),
    "quotes": ("say(“hi”)\n".encode(), 'say("hi")', "look alike"),
    "dash": ("a \N{EN DASH} b\n".encode(), "a - b", "look alike"),
    "case": (b"Hello\n", "hello", "upper and lower case"),
    "accents": ("cafe\u0301\n".encode(), "café", "accents"),
    "escapes": (b"a\nb\n", "a\\nb", "backslashes"),
    "around": (b"x = 1\n", "\n\nx = 1\n\n\n", "whitespace at the start and end"),
    "middle": (b"a\nb\nc\nd\n", "a\nb\nX\nd", "line 3"),
    "words": (b"def compute_total(items, tax):\n", "def compute_total(item, tax):", "line 1"),
    "nothing": (b"a\n", "zzz", "Copy it from a view"),
    "empty": (b"", "zzz", "The file is empty"),
}


@pytest.mark.parametrize("case", NEAR)
def test_a_missing_text_is_explained(editor: Editor, case: str) -> None:
    """The message shows the nearest place, its line and the difference; nothing is written."""
    data, old, expected = NEAR[case]
    editor.put("f", data)
    text = editor.fails("str_replace", "f", old_str=old, new_str="new")
    assert "not in f; nothing was changed" in text
    assert expected in text
    assert editor.get("f") == data


def test_a_text_with_other_whitespace_does_not_match(editor: Editor) -> None:
    """An editor that strips only old_str doubles the indentation."""
    editor.put("f", b"    a\n")
    editor.fails("str_replace", "f", old_str="        a", new_str="        b")
    assert editor.get("f") == b"    a\n"


def test_requests_that_change_nothing_are_refused(editor: Editor) -> None:
    """Identical texts, no text, missing arguments: each message states what is needed."""
    editor.put("f", b"a\n")
    assert "same text" in editor.fails("str_replace", "f", old_str="a", new_str="a")
    assert "old_str is empty" in editor.fails("str_replace", "f", old_str="", new_str="a")
    assert "needs old_str" in editor.fails("str_replace", "f", new_str="a")
    assert "needs file_text" in editor.fails("create", "g")
    assert "needs insert_line" in editor.fails("insert", "f", new_str="a")
    assert "needs new_str" in editor.fails("insert", "f", insert_line=1)
    assert "new_str is empty" in editor.fails("insert", "f", insert_line=1, new_str="")


@pytest.mark.requirement("S28")
def test_patterns_are_plain_text(editor: Editor) -> None:
    """Neither old_str nor new_str is a regular expression."""
    editor.put("f", b"(a+)+ \\1\n")
    editor.ok("str_replace", "f", old_str="(a+)+", new_str=r"\g<0>")
    assert editor.get("f") == b"\\g<0> \\1\n"


# --- line ends


def test_an_edit_keeps_crlf(editor: Editor) -> None:
    """`old_str` with LF or CRLF finds it; every other line keeps its bytes."""
    editor.put("f", b"a\r\nb\r\nc\r\n")
    editor.ok("str_replace", "f", old_str="a\nb", new_str="x\ny\nz")
    assert editor.get("f") == b"x\r\ny\r\nz\r\nc\r\n"
    editor.ok("str_replace", "f", old_str="z\r\nc", new_str="w\r\nv")
    assert editor.get("f") == b"x\r\ny\r\nw\r\nv\r\n"
    editor.ok("insert", "f", insert_line=1, new_str="i\nj")
    assert editor.get("f") == b"x\r\ni\r\nj\r\ny\r\nw\r\nv\r\n"
    assert "CRLF line ends" in editor.ok("view", "f")


def test_mixed_line_ends_stay_with_their_lines(editor: Editor) -> None:
    """Lines that are the same in old_str and new_str keep their line ends."""
    editor.put("f", b"a\r\nb\nc\r\nd\n")
    editor.ok("str_replace", "f", old_str="a\nb\nc\nd", new_str="a\nnew\nb\nc\nd")
    assert editor.get("f") in (b"a\r\nnew\nb\nc\r\nd\n", b"a\r\nnew\r\nb\nc\r\nd\n")
    assert "LF and CRLF" in editor.ok("view", "f")
    editor.ok("undo_edit", "f")
    assert editor.get("f") == b"a\r\nb\nc\r\nd\n"


def test_carriage_returns_alone_are_line_ends(editor: Editor) -> None:
    """Files of old systems use them."""
    editor.put("f", b"a\rb\rc")
    assert "     2\tb\n     3\tc\n" in editor.ok("view", "f")
    editor.ok("insert", "f", insert_line=2, new_str="x")
    assert editor.get("f") == b"a\rb\rx\rc"


# --- insert

INSERTS = [
    (b"a\nb\n", 0, "x", b"x\na\nb\n"),
    (b"a\nb\n", 1, "x", b"a\nx\nb\n"),
    (b"a\nb\n", 1, "x\n", b"a\nx\nb\n"),
    (b"a\nb\n", 1, "x\n\n", b"a\nx\n\nb\n"),
    (b"a\nb\n", 2, "x", b"a\nb\nx\n"),
    (b"a\nb", 2, "x", b"a\nb\nx"),
    (b"a\nb", 2, "x\n", b"a\nb\nx\n"),
    (b"a\nb", 0, "x", b"x\na\nb"),
    (b"", 0, "x", b"x\n"),
    (b"a\n", 1, "\n", b"a\n\n"),
    (b"a\r\nb", 2, "x\ny", b"a\r\nb\r\nx\r\ny"),
    (b"\xef\xbb\xbfa\n", 0, "x", b"\xef\xbb\xbfx\na\n"),
]


@pytest.mark.requirement("C21", "B91")
@pytest.mark.parametrize(("data", "line", "text", "expected"), INSERTS)
def test_inserted_lines_are_never_joined_to_others(
    editor: Editor, data: bytes, line: int, text: str, expected: bytes
) -> None:
    r"""`a\nb` and `c` after line 2 once returned `bc`."""
    editor.put("f", data)
    editor.ok("insert", "f", insert_line=line, new_str=text)
    assert editor.get("f") == expected
    editor.ok("undo_edit", "f")
    assert editor.get("f") == data


def test_a_line_number_after_the_end_is_rejected(editor: Editor) -> None:
    """The message states how many lines there are."""
    editor.put("f", b"a\nb")
    assert "has 2 lines. Use 0 to 2." in editor.fails("insert", "f", insert_line=3, new_str="x")


# --- undo


@pytest.mark.requirement("C21", "B91")
def test_edits_are_undone_one_by_one(editor: Editor) -> None:
    """Undo restores the exact bytes, for as many edits as the history holds."""
    states = [b"0\xff\r\n1\n"]
    editor.put("f", states[0])
    for number in range(12):
        editor.ok("insert", "f", insert_line=0, new_str=f"line {number}")
        states.append(editor.get("f"))
    for state in states[-2:-12:-1]:
        editor.ok("undo_edit", "f")
        assert editor.get("f") == state
    assert "no change" in editor.fails("undo_edit", "f")


def test_changes_by_others_are_not_undone(editor: Editor) -> None:
    """A change or removal by another program is not overwritten."""
    editor.put("f", b"a\n")
    editor.ok("insert", "f", insert_line=0, new_str="x")
    editor.put("f", b"precious\n")
    assert "changed by another program" in editor.fails("undo_edit", "f")
    assert editor.get("f") == b"precious\n"
    (editor.root / "f").unlink()
    assert "was removed" in editor.fails("undo_edit", "f")


@pytest.mark.requirement("S11")
def test_the_history_is_private_and_ends_with_the_executor(editor: Editor) -> None:
    """It is in memory only: no file is left open, and none is in the workspace."""
    descriptors = Path("/proc/self/fd")
    known = len(list(descriptors.iterdir()))
    for number in range(100):
        editor.put(f"f{number}", b"secret\n")
        editor.ok("str_replace", f"f{number}", old_str="secret", new_str="x")
    assert len(list(descriptors.iterdir())) == known
    assert editor.executor._history.size == 100 * len("secret")
    assert all(name.startswith("f") for name in editor.names())
    editor.executor.close()
    assert editor.executor._history.size == 0


def test_the_history_is_bounded(tmp_path: Path) -> None:
    """The limit is in bytes: the oldest edit goes first; an edit larger than the limit cannot be undone."""
    editor = Editor(tmp_path, max_history=1_000)
    for name in "abc":
        editor.put(name, name.encode() * 400 + b"\n")
        editor.ok("str_replace", name, old_str=name * 400, new_str="x")
    assert editor.executor._history.size <= 1_000
    assert "no change" in editor.fails("undo_edit", "a")
    editor.ok("undo_edit", "c")
    editor.put("big", b"y" * 2_000)
    editor.ok("str_replace", "big", old_str="y" * 2_000, new_str="x")
    assert "no change" in editor.fails("undo_edit", "big")
    editor.executor.close()


def test_dropped_edits_are_no_longer_counted() -> None:
    """The history returns the same bytes, and is as large as its edits."""
    history = UndoHistory(3, 10_000)
    for number in range(200):
        size = 100 + number * 37 % 400
        old, new = bytes([number]) * size, b""
        change = history.prepare(old, new)
        history.add(number % 5, change)
        assert change is not None
        assert change.before(new) == old
        other = history.last((number + 1) % 5)
        if other is not None:
            assert set(other.before(b"")) == {(number - 4) % 256}
    assert 0 < history.size <= 3 * 5 * 500
    for key in range(4):
        while history.last(key) is not None:
            history.drop_last(key)
    history.add(4, None)
    assert history.size == 0


# --- encodings

ENCODINGS = {
    "UTF-8": "grün \N{EN DASH} 日本\r\nx\n".encode(),
    "UTF-8 with BOM": codecs.BOM_UTF8 + "grün\nx\n".encode(),
    "UTF-16": codecs.BOM_UTF16_LE + "grün 日本\nx\n".encode("utf-16-le"),
    "UTF-16 ": codecs.BOM_UTF16_BE + "grün 日本\r\nx".encode("utf-16-be"),
    "UTF-32": codecs.BOM_UTF32_LE + "grün 😀\nx\n".encode("utf-32-le"),
    "cp1252": "grün “x” €\nx\n".encode("cp1252"),
    "LATIN-1": b"gr\xfcn \x81\x8d\x90\nx\n",
}


@pytest.mark.requirement("F17")
@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("length", [665, 666, 667, 668, 1_999, 2_000, 2_001, 2_666, 2_667, 5_000])
@pytest.mark.parametrize("character", ["日", "ü", "😀"])
def test_long_lines_are_cut_between_characters(
    editor: Editor, codec: str, length: int, character: str
) -> None:
    """This holds in views, diffs and edit reports; the text shown is text of the file."""
    old = "a" + character * length + "old\nlast\n"
    editor.put("f", old.encode(codec))
    shown = editor.ok("view", "f")
    edited = editor("str_replace", "f", old_str="old", new_str="new")
    taken = editor("undo_edit", "f")
    assert editor.get("f").decode(codec) == old
    for text in (shown, edited.text, edited.diff, taken.text):
        assert text is not None
        assert character * min(length, 490) in text
        assert "\\udc" not in text


@pytest.mark.parametrize("name", ENCODINGS)
def test_encodings_are_preserved_byte_for_byte(editor: Editor, name: str) -> None:
    """The letters are decoded correctly, and unedited text keeps its bytes."""
    data = ENCODINGS[name]
    editor.put("f", data)
    seen = editor("view", "f")
    assert seen.encoding == name.strip()
    assert "     1\tgrün" in seen.text
    editor.ok("str_replace", "f", old_str="grün", new_str="blüte")
    assert "     1\tblüte" in editor.ok("view", "f")
    editor.ok("str_replace", "f", old_str="blüte", new_str="grün")
    assert editor.get("f") == data
    editor.ok("insert", "f", insert_line=1, new_str="é")
    assert "     2\té\n" in editor.ok("view", "f")
    for _ in range(3):
        editor.ok("undo_edit", "f")
    assert editor.get("f") == data


def test_a_utf8_file_with_some_stray_bytes_is_utf8(editor: Editor) -> None:
    """One bad byte must not change the decoding of all other letters."""
    data = "größe übung äöü\n".encode() + b"bad \xff byte\nend\n"
    editor.put("f", data)
    assert "größe" in editor.ok("view", "f")
    editor.ok("str_replace", "f", old_str="größe", new_str="maß")
    assert editor.get("f") == data.replace("größe".encode(), "maß".encode())


def test_a_character_that_the_encoding_does_not_have_is_refused(editor: Editor) -> None:
    """It must not be written as a question mark."""
    editor.put("f", b"gr\xfcn\n")
    text = editor.fails("str_replace", "f", old_str="grün", new_str="緑")
    assert "U+7DD1" in text
    assert "cp1252" in text
    assert editor.get("f") == b"gr\xfcn\n"


# --- file attributes


def test_permissions_are_preserved(editor: Editor) -> None:
    """An edited script stays executable."""
    editor.put("f", b"a\n")
    for mode in (0o755, 0o600, 0o4755):
        (editor.root / "f").chmod(mode)
        editor.ok("insert", "f", insert_line=0, new_str="x")
        assert stat.S_IMODE((editor.root / "f").stat().st_mode) == mode


@pytest.mark.skipif(
    getattr(os, "geteuid", int)() != 0 or os.name == "nt", reason="only root can give files away"
)
def test_the_owner_is_preserved(editor: Editor) -> None:
    """If root edits the file of another user, it stays theirs."""
    editor.put("f", b"a\n")
    os.chown(editor.root / "f", 1234, 4321)
    editor.ok("insert", "f", insert_line=0, new_str="x")
    found = (editor.root / "f").stat()
    assert (found.st_uid, found.st_gid) == (1234, 4321)


def test_a_read_only_file_is_reported(editor: Editor) -> None:
    """Replacing the file would be possible, but would ignore the permission."""
    editor.put("f", b"a\n")
    (editor.root / "f").chmod(0o444)
    assert "read-only (mode 444)" in editor.fails("insert", "f", insert_line=0, new_str="x")
    assert editor.get("f") == b"a\n"


def test_a_link_to_a_missing_file_is_described(editor: Editor) -> None:
    """The error once suggested the link itself as a similar file."""
    (editor.root / "link").symlink_to("gone")
    assert editor.fails("view", "link") == "link does not exist. It is a link to a missing file."


@pytest.mark.requirement("S9")
def test_editing_a_link_keeps_it_and_edits_its_target(editor: Editor) -> None:
    """Temp file and rename once replaced the link by a file."""
    (editor.root / "d").mkdir()
    editor.put("d/target", b"a\n")
    (editor.root / "link").symlink_to("d/target")
    (editor.root / "absolute").symlink_to(editor.root / "d" / "target")
    editor.ok("str_replace", "link", old_str="a", new_str="b")
    editor.ok("str_replace", "absolute", old_str="b", new_str="c")
    assert (editor.root / "link").is_symlink()
    assert (editor.root / "absolute").is_symlink()
    assert editor.get("d/target") == b"c\n"
    editor.ok("undo_edit", "d/target")
    editor.ok("undo_edit", "link")
    assert editor.get("d/target") == b"a\n"


@pytest.mark.requirement("S9")
def test_a_file_with_hard_links_gets_a_warning(editor: Editor) -> None:
    """The other hard links keep the old content."""
    editor.put("f", b"a\n")
    os.link(editor.root / "f", editor.root / "g")
    assert "hard link" in editor.ok("insert", "f", insert_line=0, new_str="x")
    assert editor.get("g") == b"a\n"


@pytest.mark.requirement("S8")
def test_special_files_are_refused_without_waiting(editor: Editor) -> None:
    """Pipes, sockets, devices, directories."""
    os.mkfifo(editor.root / "pipe")
    (editor.root / "dir").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(editor.root / "socket"))
    cases = {"pipe": "named pipe", "socket": "socket", "dir": "directory"}
    if os.geteuid() == 0:
        os.mknod(editor.root / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        cases["null"] = "device"
    for path, kind in cases.items():
        if path != "dir":
            assert kind in editor.fails("view", path)
        assert kind in editor.fails("create", path, file_text="x")
        assert kind in editor.fails("str_replace", path, old_str="x")
        assert kind in editor.fails("insert", path, insert_line=0, new_str="x")


# --- writing


@pytest.mark.requirement("S10")
def test_a_file_that_changes_during_an_edit_is_not_overwritten(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last check for another write is right before the rename."""
    editor.put("f", b"a\n")
    own = _write._check_same

    def late(*args: Any) -> None:
        editor.put("f", b"b\n")
        os.utime(editor.root / "f", ns=(0, args[3].st_mtime_ns))
        own(*args)

    monkeypatch.setattr(_write, "_check_same", late)
    assert "changed by another program" in editor.fails("insert", "f", insert_line=0, new_str="x")
    assert editor.get("f") == b"b\n"
    assert editor.names() == ["f"]


@pytest.mark.requirement("S10")
def test_a_file_that_is_created_during_an_edit_is_not_overwritten(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new file gets its name only if no other file has it."""
    own = _write._place_new

    def late(*args: Any) -> None:
        editor.put("f", b"theirs\n")
        own(*args)

    monkeypatch.setattr(_write, "_place_new", late)
    assert "created by another program" in editor.fails("create", "f", file_text="ours")
    assert editor.get("f") == b"theirs\n"
    assert editor.names() == ["f"]


def test_a_file_can_be_created_without_hard_links(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAT and some network file systems refuse them."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    editor.ok("create", "f", file_text="x")
    assert editor.get("f") == b"x"
    assert editor.names() == ["f"]


def test_a_write_that_fails_leaves_the_original(editor: Editor) -> None:
    """F: files are limited to 4 kB here, so the write fails half-way, as on a full disk."""
    data = b"a\n" + b"x" * 6_000
    editor.put("f", data)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, before[1]))
    try:
        text = editor.fails("insert", "f", insert_line=0, new_str="new")
        editor.fails("create", "d/g", file_text="x" * 6_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert "was not changed" in text
    assert editor.get("f") == data
    assert editor.names() == ["f"]


def test_a_full_disk_is_reported(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    """F: ENOSPC from any of the calls leaves the original and no temporary file."""
    editor.put("f", b"a\n")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for call in ("write", "fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(_write.os, call, full)
            assert "disk is full: f was not changed" in editor.fails(
                "insert", "f", insert_line=0, new_str="x"
            )
    assert editor.get("f") == b"a\n"
    assert editor.names() == ["f"]
    assert "no change" in editor.fails("undo_edit", "f")


def test_a_process_killed_during_a_write_leaves_the_old_or_the_new_content(tmp_path: Path) -> None:
    """F: a reader always sees one complete version of the file."""
    one, two = "a" * 200_000, "b" * 200_000
    (tmp_path / "f").write_text(one)
    program = (
        "import sys\n"
        "from agents_tools.builtin.file_editor import FileEditorAction as A, FileEditorExecutor\n"
        f"x = FileEditorExecutor({str(tmp_path)!r}, history=0)\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    for new, old in (('a', 'b'), ('b', 'a')):\n"
        "        x(A(command='view', path='f'))\n"
        "        x(A(command='create', path='f', file_text=new * 200_000))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)  # noqa: S603
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        seen = {(tmp_path / "f").read_text() for _ in range(300)}
        process.kill()
    assert seen | {(tmp_path / "f").read_text()} <= {one, two}


def test_concurrent_edits_are_all_applied(editor: Editor) -> None:
    """Calls of one executor wait for each other."""
    editor.put("f", b"start\n")

    def add(name: str) -> None:
        for number in range(10):
            editor.ok("insert", "f", insert_line=1, new_str=f"{name}{number}")

    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = editor.get("f").split()
    assert sorted(lines[1:]) == sorted(f"{n}{i}".encode() for n in "abcd" for i in range(10))


# --- large files


@pytest.mark.requirement("S29")
def test_the_event_of_an_edit_contains_only_the_change(editor: Editor) -> None:
    """Editing 10 MB once made an event of 20 MB."""
    data = big_file()
    editor.put("f", data)
    seen = editor("str_replace", "f", old_str="100000 x", new_str="changed x")
    assert len(seen.model_dump_json()) < 3_000
    assert seen.diff is not None
    assert seen.diff.count("\n") == 11
    assert editor.get("f") == data.replace(b"100000 x", b"changed x")
    seen = editor("undo_edit", "f")
    assert len(seen.model_dump_json()) < 3_000
    assert editor.get("f") == data


@pytest.mark.requirement("S29")
def test_a_diff_is_bounded(editor: Editor) -> None:
    """The size of the replacement does not matter."""
    seen = editor("create", "f", file_text="line\n" * 100_000)
    assert seen.diff is not None
    assert len(seen.diff) < 21_000
    assert seen.diff.endswith("[the diff is cut here]\n")
    seen = editor("str_replace", "f", old_str="line", new_str="other", replace_all=True)
    assert seen.replaced == 100_000
    assert len(seen.model_dump_json()) < 30_000


def test_ranges_of_a_large_file_are_right_everywhere(editor: Editor) -> None:
    """The line index agrees with counting the lines."""
    editor.put("f", big_file(50_000))
    for first in (1, 2, 1_260, 1_261, 24_999, 49_999, 50_000):
        text = editor.ok("view", "f", view_range=[first, min(first + 2, 50_000)])
        assert f"{first:6}\t{first:06} x" in text


# --- the tool


@pytest.mark.requirement("B54", "C20")
async def test_the_tool_is_called_with_json(tmp_path: Path) -> None:
    """The file is created, arguments are validated, and errors are returned to the model."""
    (definition,) = FileEditorTool.create(working_dir=tmp_path)
    tool = definition.as_function_tool()
    made = await tool.call(None, '{"command": "create", "path": "f", "file_text": "x"}')
    assert made.output == "f was created with 1 line."
    wrong = await tool.call(None, '{"command": "view", "path": "g"}')
    assert "g does not exist" in str(wrong.output)
    for arguments in ({"command": "remove"}, {"command": "view", "view_range": [1]},
                      {"command": "insert", "insert_line": -1}, {"command": "view", "x": 1}):  # fmt: skip
        refused = await tool.call(None, json.dumps({"path": "f", **arguments}))
        assert refused.status == "invalid_args"
    definition.close()


@pytest.mark.requirement("B19", "B62", "C20")
def test_the_tool_definition(tmp_path: Path) -> None:
    """Name, alias, commands, annotations."""
    (tool,) = EditorTool.create(SimpleNamespace(workspace=SimpleNamespace(working_dir=tmp_path)))
    assert EditorTool is FileEditorTool
    assert FileEditorTool.name == tool.name == "str_replace_editor"
    assert tool.annotations is not None
    assert tool.annotations.destructive
    assert not tool.annotations.read_only
    assert not tool.annotations.open_world
    parameters = tool.to_openai_tool()["function"]["parameters"]
    commands = ["view", "create", "str_replace", "insert", "undo_edit"]
    assert parameters["properties"]["command"]["enum"] == commands
    assert tool.executor.default.workspace.working_dir == tmp_path
    assert (
        FileEditorTool.create(description="Edit.", executor=tool.executor)[0].description == "Edit."
    )
    tool.close()


def test_a_workspace_of_the_caller_is_not_closed(tmp_path: Path) -> None:
    """Its other users still need it."""
    with ConfinedWorkspace(tmp_path) as workspace:
        (tool,) = FileEditorTool.create(workspace=workspace)
        tool.close()
        os.close(workspace.locate(".").open())


def test_limits_are_checked(tmp_path: Path) -> None:
    """A negative limit is an error of the caller."""
    with pytest.raises(UserError):
        FileEditorExecutor(tmp_path, history=-1)


@pytest.mark.requirement("B29")
def test_loading_the_definition_does_not_load_the_implementation() -> None:
    """Reading the tool's definition must be cheap."""
    program = (
        "import sys, agents_tools.builtin.file_editor as e\n"
        "assert 'agents_tools.builtin.file_editor.executor' not in sys.modules\n"
        "e.FileEditorExecutor\n"
        "assert 'agents_tools.builtin.file_editor.executor' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - our own program


# --- several editors


@pytest.mark.requirement("S10")
def test_an_editor_waits_for_the_lock_of_another_process(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process writes while it holds the lock is not overwritten."""
    editor.put("f", b"old\n")
    code = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
print("locked", flush=True)
for line in sys.stdin:
    break
os.close(os.open(sys.argv[1] + "2", os.O_CREAT | os.O_WRONLY))
os.replace(sys.argv[1] + "2", sys.argv[1])
"""
    command = [sys.executable, "-c", code, str(editor.root / "f")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:  # noqa: S603 - of this test
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "locked\n"
        told = other.stdin
        wait = _write._lock

        def lock(fd: int) -> None:
            told.write("go\n")
            told.flush()
            wait(fd)

        monkeypatch.setattr(_write, "_lock", lock)
        monkeypatch.setattr(_write, "_LOCK_SECONDS", 15.0)
        text = editor.fails("str_replace", "f", old_str="old", new_str="new")
        assert other.wait(10) == 0
    assert "changed by another program" in text
    assert editor.get("f") == b""


def test_unused_locks_are_removed(editor: Editor) -> None:
    """A lock is removed with the last editor that waits for it."""
    for number in range(50):
        editor.ok("create", f"f{number}", file_text="x")
    assert len(_write._turns) == 0


async def test_a_cancelled_replacement_is_not_made(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call stops between places, and the file stays as it is."""
    content = b"a\r\na\n" * 10_000
    editor.put("f", content)
    begun, goes_on = threading.Event(), threading.Event()
    check = _write.check_cancelled
    stopped: list[BaseException] = []

    def checked() -> None:
        begun.set()
        goes_on.wait(BOUND)
        try:
            check()
        except BaseException as error:
            stopped.append(error)
            raise

    monkeypatch.setattr(_edit, "check_cancelled", checked)
    tool = FileEditorTool.create(executor=editor.executor)[0].as_function_tool()
    arguments = {"command": "str_replace", "path": "f", "old_str": "a\n", "new_str": "b\n"}
    call = asyncio.create_task(tool.call(None, json.dumps({**arguments, "replace_all": True})))
    assert await asyncio.to_thread(begun.wait, BOUND)
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    goes_on.set()
    await asyncio.to_thread(editor.ok, "create", "other", file_text="")  # gets the lock afterwards
    assert [type(error).__name__ for error in stopped] == ["ToolCancelledError"]
    assert editor.get("f") == content
