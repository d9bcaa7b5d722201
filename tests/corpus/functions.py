"""The functions of the corpus, by group, always in the same order."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["GROUPS", "Group", "functions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Modules whose docstrings are alike.

    Attributes:
        name: What the report calls them.
        modules: Their names; `package.*` stands for a package with all below it.
        methods: Whether the public methods of public classes count too.
        skip: Words; a module whose name holds one of them is left out.
    """

    name: str
    modules: tuple[str, ...]
    methods: bool = False
    skip: tuple[str, ...] = ()


_STANDARD_LIBRARY = """
argparse ast asyncio.base_events asyncio.runners asyncio.streams asyncio.subprocess asyncio.tasks
base64 bdb bisect calendar cmd code codecs codeop collections colorsys compileall concurrent.futures
configparser contextlib copy copyreg csv ctypes.util dataclasses datetime decimal difflib dis doctest
email email.charset email.encoders email.header email.headerregistry email.iterators email.message
email.parser email.utils enum filecmp fileinput fnmatch fractions ftplib functools genericpath getopt
getpass gettext glob graphlib gzip hashlib heapq hmac html html.parser http.client http.cookiejar
http.cookies http.server imaplib importlib importlib.metadata importlib.resources importlib.util
inspect ipaddress json json.decoder json.encoder keyword linecache locale logging logging.config
logging.handlers lzma mailbox mimetypes modulefinder multiprocessing.context
multiprocessing.connection multiprocessing.pool multiprocessing.shared_memory netrc ntpath numbers
operator optparse os pathlib pdb pickle pickletools pkgutil platform plistlib poplib posixpath pprint
profile pstats py_compile pyclbr pydoc queue quopri random re reprlib runpy sched secrets
selectors shelve shlex shutil signal site smtplib socket socketserver sqlite3.dbapi2 ssl stat
statistics string stringprep struct subprocess symtable sysconfig tabnanny tarfile tempfile textwrap
threading timeit token tokenize trace traceback tracemalloc types typing unittest.async_case
unittest.case unittest.loader unittest.mock unittest.util urllib.error urllib.parse urllib.request
urllib.response urllib.robotparser uuid venv warnings wave weakref webbrowser wsgiref.handlers
wsgiref.headers wsgiref.simple_server wsgiref.util xml.dom.minidom xml.dom.pulldom
xml.etree.ElementPath xml.etree.ElementTree xml.sax.handler xml.sax.saxutils xmlrpc.client
xmlrpc.server zipapp zipfile zoneinfo
"""

GROUPS: tuple[Group, ...] = (
    Group(name="stdlib", modules=tuple(_STANDARD_LIBRARY.split()), methods=True),
    Group(name="networkx", modules=("networkx.*",), skip=("tests",)),
    Group(
        name="numpy",
        modules=("numpy", "numpy.lib.*", "numpy.linalg", "numpy.fft", "numpy.polynomial.*"),
        skip=("tests", "._"),
    ),
    Group(name="pooch", modules=("pooch.*",), methods=True, skip=("tests",)),
    Group(name="joblib", modules=("joblib.*",), methods=True, skip=("test", "externals")),
    Group(name="requests", modules=("requests.*",), methods=True),
    Group(name="docutils", modules=("docutils.*",), skip=("languages", "docutils.parsers.rst.dir")),
    Group(
        name="sqlalchemy",
        modules=("sqlalchemy.*",),
        methods=True,
        skip=("testing", "dialects", "ext.mypy", "connectors", "aio", "_cy", "_py_", "cyext"),
    ),
    Group(name="werkzeug", modules=("werkzeug.*",), methods=True),
    Group(name="flask", modules=("flask.*",), methods=True, skip=("__main__",)),
    Group(name="jinja2", modules=("jinja2.*",)),
    Group(name="click", modules=("click.*",), methods=True, skip=("_winconsole",)),
    Group(name="babel", modules=("babel.*",), methods=True, skip=("_win32", "frontend")),
    Group(name="boltons", modules=("boltons.*",), methods=True),
    Group(
        name="twisted",
        modules=(
            "twisted.cred.*",
            "twisted.internet.defer",
            "twisted.internet.task",
            "twisted.python.*",
            "twisted.web.client",
            "twisted.web.http",
            "twisted.web.server",
            "twisted.words.protocols.irc",
        ),
        methods=True,
        skip=("test", "_win", "win32", "shortcut", "_pydoctor", "sendmsg", "_inotify"),
    ),
    Group(name="absl", modules=("absl.*",), methods=True, skip=("test",)),
    Group(name="fire", modules=("fire.*",), skip=("test", "__main__")),
    Group(
        name="google-auth",
        modules=("google.auth.*", "google.oauth2.*"),
        methods=True,
        skip=("test", "enterprise", "urllib3", "aiohttp", "grpc", "_async"),
    ),
    Group(
        name="google-api-core",
        modules=("google.api_core.*",),
        methods=True,
        skip=("grpc", "rest", "operations", "_async"),
    ),
    Group(name="tenacity", modules=("tenacity.*",), methods=True, skip=("tornado",)),
    Group(name="attrs", modules=("attr.*",), methods=True),
    Group(name="rich", modules=("rich.*",), methods=True, skip=("_win", "_unicode", "__main__")),
    Group(name="more-itertools", modules=("more_itertools.*",)),
    Group(name="toolz", modules=("toolz.*", "tlz"), skip=("test",)),
    Group(name="pygments", modules=("pygments.*",), skip=("lexers", "styles", "__main__")),
)


def functions(*groups: str) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield group, qualified name and function of all that the named groups (or all) hold."""
    for group in GROUPS:
        if not groups or group.name in groups:
            for name, function in _functions_of(group):
                yield group.name, name, function


def _functions_of(group: Group) -> Iterator[tuple[str, Callable[..., Any]]]:
    seen: set[int] = set()
    for module in _modules_of(group):
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if _is_function(value) and id(value) not in seen:
                seen.add(id(value))
                yield f"{module.__name__}.{name}", value
            elif group.methods and inspect.isclass(value) and id(value) not in seen:
                seen.add(id(value))
                yield from _methods_of(f"{module.__name__}.{name}", value)


def _modules_of(group: Group) -> Iterator[types.ModuleType]:
    for name in group.modules:
        package = _import(name.removesuffix(".*"))
        if package is None:
            continue
        yield package
        if not name.endswith(".*") or not hasattr(package, "__path__"):
            continue
        below = pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=str)
        for found in sorted(below, key=lambda found: found.name):
            if not any(word in found.name for word in group.skip):
                module = _import(found.name)
                if module is not None:
                    yield module


def _import(name: str) -> types.ModuleType | None:
    """Import a module of the corpus, or nothing where it does not exist on this platform."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError:
            return None


def _methods_of(owner: str, cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in sorted(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, types.FunctionType):
            # Nothing is ever called, so that any object does for `self`.
            yield f"{owner}.{name}", types.MethodType(value, object())
        elif isinstance(value, staticmethod | classmethod):
            bound = getattr(cls, name)
            if isinstance(bound, types.FunctionType | types.MethodType):
                yield f"{owner}.{name}", bound


def _is_function(value: object) -> bool:
    if isinstance(value, types.FunctionType):
        return True
    wrapped = inspect.getattr_static(value, "__wrapped__", None)
    return wrapped is not None and callable(value) and not isinstance(value, partial)
