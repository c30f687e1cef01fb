"""A text that many write at once: a replicated growable array (Roh, Jeon, Kim and Lee, "Replicated abstract
data types", 2011), as Loro keeps it (with Eg-walker: Gentle and Kleppmann, EuroSys 2025)."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from watchroom.crdt.alignment import Placement, TextStep
from watchroom.crdt.clock import SEPARATOR, agent_of
from watchroom.crdt.engine import Engine, MergedOperations
from watchroom.crdt.state_checks import (
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
_MOST_HISTORY: Final = 256 * 1024 * 1024
"""Bytes that a packed history from elsewhere may unfold to."""
_MAX_PEER: Final = 2**64 - 2


class TextEdit(NamedTuple):
    """The result of an edit: ``position`` (after clamping), characters ``deleted`` and ``inserted``, and the
    ``delta`` for other replicas, None where nothing changed."""

    position: int
    deleted: int
    inserted: int
    delta: Mapping[str, Json] | None


class Run(NamedTuple):
    """``length`` characters in a row by one ``agent``; ``is_new``: written since an earlier state."""

    length: int
    agent: str
    is_new: bool = False


class Text:
    """A text; concurrent edits of it all stay, each where its writer put it. Positions are code points, and
    are clamped to the text (FILES-E7).

    A delta is ``{"ops": base64, "by": replica}``, a state ``{"history": base64 of zlib, "by": [replica, …]}``
    with ``"waiting"`` where updates have come before what they build on. The history is unpacked when it is
    first needed: until then the text is the one that was given with it.
    """

    __slots__ = ("_engine", "_observer", "_packed", "_replicas", "_value")

    def __init__(self) -> None:
        self._observer: Callable[[Sequence[TextStep]], None] | None = None
        self._engine: Engine | None = Engine()
        self._packed: Mapping[str, Json] = {}
        self._value = ""
        self._replicas: dict[int, str] = {}

    @classmethod
    def packed(cls, state: Json, value: Json) -> Text:
        """The text of ``state``, which is a trusted result of `state`, with the ``value`` that it had then.
        Raises `InvalidState` where it has another shape."""
        found = check_fields(state, "shape", _STATE, _WAITING)
        if not isinstance(value, str):
            raise invalid_state("shape")
        try:
            utf8_size(value)
        except NotText as error:
            raise invalid_state("text") from error
        text = cls()
        text._replicas = _replicas(found["by"])
        text._engine, text._packed, text._value = None, found, value
        return text

    @property
    def value(self) -> str:
        """The whole text."""
        return self._value if self._engine is None else self._engine.text()

    def __len__(self) -> int:
        return len(self._value) if self._engine is None else len(self._engine)

    def insert(self, position: int, text: str, replica: str) -> TextEdit:
        """Insert ``text`` at ``position`` as ``replica``. Raises `NotText`, `TooLarge`."""
        return self._edit(position, position, text, replica)

    def delete(self, start: int, stop: int, replica: str) -> TextEdit:
        """Delete the characters from ``start`` up to ``stop`` (excluded) as ``replica``."""
        return self._edit(start, stop, "", replica)

    def replace(self, start: int, stop: int, text: str, replica: str) -> TextEdit:
        """Replace the characters from ``start`` up to ``stop`` (excluded) by ``text`` as ``replica``. Raises
        as `insert`."""
        return self._edit(start, stop, text, replica)

    def _edit(self, start: int, stop: int, inserted: str, replica: str) -> TextEdit:
        length = len(self._load_engine())
        start = min(max(start, 0), length)
        deleted = min(max(stop, start), length) - start
        delta = self.edit_at(Placement(start, [(start, deleted)] if deleted else []), inserted, replica)
        return TextEdit(start, deleted, len(inserted), delta)

    def edit_at(self, place: Placement, inserted: str, replica: str) -> Mapping[str, Json] | None:
        """Replace what ``place`` names by ``inserted`` as ``replica``. Returns the delta for other replicas,
        None where nothing changed. Raises `NotText`, `TooLarge`; then nothing has."""
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
        if self._observer is not None:
            self._observer([TextStep(position, count, len(text)) for position, count, text in steps])
        return {"ops": binascii.b2a_base64(update, newline=False).decode(), "by": replica}

    def empty_delta(self, replica: str) -> Mapping[str, Json]:
        """Return the delta of ``replica`` that changes nothing: its row says more than the text can."""
        update = self._load_engine().empty_update()
        return {"ops": binascii.b2a_base64(update, newline=False).decode(), "by": replica}

    def observe(self, observer: Callable[[Sequence[TextStep]], None]) -> None:
        """Have ``observer`` told what each edit and each merge from now on does to the text, one step after
        the other. A copy has no observer."""
        self._observer = observer

    @contextmanager
    def _observed(self) -> Iterator[Engine]:
        """The engine, of which the observer is told what was done to it, also where that raises: some of
        several updates may have been merged."""
        engine = self._load_engine()
        if self._observer is None:
            yield engine
            return
        steps: Sequence[TextStep] = []
        try:
            with engine.observe() as steps:
                yield engine
        finally:
            if steps:
                self._observer(steps)

    def merge(self, state: Json) -> None:
        """Merge ``state``, another replica's state or delta. Raises `InvalidState`; then nothing has
        changed."""
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
            replicas = _replicas(found["by"])
            update, waiting = (
                _decompress(found["history"], _MOST_HISTORY),
                _decode_base64(found.get("waiting", "")),
            )
            # First in a fork where it takes two steps: the second may be refused when the first is done.
            if waiting:
                fork = self._load_engine().fork()
                fork.merge_update(update)
                fork.merge_update(waiting)
            with self._observed() as engine:
                engine.merge_update(update)
                if waiting:
                    engine.merge_update(waiting)
            for peer, by in replicas.items():
                # Two names for one peer: a lie, or a mistake. Whichever comes first, all replicas agree.
                self._replicas[peer] = max(by, self._replicas.get(peer, ""))

    def merge_observed(self, state: Json) -> MergedOperations:
        """Merge ``state``, another replica's state or delta that was merged elsewhere before, and tell what
        that did. Raises `InvalidState`."""
        return self._load_engine().merge_observed(decode_update(state))

    def operations_at(self, start: int, count: int) -> list[tuple[tuple[int, int], int]]:
        """The operations (peer and number) that wrote the ``count`` characters from ``start`` on, in runs,
        each with its length."""
        return self._load_engine().operations_at(start, count)

    def edit_all(self, edits: Sequence[tuple[int, int, str]], replica: str) -> Mapping[str, Json]:
        """Replace, one after the other, so many characters at a position by a text, as ``replica``; returns
        one delta of all. Raises `TooLarge`."""
        engine = self._load_engine()
        peer = _peer_number(replica)
        update = engine.edit_all(edits, peer)
        if engine.size > MAX_TEXT_BYTES:
            raise TooLarge(size=engine.size, limit=MAX_TEXT_BYTES)
        self._replicas[peer] = replica
        return {"ops": binascii.b2a_base64(update, newline=False).decode(), "by": replica}

    def merge_all(self, deltas: Sequence[Json]) -> None:
        """Merge ``deltas`` together, which is cheaper than one by one: each concurrent delta costs a walk
        through the history when it comes alone. Raises `InvalidState`."""
        found = [check_fields(each, "shape", _DELTA, frozenset()) for each in deltas]
        names = [_check_name(each["by"]) for each in found]
        peers = [_peer_number(name) for name in names]
        with self._observed() as engine:
            engine.merge_updates([_decode_base64(each["ops"]) for each in found])
        for peer, by in zip(peers, names, strict=True):
            self._replicas[peer] = max(by, self._replicas.get(peer, ""))

    def state(self) -> Mapping[str, Json]:
        """The whole state as JSON: every operation, compressed."""
        if self._engine is None:
            return self._packed
        history = base64.b64encode(zlib.compress(self._engine.history(), 1)).decode()
        waiting = self._engine.pending_updates()
        extra = {"waiting": base64.b64encode(waiting).decode()} if waiting else {}
        return {"by": sorted(self._replicas.values()), **extra, "history": history}

    def runs(self, since: Mapping[str, tuple[int, ...]] | None = None) -> list[Run]:
        """The text in runs by writer. With ``since`` (an earlier result of `version_vector`) the characters
        that are newer are marked. About 1 µs a character."""
        engine = self._load_engine()
        now = engine.version_vector()
        names = {peer: agent_of(replica) for peer, replica in self._replicas.items()}
        before = {peer: (since or {}).get(self._name_of(peer), (0,))[0] for peer in now}
        fresh = {peer for peer in now if since is not None and now[peer] > before[peer]}
        runs: list[Run] = []
        start = 0
        for peer, group in groupby(engine.editors(range(len(engine)))):
            stop = start + len([*group])
            agent = names.get(peer or 0, "")
            if peer in fresh:
                news = [engine.operation_at(at) >= before[peer] for at in range(start, stop)]
                runs += [Run(len([*each]), agent, is_new) for is_new, each in groupby(news)]
            else:
                runs.append(Run(stop - start, agent))
            start = stop
        return _join_runs(runs)

    def _name_of(self, peer: int) -> str:
        return self._replicas.get(peer, f"{SEPARATOR}{peer:x}")

    def version_vector(self) -> dict[str, tuple[int, ...]]:
        """For each replica how many of its operations are known, in a tuple of one."""
        known = self._load_engine().version_vector()
        return {self._name_of(peer): (count,) for peer, count in known.items()}

    @property
    def writers(self) -> frozenset[str]:
        """The names of all replicas that wrote the text."""
        return frozenset(self._replicas.values())

    @property
    def is_whole(self) -> bool:
        """Whether all updates could be merged: none waits for what it builds on."""
        return not self._load_engine().pending_updates()

    def has_same_history(self, other: Text) -> bool:
        """Whether this text and ``other`` were equal when both held exactly what they have in common."""
        mine, theirs = self._load_engine(), other._load_engine()
        known = theirs.version_vector()
        common = {peer: min(end, known.get(peer, 0)) for peer, end in mine.version_vector().items()}
        pasts = [engine.restore(common) for engine in (mine, theirs)]
        return pasts[0].text() == pasts[1].text() and not any(past.pending_updates() for past in pasts)

    def restore(self, known: Mapping[int, int]) -> Text:
        """The text of the time when so many operations of each peer were ``known``. Raises `InvalidState`."""
        past = Text()
        past._replicas = dict(self._replicas)
        past._engine = self._load_engine().restore(known)
        return past

    def copy(self) -> Text:
        """A replica equal to this one."""
        twin = Text()
        twin._replicas = dict(self._replicas)
        if self._engine is None:
            twin._engine, twin._packed, twin._value = None, self._packed, self._value
        else:
            twin._engine = self._engine.fork()
        return twin

    def holds_plain_text(self) -> bool:
        """Whether the history contains nothing but a text within the size limit."""
        engine = self._load_engine()
        return engine.holds_plain_text() and engine.size <= MAX_TEXT_BYTES and "\0" not in engine.text()

    def _load_engine(self) -> Engine:
        if self._engine is None:
            engine = Engine()
            # Ours, so however long it is.
            engine.merge_update(_decompress(self._packed["history"], 0))
            waiting = _decode_base64(self._packed.get("waiting", ""))
            if waiting:
                engine.merge_update(waiting)
            self._engine, self._packed, self._value = engine, {}, ""
        return self._engine


def _join_runs(runs: list[Run]) -> list[Run]:
    """Neighbours by one agent as one run."""
    groups = groupby(runs, key=lambda run: run[1:])
    return [Run(sum(run.length for run in group), *key) for key, group in groups]


def decode_update(delta: Json) -> bytes:
    """The engine's update in ``delta``, a text's delta or state. Raises `InvalidState`."""
    found = check_mapping(delta, "shape")
    if "ops" in found:
        return _decode_base64(found["ops"])
    return _decompress(found.get("history"), _MOST_HISTORY)


def is_delta(state: Json) -> bool:
    """Whether ``state`` has the shape of a text's delta, not of its state."""
    return isinstance(state, Mapping) and state.keys() == _DELTA


def _replicas(names: Json) -> dict[int, str]:
    names = check_sequence(names, "shape")
    return {_peer_number(name): name for name in map(_check_name, names)}


def _check_name(given: Json) -> str:
    if not isinstance(given, str):
        raise invalid_state("replica")
    return given


@lru_cache(maxsize=4096)
def _peer_number(replica: str) -> int:
    """The number that a replica goes by in the engine. Raises `InvalidState`."""
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


def _decompress(encoded: Json, most: int) -> bytes:
    """The bytes of a history, ``most`` of them at most; 0 for any number. Raises `InvalidState`."""
    packed = _decode_base64(encoded)
    unpacking = zlib.decompressobj()
    try:
        history = unpacking.decompress(packed, most)
    except zlib.error as error:
        raise invalid_state("text") from error
    if not unpacking.eof or unpacking.unused_data:
        raise invalid_state("text")
    return history
