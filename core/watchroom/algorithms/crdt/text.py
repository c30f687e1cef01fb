"""A text that several writers edit concurrently.

It is a replicated growable array (Roh, Jeon, Kim and Lee, "Replicated abstract data types", 2011). Loro
implements it with Eg-walker (Gentle and Kleppmann, EuroSys 2025).
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from watchroom.algorithms.crdt.alignment import Placement, TextStep
from watchroom.algorithms.crdt.clock import SEPARATOR, agent_of
from watchroom.algorithms.crdt.engine import Engine, MergedOperations
from watchroom.algorithms.crdt.state_checks import (
    check_fields,
    check_mapping,
    check_replica_name,
    check_sequence,
    invalid_state,
    utf8_size,
)
from watchroom.errors import NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES, Json

_DELTA: Final = frozenset({"ops", "by"})
_STATE: Final = frozenset({"history", "by"})
_WAITING: Final = frozenset({"waiting"})
_MAX_HISTORY: Final = 256 * 1024 * 1024
"""Maximum size in bytes of an unpacked history of another replica."""
_MAX_PEER: Final = 2**64 - 2


class TextEdit(NamedTuple):
    """The result of an edit.

    - ``position``: the position after clamping.
    - ``deleted``, ``inserted``: numbers of characters.
    - ``delta``: the delta for other replicas; None if nothing changed.
    """

    position: int
    deleted: int
    inserted: int
    delta: Mapping[str, Json] | None


class TextRun(NamedTuple):
    """Consecutive characters written by one ``agent``. ``is_new``: whether they were written since an earlier
    state."""

    length: int
    agent: str
    is_new: bool = False


class Text:
    """A text that keeps all concurrent edits at the places chosen by their writers.

    Positions count code points and are clamped to the text (FILES-E7). A delta is
    ``{"ops": base64, "by": replica}``. A state is ``{"history": base64 of zlib, "by": [replica, …]}``, with
    ``"waiting"`` if some updates depend on missing updates. The history is unpacked on first use.
    """

    __slots__ = ("_engine", "_on_change", "_packed", "_replicas", "_value")

    def __init__(self) -> None:
        self._on_change: Callable[[Sequence[TextStep]], None] | None = None
        self._engine: Engine | None = Engine()
        self._packed: Mapping[str, Json] = {}
        self._value = ""
        self._replicas: dict[int, str] = {}

    @classmethod
    def packed(cls, state: Json, value: Json) -> Text:
        """Return the text with ``state``, a trusted result of `state`, and its ``value`` at that time.

        Raise `InvalidState` if the shape is wrong. The history is not verified.
        """
        found = check_fields(state, "shape", _STATE, _WAITING)
        if not isinstance(value, str):
            raise invalid_state("shape")
        try:
            utf8_size(value)
        except NotText as error:
            raise invalid_state("text") from error
        text = cls()
        text._replicas = _parse_replicas(found["by"])
        text._engine, text._packed, text._value = None, found, value
        return text

    @property
    def value(self) -> str:
        """The complete text."""
        return self._value if self._engine is None else self._engine.text()

    def __len__(self) -> int:
        return len(self._value) if self._engine is None else len(self._engine)

    def insert(self, position: int, text: str, replica: str) -> TextEdit:
        """Insert ``text`` at ``position`` as ``replica``.

        Raise `NotText` for NUL and lone surrogates, and `TooLarge` if the text would exceed 10 MB.
        """
        return self._edit(position, position, text, replica)

    def delete(self, start: int, stop: int, replica: str) -> TextEdit:
        """Delete the characters from ``start`` up to ``stop`` (excluded) as ``replica``."""
        return self._edit(start, stop, "", replica)

    def replace(self, start: int, stop: int, text: str, replica: str) -> TextEdit:
        """Replace the characters from ``start`` up to ``stop`` (excluded) by ``text`` as ``replica``.

        Raise the errors of `insert`.
        """
        return self._edit(start, stop, text, replica)

    def _edit(self, start: int, stop: int, inserted: str, replica: str) -> TextEdit:
        length = len(self._load_engine())
        start = min(max(start, 0), length)
        deleted = min(max(stop, start), length) - start
        delta = self.edit_at(Placement(start, [(start, deleted)] if deleted else []), inserted, replica)
        return TextEdit(start, deleted, len(inserted), delta)

    def edit_at(self, place: Placement, inserted: str, replica: str) -> Mapping[str, Json] | None:
        """Replace the spans of ``place`` by ``inserted`` as ``replica``.

        Return the delta for other replicas; None if nothing changed. Raise the errors of `insert`. After an
        error, nothing has changed.
        """
        engine = self._load_engine()
        size = engine.size + utf8_size(inserted)
        if size > MAX_TEXT_BYTES:
            value = engine.text()
            size -= sum(len(value[start : start + count].encode()) for start, count in place.spans)
            if size > MAX_TEXT_BYTES:
                raise TooLarge(size=size, limit=MAX_TEXT_BYTES)
        first = place.spans[0][1] if place.spans else 0
        steps = [(start, count, "") for start, count in reversed(place.spans[1:])]
        if first or inserted:
            steps.append((place.position, first, inserted))
        if not steps:
            return None
        peer = _peer_number(replica)
        update = engine.edit_all(steps, peer) if len(steps) > 1 else engine.edit(*steps[0], peer)
        self._replicas[peer] = replica
        if self._on_change is not None:
            self._on_change([TextStep(position, count, len(text)) for position, count, text in steps])
        return {"ops": binascii.b2a_base64(update, newline=False).decode(), "by": replica}

    def empty_delta(self, replica: str) -> Mapping[str, Json]:
        """Return a delta of ``replica`` that changes nothing.

        A row needs such a delta if its other details matter, although the text stays the same.
        """
        update = self._load_engine().empty_update()
        return {"ops": binascii.b2a_base64(update, newline=False).decode(), "by": replica}

    def observe(self, on_change: Callable[[Sequence[TextStep]], None]) -> None:
        """Call ``on_change`` with the steps of each future edit and merge, in order.

        It replaces an earlier callback. Copies have no callback.
        """
        self._on_change = on_change

    @contextmanager
    def _observed(self) -> Iterator[Engine]:
        """Yield the engine, and report its changes to the callback.

        Changes are also reported if the body raises, because some of several updates may have been merged.
        """
        engine = self._load_engine()
        if self._on_change is None:
            yield engine
            return
        steps: Sequence[TextStep] = []
        try:
            with engine.observe() as steps:
                yield engine
        finally:
            if steps:
                self._on_change(steps)

    def merge(self, state: Json) -> None:
        """Merge ``state``, a state or delta of another replica.

        Raise `InvalidState` if it is malformed. After an error, nothing has changed.
        """
        found = check_mapping(state, "shape")
        if found.keys() == _DELTA:
            update, by = _decode_base64(found["ops"]), _check_name(found["by"])
            peer = _peer_number(by)
            with self._observed() as engine:
                engine.merge_update(update)
            if by > self._replicas.get(peer, ""):
                self._replicas[peer] = by
        else:
            found = check_fields(state, "shape", _STATE, _WAITING)
            replicas = _parse_replicas(found["by"])
            update = _decompress(found["history"], _MAX_HISTORY)
            waiting = _decode_base64(found.get("waiting", ""))
            # First try two steps in a fork, because the second step may fail after the first.
            if waiting:
                fork = self._load_engine().fork()
                fork.merge_update(update)
                fork.merge_update(waiting)
            with self._observed() as engine:
                engine.merge_update(update)
                if waiting:
                    engine.merge_update(waiting)
            for peer, by in replicas.items():
                # If a peer has two names, all replicas choose the same name, regardless of the order of
                # merges.
                self._replicas[peer] = max(by, self._replicas.get(peer, ""))

    def merge_observed(self, state: Json) -> MergedOperations:
        """Merge ``state`` and return its effect. Raise `InvalidState` if it is malformed.

        ``state`` is a state or delta of another replica that was merged elsewhere before.
        """
        return self._load_engine().merge_observed(decode_update(state))

    def operations_at(self, start: int, count: int) -> list[tuple[tuple[int, int], int]]:
        """Return the operations that wrote ``count`` characters from ``start`` on.

        Each run is ((peer, first number), length).
        """
        return self._load_engine().operations_at(start, count)

    def edit_all(self, edits: Sequence[tuple[int, int, str]], replica: str) -> Mapping[str, Json]:
        """Apply ``edits`` in order as ``replica``, and return one delta for all of them.

        Each edit is (position, number of deleted characters, inserted text). Raise `TooLarge` if the text
        exceeds 10 MB.
        """
        engine = self._load_engine()
        peer = _peer_number(replica)
        update = engine.edit_all(edits, peer)
        if engine.size > MAX_TEXT_BYTES:
            raise TooLarge(size=engine.size, limit=MAX_TEXT_BYTES)
        self._replicas[peer] = replica
        return {"ops": binascii.b2a_base64(update, newline=False).decode(), "by": replica}

    def merge_all(self, deltas: Sequence[Json]) -> None:
        """Merge ``deltas`` in one batch. Raise `InvalidState` if one of them is malformed.

        A batch is faster, because each separately merged concurrent delta costs a walk through the history.
        """
        found = [check_fields(each, "shape", _DELTA, frozenset()) for each in deltas]
        names = [_check_name(each["by"]) for each in found]
        peers = [_peer_number(name) for name in names]
        with self._observed() as engine:
            engine.merge_updates([_decode_base64(each["ops"]) for each in found])
        for peer, by in zip(peers, names, strict=True):
            self._replicas[peer] = max(by, self._replicas.get(peer, ""))

    def state(self) -> Mapping[str, Json]:
        """Return the whole state as JSON: every operation, compressed."""
        if self._engine is None:
            return self._packed
        history = base64.b64encode(zlib.compress(self._engine.history(), 1)).decode()
        waiting = self._engine.pending_updates()
        extra = {"waiting": base64.b64encode(waiting).decode()} if waiting else {}
        return {"by": sorted(self._replicas.values()), **extra, "history": history}

    def runs(self, since: Mapping[str, tuple[int, ...]] | None = None) -> list[TextRun]:
        """Return the text as runs by writer. This takes about 1 µs per character.

        With ``since``, an earlier result of `version_vector`, newer characters are marked as new.
        """
        engine = self._load_engine()
        now = engine.version_vector()
        names = {peer: agent_of(replica) for peer, replica in self._replicas.items()}
        before = {peer: (since or {}).get(self._name_of(peer), (0,))[0] for peer in now}
        fresh = {peer for peer in now if since is not None and now[peer] > before[peer]}
        runs: list[TextRun] = []
        start = 0
        for peer, group in groupby(engine.editors(range(len(engine)))):
            stop = start + len([*group])
            agent = names.get(peer or 0, "")
            if peer in fresh:
                news = [engine.operation_at(at) >= before[peer] for at in range(start, stop)]
                runs += [TextRun(len([*each]), agent, is_new) for is_new, each in groupby(news)]
            else:
                runs.append(TextRun(stop - start, agent))
            start = stop
        return _join_runs(runs)

    def _name_of(self, peer: int) -> str:
        return self._replicas.get(peer, f"{SEPARATOR}{peer:x}")

    def version_vector(self) -> dict[str, tuple[int, ...]]:
        """Return, for each replica, the number of its known operations as a tuple of length one."""
        known = self._load_engine().version_vector()
        return {self._name_of(peer): (count,) for peer, count in known.items()}

    @property
    def writers(self) -> frozenset[str]:
        """Names of all replicas that wrote to the text."""
        return frozenset(self._replicas.values())

    @property
    def is_whole(self) -> bool:
        """Whether no update is waiting for a missing update."""
        return not self._load_engine().pending_updates()

    def has_same_history(self, other: Text) -> bool:
        """Return whether both texts are equal at the version that consists of their common operations."""
        mine, theirs = self._load_engine(), other._load_engine()
        known = theirs.version_vector()
        common = {peer: min(end, known.get(peer, 0)) for peer, end in mine.version_vector().items()}
        pasts = [engine.restore(common) for engine in (mine, theirs)]
        return pasts[0].text() == pasts[1].text() and not any(past.pending_updates() for past in pasts)

    def restore(self, known: Mapping[int, int]) -> Text:
        """Return the text at the version vector ``known`` (number of operations by peer).

        Raise `InvalidState` if these operations cannot be merged.
        """
        past = Text()
        past._replicas = dict(self._replicas)
        past._engine = self._load_engine().restore(known)
        return past

    def copy(self) -> Text:
        """Return an independent text with the same state and without the callback."""
        twin = Text()
        twin._replicas = dict(self._replicas)
        if self._engine is None:
            twin._engine, twin._packed, twin._value = None, self._packed, self._value
        else:
            twin._engine = self._engine.fork()
        return twin

    def holds_plain_text(self) -> bool:
        """Return whether the history contains only plain text within the size limit."""
        engine = self._load_engine()
        return engine.holds_plain_text() and engine.size <= MAX_TEXT_BYTES and "\0" not in engine.text()

    def _load_engine(self) -> Engine:
        if self._engine is None:
            engine = Engine()
            # Our own history may have any length.
            engine.merge_update(_decompress(self._packed["history"], 0))
            waiting = _decode_base64(self._packed.get("waiting", ""))
            if waiting:
                engine.merge_update(waiting)
            self._engine, self._packed, self._value = engine, {}, ""
        return self._engine


def _join_runs(runs: list[TextRun]) -> list[TextRun]:
    """Join neighbouring runs that differ only in length."""
    groups = groupby(runs, key=lambda run: run[1:])
    return [TextRun(sum(run.length for run in group), *key) for key, group in groups]


def decode_update(delta: Json) -> bytes:
    """Return the engine's update in ``delta``, a delta or state of a text.

    Raise `InvalidState` if it is malformed.
    """
    found = check_mapping(delta, "shape")
    if "ops" in found:
        return _decode_base64(found["ops"])
    return _decompress(found.get("history"), _MAX_HISTORY)


def is_delta(state: Json) -> bool:
    """Return whether ``state`` has the shape of a text's delta."""
    return isinstance(state, Mapping) and state.keys() == _DELTA


def _parse_replicas(names: Json) -> dict[int, str]:
    names = check_sequence(names, "shape")
    return {_peer_number(name): name for name in map(_check_name, names)}


def _check_name(given: Json) -> str:
    if not isinstance(given, str):
        raise invalid_state("replica")
    return given


@lru_cache(maxsize=4096)
def _peer_number(replica: str) -> int:
    """Return the number of ``replica`` in the engine. Raise `InvalidState` if the name is malformed."""
    agent, _, digits = check_replica_name(replica).partition(SEPARATOR)
    try:
        peer = int(digits, 16)
    except ValueError as error:
        raise invalid_state("replica") from error
    if not agent or not 0 < peer <= _MAX_PEER or digits != f"{peer:x}":
        raise invalid_state("replica")
    return peer


def _decode_base64(encoded: Json) -> bytes:
    if not isinstance(encoded, str):
        raise invalid_state("shape")
    try:
        return binascii.a2b_base64(encoded.encode("ascii"), strict_mode=True)
    except (ValueError, UnicodeEncodeError) as error:
        raise invalid_state("base64") from error


def _decompress(encoded: Json, max_size: int) -> bytes:
    """Decode and decompress a history of at most ``max_size`` bytes; 0 for no limit.

    Raise `InvalidState` if it is malformed or longer.
    """
    packed = _decode_base64(encoded)
    unpacking = zlib.decompressobj()
    try:
        history = unpacking.decompress(packed, max_size)
    except zlib.error as error:
        raise invalid_state("text") from error
    if not unpacking.eof or unpacking.unused_data:
        raise invalid_state("text")
    return history
