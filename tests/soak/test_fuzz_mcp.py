"""The campaign of made-up MCP messages finds nothing, and finds what was broken on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from agents_tools.mcp.client.connection import Connection
from agents_tools.mcp.server.sdk import SdkServer
from tests.soak import fuzz_mcp
from tests.soak._made_cases import Cases
from tests.soak.campaign import Budget

WAYS = {way.__name__.strip("_"): way for way in fuzz_mcp.WAYS}


@pytest.mark.requirement("F28", "S25")
@pytest.mark.parametrize("way", WAYS)
def test_a_bad_message_costs_only_itself(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Our server answers after rubbish, and our client is well after a server of rubbish."""
    monkeypatch.setattr(fuzz_mcp, "WAYS", (WAYS[way],))

    outcome = fuzz_mcp.run(Budget(seconds=1, seed=7))

    assert outcome.findings == []
    assert outcome.cases


def test_a_server_that_breaks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A header that is no ASCII is where servers have died."""
    with_principal = SdkServer.with_principal

    def reading(server: SdkServer, scope: Any) -> Any:
        for _, value in scope["headers"]:
            value.decode("ascii")
        return with_principal(server, scope)

    monkeypatch.setattr(SdkServer, "with_principal", reading)
    monkeypatch.setattr(fuzz_mcp, "WAYS", (WAYS["over_http"],))

    monkeypatch.setattr(Cases, "most", 1)

    [finding] = fuzz_mcp.run(Budget(seconds=10, seed=7)).findings

    assert "500" in finding.what


def test_a_client_that_breaks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of another shape is where clients have died."""
    request = Connection.request

    async def trusting(connection: Connection, method: str, *args: Any, **how: Any) -> Any:
        result = await request(connection, method, *args, **how)
        assert method != "tools/call" or result["content"][0]["text"] is not None
        return result

    monkeypatch.setattr(Connection, "request", trusting)
    monkeypatch.setattr(fuzz_mcp, "WAYS", (WAYS["spoiled_calls"],))
    monkeypatch.setattr(Cases, "most", 1)

    [finding] = fuzz_mcp.run(Budget(seconds=10, seed=7)).findings

    assert "tool_error with" in finding.what
    assert "_made_server.py calls" in finding.reproduce
