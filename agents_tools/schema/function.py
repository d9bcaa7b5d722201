"""The JSON Schema of a function's parameters, and the validation of its arguments."""

from __future__ import annotations

import functools
import threading
import typing
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Any

from agents_tools.schema.arguments import ArgumentReader, Field
from agents_tools.schema.callables import EMPTY, implementation, name_of
from agents_tools.schema.field_texts import text_of
from agents_tools.schema.json_schema import copy_json
from agents_tools.schema.signature import (
    LEFT_OUT,
    Param,
    SourceLocation,
    describe_annotation,
    is_context_annotation,
    location_of,
    positional_parameters,
    read_parameters,
    read_signature,
)
from agents_tools.schema.types import (
    NoSchemaError,
    TypeSchema,
    bounded_type_schema_of,
    joint_json_schemas,
    type_schema_of,
)

if typing.TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from agents_tools.schema.docstring import Docstring, DocstringStyle

__all__ = ["FuncSchema", "StreamedParameters", "function_schema", "schema_of_type"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedParameters:
    """The parameters of a tool that it can read while the model writes them.

    Attributes:
        texts: The parameters that are streamed, by the keys that the model can use.
        others: The other parameters, by the keys that the model can use.
        awaited: The other parameters without whose arguments the body does not start.
    """

    texts: Mapping[str, str]
    others: Mapping[str, str]
    awaited: frozenset[str]


class FuncSchema:
    """The schema of a function that a model can call.

    Attributes:
        name: The name of the tool.
        description: The description of the tool; `None` if there is none.
        takes_context: Whether a parameter receives the `ToolContext`.
        strict_json_schema: Whether to request strict mode from providers that have one.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        name: str,
        description: str | None,
        strict_json_schema: bool,
        location: SourceLocation,
        parameters: list[_DescribedParameter],
        order: list[Param],
        context_parameter: Param | None,
    ) -> None:
        self.name = name
        self.description = description
        self.strict_json_schema = strict_json_schema
        self.takes_context = context_parameter is not None
        self.context_name = context_parameter.name if context_parameter else None
        self._func = func
        self._location = location
        self._parameters = parameters
        self._extras = next(
            (item.type_schema for item in parameters if item.param.kind is Parameter.VAR_KEYWORD),
            None,
        )
        self._json_schema: dict[str, Any] | None = None
        self._model: type[BaseModel] | None = None
        self._positional = [
            (param.name, param.kind) for param in positional_parameters(func, order, location)
        ]
        self._reserved = _bound_names(func, order)

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the parameters that receive an `ArgumentStream`."""
        return tuple(item.param.name for item in self._parameters if item.param.is_stream)

    def streamed_parameters(self, *, start_early: bool) -> StreamedParameters | None:
        """Return the parameters whose texts can be read before they are validated.

        Args:
            start_early: Whether the arguments of optional parameters are not awaited.

        Returns:
            The parameters; `None` if validation can change a text, or if a text that has begun does
            not exclude another value.
        """
        streams = [item for item in self._parameters if item.param.is_stream]
        cores = [item.type_schema.core for item in streams]
        texts = [core["schema"] if core["type"] == "nullable" else core for core in cores]
        is_unchanged = all(text.keys() <= _CHECKS_OF_TEXT for text in texts)
        has_others = self._extras is not None or (len(texts) > 1 and texts != cores)
        if not streams or not is_unchanged or has_others:
            return None
        others = [item for item in self._parameters if not item.param.is_stream]
        return StreamedParameters(
            texts=_names_by_key(streams),
            others=_names_by_key(others),
            awaited=frozenset(
                item.param.name for item in others if not start_early or _field(item).required
            ),
        )

    @functools.cached_property
    def reader(self) -> ArgumentReader:
        """The reader of the arguments; it returns them by parameter name."""
        return self._create_reader(
            [
                _field(item)
                for item in self._parameters
                if item.param.kind is not Parameter.VAR_KEYWORD
            ]
        )

    @functools.cached_property
    def known_reader(self) -> ArgumentReader:
        """The reader of the arguments without those of the streams."""
        return self._create_reader(
            [
                replace(_field(item), default=LEFT_OUT, default_factory=None)
                if item.param.is_stream
                else _field(item)
                for item in self._parameters
            ]
        )

    def _create_reader(self, fields: list[Field]) -> ArgumentReader:
        try:
            return ArgumentReader.of_fields(
                self.name,
                fields,
                self._extras,
                lambda: self.json_schema,
                fill=bool(self._positional),
                reserved=self._reserved,
            )
        except Exception as error:
            raise self._location.refuse(
                f"no validator can be built for its parameters ({_first_line(error)}).",
                "Declare the parameter with the most unusual type as a plain JSON type and "
                "convert it inside the function.",
            ) from error

    @property
    def read(self) -> Callable[[str], dict[str, Any]]:
        """The function that validates JSON text and returns the arguments by parameter name."""
        return self.reader.read

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the function."""
        return read_signature(self._func, self._location)

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema, not copied; do not modify it."""
        if self._json_schema is None:
            self._json_schema = _object_schema(self.name, self._parameters)
        return self._json_schema

    @property
    def params_json_schema(self) -> dict[str, Any]:
        """The JSON Schema (2020-12) of the arguments; each access returns a deep copy."""
        return typing.cast("dict[str, Any]", copy_json(self.json_schema))

    @property
    def plain(self) -> bool:
        """Whether every argument can be passed by keyword."""
        return not self._positional

    def parse(self, args_json: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Validate the arguments of a call.

        Args:
            args_json: A JSON object as text.

        Returns:
            Positional and keyword arguments for the function, without its context parameter.

        Raises:
            ModelBehaviorError: The text is not JSON, or the arguments are invalid.
        """
        return self.to_call(self.read(args_json))

    def to_call(
        self, arguments: dict[str, Any], context: object = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Separate named arguments into positional and keyword arguments.

        Args:
            arguments: The arguments by parameter name; the mapping is modified.
            context: The value for the context parameter, if the function has one.
        """
        if context is not None and self.context_name is not None:
            arguments[self.context_name] = context
        positional: list[Any] = []
        for name, kind in self._positional:
            if kind is Parameter.VAR_POSITIONAL:
                positional.extend(arguments.pop(name))
            elif name in arguments:
                positional.append(arguments.pop(name))
        return tuple(positional), arguments

    @property
    def params_pydantic_model(self) -> type[BaseModel]:
        """A pydantic model of the arguments, built at first use.

        Its fields have generated names; their aliases are the property names of the JSON Schema.
        """
        if self._model is None:
            self._model = _pydantic_model(self.name, self._parameters)
        return self._model

    def to_call_args(self, data: BaseModel) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call for an instance of `params_pydantic_model`."""
        arguments: dict[str, Any] = {}
        for index, item in enumerate(self._parameters):
            field = f"{_FIELD}{index}"
            if item.param.kind is Parameter.VAR_KEYWORD:
                arguments.update(data.model_extra or {})
            elif field in data.model_fields_set or item.param.default is not LEFT_OUT:
                arguments[item.param.name] = getattr(data, field)
        args, kwargs = self.to_call(arguments)
        return list(args), kwargs


def function_schema(
    func: Callable[..., Any],
    *,
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: DocstringStyle | None = None,
    use_docstring_info: bool = True,
    strict_json_schema: bool = True,
    local_names: Mapping[str, Any] | None = None,
    skip_first: bool = False,
) -> FuncSchema:
    """Return the schema of a function, from its signature and docstring.

    Args:
        func: Any callable with a readable signature.
        name_override: The name of the tool; by default that of the function.
        description_override: The description of the tool; by default that of the docstring.
        docstring_style: The style of the docstring; by default it is detected.
        use_docstring_info: Whether descriptions, and the types of parameters without an
            annotation, are read from the docstring.
        strict_json_schema: Whether to request strict mode from providers that have one.
        local_names: Names used in postponed annotations that are not in the function's module.
        skip_first: Whether to leave out the first parameter: the `self` of an unbound method.

    Raises:
        UserError: A parameter cannot be described in JSON Schema, or its annotation cannot be
            resolved; the message names the tool, the parameter, the location and the remedy.
    """
    from agents_tools.schema.docstring import Docstring, docstring_of  # when a schema is built

    name = name_override or name_of(func)
    location = location_of(func, name)
    order = read_parameters(
        func, location, local_names=local_names or {}, skip=1 if skip_first else 0
    )
    context = _context_parameter(order, location)
    params = [param for param in order if param is not context]
    doc = Docstring()
    if use_docstring_info:
        names = [param.name for param in params]
        doc = docstring_of(func, style=docstring_style, param_names=names)
    doc = replace(doc, params=doc.params | _model_texts(func))
    described = [_describe_parameter(param, doc, func, location) for param in params]
    _check_keys(described, location)
    return FuncSchema(
        func,
        name=name,
        description=doc.description if description_override is None else description_override,
        strict_json_schema=strict_json_schema,
        location=location,
        parameters=described,
        order=order,
        context_parameter=context,
    )


def schema_of_type(annotation: Any, *, mode: str) -> tuple[dict[str, Any], Any] | None:
    """Return the JSON Schema and the serializer of a return annotation, or `None`."""
    import warnings

    from pydantic import TypeAdapter

    from agents_tools.schema.generator import QuietGenerator

    with _BUILD_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            adapter: Any = TypeAdapter(annotation)
            schema = adapter.json_schema(mode=mode, schema_generator=QuietGenerator)
            return schema, adapter.serializer
        except Exception:  # noqa: BLE001 - such results are converted without a schema
            return None


_CHECKS_OF_TEXT = {"type", "min_length", "max_length", "pattern", "strict", "regex_engine"}
"""What the schema of a text can have if validation does not change the text."""

_BUILD_LOCK = threading.RLock()
_FIELD = "argument_"
_REMEDY = (
    "Use a JSON type, a pydantic model, a dataclass, a TypedDict or an enum, or pass the value "
    "to the tool in another way: in the context, or with `functools.partial`."
)


class _DescribedParameter:
    """A parameter with its type schema and its description."""

    __slots__ = (
        "default",
        "default_factory",
        "description",
        "extra",
        "key",
        "other_keys",
        "param",
        "type_schema",
    )

    def __init__(self, param: Param, type_schema: TypeSchema) -> None:
        self.param = param
        self.type_schema = type_schema
        self.key = param.name
        self.other_keys: tuple[str, ...] = ()
        self.description: str | None = None
        self.default = param.default
        self.default_factory: Callable[[], Any] | None = None
        self.extra: dict[str, Any] = {}


def _context_parameter(params: list[Param], location: SourceLocation) -> Param | None:
    matches = [param for param in params if is_context_annotation(param.annotation)]
    if len(matches) > 1:
        names = " and ".join(repr(param.name) for param in matches)
        raise location.refuse(f"parameters {names} both receive the context.", "Keep one of them.")
    return matches[0] if matches else None


def _model_texts(func: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions of the fields of a pydantic class, which its signature lacks."""
    if not isinstance(func, type):
        return {}
    fields: dict[str, FieldInfo] = getattr(func, "__pydantic_fields__", {})
    return {
        key: info.description
        for name, info in fields.items()
        for key in (name, *_aliases(info))  # the parameter has the alias if that is an identifier
        if info.description
    }


def _describe_parameter(
    param: Param, doc: Docstring, func: Callable[..., Any], location: SourceLocation
) -> _DescribedParameter:
    annotation, text = param.annotation, doc.params.get(param.name)
    if _is_field_info(param.default) or hasattr(annotation, "__metadata__"):
        return _describe_by_field(param, text, location)
    if annotation is EMPTY:
        result = _DescribedParameter(param, _documented_type_schema(param, doc, func))
    else:
        result = _DescribedParameter(param, _type_schema(param, annotation, location))
    result.description = text
    if param.kind is Parameter.VAR_POSITIONAL:
        result.type_schema = _array_of(param, location)
        result.default = ()
    return result


def _type_schema(param: Param, annotation: Any, location: SourceLocation) -> TypeSchema:
    try:
        return type_schema_of(annotation)
    except NoSchemaError as error:
        problem = (
            f"has no JSON form ({error})" if error.remedy is None else f"cannot be used: {error}"
        )
        raise location.refuse(
            f"parameter {param.name!r} has the type {describe_annotation(param.annotation)}, "
            f"which {problem}.",
            error.remedy or _REMEDY,
        ) from error


def _documented_type_schema(param: Param, doc: Docstring, func: Callable[..., Any]) -> TypeSchema:
    """Return the type schema of an unannotated parameter, if possible from the docstring."""
    text = doc.types.get(param.name)
    if text:
        from agents_tools.schema.docstring import resolve_doc_type  # when a schema is built

        namespace = getattr(implementation(func), "__globals__", {})
        annotation = resolve_doc_type(text, namespace)
        if annotation is not None:
            if param.default is None:
                annotation = typing.Optional[annotation]  # noqa: UP045 - made at run time
            try:
                return type_schema_of(annotation)
            except NoSchemaError:
                pass  # the stated type has no JSON form
    return type_schema_of(typing.Any)


def _array_of(param: Param, location: SourceLocation) -> TypeSchema:
    item: Any = typing.Any if param.annotation is EMPTY else param.annotation
    return _type_schema(param, list.__class_getitem__(item), location)


def _is_field_info(value: Any) -> bool:
    """Return whether a default is pydantic's `Field(...)`, without importing pydantic."""
    return type(value).__name__ == "FieldInfo" and type(value).__module__.startswith("pydantic")


def _describe_by_field(
    param: Param, doc_text: str | None, location: SourceLocation
) -> _DescribedParameter:
    """Return a parameter with `Annotated[...]` metadata or a `Field(...)` default."""
    if param.annotation is EMPTY:
        param = replace(param, annotation=typing.Any)
    info = _field_info(param, location)
    texts = [text for item in info.metadata if (text := text_of(item))]
    constraints = [item for item in info.metadata if text_of(item) is None]
    result = _DescribedParameter(param, _type_schema_of_field(param, info, constraints, location))
    result.description = info.description or (texts[0] if texts else None) or doc_text
    keys = _aliases(info)
    if keys:
        result.key = keys[0]
        result.other_keys = tuple(dict.fromkeys(keys[1:]))
    result.extra = _extra_keywords(info)
    if param.kind is Parameter.VAR_POSITIONAL:
        result.type_schema = _array_of(param, location)
        result.default = ()
    elif param.default is not LEFT_OUT:
        _set_default(result, info)
    return result


def _field_info(param: Param, location: SourceLocation) -> FieldInfo:
    from pydantic.fields import FieldInfo

    annotation: Any = param.annotation
    try:
        if param.default is EMPTY or param.default is LEFT_OUT:
            return FieldInfo.from_annotation(annotation)
        return FieldInfo.from_annotated_attribute(annotation, param.default)
    except Exception as error:
        raise location.refuse(
            f"the annotation {describe_annotation(annotation)} of parameter {param.name!r} "
            f"cannot be read ({_first_line(error)}).",
            _REMEDY,
        ) from error


def _type_schema_of_field(
    param: Param, info: FieldInfo, constraints: list[Any], location: SourceLocation
) -> TypeSchema:
    if _is_plain_field(info):
        if not constraints:
            return _type_schema(param, info.annotation, location)
        bounded = bounded_type_schema_of(info.annotation, constraints)
        if bounded is not None:
            return bounded
    return _type_schema(param, _annotated(param.annotation, param.default), location)


def _aliases(info: FieldInfo) -> list[str]:
    """Return the names that a field accepts instead of that of its parameter."""
    alias = info.alias if info.validation_alias is None else info.validation_alias
    names: list[Any] = [alias] if isinstance(alias, str) else getattr(alias, "choices", [])
    return [name for name in names if isinstance(name, str)]


def _extra_keywords(info: FieldInfo) -> dict[str, Any]:
    """Return the further keywords of a field in the JSON Schema."""
    keywords: dict[str, Any] = {}
    if info.title:
        keywords["title"] = info.title
    if info.examples:
        keywords["examples"] = info.examples
    if info.deprecated:
        keywords["deprecated"] = True
    extra: Any = info.json_schema_extra
    return {**keywords, **extra} if isinstance(extra, dict) else keywords


def _set_default(item: _DescribedParameter, info: FieldInfo) -> None:
    from pydantic_core import PydanticUndefined

    item.default = EMPTY
    if info.default_factory is not None:
        item.default_factory = typing.cast("Callable[[], Any]", info.default_factory)
    elif info.default is not PydanticUndefined:
        item.default = info.default


def _is_plain_field(info: Any) -> bool:
    return info.discriminator is None and not callable(info.json_schema_extra)


def _annotated(annotation: Any, default: Any) -> Any:
    """Return the annotation with a `Field(...)` default as metadata, without the default value."""
    if not _is_field_info(default):
        return annotation
    from copy import copy

    from pydantic_core import PydanticUndefined

    info = copy(default)
    info.default = PydanticUndefined
    info.default_factory = None
    return typing.Annotated[annotation, info]


def _names_by_key(parameters: list[_DescribedParameter]) -> dict[str, str]:
    return {key: item.param.name for item in parameters for key in (item.key, *item.other_keys)}


def _check_keys(parameters: list[_DescribedParameter], location: SourceLocation) -> None:
    seen: dict[str, str] = {}
    for item in parameters:
        if item.param.kind is Parameter.VAR_KEYWORD:
            continue
        for key in (item.key, *item.other_keys):
            if key in seen:
                raise location.refuse(
                    f"parameters {seen[key]!r} and {item.param.name!r} both have the name {key!r}.",
                    "Choose another alias for one of them.",
                )
            seen[key] = item.param.name


def _field(item: _DescribedParameter) -> Field:
    return Field(
        name=item.param.name,
        key=item.key,
        type_schema=item.type_schema,
        default=item.default,
        default_factory=item.default_factory,
        fill=item.default is not item.param.default or item.default_factory is not None,
        other_keys=item.other_keys,
    )


def _bound_names(func: Callable[..., Any], params: list[Param]) -> list[str]:
    """Return the names that extra arguments cannot have; empty without `**kwargs`."""
    extra = [param.name for param in params if param.kind is Parameter.VAR_KEYWORD]
    if not extra:
        return []
    code = getattr(implementation(func), "__code__", None)
    names = [param.name for param in params if param.name not in extra]
    if code is not None:
        count = code.co_argcount + code.co_kwonlyargcount
        names += code.co_varnames[code.co_posonlyargcount : count]
    return list(dict.fromkeys(names))


def _object_schema(name: str, parameters: list[_DescribedParameter]) -> dict[str, Any]:
    # Models write arguments in the order of the schema, and a tool with a stream starts when it has
    # the other arguments.
    parameters = sorted(parameters, key=lambda item: item.param.is_stream)
    type_schemas = [item.type_schema for item in parameters]
    defs: dict[str, Any] = {}
    collision = False
    for type_schema in type_schemas:
        for key, schema in type_schema.defs.items():
            collision |= defs.setdefault(key, schema) != schema
    schemas = [type_schema.json for type_schema in type_schemas]
    if collision:
        schemas, defs = joint_json_schemas(type_schemas)
    root: dict[str, Any] = {"properties": {}}
    for item, schema in zip(parameters, schemas, strict=True):
        if item.param.kind is Parameter.VAR_KEYWORD:
            root["additionalProperties"] = schema or True
            continue
        root["properties"][item.key] = _property_schema(item, schema)
    required = [
        item.key
        for item in parameters
        if item.param.kind is not Parameter.VAR_KEYWORD
        and item.default is EMPTY
        and item.default_factory is None
    ]
    if required:
        root["required"] = required
    root["title"] = f"{name}_args"
    root["type"] = "object"
    if defs:
        root["$defs"] = defs
    return root


def _property_schema(item: _DescribedParameter, schema: dict[str, Any]) -> dict[str, Any]:
    result = dict(schema)
    if "title" not in result and not _is_reference(schema):
        result["title"] = item.key.title().replace("_", " ").strip()
    if item.description is not None:
        result["description"] = item.description
    if item.param.kind is not Parameter.VAR_POSITIONAL and item.default is not EMPTY:
        json_default = _as_json(item.default)
        if json_default is not _NO_JSON:
            result["default"] = json_default
    result.update(item.extra)
    return result


def _is_reference(schema: dict[str, Any]) -> bool:
    """Return whether a schema is a reference, or a union of a reference and `null`."""
    if "$ref" in schema:
        return True
    branches = schema.get("anyOf", [])
    return len(branches) == 2 and "$ref" in branches[0] and branches[1] == {"type": "null"}  # noqa: PLR2004


_NO_JSON: Any = object()


def _as_json(default: Any) -> Any:
    """Return a default as a JSON value, or `_NO_JSON` if it has no JSON form."""
    if default is None or type(default) in {str, int, bool}:
        return default
    if default is LEFT_OUT:
        return _NO_JSON
    from pydantic_core import from_json, to_json

    try:
        text = to_json(default, inf_nan_mode="constants", bytes_mode="base64")
        return from_json(text, allow_inf_nan=False)
    except Exception:  # noqa: BLE001 - a default of any class can raise any error
        return _NO_JSON


def _pydantic_model(name: str, parameters: list[_DescribedParameter]) -> type[BaseModel]:
    from pydantic import ConfigDict, create_model

    fields: dict[str, Any] = {}
    extra: typing.Literal["allow", "forbid"] = "forbid"
    for index, item in enumerate(parameters):
        if item.param.kind is Parameter.VAR_KEYWORD:
            extra = "allow"
            continue
        annotation = typing.Any if item.param.annotation is EMPTY else item.param.annotation
        if item.param.kind is Parameter.VAR_POSITIONAL:
            annotation = list.__class_getitem__(annotation)
        fields[f"{_FIELD}{index}"] = (annotation, _model_field(item))
    config = ConfigDict(extra=extra, arbitrary_types_allowed=True)
    return create_model(f"{name}_args", __config__=config, **fields)


def _model_field(item: _DescribedParameter) -> Any:
    from pydantic import Field

    if item.default_factory is not None:
        default: dict[str, Any] = {"default_factory": item.default_factory}
    else:
        default = {} if item.default is EMPTY else {"default": item.default}
    return Field(alias=item.key, description=item.description, **default)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].removesuffix(".")
