"""A tool by which a model reads skills and runs their scripts."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - as in the signature of the base
from typing import TYPE_CHECKING, ClassVar, Self

from agents_tools.builtin._skill_models import SkillAction, SkillObservation
from agents_tools.builtin._skills import Skill, SkillError, SkillRegistry
from agents_tools.classes.definition import ToolDefinition, working_dir_of
from agents_tools.errors import UserValueError
from agents_tools.text.escape import escape_for_model, shorten
from agents_tools.tool.declaration import ToolAnnotations

if TYPE_CHECKING:
    import os

    from agents_tools.builtin.sandbox import Sandbox

__all__ = ["Skill", "SkillAction", "SkillError", "SkillObservation", "SkillRegistry", "SkillTool"]

SKILL_DESCRIPTION = """\
Use skills: instructions, references and scripts for special work.

- `get_info`: the instructions of a skill, and the names of its references and scripts. Do this \
first.
- `get_reference`: one of its references, by `reference_name`.
- `run_script`: run one of its scripts, by `script_name`. It starts in the working directory; \
`script_args` reach it as they are, no shell is between."""

_MAX_LINE = 300
_MAX_LIST = 20_000


class SkillTool(ToolDefinition[SkillAction, SkillObservation]):
    """Offers skills to a model: it reads of one only what it needs."""

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
            conv_state: Whose `workspace.working_dir` scripts start in.
            skill_registry: The skills. The description lists those that are in it now.
            skills_dir: A folder to look for skills in, instead.
            working_dir: Where scripts start, instead; the current directory by default.
            timeout: The seconds a script may take.
            max_output: The characters that are shown of a reference, or of what a script prints.
            sandbox: How scripts are started; by default they are ended, but not confined.
            **params: Not supported.

        Raises:
            ValueError: There is neither or both of skill_registry and skills_dir, or something
                else is wrong with the parameters.
        """
        from agents_tools.builtin._skill_impl import SkillExecutor

        if params:
            raise UserValueError(
                f"SkillTool knows no parameter {', '.join(params)}. Give skill_registry or "
                "skills_dir, working_dir, timeout, max_output, sandbox."
            )
        if not timeout > 0 or max_output < 1:
            raise UserValueError("timeout and max_output of SkillTool are above zero.")
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
    raise UserValueError("SkillTool takes either skill_registry= or skills_dir=.")


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
