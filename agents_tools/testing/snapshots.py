"""Store the definitions of tools in a file, and report changes that break callers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserError, UserValueError
from agents_tools.testing.fakes import listed
from agents_tools.wire.diff import ToolSchema, compare_tools, read_tool_list

if TYPE_CHECKING:
    import os

    from agents_tools.tool.tool import FunctionTool

__all__ = ["SchemaSnapshotError", "assert_schema_snapshot"]


class SchemaSnapshotError(AssertionError):
    """Tools differ from their snapshot.

    Attributes:
        changes: The changes, one line each.
    """

    def __init__(self, message: str, changes: tuple[str, ...]) -> None:
        super().__init__(message)
        self.changes = changes


def assert_schema_snapshot(
    tools: object,
    path: str | os.PathLike[str],
    *,
    exact: bool = False,
    update: bool = False,
) -> None:
    """Check that tools still accept the calls that were valid for their snapshot.

    Prompts, fine-tuned models, recorded conversations and stored runs can depend on an earlier
    definition of a tool.

    Args:
        tools: A tool, or several.
        path: The file of the snapshot. It is created if it does not exist.
        exact: Whether compatible changes, such as another description or a new optional parameter,
            fail as well.
        update: Whether to overwrite the snapshot, regardless of changes.

    Raises:
        SchemaSnapshotError: A call that was valid may now be rejected; the message lists the
            changes.
        UserError: The file is not a snapshot.
    """
    now = [_entry(tool) for tool in listed(tools)]
    file = Path(path)
    if update or not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(now, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    changes = compare_tools(_read(file), read_tool_list(now))
    relevant = [change for change in changes if exact or change.breaking]
    if relevant:
        lines = tuple(str(change) for change in relevant)
        raise SchemaSnapshotError(
            f"{len(relevant)} change{'s' * (len(relevant) > 1)} to the tools of {file.name}:\n- "
            + "\n- ".join(lines)
            + "\nIf the changes are intended, update the snapshot (update=True, or run pytest with "
            "--update-tool-schemas).",
            lines,
        )


def _entry(tool: FunctionTool[..., Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
    }
    output = tool.output_json_schema
    return entry if output is None else {**entry, "output": output}


def _read(file: Path) -> list[ToolSchema]:
    try:
        return read_tool_list(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, UserError) as error:
        raise UserValueError(
            f"{file} is not a valid snapshot of tools ({error}). Delete it to create a new one."
        ) from error
