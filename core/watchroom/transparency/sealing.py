"""The checkpoints of one workspace, as it has them while it is open."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Event
from typing import NamedTuple

from watchroom.errors import WatchroomError
from watchroom.journal import Journal
from watchroom.model import Appended, Draft, Row
from watchroom.signing import Signer
from watchroom.transparency.anchors import Anchor, Anchors, state_folder
from watchroom.transparency.checkpoint_rows import recorded_checkpoints
from watchroom.transparency.checkpoint_writer import CheckpointWriter
from watchroom.transparency.decision_anchors import read_decision_anchors
from watchroom.transparency.machine_key import machine_signer
from watchroom.transparency.verification import SealReport, verify_checkpoints

_log = logging.getLogger("watchroom")


class Seal(NamedTuple):
    """The newest checkpoint in short: the last row that it covers, and how its root begins (hex)."""

    row: int
    root: str


class Sealing:
    """The checkpoints of ``journal``, of the workspace at ``place`` (its folder, or the address of its
    database); rows of them are made with ``commit``. May be used from any thread."""

    def __init__(self, journal: Journal, commit: Callable[[Draft], Appended], place: str) -> None:
        self._journal = journal
        self._place = place
        self._state = state_folder()
        self._published = ""
        self._find_flaw: Callable[[Row], str] | None = None
        self._signer: Callable[[], Signer | None] = lambda: None
        self._writer = CheckpointWriter(journal, commit, self._anchors, self._find_signer)

    def sign_with(self, signer: Callable[[], Signer | None]) -> None:
        """Have checkpoints signed with what ``signer`` gives, as long as it gives anything: a person's key
        while it is unlocked. Else this machine's user signs."""
        self._signer = signer

    def publish_to(self, folder: str) -> None:
        """Keep the newest checkpoint in the folder ``folder`` from now on, too, as ``ID.txt`` (empty: in
        none)."""
        self._published = folder

    def write_due(self, closing: Event, *, at_once: bool = False) -> Row | None:
        """Write a checkpoint if one is due (see `CheckpointWriter.write_due`). Raises `JournalError`,
        `WorkspaceLocked`, OSError."""
        return self._writer.write_due(closing, at_once=at_once)

    def write_last(self) -> None:
        """Write the last checkpoint before the workspace is closed. Raises nothing: the next one that is
        open writes it."""
        try:
            self._writer.write_last()
        except (WatchroomError, OSError):
            _log.exception("no checkpoint could be written")

    def trust_decisions(self, find_flaw: Callable[[Row], str]) -> None:
        """Have `verify` compare with what people signed with decisions that count by ``find_flaw``, too."""
        self._find_flaw = find_flaw

    def newest_body(self) -> str:
        """The newest checkpoint among the rows as text, empty before the first. Raises `JournalError`."""
        found = recorded_checkpoints(self._journal, limit=1)
        return found[0].signed.body if found and found[0].signed is not None else ""

    def newest(self) -> Seal | None:
        """The newest checkpoint among the rows, not checked; None before the first. Raises `JournalError`."""
        for each in recorded_checkpoints(self._journal, limit=1):
            if each.signed is not None:
                return Seal(each.signed.checkpoint.seq, each.signed.checkpoint.short)
        return None

    def verify(
        self, given: Sequence[Anchor] = (), told: Callable[[int, int], None] = lambda _, __: None
    ) -> SealReport:
        """Compare all rows with all checkpoints: those among them, those that are kept for this user or were
        signed with decisions, and those ``given``. ``told`` gets how far it is: up to which row, of
        which. Raises `JournalError`."""
        decided = [*read_decision_anchors(self._journal, self._find_flaw)] if self._find_flaw else []
        return verify_checkpoints(
            self._journal, lambda workspace: [*self._anchors().read(workspace), *decided, *given], told
        )

    def _anchors(self) -> Anchors:
        return Anchors(self._state, self._place, self._published)

    def _find_signer(self) -> Signer | None:
        signer = self._signer()
        # Nobody touches a device each minute.
        return machine_signer(self._state) if signer is None or signer.key.is_touched else signer
