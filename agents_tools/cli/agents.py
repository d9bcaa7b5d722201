"""Find the agents of a file or module, and choose one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agents_tools.cli.errors import CommandError
from agents_tools.cli.target import attribute_of, is_agent, load_target, parted
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from agents_tools.agents.agent import Agent

    AnyAgent = Agent[Any, Any]

__all__ = ["agents_in", "described_model", "load_agent", "tool_names"]


def load_agent(target: str) -> AnyAgent:
    """Import a target and return its agent.

    Args:
        target: `file.py` or `package.module` with one agent, or with one that calls all others;
            or either with `:attribute` or `:name of the agent`.

    Raises:
        CommandError: The target does not exist, or it is ambiguous which agent to use.
    """
    place, attribute = parted(target)
    module = load_target(place)
    known = agents_in(module)
    if not attribute:
        return _only(known, target)
    if attribute in known:
        return known[attribute]
    for agent in known.values():
        if agent.name == attribute:
            return agent
    return _of_attribute(module, attribute, place, known)


def agents_in(value: Any) -> dict[str, AnyAgent]:
    """Return the agents in a module, a list or a mapping, by the name to use for each.

    Args:
        value: The value of a target.
    """
    if is_agent(value):
        return {value.name: value}
    if isinstance(value, (list, tuple)):
        members = {agent.name: agent for agent in cast("list[Any]", value) if is_agent(agent)}
    elif isinstance(value, Mapping):
        members = dict(cast("Mapping[Any, Any]", value))
    else:
        members = dict(getattr(value, "__dict__", {}))
    found: dict[str, AnyAgent] = {}
    for name, member in members.items():
        if is_agent(member) and all(member is not other for other in found.values()):
            found[str(name)] = member
    return found


def tool_names(agent: AnyAgent) -> list[str]:
    """Return the names of an agent's tools, including hosted tools."""
    return [tool.name for tool in agent.known_tools]


def described_model(agent: AnyAgent) -> str | None:
    """Return the name of an agent's own model, or its class if it has no name."""
    if agent.model is None or isinstance(agent.model, str):
        return agent.model
    name = getattr(agent.model, "name", None)
    return name if isinstance(name, str) else type(agent.model).__name__


def _of_attribute(module: Any, attribute: str, place: str, known: dict[str, AnyAgent]) -> AnyAgent:
    value: object
    try:
        value = attribute_of(module, attribute, place)
    except CommandError as error:
        if not known:
            raise
        names = [*known, *(agent.name for agent in known.values())]
        near = difflib.get_close_matches(attribute, names, n=1)
        raise CommandError(
            f"{place} has no agent {attribute!r}.",
            hint=f"Did you mean {near[0]!r}?" if near else f"Agents: {_listed(known)}.",
        ) from error
    target = f"{place}:{attribute}"
    holds = is_agent(value) or isinstance(value, (list, tuple, dict))
    found = agents_in(cast("object", value)) if holds else {}
    if not found:
        kind = (
            "a tool"
            if isinstance(value, FunctionTool)
            else f"{type_with_article(cast('object', value))}"
        )
        hint = f"Agents: {_listed(known)}." if known else None
        if isinstance(value, FunctionTool):
            hint = f"To call it: agents-tools call {target}"
        raise CommandError(f"{target} is not an agent but {kind}.", hint=hint)
    return _only(found, target)


def _only(found: dict[str, AnyAgent], target: str) -> AnyAgent:
    """Return the only agent, or the only one that is not a tool of another one."""
    if not found:
        raise CommandError(
            f"{target} has no agent.",
            hint="Create one: agent = Agent(name=..., instructions=..., tools=[...]). "
            f"To call its tools: agents-tools call {target}",
        )
    called = {
        tool.origin.agent
        for agent in found.values()
        for tool in agent.known_tools
        if isinstance(tool, FunctionTool)
    }
    first = [agent for agent in found.values() if agent.name not in called]
    if len(found) == 1:
        return next(iter(found.values()))
    if len(first) == 1:
        return first[0]
    raise CommandError(
        f"{target} has {len(found)} agents: {_listed(found)}.",
        hint=f"Name the one to run: agents-tools run {target}:{next(iter(found))} INPUT",
    )


def _listed(found: dict[str, AnyAgent]) -> str:
    return ", ".join(
        name if name == agent.name else f"{name} ({agent.name})" for name, agent in found.items()
    )
