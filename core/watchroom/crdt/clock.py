"""Time that agrees with cause and effect: the hybrid logical clock of Kulkarni, Demirbas et al., "Logical
Physical Clocks" (OPODIS 2014)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from watchroom.crdt.checks import MAX_COUNT, natural, refuse, replica_name, sequence
from watchroom.model import Json

SEPARATOR: Final = "#"
"""Between a replica's agent and its peer number. It sorts before every character of an agent id, so that
names of replicas sort as their agents do."""
MOST_DRIFT: Final = 3_600_000
"""Milliseconds by which a remote replica's clock may be ahead of ours."""


def name_replica(agent: str, peer: int) -> str:
    """The name of one replica that ``agent`` writes with. One agent may have several at once; ``peer`` (a
    random number of 63 bits) tells them apart."""
    return f"{agent}{SEPARATOR}{peer:x}"


def agent_of(replica: str) -> str:
    """Whose replica that is. A name without a peer number is the agent's own."""
    return replica.partition(SEPARATOR)[0]


def peer_of(replica: str) -> str:
    """The peer number in a replica's name, empty where it has none."""
    return replica.partition(SEPARATOR)[2]


class Stamp(NamedTuple):
    """When and by whom: ``time`` in milliseconds since the epoch, ``tick`` counts within that
    millisecond.

    Stamps are in order of cause; where there is none, the larger replica name wins (spec 1 D-3).
    """

    time: int
    tick: int
    replica: str

    def as_json(self) -> Json:
        return [self.time, self.tick, self.replica]

    @classmethod
    def from_json(cls, state: Json) -> Stamp:
        """Raises `InvalidState`."""
        parts = sequence(state, "stamp")
        if len(parts) != 3:
            raise refuse("stamp")
        return cls(natural(parts[0], "stamp"), natural(parts[1], "stamp"), replica_name(parts[2]))


def wall_clock() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class HybridClock:
    """Gives stamps that are later than every stamp it gave or saw, and close to ``wall`` (milliseconds)."""

    __slots__ = ("_tick", "_time", "_wall")

    def __init__(self, wall: Callable[[], int] = wall_clock) -> None:
        self._wall = wall
        self._time = 0
        self._tick = 0

    def stamp(self, replica: str) -> Stamp:
        """The stamp of something that happens now at ``replica``. Raises `InvalidState` where none is left,
        because one was seen from the end of time."""
        time, tick = max((self._wall(), 0), (self._time, self._tick + 1))
        if tick > MAX_COUNT:
            time, tick = time + 1, 0
        self._time, self._tick = natural(time, "stamp"), tick
        return Stamp(time, tick, replica)

    def observe(self, stamp: Stamp) -> None:
        """Something with that stamp was seen: what happens from now on is later."""
        self._time, self._tick = max((self._time, self._tick), (stamp.time, stamp.tick))
