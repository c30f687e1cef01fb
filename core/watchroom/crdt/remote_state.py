"""Checks of a replica from outside the workspace: whole, of this document, and without forged writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from watchroom.crdt.clock import MOST_DRIFT, agent_of, peer_of
from watchroom.crdt.counter import PNCounter
from watchroom.crdt.document import Document, Field, check_schema
from watchroom.crdt.errors import FieldNotFound, InvalidSchema, InvalidState
from watchroom.crdt.lww import LWWMap, LWWRegister, StampedValue
from watchroom.crdt.orset import ORSet
from watchroom.crdt.state_checks import canonical_json, check_mapping, invalid_state
from watchroom.crdt.text import Text
from watchroom.model import HUMAN_PREFIX, Json

Known: TypeAlias = Mapping[str, Mapping[str, tuple[int, ...]]]
"""For each field, for each replica, how much of it is known."""

_NEEDED: Final = frozenset({"schema", "fields"})


def extract_fields(state: Json, schema: Mapping[str, str]) -> Mapping[str, Json]:
    """The fields in ``state``, a replica's (`Document.state`, or a checkpoint's JSON), if its schema equals
    ``schema``. Raises `InvalidState`."""
    found = check_mapping(state, "shape")
    if not found.keys() >= _NEEDED:
        raise invalid_state("shape")
    try:
        theirs = check_schema(found["schema"])
    except InvalidSchema as error:
        raise invalid_state("schema") from error
    fields = check_mapping(found["fields"], "shape")
    if theirs != schema or not fields.keys() <= schema.keys():
        raise invalid_state("schema")
    return fields


class Writers(NamedTuple):
    """Whose writes this workspace knows completely: those of ``replicas``, which wrote to the document, and
    those of its ``agents`` and people, except ``merger``, who may bring its own."""

    replicas: frozenset[str]
    agents: frozenset[str]
    merger: str

    def includes(self, replica: str) -> bool:
        """Whether all writes of ``replica`` are known in this workspace."""
        agent = agent_of(replica)
        works_here = agent in self.agents or agent.startswith(HUMAN_PREFIX)
        return replica in self.replicas or (works_here and agent != self.merger)


class Claim(NamedTuple):
    """A statement in a remote state: a replica of this workspace wrote ``written`` to ``field``, in a map
    under ``key``."""

    field: str
    key: str
    written: str
    """The value and its stamp, as canonical JSON."""


def count_known_operations(document: Document, writers: Writers) -> dict[str, dict[str, tuple[int, ...]]]:
    """For each field of ``document`` how much of each replica among ``writers`` it holds."""
    known: dict[str, dict[str, tuple[int, ...]]] = {}
    for name in document.schema:
        field = document.field(name)
        found = field.version_vector() if isinstance(field, (Text, ORSet, PNCounter)) else {}
        replicas = writers.replicas | {replica for replica in found if writers.includes(replica)}
        known[name] = {replica: found.get(replica, (0, 0)) for replica in replicas}
    return known


def collect_claims(schema: Mapping[str, str], fields: Json, writers: Writers) -> set[Claim]:
    """The writes to registers and maps that ``fields`` (states or deltas of a document with ``schema``)
    attribute to ``writers``. Raises `InvalidState`."""
    kinds = {name: kind for name, kind in check_schema(schema).items() if kind.startswith("lww_")}
    given = check_mapping(fields, "shape")
    found: set[Claim] = set()
    for name in kinds.keys() & given.keys():
        document = Document({name: kinds[name]})
        document.merge({name: given[name]})
        for key, written in _list_entries(document.field(name)):
            if writers.includes(written.stamp.replica):
                found.add(Claim(name, key, canonical_json(written.as_json())))
    return found


def _list_entries(field: Field) -> Iterable[tuple[str, StampedValue]]:
    if isinstance(field, LWWMap):
        return field.entries.items()
    return [("", field.written)] if isinstance(field, LWWRegister) and field.written else []


def check_remote(
    schema: Mapping[str, str], fields: Json, ours: Json, here: Known, writers: Writers, now: int
) -> None:
    """Raise `InvalidState` unless ``fields`` are the states of one whole replica of a document with
    ``schema``, and merge with ``ours``, the fields of the replica in this workspace.

    ``here`` is what is known of the replicas of ``writers``: nobody else can know more of them. What is
    claimed of registers and maps is left to `collect_claims`. ``now`` is the time in milliseconds since the
    epoch: stamps may be ahead of it by an hour at most. The states are merged twice to see what comes of
    them; a hostile history may crash the engine, so run this in a process of its own."""
    document = Document(check_schema(schema))
    try:
        document.merge(fields)
    except FieldNotFound as error:
        raise invalid_state("schema") from error
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
        if _is_any_renamed(mine.writers, theirs.writers) or not mine.has_same_history(theirs):
            raise InvalidState(rule="state_forged", field=name)
    merged.merge(fields)
    again = Document(document.schema)
    again.merge(merged.copy().state()["fields"])
    for name, kind in document.schema.items():
        if kind == "rga" and merged.text(name).version_vector() != again.text(name).version_vector():
            raise InvalidState(rule="state_text", field=name)
    if merged.values() != again.values():
        raise invalid_state("text")


def _is_any_renamed(ours: Iterable[str], theirs: Iterable[str]) -> bool:
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
            raise invalid_state("future")
        return
    known = field.version_vector()
    if isinstance(field, Text):
        if not field.is_whole:
            raise invalid_state("gap")
        if not field.holds_plain_text():
            raise invalid_state("plain")
        if _is_any_renamed(here, known.keys() | field.writers):
            raise invalid_state("forged")
        # A name without operations is a claim too: of those that may come later.
        known = dict.fromkeys(field.writers, (1,)) | known
    for replica, counts in known.items():
        mine = here.get(replica, (0, 0))
        if writers.includes(replica) and any(
            theirs > ours for theirs, ours in zip(counts, mine, strict=False)
        ):
            raise invalid_state("forged")
