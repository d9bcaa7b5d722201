"""MCP server configurations: the documented ones, those of editors, and invalid ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from inline_snapshot import snapshot

from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.mcp import MCPServerConfig, MCPToolManager, load_config

DEFAULTS = MCPServerConfig(name="any", command="any")


def only(source: Mapping[str, Any] | Path | str, **defaults: Any) -> MCPServerConfig:
    (config,) = load_config(source, **defaults)
    return config


def entry(**parts: Any) -> MCPServerConfig:
    return only({"mcpServers": {"box": parts}})


def non_default_fields(config: MCPServerConfig) -> dict[str, Any]:
    """Return the fields of a configuration that differ from the defaults."""
    names = [name for name in MCPServerConfig.__dataclass_fields__ if name != "name"]
    return {
        name: getattr(config, name)
        for name in names
        if getattr(config, name) != getattr(DEFAULTS, name)
        and not (name == "prefix" and config.prefix == config.name)
    }


def refusal(source: Any, **defaults: Any) -> str:
    with pytest.raises(UserError) as caught:
        load_config(source, **defaults)
    return str(caught.value)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write a file into an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "mcp.json") -> Path:
        Path(name).write_text(text, encoding="utf-8")
        return Path(name)

    return write


# --- documented configurations


SAMPLE = """
{
  "mcpServers": {
    "sandbox": {
      "transport": "sse",
      "url": "http://localhost:8001/sse"
    },
    "search": {
      "command": "python",
      "args": ["mcp_servers/search_server.py"],
      "env": {
        "API_KEY": "your-key"
      }
    },
    "github": {
      "transport": "http",
      "url": "http://localhost:8080/mcp",
      "headers": {
        "Authorization": "Bearer token"
      }
    }
  }
}
"""


@pytest.mark.requirement("C37")
def test_c37_the_documented_sample_file_is_read(written: Callable[..., Path]) -> None:
    """`mcp_config.json`: the transport of an entry with only a command is inferred."""
    servers = load_config(written(SAMPLE, "mcp_config.json"))
    assert {one.name: (one.transport, non_default_fields(one)) for one in servers} == snapshot(
        {
            "sandbox": (
                "sse",
                {"transport": "sse", "command": None, "url": "http://localhost:8001/sse"},
            ),
            "search": (
                "stdio",
                {
                    "command": "python",
                    "args": ("mcp_servers/search_server.py",),
                    "env": {"API_KEY": "your-key"},
                },
            ),
            "github": (
                "http",
                {
                    "transport": "http",
                    "command": None,
                    "url": "http://localhost:8080/mcp",
                    "headers": {"Authorization": "Bearer token"},
                },
            ),
        }
    )
    assert [one.prefix for one in servers] == ["sandbox", "search", "github"]


@pytest.mark.requirement("B31")
def test_the_configuration_of_an_agent_of_the_document_is_read() -> None:
    """Programs that have such a file need no other."""
    servers = load_config(
        {
            "mcpServers": {
                "fetch": {"command": "uvx", "args": ["mcp-server-fetch"]},
                "filesystem": {
                    "command": "npx",
                    "args": ["-y", "@modelcontextprotocol/server-filesystem", "/path"],
                },
            }
        }
    )
    assert [(one.name, non_default_fields(one)) for one in servers] == snapshot(
        [
            ("fetch", {"command": "uvx", "args": ("mcp-server-fetch",)}),
            (
                "filesystem",
                {
                    "command": "npx",
                    "args": ("-y", "@modelcontextprotocol/server-filesystem", "/path"),
                },
            ),
        ]
    )


def test_the_repr_hides_variables_and_headers() -> None:
    """A record can end up in logs and tracebacks."""
    config = entry(url="https://me:hunter2@there.example/mcp?key=hunter2", headers={"X": "hunter2"})
    local = entry(command="x", env={"KEY": "hunter2"})
    assert "hunter2" not in repr(local)
    assert "X" not in repr(config).partition("headers")[2][:8]
    assert config.place == "https://there.example/mcp"
    assert local.place == "x"


# --- editors


EDITORS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "vs code": (
        {
            "inputs": [{"type": "promptString", "id": "key", "password": True}],
            "servers": {
                "box": {
                    "type": "stdio",
                    "command": "node",
                    "args": ["a.js"],
                    "envFile": ".env",
                    "dev": {"watch": "**"},
                }
            },
        },
        {"command": "node", "args": ("a.js",)},
    ),
    "vs code, http": (
        {"servers": {"box": {"type": "http", "url": "https://there.example/mcp"}}},
        {"transport": "http", "command": None, "url": "https://there.example/mcp"},
    ),
    "zed": (
        {
            "theme": "One Dark",
            "context_servers": {
                "box": {"source": "custom", "command": "uvx", "args": ["box"], "env": {"A": "b"}}
            },
        },
        {"command": "uvx", "args": ("box",), "env": {"A": "b"}},
    ),
    "zed, as it was": (
        {"context_servers": {"box": {"command": {"path": "uvx", "args": ["box"], "env": {}}}}},
        {"command": "uvx", "args": ("box",)},
    ),
    "gemini": (
        {
            "mcpServers": {
                "box": {
                    "httpUrl": "https://there.example/mcp",
                    "headers": {"X-Key": "k"},
                    "timeout": 30_000,
                    "trust": True,
                    "includeTools": ["look"],
                    "excludeTools": ["burn"],
                }
            }
        },
        {
            "transport": "http",
            "command": None,
            "url": "https://there.example/mcp",
            "headers": {"X-Key": "k"},
            "timeout": 30.0,
            "allow": ("look",),
            "deny": ("burn",),
        },
    ),
    "windsurf": (
        {
            "mcpServers": {
                "box": {"serverUrl": "https://there.example/sse", "disabledTools": ["burn"]}
            }
        },
        {
            "transport": "sse",
            "command": None,
            "url": "https://there.example/sse",
            "deny": ("burn",),
        },
    ),
    "cline": (
        {
            "mcpServers": {
                "box": {
                    "command": "npx",
                    "args": ["box"],
                    "disabled": False,
                    "autoApprove": ["look"],
                    "timeout": 60,
                    "type": "stdio",
                }
            }
        },
        {"command": "npx", "args": ("box",)},
    ),
    "claude code": (
        {"mcpServers": {"box": {"type": "streamable-http", "url": "https://there.example/"}}},
        {"transport": "http", "command": None, "url": "https://there.example/"},
    ),
    "program and arguments in one list": (
        {"mcpServers": {"box": {"type": "local", "command": ["npx", "-y", "box"]}}},
        {"command": "npx", "args": ("-y", "box")},
    ),
}


@pytest.mark.parametrize("editor", EDITORS)
def test_the_files_of_editors_are_read(editor: str) -> None:
    """Users can reuse the file of their editor."""
    source, expected = EDITORS[editor]
    config = only(source)
    assert (config.name, non_default_fields(config)) == ("box", expected)


def test_toml_is_read(written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOX_TOKEN", "t-0k3n")
    path = written(
        """
        model = "small"

        [mcp_servers.box]
        command = "npx"
        args = ["-y", "box"]
        env_vars = ["LANG"]
        startup_timeout_sec = 20
        tool_timeout_sec = 45.5
        enabled_tools = ["look"]

        [mcp_servers.box.env]
        KEY = "k"

        [mcp_servers.far]
        url = "https://there.example/mcp"
        bearer_token_env_var = "BOX_TOKEN"
        http_headers = { "X-Region" = "eu" }

        [mcp_servers.off]
        command = "x"
        enabled = false
        """,
        "config.toml",
    )
    assert {one.name: non_default_fields(one) for one in load_config(path)} == snapshot(
        {
            "box": {
                "command": "npx",
                "args": ("-y", "box"),
                "env": {"KEY": "k"},
                "inherit_env": ("LANG",),
                "connect_timeout": 20,
                "timeout": 45.5,
                "allow": ("look",),
            },
            "far": {
                "transport": "http",
                "command": None,
                "url": "https://there.example/mcp",
                "headers": {"X-Region": "eu", "Authorization": "Bearer t-0k3n"},
            },
        }
    )


def test_comments_and_trailing_commas_are_accepted(written: Callable[..., Path]) -> None:
    """Editors allow both; comment markers inside strings are not comments."""
    path = written(
        """\ufeff{
          // the servers
          "mcpServers": {
            /* the one
               and only */
            "box": {
              "command": "npx", // a program
              "args": ["http://a//b", "/* c */", ",]", "\\"//",],
            },
          },
        }"""
    )
    assert only(path).args == ("http://a//b", "/* c */", ",]", '"//')


def test_disabled_servers_are_skipped() -> None:
    """This holds even if they are invalid."""
    assert (
        load_config(
            {
                "mcpServers": {
                    "a": {"command": "x", "disabled": True},
                    "b": {"enabled": False},
                    "c": {"disabled": True, "comand": 1},
                }
            }
        )
        == []
    )
    assert entry(command="x", disabled=False, enabled=True).command == "x"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(30, 30), (0.5, 0.5), (999, 999), (1_000, 1.0), (30_000, 30.0), (600_000, 600.0)],
)
def test_long_timeouts_are_milliseconds(given: float, seconds: float) -> None:
    """Some programs write seconds, others milliseconds."""
    config = entry(command="x", timeout=given, connect_timeout=given, max_time=given)
    assert (config.timeout, config.connect_timeout, config.max_time) == (seconds, given, given)


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"X Key": "secret"}, "the name of the header 'X Key' is not valid"),
        ({"": "secret"}, "the name of the header '' is not valid"),
        ({"X-Key": "secret\n"}, "the value of the header 'X-Key' contains a line break"),
        ({"X-Key": "sécret"}, "the value of the header 'X-Key' contains a line break or another"),
    ],
)
def test_headers_that_http_does_not_allow_are_refused(headers: Any, problem: str) -> None:
    """The error does not quote the value."""
    with pytest.raises(UserError, match=problem) as caught:
        entry(url="https://there.example", headers=headers)
    assert "cret" not in str(caught.value)


def test_defaults_apply_to_entries_without_the_option() -> None:
    source = {"mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "timeout": 3}}}
    a, b = load_config(source, timeout=7.0, max_time=2_000.0)
    assert (a.timeout, a.max_time, b.timeout, b.max_time) == (7.0, 2_000.0, 3, 2_000.0)


@pytest.mark.parametrize(
    ("key", "value"),
    [("trusted", True), ("server", {}), ("auth", "x"), ("header_provider", "os.getenv")],
)
def test_options_for_code_only_are_rejected_in_a_file(key: str, value: Any) -> None:
    """A file that came with a project must not make a server trusted, or name an object."""
    source = {"mcpServers": {"box": {"command": "x", key: value}}}
    try:
        config = only(source)
    except UserError as error:
        assert repr(key) in str(error)  # noqa: PT017 - either is right
    else:
        assert getattr(config, key) == getattr(DEFAULTS, key)


# --- variables


@pytest.fixture
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOX_KEY", "k$1")
    monkeypatch.setenv("BOX_EMPTY", "")
    monkeypatch.delenv("BOX_UNSET", raising=False)


@pytest.mark.usefixtures("_variables")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${BOX_KEY}", "k$1"),
        ("${env:BOX_KEY}", "k$1"),
        ("a-${BOX_KEY}-${BOX_KEY}", "a-k$1-k$1"),
        ("${BOX_UNSET:-x y}", "x y"),
        ("${env:BOX_UNSET:-x}", "x"),
        ("${BOX_UNSET:-}", ""),
        ("${BOX_EMPTY}", ""),
        ("${BOX_EMPTY:-x}", "x"),
        ("${BOX_KEY:-x}", "k$1"),
        ("$BOX_KEY", "$BOX_KEY"),
        ("${1}", "${1}"),
        ("$(id)", "$(id)"),
        ("${BOX_UNSET:-${BOX_KEY}}", "${BOX_KEY}"),
    ],
)
def test_environment_variables_are_substituted(text: str, expected: str) -> None:
    """They are substituted everywhere and once: values are not expanded again."""
    config = entry(command="x", args=[text], env={"A": text}, cwd=text or ".")
    assert (config.args, config.env) == ((expected,), {"A": expected})
    far = entry(url="https://there.example", headers={"Authorization": f"Bearer {text}"})
    assert far.headers == {"Authorization": f"Bearer {expected}"}


@pytest.mark.usefixtures("_variables")
def test_editor_folder_variables_are_substituted(written: Callable[..., Path]) -> None:
    written("{}")
    config = entry(command="x", args=["${workspaceFolder}/a", "${userHome}"])
    assert config.args == (f"{Path.cwd()}/a", str(Path.home()))


# --- invalid configurations


@pytest.mark.usefixtures("_variables")
def test_undefined_variables_are_rejected() -> None:
    """A server that is started with an empty key would fail later without a reason."""
    texts = [
        refusal({"mcpServers": {"box": {"command": "x", **parts}}})
        for parts in (
            {"env": {"KEY": "${BOX_UNSET}"}},
            {"args": ["${input:key}"]},
            {"bearer_token_env_var": "BOX_UNSET"},
        )
    ]
    assert texts == snapshot(
        [
            "The MCP configuration: MCP server 'box': 'env.KEY' requires the environment variable BOX_UNSET, which is not set. Set it, or use ${BOX_UNSET:-default}.",
            "The MCP configuration: MCP server 'box': 'args' contains ${input:key}, which only an editor can fill in. Put the value into an environment variable and use ${NAME} instead.",
            "The MCP configuration: MCP server 'box': 'bearer_token_env_var' requires the environment variable BOX_UNSET, which is not set. Set it, or use ${BOX_UNSET:-default}.",
        ]
    )


ENTRIES: dict[str, Any] = {
    "nothing": {},
    "list": [],
    "text": "npx",
    "null": None,
    "url without a scheme": {"url": "there.example/mcp"},
    "url of a file": {"url": "file:///etc/passwd"},
    "url that is no text": {"url": 8},
    "url of no place": {"url": "http://"},
    "transport": {"transport": "carrier pigeon", "url": "http://there"},
    "transport that is no text": {"transport": 7, "url": "http://there"},
    "stdio without a command": {"transport": "stdio", "url": "http://there"},
    "http without an address": {"transport": "http", "command": "x"},
    "memory": {"transport": "memory"},
    "command": {"command": 3},
    "command of nothing": {"command": []},
    "args as text": {"command": "x", "args": "-y box"},
    "args with a number": {"command": "x", "args": ["-p", 80]},
    "env as a list": {"command": "x", "env": ["A=b"]},
    "env with a number": {"command": "x", "env": {"PORT": 80}},
    "env with true": {"command": "x", "env": {"DEBUG": True}},
    "headers": {"url": "http://there", "headers": {"X-Ids": ["a"]}},
    "timeout of nothing": {"command": "x", "timeout": 0},
    "timeout as text": {"command": "x", "timeout": "30s"},
    "timeout that is true": {"command": "x", "timeout": True},
    "typo": {"command": "x", "timout": 3},
    "typo in the only key": {"comand": "x"},
    "typo of an alias": {"serverURL": "http://there"},
}


@pytest.mark.requirement("B31")
def test_each_invalid_entry_is_reported_with_location_and_remedy() -> None:
    """The message must be enough to fix the file."""
    texts = {
        name: refusal({"mcpServers": {"box": parts}}).removeprefix("The MCP configuration: ")
        for name, parts in ENTRIES.items()
    }
    assert texts == snapshot(
        {
            "nothing": 'MCP server \'box\' requires "command" (a program to start) or "url" (an address).',
            "list": '"mcpServers.box" in The MCP configuration expects an object like {"command": "..."}, got a list.',
            "text": '"mcpServers.box" in The MCP configuration expects an object like {"command": "..."}, got a string.',
            "null": '"mcpServers.box" in The MCP configuration expects an object like {"command": "..."}, got null.',
            "url without a scheme": "MCP server 'box': 'url' expects a complete URL, such as http://127.0.0.1:8000/mcp.",
            "url of a file": "MCP server 'box': 'url' expects a complete URL, such as http://127.0.0.1:8000/mcp.",
            "url that is no text": 'MCP server \'box\' requires "command" (a program to start) or "url" (an address).',
            "url of no place": "MCP server 'box': 'url' expects a complete URL, such as http://127.0.0.1:8000/mcp.",
            "transport": "MCP server 'box': 'transport' expects 'stdio', 'http', 'sse' or 'memory', got 'carrier pigeon'.",
            "transport that is no text": "MCP server 'box': 'transport' expects 'stdio', 'http', 'sse' or 'memory', got 7.",
            "stdio without a command": "MCP server 'box': the transport 'stdio' requires 'command'.",
            "http without an address": "MCP server 'box': the transport 'http' requires 'url'.",
            "memory": "MCP server 'box': the transport 'memory' requires 'server'.",
            "command": "MCP server 'box': 'command' expects a string, got a number.",
            "command of nothing": 'MCP server \'box\' requires "command" (a program to start) or "url" (an address).',
            "args as text": "MCP server 'box': 'args' expects a list of strings, got a string.",
            "args with a number": "MCP server 'box': 'args' expects a list of strings, got a number in the list: 80.",
            "env as a list": "MCP server 'box': 'env' expects an object, got a list.",
            "env with a number": "MCP server 'box': 'env' expects strings as values, got a number for 'PORT'.",
            "env with true": "MCP server 'box': 'env' expects strings as values, got true or false for 'DEBUG'.",
            "headers": "MCP server 'box': 'headers' expects strings as values, got a list for 'X-Ids'.",
            "timeout of nothing": "MCP server 'box': 'timeout' expects a number above 0, got 0.",
            "timeout as text": "MCP server 'box': 'timeout' expects a number above 0, got '30s'.",
            "timeout that is true": "MCP server 'box': 'timeout' expects a number above 0, got True.",
            "typo": "MCP server 'box' has the unknown key 'timout'. Did you mean 'timeout'?",
            "typo in the only key": "MCP server 'box' has the unknown key 'comand'. Did you mean 'command'?",
            "typo of an alias": 'MCP server \'box\' requires "command" (a program to start) or "url" (an address).',
        }
    )


def test_each_invalid_file_is_reported_with_its_path(written: Callable[..., Path]) -> None:
    contents = {
        "empty.json": "",
        "cut.json": '{"mcpServers": {"box": {"command": "x"',
        "list.json": "[]",
        "null.json": "null",
        "nothing.json": "{}",
        "bare.json": '{"box": {"command": "x"}}',
        "other.json": '{"editor.fontSize": 12}',
        "servers.json": '{"mcpServers": ["box"]}',
        "entry.json": '{"mcpServers": {"box": {"command": "x", "args": 1}}}',
        "cut.toml": "[mcp_servers.box\ncommand = 1",
    }
    texts = {name: refusal(written(content, name)) for name, content in contents.items()}
    texts["absent.json"] = refusal("absent.json")
    texts["a folder"] = refusal(".")
    Path("bytes.json").write_bytes(b"\xff\xfe{}")
    texts["bytes.json"] = refusal("bytes.json")
    texts["a name that is none"] = refusal("a\0b")
    assert texts == snapshot(
        {
            "empty.json": "The MCP configuration empty.json cannot be read: Expecting value: line 1 column 1 (char 0).",
            "cut.json": "The MCP configuration cut.json cannot be read: Expecting ',' delimiter: line 1 column 39 (char 38).",
            "list.json": "The MCP configuration list.json is invalid: expected an object, got a list.",
            "null.json": "The MCP configuration null.json is invalid: expected an object, got null.",
            "nothing.json": 'nothing.json has no MCP servers: the key "mcpServers" is missing.',
            "bare.json": 'bare.json has no key "mcpServers". Put the servers below it: {"mcpServers": {"name": {"command": "..."}}}.',
            "other.json": 'other.json has no MCP servers: the key "mcpServers" is missing.',
            "servers.json": '"mcpServers" in servers.json expects an object, got a list.',
            "entry.json": "entry.json: MCP server 'box': 'args' expects a list of strings, got a number.",
            "cut.toml": "The MCP configuration cut.toml cannot be read: Expected ']' at the end of a table declaration (at line 1, column 17).",
            "absent.json": "The MCP configuration absent.json cannot be read: No such file or directory.",
            "a folder": "The MCP configuration . cannot be read: Is a directory.",
            "bytes.json": "The MCP configuration bytes.json cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte.",
            "a name that is none": "The MCP configuration a\x00b cannot be read: embedded null byte.",
        }
    )


def test_the_error_type_is_preserved() -> None:
    """Programs can distinguish a wrong type from a wrong value, as elsewhere in the library."""
    with pytest.raises(UserTypeError):
        load_config({"mcpServers": []})
    with pytest.raises(UserTypeError):
        load_config({"mcpServers": {"box": {"command": "x", "args": 1}}})
    with pytest.raises(UserValueError):
        load_config({"mcpServers": {"box": {"command": "x", "timeout": -1}}})


@pytest.mark.parametrize("prefix", [3, True, ["a"], {"a": "b"}])
def test_a_prefix_that_is_not_a_string_is_rejected(prefix: Any) -> None:
    """Otherwise connecting the server would fail with a traceback."""
    with pytest.raises(UserError, match="prefix"):
        entry(command="x", prefix=prefix)


def test_names_are_non_empty_strings() -> None:
    with pytest.raises(UserError) as caught:
        load_config({"mcpServers": {" ": {"command": "x"}}})
    assert str(caught.value) == snapshot(
        "The MCP configuration: The name of an MCP server expects a non-empty string, got ' '."
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = sorted(
    {
        *(set(MCPServerConfig.__dataclass_fields__) - {"name"}),
        *("type", "serverUrl", "httpUrl", "includeTools", "disabled", "enabled", "http_headers"),
        *("startup_timeout_sec", "env_vars", "bearer_token_env_var", "comand"),
    }
)
LIKELY = st.sampled_from(["x", "http://there", "stdio", "http", "${A:-b}", "${A", "${input:x}", ""])
ONE = st.dictionaries(st.sampled_from(KEYS), LIKELY | JSON, max_size=5)
SECTIONS = st.sampled_from(["mcpServers", "servers", "context_servers", "mcp_servers"])
WHOLE = st.dictionaries(SECTIONS, st.dictionaries(st.text(max_size=6), ONE | JSON, max_size=3))


@given(WHOLE | st.dictionaries(st.text(max_size=6), JSON, max_size=3))
@example({"mcpServers": {"a": {"command": {"path": "x", "args": 3}}}})
@example({"mcpServers": {"a": {"command": ["x"], "args": 3}}})
@example({"mcpServers": {"a": {"url": "http://x", "bearer_token_env_var": "HOME", "headers": 3}}})
@example({"mcpServers": {"a": {"command": "x", "timeout": float("nan")}}})
@example({"mcpServers": {"a": {"command": "x", "type": []}}})
def test_any_object_is_read_or_rejected(source: dict[str, Any]) -> None:
    """Any content gives a configuration or an error message, never an internal traceback."""
    try:
        servers = load_config(source)
    except UserError as error:
        assert str(error)  # noqa: PT017 - either is right, and a text is all that is asked
    else:
        assert all(isinstance(one, MCPServerConfig) for one in servers)
        assert all(one.place for one in servers)


def test_servers_nested_too_deep_are_rejected() -> None:
    """Content passed as an object has no limit from a parser."""
    value: Any = "x"
    for _ in range(5_000):
        value = [value]
    assert refusal({"mcpServers": {"box": {"command": "x", "args": value}}})


@given(st.text(max_size=40) | WHOLE.map(json.dumps))
def test_any_file_is_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "mcp.json"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        load_config(path)
    except UserError as error:
        assert str(path) in str(error)  # noqa: PT017 - either is right


DEEP = '{"mcpServers": {"a": {"command": "x", "env": ' + "[" * 900 + "]" * 900 + "}}}"
HUGE = '{"mcpServers": {"a": {"command": "x", "timeout": ' + "9" * 5_000 + "}}}"


@pytest.mark.parametrize("text", [DEEP, HUGE, "[" * 100_000], ids=["deep", "huge", "deeper"])
def test_files_above_the_size_limit_are_rejected(written: Callable[..., Path], text: str) -> None:
    assert "mcp.json" in refusal(written(text))


# --- servers added in code


async def test_servers_added_in_code_are_validated_too() -> None:
    """The validation comes before anything is started."""
    calls: dict[str, dict[str, Any]] = {
        "typo": {"comand": "npx"},
        "nothing": {},
        "command as a list": {"command": ["npx", "-y"]},
        "transport": {"transport": "ftp", "command": "x"},
        "args": {"command": "npx", "args": "-y"},
    }
    texts: dict[str, str] = {}
    manager = MCPToolManager()
    for name, parts in calls.items():
        with pytest.raises(UserError) as caught:
            await manager.add_server("box", **parts)
        texts[name] = str(caught.value)
    assert manager.get_server_names() == []
    assert texts == snapshot(
        {
            "typo": "MCP server 'box' has no option 'comand'. Did you mean 'command'?",
            "nothing": 'MCP server \'box\' requires "command" (a program to start) or "url" (an address).',
            "command as a list": "MCP server 'box': 'command' expects a string, got a list.",
            "transport": "MCP server 'box': 'transport' expects 'stdio', 'http', 'sse' or 'memory', got 'ftp'.",
            "args": "MCP server 'box': 'args' expects a list of strings, got a string.",
        }
    )


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("oauth", {"clientId": "x"}, 'Write "auth": "oauth" to log in'),
        ("envFile", "./.env", 'Write the variables in "env"'),
        ("autoApprove", ["look"], "Tools run without approval by default"),
    ],
)
def test_a_key_without_effect_that_a_user_could_rely_on_is_named(
    key: str, value: Any, remedy: str, caplog: pytest.LogCaptureFixture
) -> None:
    load_config({"mcpServers": {"box": {"command": "box", key: value}}})
    [record] = caplog.records
    assert f"MCP server 'box': the key {key!r} of its configuration has no effect." in caplog.text
    assert remedy in record.getMessage()
