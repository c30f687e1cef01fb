"""`Acknowledgements`: people mark needs as seen that require no action."""

from __future__ import annotations

from watchroom.errors import NothingWaits
from watchroom.features.config.store import Store
from watchroom.features.needs.damage import find_damage
from watchroom.features.needs.rules import UNREADABLE, NeedKind, is_acknowledgeable, need_opened_by
from watchroom.features.sessions.rows import presence_of
from watchroom.features.sessions.service import record_lost_processes
from watchroom.kernel.call_context import CallContext
from watchroom.model import SEEN, Row, Zone


class Acknowledgements:
    """Records in ``store`` which needs people have seen."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def acknowledge(self, call: CallContext, number: int, message: str) -> Row:
        """Record that the caller has seen the need that a row opened. Needs of later rows stay open.

        - ``number``: the row that opened the need. It can also be a step of a lost process, because the row
          about the loss may not exist yet.
        - ``message``: stored in the note's row.

        Return the note's row. Raise `NothingWaits` if the row opened no need, or a need that requires an
        answer.
        """
        row = self._store.journal.row(number)
        need = _need_of(row)
        if row is not None and need is None and presence_of(row):
            losses = {loss.path: loss for loss in record_lost_processes(self._store)}
            row = losses.get(presence_of(row))
            need = _need_of(row)
        if row is None or need is None or not is_acknowledgeable(need, row.zone):
            raise NothingWaits(row=number)
        # The zone or path of a damaged row can be anything, and would also damage the note.
        zone: Zone
        zone, path = ("workspace", UNREADABLE) if need == "unreadable" else (row.zone, row.path)
        note = call.with_tool(SEEN).note(
            zone,
            path,
            message=message,
            base=row.version,
            detail={"need": need, "row": row.seq, "actor": row.actor},
        )
        return self._store.commits.commit(note).row


def _need_of(row: Row | None) -> NeedKind | None:
    """Return the kind of need that ``row`` opened, None if it opened none."""
    if row is None:
        return None
    return "unreadable" if find_damage(row) else need_opened_by(row)
