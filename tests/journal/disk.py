"""A disk that takes nothing, or what lies on it is broken: for the tests of an embedded journal."""

from __future__ import annotations

import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def failing_disk(size: int, *, times: int | None = None) -> Iterator[None]:
    """The disk takes nothing beyond ``size`` bytes of a file, so many ``times`` (None: each time)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def work_again(*_: object) -> None:
        nonlocal times
        times = None if times is None else times - 1
        if times == 0:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    before = signal.signal(signal.SIGXFSZ, work_again)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def meddle(path: Path, sql: str, *values: object) -> None:
    """Change the tables of the journal at ``path`` as no journal would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        guards = connection.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE '%\\_never\\_%' ESCAPE '\\'"
        )
        for (name,) in guards.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(sql, values)
