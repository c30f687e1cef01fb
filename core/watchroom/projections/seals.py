"""The newest checkpoint of the journal, as people compare it."""

from __future__ import annotations

from typing import NamedTuple

from watchroom.model import CHECKPOINT, Row, is_of_journal
from watchroom.rules.checkpoint_note import InvalidCheckpoint, parse_checkpoint


class SealView(NamedTuple):
    """A checkpoint over the first ``size`` rows, the last of which is ``row``; ``root`` is how its root
    begins (hex)."""

    size: int
    row: int
    root: str


def seal_after(before: SealView | None, row: Row) -> SealView | None:
    """The newest checkpoint after ``row``, where it was ``before``. It is taken at its word: only `verify`
    compares."""
    if row.tool != CHECKPOINT or not is_of_journal(row):
        return before
    body = row.detail.get("checkpoint")
    try:
        checkpoint = parse_checkpoint(body) if isinstance(body, str) else None
    except InvalidCheckpoint:
        return before
    return before if checkpoint is None else SealView(checkpoint.size, checkpoint.seq, checkpoint.short)
