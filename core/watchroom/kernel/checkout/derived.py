"""Version files, histories and metadata of handoffs: files derived from rows, written after the commits."""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Final

from watchroom.errors import JournalDamaged
from watchroom.kernel.checkout.cursor import Cursor
from watchroom.kernel.checkout.layout import (
    CONTROL,
    HISTORY_END,
    HISTORY_START,
    VERSIONED,
    history_line,
    history_place,
    history_text,
    meta_place,
    meta_text,
    oldest_kept,
    place,
    version_place,
)
from watchroom.kernel.checkout.rendering import files_of, verified_content, verify_content
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.kernel.zones import ZONES
from watchroom.model import Row, Zone
from watchroom.platform import Platform
from watchroom.platform.disk import Folder

_CHUNK: Final = 1000
"""Number of rows that are read at a time."""
_BYTES_AT_ONCE: Final = 4_000_000
"""Maximum bytes of contents that are read at a time. A single content may be larger."""
_PASSING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of a full disk or of a machine that lacks resources. The same write may succeed later."""
_BEHIND: Final = "behind"
"""The folder in which earlier releases recorded unwritten histories."""
DERIVED: Final = frozenset(zone for zone, spec in ZONES.items() if spec.versions or spec.has_metadata)
"""The zones in which files are derived from rows."""
_HISTORIES: Final = tuple(zone for zone, spec in ZONES.items() if spec.has_history)
_log = logging.getLogger("watchroom")


def has_derived(row: Row) -> bool:
    """Whether files are derived from ``row``."""
    is_derived = row.version is not None and row.zone in DERIVED
    return is_derived and find_row_flaw(row) is None


class DerivedFiles:
    """Writes the derived files. May be used from any thread. It has its own cursor, at which the next process
    continues after a crash.

    Args:
        root: The workspace's folder.
        journal: The journal with the rows.
        control: The folder of the cursor.
        on_failed: Called with rows whose files could not be written, and the errors.
        platform: The operating system.
    """

    def __init__(
        self,
        root: str,
        journal: Journal,
        control: str,
        on_failed: Callable[[Sequence[tuple[Row, OSError]]], None],
        platform: Platform,
    ) -> None:
        self._journal = journal
        self._on_failed = on_failed
        with ExitStack() as stack:
            self._cursor = stack.enter_context(
                closing(Cursor(os.path.join(control, "behind.lock"), platform))
            )
            self._folder = stack.enter_context(closing(Folder(root, os.path.join(control, "tmp"), platform)))
            self._closing = stack.pop_all()

    def begin(self, seq: int) -> None:
        """Record that all derived files up to row ``seq`` are written, unless a cursor already exists."""
        with self._cursor.hold():
            self._finish_histories()
            if self._cursor.seq is None:
                self._cursor.move(seq)

    def go_back(self, seq: int) -> None:
        """Record that files of rows after ``seq`` may be missing, so that they are written again."""
        with self._cursor.hold():
            self._cursor.move(min(seq, self._cursor.seq or 0))

    def catch_up(self) -> None:
        """Write the files of all rows so far. Raise `WorkspaceLocked`, `JournalError`."""
        with self.settled():
            pass

    def catch_up_if_free(self) -> bool:
        """Write the files of all rows so far, unless another thread or process is writing derived files.
        Return whether it wrote them. Raise `JournalError`."""
        with self._cursor.hold_if_free() as is_held:
            if is_held:
                self._catch_up()
        return is_held

    @contextmanager
    def settled(self) -> Iterator[int]:
        """Write the files of all rows so far, then keep others from writing derived files. Yield the number
        of the last of these rows. Raise `WorkspaceLocked`, `JournalError`."""
        with self._cursor.hold():
            yield self._catch_up()

    def _catch_up(self) -> int:
        """Write the files of all rows so far. Return the number of the last row. The caller must hold the
        cursor."""
        done = self._cursor.seq or 0
        is_whole = True
        while rows := self._journal.rows(done, limit=_CHUNK):
            # Files that cannot be written now are written next time, starting at this row.
            is_whole = self._write(rows) and is_whole
            done = rows[-1].seq
            if is_whole:
                self._cursor.move(done)
        return done

    def rewrite(self, zone: Zone, path: str, head: Row) -> None:
        """Write the derived files of ``path`` in ``zone`` that differ from the journal. ``head``: its current
        version. Raise OSError, `WorkspaceLocked`."""
        with self._cursor.hold():
            for file in files_of(self._journal, head):
                if file.parts != place(zone, path):
                    self._folder.replace_if_other(file.parts, file.data)
            if ZONES[zone].has_history:
                rows = self._journal.history(zone, path)
                self._folder.write(
                    history_place(zone, path), history_text([history_line(row) for row in rows])
                )

    def close(self) -> None:
        self._closing.close()

    def _write(self, rows: list[Row]) -> bool:
        """Write the files of consecutive rows, and the history of each path once. Return False if a temporary
        error prevented a write."""
        changed: dict[tuple[Zone, str], list[Row]] = {}
        failed: dict[tuple[Zone, str], tuple[Row, OSError]] = {}
        for row in filter(has_derived, rows):
            changed.setdefault((row.zone, row.path), []).append(row)
        for (zone, _), versions in changed.items():
            for few in _split(versions) if zone in VERSIONED else ():
                contents = self._contents(few)
                for row in few:
                    with self._noting(row, failed):
                        self._write_version(row, contents[row.seq])
        for row in (versions[-1] for versions in changed.values()):
            with self._noting(row, failed):
                if ZONES[row.zone].has_metadata:
                    self._folder.write(meta_place(row.zone, row.path), meta_text(row))
                if ZONES[row.zone].has_history:
                    self._extend_history(row.zone, row.path)
        if failed:
            self._on_failed([*failed.values()])
        return not any(error.errno in _PASSING for _, error in failed.values())

    @contextmanager
    def _noting(self, row: Row, failed: dict[tuple[Zone, str], tuple[Row, OSError]]) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            failed[row.zone, row.path] = row, error

    def _contents(self, versions: Sequence[Row]) -> Mapping[int, bytes | None]:
        """Return the contents of ``versions``, all of one path, by the number of their row.

        A lost content is None. One query is enough if no content is damaged. Raise `JournalError`.
        """
        first, last = versions[0], versions[-1]
        if first is not last:
            # A damaged content must not hide the others, so read them one by one.
            with suppress(JournalDamaged):
                found = self._journal.versions(
                    first.zone,
                    first.path,
                    after=(first.version or 0) - 1,
                    until=last.version,
                    limit=len(versions),
                )
                known = {row.seq: verify_content(row, content) for row, content in found}
                if all(row.seq in known for row in versions):
                    return known
        # Rows that were not written by the tools can have any version, so the versions may not be
        # consecutive.
        return {row.seq: verified_content(self._journal, row) for row in versions}

    def _write_version(self, row: Row, content: bytes | None) -> None:
        data = b"" if row.deleted else content
        if data is not None:
            self._folder.write(version_place(row), data, new=True)
        if (oldest := oldest_kept(row)) > 1:
            self._folder.remove(version_place(row._replace(version=oldest - 1)))

    def _extend_history(self, zone: Zone, path: str) -> None:
        """Append the missing versions to ``history.json``. The existing bytes stay, so only the end is
        written: see `watchroom.platform.files.rewrite_spare`."""
        data = self._folder.read(history_place(zone, path)) or b""
        kept, last = _kept(data)
        new = self._journal.history(zone, path, after_version=last)
        if new or not data:
            added = ",\n".join(history_line(row) for row in new).encode()
            joint = b",\n" if last and new else b""
            self._folder.write(history_place(zone, path), kept + joint + added + HISTORY_END)

    def _finish_histories(self) -> None:
        """Write the histories that a process of an earlier release did not write."""
        for entry in list(self._folder.walk((CONTROL, _BEHIND))):
            path = (self._folder.read(entry.parts) or b"").decode()
            for zone in _HISTORIES:
                if self._journal.head(zone, path) is not None:
                    self._extend_history(zone, path)
            self._folder.remove(entry.parts)


def _split(versions: Sequence[Row]) -> Iterator[list[Row]]:
    """Split ``versions`` into parts whose contents fit in memory together."""
    part: list[Row] = []
    size = 0
    for row in versions:
        size += row.size or 0
        if part and size > _BYTES_AT_ONCE:
            yield part
            part, size = [], row.size or 0
        part.append(row)
    yield part


def _kept(data: bytes) -> tuple[bytes, int]:
    """Return the bytes of an existing history without their end, and the last version in them."""
    body = data.removesuffix(HISTORY_END)
    if body == data or not data.startswith(HISTORY_START):
        return HISTORY_START, 0
    try:
        return body, int(json.loads(body[body.rindex(b"\n") + 1 :])["version"])
    except (ValueError, KeyError, TypeError):
        return HISTORY_START, 0
