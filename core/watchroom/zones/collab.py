"""The collaborative zone: versioned files, where a write from a stale version is refused (FILES-3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from watchroom import validation
from watchroom.errors import VersionConflict, VersionNotFound
from watchroom.journal import NoteKey
from watchroom.model import Json, Row, Write
from watchroom.rules.row_files import find_row_flaw
from watchroom.rules.task_versions import EXECUTABLE, is_executable
from watchroom.zones.store import Store

READ_TOOL = "collab_read"
READ_OLD_TOOL = "collab_read_version"
"""Reading an earlier version does not bring the reader up to date."""


class FileVersion(NamedTuple):
    """A version with its content, and which version is the current one."""

    row: Row
    content: str
    current: int


class CollabZone:
    """The versioned files that all agents share, in ``store``.

    A write names the version it was made from. From a stale one it is refused with `VersionConflict`, which
    carries the current text; the refused text stays in the journal. ::

        row = zone.write("alice", "plan.md", "# Plan", expected=0, tool="collab_write")
        text = zone.read("bob", "plan.md").content
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(
        self,
        actor: str,
        path: str,
        content: str,
        expected: int,
        *,
        tool: str,
        message: str = "",
        detail: Mapping[str, Json] | None = None,
    ) -> Row:
        """Commit ``content`` for ``actor`` as the next version of ``path`` if ``expected`` is the current one
        (0: there is none; -1: whichever it is). ``tool``, ``message`` and ``detail`` stand in the version's
        row, which is returned. Raises `InvalidPath`, `NotText`, `TooLarge`, `VersionConflict`,
        `PathBlocked`."""
        self._check(path)
        validation.encode_text(content)
        draft = Write(actor, tool, "collab", path, content, message, expected, detail)
        row, head = self._store.write(draft)
        if row.outcome == "conflict":
            raise VersionConflict(row, head, self._store.content(head) if head else None, content)
        return row

    def written_over(self, row: Row) -> Row | None:
        """The version that ``row`` replaced unchecked, None if it replaced none so."""
        return self._store.written_over(row)

    def layout_failure(self, row: Row) -> str:
        """Why the file of the version ``row`` could not be written; empty if it could."""
        return self._store.layout_failure(row)

    def current(self, path: str) -> Row | None:
        """The row of the current version of ``path``, None where there never was one. No reading. Raises
        `InvalidPath`."""
        return self._store.journal.head("collab", self._check(path))

    def read(self, actor: str, path: str, version: int | None = None) -> FileVersion:
        """The current version of ``path``, or an earlier ``version``, as ``actor`` reads it. Raises
        `InvalidPath`, `NotFound`, `VersionNotFound`."""
        head, text = self._store.live_text("collab", self._check(path))
        row = head
        if version is not None and version != head.version:
            row = self._earlier(head, version)
            text = self._store.content(row)
        tool = READ_TOOL if row is head else READ_OLD_TOOL
        self._store.note_reading(actor, tool, "collab", path, row.version)
        return FileVersion(row, text, head.version or 0)

    def files(self, actor: str, *, tool: str) -> list[Row]:
        """The newest row of every file that is not deleted, by path. A reading by ``actor`` with ``tool``."""
        self._store.note_reading(actor, tool, "collab", "", None)
        # `verify` names the rows whose paths no tool takes.
        heads = self._store.journal.heads("collab")
        return [head for head in heads if not head.deleted and find_row_flaw(head) is None]

    def history(self, actor: str, path: str, *, tool: str, limit: int | None = None) -> list[Row]:
        """All versions of ``path``, or the newest ``limit``, oldest first. A reading by ``actor`` with
        ``tool``. Raises `InvalidPath`, `NotFound`."""
        head = self._store.live_head("collab", self._check(path))
        after = 0 if limit is None else max(0, (head.version or 0) - limit)
        self._store.note_reading(actor, tool, "collab", path, None)
        return self._store.journal.history("collab", path, after_version=after)

    def rollback(
        self, actor: str, path: str, version: int, message: str, *, tool: str, expected: int | None = None
    ) -> Row:
        """Make a new version of ``path`` with the content and the mode of ``version``, by ``actor`` with
        ``tool`` and ``message``. Returns its row. Raises `NotFound`, `VersionNotFound`, and
        `VersionConflict` if the file moves meanwhile, or if ``expected`` is given and is not the current
        version any more."""
        head = self._store.live_head("collab", self._check(path))
        target = head if version == head.version else self._earlier(head, version)
        content = self._store.content(target)
        base = (head.version or 0) if expected is None else expected
        mode = {EXECUTABLE: is_executable(target)}
        return self.write(actor, path, content, base, tool=tool, message=message, detail=mode)

    def seen_key(self, actor: str, path: str) -> NoteKey:
        """What `last_seen` of ``actor`` and ``path`` asks for, for whoever asks together with more. Raises
        `InvalidPath`."""
        return "collab", self._check(path), actor, READ_TOOL

    def last_seen(self, actor: str, path: str) -> int:
        """The version of ``path`` that ``actor`` last read or wrote, 0 if it never did. Raises
        `InvalidPath`."""
        return self._store.last_seen(actor, "collab", self._check(path), READ_TOOL)

    def _check(self, path: str) -> str:
        self._store.check_path("collab", path, path)
        return path

    def _earlier(self, head: Row, version: int) -> Row:
        """The row of ``version`` of the path whose current one is ``head``. Raises `VersionNotFound`."""
        row = self._store.journal.version("collab", head.path, version)
        if row is None:
            raise VersionNotFound(path=head.path, version=version, current=head.version)
        return row
