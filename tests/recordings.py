"""Recorded editing sessions of people (tests/traces), to play again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, NotRequired, TypedDict

from watchroom.algorithms.crdt import Delta, Document, FieldType

TRACES: Final = Path(__file__).parent / "traces"
SCHEMA: Final[dict[str, FieldType]] = {"body": "rga"}


class Transaction(TypedDict):
    patches: list[tuple[int, int, str]]
    parents: list[int]
    agent: int


class Trace(TypedDict):
    startContent: NotRequired[str]
    endContent: str
    txns: list[Transaction]


class Turn(NamedTuple):
    """A transaction of ``agent`` (0 or 1), made after it received ``heard`` transactions of the other."""

    agent: int
    heard: int
    transaction: Transaction


def load(name: str) -> Trace:
    trace: Trace = json.loads(gzip.decompress((TRACES / f"{name}.json.gz").read_bytes()))
    return trace


def turns(trace: Trace) -> Iterator[Turn]:
    """Yield the transactions of two agents, each after all that its writer knew."""
    known: list[tuple[int, int]] = []
    """For each transaction: the number of each agent's transactions that its writer knew."""
    made = [0, 0]
    for transaction in trace["txns"]:
        me = transaction["agent"]
        counts = [(0, 0), *(known[at] for at in transaction["parents"])]
        mine, theirs = (max(count[who] for count in counts) for who in (me, 1 - me))
        if mine != made[me]:
            raise ValueError(f"{mine} of {made[me]} own transactions known")
        yield Turn(me, theirs, transaction)
        made[me] += 1
        known.append((theirs, made[1]) if me else (made[0], theirs))


def write(document: Document, transaction: Transaction, replica: str) -> list[Delta]:
    """Make the edits of a transaction, and return their deltas."""
    text = document.text("body")
    edits = [
        text.replace(position, position + deleted, inserted, replica)
        for position, deleted, inserted in transaction["patches"]
    ]
    return [{"body": edit.delta} for edit in edits if edit.delta is not None]
