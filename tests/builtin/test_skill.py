"""`use_skill`: reading skills, running their scripts, and staying inside their folders."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import os
import stat
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st
from inline_snapshot import snapshot

from agents_tools import NotifyStreamEvent, UserError, create_default_registry, listen
from agents_tools.builtin import Sandbox, SkillAction, SkillObservation, SkillRegistry, SkillTool
from agents_tools.builtin.front_matter import FrontMatterError, read_front_matter
from agents_tools.builtin.paths import ConfinedWorkspace, PathNotAllowed
from agents_tools.builtin.skill import SkillError
from agents_tools.mcp.config import load_config
from tests.waiting import BOUND, until

ECHO = "import json, os, sys\nprint(json.dumps([sys.argv[1:], os.getcwd()]))\n"


def write_skill(folder: Path, name: str = "pdf", *, more: str = "", **scripts: str) -> Path:
    """Write a skill with a reference and scripts; `__` in a name stands for a dot."""
    place = folder / name
    (place / "references").mkdir(parents=True)
    (place / "scripts").mkdir()
    (place / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: Works on {name} files.\n{more}---\n\n# How\n\nLike this.\n"
    )
    (place / "references" / "forms.md").write_text("Forms are filled.\n")
    for script, content in scripts.items():
        (place / "scripts" / script.replace("__", ".")).write_text(content)
    return place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two skills; the first has a script that prints its arguments."""
    write_skill(tmp_path / "skills", echo__py=ECHO)
    write_skill(tmp_path / "skills", "csv")
    (tmp_path / "work").mkdir()
    return tmp_path / "skills"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make(folder: Path, **options: Any) -> SkillTool:
    options.setdefault("working_dir", folder.parent / "work")
    return SkillTool.create(skill_registry=SkillRegistry(folder), **options)[0]


def run(tool: SkillTool, script: str, args: str | list[str] | None = None) -> SkillObservation:
    return tool(
        SkillAction(action="run_script", skill_name="pdf", script_name=script, script_args=args)
    )


def arguments_of(seen: SkillObservation) -> Any:
    assert seen.exit_code == 0, seen.text
    return json.loads(seen.text.splitlines()[0])[0]


# --- output for the model


@pytest.mark.requirement("C24", "B19")
def test_the_tool_definition_for_models(folder: Path) -> None:
    """The specified schema, and a line for each skill."""
    tool = make(folder).as_function_tool()
    schema = tool.params_json_schema
    assert list(schema["properties"]) == [
        "action",
        "skill_name",
        "reference_name",
        "script_name",
        "script_args",
    ]
    assert schema["properties"]["action"]["enum"] == ["get_info", "get_reference", "run_script"]
    assert schema["required"] == ["action", "skill_name"]
    assert tool.name == "use_skill"
    assert tool.description.endswith(
        "Skills:\n- csv: Works on csv files.\n- pdf: Works on pdf files."
    )
    assert tool.annotations is not None
    assert (tool.annotations.read_only, tool.annotations.destructive) == (False, True)


@pytest.mark.requirement("C24")
async def test_info_and_references(folder: Path) -> None:
    """A model reads only the files that it needs."""
    tool = make(folder).as_function_tool()
    outcome = await tool.call(None, '{"action": "get_info", "skill_name": "pdf"}')
    assert str(outcome.output).replace(str(folder), "…") == snapshot("""\
# pdf
Works on pdf files.
Folder: …/pdf
References: forms.md
Scripts: echo.py

# How

Like this.\
""")
    for name in ("forms.md", "forms", "references/forms.md", "./references/forms.md"):
        asked = {"action": "get_reference", "skill_name": "pdf", "reference_name": name}
        outcome = await tool.call(None, json.dumps(asked))
        assert (outcome.status, outcome.output) == ("ok", "Forms are filled.\n"), name


@pytest.mark.requirement("C24")
def test_an_unknown_name_lists_the_available_ones(folder: Path) -> None:
    """The nearest name comes first."""
    tool = make(folder)
    texts = [
        tool(SkillAction(action="get_info", skill_name="pdfs")).text,
        tool(SkillAction(action="get_reference", skill_name="pdf", reference_name="form")).text,
        tool(SkillAction(action="get_reference", skill_name="pdf")).text,
        run(tool, "ecko.py").text,
        tool(SkillAction(action="run_script", skill_name="csv", script_name="x")).text,
    ]
    assert texts == snapshot(
        [
            'There is no skill "pdfs". Available: pdf, csv.',
            'There is no reference "form". Available: forms.md.',
            "reference_name is missing. Available: forms.md.",
            'There is no script "ecko.py". Available: echo.py.',
            'There is no script "x", and no other script is available.',
        ]
    )


@pytest.mark.requirement("S8", "S9")
@pytest.mark.parametrize(
    "name",
    [
        "../csv/SKILL.md",
        "references/../../csv/SKILL.md",
        "../../../../etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "forms.md\0",
        "",
        ".",
        "..",
        "a" * 5_000,
        "SKILL.md",
        ".env",
        "out",
        "outside.md",
        "pipe.md",
        "..\\csv\\SKILL.md",
        "\udcff",
    ],
)
def test_names_cannot_lead_out_of_a_skill(folder: Path, name: str) -> None:
    """Paths and links are refused; hidden files are not shown, and pipes do not block."""
    place = folder / "pdf" / "references"
    (place / "outside.md").symlink_to("/etc/passwd")
    (place / "out").symlink_to("/etc")
    (folder / "pdf" / ".env").write_text("SECRET")
    os.mkfifo(place / "pipe.md")
    tool = make(folder)
    for kind in ("reference", "script"):
        asked: dict[str, Any] = {f"{kind}_name": name}
        action = "get_reference" if kind == "reference" else "run_script"
        seen = tool(SkillAction.model_construct(action=action, skill_name="pdf", **asked))
        assert seen.is_error
        assert "root:" not in seen.text
        assert "SECRET" not in seen.text


@pytest.mark.requirement("C24")
def test_long_and_binary_references(folder: Path) -> None:
    """The output is bounded, and a note states it."""
    (folder / "pdf" / "references" / "long.md").write_text("x" * 5_000)
    (folder / "pdf" / "references" / "image.png").write_bytes(b"\x89PNG\0\0")
    tool = make(folder, max_output=1_000)
    asked = SkillAction(action="get_reference", skill_name="pdf", reference_name="long")
    seen = tool(asked)
    assert seen.truncated
    assert len(seen.text) < 1_400
    assert "Only the first 1,000 characters of long.md are shown" in seen.text
    seen = tool(asked.model_copy(update={"reference_name": "image.png"}))
    assert seen.is_error
    assert "is not a text file" in seen.text


# --- scripts


HOSTILE = [
    "; rm -rf {0}",
    "$(touch {0})",
    "`touch {0}`",
    "a && touch {0}",
    "| tee {0}",
    "> {0}",
    "it's",
    '"quoted"',
    "$HOME",
    "*",
    "~",
    "a\nb",
    "\\",
    "",
    "-c",
    "--help",
    "ü☃",
]


@pytest.mark.requirement("C25", "S7")
@pytest.mark.parametrize("text", HOSTILE)
def test_arguments_are_passed_unchanged(folder: Path, text: str) -> None:
    """There is no shell, and no argument is an option of the interpreter."""
    victim = folder.parent / "victim"
    text = text.format(victim)
    assert arguments_of(run(make(folder), "echo.py", [text, "last"])) == [text, "last"]
    assert not victim.exists()
    assert (folder / "pdf").is_dir()


@pytest.mark.requirement("C24", "C25")
def test_arguments_in_one_string_are_split_at_spaces(folder: Path) -> None:
    """Quotes group words; all other characters are plain text."""
    tool = make(folder)
    seen = run(tool, "echo", "a 'b c' \"d e\" ; rm -rf $(pwd) `id` # x > y")
    assert arguments_of(seen) == [
        *("a", "b c", "d e", ";", "rm", "-rf", "$(pwd)", "`id`", "#", "x", ">", "y")
    ]
    assert arguments_of(run(tool, "echo", None)) == []
    assert arguments_of(run(tool, "echo", "")) == []
    assert "Close the quotes" in run(tool, "echo", "it's").text
    assert "NUL" in run(tool, "echo", ["a\0b"]).text
    assert "cannot be started" in run(tool, "echo", ["a" * 3_000_000]).text


@pytest.mark.requirement("C25")
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))))
def test_shell_scripts_get_the_same_arguments(words: list[str]) -> None:
    """Arguments do not depend on the interpreter."""
    folder = _shared()
    seen = run(make(folder), "args.sh", words)
    assert seen.exit_code == 0
    path = folder.parent / "work" / "args"
    assert path.read_bytes().split(b"\0")[:-1] == [word.encode() for word in words]


_made: list[Any] = []


def _shared() -> Path:
    import tempfile

    if not _made:
        holder = tempfile.TemporaryDirectory()
        _made.append(holder)
        root = Path(holder.name)
        (root / "work").mkdir()
        script = ': > args\nfor one in "$@"; do printf "%s\\0" "$one" >> args; done\n'
        write_skill(root / "skills", args__sh=script)
    return Path(_made[0].name) / "skills"


@pytest.mark.requirement("C25")
@pytest.mark.parametrize(
    ("name", "content", "executable", "message"),
    [
        ("a.py", "import sys; print(sys.executable)", False, sys.executable),
        (
            "noext",
            "#!/usr/bin/env python3\nimport sys; print(sys.executable)",
            False,
            sys.executable,
        ),
        ("b.sh", 'echo "$0" | tail -c 5', False, "b.sh"),
        ("c", "#!/bin/sh -e\nfalse\necho on", False, "[Exit code 1.]"),
        ("d", "#!/bin/sh\necho run", True, "run"),
        ("e.txt", "hello", False, "cannot be run: it needs a first line"),
        ("f", "#!/no/such/interpreter\n", False, "program '/no/such/interpreter' was not found"),
        ("g.py", "import sys; sys.exit(3)", False, "[Exit code 3.]"),
        ("h.py", "import sys; print('o'); print('e', file=sys.stderr)", False, "e"),
        ("i.py", "import sys; print(repr(sys.stdin.read()))", False, "''"),
    ],
)
def test_the_interpreter_of_a_script(
    tmp_path: Path, name: str, content: str, executable: bool, message: str
) -> None:
    """The shebang, the suffix, or the file itself decides; the exit status is reported."""
    place = write_skill(tmp_path / "skills") / "scripts" / name
    place.write_text(content)
    place.chmod(0o755 if executable else 0o644)
    (tmp_path / "work").mkdir()
    seen = run(make(tmp_path / "skills"), name)
    assert message in seen.text, seen.text
    assert seen.is_error == (seen.exit_code != 0)


@pytest.mark.requirement("C25", "S12")
def test_the_directory_and_environment_of_scripts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They start in the working directory, get no secrets, and leave no compiled files."""
    monkeypatch.setenv("MY_API_KEY", "sk-1")
    (folder / "pdf" / "scripts" / "lib.py").write_text("x = 1\n")
    (folder / "pdf" / "scripts" / "env.py").write_text(
        "import lib, os; print(os.getcwd(), os.environ['SKILL_DIR'], 'MY_API_KEY' in os.environ)"
    )
    work = folder.parent / "work"
    seen = run(make(folder), "env.py")
    assert seen.text.splitlines()[0] == f"{work} {folder / 'pdf'} False"
    assert names_in(folder / "pdf" / "scripts") == ["echo.py", "env.py", "lib.py"]
    state = SimpleNamespace(workspace=SimpleNamespace(working_dir=str(work)))
    tool = SkillTool.create(state, skills_dir=folder)[0]
    assert run(tool, "env.py").text.startswith(f"{work} ")


@pytest.mark.requirement("C25")
def test_a_timeout_ends_a_script_with_its_children(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    script = "sleep 1000 &\nsetsid sleep 1000 &\necho $! > pid\necho started\nsleep 1000\n"
    write_skill(tmp_path / "skills", slow__sh=script)
    seen = run(make(tmp_path / "skills", timeout=3.0), "slow.sh")
    assert (seen.timed_out, seen.exit_code, seen.is_error) == (True, None, True)
    assert "started" in seen.text
    assert "longer than 3 s" in seen.text
    pid = (tmp_path / "work" / "pid").read_text().strip()
    until(lambda: not _alive(pid))


@pytest.mark.requirement("C25")
def test_background_processes_of_a_script_do_not_block_the_call(tmp_path: Path) -> None:
    """A daemon can keep the output pipe open."""
    (tmp_path / "work").mkdir()
    script = "setsid sleep 1000 &\necho $! > pid\necho done\n"
    write_skill(tmp_path / "skills", daemon__sh=script)
    seen = run(make(tmp_path / "skills"), "daemon.sh")
    assert (seen.exit_code, seen.text) == (0, "done\n[Exit code 0.]")
    pid = (tmp_path / "work" / "pid").read_text().strip()
    until(lambda: not _alive(pid))


def _alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.requirement("C25")
def test_much_output_is_bounded(tmp_path: Path) -> None:
    """The beginning and the end are kept."""
    (tmp_path / "work").mkdir()
    script = "print('first'); print('é' * 3_000_000); print('last')"
    write_skill(tmp_path / "skills", much__py=script)
    seen = run(make(tmp_path / "skills", max_output=1_000), "much.py")
    assert seen.truncated
    assert len(seen.text) < 1_200
    assert seen.text.startswith("first\né")
    assert seen.text.endswith("é\nlast\n[Exit code 0.]")
    assert "2,999,0" in seen.text


@pytest.mark.requirement("C25")
async def test_output_is_streamed_while_the_script_runs(tmp_path: Path) -> None:
    """The script only continues after its first line was read."""
    work = tmp_path / "work"
    work.mkdir()
    script = "echo first\nwhile [ ! -e seen ]; do sleep 0.01; done\necho second\n"
    write_skill(tmp_path / "skills", live__sh=script)
    tool = make(tmp_path / "skills").as_function_tool()
    asked = {"action": "run_script", "skill_name": "pdf", "script_name": "live.sh"}
    with listen() as events:
        call = asyncio.create_task(tool.call(None, json.dumps(asked)))
        async with asyncio.timeout(BOUND):
            async for event in events:
                if isinstance(event, NotifyStreamEvent):
                    assert event.data == "first\n"
                    break
            (work / "seen").touch()
            outcome = await call
    assert outcome.output == "first\nsecond\n[Exit code 0.]"


@pytest.mark.requirement("C25")
async def test_a_cancelled_call_ends_only_its_own_script(tmp_path: Path) -> None:
    """Two calls share the executor."""
    work = tmp_path / "work"
    work.mkdir()
    script = "echo $$ > $1\nwhile [ ! -e go ]; do sleep 0.01; done\necho over\n"
    write_skill(tmp_path / "skills", wait__sh=script)
    tool = make(tmp_path / "skills").as_function_tool()

    def call(name: str) -> asyncio.Task[Any]:
        asked = {"action": "run_script", "skill_name": "pdf", "script_name": "wait.sh"}
        return asyncio.create_task(tool.call(None, json.dumps({**asked, "script_args": [name]})))

    one, other = call("one"), call("other")
    async with asyncio.timeout(BOUND):
        for file in (work / "one", work / "other"):  # created first, written next
            await asyncio.to_thread(until, lambda file=file: file.exists() and file.read_text())
        pid = (work / "one").read_text().strip()
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        await asyncio.to_thread(until, lambda: not _alive(pid))
        (work / "go").touch()
        assert (await other).output == "over\n[Exit code 0.]"


@pytest.mark.requirement("C25")
def test_closing_ends_running_scripts(tmp_path: Path) -> None:
    """The call returns."""
    (tmp_path / "work").mkdir()
    write_skill(tmp_path / "skills", wait__sh="echo here > here\nsleep 1000\n")
    tool = make(tmp_path / "skills")
    seen: list[SkillObservation] = []
    thread = threading.Thread(target=lambda: seen.append(run(tool, "wait.sh")))
    thread.start()
    until((tmp_path / "work" / "here").exists)
    tool.close()
    thread.join(BOUND)
    assert "was stopped" in seen[0].text


class ClosedMeanwhile(Sandbox):
    """Starts a script, and closes the tool before anybody knows of it."""

    def start(self, *args: Any, **options: Any) -> Any:
        running = super().start(*args, **options)
        TOOLS.pop().close()
        return running


TOOLS: list[SkillTool] = []
"""What `ClosedMeanwhile` is to close: sandboxes are copied, and are the same only in their kind."""


@pytest.mark.requirement("C25")
def test_closing_ends_a_script_that_is_being_started(tmp_path: Path) -> None:
    """A script that `close` misses would run until its timeout."""
    (tmp_path / "work").mkdir()
    write_skill(tmp_path / "skills", wait__sh="sleep 1000\n")
    tool = make(tmp_path / "skills", sandbox=ClosedMeanwhile())
    TOOLS.append(tool)
    seen = run(tool, "wait.sh")
    assert "was stopped" in seen.text
    assert not seen.timed_out
    again = run(tool, "wait.sh")
    assert again.is_error
    assert again.text == "Scripts cannot be run: this tool is closed."


# --- protection


@pytest.mark.requirement("S12")
def test_a_modified_script_is_not_run(folder: Path) -> None:
    """This includes new scripts and imported modules; a user must add the skill again."""
    registry = SkillRegistry(folder)
    tool = SkillTool.create(skill_registry=registry, working_dir=folder.parent / "work")[0]
    scripts = folder / "pdf" / "scripts"
    assert run(tool, "echo.py").exit_code == 0
    (scripts / "json.py").write_text("raise SystemExit('owned')")
    seen = run(tool, "echo.py")
    assert seen.is_error
    assert "scripts/json.py of skill 'pdf' has changed since" in seen.text
    assert "There is no script" in run(tool, "json.py").text
    (scripts / "json.py").unlink()
    (scripts / "json").symlink_to(folder.parent)  # a package, as Python sees it
    assert run(tool, "echo.py").is_error
    (scripts / "json").unlink()
    (scripts / "echo.py").write_text("print('other')")
    assert "scripts/echo.py" in run(tool, "echo.py").text
    registry.add(folder / "pdf", replace=True)
    assert run(tool, "echo.py").text == "other\n[Exit code 0.]"


@pytest.mark.requirement("S12")
def test_skills_are_read_only_for_file_tools(tmp_path: Path) -> None:
    """Skills in the workspace can be read but not written."""
    write_skill(tmp_path / "my" / "skills")
    registry = SkillRegistry(tmp_path / "my" / "skills")
    assert registry.protected(tmp_path) == ("my/skills/pdf",)
    assert registry.protected(tmp_path / "my" / "skills" / "pdf") == ()
    assert registry.protected("/nowhere") == ()
    with ConfinedWorkspace(tmp_path, protected=registry.protected(tmp_path)) as workspace:
        for path in ("my/skills/pdf/scripts/new.py", "my/skills/pdf/SKILL.md"):
            with pytest.raises(PathNotAllowed):
                workspace.open_writable_parent(workspace.locate(path))


@pytest.mark.requirement("S12")
@pytest.mark.external("bwrap")
def test_a_confined_script_cannot_write_its_own_skill(tmp_path: Path) -> None:
    """This holds even if the skill is within its writable directories."""
    script = (
        "import os\n"
        "for name in ('SKILL.md', 'scripts/new.py'):\n"
        "    try:\n"
        "        open(os.path.join(os.environ['SKILL_DIR'], name), 'w').close(); print('wrote')\n"
        "    except OSError as error:\n"
        "        print(error.strerror)\n"
        "open('out', 'w').close()\n"
    )
    write_skill(tmp_path / "skills", bad__py=script)
    tool = make(tmp_path / "skills", working_dir=tmp_path, sandbox=Sandbox(level="required:bwrap"))
    seen = run(tool, "bad.py")
    assert seen.exit_code == 0, seen.text
    assert "wrote" not in seen.text
    assert (tmp_path / "out").exists()


@pytest.mark.requirement("C25")
def test_an_unavailable_sandbox_is_reported(folder: Path) -> None:
    """A script never runs with less confinement than requested."""
    with pytest.raises(UserError):
        make(folder, sandbox=Sandbox(level="required:moat"))


# --- the registry


@pytest.mark.requirement("C18")
def test_a_default_registry_with_skills_has_their_tool(folder: Path) -> None:
    """Without skills the tool would have no use."""
    with create_default_registry(SkillRegistry(folder)) as registry:
        assert "use_skill" in registry.get_tool_names()
    with create_default_registry() as registry:
        assert "use_skill" not in registry.get_tool_names()


@pytest.mark.requirement("C24")
def test_finding_skills(tmp_path: Path) -> None:
    """Invalid skills are reported, and do not stop the others."""
    write_skill(tmp_path / "a" / "deep", "one")
    write_skill(tmp_path, "two")
    write_skill(tmp_path / "two" / "references", "inside")
    write_skill(tmp_path / "z", "two")
    write_skill(tmp_path / ".hidden", "three")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SKILL.md").write_text("---\nname: [\n---\n")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    registry = SkillRegistry(tmp_path)
    assert sorted(registry.names) == ["one", "two"]
    assert len(registry) == 2
    assert "one" in registry
    assert registry.get("three") is None
    assert [skill.name for skill in registry] == registry.names
    assert len(registry.problems) == 2
    assert "broken" in registry.problems[0]
    assert "two skills named 'two'" in registry.problems[1]
    with pytest.raises(KeyError, match=r"Available: one, two|Available: two, one"):
        registry["on"]
    with pytest.raises(UserError, match="does not exist"):
        registry.discover(tmp_path / "none")


@pytest.mark.requirement("C24")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no front matter", "line 1"),
        ("---\nname: a\n", "is missing"),
        ("---\ndescription: b\n---\n", "`name` is 1 to 64"),
        ("---\nname: ../b\ndescription: b\n---\n", "`name` is 1 to 64"),
        ("---\nname: 7\ndescription: b\n---\n", "`name` is 1 to 64"),
        ("---\nname: a\n---\n", "`description` is missing"),
        ("---\nname: a\ndescription: b\nallowed-tools: {a: 1}\n---\n", "`allowed-tools`"),
        ("---\nname: a\ndescription: b\nmcpServers: [x]\n---\n", "`mcpServers`"),
        ("---\nname: a\ndescription: b\n---\n" + "x" * 300_000, "longer than"),
        (b"---\nname: a\ndescription: \xff\n---\n", "not UTF-8 at byte"),
    ],
)
def test_an_invalid_skill_is_reported(tmp_path: Path, content: str | bytes, message: str) -> None:
    """The message names the file and the problem."""
    data = content.encode() if isinstance(content, str) else content
    (tmp_path / "SKILL.md").write_bytes(data)
    with pytest.raises(SkillError, match=message) as raised:
        SkillRegistry().add(tmp_path)
    assert "SKILL.md" in str(raised.value)


@pytest.mark.requirement("S9")
def test_a_pipe_in_place_of_a_skill_does_not_block(tmp_path: Path) -> None:
    """A link that leads out is not followed either."""
    os.mkfifo(tmp_path / "SKILL.md")
    with pytest.raises(SkillError):
        SkillRegistry().add(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "SKILL.md").symlink_to("/etc/passwd")
    with pytest.raises(SkillError, match="outside"):
        SkillRegistry().add(tmp_path / "in")
    with pytest.raises(UserError):
        SkillRegistry().add(tmp_path / "none")


@pytest.mark.requirement("B93")
def test_skills_can_declare_mcp_servers(tmp_path: Path) -> None:
    """Only the application can start them."""
    more = (
        "allowed-tools: Read, Bash(git add *) Write\n"
        "license: MIT\n"
        "mcpServers:\n"
        "  search:\n"
        "    command: python\n"
        '    args: ["-m", server]\n'
        "    env: {KEY: value}\n"
    )
    write_skill(tmp_path, more=more)
    write_skill(tmp_path, "other", more="mcpServers:\n  search: {command: evil}\n")
    registry = SkillRegistry(tmp_path)
    skill = registry["pdf"]
    assert skill.allowed_tools == ("Read", "Bash(git add *)", "Write")
    assert dict(skill.metadata) == {"license": "MIT"}
    config = registry.mcp_config("pdf")
    assert config == {
        "mcpServers": {
            "search": {"command": "python", "args": ["-m", "server"], "env": {"KEY": "value"}}
        }
    }
    assert load_config(config)
    with pytest.raises(SkillError, match="different MCP servers named 'search'"):
        registry.mcp_config()


@pytest.mark.requirement("C24")
def test_parameters(folder: Path) -> None:
    """Invalid values are reported when the tool is created."""
    wrongs: list[dict[str, Any]] = [
        {},
        {"skills_dir": folder, "skill_registry": SkillRegistry()},
        {"dir": folder},
    ]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="SkillTool"):
            SkillTool.create(**wrong)
    with pytest.raises(ValueError, match="above 0"):
        make(folder, timeout=0)
    assert (
        "There are no skills yet."
        in SkillTool.create(skill_registry=SkillRegistry())[0].description
    )


# --- front matter


@pytest.mark.requirement("B93")
@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: [x, 'y z', \"q\\n\", {c: d, e: [1, 2]}]\n",
        "a: >-\n  one\n  two\n\n  three\n    more\n  four\nb: |\n  x\n   y\n\nc: |+\n  z\n\n",
        "a:\n- x\n- y: 1\n  z: 2\n-   - n\n    - m\nb:\n  c:\n    d: {}\n",
        "a: some text\n  goes on\n\n  and on # not this\nb: it's # nor this\n",
        "# first\na: 'it''s'\n\n# more\nb: \"two\n  lines\"\nc: [a,\n  b, # c\n  d]\n",
        'a: true\nb: null\nc: ~\nd:\ne: -3\nf: 1.5\n"g h": x\n',
        "a: http://x/y:z#w\nb: C#\nc: a - b\n",
        "a:\n  text below\nb: |2\n   x\n",
        "",
    ],
)
def test_front_matter_is_read_as_yaml(text: str) -> None:
    """JSON values are parsed as YAML parses them."""
    assert read_front_matter(f"---\n{text}---\nbody\n") == (yaml.safe_load(text) or {}, "body")


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text("ab :#-'\"\\,[]{}é\n|>", max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.requirement("B93")
@given(
    st.dictionaries(st.text("abcxyz", min_size=1, max_size=5), _VALUES, min_size=1, max_size=4),
    st.booleans(),
)
def test_output_of_pyyaml_is_read(fields: dict[str, Any], flow: bool) -> None:
    """Both the block style and the flow style."""
    text = yaml.safe_dump(fields, default_flow_style=flow, allow_unicode=True, width=10_000)
    if flow:
        text, fields = f"top: {text}", {"top": fields}
    if "? " in text or "..." in text:
        return  # complex keys, and the end of a document
    assert read_front_matter(f"---\n{text}---\n")[0] == fields


@pytest.mark.requirement("B93")
@given(st.text("ab:- \n\t#'\"[]{},|>&*!\\01", max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Files of third parties must not crash the parser."""
    with contextlib.suppress(FrontMatterError):
        read_front_matter(f"---\n{text}\n---\n")


@pytest.mark.requirement("B93")
@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x",
        "a: !!python/object:os.system x",
        "a: 1\na: 2",
        "a: {b: 1, b: 2}",
        "a: [1",
        "a: 'x",
        "a: " + "[" * 500,
        "\ta: 1",
        "a: 1\n   b: 2",
        "- a",
        "<<: {a: 1}",
        'a: "\\x"',
        "a: [1] 2",
        "a: | x",
        "a: b: c",
    ],
)
def test_values_that_are_not_json_are_refused(text: str) -> None:
    """The message names the line."""
    with pytest.raises(FrontMatterError, match="line "):
        read_front_matter(f"---\n{text}\n---\n")


@pytest.mark.requirement("B93")
def test_front_matter_of_any_editor_is_read() -> None:
    """A byte order mark, Windows line ends, and `no` as a string."""
    text = "\ufeff---\r\na: b\r\nc: no\r\nd: 2026-11-21\r\n---\r\nbody\r\n"
    assert read_front_matter(text) == ({"a": "b", "c": "no", "d": "2026-11-21"}, "body")
    with pytest.raises(FrontMatterError, match=r"line 3: a text that contains a colon .* quoted"):
        read_front_matter("---\na: b\ndescription: Use when: a file is a PDF\n---\n")


@pytest.mark.requirement("B93")
def test_a_missing_pyyaml_is_reported_with_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UserError, match=r"agents-tools\[skills\]"):
        SkillRegistry(folder)


# --- archives

SKILL = b"---\nname: new\ndescription: d\n---\nbody\n"


def zipped(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content, zipfile.ZIP_DEFLATED)
    return path


def tarred(path: Path, *members: tuple[str | tarfile.TarInfo, bytes], mode: Any = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            if info.isreg():
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def zip_info(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def tar_info(name: str, kind: bytes, **facts: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for fact, value in facts.items():
        setattr(info, fact, value)
    return info


@pytest.mark.requirement("S30")
@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.bz2"])
@pytest.mark.parametrize("prefix", ["", "new-1.0/", "./a/b/"])
def test_a_skill_is_extracted_from_an_archive(tmp_path: Path, kind: str, prefix: str) -> None:
    """It can be in a subdirectory; of the file modes, only the executable bit is kept."""
    archive = tmp_path / f"x.{kind}"
    script = f"{prefix}scripts/run.sh"
    if kind == "zip":
        script_info: Any = zip_info(script, stat.S_IFREG | 0o6777)
        zipped(archive, (f"{prefix}SKILL.md", SKILL), (script_info, b"echo hi"))
    else:
        mode = {"tar": "w", "tar.gz": "w:gz", "tar.bz2": "w:bz2"}[kind]
        script_info = tar_info(script, tarfile.REGTYPE, mode=0o6777, uid=12345)
        tarred(archive, (f"{prefix}SKILL.md", SKILL), (script_info, b"echo hi"), mode=mode)
    registry = SkillRegistry()
    [skill] = registry.add_archive(archive, into=tmp_path / "skills")
    assert skill.path == tmp_path / "skills" / "new"
    assert registry.names == ["new"]
    assert names_in(tmp_path / "skills") == ["new"]
    assert list(skill.scripts) == ["run.sh"]
    mode_now = (skill.path / "scripts" / "run.sh").stat().st_mode
    assert mode_now & 0o7777 & ~0o111 == 0o644
    assert mode_now & 0o100
    with pytest.raises(SkillError, match="exists already"):
        SkillRegistry().add_archive(archive, into=tmp_path / "skills")


def _hostile() -> Iterable[Any]:
    bad_names = [
        "../evil",
        "a/../../evil",
        "/evil",
        "//evil",
        "C:\\evil",
        "..\\evil",
        "a\\b",
        "CON:",
        "a\nb",
        "a\u202eb",
        "x. ",
        "n" * 300,
        "/".join("d" * 60),
    ]
    for name in bad_names:
        yield pytest.param("zip", [(name, b"x")], id=f"zip-{name[:12]!a}")
        yield pytest.param("tar", [(name, b"x")], id=f"tar-{name[:12]!a}")
    for first, second in (("a", "A"), ("a", "a"), ("é", "e\u0301"), ("d/x", "D/y"), ("a", "a/b")):
        members = [(first, b"1"), (second, b"2")]
        yield pytest.param("tar", members, id=f"clash-{first!a}-{second!a}")
    for kind in (
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
    ):
        members = [(tar_info("evil", kind, linkname="/etc/passwd"), b"")]
        yield pytest.param("tar", members, id=f"tar-type-{kind!a}")
    for mode in (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK):
        yield pytest.param("zip", [(zip_info("evil", mode | 0o777), b"/etc")], id=f"zip-{mode:o}")
    bomb = [("bomb", bytes(20_000_000))]
    yield pytest.param("zip", bomb, id="zip-bomb")
    yield pytest.param("tar", bomb, id="tar-bomb")
    many = [(f"f{number}", b"") for number in range(2_100)]
    yield pytest.param("zip", many, id="zip-many")
    yield pytest.param("tar", many, id="tar-many")


@pytest.mark.requirement("S30")
@pytest.mark.parametrize(("kind", "members"), list(_hostile()))
def test_hostile_archives_extract_no_file(tmp_path: Path, kind: str, members: list[Any]) -> None:
    """Paths that lead out, links, devices, conflicts, bombs; and no partial extraction."""
    into = tmp_path / "in" / "skills"
    archive = tmp_path / "x"
    make_it: Any = zipped if kind == "zip" else tarred
    make_it(archive, ("SKILL.md", SKILL), *members)
    registry = SkillRegistry()
    with pytest.raises(UserError):
        registry.add_archive(archive, into=into)
    assert names_in(into) == []
    assert names_in(tmp_path / "in") == ["skills"]
    assert names_in(tmp_path) == ["in", "x"]
    assert not registry.names


@pytest.mark.requirement("S30")
def test_an_archive_cannot_write_through_its_own_link(tmp_path: Path) -> None:
    """The link comes first, then a file through it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tar_info("a", tarfile.SYMTYPE, linkname=str(outside))
    archive = tarred(tmp_path / "x.tar.gz", ("SKILL.md", SKILL), (link, b""), ("a/evil", b"x"))
    with pytest.raises(UserError, match="a link or a device"):
        SkillRegistry().add_archive(archive, into=tmp_path / "skills")
    assert names_in(outside) == []


@pytest.mark.requirement("S30")
def test_archive_bombs_are_limited_by_their_real_output(tmp_path: Path) -> None:
    """A header can report a wrong size, or be the bomb itself."""
    archive = zipped(tmp_path / "x.zip", ("SKILL.md", SKILL), ("bomb", bytes(5_000_000)))
    data = archive.read_bytes().replace(
        (5_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    )
    archive.write_bytes(data)
    with pytest.raises(UserError):
        SkillRegistry().add_archive(archive, into=tmp_path / "skills")
    header = tar_info("././@PaxHeader", tarfile.XHDTYPE, size=400_000_000)
    packed = tmp_path / "y.tar.gz"
    with gzip.open(packed, "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(130):
            file.write(bytes(1 << 20))
    with pytest.raises(UserError, match="more bytes than allowed"):
        SkillRegistry().add_archive(packed, into=tmp_path / "skills", max_bytes=10_000_000)
    with pytest.raises(UserError, match="larger than 10 bytes"):
        SkillRegistry().add_archive(packed, into=tmp_path / "skills", max_bytes=10)
    assert names_in(tmp_path / "skills") == []


@pytest.mark.requirement("S30")
@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04 no", b"\x1f\x8b no", b"BZh no", b"x"])
def test_a_file_that_is_not_an_archive(tmp_path: Path, content: bytes) -> None:
    """The message names the file."""
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(UserError, match=r"x\.zip"):
        SkillRegistry().add_archive(tmp_path / "x.zip", into=tmp_path / "skills")
    with pytest.raises(UserError, match="No such file"):
        SkillRegistry().add_archive(tmp_path / "none", into=tmp_path / "skills")


@pytest.mark.requirement("S30")
def test_archives_without_a_skill_or_with_several(tmp_path: Path) -> None:
    """All skills of an archive are extracted, or none."""
    other = SKILL.replace(b"new", b"other")
    archive = zipped(tmp_path / "two.zip", ("a/SKILL.md", SKILL), ("b/SKILL.md", other))
    registry = SkillRegistry()
    assert [skill.name for skill in registry.add_archive(archive, into=tmp_path / "s")] == [
        *("new", "other")
    ]
    archive = zipped(tmp_path / "twice.zip", ("a/SKILL.md", SKILL), ("b/SKILL.md", SKILL))
    with pytest.raises(UserError, match="exists already"):
        SkillRegistry().add_archive(archive, into=tmp_path / "t")
    archive = zipped(tmp_path / "none.zip", ("README.md", b"x"))
    with pytest.raises(UserError, match=r"There is no SKILL\.md"):
        SkillRegistry().add_archive(archive, into=tmp_path / "t")
    assert names_in(tmp_path / "t") == []


@pytest.mark.requirement("S10", "S12")
def test_a_script_runs_as_it_was_added_or_not_at_all(tmp_path: Path) -> None:
    """The script is replaced again and again during the calls."""
    write_skill(tmp_path / "skills", swap__sh="echo seen\n")
    script = tmp_path / "skills" / "pdf" / "scripts" / "swap.sh"
    seen, other = script.read_bytes(), b"echo other\n"
    tool = make(tmp_path / "skills", working_dir=tmp_path)
    over = threading.Event()

    def swap() -> None:
        beside = script.parent.parent / "beside"
        while not over.is_set():
            for content in (other, seen):
                beside.write_bytes(content)
                beside.chmod(script.stat().st_mode)
                beside.replace(script)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        answers = [run_or_refusal(tool, "swap.sh") for _ in range(60)]
    finally:
        over.set()
        swapper.join()
    assert not [answer for answer in answers if "other" in answer]
    script.write_bytes(seen)
    assert run(tool, "swap.sh").text == "seen\n[Exit code 0.]"


def run_or_refusal(tool: SkillTool, script: str) -> str:
    try:
        return run(tool, script).text
    except SkillError as error:
        return f"refused: {error}"
