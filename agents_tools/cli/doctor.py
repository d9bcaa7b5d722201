"""`doctor`: show the versions and extras of this installation."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib import metadata
from typing import Any

import click

from agents_tools._package import __version__
from agents_tools.cli.options import json_option
from agents_tools.cli.output import paint, print_json, print_table

__all__ = ["command"]

_EXTRAS = {
    "cli": ("click", "rich"),
    "schema": ("jsonschema-rs",),
    "mcp": ("mcp", "jsonschema-rs"),
    "skills": ("pyyaml",),
    "openai": ("openai",),
    "anthropic": ("anthropic",),
    "pydantic-ai": ("pydantic-ai-slim",),
}
_LAUNCHERS = {
    "node": "servers written in JavaScript",
    "npx": "servers from npm",
    "uvx": "servers from PyPI",
    "docker": "servers in containers",
}
"""Programs that `mcpServers` files often start, and what needs them."""
_REQUIRED = (
    "pydantic",
    "pydantic-core",
    "anyio",
    "griffelib",
    "pathspec",
    "psutil",
    "typing-extensions",
)


@click.command("doctor")
@json_option
def command(*, as_json: bool, debug: bool) -> None:
    """Show versions, extras and the state of this installation."""
    del debug
    report = _report()
    if as_json:
        print_json(report, compact=True)
        return
    print_table(
        [
            ("agents-tools", report["agents_tools"]),
            ("Python", f"{report['python']} ({sys.executable})"),
            ("platform", report["platform"]),
            (
                "output",
                f"{report['encoding']}, {'terminal' if report['terminal'] else 'no terminal'}",
            ),
            (
                "threads",
                "up to {size}, {running} running, {abandoned} abandoned".format(
                    **report["threads"]
                ),
            ),
        ]
    )
    click.echo("\n" + paint("Required:", bold=True))
    print_table(
        ((name, found or "MISSING") for name, found in report["required"].items()), indent=2
    )
    click.echo("\n" + paint("Extras:", bold=True))
    print_table(((name, _extra(name, found)) for name, found in report["extras"].items()), indent=2)
    click.echo("\n" + paint("MCP:", bold=True))
    print_table(_mcp_rows(report["mcp"]), indent=2)
    click.echo("\n" + paint("Built-in tools:", bold=True))
    print_table(_builtin_rows(report["builtin"]), indent=2)


def _report() -> dict[str, Any]:
    from agents_tools.builtin.sandbox import sandbox_report
    from agents_tools.concurrency.threads import thread_stats

    stats = thread_stats()
    sandbox = sandbox_report()
    return {
        "agents_tools": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "encoding": getattr(sys.stdout, "encoding", None) or "unknown",
        "terminal": sys.stdout.isatty(),
        "threads": {
            "size": stats.size,
            "running": stats.running,
            "abandoned": stats.abandoned,
        },
        "required": {name: _version_of(name) for name in _REQUIRED},
        "extras": {
            extra: {name: _version_of(name) for name in names} for extra, names in _EXTRAS.items()
        },
        "mcp": {
            "sdk": _version_of("mcp"),
            "validator": _version_of("jsonschema-rs"),
            "http_server": _version_of("uvicorn"),
            "programs": {name: shutil.which(name) for name in _LAUNCHERS},
        },
        "builtin": {
            "bash": shutil.which("bash"),
            "ripgrep": shutil.which("rg"),
            "sandbox": {
                "strongest": sandbox.level,
                "says": sandbox.says,
                "why_not": dict(sandbox.why_not),
            },
        },
    }


def _builtin_rows(builtin: dict[str, Any]) -> list[tuple[str, str]]:
    sandbox = builtin["sandbox"]
    return [
        ("bash", builtin["bash"] or "not found: execute_bash cannot be used"),
        ("ripgrep", builtin["ripgrep"] or "not found: grep and glob search in Python, slower"),
        ("sandbox", f"{sandbox['strongest']} is the strongest level here: {sandbox['says']}"),
        *((f"  not {level}", why) for level, why in sandbox["why_not"].items()),
    ]


def _mcp_rows(mcp: dict[str, Any]) -> list[tuple[str, str]]:
    usable = mcp["sdk"] and mcp["validator"]
    rows = [
        ("SDK", f"mcp {mcp['sdk']}" if mcp["sdk"] else "not installed"),
        ("usable", "yes" if usable else 'no: pip install "agents-tools[mcp]"'),
        ("serve over http", f"uvicorn {mcp['http_server']}" if mcp["http_server"] else "no"),
    ]
    programs: dict[str, str | None] = mcp["programs"]
    return rows + [
        (name, path or f"not found: {_LAUNCHERS[name]} cannot be started")
        for name, path in programs.items()
    ]


def _extra(extra: str, found: dict[str, str | None]) -> str:
    if not all(found.values()):
        return f'not installed: pip install "agents-tools[{extra}]"'
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
