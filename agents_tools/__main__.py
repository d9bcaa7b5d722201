"""Lets `python -m agents_tools` be the command line."""

from __future__ import annotations

import sys

from agents_tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
