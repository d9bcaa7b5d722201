"""The action and observation of the skill tool."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agents_tools.classes.definition import Action, Observation

__all__ = ["SkillAction", "SkillObservation"]


class SkillAction(Action):
    """What to do with a skill."""

    action: Literal["get_info", "get_reference", "run_script"] = Field(
        description="What to do: get_info, get_reference or run_script."
    )
    skill_name: str = Field(description="The name of the skill.")
    reference_name: str | None = Field(
        default=None, description="For get_reference: the name of the reference."
    )
    script_name: str | None = Field(
        default=None, description="For run_script: the name of the script."
    )
    script_args: str | list[str] | None = Field(
        default=None,
        description="For run_script: its arguments, preferably a list. A text is split at spaces, "
        "except within quotes.",
    )


class SkillObservation(Observation):
    """The content of a skill, or the result of its script.

    Attributes:
        action: The action.
        skill_name: The name of the skill.
        exit_code: The exit code of the script; `None` if none was run or it was terminated.
        timed_out: Whether the script was terminated at its timeout.
        truncated: Whether the text is truncated.
    """

    action: Literal["get_info", "get_reference", "run_script"] = "get_info"
    skill_name: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    truncated: bool = False
