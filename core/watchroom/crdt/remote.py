"""What a replica from elsewhere must be before it is merged: whole, and of this document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from watchroom.crdt import checks
from watchroom.crdt.clock import MOST_DRIFT, agent_of, peer_of
from watchroom.crdt.counter import PNCounter
from watchroom.crdt.document import Document, Field, check_schema
from watchroom.crdt.lww import LWWMap, LWWRegister, Written
from watchroom.crdt.orset import ORSet
from watchroom.crdt.text import Text
from watchroom.errors import FieldNotFound, InvalidSchema, InvalidState
from watchroom.model import HUMAN_PREFIX, Json

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


class Writers(NamedTuple):
    """Whose writes are known here: those of the ``replicas`` that wrote to the document, and those of all who
    work here, its ``agents`` and people, but for ``merger``, who may bring its own."""

    replicas: frozenset[str]
    agents: frozenset[str]
    merger: str

    def include(self, replica: str) -> bool:
        """Whether all that the replica wrote is known here."""
        agent = agent_of(replica)
        works_here = agent in self.agents or agent.startswith(HUMAN_PREFIX)
        return replica in self.replicas or (works_here and agent != self.merger)


class Claim(NamedTuple):
    """That a replica of somebody here wrote that to a register, or to a map under ``key``."""

    field: str
    key: str
    written: str
    """The value and its stamp, as canonical JSON."""


def known_of(document: Document, writers: Writers) -> dict[str, dict[str, tuple[int, ...]]]:
    """How much the document knows of each replica of those who write here."""
    known: dict[str, dict[str, tuple[int, ...]]] = {}
    for name in document.schema:
        field = document.field(name)
        found = field.known() if isinstance(field, (Text, ORSet, PNCounter)) else {}
        replicas = writers.replicas | {replica for replica in found if writers.include(replica)}
        known[name] = {replica: found.get(replica, (0, 0)) for replica in replicas}
    return known


def claims_of(schema: Mapping[str, str], fields: Json, writers: Writers) -> set[Claim]:
    """What the states or deltas ``fields`` say that those who write here wrote to registers and maps. Raises
    `InvalidState`."""
    kinds = {name: kind for name, kind in check_schema(schema).items() if kind.startswith("lww_")}
    given = checks.mapping(fields, "shape")
    found: set[Claim] = set()
    for name in kinds.keys() & given.keys():
        document = Document({name: kinds[name]})
        document.merge({name: given[name]})
        for key, written in _entries(document.field(name)):
            if writers.include(written.stamp.replica):
                found.add(Claim(name, key, checks.canonical(written.as_json())))
    return found


def _entries(field: Field) -> Iterable[tuple[str, Written]]:
    if isinstance(field, LWWMap):
        return field.entries.items()
    return [("", field.written)] if isinstance(field, LWWRegister) and field.written else []


def check_remote(
    schema: Mapping[str, str], fields: Json, ours: Json, here: Known, writers: Writers, now: int
) -> None:
    """Raise `InvalidState` unless ``fields`` are the states of one whole replica of such a document, and
    merge with ``ours``, the fields of the replica here.

    ``here`` is what is known of the replicas of ``writers``: nobody else can know more of them. What is
    claimed of registers and maps is left to `claims_of`. ``now`` is the time in milliseconds since the epoch:
    stamps may not be ahead of it by more than an hour. The states are merged and merged once more, to see
    what they hold and what comes of them; what a hostile history does to the engine it does there, so this
    is to be run in a process of its own.
    """
    document = Document(check_schema(schema))
    try:
        document.merge(fields)
    except FieldNotFound as error:
        raise checks.refuse("schema") from error
    _check_fields(document, here, writers, now)
    _check_merged(document, ours, fields)


def _check_merged(document: Document, ours: Json, fields: Json) -> None:
    """What a broken history does to the engine may show only later: when it is written out, or copied."""
    merged = Document(document.schema)
    merged.merge(ours)
    for name, kind in document.schema.items():
        if kind != "rga":
            continue
        mine, theirs = merged.text(name), document.text(name)
        if _are_renamed(mine.writers, theirs.writers) or not mine.shares_past(theirs):
            raise InvalidState(rule="state_forged", field=name)
    merged.merge(fields)
    again = Document(document.schema)
    again.merge(merged.copy().state()["fields"])
    for name, kind in document.schema.items():
        if kind == "rga" and merged.text(name).known() != again.text(name).known():
            raise InvalidState(rule="state_text", field=name)
    if merged.values() != again.values():
        raise checks.refuse("text")


def _are_renamed(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    """Whether any of our writers goes by another name there. A text knows them by their peers alone."""
    names = {peer_of(replica): replica for replica in ours}
    return any(names.get(peer_of(replica), replica) != replica for replica in theirs)


def _check_fields(document: Document, here: Known, writers: Writers, now: int) -> None:
    for name in document.schema:
        try:
            _check_field(document, name, here.get(name, {}), writers, now)
        except InvalidState as error:
            raise InvalidState(rule=error.values["rule"], field=name) from error


def _check_field(
    document: Document, name: str, here: Mapping[str, tuple[int, ...]], writers: Writers, now: int
) -> None:
    field = document.field(name)
    if isinstance(field, (LWWRegister, LWWMap)):
        if field.latest is not None and field.latest.time > now + MOST_DRIFT:
            raise checks.refuse("future")
        return
    known = field.known()
    if isinstance(field, Text):
        if not field.is_whole:
            raise checks.refuse("gap")
        if not field.holds_plain_text():
            raise checks.refuse("plain")
        if _are_renamed(here, known.keys() | field.writers):
            raise checks.refuse("forged")
        # A name without operations is a claim too: of those that may come later.
        known = dict.fromkeys(field.writers, (1,)) | known
    for replica, counts in known.items():
        mine = here.get(replica, (0, 0))
        if writers.include(replica) and any(
            theirs > ours for theirs, ours in zip(counts, mine, strict=False)
        ):
            raise checks.refuse("forged")
