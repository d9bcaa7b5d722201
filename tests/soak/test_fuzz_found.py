"""Regressions that fuzzing has found, each as a minimal case."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, RootModel, SecretStr

from agents_tools import FunctionTool, Usage, UserError, function_tool
from agents_tools.agents import ModelResponse
from agents_tools.mcp import mcp_server
from agents_tools.mcp.config import load_config
from agents_tools.testing import ToolRecorder
from tests.mcp.small import LINE, listening

SECRET = "hunter2-of-anna"  # noqa: S105 - nobody's


class Keys(RootModel[list[SecretStr]]):
    """Some keys."""


class Account(BaseModel):
    """An account."""

    user: str
    pin: SecretStr
    more: dict[str, SecretStr] = {}
    keys: Keys | None = None


@function_tool
async def enter(account: Account = None, other: Account | int = 0) -> str:  # type: ignore[assignment]  # pyright: ignore[reportArgumentType]
    """Enter."""
    return f"{account} {other}"


@pytest.mark.requirement("S20")
@pytest.mark.parametrize(
    "account",
    [
        {"user": 5, "pin": SECRET},
        {"user": "anna", "pin": [SECRET]},
        {"user": "anna", "pin": {"a": SECRET}},
        {"user": 5, "more": {"a": SECRET}},
        {"user": "anna", "pin": "x", "more": [SECRET]},
        {"user": "anna", "pin": "x", "keys": {"a": SECRET}},
        [{"user": "anna", "pin": SECRET}],
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["account", "other"])
async def test_an_error_about_an_object_shows_no_secret_inside_it(name: str, account: Any) -> None:
    """If no member of a union matches, the whole object is described, but not its secrets."""
    outcome = await enter.call(None, json.dumps({name: account}))

    assert outcome.status == "invalid_args"
    assert name in str(outcome.output)
    assert SECRET not in f"{outcome.output} {outcome.error!r} {vars(outcome.error or object())}"


async def _give(_context: Any, arguments: str) -> str:
    return arguments


@pytest.mark.requirement("S20")
async def test_no_secret_of_a_raw_schema_is_shown() -> None:
    """`writeOnly` marks a secret in a schema of another author as well."""
    pin = {"type": "string", "maxLength": 3, "writeOnly": True}
    tool = FunctionTool.from_schema(
        name="enter",
        schema={"type": "object", "properties": {"pin": pin, "n": {"type": "integer"}}},
        on_invoke_tool=_give,
    )

    outcome = await tool.call(None, json.dumps({"pin": SECRET, "n": "x"}))

    assert "pin: expected at most 3 characters, got another secret" in str(outcome.output)
    assert SECRET not in str(outcome.output)


@pytest.mark.parametrize(
    "odd", [float("inf"), float("nan"), object(), {1, 2}], ids=["inf", "nan", "object", "set"]
)
def test_a_schema_that_is_not_json_is_rejected_at_once(odd: Any) -> None:
    """A provider would reject the whole request of the agent later."""
    schema = {"type": "object", "properties": {"a": {"enum": [odd]}}}
    with pytest.raises(UserError, match="'enter' has a value that JSON cannot"):
        FunctionTool(name="enter", params_json_schema=schema, on_invoke_tool=_give)


def test_a_cyclic_schema_is_rejected_at_once() -> None:
    """A cycle of Python objects has no JSON form."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    with pytest.raises(UserError, match="'enter' has a value that JSON cannot"):
        FunctionTool(name="enter", params_json_schema=schema, on_invoke_tool=_give)


@pytest.mark.parametrize("calls", [5, [5], [{}], [{"tool": "a"}], {"a": 1}, None], ids=str)
def test_a_damaged_recording_is_rejected_with_a_clear_error(tmp_path: Path, calls: Any) -> None:
    """Recordings are edited by hand; the message must name the file."""
    path = tmp_path / "calls.json"
    ToolRecorder().save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "calls": calls}))

    with pytest.raises(UserError, match=r"calls\.json is damaged"):
        ToolRecorder.load(path)


def test_a_recording_that_is_nested_too_deep_is_rejected_with_a_clear_error(tmp_path: Path) -> None:
    """The JSON parser raises a different exception."""
    path = tmp_path / "calls.json"
    path.write_text("[" * 200_000)
    with pytest.raises(UserError, match=r"calls\.json is not valid JSON"):
        ToolRecorder.load(path)


@pytest.mark.parametrize("given", [None, 5, [], "text"], ids=str)
def test_a_record_must_be_an_object(given: Any) -> None:
    """Records come from stores and other machines, and can contain anything."""
    with pytest.raises(UserError, match="usage: expected an object"):
        Usage.from_dict(given)
    with pytest.raises(UserError, match="expected an object with 'items' and 'usage'"):
        ModelResponse.from_dict(given)


def test_the_error_for_an_invalid_number_is_short() -> None:
    """The invalid value can be of any size."""
    with pytest.raises(UserError) as caught:
        Usage.from_dict({"requests": "a" * 10_000})  # type: ignore[dict-item]
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("args", [None, [""], ["-y", ""]], ids=str)
def test_a_configuration_without_a_package_is_accepted(args: Any) -> None:
    """Editors write `null` for missing values, and leave strings empty."""
    [config] = load_config({"mcpServers": {"files": {"command": "npx", "args": args}}})
    assert config.args == tuple(args or ())


@pytest.mark.parametrize("stateless", [True, False])
async def test_a_client_that_reconnects_with_an_event_id_gets_an_answer(stateless: bool) -> None:
    """Events are not stored over HTTP; a new stream or a refusal is better than status 500."""
    httpx: Any = importlib.import_module("httpx" if LINE == 1 else "httpx2")
    headers = {"accept": "text/event-stream", "last-event-id": "1"}
    app = mcp_server([enter], stateless=stateless)
    async with (
        listening(app) as address,
        httpx.AsyncClient(timeout=10) as client,
        client.stream("GET", f"{address}/mcp", headers=headers) as answer,
    ):
        assert answer.status_code < 500
