"""Policies: functions that take a tool and return a wrapped tool.

Policies stack as decorators above `@function_tool` and work the same on tools of any source. The
outer policy sees the errors of the inner one. The failure function and the conversion of results
are outside all policies. Approvals, guardrails and caches see valid arguments, with the names of
the tool's own parameters. To write a policy, subclass `Policy`.

```python
@retry(3)
@timeout(10)
@function_tool
async def fetch(url: str) -> str: ...
```

The state of a policy, such as a limit, is shared by all tools that the policy object is applied
to. A cache is the exception: each tool has its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.policies._approval import (
        approve_destructive as approve_destructive,
        needs_approval as needs_approval,
        security_risk as security_risk,
    )
    from agents_tools.policies._background import (
        background as background,
    )
    from agents_tools.policies._breaker import (
        circuit_breaker as circuit_breaker,
    )
    from agents_tools.policies._cache import (
        cache as cache,
    )
    from agents_tools.policies._describe import (
        rename as rename,
        with_metadata as with_metadata,
    )
    from agents_tools.policies._guardrails import (
        input_guardrail as input_guardrail,
        output_guardrail as output_guardrail,
    )
    from agents_tools.policies._isolate import (
        Isolation as Isolation,
        isolate as isolate,
    )
    from agents_tools.policies._limit import (
        exclusive as exclusive,
        limit as limit,
    )
    from agents_tools.policies._offload import (
        Offload as Offload,
        offload as offload,
    )
    from agents_tools.policies._redact import (
        redact as redact,
    )
    from agents_tools.policies._repair import (
        repair_json as repair_json,
    )
    from agents_tools.policies._retry import (
        retry as retry,
    )
    from agents_tools.policies._timeout import (
        timeout as timeout,
    )
    from agents_tools.policies._transform import (
        ArgTransform as ArgTransform,
        hide as hide,
        transform as transform,
    )
    from agents_tools.policies._truncate import (
        truncate as truncate,
    )
    from agents_tools.tool.call import (
        Call as Call,
    )
    from agents_tools.tool.policy import (
        Policy as Policy,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "_approval": (
            "approve_destructive",
            "needs_approval",
            "security_risk",
        ),
        "_background": ("background",),
        "_breaker": ("circuit_breaker",),
        "_cache": ("cache",),
        "_describe": (
            "rename",
            "with_metadata",
        ),
        "_guardrails": (
            "input_guardrail",
            "output_guardrail",
        ),
        "_isolate": (
            "Isolation",
            "isolate",
        ),
        "_limit": (
            "exclusive",
            "limit",
        ),
        "_offload": (
            "Offload",
            "offload",
        ),
        "_redact": ("redact",),
        "_repair": ("repair_json",),
        "_retry": ("retry",),
        "_timeout": ("timeout",),
        "_transform": (
            "ArgTransform",
            "hide",
            "transform",
        ),
        "_truncate": ("truncate",),
        "agents_tools.tool.call": ("Call",),
        "agents_tools.tool.policy": ("Policy",),
    },
)
