"""Tools in agents of Google's ADK, its tools as ours, and its agents as tools."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast, overload

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event as ForeignEvent
from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import BaseTool
from google.adk.workflow import BaseNode
from google.genai import types
from pydantic import PrivateAttr

from agents_tools._records import CallOutcome
from agents_tools.errors import ToolDeniedError, ToolError
from agents_tools.export._approval import decided, is_undecided
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    arguments_of,
    foreign_tool,
    shown,
)
from agents_tools.export._incoming import imported, incoming, media, say
from agents_tools.export._outgoing import (
    Tools,
    application_context,
    arguments_json,
    blocks_of,
    called,
    described,
    exported,
    followed,
    has_failed,
)
from agents_tools.outputs import ContentBlock, ToolOutputText
from agents_tools.policies import needs_approval
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from google.adk.agents import BaseAgent

    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["EVENT", "as_tool", "from_google_adk", "to_google_adk"]

EVENT = "agents_tools_event"
"""The key in the `custom_metadata` of an event of ADK that has one of ours, as JSON."""


@overload
def to_google_adk(tools: FunctionTool[..., Any], *, context: Any = None) -> BaseTool: ...
@overload
def to_google_adk(tools: Tools, *, context: Any = None) -> list[BaseTool]: ...
def to_google_adk(tools: Any, *, context: Any = None) -> BaseTool | list[BaseTool]:
    """Make tools for agents of ADK.

    What a tool says while it works appears among the events of the runner, as partial events that
    no session keeps: `event.custom_metadata["agents_tools_event"]` is the event as JSON. Of a call
    that says nothing only ADK's own events tell. The model is given `{"result": text}`, or
    `{"error": text}` for a failed call. A call that needs a person's approval asks for ADK's
    confirmation.

    Args:
        tools: One tool, or several.
        context: The application's object, for tools that ask for it; by default that of the run
            around, or else ADK's `ToolContext` of the call.

    Returns:
        One tool of ADK for one tool, a list for several.

    Raises:
        UserError: It is no tool, or two have the same name.
    """
    return exported(tools, lambda tool: _Tool(tool, context), "to_google_adk")


def from_google_adk(tool: Any, *, state: Mapping[str, Any] | None = None) -> Any:
    """Make our tools of tools of ADK.

    Each call is made by an agent of ADK in a session of its own, so that the tool finds there what
    it expects. Progress of generators is said in our events. A result that is an `error` is a
    failure. A tool that requires confirmation needs approval. Arguments are validated here, before
    it is called.

    Args:
        tool: A `BaseTool`, such as `FunctionTool(function)`; or a list of them.
        state: What the session of each call starts with.

    Returns:
        One tool for one, a list for a list.

    Raises:
        UserError: It is no such tool, or its schema cannot be enforced.
    """
    begin = dict(state or {})
    return imported(tool, BaseTool, lambda one: _incoming(one, begin), "from_google_adk")


def as_tool(
    agent: BaseAgent,
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
    state: Mapping[str, Any] | None = None,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of ADK. Each call has a session of its own.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it; the agent's own description by default.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the last event; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often models are asked at most; the framework's default if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.
        state: What the session of each call starts with.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    limits: dict[str, Any] = {} if max_turns is None else {"max_llm_calls": max_turns}

    async def run(task: str, _context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        config = RunConfig(streaming_mode=StreamingMode.SSE, **limits)
        reader = _Reader(agent)
        async with (
            _session(agent, state) as session,
            contextlib.aclosing(session.run(task, config)) as events,
        ):
            async for event in events:
                usage.add(_usage(event))
                for said in reader.said(event):
                    yield said
        yield reader.last()

    return foreign_tool(
        agent.name,
        run,
        tool_name=tool_name,
        tool_description=tool_description or agent.description or None,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )


# --- our tools there


class _Tool(BaseTool):
    """A tool of ours as an agent of ADK calls it."""

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self.function_tool = tool
        self._context = context

    def _get_declaration(self) -> types.FunctionDeclaration:
        tool = self.function_tool
        return types.FunctionDeclaration(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.params_json_schema,
        )

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: Any) -> bool:
        return await is_undecided(
            self.function_tool,
            arguments_json(args),
            call_id=tool_context.function_call_id,
            context=self._context_of(tool_context),
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        tool = self.function_tool
        if tool_context.tool_confirmation is not None:
            tool = decided(tool, tool_context.tool_confirmation.confirmed)
        options: dict[str, Any] = {
            "call_id": tool_context.function_call_id,
            "context": self._context_of(tool_context),
        }
        if not _has_stream(tool_context):
            return _response(await called(tool, arguments_json(args), **options))
        made = _Made(followed(tool, arguments_json(args), **options))
        try:
            if not await made.is_silent():
                await self._said(made, tool_context)
        finally:
            await made.items.aclose()
        if made.raised is not None:
            raise made.raised
        if made.outcome is None:
            raise ToolError(f"ADK did not finish the call of {tool.name!r}.")
        return _response(made.outcome)

    async def _said(self, made: _Made, tool_context: Any) -> None:
        """Say to the runner what a call says, to its end."""
        run_id = tool_context.function_call_id
        await tool_context.run_node(
            _CallNode(made, name=re.sub(r"\W", "_", f"call_{self.name}")),
            # Numbers are for runs that ADK counts itself.
            run_id=None if run_id is None or run_id.isdigit() else run_id,
        )

    def _context_of(self, tool_context: Any) -> Any:
        return application_context(self._context, tool_context)

    def _detect_error_in_response(self, response: Any) -> str | None:
        """Let ADK's telemetry see which calls failed."""
        return "TOOL_ERROR" if isinstance(response, dict) and "error" in response else None


def _has_stream(tool_context: Any) -> bool:
    """Whether a runner takes events here; it does not in live sessions and in tests of tools."""
    around = getattr(tool_context, "_invocation_context", None)
    return (
        getattr(around, "_event_queue", None) is not None
        and getattr(around, "live_request_queue", None) is None
    )


@dataclass
class _Made:
    """A call: what it says, and how it ended."""

    items: AsyncGenerator[Any]
    outcome: CallOutcome | None = None
    raised: Exception | None = None
    begun: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def is_silent(self) -> bool:
        """Whether it has ended, and said nothing but that it begins and ends: ADK says so too.

        To say anything to a runner takes ADK some time, which most calls can do without.
        """
        async for item in self.items:
            if isinstance(item, CallOutcome):
                self.outcome = item
                break
            self.begun.append(item)
            own = item["tool_call_id"] == self.begun[0]["tool_call_id"]
            if not own or item["type"] not in _EDGES:
                return False
        return True

    async def said(self) -> AsyncGenerator[dict[str, Any]]:
        """Give what it says, from the beginning."""
        for item in self.begun:
            yield item
        async for item in self.items:
            if isinstance(item, CallOutcome):
                self.outcome = item
            else:
                yield item


_EDGES = {"tool_stream_start_event", "tool_stream_end_event"}


class _CallNode(BaseNode):
    """Says to the runner what a call says; how it ended is for who made the call."""

    _made: _Made = PrivateAttr()

    def __init__(self, made: _Made, **more: Any) -> None:
        super().__init__(**more)
        self._made = made

    async def _run_impl(self, **_given: Any) -> AsyncGenerator[Any]:
        try:
            async with contextlib.aclosing(self._made.said()) as said:
                async for item in said:
                    yield ForeignEvent(partial=True, custom_metadata={EVENT: item})
        except Exception as error:  # noqa: BLE001 - raised where the call was made
            self._made.raised = error


def _response(outcome: CallOutcome) -> dict[str, Any]:
    parts: list[types.Part] = []
    texts: list[str] = []
    for block in blocks_of(outcome.output):
        part = None if isinstance(block, ToolOutputText) else _part(block)
        if part is None:
            texts.append(described(block))
        else:
            parts.append(part)
    text = "\n".join(texts)
    if has_failed(outcome):
        return {"error": text}
    return {"result": text, "media": parts} if parts else {"result": text}


def _part(block: Any) -> types.Part | None:
    """Give what is no text as ADK takes it, if it does."""
    if block.mime_type is None or block.file_id is not None:
        return None
    if block.data is not None:
        return types.Part.from_bytes(data=block.data, mime_type=block.mime_type)
    if block.url.startswith("data:"):
        return None
    return types.Part.from_uri(file_uri=block.url, mime_type=block.mime_type)


# --- their tools here


def _incoming(tool: BaseTool, state: dict[str, Any]) -> FunctionTool[..., Any]:
    if isinstance(tool, _Tool):
        return tool.function_tool
    declaration = cast("Any", tool)._get_declaration()  # noqa: SLF001 - what a tool says of itself

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        asked = types.FunctionCall(name=tool.name, args=arguments, id=context.tool_call_id)
        agent = LlmAgent(name=_CALLER, model=_OneCall(asked), tools=[tool])
        heard = _Heard(asked, context)
        async with _session(agent, state) as session:
            await heard.all_of(session, "Call it.")
            decision = context.decision
            if heard.confirmation is not None and decision is not None and decision.approved:
                confirmation, heard.confirmation = heard.confirmation, None
                await heard.all_of(session, _confirmed(confirmation))
        return heard.answer()

    async def asks(_context: Any, arguments: dict[str, Any]) -> bool:
        return await tool.check_require_confirmation(arguments, cast("Any", None))

    made = incoming(
        framework="ADK",
        name=tool.name,
        description=tool.description,
        schema=_schema(declaration),
        call=call,
    )
    return needs_approval(asks)(made) if _has_gate(tool) else made


def _has_gate(tool: BaseTool) -> bool:
    """Whether a person may have to confirm a call."""
    own = type(tool).check_require_confirmation
    return (
        own is not BaseTool.check_require_confirmation
        and getattr(tool, "_require_confirmation", True) is not False
    )


def _schema(declaration: Any) -> dict[str, Any] | None:
    if declaration is None:
        return None
    if declaration.parameters_json_schema is not None:
        return declaration.parameters_json_schema
    if declaration.parameters is None:
        return None
    return declaration.parameters.json_schema.model_dump(
        mode="json", by_alias=True, exclude_none=True
    )


_CALLER = "agents_tools_caller"
_CONFIRMATION = "adk_request_confirmation"


class _OneCall(BaseLlm):
    """A model that asks for one call, and has nothing more to say."""

    _call: Any = PrivateAttr()

    def __init__(self, call: types.FunctionCall) -> None:
        super().__init__(model="one-call")
        self._call = call

    async def generate_content_async(
        self, *_given: Any, **_more: Any
    ) -> AsyncGenerator[LlmResponse]:
        call, self._call = self._call, None
        part = types.Part(text="Done.") if call is None else types.Part(function_call=call)
        yield LlmResponse(
            content=types.Content(role="model", parts=[part]),
            usage_metadata=types.GenerateContentResponseUsageMetadata(),  # ADK asks for it
        )


class _Heard:
    """What comes of one call that an agent makes."""

    def __init__(self, asked: types.FunctionCall, context: ToolContext[Any]) -> None:
        self._asked = asked
        self._context = context
        self._response: Any = None
        self.confirmation: Any = None
        """The request for a person's confirmation, where there is one."""
        self._waits: str | None = None

    async def all_of(self, session: _Session, message: Any) -> None:
        """Hear a run to its end."""
        async with contextlib.aclosing(session.run(message, RunConfig())) as events:
            async for event in events:
                self._hear(event)

    def _hear(self, event: Any) -> None:
        metadata = event.custom_metadata or {}
        if EVENT in metadata:
            say(self._context, metadata[EVENT])
        for response in event.get_function_responses():
            if response.id == self._asked.id:
                self._response = response
        for call in event.get_function_calls():
            if call.name == _CONFIRMATION:
                self.confirmation = call
            elif call.name != self._asked.name:
                self._waits = call.name
        if event.author != _CALLER and event.content is not None:
            for part in event.content.parts or ():
                say(self._context, part.text)

    def answer(self) -> Any:
        """Give the result.

        Raises:
            ToolDeniedError: A person has to decide something first.
            ToolError: The tool said that it failed.
        """
        waits = self._waits if self.confirmation is None else "a person's confirmation"
        if waits is not None:
            raise ToolDeniedError(
                f"Tool {self._asked.name!r} waits for {waits}, and nobody can be asked where it "
                "was called."
            )
        if self._response is None:
            raise ToolError(f"Tool {self._asked.name!r} gave no result.")
        given: Any = self._response.response
        if isinstance(given, dict) and set(cast("dict[str, Any]", given)) == {"error"}:
            raise ToolError(shown(given["error"]))
        if isinstance(given, dict) and set(cast("dict[str, Any]", given)) == {"result"}:
            given = given["result"]
        more = [_media(part) for part in self._response.parts or ()]
        if not more:
            return given
        return [*([ToolOutputText(shown(given))] if given else []), *more]


def _confirmed(request: Any) -> types.Content:
    response = types.FunctionResponse(
        id=request.id, name=request.name, response={"confirmed": True}
    )
    return types.Content(role="user", parts=[types.Part(function_response=response)])


def _media(part: Any) -> ContentBlock:
    """Give a piece of a response that is no text as a block of ours."""
    found: Any = part.inline_data or part.file_data
    kind = (found.mime_type or "").partition("/")[0]
    where = {"data": found.data} if part.inline_data else {"url": found.file_uri}
    return media(kind if kind in {"image", "audio"} else "file", mime_type=found.mime_type, **where)


# --- their agents here


class _Session:
    """A conversation with an agent that nobody else takes part in."""

    def __init__(self, runner: InMemoryRunner, session: Any) -> None:
        self._runner = runner
        self._session = session

    def run(self, message: Any, config: RunConfig) -> AsyncGenerator[ForeignEvent]:
        """Say something, and give the events of the run that answers."""
        if isinstance(message, str):
            message = types.Content(role="user", parts=[types.Part(text=message)])
        return self._runner.run_async(
            user_id=self._session.user_id,
            session_id=self._session.id,
            new_message=message,
            run_config=config,
        )


@contextlib.asynccontextmanager
async def _session(agent: Any, state: Mapping[str, Any] | None) -> AsyncGenerator[_Session]:
    runner = InMemoryRunner(agent=agent, app_name="agents_tools")
    try:
        session = await runner.session_service.create_session(
            app_name=runner.app_name, user_id="agents_tools", state=dict(state or {})
        )
        yield _Session(runner, session)
    finally:
        await runner.close()


class _Reader:
    """Reads the events of an agent: its text, its calls and its answer."""

    def __init__(self, agent: BaseAgent) -> None:
        self._agent = agent
        self._said: set[str] = set()
        self._pieces = False
        self._waits: dict[str, str] = {}
        self._last: Any = None

    def said(self, event: Any) -> list[Said]:
        """Give what an event says."""
        if event.error_code and not event.content:
            raise ToolError(
                f"Agent {self._agent.name!r} failed: {event.error_code}: {event.error_message}"
            )
        metadata = event.custom_metadata or {}
        if EVENT in metadata:
            return []  # a tool of ours says so itself
        said = self._text(event)
        if not event.partial:
            said += self._calls(event)
            if event.is_final_response() and (event.content or event.output is not None):
                self._last = event
        return said

    def last(self) -> Answer | Waits:
        """Give the answer, unless a call is still without one."""
        if self._waits:
            names = ", ".join(repr(name) for name in self._waits.values())
            return Waits(f"the approval or the result of {names}")
        event = self._last
        if event is None:
            raise ToolError(f"Agent {self._agent.name!r} ended without an answer.")
        if event.output is not None:
            return Answer(event.output, event)
        words = _words(event)
        for response in event.get_function_responses() if not words else ():
            return Answer(response.response, event)  # a tool answered for the model
        return Answer(words, event)

    def _text(self, event: Any) -> list[Said]:
        text = _words(event)
        # What came in pieces comes once more as a whole.
        again = self._pieces and not event.partial
        self._pieces = bool(event.partial) or (self._pieces and not text)
        return [Told(text)] if text and not again else []

    def _calls(self, event: Any) -> list[Said]:
        said: list[Said] = []
        for call in event.get_function_calls():
            if call.id in (event.long_running_tool_ids or ()):
                self._waits[call.id] = _asked_for(call)
            if call.name not in _REQUESTS and not _is_ours(self._agent, call.name):
                said.append(CallBegan(str(call.id), str(call.name), arguments_of(call.args)))
        for response in event.get_function_responses():
            self._waits.pop(response.id, None)
            failed = "error" in (response.response or {})
            said.append(CallEnded(str(response.id), failed))
        return said


_REQUESTS = {_CONFIRMATION, "adk_request_credential", "adk_request_input"}
"""Calls that are questions to a person."""


def _asked_for(call: Any) -> str:
    """Give the name of the tool that a question to a person is about."""
    original = (call.args or {}).get("originalFunctionCall") or {}
    return original.get("name") or call.name


def _is_ours(agent: Any, name: str) -> bool:
    tools: list[Any] = getattr(agent, "tools", [])
    return any(isinstance(tool, _Tool) and tool.name == name for tool in tools) or any(
        _is_ours(one, name) for one in agent.sub_agents
    )


def _words(event: Any) -> str:
    """Give the text of an event, thoughts left out."""
    parts = event.content.parts if event.content is not None else None
    return "".join(part.text for part in parts or () if part.text and not part.thought)


def _usage(event: Any) -> Usage:
    used = event.usage_metadata
    if used is None or event.partial:
        return Usage()
    thoughts = used.thoughts_token_count or 0
    return Usage(
        requests=1,
        input_tokens=used.prompt_token_count or 0,
        output_tokens=(used.candidates_token_count or 0) + thoughts,
        cached_input_tokens=used.cached_content_token_count or 0,
        reasoning_tokens=thoughts,
    )
