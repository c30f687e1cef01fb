"""Publishes seals where others can read them. No commit waits for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from watchroom.errors import WatchroomError
from watchroom.history.seal.tree import open_tree, read_rows
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.seal_note import Seal, SignedSeal

PUBLISH_SECONDS: Final = 60
"""Minimum seconds between two published seals. Only the newest seal is published."""
_log = logging.getLogger("watchroom")


class SealTarget(Protocol):
    """A place to which seals are published. May be used from any thread."""

    @property
    def place(self) -> str:
        """The display name of the place."""

    def newest(self, workspace: str) -> SignedSeal | None:
        """Return the newest seal of ``workspace`` (its id) at this place. Raise `WatchroomError`."""

    def add(self, signed: SignedSeal) -> None:
        """Add ``signed``, with a timeout. Raise `WatchroomError`."""


class Publisher:
    """Publishes seals of ``journal`` to ``target``. Must be used by one thread at a time.

    ``newest``: returns the newest seal. If the journal does not continue the seal at the target, no further
    seals are published: the old seal is evidence.
    """

    def __init__(self, journal: Journal, target: SealTarget, newest: Callable[[], SignedSeal | None]) -> None:
        self._journal = journal
        self._target = target
        self._newest = newest
        self._published: SignedSeal | None = None
        self._tried_at: float | None = None
        self._has_failed = False
        """Whether the last attempt failed. A failure is logged once."""
        self._has_ended = False

    def publish_due(self, *, at_once: bool = False) -> None:
        """Publish the newest seal unless it is published or the last attempt was less than a minute ago.

        With ``at_once``, wait only after a failed attempt. A failure is logged once and retried. Raise
        OSError.
        """
        if self._has_ended:
            return
        signed = self._newest()
        now = time.monotonic()
        is_early = self._tried_at is not None and now - self._tried_at < PUBLISH_SECONDS
        if signed is None or signed == self._published or (is_early and (self._has_failed or not at_once)):
            return
        self._tried_at = now
        try:
            # Another process may publish the same seal at this moment.
            with self._journal.claim(f"publish {self._target.place}") as is_claimed:
                if not is_claimed or not self._publish(signed):
                    return
        except WatchroomError as error:
            if not self._has_failed:
                _log.warning("no seal was published: %s: %s", self._target.place, error)
            self._has_failed = True
            return
        self._has_failed = False
        self._published = signed

    def _publish(self, signed: SignedSeal) -> bool:
        """Publish ``signed``, unless the target has it. Return False if the journal does not continue the
        seal at the target. Raise `WatchroomError`, OSError."""
        known = self._target.newest(signed.seal.workspace)
        if known is not None and not self._continues(known.seal):
            _log.warning(
                "row %d does not continue the seal at %s: run watchroom verify",
                signed.seal.seq,
                self._target.place,
            )
            self._has_ended = True
            return False
        if known is None or known.seal.size < signed.seal.size:
            self._target.add(signed)
        return True

    def _continues(self, known: Seal) -> bool:
        tree = open_tree(self._journal, known.seq)
        read_rows(self._journal, tree, known.seq)
        # Row numbers are not compared: version 0.2.0 wrote the number of a token's row, which members of a
        # server cannot read.
        return (tree.size, tree.root()) == (known.size, known.root)
