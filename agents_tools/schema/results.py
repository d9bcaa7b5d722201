"""Compare structured results with the output schema of their tool."""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agents_tools.text.escape import escape_for_model, shorten
from agents_tools.text.secrets import guard_logs, mask

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["result_faults"]

_MAX_FAULTS = 5

logger = logging.getLogger("agents_tools")
guard_logs()


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
        faults.append(shorten(mask(escape_for_model(f"{path} {error.message}".strip())), 200))
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
        return validator_for(json.loads(schema), offline=True)
    except Exception as error:  # noqa: BLE001 - an invalid schema is not enforced
        logger.warning("The output schema of tool %r is not valid: %s", tool, error)
        return None
