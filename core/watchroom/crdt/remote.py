"""What a replica from elsewhere must be before it is merged: whole, and of this document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from watchroom.crdt import checks
from watchroom.crdt.clock import MOST_DRIFT, peer_of
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


def check_remote(schema: Mapping[str, str], fields: Json, ours: Json, here: Known, now: int) -> None:
    """Raise `InvalidState` unless ``fields`` are the states of one whole replica of such a document, and
    merge with ``ours``, the fields of the replica here.

    ``here`` is what the replicas that write here have written: nobody else can know more of them. ``now`` is
    the time in milliseconds since the epoch: stamps may not be ahead of it by more than an hour. The states
    are merged and merged once more, to see what they hold and what comes of them; what a hostile history does
    to the engine it does there, so this is to be run in a process of its own.
    """
    document = Document(check_schema(schema))
    try:
        document.merge(fields)
    except FieldNotFound as error:
        raise checks.refuse("schema") from error
    _check_fields(document, here, now)
    _check_merged(document, ours, fields)


def _check_merged(document: Document, ours: Json, fields: Json) -> None:
    """What a broken history does to the engine may show only later: when it is written out, or copied."""
    merged = Document(document.schema)
    merged.merge(ours)
    merged.merge(fields)
    again = Document(document.schema)
    again.merge(merged.copy().state()["fields"])
    for name, kind in document.schema.items():
        if kind == "rga" and merged.text(name).known() != again.text(name).known():
            raise InvalidState(rule="state_text", field=name)
    if merged.values() != again.values():
        raise checks.refuse("text")


def _check_fields(document: Document, here: Known, now: int) -> None:
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
        # A text knows its writers by their peers alone: nobody may give one of ours another name.
        names = {peer_of(replica): replica for replica in here}
        if any(names.get(peer_of(replica), replica) != replica for replica in field.known()):
            raise checks.refuse("forged")
    for replica, counts in field.known().items():
        mine = here.get(replica)
        if mine is not None and any(theirs > ours for theirs, ours in zip(counts, mine, strict=False)):
            raise checks.refuse("forged")
