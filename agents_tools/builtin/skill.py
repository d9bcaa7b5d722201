"""The skill tool: a model reads skills and runs their scripts."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base
from typing import TYPE_CHECKING, ClassVar, Self

from agents_tools.builtin.skill_models import SkillAction, SkillObservation
from agents_tools.builtin.skill_registry import Skill, SkillError, SkillRegistry
from agents_tools.classes.definition import ToolDefinition, working_dir_of
from agents_tools.errors import UserValueError
from agents_tools.text.characters import escape_for_model
from agents_tools.text.escape import shorten
from agents_tools.tool.records import ToolAnnotations

if TYPE_CHECKING:
    import os

    from agents_tools.builtin.sandbox import Sandbox

__all__ = ["Skill", "SkillAction", "SkillError", "SkillObservation", "SkillRegistry", "SkillTool"]

SKILL_DESCRIPTION = """\
Use skills: instructions, references and scripts for special tasks.

- `get_info`: return the instructions of a skill and the names of its references and scripts. Do \
this first.
- `get_reference`: return the reference `reference_name`.
- `run_script`: run the script `script_name` in the working directory with `script_args`, without \
a shell."""

_MAX_LINE = 300
_MAX_LIST = 20_000


class SkillTool(ToolDefinition[SkillAction, SkillObservation]):
    """Tool that gives a model access to skills on demand."""

    name: ClassVar[str] = "use_skill"

    @classmethod
    def create(
        cls,
        conv_state: object = None,
        *,
        skill_registry: SkillRegistry | None = None,
        skills_dir: str | os.PathLike[str] | None = None,
        working_dir: str | os.PathLike[str] | None = None,
        timeout: float = 120.0,
        max_output: int = 30_000,
        sandbox: Sandbox | None = None,
        **params: object,
    ) -> Sequence[Self]:
        """Create the tool.

        Args:
            conv_state: Provides `workspace.working_dir` as the directory of scripts.
            skill_registry: The skills. The description lists its current skills.
            skills_dir: A folder to search for skills, instead of `skill_registry`.
            working_dir: The directory of scripts, instead; the current directory by default.
            timeout: The maximum seconds of a script.
            max_output: The maximum number of characters of a reference or an output.
            sandbox: The sandbox of scripts; by default they are terminated, but not confined.
            **params: Not supported.

        Raises:
            ValueError: A parameter is invalid, or not exactly one of skill_registry and skills_dir
                is set.
        """
        from agents_tools.builtin.skill_executor import SkillExecutor

        if params:
            raise UserValueError(
                f"SkillTool got unknown parameters: {', '.join(params)}. Pass skill_registry or "
                "skills_dir, working_dir, timeout, max_output, sandbox."
            )
        if not timeout > 0 or max_output < 1:
            raise UserValueError("SkillTool(timeout, max_output): expected numbers above 0.")
        registry = _registry(skill_registry, skills_dir)
        executor = SkillExecutor(
            registry,
            working_dir_of(conv_state, working_dir),
            timeout=timeout,
            max_output=max_output,
            sandbox=sandbox,
        )
        return [
            cls(
                description=_description(registry),
                action_type=SkillAction,
                observation_type=SkillObservation,
                executor=executor,
                annotations=ToolAnnotations(
                    readOnlyHint=False,
                    destructiveHint=True,
                    idempotentHint=False,
                    openWorldHint=True,
                ),
            )
        ]


def _registry(
    given: SkillRegistry | None, directory: str | os.PathLike[str] | None
) -> SkillRegistry:
    if given is not None and directory is None:
        return given
    if given is None and directory is not None:
        return SkillRegistry(directory)
    raise UserValueError(
        "SkillTool expects one of skill_registry= and skills_dir=. Pass exactly one."
    )


def _description(registry: SkillRegistry) -> str:
    lines = [SKILL_DESCRIPTION, "", "Skills:" if len(registry) else "There are no skills yet."]
    size = 0
    for number, skill in enumerate(registry):
        text = escape_for_model(" ".join(skill.description.split()))
        line = f"- {skill.name}: {shorten(text, _MAX_LINE)}"
        size += len(line)
        if size > _MAX_LIST:
            rest = ", ".join(registry.names[number:])
            lines.append(f"- and {len(registry) - number} more: {rest}")
            break
        lines.append(line)
    return shorten("\n".join(lines), 2 * _MAX_LIST)
