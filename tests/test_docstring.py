"""Docstring parsing: styles, spellings, types and robustness."""

from __future__ import annotations

import functools
import logging
import subprocess
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st

from agents_tools import FuncDocumentation, generate_func_documentation
from agents_tools.schema.docstring import (
    Docstring,
    DocstringStyle,
    docstring_of,
    parse_docstring,
    resolve_doc_type,
)
from tests.pace import at_most
from tests.scale import IS_FULL

GOOGLE = """Find the shortest way.

    It may take a while
    for large maps.

    Args:
        start (str): Where to begin.
        stops (list[str], optional): What to pass,
            in this order:

            - first
            - second
        *rest: More of them.
        **options: The rest.

    Returns:
        str: The way.

    Ask the user first.
"""
NUMPY = """Find the shortest way.

    It may take a while
    for large maps.

    Parameters
    ----------
    start : str
        Where to begin.
    stops : list[str], optional
        What to pass,
        in this order:

        - first
        - second
    *rest
        More of them.
    **options
        The rest.

    Ask the user first.

    Returns
    -------
    str
        The way.
"""
SPHINX = r"""Find the shortest way.

    It may take a while
    for large maps.

    :param str start: Where to begin.
    :param stops: What to pass,
        in this order:

        - first
        - second
    :type stops: list[str], optional
    :param \*rest: More of them.
    :param \**options: The rest.
    :return: The way.
    :rtype: str

    Ask the user first.
"""
EPYDOC = """Find the shortest way.

    It may take a while
    for large maps.

    @param start: Where to begin.
    @type start: C{str}
    @param stops: What to pass,
        in this order:

        - first
        - second
    @type stops: list[str]
    @param rest: More of them.
    @keyword options: The rest.
    @return: The way.

    Ask the user first.
"""
WANTED_TEXTS = {
    "start": "Where to begin.",
    "stops": "What to pass,\nin this order:\n\n- first\n- second",
    "rest": "More of them.",
    "options": "The rest.",
}
WANTED_TYPES = {"start": "str", "stops": "list[str]", "rest": "", "options": ""}
WANTED_PROSE = (
    "Find the shortest way.\n\nIt may take a while\nfor large maps.\n\nAsk the user first."
)


@pytest.mark.requirement("A18", "A31", "A32")
@pytest.mark.parametrize(
    ("doc", "style"),
    [(GOOGLE, "google"), (NUMPY, "numpy"), (SPHINX, "sphinx"), (EPYDOC, "sphinx")],
    ids=["google", "numpy", "sphinx", "epydoc"],
)
@pytest.mark.parametrize("explicit", [False, True], ids=["detected", "explicit"])
def test_every_style_returns_the_same_texts(
    doc: str, style: DocstringStyle, *, explicit: bool
) -> None:
    """The style of a docstring must not change the schema for the model."""
    found = parse_docstring(doc, style=style if explicit else None)
    assert found == Docstring(
        description=WANTED_PROSE, params=WANTED_TEXTS, types=WANTED_TYPES, style=style
    )


@pytest.mark.parametrize("doc", [None, "", "  \n\t "])
def test_no_docstring_results_in_an_empty_description(doc: str | None) -> None:
    """A function need not have a docstring."""
    assert parse_docstring(doc) == Docstring()


def test_a_docstring_without_sections_is_its_own_description() -> None:
    """Prose reaches the model unchanged, including indented parts and colons."""
    doc = "Sum: add them.\n\n    Usage:\n        add 1 2\n\n    Note: slow.\n"
    found = parse_docstring(doc, param_names=("a", "b"))
    assert found == Docstring(
        description="Sum: add them.\n\nUsage:\n    add 1 2\n\nNote: slow.", style=None
    )


def test_the_parsed_docstring_is_immutable() -> None:
    """A schema and a tool share it."""
    with pytest.raises(FrozenInstanceError):
        Docstring().style = "google"  # pyright: ignore[reportAttributeAccessIssue]


# ----- google ---------------------------------------------------------------------------------


LAYOUTS = [
    "Say it.\n\n{0}\n    text: What to say.\n",
    "Say it.\n{0}\n    text: What to say.\n",
    "Say it.\n\n{0}\n\n    text: What to say.\n",
    "Say it.\n\n{0}\n  text: What to say.\n",
    "Say it.\n\n{0}\n\ttext: What to say.\n",
    "Say it.\n\n    {0}\n        text: What to say.\n\n  Low.\n",
    "\nSay it.\n    {0}\n        text: What to say.\n    Returns:\n        Nothing.\n",
    "Say it.\r\n\r\n{0}\r\n    text: What to say.\r\n",
]


@pytest.mark.parametrize(
    "heading",
    [
        "Args:",
        "Arguments:",
        "args :",
        "PARAMETERS:",
        "Params:",
        "Parameter:",
        "Keyword Args:",
        "Keyword Arguments:",
        "Other Parameters:",
        "Other Args:",
        "Optional Arguments:",
        ":Parameters:",
        "**Parameters**:",
        "**Args:**",
        "### Arguments:",
        "Attributes:",
    ],
)
def test_a_section_is_found_under_any_common_heading(heading: str) -> None:
    """Griffe accepts one spelling, with a blank line above and none below."""
    for layout in LAYOUTS:
        found = parse_docstring(layout.format(heading))
        assert found.params == {"text": "What to say."}, layout
        assert found.description is not None
        assert found.description.startswith("Say it."), layout
        assert "text" not in found.description, layout


@pytest.mark.parametrize(
    ("entry", "text", "stated"),
    [
        ("size: How big.", "How big.", ""),
        ("size : How big.", "How big.", ""),
        ("size (int): How big.", "How big.", "int"),
        ("size (int, optional): How big.", "How big.", "int"),
        ("size (int, default: 3): How big.", "How big.", "int"),
        ("size(int): How big.", "How big.", "int"),
        ("size (:obj:`int`, optional): How big.", "How big.", "int"),
        ("size (:class:`~sizes.Size`): How big.", "How big.", "sizes.Size"),
        ("size (``int``): How big.", "How big.", "int"),
        ("size (dict[str: int]): How big: in cm.", "How big: in cm.", "dict[str: int]"),
        ("size (Callable[[int], str]): How big.", "How big.", "Callable[[int], str]"),
        ("size {int}: How big.", "How big.", "int"),
        ("size {int} -- How big.", "How big.", "int"),
        ("`size`: How big.", "How big.", ""),
        ("'size': How big.", "How big.", ""),
        ("**size**: How big.", "How big.", ""),
        (r"\*size: How big.", "How big.", ""),
        ("- size: How big.", "How big.", ""),
        ("* `size` (int): How big.", "How big.", "int"),
        ("size -- How big.", "How big.", ""),
        ("size - How big.", "How big.", ""),
        ("size \N{EM DASH} How big.", "How big.", ""),
        ("size:\n        How big.", "How big.", ""),
        ("size (int)\n        How big.", "How big.", "int"),
        ("size: How big\n    it may get.", "How big\nit may get.", ""),
        ("size: How big\n      it may get.", "How big\nit may get.", ""),
        ("size: See https://example.com/a.", "See https://example.com/a.", ""),
    ],
)
def test_an_entry_is_read_in_any_common_spelling(entry: str, text: str, stated: str) -> None:
    """A described parameter must be described to the model."""
    doc = f"Make it.\n\nArgs:\n    {entry}\n    other: Else.\n"
    found = parse_docstring(doc, param_names=("size", "other"))
    assert found.params == {"size": text, "other": "Else."}
    assert found.types == {"size": stated, "other": ""}


def test_a_heading_and_an_entry_can_end_with_the_colon_of_chinese() -> None:
    """Input methods for Chinese and Japanese type it; prose keeps it."""
    colon = "\N{FULLWIDTH COLON}"
    for heading in ("Args", "参数"):
        doc = f"查询。\n\n注意{colon}慢。\n\n{heading}{colon}\n    size (int){colon}大小{colon}一\n"
        found = parse_docstring(doc, param_names=("size",))
        assert found.params == {"size": f"大小{colon}一"}
        assert found.types == {"size": "int"}
        assert found.description == f"查询。\n\n注意{colon}慢。"


def test_names_that_share_an_entry_share_its_text() -> None:
    """`x, y: …` describes two parameters."""
    found = parse_docstring("Put it.\n\nArgs:\n    x, y (int): Where.\n    a and b: What.\n")
    assert found.params == {"x": "Where.", "y": "Where.", "a": "What.", "b": "What."}
    assert found.types == {"x": "int", "y": "int", "a": "", "b": ""}


def test_a_heading_on_the_first_line_is_a_heading() -> None:
    """Dedenting takes the indent of all lines but the first; the section must survive it."""
    found = parse_docstring("Args:\n        x: One.\n            More.\n        y: Two.\n    ")
    assert found == Docstring(
        params={"x": "One.\nMore.", "y": "Two."}, types={"x": "", "y": ""}, style="google"
    )


@pytest.mark.parametrize(
    "doc",
    [
        "Copy.\n\nsource -- Where from.\ntarget -- Where to.\n\nIt is fast.",
        "Copy.\n\nsource: Where from.\n\ntarget: Where to.\n\nIt is fast.",
        "Copy.\n\nThe arguments are:\n\nsource -- Where from.\ntarget -- Where to.\n\nIt is fast.",
        "Copy.\n\nWhere:\n    source: Where from.\n    target: Where to.\n\nIt is fast.",
        "Copy.\n\nArguments:\nsource -- Where from.\ntarget -- Where to.\n\nIt is fast.",
        "Copy.\n\n- `source`: Where from.\n- `target` (str): Where to.\n\nIt is fast.",
        "Copy.\n\n'source' -- Where from.\n'target' -- Where to.\nIt is fast.",
        "Copy.\n\n  source: Where from.\n  target: Where to.\n\nIt is fast.",
    ],
)
def test_a_list_of_parameters_needs_no_heading(doc: str) -> None:
    """The standard library and many others list parameters without a style."""
    found = parse_docstring(doc, param_names=("source", "target"))
    assert found.params == {"source": "Where from.", "target": "Where to."}
    assert found.description == "Copy.\n\nIt is fast."
    assert parse_docstring(doc, param_names=("other",)).description != found.description


def test_a_list_of_anything_else_stays_prose() -> None:
    """Only names of parameters make it a parameter list."""
    doc = "Copy.\n\nfast: Yes.\nsafe: No.\n\nSteps:\n    read: First.\n    write: Then."
    assert parse_docstring(doc, param_names=("source",)) == Docstring(description=doc)


def test_the_summary_is_never_parsed_as_a_parameter() -> None:
    """A first line such as `name: its name` is the description."""
    assert parse_docstring("path: the file.", param_names=("path",)).description is not None


# ----- sphinx and epydoc ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "text", "stated"),
    [
        (":param size: How big.", "How big.", ""),
        (":parameter size: How big.", "How big.", ""),
        (":arg size: How big.", "How big.", ""),
        (":argument size: How big.", "How big.", ""),
        (":key size: How big.", "How big.", ""),
        (":keyword size: How big.", "How big.", ""),
        (":kwarg size: How big.", "How big.", ""),
        (":param int size: How big.", "How big.", "int"),
        (":param list of int size: How big.", "How big.", "list of int"),
        (":param dict[str, int] size: How big.", "How big.", "dict[str, int]"),
        (":param :class:`Size` size: How big.", "How big.", "Size"),
        (":param size (int, optional): How big.", "How big.", "int"),
        (":param size int: How big.", "How big.", "int"),
        (":param size=3: How big.", "How big.", ""),
        (":param size:How big.", "How big.", ""),
        (":param size : How big.", "How big.", ""),
        (":param size How big.", "How big.", ""),
        (":param `size`: How big.", "How big.", ""),
        (":param size: How big: in cm.", "How big: in cm.", ""),
        (":param size:\n    How big.", "How big.", ""),
        (":param size: How big\nit may get.", "How big\nit may get.", ""),
        ("    :param size: How big\n       it may get.", "How big\nit may get.", ""),
        (":param size: How big.\n:type size: int or None", "How big.", "int | None"),
        (":type size: int\n:param size: How big.", "How big.", "int"),
        (":param size: How big.\n:paramtype size: int", "How big.", "int"),
        ("@param size: How big.", "How big.", ""),
        ("@arg size: How big.", "How big.", ""),
        ("@keyword size: How big.\n@type size: L{Size}", "How big.", "Size"),
        (":ivar size: How big.", "How big.", ""),
    ],
)
def test_a_field_is_read_in_any_common_spelling(field: str, text: str, stated: str) -> None:
    """Sphinx accepts more spellings than griffe, and epydoc has its own."""
    found = parse_docstring(
        f"Make it.\n\n{field}\n:raises ValueError: Never.\n", param_names=["size"]
    )
    assert found.params == {"size": text}
    assert found.types == {"size": stated}
    assert found.description == "Make it."
    assert found.style == "sphinx"


def test_names_that_share_a_field_share_its_text() -> None:
    """`:param x, y: …` describes two parameters."""
    assert parse_docstring(":param x, y: Where.").params == {"x": "Where.", "y": "Where."}


def test_a_role_at_the_start_of_a_line_is_not_a_field() -> None:
    """`:keyword:` and others are roles too, and their text must not vanish."""
    doc = "Stop.\n\n:param x: One of\n:class:`A` and\n:class:`B`.\n\n:keyword:`None` stops it."
    found = parse_docstring(doc)
    assert found.params == {"x": "One of\n:class:`A` and\n:class:`B`."}
    assert found.description == "Stop.\n\n:keyword:`None` stops it."


def test_text_after_the_fields_belongs_to_the_description() -> None:
    """Griffe would add it to the last parameter."""
    found = parse_docstring("Stop.\n\n:param x: What.\n\nBe careful.\n\n:returns: Nothing.\n")
    assert (found.description, found.params) == ("Stop.\n\nBe careful.", {"x": "What."})


# ----- numpy ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "texts", "types_"),
    [
        ("x : int\n    One.", {"x": "One."}, {"x": "int"}),
        ("x: int\n    One.", {"x": "One."}, {"x": "int"}),
        ("x :int\n    One.", {"x": "One."}, {"x": "int"}),
        ("x\n    One.", {"x": "One."}, {"x": ""}),
        ("x, y : int\n    Both.", {"x": "Both.", "y": "Both."}, {"x": "int", "y": "int"}),
        ("x,y : int\n    Both.", {"x": "Both.", "y": "Both."}, {"x": "int", "y": "int"}),
        (
            "*args, **kwargs\n    All.",
            {"args": "All.", "kwargs": "All."},
            {"args": "", "kwargs": ""},
        ),
        ("`x` : int\n    One.", {"x": "One."}, {"x": "int"}),
        ("x : int, optional\n    One.", {"x": "One."}, {"x": "int"}),
        ("x : int, default 3\n    One.", {"x": "One."}, {"x": "int"}),
        ("x : int, default: 3\n    One.", {"x": "One."}, {"x": "int"}),
        ("x : int, optional, default=3\n    One.", {"x": "One."}, {"x": "int"}),
        ("x : int, by default 3\n    One.", {"x": "One."}, {"x": "int"}),
        ("x : int (default: 3)\n    One.", {"x": "One."}, {"x": "int"}),
        ("x : {'a', 'default'}\n    One.", {"x": "One."}, {"x": "{'a', 'default'}"}),
        ("x : {'a', 'b'} or None, optional\n  One.", {"x": "One."}, {"x": "{'a', 'b'} or None"}),
        ("x (int): One.", {"x": "One."}, {"x": "int"}),
        ("x -- One.", {"x": "One."}, {"x": ""}),
        ("x -- One: a number.", {"x": "One: a number."}, {"x": ""}),
        ("- x : int\n    One.", {"x": "One."}, {"x": "int"}),
        ("größe : float\n    One.", {"größe": "One."}, {"größe": "float"}),
        ("x : int\n\n    One.\n\n    More.", {"x": "One.\n\nMore."}, {"x": "int"}),
        ("    x : int\n        One.", {"x": "One."}, {"x": "int"}),
        ("x : int\n    A | B\n    -----\n    1 | 2", {"x": "A | B\n-----\n1 | 2"}, {"x": "int"}),
        (
            "x : array_like, shape (n,)",
            {"x": "array_like, shape (n,)"},
            {"x": "array_like, shape (n,)"},
        ),
        ("x : int", {}, {"x": "int"}),
    ],
)
def test_a_numpy_entry_is_read_in_any_common_spelling(
    entry: str, texts: dict[str, str], types_: dict[str, str]
) -> None:
    """Scientific packages deviate slightly from their standard."""
    doc = f"Compute.\n\nParameters\n----------\n{entry}\n\nReturns\n-------\nint\n    It.\n"
    found = parse_docstring(doc)
    assert (found.params, found.types, found.style) == (texts, types_, "numpy")
    assert found.description == "Compute."


@pytest.mark.parametrize(
    "heading",
    [
        "Parameters\n----------",
        "Parameters \n---",
        "Parameters:\n===========",
        "Args\n----",
        "Other Parameters\n~~~~~~~~~~~~~~~~",
        "Keyword Arguments\n-----------------",
        "    Parameters\n    ----------",
    ],
)
def test_a_numpy_heading_is_read_in_any_common_spelling(heading: str) -> None:
    """The underline makes it a heading."""
    indent = " " * (len(heading) - len(heading.lstrip()))
    doc = f"Compute.\n\n{heading}\n{indent}x : int\n{indent}    One.\n\nLast words."
    found = parse_docstring(doc)
    assert found.params == {"x": "One."}
    assert found.description == "Compute.\n\nLast words."


def test_prose_after_a_numpy_section_is_kept() -> None:
    """Text after the parameters still reaches the model."""
    doc = "Do.\n\nParameters\n----------\nx : int\n    One.\n\nIt can fail, so\nbe careful.\n"
    assert parse_docstring(doc).description == "Do.\n\nIt can fail, so\nbe careful."


def test_a_title_that_is_not_a_section_stays_unchanged() -> None:
    """A custom underlined title is prose with a title."""
    doc = "Do.\n\nBackground\n----------\nLong ago.\n\nParameters\n----------\nx : int\n    One.\n"
    assert parse_docstring(doc).description == "Do.\n\nBackground\n----------\nLong ago."


# ----- what is prose --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "title", ["Returns", "Raises", "Yields", "Examples", "Example", "See Also"]
)
def test_sections_about_anything_but_parameters_are_left_out(title: str) -> None:
    """They are for programmers, not for the model."""
    google = f"Do.\n\n{title}:\n    Something: else.\n\nMore."
    numpy = f"Do.\n\nMore.\n\n{title}\n{'-' * len(title)}\nSomething\n    else.\n"
    for doc in (google, numpy):
        assert parse_docstring(doc).description == "Do.\n\nMore."


@pytest.mark.parametrize("title", ["Note", "Notes", "Warning", "Warnings", "Important", "Tip"])
def test_notes_and_warnings_are_prose(title: str) -> None:
    """They contain facts that the caller needs, hence the model too."""
    wanted = f"Do.\n\n{title}:\n    Never on Sundays."
    numpy = f"Do.\n\n{title}\n{'-' * len(title)}\nNever on Sundays.\n\nReturns\n-------\nint\n"
    assert parse_docstring(numpy).description == wanted
    assert parse_docstring(f"{wanted}\n\nArgs:\n    x: One.\n").description == wanted


@pytest.mark.parametrize(
    "code",
    [
        "Use it so::\n\n    Args:\n        x: No.\n    :param x: No.",
        "```\nArgs:\n    x: No.\n\n:param x: No.\n```",
        ">>> print(f.__doc__)\n:param x: No.",
        "```python\nParameters\n----------\nx : int\n    No.\n```",
    ],
)
def test_code_is_never_read_as_a_section(code: str) -> None:
    """Tools about docstrings contain example docstrings."""
    doc = f"Write docs.\n\n{code}\n\nDone."
    assert parse_docstring(doc, param_names=("x",)) == Docstring(description=doc)


def test_an_unclosed_code_fence_hides_nothing() -> None:
    """Griffe treats all text after three backticks as code."""
    found = parse_docstring("Run ```x``` now.\n\n```x``` again.\n\nArgs:\n    x: One.\n")
    assert found.params == {"x": "One."}


# ----- several styles -------------------------------------------------------------------------


def test_styles_can_be_mixed() -> None:
    """Long-lived code has been documented by several people."""
    doc = (
        "Do.\n\n:param a: Sphinx.\n\nParameters\n----------\nb : int\n    Numpy.\n\n"
        "Args:\n    c: Google.\n\nLast words.\n\n@param d: Epydoc.\n"
    )
    found = parse_docstring(doc)
    assert found.params == {"a": "Sphinx.", "d": "Epydoc.", "b": "Numpy.", "c": "Google."}
    assert found.description == "Do.\n\nLast words."


AMBIGUOUS = (
    "Do.\n\nArgs:\n    x: Google.\n\n:param x: Sphinx.\n\nParameters\n---\nx : int\n    Numpy.\n"
)


@pytest.mark.requirement("A32")
@pytest.mark.parametrize("style", ["google", "numpy", "sphinx"])
def test_an_explicit_style_reads_that_style_alone(style: DocstringStyle) -> None:
    """An ambiguous docstring is parsed in the style that its author sets."""
    found = parse_docstring(AMBIGUOUS, style=style)
    assert found.params == {"x": f"{style.capitalize()}."}
    assert found.style == style


# ----- cost and robustness --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("doc", "imported"),
    [
        ("Add two numbers: a, and b.\n\n    Note:\n        Slow.\n", False),
        ("Add.\n\nReturns:\n    The sum.\n", False),
        ("Add.\n\nArgs:\n    a: One.\n", True),
    ],
)
def test_griffe_is_imported_for_sections_about_parameters_only(doc: str, *, imported: bool) -> None:
    """Importing griffe costs more than the rest of a declaration."""
    program = (
        "import sys\nfrom agents_tools.schema.docstring import parse_docstring\n"
        f"assert 'griffe' not in sys.modules\nparse_docstring({doc!r})\n"
        f"assert ('griffe' in sys.modules) is {imported}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)  # noqa: S603


@pytest.mark.requirement("A33")
def test_griffe_is_not_imported_for_an_ignored_docstring() -> None:
    """Ignored docstrings must not cost time."""
    program = (
        "import sys\nfrom agents_tools import function_schema\n"
        "def add(a: int) -> int:\n    'Add.\\n\\nArgs:\\n    a: One.'\n"
        "schema = function_schema(add, use_docstring_info=False)\n"
        "assert schema.description is None\n"
        "assert 'description' not in str(schema.params_json_schema)\n"
        "assert 'griffe' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)  # noqa: S603


@pytest.mark.parametrize("style", ["google", "numpy", "sphinx"])
def test_parsing_a_docstring_logs_and_warns_nothing(
    style: DocstringStyle, caplog: pytest.LogCaptureFixture
) -> None:
    """Griffe compiles types and warns about those that are not Python."""
    caplog.set_level(logging.DEBUG)
    stated = r"'\d', 1or 2, a b, 3(x), " + "(" * 300
    docs = {
        "google": f"Do.\n\nArgs:\n    x ({stated}): One.\n   odd\n    y: Two.\n\nReturns:\n    {stated}: r\n",
        "numpy": f"Do.\n\nParameters\n---\nx : {stated}\n  One.\n!!\ny : 0xfor\n    Two.\n",
        "sphinx": f"Do.\n\n:param x: One.\n:type x: {stated}\n:param {stated} y: Two.\n:rtype: {stated}\n",
    }
    found = parse_docstring(docs[style], style=style)
    assert {"x", "y"} <= found.params.keys()
    assert found.types["x"].startswith("'\\d', 1or 2")
    assert caplog.records == []


SIZE = 100_000 if IS_FULL else 30_000
HOSTILE = {
    "colons": ":" * SIZE,
    "colons in a type": "Do.\n\nArgs:\n    x (" + ":" * SIZE + "): One.",
    "a field without end": ":param " + "a" * SIZE,
    "roles": ":param " + ":a:`x`" * (SIZE // 7),
    "roles without end": ":param " + ":a:`x" * (SIZE // 6),
    "headings": "Args:\n\n" * (SIZE // 7),
    "sections": "Args:\n    x: y\n" * (SIZE // 17),
    "lists": "Do.\n\n" + "x: foo\nfoo\n\n" * (SIZE // 13),
    "rules": "---\n" * (SIZE // 4),
    "numpy sections": "Parameters\n---\nx : int\n" * (SIZE // 25),
    "numpy names": "Parameters\n---\n" + "x, " * (SIZE // 3) + "y : int",
    "numpy defaults": "Parameters\n---\nx : " + "a, default " * (SIZE // 11),
    "stairs": "".join(" " * (level % 300) + "x: y\n" for level in range(SIZE // 150)),
    "tabs": "Do.\n" + "\t" * SIZE + "x",
    "blank lines": "a" + "\n" * SIZE + "b",
    "spaces": "Do.\n" + " " * SIZE + "x: y",
    "brackets": "Do.\n\nArgs:\n    x (" + "(" * SIZE + ": One.",
    "mixed brackets": "Do.\n\nArgs:\n    " + "[(:" * (SIZE // 3),
    "operators": ":type x: " + "-" * SIZE,
    "words": ":param " + "not " * (SIZE // 4) + "x: One.",
    "names": "Do.\n\nArgs:\n    " + "x, " * (SIZE // 6) + "y: " + "z" * (SIZE // 2),
    "fences": "```\n" * (SIZE // 4),
    "literals": "x::\n    y\n" * (SIZE // 10),
    "fields": ":param x: y\n" * (SIZE // 12),
    "unicode": "Parameters\n---\n" + "ä" * SIZE + " : int\n    One.",
    "no text": "Do.\n\nArgs:\n    x (\0): \ud800\n",
}


@pytest.mark.scaled
@pytest.mark.parametrize("doc", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_docstring_costs_little_time(doc: str) -> None:
    """Tools also come from servers and files; no text may block a program."""
    with at_most(300):
        parse_docstring(doc)
        parse_docstring(doc, param_names=("x", "y", "a"))


PIECES = st.sampled_from(
    [
        "Args:",
        "Parameters",
        "------",
        "Returns:",
        "Note:",
        "    ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "x",
        "*x",
        ":param x: a",
        ":type x:",
        "@param y: z",
        "y : int",
        "x (int): a",
        "- ",
        " -- ",
        "::",
        ":",
        "```",
        ">>> x",
        "(",
        ")",
        "{'a', 'b'}",
        ", optional",
        " or ",
        "list of ",
        ",",
        ".",
        "é",
        "\\",
        "'",
        "\0",
        "\x0c",
        "\u2028",
        "\xa0",
        "\ue000",
        "\ud800",
        "1or 2",
        "lambda: 1",
        "None",
        "|",
        "Examples\n---\n",
    ]
)
DOCS = st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=200)
NAMES = st.sampled_from([(), ("x",), ("x", "y"), ("é",)])


@given(doc=DOCS, names=NAMES, style=st.sampled_from([None, "google", "numpy", "sphinx"]))
def test_any_docstring_is_accepted(
    doc: str, names: tuple[str, ...], style: DocstringStyle | None
) -> None:
    found = parse_docstring(doc, style=style, param_names=names)
    assert found.params.keys() <= found.types.keys()
    assert all(text == text.strip() and text for text in found.params.values())
    for stated in found.types.values():
        resolve_doc_type(stated, {})
    resolve_doc_type(doc, {"x": int})


WORD = st.from_regex(r"[a-z]{2,8}", fullmatch=True).filter(
    lambda word: word not in {"arg", "args", "param", "params", "note", "notes", "tip", "raises"}
)
SENTENCE = st.lists(WORD, min_size=1, max_size=5).map(
    lambda words: " ".join(words).capitalize() + "."
)
TYPE = st.sampled_from(["", "int", "list[str]", "dict[str, int]", "str or None", "{'a', 'b'}"])
ENTRIES = st.dictionaries(
    WORD, st.tuples(TYPE, st.lists(SENTENCE, min_size=1, max_size=3)), min_size=1, max_size=4
)


def _google(entries: dict[str, tuple[str, list[str]]]) -> str:
    heads = {
        name: f"{name} ({stated})" if stated else name for name, (stated, _) in entries.items()
    }
    lines = [
        f"    {heads[name]}: " + "\n        ".join(text) for name, (_, text) in entries.items()
    ]
    return "Args:\n" + "\n".join(lines)


def _numpy(entries: dict[str, tuple[str, list[str]]]) -> str:
    heads = {
        name: f"{name} : {stated}" if stated else name for name, (stated, _) in entries.items()
    }
    lines = [f"{heads[name]}\n    " + "\n    ".join(text) for name, (_, text) in entries.items()]
    return "Parameters\n----------\n" + "\n".join(lines)


def _sphinx(entries: dict[str, tuple[str, list[str]]]) -> str:
    lines = [f":param {name}: " + "\n    ".join(text) for name, (_, text) in entries.items()]
    lines += [f":type {name}: {stated}" for name, (stated, _) in entries.items() if stated]
    return "\n".join(lines)


@pytest.mark.parametrize("write", [_google, _numpy, _sphinx])
@given(entries=ENTRIES, summary=SENTENCE)
def test_a_generated_docstring_is_read_back(
    write: Callable[[dict[str, tuple[str, list[str]]]], str],
    entries: dict[str, tuple[str, list[str]]],
    summary: str,
) -> None:
    """With any number of parameters, lines and types."""
    found = parse_docstring(f"{summary}\n\n{write(entries)}\n\n")
    assert found.params == {name: "\n".join(text) for name, (_, text) in entries.items()}
    assert found.description == summary
    types_ = {name: stated.replace(" or ", " | ") for name, (stated, _) in entries.items()}
    assert {name: stated.replace(" or ", " | ") for name, stated in found.types.items()} == types_


# ----- functions ------------------------------------------------------------------------------


def add(first: int, *rest: int) -> int:
    """Add numbers.

    Args:
        first: Where to start.
        *rest: What to add.
    """
    return first + sum(rest)


class Adder:
    """Adds.

    Attributes:
        start: The first number.
    """

    def __init__(self, start: int, step: int) -> None:
        """Start.

        Args:
            start (int): Not this one.
            step (int): The step.
        """

    def __call__(self, number: int) -> int:
        """Add a number.

        :param number: Which.
        """
        return number


def test_the_documentation_of_a_function_has_three_parts() -> None:
    """`function_schema` and other frameworks use them."""
    assert generate_func_documentation(add) == FuncDocumentation(
        name="add",
        description="Add numbers.",
        param_descriptions={"first": "Where to start.", "rest": "What to add."},
    )


def test_the_documentation_of_a_partial_is_that_of_its_function() -> None:
    """`partial` objects carry the docstring of the class `partial`."""
    found = generate_func_documentation(functools.partial(functools.partial(add), 1))
    assert (found.name, found.description) == ("add", "Add numbers.")


def test_a_class_is_documented_by_its_docstring_and_its_constructor() -> None:
    """Both places are common; the class docstring takes precedence for a parameter."""
    found = generate_func_documentation(Adder)
    assert (found.name, found.description) == ("Adder", "Adds.")
    assert found.param_descriptions == {"start": "The first number.", "step": "The step."}
    assert docstring_of(Adder).types == {"start": "int", "step": "int"}


def test_a_callable_object_is_documented_by_its_call_method() -> None:
    """The docstring of the class describes the object, not the call."""
    found = generate_func_documentation(Adder(1, 2))
    assert found == FuncDocumentation(
        name="Adder", description="Add a number.", param_descriptions={"number": "Which."}
    )


def test_a_callable_object_falls_back_to_the_docstring_of_its_class() -> None:
    """A class with only `__call__` is often documented in one place."""

    class Doubler:
        """Double a number."""

        def __call__(self, number: int) -> int:
            return 2 * number

    assert generate_func_documentation(Doubler()).description == "Double a number."
    assert generate_func_documentation(functools.partial(Doubler().__call__)).description is None


def test_a_method_without_a_docstring_inherits_it_from_the_overridden_method() -> None:
    """Implementations of an interface often do not repeat it."""

    class Loud(Adder):
        def __call__(self, number: int) -> int:
            return -number

        @classmethod
        def make(cls) -> Loud:
            return cls(1, 2)

    assert docstring_of(Loud(1, 2).__call__).params == {"number": "Which."}
    assert docstring_of(Loud.make) == Docstring()


def test_the_docstring_style_of_a_function_can_be_set() -> None:
    """The `docstring_style` option of the decorators is passed to this parameter."""
    assert generate_func_documentation(add, "sphinx").param_descriptions == {}


def test_any_callable_can_be_documented() -> None:
    """Builtins and callables without a signature or docstring have at least a name."""
    callables: list[Any] = [
        print,
        int,
        max,
        functools.partial(max, 1),
        dict.fromkeys,
        type("Odd", (), {}),
    ]
    for func in callables:
        assert generate_func_documentation(func).name


# ----- types ----------------------------------------------------------------------------------


class Place:
    """A class of the user."""


MODULE = types.ModuleType("places")
MODULE.Place = Place  # type: ignore[attr-defined]
NAMESPACE = {"Place": Place, "places": MODULE, "Number": int | float, "find": print}
UserId = typing.NewType("UserId", int)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("int", int),
        ("integer", int),
        ("str", str),
        ("String", str),
        ("bool, optional", bool),
        ("bool (default: True)", bool),
        ("optional int", int),
        ("float", float),
        ("dict", dict),
        ("dictionary", dict),
        ("Dict[str, Any]", dict[str, Any]),
        ("list of str", list[str]),
        ("list of strings", list[str]),
        ("list of list of int", list[list[int]]),
        ("list[int]", list[int]),
        ("List[int]", list[int]),
        ("typing.List[int]", list[int]),
        ("sequence of float", list[float]),
        ("tuple of int", tuple[int, ...]),
        ("tuple[int, str]", tuple[int, str]),
        ("tuple[int, ...]", tuple[int, ...]),
        ("set of str", set[str]),
        ("list of things", list),
        ("dict of str to int", dict),
        ("int or None", int | None),
        ("None or int", int | None),
        ("int, str or None", int | str | None),
        ("str | None", str | None),
        ("Optional[str]", str | None),
        ("Union[int, str]", int | str),
        ("str or list of str", str | list[str]),
        ("list of str or None", list[str] | None),
        ("{'a', 'b'}", Literal["a", "b"]),
        ("{'a', 'b'}, optional", Literal["a", "b"]),
        ("{'a', 'b'} or None", Literal["a", "b"] | None),
        ("{1, 2}", Literal[1, 2]),
        ("Literal['a', 'b']", Literal["a", "b"]),
        (":class:`Place`", Place),
        ("``int``", int),
        ("C{int}", int),
        ("Place", Place),
        ("places.Place", Place),
        ("list of Place", list[Place]),
        ("Optional[Place]", Place | None),
        ("Number", int | float),
        ("UserId", UserId),
        ("any", Any),
    ],
)
def test_an_unambiguous_type_is_resolved(text: str, wanted: Any) -> None:
    """A parameter without an annotation then has a real type in the schema."""
    found = resolve_doc_type(text, {**NAMESPACE, "UserId": UserId})
    assert found == wanted or typing.get_args(found) == typing.get_args(wanted) != ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "None",
        "array_like",
        "callable",
        "Callable[[int], str]",
        "function",
        "path-like",
        "int, float",
        "list of int or str",
        "int > 0",
        "positive int",
        "3 ints",
        "'a' or 'b'",
        "{'a', b}",
        "{1.5, 2}",
        "Place()",
        "lambda: 1",
        "[int]",
        "int if x else str",
        "__import__('os')",
        "find",
        "Missing",
        "list[Missing]",
        "list[int, str]",
        "dict[str]",
        "places.Missing",
        "places.Place.name",
        "x.y.z",
        "list[",
        "1or 2",
        r"'\d'",
        "(" * 150,
        "-" * 150,
        "int " * 100,
    ],
)
def test_an_ambiguous_type_is_left_open(text: str) -> None:
    """A wrong type refuses valid arguments; no type refuses none."""
    assert resolve_doc_type(text, NAMESPACE) is None


def test_resolving_a_type_runs_no_code() -> None:
    """A docstring is data."""
    ran: list[str] = []

    class Meta(type):
        def __getattr__(cls, name: str) -> type:
            ran.append(name)
            return int

        def __getitem__(cls, item: object) -> type:
            ran.append("item")
            return int

    class Trap(metaclass=Meta):
        def __class_getitem__(cls, item: object) -> type:
            ran.append("class item")
            return int

    module = types.ModuleType("trap")
    module.__getattr__ = ran.append  # type: ignore[method-assign]
    for text in ("Trap.x", "Trap[int]", "trap.x", "trap.x.y", "Trap.x[int]", "Trap()", "Trap + 1"):
        assert resolve_doc_type(text, {"Trap": Trap, "trap": module}) is None
    assert ran == []
