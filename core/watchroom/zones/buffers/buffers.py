"""The buffers' zone: what an agent does to its buffers, each change of theirs one version (spec 4).

A buffer's path is ``AGENT/NAME``. It is made by its first version and closed by one without content. What is
kept in memory is only what the rows say: whichever process comes next goes on from them.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Lock, RLock
from typing import Final, NamedTuple, TypeAlias

from watchroom import names
from watchroom.editing import (
    BufferTool,
    ContentChanged,
    DataSourceBinding,
    Frame,
    OpenBuffer,
    Sourced,
    TextEditor,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
    first_pass,
    frames,
    tool_name,
    visible_edit_tools,
    visible_sync_tools,
)
from watchroom.editing.matrix import EDIT_TOOLS, SYNC_TOOLS
from watchroom.errors import WatchroomError
from watchroom.model import MAX_TEXT_BYTES, Json, Note, Outcome, Row, Write, Zone
from watchroom.texts import Language
from watchroom.zones.buffers.errors import (
    BufferNotFound,
    BufferTaken,
    BufferUnflushed,
    InvalidBuffer,
    TooManyBuffers,
)
from watchroom.zones.buffers.record import (
    RESPONSE,
    WHOLE_EVERY,
    ZONE,
    BufferRecord,
    has_held,
    name_of,
    read,
    record_of,
    since_whole,
    text_of,
)
from watchroom.zones.buffers.sources import FLUSH, Bound, KnownSource, Places, openers, versions_of
from watchroom.zones.store import Store

MOST_OPEN: Final = 8
"""So many buffers an agent may have open: each brings its tools, and is shown before each question."""
LONGEST_NAME: Final = 24
_NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{LONGEST_NAME - 1}}}", re.ASCII)
_NOT_OF_NAMES: Final = re.compile("[^a-z0-9_-]+")
_MOST_HELD: Final = 32

Operation: TypeAlias = Callable[[TextEditor, DataSourceBinding], TextEditResponse]
"""What a tool does with a buffer."""


class Acted(NamedTuple):
    """The answer to what was done to a buffer, and how the buffer stands to its source, empty if both are the
    same (spec 4 §5.3)."""

    response: TextEditResponse
    notice: str


class OpenedBuffer(NamedTuple):
    """An open buffer: what its newest row says, and how it stands."""

    name: str
    row: Row
    record: BufferRecord
    editing: WorkflowState
    syncing: WorkflowState
    text: str

    @property
    def source(self) -> str:
        return self.record.source


@dataclass(slots=True)
class _Held:
    row: Row
    record: BufferRecord
    editor: TextEditor
    binding: DataSourceBinding
    since_whole: int
    changed: list[ContentChanged]


class _Elsewhere(Exception):
    """The buffer, or what it is opened from, has another newest version by now."""


class Buffers:
    """May be used from any thread. What a source refuses comes back as an answer, or as `WatchroomError`."""

    def __init__(self, store: Store, places: Places) -> None:
        self._store = store
        self._places = places
        self._held: OrderedDict[tuple[str, Language], _Held] = OrderedDict()
        self._locks: dict[str, RLock] = {}
        self._lock = Lock()

    def open(
        self,
        actor: str,
        zone: str,
        path: str,
        name: str = "",
        *,
        tool: str,
        reserved: Collection[str] = (),
    ) -> Row:
        """Open a source, or find the buffer that has it open. Without a ``name`` it gets that of its file;
        ``reserved`` are names that no tool of it may have. Raises `BufferTaken`, `TooManyBuffers`,
        `InvalidBuffer`, and what the source raises."""
        if name:
            _check_name(name, reserved)
        bound = openers()[zone](self._places, actor, path)
        while True:
            found = self._that_has(actor, bound, name)
            if found is not None:
                shown = Note(
                    actor, tool, ZONE, found.path, message=bound.place, base=found.version, durable=False
                )
                return self._store.committer.commit(shown).row
            base = bound.source.read()
            with suppress(_Elsewhere), self._store.committer.exclusively() as commit:
                if self._that_has(actor, bound, name) is None:
                    return commit(self._begin(actor, bound, base, name, tool, reserved)).row

    def find(self, actor: str, name: str, *, language: Language = "en") -> OpenedBuffer:
        """An open buffer as it stands to its source now. Raises `BufferNotFound`, and what the source
        raises."""
        with self._turn(f"{actor}/{name}"):
            held = self._hold(actor, name, language)
            held.binding.update()
            return _opened(held)

    def is_open(self, actor: str, name: str) -> bool:
        """Whether the agent has an open buffer of that name, whatever is given as one."""
        return self.source_of(actor, name) is not None

    def source_of(self, actor: str, name: str) -> Zone | None:
        """The zone of what a buffer is of; None if the agent has no open one of that name."""
        head = self._store.journal.head(ZONE, f"{actor}/{name}") if _NAME.fullmatch(name) else None
        record = record_of(head) if head else None
        return record.zone if record else None

    def tools(self, actor: str, language: Language = "en") -> list[tuple[str, BufferTool]]:
        """The tools of an agent's open buffers, as their states allow them (spec 4 §5.4), by name."""
        found: list[tuple[str, BufferTool]] = []
        with self._hold_all(actor, sorted(self.open_names(actor)), language) as held:
            buffers = [OpenBuffer(each.editor, each.binding) for each in held]
            first_pass(buffers)
            for each in held:
                name, state = each.editor.name, each.editor.state
                found += [(name, tool) for tool in visible_edit_tools(state)]
                found += [(name, tool) for tool in visible_sync_tools(each.binding.state)]
        return found

    def open_names(self, actor: str) -> list[str]:
        """The names of an agent's open buffers, the one that was touched last first."""
        return [name_of(row) for row in self._rows(actor)]

    def frames(self, actor: str, *, only: str = "", language: Language = "en") -> tuple[Frame, ...]:
        """Both passes over an agent's buffers, or ``only`` that one (spec 4 §7.2): what its model is shown of
        each, and the tools that it has for it. The one that was touched last comes first. Raises
        `BufferNotFound` if ``only`` that one is not open."""
        found = [only] if only else self.open_names(actor)
        with self._hold_all(actor, found, language) as held:
            if only and not held:
                raise BufferNotFound(buffer=only, known=self._known(actor))
            return frames([OpenBuffer(each.editor, each.binding) for each in held], language)

    def act(
        self,
        actor: str,
        name: str,
        operation: Operation,
        *,
        tool: str,
        arguments: Mapping[str, Json],
        language: Language = "en",
    ) -> Acted:
        """Do something to a buffer, and make it a row: a version where anything changed, else a note.
        Raises `BufferNotFound`, and what the source raises."""
        with self._turn(f"{actor}/{name}"):
            while True:
                held = self._hold(actor, name, language)
                held.changed.clear()
                try:
                    response = operation(held.editor, held.binding)
                    self._check_whose_conflict(held, actor, response)
                    self._keep(held, actor, tool, response, arguments)
                except _Elsewhere:
                    self._forget(held.row.path)
                except BaseException:
                    # What stands in memory may be no row.
                    self._forget(held.row.path)
                    raise
                else:
                    return Acted(response, _noticed(held.binding))

    def close(self, actor: str, name: str, *, tool: str, discard: bool = False) -> Row:
        """Close a buffer; its text stays in its rows. Raises `BufferNotFound`, `BufferUnflushed`."""
        with self._turn(f"{actor}/{name}"):
            while True:
                held = self._hold(actor, name, "en")
                if held.binding.is_changed and not discard:
                    raise BufferUnflushed(buffer=name)
                with suppress(_Elsewhere):
                    row = self._commit(held.row, Write(actor, tool, ZONE, held.row.path, None))
                    self._forget(row.path)
                    return row

    @contextmanager
    def _hold_all(self, actor: str, found: list[str], language: Language) -> Iterator[list[_Held]]:
        with ExitStack() as turns:
            for name in sorted(found):
                turns.enter_context(self._turn(f"{actor}/{name}"))
            held: list[_Held] = []
            for name in found:
                # Another process may close one in between.
                with suppress(BufferNotFound):
                    held.append(self._hold(actor, name, language))
            yield held

    def _rows(self, actor: str) -> list[Row]:
        """The newest rows of an agent's open buffers, newest first."""
        heads = self._store.journal.heads(ZONE, f"{actor}/")
        return sorted((row for row in heads if not row.deleted), key=lambda row: -row.seq)

    def _that_has(self, actor: str, bound: Bound, name: str) -> Row | None:
        """The agent's buffer that has the source open, None if it may open one more by that name."""
        open_now = {name_of(row): row for row in self._rows(actor)}
        for known, row in open_now.items():
            record = record_of(row)
            if record is not None and (record.zone, record.path) == (bound.zone, bound.path):
                if name not in ("", known):
                    raise BufferTaken(buffer=known, source=bound.place)
                return row
            if known == name and record is not None:
                raise BufferTaken(buffer=name, source=record.source)
        if len(open_now) >= MOST_OPEN:
            raise TooManyBuffers(most=MOST_OPEN, known=", ".join(sorted(open_now)))
        return None

    def _begin(
        self, actor: str, bound: Bound, base: Sourced, name: str, tool: str, reserved: Collection[str]
    ) -> Write:
        """The first version of a buffer, made while nobody else writes. Raises `_Elsewhere` if the source
        has moved on since it was read."""
        journal = self._store.journal
        if versions_of(journal.head(bound.zone, bound.path)) != base.version:
            raise _Elsewhere
        path = f"{actor}/{name or _free_name(bound.path, self.open_names(actor), reserved)}"
        version = versions_of(journal.head(ZONE, path))
        record = BufferRecord(
            bound.zone,
            bound.path,
            base.version,
            len(base.text),
            edition=1,
            is_changed=False,
            is_whole=True,
            opened=version + 1,
        )
        return Write(actor, tool, ZONE, path, base.text, bound.place, version, record.detail())

    def _hold(self, actor: str, name: str, language: Language) -> _Held:
        path = f"{actor}/{name}"
        head = self._newest(actor, path) if _NAME.fullmatch(name) else None
        if head is None:
            raise BufferNotFound(buffer=names.storable(name, 100), known=self._known(actor))
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
            with suppress(_Elsewhere):
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
            opened=None,
            is_changed=text != journal.content(written.seq),
            is_whole=is_whole,
            marks=None,
            at=None,
            removed=None,
        )
        content = text if is_whole else ""
        draft = Write(written.actor, FLUSH, ZONE, head.path, content, written.message, detail=after.detail())
        self._commit(head, draft)

    def _known(self, actor: str) -> str:
        return ", ".join(sorted(self.open_names(actor))) or "-"

    def _rebuilt(self, actor: str, name: str, head: Row, language: Language) -> _Held:
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
            base=Sourced(found.base, record.base),
            marks_of_others=record.marks,
        )
        held = _Held(head, record, editor, binding, since_whole(journal, head), [])
        editor.subscribe(held.changed.append)
        return held

    def _check_whose_conflict(self, held: _Held, actor: str, response: TextEditResponse) -> None:
        """Raises `_Elsewhere` where it was a flush of the same buffer that came first."""
        if response.status is TextEditStatus.EXTERNAL_CONFLICT:
            newest = self._newest(actor, held.row.path)
            if newest is None or newest.seq != held.row.seq:
                raise _Elsewhere

    def _keep(
        self,
        held: _Held,
        actor: str,
        tool: str,
        response: TextEditResponse,
        arguments: Mapping[str, Json],
    ) -> None:
        """Make what was done a row."""
        record, editor, binding = held.record, held.editor, held.binding
        answer: dict[str, Json] = {
            RESPONSE: response.model_dump(mode="json", exclude_defaults=True, exclude={"diff"})
        }
        message = names.storable(response.summary.partition("\n")[0], 200)
        is_pending = editor.selections is not None
        sought = response.status is TextEditStatus.MULTI_MATCH
        moved = binding.base.version != record.base
        if not (held.changed or sought or moved or is_pending != (record.pending is not None)):
            is_reading = response.diff is not None
            given = None if is_reading else names.storable(_written(arguments), MAX_TEXT_BYTES // 4)
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
            self._store.committer.commit(draft)
            return
        after = record._replace(
            base=binding.base.version,
            opened=None if moved else record.opened,
            length=len(editor.snapshot()),
            edition=editor.version,
            is_changed=binding.is_changed,
            is_whole=False,
            marks=binding.marks_of_others,
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
        detail = {**after.detail(), **answer}
        row = self._commit(held.row, Write(actor, tool, ZONE, held.row.path, content, message, detail=detail))
        held.row, held.record = row, after
        held.since_whole = 0 if after.is_whole else held.since_whole + 1

    def _commit(self, newest: Row, draft: Write) -> Row:
        """Make the buffer's next version. Raises `_Elsewhere` if it has another newest one by now."""
        with self._store.committer.exclusively() as commit:
            head = self._store.journal.head(ZONE, draft.path)
            if head is None or head.seq != newest.seq:
                raise _Elsewhere
            return commit(draft._replace(expected=head.version or 0)).row

    def _forget(self, path: str) -> None:
        with self._lock:
            for key in [key for key in self._held if key[0] == path]:
                del self._held[key]

    @contextmanager
    def _turn(self, place: str) -> Iterator[None]:
        """One thread at a time."""
        with self._lock:
            turn = self._locks.setdefault(place, RLock())
        with turn:
            yield


def _opened(held: _Held) -> OpenedBuffer:
    return OpenedBuffer(
        name_of(held.row),
        held.row,
        held.record,
        held.editor.state,
        held.binding.state,
        held.editor.snapshot(),
    )


def _noticed(binding: DataSourceBinding) -> str:
    """How the buffer stands to its source as that is now; empty if both are the same."""
    try:
        binding.update()
    except WatchroomError as problem:
        return binding.notice(problem)
    return "" if binding.state is WorkflowState.SYNCED else binding.notice()


def _outcome(response: TextEditResponse) -> Outcome:
    return "ok" if response.is_done else "failed"


def _written(arguments: Mapping[str, Json]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _check_name(name: str, reserved: Collection[str]) -> None:
    shown = names.storable(name, 100)
    if not _NAME.fullmatch(name):
        raise InvalidBuffer(given=shown, rule="buffer_characters")
    if _is_reserved(name, reserved):
        raise InvalidBuffer(given=shown, rule="reserved")


def _is_reserved(name: str, reserved: Collection[str]) -> bool:
    return any(tool_name(name, tool) in reserved for tool in (*EDIT_TOOLS, *SYNC_TOOLS))


def _free_name(path: str, taken: Collection[str], reserved: Collection[str]) -> str:
    """A name for a buffer, from that of its file."""
    stem = path.rpartition("/")[2].partition(".")[0].lower()
    stem = _NOT_OF_NAMES.sub("-", stem).strip("-_")[: LONGEST_NAME - 3].strip("-_") or "text"
    name, number = stem, 1
    while name in taken or _is_reserved(name, reserved):
        number += 1
        name = f"{stem}-{number}"
    return name
