"""Adapter for smolagents: function tools in its agents, its tools, and its agents as tools."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import io
import json
import threading
from contextvars import Context, copy_context
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from agents_tools._package import missing_extra
from agents_tools.concurrency.future import call_on_loop

try:
    from PIL import Image  # type: ignore[import-not-found, unused-ignore]
    from smolagents import Tool as ForeignTool
    from smolagents.agent_types import AgentAudio, AgentImage, AgentText, AgentType
    from smolagents.agents import ToolOutput
    from smolagents.memory import ActionStep, FinalAnswerStep, PlanningStep, ToolCall
    from smolagents.models import ChatMessageStreamDelta
except ImportError as error:
    raise missing_extra("agents_tools.export.smolagents", "smolagents", error) from error

from agents_tools.concurrency.bridge import run_sync
from agents_tools.concurrency.supervisor import finish
from agents_tools.concurrency.threads import run_in_thread
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputImage,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import ToolCancelledError, ToolError, UserTypeError, UserValueError
from agents_tools.export._agent_adapter import (
    AgentEvent,
    AgentToolOptions,
    CallEnded,
    CallStarted,
    FinalAnswer,
    TextDelta,
    make_agent_tool,
    parse_arguments,
)
from agents_tools.export._export_tool import (
    Tools,
    as_text,
    call_tool,
    describe_block,
    export_tools,
    has_failed,
)
from agents_tools.export._flatten_schema import flatten_inputs
from agents_tools.export._import_tool import import_tool, import_tools
from agents_tools.export._poll_cancellation import POLL_INTERVAL
from agents_tools.export._serialize_calls import serializer_for
from agents_tools.tool.context import current_context
from agents_tools.tool.failure import DEFAULT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from agents_tools.classes.base_tool import BaseTool
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.records import CallOutcome
    from agents_tools.tool.tool import FunctionTool

__all__ = ["as_tool", "from_smolagents", "to_smolagents"]


@overload
def to_smolagents(
    tools: FunctionTool[..., Any] | BaseTool, *, context: Any = ...
) -> ForeignTool: ...
@overload
def to_smolagents(tools: Tools, *, context: Any = ...) -> list[ForeignTool]: ...
def to_smolagents(tools: Any, *, context: Any = None) -> Any:
    """Convert tools for smolagents, for a `ToolCallingAgent` and for a `CodeAgent`.

    Each argument keeps its schema, with references replaced by their schemas; the tool validates
    the arguments. A `ToolCallingAgent` gets the text of the result, even of a failure, because an
    exception would discard the results of all other calls. Code of a `CodeAgent` gets the value as
    plain data, or an exception if the call fails. smolagents is synchronous: the tool runs on the
    background event loop, and the `cancel()` method of the returned object cancels its calls. A
    `CodeAgent` with a time limit, which is the default, runs its code in another thread; only
    `listen(all=True)` receives the events from there.

    Args:
        tools: One tool, or several.
        context: The application's object, which tools get as `ctx.context`.

    Returns:
        One tool for one tool, a list for several.

    Raises:
        UserError: A value is not a tool, two tools have the same name, or a name is not a valid
            Python identifier.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return _SmolTool(tool, context)

    return export_tools(tools, make, "to_smolagents")


@overload
def from_smolagents(
    tool: list[ForeignTool], *, failure_error_function: Any = ...
) -> list[FunctionTool[..., Any]]: ...
@overload
def from_smolagents(
    tool: ForeignTool, *, failure_error_function: Any = ...
) -> FunctionTool[..., Any]: ...
def from_smolagents(tool: Any, *, failure_error_function: Any = DEFAULT) -> Any:
    """Convert tools of smolagents to function tools. They run in a thread.

    Args:
        tool: A tool of smolagents, or a list of them.
        failure_error_function: Creates the error message for the model; `None` raises the error.

    Raises:
        UserError: The value is not a tool of smolagents, or it has an image or audio parameter,
            which a model cannot write.
    """

    def make(item: Any) -> FunctionTool[..., Any]:
        return _from_foreign_tool(item, failure_error_function)

    return import_tools(tool, ForeignTool, make, "from_smolagents")


def as_tool(
    agent: Any,
    *,
    max_turns: int | None = None,
    **options: Unpack[AgentToolOptions[Any]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent of smolagents. Its calls run one by one in a thread.

    Cancelling a call interrupts the agent, which ends after its current step. Its calls of function
    tools are cancelled immediately.

    Args:
        agent: The agent.
        max_turns: The maximum number of steps; that of the agent by default.
        **options: See `agents_tools.export.AgentToolOptions`. A `custom_output_extractor` receives
            the framework's last step.

    Raises:
        UserError: An option is unknown or invalid, or `parameters` has no JSON Schema.
    """

    async def run(
        task: str, _context: ToolContext[Any], usage: Usage
    ) -> AsyncGenerator[AgentEvent]:
        agent_run = _SmolRun(agent, usage, max_turns)
        async with contextlib.aclosing(agent_run.events(task)) as events:
            async for event in events:
                yield event

    return make_agent_tool(
        agent.name or "agent", run, as_tool, options, description=agent.description
    )


# --- function tools as tools of the framework

_OUTPUT_TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}


class _SmolTool(ForeignTool):
    """A tool of smolagents that calls a function tool."""

    skip_forward_signature_validation = True

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        if not tool.name.isidentifier() or iskeyword(tool.name):
            identifier = f"call_{tool.name}".replace("-", "_")
            raise UserValueError(
                f"to_smolagents() got a tool with an unsupported name: expected a Python "
                f"identifier, got {tool.name!r}. Rename the tool, for example with "
                f"policies.rename({identifier!r})."
            )
        self._tool = tool
        self._context = context
        self._flat = flatten_inputs(tool.params_json_schema)
        self._calls: set[asyncio.Task[Any]] = set()
        self._lock = threading.Lock()
        self._run_context: Context | None = None
        self._run_ended: threading.Event | None = None
        self.name = tool.name
        self.description = tool.description
        self.inputs = self._flat.inputs
        self.output_type, self.output_schema = _output_of(tool)
        super().__init__()

    def __call__(
        self, /, *args: Any, sanitize_inputs_outputs: bool = False, **arguments: Any
    ) -> Any:
        """Call the tool; a `ToolCallingAgent` sanitizes values, the code of a `CodeAgent` not."""
        if not sanitize_inputs_outputs:
            return self.forward(*args, **arguments)
        blocks = self._outcome(self._flat.bind_arguments(args, arguments)).output
        if not isinstance(blocks, str) and len(blocks) == 1:
            value = _to_foreign_block(blocks[0])
            return AgentImage(value) if isinstance(value, Image.Image) else AgentText(value)
        return AgentText(as_text(blocks))

    def forward(self, /, *args: Any, **arguments: Any) -> Any:
        """Call the tool from code and return plain data.

        Raises:
            ToolError: The call failed.
        """
        outcome = self._outcome(self._flat.bind_arguments(args, arguments))
        if has_failed(outcome):
            raise ToolError(as_text(outcome.output)) from outcome.error
        return _to_foreign_value(outcome)

    def cancel(self) -> None:
        """Cancel the running calls, from any thread; `agent.interrupt()` alone waits for them."""
        with self._lock:
            running = list(self._calls)
        for task in running:
            call_on_loop(task.get_loop(), task.cancel)

    def bind_to_run(self, run_ended: threading.Event) -> _SmolTool:
        """Return a copy of the tool whose calls belong to the current call.

        Code runs in threads of smolagents, which do not inherit the context of that call.

        Args:
            run_ended: Set when the run has been cancelled or has ended; then calls are rejected.
        """
        tool = copy.copy(self)
        tool.__dict__.update(_run_context=copy_context(), _run_ended=run_ended, _calls=set())
        return tool

    def _outcome(self, arguments: dict[str, Any]) -> CallOutcome:
        if self._run_context is None or current_context() is not None:
            return run_sync(self._call, arguments)
        return self._run_context.copy().run(run_sync, self._call, arguments)

    async def _call(self, arguments: dict[str, Any]) -> CallOutcome:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        with self._lock:
            self._calls.add(task)
        try:
            # Checked after the task was added, so that a concurrent cancel() is not missed.
            if self._run_ended is not None and self._run_ended.is_set():
                raise ToolCancelledError(f"Tool {self.name!r} was not called: the run has ended.")
            return await call_tool(self._tool, arguments, context=self._context)
        finally:
            with self._lock:
                self._calls.discard(task)

    def to_code_prompt(self) -> str:
        """Describe the tool for the prompt of a `CodeAgent`, including the JSON Schemas."""
        tool = copy.copy(self)
        tool.inputs = self._flat.with_full_descriptions()
        return str(ForeignTool.to_code_prompt(tool))

    def to_dict(self) -> dict[str, Any]:
        """Raise an error: the tool cannot be exported as source code.

        Raises:
            UserTypeError: Always.
        """
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


def _to_foreign_value(outcome: CallOutcome) -> Any:
    """Return the result of a call for code: text for a tool that returned text, otherwise data."""
    output = outcome.output
    if not isinstance(output, str):
        values = [_to_foreign_block(block) for block in output]
        return values[0] if len(values) == 1 else values
    if outcome.value is None or isinstance(outcome.value, str):
        return outcome.value if outcome.value is None else output
    try:
        return json.loads(output)
    except ValueError:  # the output was truncated
        return output


def _to_foreign_block(block: ContentBlock) -> Any:
    if isinstance(block, ToolOutputImage) and block.data is not None:
        try:
            image = Image.open(io.BytesIO(block.data))
            image.load()
        except (OSError, ValueError):
            return describe_block(block)
        return image
    return describe_block(block)


# --- tools of the framework as function tools


def _from_foreign_tool(tool: Any, failure_error_function: Any) -> FunctionTool[..., Any]:
    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context  # tools of smolagents get only the arguments
        return _from_foreign_output(await run_in_thread(tool, **arguments))

    return import_tool(
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
        "properties": {name: _property(tool.name, name, item) for name, item in inputs.items()},
        "required": [name for name, item in inputs.items() if not item.get("nullable")],
        "additionalProperties": False,
    }


def _property(tool: str, name: str, item: dict[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in item.items() if key not in {"type", "nullable"}}
    types = [item["type"]] if isinstance(item["type"], str) else list(item["type"])
    for type_name in types:
        if type_name in {"image", "audio"}:
            raise UserTypeError(
                f"The smolagents tool {tool!r} cannot be converted: its parameter {name!r} has the "
                f"type {type_name}, which a model cannot write. Wrap it in a tool that accepts a "
                "path or a URL."
            )
    if "any" in types:
        return schema
    if item.get("nullable") and "null" not in types:
        types.append("null")
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    return {"type": types[0] if len(types) == 1 else types, **schema}


def _from_foreign_output(value: Any) -> Any:
    """Convert a result of smolagents to a tool output."""
    if isinstance(value, AgentAudio):
        with open(str(value.to_string()), "rb") as file:  # noqa: PTH123 - to_string is a path
            return ToolOutputAudio(data=file.read(), mime_type="audio/wav")
    if isinstance(value, AgentType):
        value = value.to_raw()
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", list(value))
        return [_from_foreign_output(item) for item in items]
    if not isinstance(value, Image.Image):
        return value
    data = io.BytesIO()
    value.save(data, format="png")
    return ToolOutputImage(data=data.getvalue(), mime_type="image/png")


# --- agents of the framework as tools


class _SmolRun:
    """One run of an agent, in a thread."""

    def __init__(self, agent: Any, usage: Usage, max_turns: int | None) -> None:
        self._agent = agent
        self._usage = usage
        self._max_turns = max_turns
        self._loop = asyncio.get_running_loop()
        self._steps: asyncio.Queue[Any] = asyncio.Queue()
        self._ended = threading.Event()
        self._is_running = False
        self._tools: list[_SmolTool] = []
        self._calls: set[str] = set()

    async def events(self, task: str) -> AsyncGenerator[AgentEvent]:
        """Run the agent and yield its events, a `FinalAnswer` last."""
        running = asyncio.create_task(run_in_thread(self._run, task))
        running.add_done_callback(lambda _: self._steps.put_nowait(None))
        try:
            while (step := await self._steps.get()) is not None:
                for event in self._convert(step):
                    yield event
            await running
        finally:
            self._ended.set()
            if not running.done():
                self._stop()
                running.cancel()
            if await finish(running, name=str(self._agent.name)) and not running.cancelled():
                running.exception()  # marks it as retrieved: it was raised above, if any

    def _stop(self) -> None:
        """Interrupt the agent and cancel the running calls of function tools."""
        if self._is_running:
            self._agent.interrupt()
        for tool in self._tools:
            tool.cancel()

    def _run(self, task: str) -> None:
        """Run the agent, in a thread, after waiting for its other runs."""
        serializer = serializer_for(self._agent)
        while not serializer.acquire(str(self._agent.name), timeout=POLL_INTERVAL):
            if self._ended.is_set():
                return
        with serializer.held(), _bind_tools(self._agent, self._ended) as self._tools:
            if self._ended.is_set():
                return
            self._is_running = True
            try:
                self._queue_steps(task)
            finally:
                self._is_running = False

    def _queue_steps(self, task: str) -> None:
        limits = {} if self._max_turns is None else {"max_steps": self._max_turns}
        with contextlib.closing(self._agent.run(task, stream=True, **limits)) as steps:
            for step in steps:
                if self._ended.is_set():
                    return
                if not call_on_loop(self._loop, self._steps.put_nowait, step):
                    return

    def _convert(self, step: Any) -> list[AgentEvent]:
        match step:
            case ChatMessageStreamDelta():
                return [TextDelta(step.content)] if step.content else []
            case PlanningStep():
                self._count(step, 1)
                return [TextDelta(step.plan, is_complete=True, tag="plan")]
            case ToolCall():
                return self._start_call(step)
            case ToolOutput():
                return self._end_calls([step.id], failed=False)
            case ActionStep():
                self._count(step, 1)
                return self._end_calls(list(self._calls), failed=step.error is not None)
            case FinalAnswerStep():
                return [FinalAnswer(_from_foreign_output(step.output), step)]
            case _:
                return []

    def _start_call(self, call: Any) -> list[AgentEvent]:
        is_exported = isinstance(self._agent.tools.get(call.name), _SmolTool)
        if is_exported or call.name == "final_answer":
            return []
        self._calls.add(call.id)
        return [CallStarted(call.id, call.name, parse_arguments(call.arguments))]

    def _end_calls(self, calls: list[str], *, failed: bool) -> list[AgentEvent]:
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
def _bind_tools(agent: Any, run_ended: threading.Event) -> Generator[list[_SmolTool]]:
    """Bind the function tools of an agent, and of its managed agents, to one run."""
    originals = [
        (member.tools, name, tool)
        for member in _all_agents(agent)
        for name, tool in member.tools.items()
        if isinstance(tool, _SmolTool)
    ]
    bound = [tool.bind_to_run(run_ended) for _, _, tool in originals]
    try:
        for (tools, name, _), tool in zip(originals, bound, strict=True):
            tools[name] = tool
        yield bound
    finally:
        for tools, name, tool in originals:
            tools[name] = tool


def _all_agents(agent: Any) -> list[Any]:
    """Return an agent and, recursively, its managed agents."""
    managed = getattr(agent, "managed_agents", None)
    members = managed.values() if isinstance(managed, dict) else ()
    return [agent, *(nested for member in members for nested in _all_agents(member))]
