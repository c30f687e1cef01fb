"""One version of a 1 KB file made durable: Watchroom's way, and how it is done elsewhere.

Each contender is a context manager over a folder of its own that gives the work to do. What each one
syncs is said with it: less safety is not the same work, but it is what people get.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

from measure import Work, kilobyte
from watchroom import Workspace
from watchroom.disk import Folder
from watchroom.journal.sqlite.queries import INSERT
from watchroom.journal.sqlite.schema import migrate

Contender = Callable[[str], AbstractContextManager[Work]]

FILES = 20
_NAME = "bench"
_MAIL = "bench@example.org"


def _file(n: int) -> str:
    return f"notes-{n % FILES}.md"


@contextmanager
def collab_write(folder: str) -> Iterator[Work]:
    """Watchroom, by the zone's own API: a row, synced; then version file, current file, history."""
    with Workspace.open(folder, agents=["alice"]) as workspace:
        versions = dict.fromkeys(map(_file, range(FILES)), 0)

        def work(n: int) -> None:
            path = _file(n)
            written = workspace.collab.write(
                "alice", path, kilobyte(n), versions[path], tool="collab_write", message="work"
            )
            versions[path] = written.version or 0

        yield work


@contextmanager
def toolbox_write(folder: str) -> Iterator[Work]:
    """Watchroom, as an agent calls it."""
    with Workspace.open(folder, agents=["alice"]) as workspace:
        tools = workspace.tools("alice")

        def work(n: int) -> None:
            arguments = {"filepath": _file(n), "content": kilobyte(n), "message": "work"}
            result = tools.dispatch_tool_call("collab_write", arguments)
            if not result["success"]:
                raise RuntimeError(result["message"])

        yield work


@contextmanager
def private_write(folder: str) -> Iterator[Work]:
    """Watchroom, a save to the agent's own folder: no versions are laid out."""
    with Workspace.open(folder, agents=["alice"]) as workspace:
        tools = workspace.tools("alice")

        def work(n: int) -> None:
            arguments = {"filename": _file(n), "content": kilobyte(n)}
            result = tools.dispatch_tool_call("save_to_my_workspace", arguments)
            if not result["success"]:
                raise RuntimeError(result["message"])

        yield work


@contextmanager
def bare_row(folder: str) -> Iterator[Work]:
    """What no commit is quicker than: its row put into our schema by SQLite, synced."""
    with closing(sqlite3.connect(os.path.join(folder, "bare.db"), isolation_level=None)) as journal:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=1000"):
            journal.execute(f"PRAGMA {pragma}")
        migrate(journal)

        def work(n: int) -> None:
            values = (
                "alice",
                "collab_write",
                "collab",
                _file(n),
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
    """As `bare_row`, and the file read and replaced, as a commit does."""
    files = Folder(folder, os.path.join(folder, "scratch"))
    with bare_row(folder) as commit, closing(files):

        def work(n: int) -> None:
            commit(n)
            files.write((_file(n),), kilobyte(n).encode(), look=lambda _: True)

        yield work


@contextmanager
def append_synced(folder: str) -> Iterator[Work]:
    """The floor: append to one file, fdatasync."""
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
    """How editors save: write a new file, fsync it, rename it over the old one."""

    def work(n: int) -> None:
        temporary = os.path.join(folder, "tmp")
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.write(file, kilobyte(n).encode())
        os.fsync(file)
        os.close(file)
        os.rename(temporary, os.path.join(folder, _file(n)))

    yield work


@contextmanager
def git_commit(folder: str) -> Iterator[Work]:
    """The git command at its defaults, which sync nothing: write the file, add, commit."""

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    git("config", "user.name", _NAME)
    git("config", "user.email", _MAIL)
    git("config", "gc.auto", "0")

    def work(n: int) -> None:
        _write(folder, n)
        git("add", _file(n))
        git("commit", "--quiet", "--message", "work")

    yield work


@contextmanager
def dulwich_commit(folder: str) -> Iterator[Work]:
    """Blob, tree, commit (core.fsyncObjectFiles), index and reference: five syncs."""
    from dulwich.repo import Repo

    Repo.init(folder).close()
    settings = "[core]\n\tfsyncObjectFiles = true\n\trepositoryformatversion = 0\n\tbare = false\n"
    with open(os.path.join(folder, ".git", "config"), "w", encoding="utf-8") as config:
        config.write(settings)
    repository = Repo(folder)
    try:
        author = f"{_NAME} <{_MAIL}>".encode()
        tree = repository.get_worktree()

        def work(n: int) -> None:
            _write(folder, n)
            tree.stage([_file(n)])
            tree.commit(b"work", committer=author, author=author)

        yield work
    finally:
        repository.close()


@contextmanager
def pygit2_commit(folder: str) -> Iterator[Work]:
    """libgit2 with fsync_gitdir: blob, tree, commit, reference and log: twelve syncs."""
    import pygit2

    pygit2.settings.enable_fsync_gitdir(True)
    repository = pygit2.init_repository(folder)
    author = pygit2.Signature(_NAME, _MAIL)
    parents: list[pygit2.Oid] = []
    builder = repository.TreeBuilder()

    def work(n: int) -> None:
        _write(folder, n)
        blob = repository.create_blob(kilobyte(n).encode())
        builder.insert(_file(n), blob, pygit2.enums.FileMode.BLOB)
        made = repository.create_commit("HEAD", author, author, "work", builder.write(), parents)
        parents[:] = [made]

    yield work


@contextmanager
def agentfs_write(folder: str) -> Iterator[Work]:
    """One sync: the file is replaced in its database; no version is kept, no file laid out."""
    from agentfs_sdk import AgentFS, AgentFSOptions

    with asyncio.Runner() as runner:
        system = runner.run(AgentFS.open(AgentFSOptions(path=os.path.join(folder, "agent.db"))))

        def work(n: int) -> None:
            runner.run(system.fs.write_file(f"/{_file(n)}", kilobyte(n)))

        yield work
        runner.run(system.close())


def _write(folder: str, n: int) -> None:
    with open(os.path.join(folder, _file(n)), "w", encoding="utf-8") as file:
        file.write(kilobyte(n))


CONTENDERS: dict[str, Contender] = {
    "collab.write": collab_write,
    "collab_write tool": toolbox_write,
    "private save": private_write,
    "bare row": bare_row,
    "bare row and file": bare_row_and_file,
    "append + fdatasync": append_synced,
    "write + fsync + rename": replace_synced,
    "git commit": git_commit,
    "dulwich": dulwich_commit,
    "pygit2": pygit2_commit,
    "AgentFS": agentfs_write,
}
