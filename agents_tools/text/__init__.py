"""Text that leaves a call: escaping, secrets, limits of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.text.json_limits import (
        JsonLimits as JsonLimits,
        configure_json_limits as configure_json_limits,
    )
    from agents_tools.text.secrets import (
        forget_secret as forget_secret,
        register_secret as register_secret,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "json_limits": ("JsonLimits", "configure_json_limits"),
        "secrets": ("forget_secret", "register_secret"),
    },
)
