"""A person has looked at something that asks for eyes, and finds that nothing more is to be done."""

from __future__ import annotations

from watchroom.errors import NothingWaits
from watchroom.model import SEEN, Note, Row, Zone
from watchroom.rules.damage import find_damage
from watchroom.rules.needs import UNREADABLE, NeedKind, is_acknowledgeable, need_opened_by
from watchroom.rules.presence import presence_of
from watchroom.zones.presence import record_lost_processes
from watchroom.zones.store import Store


class Acknowledgements:
    """What people have looked at and found fine, as rows in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def acknowledge(self, actor: str, number: int, message: str) -> Row:
        """Note that ``actor`` has looked at row ``number``, with a ``message``: it needs nobody any more.
        What comes after that row does, for it was not seen. A step stands for the loss of the process that
        took it, of which no row may tell yet. Returns the note's row. Raises `NothingWaits` where the row
        opened no need that a look can close: a conflict has to be settled."""
        row = self._store.journal.row(number)
        need = _need_of(row)
        if row is not None and need is None and presence_of(row):
            losses = {loss.path: loss for loss in record_lost_processes(self._store)}
            row = losses.get(presence_of(row))
            need = _need_of(row)
        if row is None or need is None or not is_acknowledgeable(need, row.zone):
            raise NothingWaits(row=number)
        # The zone or the path of a damaged row can be anything, and would damage the note as well.
        zone: Zone
        zone, path = ("workspace", UNREADABLE) if need == "unreadable" else (row.zone, row.path)
        note = Note(
            actor,
            SEEN,
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
