"""The stored logins of MCP servers: one private file for each server."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

from agents_tools.errors import UserError
from agents_tools.mcp.pins import write_atomically
from agents_tools.persistence.user_folders import state_folder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

__all__ = ["LoginRecord", "LoginStore", "LoginStoreBusyError"]

logger = logging.getLogger("agents_tools.mcp")

LoginRecord: TypeAlias = dict[str, Any]
"""The content of a file: `server`, `tokens`, `client_id` (of the client that has the tokens),
`expires_at`, `client` (that has registered itself), `authorization_server` and `resource`."""

VERSION = 1
"""The version of the files."""
_MAX_SIZE = 1 << 20
"""The maximum size of a file, in bytes."""
_POLL = 0.05
"""Seconds between two attempts to get a lock that another process holds."""
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600
_OTHERS = 0o077
"""The permissions of other users."""


class LoginStoreBusyError(Exception):
    """Another process has held the lock for too long."""


class LoginStore:
    """The stored login of one server.

    Only the user can read the file. Symbolic links in its place are not followed, and a file or
    folder of another user is refused.

    Args:
        url: The URL of the server.
        folder: The folder of the files; by default one in the user's folder for program state.
    """

    def __init__(self, url: str, folder: str | os.PathLike[str] | None = None) -> None:
        self.server = _canonical(url)
        chosen = state_folder() / "mcp-logins" if folder is None else Path(folder).expanduser()
        self._folder = chosen
        name = hashlib.sha256(self.server.encode()).hexdigest()[:32]
        self.path = chosen / f"{name}.json"
        self._lock_path = chosen / f"{name}.lock"

    def load(self) -> LoginRecord:
        """Return the stored login; an empty one if there is none, or if the file is broken."""
        try:
            text = self._read()
            content: Any = json.loads(text) if text else None
        except (OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or "it is not JSON"
            self._warn(reason)
            return {}
        if content is None:
            return {}
        record = cast("LoginRecord", content) if isinstance(content, dict) else {}
        if record.get("version") != VERSION or record.get("server") != self.server:
            self._warn("it has another format")
            return {}
        return record

    def save(self, record: LoginRecord) -> None:
        """Replace the stored login.

        Raises:
            UserError: The file cannot be written.
        """
        content = {**record, "version": VERSION, "server": self.server}
        try:
            self._check_folder()
            write_atomically(self.path, json.dumps(content, indent=1), mode=_PRIVATE_FILE)
        except OSError as error:
            raise UserError(
                f"The login to {self.server} cannot be stored in {self._folder}: "
                f"{error.strerror or error}. Make the folder writable, or pass another one: "
                "OAuth(storage=...)."
            ) from error

    def delete(self) -> bool:
        """Delete the stored login; return whether there was one.

        Raises:
            UserError: The file cannot be deleted.
        """
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise UserError(
                f"The stored login {self.path} cannot be deleted: {error.strerror}."
            ) from error
        return True

    @contextlib.asynccontextmanager
    async def locked(self, seconds: float) -> AsyncGenerator[None]:
        """Keep other processes, and other connections of this one, from changing the login.

        Args:
            seconds: The longest wait for the lock.

        Raises:
            LoginStoreBusyError: The lock was not free in time.
            UserError: The lock file cannot be opened.
        """
        try:
            self._check_folder()
            descriptor = os.open(
                self._lock_path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, _PRIVATE_FILE
            )
        except OSError as error:
            raise UserError(
                f"The folder of logins {self._folder} cannot be used: {error.strerror or error}. "
                "Pass another one: OAuth(storage=...)."
            ) from error
        try:
            try:
                async with asyncio.timeout(seconds):
                    while not _try_lock(descriptor):  # noqa: ASYNC110 - it has no event
                        await asyncio.sleep(_POLL)
            except TimeoutError:
                raise LoginStoreBusyError from None
            yield
        finally:
            os.close(descriptor)  # this releases the lock

    def _read(self) -> str:
        try:
            flags = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0)
            descriptor = os.open(self.path, flags)
        except FileNotFoundError:
            return ""
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise OSError(None, "it is not a file")
            _check_owner(facts)
            if sys.platform != "win32" and facts.st_mode & _OTHERS:
                os.fchmod(file.fileno(), _PRIVATE_FILE)
            content = file.read(_MAX_SIZE + 1)
        if len(content) > _MAX_SIZE:
            raise OSError(None, f"it is longer than {_MAX_SIZE:,} bytes")
        return content.decode()

    def _check_folder(self) -> None:
        """Create the folder, or check that only the user can use it.

        Raises:
            OSError: It cannot be created, or others can use it.
        """
        with contextlib.suppress(FileExistsError):
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(mode=_PRIVATE_FOLDER)
        facts = self._folder.lstat()
        if not stat.S_ISDIR(facts.st_mode):
            raise OSError(None, "it is not a folder, or is a symbolic link")
        _check_owner(facts)
        if sys.platform != "win32" and facts.st_mode & _OTHERS:
            raise OSError(None, f"other users can read it; run: chmod 700 {self._folder}")

    def _warn(self, reason: str) -> None:
        logger.warning(
            "The stored login to MCP server %s in %s is ignored: %s.",
            self.server,
            self.path,
            reason,
        )


def _canonical(url: str) -> str:
    """Return a URL without user name, password and fragment, with the host in lower case."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme.lower()}://{host}{parts.path.rstrip('/')}{query}"


def _check_owner(facts: os.stat_result) -> None:
    if sys.platform != "win32" and facts.st_uid != os.geteuid():
        raise OSError(None, "it belongs to another user")


def _try_lock(descriptor: int) -> bool:
    """Lock a file; return whether it was free. Closing it releases the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # the file system has no locks
    return True
