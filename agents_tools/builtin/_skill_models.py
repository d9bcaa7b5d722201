"""What the tool of skills takes and what it gives."""

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
        description="For run_script: its arguments, best as a list. A text is split at blanks; "
        "quotes hold words together.",
    )


class SkillObservation(Observation):
    """What a skill says, or what its script did.

    Attributes:
        action: What was asked for.
        skill_name: Of which skill.
        exit_code: How the script ended; `None` if none was run or it was ended.
        timed_out: Whether the script was ended because it took too long.
        truncated: Whether not all of the text is there.
    """

    action: Literal["get_info", "get_reference", "run_script"] = "get_info"
    skill_name: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    truncated: bool = False
