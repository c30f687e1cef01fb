"""A document with the author of each part, and what is new since an earlier look at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from watchroom.crdt.clock import agent_of
from watchroom.crdt.counter import PNCounter
from watchroom.crdt.document import Document, Field
from watchroom.crdt.lww import LWWMap, LWWRegister, StampedValue
from watchroom.crdt.orset import ORSet
from watchroom.crdt.text import Run, Text
from watchroom.model import Json

MOST_BLAMED: Final = 200_000
"""Characters of a text beyond which its authors are not told: that takes a microsecond for each."""


class AttributedValue(NamedTuple):
    """A ``value`` that ``agent`` wrote at ``time`` (milliseconds since the epoch); ``is_new``: since the
    earlier look."""

    value: Json
    agent: str
    time: int
    is_new: bool = False


class AttributedRegister(NamedTuple):
    """A register; ``written`` is None while it has no value."""

    written: AttributedValue | None


class AttributedText(NamedTuple):
    """A ``text`` in ``runs`` by writer, empty where it is too long to attribute. ``version_vector``
    identifies this state of it."""

    text: str
    runs: tuple[Run, ...]
    version_vector: Mapping[str, tuple[int, ...]]


class AttributedElement(NamedTuple):
    """An element of a set, with the ``agents`` that added it."""

    text: str
    agents: tuple[str, ...]
    is_new: bool = False


class AttributedSet(NamedTuple):
    """The ``elements`` of a set; ``removed`` are those of the earlier look that are gone."""

    elements: tuple[AttributedElement, ...]
    removed: tuple[str, ...] = ()
    """What was there at the former look."""


class AttributedMap(NamedTuple):
    """The ``entries`` of a map; ``removed`` are the keys of the earlier look that are gone."""

    entries: Mapping[str, AttributedValue]
    removed: tuple[str, ...] = ()
    """The keys that were there at the former look."""


class CounterShare(NamedTuple):
    """How much ``agent`` counted ``up`` and ``down``."""

    agent: str
    up: int
    down: int
    is_new: bool = False


class AttributedCounter(NamedTuple):
    """A counter's ``value``, and the ``shares`` of each agent."""

    value: int
    shares: tuple[CounterShare, ...]


AttributedField: TypeAlias = (
    AttributedRegister | AttributedText | AttributedSet | AttributedMap | AttributedCounter
)
AttributedFields: TypeAlias = Mapping[str, AttributedField]
"""The fields of a document, in the order of its schema."""


def attribute_document(document: Document, former: AttributedFields | None = None) -> AttributedFields:
    """The fields of ``document`` with their authors. What is newer than ``former``, an earlier result, is
    marked as new."""
    return {name: _field(document.field(name), (former or {}).get(name)) for name in document.schema}


def _field(field: Field, former: AttributedField | None) -> AttributedField:
    if isinstance(field, LWWRegister):
        return _register(field, former if isinstance(former, AttributedRegister) else None)
    if isinstance(field, Text):
        return _text(field, former if isinstance(former, AttributedText) else None)
    if isinstance(field, ORSet):
        return _set(field, former if isinstance(former, AttributedSet) else None)
    if isinstance(field, LWWMap):
        return _map(field, former if isinstance(former, AttributedMap) else None)
    return _counter(field, former if isinstance(former, AttributedCounter) else None)


def _value(written: StampedValue, former: AttributedValue | None, *, is_first: bool) -> AttributedValue:
    value = AttributedValue(written.value, agent_of(written.stamp.replica), written.stamp.time)
    return value._replace(is_new=not is_first and value != (former and former._replace(is_new=False)))


def _register(field: LWWRegister, former: AttributedRegister | None) -> AttributedRegister:
    if field.written is None:
        return AttributedRegister(None)
    before = former.written if former else None
    return AttributedRegister(_value(field.written, before, is_first=former is None))


def _text(field: Text, former: AttributedText | None) -> AttributedText:
    text = field.value
    runs = field.runs(former.version_vector if former else None) if len(text) <= MOST_BLAMED else []
    return AttributedText(text, tuple(runs), field.version_vector())


def _set(field: ORSet, former: AttributedSet | None) -> AttributedSet:
    before = {each.text: each.agents for each in former.elements} if former else {}
    found = {text: field.added_by(text) for text in field.value}
    elements = tuple(
        AttributedElement(text, agents, former is not None and before.get(text) != agents)
        for text, agents in found.items()
    )
    return AttributedSet(elements, tuple(text for text in before if text not in field))


def _map(field: LWWMap, former: AttributedMap | None) -> AttributedMap:
    before = former.entries if former else {}
    entries = {
        key: _value(written, before.get(key), is_first=former is None)
        for key, written in sorted(field.entries.items())
        if not written.removed
    }
    return AttributedMap(entries, tuple(key for key in before if key not in entries))


def _counter(field: PNCounter, former: AttributedCounter | None) -> AttributedCounter:
    before = {each.agent: (each.up, each.down) for each in former.shares} if former else {}
    shares = tuple(
        CounterShare(agent, up, down, former is not None and before.get(agent) != (up, down))
        for agent, (up, down) in field.shares().items()
    )
    return AttributedCounter(field.value, shares)
