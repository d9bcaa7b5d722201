"""Makes up tools for fuzzing: their programs, and arguments that they accept."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.soak import _made_shapes
from tests.soak._made_texts import any_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from agents_tools import FunctionTool

    Sample = Callable[[Random], Any]

__all__ = ["MadeTool", "MadeType", "a_tool", "a_type"]


@dataclass(frozen=True)
class MadeType:
    """A type that was made up.

    Attributes:
        source: How it is written.
        sample: Gives a JSON value of it.
        classes: Programs of the classes it needs.
        picky: Whether it refuses what its schema allows, by a validator of its own.
    """

    source: str
    sample: Sample
    classes: tuple[str, ...] = ()
    picky: bool = False


@dataclass(frozen=True)
class MadeTool:
    """A tool that was made up.

    Attributes:
        tool: The tool.
        program: How it is written.
        parameters: Its parameters that have to be given, and those that may be.
        ran: The arguments of each run of its body.
        picky: Whether it refuses what its schema allows, by a validator of its own.
    """

    tool: FunctionTool[..., Any]
    program: str
    parameters: tuple[tuple[str, MadeType, bool], ...]
    ran: list[dict[str, Any]]
    picky: bool

    def arguments(self, rng: Random) -> dict[str, Any]:
        """Return arguments that it accepts."""
        return {
            name: made.sample(rng)
            for name, made, required in self.parameters
            if required or rng.random() < 0.6
        }


def _text(rng: Random) -> str:
    return "".join(one for one in any_text(rng) if not "\ud800" <= one <= "\udfff")


def _a_time(rng: Random) -> dt.datetime:
    start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return start + dt.timedelta(seconds=rng.randrange(4_000_000_000))


def _a_list(rng: Random, sample: Sample, most: int = 3) -> list[Any]:
    return [sample(rng) for _ in range(rng.randint(0, most))]


def _one(*values: Any) -> Sample:
    return lambda rng: rng.choice(values)


def _node(rng: Random, depth: int = 3) -> dict[str, Any]:
    made: dict[str, Any] = {"value": rng.randrange(9)}
    if depth and rng.random() < 0.5:
        made["next"] = _node(rng, depth - 1)
        made["others"] = [_node(rng, 0)]
    return made


def _place(rng: Random) -> dict[str, Any]:
    made: dict[str, Any] = {"city": rng.choice(("Ulm", "Bern", "é"))}
    if rng.random() < 0.5:
        made |= {"code": rng.choice(("01234", None)), "height": rng.choice((-3.5, 12))}
    return made


def _loose(rng: Random) -> dict[str, Any]:
    made: dict[str, Any] = {"name": _text(rng)}
    if rng.random() < 0.3:
        made |= {"tags": ["a"], "inner": {"name": "b"}}
    return made


def _number(rng: Random) -> float:
    return rng.choice((0.5, -1e30, 3, 1e-9))


_SAMPLES: tuple[tuple[str, Sample], ...] = (
    ("int", lambda rng: rng.choice((0, 1, -5, 2**31, 2**63, 10**25))),
    ("str", _text),
    ("float", _number),
    ("bool", _one(True, False)),
    ("None", _one(None)),
    ("Any", lambda rng: rng.choice((1, "a", None, [1], {"a": [True]}))),
    ("object", _one(1, "a", [None])),
    ("list", _one([], [1, "a"])),
    ("dict", _one({}, {"a": 1})),
    ("Literal['a', 'b', 3]", _one("a", "b", 3)),
    ("Literal[True, None]", _one(True, None)),
    ("Colour", _one("red", "blue")),
    ("Size", _one(1, 2)),
    ("Mode", _one("fast", "safe")),
    ("UserId", _one(1, 77)),
    ("Name", _text),
    ("Percent", lambda rng: rng.randint(0, 100)),
    ("PositiveInt", lambda rng: rng.randint(1, 100)),
    ("conint(ge=2, multiple_of=2)", _one(2, 64)),
    ("Slug", _one("a", "ab-c")),
    ("Annotated[str, Field(min_length=2, max_length=4)]", _one("ab", "éa-b")),
    ("Annotated[float, Field(gt=0, allow_inf_nan=False)]", _one(0.1, 5)),
    ("Annotated[str, 'What it is.']", _text),
    ("dt.datetime", lambda rng: _a_time(rng).isoformat()),
    ("dt.date", lambda rng: _a_time(rng).date().isoformat()),
    ("dt.time", lambda rng: _a_time(rng).time().isoformat() + "Z"),
    ("dt.timedelta", _one("P1DT2H", "PT0.5S", "P2W")),
    ("UUID", lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4))),
    ("Path", _one("a/b.txt", "/a", ".")),
    ("Point", lambda rng: {"x": rng.randrange(9), **rng.choice(({}, {"y": 0.5}))}),
    ("Loose", _loose),
    ("Pair", _one({"left": 1}, {"left": 2, "right": None, "more": [1]})),
    ("Tree", _one({}, {"value": 1, "children": [{"children": []}]})),
    ("Corner", _one([1], [1, 2])),
    ("Node", _node),
    ("Place", _place),
    ("Aliased", lambda rng: {"type": "a", "$ref": 1, "from": _place(rng)}),
    ("Pet", _one({"kind": "cat"}, {"kind": "dog", "name": "Rex"})),
    ("Login", _one({"user": "a", "password": "b"})),
    ("Open", _one({}, {"a": False, "b": [1]})),
    ("Page[int]", lambda rng: {"items": _a_list(rng, _one(1, 2))}),
    ("Page[Place]", lambda rng: {"items": _a_list(rng, _place), "total": 4}),
    ("Words", _one([], ["a", "b"])),
    ("abc.Sequence[int]", _one([], [1, 2])),
    ("abc.Mapping[str, float]", _one({}, {"a": 0.5})),
)

PLAIN: tuple[MadeType, ...] = (
    *(MadeType(source, sample) for source, sample in _SAMPLES),
    MadeType("Checked", _one({"low": 2, "high": 4}, {"low": 0, "high": 0}), picky=True),
    MadeType("Annotated[int, Field(strict=True)]", _one(0, 5), picky=True),  # not 5.0
    MadeType("bytes", _one("", "YWJj", "w6k="), picky=True),  # only base64
    MadeType("Decimal", _one(5, 1.5, "3.14", "-0.00"), picky=True),  # not every text
)


def a_type(rng: Random, depth: int = 2) -> MadeType:
    """Make up a type."""
    if not depth or rng.random() < 0.4:
        return rng.choice(PLAIN)
    inner = a_type(rng, depth - 1)
    source, sample = inner.source, inner.sample
    match rng.randrange(12):
        case 0:
            return _around(inner, f"list[{source}]", lambda rng: _a_list(rng, sample))
        case 1:
            return _around(
                inner,
                f"dict[str, {source}]",
                lambda rng: {key: sample(rng) for key in ("a", "b é")[: rng.randint(0, 2)]},
            )
        case 2:
            return _around(inner, f"tuple[{source}, int]", lambda rng: [sample(rng), 1])
        case 3:
            return _around(inner, f"tuple[{source}, ...]", lambda rng: _a_list(rng, sample))
        case 4 | 5:
            written = rng.choice((f"Optional[{source}]", f"Union[{source}, None]"))
            return _around(inner, written, lambda rng: rng.choice((None, sample(rng))))
        case 6:
            return _union(inner, a_type(rng, depth - 1))
        case 7:
            return _around(
                inner,
                f"Annotated[list[{source}], Field(min_length=1, max_length=3)]",
                lambda rng: [sample(rng)],
            )
        case 8:
            return rng.choice(
                (
                    MadeType("set[int]", lambda rng: list(range(rng.randint(0, 3)))),
                    MadeType("frozenset[str]", _one([], ["a", "b"])),
                    MadeType("dict[int, str]", _one({}, {"1": "a"}), picky=True),
                    MadeType("dict[Colour, int]", _one({}, {"red": 1})),
                    MadeType("List[Optional[int]]", _one([], [1, None])),
                )
            )
        case kind:
            return _a_class(rng, depth, kind - 9)


def _around(inner: MadeType, source: str, sample: Sample) -> MadeType:
    return MadeType(source, sample, inner.classes, inner.picky)


def _union(one: MadeType, other: MadeType) -> MadeType:
    return MadeType(
        f"Union[{one.source}, {other.source}]",
        lambda rng: rng.choice((one, other)).sample(rng),
        one.classes + other.classes,
        one.picky or other.picky,
    )


_HEADS = ("class {}(BaseModel):", "class {}(TypedDict):", "@dataclass\nclass {}:")


def _a_class(rng: Random, depth: int, kind: int) -> MadeType:
    """Make up a model, a TypedDict or a dataclass."""
    name = f"Made{rng.getrandbits(40):x}"
    fields = {f"f{number}": a_type(rng, depth - 1) for number in range(rng.randint(1, 3))}
    lines = [_HEADS[kind].format(name), '    """Made up."""']
    optional: set[str] = set()
    for number, (key, made) in enumerate(fields.items()):
        annotation = made.source
        if number and rng.random() < 0.5:
            optional.add(key)
        if kind == 1:
            lines.append(
                f"    {key}: {f'NotRequired[{annotation}]' if key in optional else annotation}"
            )
        elif optional:  # after a field that has a default, all of a dataclass have one
            optional.add(key)
            lines.append(f"    {key}: Optional[{annotation}] = None")
        else:
            lines.append(f"    {key}: {annotation}")

    def sample(rng: Random) -> dict[str, Any]:
        return {
            key: made.sample(rng)
            for key, made in fields.items()
            if key not in optional or rng.random() < 0.5
        }

    classes = tuple(program for made in fields.values() for program in made.classes)
    picky = any(made.picky for made in fields.values())
    return MadeType(name, sample, (*classes, "\n".join(lines)), picky)


_NAMES = ("path", "query", "limit", "x", "type", "class_name", "größe", "json_schema", "self_")


def a_tool(rng: Random) -> MadeTool:
    """Make up a tool.

    Raises:
        UserError: It cannot be declared.
    """
    parameters: list[tuple[str, MadeType, bool]] = []
    written: list[str] = []
    names = rng.sample(_NAMES, rng.randint(1, 4))
    needed = rng.randint(0, len(names))
    for number, name in enumerate(names):
        made = a_type(rng)
        required = number < needed
        parameters.append((name, made, required))
        written.append(f"{name}: {made.source}" + ("" if required else " = None"))
    if rng.random() < 0.3:
        written.insert(rng.randint(0, len(written)), "*")
        if written[-1] == "*":
            written.pop()
    further = rng.random() < 0.15
    if further:
        written.append("**more: int")
    if rng.random() < 0.2:
        written.insert(0, "ctx: RunContextWrapper")
    function = (
        "@function_tool\n"
        f"async def made({', '.join(written)}) -> str:\n"
        '    """Do something."""\n'
        "    ran.append({name: one for name, one in locals().items() if name != 'ctx'})\n"
        "    return 'done'"
    )
    program = "\n\n\n".join(
        [
            *dict.fromkeys(one for _, made, _ in parameters for one in made.classes),
            function,
        ]
    )
    return built(program, tuple(parameters))


def built(program: str, parameters: tuple[tuple[str, MadeType, bool], ...]) -> MadeTool:
    """Declare the tool of a program."""
    ran: list[dict[str, Any]] = []
    names = {name: getattr(_made_shapes, name) for name in _made_shapes.__all__}
    names |= {"__name__": _made_shapes.__name__, "ran": ran}
    exec(compile(program, "<made up>", "exec", dont_inherit=True), names)  # noqa: S102 - made here
    picky = any(made.picky for _, made, _ in parameters)
    return MadeTool(names["made"], program, parameters, ran, picky)
