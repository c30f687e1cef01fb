"""The zone of buffers: each change that an agent makes to one of its buffers is a version (EDIT).

A buffer's path is ``AGENT/NAME``. Its first version creates it, one without content closes it. Memory
contains only what the rows say: another process continues from them."""

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
from watchroom.rules.buffers import ZONE, BufferRecord, buffer_name, parse_record
from watchroom.texts import Language
from watchroom.zones.buffers.buffer_store import BufferStore, LoadedBuffer, StaleBufferError
from watchroom.zones.buffers.errors import BufferNotFound, BufferTaken, BufferUnflushed, TooManyBuffers
from watchroom.zones.buffers.naming import check_name, generate_name, is_valid_name
from watchroom.zones.buffers.sources import BoundSource, SourceZones, source_openers, version_of
from watchroom.zones.buffers.tracing import trace_operation
from watchroom.zones.store import Store

MOST_OPEN: Final = 8
"""So many buffers an agent may have open: each brings its tools, and is shown before each question."""

Operation: TypeAlias = Callable[[TextEditor, DataSourceBinding], TextEditResponse]
"""What a tool does with a buffer."""


class OperationOutcome(NamedTuple):
    """The ``response`` to an operation, a ``notice`` of how the buffer relates to its source (empty if they
    are equal, EDIT-5.3), and the id of the ``operation``, which its rows contain."""

    response: TextEditResponse
    notice: str
    operation: str
    """The id that the rows of it carry."""


class BufferState(NamedTuple):
    """An open buffer: its ``name``, its newest ``row`` and its ``record``, the states of its editor and its
    binding, and its ``text``."""

    name: str
    row: Row
    record: BufferRecord
    editing: WorkflowState
    syncing: WorkflowState
    text: str


class BufferZone:
    """The buffers of all agents. May be used from any thread. ``store`` holds the rows, ``zones`` the
    sources. A failure of a source is a response, or a `WatchroomError`."""

    def __init__(self, store: Store, zones: SourceZones) -> None:
        self._store = store
        self._zones = zones
        self._buffers = BufferStore(store, zones)
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
        """Open the source at ``path`` of ``zone`` for ``actor``, or find the buffer that has it open; returns
        the row of that by ``tool``. Without a ``name`` the buffer gets that of its file; none of its tools
        may be among ``reserved``. Raises `BufferTaken`, `TooManyBuffers`, `InvalidBuffer`, and what the
        source raises."""
        if name:
            check_name(name, reserved)
        bound = source_openers()[zone](self._zones, actor, path)
        while True:
            found = self._find_open(actor, bound, name)
            if found is not None:
                shown = Note(
                    actor, tool, ZONE, found.path, message=bound.label, base=found.version, durable=False
                )
                return self._store.commits.commit(shown).row
            base = bound.source.read()
            with suppress(StaleBufferError), self._store.journal.exclusive(f"buffer/{actor}"):
                if self._find_open(actor, bound, name) is None:
                    draft = self._first_version(actor, bound, base, name, tool, reserved)
                    return self._store.commits.commit(draft).row

    def find(self, actor: str, name: str, *, language: Language = "en") -> BufferState:
        """The open buffer ``name`` of ``actor`` as it relates to its source now, with texts in ``language``.
        Raises `BufferNotFound`, and what the source raises."""
        with self._lock_of(f"{actor}/{name}"):
            loaded = self._load(actor, name, language)
            loaded.binding.update()
            return _to_view(loaded)

    def is_open(self, actor: str, name: str) -> bool:
        """Whether ``actor`` has an open buffer ``name``, which may be any text."""
        return self.source_of(actor, name) is not None

    def source_of(self, actor: str, name: str) -> tuple[Zone, str] | None:
        """The zone and the path of the source of the buffer ``name`` of ``actor``; None if there is no such
        open buffer."""
        head = self._store.journal.head(ZONE, f"{actor}/{name}") if is_valid_name(name) else None
        record = parse_record(head) if head else None
        return (record.zone, record.path) if record else None

    def tools(self, actor: str, language: Language = "en") -> list[tuple[str, BufferTool]]:
        """The tools of the open buffers of ``actor``, as their states allow them (EDIT-5.4), each with the
        buffer's name, in order of name. ``language`` is that of later responses."""
        found: list[tuple[str, BufferTool]] = []
        with self._load_all(actor, sorted(self.open_names(actor)), language) as loaded:
            buffers = [BoundEditor(each.editor, each.binding) for each in loaded]
            refresh_buffers(buffers)
            for each in loaded:
                name, state = each.editor.name, each.editor.state
                found += [(name, tool) for tool in visible_edit_tools(state)]
                found += [(name, tool) for tool in visible_sync_tools(each.binding.state)]
        return found

    def open_names(self, actor: str) -> list[str]:
        """The names of the open buffers of ``actor``, the one with the newest row first."""
        return [buffer_name(row) for row in self._open_rows(actor)]

    def frames(self, actor: str, *, only: str = "", language: Language = "en") -> tuple[Frame, ...]:
        """Both passes over the buffers of ``actor``, or over the one named ``only`` (EDIT-7.2): what its
        model is shown of each in ``language``, and the tools that it has for it, the one with the newest row
        first. Raises `BufferNotFound` if ``only`` is not open."""
        found = [only] if only else self.open_names(actor)
        with self._load_all(actor, found, language) as loaded:
            if only and not loaded:
                loaded = [self._load(actor, only, language)]
            return build_frames([BoundEditor(each.editor, each.binding) for each in loaded], language)

    def apply_operation(
        self,
        actor: str,
        name: str,
        operation: Operation,
        *,
        tool: str,
        arguments: Mapping[str, Json],
        language: Language = "en",
    ) -> OperationOutcome:
        """Apply ``operation``, that of ``tool`` with these ``arguments``, to the buffer ``name`` of
        ``actor``, and commit it: as a version where anything changed, else as a note. The response is in
        ``language``. Raises `BufferNotFound`, and what the source raises."""
        with self._lock_of(f"{actor}/{name}"), call_context.operation_scope() as identity:
            while True:
                loaded = self._load(actor, name, language)
                loaded.changed.clear()
                response: TextEditResponse | None = None
                began = time.perf_counter()
                try:
                    response = operation(loaded.editor, loaded.binding)
                    self._buffers.commit_operation(loaded, actor, tool, response, arguments)
                except StaleBufferError:
                    self._buffers.evict(loaded.row.path)
                    if response is not None and response.code == FLUSHED:
                        # Text that another process inserted meanwhile is not flushed with it.
                        return OperationOutcome(
                            response, _describe_state(self._load(actor, name, language).binding), identity
                        )
                except BaseException:
                    self._buffers.evict(loaded.row.path)
                    raise
                else:
                    seconds = time.perf_counter() - began
                    trace_operation(loaded, tool, identity, response, arguments, seconds)
                    return OperationOutcome(response, _describe_state(loaded.binding), identity)

    def close(self, actor: str, name: str, *, tool: str, discard: bool = False) -> Row:
        """Close the buffer ``name`` of ``actor`` by ``tool``; its text stays in its rows. With ``discard``
        unflushed changes are given up. Raises `BufferNotFound`, `BufferUnflushed`."""
        with self._lock_of(f"{actor}/{name}"):
            while True:
                loaded = self._load(actor, name, "en")
                if loaded.binding.is_changed and not discard:
                    raise BufferUnflushed(buffer=name)
                with suppress(StaleBufferError):
                    row = self._buffers.commit_version(
                        loaded.row, Write(actor, tool, ZONE, loaded.row.path, None)
                    )
                    self._buffers.evict(row.path)
                    return row

    @contextmanager
    def _load_all(self, actor: str, found: list[str], language: Language) -> Iterator[list[LoadedBuffer]]:
        with ExitStack() as locks:
            for name in sorted(found):
                locks.enter_context(self._lock_of(f"{actor}/{name}"))
            loaded: list[LoadedBuffer] = []
            for name in found:
                # Another process may close one meanwhile. A damaged one must not hide the others.
                with suppress(BufferNotFound, JournalDamaged):
                    loaded.append(self._load(actor, name, language))
            yield loaded

    def _open_rows(self, actor: str) -> list[Row]:
        """The newest rows of an agent's open buffers, newest first."""
        return sorted(self._store.journal.open_items(ZONE, actor), key=lambda row: -row.seq)

    def _find_open(self, actor: str, bound: BoundSource, name: str) -> Row | None:
        """The agent's buffer that has the source open, None if it may open one more by that name."""
        open_now = {buffer_name(row): row for row in self._open_rows(actor)}
        for known, row in open_now.items():
            try:
                record = parse_record(row)
            except JournalDamaged:
                if known == name:
                    raise
                continue
            if record is not None and (record.zone, record.path) == (bound.zone, bound.path):
                if name not in ("", known):
                    raise BufferTaken(buffer=known, source=bound.label)
                return row
            if known == name and record is not None:
                raise BufferTaken(buffer=name, source=record.source)
        if len(open_now) >= MOST_OPEN:
            raise TooManyBuffers(most=MOST_OPEN, known=", ".join(sorted(open_now)))
        return None

    def _first_version(
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
        if version_of(journal.head(bound.zone, bound.path)) != base.version:
            raise StaleBufferError
        path = f"{actor}/{name or generate_name(bound.path, self.open_names(actor), reserved)}"
        version = version_of(journal.head(ZONE, path))
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
        return Write(actor, tool, ZONE, path, base.text, bound.label, version, record.detail())

    def _load(self, actor: str, name: str, language: Language) -> LoadedBuffer:
        loaded = self._buffers.load(actor, name, language)
        if loaded is None:
            raise BufferNotFound(
                buffer=validation.escape_unstorable(name, 100), known=self._known_names(actor)
            )
        return loaded

    def _known_names(self, actor: str) -> str:
        return ", ".join(sorted(self.open_names(actor))) or "-"

    @contextmanager
    def _lock_of(self, place: str) -> Iterator[None]:
        """One thread at a time."""
        with self._lock:
            lock = self._locks.setdefault(place, RLock())
        with lock:
            yield


def _to_view(loaded: LoadedBuffer) -> BufferState:
    return BufferState(
        buffer_name(loaded.row),
        loaded.row,
        loaded.record,
        loaded.editor.state,
        loaded.binding.state,
        loaded.editor.snapshot(),
    )


def _describe_state(binding: DataSourceBinding) -> str:
    """How the buffer stands to its source as that is now; empty if both are the same."""
    try:
        binding.update()
    except WatchroomError as problem:
        return binding.notice(problem)
    return "" if binding.state is WorkflowState.SYNCED else binding.notice()
