"""A task's files: read from its folder as they are, and every version of theirs a row.

Several agents, their commands and people write there. Before anything is read or replaced, what is on disk
and in no row yet becomes one: nothing that anyone wrote is lost, and a command's changes are its agent's.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from threading import Lock
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.disk import Found, Parts
from watchroom.errors import DeniedError, NotFound, VersionConflict, WatchroomError
from watchroom.model import UNCHECKED, WRITE_FILE, Json, Note, Row, Write
from watchroom.rules.task_versions import EXECUTABLE, IGNORED, is_executable
from watchroom.sandbox.errors import (
    FileIgnored,
    IgnoredFileChanged,
    IgnoredFilesUnknown,
    InvalidWorkspace,
    TaskQuotaExceeded,
    WorkspaceNotBound,
)
from watchroom.sandbox.system_folders import is_system_folder
from watchroom.sandbox.task_folder import DiskUsage, FolderSummary, TaskFolder, normalize_task_path
from watchroom.texts import catalogue
from watchroom.zones.store import Store
from watchroom.zones.task_recording import OUTSIDERS, ZONE, ChangeAuthor, RecordedChanges, TaskRecorder
from watchroom.zones.tasks import Tasks

__all__ = ["ChangeAuthor", "Quota", "RecordedChanges", "TaskFiles"]

_log = logging.getLogger("watchroom")
_IGNORED_TOOLS: Final = ("read_file", WRITE_FILE)
"""The tools that show a file that git ignores to an agent."""


class Quota(NamedTuple):
    """How many files, folders and links a task's folder may hold, and how many bytes on disk."""

    files: int
    bytes: int

    @property
    def max_counted(self) -> int:
        """So many files are counted or recorded at most."""
        return 2 * self.files

    def is_exceeded_by(self, usage: DiskUsage) -> bool:
        """Whether ``usage`` is more than this."""
        return usage.files > self.files or usage.bytes > self.bytes

    def check(self, usage: DiskUsage) -> None:
        """Raises `TaskQuotaExceeded` where ``usage`` is more than this."""
        if self.is_exceeded_by(usage):
            raise TaskQuotaExceeded(**self.error_values(usage))

    def error_values(self, usage: DiskUsage) -> dict[str, int]:
        """The values of a `TaskQuotaExceeded` for this ``usage``; sizes in MB."""
        return {
            "files": usage.files,
            "most_files": self.files,
            "megabytes": -(-usage.bytes // 1_000_000),
            "most_megabytes": self.bytes // 1_000_000,
        }


class TaskFiles:
    """The files in the folders of ``tasks``; their rows are in ``store``. May be used from any thread.

    A path is relative to the task's folder, with ``/`` between its parts. What takes an ``actor`` raises
    `WorkspaceNotBound` where that agent works on no open task with a folder, `InvalidWorkspace` where that
    folder is one of the system's, and `OtherMachine` where it is on another machine; what takes a path
    raises `PathTraversalBlocked` and `InvalidPath`.
    """

    def __init__(self, store: Store, tasks: Tasks) -> None:
        self._store = store
        self._tasks = tasks
        self._recorders: dict[str, TaskRecorder] = {}
        self._usage: dict[str, DiskUsage] = {}
        """Of each task how much there was when it was last counted, and what was written since."""
        self._lock = Lock()

    def task_of(self, actor: str) -> str:
        """The id of the task that the agent ``actor`` works on, empty if on none."""
        agent = self._store.registry.current().agents.get(actor)
        return agent.task if agent else ""

    def agent_folder(self, actor: str) -> str:
        """The absolute path of the folder that the agent ``actor`` works in."""
        return self._open_recorder(actor).folder.path

    def task_folder(self, task: str) -> str:
        """The absolute path of the folder of ``task``, empty if it has none. Raises `TaskNotFound`."""
        return self._tasks.find(task).folder

    def read(self, actor: str, path: str, *, tool: str) -> tuple[str, Row | None]:
        """Return the text of the file at ``path`` as it is on disk, and the row of that version: None if git
        ignores the file. The reading is noted as one of ``actor`` by ``tool``. Raises `NotFound`, `NotText`,
        `TooLarge`, `FolderDenied`, `IgnoredFilesUnknown`."""
        recorder = self._recorder_of(actor)
        path = normalize_task_path(path)
        parts = _parts(path)
        with self._exclusive(recorder):
            row, is_ignored = self._record_file(actor, recorder, parts)
            content = recorder.folder.read(path)
        if row is not None:
            self._store.note_reading(actor, tool, ZONE, row.path, row.version)
        elif is_ignored:
            note = _ignored_note(actor, tool, recorder.path(parts), validation.encode_text(content))
            self._store.commits.note(note._replace(durable=False))
        else:
            raise NotFound(path=path, zone=recorder.folder.path)
        return content, row

    def row_path(self, actor: str, path: str) -> str:
        """The path of the rows of the file at ``path`` in the folder of ``actor``: ``TASK/PATH``."""
        return self._open_recorder(actor).path(_parts(normalize_task_path(path)))

    def current_row(self, actor: str, path: str) -> Row | None:
        """The row of the file at ``path`` in the folder of ``actor`` as it is on disk, None where there never
        was one. No reading is noted. Raises `FolderDenied`, `FileIgnored`, `IgnoredFilesUnknown`."""
        recorder = self._recorder_of(actor)
        parts = _parts(normalize_task_path(path))
        with self._exclusive(recorder):
            row, is_ignored = self._record_file(actor, recorder, parts)
        if is_ignored:
            raise FileIgnored(path=path)
        return row

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
        """Create the file at ``path``, or replace it, by the text ``content``. Returns the row of its new
        version, which has ``actor``, ``tool`` and ``message``; if git ignores the file, a row that is not a
        version and has the checksum of the text only.

        Raises as `read` does but `NotFound`; `VersionConflict` if the current version is not the one
        ``expected``; `TaskQuotaExceeded` if the task has no room for it; for an ignored file `FileIgnored` if
        a version is ``expected``, `IgnoredFileChanged` if ``actor`` has not seen its present text.
        """
        recorder = self._recorder_of(actor)
        path = normalize_task_path(path)
        parts = _parts(path)
        data = validation.encode_text(content)
        added = self._check_quota(recorder, parts, len(data))
        with self._exclusive(recorder):
            head, is_ignored = self._record_file(actor, recorder, parts)
            if is_ignored:
                if expected != UNCHECKED:
                    raise FileIgnored(path=path)
                row = self._write_ignored(actor, recorder, path, data, tool)
                self._add_usage(recorder.task, added)
                return row
            rights: dict[str, Json] = {EXECUTABLE: True} if is_executable(head) else {}
            draft = Write(actor, tool, ZONE, recorder.path(parts), content, message, expected, rights or None)
            if expected not in (UNCHECKED, (head.version or 0) if head else 0):
                current = self._store.content(head) if head and not head.deleted else None
                raise VersionConflict(self._store.write(draft).row, head, current, content)
            # The append checks them as well, but by then the file is there.
            self._store.check_conditions(draft)
            recorder.folder.write(path, data, executable=is_executable(head))
            row = self._store.write(draft).row
        self._add_usage(recorder.task, added)
        return row

    def _write_ignored(self, actor: str, recorder: TaskRecorder, path: str, data: bytes, tool: str) -> Row:
        """Write ``data`` to the file at ``path``, which git ignores. No version of its present text is kept,
        so ``actor`` must have read or written that text last."""
        parts = _parts(path)
        note = _ignored_note(actor, tool, recorder.path(parts), data)
        present = recorder.folder.inspect(parts)
        if present is not None and present.data != data:
            found = None if present.data is None else validation.sha256(present.data)
            if found is None or found != self._last_seen_checksum(actor, note.path):
                raise IgnoredFileChanged(path=path)
        self._store.check_conditions(Write(actor, tool, ZONE, note.path, None, detail=note.detail))
        executable = present is not None and present.executable
        recorder.folder.write(path, data, executable=executable)
        texts = catalogue(self._store.registry.current().language)
        return self._store.commits.commit(note._replace(message=texts("task_files.not_recorded"))).row

    def _last_seen_checksum(self, actor: str, path: str) -> Json:
        """Return the checksum of the ignored file with rows at ``path`` when ``actor`` last read or wrote it,
        None if it never did."""
        self._store.commits.flush()
        notes = self._store.journal.last_notes([(ZONE, path, actor, tool) for tool in _IGNORED_TOOLS])
        seen = [note for note in notes if note is not None and note.detail.get(IGNORED) is True]
        return max(seen, key=lambda note: note.seq).detail.get("sha256") if seen else None

    def keeps_text(self, actor: str, path: str) -> bool:
        """Return whether rows may have the text of the file at ``path`` in the folder of ``actor``: not if
        git ignores it, or cannot say so."""
        try:
            return not self._recorder_of(actor).is_ignored(_parts(normalize_task_path(path)))
        except IgnoredFilesUnknown:
            return False
        except WatchroomError:
            # There is no such file.
            return True

    def _add_usage(self, task: str, added: DiskUsage) -> None:
        used = self._usage.get(task)
        if used is not None:
            self._usage[task] = _sum(used, added)

    def _check_quota(self, recorder: TaskRecorder, parts: Parts, size: int) -> DiskUsage:
        """What a file of ``size`` bytes adds to its task's folder. Raises `TaskQuotaExceeded`."""
        stamp = recorder.folder.stamp(parts)
        added = DiskUsage(len(parts), size) if stamp is None else DiskUsage(0, max(0, size - stamp.size))
        quota = self.quota
        used = self._usage.get(recorder.task)
        if any(added) and (used is None or quota.is_exceeded_by(_sum(used, added))):
            # Somebody may have cleaned up since it was last counted.
            used = self._usage[recorder.task] = recorder.folder.scan(quota.max_counted).usage
            quota.check(_sum(used, added))
        return added

    @property
    def quota(self) -> Quota:
        """How much each task's folder may hold."""
        config = self._store.registry.current()
        return Quota(config.max_task_files, config.max_task_bytes)

    def entries(self, actor: str, path: str, *, tool: str) -> list[Found]:
        """The entries of the folder at ``path``. The reading is noted as one of ``actor`` by ``tool``. Raises
        `NotFound`, `FolderDenied`."""
        recorder = self._open_recorder(actor)
        found = recorder.folder.entries(path)
        self._store.note_reading(actor, tool, ZONE, recorder.path(()), None)
        return found

    def summary(self, actor: str, *, tool: str) -> FolderSummary:
        """How much there is in the folder of ``actor``, counted up to twice as many files as a task may have.
        The reading is noted as one by ``tool``. Raises `FolderDenied`."""
        recorder = self._open_recorder(actor)
        found = recorder.folder.summary(self.quota.max_counted)
        self._store.note_reading(actor, tool, ZONE, recorder.path(()), None)
        return found

    def record_changes(
        self, actor: str, author: ChangeAuthor = OUTSIDERS, *, until: float | None = None
    ) -> RecordedChanges:
        """Make rows of all that changed in the folder of ``actor``, as made by ``author``; of what may not be
        read, or no path can name, rows that say so once. ``until`` is when to end, by `time.monotonic`: what
        there was no time for is recorded with the next call, as made by the same ``author``."""
        return self._record(self._open_recorder(actor), author, until)

    def record_task_changes(
        self, task: str, author: ChangeAuthor, *, until: float | None = None
    ) -> RecordedChanges:
        """As `record_changes`, with the same ``author`` and ``until``, in the folder of ``task``, which may
        have ended since."""
        return self._record(self._recorder(task), author, until)

    def add_files(
        self, task: str, files: Mapping[str, bytes], author: ChangeAuthor, executables: Collection[str] = ()
    ) -> tuple[list[Row], list[str]]:
        """Lay ``files`` (contents by their paths) into the folder of ``task``, and make rows of them as made
        by ``author``; the ``executables`` among them may be executed. Returns the rows, and the paths where
        something else is, which stays. Raises `TaskNotFound`, `OtherMachine`, `TaskQuotaExceeded`."""
        folder = self._recorder(task).folder
        before = self.record_task_changes(task, OUTSIDERS).usage
        self.quota.check(_sum(before, DiskUsage(len(files), sum(map(len, files.values())))))
        taken = []
        for path, data in files.items():
            try:
                if folder.stamp(_parts(path)) is None:
                    folder.write(path, data, executable=path in executables)
                else:
                    taken.append(path)
            except DeniedError:
                taken.append(path)
        return self.record_task_changes(task, author).rows, taken

    def lay_out_revert(self, task: str, path: str) -> None:
        """Put the newest version of the file at ``path`` in the folder of ``task`` on disk, if a revert made
        it and nobody changed the file since. Raises `FolderDenied`, `NotText`, `TaskNotFound`."""
        self._recorder(task).materialize(_parts(path))

    def record_all(self) -> list[Row]:
        """Make rows of all that changed outside of Watchroom in the folders of tasks. Returns those rows."""
        rows: list[Row] = []
        for task in self._idle_tasks():
            try:
                rows += self._record(self._recorder(task), OUTSIDERS, None).rows
            except IgnoredFilesUnknown as error:
                # `find_differences` names the task; the others are recorded all the same.
                _log.warning("the files of task %s were not recorded: %s", task, error)
        return rows

    def find_differences(self) -> list[str]:
        """Return the paths (``TASK/PATH``) of files that are not as their newest rows say; ``TASK`` where git
        does not say which files it ignores."""
        found: list[str] = []
        for task in self._idle_tasks():
            try:
                found += self._recorder(task).differing(self.quota.max_counted)
            except IgnoredFilesUnknown:
                found.append(task)
        return found

    def close(self) -> None:
        """Close all folders."""
        with self._lock, ExitStack() as stack:
            for recorder in self._recorders.values():
                stack.callback(recorder.close)
            self._recorders.clear()

    def _idle_tasks(self) -> Iterator[str]:
        """The open tasks whose files have rows, and in which no command runs."""
        journal = self._store.journal
        for head in journal.open_items("task"):
            # A damaged task is reported by `verify`; the others are recorded all the same.
            task = head.path
            has_files = (
                self._tasks.has_folder_here(task) and next(journal.heads(ZONE, f"{task}/"), None) is not None
            )
            if has_files and not journal.open_items("command", task):
                yield task

    def _record(self, recorder: TaskRecorder, author: ChangeAuthor, until: float | None) -> RecordedChanges:
        recorded = recorder.record(author, self.quota.max_counted, until)
        self._usage[recorder.task] = recorded.usage
        return recorded

    def _record_file(self, actor: str, recorder: TaskRecorder, parts: Parts) -> tuple[Row | None, bool]:
        """Return the row of a file as it is on disk, written if there is none yet, and whether git ignores
        the file. The row is None if there never was one, or the file is ignored. Call it within
        `_exclusive`."""
        path = recorder.path(parts)
        task, head = self._store.journal.heads_of([("task", recorder.task), (ZONE, path)])
        if task is None or task.version != 1:
            raise WorkspaceNotBound(agent=actor)
        if recorder.is_ignored(parts):
            recorder.forget_ignored(parts, OUTSIDERS, head)
            return None, True
        return recorder.record_file(parts, OUTSIDERS, head), False

    def _exclusive(self, recorder: TaskRecorder) -> AbstractContextManager[None]:
        """Holds off all others who compare a task's folder with its rows."""
        return self._store.journal.exclusive(recorder.lock_key)

    def _open_recorder(self, actor: str) -> TaskRecorder:
        """The recorder of an agent's task, which is open."""
        recorder = self._recorder_of(actor)
        # The folder of a task that has ended may be another one's by now.
        if not self._tasks.is_open(recorder.task):
            raise WorkspaceNotBound(agent=actor)
        return recorder

    def _recorder_of(self, actor: str) -> TaskRecorder:
        """The recorder of an agent's task, which may have ended."""
        task = self.task_of(actor)
        recorder = self._recorders.get(task)
        if recorder is not None:
            folder = recorder.folder.path
        else:
            folder = self._tasks.find_here(task).folder if task and self._tasks.is_open(task) else ""
        if not folder:
            raise WorkspaceNotBound(agent=actor)
        if is_system_folder(folder):
            # Begun before such folders were refused.
            raise InvalidWorkspace(path=folder, rule="of_the_system")
        return recorder or self._recorder(task)

    def _recorder(self, task: str) -> TaskRecorder:
        with self._lock:
            found = self._recorders.get(task)
            if found is None:
                folder = TaskFolder(self._tasks.folder_here(task))
                found = self._recorders[task] = TaskRecorder(self._store, task, folder)
        return found


def _ignored_note(actor: str, tool: str, path: str, data: bytes) -> Note:
    """Return the row of an ignored file that ``actor`` read or wrote as ``data``."""
    detail: dict[str, Json] = {IGNORED: True, "sha256": validation.sha256(data), "size": len(data)}
    return Note(actor, tool, ZONE, path, detail=detail)


def _parts(path: str) -> Parts:
    return tuple(path.split("/"))


def _sum(one: DiskUsage, other: DiskUsage) -> DiskUsage:
    return DiskUsage(one.files + other.files, one.bytes + other.bytes)
