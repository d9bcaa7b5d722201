"""Tools, agents and runs in the cells of a real notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient

if TYPE_CHECKING:
    from collections.abc import Sequence

_SETUP = """
from agents_tools import (
    Agent, NotifyStreamEvent, RunConfig, Runner, ToolProgressEvent, function_tool, streaming_tool,
)
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import console

@streaming_tool
async def crawl(url: str, depth: int = 2):
    '''Crawl a site.

    Args:
        url: The first page.
        depth: The number of links to follow.
    '''
    for page in range(1, 6):
        yield ToolProgressEvent(page, total=5, message=f"page {page}")
        yield NotifyStreamEvent(f"note {page}")
    yield "12 <b>pages</b>"

model = ScriptedModel([
    [tool_call("crawl", url="a"), tool_call("crawl", url="b")], "Both have 12 pages.",
    tool_call("crawl", url="c"), "It has 12 pages.",
])
reader = Agent("Reader", instructions="Read <i>sites</i>.", tools=[crawl], model=model)
"""


def outputs_of(*cells: str) -> list[list[Any]]:
    """Run a notebook in its own kernel and return the outputs of its cells after the first."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in (_SETUP, *cells)]
    NotebookClient(notebook, timeout=60).execute()
    return [cell.outputs for cell in notebook.cells[1:]]


@pytest.fixture(scope="module")
def outputs() -> Sequence[list[Any]]:
    """Run one notebook for all tests of this module, because a kernel takes seconds to start."""
    return outputs_of(
        'await console.render(Runner.run_streamed(reader, "Which?"))',
        "crawl",
        "reader",
        'await Runner.run(reader, "And c?")',
        "@function_tool\ndef broken(value: object()): ...\nbroken",
    )


@pytest.mark.slow
def test_a_run_has_one_output_that_is_updated(outputs: Sequence[list[Any]]) -> None:
    [tree] = outputs[0]
    assert tree.output_type == "display_data"
    assert "crawl" in tree.data["text/html"]
    lines = tree.data["text/plain"].splitlines()
    assert len(lines) == 3
    assert "Reader" in lines[0]
    assert 'crawl url="b" → 12 <b>pages</b>' in lines[2]


def test_a_tool_shows_its_parameters(outputs: Sequence[list[Any]]) -> None:
    [shown] = outputs[1]
    page = shown.data["text/html"]
    for text in ("crawl", "Crawl a site.", "url", "string", "required", "integer", "2"):
        assert text in page
    assert "The number of links to follow." in page


def test_an_agent_shows_its_instructions_and_tools(outputs: Sequence[list[Any]]) -> None:
    [shown] = outputs[2]
    page = shown.data["text/html"]
    assert "ScriptedModel" in page
    assert "Read &lt;i&gt;sites&lt;/i&gt;." in page
    assert "Crawl a site." in page


def test_a_result_shows_its_calls_and_answer(outputs: Sequence[list[Any]]) -> None:
    [shown] = outputs[3]
    page = shown.data["text/html"]
    assert "12 &lt;b&gt;pages&lt;/b&gt;" in page
    assert "It has 12 pages." in page
    assert "2 turns" in page


def test_a_tool_without_a_schema_shows_the_error(outputs: Sequence[list[Any]]) -> None:
    [shown] = outputs[4]
    assert "has no JSON form" in shown.data["text/html"]
