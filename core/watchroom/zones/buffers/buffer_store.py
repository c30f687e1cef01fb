"""Open buffers in memory, each equal to its rows, and the row for each operation on one (EDIT)."""

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
from watchroom.rules.buffers import RESPONSE, ZONE, BufferRecord, parse_record
from watchroom.texts import Language
from watchroom.zones.buffers.buffer_text import (
    WHOLE_EVERY,
    count_since_whole,
    had_text,
    read_buffer_text,
    read_text,
)
from watchroom.zones.buffers.naming import is_valid_name
from watchroom.zones.buffers.sources import FLUSH, RecordedSource, SourceZones
from watchroom.zones.store import Store

_MAX_LOADED: Final = 32


@dataclass(slots=True)
class LoadedBuffer:
    """An open buffer in memory, with its newest ``row`` and its ``record``."""

    row: Row
    record: BufferRecord
    editor: TextEditor
    binding: DataSourceBinding
    since_whole: int
    changed: list[ContentChanged]


class StaleBufferError(Exception):
    """The buffer, or what it is opened from, has a newer version by now."""


class BufferStore:
    """A cache of loaded buffers, each for one thread at a time. ``store`` holds the rows, ``zones`` the
    sources."""

    def __init__(self, store: Store, zones: SourceZones) -> None:
        self._store = store
        self._zones = zones
        self._loaded: OrderedDict[tuple[str, Language], LoadedBuffer] = OrderedDict()
        self._lock = Lock()

    def load(self, actor: str, name: str, language: Language) -> LoadedBuffer | None:
        """The open buffer ``name`` of ``actor`` as of its newest row, with responses in ``language``; None if
        there is none of that name."""
        path = f"{actor}/{name}"
        head = self._find_newest_row(actor, path) if is_valid_name(name) else None
        if head is None:
            return None
        with self._lock:
            loaded = self._loaded.get((path, language))
            if loaded is not None and loaded.row.seq == head.seq:
                self._loaded.move_to_end((path, language))
                return loaded
        loaded = self._rebuild(actor, name, head, language)
        with self._lock:
            self._loaded[path, language] = loaded
            while len(self._loaded) > _MAX_LOADED:
                self._loaded.popitem(last=False)
        return loaded

    def _find_newest_row(self, actor: str, path: str) -> Row | None:
        """The newest row of an open buffer, None if it is not open."""
        while (head := self._store.journal.head(ZONE, path)) and (record := parse_record(head)):
            written = self._find_unrecorded_flush(actor, head, record)
            if written is None:
                return head
            with suppress(StaleBufferError):
                self._record_flush(head, record, written)
        return None

    def _find_unrecorded_flush(self, actor: str, head: Row, record: BufferRecord) -> Row | None:
        """What a flush of this buffer wrote to the source before it could make its row: it was cut off, or
        is under way in another process."""
        journal = self._store.journal
        written = journal.version(record.zone, record.path, record.base + 1)
        if written is None or (written.actor, written.tool) != (actor, FLUSH):
            return None
        return written if had_text(journal, head, journal.content(written.seq) or "") else None

    def _record_flush(self, head: Row, record: BufferRecord, written: Row) -> None:
        journal = self._store.journal
        text = read_text(journal, head)
        is_whole = count_since_whole(journal, head) + 1 >= WHOLE_EVERY
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
        self.commit_version(head, draft)

    def _rebuild(self, actor: str, name: str, head: Row, language: Language) -> LoadedBuffer:
        """The buffer as its rows say it is."""
        journal = self._store.journal
        record = parse_record(head)
        if record is None:
            raise ValueError(head.path)
        found = read_buffer_text(journal, head)
        editor = TextEditor(
            found.text,
            name=name,
            language=language,
            version=record.edition,
            selections_lapsed=bool(record.lapsed),
        )
        if found.pending is not None:
            editor.replace(found.pending.old, found.pending.new)
        binding = DataSourceBinding(
            editor,
            RecordedSource(self._zones, actor, record.zone, record.path),
            name=name,
            language=language,
            base=SourceText(found.base, record.base, record.edit or 0),
            markers=found.marks,
        )
        loaded = LoadedBuffer(head, record, editor, binding, count_since_whole(journal, head), [])
        editor.subscribe(loaded.changed.append)
        return loaded

    def _check_own_flush(self, loaded: LoadedBuffer, actor: str, response: TextEditResponse) -> None:
        """Raises `StaleBufferError` where it was a flush of the same buffer that came first."""
        if response.status is TextEditStatus.EXTERNAL_CONFLICT:
            newest = self._find_newest_row(actor, loaded.row.path)
            if newest is None or newest.seq != loaded.row.seq:
                raise StaleBufferError

    def commit_operation(
        self,
        loaded: LoadedBuffer,
        actor: str,
        tool: str,
        response: TextEditResponse,
        arguments: Mapping[str, Json],
    ) -> None:
        """Commit what ``tool`` with these ``arguments`` did to the buffer ``loaded`` of ``actor``, and its
        ``response``, as a row. Raises `StaleBufferError` if the same agent changed the buffer in another
        process meanwhile."""
        self._check_own_flush(loaded, actor, response)
        record, editor, binding = loaded.record, loaded.editor, loaded.binding
        answer: dict[str, Json] = {
            RESPONSE: response.model_dump(mode="json", exclude_defaults=True, exclude={"diff"})
        }
        message = validation.escape_unstorable(response.summary.partition("\n")[0], 200)
        is_pending = editor.selections is not None
        is_pending_now = response.status is TextEditStatus.MULTI_MATCH
        base = binding.base
        moved = (base.version, base.edit) != (record.base, record.edit or 0)
        if not (loaded.changed or is_pending_now or moved or is_pending != (record.pending is not None)):
            is_reading = response.diff is not None
            given = (
                None if is_reading else validation.escape_unstorable(_to_json(arguments), MAX_TEXT_BYTES // 4)
            )
            draft = Note(
                actor,
                tool,
                ZONE,
                loaded.row.path,
                _row_outcome(response),
                "" if _row_outcome(response) == "ok" else response.code,
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
            pending=(loaded.row.version or 0) + 1
            if is_pending_now
            else record.pending
            if is_pending
            else None,
            lapsed=editor.selections_lapsed or None,
            at=None,
            removed=None,
        )
        content = _to_json(arguments) if is_pending_now else ""
        if loaded.changed:
            change = loaded.changed[0].change if len(loaded.changed) == 1 else None
            if change is None or loaded.since_whole + 1 >= WHOLE_EVERY:
                after, content = after._replace(is_whole=True), editor.snapshot()
            else:
                after, content = after._replace(at=change.at, removed=change.removed), change.text
        elif loaded.since_whole + 1 >= WHOLE_EVERY and not is_pending_now:
            after, content = after._replace(is_whole=True), editor.snapshot()
        if after.is_whole and not (after.is_changed or moved):
            # The source may have got another text without another version, as the template of a board.
            after = after._replace(opened=(loaded.row.version or 0) + 1)
        if after.is_whole:
            after = after._replace(marks=binding.markers or None)
        detail = {**after.detail(), **answer}
        row = self.commit_version(
            loaded.row, Write(actor, tool, ZONE, loaded.row.path, content, message, detail=detail)
        )
        loaded.row, loaded.record = row, after
        loaded.since_whole = 0 if after.is_whole else loaded.since_whole + 1

    def commit_version(self, newest: Row, draft: Write) -> Row:
        """Commit ``draft`` as the buffer's next version after ``newest``; returns its row. Raises
        `StaleBufferError` if the buffer has a newer version by now."""
        with self._store.journal.exclusive(f"buffer/{draft.actor}"):
            head = self._store.journal.head(ZONE, draft.path)
            if head is None or head.seq != newest.seq:
                raise StaleBufferError
            return self._store.commits.commit(draft._replace(expected=head.version or 0)).row

    def evict(self, path: str) -> None:
        """Remove the buffer with its rows at ``path`` from memory, where it may differ from them."""
        with self._lock:
            for key in [key for key in self._loaded if key[0] == path]:
                del self._loaded[key]


def _row_outcome(response: TextEditResponse) -> Outcome:
    return "ok" if response.is_done else "failed"


def _to_json(arguments: Mapping[str, Json]) -> str:
    return json.dumps(arguments, ensure_ascii=False)
