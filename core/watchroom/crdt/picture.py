"""A document as people look at it: every field with who wrote what, and what has come since a former look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from watchroom.crdt.clock import agent_of
from watchroom.crdt.counter import PNCounter
from watchroom.crdt.document import Document, Field
from watchroom.crdt.lww import LWWMap, LWWRegister, Written
from watchroom.crdt.orset import ORSet
from watchroom.crdt.text import Run, Text
from watchroom.model import Json

MOST_BLAMED: Final = 200_000
"""Characters of a text beyond which its authors are not told: that takes a microsecond for each."""


class Value(NamedTuple):
    """Something that was written by an agent at a time (milliseconds since the epoch)."""

    value: Json
    agent: str
    time: int
    is_new: bool = False


class RegisterPicture(NamedTuple):
    """``written`` is None while nothing was."""

    written: Value | None


class TextPicture(NamedTuple):
    """``runs`` is empty where the text is too long to tell who wrote it. ``known`` tells this moment from
    later ones."""

    text: str
    runs: tuple[Run, ...]
    known: Mapping[str, tuple[int, ...]]


class Element(NamedTuple):
    """An element of a set and who added it."""

    text: str
    agents: tuple[str, ...]
    is_new: bool = False


class SetPicture(NamedTuple):
    elements: tuple[Element, ...]
    removed: tuple[str, ...] = ()
    """What was there at the former look."""


class MapPicture(NamedTuple):
    entries: Mapping[str, Value]
    removed: tuple[str, ...] = ()
    """The keys that were there at the former look."""


class Share(NamedTuple):
    """How much an agent counted up and down."""

    agent: str
    up: int
    down: int
    is_new: bool = False


class CounterPicture(NamedTuple):
    value: int
    shares: tuple[Share, ...]


FieldPicture: TypeAlias = RegisterPicture | TextPicture | SetPicture | MapPicture | CounterPicture
Picture: TypeAlias = Mapping[str, FieldPicture]
"""The fields of a document, in the order of its schema."""


def picture_of(document: Document, former: Picture | None = None) -> Picture:
    """The document as it is. What has come since the look ``former`` is marked as new."""
    return {name: _field(document.field(name), (former or {}).get(name)) for name in document.schema}


def _field(field: Field, former: FieldPicture | None) -> FieldPicture:
    if isinstance(field, LWWRegister):
        return _register(field, former if isinstance(former, RegisterPicture) else None)
    if isinstance(field, Text):
        return _text(field, former if isinstance(former, TextPicture) else None)
    if isinstance(field, ORSet):
        return _set(field, former if isinstance(former, SetPicture) else None)
    if isinstance(field, LWWMap):
        return _map(field, former if isinstance(former, MapPicture) else None)
    return _counter(field, former if isinstance(former, CounterPicture) else None)


def _value(written: Written, former: Value | None, *, is_first: bool) -> Value:
    value = Value(written.value, agent_of(written.stamp.replica), written.stamp.time)
    return value._replace(is_new=not is_first and value != (former and former._replace(is_new=False)))


def _register(field: LWWRegister, former: RegisterPicture | None) -> RegisterPicture:
    if field.written is None:
        return RegisterPicture(None)
    before = former.written if former else None
    return RegisterPicture(_value(field.written, before, is_first=former is None))


def _text(field: Text, former: TextPicture | None) -> TextPicture:
    text = field.value
    runs = field.runs(former.known if former else None) if len(text) <= MOST_BLAMED else []
    return TextPicture(text, tuple(runs), field.known())


def _set(field: ORSet, former: SetPicture | None) -> SetPicture:
    before = {each.text: each.agents for each in former.elements} if former else {}
    found = {text: field.added_by(text) for text in field.value}
    elements = tuple(
        Element(text, agents, former is not None and before.get(text) != agents)
        for text, agents in found.items()
    )
    return SetPicture(elements, tuple(text for text in before if text not in field))


def _map(field: LWWMap, former: MapPicture | None) -> MapPicture:
    before = former.entries if former else {}
    entries = {
        key: _value(written, before.get(key), is_first=former is None)
        for key, written in sorted(field.entries.items())
        if not written.removed
    }
    return MapPicture(entries, tuple(key for key in before if key not in entries))


def _counter(field: PNCounter, former: CounterPicture | None) -> CounterPicture:
    before = {each.agent: (each.up, each.down) for each in former.shares} if former else {}
    shares = tuple(
        Share(agent, up, down, former is not None and before.get(agent) != (up, down))
        for agent, (up, down) in field.shares().items()
    )
    return CounterPicture(field.value, shares)
