"""The private zone: an agent's own files. Only its owner writes there, everyone may read (FILES-1)."""

from __future__ import annotations

from typing import NamedTuple

from watchroom import validation
from watchroom.checkout.layout import ROOTS, place
from watchroom.checkout.reconciler import Reconciler
from watchroom.errors import InvalidPath, NotFound, NotText, PermissionDenied, VersionConflict
from watchroom.files import NotAFile
from watchroom.journal.edits import edits
from watchroom.model import MAX_TEXT_BYTES, UNCHECKED, Row, Write
from watchroom.zones.store import Store


class FileNames(NamedTuple):
    """The ``names`` of files, sorted, and how many others have names that no tool takes."""

    names: list[str]
    unusable: int


class PrivateZone:
    """An agent's own files, in ``store``. They are read from disk as they are: their owner's commands write
    there too, and ``outside`` records what was changed so."""

    def __init__(self, store: Store, reconciler: Reconciler) -> None:
        self._store = store
        self._reconciler = reconciler

    def write(
        self,
        actor: str,
        owner: str,
        filename: str,
        content: str,
        *,
        tool: str,
        message: str = "",
        expected: int = UNCHECKED,
    ) -> Row:
        """Create or replace the file ``filename`` of ``owner`` with ``content``, by ``tool`` with a
        ``message``. Returns the version's row. Raises `PermissionDenied` unless ``actor`` is the owner,
        `UnknownAgent`, `InvalidPath`, `NotText`, `TooLarge`, `PathBlocked`, and `VersionConflict` if a
        version is ``expected`` that is not the current one."""
        path = self._own_path(actor, owner, filename)
        validation.encode_text(content)
        row, head = self._store.write(Write(actor, tool, "private", path, content, message, expected))
        if row.outcome == "conflict":
            raise VersionConflict(row, head, self._store.content(head) if head else None, content)
        return row

    def current(self, owner: str, filename: str) -> Row | None:
        """The current version of ``filename`` of ``owner``, as it is on disk; None where there never was one.
        No reading. Raises `UnknownAgent`, `InvalidPath`, and `NotText`, `TooLarge` where what stands there
        cannot be a version."""
        path = self._path(owner, filename)
        edit = self._reconciler.check("private", path)
        if edit is not None and edit.version is not None:
            return edit
        head = self._store.journal.head("private", path)
        refused = edit or next(edits(self._store.journal, "private", path), None)
        if refused is not None and refused.seq > (head.seq if head else 0):
            validation.decode_text(self._bytes(path) or b"")
        return head

    def delete(self, actor: str, owner: str, filename: str, *, tool: str) -> Row:
        """Delete the file ``filename`` of ``owner``, by ``tool``. Returns the row. Raises `PermissionDenied`
        unless ``actor`` is the owner, `UnknownAgent`, `InvalidPath`, `NotFound`."""
        path = self._own_path(actor, owner, filename)
        self._reconciler.check("private", path)
        self._store.live_head("private", path)
        return self._store.write(Write(actor, tool, "private", path, None)).row

    def read(self, actor: str, owner: str, filename: str, *, tool: str) -> tuple[str, Row]:
        """The file ``filename`` of ``owner`` as it is on disk, and the row of that version. A reading by
        ``actor`` with ``tool``. Raises `UnknownAgent`, `InvalidPath`, `NotFound`, `NotText`, `TooLarge`."""
        path = self._path(owner, filename)
        edit = self._reconciler.check("private", path)
        data = self._bytes(path)
        if data is None:
            raise NotFound(path=filename, zone=f"agents/{owner}")
        content = validation.decode_text(data)
        head = edit or self._store.live_head("private", path)
        self._store.note_reading(actor, tool, "private", path, head.version)
        return content, head

    def files(self, actor: str, owner: str, *, tool: str) -> FileNames:
        """The files of ``owner`` on disk. A reading by ``actor`` with ``tool``. Raises `UnknownAgent`."""
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
        self._store.note_reading(actor, tool, "private", f"{owner}/", None)
        return FileNames(usable, len(found) - len(usable))

    def _is_usable(self, owner: str, filename: str) -> bool:
        try:
            self._path(owner, filename)
        except InvalidPath:
            return False
        return True

    def _own_path(self, actor: str, owner: str, filename: str) -> str:
        self._store.registry.agent(owner)
        if actor != owner:
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
