"""A PostgreSQL server for tests: the bundled one, or that of the folder in WATCHROOM_POSTGRES_BIN."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from watchroom.journal.postgres.local_server import LocalServer

_SETTINGS: Final = {
    "fsync": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "autovacuum": "off",
}


class Server(LocalServer):
    """A server in a folder of its own, which answers on a socket in it."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        programs = os.environ.get("WATCHROOM_POSTGRES_BIN")
        super().__init__(folder, _SETTINGS | (settings or {}), Path(programs) if programs else None)

    def url(self, database: str = "postgres") -> str:
        return self.address(database)

    def create(self, database: str, template: str = "template1") -> str:
        """Make a database; its address."""
        return self.create_database(database, template)


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
