"""Checks of a replica from outside the workspace.

The replica must be complete, belong to the document, and contain no forged writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from watchroom.algorithms.crdt.clock import MAX_DRIFT, agent_of, peer_of
from watchroom.algorithms.crdt.counter import PNCounter
from watchroom.algorithms.crdt.document import Document, Field, check_schema
from watchroom.algorithms.crdt.lww import LWWMap, LWWRegister, StampedValue
from watchroom.algorithms.crdt.orset import ORSet
from watchroom.algorithms.crdt.state_checks import canonical_json, check_mapping, invalid_state
from watchroom.algorithms.crdt.text import Text
from watchroom.errors import FieldNotFound, InvalidSchema, InvalidState
from watchroom.model import HUMAN_PREFIX, Json

Known: TypeAlias = Mapping[str, Mapping[str, tuple[int, ...]]]
"""For each field, the version vector: the number of known operations of each replica."""

_REQUIRED: Final = frozenset({"schema", "fields"})


def extract_fields(state: Json, schema: Mapping[str, str]) -> Mapping[str, Json]:
    """Return the fields of ``state``, a `Document.state` or the JSON of a checkpoint.

    Raise `InvalidState` if it is malformed or its schema differs from ``schema``.
    """
    found = check_mapping(state, "shape")
    if not found.keys() >= _REQUIRED:
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
    """The writers whose writes this workspace knows completely.

    - ``replicas``: the replicas that wrote to the document here.
    - ``agents``: the agents of the workspace. People are always included.
    - ``merger``: the agent that merges. It may add writes of its own other replicas.
    """

    replicas: frozenset[str]
    agents: frozenset[str]
    merger: str

    def includes(self, replica: str) -> bool:
        """Return whether this workspace knows all writes of ``replica``."""
        agent = agent_of(replica)
        works_here = agent in self.agents or agent.startswith(HUMAN_PREFIX)
        return replica in self.replicas or (works_here and agent != self.merger)


class Claim(NamedTuple):
    """A write that a remote state attributes to a replica of this workspace.

    ``key`` is empty unless ``field`` is a map.
    """

    field: str
    key: str
    written: str
    """The value and its stamp, as canonical JSON."""


def count_known_operations(document: Document, writers: Writers) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return, for each field of ``document``, the number of operations of each of the ``writers``."""
    known: dict[str, dict[str, tuple[int, ...]]] = {}
    for name in document.schema:
        field = document.field(name)
        found = field.version_vector() if isinstance(field, (Text, ORSet, PNCounter)) else {}
        replicas = writers.replicas | {replica for replica in found if writers.includes(replica)}
        known[name] = {replica: found.get(replica, (0, 0)) for replica in replicas}
    return known


def collect_claims(schema: Mapping[str, str], fields: Json, writers: Writers) -> set[Claim]:
    """Return the writes to registers and maps that ``fields`` attributes to ``writers``.

    ``fields``: states or deltas of a document with ``schema``. Raise `InvalidState` if they are malformed.
    """
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
    """Raise `InvalidState` unless ``fields`` are a complete replica that merges with ours.

    - ``schema``: the schema of the document.
    - ``fields``: the states of the remote replica.
    - ``ours``: the fields of the replica in this workspace.
    - ``here``: the known operations of ``writers``. No other replica can have more of them.
    - ``now``: milliseconds since the epoch. Stamps may be ahead of it by at most `MAX_DRIFT`.

    Writes to registers and maps are not verified; see `collect_claims`. The states are merged twice, which
    reveals damaged histories. Run this in its own process, because a hostile history may crash the engine.
    """
    document = Document(check_schema(schema))
    try:
        document.merge(fields)
    except FieldNotFound as error:
        raise invalid_state("schema") from error
    _check_fields(document, here, writers, now)
    _check_merged(document, ours, fields)


def _check_merged(document: Document, ours: Json, fields: Json) -> None:
    """Merge, copy and merge again, because some damaged histories fail only when they are exported or
    copied."""
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
    """Return whether a replica in ``theirs`` has the peer number of a replica in ``ours``, but another name.
    Texts identify writers only by the peer number."""
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
        if field.latest is not None and field.latest.time > now + MAX_DRIFT:
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
        # A name without operations is also a claim, because its operations may follow later.
        known = dict.fromkeys(field.writers, (1,)) | known
    for replica, counts in known.items():
        mine = here.get(replica, (0, 0))
        if writers.includes(replica) and any(
            theirs > ours for theirs, ours in zip(counts, mine, strict=False)
        ):
            raise invalid_state("forged")
