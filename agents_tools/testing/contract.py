"""A check of the properties that every tool should have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from agents_tools.errors import UserError
from agents_tools.testing.calls import call_tool
from agents_tools.testing.fakes import ArgumentsCheck, listed, output_faults
from agents_tools.testing.invariants import EventLawError
from agents_tools.toolset.lint.linter import lint_tools
from agents_tools.wire.diff import parameters_of
from agents_tools.wire.project import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from agents_tools.tool.tool import FunctionTool

__all__ = ["ToolContractError", "assert_tool_contract"]

_LONGEST_ERROR = 2_048
_UNKNOWN = "no_such_parameter_"


class ToolContractError(AssertionError):
    """A tool violates the contract of `assert_tool_contract`.

    Attributes:
        faults: The violations, one line each.
    """

    def __init__(self, tool: str, faults: Sequence[str]) -> None:
        listed = "\n".join(f"- {fault}" for fault in faults)
        super().__init__(f"Tool {tool!r} has {len(faults)} fault(s):\n{listed}")
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class _InvalidInput:
    """Arguments that the tool must reject.

    Attributes:
        text: The arguments as JSON text.
        why: The error in the arguments.
        names: The text that the error message must contain.
    """

    text: str
    why: str
    names: str = ""


async def assert_tool_contract(
    tool: FunctionTool[..., Any],
    /,
    *examples: Mapping[str, Any],
    providers: Sequence[str] = PROVIDERS,
    warnings: bool = True,
    context: object = None,
) -> None:
    """Check the schema of a tool, its validation and its calls.

    - The schema can be built and exported to every provider, and describes each parameter (as
      `agents-tools check` does).
    - Arguments that are not a JSON object, an unknown key and a missing parameter are rejected
      before the tool runs, with a short message that names the parameter.
    - A call with each example has the status `ok`, its output is text or content blocks, its value
      matches the output schema, and its events follow the rules of `check_events`.

    Args:
        tool: The tool.
        *examples: Valid arguments. The tool is called with them.
        providers: The names of the providers; all by default.
        warnings: Whether warnings are violations, too, and not only errors.
        context: The context of the calls.

    Raises:
        ToolContractError: The tool violates the contract; the message lists each violation.
    """
    (tool,) = listed(tool)
    faults = [
        f"{finding.code}: {finding.message}"
        for finding in lint_tools([tool], providers)
        if warnings or finding.level == "error"
    ]
    if not any(fault.startswith("declaration") for fault in faults):
        faults += _too_lenient(tool)
        for example in examples:
            found = [fault async for fault in _of(tool, example, context)]
            faults += [f"with {_shown(example)}: {fault}" for fault in found]
    if faults:
        raise ToolContractError(tool.name, faults)


def _too_lenient(tool: FunctionTool[..., Any]) -> Iterator[str]:
    gate = ArgumentsCheck(tool)
    if not _is_enforced(tool):
        return
    for bad in _bad_arguments(tool):
        outcome = gate.judged(bad.text)
        if outcome.status != "invalid_args":
            yield f"{bad.why} is not rejected: {bad.text:.100}"
            continue
        text = str(outcome.output)
        if bad.names not in text:
            yield f"the error message for {bad.why} does not name {bad.names!r}: {text:.200}"
        if len(text) > _LONGEST_ERROR:
            yield f"the error message for {bad.why} has {len(text)} characters"


def _is_enforced(tool: FunctionTool[..., Any]) -> bool:
    """Return whether the library validates the arguments, and not the tool itself."""
    return tool.origin.kind != "manual"


def _bad_arguments(tool: FunctionTool[..., Any]) -> Iterator[_InvalidInput]:
    for text in ("[]", '"x"', "{", '{"a": NaN}'):
        yield _InvalidInput(text, "a value other than a JSON object")
    schema = tool.json_schema
    if not schema.get("additionalProperties"):
        yield _InvalidInput(f'{{"{_UNKNOWN}": 1}}', "an unknown parameter", _UNKNOWN)
    required = list(schema.get("required", ()))
    for name in parameters_of(dict(schema)):
        if name in required:
            yield _InvalidInput("{}", f"the missing parameter {name!r}", name)


async def _of(
    tool: FunctionTool[..., Any], example: Mapping[str, Any], context: Any
) -> AsyncIterator[str]:
    try:
        call = await call_tool(tool, example, context=context)
    except EventLawError as error:
        yield str(error)
        return
    except UserError as error:
        yield f"it cannot be called: {error}"
        return
    outcome = call.outcome
    if outcome.status != "ok":
        yield f"it ends with {outcome.status}: {str(outcome.output)[:300]}"
        return
    try:
        misfits = output_faults(tool, outcome.value)
    except UserError as error:
        yield f"its result has no JSON form: {error}"
        return
    for misfit in misfits[:3]:
        yield f"its result does not match its output schema: {misfit}"


def _shown(example: Mapping[str, Any]) -> str:
    return to_json(example, fallback=repr).decode()[:100]
