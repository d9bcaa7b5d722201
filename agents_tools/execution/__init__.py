"""Where the body of a tool runs: in this process, in a worker process or on another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.execution.ledger import (
        Ledger as Ledger,
    )
    from agents_tools.execution.local import (
        LocalBackend as LocalBackend,
    )
    from agents_tools.execution.process import (
        ProcessBackend as ProcessBackend,
    )
    from agents_tools.execution.protocol import (
        BackendCapabilities as BackendCapabilities,
        BackendHealth as BackendHealth,
        CallEnvelope as CallEnvelope,
        CallEvent as CallEvent,
        DetachableBackend as DetachableBackend,
        EventKind as EventKind,
        ToolBackend as ToolBackend,
    )
    from agents_tools.execution.proxy import (
        remote_tools as remote_tools,
        run_on as run_on,
    )
    from agents_tools.execution.worker_call import (
        execute as execute,
        pin_of as pin_of,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "ledger": ("Ledger",),
        "local": ("LocalBackend",),
        "process": ("ProcessBackend",),
        "protocol": (
            "BackendCapabilities",
            "BackendHealth",
            "CallEnvelope",
            "CallEvent",
            "DetachableBackend",
            "EventKind",
            "ToolBackend",
        ),
        "proxy": (
            "remote_tools",
            "run_on",
        ),
        "worker_call": (
            "execute",
            "pin_of",
        ),
    },
)
