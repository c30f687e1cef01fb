"""Writes rows as files. A cursor over the journal marks the last written row; any process can move it.

``.watchroom/lock`` is the checkout's lock, and contains the cursor. Its holder writes the files of all rows
after the cursor in order, including rows of other processes. So no older version replaces a newer version,
and the next process writes the files that a dead process left out.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, takewhile
from threading import Lock
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import WatchroomError, WorkspaceLocked
from watchroom.kernel.background import Background
from watchroom.kernel.checkout.cursor import Cursor
from watchroom.kernel.checkout.derived import DERIVED, DerivedFiles, has_derived
from watchroom.kernel.checkout.edits import EDIT_TOOL, OVERWRITTEN_TOOL, edit_note
from watchroom.kernel.checkout.host import CheckoutHost
from watchroom.kernel.checkout.layout import (
    CHECKPOINTS,
    CONTROL,
    EDITED,
    ROOTS,
    VERSIONED,
    checkpoint_place,
    place,
)
from watchroom.kernel.checkout.rendering import verified_content
from watchroom.kernel.journal import Journal
from watchroom.kernel.journal.edits import edits, last_revert, reverted_edit
from watchroom.kernel.rules.conflicts import NOT_A_FILE, checkout_of
from watchroom.kernel.rules.file_versions import is_executable
from watchroom.kernel.rules.row_files import find_edit_flaw, find_row_flaw
from watchroom.kernel.zones import ZONES
from watchroom.model import OUTSIDE, REVERT, SYSTEM, Appended, Draft, Json, Note, Row, Write, Zone
from watchroom.platform import Platform
from watchroom.platform.disk import Folder, Parts, ScratchUnavailable
from watchroom.platform.files import NotAFile

LAY_OUT_TOOL: Final = "lay_out"
DERIVED_SECONDS: Final = 0.25
"""Seconds between a commit and its version files and history. No call waits for them.

A history is read as a whole. With 20 ms, the CPU time for these files doubled.
"""
_CHUNK: Final = 1000
"""Number of rows that are read at a time."""
_WRITTEN_BACK: Final = 120 * 10**9
"""Nanoseconds after which a system has surely written unsynced files to the disk. Linux takes 35 s."""
_MAX_FAILURES: Final = 1000
"""Maximum number of rows whose write errors are kept."""
_OBSTACLES: Final = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EEXIST, errno.ENOTEMPTY})
_log = logging.getLogger("watchroom")


class _Committed(NamedTuple):
    """A row of this process whose file is not written yet, its content, and the head before it."""

    row: Row
    content: str | None
    head: Row | None


class _Change(NamedTuple):
    """A path that rows changed: its newest row, and the checksums that its file can have without an external
    edit.

    ``base``: the version before these rows.
    """

    row: Row
    checksums: set[str | None]
    base: int


class _Known(NamedTuple):
    """A range: the rows first ≤ seq ≤ last were all appended by this process."""

    first: int
    last: int


class Materializer:
    """Writes the files of a workspace. May be used from any thread.

    Args:
        root: The workspace's folder.
        journal: The journal with the rows.
        append: Appends rows about external edits and about files that could not be written.
        background: Runs work that no commit waits for: see `DerivedFiles`.
        host: Knows whether this checkout is the workspace's host.
        platform: The operating system.
        counts: Returns whether a person's decision counts.
    """

    def __init__(
        self,
        root: str,
        journal: Journal,
        append: Callable[[Sequence[Draft]], list[Appended]],
        background: Background,
        host: CheckoutHost,
        platform: Platform,
        counts: Callable[[Row], bool],
    ) -> None:
        control = os.path.join(root, CONTROL)
        self._journal = journal
        self._append = append
        self._background = background
        self._host = host
        self.counts: Final = counts
        """Whether a person's decision counts."""
        self._noting = Lock()
        self._is_held_up = False
        self._is_behind = False
        """Whether rows of this process have version files or histories that are still unwritten."""
        self._known = _Known(0, -1)
        self._pending: dict[int, _Committed] = {}
        self._failures: dict[int, str] = {}
        with ExitStack() as stack:
            self._cursor = stack.enter_context(closing(Cursor(os.path.join(control, "lock"), platform)))
            self.folder = stack.enter_context(closing(Folder(root, os.path.join(control, "tmp"), platform)))
            derived = DerivedFiles(root, journal, control, self._note_failures, platform)
            self.derived = stack.enter_context(closing(derived))
            self._closing = stack.pop_all()

    def make_folders(self, agents: Iterable[str]) -> None:
        """Create the folders of all zones, and one for each of ``agents``. Raise OSError."""
        versions = [ZONES[zone].versions for zone in VERSIONED]
        for parts in (*ROOTS.values(), *versions, *CHECKPOINTS.values()):
            self.folder.make(parts)
        for agent in agents:
            self.folder.make((*ROOTS["private"], agent))

    def current(self, zone: Zone, path: str) -> bytes | None:
        """The bytes of the file of ``path`` in ``zone`` on disk, None if there is none. Raise `NotAFile`,
        OSError."""
        return self.folder.read(place(zone, path))

    def is_executable(self, zone: Zone, path: str) -> bool | None:
        """Whether the file of ``path`` in ``zone`` is executable; None without a file. Raise OSError."""
        return self.folder.is_executable(place(zone, path))

    def is_blocked(self, zone: Zone, path: str) -> bool:
        """Whether something other than a folder is above the file of ``path`` in ``zone``. Raise OSError,
        and `NotAFile` if something other than a file is at its place."""
        return self.folder.is_blocked(place(zone, path))

    def other_spelling(self, zone: Zone, path: str) -> str | None:
        """Return the existing file whose name differs from ``path`` in ``zone`` only by case. None if there
        is none. Only if the disk does not distinguish case."""
        parts = checkpoint_place(zone, path) if zone in CHECKPOINTS else place(zone, path)
        other = self.folder.other_spelling(parts)
        return None if other is None else "/".join(other)

    def begin(self) -> bool:
        """Update all files to the state of the journal when a workspace is opened. Raise `WorkspaceLocked`,
        `JournalError`.

        Return whether the machine was restarted since they were written. Then unsynced files may be lost.
        """
        self.folder.clear_scratch(older_than=3600.0)
        with self._cursor.hold():
            has_restarted = self._cursor.is_of_earlier_boot
            self.derived.begin(self._cursor.seq or 0)
            last = self._journal.last_seq()
            if has_restarted and (newest := self._journal.row(last)) is not None:
                self.derived.go_back(self._journal.seq_at(max(0, newest.time - _WRITTEN_BACK)))
            self._catch_up(last)
        self.derived.catch_up()
        return has_restarted

    def catch_up(self) -> None:
        """Write the files of all rows so far, including rows of other machines, and the derived files. Raise
        `WorkspaceLocked`, `JournalError`."""
        last = self._journal.last_seq()
        if last > (self._cursor.seq or 0):
            with self._cursor.hold(unless_past=last) as is_held:
                if is_held:
                    self._catch_up(last)
            self.derived.catch_up()

    def add(self, drafts: Sequence[Draft], appended: Sequence[Appended]) -> None:
        """Remember that this process appended ``appended``, the outcomes of ``drafts`` in the same order."""
        is_derived = False
        new: set[int] = set()
        for draft, (row, head) in zip(drafts, appended, strict=True):
            new.add(row.seq)
            if row.version is not None and row.zone in ROOTS:
                self._pending[row.seq] = _Committed(row, draft.content, head)
                is_derived = is_derived or row.zone in DERIVED
        numbers = sorted(new)
        last = first = numbers[-1]
        # Existing rows with the same keys are not new.
        while len(numbers) > 1 and numbers[-2] == first - 1:
            first = numbers.pop() - 1
        with self._noting:
            if first == self._known.last + 1:
                first = self._known.first
            self._known = _Known(first, last)
        if is_derived:
            self._is_behind = True
            self._background.schedule("derived files", self._write_derived, DERIVED_SECONDS)

    def _write_derived(self) -> None:
        """Write version files and histories. If another process is writing them, do it later."""
        self._is_behind = False
        try:
            is_done = self.derived.catch_up_if_free()
        except BaseException:
            self._is_behind = True
            raise
        if not is_done:
            self._is_behind = True
            self._background.schedule("derived files", self._write_derived, DERIVED_SECONDS)

    def check(self, drafts: Sequence[Draft]) -> None:
        """Raise `WorkspaceLocked` if ``drafts`` have files, and another process still holds the cursor since
        an earlier commit timed out."""
        if self._is_held_up and any(isinstance(each, Write) and each.zone in ROOTS for each in drafts):
            with self._cursor.hold_again():
                self._catch_up(self._journal.last_seq())
                self._is_held_up = False

    def materialize(self, appended: Sequence[Appended]) -> None:
        """Write the files of the rows in ``appended``. No error is raised: the rows exist, and the next
        process that holds the cursor continues."""
        waiting = [each.row.seq for each in appended if each.row.seq in self._pending]
        if not waiting:
            return
        try:
            with self._cursor.hold(unless_past=max(waiting)) as is_held:
                if is_held:
                    self._catch_up(max(waiting))
                else:
                    self._forget(max(waiting))
        except WorkspaceLocked as error:
            self._is_held_up = True
            _log.warning("files are not written: %s", error.message())
        except Exception:  # noqa: BLE001  # the cursor has not moved past what is missing
            _log.exception("files could not be written")

    @contextmanager
    def settled(self) -> Iterator[int]:
        """Write the files of all rows so far, then keep others from writing files. Yield the number of the
        last of these rows. Not re-entrant. Raise `WorkspaceLocked`, `JournalError`."""
        with self._cursor.hold():
            last = self._journal.last_seq()
            self._catch_up(last)
            yield max(last, self._cursor.seq or 0)

    def rematerialize(self, zone: Zone, path: str, *, current: bool = True) -> None:
        """Write the current version of ``path`` in ``zone`` again, with its derived files, within `settled`.

        Damaged content in the journal does not replace a file, and a row that breaks the rules of its zone is
        not written. If ``current`` is false, only the derived files are written. Raise OSError,
        `WorkspaceLocked`.
        """
        head = self._journal.head(zone, path)
        if (find_edit_flaw(zone, path) if head is None else find_row_flaw(head)) is not None:
            return
        if current:
            data = None if head is None or head.deleted else verified_content(self._journal, head)
            if head is None or head.deleted:
                self.folder.remove(place(zone, path))
            elif data is not None:
                self.folder.replace_if_other(place(zone, path), data, executable=is_executable(head))
        if head is not None and has_derived(head):
            self.derived.rewrite(zone, path, head)

    def close(self) -> None:
        """Write the missing version files, and close the files. The background must be closed. If no other
        process holds the cursor, move it past rows without files."""
        with self._closing:
            try:
                if self._is_behind:
                    self.derived.catch_up()
                with self._cursor.hold_if_free() as is_held:
                    if is_held:
                        self._catch_up(self._journal.last_seq())
            except (WatchroomError, OSError):
                # The cursors have not moved: the next process that opens the workspace continues there.
                _log.exception("the last files could not be written")

    def _catch_up(self, until: int) -> None:
        """Write the files of the rows after the cursor, at least up to row ``until``. The caller must hold
        the cursor.

        Rows by `OUTSIDE` describe the disk of the checkout that they name: that file already exists.
        """
        done = self._cursor.seq or 0
        if done >= until:
            self._forget(done)
            return
        known = self._known
        if known.first <= done + 1 and known.last >= until:
            rows = [self._pending[seq].row for seq in sorted([*self._pending]) if done < seq <= known.last]
            self._materialize(rows)
            done = known.last
            self._cursor.move(done)
        else:
            # Some of the rows are from other processes.
            while rows := self._journal.rows(done, limit=_CHUNK):
                self._materialize([row for row in rows if row.version is not None and row.zone in ROOTS])
                if self._journal.is_shared:
                    self._revert_edits([row for row in rows if row.tool == REVERT])
                done = rows[-1].seq
                self._cursor.move(done)
        self._forget(done)

    def _forget(self, done: int) -> None:
        """Forget the rows up to ``done``, because their files are written."""
        for seq in [*self._pending]:
            if seq <= done:
                self._pending.pop(seq, None)

    def _materialize(self, rows: Sequence[Row]) -> None:
        """Write the newest version of each path that ``rows`` changed.

        Rows that break the rules of their zone are skipped: `verify` reports them.
        """
        failed: list[tuple[Row, OSError]] = []
        for change in self._changes(rows):
            if not self._host.made_edit(change.row):
                try:
                    self._replace(change)
                except OSError as error:
                    failed.append((change.row, error))
        if failed:
            self._note_failures(failed)

    def _revert_edits(self, reverts: Sequence[Row]) -> None:
        """Replace external edits of this checkout that a person reverted on another machine with the
        journal's version.

        Rows of ``reverts`` that do not count are skipped.
        """
        for revert in reverts:
            edit = reverted_edit(self._journal, revert, self.counts)
            if edit is None or not self._host.made_edit(edit) or checkout_of(revert) == self._host.id:
                continue
            if edit.zone not in ROOTS or find_edit_flaw(edit.zone, edit.path) is not None:
                continue
            head = self._journal.head(edit.zone, edit.path)
            try:
                data = self.current(edit.zone, edit.path)
                if edit.sha256 != (None if data is None else validation.sha256(data)):
                    continue
                if head is None:
                    self.folder.remove(place(edit.zone, edit.path))
                elif find_row_flaw(head) is None:
                    # Somebody may be editing the file again at this moment.
                    self._replace(_Change(head, {edit.sha256, head.sha256}, head.version or 0))
            except OSError as error:
                # Then the edit is found again, as a new edit.
                _log.warning("%s %s could not be written again: %s", edit.zone, edit.path, error)

    def _changes(self, rows: Sequence[Row]) -> Iterable[_Change]:
        changes: dict[tuple[Zone, str], _Change] = {}
        for row in rows:
            flaw = find_row_flaw(row)
            if flaw is not None:
                _log.warning("row %d makes no file: it breaks the rule %s", row.seq, flaw)
                continue
            known = changes.get((row.zone, row.path))
            if known is None:
                committed = self._pending.get(row.seq)
                head = committed.head if committed is not None else self._version_before(row)
                known = _Change(row, {head.sha256 if head else None}, (head.version or 0) if head else 0)
            known.checksums.add(row.sha256)
            changes[row.zone, row.path] = known._replace(row=row)
        return changes.values()

    def _version_before(self, row: Row) -> Row | None:
        return self._journal.version(row.zone, row.path, (row.version or 0) - 1)

    def _replace(self, change: _Change) -> None:
        """Write the content of the newest row. Raise OSError.

        An external edit of the file is first recorded as a row, so that a crash of this process cannot lose
        it.
        """
        row, parts = change.row, place(change.row.zone, change.row.path)
        shown: list[bytes | None] = []

        executable = is_executable(row)

        def look(old: bytes | None) -> bool:
            shown.append(old)
            self._keep_edit(change, old)
            return data != old or (self.folder.is_executable(parts) or False) != executable

        if row.deleted:
            self._keep_edit(change, self._old(parts))
            # A later edit is also recorded.
            self.folder.remove(parts, look=lambda old: self._keep_edit(change, old))
            return
        committed = self._pending.get(row.seq)
        if committed is not None and committed.content is not None:
            data: bytes | None = committed.content.encode()
        else:
            data = verified_content(self._journal, row)
        if data is None:
            return
        replaced = self.folder.write(
            parts, data, look=look if row.zone in EDITED else None, executable=executable
        )
        if shown and replaced is not None and replaced != shown[0]:
            # Somebody wrote the file in the instant between the check and the replacement.
            self._keep_edit(change, replaced)

    def _old(self, parts: Parts) -> bytes | None:
        try:
            return self.folder.read(parts)
        except OSError:
            # It is not a file. Removing it fails, and that is reported.
            return None

    def _keep_edit(self, change: _Change, data: bytes | None) -> None:
        """Record ``data`` as a row if it is an external edit that the journal lacks."""
        row = change.row
        if data is None or row.zone not in EDITED or validation.sha256(data) in change.checksums:
            return
        if not self.is_kept(row.zone, row.path, data):
            detail = self._host.edit_detail()
            tool = OVERWRITTEN_TOOL
            self._append([edit_note(row.zone, row.path, data, tool=tool, base=change.base, detail=detail)])

    def is_kept(self, zone: Zone, path: str, data: bytes) -> bool:
        """Whether the journal has ``data`` as an external edit of ``path`` in ``zone``, or as a version. An
        old version stays on disk if a later version could not be written."""
        checksum = validation.sha256(data)
        reverted = self.last_revert(zone, path)
        kept = takewhile(lambda row: row.seq > reverted, edits(self._journal, zone, path))
        return any(row.sha256 == checksum for row in chain(kept, self._journal.history(zone, path)))

    def last_revert(self, zone: Zone, path: str) -> int:
        """Return the number of the newest row in which a person reverted an edit of ``path`` in ``zone`` in
        this checkout, 0 if there is none. Raise `JournalError`."""
        return last_revert(self._journal, zone, path, self._host.made_edit, self.counts)

    def record_written(self, row: Row) -> None:
        """Record that the files of ``row`` are now written, after an earlier failure."""
        if was_not_written(self._journal, row):
            self._append([Note(SYSTEM, LAY_OUT_TOOL, row.zone, row.path, detail={"row": row.seq})])

    def layout_failure(self, row: Row) -> str:
        """The reason why this process could not write the files of ``row``; empty if the last attempt did not
        fail."""
        return self._failures.get(row.seq, "")

    def _note_failures(self, failed: Sequence[tuple[Row, OSError]]) -> None:
        """Record once each row whose files could not be written."""
        notes = []
        for row, error in failed:
            _log.error("the files of row %d could not be written: %s", row.seq, error)
            self._failures[row.seq] = str(error.strerror or error)
            while len(self._failures) > _MAX_FAILURES:
                del self._failures[next(iter(self._failures))]
            if was_not_written(self._journal, row):
                continue
            detail: dict[str, Json] = {"row": row.seq, "reason": str(error.strerror or error)}
            notes.append(
                Note(SYSTEM, LAY_OUT_TOOL, row.zone, row.path, "failed", "not_laid_out", detail=detail)
            )
            if _is_obstacle(error) and row.version is not None and row.zone in EDITED:
                notes.append(
                    Note(
                        OUTSIDE,
                        EDIT_TOOL,
                        row.zone,
                        row.path,
                        "failed",
                        NOT_A_FILE,
                        base=row.version,
                        detail=self._host.edit_detail(),
                    )
                )
        if notes:
            self._append(notes)


def _is_obstacle(error: OSError) -> bool:
    """Return whether ``error`` reports an obstacle: an entry at the place that is not a file, or an entry
    above it that is not a folder."""
    if isinstance(error, ScratchUnavailable):
        return False
    return isinstance(error, NotAFile) or error.errno in _OBSTACLES


def was_not_written(journal: Journal, row: Row) -> bool:
    """Whether the newest record in ``journal`` about the files of ``row`` is that they could not be
    written."""
    lately = journal.refused(row.zone, row.path, limit=20)
    failed = [each.seq for each in lately if each.tool == LAY_OUT_TOOL and each.detail.get("row") == row.seq]
    if not failed:
        return False
    repaired = journal.last_note(row.zone, row.path, SYSTEM, LAY_OUT_TOOL)
    return repaired is None or repaired.seq < failed[0]
