"""Skills: folders with instructions in a `SKILL.md` file, references and scripts.

```
pdf/
  SKILL.md              front matter with name and description, then the instructions
  references/forms.md   read on demand
  scripts/fill.py       run on demand
```

A skill is fixed when it is added: its instructions are read, and the digests of its scripts are
stored. A script that was changed or added later is not run until a person adds the skill again, so
a tool that can write to the folder cannot change what is executed. Store the folders outside of the
workspace. For folders inside of it, `SkillRegistry.protected` returns the names to protect in file
tools and sandboxes (`Workspace(protected=...)`, `Sandbox.start(protected=...)`);
`.agents_tools/skills` is protected by default.
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

from agents_tools.builtin.archive import MOST_BYTES, unpack
from agents_tools.builtin.front_matter import FrontMatterError, read_front_matter
from agents_tools.builtin.paths import PathNotAllowed, Root
from agents_tools.errors import UserKeyError, UserValueError
from agents_tools.text.escape import describe_value

__all__ = ["Skill", "SkillError", "SkillRegistry", "sort_by_similarity"]

logger = logging.getLogger("agents_tools.skills")

FILE_NAME = "SKILL.md"
SCRIPTS = "scripts"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MAX_DEPTH = 6
_MAX_FILES = 2_000
_MAX_TEXT_BYTES = 256 * 1024
_MAX_SCRIPT_BYTES = 64 * 1024 * 1024


class SkillError(UserValueError):
    """An invalid skill folder, or a name conflict between two skills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill as it was added; only its references are read later, on demand.

    Attributes:
        name: The name.
        description: The purpose of the skill and when to use it.
        path: The folder.
        instructions: The content of `SKILL.md` after its front matter.
        allowed_tools: The tools that the skill uses; not enforced.
        mcp_servers: The MCP servers of the skill, as in an `mcpServers` file. They are not started
            automatically: see `SkillRegistry.mcp_config`.
        metadata: The other fields of the front matter.
        scripts: The digest of each script by name, at the time when the skill was added.
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
        """The names of the references: all files except `SKILL.md` and the scripts."""
        with Root(self.path) as root:
            paths = _files(root, ".", skip=frozenset({SCRIPTS, FILE_NAME}))
            return [path.removeprefix("references/") for path in paths]

    def open_reference(self, name: str) -> int:
        """Open a reference.

        Args:
            name: A name in `references`.

        Returns:
            A descriptor; the caller closes it.

        Raises:
            PathNotAllowed: The name leads out of the folder.
            OSError: It cannot be read.
        """
        with Root(self.path) as root:
            try:
                return _open_file(root, f"references/{name}")
            except FileNotFoundError:
                return _open_file(root, name)

    def copy_scripts(self, target: Path) -> None:
        """Copy the scripts after verifying that they are unchanged since the skill was added.

        Args:
            target: An empty directory that only this program can write.

        Raises:
            SkillError: A script was changed, added or removed.
            OSError: A script cannot be read or copied.
        """
        with Root(self.path) as root:
            found = _digests(root, target)
        for name in sorted({*found, *self.scripts}):
            if found.get(name) != self.scripts.get(name):
                raise SkillError(
                    f"{SCRIPTS}/{name} of skill {self.name!r} has changed since the skill was "
                    "added, so none of its scripts is run. A person has to review it and add the "
                    "skill again."
                )


class SkillRegistry:
    """A collection of skills by name.

    Args:
        *paths: Folders to search for skills; see `discover`.

    Attributes:
        problems: The error messages of invalid skills.

    Raises:
        UserError: A folder does not exist.
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
        """Return whether a skill of this name exists."""
        return name in self._skills

    def __iter__(self) -> Iterator[Skill]:
        """Iterate over the skills in the order in which they were added."""
        return iter(list(self._skills.values()))

    def __getitem__(self, name: str) -> Skill:
        """Return a skill.

        Raises:
            UserKeyError: No skill has this name; the message lists the most similar names first.
        """
        skill = self._skills.get(name)
        if skill is None:
            raise UserKeyError(unknown_name_message("skill", name, self.names))
        return skill

    @property
    def names(self) -> list[str]:
        """The names of the skills, in the order they were added."""
        return list(self._skills)

    def get(self, name: str) -> Skill | None:
        """Return a skill, or `None`; `registry[name]` raises an error with the known names instead.

        Args:
            name: The name of the skill.
        """
        return self._skills.get(name)

    def add(self, path: str | os.PathLike[str], *, replace: bool = False) -> Skill:
        """Read a skill and add it.

        Args:
            path: The folder of the skill.
            replace: Whether to replace a skill of the same name, for example to accept changes.

        Returns:
            The skill.

        Raises:
            UserError: The folder is not a valid skill, or the name is in use.
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
        """Add all skills in a folder and its subfolders; links are not followed.

        Invalid skills are skipped, logged and added to `problems`.

        Args:
            directory: The folder.

        Returns:
            The skills that were added.

        Raises:
            UserError: The folder does not exist.
        """
        if not Path(directory).is_dir():
            raise UserValueError(
                f"The skill folder {os.fspath(directory)!r} does not exist. Create it, or pass "
                "the folder that contains the skills."
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

        Archives with links, devices, paths outside of the folder, names that differ only in case,
        or an unpacked size above 100 times the archive or `max_bytes` are rejected.

        Args:
            archive: A `.zip`, `.tar`, `.tar.gz` or `.tar.bz2` file with one or more skills.
            into: The target folder, which gets a subfolder for each skill; created if missing.
            max_bytes: The maximum total size of all files in bytes.

        Returns:
            The skills.

        Raises:
            UserError: The archive is rejected, contains no skill, or a name is in use.
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
        """Return the folders of skills inside a workspace, which tools must not write.

        Args:
            working_dir: The directory of the workspace.

        Returns:
            Paths relative to the workspace.
        """
        base = Path(os.path.realpath(working_dir)).parts
        folders = [skill.path.parts for skill in self]
        return tuple("/".join(p[len(base) :]) for p in folders if p[: len(base)] == base != p)

    def mcp_config(self, *names: str) -> dict[str, Any]:
        """Return the MCP servers of skills, as the content of an `mcpServers` file.

        The commands come from the authors of the skills. Start them only for skills that you
        trust, for example with `Agent(mcp_config=registry.mcp_config("pdf"))`.

        Args:
            *names: The names of the skills; all by default.

        Raises:
            UserError: A skill does not exist, or two skills define different servers of one name.
        """
        servers: dict[str, Any] = {}
        sources: dict[str, str] = {}
        for skill in [self[name] for name in names] if names else self:
            for name, server in skill.mcp_servers.items():
                if servers.setdefault(name, server) != server:
                    raise SkillError(
                        f"The skills {sources[name]!r} and {skill.name!r} define different MCP "
                        f"servers named {name!r}. Pass the names of the skills that you want."
                    )
                sources.setdefault(name, skill.name)
        return {"mcpServers": servers}

    def _check_new(self, skills: list[Skill], archive: Path, target: Path) -> None:
        if not skills:
            raise SkillError(f"There is no {FILE_NAME} in {archive.name}.")
        for skill in skills:
            key = skill.name.casefold()  # some file systems ignore the case of names
            is_duplicate = sum(other.name.casefold() == key for other in skills) > 1
            used = {
                name.casefold() for name in [*self.names, *(item.name for item in target.iterdir())]
            }
            if is_duplicate or key in used:
                raise SkillError(
                    f"The skill {skill.name!r} of {archive.name} exists already. Remove it first."
                )


def unknown_name_message(kind: str, name: str, available: list[str]) -> str:
    """Return the error message for an unknown name, with the available names."""
    if not available:
        return f"There is no {kind} {describe_value(name)}, and no other {kind} is available."
    names = sort_by_similarity(name, available)
    listed = ", ".join(names[:_MAX_LISTED]) + (" …" if len(names) > _MAX_LISTED else "")
    return f"There is no {kind} {describe_value(name)}. Available: {listed}."


_MAX_LISTED = 30


def sort_by_similarity(name: str, names: list[str]) -> list[str]:
    """Return names with those first that are similar to another name."""
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
    except (OSError, PathNotAllowed) as error:
        reason = getattr(error, "strerror", None) or error
        raise SkillError(
            f"{path} is not a valid skill: {FILE_NAME} or a script cannot be read: {reason}."
        ) from None


def _text_of(root: Root) -> str:
    with os.fdopen(_open_file(root, FILE_NAME), "rb") as file:
        content = file.read(_MAX_TEXT_BYTES + 1)
    if len(content) > _MAX_TEXT_BYTES:
        raise FrontMatterError(f"it is longer than {_MAX_TEXT_BYTES:,} bytes; use references")
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
        raise FrontMatterError("`description` is missing: describe the purpose of the skill")
    tools = _pop_first(fields, "allowed-tools", "allowed_tools")
    return Skill(
        name=name,
        description=description.strip(),
        path=path,
        instructions=instructions,
        allowed_tools=_tools(tools),
        mcp_servers=MappingProxyType(_servers(_pop_first(fields, "mcpServers", "mcp_servers"))),
        metadata=MappingProxyType(fields),
        scripts=MappingProxyType(scripts),
    )


def _pop_first(fields: dict[str, Any], *names: str) -> Any:
    """Remove a field with alternative names and return its value."""
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
    """Open a regular file for reading, without blocking on a pipe."""
    fd = root.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(2, "No such file", path)
    return fd


def _files(
    root: Root, directory: str, *, skip: frozenset[str] = frozenset(), strict: bool = False
) -> list[str]:
    """Return the sorted paths of the files in a directory, recursively.

    Hidden files and entries that are not regular files, such as pipes, links to directories and
    links out of the root, are skipped; with `strict` they raise an error.
    """
    found: list[str] = []
    pending = [(directory, 0)]
    while pending:
        current, depth = pending.pop()
        for name, is_directory in _entries(root, current):
            path = name if current == "." else f"{current}/{name}"
            if name == "__pycache__" or path in skip or (name.startswith(".") and not strict):
                continue
            if is_directory and depth < _MAX_DEPTH:
                pending.append((path, depth + 1))
            elif not is_directory and _is_file(root, path):
                found.append(path)
            elif strict:
                raise OSError(f"{path} is not a regular file, or is nested too deeply")
            if len(found) > _MAX_FILES:
                raise OSError(f"there are more than {_MAX_FILES:,} files")
    return sorted(found)


def _entries(root: Root, directory: str) -> list[tuple[str, bool]]:
    """Return the names in a directory and whether each is a directory; empty if it is missing."""
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
    except (OSError, PathNotAllowed):
        return False


def _digests(root: Root, copy_to: Path | None = None) -> dict[str, str]:
    """Return the digest of each script by name.

    Args:
        root: The folder of the skill.
        copy_to: A directory to which the digested bytes are copied.
    """
    digests: dict[str, str] = {}
    left = _MAX_SCRIPT_BYTES
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
        raise OSError(f"the scripts have more than {_MAX_SCRIPT_BYTES:,} bytes")
    return content, executable


def _folders(directory: Path) -> list[Path]:
    """Return the folders with a `SKILL.md` in a directory, outermost first and never nested."""
    found: list[Path] = []
    pending = [(directory, 0)]
    while pending:
        folder, depth = pending.pop(0)
        if (folder / FILE_NAME).is_file():
            found.append(folder)
        elif depth < _MAX_DEPTH:
            with os.scandir(folder) as entries:
                inner = sorted(
                    entry.name
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
                )
            pending += [(folder / name, depth + 1) for name in inner]
    return found
