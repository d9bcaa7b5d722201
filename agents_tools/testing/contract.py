"""What every tool should do, as one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json

from agents_tools._lint import findings_of
from agents_tools._schema_diff import parameters_of
from agents_tools.errors import UserError
from agents_tools.testing.calls import call_tool
from agents_tools.testing.fakes import Gate, listed
from agents_tools.testing.laws import EventLawError
from agents_tools.wire._project import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from agents_tools._records import CallOutcome
    from agents_tools.tool import FunctionTool

__all__ = ["ToolContractError", "assert_tool_contract"]

_LONGEST_ERROR = 2_048
_UNKNOWN = "no_such_parameter_"


class ToolContractError(AssertionError):
    """A tool does not do what every tool should.

    Attributes:
        faults: What it does instead, one line each.
    """

    def __init__(self, tool: str, faults: Sequence[str]) -> None:
        told = "\n".join(f"- {fault}" for fault in faults)
        super().__init__(f"Tool {tool!r} has {len(faults)} fault(s):\n{told}")
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class _Bad:
    """Arguments that have to be refused.

    Attributes:
        text: The arguments as JSON text.
        why: What is wrong with them.
        names: What the refusal has to name.
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
    context: Any = None,
) -> None:
    """Check that a tool can be described to models, refuses bad arguments and answers good ones.

    - its schema builds, every provider takes it, and it says what each parameter is (what
      `agents-tools check` looks at)
    - what is no JSON object, an unknown key and a missing parameter are refused before anything
      runs, with a short text that names the parameter
    - with each example it answers `ok`, its output is text or content blocks, its value has the
      form that its output schema gives, and its events keep their laws

    Args:
        tool: The tool.
        *examples: Good arguments. The tool is really called with them.
        providers: Where it is to go; all by default.
        warnings: Whether what works badly counts, too, and not only what cannot work.
        context: What the tool sees in its calls.

    Raises:
        ToolContractError: It does not; the message names each fault.
    """
    (tool,) = listed(tool)
    faults = [
        f"{finding.code}: {finding.message}"
        for finding in findings_of([tool], providers)
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
    gate = Gate(tool)
    if not _is_enforced(tool):
        return
    for bad in _bad_arguments(tool):
        outcome = gate.judged(bad.text)
        if outcome.status != "invalid_args":
            yield f"{bad.why} is not refused, with {bad.text:.100}"
            continue
        text = str(outcome.output)
        if bad.names not in text:
            yield f"what is told of {bad.why} does not name {bad.names!r}: {text:.200}"
        if len(text) > _LONGEST_ERROR:
            yield f"what is told of {bad.why} has {len(text)} characters"


def _is_enforced(tool: FunctionTool[..., Any]) -> bool:
    """Whether the library reads the arguments; a tool made by hand does so itself."""
    return tool.origin.kind != "manual"


def _bad_arguments(tool: FunctionTool[..., Any]) -> Iterator[_Bad]:
    for text in ("[]", '"x"', "{", '{"a": NaN}'):
        yield _Bad(text, "what is no JSON object")
    schema = tool.json_schema
    if not schema.get("additionalProperties"):
        yield _Bad(f'{{"{_UNKNOWN}": 1}}', "an unknown parameter", _UNKNOWN)
    required = list(schema.get("required", ()))
    for name in parameters_of(dict(schema)):
        if name in required:
            yield _Bad("{}", f"the missing parameter {name!r}", name)


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
    schema = tool.output_json_schema
    if schema is not None:
        for fault in _misfits(tool, outcome, schema):
            yield fault


def _misfits(
    tool: FunctionTool[..., Any], outcome: CallOutcome, schema: dict[str, Any]
) -> Iterator[str]:
    try:
        value = from_json(tool.to_json(outcome.value))
    except UserError as error:
        yield f"what it gives has no JSON form: {error}"
        return
    try:
        from jsonschema_rs import validator_for
    except ModuleNotFoundError:
        return  # the extra `schema` judges this
    for misfit in list(validator_for(schema).iter_errors(value))[:3]:
        yield f"what it gives does not fit its output schema: {misfit.message:.200}"


def _shown(example: Mapping[str, Any]) -> str:
    return to_json(example, fallback=repr).decode()[:100]
