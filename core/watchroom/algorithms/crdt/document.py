"""A document of named fields, each of a mergeable type (FILES-4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Self, TypeAlias, TypeVar, get_args

from watchroom.algorithms.crdt.clock import HybridClock, Stamp
from watchroom.algorithms.crdt.counter import PNCounter
from watchroom.algorithms.crdt.lww import LWWMap, LWWRegister
from watchroom.algorithms.crdt.orset import ORSet
from watchroom.algorithms.crdt.state_checks import check_fields, check_mapping, invalid_state, printable_name
from watchroom.algorithms.crdt.text import Text, is_delta
from watchroom.errors import FieldNotFound, InvalidSchema, InvalidState, WrongFieldType
from watchroom.model import Json

FieldType: TypeAlias = Literal["lww_register", "rga", "or_set", "lww_map", "pn_counter"]
Field: TypeAlias = LWWRegister | Text | ORSet | LWWMap | PNCounter
Delta: TypeAlias = Mapping[str, Json]
"""The changed fields, each with its own delta."""

FIELD_TYPES: Final[Mapping[FieldType, type[Field]]] = {
    "lww_register": LWWRegister,
    "rga": Text,
    "or_set": ORSet,
    "lww_map": LWWMap,
    "pn_counter": PNCounter,
}
MAX_FIELDS: Final = 100
_TYPES: Final[Mapping[str, FieldType]] = {name: name for name in get_args(FieldType)}
_TYPE_OF: Final = {kind: name for name, kind in FIELD_TYPES.items()}
_KEYS: Final = frozenset({"schema", "values", "fields"})

F = TypeVar("F", LWWRegister, Text, ORSet, LWWMap, PNCounter)


def check_schema(schema: object) -> dict[str, FieldType]:
    """Return ``schema`` (field name to field type) if it is valid. It must have 1 to 100 fields.

    Raise `InvalidSchema` with the broken rule otherwise.
    """
    if not isinstance(schema, Mapping) or not 0 < len(schema) <= MAX_FIELDS:
        raise InvalidSchema(rule="schema_size", field="")
    checked: dict[str, FieldType] = {}
    for name, kind in schema.items():
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.strip()) <= 100:
            raise InvalidSchema(rule="schema_name", field=printable_name(str(name)))
        if "/" in name:
            raise InvalidSchema(rule="schema_name", field=printable_name(name))
        if not isinstance(kind, str) or kind not in _TYPES:
            raise InvalidSchema(rule="schema_type", field=name)
        checked[name] = _TYPES[kind]
    return checked


class Document:
    """One replica of a document. Not thread-safe.

    - ``schema``: field name to field type; it never changes. Raises `InvalidSchema` if it is invalid.
    - ``clock``: stamps the writes, default a new clock.

    Edit a field (`register`, `text`, `set`, `map`, `counter`); the edit returns a delta of the field. Pass
    ``{name: delta}`` to `merge` of every other replica, in any order. Merging a delta twice has no effect.

        ours, theirs = Document({"title": "lww_register"}), Document({"title": "lww_register"})
        replica = name_replica("alice", 1)
        delta = ours.register("title").set("Plan", ours.stamp(replica))
        theirs.merge({"title": delta})
    """

    __slots__ = ("_clock", "_fields", "schema")

    def __init__(self, schema: Mapping[str, FieldType], *, clock: HybridClock | None = None) -> None:
        self.schema: Final = check_schema(schema)
        self._clock = clock or HybridClock()
        self._fields: dict[str, Field] = {name: FIELD_TYPES[kind]() for name, kind in self.schema.items()}

    def stamp(self, replica: str, now: int | None = None) -> Stamp:
        """Return a stamp for a write of ``replica``, later than all stamps in this document.

        ``now``: milliseconds since the epoch, default the time of the document's clock.
        """
        return self._clock.stamp(replica, now)

    def field(self, name: str) -> Field:
        """Return the field ``name``. Raise `FieldNotFound` if the schema does not have it."""
        found = self._fields.get(name)
        if found is None:
            raise FieldNotFound(field=printable_name(name), known=", ".join(self.schema))
        return found

    def register(self, name: str) -> LWWRegister:
        """Return the register ``name``. Raise `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, LWWRegister)

    def text(self, name: str) -> Text:
        """Return the text ``name``. Raise `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, Text)

    def set(self, name: str) -> ORSet:
        """Return the set ``name``. Raise `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, ORSet)

    def map(self, name: str) -> LWWMap:
        """Return the map ``name``. Raise `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, LWWMap)

    def counter(self, name: str) -> PNCounter:
        """Return the counter ``name``. Raise `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, PNCounter)

    def _field_of_type(self, name: str, kind: type[F]) -> F:
        found = self.field(name)
        if not isinstance(found, kind):
            raise WrongFieldType(field=name, type=self.schema[name], wanted=_TYPE_OF[kind])
        return found

    def values(self) -> dict[str, Json]:
        """Return the value of every field (FILES-4.7)."""
        return {name: field.value for name, field in self._fields.items()}

    def merge(self, delta: Json) -> None:
        """Merge ``delta``, a delta of another replica, or the ``fields`` of its `state`.

        Raise `InvalidState` with the field's name if a field is malformed, and `FieldNotFound` if the schema
        does not have it. Each field is merged atomically, but the fields before a malformed field stay
        merged. Merge untrusted deltas into a `copy` first.
        """
        for name, state in check_mapping(delta, "shape").items():
            field = self.field(name)
            try:
                field.merge(state)
            except InvalidState as error:
                raise InvalidState(rule=error.values["rule"], field=name) from error
            if isinstance(field, (LWWRegister, LWWMap)) and field.latest is not None:
                self._clock.observe(field.latest)

    def merge_all(self, deltas: Sequence[Json]) -> None:
        """Merge ``deltas`` in order. Deltas of one text are merged in one batch, which is much faster.

        If this raises, some deltas may have been merged.
        """
        of_texts: dict[str, list[Json]] = {}
        for delta in deltas:
            for name, state in check_mapping(delta, "shape").items():
                if isinstance(self._fields.get(name), Text) and is_delta(state):
                    of_texts.setdefault(name, []).append(state)
                    continue
                self._merge_text(name, of_texts.pop(name, []))
                self.merge({name: state})
        for name, states in of_texts.items():
            self._merge_text(name, states)

    def _merge_text(self, name: str, deltas: Sequence[Json]) -> None:
        if not deltas:
            return
        try:
            self.text(name).merge_all(deltas)
        except InvalidState as error:
            raise InvalidState(rule=error.values["rule"], field=name) from error

    def state(self) -> dict[str, Json]:
        """Return the whole replica as JSON.

        It has ``schema``, ``values`` (readable, for every field) and ``fields`` (mergeable states).
        """
        fields = {name: field.state() for name, field in self._fields.items()}
        return {"schema": dict(self.schema), "values": self.values(), "fields": fields}

    @classmethod
    def from_state(cls, state: Json, *, clock: HybridClock | None = None) -> Self:
        """Restore a replica from a result of `state`. ``clock``: stamps its writes.

        Texts are unpacked lazily, so their bytes are trusted here. Use `merge` on a new document for
        untrusted states. Raise `InvalidState` or `InvalidSchema` if the state is malformed.
        """
        found = check_fields(state, "shape", _KEYS, frozenset())
        document = cls(check_schema(found["schema"]), clock=clock)
        values, fields = (check_mapping(found[part], "shape") for part in ("values", "fields"))
        if values.keys() != document.schema.keys() or fields.keys() != document.schema.keys():
            raise invalid_state("schema")
        for name, kind in document.schema.items():
            if kind == "rga":
                document._fields[name] = Text.packed(fields[name], values[name])
            else:
                document.merge({name: fields[name]})
        return document

    def with_fields(self, fields: Mapping[str, Field]) -> Self:
        """Return a document with the same schema and clock, and with ``fields`` (by name)."""
        twin = type(self)(self.schema, clock=self._clock)
        twin._fields = {name: fields[name] for name in self.schema}
        return twin

    def copy(self) -> Self:
        """Return an independent replica with the same state and the same clock."""
        return self.with_fields({name: field.copy() for name, field in self._fields.items()})
