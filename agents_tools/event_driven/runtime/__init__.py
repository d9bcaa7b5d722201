"""The runtime, which executes the actions of a stream with tools.

```python
async with ToolRuntime(stream, default_registry, working_dir="project"):
    stream.add_event(CmdRunAction("make test", timeout=60), EventSource.AGENT)
```

Each runnable action gets exactly one observation, even after an error; its `cause` is the id of the
action. Events of the tool are published as they are emitted.
"""

from __future__ import annotations

from agents_tools.event_driven.runtime.runtime import ToolRuntime

__all__ = ["ToolRuntime"]
