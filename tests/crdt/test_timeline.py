"""A document restored at any version equals the document made from the deltas up to it."""

from __future__ import annotations

from random import Random

import pytest
from watchroom.algorithms.crdt import Delta, Document, FieldType
from watchroom.algorithms.crdt.history import MAX_SNAPSHOTS, DocumentHistory
from watchroom.errors import InvalidState

SCHEMA: dict[str, FieldType] = {
    "title": "lww_register",
    "body": "rga",
    "tags": "or_set",
    "settings": "lww_map",
    "views": "pn_counter",
}
VERSIONS = 3 * MAX_SNAPSHOTS
REPLICAS = ("alice#a1", "bob#b2")


def edit(document: Document, replica: str, random: Random) -> Delta:
    """Make a random edit of a field."""
    name = random.choice([*SCHEMA])
    word = random.choice("abcdefgh")
    if name == "body":
        text = document.text("body")
        start = random.randrange(len(text) + 1)
        return {name: text.replace(start, start + random.randrange(2), word, replica).delta}
    if name == "tags":
        tags = document.set("tags")
        return {name: tags.remove(word) if word in tags else tags.add(word, replica)}
    if name == "settings":
        return {name: document.map("settings").set(word, random.randrange(9), document.stamp(replica))}
    if name == "views":
        return {name: document.counter("views").increment(1, replica)}
    return {name: document.register("title").set(word, document.stamp(replica))}


def history(seed: int) -> list[Delta]:
    """Return the deltas of two replicas that merge now and then."""
    random = Random(seed)
    documents = [Document(SCHEMA), Document(SCHEMA)]
    unheard: list[list[Delta]] = [[], []]
    deltas: list[Delta] = []
    for _ in range(VERSIONS):
        who = random.randrange(2)
        if random.random() < 0.2:
            documents[who].merge_all(unheard[who])
            unheard[who].clear()
        delta = edit(documents[who], REPLICAS[who], random)
        unheard[1 - who].append(delta)
        deltas.append(delta)
    return deltas


def test_every_version_is_what_its_deltas_make_of_it() -> None:
    deltas = history(1)
    whole = Document(SCHEMA)
    whole.merge_all(deltas[: VERSIONS // 2])
    timeline = DocumentHistory(whole, 1 + VERSIONS // 2, lambda after, until: deltas[after - 1 : until - 1])
    told, folded = [Document(SCHEMA).values()], Document(SCHEMA)
    for delta in deltas:
        timeline.add(delta)
        folded.merge(delta)
        told.append(folded.values())
    assert timeline.version == VERSIONS + 1
    versions = [*range(1, VERSIONS + 2)]
    Random(2).shuffle(versions)
    for version in versions:
        assert timeline.restore(version).values() == told[version - 1], version


def test_beyond_either_end_is_the_end() -> None:
    deltas = history(3)[:5]
    document = Document(SCHEMA)
    timeline = DocumentHistory(document, 1, lambda after, until: deltas[after - 1 : until - 1])
    for delta in deltas:
        timeline.add(delta)
        document.merge(delta)
    assert timeline.restore(-7).values() == Document(SCHEMA).values()
    assert timeline.restore(99).values() == document.values()


def test_a_moment_costs_at_most_a_128th_of_the_deltas_and_none_is_outside() -> None:
    deltas = history(3)
    document = Document(SCHEMA)
    document.merge_all(deltas)
    fetched: list[int] = []

    def fetch(after: int, until: int) -> list[Delta]:
        fetched.append(until - after)
        return deltas[after - 1 : until - 1]

    timeline = DocumentHistory(document, 1 + VERSIONS, fetch)
    assert timeline.version == 1
    for delta in deltas:
        timeline.add(delta)
    assert timeline.version == 1 + VERSIONS
    first, last = Document(SCHEMA).values(), document.values()
    assert (
        timeline.restore(1).values() == timeline.restore(0).values() == timeline.restore(-5).values() == first
    )
    assert timeline.restore(1 + VERSIONS).values() == timeline.restore(2 + VERSIONS).values() == last
    fetched.clear()
    for version in range(1, VERSIONS + 2):
        timeline.restore(version)
    # Every second snapshot was dropped, twice.
    assert (max(fetched), len(fetched)) == (3, VERSIONS + 1)


def test_a_delta_of_a_field_that_the_document_does_not_have_is_refused() -> None:
    timeline = DocumentHistory(Document(SCHEMA), 1, lambda _, __: [])
    with pytest.raises(InvalidState):
        timeline.add({"other": {}})
