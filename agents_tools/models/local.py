"""A model that is a handful of rules: it reads a request, finds the tools for it and calls them.

It needs no network and no key, gives the same answer to the same request, and understands plain
requests such as "add 2 and 3, then convert it to roman numerals". For demonstrations and first
steps; it cannot talk.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserKeyError, UserValueError
from agents_tools.items import (
    MessageInputItem,
    MessageOutputItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.model import (
    ModelResponse,
    call_delta,
    call_started,
    message_started,
    text_delta,
)
from agents_tools.outputs import ToolOutputText
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.events import Emit
    from agents_tools.items import Item
    from agents_tools.model import ModelRequest
    from agents_tools.tool import FunctionTool

__all__ = ["LocalModel", "load"]


def load(name: str) -> LocalModel:
    """Give the model of a name: `rules` is the only one.

    Raises:
        UserError: It is another.
    """
    if name != "rules":
        raise UserKeyError(f"There is no local model {name!r}; there is 'local/rules'.")
    return LocalModel()


class LocalModel:
    """Chooses tools by their words and fills in their arguments from the request.

    A request may have several steps ("… and …", "… then …"). Steps run at once unless one refers
    to what another gives ("it", "that", "the result"). Arguments that the request does not hold
    are asked for, never made up.
    """

    name = "local/rules"
    provider = None

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        """Call the tools of the next step, or tell what came of all steps.

        Raises:
            UserError: A tool is one that a provider runs, or the answer is to have a form that no
                tool gave.
        """
        tools = [_checked(tool) for tool in request.tools]
        place, text = _asked(request.input)
        steps = [_planned(clause, tools) for clause in _clauses(text, tools)]
        answers = {
            item.call_id: item
            for item in request.input[place:]
            if isinstance(item, ToolCallOutputItem)
        }
        calls = _next_calls(steps, answers, place)
        if calls:
            for call in calls:
                emit(call_started(call.call_id, call.name))
                emit(call_delta(call.call_id, call.arguments))
                if request.on_call is not None:
                    request.on_call(call)
            return ModelResponse(
                items=calls, usage=Usage(requests=1), finish_reason="tool_calls", model=self.name
            )
        told = _told(steps, answers, place, tools)
        if request.output is not None:
            told = _in_form(answers)
        emit(message_started())
        for word in re.findall(r"\s*\S+|\s+$", told):
            emit(text_delta(word))
        return ModelResponse(
            items=[MessageOutputItem(text=told)],
            usage=Usage(requests=1),
            finish_reason="stop",
            model=self.name,
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """A part of a request, with the tool for it and what is known of its arguments."""

    clause: str
    tool: FunctionTool[..., Any] | None
    arguments: dict[str, Any]
    missing: tuple[str, ...]
    borrowed: str | None  # the parameter that takes what the step before gave


def _checked(tool: Any) -> FunctionTool[..., Any]:
    if not hasattr(tool, "call"):
        raise UserValueError(
            f"The tool {tool.name!r} ({type(tool).__name__}) runs at its provider, and the model "
            f"{LocalModel.name!r} has none. Choose a model named 'openai/…' or leave it out."
        )
    return cast("FunctionTool[..., Any]", tool)


def _asked(items: Sequence[Item]) -> tuple[int, str]:
    """Give the place and the text of what the user asked last."""
    for place in range(len(items) - 1, -1, -1):
        item = items[place]
        if isinstance(item, MessageInputItem) and item.role == "user":
            return place, _text_of(item.content)
    return 0, ""


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(block.text for block in content if isinstance(block, ToolOutputText))


# --- from the request to its steps

_BREAK = re.compile(r"\s*(?:;|\n|[.!?](?:\s+|$)|,?\s*\b(?:and\s+)?then\b)\s*", re.IGNORECASE)
_AND = re.compile(r",?\s+(?:and|as well as|also)\s+|,\s+", re.IGNORECASE)
_QUOTED = re.compile(r"\"([^\"]*)\"|“([^”]*)”|'([^']*)'(?!\w)|`([^`]*)`")
_REFERRING = re.compile(
    r"\b(?:it|that|this|them|those|(?:the|its)\s+(?:results?|answers?|outputs?|sum|total|text|list))\b",
    re.IGNORECASE,
)
_LEAST = 2.0


def _clauses(text: str, tools: Sequence[FunctionTool[..., Any]]) -> list[str]:
    """Part a request where another step begins; "2 and 3" is no such place."""
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found[0])
        return f"\x00{len(held) - 1}\x00"

    parts: list[str] = []
    for part in _BREAK.split(_QUOTED.sub(hold, text)):
        current = ""
        for piece in _pieces(part):
            if current and _best(piece, tools)[1] >= _LEAST and _best(current, tools)[1] >= _LEAST:
                parts.append(current)
                current = piece.lstrip(", ")
                current = re.sub(r"^(?:and|as well as|also)\s+", "", current, flags=re.IGNORECASE)
            else:
                current += piece
        parts.append(current)
    released = (re.sub(r"\x00(\d+)\x00", lambda m: held[int(m[1])], one) for one in parts)
    return [one.strip() for one in released if one.strip(" ,.")]


def _pieces(text: str) -> list[str]:
    """Cut before each joining word, which stays with what follows it."""
    starts = [0, *(found.start() for found in _AND.finditer(text)), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(starts) if text[a:b].strip()]


def _planned(clause: str, tools: Sequence[FunctionTool[..., Any]]) -> _Step:
    tool, score = _best(clause, tools)
    if tool is None or score < _LEAST:
        return _Step(clause, None, {}, (), None)
    arguments, missing = _filled(clause, tool)
    borrowed = None
    if _REFERRING.search(_QUOTED.sub("", clause)):
        free = [name for name in missing if _kind(_property(tool, name)) in _BORROWING]
        whole = _only_text(tool)
        if not free and whole is not None and arguments.get(whole) == clause:
            free = [whole]
        borrowed = free[0] if free else None
    return _Step(clause, tool, arguments, tuple(n for n in missing if n != borrowed), borrowed)


_BORROWING = ("string", "integer", "number")


def _best(
    clause: str, tools: Sequence[FunctionTool[..., Any]]
) -> tuple[FunctionTool[..., Any] | None, float]:
    """Give the tool whose words are most in a clause."""
    words = _words(clause)
    best, most = None, 0.0
    for tool in tools:
        schema = tool.json_schema
        score = 3.0 * len(words & _words(tool.name))
        score += 1.0 * len(words & _words(tool.description))
        for name, shape in schema.get("properties", {}).items():
            score += 0.5 * len(words & _words(name))
            values = _followed(shape, schema).get("enum", ())
            score += 2.0 * len(words & _words(" ".join(map(str, values))))
        if score > most:
            best, most = tool, score
    return best, most


_DULL = frozenset(
    re.findall(
        "[a-z]+",
        "a an and are as at be by can could do for from get give have how i in into is it its let "
        "me my of on one or our please that the their them then there these they this to us was "
        "we what when where which who will with would you your tool use using task answer agent ",
    )
)
"""Words that say nothing about a tool."""


def _words(text: str) -> set[str]:
    found = re.findall(r"[^\W\d_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())
    return {_stem(word) for word in found if word not in _DULL and len(word) > 1}


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ions", "ion", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:  # noqa: PLR2004 - a root is left
            return word[: -len(ending)]
    return word


# --- arguments

_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:[.,]\d+)*(?:\.\d+)?(?![\w])")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?)?\b")
_WHOLE = frozenset({"input", "text", "query", "question", "task", "message", "prompt", "request"})
_NAMED = re.compile(
    r"\b(?:in|for|of|to|about|on|at|from|named|called|with)\s+"
    r"((?:the\s+)?[^\W\d_][\w.'-]*(?:\s+[A-Z][\w.'-]*)*)"
)


def _filled(clause: str, tool: FunctionTool[..., Any]) -> tuple[dict[str, Any], list[str]]:
    """Give the arguments that a clause holds, and the names of those that it lacks."""
    schema = tool.json_schema
    source = _Source(clause)
    arguments: dict[str, Any] = {}
    shapes: Mapping[str, Any] = schema.get("properties", {})
    for name in shapes:
        value = source.assigned(name, _property(tool, name))
        if value is not None:
            arguments[name] = value
    required = schema.get("required", ())
    whole = _only_text(tool)
    for name in sorted(shapes, key=lambda one: one not in required):
        if name in arguments:
            continue
        if name == whole:
            value = source.quoted() or clause
        else:
            value = source.value(_property(tool, name), optional=name not in required)
        if value is not None:
            arguments[name] = value
    return arguments, [name for name in required if name not in arguments]


def _only_text(tool: FunctionTool[..., Any]) -> str | None:
    """Give the parameter that takes a whole request, where the tool has one."""
    required = tool.json_schema.get("required", ())
    texts = [name for name in required if _kind(_property(tool, name)) == "string"]
    plain = [name for name in texts if not _property(tool, name).keys() & {"enum", "format"}]
    return plain[0] if len(plain) == 1 and plain[0].lower() in _WHOLE else None


def _property(tool: FunctionTool[..., Any], name: str) -> Mapping[str, Any]:
    schema = tool.json_schema
    return _followed(schema.get("properties", {}).get(name, {}), schema)


def _followed(shape: Any, schema: Any, depth: int = 8) -> Any:
    """Give what a schema refers to; of several, the first that is not null."""
    if depth and "$ref" in shape:
        name = str(shape["$ref"]).rpartition("/")[2]
        return _followed(schema.get("$defs", {}).get(name, {}), schema, depth - 1)
    if depth and "anyOf" in shape:
        arms: list[Any] = [arm for arm in shape["anyOf"] if arm.get("type") != "null"]
        return _followed(arms[0] if arms else {}, schema, depth - 1)
    return shape


def _kind(shape: Mapping[str, Any]) -> str:
    kind: Any = shape.get("type", "string" if "enum" in shape else "")
    return kind if isinstance(kind, str) else str(kind[0])


class _Source:
    """What a clause holds, each piece to be used once."""

    def __init__(self, clause: str) -> None:
        self._clause = clause
        self._quoted: list[str] = ["".join(found) for found in _QUOTED.findall(clause)]
        bare = _QUOTED.sub(" ", clause)
        self._dates: list[str] = _DATE.findall(bare)
        self._bare = _DATE.sub(" ", bare)
        self._numbers: list[str] = [found.replace(",", "") for found in _NUMBER.findall(self._bare)]
        self._names: list[str] = [
            found.removeprefix("the ") for found in _NAMED.findall(self._bare)
        ]

    def assigned(self, name: str, shape: Mapping[str, Any]) -> Any:
        """Give what is said as `name=value` or `name: value`."""
        pattern = rf"\b{re.escape(name)}\s*[=:]\s*(\"[^\"]*\"|'[^']*'|[^\s,;]+)"
        found = re.search(pattern, self._clause)
        return None if found is None else _read(found[1].strip("\"'"), shape)

    def quoted(self) -> str | None:
        """Give the next text in quotation marks."""
        return self._quoted.pop(0) if self._quoted else None

    def value(self, shape: Mapping[str, Any], *, optional: bool) -> Any:
        """Give the next piece that fits, or `None`."""
        if "const" in shape:
            return shape["const"]
        if "enum" in shape:
            return self._choice(shape["enum"])
        items: Any = shape.get("items", {})
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
                taken, self._quoted = self._quoted, []
                return list(taken)
            told = self._bare.rpartition(":")[2] if ":" in self._bare else ""
            texts = [one.strip(" .") for one in re.split(r",|\band\b", told)]
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
    for place, text in enumerate(numbers):
        value = float(text)
        if (whole and not value.is_integer()) or not _within(value, shape):
            continue
        del numbers[place]
        return int(value) if whole or "." not in text else value
    return None


def _within(value: float, shape: Mapping[str, Any]) -> bool:
    return (
        value >= shape.get("minimum", value)
        and value <= shape.get("maximum", value)
        and value > shape.get("exclusiveMinimum", value - 1)
        and value < shape.get("exclusiveMaximum", value + 1)
    )


def _read(text: str, shape: Mapping[str, Any]) -> Any:
    """Read a value that was assigned by name; `None` if it does not fit."""
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


# --- from the steps to calls, and from their answers to a text


def _next_calls(
    steps: Sequence[_Step], answers: Mapping[str, ToolCallOutputItem], place: int
) -> list[ToolCallItem]:
    """Give the calls that can be made now: those without one that they wait for."""
    calls: list[ToolCallItem] = []
    for number, step in enumerate(steps):
        if step.tool is None or step.missing or _id(place, number) in answers:
            continue
        arguments = step.arguments
        if step.borrowed is not None:
            before = _before(steps, number, answers, place)
            if before is None:
                continue
            value = _lent(before, _property(step.tool, step.borrowed))
            if value is None:
                continue
            arguments = {**arguments, step.borrowed: value}
        calls.append(
            ToolCallItem(
                call_id=_id(place, number),
                name=step.tool.name,
                arguments=json.dumps(arguments, ensure_ascii=False),
            )
        )
    return calls


def _id(place: int, number: int) -> str:
    return f"local_{place}_{number}"


def _before(
    steps: Sequence[_Step], number: int, answers: Mapping[str, ToolCallOutputItem], place: int
) -> ToolCallOutputItem | None:
    """Give the answer of the step before; `None` if there is none, or it failed."""
    for earlier in range(number - 1, -1, -1):
        if steps[earlier].tool is not None:
            answer = answers.get(_id(place, earlier))
            return answer if answer is not None and answer.status == "ok" else None
    return None


def _lent(answer: ToolCallOutputItem, shape: Mapping[str, Any]) -> Any:
    text = _text_of(answer.output).strip()
    if _kind(shape) == "string":
        return text
    return _number([found.replace(",", "") for found in _NUMBER.findall(text)], shape)


def _told(
    steps: Sequence[_Step],
    answers: Mapping[str, ToolCallOutputItem],
    place: int,
    tools: Sequence[FunctionTool[..., Any]],
) -> str:
    """Put the answers together, and say what could not be done and why."""
    lines: list[str] = []
    for number, step in enumerate(steps):
        answer = answers.get(_id(place, number))
        if answer is not None:
            said = _text_of(answer.output).strip() or "done"
            lines.append(said if answer.status == "ok" else f"{answer.name} failed: {said}")
        elif step.tool is None:
            lines.append(f"I have no tool for “{step.clause}”.")
        elif step.missing:
            lacking = " and ".join(step.missing)
            lines.append(f"To use {step.tool.name} I need {lacking}: “{step.clause}” has none.")
        else:
            lines.append(f"“{step.clause}” needs what the step before did not give.")
    done = any(_id(place, number) in answers for number in range(len(steps)))
    if not done:
        names = ", ".join(tool.name for tool in tools) or "none"
        lines.append(f"My tools: {names}.")
    return "\n".join(lines)


def _in_form(answers: Mapping[str, ToolCallOutputItem]) -> str:
    for answer in reversed(list(answers.values())):
        text = _text_of(answer.output).strip()
        if answer.status == "ok" and text.startswith("{"):
            return text
    raise UserValueError(
        f"The model {LocalModel.name!r} gives an answer of an output_type only where a tool "
        "returned such a JSON object. Choose another model for it."
    )
