"""Follows the journal and writes checkpoints of it, behind what anybody waits for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, Lock
from typing import Final

from watchroom.journal import Journal
from watchroom.journal.errors import JournalDenied
from watchroom.model import CHECKPOINT, Appended, Draft, Row, is_of_journal
from watchroom.rules.checkpoint_note import (
    NAMESPACE,
    Checkpoint,
    SignedCheckpoint,
    render_checkpoint,
)
from watchroom.signing import Signer, SignerFailed, SignerLocked
from watchroom.transparency.anchors import Anchors
from watchroom.transparency.checkpoint_rows import draft_checkpoint, read_checkpoint
from watchroom.transparency.journal_tree import KEEP_ROWS, JournalTree, open_tree, read_rows
from watchroom.transparency.workspace_id import find_workspace_id, make_workspace_id

CLAIM: Final = "checkpoints"
"""Whoever has claimed this writes checkpoints."""
CHECKPOINT_ROWS: Final = 1_000
"""After so many rows there is a checkpoint."""
CHECKPOINT_SECONDS: Final = 60
"""So long a row waits for one."""
_NANOSECONDS: Final = 1_000_000_000
_LAST_SECONDS: Final = 2
"""So long reading may take that is to be done at once."""
_REST: Final = 4
"""So many times as long as reading some rows took it rests before the next ones."""
_log = logging.getLogger("watchroom")


class CheckpointWriter:
    """Writes checkpoints of ``journal`` with ``commit``, and keeps them in ``anchors`` too. ``signer`` gives
    what signs one, None where it stays unsigned. May be used from any thread.

    A journal that does not go on from the newest checkpoint in ``anchors`` gets none any more, and what is
    kept there stays: it is the evidence.
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
        self._kept_seq = 0
        self._waiting = 0
        """How many rows have no checkpoint yet."""
        self._waiting_since = self._waiting_seq = 0
        """When the first of them came, and the number of the last one."""
        self._opened = journal.now()
        self._rest_seq = 0
        """Up to where nothing waits."""
        self._agreed: SignedCheckpoint | None = None
        """The newest anchor that the journal goes on from."""
        self._has_ended = False

    def write_due(self, closing: Event, *, at_once: bool = False) -> Row | None:
        """Write a checkpoint if one is due, or ``at_once`` if any row waits for one; until ``closing`` is
        set, and if nobody else does. Returns its row, None where there is none. Raises `JournalError`,
        `WorkspaceLocked`, OSError."""
        if self._has_ended or self._journal.last_seq() == self._rest_seq:
            return None
        with self._turn, self._journal.claim(CLAIM) as is_claimed:
            if not is_claimed:
                return None
            try:
                return self._follow(closing, at_once)
            except JournalDenied as error:
                _log.info("no checkpoints are written by this login: %s", error)
                self._has_ended = True
                return None

    def write_last(self) -> Row | None:
        """As `write_due` with ``at_once``, where this writer has been there for as long as a row waits: calls
        from the command line write none. Raises `JournalError`, `WorkspaceLocked`, OSError."""
        if self._journal.now() - self._opened < _NANOSECONDS * CHECKPOINT_SECONDS:
            return None
        return self.write_due(Event(), at_once=True)

    def _follow(self, closing: Event, at_once: bool) -> Row | None:
        workspace = find_workspace_id(self._journal)
        tree = self._advance(workspace, closing, at_once)
        if tree is None:
            return None
        if not self._waiting:
            self._rest_seq = tree.seq
            return None
        is_old = self._journal.now() - self._waiting_since >= _NANOSECONDS * CHECKPOINT_SECONDS
        if not (at_once or is_old or self._waiting >= CHECKPOINT_ROWS):
            return None
        if not workspace:
            workspace = make_workspace_id(self._journal, self._commit)
            if not workspace:
                _log.warning("the workspace's id was spoilt: no checkpoints are written")
                self._has_ended = True
                return None
            self._advance(workspace, Event(), at_once=True)
        return self._write(workspace, tree)

    def _advance(self, workspace: str, closing: Event, at_once: bool) -> JournalTree | None:
        """The tree over all rows; None where it was not read to its end, or does not go on from what is
        anchored."""
        anchored = self._anchors().newest_of(workspace) if workspace else None
        tree = self._tree
        if tree is None or self._is_before(anchored, tree):
            self._waiting = 0
            tree = self._tree = open_tree(self._journal, anchored.checkpoint.seq if anchored else None)
            self._kept_seq = tree.seq

        def check(row: Row) -> None:
            if anchored is not None and tree.size == anchored.checkpoint.size:
                self._compare(anchored, tree)
            self._count(row)

        if anchored is not None and tree.size == anchored.checkpoint.size:
            self._compare(anchored, tree)
        pace = _Pace(closing, at_once)
        if not read_rows(self._journal, tree, self._journal.last_seq(), pace.is_running, check):
            if tree.seq - self._kept_seq >= KEEP_ROWS:
                tree.keep(self._journal)
            return None
        if anchored is not None and self._agreed != anchored:
            _log.warning("row %d does not go on from the checkpoint that is kept: see verify", tree.seq)
            self._has_ended = True
            return None
        return tree

    def _is_before(self, anchored: SignedCheckpoint | None, tree: JournalTree) -> bool:
        """Whether ``anchored`` was passed without having been looked at."""
        return anchored is not None and anchored != self._agreed and tree.size > anchored.checkpoint.size

    def _compare(self, anchored: SignedCheckpoint, tree: JournalTree) -> None:
        if tree.root() == anchored.checkpoint.root:
            self._agreed = anchored

    def _count(self, row: Row) -> None:
        if is_of_journal(row):
            made = read_checkpoint(row) if row.tool == CHECKPOINT else None
            if made is not None and made.checkpoint.seq >= self._waiting_seq:
                self._waiting = 0
            return
        if not self._waiting:
            # What was there before waits as long as what comes now: most calls are over by then.
            self._waiting_since = max(row.time, self._opened)
        self._waiting += 1
        self._waiting_seq = row.seq

    def _write(self, workspace: str, tree: JournalTree) -> Row:
        checkpoint = Checkpoint(workspace, tree.size, tree.root(), tree.leaf_seq, self._journal.now())
        body = render_checkpoint(checkpoint)
        signed = SignedCheckpoint(checkpoint, body, self._sign(body))
        row = self._commit(draft_checkpoint(signed)).row
        tree.keep(self._journal)
        self._kept_seq = tree.seq
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
            _log.info("the checkpoint stays unsigned: %s", error)
            return ""


class _Pace:
    """Goes on with a fifth of a core until ``closing`` is set, or ``at_once`` for a moment."""

    def __init__(self, closing: Event, at_once: bool) -> None:
        self._closing = closing
        self._at_once = at_once
        self._began = time.monotonic()

    def is_running(self) -> bool:
        if self._at_once:
            return time.monotonic() - self._began < _LAST_SECONDS
        self._closing.wait(_REST * (time.monotonic() - self._began))
        self._began = time.monotonic()
        return not self._closing.is_set()
