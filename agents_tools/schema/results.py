"""Validate structured results against the output schema of their tool."""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agents_tools.errors import ToolError
from agents_tools.schema.validators import refuse_reference
from agents_tools.text.output import release_json, release_text
from agents_tools.text.secrets import guard_logs

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["result_faults", "structured_result"]

_MAX_FAULTS = 5

logger = logging.getLogger("agents_tools")
guard_logs()


def structured_result(name: str, schema: Mapping[str, Any], result: str) -> Any:
    """Return a result as JSON values for a client that validates it, with secrets masked.

    Args:
        name: The name of the tool.
        schema: The output schema of the tool.
        result: The result as JSON text.

    Raises:
        ToolError: The result does not match the output schema. The text is for the model.
    """
    structured = json.loads(result)
    faults = result_faults(name, schema, structured)
    if faults:
        shown = "; ".join(faults)
        logger.error("The result of tool %r does not match its output schema: %s", name, shown)
        raise ToolError(
            f"Tool {name!r} ran, but its result does not match its output schema: {shown}. "
            "This is a fault of the tool and not of the call: do not repeat it with other "
            "arguments."
        )
    return release_json(structured, to="program")


def result_faults(tool: str, schema: Mapping[str, Any], value: Any) -> list[str]:
    """Return the differences between a structured result and an output schema.

    Args:
        tool: The name of the tool, for the log.
        schema: The output schema.
        value: The result as JSON values.

    Returns:
        At most five texts. The list is empty if the result matches, if the schema is not valid,
        which is logged once, or if jsonschema-rs is not installed.
    """
    validator = _validator(tool, json.dumps(schema))
    faults: list[str] = []
    for error in () if validator is None else validator.iter_errors(value):
        path = "".join(f"[{step!r}]" for step in error.instance_path)
        text = f"{path} {error.message}".strip()
        faults.append(release_text(text, to="model", limit=200, patterns=True))
        if len(faults) == _MAX_FAULTS:
            break
    return faults


@lru_cache(maxsize=256)
def _validator(tool: str, schema: str) -> Any:
    try:
        from jsonschema_rs import validator_for
    except ImportError:
        return None
    try:
        return validator_for(json.loads(schema), retriever=refuse_reference)
    except Exception as error:  # noqa: BLE001 - an invalid schema is not enforced
        logger.warning("The output schema of tool %r is not valid: %s", tool, error)
        return None
