"""Every durable store keeps the promises of all of them, and says what is wrong with its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agents_tools import UserError
from agents_tools.persistence.durable import DurableStore, DurableStoreError, LocalDurableStore
from agents_tools.testing.durable import DurableStoreContract
from tests.durable.lite import needs_dbos_on_sqlite


@pytest.mark.requirement("F41", "F42")
class TestLocal(DurableStoreContract):
    """A file of this machine."""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_stores(self, count: int) -> Sequence[DurableStore]:
        """Open the same file several times."""
        return [LocalDurableStore(self.folder / "runs.db") for _ in range(count)]

    async def written(self) -> bytes:
        """Give the file and those beside it."""
        return b"".join(file.read_bytes() for file in self.folder.iterdir())


@pytest.mark.requirement("F41", "F42")
@pytest.mark.leaves_behind  # the threads of DBOS end in their own time
@needs_dbos_on_sqlite
class TestDBOSOnSQLite(DurableStoreContract):
    """DBOS in a file of this machine."""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        pytest.importorskip("dbos")
        self.folder = tmp_path

    def make_stores(self, count: int) -> Sequence[DurableStore]:
        """Share one DBOS: a process has one."""
        from agents_tools.persistence.durable import DBOSDurableStore

        url = f"sqlite:///{self.folder / 'runs.db'}"
        return [DBOSDurableStore(url) for _ in range(count)]

    async def written(self) -> bytes:
        """Give the file and those beside it."""
        return b"".join(file.read_bytes() for file in self.folder.iterdir())


@pytest.mark.external("postgres")
@pytest.mark.leaves_behind
class TestDBOSOnPostgreSQL(DurableStoreContract):
    """DBOS on a server."""

    @pytest.fixture(autouse=True)
    def _place(self, server: str, tmp_path: Path) -> None:
        pytest.importorskip("dbos")
        import psycopg

        name = f"d{abs(hash(tmp_path))}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
        self.url = server.replace("/postgres", f"/{name}")

    def make_stores(self, count: int) -> Sequence[DurableStore]:
        """Share one DBOS: a process has one."""
        from agents_tools.persistence.durable import DBOSDurableStore

        return [DBOSDurableStore(self.url) for _ in range(count)]


def _mode(path: Path) -> int:
    return path.stat().st_mode


async def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """A wrong path must not cost the user that file."""
    text = tmp_path / "letter.txt"
    text.write_bytes(b"Dear Ada, " * 200)
    with pytest.raises(DurableStoreError, match="file of its own"):
        LocalDurableStore(text)
    assert text.read_bytes() == b"Dear Ada, " * 200
    import sqlite3

    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()
    with pytest.raises(DurableStoreError, match="another program"):
        LocalDurableStore(tmp_path / "other.db")


async def test_what_cannot_work_is_said_at_once(tmp_path: Path) -> None:
    """The message says what to give instead."""
    with pytest.raises(DurableStoreError, match="folder"):
        LocalDurableStore(tmp_path / "not there" / "runs.db")
    bad: Any = "often"
    with pytest.raises(UserError, match="'normal' or 'sync'"):
        LocalDurableStore(tmp_path / "runs.db", durability=bad)
    store = LocalDurableStore(tmp_path / "runs.db", durability="sync")
    await store.aclose()
    with pytest.raises(DurableStoreError, match="was closed"):
        await store.claim("run")
    assert _mode(tmp_path / "runs.db") & 0o077 == 0


@pytest.mark.parametrize("url", ["runs.db", "mysql://user:pass@host/db"])
def test_an_address_that_dbos_has_no_use_for_is_refused(url: str) -> None:
    """The password of an address is not part of the message."""
    pytest.importorskip("dbos")
    from agents_tools.persistence.durable import DBOSDurableStore

    with pytest.raises(UserError, match=r"sqlite:///runs\.db") as told:
        DBOSDurableStore(url)
    assert "pass" not in str(told.value)
