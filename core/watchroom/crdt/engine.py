"""Loro, with its errors translated: the one place that touches the library."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from loro import ID, CounterSpan, ExportMode, Frontiers, IdSpan, LoroDoc, LoroText, Side, VersionVector

from watchroom.crdt.alignment import TextStep
from watchroom.crdt.errors import InvalidState
from watchroom.crdt.state_checks import invalid_state

_NAME: Final = "text"
_PIECE: Final = 2048
"""Characters of an insertion that go in at once."""
_SHORT: Final = 64
"""Characters up to which an insertion goes in whole, and may continue the one before it."""
_COMMIT_CHARACTERS: Final = 64 * 1024
"""Loro wants pastes in commits of at most 256 KB; a character has at most 4 bytes."""
_LARGE: Final = 64 * 1024
"""Bytes from which an update is imported alone."""
_LOOKED_UP: Final = 500
_KIND: Final = slice(20, 22)
_UPDATES: Final = b"\0\4"
"""What stands in a blob's header where it says of which kind it is, if it is updates. Snapshots may lack
their history, and broken ones make Loro panic much more often."""
_ENGINE_ERRORS: Final = ("BaseException", "PanicException")


_Operation: TypeAlias = tuple[int, int]
"""A peer's n-th operation: (peer, n)."""


class _Change(NamedTuple):
    """Operations of a peer from ``start`` up to ``stop``, which build on ``begins``. ``lamport`` is larger
    than that of all changes that it builds on."""

    lamport: int
    peer: int
    start: int
    stop: int
    begins: frozenset[_Operation]


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Loro raises bare `BaseException`, and a panic of its own beneath it."""
    try:
        yield
    except BaseException as error:
        raise _to_invalid_state(error) from error


def _to_invalid_state(error: BaseException) -> InvalidState:
    """What to raise for an error of the engine; another error is raised as it is."""
    if type(error).__name__ not in _ENGINE_ERRORS:
        raise error
    return invalid_state("text")


class MergedOperations(NamedTuple):
    """What a merge did to a text: ``inserted`` are positions in the text afterwards, each with a number of
    characters; ``deleted`` are the first operations of characters that it deleted, each with their number,
    whether they stood there still or not."""

    inserted: Sequence[tuple[int, int]]
    deleted: Sequence[tuple[_Operation, int]]


class Engine:
    """One text in a Loro ``document``, a new one by default. Positions count code points. Not for two threads
    at a time."""

    __slots__ = ("_document", "_text")

    def __init__(self, document: LoroDoc | None = None) -> None:
        self._document = LoroDoc() if document is None else document  # type: ignore[no-untyped-call]
        self._text: LoroText = self._document.get_text(_NAME)

    def __len__(self) -> int:
        return self._text.len_unicode

    @property
    def size(self) -> int:
        """Bytes of UTF-8."""
        return self._text.len_utf8

    def text(self) -> str:
        """The whole text."""
        return self._text.to_string()

    def edit(self, position: int, deleted: int, inserted: str, peer: int) -> bytes:
        """Replace ``deleted`` characters at ``position``, which must exist, by ``inserted``, as ``peer``.
        Returns the update for other replicas."""
        document, text = self._document, self._text
        if document.peer_id != peer:
            document.peer_id = peer
        before = document.oplog_vv
        if deleted and inserted:
            # Within what it replaces, so that what others insert beside that stays beside it.
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
        """Loro keeps what is inserted from left to right as one run, whichever operations it came in, and
        where it merges concurrent edits that costs the square of the run's length. Pieces that go in from
        the last to the first make no run, and stay together all the same."""
        text, document = self._text, self._document
        length = len(inserted)
        piece = length if length <= _SHORT else min(_PIECE, (length + 1) // 2)
        uncommitted = 0
        for start in reversed(range(0, length, piece)):
            if uncommitted >= _COMMIT_CHARACTERS:
                document.commit()
                uncommitted = 0
            text.insert(position, inserted[start : start + piece])
            uncommitted += piece

    def merge_update(self, update: bytes) -> None:
        """Merge ``update``, another replica's. Raises `InvalidState`; then nothing has changed, except where
        a long history can be read but not merged."""
        if update[_KIND] != _UPDATES:
            raise invalid_state("text")
        # Not with `_translated`: a context manager costs as much as a small update.
        try:
            for part in _split_history(update) if len(update) >= _LARGE else (update,):
                self._document.import_(part)
        except BaseException as error:
            raise _to_invalid_state(error) from error

    def merge_updates(self, updates: Sequence[bytes]) -> None:
        """Merge ``updates`` in order. Raises `InvalidState`; then some of them may have been merged.

        Concurrent updates that are merged one by one each cost a walk through the history, so they are merged
        in batches; a long run in a batch costs the square of its length, so an update that builds on all that
        came before it is merged alone."""
        if any(update[_KIND] != _UPDATES for update in updates):
            raise invalid_state("text")
        with _translate_errors():
            for batch in _split_batches(updates, self._document.oplog_frontiers):
                self._document.import_batch(batch)

    @contextmanager
    def observe(self) -> Iterator[list[TextStep]]:
        """A list that has what merging did to the text once the context ends, one step after the other."""
        # Loro has no types for what it tells of a change.
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
        """Merge ``update`` as `merge_update`, and tell what it did."""
        before = self._document.oplog_vv
        with self.observe() as steps:
            self.merge_update(update)
        inserted = [(step.position, step.inserted) for step in steps if step.inserted]
        exported = self._document.export_json_updates(before, self._document.oplog_vv)
        return MergedOperations(inserted, _deletions(exported))

    def operations_at(self, start: int, count: int) -> list[tuple[_Operation, int]]:
        """The operations that wrote the ``count`` characters from ``start`` on: the first of each run of
        neighbours that one peer wrote one after the other, with their number."""
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
        """Replace, one after the other, so many characters at a position by a text, as ``peer``. Returns one
        update for other replicas."""
        before = self._document.oplog_vv
        for position, deleted, inserted in edits:
            self.edit(position, deleted, inserted, peer)
        return self._document.export(ExportMode.Updates(before))

    def empty_update(self) -> bytes:
        """Return an update without operations."""
        return self._document.export(ExportMode.Updates(self._document.oplog_vv))

    def history(self) -> bytes:
        """All operations, as one update."""
        return self._document.export(ExportMode.Updates(VersionVector()))  # type: ignore[no-untyped-call]

    def pending_updates(self) -> bytes:
        """Updates that arrived before what they build on, as one update; empty where there are none."""
        return self._document.export_pending_updates() or b""

    def editors(self, positions: range) -> list[int | None]:
        """The peers that wrote the characters at ``positions``, None where that is not known. About 1 µs
        each."""
        found: list[int | None] = []
        # A piece at a time: within one, no other thread has its turn.
        for start in range(0, len(positions), _LOOKED_UP):
            found.extend(map(self._text.get_editor_at_unicode_pos, positions[start : start + _LOOKED_UP]))
        return found

    def operation_at(self, position: int) -> int:
        """Which of its writer's operations wrote the character at ``position``, counted from 0."""
        cursor = self._text.get_cursor(position, Side.Middle)
        return cursor.id.counter if cursor is not None and cursor.id is not None else 0

    def version_vector(self) -> dict[int, int]:
        """For each peer how many of its operations are known."""
        return {peer: end for peer, (_, end) in self._document.oplog_vv.to_spans().inner().items()}

    def restore(self, known: Mapping[int, int]) -> Engine:
        """A new engine with the text of the time when so many operations of each peer were ``known``.

        It merges these operations anew: Loro's checkout of an earlier state takes several times as long, and
        for a text that was pasted in one piece the square of its length."""
        spans = [IdSpan(peer, CounterSpan(0, end)) for peer, end in known.items() if end]
        past = Engine()
        if spans:
            past.merge_update(self._document.export(ExportMode.UpdatesInRange(spans)))
        return past

    def fork(self) -> Engine:
        """A new engine with the same text and waiting updates."""
        # Not Loro's own fork: the first edit of a text that came with a snapshot takes a second at 10 MB.
        twin = self.restore(self.version_vector())
        waiting = self.pending_updates()
        if waiting:
            twin.merge_update(waiting)
        return twin

    def holds_plain_text(self) -> bool:
        """Whether it contains one text and nothing else: no other containers, no formatting."""
        others = self._document.get_deep_value()
        is_alone = isinstance(others, dict) and others.keys() <= {_NAME}
        return is_alone and all(not getattr(part, "attributes", None) for part in self._text.to_delta())


def parse_version_ends(update: bytes) -> dict[int, int]:
    """For each peer how many operations are known to a replica that has ``update`` and all that it builds on.
    Raises `InvalidState`."""
    with _translate_errors():
        end = LoroDoc.decode_import_blob_meta(update, check_checksum=True).partial_end_vv
    return {peer: last for peer, (_, last) in end.to_spans().inner().items()}


def _text_steps(changes: Sequence[Any]) -> Iterator[TextStep]:
    """The steps, one after the other, that the engine's ``changes`` from a text's beginning on are."""
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
    """What the operations ``exported`` as JSON delete: the first operation of each run of characters, and how
    many."""
    found = json.loads(exported)
    peers = [int(peer) for peer in found["peers"]]
    deleted: list[tuple[_Operation, int]] = []
    for change in found["changes"]:
        for operation in change["ops"]:
            content = operation["content"]
            if content["type"] == "delete":
                number, _, peer = content["start_id"].partition("@")
                # Backspaces delete towards the beginning, which is told as a negative number; what they begin
                # with is the smallest operation even so.
                deleted.append(((peers[int(peer)], int(number)), abs(content["len"])))
    return deleted


def _split_history(update: bytes) -> list[bytes]:
    """A history in parts that are best merged one after the other: what builds on all that came before it, if
    it is long, apart from concurrent edits, with which a long run costs the square of its length."""
    document = LoroDoc()  # type: ignore[no-untyped-call]
    # Detached, it reads the operations and makes no text of them.
    document.detach()
    if document.import_(update).pending:
        return [update]
    ordered: list[tuple[bool, _Change]] = []
    ends: set[_Operation] = set()
    for change in sorted(_list_changes(document)):
        ordered.append((change.begins == ends, change))
        ends = (ends - change.begins) | {(change.peer, change.stop - 1)}
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
            begins = frozenset(_decode_frontiers(change.deps.encode()).items())
            yield _Change(change.lamport, peer, change.id.counter, start, begins)


def _to_spans(changes: Sequence[_Change]) -> list[IdSpan]:
    """All operations of these changes, of which those of each peer follow one another."""
    first = {change.peer: change.start for change in reversed(changes)}
    stop = {change.peer: change.stop for change in changes}
    return [IdSpan(peer, CounterSpan(start, stop[peer])) for peer, start in first.items()]


def _split_batches(updates: Sequence[bytes], newest: Frontiers) -> Iterator[Sequence[bytes]]:
    """The updates in order, as they are best merged into a document that has come to ``newest``."""
    if not any(len(update) >= _LARGE for update in updates):
        yield updates
        return
    ends = set(_decode_frontiers(newest.encode()).items())
    batch: list[bytes] = []
    for update in updates:
        found = LoroDoc.decode_import_blob_meta(update, check_checksum=False)
        begins = set(_decode_frontiers(found.start_frontiers.encode()).items())
        if len(update) >= _LARGE and begins == ends:
            yield from filter(None, (batch, [update]))
            batch = []
        else:
            batch.append(update)
        spans = found.partial_end_vv.to_spans().inner().items()
        ends = (ends - begins) | {(peer, end - 1) for peer, (_, end) in spans}
    if batch:
        yield batch


def _decode_frontiers(moment: bytes) -> dict[int, int]:
    """The last operation of each peer in ``moment``, frontiers as Loro encodes them: how many there are, and
    for each its peer and its signed number; seven bits a byte, the lowest first."""
    numbers: list[int] = []
    number = shift = 0
    for byte in moment:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    peers, ends = numbers[1::2], numbers[2::2]
    return {peer: last >> 1 ^ -(last & 1) for peer, last in zip(peers, ends, strict=True)}
