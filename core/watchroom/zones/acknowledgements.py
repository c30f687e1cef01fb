"""A person has looked at something that asks for eyes, and finds that nothing more is to be done."""

from __future__ import annotations

from watchroom.errors import NothingWaits
from watchroom.model import MESSAGE, OUTSIDE, SEEN, SHARED, UNCHECKED, USER, Note, Row
from watchroom.zones.store import Store


class Acknowledgements:
    def __init__(self, store: Store) -> None:
        self._store = store

    def acknowledge(self, actor: str, number: int, message: str) -> Row:
        """Note that ``actor`` has looked at row ``number``: it needs nobody any more. What comes after that
        row does, for it was not seen. Raises `NothingWaits`; of conflicts too, which want to be settled."""
        row = next(iter(self._store.journal.rows(number - 1, until=number, limit=1)), None)
        need = "" if row is None else _need(row)
        if row is None or not need:
            raise NothingWaits(row=number)
        note = Note(
            actor,
            SEEN,
            row.zone,
            row.path,
            message=message,
            base=row.version,
            detail={"need": need, "row": number, "actor": row.actor},
        )
        return self._store.committer.commit(note).row


def _need(row: Row) -> str:
    """Which need the row may have opened of those that a look can close (`projections.needs`); "" if none."""
    if row.kind == "human":
        return ""
    if row.actor == OUTSIDE:
        return "outside" if row.zone == "handoff" and row.outcome == "conflict" else ""
    if row.outcome == "denied":
        return "denied"
    if row.zone == "agent" and row.tool == MESSAGE and row.path == USER:
        return "message"
    if row.version is None:
        return ""
    if row.zone == "session":
        return "failed" if row.detail.get("status") == "error" else ""
    if row.zone == "handoff":
        return "handoff"
    return "unchecked" if row.zone in SHARED and row.base == UNCHECKED else ""
