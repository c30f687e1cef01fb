"""Open buffers in memory, each consistent with its rows, and the row of each operation (EDIT)."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Final

from watchroom import validation
from watchroom.algorithms.editing import (
    ContentChanged,
    DataSourceBinding,
    SourceText,
    TextEditor,
    TextEditResponse,
    TextEditStatus,
)
from watchroom.features.buffers.reads import (
    WHOLE_EVERY,
    count_since_whole,
    had_text,
    read_buffer,
    read_text,
)
from watchroom.features.buffers.rows import RESPONSE, ZONE, BufferRecord, parse_record
from watchroom.features.buffers.rules import is_valid_name
from watchroom.features.buffers.sources import FLUSH, RecordedSource, SourceServices
from watchroom.features.config.store import Store
from watchroom.kernel.call_context import CallContext
from watchroom.model import MAX_TEXT_BYTES, Json, Outcome, Row, Write
from watchroom.texts import Language

_MAX_LOADED: Final = 32


@dataclass(slots=True)
class LoadedBuffer:
    """An open buffer in memory, with its newest ``row`` and its ``record``."""

    row: Row
    record: BufferRecord
    editor: TextEditor
    source: RecordedSource
    binding: DataSourceBinding
    since_whole: int
    changed: list[ContentChanged]


class StaleBufferError(Exception):
    """The buffer or its source has a newer version."""


class BufferStore:
    """A cache of the most recently used buffers, each for one thread at a time.

    - ``store``: the journal.
    - ``services``: read and write the sources.
    """

    def __init__(self, store: Store, services: SourceServices) -> None:
        self._store = store
        self._services = services
        self._loaded: OrderedDict[tuple[str, Language], LoadedBuffer] = OrderedDict()
        self._lock = Lock()

    def load(self, call: CallContext, name: str, language: Language) -> LoadedBuffer | None:
        """Return the caller's open buffer ``name`` as of its newest row, None if it is not open.

        - ``call``: reads and writes its source from now on.
        - ``language``: the language of responses.
        """
        path = f"{call.actor}/{name}"
        head = self._find_newest_row(call.actor, path) if is_valid_name(name) else None
        if head is None:
            return None
        with self._lock:
            loaded = self._loaded.get((path, language))
            if loaded is not None and loaded.row.seq == head.seq:
                self._loaded.move_to_end((path, language))
                loaded.source.call = call
                return loaded
        loaded = self._rebuild(call, name, head, language)
        with self._lock:
            self._loaded[path, language] = loaded
            while len(self._loaded) > _MAX_LOADED:
                self._loaded.popitem(last=False)
        return loaded

    def _find_newest_row(self, actor: str, path: str) -> Row | None:
        """Return the newest row of an open buffer, None if it is not open."""
        while (head := self._store.journal.head(ZONE, path)) and (record := parse_record(head)):
            written = self._find_unrecorded_flush(actor, head, record)
            if written is None:
                return head
            with suppress(StaleBufferError):
                self._record_flush(head, record, written)
        return None

    def _find_unrecorded_flush(self, actor: str, head: Row, record: BufferRecord) -> Row | None:
        """Return the version of the source that a flush of this buffer wrote without a row of its own yet.

        The flush was interrupted, or is running in another process.
        """
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

    def _rebuild(self, call: CallContext, name: str, head: Row, language: Language) -> LoadedBuffer:
        """Rebuild the buffer from its rows."""
        journal = self._store.journal
        record = parse_record(head)
        if record is None:
            raise ValueError(head.path)
        found = read_buffer(journal, head)
        editor = TextEditor(
            found.text,
            name=name,
            language=language,
            version=record.edition,
            selections_lapsed=bool(record.lapsed),
        )
        if found.pending is not None:
            editor.replace(found.pending.old, found.pending.new)
        source = RecordedSource(self._services, call, record.zone, record.path)
        binding = DataSourceBinding(
            editor,
            source,
            name=name,
            language=language,
            base=SourceText(found.base, record.base, record.edit or 0),
            markers=found.marks,
        )
        since_whole = count_since_whole(journal, head)
        loaded = LoadedBuffer(head, record, editor, source, binding, since_whole, [])
        editor.subscribe(loaded.changed.append)
        return loaded

    def _check_own_flush(self, loaded: LoadedBuffer, actor: str, response: TextEditResponse) -> None:
        """Raise `StaleBufferError` if another flush of the same buffer caused the conflict."""
        if response.status is TextEditStatus.EXTERNAL_CONFLICT:
            newest = self._find_newest_row(actor, loaded.row.path)
            if newest is None or newest.seq != loaded.row.seq:
                raise StaleBufferError

    def commit_operation(
        self,
        loaded: LoadedBuffer,
        call: CallContext,
        response: TextEditResponse,
        arguments: Mapping[str, Json],
    ) -> None:
        """Commit the operation of ``call`` on the buffer ``loaded`` as a row.

        - ``response``: the response to the agent.
        - ``arguments``: the arguments of the call.

        Raise `StaleBufferError` if the same agent has changed the buffer in another process.
        """
        self._check_own_flush(loaded, call.actor, response)
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
            reading = call.note(
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
            self._store.commits.commit(reading)
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
            # The text of a source can change without a new version, for example by a change of a board's
            # template.
            after = after._replace(opened=(loaded.row.version or 0) + 1)
        if after.is_whole:
            after = after._replace(marks=binding.markers or None)
        detail = {**after.detail(), **answer}
        draft = call.write(ZONE, loaded.row.path, content, message, detail=detail)
        row = self.commit_version(loaded.row, draft)
        loaded.row, loaded.record = row, after
        loaded.since_whole = 0 if after.is_whole else loaded.since_whole + 1

    def commit_version(self, newest: Row, draft: Write) -> Row:
        """Commit ``draft`` as the buffer's next version after ``newest``. Return its row. Raise
        `StaleBufferError` if the buffer has a newer version."""
        with self._store.journal.exclusive(f"buffer/{draft.actor}"):
            head = self._store.journal.head(ZONE, draft.path)
            if head is None or head.seq != newest.seq:
                raise StaleBufferError
            return self._store.commits.commit(draft._replace(expected=head.version or 0)).row

    def evict(self, path: str) -> None:
        """Remove the buffer at ``path`` from memory, because it may differ from its rows."""
        with self._lock:
            for key in [key for key in self._loaded if key[0] == path]:
                del self._loaded[key]


def _row_outcome(response: TextEditResponse) -> Outcome:
    return "ok" if response.is_done else "failed"


def _to_json(arguments: Mapping[str, Json]) -> str:
    return json.dumps(arguments, ensure_ascii=False)
