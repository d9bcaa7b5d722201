"""Prompts of a server: messages that a person chooses in the client."""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, overload

from agents_tools.content.outputs import output_text, to_output
from agents_tools.errors import AgentsToolsError, ToolError, UserTypeError, UserValueError
from agents_tools.mcp.server.completion import Completer
from agents_tools.mcp.server.content import content_block, content_blocks
from agents_tools.mcp.server.paging import page_of
from agents_tools.mcp.server.requests import INTERNAL_ERROR, INVALID_PARAMS, RequestError
from agents_tools.mcp.server.resources import function_name, tool_of
from agents_tools.text.output import release_json, release_text
from agents_tools.tool.context import ToolContext  # noqa: TC001 - read at run time
from agents_tools.tool.decorators import function_tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agents_tools.agents.agent import Agent
    from agents_tools.mcp.server.completion import Complete
    from agents_tools.mcp.server.progress import Report
    from agents_tools.mcp.server.requests import MCPRequest
    from agents_tools.mcp.server.served_calls import ServedCalls
    from agents_tools.tool.question import Question
    from agents_tools.tool.tool import FunctionTool

__all__ = ["Prompt", "PromptHandlers", "PromptSource", "Prompts", "prompt"]


Prompts: TypeAlias = "Prompt | Agent[Any, Any] | Sequence[Prompt | Agent[Any, Any]] | PromptSource"
"""A prompt or agent, several, or an object whose `get_prompts()` returns the current ones."""


class PromptSource(Protocol):
    """An object with the current prompts of a server."""

    def get_prompts(self) -> Sequence[Prompt] | Awaitable[Sequence[Prompt]]:
        """Return the current prompts."""
        ...


class Prompt:
    """Messages that a person chooses in the client. Create it with `prompt`.

    Attributes:
        name: The name for programs.
        title: The name for people.
        description: What it is for.
        tool: The function that returns the messages, with its schema and validation.
        metadata: Further fields of the protocol, such as `icons`, `_meta`.
    """

    def __init__(
        self,
        tool: FunctionTool[..., Any],
        *,
        name: str,
        title: str | None = None,
        description: str | None = None,
        complete: Mapping[str, Complete] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._complete = dict(complete or {})
        self.name = name
        self.title = title
        self.description = description
        self.tool = tool
        self.metadata = dict(metadata or {})

    def __repr__(self) -> str:
        """Return the name."""
        return f"<Prompt {self.name!r}>"

    def build(self) -> Completer:
        """Build the schema of the arguments.

        Raises:
            UserError: The function cannot be described.
        """
        return Completer(self.tool.build(), self._complete, f"prompt {self.name!r}")

    def describe(self) -> dict[str, Any]:
        """Return the entry in the list of prompts as protocol JSON."""
        schema = self.tool.params_json_schema
        required = set(schema.get("required", ()))
        properties: dict[str, dict[str, Any]] = schema.get("properties") or {}
        arguments: list[dict[str, Any]] = [
            {
                "name": name,
                **({"description": one["description"]} if one.get("description") else {}),
                "required": name in required,
            }
            for name, one in properties.items()
        ]
        fields = {"name": self.name, "title": self.title, "description": self.shown_description}
        known = {key: value for key, value in fields.items() if value}
        return {**known, **({"arguments": arguments} if arguments else {}), **self.metadata}

    @property
    def shown_description(self) -> str:
        """The description for clients: that of the docstring by default."""
        return self.description or self.tool.description

    def messages(self, value: object) -> list[dict[str, Any]]:
        """Return what the function returned as messages of the protocol.

        Raises:
            ToolError: A message has neither text nor content.
        """
        items = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
        return [one for item in items for one in self._converted(item)]

    def _converted(self, item: Any) -> list[dict[str, Any]]:
        if not isinstance(item, str) and hasattr(item, "to_dict") and hasattr(item, "role"):
            item = {"role": item.role, "content": item.content}  # a message of a conversation
        if not isinstance(item, Mapping):
            return [{"role": "user", "content": one} for one in content_blocks(to_output(item))]
        message = cast("Mapping[str, Any]", item)
        if message.get("role") not in {"user", "assistant"} or "content" not in message:
            raise ToolError(
                f"Prompt {self.name!r} returned a message that is not valid: expected the keys "
                f"role ('user' or 'assistant') and content, got {', '.join(map(str, message))}."
            )
        content = message["content"]
        parts = cast("list[Any]", content) if isinstance(content, list) else [content]
        return [{"role": message["role"], "content": _content(part)} for part in parts]


def _content(part: Any) -> dict[str, Any]:
    if isinstance(part, Mapping):  # protocol JSON
        return cast("dict[str, Any]", release_json(cast("Any", part), to="program"))
    if isinstance(part, str):
        return {"type": "text", "text": release_text(part, to="program")}
    output = to_output(part)
    if isinstance(output, list) and len(output) == 1:
        return content_block(output[0])
    return {"type": "text", "text": release_text(output_text(output), to="program")}


@overload
def prompt(func: Callable[..., Any], /) -> Prompt: ...
@overload
def prompt(
    func: None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    complete: Mapping[str, Complete] | None = None,
    run_in_thread: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Prompt]: ...
def prompt(
    func: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    complete: Mapping[str, Complete] | None = None,
    run_in_thread: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """Create a prompt from a function that returns its messages.

    ```python
    @prompt
    def review(code: str, language: Literal["python", "rust"] = "python") -> str:
        \"\"\"Review code.\"\"\"
        return f"Review this {language} code: {code}"
    ```

    The function is read and called like that of a `function_tool`. Clients send all arguments as
    text, which is converted to the types of the parameters. The function returns a text, which is a
    message of the user, or a list of texts, content blocks, messages of a conversation and messages
    of the form `{"role": "user", "content": ...}`. Their content is a text, a block or protocol
    JSON.

    Args:
        func: The function.
        name: The name for programs; by default that of the function.
        title: The name for people.
        description: What it is for; by default the description of the docstring.
        complete: Functions that complete arguments, by name: `complete={"city": find_cities}`. A
            function gets the typed text, and the other arguments as a mapping if it has a second
            parameter, and returns values, sync or async. `Literal`, enumerations and booleans are
            completed without a function.
        run_in_thread: Whether a sync function runs in a worker thread.
        metadata: Further fields of the protocol, such as `icons`, `_meta`.

    Raises:
        UserError: The function is not valid.
    """

    def create(func: Callable[..., Any]) -> Prompt:
        own_name = name or function_name(func)
        return Prompt(
            tool_of(func, own_name, description=description, run_in_thread=run_in_thread),
            name=own_name,
            title=title,
            description=description,
            complete=complete,
            metadata=metadata,
        )

    return create if func is None else create(func)


def _prompt_of(agent: Agent[Any, Any]) -> Prompt:
    """Return the prompt of an agent: its instructions, and an input."""

    async def instruct(ctx: ToolContext[Any], input: str = "") -> list[str]:
        instructions = await agent.system_prompt(ctx)
        return [text for text in (instructions, input) if text]

    tool = function_tool(instruct, output_schema=False)
    description = agent.handoff_description or f"Work as {agent.name}."
    return Prompt(tool, name=agent.as_tool().name, title=agent.name, description=description)


class PromptHandlers:
    """Handlers for listing and getting the prompts of a server.

    Args:
        prompts: The prompts and agents, or an object whose `get_prompts()` returns them.
        calls: Performs the calls.
        page_size: The number of prompts on one page.

    Raises:
        UserError: Two prompts have the same name, or one is not valid.
    """

    def __init__(self, prompts: Prompts, calls: ServedCalls, *, page_size: int) -> None:
        self._source: Any = prompts
        self._calls = calls
        self._page_size = page_size
        self._by_name: dict[str, Prompt] = {}
        self._completers: dict[str, Completer] = {}
        self.is_dynamic = hasattr(prompts, "get_prompts")
        if not self.is_dynamic:
            self._set(prompts)

    async def prompts(self) -> dict[str, Prompt]:
        """Return the current prompts by name, in order."""
        if self.is_dynamic:
            found = self._source.get_prompts()
            self._set(await found if inspect.isawaitable(found) else found)
        return self._by_name

    def _set(self, prompts: Any) -> None:
        by_name: dict[str, Prompt] = {}
        is_single = isinstance(prompts, Prompt) or hasattr(prompts, "system_prompt")
        for item in [prompts] if is_single else list(cast("Any", prompts)):
            is_agent = hasattr(cast("object", item), "system_prompt")
            one: Any = _prompt_of(cast("Any", item)) if is_agent else item
            if not isinstance(one, Prompt):
                raise UserTypeError(
                    f"prompts= expects prompts or agents, got {one!r:.80}. Use @prompt."
                )
            if by_name.setdefault(one.name, one) is not one:
                raise UserValueError(f"Two of the prompts to serve are named {one.name!r}.")
        self._completers = {
            name: self._completers[name] if self._by_name.get(name) is one else one.build()
            for name, one in by_name.items()
        }
        self._by_name = dict(sorted(by_name.items()))

    @property
    def has_completion(self) -> bool:
        """Whether an argument of a prompt can be completed."""
        return self.is_dynamic or any(one.has_values for one in self._completers.values())

    async def list(self, cursor: str | None) -> dict[str, Any]:
        """Return one page of `prompts/list`.

        Raises:
            RequestError: This server did not issue the cursor.
        """
        known = await self.prompts()
        page, next_cursor = page_of(known, cursor, self._page_size)
        result: dict[str, Any] = {"prompts": [known[name].describe() for name in page]}
        if next_cursor is not None:
            result["nextCursor"] = next_cursor
        return result

    async def get(
        self,
        name: str,
        arguments: Mapping[str, str] | None,
        request: MCPRequest,
        report: Report | None,
        ask: Callable[[Question], Any] | None,
    ) -> dict[str, Any]:
        """Return the messages of a prompt as the result of `prompts/get`.

        Args:
            name: The name.
            arguments: The arguments as texts.
            request: The request.
            report: Sends progress; `None` if the client has not requested any.
            ask: Sends questions to the client.

        Raises:
            RequestError: There is no such prompt, or its arguments are invalid, or it failed.
        """
        known = await self.prompts()
        found = known.get(name)
        if found is None:
            matches = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {matches[0]!r}?" if matches else ""
            raise RequestError(f"Unknown prompt: {name!r:.100}.{hint}")
        text = json.dumps(dict(arguments or {}))
        outcome = await self._calls.perform(found.tool, text, request, report, ask)
        if outcome.error is not None:
            code = INVALID_PARAMS if outcome.status == "invalid_args" else INTERNAL_ERROR
            text = self._calls.error_text(found.tool, outcome, outcome.error)
            raise RequestError(text, code) from outcome.error
        try:
            messages = found.messages(outcome.value)
        except AgentsToolsError as error:
            raise RequestError(str(error), INTERNAL_ERROR) from error
        description = found.shown_description
        return {"messages": messages, **({"description": description} if description else {})}

    async def completer(self, name: str) -> Completer | None:
        """Return the completer of a prompt; `None` if there is no such prompt."""
        await self.prompts()
        return self._completers.get(name)
