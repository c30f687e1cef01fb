"""Seals as rows of the journal."""

from __future__ import annotations

from typing import Final, NamedTuple

from watchroom.errors import InvalidSeal
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.seal_note import SignedSeal, parse_seal
from watchroom.model import CHECKPOINT, SYSTEM, Note, Row

_PATH: Final = "checkpoint"
_BODY: Final = "checkpoint"
_SIGNATURE: Final = "signature"


class RecordedSeal(NamedTuple):
    """A seal as a ``row``. ``signed`` is None if the row cannot be read."""

    row: Row
    signed: SignedSeal | None


def draft_seal(signed: SignedSeal) -> Note:
    """Return the draft of the row that records ``signed``."""
    detail = {_BODY: signed.body, _SIGNATURE: signed.signature}
    kept = {name: text for name, text in detail.items() if text}
    return Note(SYSTEM, CHECKPOINT, "workspace", _PATH, detail=kept)


def parse_row(row: Row) -> SignedSeal | None:
    """Return the seal that ``row`` records, None if it cannot be read."""
    body, signature = row.detail.get(_BODY), row.detail.get(_SIGNATURE, "")
    if not isinstance(body, str) or not isinstance(signature, str):
        return None
    try:
        return SignedSeal(parse_seal(body), body, signature)
    except InvalidSeal:
        return None


def read_seals(journal: Journal, *, limit: int | None = None) -> list[RecordedSeal]:
    """Return the seals of ``journal``, newest first, at most ``limit`` (default: all). Raise
    `JournalError`."""
    rows = journal.notes("workspace", _PATH, SYSTEM, CHECKPOINT, limit=limit)
    return [RecordedSeal(row, parse_row(row)) for row in rows]
