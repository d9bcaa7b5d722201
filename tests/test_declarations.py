"""What a decorated function means: its names, its methods, its copies and unusual types."""

from __future__ import annotations

import copy
import enum
import functools
import gc
import json
import pickle
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, TypeVar

import pytest
from inline_snapshot import snapshot
from pydantic import Base64Bytes, Base64UrlBytes, BaseModel, EmailStr, Field, ImportString
from typing_extensions import Doc, TypeAliasType, TypedDict

from agents_tools import (
    Agent,
    FunctionTool,
    ModelBehaviorError,
    RunContextWrapper,
    ToolContext,
    UserError,
    function_tool,
    policies,
)

if TYPE_CHECKING:
    from collections.abc import Callable

City = str


# --- where the names in annotations are looked up


def _returns_a_function_with_a_city() -> Callable[..., Any]:
    def search(city: City) -> str:
        return city

    return search


def test_variables_of_other_callers_do_not_change_an_annotation() -> None:
    """`City` is the module's, whatever a function that applies the decorator calls `City`."""
    search = _returns_a_function_with_a_city()
    City = int  # noqa: F841, N806 # pyright: ignore[reportUnusedVariable]
    schema = function_tool(search).params_json_schema
    assert schema["properties"]["city"]["type"] == "string"


def test_a_variable_of_the_defining_function_hides_an_outer_one() -> None:
    """An outer variable of the same name would be another type."""

    class Query(BaseModel):
        outer: int

    def declare() -> FunctionTool[..., Any]:
        class Query(BaseModel):
            inner: int

        @function_tool
        def find(query: Query) -> int:
            return query.inner

        return find

    assert declare().invoke_sync(query={"inner": 1}) == 1
    del Query


configured = function_tool(strict_mode=False)


def test_a_configured_decorator_resolves_names_where_it_is_applied() -> None:
    class Query(BaseModel):
        text: str

    @configured
    def find(query: Query) -> str:
        return query.text

    assert find.invoke_sync(query={"text": "a"}) == "a"


def test_names_inside_quotes_and_closures_are_resolved() -> None:
    def declare() -> FunctionTool[..., Any]:
        def find(queries: list["Query"]) -> str:  # noqa: UP037
            return Query(text=queries[0].text).text

        tool = function_tool(find)

        class Query(BaseModel):
            text: str

        return tool

    assert declare().invoke_sync(queries=[{"text": "a"}]) == "a"


class Library:
    """Methods that name classes of their own class, before and after these exist."""

    class Before(BaseModel):  # noqa: D106
        text: str

    @function_tool
    def early(self, query: Before) -> str:
        return query.text

    @function_tool
    def late(self, query: After) -> str:
        return query.text

    def list(self) -> None: ...

    date: None = None

    @function_tool
    def ids(self, ids: list[int], date: Literal["now"]) -> Any:  # type: ignore[valid-type] # pyright: ignore[reportInvalidTypeForm, reportUnknownParameterType]
        return ids  # pyright: ignore[reportUnknownVariableType]

    def undecorated(self, query: After) -> str:
        return query.text

    class After(BaseModel):  # noqa: D106
        text: str


@pytest.mark.parametrize(
    "tool",
    [Library().early, Library().late, Library.late, function_tool(Library().undecorated)],
    ids=["before", "after", "of the class", "undecorated"],
)
def test_classes_inside_the_class_of_a_method_are_resolved(tool: Any) -> None:
    schema = tool.params_json_schema
    assert schema["$defs"][next(iter(schema["$defs"]))]["required"] == ["text"]


def test_a_method_does_not_hide_a_builtin_type() -> None:
    """A class can have a method `list` and annotate other methods with the type."""
    assert Library().ids.invoke_sync(ids=["1"], date="now") == [1]


def test_a_method_can_name_its_own_local_class() -> None:
    @dataclass
    class Node:
        value: int

        @function_tool
        def add(self, other: Node) -> int:
            return self.value + other.value

    assert Node(value=1).add.invoke_sync(other={"value": 2}) == 3


def test_a_decorator_does_not_keep_variables_of_its_caller_alive() -> None:
    class Large:
        pass

    def use() -> tuple[weakref.ref[Large], Any, Any]:
        large = Large()

        class Query(BaseModel):
            text: str

        decorator = function_tool(strict_mode=False)

        def find(query: Query) -> str:
            return query.text

        return weakref.ref(large), decorator, function_tool(find)

    reference, *kept = use()
    gc.collect()
    assert reference() is None
    del kept


# --- methods


class Base:
    @function_tool
    async def greet(self, name: str) -> str:
        """Greet a person."""
        return f"Hello {name}"

    @function_tool
    @staticmethod
    def double(number: int) -> int:
        return 2 * number

    @function_tool
    @classmethod
    def kind(cls) -> str:
        return cls.__name__


class Derived(Base):
    @function_tool
    async def greet(self, name: str) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Greet a person loudly."""
        return (await super().greet(name)).upper()


async def test_an_overriding_method_can_call_the_overridden_tool() -> None:
    assert await Derived().greet("Ada") == "HELLO ADA"
    assert await Derived().greet.invoke(name="Ada") == "HELLO ADA"
    assert await Base.greet.__get__(Derived()).invoke(name="Ada") == "Hello Ada"
    assert Base.greet.params_json_schema == Derived().greet.params_json_schema


def test_static_and_class_methods_are_tools_of_the_class_and_of_its_instances() -> None:
    assert [Derived.double.invoke_sync(number=2), Derived().double.invoke_sync(number=2)] == [4, 4]
    assert [Derived.kind.invoke_sync(), Derived().kind.invoke_sync()] == ["Derived", "Derived"]
    assert Base.__dict__["kind"].__get__(Derived()).invoke_sync() == "Derived"


def test_a_tool_below_classmethod_is_refused() -> None:
    """The model would have to pass the class."""

    class Wrong:
        @classmethod
        @function_tool
        def kind(cls) -> str:
            return cls.__name__

    with pytest.raises(UserError, match="above"):
        Agent("wrong", tools=[Wrong.kind])


# --- the tool as a Python object


@function_tool
def top(number: int) -> int:
    """Return the number."""
    return number


renamed = top.with_(name="other")
guarded = policies.retry(2)(top)
manual = FunctionTool(
    name="manual",
    params_json_schema={"type": "object"},
    on_invoke_tool=lambda _ctx, _text: None,  # type: ignore[arg-type, return-value] # pyright: ignore[reportArgumentType]
)


_NAMED: list[Any] = [top, renamed, guarded, manual, Base.greet, Base.double]
_BOUND: list[Any] = [Derived().greet, Derived().kind, Derived.kind]
_UNNAMED: list[Any] = [
    function_tool(lambda number: number, name_override="local"),
    Derived().greet.with_(name="another"),
]


@pytest.mark.parametrize("index", range(len(_NAMED)))
def test_a_tool_with_a_name_is_pickled_and_copied_as_itself(index: int) -> None:
    tool = _NAMED[index]
    assert pickle.loads(pickle.dumps(tool)) is tool  # noqa: S301 - dumped here
    assert copy.copy(tool) is tool
    assert copy.deepcopy({"tool": [tool]})["tool"][0] is tool


@pytest.mark.parametrize("index", range(len(_BOUND)))
def test_a_bound_tool_is_pickled_with_its_instance(index: int) -> None:
    tool = _BOUND[index]
    restored = pickle.loads(pickle.dumps(tool))  # noqa: S301 - dumped here
    assert type(restored.bound_to) is type(tool.bound_to)
    assert restored.params_json_schema == tool.params_json_schema


@pytest.mark.parametrize("index", range(len(_UNNAMED)))
def test_a_tool_without_a_name_is_not_pickled(index: int) -> None:
    with pytest.raises(UserError, match="cannot be pickled: expected a tool that a module"):
        pickle.dumps(_UNNAMED[index])


def test_a_tool_has_the_names_and_the_docstring_of_its_function() -> None:
    assert (top.__module__, top.__name__, top.__qualname__) == (__name__, "top", "top")
    assert Derived.greet.__qualname__ == Derived().greet.__qualname__ == "Derived.greet"
    assert top.__doc__ == "Return the number."


def test_metadata_is_protected_at_every_depth() -> None:
    own: dict[str, Any] = {"tags": ["a"]}
    tool = function_tool(lambda number: number, name_override="t", metadata={"mine": own})
    own["tags"].append("b")
    tool.metadata["mine"]["tags"].append("c")
    assert tool.metadata == {"mine": {"tags": ["a"]}}
    with pytest.raises(TypeError):
        tool.metadata["other"] = 1  # type: ignore[index] # pyright: ignore[reportIndexIssue]


# --- how arguments are passed


def test_a_single_dispatch_function_gets_its_arguments_by_position() -> None:
    @functools.singledispatch
    def describe(value: int | str, unit: str = "m") -> str:
        return f"text {value} {unit}"

    @describe.register
    def _(value: int, unit: str = "m") -> str:
        return f"number {value} {unit}"

    tool = function_tool(describe)
    assert tool.invoke_sync(value=1) == "number 1 m"
    assert tool.invoke_sync(value="a", unit="s") == "text a s"


def _add(context: ToolContext[Any], first: int, second: int = 2, *, third: int = 3) -> int:
    assert context.tool_name
    return first + second + third


def test_a_wrapper_gets_arguments_in_the_form_that_it_accepts() -> None:
    @functools.wraps(_add)
    def by_position(*args: Any, third: int = 3) -> int:
        return _add(*args, third=third)

    @functools.wraps(_add)
    def by_name(**kwargs: Any) -> int:
        return _add(**kwargs)

    for wrapper in (by_position, by_name, functools.lru_cache(by_name)):
        assert function_tool(wrapper).invoke_sync(first=1, third=1) == 4


def test_a_wrapper_that_cannot_get_a_parameter_is_refused() -> None:
    @functools.wraps(_add)
    def wrapper(*args: Any) -> int:
        return _add(*args)

    with pytest.raises(UserError, match=r"parameter 'third' cannot be passed.*accept \*args and"):
        function_tool(wrapper).build()


def test_an_unpacked_tuple_describes_every_item() -> None:
    def total(*numbers: *tuple[int, ...]) -> int:
        return sum(numbers)

    tool = function_tool(total)
    assert tool.params_json_schema["properties"]["numbers"]["items"] == {"type": "integer"}
    assert tool.invoke_sync(numbers=[1, "2"]) == 3


# --- the context


StateT = TypeVar("StateT")
ContextT = TypeVar("ContextT", bound=ToolContext[Any])
Alias = TypeAliasType("Alias", RunContextWrapper[str])
GenericAlias = TypeAliasType("GenericAlias", RunContextWrapper[StateT], type_params=(StateT,))
NewContext = NewType("NewContext", ToolContext)
NotAContext = TypeAliasType("NotAContext", int)


@pytest.mark.parametrize(
    "annotation", [Alias, GenericAlias[str], NewContext, NewContext | None, ContextT]
)
def test_aliases_of_the_context_are_recognized(annotation: Any) -> None:
    def tool(ctx: Any, number: int) -> str:
        return f"{type(ctx).__name__} {number}"

    tool.__annotations__["ctx"] = annotation
    assert list(function_tool(tool).params_json_schema["properties"]) == ["number"]
    assert function_tool(tool).invoke_sync(number=1) == "ToolContext 1"


def test_an_alias_of_another_type_is_a_parameter() -> None:
    def tool(number: NotAContext) -> int:
        return number

    assert function_tool(tool).invoke_sync(number=1) == 1


# --- types


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


class Sparse(enum.Flag):
    """Days."""

    FIRST = 1
    THIRD = 4


def test_combinations_of_flags_are_published_and_accepted() -> None:
    def tool(access: Access, days: Sparse = Sparse.FIRST) -> Access:
        return access

    declared = function_tool(tool)
    assert declared.params_json_schema["$defs"] == snapshot(
        {
            "Access": {
                "description": "A sum of flags: 1 = READ, 2 = WRITE.",
                "maximum": 3,
                "minimum": 0,
                "title": "Access",
                "type": "integer",
            },
            "Sparse": {
                "description": "Days.",
                "enum": [0, 1, 4, 5],
                "title": "Sparse",
                "type": "integer",
            },
        }
    )
    assert declared.output_json_schema == snapshot(
        {
            "description": "A sum of flags: 1 = READ, 2 = WRITE.",
            "maximum": 3,
            "minimum": 0,
            "title": "Access",
            "type": "integer",
        }
    )
    assert declared.invoke_sync(access=3, days=5) is Access.READ | Access.WRITE
    for access, days in ((4, 1), (-1, 1), (1, 2), (True, 1)):
        with pytest.raises(ModelBehaviorError):
            declared.invoke_sync(access=access, days=days)


class Keys(TypedDict):
    default: Any
    data: bytes


class Blob(BaseModel):
    data: bytes


def test_bytes_are_passed_as_base64_outside_of_models() -> None:
    def tool(data: bytes, several: list[bytes], keys: Keys, blob: Blob) -> Any:
        return data, several, keys, blob.data

    declared = function_tool(tool)
    properties = declared.params_json_schema["properties"]
    assert properties["data"] == snapshot(
        {"type": "string", "contentEncoding": "base64", "title": "Data"}
    )
    raw = b"\xff\x00\xfe"
    values = declared.invoke_sync(
        data=raw, several=[raw], keys={"default": 1, "data": raw}, blob=Blob(data=b"text")
    )
    assert values == (raw, [raw], {"default": 1, "data": raw}, b"text")


async def test_text_that_is_not_base64_is_refused() -> None:
    def tool(data: Annotated[bytes, Field(max_length=3)]) -> bytes:
        return data

    declared = function_tool(tool)
    assert declared.params_json_schema["properties"]["data"]["maxLength"] == 4
    assert (await declared.call(None, '{"data": "héllo"}')).output == snapshot("""\
Invalid arguments for tool 'tool':
- data: expected bytes in base64, got "héllo"\
""")
    assert (await declared.call(None, '{"data": "AAAAAAA="}')).output == snapshot("""\
Invalid arguments for tool 'tool':
- data: expected at most 3 bytes, got "AAAAAAA="\
""")
    assert (await declared.call(None, '{"data": "_w"}')).value == b"\xff"


async def test_a_default_of_bytes_is_published_in_the_accepted_form() -> None:
    """A model that sends the default must get the same value."""

    @dataclass
    class Part:
        data: bytes = b"hi!"

    def tool(part: Part, data: bytes = b"hi!", raw: bytes = b"\xff") -> Any:
        return part.data, data, raw

    declared = function_tool(tool)
    schema = declared.params_json_schema
    defaults = {key: schema["properties"][key]["default"] for key in ("data", "raw")}
    part = {"data": schema["$defs"]["Part"]["properties"]["data"]["default"]}
    assert (defaults, part) == ({"data": "aGkh", "raw": "_w=="}, {"data": "aGkh"})
    sent = json.dumps({"part": part, **defaults})
    assert (await declared.call(None, sent)).value == (b"hi!", b"hi!", b"\xff")


def test_a_type_that_decodes_bytes_itself_decodes_them_once() -> None:
    def tool(data: Base64Bytes, url: Base64UrlBytes | None = None) -> Any:
        return data, url

    values = function_tool(tool).invoke_sync('{"data": "aGkh", "url": "_w=="}')
    assert values == (b"hi!", b"\xff")


async def test_an_attempt_reads_the_bytes_that_a_factory_created() -> None:
    """They are stored with the arguments, in the form that the reader accepts."""
    seen: list[bytes] = []

    @policies.retry(2, backoff=0)
    @function_tool
    def tool(data: Annotated[bytes, Field(default_factory=lambda: b"hi!")]) -> str:
        seen.append(data)
        if len(seen) == 1:
            raise OSError
        return "sent"

    assert (await tool.call(None, "{}")).output == "sent"
    assert seen == [b"hi!", b"hi!"]


@pytest.mark.parametrize("annotation", [bytes, bytes | None, Annotated[bytearray, "x"]])
def test_a_result_that_becomes_a_file_has_no_output_schema(annotation: Any) -> None:
    def tool() -> Any: ...

    tool.__annotations__["return"] = annotation
    assert function_tool(tool).output_json_schema is None


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


@pytest.mark.parametrize("pet", [{"kind": "fox"}, {}])
def test_errors_of_a_discriminated_union_name_the_choices(pet: dict[str, Any]) -> None:
    def tool(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> str:
        return pet.kind

    with pytest.raises(ModelBehaviorError, match="an object with 'kind' one of 'cat', 'dog', got"):
        function_tool(tool).invoke_sync(pet=pet)


def test_infinite_bounds_are_not_published() -> None:
    def tool(number: Annotated[float, Field(ge=0, le=float("inf"))]) -> float:
        return number

    schema = function_tool(tool).params_json_schema
    assert json.loads(json.dumps(schema, allow_nan=False))["properties"]["number"] == snapshot(
        {"type": "number", "minimum": 0, "title": "Number"}
    )


def test_documentation_in_annotations_is_dedented() -> None:
    text = """
        The number.
          Indented.
    """

    def tool(number: Annotated[int, Doc(text)]) -> int:
        return number

    described = function_tool(tool).params_json_schema["properties"]["number"]["description"]
    assert described == "The number.\n  Indented."


class Plugin(BaseModel):
    function: ImportString[Any]  # the name of a keyword of core schemas must not hide the field


class Plugins(BaseModel):
    plugins: list[Plugin] | None = None
    more: Plugins | None = None


@pytest.mark.parametrize("annotation", [ImportString, Plugin, Plugins, dict[str, Plugin]])
def test_a_type_that_imports_objects_is_refused(annotation: Any) -> None:
    """The model could name `os.system`, which importing a module can run code for."""

    def tool(value: Any) -> Any: ...

    tool.__annotations__["value"] = annotation
    with pytest.raises(UserError, match=r"has an `ImportString`.*Use a `Literal` or an enum"):
        function_tool(tool).build()


def test_other_declarations_that_import_objects_are_refused() -> None:
    with pytest.raises(UserError, match="has an `ImportString`"):
        FunctionTool.from_schema(name="t", schema=Plugin, on_invoke_tool=top.on_invoke_tool)
    with pytest.raises(UserError, match="has an `ImportString`"):
        Agent("a", output_type=Plugins)


def test_a_type_without_its_package_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import pydantic.networks

    def fail() -> None:
        raise ImportError("email-validator is not installed, run `pip install 'pydantic[email]'`")

    monkeypatch.setattr(pydantic.networks, "import_email_validator", fail)

    def tool(address: EmailStr) -> str:
        return address

    with pytest.raises(UserError) as caught:
        function_tool(tool).build()
    assert str(caught.value).partition(": ")[2] == snapshot(
        "parameter 'address' has the type pydantic.networks.EmailStr, which cannot be used: email-validator is not installed. Install the package: pip install 'pydantic[email]'."
    )
