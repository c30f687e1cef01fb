"""Make a version of a 1 KB file durable: Watchroom's tool, a file system in a database, and git in four ways.

The remarks list what each one syncs, because weaker durability is less work, but it is what people get.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Final, NamedTuple

from contenders import file_name, toolbox_write
from measure import Work, clocked, kilobyte, scratch

from peers.comparison import Contender, Group, Row, RunContext
from peers.peer import Library, Peer, SystemProgram

_AGENTFS: Final = Library("AgentFS", "agentfs-sdk")
_GIT: Final = SystemProgram("git", "git", "git")
_DULWICH: Final = Library("dulwich", "dulwich")
_PYGIT2: Final = Library("pygit2", "pygit2")
_NAME: Final = "bench"
_MAIL: Final = "bench@example.org"
_ROUNDS: Final = 11
_BURST: Final = 10
_WARM: Final = 400
"""Our commits before the first that counts, because SQLite's log grows until its first checkpoint."""


class _Way(NamedTuple):
    label: str
    peer: Peer
    opened: Callable[[str], AbstractContextManager[Work]]
    remark: str
    behind: str = ""


def _measure(context: RunContext) -> list[Row]:
    with ExitStack() as stack:
        ours = stack.enter_context(toolbox_write(stack.enter_context(scratch())))
        for n in range(_WARM):
            ours(n)
        contenders = [
            Contender(
                way.peer,
                clocked(stack.enter_context(way.opened(stack.enter_context(scratch())))),
                way.label,
                way.remark,
                way.behind,
            )
            for way in _WAYS
            if context.has(way.peer)
        ]
        return context.compare(
            "a version of 1 KB", clocked(ours), contenders, rounds=_ROUNDS, burst=_BURST, warm=_BURST
        )


@contextmanager
def _agentfs(folder: str) -> Iterator[Work]:
    from agentfs_sdk import AgentFS, AgentFSOptions

    with asyncio.Runner() as runner:
        system = runner.run(AgentFS.open(AgentFSOptions(path=os.path.join(folder, "agent.db"))))

        def work(n: int) -> None:
            runner.run(system.fs.write_file(f"/{file_name(n)}", kilobyte(n)))

        yield work
        runner.run(system.close())


@contextmanager
def _git(folder: str, *, synced: bool) -> Iterator[Work]:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    git("config", "user.name", _NAME)
    git("config", "user.email", _MAIL)
    git("config", "gc.auto", "0")
    if synced:
        git("config", "core.fsync", "all")

    def work(n: int) -> None:
        _write(folder, n)
        git("add", file_name(n))
        git("commit", "--quiet", "--message", "work")

    yield work


@contextmanager
def _dulwich(folder: str, *, synced: bool) -> Iterator[Work]:
    from dulwich.repo import Repo

    Repo.init(folder).close()
    with open(os.path.join(folder, ".git", "config"), "w", encoding="utf-8") as config:
        config.write(
            f"[core]\n\tfsyncObjectFiles = {str(synced).lower()}\n"
            "\trepositoryformatversion = 0\n\tbare = false\n"
        )
    repository = Repo(folder)
    try:
        author = f"{_NAME} <{_MAIL}>".encode()
        tree = repository.get_worktree()

        def work(n: int) -> None:
            _write(folder, n)
            tree.stage([file_name(n)])
            tree.commit(b"work", committer=author, author=author)

        yield work
    finally:
        repository.close()


@contextmanager
def _pygit2(folder: str, *, synced: bool) -> Iterator[Work]:
    import pygit2

    repository = pygit2.init_repository(folder)
    author = pygit2.Signature(_NAME, _MAIL)
    parents: list[pygit2.Oid] = []
    builder = repository.TreeBuilder()

    def work(n: int) -> None:
        # A global setting of the library, for all repositories.
        pygit2.settings.enable_fsync_gitdir(synced)
        _write(folder, n)
        blob = repository.create_blob(kilobyte(n).encode())
        builder.insert(file_name(n), blob, pygit2.enums.FileMode.BLOB)
        made = repository.create_commit("HEAD", author, author, "work", builder.write(), parents)
        parents[:] = [made]

    yield work


def _write(folder: str, n: int) -> None:
    with open(os.path.join(folder, file_name(n)), "w", encoding="utf-8") as file:
        file.write(kilobyte(n))


_NO_WAIT: Final = "ours waits for the disk once, it never does"
_WAYS: Final = (
    _Way("AgentFS", _AGENTFS, _agentfs, "one sync; keeps no older version, lays out no file"),
    _Way("git", _GIT, partial(_git, synced=False), "its defaults sync nothing; two processes", _NO_WAIT),
    _Way("git, synced", _GIT, partial(_git, synced=True), "`core.fsync=all`: six syncs; two processes"),
    _Way("dulwich", _DULWICH, partial(_dulwich, synced=False), "two syncs: index and branch"),
    _Way("dulwich, synced", _DULWICH, partial(_dulwich, synced=True), "five syncs: objects too"),
    _Way(
        "pygit2", _PYGIT2, partial(_pygit2, synced=False), "syncs nothing; a commit without index", _NO_WAIT
    ),
    _Way("pygit2, synced", _PYGIT2, partial(_pygit2, synced=True), "twelve syncs"),
)

GROUP: Final = Group(
    "storage",
    "Storage",
    "A new version of one of twenty files of 1 KB. Watchroom's is the call `collab_write`, as an agent makes "
    "it: one sync, two writers are kept apart, the file is laid out.",
    (_AGENTFS, _GIT, _DULWICH, _PYGIT2),
    _measure,
)
