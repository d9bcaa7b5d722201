"""`python -m agents_tools.cli`, for when the console script is not on the path."""

from __future__ import annotations

import sys

from agents_tools.cli import main

sys.exit(main())
