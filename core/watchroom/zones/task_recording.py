"""What changed in a task's folder, made rows, whoever changed it.

Files are compared by their stamps, and read only where those differ. Rows are committed in batches, between
which others can write: no writer waits for more than one of them, whatever a command left behind.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.checkout.edits import EDIT_TOOL
from watchroom.disk import FileStamp, Inspected, Parts
from watchroom.errors import NotText, TooLarge
from watchroom.model import OUTSIDE, REVERT_WORK, Json, Note, Row, Write, timestamp
from watchroom.rules.row_files import find_row_flaw
from watchroom.rules.task_versions import (
    EXECUTABLE,
    EXECUTABLE_BEFORE,
    IGNORED,
    Blob,
    blob_of,
    file_checksum,
    is_executable,
    is_ignored_version,
)
from watchroom.sandbox.errors import FilesSkipped, FolderDenied
from watchroom.sandbox.ignored_files import is_ignored, list_ignored
from watchroom.sandbox.task_folder import DiskUsage, FolderScan, TaskFolder
from watchroom.texts import catalogue
from watchroom.zones.store import Store

ZONE: Final = "file"
POINTER: Final = "no text: its bytes are kept for a while\nsha256 {sha256}\nsize {size}\n"
"""The content of a row whose file is no text; its detail has both, too. The bytes are kept as a blob."""
UNREAD: Final = "not read: larger than 10 MB, or with holes\nsize {size}\nmodified {modified}\n"
"""The content of a row whose file is known by its size and times alone, which its detail has, too."""
BATCH_ROWS: Final = 200
BATCH_BYTES: Final = 1024 * 1024
"""At most so many rows, or a text and what follows up to so many bytes, are committed at once."""
_LEAST_READ: Final = 16 * 1024 * 1024
"""However little time there is, so many bytes or one batch are looked at, so that it ends some day."""
_MOST_NOTED: Final = 100
"""Of so many closed folders there are rows."""
_SETTLED_AFTER: Final = 1_000_000_000
"""A file that was changed less than so many nanoseconds ago is looked into again."""

_log = logging.getLogger("watchroom")


class ChangeAuthor(NamedTuple):
    """Whose changes they are, and the tool by which they were made."""

    actor: str
    tool: str
    message: str = ""
    detail: dict[str, Json] | None = None


OUTSIDERS: Final = ChangeAuthor(OUTSIDE, EDIT_TOOL)


class RecordedChanges(NamedTuple):
    """The rows that were made. ``pending``: how many changes may be left for the next time, because there was
    no more time, or they were going on. ``left_out``: how much no path can name, or may not be looked into;
    0 where that was told before."""

    rows: list[Row]
    pending: int
    left_out: int
    usage: DiskUsage

    @property
    def changed(self) -> list[str]:
        """The paths in the task's folder of the files that have a new version."""
        return changed_paths(self.rows)


def changed_paths(rows: Sequence[Row]) -> list[str]:
    """Return the paths in their task's folder of the files of which these rows are versions. Files that are
    not recorded any more did not change."""
    return [
        row.path.partition("/")[2] for row in rows if row.version is not None and not is_ignored_version(row)
    ]


class _Content(NamedTuple):
    """What a row tells of a file: its text or what stands for it; ``checksum`` is empty of one not read.
    ``data`` are the bytes of what is no text, None where they were not read."""

    stamp: FileStamp
    text: str
    checksum: str
    detail: dict[str, Json]
    data: bytes | None = None

    @property
    def size(self) -> int:
        """How many bytes are kept of it, at least."""
        return len(self.text) + len(self.data or b"")

    @property
    def executable(self) -> bool:
        return EXECUTABLE in self.detail


class _Suspect(NamedTuple):
    """A file that may have changed: its stamp, None where it is gone."""

    path: str
    parts: Parts
    stamp: FileStamp | None
    head: Row | None


class _Change(NamedTuple):
    """A change that is to become a row; ``content`` is None where the file is gone, or ``is_ignored`` from
    now on."""

    suspect: _Suspect
    content: _Content | None
    author: ChangeAuthor
    is_ignored: bool = False


class _Known(NamedTuple):
    """A file that was as its newest row said. Until it is ``settled`` its next change may bear the same time,
    so it is looked into again."""

    stamp: FileStamp
    seq: int
    settled: bool


class TaskRecorder:
    """Records one task's folder. May be used from any thread."""

    def __init__(self, store: Store, task: str, folder: TaskFolder) -> None:
        self.folder = folder
        self._store = store
        self.task = task
        self._known: dict[Parts, _Known] = {}
        """Of each file what it was when it was last looked into."""
        self._authors: dict[Parts, tuple[FileStamp | None, ChangeAuthor]] = {}
        """Of what there was no time for: how it was then, and who had changed it."""
        self._noted: set[Parts] = set()
        """The closed folders of which there are rows."""

    def path(self, parts: Parts) -> str:
        """Where a file has its rows."""
        return f"{self.task}/{validation.escape_unstorable('/'.join(parts), validation.MAX_PATH_BYTES)}"

    def record(self, author: ChangeAuthor, most: int, until: float | None = None) -> RecordedChanges:
        """Make rows of all that changed, as made by ``author``; of what cannot be told, rows that say so
        once. At most ``most`` files are looked at. ``until`` is when to end, by `time.monotonic`: None is
        never."""
        scan = self.folder.scan(most)
        closed = list(scan.unreadable)
        left: list[_Suspect] = []
        suspects, ignored = self._suspects(scan)
        rows: list[Row] = []
        changes = chain(
            (_Change(each, None, self._ignored_by(author), is_ignored=True) for each in ignored),
            self._changes(suspects, author, _Budget(until), closed, left),
        )
        stale = 0
        for batch in _batches(changes):
            made = self._commit(batch)
            rows += made
            stale += len(batch) - len(made)
        self._authors = {each.parts: (each.stamp, self._author_of(each, author)) for each in left}
        told = self._note_left_out(closed, scan.unnameable, author)
        left_out = len(closed) + len(scan.unnameable) if told else 0
        return RecordedChanges([*rows, *told], len(left) + stale, left_out, scan.usage)

    @property
    def lock_key(self) -> str:
        """The key of `Journal.exclusive` for whoever compares the folder with its rows."""
        return f"file/{self.task}"

    def record_file(self, parts: Parts, author: ChangeAuthor, head: Row | None) -> Row | None:
        """The row of the file at ``parts`` as it is on disk, whose newest row is ``head``; one by ``author``
        is made if it has changed. None where there never was one. To be called with `lock_key` held. Raises
        `FolderDenied`."""
        path = self.path(parts)
        suspect = _Suspect(path, parts, self.folder.stamp(parts), head)
        if suspect.head is not None and self._is_known(suspect):
            return suspect.head
        content = self._content(suspect)
        if _is_current(suspect.head, content):
            return suspect.head
        if head is not None and self._is_awaited(head, content):
            self._materialize(head, parts)
            return head
        change = _Change(suspect, content, self._author_of(suspect, author))
        self._keep_blobs([change])
        return self._store.commits.commit(_draft(change)).row

    def is_ignored(self, parts: Parts) -> bool:
        """Return whether git ignores the file at ``parts``. Raises `IgnoredFilesUnknown`."""
        return is_ignored(self.folder.path, parts)

    def forget_ignored(self, parts: Parts, author: ChangeAuthor, head: Row | None) -> None:
        """End the versions of the file at ``parts``, which git ignores, by ``author``, if its newest row
        ``head`` says that it has any. Call it with `lock_key` held."""
        if head is not None and not head.deleted:
            suspect = _Suspect(self.path(parts), parts, None, head)
            change = _Change(suspect, None, self._ignored_by(author), is_ignored=True)
            self._store.commits.commit(_draft(change))

    def _ignored_by(self, author: ChangeAuthor) -> ChangeAuthor:
        """Return ``author`` with the message and the detail of a version that ends an ignored file's."""
        texts = catalogue(self._store.registry.current().language)
        return author._replace(
            message=texts("task_files.ignored"), detail={**(author.detail or {}), IGNORED: True}
        )

    def materialize(self, parts: Parts) -> None:
        """Put the newest version of the file at ``parts`` on disk if a revert made it and the file is as it
        was before that: other contents are an edit, and stay. Raises `FolderDenied`, `NotText`."""
        with self._store.journal.exclusive(self.lock_key):
            head = self._store.journal.head(ZONE, self.path(parts))
            if head is None or find_row_flaw(head) is not None:
                return
            content = self._content(_Suspect(self.path(parts), parts, self.folder.stamp(parts), head))
            if not _is_current(head, content) and self._is_awaited(head, content):
                self._materialize(head, parts)

    def _is_awaited(self, head: Row, content: _Content | None) -> bool:
        """Whether the file, which has the ``content``, is as it was before a revert made ``head`` that has
        not laid it out so far."""
        before = (head.detail.get("before"), head.detail.get(EXECUTABLE_BEFORE, False))
        found = (content.checksum, content.executable) if content is not None else (None, False)
        if head.tool != REVERT_WORK or found != before:
            return False
        revert = self._store.journal.head("revert", str(head.detail.get("revert")))
        return revert is not None and revert.version == 1

    def _materialize(self, head: Row, parts: Parts) -> None:
        path, blob = "/".join(parts), blob_of(head)
        if head.deleted:
            self.folder.remove(path)
            return
        data = self._store.content(head).encode() if blob is None else self._store.journal.blob(blob.sha256)
        if data is None:
            # The file stays as it was before the revert, which is an edit of somebody's from now on.
            _log.warning("the bytes of %s are not kept any more", head.path)
        else:
            self.folder.write(path, data, executable=is_executable(head))

    def differing(self, most: int) -> list[str]:
        """The paths (``TASK/PATH``) of files that are not as their newest rows say."""
        suspects, _ = self._suspects(self.folder.scan(most))
        return [each.suspect.path for each in self._changes(suspects, OUTSIDERS, _Budget(None), [], [])]

    def close(self) -> None:
        self.folder.close()

    def _suspects(self, scan: FolderScan) -> tuple[list[_Suspect], list[_Suspect]]:
        """Return the files that may not be as their newest rows say, and those that have versions although
        git ignores them. Deleted files come first: where a folder took a file's place, the file has to go
        before. Raises `IgnoredFilesUnknown`."""
        # After the scan: what git lists then knows every file that was found.
        ignored = list_ignored(self.folder.path, scan.repositories)
        heads = {head.path: head for head in self._store.journal.heads(ZONE, f"{self.task}/")}
        there: dict[str, _Suspect] = {}
        forgotten: list[_Suspect] = []
        for parts, entry in scan.files:
            path = self.path(parts)
            if ignored.covers(parts):
                head = heads.pop(path, None)
                if head is not None and not head.deleted:
                    forgotten.append(_Suspect(path, parts, None, head))
            elif path in there:
                # A name that is not Unicode, and one that looks as its row would.
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
        # What was just looked into comes last, so that each call goes on where there was no time.
        return [*gone, *sorted(waiting, key=self._was_seen)], forgotten

    def _is_known(self, suspect: _Suspect) -> bool:
        """Whether the file is known, without reading it, to be as its newest row says."""
        head, stamp = suspect.head, suspect.stamp
        if head is None or stamp is None:
            return False
        is_settled = self._was_seen(suspect) and self._known[suspect.parts].settled
        return is_settled or _is_of_stamp(head, stamp)

    def _was_seen(self, suspect: _Suspect) -> bool:
        """Whether the file was as its newest row says when it was last looked into, and has that stamp."""
        known, head = self._known.get(suspect.parts), suspect.head
        return known is not None and head is not None and known[:2] == (suspect.stamp, head.seq)

    def _changes(
        self,
        suspects: Sequence[_Suspect],
        author: ChangeAuthor,
        budget: _Budget,
        closed: list[Parts],
        left: list[_Suspect],
    ) -> Iterator[_Change]:
        """Those of the suspects that changed, each looked into when it is asked for. ``closed`` is told what
        could not be, ``left`` what there was no time for."""
        for number, suspect in enumerate(suspects):
            if budget.is_spent():
                left.extend(each for each in suspects[number:] if not self._was_seen(each))
                return
            try:
                if suspect.stamp is None and self.folder.stamp(suspect.parts) is not None:
                    # It is there, only not where anybody looks.
                    continue
                content = self._content(suspect)
            except FolderDenied:
                closed.append(suspect.parts)
                continue
            budget.count(content)
            if not _is_current(suspect.head, content):
                if suspect.head is not None and self._is_awaited(suspect.head, content):
                    continue
                yield _Change(suspect, content, self._author_of(suspect, author))
            elif content is not None and suspect.head is not None:
                self._remember(suspect.parts, content.stamp, suspect.head)

    def _content(self, suspect: _Suspect) -> _Content | None:
        """What a row would tell of the file, None where it is gone. Raises `FolderDenied`."""
        if suspect.stamp is None:
            return None
        found = self.folder.inspect(suspect.parts)
        return None if found is None else _content(found)

    def _commit(self, batch: Sequence[_Change]) -> list[Row]:
        """Make rows of the changes that still are as they were found."""
        # Before anybody has to wait: of what is no version then nobody will ask.
        self._keep_blobs(batch)
        with self._store.journal.exclusive(self.lock_key):
            current = [each for each in batch if self._is_as_found(each)]
            rows = [each.row for each in self._store.commits.commit_all([_draft(each) for each in current])]
        for change, row in zip(current, rows, strict=True):
            if change.content is None:
                self._known.pop(change.suspect.parts, None)
            else:
                self._remember(change.suspect.parts, change.content.stamp, row)
        return rows

    def _keep_blobs(self, changes: Sequence[_Change]) -> None:
        """Keep the bytes that ``changes`` brought."""
        found = [each.content.data for each in changes if each.content is not None]
        blobs = [data for data in found if data is not None]
        if blobs:
            self._store.journal.keep_blobs(blobs)

    def _is_as_found(self, change: _Change) -> bool:
        suspect = change.suspect
        head = self._store.journal.head(ZONE, suspect.path)
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
            is_settled = time.time_ns() - stamp.changed > _SETTLED_AFTER
            self._known[parts] = _Known(stamp, row.seq, is_settled)

    def _author_of(self, suspect: _Suspect, author: ChangeAuthor) -> ChangeAuthor:
        """Who changed it: of what there was no time for before, whoever had done so then."""
        stamp, before = self._authors.get(suspect.parts, (None, author))
        return before if stamp == suspect.stamp else author

    def _note_left_out(
        self, closed: Sequence[Parts], beyond: Sequence[Parts], author: ChangeAuthor
    ) -> list[Row]:
        """Say of folders that nobody may look into, and of the first of what no path can name, that they are
        left out, once."""
        self._noted.intersection_update(closed)
        new = [parts for parts in closed if parts not in self._noted][: _MOST_NOTED - len(self._noted)]
        self._noted.update(new)
        notes = [_note(author, FolderDenied.code, self.path(parts)) for parts in new]
        if beyond:
            path = self.path(beyond[0])
            last = self._store.journal.refused(ZONE, path, limit=1)
            if not last or last[0].error != FilesSkipped.code:
                notes.append(_note(author, FilesSkipped.code, path, {"count": len(beyond)}))
        return [each.row for each in self._store.commits.commit_all(notes)]


class _Budget:
    """How long to go on: until a time, but never without having looked at something."""

    def __init__(self, until: float | None) -> None:
        self._until = until
        self._files = 0
        self._bytes = 0

    def count(self, content: _Content | None) -> None:
        self._files += 1
        self._bytes += content.stamp.size if content is not None and content.checksum else 0

    def is_spent(self) -> bool:
        has_begun = self._files >= BATCH_ROWS or self._bytes >= _LEAST_READ
        return has_begun and self._until is not None and time.monotonic() >= self._until


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


def _content(found: Inspected) -> _Content:
    stamp = found.stamp
    rights: dict[str, Json] = {EXECUTABLE: True} if found.executable else {}
    if found.data is None:
        text = UNREAD.format(size=stamp.size, modified=timestamp(found.modified))
        times: dict[str, Json] = {"modified": found.modified, "changed": stamp.changed}
        return _Content(stamp, text, "", {"size": stamp.size, **times, **rights})
    checksum = validation.sha256(found.data)
    try:
        return _Content(stamp, validation.decode_text(found.data), checksum, rights)
    except (NotText, TooLarge):
        blob = Blob(checksum, len(found.data))
        pointer = POINTER.format(**blob.detail)
        return _Content(stamp, pointer, checksum, {**blob.detail, **rights}, found.data)


def _is_current(head: Row | None, content: _Content | None) -> bool:
    """Whether the file is as its newest row says; both are None where there is none and never was."""
    if head is None or head.deleted:
        return content is None
    if content is None or is_executable(head) != content.executable:
        return False
    if not content.checksum:
        return _is_of_stamp(head, content.stamp)
    return "changed" not in head.detail and file_checksum(head) == content.checksum


def _is_of_stamp(head: Row, stamp: FileStamp) -> bool:
    """Whether the row is of a file that was not read, of that very size and time."""
    if '"changed"' not in head.detail_json:
        return False
    detail = head.detail
    return (detail.get("changed"), detail.get("size")) == (stamp.changed, stamp.size)


def _draft(change: _Change) -> Write:
    suspect, content, author, _ = change
    version = (suspect.head.version or 0) if suspect.head else 0
    text = None if content is None else content.text
    detail = {**(author.detail or {}), **(content.detail if content is not None else {})}
    return Write(author.actor, author.tool, ZONE, suspect.path, text, author.message, version, detail)


def _note(author: ChangeAuthor, error: str, path: str, more: dict[str, Json] | None = None) -> Note:
    detail = {**(author.detail or {}), **(more or {})}
    return Note(author.actor, author.tool, ZONE, path, "failed", error, author.message, detail=detail)
