"""What runs leave behind for those who operate them: traces, metrics, logs and timelines.

```python
from agents_tools.telemetry import instrument

with instrument():
    ...
```

- `instrument`: spans and metrics for OpenTelemetry (extra `otel`).
- `log_calls`, `JsonFormatter`: one record of the standard library's logging per call and run.
- `chrome_trace`, `write_chrome_trace`: events as a timeline for a browser's trace viewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserError
from agents_tools.telemetry.logs import JsonFormatter, log_calls
from agents_tools.telemetry.timeline import chrome_trace, write_chrome_trace

if TYPE_CHECKING:
    from agents_tools.telemetry.otel import Instrumentation as Instrumentation, instrument

__all__ = [
    "Instrumentation",
    "JsonFormatter",
    "chrome_trace",
    "instrument",
    "log_calls",
    "write_chrome_trace",
]


def __getattr__(name: str) -> Any:
    if name not in {"Instrumentation", "instrument"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from agents_tools.telemetry import otel
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise UserError(
            "Traces and metrics need OpenTelemetry, which is not installed. "
            "Install it with: pip install 'agents-tools[otel]' opentelemetry-sdk"
        ) from error
    return getattr(otel, name)
