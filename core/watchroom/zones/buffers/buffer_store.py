"""Open buffers in memory, each only what its rows say, and how what is done to one becomes a row (spec 4)."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Final

from watchroom import validation
from watchroom.editing import (
    ContentChanged,
    DataSourceBinding,
    SourceText,
    TextEditor,
    TextEditResponse,
    TextEditStatus,
)
from watchroom.model import MAX_TEXT_BYTES, Json, Note, Outcome, Row, Write
from watchroom.texts import Language
from watchroom.zones.buffers.naming import can_be_name
from watchroom.zones.buffers.record import (
    RESPONSE,
    WHOLE_EVERY,
    ZONE,
    BufferRecord,
    has_held,
    read,
    record_of,
    since_whole,
    text_of,
)
from watchroom.zones.buffers.sources import FLUSH, KnownSource, SourceZones
from watchroom.zones.store import Store

_MOST_HELD: Final = 32


@dataclass(slots=True)
class LoadedBuffer:
    """A buffer, and its newest row."""

    row: Row
    record: BufferRecord
    editor: TextEditor
    binding: DataSourceBinding
    since_whole: int
    changed: list[ContentChanged]


class StaleBufferError(Exception):
    """The buffer, or what it is opened from, has another newest version by now."""


class BufferStore:
    """The buffers that are held: one thread at a time may use each."""

    def __init__(self, store: Store, places: SourceZones) -> None:
        self._store = store
        self._places = places
        self._held: OrderedDict[tuple[str, Language], LoadedBuffer] = OrderedDict()
        self._lock = Lock()

    def take(self, actor: str, name: str, language: Language) -> LoadedBuffer | None:
        """An agent's open buffer as of its newest row; None if it has none of that name."""
        path = f"{actor}/{name}"
        head = self._newest(actor, path) if can_be_name(name) else None
        if head is None:
            return None
        with self._lock:
            held = self._held.get((path, language))
            if held is not None and held.row.seq == head.seq:
                self._held.move_to_end((path, language))
                return held
        held = self._rebuilt(actor, name, head, language)
        with self._lock:
            self._held[path, language] = held
            while len(self._held) > _MOST_HELD:
                self._held.popitem(last=False)
        return held

    def _newest(self, actor: str, path: str) -> Row | None:
        """The newest row of an open buffer, None if it is not open."""
        while (head := self._store.journal.head(ZONE, path)) and (record := record_of(head)):
            written = self._flushed(actor, head, record)
            if written is None:
                return head
            with suppress(StaleBufferError):
                self._finish_flush(head, record, written)
        return None

    def _flushed(self, actor: str, head: Row, record: BufferRecord) -> Row | None:
        """What a flush of this buffer wrote to the source before it could make its row: it was cut off, or
        is under way in another process."""
        journal = self._store.journal
        written = journal.version(record.zone, record.path, record.base + 1)
        if written is None or (written.actor, written.tool) != (actor, FLUSH):
            return None
        return written if has_held(journal, head, journal.content(written.seq) or "") else None

    def _finish_flush(self, head: Row, record: BufferRecord, written: Row) -> None:
        journal = self._store.journal
        text = text_of(journal, head)
        is_whole = since_whole(journal, head) + 1 >= WHOLE_EVERY
        after = record._replace(
            base=written.version or 0,
            edit=None,
            opened=None,
            is_changed=text != journal.content(written.seq),
            is_whole=is_whole,
            marks=(),
            at=None,
            removed=None,
        )
        content = text if is_whole else ""
        draft = Write(written.actor, FLUSH, ZONE, head.path, content, written.message, detail=after.detail())
        self.commit(head, draft)

    def _rebuilt(self, actor: str, name: str, head: Row, language: Language) -> LoadedBuffer:
        """The buffer as its rows say it is."""
        journal = self._store.journal
        record = record_of(head)
        if record is None:
            raise ValueError(head.path)
        found = read(journal, head)
        editor = TextEditor(found.text, name=name, language=language, version=record.edition)
        if found.sought is not None:
            editor.replace(found.sought.old, found.sought.new)
        binding = DataSourceBinding(
            editor,
            KnownSource(self._places, actor, record.zone, record.path),
            name=name,
            language=language,
            base=SourceText(found.base, record.base, record.edit or 0),
            markers=found.marks,
        )
        held = LoadedBuffer(head, record, editor, binding, since_whole(journal, head), [])
        editor.subscribe(held.changed.append)
        return held

    def _check_whose_conflict(self, held: LoadedBuffer, actor: str, response: TextEditResponse) -> None:
        """Raises `StaleBufferError` where it was a flush of the same buffer that came first."""
        if response.status is TextEditStatus.EXTERNAL_CONFLICT:
            newest = self._newest(actor, held.row.path)
            if newest is None or newest.seq != held.row.seq:
                raise StaleBufferError

    def keep(
        self,
        held: LoadedBuffer,
        actor: str,
        tool: str,
        response: TextEditResponse,
        arguments: Mapping[str, Json],
    ) -> None:
        """Commit what was done as a row. Raises `StaleBufferError` if the same agent did something to the
        buffer in another process meanwhile."""
        self._check_whose_conflict(held, actor, response)
        record, editor, binding = held.record, held.editor, held.binding
        answer: dict[str, Json] = {
            RESPONSE: response.model_dump(mode="json", exclude_defaults=True, exclude={"diff"})
        }
        message = validation.escape_unstorable(response.summary.partition("\n")[0], 200)
        is_pending = editor.selections is not None
        sought = response.status is TextEditStatus.MULTI_MATCH
        base = binding.base
        moved = (base.version, base.edit) != (record.base, record.edit or 0)
        if not (held.changed or sought or moved or is_pending != (record.pending is not None)):
            is_reading = response.diff is not None
            given = (
                None if is_reading else validation.escape_unstorable(_written(arguments), MAX_TEXT_BYTES // 4)
            )
            draft = Note(
                actor,
                tool,
                ZONE,
                held.row.path,
                _outcome(response),
                "" if _outcome(response) == "ok" else response.code,
                message,
                given,
                record.base,
                detail=answer,
                durable=not is_reading,
            )
            self._store.commits.commit(draft)
            return
        after = record._replace(
            base=base.version,
            edit=base.edit or None,
            opened=None if moved else record.opened,
            length=len(editor.snapshot()),
            edition=editor.version,
            is_changed=binding.is_changed,
            is_whole=False,
            marks=() if moved else None,
            pending=(held.row.version or 0) + 1 if sought else record.pending if is_pending else None,
            at=None,
            removed=None,
        )
        content = _written(arguments) if sought else ""
        if held.changed:
            change = held.changed[0].change if len(held.changed) == 1 else None
            if change is None or held.since_whole + 1 >= WHOLE_EVERY:
                after, content = after._replace(is_whole=True), editor.snapshot()
            else:
                after, content = after._replace(at=change.at, removed=change.removed), change.text
        elif held.since_whole + 1 >= WHOLE_EVERY and not sought:
            after, content = after._replace(is_whole=True), editor.snapshot()
        if after.is_whole and not (after.is_changed or moved):
            # The source may have got another text without another version, as the template of a board.
            after = after._replace(opened=(held.row.version or 0) + 1)
        if after.is_whole:
            after = after._replace(marks=binding.markers or None)
        detail = {**after.detail(), **answer}
        row = self.commit(held.row, Write(actor, tool, ZONE, held.row.path, content, message, detail=detail))
        held.row, held.record = row, after
        held.since_whole = 0 if after.is_whole else held.since_whole + 1

    def commit(self, newest: Row, draft: Write) -> Row:
        """Make the buffer's next version. Raises `StaleBufferError` if it has another newest one by now."""
        with self._store.journal.exclusive(f"buffer/{draft.actor}"):
            head = self._store.journal.head(ZONE, draft.path)
            if head is None or head.seq != newest.seq:
                raise StaleBufferError
            return self._store.commits.commit(draft._replace(expected=head.version or 0)).row

    def forget(self, path: str) -> None:
        """What stands in memory may be no row."""
        with self._lock:
            for key in [key for key in self._held if key[0] == path]:
                del self._held[key]


def _outcome(response: TextEditResponse) -> Outcome:
    return "ok" if response.is_done else "failed"


def _written(arguments: Mapping[str, Json]) -> str:
    return json.dumps(arguments, ensure_ascii=False)
