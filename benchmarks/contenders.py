"""Ways to make a version of a 1 KB file durable: Watchroom's, and the cheapest possible ones.

Each contender is a context manager over its own folder that yields the work to do.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

from measure import Work, kilobyte
from watchroom import Workspace
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.sqlite.queries import INSERT
from watchroom.kernel.journal.sqlite.schema import migrate
from watchroom.platform.disk import Folder

Contender = Callable[[str], AbstractContextManager[Work]]

FILES = 20


def file_name(n: int) -> str:
    return f"notes-{n % FILES}.md"


@contextmanager
def collab_write(folder: str) -> Iterator[Work]:
    """Yield Watchroom's own API: a synced row, then version file, current file and history."""
    with Workspace.open(folder, agents=["alice"]) as workspace:
        versions = dict.fromkeys(map(file_name, range(FILES)), 0)

        def work(n: int) -> None:
            path = file_name(n)
            written = workspace.collab.write(
                CallContext("alice", "collab_write"), path, kilobyte(n), versions[path], message="work"
            )
            versions[path] = written.version or 0

        yield work


@contextmanager
def toolbox_write(folder: str) -> Iterator[Work]:
    """Yield Watchroom's tool, as an agent calls it."""
    with Workspace.open(folder, agents=["alice"]) as workspace:
        tools = workspace.tools("alice")

        def work(n: int) -> None:
            arguments = {"filepath": file_name(n), "content": kilobyte(n), "message": "work"}
            result = tools.dispatch_tool_call("collab_write", arguments)
            if not result["success"]:
                raise RuntimeError(result["message"])

        yield work


@contextmanager
def private_write(folder: str) -> Iterator[Work]:
    """Yield a save to the agent's own folder, which writes no version files."""
    with Workspace.open(folder, agents=["alice"]) as workspace:
        tools = workspace.tools("alice")

        def work(n: int) -> None:
            arguments = {"filename": file_name(n), "content": kilobyte(n)}
            result = tools.dispatch_tool_call("save_to_my_workspace", arguments)
            if not result["success"]:
                raise RuntimeError(result["message"])

        yield work


@contextmanager
def bare_row(folder: str) -> Iterator[Work]:
    """Yield the lower bound of a commit: SQLite inserts its row into our schema, synced."""
    with closing(sqlite3.connect(os.path.join(folder, "bare.db"), isolation_level=None)) as journal:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=1000"):
            journal.execute(f"PRAGMA {pragma}")
        migrate(journal)

        def work(n: int) -> None:
            values = (
                "alice",
                "collab_write",
                "collab",
                file_name(n),
                n // FILES + 1,
                n // FILES,
                "ok",
                "",
                "work",
            )
            content = ("0" * 64, 1024, "", kilobyte(n))
            journal.execute(INSERT, (n + 1, time.time_ns(), *values, *content))

        yield work


@contextmanager
def bare_row_and_file(folder: str) -> Iterator[Work]:
    """Yield `bare_row` plus reading and replacing the file, as a commit does."""
    files = Folder(folder, os.path.join(folder, "scratch"))
    with bare_row(folder) as commit, closing(files):

        def work(n: int) -> None:
            commit(n)
            files.write((file_name(n),), kilobyte(n).encode(), look=lambda _: True)

        yield work


@contextmanager
def append_synced(folder: str) -> Iterator[Work]:
    """Yield the lower bound of durability: append to one file, and fdatasync it."""
    file = os.open(os.path.join(folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:

        def work(n: int) -> None:
            os.write(file, kilobyte(n).encode())
            os.fdatasync(file)

        yield work
    finally:
        os.close(file)


@contextmanager
def replace_synced(folder: str) -> Iterator[Work]:
    """Yield the way of editors: write a new file, fsync it, and rename it over the old one."""

    def work(n: int) -> None:
        temporary = os.path.join(folder, "tmp")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.write(file, kilobyte(n).encode())
        os.fsync(file)
        os.close(file)
        os.rename(temporary, os.path.join(folder, file_name(n)))

    yield work


CONTENDERS: dict[str, Contender] = {
    "collab.write": collab_write,
    "collab_write tool": toolbox_write,
    "private save": private_write,
    "bare row": bare_row,
    "bare row and file": bare_row_and_file,
    "append + fdatasync": append_synced,
    "write + fsync + rename": replace_synced,
}
