"""A PostgreSQL server for tests: the bundled one, or that of the folder in WATCHROOM_POSTGRES_BIN."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
from memory_folder import memory_folder
from psycopg import sql
from watchroom.kernel.journal.postgres.local_server import USER, LocalServer

_SETTINGS: Final = {
    "fsync": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum": "off",
}

_OTHERS: Final = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_EMPTY: Final = """
-- There is a trigger against taking rows away.
SET session_replication_role = replica;
DO $$ BEGIN
    EXECUTE (
        SELECT format('TRUNCATE %s RESTART IDENTITY', string_agg(format('%I.%I', schemaname, tablename), ', '))
        FROM pg_tables WHERE schemaname = 'watchroom' AND tablename <> 'schema_version'
    );
    INSERT INTO watchroom.tip (seq, time) VALUES (0, 0);
END $$;
"""


class Server(LocalServer):
    """A server in a folder of its own, which answers on a socket in it."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        programs = os.environ.get("WATCHROOM_POSTGRES_BIN")
        super().__init__(folder, _SETTINGS | (settings or {}), Path(programs) if programs else None)

    def url(self, database: str = "postgres") -> str:
        return self.address(database)

    def create(self, database: str, template: str = "template1") -> str:
        """Make a database; its address."""
        # The journal's is some 300 files: to copy them takes a quarter of what it takes to log their pages.
        make = "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL(make).format(sql.Identifier(database), sql.Identifier(template)))
        return self.url(database)

    def simplify_login(self) -> None:
        """Have the password checked in one round instead of 4096: the tests connect some thousand times."""
        password = sql.Literal((self.folder / "password").read_text("ascii"))
        with psycopg.connect(self.url(), autocommit=True) as connection:
            if connection.info.server_version >= 160_000:
                connection.execute("SET scram_iterations = 1")
                connection.execute(
                    sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(USER), password)
                )

    def drop(self, database: str) -> None:
        """Remove a database, whoever is still connected to it."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database)))

    def kill(self) -> None:
        """End all of its processes at once, as when their machine fails."""
        # The first would tell the others that one of them ended.
        self.freeze()
        # Once the first is gone, nothing says which were its own: frozen, they would keep clients waiting.
        for process in self._processes():
            os.kill(process, signal.SIGKILL)
        # It counts as running for as long as nobody has asked how it ended.
        (self.folder / "data/postmaster.pid").unlink()

    def freeze(self) -> None:
        """Stop all of its processes where they are, until `thaw`."""
        first = self._first()
        os.kill(first, signal.SIGSTOP)
        while _state(first) != "T":
            # It may be making one more process.
            time.sleep(0.001)
        for process in self._processes():
            os.kill(process, signal.SIGSTOP)

    def thaw(self) -> None:
        for process in self._processes():
            os.kill(process, signal.SIGCONT)

    def _first(self) -> int:
        return int((self.folder / "data/postmaster.pid").read_text().split()[0])

    def _processes(self) -> list[int]:
        """The server's processes, the first of which made the others."""
        first = self._first()
        others = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, others)]


def _state(process: int) -> str:
    """What it does, as the kernel puts it: T where it is stopped."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


class ReusedDatabase:
    """A database on ``server`` with a journal, for one workspace after another: to empty it takes a quarter of what
    it takes to make one and to drop it. ``make`` makes one with an empty journal, and gives its address."""

    def __init__(self, server: Server, make: Callable[[], str]) -> None:
        self._server = server
        self._make = make
        self._address = ""
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def empty(self) -> str:
        """The address of a database with an empty journal: a new one where somebody still uses the last."""
        connection = self._connection
        if connection is not None and connection.execute(_OTHERS).fetchone() == (0,):
            connection.execute(_EMPTY)
            return self._address
        if connection is not None:
            name = connection.info.dbname
            connection.close()
            self._server.drop(name)
        self._address = self._make()
        self._connection = psycopg.connect(self._address, autocommit=True)
        return self._address

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


class Standby(Server):
    """A server that follows ``primary``, with its users and its port, on a socket in another folder."""

    def __init__(self, folder: Path, primary: Server, settings: dict[str, str] | None = None) -> None:
        super().__init__(folder, settings)
        self._primary = primary

    def _make(self) -> None:
        for name in ("password", "port"):
            shutil.copy2(self._primary.folder / name, self.folder)
        if os.geteuid() == 0:
            stat = (self._primary.folder / "data").stat()
            for path in (self.folder, self.folder / "password"):
                os.chown(path, stat.st_uid, stat.st_gid)
        source = ("-d", self._primary.url(), "-R", "-c", "fast", "--no-sync")
        self._run("pg_basebackup", "-D", str(self.folder / "data"), *source)


@contextmanager
def running_server(settings: dict[str, str] | None = None, of: Server | None = None) -> Iterator[Server]:
    """A server that runs for as long as the context lasts; a standby ``of`` another one, if given.

    One that syncs nothing has its data in memory where there is room: a database is some 300 files, and the
    tests make one for each workspace."""
    is_synced = (settings or {}).get("fsync", _SETTINGS["fsync"]) == "on"
    folder = Path(tempfile.mkdtemp(prefix="wr-pg-", dir=None if is_synced else memory_folder()))
    server = Server(folder, settings) if of is None else Standby(folder, of, settings)
    server.start()
    try:
        if of is None:
            server.simplify_login()
        yield server
    finally:
        if server.is_running:
            server.stop("immediate")
        shutil.rmtree(folder)
