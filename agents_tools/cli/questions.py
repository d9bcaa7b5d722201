"""Ask the person at the terminal the question of a tool or a server: a value, a form or a URL."""

from __future__ import annotations

import json
import webbrowser
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import click

from agents_tools.cli.arguments import parse_arguments
from agents_tools.cli.errors import CommandError
from agents_tools.cli.output import paint
from agents_tools.cli.schema_text import (
    DefinitionReader,
    Schema,
    describe_type,
    notes_on,
    parameters_of,
)
from agents_tools.errors import ModelBehaviorError, UserError
from agents_tools.mcp._coerce import objects
from agents_tools.text.escape import shorten
from agents_tools.text.output import release_text
from agents_tools.tool.question import UnansweredError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agents_tools.tool.question import Question

    ReadLine: TypeAlias = Callable[[str], Awaitable[str | None]]
    """Shows a prompt and returns the typed line; `None` at the end of the input."""

__all__ = ["answer_question"]

_DECLINE = "/decline"


class _NoAnswer(Exception):  # noqa: N818 - a decision of the person, not an error
    """The person declined."""


class _ClosedInput(Exception):  # noqa: N818 - a decision of the person, not an error
    """The person closed the input."""


async def answer_question(question: Question, read_line: ReadLine) -> Any:
    """Ask a question and return the answer; `None` if the person declines.

    Args:
        question: The question. A schema with properties is asked as a form, one field at a time.
        read_line: Reads the lines that the person types.

    Raises:
        UnansweredError: The person closed the input (Ctrl-D).
    """
    try:
        if question.url is not None:
            return await _confirm_url(question.url, read_line)
        fields = parameters_of(question.schema)
        if fields:
            return await _ask_form(question.schema, read_line)
        if question.schema.get("type") == "object":
            return await _confirm("Accept? [y]es, [n]o: ", read_line)
        return await _ask_value(question.schema, read_line)
    except _NoAnswer:
        return None
    except _ClosedInput:
        raise UnansweredError(
            f"The user closed the question without an answer: {question.message}",
            reason="cancelled",
        ) from None


# --- a value and a form


async def _ask_value(schema: Schema, read_line: ReadLine) -> Any:
    """Ask for one value; an empty line is no answer, or the default of the schema."""
    root: dict[str, Any] = {"type": "object", "properties": {"answer": schema}}
    if "$defs" in schema:
        root["$defs"] = schema["$defs"]
    field = _Field.of(DefinitionReader(root), "answer", schema, required=False)
    field.print_choices()
    while True:
        text = await _line(f"Answer ({field.hint(none='for none')}): ", read_line)
        if not text and not field.has_default:
            raise _NoAnswer
        if (value := field.read(text, root)) is not _INVALID:
            return value


async def _ask_form(schema: Schema, read_line: ReadLine) -> dict[str, Any]:
    reader = DefinitionReader(schema)
    required: set[Any] = set(schema.get("required") or ())
    click.echo(paint(f"{_DECLINE} refuses to answer.", err=True, dim=True), err=True)
    values: dict[str, Any] = {}
    for name, child in parameters_of(schema).items():
        field = _Field.of(reader, name, child, required=name in required)
        value = await _ask_field(field, dict(schema), read_line)
        if value is not _SKIPPED:
            values[name] = value
    return values


async def _ask_field(field: _Field, root: dict[str, Any], read_line: ReadLine) -> Any:
    field.print_description()
    field.print_choices()
    while True:
        text = await _line(f"  {field.label} ({field.hint(none='to skip')}): ", read_line)
        if text == _DECLINE:
            raise _NoAnswer
        if not text and not field.has_default:
            if not field.required:
                return _SKIPPED
            if not field.accepts_empty:
                click.echo("  A value is required.", err=True)
                continue
        if (value := field.read(text, root)) is not _INVALID:
            return value


async def _line(prompt: str, read_line: ReadLine) -> str:
    text = await read_line(prompt)
    if text is None:
        raise _ClosedInput
    return text


_INVALID: Any = object()
"""The marker of a value that does not match the schema; the reason was shown."""
_SKIPPED: Any = object()
"""The marker of an optional field without a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    value: Any
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """One value that the person types.

    Attributes:
        name: The name in the answer.
        schema: The schema of the value.
        kind: The type and the bounds as text.
        choices: The values to choose from, if they are limited.
        multiple: Whether several of them can be chosen.
        required: Whether a value is required.
    """

    name: str
    schema: Mapping[str, Any]
    kind: str
    choices: tuple[_Choice, ...]
    multiple: bool
    required: bool

    @classmethod
    def of(cls, reader: DefinitionReader, name: str, child: object, *, required: bool) -> _Field:
        """Create a field from its schema."""
        schema = reader.read(child)
        is_list = schema.get("type") == "array"
        choices = _choices_of(reader.read(schema.get("items")) if is_list else schema)
        notes = notes_on(reader, child)
        facts = [] if choices else [describe_type(reader, child), *notes]
        if notes and facts[:1] == ["string"]:
            del facts[0]
        return cls(
            name=name,
            schema=schema,
            kind="; ".join(facts),
            choices=choices,
            multiple=is_list and bool(choices),
            required=required,
        )

    @property
    def label(self) -> str:
        """The title or the name."""
        return release_text(shorten(str(self.schema.get("title") or self.name), 60))

    @property
    def has_default(self) -> bool:
        """Whether an empty line stands for a default."""
        return "default" in self.schema

    @property
    def accepts_empty(self) -> bool:
        """Whether an empty text is a valid value."""
        is_text = self.schema.get("type") == "string" and not self.choices
        return is_text and not self.schema.get("minLength")

    def hint(self, *, none: str) -> str:
        """Return the text in the parentheses of the prompt.

        Args:
            none: The effect of an empty line without a default.
        """
        hints = [self.kind] if self.kind not in {"", "string", "any"} else []
        if self.schema.get("type") == "boolean":
            hints = ["y or n"]
        if self.choices:
            hints = ["numbers, separated by commas" if self.multiple else "a number"]
        if self.has_default:
            default = release_text(self._shown(self.schema["default"]), limit=60)
            hints.append(f"Enter for {default}")
        elif not self.required:
            hints.append(f"Enter {none}")
        return "; ".join(hints) or "required"

    def _shown(self, value: Any) -> str:
        """Return a value as the person sees it: by the titles of the choices."""
        titles = {_spelled(choice.value): choice.title for choice in self.choices}
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        return ", ".join(titles.get(_spelled(item), _spelled(item)) for item in items)

    def print_description(self) -> None:
        """Show the description, if there is one."""
        if text := self.schema.get("description"):
            shown = " ".join(release_text(str(text), limit=500).split())
            click.echo(paint(f"  {shown}", err=True, dim=True), err=True)

    def print_choices(self) -> None:
        """Show the choices with their numbers."""
        for number, choice in enumerate(self.choices, start=1):
            click.echo(f"  {number:>3}. {release_text(choice.title, limit=200)}", err=True)

    def read(self, text: str, root: dict[str, Any]) -> Any:
        """Return the value of a typed line; show the reason and return `_INVALID` if it is wrong.

        Args:
            text: The line.
            root: The schema of the whole answer, which can hold definitions.
        """
        if not text and self.has_default:
            return self.schema["default"]
        try:
            value = self._chosen(text) if self.choices else self._parsed(text)
            return self._validated(value, root)
        except (CommandError, ModelBehaviorError) as error:
            click.echo(f"  {release_text(_problem(error))}", err=True)
            return _INVALID

    def _chosen(self, text: str) -> Any:
        if not self.multiple:
            return self._choice(text)
        return [self._choice(part.strip()) for part in text.split(",") if part.strip()]

    def _choice(self, text: str) -> Any:
        for choice in self.choices:
            if text in {_spelled(choice.value), choice.title}:
                return choice.value
        if text.isdecimal() and 1 <= int(text) <= len(self.choices):
            return self.choices[int(text) - 1].value
        raise CommandError(f"{text!r} is not a choice: expected 1 to {len(self.choices)}.")

    def _parsed(self, text: str) -> Any:
        if self.schema.get("type") == "boolean" and text.lower() in {"y", "n"}:
            return text.lower() == "y"
        schema = {"type": "object", "properties": {self.name: dict(self.schema)}}
        return parse_arguments(schema, [f"{self.name}={text}"])[self.name]

    def _validated(self, value: Any, root: dict[str, Any]) -> Any:
        """Validate a value against the schema of its field.

        Raises:
            ModelBehaviorError: It does not match the schema.
        """
        from agents_tools.schema.arguments import ArgumentReader

        schema = {**root, "properties": {self.name: dict(self.schema)}, "required": [self.name]}
        try:
            reader = ArgumentReader.of_schema("answer", schema)
        except UserError:  # the extra is not installed, or the schema is not valid
            return value
        return reader.read(json.dumps({self.name: value}))[self.name]


def _choices_of(schema: Mapping[str, Any]) -> tuple[_Choice, ...]:
    """Return the values that a schema lists, with their titles."""
    if isinstance(values := schema.get("enum"), list):
        listed = cast("list[Any]", values)
        names = cast("list[Any]", schema.get("enumNames") or listed)
        titles = names if len(names) == len(listed) else listed
        return tuple(
            _Choice(value=value, title=_spelled(title))
            for value, title in zip(listed, titles, strict=True)
        )
    arms = objects(schema.get("oneOf") or schema.get("anyOf"))
    if not all("const" in arm for arm in arms):
        return ()
    return tuple(
        _Choice(value=arm["const"], title=_spelled(arm.get("title", arm["const"]))) for arm in arms
    )


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _problem(error: CommandError | ModelBehaviorError) -> str:
    from dataclasses import replace

    from agents_tools.schema.problems import describe_problem

    if isinstance(error, ModelBehaviorError) and error.problems:
        first = error.problems[0]
        text = describe_problem(replace(first, path=first.path[1:]))
        return f"{text[:1].upper()}{text[1:]}."
    return str(error)


# --- yes or no


async def _confirm_url(url: str, read_line: ReadLine) -> bool:
    if not await _confirm("Open this address in the browser? [y]es, [n]o: ", read_line):
        raise _NoAnswer
    if not webbrowser.open(url):
        click.echo("No browser could be opened. Open the address yourself.", err=True)
    return True


async def _confirm(prompt: str, read_line: ReadLine) -> bool:
    while True:
        match (await _line(prompt, read_line)).lower():
            case "y" | "yes":
                return True
            case "n" | "no":
                raise _NoAnswer
            case _:
                pass
