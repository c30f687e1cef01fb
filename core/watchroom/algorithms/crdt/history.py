"""The authors of the parts of a document, and the document at earlier versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from watchroom.algorithms.crdt.clock import agent_of
from watchroom.algorithms.crdt.counter import PNCounter
from watchroom.algorithms.crdt.document import Document, Field
from watchroom.algorithms.crdt.engine import parse_version_ends
from watchroom.algorithms.crdt.lww import LWWMap, LWWRegister, StampedValue
from watchroom.algorithms.crdt.orset import ORSet
from watchroom.algorithms.crdt.state_checks import invalid_state
from watchroom.algorithms.crdt.text import Text, TextRun, decode_update
from watchroom.model import Json

MAX_ATTRIBUTED: Final = 200_000
"""Maximum characters of a text that is attributed. Attribution takes a microsecond per character."""
MAX_SNAPSHOTS: Final = 128
"""Maximum number of snapshots in a timeline. Deltas are merged to reach the versions between them."""


class AttributedValue(NamedTuple):
    """A ``value`` written by ``agent`` at ``time`` (milliseconds since the epoch).

    ``is_new``: whether it was written since the earlier attribution.
    """

    value: Json
    agent: str
    time: int
    is_new: bool = False


class AttributedRegister(NamedTuple):
    """A register. ``written`` is None before the first write."""

    written: AttributedValue | None


class AttributedText(NamedTuple):
    """A text with its writers.

    - ``runs``: the text by writer; empty beyond `MAX_ATTRIBUTED` characters.
    - ``version_vector``: identifies this state of the text.
    """

    text: str
    runs: tuple[TextRun, ...]
    version_vector: Mapping[str, tuple[int, ...]]


class AttributedElement(NamedTuple):
    """An element of a set with the ``agents`` that added it."""

    text: str
    agents: tuple[str, ...]
    is_new: bool = False


class AttributedSet(NamedTuple):
    """The ``elements`` of a set. ``removed``: the elements that were removed since the earlier
    attribution."""

    elements: tuple[AttributedElement, ...]
    removed: tuple[str, ...] = ()


class AttributedMap(NamedTuple):
    """The ``entries`` of a map. ``removed``: the keys that were removed since the earlier attribution."""

    entries: Mapping[str, AttributedValue]
    removed: tuple[str, ...] = ()


class CounterShare(NamedTuple):
    """The sum of the increments (``up``) and of the decrements (``down``) of an ``agent``."""

    agent: str
    up: int
    down: int
    is_new: bool = False


class AttributedCounter(NamedTuple):
    """The ``value`` of a counter, and the share of each agent."""

    value: int
    shares: tuple[CounterShare, ...]


AttributedField: TypeAlias = (
    AttributedRegister | AttributedText | AttributedSet | AttributedMap | AttributedCounter
)
AttributedFields: TypeAlias = Mapping[str, AttributedField]
"""The fields of a document in the order of its schema."""


def attribute_document(document: Document, former: AttributedFields | None = None) -> AttributedFields:
    """Return the fields of ``document`` with their authors.

    Parts that are newer than ``former``, an earlier result, are marked as new. Without ``former``, no parts
    are marked.
    """
    return {
        name: _attribute_field(document.field(name), (former or {}).get(name)) for name in document.schema
    }


def _attribute_field(field: Field, former: AttributedField | None) -> AttributedField:
    if isinstance(field, LWWRegister):
        return _attribute_register(field, former if isinstance(former, AttributedRegister) else None)
    if isinstance(field, Text):
        return _attribute_text(field, former if isinstance(former, AttributedText) else None)
    if isinstance(field, ORSet):
        return _attribute_set(field, former if isinstance(former, AttributedSet) else None)
    if isinstance(field, LWWMap):
        return _attribute_map(field, former if isinstance(former, AttributedMap) else None)
    return _attribute_counter(field, former if isinstance(former, AttributedCounter) else None)


def _attribute_value(
    written: StampedValue, former: AttributedValue | None, *, is_first: bool
) -> AttributedValue:
    value = AttributedValue(written.value, agent_of(written.stamp.replica), written.stamp.time)
    return value._replace(is_new=not is_first and value != (former and former._replace(is_new=False)))


def _attribute_register(field: LWWRegister, former: AttributedRegister | None) -> AttributedRegister:
    if field.written is None:
        return AttributedRegister(None)
    before = former.written if former else None
    return AttributedRegister(_attribute_value(field.written, before, is_first=former is None))


def _attribute_text(field: Text, former: AttributedText | None) -> AttributedText:
    text = field.value
    runs = field.runs(former.version_vector if former else None) if len(text) <= MAX_ATTRIBUTED else []
    return AttributedText(text, tuple(runs), field.version_vector())


def _attribute_set(field: ORSet, former: AttributedSet | None) -> AttributedSet:
    before = {each.text: each.agents for each in former.elements} if former else {}
    found = {text: field.added_by(text) for text in field.value}
    elements = tuple(
        AttributedElement(text, agents, former is not None and before.get(text) != agents)
        for text, agents in found.items()
    )
    return AttributedSet(elements, tuple(text for text in before if text not in field))


def _attribute_map(field: LWWMap, former: AttributedMap | None) -> AttributedMap:
    before = former.entries if former else {}
    entries = {
        key: _attribute_value(written, before.get(key), is_first=former is None)
        for key, written in sorted(field.entries.items())
        if not written.removed
    }
    return AttributedMap(entries, tuple(key for key in before if key not in entries))


def _attribute_counter(field: PNCounter, former: AttributedCounter | None) -> AttributedCounter:
    before = {each.agent: (each.up, each.down) for each in former.shares} if former else {}
    shares = tuple(
        CounterShare(agent, up, down, former is not None and before.get(agent) != (up, down))
        for agent, (up, down) in field.shares().items()
    )
    return AttributedCounter(field.value, shares)


Deltas: TypeAlias = Callable[[int, int], Iterable[Mapping[str, Json]]]
"""Returns the deltas of the versions after the first number up to the second number (included), in order."""


class _Snapshot(NamedTuple):
    """A document at ``version``: the ``fields`` that are not texts, and the version vectors of the texts."""

    version: int
    fields: Mapping[str, Field]
    vectors: Mapping[str, dict[int, int]]


class DocumentHistory:
    """Restores any version of a document. Not thread-safe.

    - ``document``: the document with all deltas up to ``version``.
    - ``deltas``: fetches deltas again.

    First pass every delta to `add`, in order. `restore` then restores texts from their history, and other
    fields from snapshots at evenly spaced versions. It merges at most 1/128 of the deltas.
    """

    def __init__(self, document: Document, version: int, deltas: Deltas) -> None:
        self._whole = document.copy()
        self._whole_version = version
        self._deltas = deltas
        self._fields: dict[str, Field] = {
            name: field.copy()
            for name in document.schema
            if not isinstance(field := Document(document.schema).field(name), Text)
        }
        self._vectors: dict[str, dict[int, int]] = {
            name: {} for name in document.schema if name not in self._fields
        }
        self._version = 1
        self._snapshots = [self._take_snapshot()]
        self._interval = 1

    @property
    def version(self) -> int:
        """The version of the last delta that was added."""
        return self._version

    def add(self, delta: Mapping[str, Json]) -> None:
        """Add ``delta``, the delta of the next version. Raise `InvalidState` if it is malformed."""
        _apply(delta, self._fields, self._vectors)
        self._version += 1
        if self._version > self._whole_version:
            for name in self._vectors.keys() & delta.keys():
                self._whole.text(name).merge(delta[name])
        if self._version - self._snapshots[-1].version >= self._interval:
            self._snapshots.append(self._take_snapshot())
            if len(self._snapshots) > MAX_SNAPSHOTS:
                self._snapshots = self._snapshots[::2]
                self._interval *= 2

    def restore(self, version: int) -> Document:
        """Return the document at ``version``, clamped to the added versions.

        The caller must not change it. It is valid until the next call.
        """
        version = max(1, min(version, self._version))
        nearest = max((each for each in self._snapshots if each.version <= version), key=lambda each: each[0])
        fields = {name: field.copy() for name, field in nearest.fields.items()}
        vectors = {name: dict(ends) for name, ends in nearest.vectors.items()}
        for delta in self._deltas(nearest.version, version):
            _apply(delta, fields, vectors)
        for name, ends in vectors.items():
            fields[name] = self._whole.text(name).restore(ends)
        return self._whole.with_fields(fields)

    def _take_snapshot(self) -> _Snapshot:
        fields = {name: field.copy() for name, field in self._fields.items()}
        return _Snapshot(self._version, fields, {name: dict(ends) for name, ends in self._vectors.items()})


def _apply(
    delta: Mapping[str, Json], fields: Mapping[str, Field], vectors: Mapping[str, dict[int, int]]
) -> None:
    for name, state in delta.items():
        if name in fields:
            fields[name].merge(state)
        elif name in vectors:
            ends = vectors[name]
            for peer, end in parse_version_ends(decode_update(state)).items():
                ends[peer] = max(end, ends.get(peer, 0))
        else:
            raise invalid_state("schema")
