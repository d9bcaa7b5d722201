"""The type of a final answer: its schema for the model, and the validation of answers."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from agents_tools.agents.model import OutputFormat
from agents_tools.errors import ModelBehaviorError, UserError, UserTypeError
from agents_tools.schema.strict import ensure_strict_json_schema
from agents_tools.schema.types import imports_objects
from agents_tools.text.escape import describe_value, shorten
from agents_tools.tool.naming import valid_tool_name
from agents_tools.wire.decode import decoder

__all__ = ["ResultType"]

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_MAX_FAULTS = 10
_KEY = "response"
"""The key of a value that is not an object, because providers only accept object schemas."""


class ResultType:
    """A type against which final answers are validated.

    Args:
        kind: A type that Pydantic supports.
        agent: The name of the agent, for error messages.

    Raises:
        UserError: The type has no JSON Schema.
    """

    def __init__(self, kind: Any, agent: str) -> None:
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(kind)
            schema = self._adapter.json_schema()
        except (PydanticUserError, PydanticSchemaGenerationError, TypeError, NameError) as error:
            raise UserTypeError(
                f"The output_type of agent {agent!r}, {kind!r:.80}, has no JSON Schema: "
                f"{shorten(str(error), 200)} Use a Pydantic model, a dataclass, a TypedDict or a "
                "combination of them."
            ) from error
        if imports_objects(self._adapter.core_schema):
            raise UserTypeError(
                f"The output_type of agent {agent!r}, {kind!r:.80}, has an `ImportString`, with "
                "which the model could import any object, such as `os.system`. Use a `Literal` or "
                "an enum of the allowed names."
            )
        self._wrapped = schema.get("type") != "object"
        if self._wrapped:
            definitions = schema.pop("$defs", None)
            schema = {"type": "object", "properties": {_KEY: schema}, "required": [_KEY]}
            if definitions:
                schema["$defs"] = definitions
        # In the strict schema, null stands for a field with a default that is left out.
        self._decode = decoder(schema, nulls=True)
        try:
            schema, strict = ensure_strict_json_schema(schema), True
        except UserError:
            strict = False
        name = valid_tool_name(getattr(kind, "__name__", ""), default="answer")
        self.format = OutputFormat(name=name, schema=schema, strict=strict)

    def read(self, text: str) -> Any:
        """Return the value in the text of an answer.

        Raises:
            ModelBehaviorError: The answer does not match the type; the message is for the model.
        """
        fenced = _FENCED.fullmatch(text)
        if fenced is not None:
            text = fenced[1]
        text = self._decode(text)
        try:
            if not self._wrapped:
                return self._adapter.validate_json(text)
            value: Any = json.loads(text)
            if isinstance(value, dict) and _KEY in value:
                value = cast("dict[str, Any]", value)[_KEY]
            return self._adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
        except (ValueError, RecursionError) as error:
            raise ModelBehaviorError(f"The answer is not valid JSON: {error}. {_REMEDY}") from error
        lines = [
            f"- {'.'.join(map(str, fault['loc'])) or 'the answer'}: {fault['msg']}; "
            f"got {describe_value(fault['input'])}"
            for fault in faults[:_MAX_FAULTS]
        ]
        if len(faults) > _MAX_FAULTS:
            lines.append(f"- and {len(faults) - _MAX_FAULTS} more")
        raise ModelBehaviorError(
            "\n".join(["The answer does not match the schema:", *lines, _REMEDY])
        )


_REMEDY = "Answer again, only with JSON that matches the schema."
