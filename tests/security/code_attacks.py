"""Programs that try to leave the sandbox of code mode, and a process in which they are run.

As a program, it runs all of them in a process with a memory limit, and writes their outcomes.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from agents_tools import CodeLimits, code_mode, function_tool

__all__ = ["ATTACKS", "CANARY", "MEMORY"]

MEMORY = 2 << 30
"""The address space of the process and of each sandbox, in bytes."""
CANARY = "canary-7f3a9c"
"""A value in the environment and in a file, which no program may read."""

_NO_FILE = "PermissionError: Permission denied"
_NO_MODULE = "ModuleNotFoundError: No module named"
_NO_NAME = "NameError: name"
_NO_ATTRIBUTE = "AttributeError:"
_NO_SUPPORT = "is not supported in this environment"
_NO_MEMORY = "MemoryError: "
_TOO_DEEP = "RecursionError: maximum recursion depth exceeded"
_TOO_LONG = "The program computed longer than 1 s and was stopped."
_TOO_MANY_CALLS = "The program made more than 50 calls and was stopped in line"
_TOO_MANY_STOPS = "RuntimeError: suspension limit"
_TOO_LARGE = "too large: it has more than 200,000 values"
_NESTED = "too large: it is nested more than 60 levels deep"

ATTACKS: dict[str, tuple[str, str]] = {
    # files
    "read a file": ("open('{canary}').read()", _NO_FILE),
    "write a file": ("open('{canary}', 'w').write('x')", _NO_FILE),
    "read a path": ("from pathlib import Path\nPath('{canary}').read_text()", _NO_FILE),
    "write a path": ("from pathlib import Path\nPath('{canary}').write_text('x')", _NO_FILE),
    "delete a path": ("from pathlib import Path\nPath('{canary}').unlink()", _NO_FILE),
    "ask for a path": ("from pathlib import Path\nPath('{canary}').exists()", _NO_FILE),
    "list a directory": ("import os\nos.listdir('/')", _NO_FILE),
    "iterate over a directory": (
        "from pathlib import Path\nlist(Path('/').iterdir())",
        _NO_FILE,
    ),
    "read another process": ("open('/proc/self/environ').read()", _NO_FILE),
    "read a device": ("open('/dev/zero').read(10)", _NO_FILE),
    "read a descriptor": ("open(0).read()", "TypeError: expected str, bytes or os.PathLike"),
    "link a file": ("import os\nos.symlink('{canary}', 'x')", _NO_ATTRIBUTE),
    "open with eval": ("eval(\"open('{canary}')\")", _NO_FILE),
    # the environment and the network
    "read the environment": ("import os\nos.environ['CANARY']", _NO_SUPPORT),
    "read a variable": ("import os\nos.getenv('CANARY')", _NO_SUPPORT),
    "read random bytes": ("import os\nos.urandom(8)", _NO_SUPPORT),
    "read the home": ("from pathlib import Path\nPath.home()", _NO_ATTRIBUTE),
    "open a socket": ("import socket", _NO_MODULE),
    "request a page": ("import urllib.request", _NO_MODULE),
    "use TLS": ("import ssl", _NO_MODULE),
    "open a connection": (
        "import asyncio\nawait asyncio.open_connection('localhost', 22)",
        _NO_ATTRIBUTE,
    ),
    "read standard input": ("input()", _NO_NAME),
    # processes and modules
    "run a command": ("import os\nos.system('id')", _NO_ATTRIBUTE),
    "fork": ("import os\nos.fork()", _NO_ATTRIBUTE),
    "kill": ("import os\nos.kill(1, 9)", _NO_ATTRIBUTE),
    "run a process": ("import subprocess", _NO_MODULE),
    "run a process with asyncio": (
        "import asyncio\nawait asyncio.create_subprocess_exec('id')",
        _NO_ATTRIBUTE,
    ),
    "use a thread": (
        "import asyncio\nasyncio.get_event_loop().run_in_executor(None, print)",
        _NO_ATTRIBUTE,
    ),
    "use C": ("import ctypes", _NO_MODULE),
    "import by name": ("import importlib\nimportlib.import_module('os')", _NO_MODULE),
    "import by function": ("__import__('os').system('id')", _NO_NAME),
    "import with exec": ("exec('import socket')", _NO_MODULE),
    "import the framework": ("import agents_tools", _NO_MODULE),
    "import the sandbox": ("import pydantic_monty", _NO_MODULE),
    "read the modules": ("import sys\nsys.modules['os']", _NO_ATTRIBUTE),
    "change the module path": ("import sys\nsys.path.append('/')", _NO_ATTRIBUTE),
    "load a pickle": ("import pickle", _NO_MODULE),
    "compile": ("compile('1', 'x', 'exec')", _NO_NAME),
    "end the process": ("import sys\nsys.exit(0)", _NO_ATTRIBUTE),
    "raise SystemExit": ("raise SystemExit()", "SystemExit"),
    "raise KeyboardInterrupt": ("raise KeyboardInterrupt()", "KeyboardInterrupt"),
    # memory
    "grow a list": ("x = []\nwhile True: x.append('a' * 1000)", _NO_MEMORY),
    "repeat a text": ("'a' * 10**12", _NO_MEMORY),
    "allocate bytes": ("bytes(10**11)", _NO_MEMORY),
    "list a range": ("list(range(10**10))", _NO_MEMORY),
    "compute a power": ("10**10**8", _NO_MEMORY),
    "shift a number": ("1 << 10**12", _NO_MEMORY),
    "pad a text": ("f'{{1:>1000000000}}'", _NO_MEMORY),
    "replace in a text": ("('a' * 10**6).replace('a', 'b' * 10**6)", _NO_MEMORY),
    "repeat an iterator": ("import itertools\nlist(itertools.repeat('x' * 100))", _NO_MEMORY),
    "write JSON": ("import json\njson.dumps([['x' * 1000] * 10**6] * 10)", _NO_MEMORY),
    "catch the error": ("try:\n    'a' * 10**12\nexcept BaseException: 'ok'", _NO_MEMORY),
    # recursion
    "call itself": ("def f(): return f()\nf()", _TOO_DEEP),
    "call each other": ("def f(n): return g(n)\ndef g(n): return f(n)\nf(1)", _TOO_DEEP),
    "compare nested lists": (
        "a = []\nb = []\nfor i in range(10**5): a, b = [a], [b]\na == b",
        _TOO_DEEP,
    ),
    "parse nested JSON": ("import json\njson.loads('[' * 10**5)", "recursion limit exceeded"),
    "parse nested source": ("eval('(' * 10**5 + ')' * 10**5)", "Source is too deeply nested"),
    # time
    "compute forever": ("while True: pass", _TOO_LONG),
    "compute for long": ("for i in range(10**12): pass", _TOO_LONG),
    "catch the end": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        _TOO_LONG,
    ),
    "print forever": ("while True: print('x' * 1000)", "xxxxxxxxxx"),
    "sleep": ("import time\ntime.sleep(10**6)", "TimeoutError: The program sleeps longer"),
    "sleep with asyncio": (
        "import asyncio\nawait asyncio.gather(*[asyncio.sleep(0.3) for i in range(99)])",
        "TimeoutError: The program sleeps longer than 1 s in total",
    ),
    "call forever": ("while True: await echo(1)", _TOO_MANY_CALLS),
    "call at once": (
        "import asyncio\nawait asyncio.gather(*[echo(i) for i in range(10**6)])",
        _TOO_MANY_CALLS,
    ),
    "ask for files forever": (
        "while True:\n    try: open('x')\n    except PermissionError: pass",
        _TOO_MANY_STOPS,
    ),
    "ask for names forever": (
        "while True:\n    try: zzz\n    except NameError: pass",
        _TOO_MANY_STOPS,
    ),
    # objects of the process around the sandbox
    "find subclasses": ("().__class__.__bases__[0].__subclasses__()", _NO_ATTRIBUTE),
    "read globals": ("(lambda: 0).__globals__", _NO_ATTRIBUTE),
    "read globals of a tool": ("echo.__globals__", _NO_ATTRIBUTE),
    "read the code of a tool": ("echo.__code__.co_consts", _NO_ATTRIBUTE),
    "read a frame": (
        "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame",
        _NO_ATTRIBUTE,
    ),
    "format a class": ("'{{0.__class__.__mro__}}'.format(echo)", _NO_ATTRIBUTE),
    "read the class of a result": ("(await echo('x')).__class__", _NO_ATTRIBUTE),
    "read the cause of an error": (
        "try:\n    await echo(1, 2)\nexcept Exception as e:\n    e.__context__",
        _NO_ATTRIBUTE,
    ),
    "change a tool": ("echo.x = 1", _NO_ATTRIBUTE),
    "change a module": ("import json\njson.dumps = 1", _NO_ATTRIBUTE),
    # values that leave and enter the sandbox
    "send a bomb": ("a = [0] * 100\nfor i in range(8): a = [a] * 100\nawait echo(a)", _TOO_LARGE),
    "return a bomb": ("a = [0] * 100\nfor i in range(8): a = [a] * 100\na", _TOO_LARGE),
    "send a deep list": ("a = []\nfor i in range(1000): a = [a]\nawait echo(a)", _NESTED),
    "return a deep list": ("a = []\nfor i in range(10**5): a = [a]\na", _NESTED),
    "send a cycle": ("a = []\na.append(a)\nawait echo(a)", "[...]"),
    "return a cycle": ("a = {{}}\na['a'] = a\na", "{{...}}"),
    "send a large text": ("await echo('a' * 2 * 10**6)", "at most 1,048,576 are accepted"),
    "return a large text": ("'ab' * 10**6", "characters omitted"),
    "receive a large text": ("len(await large(50_000_000))", _NO_MEMORY),
    "return a function": ("echo", "echo"),
    "print a terminal sequence": ("print('\\x1b[2J')", "\\x1b[2J"),
    "print a surrogate": ("print('\\ud800')", "\ufffd"),
}
"""The programs by name, each with a part of the outcome; braces are doubled."""


@function_tool
async def echo(value: Any = None) -> Any:
    """Return a value."""
    return value


@function_tool
async def large(size: int) -> str:
    """Return a large text."""
    return "x" * size


async def main(canary: str) -> None:
    """Run the programs, and write the output of each."""
    limits = CodeLimits(seconds=1, memory=32 << 20, calls=50)
    code = code_mode(echo, large, limits=limits)
    for name, (program, _) in ATTACKS.items():
        text = program.format(canary=canary)
        outcome = await code.call(None, json.dumps({"code": text}))
        sys.stdout.write(json.dumps([name, outcome.output]) + "\n")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    asyncio.run(main(sys.argv[1]))
