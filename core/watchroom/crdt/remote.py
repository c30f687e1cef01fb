"""What a replica from elsewhere must be before it is merged: whole, and of this document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from watchroom.crdt import checks
from watchroom.crdt.clock import MOST_DRIFT
from watchroom.crdt.counter import PNCounter
from watchroom.crdt.document import Document, check_schema
from watchroom.crdt.lww import LWWMap, LWWRegister
from watchroom.crdt.orset import ORSet
from watchroom.crdt.text import Text
from watchroom.errors import FieldNotFound, InvalidSchema, InvalidState
from watchroom.model import Json

Known: TypeAlias = Mapping[str, Mapping[str, tuple[int, ...]]]
"""For each field, for each replica, how much of it is known."""

_NEEDED: Final = frozenset({"schema", "fields"})


def fields_of(state: Json, schema: Mapping[str, str]) -> Mapping[str, Json]:
    """The fields of a replica's state (`Document.state`, or a checkpoint's JSON), if its schema is
    ``schema``. Raises `InvalidState`."""
    found = checks.mapping(state, "shape")
    if not found.keys() >= _NEEDED:
        raise checks.refuse("shape")
    try:
        theirs = check_schema(found["schema"])
    except InvalidSchema as error:
        raise checks.refuse("schema") from error
    fields = checks.mapping(found["fields"], "shape")
    if theirs != schema or not fields.keys() <= schema.keys():
        raise checks.refuse("schema")
    return fields


def known_of(document: Document, replicas: frozenset[str]) -> dict[str, dict[str, tuple[int, ...]]]:
    """How much of each of ``replicas`` the document knows."""
    known: dict[str, dict[str, tuple[int, ...]]] = {}
    for name in document.schema:
        field = document.field(name)
        found = field.known() if isinstance(field, (Text, ORSet, PNCounter)) else {}
        known[name] = {replica: found.get(replica, (0, 0)) for replica in replicas}
    return known


def check_remote(schema: Mapping[str, str], fields: Json, here: Known, now: int) -> None:
    """Raise `InvalidState` unless ``fields`` are the states of one whole replica of such a document.

    ``here`` is what the replicas that write here have written: nobody else can know more of them. ``now`` is
    the time in milliseconds since the epoch: stamps may not be ahead of it by more than an hour. The states
    are merged into an empty document to see what they hold; what a hostile history does to the engine it does
    there, so this is best run in a process of its own.
    """
    document = Document(check_schema(schema))
    try:
        document.merge(fields)
    except FieldNotFound as error:
        raise checks.refuse("schema") from error
    for name in document.schema:
        try:
            _check_field(document, name, here.get(name, {}), now)
        except InvalidState as error:
            raise InvalidState(rule=error.values["rule"], field=name) from error


def _check_field(document: Document, name: str, here: Mapping[str, tuple[int, ...]], now: int) -> None:
    field = document.field(name)
    if isinstance(field, (LWWRegister, LWWMap)):
        if field.latest is not None and field.latest.time > now + MOST_DRIFT:
            raise checks.refuse("future")
        return
    if isinstance(field, Text):
        if not field.is_whole:
            raise checks.refuse("gap")
        if not field.holds_plain_text():
            raise checks.refuse("plain")
    for replica, counts in field.known().items():
        mine = here.get(replica)
        if mine is not None and any(theirs > ours for theirs, ours in zip(counts, mine, strict=False)):
            raise checks.refuse("forged")
