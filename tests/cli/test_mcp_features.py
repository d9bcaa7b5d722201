"""`mcp list --resources --prompts`, `mcp read` and `mcp prompt`, against a real process."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.mcp_echo_server import PIXEL
from tests.cli.test_cli_process import COMMAND
from tests.cli.test_mcp import ECHO

if TYPE_CHECKING:
    from tests.cli.conftest import Run

SERVER = shlex.join([sys.executable, ECHO, "features"])
PLAIN = shlex.join([sys.executable, ECHO])


def test_resources_and_prompts_are_listed(run: Run) -> None:
    """They are listed on request only, below the tools."""
    result = run("mcp", "list", SERVER, "--resources", "--prompts")
    assert (result.code, result.err) == (0, "")
    lines = [line.strip() for line in result.out.splitlines()]
    assert "logo:///small  [image/png]" in lines
    assert "note:///one    A note. [text/plain]" in lines
    assert "note:///{name}  A note by name." in lines
    assert "greet who=… [count=…]  Greet a person." in lines
    record = run("mcp", "list", SERVER, "--resources", "--json").json[0]
    assert [one["uri"] for one in record["resources"]] == ["note:///one", "logo:///small"]
    assert record["resource_templates"][0]["uriTemplate"] == "note:///{name}"
    assert "prompts" not in record
    assert "resources" not in run("mcp", "list", SERVER, "--json").json[0]


def test_a_server_without_resources_has_an_empty_list(run: Run) -> None:
    """A request that the server does not support is not sent."""
    record = run("mcp", "list", PLAIN, "--resources", "--prompts", "--json").json[0]
    assert (record["resources"], record["prompts"]) == ([], [])


def test_a_text_resource_is_printed(run: Run) -> None:
    """The text alone is on standard output, without terminal sequences."""
    result = run("mcp", "read", SERVER, "note:///two")
    assert (result.code, result.out, result.err) == (0, "the note two\n", "")
    read = run("mcp", "read", "--json", "--", *shlex.split(SERVER), "--", "note:///two").json
    assert read["contents"][0]["uri"] == "note:///two"


@pytest.mark.slow
def test_a_binary_resource_goes_to_a_file_or_a_pipe(run: Run, tmp_path: Path) -> None:
    """The bytes are those of the server."""
    path = tmp_path / "logo.png"
    assert run("mcp", "read", SERVER, "logo:///small", "-o", str(path)).code == 0
    assert path.read_bytes() == b64decode(PIXEL)
    piped = subprocess.run(  # noqa: S603 - the command of this project
        [*COMMAND, "mcp", "read", SERVER, "logo:///small"], capture_output=True, check=True
    )
    assert piped.stdout == b64decode(PIXEL)


def test_a_binary_resource_is_refused_on_a_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of an image can change the state of a terminal."""
    monkeypatch.setattr("agents_tools.cli.mcp_features.is_terminal", lambda _stream: True)
    result = run("mcp", "read", SERVER, "logo:///small")
    assert (result.code, result.out) == (2, "")
    assert "logo:///small is not text (image/png, 8 bytes)" in result.err
    assert "-o FILE" in result.err


def test_the_refusal_of_a_server_is_an_error_with_its_exit_code(run: Run) -> None:
    """Scripts can tell it from a wrong command line."""
    result = run("mcp", "read", SERVER, "other:///x")
    assert (result.code, result.out) == (1, "")
    assert "there is no resources/read" in result.err
    record = run("mcp", "read", SERVER, "other:///x", "--json")
    assert (record.code, record.json["error"]["type"]) == (1, "MCPProtocolError")


def test_a_resource_of_several_servers_is_found_by_its_list(run: Run, tmp_path: Path) -> None:
    """A URI that none or several of them list needs the name of the server."""
    config = tmp_path / "mcp.json"
    entry = {"command": sys.executable, "args": [ECHO, "features"]}
    plain = {"command": sys.executable, "args": [ECHO]}
    config.write_text(json.dumps({"mcpServers": {"a": entry, "b": plain}}))
    assert run("mcp", "read", str(config), "note:///one").code == 0
    unknown = run("mcp", "read", str(config), "note:///two")
    assert (unknown.code, "none of the servers lists note:///two" in unknown.err) == (2, True)
    config.write_text(json.dumps({"mcpServers": {"a": entry, "b": entry}}))
    assert "several servers list" in run("mcp", "read", str(config), "note:///one").err
    assert run("mcp", "read", f"{config}:b", "note:///one").code == 0
    assert "several servers have" in run("mcp", "prompt", str(config), "greet", "who=a").err


def test_a_prompt_is_printed_with_its_arguments(run: Run, tmp_path: Path) -> None:
    """Values stay strings, as the protocol requires."""
    result = run("mcp", "prompt", SERVER, "greet", "who=Ada", "count=2")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("user:\nGreet {'who': 'Ada', 'count': '2'}.\n")
    assert "[image: image/png, 8 bytes, --output DIR saves it]" in result.out
    saved = run("mcp", "prompt", "--output", str(tmp_path), SERVER, "greet", "who=Ada")
    assert "saved as" in saved.out
    assert [path.suffix for path in tmp_path.iterdir()] == [".png"]
    messages = run("mcp", "prompt", SERVER, "greet", "who=1", "--json").json["messages"]
    assert messages[0]["content"]["text"] == "Greet {'who': '1'}."


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["greet"], "greet needs the argument 'who'"),
        (["greet", "who=a", "what=b"], "greet has no argument 'what'"),
        (["hello"], "no server has the prompt 'hello'"),
        ([], "the name of the prompt is missing"),
    ],
)
def test_wrong_arguments_of_a_prompt_are_reported(
    run: Run, words: list[str], expected: str
) -> None:
    """The request is not sent."""
    result = run("mcp", "prompt", SERVER, *words)
    assert (result.code, result.out) == (2, "")
    assert expected in result.err
