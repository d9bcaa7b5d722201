"""Tools of Google's ADK as ours."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, cast

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import BaseTool
from google.genai import types
from pydantic import PrivateAttr

from agents_tools.errors import ToolDeniedError, ToolError
from agents_tools.export._foreign import shown
from agents_tools.export._google_adk_calls import EVENT, Ours
from agents_tools.export._google_adk_sessions import Session, session_with
from agents_tools.export._incoming import incoming, media, say
from agents_tools.outputs import ContentBlock, ToolOutputText
from agents_tools.policies import needs_approval

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.context import ToolContext
    from agents_tools.tool import FunctionTool

__all__ = ["CONFIRMATION", "tool_here"]


def tool_here(tool: BaseTool, state: dict[str, Any]) -> FunctionTool[..., Any]:
    """Make ours of a tool of ADK."""
    if isinstance(tool, Ours):
        return tool.function_tool
    declaration = cast("Any", tool)._get_declaration()  # noqa: SLF001 - what a tool says of itself

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        asked = types.FunctionCall(name=tool.name, args=arguments, id=context.tool_call_id)
        agent = LlmAgent(name=_CALLER, model=_OneCall(asked), tools=[tool])
        heard = _Heard(asked, context)
        async with session_with(agent, state) as session:
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
CONFIRMATION = "adk_request_confirmation"


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

    async def all_of(self, session: Session, message: Any) -> None:
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
            if call.name == CONFIRMATION:
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
        more = [_own_block(part) for part in self._response.parts or ()]
        if not more:
            return given
        return [*([ToolOutputText(shown(given))] if given else []), *more]


def _confirmed(request: Any) -> types.Content:
    response = types.FunctionResponse(
        id=request.id, name=request.name, response={"confirmed": True}
    )
    return types.Content(role="user", parts=[types.Part(function_response=response)])


def _own_block(part: Any) -> ContentBlock:
    """Give a piece of a response that is no text as a block of ours."""
    found: Any = part.inline_data or part.file_data
    kind = (found.mime_type or "").partition("/")[0]
    where = {"data": found.data} if part.inline_data else {"url": found.file_uri}
    return media(kind if kind in {"image", "audio"} else "file", mime_type=found.mime_type, **where)
