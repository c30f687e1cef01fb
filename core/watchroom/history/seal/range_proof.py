"""Proofs for third parties that rows are in a journal, unchanged, and that no row of a range is missing.

A proof has the rows of the range, and the hashes of the seal's tree before and after the range.
`verify_report` checks it with only Python and ssh-keygen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from watchroom.algorithms.merkle import Frontier, GrowingTree, prove_inclusion
from watchroom.errors import NotSealed, ProofTooLarge
from watchroom.features.people.rows import ZONE
from watchroom.history.seal.rows import read_seals
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.row_leaf import has_leaf, hash_row
from watchroom.kernel.rules.seal_note import SignedSeal
from watchroom.model import Json, Row

FORMAT: Final = "watchroom-proof/1"
MAX_ROWS: Final = 10_000
MAX_CONTENT: Final = 64 * 1024 * 1024
"""Maximum characters of all contents in a proof."""
_BATCH: Final = 5_000


@dataclass(slots=True)
class _Collected:
    """The data that was read up to the seal.

    - ``start``: the tree before the range.
    - ``rows``: the rows of the range, with their contents.
    - ``rest``: the leaves after the range.
    - ``leaves``: all leaves.
    - ``people``: rows of people before the range, by their position in the tree.
    """

    start: Frontier | None = None
    rows: list[tuple[Row, str | None]] = field(default_factory=list)
    rest: list[bytes] = field(default_factory=list)
    leaves: list[bytes] = field(default_factory=list)
    people: list[tuple[int, Row]] = field(default_factory=list)


def prove_range(journal: Journal, after: int, until: int) -> dict[str, Json]:
    """Return the proof, as JSON, of all rows of ``journal`` with ``after`` < seq ≤ ``until``.

    It has the contents of the rows, the first seal that covers them, and the earlier rows of enrolled people.
    Tokens are left out. Raise `NotSealed`, `ProofTooLarge`, `JournalError`.
    """
    signed = _find_seal(journal, until)
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


def _find_seal(journal: Journal, until: int) -> SignedSeal:
    found = [each.signed for each in read_seals(journal) if each.signed is not None]
    covering = [each for each in found if each.seal.seq >= until]
    if not covering:
        raise NotSealed(until=until)
    return min(covering, key=lambda each: each.seal.size)


def _collect(journal: Journal, signed: SignedSeal, after: int, until: int) -> _Collected:
    found, tree, size, seq = _Collected(), GrowingTree(), 0, 0
    while tree.size < signed.seal.size and (rows := journal.rows(seq, limit=_BATCH)):
        seq = rows[-1].seq
        for row in rows:
            if not has_leaf(row) or tree.size >= signed.seal.size:
                continue
            leaf = hash_row(row)
            if row.seq > after and found.start is None:
                found.start = tree.frontier
            if after < row.seq <= until:
                content = journal.content(row.seq) if row.sha256 is not None else None
                size += len(content or "")
                found.rows.append((row, content))
                if len(found.rows) > MAX_ROWS or size > MAX_CONTENT:
                    raise ProofTooLarge(most=MAX_ROWS)
            elif row.seq > until:
                found.rest.append(leaf)
            if row.zone == ZONE and row.seq <= after:
                found.people.append((tree.size, row))
            found.leaves.append(leaf)
            tree.add(leaf)
    return found
