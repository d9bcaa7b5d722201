"""The fixed parameter types of generated tools; others are generated for each tool."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import pathlib
import uuid
from collections import abc
from dataclasses import dataclass, field
from typing import (  # noqa: UP035 - people still write List
    Annotated,
    Any,
    Generic,
    List,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypeVar,
    Union,
)

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    RootModel,
    SecretStr,
    conint,
    field_validator,
    model_validator,
)
from typing_extensions import TypedDict

from agents_tools import RunContextWrapper, function_tool

T = TypeVar("T")
UserId = NewType("UserId", int)
Name = NewType("Name", str)
Path = pathlib.Path
Decimal = decimal.Decimal
UUID = uuid.UUID


class Colour(enum.Enum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    """How large it is."""

    SMALL = 1
    LARGE = 2


class Mode(str, enum.Enum):  # noqa: UP042 - people still write it
    """How it is done."""

    FAST = "fast"
    SAFE = "safe"


class Point(TypedDict):
    """A place."""

    x: int
    y: NotRequired[float]


class Loose(TypedDict, total=False):
    """Whatever is known."""

    name: Required[str]
    tags: list[str]
    inner: Loose


@dataclass
class Pair:
    """Two things.

    Args:
        left: The first.
        right: The second.
    """

    left: int
    right: Optional[str] = None
    more: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Tree:
    """A tree."""

    value: int = 0
    children: tuple[Tree, ...] = ()


class Corner(NamedTuple):
    """A corner."""

    x: int
    y: int = 0


class Node(BaseModel):
    """A node."""

    value: int
    next: Optional[Node] = None
    others: list[Node] = []


class Place(BaseModel):
    """Where it is."""

    model_config = ConfigDict(extra="forbid")

    city: str = Field(min_length=1, max_length=20)
    code: Optional[str] = Field(default=None, pattern="^[0-9]{5}$")
    height: float = Field(default=0.0, ge=-500, lt=9_000)


class Aliased(BaseModel):
    """Other names."""

    kind: str = Field(alias="type")
    ref: int = Field(default=0, alias="$ref")
    from_: Optional[Place] = Field(default=None, alias="from")


class Cat(BaseModel):
    """A cat."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    """A dog."""

    kind: Literal["dog"]
    name: str


class Login(BaseModel):
    """Who it is."""

    user: str
    password: SecretStr


class Checked(BaseModel):
    """An even number, below another."""

    low: int
    high: int

    @field_validator("low")
    @classmethod
    def even(cls, value: int) -> int:
        """Take even numbers only."""
        if value % 2:
            message = "it must be even"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def ordered(self) -> Checked:
        """Take ordered numbers only."""
        assert self.low <= self.high, "low must not pass high"
        return self


class Open(BaseModel):
    """Anything besides."""

    model_config = ConfigDict(extra="allow")

    a: bool = True


class Page(BaseModel, Generic[T]):
    """Some of many."""

    items: list[T]
    total: int = 0


class Words(RootModel[list[str]]):
    """Words."""


Pet = Annotated[Union[Cat, Dog], Field(discriminator="kind")]
Percent = Annotated[int, Field(ge=0, le=100, description="Of a hundred.")]
Slug = Annotated[str, Field(pattern="^[a-z]+(-[a-z]+)*$")]

__all__ = [
    "UUID",
    "Aliased",
    "Annotated",
    "Any",
    "BaseModel",
    "Cat",
    "Checked",
    "Colour",
    "ConfigDict",
    "Corner",
    "Decimal",
    "Dog",
    "Field",
    "List",
    "Literal",
    "Login",
    "Loose",
    "Mode",
    "Name",
    "Node",
    "NotRequired",
    "Open",
    "Optional",
    "Page",
    "Pair",
    "Path",
    "Percent",
    "Pet",
    "Place",
    "Point",
    "PositiveInt",
    "RunContextWrapper",
    "SecretStr",
    "Size",
    "Slug",
    "Tree",
    "TypedDict",
    "Union",
    "UserId",
    "Words",
    "abc",
    "conint",
    "dataclass",
    "dt",
    "field",
    "function_tool",
]
