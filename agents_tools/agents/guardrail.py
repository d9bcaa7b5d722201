"""Guardrails of agents: checks of the input of a run and of its final output."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast, overload

from agents_tools.agents.type_variables import ContextT
from agents_tools.concurrency.supervisor import cancel_tasks
from agents_tools.content.items import MessageInputItem
from agents_tools.errors import (
    InputGuardrailTripwireTriggered,
    OutputGuardrailTripwireTriggered,
    UserTypeError,
)
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agents_tools.agents.model import ModelResponse
    from agents_tools.content.items import Item

__all__ = [
    "GuardrailFunctionOutput",
    "Guardrails",
    "InputGuardrail",
    "InputGuardrailResult",
    "OutputGuardrail",
    "OutputGuardrailResult",
    "check_guardrails",
    "input_guardrail",
    "output_guardrail",
]


@dataclass(frozen=True, slots=True)
class GuardrailFunctionOutput:
    """The result of a guardrail function.

    Attributes:
        output_info: Any information about the check, for the application.
        tripwire_triggered: Whether the run stops with an exception.
    """

    output_info: Any
    tripwire_triggered: bool


@dataclass(frozen=True, slots=True)
class InputGuardrail(Generic[ContextT]):
    """A check of the input of a run, created by `input_guardrail`.

    Attributes:
        guardrail_function: The function of (context, agent, input); see `input_guardrail`.
        name: The name in error messages; by default that of the function.
        run_in_parallel: Whether the first request to the model starts before the check has ended.
    """

    guardrail_function: Callable[..., Any]
    name: str | None = None
    run_in_parallel: bool = True

    def __post_init__(self) -> None:
        _check_function("input_guardrail", self.guardrail_function)

    def get_name(self) -> str:
        """Return the name of the guardrail."""
        return self.name or _name_of(self.guardrail_function)

    async def run(self, agent: Any, input: Any, context: Any) -> InputGuardrailResult:
        """Check an input.

        Args:
            agent: The agent of the run.
            input: The text, or the list of items.
            context: The context of the run.

        Raises:
            UserError: The function returned something else than a `GuardrailFunctionOutput`.
        """
        output = await _call(self.get_name(), self.guardrail_function, context, agent, input)
        return InputGuardrailResult(self, output)


@dataclass(frozen=True, slots=True)
class OutputGuardrail(Generic[ContextT]):
    """A check of the final output of a run, created by `output_guardrail`.

    Attributes:
        guardrail_function: The function of (context, agent, output); see `output_guardrail`.
        name: The name in error messages; by default that of the function.
    """

    guardrail_function: Callable[..., Any]
    name: str | None = None

    def __post_init__(self) -> None:
        _check_function("output_guardrail", self.guardrail_function)

    def get_name(self) -> str:
        """Return the name of the guardrail."""
        return self.name or _name_of(self.guardrail_function)

    async def run(self, context: Any, agent: Any, agent_output: Any) -> OutputGuardrailResult:
        """Check a final output.

        Args:
            context: The context of the run.
            agent: The agent that has the output.
            agent_output: The output.

        Raises:
            UserError: The function returned something else than a `GuardrailFunctionOutput`.
        """
        output = await _call(self.get_name(), self.guardrail_function, context, agent, agent_output)
        return OutputGuardrailResult(self, agent_output, agent, output)


@dataclass(frozen=True, slots=True)
class InputGuardrailResult:
    """The result of a check of the input.

    Attributes:
        guardrail: The guardrail.
        output: The result of its function.
    """

    guardrail: InputGuardrail[Any]
    output: GuardrailFunctionOutput


@dataclass(frozen=True, slots=True)
class OutputGuardrailResult:
    """The result of a check of the final output.

    Attributes:
        guardrail: The guardrail.
        agent_output: The final output.
        agent: The agent that has the output.
        output: The result of the function of the guardrail.
    """

    guardrail: OutputGuardrail[Any]
    agent_output: Any
    agent: Any
    output: GuardrailFunctionOutput


@overload
def input_guardrail(func: Callable[..., Any], /) -> InputGuardrail[Any]: ...
@overload
def input_guardrail(
    *, name: str | None = None, run_in_parallel: bool = True
) -> Callable[[Callable[..., Any]], InputGuardrail[Any]]: ...
def input_guardrail(
    func: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    run_in_parallel: bool = True,
) -> Any:
    """Create a check of the input of a run, for `Agent(input_guardrails=[...])`.

    Args:
        func: A function of (context, agent, input) that returns a `GuardrailFunctionOutput`; sync
            or async. The input is text, or a list of JSON items.
        name: The name in error messages; by default that of the function.
        run_in_parallel: Whether the first request to the model starts before the check has ended.
            If the check fails, the request is cancelled. No tool is called before all checks have
            passed.
    """

    def decorate(func: Callable[..., Any]) -> InputGuardrail[Any]:
        return InputGuardrail(func, name, run_in_parallel)

    return decorate if func is None else decorate(func)


@overload
def output_guardrail(func: Callable[..., Any], /) -> OutputGuardrail[Any]: ...
@overload
def output_guardrail(
    *, name: str | None = None
) -> Callable[[Callable[..., Any]], OutputGuardrail[Any]]: ...
def output_guardrail(func: Callable[..., Any] | None = None, /, *, name: str | None = None) -> Any:
    """Create a check of the final output of a run, for `Agent(output_guardrails=[...])`.

    Args:
        func: A function of (context, agent, output) that returns a `GuardrailFunctionOutput`; sync
            or async.
        name: The name in error messages; by default that of the function.
    """

    def decorate(func: Callable[..., Any]) -> OutputGuardrail[Any]:
        return OutputGuardrail(func, name)

    return decorate if func is None else decorate(func)


class _CheckedAgent(Protocol):
    """The parts of an agent that its guardrails use."""

    @property
    def name(self) -> str: ...
    @property
    def input_guardrails(self) -> Sequence[InputGuardrail[Any]]: ...
    @property
    def output_guardrails(self) -> Sequence[OutputGuardrail[Any]]: ...


@dataclass(slots=True)
class Guardrails:
    """The guardrails of one run: of the input for its first agent, of the output for its last one.

    Attributes:
        agent: The first agent.
        is_pending: Whether a check of the input has not passed yet.
        input_results: The results of the checks of the input that have ended.
        output_results: The results of the checks of the final output.
    """

    agent: _CheckedAgent
    is_pending: bool
    input_results: list[InputGuardrailResult] = field(default_factory=list[InputGuardrailResult])
    output_results: list[OutputGuardrailResult] = field(default_factory=list[OutputGuardrailResult])

    async def request(
        self, ask: Callable[[], Awaitable[ModelResponse]], items: Sequence[Item], context: Any
    ) -> ModelResponse:
        """Return the first response of the model, after all checks of the input have passed.

        Args:
            ask: Requests the response. It is cancelled if a check fails.
            items: The input of the run.
            context: The context of the run.

        Raises:
            InputGuardrailTripwireTriggered: A guardrail refused the input.
        """
        self.input_results.clear()
        checks = self.agent.input_guardrails
        given = _input_of(items)
        await self._check([one for one in checks if not one.run_in_parallel], given, context)
        asking = asyncio.ensure_future(ask())
        checking = asyncio.ensure_future(
            self._check([one for one in checks if one.run_in_parallel], given, context)
        )
        try:
            await asyncio.wait({asking, checking}, return_when=asyncio.FIRST_EXCEPTION)
            # If both have failed, the refusal counts: its reason is the cause that users can fix.
            if checking.done():
                checking.result()
            else:
                asking.result()
            response = await asking
        finally:
            await cancel_tasks([checking, asking], name=self.agent.name)
        return response

    async def _check(
        self, guardrails: Sequence[InputGuardrail[Any]], given: Any, context: Any
    ) -> None:
        """Check the input with several guardrails at once; the first refusal ends all checks."""
        agent = self.agent
        tasks = [asyncio.ensure_future(one.run(agent, given, context)) for one in guardrails]
        try:
            for done in asyncio.as_completed(tasks):
                result = await done
                self.input_results.append(result)
                if result.output.tripwire_triggered:
                    raise InputGuardrailTripwireTriggered(
                        f"Input guardrail {result.guardrail.get_name()!r} stopped the run of agent "
                        f"{agent.name!r}.",
                        guardrail_result=result,
                    )
        finally:
            await cancel_tasks(tasks, name=agent.name)

    async def check_output(self, agent: _CheckedAgent, output: Any, context: Any) -> None:
        """Check the final output.

        Args:
            agent: The last agent.
            output: Its output.
            context: The context of the run.

        Raises:
            OutputGuardrailTripwireTriggered: A guardrail refused the output.
        """
        for guardrail in agent.output_guardrails:
            result = await guardrail.run(context, agent, output)
            self.output_results.append(result)
            if result.output.tripwire_triggered:
                raise OutputGuardrailTripwireTriggered(
                    f"Output guardrail {guardrail.get_name()!r} refused the output of agent "
                    f"{agent.name!r}.",
                    guardrail_result=result,
                )


def check_guardrails(agent: str, field: str, guardrails: Any, kind: type) -> None:
    """Raise an error for a list of guardrails of an agent that has a wrong element.

    Args:
        agent: The name of the agent.
        field: The name of the field.
        guardrails: Its value.
        kind: The class of the elements.
    """
    wrong = guardrails
    if isinstance(guardrails, (list, tuple)):
        elements = cast("Sequence[Any]", guardrails)
        wrong = next((one for one in elements if not isinstance(one, kind)), None)
        if wrong is None:
            return
    decorator = field.removesuffix("s")
    raise UserTypeError(
        f"The {field} of agent {agent!r} are not valid: expected a list of functions with "
        f"@{decorator}, got {type_with_article(wrong)}. Import {decorator} from agents_tools; "
        f"agents_tools.policies.{decorator} checks the calls of a tool."
    )


def _input_of(items: Sequence[Item]) -> str | list[dict[str, Any]]:
    """Return the input as the caller gave it: text, or a list of JSON items."""
    only = items[0] if len(items) == 1 else None
    if isinstance(only, MessageInputItem) and only.role == "user" and isinstance(only.content, str):
        return only.content
    return [item.to_dict() for item in items]


def _check_function(decorator: str, function: object) -> None:
    if not callable(function):
        raise UserTypeError(
            f"{decorator} expects a function, got {type_with_article(function)}. Write "
            f"`@{decorator}` or `@{decorator}(...)` directly above the function."
        )


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


async def _call(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    output = function(*arguments)
    if hasattr(output, "__await__"):
        output = await output
    if not isinstance(output, GuardrailFunctionOutput):
        raise UserTypeError(
            f"Guardrail {name!r} returned a wrong value: expected a GuardrailFunctionOutput, got "
            f"{type_with_article(output)}."
        )
    return output
