"""A rule-based model that calls the tools whose words match a request.

It requires neither network nor key, always returns the same answer to the same request, and
understands simple requests such as "add 2 and 3, then convert it to roman numerals". Use it for
demonstrations and first steps; it does not support conversations.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.model import (
    ModelResponse,
    call_delta,
    call_started,
    message_started,
    text_delta,
)
from agents_tools.content.items import (
    MessageInputItem,
    MessageOutputItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.content.outputs import ToolOutputText
from agents_tools.content.usage import Usage
from agents_tools.errors import UserKeyError, UserValueError
from agents_tools.wire.hosted import raise_hosted_unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.agents.model import ModelRequest
    from agents_tools.content.items import Item
    from agents_tools.events.base import Emit
    from agents_tools.tool.tool import FunctionTool

__all__ = ["LocalModel"]


def load(name: str) -> LocalModel:
    """Return the model with a name; `rules` is the only one.

    Raises:
        UserError: The name is unknown.
    """
    if name != "rules":
        raise UserKeyError(f"Local model {name!r} is unknown: expected 'local/rules'.")
    return LocalModel()


class LocalModel:
    """Chooses tools by their words and reads their arguments from the request.

    A request can have several steps ("… and …", "… then …"). Steps run concurrently unless one
    refers to the result of another ("it", "that", "the result"). The model asks for missing
    arguments and never invents any.
    """

    name = "local/rules"
    provider = None

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Call the tools of the next step, or summarize the results of all steps.

        Raises:
            UserError: A tool is hosted by a provider, or no tool returned the required structured
                output.
        """
        tools = [_check_tool(tool) for tool in request.tools]
        start, text = _last_request(request.input)
        steps = [_plan_step(clause, tools) for clause in _clauses(text, tools)]
        answers = {
            item.call_id: item
            for item in request.input[start:]
            if isinstance(item, ToolCallOutputItem)
        }
        calls = _next_calls(steps, answers, start)
        if calls:
            for call in calls:
                emit(call_started(call.call_id, call.name))
                emit(call_delta(call.call_id, call.arguments))
                if request.on_call is not None:
                    request.on_call(call)
            return ModelResponse(
                items=calls, usage=Usage(requests=1), finish_reason="tool_calls", model=self.name
            )
        summary = _summary(steps, answers, start, tools)
        if request.output is not None:
            summary = _structured_output(answers)
        emit(message_started())
        for word in re.findall(r"\s*\S+|\s+$", summary):
            emit(text_delta(word))
        return ModelResponse(
            items=[MessageOutputItem(text=summary)],
            usage=Usage(requests=1),
            finish_reason="stop",
            model=self.name,
        )


@dataclass(frozen=True, slots=True)
class _LocalStep:
    """A step of a request, with its tool and its arguments.

    Attributes:
        clause: The part of the request.
        tool: The tool that matches the clause.
        arguments: The arguments that the clause contains.
        missing: The required parameters without a value.
        result_parameter: The parameter for the result of the previous step.
    """

    clause: str
    tool: FunctionTool[..., Any] | None
    arguments: dict[str, Any]
    missing: tuple[str, ...]
    result_parameter: str | None


def _check_tool(tool: Any) -> FunctionTool[..., Any]:
    if not hasattr(tool, "call"):
        raise_hosted_unsupported(tool, LocalModel.name)
    return cast("FunctionTool[..., Any]", tool)


def _last_request(items: Sequence[Item]) -> tuple[int, str]:
    """Return the index and the text of the last user message."""
    for start in range(len(items) - 1, -1, -1):
        item = items[start]
        if isinstance(item, MessageInputItem) and item.role == "user":
            return start, _text_of(item.content)
    return 0, ""


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(block.text for block in content if isinstance(block, ToolOutputText))


# --- steps of the request

_BREAK = re.compile(r"\s*(?:;|\n|[.!?](?:\s+|$)|,?\s*\b(?:and\s+)?then\b)\s*", re.IGNORECASE)
_AND = re.compile(r",?\s+(?:and|as well as|also)\s+|,\s+", re.IGNORECASE)
_QUOTED = re.compile(r"\"([^\"]*)\"|“([^”]*)”|'([^']*)'(?!\w)|`([^`]*)`")
_REFERENCE = re.compile(
    r"\b(?:it|that|this|them|those|(?:the|its)\s+(?:results?|answers?|outputs?|sum|total|text|list))\b",
    re.IGNORECASE,
)
_MIN_SCORE = 2.0


def _clauses(text: str, tools: Sequence[FunctionTool[..., Any]]) -> list[str]:
    """Split a request into steps; the "and" in "2 and 3" does not start a step."""
    quoted_texts: list[str] = []

    def store(match: re.Match[str]) -> str:
        quoted_texts.append(match[0])
        return f"\x00{len(quoted_texts) - 1}\x00"

    parts: list[str] = []
    for part in _BREAK.split(_QUOTED.sub(store, text)):
        current = ""
        for piece in _pieces(part):
            if (
                current
                and _best_tool(piece, tools)[1] >= _MIN_SCORE
                and _best_tool(current, tools)[1] >= _MIN_SCORE
            ):
                parts.append(current)
                current = piece.lstrip(", ")
                current = re.sub(r"^(?:and|as well as|also)\s+", "", current, flags=re.IGNORECASE)
            else:
                current += piece
        parts.append(current)
    restored = (re.sub(r"\x00(\d+)\x00", lambda m: quoted_texts[int(m[1])], one) for one in parts)
    return [one.strip() for one in restored if one.strip(" ,.")]


def _pieces(text: str) -> list[str]:
    """Split a text before each conjunction."""
    starts = [0, *(match.start() for match in _AND.finditer(text)), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(starts) if text[a:b].strip()]


def _plan_step(clause: str, tools: Sequence[FunctionTool[..., Any]]) -> _LocalStep:
    tool, score = _best_tool(clause, tools)
    if tool is None or score < _MIN_SCORE:
        return _LocalStep(clause, None, {}, (), None)
    arguments, missing = _fill_arguments(clause, tool)
    result_parameter = None
    if _REFERENCE.search(_QUOTED.sub("", clause)):
        free = [name for name in missing if _kind(_property(tool, name)) in _RESULT_KINDS]
        whole = _whole_request_parameter(tool)
        if not free and whole is not None and arguments.get(whole) == clause:
            free = [whole]
        result_parameter = free[0] if free else None
    return _LocalStep(
        clause,
        tool,
        arguments,
        tuple(n for n in missing if n != result_parameter),
        result_parameter,
    )


_RESULT_KINDS = ("string", "integer", "number")


def _best_tool(
    clause: str, tools: Sequence[FunctionTool[..., Any]]
) -> tuple[FunctionTool[..., Any] | None, float]:
    """Return the tool that shares the most words with a clause."""
    words = _words(clause)
    best, best_score = None, 0.0
    for tool in tools:
        schema = tool.json_schema
        score = 3.0 * len(words & _words(tool.name))
        score += 1.0 * len(words & _words(tool.description))
        for name, shape in schema.get("properties", {}).items():
            score += 0.5 * len(words & _words(name))
            values = _resolve(shape, schema).get("enum", ())
            score += 2.0 * len(words & _words(" ".join(map(str, values))))
        if score > best_score:
            best, best_score = tool, score
    return best, best_score


_STOP_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        "a an and are as at be by can could do for from get give have how i in into is it its let "
        "me my of on one or our please that the their them then there these they this to us was "
        "we what when where which who will with would you your tool use using task answer agent ",
    )
)
"""Words that do not identify a tool."""


def _words(text: str) -> set[str]:
    words = re.findall(r"[^\W\d_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())
    return {_stem(word) for word in words if word not in _STOP_WORDS and len(word) > 1}


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ions", "ion", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:  # noqa: PLR2004 - a root is left
            return word[: -len(ending)]
    return word


# --- arguments

_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:[.,]\d+)*(?:\.\d+)?(?![\w])")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?)?\b")
_WHOLE_REQUEST_PARAMETERS = frozenset(
    {"input", "text", "query", "question", "task", "message", "prompt", "request"}
)
_NAME = re.compile(
    r"\b(?:in|for|of|to|about|on|at|from|named|called|with)\s+"
    r"((?:the\s+)?[^\W\d_][\w.'-]*(?:\s+[A-Z][\w.'-]*)*)"
)


def _fill_arguments(clause: str, tool: FunctionTool[..., Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments in a clause, and the names of the missing ones."""
    schema = tool.json_schema
    source = _ClauseValues(clause)
    arguments: dict[str, Any] = {}
    shapes: Mapping[str, Any] = schema.get("properties", {})
    for name in shapes:
        value = source.assigned_value(name, _property(tool, name))
        if value is not None:
            arguments[name] = value
    required = schema.get("required", ())
    whole = _whole_request_parameter(tool)
    for name in sorted(shapes, key=lambda one: one not in required):
        if name in arguments:
            continue
        if name == whole:
            value = source.next_quoted() or clause
        else:
            value = source.next_value(_property(tool, name), optional=name not in required)
        if value is not None:
            arguments[name] = value
    return arguments, [name for name in required if name not in arguments]


def _whole_request_parameter(tool: FunctionTool[..., Any]) -> str | None:
    """Return the name of the parameter that receives the whole clause, if the tool has one."""
    required = tool.json_schema.get("required", ())
    texts = [name for name in required if _kind(_property(tool, name)) == "string"]
    plain = [name for name in texts if not _property(tool, name).keys() & {"enum", "format"}]
    return plain[0] if len(plain) == 1 and plain[0].lower() in _WHOLE_REQUEST_PARAMETERS else None


def _property(tool: FunctionTool[..., Any], name: str) -> Mapping[str, Any]:
    schema = tool.json_schema
    return _resolve(schema.get("properties", {}).get(name, {}), schema)


def _resolve(shape: Any, schema: Any, depth: int = 8) -> Any:
    """Return a schema with its reference resolved, or its first alternative other than null.

    A schema can be `true`, which accepts every value, as an empty one does.
    """
    if isinstance(shape, bool):
        return {}
    if depth and "$ref" in shape:
        name = str(shape["$ref"]).rpartition("/")[2]
        return _resolve(schema.get("$defs", {}).get(name, {}), schema, depth - 1)
    if depth and "anyOf" in shape:
        alternatives: list[Any] = [
            alternative
            for alternative in shape["anyOf"]
            if isinstance(alternative, bool) or alternative.get("type") != "null"
        ]
        return _resolve(alternatives[0] if alternatives else {}, schema, depth - 1)
    return shape


def _kind(shape: Mapping[str, Any]) -> str:
    kind: Any = shape.get("type", "string" if "enum" in shape else "")
    kinds = [kind] if isinstance(kind, str) else kind
    return next((str(one) for one in kinds if one != "null"), "")


class _ClauseValues:
    """The values in a clause; each one is used once."""

    def __init__(self, clause: str) -> None:
        self._clause = clause
        self._quoted: list[str] = ["".join(match) for match in _QUOTED.findall(clause)]
        bare = _QUOTED.sub(" ", clause)
        self._dates: list[str] = _DATE.findall(bare)
        self._bare = _DATE.sub(" ", bare)
        self._numbers: list[str] = [match.replace(",", "") for match in _NUMBER.findall(self._bare)]
        self._names: list[str] = [match.removeprefix("the ") for match in _NAME.findall(self._bare)]

    def assigned_value(self, name: str, shape: Mapping[str, Any]) -> Any:
        """Return the value in `name=value` or `name: value`."""
        pattern = rf"\b{re.escape(name)}\s*[=:]\s*(\"[^\"]*\"|'[^']*'|[^\s,;]+)"
        match = re.search(pattern, self._clause)
        return None if match is None else _read(match[1].strip("\"'"), shape)

    def next_quoted(self) -> str | None:
        """Return the next text in quotation marks."""
        return self._quoted.pop(0) if self._quoted else None

    def next_value(self, shape: Mapping[str, Any], *, optional: bool) -> Any:
        """Return the next value in the clause that matches a schema; `None` if there is none."""
        if "const" in shape:
            return shape["const"]
        if "enum" in shape:
            return self._choice(shape["enum"])
        items = _resolve(shape.get("items", {}), {})
        match _kind(shape):
            case "integer" | "number":
                return _number(self._numbers, shape)
            case "boolean":
                return None if optional else self._yes_or_no()
            case "array":
                return self._list(items)
            case "string":
                return self._text(shape, optional=optional)
            case _:
                return None

    def _choice(self, values: Sequence[Any]) -> Any:
        words = _words(self._clause)
        for value in values:
            if str(value).lower() in self._clause.lower() or _words(str(value)) & words:
                return value
        return None

    def _yes_or_no(self) -> bool | None:
        words = set(re.findall(r"[a-z]+", self._clause.lower()))
        if words & {"no", "not", "without", "false", "off"}:
            return False
        return True if words & {"yes", "true", "with", "on"} else None

    def _list(self, items: Mapping[str, Any]) -> list[Any] | None:
        kind = _kind(items)
        if kind in {"integer", "number"} and self._numbers:
            values = [_number(self._numbers, items) for _ in list(self._numbers)]
            return [value for value in values if value is not None]
        if kind == "string" and "enum" not in items:
            if self._quoted:
                texts, self._quoted = self._quoted, []
                return list(texts)
            listing = self._bare.rpartition(":")[2] if ":" in self._bare else ""
            texts = [one.strip(" .") for one in re.split(r",|\band\b", listing)]
            return [one for one in texts if one] or None
        return None

    def _text(self, shape: Mapping[str, Any], *, optional: bool) -> str | None:
        if shape.get("format") in {"date", "date-time"}:
            return self._dates.pop(0) if self._dates else None
        if shape.keys() & {"format", "pattern"}:
            return None
        if self._quoted:
            return self._quoted.pop(0)
        if optional or not self._names:
            return None
        return self._names.pop(0).rstrip(".,'")


def _number(numbers: list[str], shape: Mapping[str, Any]) -> float | int | None:
    whole = _kind(shape) == "integer"
    for start, text in enumerate(numbers):
        value = float(text)
        if (whole and not value.is_integer()) or not _is_within(value, shape):
            continue
        del numbers[start]
        return int(value) if whole or "." not in text else value
    return None


def _is_within(value: float, shape: Mapping[str, Any]) -> bool:
    return (
        value >= shape.get("minimum", value)
        and value <= shape.get("maximum", value)
        and value > shape.get("exclusiveMinimum", value - 1)
        and value < shape.get("exclusiveMaximum", value + 1)
    )


def _read(text: str, shape: Mapping[str, Any]) -> Any:
    """Convert a value that was assigned by name; `None` if it does not match the schema."""
    if "enum" in shape:
        return text if text in shape["enum"] else None
    match _kind(shape):
        case "integer" | "number":
            return _number([text], shape) if _NUMBER.fullmatch(text) else None
        case "boolean":
            return {"true": True, "yes": True, "false": False, "no": False}.get(text.lower())
        case "string" if not shape.keys() & {"format", "pattern"}:
            return text
        case _:
            return None


# --- calls and summary


def _next_calls(
    steps: Sequence[_LocalStep], answers: Mapping[str, ToolCallOutputItem], start: int
) -> list[ToolCallItem]:
    """Return the calls that do not depend on an unfinished call."""
    calls: list[ToolCallItem] = []
    for number, step in enumerate(steps):
        if step.tool is None or step.missing or _id(start, number) in answers:
            continue
        arguments = step.arguments
        if step.result_parameter is not None:
            previous = _previous_result(steps, number, answers, start)
            if previous is None:
                continue
            value = _value_from(previous, _property(step.tool, step.result_parameter))
            if value is None:
                continue
            arguments = {**arguments, step.result_parameter: value}
        calls.append(
            ToolCallItem(
                call_id=_id(start, number),
                name=step.tool.name,
                arguments=json.dumps(arguments, ensure_ascii=False),
            )
        )
    return calls


def _id(start: int, number: int) -> str:
    return f"local_{start}_{number}"


def _previous_result(
    steps: Sequence[_LocalStep], number: int, answers: Mapping[str, ToolCallOutputItem], start: int
) -> ToolCallOutputItem | None:
    """Return the result of the previous step; `None` if there is none, or if it failed."""
    for earlier in range(number - 1, -1, -1):
        if steps[earlier].tool is not None:
            answer = answers.get(_id(start, earlier))
            return answer if answer is not None and answer.status == "ok" else None
    return None


def _value_from(answer: ToolCallOutputItem, shape: Mapping[str, Any]) -> Any:
    text = _text_of(answer.output).strip()
    if _kind(shape) == "string":
        return text
    return _number([match.replace(",", "") for match in _NUMBER.findall(text)], shape)


def _summary(
    steps: Sequence[_LocalStep],
    answers: Mapping[str, ToolCallOutputItem],
    start: int,
    tools: Sequence[FunctionTool[..., Any]],
) -> str:
    """Return the summary of all results, with the reasons for steps that were not done."""
    lines: list[str] = []
    for number, step in enumerate(steps):
        answer = answers.get(_id(start, number))
        if answer is not None:
            text_output = _text_of(answer.output).strip() or "done"
            lines.append(
                text_output if answer.status == "ok" else f"{answer.name} failed: {text_output}"
            )
        elif step.tool is None:
            lines.append(f"I have no tool for “{step.clause}”.")
        elif step.missing:
            missing = " and ".join(step.missing)
            lines.append(f"To use {step.tool.name} I need {missing}: “{step.clause}” has none.")
        else:
            lines.append(f"“{step.clause}” needs a result that the previous step did not return.")
    done = any(_id(start, number) in answers for number in range(len(steps)))
    if not done:
        names = ", ".join(tool.name for tool in tools) or "none"
        lines.append(f"My tools: {names}.")
    return "\n".join(lines)


def _structured_output(answers: Mapping[str, ToolCallOutputItem]) -> str:
    for answer in reversed(list(answers.values())):
        text = _text_of(answer.output).strip()
        if answer.status == "ok" and text.startswith("{"):
            return text
    raise UserValueError(
        f"Model {LocalModel.name!r} supports output_type only if a tool returned a matching JSON "
        "object. Choose another model."
    )
