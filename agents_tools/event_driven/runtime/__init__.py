"""A runtime: it carries out the actions that are published on a stream, with tools.

```python
async with ToolRuntime(stream, default_registry, working_dir="project"):
    stream.add_event(CmdRunAction("make test", timeout=60), EventSource.AGENT)
```

Each runnable action gets exactly one observation, whose `cause` is the id of the action, whatever
happens; what the tool says meanwhile is published as it says it.
"""

from __future__ import annotations

from agents_tools.event_driven.runtime.runtime import ToolRuntime

__all__ = ["ToolRuntime"]
