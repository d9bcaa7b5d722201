"""JSON Schemas from signatures and docstrings, and the parsing of arguments against them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.schema.docstring import (
        FuncDocumentation as FuncDocumentation,
        generate_func_documentation as generate_func_documentation,
    )
    from agents_tools.schema.function import (
        FuncSchema as FuncSchema,
        function_schema as function_schema,
    )
    from agents_tools.schema.strict import (
        StrictFallbackWarning as StrictFallbackWarning,
        ensure_strict_json_schema as ensure_strict_json_schema,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "function": (
            "FuncSchema",
            "function_schema",
        ),
        "docstring": (
            "FuncDocumentation",
            "generate_func_documentation",
        ),
        "strict": (
            "StrictFallbackWarning",
            "ensure_strict_json_schema",
        ),
    },
)
