"""A module that does, when it is imported, what `IMPORT_FAULT` says."""

from __future__ import annotations

import os
import sys
import threading
import time

from agents_tools import function_tool


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


match os.environ.get("IMPORT_FAULT"):
    case "raises":
        raise UnreadableError
    case "leaves":
        sys.exit("bye")
    case "dies":
        os._exit(7)
    case "interrupts":
        raise KeyboardInterrupt
    case "closes":
        os.closerange(0, 100)
    case "prints":
        print("x" * 100_000)  # noqa: T201
        sys.stdout = sys.stderr = None  # type: ignore[assignment]
        os.closerange(0, 3)
    case "reads":
        sys.stdin.read()
    case "moves":
        os.chdir("/")
    case "goes on":
        threading.Thread(target=time.sleep, args=(600,)).start()
    case _:
        pass


@function_tool
def add(a: int, b: int) -> int:
    return a + b
