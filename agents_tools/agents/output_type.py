"""The type of an agent's final answer: told to the model as a schema, read from its text."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from agents_tools.agents.model import OutputFormat
from agents_tools.errors import ModelBehaviorError, UserError, UserTypeError
from agents_tools.schema.strict import ensure_strict_json_schema
from agents_tools.text.escape import describe_value, shorten

__all__ = ["ResultType"]

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_MOST_FAULTS = 10
_KEY = "response"
"""Where a value that is no object stands: models are asked for objects."""


class ResultType:
    """A type that final answers are validated by.

    Args:
        kind: Anything that pydantic can describe.
        agent: Whose it is, for error messages.

    Raises:
        UserError: The type has no JSON form.
    """

    def __init__(self, kind: Any, agent: str) -> None:
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(kind)
            schema = self._adapter.json_schema()
        except (PydanticUserError, PydanticSchemaGenerationError, TypeError, NameError) as error:
            raise UserTypeError(
                f"The output_type of agent {agent!r}, {kind!r:.80}, has no JSON form: "
                f"{shorten(str(error), 200)} Give a pydantic model, a dataclass, a TypedDict or a "
                "type made of such."
            ) from error
        self._wrapped = schema.get("type") != "object"
        if self._wrapped:
            definitions = schema.pop("$defs", None)
            schema = {"type": "object", "properties": {_KEY: schema}, "required": [_KEY]}
            if definitions:
                schema["$defs"] = definitions
        try:
            schema, strict = ensure_strict_json_schema(schema), True
        except UserError:
            strict = False
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", getattr(kind, "__name__", "answer")).strip("_")
        self.format = OutputFormat(name=name[:64] or "answer", schema=schema, strict=strict)

    def read(self, text: str) -> Any:
        """Make an object of the text of an answer.

        Raises:
            ModelBehaviorError: It is not of the type; the message lets the model correct it.
        """
        fenced = _FENCED.fullmatch(text)
        if fenced is not None:
            text = fenced[1]
        try:
            if not self._wrapped:
                return self._adapter.validate_json(text)
            value: Any = json.loads(text)
            if isinstance(value, dict) and _KEY in value:
                value = cast("dict[str, Any]", value)[_KEY]
            return self._adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
        except ValueError as error:
            raise ModelBehaviorError(f"The answer is not valid JSON: {error}. {_AGAIN}") from error
        lines = [
            f"- {'.'.join(map(str, fault['loc'])) or 'the answer'}: {fault['msg']}; "
            f"got {describe_value(fault['input'])}"
            for fault in faults[:_MOST_FAULTS]
        ]
        if len(faults) > _MOST_FAULTS:
            lines.append(f"- and {len(faults) - _MOST_FAULTS} more")
        raise ModelBehaviorError("\n".join(["The answer is not as asked:", *lines, _AGAIN]))


_AGAIN = "Answer again, with nothing but JSON of the form that was asked for."
