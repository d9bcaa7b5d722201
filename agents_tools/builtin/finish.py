"""A tool by which a model says that the task is over, and with what result.

The tool itself ends nothing: an agent ends on it if it is told to.

```python
from agents_tools import Agent
from agents_tools.builtin.finish import FinishTool

agent = Agent(
    "Worker",
    tools=[tool.as_function_tool() for tool in FinishTool.create()],
    tool_use_behavior={"stop_at_tool_names": ["finish"]},
)
```

The final output of the run is then the `FinishObservation`, with `result` and `success`; a task
that was given up (`success=False`) ends it as well. Other calls of the same turn are run first.
Without `tool_use_behavior` the model is asked again, and the run ends with its text as ever.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base
from typing import ClassVar, Self

from pydantic import AliasChoices, Field

from agents_tools.classes.definition import Action, Observation, ToolDefinition, ToolExecutor
from agents_tools.errors import UserValueError
from agents_tools.tool.declaration import ToolAnnotations

__all__ = [
    "FINISH_DESCRIPTION",
    "FinishAction",
    "FinishExecutor",
    "FinishObservation",
    "FinishTool",
]

FINISH_DESCRIPTION = """\
Say that the task is over, and give its result.

Call it once, as the last call, when:
- the task is done, and you have checked that it is; or
- you cannot go on: then with success=false, and with what is missing.
In `result` say what the user needs to know: the answer, what was changed, what is still open."""


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
    """How a task ended.

    Attributes:
        result: The final result or answer.
        success: Whether the task was completed; `False` is no error of the call.
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
        """Return how the task ended."""
        del conversation
        return FinishObservation.from_text(
            action.result, result=action.result, success=action.success
        )


class FinishTool(ToolDefinition[FinishAction, FinishObservation]):
    """Lets a model end a task with a result, done or given up."""

    name: ClassVar[str] = "finish"

    @classmethod
    def create(cls, conv_state: object = None, **params: object) -> Sequence[Self]:
        """Create the tool.

        Args:
            conv_state: Ignored.
            **params: Not supported.

        Raises:
            ValueError: Parameters were given.
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
