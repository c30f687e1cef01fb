"""A text that many write at once: a replicated growable array (Roh, Jeon, Kim and Lee, "Replicated abstract
data types", 2011), as Loro keeps it (with Eg-walker: Gentle and Kleppmann, EuroSys 2025)."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from watchroom.crdt import checks
from watchroom.crdt.clock import SEPARATOR, agent_of
from watchroom.crdt.engine import Engine
from watchroom.errors import TooLarge
from watchroom.model import MAX_TEXT_BYTES, Json

_DELTA: Final = frozenset({"ops", "by"})
_STATE: Final = frozenset({"history", "by"})
_WAITING: Final = frozenset({"waiting"})
_MOST_HISTORY: Final = 256 * 1024 * 1024
"""Bytes that a packed history from elsewhere may unfold to."""
_MAX_PEER: Final = 2**64 - 2


class TextEdit(NamedTuple):
    """What an edit did: where (after clamping), how many characters went and came, and the delta to send,
    None where nothing changed."""

    position: int
    deleted: int
    inserted: int
    delta: Mapping[str, Json] | None


class Run(NamedTuple):
    """So many characters in a row by one agent; ``is_new``: they have come since some time."""

    length: int
    agent: str
    is_new: bool = False


class Text:
    """A text; concurrent edits of it all stay, each where its writer put it. Positions are code points, and
    are clamped to the text (spec 1 E-7).

    A delta is ``{"ops": base64, "by": replica}``, a state ``{"history": base64 of zlib, "by": [replica, …]}``
    with ``"waiting"`` where updates have come before what they build on. The history is unpacked when it is
    first needed: until then the text is the one that was given with it.
    """

    __slots__ = ("_engine", "_packed", "_replicas", "_value")

    def __init__(self) -> None:
        self._engine: Engine | None = Engine()
        self._packed: Mapping[str, Json] = {}
        self._value = ""
        self._replicas: dict[int, str] = {}

    @classmethod
    def packed(cls, state: Json, value: Json) -> Text:
        """A text from its own `state`, which is trusted, and the value that it had then. Raises
        `InvalidState` where it has another shape."""
        found = checks.fields(state, "shape", _STATE, _WAITING)
        if not isinstance(value, str):
            raise checks.refuse("shape")
        text = cls()
        text._replicas = _replicas(checks.sequence(found["by"], "shape"))
        text._engine, text._packed, text._value = None, found, value
        return text

    @property
    def value(self) -> str:
        return self._value if self._engine is None else self._engine.text()

    def __len__(self) -> int:
        return len(self._value) if self._engine is None else len(self._engine)

    def insert(self, position: int, text: str, replica: str) -> TextEdit:
        """Put ``text`` in at ``position``. Raises `NotText`, `TooLarge`."""
        return self._edit(position, position, text, replica)

    def delete(self, start: int, stop: int, replica: str) -> TextEdit:
        """Take out what stands from ``start`` up to ``stop``."""
        return self._edit(start, stop, "", replica)

    def replace(self, start: int, stop: int, text: str, replica: str) -> TextEdit:
        """Put ``text`` in the place of what stands from ``start`` up to ``stop``. Raises as `insert`."""
        return self._edit(start, stop, text, replica)

    def _edit(self, start: int, stop: int, inserted: str, replica: str) -> TextEdit:
        engine = self._unpacked()
        size = engine.size + checks.text_bytes(inserted)
        length = len(engine)
        start = min(max(start, 0), length)
        deleted = min(max(stop, start), length) - start
        if size > MAX_TEXT_BYTES:
            size -= len(engine.text()[start : start + deleted].encode())
            if size > MAX_TEXT_BYTES:
                raise TooLarge(size=size, limit=MAX_TEXT_BYTES)
        if not deleted and not inserted:
            return TextEdit(start, 0, 0, None)
        peer = _peer(replica)
        update = engine.edit(start, deleted, inserted, peer)
        self._replicas[peer] = replica
        ops = binascii.b2a_base64(update, newline=False).decode()
        return TextEdit(start, deleted, len(inserted), {"ops": ops, "by": replica})

    def merge(self, state: Json) -> None:
        """Take over another replica's state or delta. Raises `InvalidState`; then nothing has changed."""
        found = checks.mapping(state, "shape")
        if found.keys() == _DELTA:
            update, by = _bytes(found["ops"]), _name(found["by"])
            peer = _peer(by)
            self._unpacked().take(update)
            if by > self._replicas.get(peer, ""):
                self._replicas[peer] = by
        else:
            found = checks.fields(state, "shape", _STATE, _WAITING)
            replicas = _replicas(checks.sequence(found["by"], "shape"))
            update, waiting = _unpack(found["history"], _MOST_HISTORY), _bytes(found.get("waiting", ""))
            # In a fork where it takes two steps: the second may be refused when the first is done.
            engine = self._unpacked().fork() if waiting else self._unpacked()
            engine.take(update)
            if waiting:
                engine.take(waiting)
            self._engine = engine
            for peer, by in replicas.items():
                # Two names for one peer: a lie, or a mistake. Whichever comes first, all replicas agree.
                self._replicas[peer] = max(by, self._replicas.get(peer, ""))

    def merge_all(self, deltas: Sequence[Json]) -> None:
        """Take over many deltas at once. Of those written concurrently each costs a walk through the history
        when it comes alone. Raises `InvalidState`."""
        found = [checks.fields(each, "shape", _DELTA, frozenset()) for each in deltas]
        names = [_name(each["by"]) for each in found]
        peers = [_peer(name) for name in names]
        self._unpacked().take_all([_bytes(each["ops"]) for each in found])
        for peer, by in zip(peers, names, strict=True):
            self._replicas[peer] = max(by, self._replicas.get(peer, ""))

    def state(self) -> Mapping[str, Json]:
        """Everything ever written, packed."""
        if self._engine is None:
            return self._packed
        history = base64.b64encode(zlib.compress(self._engine.history(), 1)).decode()
        waiting = self._engine.waiting()
        extra = {"waiting": base64.b64encode(waiting).decode()} if waiting else {}
        return {"by": sorted(self._replicas.values()), **extra, "history": history}

    def runs(self, since: Mapping[str, tuple[int, ...]] | None = None) -> list[Run]:
        """Who wrote the text, in runs; with ``since`` (what was `known` at some time) also which characters
        have come since then. About 1 µs a character."""
        engine = self._unpacked()
        now = engine.known()
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
        return _joined(runs)

    def _name_of(self, peer: int) -> str:
        return self._replicas.get(peer, f"{SEPARATOR}{peer:x}")

    def known(self) -> dict[str, tuple[int, ...]]:
        """How many operations of each replica are known."""
        known = self._unpacked().known()
        return {self._name_of(peer): (count,) for peer, count in known.items()}

    @property
    def writers(self) -> frozenset[str]:
        """The replicas that are named as writers of the text."""
        return frozenset(self._replicas.values())

    @property
    def is_whole(self) -> bool:
        """Whether every update that came could be taken in: none waits for what it builds on."""
        return not self._unpacked().waiting()

    def shares_past(self, other: Text) -> bool:
        """Whether both texts were the same when they held what both know."""
        mine, theirs = self._unpacked(), other._unpacked()
        known = theirs.known()
        common = {peer: min(end, known.get(peer, 0)) for peer, end in mine.known().items()}
        pasts = [engine.then(common) for engine in (mine, theirs)]
        return pasts[0].text() == pasts[1].text() and not any(past.waiting() for past in pasts)

    def moment(self) -> bytes:
        """Which operations the text holds: two replicas at one moment have the same text."""
        return self._unpacked().moment()

    def then(self, known: Mapping[int, int]) -> Text:
        """The text as it was when so many operations of each peer were known. Raises `InvalidState`."""
        past = Text()
        past._replicas = dict(self._replicas)
        past._engine = self._unpacked().then(known)
        return past

    def copy(self, moment: bytes | None = None) -> Text:
        """A replica of its own, as this one is or as it was at a moment of its past. Raises `InvalidState`
        for one that it never had."""
        twin = Text()
        twin._replicas = dict(self._replicas)
        if self._engine is None and moment is None:
            twin._engine, twin._packed, twin._value = None, self._packed, self._value
        else:
            twin._engine = self._unpacked().fork(moment)
        return twin

    def holds_plain_text(self) -> bool:
        """Whether the history holds nothing but a text that may be kept."""
        engine = self._unpacked()
        return engine.holds_plain_text() and engine.size <= MAX_TEXT_BYTES and "\0" not in engine.text()

    def _unpacked(self) -> Engine:
        if self._engine is None:
            engine = Engine()
            # Ours, so however long it is.
            engine.take(_unpack(self._packed["history"], 0))
            waiting = _bytes(self._packed.get("waiting", ""))
            if waiting:
                engine.take(waiting)
            self._engine, self._packed, self._value = engine, {}, ""
        return self._engine


def _joined(runs: list[Run]) -> list[Run]:
    """Neighbours by one agent as one run."""
    groups = groupby(runs, key=lambda run: run[1:])
    return [Run(sum(run.length for run in group), *key) for key, group in groups]


def update_of(delta: Json) -> bytes:
    """The engine's update in a text's delta or state. Raises `InvalidState`."""
    found = checks.mapping(delta, "shape")
    if "ops" in found:
        return _bytes(found["ops"])
    return _unpack(found.get("history"), _MOST_HISTORY)


def is_delta(state: Json) -> bool:
    """Whether it has the shape of a text's delta, not of its state."""
    return isinstance(state, Mapping) and state.keys() == _DELTA


def _replicas(names: object) -> dict[int, str]:
    if not isinstance(names, (list, tuple)):
        raise checks.refuse("shape")
    return {_peer(name): name for name in map(_name, names)}


def _name(given: Json) -> str:
    if not isinstance(given, str):
        raise checks.refuse("replica")
    return given


@lru_cache(maxsize=4096)
def _peer(replica: str) -> int:
    """The number that a replica goes by in the engine. Raises `InvalidState`."""
    agent, _, digits = checks.replica_name(replica).partition(SEPARATOR)
    try:
        peer = int(digits, 16)
    except ValueError as error:
        raise checks.refuse("replica") from error
    if not agent or not 0 < peer <= _MAX_PEER or digits != f"{peer:x}":
        raise checks.refuse("replica")
    return peer


def _bytes(encoded: Json) -> bytes:
    if not isinstance(encoded, str):
        raise checks.refuse("shape")
    try:
        return binascii.a2b_base64(encoded.encode("ascii"), strict_mode=True)
    except (ValueError, UnicodeEncodeError) as error:
        raise checks.refuse("base64") from error


def _unpack(encoded: Json, most: int) -> bytes:
    """The bytes of a history, ``most`` of them at most; 0 for any number. Raises `InvalidState`."""
    packed = _bytes(encoded)
    unpacking = zlib.decompressobj()
    try:
        history = unpacking.decompress(packed, most)
    except zlib.error as error:
        raise checks.refuse("text") from error
    if not unpacking.eof or unpacking.unused_data:
        raise checks.refuse("text")
    return history
