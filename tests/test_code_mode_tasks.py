"""Test code mode on the tasks of its benchmark."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks.code_mode.__main__ import measure
from tests.benchmarks.code_mode.tasks import TASKS, Task

pytest.importorskip("pydantic_monty")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_a_program_needs_a_fifth_of_the_tokens(task: Task) -> None:
    """It has the same result as the calls of the model, without their results in the context."""
    parallel = await measure(task, "parallel")
    search = await measure(task, "search")
    code = await measure(task, "code")
    assert json.loads(code.output) == task.result
    assert code.requests == 2 <= parallel.requests
    assert code.tokens < 0.2 * min(parallel.tokens, search.tokens)
