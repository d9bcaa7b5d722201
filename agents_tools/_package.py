"""The version of the package, and the lazy loading of public names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agents_tools.errors import MissingExtraError

__all__ = ["MissingDependency", "__version__", "lazy_exports", "missing_extra"]

__version__ = "0.2.0"


def lazy_exports(
    package: str,
    exports: Mapping[str, Sequence[str]],
    *,
    submodules: Sequence[str] = (),
    requires: Mapping[str, str] | None = None,
    counterparts: str | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for the `__init__` of a package.

    A name is imported when it is first used. A name whose optional dependency is not installed
    becomes a `MissingDependency`, so that `import *`, `dir()`, `hasattr()` and `help()` work on
    every installation.

    Args:
        package: The full name of the package.
        exports: The public names of each module. A module is named relative to the package, or by
            its full name.
        submodules: The modules of the package that are public themselves.
        requires: The command that installs the optional dependency of a module.
        counterparts: The module whose `COUNTERPARTS` explains names of other libraries. Importing
            such a name raises an `ImportError` with the remedy.
    """
    modules = {name: module for module, names in exports.items() for name in names}
    namespace: dict[str, Any] = vars(sys.modules[package])
    public = sorted([*modules, *submodules])

    def load(name: str) -> Any:
        from importlib import import_module

        if name in submodules:
            return import_module(f"{package}.{name}")
        if name not in modules:
            raise _unknown_name(package, name, counterparts)
        module = modules[name]
        full_name = module if module.startswith("agents_tools.") else f"{package}.{module}"
        try:
            value = getattr(import_module(full_name), name)
        except ImportError as error:
            command = (requires or {}).get(module)
            if command is None or (error.name or "").startswith("agents_tools"):
                raise
            return MissingDependency(name, error, command)  # not kept: it can be installed later
        namespace[name] = value
        return value

    def names() -> list[str]:
        return sorted({*namespace, *public})

    return load, names, public


def _unknown_name(package: str, name: str, counterparts: str | None) -> Exception:
    """Return the error for a name that a package does not have.

    The import statement replaces the message of an `AttributeError`, not that of an `ImportError`.
    """
    remedy = None
    if counterparts is not None and not name.startswith("_"):
        from importlib import import_module

        remedy = import_module(counterparts).COUNTERPARTS.get(name)
    if remedy is None:
        return AttributeError(f"module {package!r} has no attribute {name!r}")
    return ImportError(f"{package} has no {name}. {remedy}", name=package)


def missing_extra(name: str, extra: str, error: ImportError) -> MissingExtraError:
    """Return the error for a failed import of an optional dependency.

    Args:
        name: The public name that requires the dependency.
        extra: The extra of this library that installs the dependency.
        error: The error of the import.
    """
    return _missing_dependency(name, f"pip install -U 'agents-tools[{extra}]'", error)


def _missing_dependency(name: str, command: str, error: ImportError) -> MissingExtraError:
    from agents_tools.errors import MissingExtraError

    if isinstance(error, ModuleNotFoundError):
        reason = f"the module {error.name!r}, which is not installed"
    else:
        reason = f"another version of a module ({error})"
    return MissingExtraError(f"{name} requires {reason}. Install it: {command}")


class MissingDependency:
    """Stands for a public name whose optional dependency is not installed.

    Calling it, subclassing it or reading an attribute raises `MissingExtraError`.

    Args:
        name: The public name.
        error: The error of the import.
        command: The command that installs the dependency.
    """

    def __init__(self, name: str, error: ImportError, command: str) -> None:
        cause = error.__cause__  # of an error that names the extra of a module below this name
        self._error = cause if isinstance(cause, ImportError) else error
        self._message = str(_missing_dependency(name, command, self._error))

    def __repr__(self) -> str:
        """Return the reason and the remedy."""
        return f"<{self._message}>"

    def __instancecheck__(self, instance: object) -> bool:
        """Return that no object is an instance of a class that cannot be imported."""
        return False

    def __call__(self, *_args: object, **_options: object) -> NoReturn:
        """Raise `MissingExtraError`."""
        self._fail()

    def __mro_entries__(self, bases: tuple[object, ...]) -> NoReturn:
        """Raise `MissingExtraError` for a class that inherits from the name."""
        self._fail()

    def __getattr__(self, name: str) -> NoReturn:
        """Raise `MissingExtraError`, except for special attributes that inspection reads."""
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self._fail()

    def _fail(self) -> NoReturn:
        from agents_tools.errors import MissingExtraError

        raise MissingExtraError(self._message) from self._error
