"""The task tracker tool: a task list of a model, which can be saved to a file."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import tempfile
import threading
from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from agents_tools.classes.definition import Action, Observation, ToolDefinition, ToolExecutor
from agents_tools.classes.per_run import PerRunExecutor
from agents_tools.errors import UserValueError
from agents_tools.text.characters import escape_for_model
from agents_tools.tool.records import ToolAnnotations

__all__ = [
    "TASK_TRACKER_DESCRIPTION",
    "Task",
    "TaskTrackerAction",
    "TaskTrackerExecutor",
    "TaskTrackerObservation",
    "TaskTrackerTool",
]

TASK_TRACKER_DESCRIPTION = """\
Maintain a task list for longer work, so that no task is forgotten and the user sees the progress.

- `plan` replaces the whole list with `tasks`: include all tasks each time, also finished ones.
- `view` shows the list.

A task has a `title`, `notes` if needed, and a `status`: `todo`, `in_progress` or `done`. Use it \
for work with three or more steps. Keep one task in progress at a time, and set it to done as soon \
as it is complete."""

FILE_NAME = "tasks.json"
_LARGEST_FILE = 8 * 1024 * 1024
_ASIDE = 1_000
_STATUSES = {
    **dict.fromkeys(("pending", "open", "planned", "not_started", "to_do", "new"), "todo"),
    **dict.fromkeys(("doing", "active", "started", "wip", "current"), "in_progress"),
    **dict.fromkeys(("completed", "complete", "finished", "closed"), "done"),
}


def _status(value: Any) -> Any:
    """Convert synonyms and other spellings of a status."""
    if not isinstance(value, str):
        return value
    word = value.strip().lower().replace("-", "_").replace(" ", "_")
    return _STATUSES.get(word, word)


class Task(BaseModel):
    """One task of the list."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1, max_length=500, description="A short summary of the task.")
    notes: str = Field(default="", max_length=10_000, description="Further details.")
    status: Annotated[Literal["todo", "in_progress", "done"], BeforeValidator(_status)] = Field(
        default="todo", description="The progress."
    )


class TaskTrackerAction(Action):
    """The command for the task list."""

    command: Literal["view", "plan"] = Field(
        default="view", description="`plan` replaces the list, `view` shows it."
    )
    tasks: list[Task] | None = Field(
        default=None,
        max_length=500,
        description="For `plan`: the whole new list, in order.",
        validation_alias=AliasChoices("tasks", "task_list"),
    )


class TaskTrackerObservation(Observation):
    """The list of tasks after the call.

    Attributes:
        command: The command.
        tasks: The list.
        warning: The problem with the saved list, if any.
    """

    command: Literal["view", "plan"] = "view"
    tasks: list[Task] = Field(default_factory=list[Task])
    warning: str | None = None


class TaskTrackerExecutor(ToolExecutor[TaskTrackerAction, TaskTrackerObservation]):
    """Executor that stores the task list.

    Args:
        save_dir: The directory of the file `tasks.json`; created when first needed. Without a
            directory, the list is lost when the program ends.
    """

    def __init__(self, save_dir: str | os.PathLike[str] | None = None) -> None:
        self._file = None if save_dir is None else _TaskFile(Path(save_dir))
        self._tasks: list[Task] = []
        self._lock = threading.Lock()

    def __call__(
        self, action: TaskTrackerAction, conversation: object = None
    ) -> TaskTrackerObservation:
        """Replace or show the list."""
        del conversation
        with self._lock:
            try:
                return self._plan(action) if action.command == "plan" else self._view(action)
            except OSError as error:
                return self._error(
                    action,
                    f"The list of tasks could not be {_DID[action.command]}: "
                    f"{error.strerror or error}. Ask a person to check the directory "
                    f"{self._file.directory if self._file else '?'}.",
                )

    def _plan(self, action: TaskTrackerAction) -> TaskTrackerObservation:
        if action.tasks is None:
            return self._error(
                action, "The command `plan` needs `tasks`. Pass the whole list; [] clears it."
            )
        warning = None
        if self._file is not None:
            _, warning = self._file.read()
            self._file.write(action.tasks)
        self._tasks = list(action.tasks)
        return _answer(action.command, self._tasks, warning, f"Saved {_counted(self._tasks)}.")

    def _view(self, action: TaskTrackerAction) -> TaskTrackerObservation:
        if action.tasks:
            return self._error(
                action,
                "The command `view` does not accept `tasks`. Use `plan` to replace the list.",
            )
        warning = None
        if self._file is not None:
            self._tasks, warning = self._file.read()
        said = _counted(self._tasks) + "." if self._tasks else "There are no tasks yet. Use `plan`."
        return _answer(action.command, self._tasks, warning, said)

    def _error(self, action: TaskTrackerAction, text: str) -> TaskTrackerObservation:
        return TaskTrackerObservation.from_text(
            text, is_error=True, command=action.command, tasks=list(self._tasks)
        )


class TaskTrackerTool(ToolDefinition[TaskTrackerAction, TaskTrackerObservation]):
    """Tool with which a model plans its work and shows the progress."""

    name: ClassVar[str] = "task_tracker"

    @classmethod
    def create(
        cls,
        conv_state: object = None,
        *,
        save_dir: str | os.PathLike[str] | None = None,
        **params: object,
    ) -> Sequence[Self]:
        """Create the tool, with a task list for each run unless it is saved.

        Args:
            conv_state: Provides `persistence_dir` as the default directory.
            save_dir: The directory of the list, which runs share then; by default that of the
                conversation. Without either, each run starts with an empty list.
            **params: Not supported.

        Raises:
            ValueError: `save_dir` is not a directory, or there are unknown parameters.
        """
        if params:
            raise UserValueError(
                f"TaskTrackerTool accepts only the parameter save_dir, but got {', '.join(params)}."
            )
        place = save_dir or getattr(conv_state, "persistence_dir", None)
        if place is not None and Path(place).exists() and not Path(place).is_dir():
            raise UserValueError(
                f"TaskTrackerTool(save_dir): expected a directory, got {os.fspath(place)!r}."
            )
        return [
            cls(
                description=TASK_TRACKER_DESCRIPTION,
                action_type=TaskTrackerAction,
                observation_type=TaskTrackerObservation,
                executor=PerRunExecutor(partial(TaskTrackerExecutor, place)),
                annotations=ToolAnnotations(
                    readOnlyHint=False,
                    destructiveHint=False,
                    idempotentHint=True,
                    openWorldHint=False,
                ),
            )
        ]


# --- messages

_DID = {"plan": "saved, and is unchanged", "view": "read"}
_MARKS = {"todo": "[ ]", "in_progress": "[>]", "done": "[x]"}


def _answer(
    command: Literal["view", "plan"], tasks: list[Task], warning: str | None, said: str
) -> TaskTrackerObservation:
    active = sum(task.status == "in_progress" for task in tasks)
    lines = [*([warning] if warning else []), said]
    for number, task in enumerate(tasks, 1):
        lines.append(
            f"{number}. {_MARKS[task.status]} {escape_for_model(' '.join(task.title.split()))}"
        )
        lines += [f"   {line}" for line in escape_for_model(task.notes).splitlines()]
    if active > 1:
        lines.append(f"{active} tasks are in progress: finish one before you start the next.")
    return TaskTrackerObservation.from_text(
        "\n".join(lines), command=command, tasks=list(tasks), warning=warning
    )


def _counted(tasks: list[Task]) -> str:
    done = sum(task.status == "done" for task in tasks)
    active = sum(task.status == "in_progress" for task in tasks)
    noun = "task" if len(tasks) == 1 else "tasks"
    return f"{len(tasks)} {noun}: {done} done, {active} in progress"


# --- storage


class _SavedTasks(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: Literal[1]
    tasks: list[Task]


_SAVED = TypeAdapter(_SavedTasks)


class _UnreadableError(Exception):
    """The saved file is not a valid task list."""


class _TaskFile:
    """The saved task list; a crash leaves either the old or the new list."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / FILE_NAME

    def read(self) -> tuple[list[Task], str | None]:
        """Return the list and a warning; an unreadable file is renamed."""
        try:
            text = self._content()
            return ([], None) if text is None else (_SAVED.validate_json(text).tasks, None)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            reason = f"{first['msg']} at {where}" if where else str(first["msg"])
        except _UnreadableError as error:
            reason = str(error)
        aside = self._put_aside()
        return [], (
            f"The saved list of tasks could not be read ({reason}). It was renamed to {aside}; "
            "the list starts empty."
        )

    def _content(self) -> bytes | None:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            fd = os.open(self._path, flags | getattr(os, "O_CLOEXEC", 0))
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EMLINK}:
                raise _UnreadableError("it is a link") from None
            raise
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise _UnreadableError("it is not a regular file")
        with os.fdopen(fd, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise _UnreadableError(f"it is larger than {_LARGEST_FILE:,} bytes")
        return content

    def _put_aside(self) -> str:
        """Rename the file to an unused name."""
        for number in range(1, _ASIDE):
            aside = self._path.with_name(f"{FILE_NAME}.unreadable-{number}")
            if not os.path.lexists(aside):
                os.rename(self._path, aside)  # noqa: PTH104 - also special files
                return aside.name
        raise OSError(errno.EEXIST, f"there are {_ASIDE:,} unreadable lists already")

    def write(self, tasks: Sequence[Task]) -> None:
        """Replace the list atomically and durably."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        saved = {"version": 1, "tasks": [task.model_dump() for task in tasks]}
        content = json.dumps(saved, indent=1).encode()
        fd, temporary = tempfile.mkstemp(prefix=f".{FILE_NAME}.", dir=self.directory)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(fd)
            os.replace(temporary, self._path)  # noqa: PTH105 - of two names
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108 - as above
            raise
        self._sync_directory()

    def _sync_directory(self) -> None:
        """Sync the directory, if it can be opened."""
        with contextlib.suppress(OSError):
            fd = os.open(self.directory, os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
