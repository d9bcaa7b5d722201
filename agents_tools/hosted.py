"""Tools that a provider runs, or drives: records that say what the provider is asked for.

They go to the Responses API of OpenAI. Where the provider only decides and this machine acts (a
shell, a computer, an approval), the record has a `local` tool that does it: a function tool like
any other, with its events, its failures and its policies.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from agents_tools import policies
from agents_tools._records import HandMade, ToolOrigin
from agents_tools.errors import (
    ModelBehaviorError,
    ToolDeniedError,
    ToolError,
    UserTypeError,
    UserValueError,
)
from agents_tools.outputs import ToolOutputImage
from agents_tools.tool import FunctionTool, copy_json

if TYPE_CHECKING:
    from agents_tools.context import ToolContext

__all__ = [
    "CodeInterpreterTool",
    "Computer",
    "ComputerTool",
    "FileSearchTool",
    "HostedMCPTool",
    "HostedTool",
    "ImageGenerationTool",
    "LocalShellTool",
    "MCPApprovalRequest",
    "SafetyCheck",
    "ShellRequest",
    "WebSearchTool",
]


class HostedTool(ABC):
    """A tool that a provider runs, or drives."""

    def __repr__(self) -> str:
        """Show the name alone: a configuration may hold keys."""
        return f"{type(self).__name__}({self.name!r})"

    @property
    @abstractmethod
    def name(self) -> str:
        """What the model calls it."""

    @abstractmethod
    def to_responses(self) -> dict[str, Any]:
        """Give it as the Responses API takes it."""

    @property
    def local(self) -> FunctionTool[..., Any] | None:
        """What runs on this machine when the model calls it; `None` if nothing does."""
        return None

    @property
    def include(self) -> tuple[str, ...]:
        """What else the provider is asked to put into its answers, as the Responses API has it."""
        return ()


@dataclass(frozen=True, eq=False)
class WebSearchTool(HostedTool):
    """Lets the model search the web.

    Attributes:
        user_location: Where the user is, roughly: `{"type": "approximate", "city": "…"}`.
        search_context_size: How much of what is found the model reads.
        filters: Which pages: `{"allowed_domains": [...]}`.
        preview: Whether to ask for the tool of older models, `web_search_preview`.
        external_web_access: Whether pages are fetched; `False` searches what is cached.
        search_content_types: What is searched for, of `text` and `image`; only with `preview`.

    Raises:
        UserError: An option is of the wrong form, or not for this kind of search.
    """

    user_location: Mapping[str, Any] | None = None
    search_context_size: Literal["low", "medium", "high"] | None = None
    filters: Mapping[str, Any] | None = None
    preview: bool = False
    external_web_access: bool | None = None
    search_content_types: Sequence[Literal["text", "image"]] | None = None

    def __post_init__(self) -> None:
        _keep_mappings(self, "user_location", "filters")
        size: object = self.search_context_size
        if size not in (None, "low", "medium", "high"):
            raise UserValueError(
                "WebSearchTool(search_context_size=...) is 'low', 'medium' or 'high', "
                f"not {size!r:.60}."
            )
        other = ("filters", "external_web_access") if self.preview else ("search_content_types",)
        for name in other:
            if getattr(self, name) is not None:
                kind = "web_search" if self.preview else "web_search_preview"
                raise UserValueError(
                    f"WebSearchTool({name}=...) is an option of {kind!r}: give preview="
                    f"{not self.preview} or leave it out."
                )

    @property
    def name(self) -> str:
        """`web_search`, or `web_search_preview`."""
        return "web_search_preview" if self.preview else "web_search"

    def to_responses(self) -> dict[str, Any]:
        """Give it as the Responses API takes it."""
        return _given(
            type=self.name,
            user_location=self.user_location,
            search_context_size=self.search_context_size,
            filters=self.filters,
            external_web_access=self.external_web_access,
            search_content_types=self.search_content_types,
        )


@dataclass(frozen=True, eq=False)
class FileSearchTool(HostedTool):
    """Lets the model search files that were uploaded.

    Attributes:
        vector_store_ids: The stores to search.
        max_num_results: How many results at most, from 1 to 50.
        include_search_results: Whether the record of a search carries what was found.
        ranking_options: How results are ranked.
        filters: Which files, by their attributes.

    Raises:
        UserError: No store is named, or an option is of the wrong form.
    """

    vector_store_ids: Sequence[str]
    max_num_results: int | None = None
    include_search_results: bool = False
    ranking_options: Mapping[str, Any] | None = None
    filters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        ids: Any = self.vector_store_ids
        if not isinstance(ids, (list, tuple)) or not all(map(_is_text, cast("list[Any]", ids))):
            raise UserTypeError(
                "FileSearchTool(vector_store_ids=...) takes a list of the ids of vector stores, "
                f"not {ids!r:.80}."
            )
        if not ids:
            raise UserValueError(
                "FileSearchTool(vector_store_ids=...) needs the id of at least one vector store."
            )
        object.__setattr__(self, "vector_store_ids", list(cast("list[str]", ids)))
        most: Any = self.max_num_results
        if most is not None and (type(most) is not int or not 1 <= most <= _MOST_RESULTS):
            raise UserValueError(
                f"FileSearchTool(max_num_results=...) takes 1 to {_MOST_RESULTS}, not {most!r:.60}."
            )
        _keep_mappings(self, "ranking_options", "filters")

    @property
    def name(self) -> str:
        """`file_search`."""
        return "file_search"

    @property
    def include(self) -> tuple[str, ...]:
        """The results of the search, where they are wanted."""
        return ("file_search_call.results",) if self.include_search_results else ()

    def to_responses(self) -> dict[str, Any]:
        """Give it as the Responses API takes it."""
        return _given(
            type=self.name,
            vector_store_ids=self.vector_store_ids,
            max_num_results=self.max_num_results,
            ranking_options=self.ranking_options,
            filters=self.filters,
        )


@dataclass(frozen=True, eq=False, repr=False)
class CodeInterpreterTool(HostedTool):
    """Lets the model run Python in a sandbox of the provider's.

    Attributes:
        tool_config: As the Responses API takes it, for example
            `{"type": "code_interpreter", "container": {"type": "auto"}}`.

    Raises:
        UserError: It is no such configuration.
    """

    tool_config: Mapping[str, Any] = field(default_factory=lambda: {"container": {"type": "auto"}})

    def __post_init__(self) -> None:
        _keep_config(self, "code_interpreter", needs="container")

    @property
    def name(self) -> str:
        """`code_interpreter`."""
        return "code_interpreter"

    def to_responses(self) -> dict[str, Any]:
        """Give it as the Responses API takes it."""
        return _given(**{"type": "code_interpreter", **self.tool_config})


@dataclass(frozen=True, eq=False, repr=False)
class ImageGenerationTool(HostedTool):
    """Lets the model make images.

    Attributes:
        tool_config: As the Responses API takes it; `{"type": "image_generation"}` by default.

    Raises:
        UserError: It is no such configuration.
    """

    tool_config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        _keep_config(self, "image_generation")

    @property
    def name(self) -> str:
        """`image_generation`."""
        return "image_generation"

    def to_responses(self) -> dict[str, Any]:
        """Give it as the Responses API takes it."""
        return _given(**{"type": "image_generation", **self.tool_config})


# --- a remote MCP server that the provider calls --------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MCPApprovalRequest:
    """The provider asks whether a tool of a remote server may run.

    Attributes:
        server_label: The server.
        name: Its tool.
        arguments: The arguments, as JSON text.
        call_id: The id of the request.
    """

    server_label: str
    name: str
    arguments: str
    call_id: str


ApprovalCallback: TypeAlias = Callable[[MCPApprovalRequest], Any]
"""Gives a boolean, or `{"approve": …, "reason": "…"}`; sync or async."""


@dataclass(frozen=True, eq=False, repr=False)
class HostedMCPTool(HostedTool):
    """Gives the model the tools of a remote MCP server, called by the provider.

    Where the configuration requires approval, a request goes to `on_approval_request`, or else
    waits among the `interruptions` of the run like any call that needs approval.

    Attributes:
        tool_config: As the Responses API takes it: `server_label`, and one of `server_url`,
            `connector_id` and `tunnel_id`.
        on_approval_request: Decides about one call.

    Raises:
        UserError: It is no such configuration.
    """

    tool_config: Mapping[str, Any]
    on_approval_request: ApprovalCallback | None = None

    def __post_init__(self) -> None:
        _keep_config(self, "mcp", needs="server_label")
        if not isinstance(self.tool_config["server_label"], str):
            raise UserTypeError("HostedMCPTool(tool_config=...): 'server_label' is text.")
        if not any(self.tool_config.get(key) for key in _SERVERS):
            raise UserValueError(
                "HostedMCPTool(tool_config=...) names no server: give one of "
                f"{', '.join(_SERVERS)}."
            )
        _check_callback(self, "on_approval_request", "an MCPApprovalRequest")

    @property
    def name(self) -> str:
        """The label of the server."""
        return cast("str", self.tool_config["server_label"])

    def to_responses(self) -> dict[str, Any]:
        """Give it as the Responses API takes it."""
        return _given(**{"type": "mcp", **self.tool_config})

    @cached_property
    def _local(self) -> FunctionTool[..., Any]:
        tool = _tool("hosted_mcp_approval", "Approves calls of a remote server.", self._approve)
        return tool if self.on_approval_request is not None else policies.needs_approval()(tool)

    @property
    def local(self) -> FunctionTool[..., Any]:
        """What answers requests for approval."""
        return self._local

    async def _approve(self, context: ToolContext[Any], args_json: str) -> str:
        if self.on_approval_request is None:
            return "approve"  # it is only called when a person has approved
        asked = _read(args_json)
        decided = self.on_approval_request(
            MCPApprovalRequest(
                server_label=self.name,
                name=str(asked.get("name", "")),
                arguments=str(asked.get("arguments") or "{}"),
                call_id=context.tool_call_id,
            )
        )
        if hasattr(decided, "__await__"):
            decided = await decided
        reason: Any = None
        if isinstance(decided, Mapping):
            answer = cast("Mapping[str, Any]", decided)
            decided, reason = answer.get("approve"), answer.get("reason")
        if decided is True:
            return "approve"
        raise ToolDeniedError(str(reason or "The application refused this call."))


# --- a shell --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRequest:
    """A command that the model wants to run on this machine.

    Attributes:
        command: The program and its arguments.
        env: Variables to set for it.
        working_directory: Where to run it.
        timeout_ms: How long it may take, in milliseconds.
        user: As whom to run it.
        call_id: The id of the call.
        context: The context of the call, to report progress and to see a cancellation.
    """

    command: list[str]
    env: dict[str, str]
    working_directory: str | None
    timeout_ms: int | None
    user: str | None
    call_id: str
    context: ToolContext[Any]


@dataclass(frozen=True, eq=False)
class LocalShellTool(HostedTool):
    """Lets the model run commands on this machine, by a function of the application's.

    Nothing is run but by that function: what is allowed is for it to decide.

    Attributes:
        executor: Runs a `ShellRequest` and gives what the model reads; sync or async.

    Raises:
        UserError: The executor is no function.
    """

    executor: Callable[[ShellRequest], Any]

    def __post_init__(self) -> None:
        _check_callback(self, "executor", "a ShellRequest", needed=True)

    @property
    def name(self) -> str:
        """`local_shell`."""
        return "local_shell"

    def to_responses(self) -> dict[str, Any]:
        """Give it as the Responses API takes it."""
        return {"type": "local_shell"}

    @cached_property
    def _local(self) -> FunctionTool[..., Any]:
        return _tool(self.name, "Runs commands.", self._run)

    @property
    def local(self) -> FunctionTool[..., Any]:
        """What runs the commands."""
        return self._local

    async def _run(self, context: ToolContext[Any], args_json: str) -> Any:
        action = _read(args_json)
        command: Any = action.get("command")
        if isinstance(command, str):
            command = [command]
        if not isinstance(command, list) or not command:
            raise ModelBehaviorError("command: expected a list of texts, the program first")
        variables = _checked(action.get("env") or {}, dict, "env", "an object")
        request = ShellRequest(
            command=[str(part) for part in cast("list[Any]", command)],
            env={name: str(value) for name, value in variables.items()},
            working_directory=_optional(action, "working_directory", str, "a text"),
            timeout_ms=_optional(action, "timeout_ms", int, "a whole number"),
            user=_optional(action, "user", str, "a text"),
            call_id=context.tool_call_id,
            context=context,
        )
        context.validated = True
        return await _done(self.executor, request)


# --- a computer -----------------------------------------------------------------------------------


class Computer(Protocol):
    """A screen, a mouse and a keyboard. Every method may be sync or async.

    Besides these: `click(x, y, button)`, `double_click(x, y)`, `scroll(x, y, scroll_x, scroll_y)`,
    `type(text)`, `wait()`, `move(x, y)`, `keypress(keys)` and `drag(path)` with a path of (x, y)
    pairs. A model is told of an action whose method is missing. Where the model holds keys during
    an action, the method gets them as the keyword argument `keys`.
    """

    @property
    def environment(self) -> Literal["mac", "windows", "ubuntu", "linux", "browser"]:
        """What kind of computer it is."""
        ...

    @property
    def dimensions(self) -> tuple[int, int]:
        """Width and height of the screen, in pixels."""
        ...

    def screenshot(self) -> Any:
        """Give what the screen shows: the bytes of an image, or base64 text of them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyCheck:
    """Something about an action that the provider wants a person to look at.

    Attributes:
        id: Its id.
        code: What kind of check it is.
        message: What is to be looked at.
    """

    id: str
    code: str | None = None
    message: str | None = None


@dataclass(frozen=True, eq=False)
class ComputerTool(HostedTool):
    """Lets the model drive a computer: it says what to do and sees the screen after it.

    Attributes:
        computer: What is driven.
        on_safety_check: Decides about the checks that the provider raised on an action: gets the
            list of them and gives whether to go on; sync or async. Without it such an action is
            not done.
        preview: Whether to ask for the tool of older models, `computer_use_preview`.

    Raises:
        UserError: The computer lacks something that it must have.
    """

    computer: Any
    on_safety_check: Callable[[list[SafetyCheck]], Any] | None = None
    preview: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.computer, type):
            raise UserTypeError(
                "ComputerTool(computer=...) takes a computer, not the class "
                f"{self.computer.__name__}: call it."
            )
        _check_callback(self, "on_safety_check", "a list of SafetyCheck")
        for name in ("environment", "dimensions", "screenshot"):
            if not hasattr(self.computer, name):
                raise UserTypeError(
                    f"ComputerTool(computer=...) takes an object with environment, dimensions and "
                    f"screenshot(); this {type(self.computer).__name__} has no {name}."
                )

    @property
    def name(self) -> str:
        """`computer_use_preview`, or `computer`."""
        return "computer_use_preview" if self.preview else "computer"

    def to_responses(self) -> dict[str, Any]:
        """Give it as the Responses API takes it.

        Raises:
            UserError: The computer says something of itself that cannot be.
        """
        if not self.preview:
            return {"type": self.name}  # its size is seen in the screenshots
        width, height = self._dimensions()
        environment = self.computer.environment
        if environment not in _ENVIRONMENTS:
            raise UserValueError(
                f"The environment of a computer is one of {', '.join(_ENVIRONMENTS)}; that of "
                f"{type(self.computer).__name__} is {environment!r:.60}."
            )
        return {
            "type": self.name,
            "environment": environment,
            "display_width": width,
            "display_height": height,
        }

    def _dimensions(self) -> tuple[int, int]:
        given = self.computer.dimensions
        match given:
            case (int(width), int(height)) if width > 0 and height > 0:
                return width, height
            case _:
                raise UserValueError(
                    "The dimensions of a computer are its width and height in pixels; those of "
                    f"{type(self.computer).__name__} are {given!r:.60}."
                )

    @cached_property
    def _local(self) -> FunctionTool[..., Any]:
        # One screen: what the model wants of it at once is done one after the other.
        return policies.exclusive()(_tool(self.name, "Drives a computer.", self._drive))

    @property
    def local(self) -> FunctionTool[..., Any]:
        """What drives the computer."""
        return self._local

    async def _drive(self, context: ToolContext[Any], args_json: str) -> ToolOutputImage:
        asked = _read(args_json)
        checks = [
            SafetyCheck(id=str(one.get("id")), code=one.get("code"), message=one.get("message"))
            for one in _objects(asked.pop("pending_safety_checks", None), "pending_safety_checks")
        ]
        actions = _objects(asked.get("actions"), "actions") if "actions" in asked else [asked]
        steps = [step for action in actions if (step := self._step(action)) is not None]
        if checks:
            await self._look_at(checks)
        context.validated = True
        for step in steps:
            await _done(step)
        return _image(await _done(self.computer.screenshot))

    async def _look_at(self, checks: list[SafetyCheck]) -> None:
        if self.on_safety_check is not None and await _done(self.on_safety_check, checks):
            return
        told = "; ".join(check.message or check.code or check.id for check in checks)
        raise ToolDeniedError(f"The action was not done, it did not pass a safety check: {told}")

    def _step(self, action: dict[str, Any]) -> Callable[[], Any] | None:
        """Give what does an action; `None` if the screenshot at the end is all of it."""
        kind = action.get("type")
        if kind == "screenshot":
            return None
        names = _ACTIONS.get(kind) if isinstance(kind, str) else None
        method = None if names is None else getattr(self.computer, str(kind), None)
        if names is None or method is None:
            raise ToolError(f"This computer cannot {kind!r:.40}.")
        given = [_argument(action, name) for name in names]
        held = None if "keys" in names else action.get("keys")
        if not held:
            return partial(method, *given)
        if not _takes(method, "keys"):
            raise ToolError(f"This computer cannot hold keys during {kind!r}.")
        return partial(method, *given, keys=held)


_MOST_RESULTS = 50
_SERVERS = ("server_url", "connector_id", "tunnel_id")
_ACTIONS: dict[str, tuple[str, ...]] = {
    "click": ("x", "y", "button"),
    "double_click": ("x", "y"),
    "scroll": ("x", "y", "scroll_x", "scroll_y"),
    "type": ("text",),
    "wait": (),
    "move": ("x", "y"),
    "keypress": ("keys",),
    "drag": ("path",),
}
"""The actions of a computer and their arguments, in order."""
_ENVIRONMENTS = ("mac", "windows", "ubuntu", "linux", "browser")


def _tool(name: str, description: str, body: Any) -> FunctionTool[..., Any]:
    return FunctionTool.declared(
        HandMade(
            name=name,
            description=description,
            json_schema={"type": "object", "properties": {}},
            output_json_schema=None,
            body=body,
            origin=ToolOrigin(kind="hosted"),
        ),
        strict_json_schema=False,
    )


async def _done(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of the application's, in a thread if it is a plain one."""
    from inspect import iscoroutinefunction

    from agents_tools._threads import run_in_thread

    plain = not iscoroutinefunction(function)  # which sees through `partial`
    value = await run_in_thread(function, *args) if plain else function(*args)
    return await value if hasattr(value, "__await__") else value


def _image(taken: Any) -> ToolOutputImage:
    if isinstance(taken, ToolOutputImage):
        return taken
    if isinstance(taken, str):
        import base64

        taken = base64.b64decode(taken.rpartition(",")[2])
    return ToolOutputImage(data=taken, mime_type=None)


def _argument(action: dict[str, Any], name: str) -> Any:
    value = action.get(name)
    match name:
        case "text":
            return _checked(value, str, name, "a text")
        case "keys":
            return _checked(value, list, name, "a list of keys")
        case "path":
            return [_point(one) for one in _checked(value, list, name, "a list of points")]
        case "button":
            return "left" if value is None else _checked(value, str, name, "a text")
        case _:
            return _checked(value, int, name, "a whole number")


def _point(one: Any) -> tuple[int, int]:
    match one:
        case {"x": int(x), "y": int(y)}:
            return x, y
        case [int(x), int(y)]:
            return x, y
        case _:
            raise ModelBehaviorError("path: expected points, each with x and y")


def _takes(method: Callable[..., Any], name: str) -> bool:
    from inspect import Parameter, signature

    found = signature(method).parameters
    return name in found or any(one.kind is Parameter.VAR_KEYWORD for one in found.values())


def _read(args_json: str) -> dict[str, Any]:
    try:
        value: object = json.loads(args_json)
    except ValueError as error:
        raise ModelBehaviorError(f"The action is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ModelBehaviorError("The action is no JSON object.")
    return cast("dict[str, Any]", value)


def _checked(value: Any, kind: type, name: str, expected: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ModelBehaviorError(f"{name}: expected {expected}, got {value!r:.60}")
    return value


def _optional(action: dict[str, Any], name: str, kind: type, expected: str) -> Any:
    value = action.get(name)
    return None if value is None else _checked(value, kind, name, expected)


def _objects(value: Any, name: str) -> list[dict[str, Any]]:
    objects = _checked(value or [], list, name, "a list of objects")
    return [_checked(one, dict, name, "a list of objects") for one in objects]


def _given(**values: Any) -> dict[str, Any]:
    """Give what is said, as JSON of its own: whoever gets it may change it."""
    return {
        name: copy_json(list(cast("Any", value)) if isinstance(value, tuple) else value)
        for name, value in values.items()
        if value is not None
    }


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _keep_mappings(tool: HostedTool, *names: str) -> None:
    """Check options that are mappings, and keep copies that nobody else changes."""
    for name in names:
        value = getattr(tool, name)
        if value is not None:
            object.__setattr__(tool, name, _mapping(tool, name, value))


def _mapping(tool: HostedTool, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UserTypeError(
            f"{type(tool).__name__}({name}=...) takes a mapping as the Responses API has it, "
            f"not a {type(value).__name__}."
        )
    return cast("dict[str, Any]", copy_json(value))


def _keep_config(tool: Any, kind: str, needs: str | None = None) -> None:
    config = _mapping(tool, "tool_config", tool.tool_config)
    what = f"{type(tool).__name__}(tool_config=...)"
    if config.get("type", kind) != kind:
        raise UserValueError(f"{what} is of type {kind!r}, not {config['type']!r:.60}.")
    if needs is not None and not config.get(needs):
        raise UserValueError(f"{what} needs {needs!r}.")
    object.__setattr__(tool, "tool_config", config)


def _check_callback(tool: HostedTool, name: str, argument: str, *, needed: bool = False) -> None:
    value = getattr(tool, name)
    if not callable(value) and (needed or value is not None):
        raise UserTypeError(
            f"{type(tool).__name__}({name}=...) takes a function of {argument}, not a "
            f"{type(value).__name__}."
        )
