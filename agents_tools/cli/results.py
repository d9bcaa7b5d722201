"""Print the result of a call as text or JSON, and save its files."""

from __future__ import annotations

import json
import mimetypes
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from agents_tools.cli.errors import CommandError
from agents_tools.cli.output import print_result, print_text, say
from agents_tools.content.json_value import to_json
from agents_tools.content.outputs import ToolOutputText, as_tool_result
from agents_tools.errors import AgentsToolsError, ModelBehaviorError
from agents_tools.text.output import release_text
from agents_tools.tool.failure import default_tool_error_function
from agents_tools.ui._format import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.content.outputs import ContentBlock
    from agents_tools.events.kinds import ToolArtifactEvent
    from agents_tools.tool.records import CallOutcome

__all__ = ["ArtifactFolder", "as_json", "print_content", "print_output", "problem_of"]


class ArtifactFolder:
    """The folder for the files of a call.

    Args:
        path: The folder. It is created for the first file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def save_artifact(self, event: ToolArtifactEvent) -> None:
        """Save an artifact of a tool; an artifact that is only a link is not fetched."""
        if event.data is not None:
            path = self.save(event.name, event.data, event.mime_type)
            say(f"saved {path}", dim=True)

    def save(self, name: str, data: str | bytes, mime_type: str | None) -> Path:
        """Write a file under an unused name, never outside the folder."""
        path = self._free(_file_name(name, mime_type))
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            # "x": never overwrite a file, and never follow a symlink
            with path.open("xb") as file:
                file.write(data if isinstance(data, bytes) else data.encode(errors="replace"))
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
        return path

    def _free(self, name: str) -> Path:
        path = self._path / name
        number = 2
        while path.exists() or path.is_symlink():
            first, *suffixes = name.split(".")
            path = self._path / ".".join([f"{first}-{number}", *suffixes])
            number += 1
        return path


def print_output(outcome: CallOutcome, folder: ArtifactFolder | None) -> None:
    """Print the output for the model: its text, and a description for images and files."""
    print_content(outcome.output, folder)


def print_content(
    content: str | Sequence[ContentBlock], folder: ArtifactFolder | None = None
) -> None:
    """Print text, and a description for images and files.

    Args:
        content: A text, or content blocks.
        folder: The folder in which images and files are saved.
    """
    if isinstance(content, str):
        if content:
            print_result(content)
        return
    for number, block in enumerate(content, start=1):
        print_text(_described(block, number, folder))


def as_json(outcome: CallOutcome, duration: float, folder: ArtifactFolder | None) -> dict[str, Any]:
    """Return the outcome as one JSON object."""
    record: dict[str, Any] = {"status": outcome.status}
    if outcome.error is None:
        record["output"] = _json_output(outcome, folder)
        value = _value_of(outcome)
        if value is not None:
            record["value"] = value
    else:
        record["error"] = _error_of(outcome.error, problem_of(outcome))
    return {**record, "duration": round(duration, 6)}


def problem_of(outcome: CallOutcome) -> str:
    """Return the error message that the model would get."""
    if isinstance(outcome.output, str) and outcome.output:
        return outcome.output
    if outcome.error is None:
        return "The tool reported an error."
    return default_tool_error_function(None, outcome.error)


def _described(block: ContentBlock, number: int, folder: ArtifactFolder | None) -> str:
    if isinstance(block, ToolOutputText):
        return block.text
    facts = [block.mime_type or "", size(block.data), block.url or block.file_id or ""]
    name = getattr(block, "filename", None) or ""
    if block.data is not None and folder is not None:
        path = folder.save(name or f"{block.type}-{number}", block.data, block.mime_type)
        facts.append(f"saved as {path}")
    elif block.data is not None:
        facts.append("--output DIR saves it")
    text = ", ".join(fact for fact in (name, *facts) if fact)
    return f"[{block.type}: {release_text(text)}]"


def _json_output(outcome: CallOutcome, folder: ArtifactFolder | None) -> Any:
    if isinstance(outcome.output, str):
        return outcome.output
    blocks: list[dict[str, Any]] = []
    for number, block in enumerate(outcome.output, start=1):
        record = block.to_dict()
        if folder is not None and not isinstance(block, ToolOutputText) and block.data is not None:
            name = getattr(block, "filename", None) or f"{block.type}-{number}"
            record.pop("data")
            record["path"] = str(folder.save(name, block.data, block.mime_type))
        blocks.append(record)
    return blocks


def _value_of(outcome: CallOutcome) -> Any:
    """Return the result as a JSON value, if it is more than text."""
    if (result := as_tool_result(outcome.value)) is not None:
        structured = result.structured
        return None if structured is None else json.loads(to_json(structured))
    if isinstance(outcome.value, str) or not isinstance(outcome.output, str):
        return None
    try:
        return json.loads(outcome.output)
    except ValueError:  # it was shortened for the model
        return None


def _error_of(error: Exception, message: str) -> dict[str, Any]:
    record: dict[str, Any] = {"type": type(error).__name__, "message": message}
    if isinstance(error, ModelBehaviorError) and error.problems:
        record["problems"] = [
            {
                "path": list(problem.path),
                "expected": problem.expected,
                "got": release_text(problem.got, patterns=True),
                "kind": problem.kind,
            }
            for problem in error.problems
        ]
    if not isinstance(error, AgentsToolsError):
        record["unexpected"] = True
    return record


def _file_name(name: str, mime_type: str | None) -> str:
    """Return a safe file name for a name that comes from a tool."""
    last = PurePosixPath(release_text(name).replace("\\", "/")).name
    plain = "".join(c if c.isalnum() or c in "._- " else "_" for c in last).strip(" .")
    plain = plain[-100:] or "file"
    if "." not in plain and mime_type:
        plain += mimetypes.guess_extension(mime_type.partition(";")[0]) or ""
    return plain
