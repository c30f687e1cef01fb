"""Lays rows out as files after their commit, and lays out any earlier state elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from watchroom import validation
from watchroom.checkout.histories import Histories
from watchroom.checkout.layout import (
    CONTROL,
    REALTIME,
    ROOTS,
    VERSIONS,
    checkpoint_place,
    has_files,
    history_line,
    history_place,
    history_text,
    is_edited,
    meta_place,
    meta_text,
    oldest_kept,
    place,
    version_place,
)
from watchroom.disk import Folder, Parts
from watchroom.errors import JournalError
from watchroom.journal import Journal
from watchroom.model import SHARED, Row, Zone


class Overwritten(NamedTuple):
    """A file that was not as the journal had laid it, when a newer version replaced it."""

    zone: Zone
    path: str
    data: bytes
    base: int


class NewVersion(NamedTuple):
    """A row that makes a version, its content (None: the path is gone), and the head that it followed."""

    row: Row
    content: str | None
    head: Row | None


class Laid(NamedTuple):
    """What happened while rows were laid out: strange files replaced, and rows that could not be laid."""

    overwritten: list[Overwritten]
    failed: list[tuple[Row, OSError]]


class Tree:
    """The files of the workspace at ``root``. Not for two threads at a time, except to read."""

    def __init__(self, root: str, journal: Journal) -> None:
        control = os.path.join(root, CONTROL)
        self.folder = Folder(root, os.path.join(control, "tmp"))
        self._journal = journal
        self._histories = Histories(self.folder, journal, control)

    def make_folders(self, agents: Iterable[str]) -> None:
        """The folders of spec 1 §8, one for each agent among them."""
        for parts in (*ROOTS.values(), VERSIONS, REALTIME):
            self.folder.make(parts)
        for agent in agents:
            self.folder.make((*ROOTS["private"], agent))

    def current(self, zone: Zone, path: str) -> bytes | None:
        """The file of a path as it is on disk, None where there is none. Raises `NotAFile`, OSError."""
        return self.folder.read(place(zone, path))

    def other_spelling(self, zone: Zone, path: str) -> str | None:
        """The file that a path would be on a disk which takes upper and lower case for one, where it has
        another name there; else None."""
        parts = checkpoint_place(path) if zone == "realtime" else place(zone, path)
        other = self.folder.other_spelling(parts)
        return None if other is None else "/".join(other)

    def is_blocked(self, zone: Zone, path: str) -> bool:
        """Whether something other than a folder stands where a folder of the path should be."""
        return self.folder.is_blocked(place(zone, path))

    def lay(self, versions: list[NewVersion]) -> Laid:
        """Lay out new versions. Of several of one path, only the last becomes the current file."""
        laid = Laid([], [])
        first: dict[tuple[Zone, str], Row | None] = {}
        newest: dict[tuple[Zone, str], Row] = {}
        for row, _, head in versions:
            first.setdefault((row.zone, row.path), head)
            newest[row.zone, row.path] = row
        for row, content, _ in versions:
            key = (row.zone, row.path)
            try:
                if row.zone in SHARED:
                    self._lay_version(row, content or "")
                if newest[key] is row:
                    self._lay_current(row, content, first[key], laid)
            except OSError as error:
                laid.failed.append((row, error))
        return laid

    def edits_since(self, after: int, until: int) -> list[Overwritten]:
        """Files that are no version of theirs, of the paths that rows with after < seq ≤ until changed."""
        found = []
        for (zone, path), checksums in self._touched(after, until).items():
            if not is_edited(zone):
                continue
            try:
                data = self.current(zone, path)
            except OSError:
                continue
            if data is not None and validation.sha256(data) not in checksums:
                head = self._journal.head(zone, path)
                found.append(Overwritten(zone, path, data, (head.version or 0) if head else 0))
        return found

    def finish(self, after: int, until: int) -> list[tuple[Row, OSError]]:
        """Lay out the rows with after < seq ≤ until, of which a writer that died may have laid some."""
        failed = []
        for zone, path in self._touched(after, until):
            try:
                self.lay_again(zone, path)
            except OSError as error:
                head = self._journal.head(zone, path)
                if head is not None:
                    failed.append((head, error))
        return failed

    def _touched(self, after: int, until: int) -> dict[tuple[Zone, str], set[str | None]]:
        """The paths that those rows changed, each with the checksums its file may have had meanwhile."""
        touched: dict[tuple[Zone, str], set[str | None]] = {}
        while after < until:
            for row in self._journal.rows(after, until=until):
                after = row.seq
                if row.version is None or not has_files(row.zone):
                    continue
                if (row.zone, row.path) not in touched:
                    before = self._journal.version(row.zone, row.path, row.version - 1)
                    touched[row.zone, row.path] = {before.sha256} if before else set()
                touched[row.zone, row.path].add(row.sha256)
        return touched

    def _lay_version(self, row: Row, content: str) -> None:
        self.folder.write(version_place(row), content.encode(), new=True)
        if row.zone == "collab":
            self._histories.add(row)
        elif (oldest := oldest_kept(row)) > 1:
            self.folder.remove(version_place(row._replace(version=oldest - 1)))

    def _lay_current(self, row: Row, content: str | None, head: Row | None, laid: Laid) -> None:
        parts = place(row.zone, row.path)
        if content is None:
            previous = self.folder.read(parts)
            self.folder.remove(parts)
        else:
            previous = self.folder.write(parts, content.encode())
        if row.zone == "handoff":
            self.folder.write(meta_place(row.path), meta_text(row))
        if not is_edited(row.zone) or previous is None:
            return
        if validation.sha256(previous) not in {head and head.sha256, row.sha256}:
            base = (head.version or 0) if head else 0
            laid.overwritten.append(Overwritten(row.zone, row.path, previous, base))

    def lay_again(self, zone: Zone, path: str, *, current: bool = True) -> None:
        """Put the current version of one path back as the journal has it, with all that belongs to it.

        A content that is broken in the journal replaces no file. ``current`` False leaves the file itself
        as it is, and lays only what belongs to it.
        """
        head = self._journal.head(zone, path)
        if current and (head is None or head.deleted):
            self.folder.remove(place(zone, path))
        if head is None:
            return
        for parts, data in _views(self._journal, head):
            is_wanted = current or parts != place(zone, path)
            if is_wanted and self.folder.read(parts) != data:
                self.folder.write(parts, data)
        if zone == "collab":
            self._histories.rewrite(path)

    def history_is_behind(self, path: str) -> bool:
        """Whether ``history.json`` of a collaborative file is still to be written, behind its commits."""
        return self._histories.is_behind(path)

    def catch_up_after_crash(self) -> None:
        """Finish what a writer that died had begun."""
        self.folder.clear_scratch(older_than=3600.0)
        self._histories.catch_up_after_crash()

    def close(self) -> None:
        """Write what is still behind, and close."""
        self._histories.close()
        self.folder.close()


def export(journal: Journal, as_of: int, target: str) -> int:
    """Lay the tree out under ``target`` as it stood at row ``as_of``. Returns how many files agents
    and people had then: versions, histories, metadata and the configuration are not counted."""
    # Documents need the engine, slow to load: whoever lays out only files does without.
    from watchroom.checkout.document_replica import ZONE, DocumentReplica

    folder = Folder(target, os.path.join(target, CONTROL, "tmp"))
    count = 0
    try:
        for zone in ROOTS:
            for head in journal.heads(zone, as_of=as_of):
                if head.deleted:
                    continue
                for parts, data in _views(journal, head):
                    folder.write(parts, data)
                    count += zone != "config" and parts == place(zone, head.path)
                if zone == "collab":
                    rows = journal.history("collab", head.path, limit=head.version)
                    folder.write(history_place(head.path), history_text([history_line(row) for row in rows]))
        for head in journal.heads(ZONE, as_of=as_of):
            document = DocumentReplica(head.path, journal, until=head.version)
            folder.write(checkpoint_place(head.path), document.checkpoint())
            count += 1
    finally:
        folder.close()
    return count


def whole_content(journal: Journal, row: Row) -> bytes | None:
    """The content of a row; None where the journal has lost it, or it is not what its checksum says."""
    try:
        content = journal.content(row.seq)
    except JournalError:
        return None
    data = None if content is None else content.encode()
    return data if data is not None and validation.sha256(data) == row.sha256 else None


def _views(journal: Journal, head: Row) -> Iterator[tuple[Parts, bytes]]:
    """Every file that belongs to a path, but its history; those whose content is broken are left out."""
    current = None if head.deleted else whole_content(journal, head)
    if current is not None:
        yield place(head.zone, head.path), current
    if head.zone == "handoff" and not head.deleted:
        yield meta_place(head.path), meta_text(head)
    if head.zone in SHARED:
        gone = oldest_kept(head) - 1
        for row in journal.history(
            head.zone, head.path, after_version=gone, limit=(head.version or 0) - gone
        ):
            data = b"" if row.deleted else whole_content(journal, row)
            if data is not None:
                yield version_place(row), data
