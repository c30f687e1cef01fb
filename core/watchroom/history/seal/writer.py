"""Follows the journal and writes seals of it. No commit waits for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Lock
from typing import Final

from watchroom.errors import JournalDenied, SignerFailed, SignerLocked
from watchroom.features.people.service import find_id, id_draft
from watchroom.history.seal.anchors import Anchors
from watchroom.history.seal.rows import draft_seal, parse_row
from watchroom.history.seal.tree import SNAPSHOT_ROWS, JournalTree, open_tree, read_rows
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.seal_note import NAMESPACE, Seal, SignedSeal, render_seal
from watchroom.model import CHECKPOINT, SYSTEM, Appended, Draft, Row, is_of_journal
from watchroom.platform.signing import Signer

CLAIM: Final = "checkpoints"
"""The claim of the process that writes seals."""
MAX_UNSEALED_ROWS: Final = 1_000
"""A seal is written after this number of rows without a seal."""
MAX_UNSEALED_SECONDS: Final = 60
"""Seconds after which a row without a seal gets a seal."""
_NANOSECONDS: Final = 1_000_000_000
_AT_ONCE_SECONDS: Final = 2
"""Maximum seconds for reading rows if a seal is written immediately."""
_REST: Final = 4
"""The pause after each batch, as a multiple of the time for reading it."""
_log = logging.getLogger("watchroom")


class SealWriter:
    """Writes seals of ``journal`` as rows and into anchors. May be used from any thread.

    - ``commit``: commits the draft of a row.
    - ``anchors``: returns the anchors to compare with and to write to.
    - ``signer``: returns the signer, None to leave seals unsigned.

    If the journal does not continue the newest anchor, no further seals are written. The anchor is kept as
    evidence.
    """

    def __init__(
        self,
        journal: Journal,
        commit: Callable[[Draft], Appended],
        anchors: Callable[[], Anchors],
        signer: Callable[[], Signer | None],
    ) -> None:
        self._journal = journal
        self._commit = commit
        self._anchors = anchors
        self._signer = signer
        self._turn = Lock()
        self._tree: JournalTree | None = None
        self._snapshot_seq = 0
        self._unsealed = 0
        """The number of rows without a seal."""
        self._unsealed_since = self._unsealed_seq = 0
        """The time of the first row without a seal, and the number of the last row without a seal."""
        self._opened = journal.now()
        self._rest_seq = 0
        """The row up to which all rows are sealed."""
        self._agreed: SignedSeal | None = None
        """The newest anchor that the journal is known to continue."""
        self._has_ended = False

    def write_due(self, closing: Event, *, at_once: bool = False) -> Row | None:
        """Write a seal if one is due. Return its row, None if none was written.

        No seal is written if another process holds the claim, or once ``closing`` is set. With ``at_once``, a
        seal is due if any row lacks a seal. Raise `JournalError`, `WorkspaceLocked`, OSError.
        """
        if self._has_ended or self._journal.last_seq() == self._rest_seq:
            return None
        with self._turn, self._journal.claim(CLAIM) as is_claimed:
            if not is_claimed:
                return None
            try:
                return self._follow(closing, at_once)
            except JournalDenied as error:
                _log.info("this login may not write seals: %s", error)
                self._has_ended = True
                return None

    def write_last(self) -> Row | None:
        """Write a seal of all rows if this writer is older than `MAX_UNSEALED_SECONDS`.

        Short calls from the command line therefore write no seal. Raise `JournalError`, `WorkspaceLocked`,
        OSError.
        """
        if self._journal.now() - self._opened < _NANOSECONDS * MAX_UNSEALED_SECONDS:
            return None
        return self.write_due(Event(), at_once=True)

    def _follow(self, closing: Event, at_once: bool) -> Row | None:
        workspace = find_id(self._journal)
        tree = self._advance(workspace, closing, at_once)
        if tree is None:
            return None
        if not self._unsealed:
            self._rest_seq = tree.seq
            return None
        is_old = self._journal.now() - self._unsealed_since >= _NANOSECONDS * MAX_UNSEALED_SECONDS
        if not (at_once or is_old or self._unsealed >= MAX_UNSEALED_ROWS):
            return None
        if not workspace:
            # If several processes create an id at the same moment, the first version counts.
            self._commit(id_draft(self._journal, SYSTEM))
            workspace = find_id(self._journal)
            if not workspace:
                _log.warning("no seals are written: the id of the workspace is damaged")
                self._has_ended = True
                return None
            self._advance(workspace, Event(), at_once=True)
        return self._write(workspace, tree)

    def _advance(self, workspace: str, closing: Event, at_once: bool) -> JournalTree | None:
        """Return the tree over all rows. None if it was not read to the end, or if the journal does not
        continue the newest anchor."""
        anchored = self._anchors().newest_of(workspace) if workspace else None
        tree = self._tree
        if tree is None or self._is_before(anchored, tree):
            self._unsealed = 0
            tree = self._tree = open_tree(self._journal, anchored.seal.seq if anchored else None)
            self._snapshot_seq = tree.seq

        def on_leaf(row: Row) -> None:
            if anchored is not None and tree.size == anchored.seal.size:
                self._compare(anchored, tree)
            self._count(row)

        if anchored is not None and tree.size == anchored.seal.size:
            self._compare(anchored, tree)
        pace = _Pace(closing, at_once)
        if not read_rows(self._journal, tree, self._journal.last_seq(), pace.is_running, on_leaf):
            if tree.seq - self._snapshot_seq >= SNAPSHOT_ROWS:
                tree.keep(self._journal)
            return None
        if anchored is not None and self._agreed != anchored:
            _log.warning("row %d does not continue the seal that is kept: run watchroom verify", tree.seq)
            self._has_ended = True
            return None
        return tree

    def _is_before(self, anchored: SignedSeal | None, tree: JournalTree) -> bool:
        """Whether ``anchored`` ends within ``tree`` and was not compared with it."""
        return anchored is not None and anchored != self._agreed and tree.size > anchored.seal.size

    def _compare(self, anchored: SignedSeal, tree: JournalTree) -> None:
        if tree.root() == anchored.seal.root:
            self._agreed = anchored

    def _count(self, row: Row) -> None:
        if is_of_journal(row):
            signed = parse_row(row) if row.tool == CHECKPOINT else None
            if signed is not None and signed.seal.seq >= self._unsealed_seq:
                self._unsealed = 0
            return
        if not self._unsealed:
            # Older rows wait as long as new rows, because most calls end before that.
            self._unsealed_since = max(row.time, self._opened)
        self._unsealed += 1
        self._unsealed_seq = row.seq

    def _write(self, workspace: str, tree: JournalTree) -> Row:
        seal = Seal(workspace, tree.size, tree.root(), tree.leaf_seq, self._journal.now())
        body = render_seal(seal)
        signed = SignedSeal(seal, body, self._sign(body))
        row = self._commit(draft_seal(signed)).row
        tree.keep(self._journal)
        self._snapshot_seq = tree.seq
        self._anchors().keep(signed)
        self._agreed = signed
        return row

    def _sign(self, body: str) -> str:
        signer = self._signer()
        if signer is None:
            return ""
        try:
            return signer.sign(body.encode(), NAMESPACE)
        except (SignerLocked, SignerFailed) as error:
            _log.info("the seal stays unsigned: %s", error)
            return ""


class _Pace:
    """Limits reading to a fifth of a core until ``closing`` is set, or to `_AT_ONCE_SECONDS`."""

    def __init__(self, closing: Event, at_once: bool) -> None:
        self._closing = closing
        self._at_once = at_once
        self._began = time.monotonic()

    def is_running(self) -> bool:
        if self._at_once:
            return time.monotonic() - self._began < _AT_ONCE_SECONDS
        self._closing.wait(_REST * (time.monotonic() - self._began))
        self._began = time.monotonic()
        return not self._closing.is_set()
