"""Journals with checkpoints, and somebody who changes them behind their back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event

from watchroom.journal import Journal
from watchroom.model import Draft, Note, Row
from watchroom.transparency import Anchors, CheckpointWriter


def notes(count: int, word: str = "n") -> list[Draft]:
    return [Note("alice", "look", "collab", f"{word}{n}.md") for n in range(count)]


def writer_of(journal: Journal, anchors: Anchors) -> CheckpointWriter:
    return CheckpointWriter(journal, lambda draft: journal.append([draft])[0], lambda: anchors, lambda: None)


def seal(journal: Journal, anchors: Anchors) -> Row | None:
    """A checkpoint of all rows, by a writer that has seen none of them."""
    return writer_of(journal, anchors).write_due(Event(), at_once=True)


def tamper(path: Path, *statements: str) -> None:
    """Run SQL on the journal at ``path`` as whoever owns the file can: what forbids it is taken away first."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for trigger in ("rows_never_change", "rows_never_go"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for statement in statements:
            connection.execute(statement)
