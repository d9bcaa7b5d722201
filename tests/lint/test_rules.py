"""Each rule of the linter, on a definition that breaks it and on one that is almost the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agents_tools import ToolAnnotations, UserError, function_tool
from agents_tools.toolset.lint import RULES, lint_tools
from agents_tools.toolset.lint.definitions import tools_of_document
from agents_tools.toolset.lint.fixes import fix_document
from tests.pace import at_most

if TYPE_CHECKING:
    from agents_tools.toolset.lint import Finding

Definition = dict[str, Any]


def tool(
    name: str = "list_orders",
    description: str = "Return the orders of a customer, the newest first.",
    *,
    required: list[str] | None = None,
    annotations: dict[str, bool] | None = None,
    **properties: Any,
) -> Definition:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required is not None:
        schema["required"] = required
    found: Definition = {"name": name, "description": description, "inputSchema": schema}
    return found if annotations is None else {**found, "annotations": annotations}


def string(description: str = "The name of the customer.", **more: Any) -> Any:
    return {"type": "string", "description": description, **more}


def number(description: str, **more: Any) -> Any:
    return {"type": "number", "description": description, **more}


def findings(*definitions: Definition, **options: Any) -> list[Finding]:
    tools, found = tools_of_document(list(definitions))
    return found + lint_tools(tools, **options)


def _described(value: str, description: str) -> Any:
    return {"const": value, "type": "string", "description": description}


_LONG = "The prices are those of the day on which the order was made, without taxes. " * 80
_ROWS = "Args:\n    city: The city that the order goes to.\n    shop: The shop that sent it there."

_CONNECTOR = [
    tool("search", "Search the orders.", query=string(), required=["query"]),
    tool("fetch", "Return one order.", id=string(), required=["id"]),
]
"""The two tools that ChatGPT requires of a connector."""

CASES: dict[str, tuple[list[Definition], list[Definition]]] = {
    "declaration": ([{"name": "a", "inputSchema": {"type": "string"}}], [tool(a=string())]),
    "not-portable": ([tool("list orders")], [tool("list-orders")]),
    "unknown-required": ([tool(a=string(), required=["b"])], [tool(a=string(), required=["a"])]),
    "parameter-name": ([tool(größe=string())], [tool(size_2=string())]),
    "no-type": ([tool(a={"description": "Any."})], [tool(a={"enum": [1], "description": "One."})]),
    "no-item-type": (
        [tool(a={"type": "array", "description": "The ids."})],
        [tool(a={"type": "array", "description": "The ids.", "items": {"type": "string"}})],
    ),
    "open-object": (
        [tool(a={"type": "object", "description": "The filter of the search."})],
        [
            tool(a={"type": "object", "description": 'The filter, such as {"city": "Bonn"}.'}),
            tool("post", headers={"type": "object", "description": "The headers of the request."}),
        ],
    ),
    "default-refused": (
        [
            tool(city=string(default=None)),
            tool("b", count=number("The number of orders.", default="10")),
        ],
        [
            tool(city=string(default="Bonn")),
            tool("b", city={"anyOf": [string(), {"type": "null"}], "default": None}),
            tool("c", city={"type": ["string", "null"], "description": "A.", "default": None}),
            tool("d", count=number("The number of orders.", default=10)),
            tool("e", count={"type": "integer", "description": "A count.", "default": 10.0}),
            tool("f", city={"description": "A.", "$ref": "#/$defs/missing", "default": None}),
            tool("g", city=string(nullable=True, default=None)),
        ],
    ),
    "no-description": ([tool(description=" ")], [tool()]),
    "name-as-description": (
        [tool(description="List the orders.")],
        [tool(description="List the open orders.")],
    ),
    "placeholder": ([tool(description="TODO")], [tool(description="Return each TODO of a list.")]),
    "no-parameter-description": (
        [
            tool(shop_id={"type": "string"}),
            tool("b", filename={"type": "string"}, required=["filename"]),
            tool("c", max_length={"type": "integer", "default": 80}),
            tool("d", limit={"type": "integer"}),
            tool("e", side={"enum": ["L", "R"], "type": "string"}),
            tool("f", shop_type={"type": "string"}, required=["shop_type"]),
        ],
        [
            tool("d", url={"type": "string"}, required=["url"]),
            tool("c", lat={"type": "number"}, lon={"type": "number"}, required=["lat", "lon"]),
            tool("e", "Show orders.", max_count={"type": "integer", "default": 80}),
            tool("f", "Show orders.", past_days={"type": "number", "default": 7}),
            tool("g", side={"enum": ["left", "right"], "type": "string"}),
            tool("h", side={"anyOf": [_described("L", "left"), _described("R", "right")]}),
            tool("i", sides={"type": "array", "items": {"enum": ["left", "right"]}}),
            tool("j", "Close a shop.", shop_name={"type": "string"}, required=["shop_name"]),
            tool("k", "Count the orders of a city.", orders_within_city={"type": "string"}),
            tool(customer={"type": "string"}),
            tool("other", "Search.\n\nArgs:\n    shop_id: The shop.", shop_id={"type": "string"}),
            tool("third", _internal={"type": "string"}),
        ],
    ),
    "unknown-parameter": (
        [tool(description="Search orders.\n\nArgs:\n    shop: The shop.", city=string())],
        [
            tool(description="Search orders.\n\nArgs:\n    city: The city.", city=string()),
            tool("b", "Search orders. Note: only the newest are found.", city=string()),
        ],
    ),
    "no-unit": (
        [tool(timeout=number("The longest wait."))],
        [
            tool(timeout=number("The longest wait in seconds.")),
            tool("b", width=number("The width, 512px by default.")),
            tool("c", timeout_ms=number("The longest wait.")),
            tool("d", count=number("The number of orders.")),
            tool("e", latitude=number("The latitude."), longitude=number("The longitude.")),
        ],
    ),
    "no-date-format": (
        [tool(start_date=string("The first day."))],
        [
            tool(start_date=string("The first day, as YYYY-MM-DD.")),
            tool("b", start_date=string("The first day.", format="date")),
            tool("c", start_date=string("The first day, such as 2026-01-31.")),
            tool("d", candidate=string("The first candidate.")),
            tool("e", "Return the options. Dates: YYYY-MM-DD.", start_date={"type": "string"}),
        ],
    ),
    "values-only-in-text": (
        [
            tool(order=string("One of 'asc', 'desc'.")),
            tool("b", unit=string("The unit of speed (kmh, ms, mph, kn)")),
            tool("c", kind=string("Local branches ('local') or all of them ('all').")),
            tool("d", kind=string('The kind of the change ("add", "remove").')),
        ],
        [
            tool(order=string("One of 'asc', 'desc'.", enum=["asc", "desc"])),
            tool("b", unit=string("The unit of speed, e.g. 'kmh' or 'mph'.")),
            tool("c", path=string("The path of a file or of a folder.")),
            tool("d", kind=string('The kind of the change ("add", "remove", ...).')),
        ],
    ),
    "limit-only-in-text": (
        [tool(count=number("The number of orders, between 1 and 50."))],
        [
            tool(count=number("The number of orders, between 1 and 50.", minimum=1, maximum=50)),
            tool("b", count=number("The maximum number of orders.")),
        ],
    ),
    "optional-in-text": (
        [tool(city=string("Optional. The city."), required=["city"])],
        [
            tool(city=string("Optional. The city."), required=[]),
            tool("b", city=string("The city, with optional chaining."), required=["city"]),
        ],
    ),
    "default-mismatch": (
        [tool(count=number("How many, default: 20.", default=10))],
        [
            tool(count=number("How many, default: 10.", default=10.0)),
            tool("b", city=string("The city; the default is the one of the shop.", default="")),
        ],
    ),
    "duplicate-name": ([tool(), tool()], [tool(), tool("list_shops", "Return every shop.")]),
    "similar-names": (
        [tool("list_open_orders", "One."), tool("list_order_open", "Another.")],
        [tool("get_order", "Return one order."), tool("get_orders", "Return many orders.")],
    ),
    "vague-name": (
        [tool("search", query=string(), required=["query"])],
        [tool("search_orders"), tool("weather"), *_CONNECTOR],
    ),
    "overlap": (
        [
            tool("find_shop", "Return the shops of a city that are open."),
            tool("lookup_store", "Return the shops of a city that are open."),
        ],
        [
            tool("find_shop", "Return the shops of a city that are open."),
            tool("lookup_museum", "Return the museums of a city that are open."),
            tool("find_shop_by_url", "Return the shops of a city that are open by url."),
        ],
    ),
    "unsafe-annotation": (
        [
            tool("delete_order", annotations={"readOnlyHint": True}),
            tool("dropTable", annotations={"destructiveHint": False}),
        ],
        [
            tool("list_deleted_orders", annotations={"readOnlyHint": True}),
            tool("add_up", annotations={"readOnlyHint": True}),
            tool("delete_order", annotations={"readOnlyHint": False, "destructiveHint": True}),
            tool("add_order", annotations={"destructiveHint": False}),
        ],
    ),
    "many-tokens": ([tool(description=_LONG)], [tool(description=_LONG[:2_000])]),
    "repeated-text": (
        [
            tool(
                description=f"Search.\n\n{_ROWS}",
                city=string("The city that the order goes to."),
                shop=string("The shop that sent it there."),
            )
        ],
        [tool(description=f"Search.\n\n{_ROWS}", city={"type": "string"}, shop={"type": "string"})],
    ),
    "wasted-tokens": (
        [tool(**{f"order_part_{n}": string(title=f"Order Part {n}") for n in range(9)})],
        [
            tool(**{f"order_part_{n}": string() for n in range(9)}),
            tool("b", ("\n" + " " * 24).join(["Search.", *"abcdef"]), city=string()),
            tool("c", _LONG, **{f"part_{n}": string(title=f"Part {n}") for n in range(5)}),
        ],
    ),
    "no-result": ([tool(description="Restart the shop.")], [tool()]),
    "no-errors": ([tool()], [tool(description="Fail if the customer is unknown.")]),
    "no-example": (
        [tool(**{name: string("Text.") for name in "abcd"})],
        [tool(**{name: string("Text, e.g. Bonn.") for name in "abcd"})],
    ),
}
ELSEWHERE = {
    *("not-strict", "default-not-json", "early-result"),  # of Python functions
    *("left-out", "hidden-text", "unpinned", "inline-code"),  # of MCP servers
}
"""Rules that other tests cover, because no definition breaks them."""


def test_each_rule_has_a_case() -> None:
    assert CASES.keys() | ELSEWHERE == RULES.keys()


@pytest.mark.parametrize("code", CASES)
def test_a_rule_finds_what_breaks_it_and_nothing_else(code: str) -> None:
    """A rule with false positives would be switched off, and one that finds nothing is no rule."""
    bad, good = CASES[code]
    enable = () if RULES[code].default else (code,)
    found = [one for one in findings(*bad, enable=enable) if one.code == code]
    pairs = code in {"duplicate-name", "similar-names", "overlap"}
    assert len({one.tool for one in found}) == (1 if pairs else len(bad))
    assert all(one.level == RULES[code].level for one in found)
    assert [one.message for one in findings(*good, enable=enable) if one.code == code] == []


def test_rules_are_documented() -> None:
    """Each has a sentence, a remedy and a place in the documentation."""
    for code, rule in RULES.items():
        assert rule.code == code
        assert rule.summary.endswith(".")
        assert rule.remedy.endswith((".", "):", ")."))
        assert rule.anchor == f"reference/lint-rules.md#{code}"


def test_rules_can_be_disabled_and_enabled() -> None:
    """A project decides which rules hold."""
    bad = tool("search", "")
    assert {one.code for one in findings(bad)} == {"no-description", "vague-name"}
    assert [one.code for one in findings(bad, disable=["vague-name"])] == ["no-description"]
    assert "no-errors" in {one.code for one in findings(bad, enable=["no-errors"])}
    for options in ({"disable": ["vague"]}, {"enable": ["vague"]}):
        with pytest.raises(UserError, match="The rule 'vague' is unknown"):
            findings(bad, **options)


def test_a_budget_can_be_set_and_the_largest_parts_are_named() -> None:
    found = findings(tool(city=string(_LONG)), budget=500)
    (one,) = [one for one in found if one.code == "many-tokens"]
    assert "more than 500: shorten parameter 'city' (" in one.message


def test_equal_names_of_two_servers_are_a_warning() -> None:
    """Clients that put the name of the server before each name keep the tools apart."""
    servers = [{"name": name, "tools": [tool()]} for name in ("shop", "museum")]
    tools, _ = tools_of_document(servers)
    (found,) = lint_tools(tools)
    assert (found.code, found.level) == ("duplicate-name", "warning")
    assert "(museum, shop)" in found.message


def test_python_tools_are_checked_against_their_docstrings() -> None:
    """A misspelled name in the docstring hides the text from the model."""

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    def remove_order(number: int) -> None:
        """Take an order out of the list for good.

        Args:
            nubmer: The number of the order.
        """
        del number

    found = {one.code: one.message for one in lint_tools([remove_order])}
    assert found.keys() == {"unknown-parameter", "no-parameter-description", "unsafe-annotation"}
    assert "'nubmer'" in found["unknown-parameter"]


# --- documents


@pytest.mark.parametrize(
    "wrap",
    [
        lambda one: [one],
        lambda one: {"tools": [one]},
        lambda one: [{"name": "shop", "tools": {"shop": {"server_name": "a", "tools": [one]}}}],
        lambda one: [
            {
                "type": "function",
                "function": {
                    "name": one["name"],
                    "description": one["description"],
                    "parameters": one["inputSchema"],
                },
            }
        ],
        lambda one: [
            {
                "name": one["name"],
                "description": one["description"],
                "input_schema": one["inputSchema"],
            }
        ],
    ],
    ids=["list", "mcp", "servers", "openai_chat", "anthropic"],
)
def test_a_document_can_have_the_format_of_any_provider(wrap: Any) -> None:
    tools, found = tools_of_document(json.loads(json.dumps(wrap(tool(city=string())))))
    assert found == []
    assert [one.name for one in tools] == ["list_orders"]
    assert tools[0].json_schema["properties"].keys() == {"city"}


def test_a_schema_that_no_validator_accepts_is_a_finding() -> None:
    """Providers refuse the whole request."""
    (found,) = findings(tool(city=string(), count={"type": "int"}))
    assert (found.code, found.level) == ("declaration", "error")
    assert "is not valid at #/properties/count/type" in found.message


def test_a_document_without_tools_is_refused() -> None:
    for document in ([], {}, [1], {"tools": []}, "text", [[[[[[[[tool()]]]]]]]]):
        with pytest.raises(UserError, match="no definitions of tools"):
            tools_of_document(document)


@pytest.mark.parametrize(
    ("definition", "causes"),
    [
        (tool(**{f"part_{n}": string(title=f"Part {n}") for n in range(9)}), "repeated titles"),
        (tool(description=("\n" + " " * 24).join([f"Part {n}" for n in range(40)])), "indentation"),
    ],
    ids=["titles", "indentation"],
)
def test_wasted_tokens_are_counted_by_their_cause(definition: Definition, causes: str) -> None:
    """Tokenizers read a line break with its indentation as one token, however deep it is."""
    (found,) = [one for one in findings(definition) if one.code == "wasted-tokens"]
    count = int(found.message.split()[2])
    assert found.message.startswith(f"has about {count} tokens of {causes}, which")
    assert count < 60


def test_a_long_list_of_quoted_words_is_searched_in_linear_time() -> None:
    """A server chooses its descriptions, so none of them may stop a check."""
    with at_most(400):
        assert findings(tool(word=string('"word", ' * 20_000)))


def test_the_values_of_a_text_are_listed_as_they_are_sent() -> None:
    """The message can be copied into an enum."""
    for text, values in {
        "Local branches ('local') or all of them ('all').": "('local', 'all')",
        "The unit of speed (kmh, ms, mph, kn)": "('kmh', 'ms', 'mph', 'kn')",
        "One of: asc, desc, none.": "('asc', 'desc', 'none')",
    }.items():
        (found,) = findings(tool(order=string(text)))
        assert values in found.message


async def test_a_tool_of_a_document_cannot_be_called() -> None:
    (one,), _ = tools_of_document([tool()])
    outcome = await one.call(None, "{}")
    assert outcome.status == "tool_error"
    assert "cannot be called" in str(outcome.output)


_WORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "enum",
        "required",
        "description",
        "default",
        "anyOf",
        "$ref",
        "title",
        "$defs",
        "string",
        "object",
        "array",
        "number",
        "#/$defs/a",
        "a",
        "Optional.",
        "é",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_WORDS, _VALUES, max_size=5), _VALUES, _VALUES)
def test_any_definition_is_checked(schema: Any, description: Any, annotations: Any) -> None:
    """Definitions come from servers; a wrong one is a finding, not an error of the linter."""
    definition = {
        "name": "one",
        "description": description,
        "inputSchema": {"type": "object", **schema},
        "annotations": annotations,
    }
    document = [definition, {**definition, "name": "two"}]
    tools, found = tools_of_document(document)
    found += lint_tools(tools, enable=["no-result", "no-errors", "no-example"])
    assert all(finding.code in RULES for finding in found)
    text = json.dumps(document)
    assert fix_document(fix_document(text)) == fix_document(text)
