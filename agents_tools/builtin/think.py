"""A tool that lets a model write a thought down between two steps, and does nothing else."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base
from typing import ClassVar, Self

from pydantic import Field

from agents_tools.classes.definition import Action, Observation, ToolDefinition, ToolExecutor
from agents_tools.errors import UserValueError
from agents_tools.tool.declaration import ToolAnnotations

__all__ = ["THINK_DESCRIPTION", "ThinkAction", "ThinkExecutor", "ThinkObservation", "ThinkTool"]

THINK_DESCRIPTION = """\
Write a thought down. Nothing is read, run or changed; the thought stays in the conversation.

Use it before a step that is hard to take back:
- after a result that was not expected: what may have caused it, and how to tell which it was;
- before a plan or a design: the ways there are, and what each costs;
- where rules apply: which ones, what is still missing, and whether the next step keeps to them.
Do not use it for steps that are plain."""

LOGGED = "Your thought has been logged."


class ThinkAction(Action):
    """A thought to write down."""

    thought: str = Field(description="The thought to log.")


class ThinkObservation(Observation):
    """That a thought has been written down."""


class ThinkExecutor(ToolExecutor[ThinkAction, ThinkObservation]):
    """Acknowledges a thought: the call itself is what stays in the history."""

    def __call__(self, action: ThinkAction, conversation: object = None) -> ThinkObservation:
        """Acknowledge the thought."""
        del action, conversation
        return ThinkObservation.from_text(LOGGED)


class ThinkTool(ToolDefinition[ThinkAction, ThinkObservation]):
    """Lets a model think in the middle of a chain of tools; the history keeps the thought."""

    name: ClassVar[str] = "think"

    @classmethod
    def create(
        cls, conv_state: object = None, *, description: str | None = None, **params: object
    ) -> Sequence[Self]:
        """Create the tool.

        Args:
            conv_state: Ignored.
            description: What models are told instead of `THINK_DESCRIPTION`: when to think in
                this domain and about what, best with an example.
            **params: Not supported.

        Raises:
            ValueError: Other parameters were given.
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
