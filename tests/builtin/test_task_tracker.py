"""`task_tracker`: the task list, and its persistence."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from inline_snapshot import snapshot

from agents_tools.builtin import TaskTrackerAction, TaskTrackerObservation, TaskTrackerTool
from agents_tools.builtin.task_tracker import Task, TaskTrackerExecutor


def plan(*titles: str) -> TaskTrackerAction:
    return TaskTrackerAction(command="plan", tasks=[Task(title=title) for title in titles])


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


VIEW = TaskTrackerAction(command="view")


def titles(seen: TaskTrackerObservation) -> list[str]:
    return [task.title for task in seen.tasks]


@pytest.mark.requirement("B90")
async def test_the_text_for_the_model() -> None:
    """The list in order with each status; two tasks in progress at once get a warning."""
    tool = TaskTrackerTool.create()[0].as_function_tool()
    given = {
        "command": "plan",
        "tasks": [
            {"title": "Read", "status": "done"},
            {"title": "Write", "status": "in_progress", "notes": "first a.py\nthen b.py"},
            {"title": "Test", "status": "in_progress"},
            {"title": "Ship\x1b[31m"},
        ],
    }
    outcome = await tool.call(None, json.dumps(given))
    assert outcome.status == "ok"
    assert outcome.output == snapshot("""\
Saved 4 tasks: 1 done, 2 in progress.
1. [x] Read
2. [>] Write
   first a.py
   then b.py
3. [>] Test
4. [ ] Ship\\x1b[31m
2 tasks are in progress: finish one before you start the next.\
""")
    outcome = await tool.call(None, "{}")
    assert str(outcome.output).startswith("4 tasks: 1 done, 2 in progress.\n1. [x] Read")


@pytest.mark.requirement("B90")
@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("todo", "todo"),
        ("pending", "todo"),
        ("To-Do", "todo"),
        ("In Progress", "in_progress"),
        ("in-progress", "in_progress"),
        ("doing", "in_progress"),
        ("completed", "done"),
        ("DONE", "done"),
    ],
)
async def test_synonyms_of_a_status_are_accepted(word: str, status: str) -> None:
    """The model needs no second attempt."""
    tool = TaskTrackerTool.create()[0].as_function_tool()
    given = {"command": "plan", "tasks": [{"title": "a", "status": word}]}
    outcome = await tool.call(None, json.dumps(given))
    assert outcome.status == "ok", outcome.output
    assert isinstance(outcome.value, TaskTrackerObservation)
    assert outcome.value.tasks[0].status == status


@pytest.mark.requirement("B90")
def test_the_list_argument_has_another_name() -> None:
    """Some programs call it `task_list`."""
    action = TaskTrackerAction.model_validate({"command": "plan", "task_list": [{"title": "a"}]})
    assert titles(TaskTrackerExecutor()(action)) == ["a"]


@pytest.mark.requirement("B90")
@pytest.mark.parametrize(
    "given",
    [
        {"command": "plan", "tasks": [{"title": ""}]},
        {"command": "plan", "tasks": [{"title": "a", "status": "maybe"}]},
        {"command": "plan", "tasks": [{"title": "a", "who": "me"}]},
        {"command": "plan", "tasks": [{"title": "a"}] * 501},
        {"command": "drop"},
    ],
)
async def test_an_invalid_task_list_is_refused(given: dict[str, object]) -> None:
    """The stored list does not change."""
    tool = TaskTrackerTool.create()[0]
    tool(plan("kept"))
    outcome = await tool.as_function_tool().call(None, json.dumps(given))
    assert outcome.status == "invalid_args"
    assert titles(tool(VIEW)) == ["kept"]


@pytest.mark.requirement("B90")
def test_plan_requires_tasks_and_view_accepts_none() -> None:
    """A missing list must not clear the tasks; an empty one does."""
    executor = TaskTrackerExecutor()
    executor(plan("a"))
    refused = executor(TaskTrackerAction(command="plan"))
    assert refused.is_error
    assert titles(refused) == ["a"]
    refused = executor(TaskTrackerAction(command="view", tasks=[Task(title="b")]))
    assert refused.is_error
    assert "Use `plan`" in refused.text
    assert executor(plan()).text == "Saved 0 tasks: 0 done, 0 in progress."
    assert executor(VIEW).text == "There are no tasks yet. Use `plan`."


@pytest.mark.requirement("B19")
def test_annotations() -> None:
    """Not destructive, closed-world."""
    hints = TaskTrackerTool.create()[0].annotations
    assert hints is not None
    assert (hints.read_only, hints.destructive, hints.open_world) == (False, False, False)


@pytest.mark.requirement("B90")
def test_parameters(tmp_path: Path) -> None:
    """Invalid values are reported when the tool is created."""
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="expected a directory"):
        TaskTrackerTool.create(save_dir=tmp_path / "file")
    with pytest.raises(ValueError, match="save_dir, but got dir"):
        TaskTrackerTool.create(dir=tmp_path)
    state = SimpleNamespace(persistence_dir=tmp_path / "here")
    TaskTrackerTool.create(state)[0](plan("a"))
    assert (tmp_path / "here" / "tasks.json").is_file()


# --- what outlives what


@pytest.mark.requirement("B90")
def test_the_list_survives_a_restart(tmp_path: Path) -> None:
    """A new program continues with the list; other users cannot read it."""
    TaskTrackerExecutor(tmp_path / "new" / "dir")(plan("a", "ü"))
    file = tmp_path / "new" / "dir" / "tasks.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert names_in(file.parent) == ["tasks.json"]
    program = (
        "import sys\n"
        "from agents_tools.builtin.task_tracker import *\n"
        "print(ascii(TaskTrackerExecutor(sys.argv[1])(TaskTrackerAction()).tasks[1].title))\n"
    )
    done = subprocess.run(  # noqa: S603 - this interpreter, on a program of ours
        [sys.executable, "-c", program, str(file.parent)], capture_output=True, check=True
    )
    assert done.stdout.strip() == rb"'\xfc'"


@pytest.mark.requirement("B90")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"version": 1, "tasks": [{"ti',
        b"\xff\xfe",
        b"[]",
        b'{"version": 2, "tasks": []}',
        b'{"version": 1, "tasks": [{"title": "a", "status": "perhaps"}]}',
        b"[" * 100_000,
    ],
)
def test_an_unreadable_file_is_kept_and_reported(tmp_path: Path, content: bytes) -> None:
    """A file of a later version, or a damaged one, must not be overwritten."""
    (tmp_path / "tasks.json").write_bytes(content)
    seen = TaskTrackerExecutor(tmp_path)(plan("new"))
    assert seen.warning is not None
    assert "renamed to tasks.json.unreadable-1" in seen.text
    assert (tmp_path / "tasks.json.unreadable-1").read_bytes() == content
    again = TaskTrackerExecutor(tmp_path)(VIEW)
    assert (titles(again), again.warning) == (["new"], None)
    (tmp_path / "tasks.json").write_bytes(content)
    assert "unreadable-2" in TaskTrackerExecutor(tmp_path)(VIEW).text


@pytest.mark.requirement("S9", "S11")
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "directory"])
def test_a_path_that_is_not_a_file_is_moved_away(tmp_path: Path, kind: str) -> None:
    """A planted link is neither read nor written through; a pipe does not block."""
    other = tmp_path / "other"
    other.write_text("{}")
    place = tmp_path / "dir" / "tasks.json"
    place.parent.mkdir()
    if kind in {"link", "dangling"}:
        place.symlink_to(other if kind == "link" else tmp_path / "none")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    seen = TaskTrackerExecutor(place.parent)(plan("a"))
    assert not seen.is_error
    assert seen.warning is not None
    assert other.read_text() == "{}"
    assert not (tmp_path / "none").exists()
    assert titles(TaskTrackerExecutor(place.parent)(VIEW)) == ["a"]


@pytest.mark.requirement("B90", "F37")
def test_a_list_that_cannot_be_saved_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the model gets an error, and no temporary file is left."""
    executor = TaskTrackerExecutor(tmp_path)
    executor(plan("old"))

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        seen = executor(plan("new"))
    assert seen.is_error
    assert "No space left on device" in seen.text
    assert titles(executor(VIEW)) == ["old"]
    assert names_in(tmp_path) == ["tasks.json"]


@pytest.mark.requirement("B90")
def test_concurrent_trackers_leave_a_consistent_list(tmp_path: Path) -> None:
    """The last writer wins, with all of its tasks."""
    lists = [[f"{name}{at}" for at in range(50)] for name in "abcd"]

    def work(own: list[str]) -> None:
        executor = TaskTrackerExecutor(tmp_path)
        for _ in range(10):
            assert executor(plan(*own)).warning is None

    threads = [Thread(target=work, args=(own,)) for own in lists]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert titles(TaskTrackerExecutor(tmp_path)(VIEW)) in lists
    assert names_in(tmp_path) == ["tasks.json"]
