"""The generator of JSON Schemas for the types that pydantic describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from agents_tools.schema.field_texts import field_texts
from agents_tools.schema.flags import flag_json, flag_mask

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["QuietGenerator"]

Schema = dict[str, Any]


class QuietGenerator(GenerateJsonSchema):
    """Generates JSON Schemas as pydantic does, with a few exceptions.

    It omits what JSON cannot express without a warning, and describes flags and bytes by the values
    that are accepted.
    """

    models = 0  # the number of models around the current schema

    ignored_warning_kinds = {  # noqa: RUF012 - the name and form are pydantic's
        "skipped-choice",
        "non-serializable-default",
        "skipped-discriminator",
    }

    def field_is_present(self, field: Any) -> bool:
        """Leave out a field of a dataclass that its constructor does not accept."""
        is_argument = self.mode != "validation" or field.get("init") is not False
        return is_argument and super().field_is_present(field)

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a dataclass and its fields."""
        return super().dataclass_schema(_with_texts(schema, field_texts(schema["cls"])))

    def dataclass_field_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a field of a dataclass."""
        return {**super().dataclass_field_schema(schema), **schema.get(_TEXT, {})}

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a TypedDict and its fields."""
        texts = field_texts(schema["cls"]) if "cls" in schema else {}
        return super().typed_dict_schema(_with_texts(schema, texts))

    def typed_dict_field_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a field of a TypedDict."""
        return {**super().typed_dict_field_schema(schema), **schema.get(_TEXT, {})}

    def enum_schema(self, schema: Any) -> dict[str, Any]:
        """Describe the combinations of flags, which are values too."""
        return flag_json(schema) if flag_mask(schema) else super().enum_schema(schema)

    def bytes_schema(self, schema: Any) -> dict[str, Any]:
        """Describe bytes as base64, except in models, which have their own rules."""
        if self.mode != "validation" or self.models:
            return super().bytes_schema(schema)
        return _base64_json(schema)

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a discriminated union; its tag is required even if it has a default."""
        result = super().tagged_union_schema(schema)
        if self.mode == "validation":
            _require_tag(result, self.get_schema_from_definitions)
        return result

    def encode_default(self, dft: Any) -> Any:
        """Return a default as JSON; bytes have the form of their schema."""
        if self.mode == "validation" and not self.models and isinstance(dft, bytes):
            return to_jsonable_python(dft, bytes_mode="base64")
        return super().encode_default(dft)

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a model."""
        self.models += 1
        try:
            return super().model_schema(schema)
        finally:
            self.models -= 1


_TEXT = "agents_tools_text"


def _with_texts(schema: Any, texts: dict[str, str]) -> Any:
    """Return the schema of a class whose fields have descriptions that pydantic ignores.

    A description in a pydantic `Field` overrides them, because pydantic adds it later.
    """
    if schema["type"] == "typed-dict":
        fields: dict[str, Schema] = schema["fields"]
        named = {name: _with_text(field, texts.get(name)) for name, field in fields.items()}
        return {**schema, "fields": named}
    if schema["type"] == "dataclass-args":
        listed = [_with_text(field, texts.get(field["name"])) for field in schema["fields"]]
        return {**schema, "fields": listed}
    if "schema" in schema:  # a dataclass, or a validator around its fields
        return {**schema, "schema": _with_texts(schema["schema"], texts)}
    return schema


def _with_text(field: Schema, text: str | None) -> Schema:
    return {**field, _TEXT: {"description": text}} if text else field


def _require_tag(union: Schema, resolve: Callable[[Any], Schema | None]) -> None:
    """List the tag of a discriminated union as required in each of its choices."""
    tag = union.get("discriminator", {}).get("propertyName")
    for choice in union["oneOf"] if tag else ():
        fields = resolve(choice["$ref"]) if "$ref" in choice else choice
        if fields and tag in fields.get("properties", ()):
            others = [name for name in fields.get("required", ()) if name != tag]
            fields["required"] = [tag, *others]


def _base64_json(schema: Schema) -> Schema:
    """Return the JSON Schema of bytes in base64, whose lengths are those of its text."""
    result: Schema = {"type": "string", "contentEncoding": "base64"}
    if minimum := schema.get("min_length"):
        result["minLength"] = -(-4 * minimum // 3)
    if "max_length" in schema:
        result["maxLength"] = -(-schema["max_length"] // 3) * 4
    return result
