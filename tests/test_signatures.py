"""The types of public parameters, and the errors for values of wrong types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from agents_tools import (
    Agent,
    RunConfig,
    Runner,
    UserError,
    function_tool,
    handoff,
    policies,
    streaming_tool,
)
from tests.public_modules import described_package, public_modules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _public_parameters() -> Iterator[tuple[str, str]]:
    """Yield the path and the annotation of each parameter of the public API."""
    package = described_package()
    seen: set[str] = set()
    for path, names in public_modules().items():
        module = package[path.partition(".")[2]] if "." in path else package
        for name in names:
            member: Any = module.members.get(name)
            if member is None:
                continue
            found = member.final_target if member.is_alias else member
            if found.path in seen:
                continue
            seen.add(found.path)
            methods = [
                one
                for key, one in getattr(found, "members", {}).items()
                if not one.is_alias
                and one.is_function
                and (not key.startswith("_") or key in {"__init__", "__call__"})
            ]
            for function in methods if found.is_class else [found] if found.is_function else []:
                for parameter in function.parameters if not function.overloads else ():
                    if parameter.name not in {"self", "cls"}:
                        yield f"{function.path}({parameter.name})", str(parameter.annotation)


def test_few_public_parameters_accept_anything_without_saying_so() -> None:
    parameters = list(_public_parameters())
    untyped = [path for path, annotation in parameters if annotation in {"Any", "None"}]
    assert len(untyped) < 0.03 * len(parameters), untyped


def _double(number: int) -> int:
    """Double a number."""
    return 2 * number


def _ask(context: Any, arguments: Any, call_id: str) -> bool:
    """Decide as in openai-agents, which also passes the id of the call."""
    raise AssertionError


_tool = function_tool(_double)
_wrong: Any = "never"
_MISTAKES: dict[str, Callable[[], Any]] = {
    "Tool '_double': option is_enabled= expects a boolean, or a function": lambda: function_tool(
        _double, is_enabled=_wrong
    ),
    "Tool '_double': option strict_mode= expects True or False": lambda: function_tool(
        _double, strict_mode=_wrong
    ),
    "Tool '_double': option docstring_style= expects 'google'": lambda: function_tool(
        _double, docstring_style=_wrong
    ),
    "streaming_tool(...) has no option 'enable_bracket'. Did you mean 'enable_bracketing'?": (
        lambda: cast("Any", streaming_tool)(enable_bracket=False)
    ),
    "function_tool(...) has no option 'name'. Did you mean 'name_override'?": lambda: cast(
        "Any", function_tool
    )(name="double"),
    "The context of a call of tool '_double' is not valid: expected a ToolContext, a RunCon": (
        lambda: _tool.invoke_sync("{}", context=_wrong)
    ),
    "Tool '_double': option metadata= expects a dictionary": lambda: _tool.with_(metadata=_wrong),
    "Tool '_double': option annotations= expects ToolAnnotations": lambda: _tool.with_(
        annotations=_wrong
    ),
    "Tool '_double': option failure_error_function= expects a func": lambda: _tool.with_(
        failure_error_function=_wrong
    ),
    "Agent 'a': model_settings= expects ModelSettings": lambda: Agent("a", model_settings=_wrong),
    "Agent 'a': hooks= expects AgentHooks or RunHooks": lambda: Agent("a", hooks=_wrong),
    "Agent 'a': tools= expects a list of tools": lambda: Agent("a", tools=_tool),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    r"as_tool(streaming=...) of agent 'a' expects True or False": lambda: Agent("a").as_tool(
        streaming=_wrong
    ),
    r"as_tool(on_stream=...) of agent 'a' expects a function": lambda: Agent("a").as_tool(
        on_stream=_wrong
    ),
    "Agent(...) has no option 'instruction'. Did you mean 'instructions'?": lambda: cast(
        "Any", Agent
    )("a", instruction="x"),
    "Agent(...) has no option 'system'. Its options: name, instructions,": lambda: cast(
        "Any", Agent
    )("a", system="x"),
    "Runner needs an agent: expected an Agent, got a str. Pass the agent as the first argument.": (
        lambda: cast("Any", Runner).run_sync("Go.", Agent("a"))
    ),
    "got an int. Pass the arguments by name, or call the function itself: `tool(...)`.": (
        lambda: cast("Any", _tool).invoke_sync(3)
    ),
    "needs_approval expects a function of (context, arguments), got _ask(context": (
        lambda: policies.needs_approval(cast("Any", _ask))
    ),
    "policies.input_guardrail expects a function of (context, arguments), got _double(": (
        lambda: policies.input_guardrail(cast("Any", _double))
    ),
    "policies.output_guardrail expects a function of (context, value), got a str.": (
        lambda: policies.output_guardrail(_wrong)
    ),
    "RunConfig(model_settings=...) expects ModelSettings": lambda: RunConfig(model_settings=_wrong),
    "cache(ttl=...) is not valid": lambda: policies.cache(ttl=_wrong),
    "limit(concurrent=...) is not valid": lambda: policies.limit(concurrent=_wrong),
}


@pytest.mark.parametrize("message", _MISTAKES)
def test_a_value_of_a_wrong_type_is_refused_by_the_call_that_passes_it(message: str) -> None:
    with pytest.raises(UserError) as caught:
        _MISTAKES[message]()
    assert message in str(caught.value)


class _Unreadable:
    """A callable of another library whose signature cannot be read."""

    __signature__ = "(context, agent)"

    def __call__(self, *arguments: Any) -> Any:
        """Accept all arguments."""


class _Ask:
    async def __call__(self, context: Any) -> str:
        raise AssertionError


_OPTIONS: dict[str, Callable[[Any], Any]] = {
    "(context, agent)": lambda function: Agent("a", instructions=function),
    "(context, input)": lambda function: handoff(
        Agent("b"), on_handoff=function, input_type=dict[str, int]
    ),
    "(context, arguments)": policies.input_guardrail,
    "(context, value)": policies.output_guardrail,
}


@pytest.mark.parametrize("parameters", _OPTIONS)
def test_a_function_is_refused_only_if_its_known_parameters_do_not_fit(parameters: str) -> None:
    """Some builtins have no signature, and asynchronous methods are functions, too."""
    option = _OPTIONS[parameters]
    for function in (max, _Unreadable()):
        option(function)
    with pytest.raises(UserError) as caught:
        option(_Ask())
    assert f"a function of {parameters}, got " in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "cache",
        "exclusive",
        "hide",
        "isolate",
        "limit",
        "repair_json",
        "retry",
        "timeout",
        "truncate",
    ],
)
@pytest.mark.parametrize("target", [_double, _tool], ids=["function", "tool"])
def test_a_policy_without_parentheses_is_refused_with_the_correct_form(
    name: str, target: Any
) -> None:
    with pytest.raises(UserError) as caught:
        getattr(policies, name)(target)
    assert str(caught.value) == (
        f"policies.{name} expects its options in parentheses, got '_double'. Write "
        f"@policies.{name}(...) above @function_tool."
    )


def test_a_policy_below_the_decorator_is_refused_at_once() -> None:
    with pytest.raises(UserError, match=r"<policy timeout\(3\)> is below @function_tool"):
        function_tool(policies.timeout(3))
