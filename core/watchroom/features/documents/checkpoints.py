"""The checkpoint files of documents, ``realtime/.crdt_state/<document>.crdt.json``."""

from __future__ import annotations

import logging
from threading import Lock

from watchroom import validation
from watchroom.algorithms.crdt.checkpoint import (
    HEADER_BYTES,
    Checkpoint,
    encode_checkpoint,
    is_checkpoint_of,
    parse_checkpoint,
    parse_version,
)
from watchroom.errors import InvalidState, WatchroomError
from watchroom.features.documents.replica import DocumentReplica, LiveReplica
from watchroom.features.documents.rows import DOCUMENT_ZONE
from watchroom.kernel.background import Background
from watchroom.kernel.checkout.edits import edit_note
from watchroom.kernel.checkout.layout import checkpoint_place
from watchroom.kernel.commit import GroupCommit
from watchroom.kernel.journal import Journal
from watchroom.platform.disk import Folder

_log = logging.getLogger("watchroom")


class Checkpoints:
    """Writes the checkpoint files after commits. May be used from any thread."""

    def __init__(
        self, folder: Folder, journal: Journal, commits: GroupCommit, background: Background
    ) -> None:
        self._root, self._scratch, self._platform = folder.root, folder.scratch, folder.platform
        self._journal = journal
        self._commits = commits
        self._turn = Lock()
        self._folder: Folder | None = None
        self._background = background
        self._changed = Lock()
        self._behind: dict[str, LiveReplica] = {}
        self._writing = Lock()

    def read(self, document: str, head: int) -> Checkpoint | None:
        """Return the checkpoint of ``document`` on disk, None if there is none that can be used.

        ``head``: the newest version of the document. A checkpoint cannot have a later version. An edited file
        is recorded as a row.
        """
        data = self._bytes(document)
        if data is None:
            return None
        try:
            found = parse_checkpoint(data)
        except InvalidState as error:
            self._keep_edit(document, data, str(error.values["rule"]))
            return None
        if found.name == document and found.version <= head:
            return found
        self._keep_edit(document, data, "state_checkpoint")
        return None

    def says(self, document: str) -> int:
        """Return the version in the header of the file of ``document``, 0 if it has none."""
        return parse_version(self._bytes(document, HEADER_BYTES) or b"")

    def look(self, document: str) -> Checkpoint | None:
        """Return the checkpoint of ``document`` on disk, None if there is none written by Watchroom."""
        data = self._bytes(document)
        try:
            found = None if data is None else parse_checkpoint(data)
        except InvalidState:
            return None
        return found if found and found.name == document else None

    def is_whole(self, document: str) -> bool:
        """Return whether the file of ``document`` is a checkpoint written by Watchroom."""
        data = self._bytes(document)
        return data is not None and is_checkpoint_of(data, document)

    def keep(self, live: LiveReplica) -> None:
        """Schedule the file of ``live`` to be written within milliseconds."""
        with self._changed:
            self._behind[live.name] = live
        self._background.schedule("checkpoints", self.write_behind)

    def write_behind(self) -> None:
        """Write the scheduled files."""
        with self._writing:
            with self._changed:
                behind, self._behind = self._behind, {}
            for live in behind.values():
                self._write(live)

    def close(self) -> None:
        """Write the scheduled files, and close."""
        try:
            self.write_behind()
        finally:
            if self._folder is not None:
                self._folder.close()

    def _open(self) -> Folder:
        """Return a separate folder object, because a folder is for one thread at a time. Raise OSError."""
        if self._folder is None:
            self._folder = Folder(self._root, self._scratch, self._platform)
        return self._folder

    def _write(self, live: LiveReplica) -> None:
        """Write the file of ``live``. If this fails, the document is still in the journal, and `verify`
        reports the file."""
        place = checkpoint_place(DOCUMENT_ZONE, live.name)
        try:
            # Hold the lock of the document only while its state is captured, not while the file is written.
            with live.lock:
                replica = live if not live.is_discarded else self._replay(live.name)
                replica.catch_up()
                state, version = replica.capture(), replica.version
            data = encode_checkpoint(state)
            with self._turn:
                folder = self._open()
                # One process at a time, so that an older state never replaces a newer one.
                with self._journal.exclusive(f"checkpoint/{live.name}"):
                    before = folder.read(place)
                    if before is not None and not is_checkpoint_of(before, live.name):
                        # Record the edit before replacing it, so that it survives if this process dies.
                        self._keep_edit(live.name, before, "state_checkpoint")
                        before = None
                    if before is None or parse_version(before[:HEADER_BYTES]) < version:
                        folder.write(place, data)
        except (OSError, WatchroomError):
            _log.exception("the checkpoint of %r could not be written", live.name)

    def _replay(self, document: str) -> DocumentReplica:
        """Return a replica of ``document`` that contains only committed edits. Raise `JournalError`."""
        return DocumentReplica(document, self._journal, self.look(document))

    def replace(self, live: LiveReplica) -> None:
        """Write the file of ``live``, whatever it contains now. Raise OSError."""
        with self._turn:
            self._open().write(checkpoint_place(DOCUMENT_ZONE, live.name), live.checkpoint())

    def _bytes(self, document: str, limit: int | None = None) -> bytes | None:
        try:
            with self._turn:
                return self._open().read(checkpoint_place(DOCUMENT_ZONE, document), limit)
        except OSError:
            # A folder or a link is at the path. `verify` reports it, and the document is in the journal.
            return None

    def keep_edit(self, document: str) -> None:
        """Record the file of ``document`` as an edit, although it looks like a checkpoint."""
        data = self._bytes(document)
        if data is not None and self.is_whole(document):
            self._keep_edit(document, data, "state_checkpoint")

    def _keep_edit(self, document: str, data: bytes, rule: str) -> None:
        """Record ``data`` as a row, once: an edit of the file of ``document`` that breaks ``rule``.

        Empty files are not recorded: a crash leaves them if a file was not synced.
        """
        if not data.strip(b"\0"):
            return
        checksum = validation.sha256(data)
        last = next(iter(self._journal.refused(DOCUMENT_ZONE, document, limit=1)), None)
        if last is not None and last.sha256 == checksum:
            return
        note = edit_note(
            DOCUMENT_ZONE, document, data, outcome="failed", error=InvalidState.code, detail={"rule": rule}
        )
        try:
            self._commits.commit(note)
        except WatchroomError:
            _log.exception("the edited checkpoint of %r could not be kept", document)
