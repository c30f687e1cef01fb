"""`TaskFiles`: the files in the folders of tasks. Every version of a file becomes a row.

Agents, their commands and people write there. Before a file is read or replaced, unrecorded changes on disk
are recorded. So no text is lost, and a command's changes are recorded as its agent's.

Files are compared by their stamps, and read only if those differ. Rows are committed in batches, and others
can write between two batches. So a writer waits for one batch at most, even if a command left many changes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import chain
from threading import Lock
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import (
    DeniedError,
    FileIgnored,
    FilesSkipped,
    FolderDenied,
    IgnoredFileChanged,
    IgnoredFilesUnknown,
    InvalidWorkspace,
    JournalError,
    NotFound,
    OutcomeUnknown,
    TaskQuotaExceeded,
    VersionConflict,
    WatchroomError,
    WorkspaceNotBound,
)
from watchroom.features.config.store import Store
from watchroom.features.tasks.folder import (
    DiskUsage,
    FolderScan,
    FolderSummary,
    TaskFolder,
    normalize_task_path,
)
from watchroom.features.tasks.ignored_files import is_ignored, list_ignored
from watchroom.features.tasks.rows import COMMAND, FILE, TASK
from watchroom.features.tasks.service import Tasks
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.edits import EDIT_TOOL
from watchroom.kernel.checkout.file_content import (
    FileContent,
    describe_file,
    is_before_revert,
    is_current,
    is_of_stamp,
)
from watchroom.kernel.rules.file_versions import (
    EXECUTABLE,
    IGNORED,
    is_executable,
    is_ignored_version,
)
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.model import OUTSIDE, UNCHECKED, WRITE_FILE, Json, Note, Row, Write
from watchroom.platform.disk import FileStamp, Found, Parts
from watchroom.platform.sandbox.system_folders import is_system_folder
from watchroom.texts import catalogue

BATCH_ROWS: Final = 200
"""The maximum number of rows in a commit."""
BATCH_BYTES: Final = 1024 * 1024
"""Bytes in a commit, above which no further file is added."""
_MIN_READ_BYTES: Final = 16 * 1024 * 1024
"""Minimum number of bytes to read in each call, so that recording makes progress. A call with a full batch of
rows may read less."""
_MAX_NOTED_FOLDERS: Final = 100
"""The maximum number of unreadable folders with a row."""
_SETTLED_NANOSECONDS: Final = 1_000_000_000
"""Nanoseconds after a file's last change in which the file is always read again, because a further change
could have the same time stamp."""
_IGNORED_TOOLS: Final = ("read_file", WRITE_FILE)
"""The tools that show an agent a file that git ignores."""

_log = logging.getLogger("watchroom")


class Quota(NamedTuple):
    """The limits of a task's folder. ``files``: the number of files, folders and symlinks. ``bytes``: the
    size on disk."""

    files: int
    bytes: int

    @property
    def max_counted(self) -> int:
        """The maximum number of files that are counted or recorded."""
        return 2 * self.files

    def is_exceeded_by(self, usage: DiskUsage) -> bool:
        """Return whether ``usage`` is above a limit."""
        return usage.files > self.files or usage.bytes > self.bytes

    def check(self, usage: DiskUsage) -> None:
        """Raise `TaskQuotaExceeded` if ``usage`` is above a limit."""
        if self.is_exceeded_by(usage):
            raise TaskQuotaExceeded(**self.error_values(usage))

    def error_values(self, usage: DiskUsage) -> dict[str, int]:
        """Return the values of a `TaskQuotaExceeded` for this ``usage``. Sizes are in MB."""
        return {
            "files": usage.files,
            "most_files": self.files,
            "megabytes": -(-usage.bytes // 1_000_000),
            "most_megabytes": self.bytes // 1_000_000,
        }


class ChangeAuthor(NamedTuple):
    """The author of changes, and the ``message`` and ``detail`` of the rows that record them."""

    call: CallContext
    message: str = ""
    detail: dict[str, Json] | None = None


OUTSIDERS: Final = ChangeAuthor(CallContext(OUTSIDE, EDIT_TOOL))
"""The author of external edits."""


class RecordedChanges(NamedTuple):
    """The rows that recorded changes.

    - ``pending``: the number of changes that the next call records, because the time was up or files kept
      changing.
    - ``left_out``: the number of files and folders that cannot be named or read, 0 if a row already records
      that.
    """

    rows: list[Row]
    pending: int
    left_out: int
    usage: DiskUsage

    @property
    def changed(self) -> list[str]:
        """The paths of files with a new version, relative to the task's folder. Ignored files are not
        included."""
        return [
            row.path.partition("/")[2]
            for row in self.rows
            if row.version is not None and not is_ignored_version(row)
        ]


class TaskFiles:
    """The files in the folders of ``tasks``. May be used from any thread.

    A path is relative to the task's folder, with ``/`` between its parts. Methods with a ``call`` act in the
    folder of the caller's task. They raise these errors:

    - `WorkspaceNotBound`: the caller has no open task with a folder.
    - `InvalidWorkspace`: the folder belongs to the system.
    - `OtherMachine`: the folder is on another machine.
    - `PathTraversalBlocked`, `InvalidPath`: a path that was passed is refused.
    """

    def __init__(self, store: Store, tasks: Tasks) -> None:
        self._store = store
        self._tasks = tasks
        self._recorders: dict[str, FolderRecorder] = {}
        self._usage: dict[str, DiskUsage] = {}
        """The disk usage of each task at the last count, plus the size of later writes."""
        self._lock = Lock()

    def task_of(self, call: CallContext) -> str:
        """Return the id of the caller's task; empty if it has none."""
        agent = self._store.registry.current(call).agents.get(call.actor)
        return agent.task if agent else ""

    def agent_folder(self, call: CallContext) -> str:
        """Return the absolute path of the caller's working folder."""
        return self._open_recorder(call).folder.path

    def task_folder(self, task: str) -> str:
        """Return the absolute path of the folder of ``task``, empty if it has none. Raise `TaskNotFound`."""
        return self._tasks.find(task).folder

    def read(self, call: CallContext, path: str) -> tuple[str, Row | None]:
        """Return the text of the file at ``path`` on disk, and the row of that version. The read is recorded.

        The row is None if git ignores the file. Raise `NotFound`, `NotText`, `TooLarge`, `FolderDenied`,
        `IgnoredFilesUnknown`.
        """
        recorder = self._recorder_of(call)
        path = normalize_task_path(path)
        parts = _parts(path)
        with recorder.exclusive():
            row, is_ignored = recorder.record_file(call, parts)
            content = recorder.folder.read(path)
        if row is not None:
            self._store.note_reading(call, FILE, row.path, row.version)
        elif is_ignored:
            note = _ignored_note(call, recorder.path(parts), validation.encode_text(content))
            self._store.commits.note(note._replace(durable=False))
        else:
            raise NotFound(path=path, zone=recorder.folder.path)
        return content, row

    def row_path(self, call: CallContext, path: str) -> str:
        """Return the path of the rows of the file at ``path``: ``TASK/PATH``."""
        return self._open_recorder(call).path(_parts(normalize_task_path(path)))

    def current_row(self, call: CallContext, path: str) -> Row | None:
        """Return the row of the file at ``path`` as it is on disk; None if there never was a file. The read
        is not recorded.

        Raise `FolderDenied`, `FileIgnored`, `IgnoredFilesUnknown`.
        """
        recorder = self._recorder_of(call)
        parts = _parts(normalize_task_path(path))
        with recorder.exclusive():
            row, is_ignored = recorder.record_file(call, parts)
        if is_ignored:
            raise FileIgnored(path=path)
        return row

    def write(
        self,
        call: CallContext,
        path: str,
        content: str,
        *,
        message: str = "",
        expected: int = UNCHECKED,
    ) -> Row:
        """Create or replace the file at ``path`` with the text ``content``.

        - ``message``: for the row of the new version.
        - ``expected``: the version that must be current; default: any.

        Return the row of the new version. If git ignores the file, the row is not a version, and has only the
        checksum of the text. Raise the errors of `read` except `NotFound`, and `VersionConflict`,
        `TaskQuotaExceeded`. For an ignored file, raise `FileIgnored` if a version is ``expected``, and
        `IgnoredFileChanged` if the caller has not seen its current text.
        """
        recorder = self._recorder_of(call)
        path = normalize_task_path(path)
        parts = _parts(path)
        data = validation.encode_text(content)
        added = self._check_quota(recorder, parts, len(data))
        with recorder.exclusive():
            head, is_ignored = recorder.record_file(call, parts)
            if is_ignored:
                if expected != UNCHECKED:
                    raise FileIgnored(path=path)
                row = self._write_ignored(call, recorder, path, data)
                self._add_usage(recorder.task, added)
                return row
            rights: dict[str, Json] = {EXECUTABLE: True} if is_executable(head) else {}
            draft = call.write(FILE, recorder.path(parts), content, message, expected, rights or None)
            if expected not in (UNCHECKED, (head.version or 0) if head else 0):
                current = self._store.content(head) if head and not head.deleted else None
                raise VersionConflict(self._store.write(draft).row, head, current, content)
            # The append also checks them, but only after the file is written.
            self._store.check_conditions(draft)
            before = recorder.folder.inspect(parts)
            recorder.folder.write(path, data, executable=is_executable(head))
            with recorder.folder.restored_if_refused(parts, before):
                row = self._store.write(draft).row
        self._add_usage(recorder.task, added)
        return row

    def _write_ignored(self, call: CallContext, recorder: FolderRecorder, path: str, data: bytes) -> Row:
        """Write ``data`` to the ignored file at ``path``.

        No version of its current text is kept, so the caller must have read or written that text last.
        """
        parts = _parts(path)
        note = _ignored_note(call, recorder.path(parts), data)
        present = recorder.folder.inspect(parts)
        if present is not None and present.data != data:
            found = None if present.data is None else validation.sha256(present.data)
            if found is None or found != self._last_seen_checksum(call.actor, note.path):
                raise IgnoredFileChanged(path=path)
        self._store.check_conditions(call.write(FILE, note.path, None))
        executable = present is not None and present.executable
        texts = catalogue(self._store.registry.current(call).language)
        recorder.folder.write(path, data, executable=executable)
        with recorder.folder.restored_if_refused(parts, present):
            return self._store.commits.commit(note._replace(message=texts("task_files.not_recorded"))).row

    def _last_seen_checksum(self, actor: str, path: str) -> Json:
        """Return the checksum of the ignored file when ``actor`` last read or wrote it, None if the actor
        never did. ``path``: the path of the file's rows."""
        self._store.commits.flush(actor)
        notes = self._store.journal.last_notes([(FILE, path, actor, tool) for tool in _IGNORED_TOOLS])
        seen = [note for note in notes if note is not None and note.detail.get(IGNORED) is True]
        return max(seen, key=lambda note: note.seq).detail.get("sha256") if seen else None

    def keeps_text(self, call: CallContext, path: str) -> bool:
        """Return whether rows can contain the text of the file at ``path``. False if git ignores the file, or
        if that is unknown."""
        try:
            return not self._recorder_of(call).is_ignored(_parts(normalize_task_path(path)))
        except IgnoredFilesUnknown:
            return False
        except WatchroomError:
            # The file does not exist.
            return True

    def _add_usage(self, task: str, added: DiskUsage) -> None:
        used = self._usage.get(task)
        if used is not None:
            self._usage[task] = _sum(used, added)

    def _check_quota(self, recorder: FolderRecorder, parts: Parts, size: int) -> DiskUsage:
        """Return the disk usage that a file of ``size`` bytes adds to its task's folder. Raise
        `TaskQuotaExceeded`."""
        stamp = recorder.folder.stamp(parts)
        added = DiskUsage(len(parts), size) if stamp is None else DiskUsage(0, max(0, size - stamp.size))
        quota = self.quota
        used = self._usage.get(recorder.task)
        if any(added) and (used is None or quota.is_exceeded_by(_sum(used, added))):
            # Files may have been removed since the last count.
            used = self._usage[recorder.task] = recorder.folder.scan(quota.max_counted).usage
            quota.check(_sum(used, added))
        return added

    @property
    def quota(self) -> Quota:
        """The limits of each task's folder."""
        config = self._store.registry.current()
        return Quota(config.max_task_files, config.max_task_bytes)

    def entries(self, call: CallContext, path: str) -> list[Found]:
        """Return the entries of the folder at ``path``. The read is recorded. Raise `NotFound`,
        `FolderDenied`."""
        recorder = self._open_recorder(call)
        found = recorder.folder.entries(path)
        self._store.note_reading(call, FILE, recorder.path(()), None)
        return found

    def summary(self, call: CallContext) -> FolderSummary:
        """Return the number and size of the files in the caller's folder. The read is recorded. Raise
        `FolderDenied`.

        Files are counted up to twice the quota.
        """
        recorder = self._open_recorder(call)
        found = recorder.folder.summary(self.quota.max_counted)
        self._store.note_reading(call, FILE, recorder.path(()), None)
        return found

    def record_changes(
        self, call: CallContext, author: ChangeAuthor = OUTSIDERS, *, until: float | None = None
    ) -> RecordedChanges:
        """Record all changes in the caller's folder, as made by ``author``. Files that cannot be read or
        named are recorded once as left out.

        ``until``: the deadline, by `time.monotonic`. The next call records the rest, by the same ``author``.
        """
        return self._record(self._open_recorder(call), author, until)

    def record_task_changes(
        self, task: str, author: ChangeAuthor, *, until: float | None = None
    ) -> RecordedChanges:
        """Record the changes as in `record_changes`, in the folder of ``task``, which may have ended
        since."""
        return self._record(self._recorder(task), author, until)

    def add_files(
        self, task: str, files: Mapping[str, bytes], author: ChangeAuthor, executables: Collection[str] = ()
    ) -> tuple[list[Row], list[str]]:
        """Write ``files`` into the folder of ``task``, and record them as made by ``author``.

        - ``files``: contents by path. An existing file is not replaced.
        - ``executables``: the paths of executable files.

        Return the rows, and the paths that were not written because they already exist. Raise `TaskNotFound`,
        `OtherMachine`, `TaskQuotaExceeded`.
        """
        recorder = self._recorder(task)
        folder = recorder.folder
        before = self.record_task_changes(task, OUTSIDERS).usage
        self.quota.check(_sum(before, DiskUsage(len(files), sum(map(len, files.values())))))
        taken: list[str] = []
        written: dict[str, FileStamp | None] = {}
        try:
            for path, data in files.items():
                try:
                    if folder.stamp(_parts(path)) is None:
                        folder.write(path, data, executable=path in executables)
                        written[path] = folder.stamp(_parts(path))
                    else:
                        taken.append(path)
                except DeniedError:
                    taken.append(path)
            return self.record_task_changes(task, author).rows, taken
        except OutcomeUnknown:
            raise
        except Exception:
            # Otherwise they would become external edits, and could not be added again.
            self._remove_unrecorded(recorder, written)
            raise

    def _remove_unrecorded(self, recorder: FolderRecorder, written: Mapping[str, FileStamp | None]) -> None:
        """Remove the files that were just written and have no row, unless another program has changed them
        since. ``written``: their stamps, by path. Raise OSError."""
        heads = self._store.journal.heads_of([(FILE, recorder.path(_parts(path))) for path in written])
        for (path, stamp), head in zip(written.items(), heads, strict=True):
            if (head is None or head.deleted) and recorder.folder.stamp(_parts(path)) == stamp:
                recorder.folder.remove(path)

    def materialize_revert(self, task: str, path: str) -> None:
        """Write the newest version of the file at ``path`` to the folder of ``task``, if a revert made it.

        A file that changed after the revert is left alone. Raise `FolderDenied`, `NotText`, `TaskNotFound`.
        """
        self._recorder(task).materialize(_parts(path))

    def record_all(self) -> list[Row]:
        """Record all external edits in the folders of tasks in which no command runs. Return the rows."""
        rows: list[Row] = []
        for task in self._idle_tasks():
            try:
                rows += self._record(self._recorder(task), OUTSIDERS, None).rows
            except IgnoredFilesUnknown as error:
                # `find_differences` reports the task.
                _log.warning("the files of task %s were not recorded: %s", task, error)
        return rows

    def find_differences(self) -> list[str]:
        """Return the paths (``TASK/PATH``) of files that differ from their newest rows.

        ``TASK`` alone means all files of the task: git does not report which of them it ignores.
        """
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
        """Yield the open tasks whose files have rows, and in which no command runs."""
        journal = self._store.journal
        for head in journal.open_items(TASK):
            # `verify` reports a damaged task.
            task = head.path
            has_files = (
                self._tasks.has_folder_here(task) and next(journal.heads(FILE, f"{task}/"), None) is not None
            )
            if has_files and not journal.open_items(COMMAND, task):
                yield task

    def _record(self, recorder: FolderRecorder, author: ChangeAuthor, until: float | None) -> RecordedChanges:
        recorded = recorder.record(author, self.quota.max_counted, until)
        self._usage[recorder.task] = recorded.usage
        return recorded

    def _open_recorder(self, call: CallContext) -> FolderRecorder:
        """Return the recorder of the caller's task. Raise `WorkspaceNotBound` if the task has ended."""
        recorder = self._recorder_of(call)
        # The folder of an ended task may now belong to another task.
        if not self._tasks.is_open(recorder.task):
            raise WorkspaceNotBound(agent=call.actor)
        return recorder

    def _recorder_of(self, call: CallContext) -> FolderRecorder:
        """Return the recorder of the caller's task. The task may have ended."""
        task = self.task_of(call)
        recorder = self._recorders.get(task)
        if recorder is not None:
            folder = recorder.folder.path
        else:
            folder = self._tasks.find_here(task).folder if task and self._tasks.is_open(task) else ""
        if not folder:
            raise WorkspaceNotBound(agent=call.actor)
        if is_system_folder(folder):
            # An older version allowed such folders.
            raise InvalidWorkspace(path=folder, rule="of_the_system")
        return recorder or self._recorder(task)

    def _recorder(self, task: str) -> FolderRecorder:
        with self._lock:
            found = self._recorders.get(task)
            if found is None:
                folder = TaskFolder(self._tasks.folder_here(task))
                found = self._recorders[task] = FolderRecorder(self._store, task, folder)
        return found


class _Suspect(NamedTuple):
    """A file that may have changed. ``stamp``: None if the file was removed."""

    path: str
    parts: Parts
    stamp: FileStamp | None
    head: Row | None


class _Change(NamedTuple):
    """A change to record. ``content``: None if the file was removed, or if git now ignores it
    (``is_ignored``)."""

    suspect: _Suspect
    content: FileContent | None
    author: ChangeAuthor
    is_ignored: bool = False


class _Known(NamedTuple):
    """A file that equalled its newest row. ``is_settled``: a further change cannot have the same time, so the
    file is not read again."""

    stamp: FileStamp
    seq: int
    is_settled: bool


class FolderRecorder:
    """Records the changes in one task's folder. May be used from any thread."""

    def __init__(self, store: Store, task: str, folder: TaskFolder) -> None:
        self.folder = folder
        self._store = store
        self.task = task
        self._known: dict[Parts, _Known] = {}
        """The state of each file at the last read."""
        self._authors: dict[Parts, tuple[FileStamp | None, ChangeAuthor]] = {}
        """For each pending change, the file's state and the author."""
        self._noted: set[Parts] = set()
        """The unreadable folders with a row."""

    def path(self, parts: Parts) -> str:
        """Return the path of a file's rows."""
        return f"{self.task}/{validation.escape_unstorable('/'.join(parts), validation.MAX_PATH_BYTES)}"

    def record(self, author: ChangeAuthor, max_files: int, until: float | None = None) -> RecordedChanges:
        """Record all changes as made by ``author``. Files that cannot be read or named are recorded once as
        left out.

        - ``max_files``: the maximum number of files to compare.
        - ``until``: the deadline, by `time.monotonic`; None for no limit.
        """
        scan = self.folder.scan(max_files)
        unreadable = list(scan.unreadable)
        left: list[_Suspect] = []
        suspects, ignored = self._suspects(scan)
        rows: list[Row] = []
        changes = chain(
            (_Change(each, None, self._ignored_by(author), is_ignored=True) for each in ignored),
            self._changes(suspects, author, _Budget(until), unreadable, left),
        )
        stale = 0
        try:
            for batch in _batches(changes):
                committed = self._commit(batch)
                rows += committed
                stale += len(batch) - len(committed)
        except JournalError:
            # A later call records what was refused. It is still by this author.
            self._authors = {each.parts: (each.stamp, self._author_of(each, author)) for each in suspects}
            raise
        self._authors = {each.parts: (each.stamp, self._author_of(each, author)) for each in left}
        notes = self._note_left_out(unreadable, scan.unnameable, author)
        left_out = len(unreadable) + len(scan.unnameable) if notes else 0
        return RecordedChanges([*rows, *notes], len(left) + stale, left_out, scan.usage)

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep others from comparing the folder with its rows while the context lasts."""
        return self._store.journal.exclusive(f"file/{self.task}")

    def record_file(self, call: CallContext, parts: Parts) -> tuple[Row | None, bool]:
        """Record an external edit of the file at ``parts``. Return the file's row, and whether git ignores
        the file.

        The row is None if there never was a file, or if the file is ignored. The caller holds `exclusive`.
        Raise `WorkspaceNotBound` if the task has ended, `FolderDenied`, `IgnoredFilesUnknown`.
        """
        path = self.path(parts)
        task, head = self._store.journal.heads_of([(TASK, self.task), (FILE, path)])
        if task is None or task.version != 1:
            raise WorkspaceNotBound(agent=call.actor)
        if self.is_ignored(parts):
            if head is not None and not head.deleted:
                forgotten = _Suspect(path, parts, None, head)
                change = _Change(forgotten, None, self._ignored_by(OUTSIDERS), is_ignored=True)
                self._store.commits.commit(_draft(change))
            return None, True
        suspect = _Suspect(path, parts, self.folder.stamp(parts), head)
        if head is not None and self._is_known(suspect):
            return head, False
        content = self._content(suspect)
        if is_current(head, content):
            return head, False
        if head is not None and is_before_revert(self._store.journal, head, content):
            self._materialize(head, parts)
            return head, False
        change = _Change(suspect, content, self._author_of(suspect, OUTSIDERS))
        self._keep_blobs([change])
        return self._store.commits.commit(_draft(change)).row, False

    def is_ignored(self, parts: Parts) -> bool:
        """Return whether git ignores the file at ``parts``. Raise `IgnoredFilesUnknown`."""
        return is_ignored(self.folder.path, parts)

    def _ignored_by(self, author: ChangeAuthor) -> ChangeAuthor:
        """Return ``author`` with the message and detail of the version that ends the versions of a newly
        ignored file."""
        texts = catalogue(self._store.registry.current().language)
        return author._replace(
            message=texts("task_files.ignored"), detail={**(author.detail or {}), IGNORED: True}
        )

    def materialize(self, parts: Parts) -> None:
        """Write the newest version of the file at ``parts`` to disk, if a revert made it.

        The file must be unchanged since the revert. Any other content is an edit, and is kept. Raise
        `FolderDenied`, `NotText`.
        """
        with self.exclusive():
            head = self._store.journal.head(FILE, self.path(parts))
            if head is None or find_row_flaw(head) is not None:
                return
            content = self._content(_Suspect(self.path(parts), parts, self.folder.stamp(parts), head))
            if not is_current(head, content) and is_before_revert(self._store.journal, head, content):
                self._materialize(head, parts)

    def _materialize(self, head: Row, parts: Parts) -> None:
        path = "/".join(parts)
        if head.deleted:
            self.folder.remove(path)
            return
        data = self._store.read_bytes(head)
        if data is None:
            # The file keeps its content from before the revert, and from now on counts as an edit.
            _log.warning("the bytes of %s are not kept any more", head.path)
        else:
            self.folder.write(path, data, executable=is_executable(head))

    def differing(self, max_files: int) -> list[str]:
        """Return the paths (``TASK/PATH``) of files that differ from their newest rows."""
        suspects, _ = self._suspects(self.folder.scan(max_files))
        return [each.suspect.path for each in self._changes(suspects, OUTSIDERS, _Budget(None), [], [])]

    def close(self) -> None:
        self.folder.close()

    def _suspects(self, scan: FolderScan) -> tuple[list[_Suspect], list[_Suspect]]:
        """Return the files that may differ from their newest rows, and the ignored files that have versions.

        Deleted files come first: if a folder took a file's place, the file must be deleted before. Raise
        `IgnoredFilesUnknown`.
        """
        # Call git after the scan, so that its list covers every file that was found.
        ignored = list_ignored(self.folder.path, scan.repositories)
        heads = {head.path: head for head in self._store.journal.heads(FILE, f"{self.task}/")}
        there: dict[str, _Suspect] = {}
        forgotten: list[_Suspect] = []
        for parts, entry in scan.files:
            path = self.path(parts)
            if ignored.covers(parts):
                head = heads.pop(path, None)
                if head is not None and not head.deleted:
                    forgotten.append(_Suspect(path, parts, None, head))
            elif path in there:
                # Another name, which is not valid Unicode, is escaped to the same path.
                scan.unnameable.append(parts)
            else:
                there[path] = _Suspect(path, parts, entry.stamp, heads.pop(path, None))
        hidden = tuple(self.path(parts) + "/" for parts in scan.unreadable)
        gone = [
            _Suspect(path, tuple(path.split("/")[1:]), None, head)
            for path, head in heads.items()
            if not head.deleted and not path.startswith(hidden) and find_row_flaw(head) is None
        ]
        waiting = [each for each in there.values() if not self._is_known(each)]
        # Files that were just read come last, so that each call continues where the last one stopped.
        return [*gone, *sorted(waiting, key=self._was_seen)], forgotten

    def _is_known(self, suspect: _Suspect) -> bool:
        """Return whether the file is known to equal its newest row without reading it."""
        head, stamp = suspect.head, suspect.stamp
        if head is None or stamp is None:
            return False
        is_settled = self._was_seen(suspect) and self._known[suspect.parts].is_settled
        return is_settled or is_of_stamp(head, stamp)

    def _was_seen(self, suspect: _Suspect) -> bool:
        """Return whether the file equalled its newest row at the last read, and still has the same stamp."""
        known, head = self._known.get(suspect.parts), suspect.head
        return known is not None and head is not None and known[:2] == (suspect.stamp, head.seq)

    def _changes(
        self,
        suspects: Sequence[_Suspect],
        author: ChangeAuthor,
        budget: _Budget,
        unreadable: list[Parts],
        left: list[_Suspect],
    ) -> Iterator[_Change]:
        """Yield the suspects that changed. Each is read lazily.

        - ``unreadable``: receives the suspects that cannot be read.
        - ``left``: receives the suspects that were not reached in time.
        """
        for number, suspect in enumerate(suspects):
            if budget.is_spent():
                left.extend(each for each in suspects[number:] if not self._was_seen(each))
                return
            try:
                if suspect.stamp is None and self.folder.stamp(suspect.parts) is not None:
                    # It exists, but the scan does not cover its place.
                    continue
                content = self._content(suspect)
            except FolderDenied:
                unreadable.append(suspect.parts)
                continue
            budget.count(content)
            if not is_current(suspect.head, content):
                if suspect.head is not None and is_before_revert(self._store.journal, suspect.head, content):
                    continue
                yield _Change(suspect, content, self._author_of(suspect, author))
            elif content is not None and suspect.head is not None:
                self._remember(suspect.parts, content.stamp, suspect.head)

    def _content(self, suspect: _Suspect) -> FileContent | None:
        """Return the file's content as a row describes it, None if the file was removed. Raise
        `FolderDenied`."""
        if suspect.stamp is None:
            return None
        found = self.folder.inspect(suspect.parts)
        return None if found is None else describe_file(found)

    def _commit(self, batch: Sequence[_Change]) -> list[Row]:
        """Commit the changes whose files are unchanged since they were found. Return their rows."""
        # Before the lock, so that nobody waits for it. Blobs without a version do no harm.
        self._keep_blobs(batch)
        with self.exclusive():
            current = [each for each in batch if self._is_as_found(each)]
            rows = [each.row for each in self._store.commits.commit_all([_draft(each) for each in current])]
        for change, row in zip(current, rows, strict=True):
            if change.content is None:
                self._known.pop(change.suspect.parts, None)
            else:
                self._remember(change.suspect.parts, change.content.stamp, row)
        return rows

    def _keep_blobs(self, changes: Sequence[_Change]) -> None:
        """Keep the bytes of binary files in ``changes``."""
        found = [each.content.data for each in changes if each.content is not None]
        blobs = [data for data in found if data is not None]
        if blobs:
            self._store.journal.blobs.keep(blobs)

    def _is_as_found(self, change: _Change) -> bool:
        suspect = change.suspect
        head = self._store.journal.head(FILE, suspect.path)
        if (head and head.seq) != (suspect.head and suspect.head.seq):
            return False
        if change.is_ignored:
            return True
        try:
            return self.folder.stamp(suspect.parts) == (change.content and change.content.stamp)
        except FolderDenied:
            return False

    def _remember(self, parts: Parts, stamp: FileStamp, row: Row) -> None:
        if row.version is not None:
            is_settled = time.time_ns() - stamp.changed > _SETTLED_NANOSECONDS
            self._known[parts] = _Known(stamp, row.seq, is_settled)

    def _author_of(self, suspect: _Suspect, author: ChangeAuthor) -> ChangeAuthor:
        """Return the author of a change. A pending change keeps its author."""
        stamp, before = self._authors.get(suspect.parts, (None, author))
        return before if stamp == suspect.stamp else author

    def _note_left_out(
        self, unreadable: Sequence[Parts], unnameable: Sequence[Parts], author: ChangeAuthor
    ) -> list[Row]:
        """Record once the folders that cannot be read, and the first file that cannot be named."""
        self._noted.intersection_update(unreadable)
        new = [parts for parts in unreadable if parts not in self._noted]
        new = new[: _MAX_NOTED_FOLDERS - len(self._noted)]
        notes = [_note(author, FolderDenied.code, self.path(parts)) for parts in new]
        if unnameable:
            path = self.path(unnameable[0])
            last = self._store.journal.refused(FILE, path, limit=1)
            if not last or last[0].error != FilesSkipped.code:
                notes.append(_note(author, FilesSkipped.code, path, {"count": len(unnameable)}))
        rows = [each.row for each in self._store.commits.commit_all(notes)]
        self._noted.update(new)
        return rows


class _Budget:
    """The time for a call. It never runs out before a minimum of files was read."""

    def __init__(self, until: float | None) -> None:
        self._until = until
        self._files = 0
        self._bytes = 0

    def count(self, content: FileContent | None) -> None:
        self._files += 1
        self._bytes += content.stamp.size if content is not None and content.checksum else 0

    def is_spent(self) -> bool:
        has_progress = self._files >= BATCH_ROWS or self._bytes >= _MIN_READ_BYTES
        return has_progress and self._until is not None and time.monotonic() >= self._until


def _batches(changes: Iterator[_Change]) -> Iterator[list[_Change]]:
    batch: list[_Change] = []
    size = 0
    for change in changes:
        batch.append(change)
        size += change.content.size if change.content is not None else 0
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _draft(change: _Change) -> Write:
    suspect, content, author, _ = change
    version = (suspect.head.version or 0) if suspect.head else 0
    text = None if content is None else content.text
    detail = {**(author.detail or {}), **(content.detail if content is not None else {})}
    return author.call.write(FILE, suspect.path, text, author.message, version, detail)


def _note(author: ChangeAuthor, error: str, path: str, more: dict[str, Json] | None = None) -> Note:
    detail = {**(author.detail or {}), **(more or {})}
    return author.call.note(FILE, path, "failed", error, author.message, detail=detail)


def _ignored_note(call: CallContext, path: str, data: bytes) -> Note:
    """Return a draft that records a read or write of an ignored file with the content ``data``."""
    detail: dict[str, Json] = {IGNORED: True, "sha256": validation.sha256(data), "size": len(data)}
    return call.note(FILE, path, detail=detail)


def _parts(path: str) -> Parts:
    return tuple(path.split("/"))


def _sum(one: DiskUsage, other: DiskUsage) -> DiskUsage:
    return DiskUsage(one.files + other.files, one.bytes + other.bytes)
