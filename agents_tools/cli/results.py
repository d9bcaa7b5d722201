"""What a call answers, printed for people or as JSON, its files saved where that is asked for."""

from __future__ import annotations

import json
import mimetypes
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from agents_tools.cli.errors import CommandError
from agents_tools.cli.output import print_text, say
from agents_tools.content.json_value import to_json
from agents_tools.content.outputs import ToolOutputText, as_tool_result
from agents_tools.errors import AgentsToolsError, ModelBehaviorError
from agents_tools.text.escape import safe_text
from agents_tools.text.secrets import mask
from agents_tools.tool.failure import default_tool_error_function
from agents_tools.ui._format import size

if TYPE_CHECKING:
    from agents_tools.content.outputs import ContentBlock
    from agents_tools.events.kinds import ToolArtifactEvent
    from agents_tools.tool.declaration import CallOutcome

__all__ = ["ArtifactFolder", "as_json", "print_output", "problem_of"]


class ArtifactFolder:
    """Where the files of a call are saved.

    Args:
        path: The folder; made when the first file comes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def save_artifact(self, event: ToolArtifactEvent) -> None:
        """Save what a tool has made; what is elsewhere stays there."""
        if event.data is not None:
            path = self.save(event.name, event.data, event.mime_type)
            say(f"saved {path}", dim=True)

    def save(self, name: str, data: str | bytes, mime_type: str | None) -> Path:
        """Write a file under a name that is free, and never outside the folder."""
        path = self._free(_file_name(name, mime_type))
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            # "x": what stands there already is never written over, nor followed elsewhere
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
    """Print what the model gets: text as it is, images and files by what they are."""
    if isinstance(outcome.output, str):
        if outcome.output:
            print_text(outcome.output)
        return
    for number, block in enumerate(outcome.output, start=1):
        print_text(_described(block, number, folder))


def as_json(outcome: CallOutcome, duration: float, folder: ArtifactFolder | None) -> dict[str, Any]:
    """Return the outcome as one JSON object."""
    told: dict[str, Any] = {"status": outcome.status}
    if outcome.error is None:
        told["output"] = _json_output(outcome, folder)
        value = _value_of(outcome)
        if value is not None:
            told["value"] = value
    else:
        told["error"] = _error_of(outcome.error, problem_of(outcome))
    return {**told, "duration": round(duration, 6)}


def problem_of(outcome: CallOutcome) -> str:
    """Return what went wrong, as the model would be told."""
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
    told = ", ".join(fact for fact in (name, *facts) if fact)
    return f"[{block.type}: {safe_text(told)}]"


def _json_output(outcome: CallOutcome, folder: ArtifactFolder | None) -> Any:
    if isinstance(outcome.output, str):
        return outcome.output
    blocks: list[dict[str, Any]] = []
    for number, block in enumerate(outcome.output, start=1):
        told = block.to_dict()
        if folder is not None and not isinstance(block, ToolOutputText) and block.data is not None:
            name = getattr(block, "filename", None) or f"{block.type}-{number}"
            told.pop("data")
            told["path"] = str(folder.save(name, block.data, block.mime_type))
        blocks.append(told)
    return blocks


def _value_of(outcome: CallOutcome) -> Any:
    """Return the result as a value, where it is more than a text."""
    if (result := as_tool_result(outcome.value)) is not None:
        structured = result.structured
        return None if structured is None else json.loads(to_json(structured))
    if isinstance(outcome.value, str) or not isinstance(outcome.output, str):
        return None
    try:
        return json.loads(outcome.output)
    except ValueError:  # shortened for the model
        return None


def _error_of(error: Exception, message: str) -> dict[str, Any]:
    told: dict[str, Any] = {"type": type(error).__name__, "message": message}
    if isinstance(error, ModelBehaviorError) and error.problems:
        told["problems"] = [
            {
                "path": list(problem.path),
                "expected": problem.expected,
                "got": mask(problem.got),
                "kind": problem.kind,
            }
            for problem in error.problems
        ]
    if not isinstance(error, AgentsToolsError):
        told["unexpected"] = True
    return told


def _file_name(name: str, mime_type: str | None) -> str:
    """Make a plain file name of what a tool calls its file."""
    last = PurePosixPath(safe_text(name).replace("\\", "/")).name
    plain = "".join(c if c.isalnum() or c in "._- " else "_" for c in last).strip(" .")
    plain = plain[-100:] or "file"
    if "." not in plain and mime_type:
        plain += mimetypes.guess_extension(mime_type.partition(";")[0]) or ""
    return plain
