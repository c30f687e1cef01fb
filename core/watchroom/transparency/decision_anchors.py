"""Checkpoints that people have signed with what they decided: who makes the journal anew as a whole, and
seals it again with this machine's key, cannot make these anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from watchroom.journal import Journal, RowFilter
from watchroom.model import ANSWER, Row
from watchroom.rules.checkpoint_note import InvalidCheckpoint, SignedCheckpoint, parse_checkpoint
from watchroom.rules.decisions import CHECKPOINT, SIGNED
from watchroom.transparency.anchors import Anchor

_MOST: Final = 100
"""So many of the newest answers are asked: each tells of all that was before it."""


def read_decision_anchors(journal: Journal, find_flaw: Callable[[Row], str]) -> Iterator[Anchor]:
    """What the newest answers in ``journal`` say of it that people signed, and that count by ``find_flaw``.
    Raises `JournalError`."""
    newest = journal.rows_before(
        journal.last_seq() + 1, limit=_MOST, only=RowFilter(tool=ANSWER, outcome="ok")
    )
    for row in newest:
        signed = row.detail.get(SIGNED)
        if isinstance(signed, str) and not find_flaw(row):
            body = json.loads(signed).get(CHECKPOINT)
            if isinstance(body, str) and body:
                try:
                    checkpoint = SignedCheckpoint(parse_checkpoint(body), body)
                except InvalidCheckpoint:
                    continue
                yield Anchor("decision", f"{row.actor} #{row.seq}", checkpoint)
