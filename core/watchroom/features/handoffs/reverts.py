"""Reverts of handoffs: a handoff that its receiver has not read is withdrawn.

A handoff that was already read cannot be withdrawn. The receiver is notified instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from watchroom.features.handoffs.rows import ACKNOWLEDGE_TOOL, HANDOFF_ZONE, READ_TOOL, Delivery, delivers
from watchroom.features.reverts.rules import WITHDRAWN, PathPlan, PlannedItem, draft_notice, is_revert_row
from watchroom.kernel.journal import Journal
from watchroom.model import REVERT_WORK, SYSTEM, Row, Write, Zone
from watchroom.texts import Catalogue

READ_ALREADY: Final = "read_already"
"""The reason why a handoff cannot be withdrawn."""


class HandoffWithdrawal:
    """Withdraws handoffs that their receivers have not read. The last earlier delivery that is not selected
    is delivered again.

    ``texts``: returns the catalogue for notifications.
    """

    zones: Final[tuple[Zone, ...]] = (HANDOFF_ZONE,)

    def __init__(self, journal: Journal, texts: Callable[[], Catalogue]) -> None:
        self._journal = journal
        self._texts = texts

    def plan(self, rows: Sequence[Row]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan`."""
        selected: dict[str, set[int]] = {}
        for row in rows:
            if delivers(row):
                selected.setdefault(row.path, set()).add(row.version or 0)
        return [item for path in selected if (item := self._planned(path, selected[path])) is not None]

    def _planned(self, path: str, selected: set[int]) -> PlannedItem | None:
        head = self._journal.head(HANDOFF_ZONE, path)
        if head is None or head.deleted:
            return None
        rows = self._journal.history(HANDOFF_ZONE, path)
        origins = _origins(rows)
        origin = origins[head.version or 0]
        if origin not in selected:
            # A newer delivery has replaced it.
            return None
        if self._delivery(head).read:
            return self._retracted(head)
        earlier = [
            row for row in rows if (row.version or 0) < origin and origins[row.version or 0] not in selected
        ]
        kept = earlier[-1] if earlier and not earlier[-1].deleted else None
        return self._withdrawn(head, kept)

    def _withdrawn(self, head: Row, kept: Row | None) -> PlannedItem:
        """Return the withdrawal of the delivery ``head``. If the earlier delivery ``kept`` is given, it is
        delivered again."""
        content = None if kept is None else self._journal.content(kept.seq)
        plan = PathPlan("clean", content, content, reason=WITHDRAWN)
        current = self._journal.content(head.seq)
        return PlannedItem(HANDOFF_ZONE, head.path, plan, current, (_write(head, content),))

    def _retracted(self, head: Row) -> PlannedItem:
        """Return the notification that the handoff ``head`` is withdrawn. Its receiver has already read
        it."""
        delivery = Delivery.from_row(head)
        notice = self._texts()("revert.retracted_handoff", sender=delivery.sender, file=delivery.filename)
        plan = PathPlan("cannot", reason=READ_ALREADY)
        draft = draft_notice(delivery.receiver, notice)
        return PlannedItem(HANDOFF_ZONE, head.path, plan, self._journal.content(head.seq), drafts=(draft,))

    def _delivery(self, head: Row) -> Delivery:
        """Return the delivery of the newest version ``head``, and whether it was read or acknowledged."""
        delivery = Delivery.from_row(head)
        for tool in (READ_TOOL, ACKNOWLEDGE_TOOL):
            (note,) = self._journal.last_notes([(HANDOFF_ZONE, head.path, delivery.receiver, tool)])
            delivery = delivery.advance(note) if note is not None else delivery
        return delivery

    def plan_undo(self, revert: str, paths: Sequence[str]) -> Sequence[PlannedItem]:
        """See `RevertPart.plan_undo`. A withdrawn handoff is delivered again. A handoff that was delivered
        again is withdrawn."""
        return [item for path in paths if (item := self._restored(revert, path)) is not None]

    def _restored(self, revert: str, path: str) -> PlannedItem | None:
        head = self._journal.head(HANDOFF_ZONE, path)
        if head is None or not is_revert_row(head) or head.detail.get("revert") != revert:
            return None
        before = self._journal.version(HANDOFF_ZONE, path, (head.version or 0) - 1)
        if before is None:
            return None
        if before.deleted:
            if head.deleted:
                return None
            return self._retracted(head) if self._delivery(head).read else self._withdrawn(head, None)
        content = self._journal.content(before.seq)
        current = None if head.deleted else self._journal.content(head.seq)
        return PlannedItem(
            HANDOFF_ZONE, path, PathPlan("clean", content, content), current, (_write(head, content),)
        )


def _origins(rows: Sequence[Row]) -> dict[int, int]:
    """Return, for each version of a handoff, the version in which its sender delivered this content.
    ``rows``: in order.

    For a version that the sender delivered, the result is the version itself. For a version that a revert
    delivered again, it is the original version. For a version with which a revert withdrew the handoff, it is
    0.
    """
    origins: dict[int, int] = {}
    delivered: dict[str | None, int] = {}
    for row in rows:
        version = row.version or 0
        if not is_revert_row(row):
            delivered[row.sha256] = version
            origins[version] = version
        else:
            origins[version] = 0 if row.deleted else delivered.get(row.sha256, version)
    return origins


def _write(head: Row, content: str | None) -> Write:
    return Write(SYSTEM, REVERT_WORK, head.zone, head.path, content, expected=head.version or 0)
