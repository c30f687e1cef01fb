"""A document at any version of its past."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from watchroom.crdt.document import Document, Field
from watchroom.crdt.engine import parse_version_ends
from watchroom.crdt.state_checks import invalid_state
from watchroom.crdt.text import Text, decode_update
from watchroom.model import Json

MOST_KEPT: Final = 128
"""So many moments are kept whole at most; between them deltas are merged."""

Deltas: TypeAlias = Callable[[int, int], Iterable[Mapping[str, Json]]]
"""Gives the deltas of the versions after the first number, up to the second, in order."""


class _Moment(NamedTuple):
    version: int
    fields: Mapping[str, Field]
    known: Mapping[str, dict[int, int]]


class Timeline:
    """Restores any version of ``document``, which holds the deltas up to ``version``; feed it every delta
    from the first on with `add`.

    Texts are rebuilt from their history; of the other fields copies are kept at evenly spaced versions. One
    `at` costs the reading of the texts' history, and the merging of at most 1/128 of the deltas, which
    ``deltas`` fetches once more. Not for two threads at a time."""

    def __init__(self, document: Document, version: int, deltas: Deltas) -> None:
        self._whole = document.copy()
        self._holds = version
        self._deltas = deltas
        self._fields: dict[str, Field] = {
            name: field.copy()
            for name in document.schema
            if not isinstance(field := Document(document.schema).field(name), Text)
        }
        self._known: dict[str, dict[int, int]] = {
            name: {} for name in document.schema if name not in self._fields
        }
        self._version = 1
        self._moments = [self._take_snapshot()]
        self._apart = 1

    @property
    def version(self) -> int:
        """The number of the last delta that was added."""
        return self._version

    def add(self, delta: Mapping[str, Json]) -> None:
        """Add ``delta``, that of the next version. Raises `InvalidState`."""
        _apply(delta, self._fields, self._known)
        self._version += 1
        if self._version > self._holds:
            for name in self._known.keys() & delta.keys():
                self._whole.text(name).merge(delta[name])
        if self._version - self._moments[-1].version >= self._apart:
            self._moments.append(self._take_snapshot())
            if len(self._moments) > MOST_KEPT:
                self._moments = self._moments[::2]
                self._apart *= 2

    def at(self, version: int) -> Document:
        """The document at ``version`` (clamped to those added), valid until the next call. Read only."""
        version = max(1, min(version, self._version))
        nearest = max((each for each in self._moments if each.version <= version), key=lambda each: each[0])
        fields = {name: field.copy() for name, field in nearest.fields.items()}
        known = {name: dict(ends) for name, ends in nearest.known.items()}
        for delta in self._deltas(nearest.version, version):
            _apply(delta, fields, known)
        for name, ends in known.items():
            fields[name] = self._whole.text(name).restore(ends)
        return self._whole.with_fields(fields)

    def _take_snapshot(self) -> _Moment:
        fields = {name: field.copy() for name, field in self._fields.items()}
        return _Moment(self._version, fields, {name: dict(ends) for name, ends in self._known.items()})


def _apply(
    delta: Mapping[str, Json], fields: Mapping[str, Field], known: Mapping[str, dict[int, int]]
) -> None:
    for name, state in delta.items():
        if name in fields:
            fields[name].merge(state)
        elif name in known:
            ends = known[name]
            for peer, end in parse_version_ends(decode_update(state)).items():
                ends[peer] = max(end, ends.get(peer, 0))
        else:
            raise invalid_state("schema")
