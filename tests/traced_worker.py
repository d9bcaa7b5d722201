"""What a traced worker process imports: tools, and the tracing of all that it does."""

from __future__ import annotations

from tests import traced_tools
from tests.traced_tools import headers_here, headers_in_a_thread

__all__ = ["headers_here", "headers_in_a_thread"]

traced_tools.start()
