"""Journals with seals, and somebody who changes them behind their back."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from damage import change_rows
from watchroom.history.seal import Anchors, SealWriter
from watchroom.kernel.journal import Journal
from watchroom.model import Draft, Note, Row


def notes(count: int, word: str = "n") -> list[Draft]:
    return [Note("alice", "look", "collab", f"{word}{n}.md") for n in range(count)]


def writer_of(journal: Journal, anchors: Anchors) -> SealWriter:
    return SealWriter(journal, lambda draft: journal.append([draft])[0], lambda: anchors, lambda: None)


def seal(journal: Journal, anchors: Anchors) -> Row | None:
    """A seal of all rows, by a writer that has seen none of them."""
    return writer_of(journal, anchors).write_due(Event(), at_once=True)


def tamper(address: str | Path, *statements: str) -> None:
    """Run SQL on the journal at ``address`` as its owner can: what forbids it is switched off."""
    for statement in statements:
        change_rows(address, statement)
