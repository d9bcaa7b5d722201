"""Every policy works on every kind of tool."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agents_tools import (
    Action,
    Agent,
    FunctionTool,
    NotifyStreamEvent,
    Observation,
    Runner,
    ToolContext,
    ToolDefinition,
    ToolExecutor,
    function_tool,
    policies,
    streaming_tool,
)
from agents_tools.content import MessageInputItem
from agents_tools.policies import ArgTransform
from agents_tools.testing import ScriptedModel, tool_call

Tool: TypeAlias = FunctionTool[..., Any]
ROOT = Path(__file__).parents[2]

pending_errors: list[Exception] = []


def raise_next() -> None:
    """Raise the next pending error, if any."""
    if pending_errors:
        raise pending_errors.pop()


# --- the kinds of tools: each emits a note, then returns its text with a prefix


def make_sync() -> Tool:
    @function_tool
    def echo(ctx: ToolContext[Any], text: str) -> str:
        ctx.notify(f"got {text}")
        raise_next()
        return f"> {text}"

    return echo


def make_async() -> Tool:
    @function_tool
    async def echo(ctx: ToolContext[Any], text: str) -> str:
        ctx.notify(f"got {text}")
        raise_next()
        return f"> {text}"

    return echo


def make_streaming() -> Tool:
    @streaming_tool
    async def echo(text: str) -> AsyncGenerator[Any]:
        yield NotifyStreamEvent(f"got {text}")
        raise_next()
        yield f"> {text}"

    return echo


def make_class_based() -> Tool:
    class EchoAction(Action):
        text: str

    class EchoObservation(Observation):
        pass

    class Echo(ToolExecutor[EchoAction, EchoObservation]):
        def __call__(self, action: EchoAction, conversation: Any = None) -> EchoObservation:
            policies_context().notify(f"got {action.text}")
            raise_next()
            return EchoObservation.from_text(f"> {action.text}")

    class EchoTool(ToolDefinition[EchoAction, EchoObservation]):
        @classmethod
        def create(cls, conv_state: Any = None) -> Sequence[EchoTool]:
            return [
                cls(
                    description="Echo.",
                    action_type=EchoAction,
                    observation_type=EchoObservation,
                    executor=Echo(),
                )
            ]

    (tool,) = EchoTool.create()
    return tool.as_function_tool()


def policies_context() -> ToolContext[Any]:
    from agents_tools.tool import current_context

    context = current_context()
    assert context is not None
    return context


def make_agent() -> Tool:
    def answer(request: Any) -> str:
        task = str(request.input[-1].content if hasattr(request.input[-1], "content") else "")
        policies_context().notify(f"got {task}")
        raise_next()
        return f"> {last_text(request)}"

    model = ScriptedModel([answer] * 5)
    agent = Agent("Echo", model=model)
    return agent.as_tool("echo", "Echo.", parameters=Task)


class Task(Action):
    text: str


def last_text(request: Any) -> str:
    import json

    item = request.input[-1]
    shown = item if isinstance(item, dict) else item.to_dict()
    found = json.dumps(shown)
    for word in ("hello", "other", "fixed"):
        if word in found:
            return word
    return "?"


@contextlib.asynccontextmanager
async def serve(kind: str) -> AsyncGenerator[Tool]:
    from agents_tools.mcp import MCPToolManager, mcp_server

    async with MCPToolManager() as manager:
        if kind == "mcp":
            server = mcp_server([make_async()])._server.server
            await manager.add_server("other", server=server)
        else:
            await manager.add_server(
                "other",
                command=sys.executable,
                args=["-m", "tests.policies.test_every_tool"],
                cwd=str(ROOT),
            )
        (tool,) = manager.get_tools()
        yield policies.rename("echo")(tool)


MAKERS: dict[str, Callable[[], Tool]] = {
    "sync": make_sync,
    "async": make_async,
    "streaming": make_streaming,
    "class-based": make_class_based,
    "agent": make_agent,
}
KINDS = [*MAKERS, "mcp", "mcp stdio"]


@contextlib.asynccontextmanager
async def made(kind: str) -> AsyncGenerator[Tool]:
    if kind in MAKERS:
        yield MAKERS[kind]()
    else:
        async with serve(kind) as tool:
            yield tool


# --- the policies: the required effect on any kind of tool

HELLO = '{"text": "hello"}'


async def call_tool(tool: Tool, args: str = HELLO, *, context: Any = None) -> tuple[str, str]:
    outcome = await tool.call(context, args)
    output: Any = outcome.output
    text = output if isinstance(output, str) else "".join(getattr(b, "text", "") for b in output)
    return outcome.status, text


OK = ("ok", "> hello")


async def timeout(tool: Tool) -> None:
    assert await call_tool(policies.timeout(30)(tool)) == OK


async def retry(tool: Tool) -> None:
    assert await call_tool(policies.retry(2, backoff=0)(tool)) == OK


async def limit(tool: Tool) -> None:
    limited = policies.limit(calls=1, concurrent=1, per_second=1_000, burst=2)(tool)
    assert await call_tool(limited) == OK
    assert (await call_tool(limited))[0] == "denied"


async def background(tool: Tool) -> None:
    model = ScriptedModel([tool_call(tool.name, HELLO, call_id="c"), "Waiting.", "Done."])
    agent = Agent("A", tools=[policies.background()(tool)], model=model)
    result = await Runner.run(agent, "Go.")
    (message,) = [one for one in result.new_items if isinstance(one, MessageInputItem)]
    assert message.call_id == "c"
    texts = [message.content] if isinstance(message.content, str) else message.content
    text = "".join(getattr(one, "text", str(one)) for one in texts)
    assert 'status="ok">' in text
    assert OK[1] in text


async def exclusive(tool: Tool) -> None:
    alone = policies.exclusive()(tool)
    assert alone.metadata["agents_tools"]["exclusive"] is True
    assert await call_tool(alone) == OK


async def circuit_breaker(tool: Tool) -> None:
    assert await call_tool(policies.circuit_breaker(1)(tool)) == OK


async def cache(tool: Tool) -> None:
    cached = policies.cache()(tool)
    assert await call_tool(cached) == OK
    again = await cached.call(None, '{ "text":"hello" }')
    assert again.status == "ok"
    assert again.metadata is not None
    assert again.metadata["agents_tools"]["cache"] == "hit"
    assert await call_tool(cached) == OK


async def needs_approval(tool: Tool) -> None:
    asked = policies.needs_approval(lambda _, arguments: arguments["text"] == "hello")(tool)
    assert (await call_tool(asked))[0] == "denied"
    assert await call_tool(asked, '{"text": "other"}') == ("ok", "> other")


async def approve_destructive(tool: Tool) -> None:
    assert (await call_tool(policies.approve_destructive()(tool)))[0] == "denied"


async def security_risk(tool: Tool) -> None:
    risky = policies.security_risk()(tool)
    assert "security_risk" in risky.params_json_schema["properties"]
    assert await call_tool(risky, '{"security_risk": "LOW", "text": "hello"}') == OK


async def input_guardrail(tool: Tool) -> None:
    guarded = policies.input_guardrail(lambda _, arguments: {"text": "other"})(tool)
    assert await call_tool(guarded) == ("ok", "> other")


async def output_guardrail(tool: Tool) -> None:
    guarded = policies.output_guardrail(lambda _, value: "seen")(tool)
    assert await call_tool(guarded) == ("ok", "seen")


async def hide(tool: Tool) -> None:
    hidden = policies.hide(text="fixed")(tool)
    assert hidden.params_json_schema["properties"] == {}
    assert await call_tool(hidden, "{}") == ("ok", "> fixed")


async def transform(tool: Tool) -> None:
    changed = policies.transform(text=ArgTransform(name="words", default="fixed"))(tool)
    assert list(changed.params_json_schema["properties"]) == ["words"]
    assert await call_tool(changed, '{"words": "hello"}') == OK
    assert await call_tool(changed, "{}") == ("ok", "> fixed")
    assert (await call_tool(changed))[0] == "invalid_args"


async def rename(tool: Tool) -> None:
    renamed = policies.rename("say")(tool)
    assert renamed.name == "say"
    assert await call_tool(renamed) == OK


async def repair_json(tool: Tool) -> None:
    repaired = policies.repair_json()(tool)
    assert await call_tool(repaired, "{'text': 'hello',}") == OK
    assert (await call_tool(repaired, '{"text": "hel'))[0] == "invalid_args"


async def truncate(tool: Tool) -> None:
    assert await call_tool(policies.truncate(3)(tool)) != OK


async def offload(tool: Tool) -> None:
    offloading = policies.offload(5)
    outcome = await offloading(tool).call(None, HELLO)
    assert outcome.metadata is not None
    handle = outcome.metadata["agents_tools"]["offloaded"]
    assert "hello" not in str(outcome.output).partition("[")[0]
    found = await offloading.reader.invoke(handle=handle, search="hello")
    assert found == "offset 2: …> hello…"


async def redact(tool: Tool) -> None:
    redacted = policies.redact("h[ea]llo", replacement="#")(tool)
    events: list[Any] = []  # not with `listen`, which would also record a server in this process
    assert await call_tool(redacted, context=ToolContext(emit=events.append)) == ("ok", "> #")
    notes = [event for event in events if isinstance(event, NotifyStreamEvent)]
    assert notes
    assert not [event for event in notes if "hello" in event.data]


async def with_metadata(tool: Tool) -> None:
    assert policies.with_metadata(mine=1)(tool).metadata["mine"] == 1


CHECKS: list[Callable[[Tool], Awaitable[None]]] = [
    timeout,
    retry,
    limit,
    background,
    exclusive,
    circuit_breaker,
    cache,
    needs_approval,
    approve_destructive,
    security_risk,
    input_guardrail,
    output_guardrail,
    hide,
    transform,
    rename,
    repair_json,
    truncate,
    offload,
    redact,
    with_metadata,
]


@pytest.mark.parametrize("kind", KINDS)
async def test_every_policy_works_on_every_kind_of_tool(kind: str) -> None:
    faults: list[str] = []
    async with made(kind) as tool:
        for check in CHECKS:
            try:  # the scripted model has a limited number of answers
                await check(make_agent() if kind == "agent" else tool)
            except Exception as error:  # noqa: BLE001 - all of them are reported at once
                faults.append(f"{check.__name__}: {type(error).__name__}: {error}")
    assert not faults, "\n\n".join(faults)


@pytest.mark.parametrize("kind", [*MAKERS, "mcp"])
async def test_policies_see_the_failures_of_every_kind_of_tool(kind: str) -> None:
    """An exception of the body is an error; a failure reported by a server is a result."""
    async with made(kind) as tool:
        pending_errors[:] = [ConnectionError("two"), ConnectionError("one")]
        tries = policies.retry(3, backoff=0)(tool)
        statuses = [(await call_tool(tries))[0]]
        pending_errors[:] = [ConnectionError("two"), ConnectionError("one")]
        guarded = policies.circuit_breaker(2)(policies.cache(shared=True)(tool))
        statuses += [(await call_tool(guarded))[0] for _ in range(3)]
        pending_errors.clear()
    if kind == "mcp":
        assert statuses == ["tool_error", "tool_error", "tool_error", "ok"]
    else:
        assert statuses == ["ok", "tool_error", "tool_error", "overloaded"]


def test_every_policy_has_a_check() -> None:
    """`isolate` accepts only functions of modules and has its own tests."""
    names = {check.__name__ for check in CHECKS}
    functions = {name for name in policies.__all__ if name.islower()}
    assert functions - names <= {"isolate"}


if __name__ == "__main__":
    from agents_tools.mcp import serve as serve_stdio

    serve_stdio([make_async()])
