"""The records of the linter: a rule, what it found, and the tool that it looks at."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.toolset.lint.docstrings import documented_parameters
from agents_tools.wire.diff import DefinitionReader, Schema, parameters_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from agents_tools.tool.tool import FunctionTool

    Tool: TypeAlias = FunctionTool[..., Any]

__all__ = ["Finding", "Level", "Rule", "Subject"]

Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of the linter.

    Attributes:
        code: The stable name of the rule.
        level: `error` if the tool cannot work, `warning` if it works badly.
        summary: A sentence that says what the rule finds.
        remedy: A sentence that says how to repair it.
        default: Whether the rule is on unless it is disabled; the others must be enabled.
    """

    code: str
    level: Level
    summary: str
    remedy: str
    default: bool = True

    @property
    def anchor(self) -> str:
        """The place in the documentation, such as `reference/lint-rules.md#no-unit`."""
        return f"reference/lint-rules.md#{self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem of a tool.

    Attributes:
        level: `error` if the tool cannot work, `warning` if it works badly.
        code: The stable name of the rule.
        tool: The name of the tool.
        message: The problem and its remedy.
        place: The file and line; `None` if they are unknown.
        server: The MCP server of the tool; `None` if it has none.
    """

    level: Level
    code: str
    tool: str
    message: str
    place: str | None = None
    server: str | None = None


@dataclass(eq=False)
class Subject:
    """A tool with the parts that rules look at.

    Attributes:
        tool: The tool, whose declaration is valid.
    """

    tool: Tool
    reader: DefinitionReader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = DefinitionReader(self.tool.json_schema)

    @cached_property
    def name(self) -> str:
        """The name without the prefix that a client has added."""
        return self.tool.origin.wire_name or self.tool.name

    @cached_property
    def description(self) -> str:
        """The description without whitespace around it."""
        return self.tool.description.strip()

    @cached_property
    def parameters(self) -> dict[str, Schema]:
        """The schemas of the parameters by name, with references resolved."""
        found = parameters_of(self.tool.json_schema)
        return {name: self.reader.read(schema) for name, schema in found.items()}

    @cached_property
    def documented(self) -> dict[str, str]:
        """The parameters that the description documents in a section, with their texts."""
        return documented_parameters(self.description)

    @cached_property
    def required(self) -> frozenset[str]:
        """The names of the parameters that a call must have."""
        names = self.tool.json_schema.get("required")
        listed = cast("list[object]", names) if isinstance(names, list) else []
        return frozenset(name for name in listed if isinstance(name, str))

    def remedy(self, in_code: str, in_schema: str) -> str:
        """Return what to do about a missing text, by where the tool comes from.

        Args:
            in_code: The remedy for a Python function.
            in_schema: The remedy for a definition.
        """
        if self.tool.origin.kind == "mcp":
            return "ask the authors of its server for one"
        return in_schema if self.tool.origin.kind == "schema" else in_code

    def text_of(self, parameter: str) -> str:
        """Return the description of a parameter, without whitespace around it."""
        return str(self.parameters[parameter].get("description") or "").strip()

    def types_of(self, parameter: str) -> set[str]:
        """Return the JSON types that a parameter admits."""
        types: set[str] = set()
        for arm in self.reader.arms(self.parameters[parameter]):
            kinds = arm.get("type")
            if isinstance(kinds, list):
                types.update(cast("list[str]", kinds))
            elif isinstance(kinds, str):
                types.add(kinds)
        return types - {"null"}
