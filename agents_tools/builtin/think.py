"""The think tool: a model records a thought, without any other effect."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base
from typing import ClassVar, Self

from pydantic import Field

from agents_tools.classes.definition import Action, Observation, ToolDefinition, ToolExecutor
from agents_tools.errors import UserValueError
from agents_tools.tool.records import ToolAnnotations

__all__ = ["THINK_DESCRIPTION", "ThinkAction", "ThinkExecutor", "ThinkObservation", "ThinkTool"]

THINK_DESCRIPTION = """\
Record a thought. Nothing is read, run or changed; the thought stays in the conversation.

Use it before a step that is hard to undo:
- after an unexpected result: list possible causes and how to tell them apart;
- before a plan or a design: compare the options and their costs;
- if rules apply: list them, missing information, and whether the next step complies.
Do not use it for simple steps."""

LOGGED = "Your thought has been logged."


class ThinkAction(Action):
    """A thought to record."""

    thought: str = Field(description="The thought to log.")


class ThinkObservation(Observation):
    """The confirmation of a thought."""


class ThinkExecutor(ToolExecutor[ThinkAction, ThinkObservation]):
    """Executor that acknowledges a thought; the call itself stays in the history."""

    def __call__(self, action: ThinkAction, conversation: object = None) -> ThinkObservation:
        """Acknowledge the thought."""
        del action, conversation
        return ThinkObservation.from_text(LOGGED)


class ThinkTool(ToolDefinition[ThinkAction, ThinkObservation]):
    """Tool with which a model thinks between tool calls; the history contains the thought."""

    name: ClassVar[str] = "think"

    @classmethod
    def create(
        cls, conv_state: object = None, *, description: str | None = None, **params: object
    ) -> Sequence[Self]:
        """Create the tool.

        Args:
            conv_state: Ignored.
            description: A description for models instead of `THINK_DESCRIPTION`: when and what to
                think in this domain, preferably with an example.
            **params: Not supported.

        Raises:
            ValueError: Unknown parameters.
        """
        del conv_state
        if params:
            raise UserValueError(
                f"ThinkTool accepts only the parameter description, but got {', '.join(params)}."
            )
        return [
            cls(
                description=THINK_DESCRIPTION if description is None else description,
                action_type=ThinkAction,
                observation_type=ThinkObservation,
                executor=ThinkExecutor(),
                annotations=ToolAnnotations(
                    readOnlyHint=True,
                    destructiveHint=False,
                    idempotentHint=True,
                    openWorldHint=False,
                ),
            )
        ]
