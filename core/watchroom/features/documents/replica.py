"""Replicas of a realtime document in memory, built from its rows.

`DocumentReplica` is for readers, `LiveReplica` for the agents of a process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from threading import RLock
from typing import Final, NamedTuple

from watchroom.algorithms.crdt import Document, Text, TextEdit, check_schema
from watchroom.algorithms.crdt.alignment import TextAlignment, TextStep
from watchroom.algorithms.crdt.checkpoint import Checkpoint, capture_state, encode_checkpoint
from watchroom.errors import DocumentDamaged, FieldNotFound, InvalidSchema, InvalidState
from watchroom.features.documents.rows import (
    BY,
    DOCUMENT_ZONE,
    changed_fields,
    parse_object,
    unreadable_version,
)
from watchroom.kernel.journal import Journal
from watchroom.model import Json, Row

_CHUNK: Final = 1000
_MAX_STEPS: Final = 1000
"""Maximum number of steps of each text that are kept, for agents who have not read the text since these
steps. The time for applying steps is proportional to their number."""


class DocumentReplica:
    """A replica of a document. It is for one thread at a time.

    Args:
        name: the document, which must exist.
        journal: the journal with its rows.
        start: the checkpoint to start from.
        until: the version to read to; default: the newest.

    Raises:
        JournalError: a row cannot be read.
    """

    def __init__(
        self, name: str, journal: Journal, start: Checkpoint | None = None, *, until: int | None = None
    ) -> None:
        self.name = name
        self._journal = journal
        versions = journal.versions(DOCUMENT_ZONE, name, limit=1)
        if not versions:
            # A name that is damaged in the journal matches no row.
            raise DocumentDamaged(version=1, document=name)
        first, content = versions[0]
        try:
            schema = check_schema(parse_object(first, content).get("schema"))
        except InvalidSchema as error:
            raise unreadable_version(first) from error
        self.newest: Row = first
        self.document, self._replicas = Document(schema), set[str]()
        reached = journal.version(DOCUMENT_ZONE, name, start.version) if start else None
        if start and reached and start.document.schema == schema:
            self.newest, self.document, self._replicas = reached, start.document, set(start.replicas)
        self.catch_up(until)

    @property
    def version(self) -> int:
        """The newest version that the replica contains."""
        return self.newest.version or 0

    @property
    def replicas(self) -> frozenset[str]:
        """The replicas of this workspace that wrote to the document."""
        return frozenset(self._replicas)

    def catch_up(self, until: int | None = None) -> None:
        """Merge newer versions, up to ``until`` if it is given. Raise `JournalError`."""
        while found := self._journal.versions(
            DOCUMENT_ZONE, self.name, after=self.version, until=until, limit=_CHUNK
        ):
            deltas = [parse_object(row, content) for row, content in found]
            try:
                self.document.merge_all(deltas)
            except (InvalidState, FieldNotFound):
                self._merge_one_by_one(found, deltas)
            for row, _ in found:
                self.record_row(row)

    def _merge_one_by_one(
        self, found: list[tuple[Row, str | None]], deltas: list[Mapping[str, Json]]
    ) -> None:
        """Merge the rows one by one to find and raise the error of the row that cannot be merged. Merging a
        row twice has no effect."""
        for (row, _), delta in zip(found, deltas, strict=True):
            try:
                self.document.merge(delta)
            except (InvalidState, FieldNotFound) as error:
                raise unreadable_version(row) from error

    def record_row(self, row: Row) -> None:
        """Record that the document contains the delta of ``row``."""
        self.newest = row
        replica = row.detail.get(BY)
        if isinstance(replica, str):
            self._replicas.add(replica)

    def checkpoint(self) -> bytes:
        """Return the bytes of the document's checkpoint."""
        return encode_checkpoint(self.capture())

    def render_values(self) -> bytes:
        """Return the values of all fields as JSON for people, with texts as lists of lines. The same version
        always gives the same bytes."""
        values = {
            name: value.split("\n") if isinstance(value, str) and "\n" in value else value
            for name, value in self.document.values().items()
        }
        return (json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()

    def capture(self) -> Mapping[str, Json]:
        """Return the state of the document for `encode_checkpoint`."""
        checkpoint = Checkpoint(self.name, self.version, self.replicas, self.document)
        return capture_state(checkpoint, self.newest.timestamp, self.newest.actor)


class LiveReplica(DocumentReplica):
    """The replica of a document that all agents of a process share. Hold ``lock`` to use it.

    It may lag behind the journal: call `catch_up` before showing it to anybody.

    - ``name``: the document.
    - ``journal``: the journal with its rows.
    - ``start``: the checkpoint to start from, None to start from the first version.
    """

    def __init__(self, name: str, journal: Journal, start: Checkpoint | None) -> None:
        self.lock = RLock()
        self.is_discarded = False
        """Whether the replica must no longer be used, because it may contain an edit that has no row."""
        self._last_looked = 0
        self._unmerged: dict[str, set[str]] = {}
        super().__init__(name, journal, start)
        self._logs: Mapping[str, StepLog] = {
            field: StepLog() for field, kind in self.document.schema.items() if kind == "rga"
        }
        for field, log in self._logs.items():
            self.document.text(field).observe(log.extend)

    def catch_up(self, until: int | None = None) -> None:
        """Merge newer versions, up to ``until`` if it is given. Raise `JournalError`."""
        super().catch_up(until)
        self._unmerged.clear()

    def has_unmerged_writes(self, field: str, replica: str) -> bool:
        """Return whether replicas other than ``replica`` have written to ``field`` since this replica was
        last updated."""
        for row in self._journal.history(
            DOCUMENT_ZONE, self.name, after_version=max(self.version, self._last_looked)
        ):
            self._last_looked = row.version or 0
            for each in changed_fields(row):
                self._unmerged.setdefault(each, set()).add(str(row.detail.get(BY, "")))
        return bool(self._unmerged.get(field, set()) - {replica})

    def view_text(self, field: str) -> TextView:
        """Return a view of the text ``field`` for an actor who is shown the text now. Raise `FieldNotFound`,
        `WrongFieldType`."""
        text = self.document.text(field)
        return TextView(self._logs[field], TextAlignment(len(text)), self.version)

    def is_current(self, field: str, view: TextView) -> bool:
        """Return whether ``view``, an earlier result of `view_text` for ``field``, can be updated to the
        current text. It cannot if its replica was discarded, or if it is too old."""
        return view.log is self._logs.get(field) and view.log.has(view.seen)


class StepLog:
    """The newest steps of a text. Step numbers count from the first step of all."""

    def __init__(self) -> None:
        self._steps: list[TextStep] = []
        self._dropped = 0

    @property
    def end(self) -> int:
        """The number of all steps."""
        return self._dropped + len(self._steps)

    def extend(self, steps: Sequence[TextStep]) -> None:
        """Add ``steps``."""
        self._steps += steps
        surplus = len(self._steps) - _MAX_STEPS
        if surplus > _MAX_STEPS:
            del self._steps[:surplus]
            self._dropped += surplus

    def has(self, number: int) -> bool:
        """Return whether all steps from ``number`` on are kept."""
        return number >= self._dropped

    def after(self, number: int) -> Iterator[TextStep]:
        """Return the steps from ``number`` on."""
        return map(self._steps.__getitem__, range(number - self._dropped, len(self._steps)))


class ViewEdit(NamedTuple):
    """The result of an edit of a `TextView`. ``gone``: the number of deleted characters that others had
    already deleted. The delta does not contain them."""

    edit: TextEdit
    gone: int


class TextView:
    """A text as an agent last saw it: the text in ``version`` of the document, with the agent's own edits
    since.

    - ``log``: the steps of the text. Steps up to ``seen`` are already applied to ``alignment``.
    - ``alignment``: maps positions in the known text to positions in the current text.
    """

    def __init__(self, log: StepLog, alignment: TextAlignment, version: int) -> None:
        self.log = log
        self.seen = log.end
        self.version = version
        self._alignment = alignment

    @property
    def is_behind(self) -> bool:
        """Whether others have written text that the agent was not shown."""
        return self._alignment.is_behind

    def __len__(self) -> int:
        return self._alignment.known_length

    def begin_at(self, alignment: TextAlignment, version: int) -> TextView:
        """Return a view of the same text for an agent who saw ``version`` of the document. ``alignment``:
        maps the text that the agent saw to the current text."""
        return TextView(self.log, alignment, version)

    def catch_up(self) -> None:
        """Apply the steps of others."""
        for step in self.log.after(self.seen):
            self._alignment.apply(step)
        self.seen = self.log.end

    def edit(self, text: Text, start: int, stop: int, inserted: str, replica: str) -> ViewEdit:
        """Replace the characters from ``start`` up to ``stop`` (excluded) of the known text in ``text``. Call
        `catch_up` first.

        - ``start``, ``stop``: clamped to the known text.
        - ``inserted``: the new characters.
        - ``replica``: the replica that writes.

        Raise `NotText`, `TooLarge`.
        """
        length = len(self)
        start = min(max(start, 0), length)
        stop = min(max(stop, start), length)
        place = self._alignment.place(start, stop)
        gone = stop - start - sum(count for _, count in place.spans)
        delta = text.edit_at(place, inserted, replica)
        if delta is None and gone:
            delta = text.empty_delta(replica)
        self._alignment.record_edit(start, stop, len(inserted))
        self.seen = self.log.end
        return ViewEdit(TextEdit(start, stop - start, len(inserted), delta), gone)
