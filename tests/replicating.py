"""Replicas of a document that edit apart, and a network that delays, duplicates, reorders and loses
packets."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from hypothesis import strategies as st
from watchroom import Json
from watchroom.algorithms.crdt import (
    Delta,
    Document,
    FieldType,
    HybridClock,
    LWWMap,
    LWWRegister,
    ORSet,
    PNCounter,
    Text,
)

ALL: Final[Mapping[str, FieldType]] = {
    "title": "lww_register",
    "body": "rga",
    "tags": "or_set",
    "settings": "lww_map",
    "votes": "pn_counter",
}
SCHEMAS: Final[Mapping[str, Mapping[str, FieldType]]] = {
    **{kind: {name: kind} for name, kind in ALL.items()},
    "document": ALL,
}
"""A document of each type alone, and one of all types."""


class Edit(NamedTuple):
    """An edit of a field: the method, and its arguments without stamp and replica."""

    field: str
    method: str
    arguments: tuple[Json, ...]


_words = st.text(st.sampled_from("abc é你🙂\n"), min_size=1, max_size=4)
_positions = st.integers(-2, 20)
_amounts = st.integers(0, 5) | st.just(2**40)
_keys = st.sampled_from(("theme", "lang", "键"))
_values = st.none() | st.booleans() | st.integers(-2, 2) | st.just(0.5) | _words | st.just({"a": [1, None]})
_elements = st.sampled_from(("urgent", "后", ""))


_EDITS: Final[Mapping[FieldType, Sequence[tuple[str, Sequence[st.SearchStrategy[Json]]]]]] = {
    "lww_register": [("set", [_values])],
    "rga": [
        ("insert", [_positions, _words]),
        ("insert", [_positions, _words]),
        ("delete", [_positions, _positions]),
        ("replace", [_positions, _positions, _words]),
    ],
    "or_set": [("add", [_elements]), ("remove", [_elements])],
    "lww_map": [
        ("set", [_keys, _values]),
        ("remove", [_keys]),
        ("replace", [st.dictionaries(_keys, _values, max_size=2)]),
    ],
    "pn_counter": [("increment", [_amounts]), ("decrement", [_amounts])],
}


@cache
def edits(*fields: tuple[str, FieldType]) -> st.SearchStrategy[Edit]:
    """Edits of the fields of a schema, given as its items."""
    return st.one_of(
        [
            st.builds(Edit, st.just(name), st.just(method), st.tuples(*arguments))
            for name, kind in fields
            for method, arguments in _EDITS[kind]
        ]
    )


@cache
def some_edits(*fields: tuple[str, FieldType], at_least: int = 0) -> st.SearchStrategy[list[Edit]]:
    return st.lists(edits(*fields), min_size=at_least, max_size=6)


def new_document(schema: Mapping[str, FieldType], time: int = 0) -> Document:
    """Return a document whose wall clock stands still, so that replicas often write at the same time."""
    return Document(schema, clock=HybridClock(lambda: time))


def perform(document: Document, edit: Edit, replica: str) -> Delta:
    """Make the edit and return its delta after a JSON round trip, empty if nothing changed."""
    field = document.field(edit.field)
    delta: object
    match field:
        case LWWRegister() | LWWMap():
            delta = getattr(field, edit.method)(*edit.arguments, document.stamp(replica))
        case Text():
            delta = getattr(field, edit.method)(*edit.arguments, replica).delta
        case ORSet() | PNCounter():
            writer = () if edit.method == "remove" else (replica,)
            delta = getattr(field, edit.method)(*edit.arguments, *writer)
    return {} if delta is None else sent({edit.field: delta})


def sent(value: object) -> dict[str, Json]:
    """Return ``value`` after a JSON round trip."""
    received: dict[str, Json] = json.loads(json.dumps(value, allow_nan=False))
    return received


def fields(document: Document) -> dict[str, Json]:
    """Return the part of the document's state that others merge, after a JSON round trip."""
    return sent(document.state()["fields"])


def restarted(document: Document, time: int = 0) -> Document:
    """Return the replica restored from the document's state."""
    return Document.from_state(sent(document.state()), clock=HybridClock(lambda: time))


def evidence(document: Document) -> str:
    """Return all content of a document. The bytes of equal text histories may differ, so text counts by its
    value, authors and known operations."""
    held: dict[str, object] = {"values": document.values()}
    for name, kind in document.schema.items():
        if kind == "rga":
            text = document.text(name)
            held[name] = [
                text.value,
                text.version_vector(),
                text.runs(),
                text.state()["by"],
            ]
        else:
            held[name] = document.field(name).state()
    return json.dumps(held, sort_keys=True, ensure_ascii=False)


class Written(NamedTuple):
    """An edit in the network's log. Its number is its place in the log."""

    edit: Edit
    delta: Delta
    known: frozenset[int]
    """The numbers of the edits that its writer knew, without this one."""


class Packet(NamedTuple):
    number: int
    delta: Delta


class Network:
    """Replicas, and the packets between them."""

    def __init__(self, schema: Mapping[str, FieldType], clocks: Sequence[int], chance: random.Random) -> None:
        self._clocks = clocks
        self._chance = chance
        self._peers = len(clocks)
        self.log: list[Written] = []
        self.replicas = [new_document(schema, clock) for clock in clocks]
        self.names = [f"{'abc'[at % 3]}#{at + 1:x}" for at in range(len(clocks))]
        self.known: list[frozenset[int]] = [frozenset() for _ in clocks]
        self._mail: list[list[Packet]] = [[] for _ in clocks]
        self._group = [0] * len(clocks)

    def edit(self, at: int, edit: Edit) -> None:
        """Make an edit. Its delta is sent to the reachable replicas, and lost to the others."""
        delta = perform(self.replicas[at], edit, self.names[at])
        number = len(self.log)
        self.log.append(Written(edit, delta, self.known[at]))
        self.known[at] |= {number}
        for to, mail in enumerate(self._mail):
            if to != at and self._group[to] == self._group[at]:
                mail.append(Packet(number, delta))

    def split(self, groups: Sequence[int]) -> None:
        """Partition the network: only replicas of the same group reach each other."""
        self._group = list(groups)

    def deliver(self, at: int) -> None:
        """Deliver some of the replica's packets in any order. Some of these are delivered again later, and
        some are lost."""
        mail = self._mail[at]
        self._chance.shuffle(mail)
        for packet in mail[: self._chance.randint(0, len(mail))]:
            fate = self._chance.random()
            if fate > 0.3:
                mail.remove(packet)
            if fate > 0.1:
                self.replicas[at].merge(packet.delta)
                self.known[at] |= {packet.number}

    def restart(self, at: int, *, renamed: bool) -> None:
        """Restart the replica from its state, under a new name if ``renamed``."""
        self.replicas[at] = restarted(self.replicas[at], self._clocks[at])
        if renamed:
            self._peers += 1
            self.names[at] = f"{self.names[at][0]}#{self._peers:x}"

    def exchange(self, at: int, other: int) -> None:
        """Merge each state into the other, if the replicas reach each other."""
        if self._group[at] == self._group[other]:
            states = fields(self.replicas[at]), fields(self.replicas[other])
            self.replicas[at].merge(states[1])
            self.replicas[other].merge(states[0])
            self.known[at] = self.known[other] = self.known[at] | self.known[other]

    def settle(self) -> None:
        """End the partition, and merge all states in any order."""
        self.split([0] * len(self.replicas))
        order = list(range(len(self.replicas)))
        self._chance.shuffle(order)
        there = [*pairwise(order)]
        for at, other in there + there[::-1]:
            self.exchange(at, other)
