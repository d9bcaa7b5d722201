"""The argument in which a model says how risky its call is."""

from __future__ import annotations

import json
from typing import Any, Literal, cast, get_args

from agents_tools._json import check_bounds, check_keys
from agents_tools.errors import ModelBehaviorError, UserValueError

__all__ = ["RISK", "SecurityRisk", "take_risk", "with_risk"]

RISK = "security_risk"
SecurityRisk = Literal["LOW", "MEDIUM", "HIGH", "UNKNOWN"]
"""How risky a model thinks its call is."""

_LEVELS = get_args(SecurityRisk)
_PROPERTY = {
    "type": "string",
    "enum": list(_LEVELS),
    "description": "How risky this call is: LOW reads or changes little, MEDIUM changes what can "
    "be undone, HIGH may destroy or disclose something.",
}


def with_risk(schema: dict[str, Any], tool: str) -> dict[str, Any]:
    """Give a JSON Schema with the argument, which stands first so that cut-off calls have it.

    Args:
        schema: The JSON Schema of the tool's arguments.
        tool: The name of the tool, for the error.

    Raises:
        UserError: The tool has an argument of that name.
    """
    properties: dict[str, Any] = schema.get("properties", {})
    if RISK in properties:
        raise UserValueError(
            f"Tool {tool!r} has a parameter {RISK!r} of its own, so models cannot be asked for "
            "the risk of its calls. Rename the parameter."
        )
    required = [RISK, *schema.get("required", ())]
    return {**schema, "properties": {RISK: dict(_PROPERTY), **properties}, "required": required}


def take_risk(args_json: str, tool: str) -> tuple[str, SecurityRisk]:
    """Take the argument off.

    Args:
        args_json: The arguments as JSON text.
        tool: The name of the tool, for the error.

    Returns:
        The other arguments, and the risk; `UNKNOWN` where the model did not say.

    Raises:
        ModelBehaviorError: The model said something else.
    """
    try:
        check_bounds(args_json)
        check_keys(args_json)
        data: Any = json.loads(args_json)
    except ValueError:
        return args_json, "UNKNOWN"  # whoever reads it says what is wrong with it
    if isinstance(data, str) and data.lstrip().startswith("{"):
        return take_risk(data, tool)  # an object in a string, as some models send it
    if not isinstance(data, dict) or RISK not in data:
        return args_json, "UNKNOWN"
    arguments = cast("dict[str, Any]", data)
    risk = arguments.pop(RISK)
    level = risk.upper() if isinstance(risk, str) else risk
    if level is None:
        level = "UNKNOWN"
    if level not in _LEVELS:
        raise ModelBehaviorError(
            f"Invalid arguments for tool {tool!r}:\n- {RISK}: expected one of "
            f"{', '.join(_LEVELS)}, got {json.dumps(risk)[:80]}"
        )
    return json.dumps(arguments, ensure_ascii=False), cast("SecurityRisk", level)
