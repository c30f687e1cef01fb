"""The buffers' zone: what an agent does to its buffers, each change of theirs one version (spec 4).

A buffer's path is ``AGENT/NAME``. It is made by its first version and closed by one without content. What is
kept in memory is only what the rows say: whichever process comes next goes on from them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock, RLock
from typing import Final, NamedTuple, TypeAlias

from watchroom import call_context, validation
from watchroom.editing import (
    FLUSHED,
    BoundEditor,
    BufferTool,
    DataSourceBinding,
    Frame,
    SourceText,
    TextEditor,
    TextEditResponse,
    WorkflowState,
    build_frames,
    refresh_buffers,
    visible_edit_tools,
    visible_sync_tools,
)
from watchroom.errors import JournalDamaged, WatchroomError
from watchroom.model import Json, Note, Row, Write, Zone
from watchroom.texts import Language
from watchroom.zones.buffers.buffer_store import BufferStore, LoadedBuffer, StaleBufferError
from watchroom.zones.buffers.errors import BufferNotFound, BufferTaken, BufferUnflushed, TooManyBuffers
from watchroom.zones.buffers.naming import can_be_name, check_name, free_name
from watchroom.zones.buffers.record import ZONE, BufferRecord, name_of, record_of
from watchroom.zones.buffers.sources import BoundSource, SourceZones, openers, versions_of
from watchroom.zones.buffers.tracing import trace_operation
from watchroom.zones.store import Store

MOST_OPEN: Final = 8
"""So many buffers an agent may have open: each brings its tools, and is shown before each question."""

Operation: TypeAlias = Callable[[TextEditor, DataSourceBinding], TextEditResponse]
"""What a tool does with a buffer."""


class OperationOutcome(NamedTuple):
    """The answer to what was done to a buffer, and how the buffer stands to its source, empty if both are the
    same (spec 4 §5.3)."""

    response: TextEditResponse
    notice: str
    operation: str
    """The id that the rows of it carry."""


class BufferView(NamedTuple):
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


class BufferZone:
    """May be used from any thread. What a source refuses comes back as an answer, or as `WatchroomError`."""

    def __init__(self, store: Store, places: SourceZones) -> None:
        self._store = store
        self._places = places
        self._buffers = BufferStore(store, places)
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
            check_name(name, reserved)
        bound = openers()[zone](self._places, actor, path)
        while True:
            found = self._that_has(actor, bound, name)
            if found is not None:
                shown = Note(
                    actor, tool, ZONE, found.path, message=bound.place, base=found.version, durable=False
                )
                return self._store.commits.commit(shown).row
            base = bound.source.read()
            with suppress(StaleBufferError), self._store.journal.exclusive(f"buffer/{actor}"):
                if self._that_has(actor, bound, name) is None:
                    return self._store.commits.commit(
                        self._begin(actor, bound, base, name, tool, reserved)
                    ).row

    def find(self, actor: str, name: str, *, language: Language = "en") -> BufferView:
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
        head = self._store.journal.head(ZONE, f"{actor}/{name}") if can_be_name(name) else None
        record = record_of(head) if head else None
        return record.zone if record else None

    def tools(self, actor: str, language: Language = "en") -> list[tuple[str, BufferTool]]:
        """The tools of an agent's open buffers, as their states allow them (spec 4 §5.4), by name."""
        found: list[tuple[str, BufferTool]] = []
        with self._hold_all(actor, sorted(self.open_names(actor)), language) as held:
            buffers = [BoundEditor(each.editor, each.binding) for each in held]
            refresh_buffers(buffers)
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
                held = [self._hold(actor, only, language)]
            return build_frames([BoundEditor(each.editor, each.binding) for each in held], language)

    def act(
        self,
        actor: str,
        name: str,
        operation: Operation,
        *,
        tool: str,
        arguments: Mapping[str, Json],
        language: Language = "en",
    ) -> OperationOutcome:
        """Do something to a buffer, and make it a row: a version where anything changed, else a note.
        Raises `BufferNotFound`, and what the source raises."""
        with self._turn(f"{actor}/{name}"), call_context.operation_scope() as identity:
            while True:
                held = self._hold(actor, name, language)
                held.changed.clear()
                response: TextEditResponse | None = None
                began = time.perf_counter()
                try:
                    response = operation(held.editor, held.binding)
                    self._buffers.keep(held, actor, tool, response, arguments)
                except StaleBufferError:
                    self._buffers.forget(held.row.path)
                    if response is not None and response.code == FLUSHED:
                        # What was put in by another process meanwhile is not flushed with it.
                        return OperationOutcome(
                            response, _noticed(self._hold(actor, name, language).binding), identity
                        )
                except BaseException:
                    self._buffers.forget(held.row.path)
                    raise
                else:
                    seconds = time.perf_counter() - began
                    trace_operation(held, tool, identity, response, arguments, seconds)
                    return OperationOutcome(response, _noticed(held.binding), identity)

    def close(self, actor: str, name: str, *, tool: str, discard: bool = False) -> Row:
        """Close a buffer; its text stays in its rows. Raises `BufferNotFound`, `BufferUnflushed`."""
        with self._turn(f"{actor}/{name}"):
            while True:
                held = self._hold(actor, name, "en")
                if held.binding.is_changed and not discard:
                    raise BufferUnflushed(buffer=name)
                with suppress(StaleBufferError):
                    row = self._buffers.commit(held.row, Write(actor, tool, ZONE, held.row.path, None))
                    self._buffers.forget(row.path)
                    return row

    @contextmanager
    def _hold_all(self, actor: str, found: list[str], language: Language) -> Iterator[list[LoadedBuffer]]:
        with ExitStack() as turns:
            for name in sorted(found):
                turns.enter_context(self._turn(f"{actor}/{name}"))
            held: list[LoadedBuffer] = []
            for name in found:
                # Another process may close one in between. One that is damaged must not hide the others.
                with suppress(BufferNotFound, JournalDamaged):
                    held.append(self._hold(actor, name, language))
            yield held

    def _rows(self, actor: str) -> list[Row]:
        """The newest rows of an agent's open buffers, newest first."""
        return sorted(self._store.journal.open_items(ZONE, actor), key=lambda row: -row.seq)

    def _that_has(self, actor: str, bound: BoundSource, name: str) -> Row | None:
        """The agent's buffer that has the source open, None if it may open one more by that name."""
        open_now = {name_of(row): row for row in self._rows(actor)}
        for known, row in open_now.items():
            try:
                record = record_of(row)
            except JournalDamaged:
                if known == name:
                    raise
                continue
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
        self,
        actor: str,
        bound: BoundSource,
        base: SourceText,
        name: str,
        tool: str,
        reserved: Collection[str],
    ) -> Write:
        """The first version of a buffer, made while nobody else writes. Raises `StaleBufferError` if
        the source has moved on since it was read."""
        journal = self._store.journal
        if versions_of(journal.head(bound.zone, bound.path)) != base.version:
            raise StaleBufferError
        path = f"{actor}/{name or free_name(bound.path, self.open_names(actor), reserved)}"
        version = versions_of(journal.head(ZONE, path))
        record = BufferRecord(
            bound.zone,
            bound.path,
            base.version,
            len(base.text),
            edition=1,
            is_changed=False,
            is_whole=True,
            edit=base.edit or None,
            opened=version + 1,
        )
        return Write(actor, tool, ZONE, path, base.text, bound.place, version, record.detail())

    def _hold(self, actor: str, name: str, language: Language) -> LoadedBuffer:
        held = self._buffers.take(actor, name, language)
        if held is None:
            raise BufferNotFound(buffer=validation.escape_unstorable(name, 100), known=self._known(actor))
        return held

    def _known(self, actor: str) -> str:
        return ", ".join(sorted(self.open_names(actor))) or "-"

    @contextmanager
    def _turn(self, place: str) -> Iterator[None]:
        """One thread at a time."""
        with self._lock:
            turn = self._locks.setdefault(place, RLock())
        with turn:
            yield


def _opened(held: LoadedBuffer) -> BufferView:
    return BufferView(
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
