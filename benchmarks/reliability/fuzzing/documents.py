"""States and deltas of realtime documents, as a broken or malicious replica sends them."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, Self

from watchroom.algorithms.crdt import Document, FieldType
from watchroom.algorithms.crdt.checkpoint import Checkpoint, parse_checkpoint, render_checkpoint
from watchroom.errors import WatchroomError
from watchroom.model import Json

from reliability.fuzzing.engine import SLOW_SECONDS
from reliability.fuzzing.mutation import mutated, mutated_json, some_json, to_bytes
from reliability.fuzzing.oracle import check_sendable, refusal_kind, require

_SCHEMA: Final[Mapping[str, FieldType]] = {
    "title": "lww_register",
    "body": "rga",
    "tags": "or_set",
    "meta": "lww_map",
    "votes": "pn_counter",
}
_REPLICAS: Final = ("alice#a1", "bob#b2", "carol#c3")
_LEAVES: Final[Sequence[Json]] = (
    *(*_REPLICAS, "alice", "alice#zz", "#"),
    [1, 0, "alice#a1"],
    {"value": 1, "stamp": [2, 0, "bob#b2"]},
    {"removed": True, "stamp": [2**53, 0, "bob#b2"]},
    {"elements": {"tag 0": {"alice#a1": 1}}, "context": {"alice#a1": 1}},
    {"elements": {}, "cloud": [["bob#b2", 3]]},
    {"ops": "", "by": "bob#b2"},
    {"history": "", "by": []},
    {},
    [],
    *(*_SCHEMA, *_SCHEMA.values(), 2**53, 2**63, -1, 0, 1.5, float("nan"), None, True, "", "\ud800"),
)
_PACKED: Final = ("ops", "history", "waiting")


class Documents:
    """Offers deltas, states and checkpoints to a document, which must accept them, or refuse and stay
    unchanged."""

    name = "documents"
    size = 100_000
    period = 20_000
    slow_seconds = SLOW_SECONDS

    def __init__(self, folder: Path) -> None:
        self._base = _filled(*_REPLICAS[:2])
        self._other: Json = json.loads(json.dumps(_filled(_REPLICAS[2]).state()["fields"]))
        expected = self._base.copy()
        expected.merge(self._other)
        self._expected = _evidence(expected)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to release."""

    def generate(self, chance: Random) -> bytes:
        """Return ``d`` and a delta, ``s`` and a state, or ``c`` and a checkpoint."""
        document = _filled(*chance.sample(_REPLICAS, chance.randint(1, 3)))
        kind = chance.random()
        if kind < 0.2:
            checkpoint = Checkpoint("board", 3, frozenset(_REPLICAS), document)
            return b"c" + render_checkpoint(checkpoint, "2026-01-01T00:00:00.000Z", "alice")
        if kind < 0.4:
            return b"s" + to_bytes(document.state())
        fields = document.state()["fields"]
        if kind < 0.6 and isinstance(fields, dict):
            name = chance.choice(list(fields))
            fields = {name: fields[name]}
        elif kind < 0.8:
            delta = document.text("body").insert(0, "later", _REPLICAS[1]).delta
            fields = {"body": json.loads(json.dumps(delta))}
        elif kind < 0.9:
            fields = {chance.choice(list(_SCHEMA)): some_json(chance, _LEAVES)}
        return b"d" + to_bytes(_damaged(fields, chance))

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        kind, rest = data[:1], data[1:]
        if chance.random() < 0.7:
            try:
                return kind + to_bytes(_damaged(json.loads(rest), chance))
            except (ValueError, RecursionError):
                pass
        return kind + mutated(rest, chance, self.size, (b"{}", b"[]", b"null", b"1e400"), other[1:])

    def run(self, data: bytes) -> Hashable:
        kind, rest = data[:1], data[1:]
        if kind == b"c":
            try:
                found = parse_checkpoint(rest)
            except WatchroomError as error:
                return refusal_kind(error)
            return "checkpoint", len(found.document.schema)
        try:
            given: Json = json.loads(rest)
        except (ValueError, RecursionError):
            return "no JSON"
        return self._restore(given) if kind == b"s" else self._merge(given)

    def check(self) -> Sequence[str]:
        return ()

    def _restore(self, state: Json) -> Hashable:
        """Restore a document. A replica's own state is trusted, but a refusal is the only permitted
        failure."""
        try:
            document = Document.from_state(state)
            check_sendable(document.values())
            document.state()
        except WatchroomError as error:
            return refusal_kind(error)
        return "state", len(document.schema)

    def _merge(self, delta: Json) -> Hashable:
        document = self._base.copy()
        before = _evidence(document)
        is_single = isinstance(delta, dict) and len(delta) == 1
        try:
            document.merge(delta)
        except WatchroomError as error:
            if is_single:
                require(_evidence(document) == before, "a refused delta has changed something")
                document.merge(self._other)
                require(_evidence(document) == self._expected, "a refused delta has changed what comes later")
                self._edit(document)
            return refusal_kind(error)
        check_sendable(document.values())
        once = document.values()
        merged = _evidence(document)
        document.merge(delta)
        require(_evidence(document) == merged, "merged twice is not as merged once")
        again = Document.from_state(json.loads(json.dumps(document.state(), allow_nan=False)))
        require(_evidence(again) == merged, "another document after a restart")
        self._edit(document)
        return tuple(key for key, value in once.items() if value != self._base.values()[key])

    def _edit(self, document: Document) -> None:
        """Check that the document can be edited after a merge."""
        document.register("title").set("x", document.stamp(_REPLICAS[2]))
        text = document.text("body")
        text.insert(len(text.value), "x", _REPLICAS[2])
        text.runs()
        document.set("tags").add("x", _REPLICAS[2])
        document.map("meta").set("x", 1, document.stamp(_REPLICAS[2]))
        document.counter("votes").increment(1, _REPLICAS[2])
        check_sendable(document.state())


def _filled(*replicas: str) -> Document:
    document = Document(_SCHEMA)
    for number, replica in enumerate(replicas):
        document.register("title").set(f"看板 {number}", document.stamp(replica))
        document.text("body").insert(0, "two 🙂 words", replica)
        document.text("body").delete(1, 3, replica)
        document.set("tags").add(f"tag {number % 2}", replica)
        document.map("meta").set("theme", {"dark": [True, None]}, document.stamp(replica))
        document.counter("votes").increment(3, replica)
    document.set("tags").remove("tag 1")
    return document


def _evidence(document: Document) -> str:
    """Return all content of a document. The bytes of equal text histories may differ, so text counts by its
    value, authors and known operations."""
    text = document.text("body")
    held: list[object] = [text.value, text.version_vector(), text.runs()]
    held += [document.field(name).state() for name in document.schema if name != "body"]
    return json.dumps([document.values(), held], sort_keys=True)


def _damaged(value: Json, chance: Random) -> Json:
    """Return ``value`` with one change, in a history also inside of packed bytes."""
    if chance.random() < 0.4:
        damaged = _with_damaged_bytes(value, chance)
        if damaged is not None:
            return damaged
    return mutated_json(value, chance, _LEAVES)


def _with_damaged_bytes(value: Json, chance: Random) -> Json:
    """Return ``value`` with other bytes in one of its packed texts, None if it has none."""
    if not isinstance(value, dict):
        return None
    for name in value:
        packed = value[name]
        if name in _PACKED and isinstance(packed, str):
            try:
                data = base64.b64decode(packed)
            except ValueError:
                return None
            try:
                data = zlib.compress(mutated(zlib.decompress(data), chance, 100_000))
            except zlib.error:
                data = mutated(data, chance, 100_000)
            return {**value, name: base64.b64encode(data).decode()}
        inner = _with_damaged_bytes(packed, chance)
        if inner is not None:
            return {**value, name: inner}
    return None
