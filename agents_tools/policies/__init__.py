"""Policies: a tool goes in, a tool comes out, with something around its body.

They stack as decorators above `@function_tool` and work the same on tools that came from
anywhere. The outer one sees what the inner one raises; failure function, result conversion and
the events of the call stand outside them all, arguments are validated inside.

```python
@retry(3)
@timeout(10)
@function_tool
async def fetch(url: str) -> str: ...
```

State (limits) lives with the policy: what one `limit(...)` is applied to shares it. A cache is
the exception: each tool has its own.
"""

from __future__ import annotations

from agents_tools.policies._approval import approve_destructive, needs_approval, security_risk
from agents_tools.policies._breaker import circuit_breaker
from agents_tools.policies._cache import cache
from agents_tools.policies._change import Change
from agents_tools.policies._describe import rename, with_metadata
from agents_tools.policies._guardrails import input_guardrail, output_guardrail
from agents_tools.policies._isolate import Isolation, isolate
from agents_tools.policies._limit import exclusive, limit
from agents_tools.policies._offload import Offload, offload
from agents_tools.policies._redact import redact
from agents_tools.policies._repair import repair_json
from agents_tools.policies._results import truncate
from agents_tools.policies._retry import retry
from agents_tools.policies._timeout import timeout
from agents_tools.policies._transform import ArgTransform, hide, transform

__all__ = [
    "ArgTransform",
    "Change",
    "Isolation",
    "Offload",
    "approve_destructive",
    "cache",
    "circuit_breaker",
    "exclusive",
    "hide",
    "input_guardrail",
    "isolate",
    "limit",
    "needs_approval",
    "offload",
    "output_guardrail",
    "redact",
    "rename",
    "repair_json",
    "retry",
    "security_risk",
    "timeout",
    "transform",
    "truncate",
    "with_metadata",
]
