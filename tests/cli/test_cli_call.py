"""`call` and the other commands, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from inline_snapshot import snapshot

from agents_tools.cli import main
from agents_tools.events import event_from_dict
from agents_tools.text.characters import safe_text

if TYPE_CHECKING:
    from tests.cli.conftest import Run


def test_only_the_result_is_on_standard_output(run: Run) -> None:
    """Other programs read it; a fast tool without events writes nothing else."""
    result = run("call", "TOOLS", "add", "a=1", "--b", "40")
    assert (result.code, result.out, result.err) == (0, "41\n", "")


def test_a_target_of_one_tool_needs_no_name(run: Run) -> None:
    """`file.py:function` identifies the tool."""
    assert run("call", "TOOLS:plain", "name=x", "times=2").out == "hello x hello x \n"


def test_json_prints_the_whole_outcome_on_one_line(run: Run) -> None:
    """Scripts get status, text and value."""
    result = run("call", "TOOLS", "echo", "text=5", "point.x=1", "timeout=3", "--json")
    told = result.json
    assert told.pop("duration") >= 0
    assert json.loads(told.pop("output")) == told["value"]
    assert result.out.count("\n") == 1
    assert told == snapshot(
        {
            "status": "ok",
            "value": {
                "text": "5",
                "count": 1,
                "ratio": 0.5,
                "loud": False,
                "color": "red",
                "tags": [],
                "sizes": None,
                "point": {"x": 1.0},
                "either": 0,
                "level": 4,
                "timeout": 3.0,
                "filter": None,
            },
        }
    )


@pytest.mark.parametrize(("given", "stdin"), [('{"a": 1}', ""), ("-", '{"a": 1}'), ("@FILE", "")])
def test_arguments_come_as_json_from_three_places(
    given: str, stdin: str, run: Run, tmp_path: Path
) -> None:
    """`--input-json TEXT|@file|-`."""
    path = tmp_path / "args.json"
    path.write_text('{"a": 1}')
    given = given.replace("FILE", str(path))
    assert run("call", "TOOLS", "add", "--input-json", given, stdin=stdin).out == "3\n"


AGENTS = str(Path(__file__).parent / "agents_fixture.py")


@pytest.mark.parametrize(
    ("approve", "result"),
    [
        ("ask", (5, "", "there is no terminal to ask at. Pass --approve yes to allow it.")),
        ("yes", (0, "A is gone\n", "")),
        ("no", (5, "", "A person refused this call of 'burn'.")),
    ],
)
def test_a_call_that_needs_approval(approve: str, result: tuple[int, str, str], run: Run) -> None:
    """Without a terminal, the option decides; a call of another tool is no exception."""
    for tool in ("burn", "burn_inside"):
        told = run("call", f"{AGENTS}:{tool}", "book=A", "--approve", approve, "-q")
        assert (told.code, told.out) == result[:2]
        assert result[2] in told.err


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (["add", "a=x"], 3, "invalid_args"),
        (["add", "--input-json", "{"], 3, "invalid_args"),
        (["explode"], 1, "tool_error"),
        (["explode", "kind=tool"], 1, "tool_error"),
        (["explode", "kind=denied"], 5, "denied"),
        (["soft_failure"], 1, "tool_error"),
        (["sleep_long", "--timeout", "0.05"], 4, "timeout"),
        (["nothing"], 2, "usage_error"),
        (["add", "--nope"], 2, "usage_error"),
        (["add", "a=1", "--timeout", "soon"], 2, "usage_error"),
        (["a=1"], 2, "usage_error"),
    ],
)
def test_exit_codes_and_json_report_the_outcome_of_a_call(
    words: list[str], code: int, status: str, run: Run
) -> None:
    """Scripts rely on the codes; `--json` applies to errors too."""
    told = run("call", "TOOLS", *words)
    assert told.code == code
    as_json = run("call", "TOOLS", *words, "--json")
    assert (as_json.code, as_json.json["status"]) == (code, status)
    assert as_json.err == ""
    if status != "usage_error" and words != ["soft_failure"]:
        assert told.out == ""
        assert safe_text(as_json.json["error"]["message"]) in told.err


def test_bad_arguments_point_to_the_help_of_the_tool(run: Run) -> None:
    """The next step follows the message."""
    err = run("call", "TOOLS:add", "add", "a=x").err
    assert 'a: expected an integer, got "x"' in err
    assert "add --help" in err


def test_an_unexpected_exception_is_short_and_long_with_debug(run: Run) -> None:
    """Authors get the traceback with --debug; the output is escaped for the terminal either way."""
    short = run("call", "TOOLS", "explode").err
    assert r"ValueError: a bad \x1b[31mvalue" in short
    assert "Traceback" not in short
    assert "\x1b" not in short
    assert "in explode" in run("call", "TOOLS", "explode", "--debug").err


def test_events_are_plain_lines_without_a_terminal(run: Run) -> None:
    """Logs get one line per change, including nested calls, without terminal control characters."""
    result = run("call", "TOOLS", "pipeline", "source=x")
    assert result.out == "parsed x\n"
    lines = result.err.splitlines()
    assert lines[:-1] == snapshot(
        [
            "a print of the tool",
            "pipeline: connecting to x",
            "pipeline: 1/3 (33%) parsing",
            "pipeline: 2/3 (67%) parsing",
            "pipeline: 3/3 (100%) parsing",
            "pipeline: one line",
            "pipeline: and a rest",
            "pipeline: warning: careful",
            "pipeline > inner: started",
            "pipeline > inner: inside: hi",
            "pipeline > inner: done in 0 s",
            "pipeline: made ../report.txt (text/plain, 8 bytes)",
        ]
    )
    assert lines[-1].startswith("pipeline: done in ")


def test_plain_progress_is_not_a_line_for_each_step(run: Run) -> None:
    """A loop of ten thousand steps must not fill a log, but its last step is logged."""
    lines = run("call", "TOOLS", "pipeline", "source=x", "steps=10000").err.splitlines()
    progress = [line for line in lines if "parsing" in line]
    assert len(progress) <= 20
    assert progress[-1] == "pipeline: 10000/10000 (100%) parsing"


def test_events_can_be_read_by_programs(run: Run) -> None:
    """Each line is a serialized event; a failure is an event too."""

    def events(*words: str) -> list[Any]:
        err = run("call", "TOOLS", *words, "--events", "ndjson").err
        lines = [line for line in err.splitlines() if line != "a print of the tool"]
        return [event_from_dict(json.loads(line)) for line in lines]

    types = [event.type for event in events("pipeline", "source=x")]
    assert types[0] == "tool_stream_start_event"
    assert types[-1] == "tool_stream_end_event"
    failed = events("explode", "kind=denied")[-1]
    assert (failed.type, failed.kind, failed.message) == (
        "error_event",
        "denied",
        "Not on a Sunday.",
    )


@pytest.mark.parametrize("flag", [["-q"], ["--events", "none"]])
def test_quiet_shows_no_events(flag: list[str], run: Run) -> None:
    """The output of the tool itself is not affected."""
    assert run("call", "TOOLS", "pipeline", "source=x", *flag).err == "a print of the tool\n"


def test_live_events_leave_the_printed_lines(run: Run) -> None:
    """The live view is transient, the lines stay."""
    result = run("call", "TOOLS", "pipeline", "source=x", "--events", "live")
    assert result.out == "parsed x\n"
    for line in ("connecting to x", "one line", "and a rest", "careful", "inner: inside: hi"):
        assert line in result.err
    assert "\x1b[2J" not in result.err


def test_files_are_described_and_saved_on_request(run: Run, tmp_path: Path) -> None:
    """Bytes are not printed to a terminal, and a tool must not choose the path of files."""
    assert (
        "[image: image/png, 28 bytes, --output DIR saves it]" in run("call", "TOOLS", "picture").out
    )
    folder = tmp_path / "out"
    for _ in range(2):
        run("call", "TOOLS", "picture", "--output", str(folder))
    run("call", "TOOLS", "pipeline", "source=x", "--output", str(folder))
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["image-2-2.png", "image-2.png", "report.txt"]
    assert (folder / "report.txt").read_text() == "a report"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    told = run("call", "TOOLS", "picture", "--output", str(folder), "--json").json
    assert told["output"][1]["path"].endswith("image-2-3.png")


def test_a_tool_has_its_own_help(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is generated from the schema: types, defaults, choices, bounds and descriptions."""
    monkeypatch.setenv("COLUMNS", "100")
    text = run("call", "TOOLS", "echo", "--help").out.replace(str(__file__), "")
    parameters = text[text.index("Parameters:") : text.index("Options:")]
    assert parameters == snapshot("""\
Parameters:
  --text STRING            Any text.  [default: ""]
  --count INTEGER          [default: 1]
  --ratio NUMBER           [default: 0.5]
  --loud/--no-loud         Whether to shout.  [default: false]
  --color [red|blue|3]     Which colour.  [default: red]
  --tags STRING...         [default: []]
  --sizes INTEGER...       [default: null]
  --point JSON             [default: null; members: x: number, y: number]
  --filter JSON            [default: null; members: field: string, values: array of integer, child:
                           object {field, values, child} or null]
  --either INTEGER|STRING  [default: 0]
  --level INTEGER          How much.  [default: 4; 0 to 9]
  timeout=NUMBER           [default: 1.0]

""")
    assert text.startswith("Usage: agents-tools call ")


def test_help_without_a_tool_lists_the_tools(run: Run) -> None:
    """Users ask for help before they know the names."""
    assert "pipeline      Parse a source, step by step." in run("call", "TOOLS", "--help").out
    assert "TARGET TOOL [NAME=VALUE]..." in run("call", "--help").out


def test_parameters_named_like_an_option_can_be_set(run: Run) -> None:
    """`timeout` is an option of `call` and a parameter of the tool."""
    told = run("call", "TOOLS", "echo", "timeout=7", "--json", "--timeout", "5").json
    assert told["value"]["timeout"] == 7
    told = run("call", "TOOLS", "echo", "--json", "--", "--timeout", "8").json
    assert told["value"]["timeout"] == 8


def test_list_show_and_version_have_json(run: Run) -> None:
    """Every command has `--json`."""
    listed = run("list", "TOOLS", "--json").json
    assert [tool["name"] for tool in listed][:2] == ["add", "echo"]
    shown = run("show", "TOOLS", "add", "--json").json
    assert shown["parameters"]["required"] == ["a"]
    assert shown["output"] == {"type": "integer"}
    assert set(run("version", "--json").json) == {"agents_tools", "python"}
    told = run("doctor", "--json").json
    assert set(told["extras"]) >= {"cli", "mcp"}
    sandbox = told["builtin"]["sandbox"]
    assert sandbox["strongest"] in {"bwrap", "landlock", "process"}
    assert sandbox["says"].endswith(".")
    assert "strongest level here" in " ".join(run("doctor").out.split())


def test_show_prints_all_details_of_a_tool(run: Run) -> None:
    """It shows the parameters with types, the result and the source location."""
    out = run("show", "TOOLS", "add").out
    for part in ("Add two numbers.", "a: integer", "[required]", "function", "tools_fixture.py:"):
        assert part in out
    assert "streaming tool" in run("show", "TOOLS", "pipeline").out


def test_schema_writes_the_form_of_a_provider(run: Run) -> None:
    """The printed schema is the one that is sent."""
    document = run("schema", "TOOLS", "add", "--provider", "openai_responses").json
    assert document == snapshot(
        {
            "type": "function",
            "name": "add",
            "description": "Add two numbers.",
            "parameters": {
                "properties": {
                    "a": {"type": "integer", "description": "The first."},
                    "b": {
                        "type": ["integer", "null"],
                        "description": "The second. (null: default 2)",
                    },
                },
                "required": ["a", "b"],
                "type": "object",
                "additionalProperties": False,
            },
            "strict": True,
        }
    )


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["lst", "x.py"], "Did you mean `agents-tools list`?"),
        (["tools.py"], "agents-tools list tools.py"),
        (["call"], "Help: agents-tools call --help"),
        (["call", "TOOLS", "ad"], "Did you mean 'add'?"),
        (["show", "TOOLS"], "Tools: add, "),
    ],
)
def test_usage_errors_have_a_remedy(args: list[str], hint: str, run: Run) -> None:
    """There is one message, one remedy, and exit code 2."""
    result = run(*args)
    assert result.code == 2
    assert hint in result.err
    assert result.out == ""


def test_commands_are_loaded_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command in the help exists and has its own help."""
    from agents_tools.cli import app

    for name in app._COMMANDS:
        assert main([name, "--help"]) == 0
        assert f"agents-tools {name}" in capsys.readouterr().out


def test_the_built_in_tools_are_a_target(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They work in the current directory, and report their sandbox level."""
    monkeypatch.chdir(tmp_path)
    listed = run("list", "builtin", "--json").json
    assert {tool["name"] for tool in listed} >= {"execute_bash", "str_replace_editor", "grep"}
    (tmp_path / "a.txt").write_text("an owl\n")
    assert "a.txt" in run("call", "builtin", "grep", "pattern=owl").out
    told = run("call", "builtin", "execute_bash", "command=pwd; cat a.txt", "--json").json
    assert told["value"]["content"][0]["text"] == f"{tmp_path.resolve()}\nan owl\n"
    assert told["value"]["sandbox"] in {"bwrap", "landlock", "process"}
