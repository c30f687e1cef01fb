"""Converts the state of a fold to JSON and back. A row is written once, even if many parts refer to it.

All attributes of a part are written, except those in its ``DERIVED``, which get a fixed value after loading.
New attributes are therefore kept without further code.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from watchroom.features.boards.view import BoardView
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.budgets.rules import Budgets, Used
from watchroom.features.buffers.rows import BufferRecord
from watchroom.features.buffers.view import BufferView
from watchroom.features.checks.view import CheckView
from watchroom.features.config.rows import Agent
from watchroom.features.documents.view import DocumentView
from watchroom.features.files.view import SharedFile
from watchroom.features.handoffs.rows import Delivery
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.client_files import ClientFile
from watchroom.features.overview.model import ActivityEntry, Need, SealView
from watchroom.features.overview.processes import NewestStep, OpenWork
from watchroom.features.overview.timeline import TimelineColumn
from watchroom.features.people.rows import People, Person
from watchroom.features.sessions.view import RequestView, SessionView
from watchroom.features.tasks.view import CommandView, MessageView
from watchroom.features.trees.comments import TreeComment
from watchroom.features.trees.rows import Tree
from watchroom.kernel.rules.conflicts import ConflictView, RefusedWrite
from watchroom.model import Json, Row

_RECORDS: Final[tuple[Any, ...]] = (
    ActivityEntry,
    Agent,
    AgentView,
    BoardView,
    Budgets,
    BufferRecord,
    BufferView,
    CheckView,
    ClientFile,
    CommandView,
    ConflictView,
    Delivery,
    DocumentView,
    MessageView,
    Need,
    OpenWork,
    People,
    Person,
    RefusedWrite,
    RequestView,
    SealView,
    SessionView,
    SharedFile,
    NewestStep,
    TimelineColumn,
    Tree,
    TreeComment,
    UsageTotal,
    Used,
)
_RECORD_OF: Final[Mapping[str, Any]] = {record.__name__: record for record in _RECORDS}
_ROW: Final = "row"
_COLLECTIONS: Final[Mapping[type, str]] = {
    tuple: "tuple",
    list: "list",
    set: "set",
    frozenset: "frozenset",
    deque: "deque",
    dict: "dict",
    MappingProxyType: "proxy",
}
_KIND_OF: Final = {name: kind for kind, name in _COLLECTIONS.items()}
State: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The attributes of each part, by the part's name."""


def kept_attributes(part: Any) -> dict[str, Any]:
    """Return the attributes of ``part`` that are not in its ``DERIVED``."""
    return {name: value for name, value in vars(part).items() if name not in part.DERIVED}


def dump_state(state: State) -> dict[str, Json]:
    """Return ``state`` as JSON. Raise TypeError for a value of an unknown type."""
    encoder = _Encoder()
    parts: dict[str, Json] = {
        part: {name: encoder.encode(value) for name, value in attributes.items()}
        for part, attributes in state.items()
    }
    return {"rows": encoder.rows(), "parts": parts}


def load_state(dumped: Json) -> State:
    """Return the state that `dump_state` wrote as ``dumped``. Raise ValueError for any other value."""
    try:
        written = cast("dict[str, Any]", dumped)
        decoder = _Decoder(written["rows"])
        return {
            part: {name: decoder.decode(value) for name, value in attributes.items()}
            for part, attributes in written["parts"].items()
        }
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"no state of a fold: {error!r}") from error


class _Encoder:
    def __init__(self) -> None:
        self._rows: dict[Row, int] = {}

    def rows(self) -> list[Json]:
        return [list(row) for row in self._rows]

    def encode(self, value: Any) -> Json:
        """Return ``value`` as JSON. A list begins with the name of the collection type."""
        kind = type(value)
        if value is None or kind in (str, int, float, bool):
            return cast("Json", value)
        if kind is Row:
            return [_ROW, self._rows.setdefault(value, len(self._rows))]
        if kind.__name__ in _RECORD_OF:
            return [kind.__name__, *map(self.encode, value)]
        name = _COLLECTIONS.get(kind)
        if name is None:
            raise TypeError(f"{kind.__name__} has no place in the state of a fold")
        if kind is deque:
            return [name, value.maxlen, *map(self.encode, value)]
        if isinstance(value, Mapping):
            return [name, *(self.encode(each) for item in value.items() for each in item)]
        ordered = sorted(value) if isinstance(value, set | frozenset) else value
        return [name, *map(self.encode, ordered)]


class _Decoder:
    def __init__(self, rows: list[list[Any]]) -> None:
        self._rows = [Row(*fields) for fields in rows]

    def decode(self, value: Any) -> Any:
        if type(value) is not list:
            return value
        name = value[0]
        if name == _ROW:
            return self._rows[value[1]]
        items = [self.decode(each) if type(each) is list else each for each in value[1:]]
        record = _RECORD_OF.get(name)
        if record is not None:
            return record(*items)
        kind: Any = _KIND_OF[name]
        if kind is deque:
            return deque(items[1:], items[0])
        if kind in (dict, MappingProxyType):
            pairs = dict(zip(items[::2], items[1::2], strict=True))
            return pairs if kind is dict else MappingProxyType(pairs)
        return kind(items)
