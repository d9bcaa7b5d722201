"""What fuzzing has found in the library, each in the smallest form."""

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
async def test_no_secret_is_shown_with_what_is_around_it(name: str, account: Any) -> None:
    """Where a union takes nothing of an object, the whole of it is described: not its secrets."""
    outcome = await enter.call(None, json.dumps({name: account}))

    assert outcome.status == "invalid_args"
    assert name in str(outcome.output)
    assert SECRET not in f"{outcome.output} {outcome.error!r} {vars(outcome.error or object())}"


async def _give(_context: Any, arguments: str) -> str:
    return arguments


@pytest.mark.requirement("S20")
async def test_no_secret_of_a_raw_schema_is_shown() -> None:
    """What is `writeOnly` is a secret in a schema that somebody else wrote as well."""
    pin = {"type": "string", "maxLength": 3, "writeOnly": True}
    tool = FunctionTool.from_schema(
        name="enter",
        schema={"type": "object", "properties": {"pin": pin, "n": {"type": "integer"}}},
        on_invoke_tool=_give,
    )

    outcome = await tool.call(None, json.dumps({"pin": SECRET, "n": "x"}))

    assert "pin: the value is longer than 3 characters" in str(outcome.output)
    assert SECRET not in str(outcome.output)


@pytest.mark.parametrize(
    "odd", [float("inf"), float("nan"), object(), {1, 2}], ids=["inf", "nan", "object", "set"]
)
def test_a_schema_that_is_no_json_is_refused_at_once(odd: Any) -> None:
    """No provider could be told of it, and the whole request of an agent would fail then."""
    schema = {"type": "object", "properties": {"a": {"enum": [odd]}}}
    with pytest.raises(UserError, match="'enter' has a value that JSON cannot"):
        FunctionTool(name="enter", params_json_schema=schema, on_invoke_tool=_give)


def test_a_schema_that_holds_itself_is_refused_at_once() -> None:
    """A cycle of Python objects has no JSON form."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    with pytest.raises(UserError, match="'enter' has a value that JSON cannot"):
        FunctionTool(name="enter", params_json_schema=schema, on_invoke_tool=_give)


@pytest.mark.parametrize("calls", [5, [5], [{}], [{"tool": "a"}], {"a": 1}, None], ids=str)
def test_a_damaged_recording_is_refused_in_words(tmp_path: Path, calls: Any) -> None:
    """A recording is edited by hand; who reads it wants to know which file is wrong."""
    path = tmp_path / "calls.json"
    ToolRecorder().save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "calls": calls}))

    with pytest.raises(UserError, match=r"calls\.json is damaged"):
        ToolRecorder.load(path)


def test_a_recording_that_is_nested_too_deep_is_refused_in_words(tmp_path: Path) -> None:
    """The parser of JSON gives up, and says so in its own way."""
    path = tmp_path / "calls.json"
    path.write_text("[" * 200_000)
    with pytest.raises(UserError, match=r"calls\.json is not valid JSON"):
        ToolRecorder.load(path)


@pytest.mark.parametrize("given", [None, 5, [], "text"], ids=str)
def test_what_is_no_object_is_no_record(given: Any) -> None:
    """Records come from stores and other machines, where anything may stand."""
    with pytest.raises(UserError, match="usage: expected an object"):
        Usage.from_dict(given)
    with pytest.raises(UserError, match="expected an object with 'items' and 'usage'"):
        ModelResponse.from_dict(given)


def test_the_error_of_a_figure_is_short() -> None:
    """What is wrong may be of any size."""
    with pytest.raises(UserError) as caught:
        Usage.from_dict({"requests": "a" * 10_000})  # type: ignore[dict-item]
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("args", [None, [""], ["-y", ""]], ids=str)
def test_a_configuration_without_a_package_is_read(args: Any) -> None:
    """Editors write `null` for what is not there, and leave texts empty."""
    [config] = load_config({"mcpServers": {"files": {"command": "npx", "args": args}}})
    assert config.args == tuple(args or ())


@pytest.mark.parametrize("stateless", [True, False])
async def test_a_client_that_comes_back_with_an_event_id_gets_an_answer(stateless: bool) -> None:
    """No event is kept over HTTP; a stream from now on, or a refusal, is better than status 500."""
    httpx: Any = importlib.import_module("httpx" if LINE == 1 else "httpx2")
    headers = {"accept": "text/event-stream", "last-event-id": "1"}
    app = mcp_server([enter], stateless=stateless)
    async with (
        listening(app) as address,
        httpx.AsyncClient(timeout=10) as client,
        client.stream("GET", f"{address}/mcp", headers=headers) as answer,
    ):
        assert answer.status_code < 500
