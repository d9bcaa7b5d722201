"""Test that a workspace never opens anything outside of it, for any path and in any race."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from agents_tools.builtin import paths as _paths
from agents_tools.builtin.paths import ConfinedWorkspace, PathNotAllowed, Root
from agents_tools.errors import ToolError, UserError

needs_openat2 = pytest.mark.skipif(_paths._openat2 is None, reason="needs openat2")
WAYS = [pytest.param("kernel", marks=needs_openat2), "walk"]


@pytest.fixture(params=WAYS)
def resolver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Resolve paths with openat2, or component by component."""
    if request.param == "walk":
        monkeypatch.setattr(_paths, "_openat2", None)
    return request.param


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """Return a directory with files, next to one that must not be reached."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("outside")
    root = tmp_path / "inside"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "file").write_text("inside")
    (root / "a" / "b" / "deep").write_text("inside")
    return root


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def read(fd: int) -> str:
    with open(fd) as file:
        return file.read()


# --- names

GOOD = [
    "a/file",
    "./a/file",
    "a//file",
    "a/./file",
    "a/b/../file",
    "a/../a/file",
    "a/b/../../a/file",
]
OUT = ["..", "../outside/secret", "a/../../outside/secret", "../inside/a/file", "a/b/../../../x"]


@pytest.mark.requirement("S8")
@pytest.mark.parametrize("path", GOOD)
def test_equivalent_paths_open_the_same_file(inside: Path, resolver: str, path: str) -> None:
    """`..` and double slashes are resolved and not compared as text."""
    with Root(inside) as root:
        assert read(root.open(path)) == "inside"
        assert root.resolve(path) == "a/file"


@pytest.mark.requirement("S8")
@pytest.mark.parametrize("path", OUT)
def test_paths_that_lead_outside_are_refused(inside: Path, resolver: str, path: str) -> None:
    """This includes paths that come back inside later."""
    with Root(inside) as root:
        for use in (root.open, root.stat, root.resolve):
            with pytest.raises((PathNotAllowed, FileNotFoundError)):
                use(path)
        with pytest.raises((PathNotAllowed, FileNotFoundError)):
            root.open_parent(path)


@pytest.mark.requirement("S8")
def test_an_absolute_path_must_be_inside_the_workspace(inside: Path, resolver: str) -> None:
    """CVE-2025-53110 accepted `/ws-other` for `/ws`."""
    sibling = inside.with_name("inside-other")
    sibling.mkdir()
    (sibling / "x").write_text("outside")
    with ConfinedWorkspace(inside) as workspace:
        assert read(workspace.locate(str(inside / "a/file")).open()) == "inside"
        assert read(workspace.locate(f"//{inside}/a/file").open()) == "inside"
        for path in (sibling / "x", "/etc/passwd", inside.parent, "/", f"{inside}x"):
            with pytest.raises(PathNotAllowed, match="outside the workspace"):
                workspace.locate(path)
        with pytest.raises(PathNotAllowed):
            workspace.locate(f"{inside}/../outside/secret").open()


@pytest.mark.requirement("S8")
@pytest.mark.parametrize(
    "path", ["", "a\0b", "a/fi\0le", "x" * 5000, "a/" * 2500, "\ud800", "a/\udfff\ud800"]
)
def test_invalid_paths_are_refused(inside: Path, path: str) -> None:
    """NUL characters, 4 KB names and lone surrogates never reach the system."""
    with ConfinedWorkspace(inside) as workspace, pytest.raises(PathNotAllowed) as refused:
        workspace.locate(path).open()
    assert len(str(refused.value)) < 500
    str(refused.value).encode()


@pytest.mark.requirement("S8")
def test_a_name_that_is_not_utf_8_can_be_opened(inside: Path, resolver: str) -> None:
    """Names are bytes; invalid UTF-8 is represented by surrogate escapes."""
    name = os.fsdecode(b"latin-\xe9")
    (inside / name).write_text("inside")
    with Root(inside) as root:
        assert read(root.open(name)) == "inside"


@pytest.mark.requirement("S8")
def test_a_name_with_a_trailing_slash_must_be_a_directory(inside: Path, resolver: str) -> None:
    """Both resolvers refuse `file/`."""
    with Root(inside) as root:
        os.close(root.open("a/", os.O_RDONLY))
        for path in ("a/file/", "a/file/."):
            with pytest.raises(NotADirectoryError):
                root.open(path)


@pytest.mark.requirement("S8")
def test_a_refusal_names_the_allowed_directories(inside: Path) -> None:
    """The model can correct itself, and the message contains no terminal escapes."""
    with ConfinedWorkspace(inside) as workspace:
        with pytest.raises(ToolError, match="outside the workspace") as refused:
            workspace.locate("../\x1b[31mx").open()
        assert str(inside) in str(refused.value)
        assert "\x1b" not in str(refused.value)


def test_a_missing_workspace_directory_raises_when_it_is_created(tmp_path: Path) -> None:
    """The caller finds a wrong directory early."""
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(UserError, match="cannot be used"):
            ConfinedWorkspace(path)


def test_additional_directories_are_accessible_by_absolute_paths(inside: Path) -> None:
    """Several roots form one workspace."""
    with ConfinedWorkspace(inside, also=[inside.parent / "outside"]) as workspace:
        assert read(workspace.locate(inside.parent / "outside/secret").open()) == "outside"
        with pytest.raises(PathNotAllowed):
            workspace.locate("../outside/secret").open()


def test_a_closed_workspace_opens_nothing(inside: Path, resolver: str) -> None:
    """It must not fall back to the current directory."""
    workspace = ConfinedWorkspace(inside)
    place = workspace.locate("a/file")
    workspace.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        place.open()


# --- links

LINKS = {
    "file inside": ("a/file", "l", "inside"),
    "up inside": ("../inside/a/file", "l", None),
    "file outside": ("../outside/secret", "l", None),
    "absolute inside": ("{root}/a/file", "l", "inside"),
    "absolute outside": ("{root}/../outside/secret", "l", None),
    "system": ("/etc/passwd", "l", None),
    "directory inside": ("a/b", "l/deep", "inside"),
    "directory outside": ("../outside", "l/secret", None),
    "absolute directory outside": ("{root}/../outside", "l/secret", None),
    "process": ("/proc/self/root/etc/passwd", "l", None),
    "dangling": ("nothing", "l", None),
    "loop": ("l", "l", None),
    "upwards": ("a/../a/file", "l", "inside"),
    "up and over": ("a/../../outside/secret", "l", None),
}


@pytest.mark.requirement("S9")
@pytest.mark.parametrize("case", LINKS)
def test_links_are_followed_while_they_stay_inside(inside: Path, resolver: str, case: str) -> None:
    """All kinds of links are opened, inspected and resolved."""
    target, path, expected = LINKS[case]
    (inside / "l").symlink_to(target.format(root=inside))
    with Root(inside) as root:
        if expected is not None:
            assert read(root.open(path)) == expected
            assert root.stat(path).st_size == 6
            assert root.resolve(path) in {"a/file", "a/b/deep"}
            return
        for use in (root.open, root.stat):
            with pytest.raises((PathNotAllowed, OSError)):
                use(path)


@pytest.mark.requirement("S9")
def test_a_chain_of_links_is_followed_to_its_end(inside: Path, resolver: str) -> None:
    """It is refused if its last link leads outside."""
    for number in range(10):
        (inside / f"l{number}").symlink_to(f"l{number + 1}")
    (inside / "l10").symlink_to("a/file")
    with Root(inside) as root:
        assert read(root.open("l0")) == "inside"
        (inside / "l10").unlink()
        (inside / "l10").symlink_to("../outside/secret")
        with pytest.raises(PathNotAllowed):
            root.open("l0")


@pytest.mark.requirement("S9")
def test_no_file_is_created_through_a_link_that_leads_outside(inside: Path, resolver: str) -> None:
    """A dangling link must not create a file elsewhere."""
    (inside / "l").symlink_to("../outside/new")
    (inside / "d").symlink_to("../outside")
    flags = os.O_WRONLY | os.O_CREAT
    with Root(inside) as root:
        for path in ("l", "d/new"):
            with pytest.raises(PathNotAllowed):
                root.open(path, flags)
            with pytest.raises((PathNotAllowed, OSError)):
                root.open(path, flags | os.O_EXCL)
        with pytest.raises(PathNotAllowed):
            root.open_parent("d/new/x", make=True)
    assert names(inside.parent / "outside") == ["secret"]


@pytest.mark.requirement("S11")
def test_an_exclusive_file_is_not_created_through_a_link(inside: Path, resolver: str) -> None:
    """`O_EXCL` finds the link itself, as usual."""
    (inside / "l").symlink_to("new")
    with Root(inside) as root, pytest.raises(FileExistsError):
        root.open("l", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    assert not (inside / "new").exists()


@pytest.mark.requirement("S8")
def test_inspecting_a_pipe_does_not_block(inside: Path, resolver: str) -> None:
    """The type of a file is determined without opening it for reading."""
    os.mkfifo(inside / "pipe")
    with Root(inside) as root:
        assert root.stat("pipe").st_size == 0


# --- protected files

PROTECTED = [
    ".mcp.json",
    "a/.mcp.json",
    ".git/config",
    ".git/hooks/pre-commit",
    "a/.git/hooks/x/y",
    ".GIT/Config",
    ".agents_tools/tools.json",
    ".vscode/mcp.json",
    ".mcp.json.",
    ".mcp.json ",
    ".mcp.json::$DATA",
    ".g\u200cit/config",
    "\uff0egit/config",
    ".git",
    ".vscode",
    "b/../.mcp.json",
    ".git/./config",
    ".git//hooks",
    ".git/modules/x/config",
    ".git/worktrees/x/commondir",
    ".git/worktrees/x/gitdir",
    ".claude/settings.json",
    "a/.claude/settings.local.json",
    ".codex/config.toml",
    ".cursor/hooks.json",
    ".envrc",
    "a/.envrc",
    ".gemini/settings.json",
    ".husky/pre-commit",
    ".husky/_/h",
    ".vscode/launch.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
]


@pytest.mark.requirement("S12")
@pytest.mark.parametrize("path", PROTECTED)
def test_protected_names_are_not_writable_even_when_absent(
    inside: Path, resolver: str, path: str
) -> None:
    """A file in the place of a protected directory is refused, too."""
    with ConfinedWorkspace(inside) as workspace, pytest.raises(PathNotAllowed, match="protected"):
        workspace.open_writable_parent(workspace.locate(path), make=True)
    assert names(inside) == ["a"]


@pytest.mark.requirement("S12")
@pytest.mark.parametrize(
    "path", ["rebase-merge/git-rebase-todo", "rebase-apply/patch", "sequencer/todo"]
)
def test_the_commands_of_a_git_operation_are_not_writable(
    inside: Path, resolver: str, path: str
) -> None:
    """`git rebase --continue` executes them, also in a repository with another name."""
    for name in (".git", "bare"):
        repository = inside / name
        for part in ("objects", "refs", str(Path(path).parent)):
            (repository / part).mkdir(parents=True)
        (repository / "HEAD").touch()
        with (
            ConfinedWorkspace(inside) as workspace,
            pytest.raises(PathNotAllowed, match="protected"),
        ):
            workspace.open_writable_parent(workspace.locate(f"{name}/{path}"), make=True)
    with ConfinedWorkspace(inside) as workspace:
        parent, _ = workspace.open_writable_parent(workspace.locate("sequencer"))
        os.close(parent)


@pytest.mark.requirement("S12")
def test_links_do_not_hide_protected_files(inside: Path, resolver: str) -> None:
    """The name of the written file decides, not that of the link."""
    (inside / ".git" / "hooks").mkdir(parents=True)
    (inside / "innocent").symlink_to(".git/hooks")
    (inside / "config").symlink_to(".git/config")
    with ConfinedWorkspace(inside) as workspace:
        for path in ("innocent/pre-commit", "config"):
            with pytest.raises(PathNotAllowed, match="protected"):
                workspace.open_writable_parent(workspace.locate(path))


@pytest.mark.requirement("S12")
@pytest.mark.parametrize("name", ["config", "Config", "hooks/post-checkout", "commondir", "hooks"])
@pytest.mark.parametrize("where", ["", "a/bare/"])
def test_a_git_repository_of_any_name_is_protected(
    inside: Path, resolver: str, name: str, where: str
) -> None:
    """Git accepts every directory with a HEAD, objects and refs as a repository."""
    bare = inside / where
    for entry in ("objects", "refs"):
        (bare / entry).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    with ConfinedWorkspace(inside) as workspace:
        with pytest.raises(PathNotAllowed, match="protected"):
            workspace.open_writable_parent(workspace.locate(where + name), make=True)
        for other in ("HEAD", "description", "refs/x", "sub/config"):
            parent, _ = workspace.open_writable_parent(workspace.locate(where + other), make=True)
            os.close(parent)
    with ConfinedWorkspace(inside, protected=()) as workspace:
        parent, _ = workspace.open_writable_parent(workspace.locate(where + name), make=True)
        os.close(parent)


@pytest.mark.requirement("S12")
@pytest.mark.parametrize("last", ["HEAD", "head", "objects/x", "refs/x"])
def test_a_directory_with_a_git_config_cannot_become_a_repository(
    inside: Path, resolver: str, last: str
) -> None:
    """A repository must not be created around a configuration that Git would execute."""
    (inside / "config").write_text("[core]\n")
    for entry in {"HEAD", "objects", "refs"} - {last.partition("/")[0], last.upper()}:
        (inside / entry).mkdir()
    with (
        ConfinedWorkspace(inside) as workspace,
        pytest.raises(PathNotAllowed, match="git repository"),
    ):
        workspace.open_writable_parent(workspace.locate(last), make=True)


@pytest.mark.requirement("S8")
def test_absolute_paths_can_go_up_and_come_back(inside: Path, resolver: str) -> None:
    """The resolved path decides; a refusal names the original path."""
    with ConfinedWorkspace(inside) as workspace:
        for path in ("{0}/../{0.name}/a/file", "{0}/a/../../{0.name}/a/../a/file"):
            assert read(workspace.locate(path.format(inside)).open()) == "inside"
        (inside / "l").symlink_to("../outside")
        for path in (f"{inside}/../outside/secret", f"{inside}/l/secret"):
            with pytest.raises(PathNotAllowed) as refused:
                workspace.locate(path).open()
            assert str(refused.value).startswith(f"{path} is outside")


@pytest.mark.requirement("S19")
def test_a_path_is_shown_on_one_line(inside: Path) -> None:
    """Characters that could be mistaken for others are escaped."""
    with ConfinedWorkspace(inside) as workspace:
        shown = workspace.locate("a\nb\r\u2028c\td\x85\x1b[1m").shown
    assert shown == r"a\nb\r\u2028c\td\x85\x1b[1m"


@pytest.mark.requirement("S12")
def test_unprotected_files_are_writable(inside: Path, resolver: str) -> None:
    """Covers similar names, and a workspace below a protected name."""
    work = inside / ".agents_tools" / "sessions"
    work.mkdir(parents=True)
    for root, path in ((inside, "mcp.json"), (inside, ".gitignore"), (inside, "git/config"),
                       (inside, ".git/info/exclude"), (work, "notes")):  # fmt: skip
        with ConfinedWorkspace(root) as workspace:
            parent, name = workspace.open_writable_parent(workspace.locate(path), make=True)
            os.close(parent)
            assert name == Path(path).name


# --- races

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


@contextlib.contextmanager
def swapping(inside: Path) -> Generator[None, None, None]:
    """Run a process that keeps replacing a directory with a link to the outside."""
    (inside / "d").mkdir()
    (inside / "d" / "secret").write_text("inside")
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", "-S", "-c", SWAPPER, str(inside)], stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


@pytest.mark.requirement("S10")
def test_no_open_escapes_while_a_directory_is_swapped(inside: Path, resolver: str) -> None:
    """30,000 opens with a concurrent swapper never escape; the slower resolver makes fewer."""
    seen = {"inside": 0, "refused": 0}
    with swapping(inside), Root(inside) as root:
        for _ in range(30_000 if resolver == "kernel" else 6_000):
            try:
                fd = root.open("d/secret")
            except (PathNotAllowed, OSError):
                seen["refused"] += 1
                continue
            try:
                seen[os.read(fd, 10).decode()] += 1  # "outside" is not a key
            finally:
                os.close(fd)
    assert seen["inside"] > 0
    assert seen["refused"] > 0


@pytest.mark.requirement("S10")
def test_no_file_is_created_outside_while_a_directory_is_swapped(
    inside: Path, resolver: str
) -> None:
    """A file is written to the directory that was opened."""
    with swapping(inside), ConfinedWorkspace(inside) as workspace:
        for number in range(2_000):
            try:
                parent, name = workspace.open_writable_parent(workspace.locate(f"d/{number}"))
            except (PathNotAllowed, OSError):
                continue
            try:
                os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=parent))
            finally:
                os.close(parent)
    assert names(inside.parent / "outside") == ["secret"]


@pytest.mark.requirement("S22")
def test_no_file_descriptor_is_left_open(inside: Path, resolver: str) -> None:
    """Covers successful and refused operations."""
    (inside / "l").symlink_to("../outside")
    before = len(names(Path("/proc/self/fd"))) if sys.platform == "linux" else 0
    with ConfinedWorkspace(inside) as workspace:
        for path in [*GOOD, *OUT, "l/secret", "missing/x", "a/file/x", ".mcp.json"]:
            place = workspace.locate(path)
            with contextlib.suppress(PathNotAllowed, OSError):
                os.close(place.open())
            with contextlib.suppress(PathNotAllowed, OSError):
                os.close(workspace.open_writable_parent(place)[0])
    if sys.platform == "linux":
        assert len(names(Path("/proc/self/fd"))) == before


@pytest.mark.requirement("S8")
def test_a_socket_is_listed_but_not_opened(inside: Path, resolver: str) -> None:
    """Special files are detected before they are opened."""
    with socket.socket(socket.AF_UNIX) as server, Root(inside) as root:
        server.bind(os.path.relpath(inside / "s"))
        assert root.stat("s").st_size == 0
        with pytest.raises(OSError, match="No such device or address"):
            root.open("s")
