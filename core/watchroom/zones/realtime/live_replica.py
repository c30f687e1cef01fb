"""A document in memory: one replica for all agents of a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import RLock
from typing import Final, NamedTuple

from watchroom.checkout.document_replica import BY, ZONE, DocumentReplica
from watchroom.crdt import Text, TextEdit
from watchroom.crdt.alignment import TextAlignment, TextStep
from watchroom.crdt.checkpoint import Checkpoint
from watchroom.journal import Journal
from watchroom.model import Row

_MOST_STEPS: Final = 1000
"""So many steps of each text are kept for those who have not looked since; each is taken in by itself, at a
cost that grows with their number."""


class LiveReplica(DocumentReplica):
    """The document ``name`` of ``journal``, starting from the checkpoint ``start``, for one thread at a time:
    hold ``lock``.

    It may lag behind the journal, as any replica may: catch up before showing it to anybody."""

    def __init__(self, name: str, journal: Journal, start: Checkpoint | None) -> None:
        self.lock = RLock()
        self._last_looked = 0
        self._unmerged: dict[str, set[str]] = {}
        super().__init__(name, journal, start)
        self._logs: Mapping[str, StepLog] = {
            field: StepLog() for field, kind in self.document.schema.items() if kind == "rga"
        }
        for field, log in self._logs.items():
            self.document.text(field).observe(log.extend)

    def catch_up(self, until: int | None = None) -> None:
        """Merge newer versions, up to ``until`` if it is given. Raises `JournalError`."""
        super().catch_up(until)
        self._unmerged.clear()

    def has_unmerged_writes(self, field: str, replica: str) -> bool:
        """Whether replicas other than ``replica`` have written to ``field`` since this one caught up."""
        for row in self._journal.history(ZONE, self.name, after_version=max(self.version, self._last_looked)):
            self._last_looked = row.version or 0
            for each in changed_fields(row):
                self._unmerged.setdefault(each, set()).add(str(row.detail.get(BY, "")))
        return bool(self._unmerged.get(field, set()) - {replica})

    def view_text(self, field: str) -> TextView:
        """The text ``field`` as whoever is shown it now knows it. Raises `FieldNotFound`,
        `WrongFieldType`."""
        text = self.document.text(field)
        return TextView(self._logs[field], TextAlignment(len(text)), self.version)

    def is_current(self, field: str, view: TextView) -> bool:
        """Whether ``view``, a result of `view_text` of ``field``, can be brought up to the text as it is: it
        may be of a replica that is there no more, or too old."""
        return view.log is self._logs.get(field) and view.log.has(view.seen)


class StepLog:
    """What was done to a text, one step after the other: the newest ones, counted from the first of all."""

    def __init__(self) -> None:
        self._steps: list[TextStep] = []
        self._dropped = 0

    @property
    def end(self) -> int:
        """How many there have been."""
        return self._dropped + len(self._steps)

    def extend(self, steps: Sequence[TextStep]) -> None:
        """Add ``steps``."""
        self._steps += steps
        surplus = len(self._steps) - _MOST_STEPS
        if surplus > _MOST_STEPS:
            del self._steps[:surplus]
            self._dropped += surplus

    def has(self, number: int) -> bool:
        """Whether those from ``number`` on are there."""
        return number >= self._dropped

    def after(self, number: int) -> Iterator[TextStep]:
        """Those from ``number`` on."""
        return map(self._steps.__getitem__, range(number - self._dropped, len(self._steps)))


class ViewEdit(NamedTuple):
    """The result of an edit of a text as an agent knows it. ``gone``: how many of the characters that it
    deleted others had deleted before; its delta says nothing of them."""

    edit: TextEdit
    gone: int


class TextView:
    """A text as an agent knows it: that of ``version`` of the document, with the agent's own edits since.
    Its ``alignment`` with the present text has taken in the steps of ``log`` up to ``seen``."""

    def __init__(self, log: StepLog, alignment: TextAlignment, version: int) -> None:
        self.log = log
        self.seen = log.end
        self.version = version
        self._alignment = alignment

    @property
    def is_behind(self) -> bool:
        """Whether others have written what the agent has not been shown."""
        return self._alignment.is_behind

    def __len__(self) -> int:
        return self._alignment.known_length

    def begin_at(self, alignment: TextAlignment, version: int) -> TextView:
        """Return a view of the same text for an agent who saw ``version`` of the document and knows the text
        as ``alignment`` says."""
        return TextView(self.log, alignment, version)

    def catch_up(self) -> None:
        """Take in what others have done."""
        for step in self.log.after(self.seen):
            self._alignment.apply(step)
        self.seen = self.log.end

    def edit(self, text: Text, start: int, stop: int, inserted: str, replica: str) -> ViewEdit:
        """Replace the characters from ``start`` up to ``stop`` (excluded) of the text as it is known, clamped
        to it, by ``inserted``: in ``text``, as ``replica``. Catch up before. Raises `NotText`, `TooLarge`."""
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


def changed_fields(row: Row) -> Iterator[str]:
    """The names of the fields that the delta in ``row`` changes."""
    detail = row.detail
    several = detail.get("fields", [detail.get("field", "")])
    yield from map(str, several if isinstance(several, list) else [])
