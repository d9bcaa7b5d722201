"""Report progress from plain functions, at any depth of the code.

Run it: python examples/progress_from_plain_functions.py. It prints the result, then the events of
the call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from agents_tools import ToolProgressEvent, artifact, function_tool, listen, notify, track


def digests(texts: Iterable[str]) -> list[str]:
    """Know nothing of tools, and report progress all the same."""
    return [hashlib.sha256(text.encode()).hexdigest()[:8] for text in track(texts)]


@function_tool
def fingerprint(texts: list[str]) -> str:
    """Compute a fingerprint of each text.

    Args:
        texts: The texts.
    """
    notify(f"{len(texts)} texts to do")
    found = digests(texts)
    artifact("fingerprints.txt", "\n".join(found), mime_type="text/plain")
    return f"{len(found)} fingerprints, the first is {found[0]}"


# Whatever runs the tool: what is said inside the block is collected.
with listen() as said:
    print(fingerprint.invoke_sync(texts=["a", "b", "c"]))
for event in said:
    if isinstance(event, ToolProgressEvent):
        print(f"{event.tool_name}: {event.current:g} of {event.total:g}")
    else:
        print(f"{event.tool_name}: {event.type}")

# Outside a call, the functions do nothing.
print(digests(["a"]))
