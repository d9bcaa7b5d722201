"""The type variables of agents and of the results of their runs."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

__all__ = ["ContextT", "OutputT"]

ContextT = TypeVar("ContextT", default=Any)
"""The type of the application's object that tools and hooks receive."""

OutputT = TypeVar("OutputT", default=str)
"""The type of the final output: the `output_type` of the agent, or text."""
