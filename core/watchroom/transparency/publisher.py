"""Has checkpoints published where others may read them, behind what anybody waits for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from watchroom.errors import WatchroomError
from watchroom.journal import Journal
from watchroom.rules.checkpoint_note import Checkpoint, SignedCheckpoint
from watchroom.transparency.journal_tree import open_tree, read_rows

PUBLISH_SECONDS: Final = 60
"""At most one checkpoint in so many seconds is published; of more the newest is."""
_log = logging.getLogger("watchroom")


class NotPublished(WatchroomError):
    """A checkpoint could not be published. Values: place, reason."""

    code = "not_published"


class CheckpointTarget(Protocol):
    """Takes checkpoints, one after the other. May be used from any thread."""

    @property
    def place(self) -> str:
        """Where they go, for people."""

    def newest(self, workspace: str) -> SignedCheckpoint | None:
        """The last one of ``workspace`` (its id). Raises `WatchroomError`."""

    def add(self, signed: SignedCheckpoint) -> None:
        """Add ``signed``, within a bounded time. Raises `WatchroomError`."""


class CheckpointBranch(CheckpointTarget, Protocol):
    """Keeps checkpoints, one after the other. May be used from any thread."""

    def read(self, workspace: str) -> list[SignedCheckpoint]:
        """The checkpoints of ``workspace`` (its id), newest first. Raises `WatchroomError`."""


class Publisher:
    """Publishes on ``target`` what ``newest`` gives, of ``journal``. To be used by one thread at a time.

    Upon a checkpoint from which the journal does not go on nothing is put any more: it is the evidence.
    """

    def __init__(
        self, journal: Journal, target: CheckpointTarget, newest: Callable[[], SignedCheckpoint | None]
    ) -> None:
        self._journal = journal
        self._target = target
        self._newest = newest
        self._done: SignedCheckpoint | None = None
        self._tried_at: float | None = None
        self._is_told = False
        """Whether it was logged that it cannot be done."""
        self._has_ended = False

    def publish_due(self, *, at_once: bool = False) -> None:
        """Publish the newest checkpoint if it is not yet, and none was tried just now; ``at_once`` unless it
        just failed. What hinders it is logged once, and tried again. Raises OSError."""
        if self._has_ended:
            return
        signed = self._newest()
        now = time.monotonic()
        is_early = self._tried_at is not None and now - self._tried_at < PUBLISH_SECONDS
        if signed is None or signed == self._done or (is_early and (self._is_told or not at_once)):
            return
        self._tried_at = now
        try:
            known = self._target.newest(signed.checkpoint.workspace)
            if known is not None and not self._goes_on_from(known.checkpoint):
                _log.warning(
                    "row %d does not go on from %s: see verify", signed.checkpoint.seq, self._target.place
                )
                self._has_ended = True
                return
            if known is None or known.checkpoint.size < signed.checkpoint.size:
                self._target.add(signed)
        except WatchroomError as error:
            if not self._is_told:
                _log.warning("no checkpoint was published: %s: %s", self._target.place, error)
            self._is_told = True
            return
        self._is_told = False
        self._done = signed

    def _goes_on_from(self, known: Checkpoint) -> bool:
        tree = open_tree(self._journal, known.seq)
        read_rows(self._journal, tree, known.seq, lambda: True, lambda _: None)
        # Not by the number: version 0.2.0 wrote a token's, which members of a server cannot read.
        return (tree.size, tree.root()) == (known.size, known.root)
