"""Install the clients of user interfaces that run on Node: `python -m tests.conformance.ui.install`.

They go to `.ui-peers/`, which git does not see, each version to a folder of its own. What is there
already is left alone. Where there is no npm, or its registry cannot be reached, nothing is
installed and what needs them goes without.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.mcp.install import install

HOME = Path(__file__).parents[3] / ".ui-peers"

_VITE = ("vite@8.4.0", "@vitejs/plugin-react@6.3.0", "react@19.3.1", "react-dom@19.3.1")

PACKAGES = {
    "ag_ui/1.0": ("@ag-ui/client@1.0.0",),
    "ag_ui/0.0.59": ("@ag-ui/client@0.0.59",),
    "ag_ui/0.0.45": ("@ag-ui/client@0.0.45",),
    "vercel/node22": ("node@22.23.3",),  # the newest SDK needs it
    "vercel/7": ("ai@7.0.173",),
    "vercel/6": ("ai@6.0.326",),
    "vercel/5": ("ai@5.0.277",),
    "web": (*_VITE, "ai@7.0.173", "@ai-sdk/react@4.0.177"),
    "copilotkit": (*_VITE, "@copilotkit/react-core@1.74.0", "zod@4.6.7"),
}
"""What is installed, by the folder it goes to."""


def main(*names: str) -> int:
    """Install what is asked for, all by default; give 2 for a name that is none."""
    unknown = sorted(set(names) - set(PACKAGES))
    if unknown:
        known = ", ".join(PACKAGES)
        print(f"There is nothing named {unknown[0]!r}; there are: {known}.", file=sys.stderr)  # noqa: T201
        return 2
    for name in names or PACKAGES:
        folder = HOME / name
        folder.mkdir(parents=True, exist_ok=True)
        problem = install(folder, PACKAGES[name])
        if problem is not None:
            print(  # noqa: T201
                f".ui-peers/{name} could not be installed, so what needs it is skipped: {problem}",
                file=sys.stderr,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
