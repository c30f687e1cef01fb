"""Says by a row that a process died which ran sessions, a society or commands."""

from __future__ import annotations

from watchroom.journal.errors import JournalDenied
from watchroom.model import LOST, SYSTEM, Json, Note, Row
from watchroom.zones.store import Store


def record_lost_processes(store: Store) -> list[Row]:
    """Make a row for each lease that has run out, whoever notices it first, and forget the lease. Returns
    those rows. Raises `JournalError`, `WorkspaceLocked`."""
    rows = []
    for each in store.journal.presences():
        if not each.is_alive:
            detail: dict[str, Json] = {"process": each.process, "machine": each.machine, "since": each.since}
            note = Note(
                *(SYSTEM, LOST, "workspace", each.id, "failed", "not_seen_alive"),
                message=each.resume,
                detail=detail,
                key=f"lost/{each.id}",
            )
            try:
                rows.append(store.commits.commit(note).row)
            except JournalDenied:
                # Of an agent's login: the process has renewed its lease by now.
                continue
            store.journal.forget_presence(each.id)
    return rows
