"""Traces, metrics, logs and timelines of runs.

```python
from agents_tools.telemetry import instrument

with instrument():
    ...
```

- `instrument`: spans and metrics for OpenTelemetry (extra `otel`).
- `log_calls`, `JsonFormatter`: one standard library log record per call and run.
- `chrome_trace`, `write_chrome_trace`: a timeline of events for the trace viewer of a browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.telemetry.logs import (
        JsonFormatter as JsonFormatter,
        log_calls as log_calls,
    )
    from agents_tools.telemetry.otel import (
        Instrumentation as Instrumentation,
        instrument as instrument,
    )
    from agents_tools.telemetry.timeline import (
        chrome_trace as chrome_trace,
        write_chrome_trace as write_chrome_trace,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "logs": (
            "JsonFormatter",
            "log_calls",
        ),
        "otel": (
            "Instrumentation",
            "instrument",
        ),
        "timeline": (
            "chrome_trace",
            "write_chrome_trace",
        ),
    },
    requires={"otel": "pip install 'agents-tools[otel]' opentelemetry-sdk"},
)
