"""Replays of real editing sessions: every replica ends with the recorded text."""

from __future__ import annotations

import json

from effort import rounds
from recordings import SCHEMA, load, turns, write
from watchroom.algorithms.crdt import Delta, Document

TRANSACTIONS = rounds(20_000, 60_000)
"""Transactions of the paper that are replayed."""
READ_ALONG = rounds(5_000, 10_000)
"""Deltas that the reader merges one by one. It gets the rest as a state."""
BATCH = 20
"""Deltas that arrive in the wrong order."""


def test_a_paper_is_written_and_read_along() -> None:
    trace = load("automerge-paper")
    author, reader = Document(SCHEMA), Document(SCHEMA)
    count = 0
    text = ""
    for transaction in trace["txns"][:TRANSACTIONS]:
        for position, deleted, inserted in transaction["patches"]:
            text = text[:position] + inserted + text[position + deleted :]
        for delta in write(author, transaction, "author#1"):
            if count < READ_ALONG:
                reader.merge(delta)
            count += 1
    assert author.values() == {"body": text}
    reader.merge(author.state()["fields"])
    assert reader.values() == author.values()
    assert (
        author.text("body").version_vector() == reader.text("body").version_vector() == {"author#1": (count,)}
    )
    again = Document.from_state(json.loads(json.dumps(author.state())))
    assert again.values() == author.values()
    assert again.text("body").version_vector() == reader.text("body").version_vector()


def test_two_friends_write_at_the_same_time() -> None:
    """Each writer edits with the knowledge it had in the session. A third replica gets all edits out of
    order."""
    trace = load("friendsforever")
    names = ("one#1", "two#2")
    friends, third = (Document(SCHEMA), Document(SCHEMA)), Document(SCHEMA)
    written: tuple[list[list[Delta]], list[list[Delta]]] = ([], [])
    heard = [0, 0]
    """Number of edits that each writer has merged from the other."""
    posted: list[Delta] = []
    for me, theirs, transaction in turns(trace):
        for deltas in written[1 - me][heard[me] : theirs]:
            for delta in deltas:
                friends[me].merge(delta)
        heard[me] = theirs
        written[me].append(write(friends[me], transaction, names[me]))
        posted += written[me][-1]
    for friend, state in zip(friends, [friends[1].state(), friends[0].state()], strict=True):
        friend.merge(state["fields"])
    for start in range(0, len(posted), BATCH):
        for delta in reversed(posted[start : start + BATCH]):
            third.merge(delta)
    everyone = [document.text("body") for document in (*friends, third)]
    assert {text.value for text in everyone} == {trace["endContent"]}
    assert len({str(sorted(text.version_vector().items())) for text in everyone}) == 1
    assert all(text.version_vector() == everyone[0].version_vector() for text in everyone)
    assert {run.agent for run in third.text("body").runs()} == {"one", "two"}
