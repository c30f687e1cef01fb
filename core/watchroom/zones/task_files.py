"""A task's files: read from its folder as they are, and every version of theirs a row.

Several agents, their commands and people write there. Before anything is read or replaced, what is on disk
and in no row yet becomes one: nothing that anyone wrote is lost, and a command's changes are its agent's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from watchroom import names
from watchroom.disk import Found, Parts
from watchroom.errors import Conflict, NotFound, NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES, OUTSIDE, UNCHECKED, Appended, Draft, Json, Note, Row, Write
from watchroom.sandbox.errors import FolderDenied, WorkspaceNotBound
from watchroom.sandbox.files import Info, TaskFolder, task_path
from watchroom.zones.outside import EDIT_TOOL
from watchroom.zones.store import Store
from watchroom.zones.tasks import Tasks

ZONE: Final = "file"
POINTER: Final = "not kept: no text of at most 10 MB\nsha256 {sha256}\nsize {size}\n"
"""The content of a row whose file is not kept in the journal; its detail has both, too."""
_SETTLED_AFTER: Final = 1_000_000_000
"""A file that was changed less than so many nanoseconds ago is looked into again: its next change may bear
the same time."""


class Author(NamedTuple):
    """Whose changes they are, and the tool by which they were made."""

    actor: str
    tool: str
    message: str = ""
    detail: dict[str, Json] | None = None


OUTSIDERS: Final = Author(OUTSIDE, EDIT_TOOL)


class _Bound(NamedTuple):
    folder: TaskFolder
    known: dict[Parts, tuple[tuple[int, int], int]]
    """Of each file its stamp when it was last looked into, and its newest row then."""
    closed: set[Parts]
    """What nobody may look into, and has a row that says so."""


class TaskFiles:
    """May be used from any thread."""

    def __init__(self, store: Store, tasks: Tasks) -> None:
        self._store = store
        self._tasks = tasks
        self._bound: dict[str, _Bound] = {}
        self._lock = Lock()

    def task_of(self, actor: str) -> str:
        """The task that an agent works on, empty if on none."""
        agent = self._store.registry.current().agents.get(actor)
        return agent.task if agent else ""

    def folder(self, actor: str) -> str:
        """The folder that an agent works in. Raises `WorkspaceNotBound`."""
        return self._of(actor)[1].folder.path

    def read(self, actor: str, path: str, *, tool: str) -> tuple[str, Row]:
        """The file as it is on disk, and the row of that version. Raises `WorkspaceNotBound`,
        `PathTraversalBlocked`, `InvalidPath`, `NotFound`, `NotText`, `FolderDenied`."""
        task, bound = self._of(actor)
        path = task_path(path)
        parts = tuple(path.split("/"))
        with self._store.committer.exclusively() as commit:
            row = self._take_in(task, bound, parts, OUTSIDERS, commit)
            content = bound.folder.read(path)
        if row is None:
            raise NotFound(path=path, zone=bound.folder.path)
        self._store.note_reading(actor, tool, ZONE, row.path, row.version)
        return content, row

    def place(self, actor: str, path: str) -> str:
        """Where a file has its rows (``TASK/PATH``). Raises `WorkspaceNotBound`, `PathTraversalBlocked`,
        `InvalidPath`."""
        return _row_path(self._of(actor)[0], tuple(task_path(path).split("/")))

    def current(self, actor: str, path: str) -> Row | None:
        """The row of a file as it is on disk, None where there never was one. No reading. Raises what
        `place` raises, and `FolderDenied`."""
        task, bound = self._of(actor)
        parts = tuple(task_path(path).split("/"))
        with self._store.committer.exclusively() as commit:
            return self._take_in(task, bound, parts, OUTSIDERS, commit)

    def write(
        self,
        actor: str,
        path: str,
        content: str,
        *,
        tool: str,
        message: str = "",
        expected: int = UNCHECKED,
    ) -> Row:
        """Create or replace a file. Raises what `read` raises but `NotFound`, and `TooLarge`; `Conflict`
        if a version is ``expected`` that is not the current one."""
        task, bound = self._of(actor)
        path = task_path(path)
        parts = tuple(path.split("/"))
        data = names.text(content)
        with self._store.committer.exclusively() as commit:
            head = self._take_in(task, bound, parts, OUTSIDERS, commit)
            draft = Write(actor, tool, ZONE, f"{task}/{path}", content, message, expected)
            if expected not in (UNCHECKED, (head.version or 0) if head else 0):
                now = self._store.content(head) if head and not head.deleted else None
                raise Conflict(commit(draft).row, head, now, content)
            bound.folder.write(path, data)
            return commit(draft).row

    def entries(self, actor: str, path: str, *, tool: str) -> list[Found]:
        """What stands in a folder. Raises as `read` does."""
        task, bound = self._of(actor)
        found = bound.folder.entries(path)
        self._store.note_reading(actor, tool, ZONE, f"{task}/", None)
        return found

    def info(self, actor: str, *, tool: str) -> Info:
        task, bound = self._of(actor)
        found = bound.folder.info()
        self._store.note_reading(actor, tool, ZONE, f"{task}/", None)
        return found

    def take_in(self, actor: str, author: Author = OUTSIDERS) -> list[Row]:
        """Make rows of all that changed in the folder, as made by ``author``; of what nobody may look into,
        rows that say so once."""
        return self._taken_in(*self._of(actor), author)

    def take_in_of(self, task: str, author: Author) -> list[Row]:
        """The same for what ``author`` left in the folder of a task, which may have ended since."""
        return self._taken_in(task, self._bound_to(task), author)

    def record(self) -> list[Row]:
        """Make rows of all that changed in the folders of tasks behind the journal's back."""
        rows: list[Row] = []
        for task in self._quiet():
            rows += self._taken_in(task, self._bound_to(task), OUTSIDERS)
        return rows

    def differing(self) -> list[str]:
        """The paths (``TASK/PATH``) of files that are not as their newest rows say."""
        found: list[str] = []
        for task in self._quiet():
            changed, gone, _ = self._differing(task, self._bound_to(task))
            found += [_row_path(task, parts) for parts in (*changed, *gone)]
        return found

    def _quiet(self) -> list[str]:
        """The open tasks whose folders somebody has looked into, and where no command is at work."""
        journal = self._store.journal
        return [
            task.id
            for task in self._tasks.list()
            if task.status == "open"
            and task.folder
            and next(journal.heads(ZONE, f"{task.id}/"), None) is not None
            and all(head.version != 1 for head in journal.heads("command", f"{task.id}/"))
        ]

    def _taken_in(self, task: str, bound: _Bound, author: Author) -> list[Row]:
        changed, gone, closed = self._differing(task, bound)
        bound.closed.intersection_update(closed)
        new = [parts for parts in closed if parts not in bound.closed]
        if not (changed or gone or new):
            return []
        bound.closed.update(new)
        rows: list[Row] = []
        with self._store.committer.exclusively() as commit:
            # What is gone comes first: where a folder took a file's place, the file has to go before.
            for parts in (*gone, *changed):
                before = self._store.journal.head(ZONE, _row_path(task, parts))
                row = self._take_in(task, bound, parts, author, commit)
                if row is not None and (before is None or row.seq != before.seq):
                    rows.append(row)
            rows += [commit(_denied(author, _row_path(task, parts))).row for parts in new]
        return rows

    def _differing(self, task: str, bound: _Bound) -> tuple[list[Parts], list[Parts], list[Parts]]:
        """The files that are not as their newest rows say, those that are gone, and what cannot be looked
        into. Nobody is held off meanwhile: there may be much to read."""
        heads = {head.path: head for head in self._store.journal.heads(ZONE, f"{task}/")}
        seen = bound.folder.look()
        changed, closed = [], list(seen.closed)
        for parts, entry in seen.files:
            head = heads.pop(_row_path(task, parts), None)
            if head is not None and bound.known.get(parts) == (entry.stamp, head.seq):
                continue
            try:
                found = bound.folder.digest(parts)
            except FolderDenied:
                closed.append(parts)
                continue
            if head is None or (found.sha256 if found else None) != _checksum(head):
                changed.append(parts)
            elif time.time_ns() - entry.stamp[1] > _SETTLED_AFTER:
                bound.known[parts] = (entry.stamp, head.seq)
        hidden = tuple(_row_path(task, parts) + "/" for parts in closed)
        gone = [head.path for head in heads.values() if not head.deleted and not head.path.startswith(hidden)]
        return changed, [tuple(path.split("/")[1:]) for path in gone], closed

    def close(self) -> None:
        with self._lock:
            for bound in self._bound.values():
                bound.folder.close()
            self._bound.clear()

    def _of(self, actor: str) -> tuple[str, _Bound]:
        task = self.task_of(actor)
        # The folder of a task that has ended may be another one's by now.
        if not task or not self._tasks.is_open(task):
            raise WorkspaceNotBound(agent=actor)
        if not self._tasks.find(task).folder:
            raise WorkspaceNotBound(agent=actor)
        return task, self._bound_to(task)

    def _bound_to(self, task: str) -> _Bound:
        with self._lock:
            bound = self._bound.get(task)
            if bound is None:
                bound = self._bound[task] = _Bound(TaskFolder(self._tasks.find(task).folder), {}, set())
        return bound

    def _take_in(
        self, task: str, bound: _Bound, parts: Parts, author: Author, commit: Callable[[Draft], Appended]
    ) -> Row | None:
        """The row of a file as it is on disk, made if there is none yet; None where there never was one."""
        where = _row_path(task, parts)
        head = self._store.journal.head(ZONE, where)
        found = bound.folder.digest(parts)
        if (found.sha256 if found else None) == _checksum(head):
            return head
        version = (head.version or 0) if head else 0
        if found is None:
            return _commit(commit, author, where, None, version)
        try:
            content = names.decoded(bound.folder.seen(parts, MAX_TEXT_BYTES))
        except (NotText, TooLarge):
            pointer: dict[str, Json] = {"sha256": found.sha256, "size": found.size}
            return _commit(commit, author, where, POINTER.format(**found._asdict()), version, pointer)
        return _commit(commit, author, where, content, version)


def _row_path(task: str, parts: Parts) -> str:
    return f"{task}/{names.storable('/'.join(parts), names.MAX_PATH_BYTES)}"


def _denied(author: Author, path: str) -> Note:
    code, detail = FolderDenied.code, author.detail
    return Note(author.actor, author.tool, ZONE, path, "failed", code, author.message, detail=detail)


def _checksum(head: Row | None) -> str | None:
    """What the file's checksum is in that version; None where it is gone, or never was."""
    if head is None or head.deleted:
        return None
    return str(head.detail.get("sha256") or head.sha256)


def _commit(
    commit: Callable[[Draft], Appended],
    author: Author,
    path: str,
    content: str | None,
    version: int,
    pointer: dict[str, Json] | None = None,
) -> Row:
    detail = {**(author.detail or {}), **(pointer or {})}
    return commit(Write(author.actor, author.tool, ZONE, path, content, author.message, version, detail)).row
