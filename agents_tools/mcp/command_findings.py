"""Find unpinned versions and code in the command that starts a stdio server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING

from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["ConfigFinding", "findings_of_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFinding:
    """A warning about a configuration that works but is questionable.

    Attributes:
        code: The stable name of the rule: `unpinned` or `inline-code`.
        message: The problem and the remedy.
    """

    code: str
    message: str


def findings_of_command(command: str, args: Sequence[str]) -> tuple[ConfigFinding, ...]:
    """Return the warnings about the command of a server, without starting it.

    The check knows the usual ways to start a server. It is not a proof that a command is safe.

    Args:
        command: The program.
        args: The arguments of the program.
    """
    program, rest = _skip_wrappers([command, *args])
    if (option := _code_option(program, rest)) is not None:
        message = (
            f"{program} runs code from its arguments ({option}), which is easily overlooked: put "
            "it into a file, or start the server's program directly"
        )
        return (ConfigFinding(code="inline-code", message=message),)
    return tuple(
        ConfigFinding(
            code="unpinned",
            message=f"{launcher} uses {release_text(package, limit=200)!r} without a fixed "
            "version: pin a version that you have checked, such as "
            f"{release_text(pinned, limit=240)}",
        )
        for launcher, package, pinned in _unpinned(program, rest)
    )


def _skip_wrappers(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the program that a command starts, and its arguments."""
    program, rest = _program_name(words[0]), list(words[1:])
    while rest and program in {"cmd", "env", "sudo"}:
        _, rest = _options(rest, {"-u", "--unset", "--user", "-C", "--chdir"})
        rest = list(dropwhile(re.compile(r"/[a-zA-Z]$|\w+=").match, rest))
        program, rest = _program_name(rest[0]) if rest else program, rest[1:]
    return program, rest


def _program_name(command: str) -> str:
    """Return the name of a program without its directory, file extension and version."""
    name = re.sub(r"\.(exe|cmd|bat|ps1)$", "", PureWindowsPath(command).name.lower())
    return re.sub(r"^(python|pypy|php|ruby|perl)[\d.]+$", r"\1", name)


# --- code in the arguments

_SHELL = (re.compile(r"-[a-zA-Z]*c$"), {"-o", "-O", "-eo", "-euo"})
_PYTHON = (re.compile(r"-[a-zA-Z]*c"), {"-W", "-X"})
_NODE = (re.compile(r"-(e|p|pe)$|--(eval|print)\b"), {"-r", "--require", "--import", "--env-file"})
_SCRIPT = (re.compile(r"-[alnpwW]*[eE]$"), {"-I", "-r"})
_CODE_OPTIONS = {
    "python": _PYTHON,
    "pypy": _PYTHON,
    **dict.fromkeys(("node", "bun", "tsx"), _NODE),
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "fish"), _SHELL),
    **dict.fromkeys(("perl", "ruby", "lua", "osascript"), _SCRIPT),
    "php": (re.compile(r"-r$"), {"-c", "-d"}),
    "pwsh": (re.compile(r"(?i)-(c|command|e|ec|enc\w*)$"), {"-ExecutionPolicy"}),
    "npx": (re.compile(r"(-c|--call)\b"), {"-p", "--package"}),
}
"""The options that precede code, and the other options with values, by program."""
_CODE_OPTIONS["powershell"] = _CODE_OPTIONS["pwsh"]


def _code_option(program: str, args: list[str]) -> str | None:
    """Return the option with which an interpreter runs code from its arguments."""
    pattern, valued = _CODE_OPTIONS.get(program, (None, frozenset[str]()))
    if pattern is None:
        return None
    options, _ = _options(args, valued | {"-m"})
    before_module = [name for name, _ in options[: _index_of("-m", options)]]
    found = next((match for name in before_module if (match := pattern.match(name))), None)
    return None if found is None else found[0]


def _index_of(name: str, options: list[tuple[str, str]]) -> int:
    return next((n for n, option in enumerate(options) if option[0] == name), len(options))


def _options(
    args: list[str], valued: frozenset[str] | set[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the leading options with their values, and the remaining arguments."""
    options: list[tuple[str, str]] = []
    rest = list(args)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        name, equals, value = rest.pop(0).partition("=")
        if name == "--":
            break
        if not equals and name in valued and rest:
            value = rest.pop(0)
        options.append((name, value))
    return options, rest


# --- versions

_EXACT_NPM = re.compile(r"@[^@/]+/.+@\d+\.\d+\.\d+\S*|[^@]+@\d+\.\d+\.\d+\S*")
_EXACT_PYTHON = re.compile(r"[^@=<>~!]+(===?|@)v?\d[\w.!+]*(;.*)?")
_COMMIT = re.compile(r".*[@#][0-9a-f]{7,64}(#.*)?")
_LOCAL = re.compile(r"([.~]|/|[A-Za-z]:[\\/]|file:|https?:|localhost/)|.*\.(tgz|whl|gz)$")
_NPM_VALUES = frozenset({"-p", "--package", "--registry", "--cache", "--prefix", "-w"})
_PYTHON_VALUES = frozenset({
    "--from", "--spec", "--with", "-w", "-p", "--python", "--index", "--index-url", "-i",
    "--directory", "--project", "--env-file", "-c", "--constraints", "--exclude-newer",
})  # fmt: skip


def _unpinned(program: str, args: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the launcher, a package without an exact version, and an example with a version."""
    words = (program, *args)
    for launcher, unpinned in _LAUNCHERS.items():
        if words[: len(launcher)] == launcher:
            for package, pinned in unpinned(list(words[len(launcher) :])):
                yield " ".join(launcher), package, pinned


def _npm(args: list[str]) -> Iterator[tuple[str, str]]:
    options, rest = _options(args, _NPM_VALUES)
    names = {name for name, _ in options}
    if names & {"--no", "--no-install", "--offline"}:
        return
    packages = [value for name, value in options if name in {"-p", "--package"}]
    for package in packages or rest[:1]:
        if not package or any(one.fullmatch(package) for one in (_COMMIT, _EXACT_NPM)):
            continue
        if _LOCAL.match(package):
            continue
        is_repository = re.match(r"[\w.-]+/|\w+[:+]", package)
        name = package.partition("#")[0] if is_repository else re.sub(r"(?<=.)@.*", "", package)
        yield package, f"{name}#<commit>" if is_repository else f"{name}@1.2.3"


def _python(args: list[str]) -> Iterator[tuple[str, str]]:
    options, rest = _options(args, _PYTHON_VALUES)
    names = {name for name, _ in options}
    if names & {"--offline", "--exclude-newer", "-c", "--constraints"}:
        return
    packages = [value for name, value in options if name in {"--from", "--spec"}] or rest[:1]
    packages += [value for name, value in options if name in {"-w", "--with"}]
    for package in packages:
        if not package or _COMMIT.fullmatch(package) or _EXACT_PYTHON.fullmatch(package):
            continue
        if package.startswith("git+"):
            yield package, f"{re.sub(r'(?<=[^/:])@[^@/:]*$', '', package)}@<commit>"
        elif not _LOCAL.match(package):
            yield package, f"{re.split(r'[=<>!~@; ]', package)[0]}==1.2.3"


_RUN_FLAG = re.compile(r"-[ditPq]+|--(rm|init|detach|interactive|tty|privileged|read-only|quiet)")
"""Matches the options of `docker run` that have no value."""


def _image(args: list[str]) -> Iterator[tuple[str, str]]:
    rest = list(args)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--pull=never" or (option == "--pull" and rest[:1] == ["never"]):
            return
        if "=" not in option and not _RUN_FLAG.fullmatch(option):
            rest = rest[1:]
    for image in rest[:1]:
        repository, colon, tag = image.rpartition(":")
        has_tag = bool(colon) and "/" not in tag
        if not _LOCAL.match(image) and "@" not in image and not (has_tag and tag != "latest"):
            yield image, f"{repository if has_tag else image}@sha256:<digest>"


_LAUNCHERS: dict[tuple[str, ...], Callable[[list[str]], Iterator[tuple[str, str]]]] = {
    ("npx",): _npm,
    ("bunx",): _npm,
    ("npm", "exec"): _npm,
    ("pnpm", "dlx"): _npm,
    ("yarn", "dlx"): _npm,
    ("uvx",): _python,
    ("uv", "tool", "run"): _python,
    ("pipx", "run"): _python,
    ("docker", "run"): _image,
    ("podman", "run"): _image,
}
"""The words that start a package or an image."""
