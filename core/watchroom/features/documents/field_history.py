"""The history of a field in its rows: the values that an actor has seen, and the writes that rows prove."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby, islice
from typing import Final, NamedTuple

from watchroom.algorithms.crdt import Document, LWWMap, ORSet
from watchroom.algorithms.crdt.alignment import TextAlignment, TextStep
from watchroom.algorithms.crdt.remote_state import Claim, Writers, collect_claims
from watchroom.errors import InvalidState
from watchroom.features.documents.replica import LiveReplica, TextView
from watchroom.features.documents.rows import (
    DOCUMENT_ZONE,
    EDIT_TEXT,
    READ,
    EditedRange,
    changed_fields,
    find_edited_range,
    parse_object,
    unreadable_version,
)
from watchroom.kernel.journal import Journal
from watchroom.model import Json, Row

_CHUNK: Final = 1000
_RECENT: Final = 8
"""Maximum number of an actor's newest reads by each tool that are searched."""


def restore_seen_field(journal: Journal, live: LiveReplica, actor: str, field: str) -> ORSet | LWWMap | None:
    """Return the set or map ``field`` of ``live`` as ``actor`` last saw it, with its own writes since. None
    if it never read the field.

    It is rebuilt from the rows of ``journal``. If others have written to the field since, all versions of the
    document are read.
    """
    seen = _find_last_seen(journal, live.name, actor, field)
    if seen is None:
        return None
    if not _others_wrote(journal, live, actor, field, seen.version):
        present = live.document.field(field)
        return present.copy() if isinstance(present, (ORSet, LWWMap)) else None
    document = Document({field: live.document.schema[field]})
    deltas = (
        delta
        for row, delta in _iterate_deltas(journal, live, field, 1, live.version)
        if (row.version or 0) <= seen.version or row.actor == actor
    )
    _merge_batches(document, deltas)
    past = document.field(field)
    return past if isinstance(past, (ORSet, LWWMap)) else None


def restore_text_view(journal: Journal, live: LiveReplica, actor: str, field: str) -> TextView:
    """Return the text ``field`` of ``live`` as ``actor`` last saw it, with its own edits since, from the rows
    of ``journal``. If the actor saw all edits or never read the text, return the current text.

    ``live`` must be up to date. If others have written to the field since, all versions of the document are
    read. Raise `JournalError`.
    """
    view = live.view_text(field)
    seen = _find_last_seen(journal, live.name, actor, field)
    if seen is None or not _others_wrote(journal, live, actor, field, seen.version):
        return view
    document = Document({field: live.document.schema[field]})
    _merge_batches(document, (delta for _, delta in _iterate_deltas(journal, live, field, 1, seen.version)))
    text = document.text(field)
    alignment, steps = TextAlignment(len(text)), list[TextStep]()
    text.observe(steps.extend)
    written = _iterate_deltas(journal, live, field, seen.version, live.version)
    # In 0.2.0 and earlier, an edit that only deleted already deleted characters was a note, not a version.
    notes = journal.notes(DOCUMENT_ZONE, f"{live.name}/{field}", actor, EDIT_TEXT, after=seen.seq)
    rows = heapq.merge(written, ((row, {}) for row in reversed(notes)), key=lambda each: each[0].seq)
    for edit, group in groupby(rows, key=lambda each: _find_own_edit(each[0], actor)):
        deltas = (delta for _, delta in group)
        if edit is None:
            _merge_batches(document, deltas)
            alignment.apply_all(steps)
            steps.clear()
            continue
        # Merge each row separately: only the merge determines the place of an edit that is concurrent with
        # another process.
        for delta in deltas:
            document.merge(delta)
            alignment.record_merged_edit(*edit.clamp(alignment.known_length), steps)
            steps.clear()
    return view.begin_at(alignment, seen.version)


class _Seen(NamedTuple):
    """A record in the row ``seq``: an actor was shown ``version`` of a document."""

    version: int
    seq: int


def _find_own_edit(row: Row, actor: str) -> EditedRange | None:
    """Return the range of a text that ``actor`` replaced by ``row``, None for rows of others."""
    return find_edited_range(row) if row.actor == actor else None


def _merge_batches(document: Document, deltas: Iterator[Mapping[str, Json]]) -> None:
    while batch := [*islice(deltas, _CHUNK)]:
        document.merge_all(batch)


def _iterate_deltas(
    journal: Journal, live: LiveReplica, field: str, after: int, until: int
) -> Iterator[tuple[Row, Mapping[str, Json]]]:
    """Yield the rows after version ``after`` that wrote to ``field``, each with the field's part of its
    delta."""
    for row, content in _iterate_versions(journal, live, after, until):
        delta = parse_object(row, content)
        if field in delta:
            yield row, {field: delta[field]}


def _find_last_seen(journal: Journal, name: str, actor: str, field: str) -> _Seen | None:
    # Rows of reads may be out of order: a later row can be about an older version.
    notes = (
        note
        for path in (name, f"{name}/{field}")
        for tool in READ
        for note in journal.notes(DOCUMENT_ZONE, path, actor, tool, limit=_RECENT)
    )
    return max((_Seen(note.base, note.seq) for note in notes if note.base is not None), default=None)


def _others_wrote(journal: Journal, live: LiveReplica, actor: str, field: str, after: int) -> bool:
    return any(
        row.actor != actor and field in parse_object(row, content)
        for row, content in _iterate_versions(journal, live, after, live.version)
    )


def _iterate_versions(
    journal: Journal, live: LiveReplica, after: int, until: int
) -> Iterator[tuple[Row, str | None]]:
    while found := journal.versions(DOCUMENT_ZONE, live.name, after=after, until=until, limit=_CHUNK):
        yield from found
        after = found[-1][0].version or until


def unproven_claims(claims: set[Claim], journal: Journal, live: LiveReplica, writers: Writers) -> set[Claim]:
    """Return the ``claims`` about ``writers`` that no row of ``live`` in ``journal`` proves: the claimed
    replicas never wrote these changes.

    If there are claims, all versions of the document are read. Raise `JournalError`.
    """
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
