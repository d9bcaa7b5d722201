"""The public modules: packages whose `__init__` exports names, and modules with a public path."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import griffe

import agents_tools

ROOT = Path(agents_tools.__file__).parent

_APPLICATIONS = ("cli", "playground")
"""Programs: their modules are not imported by users."""

_MODULES = (
    "agents.compaction",
    "conversation",
    "errors",
    "mcp.config",
    "mcp.pins",
    "models.anthropic",
    "models.fallback",
    "models.limited",
    "models.local",
    "models.openai_chat",
    "models.openai_responses",
    "models.pydantic_ai",
    "pytest_plugin",
    "registry",
    "testing.run_stores",
    "tools",
    "ui.ndjson",
    "ui.sse",
)
"""Public modules that are not packages; each page of the reference names its own."""


@cache
def described_package() -> griffe.Module:
    """Return the package as griffe reads it, with docstrings in Google style."""
    package = griffe.load("agents_tools", search_paths=[ROOT.parent], docstring_parser="google")
    assert isinstance(package, griffe.Module)
    return package


@cache
def public_modules() -> dict[str, tuple[str, ...]]:
    """Return the public names of each public module by its dotted path."""
    folders = [path.parent for path in sorted(ROOT.rglob("__init__.py"))]
    relative = [".".join(folder.relative_to(ROOT).parts) for folder in folders]
    names: dict[str, tuple[str, ...]] = {}
    for path in [*relative, *_MODULES]:
        parts = path.split(".")
        if parts[0] in _APPLICATIONS or any(part.startswith("_") for part in parts):
            continue
        full = ".".join(filter(None, ("agents_tools", path)))
        module = importlib.import_module(full)
        public = tuple(getattr(module, "__all__", ()))
        if public:
            names[full] = public
    return names


@cache
def export_modules() -> dict[str, tuple[str, ...]]:
    """Return the public names of the adapters, read as text: their frameworks may be absent."""
    names: dict[str, tuple[str, ...]] = {}
    for path in sorted((ROOT / "export").glob("[a-z]*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names[f"agents_tools.export.{path.stem}"] = ast.literal_eval(node.value)
    return names
