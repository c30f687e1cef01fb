"""Loro, with its errors translated: the one place that touches the library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from loro import ID, CounterSpan, ExportMode, Frontiers, IdSpan, LoroDoc, LoroText, Side, VersionVector

from watchroom.crdt.checks import refuse
from watchroom.errors import InvalidState

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
def _translated() -> Iterator[None]:
    """Loro raises bare `BaseException`, and a panic of its own beneath it."""
    try:
        yield
    except BaseException as error:
        raise _refusal(error) from error


def _refusal(error: BaseException) -> InvalidState:
    """What to raise for an error of the engine; another error is raised as it is."""
    if type(error).__name__ not in _ENGINE_ERRORS:
        raise error
    return refuse("text")


class Engine:
    """One text in a Loro document. Positions are code points. Not for two threads at a time."""

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
        return self._text.to_string()

    def edit(self, position: int, deleted: int, inserted: str, peer: int) -> bytes:
        """Replace ``deleted`` characters at ``position``, which must be there, as ``peer``. Returns the
        update to send."""
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

    def take(self, update: bytes) -> None:
        """Merge another replica's update. Raises `InvalidState`; then nothing has changed, but for a long
        history that can be read and not be merged."""
        if update[_KIND] != _UPDATES:
            raise refuse("text")
        # Not with `_translated`: a context manager costs as much as a small update.
        try:
            for part in _parts(update) if len(update) >= _LARGE else (update,):
                self._document.import_(part)
        except BaseException as error:
            raise _refusal(error) from error

    def take_all(self, updates: Sequence[bytes]) -> None:
        """Merge many updates, in order. Raises `InvalidState`; then some of them may have been merged.

        Of those written concurrently each alone costs a walk through the history, so they are merged at once;
        but a long run that comes with others costs the square of its length, so one that builds on all
        that came before it is merged alone.
        """
        if any(update[_KIND] != _UPDATES for update in updates):
            raise refuse("text")
        with _translated():
            for batch in _batches(updates, self._document.oplog_frontiers):
                self._document.import_batch(batch)

    def history(self) -> bytes:
        """Everything ever written, as one update."""
        return self._document.export(ExportMode.Updates(VersionVector()))  # type: ignore[no-untyped-call]

    def waiting(self) -> bytes:
        """Updates that came before what they build on; empty where there are none."""
        return self._document.export_pending_updates() or b""

    def editors(self, positions: range) -> list[int | None]:
        """The peers that wrote the characters there. About 1 µs each."""
        found: list[int | None] = []
        # A piece at a time: within one, no other thread has its turn.
        for start in range(0, len(positions), _LOOKED_UP):
            found.extend(map(self._text.get_editor_at_unicode_pos, positions[start : start + _LOOKED_UP]))
        return found

    def operation_at(self, position: int) -> int:
        """Which of its writer's operations wrote the character there, counted from 0."""
        cursor = self._text.get_cursor(position, Side.Middle)
        return cursor.id.counter if cursor is not None and cursor.id is not None else 0

    def known(self) -> dict[int, int]:
        """How many operations of each peer are known."""
        return {peer: end for peer, (_, end) in self._document.oplog_vv.to_spans().inner().items()}

    def moment(self) -> bytes:
        """Which operations the text holds, to come back to."""
        return self._document.state_frontiers.encode()

    def then(self, known: Mapping[int, int]) -> Engine:
        """A document of its own, as it was when so many operations of each peer were known.

        Made of these operations anew: Loro's way back from a later state takes several times as long, and
        for a text that was pasted in one piece the square of its length.
        """
        spans = [IdSpan(peer, CounterSpan(0, end)) for peer, end in known.items() if end]
        past = Engine()
        if spans:
            past.take(self._document.export(ExportMode.UpdatesInRange(spans)))
        return past

    def fork(self, moment: bytes | None = None) -> Engine:
        """A document of its own with the same text and what waits, or with the text of that moment. Raises
        `InvalidState` where there was no such moment."""
        if moment is None or moment == self.moment():
            # Not Loro's own fork: the first edit of a text that came with a snapshot takes a second at 10 MB.
            twin = self.then(self.known())
            waiting = self.waiting()
            if waiting:
                twin.take(waiting)
            return twin
        with _translated():
            vector = self._document.frontiers_to_vv(self._frontiers(moment))
        if vector is None:
            raise refuse("text")
        return self.then({peer: end for peer, (_, end) in vector.to_spans().inner().items()})

    def _frontiers(self, moment: bytes) -> Frontiers:
        """Those of a moment of this text: others may make Loro panic, and the document unusable. Raises
        `InvalidState`."""
        known = self.known()
        ends = _ends(moment)
        if any(not 0 <= last < known.get(peer, 0) for peer, last in ends.items()):
            raise refuse("text")
        return Frontiers.from_ids([ID(peer, last) for peer, last in ends.items()])

    def holds_plain_text(self) -> bool:
        """Whether there is nothing but the text: no other containers, no formatting."""
        others = self._document.get_deep_value()
        is_alone = isinstance(others, dict) and others.keys() <= {_NAME}
        return is_alone and all(not getattr(part, "attributes", None) for part in self._text.to_delta())


def ends_of(update: bytes) -> dict[int, int]:
    """How many operations of each peer are known to one who has ``update`` and what came before it. Raises
    `InvalidState`."""
    with _translated():
        end = LoroDoc.decode_import_blob_meta(update, check_checksum=True).partial_end_vv
    return {peer: last for peer, (_, last) in end.to_spans().inner().items()}


def _parts(update: bytes) -> list[bytes]:
    """A history in parts that are best merged one after the other: what builds on all that came before it, if
    it is long, apart from concurrent edits, with which a long run costs the square of its length."""
    document = LoroDoc()  # type: ignore[no-untyped-call]
    # Detached, it reads the operations and makes no text of them.
    document.detach()
    if document.import_(update).pending:
        return [update]
    ordered: list[tuple[bool, _Change]] = []
    ends: set[_Operation] = set()
    for change in sorted(_changes(document)):
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
    return [document.export(ExportMode.UpdatesInRange(_spans(part))) for part in parts]


def _changes(document: LoroDoc) -> Iterator[_Change]:
    for peer, (start, stop) in document.oplog_vv.to_spans().inner().items():
        while start < stop and (change := document.get_change(ID(peer, start))) is not None:
            start = change.id.counter + change.len
            begins = frozenset(_ends(change.deps.encode()).items())
            yield _Change(change.lamport, peer, change.id.counter, start, begins)


def _spans(changes: Sequence[_Change]) -> list[IdSpan]:
    """All operations of these changes, of which those of each peer follow one another."""
    first = {change.peer: change.start for change in reversed(changes)}
    stop = {change.peer: change.stop for change in changes}
    return [IdSpan(peer, CounterSpan(start, stop[peer])) for peer, start in first.items()]


def _batches(updates: Sequence[bytes], newest: Frontiers) -> Iterator[Sequence[bytes]]:
    """The updates in order, as they are best merged into a document that has come to ``newest``."""
    if not any(len(update) >= _LARGE for update in updates):
        yield updates
        return
    ends = set(_ends(newest.encode()).items())
    batch: list[bytes] = []
    for update in updates:
        found = LoroDoc.decode_import_blob_meta(update, check_checksum=False)
        begins = set(_ends(found.start_frontiers.encode()).items())
        if len(update) >= _LARGE and begins == ends:
            yield from filter(None, (batch, [update]))
            batch = []
        else:
            batch.append(update)
        spans = found.partial_end_vv.to_spans().inner().items()
        ends = (ends - begins) | {(peer, end - 1) for peer, (_, end) in spans}
    if batch:
        yield batch


def _ends(moment: bytes) -> dict[int, int]:
    """The last operation of each peer in a moment as Loro encodes it: how many there are, and for each its
    peer and its signed number; seven bits a byte, the lowest first. Raises `InvalidState`."""
    numbers: list[int] = []
    number = shift = 0
    for byte in moment:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    count, pairs = numbers[0] if numbers else 0, numbers[1:]
    ends = {peer: last >> 1 ^ -(last & 1) for peer, last in zip(pairs[::2], pairs[1::2], strict=False)}
    if shift or len(pairs) != 2 * count or len(ends) != count or not numbers:
        raise refuse("text")
    return ends
