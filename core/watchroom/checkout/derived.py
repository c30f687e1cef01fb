"""Version files, histories and metadata of handoffs: derived from rows, written behind the commits."""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Final

from watchroom.checkout.cursor import Cursor
from watchroom.checkout.layout import (
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
from watchroom.checkout.rendering import files_of, verified_content, verify_content
from watchroom.disk import Folder
from watchroom.errors import JournalDamaged
from watchroom.journal import Journal
from watchroom.model import Row, Zone
from watchroom.platforms import Platform
from watchroom.rules.row_files import find_row_flaw

_CHUNK: Final = 1000
"""Rows that are read at a time."""
_BYTES_AT_ONCE: Final = 4_000_000
"""Of contents that are read at a time, unless one is larger."""
_PASSING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of a disk that is full, or of a machine that is short of something: they end without our doing."""
_BEHIND: Final = "behind"
"""The folder in which earlier releases noted which histories were still to be written."""
_log = logging.getLogger("watchroom")


def has_derived(row: Row) -> bool:
    """Whether files are derived from ``row``."""
    is_derived = row.version is not None and (row.zone in VERSIONED or row.zone == "handoff")
    return is_derived and find_row_flaw(row) is None


class DerivedFiles:
    """Follows ``journal`` with a cursor of its own, in the folder ``control``: ``root`` is the workspace's.

    A process that dies leaves the cursor where it was, so that the next one goes on from there. ``refused``
    is called with rows whose files could not be written, and why. May be used from any thread.
    """

    def __init__(
        self,
        root: str,
        journal: Journal,
        control: str,
        refused: Callable[[Sequence[tuple[Row, OSError]]], None],
        platform: Platform,
    ) -> None:
        self._journal = journal
        self._refused = refused
        with ExitStack() as stack:
            self._cursor = stack.enter_context(
                closing(Cursor(os.path.join(control, "behind.lock"), platform))
            )
            self._folder = stack.enter_context(closing(Folder(root, os.path.join(control, "tmp"), platform)))
            self._closing = stack.pop_all()

    def begin(self, seq: int) -> None:
        """Say that all derived files up to row ``seq`` are there, where nobody has said anything yet."""
        with self._cursor.hold():
            self._finish_histories()
            if self._cursor.seq is None:
                self._cursor.move(seq)

    def go_back(self, seq: int) -> None:
        """Say that files of rows after ``seq`` may be missing: they are written again."""
        with self._cursor.hold():
            self._cursor.move(min(seq, self._cursor.seq or 0))

    def catch_up(self) -> None:
        """Write the files of all rows so far. Raises `WorkspaceLocked`, `JournalError`."""
        with self.settled():
            pass

    @contextmanager
    def settled(self) -> Iterator[int]:
        """Keep everyone else from writing these files, once those of all rows so far are there; yields the
        number of the last of these rows. Raises `WorkspaceLocked`, `JournalError`."""
        with self._cursor.hold():
            done = self._cursor.seq or 0
            is_whole = True
            while rows := self._journal.rows(done, limit=_CHUNK):
                # What fails for now is done again from here on, the next time.
                is_whole = self._write(rows) and is_whole
                done = rows[-1].seq
                if is_whole:
                    self._cursor.move(done)
            yield done

    def rewrite(self, zone: Zone, path: str, head: Row) -> None:
        """Write all derived files of ``path`` in ``zone`` anew, where they are not as the journal says;
        ``head`` is its current version. Raises OSError, `WorkspaceLocked`."""
        with self._cursor.hold():
            for file in files_of(self._journal, head):
                if file.parts != place(zone, path):
                    self._folder.replace_if_other(file.parts, file.data)
            if zone == "collab":
                rows = self._journal.history(zone, path)
                self._folder.write(history_place(path), history_text([history_line(row) for row in rows]))

    def close(self) -> None:
        self._closing.close()

    def _write(self, rows: list[Row]) -> bool:
        """Write the files of rows that follow on each other; of several of one path, the history once.
        Returns whether none failed by what may pass."""
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
                if row.zone == "handoff":
                    self._folder.write(meta_place(row.path), meta_text(row))
                elif row.zone == "collab":
                    self._extend_history(row.path)
        if failed:
            self._refused([*failed.values()])
        return not any(error.errno in _PASSING for _, error in failed.values())

    @contextmanager
    def _noting(self, row: Row, failed: dict[tuple[Zone, str], tuple[Row, OSError]]) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            failed[row.zone, row.path] = row, error

    def _contents(self, versions: Sequence[Row]) -> Mapping[int, bytes | None]:
        """Return the contents of ``versions``, all of one path, by the number of their row; None for one that
        the journal has lost. One query, unless something is broken. Raises `JournalError`."""
        first, last = versions[0], versions[-1]
        if first is not last:
            # What is broken must not take the others with it: they are asked for one by one then.
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
        # Rows written past the tools can have any version: these are no range.
        return {row.seq: verified_content(self._journal, row) for row in versions}

    def _write_version(self, row: Row, content: bytes | None) -> None:
        data = b"" if row.deleted else content
        if data is not None:
            self._folder.write(version_place(row), data, new=True)
        if (oldest := oldest_kept(row)) > 1:
            self._folder.remove(version_place(row._replace(version=oldest - 1)))

    def _extend_history(self, path: str) -> None:
        """Add the versions that ``history.json`` lacks, keeping the bytes that it has."""
        data = self._folder.read(history_place(path)) or b""
        kept, last = _kept(data)
        new = self._journal.history("collab", path, after_version=last)
        if new or not data:
            added = ",\n".join(history_line(row) for row in new).encode()
            joint = b",\n" if last and new else b""
            self._folder.write(history_place(path), kept + joint + added + HISTORY_END)

    def _finish_histories(self) -> None:
        """Write the histories that a process of an earlier release left behind."""
        for entry in list(self._folder.walk((CONTROL, _BEHIND))):
            path = self._folder.read(entry.parts)
            if path is not None:
                self._extend_history(path.decode())
            self._folder.remove(entry.parts)


def _split(versions: Sequence[Row]) -> Iterator[list[Row]]:
    """``versions`` in parts whose contents may be in memory together."""
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
    """The bytes of an existing history that can stay, without their end, and the last version in them."""
    body = data.removesuffix(HISTORY_END)
    if body == data or not data.startswith(HISTORY_START):
        return HISTORY_START, 0
    try:
        return body, int(json.loads(body[body.rindex(b"\n") + 1 :])["version"])
    except (ValueError, KeyError, TypeError):
        return HISTORY_START, 0
