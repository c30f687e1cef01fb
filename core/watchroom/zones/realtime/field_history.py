"""The past of a document in its rows: what an agent had seen of a field when its process ended, and who wrote
what."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Final

from watchroom.checkout.document_replica import ZONE, parse_object, unreadable_version
from watchroom.crdt import Document, LWWMap, ORSet, Text
from watchroom.crdt.errors import InvalidState
from watchroom.crdt.remote_state import Claim, Writers, collect_claims
from watchroom.journal import Journal
from watchroom.model import Row
from watchroom.zones.realtime.live_replica import LiveReplica, changed_fields
from watchroom.zones.realtime.replica_view import Seen

READ: Final = (
    "realtime_get_field",
    "realtime_get_document_snapshot",
    "realtime_edit_set",
)
"""The tools that show a field."""
_CHUNK: Final = 1000


def restore_seen_field(journal: Journal, live: LiveReplica, actor: str, field: str) -> Seen | None:
    """The ``field`` of ``live`` as ``actor`` last saw it, with its own writes since, from the rows in
    ``journal``: of a text the moment; None where it saw all, or never looked. Costs a pass over the
    document's versions, if others wrote to the field meanwhile."""
    version = _find_last_seen(journal, live.name, actor, field)
    if version is None or not _others_wrote(journal, live, actor, field, version):
        return None
    document = Document({field: live.document.schema[field]})
    deltas = (
        parse_object(row, content)
        for row, content in _iterate_versions(journal, live, 1, live.version)
        if (row.version or 0) <= version or row.actor == actor
    )
    of_field = ({field: delta[field]} for delta in deltas if field in delta)
    while batch := [*islice(of_field, _CHUNK)]:
        document.merge_all(batch)
    past = document.field(field)
    # What it wrote may build on what it had seen without a row to tell: then it knows all.
    if isinstance(past, Text):
        return past.frontiers() if past.is_whole else None
    return past if isinstance(past, (ORSet, LWWMap)) else None


def _find_last_seen(journal: Journal, name: str, actor: str, field: str) -> int | None:
    notes = [
        journal.last_note(ZONE, path, actor, tool) for path in (name, f"{name}/{field}") for tool in READ
    ]
    return max((note.base for note in notes if note and note.base is not None), default=None)


def _others_wrote(journal: Journal, live: LiveReplica, actor: str, field: str, after: int) -> bool:
    return any(
        row.actor != actor and field in parse_object(row, content)
        for row, content in _iterate_versions(journal, live, after, live.version)
    )


def _iterate_versions(
    journal: Journal, live: LiveReplica, after: int, until: int
) -> Iterator[tuple[Row, str | None]]:
    while found := journal.versions(ZONE, live.name, after=after, until=until, limit=_CHUNK):
        yield from found
        after = found[-1][0].version or until


def unproven_claims(claims: set[Claim], journal: Journal, live: LiveReplica, writers: Writers) -> set[Claim]:
    """Those of ``claims`` of ``writers`` that no row of ``live`` in ``journal`` proves: the named replicas
    never wrote that. Costs a pass over the document's versions, if there are claims. Raises
    `JournalError`."""
    fields = {claim.field for claim in claims}
    versions = _iterate_versions(journal, live, 1, sys.maxsize) if claims else ()
    for row, content in versions:
        if fields.isdisjoint(changed_fields(row)):
            continue
        try:
            claims = claims - collect_claims(live.document.schema, parse_object(row, content), writers)
        except InvalidState as error:
            raise unreadable_version(row) from error
        if not claims:
            break
    return claims
