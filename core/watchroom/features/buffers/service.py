"""The buffers of agents: open, edit, show and close them (EDIT).

A buffer's path is ``AGENT/NAME``. Its first version creates it, and a version without content closes it.
Memory contains nothing that is not in rows, so another process can continue.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import Lock, RLock
from typing import Final, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.algorithms.editing import (
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
from watchroom.errors import (
    BufferNotFound,
    BufferTaken,
    BufferUnflushed,
    JournalDamaged,
    JournalError,
    TooManyBuffers,
    WatchroomError,
)
from watchroom.features.buffers.buffer_store import BufferStore, LoadedBuffer, StaleBufferError
from watchroom.features.buffers.rows import ZONE, BufferRecord, buffer_name, parse_record
from watchroom.features.buffers.rules import check_name, generate_name, is_valid_name
from watchroom.features.buffers.sources import BoundSource, SourceServices, source_openers, version_of
from watchroom.features.buffers.tracing import trace_operation
from watchroom.features.config.store import Store
from watchroom.kernel.call_context import CallContext
from watchroom.model import Json, Row, Write, Zone
from watchroom.texts import Language

MAX_OPEN: Final = 8
"""Maximum number of open buffers of an agent. Each adds tools, and is shown before each request to the
model."""

_log = logging.getLogger("watchroom")
Operation: TypeAlias = Callable[[TextEditor, DataSourceBinding], TextEditResponse]
"""An operation of a tool on a buffer."""


class OperationOutcome(NamedTuple):
    """The result of an operation.

    - ``response``: the response to the agent.
    - ``notice``: a text about the difference between the buffer and its source, empty if they are equal
      (EDIT-5.3).
    - ``operation``: the id of the operation, which its rows contain.
    """

    response: TextEditResponse
    notice: str
    operation: str


class BufferState(NamedTuple):
    """An open buffer: its ``name``, newest ``row``, ``record`` and ``text``, and the states of its editor and
    its binding."""

    name: str
    row: Row
    record: BufferRecord
    editing: WorkflowState
    syncing: WorkflowState
    text: str


class Buffers:
    """The buffers of all agents. May be used from any thread.

    A failure of a source becomes a response, or a `WatchroomError`.

    - ``store``: the journal.
    - ``services``: read and write the sources.
    """

    def __init__(self, store: Store, services: SourceServices) -> None:
        self._store = store
        self._services = services
        self._buffers = BufferStore(store, services)
        self._locks: dict[str, RLock] = {}
        self._lock = Lock()

    def open(
        self,
        call: CallContext,
        zone: str,
        path: str,
        name: str = "",
        *,
        reserved: Collection[str] = (),
    ) -> Row:
        """Open a buffer on the source at ``path`` of ``zone``, or find the caller's open buffer on it.

        - ``name``: the name of the buffer; default: made from the file's name.
        - ``reserved``: names that the buffer's tools cannot have.

        Return the row that opened the buffer. Raise `BufferTaken`, `TooManyBuffers`, `InvalidBuffer`, and the
        errors of the source.
        """
        actor = call.actor
        if name:
            check_name(name, reserved)
        bound = source_openers()[zone](self._services, call, path)
        while True:
            found = self._find_open(actor, bound, name)
            if found is not None:
                shown = call.note(ZONE, found.path, message=bound.label, base=found.version, durable=False)
                return self._store.commits.commit(shown).row
            base = bound.source.read()
            with suppress(StaleBufferError), self._store.journal.exclusive(f"buffer/{actor}"):
                if self._find_open(actor, bound, name) is None:
                    draft = self._first_version(call, bound, base, name, reserved)
                    return self._store.commits.commit(draft).row

    def find(self, call: CallContext, name: str, *, language: Language = "en") -> BufferState:
        """Return the state of the caller's open buffer ``name``, compared with its current source. Texts are
        in ``language``. Raise `BufferNotFound`, and the errors of the source."""
        with self._lock_of(f"{call.actor}/{name}"):
            loaded = self._load(call, name, language)
            loaded.binding.update()
            return _to_view(loaded)

    def is_open(self, actor: str, name: str) -> bool:
        """Return whether ``actor`` has an open buffer ``name``. The name can be any text."""
        return self.source_of(actor, name) is not None

    def source_of(self, actor: str, name: str) -> tuple[Zone, str] | None:
        """Return the zone and the path of the source of the buffer ``name`` of ``actor``, None if there is no
        such open buffer."""
        head = self._store.journal.head(ZONE, f"{actor}/{name}") if is_valid_name(name) else None
        record = parse_record(head) if head else None
        return (record.zone, record.path) if record else None

    def tools(self, call: CallContext, language: Language = "en") -> list[tuple[str, BufferTool]]:
        """Return the tools that the states of the caller's open buffers allow (EDIT-5.4), each with the
        buffer's name, sorted by name.

        ``language``: the language of later responses.
        """
        found: list[tuple[str, BufferTool]] = []
        with self._load_all(call, sorted(self.open_names(call.actor)), language) as loaded:
            buffers = [BoundEditor(each.editor, each.binding) for each in loaded]
            refresh_buffers(buffers)
            for each in loaded:
                name, state = each.editor.name, each.editor.state
                found += [(name, tool) for tool in visible_edit_tools(state)]
                found += [(name, tool) for tool in visible_sync_tools(each.binding.state)]
        return found

    def open_names(self, actor: str) -> list[str]:
        """Return the names of the open buffers of ``actor``, most recently changed first."""
        return [buffer_name(row) for row in self._open_rows(actor)]

    def frames(self, call: CallContext, *, only: str = "", language: Language = "en") -> tuple[Frame, ...]:
        """Return the open buffers and their tools in the form for the caller's model (EDIT-7.2), most
        recently changed first.

        - ``only``: the name of one buffer; default: all.
        - ``language``: the language of the texts.

        Raise `BufferNotFound` if ``only`` is not open.
        """
        found = [only] if only else self.open_names(call.actor)
        with self._load_all(call, found, language) as loaded:
            if only and not loaded:
                loaded = [self._load(call, only, language)]
            return build_frames([BoundEditor(each.editor, each.binding) for each in loaded], language)

    def apply_operation(
        self,
        call: CallContext,
        name: str,
        operation: Operation,
        *,
        arguments: Mapping[str, Json],
        language: Language = "en",
    ) -> OperationOutcome:
        """Apply ``operation`` to the caller's buffer ``name``, and commit it as a version, or as a note if
        nothing changed.

        - ``arguments``: the arguments of the call, for the row.
        - ``language``: the language of the response.

        Raise `BufferNotFound`, and the errors of the source.
        """
        identity = secrets.token_hex(6)
        call = replace(call, operation=identity)
        with self._lock_of(f"{call.actor}/{name}"):
            while True:
                loaded = self._load(call, name, language)
                loaded.changed.clear()
                response: TextEditResponse | None = None
                began = time.perf_counter()
                try:
                    response = operation(loaded.editor, loaded.binding)
                    self._buffers.commit_operation(loaded, call, response, arguments)
                except StaleBufferError:
                    self._buffers.evict(loaded.row.path)
                    if response is not None and response.code == FLUSHED:
                        # Do not flush text that another process has inserted since.
                        return OperationOutcome(
                            response, _describe_state(self._load(call, name, language).binding), identity
                        )
                except JournalError:
                    self._buffers.evict(loaded.row.path)
                    if response is None or response.code != FLUSHED:
                        raise
                    # The source has the text. The next call on the buffer records the flush.
                    _log.exception("the flush of the buffer %s is recorded later", loaded.row.path)
                    return OperationOutcome(response, _describe_state(loaded.binding), identity)
                except BaseException:
                    self._buffers.evict(loaded.row.path)
                    raise
                else:
                    seconds = time.perf_counter() - began
                    trace_operation(loaded, call, response, arguments, seconds)
                    return OperationOutcome(response, _describe_state(loaded.binding), identity)

    def close(self, call: CallContext, name: str, *, discard: bool = False) -> Row:
        """Close the caller's buffer ``name``. Its text stays in its rows.

        ``discard``: discard unflushed changes. Raise `BufferNotFound`, `BufferUnflushed`.
        """
        with self._lock_of(f"{call.actor}/{name}"):
            while True:
                loaded = self._load(call, name, "en")
                if loaded.binding.is_changed and not discard:
                    raise BufferUnflushed(buffer=name)
                with suppress(StaleBufferError):
                    row = self._buffers.commit_version(loaded.row, call.write(ZONE, loaded.row.path, None))
                    self._buffers.evict(row.path)
                    return row

    @contextmanager
    def _load_all(
        self, call: CallContext, found: list[str], language: Language
    ) -> Iterator[list[LoadedBuffer]]:
        with ExitStack() as locks:
            for name in sorted(found):
                locks.enter_context(self._lock_of(f"{call.actor}/{name}"))
            loaded: list[LoadedBuffer] = []
            for name in found:
                # Another process may close a buffer during the loop. A damaged buffer must not hide the
                # others.
                with suppress(BufferNotFound, JournalDamaged):
                    loaded.append(self._load(call, name, language))
            yield loaded

    def _open_rows(self, actor: str) -> list[Row]:
        """Return the newest rows of the open buffers of ``actor``, newest first."""
        return sorted(self._store.journal.open_items(ZONE, actor), key=lambda row: -row.seq)

    def _find_open(self, actor: str, bound: BoundSource, name: str) -> Row | None:
        """Return the newest row of the actor's buffer on the source ``bound``. None if there is none, and the
        actor may open a buffer ``name``.

        Raise `BufferTaken`, `TooManyBuffers`.
        """
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
        if len(open_now) >= MAX_OPEN:
            raise TooManyBuffers(most=MAX_OPEN, known=", ".join(sorted(open_now)))
        return None

    def _first_version(
        self,
        call: CallContext,
        bound: BoundSource,
        base: SourceText,
        name: str,
        reserved: Collection[str],
    ) -> Write:
        """Return the draft of a buffer's first version. Requires the lock of the agent's buffers. Raise
        `StaleBufferError` if the source has changed since it was read."""
        journal = self._store.journal
        if version_of(journal.head(bound.zone, bound.path)) != base.version:
            raise StaleBufferError
        path = f"{call.actor}/{name or generate_name(bound.path, self.open_names(call.actor), reserved)}"
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
        return call.write(ZONE, path, base.text, bound.label, version, record.detail())

    def _load(self, call: CallContext, name: str, language: Language) -> LoadedBuffer:
        loaded = self._buffers.load(call, name, language)
        if loaded is None:
            raise BufferNotFound(
                buffer=validation.escape_unstorable(name, 100), known=self._known_names(call.actor)
            )
        return loaded

    def _known_names(self, actor: str) -> str:
        return ", ".join(sorted(self.open_names(actor))) or "-"

    @contextmanager
    def _lock_of(self, place: str) -> Iterator[None]:
        """Lock the buffer at ``place`` for one thread."""
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
    """Return a text about the difference between the buffer and its current source, empty if they are
    equal."""
    try:
        binding.update()
    except WatchroomError as problem:
        return binding.notice(problem)
    return "" if binding.state is WorkflowState.SYNCED else binding.notice()
