"""Checkpoints as rows of the journal."""

from __future__ import annotations

from typing import Final, NamedTuple

from watchroom.journal import Journal
from watchroom.model import CHECKPOINT, SYSTEM, Note, Row
from watchroom.rules.checkpoint_note import InvalidCheckpoint, SignedCheckpoint, parse_checkpoint

PATH: Final = "checkpoint"
_BODY: Final = "checkpoint"
_SIGNATURE: Final = "signature"


class RecordedCheckpoint(NamedTuple):
    """A ``row`` that is a checkpoint, and what it says; None where it cannot be read."""

    row: Row
    signed: SignedCheckpoint | None


def draft_checkpoint(signed: SignedCheckpoint) -> Note:
    """The draft of the row that says ``signed``."""
    detail = {_BODY: signed.body, _SIGNATURE: signed.signature}
    kept = {name: text for name, text in detail.items() if text}
    return Note(SYSTEM, CHECKPOINT, "workspace", PATH, detail=kept)


def read_checkpoint(row: Row) -> SignedCheckpoint | None:
    """What ``row``, a checkpoint, says; None where it cannot be read."""
    body, signature = row.detail.get(_BODY), row.detail.get(_SIGNATURE, "")
    if not isinstance(body, str) or not isinstance(signature, str):
        return None
    try:
        return SignedCheckpoint(parse_checkpoint(body), body, signature)
    except InvalidCheckpoint:
        return None


def recorded_checkpoints(journal: Journal, *, limit: int | None = None) -> list[RecordedCheckpoint]:
    """The newest ``limit`` checkpoints of ``journal``, or all, newest first. Raises `JournalError`."""
    rows = journal.notes("workspace", PATH, SYSTEM, CHECKPOINT, limit=limit)
    return [RecordedCheckpoint(row, read_checkpoint(row)) for row in rows]
