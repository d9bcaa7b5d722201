"""A server that spoils what it says: `_made_server.py MODE SEED`, with `calls` or `all` as mode.

It calms down once a tool is called with the text `calm`: from then on it is a good server. With
the mode `calls` what comes before the first call is good as well.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.mcp.hostile_stdio import Modern, Server
from tests.soak._made_frames import SAID, a_frame, a_line
from tests.soak._made_texts import spoiled_value, written


def _spoiling(base: type[Server]) -> type[Server]:
    class Spoiling(base):
        """Spoils what it says."""

        spoils = False
        rng = Random(0)  # noqa: S311 - not for secrets

        def call(self, number: Any, params: dict[str, Any]) -> None:
            if (params.get("arguments") or {}).get("text") == "calm":
                self.spoils = False
            elif sys.argv[1] == "calls":
                self.spoils = params.get("name") in {"echo", "add"} and not self.calm
            self.calm |= (params.get("arguments") or {}).get("text") == "calm"
            super().call(number, params)

        calm = False

        def list_tools(self, number: Any, cursor: str | None) -> None:
            before, self.spoils = self.spoils, self.spoils and sys.argv[1] == "all"
            super().list_tools(number, cursor)
            self.spoils = before

        def tools(self) -> list[Any]:
            return [tool for tool in super().tools() if tool["name"] in {"echo", "add"}]

        def write(self, data: bytes) -> None:
            rng = self.rng
            if not self.spoils or rng.random() < 0.4:
                super().write(data)
                return
            for _ in range(rng.choice((0, 1, 1, 5))):
                super().write(a_frame(rng, SAID) + b"\n")
            if rng.random() < 0.04:
                return  # no answer
            super().write(self._spoiled(data) + rng.choice((b"\n", b"\n", b"\n\n", b"\r\n")))
            if rng.random() < 0.3:
                super().write(data)  # the true answer, too late or twice

        def _spoiled(self, data: bytes) -> bytes:
            value: Any = json.loads(data)
            for _ in range(self.rng.choice((0, 1, 2, 3))):
                value = spoiled_value(self.rng, value)
            return a_line(self.rng, written(value))

    return Spoiling


if __name__ == "__main__":
    seed = Random(sys.argv[2])  # noqa: S311 - not for secrets
    server: Any = _spoiling(seed.choice((Server, Modern)))("")
    server.rng = seed
    server.spoils = sys.argv[1] == "all"
    server.run()
