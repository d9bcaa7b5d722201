"""The parts of a class-based tool: `Action`, `Observation` and `ToolExecutor`."""

from __future__ import annotations

import atexit
import binascii
import contextlib
import inspect
import json
import logging
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypeVar

from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
)
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text.escape import describe_value, shorten
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler

__all__ = [
    "Action",
    "ImageContent",
    "Observation",
    "Schema",
    "TextContent",
    "ToolExecutor",
    "close_at_exit",
    "close_executors",
    "kinds_of",
]

logger = logging.getLogger("agents_tools")


class TextContent(BaseModel):
    """A text for the model.

    Attributes:
        text: The text.
    """

    type: Literal["text"] = "text"
    text: str


class ImageContent(BaseModel):
    """Images for the model.

    Attributes:
        image_urls: The URLs of the images; a `data:` URL contains the image itself.
    """

    type: Literal["image"] = "image"
    image_urls: list[str]


Content = TextContent | ImageContent


class Schema(BaseModel):
    """The base class of actions and observations: an immutable record with a JSON form."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def visualize(self) -> Any:
        """The fields as a rich `Text` for people, or as plain text if rich is not installed."""
        lines = [type(self).__name__]
        for name, value in self:
            if value not in (None, "", [], {}):
                shown = value if isinstance(value, str) else repr(value)
                lines.append(f"  {name}: {release_text(shown, limit=2_000)}")
        return rich_text("\n".join(lines))

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Raise an error for fields that would hide attributes of the base class."""
        super().__pydantic_init_subclass__(**kwargs)
        for name in ("visualize", "to_llm_content", "text", "from_text"):
            if (
                name in cls.model_fields
                and hasattr(Observation, name)
                and (name == "visualize" or issubclass(cls, Observation))
            ):
                raise UserTypeError(
                    f"{cls.__name__} has an invalid field: {name!r} hides an attribute of "
                    f"{cls.__mro__[1].__name__}. Rename the field, and use the name as its alias."
                )

    @classmethod
    def from_mcp_schema(cls, name: str, schema: Mapping[str, Any]) -> type[Self]:
        """Create a class from a JSON Schema.

        Values are validated against the schema, which is published unchanged. Its properties become
        attributes; a missing one has the default of its property, or `None`.

        Args:
            name: The name of the class.
            schema: The JSON Schema of an object. Validation needs the extra `schema`.

        Raises:
            UserError: The extra is not installed, or the schema is not valid.
        """
        from agents_tools.schema.arguments import ArgumentReader

        copy = cast("dict[str, Any]", json.loads(json.dumps(dict(schema))))
        reader = ArgumentReader.of_schema(name, copy)
        properties: dict[str, Any] = copy.get("properties", {})

        def validate(value: Any) -> Any:
            if not isinstance(value, Mapping):
                return value
            return reader.read(json.dumps(dict(cast("Mapping[str, Any]", value))))

        def describe(
            _cls: type[BaseModel], _core: Any, _handler: GetJsonSchemaHandler
        ) -> dict[str, Any]:
            return cast("dict[str, Any]", json.loads(json.dumps(copy)))

        def missing(instance: Any, attribute: str) -> Any:
            extra: dict[str, Any] = instance.__pydantic_extra__ or {}
            if attribute in extra:
                return extra[attribute]
            if attribute in properties:
                return properties[attribute].get("default")
            raise AttributeError(f"{name!r} has no attribute {attribute!r}")

        members: dict[str, Any] = {
            "__module__": cls.__module__,
            "__doc__": copy.get("description"),
            "model_config": ConfigDict(extra="allow", frozen=True, protected_namespaces=()),
            "_validated": model_validator(mode="before")(validate),
            "__get_pydantic_json_schema__": classmethod(describe),
            "__getattr__": missing,
        }
        return cast("type[Self]", type(name, (cls,), members))


class Action(Schema):
    """The arguments of a call; the fields are the parameters of the tool.

    Subclass it, with a `Field(description=...)` for each parameter. Unknown fields are rejected.
    The arguments of a model are validated by the same rules as the parameters of functions.
    """


class Observation(Schema):
    """The result of a class-based tool.

    Subclass it to add fields for programs. The model receives `to_llm_content`.

    Attributes:
        content: The content for the model, unless a subclass overrides `to_llm_content`.
        is_error: Whether the call failed.
    """

    ERROR_MESSAGE_HEADER: ClassVar[str] = "[An error occurred during execution.]\n"

    content: list[TextContent | ImageContent] = Field(default_factory=list[Content])
    is_error: bool = False

    @classmethod
    def from_text(cls, text: str, is_error: bool = False, **fields: object) -> Self:
        """Create an observation from a text.

        Args:
            text: The text for the model.
            is_error: Whether the call failed.
            **fields: The fields of the subclass.
        """
        return cls(content=[TextContent(text=text)], is_error=is_error, **fields)

    @property
    def text(self) -> str:
        """All text of `content`, joined."""
        return "".join(item.text for item in self.content if isinstance(item, TextContent))

    @property
    def to_llm_content(self) -> Sequence[TextContent | ImageContent]:
        """The content for the model; that of an error starts with `ERROR_MESSAGE_HEADER`."""
        if not self.is_error:
            return self.content
        return [TextContent(text=self.ERROR_MESSAGE_HEADER), *self.content]

    @property
    def visualize(self) -> Any:
        """The content for the model as a rich `Text`, or as plain text without rich."""
        shown = [
            item.text if isinstance(item, TextContent) else f"[{len(item.image_urls)} image(s)]"
            for item in self.to_llm_content
        ]
        return rich_text(release_text("".join(shown)))

    def __tool_result__(self) -> ToolResult:
        """Return the tool result, with content for the model and this record for programs."""
        blocks = [block for item in self.to_llm_content for block in _blocks(item)]
        if not blocks:  # without content, the model receives the fields
            values = self.model_dump(mode="json", exclude={"content", "is_error"})
            return ToolResult(content=values or "", structured=self, is_error=self.is_error)
        texts = [block.text for block in blocks if isinstance(block, ToolOutputText)]
        return ToolResult(
            content=_joined(texts) if len(texts) == len(blocks) else blocks,
            structured=self,
            is_error=self.is_error,
        )


def _blocks(item: TextContent | ImageContent) -> Iterable[ContentBlock]:
    if isinstance(item, TextContent):
        return (ToolOutputText(item.text),)
    return (_image(url) for url in item.image_urls)


def _image(url: str) -> ContentBlock:
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return ToolOutputImage(url=url)
    mime_type = head.removeprefix("data:").removesuffix(";base64") or None
    try:
        decoded = binascii.a2b_base64(data, strict_mode=True)
    except binascii.Error:
        return ToolOutputText("[an image whose data cannot be read]")
    if mime_type is not None and not mime_type.startswith("image/"):
        return ToolOutputFileContent(data=decoded, mime_type=mime_type)
    return ToolOutputImage(data=decoded, mime_type=mime_type)


def _joined(texts: list[str]) -> str:
    """Join texts, each starting on its own line."""
    return "".join(
        text if not before or before.endswith("\n") else f"\n{text}"
        for before, text in zip(["", *texts[:-1]], texts, strict=True)
    )


def rich_text(text: str) -> Any:
    """Return a rich `Text`, or the text itself if rich is not installed."""
    try:
        return import_module("rich.text").Text(text)
    except ImportError:
        return text


ActionT = TypeVar("ActionT", bound=Action, default=Any)
ObservationT = TypeVar("ObservationT", default=Any)


class ToolExecutor(ABC, Generic[ActionT, ObservationT]):
    """Runs the calls of a tool, and holds resources between calls.

    Several tools can share an executor. A sync `__call__` runs in a worker thread, an async one on
    the event loop. `close` and `interrupt` are sync.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse async methods that would never run.

        Raises:
            UserTypeError: `close` or `interrupt` is async.
        """
        super().__init_subclass__(**options)
        for name in ("close", "interrupt"):
            if inspect.iscoroutinefunction(cls.__dict__.get(name)):
                raise UserTypeError(
                    f"{cls.__qualname__}.{name} is not valid: expected a sync method, got an async "
                    f"one, which would never run. Write `def {name}(self)`."
                )

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Create an executor, which is closed at the latest when the program exits."""
        executor = super().__new__(cls)
        close_at_exit(executor)
        return executor

    @abstractmethod
    def __call__(self, action: ActionT, conversation: Any = None) -> Any:
        """Run an action.

        Args:
            action: The validated action.
            conversation: The `context` of the run; `None` outside a run.

        Returns:
            The observation. An async executor returns an awaitable of it.
        """

    def close(self) -> None:
        """Release processes, files and connections. Does nothing by default."""

    def interrupt(self) -> None:
        """Stop a call whose caller no longer waits for it. Does nothing by default.

        Called in a separate thread. There, `current_context()` returns the context of that call,
        whose `cancelled` is true, so an executor that runs several calls can identify it.
        """


def close_at_exit(closable: Any) -> None:
    """Close an object when the program exits, unless it was closed before."""
    _open.add(closable)


def close_executors(executors: Iterable[Any]) -> None:
    """Close executors that have not been closed by this function before.

    An exception of one executor is logged, and the others are closed all the same.

    Args:
        executors: The executors, possibly with duplicates. Objects without `close` are ignored.
    """
    fatal: BaseException | None = None
    for executor in executors:
        close = getattr(executor, "close", None)
        if close is None or not _closed.add(executor):
            continue
        _open.discard(executor)
        try:
            close()
        except Exception:  # the others must be closed all the same
            logger.exception("%s could not be closed.", type(executor).__name__)
        except BaseException as error:  # noqa: BLE001 - raised again below
            fatal = error
    if fatal is not None:
        raise fatal


class InstanceKeys:
    """A set of objects by identity, with weak references."""

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[Any]] = {}
        self._lock = threading.Lock()

    def add(self, item: object) -> bool:
        """Add an object, and return whether it is new."""
        key = id(item)
        with self._lock:
            known = self._known.get(key)
            if known is not None and known() is item:
                return False
            with contextlib.suppress(TypeError):  # a class without weak references
                self._known[key] = weakref.ref(item, lambda _: self._known.pop(key, None))
        return True

    def discard(self, item: object) -> None:
        """Remove an object."""
        self._known.pop(id(item), None)

    def clear(self) -> None:
        """Remove all objects."""
        self._known.clear()

    def alive(self) -> list[Any]:
        """Return the objects that still exist, in the order in which they were added."""
        return [item for ref in list(self._known.values()) if (item := ref()) is not None]


_open = InstanceKeys()
_closed = InstanceKeys()


@atexit.register
def _close_all() -> None:
    close_executors(_open.alive())


def _reset_after_fork() -> None:
    """Forget all executors in a forked process; they belong to its parent."""
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def kinds_of(base: type[Any]) -> dict[str, list[type[Any]]]:
    """Return a class and its subclasses, by name."""
    kinds: dict[str, list[type[Any]]] = {}
    pending: list[type[Any]] = [base]
    while pending:
        kind = pending.pop()
        if "[" not in kind.__name__:  # without parametrized generics
            kinds.setdefault(kind.__name__, []).append(kind)
        pending += kind.__subclasses__()
    return kinds


def resolved_kind(base: type[Any], kind: str) -> Any:
    """Return the subclass of a class with a name.

    Raises:
        UserError: There is no such class, or more than one.
    """
    if not isinstance(kind, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            f"The kind of a {base.__name__} is invalid: expected a string, got "
            f"{describe_value(kind)}."
        )
    known = kinds_of(base)
    matches = list(dict.fromkeys(known.get(kind, [])))
    if len(matches) == 1:
        return matches[0]
    if matches:
        paths = " and ".join(f"{match.__module__}.{match.__qualname__}" for match in matches)
        raise UserValueError(
            f"{kind!r} is the name of several classes: {paths}. Rename all but one."
        )
    names = ", ".join(sorted(known)[:50])
    raise UserValueError(
        f"{base.__name__} has no subclass {shorten(kind, 100)!r}: expected one of {names}. Import "
        "the module that defines the class first."
    )


def normalized(value: Any, field: str, tool: str, base: type[Schema]) -> type[Any]:
    """Return a class, created from a JSON Schema if the value is one.

    Raises:
        UserError: The value is neither a class nor a JSON Schema.
    """
    if isinstance(value, Mapping):
        plain = Schema if base is Observation else base  # without the fields of an observation
        return plain.from_mcp_schema(tool, cast("Mapping[str, Any]", value))
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value
    raise UserTypeError(
        f"The {field} of tool {tool!r} is invalid: expected a subclass of {base.__name__} or a "
        f"JSON Schema, got {value!r:.80}."
    )
