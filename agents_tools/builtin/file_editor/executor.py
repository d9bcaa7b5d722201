"""The executor of the file editor."""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import stat
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace as changed
from typing import TYPE_CHECKING, Any

from agents_tools.builtin.file_editor import atomic_write as _write, edit as _edit, view as _view
from agents_tools.builtin.file_editor.atomic_write import FileVersion
from agents_tools.builtin.file_editor.diff import unified_diff
from agents_tools.builtin.file_editor.masks import check_masks
from agents_tools.builtin.file_editor.models import FileEditorAction, FileEditorObservation
from agents_tools.builtin.file_editor.text_file import (
    BytesSource,
    FileChangedError,
    FileSource,
    TextFormat,
    TextScan,
    binary_kind,
    body_of,
    scan,
)
from agents_tools.builtin.file_editor.undo import UndoHistory, digest
from agents_tools.builtin.file_editor.view import NumberedText, size_text
from agents_tools.builtin.paths import ConfinedWorkspace, PathNotAllowed, WorkspacePath, one_line
from agents_tools.classes.definition import ImageContent, TextContent, ToolExecutor
from agents_tools.errors import ToolError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["FileEditorExecutor"]

_REMEMBERED = 64
_VIEWED = 1_000
_NEW = TextFormat()


@dataclass(frozen=True, slots=True)
class _OpenFile:
    """A file to change: its directory, its name there, and its content."""

    place: WorkspacePath
    parent: int
    name: str
    key: tuple[str, str]
    found: os.stat_result | None = None
    raw: bytes = b""


class FileEditorExecutor(ToolExecutor[FileEditorAction, FileEditorObservation]):
    """Executor that views and edits the files of a workspace.

    Args:
        working_dir: The directory that confines the editor; the current one by default.
        workspace: The directories to work in, instead; the executor does not close it.
        max_file: The maximum size of a file to view or edit, in bytes.
        max_image: The maximum size of an image to show, in bytes.
        max_view: The maximum number of characters of one view.
        history: The number of changes of each file that can be undone.
        max_history: The maximum size of the undo history of all files in memory, in bytes.

    Raises:
        UserError: The directory does not exist, or a number is negative.
    """

    def __init__(
        self,
        working_dir: str | os.PathLike[str] | None = None,
        *,
        workspace: ConfinedWorkspace | None = None,
        max_file: int = 64 << 20,
        max_image: int = 5 << 20,
        max_view: int = 30_000,
        history: int = 10,
        max_history: int = 64 << 20,
    ) -> None:
        if min(max_file, max_image, max_view, history, max_history) < 0:
            raise UserValueError("A limit of FileEditorExecutor is negative: expected 0 or more.")
        self._own: ConfinedWorkspace | None = None
        if workspace is None:
            workspace = self._own = ConfinedWorkspace(working_dir)
        self.workspace = workspace
        self._max_file = max_file
        self._max_image = max_image
        self._max_view = max(max_view, 1_000)
        self._history = UndoHistory(history, max_history)
        self._editing = threading.Lock()
        self._looking = threading.Lock()
        self._shapes: OrderedDict[FileVersion, TextScan] = OrderedDict()
        self._viewed: OrderedDict[tuple[int, int], FileVersion] = OrderedDict()

    def __call__(
        self, action: FileEditorAction, conversation: object = None
    ) -> FileEditorObservation:
        """Execute the command; the observation reports errors."""
        del conversation
        try:
            if action.command == "view":
                return self._view(action, self.workspace.locate(action.path))
            with self._editing:
                return self._change(action)
        except (ToolError, OSError) as error:
            text = str(error) if isinstance(error, ToolError) else self._explain(error, action)
        return FileEditorObservation.from_text(
            text, is_error=True, command=action.command, path=_named(action.path)
        )

    def close(self) -> None:
        """Drop the undo history and close the workspace if the executor opened it."""
        with self._editing:
            self._history.close()
        if self._own is not None:
            self._own.close()

    # --- viewing

    def _view(self, action: FileEditorAction, place: WorkspacePath) -> FileEditorObservation:
        found = place.stat()
        if stat.S_ISDIR(found.st_mode):
            return self._view_directory(action, place)
        _write.check_regular(found, place.shown)
        fd = place.open(os.O_RDONLY | _write.NO_WAIT)
        try:
            found = os.fstat(fd)
            _write.check_regular(found, place.shown)
            return self._view_file(action, place, fd, found)
        except FileChangedError:
            raise _write.changed_meanwhile(place.shown) from None
        finally:
            os.close(fd)

    def _view_directory(
        self, action: FileEditorAction, place: WorkspacePath
    ) -> FileEditorObservation:
        if action.view_range is not None:
            raise ToolError(f"{place.shown} is a directory: omit view_range to list it.")
        fd = place.open(os.O_RDONLY | os.O_DIRECTORY)
        try:
            lines, hidden = _view.listing(fd)
        finally:
            os.close(fd)
        count = f" ({hidden:,} hidden omitted)" if hidden else ""
        head = f"{place.shown} is a directory, two levels deep{count}:"
        return self._said(action, place, "\n".join([head, *(lines or ["[nothing]"])]))

    def _view_file(
        self, action: FileEditorAction, place: WorkspacePath, fd: int, found: os.stat_result
    ) -> FileEditorObservation:
        source = FileSource(fd, found.st_size)
        kind = _view.image_type(source.read(0, 16))
        if kind is not None and binary_kind(source) is not None:
            return self._view_image(place, source, kind)
        if found.st_size > self._max_file:
            raise ToolError(
                f"{place.shown} has {found.st_size:,} bytes, more than the {self._max_file:,} that "
                "the editor shows. View a part of it with a command in the terminal."
            )
        shape = self._shape(source, FileVersion.of(found), place)
        text = NumberedText(shape, body_of(source, shape.form))
        self._remember_view(found)
        return self._shown(action, place, text)

    def _shown(
        self, action: FileEditorAction, place: WorkspacePath, text: NumberedText
    ) -> FileEditorObservation:
        shape = text.shape
        notes = _notes(shape)
        facts: dict[str, Any] = {"total_lines": shape.lines, "encoding": shape.form.name}
        if not shape.lines:
            if action.view_range is not None:
                raise ToolError(f"{place.shown} is empty. View it without view_range.")
            return self._said(action, place, f"{place.shown} is empty{notes}.", **facts)
        first, last = _range(action.view_range, shape.lines, place.shown)
        which = f"lines {first}-{last} of {shape.lines:,}"
        if (first, last) == (1, shape.lines):
            which = f"{shape.lines:,} line{'s' * (shape.lines > 1)}"
        shown = text.numbered(first, last, self._max_view)
        head = f"{place.shown}, {which}{notes}:\n"
        return self._said(action, place, head + shown, lines=(first, last), **facts)

    def _view_image(
        self, place: WorkspacePath, source: FileSource, kind: str
    ) -> FileEditorObservation:
        if source.size > self._max_image:
            raise ToolError(
                f"{place.shown} is an image ({kind}) of {size_text(source.size)}, more than the "
                f"{size_text(self._max_image)} that can be shown. Make a smaller copy and view it."
            )
        url = _view.image_url(source.read(0, source.size), kind)
        text = TextContent(text=f"{place.shown} is an image ({kind}, {size_text(source.size)}):")
        return FileEditorObservation(
            content=[text, ImageContent(image_urls=[url])], command="view", path=place.shown
        )

    def _shape(self, source: FileSource, stamp: FileVersion, place: WorkspacePath) -> TextScan:
        """Return the scan of a text; scan it again only if it has changed."""
        with self._looking:
            known = self._shapes.get(stamp)
            if known is not None:
                self._shapes.move_to_end(stamp)
                return known
        kind = binary_kind(source)
        if kind is not None:
            raise _binary(place.shown, kind, source.size)
        shape = scan(source)
        if _settled(stamp):
            with self._looking:
                self._shapes[stamp] = shape
                while len(self._shapes) > _REMEMBERED:
                    self._shapes.popitem(last=False)
        return shape

    def _remember_view(self, found: os.stat_result) -> None:
        with self._looking:
            key = found.st_dev, found.st_ino
            self._viewed[key] = FileVersion.of(found)
            self._viewed.move_to_end(key)
            while len(self._viewed) > _VIEWED:
                self._viewed.popitem(last=False)

    def _has_viewed(self, found: os.stat_result) -> bool:
        with self._looking:
            return self._viewed.get((found.st_dev, found.st_ino)) == FileVersion.of(found)

    # --- editing

    def _change(self, action: FileEditorAction) -> FileEditorObservation:
        place = self.workspace.locate(action.path)
        commands: dict[str, Callable[..., FileEditorObservation]] = {
            "create": self._create,
            "str_replace": self._replace,
            "insert": self._insert,
            "undo_edit": self._undo,
        }
        return commands[action.command](action, place)

    def _create(self, action: FileEditorAction, place: WorkspacePath) -> FileEditorObservation:
        text = _given(action.file_text, "file_text", "create", "the whole content of the file")
        if os.path.basename(action.path) in {"", ".", ".."}:  # noqa: PTH119 - as text
            raise ToolError(f"{place.shown} is the path of a directory. Pass the path of a file.")
        new = _NEW.encode(text, "file_text")
        if len(new) > self._max_file:
            raise ToolError(
                f"file_text has {len(new):,} bytes; the maximum is {self._max_file:,}. "
                "Create the file with a command in the terminal."
            )
        made = _missing(place)
        try:
            with self._opened(place, make=True, exists=None) as file:
                self._check_replaceable(file)
                check_masks(file.raw.decode(errors="replace"), place.shown, file_text=text)
                seen = self._created(action, file, new)
                self._write(file, new, made)
        except BaseException:
            _remove_made(place, made)
            raise
        return seen

    def _created(
        self, action: FileEditorAction, file: _OpenFile, new: bytes
    ) -> FileEditorObservation:
        """Return the observation for a file that was created or replaced."""
        place = file.place
        if file.found is None:
            said = f"{place.shown} was created with {_count(new)}."
        else:
            said = f"{place.shown} was replaced; it now has {_count(new)}."
        old = None if file.found is None else _body(file.raw)
        diff = unified_diff(old, new, _NEW, place.shown)
        facts: dict[str, Any] = {"prev_exists": file.found is not None, "encoding": "UTF-8"}
        lines = scan(BytesSource(new)).lines
        said += _links_note(file)
        return self._said(action, place, said, diff=diff, total_lines=lines, **facts)

    def _check_replaceable(self, file: _OpenFile) -> None:
        if file.found is not None and file.raw and not self._has_viewed(file.found):
            raise ToolError(
                f"{file.place.shown} exists ({size_text(len(file.raw))}); nothing was changed. "
                "Change a part of it with str_replace, or view it before you replace it."
            )

    def _replace(self, action: FileEditorAction, place: WorkspacePath) -> FileEditorObservation:
        old = _given(action.old_str, "old_str", "str_replace", "the text to replace")
        if not old:
            raise ToolError("old_str is empty. Use insert to add lines, or create for a new file.")
        with self._opened(place) as file:
            shape, body = self._text(file)
            check_masks(shape.form.decode(body), place.shown, old_str=old, new_str=action.new_str)
            limit = self._max_file * 3 // 2 if shape.form.wide else self._max_file
            edit = _edit.replace(
                body, shape, old, action.new_str or "", everywhere=action.replace_all,
                shown=place.shown, limit=limit,
            )  # fmt: skip
            return self._edited(action, file, shape, body, edit)

    def _insert(self, action: FileEditorAction, place: WorkspacePath) -> FileEditorObservation:
        line = _given(action.insert_line, "insert_line", "insert", "the line to insert after")
        text = _given(action.new_str, "new_str", "insert", "the lines to insert")
        if not text:
            raise ToolError("new_str is empty. A single line end inserts an empty line.")
        with self._opened(place) as file:
            shape, body = self._text(file)
            if line > shape.lines:
                raise ToolError(
                    f"insert_line is {line}, but {place.shown} has {shape.lines:,} "
                    f"line{'s' * (shape.lines != 1)}. Use 0 to {shape.lines}."
                )
            check_masks(shape.form.decode(body), place.shown, new_str=text)
            start = shape.start(line + 1, BytesSource(body))
            edit = _edit.insert(body, shape, line, start, text)
            return self._edited(action, file, shape, body, edit)

    def _edited(
        self,
        action: FileEditorAction,
        file: _OpenFile,
        shape: TextScan,
        body: bytes,
        edit: _edit.Edit,
    ) -> FileEditorObservation:
        """Write an edit and return the new lines; the text is ready before the write."""
        raw = shape.form.raw(edit.body)
        if len(raw) > self._max_file:
            raise ToolError(
                f"{file.place.shown} would have {len(raw):,} bytes, more than the "
                f"{self._max_file:,} that the editor works on; nothing was changed."
            )
        seen = self._changed(action, file, (shape, body), edit)
        self._write(file, raw)
        return seen

    def _changed(
        self,
        action: FileEditorAction,
        file: _OpenFile,
        before: tuple[TextScan, bytes],
        edit: _edit.Edit,
    ) -> FileEditorObservation:
        """Return the observation for a written edit."""
        source, notes = BytesSource(edit.body), _links_note(file)
        shape = changed(scan(source), form=before[0].form)
        first, last, count = edit.places[0][0], edit.last, edit.count
        where = f"{count:,} places" if count > 1 else _lines(first, last)
        parts = _view.snippets(NumberedText(shape, source), edit.places[:_SNIPPETS])
        more = f"[and {count - _SNIPPETS:,} more places]\n" if count > _SNIPPETS else ""
        said = f"{file.place.shown} was changed, {where}{notes}:\n" + "   ...\n".join(parts) + more
        return self._said(
            action,
            file.place,
            said if shape.lines else f"{file.place.shown} was changed and is now empty{notes}.",
            diff=unified_diff(before[1], edit.body, shape.form, file.place.shown),
            lines=(first, last),
            total_lines=shape.lines,
            replaced=count if action.command == "str_replace" else None,
            encoding=shape.form.name,
        )

    def _undo(self, action: FileEditorAction, place: WorkspacePath) -> FileEditorObservation:
        with self._opened(place, exists=None) as file:
            change = self._history.last(file.key)
            if change is None:
                raise ToolError(f"{place.shown} has no change in the history to undo.")
            if file.found is None or digest(file.raw) != change.after:
                state = "was removed" if file.found is None else "was changed by another program"
                raise ToolError(
                    f"{place.shown} {state} since the last edit, and undo would lose that; "
                    "nothing was done. View it, and make the change you want."
                )
            if not change.existed:
                diff = unified_diff(_body(file.raw), None, _NEW, place.shown)
                said = f"{place.shown} was removed: the last change had created it."
                seen = self._said(action, place, said, diff=diff)
                _write.remove_file(file.name, file.parent, place.shown, file.found, file.raw)
                _remove_made(place, change.made)
            else:
                old = change.before(file.raw)
                seen = self._taken_back(action, place, old, file.raw)
                _write.write_file(file.name, file.parent, old, place.shown, (file.found, file.raw))
            self._history.drop_last(file.key)
        return seen

    def _taken_back(
        self, action: FileEditorAction, place: WorkspacePath, old: bytes, raw: bytes
    ) -> FileEditorObservation:
        source = BytesSource(old)
        shape = scan(source)
        form = shape.form
        same = scan(BytesSource(raw)).form == form
        diff = unified_diff(_body(raw), form.body(old), form if same else _NEW, place.shown)
        return self._said(
            action,
            place,
            f"The last change of {place.shown} was undone:\n{diff}",
            diff=diff,
            total_lines=shape.lines,
            encoding=form.name,
        )

    # --- files

    @contextlib.contextmanager
    def _opened(
        self, place: WorkspacePath, *, make: bool = False, exists: bool | None = True
    ) -> Generator[_OpenFile, None, None]:
        """Read a file and lock other editors out; `exists=None` allows a missing file."""
        parent, name = self.workspace.open_writable_parent(place, make=make)
        try:
            key = str(place.root.path), place.resolve()
            with _write.turn(name, parent):
                raw, found = b"", None
                try:
                    raw, found = _write.read_file(name, parent, place.shown, self._max_file)
                except FileNotFoundError:
                    if exists:
                        raise
                yield _OpenFile(place, parent, name, key, found, raw)
        finally:
            os.close(parent)

    def _text(self, file: _OpenFile) -> tuple[TextScan, bytes]:
        source = BytesSource(file.raw)
        kind = binary_kind(source)
        if kind is not None:
            raise _binary(file.place.shown, kind, source.size)
        shape = scan(source)
        return shape, shape.form.body(file.raw)

    def _write(self, file: _OpenFile, new: bytes, made: tuple[str, ...] = ()) -> None:
        """Write a file and add the change to the undo history."""
        old = None if file.found is None else file.raw
        _write.check_cancelled()
        change = self._history.prepare(old, new, made)
        read = None if file.found is None else (file.found, file.raw)
        _write.write_file(file.name, file.parent, new, file.place.shown, read)
        self._history.add(file.key, change)

    def _said(
        self, action: FileEditorAction, place: WorkspacePath, text: str, **facts: Any
    ) -> FileEditorObservation:
        return FileEditorObservation.from_text(
            text, command=action.command, path=place.shown, **facts
        )

    def _explain(self, error: OSError, action: FileEditorAction) -> str:
        """Return a message for a system error, with a remedy."""
        shown = _named(action.path)
        if isinstance(error, FileNotFoundError):
            return f"{shown} does not exist.{self._alike(action)}"
        advice = _ADVICE.get(error.errno or 0)
        if advice is not None:
            return advice.format(shown)
        done = "shown" if action.command == "view" else "changed"
        return f"{shown} could not be {done}: {error.strerror or 'unknown system error'}."

    def _alike(self, action: FileEditorAction) -> str:
        """Suggest files with names similar to a missing one."""
        try:
            place = self.workspace.locate(action.path)
            head, _, name = place.path.rpartition("/")
            fd = place.root.open(head or ".", os.O_RDONLY | os.O_DIRECTORY)
        except (OSError, PathNotAllowed):
            return " Its directory does not exist either; view a parent directory."
        try:
            names = os.listdir(fd)[:2_000]  # noqa: PTH208 - by descriptor
        finally:
            os.close(fd)
        if name in names:
            return " It is a link to a missing file."
        alike = [one_line(one) for one in difflib.get_close_matches(name, names, 3, 0.6)]
        near = f" Similar files: {', '.join(alike)}." if alike else ""
        return near or " View its directory, or create the file."


_SNIPPETS = 5
_ADVICE = {
    errno.ENOSPC: "The disk is full: {} was not changed. Free space first.",
    errno.EDQUOT: "The disk quota is used up: {} was not changed. Free space first.",
    errno.EFBIG: "The file would be larger than the system allows: {} was not changed.",
    errno.EROFS: "{} is on a read-only file system; nothing was changed.",
    errno.EACCES: "The system denies access to {}.",
    errno.EPERM: "The system does not permit the operation on {}; nothing was changed.",
    errno.ENAMETOOLONG: "{} has a name that is too long: at most 255 bytes for each part.",
    errno.ELOOP: "{} is a link that loops or must not be followed.",
    errno.ENOTDIR: "{}: a parent in the path is a file, not a directory.",
    errno.EISDIR: "{} is a directory. Pass the path of a file.",
    errno.ENXIO: "{} is a pipe, a socket or a device, not a file.",
}


def _named(path: str) -> str:
    return one_line(path if len(path) <= 200 else path[:199] + "…")  # noqa: PLR2004 - enough to recognize it


def _given(value: Any, name: str, command: str, what: str) -> Any:
    if value is None:
        raise ToolError(f"{command} needs {name}: {what}.")
    return value


def _binary(shown: str, kind: str, size: int) -> ToolError:
    return ToolError(
        f"{shown} is {kind} ({size_text(size)}), not text. "
        "Use a program that knows the format, in the terminal."
    )


def _notes(shape: TextScan) -> str:
    notes: list[str] = []
    if shape.form.name != "UTF-8":
        notes.append(shape.form.name)
    if shape.form.returns:
        notes.append("CR line ends")
    elif shape.crlf:
        notes.append("CRLF line ends" if shape.crlf == shape.ends else "LF and CRLF line ends")
    if shape.open_end:
        notes.append("no line end at the end of the file")
    return f" ({', '.join(notes)})" if notes else ""


def _links_note(file: _OpenFile) -> str:
    if file.found is None or file.found.st_nlink < 2:  # noqa: PLR2004 - another name
        return ""
    return (
        f" (note: the file has {file.found.st_nlink - 1} more hard link(s), which "
        "keep the old content)"
    )


def _range(given: list[int] | None, lines: int, shown: str) -> tuple[int, int]:
    """Return the first and the last line of a view range.

    Raises:
        ToolError: It is outside the file, or its end is before its start.
    """
    if given is None:
        return 1, lines
    first, last = given
    if first < 1 or first > lines:
        raise ToolError(f"{shown} has {lines:,} lines: view_range cannot start at line {first}.")
    if last != -1 and last < first:
        raise ToolError(f"view_range ends ({last}) before its start ({first}). Swap the two.")
    return first, lines if last == -1 else min(last, lines)


def _lines(first: int, last: int) -> str:
    return f"line {first}" if last <= first else f"lines {first}-{last}"


def _count(data: bytes) -> str:
    lines = data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
    return f"{lines:,} line{'s' * (lines != 1)}"


def _body(raw: bytes) -> bytes:
    source = BytesSource(raw)
    return raw if binary_kind(source) is not None else scan(source).form.body(raw)


def _settled(stamp: FileVersion) -> bool:
    """Return whether any later change is certain to have a different timestamp."""
    import time

    return time.time_ns() - max(stamp.modified, stamp.changed) > 50_000_000  # noqa: PLR2004 - more than one clock tick of a file system


def _missing(place: WorkspacePath) -> tuple[str, ...]:
    """Return the missing directories of a file, the outermost first."""
    parts = place.resolve().split("/")[:-1]
    for count in range(len(parts), 0, -1):
        with contextlib.suppress(FileNotFoundError):
            place.root.stat("/".join(parts[:count]))
            return tuple("/".join(parts[:more]) for more in range(count + 1, len(parts) + 1))
    return tuple("/".join(parts[:more]) for more in range(1, len(parts) + 1))


def _remove_made(place: WorkspacePath, made: tuple[str, ...]) -> None:
    """Remove the directories that were created for a file if they are empty."""
    for path in reversed(made):
        with contextlib.suppress(OSError, PathNotAllowed):
            parent, name = place.root.open_parent(path)
            try:
                os.rmdir(name, dir_fd=parent)
            finally:
                os.close(parent)
