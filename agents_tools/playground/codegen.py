"""Export a run as Python code, as a command, as JSON or as a test."""

from __future__ import annotations

import json
import pprint
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools.content.outputs import block_type_for
from agents_tools.errors import UserValueError
from agents_tools.persistence.stream import LEFT_OUT
from agents_tools.playground.catalog import needs_approval
from agents_tools.playground.import_paths import ImportPaths, reach_agent, reach_tool
from agents_tools.text.forms import MASK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.playground.attachments import File
    from agents_tools.playground.catalog import TargetCatalog

__all__ = ["Form", "ToolCallRequest", "export"]

Form: TypeAlias = Literal["python", "cli", "json", "pytest"]
_WIDTH = 96
_LONGEST_WORD = 60
_TELLING = frozenset({"ok", "tool_error", "invalid_args", "denied"})
"""The statuses of calls that a test can expect to repeat."""
_MASKED = f"# {MASK} replaces a secret: fill it in."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRequest:
    """A run to export as code.

    Attributes:
        kind: Whether a tool or an agent ran.
        name: The name of the tool or agent.
        arguments: The arguments of the tool.
        input: The text for the agent.
        files: The facts about the files for the agent.
        status: The status of the tool call or of the agent's run.
        blocks: The output for the model as content blocks.
        texts: Whether the output was one text and not a list of blocks.
        run_status: The status of the run.
    """

    kind: Literal["tool", "agent"]
    name: str
    arguments: Mapping[str, Any]
    input: str = ""
    files: Sequence[File] = ()
    status: str = "ok"
    blocks: Sequence[Mapping[str, Any]] = ()
    texts: bool = True
    run_status: str = "ok"


def export(call: ToolCallRequest, form: Form, catalog: TargetCatalog) -> tuple[str, str]:
    """Return the name and the content of a file.

    Args:
        call: The run.
        form: The format of the export.
        catalog: The catalog with the tool or agent.

    Raises:
        UserError: Code cannot name the tool or agent, or a test has no result to expect.
    """
    word = re.sub(r"\W+", "_", call.name, flags=re.ASCII).strip("_")[:_LONGEST_WORD] or "call"
    match form:
        case "json":
            return f"{word}.json", _as_json(call)
        case "cli":
            return f"{word}.sh", _as_command(call, catalog)
        case "python":
            return f"call_{word}.py", _as_python(call, catalog)
        case "pytest":
            return f"test_{word}.py", _as_test(call, catalog, word)


def _as_json(call: ToolCallRequest) -> str:
    what: dict[str, Any] = {"agent": call.name, "input": call.input}
    if call.files:
        what["files"] = [file["name"] for file in call.files]
    if call.kind == "tool":
        what = {"tool": call.name, "arguments": dict(call.arguments)}
    return _visible(json.dumps(what, indent=2, ensure_ascii=False)) + "\n"


def _visible(text: str) -> str:
    """Escape invisible and control characters in JSON text."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text
    )


def _as_command(call: ToolCallRequest, catalog: TargetCatalog) -> str:
    loaded = catalog.loaded
    if call.kind == "tool":
        given = json.dumps(dict(call.arguments), ensure_ascii=False, separators=(",", ":"))
        words = ["agents-tools", "call", loaded.target, call.name, "--input-json", _visible(given)]
    elif call.files:
        raise UserValueError(
            "The message has files, which the command line cannot send. Export it as Python."
        )
    else:
        target = loaded.place
        if loaded.attribute and catalog.agents.get(call.name) is loaded.value:
            target = loaded.target
        elif len(catalog.agents) > 1:
            target = f"{loaded.place}:{call.name}"
        elif loaded.attribute:
            target = loaded.target
        words = ["agents-tools", "run", target, "--", call.input]
    return shlex.join(words) + "\n"


# --- Python


def _as_python(call: ToolCallRequest, catalog: TargetCatalog) -> str:
    if call.kind == "agent":
        reach = reach_agent(catalog.loaded, catalog.agents[call.name])
        body = [*_run_of_agent(call, reach.name), "print(result.final_output)"]
        return _program(reach, _imports_of_agent(call), body)
    tool = catalog.tools[call.name]
    reach = reach_tool(catalog.loaded, tool)
    before, option, imports = _decided(needed=needs_approval(tool))
    given = _written(call.arguments, len(reach.name))
    body = [
        *before,
        *_mask_note(given),
        f"result = {reach.name}.invoke_sync({given}{option})",
        "print(result)",
    ]
    return _program(reach, imports, body)


def _as_test(call: ToolCallRequest, catalog: TargetCatalog, word: str) -> str:
    _check_telling(call)
    if call.kind == "agent":
        return _test_of_agent(call, catalog, word)
    tool = catalog.tools[call.name]
    reach = reach_tool(catalog.loaded, tool)
    text = _text_of(call) if call.status == "denied" else None
    before, option, imports = _decided(needed=needs_approval(tool), refusal=text)
    asserts, more = _asserts(call)
    given = _written(call.arguments, len(reach.name) + 16)
    body = [
        *before,
        *_mask_note(given),
        f"call = call_tool_sync({reach.name}, {given}{option})",
        f"assert call.status == {call.status!r}, call.output",
        *asserts,
    ]
    imports = [*imports, "from agents_tools.testing import call_tool_sync"]
    return _program(reach, imports, _function(word, body), plain=more)


def _check_telling(call: ToolCallRequest) -> None:
    """Check that the result of a call can be expected again.

    Raises:
        UserError: The next call can end in another way.
    """
    ended = {"running": "has not ended yet", "interrupted": "waits for approval"}
    if call.run_status in ended:
        raise UserValueError(f"The run {ended[call.run_status]}: a test needs to know its result.")
    is_call = call.kind == "tool" and call.run_status in {"ok", "error"}
    status = call.status if is_call else call.run_status
    if status not in _TELLING:
        raise UserValueError(
            f"The run ended with {status!r}, which does not predict the next run. Run it again to "
            "its end, or export it as Python."
        )


def _test_of_agent(call: ToolCallRequest, catalog: TargetCatalog, word: str) -> str:
    reach = reach_agent(catalog.loaded, catalog.agents[call.name])
    body = _run_of_agent(call, reach.name)
    text = _text_of(call)
    if MASK in text or LEFT_OUT in text or not text:
        body.append("assert result.final_output")
    else:
        body.append("# The model can use other words: keep only the required part.")
        body.append(f"assert str(result.final_output) == {text!r}")
    return _program(reach, _imports_of_agent(call), _function(word, body))


def _run_of_agent(call: ToolCallRequest, name: str) -> list[str]:
    """Return the code that runs an agent. Files are read from the folder of the program."""
    note = _mask_note(call.input)
    if not call.files:
        return [*note, f"result = Runner.run_sync({name}, {call.input!r})"]
    return [
        *note,
        "content = [",
        *([f"    {call.input!r},"] if call.input else []),
        *(f"    {_block_name(file)}.from_path({file['name']!r})," for file in call.files),
        "]",
        f'result = Runner.run_sync({name}, [{{"role": "user", "content": content}}])',
    ]


def _imports_of_agent(call: ToolCallRequest) -> list[str]:
    names = sorted({"Runner", *map(_block_name, call.files)})
    return [f"from agents_tools import {', '.join(names)}"]


def _block_name(file: File) -> str:
    return block_type_for(file["mime_type"] or "").__name__


def _asserts(call: ToolCallRequest) -> tuple[list[str], list[str]]:
    """Return the assertions about the result, and their imports."""
    told = json.dumps([dict(block) for block in call.blocks], ensure_ascii=False)
    if MASK in told:
        return ["# The result contains a secret, which is not recorded."], []
    if LEFT_OUT in told:
        return ["# The result was too large to be recorded."], []
    if not call.texts:
        blocks = [dict(block) for block in call.blocks]
        if any(block.get("type") != "text" for block in blocks):
            kinds = [str(block.get("type")) for block in blocks]
            return [f"assert [block.type for block in call.output] == {kinds!r}"], []
        texts = [block.get("text") for block in blocks]
        return [f"assert [block.text for block in call.output] == {_literal(texts)}"], []
    text = _text_of(call)
    value = _json_of(text)
    if isinstance(value, (dict, list)):
        written = _literal(cast("Any", value), indent=4)
        return [f"assert json.loads(call.output) == {written}"], ["import json"]
    return [f"assert call.output == {text!r}"], []


def _json_of(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _decided(*, needed: bool, refusal: str | None = None) -> tuple[list[str], str, list[str]]:
    """Return the code that decides about a call that needs approval.

    Args:
        needed: Whether the call needs approval.
        refusal: The message of the rejection; `None` if the call was approved.
    """
    if not needed:
        return [], "", []
    decision = "approved=True" if refusal is None else f"approved=False, message={refusal!r}"
    before = [f"context = ToolContext(decision=Decision({decision}))"]
    return before, ", context=context", ["from agents_tools import Decision, ToolContext"]


def _mask_note(text: str) -> list[str]:
    return [_MASKED] if MASK in text else []


def _text_of(call: ToolCallRequest) -> str:
    return "".join(str(block.get("text", "")) for block in call.blocks)


def _function(word: str, body: list[str]) -> list[str]:
    lines = "\n".join(body).split("\n")
    return [f"def test_{word}() -> None:", *(f"    {line}" if line else "" for line in lines)]


def _program(
    reach: ImportPaths, imports: Sequence[str], body: Sequence[str], *, plain: Sequence[str] = ()
) -> str:
    """Return a complete program.

    Args:
        reach: The imports of the tool or agent.
        imports: Other imports of this library.
        body: The lines of the program.
        plain: Imports of the standard library.
    """
    first = [*plain, *(["import sys"] if reach.path else [])]
    parts: list[str] = ["\n".join(first)] if first else []
    if reach.path:
        parts.append(f"sys.path.insert(0, {reach.path!r})")
    parts.append("\n".join(dict.fromkeys([*imports, *reach.imports])))
    if reach.setup:
        parts.append("\n".join(reach.setup))
    gap = "\n\n" if body and body[0].startswith("def ") else ""
    return "\n\n".join(parts) + "\n" + ("\n" + gap.removesuffix("\n")) + "\n".join(body) + "\n"


def _written(arguments: Mapping[str, Any], taken: int) -> str:
    return _literal(dict(arguments), room=_WIDTH - taken)


def _literal(value: Any, *, indent: int = 0, room: int = _WIDTH) -> str:
    text = repr(value)
    if len(text) <= room - 24:
        return text
    return pprint.pformat(value, width=max(40, room - indent - 20), sort_dicts=False)
