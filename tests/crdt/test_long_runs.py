"""Merging a long text does not take quadratic time.

Inserted text makes no long runs in the history of Loro. Long runs of other writers are merged separately if
they build on everything before them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any, cast

import pytest
from loro import LoroDoc, VersionVector
from watchroom.algorithms.crdt import Text
from watchroom.algorithms.crdt.engine import Engine
from watchroom.algorithms.crdt.text import decode_update

ALICE, BOB = "alice#a1", "bob#b2"
LONGEST = 2048
"""Characters."""
LINE = "a line of a text 文本 \U0001f600\n"


def lines(length: int) -> str:
    return (LINE * (length // len(LINE) + 1))[:length]


def inserted(text: Text) -> Iterator[tuple[int, int, int]]:
    """Return the insertions of a history: first operation, position, length."""
    document = LoroDoc()  # type: ignore[no-untyped-call]
    document.import_(decode_update(text.state()))
    first = VersionVector()  # type: ignore[no-untyped-call]
    updates = json.loads(document.export_json_updates(first, document.oplog_vv))
    for change in updates["changes"]:
        for op in change["ops"]:
            if op["content"]["type"] == "insert":
                yield op["counter"], op["content"]["pos"], len(op["content"]["text"])


def longest_run(text: Text) -> int:
    """Return the runs that Loro makes of characters that one writer inserted from left to right."""
    longest = run = 0
    ops = sorted(inserted(text))
    for before, op in pairwise([(-1, -1, 0), *ops]):
        continues = (before[0] + before[2], before[1] + before[2]) == op[:2]
        run = run + op[2] if continues else op[2]
        longest = max(longest, run)
    return longest


def paste(text: Text) -> None:
    text.insert(0, lines(300_000), ALICE)


def append(text: Text) -> None:
    for _ in range(100):
        text.insert(len(text), lines(3000), ALICE)


def replace(text: Text) -> None:
    text.insert(0, lines(100_000), ALICE)
    text.replace(0, 50_000, lines(200_001), ALICE)
    text.delete(7, 90_000, ALICE)


@pytest.mark.parametrize("write", [paste, append, replace])
def test_what_is_inserted_makes_no_long_run(write: Callable[[Text], None]) -> None:
    text = Text()
    write(text)
    assert longest_run(text) <= LONGEST


def test_what_is_typed_makes_one_run_as_ever() -> None:
    text = Text()
    for _ in range(300):
        text.insert(len(text), "word ", ALICE)
    assert longest_run(text) == 1500


@pytest.mark.parametrize("length", [1, 64, 65, 2048, 2049, 4096, 4097, 200_000])
def test_pieces_stay_together_beside_what_is_inserted_at_once(length: int) -> None:
    text = Text()
    first = text.insert(0, "[]", ALICE).delta
    other = Text()
    other.merge(first)
    mine, theirs = lines(length), "x" * length
    deltas = [text.insert(1, mine, ALICE).delta, other.insert(1, theirs, BOB).delta]
    text.merge(deltas[1])
    other.merge(deltas[0])
    assert text.value == other.value
    assert text.value in (f"[{mine}{theirs}]", f"[{theirs}{mine}]")


class CountedImports:
    """A Loro document that counts the updates in each import."""

    def __init__(self) -> None:
        self.document = LoroDoc()  # type: ignore[no-untyped-call]
        self.imports: list[int] = []

    def import_(self, update: bytes) -> object:
        return self.import_batch([update])

    def import_batch(self, updates: Sequence[bytes]) -> object:
        self.imports.append(len(updates))
        return self.document.import_batch(updates)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.document, name)


def imports_of(updates: Sequence[bytes]) -> list[int]:
    document = CountedImports()
    Engine(cast("LoroDoc", document)).merge_updates(updates)
    return document.imports


def written(*texts: str) -> list[bytes]:
    """Append texts one after the other, from left to right, as other clients do."""
    document = LoroDoc()  # type: ignore[no-untyped-call]
    updates: list[bytes] = []

    def keep(update: bytes) -> bool:
        updates.append(update)
        return True

    subscription = document.subscribe_local_update(keep)
    for each in texts:
        document.get_text("text").insert(0, each)
        document.commit()
    del subscription
    return updates


def test_a_long_run_is_merged_alone_and_small_edits_at_once() -> None:
    small = ["edit"] * 50
    assert imports_of(written(lines(100_000), *small)) == [1, 50]
    assert imports_of(written(*small, lines(100_000), *small)) == [50, 1, 50]
    assert imports_of(written(*small)) == [50]


def test_edits_that_were_made_apart_are_merged_at_once() -> None:
    (long,), others = written(lines(100_000)), [written(lines(100_000), "edit")[:1] for _ in range(9)]
    assert imports_of([long, *(update for each in others for update in each)]) == [1, 9]


def test_what_comes_in_any_order_comes_to_the_same_text() -> None:
    updates = written("one", lines(100_000), "two", lines(70_000), "three")
    wanted = Engine()
    for update in updates:
        wanted.merge_update(update)
    for order in (updates, updates[::-1], updates[1::2] + updates[::2]):
        engine = Engine()
        engine.merge_updates(order)
        assert engine.text() == wanted.text()
        assert not engine.pending_updates()


@pytest.mark.parametrize("long", [*written(lines(100_000)), Engine().edit(0, 0, lines(100_000), 3)])
def test_a_history_is_merged_in_parts_where_it_is_long(long: bytes) -> None:
    one, other = Engine(), Engine()
    one.merge_update(long)
    other.merge_update(long)
    for number in range(20):
        one.edit(number, 0, "one", 1)
        other.merge_update(one.edit(number * 7, 2, "both", 1)) if number % 5 == 0 else other.edit(
            number, 1, "", 2
        )
    one.merge_update(other.history())
    document = CountedImports()
    engine = Engine(cast("LoroDoc", document))
    engine.merge_update(one.history())
    assert document.imports == [1, 1]
    assert (engine.text(), engine.version_vector()) == (one.text(), one.version_vector())


@pytest.mark.parametrize("seed", range(4))
def test_a_history_in_parts_is_the_same_history(seed: int) -> None:
    chance = Random(seed)
    engines = [Engine() for _ in range(3)]
    for _ in range(60):
        peer = chance.randrange(3)
        engine = engines[peer]
        length = len(engine)
        position = chance.randint(0, length)
        inserted = lines(70_000) if chance.random() < 0.1 else "some words"
        engine.edit(position, min(chance.randrange(40), length - position), inserted, peer + 1)
        if chance.random() < 0.3:
            engine.merge_update(engines[chance.randrange(3)].history())
    whole = Engine()
    for engine in engines:
        whole.merge_update(engine.history())
    again = Engine()
    again.merge_update(whole.history())
    past = again.restore(engines[0].version_vector())
    assert (again.text(), again.version_vector()) == (whole.text(), whole.version_vector())
    assert past.text() == engines[0].text()
