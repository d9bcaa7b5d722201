"""No path, link or race condition leads an editor command out of its workspace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents_tools.builtin import get_default_tools, paths as _paths
from agents_tools.builtin.file_editor import FileEditorAction, FileEditorExecutor
from agents_tools.testing import call_tool_sync

COMMANDS: dict[str, dict[str, Any]] = {
    "view": {},
    "create": {"file_text": "planted"},
    "str_replace": {"old_str": "secret", "new_str": "planted"},
    "insert": {"insert_line": 0, "new_str": "planted"},
    "undo_edit": {},
}
UPS = ["..", "../..", "../../..", "./..", "a/../..", "a/b/../../..", "a//../..", "a/./../.."]
ENDS = ["outside/secret", "outside", "outside/new", "etc/passwd", "", "inside-other/secret"]
SPELLINGS = [
    "%2e%2e/outside/secret",
    "..%2foutside",
    "..\\outside\\secret",
    "\u2025/outside/secret",
    "\uff0e\uff0e/outside/secret",
    "\u2024\u2024/outside/secret",
    "..\u2215outside",
    "..\u200b/outside/secret",
    ".. /outside/secret",
    "../ outside/secret",
    "... /x",
    ".../outside",
    "..../outside",
    "~/.ssh/id_rsa",
    "~root/.bashrc",
    "$HOME/.bashrc",
    "${HOME}/x",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "c:x",
    "\\\\server\\share\\x",
    "//server/share/x",
    "\\\\?\\C:\\x",
    "\\\\.\\pipe\\x",
    "a/file::$DATA",
    "a/file:stream",
    "CON",
    "nul.txt",
    "a/file.",
    "a/file ",
    "file:///etc/passwd",
    "a/file\0.txt",
    "\0",
    "a\0/../../outside/secret",
    "x" * 255,
    "x" * 256,
    "x" * 4_095,
    "x" * 5_000,
    "d/" * 3_000 + "x",
    "/" * 3_000,
    "../" * 1_300 + "etc/passwd",
    "-rf",
    "--help",
    "|id",
    ";id",
    "$(id)",
    "`id`",
    "a\nb",
    "\x1b]52;c;x\x07",
    "\u202etxt.exe",
    "\udcff",
    "*",
    "a/file/",
    "a/file/.",
    "a/file/..",
    "a/file/x",
    "a/missing/../../../outside/secret",
]
SYSTEM = [
    "/etc/passwd",
    "//etc/passwd",
    "///etc/passwd",
    "/./etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/../../etc/passwd",
    "/proc/1/root/etc/passwd",
    "/dev/null",
    "/dev/zero",
    "/dev/stdin",
    "/dev/fd/0",
    "/sys/kernel/notes",
    "/var/../etc/passwd",
    "/",
]
ABSOLUTE = [
    "{root}/../outside/secret",
    "{root}/../outside/new",
    "{root}-other/secret",
    "{root}/a/../../outside/secret",
    "{root}/./../outside/secret",
    "{root}//../outside/secret",
    "{root}/..",
    "{parent}/outside/secret",
    "{parent}",
    "{upper}/a/file",
    "{root}/link-out/secret",
]
CORPUS = [f"{up}/{end}" for up in UPS for end in ENDS] + SPELLINGS + SYSTEM + ABSOLUTE
LINKS = {
    "out-file": "../outside/secret",
    "out-dir": "../outside",
    "out-absolute": "{parent}/outside/secret",
    "out-new": "../outside/new",
    "chain-out": "out-file",
    "loop": "loop",
    "loop-a": "loop-b",
    "loop-b": "loop-a",
    "dangling": "nothing",
    "system": "/etc",
    "process": "/proc/self/root",
}


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    for path in ("outside/secret", "inside-other/secret", "inside/a/file", "inside/a/b/file"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("secret")
    return tmp_path / "inside"


@pytest.fixture(params=["kernel", "walk"])
def editor(inside: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """An editor that resolves paths by the kernel if it can, and one that never does."""
    if request.param == "walk":
        monkeypatch.setattr(_paths, "_openat2", None)
    made = FileEditorExecutor(inside)
    yield made
    made.close()


def untouched(inside: Path) -> bool:
    """Whether everything outside of the workspace is as it was."""
    parent = inside.parent
    rest = {str(p.relative_to(parent)) for p in parent.rglob("*") if inside not in p.parents}
    expected = {"inside", "outside", "outside/secret", "inside-other", "inside-other/secret"}
    return rest == expected and all(
        (parent / path).read_text() == "secret" for path in expected if path.endswith("secret")
    )


def run(editor: FileEditorExecutor, command: str, path: str) -> str | None:
    """Return the output of a command; an empty text if it is refused."""
    action: Any = {"command": command, "path": path, **COMMANDS[command]}
    seen = editor(FileEditorAction.model_construct(**{**BLANK, **action}))
    assert len(seen.text) < 20_000
    seen.model_dump_json().encode()
    if seen.is_error:
        assert len(seen.text) < 1_500
        assert "\x1b" not in seen.text
        return None
    return seen.text


BLANK: dict[str, Any] = {
    "old_str": None, "new_str": None, "file_text": None, "insert_line": None, "view_range": None,
    "replace_all": False,
}  # fmt: skip


@pytest.mark.requirement("S8")
@pytest.mark.parametrize("command", COMMANDS)
def test_no_path_leads_out(inside: Path, editor: FileEditorExecutor, command: str) -> None:
    """A corpus of paths with each command: nothing outside is shown, made or changed."""
    (inside / "link-out").symlink_to("../outside")
    upper = str(inside).upper()
    for row in CORPUS:
        path = row
        for name, value in {"root": inside, "parent": inside.parent, "upper": upper}.items():
            path = path.replace(f"{{{name}}}", str(value))
        shown = run(editor, command, path)
        if command == "view" and path != "a/file/..":
            assert shown is None, path
        assert untouched(inside), path


@pytest.mark.requirement("S9")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("link", LINKS)
def test_no_link_leads_out(
    inside: Path, editor: FileEditorExecutor, command: str, link: str
) -> None:
    """Files, directories, chains, loops and what is not there."""
    for name, target in LINKS.items():
        (inside / name).symlink_to(target.format(parent=inside.parent))
    for path in (link, f"{link}/secret", f"{link}/new", f"a/../{link}"):
        shown = run(editor, command, path)
        assert shown is None or link == "dangling", path
        assert untouched(inside)
    assert all((inside / name).is_symlink() for name in LINKS)


@pytest.mark.requirement("S12")
@pytest.mark.parametrize("command", ["create", "insert", "str_replace"])
def test_protected_names_can_be_read_but_not_changed(
    inside: Path, editor: FileEditorExecutor, command: str
) -> None:
    """This holds for existing and missing names, and through links."""
    (inside / ".git").mkdir()
    (inside / ".git" / "config").write_text("secret")
    (inside / "config").symlink_to(".git/config")
    (inside / "hooks").symlink_to(".git/hooks")
    for path in (".git/config", "config", "hooks/pre-commit", ".git/hooks/pre-commit",
                 ".mcp.json", "a/.mcp.json", ".agents_tools/x", ".GIT/config", ".vscode",
                 ".vscode/tasks.json", ".claude/settings.json", ".husky/pre-commit",
                 ".envrc"):  # fmt: skip
        assert run(editor, command, path) is None, path
    assert "secret" in (run(editor, "view", "config") or "")
    assert (inside / ".git" / "config").read_text() == "secret"
    assert {path.name for path in inside.iterdir()} == {".git", "a", "config", "hooks"}


SWAPPER = """
import os, sys
os.chdir(sys.argv[1])
os.symlink("../outside", "link")
print("ready", flush=True)
while True:
    os.rename("d", "kept")
    os.rename("link", "d")
    os.rename("d", "link")
    os.rename("kept", "d")
"""


@pytest.mark.requirement("S10")
def test_no_command_escapes_while_a_directory_is_swapped(
    inside: Path, editor: FileEditorExecutor
) -> None:
    """Each command, again and again, against a process that swaps in a link to outside."""
    (inside / "d").mkdir()
    (inside / "d" / "secret").write_text("own\n")
    (inside.parent / "outside" / "secret").write_text("secret\n")
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", "-c", SWAPPER, str(inside)], stdout=subprocess.PIPE
    )
    done = 0
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            for number in range(3_000):
                shown = run(editor, "view", "d/secret")
                assert "secret\n" not in (shown or "").partition(":\n")[2]
                if number % 30 == 0:
                    done += run(editor, "insert", "d/secret") is not None
                    run(editor, "create", f"d/new-{number}")
                    run(editor, "undo_edit", "d/secret")
        finally:
            process.kill()
    assert (inside.parent / "outside" / "secret").read_text() == "secret\n"
    assert [path.name for path in (inside.parent / "outside").iterdir()] == ["secret"]
    assert not [name for name in os.listdir(inside) if name.endswith(".tmp")]  # noqa: PTH208


@pytest.mark.parametrize("action", ["view", "create", "glob", "grep"])
def test_a_workspace_that_was_replaced_is_reported(tmp_path: Path, action: str) -> None:
    """A command such as `git clone` replaces it; the tools said that no file exists."""
    root = tmp_path / "work"
    root.mkdir()
    with get_default_tools(root) as tools:
        _, editor, glob, grep, _ = (tool.as_function_tool() for tool in tools)
        call, arguments = {
            "view": (editor, {"command": "view", "path": "."}),
            "create": (editor, {"command": "create", "path": str(root / "b"), "file_text": "b"}),
            "glob": (glob, {"pattern": "*"}),
            "grep": (grep, {"pattern": "a"}),
        }[action]
        assert "was removed" not in str(call_tool_sync(call, arguments).output)
        shutil.rmtree(root)
        root.mkdir()
        output = str(call_tool_sync(call, arguments).output)
    assert f"The workspace {str(root)!r} was removed or replaced" in output
