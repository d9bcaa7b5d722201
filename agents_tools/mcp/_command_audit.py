"""Audit the command of a stdio server for unpinned versions and code in the arguments."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
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

    Args:
        command: The program.
        args: The arguments of the program.
    """
    return tuple(_audit([command, *args]))


def _audit(words: Sequence[str]) -> Iterator[ConfigFinding]:
    if not words:
        return
    program, rest = _name_of(words[0]), list(words[1:])
    if program in _INTERPRETERS:
        yield from _interpreter_findings(program, rest, _INTERPRETERS[program])
    elif (audit := _LAUNCHERS.get(program)) is not None:
        yield from audit(program, rest)


def _name_of(command: str) -> str:
    """Return the name of a program without its directory, file extension and version."""
    name = re.sub(r"\.(exe|cmd|bat|ps1)$", "", PureWindowsPath(command).name.lower())
    return re.sub(r"^(python|pypy|node|php|lua|ruby|perl)-?[\d.]+t?$", r"\1", name)


# --- parsing of arguments


@dataclass(frozen=True, slots=True)
class _CommandOptions:
    """The options of a program that have values, to find the first argument.

    Attributes:
        values: The options whose value is the next argument.
        flags: The options without a value. If set, every other option has a value.
    """

    values: frozenset[str] = frozenset()
    flags: frozenset[str] | None = None

    def takes_value(self, option: str) -> bool:
        return option in self.values if self.flags is None else option not in self.flags


def _read(args: Sequence[str], known: _CommandOptions) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the leading options with their values, and the remaining arguments."""
    options: list[tuple[str, str]] = []
    position = 0
    while position < len(args):
        word = args[position]
        position += 1
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            position -= 1
            break
        for name, value in _split(word, known):
            argument = value
            if argument is None and known.takes_value(name):
                argument = args[position] if position < len(args) else ""
                position += 1
            options.append((name, argument or ""))
    return options, list(args[position:])


def _split(word: str, known: _CommandOptions) -> list[tuple[str, str | None]]:
    """Return the options in one argument: `--name=value`, or letters such as `-it`.

    For a letter that has a value, the rest of the argument is the value.
    """
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return [(name, value if equals else None)]
    options: list[tuple[str, str | None]] = []
    for number, letter in enumerate(word[1:], 2):
        rest = word[number:]
        if rest and known.takes_value(f"-{letter}"):
            return [*options, (f"-{letter}", rest.removeprefix("="))]
        options.append((f"-{letter}", None))
    return options


def _options(text: str) -> _CommandOptions:
    return _CommandOptions(frozenset(text.split()))


# --- code in the arguments


@dataclass(frozen=True, slots=True)
class _Interpreter:
    """The options with which an interpreter runs code from the command line.

    Attributes:
        code: The options that are followed by code.
        options: The options that have values, to find the first argument.
        ends: The options after which the arguments belong to a script or module.
        subcommand: A subcommand that is followed by code, such as `eval`.
    """

    code: frozenset[str]
    options: _CommandOptions = _CommandOptions()
    ends: frozenset[str] = frozenset()
    subcommand: str = ""


def _interpreter(code: str, values: str = "", ends: str = "", subcommand: str = "") -> _Interpreter:
    return _Interpreter(
        frozenset(code.split()),
        _options(f"{code} {values} {ends}"),
        frozenset(ends.split()),
        subcommand,
    )


_SHELL = _interpreter("-c", "-o -O +o +O --rcfile --init-file")
_NODE = _interpreter(
    "-e --eval -p --print",
    "-r --require --import --loader --experimental-loader -C --conditions --env-file --title",
)
_INTERPRETERS = {
    "python": _interpreter("-c", "-W -X --check-hash-based-pycs", "-m"),
    "node": _NODE,
    "bun": _NODE,
    "tsx": _NODE,
    "ts-node": _NODE,
    "deno": _interpreter("", subcommand="eval"),
    "perl": _interpreter("-e -E", "-I -M -m -F"),
    "ruby": _interpreter("-e", "-I -r -C -E"),
    "php": _interpreter("-r -B -R -E", "-c -d -t -z -F", "-f -S"),
    "lua": _interpreter("-e", "-l"),
    "rscript": _interpreter("-e"),
    "osascript": _interpreter("-e", "-l -s"),
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "fish"), _SHELL),
    "pypy": _interpreter("-c", "-W -X", "-m"),
}
_INTERPRETERS["py"] = _INTERPRETERS["python"]


def _interpreter_findings(
    program: str, args: list[str], interpreter: _Interpreter
) -> Iterator[ConfigFinding]:
    if program == "bun" and args[:1] == ["x"]:
        yield from _npm("bunx", args[1:])
        return
    options, rest = _read(args, interpreter.options)
    for name, _ in options:
        if name in interpreter.ends:
            return
        if name in interpreter.code:
            yield _inline_code(program, name)
            return
    if interpreter.subcommand and rest[:1] == [interpreter.subcommand]:
        yield _inline_code(program, interpreter.subcommand)
    if program == "deno" and rest[:1] == ["run"]:
        _, rest = _read(rest[1:], _options("-c --config --import-map -L --log-level --env-file"))
        if rest and rest[0].startswith("npm:"):
            yield from _npm_package("deno run", rest[0].removeprefix("npm:"))


def _inline_code(program: str, argument: str) -> ConfigFinding:
    return ConfigFinding(
        code="inline-code",
        message=f"{program} runs code from its arguments ({argument}), which is easily "
        "overlooked: put it into a file, or start the server's program directly",
    )


def _powershell(program: str, args: list[str]) -> Iterator[ConfigFinding]:
    """Audit PowerShell, whose options can be abbreviated and are case-insensitive."""
    position = 0
    while position < len(args) and args[position][:1] in {"-", "/"}:
        option = args[position][1:].lower()
        if option and "file".startswith(option):
            return
        encoded = option in {"e", "ec"} or (
            option[:2] == "en" and "encodedcommand".startswith(option)
        )
        if encoded or (option and "command".startswith(option)):
            yield _inline_code(program, args[position])
            return
        position += 1 if any(one.startswith(option) for one in _POWERSHELL_FLAGS) else 2
    if position < len(args) and program == "powershell" and not _is_script(args[position]):
        yield _inline_code(program, args[position])


_POWERSHELL_FLAGS = ("nologo", "noexit", "noprofile", "noninteractive", "sta", "mta", "login")


def _is_script(word: str) -> bool:
    return word.lower().endswith(".ps1")


# --- programs that start other programs


def _cmd(program: str, args: list[str]) -> Iterator[ConfigFinding]:
    """Audit the command that the Windows shell starts: `cmd /c npx ...` is common."""
    del program
    for number, word in enumerate(args):
        if word.lower() in {"/c", "/k"}:
            rest = args[number + 1 :]
            if len(rest) == 1 and " " in rest[0]:
                rest = rest[0].split()
            yield from _audit(rest)
            return


def _env(program: str, args: list[str]) -> Iterator[ConfigFinding]:
    del program
    options, rest = _read(args, _options("-u --unset -C --chdir -S --split-string"))
    for name, value in options:
        if name in {"-S", "--split-string"}:
            try:
                rest = [*shlex.split(value), *rest]
            except ValueError:
                return
    while rest and re.match(r"\w+=", rest[0]):
        rest = rest[1:]
    yield from _audit(rest)


def _wrapper(
    values: str = "", words: int = 0
) -> Callable[[str, list[str]], Iterator[ConfigFinding]]:
    """Return an audit for a program that starts the command in its arguments."""
    known = _options(values)

    def audit(program: str, args: list[str]) -> Iterator[ConfigFinding]:
        del program
        yield from _audit(_read(args, known)[1][words:])

    return audit


# --- npm

_NPM_OPTIONS = _options(
    "-p --package -c --call -w --workspace --registry --cache --prefix --loglevel --userconfig "
    "--node-options --shell -C --dir"
)
_EXACT = re.compile(r"[v=]?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")


def _npm(program: str, args: list[str]) -> Iterator[ConfigFinding]:
    options, rest = _read(args, _NPM_OPTIONS)
    names = {name for name, _ in options}
    calls = names & {"-c", "--call"}
    if calls:
        yield _inline_code(program, min(calls))
    if names & {"--no-install", "--no", "--offline"}:
        return
    packages = [value for name, value in options if name in {"-p", "--package"}]
    for package in packages or ([] if calls else rest[:1]):
        yield from _npm_package(program, package)


def _npm_package(program: str, package: str) -> Iterator[ConfigFinding]:
    if not package or _is_local(package) or re.match(r"https?://", package):
        return
    if re.match(r"(git[+:@]|github:|gitlab:|bitbucket:|gist:|ssh:)|[\w.-]+/[\w.-]+(#|$)", package):
        if not _COMMIT.fullmatch(package.partition("#")[2]):
            yield _unpinned(program, package, f"{package.partition('#')[0]}#<commit>")
        return
    name, _, version = package[1:].partition("@")
    name = package[0] + name
    if version.startswith("npm:"):
        yield from _npm_package(program, version.removeprefix("npm:"))
    elif not _EXACT.fullmatch(version):
        yield _unpinned(program, package, f"{name}@1.2.3")


def _of_subcommand(
    *words: str, then: Callable[[str, list[str]], Iterator[ConfigFinding]]
) -> Callable[[str, list[str]], Iterator[ConfigFinding]]:
    """Return an audit for certain subcommands of a program."""

    def audit(program: str, args: list[str]) -> Iterator[ConfigFinding]:
        _, rest = _read(args, _options("-C --dir --prefix --cwd --registry --loglevel"))
        if rest and rest[0] in words:
            yield from then(f"{program} {rest[0]}", rest[1:])

    return audit


# --- Python

_UV_OPTIONS = _options(
    "--from -w --with --with-editable --with-requirements -p --python --index --default-index -i "
    "--index-url --extra-index-url -f --find-links --cache-dir --directory --project --color "
    "--config-file --env-file -c --constraints --constraint --overrides --override -b "
    "--build-constraints --build-constraint --refresh-package --reinstall-package "
    "--upgrade-package -P --prerelease --resolution --index-strategy --keyring-provider "
    "--link-mode --exclude-newer --config-setting -C --no-binary-package --no-build-package "
    "--no-build-isolation-package --python-platform --torch-backend --allow-insecure-host "
    "--fork-strategy --extra --no-extra --group --no-group --only-group --package -m --module "
    "--python-preference --malware-check"
)
_PIPX_OPTIONS = _options("--spec --python --pip-args -i --index-url --with --suffix --backend")


def _uv(program: str, args: list[str]) -> Iterator[ConfigFinding]:
    _, rest = _read(args, _UV_OPTIONS)
    if rest[:2] == ["tool", "run"]:
        yield from _uvx(f"{program} tool run", rest[2:])
    elif rest[:1] == ["run"]:
        yield from _uv_run(f"{program} run", rest[1:])
    elif rest[:1] == ["x"]:
        yield from _uvx(f"{program} x", rest[1:])


def _uvx(program: str, args: list[str]) -> Iterator[ConfigFinding]:
    options, rest = _read(args, _UV_OPTIONS)
    yield from _python_packages(program, options, rest, "--from")


def _uv_run(program: str, args: list[str]) -> Iterator[ConfigFinding]:
    """Audit `uv run`, which can install packages, and starts a command."""
    options, rest = _read(args, _UV_OPTIONS)
    yield from _python_packages(program, options, [], "--from")
    if not any(name in {"-m", "--module"} for name, _ in options):
        yield from _audit(rest)


def _pipx(program: str, args: list[str]) -> Iterator[ConfigFinding]:
    options, rest = _read(args, _PIPX_OPTIONS)
    yield from _python_packages(program, options, rest, "--spec")


def _python_packages(
    program: str, options: list[tuple[str, str]], rest: list[str], source: str
) -> Iterator[ConfigFinding]:
    names = {name for name, _ in options}
    if names & {"--exclude-newer", "--offline"} or (
        not program.startswith("pipx") and names & {"-c", "--constraints", "--constraint"}
    ):
        return
    packages = [value for name, value in options if name == source] or rest[:1]
    more = [value for name, value in options if name in {"-w", "--with"}]
    for package in (*packages, *(one for value in more for one in value.split(","))):
        yield from _python_package(program, package)


def _python_package(program: str, package: str) -> Iterator[ConfigFinding]:
    spec = package.split(";", maxsplit=1)[0].strip()
    if not spec or _is_local(spec) or re.search(r"^(https?|file):|@\s*(https?|file):", spec):
        return
    if "git+" in spec:
        source = spec.partition("#")[0]
        if not _COMMIT.fullmatch(source.rpartition("@")[2]):
            bare = re.sub(r"(?<=[^/:])@[^@/:]*$", "", source)
            yield _unpinned(program, package, f"{bare}@<commit>")
        return
    name = re.split(r"[\s=<>!~@]", spec, maxsplit=1)[0]
    pinned = re.search(r"===?\s*[\w.!+-]+\s*(,|$)", spec) or re.fullmatch(
        r"[^@]+@v?\d[\w.!+]*", spec
    )
    if not pinned:
        yield _unpinned(program, package, f"{name}==1.2.3")


# --- containers

_FLAGS_OF_RUN = """
    -d --detach -i --interactive -t --tty --rm --init --privileged -P --publish-all --read-only
    --no-healthcheck --oom-kill-disable --sig-proxy --disable-content-trust -q --quiet --help
    --use-api-socket --replace --rmi --tls-verify --no-hosts --no-hostname --env-host --http-proxy
    --passwd --unsetenv-all
"""
_RUN_FLAGS = _CommandOptions(flags=frozenset(_FLAGS_OF_RUN.split()))
_DOCKER_OPTIONS = _options(
    "--context -c -H --host --config -l --log-level --tlscacert --tlscert --tlskey --connection "
    "--url --identity --root --runroot --storage-driver -n --namespace -a --address"
)


def _docker(program: str, args: list[str]) -> Iterator[ConfigFinding]:
    _, rest = _read(args, _DOCKER_OPTIONS)
    if rest[:1] == ["container"]:
        rest = rest[1:]
    if rest[:1] not in (["run"], ["create"]):
        return
    options, rest = _read(rest[1:], _RUN_FLAGS)
    if ("--pull", "never") in options or not rest:
        return
    image = rest[0]
    name, _, digest = image.partition("@")
    repository, colon, tag = name.rpartition(":")
    if digest or (colon and "/" not in tag and tag != "latest"):
        return
    if name.startswith("localhost/"):  # built on this machine
        return
    bare = repository if colon and "/" not in tag else name
    yield _unpinned(f"{program} run", image, f"{bare}@sha256:<digest>")


# --- shared functions


def _is_local(package: str) -> bool:
    """Return whether a package is a file or directory on this machine."""
    return bool(
        re.match(r"([.~]|/|[A-Za-z]:[\\/]|file:)", package)
        or re.search(r"\.(tgz|tar\.gz|whl)$", package)
    ) and not re.match(r"(https?|git\+)", package)


def _unpinned(program: str, package: str, pinned: str) -> ConfigFinding:
    return ConfigFinding(
        code="unpinned",
        message=f"{program} uses {release_text(package, limit=200)!r} without a fixed version: "
        f"pin a version that you have checked, such as {release_text(pinned, limit=240)}",
    )


_LAUNCHERS: dict[str, Callable[[str, list[str]], Iterator[ConfigFinding]]] = {
    "npx": _npm,
    "pnpx": _npm,
    "bunx": _npm,
    "npm": _of_subcommand("exec", "x", then=_npm),
    "pnpm": _of_subcommand("dlx", then=_npm),
    "yarn": _of_subcommand("dlx", then=_npm),
    "uvx": _uvx,
    "uv": _uv,
    "pipx": _of_subcommand("run", then=_pipx),
    "docker": _docker,
    "podman": _docker,
    "nerdctl": _docker,
    "cmd": _cmd,
    "powershell": _powershell,
    "pwsh": _powershell,
    "env": _env,
    "sudo": _wrapper("-u --user -g --group -h --host -p --prompt -C -D --chdir"),
    "nohup": _wrapper(),
    "exec": _wrapper(),
    "nice": _wrapper("-n --adjustment"),
    "timeout": _wrapper("-k --kill-after -s --signal", words=1),
}
