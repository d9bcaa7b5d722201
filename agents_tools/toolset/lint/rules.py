"""The rules of the linter, in the order of the documentation."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from agents_tools.toolset.lint.finding import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RULES"]

_RULES = (
    # declarations and schemas
    Rule(
        code="declaration",
        level="error",
        summary="The tool cannot be built.",
        remedy="Correct the declaration as the message says.",
    ),
    Rule(
        code="not-portable",
        level="error",
        summary="A provider cannot express the name or the schema.",
        remedy="Simplify the schema, or name the providers that you use with --provider.",
    ),
    Rule(
        code="not-strict",
        level="warning",
        summary="The tool asks for strict mode, which its schema does not allow.",
        remedy="Close the objects of the schema, or turn strict mode off.",
    ),
    Rule(
        code="unknown-required",
        level="error",
        summary="The schema requires a parameter that it does not define.",
        remedy="Define the parameter, or remove it from `required`.",
    ),
    Rule(
        code="parameter-name",
        level="warning",
        summary="The name of a parameter is changed for some providers.",
        remedy="Use ASCII letters, digits and underscores.",
    ),
    Rule(
        code="no-type",
        level="warning",
        summary="A parameter has no type, so a model can send any value.",
        remedy="Annotate the parameter, or give its schema a type.",
    ),
    Rule(
        code="no-item-type",
        level="warning",
        summary="An array parameter does not say what its items are.",
        remedy="Write list[str] instead of list, or add `items` to the schema.",
    ),
    Rule(
        code="open-object",
        level="warning",
        summary="An object parameter neither defines nor describes its keys.",
        remedy="Use a model or a TypedDict, or describe the keys with an example.",
    ),
    Rule(
        code="default-not-json",
        level="warning",
        summary="A default is not JSON-serializable, so the schema does not have it.",
        remedy="Describe the default, or use None and set the value in the body.",
    ),
    Rule(
        code="default-refused",
        level="warning",
        summary="The schema refuses the type of its own default, such as null for a string.",
        remedy="Allow the type (`str | None` instead of `str`), or remove the default.",
    ),
    # descriptions
    Rule(
        code="no-description",
        level="warning",
        summary="The tool has no description.",
        remedy="Write a docstring: models select tools by it.",
    ),
    Rule(
        code="name-as-description",
        level="warning",
        summary="The description says no more than the name.",
        remedy="Say what the tool does, when to use it and what it returns.",
    ),
    Rule(
        code="placeholder",
        level="warning",
        summary="A description is a placeholder.",
        remedy="Write the description.",
    ),
    Rule(
        code="no-parameter-description",
        level="warning",
        summary="No text describes a parameter, and its name and type do not explain it.",
        remedy="Describe it in the docstring's Args.",
    ),
    Rule(
        code="unknown-parameter",
        level="warning",
        summary="The description documents a parameter that does not exist.",
        remedy="Correct its name, or remove it.",
    ),
    Rule(
        code="no-unit",
        level="warning",
        summary="A number does not say its unit.",
        remedy="Name the unit in the description, or in the name: timeout_seconds.",
    ),
    Rule(
        code="no-date-format",
        level="warning",
        summary="A date or time does not say its format.",
        remedy="Give the parameter a format or an example, such as 2026-01-31.",
    ),
    Rule(
        code="values-only-in-text",
        level="warning",
        summary="The values that a parameter allows are listed in its description only.",
        remedy="Use Literal or an enum, so that wrong values are refused before the call.",
    ),
    Rule(
        code="limit-only-in-text",
        level="warning",
        summary="The limit of a number is stated in its description only.",
        remedy="Use Field(ge=..., le=...), so that wrong values are refused before the call.",
    ),
    Rule(
        code="optional-in-text",
        level="warning",
        summary="A parameter is described as optional or with a default, but is required.",
        remedy="Give the parameter a default, or correct the description.",
    ),
    Rule(
        code="default-mismatch",
        level="warning",
        summary="The description states another default than the schema.",
        remedy="Correct one of them.",
    ),
    # names
    Rule(
        code="duplicate-name",
        level="error",
        summary="Several tools have the same name.",
        remedy="Rename one of them, or add a prefix to those of one source.",
    ),
    Rule(
        code="similar-names",
        level="warning",
        summary="The names of two tools differ only in case, punctuation, order or endings.",
        remedy="Rename one of them, or merge them.",
    ),
    Rule(
        code="vague-name",
        level="warning",
        summary="The name does not say what the tool works on.",
        remedy="Add what it works on: search_papers instead of search.",
    ),
    Rule(
        code="overlap",
        level="warning",
        summary="The descriptions of two tools are the same, so a model cannot choose.",
        remedy="Say in both when to use which, or merge the tools.",
    ),
    # behavior
    Rule(
        code="unsafe-annotation",
        level="warning",
        summary="An annotation contradicts what the tool does, or another annotation.",
        remedy="Correct the annotation: clients run read-only tools without asking.",
    ),
    Rule(
        code="early-result",
        level="warning",
        summary="A streaming tool yields a string that ends it before its last yield.",
        remedy="Yield NotifyStreamEvent(...) to emit text and continue.",
    ),
    # tokens
    Rule(
        code="many-tokens",
        level="warning",
        summary="The definition needs more tokens than the budget.",
        remedy="Shorten the part that the message names; `--tokens` lists all parts.",
    ),
    Rule(
        code="repeated-text",
        level="warning",
        summary="The description repeats the descriptions of parameters.",
        remedy="Remove the list of parameters from the description of the tool.",
    ),
    Rule(
        code="wasted-tokens",
        level="warning",
        summary="Indentation, titles or `$schema` cost tokens and tell a model nothing.",
        remedy="Run `agents-tools check --fix`.",
    ),
    # MCP servers and configurations
    Rule(
        code="left-out",
        level="warning",
        summary="The MCP client leaves a tool of a server out.",
        remedy="Correct the definition as the message says.",
    ),
    Rule(
        code="hidden-text",
        level="warning",
        summary="The text of a tool had hidden or misleading characters.",
        remedy="Look at the text of the server before you trust it.",
    ),
    Rule(
        code="unpinned",
        level="warning",
        summary="A configuration starts a package without a fixed version.",
        remedy="Pin a version that you have checked.",
    ),
    Rule(
        code="inline-code",
        level="warning",
        summary="A configuration runs code from its arguments.",
        remedy="Put the code into a file.",
    ),
    # off unless they are enabled
    Rule(
        code="no-result",
        level="warning",
        summary="Neither the description nor an output schema says what the tool returns.",
        remedy="Say what the result has, and in which form.",
        default=False,
    ),
    Rule(
        code="no-errors",
        level="warning",
        summary="The description does not say when the tool fails.",
        remedy="Name the usual errors and what to do about them.",
        default=False,
    ),
    Rule(
        code="no-example",
        level="warning",
        summary="No parameter of a complex tool has an example.",
        remedy="Add examples to the parameters whose form is not obvious.",
        default=False,
    ),
)

RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in _RULES})
"""The rules by code."""
