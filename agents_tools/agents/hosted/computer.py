"""A computer on this machine: the provider decides on actions, this machine performs them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agents_tools import policies
from agents_tools.agents.hosted.base import HostedTool, check_callback, create_local_tool
from agents_tools.agents.hosted.call_arguments import (
    check_type,
    read_object,
    read_objects,
    run_callback,
)
from agents_tools.content.outputs import ToolOutputImage
from agents_tools.errors import (
    ModelBehaviorError,
    ToolDeniedError,
    ToolError,
    UserTypeError,
    UserValueError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["Computer", "ComputerTool", "SafetyCheck"]


class Computer(Protocol):
    """A screen, a mouse and a keyboard. Every method can be sync or async.

    Optional methods: `click(x, y, button)`, `double_click(x, y)`,
    `scroll(x, y, scroll_x, scroll_y)`, `type(text)`, `wait()`, `move(x, y)`, `keypress(keys)` and
    `drag(path)` with a path of (x, y) pairs. If a method is missing, the call fails and the model
    receives an error that names the action. If the model holds keys during an action, the method
    gets them as the keyword argument `keys`.
    """

    @property
    def environment(self) -> Literal["mac", "windows", "ubuntu", "linux", "browser"]:
        """The kind of computer."""
        ...

    @property
    def dimensions(self) -> tuple[int, int]:
        """The width and height of the screen, in pixels."""
        ...

    def screenshot(self) -> Any:
        """Return an image of the screen: its bytes, or base64 text of them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyCheck:
    """A property of an action that the provider wants a person to review.

    Attributes:
        id: The id of the check.
        code: The kind of check.
        message: What to review.
    """

    id: str
    code: str | None = None
    message: str | None = None


@dataclass(frozen=True, eq=False)
class ComputerTool(HostedTool):
    """Lets the model control a computer: it requests actions and gets a screenshot after them.

    Attributes:
        computer: The computer to control.
        on_safety_check: Decides about the safety checks of an action: receives the list of checks
            and returns whether to continue; sync or async. Without it, an action with safety
            checks is refused.
        preview: Whether to use `computer_use_preview`, the tool of older models.

    Raises:
        UserError: The computer lacks a required member.
    """

    computer: Any
    on_safety_check: Callable[[list[SafetyCheck]], Any] | None = None
    preview: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.computer, type):
            raise UserTypeError(
                "ComputerTool(computer=...) has the wrong form: expected an object, got the class "
                f"{self.computer.__name__}. Create an instance of the class."
            )
        check_callback(self, "on_safety_check", "a list of SafetyCheck")
        for name in ("environment", "dimensions", "screenshot"):
            if not hasattr(self.computer, name):
                raise UserTypeError(
                    "ComputerTool(computer=...) has the wrong form: expected an object with "
                    "environment, dimensions and screenshot(), "
                    f"but {type(self.computer).__name__} has no {name}."
                )

    @property
    def name(self) -> str:
        """`computer_use_preview`, or `computer`."""
        return "computer_use_preview" if self.preview else "computer"

    def to_responses(self) -> dict[str, Any]:
        """Return the definition of the tool for the Responses API.

        Raises:
            UserError: The environment or the dimensions of the computer are not valid.
        """
        if not self.preview:
            return {"type": self.name}  # the provider reads the size from the screenshots
        width, height = self._dimensions()
        environment = self.computer.environment
        if environment not in _ENVIRONMENTS:
            raise UserValueError(
                f"The environment of {type(self.computer).__name__} is unknown: expected one of "
                f"{', '.join(_ENVIRONMENTS)}, got {environment!r:.60}."
            )
        return {
            "type": self.name,
            "environment": environment,
            "display_width": width,
            "display_height": height,
        }

    def _dimensions(self) -> tuple[int, int]:
        dimensions = self.computer.dimensions
        match dimensions:
            case (int(width), int(height)) if width > 0 and height > 0:
                return width, height
            case _:
                raise UserValueError(
                    f"The dimensions of {type(self.computer).__name__} are not valid: expected "
                    f"width and height in pixels, got {dimensions!r:.60}."
                )

    @cached_property
    def _local(self) -> FunctionTool[..., Any]:
        # There is one screen, so parallel calls have to run one after the other.
        tool = create_local_tool(self.name, "Controls a computer.", self._perform)
        return policies.exclusive()(tool)

    @property
    def local(self) -> FunctionTool[..., Any]:
        """The function tool that performs the actions."""
        return self._local

    async def _perform(self, _: ToolContext[Any], args_json: str) -> ToolOutputImage:
        arguments = read_object(args_json)
        checks = [
            SafetyCheck(
                id=str(check.get("id")), code=check.get("code"), message=check.get("message")
            )
            for check in read_objects(
                arguments.pop("pending_safety_checks", None), "pending_safety_checks"
            )
        ]
        # All actions are validated before the first one runs, so that a batch never stops halfway.
        actions = [arguments]
        if "actions" in arguments:
            actions = read_objects(arguments.get("actions"), "actions")
        steps = [step for action in actions if (step := self._step(action)) is not None]
        if checks:
            await self._confirm(checks)
        for step in steps:
            await run_callback(step)
        return _screenshot(await run_callback(self.computer.screenshot))

    async def _confirm(self, checks: list[SafetyCheck]) -> None:
        if self.on_safety_check is not None and await run_callback(self.on_safety_check, checks):
            return
        reasons = "; ".join(check.message or check.code or check.id for check in checks)
        raise ToolDeniedError(
            f"The action was not performed because it did not pass a safety check: {reasons}"
        )

    def _step(self, action: dict[str, Any]) -> Callable[[], Any] | None:
        """Return a function that performs an action, or `None` for a mere screenshot.

        Every call ends with a screenshot, so such an action needs no function.
        """
        kind = action.get("type")
        if kind == "screenshot":
            return None
        names = _ACTIONS.get(kind) if isinstance(kind, str) else None
        method = None if names is None else getattr(self.computer, str(kind), None)
        if names is None or method is None:
            raise ToolError(f"This computer does not support the action {kind!r:.40}.")
        arguments = [_argument(action, name) for name in names]
        keys = None if "keys" in names else action.get("keys")
        if not keys:
            return partial(method, *arguments)
        if not _accepts(method, "keys"):
            raise ToolError(f"This computer cannot hold keys during {kind!r}.")
        return partial(method, *arguments, keys=keys)


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
"""The actions and the order of their arguments."""
_ENVIRONMENTS = ("mac", "windows", "ubuntu", "linux", "browser")


def _screenshot(value: Any) -> ToolOutputImage:
    if isinstance(value, ToolOutputImage):
        return value
    if isinstance(value, str):
        import base64

        value = base64.b64decode(value.rpartition(",")[2])
    return ToolOutputImage(data=value, mime_type=None)


def _argument(action: dict[str, Any], name: str) -> Any:
    value = action.get(name)
    match name:
        case "text":
            return check_type(value, str, name, "a string")
        case "keys":
            return check_type(value, list, name, "a list of keys")
        case "path":
            points = check_type(value, list, name, "a list of points")
            return [_point(point) for point in points]
        case "button":
            return "left" if value is None else check_type(value, str, name, "a string")
        case _:
            return check_type(value, int, name, "an integer")


def _point(point: Any) -> tuple[int, int]:
    match point:
        case {"x": int(x), "y": int(y)}:
            return x, y
        case [int(x), int(y)]:
            return x, y
        case _:
            raise ModelBehaviorError(f"path: expected points, each with x and y, got {point!r:.60}")


def _accepts(method: Callable[..., Any], name: str) -> bool:
    from inspect import Parameter, signature

    parameters = signature(method).parameters
    return name in parameters or any(
        parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()
    )
