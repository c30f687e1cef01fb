"""How people really wrote, replayed: every replica ends in the text that they had."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Final, TypedDict

from watchroom.crdt import Delta, Document, FieldType

TRACES: Final = Path(__file__).parent.parent / "traces"
SCHEMA: Final[dict[str, FieldType]] = {"body": "rga"}
READ_ALONG = 10_000
"""So many deltas the reader gets one by one, and the rest as a state."""
BATCH = 20
"""So many deltas come in the wrong order."""


class Transaction(TypedDict):
    patches: list[tuple[int, int, str]]
    parents: list[int]
    agent: int


class Trace(TypedDict):
    endContent: str
    txns: list[Transaction]


def load(name: str) -> Trace:
    trace: Trace = json.loads(gzip.decompress((TRACES / f"{name}.json.gz").read_bytes()))
    return trace


def write(document: Document, transaction: Transaction, replica: str) -> list[Delta]:
    """Make the edits of a transaction; their deltas."""
    text = document.text("body")
    edits = [
        text.replace(position, position + deleted, inserted, replica)
        for position, deleted, inserted in transaction["patches"]
    ]
    return [{"body": edit.delta} for edit in edits if edit.delta is not None]


def test_a_paper_is_written_and_read_along() -> None:
    trace = load("automerge-paper")
    author, reader = Document(SCHEMA), Document(SCHEMA)
    count = 0
    for transaction in trace["txns"]:
        for delta in write(author, transaction, "author#1"):
            if count < READ_ALONG:
                reader.merge(delta)
            count += 1
    assert author.values() == {"body": trace["endContent"]}
    reader.merge(author.state()["fields"])
    assert reader.values() == author.values()
    assert author.text("body").known() == reader.text("body").known() == {"author#1": (count,)}
    again = Document.from_state(json.loads(json.dumps(author.state())))
    assert again.values() == author.values()
    assert again.text("body").moment() == reader.text("body").moment()


def test_two_friends_write_at_the_same_time() -> None:
    """Each writes knowing exactly what they knew then; a third gets all that they wrote, out of order."""
    trace = load("friendsforever")
    names = ("one#1", "two#2")
    friends, third = (Document(SCHEMA), Document(SCHEMA)), Document(SCHEMA)
    written: tuple[list[Delta], list[Delta]] = ([], [])
    heard = [0, 0]
    """How much each has taken over of what the other wrote."""
    known: list[tuple[int, int]] = []
    """After each transaction: how much its writer knew of what each wrote."""
    posted: list[Delta] = []
    for transaction in trace["txns"]:
        me = transaction["agent"]
        other = 1 - me
        counts = [(0, 0), *(known[at] for at in transaction["parents"])]
        mine, theirs = (max(count[who] for count in counts) for who in (me, other))
        assert mine == len(written[me])
        assert heard[me] <= theirs
        for delta in written[other][heard[me] : theirs]:
            friends[me].merge(delta)
        heard[me] = theirs
        deltas = write(friends[me], transaction, names[me])
        written[me].extend(deltas)
        posted += deltas
        mine += len(deltas)
        known.append((theirs, mine) if me else (mine, theirs))
    for friend, state in zip(friends, [friends[1].state(), friends[0].state()], strict=True):
        friend.merge(state["fields"])
    for start in range(0, len(posted), BATCH):
        for delta in reversed(posted[start : start + BATCH]):
            third.merge(delta)
    everyone = [document.text("body") for document in (*friends, third)]
    assert {text.value for text in everyone} == {trace["endContent"]}
    assert len({text.moment() for text in everyone}) == 1
    assert all(text.known() == everyone[0].known() for text in everyone)
    assert {run.agent for run in third.text("body").runs()} == {"one", "two"}
