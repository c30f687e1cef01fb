"""Replays of real editing sessions with edits as models make them, identified by the surrounding text.

The editor ends with the same text as a plain string.
"""

from __future__ import annotations

from itertools import chain, islice

import pytest
from recordings import SCHEMA, load, turns, write
from watchroom.algorithms.crdt import Delta, Document
from watchroom.algorithms.editing import TextEditor, TextEditStatus

_FIRST_CONTEXT = 12
TRANSACTIONS = 25_000
"""Transactions of each trace that are replayed: all of the component, and the beginning of the paper."""
TURNS = 4_000
"""Turns of the session of two friends that are replayed; ``tests/crdt/test_traces.py`` merges all of it."""


def edit(editor: TextEditor, position: int, deleted: int, inserted: str) -> None:
    """Make one edit by as much surrounding text as identifies the position, or else by a choice."""
    text = editor.snapshot()
    if not text:
        assert editor.append(inserted).status is TextEditStatus.SUCCESS
        return
    around = _FIRST_CONTEXT
    while True:
        start, end = max(0, position - around), min(len(text), position + deleted + around)
        old = text[start:end]
        new = text[start:position] + inserted + text[position + deleted : end]
        if old == new:
            return
        response = editor.replace(old, new)
        if response.status is TextEditStatus.SUCCESS:
            return
        assert response.status is TextEditStatus.MULTI_MATCH
        starts = editor.selections.starts if editor.selections else ()
        if start in starts:
            chosen = editor.replace_selection(starts.index(start) + 1)
            assert chosen.status is TextEditStatus.SUCCESS
            return
        around *= 4


@pytest.mark.parametrize("name", ["automerge-paper", "sveltecomponent"])
def test_a_text_is_written_by_replacing(name: str) -> None:
    trace = load(name)
    text = trace.get("startContent", "")
    editor = TextEditor(text)
    for transaction in trace["txns"][:TRANSACTIONS]:
        for position, deleted, inserted in transaction["patches"]:
            edit(editor, position, deleted, inserted)
            text = text[:position] + inserted + text[position + deleted :]
    assert editor.snapshot() == text
    assert text == trace["endContent"] or len(trace["txns"]) > TRANSACTIONS


def test_two_friends_write_at_the_same_time() -> None:
    """Each writer edits a buffer. Edits of the other arrive merged, as an update of the whole content."""
    trace = load("friendsforever")
    merging = tuple(Document(SCHEMA) for _ in range(2))
    editors = tuple(TextEditor() for _ in range(2))
    written: tuple[list[list[Delta]], list[list[Delta]]] = ([], [])
    heard = [0, 0]

    def hear(me: int, theirs: int) -> None:
        for delta in chain.from_iterable(written[1 - me][heard[me] : theirs]):
            merging[me].merge(delta)
        if heard[me] != theirs:
            assert editors[me].try_update(merging[me].text("body").value).ok
        heard[me] = theirs

    for me, theirs, transaction in islice(turns(trace), TURNS):
        hear(me, theirs)
        for position, deleted, inserted in transaction["patches"]:
            edit(editors[me], position, deleted, inserted)
        written[me].append(write(merging[me], transaction, ("one#1", "two#2")[me]))
    both = Document(SCHEMA)
    both.merge_all([*chain.from_iterable(chain.from_iterable(written))])
    for me in range(2):
        hear(me, len(written[1 - me]))
        assert editors[me].snapshot() == both.text("body").value
