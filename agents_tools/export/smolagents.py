"""Tools in agents of smolagents, its tools as ours, and its agents as tools."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import io
import json
import threading
from contextvars import Context, copy_context
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, cast, overload

from agents_tools.export._missing import missing

try:
    from PIL import Image  # type: ignore[import-not-found, unused-ignore]
    from smolagents import Tool as ForeignTool
    from smolagents.agent_types import AgentAudio, AgentImage, AgentText, AgentType
    from smolagents.agents import ToolOutput
    from smolagents.memory import ActionStep, FinalAnswerStep, PlanningStep, ToolCall
    from smolagents.models import ChatMessageStreamDelta
except ImportError as error:
    raise missing("agents_tools.export.smolagents", "smolagents", error) from error

from agents_tools._bridge import run_sync
from agents_tools._supervisor import finish
from agents_tools._threads import run_in_thread
from agents_tools.context import current_context
from agents_tools.errors import ToolCancelledError, ToolError, UserTypeError, UserValueError
from agents_tools.export._flat import flat_inputs
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    arguments_of,
    foreign_tool,
)
from agents_tools.export._incoming import imported, incoming
from agents_tools.export._outgoing import Tools, called, described, exported, has_failed, text_of
from agents_tools.export._turns import turns_of
from agents_tools.export._until import LOOK
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputImage,
)
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from agents_tools._records import CallOutcome
    from agents_tools.base_tool import BaseTool
    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["as_tool", "from_smolagents", "to_smolagents"]


@overload
def to_smolagents(
    tools: FunctionTool[..., Any] | BaseTool, *, context: Any = ...
) -> ForeignTool: ...
@overload
def to_smolagents(tools: Tools, *, context: Any = ...) -> list[ForeignTool]: ...
def to_smolagents(tools: Any, *, context: Any = None) -> Any:
    """Make tools of smolagents, for a `ToolCallingAgent` and for a `CodeAgent`.

    Each argument keeps its schema, references replaced by what they refer to; the tool validates
    what arrives. A `ToolCallingAgent` gets the text of the result, of a failure too, since an
    exception there would take the answers of all other calls with it. Code of a `CodeAgent` gets
    the value as plain data, and an exception when the call fails. smolagents is synchronous: the
    tool runs on the background loop meanwhile, and `cancel()` of what this gives ends it there.
    A `CodeAgent` with a time limit, as it has by default, runs its code in a thread that only
    `listen(all=True)` hears.

    Args:
        tools: A tool, or several of them.
        context: The application's object, which tools see as `ctx.context`.

    Returns:
        One tool for one, a list for several.

    Raises:
        UserError: It is no tool, two have one name, or a name is none that Python takes.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return _Ours(tool, context)

    return exported(tools, make, "to_smolagents")


@overload
def from_smolagents(
    tool: list[ForeignTool], *, failure_error_function: Any = ...
) -> list[FunctionTool[..., Any]]: ...
@overload
def from_smolagents(
    tool: ForeignTool, *, failure_error_function: Any = ...
) -> FunctionTool[..., Any]: ...
def from_smolagents(tool: Any, *, failure_error_function: Any = DEFAULT) -> Any:
    """Make tools of ours of tools of smolagents. They run in a thread.

    Args:
        tool: A tool of smolagents, or a list of them.
        failure_error_function: What the model is told when a call fails; `None` raises.

    Raises:
        UserError: It is no such tool, or it takes an image or a sound, which no model can write.
    """

    def make(one: Any) -> FunctionTool[..., Any]:
        return _incoming(one, failure_error_function)

    return imported(tool, ForeignTool, make, "from_smolagents")


def as_tool(
    agent: Any,
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
    streaming: bool = False,
    enable_bracketing: bool = True,
    custom_output_extractor: Callable[[Any], Any] | None = None,
    is_enabled: Any = True,
    max_turns: int | None = None,
    parameters: Any = None,
    on_stream: Callable[[Event], Any] | None = None,
    failure_error_function: Any = DEFAULT,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of smolagents. Its calls run one after the other, in a thread.

    A call that is cancelled interrupts the agent, which ends after its current step; calls of our
    tools are cancelled at once.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it; the agent's own description by default.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's last step; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How many steps it takes at most; that of the agent if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """

    async def run(task: str, _context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        inside = _Run(agent, usage, max_turns)
        async with contextlib.aclosing(inside.said(task)) as items:
            async for said in items:
                yield said

    return foreign_tool(
        agent.name or "agent",
        run,
        tool_name=tool_name,
        tool_description=tool_description or agent.description,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )


# --- our tools there

_OUTPUT_TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}


class _Ours(ForeignTool):
    """A tool of smolagents that calls one of ours."""

    skip_forward_signature_validation = True

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        if not tool.name.isidentifier() or iskeyword(tool.name):
            plain = f"call_{tool.name}".replace("-", "_")
            raise UserValueError(
                f"smolagents takes tools whose names code can use; {tool.name!r} is none. Give it "
                f"another, for example with policies.rename({plain!r})."
            )
        self._tool = tool
        self._context = context
        self._flat = flat_inputs(tool.params_json_schema)
        self._calls: set[asyncio.Task[Any]] = set()
        self._lock = threading.Lock()
        self._around: Context | None = None
        self._over: threading.Event | None = None
        self.name = tool.name
        self.description = tool.description
        self.inputs = self._flat.inputs
        self.output_type, self.output_schema = _output_of(tool)
        super().__init__()

    def __call__(
        self, /, *args: Any, sanitize_inputs_outputs: bool = False, **arguments: Any
    ) -> Any:
        """Call the tool: for a `ToolCallingAgent`, which asks for sanitized values, or in code."""
        if not sanitize_inputs_outputs:
            return self.forward(*args, **arguments)
        blocks = self._outcome(self._flat.named(args, arguments)).output
        if not isinstance(blocks, str) and len(blocks) == 1:
            value = _foreign_block(blocks[0])
            return AgentImage(value) if isinstance(value, Image.Image) else AgentText(value)
        return AgentText(text_of(blocks))

    def forward(self, /, *args: Any, **arguments: Any) -> Any:
        """Call the tool in code: give plain data, or raise."""
        outcome = self._outcome(self._flat.named(args, arguments))
        if has_failed(outcome):
            raise ToolError(text_of(outcome.output)) from outcome.error
        return _foreign_value(outcome)

    def cancel(self) -> None:
        """End the calls that are going on, from any thread: `agent.interrupt()` waits for them."""
        with self._lock:
            running = list(self._calls)
        for task in running:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def bound(self, over: threading.Event) -> _Ours:
        """Give the tool for one run: what it is called for belongs to the call around that.

        Code runs in threads of smolagents' own, which know nothing of that call.

        Args:
            over: Set when nobody waits for the run any more; then no more calls begin.
        """
        made = copy.copy(self)
        made.__dict__.update(_around=copy_context(), _over=over, _calls=set())
        return made

    def _outcome(self, arguments: dict[str, Any]) -> CallOutcome:
        if self._around is None or current_context() is not None:
            return run_sync(self._call, arguments)
        return self._around.copy().run(run_sync, self._call, arguments)

    async def _call(self, arguments: dict[str, Any]) -> CallOutcome:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        with self._lock:
            self._calls.add(task)
        try:
            if self._over is not None and self._over.is_set():  # looked at once it can be cancelled
                raise ToolCancelledError(f"Tool {self.name!r} was not called: the run is over.")
            return await called(self._tool, arguments, context=self._context)
        finally:
            with self._lock:
                self._calls.discard(task)

    def to_code_prompt(self) -> str:
        """Describe the tool to a `CodeAgent`, with what types alone do not say."""
        shown = copy.copy(self)
        shown.inputs = self._flat.told()
        return str(ForeignTool.to_code_prompt(shown))

    def to_dict(self) -> dict[str, Any]:
        """Refuse: the tool cannot be written as source code, only used where it is."""
        raise UserTypeError(
            f"Tool {self.name!r} runs in this process: it cannot be saved, pushed to the Hub or "
            "sent to a remote executor. Use the local executor, or serve it over MCP."
        )


def _output_of(tool: FunctionTool[..., Any]) -> tuple[str, dict[str, Any] | None]:
    schema = tool.output_json_schema or {}
    kind = schema.get("type")
    if kind not in _OUTPUT_TYPES:
        return "any", None
    return kind, schema if kind == "object" and "properties" in schema else None


def _foreign_value(outcome: CallOutcome) -> Any:
    """Give a result to code: text where the tool gave text, otherwise the data that was written."""
    output = outcome.output
    if not isinstance(output, str):
        values = [_foreign_block(block) for block in output]
        return values[0] if len(values) == 1 else values
    if outcome.value is None or isinstance(outcome.value, str):
        return outcome.value if outcome.value is None else output
    try:
        return json.loads(output)
    except ValueError:  # it was shortened
        return output


def _foreign_block(block: ContentBlock) -> Any:
    if isinstance(block, ToolOutputImage) and block.data is not None:
        try:
            image = Image.open(io.BytesIO(block.data))
            image.load()
        except (OSError, ValueError):
            return described(block)
        return image
    return described(block)


# --- their tools here


def _incoming(tool: Any, failure_error_function: Any) -> FunctionTool[..., Any]:
    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context  # they take no more than their arguments
        return _own_output(await run_in_thread(tool, **arguments))

    return incoming(
        framework="smolagents",
        name=tool.name,
        description=tool.description,
        schema=_schema(tool),
        call=call,
        output_json_schema=getattr(tool, "output_schema", None),
        failure_error_function=failure_error_function,
    )


def _schema(tool: Any) -> dict[str, Any]:
    inputs = cast("dict[str, dict[str, Any]]", tool.inputs)
    return {
        "type": "object",
        "properties": {name: _property(tool.name, name, given) for name, given in inputs.items()},
        "required": [name for name, given in inputs.items() if not given.get("nullable")],
        "additionalProperties": False,
    }


def _property(tool: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in given.items() if key not in {"type", "nullable"}}
    kinds = [given["type"]] if isinstance(given["type"], str) else list(given["type"])
    for kind in kinds:
        if kind in {"image", "audio"}:
            raise UserTypeError(
                f"The smolagents tool {tool!r} takes a value of type {kind} as {name!r}, which no "
                "model can write. Wrap it in a tool that takes a path or an address."
            )
    if "any" in kinds:
        return found
    if given.get("nullable") and "null" not in kinds:
        kinds.append("null")
        if isinstance(found.get("enum"), list) and None not in found["enum"]:
            found["enum"] = [*found["enum"], None]
    return {"type": kinds[0] if len(kinds) == 1 else kinds, **found}


def _own_output(value: Any) -> Any:
    """Give what they answered as we answer it."""
    if isinstance(value, AgentAudio):
        with open(str(value.to_string()), "rb") as file:  # noqa: PTH123 - it gives a name
            return ToolOutputAudio(data=file.read(), mime_type="audio/wav")
    if isinstance(value, AgentType):
        value = value.to_raw()
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", list(value))
        return [_own_output(item) for item in items]
    if not isinstance(value, Image.Image):
        return value
    data = io.BytesIO()
    value.save(data, format="png")
    return ToolOutputImage(data=data.getvalue(), mime_type="image/png")


# --- their agents here


class _Run:
    """One run of an agent in a thread."""

    def __init__(self, agent: Any, usage: Usage, max_turns: int | None) -> None:
        self._agent = agent
        self._usage = usage
        self._max_turns = max_turns
        self._loop = asyncio.get_running_loop()
        self._steps: asyncio.Queue[Any] = asyncio.Queue()
        self._over = threading.Event()
        self._runs = False
        self._tools: list[_Ours] = []
        self._calls: set[str] = set()

    async def said(self, task: str) -> AsyncGenerator[Said]:
        """Run the agent and give what it says, an `Answer` last."""
        running = asyncio.create_task(run_in_thread(self._work, task))
        running.add_done_callback(lambda _: self._steps.put_nowait(None))
        try:
            while (step := await self._steps.get()) is not None:
                for said in self._said(step):
                    yield said
            await running
        finally:
            self._over.set()
            if not running.done():
                self._stop()
                running.cancel()
            if await finish(running, name=str(self._agent.name)) and not running.cancelled():
                running.exception()  # it has been raised where somebody was there to see it

    def _stop(self) -> None:
        """End what can be ended of a run that is going on."""
        if self._runs:
            self._agent.interrupt()
        for tool in self._tools:
            tool.cancel()

    def _work(self, task: str) -> None:
        """Go through the steps, in a thread: only one run of an agent can go on at a time."""
        turns = turns_of(self._agent)
        while not turns.take(str(self._agent.name), wait=LOOK):
            if self._over.is_set():
                return
        with turns.used(), _bound(self._agent, self._over) as self._tools:
            if self._over.is_set():
                return
            self._runs = True
            try:
                self._follow(task)
            finally:
                self._runs = False

    def _follow(self, task: str) -> None:
        limits = {} if self._max_turns is None else {"max_steps": self._max_turns}
        with contextlib.closing(self._agent.run(task, stream=True, **limits)) as steps:
            for step in steps:
                if self._over.is_set():
                    return
                self._loop.call_soon_threadsafe(self._steps.put_nowait, step)

    def _said(self, step: Any) -> list[Said]:
        match step:
            case ChatMessageStreamDelta():
                return [Told(step.content)] if step.content else []
            case PlanningStep():
                self._count(step, 1)
                return [Told(step.plan, whole=True, tag="plan")]
            case ToolCall():
                return self._begun(step)
            case ToolOutput():
                return self._ended([step.id], failed=False)
            case ActionStep():
                self._count(step, 1)
                return self._ended(list(self._calls), failed=step.error is not None)
            case FinalAnswerStep():
                return [Answer(_own_output(step.output), step)]
            case _:
                return []

    def _begun(self, call: Any) -> list[Said]:
        ours = isinstance(self._agent.tools.get(call.name), _Ours)
        if ours or call.name == "final_answer":
            return []
        self._calls.add(call.id)
        return [CallBegan(call.id, call.name, arguments_of(call.arguments))]

    def _ended(self, calls: list[str], *, failed: bool) -> list[Said]:
        known = [call for call in calls if call in self._calls]
        self._calls.difference_update(known)
        return [CallEnded(call, failed) for call in known]

    def _count(self, step: Any, requests: int) -> None:
        used = step.token_usage
        self._usage.add(
            Usage(
                requests=requests,
                input_tokens=0 if used is None else used.input_tokens,
                output_tokens=0 if used is None else used.output_tokens,
            )
        )


@contextlib.contextmanager
def _bound(agent: Any, over: threading.Event) -> Generator[list[_Ours]]:
    """Bind the tools of ours in an agent, and in those that it manages, to one run."""
    found = [
        (one.tools, name, tool)
        for one in _with_managed(agent)
        for name, tool in one.tools.items()
        if isinstance(tool, _Ours)
    ]
    bound = [tool.bound(over) for _, _, tool in found]
    try:
        for (tools, name, _), tool in zip(found, bound, strict=True):
            tools[name] = tool
        yield bound
    finally:
        for tools, name, tool in found:
            tools[name] = tool


def _with_managed(agent: Any) -> list[Any]:
    managed = getattr(agent, "managed_agents", None)
    below = managed.values() if isinstance(managed, dict) else ()
    return [agent, *(deeper for one in below for deeper in _with_managed(one))]
