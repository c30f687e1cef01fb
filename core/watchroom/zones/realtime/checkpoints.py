"""``realtime/.crdt_state/<document>.crdt.json``: follows the commits to a document."""

from __future__ import annotations

import logging
from threading import Lock

from watchroom import validation
from watchroom.checkout.document_replica import ZONE
from watchroom.checkout.edits import edit_note
from watchroom.checkout.layout import checkpoint_place
from watchroom.commit import GroupCommit
from watchroom.crdt.checkpoint import (
    HEADER_BYTES,
    Checkpoint,
    encode_checkpoint,
    is_checkpoint_of,
    parse_checkpoint,
    parse_version,
)
from watchroom.crdt.errors import InvalidState
from watchroom.disk import Folder
from watchroom.errors import WatchroomError
from watchroom.follower import Follower
from watchroom.journal import Journal
from watchroom.zones.realtime.live_replica import LiveReplica

_log = logging.getLogger("watchroom")


class Checkpoints:
    """Keeps the files current. May be used from any thread."""

    def __init__(self, folder: Folder, journal: Journal, commits: GroupCommit, follower: Follower) -> None:
        self._root, self._scratch, self._platform = folder.root, folder.scratch, folder.platform
        self._journal = journal
        self._commits = commits
        self._turn = Lock()
        self._folder: Folder | None = None
        self._follower = follower
        self._changed = Lock()
        self._behind: dict[str, LiveReplica] = {}
        self._writing = Lock()

    def read(self, document: str, head: int) -> Checkpoint | None:
        """The checkpoint on disk, None where there is none that can be used. What someone wrote in its place
        is kept as a row; a document whose newest version is ``head`` cannot have a later one."""
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
        """The version that the file says it holds, 0 where there is none that says it."""
        return parse_version(self._bytes(document, HEADER_BYTES) or b"")

    def look(self, document: str) -> Checkpoint | None:
        """The checkpoint on disk, None where there is none as we wrote it."""
        data = self._bytes(document)
        try:
            found = None if data is None else parse_checkpoint(data)
        except InvalidState:
            return None
        return found if found and found.name == document else None

    def is_whole(self, document: str) -> bool:
        """Whether the file is a checkpoint as we wrote it."""
        data = self._bytes(document)
        return data is not None and is_checkpoint_of(data, document)

    def keep(self, live: LiveReplica) -> None:
        """Have the file of ``live`` follow what was written, within milliseconds."""
        with self._changed:
            self._behind[live.name] = live
        self._follower.schedule("checkpoints", self.write_behind)

    def write_behind(self) -> None:
        """Bring the files that are behind up to their documents."""
        with self._writing:
            with self._changed:
                behind, self._behind = self._behind, {}
            for live in behind.values():
                self._write(live)

    def close(self) -> None:
        """Write what is still behind, and close."""
        self.write_behind()
        if self._folder is not None:
            self._folder.close()

    def _open(self) -> Folder:
        """A folder of our own, because one is not for two threads. Raises OSError."""
        if self._folder is None:
            self._folder = Folder(self._root, self._scratch, self._platform)
        return self._folder

    def _write(self, live: LiveReplica) -> None:
        """A checkpoint is a view: where it cannot be written, the document stands in the journal all the
        same, and `verify` tells."""
        place = checkpoint_place(live.name)
        try:
            # The lock of the document is held for as long as its state takes to be told, not for the file.
            with live.lock:
                live.catch_up()
                state, version = live.capture(), live.version
            data = encode_checkpoint(state)
            with self._turn:
                folder = self._open()
                # By one process at a time, so that an older state never replaces a newer one.
                with self._journal.exclusive(f"checkpoint/{live.name}"):
                    before = folder.read(place)
                    if before is not None and not is_checkpoint_of(before, live.name):
                        # Before it goes: what somebody wrote must not depend on this process living on.
                        self._keep_edit(live.name, before, "state_checkpoint")
                        before = None
                    if before is None or parse_version(before[:HEADER_BYTES]) < version:
                        folder.write(place, data)
        except (OSError, WatchroomError):
            _log.exception("the checkpoint of %r could not be written", live.name)

    def replace(self, live: LiveReplica) -> None:
        """Put the file back as the document is, whatever stands there. Raises OSError."""
        with self._turn:
            self._open().write(checkpoint_place(live.name), live.checkpoint())

    def _bytes(self, document: str, limit: int | None = None) -> bytes | None:
        try:
            with self._turn:
                return self._open().read(checkpoint_place(document), limit)
        except OSError:
            # A folder or a link in its place: `verify` tells, and the journal has the document.
            return None

    def keep_edit(self, document: str) -> None:
        """Keep what somebody put in the place of a checkpoint, although it looks like one."""
        data = self._bytes(document)
        if data is not None and self.is_whole(document):
            self._keep_edit(document, data, "state_checkpoint")

    def _keep_edit(self, document: str, data: bytes, rule: str) -> None:
        """The row that keeps what someone wrote over a checkpoint, once. Nothing at all is what a machine
        leaves that went down before the file was synced."""
        if not data.strip(b"\0"):
            return
        checksum = validation.sha256(data)
        last = next(iter(self._journal.refused(ZONE, document, limit=1)), None)
        if last is not None and last.sha256 == checksum:
            return
        note = edit_note(
            ZONE, document, data, outcome="failed", error=InvalidState.code, detail={"rule": rule}
        )
        try:
            self._commits.commit(note)
        except WatchroomError:
            _log.exception("the edited checkpoint of %r could not be kept", document)
