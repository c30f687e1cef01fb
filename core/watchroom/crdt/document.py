"""A document of named fields, each a type that merges by itself (FILES-4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Self, TypeAlias, TypeVar, get_args

from watchroom.crdt.clock import HybridClock, Stamp
from watchroom.crdt.counter import PNCounter
from watchroom.crdt.errors import FieldNotFound, InvalidSchema, InvalidState, WrongFieldType
from watchroom.crdt.lww import LWWMap, LWWRegister
from watchroom.crdt.orset import ORSet
from watchroom.crdt.state_checks import check_fields, check_mapping, invalid_state, printable_name
from watchroom.crdt.text import Text, is_delta
from watchroom.model import Json

FieldType: TypeAlias = Literal["lww_register", "rga", "or_set", "lww_map", "pn_counter"]
Field: TypeAlias = LWWRegister | Text | ORSet | LWWMap | PNCounter
Delta: TypeAlias = Mapping[str, Json]
"""What changed: each field that did, with its own delta."""

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
    """``schema`` (field name to field type), if a document can have it: 1 to 100 fields. Raises
    `InvalidSchema`."""
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
    """One replica of a document of named fields. Its ``schema`` (field name to field type) never changes;
    ``clock`` stamps its writes. Not for two threads at a time. Raises `InvalidSchema`.

    An edit is made on a field (`register`, `text`, `set`, `map`, `counter`) and returns the field's delta;
    ``{name: delta}`` is the document's, which `merge` takes in at every other replica, in any order, once or
    more often:

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
        """The stamp of a write by ``replica`` at the time ``now``, in milliseconds since the epoch (None: by
        the document's clock): later than all stamps that this document knows of."""
        return self._clock.stamp(replica, now)

    def field(self, name: str) -> Field:
        """The field ``name``. Raises `FieldNotFound`."""
        found = self._fields.get(name)
        if found is None:
            raise FieldNotFound(field=printable_name(name), known=", ".join(self.schema))
        return found

    def register(self, name: str) -> LWWRegister:
        """The register ``name``. Raises `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, LWWRegister)

    def text(self, name: str) -> Text:
        """The text ``name``. Raises `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, Text)

    def set(self, name: str) -> ORSet:
        """The set ``name``. Raises `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, ORSet)

    def map(self, name: str) -> LWWMap:
        """The map ``name``. Raises `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, LWWMap)

    def counter(self, name: str) -> PNCounter:
        """The counter ``name``. Raises `FieldNotFound`, `WrongFieldType`."""
        return self._field_of_type(name, PNCounter)

    def _field_of_type(self, name: str, kind: type[F]) -> F:
        found = self.field(name)
        if not isinstance(found, kind):
            raise WrongFieldType(field=name, type=self.schema[name], wanted=_TYPE_OF[kind])
        return found

    def values(self) -> dict[str, Json]:
        """The value of every field (FILES-4.7)."""
        return {name: field.value for name, field in self._fields.items()}

    def merge(self, delta: Json) -> None:
        """Merge ``delta``, what another replica wrote, or the ``fields`` of its `state`.

        Raises `InvalidState` (with the field's name), `FieldNotFound`. A delta of one field is merged whole
        or not at all; of several, those before the broken one are: whoever merges what may be broken merges
        it into a `copy` first."""
        for name, state in check_mapping(delta, "shape").items():
            field = self.field(name)
            try:
                field.merge(state)
            except InvalidState as error:
                raise InvalidState(rule=error.values["rule"], field=name) from error
            if isinstance(field, (LWWRegister, LWWMap)) and field.latest is not None:
                self._clock.observe(field.latest)

    def merge_all(self, deltas: Sequence[Json]) -> None:
        """`merge` each of ``deltas`` in order; those of one text are merged together, which is far cheaper.
        Where it raises, some of them may have been merged."""
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
        """The whole replica as JSON: ``schema``, ``values`` (every field, to read) and ``fields`` (every
        field's state, to merge)."""
        fields = {name: field.state() for name, field in self._fields.items()}
        return {"schema": dict(self.schema), "values": self.values(), "fields": fields}

    @classmethod
    def from_state(cls, state: Json, *, clock: HybridClock | None = None) -> Self:
        """The replica that ``state`` was taken from by `state`; ``clock`` stamps its writes. Texts are not
        unpacked until they are needed, so their bytes are trusted here; `merge` into a new document does not
        trust. Raises `InvalidState`, `InvalidSchema`."""
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
        """A document of the same schema and clock that holds ``fields`` (by name)."""
        twin = type(self)(self.schema, clock=self._clock)
        twin._fields = {name: fields[name] for name in self.schema}
        return twin

    def copy(self) -> Self:
        """An equal replica, independent of this one, with the same clock."""
        return self.with_fields({name: field.copy() for name, field in self._fields.items()})
