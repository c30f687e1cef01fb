"""Make the journal of a workspace long, with copies of its rows."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final

from watchroom.features.handoffs.rows import ACKNOWLEDGE_TOOL, split_handoff
from watchroom.kernel.checkout.layout import CONTROL, JOURNAL_NAME
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import ENDED, UNCHECKED, Draft, Json, Note, Row, Write
from watchroom.platform import detect_platform
from watchroom.platform.process_lock import ProcessLock

_BATCH: Final = 2_000
_RENAMED: Final = frozenset({"session", "request", "handoff", "buffer"})
"""Zones whose paths start with an agent's name."""
_RENAMED_WHOLE: Final = frozenset({"realtime", "task", "agent", "file", "command"})
_NAMES: Final = ("task", "parent", "command")
_ROW_NUMBERS: Final = ("mail", "request", "conflict")
"""Details with the number of a row, which must be mapped. ``heard`` keeps the original number, because the copies
get no new messages."""
_SKIPPED: Final = frozenset({"config", "workspace"})


def grow(root: str, rows: int) -> None:
    """Copy the rows of the closed workspace at ``root`` until its journal has at least ``rows`` rows. The
    copies' files are not written, and current files keep their text."""
    control = os.path.join(root, CONTROL)
    journal = SqliteJournal(os.path.join(control, JOURNAL_NAME))
    try:
        sample = _sample(journal)
        copy, last = 0, journal.last_seq()
        drafts: list[Draft] = []
        while last < rows:
            copy += 1
            for make in sample:
                drafts.append(make(copy, last))
                if len(drafts) == _BATCH:
                    journal.append(drafts)
                    drafts.clear()
            journal.append(drafts)
            drafts.clear()
            last = journal.last_seq()
    finally:
        journal.close()
    platform = detect_platform()
    lock = ProcessLock(os.path.join(control, "lock"), platform)
    lock.acquire()
    lock.set_text(f"{last} {platform.boot_id()}")
    lock.release()
    lock.close()


def _sample(journal: SqliteJournal) -> list[Callable[[int, int], Draft]]:
    """Return functions that copy each row, given the number of the copy and the row after which the copy
    starts."""
    left = {head.path for head in journal.heads("session") if head.detail["status"] not in ENDED}
    left |= {head.path for head in journal.heads("buffer") if not head.deleted}
    left |= {head.path for head in journal.heads("handoff") if not _is_acknowledged(journal, head)}
    kept = [row for row in _all(journal) if row.zone not in _SKIPPED and not _is_of(row, left)]
    numbers = [row.seq for row in kept]
    return [_copier(row, journal.content(row.seq), numbers) for row in kept]


def _is_acknowledged(journal: SqliteJournal, head: Row) -> bool:
    _, receiver, _ = split_handoff(head.path)
    note = journal.last_note("handoff", head.path, receiver, ACKNOWLEDGE_TOOL)
    return note is not None and note.base == head.version


def _all(journal: SqliteJournal) -> Iterator[Row]:
    seq = 0
    while found := journal.rows(seq):
        yield from found
        seq = found[-1].seq


def _is_of(row: Row, left: set[str]) -> bool:
    """Return whether the row belongs to an open session, buffer or handoff."""
    return row.zone in ("session", "request", "buffer", "handoff") and any(
        row.path == path or row.path.startswith(f"{path}/") for path in left
    )


def _copier(row: Row, content: str | None, numbers: list[int]) -> Callable[[int, int], Draft]:
    """Return a function that copies ``row``. ``numbers`` are the copied rows in order. A reference to one of
    them becomes a reference to its copy."""
    detail = dict(row.detail)
    named = {name: bisect_right(numbers, _number(detail[name])) for name in _ROW_NUMBERS if name in detail}

    def make(copy: int, after: int) -> Draft:
        path = _renamed(row, copy)
        told: dict[str, Json] = dict(detail)
        told.update((name, after + place) for name, place in named.items())
        told.update((name, f"{detail[name]}-{copy}") for name in _NAMES if detail.get(name))
        if "call" in told:
            session, _, place = str(told["call"]).partition("/")
            told["call"] = f"{session}-{copy}/{place}"
        if row.version is not None:
            return Write(row.actor, row.tool, row.zone, path, content, row.message, UNCHECKED, told)
        return Note(
            row.actor,
            row.tool,
            row.zone,
            path,
            row.outcome,
            row.error,
            row.message,
            content,
            row.base,
            row.sha256,
            row.size,
            told,
        )

    return make


def _renamed(row: Row, copy: int) -> str:
    """Return the path of a copy. Messages to an agent keep their receiver."""
    first, slash, rest = row.path.partition("/")
    if row.zone in _RENAMED_WHOLE and not (row.zone == "agent" and row.version is None):
        return f"{first}-{copy}{slash}{rest}"
    if row.zone in _RENAMED and slash:
        name, slash, end = rest.partition("/")
        return f"{first}/{name}-{copy}{slash}{end}"
    return row.path


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
