"""A task's files: read from its folder as they are, and every version of theirs a row.

Several agents, their commands and people write there. Before anything is read or replaced, what is on disk
and in no row yet becomes one: nothing that anyone wrote is lost, and a command's changes are its agent's.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from watchroom import validation
from watchroom.disk import Found
from watchroom.errors import Conflict, NotFound
from watchroom.model import UNCHECKED, Row, Write
from watchroom.sandbox.errors import InvalidWorkspace, TaskQuotaExceeded, WorkspaceNotBound
from watchroom.sandbox.system_folders import is_system_folder
from watchroom.sandbox.task_folder import DiskUsage, FolderSummary, TaskFolder, normalize_task_path
from watchroom.zones.store import Store
from watchroom.zones.task_recording import OUTSIDERS, ZONE, ChangeAuthor, RecordedChanges, TaskRecorder
from watchroom.zones.tasks import Tasks

__all__ = ["ChangeAuthor", "Quota", "RecordedChanges", "TaskFiles"]


class Quota(NamedTuple):
    """How many files, folders and links a task's folder may hold, and how many bytes on disk."""

    files: int
    bytes: int

    @property
    def most_files(self) -> int:
        """Nobody looks at more of them than this."""
        return 2 * self.files

    def is_exceeded_by(self, usage: DiskUsage) -> bool:
        return usage.files > self.files or usage.bytes > self.bytes

    def check(self, usage: DiskUsage) -> None:
        """Raises `TaskQuotaExceeded`."""
        if self.is_exceeded_by(usage):
            raise TaskQuotaExceeded(**self.told(usage))

    def told(self, usage: DiskUsage) -> dict[str, int]:
        """The values of a refusal; sizes in MB."""
        return {
            "files": usage.files,
            "most_files": self.files,
            "megabytes": -(-usage.bytes // 1_000_000),
            "most_megabytes": self.bytes // 1_000_000,
        }


class TaskFiles:
    """May be used from any thread."""

    def __init__(self, store: Store, tasks: Tasks) -> None:
        self._store = store
        self._tasks = tasks
        self._recorders: dict[str, TaskRecorder] = {}
        self._usage: dict[str, DiskUsage] = {}
        """Of each task how much there was when it was last looked at, and what was written since."""
        self._lock = Lock()

    def task_of(self, actor: str) -> str:
        """The task that an agent works on, empty if on none."""
        agent = self._store.registry.current().agents.get(actor)
        return agent.task if agent else ""

    def folder(self, actor: str) -> str:
        """The folder that an agent works in. Raises `WorkspaceNotBound`."""
        return self._of(actor).folder.path

    def folder_of(self, task: str) -> str:
        """The folder of a task. Raises `TaskNotFound`."""
        return self._tasks.find(task).folder

    def read(self, actor: str, path: str, *, tool: str) -> tuple[str, Row]:
        """The file as it is on disk, and the row of that version. Raises `WorkspaceNotBound`,
        `PathTraversalBlocked`, `InvalidPath`, `NotFound`, `NotText`, `FolderDenied`."""
        recorder = self._of(actor)
        path = normalize_task_path(path)
        with self._store.committer.exclusively() as commit:
            row = recorder.record_file(tuple(path.split("/")), OUTSIDERS, commit)
            content = recorder.folder.read(path)
        if row is None:
            raise NotFound(path=path, zone=recorder.folder.path)
        self._store.note_reading(actor, tool, ZONE, row.path, row.version)
        return content, row

    def place(self, actor: str, path: str) -> str:
        """Where a file has its rows (``TASK/PATH``). Raises `WorkspaceNotBound`, `PathTraversalBlocked`,
        `InvalidPath`."""
        return self._of(actor).path(tuple(normalize_task_path(path).split("/")))

    def current(self, actor: str, path: str) -> Row | None:
        """The row of a file as it is on disk, None where there never was one. No reading. Raises what
        `place` raises, and `FolderDenied`."""
        recorder = self._of(actor)
        parts = tuple(normalize_task_path(path).split("/"))
        with self._store.committer.exclusively() as commit:
            return recorder.record_file(parts, OUTSIDERS, commit)

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
        if a version is ``expected`` that is not the current one; `TaskQuotaExceeded` if the task has no room
        for it."""
        recorder = self._of(actor)
        path = normalize_task_path(path)
        parts = tuple(path.split("/"))
        data = validation.encode_text(content)
        added = self._check_room(recorder, path, len(data))
        with self._store.committer.exclusively() as commit:
            head = recorder.record_file(parts, OUTSIDERS, commit)
            draft = Write(actor, tool, ZONE, recorder.path(parts), content, message, expected)
            if expected not in (UNCHECKED, (head.version or 0) if head else 0):
                now = self._store.content(head) if head and not head.deleted else None
                raise Conflict(commit(draft).row, head, now, content)
            self._store.check_conditions(draft)
            recorder.folder.write(path, data)
            row = commit(draft).row
        used = self._usage.get(recorder.task)
        if used is not None:
            self._usage[recorder.task] = _sum(used, added)
        return row

    def _check_room(self, recorder: TaskRecorder, path: str, size: int) -> DiskUsage:
        """What a file of ``size`` bytes adds to its task's folder. Raises `TaskQuotaExceeded`."""
        stamp = recorder.folder.stamp(tuple(path.split("/")))
        new_folders = path.count("/") if stamp is None else 0
        added = DiskUsage(1 + new_folders, size) if stamp is None else DiskUsage(0, max(0, size - stamp.size))
        quota = self.quota
        used = self._usage.get(recorder.task)
        if any(added) and (used is None or quota.is_exceeded_by(_sum(used, added))):
            # Somebody may have cleaned up since it was last looked at.
            used = self._usage[recorder.task] = recorder.folder.scan(quota.most_files).usage
            quota.check(_sum(used, added))
        return added

    @property
    def quota(self) -> Quota:
        """How much each task's folder may hold."""
        config = self._store.registry.current()
        return Quota(config.max_task_files, config.max_task_bytes)

    def entries(self, actor: str, path: str, *, tool: str) -> list[Found]:
        """What stands in a folder. Raises as `read` does."""
        recorder = self._of(actor)
        found = recorder.folder.entries(path)
        self._store.note_reading(actor, tool, ZONE, recorder.path(()), None)
        return found

    def info(self, actor: str, *, tool: str) -> FolderSummary:
        """How much there is in all, counted up to twice as many files as a task may have. Raises
        `WorkspaceNotBound`, `FolderDenied`."""
        recorder = self._of(actor)
        found = recorder.folder.summary(self.quota.most_files)
        self._store.note_reading(actor, tool, ZONE, recorder.path(()), None)
        return found

    def take_in(
        self, actor: str, author: ChangeAuthor = OUTSIDERS, *, until: float | None = None
    ) -> RecordedChanges:
        """Make rows of all that changed in the folder, as made by ``author``; of what nobody may look into,
        or no path can name, rows that say so once. ``until`` is when to end, by `time.monotonic`: what there
        was no time for is taken in with the next call, as made by the same ``author``."""
        return self._record(self._of(actor), author, until)

    def take_in_of(self, task: str, author: ChangeAuthor, *, until: float | None = None) -> RecordedChanges:
        """The same for what ``author`` left in the folder of a task, which may have ended since."""
        return self._record(self._recorder(task), author, until)

    def record(self) -> list[Row]:
        """Make rows of all that changed in the folders of tasks behind the journal's back."""
        rows: list[Row] = []
        for task in self._quiet():
            rows += self._record(self._recorder(task), OUTSIDERS, None).rows
        return rows

    def differing(self) -> list[str]:
        """The paths (``TASK/PATH``) of files that are not as their newest rows say."""
        found: list[str] = []
        for task in self._quiet():
            found += self._recorder(task).differing(self.quota.most_files)
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

    def _record(self, recorder: TaskRecorder, author: ChangeAuthor, until: float | None) -> RecordedChanges:
        recorded = recorder.record(author, self.quota.most_files, until)
        self._usage[recorder.task] = recorded.usage
        return recorded

    def close(self) -> None:
        with self._lock:
            for recorder in self._recorders.values():
                recorder.close()
            self._recorders.clear()

    def _of(self, actor: str) -> TaskRecorder:
        task = self.task_of(actor)
        # The folder of a task that has ended may be another one's by now.
        if not task or not self._tasks.is_open(task):
            raise WorkspaceNotBound(agent=actor)
        folder = self._tasks.find(task).folder
        if not folder:
            raise WorkspaceNotBound(agent=actor)
        if is_system_folder(folder):
            # Begun before such folders were refused.
            raise InvalidWorkspace(path=folder, rule="of_the_system")
        return self._recorder(task)

    def _recorder(self, task: str) -> TaskRecorder:
        with self._lock:
            found = self._recorders.get(task)
            if found is None:
                folder = TaskFolder(self._tasks.find(task).folder)
                found = self._recorders[task] = TaskRecorder(self._store, task, folder)
        return found


def _sum(one: DiskUsage, other: DiskUsage) -> DiskUsage:
    return DiskUsage(one.files + other.files, one.bytes + other.bytes)
