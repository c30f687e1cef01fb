"""The past of a document in its rows: what an agent had seen of a field when its process ended, and who wrote
what."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby, islice
from typing import Final, NamedTuple

from watchroom.checkout.document_replica import ZONE, parse_object, unreadable_version
from watchroom.crdt import Document, LWWMap, ORSet
from watchroom.crdt.alignment import TextAlignment, TextStep
from watchroom.crdt.errors import InvalidState
from watchroom.crdt.remote_state import Claim, Writers, collect_claims
from watchroom.journal import Journal
from watchroom.model import Json, Row
from watchroom.zones.realtime.live_replica import LiveReplica, TextView, changed_fields

READ: Final = (
    "realtime_get_field",
    "realtime_get_document_snapshot",
    "realtime_edit_set",
)
"""The tools that show a field."""
EDIT_TEXT: Final = "realtime_edit_text"
AT: Final = "at"
ADDED: Final = "added"
REMOVED: Final = "removed"
"""In the detail of a text's row: where its writer edited the text as it knew it, and how many characters."""
SEEN: Final = "seen"
"""In the detail of a text's row that deleted characters which others had deleted before: the version that its
writer saw, and has edited since. A revert finds by it which characters those are."""
_CHUNK: Final = 1000
_RECENT: Final = 8
"""So many of an agent's newest readings by each tool are looked at."""


def restore_seen_field(journal: Journal, live: LiveReplica, actor: str, field: str) -> ORSet | LWWMap | None:
    """The set or map ``field`` of ``live`` as ``actor`` last saw it, with its own writes since, from the rows
    in ``journal``; None where it never looked. Costs a pass over the document's versions, if others wrote to
    the field meanwhile."""
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
    """The text ``field`` of ``live``, which has caught up, as ``actor`` last saw it, with its own edits
    since, from the rows in ``journal``: as it is, where it saw all or never looked. Costs as
    `restore_seen_field`. Raises `JournalError`."""
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
    # In 0.2.0 and earlier an edit that deleted only what others had deleted was a note, not a version.
    notes = journal.notes(ZONE, f"{live.name}/{field}", actor, EDIT_TEXT, after=seen.seq)
    rows = heapq.merge(written, ((row, {}) for row in reversed(notes)), key=lambda each: each[0].seq)
    for edit, group in groupby(rows, key=lambda each: _find_text_edit(each[0], actor)):
        deltas = (delta for _, delta in group)
        if edit is None:
            _merge_batches(document, deltas)
            alignment.apply_all(steps)
            steps.clear()
            continue
        # Each row alone: where one of a process did not know of another's, only the merge tells where it is.
        for delta in deltas:
            document.merge(delta)
            alignment.record_merged_edit(*edit.clamp(alignment.known_length), steps)
            steps.clear()
    return view.begin_at(alignment, seen.version)


class _Seen(NamedTuple):
    """That an actor was shown a field, as of ``version``, by the row ``seq``."""

    version: int
    seq: int


class _TextEdit(NamedTuple):
    """From where to where the characters stood that an edit of a text replaced, as its writer knew it."""

    start: int
    stop: int

    def clamp(self, length: int) -> _TextEdit:
        """This edit in a text of ``length`` characters."""
        return _TextEdit(min(self.start, length), min(self.stop, length))


def _find_text_edit(row: Row, actor: str) -> _TextEdit | None:
    """What ``actor`` did to a text by ``row``, None where it is another's, or does not say so."""
    if row.actor != actor:
        return None
    at, removed = row.detail.get(AT), row.detail.get(REMOVED)
    if not (isinstance(at, int) and isinstance(removed, int)):
        return None
    return _TextEdit(at, at + removed) if min(at, removed) >= 0 else None


def _merge_batches(document: Document, deltas: Iterator[Mapping[str, Json]]) -> None:
    while batch := [*islice(deltas, _CHUNK)]:
        document.merge_all(batch)


def _iterate_deltas(
    journal: Journal, live: LiveReplica, field: str, after: int, until: int
) -> Iterator[tuple[Row, Mapping[str, Json]]]:
    """The rows after the version ``after`` that wrote to ``field``, each with the field's part of its
    delta."""
    for row, content in _iterate_versions(journal, live, after, until):
        delta = parse_object(row, content)
        if field in delta:
            yield row, {field: delta[field]}


def _find_last_seen(journal: Journal, name: str, actor: str, field: str) -> _Seen | None:
    # A reading may become a row after one that another process made later, of a newer version.
    notes = (
        note
        for path in (name, f"{name}/{field}")
        for tool in READ
        for note in journal.notes(ZONE, path, actor, tool, limit=_RECENT)
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
