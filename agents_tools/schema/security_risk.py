"""The `security_risk` argument, with which a model rates the risk of its call."""

from __future__ import annotations

import json
from typing import Any, Literal, cast, get_args

from agents_tools.errors import ModelBehaviorError, UserValueError

__all__ = ["RISK", "SecurityRisk", "take_risk", "with_risk"]

RISK = "security_risk"
SecurityRisk = Literal["LOW", "MEDIUM", "HIGH", "UNKNOWN"]
"""The risk of a call as the model rates it."""

_LEVELS = get_args(SecurityRisk)
_PROPERTY = {
    "type": "string",
    "enum": list(_LEVELS),
    "description": "How risky this call is: LOW reads or changes little, MEDIUM changes what can "
    "be undone, HIGH may destroy or disclose something.",
}


def with_risk(schema: dict[str, Any], tool: str) -> dict[str, Any]:
    """Return a JSON Schema with the argument in front, so that truncated calls contain it.

    Args:
        schema: The JSON Schema of the tool's arguments.
        tool: The name of the tool, for the error.

    Raises:
        UserError: The tool has an argument of the same name.
    """
    properties: dict[str, Any] = schema.get("properties", {})
    if RISK in properties:
        raise UserValueError(
            f"Tool {tool!r} already has a parameter {RISK!r}, so models cannot be asked for the "
            "risk of its calls. Rename the parameter."
        )
    required = [RISK, *schema.get("required", ())]
    return {**schema, "properties": {RISK: dict(_PROPERTY), **properties}, "required": required}


def take_risk(arguments: dict[str, Any], tool: str) -> SecurityRisk:
    """Remove the risk from arguments and return it; `UNKNOWN` if the model did not rate it.

    Args:
        arguments: The arguments as JSON values.
        tool: The name of the tool, for the error.

    Raises:
        ModelBehaviorError: The risk has an unknown value.
    """
    risk: Any = arguments.pop(RISK, None)
    level = "UNKNOWN" if risk is None else risk.upper() if isinstance(risk, str) else risk
    if level not in _LEVELS:
        raise ModelBehaviorError(
            f"Invalid arguments for tool {tool!r}:\n- {RISK}: expected one of "
            f"{', '.join(_LEVELS)}, got {json.dumps(risk)[:80]}"
        )
    return cast("SecurityRisk", level)
