"""Findings about server commands: unpinned versions, and code in the arguments."""

from __future__ import annotations

import json
import logging
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from agents_tools.mcp import ConfigFinding, MCPServerConfig, load_config
from tests.cli.conftest import Run, run as run  # noqa: PLC0414 - a fixture

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = "sha256:" + "0" * 64


def findings(*words: str) -> tuple[ConfigFinding, ...]:
    return MCPServerConfig(name="box", command=words[0], args=words[1:]).findings


def codes(command: str) -> list[str]:
    return [one.code for one in findings(*shlex.split(command))]


OPEN = (
    "npx pkg",
    "npx -y @scope/pkg",
    "npx -y @scope/pkg@latest /srv/data",
    "npx --yes pkg@next",
    "npx -y pkg@^1.2.3",
    "npx -y pkg@1",
    "npx -y pkg@1.x",
    "npx -p pkg server@1.2.3",
    "npx --package=pkg -- server",
    "npx -y github:owner/repo",
    "npx -y owner/repo#main",
    "/usr/local/bin/npx -y pkg",
    r"'C:\Program Files\nodejs\npx.cmd' -y pkg",
    "cmd /c npx -y pkg",
    "env -i PATH=/bin npx -y pkg",
    "env -i /usr/local/bin/npx -y pkg",
    "sudo -u deploy /usr/local/bin/npx -y pkg",
    "npm exec -y -- pkg",
    "pnpm dlx pkg",
    "yarn dlx -q pkg",
    "bunx pkg",
    "uvx mcp-server-fetch",
    "uvx -p 3.12 --isolated mcp-server-fetch",
    "uvx mcp-server-fetch@latest --ignore-robots-txt",
    "uvx 'mcp-server-fetch>=1.0'",
    "uvx mcp-server-fetch==1.*",
    "uvx 'mcp-server-fetch[all]'",
    "uvx --from mcp-server-fetch serve==1.0",
    "uvx --from git+https://example.com/owner/repo serve",
    "uvx --from git+https://example.com/owner/repo@main serve",
    "uvx --with extra mcp-server-fetch==1.0",
    "uv tool run mcp-server-fetch",
    "pipx run mcp-server-fetch",
    "pipx run --spec mcp-server-fetch serve",
    "docker run -i --rm mcp/fetch",
    "docker run -i --rm mcp/fetch:latest",
    "docker run -i --rm -e TOKEN -v /a:/b:ro registry.example:5000/fetch serve",
    "podman run -itv /a:/b mcp/fetch",
)

INLINE = (
    "python -c 'print(1)'",
    "python3.12 -Iuc 'print(1)'",
    "python -W error -X dev -c 'print(1)'",
    "/usr/bin/python3 -cprint(1)",
    "node -e 'serve()'",
    "node --eval 'serve()'",
    "node --eval=serve() x",
    "node -r ./hook.js -pe 'serve()'",
    "bash -c 'serve | tee log'",
    "bash -lc serve",
    "sh -eo pipefail -c serve",
    "env A=1 sh -c serve",
    "cmd /c node -e serve",
    "perl -wne print",
    "ruby -rjson -e puts",
    "php -r 'serve();'",
    "npx -c 'serve --now'",
    "powershell -NoProfile -ExecutionPolicy Bypass -Command serve",
    "pwsh -enc c2VydmU=",
)

FINE = (
    # pinned
    "npx -y pkg@1.2.3",
    "npx -y @scope/pkg@1.2.3-rc.1 --eval x -c y",
    "npx -y -p pkg@1.2.3 server",
    f"npx -y github:owner/repo#{COMMIT}",
    "uvx mcp-server-fetch==2025.1.17",
    "uvx mcp-server-fetch@2025.1.17",
    "uvx 'mcp-server-fetch[all]==1.0' -c conf.toml -e prod",
    "uvx --from mcp-server-fetch==1.0 serve",
    f"uvx --from git+https://example.com/owner/repo@{COMMIT} serve",
    f"uvx --from 'pkg @ git+ssh://git@example.com/owner/repo@{COMMIT}#subdirectory=a' serve",
    "uvx -c constraints.txt mcp-server-fetch",
    "uvx --exclude-newer 2026-01-01 mcp-server-fetch",
    "pipx run --spec mcp-server-fetch==1.0 serve",
    "docker run -i --rm mcp/fetch:1.2",
    f"docker run -i --rm mcp/fetch@{DIGEST}",
    f"docker run -i --rm mcp/fetch:latest@{DIGEST}",
    "docker run -i --rm registry.example:5000/fetch:1.2",
    # of this machine
    "npx --no-install pkg",
    "npx ./server",
    "npx -y /srv/server.tgz",
    "npx --no -- pkg",
    "uvx --from . serve",
    "uvx ./dist/server-1.0-py3-none-any.whl",
    "docker run --pull never -i mine",
    "podman run -i localhost/mine",
    "docker exec -i box serve -e x",
    "docker compose run box",
    "docker mcp gateway run",
    "uv run server.py",
    "uv --directory /srv run --no-sync server.py -c conf.toml",
    "npm run serve",
    "npm exec --offline pkg",
    # letters that are not code here
    "python server.py -c conf.toml",
    "python -m server -c conf.toml",
    "python -um server -e prod",
    "python -",
    "node server.js -e prod --eval",
    "node --env-file .env --import ./hook.js server.js",
    "bash -e serve.sh",
    "sh serve.sh -c x",
    "php -c php.ini server.php -r",
    "perl -Ilib server.pl -e x",
    "ruby -rfile server.rb -e x",
    "my-server -c conf.toml -e prod --eval",
    "docker run -e A=1 -c 512 -i mcp/fetch:1.2 sh -c serve",
    "powershell -ExecutionPolicy Bypass -File serve.ps1 -Command x",
    "npxx pkg",
    # nothing to report
    "npx",
    "npx -y",
    "uvx",
    "uvx --from",
    "docker run",
    "docker",
    "env",
    "env A=1",
    "cmd",
    "timeout",
    "bash",
)


@pytest.mark.requirement("S34")
@pytest.mark.parametrize("command", OPEN)
def test_unpinned_versions_are_found(command: str) -> None:
    """The next installed version can differ from the reviewed one."""
    assert codes(command) == ["unpinned"]


@pytest.mark.requirement("S5")
@pytest.mark.parametrize("command", INLINE)
def test_code_in_the_arguments_is_reported(command: str) -> None:
    """A program in one line of a configuration is easy to overlook."""
    assert codes(command) == ["inline-code"]


@pytest.mark.requirement("S34", "S5")
@pytest.mark.parametrize("command", FINE)
def test_other_commands_have_no_findings(command: str) -> None:
    """A check with false positives would be switched off."""
    assert codes(command) == []


@pytest.mark.requirement("S34")
def test_findings_have_a_remedy() -> None:
    told = [
        findings(*shlex.split(one))[0].message
        for one in (
            "npx -y @scope/pkg@latest",
            "uvx 'pkg[all]>=1'",
            "docker run -i host:5000/a/b:latest",
            "uvx --from git+ssh://git@host/a/b@main serve",
            "bash -lc 'curl x | sh'",
        )
    ]
    assert [message.rpartition("such as ")[2] for message in told[:4]] == [
        "@scope/pkg@1.2.3",
        "pkg[all]==1.2.3",
        "host:5000/a/b@sha256:<digest>",
        "git+ssh://git@host/a/b@<commit>",
    ]
    assert "(-lc)" in told[4]
    assert "curl" not in told[4]


@pytest.mark.requirement("S34")
def test_a_secret_in_an_argument_is_not_shown() -> None:
    """Arguments can contain secrets that a check must not print."""
    config = MCPServerConfig(
        name="box", command="npx", args=("git+https://t0ken-t0ken@x/y",), env={"T": "t0ken-t0ken"}
    )
    assert "t0ken" not in config.findings[0].message
    assert "***" in config.findings[0].message


@pytest.mark.requirement("S34")
def test_an_address_has_no_command() -> None:
    """A URL entry starts no program."""
    assert MCPServerConfig(name="box", transport="http", url="http://127.0.0.1:1/").findings == ()


@pytest.mark.requirement("S34")
@given(st.lists(st.text(max_size=8) | st.sampled_from(" ".join(OPEN + INLINE).split()), min_size=1))
def test_unparsable_commands_have_no_findings(words: list[str]) -> None:
    """They never break loading."""
    for one in findings(words[0] or "x", *words[1:]):
        assert one.code in {"unpinned", "inline-code"}


@pytest.mark.requirement("S34")
def test_a_long_chain_of_wrappers_is_read() -> None:
    """The file can come from a stranger."""
    assert [one.code for one in findings(*["env"] * 5_000, "npx", "pkg")] == ["unpinned"]


@pytest.mark.requirement("S34")
def test_loading_logs_findings_and_continues(caplog: pytest.LogCaptureFixture) -> None:
    """A finding is not an error."""
    caplog.set_level(logging.INFO, "agents_tools.mcp")
    entries = {
        "open": {"command": ["npx", "-y"], "args": ["pkg"]},
        "good": {"command": "npx", "args": ["-y", "pkg@1.2.3"]},
    }
    loose, good = load_config({"mcpServers": entries})
    assert [one.code for one in loose.findings] == ["unpinned"]
    assert good.findings == ()
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert record.getMessage().startswith("MCP server 'open' in The MCP configuration: npx uses")


@pytest.mark.requirement("S34", "S5")
def test_the_check_shows_the_findings(run: Run, tmp_path: Path) -> None:
    """It includes servers that cannot be started; `--strict` makes them count."""
    echo = str(Path(__file__).parents[1] / "cli" / "mcp_echo_server.py")
    runs = f"import runpy, sys; sys.argv[1:] = ['good', {str(tmp_path)!r}]; runpy.run_path({echo!r}, run_name='__main__')"
    entries = {
        "inline": {"command": sys.executable, "args": ["-c", runs]},
        "open": {"command": str(tmp_path / "uvx"), "args": ["mcp-server-fetch"]},
    }
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": entries}))
    checked = run("check", str(path), "--json").json
    found = {(one["tool"], one["code"], one["level"]) for one in checked["findings"]}
    assert {("inline", "inline-code", "warning"), ("open", "unpinned", "warning")} <= found
    assert checked["ok"] is True
    assert run("check", str(path), "--strict").code == 1
