"""What shows a third party that rows are those of a journal, all of a range, unchanged: the rows themselves,
and what of a checkpoint's tree lies before and behind them.

`verify_report` checks it with Python and ssh-keygen alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.journal import Journal
from watchroom.model import Json, Row
from watchroom.rules.checkpoint_note import SignedCheckpoint
from watchroom.rules.merkle import Frontier, GrowingTree, prove_inclusion
from watchroom.rules.people import ZONE
from watchroom.rules.row_leaf import has_leaf, hash_row
from watchroom.transparency.checkpoint_rows import recorded_checkpoints

FORMAT: Final = "watchroom-proof/1"
MOST_ROWS: Final = 10_000
MOST_BYTES: Final = 64 * 1024 * 1024
"""So many rows, and bytes of their contents, a proof has at most."""
_BATCH: Final = 5_000


class NotSealed(WatchroomError):
    """No checkpoint covers the rows yet. Values: until."""

    code = "not_sealed"


class ProofTooLarge(WatchroomError):
    """There are too many rows for one proof. Values: most."""

    code = "proof_too_large"


@dataclass(slots=True)
class _Collected:
    """What was read on the way to a checkpoint."""

    start: Frontier | None = None
    rows: list[tuple[Row, str | None]] = field(default_factory=list)
    rest: list[bytes] = field(default_factory=list)
    leaves: list[bytes] = field(default_factory=list)
    people: list[tuple[int, Row]] = field(default_factory=list)
    """Rows of people outside of the range, by their positions."""


def prove_range(journal: Journal, after: int, until: int) -> dict[str, Json]:
    """The proof, as JSON, of all rows of ``journal`` with ``after`` < seq ≤ ``until`` (tokens apart), with
    their contents, by the first checkpoint that covers them; and of the rows that say who is enrolled.
    Raises `NotSealed`, `ProofTooLarge`, `JournalError`."""
    signed = _find_checkpoint(journal, until)
    found = _collect(journal, signed, after, until)
    start = found.start or Frontier()
    return {
        "format": FORMAT,
        "after": after,
        "until": until,
        "checkpoint": signed.body,
        "signature": signed.signature,
        "start": {"size": start.size, "roots": [root.hex() for root in start.roots]},
        "rows": [{"row": list(row), "content": content} for row, content in found.rows],
        "rest": [leaf.hex() for leaf in found.rest],
        "people": [
            {
                "index": index,
                "row": list(row),
                "content": journal.content(row.seq),
                "proof": [each.hex() for each in prove_inclusion(found.leaves, index)],
            }
            for index, row in found.people
        ],
    }


def _find_checkpoint(journal: Journal, until: int) -> SignedCheckpoint:
    covering: Sequence[SignedCheckpoint] = [
        each.signed
        for each in recorded_checkpoints(journal)
        if each.signed is not None and each.signed.checkpoint.seq >= until
    ]
    if not covering:
        raise NotSealed(until=until)
    return min(covering, key=lambda each: each.checkpoint.size)


def _collect(journal: Journal, signed: SignedCheckpoint, after: int, until: int) -> _Collected:
    found, tree, size, seq = _Collected(), GrowingTree(), 0, 0
    while tree.size < signed.checkpoint.size and (rows := journal.rows(seq, limit=_BATCH)):
        seq = rows[-1].seq
        for row in rows:
            if not has_leaf(row) or tree.size >= signed.checkpoint.size:
                continue
            leaf = hash_row(row)
            if row.seq > after and found.start is None:
                found.start = tree.frontier
            if after < row.seq <= until:
                content = journal.content(row.seq) if row.sha256 is not None else None
                size += len(content or "")
                found.rows.append((row, content))
                if len(found.rows) > MOST_ROWS or size > MOST_BYTES:
                    raise ProofTooLarge(most=MOST_ROWS)
            elif row.seq > until:
                found.rest.append(leaf)
            if row.zone == ZONE and row.seq <= after:
                found.people.append((tree.size, row))
            found.leaves.append(leaf)
            tree.add(leaf)
    return found
