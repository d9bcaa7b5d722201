"""Skills: folders with a `SKILL.md` that tells a model how to do something, and scripts for it.

```
pdf/
  SKILL.md              front matter with name and description, then the instructions
  references/forms.md   what is read when it is needed
  scripts/fill.py       what can be run
```

What a skill may do is settled when it is added: the instructions are read then, and its scripts are
remembered by their digests. One that has changed since, or that came later, is not run until a
person adds the skill again. So a tool that could write into the folder gains nothing by it. The
folders are best kept out of the workspace. For those inside of it, `SkillRegistry.protected` gives
the names that file tools and sandboxes are to be told (`Workspace(protected=...)`,
`Sandbox.start(protected=...)`); `.agents_tools/skills` is protected by default.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping  # noqa: TC003 - of fields
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from agents_tools._paths import PathRefused, Root
from agents_tools._text import describe_value
from agents_tools.builtin._archive import MOST_BYTES, unpack
from agents_tools.builtin._front_matter import FrontMatterError, read_front_matter
from agents_tools.errors import UserKeyError, UserValueError

__all__ = ["Skill", "SkillError", "SkillRegistry", "nearest_first"]

logger = logging.getLogger("agents_tools.skills")

FILE_NAME = "SKILL.md"
SCRIPTS = "scripts"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_DEEPEST = 6
_MOST_FILES = 2_000
_LONGEST_TEXT = 256 * 1024
_LARGEST_SCRIPTS = 64 * 1024 * 1024


class SkillError(UserValueError):
    """A folder that is no skill, or a skill that clashes with another; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """What is known of one skill; nothing of it is read again but references, when asked for.

    Attributes:
        name: What models call it.
        description: What it is for, and when to use it.
        path: Its folder.
        instructions: What `SKILL.md` says behind its front matter.
        allowed_tools: The tools it wants to use; advice, nothing is enforced.
        mcp_servers: The MCP servers it brings, as in an `mcpServers` file. None is started by
            itself: see `SkillRegistry.mcp_config`.
        metadata: The other fields of its front matter.
        scripts: What can be run, by name, with the digest of each file when it was added.
    """

    name: str
    description: str
    path: Path
    instructions: str = ""
    allowed_tools: tuple[str, ...] = ()
    mcp_servers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    scripts: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def references(self) -> list[str]:
        """The names of what can be read: all files but `SKILL.md` and the scripts."""
        with Root(self.path) as root:
            paths = _files(root, ".", skip=frozenset({SCRIPTS, FILE_NAME}))
            return [path.removeprefix("references/") for path in paths]

    def open_reference(self, name: str) -> int:
        """Open what can be read.

        Args:
            name: One of `references`.

        Returns:
            A descriptor; the caller closes it.

        Raises:
            PathRefused: The name leads out of the folder.
            OSError: It cannot be read.
        """
        with Root(self.path) as root:
            try:
                return _open_file(root, f"references/{name}")
            except FileNotFoundError:
                return _open_file(root, name)

    def copy_scripts(self, target: Path) -> None:
        """Copy the scripts as they were when the skill was added: what is run is what was seen.

        Args:
            target: An empty directory that only this program writes.

        Raises:
            SkillError: One has changed, has come or is gone since; it is named.
            OSError: They cannot be read, or not be copied.
        """
        with Root(self.path) as root:
            found = _digests(root, target)
        for name in sorted({*found, *self.scripts}):
            if found.get(name) != self.scripts.get(name):
                raise SkillError(
                    f"{SCRIPTS}/{name} of skill {self.name!r} is not what it was when the skill "
                    "was added, so no script of it is run. A person has to look at it, and to add "
                    "the skill again."
                )


class SkillRegistry:
    """The skills that a tool offers, by name.

    Args:
        *paths: Folders that skills are looked for in, as by `discover`.

    Attributes:
        problems: What was found and could not be used, as sentences.

    Raises:
        UserError: There is no such folder.
    """

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        self._skills: dict[str, Skill] = {}
        self.problems: list[str] = []
        for path in paths:
            self.discover(path)

    def __repr__(self) -> str:
        """Show the names."""
        return f"SkillRegistry({', '.join(self._skills)})"

    def __len__(self) -> int:
        """Count the skills."""
        return len(self._skills)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a skill of a name."""
        return name in self._skills

    def __iter__(self) -> Iterator[Skill]:
        """Go through the skills, in the order they were added."""
        return iter(list(self._skills.values()))

    def __getitem__(self, name: str) -> Skill:
        """Give a skill.

        Raises:
            UserKeyError: There is none of that name; those there are are listed, nearest first.
        """
        skill = self._skills.get(name)
        if skill is None:
            raise UserKeyError(unknown("skill", name, self.names))
        return skill

    @property
    def names(self) -> list[str]:
        """The names of the skills, in the order they were added."""
        return list(self._skills)

    def get(self, name: str) -> Skill | None:
        """Give a skill, or `None`; `registry[name]` says which there are instead.

        Args:
            name: The name of the skill.
        """
        return self._skills.get(name)

    def add(self, path: str | os.PathLike[str], *, replace: bool = False) -> Skill:
        """Read a skill and add it.

        Args:
            path: Its folder.
            replace: Whether it may take the place of one of the same name: also how to accept
                what has changed in it.

        Returns:
            The skill.

        Raises:
            UserError: The folder is no skill, or the name is taken.
        """
        skill = _read_skill(Path(path))
        known = self._skills.get(skill.name)
        if known is not None and not replace:
            raise SkillError(
                f"There are two skills named {skill.name!r}: {known.path} and {skill.path}. "
                "Rename one, or add it with replace=True."
            )
        self._skills[skill.name] = skill
        return skill

    def discover(self, directory: str | os.PathLike[str]) -> list[Skill]:
        """Add all skills of a folder: those in it and in its folders; links are not followed.

        One that cannot be used is left out: it is logged, and told of in `problems`.

        Args:
            directory: The folder.

        Returns:
            The skills that were added.

        Raises:
            UserError: There is no such folder.
        """
        if not Path(directory).is_dir():
            raise UserValueError(
                f"There is no folder {os.fspath(directory)!r} to look for skills in."
            )
        added: list[Skill] = []
        for folder in _folders(Path(directory)):
            try:
                added.append(self.add(folder))
            except SkillError as error:
                self.problems.append(str(error))
                logger.warning("%s", error)
        return added

    def add_archive(
        self,
        archive: str | os.PathLike[str],
        *,
        into: str | os.PathLike[str],
        max_bytes: int = MOST_BYTES,
    ) -> list[Skill]:
        """Unpack the skills of an archive and add them, all or none.

        Links, devices, paths that lead out, names that clash where case does not count and
        archives that unpack to far more than they are (100 times, or `max_bytes`) are refused.

        Args:
            archive: A `.zip`, `.tar`, `.tar.gz` or `.tar.bz2` with one skill or several.
            into: The folder that gets them, each in a folder of its name; it is made if missing.
            max_bytes: The most that all files may have together.

        Returns:
            The skills.

        Raises:
            UserError: The archive is refused, has no skill, or a name is taken.
        """
        target = Path(into)
        target.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target))
        try:
            unpacked = staging / "unpacked"
            unpacked.mkdir()
            unpack(Path(archive), unpacked, max_bytes=max_bytes)
            skills = [_read_skill(folder) for folder in _folders(unpacked)]
            self._check_new(skills, Path(archive), target)
            for skill in skills:
                skill.path.rename(target / skill.name)
            return [self.add(target / skill.name) for skill in skills]
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def protected(self, working_dir: str | os.PathLike[str]) -> tuple[str, ...]:
        """Give the folders of skills inside a workspace, which tools must not write.

        Args:
            working_dir: The directory of the workspace.

        Returns:
            Paths from there.
        """
        own = Path(os.path.realpath(working_dir)).parts
        folders = [skill.path.parts for skill in self]
        return tuple("/".join(p[len(own) :]) for p in folders if p[: len(own)] == own != p)

    def mcp_config(self, *names: str) -> dict[str, Any]:
        """Give the MCP servers that skills bring, as the content of an `mcpServers` file.

        They are commands of whoever wrote the skills: start them only for skills you trust, as
        with `Agent(mcp_config=registry.mcp_config("pdf"))`.

        Args:
            *names: The skills; all by default.

        Raises:
            UserError: There is no such skill, or two of them mean different servers by one name.
        """
        servers: dict[str, Any] = {}
        sources: dict[str, str] = {}
        for skill in [self[name] for name in names] if names else self:
            for name, server in skill.mcp_servers.items():
                if servers.setdefault(name, server) != server:
                    raise SkillError(
                        f"The skills {sources[name]!r} and {skill.name!r} bring different MCP "
                        f"servers of the name {name!r}. Name the skills you want."
                    )
                sources.setdefault(name, skill.name)
        return {"mcpServers": servers}

    def _check_new(self, skills: list[Skill], archive: Path, target: Path) -> None:
        if not skills:
            raise SkillError(f"There is no {FILE_NAME} in {archive.name}.")
        for skill in skills:
            own = skill.name.casefold()  # a folder whose case does not count has room for one
            twice = sum(other.name.casefold() == own for other in skills) > 1
            there = {
                name.casefold() for name in [*self.names, *(one.name for one in target.iterdir())]
            }
            if twice or own in there:
                raise SkillError(
                    f"The skill {skill.name!r} of {archive.name} is there already. Remove it first."
                )


def unknown(kind: str, name: str, there_are: list[str]) -> str:
    """Say that there is nothing of a name, and what there is instead."""
    if not there_are:
        return f"There is no {kind} {describe_value(name)}; there is none at all."
    listed = nearest_first(name, there_are)
    shown = ", ".join(listed[:_SHOWN]) + (" …" if len(listed) > _SHOWN else "")
    return f"There is no {kind} {describe_value(name)}. There is: {shown}."


_SHOWN = 30


def nearest_first(name: str, names: list[str]) -> list[str]:
    """Put the names first that are like another one."""
    from difflib import get_close_matches

    near = get_close_matches(name[:100], names, n=3, cutoff=0.5)
    return [*near, *(one for one in names if one not in near)]


# --- reading a folder


def _read_skill(path: Path) -> Skill:
    try:
        with Root(path) as root:
            fields, instructions = read_front_matter(_text_of(root))
            return _skill_of(root.path, fields, instructions, _digests(root))
    except FrontMatterError as error:
        raise SkillError(f"{path / FILE_NAME} cannot be read: {error}.") from None
    except (OSError, PathRefused) as error:
        why = getattr(error, "strerror", None) or error
        raise SkillError(f"{path} is no skill: {FILE_NAME} or a script: {why}.") from None


def _text_of(root: Root) -> str:
    with os.fdopen(_open_file(root, FILE_NAME), "rb") as file:
        content = file.read(_LONGEST_TEXT + 1)
    if len(content) > _LONGEST_TEXT:
        raise FrontMatterError(f"it is longer than {_LONGEST_TEXT:,} bytes; use references")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FrontMatterError(f"it is not UTF-8 at byte {error.start}") from None


def _skill_of(
    path: Path, fields: dict[str, Any], instructions: str, scripts: dict[str, str]
) -> Skill:
    name, description = fields.pop("name", None), fields.pop("description", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FrontMatterError(
            f"`name` is 1 to 64 letters, digits, `-`, `_` or `.`; it is {describe_value(name)}"
        )
    if not isinstance(description, str) or not description.strip():
        raise FrontMatterError("`description` is missing: say what the skill is for, and when")
    tools = _first(fields, "allowed-tools", "allowed_tools")
    return Skill(
        name=name,
        description=description.strip(),
        path=path,
        instructions=instructions,
        allowed_tools=_tools(tools),
        mcp_servers=MappingProxyType(_servers(_first(fields, "mcpServers", "mcp_servers"))),
        metadata=MappingProxyType(fields),
        scripts=MappingProxyType(scripts),
    )


def _first(fields: dict[str, Any], *names: str) -> Any:
    """Take a field out that has several names."""
    found = [fields.pop(name) for name in names if name in fields]
    return found[0] if found else None


def _tools(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):  # "Read, Bash(git add *)": blanks within brackets belong to a name
        return tuple(re.findall(r"(?:[^\s,()]|\([^()]*\))+", value))
    if isinstance(value, list) and all(isinstance(one, str) for one in cast("list[Any]", value)):
        return tuple(cast("list[str]", value))
    raise FrontMatterError("`allowed-tools` is a list of names, or text with commas")


def _servers(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    servers = cast("dict[str, Any]", value)
    if not isinstance(value, dict) or not all(isinstance(one, dict) for one in servers.values()):
        raise FrontMatterError("`mcpServers` holds a mapping for each server, by its name")
    return servers


def _open_file(root: Root, path: str) -> int:
    """Open a regular file to read it; a pipe is not waited for."""
    fd = root.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(2, "No such file", path)
    return fd


def _files(
    root: Root, directory: str, *, skip: frozenset[str] = frozenset(), strict: bool = False
) -> list[str]:
    """Give the paths of the files beneath a directory, in order.

    Hidden files, and what is no file (a link to a directory, a link that leads out, a pipe), are
    passed over, or refused if it is to be strict.
    """
    found: list[str] = []
    pending = [(directory, 0)]
    while pending:
        current, depth = pending.pop()
        for name, is_directory in _entries(root, current):
            path = name if current == "." else f"{current}/{name}"
            if name == "__pycache__" or path in skip or (name.startswith(".") and not strict):
                continue
            if is_directory and depth < _DEEPEST:
                pending.append((path, depth + 1))
            elif not is_directory and _is_file(root, path):
                found.append(path)
            elif strict:
                raise OSError(f"{path} is no regular file, or lies too deep")
            if len(found) > _MOST_FILES:
                raise OSError(f"there are more than {_MOST_FILES:,} files")
    return sorted(found)


def _entries(root: Root, directory: str) -> list[tuple[str, bool]]:
    """Give the names in a directory, and whether each is one itself; none if it is not there."""
    try:
        fd = root.open(directory, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except FileNotFoundError:
        return []
    try:
        with os.scandir(fd) as entries:
            return [(one.name, one.is_dir(follow_symlinks=False)) for one in entries]
    finally:
        os.close(fd)


def _is_file(root: Root, path: str) -> bool:
    try:
        return stat.S_ISREG(root.stat(path).st_mode)
    except (OSError, PathRefused):
        return False


def _digests(root: Root, copy_to: Path | None = None) -> dict[str, str]:
    """Give what is in the folder of scripts: each file with the digest of its content.

    Args:
        root: The folder of the skill.
        copy_to: Where the bytes that make up the digests are written as well.
    """
    digests: dict[str, str] = {}
    left = _LARGEST_SCRIPTS
    for path in _files(root, SCRIPTS, strict=True):
        name = path.removeprefix(f"{SCRIPTS}/")
        content, executable = _read_script(root, path, left)
        left -= len(content)
        mark = b"x" if executable else b"-"
        digests[name] = hashlib.sha256(mark + content).hexdigest()
        if copy_to is not None:
            copy = copy_to / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            copy.chmod(0o700 if executable else 0o600)
    return digests


def _read_script(root: Root, path: str, most: int) -> tuple[bytes, bool]:
    with os.fdopen(_open_file(root, path), "rb") as file:
        content = file.read(most + 1)
        executable = bool(os.fstat(file.fileno()).st_mode & 0o111)
    if len(content) > most:
        raise OSError(f"the scripts have more than {_LARGEST_SCRIPTS:,} bytes")
    return content, executable


def _folders(directory: Path) -> list[Path]:
    """Give the folders with a `SKILL.md` in a directory, outermost first; none is in another."""
    found: list[Path] = []
    pending = [(directory, 0)]
    while pending:
        folder, depth = pending.pop(0)
        if (folder / FILE_NAME).is_file():
            found.append(folder)
        elif depth < _DEEPEST:
            with os.scandir(folder) as entries:
                inner = sorted(
                    entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
                )
            pending += [(folder / name, depth + 1) for name in inner]
    return found
