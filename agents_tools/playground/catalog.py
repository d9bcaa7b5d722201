"""The tools and agents of a target as JSON for the page."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserError
from agents_tools.playground.target_state import LoadedTarget, TargetProblem, short_place
from agents_tools.text.output import release_text
from agents_tools.wire.diff import DefinitionReader, ToolSchema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.playground.target_state import AnyAgent, Tool

__all__ = ["TargetCatalog", "agent_details", "asks_first", "shape_of"]

_KINDS = {"stream": "streaming", "agent": "agent", "mcp": "mcp", "class": "class"}
_LONGEST_INSTRUCTIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCatalog:
    """The tools and agents of a loaded target.

    Attributes:
        loaded: The loaded target.
        tools: The usable tools, by name.
        agents: The agents, by name.
        records: The tools as JSON, in order.
        problems: The problems of the other tools.
    """

    loaded: LoadedTarget
    tools: Mapping[str, Tool] = field(default_factory=dict[str, "Tool"])
    agents: Mapping[str, AnyAgent] = field(default_factory=dict[str, "AnyAgent"])
    records: tuple[dict[str, Any], ...] = ()
    problems: tuple[TargetProblem, ...] = ()

    @classmethod
    def of(cls, loaded: LoadedTarget) -> TargetCatalog:
        """Return the catalog of a loaded target."""
        tools: dict[str, Tool] = {}
        records: list[dict[str, Any]] = []
        problems: list[TargetProblem] = []
        for tool in loaded.tools:
            place = short_place(tool.origin.place or tool.name)
            if tool.name in tools:
                message = f"Another tool is called {tool.name!r}; only the first one is shown."
                problems.append(TargetProblem.at(place, message))
                continue
            try:
                records.append(_record(tool.build()))
            except UserError as error:
                problems.append(TargetProblem.at(place, str(error)))
            else:
                tools[tool.name] = tool
        return cls(
            loaded=loaded,
            tools=tools,
            agents=_by_name(loaded.agents),
            records=tuple(records),
            problems=tuple(problems),
        )

    def described(self) -> dict[str, Any]:
        """Return the catalog as JSON."""
        return {
            "tools": list(self.records),
            "agents": [_agent_record(name, agent) for name, agent in self.agents.items()],
        }


def asks_first(tool: Tool) -> bool:
    """Return whether the user must confirm a tool before it runs.

    This is the case for tools that are marked as destructive. Tools without annotations need no
    confirmation, or nearly every tool would. Tools that need approval request it themselves.
    """
    hints = tool.annotations
    return hints is not None and not hints.read_only and hints.destructive


def shape_of(tool: Tool) -> ToolSchema:
    """Return the schema that callers of a tool rely on."""
    return ToolSchema(
        name=tool.name,
        description=tool.description,
        parameters=tool.params_json_schema,
        output=tool.output_json_schema,
    )


def needs_approval(tool: Tool) -> bool:
    """Return whether a policy of a tool requires approval."""
    return "needs_approval()" in repr(tool)  # the repr lists the policies


def _record(tool: Tool) -> dict[str, Any]:
    schema = tool.params_json_schema
    return {
        "name": tool.name,
        "description": release_text(tool.description),
        "kind": _KINDS.get(tool.origin.kind, "function"),
        "annotations": None if tool.annotations is None else asdict(tool.annotations),
        "destructive": asks_first(tool),
        "needs_approval": needs_approval(tool),
        "schema": schema,
        "output_schema": tool.output_json_schema,
        "strict": tool.strict_json_schema,
        "source": _source(tool),
        "example": _example(schema),
    }


def _by_name(agents: Mapping[str, AnyAgent]) -> dict[str, AnyAgent]:
    """Return agents by their names, or by their attributes if names are not unique."""
    found: dict[str, AnyAgent] = {}
    for attribute, agent in agents.items():
        found[attribute if agent.name in found else agent.name] = agent
    return found


def _agent_record(name: str, agent: AnyAgent) -> dict[str, Any]:
    told = agent.instructions if isinstance(agent.instructions, str) else ""
    return {
        "name": name,
        "instructions": release_text(told, limit=_LONGEST_INSTRUCTIONS),
        "tools": [tool.name for tool in agent.known_tools],
        "model": _model_name(agent.model),
    }


def agent_details(agent: AnyAgent) -> dict[str, Any]:
    """Return the parts of an agent that a run can replace.

    The instructions are `None` if a function computes them for each run.
    """
    told = agent.instructions
    return {
        "instructions": release_text(told, to="program") if isinstance(told, str) else None,
        "model": _model_name(agent.model),
    }


def _model_name(model: object) -> str | None:
    if model is None or isinstance(model, str):
        return model
    name: object = getattr(model, "name", None)
    return name if isinstance(name, str) else type(model).__name__


# --- where a tool is


def _source(tool: Tool) -> dict[str, Any] | None:
    place = tool.origin.place or ""
    found = re.fullmatch(r"(.+):(\d+)", place)
    if found is not None:
        return {"file": release_text(short_place(found[1])), "line": int(found[2])}
    return _source_of_class(place)


def _source_of_class(place: str) -> dict[str, Any] | None:
    """Find a class by its module and name."""
    module, _, name = place.rpartition(".")
    kind: object = getattr(sys.modules.get(module), name, None)
    if not isinstance(kind, type):
        return None
    try:
        filename = inspect.getsourcefile(kind)
        line = inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return None
    return None if filename is None else {"file": release_text(short_place(filename)), "line": line}


# --- an example of a call


def _example(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the example arguments in the schema; `None` if there are none."""
    reader = DefinitionReader(schema)
    root = reader.read(dict(schema))
    whole = _first_example(root)
    if isinstance(whole, dict):
        return cast("dict[str, Any]", whole)
    properties = cast("Mapping[str, Any]", root.get("properties") or {})
    required = cast("list[str]", root.get("required") or [])
    given = {name: _first_example(reader.read(one)) for name, one in properties.items()}
    found = {name: value for name, value in given.items() if value is not None}
    if not found or any(name not in found for name in required):
        return None
    return found


def _first_example(schema: Mapping[str, Any]) -> Any:
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        return cast("list[Any]", examples)[0]
    return schema.get("const")
