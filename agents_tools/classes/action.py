"""What a class-based tool takes, gives and runs: `Action`, `Observation`, `ToolExecutor`."""

from __future__ import annotations

import atexit
import binascii
import contextlib
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
from agents_tools.text.escape import describe_value, safe_text, shorten

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
    """A piece of text that a model reads.

    Attributes:
        text: The text.
    """

    type: Literal["text"] = "text"
    text: str


class ImageContent(BaseModel):
    """Images that a model looks at.

    Attributes:
        image_urls: Where they are; `data:` URLs hold the image itself.
    """

    type: Literal["image"] = "image"
    image_urls: list[str]


Content = TextContent | ImageContent


class Schema(BaseModel):
    """What actions and observations have in common: they are records with a JSON form."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def visualize(self) -> Any:
        """How a person sees it: a rich `Text` with all its fields; plain text without rich."""
        lines = [type(self).__name__]
        for name, value in self:
            if value not in (None, "", [], {}):
                shown = value if isinstance(value, str) else repr(value)
                lines.append(f"  {name}: {shorten(safe_text(shown), 2_000)}")
        return rich_text("\n".join(lines))

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse fields that would hide what the class itself has."""
        super().__pydantic_init_subclass__(**kwargs)
        for name in ("visualize", "to_llm_content", "text", "from_text"):
            if (
                name in cls.model_fields
                and hasattr(Observation, name)
                and (name == "visualize" or issubclass(cls, Observation))
            ):
                raise UserTypeError(
                    f"{cls.__name__} has a field {name!r}, which hides what every "
                    f"{cls.__mro__[1].__name__} has. Call it something else, with an alias."
                )

    @classmethod
    def from_mcp_schema(cls, name: str, schema: Mapping[str, Any]) -> type[Self]:
        """Make a class of a JSON Schema; it takes and shows exactly what the schema says.

        Nothing of the schema is lost: it is enforced and published as it stands. What it calls
        properties become attributes; one that was not given is its default, or `None`.

        Args:
            name: The name of the class.
            schema: The JSON Schema of an object. Enforcing it takes the extra `schema`.

        Raises:
            UserError: The extra is not installed, or the schema is not valid.
        """
        from agents_tools.schema.arguments import SchemaReader

        given = cast("dict[str, Any]", json.loads(json.dumps(dict(schema))))
        reader = SchemaReader(name, given)
        properties: dict[str, Any] = given.get("properties", {})

        def enforce(value: Any) -> Any:
            if not isinstance(value, Mapping):
                return value
            return reader.read(json.dumps(dict(cast("Mapping[str, Any]", value))))

        def describe(
            _cls: type[BaseModel], _core: Any, _handler: GetJsonSchemaHandler
        ) -> dict[str, Any]:
            return cast("dict[str, Any]", json.loads(json.dumps(given)))

        def missing(instance: Any, attribute: str) -> Any:
            extra: dict[str, Any] = instance.__pydantic_extra__ or {}
            if attribute in extra:
                return extra[attribute]
            if attribute in properties:
                return properties[attribute].get("default")
            raise AttributeError(f"{name!r} has no attribute {attribute!r}")

        members: dict[str, Any] = {
            "__module__": cls.__module__,
            "__doc__": given.get("description"),
            "model_config": ConfigDict(extra="allow", frozen=True, protected_namespaces=()),
            "_enforced": model_validator(mode="before")(enforce),
            "__get_pydantic_json_schema__": classmethod(describe),
            "__getattr__": missing,
        }
        return cast("type[Self]", type(name, (cls,), members))


class Action(Schema):
    """What a model asks a tool for: the fields are the tool's parameters.

    Subclass it, with a `Field(description=...)` for each parameter. Unknown fields are refused. The
    arguments of a model are read by the rules for the parameters of functions.
    """


class Observation(Schema):
    """What a tool answers.

    Subclass it to add fields for programs; the model reads `to_llm_content`.

    Attributes:
        content: What the model reads, unless `to_llm_content` says otherwise.
        is_error: Whether it tells of a failure.
    """

    ERROR_MESSAGE_HEADER: ClassVar[str] = "[An error occurred during execution.]\n"

    content: list[TextContent | ImageContent] = Field(default_factory=list[Content])
    is_error: bool = False

    @classmethod
    def from_text(cls, text: str, is_error: bool = False, **fields: object) -> Self:
        """Make an observation of one text.

        Args:
            text: What the model reads.
            is_error: Whether it tells of a failure.
            **fields: The fields of the subclass.
        """
        return cls(content=[TextContent(text=text)], is_error=is_error, **fields)

    @property
    def text(self) -> str:
        """All text of `content`, joined."""
        return "".join(item.text for item in self.content if isinstance(item, TextContent))

    @property
    def to_llm_content(self) -> Sequence[TextContent | ImageContent]:
        """What the model reads; an error begins with `ERROR_MESSAGE_HEADER`."""
        if not self.is_error:
            return self.content
        return [TextContent(text=self.ERROR_MESSAGE_HEADER), *self.content]

    @property
    def visualize(self) -> Any:
        """How a person sees it: what the model reads, as a rich `Text`, or as plain text."""
        shown = [
            item.text if isinstance(item, TextContent) else f"[{len(item.image_urls)} image(s)]"
            for item in self.to_llm_content
        ]
        return rich_text(safe_text("".join(shown)))

    def __tool_result__(self) -> ToolResult:
        """Return what the model reads of it and what programs do."""
        blocks = [block for item in self.to_llm_content for block in _blocks(item)]
        if not blocks:  # an observation of fields only: the model reads those
            facts = self.model_dump(mode="json", exclude={"content", "is_error"})
            return ToolResult(content=facts or "", structured=self, is_error=self.is_error)
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
    """Put texts one below the other."""
    return "".join(
        text if not before or before.endswith("\n") else f"\n{text}"
        for before, text in zip(["", *texts[:-1]], texts, strict=True)
    )


def rich_text(text: str) -> Any:
    """Return a rich `Text`, or the text itself where rich is not installed."""
    try:
        return import_module("rich.text").Text(text)
    except ImportError:
        return text


ActionT = TypeVar("ActionT", bound=Action, default=Any)
ObservationT = TypeVar("ObservationT", default=Any)


class ToolExecutor(ABC, Generic[ActionT, ObservationT]):
    """What does the work of a tool, and holds what has to last between calls.

    Several tools may share one. A sync `__call__` runs in a worker thread, an async one on the
    event loop.
    """

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Make an executor that is closed at the exit of the program at the latest."""
        made = super().__new__(cls)
        close_at_exit(made)
        return made

    @abstractmethod
    def __call__(self, action: ActionT, conversation: Any = None) -> Any:
        """Do what an action asks for.

        Args:
            action: The action, validated.
            conversation: What the run was given as context; `None` outside of one.

        Returns:
            The observation; from an async executor, awaited.
        """

    def close(self) -> None:
        """Let go of what it holds: processes, files, connections. Nothing by default."""

    def interrupt(self) -> None:
        """End what no one waits for any more. Nothing by default.

        Called in a thread of its own. `current_context()` is the call that was left there, and its
        `cancelled` is true: where several calls run at once, that tells which one it is.
        """


def close_at_exit(closable: Any) -> None:
    """Close something at the exit of the program, unless that was done before."""
    _open.add(closable)


def close_executors(executors: Iterable[Any]) -> None:
    """Close each executor once, those that were closed this way before not again.

    What one of them raises is logged, and keeps none of the others open.

    Args:
        executors: The executors; one may be there several times. What has no `close` is passed
            over.
    """
    leaving: BaseException | None = None
    for executor in executors:
        close = getattr(executor, "close", None)
        if close is None or not _closed.add(executor):
            continue
        _open.discard(executor)
        try:
            close()
        except Exception:  # whatever one of them does, the others are closed
            logger.exception("%s could not be closed.", type(executor).__name__)
        except BaseException as error:  # noqa: BLE001 - raised again below
            leaving = error
    if leaving is not None:
        raise leaving


class InstanceKeys:
    """A set of objects by identity that keeps none of them alive."""

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[Any]] = {}
        self._lock = threading.Lock()

    def add(self, item: object) -> bool:
        """Put an object in, and tell whether it was not there."""
        key = id(item)
        with self._lock:
            known = self._known.get(key)
            if known is not None and known() is item:
                return False
            with contextlib.suppress(TypeError):  # a class without weak references
                self._known[key] = weakref.ref(item, lambda _: self._known.pop(key, None))
        return True

    def discard(self, item: object) -> None:
        """Take an object out."""
        self._known.pop(id(item), None)

    def clear(self) -> None:
        """Take everything out."""
        self._known.clear()

    def alive(self) -> list[Any]:
        """Return what is still there, in the order it came."""
        return [item for ref in list(self._known.values()) if (item := ref()) is not None]


_open = InstanceKeys()
_closed = InstanceKeys()


@atexit.register
def _close_all() -> None:
    close_executors(_open.alive())


def _reset_after_fork() -> None:
    """Leave the executors to the parent in a forked process."""
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def kinds_of(base: type[Any]) -> dict[str, list[type[Any]]]:
    """Return the classes made of a base, by name."""
    found: dict[str, list[type[Any]]] = {}
    pending: list[type[Any]] = [base]
    while pending:
        one = pending.pop()
        if "[" not in one.__name__:  # not a class that only says the types of a generic one
            found.setdefault(one.__name__, []).append(one)
        pending += one.__subclasses__()
    return found


def resolved_kind(base: type[Any], kind: str) -> Any:
    """Return the class of a name, among those made of a base.

    Raises:
        UserError: There is none, or more than one.
    """
    if not isinstance(kind, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(f"The kind of a {base.__name__} is text, not {describe_value(kind)}.")
    known = kinds_of(base)
    found = list(dict.fromkeys(known.get(kind, [])))
    if len(found) == 1:
        return found[0]
    if found:
        places = " and ".join(f"{one.__module__}.{one.__qualname__}" for one in found)
        raise UserValueError(f"{kind!r} is the name of several classes: {places}.")
    names = ", ".join(sorted(known)[:50])
    raise UserValueError(
        f"No class {shorten(kind, 100)!r} of kind {base.__name__} is known. Known are: {names}. "
        "Import the module that defines it first."
    )


def normalized(given: Any, field: str, tool: str, base: type[Schema]) -> type[Any]:
    """Return a class for a class or a JSON Schema.

    Raises:
        UserError: It is neither.
    """
    if isinstance(given, Mapping):
        plain = Schema if base is Observation else base  # an observation is what the schema says
        return plain.from_mcp_schema(tool, cast("Mapping[str, Any]", given))
    if isinstance(given, type) and issubclass(given, BaseModel):
        return given
    raise UserTypeError(
        f"The {field} of tool {tool!r} must be a subclass of {base.__name__} or a JSON Schema; it "
        f"is {given!r:.80}."
    )
