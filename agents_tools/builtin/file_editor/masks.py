"""Refusal of edits with masks: a view shows a mask where the file holds a secret."""

from __future__ import annotations

from agents_tools.errors import ToolError
from agents_tools.text.forms import MASK
from agents_tools.text.output import release_text
from agents_tools.text.secrets import has_secrets

__all__ = ["check_masks"]


def check_masks(content: str, shown: str, **arguments: str | None) -> None:
    """Raise an error if an edit would replace a secret in a file by its mask.

    A text with a mask can be meant as it is, such as a rule in Markdown. It is refused only for a
    file whose view has masks, unless the file itself has lines like that.

    Args:
        content: The text of the file before the edit.
        shown: The path for messages.
        arguments: The texts of the edit by name; `None` for one that is not given.

    Raises:
        ToolError: An argument contains the mask of a secret.
    """
    texts = {name: text for name, text in arguments.items() if text and MASK in text}
    if not texts or not has_secrets():
        return
    lines = set(content.splitlines())
    masked = {view for line in lines if (view := release_text(line, to="model")) != line}
    masked = {line for line in masked if MASK in line}
    if not masked:
        return
    has_own = MASK in content
    for name, text in texts.items():
        edited = (line.strip() for line in text.splitlines() if MASK in line and line not in lines)
        if any(not has_own or any(line in view for view in masked) for line in edited):
            raise ToolError(
                f"{name} contains {MASK}, which a view shows in place of a secret; {shown} holds "
                "the secret itself, and nothing was changed. Edit only text without the secret, or "
                "change the secret with a command that does not print it."
            )
