"""`version`: print the version."""

from __future__ import annotations

import platform

import click

from agents_tools._package import __version__
from agents_tools.cli.options import json_option
from agents_tools.cli.output import print_json

__all__ = ["command"]


@click.command("version")
@json_option
def command(*, as_json: bool, debug: bool) -> None:
    """Print the version."""
    del debug
    if as_json:
        record = {"agents_tools": __version__, "python": platform.python_version()}
        print_json(record, compact=True)
    else:
        click.echo(f"agents-tools {__version__}")
