"""The text engine: wraps Loro and translates its errors. No other module uses the library."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from loro import ID, CounterSpan, ExportMode, Frontiers, IdSpan, LoroDoc, LoroText, Side, VersionVector

from watchroom.algorithms.crdt.alignment import TextStep
from watchroom.algorithms.crdt.state_checks import invalid_state
from watchroom.errors import InvalidState

_NAME: Final = "text"
_MAX_PIECE: Final = 2048
"""Maximum characters that are inserted at once."""
_MAX_WHOLE: Final = 64
"""Maximum characters of an insertion that is not split. It may continue the insertion before it."""
_COMMIT_CHARACTERS: Final = 64 * 1024
"""Maximum characters per commit. Loro needs commits of at most 256 KB, and a character has at most 4
bytes."""
_LARGE: Final = 64 * 1024
"""Bytes above which an update is imported separately."""
_LOOKUP_BATCH: Final = 500
"""Number of positions that are looked up at once while other threads wait."""
_BLOB_KIND: Final = slice(20, 22)
_UPDATES: Final = b"\0\4"
"""The kind in the header of a blob that contains updates.

Snapshots are refused: they may lack their history, and damaged snapshots make Loro panic much more often.
"""
_ENGINE_ERRORS: Final = ("BaseException", "PanicException")


_Operation: TypeAlias = tuple[int, int]
"""The n-th operation of a peer: (peer, n)."""


class _Change(NamedTuple):
    """Consecutive operations of one peer.

    - ``lamport``: greater than the ``lamport`` of all dependencies.
    - ``start``, ``stop``: the numbers of the operations, ``stop`` excluded.
    - ``dependencies``: the operations that this change builds on directly.
    """

    lamport: int
    peer: int
    start: int
    stop: int
    dependencies: frozenset[_Operation]


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Convert errors of Loro to `InvalidState`.

    Loro raises bare `BaseException`, and panics derived from it.
    """
    try:
        yield
    except BaseException as error:
        raise _to_invalid_state(error) from error


def _to_invalid_state(error: BaseException) -> InvalidState:
    """Return the error to raise for an error of Loro. Raise any other error unchanged."""
    if type(error).__name__ not in _ENGINE_ERRORS:
        raise error
    return invalid_state("text")


class MergedOperations(NamedTuple):
    """The effect of a merge on a text.

    - ``inserted``: ranges in the text after the merge, as (position, length).
    - ``deleted``: runs of operations whose characters the merge deleted, as (first operation, length). They
      may already have been deleted before.
    """

    inserted: Sequence[tuple[int, int]]
    deleted: Sequence[tuple[_Operation, int]]


class Engine:
    """One text in a Loro ``document``, default a new document.

    Positions count code points. Not thread-safe.
    """

    __slots__ = ("_document", "_text")

    def __init__(self, document: LoroDoc | None = None) -> None:
        self._document = LoroDoc() if document is None else document  # type: ignore[no-untyped-call]
        self._text: LoroText = self._document.get_text(_NAME)

    def __len__(self) -> int:
        return self._text.len_unicode

    @property
    def size(self) -> int:
        """Size of the text in bytes of UTF-8."""
        return self._text.len_utf8

    def text(self) -> str:
        """Return the complete text."""
        return self._text.to_string()

    def edit(self, position: int, deleted: int, inserted: str, peer: int) -> bytes:
        """Replace characters as ``peer``, and return the update for other replicas.

        - ``position``: the place of the deletion and insertion; it must exist.
        - ``deleted``: the number of characters to delete.
        - ``inserted``: the text to insert.
        """
        document, text = self._document, self._text
        if document.peer_id != peer:
            document.peer_id = peer
        before = document.oplog_vv
        if deleted and inserted:
            # Insert inside the replaced range, so that concurrent insertions next to it stay next to it.
            self._insert(position + 1, inserted)
            if deleted > 1:
                text.delete(position + 1 + len(inserted), deleted - 1)
            text.delete(position, 1)
        elif deleted:
            text.delete(position, deleted)
        else:
            self._insert(position, inserted)
        document.commit()
        return document.export(ExportMode.Updates(before))

    def _insert(self, position: int, inserted: str) -> None:
        """Insert a long text in pieces, from the last piece to the first.

        Loro stores text that was inserted from left to right as one run. Merging concurrent edits takes time
        quadratic in the length of a run. Pieces in reverse order form no run, but stay together.
        """
        text, document = self._text, self._document
        length = len(inserted)
        piece = length if length <= _MAX_WHOLE else min(_MAX_PIECE, (length + 1) // 2)
        uncommitted = 0
        for start in reversed(range(0, length, piece)):
            if uncommitted >= _COMMIT_CHARACTERS:
                document.commit()
                uncommitted = 0
            text.insert(position, inserted[start : start + piece])
            uncommitted += piece

    def merge_update(self, update: bytes) -> None:
        """Merge ``update`` of another replica. Raise `InvalidState` if it is malformed.

        After an error, nothing has changed. Exception: a long history that can be decoded but not merged.
        """
        if update[_BLOB_KIND] != _UPDATES:
            raise invalid_state("text")
        # `_translate_errors` is not used, because a context manager takes as long as a small update.
        try:
            for part in _split_history(update) if len(update) >= _LARGE else (update,):
                self._document.import_(part)
        except BaseException as error:
            raise _to_invalid_state(error) from error

    def merge_updates(self, updates: Sequence[bytes]) -> None:
        """Merge ``updates`` in order. Raise `InvalidState` if an update is malformed. Other updates may then
        have been merged.

        Each separately merged concurrent update costs a walk through the history, so updates are merged in
        batches. A long run in a batch takes quadratic time, so a large update that builds on all earlier
        updates is merged separately.
        """
        if any(update[_BLOB_KIND] != _UPDATES for update in updates):
            raise invalid_state("text")
        with _translate_errors():
            for batch in _split_batches(updates, self._document.oplog_frontiers):
                self._document.import_batch(batch)

    @contextmanager
    def observe(self) -> Iterator[list[TextStep]]:
        """Yield a list. After the context has ended, it contains the steps of all merges in order."""
        # Loro's events have no types.
        events, steps = list[Any](), list[TextStep]()
        subscription = self._text.subscribe(events.append)
        try:
            yield steps
        finally:
            if subscription is not None:
                subscription.unsubscribe()
            for event in events:
                for change in event.events:
                    steps += _text_steps(change.diff.diff)

    def merge_observed(self, update: bytes) -> MergedOperations:
        """Merge ``update`` as `merge_update` does, and return the effect."""
        before = self._document.oplog_vv
        with self.observe() as steps:
            self.merge_update(update)
        inserted = [(step.position, step.inserted) for step in steps if step.inserted]
        exported = self._document.export_json_updates(before, self._document.oplog_vv)
        return MergedOperations(inserted, _deletions(exported))

    def operations_at(self, start: int, count: int) -> list[tuple[_Operation, int]]:
        """Return the operations that wrote ``count`` characters from ``start`` on.

        Each run is (first operation, length): neighbouring characters from consecutive operations of one
        peer.
        """
        runs: list[tuple[_Operation, int]] = []
        peers = self.editors(range(start, start + count))
        for position, peer in enumerate(peers, start):
            number = self.operation_at(position)
            if runs and runs[-1][0][0] == peer and runs[-1][0][1] + runs[-1][1] == number:
                runs[-1] = runs[-1][0], runs[-1][1] + 1
            else:
                runs.append(((peer or 0, number), 1))
        return runs

    def edit_all(self, edits: Sequence[tuple[int, int, str]], peer: int) -> bytes:
        """Apply ``edits`` in order as ``peer``, and return one update for other replicas.

        Each edit is (position, number of deleted characters, inserted text).
        """
        before = self._document.oplog_vv
        for position, deleted, inserted in edits:
            self.edit(position, deleted, inserted, peer)
        return self._document.export(ExportMode.Updates(before))

    def empty_update(self) -> bytes:
        """Return an update without operations."""
        return self._document.export(ExportMode.Updates(self._document.oplog_vv))

    def history(self) -> bytes:
        """Return all operations as one update."""
        return self._document.export(ExportMode.Updates(VersionVector()))  # type: ignore[no-untyped-call]

    def pending_updates(self) -> bytes:
        """Return the updates that wait for missing updates, as one update; empty if no update waits."""
        return self._document.export_pending_updates() or b""

    def editors(self, positions: range) -> list[int | None]:
        """Return the peer that wrote each of the characters at ``positions``; None if it is unknown.

        This takes about 1 µs per character.
        """
        found: list[int | None] = []
        # In batches, because other threads cannot run during one.
        for start in range(0, len(positions), _LOOKUP_BATCH):
            batch = positions[start : start + _LOOKUP_BATCH]
            found.extend(map(self._text.get_editor_at_unicode_pos, batch))
        return found

    def operation_at(self, position: int) -> int:
        """Return the number of the operation that wrote the character at ``position``.

        Each peer numbers its operations from 0.
        """
        cursor = self._text.get_cursor(position, Side.Middle)
        return cursor.id.counter if cursor is not None and cursor.id is not None else 0

    def version_vector(self) -> dict[int, int]:
        """Return for each peer the number of its known operations."""
        return {peer: end for peer, (_, end) in self._document.oplog_vv.to_spans().inner().items()}

    def restore(self, known: Mapping[int, int]) -> Engine:
        """Return a new engine with the text at the version vector ``known`` (peer to number of operations).

        The operations are merged again. Loro's checkout of an earlier version takes several times as long,
        and quadratic time for a text that was pasted in one piece.
        """
        spans = [IdSpan(peer, CounterSpan(0, end)) for peer, end in known.items() if end]
        past = Engine()
        if spans:
            past.merge_update(self._document.export(ExportMode.UpdatesInRange(spans)))
        return past

    def fork(self) -> Engine:
        """Return a new engine with the same text and the same waiting updates."""
        # Not Loro's fork, which loads a snapshot: then the first edit of a 10 MB text takes a second.
        twin = self.restore(self.version_vector())
        waiting = self.pending_updates()
        if waiting:
            twin.merge_update(waiting)
        return twin

    def holds_plain_text(self) -> bool:
        """Return whether the document contains only one text: no other containers, no formatting."""
        others = self._document.get_deep_value()
        is_alone = isinstance(others, dict) and others.keys() <= {_NAME}
        return is_alone and all(not getattr(part, "attributes", None) for part in self._text.to_delta())


def parse_version_ends(update: bytes) -> dict[int, int]:
    """Return the version vector (peer to number of operations) after ``update`` and all its dependencies.

    Raise `InvalidState` if the update is malformed.
    """
    with _translate_errors():
        end = LoroDoc.decode_import_blob_meta(update, check_checksum=True).partial_end_vv
    return {peer: last for peer, (_, last) in end.to_spans().inner().items()}


def _text_steps(changes: Sequence[Any]) -> Iterator[TextStep]:
    """Convert ``changes``, a delta of Loro, to steps that are applied in order."""
    position = 0
    for change in changes:
        if hasattr(change, "insert"):
            yield TextStep(position, 0, len(change.insert))
            position += len(change.insert)
        elif hasattr(change, "delete"):
            yield TextStep(position, change.delete, 0)
        else:
            position += change.retain


def _deletions(exported: str) -> list[tuple[_Operation, int]]:
    """Return the runs of operations that ``exported``, updates as JSON, delete.

    Each run is (first operation, length).
    """
    found = json.loads(exported)
    peers = [int(peer) for peer in found["peers"]]
    deleted: list[tuple[_Operation, int]] = []
    for change in found["changes"]:
        for operation in change["ops"]:
            content = operation["content"]
            if content["type"] == "delete":
                number, _, peer = content["start_id"].partition("@")
                # Backspaces have a negative length, but their start is still the smallest operation.
                deleted.append(((peers[int(peer)], int(number)), abs(content["len"])))
    return deleted


def _split_history(update: bytes) -> list[bytes]:
    """Split a history into parts that are merged in order.

    A long run that is merged together with concurrent edits takes quadratic time. So long sequences of
    changes that build on all earlier changes become separate parts.
    """
    document = LoroDoc()  # type: ignore[no-untyped-call]
    # A detached document decodes the operations without building the text.
    document.detach()
    if document.import_(update).pending:
        return [update]
    ordered: list[tuple[bool, _Change]] = []
    ends: set[_Operation] = set()
    for change in sorted(_list_changes(document)):
        ordered.append((change.dependencies == ends, change))
        ends = (ends - change.dependencies) | {(change.peer, change.stop - 1)}
    parts: list[list[_Change]] = [[]]
    for is_linear, group in groupby(ordered, key=itemgetter(0)):
        changes = [change for _, change in group]
        if is_linear and sum(change.stop - change.start for change in changes) >= _LARGE:
            parts += [changes, []]
        else:
            parts[-1] += changes
    parts = [part for part in parts if part]
    if len(parts) == 1:
        return [update]
    return [document.export(ExportMode.UpdatesInRange(_to_spans(part))) for part in parts]


def _list_changes(document: LoroDoc) -> Iterator[_Change]:
    for peer, (start, stop) in document.oplog_vv.to_spans().inner().items():
        while start < stop and (change := document.get_change(ID(peer, start))) is not None:
            start = change.id.counter + change.len
            dependencies = frozenset(_decode_frontiers(change.deps.encode()).items())
            yield _Change(change.lamport, peer, change.id.counter, start, dependencies)


def _to_spans(changes: Sequence[_Change]) -> list[IdSpan]:
    """Return the spans of all operations of ``changes``. The changes of each peer must be consecutive."""
    first = {change.peer: change.start for change in reversed(changes)}
    stop = {change.peer: change.stop for change in changes}
    return [IdSpan(peer, CounterSpan(start, stop[peer])) for peer, start in first.items()]


def _split_batches(updates: Sequence[bytes], newest: Frontiers) -> Iterator[Sequence[bytes]]:
    """Split ``updates`` into batches for a document at ``newest``. The batches must be merged in order."""
    if not any(len(update) >= _LARGE for update in updates):
        yield updates
        return
    ends = set(_decode_frontiers(newest.encode()).items())
    batch: list[bytes] = []
    for update in updates:
        found = LoroDoc.decode_import_blob_meta(update, check_checksum=False)
        dependencies = set(_decode_frontiers(found.start_frontiers.encode()).items())
        if len(update) >= _LARGE and dependencies == ends:
            yield from filter(None, (batch, [update]))
            batch = []
        else:
            batch.append(update)
        spans = found.partial_end_vv.to_spans().inner().items()
        ends = (ends - dependencies) | {(peer, end - 1) for peer, (_, end) in spans}
    if batch:
        yield batch


def _decode_frontiers(encoded: bytes) -> dict[int, int]:
    """Return the last operation of each peer in ``encoded``, frontiers in Loro's encoding.

    The encoding is a sequence of varints, seven bits per byte, lowest first: the number of frontiers, then
    for each its peer and its zigzag number.
    """
    numbers: list[int] = []
    number = shift = 0
    for byte in encoded:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    peers, ends = numbers[1::2], numbers[2::2]
    return {peer: last >> 1 ^ -(last & 1) for peer, last in zip(peers, ends, strict=True)}
