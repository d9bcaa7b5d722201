"""Answer the requests of servers for a model (`sampling/createMessage`) with a model."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.budgets import check_budgets, with_cost
from agents_tools.agents.model import ModelRequest, ModelSettings, model_name
from agents_tools.content.items import (
    MessageInputItem,
    MessageOutputItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.errors import AgentsToolsError
from agents_tools.mcp._coerce import an_object, objects, text_or_none
from agents_tools.mcp._sanitize import UnusableTool, clean_tool, public_names
from agents_tools.mcp.client.adapter import function_tool_of, result_of
from agents_tools.text.output import release_json, release_text
from agents_tools.tool.context import call_of
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.agents.model import Model, ModelResponse
    from agents_tools.content.items import Item
    from agents_tools.events.base import Emit
    from agents_tools.mcp.client.adapter import AnyTool
    from agents_tools.tool.context import ToolContext

__all__ = ["sample_model"]

logger = logging.getLogger("agents_tools.mcp")

_STOP_REASONS: dict[str | None, str] = {
    None: "endTurn",
    "stop": "endTurn",
    "length": "maxTokens",
    "tool_calls": "toolUse",
}


async def sample_model(
    model: Model, params: Mapping[str, Any], context: ToolContext[Any] | None
) -> dict[str, Any]:
    """Return the answer of a model as the result of `sampling/createMessage`.

    The model receives the texts of the server without hidden characters. Its answer is part of the
    usage of the run that calls the server, and of the budgets of that run.

    Args:
        model: The model.
        params: The params of the request.
        context: The context of the call that the request belongs to.

    Returns:
        The result, or an object with `error`: the request is invalid, or the model has failed.
    """
    scope = None if context is None else call_of(context).scope
    run: Any = None if scope is None else scope.run
    try:
        tools = _RequestedTools(params.get("tools"))
        request = _request_of(params, tools)
        if run is not None:
            check_budgets(run, lambda: [model])
        response = await _send(model, request, _ignore)
        if run is not None:
            usage = with_cost(response, run, model)
            for total in run.usages:
                total.add(usage)
        return _result_of(response, model, tools)
    except _InvalidSampling as error:
        return {"error": str(error)}
    except AgentsToolsError as error:  # its text is not for the server
        logger.warning("A request of an MCP server for a model failed: %s", error)
        return {"error": f"the model did not answer ({type(error).__name__})"}


class _InvalidSampling(ValueError):  # noqa: N818 - of a request or an answer, not of the program
    """A request that no model can get, or an answer that has no form in the protocol."""


def _ignore(_event: object) -> None:
    """Ignore the deltas: the protocol has no form for them."""


async def _send(model: Model, request: ModelRequest, emit: Emit) -> ModelResponse:
    """Send a request; the arguments of calls are converted back from the provider's schemas.

    A model that delegates calls this again for the model that answers.
    """
    response = await model.respond(replace(request, send=_send), emit)
    provider = getattr(model, "provider", None)
    if provider is None or hasattr(model, "models"):
        return response
    tools = {tool.name: tool for tool in cast("tuple[AnyTool, ...]", request.tools)}
    items = [
        replace(item, arguments=project(tools[item.name], provider).decode(item.arguments))
        if isinstance(item, ToolCallItem) and item.name in tools
        else item
        for item in response.items
    ]
    return replace(response, items=items)


# --- the request


class _RequestedTools:
    """The tools of a request, which run on the server.

    Args:
        listed: The tools as the server describes them.

    Attributes:
        offered: The tools for the model.

    Raises:
        _InvalidSampling: A definition is not usable.
    """

    def __init__(self, listed: object) -> None:
        try:
            wires = [clean_tool(one).wire for one in objects(listed)]
        except UnusableTool as error:
            raise _InvalidSampling(f"a tool is not valid: {error}") from None
        self._names = public_names("sampling", [wire["name"] for wire in wires], prefix=None)
        self._wire_names = {name: wire for wire, name in self._names.items()}
        self.offered = tuple(
            function_tool_of(
                wire, name=self._names[wire["name"]], server="sampling", perform=_refuse
            )
            for wire in wires
        )

    def public_name(self, name: str) -> str:
        """Return the name of a tool for the model."""
        return self._names.get(name, name)

    def wire_name(self, name: str) -> str:
        """Return the name of a tool for the server."""
        return self._wire_names.get(name, name)


async def _refuse(_context: object, _arguments: object) -> dict[str, Any]:
    message = "the tools of a sampling request run on the server"
    raise NotImplementedError(message)


def _request_of(params: Mapping[str, Any], tools: _RequestedTools) -> ModelRequest:
    limit, temperature = params.get("maxTokens"), params.get("temperature")
    stop = [str(one) for one in params.get("stopSequences") or ()]
    choice = text_or_none(an_object(params.get("toolChoice")).get("mode"))
    return ModelRequest(
        instructions=release_text(str(params.get("systemPrompt") or ""), to="model"),
        input=_items_of(params.get("messages"), tools),
        tools=tools.offered,
        settings=ModelSettings(
            temperature=temperature if isinstance(temperature, (int, float)) else None,
            max_tokens=limit if isinstance(limit, int) else None,
            stop=stop or None,
            tool_choice=choice if tools.offered else None,
        ),
    )


def _items_of(messages: object, tools: _RequestedTools) -> list[Item]:
    """Return the messages of a request as items.

    Raises:
        _InvalidSampling: A message has content that models cannot get.
    """
    items: list[Item] = []
    called: dict[str, str] = {}
    for message in cast("list[dict[str, Any]]", release_json(objects(messages), to="model")):
        content: Any = message.get("content")
        blocks = (
            objects(cast("object", content)) if isinstance(content, list) else [an_object(content)]
        )
        if message.get("role") == "assistant":
            answers = [_answer_item(block, tools) for block in blocks]
            called |= {one.call_id: one.name for one in answers if isinstance(one, ToolCallItem)}
            items += answers
        elif any(block.get("type") == "tool_result" for block in blocks):
            items += [_output_item(block, called) for block in blocks]
        else:
            items.append(MessageInputItem(content=result_of({"content": blocks}).content))
    return items


def _answer_item(block: Mapping[str, Any], tools: _RequestedTools) -> Item:
    """Return an earlier answer of the model: a text or a call."""
    match block.get("type"):
        case "text":
            return MessageOutputItem(text=str(block.get("text") or ""))
        case "tool_use":
            return ToolCallItem(
                call_id=str(block.get("id")),
                name=tools.public_name(str(block.get("name"))),
                arguments=json.dumps(an_object(block.get("input")), ensure_ascii=False),
            )
        case kind:
            raise _InvalidSampling(f"a message of the assistant has {kind!r:.40} content")


def _output_item(block: Mapping[str, Any], called: Mapping[str, str]) -> ToolCallOutputItem:
    """Return the result of a call."""
    call_id = str(block.get("toolUseId"))
    if block.get("type") != "tool_result" or call_id not in called:
        raise _InvalidSampling("a message has tool results that belong to no call before it")
    result = result_of({key: block[key] for key in _RESULT_KEYS if key in block})
    output: Any = result.content
    return ToolCallOutputItem(
        call_id=call_id,
        name=called[call_id],
        output=json.dumps(result.structured, ensure_ascii=False) if output is None else output,
        status="tool_error" if result.is_error else "ok",
    )


_RESULT_KEYS = ("content", "structuredContent", "isError")


# --- the answer


def _result_of(response: ModelResponse, model: Model, tools: _RequestedTools) -> dict[str, Any]:
    """Return a response in the form of the protocol.

    Raises:
        _InvalidSampling: The arguments of a call are not a JSON object.
    """
    blocks: list[dict[str, Any]] = []
    for item in response.items:
        if isinstance(item, MessageOutputItem):
            text = item.text if item.refusal is None else item.refusal
            blocks.append({"type": "text", "text": release_text(text, to="program")})
        # The calls of a response that was cut off can be incomplete.
        elif isinstance(item, ToolCallItem) and response.truncation is None:
            blocks.append(_tool_use(item, tools))
    has_calls = any(block["type"] == "tool_use" for block in blocks)
    reason = response.finish_reason
    content: Any = blocks or [{"type": "text", "text": ""}]
    return {
        "role": "assistant",
        # Clients up to 2025-06-18 returned one block, and servers may expect one.
        "content": content if has_calls or len(content) > 1 else content[0],
        "model": response.model or model_name(model),
        "stopReason": "toolUse" if has_calls else _STOP_REASONS.get(reason, str(reason)),
    }


def _tool_use(item: ToolCallItem, tools: _RequestedTools) -> dict[str, Any]:
    try:
        arguments: object = json.loads(item.arguments or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise _InvalidSampling("the model has sent a call with invalid arguments")
    return {
        "type": "tool_use",
        "id": item.call_id,
        "name": tools.wire_name(item.name),
        "input": release_json(cast("object", arguments), to="program"),
    }
