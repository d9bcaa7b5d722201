"""Tools of Google's ADK as function tools."""

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

from agents_tools.content.outputs import ContentBlock, ToolOutputText
from agents_tools.errors import ToolDeniedError, ToolError
from agents_tools.export._agent_adapter import display_text
from agents_tools.export._google_adk_export import EVENT, AdkFunctionTool
from agents_tools.export._google_adk_sessions import AdkSession, open_session
from agents_tools.export._import_tool import forward_event, import_tool, media_block
from agents_tools.policies import needs_approval
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["CONFIRMATION", "from_foreign_tool"]


def from_foreign_tool(tool: BaseTool, state: dict[str, Any]) -> FunctionTool[..., Any]:
    """Convert a tool of ADK to a function tool."""
    if isinstance(tool, AdkFunctionTool):
        return tool.function_tool
    declaration = cast("Any", tool)._get_declaration()  # noqa: SLF001 - ADK has no public accessor

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        request = types.FunctionCall(name=tool.name, args=arguments, id=context.tool_call_id)
        agent = LlmAgent(name=_CALLER, model=_OneCallModel(request), tools=[tool])
        reader = _AdkCallReader(request, context)
        async with open_session(agent, state) as session:
            await reader.read_run(session, "Call it.")
            decision = call_of(context).decision
            if reader.confirmation is not None and decision is not None and decision.approved:
                confirmation, reader.confirmation = reader.confirmation, None
                await reader.read_run(session, _confirmation_response(confirmation))
        return reader.output()

    async def requires_confirmation(_context: Any, arguments: dict[str, Any]) -> bool:
        return await tool.check_require_confirmation(arguments, cast("Any", None))

    converted = import_tool(
        framework="ADK",
        name=tool.name,
        description=tool.description,
        schema=_schema(declaration),
        call=call,
    )
    if not _may_require_confirmation(tool):
        return converted
    return needs_approval(requires_confirmation)(converted)


def _may_require_confirmation(tool: BaseTool) -> bool:
    check = type(tool).check_require_confirmation
    return (
        check is not BaseTool.check_require_confirmation
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


class _OneCallModel(BaseLlm):
    """A model that requests one tool call and then ends the run."""

    _call: Any = PrivateAttr()

    def __init__(self, call: types.FunctionCall) -> None:
        super().__init__(model="one-call")
        self._call = call

    async def generate_content_async(
        self, *_args: Any, **_kwargs: Any
    ) -> AsyncGenerator[LlmResponse]:
        call, self._call = self._call, None
        part = types.Part(text="Done.") if call is None else types.Part(function_call=call)
        yield LlmResponse(
            content=types.Content(role="model", parts=[part]),
            usage_metadata=types.GenerateContentResponseUsageMetadata(),  # ADK requires it
        )


class _AdkCallReader:
    """Read the events of a run that makes one call."""

    def __init__(self, request: types.FunctionCall, context: ToolContext[Any]) -> None:
        self._request = request
        self._context = context
        self._response: Any = None
        self.confirmation: Any = None
        """The request for a confirmation, if there is one."""
        self._pending: str | None = None

    async def read_run(self, session: AdkSession, message: Any) -> None:
        """Start a run with a message and read all its events."""
        async with contextlib.aclosing(session.run(message, RunConfig())) as events:
            async for event in events:
                self._read(event)

    def _read(self, event: Any) -> None:
        metadata = event.custom_metadata or {}
        if EVENT in metadata:
            forward_event(self._context, metadata[EVENT])
        for response in event.get_function_responses():
            if response.id == self._request.id:
                self._response = response
        for call in event.get_function_calls():
            if call.name == CONFIRMATION:
                self.confirmation = call
            elif call.name != self._request.name:
                self._pending = call.name
        if event.author != _CALLER and event.content is not None:
            for part in event.content.parts or ():
                forward_event(self._context, part.text)

    def output(self) -> Any:
        """Return the output of the call.

        Raises:
            ToolDeniedError: The tool waits for input from a person.
            ToolError: The tool failed or returned no result.
        """
        waits_for = self._pending if self.confirmation is None else "a person's confirmation"
        if waits_for is not None:
            raise ToolDeniedError(
                f"Tool {self._request.name!r} waits for {waits_for}, which is not available where "
                "it was called."
            )
        if self._response is None:
            raise ToolError(f"Tool {self._request.name!r} returned no result.")
        value: Any = self._response.response
        if isinstance(value, dict) and set(cast("dict[str, Any]", value)) == {"error"}:
            raise ToolError(display_text(value["error"]))
        if isinstance(value, dict) and set(cast("dict[str, Any]", value)) == {"result"}:
            value = value["result"]
        blocks = [_from_foreign_block(part) for part in self._response.parts or ()]
        if not blocks:
            return value
        return [*([ToolOutputText(display_text(value))] if value else []), *blocks]


def _confirmation_response(request: Any) -> types.Content:
    response = types.FunctionResponse(
        id=request.id, name=request.name, response={"confirmed": True}
    )
    return types.Content(role="user", parts=[types.Part(function_response=response)])


def _from_foreign_block(part: Any) -> ContentBlock:
    """Convert a part with data or a file to a content block."""
    blob: Any = part.inline_data or part.file_data
    prefix = (blob.mime_type or "").partition("/")[0]
    kind = prefix if prefix in {"image", "audio"} else "file"
    source = {"data": blob.data} if part.inline_data else {"url": blob.file_uri}
    return media_block(kind, mime_type=blob.mime_type, **source)
