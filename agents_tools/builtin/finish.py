"""The finish tool: a model reports the end and the result of its task.

The tool does not end the run itself; configure the agent to stop on it:

```python
from agents_tools import Agent
from agents_tools.builtin.finish import FinishTool

agent = Agent(
    "Worker",
    tools=[tool.as_function_tool() for tool in FinishTool.create()],
    tool_use_behavior={"stop_at_tool_names": ["finish"]},
)
```

The final output of the run is then the `FinishObservation`, with `result` and `success`, also for
a failed task (`success=False`). Other calls of the same turn run first. Without
`tool_use_behavior`, the run continues and ends with a text of the model as usual.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base
from typing import ClassVar, Self

from pydantic import AliasChoices, Field

from agents_tools.classes.definition import Action, Observation, ToolDefinition, ToolExecutor
from agents_tools.errors import UserValueError
from agents_tools.tool.records import ToolAnnotations

__all__ = [
    "FINISH_DESCRIPTION",
    "FinishAction",
    "FinishExecutor",
    "FinishObservation",
    "FinishTool",
]

FINISH_DESCRIPTION = """\
Report the end of the task and its result.

Call it once, as the last call, when:
- the task is done and verified; or
- you cannot continue: set success=false and name the obstacle.
In `result`, include everything the user needs: the answer, the changes, and open points."""


class FinishAction(Action):
    """The end of a task."""

    result: str = Field(
        description="The final result or answer, for the user.",
        validation_alias=AliasChoices("result", "message"),
    )
    success: bool = Field(default=True, description="Whether the task was completed.")

    @property
    def message(self) -> str:
        """The result, by its other name."""
        return self.result


class FinishObservation(Observation):
    """The end of a task.

    Attributes:
        result: The final result or answer.
        success: Whether the task was completed; `False` is not an error of the call.
    """

    result: str = ""
    success: bool = True

    @property
    def message(self) -> str:
        """The result, by its other name."""
        return self.result


class FinishExecutor(ToolExecutor[FinishAction, FinishObservation]):
    """Return the result of the task."""

    def __call__(self, action: FinishAction, conversation: object = None) -> FinishObservation:
        """Return the observation."""
        del conversation
        return FinishObservation.from_text(
            action.result, result=action.result, success=action.success
        )


class FinishTool(ToolDefinition[FinishAction, FinishObservation]):
    """Tool with which a model reports the end and result of a task."""

    name: ClassVar[str] = "finish"

    @classmethod
    def create(cls, conv_state: object = None, **params: object) -> Sequence[Self]:
        """Create the tool.

        Args:
            conv_state: Ignored.
            **params: Not supported.

        Raises:
            ValueError: Unknown parameters.
        """
        del conv_state
        if params:
            raise UserValueError(f"FinishTool accepts no parameters, but got {', '.join(params)}.")
        return [
            cls(
                description=FINISH_DESCRIPTION,
                action_type=FinishAction,
                observation_type=FinishObservation,
                executor=FinishExecutor(),
                annotations=ToolAnnotations(
                    readOnlyHint=True,
                    destructiveHint=False,
                    idempotentHint=True,
                    openWorldHint=False,
                ),
            )
        ]
