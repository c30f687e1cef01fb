"""`SharedFiles` and `PrivateFiles`: the operations of agents on files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from watchroom import validation
from watchroom.errors import (
    InvalidPath,
    NotFound,
    NotText,
    PermissionDenied,
    VersionConflict,
    VersionNotFound,
)
from watchroom.features.config.store import Store
from watchroom.features.files.plugin_zones import check_zone
from watchroom.features.files.rows import READ_OLD_TOOL, READ_TOOL, FileVersion
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import ROOTS, place
from watchroom.kernel.checkout.reconciler import Reconciler
from watchroom.kernel.journal.edits import edits
from watchroom.kernel.rules.file_versions import EXECUTABLE, is_executable
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.model import MAX_TEXT_BYTES, UNCHECKED, Json, Row
from watchroom.platform.files import NotAFile


class SharedFiles:
    """The versioned files that all agents share. ``store``: the journal and the files.

    A write names its base version. If that is not the current version, `VersionConflict` is raised. It has
    the current text; the refused text stays in the journal. ::

        row = files.write(CallContext("alice", "collab_write"), "plan.md", "# Plan", expected=0)
        text = files.read(CallContext("bob"), "plan.md").content
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(
        self,
        call: CallContext,
        path: str,
        content: str,
        expected: int,
        *,
        message: str = "",
        detail: Mapping[str, Json] | None = None,
    ) -> Row:
        """Commit ``content`` as the next version of ``path``.

        - ``expected``: the version that must be current. 0: the file must not exist; -1: any version.
        - ``message``, ``detail``: stored in the version's row; default: empty.

        Return the version's row. Raise `VersionConflict`, `InvalidPath`, `NotText`, `TooLarge`,
        `PathBlocked`, `ZoneRefused`.
        """
        self._store.check_path("collab", path)
        validation.encode_text(content)
        check_zone(call.actor, path, content, message)
        row, head = self._store.write(call.write("collab", path, content, message, expected, detail))
        if row.outcome == "conflict":
            raise VersionConflict(row, head, self._store.content(head) if head else None, content)
        return row

    def find_overwritten(self, row: Row) -> Row | None:
        """Return the version that ``row`` replaced without a version check; None if it was checked, or if
        ``row`` is the first version."""
        if row.base != UNCHECKED or not row.version:
            return None
        return self._store.journal.version("collab", row.path, row.version - 1)

    def find_disk_error(self, row: Row) -> str:
        """Return the reason why the file of the version ``row`` was not written to disk; empty if it was
        written."""
        return self._store.checkout.layout_failure(row)

    def current(self, path: str) -> Row | None:
        """Return the row of the current version of ``path``; None if the file never existed. The read is not
        recorded. Raise `InvalidPath`."""
        return self._store.journal.head("collab", self._store.check_path("collab", path))

    def read(self, call: CallContext, path: str, version: int | None = None) -> FileVersion:
        """Return the current version of ``path``, or an earlier ``version``. The read is recorded. Raise
        `InvalidPath`, `NotFound`, `VersionNotFound`."""
        head, text = self._store.live_text("collab", self._store.check_path("collab", path))
        row = head
        if version is not None and version != head.version:
            row = self._earlier(head, version)
            text = self._store.content(row)
        tool = READ_TOOL if row is head else READ_OLD_TOOL
        self._store.note_reading(call.with_tool(tool), "collab", path, row.version)
        return FileVersion(row, text, head.version or 0)

    def files(self, call: CallContext) -> list[Row]:
        """Return the current version of every file that is not deleted, sorted by path. The read is
        recorded."""
        self._store.note_reading(call, "collab", "", None)
        # `verify` reports the rows whose paths are not valid for tools.
        heads = self._store.journal.heads("collab")
        return [head for head in heads if not head.deleted and find_row_flaw(head) is None]

    def history(self, call: CallContext, path: str, *, limit: int | None = None) -> list[Row]:
        """Return all versions of ``path``, or the newest ``limit``, oldest first. The read is recorded. Raise
        `InvalidPath`, `NotFound`."""
        head = self._store.live_head("collab", self._store.check_path("collab", path))
        after = 0 if limit is None else max(0, (head.version or 0) - limit)
        self._store.note_reading(call, "collab", path, None)
        return self._store.journal.history("collab", path, after_version=after)

    def rollback(
        self, call: CallContext, path: str, version: int, message: str, *, expected: int | None = None
    ) -> Row:
        """Make a new version of ``path`` with the content and the mode of ``version``.

        - ``message``: the message of the new version's row.
        - ``expected``: the version that must be current; default: the version that is current at the
          call.

        Return the new row. Raise `NotFound`, `VersionNotFound`, `VersionConflict`.
        """
        head = self._store.live_head("collab", self._store.check_path("collab", path))
        target = head if version == head.version else self._earlier(head, version)
        content = self._store.content(target)
        base = (head.version or 0) if expected is None else expected
        mode = {EXECUTABLE: is_executable(target)}
        return self.write(call, path, content, base, message=message, detail=mode)

    def last_seen(self, call: CallContext, path: str) -> int:
        """Return the version of ``path`` that the caller last read or wrote; 0 if there is none. Raise
        `InvalidPath`."""
        return self._store.last_seen(call, "collab", self._store.check_path("collab", path), READ_TOOL)

    def _earlier(self, head: Row, version: int) -> Row:
        """Return the row of an earlier ``version`` of the file of ``head``. Raise `VersionNotFound`."""
        row = self._store.journal.version("collab", head.path, version)
        if row is None:
            raise VersionNotFound(path=head.path, version=version, current=head.version)
        return row


class FileNames(NamedTuple):
    """The sorted ``names`` of files. ``unusable``: the number of other files, whose names no tool accepts."""

    names: list[str]
    unusable: int


class PrivateFiles:
    """The files of each agent. Only their owner writes them, and everyone can read them.

    They are read from disk, because the owner's commands also write them.

    - ``store``: the journal and the files.
    - ``reconciler``: compares a file with the journal before each read, and records an external edit as a
      version by ``outside``.
    """

    def __init__(self, store: Store, reconciler: Reconciler) -> None:
        self._store = store
        self._reconciler = reconciler

    def write(
        self,
        call: CallContext,
        owner: str,
        filename: str,
        content: str,
        *,
        message: str = "",
        expected: int = UNCHECKED,
    ) -> Row:
        """Create or replace the file ``filename`` of ``owner`` with ``content``.

        - ``message``: stored in the version's row; default: empty.
        - ``expected``: the version that must be current; default: any.

        Return the version's row. Raise `PermissionDenied` unless the caller is the owner, `VersionConflict`,
        `UnknownAgent`, `InvalidPath`, `NotText`, `TooLarge`, `PathBlocked`.
        """
        path = self._own_path(call, owner, filename)
        validation.encode_text(content)
        row, head = self._store.write(call.write("private", path, content, message, expected))
        if row.outcome == "conflict":
            raise VersionConflict(row, head, self._store.content(head) if head else None, content)
        return row

    def current(self, owner: str, filename: str) -> Row | None:
        """Return the row of the current version of ``filename`` of ``owner``; None if the file never existed.

        An external edit becomes a version first. The read is not recorded. Raise `UnknownAgent`,
        `InvalidPath`, and `NotText` or `TooLarge` if the file on disk cannot be a version.
        """
        path = self._path(owner, filename)
        edit = self._reconciler.check("private", path)
        if edit is not None and edit.version is not None:
            return edit
        head = self._store.journal.head("private", path)
        refused = edit or next(edits(self._store.journal, "private", path), None)
        if refused is not None and refused.seq > (head.seq if head else 0):
            validation.decode_text(self._bytes(path) or b"")
        return head

    def delete(self, call: CallContext, owner: str, filename: str) -> Row:
        """Delete the file ``filename`` of ``owner``. Return the row. Raise `PermissionDenied` unless the
        caller is the owner, `UnknownAgent`, `InvalidPath`, `NotFound`."""
        path = self._own_path(call, owner, filename)
        self._reconciler.check("private", path)
        self._store.live_head("private", path)
        return self._store.write(call.write("private", path, None)).row

    def read(self, call: CallContext, owner: str, filename: str) -> tuple[str, Row]:
        """Return the text of the file ``filename`` of ``owner`` on disk, and the row of that version. The
        read is recorded. Raise `UnknownAgent`, `InvalidPath`, `NotFound`, `NotText`, `TooLarge`."""
        path = self._path(owner, filename)
        edit = self._reconciler.check("private", path)
        data = self._bytes(path)
        if data is None:
            raise NotFound(path=filename, zone=f"agents/{owner}")
        content = validation.decode_text(data)
        head = edit or self._store.live_head("private", path)
        self._store.note_reading(call, "private", path, head.version)
        return content, head

    def files(self, call: CallContext, owner: str) -> FileNames:
        """Return the names of the files of ``owner`` on disk. The read is recorded. Raise `UnknownAgent`."""
        self._store.registry.agent(owner)
        if self._store.journal.is_shared:
            self._store.checkout.catch_up()
        root = (*ROOTS["private"], owner)
        found = [
            "/".join(entry.parts[len(root) :])
            for entry in self._store.checkout.folder.walk(root)
            if entry.kind == "file"
        ]
        usable = sorted(name for name in found if self._is_usable(owner, name))
        self._store.note_reading(call, "private", f"{owner}/", None)
        return FileNames(usable, len(found) - len(usable))

    def _is_usable(self, owner: str, filename: str) -> bool:
        try:
            self._path(owner, filename)
        except InvalidPath:
            return False
        return True

    def _own_path(self, call: CallContext, owner: str, filename: str) -> str:
        self._store.registry.agent(owner)
        if call.actor != owner:
            raise PermissionDenied(owner=owner)
        return self._path(owner, filename)

    def _path(self, owner: str, filename: str) -> str:
        path = f"{self._store.registry.agent(owner).id}/{filename}"
        self._store.check_path("private", path, filename)
        return path

    def _bytes(self, path: str) -> bytes | None:
        try:
            return self._store.checkout.folder.read(place("private", path), MAX_TEXT_BYTES)
        except NotAFile as error:
            raise NotText(rule="not_a_file") from error
